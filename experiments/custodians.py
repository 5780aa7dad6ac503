"""Several custodians: errors of one release of all, beside one table and beside a release each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor, Release
from cloakgp.custodians import Plan, simulate
from cloakgp.data import ArrayRows
from cloakgp.privacy.cohorts import DISJOINT
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, RowDraws, Rows, table_titled
from experiments.spread import means_with_errors

BOUNDS, SPREAD = (-3.0, 3.0), 0.5
GRID = np.linspace(0.25, 9.75, 200)[:, None]
# Of the sites, where some drop out.
DROPPED = 2
# Declared, so that releases of different sites have one prior.
SETTINGS: Mapping[str, Any] = MappingProxyType(
    {"kernel": 1.0 * RBF(1.5), "noise_variance": SPREAD**2, "inducing": 20, "learn": None}
)


def curve(X: Array) -> Array:
    """Return what outputs scatter about."""
    found: Array = 1.5 * np.sin(X[:, 0]) + 0.1 * X[:, 0] - 0.5
    return found


@dataclass(frozen=True, eq=False)
class Ward:
    """The rows of all sites, and the budget of each person.

    Attributes
    ----------
    X, outputs : lists of array
        Of each site.
    settings : mapping
        Of `DPGPRegressor`.
    rows_of_person : int
        How many rows next to each other are of one person, all of them at one site.
    """

    X: list[Array]
    outputs: list[Array]
    settings: Mapping[str, Any]
    rows_of_person: int = 1

    @classmethod
    def drawn(
        cls,
        rng: np.random.Generator,
        *,
        sites: int,
        rows: int,
        rows_of_person: int = 1,
        **settings: Any,
    ) -> Ward:
        """Draw so many rows for each site; every site sees its own part of the inputs more."""
        X, outputs = [], []
        for site in range(sites):
            centre = 10.0 * (site + 0.5) / sites
            near = rng.normal(centre, 1.5, size=rows) % 10.0
            places = np.where(rng.uniform(size=rows) < 0.5, near, rng.uniform(0, 10, size=rows))
            X.append(places[:, None])
            outputs.append(curve(X[-1]) + rng.normal(scale=SPREAD, size=rows))
        return cls(X, outputs, {**SETTINGS, "bounds": BOUNDS, **settings}, rows_of_person)

    def model(self) -> DPGPRegressor:
        """Return the estimator, that asks one question."""
        return DPGPRegressor(**self.settings, stages=None, interval=False)

    def persons_at(self, site: int) -> list[str] | None:
        """Return whose rows a site has; None if each is of another person."""
        if self.rows_of_person == 1:
            return None
        return [f"{site}-{row // self.rows_of_person}" for row in range(len(self.X[site]))]

    def of_custodians(
        self, *, colluding: int, dropped: int = 0, sites_of_person: int | None = 1
    ) -> Release:
        """Return one release of several custodians."""
        names = [f"site-{number}" for number in range(len(self.X))]
        persons: dict[str, Any] = {}
        if self.rows_of_person > 1:
            persons = {
                "person_name": "person",
                "rows_of_person": self.rows_of_person,
                "sites_of_person": sites_of_person,
            }
        plan = Plan.of(self.model(), sites=names, input_names=["x"], colluding=colluding, **persons)
        tables = {
            name: ArrayRows(self.X[site], self.outputs[site], groups=self.persons_at(site), jobs=1)
            for site, name in enumerate(names)
        }
        release = simulate(plan, tables, dropping=names[:dropped])
        assert isinstance(release, Release)
        return release

    def of_one_table(self) -> Release:
        """Return the release of somebody who has all rows."""
        persons = None
        if self.rows_of_person > 1:
            persons = [one for site in range(len(self.X)) for one in self.persons_at(site) or ()]
        rows = ArrayRows(
            np.concatenate(self.X), np.concatenate(self.outputs), groups=persons, jobs=1
        )
        return self.model().fit_rows(rows).release_

    def of_each(self) -> Release:
        """Return the releases of all sites, combined: nobody is in two."""
        first, *others = (
            # Inducing inputs of each would be its own, and so would be its prior.
            self.model()
            .set_params(inducing=None)
            .fit(X, outputs, groups=self.persons_at(site))
            .release_
            for site, (X, outputs) in enumerate(zip(self.X, self.outputs, strict=True))
        )
        return first.combine(*others, people=DISJOINT)


WAYS: Mapping[str, Callable[[Ward], Release]] = MappingProxyType(
    {
        "one table": Ward.of_one_table,
        "custodians, none of whom collude": lambda ward: ward.of_custodians(colluding=0),
        "custodians, two of whom may collude": lambda ward: ward.of_custodians(colluding=2),
        f"the same, and {DROPPED} have dropped out": lambda ward: ward.of_custodians(
            colluding=2, dropped=DROPPED
        ),
        "a release of each, combined": Ward.of_each,
    }
)
ANYWHERE = "two of whom may collude, and a person may be at any of them"


def ways_of(rows_of_person: int) -> Mapping[str, Callable[[Ward], Release]]:
    """Return the ways of fitting: one more where persons have several rows."""
    if rows_of_person == 1:
        return WAYS
    found = dict(WAYS)
    apart = found.pop("a release of each, combined")
    return {
        **found,
        ANYWHERE: lambda ward: ward.of_custodians(colluding=2, sites_of_person=None),
        "a release of each, combined": apart,
    }


@dataclass(frozen=True)
class Custodians(Experiment[dict[str, list[float]]]):
    """Sites that trust nobody with their outputs: one release of all, beside other ways.

    Errors are root mean squares over the inputs, against the curve, as a share of the bounds'
    width. Where persons have several rows, nobody is at two sites, as all promise, but where a
    person may be at any of them.
    """

    name: ClassVar[str] = "custodians"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"rows": 12, "sites": 6, "draws": 1})

    rows: Rows = 100
    sites: Annotated[int, typer.Option(help="Number of custodians.")] = 10
    draws: RowDraws = 12
    rows_of_person: Annotated[int, typer.Option(help="How many rows each person has.")] = 1
    epsilon: Annotated[float, typer.Option(help="Budget of each person.")] = 1.0
    delta: Annotated[float, typer.Option(help="0: Laplace noise.")] = 0.0

    def compute(self, progress: Progress) -> dict[str, list[float]]:
        """Return errors of each draw by the way of fitting."""
        ways = ways_of(self.rows_of_person)
        found: dict[str, list[float]] = {way: [] for way in ways}
        with progress("draws", steps=self.draws * len(ways)) as tick:
            for draw in range(self.draws):
                ward = Ward.drawn(
                    np.random.default_rng(draw),
                    sites=self.sites,
                    rows=self.rows,
                    rows_of_person=self.rows_of_person,
                    epsilon=self.epsilon,
                    delta=self.delta,
                    noise="gaussian" if self.delta else "laplace",
                )
                for way, release_of in ways.items():
                    off = release_of(ward).predict(GRID) - curve(GRID)
                    width = BOUNDS[1] - BOUNDS[0]
                    found[way].append(float(np.sqrt(np.mean(off**2))) / width)
                    tick()
        return found

    @property
    def _persons(self) -> str:
        return "" if self.rows_of_person == 1 else f", {self.rows_of_person} of each person"

    def tables(self, found: dict[str, list[float]]) -> Iterable[Table | str]:
        """Lay out errors by the way of fitting."""
        guarantee = f"({self.epsilon:g}, {self.delta:g})"
        table = table_titled(
            f"{self.sites} custodians of {self.rows} rows{self._persons}, {guarantee}, "
            f"{self.draws} draws",
            "way",
            right=["error, % of the width"],
        )
        for way, errors in found.items():
            table.add_row(way, *means_with_errors([[100 * error] for error in errors]))
        yield table
