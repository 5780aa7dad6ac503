r"""Feature maps: public features φ of an input, of norm at most 1, on a public box.

A basis turns a Gaussian process into a linear model f(x) = m + φ(x)ᵀ w with w ~ N(0, P), so that
all a table says about f is in Φᵀ Φ and Φᵀ y. Everything here is known before any row is seen: the
box, the kernel, and points that lie evenly in the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np
from scipy import linalg
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.latent import (
    check_positive_definite,
    latent_covariance,
    latent_variance,
)
from cloakgp.utils.arrays import Array

POINTS_ON_A_LINE, POINTS_IN_A_BOX = 256, 512
# The corners of boxes of up to so many dimensions are among the points of reference.
MOST_DIMENSIONS_WITH_CORNERS = 6
# Points of reference take memory in each, and time: a file that names so many is opened in seconds.
MOST_DIMENSIONS = 2048
# Eigenfunctions below this share of the largest eigenvalue are rounding errors.
SMALLEST_EIGENVALUE = 1e-10


@dataclass(frozen=True)
class InputBox:
    """The public range of every input.

    Attributes
    ----------
    lo, hi : tuple of float
        In input units, one per input.

    Examples
    --------
    >>> InputBox.checked([(0, 90), (0, 75)]).hi
    (90.0, 75.0)
    >>> InputBox.checked((-1, 1), n_inputs=2).lo
    (-1.0, -1.0)
    """

    lo: tuple[float, ...]
    hi: tuple[float, ...]

    @classmethod
    def checked(cls, bounds: object, *, n_inputs: int | None = None) -> InputBox:
        """Return a valid box, or raise an error that explains the fault.

        Parameters
        ----------
        bounds : sequence of (float, float), or (float, float)
            One pair per input, or a single one for every input.
        n_inputs : int, optional
            D, the number of inputs that it must be for.

        Raises
        ------
        ValueError
            Unless it is pairs of finite numbers, the lower first, as many as inputs, and no more
            than 2,048.
        """
        advice = "give input_bounds=[(lo, hi), ...], one pair per input, known without the data"
        if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str):
            raise ValueError(f"input_bounds are missing: {advice}")
        try:
            pairs = np.asarray(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"input_bounds must be pairs of numbers: {advice}") from None
        if max(pairs.size // 2, n_inputs or 0) > MOST_DIMENSIONS:
            raise ValueError(f"there may be {MOST_DIMENSIONS} inputs at most: leave some out")
        if pairs.shape == (2,) and n_inputs is not None:
            pairs = np.tile(pairs, (n_inputs, 1))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
            raise ValueError(f"input_bounds must be pairs, got shape {pairs.shape}: {advice}")
        # So must their width be, by which all is scaled.
        if not all(lo < hi and math.isfinite(hi - lo) for lo, hi in pairs.tolist()):
            raise ValueError(f"each pair must be finite, the lower bound first: {advice}")
        if n_inputs is not None and len(pairs) != n_inputs:
            raise ValueError(f"X has {n_inputs} columns, input_bounds {len(pairs)} pairs: {advice}")
        return cls(lo=tuple(pairs[:, 0].tolist()), hi=tuple(pairs[:, 1].tolist()))

    def validate(self) -> None:
        """Refuse a box that `checked` would not have made.

        Raises
        ------
        ValueError
            If it is none.
        """
        InputBox.checked(list(zip(self.lo, self.hi, strict=True)))

    @property
    def n_inputs(self) -> int:
        """D, the number of inputs."""
        return len(self.lo)

    def clip(self, X: Array) -> Array:
        """Return inputs brought inside the box."""
        return np.clip(X, self.lo, self.hi)

    @cached_property
    def reference(self) -> Array:
        """Evenly spread points of the box, always the same, shape (n, D).

        Equidistant in one dimension, Halton's sequence and the corners in more.
        """
        if self.n_inputs == 1:
            return np.linspace(self.lo[0], self.hi[0], POINTS_ON_A_LINE)[:, None]
        unit = qmc.Halton(self.n_inputs, scramble=False).random(POINTS_IN_A_BOX)
        if self.n_inputs <= MOST_DIMENSIONS_WITH_CORNERS:
            unit = np.vstack([unit, list(product((0.0, 1.0), repeat=self.n_inputs))])
        points: Array = np.asarray(self.lo) + unit * (np.asarray(self.hi) - np.asarray(self.lo))
        return points


class Basis(Protocol):
    """The interface of a public basis."""

    @property
    def box(self) -> InputBox:
        """Where inputs are clipped to."""

    @property
    def count(self) -> int:
        """M, the number of features."""

    @property
    def exclusive(self) -> bool:
        """Whether exactly one feature of any input is 1 and all others are 0."""

    def features(self, X: Array) -> Array:
        """Return Φ, one row per input, of norm at most 1 up to rounding, shape (N, M)."""

    @property
    def weight_covariance(self) -> Array:
        """Return P, the prior covariance of the weights, in squared output units, (M, M)."""

    def residual_covariance(self, X: Array) -> Array:
        """Return the prior covariance of f that the features leave out, shape (N, N)."""

    def residual_variance(self, X: Array) -> Array:
        """Return its diagonal, shape (N,); never below zero."""


@dataclass(frozen=True)
class EigenBasis:
    r"""The kernel's leading eigenfunctions on a box, by Nyström's method on points of reference.

    With K_ZZ/n = U Λ Uᵀ over n public inducing inputs Z, ψ_j(x) = k(x, Z) u_j/(√n λ_j) are
    eigenfunctions of the kernel, orthonormal over the box up to quadrature, with weights of prior
    variance λ_j (Williams and Seeger 2001; Rasmussen and Williams 2006, section 4.3.2). So this is
    the subset-of-regressors model on Z, in coordinates in which it can be cut short.

    Features are φ_j = λ_j^¼ ψ_j/c, with c their largest norm over Z, and are shortened to norm 1
    wherever they would be longer. Equal privacy noise falls on every product of two features, so
    that scaling spends accuracy: by ψ_j itself wiggles would count as much as the trend, by
    √λ_j ψ_j what is rare but real would drown.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance of the latent function, in squared output units.
    box : InputBox
    wanted : int
        Features asked for; fewer if the kernel has fewer eigenfunctions in float64.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> basis = EigenBasis(kernel=RBF(2.0), box=InputBox((0.0,), (10.0,)), wanted=5)
    >>> features = basis.features(np.array([[3.0], [4.0]]))
    >>> features.shape, bool(np.linalg.norm(features, axis=1).max() <= 1 + 1e-12)
    ((2, 5), True)
    """

    kernel: Kernel
    box: InputBox
    wanted: int

    exclusive = False

    def validate(self) -> None:
        """Refuse a basis without features.

        Raises
        ------
        ValueError
            If none is wanted.
        """
        if self.wanted < 1:
            raise ValueError("its basis is damaged")

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """λ, shape (M,), and the matrix that maps k(x, Z) to λ_j^¼ ψ_j(x), shape (n, M)."""
        inducing = self.box.reference
        covariance = latent_covariance(self.kernel, inducing, inducing.copy())
        check_positive_definite(self.kernel, covariance)
        points = len(inducing)
        first = max(points - self.wanted, 0)
        values, vectors = linalg.eigh(covariance / points, subset_by_index=(first, points - 1))
        values, vectors = values[::-1], vectors[:, ::-1]
        if not values[0] > 0:
            raise ValueError(f"the kernel {self.kernel!r} vanishes on the box")
        kept = values > SMALLEST_EIGENVALUE * values[0]
        values, vectors = values[kept], vectors[:, kept]
        return values, vectors * values**-0.75 / math.sqrt(points)

    @cached_property
    def _longest(self) -> float:
        """c: the largest norm of λ_j^¼ ψ_j over the points of reference."""
        return float(np.linalg.norm(self._unscaled(self.box.reference), axis=1).max())

    def _unscaled(self, X: Array) -> Array:
        return latent_covariance(self.kernel, X, self.box.reference) @ self._spectrum[1]

    @property
    def map(self) -> Array:
        """What maps k(x, Z) to features that are not yet shortened, shape (n, M)."""
        found: Array = self._spectrum[1] / self._longest
        return found

    @property
    def count(self) -> int:
        """M, the number of features."""
        return len(self._spectrum[0])

    def features(self, X: Array) -> Array:
        """Return Φ at inputs clipped to the box, shape (N, M)."""
        features = self._unscaled(self.box.clip(X)) / self._longest
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        shortened: Array = features / np.maximum(lengths, 1.0)
        return shortened

    @cached_property
    def weight_covariance(self) -> Array:
        """P = diag(c² √λ_j)."""
        return np.diag(np.sqrt(self._spectrum[0]) * self._longest**2)

    def residual_covariance(self, X: Array) -> Array:
        """Return K − Φ P Φᵀ at inputs clipped to the box, shape (N, N)."""
        points = self.box.clip(X)
        features = self.features(points)
        explained = features @ self.weight_covariance @ features.T
        return latent_covariance(self.kernel, points, points.copy()) - explained

    def residual_variance(self, X: Array) -> Array:
        """Return its diagonal, shape (N,)."""
        points = self.box.clip(X)
        explained = np.square(self.features(points)) @ np.diag(self.weight_covariance)
        variance: Array = np.maximum(latent_variance(self.kernel, points) - explained, 0.0)
        return variance


@dataclass(frozen=True)
class BinBasis:
    """Equal bins, in each of which f is constant: Φᵀ Φ holds counts, and Φᵀ y sums.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance of the bins' values, taken between their middles, in squared output units.
    box : InputBox
    bins : tuple of int
        Along each input.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> basis = BinBasis(kernel=RBF(2.0), box=InputBox((0.0,), (9.0,)), bins=(3,))
    >>> basis.features(np.array([[3.5], [99.0]]))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kernel: Kernel
    box: InputBox
    bins: tuple[int, ...]

    exclusive = True

    def validate(self) -> None:
        """Refuse numbers of bins that are not one for each input.

        Raises
        ------
        ValueError
            If they are not, or an input has no bin.
        """
        if len(self.bins) != self.box.n_inputs or min(self.bins) < 1:
            raise ValueError("its basis is damaged")

    @property
    def count(self) -> int:
        """M, the number of bins."""
        return math.prod(self.bins)

    def features(self, X: Array) -> Array:
        """Return which bin each input falls in, shape (N, M)."""
        lo, hi = np.asarray(self.box.lo), np.asarray(self.box.hi)
        shares = (self.box.clip(X) - lo) / (hi - lo)
        places = np.minimum((shares * self.bins).astype(np.intp), np.asarray(self.bins) - 1)
        features = np.zeros((len(X), self.count))
        features[np.arange(len(X)), np.ravel_multi_index(tuple(places.T), self.bins)] = 1.0
        return features

    @cached_property
    def middles(self) -> Array:
        """The middles of the bins, shape (M, D)."""
        lo, hi = np.asarray(self.box.lo), np.asarray(self.box.hi)
        shares = product(*((np.arange(bins) + 0.5) / bins for bins in self.bins))
        middles: Array = lo + np.array(list(shares)) * (hi - lo)
        return middles

    @cached_property
    def weight_covariance(self) -> Array:
        """The kernel between the middles."""
        return latent_covariance(self.kernel, self.middles, self.middles.copy())

    def residual_covariance(self, X: Array) -> Array:
        """Return the spread about the bins' values, as if independent, shape (N, N)."""
        return np.diag(self.residual_variance(X))

    def residual_variance(self, X: Array) -> Array:
        """Return the prior variance of f(x) given f at the middle of its bin, shape (N,)."""
        points = self.box.clip(X)
        near = self.middles[self.features(points).argmax(axis=1)]
        crossed = np.array(
            [
                latent_covariance(self.kernel, point[None], neighbour[None])[0, 0]
                for point, neighbour in zip(points, near, strict=True)
            ]
        )
        middle = latent_variance(self.kernel, near)
        explained = np.divide(crossed**2, middle, out=np.zeros_like(crossed), where=middle > 0)
        variance: Array = np.maximum(latent_variance(self.kernel, points) - explained, 0.0)
        return variance
