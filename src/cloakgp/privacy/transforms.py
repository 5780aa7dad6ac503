r"""Transformed outputs: the one place where private outputs are clipped and transformed.

Outputs become z_j = g(min(max(y_j, lo), hi)) with g public and increasing (a logarithm, or log
odds), and everything else is asked of z, clipped to [g(lo), g(hi)].

Neighbours
    As for whatever mechanism asks z.
Sensitivity
    z_j depends on y_j and on public numbers, and on no other output. So data sets that differ in
    one output, or in those of one group, are taken to data sets that differ in the same entries
    of z. How far one of these can move is not left to g: every mechanism clips z to the public
    bounds g(lo), g(hi) itself, whatever rounding did to g.
Theorem
    Let T map data sets so that neighbours go to neighbours, and let M be (ε, δ)-DP. Then M∘T is
    (ε, δ)-DP, by the definition.
Argument
    T above does. What is published of z is read on the scale of outputs afterwards: that is
    post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.entries import read_outputs
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array


def transformed_bounds(transform: OutputTransform) -> OutputBounds:
    """Return the bounds of transformed outputs.

    Examples
    --------
    >>> transformed_bounds(OutputTransform(name="logit", bounds=(0.1, 0.9))).middle
    0.0
    """
    return OutputBounds.checked(transform.ends)


@forget_on_failure
def transform_outputs(y: ArrayLike, *, transform: OutputTransform, rows: int) -> Array:
    """Return outputs clipped to their bounds and transformed, shape (N,); private too.

    Parameters
    ----------
    y : array-like of shape (N,)
        Private.
    transform : OutputTransform
    rows : int
        N.

    Raises
    ------
    ValueError
        If y has another length, is not numeric or not finite. No message shows a value.

    Examples
    --------
    >>> transform = OutputTransform(name="log", bounds=(1.0, 100.0))
    >>> transform_outputs([-5.0, 1e9], transform=transform, rows=2).round(3)
    array([0.   , 4.605])
    """
    return transform_entries(read_outputs(y, rows=rows), transform)


def transform_entries(entries: Array, transform: OutputTransform) -> Array:
    """Return entries clipped and transformed; those that are missing or infinite stay so.

    Parameters
    ----------
    entries : array of shape (n,)
        Private.
    transform : OutputTransform
    """
    clipped = OutputBounds(*transform.bounds).clip(entries)
    return np.where(np.isfinite(entries), transform.forward(clipped), entries)
