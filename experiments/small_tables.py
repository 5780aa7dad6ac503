r"""What was tried for small tables: staircase noise, medians first, and what counts tell.

Beside the default, on the tables of `experiments.priors` and on three of scikit-learn's with all
their inputs, no δ, on the same splits and with the same seeds of noise.

Staircase noise
    Of one number that moves by Δ at most, a law whose density falls in steps keeps ε with less
    variance than Laplace noise (Geng and Viswanath 2014, *The optimal mechanism in differential
    privacy*, the staircase with the best place of its steps). For counts that move by whole ones it
    is the geometric law, which is discrete Laplace noise. A step costs the same ε however little a
    number moves, so it is for rows that are in one question each. No more than it could win is
    measured: Laplace noise of the larger ε at which the last stage's variance is that of staircase
    noise, for all questions.
Medians
    In place of the first stage's sums, a median of the outputs, or of each of a few k-means cells,
    by permute-and-flip among places within the interval: the score of x is −|2 B(x) − n|, B(x) the
    number of outputs below x. Another output moves B(x) by one at most, and the score by two. The
    posterior takes them for averages, with noise of the sd that the rank's noise has where outputs
    scatter as the default prior says.
Counts of the search for an interval
    By least squares they tell the mean of the clipped outputs, as the first stage's sums do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from rich.table import Table as Printed
from sklearn import datasets as sklearn_datasets
from sklearn.cluster import KMeans

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import Step, default_stages, schedule_stages
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.interval import SearchPlan, find_interval
from cloakgp.fitting.strata import plan_checked_search
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Design
from cloakgp.models.defaults import input_scales
from cloakgp.privacy import Answers, OutputBounds, ask
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.sampler import report_insecure_noisy_max
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.release.common_values import estimate_below
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, NoisySplits, OfTheTwelve, Progress, Rows, table_titled
from experiments.interval import errors_of_ways, seed_of_draw, widened, width_in_words
from experiments.priors import Split, Table, first_tables
from experiments.spread import draw_by_draw, mean_and_error, with_error
from experiments.ways import DEFAULT, NOISY_MEAN, Predicted, Setting, Way, noisy_mean, released

# Of staircase noise: few, ordinary and more than most would spend.
EPSILONS = (0.3, 1.0, 3.0, 10.0)
# Of which counts are asked, at 250 rows.
COUNTED, FACTORS = (1.0, 3.0), (1, 10)
# Places among which a median is chosen.
PLACES = 1024
# Sd of outputs around their level under the default prior, in widths of the bounds: slope, curve
# and noise; and the density of a normal law of sd 1 at its median.
SPREAD, NORMAL_DENSITY = math.sqrt(0.1**2 + 0.15**2 + 0.1**2), 1 / math.sqrt(2 * math.pi)
FEW_CELLS = 4


def staircase_saving(epsilon: float) -> float:
    """Return the share of Laplace noise's variance that the best staircase noise saves.

    With b = e^−ε, its variance is ((b (1 + b)/2)^(2/3) + b) Δ²/(1 − b)², least over the place of
    the steps (Geng and Viswanath 2014), and that of Laplace noise 2 Δ²/ε².

    Parameters
    ----------
    epsilon : float

    Examples
    --------
    >>> [round(staircase_saving(epsilon), 3) for epsilon in (0.3, 1.0, 5.0)]
    [0.004, 0.041, 0.629]
    """
    b = math.exp(-epsilon)
    variance = ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2
    return 1.0 - variance * epsilon**2 / 2


def search_of_fit(bounds: OutputBounds, *, budget: Budget, rows: int) -> SearchPlan:
    """Return how a default fit of one output, of people with one row each, counts outputs."""
    return plan_checked_search(bounds, budget=budget, rows=rows, largest_group=1, outputs=1)


def stages_after(search: SearchPlan, *, rounds: int, budget: Budget, rows: int) -> tuple[Step, ...]:
    """Return the stages of a default fit after so many rounds of its search."""
    return schedule_stages(
        default_stages(budget.law),
        budget=budget,
        rows=rows,
        ask_spread=True,
        spent=search.spent(rounds),
    )


def questions_of_fit(rows: int, *, epsilon: float) -> dict[str, float]:
    """Return the ε of each question of a default fit that keeps its bounds, by name.

    Parameters
    ----------
    rows : int
    epsilon : float
    """
    budget = Budget(epsilon, 0.0, noise="laplace")
    search = search_of_fit(OutputBounds(0.0, 1.0), budget=budget, rows=rows)
    made = min(len(search.rounds), 1)
    steps = stages_after(search, rounds=made, budget=budget, rows=rows)
    names = ("first stage", "second", "last", "spread")
    asked = {name: step.budget.epsilon for name, step in zip(names, steps, strict=False)}
    return {"counts": search.rounds[0].epsilon, **asked} if made else asked


def no_more_than_staircase(split: Split, setting: Setting) -> Predicted:
    """Fit with all that staircase noise could save in any stage, as more ε."""
    last = questions_of_fit(len(split.X), epsilon=setting.epsilon)["last"]
    worth = setting.epsilon / math.sqrt(1.0 - staircase_saving(last))
    return released(split, replace(setting, epsilon=worth))


def median_scores(outputs: Array, places: Array) -> Array:
    """Return −|2 B(x) − n| of every place x: how far it is from halving the outputs."""
    below = np.searchsorted(np.sort(outputs), places)
    return -np.abs(2 * below - len(outputs))


def insecure_median(
    outputs: Array, *, bounds: OutputBounds, epsilon: float, insecure_seed: int
) -> float:
    """Return a median by permute-and-flip among equidistant places; of a seed, so not private.

    Parameters
    ----------
    outputs : array of shape (n,)
    bounds : OutputBounds
    epsilon : float
    insecure_seed : int

    Examples
    --------
    >>> outputs = np.linspace(4.0, 6.0, 500)
    >>> bounds = OutputBounds(0.0, 100.0)
    >>> abs(insecure_median(outputs, bounds=bounds, epsilon=1.0, insecure_seed=0) - 5.0) < 0.2
    True
    """
    places = np.linspace(bounds.lo, bounds.hi, PLACES)
    # A score moves by two.
    chosen = report_insecure_noisy_max(
        median_scores(outputs, places),
        scale=2 * 2 / epsilon,
        noise="exponential",
        seed=insecure_seed,
    )
    return float(places[chosen])


@dataclass(frozen=True, eq=False)
class MedianTable(HeldTable):
    """A table whose first stage is medians in a few cells, as a trial: not private.

    Attributes
    ----------
    cells : int
    """

    cells: int = 1

    def ask(
        self,
        design: Design,
        y: ArrayLike,
        budget: Budget,
        *,
        after_answers: bool,
        insecure_seed: int | None,
    ) -> Measurement:
        """Put a design to the outputs; of the first stage, take medians for its answers."""
        asked = super().ask(
            design, y, budget, after_answers=after_answers, insecure_seed=insecure_seed
        )
        bounds = design.question
        if not isinstance(bounds, OutputBounds):
            return asked
        assert insecure_seed is not None
        assert isinstance(asked.strategy, DenseStrategy)
        outputs, scaled = np.asarray(y, dtype=np.float64), self.X / input_scales(self.X)
        labels = KMeans(self.cells, n_init=4, random_state=0).fit_predict(scaled)
        sizes = np.bincount(labels, minlength=self.cells)
        medians = [
            insecure_median(
                outputs[labels == cell],
                bounds=bounds,
                epsilon=budget.epsilon,
                insecure_seed=insecure_seed + cell,
            )
            for cell in range(self.cells)
        ]
        # Scores fall by one for half a rank: noise on ranks has the law of Laplace of scale 2/ε.
        rank_sd = math.sqrt(2.0) * 2.0 / budget.epsilon
        sds = SPREAD * bounds.width / NORMAL_DENSITY * rank_sd / sizes
        sds = np.minimum(sds, bounds.width / math.sqrt(12.0))
        averages = (labels == np.arange(self.cells)[:, None]) / sizes[:, None]
        values = (np.array(medians) - bounds.middle) / sds
        return replace(
            asked,
            strategy=replace(asked.strategy, matrix=averages / sds[:, None]),
            answers=replace(asked.answers, values=values[:, None], noise_sd=1.0),
        )


class MedianRegressor(DPGPRegressor):
    """The default, but for medians in place of the first stage's sums."""

    _cells: ClassVar[int] = 1

    def _fit_table(self, table: Any, *args: Any, **options: Any) -> Any:
        parts = {each.name: getattr(table, each.name) for each in fields(HeldTable)}
        return super()._fit_table(MedianTable(**parts, cells=self._cells), *args, **options)


