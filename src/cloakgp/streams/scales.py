"""Scales of a stream's prior: inputs of the first period set them, and later ones may not fit.

A default kernel (`cloakgp.models.default_kernel`) is scaled to the inputs of the rows that are
asked first. An input that is constant there has no scale, and tells nothing ever after; where later
rows lie far outside of what the first had, little is known from one to the other. All of it is told
by public columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloakgp.columns import Schema
from cloakgp.models.defaults import UNVARIED, find_varying, input_scales, scales_by_block
from cloakgp.utils.arrays import Array

# Of the range of an input in the first period: farther from it than so many is far outside.
FAR = 1.0


def find_constant(schema: Schema, X: Array) -> list[str]:
    """Return the names of columns that do not vary, and so would have no scale.

    Parameters
    ----------
    schema : Schema
    X : array of shape (N, D)
        Of the first period.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> schema = Schema((Number("age"), Number("ward")))
    >>> find_constant(schema, np.array([[30.0, 1.0], [40.0, 1.0]]))
    ['ward']
    """
    # Of many inputs of one unit all have the scale of those that vary.
    scales = input_scales(X) if schema.plain else scales_by_block(X, blocks=schema.groups)
    told = find_varying(X) | (scales < UNVARIED)
    found, start = [], 0
    for column in schema.used:
        # Whether a cell was missing has a scale of its own, and may be constant.
        own = sum(map(len, column.own_blocks))
        if not told[start : start + own].any():
            found.append(column.name)
        start += sum(map(len, column.blocks))
    return found


def find_far(schema: Schema, X: Array, ranges: Array) -> list[str]:
    """Return the names of columns with values far outside of those that were asked first.

    Parameters
    ----------
    schema : Schema
    X : array of shape (n, D)
        Of a later period.
    ranges : array of shape (2, D)
        The least and the greatest of every input in the first period.

    Examples
    --------
    >>> from cloakgp.columns import Number
    >>> schema, ranges = Schema((Number("age"),)), np.array([[20.0], [80.0]])
    >>> find_far(schema, np.array([[90.0]]), ranges), find_far(schema, np.array([[990.0]]), ranges)
    ([], ['age'])
    """
    low, high = ranges
    groups = np.asarray(schema.groups)
    # Numbers of one block have one scale.
    widths = np.zeros(len(groups))
    np.maximum.at(widths, groups, high - low)
    room = FAR * widths[groups]
    far = (np.maximum(low - X, X - high) > room).any(axis=0)
    found, start = [], 0
    for column in schema.used:
        # That a cell was missing is not far off, though none was in the first period.
        own = sum(map(len, column.own_blocks))
        if far[start : start + own].any():
            found.append(column.name)
        start += sum(map(len, column.blocks))
    return found


def describe_constant(names: Sequence[str], *, period: int) -> str:
    """Return a message about columns without a scale.

    Examples
    --------
    >>> print(describe_constant(["ward"], period=0))
    ward: constant in period 1, the first that is asked, which sets the scale of every input, ...
    """
    return (
        f"{', '.join(names)}: constant in period {period + 1}, the first that is asked, which sets "
        "the scale of every input, so that nothing would be told by it in later ones either. Leave "
        "it out of the inputs, take a longer first period, or declare the kernel"
    )


def describe_far(names: Sequence[str], *, period: int) -> str:
    """Return a message about columns that lie far outside.

    Examples
    --------
    >>> print(describe_far(["age"], period=2))
    period 3 has values of age far outside of those of the first that was asked, which set ...
    """
    return (
        f"period {period + 1} has values of {', '.join(names)} far outside of those of the first "
        "that was asked, which set the scales of the prior: predictions there go by few answers. "
        "Check these rows; where such ones are to be expected, a stream declares its kernel"
    )
