"""Weights of samples, which no fit takes: a plain message in the place of an unexpected argument.

A weight would say how exactly a row's private output is known, or how often it counts. The former
is the noise of the model, the latter several rows of one person; neither is a number beside a row.
The argument stays out of the signatures of `fit`, by which scikit-learn finds what an estimator
can do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Fitted = TypeVar("Fitted")

NO_WEIGHTS = (
    "fit takes no sample_weight: every row is asked alike, and protected alike. If predictions "
    "matter more at some inputs, give these as X_query and their importance as query_weight; if "
    "counts were made over more time in some rows, give exposure; if several rows are of one "
    "person, give groups; rows that must not count, leave out by their public columns"
)


def without_sample_weight(fit: Callable[Parameters, Fitted]) -> Callable[Parameters, Fitted]:
    """Make a `fit` say what takes the place of weights of samples.

    Parameters
    ----------
    fit : callable

    Raises
    ------
    TypeError
        By what is returned, if it is called with ``sample_weight``.

    Examples
    --------
    >>> @without_sample_weight
    ... def fit(X, y):
    ...     return "fitted"
    >>> fit([[0.0]], y=[1.0])
    'fitted'
    >>> fit([[0.0]], [1.0], sample_weight=[2.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    TypeError: fit takes no sample_weight: ... leave out by their public columns
    """

    @functools.wraps(fit)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Fitted:
        # Meta-estimators pass on what they were not given.
        if kwargs.pop("sample_weight", None) is not None:
            raise TypeError(NO_WEIGHTS)
        return fit(*args, **kwargs)

    return checked
