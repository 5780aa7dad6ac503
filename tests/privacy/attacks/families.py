"""The table of attacks: every mechanism, with the neighbours that it is run on.

A mechanism that is new joins with one line in `ATTACKS`. Data sets are small and at the ends of
their bounds, where distances are largest: of every row, and of every sign pattern of a group.
"""

from __future__ import annotations

import itertools
import math
import pickle
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import dask.dataframe
import numpy as np
import pandas as pd
from attacks.checker import Attack, Outcome
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from typer.testing import CliRunner

from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    Release,
    Stream,
    cloak,
    extend,
    refine,
)
from cloakgp.cli import app
from cloakgp.columns import Category, Date, Schema
from cloakgp.custodians import Plan, simulate
from cloakgp.data import ArrayRows, DaskRows, FileRows
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)
from cloakgp.ledger import Ledger
from cloakgp.models import ExactPrior
from cloakgp.models.features import BinBasis, InputBox
from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.ask import StrategyBound, ask_chunks
from cloakgp.privacy.noise import NOISES, Noise
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.selection import select
from cloakgp.privacy.statistics import measure_statistics
from cloakgp.utils.names import NoiseName

BOUNDS = (-3.3, 7.1)
BUDGET = {"bounds": BOUNDS, "epsilon": 1.3, "delta": 1e-4}
LABELS = {"epsilon": 1.3, "delta": 1e-4}
KERNEL = 4.0 * Matern(1.0, nu=1.5)
SMALL = {
    "kernel": KERNEL,
    "noise_variance": 1.0,
    "learn": None,
    "stages": None,
    "noise": "gaussian",
}
HELPED = {"learn": "map", "stages": [(0.4, None), (0.6, 1.0)]}
NO_BANDS = [(0.4, None), (0.6, None)]
TWO_STAGES = [(0.4, None), (0.6, 1.0)]
FOUR_STAGES = [(0.15, None), (0.2, 2.0), (0.25, 1.5), (0.4, 1.0)]

OUTSIDE = (BOUNDS[0] - 1e6, BOUNDS[1] + 1e300)
# Beside them: values inside the bounds, just inside, and not in the middle of a double.
INSIDE = (0.0, np.nextafter(BOUNDS[1], 0.0), 1 / 3)


@dataclass(frozen=True, eq=False)
class Table:
    """Public inputs, and outputs at the ends of their bounds.

    Attributes
    ----------
    line : array of shape (N, 1)
        The second row is where the first is.
    plane : array of shape (N, 2)
    outputs : array of shape (N,)
    """

    line: np.ndarray
    plane: np.ndarray
    outputs: np.ndarray

    @classmethod
    def of(cls, seed: int, *, rows: int = 7) -> Table:
        """Draw a table."""
        rng = np.random.default_rng(seed)
        line, plane = rng.uniform(0, 5, size=(rows, 1)), rng.uniform(0, 5, size=(rows, 2))
        line[1] = line[0]
        return cls(line, plane, np.where(rng.uniform(size=rows) < 0.5, *BOUNDS))

    def cycled(self, values: Sequence[Any]) -> list[Any]:
        """Return a value for every row, in turn."""
        return [values[row % len(values)] for row in range(len(self.line))]


@dataclass(frozen=True)
class OfChoice:
    """What ε-DP alone promises, of a private choice: the profile of randomised response."""

    epsilon: float
    delta: float = 0.0
    mu: float = 0.0

    def delta_at(self, epsilon: float) -> float:
        """Return (e^ε₀ − e^ε)/(1 + e^ε₀), what telling the truth so often attains."""
        spent = self.epsilon
        return max(0.0, -math.expm1(epsilon - spent) / (1 + math.exp(-spent)) * (1 + 2.0**-40))


# Neighbours.


def other_end(value: float, bounds: tuple[float, float] = BOUNDS) -> float:
    return bounds[1] if value == bounds[0] else bounds[0]


def one_output_moves(table: Table) -> list[list[np.ndarray]]:
    """Every row's output goes to the other end; of two of them also elsewhere, and outside."""
    return ends_of_each(table.outputs)


def ends_of_each(y: np.ndarray) -> list[list[np.ndarray]]:
    found = []
    for row, value in enumerate(y):
        values = [other_end(value)]
        if row in (0, len(y) - 1):
            values += [*OUTSIDE, *(INSIDE if row == 0 else ())]
        found.append([y, *(_with(y, row, one) for one in values)])
    return found


def one_group_moves(
    groups: Sequence[Any], y: np.ndarray, bounds: Sequence[tuple[float, float]]
) -> list[list[np.ndarray]]:
    """All outputs of each group go from every corner of their bounds to every other."""
    found = []
    for group in dict.fromkeys(groups):
        rows = [row for row, one in enumerate(groups) if one == group]
        corners = []
        for corner in itertools.product((0, 1), repeat=len(rows)):
            moved = y.copy()
            moved[rows] = [bounds[row][end] for row, end in zip(rows, corner, strict=True)]
            # What is run for one group need not be run for all.
            corners.append(y if np.array_equal(moved, y) else moved)
        found.append(corners)
    return found


def one_label_moves(labels: Sequence[Any], classes: Sequence[Any]) -> list[list[list[Any]]]:
    """Every row takes every class."""
    base = list(labels)
    return [
        [base, *(_with(base, row, one) for one in classes if one != label)]
        for row, label in enumerate(base)
    ]


def _with(values: Any, row: int, value: Any) -> Any:
    changed = values.copy()
    changed[row] = value
    return changed


# What is published.


def of_release(release: Any, *more: Any) -> Outcome:
    """Return a release's guarantee, and others, and its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release"
        release.save(path)
        return Outcome(guarantees=(release.guarantee, *more), public=path.read_bytes())


def of_model(model: Any) -> Outcome:
    """Return the same of a fitted estimator, with all that it keeps."""
    found = of_release(model.release_, model.guarantee_)
    return replace(found, public=found.public + pickle.dumps(model))


# Mechanisms.


def regression(name: str, *, inputs: str = "line", **settings: Any) -> Attack:
    def run(y: np.ndarray, table: Table) -> Outcome:
        model = DPGPRegressor(**{**BUDGET, **SMALL, **settings})
        return of_model(model.fit(getattr(table, inputs), y))

    # A part of the budget is kept back, so that rounding in stages cannot add up beyond it.
    tight = 1e-5 if settings.get("stages") else 1e-6
    return Attack(name, one_output_moves, run, tight=tight)


def asks_spread(name: str, **settings: Any) -> Attack:
    """All outputs at one end, where they are predicted: then one can move all stages by most."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        return ends_of_each(np.full(len(table.line), BOUNDS[0]))

    def run(y: np.ndarray, table: Table) -> Outcome:
        model = DPGPRegressor(KERNEL, learn="map", **{**BUDGET, "epsilon": 100.0, **settings})
        return of_model(model.fit(table.line, y))

    # The last of these stages may find nothing left to ask, and counts as spent all the same.
    return Attack(name, neighbourhoods, run, tight=None)


