r"""A Gaussian-process prior over classes, and the linear prior over labels that goes with it.

A latent function f ~ GP(m, k) goes through a link: P(y = 1 | f) = π(f). With more than two classes,
each has a latent function of its own, all of one kernel, for "this class or another".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel

from cloakgp.arrays import Array
from cloakgp.models.exact import ExactPrior
from cloakgp.models.links import Link, link
from cloakgp.models.sparse import SparsePrior
from cloakgp.names import LinkName

# Share of the latent variance that each row has to itself, so that covariances have factors.
LATENT_NUGGET = 1e-6


def mean_latent_variance(latent: ExactPrior | SparsePrior, X: Array) -> float:
    """Return the variance of one row's latent value, white noise of its own included, on average.

    Parameters
    ----------
    latent : ExactPrior or SparsePrior
    X : array of shape (N, D)
    """
    return float((latent.query_variance(X) + latent.observation_noise(X)).mean())


@dataclass(frozen=True, eq=False)
class LabelPrior:
    """A prior over latent functions, one per channel, and the link to the labels.

    A channel is one class against all others; two classes need one channel only.

    Attributes
    ----------
    latent : ExactPrior or SparsePrior
        Of every latent function less its mean; its own mean is 0.
    link_name : {"probit", "logit"}
    means : tuple of float
        The mean of each channel's latent function.
    """

    latent: ExactPrior | SparsePrior
    link_name: LinkName
    means: tuple[float, ...]

    @property
    def link(self) -> Link:
        """The link by which a latent value becomes a probability."""
        return link(self.link_name)

    def linearised(self, X: Array) -> ExactPrior | SparsePrior:
        r"""Return the Gaussian prior over labels ±1 that is nearest at the prior.

        For f ~ N(m, v), y = h + A (f − m) + e with h = 2E[π] − 1, A = 2E[π'] and an uncorrelated
        remainder of variance 1 − h² − A²v: the best linear account of a label by its latent value.
        Channels are averaged over, and so is v over the rows of X.

        Parameters
        ----------
        X : array of shape (N, D)
        """
        variance = mean_latent_variance(self.latent, X)
        means = np.array(self.means)
        probability, slope = self.link.moments(means, np.full_like(means, variance))
        squared_slope = float(np.square(2.0 * slope).mean())
        spread = float(4.0 * (probability * (1.0 - probability)).mean())
        return replace(
            self.latent,
            kernel=ConstantKernel(squared_slope, constant_value_bounds="fixed")
            * self.latent.kernel,
            noise_variance=max(spread - squared_slope * variance, LATENT_NUGGET),
        )

    def one_step(self) -> ExactPrior | SparsePrior:
        """Return the regression prior whose cloaking matrix is half of a Newton step's from f = m.

        The step's linear part is C_* = ½ K_*f (I + W K)⁻¹ = (1/2w) K_*f (K + I/w)⁻¹ for W = w I,
        with w = π(m)(1 − π(m)) (2021 paper, equations 10 and 11, for the logistic link). At m = 0,
        C_* y is Gaussian-process regression on 2y with noise variance 4.
        """
        probability = link("logit").probability(np.array(self.means))
        curvature = float((probability * (1.0 - probability)).mean())
        return replace(self.latent, noise_variance=1.0 / curvature)
