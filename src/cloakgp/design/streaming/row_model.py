"""Row model: a sparse model as designs see it, by the features and noise variances of rows.

A design, or what is learned, goes through the same rows a few times. Where there is room for all,
they are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cloakgp.design.streaming.remembering import digest_of_rows, row_blocks
from cloakgp.utils.arrays import Array

# What is remembered at most at a time, in bytes: of 80,000 rows, with 800 inducing inputs.
MOST_BYTES = 2**29


class RowModel(Protocol):
    """The interface of a sparse model for designs."""

    def features_and_noise(self, X: Array) -> tuple[Array, Array]:
        """Return V, shape (M, n), and λ, shape (n,): rows have covariance VᵀV + diag(λ)."""


class RememberedFeatures:
    """Features and noise variances of rows, as models have them.

    What comes back has the same bits, in the same order in memory, as if it were computed again.

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
        # A model stays as long as what is kept of it, so that no other has its number.
        self._kept: dict[tuple[int, bytes], tuple[RowModel, Array, Array]] = {}
        self._counts: dict[int, int] = {}
        self._bytes = 0

    def __reduce__(self) -> tuple[type[RememberedFeatures], tuple[int]]:
        # On another machine there are other rows, and nobody goes through them again.
        return type(self), (0,)

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
        keys = [(id(model), digest_of_rows(X[block])) for block in row_blocks(len(X))]
        kept = [self._kept.get(key) for key in keys]
        found = [one for one in kept if one is not None]
        if found and len(found) == len(kept):
            return _joined([one[1] for one in found]), np.concatenate([one[2] for one in found])
        features, noise = model.features_and_noise(X)
        count = self._counts.get(id(model), 0) + len(X)
        all_bytes = self._rows * features[:, :1].nbytes
        room = MOST_BYTES - self._bytes - features.nbytes
        if count <= self._rows and all_bytes <= MOST_BYTES and room >= 0:
            self._counts[id(model)] = count
            self._bytes += features.nbytes
            features.flags.writeable = noise.flags.writeable = False
            for key, block in zip(keys, row_blocks(len(X)), strict=True):
                self._kept[key] = model, features[:, block], noise[block]
        return features, noise


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
    """Return columns side by side, in the order in memory that those of the parts have."""
    if len(parts) == 1:
        return parts[0]
    columns = sum(part.shape[1] for part in parts)
    order: Literal["C", "F"] = "F" if parts[0].flags.f_contiguous else "C"
    return np.concatenate(parts, axis=1, out=np.empty((len(parts[0]), columns), order=order))