class MediansRegressor(MedianRegressor):
    """The same, with medians of a few cells."""

    _cells: ClassVar[int] = FEW_CELLS


def with_medians(split: Split, setting: Setting, *, model: type[MedianRegressor]) -> Predicted:
    """Fit a table whose first stage is medians."""
    fitted = model(
        bounds=(split.bounds.lo, split.bounds.hi),
        epsilon=setting.epsilon,
        delta=setting.delta,
        insecure_seed=setting.insecure_seed,
    ).fit(split.X, split.outputs)
    return Predicted.by(fitted.release_, split.X_test)


STAIRCASE, MEDIAN, MEDIANS = "staircase noise, at most", "a median first", "medians of 4 cells"
WAYS: Mapping[str, Way] = MappingProxyType(
    {
        DEFAULT: released,
        NOISY_MEAN: noisy_mean,
        STAIRCASE: no_more_than_staircase,
        MEDIAN: partial(with_medians, model=MedianRegressor),
        MEDIANS: partial(with_medians, model=MediansRegressor),
    }
)
TWELVE, MANY_INPUTS = "twelve", "three of many inputs"
# Which tables, how many times as wide bounds are, and ε.
Comparison = tuple[str, int, float]
COMPARISONS: Mapping[Comparison, tuple[str, ...]] = MappingProxyType(
    {
        (TWELVE, 1, 1.0): (MEDIAN,),
        (TWELVE, 10, 1.0): (MEDIAN,),
        (TWELVE, 1, 10.0): (STAIRCASE,),
        (MANY_INPUTS, 1, 1.0): (MEDIAN, MEDIANS),
    }
)