def keeps_out(name: str, **settings: Any) -> Attack:
    """Some rows are kept out, of fewer rows than elsewhere, and asked one question."""
    whole = regression(name, calibrate=0.3, **settings)

    def run(y: np.ndarray, table: Table) -> Outcome:
        with mock.patch("cloakgp.fitting.fit.check_kept"):
            return whole.run(y, table)

    return replace(whole, run=run, tight=1e-4)


def asks_scatter(name: str, **settings: Any) -> Attack:
    """The same by strata, of fewer rows than are asked so elsewhere."""
    whole = asks_spread(name, **settings)

    def run(y: np.ndarray, table: Table) -> Outcome:
        with mock.patch.multiple("cloakgp.fitting.scatter", LEAST_ROWS=1, UNSURE=9.0):
            return whole.run(y, table)

    return replace(whole, run=run)


def transformed(name: str, *, groups: str = "", **settings: Any) -> Attack:
    """Outputs whose logarithm is asked: the same tables, as logarithms, and asked twice."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table) -> Outcome:
        amounts = np.exp(np.clip(y, -300.0, 300.0))
        limits = (float(np.exp(BOUNDS[0])), float(np.exp(BOUNDS[1])))
        whose = table.cycled(groups) if groups else None
        model = DPGPRegressor(**{**BUDGET, **SMALL, "output_transform": "log", **settings})
        model.set_params(bounds=limits).fit(table.line, amounts, groups=whose)
        return of_release(refine(model.release_, amounts, [[2.0]], epsilon=0.5, delta=1e-5))

    return Attack(name, neighbourhoods, run, tight=0.01)


def of_counts(
    name: str, *, groups: str = "", spread: float | None = None, **settings: Any
) -> Attack:
    """Outputs are counts, asked as roots, in bands and for their spread, and asked twice.

    Counts at the ends of their bounds move roots most, whole and in bands. How far roots lie from
    what is predicted moves most between a count whose root is there and one far off. So no two
    counts are the worst for every draw: two at the ends may spend all but what the spread costs, a
    share ``spread`` of what is stated. One output takes every other count, too, among which are
    the worst for the spread, and each draw is held against its own worst neighbours.
    """

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            found = one_output_moves(table)
            if spread is not None:
                width = BOUNDS[1] - BOUNDS[0]
                found[0] += [
                    _with(table.outputs, 0, BOUNDS[0] + count / 30 * width)
                    for count in range(2, 30, 2)
                ]
            return found
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table) -> Outcome:
        # The ends of the bounds above become those of counts; what is outside stays outside.
        counts = (y - BOUNDS[0]) * (30 / (BOUNDS[1] - BOUNDS[0]))
        whose = table.cycled(groups) if groups else None
        model = DPGPRegressor(
            **{**BUDGET, "gap": 0.1, "bounds": (0, 30), "likelihood": "counts", **settings}
        )
        exposure = np.linspace(0.5, 2.0, len(table.line))
        model.fit(table.line, counts, groups=whose, exposure=exposure)
        budget = {"epsilon": 0.5, "delta": model.delta, "gap": 0.1}
        return of_release(refine(model.release_, counts, [[2.0]], **budget))

    if spread is None:
        return Attack(name, neighbourhoods, run, tight=0.01)
    return Attack(name, neighbourhoods, run, tight=spread + 1e-3, each=0.1)


def of_quantiles(name: str, *, groups: str = "", **settings: Any) -> Attack:
    """Outputs are compared with thresholds that follow answers, and asked twice."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table) -> Outcome:
        whose = table.cycled(groups) if groups else None
        model = DPGPQuantileRegressor(**{**BUDGET, "gap": 0.1, **settings})
        model.fit(table.line, y, groups=whose)
        budget = {"epsilon": 0.5, "delta": model.delta, "gap": 0.1}
        return of_release(refine(model.release_, y, [[2.0]], **budget))

    return Attack(name, neighbourhoods, run, tight=0.01)


