"""An audit of every mechanism: how much ε is certainly lost, beside the ε that is claimed.

Releases of two neighbours are made many times, with privacy noise as users have it, and an attacker
who knows all but one person's outputs says which data set each is of (`experiments.auditing`). A
lower bound above the claim would refute it. One far below refutes nothing: the attacker may not be
the best, the neighbours not the worst, or the runs too few; of Gaussian noise μ tells more.

What the attacker makes of a release: of tables that are kept whole the ratio of likelihoods, from
the release alone; of other mechanisms, which ask the same every time, the published numbers along
the direction in which their means over the first quarter of the runs differ.

The same audit is put to mechanisms with a fault (`FAULTS`), which it must find. What is run:

- tables of twelve people, whose outputs are at the ends of the bounds; one person's go from the one
  end to the other, or a row is replaced where inputs are private;
- of a thousand rows, asked each on its own through the one door that all mechanisms use, coins
  choose the outputs, in one run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, ClassVar
from unittest import mock

import numpy as np
import typer
from joblib import Parallel, delayed
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    PrivacyParameterWarning,
    Release,
    extend,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)
from cloakgp.fitting.margins import choose_kept
from cloakgp.models import ExactPrior
from cloakgp.privacy import Guarantee, OutputBounds, ask
from cloakgp.privacy.cohorts import People
from cloakgp.privacy.noise import gaussian, laplace
from cloakgp.privacy.selection import select
from cloakgp.utils.arrays import Array
from experiments.auditing import (
    ThresholdTest,
    guess_coins,
    log_ratio,
    many_runs,
    most_asked,
    one_run,
)
from experiments.framework import Experiment, Progress, table_titled
from experiments.keeping import JsonFile

PEOPLE, BOUNDS = 12, (0.0, 10.0)
EPSILON, DELTA = 1.0, 0.01
LAPLACE: dict[str, Any] = {"epsilon": EPSILON, "delta": 0.0, "noise": "laplace"}
GAUSSIAN: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "noise": "gaussian"}
# Everything declared: the same questions in every run.
DECLARED: dict[str, Any] = {
    "kernel": 4.0 * RBF(1.0),
    "noise_variance": 1.0,
    "learn": None,
    "stages": None,
}
TWO_STAGES = [(0.4, None), (0.6, 1.0)]
# Enough for an interval to be looked for, and for margins.
INTERVAL_ROWS, MARGIN_ROWS, KEPT = 300, 150, 0.4
WIDE = (-1000.0, 1000.0)
FIRST_PERSON = [0, 0, *range(1, PEOPLE - 1)]
# How far the places of a second table lie from those of the first.
BESIDE = 0.01
ROWS, GUESSED = 1_000, 0.5
# With which a bound holds. An exact claim would be refuted by chance once in a thousand.
CONFIDENCE = 0.99
BATCH = 25


def people_of(seed: int, *, inputs: int = 1) -> tuple[Array, Array]:
    """Return public inputs, and outputs at the ends of the bounds."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0, 5, (PEOPLE, inputs)), rng.choice(BOUNDS, PEOPLE)


@contextmanager
def quiet_about_delta() -> Iterator[None]:
    """Say nothing of δ: of a few rows a large one says little, and lets few runs say much."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        yield


Made = tuple[Any, Guarantee]
"""What an attacker sees, and what is claimed of it."""


@dataclass(frozen=True, eq=False)
class Audited:
    """A mechanism, with two neighbours, and what an attacker makes of what it publishes.

    Attributes
    ----------
    one, other : objects
        Neighbours: what is private.
    run : callable
        Private → what is published, and its guarantee.
    score : callable or None
        Published → a number that is higher under the first neighbour. None: what is published is an
        array of one shape, and the difference of its means is looked at.
    fault : callable
        Returns a block within which the mechanism is at fault; for mechanisms that are to be found.
    """

    one: Any
    other: Any
    run: Callable[[Any], Made]
    score: Callable[[Any], float] | None = None
    fault: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext)


def of_rows(
    model: Any,
    *,
    moved: Sequence[int] = (),
    outputs: Sequence[Any] = BOUNDS,
    groups: Sequence[int] | None = None,
    again: Mapping[str, Any] | None = None,
    later: People | None = None,
    seed: int = 0,
    rows: int = PEOPLE,
    fault: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Audited:
    """Return a fit of rows that are held, of which some move from the first output to the last.

    Parameters
    ----------
    model : object
    moved : sequence of int
        Rows of one person; of none, the row that a first release asks about most.
    outputs : sequence
        The values that there are.
    groups : sequence of int or None
    again : mapping or None
        The budget at which the same table is asked a second time.
    later : str or None
        Whether a second table, at other places, is of the same people or of others; None: there is
        none.
    seed : int
        Of inputs, and of the outputs of all others.
    rows : int
    fault : callable
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, (rows, 1))
    one = [outputs[place] for place in rng.integers(0, len(outputs), rows)]
    if not moved:
        with quiet_about_delta():
            moved = (most_asked(model.fit(X, one).release_, X),)
    other = list(one)
    for row in moved:
        one[row], other[row] = outputs[0], outputs[-1]
    nobody = [outputs[0]] * rows

    def run(y: Sequence[Any]) -> Made:
        release = model.fit(X, y, **({} if groups is None else {"groups": groups})).release_
        if again is not None:
            release = refine(release, y, [[2.0]], **again)
        if later is not None:
            asked = nobody if later == "disjoint" else y
            release = extend(release, X + BESIDE, asked, people=later, **LAPLACE)
        return release, release.guarantee

    tables = np.vstack([X, X + BESIDE])
    outputs_of = [[*y, *(nobody if later == "disjoint" else y)] for y in (one, other)]
    score = partial(log_ratio, X=tables, one=outputs_of[0], other=outputs_of[1])
    return Audited(one, other, run, score=score, fault=fault)


