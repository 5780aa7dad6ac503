"""Columns of a table that say how new outputs are distributed: which, and what they are called.

An interval of 90 % is lo_90 and hi_90, the quantile of 10 % is q_10, and the probability of being
above 180 is above_180. Of several outputs, each name begins with that of its output: height_lo_90.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.release.new_outputs import NewOutputs, check_probabilities, check_threshold
from cloakgp.utils.arrays import Array

# Of an interval, a quantile and a threshold, in their names.
DIGITS = 12

Thresholds = tuple[float, ...] | Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class DistributionColumns:
    """What is asked about the distribution of new outputs, to stand in columns.

    Attributes
    ----------
    interval : tuple of float
        Coverages of intervals.
    quantiles : tuple of float
    above : tuple of float, or mapping from names of outputs to such
        Thresholds of which the probability is asked that outputs are above; of all outputs alike,
        or of some by name.

    Examples
    --------
    >>> from cloakgp.release.new_outputs import NewNumbers
    >>> asked = DistributionColumns.asked(interval=0.9, quantiles=[0.1, 0.5], above=180)
    >>> new = NewNumbers(np.array([170.0]), np.array([8.0]), declared=(0, 250), bounds=(0, 250))
    >>> list(asked.of(new))
    ['lo_90', 'hi_90', 'q_10', 'q_50', 'above_180']
    """

    interval: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    above: Thresholds = ()

    @classmethod
    def asked(
        cls,
        *,
        interval: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
        above: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> DistributionColumns:
        """Return what is asked, of one number or several each, or refuse what makes no sense.

        Parameters
        ----------
        interval, quantiles : float or array-like, optional
            Between 0 and 1.
        above : float or array-like, or mapping from names to such, optional
            In output units.

        Raises
        ------
        ValueError
            If a share is not between 0 and 1, a threshold is no number, or two differ by less than
            their columns' names tell.
        """
        return cls(
            interval=_shares(interval, name="interval"),
            quantiles=_shares(quantiles, name="quantiles"),
            above={name: _thresholds(each) for name, each in above.items()}
            if isinstance(above, Mapping)
            else _thresholds(above),
        )

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.interval or self.quantiles or self.above)

    def check_numbers(self, *, classes: bool) -> None:
        """Refuse questions about classes.

        Parameters
        ----------
        classes : bool
            Whether outputs are classes.

        Raises
        ------
        ValueError
            If they are, and anything is asked.
        """
        if classes and self:
            raise ValueError(
                "interval, quantiles and above are for numbers: classes have probabilities"
            )

    def check_outputs(self, names: Sequence[str]) -> None:
        """Refuse thresholds of outputs that there are not.

        Parameters
        ----------
        names : sequence of str
            Of several outputs; empty of a single one, whose thresholds have no name.

        Raises
        ------
        ValueError
        """
        if not isinstance(self.above, Mapping):
            return
        if not names:
            raise ValueError("this release is about one output: give thresholds without a name")
        if others := sorted(set(self.above) - set(names)):
            raise ValueError(
                f"above names {', '.join(others)}, but the outputs are {', '.join(names)}"
            )

    def probabilities(self, names: Sequence[str] = ()) -> set[str]:
        """Return the names of those columns that hold probabilities.

        Parameters
        ----------
        names : sequence of str
            Of several outputs; empty of a single one.
        """
        if not names:
            return {_above(each) for each in self.thresholds_of()}
        return {
            f"{output}_{_above(each)}" for output in names for each in self.thresholds_of(output)
        }

    def of(self, new: NewOutputs, *, output: str | None = None) -> dict[str, Array]:
        """Return the columns of one output, by name.

        Parameters
        ----------
        new : NewOutputs
            At n points.
        output : str, optional
            Which one of several.

        Returns
        -------
        dict from str to array of shape (n,)
        """
        columns: dict[str, Array] = {}
        for coverage in self.interval:
            low, high = new.interval(coverage).T
            columns |= {f"lo_{_percent(coverage)}": low, f"hi_{_percent(coverage)}": high}
        if self.quantiles:
            found = new.quantiles(np.array(self.quantiles))
            columns |= dict(zip(map(quantile_column, self.quantiles), found.T, strict=True))
        columns |= {_above(each): new.above(each) for each in self.thresholds_of(output)}
        if output is None:
            return columns
        return {f"{output}_{name}": column for name, column in columns.items()}

    def thresholds_of(self, output: str | None = None) -> tuple[float, ...]:
        """Return the thresholds that are asked about one output.

        Parameters
        ----------
        output : str, optional
            Which one of several.
        """
        if not isinstance(self.above, Mapping):
            return self.above
        return () if output is None else self.above.get(output, ())


NOTHING = DistributionColumns()


def quantile_column(quantile: float) -> str:
    """Return the name of the column of a quantile.

    Parameters
    ----------
    quantile : float

    Examples
    --------
    >>> quantile_column(0.5)
    'q_50'
    """
    return f"q_{_percent(quantile)}"


def _shares(given: ArrayLike | None, *, name: str) -> tuple[float, ...]:
    if given is None or not np.size(given):
        return ()
    return _told_apart(check_probabilities(given, name=name).tolist(), called=_percent)


def _thresholds(given: ArrayLike | None) -> tuple[float, ...]:
    if given is None:
        return ()
    values = np.asarray(given, dtype=np.float64).ravel().tolist()
    return _told_apart(map(check_threshold, values), called=_above)


def _told_apart(values: Iterable[float], *, called: Callable[[float], str]) -> tuple[float, ...]:
    """Return numbers once each; refuse those of which columns would have the same name."""
    found = tuple(dict.fromkeys(values))
    if len(set(map(called, found))) < len(found):
        raise ValueError(
            f"columns are named by {DIGITS} digits, and some of these numbers have the same: ask "
            "for them one after the other"
        )
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.{DIGITS}g}"


def _above(threshold: float) -> str:
    return f"above_{threshold:.{DIGITS}g}"
