"""Samples for what releases claim: public tables and simulated shapes, to fit and to hold out.

Every sample has rows to fit, and others with their outputs held out and divided into public strata:
k-means cells of the inputs, or groups that a shape declares. Bounds are round numbers from general
knowledge; outputs beyond them count as at them, as they would in any release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from types import MappingProxyType

import numpy as np
import pandas as pd
import plotly.data
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.cluster import KMeans

from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.datasets import load_citibike, load_hmeq, load_kung, load_london

HELD_OUT, STRATA = 2_000, 5


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to fit, and rows that are held out.

    Attributes
    ----------
    X, X_test : arrays of shape (N, D) and (P, D)
    outputs, outputs_test : arrays of shape (N,) and (P,)
    strata_test : array of shape (P,)
        From 0.
    bounds : OutputBounds
    """

    X: Array
    outputs: Array
    X_test: Array
    outputs_test: Array
    strata_test: NDArray[np.intp]
    bounds: OutputBounds


class Source(ABC):
    """Where samples come from.

    Attributes
    ----------
    name : str
    """

    name: str

    @abstractmethod
    def sizes(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Return which of these numbers of rows can be fitted; in place of more, all there are."""

    @abstractmethod
    def sample(self, draw: int, *, rows: int) -> Sample:
        """Return a sample, the same for the same draw and number of rows to fit."""


@dataclass(frozen=True, eq=False)
class PublicTable(Source):
    """Public inputs and outputs, split at random.

    Attributes
    ----------
    name : str
    X : array of shape (N, D)
    outputs : array of shape (N,)
    bounds : OutputBounds
    """

    name: str
    X: Array
    outputs: Array
    bounds: OutputBounds

    @classmethod
    def of(
        cls, name: str, table: pd.DataFrame, output: Array, bounds: tuple[float, float]
    ) -> PublicTable:
        """Return a table of the rows where nothing is missing."""
        X, values = table.to_numpy(dtype=np.float64), np.asarray(output, dtype=np.float64)
        known = np.isfinite(X).all(axis=1) & np.isfinite(values)
        limits = OutputBounds(*map(float, bounds))
        return cls(name, X[known], limits.clip(values[known]), limits)

    @property
    def held_out(self) -> int:
        """How many rows are not fitted."""
        return min(HELD_OUT, len(self.X) // 4)

    @cached_property
    def strata(self) -> NDArray[np.intp]:
        """Cells of the whole table, so that they are the same in every draw."""
        return cells_of(self.X)

    def sizes(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Return which numbers of rows can be fitted."""
        return tuple(sorted({min(each, len(self.X) - self.held_out) for each in rows}))

    def sample(self, draw: int, *, rows: int) -> Sample:
        """Split at random."""
        order = np.random.default_rng(draw).permutation(len(self.X))
        test, train = order[: self.held_out], order[self.held_out : self.held_out + rows]
        return Sample(
            X=self.X[train],
            outputs=self.outputs[train],
            X_test=self.X[test],
            outputs_test=self.outputs[test],
            strata_test=self.strata[test],
            bounds=self.bounds,
        )


def cells_of(X: Array) -> NDArray[np.intp]:
    """Return in which of a few k-means cells inputs lie, each scaled by its sd, shape (N,).

    Examples
    --------
    >>> cells = cells_of(np.repeat([0.0, 1.0, 5.0, 6.0, 9.0], 3)[:, None])
    >>> len(set(cells.tolist())), len(set(cells[:3].tolist()))
    (5, 1)
    """
    sds = X.std(axis=0)
    scaled = X / np.where(sds > 0, sds, 1.0)
    found = KMeans(STRATA, n_init=1, random_state=0).fit_predict(scaled)
    return np.asarray(found, dtype=np.intp)


Drawn = tuple[Array, Array, NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class Shape(Source):
    """Outputs drawn from a law that is known.

    Attributes
    ----------
    name : str
    law : callable
        Generator and number of rows → inputs, outputs and strata.
    bounds : OutputBounds
    """

    name: str
    law: Callable[[np.random.Generator, int], Drawn]
    bounds: OutputBounds

    def sizes(self, rows: Sequence[int]) -> tuple[int, ...]:
        """Return all of them."""
        return tuple(rows)

    def sample(self, draw: int, *, rows: int) -> Sample:
        """Draw rows to fit and rows to hold out."""
        rng = np.random.default_rng((draw, rows))
        (X, outputs, _), (X_test, test, strata) = self.law(rng, rows), self.law(rng, HELD_OUT)
        return Sample(
            X, self.bounds.clip(outputs), X_test, self.bounds.clip(test), strata, self.bounds
        )


def heights(rng: np.random.Generator, rows: int) -> Drawn:
    """Draw heights by age, one person in ten a child; strata are adults and children."""
    child = rng.uniform(size=rows) < 0.1
    age = np.where(child, rng.uniform(2, 16, rows), rng.uniform(16, 89, rows))
    height = np.where(child, 80 + 5.5 * age, 168) + rng.normal(size=rows) * np.where(child, 5, 7)
    return age[:, None], height, child.astype(np.intp)


def skewed(rng: np.random.Generator, rows: int) -> Drawn:
    """Draw outputs of a long upper tail, which scatter more where they are larger."""
    X = rng.uniform(size=(rows, 2))
    level = 10.0 * np.exp(1.2 * np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1])
    return X, level * rng.gamma(2.0, 0.5, size=rows), _fifths(X[:, 0])


def counts(rng: np.random.Generator, rows: int) -> Drawn:
    """Draw counts, Poisson, of rates from 0.2 to 20, asked as numbers."""
    X = rng.uniform(size=(rows, 2))
    rates = 2.0 * 10.0 ** (np.sin(2.2 * np.pi * X[:, 0] + 0.5) * np.cos(1.5 * X[:, 1]))
    return X, rng.poisson(rates).astype(np.float64), _fifths(X[:, 0])


def zeros_and_ones(rng: np.random.Generator, rows: int, *, most: float) -> Drawn:
    """Draw zeros and ones: hardly a one at one side, and for up to a share at the other."""
    X = rng.uniform(size=(rows, 2))
    chance = most / (1.0 + np.exp(5.0 - 10.0 * X[:, 0]))
    return X, (rng.uniform(size=rows) < chance).astype(np.float64), _fifths(X[:, 0])


def mostly_nothing(rng: np.random.Generator, rows: int) -> Drawn:
    """Draw amounts that up to three in ten have, of any size, and nobody else."""
    X = rng.uniform(size=(rows, 2))
    amounts = np.where(rng.uniform(size=rows) < 0.3 * X[:, 0], rng.uniform(size=rows), 0.0)
    return X, amounts, _fifths(X[:, 0])


def small_amounts(rng: np.random.Generator, rows: int) -> Drawn:
    """Draw amounts that up to three in ten have, a tenth of the bounds in the mean."""
    X = rng.uniform(size=(rows, 2))
    amounts = np.minimum(rng.exponential(0.1, size=rows), 1.0)
    return X, np.where(rng.uniform(size=rows) < 0.3 * X[:, 0], amounts, 0.0), _fifths(X[:, 0])


def _fifths(shares: Array) -> NDArray[np.intp]:
    return np.minimum((STRATA * shares).astype(np.intp), STRATA - 1)


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        each.name: each
        for each in (
            Shape("a small group", heights, OutputBounds(40.0, 200.0)),
            Shape("skewed", skewed, OutputBounds(0.0, 200.0)),
            Shape("counts", counts, OutputBounds(0.0, 60.0)),
        )
    }
)

