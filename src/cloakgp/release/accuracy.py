r"""Accuracy of predictions by a release's own estimate: typical errors, and the share explained.

Nothing is compared with outputs: these are the posterior's own expectations at points that a
release holds. Of outputs y over points of one weight each, with f the predicted function,

    Var[y] = Var_x(E[f]) + E_x(var[f]) + E_x(noise),

and the share of it that predictions account for is Var_x(E[f]) / Var[y].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount


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
        As ``new_error``, of one constant prediction for everyone.
    """

    output: str
    error: float
    new_error: float | None = None
    without: float | None = None
    share: float | None = None
    nothing: float | None = None

    @classmethod
    def expected(
        cls, output: str, mean: Array, sd: Array, new_sd: Array, *, without: float | None = None
    ) -> Accuracy:
        """Return the accuracy from predictions at some points.

        Parameters
        ----------
        output : str
        mean, sd, new_sd : arrays of shape (P,)
            New outputs have ``new_sd``.
        without : float, optional

        Examples
        --------
        >>> found = Accuracy.expected("y", np.array([0.0, 2.0]), np.zeros(2), np.ones(2))
        >>> found.new_error, found.share, round(found.nothing, 3)
        (1.0, 0.5, 1.414)
        """
        explained = float(np.var(mean))
        total = explained + float(np.mean(np.square(new_sd)))
        return cls(
            output=output,
            error=mean_root(sd),
            new_error=mean_root(new_sd),
            without=without,
            share=explained / total if total > 0 else None,
            nothing=float(np.sqrt(total)),
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


def mean_root(values: Array) -> float:
    """Return the root of the mean square.

    Examples
    --------
    >>> mean_root(np.array([3.0, 3.0]))
    3.0
    """
    return float(np.sqrt(np.mean(np.square(values))))
