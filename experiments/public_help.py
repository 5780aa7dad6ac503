"""Public predictions, right and wrong: what they gain, and what wrong ones cost.

Every draw deals the rows of a public table: some are fitted privately, some are of other people,
whose outputs count as public, and the rest are held out. What the others teach is a random forest
(scikit-learn's defaults); its predictions are given right, and spoiled. Errors are relative to
those of the same fit without any prediction: the same rows, another draw of the noise, as questions
are others. So ways of one draw share the rows and not the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table
from sklearn.ensemble import RandomForestRegressor

from cloakgp import DPGPRegressor
from cloakgp.utils.arrays import Array
from experiments.claims_samples import sources
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import draw_by_draw, standard_error, with_error

EPSILONS = (0.3, 1.0, 3.0)
NAMES = (
    "!Kung, height by age and sex",
    "diabetes",
    "nations, life",
    "loans, value",
    "Citi Bike, duration",
)
ALONE, AS_INPUT, ROWS = "none", "right, as one more input", "public rows of others"
SCALED, SHIFTED = 10.0, 0.25

Spoil = Callable[[Array, np.random.Generator, float], Array]
"""Right predictions, a generator and the bounds' width → the predictions that are given."""

SPOILED: Mapping[str, Spoil] = MappingProxyType(
    {
        "right": lambda right, rng, width: right,  # noqa: ARG005
        "right but for a quarter of the width": lambda right, rng, width: (  # noqa: ARG005
            right + SHIFTED * width
        ),
        "half right": lambda right, rng, width: (  # noqa: ARG005
            (right + rng.permutation(right)) / 2
        ),
        "useless (permuted)": lambda right, rng, width: rng.permutation(right),  # noqa: ARG005
        "sign flipped": lambda right, rng, width: 2 * right.mean() - right,  # noqa: ARG005
        "permuted, ten times as far apart": lambda right, rng, width: (  # noqa: ARG005
            right.mean() + SCALED * (rng.permutation(right) - right.mean())
        ),
    }
)


