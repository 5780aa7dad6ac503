"""Scales of curves and noise on public tables, in widths of their bounds: what a prior can know.

Of each table that a rule picks (`experiments.r_tables`), the likelihood of the default prior with
other scales, given the outputs themselves: of its curve and slope together, in multiples of those
that the default takes from the width of the bounds, and of the noise, as a share of that width. The
distribution of both over tables is then the one under which all tables are most probable (Kiefer
and Wolfowitz 1956), by expectation and maximisation on a grid (Laird 1978).

And of the residuals that are left by the best of these scales, each row's predicted from all other
rows: what their distances by the logarithm, as `cloakgp.privacy.questions.spread` asks for them,
tell of their root mean square under the law that is assumed there, without any noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed
from scipy import linalg, optimize, special

from cloakgp.models.defaults import LEVEL_SD_SHARE, default_kernel
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.posterior.clipped import moments_of_spread
from cloakgp.utils.arrays import Array
from experiments.claims_samples import PublicTable
from experiments.framework import Experiment, Progress, Rows, table_titled
from experiments.r_tables import COUNT, HALVES, Half, half_of, picked

SCALES = (3.0, 1.7, 1.0, 0.6, 0.3, 0.1, 0.03)
NOISES = (0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.03, 0.015, 0.007)
SWEEPS = 500
# How far the sd that distances tell is looked for, by its logarithm.
REACH = 8.0
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def log_likelihoods(table: PublicTable, *, rows: int) -> Array:
    """Return the log density of outputs by scale and noise, less its greatest value.

    Parameters
    ----------
    table : PublicTable
    rows : int
        How many are taken, at most.

    Returns
    -------
    array of shape (len(SCALES), len(NOISES))
    """
    [size] = table.sizes((rows,))
    sample = table.sample(0, rows=size)
    kernel = default_kernel(sample.X, width=1.0)
    level = LEVEL_SD_SHARE**2
    curve = kernel(sample.X) - level
    outputs = (sample.outputs - table.bounds.middle) / table.bounds.width
    found = np.empty((len(SCALES), len(NOISES)))
    for place, scale in enumerate(SCALES):
        values, vectors = linalg.eigh(scale**2 * curve + level)
        along = np.square(vectors.T @ outputs)
        for other, noise in enumerate(NOISES):
            variances = np.maximum(values, 0.0) + noise**2
            found[place, other] = -0.5 * float(np.sum(along / variances + np.log(variances)))
    return found - found.max()


def off_by_law(table: PublicTable, logs: Array, *, rows: int) -> float:
    """Return by how much the log rms of residuals is above what their distances tell of it.

    Parameters
    ----------
    table : PublicTable
    logs : array of shape (len(SCALES), len(NOISES))
        Of `log_likelihoods`.
    rows : int
    """
    place, other = np.unravel_index(int(logs.argmax()), logs.shape)
    [size] = table.sizes((rows,))
    sample = table.sample(0, rows=size)
    curve = default_kernel(sample.X, width=1.0)(sample.X) - LEVEL_SD_SHARE**2
    outputs = (sample.outputs - table.bounds.middle) / table.bounds.width
    precision = linalg.inv(
        SCALES[place] ** 2 * curve + LEVEL_SD_SHARE**2 + NOISES[other] ** 2 * np.eye(size)
    )
    # Rasmussen and Williams 2006, equation 5.12.
    return off_of(precision @ outputs / np.diag(precision))


def off_of(residuals: Array) -> float:
    """Return by how much the log rms of numbers is above what their distances tell of it.

    Parameters
    ----------
    residuals : array of shape (N,)

    Examples
    --------
    >>> off_of(np.linspace(-1.0, 1.0, 1000)) < 0 < off_of(np.linspace(-1.0, 1.0, 1000) ** 5)
    True
    """
    unit = residuals / np.sqrt(np.mean(np.square(residuals)))
    asked = SpreadQuestion(mean=np.zeros(1), sd=np.ones(1))
    share = float(asked.place(unit[:, None]).mean())

    def above(log_sd: float) -> float:
        variance = np.exp([2.0 * log_sd])
        return float(moments_of_spread(asked, mean=np.zeros(1), variance=variance)[0][0]) - share

    return -float(optimize.brentq(above, -REACH, REACH))


def most_probable_odds(logs: Array) -> Array:
    """Return the distribution on a grid under which all tables together are most probable.

    Parameters
    ----------
    logs : array of shape (tables, points)
        Log likelihoods of each.

    Examples
    --------
    >>> most_probable_odds(np.log([[1.0, 1e-9], [1.0, 1e-9], [1e-9, 1.0]])).round(2)
    array([0.67, 0.33])
    """
    likelihoods = np.exp(logs)
    odds = np.full(logs.shape[1], 1.0 / logs.shape[1])
    for _ in range(SWEEPS):
        shares = odds * likelihoods
        odds = np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)
    return odds


@dataclass(frozen=True, eq=False)
class FoundScales:
    """What was found of tables.

    Attributes
    ----------
    odds : array of shape (len(SCALES), len(NOISES))
    laws : array of shape (tables,)
        Of `off_by_law`.
    """

    odds: Array
    laws: Array


@dataclass(frozen=True)
class TableScales(Experiment[FoundScales]):
    """Scales of curves and noise on public tables, in widths of their bounds.

    Attributes
    ----------
    half : {"chosen on", "judged"}
    rows : int
    count : int
        Of picked tables, before they are divided into halves.
    """

    name: ClassVar[str] = "table-scales"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"rows": 40, "count": 6})

    half: Annotated[str, typer.Option(help=f"Of tables: {' or '.join(HALVES)}.")] = HALVES[0]
    rows: Rows = 150
    count: Annotated[int, typer.Option(min=2, help="Tables of both halves.")] = COUNT

    def compute(self, progress: Progress) -> FoundScales:
        """Return the odds of scales, and what laws of residuals make of distances."""
        chosen = [
            table for name, table in picked(self.count).items() if half_of(name) == self._half
        ]
        logs, laws = [], []
        with progress("table-scales", steps=len(chosen)) as tick:
            for table in chosen:
                logs.append(log_likelihoods(table, rows=self.rows))
                laws.append(off_by_law(table, logs[-1], rows=self.rows))
                tick()
        odds = most_probable_odds(np.array(logs).reshape(len(logs), -1))
        return FoundScales(odds=odds.reshape(len(SCALES), len(NOISES)), laws=np.array(laws))

    def tables(self, found: FoundScales) -> Iterable[Printed | str]:
        """Lay out the odds of each scale alone, and the spread of their logarithms."""
        yield f"Tables {self._half}, {self.rows} rows at most, without privacy."
        parts: tuple[tuple[str, tuple[float, ...], Array], ...] = (
            ("noise, in widths of the bounds", NOISES, found.odds.sum(axis=0)),
            ("curve and slope, in those of the default prior", SCALES, found.odds.sum(axis=1)),
        )
        for what, places, odds in parts:
            logs = np.log(places)
            mean = float(odds @ logs)
            spread = float(np.sqrt(odds @ np.square(logs - mean)))
            table = table_titled(
                f"Sd of {what}: shares of tables",
                "of",
                right=(*(f"{each:g}" for each in places), "geometric mean", "sd of the logarithm"),
            )
            shares = (f"{each:.0%}" for each in odds)
            table.add_row("tables", *shares, f"{np.exp(mean):.2f}", f"{spread:.2f}")
            yield table
        table = table_titled(
            "Logarithm of the rms of residuals, less that which their distances tell under the law "
            "that is assumed: quantiles over tables; and the sd of a normal law with as much "
            "between the first and the last",
            "of",
            right=(*(f"{level:.0%}" for level in LEVELS), "sd"),
        )
        ends = np.quantile(found.laws, LEVELS)
        sd = float(ends[-1] - ends[0]) / (special.ndtri(LEVELS[-1]) - special.ndtri(LEVELS[0]))
        table.add_row("residuals", *(f"{each:.2f}" for each in ends), f"{sd:.2f}")
        yield table

    @property
    def _half(self) -> Half:
        [half] = [each for each in HALVES if each == self.half]
        return half
