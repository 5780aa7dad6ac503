"""Lengthscales and row noises that follow the density: the !Kung women of the 2021 paper.

The paper prints the form of its lengthscale (section 3.1) and not its constants: neither the
longest lengthscale, nor how many rows it should hold, nor the bandwidth of the density, nor how far
around a point the smallest density is looked for. The authors' public repositories do not have them
either. Here they are round numbers at which the errors of table 1, with the papers' noise and
without, come out near the published ones. Many others do as well, and the agreement is by
construction. The rest is as in `kung`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import ConstantKernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.design import design_strategy
from cloakgp.design.row_noise import PublicCovariances, RowNoiseDesign, design_row_noise
from cloakgp.experiments import kung
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE, Cloaked, Noise, Prior
from cloakgp.experiments.crossvalidation import (
    CrossValidation,
    Errors,
    Protocol,
    Tick,
    cross_validate,
    root_mean_square,
)
from cloakgp.experiments.posterior_rows import TUNED_NOISE, TUNED_SIGNAL, Row, posterior_errors
from cloakgp.experiments.published import Published
from cloakgp.experiments.surfaces import Curve, Grid, Surface, released_curve, released_surface
from cloakgp.models import ExactPrior
from cloakgp.models.gibbs import GibbsKernel, gibbs_kernel
from cloakgp.models.row_noise import RowNoisePrior
from cloakgp.privacy.guarantee import exact_noise_multiplier

# 2021 paper, table 1, third column.
PUBLISHED_PRIVATE = {"1d": Published(12.8, 2.0), "2d": Published(16.3, 2.5)}
PUBLISHED_NO_PRIVACY = {"1d": Published(8.6, 2.2), "2d": Published(5.9, 1.7)}
# Of the density and of its amendment, in years and kg.
BANDWIDTH, RADIUS = 10.0, 5.0


@dataclass(frozen=True)
class Nonstationary:
    """A row of table 1's third column.

    Attributes
    ----------
    inputs : {"1d", "2d"}
        Age alone, or weight and age.
    longest : float
        m of section 3.1, in years and kg.
    crowd : float
        n of section 3.1: rows; with two inputs, rows a year or a kg.
    """

    inputs: str
    longest: float
    crowd: float

    def rows(self, women: pd.DataFrame) -> Array:
        """Return the inputs, shape (N, D), in kg and years."""
        return women[kung.INPUTS[self.inputs]].to_numpy(dtype=float)

    def kernel(self, X: Array, *, radius: float = RADIUS) -> GibbsKernel:
        """Return the kernel of unit variance for training inputs.

        Examples
        --------
        >>> NONSTATIONARY[0].kernel(np.zeros((2, 1))).lengthscale(np.array([[500.0]]))
        array([50.])
        """
        return gibbs_kernel(
            X, longest=self.longest, crowd=self.crowd, bandwidth=BANDWIDTH, radius=radius
        )

    def prior_for(
        self,
        X: Array,
        *,
        signal_variance: float = kung.SIGNAL_VARIANCE,
        noise_variance: float = kung.NOISE_VARIANCE,
    ) -> Prior:
        """Return the prior for training inputs, the papers' unless variances in cm² are given."""
        kernel = ConstantKernel(signal_variance) * self.kernel(X)
        return ExactPrior(kernel=kernel, noise_variance=noise_variance, mean=kung.PRIOR_MEAN)


NONSTATIONARY = (Nonstationary("1d", 50.0, 200.0), Nonstationary("2d", 50.0, 2.5))
# The standard columns of table 1, in which rows may be believed less.
STANDARD = tuple(setting for setting in kung.TABLE_1 if setting.inducing is None)
SHARED, BY_ROW = "one factor for all rows", "a noise for each row"


def third_column(
    women: pd.DataFrame, *, protocol: Protocol, tick: Tick | None = None
) -> dict[str, CrossValidation]:
    """Compute the third column of table 1 of the 2021 paper, by inputs.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    protocol : Protocol
    tick : callable, optional
        Called after every fold.
    """
    return {
        setting.inputs: cross_validate(
            setting.rows(women),
            kung.heights(women),
            prior_for=setting.prior_for,
            noises=(PAPERS_NOISE, TRACE_NOISE),
            posterior_of=(TRACE_NOISE,),
            budget=kung.BUDGET,
            protocol=protocol,
            tick=tick,
        )
        for setting in NONSTATIONARY
    }


def bayes_rows(
    women: pd.DataFrame, *, protocol: Protocol, tick: Tick | None = None
) -> dict[str, Mapping[str, Errors]]:
    """Compute errors of posterior means under the `bayes` design, by inputs and name of prior.

    All designs are told the held-out inputs, as the papers' are, and nothing is learned.

    Parameters
    ----------
    women : DataFrame
    protocol : Protocol
    tick : callable, optional
        Called after every fold.
    """
    found: dict[str, Mapping[str, Errors]] = {}
    for setting in NONSTATIONARY:
        tuned = partial(setting.prior_for, signal_variance=TUNED_SIGNAL, noise_variance=TUNED_NOISE)
        defaults = partial(choose_prior, bounds=kung.BUDGET.bounds)
        found[setting.inputs] = posterior_errors(
            setting.rows(women),
            kung.heights(women),
            rows=(
                Row("bayes, this prior", setting.prior_for, at_held_out=True),
                Row("bayes, this kernel, sds 25.5 and 6.7 cm", tuned, at_held_out=True),
                Row("bayes, fixed default prior", defaults, at_held_out=True),
            ),
            budget=kung.BUDGET,
            protocol=protocol,
            tick=tick,
        )
    return found


