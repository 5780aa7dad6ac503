"""Planning: memory and time of a fit, and a sparse model where an exact one is too large.

What is counted grows with the number of rows. Of N rows and P query points an exact process keeps
several N × N matrices at once while its kernel is evaluated, and the design several N × P ones; a
sparse process on M inducing inputs has N × M in the place of N × N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.fitting.defaults import INDUCING, LARGEST_DEFAULT_QUERY
from cloakgp.fitting.strategies import MANY_ROWS
from cloakgp.privacy.checks import warn_caller
from cloakgp.utils.arrays import as_matrix
from cloakgp.utils.memory import GIGABYTE, memory_budget
from cloakgp.utils.names import AUTO
from cloakgp.utils.warned import CloakWarning

# A sparse model that is taken unasked has no more inducing inputs than one for so many rows.
ROWS_PER_INDUCING = 10
# How many float64 matrices of one shape are held at a time, at most: as measured.
EXACT_MATRICES, INDUCING_MATRICES, QUERY_MATRICES = 6, 18, 4
# Multiplications of a design per entry of an exact covariance, or of a sparse model's features, and
# how many a second a core does of the usual mix.
EXACT_WORK, SPARSE_WORK, SPEED = 1.6e4, 3e5, 1e10


class SparseModelWarning(CloakWarning):
    """An exact Gaussian process of these rows would take too much memory: it will be sparse.

    Raised before a private column is read. Set ``inducing`` to choose the sparse model, or
    ``memory`` to allow more.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     plan_fit(4_000, n_inputs=2, memory=0.5).announce()
    >>> [one.category.__name__ for one in said]
    ['SparseModelWarning']
    """


@dataclass(frozen=True)
class FitCost:
    """The cost of a fit.

    Attributes
    ----------
    memory : float
        The most that is held at a time, in bytes, within a factor of two.
    seconds : float
        On one core, and no better than an order of magnitude.
    """

    memory: float
    seconds: float


def fit_cost(rows: int, *, queries: int, inducing: int | None = None) -> FitCost:
    """Estimate the cost of a fit that holds all its rows.

    Parameters
    ----------
    rows : int
        N.
    queries : int
        P, the number of query points.
    inducing : int, optional
        M, of a sparse process; an exact one if not given.

    Returns
    -------
    FitCost

    Examples
    --------
    >>> cost = fit_cost(28_155, queries=500)
    >>> round(cost.memory / 1e9), round(cost.seconds / 60)
    (39, 34)
    """
    if inducing is None:
        per_row = EXACT_MATRICES * rows + QUERY_MATRICES * queries
        work = EXACT_WORK * rows**2 + rows**3 / 3
    else:
        per_row = INDUCING_MATRICES * inducing + QUERY_MATRICES * queries
        work = SPARSE_WORK * rows * inducing
    return FitCost(memory=8.0 * rows * per_row, seconds=work / SPEED)


@dataclass(frozen=True, eq=False)
class FitPlan:
    """How a table will be fitted.

    Attributes
    ----------
    inducing : int, array of shape (M, D) or None
        Of a sparse process; None for an exact one.
    by_passes : bool
        Whether the rows are gone through chunk by chunk, so that memory does not grow with them.
    notice : str
        Why this is not what was declared; empty if it is.
    resolves : bool
        Whether inducing inputs are chosen anew, and more of them, for the kernel that is learned.
    """

    inducing: int | ArrayLike | None
    by_passes: bool
    notice: str = ""
    resolves: bool = False

    def announce(self) -> None:
        """Warn, at the line that called this package, if a sparse model was taken unasked.

        Warns
        -----
        SparseModelWarning
        """
        if self.notice:
            warn_caller(self.notice, SparseModelWarning)


def plan_fit(
    rows: int,
    *,
    n_inputs: int,
    queries: int | None = None,
    inducing: int | ArrayLike | None = None,
    memory: float | None = None,
    passes: bool = False,
    held: bool = False,
    at_rows: bool = False,
    n_outputs: int = 1,
) -> FitPlan:
    """Choose between an exact process, a sparse one, and passes over the rows.

    Parameters
    ----------
    rows : int
        N.
    n_inputs : int
        D.
    queries : int, optional
        P; one per row, and at most 500, if not given.
    inducing : int, array of shape (M, D) or "auto", optional
        As declared; None for an exact process if there is room for it, and "auto" for that of few
        rows, and for passes over more.
    memory : float, optional
        Gigabytes that the fit may take; half of what is free if not given.
    passes : bool
        Whether a sparse model of more than 5,000 rows can be fitted chunk by chunk.
    held : bool
        Whether such rows are held all the same where there is room for them.
    at_rows : bool
        Whether questions are about every row, whatever the query points.
    n_outputs : int
        T, of every row.

    Returns
    -------
    FitPlan

    Raises
    ------
    ValueError
        If even a sparse process would take more than it may, or ``memory`` makes no sense.

    Examples
    --------
    >>> plan_fit(4_000, n_inputs=2, memory=4.0).inducing
    >>> plan = plan_fit(40_000, n_inputs=2, memory=4.0)
    >>> plan.inducing
    200
    >>> print(plan.notice)
    an exact Gaussian process of 40,000 rows would take some 77 GB of memory and 78 minutes, and 4 \
