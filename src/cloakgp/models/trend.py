r"""Trend: a public prediction of outputs, as the mean function of a prior.

A public column p(x) says what outputs are: an old census, a model of other people. A prior with a
trend has the mean function

    E f(x) = m + t(x),    t(x) = p(x) − c.

Of a sparse prior, it is the trend as the inducing inputs Z carry it, Vᵀμ with V the features and
μ = G⁻¹ t(Z), K_ZZ = G Gᵀ: as functions under it are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.utils.arrays import Array


@dataclass(frozen=True)
class Trend:
    """A public column that predicts outputs.

    Attributes
    ----------
    column : int
        The place of p among the inputs, from 0. In output units.
    centre : float
        c: the prediction at which the prior mean is that without a trend, in output units.

    Examples
    --------
    >>> Trend(column=1, centre=10.0)(np.array([[0.0, 12.5]]))
    array([2.5])
    """

    column: int
    centre: float

    def validate(self) -> None:
        """Refuse a place or a centre that is none.

        Raises
        ------
        ValueError
            If there is no such column, or the centre is not finite.
        """
        if self.column < 0 or not np.isfinite(self.centre):
            raise ValueError("its public prediction is damaged")

    def __call__(self, X: Array) -> Array:
        """Return t at P points, shape (P,).

        Parameters
        ----------
        X : array of shape (P, D), or with more columns, which are passed over
        """
        trend: Array = X[:, self.column] - self.centre
        return trend
