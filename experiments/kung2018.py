"""The !Kung women of the 2018 paper, section 4: heights from age with a lengthscale of 25 years.

The paper prints a kernel variance of 7.72² cm² and a noise variance of 14² cm². Its notebook has
variance 1 and noise variance 0.3 for heights divided by their sd of 25.7 cm: 14.1 is √0.3 of that,
and 7.72 is 0.3 of it. Published: 6.8 cm without privacy and 12.2 cm with, over folds that are not
stated; so several numbers of folds are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import ShuffleSplit

from cloakgp.fitting.defaults import choose_prior
from cloakgp.models import ExactPrior
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.cross_validation import HeldOutErrors, deal, held_out_errors
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.algorithm_1 import (
    DELTA,
    EPSILON,
    Fold,
    expected_squared_errors,
    fold_of,
    papers_selection_with_unsound_bound,
    sound_choice,
)
from experiments.cloaking import (
    LEARNINGS,
    LOGDET_NOISE,
    PAPERS_NOISE,
    TRACE_NOISE,
    Asked,
    Budget,
    Prior,
    learned,
)
from experiments.cross_validation import (
    CrossValidation,
    Errors,
    Protocol,
    Row,
    cross_validate,
    mean_of_draws,
    posterior_errors,
    root_mean_square,
)
from experiments.datasets import load_kung
from experiments.framework import (
    Experiment,
    Progress,
    Releases,
    Shuffle,
    Tick,
    no_tick,
    table_titled,
)
from experiments.learning_or_selection import LOSS, MECHANISM, Divided

LENGTHSCALE = 25.0
UNIT = 25.7
SIGNAL_VARIANCE = UNIT**2
NOISE_VARIANCE = 0.3 * UNIT**2
FOLDS = (10, 14, 29, 72)


@dataclass(frozen=True, eq=False)
class ByFolds:
    """What was computed for one number of folds.

    Attributes
    ----------
    cloaked : CrossValidation
        Under `logdet` and `trace`.
    bayes : Errors
    """

    cloaked: CrossValidation
    bayes: Errors


def prior_for(_: Array) -> Prior:
    """Return the paper's prior, whatever the training inputs."""
    return ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * RBF(LENGTHSCALE),
        noise_variance=NOISE_VARIANCE,
        mean=kung.PRIOR_MEAN,
    )


BAYES = Row("bayes", prior_for, at_held_out=True)


def errors_by_folds(
    women: pd.DataFrame, *, protocol: Protocol, folds: Sequence[int] = FOLDS, tick: Tick = no_tick
) -> dict[int, ByFolds]:
    """Compute the errors of heights predicted from age, (1, 0.01)-DP, by number of folds.

    Parameters
    ----------
    protocol : Protocol
        Its number of folds is not used.
    """
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    found = {}
    for count in folds:
        dealt = replace(protocol, folds=count)
        found[count] = ByFolds(
            cloaked=cross_validate(
                X,
                y,
                prior_for=prior_for,
                noises=(PAPERS_NOISE, LOGDET_NOISE, TRACE_NOISE),
                posterior_of=(TRACE_NOISE,),
                budget=kung.BUDGET,
                protocol=dealt,
                tick=tick,
            ),
            bayes=posterior_errors(
                X, y, rows=(BAYES,), budget=kung.BUDGET, protocol=dealt, tick=tick
            )[BAYES.name],
        )
    return found


BOUNDS = kung.BUDGET.bounds
LENGTHSCALES = (3.0, 9.0, 27.0, 81.0)
NOISE_SDS = tuple(float(sd) for sd in np.geomspace(1.1, 12.7, 4))
CANDIDATES = tuple(
    ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * RBF(lengthscale),
        noise_variance=noise_sd**2,
        mean=kung.PRIOR_MEAN,
    )
    for lengthscale, noise_sd in product(LENGTHSCALES, NOISE_SDS)
)
RUNS = 100
HELD_OUT = 0.1
CHOICE_FOLDS = 5
GAP = 1e-2
# The paper's two budgets add up to this at its δ.
TOTAL_EPSILON = 2 * EPSILON

PUBLISHED = {
    "published, choice not private": 14.3,
    "published, chosen by the exponential mechanism": 17.4,
}
WAYS = (
    "papers' noise, least held-out error (choice not private)",
    "algorithm 1 (its bound fails)",
    "the same, any candidate alike",
    "ours, least held-out error (choice not private)",
    "ours, sound choice at ε = 1",
    "the same, any candidate alike",
    "declared defaults",
    "defaults, learn=map",
    "defaults, learn=average",
)

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Women:
    """Ages and heights, and who of them chooses, and who is predicted in the end.

    Attributes
    ----------
    X : array of shape (N, 1)
    heights : array of shape (N,)
        Rectified, in cm.
    fitted, validation : array of int
    """

    X: Array
    heights: Array
    fitted: Rows
    validation: Rows

    @classmethod
    def split(cls, women: pd.DataFrame, *, number: int) -> Women:
        """Hold a validation set out at random; the same for the same number."""
        fitted, validation = _shuffled(len(women), count=1, seed=number)[0]
        return cls(
            X=women[["age"]].to_numpy(dtype=float),
            heights=BOUNDS.clip(kung.heights(women)),
            fitted=fitted,
            validation=validation,
        )


