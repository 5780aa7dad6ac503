"""What the papers' figures show: released predictions along one input, or over two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.arrays import Array
from cloakgp.experiments.cloaked import (
    Budget,
    Cloaked,
    Noise,
    Prior,
    mean_without_privacy,
    noise_sd,
    sd_without_privacy,
)
from cloakgp.models import SparsePrior


@dataclass(frozen=True, eq=False)
class Curve:
    """Predictions along one input.

    Attributes
    ----------
    inputs : array of shape (P,)
    mean, sd : array of shape (P,)
        Posterior of the latent function without privacy.
    noise_sd : array of shape (P,)
        Of the privacy noise.
    releases : array of shape (S, P)
        Raw predictions, each with noise of its own.
    inducing : array of shape (M,) or None
    """

    inputs: Array
    mean: Array
    sd: Array
    noise_sd: Array
    releases: Array
    inducing: Array | None


def released_curve(
    X: Array,
    y: Array,
    *,
    inputs: Array,
    prior: Prior,
    noise: Noise,
    budget: Budget,
    releases: int,
    insecure_seed: int | None = None,
) -> Curve:
    """Release predictions along one input several times.

    Parameters
    ----------
    X : array of shape (N, 1)
    y : array of shape (N,)
    inputs : array of shape (P,)
    prior : ExactPrior or SparsePrior
    noise : Noise
    budget : Budget
        Of each release.
    releases : int
        S, at least one.
    insecure_seed : int, optional
    """
    X_query = inputs[:, None]
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=noise)
    drawn = [
        cloaked.released(
            y, budget=budget, insecure_seed=None if insecure_seed is None else insecure_seed + draw
        )
        for draw in range(releases)
    ]
    return Curve(
        inputs=inputs,
        mean=mean_without_privacy(X, y, X_query=X_query, prior=prior, bounds=budget.bounds),
        sd=sd_without_privacy(X, X_query=X_query, prior=prior),
        noise_sd=noise_sd(drawn[0]),
        releases=np.array([release.published().values for release in drawn]),
        inducing=prior.inducing[:, 0] if isinstance(prior, SparsePrior) else None,
    )


@dataclass(frozen=True)
class Grid:
    """Points on a rectangle.

    Attributes
    ----------
    horizontal, vertical : (float, float)
        Ends of the two inputs.
    steps : int
        Points along each.

    Examples
    --------
    >>> Grid((0.0, 1.0), (0.0, 2.0), steps=2).points.tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]
    """

    horizontal: tuple[float, float]
    vertical: tuple[float, float]
    steps: int

    @property
    def axes(self) -> tuple[Array, Array]:
        """The places along each input."""
        return (
            np.linspace(*self.horizontal, self.steps),
            np.linspace(*self.vertical, self.steps),
        )

    @property
    def points(self) -> Array:
        """All points, shape (steps², 2), the horizontal input varying fastest."""
        across, up = np.meshgrid(*self.axes)
        return np.column_stack([across.ravel(), up.ravel()])


@dataclass(frozen=True, eq=False)
class Surface:
    """Predictions over two inputs.

    Attributes
    ----------
    X : array of shape (N, 2)
    X_query : array of shape (P, 2)
    released : array of shape (P,)
        One draw of the raw predictions.
    noise_sd : array of shape (P,)
        Of the privacy noise in it.
    contour_grid : Grid
    mean : array of shape (steps, steps)
        Posterior mean without privacy on the contour grid; rows go up.
    inducing : array of shape (M, 2) or None
    gap : float
        Certified relative gap of the noise's design.
    """

    X: Array
    X_query: Array
    released: Array
    noise_sd: Array
    contour_grid: Grid
    mean: Array
    inducing: Array | None
    gap: float


def released_surface(
    X: Array,
    y: Array,
    *,
    query_grid: Grid,
    contour_grid: Grid,
    prior: Prior,
    noise: Noise,
    budget: Budget,
    gap: float = 1e-3,
    insecure_seed: int | None = None,
) -> Surface:
    """Release predictions over a rectangle once.

    Parameters
    ----------
    X : array of shape (N, 2)
    y : array of shape (N,)
    query_grid : Grid
        Where predictions are released.
    contour_grid : Grid
        Where the posterior mean without privacy is wanted.
    prior : ExactPrior or SparsePrior
    noise : Noise
    budget : Budget
    gap : float
        Of the design, to certify.
    insecure_seed : int, optional
    """
    X_query = query_grid.points
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=noise, gap=gap)
    release = cloaked.released(y, budget=budget, insecure_seed=insecure_seed)
    mean = mean_without_privacy(
        X, y, X_query=contour_grid.points, prior=prior, bounds=budget.bounds
    )
    return Surface(
        X=X,
        X_query=X_query,
        released=release.published().values,
        noise_sd=noise_sd(release),
        contour_grid=contour_grid,
        mean=mean.reshape(contour_grid.steps, contour_grid.steps),
        inducing=prior.inducing if isinstance(prior, SparsePrior) else None,
        gap=cloaked.design.certificate.gap,
    )