def tables_of_many_inputs() -> list[Table]:
    """Return three of scikit-learn's tables with all of their inputs: ten, twelve and 24."""
    patients = sklearn_datasets.load_diabetes(scaled=False)
    wine = sklearn_datasets.load_wine().data
    cells = sklearn_datasets.load_breast_cancer().data
    # Compactness is computed from perimeter and area.
    others = [column for column in range(30) if column not in (2, 3, 5, 15, 23, 25)]
    return [
        Table("diabetes", patients.data, patients.target, OutputBounds(0.0, 350.0)),
        Table("wine", wine[:, 1:], wine[:, 0], OutputBounds(10.0, 16.0)),
        Table("cells", cells[:, others], cells[:, 5], OutputBounds(0.0, 0.5)),
    ]


def counts_beside_first_stage(
    table: Table, *, epsilon: float, factor: float, draw: int, rows: int, insecure_seed: int
) -> float | None:
    """Return the sd of the mean by counts, over that of the first stage's noise on one sum of all.

    None where nobody counts.

    Parameters
    ----------
    table : Table
    epsilon, factor : float
        The latter: how many times as wide bounds are.
    draw, rows : int
    insecure_seed : int
    """
    rng = np.random.default_rng((draw, int(factor)))
    wide = replace(table, bounds=widened(table.bounds, factor=factor, rng=rng))
    split = wide.split(draw, rows=rows)
    count, budget = len(split.X), Budget(epsilon, 0.0, noise="laplace")
    search = search_of_fit(split.bounds, budget=budget, rows=count)
    if not search.rounds:
        return None
    asked: list[tuple[Array, Answers]] = []

    def ask_counts(question: CountQuestion, part: Budget) -> Answers:
        answers = ask(
            np.ones((1, count)),
            split.outputs,
            question=question,
            epsilon=part.epsilon,
            delta=0.0,
            noise="laplace",
            insecure_seed=insecure_seed + len(asked),
        )
        asked.append((question.edges, answers))
        return answers

    found = find_interval(ask_counts, bounds=split.bounds, rows=count, rounds=search.rounds)
    places = np.unique(np.concatenate([edges for edges, _ in asked]))
    _, covariance = estimate_below(asked, places, rows=count)
    middles = found.clip((places[1:] + places[:-1]) / 2)
    # Σ_i middle_i (below_{i+1} − below_i).
    weights = np.zeros(len(places))
    weights[1:] += middles
    weights[:-1] -= middles
    first, *_ = stages_after(search, rounds=len(asked), budget=budget, rows=count)
    noise_sd = found.width * first.budget.unit_sd()
    return float(math.sqrt(weights @ covariance @ weights) / noise_sd)


@dataclass(frozen=True, eq=False)
class Found:
    """What was measured.

    Attributes
    ----------
    errors : mapping of (comparison, table) and way to errors, draw by draw
    counts : mapping of (ε, factor) to array
        The sd of the mean by counts, over that of the first stage's noise.
    """

    errors: Mapping[tuple[tuple[Comparison, str], str], list[tuple[float, ...]]]
    counts: Mapping[tuple[float, int], Array]