def papers_rmse(
    women: Women, *, candidates: Sequence[ExactPrior] = CANDIDATES, runs: int = RUNS, seed: int = 0
) -> list[float]:
    """Return expected RMSEs on the validation set of the first three `WAYS`, in cm.

    Parameters
    ----------
    runs : int
        Of Monte-Carlo cross-validation.
    seed : int
        Of who is held out in them.
    """
    y = women.heights - kung.PRIOR_MEAN
    drawn = _shuffled(len(women.fitted), count=runs, seed=seed)
    cloaked, squares = [], []
    for prior in candidates:
        cloaked.append(
            [
                _papers_fold(prior, women, train=women.fitted[train], held_out=women.fitted[out])
                for train, out in drawn
            ]
        )
        validating = _papers_fold(prior, women, train=women.fitted, held_out=women.validation)
        squares.append(expected_squared_errors([validating], y) / len(women.validation))
    choice = papers_selection_with_unsound_bound(cloaked, y, width=BOUNDS.width)
    return _by_choice(np.array(squares), errors=choice.errors, probabilities=choice.probabilities)


def our_rmse(
    women: Women, *, divided: Divided, candidates: Sequence[ExactPrior] = CANDIDATES
) -> list[float]:
    """Return expected RMSEs on the validation set of the next three `WAYS`, in cm.

    Parameters
    ----------
    divided : Divided
        The paper's total.
    """
    answer_sd = BOUNDS.width * exact_noise_multiplier(divided.release, DELTA)
    dealt = deal(len(women.fitted), folds=CHOICE_FOLDS)
    X, y = women.X[women.fitted], women.heights[women.fitted]
    public, squares = [], []
    for prior in candidates:
        public.append(held_out_errors(prior, X, splits=dealt, answer_sd=answer_sd, gap=GAP))
        validating = held_out_errors(
            prior, women.X, splits=[(women.fitted, women.validation)], answer_sd=answer_sd, gap=GAP
        )
        squares.append(_mean_square(validating, women))
    errors, _, probabilities = sound_choice(
        public, y, bounds=BOUNDS, epsilon=divided.choice, mechanism=MECHANISM, loss=LOSS
    )
    return _by_choice(np.array(squares), errors=errors, probabilities=probabilities)


def default_rmse(women: Women, *, insecure_seed: int | None = None) -> list[float]:
    """Return RMSEs on the validation set of the last three `WAYS`, in cm, all with one noise."""
    X = women.X[women.fitted]
    asked = Asked.designed(
        X,
        prior=choose_prior(X, bounds=BOUNDS),
        budget=Budget(bounds=BOUNDS, epsilon=TOTAL_EPSILON, delta=DELTA),
        X_query=women.X[women.validation],
    )
    answered = asked.released(women.heights[women.fitted], insecure_seed=insecure_seed)
    truth = women.heights[women.validation]
    return [
        root_mean_square(learned(answered, way).predict(women.X[women.validation]) - truth)
        for way in LEARNINGS
    ]


def compare_choices(
    women: pd.DataFrame,
    *,
    splits: int,
    candidates: Sequence[ExactPrior] = CANDIDATES,
    runs: int = RUNS,
    tick: Tick = no_tick,
) -> Array:
    """Return RMSEs on validation sets, shape (ways, splits), in cm, in the order of `WAYS`.

    Parameters
    ----------
    splits : int
        Validation sets.
    runs : int
        Of Monte-Carlo cross-validation.
    """
    divided = Divided.of(TOTAL_EPSILON, delta=DELTA, choice=EPSILON, rows=len(women))
    found = []
    for number in range(splits):
        split = Women.split(women, number=number)
        found.append(
            papers_rmse(split, candidates=candidates, runs=runs, seed=number)
            + our_rmse(split, divided=divided, candidates=candidates)
            + default_rmse(split)
        )
        tick()
    return np.array(found).T


def _shuffled(rows: int, *, count: int, seed: int) -> list[tuple[Rows, Rows]]:
    drawn = ShuffleSplit(count, test_size=HELD_OUT, random_state=seed)
    return list(drawn.split(np.zeros((rows, 1))))