def gathered(name: str, *, counts: bool = False, groups: str = "", **settings: Any) -> Attack:
    """Outputs of rows in passes are asked by cells of two rows each: quantiles, or counts."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table) -> Outcome:
        places = table.plane[np.arange(len(y)) // 2]
        chosen = {"gap": 0.1, "inducing": table.plane[:3], "learn": None, **settings}
        whose = {"groups": table.cycled(groups) if groups else None, "chunk_rows": 3, "jobs": 1}
        if not counts:
            quantiles = DPGPQuantileRegressor(**{**BUDGET, **chosen})
            return of_model(quantiles.fit_rows(ArrayRows(places, y, **whose)))
        exposures = table.cycled(np.repeat([0.5, 1.0, 2.0, 2.0], 2))
        columns = np.column_stack([places, exposures])
        moved = (y - BOUNDS[0]) * (30 / (BOUNDS[1] - BOUNDS[0]))
        model = DPGPRegressor(**{**BUDGET, "bounds": (0, 30), "likelihood": "counts", **chosen})
        return of_model(model.fit_rows(ArrayRows(columns, moved, **whose), exposure=2))

    # A person's rows may be in several cells, whose columns point in other directions.
    return Attack(name, neighbourhoods, run, tight=None if groups else 0.01)


def grouped(name: str, *, groups: str, **settings: Any) -> Attack:
    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        whose = table.cycled(groups)
        return one_group_moves(whose, table.outputs, [BOUNDS] * len(whose))

    def run(y: np.ndarray, table: Table) -> Outcome:
        model = DPGPRegressor(**{**BUDGET, **SMALL, **settings})
        return of_model(model.fit(table.line, y, groups=table.cycled(groups)))

    # One group need not be moved most in every stage, nor its columns point the same way.
    tight = None if settings.get("noise") == "laplace" else 0.01 if settings.get("stages") else 1e-6
    return Attack(name, neighbourhoods, run, tight=tight)


def cloaked(name: str, **settings: Any) -> Attack:
    def run(y: np.ndarray, table: Table) -> Outcome:
        C = np.vstack([table.plane.T - 2.5, np.full((1, len(y)), 1 / 7)])
        found = cloak(C, y, **{**BUDGET, **settings})
        return Outcome((found.guarantee,), found.values.tobytes() + found.noise_cov.tobytes())

    return Attack(name, one_output_moves, run)


def baseline(name: str, make: Callable[..., Any], **settings: Any) -> Attack:
    def run(y: np.ndarray, table: Table) -> Outcome:
        return of_model(make(**{**BUDGET, **settings}).fit(table.plane, y))

    return Attack(name, one_output_moves, run)


def visits(
    name: str, *, groups: str = "", mixed: Any = MappingProxyType({}), **settings: Any
) -> Attack:
    """Fit, ask again, ask the same people about new rows, and combine with another fit."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table) -> Outcome:
        whose = table.cycled(groups) if groups else None
        model = DPGPRegressor(**{**BUDGET, **SMALL, **settings})
        release = model.fit(table.line, y, groups=whose).release_
        release = refine(release, y, [[2.0]], epsilon=0.5, delta=1e-5)
        release = extend(
            release,
            table.line[:5] + 0.1,
            y[:5],
            epsilon=0.7,
            delta=1e-4,
            groups=None if whose is None else whose[:5],
        )
        # The same noise may have been asked for: what is added up need not be of one law.
        again = DPGPRegressor(**{**BUDGET, **SMALL, **mixed, "criterion": "trace"})
        return of_release(release.combine(again.fit(table.line, y, groups=whose).release_))

    # Nobody need be moved most by all of them.
    return Attack(name, neighbourhoods, run, tight=0.01)


def stream(
    name: str, *, people: str, groups: str = "", tight: float | None = 1e-6, **settings: Any
) -> Attack:
    """Ask two periods of a stream, of other people or of those who come again.

    Of people who come again each has one row in a period, and is there in one or both.
    """
    account = "period {period}" if people == "disjoint" else "people"

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if people == "disjoint":
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.line))

    def run(y: np.ndarray, table: Table, ledger: Ledger | None = None) -> Outcome:
        days = table.cycled([0.0, 2.0, 5.0, 9.0, 10.0, 14.0, 19.0, 12.0, 16.0])
        rows = pd.DataFrame({"day": days, "place": table.line[:, 0], "private": y})
        after = pd.DataFrame({"day": [21.0], "place": [0.0], "private": [BOUNDS[0]]})
        with tempfile.TemporaryDirectory() as folder:
            made = Stream(
                DPGPRegressor(**{**BUDGET, **SMALL, **settings}),
                [rows.iloc[:2], rows.iloc[2:], after],
                folder=folder,
                output="private",
                inputs=["place"],
                time="day",
                origin=0,
                length=10,
                horizon=2,
                people=people,
                forgetting=30.0,
                ledger=ledger,
                account=account if ledger else "",
            )
            made.advance()
            found = of_release(made.release)
            told = f"{made.periods} {made.spent}".encode()
            return replace(found, public=found.public + told)

    return Attack(name, neighbourhoods, run, tight=tight, counted=run)


def classification(name: str, *, classes: Sequence[Any], **settings: Any) -> Attack:
    def neighbourhoods(table: Table) -> list[list[list[Any]]]:
        return one_label_moves(table.cycled(classes), classes)

    def run(y: Sequence[Any], table: Table) -> Outcome:
        model = DPGPClassifier(
            **{
                **LABELS,
                "kernel": KERNEL,
                "learn": None,
                "noise": "gaussian",
                "classes": list(classes),
                **settings,
            }
        )
        return of_model(model.fit(table.line, y))

    several = settings.get("steps", 1) > 1
    return Attack(name, neighbourhoods, run, tight=1e-2 if several else 1e-6)


def grouped_classes(name: str, *, classes: Sequence[Any], groups: str, **settings: Any) -> Attack:
    """All labels of each person go from every combination of classes to every other."""

    def neighbourhoods(table: Table) -> list[list[list[Any]]]:
        whose, base = table.cycled(groups), list(table.cycled(classes))
        found = []
        for group in dict.fromkeys(whose):
            rows = [row for row, one in enumerate(whose) if one == group]
            tried = []
            for taken in itertools.product(classes, repeat=len(rows)):
                moved = base.copy()
                for row, label in zip(rows, taken, strict=True):
                    moved[row] = label
                tried.append(moved)
            found.append(tried)
        return found

    def run(y: Sequence[Any], table: Table) -> Outcome:
        model = DPGPClassifier(
            **{
                **LABELS,
                "kernel": KERNEL,
                "learn": None,
                "noise": "gaussian",
                "classes": list(classes),
                **settings,
            }
        )
        return of_model(model.fit(table.line, y, groups=table.cycled(groups)))

    # Of two classes and Gaussian noise somebody is moved as far as is covered; else by bounds.
    exact = len(classes) == 2 and settings.get("noise") != "laplace"
    return Attack(name, neighbourhoods, run, tight=1e-6 if exact else None)


def combined_classes(name: str, *, classes: Sequence[Any]) -> Attack:
    def neighbourhoods(table: Table) -> list[list[list[Any]]]:
        return one_label_moves(table.cycled(classes), classes)

    def run(y: Sequence[Any], table: Table) -> Outcome:
        settings = {**LABELS, "classes": list(classes), "learn": None}
        first, second = (
            DPGPClassifier(KERNEL, criterion=criterion, **settings).fit(table.line, y).release_
            for criterion in ("bayes", "trace")
        )
        return of_release(first.combine(second))

    return Attack(name, neighbourhoods, run, tight=0.01)


