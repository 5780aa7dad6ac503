r"""Normal scale mixture: new outputs whose own noise was not asked about.

Where no question asked how far outputs scatter around the curve, sums of outputs hardly tell it.
Beforehand the logarithm of their noise sd σ is normal, with sd `LOG_NOISE_SD` around what is
declared; and as much is left open of what is estimated from sums. So with c the variance of the
curve and σ² the noise that predictions go by, a new output is distributed as

    Σ_i w_i N(m, c + g_i σ²),    g_i = exp(2 LOG_NOISE_SD z_i),

z_i and w_i the nodes and weights of Gauss and Hermite. In units of √(c + σ²) that depends on the
share σ²/(c + σ²) alone. Its intervals are wider than those of the normal law with its σ: at 95 %
by two thirds where all is noise, and not at all where all is the curve. Means, and sds, which are
those of the model, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special

from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD
from cloakgp.utils.arrays import Array
from cloakgp.utils.normal_mixtures import mixture_quantiles

# Quantiles up to 99.5 % are those of the integral over σ to within 3e-4 sds.
NODES = 21
_PLACES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
# g, and w.
MULTIPLES, WEIGHTS = np.exp(2.0 * LOG_NOISE_SD * _PLACES), _WEIGHTS / _WEIGHTS.sum()
# Quantiles are solved at so many shares by bisection; between these, Newton's steps from there.
SHARES, NEWTON_STEPS = 65, 4
# So many points at a time.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class UnknownNoise:
    """Distributions of new outputs in units of their sds, around their means.

    Attributes
    ----------
    shares : array of shape (n,)
        σ²/(c + σ²): how much of each variance is the output's own noise.

    Examples
    --------
    >>> unknown = UnknownNoise(np.array([0.0, 1.0]))
    >>> unknown.steps(np.array([0.5, 0.975])).round(2) + 0.0
    array([[0.  , 1.96],
           [0.  , 3.3 ]])
    >>> unknown.below(np.array([1.96, 1.96])).round(3)
    array([0.975, 0.931])
    """

    shares: Array

    def steps(self, probabilities: Array) -> Array:
        """Return quantiles, shape (n, Q).

        Parameters
        ----------
        probabilities : array of shape (Q,)
        """
        levels = np.linspace(0.0, 1.0, SHARES)
        found = np.empty((len(self.shares), len(probabilities)))
        for column, probability in enumerate(probabilities.tolist()):
            found[:, column] = np.interp(self.shares, levels, _at_shares(probability))
            for rows, inverse_sds in self._blocks():
                step = found[rows, column]
                for _ in range(NEWTON_STEPS):
                    scaled = step[:, None] * inverse_sds
                    density = (np.exp(-np.square(scaled) / 2) * inverse_sds) @ WEIGHTS
                    beyond = special.ndtr(scaled) @ WEIGHTS - probability
                    step = step - beyond * np.sqrt(2 * np.pi) / density
                found[rows, column] = step
        return found

    def below(self, steps: Array) -> Array:
        """Return the probability of less than so many sds above the mean, shape (n,).

        Parameters
        ----------
        steps : array of shape (n,)
        """
        found = np.empty(len(self.shares))
        for rows, inverse_sds in self._blocks():
            found[rows] = special.ndtr(steps[rows, None] * inverse_sds) @ WEIGHTS
        return found

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield one over the sds of all parts of the mixtures, by blocks of points."""
        for start in range(0, len(self.shares), BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, _inverse_sds(self.shares[rows])


def _inverse_sds(shares: Array) -> Array:
    """Return one over the sds of the parts of mixtures, shape (n, NODES)."""
    inverse: Array = 1.0 / np.sqrt(1.0 + np.multiply.outer(shares, MULTIPLES - 1.0))
    return inverse


@cache
def _at_shares(probability: float) -> Array:
    """Return a quantile at each of `SHARES` shares, by bisection."""
    sds = 1.0 / _inverse_sds(np.linspace(0.0, 1.0, SHARES))
    return mixture_quantiles(np.zeros_like(sds), sds, WEIGHTS, probability)