# Most outputs are one and the same: asked for by name.
ALIKE: Mapping[str, Shape] = MappingProxyType(
    {
        each.name: each
        for each in (
            Shape("0 or 1", partial(zeros_and_ones, most=1.0), OutputBounds(0.0, 1.0)),
            Shape("mostly nothing", mostly_nothing, OutputBounds(0.0, 1.0)),
            Shape("small amounts", small_amounts, OutputBounds(0.0, 1.0)),
            Shape("rarely 1", partial(zeros_and_ones, most=0.1), OutputBounds(0.0, 1.0)),
        )
    }
)


@cache
def public_tables() -> Mapping[str, PublicTable]:
    """Return the papers' tables, scikit-learn's and plotly's with several outputs each, by name."""
    people, homes, trips, loans = load_kung(), load_london(), load_citibike(), load_hmeq()
    nations, tips = plotly.data.gapminder(), plotly.data.tips()
    patients = sklearn_datasets.load_diabetes(scaled=False, as_frame=True).frame
    wine = sklearn_datasets.load_wine(as_frame=True).frame
    cells = sklearn_datasets.load_breast_cancer(as_frame=True).frame
    places, ends = (
        ["easting", "northing"],
        ["start_lat", "start_lon", "end_lat", "end_lon"],
    )
    north, east = (
        111.2 * (trips["end_lat"] - trips["start_lat"]),
        84.3 * (trips["end_lon"] - trips["start_lon"]),
    )
    nations = nations.assign(wealth=np.log10(nations["gdpPercap"]), people=np.log10(nations["pop"]))
    tips = tips.assign(smokes=tips["smoker"] == "Yes", dinner=tips["time"] == "Dinner")
    of = PublicTable.of
    listed = [
        of("!Kung, height by age", people[["age"]], people["height"], (40, 200)),
        of("!Kung, height by age and sex", people[["age", "male"]], people["height"], (40, 200)),
        of("!Kung, weight by age and sex", people[["age", "male"]], people["weight"], (0, 80)),
        of("London, log price", homes[[*places, "years"]], np.log10(homes["price"]), (4, 7)),
        of("London, price", homes[places], homes["price"], (0, 1_500_000)),
        of("Citi Bike, duration", trips[ends], trips["tripduration"], (0, 3600)),
        of("Citi Bike, log", trips[ends[:2]], np.log10(trips["tripduration"]), (1.5, 4.5)),
        of("Citi Bike, km", trips[ends[:2]], np.hypot(north, east), (0, 15)),
        of("loans, value", loans[["MORTDUE", "CLNO"]], loans["VALUE"], (0, 500_000)),
        of("loans, lent", loans[["VALUE", "CLAGE", "YOJ"]], loans["LOAN"], (0, 100_000)),
        of("loans, due", loans[["VALUE", "CLNO", "CLAGE"]], loans["MORTDUE"], (0, 400_000)),
        of("loans, debt to income", loans[["VALUE", "MORTDUE"]], loans["DEBTINC"], (0, 100)),
        of("loans, lines of credit", loans[["MORTDUE", "CLAGE"]], loans["CLNO"], (0, 80)),
        of("nations, life", nations[["wealth", "year"]], nations["lifeExp"], (20, 90)),
        of("nations, wealth", nations[["lifeExp", "people"]], nations["wealth"], (2, 6)),
        of("tips", tips[["total_bill", "size", "smokes", "dinner"]], tips["tip"], (0, 20)),
        of("diabetes", patients[["age", "bmi", "bp"]], patients["target"], (0, 350)),
        of("wine, alcohol", wine[["color_intensity", "proline"]], wine["alcohol"], (10, 16)),
        of(
            "cells, compactness",
            cells[["mean radius", "mean smoothness"]],
            cells["mean compactness"],
            (0, 0.5),
        ),
    ]
    return {each.name: each for each in listed}


def sources(names: Sequence[str] | None = None) -> list[Source]:
    """Return shapes and tables of these names, or all but those whose outputs are mostly alike.

    Parameters
    ----------
    names : sequence of str, optional

    Examples
    --------
    >>> [each.name for each in sources(["skewed", "counts"])]
    ['skewed', 'counts']
    """
    # Tables are read only where one is meant, as not everybody has them.
    every: Mapping[str, Source] = {**SHAPES, **ALIKE}
    if names is not None and set(names) <= set(every):
        return [every[name] for name in names]
    tables = public_tables()
    if names is None:
        return [*tables.values(), *SHAPES.values()]
    return [{**tables, **every}[name] for name in names]
