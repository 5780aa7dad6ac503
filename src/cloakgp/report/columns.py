"""Names of the columns and classes of a release, and where its rows are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cloakgp.columns import Schema
from cloakgp.release import DenseStrategy, Release, StatisticsRelease
from cloakgp.release.measurement import tables_of
from cloakgp.release.predictions import class_texts
from cloakgp.utils.arrays import Array

# What answers are about, where outputs were transformed.
TRANSFORMED = {"log": "the logarithm", "logit": "the log odds", "root": "√(count + 3/8)"}


class Named(Protocol):
    """A release whose inputs may have names."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, if they have any."""

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""


class Tabular(Named, Protocol):
    """A release that predicts tables."""

    @property
    def schema(self) -> Schema | None:
        """The schema of the raw public columns, if inputs are encoded from them."""


def input_names(release: Named) -> tuple[str, ...]:
    """Return the names of the inputs, or x1, x2, ... if the release has none."""
    if len(release.input_names) == release.n_inputs:
        return release.input_names
    return tuple(f"x{number + 1}" for number in range(release.n_inputs))


def public_columns(release: Tabular) -> tuple[str, ...]:
    """Return the names of the public columns as they are in a table."""
    return input_names(release) if release.schema is None else release.schema.sources


def has_classes(release: Release | StatisticsRelease) -> bool:
    """Return whether a release is about classes."""
    if isinstance(release, StatisticsRelease):
        return release.classes is not None
    return release.likelihood.outputs == "classes"


def keeps_rows(release: Release | StatisticsRelease) -> bool:
    """Return whether the inputs of all rows are in a release."""
    if isinstance(release, StatisticsRelease):
        return False
    strategies = tables_of(release.measurements).values()
    return all(isinstance(strategy, DenseStrategy) for strategy in strategies)


def known_inputs(release: Release | StatisticsRelease) -> Array:
    """Return the inputs of all rows of all tables, each table once, shape (N, D).

    Of tables that are not kept: the query points. Of private inputs none is known.
    """
    if isinstance(release, StatisticsRelease):
        return np.empty((0, release.n_inputs))
    strategies = tables_of(release.measurements).values()
    return np.vstack(
        [each.X if isinstance(each, DenseStrategy) else each.X_query for each in strategies]
    )


def input_ranges(release: Release | StatisticsRelease) -> Array:
    """Return the least and the greatest of every input, over all tables, shape (2, D).

    Of private inputs, the declared ranges.
    """
    if isinstance(release, StatisticsRelease):
        return np.array([release.basis.box.lo, release.basis.box.hi])
    ranges = np.array([each.ranges for each in tables_of(release.measurements).values()])
    return np.array([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)])


def what_inputs_are(release: Release | StatisticsRelease) -> str:
    """Return the description of `known_inputs` for a legend."""
    return "rows (inputs only)" if keeps_rows(release) else "queried points"


def class_names(release: Release | StatisticsRelease) -> tuple[str, ...]:
    """Return the classes as text, in the order of `Release.classes`.

    Classes that read alike, such as 1 and "1", are told apart as Python writes them.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-3)
    >>> class_names(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    ('0', '1')
    """
    if isinstance(release, StatisticsRelease):
        return () if release.classes is None else class_texts(release.classes.labels)
    return class_texts(release.classes)


def asked_output(release: Release) -> str:
    """Return the name of the asked column: the private column, or its transform.

    Parameters
    ----------
    release : Release
    """
    if release.transform is None:
        return release.output_name
    return f"{TRANSFORMED[release.transform.name]} of {release.output_name}"
