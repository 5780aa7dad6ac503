"""Delinquent credit lines and default (2021 paper, section 6.4 and figure 6).

HMEQ's DELINQ is missing in 580 of 5960 rows, and what is missing carries the label: 12 % default
there, 21 % where it is known. Those 580 rows are left out, as nothing can be predicted from an
input that is not there; no other column is used, so no other row is lost.

As in the paper, two hundred rows are drawn so that counts and defaults are about balanced. The draw
looks at the labels: it makes the example, and the guarantee is about the two hundred rows drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from cloakgp.arrays import Array
from cloakgp.experiments.classes import Forecast, Mean, Method, Task
from cloakgp.experiments.classifiers import ours, papers_method, without_privacy
from cloakgp.experiments.crossvalidation import Tick

ROWS = 200
KERNEL = RBF(4.0)
# The paper's figure shows 0 to 14.
COUNTS = np.arange(15.0)
SEED = 20210604

NO_PRIVACY, PAPERS = "no privacy", "papers' mechanism"
SAME_KERNEL, DEFAULTS = "bayes, this kernel", "bayes, untouched defaults"
EXACT = "the same, exact noise"

METHODS: dict[str, Method] = {
    NO_PRIVACY: without_privacy(KERNEL),
    PAPERS: papers_method(KERNEL),
    EXACT: papers_method(KERNEL, calibration="exact"),
    SAME_KERNEL: ours(KERNEL),
    DEFAULTS: ours(),
}


def known(loans: pd.DataFrame) -> pd.DataFrame:
    """Return the loans whose count of delinquent credit lines is known.

    Parameters
    ----------
    loans : DataFrame
        With columns DELINQ and BAD.
    """
    return loans.dropna(subset=["DELINQ"]).reset_index(drop=True)


def balanced(loans: pd.DataFrame, *, rng: np.random.Generator) -> pd.DataFrame:
    """Return 200 loans, of counts and defaults as even as there are loans for.

    Drawn one after another without replacement: either label with equal weight, and within it
    every count with equal weight, as long as there are loans of it.

    Parameters
    ----------
    loans : DataFrame
        Without missing counts.
    rng : Generator
    """
    sizes = loans.groupby(["DELINQ", "BAD"])["BAD"].transform("size").to_numpy(dtype=float)
    cells = loans.groupby("BAD")["DELINQ"].transform("nunique").to_numpy(dtype=float)
    weights = 1.0 / (sizes * cells)
    drawn = rng.choice(len(loans), size=ROWS, replace=False, p=weights / weights.sum())
    return loans.iloc[drawn].reset_index(drop=True)


def task(loans: pd.DataFrame, *, seed: int) -> Task:
    """Return one draw of 200 loans, judged by 200 others that are drawn in the same way.

    Parameters
    ----------
    loans : DataFrame
    seed : int
        Of which loans are drawn; not of privacy noise.
    """
    rng, rows = np.random.default_rng([SEED, seed]), known(loans)
    # Halves, so that nobody is both learned from and judged on.
    side = rng.permutation(len(rows)) % 2 == 0
    learned, judged = balanced(rows[side], rng=rng), balanced(rows[~side], rng=rng)
    return Task(
        X=learned[["DELINQ"]].to_numpy(dtype=float),
        y=learned["BAD"].to_numpy() == 1,
        X_test=judged[["DELINQ"]].to_numpy(dtype=float),
        y_test=judged["BAD"].to_numpy() == 1,
    )


def tasks(loans: pd.DataFrame, draws: int) -> Iterator[Task]:
    """Yield so many draws of loans.

    Parameters
    ----------
    loans : DataFrame
    draws : int
    """
    return (task(loans, seed=number) for number in range(draws))


@dataclass(frozen=True, eq=False)
class Curves:
    """Probability of default by count, in many releases about one draw of loans.

    Attributes
    ----------
    learned : Task
        Its test points are the counts, whose labels stand for nothing.
    releases : mapping of method to Forecast
        Arrays of shape (releases, counts, 2).
    """

    learned: Task
    releases: Mapping[str, Forecast]

    def probabilities(self, name: str) -> Array:
        """Return P(default) as a method states it, shape (releases, counts).

        The papers' leaves the privacy noise out; the others integrate over it.

        Parameters
        ----------
        name : str
            Of a method.
        """
        said = self.releases[name]
        stated = said.plugged if name in (PAPERS, EXACT) else said.integrated
        return np.asarray(stated[:, :, 1], dtype=np.float64)

    @property
    def reference(self) -> Array:
        """Without privacy, shape (counts,)."""
        return np.asarray(self.probabilities(NO_PRIVACY)[0], dtype=np.float64)

    def distance(self, name: str) -> Mean:
        """Return how far releases lie from the curve without privacy, root mean square over counts.

        Parameters
        ----------
        name : str
            Of a method.
        """
        apart = self.probabilities(name) - self.reference
        return Mean.of(np.sqrt(np.square(apart).mean(axis=1)))


def curves(loans: pd.DataFrame, *, releases: int, tick: Tick = lambda: None) -> Curves:
    """Release about one draw of loans again and again: the upper and middle parts of figure 6.

    Parameters
    ----------
    loans : DataFrame
    releases : int
    tick : callable, optional
        Called after every method.
    """
    drawn = balanced(known(loans), rng=np.random.default_rng(SEED))
    at_counts = Task(
        X=drawn[["DELINQ"]].to_numpy(dtype=float),
        y=drawn["BAD"].to_numpy() == 1,
        X_test=COUNTS[:, None],
        y_test=np.zeros(len(COUNTS), dtype=bool),
    )
    found = {}
    for name, method in METHODS.items():
        repeats = 1 if name == NO_PRIVACY else releases
        said = [method(at_counts, number) for number in range(repeats)]
        found[name] = Forecast(
            integrated=np.array([one.integrated for one in said]),
            plugged=np.array([one.plugged for one in said]),
        )
        tick()
    return Curves(learned=at_counts, releases=found)
