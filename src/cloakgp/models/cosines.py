r"""Cosine features of inputs that were spread evenly by published counts.

f(x) = m + Σ_d g_d(t_d) + Σ_{d<e} g_{de}(t_d, t_e): effects of single inputs and of pairs, each an
expansion in ψ_j(t) = √2 cos(π j t) and in products of two of these. t_d(x_d) ∈ [0, 1] is the share
of rows below x_d, by counts of the rows in equal bins of the input's public range: within a bin it
rises evenly. Over rows that are spread evenly the ψ_j are orthonormal, so that ΦᵀΦ is nearly known
before any product of features is measured; and a skewed input is not squeezed into a corner of its
box.

Prior: weights are independent, with variances that fall with frequency as those of a Matérn process
(c_j ∝ (1 + (π ℓ j)²)⁻², ℓ = 0.3 of the range of t), equal for all inputs and for all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from cloakgp.models.features import InputBox
from cloakgp.models.simplex import least_probability, nearest_probabilities
from cloakgp.utils.arrays import Array

FREQUENCIES, LENGTHSCALE = 6, 0.3
# Of the signal's variance, what pairs of inputs have if there are any.
PAIRS_SHARE = 0.15
# Rows longer than this multiple of the root mean square over an even spread are shortened.
LONGEST = 1.25
# Of the shares, what is spread evenly over the range whatever was counted: no bin is empty.
EVEN_SHARE = 0.1
# Prior sd of (p − q)/(p + q) for the shares p and q of two halves of a range: a uniform law's.
HALVES_SD = 1 / math.sqrt(3)
# A file that names more would take long to open.
MOST_FEATURES, MOST_PAIRED_INPUTS = 1024, 64
# Halves are not thought to hold less than a hundredth of both.
MOST_UNEVEN = 0.98


@dataclass(frozen=True, eq=False)
class CosineBasis:
    """Effects of inputs and of pairs of them, in cosines of the share of rows below.

    Attributes
    ----------
    box : InputBox
    shares : array of shape (D, bins)
        Published shares of the rows in equal bins of every input's range; each row adds up to 1.
    signal_variance : float
        Prior variance of f(x) about its mean over rows, in squared output units.
    mean_variance : float
        Prior variance of that mean.
    wanted : int
        The most features, the constant among them: those with the largest prior variance. At most
        1,024; pairs of inputs are among them if inputs are fewer, and 64 at most.

    Examples
    --------
    >>> basis = CosineBasis(box=InputBox((0.0,), (10.0,)), shares=np.array([[0.9, 0.1]]),
    ...                     signal_variance=1.0, mean_variance=1.0, wanted=4)
    >>> basis.spread_evenly(np.array([[5.0], [10.0]])).ravel().tolist()
    [0.9, 1.0]
    >>> bool(np.linalg.norm(basis.features(np.array([[3.0], [4.0]])), axis=1).max() <= 1 + 1e-12)
    True
    """

    box: InputBox
    shares: Array
    signal_variance: float
    mean_variance: float
    wanted: int

    exclusive = False

    def validate(self) -> None:
        """Refuse shares that are none, and variances or numbers of features that cannot be.

        Raises
        ------
        ValueError
            If there are such.
        """
        # Written so that NaN fails every one of them.
        if not (
            self.shares.ndim == 2
            and len(self.shares) == self.box.n_inputs
            and self.shares.shape[1] >= 1
            and (self.shares > 0).all()
            and (np.abs(self.shares.sum(axis=1) - 1.0) < 1e-9).all()
            and 0 < self.signal_variance < math.inf
            and 0 < self.mean_variance < math.inf
            and 1 <= self.wanted <= MOST_FEATURES
        ):
            raise ValueError("its basis is damaged")

    @cached_property
    def _below(self) -> Array:
        """Shares of the rows below each bin, (D, bins)."""
        return np.cumsum(self.shares, axis=1) - self.shares

    def spread_evenly(self, X: Array) -> Array:
        """Return t, the share of rows below each input, clipped to the box, shape (N, D)."""
        lo, hi = np.asarray(self.box.lo), np.asarray(self.box.hi)
        bins = self.shares.shape[1]
        places = (self.box.clip(X) - lo) / (hi - lo) * bins
        at = np.clip(places.astype(np.intp), 0, bins - 1)
        inputs = np.arange(self.box.n_inputs)
        spread: Array = self._below[inputs, at] + (places - at) * self.shares[inputs, at]
        return spread

    @cached_property
    def _terms(self) -> tuple[Array, Array, Array]:
        """Inputs (M, 2) and frequencies (M, 2) of both factors, and prior variances (M,)."""
        inputs = self.box.n_inputs
        falling = (1.0 + (np.pi * LENGTHSCALE * np.arange(1, FREQUENCIES + 1)) ** 2) ** -2.0
        falling /= falling.sum()
        paired = inputs < self.wanted and inputs <= MOST_PAIRED_INPUTS
        pairs = list(combinations(range(inputs), 2)) if paired else []
        single = self.signal_variance * (1.0 - PAIRS_SHARE if pairs else 1.0) / inputs
        terms = [((0, 0), (0, 0), self.mean_variance)]
        for at, (j, share) in product(range(inputs), enumerate(falling, start=1)):
            terms.append(((at, at), (j, 0), single * share))
        double = self.signal_variance * PAIRS_SHARE / max(len(pairs), 1)
        for places, (i, one), (j, other) in product(
            pairs, enumerate(falling, start=1), enumerate(falling, start=1)
        ):
            terms.append((places, (i, j), double * one * other))
        variances = np.array([variance for *_, variance in terms])
        # The constant stays, whatever its variance.
        order = np.concatenate([[0], 1 + np.argsort(-variances[1:], kind="stable")])
        kept = order[: self.wanted]
        factors = np.array([(places, powers) for places, powers, _ in terms])[kept]
        return factors[:, 0], factors[:, 1], variances[kept]

    @cached_property
    def scales(self) -> Array:
        """What each ψ is multiplied by, shape (M,), its prior variance to the power ¼.

        Equal privacy noise falls on all sums: by ψ itself wiggles would count as much as the trend.
        """
        quarter = self._terms[2] ** 0.25
        scales: Array = quarter / (LONGEST * np.linalg.norm(quarter))
        return scales

    @property
    def count(self) -> int:
        """M, the number of features."""
        return len(self._terms[2])

    def features(self, X: Array) -> Array:
        """Return Φ at inputs clipped to the box, shape (N, M)."""
        places, frequencies, _ = self._terms
        angles = np.pi * self.spread_evenly(X)[:, :, None] * np.arange(FREQUENCIES + 1)
        waves = np.cos(angles) * np.where(np.arange(FREQUENCIES + 1) == 0, 1.0, math.sqrt(2.0))
        first = waves[:, places[:, 0], frequencies[:, 0]]
        second = waves[:, places[:, 1], frequencies[:, 1]]
        features = first * second * self.scales
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        shortened: Array = features / np.maximum(lengths, 1.0)
        return shortened

    @cached_property
    def weight_covariance(self) -> Array:
        """P, diagonal, in squared output units."""
        return np.diag(self._terms[2] / np.square(self.scales))

    def residual_covariance(self, X: Array) -> Array:
        """Return the prior covariance of what the features leave out, as if independent."""
        return np.diag(self.residual_variance(X))

    def residual_variance(self, X: Array) -> Array:
        """Return the signal's variance that no feature has, shape (N,)."""
        kept = float(self._terms[2][1:].sum())
        return np.full(len(X), max(self.signal_variance - kept, 0.0))