@dataclass(frozen=True, eq=False)
class RowNoises:
    """What believing rows less is worth, in one of the standard columns of table 1.

    Attributes
    ----------
    expected : dict of str to float
        Root of the mean over folds of the expected squared error at a query point, in cm, by way of
        choosing the noises.
    raw : dict of str to Errors
        Of the raw predictions, `trace` design and exact calibration.
    largest : float
        The most that a row's noise variance was raised, as a factor.
    """

    expected: dict[str, float]
    raw: dict[str, Errors]
    largest: float


def row_noises(
    women: pd.DataFrame, *, protocol: Protocol, steps: int, tick: Tick | None = None
) -> dict[str, RowNoises]:
    """Compare the declared noise with noises chosen from public inputs, by inputs.

    Parameters
    ----------
    women : DataFrame
    protocol : Protocol
    steps : int
        Of the optimiser.
    tick : callable, optional
        Called after every fold.
    """
    return {
        setting.inputs: _row_noises_of(
            setting, women, protocol=protocol, steps=steps, tick=tick or (lambda: None)
        )
        for setting in STANDARD
    }


def _row_noises_of(
    setting: kung.Setting, women: pd.DataFrame, *, protocol: Protocol, steps: int, tick: Tick
) -> RowNoises:
    X, y = setting.rows(women), kung.heights(women)
    truth = kung.BUDGET.bounds.clip(y)
    ways = ("the declared noise", SHARED, BY_ROW)
    expected: dict[str, list[float]] = {way: [] for way in ways}
    errors: dict[str, list[list[float]]] = {way: [] for way in ways}
    largest = 1.0
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        prior = setting.prior_for(X[train])
        shared, by_row = (
            chosen_row_noise(prior, X[train], X[held_out], shared=one, steps=steps)
            for one in (True, False)
        )
        declared = prior.row_noise(X[train])
        largest = max(largest, float((by_row.variance / declared).max()))
        for number, (way, variance, error) in enumerate(
            zip(
                ways,
                (declared, shared.variance, by_row.variance),
                (by_row.before, shared.expected, by_row.expected),
                strict=True,
            )
        ):
            expected[way].append(error.total / len(held_out))
            cloaking = RowNoisePrior(model=prior, rows=X[train], variance=variance).cloaking_matrix(
                X[held_out], X[train]
            )
            cloaked = Cloaked(
                prior=prior,
                X=X[train],
                X_query=X[held_out],
                cloaking=cloaking,
                noise=TRACE_NOISE,
                design=design_strategy(cloaking),
            )
            releases = (
                cloaked.released(
                    y[train], budget=kung.BUDGET, insecure_seed=protocol.seed(fold, number, draw)
                )
                for draw in range(protocol.draws)
            )
            errors[way].append(
                [root_mean_square(one.published().values - truth[held_out]) for one in releases]
            )
        tick()
    return RowNoises(
        expected={way: float(np.sqrt(np.mean(found))) for way, found in expected.items()},
        raw={way: Errors(np.array(found)) for way, found in errors.items()},
        largest=largest,
    )


def chosen_row_noise(
    prior: Prior, X: Array, X_query: Array, *, shared: bool, steps: int
) -> RowNoiseDesign:
    """Choose row noises for one table and the experiment's budget, from public inputs.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
    X_query : array of shape (P, D)
    shared : bool
    steps : int
    """
    budget = kung.BUDGET
    return design_row_noise(
        PublicCovariances(
            latent=prior.row_covariance(X, X.copy()),
            noise=prior.row_noise(X),
            crossed=prior.cross_covariance(X_query, X),
            prior_variance=float(prior.query_variance(X_query).sum()),
        ),
        noise_sd=budget.bounds.width * exact_noise_multiplier(budget.epsilon, budget.delta),
        shared=shared,
        steps=steps,
    )


@dataclass(frozen=True, eq=False)
class Lengthscales:
    """The lengthscale along age, for figure 3D.

    Attributes
    ----------
    ages : array of shape (P,)
    amended, plain : array of shape (P,)
        From the smallest density nearby, and from the density itself, in years.
    """

    ages: Array
    amended: Array
    plain: Array


def lengthscales_by_age(women: pd.DataFrame) -> Lengthscales:
    """Return what figure 3D of the 2021 paper shows."""
    setting = NONSTATIONARY[0]
    X, X_query = setting.rows(women), kung.AGES[:, None]
    return Lengthscales(
        ages=kung.AGES,
        amended=setting.kernel(X).lengthscale(X_query),
        plain=setting.kernel(X, radius=0.0).lengthscale(X_query),
    )


def age_curve(women: pd.DataFrame, *, noise: Noise) -> Curve:
    """Release heights by age, for figure 3B of the 2021 paper.

    Parameters
    ----------
    women : DataFrame
    noise : Noise
    """
    setting = NONSTATIONARY[0]
    X = setting.rows(women)
    return released_curve(
        X,
        kung.heights(women),
        inputs=kung.AGES,
        prior=setting.prior_for(X),
        noise=noise,
        budget=kung.BUDGET,
        releases=kung.DRAWN_RELEASES,
    )


def weight_age_surface(women: pd.DataFrame, *, noise: Noise) -> Surface:
    """Release heights by weight and age, for figure 5C of the 2021 paper.

    Parameters
    ----------
    women : DataFrame
    noise : Noise
    """
    setting = NONSTATIONARY[1]
    X = setting.rows(women)
    return released_surface(
        X,
        kung.heights(women),
        query_grid=Grid(kung.WEIGHT, kung.AGE, steps=kung.QUERY_STEPS),
        contour_grid=Grid(kung.WEIGHT, kung.AGE, steps=kung.CONTOUR_STEPS),
        prior=setting.prior_for(X),
        noise=noise,
        budget=kung.BUDGET,
    )
