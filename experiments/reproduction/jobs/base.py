"""Jobs: parts of the report that are computed, kept and checked on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

from cloakgp.utils.arrays import Array
from experiments.cross_validation import Errors
from experiments.reproduction.results import Quantity


@dataclass(frozen=True, eq=False)
class Found:
    """What a job found.

    Attributes
    ----------
    quantities : mapping of str to Quantity
    pictures : mapping of str to Figure
        By name of the picture, without a suffix.
    """

    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    pictures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Job:
    """A part of the report that takes at most a few minutes.

    Splits of data are seeded by their number, so that they are the same every time. Privacy noise
    is never seeded by a job.

    Attributes
    ----------
    name : str
    settings : str
        In words; ``{draws}`` stands for how many.
    draws : int
        0 where nothing is drawn.
    compute : callable
        From how many draws to what was found.
    minutes : float
        What it takes on one core, about: the longest are begun first.
    """

    name: str
    settings: str
    draws: int
    compute: Callable[[int], Found]
    minutes: float = 0.1

    def told(self, draws: int) -> str:
        """Return the settings in words for so many draws.

        Examples
        --------
        >>> Job("a", "{draws} releases", 3, lambda draws: Found()).told(3)
        '3 releases'
        """
        return self.settings.replace("{draws}", str(draws))


def named(jobs: Iterable[Job]) -> dict[str, Job]:
    """Return jobs by name.

    Raises
    ------
    ValueError
        If two have the same.
    """
    found: dict[str, Job] = {}
    for job in jobs:
        if job.name in found:
            raise ValueError(f"two jobs are called {job.name}")
        found[job.name] = job
    return found


def of_errors(errors: Errors) -> Quantity:
    """Return the mean over folds and draws, its error over draws, and the sd over folds.

    Examples
    --------
    >>> of_errors(Errors(np.array([[1.0], [3.0]])))
    Quantity(mean=2.0, error=None, draws=0, spread=1.0)
    """
    draws = errors.by_fold.shape[1]
    if draws == 1:
        return Quantity(mean=errors.mean, spread=errors.fold_sd)
    return Quantity.of(errors.by_fold.mean(axis=0), spread=errors.fold_sd)


def exactly(**figures: float) -> dict[str, Quantity]:
    """Return figures in which nothing is drawn.

    Examples
    --------
    >>> exactly(sd=2)
    {'sd': Quantity(mean=2.0, error=None, draws=0, spread=None)}
    """
    return {name: Quantity(mean=float(figure)) for name, figure in figures.items()}


def rms(values: Array) -> float:
    """Return the root of the mean of squares."""
    return float(np.sqrt(np.mean(np.square(values))))