def estimate_shares(counts: Array, *, noise_sd: float, rows: float) -> Array:
    """Return shares of the rows in bins, given noisy counts, shape (bins,).

    The posterior mean of a Pólya tree, from the whole range down: how a node's rows divide among
    its halves is thought uniform beforehand, and the difference of the halves' counts, with the
    noise of all bins in them, moves it as far as that noise allows. So what is finer than noise
    lets see stays even.

    Parameters
    ----------
    counts : array of shape (bins,)
        Published; a power of two of them.
    noise_sd : float
        Of each.
    rows : float
        How many rows there are, or are thought to be.

    Examples
    --------
    >>> estimate_shares(np.array([60.0, 20.0, 10.0, 10.0]), noise_sd=1e-6, rows=100.0).round(2)
    array([0.6, 0.2, 0.1, 0.1])
    >>> estimate_shares(np.array([60.0, 20.0, 10.0, 10.0]), noise_sd=1e6, rows=100.0).round(2)
    array([0.25, 0.25, 0.25, 0.25])
    """
    masses = np.array([float(rows)])
    while len(masses) < len(counts):
        halves = counts.reshape(2 * len(masses), -1).sum(axis=1).reshape(-1, 2)
        noise = 2 * noise_sd**2 * len(counts) / (2 * len(masses))
        prior = np.square(HALVES_SD * masses)
        moved = prior / (prior + noise) * (halves[:, 0] - halves[:, 1])
        moved = np.clip(moved, -MOST_UNEVEN * masses, MOST_UNEVEN * masses)
        masses = np.column_stack([masses + moved, masses - moved]).ravel() / 2
    shares: Array = masses / masses.sum()
    return shares


def estimate_class_shares(counts: Array, *, noise_sd: float, rows: float) -> Array:
    """Return shares of the rows in classes, given noisy counts, shape (C,).

    Shares are thought uniform over all that add up to 1 beforehand, which is a Dirichlet law; given
    counts, the mean is that of a normal law with its mean and variances.

    Parameters
    ----------
    counts : array of shape (C,)
        Published.
    noise_sd : float
        Of each.
    rows : float
        How many rows there are, or are thought to be.

    Examples
    --------
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), noise_sd=1e-6, rows=100.0).round(2)
    array([0.6, 0.3, 0.1])
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), noise_sd=1e6, rows=100.0).round(2)
    array([0.33, 0.33, 0.33])
    """
    count = len(counts)
    prior = rows**2 / (count * (count + 1))
    trust = prior / (prior + noise_sd**2)
    moved = 1.0 / count + trust * (counts - counts.mean()) / rows
    nearest: Array = nearest_probabilities(moved[None], least=least_probability(count))[0]
    return nearest


def with_even_share(shares: Array) -> Array:
    """Return shares of which a part is even, so that every bin has some.

    Examples
    --------
    >>> with_even_share(np.array([1.0, 0.0])).round(2)
    array([0.95, 0.05])
    """
    mixed = (1.0 - EVEN_SHARE) * shares + EVEN_SHARE / len(shares)
    even: Array = mixed / mixed.sum()
    return even
