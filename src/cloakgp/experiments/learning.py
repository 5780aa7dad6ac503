"""Whether hyperparameters learned from noisy answers beat the declared ones, by budget.

All ways of learning read the same answers, so their errors are compared draw by draw; only
``budget_split`` asks anew, on the same rows. The measure is that of `cloakgp.experiments.priors`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakgp.arrays import Array
from cloakgp.choices import choose_query
from cloakgp.experiments.asked import LEARNINGS, Asked, learned
from cloakgp.experiments.crossvalidation import Tick
from cloakgp.experiments.priors import DEFAULT_SHAPE, Scale, Split, Table
from cloakgp.fitting import release_regression
from cloakgp.release import Hyperprior

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
BUDGET_SPLIT = 0.3
WAYS = ("None", "map", "average", f"map, budget_split={BUDGET_SPLIT:g}")


@dataclass(frozen=True, eq=False)
class Paired:
    """Relative errors of the ways to learn, on the same splits.

    Attributes
    ----------
    by_table : dict of str to array of shape (ways, draws)
        In the order of `WAYS`.
    """

    by_table: dict[str, Array]

    @property
    def errors(self) -> Array:
        """All of them, shape (ways, tables, draws)."""
        return np.stack(list(self.by_table.values()), axis=1)

    @property
    def differences(self) -> Array:
        """Relative errors less those of the declared prior, shape (ways, tables, draws)."""
        differences: Array = self.errors - self.errors[:1]
        return differences


def mean_and_error(errors: Array) -> tuple[float, float]:
    """Return the mean over tables and draws, and its standard error with the tables as they are.

    Parameters
    ----------
    errors : array of shape (tables, draws)

    Examples
    --------
    >>> mean_and_error(np.array([[1.0, 3.0], [2.0, 2.0]]))
    (2.0, 0.5)
    """
    tables, draws = errors.shape
    variances = errors.var(axis=1, ddof=1) / draws
    return float(errors.mean()), float(np.sqrt(variances.sum()) / tables)


def compare_learning(
    compared: Iterable[Table],
    *,
    epsilons: Sequence[float] = EPSILONS,
    scale: Scale,
    tick: Tick | None = None,
) -> dict[float, Paired]:
    """Compare the ways to learn around the default prior, by ε.

    Parameters
    ----------
    compared : iterable of Table
    epsilons : sequence of float
    scale : Scale
        Its ε is not used.
    tick : callable, optional
        Called after every table of every ε.
    """
    by_table = {table.name: table for table in compared}
    found = {}
    for epsilon in epsilons:
        spent = replace(scale, epsilon=epsilon)
        errors = {}
        for name, table in by_table.items():
            draws = [
                _errors_of(table.split(draw, rows=scale.rows), scale=spent, draw=draw)
                for draw in range(scale.draws)
            ]
            errors[name] = np.array(draws).T
            if tick is not None:
                tick()
        found[epsilon] = Paired(by_table=errors)
    return found


def _errors_of(split: Split, *, scale: Scale, draw: int) -> list[float]:
    """Return the relative errors of `WAYS` for one split and one draw of the noise."""
    prior, seed = split.prior(DEFAULT_SHAPE), scale.seed(draw)
    asked = Asked.designed(split.X, prior=prior, budget=split.budget(scale))
    answered = asked.released(split.outputs, insecure_seed=seed)
    releases = [learned(answered, learning) for learning in LEARNINGS]
    releases.append(
        release_regression(
            split.X,
            split.outputs,
            prior=prior,
            query=choose_query(split.X),
            bounds=split.bounds,
            epsilon=scale.epsilon,
            delta=scale.delta,
            hyperprior=Hyperprior(),
            budget_split=BUDGET_SPLIT,
            insecure_seed=seed,
        )
    )
    return [split.relative_error(release.predict(split.X_test)) for release in releases]
