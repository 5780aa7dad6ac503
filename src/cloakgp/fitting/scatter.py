"""Scatter in a schedule: in how many strata it is asked how noisy outputs are.

It costs the same in one as in several: one output moves one answer. But noise on the answer of a
stratum is a larger share of its rows. So there are as many strata as leave the logarithm of the
noise sd of each uncertain by no more than `UNSURE` by privacy alone; where that is fewer than
`FEWEST`, all rows are asked about alike (`cloakgp.privacy.questions.spread`). All of it depends on
public numbers.
"""

from __future__ import annotations

from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import Strata, Table
from cloakgp.models.likelihoods import Likelihood

# By how much the mean answer of a row of Gaussian outputs grows with the log of their noise sd.
SLOPE = 0.31
# The noise of an answer, in the log of the noise sd of its stratum.
UNSURE = 0.3
# How many strata, and how many rows each has at least.
FEWEST, MOST, LEAST_ROWS = 3, 8, 30


def choose_count(budget: Budget, *, rows: int, largest_group: int = 1) -> int:
    """Return how many strata there are; 1 if all rows are asked about alike.

    Parameters
    ----------
    budget : Budget
        Of the question.
    rows : int
        What counts of rows add up to.
    largest_group : int
        How much one person adds to them at most.

    Examples
    --------
    >>> tenth = Budget(0.1, 0.0, noise="laplace")
    >>> [choose_count(tenth, rows=rows) for rows in (100, 500, 1000, 50_000)]
    [1, 3, 6, 8]
    """
    noise = largest_group * budget.unit_sd() / rows
    count = min(int(SLOPE * UNSURE / noise), rows // (LEAST_ROWS * largest_group), MOST)
    return count if count >= FEWEST else 1


def choose_strata_of_scatter(table: Table, budget: Budget, likelihood: Likelihood) -> Strata | None:
    """Return in which strata a table is asked how noisy outputs are; None if in none.

    Parameters
    ----------
    table : Table
    budget : Budget
        Of the question.
    likelihood : Likelihood
        Of the outputs: of numbers, of which there is one in every row, alone it is asked.
    """
    if table.outputs > 1 or not likelihood.linear:
        return None
    count = choose_count(budget, rows=table.counted, largest_group=table.most_counted)
    strata = table.strata(count) if count > 1 else None
    return None if strata is None or len(strata.sizes) == 1 else strata