@dataclass(frozen=True)
class SmallTables(Experiment[Found]):
    """Staircase noise, and medians first, beside the default on small tables.

    Attributes
    ----------
    draws : int
    rows : int
    count : int, optional
        Of the twelve tables, the first ones; without those of many inputs.
    insecure_seed : int, optional
        For tests.
    """

    name: ClassVar[str] = "small-tables"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"draws": 1, "rows": 60, "count": 1})

    draws: NoisySplits = 5
    rows: Rows = 250
    count: OfTheTwelve = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Return errors of all comparisons, and what counts tell."""
        groups = {TWELVE: {table.name: table for table in first_tables(self.count)}}
        groups[MANY_INPUTS] = {} if self.count else {t.name: t for t in tables_of_many_inputs()}
        cases = [(comparison, name) for comparison in COMPARISONS for name in groups[comparison[0]]]

        def measure(case: tuple[Comparison, str], draw: int) -> dict[str, tuple[float, ...]]:
            (group, factor, epsilon), name = case
            ways = (DEFAULT, NOISY_MEAN, *COMPARISONS[case[0]])
            return errors_of_ways(
                groups[group][name],
                {way: WAYS[way] for way in ways},
                epsilon=epsilon,
                factor=factor,
                draw=draw,
                rows=self.rows,
                insecure_seed=self.insecure_seed,
            )

        with progress("small tables", steps=len(cases) * self.draws) as tick:
            errors = draw_by_draw(cases, draws=self.draws, measure=measure, tick=tick)
        counts = {}
        for epsilon in COUNTED:
            for factor in FACTORS:
                ratios = [
                    counts_beside_first_stage(
                        table,
                        epsilon=epsilon,
                        factor=factor,
                        draw=draw,
                        rows=self.rows,
                        insecure_seed=seed_of_draw(draw, insecure_seed=self.insecure_seed),
                    )
                    for table in groups[TWELVE].values()
                    for draw in range(self.draws)
                ]
                counts[epsilon, factor] = np.array([each for each in ratios if each is not None])
        return Found(errors=errors, counts=counts)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out what staircase noise saves, the comparisons, and what counts tell."""
        yield self._savings()
        yield _comparisons(found)
        table = table_titled(
            "Mean of the clipped outputs by counts, least squares: its sd, over that of the noise "
            "on one sum of all rows in the first stage; of those fits that count",
            "bounds",
            "ε",
            right=("fits", "least", "median"),
        )
        for (epsilon, factor), ratios in found.counts.items():
            known = [f"{of(ratios):.1f}" for of in (np.min, np.median)] if len(ratios) else ["", ""]
            table.add_row(width_in_words(factor), f"{epsilon:g}", f"{len(ratios)}", *known)
        yield table

    def _savings(self) -> Printed:
        names = dict.fromkeys(
            name for epsilon in EPSILONS for name in questions_of_fit(self.rows, epsilon=epsilon)
        )
        # Counts move by whole ones: there the best staircase is what is drawn.
        sums = [name for name in names if name != "counts"]
        table = table_titled(
            f"Questions of a default fit of {self.rows} rows: ε, and the share of the noise's "
            "variance that staircase noise would save",
            "ε",
            right=sums,
        )
        for epsilon in EPSILONS:
            asked = questions_of_fit(self.rows, epsilon=epsilon)
            cells = (
                f"{asked[name]:.2f}, {staircase_saving(asked[name]):.1%}" if name in asked else ""
                for name in sums
            )
            table.add_row(f"{epsilon:g}", *cells)
        return table


def _comparisons(found: Found) -> Printed:
    table = table_titled(
        "RMSE over the sd of outputs held out, mean over tables; less the default's, on the same "
        "splits; and the table where it is most above the default's",
        "tables",
        "bounds",
        "ε",
        "way",
        right=("error", "less the default", "on the worst table"),
    )
    for comparison, ways in COMPARISONS.items():
        names = [name for (of, name), way in found.errors if (of, way) == (comparison, DEFAULT)]
        if not names:
            continue
        errors = {
            way: np.array([found.errors[(comparison, name), way] for name in names])[:, :, 0]
            for way in (DEFAULT, NOISY_MEAN, *ways)
        }
        group, factor, epsilon = comparison
        for way, each in errors.items():
            apart = each - errors[DEFAULT]
            cells = (
                ("", "")
                if way == DEFAULT
                else (
                    with_error(*mean_and_error(apart), "+.3f"),
                    f"{apart.mean(axis=1).max():+.3f}",
                )
            )
            mean = with_error(*mean_and_error(each), ".3f")
            table.add_row(group, width_in_words(factor), f"{epsilon:g}", way, mean, *cells)
        table.add_section()
    return table