def of_entries(model: Any) -> Audited:
    """Return a fit of two outputs of each person, both of which move."""
    X, first = people_of(0)
    one = np.column_stack([first, first[::-1]])
    other = one.copy()
    one[0], other[0] = BOUNDS[0], BOUNDS[1]

    def run(y: Array) -> Made:
        release = model.fit(X, y).release_
        return release.entries, release.guarantee

    # An entry of a person is a row with the output's number beside the inputs.
    entries = np.column_stack([np.repeat(X, 2, axis=0), np.tile([0.0, 1.0], len(X))])
    score = partial(log_ratio, X=entries, one=one.ravel(), other=other.ravel())
    return Audited(one, other, run, score=score)


def in_passes(**settings: Any) -> Audited:
    """Return a fit of rows that are read in passes."""
    X, one = people_of(0)
    other = one.copy()
    one[0], other[0] = BOUNDS
    model = DPGPRegressor(bounds=BOUNDS, inducing=[[1.0], [2.5], [4.0]], **DECLARED, **settings)

    def run(y: Array) -> tuple[Array, Guarantee]:
        release = model.fit_rows(ArrayRows(X, y, jobs=1)).release_
        return release.measurements[0].answers.values, release.guarantee

    return Audited(one, other, run)


def of_baseline(model: Any, published: Callable[[Any], Array]) -> Audited:
    """Return a baseline, of twelve people."""
    X, one = people_of(0)
    other = one.copy()
    one[0], other[0] = BOUNDS

    def run(y: Array) -> tuple[Array, Guarantee]:
        release = model.fit(X, y).release_
        return published(release), release.guarantee

    return Audited(one, other, run)


def answers_of(release: Release) -> Array:
    """Return the first answers of a release."""
    return release.measurements[0].answers.values


def of_whole_rows(*, neighbours: str) -> Audited:
    """Return sums of rows whose inputs are private, of which one is replaced or missing."""
    X, outputs = people_of(0)
    one = np.column_stack([X, outputs])
    if neighbours == "replace":
        other = np.vstack([[5.0, BOUNDS[1]], one[1:]])
        one[0] = 0.0, BOUNDS[0]
    else:
        one[0] = 2.5, BOUNDS[1]
        other = one[1:]
    model = DPGPRegressorPrivateInputs(
        4.0 * RBF(1.0), 1.0, input_bounds=[(0, 5)], neighbours=neighbours, n_features=4,
        bounds=BOUNDS, epsilon=EPSILON, delta=DELTA,
    )  # fmt: skip

    def run(people: Array) -> tuple[Array, Guarantee]:
        found = model.fit(people[:, :1], people[:, 1]).release_
        kept = found.statistics
        return np.concatenate([kept.gram.ravel(), kept.moments.ravel()]), found.guarantee

    return Audited(one, other, run)


