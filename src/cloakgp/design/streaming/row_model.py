"""Row model: a sparse model as designs see it, by the features and noise variances of rows.

A design, or what is learned, goes through the same rows a few times. Where there is room for all,
they are computed once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from cloakgp.design.streaming.remembering import digest_of_rows, row_blocks
from cloakgp.utils.arrays import Array

# What is remembered at most at a time, in bytes: of 50,000 rows, with 800 inducing inputs, under
# two kernels.
MOST_BYTES = 5 * 2**27


class RowModel(Protocol):
    """The interface of a sparse model for designs."""

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return V, shape (M, n), and λ, shape (n,): rows have covariance VᵀV + diag(λ)."""


@runtime_checkable
class SharedFeatures(RowModel, Protocol):
    """A model whose features others have, too, that differ in their noise."""

    @property
    def features_known_by(self) -> tuple[object, ...]:
        """The objects that features follow from: models with the same ones have the same."""

    def features(self, X: Array) -> Array:
        """Return V."""

    def noise_beside(self, features: Array, X: Array) -> Array:
        """Return λ of rows whose features are known."""


@dataclass(eq=False)
class _OfModel:
    """What is remembered of rows under one model.

    Attributes
    ----------
    known_by : tuple of objects
        They stay as long as what is kept of them, so that no others take their places in memory.
    size : int
        What all rows take, in bytes.
    rows : int
        How many are there.
    blocks : dict
        Arrays whose last axis is that of the rows, by digests of these.
    """

    known_by: tuple[object, ...]
    size: int
    rows: int = 0
    blocks: dict[bytes, tuple[Array, ...]] = field(default_factory=dict)


class RememberedFeatures:
    """Features and noise variances of rows, as models have them.

    What comes back has the same bits, in the same order in memory, as if it were computed again.
    Models that share features, such as sparse priors with one kernel on the same inducing inputs,
    share what is remembered.

    Parameters
    ----------
    rows : int
        How many are gone through again. If there is no room for all of them, none is remembered:
        memory does not grow with tables that are too large to gain by it.

    Examples
    --------
    >>> class Model:
    ...     def features_and_noise(self, X):
    ...         print("computed")
    ...         return np.ones((3, len(X))), np.ones(len(X))
    >>> remembered, model, X = RememberedFeatures(2), Model(), np.zeros((2, 1))
    >>> features, noise = remembered.features_and_noise(model, X)
    computed
    >>> remembered.features_and_noise(model, X)[0].shape
    (3, 2)
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        # The models that were met last are last.
        self._models: OrderedDict[tuple[int, ...], _OfModel] = OrderedDict()
        self._met: set[tuple[int, ...]] = set()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[RememberedFeatures], tuple[int]]:
        # On another machine there are other rows, and nobody goes through them again.
        return type(self), (0,)

    def begin_pass(self) -> None:
        """Say that rows are gone through from the first.

        What no earlier pass needed for longest makes room for models that are new; what this one
        needs stays.
        """
        with self._lock:
            self._met.clear()

    def forget(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._models.clear()

    def features_and_noise(self, model: RowModel, X: Array) -> tuple[Array, Array]:
        """Return what a model says of rows. May be called by several threads.

        Parameters
        ----------
        model : RowModel
        X : array of shape (n, D)
            Public inputs.

        Returns
        -------
        features : array of shape (M, n)
        noise : array of shape (n,)
            Not to be written to.
        """
        if isinstance(model, SharedFeatures):
            [features] = self._of(model.features_known_by, X, lambda: (model.features(X),))
            return features, model.noise_beside(features, X)
        features, noise = self._of((model,), X, lambda: model.features_and_noise(X))
        return features, noise

    def _of(
        self, known_by: tuple[object, ...], X: Array, compute: Callable[[], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Return what is remembered of rows; else compute it, and remember it if there is room."""
        key = tuple(id(each) for each in known_by)
        blocks = list(row_blocks(len(X)))
        digests = [digest_of_rows(X[block]) for block in blocks]
        with self._lock:
            self._met.add(key)
            found: list[tuple[Array, ...] | None] = []
            if key in self._models:
                self._models.move_to_end(key)
                found = [self._models[key].blocks.get(each) for each in digests]
        parts = [each for each in found if each is not None]
        if parts and len(parts) == len(digests):
            return tuple(_joined(each) for each in zip(*parts, strict=True))
        arrays = compute()
        for each in arrays:
            each.flags.writeable = False
        with self._lock:
            kept = self._models.get(key) or self._admitted(key, known_by, arrays)
            if kept is not None and kept.rows + len(X) <= self._rows:
                kept.rows += len(X)
                for digest, block in zip(digests, blocks, strict=True):
                    kept.blocks[digest] = tuple(each[..., block] for each in arrays)
        return arrays

    def _admitted(
        self, key: tuple[int, ...], known_by: tuple[object, ...], arrays: tuple[Array, ...]
    ) -> _OfModel | None:
        """Return where to keep what a new model says of all rows; None if there is no room."""
        size = self._rows * sum(each[..., :1].nbytes for each in arrays)
        room = MOST_BYTES - sum(each.size for each in self._models.values())
        idle = [(one, self._models[one].size) for one in self._models if one not in self._met]
        if size > room + sum(taken for _, taken in idle):
            return None
        for one, taken in idle:
            if size <= room:
                break
            del self._models[one]
            room += taken
        self._models[key] = _OfModel(known_by=known_by, size=size)
        return self._models[key]


@dataclass(frozen=True, eq=False)
class RememberingModel:
    """A model that remembers what it said of rows.

    Attributes
    ----------
    model : RowModel
    remembered : RememberedFeatures
    """

    model: RowModel
    remembered: RememberedFeatures

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return features and noise variances of rows, shapes (M, n) and (n,)."""
        return self.remembered.features_and_noise(self.model, X)


def _joined(parts: Sequence[Array]) -> Array:
    """Return columns, or numbers, side by side, in the order in memory that the parts have."""
    if len(parts) == 1:
        return parts[0]
    if parts[0].ndim == 1:
        return np.concatenate(parts)
    columns = sum(part.shape[1] for part in parts)
    order: Literal["C", "F"] = "F" if parts[0].flags.f_contiguous else "C"
    return np.concatenate(parts, axis=1, out=np.empty((len(parts[0]), columns), order=order))
