"""Names of the columns and classes of a release, and where its rows are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cloakgp.columns import Schema
from cloakgp.release import OneOutputRelease, Release
from cloakgp.release.predictions import class_texts
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# By how many columns it is told which rows a group has.
MOST_TOLD = 3
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


def rows_like(release: Tabular, centres: Array, *, which: int, units: Array) -> str:
    """Say which rows lie around one of some centres, by the columns that tell it from the others.

    Parameters
    ----------
    release : Release or another kind that has columns
    centres : array of shape (B, D), or with more columns, which are passed over
    which : int
    units : array of shape (D,)
        In which distances of inputs are measured.
    """
    names, schema = input_names(release), release.schema
    own = centres[:, : len(names)]
    apart = np.abs(own[which] - own.mean(axis=0)) / units[: len(names)]
    told: list[tuple[float, str]] = []
    if schema is None:
        told = [
            (float(far), f"{name} {amount(float(value), 3)}")
            for far, name, value in zip(apart, names, own[which], strict=True)
        ]
    else:
        first = 0
        for column in schema.used:
            count = sum(map(len, column.own_blocks))
            numbers = slice(first, first + count)
            told.append((float(apart[numbers].max()), column.describe_middle(own[which, numbers])))
            first += sum(map(len, column.blocks))
    nearest = [words for _, words in sorted(told, key=lambda one: -one[0]) if words][:MOST_TOLD]
    return ", ".join(nearest) or "rows with like inputs"


def what_inputs_are(release: OneOutputRelease) -> str:
    """Return the description of the inputs that a release holds, for a legend."""
    return "rows (inputs only)" if release.keeps_rows else "queried points"


def class_names(release: OneOutputRelease) -> tuple[str, ...]:
    """Return the classes as text, in order; of numbers none.

    Classes that read alike, such as 1 and "1", are told apart as Python writes them.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-3)
    >>> class_names(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    ('0', '1')
    """
    return class_texts(release.class_labels)


def asked_output(release: Release) -> str:
    """Return the name of the asked column: the private column, or its transform.

    Parameters
    ----------
    release : Release
    """
    if release.transform is None:
        return release.output_name
    return f"{TRANSFORMED[release.transform.name]} of {release.output_name}"