def of_choices() -> Audited:
    """Return a private choice among kernels; outputs are at one end but one, which moves errors."""
    X, _ = people_of(0)
    candidates = [
        ExactPrior(kernel=kernel, noise_variance=0.5, mean=BOUNDS[0])
        for kernel in (4.0 * RBF(0.5), 4.0 * RBF(2.0), 0.1 * RBF(9.0))
    ]
    one = np.full(PEOPLE, BOUNDS[0])
    other = one.copy()
    other[0] = BOUNDS[1]

    def run(y: Array) -> tuple[Array, Guarantee]:
        chosen = select(
            candidates,
            X,
            y,
            bounds=BOUNDS,
            epsilon=EPSILON,
            folds=3,
            release_epsilon=1e4,
            release_delta=1e-4,
        )
        told = np.eye(len(candidates))[chosen.index]
        return told, Guarantee(epsilon=chosen.epsilon, delta=0.0, mu=0.0, pure=(chosen.epsilon,))

    return Audited(one, other, run)


# Faults, each within a block.


def less_noise(law: ModuleType, name: str, *, share: float) -> AbstractContextManager[Any]:
    """Draw noise of a share of its scale, by the function of that name."""
    draw = getattr(law, name)

    def less(integers: Any, *, scale: float, sensitivity: int) -> Any:
        return draw(integers, scale=share * scale, sensitivity=sensitivity)

    return mock.patch.object(law, name, less)


def no_bounds() -> AbstractContextManager[Any]:
    """Ask outputs as they are, however far outside of their bounds."""
    return mock.patch.object(OutputBounds, "clip", lambda _, outputs: outputs)


def unpaid(audited: Audited) -> Audited:
    """Return a mechanism that claims half of what it spends."""

    def run(private: Any) -> Made:
        seen, guarantee = audited.run(private)
        return seen, replace(guarantee, epsilon=guarantee.epsilon / 2, mu=guarantee.mu / 2)

    return replace(audited, run=run)


Builders = Mapping[str, Callable[[], Audited]]
"""Mechanisms by name: each is made when it is audited."""


def mechanisms() -> Builders:
    """Return all that are audited."""
    plain, defaults = {"bounds": BOUNDS, **DECLARED}, {"bounds": BOUNDS}
    stages = {**plain, "stages": TWO_STAGES}
    people: dict[str, Any] = {"moved": (0, 1), "groups": FIRST_PERSON}
    kept = choose_kept(MARGIN_ROWS, share=KEPT, random_state=0)
    margins = DPGPRegressor(**plain, inducing=5, calibrate=KEPT, **{**LAPLACE, "epsilon": 4.0})
    laplace_model = DPGPRegressor(**plain, **LAPLACE)
    gaussian_model = DPGPRegressor(**plain, **GAUSSIAN)
    whole = {"epsilon": EPSILON, "delta": DELTA}
    return {
        "one question, Laplace": partial(of_rows, laplace_model),
        "one question, Gaussian": partial(of_rows, gaussian_model),
        "bands, Laplace": partial(of_rows, DPGPRegressor(**stages, **LAPLACE)),
        "bands, Gaussian": partial(of_rows, DPGPRegressor(**stages, **GAUSSIAN)),
        "untouched defaults, Laplace": partial(of_rows, DPGPRegressor(**defaults, **LAPLACE)),
        "untouched defaults, Gaussian": partial(of_rows, DPGPRegressor(**defaults, **GAUSSIAN)),
        "an interval first": partial(
            of_rows, DPGPRegressor(bounds=WIDE, inducing=5, **LAPLACE), rows=INTERVAL_ROWS
        ),
        **{
            f"margins, {whose}": partial(
                of_rows, margins, moved=(int(np.flatnonzero(kept == out)[0]),), rows=MARGIN_ROWS
            )
            for whose, out in (("a row of the fit", False), ("a row kept out", True))
        },
        "people, Laplace": partial(of_rows, laplace_model, **people),
        "people, Gaussian": partial(of_rows, gaussian_model, **people),
        "two classes": partial(
            of_rows, DPGPClassifier(classes=["no", "yes"], **LAPLACE), outputs=["no", "yes"]
        ),
        "three classes": partial(
            of_rows, DPGPClassifier(classes=["a", "b", "c"], **GAUSSIAN), outputs=["a", "b", "c"]
        ),
        "counts": partial(of_rows, DPGPRegressor(likelihood="counts", **defaults, **LAPLACE)),
        "quantiles": partial(of_rows, DPGPQuantileRegressor(**defaults, **LAPLACE)),
        "several outputs": partial(
            of_entries, DPGPMultiOutputRegressor(bounds=[BOUNDS] * 2, **LAPLACE)
        ),
        "asked again": partial(of_rows, gaussian_model, again=GAUSSIAN),
        "a second table": partial(of_rows, laplace_model, later="overlapping"),
        "a second table, of others": partial(of_rows, laplace_model, later="disjoint"),
        "passes, Laplace": partial(in_passes, **LAPLACE),
        "passes, Gaussian": partial(in_passes, **GAUSSIAN),
        "a private choice": of_choices,
        "whole rows replaced": partial(of_whole_rows, neighbours="replace"),
        "whole rows added or removed": partial(of_whole_rows, neighbours="add-remove"),
        "noise on the mean": partial(
            of_baseline, DPMeanRegressor(bounds=BOUNDS, **whole), answers_of
        ),
        "noise on rows": partial(
            of_baseline,
            DPRowNoiseRegressor(4.0 * RBF(1.0), 1.0, learn=None, bounds=BOUNDS, **whole),
            answers_of,
        ),
        "histogram": partial(
            of_baseline,
            DPHistogramRegressor(bounds=BOUNDS, bins=2, **LAPLACE),
            lambda release: release.sums,
        ),
    }