def several_outputs(name: str, *, groups: str = "abcd", **settings: Any) -> Attack:
    bounds = [BOUNDS, (100.0, 1e4)]
    people, whose = len(groups), list(groups)

    def neighbourhoods(_: Table) -> list[list[np.ndarray]]:
        entries = [one for one in whose for _ in bounds]
        limits = bounds * people
        flat = np.array([limit[at % 3 % 2] for at, limit in enumerate(limits)])
        return one_group_moves(entries, flat, limits)

    def run(entries: np.ndarray, table: Table) -> Outcome:
        model = DPGPMultiOutputRegressor(
            **{
                **BUDGET,
                "bounds": bounds,
                "learn": None,
                "kernel": KERNEL,
                "stages": None,
                **settings,
            }
        )
        return of_model(model.fit(table.line[:people], entries.reshape(people, 2), groups=whose))

    # One person need not be moved most in every stage.
    return Attack(name, neighbourhoods, run, tight=None if settings.get("stages") else 1e-6)


def streamed(
    name: str,
    make_rows: Callable[[pd.DataFrame, Path], Any],
    *,
    tight: float | None = 1e-6,
    **settings: Any,
) -> Attack:
    def run(y: np.ndarray, table: Table) -> Outcome:
        frame = pd.DataFrame({"a": table.plane[:, 0], "b": table.plane[:, 1], "y": y})
        model = DPGPRegressor(**{**BUDGET, **SMALL, "inducing": table.plane[:3], **settings})
        with tempfile.TemporaryDirectory() as folder:
            return of_model(model.fit_rows(make_rows(frame, Path(folder))))

    return Attack(name, one_output_moves, run, tight=tight)