def _papers_fold(prior: ExactPrior, women: Women, *, train: Rows, held_out: Rows) -> Fold:
    return fold_of(
        prior.cloaking_matrix(women.X[held_out], women.X[train]),
        train=train,
        held_out=held_out,
        width=BOUNDS.width,
        gap=GAP,
    )


def _mean_square(validating: HeldOutErrors, women: Women) -> float:
    rows = women.validation
    residuals = validating.residual_map[rows] @ (women.heights - validating.mean)
    return float(np.mean(np.square(residuals) + validating.noise_variance[rows]))


def _by_choice(squares: Array, *, errors: Array, probabilities: Array) -> list[float]:
    """RMSEs of the candidate of least error, of one drawn, and of any with equal probability."""
    expected = (squares[errors.argmin()], probabilities @ squares, squares.mean())
    return [float(np.sqrt(one)) for one in expected]


def kung2018_report(found: Mapping[int, ByFolds], *, title: str) -> Table:
    """Lay out section 4 of the 2018 paper, by number of folds."""
    table = table_titled(title, "RMSE (cm)", right=(f"{count} folds" for count in found))
    first = next(iter(found.values()))
    every = list(found.values())
    rows = {"no privacy": [one.cloaked.no_privacy for one in every]}
    for name in first.cloaked.raw:
        rows[name] = [one.cloaked.raw[name] for one in every]
    for name in first.cloaked.posterior:
        rows[f"{name}:\n  posterior mean"] = [one.cloaked.posterior[name] for one in every]
    rows["bayes"] = [one.bayes for one in every]
    for name, errors in rows.items():
        table.add_row(name, *(f"{error.with_error}\npooled {error.pooled:.2f}" for error in errors))
    return table


def selection2018_report(errors: Array, *, title: str) -> Table:
    """Lay out the 2018 paper's choice for the !Kung women, what it published first.

    Parameters
    ----------
    errors : array of shape (ways, splits)
    """
    table = table_titled(title, "way of choosing", right=["RMSE (cm), se over splits"])
    for label, published in PUBLISHED.items():
        table.add_row(label, f"{published:.1f}", style="dim")
    for row, (label, one) in enumerate(zip(WAYS, errors, strict=True)):
        if row % 3 == 0:
            table.add_section()
        table.add_row(label, mean_of_draws(one))
    return table


@dataclass(frozen=True, eq=False)
class Found:
    """Errors by number of folds, and RMSEs on validation sets, shape (ways, splits), in cm."""

    by_folds: Mapping[int, ByFolds]
    choices: Array


@dataclass(frozen=True)
class Kung2018(Experiment[Found]):
    """Section 4 of the 2018 paper: heights of 287 !Kung women by age, and a private choice."""

    name: ClassVar[str] = "kung2018"
    small: ClassVar[Mapping[str, Any]] = {
        "draws": 2,
        "splits": 2,
        "folds": FOLDS[:1],
        "runs": 3,
        "candidates": CANDIDATES[::5],
    }

    draws: Releases = 40
    shuffle: Shuffle = False
    splits: Annotated[int, typer.Option(min=2, help="Validation sets for the private choice.")] = 10
    folds: Sequence[int] = FOLDS
    runs: Annotated[int, typer.Option(min=1, help="Of Monte-Carlo cross-validation.")] = RUNS
    candidates: Sequence[ExactPrior] = CANDIDATES

    def compute(self, progress: Progress) -> Found:
        """Cross-validate, and choose in every way."""
        women = load_kung(male=False)
        protocol = Protocol(draws=self.draws, shuffle=self.shuffle)
        with progress("folds", steps=2 * sum(self.folds)) as tick:
            by_folds = errors_by_folds(women, protocol=protocol, folds=self.folds, tick=tick)
        with progress("choice", steps=self.splits) as tick:
            choices = compare_choices(
                women, splits=self.splits, candidates=self.candidates, runs=self.runs, tick=tick
            )
        return Found(by_folds=by_folds, choices=choices)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out errors by number of folds, and the choices."""
        order = "shuffled" if self.shuffle else "in file order"
        title = (
            f"2018 paper, section 4 (published: 6.8 without privacy, 12.2 with), (1, 0.01)-DP, "
            f"folds {order}, {self.draws} draws a fold: mean over folds (se over draws), and "
            "pooled rows"
        )
        yield kung2018_report(found.by_folds, title=title)
        title = (
            f"2018 paper, a lengthscale and a noise chosen: a choice at ε = 1 and a release at (1, "
            f"0.01), or together (2, 0.01); {len(self.candidates)} candidates, {self.splits} "
            f"validation sets of a tenth; {self.runs} Monte-Carlo runs for the paper's choice"
        )
        yield selection2018_report(found.choices, title=title)
