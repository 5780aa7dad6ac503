"""Cross-validation of released predictions: errors by fold and by draw of the noise.

`cross_validate` judges the raw predictions of a cloaked release, as the papers do, and
`posterior_errors` posterior means under the `bayes` design. Ways to release that ask the same
questions share their answers, so that learning is compared on the same noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from cloakgp.fitting import strategies
from cloakgp.fitting.bands import ONE_STAGE, Stage
from cloakgp.fitting.defaults import choose_query
from cloakgp.fitting.fit import learning_of_default_prior
from cloakgp.fitting.steps import Learning as LearningSettings
from cloakgp.privacy.workers import in_order
from cloakgp.release import Hyperprior, Release
from cloakgp.utils.arrays import Array
from experiments.cloaking import (
    Asked,
    Budget,
    Cloaked,
    Learning,
    Noise,
    Prior,
    mean_without_privacy,
)
from experiments.fits import release_under
from experiments.framework import Tick, no_tick, ticked
from experiments.spread import standard_error, with_error

PriorFor = Callable[[Array], Prior]


@dataclass(frozen=True, eq=False)
class Errors:
    """Root mean squared errors of one method.

    Attributes
    ----------
    by_fold : array of shape (folds, draws)
        One draw where there is no noise.

    Examples
    --------
    >>> errors = Errors(np.array([[1.0, 3.0], [4.0, 4.0]]))
    >>> errors.mean, errors.fold_sd, errors.with_error
    (3.0, 1.0, '3.00')
    """

    by_fold: Array

    @property
    def mean(self) -> float:
        """Over folds and draws."""
        return float(self.by_fold.mean())

    @property
    def pooled(self) -> float:
        """Root of the mean square over folds and draws, where folds have few rows each."""
        return root_mean_square(self.by_fold)

    @property
    def fold_sd(self) -> float:
        """The papers' ±: sd over folds of the fold's mean over draws."""
        return float(self.by_fold.mean(axis=1).std())

    @property
    def single_draw_sd(self) -> float:
        """Of one fold with one draw about the mean."""
        return float(self.by_fold.std())

    @property
    def standard_error(self) -> float | None:
        """Of `mean`, over draws with the folds as they are; None if they are too few to tell."""
        return standard_error(self.by_fold.mean(axis=0))

    @property
    def with_error(self) -> str:
        """Mean, and its standard error where there is one, as tables show them."""
        error = self.standard_error
        return f"{self.mean:.2f}" + ("" if error is None else f" (se {error:.2f})")

    def with_spread(self, error: str = " (se {:.2f})") -> str:
        """Return the mean ± the papers' sd over folds, and the standard error in some format."""
        found = self.standard_error
        spread = f"{self.mean:.2f} ± {self.fold_sd:.1f}"
        return spread if found is None else spread + error.format(found)


