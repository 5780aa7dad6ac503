r"""Negative binomial likelihood with exposure: counts whose log rate is a Gaussian process.

A row with public exposure e counts events at rate exp(f) for each unit of exposure,

    y ~ NB(mean λ = e exp f, variance λ + α λ²),

with overdispersion α ≥ 0; Poisson for α = 0. A latent value here is f + log e: whoever calls adds
the offset log e of every row.

What is asked of counts is their root h = √(y + 3/8), clipped (`cloakgp.models.transforms`): to the
declared bounds, to an interval that was found, or to a band around what is predicted. With the
masses P(y | f) summed over f ~ N(μ, s²) at Gauss–Hermite nodes,

    p(y) = E P(y | f),    q(y) = E[(f − μ) P(y | f)] / s,

the moments of any function g of a count are sums over y, whatever the clipping,

    E g = Σ g p,    cov(f, g) = s Σ g q,    cov(g, g') = Σ g g' p − E g E g',

and so are the best linear accounts of what several stages asked, with the covariance of what they
leave out. Clipped counts are thus seen as clipped, and bias nothing.

Masses are tabulated on a grid of log means, between whose places they are interpolated: that is a
mixture of distributions of counts, too. Counts of which roots differ by less than 1/8 are taken
together, at the root of their middle: what is left out is a hundredth of what roots of counts
scatter by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.gaussian_process.kernels import ConstantKernel

from cloakgp.models.likelihoods.base import (
    Accounts,
    LatentFunctions,
    LatentPrior,
    Likelihood,
    Linearisation,
    Window,
)
from cloakgp.models.transforms import ROOT_SHIFT
from cloakgp.utils.arrays import Array
from cloakgp.utils.normal_mixtures import mixture_quantiles

NODES = 20
# Of the grid of log means: where it begins, how far above the largest count it ends, its step.
LOWEST_LOG_MEAN, ABOVE_LARGEST, LOG_MEAN_STEP = -10.0, 3.0, 1 / 64
# Counts whose roots are nearer than that share a cell.
ROOT_RESOLUTION = 1 / 8
# Of a latent value: less is not told from it.
SMALLEST_SD = 1e-4
# Rows whose masses are held at a time.
BLOCK_ROWS = 1024
# The largest overdispersion that can be declared, and the largest bound.
MOST_OVERDISPERSED, MOST_COUNTED = 1e3, 1e8
# The largest mean of a new count: predictions far from all that was asked may lie beyond it.
LARGEST_LOG_MEAN = float(np.log(1e300))
# Of two; no quantile of a count with such a mean is above it.
LARGEST_POWER = 1022.0
# Share of the latent variance that each row has to itself, so that covariances have factors.
LATENT_NUGGET = 1e-6

HERMITE_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
HERMITE_SHARES = _WEIGHTS / _WEIGHTS.sum()


def count_distribution(mean: Array, overdispersion: float) -> stats.distributions.rv_frozen:
    """Return the distribution of counts with given means.

    Parameters
    ----------
    mean : array
        λ, positive.
    overdispersion : float
        α; Poisson for 0.

    Examples
    --------
    >>> count_distribution(np.array([2.0]), 0.5).var()
    array([4.])
    """
    if overdispersion == 0:
        return stats.poisson(mean)
    return stats.nbinom(1.0 / overdispersion, 1.0 / (1.0 + overdispersion * mean))


@dataclass(frozen=True, eq=False)
class _Masses:
    """Distributions of counts on a grid of log means, in cells."""

    roots: Array
    table: Array

    def mixed(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return p and q of cells for log means N(mean, variance), shapes (n, K)."""
        sd = np.maximum(np.sqrt(variance), SMALLEST_SD)
        places = (mean[:, None] + sd[:, None] * HERMITE_NODES - LOWEST_LOG_MEAN) / LOG_MEAN_STEP
        places = np.clip(places, 0.0, len(self.table) - 1.0)
        below = np.minimum(places.astype(np.intp), len(self.table) - 2)
        above = places - below
        rows = np.repeat(np.arange(len(mean)), NODES)
        mixed = []
        for shares in (HERMITE_SHARES, HERMITE_SHARES * HERMITE_NODES):
            entries = np.concatenate([((1 - above) * shares).ravel(), (above * shares).ravel()])
            columns = np.concatenate([below.ravel(), below.ravel() + 1])
            shape = (len(mean), len(self.table))
            weights = sparse.csr_matrix((entries, (np.tile(rows, 2), columns)), shape=shape)
            mixed.append(np.asarray(weights @ self.table))
        return mixed[0], mixed[1]


