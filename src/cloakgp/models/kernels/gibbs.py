r"""Gibbs kernel, whose lengthscale follows the density of the public inputs.

The covariance is Gibbs's (1998, *Bayesian Gaussian processes for regression and classification*,
section 3.10; 2021 paper, equation 8) with the lengthscale of input l at x equal to b_l r(x):

    k(x, x') = (2 r r' / (r² + r'²))^{D/2} exp(−Σ_l (x_l − x'_l)² / (b_l² (r² + r'²))),

which is Paciorek and Schervish's (2004, *Nonstationary covariance functions for Gaussian process
regression*, equation 3) for matrices r(x)² diag(b²), and so positive definite for every positive
function r. Where r is constant it is the RBF kernel.

The density ρ(x) counts rows per unit of volume (2021 paper, section 3.1). It is a sum of normal
densities, one for every centre, so that it is described by arrays and numbers alone and can be
stored with a release.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from cloakgp.models.sparse import kmeans_centres
from cloakgp.utils.arrays import Array, as_matrix

Bounds = tuple[float, float] | str
DEFAULT_BOUNDS: Bounds = (1e-5, 1e5)
# Centres of the density, beyond which k-means centres stand for the rows.
MOST_CENTRES = 500
# Places along every input, in both directions, at which the smallest density is looked for.
PLACES_EACH_WAY = 5


class GibbsKernel(Kernel):
    r"""Covariance with a lengthscale b_l / (1/m + ρ(x)/n), of unit variance.

    A scikit-learn kernel: it adds, multiplies, clones, and has gradients in its logarithmic
    hyperparameters ``crowd``, ``length_scale`` and ``longest``. Multiplying b by a factor is the
    same as multiplying m and n by it, so ``crowd`` and ``longest`` are fixed unless bounds are
    given. All parameters are numbers and arrays: nothing of it is code, and a release file can hold
    it. With ``length_scale`` 1 it is the 2021 paper's, with m and n in the units of the inputs.

    Parameters
    ----------
    centres : array of shape (M, D)
        Where the rows lie that the density counts: public inputs.
    bandwidth : float or array of shape (D,)
        Of the density, in the units of the inputs.
    longest : float
        m, the value of r where there are no rows.
    crowd : float
        n; where rows are dense, r is n/ρ.
    radius : float or array of shape (D,)
        The smallest density within so much of x along each axis is taken; at zero, the density at
        x. In the units of the inputs.
    weights : array of shape (M,), optional
        How many rows each centre stands for.
    length_scale : float or array of shape (D,)
        b.
    length_scale_bounds, longest_bounds, crowd_bounds : (float, float) or "fixed"

    Examples
    --------
    Far from all rows, it is the RBF kernel of lengthscale m.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = GibbsKernel(np.zeros((3, 1)), bandwidth=1.0, longest=20.0, crowd=2.0)
    >>> far = np.array([[100.0], [110.0]])
    >>> bool(np.allclose(kernel(far), RBF(20.0)(far)))
    True
    """

    def __init__(
        self,
        centres: ArrayLike,
        bandwidth: ArrayLike = 1.0,
        longest: float = 1.0,
        crowd: float = 1.0,
        radius: ArrayLike = 0.0,
        weights: ArrayLike | None = None,
        length_scale: ArrayLike = 1.0,
        length_scale_bounds: Bounds = DEFAULT_BOUNDS,
        longest_bounds: Bounds = "fixed",
        crowd_bounds: Bounds = "fixed",
    ) -> None:
        self.centres = centres
        self.bandwidth = bandwidth
        self.longest = longest
        self.crowd = crowd
        self.radius = radius
        self.weights = weights
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
        self.longest_bounds = longest_bounds
        self.crowd_bounds = crowd_bounds

    @property
    def hyperparameter_crowd(self) -> Hyperparameter:
        """The rows within a lengthscale."""
        return Hyperparameter("crowd", "numeric", self.crowd_bounds)

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """The factor of every lengthscale, or one for each input."""
        count = int(np.size(self.length_scale)) if np.ndim(self.length_scale) else 1
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds, count)

    @property
    def hyperparameter_longest(self) -> Hyperparameter:
        """The lengthscale without rows."""
        return Hyperparameter("longest", "numeric", self.longest_bounds)

    def density(self, X: Array) -> Array:
        """Return ρ, or the smallest within the radius, shape (n,)."""
        return smallest_density(
            X,
            centres=self.centres,
            bandwidth=self.bandwidth,
            radius=self.radius,
            weights=self.weights,
        )

    def lengthscale(self, X: Array) -> Array:
        """Return r(x), shape (n,); times ``length_scale`` it is the lengthscale of each input."""
        return density_lengthscale(self.density(X), longest=self.longest, crowd=self.crowd)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return the covariances, and their gradients in the free logarithmic hyperparameters.

        Parameters
        ----------
        X : array of shape (n, D)
        Y : array of shape (m, D), optional
            X if not given.
        eval_gradient : bool
            Only without Y.

        Returns
        -------
        K : array of shape (n, m)
        gradient : array of shape (n, n, p)
            If asked for; hyperparameters in the order of ``theta``.

        Raises
        ------
        ValueError
            If parameters are not positive or shapes do not fit, or for a gradient with Y.
        """
        rows = as_matrix(X, name="X")
        if eval_gradient and Y is not None:
            raise ValueError("the gradient is for one set of inputs: leave Y out")
        others = rows if Y is None else as_matrix(Y, name="Y", columns=rows.shape[1])
        factors = self._factors(rows.shape[1])
        across = self.lengthscale(rows)[:, None]
        down = across.T if Y is None else self.lengthscale(others)[None, :]
        total = np.square(across) + np.square(down)
        squares = cdist(rows / factors, others / factors, "sqeuclidean")
        K = (2.0 * across * down / total) ** (rows.shape[1] / 2) * np.exp(-squares / total)
        if not eval_gradient:
            return np.asarray(K, dtype=np.float64)
        return K, self._gradient(rows, K=K, lengthscale=across[:, 0], squares=squares)

    def _gradient(self, X: Array, *, K: Array, lengthscale: Array, squares: Array) -> Array:
        """Return ∂K/∂θ in the order of ``theta``, shape (n, n, p)."""
        total = np.square(lengthscale)[:, None] + np.square(lengthscale)
        # ∂ log k / ∂ log r(x), with r(x') as it is.
        share = 2.0 * np.square(lengthscale)[:, None] / total
        slope = X.shape[1] / 2 * (1.0 - share) + share * squares / total
        # r = 1/(1/m + ρ/n), so ∂ log r / ∂ log m = r/m, and the rest of 1 is log n's.
        by_longest = lengthscale / self.longest
        parts: dict[str, list[Array]] = {"crowd": [], "length_scale": [], "longest": []}
        if not self.hyperparameter_crowd.fixed:
            grown = slope * (1.0 - by_longest)[:, None]
            parts["crowd"] = [grown + grown.T]
        if not self.hyperparameter_longest.fixed:
            grown = slope * by_longest[:, None]
            parts["longest"] = [grown + grown.T]
        if not self.hyperparameter_length_scale.fixed:
            parts["length_scale"] = self._slopes_by_input(X, squares=squares, total=total)
        slopes = [slope for name in sorted(parts) for slope in parts[name]]
        if not slopes:
            return np.empty((*K.shape, 0))
        return np.asarray(K[:, :, None] * np.stack(slopes, axis=-1), dtype=np.float64)

    def _slopes_by_input(self, X: Array, *, squares: Array, total: Array) -> list[Array]:
        if np.ndim(self.length_scale) == 0:
            return [2.0 * squares / total]
        scaled = X / self._factors(X.shape[1])
        return [
            2.0 * np.square(column[:, None] - column) / total
            for column in np.ascontiguousarray(scaled.T)
        ]

    def _factors(self, inputs: int) -> Array:
        factors = np.asarray(self.length_scale, dtype=np.float64)
        if factors.shape not in {(), (inputs,)} or not (factors > 0).all():
            raise ValueError(f"length_scale must be positive: one number, or {inputs}")
        return factors

    def diag(self, X: ArrayLike) -> Array:
        """Return the variances, all 1, shape (n,)."""
        return np.ones(len(np.asarray(X)))

    def is_stationary(self) -> bool:
        """Return False."""
        return False

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of this class and has the same parameters."""
        if type(self) is not type(other):
            return False
        mine, theirs = _parameters(self), _parameters(other)
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        factors = np.array2string(np.asarray(self.length_scale), precision=3, separator=", ")
        return (
            f"{type(self).__name__}({len(np.asarray(self.centres))} centres, "
            f"length_scale={factors}, longest={self.longest:.3g}, crowd={self.crowd:.3g}, "
            f"bandwidth={self.bandwidth!r}, radius={self.radius!r})"
        )


def gibbs_kernel(
    X: Array,
    *,
    longest: float,
    crowd: float,
    bandwidth: ArrayLike,
    radius: ArrayLike = 0.0,
) -> GibbsKernel:
    """Return the kernel whose density counts the rows of public inputs.

    Rows at the same place are counted together; beyond 500 places, k-means centres stand for them.

    Parameters
    ----------
    X : array of shape (N, D)
    longest, crowd, bandwidth, radius
        As for `GibbsKernel`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [5.0]])
    >>> gibbs_kernel(X, longest=9.0, crowd=2.0, bandwidth=1.0).weights.tolist()
    [2.0, 1.0]
    """
    centres, sizes = kmeans_centres(X, count=MOST_CENTRES)
    return GibbsKernel(
        centres,
        bandwidth=bandwidth,
        longest=longest,
        crowd=crowd,
        radius=radius,
        weights=sizes,
    )


def row_density(
    X: Array,
    *,
    centres: ArrayLike,
    bandwidth: ArrayLike,
    weights: ArrayLike | None = None,
) -> Array:
    r"""Return ρ(x) = Σ_j w_j N(x; z_j, diag(h²)), a kernel density estimate times the rows counted.

    Parameters
    ----------
    X : array of shape (n, D)
    centres : array of shape (M, D)
        The public inputs, or fewer places that stand for them.
    bandwidth : float or array of shape (D,)
        h, in the units of the inputs.
    weights : array of shape (M,), optional
        How many rows each centre stands for; one each if not given.

    Returns
    -------
    array of shape (n,)
        Rows per unit of volume of the inputs.

    Raises
    ------
    ValueError
        If shapes do not fit, a bandwidth is not positive, or a weight is negative.

    Examples
    --------
    Two rows at zero; the standard normal density there is 0.3989.

    >>> row_density(np.zeros((1, 1)), centres=np.zeros((2, 1)), bandwidth=1.0).round(4)
    array([0.7979])
    """
    places = as_matrix(centres, name="centres", columns=X.shape[1])
    spread = _per_input(bandwidth, inputs=X.shape[1], name="bandwidth")
    if not (spread > 0).all():
        raise ValueError("bandwidth must be positive")
    counted = np.ones(len(places)) if weights is None else np.asarray(weights, dtype=np.float64)
    if counted.shape != (len(places),) or not (np.isfinite(counted) & (counted >= 0)).all():
        raise ValueError(f"weights must be {len(places)} numbers that are finite and at least 0")
    squares = cdist(X / spread, places / spread, "sqeuclidean")
    height = float(np.prod(spread)) * (2.0 * np.pi) ** (X.shape[1] / 2)
    density: Array = np.exp(-squares / 2.0) @ counted / height
    return density


def smallest_density(
    X: Array,
    *,
    centres: ArrayLike,
    bandwidth: ArrayLike,
    radius: ArrayLike,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the smallest density near each input, the 2021 paper's amendment of its section 3.1.

    It is looked for at the input itself and at five places each way along every axis, out to the
    radius: their number grows with the inputs, not with a power of them.

    Parameters
    ----------
    X : array of shape (n, D)
    centres, bandwidth, weights
        As for `row_density`.
    radius : float or array of shape (D,)
        In the units of the inputs; at zero this is `row_density`.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError
        As `row_density`, and if a radius is negative.

    Examples
    --------
    >>> near = smallest_density(np.zeros((1, 1)), centres=np.zeros((1, 1)), bandwidth=1.0, radius=2)
    >>> there = row_density(np.full((1, 1), 2.0), centres=np.zeros((1, 1)), bandwidth=1.0)
    >>> bool(near == there)
    True
    """
    reach = _per_input(radius, inputs=X.shape[1], name="radius")
    if not (reach >= 0).all():
        raise ValueError("radius must be at least 0")
    smallest = row_density(X, centres=centres, bandwidth=bandwidth, weights=weights)
    shares = np.arange(1, PLACES_EACH_WAY + 1) / PLACES_EACH_WAY
    for axis in np.flatnonzero(reach):
        for share in np.concatenate([-shares, shares]):
            moved = X.copy()
            moved[:, axis] += share * reach[axis]
            near = row_density(moved, centres=centres, bandwidth=bandwidth, weights=weights)
            smallest = np.minimum(smallest, near)
    return smallest


