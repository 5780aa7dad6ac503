"""The !Kung women under the `bayes` design: the papers' hyperparameters, and untouched defaults.

Predictions are posterior means at the held-out rows, compared with the rectified heights, as in
table 1 of the 2021 paper. Rows of the table that ask the same questions share their answers too, so
that learning is compared on the same noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior, choose_query
from cloakgp.experiments import kung
from cloakgp.experiments.asked import Asked, Learning, learned
from cloakgp.experiments.cloaked import Budget, Prior
from cloakgp.experiments.crossvalidation import Errors, PriorFor, Protocol, Tick, root_mean_square
from cloakgp.fitting import release_regression
from cloakgp.models import ExactPrior
from cloakgp.release import Hyperprior, Release

# Variances of signal and noise in cm², and the lengthscales that go with them, of a declared prior
# that knows how heights vary: the papers' noise sd of 125 cm does not.
TUNED_SIGNAL, TUNED_NOISE = 650.0, 45.0
TUNED_LENGTHSCALES = {"1d": 15.0, "2d": 25.0}
BUDGET_SPLIT = 0.2


@dataclass(frozen=True)
class Row:
    """A way to release and to predict.

    Attributes
    ----------
    name : str
    prior_for : callable
        Training inputs → declared prior.
    learn : {"map", "average"} or None
    budget_split : float, optional
        As for `DPGPRegressor`.
    at_held_out : bool
        Whether the design is told where predictions will be wanted, as the papers' is; else it
        takes the training rows, the estimator's default.
    """

    name: str
    prior_for: PriorFor
    learn: Learning = None
    budget_split: float | None = None
    at_held_out: bool = False


def kung_rows(setting: kung.Setting) -> tuple[Row, ...]:
    """Return the rows for one of the standard settings of table 1.

    Examples
    --------
    >>> [row.name for row in kung_rows(kung.TABLE_1[0])][2]
    'defaults'
    """
    tuned = partial(_tuned_prior, setting.inputs)
    defaults = partial(choose_prior, bounds=kung.BUDGET.bounds)
    return (
        Row("bayes, papers' hyperparameters", setting.prior_for, at_held_out=True),
        Row("bayes, RBF, sds 25.5 and 6.7 cm", tuned, at_held_out=True),
        Row("defaults", defaults, learn="map"),
        Row("defaults, learn=None", defaults),
        Row('defaults, learn="average"', defaults, learn="average"),
        Row(
            f"defaults, budget_split={BUDGET_SPLIT:g}",
            defaults,
            learn="map",
            budget_split=BUDGET_SPLIT,
        ),
        Row("defaults, told the held-out inputs", defaults, learn="map", at_held_out=True),
        Row("the same, learn=None", defaults, at_held_out=True),
    )


def posterior_errors(
    X: Array,
    y: Array,
    *,
    rows: Sequence[Row],
    budget: Budget,
    protocol: Protocol,
    tick: Tick | None = None,
) -> dict[str, Errors]:
    """Cross-validate posterior means, by name of row.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Clipped to the bounds where predictions are compared with it, as in the papers.
    rows : sequence of Row
    budget : Budget
    protocol : Protocol
    tick : callable, optional
        Called after every fold.
    """
    truth = budget.bounds.clip(y)
    found: dict[str, list[list[float]]] = {row.name: [] for row in rows}
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        seeds = [protocol.seed(fold, draw) for draw in range(protocol.draws)]
        answered: dict[tuple[PriorFor, bool], list[Release]] = {}
        for row in rows:
            if row.budget_split is not None:
                releases = [
                    _released_in_stages(X[train], y[train], row=row, budget=budget, seed=seed)
                    for seed in seeds
                ]
            else:
                questions = (row.prior_for, row.at_held_out)
                if questions not in answered:
                    asked = Asked.designed(
                        X[train],
                        prior=row.prior_for(X[train]),
                        budget=budget,
                        X_query=X[held_out] if row.at_held_out else None,
                    )
                    answered[questions] = [
                        asked.released(y[train], insecure_seed=seed) for seed in seeds
                    ]
                releases = [learned(release, row.learn) for release in answered[questions]]
            found[row.name].append(
                [root_mean_square(one.predict(X[held_out]) - truth[held_out]) for one in releases]
            )
        if tick is not None:
            tick()
    return {name: Errors(np.array(errors)) for name, errors in found.items()}


def kung_posterior_errors(
    women: pd.DataFrame, *, protocol: Protocol, tick: Tick | None = None
) -> Mapping[str, dict[str, Errors]]:
    """Cross-validate all rows for both standard settings, by name of setting.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    protocol : Protocol
    tick : callable, optional
    """
    return {
        setting.name: posterior_errors(
            setting.rows(women),
            kung.heights(women),
            rows=kung_rows(setting),
            budget=kung.BUDGET,
            protocol=protocol,
            tick=tick,
        )
        for setting in kung.TABLE_1
        if setting.inducing is None
    }


def _tuned_prior(inputs: str, _: Array) -> Prior:
    kernel = ConstantKernel(TUNED_SIGNAL) * RBF(TUNED_LENGTHSCALES[inputs])
    return ExactPrior(kernel=kernel, noise_variance=TUNED_NOISE, mean=kung.PRIOR_MEAN)


def _released_in_stages(
    X: Array, y: Array, *, row: Row, budget: Budget, seed: int | None
) -> Release:
    return release_regression(
        X,
        y,
        prior=row.prior_for(X),
        query=choose_query(X),
        bounds=budget.bounds,
        epsilon=budget.epsilon,
        delta=budget.delta,
        hyperprior=Hyperprior(),
        average=row.learn == "average",
        budget_split=row.budget_split,
        insecure_seed=seed,
    )
