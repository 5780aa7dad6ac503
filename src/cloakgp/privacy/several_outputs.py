r"""Several private outputs of each person, protected together.

Every output is clipped to its own public bounds and measured in widths from their middle, so that
all lie in [−½, ½]. The entries of one person are a group (`cloakgp.privacy.groups`): neighbours
differ in all outputs of one person, and a strategy R over the entries moves by at most the group's
gauge. With R = R' diag(1/d), in output units, that is the exact joint sensitivity
sup ‖Σ_t δ_t r'_{j,t}‖ over |δ_t| ≤ d_t. The bounds are declared, or intervals within these that
noisy counts of each output found (`cloakgp.privacy.questions.counts`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.entries import check_numbers, read_entries
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.utils.arrays import Array

# Of every output once it is measured in widths from the middle of its bounds.
STANDARD_BOUNDS = OutputBounds(-0.5, 0.5)


@dataclass(frozen=True)
class OutputColumns:
    """The public bounds of several outputs.

    Attributes
    ----------
    bounds : tuple of OutputBounds

    Examples
    --------
    >>> columns = OutputColumns.checked([(0, 10), (100, 200)])
    >>> columns.standardised([[5.0, 200.0]], rows=1)
    array([0. , 0.5])
    """

    bounds: tuple[OutputBounds, ...]

    @classmethod
    def checked(cls, bounds: object) -> OutputColumns:
        """Return valid bounds of each output, or raise an error that explains the fault.

        Parameters
        ----------
        bounds : array-like of shape (T, 2)

        Raises
        ------
        ValueError
            Unless they are one pair of finite numbers for each output.
        """
        pairs = list(bounds) if isinstance(bounds, tuple | list | np.ndarray) else []
        if not pairs or not all(isinstance(pair, tuple | list | np.ndarray) for pair in pairs):
            raise ValueError("give bounds=[(lo, hi), ...], one pair for each output")
        return cls(bounds=tuple(OutputBounds.checked(pair) for pair in pairs))

    @property
    def widths(self) -> Array:
        """The width of each output's bounds, shape (T,), in output units."""
        return np.array([limits.width for limits in self.bounds])

    @property
    def middles(self) -> Array:
        """The middle of each output's bounds, shape (T,), in output units."""
        return np.array([limits.middle for limits in self.bounds])

    def entries(self, y: ArrayLike, *, rows: int) -> Array:
        """Return outputs as they are, as finite float64 numbers, those of one row in turn.

        What it returns is private too.

        Parameters
        ----------
        y : array-like of shape (N, T)
            Private.
        rows : int
            N.

        Returns
        -------
        array of shape (N T,)

        Raises
        ------
        ValueError
            If y has another shape, is not numeric or not finite. No message shows a value.
        """
        count = len(self.bounds)
        entries = read_entries(y)
        if entries.values.shape != (rows, count):
            raise ValueError(f"y must have shape ({rows}, {count}), one column for each output")
        check_numbers(entries)
        return np.ascontiguousarray(entries.values).ravel()

    def standardised(
        self, y: ArrayLike, *, rows: int, within: OutputColumns | None = None
    ) -> Array:
        """Return outputs in widths from the middle of their bounds, within [−½, ½].

        What it returns is private too.

        Parameters
        ----------
        y : array-like of shape (N, T)
            Private.
        rows : int
            N.
        within : OutputColumns, optional
            Wider bounds, to which outputs are clipped instead: places may be beyond ±½ then.

        Returns
        -------
        array of shape (N T,)
            The outputs of one row next to each other.

        Raises
        ------
        ValueError
            If y has another shape, is not numeric or not finite. No message shows a value.

        Examples
        --------
        >>> OutputColumns.checked([(4, 6)]).standardised(
        ...     [[8.0], [90.0]], rows=2, within=OutputColumns.checked([(0, 10)])
        ... )
        array([1.5, 2.5])
        """
        values = self.entries(y, rows=rows).reshape(rows, -1)
        return self.standardised_rows(values, within=within).ravel()

    def standardised_rows(self, values: Array, *, within: OutputColumns | None = None) -> Array:
        """Return outputs of rows in widths from the middle of their bounds; see `standardised`.

        Each is a function of that output alone.

        Parameters
        ----------
        values : array of shape (n, T)
            Private. What is no finite number stays as it is, for questions to find fault with.
        within : OutputColumns, optional

        Returns
        -------
        array of shape (n, T)
        """
        limits = self.bounds if within is None else within.bounds
        clipped = np.column_stack(
            [ends.clip(column) for ends, column in zip(limits, values.T, strict=True)]
        )
        shares = (clipped - self.middles) / self.widths
        placed = STANDARD_BOUNDS.clip(shares) if within is None else shares
        return np.where(np.isfinite(values), placed, values)

    def units(self, groups: Iterable[Hashable] | None, *, rows: int) -> Groups:
        """Return the group of each entry: the outputs of one row, or of all rows of one group.

        Parameters
        ----------
        groups : iterable of N texts or whole numbers, or None
            Public; whose row it is.
        rows : int
            N.

        Examples
        --------
        >>> OutputColumns.checked([(0, 1), (0, 1)]).units(None, rows=2)
        array([0, 0, 1, 1])
        """
        people = checked_groups(groups, rows=rows)
        owners = np.arange(rows, dtype=np.intp) if people is None else people
        return np.repeat(owners, len(self.bounds))
