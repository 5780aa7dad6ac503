"""Intervals for the probabilities of classes, from latent functions.

Two classes have one latent function, whose percentiles go through the link. Of more classes, shares
of several latent functions are computed at points that fill the normal distribution evenly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from cloakgp.models.likelihoods.classes import class_likelihood
from cloakgp.utils.arrays import Array

if TYPE_CHECKING:
    from cloakgp.release import Release

TAIL = 0.025
# Points that stand for the normal distribution of several latent functions.
NODES = 512
BLOCK_ROWS = 400


def probability_limits(
    release: Release, X: Array, *, privacy_noise: bool = True
) -> tuple[Array, Array]:
    """Return 95 % limits of the probability of every class, lower and upper, each (P, C).

    The probability is a function of latent values that are not fully known; these are its 2.5 and
    97.5 percentiles. With two classes they are the link's values at mean ± 1.96 sd. With more, the
    percentiles of shares of independent latent functions, over a low-discrepancy set of 512 points.

    Parameters
    ----------
    release : Release
    X : array of shape (P, D)
    privacy_noise : bool
        False leaves out what the privacy noise makes unknown.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3)
    >>> kept = model.fit([[0.0], [1.0], [2.0]], ["ill", "well", "well"]).release_
    >>> lower, upper = probability_limits(kept, np.array([[0.5]]))
    >>> bool(np.all((0 <= lower) & (lower < upper) & (upper <= 1)))
    True
    """
    latent, link = release.predict_latent(X), class_likelihood(release.fitted.likelihood).link
    variance = np.square(latent.sd)
    if not privacy_noise:
        variance = np.maximum(variance - np.square(latent.privacy_sd), 0.0)
    sd = np.sqrt(variance)
    if latent.mean.ndim == 1:
        reach = ndtri(1.0 - TAIL) * sd
        low, high = link.probability(latent.mean - reach), link.probability(latent.mean + reach)
        return np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
    nodes = normal_nodes(latent.mean.shape[1])[:, None, :]
    lower, upper = np.empty_like(sd), np.empty_like(sd)
    for start in range(0, len(sd), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        values = link.probability(latent.mean[block] + sd[block] * nodes)
        shares = values / values.sum(axis=2, keepdims=True)
        lower[block], upper[block] = np.quantile(shares, (TAIL, 1.0 - TAIL), axis=0)
    return lower, upper


def normal_nodes(dimensions: int, *, pairs: int = NODES // 2) -> Array:
    """Return points that fill the standard normal distribution evenly, shape (2 pairs, dimensions).

    Kronecker's sequence of the powers of 1/g, with g the positive root of g^(d + 1) = g + 1, made
    normal, its mirror image, and a linear map by which mean and covariance are exact: the same
    points every time, and none at random.

    Examples
    --------
    >>> normal_nodes(2, pairs=3).shape
    (6, 2)
    """
    root = 2.0
    # A contraction for every d: 60 steps are exact in float64.
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    uniform = (0.5 + np.arange(1.0, pairs + 1.0)[:, None] * steps) % 1.0
    half = ndtri(uniform)
    nodes = np.vstack([half, -half])
    factor = np.linalg.cholesky(nodes.T @ nodes / len(nodes))
    return np.linalg.solve(factor, nodes.T).T