@dataclass(frozen=True)
class Case:
    """A table and a budget."""

    table: str
    epsilon: float


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows to fit, others whose outputs are public, and rows that are held out.

    Attributes
    ----------
    X, outputs : arrays
        To fit.
    others, public : arrays
        Inputs and outputs of others.
    X_test, outputs_test : arrays
    bounds : (float, float)
    """

    X: Array
    outputs: Array
    others: Array
    public: Array
    X_test: Array
    outputs_test: Array
    bounds: tuple[float, float]

    @classmethod
    def of(cls, table: str, draw: int, *, rows: int) -> Dealt:
        """Deal the rows of a table: as many to fit as are of others, or half of all."""
        [source] = sources([table])
        [most] = source.sizes([2 * rows])
        sample = source.sample(draw, rows=most)
        fitted, others = slice(0, most // 2), slice(most // 2, most)
        return cls(
            X=sample.X[fitted],
            outputs=sample.outputs[fitted],
            others=sample.X[others],
            public=sample.outputs[others],
            X_test=sample.X_test,
            outputs_test=sample.outputs_test,
            bounds=(sample.bounds.lo, sample.bounds.hi),
        )


def measured(case: Case, draw: int, *, rows: int) -> dict[str, tuple[float, ...]]:
    """Return the error of each way at held-out rows, over the sd of their outputs.

    Parameters
    ----------
    case : Case
    draw : int
        Of rows and of the noise.
    rows : int
    """
    dealt, rng = Dealt.of(case.table, draw, rows=rows), np.random.default_rng((draw, 1))
    forest = RandomForestRegressor(random_state=0).fit(dealt.others, dealt.public)
    right, right_test = forest.predict(dealt.X), forest.predict(dealt.X_test)
    width = dealt.bounds[1] - dealt.bounds[0]
    found: dict[str, tuple[float, ...]] = {}

    def fit(way: str, X: Array, X_test: Array, **options: Any) -> None:
        model = DPGPRegressor(
            bounds=dealt.bounds, epsilon=case.epsilon, insecure_seed=draw, **options
        )
        predicted = model.fit(X, dealt.outputs).predict(X_test)
        away = np.sqrt(np.mean(np.square(predicted - dealt.outputs_test)))
        found[way] = (float(away / dealt.outputs_test.std()),)

    fit(ALONE, dealt.X, dealt.X_test)
    for way, spoil in SPOILED.items():
        given, at_test = (spoil(each, rng, width) for each in (right, right_test))
        X, X_test = np.column_stack([dealt.X, given]), np.column_stack([dealt.X_test, at_test])
        fit(way, X, X_test, public_prediction=dealt.X.shape[1])
        if way == "right":
            fit(AS_INPUT, X, X_test)
    fit(ROWS, dealt.X, dealt.X_test, public_prediction=(dealt.others, dealt.public))
    return found


Found = dict[tuple[Case, str], list[tuple[float, ...]]]


@dataclass(frozen=True)
class PublicHelp(Experiment[Found]):
    """Public predictions that are right, half right, useless and adverse, beside none.

    Attributes
    ----------
    rows, draws : int
    names, epsilons : list, optional
    """

    name: ClassVar[str] = "public-help"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"rows": 60, "draws": 2, "names": ["diabetes"], "epsilons": [1.0]}
    )

    rows: Rows = 150
    draws: RowDraws = 10
    names: Annotated[
        list[str] | None, typer.Option("--table", help="Names of `experiments claims`.")
    ] = None
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon", help="Budgets.")] = None

    @property
    def _cases(self) -> list[Case]:
        budgets = self.epsilons or EPSILONS
        return [Case(name, each) for name in self.names or NAMES for each in budgets]

    def compute(self, progress: Progress) -> Found:
        """Return errors, draw by draw."""

        def measure(case: Case, draw: int) -> dict[str, tuple[float, ...]]:
            return measured(case, draw, rows=self.rows)

        with progress("fits", steps=len(self._cases) * self.draws) as tick:
            return draw_by_draw(self._cases, draws=self.draws, measure=measure, tick=tick)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out errors without help, and those with it over these."""
        ways = [way for case, way in found if case == self._cases[0] and way != ALONE]
        budgets = list(dict.fromkeys(case.epsilon for case in self._cases))
        laid = table_titled(
            f"Up to {self.rows} rows, {self.draws} draws: error over the sd of outputs without a "
            "prediction, and mean errors with one over it, with standard errors of the difference",
            "table",
            "prediction",
            right=[f"ε = {epsilon:g}" for epsilon in budgets],
        )
        for table in dict.fromkeys(case.table for case in self._cases):
            for way in (ALONE, *ways):
                cells = [_cell(found, Case(table, epsilon), way) for epsilon in budgets]
                laid.add_row(table if way == ALONE else "", way, *cells)
            laid.add_section()
        yield laid
        yield from self._summary(found, ways, budgets)

    def _summary(self, found: Found, ways: list[str], budgets: list[float]) -> Iterable[Table]:
        """Lay out means over the tables, and the worst of them."""
        laid = table_titled(
            "Mean errors over those without a prediction: mean of the tables, and the worst",
            "prediction",
            right=[f"ε = {epsilon:g}" for epsilon in budgets],
        )
        for way in ways:
            cells = []
            for epsilon in budgets:
                cases = [case for case in self._cases if case.epsilon == epsilon]
                ratios = [_ratio(found, case, way)[0] for case in cases]
                cells.append(f"{np.mean(ratios):.2f}, {max(ratios):.2f}")
            laid.add_row(way, *cells)
        yield laid


def _cell(found: Found, case: Case, way: str) -> str:
    if way == ALONE:
        errors = np.array(found[case, ALONE])[:, 0]
        return with_error(float(errors.mean()), standard_error(errors))
    return with_error(*_ratio(found, case, way))


def _ratio(found: Found, case: Case, way: str) -> tuple[float, float | None]:
    """Return the mean error of a way over that without help, and its standard error by draws."""
    alone, helped = (np.array(found[case, each])[:, 0] for each in (ALONE, way))
    error = standard_error(helped - alone)
    mean = float(alone.mean())
    return float(helped.mean()) / mean, None if error is None else error / mean