def density_lengthscale(density: Array, *, longest: float, crowd: float) -> Array:
    """Return r = 1 / (1/m + ρ/n) (2021 paper, section 3.1).

    Parameters
    ----------
    density : array of shape (n,)
        ρ, at least zero.
    longest : float
        m, the lengthscale where there are no rows.
    crowd : float
        n: where rows are dense the lengthscale is n/ρ, so that, with one input, as many rows lie
        within a lengthscale.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError
        Unless both are positive.

    Examples
    --------
    >>> density_lengthscale(np.array([0.0, 1.0, 100.0]), longest=50.0, crowd=10.0).round(2)
    array([50.  ,  8.33,  0.1 ])
    """
    if not (longest > 0 and crowd > 0):
        raise ValueError("longest and crowd must be positive")
    lengthscale: Array = 1.0 / (1.0 / longest + density / crowd)
    return lengthscale


def _per_input(value: ArrayLike, *, inputs: int, name: str) -> Array:
    """Return one number per input, shape (D,), of a number or of D numbers."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in {(), (inputs,)} or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be one finite number, or one for each of {inputs} inputs")
    return np.broadcast_to(numbers, (inputs,))


def _parameters(kernel: object) -> Mapping[str, object]:
    parameters: Mapping[str, object] = kernel.get_params(deep=False)  # type: ignore[attr-defined]
    return parameters