def faulty_mechanisms() -> Builders:
    """Return mechanisms with faults that are to be found."""
    plain = {"bounds": BOUNDS, **DECLARED}
    laplace_model = DPGPRegressor(**plain, **LAPLACE)
    return {
        "half the noise, Laplace": partial(
            of_rows,
            laplace_model,
            fault=partial(less_noise, laplace, "add_discrete_laplace", share=0.5),
        ),
        "half the noise, Gaussian": partial(
            of_rows,
            DPGPRegressor(**plain, **GAUSSIAN),
            fault=partial(less_noise, gaussian, "add_discrete_gaussian", share=0.5),
        ),
        "outputs that are not clipped": partial(
            of_rows, laplace_model, outputs=(BOUNDS[0], 3 * BOUNDS[1]), fault=no_bounds
        ),
        "people protected row by row": partial(of_rows, laplace_model, moved=(0, 1, 2)),
        "a second table that is not paid": lambda: unpaid(
            of_rows(laplace_model, later="overlapping")
        ),
    }


# Of one mechanism: what is claimed, and what is certainly lost.
Figures = dict[str, float]


def measure(made: Callable[[], Audited], *, runs: int, confidence: float) -> Figures:
    """Return the claim of a mechanism, and lower bounds.

    Parameters
    ----------
    made : callable
        Makes the mechanism.
    runs : int
        Of each data set.
    confidence : float
    """
    audited = made()
    tasks = [
        delayed(_run)(audited, first=first, times=min(BATCH, runs - start))
        for first in (True, False)
        for start in range(0, runs, BATCH)
    ]
    batches = Parallel()(tasks)
    half = len(batches) // 2
    seen = [
        np.concatenate([found for found, _ in part]) for part in (batches[:half], batches[half:])
    ]
    if audited.score is None:
        kept = [values[: runs // 4] for values in seen]
        spread = np.concatenate(kept).std(axis=0)
        direction = (kept[0].mean(axis=0) - kept[1].mean(axis=0)) / np.where(
            spread > 0, spread, 1
        ) ** 2
        seen = [values @ direction for values in seen]
    claim = max((guarantee for _, guarantee in batches), key=lambda one: one.epsilon)
    figures = {"epsilon": claim.epsilon, "delta": claim.delta}
    if claim.mu and not (claim.laplace or claim.pure):
        found = many_runs(*seen, value=partial(ThresholdTest.mu, confidence=confidence))
        return {**figures, "mu": claim.mu, "mu found": found}
    of_epsilon = partial(ThresholdTest.epsilon, delta=claim.delta, confidence=confidence)
    return {**figures, "epsilon found": many_runs(*seen, value=of_epsilon)}


def _run(audited: Audited, *, first: bool, times: int) -> tuple[Array, Guarantee]:
    """Return what an attacker makes of some runs, and what the last one claims."""
    private, seen = audited.one if first else audited.other, []
    with audited.fault(), quiet_about_delta():
        for _ in range(times):
            published, guarantee = audited.run(private)
            seen.append(np.ravel(published) if audited.score is None else audited.score(published))
    return np.array(seen), guarantee


def measure_coins(law: Mapping[str, Any], *, rows: int, confidence: float) -> Figures:
    """Return the claim of one run about coins, and a lower bound of ε.

    Parameters
    ----------
    law : mapping
        Budget and noise.
    rows : int
    confidence : float
    """
    high = np.random.default_rng().random(rows) < 0.5
    answers = ask(
        np.eye(rows), np.where(high, *BOUNDS[::-1]), question=OutputBounds(*BOUNDS), **law
    )
    guesses = int(GUESSED * rows)
    chosen, guessed = guess_coins(answers.values[:, 0], guesses=guesses)
    correct = int(np.sum(guessed == high[chosen]))
    claim = answers.guarantee
    found = one_run(correct, guesses, rows, delta=claim.delta, confidence=confidence)
    return {
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "epsilon found": found,
        "guesses": guesses,
        "correct": correct,
    }


@dataclass(frozen=True)
class Results:
    """Figures by mechanism: sound, at fault, and in one run."""

    sound: Mapping[str, Figures]
    faulty: Mapping[str, Figures]
    coins: Mapping[str, Figures]


@dataclass(frozen=True)
class AuditOfMechanisms(Experiment[Results]):
    """Audit every mechanism: what ε is certainly lost, beside what is claimed."""

    name: ClassVar[str] = "audit"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "runs": 200,
            "rows": 200,
            "names": ("one question, Laplace", "half the noise, Gaussian"),
        }
    )

    runs: Annotated[int, typer.Option(min=20, help="Releases of each of two neighbours.")] = 1_000
    rows: Annotated[int, typer.Option(min=20, help="Coins in one run.")] = ROWS
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="With which a bound holds.")
    ] = CONFIDENCE
    names: Annotated[list[str] | None, typer.Option("--mechanism", help="As printed.")] = None
    kept: Annotated[
        Path | None,
        typer.Option(help="File where figures are kept, and taken from: goes on where it was."),
    ] = None

    def compute(self, progress: Progress) -> Results:
        """Audit mechanisms, with and without faults, and coins."""
        sound, faulty = (
            {name: made for name, made in kind.items() if self.names is None or name in self.names}
            for kind in (mechanisms(), faulty_mechanisms())
        )
        kept, asked = JsonFile(self.kept), f"{self.runs} runs, {self.confidence:g}"
        found: dict[str, Figures] = {}
        with progress("audit", steps=len(sound) + len(faulty)) as tick:
            for name, made in {**sound, **faulty}.items():
                found[name] = kept.get(
                    f"{name}, {asked}",
                    partial(measure, made, runs=self.runs, confidence=self.confidence),
                )
                tick()
        coins = {
            name: kept.get(
                f"{self.rows} coins, {name}, {self.confidence:g}",
                partial(measure_coins, law, rows=self.rows, confidence=self.confidence),
            )
            for name, law in (("Laplace", LAPLACE), ("Gaussian", GAUSSIAN))
        }
        return Results(
            {name: found[name] for name in sound},
            {name: found[name] for name in faulty},
            coins,
        )

    def tables(self, found: Results) -> Iterable[Table | str]:
        """Lay out bounds beside claims."""
        yield (
            f"{self.runs:,} releases of each of two neighbours; bounds hold with a confidence of "
            f"{self.confidence:.1%} each: of μ where all noise is Gaussian, of ε elsewhere."
        )
        yield laid_out("Claims, and what is certainly lost", found.sound, sound="yes", beyond="NO")
        yield laid_out("With a fault", found.faulty, sound="not found", beyond="found")
        yield coins_laid_out(f"Coins of {self.rows:,} rows, in one run", found.coins)