@lru_cache(maxsize=64)
def _masses(largest: int, overdispersion: float) -> _Masses:
    firsts = _cells(largest)
    top = np.log(largest + 1.0) + ABOVE_LARGEST
    grid = np.arange(LOWEST_LOG_MEAN, top + LOG_MEAN_STEP, LOG_MEAN_STEP)
    counted = count_distribution(np.exp(grid)[:, None], overdispersion)
    # P(y < first) of every cell; the last has all that is not below it.
    below = counted.cdf(firsts[None, :] - 1.0)
    table = np.diff(below, axis=1, append=1.0)
    lasts = np.append(firsts[1:] - 1, largest)
    return _Masses(
        roots=np.sqrt((firsts + lasts) / 2 + ROOT_SHIFT),
        table=np.asarray(np.maximum(table, 0.0), dtype=np.float64),
    )


def _cells(largest: int) -> NDArray[np.intp]:
    """Return the first count of every cell; the last is of the largest count and beyond."""
    firsts, first = [], 0
    while first < largest:
        firsts.append(first)
        first += max(1, int(2 * ROOT_RESOLUTION * np.sqrt(first)))
    return np.array([*firsts, largest], dtype=np.intp)


@dataclass(frozen=True)
class CountLikelihood(Likelihood):
    """Outputs are counts: negative binomial, or Poisson, about their exposure times a rate.

    Attributes
    ----------
    largest : int
        The declared upper bound of a count: more is asked as if it were that.
    overdispersion : float
        α: counts of mean λ have variance λ + α λ². 0 for Poisson.

    Examples
    --------
    >>> likelihood = CountLikelihood(largest=50)
    >>> account = likelihood.linearise(np.log([9.0]), np.array([1e-4]))
    >>> account.expected.round(2), account.residual.round(2)
    (array([3.02]), array([0.25]))
    """

    largest: int
    overdispersion: float = 0.0

    name: ClassVar[str] = "negative binomial"
    outputs: ClassVar[Literal["numbers", "classes"]] = "numbers"
    windowed: ClassVar[bool] = True

    def validate(self) -> None:
        """Refuse bounds and overdispersions that are none.

        Raises
        ------
        ValueError
        """
        if not (1 <= self.largest <= MOST_COUNTED):
            raise ValueError(f"the upper bound of counts must be from 1 to {MOST_COUNTED:,.0f}")
        # Written so that NaN fails.
        if not 0 <= self.overdispersion <= MOST_OVERDISPERSED:
            raise ValueError(
                f"overdispersion must be from 0 to {MOST_OVERDISPERSED:g}, "
                f"got {self.overdispersion}"
            )

    @property
    def roots(self) -> Array:
        """Roots of the counts that cells stand for, shape (K,)."""
        return _masses(self.largest, self.overdispersion).roots

    @property
    def whole(self) -> Window:
        """The window of the declared bound alone."""
        return Window(lower=float(np.sqrt(ROOT_SHIFT)), upper=float(self.roots[-1]))

    def masses(self, mean: Array, variance: Array) -> Array:
        """Return the probabilities of cells of counts, shape (n, K).

        Parameters
        ----------
        mean, variance : arrays of shape (n,)
            Of latent values, offsets included.
        """
        table = _masses(self.largest, self.overdispersion)
        return np.concatenate(
            [table.mixed(mean[rows], variance[rows])[0] for rows in _blocks(len(mean))]
        )

    def accounts(self, mean: Array, variance: Array, windows: Sequence[Window | None]) -> Accounts:
        """Return linear accounts of clipped roots of counts; see `Likelihood.accounts`."""
        table = _masses(self.largest, self.overdispersion)
        chosen = [self.whole if window is None else window for window in windows]
        stages, count = len(chosen), len(mean)
        expected, slope = np.zeros((stages, count)), np.zeros((stages, count))
        residual = np.zeros((stages, stages, count))
        sd = np.maximum(np.sqrt(variance), SMALLEST_SD)
        for rows in _blocks(count):
            mixed, tilted = table.mixed(mean[rows], variance[rows])
            asked = [window.of_rows(rows).place(table.roots) for window in chosen]
            for stage, values in enumerate(asked):
                expected[stage, rows] = (values * mixed).sum(axis=1)
                slope[stage, rows] = (values * tilted).sum(axis=1) / sd[rows]
            for stage, values in enumerate(asked):
                for other, others in enumerate(asked[: stage + 1]):
                    together = (values * others * mixed).sum(axis=1)
                    together -= expected[stage, rows] * expected[other, rows]
                    together -= slope[stage, rows] * slope[other, rows] * np.square(sd[rows])
                    residual[stage, other, rows] = residual[other, stage, rows] = together
        diagonal = np.arange(stages)
        residual[diagonal, diagonal] = np.maximum(residual[diagonal, diagonal], 0.0)
        return Accounts(expected=expected, slope=slope, residual=residual)

    def linearise(self, mean: Array, variance: Array) -> Linearisation:
        """Return the account of roots of counts within the declared bounds."""
        accounts = self.accounts(mean, variance, [None])
        return Linearisation(
            expected=accounts.expected[0], slope=accounts.slope[0], residual=accounts.residual[0, 0]
        )

    def root_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and variance of the root of a count within the declared bounds."""
        account = self.linearise(mean, variance)
        return account.expected, account.residual + np.square(account.slope) * variance

    def linear_prior(self, prior: LatentPrior, X: Array) -> LatentPrior:
        """Return the Gaussian prior over roots of counts that is nearest at the prior.

        Averaged over the rows of X, each of exposure 1.
        """
        variance = prior.query_variance(X) + prior.observation_noise(X)
        account = self.linearise(np.full(len(X), prior.mean), variance)
        squared_slope = float(np.square(account.slope).mean())
        return replace(
            prior,
            kernel=ConstantKernel(squared_slope, constant_value_bounds="fixed") * prior.kernel,
            noise_variance=max(float(account.residual.mean()), LATENT_NUGGET),
            mean=float(account.expected.mean()),
        )

    def predict(
        self,
        functions: LatentFunctions,
        X: Array,
        *,
        return_std: bool,
        return_cov: bool,
        new_output: bool,
    ) -> Array | tuple[Array, Array]:
        """Return the expected count for one unit of exposure, and its sd, or a new count's.

        Raises
        ------
        ValueError
            If a covariance is asked for.
        """
        if return_cov:
            raise ValueError("rates of counts have no covariance here: ask for return_std")
        parts = functions.marginals(X)
        first, second = np.zeros(len(X)), np.zeros(len(X))
        scatter = np.zeros(len(X))
        for part in parts:
            mean, variance = part.mean[:, 0], part.variance[:, 0]
            # Moments of a lognormal rate.
            rate, square = np.exp(mean + variance / 2), np.exp(2 * mean + 2 * variance)
            first, second = first + part.weight * rate, second + part.weight * square
            own = part.likelihood
            assert isinstance(own, CountLikelihood)
            scatter += part.weight * (rate + own.overdispersion * square)
        if not return_std:
            return first
        variance = np.maximum(second - np.square(first), 0.0) + (scatter if new_output else 0.0)
        return first, np.sqrt(variance)

    def rate_quantile(self, functions: LatentFunctions, X: Array, q: float) -> Array:
        """Return a quantile of the posterior of the rate, shape (P,).

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        q : float
            Strictly between 0 and 1.
        """
        parts = functions.marginals(X)
        weights = np.array([part.weight for part in parts])
        means = np.stack([part.mean[:, 0] for part in parts], axis=1)
        sds = np.sqrt(np.stack([part.variance[:, 0] for part in parts], axis=1))
        return np.exp(mixture_quantiles(means, sds, weights, q))

    def predictive(self, functions: LatentFunctions, X: Array, exposure: Array) -> CountMixture:
        """Return the predictive distribution of a new count at each of P points.

        Parameters
        ----------
        functions : LatentFunctions
        X : array of shape (P, D)
        exposure : array of shape (P,)
            Of the new counts.
        """
        parts = []
        for part in functions.marginals(X):
            own = part.likelihood
            assert isinstance(own, CountLikelihood)
            sd = np.sqrt(part.variance[:, 0])[:, None]
            log_means = part.mean[:, :1] + np.log(exposure)[:, None] + sd * HERMITE_NODES
            means = np.exp(np.minimum(log_means, LARGEST_LOG_MEAN))
            parts.append((part.weight, means, own.overdispersion))
        return CountMixture(parts=tuple(parts))


@dataclass(frozen=True, eq=False)
class CountMixture:
    """Distributions of new counts, one at each of P points.

    Counts of which more than `MOST_COUNTED` are expected scatter, in proportion to their mean, as
    those of which so many are: sums over them would take ever longer, and lose their digits.

    Attributes
    ----------
    parts : tuple of (float, array of shape (P, 20), float)
        Of each prior: its weight, means of counts at Gauss–Hermite nodes, and overdispersion.
    """

    parts: tuple[tuple[float, Array, float], ...]

    def up_to(self, count: Array) -> Array:
        """Return P(y ≤ count) at every point, shape (P,)."""
        return self._averaged(lambda one, scale: np.asarray(one.cdf(count[:, None] * scale)))

    def above(self, count: float) -> Array:
        """Return P(y > count) at every point, shape (P,)."""
        # Counts are whole: those above 2.5 are those above 2, of whatever stands for these.
        whole = np.floor(count)
        return self._averaged(lambda one, scale: np.asarray(one.sf(whole * scale)))

    def quantile(self, q: float) -> Array:
        """Return the least whole number with P(y ≤ number) ≥ q, shape (P,).

        NaN where nothing is known of a mean. Numbers are doubles: the largest have gaps.

        Parameters
        ----------
        q : float
            Strictly between 0 and 1.
        """
        count = len(self.parts[0][1])
        # Shares add up to 1 but for a rounding error, and q may be closer to it.
        most = np.minimum(q, self.up_to(np.full(count, np.inf)))

        def enough(rows: NDArray[np.intp], counts: Array) -> NDArray[np.bool_]:
            return self._at(rows).up_to(counts) >= most[rows]

        # The power of two first, of which means may be any.
        power = _least(
            np.full(count, -1.0),
            np.full(count, LARGEST_POWER),
            lambda rows, powers: enough(rows, np.exp2(powers)),
        )
        high = np.exp2(power)
        found = _least(np.where(power > 0, high / 2, -1.0), high, enough)
        return np.where(np.isnan(most), np.nan, found)

    def _at(self, rows: NDArray[np.intp]) -> CountMixture:
        """Return the distributions at some of the points."""
        return CountMixture(tuple((weight, means[rows], own) for weight, means, own in self.parts))

    def _averaged(self, of_one: Callable[[stats.distributions.rv_frozen, Array], Array]) -> Array:
        """Average over priors and nodes what is told of the counts that stand for a node's.

        Told with them is what a count of the node is to be multiplied by.
        """
        total = sum(
            weight
            * (
                of_one(
                    count_distribution(np.minimum(means, MOST_COUNTED), own),
                    MOST_COUNTED / np.maximum(means, MOST_COUNTED),
                )
                @ HERMITE_SHARES
            )
            for weight, means, own in self.parts
        )
        return np.asarray(total, dtype=np.float64)


def _least(
    low: Array, high: Array, enough: Callable[[NDArray[np.intp], Array], NDArray[np.bool_]]
) -> Array:
    """Return the least whole numbers that are enough, above `low` and up to `high`, shape (P,).

    Where doubles have gaps, of these.
    """
    low, high = low.copy(), high.copy()
    rows = np.arange(len(low))
    while True:
        middle = np.floor((low[rows] + high[rows]) / 2)
        between = (low[rows] < middle) & (middle < high[rows])
        rows, middle = rows[between], middle[between]
        if not len(rows):
            return high
        found = enough(rows, middle)
        high[rows[found]], low[rows[~found]] = middle[found], middle[~found]


def _blocks(count: int) -> list[slice]:
    """Return the rows in blocks; one, empty, of no rows."""
    return [slice(start, start + BLOCK_ROWS) for start in range(0, max(count, 1), BLOCK_ROWS)]
