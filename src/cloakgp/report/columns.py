"""Names of the columns and classes of a release, and where its rows are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cloakgp.release import LabelRelease, ManyRowsRelease, Release
from cloakgp.utils.arrays import Array

NumberRelease = Release | ManyRowsRelease
AnyRelease = NumberRelease | LabelRelease


class Named(Protocol):
    """A release whose inputs may have names."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, if they have any."""

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""


def input_names(release: Named) -> tuple[str, ...]:
    """Return what to call the inputs: their names, or x1, x2, ... if the release has none."""
    if len(release.input_names) == release.n_inputs:
        return release.input_names
    return tuple(f"x{number + 1}" for number in range(release.n_inputs))


def tables(release: AnyRelease) -> tuple[Array, ...]:
    """Return the public inputs of all tables, each once, of shape (N, D).

    Of many rows, which no release keeps: the points where predictions mattered.
    """
    if isinstance(release, ManyRowsRelease):
        return (release.X_query,)
    if isinstance(release, LabelRelease):
        asked = {one.questions.table: one.questions.X for one in release.measurements}
    else:
        asked = {one.table: one.X for one in release.measurements}
    return tuple(asked.values())


def rows(release: AnyRelease) -> Array:
    """Return the public inputs of all rows of all tables, each table once, shape (N, D)."""
    return np.vstack(tables(release))


def what_rows_are(release: AnyRelease) -> str:
    """Return what `rows` are, for a legend."""
    if isinstance(release, ManyRowsRelease):
        return "queried points"
    return "rows (inputs only)"


def row_count(release: AnyRelease) -> int:
    """Return how many rows were asked, in all tables."""
    if isinstance(release, ManyRowsRelease):
        return release.count
    return len(rows(release))


def class_names(release: LabelRelease) -> tuple[str, ...]:
    """Return the classes as text, in the order of `LabelRelease.classes`.

    Classes that read alike, such as 1 and "1", are told apart as Python writes them.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-3)
    >>> class_names(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    ('0', '1')
    """
    plain = tuple(str(one) for one in release.classes)
    return plain if len(set(plain)) == len(plain) else tuple(repr(one) for one in release.classes)
