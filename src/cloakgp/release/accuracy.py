r"""Accuracy of predictions by a release's own estimate: typical errors, and the share explained.

Nothing is compared with outputs: these are the posterior's own expectations at points that a
release holds. Of outputs y over points of one weight each, with f the predicted function,

    Var[y] = Var_x(E[f]) + E_x(var[f]) + E_x(noise),

and the share of it that predictions account for is Var_x(E[f]) / Var[y].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cloakgp.release.error_range import ErrorRange
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# With what probability the error for one person is said to lie in a range.
LIKELY = 0.8
# The share of values by whose distance it is told what an error without them may miss.
FAR = 0.01


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of the predictions of one output, by the release's own estimate.

    Attributes
    ----------
    output : str
    error : float
        Typical error of the predicted curve: the root of the mean of its variance.
    new_error : float or None
        The same, of a new person's own value; None if the release has no estimate. See
        `cloakgp.Release.typical_errors` for what it is with long tails.
    without : float or None
        As ``error``, before the first question.
    share : float or None
        Of the variance of outputs, the share that predictions explain.
    nothing : float or None
        As ``new_error``, of one constant prediction for everyone: the width of the declared bounds
        at most, by which no constant within them is off.
    between : (float, float) or None
        Between what ``new_error`` lies with a probability of `LIKELY`, by what the answers leave
        open of the curve and of the spread between people with equal inputs, or of the law that
        counts tell (`cloakgp.release.error_range`); None if that spread was assumed.
    with_clipped : (float, float) or None
        The same with all values outside of an interval that counts found, to which questions
        clipped, as those counts tell of them (`cloakgp.release.outside`); None if there are none.
    counts_clipped : bool
        Whether ``new_error``, ``nothing``, ``share`` and ``between`` are those with all values
        outside of that interval, as counts refute that there are none.
    far : float or None
        What ``new_error`` would be if one new value in a hundred lay at the farther declared bound.
    width : float
        Of the declared bounds; infinite where there are none.
    """

    output: str
    error: float
    new_error: float | None = None
    without: float | None = None
    share: float | None = None
    nothing: float | None = None
    between: tuple[float, float] | None = None
    with_clipped: tuple[float, float] | None = None
    counts_clipped: bool = False
    far: float | None = None
    width: float = np.inf

    @classmethod
    def expected(
        cls,
        output: str,
        mean: Array,
        sd: Array,
        *,
        new_error: float,
        ends: tuple[float, float] | None = None,
        without: float | None = None,
    ) -> Accuracy:
        """Return the accuracy from predictions at some points.

        Parameters
        ----------
        output : str
        mean, sd : arrays of shape (P,)
        new_error : float
            Of new outputs, over all points.
        ends : (float, float), optional
            The declared bounds.
        without : float, optional

        Examples
        --------
        >>> found = Accuracy.expected("y", np.array([0.0, 2.0]), np.zeros(2), new_error=1.0)
        >>> found.new_error, found.share, round(found.nothing, 3)
        (1.0, 0.5, 1.414)
        """
        width = np.inf if ends is None else ends[1] - ends[0]
        total = min(float(np.var(mean)) + new_error**2, width**2)
        return cls(
            output=output,
            error=mean_root(sd),
            new_error=new_error,
            without=without,
            share=_explained(new_error, total) if total > 0 else None,
            nothing=float(np.sqrt(total)),
            width=width,
            far=None if ends is None else error_with_far_values(mean, new_error, ends=ends),
        )

    def with_range(self, found: ErrorRange | None) -> Accuracy:
        """Return it with the range of the error for one person, if that is known.

        Parameters
        ----------
        found : ErrorRange or None
        """
        if found is None:
            return self
        known = replace(self, between=found.within, with_clipped=found.with_outside)
        first, every = self.new_error, found.middle
        if first is None or every is None or self.nothing is None or every <= first:
            return known
        # What predictions explain stays; what they leave has the clipped values, too.
        more = every**2 - first**2
        total = min(self.nothing**2 + more, self.width**2)
        far = None if self.far is None else float(np.sqrt(self.far**2 + (1.0 - FAR) * more))
        return replace(
            known,
            new_error=every,
            nothing=float(np.sqrt(total)),
            share=_explained(every, total),
            between=found.with_outside,
            counts_clipped=True,
            far=far,
        )

    def for_one_person(self) -> str:
        """Return the error for one person in a sentence; empty if there is no estimate.

        Examples
        --------
        >>> Accuracy("height", error=1.0, new_error=7.2, nothing=31.0).for_one_person()
        'predictions of height are typically off by 7.2; a constant guess, by 31.'
        """
        if self.new_error is None or self.nothing is None:
            return ""
        return (
            f"predictions of {self.output} are typically off by {amount(self.new_error, 3)}; "
            f"a constant guess, by {amount(self.nothing, 3)}."
        )


def _explained(new_error: float, total: float) -> float:
    """Return the share of the variance of outputs that predictions explain; 0 if they add to it."""
    return max(0.0, 1.0 - new_error**2 / total)


def error_with_far_values(mean: Array, new_error: float, *, ends: tuple[float, float]) -> float:
    """Return the typical error if one value in a hundred lies at the farther end.

    Parameters
    ----------
    mean : array of shape (P,)
        Predicted.
    new_error : float
        Of the others, in output units.
    ends : (float, float)
        The declared bounds.

    Examples
    --------
    >>> error_with_far_values(np.array([0.0]), 0.0, ends=(0.0, 50.0))
    5.0
    """
    farther = np.maximum(mean - ends[0], ends[1] - mean)
    square = (1.0 - FAR) * new_error**2 + FAR * float(np.mean(np.square(farther)))
    return float(np.sqrt(square))


def mean_root(values: Array) -> float:
    """Return the root of the mean square.

    Examples
    --------
    >>> mean_root(np.array([3.0, 3.0]))
    3.0
    """
    return float(np.sqrt(np.mean(np.square(values))))
