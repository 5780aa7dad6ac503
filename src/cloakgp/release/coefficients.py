r"""Posterior coefficients: the numbers for predictions, for programs in other languages.

Under each prior that a release averages over, every latent function has the mean and the variance

    E[f(x)] = m + t(x) + b(x)ᵀ a,    var[f(x)] = k(x, x) − ‖S b(x)‖² + ‖A b(x)‖²,

with b(x) = k(Z, x) over the rows Z of an exact process, or b(x) = G⁻¹ k(Z, x) over the inducing
inputs Z of a sparse one, with G the Cholesky factor of k(Z, Z). t is the trend of an exact process,
if it has one; of a sparse one, it is in a. The last term is there for the
papers' iteration alone. Everything is a function of what is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import Likelihood
from cloakgp.models.scatter import Scatter
from cloakgp.models.trend import Trend
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.laplace import NewtonState
from cloakgp.release.posterior.mixture import NewtonFunctions, PosteriorFunctions
from cloakgp.release.tables import DenseTable
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.release.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Channel:
    """One latent function.

    Attributes
    ----------
    mean : float
        m.
    weights : array of shape (n,)
        a.
    subtracted : array of shape (k, n)
        S.
    added : array of shape (j, n)
        A; without rows unless the papers' iteration is used.
    """

    mean: float
    weights: Array
    subtracted: Array
    added: Array


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The latent functions under one prior.

    Attributes
    ----------
    weight : float
        Of this prior among all.
    kernel : sklearn.gaussian_process.kernels.Kernel
        Its white noise counts for new outputs alone.
    centres : array of shape (n, D)
        Z.
    factor : array of shape (n, n) or None
        G; None for an exact process.
    all_explained : bool
        Whether k(x, x) stands for ‖b(x)‖², as of SoR.
    noise_variance : float
        Of a new output, white noise of the kernel not counted.
    scatter : Scatter or None
        By how much noise, of both kinds, is larger here than there.
    trend : Trend or None
        t; None of a sparse process.
    channels : tuple of Channel
    likelihood : Likelihood
        How outputs depend on these functions, with what was learned of it.
    """

    weight: float
    kernel: Kernel
    centres: Array
    factor: Array | None
    all_explained: bool
    noise_variance: float
    scatter: Scatter | None
    trend: Trend | None
    channels: tuple[Channel, ...]
    likelihood: Likelihood


def coefficients(release: Predictions) -> tuple[Coefficients, ...]:
    """Return the coefficients of predictions, one for each prior that a release averages over.

    Parameters
    ----------
    release : Release

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [part] = coefficients(model.release_)
    >>> crossed = part.kernel([[0.5]], part.centres)
    >>> [channel] = part.channels
    >>> mean = channel.mean + crossed @ channel.weights
    >>> bool(np.isclose(mean[0], model.release_.predict([[0.5]])[0]))
    True
    """
    mixture = release._mixture
    found = []
    for prior, functions in zip(mixture.priors, mixture.functions, strict=True):
        latent = prior.prior
        sparse = latent if isinstance(latent, SparsePrior) else None
        if isinstance(functions, PosteriorFunctions):
            centres, channels = _of_posteriors(functions.posteriors)
        else:
            assert isinstance(functions, NewtonFunctions)
            centres, channels = functions.state.X, (_of_iteration(functions.state),)
        found.append(
            Coefficients(
                weight=prior.weight,
                kernel=latent.kernel,
                centres=centres if sparse is None else sparse.inducing,
                factor=None if sparse is None else sparse.inducing_factor,
                all_explained=sparse is not None and sparse.approximation == "sor",
                noise_variance=latent.noise_variance,
                scatter=latent.scatter,
                trend=latent.trend if sparse is None else None,
                channels=channels,
                likelihood=prior.likelihood,
            )
        )
    return tuple(found)


def _of_posteriors(posteriors: tuple[Posterior, ...]) -> tuple[Array, tuple[Channel, ...]]:
    first = posteriors[0]
    if isinstance(first.prior, SparsePrior):
        centres, places = first.prior.inducing, np.arange(0)
    else:
        rows = [table.X for table in first.tables if isinstance(table, DenseTable)]
        stacked = np.vstack(rows) if rows else np.zeros((0, 0))
        # Rows with the same inputs are one centre.
        centres, found = np.unique(stacked, axis=0, return_inverse=True)
        places = found.ravel()
    return centres, tuple(_channel(each, places, count=len(centres)) for each in posteriors)


def _channel(posterior: Posterior, places: NDArray[np.intp], *, count: int) -> Channel:
    prior, tables = posterior.prior, posterior.tables
    if isinstance(prior, SparsePrior):
        nothing = np.zeros((0, count))
        asked = np.vstack([nothing, *(table.inducing_cross(prior) for table in tables)])
        weights = posterior.inducing_mean()
    else:
        blocks = [table.questions for table in tables if isinstance(table, DenseTable)]
        spread = linalg.block_diag(*blocks) if blocks else np.zeros((0, 0))
        asked = np.zeros((len(spread), count))
        np.add.at(asked.T, places, spread.T)
        weights = asked.T @ posterior.weights
    root = linalg.solve_triangular(posterior.factor, asked, lower=True) if len(asked) else asked
    return Channel(
        mean=float(prior.mean),
        weights=np.asarray(weights, dtype=np.float64),
        subtracted=_shortened(np.asarray(root, dtype=np.float64)),
        added=np.zeros((0, count)),
    )


def _shortened(root: Array) -> Array:
    """Return a root with no more rows than columns, which has the same squared lengths."""
    if root.shape[0] <= root.shape[1]:
        return root
    return np.asarray(np.linalg.qr(root, mode="r"), dtype=np.float64)


def _of_iteration(state: NewtonState) -> Channel:
    """Return the papers' latent function after its noisy steps."""
    prior = state.prior
    interpolation, root = state.interpolation(), state.explained_root()
    if isinstance(prior, SparsePrior):
        root = root @ prior.features(state.X).T
    return Channel(
        mean=state.prior_mean,
        weights=interpolation @ (state.latent - state.prior_mean),
        subtracted=_shortened(root),
        added=state.noise_root.T @ interpolation.T,
    )
