"""Question: the encoding of the private entry of a row as numbers, and its sensitivity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.privacy.entries import read_outputs
from cloakgp.utils.arrays import Array


class Question(ABC):
    """How a row's private entry becomes a row of V, which linear questions are asked about.

    It is a function of one entry, fixed by public things and by answers that were published before.
    A new one is a module of this folder and a line in its registry: it states how far a row of V
    moves when the entry changes to any other, and `cloakgp.privacy.ask` does the rest.

    Attributes
    ----------
    name : str
        As files spell it.
    channels : int
        C, the number of columns of V.
    labels : tuple or None
        The labels that an entry can be; None where entries are numbers.
    locates : bool
        Whether answers tell where outputs are, rather than how many lie where, or how noisy they
        are.
    follows_answers : bool
        Whether earlier answers chose it: then a budget counts as spent even if nothing is asked.
    precedes_choice : bool
        Whether its answers decide how much is asked after it (`Guarantee.adaptive`).
    """

    name: ClassVar[str]
    labels: tuple[object, ...] | None = None
    locates: ClassVar[bool] = True
    follows_answers: ClassVar[bool] = False
    precedes_choice: ClassVar[bool] = False

    @property
    @abstractmethod
    def channels(self) -> int:
        """C, the number of columns of V."""

    @property
    @abstractmethod
    def distance(self) -> float:
        """An upper bound of the change of a row of V by a change of its entry, in ℓ2 norm."""

    @property
    @abstractmethod
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """At least the magnitude of every entry of V."""

    @property
    @abstractmethod
    def complaints(self) -> tuple[str, ...]:
        """Messages about invalid entries that are read in chunks; none quotes an entry."""

    @abstractmethod
    def validate(self) -> None:
        """Refuse a question that makes no sense.

        Raises
        ------
        ValueError
        """

    @abstractmethod
    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return which of the complaints there are about some entries.

        Parameters
        ----------
        entries : array of shape (n,)
            Private: numbers, or places among the labels; NaN for what is neither.
        """

    @abstractmethod
    def encode(self, entries: Array) -> Array:
        """Return the rows of V of entries without fault, shape (n, C).

        Parameters
        ----------
        entries : array of shape (n,)
            Private, as for `faults`.
        """

    @property
    def limits(self) -> tuple[float, float] | None:
        """Between which numbers outputs lie, as the likelihood sees them; None of no such numbers.

        Declared, where nothing was looked for.
        """
        return -self.largest, self.largest

    def describe_answers(self, count: int, *, noise: Callable[[str], str], output: str) -> str:
        """Describe the number of published answers, their subject, and their noise.

        Parameters
        ----------
        count : int
            k.
        noise : callable
            Returns the noise in words, given its unit.
        output : str
            Name of the private column.
        """
        return f"{numbers(count)} with {noise(f', about {self.name} of {output}')}."

    @property
    def rows(self) -> int | None:
        """The number of rows with a question each; None if it is the same for all."""
        return None

    def of_rows(self, X: Array) -> Question:
        """Return the question about rows of a chunk, from their public inputs of shape (n, D)."""
        del X
        return self

    def at(self, places: NDArray[np.intp]) -> Question:
        """Return the question that rows at some places have, in this order.

        Parameters
        ----------
        places : array of shape (n,)

        Raises
        ------
        TypeError
            If rows have a question each, and are not asked by cells.
        """
        del places
        if self.rows is not None:
            raise TypeError("this question is asked of rows that are held")
        return self

    def read(self, y: ArrayLike, *, rows: int) -> Array:
        """Return private entries in the form that `encoded` takes.

        Parameters
        ----------
        y : array-like of shape (N,)
            Private.
        rows : int
            N.

        Raises
        ------
        ValueError
            If there is anything wrong with them. No message shows an entry.
        """
        return read_outputs(y, rows=rows)

    def check_weights(self, weights: Array) -> None:
        """Refuse linear questions of shape (k, N) that make no sense about this.

        Raises
        ------
        ValueError
        """
        del weights

    def about_outputs(self, values: Array, totals: Array, *means: float) -> Array:
        """Return answers about outputs, as a likelihood sees them, less a mean; shape (k, C).

        Parameters
        ----------
        values : array of shape (k, C)
            R V + noise.
        totals : array of shape (k,)
            R 1.
        *means : float
            At most one; 0 if none.
        """
        return values - np.asarray(sum(means) * totals)[:, None]

    def output_noise_sd(self, noise_sd: float) -> float:
        """Return the noise sd of `about_outputs`."""
        return noise_sd


def numbers(count: int) -> str:
    """Return a count of numbers in words.

    Examples
    --------
    >>> numbers(1), numbers(2)
    ('1 number', '2 numbers, each')
    """
    return "1 number" if count == 1 else f"{count} numbers, each"