def streamed_groups(name: str, *, groups: str, file: bool = False, **settings: Any) -> Attack:
    """Fit groups of rows in passes, and add the same people's rows of another table."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        whose = table.cycled(groups)
        return one_group_moves(whose, table.outputs, [BOUNDS] * len(whose))

    def run(y: np.ndarray, table: Table) -> Outcome:
        whose = table.cycled(groups)
        model = DPGPRegressor(**{**BUDGET, **SMALL, "inducing": table.plane[:3], **settings})
        if not file:
            rows = ArrayRows(table.plane, y, groups=whose, chunk_rows=3, jobs=1)
            new = ArrayRows(table.plane[:5], y[:5], groups=whose[:5], chunk_rows=2, jobs=1)
            release = model.fit_rows(rows).release_
            return of_release(extend(release, new, epsilon=0.7, delta=1e-4))
        frame = pd.DataFrame({"a": table.plane[:, 0], "b": table.plane[:, 1]})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "people.parquet"
            frame.assign(y=y, who=whose).to_parquet(path, index=False)
            rows = FileRows(path, inputs=["a", "b"], output="y", groups="who", chunk_rows=2)
            return of_model(model.fit_rows(rows))

    # Columns of one person need not point the same way.
    return Attack(name, neighbourhoods, run, tight=None)


def streamed_visits(name: str, **settings: Any) -> Attack:
    """Fit, ask again, and ask the same people about new rows, all in passes."""

    def run(y: np.ndarray, table: Table) -> Outcome:
        rows = ArrayRows(table.plane, y, chunk_rows=3, jobs=1)
        new = ArrayRows(table.plane[:5] + 0.1, y[:5], chunk_rows=3, jobs=1)
        model = DPGPRegressor(**{**BUDGET, **SMALL, "inducing": table.plane[:3], **settings})
        release = model.fit_rows(rows).release_
        release = refine(release, rows, [[2.0, 1.0]], epsilon=0.5, delta=1e-5)
        return of_release(extend(release, new, epsilon=0.7, delta=1e-4))

    # Nobody need be moved most by all of them.
    return Attack(name, one_output_moves, run, tight=0.01)


def of_custodians(name: str, *, groups: str = "", **settings: Any) -> Attack:
    """Release the rows of three custodians, of whom one may collude with the coordinator.

    With groups, a person may have rows at all of them.
    """

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        if not groups:
            return one_output_moves(table)
        return one_group_moves(table.cycled(groups), table.outputs, [BOUNDS] * len(table.plane))

    def run(y: np.ndarray, table: Table) -> Outcome:
        model = DPGPRegressor(**{**BUDGET, **SMALL, "inducing": 3, "interval": False, **settings})
        sites = ("a", "b", "c")
        persons = {"person_name": "who", "rows_of_person": len(table.plane)} if groups else {}
        plan = Plan.of(model, sites=sites, input_names=["a", "b"], colluding=1, **persons)
        tables = {}
        for part, site in enumerate(sites):
            whose = table.cycled(groups)[part::3] if groups else None
            tables[site] = ArrayRows(
                table.plane[part::3], y[part::3], groups=whose, chunk_rows=2, jobs=1
            )
        return of_release(simulate(plan, tables))

    # Columns of one person need not point the same way.
    return Attack(name, neighbourhoods, run, tight=None if groups else 0.01)


def wavy_columns(X: np.ndarray) -> np.ndarray:
    """Ask three questions that nobody designed, about rows on a plane."""
    return np.vstack([np.sin(X[:, 0]), 1e-5 * X[:, 1], np.cos(X[:, 0] + X[:, 1])])


def streamed_questions(name: str, make_rows: Callable[[pd.DataFrame, Path], Any]) -> Attack:
    """Ask them of outputs, with Laplace noise."""

    def run(y: np.ndarray, table: Table) -> Outcome:
        frame = pd.DataFrame({"a": table.plane[:, 0], "b": table.plane[:, 1], "y": y})
        with tempfile.TemporaryDirectory() as folder:
            answers = ask_chunks(
                make_rows(frame, Path(folder)),
                wavy_columns,
                bound=bound_of_waves(table.plane, noise=NOISES["laplace"]),
                question=OutputBounds(*BOUNDS),
                epsilon=1.3,
                delta=0.0,
            )
        return Outcome((answers.guarantee,), pickle.dumps(answers))

    return Attack(name, one_output_moves, run)


def bound_of_waves(X: np.ndarray, *, noise: Noise) -> StrategyBound:
    columns = wavy_columns(X)
    return StrategyBound(
        answers=len(columns),
        longest=float(noise.lengths(columns).max()),
        chunk_rows=3,
        count=len(X),
        noise=noise,
    )


def streamed_classes(
    name: str,
    make_rows: Callable[[pd.DataFrame, Path], Any],
    *,
    classes: Sequence[Any],
    noise: NoiseName = "gaussian",
) -> Attack:
    def neighbourhoods(table: Table) -> list[list[list[Any]]]:
        return one_label_moves(table.cycled(classes), classes)

    def run(y: Sequence[Any], table: Table) -> Outcome:
        bound = bound_of_waves(table.plane, noise=NOISES[noise])
        frame = pd.DataFrame({"a": table.plane[:, 0], "b": table.plane[:, 1], "y": y})
        with tempfile.TemporaryDirectory() as folder:
            answers = ask_chunks(
                make_rows(frame, Path(folder)),
                wavy_columns,
                bound=bound,
                question=Classes(tuple(classes)),
                **LABELS,
            )
        return Outcome((answers.guarantee,), pickle.dumps(answers))

    return Attack(name, neighbourhoods, run)


def released_classes(name: str, *, classes: Sequence[Any], **settings: Any) -> Attack:
    def neighbourhoods(table: Table) -> list[list[list[Any]]]:
        return one_label_moves(table.cycled(classes), classes)

    def run(y: Sequence[Any], table: Table) -> Outcome:
        model = DPGPClassifier(
            KERNEL,
            classes=classes,
            inducing=table.plane[:3],
            noise="gaussian",
            **{**LABELS, "learn": None, **settings},
        )
        found = model.fit_rows(ArrayRows(table.plane, y, chunk_rows=3, jobs=2)).release_
        return Outcome((found.measurements[0].answers.guarantee,), pickle.dumps(found))

    return Attack(name, neighbourhoods, run)


def arrays(frame: pd.DataFrame, _: Path) -> ArrayRows:
    return ArrayRows(frame[["a", "b"]], frame["y"], chunk_rows=3, jobs=2)


def csv(frame: pd.DataFrame, folder: Path) -> FileRows:
    frame.to_csv(folder / "rows.csv", index=False)
    return FileRows(folder / "rows.csv", inputs=["a", "b"], output="y", chunk_rows=3)


def parquet(frame: pd.DataFrame, folder: Path) -> FileRows:
    frame.to_parquet(folder / "rows.parquet", index=False, row_group_size=2)
    return FileRows(folder / "rows.parquet", inputs=["a", "b"], output="y", chunk_rows=3)


def dask_rows(frame: pd.DataFrame, _: Path) -> DaskRows:
    """Cut rows into partitions; the current client is taken."""
    ddf = dask.dataframe.from_pandas(frame, npartitions=3)
    return DaskRows.from_dataframe(ddf, inputs=["a", "b"], output="y", chunk_rows=2)


def private_inputs(
    name: str, *, neighbours: str, bins: bool = False, rounds: bool = False
) -> Attack:
    """A whole row changes, or comes, or goes."""
    basis = BinBasis(kernel=KERNEL, box=InputBox((0.0,), (5.0,)), bins=(3,))

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        people = np.column_stack([table.line, table.outputs])
        rows = [
            np.array([x, y])
            for x, y in itertools.product((0.0, 0.3, 2.5, 5.0, -1e9), (*BOUNDS, 0.0, 1e300))
        ]
        if neighbours == "replace":
            return [[people, *(np.vstack([people[1:], row]) for row in rows)]]
        more = [[people, np.vstack([people, row])] for row in rows]
        return more + [[people, np.delete(people, row, axis=0)] for row in range(len(people))]

    def run(people: np.ndarray, _: Table) -> Outcome:
        inputs, outputs = people[:, :1], people[:, 1]
        if bins:
            found = measure_statistics(
                inputs, outputs, basis=basis, neighbours=neighbours, **BUDGET
            )
            return Outcome((found.guarantee,), found.gram.tobytes() + found.moments.tobytes())
        declared = () if rounds else (KERNEL, 1.0)
        model = DPGPRegressorPrivateInputs(
            *declared, input_bounds=[(0, 5)], neighbours=neighbours, n_features=4, **BUDGET
        )
        return of_model(model.fit(inputs, outputs))

    # No two inputs need have features as far apart as the proof allows; bins have. In rounds no one
    # row need be the worst of every round.
    return Attack(name, neighbourhoods, run, tight=None if rounds else 1e-6 if bins else 0.1)


def private_columns(name: str, *, neighbours: str) -> Attack:
    """A whole row changes, or comes, or goes: its level, its day of the week, and its output."""
    schema = Schema(
        (
            Category("job", levels=("clerk", "cook")),
            Date("day", linear=False, cycles=("week",)),
        )
    )
    jobs, days = ("clerk", "cook", "baker"), ("2026-01-05", "2026-01-08", "2026-01-11")

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        people = np.array(
            [
                (jobs[place % 2], days[place % 3], output)
                for place, output in enumerate(table.outputs)
            ],
            dtype=object,
        )
        rows = [np.array(one, dtype=object) for one in itertools.product(jobs, days, BOUNDS)]
        if neighbours == "replace":
            return [[people, *(np.vstack([people[1:], row]) for row in rows)]]
        more = [[people, np.vstack([people, row])] for row in rows]
        return more + [[people, np.delete(people, row, axis=0)] for row in range(len(people))]

    def run(people: np.ndarray, _: Table) -> Outcome:
        model = DPGPRegressorPrivateInputs(
            schema=schema, neighbours=neighbours, n_features=6, **BUDGET
        )
        cells = {"job": people[:, 0], "day": people[:, 1]}
        return of_model(model.fit(cells, people[:, 2].astype(float)))

    return Attack(name, neighbourhoods, run, tight=None)


def private_labels(name: str, *, neighbours: str, classes: int = 2) -> Attack:
    """A whole row changes, or comes, or goes: its input and its label."""

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        labels = np.resize(np.arange(float(classes)), len(table.line))
        people = np.column_stack([table.line, labels])
        places = (0.0, 0.3, 2.5, 5.0, -1e9)
        rows = [np.array(one) for one in itertools.product(places, np.arange(float(classes)))]
        if neighbours == "replace":
            return [[people, *(np.vstack([people[1:], row]) for row in rows)]]
        more = [[people, np.vstack([people, row])] for row in rows]
        return more + [[people, np.delete(people, row, axis=0)] for row in range(len(people))]

    def run(people: np.ndarray, _: Table) -> Outcome:
        model = DPGPClassifierPrivateInputs(
            classes=list(range(classes)),
            input_bounds=[(0, 5)],
            neighbours=neighbours,
            n_features=4,
            epsilon=BUDGET["epsilon"],
            delta=BUDGET["delta"],
        )
        return of_model(model.fit(people[:, :1], people[:, 1].astype(int)))

    return Attack(name, neighbourhoods, run, tight=None)


def grid_search(name: str, *, criterion: str = "bayes", **settings: Any) -> Attack:
    grid = {"kernel": [RBF(0.3), RBF(3.0)], "noise_variance": [0.5]}

    def run(y: np.ndarray, table: Table) -> Outcome:
        search = DPGridSearchCV(
            DPGPRegressor(learn=None, criterion=criterion, **BUDGET),
            grid,
            selection_epsilon=0.6,
            cv=3,
            **settings,
        )
        return of_model(search.fit(table.line, y))

    return Attack(name, one_output_moves, run, tight=None, branches=2)


def selected(name: str, **settings: Any) -> Attack:
    """Outputs that move the held-out errors as far as they can: all at the prior mean but one.

    The error then is the length of a single column of the map from outputs to errors, and goes
    from none to all of it.
    """
    candidates = [
        ExactPrior(kernel=kernel, noise_variance=0.5, mean=BOUNDS[0])
        for kernel in (4.0 * RBF(0.5), 4.0 * RBF(2.0) + WhiteKernel(0.1), 0.1 * RBF(9.0))
    ]

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        return ends_of_each(np.full(len(table.line), BOUNDS[0]))

    def run(y: np.ndarray, table: Table) -> Outcome:
        chosen = select(
            candidates,
            table.line,
            y,
            bounds=BOUNDS,
            epsilon=0.8,
            folds=3,
            # Noise of the release adds to errors, and would hide some of the move.
            release_epsilon=1e4,
            release_delta=1e-4,
            **settings,
        )
        return Outcome((OfChoice(chosen.epsilon),), repr(chosen.index).encode())

    return Attack(name, neighbourhoods, run, tight=0.1)


def given_strategy(
    name: str,
    *,
    bounds: tuple[float, float] = BOUNDS,
    entries: float = 1.0,
    rows: int = 0,
    noise: NoiseName = "gaussian",
) -> Attack:
    """Ask questions that nobody designed, with entries of many sizes, at bounds of any size."""
    lo, hi = bounds
    values = (lo, hi, np.nextafter(lo, hi), np.nextafter(hi, lo), lo / 3 + hi / 1.5)

    def strategy(count: int) -> np.ndarray:
        generator = np.random.default_rng(count)
        sizes = 10.0 ** generator.integers(-9, 1, size=(4, count))
        questions = entries * sizes * generator.normal(size=(4, count))
        # The longest column, none of whose entries is a short binary number.
        questions[:, 0] = entries * np.array([9.1, 10 / 3, -1.1, 0.1])
        return questions

    def neighbourhoods(table: Table) -> list[list[np.ndarray]]:
        base = np.resize(np.where(table.outputs == BOUNDS[0], lo, hi), rows or len(table.line))
        return [
            [base, *(_with(base, row, one) for one in values)] for row in range(len(table.line))
        ]

    def run(y: np.ndarray, _: Table) -> Outcome:
        found = ask(
            strategy(len(y)),
            y,
            question=OutputBounds.checked(bounds),
            epsilon=1.3,
            delta=1e-4,
            noise=noise,
        )
        return Outcome((found.guarantee,), found.values.tobytes())

    return Attack(name, neighbourhoods, run)


def command_line(name: str, *options: str, classes: Sequence[str] = ()) -> Attack:
    """Run `cloakgp release`, from a CSV file to a release file."""

    def neighbourhoods(table: Table) -> list[list[Any]]:
        if classes:
            return one_label_moves(table.cycled(classes), classes)
        return one_output_moves(table)

    def run(y: Any, table: Table) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            people, to = Path(folder) / "people.csv", Path(folder) / "people.cloak"
            frame = pd.DataFrame({"a": table.plane[:, 0], "b": table.plane[:, 1], "private": y})
            frame.to_csv(people, index=False)
            words = ["release", str(people), "--inputs", "a,b", "--output", "private"]
            words += ["-o", str(to), "--epsilon", "1.3", "--delta", "0.0001", *options]
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, "the command failed"
            printed = result.output.replace(folder, "").encode()
            return Outcome((Release.load(to).guarantee,), to.read_bytes() + printed)

    return Attack(name, neighbourhoods, run)


BOTH_BOUNDS = ("--bounds", str(BOUNDS[0]), str(BOUNDS[1]))
LAPLACE = {"noise": "laplace", "delta": 0.0}
LEARNED = {"kernel": None, "noise_variance": None, "learn": "map", "stages": "auto"}
SPARSE = {"inducing": [[0.5], [2.0], [4.0]]}

ATTACKS = [
    regression("bayes"),
    regression("trace", criterion="trace"),
    regression("logdet", criterion="logdet"),
    transformed("logarithms, asked twice"),
    transformed("logarithms of groups, asked twice", groups="aabbccd"),
    of_counts("counts, asked twice", stages=TWO_STAGES, noise="gaussian", learn=None),
    # A tenth of the fit's 40 is for the spread, of 40.5 in all.
    of_counts(
        "counts and their spread, Laplace",
        stages=TWO_STAGES,
        epsilon=40.0,
        delta=0.0,
        spread=4 / 40.5,
    ),
    of_counts("counts of groups", groups="aabbccd", stages=None, noise="gaussian", learn=None),
    of_counts("counts of groups, Laplace", groups="aabbccd", delta=0.0, learn=None),
    of_quantiles("quantiles, asked twice", noise="gaussian", learn=None),
    of_quantiles("quantiles in two stages, Laplace", stages=NO_BANDS, delta=0.0),
    of_quantiles("one quantile of groups", groups="aabbccd", quantiles=0.5, noise="gaussian"),
    of_quantiles("quantiles of groups, Laplace", groups="aabbccd", delta=0.0, learn=None),
    gathered("quantiles in passes", noise="gaussian"),
    gathered("one quantile in passes, Laplace", quantiles=0.5, delta=0.0),
    gathered("quantiles of groups in passes, Laplace", groups="aabbccd", delta=0.0),
    gathered("counts in passes", counts=True, stages=TWO_STAGES, noise="gaussian"),
    gathered("counts in passes, Laplace", counts=True, delta=0.0),
    gathered("counts of groups in passes", counts=True, groups="aabbcca", noise="gaussian"),
    regression("functional", criterion="functional"),
    regression("defaults", kernel=None, noise_variance=None, learn="map", stages="auto"),
    regression("average, small budget", learn="average", epsilon=0.05, stages="auto"),
    regression("two stages", stages=TWO_STAGES),
    regression("two stages, learning", learn="map", stages=TWO_STAGES, epsilon=20.0),
    regression("two stages, both of the whole width", stages=[(0.3, None), (0.7, None)]),
    regression("four stages, sparse", learn="map", stages=FOUR_STAGES, **SPARSE),
    regression("three stages, several inputs", inputs="plane", stages="auto"),
    asks_spread("two stages and the spread", stages=TWO_STAGES),
    asks_spread("an interval, two stages and the spread", stages=TWO_STAGES, epsilon=300.0),
    asks_scatter("two stages and the spread by strata", stages=TWO_STAGES),
    keeps_out("two stages, and rows that are kept out", stages=TWO_STAGES),
    keeps_out("rows that are kept out, Laplace", noise="laplace", delta=0.0),
    regression("several inputs", inputs="plane", criterion="trace"),
    regression("a public prediction", inputs="plane", public_prediction=1, **HELPED),
    regression("a public prediction, raw", inputs="plane", public_prediction=0, criterion="trace"),
    regression("fitc", **SPARSE),
    regression("dtc", approximation="dtc", criterion="trace", **SPARSE),
    regression("sor", approximation="sor", criterion="logdet", **SPARSE),
    regression("sparse functional", criterion="functional", **SPARSE),
    grouped("groups", groups="abbccca"),
    grouped("groups in stages", groups="abbccca", stages=TWO_STAGES),
    grouped("groups, trace", groups="abbccca", criterion="trace"),
    grouped("groups, functional", groups="abbccca", criterion="functional"),
    grouped("everybody in one group", groups="aaaaabb", criterion="logdet"),
    cloaked("cloak, trace"),
    cloaked("cloak, logdet", criterion="logdet", noise="gaussian"),
    cloaked("cloak, the papers' calibration", calibration="papers", epsilon=0.9),
    baseline("noise on rows", DPRowNoiseRegressor),
    baseline("noise on the mean", DPMeanRegressor),
    baseline("histogram", DPHistogramRegressor, bins=2),
    baseline("histogram, Laplace", DPHistogramRegressor, bins=2, **LAPLACE),
    baseline("integral histogram", DPIntegralHistogramRegressor, bins=2, learn=None),
    baseline("integral histogram, Laplace", DPIntegralHistogramRegressor, bins=2, **LAPLACE),
    visits("refine, extend and combine"),
    visits("refine, extend and combine, learning", learn="map"),
    visits("refine, extend and combine, in stages", learn="map", stages=TWO_STAGES),
    visits("refine, extend and combine groups", groups="abbccca"),
    stream("a stream of other people", people="disjoint"),
    stream("a stream of other people, Laplace", people="disjoint", **LAPLACE),
    stream("a stream of other people, learning", people="disjoint", learn="map", tight=0.01),
    stream("a stream of people who come again", people="overlapping", groups="abcdabcde"),
    classification("two classes", classes=[False, True]),
    grouped_classes("groups, two classes", classes=[False, True], groups="aabc"),
    grouped_classes("groups, two classes, trace", classes=[0, 1], groups="abab", criterion="trace"),
    grouped_classes("groups, three classes", classes=["a", "b", "c"], groups="aabcabd"),
    grouped_classes("groups, Laplace, two classes", classes=[0, 1], groups="aab", **LAPLACE),
    grouped_classes(
        "groups, Laplace, three classes", classes=[0, 1, 2], groups="aabcab", **LAPLACE
    ),
    classification("two classes, trace", classes=["no", "yes"], criterion="trace"),
    classification("two classes, sparse", classes=[0, 1], learn="map", **SPARSE),
    classification("three classes", classes=["a", "b", "c"]),
    classification("three classes, logdet", classes=["a", "b", "c"], criterion="logdet"),
    classification("the papers' iteration", classes=[0, 1], criterion="newton"),
    classification("three Newton steps", classes=[0, 1], criterion="newton", steps=3),
    combined_classes("classes combined", classes=["a", "b", "c"]),
    several_outputs("two outputs", coregion=[[1.0, 0.5], [0.5, 1.0]]),
    several_outputs("two outputs, trace", criterion="trace"),
    several_outputs("two outputs of groups", groups="abbc", criterion="trace"),
    several_outputs("two outputs in stages", stages=TWO_STAGES),
    several_outputs("two outputs of groups, in stages", groups="abbc", stages=TWO_STAGES),
    several_outputs("two outputs, intervals first", stages=TWO_STAGES, epsilon=300.0),
    several_outputs(
        "outputs of groups, intervals first", groups="abbc", stages=TWO_STAGES, epsilon=900.0
    ),
    grid_search("grid search"),
    grid_search("grid search, exponential, trace", mechanism="exponential", criterion="trace"),
    grid_search("grid search, absolute loss", loss="absolute"),
    selected("select, squared"),
    selected("select, absolute", loss="absolute"),
    selected("select, exponential", mechanism="exponential", criterion="trace"),
    selected("select, raw predictions", predictions="raw", criterion="trace", loss="absolute"),
    streamed("arrays in chunks", arrays),
    streamed("arrays in chunks, trace", arrays, criterion="trace"),
    streamed("arrays in chunks, logdet, learning", arrays, criterion="logdet", learn="map"),
    streamed_groups("groups of many rows", groups="abbccca"),
    streamed_groups("groups of many rows, trace", groups="aab", file=True, criterion="trace"),
    streamed_visits("many rows refined and extended"),
    streamed_visits("many rows refined and extended, averaging", learn="average"),
    # Nobody need be moved most by counts and by every stage.
    streamed("many rows, an interval first", arrays, tight=None, epsilon=300.0, stages=TWO_STAGES),
    streamed_groups("groups of many rows, an interval first", groups="aabbccd", epsilon=900.0),
    of_custodians("several custodians"),
    of_custodians("several custodians, asked twice", stages=TWO_STAGES, learn="map"),
    of_custodians("several custodians, Laplace", **LAPLACE),
    of_custodians("several custodians, persons", groups="aab", **LAPLACE),
    streamed("a public prediction in chunks", arrays, public_prediction="b", learn="map"),
    streamed("CSV", csv, approximation="dtc"),
    streamed("Parquet", parquet, approximation="sor", criterion="trace"),
    streamed("Dask", dask_rows),
    streamed_classes("two classes in chunks", arrays, classes=[False, True]),
    streamed_classes("three classes in chunks", arrays, classes=["a", 2, 0.5]),
    streamed_classes("classes in CSV", csv, classes=["no", "yes", "perhaps"]),
    streamed_classes("classes in Parquet", parquet, classes=[0, 1]),
    released_classes("classes of many rows", classes=["a", "b", "c"]),
    released_classes("classes of many rows, trace", classes=[0, 1], criterion="trace"),
    released_classes(
        "classes of many rows, learning",
        classes=[0, 1],
        criterion="logdet",
        learn="map",
    ),
    streamed_classes("Dask, classes", dask_rows, classes=["a", "b", "c"]),
    private_inputs("private inputs, replaced", neighbours="replace"),
    private_inputs("private inputs, added or removed", neighbours="add-remove"),
    private_inputs("whole rows in rounds, replaced", neighbours="replace", rounds=True),
    private_inputs("whole rows in rounds, added or removed", neighbours="add-remove", rounds=True),
    private_columns("whole rows of raw columns, replaced", neighbours="replace"),
    private_columns("whole rows of raw columns, added or removed", neighbours="add-remove"),
    private_labels("whole rows of classes, replaced", neighbours="replace"),
    private_labels("whole rows of classes, added or removed", neighbours="add-remove"),
    private_labels("whole rows of four classes, replaced", neighbours="replace", classes=4),
    private_labels(
        "whole rows of four classes, added or removed", neighbours="add-remove", classes=4
    ),
    private_inputs("private bins, replaced", neighbours="replace", bins=True),
    private_inputs("private bins, added or removed", neighbours="add-remove", bins=True),
    given_strategy("given questions"),
    given_strategy("bounds far from zero", bounds=(1e15, 1e15 + 3.0)),
    given_strategy("tiny bounds", bounds=(-1.1e-100, 1.3e-100)),
    given_strategy("huge bounds", bounds=(-3.3e99, 5.5e99)),
    given_strategy("one end at zero", bounds=(0.0, 5e-324 + 1e-99)),
    given_strategy("tiny questions", entries=1e-95),
    given_strategy("huge questions", entries=1e95, bounds=(1e3, 1e3 + 1e-9)),
    given_strategy("many rows at once", rows=3000),
    regression("Laplace", **LAPLACE),
    regression("Laplace, trace", criterion="trace", **LAPLACE),
    regression("Laplace, logdet", criterion="logdet", **LAPLACE),
    regression("Laplace, sparse", **SPARSE, **LAPLACE),
    regression("Laplace, defaults", **{**LEARNED, **LAPLACE}),
    regression("Laplace with a delta", noise="laplace"),
    regression("Laplace with a delta, two stages", noise="laplace", stages=TWO_STAGES),
    regression("Laplace, two stages", stages=TWO_STAGES, **LAPLACE),
    regression("Laplace, four stages", stages=FOUR_STAGES, **LAPLACE),
    asks_spread("Laplace, two stages and the spread", stages=TWO_STAGES, **LAPLACE),
    asks_scatter("Laplace, two stages and the spread by strata", stages=TWO_STAGES, **LAPLACE),
    grouped("Laplace, groups", groups="abbccca", **LAPLACE),
    grouped("Laplace, groups in stages", groups="abbccca", stages=TWO_STAGES, **LAPLACE),
    grouped("Laplace, groups, trace", groups="abbccca", criterion="trace", **LAPLACE),
    visits("Laplace, then Gaussian", **LAPLACE),
    visits("Laplace in stages, then Gaussian", stages=TWO_STAGES, noise="laplace"),
    visits("Gaussian, then Laplace", mixed=LAPLACE),
    classification("Laplace, two classes", classes=[False, True], **LAPLACE),
    classification("Laplace, three classes", classes=["a", "b", "c"], **LAPLACE),
    classification(
        "Laplace, classes, trace", classes=["a", "b", "c"], criterion="trace", **LAPLACE
    ),
    several_outputs("Laplace, two outputs", coregion=[[1.0, 0.5], [0.5, 1.0]], **LAPLACE),
    several_outputs("Laplace, outputs of groups", groups="abbc", **LAPLACE),
    several_outputs("Laplace, two outputs in stages", stages=TWO_STAGES, **LAPLACE),
    several_outputs(
        "Laplace, two outputs, intervals first", stages=TWO_STAGES, epsilon=300.0, **LAPLACE
    ),
    cloaked("Laplace, cloak", **LAPLACE),
    streamed("Laplace, many rows", arrays, **LAPLACE),
    streamed("Laplace, many rows in stages", csv, stages=TWO_STAGES, **LAPLACE),
    streamed_groups("Laplace, groups of many rows", groups="abbccca", **LAPLACE),
    streamed("Laplace, many rows, an interval first", csv, tight=None, epsilon=300.0, **LAPLACE),
    streamed_questions("Laplace, arrays in chunks", arrays),
    streamed_questions("Laplace, CSV", csv),
    streamed_classes("Laplace, two classes in chunks", arrays, classes=[0, 1], noise="laplace"),
    streamed_classes("Laplace, classes in CSV", csv, classes=["a", "b", "c"], noise="laplace"),
    given_strategy("Laplace, given questions", noise="laplace"),
    given_strategy("Laplace, far from zero", bounds=(1e15, 1e15 + 3.0), noise="laplace"),
    given_strategy("Laplace, many rows at once", rows=3000, noise="laplace"),
    command_line("command line", *BOTH_BOUNDS),
    command_line("command line, many rows", *BOTH_BOUNDS, "--inducing", "3"),
    command_line("command line, classes", "--classes", "no,yes", classes=["no", "yes"]),
]
BY_NAME = {attack.name: attack for attack in ATTACKS}

# Take seconds each; others like them are always run.
LONG = {
    "arrays in chunks, logdet, learning",
    "classes of many rows, learning",
    "several custodians, asked twice",
    "many rows refined and extended, averaging",
    "groups of many rows, trace",
    "average, small budget",
    "two stages, both of the whole width",
    "four stages, sparse",
    "groups",
    "everybody in one group",
    "integral histogram, Laplace",
    "refine, extend and combine, learning",
    "refine, extend and combine, in stages",
    "refine, extend and combine groups",
    "two outputs",
    "grid search, exponential, trace",
    "grid search, absolute loss",
    "select, squared",
    "select, absolute",
    "command line",
    "command line, many rows",
}
