"""Public rows: outputs that are public, and the process that they alone imply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloakgp.columns.schema import Schema
from cloakgp.models import ExactPrior
from cloakgp.release.points import points_of
from cloakgp.utils.arrays import Array

DAMAGED = "its public rows are damaged"


@dataclass(frozen=True, eq=False)
class PublicRows:
    """The mean of a Gaussian process given public rows, by which others are predicted.

    It is no more than a public prediction: the rows may be of other people, or of another time.

    Attributes
    ----------
    prior : ExactPrior
    X : array of shape (N, D)
        Inputs of the public rows.
    weights : array of shape (N,)
        K_y⁻¹ (y − m) of their outputs.
    input_names : tuple of str
    schema : Schema or None
        What the raw public columns are, if inputs are encoded from them.
    """

    prior: ExactPrior
    X: Array
    weights: Array
    input_names: tuple[str, ...] = ()
    schema: Schema | None = None

    def validate(self) -> None:
        """Refuse arrays that do not fit each other.

        Raises
        ------
        ValueError
            If they do not, or are not finite.
        """
        fit = self.X.ndim == 2 and self.X.size and self.weights.shape == (len(self.X),)
        if not (fit and np.isfinite(self.X).all() and np.isfinite(self.weights).all()):
            raise ValueError(DAMAGED)
        if self.schema is not None and self.schema.names != self.input_names:
            raise ValueError(DAMAGED)

    @property
    def n_inputs(self) -> int:
        """D."""
        return int(self.X.shape[1])

    def predict(self, X: Any) -> Array:
        """Return the mean at P points, shape (P,), in output units.

        Parameters
        ----------
        X : array-like or table of shape (P, D), or raw columns
        """
        points = points_of(self, X)
        crossed = self.prior.cross_covariance(points.X, self.X)
        return points.spread(self.prior.means(points.X) + crossed @ self.weights)
