"""Scales of curves and noise on public tables, in widths of their bounds: what a prior can know.

Of each table that a rule picks (`experiments.r_tables`), the likelihood of the default prior with
other scales, given the outputs themselves: of its curve and slope together, in multiples of those
that the default takes from the width of the bounds, and of the noise, as a share of that width. The
distribution of both over tables is then the one under which all tables are most probable (Kiefer
and Wolfowitz 1956), by expectation and maximisation on a grid (Laird 1978).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table as Printed
from scipy import linalg

from cloakgp.models.defaults import LEVEL_SD_SHARE, default_kernel
from cloakgp.utils.arrays import Array
from experiments.claims_samples import PublicTable
from experiments.framework import Experiment, Progress, Rows, table_titled
from experiments.r_tables import COUNT, HALVES, Half, half_of, picked

SCALES = (3.0, 1.7, 1.0, 0.6, 0.3, 0.1, 0.03)
NOISES = (0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.03, 0.015, 0.007)
SWEEPS = 500


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


@dataclass(frozen=True)
class TableScales(Experiment[Array]):
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

    def compute(self, progress: Progress) -> Array:
        """Return the odds, shape (scales, noises)."""
        chosen = [
            table for name, table in picked(self.count).items() if half_of(name) == self._half
        ]
        logs = []
        with progress("table-scales", steps=len(chosen)) as tick:
            for table in chosen:
                logs.append(log_likelihoods(table, rows=self.rows).ravel())
                tick()
        return most_probable_odds(np.array(logs)).reshape(len(SCALES), len(NOISES))

    def tables(self, found: Array) -> Iterable[Printed | str]:
        """Lay out the odds of each scale alone, and the spread of their logarithms."""
        yield f"Tables {self._half}, {self.rows} rows at most, without privacy."
        parts: tuple[tuple[str, tuple[float, ...], Array], ...] = (
            ("noise, in widths of the bounds", NOISES, found.sum(axis=0)),
            ("curve and slope, in those of the default prior", SCALES, found.sum(axis=1)),
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

    @property
    def _half(self) -> Half:
        [half] = [each for each in HALVES if each == self.half]
        return half