@dataclass(frozen=True)
class Protocol:
    """How errors are measured.

    Attributes
    ----------
    folds : int
    draws : int
        Releases per fold and method.
    shuffle : bool
        Deal rows to folds at random instead of in file order.
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """

    folds: int = 14
    draws: int = 20
    shuffle: bool = False
    insecure_seed: int | None = None

    def splits(self, rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield training and held-out rows of every fold."""
        dealt = KFold(self.folds, shuffle=self.shuffle, random_state=0 if self.shuffle else None)
        yield from dealt.split(np.zeros((rows, 1)))

    def seed(self, *path: int) -> int | None:
        """Return a seed of its own for one release, or None."""
        if self.insecure_seed is None:
            return None
        return int(np.random.SeedSequence((self.insecure_seed, *path)).generate_state(1)[0])


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What one cross-validation found.

    Attributes
    ----------
    no_privacy : Errors
    raw : dict of str to Errors
        Of the raw predictions C y + noise, by the noise's name.
    posterior : dict of str to Errors
        Of the posterior mean given the same answers, for the noises it was asked for.
    """

    no_privacy: Errors
    raw: dict[str, Errors] = field(default_factory=dict)
    posterior: dict[str, Errors] = field(default_factory=dict)


def cross_validate(
    X: Array,
    y: Array,
    *,
    prior_for: PriorFor,
    noises: Sequence[Noise],
    budget: Budget,
    protocol: Protocol,
    posterior_of: Sequence[Noise] = (),
    tick: Tick = no_tick,
    n_jobs: int | None = None,
) -> CrossValidation:
    """Release predictions of every held-out fold from the others, and compare with the truth.

    The truth is clipped to the bounds, as in the papers.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    prior_for : callable
        Training inputs → prior.
    posterior_of : sequence of Noise
        Those of them whose posterior mean is wanted as well.
    n_jobs : int, optional
        How many folds at a time; see `cloakgp.privacy.workers.in_order`. Workers get the table,
        outputs and all: it is an experiment's.

    Returns
    -------
    CrossValidation
    """
    tasks = (
        partial(
            _errors_of_fold,
            fold,
            X=(X[train], X[held_out]),
            y=(y[train], y[held_out]),
            prior_for=prior_for,
            noises=noises,
            budget=budget,
            protocol=protocol,
            posterior_of=posterior_of,
        )
        for fold, (train, held_out) in enumerate(protocol.splits(len(X)))
    )
    folds = list(ticked(in_order(tasks, n_jobs=n_jobs), tick=tick))
    return CrossValidation(
        no_privacy=Errors(np.array([[fold.no_privacy] for fold in folds])),
        raw={
            noise.name: Errors(np.array([fold.raw[noise.name] for fold in folds]))
            for noise in noises
        },
        posterior={
            noise.name: Errors(np.array([fold.posterior[noise.name] for fold in folds]))
            for noise in posterior_of
        },
    )


@dataclass(frozen=True)
class _FoldErrors:
    no_privacy: float
    raw: dict[str, list[float]]
    posterior: dict[str, list[float]]


def _errors_of_fold(
    fold: int,
    *,
    X: tuple[Array, Array],
    y: tuple[Array, Array],
    prior_for: PriorFor,
    noises: Sequence[Noise],
    budget: Budget,
    protocol: Protocol,
    posterior_of: Sequence[Noise],
) -> _FoldErrors:
    """Return the errors on one fold; X and y are those of the other folds, and its own."""
    (train, held_out), truth = X, budget.bounds.clip(y[1])
    prior = prior_for(train)
    unnoised = mean_without_privacy(
        train, y[0], X_query=held_out, prior=prior, bounds=budget.bounds
    )
    raw, posterior = {}, {}
    for number, noise in enumerate(noises):
        cloaked = Cloaked.designed(train, held_out, prior=prior, noise=noise)
        releases = [
            cloaked.released(y[0], budget=budget, insecure_seed=protocol.seed(fold, number, draw))
            for draw in range(protocol.draws)
        ]
        raw[noise.name] = [
            root_mean_square(release.published().values - truth) for release in releases
        ]
        if noise in posterior_of:
            posterior[noise.name] = [
                root_mean_square(release.predict(held_out) - truth) for release in releases
            ]
    return _FoldErrors(no_privacy=root_mean_square(unnoised - truth), raw=raw, posterior=posterior)


def root_mean_square(errors: Array) -> float:
    """Return the root of the mean of squares.

    Examples
    --------
    >>> root_mean_square(np.array([1.0, 7.0]))
    5.0
    """
    return float(np.sqrt(np.mean(np.square(errors))))


@dataclass(frozen=True)
class Row:
    """A way to release and to predict.

    Attributes
    ----------
    name : str
    prior_for : callable
        Training inputs → declared prior.
    learn : {"map", "average"} or None
    default_prior : bool
        Whether that prior is the estimator's default, of which it weighs smaller scales where
        answers are few.
    stages : tuple of Stage
        How the budget is spread over measurements; see `cloakgp.fitting.bands`.
    at_held_out : bool
        Whether the design is told where predictions will be wanted, as the papers' is; else it
        takes the training rows, the estimator's default.
    private : bool
        False for the posterior mean that an owner of the outputs would have under the declared
        prior: one draw.
    """

    name: str
    prior_for: PriorFor
    learn: Learning = None
    default_prior: bool = False
    stages: tuple[Stage, ...] = ONE_STAGE
    at_held_out: bool = False
    private: bool = True

    def learning(self, *, epsilon: float, rows: int) -> LearningSettings:
        """Return the settings of learning from the answers about some rows."""
        chosen = LearningSettings(
            hyperprior=None if self.learn is None else Hyperprior(), average=self.learn == "average"
        )
        if not self.default_prior:
            return chosen
        return learning_of_default_prior(chosen, epsilon=epsilon, persons=rows)


def posterior_errors(
    X: Array,
    y: Array,
    *,
    rows: Sequence[Row],
    budget: Budget,
    protocol: Protocol,
    tick: Tick = no_tick,
) -> dict[str, Errors]:
    """Cross-validate posterior means, by name of row.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Clipped to the bounds where predictions are compared with it, as in the papers.
    """
    truth = budget.bounds.clip(y)
    found: dict[str, list[list[float]]] = {row.name: [] for row in rows}
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        seeds = [protocol.seed(fold, draw) for draw in range(protocol.draws)]
        answered: dict[tuple[PriorFor, bool], list[Release]] = {}
        for row in rows:
            learning = row.learning(epsilon=budget.epsilon, rows=len(train))
            if not row.private:
                unnoised = mean_without_privacy(
                    X[train],
                    y[train],
                    X_query=X[held_out],
                    prior=row.prior_for(X[train]),
                    bounds=budget.bounds,
                )
                found[row.name].append([root_mean_square(unnoised - truth[held_out])])
                continue
            if len(row.stages) > 1:
                releases = [
                    _released_in_stages(
                        X[train], y[train], row=row, learning=learning, budget=budget, seed=seed
                    )
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
                releases = answered[questions]
                if learning.hyperprior is not None:
                    releases = [
                        release.learn(learning.hyperprior, average=learning.average)
                        for release in releases
                    ]
            found[row.name].append(
                [
                    root_mean_square(release.predict(X[held_out]) - truth[held_out])
                    for release in releases
                ]
            )
        tick()
    return {name: Errors(np.array(errors)) for name, errors in found.items()}


def _released_in_stages(
    X: Array,
    y: Array,
    *,
    row: Row,
    learning: LearningSettings,
    budget: Budget,
    seed: int | None,
) -> Release:
    return release_under(
        row.prior_for(X),
        X,
        y,
        query=choose_query(X),
        bounds=budget.bounds,
        budget=strategies.Budget(budget.epsilon, budget.delta),
        learning=learning,
        stages=[(one.share, one.width) for one in row.stages],
        insecure_seed=seed,
    )


def mean_of_draws(draws: Array, *, sign: str = "") -> str:
    """Return the mean over draws and its standard error, if it can be told, as tables show them.

    Parameters
    ----------
    draws : array of shape (draws,)
    sign : {"", "+"}
        Whether a plus is shown.

    Examples
    --------
    >>> mean_of_draws(np.array([1.0, 3.0]))
    '2.00'
    """
    error = standard_error(draws)
    decimals = 2 if error is None or error >= 0.1 else 3
    return with_error(float(draws.mean()), error, f"{sign}.{decimals}f")