GB may be used: a sparse one with 200 inducing inputs is fitted instead
    """
    budget = memory_budget(memory)
    points = (rows if at_rows else min(rows, LARGEST_DEFAULT_QUERY)) if queries is None else queries
    entries, points = rows * n_outputs, points * n_outputs

    def sparse(count: int) -> bool:
        """Return whether a sparse process goes by passes, if there is room for it."""
        many = passes and rows > MANY_ROWS
        if many and not held:
            return True
        queried = entries if at_rows else points
        cost = fit_cost(entries, queries=queried, inducing=count * n_outputs)
        if cost.memory > budget:
            if many:
                return True
            raise ValueError(_refusal(rows, cost, budget=budget))
        return False

    if resolves_inducing(inducing):
        if passes and rows > MANY_ROWS and not held:
            return FitPlan(inducing=INDUCING, by_passes=True, resolves=True)
        inducing = None
    if inducing is not None:
        return FitPlan(inducing=inducing, by_passes=sparse(_count(inducing, columns=n_inputs)))
    exact = fit_cost(entries, queries=entries if at_rows else points)
    if exact.memory <= budget:
        return FitPlan(inducing=None, by_passes=False)
    count = max(1, min(INDUCING, rows // ROWS_PER_INDUCING))
    return FitPlan(
        inducing=count,
        by_passes=sparse(count),
        notice=f"{_demand(rows, exact)}, and {_gigabytes(budget)} may be used: a sparse one with "
        f"{count} inducing inputs is fitted instead",
    )


def resolves_inducing(inducing: int | ArrayLike | None) -> bool:
    """Return whether inducing inputs are to be chosen for the kernel that is learned.

    Parameters
    ----------
    inducing : int, array-like of shape (M, D), "auto" or None
    """
    return isinstance(inducing, str) and inducing == AUTO


def check_exact(
    rows: int, *, queries: int | None = None, memory: float | None = None, at_a_time: int = 1
) -> None:
    """Refuse an exact process for which there is no room, where no sparse one can take its place.

    Parameters
    ----------
    rows : int
        N.
    queries : int, optional
        P; one per row if not given.
    memory : float, optional
        Gigabytes that all may take together; half of what is free if not given.
    at_a_time : int
        How many are fitted side by side.

    Raises
    ------
    ValueError
        If they would take more.

    Examples
    --------
    >>> check_exact(1_000, memory=1.0)
    """
    cost, budget = (
        fit_cost(rows, queries=rows if queries is None else queries),
        memory_budget(memory),
    )
    if cost.memory * at_a_time > budget:
        several = f", and {at_a_time} are fitted at a time" if at_a_time > 1 else ""
        raise ValueError(
            f"{_demand(rows, cost)}{several}; {_gigabytes(budget)} may be used: take inducing "
            "inputs or fewer rows, or allow more memory"
        )


def _count(inducing: int | ArrayLike, *, columns: int) -> int:
    """Return M. Other values than counts and matrices are refused with the prior."""
    if isinstance(inducing, int | np.integer):
        return int(inducing)
    return len(as_matrix(inducing, name="inducing", columns=columns))


def _demand(rows: int, cost: FitCost) -> str:
    return (
        f"an exact Gaussian process of {rows:,} rows would take some {_gigabytes(cost.memory)} of "
        f"memory and {_minutes(cost.seconds)}"
    )


def _refusal(rows: int, cost: FitCost, *, budget: float) -> str:
    return (
        f"even a sparse Gaussian process of {rows:,} rows would take some "
        f"{_gigabytes(cost.memory)} of memory here, and {_gigabytes(budget)} may be used: take "
        "fewer inducing inputs, fewer query points or fewer rows, or allow more memory"
    )


def _gigabytes(size: float) -> str:
    return f"{size / GIGABYTE:.2g} GB"


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"
