r"""Bayesian linear regression from noisy moments of residuals, taken in rounds.

f(x) = m + φ(x)ᵀ w, w ~ N(0, P), with the cosine features of `cloakgp.models.cosines`. Published
are G̃ = G + E for G = ΦᵀΦ, and in rounds t = 1 … T the moments b_t = Φᵀ(y − m − Φ w_t) + e_t of
residuals about earlier estimates w_t (w_1 = 0), with noise E and e_t of known variances.

1. A prior for G: rows spread evenly and inputs without correlation, up to correlations of features
   with mean 0 and sd 0.12. Entry by entry, given G̃ and by normal conjugacy, it has a mean shrunk
   towards N E[φφᵀ] and a variance v_jk. The mean, cleared of negative eigenvalues, is Ĝ.
2. Given the rows, Φᵀ(y − m) = G w + N(0, σ²G). So o_t = b_t + Ĝ w_t is
   Ĝ w + (G − Ĝ)(w − w_t) + noise: what is not known of G counts by how far the round's estimate was
   off. Rounds share the rows' own noise and G: with S_tu = E[(w − w_t)(w − w_u)ᵀ] and independent
   entries of G − Ĝ = Δ,

       Cov(o_t, o_u) = σ²Ĝ + E[Δ S_tu Δ] + [t = u] s_t² I,
       E[Δ S Δ]_jj = Σ_k v_jk S_kk,   E[Δ S Δ]_jk = v_jk S_kj.

   w ~ N(μ, Σ) given all o_t together; S_tu = Σ + (μ − w_t)(μ − w_u)ᵀ, iterated from P to rest.

Without noise that is exact. With it, it is an approximation, as in `cloakgp.release.statistics`;
clipping of residuals beyond their half widths, which are about two sds, is not modelled. How often
its intervals hold is measured in ``experiments/whole_rows.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from cloakgp.models.cosines import CosineBasis
from cloakgp.privacy.residuals import Residuals
from cloakgp.privacy.statistics import Statistics
from cloakgp.utils.arrays import Array

# Prior sd of the correlation of two features over the rows, and of a feature's mean square.
CORRELATION_SD = 0.12
ITERATIONS, TOLERANCE = 100, 1e-6
JITTER = 1e-9
# Prior mean and sd of the mean square of a round's residuals, in half widths: these are some two
# sds of what is left.
SQUARE_MEAN, SQUARE_SD = 0.25, 0.12
# Within which it is believed.
LEAST_SQUARE, MOST_SQUARE = 0.02, 0.5


@dataclass(frozen=True, eq=False)
class Round:
    """Moments of residuals about an estimate.

    Attributes
    ----------
    moments : array of shape (M,)
    sd : float
        Noise sd of each.
    around : array of shape (M,)
        The estimate.
    """

    moments: Array
    sd: float
    around: Array


def rounds_of(statistics: Statistics, residuals: Sequence[Residuals]) -> list[Round]:
    """Return all rounds, of which the first is about the centre alone."""
    first = Round(statistics.moments, statistics.moment_sd, np.zeros(len(statistics.moments)))
    return [first, *(Round(one.moments, one.moment_sd, one.weights) for one in residuals)]


def residual_variance(residuals: Residuals, *, rows: float) -> float:
    """Return the variance of residuals, from the noisy sum of their squares, in output units.

    Of points, along one of their dimensions, on average. It is shrunk towards that of residuals
    whose half width was two of their sds.

    Parameters
    ----------
    residuals : Residuals
    rows : float
        How many rows there are, or are thought to be.
    """
    noise = (residuals.squares_sd / rows) ** 2
    trust = SQUARE_SD**2 / (SQUARE_SD**2 + noise)
    seen = residuals.squares / rows + 0.5
    square = SQUARE_MEAN + trust * (seen - SQUARE_MEAN)
    within = float(np.clip(square, LEAST_SQUARE, MOST_SQUARE)) * residuals.half_width**2
    return within * len(residuals.moments) / residuals.moments.size


def posterior_of_rounds(
    basis: CosineBasis,
    statistics: Statistics,
    residuals: Sequence[Residuals],
    *,
    rows: float,
    noise_variance: float,
) -> tuple[Array, Array]:
    """Return mean and covariance of the weights given all rounds.

    The model and the approximation stand at the head of this module.

    Parameters
    ----------
    basis : CosineBasis
    statistics : Statistics
        Of the first round, with products of features.
    residuals : sequence of Residuals
        Of later rounds.
    rows : float
        How many rows there are, or are thought to be.
    noise_variance : float
        σ², in squared output units.

    Returns
    -------
    mean : array of shape (M,)
    covariance : array of shape (M, M)
        Of points of labels (M, K) and (K, M, M): along each dimension by itself.
    """
    if statistics.moments.ndim == 2:
        apart = [
            posterior_of_rounds(
                basis,
                replace(statistics, moments=statistics.moments[:, channel]),
                [
                    replace(one, moments=one.moments[:, channel], weights=one.weights[:, channel])
                    for one in residuals
                ],
                rows=rows,
                noise_variance=noise_variance,
            )
            for channel in range(statistics.moments.shape[1])
        ]
        means, covariances = zip(*apart, strict=True)
        return np.ascontiguousarray(np.column_stack(means)), np.array(covariances)
    rounds = rounds_of(statistics, residuals)
    gram, doubts = _posterior_gram(statistics, scales=basis.scales, rows=rows)
    prior, size = basis.weight_covariance, basis.count
    precision = np.diag(1.0 / np.diag(prior))
    around = np.array([one.around for one in rounds])
    seen = np.concatenate([one.moments + gram @ one.around for one in rounds])
    design = np.tile(gram, (len(rounds), 1))
    own = np.kron(np.ones((len(rounds), len(rounds))), noise_variance * gram)
    own[np.diag_indices_from(own)] += np.repeat([one.sd**2 for one in rounds], size)
    own[np.diag_indices_from(own)] += JITTER * np.trace(own) / len(own)
    mean, covariance = np.zeros(size), prior
    for _ in range(ITERATIONS):
        noise = own + _doubt(doubts, covariance=covariance, off=mean - around)
        information = design.T @ linalg.cho_solve(linalg.cho_factor(noise), np.eye(len(noise)))
        gained = information @ design
        covariance = linalg.inv(precision + (gained + gained.T) / 2)
        covariance = (covariance + covariance.T) / 2
        before, mean = mean, covariance @ (information @ seen)
        if np.abs(mean - before).max() <= TOLERANCE * max(np.abs(mean).max(), JITTER):
            break
    return mean, covariance


def _doubt(doubts: Array, *, covariance: Array, off: Array) -> Array:
    """Return E[Δ S_tu Δ] for all rounds t and u, stacked, shape (T M, T M).

    Parameters
    ----------
    doubts : array of shape (M, M)
        v.
    covariance : array of shape (M, M)
        Σ.
    off : array of shape (T, M)
        μ − w_t.
    """
    rounds, size = off.shape
    moved = covariance[None, None] + off[:, None, :, None] * off[None, :, None, :]
    blocks = doubts * moved.swapaxes(2, 3)
    own = np.arange(size)
    blocks[:, :, own, own] = np.einsum("jk,tukk->tuj", doubts, moved)
    stacked: Array = blocks.swapaxes(1, 2).reshape(rounds * size, rounds * size)
    return (stacked + stacked.T) / 2


def gram_doubts(scales: Array, *, rows: float, gram_sd: float) -> tuple[Array, Array]:
    """Return how far published products of features move the prior's, and what is left of doubt.

    Parameters
    ----------
    scales : array of shape (M,)
    rows : float
    gram_sd : float
        Noise sd of a square of a feature; beside the diagonal it is √2 times less.

    Returns
    -------
    trust : array of shape (M, M)
    doubts : array of shape (M, M)
        v.
    """
    prior = np.square(rows * CORRELATION_SD * np.outer(scales, scales))
    noise = np.full_like(prior, gram_sd**2 / 2)
    noise[np.diag_indices_from(noise)] *= 2
    trust = prior / (prior + noise)
    return trust, trust * noise


def _posterior_gram(statistics: Statistics, *, scales: Array, rows: float) -> tuple[Array, Array]:
    """Return Ĝ, and the variances v of its entries."""
    expected = rows * np.diag(np.square(scales))
    trust, doubts = gram_doubts(scales, rows=rows, gram_sd=statistics.gram_sd)
    values, vectors = linalg.eigh(expected + trust * (statistics.gram - expected))
    gram: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return gram, doubts