def is_refuted(figures: Figures) -> bool:
    """Return whether a lower bound is above what is claimed."""
    if "mu" in figures:
        return figures["mu found"] > figures["mu"]
    return figures["epsilon found"] > figures["epsilon"]


def laid_out(title: str, found: Mapping[str, Figures], *, sound: str, beyond: str) -> Table:
    """Lay out the figures of mechanisms.

    Parameters
    ----------
    title : str
    found : mapping
    sound, beyond : str
        What is said where a claim is not refuted, and where it is.
    """
    columns = ("ε claimed", "δ", "at least", "μ claimed", "at least", "within the claim")
    table = table_titled(title, "mechanism", right=columns)
    for name, one in found.items():
        bounds = [
            f"{one[figure]:.3f}" if figure in one else ""
            for figure in ("epsilon found", "mu", "mu found")
        ]
        told = beyond if is_refuted(one) else sound
        table.add_row(name, f"{one['epsilon']:.3f}", f"{one['delta']:g}", *bounds, told)
    return table


def coins_laid_out(title: str, found: Mapping[str, Figures]) -> Table:
    """Lay out the figures of one run."""
    columns = ("ε claimed", "δ", "guesses", "correct", "ε at least")
    table = table_titled(title, "noise", right=columns)
    for name, one in found.items():
        counts = (f"{one['guesses']:,}", f"{one['correct']:,}")
        bounds = (f"{one['epsilon']:.3f}", f"{one['delta']:g}")
        table.add_row(name, *bounds, *counts, f"{one['epsilon found']:.3f}")
    return table
