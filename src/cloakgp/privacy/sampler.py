"""Sampler, the only source of privacy noise: OpenDP's, discrete and on integers.

OpenDP samples exactly (Canonne, Kamath and Steinke 2020), from the operating system's randomness,
in integer arithmetic: no float is drawn, so none of its digits can tell. Every draw is counted
before it is made, where somebody counts (`cloakgp.privacy.spending`).

Shares of noise, of which several custodians add one each, are Gaussian noise of OpenDP's with a
smaller scale, or differences of Pólya numbers, which OpenDP has not (`cloakgp.privacy.polya`): from
the operating system's randomness, in integer arithmetic, too.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.polya import draw_polya
from cloakgp.privacy.spending import LAPLACE, Cost, refuse_seed, spend

Integers = NDArray[np.int64]
Hide = Callable[[Integers], Integers]
"""Makes of integers what may leave a custodian: other integers, whose law tells nothing."""
SelectionNoise = Literal["exponential", "gumbel"]
# Of discrete Laplace noise: the share of ε by which it may tell more than Laplace noise, half of
# that by which accounts round up.
COARSEST = 2.0**-41
# Of Gaussian shares, in steps: see `cloakgp.privacy.noise.gaussian`.
LEAST_SHARE = 2.0**10


@cache
def _opendp() -> SimpleNamespace:
    """Return what is needed of OpenDP, loaded when noise is first drawn: predictions need nothing.

    Its prelude would load half of scikit-learn, too.
    """
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    return SimpleNamespace(
        integers=domains.vector_domain(domains.atom_domain(T="i64")),
        m=measurements,
        measures=measures,
        metrics=metrics,
    )


def add_discrete_gaussian(integers: Integers, *, scale: float, sensitivity: int) -> Integers:
    """Add independent discrete Gaussian noise to a vector of integers.

    Parameters
    ----------
    integers : array of shape (k,)
        Private.
    scale : float
        τ, in units of the grid.
    sensitivity : int
        The most that the vector can move between neighbours, in ℓ2 norm. OpenDP's own privacy map
        must find a loss of at most (sensitivity/τ)²/2 zero-concentrated DP for it.

    Returns
    -------
    array of shape (k,)

    Raises
    ------
    RuntimeError
        If OpenDP's map disagrees with the guarantee that this package computes.
    """
    dp = _opendp()
    measurement = dp.m.make_gaussian(dp.integers, dp.metrics.l2_distance(T="i64"), scale=scale)
    expected = (sensitivity / scale) ** 2 / 2
    mapped: float = measurement.map(sensitivity)
    if not mapped <= expected * (1 + 1e-9):
        raise RuntimeError("OpenDP's privacy map disagrees with the calibration; nothing released")
    cost = Cost.of_gaussian(sensitivity=sensitivity, scale=scale, answers=len(integers))
    return spend(cost, lambda: np.array(measurement(integers.tolist()), dtype=np.int64))


def add_insecure_gaussian(integers: Integers, *, scale: float, seed: int) -> Integers:
    """Add reproducible rounded normal noise. NOT PRIVATE: knowledge of the seed removes it.

    For experiments and tests only.

    Examples
    --------
    >>> add_insecure_gaussian(np.zeros(2, dtype=np.int64), scale=1000.0, seed=1)
    array([346, 822])
    """
    refuse_seed()
    noise = np.random.default_rng(seed).normal(scale=scale, size=len(integers))
    return integers + np.rint(noise).astype(np.int64)


def report_noisy_max(
    scores: Integers, *, scale: float, sensitivity: int, noise: SelectionNoise
) -> int:
    """Return where the largest of noisy scores is.

    Exponential noise makes it permute-and-flip (Ding, Kifer, Steinke, Wang, Xiao and Zhang 2021),
    Gumbel noise the exponential mechanism.

    Parameters
    ----------
    scores : array of shape (n,)
        Private.
    scale : float
        Of the noise, in units of the scores.
    sensitivity : int
        The most that one score can move between neighbours. OpenDP's own privacy map must find for
        it a loss of at most ε = 2·sensitivity/scale; for Gumbel noise, which it accounts for by
        zero-concentrated DP, ε²/8.
    noise : {"exponential", "gumbel"}

    Returns
    -------
    int

    Raises
    ------
    RuntimeError
        If OpenDP's map disagrees.
    """
    exponential = noise == "exponential"
    dp = _opendp()
    measurement = dp.m.make_noisy_max(
        dp.integers,
        dp.metrics.linf_distance(T="i64"),
        dp.measures.max_divergence() if exponential else dp.measures.zero_concentrated_divergence(),
        scale=scale,
    )
    epsilon = 2 * sensitivity / scale
    expected = epsilon if exponential else epsilon**2 / 8
    mapped: float = measurement.map(sensitivity)
    if not mapped <= expected * (1 + 1e-9):
        raise RuntimeError("OpenDP's privacy map disagrees with the calibration; nothing released")
    mechanism = "permute-and-flip" if exponential else "exponential"
    cost = Cost.of_pure(mechanism, sensitivity=2 * sensitivity, scale=scale)
    return spend(cost, lambda: int(measurement(scores.tolist())))


def report_insecure_noisy_max(
    scores: Integers, *, scale: float, noise: SelectionNoise, seed: int
) -> int:
    """Return where the largest of reproducibly noisy scores is. NOT PRIVATE, as every seeded draw.

    For experiments and tests only.

    Examples
    --------
    >>> report_insecure_noisy_max(np.array([0, 9]), scale=1.0, noise="gumbel", seed=1)
    1
    """
    refuse_seed()
    generator = np.random.default_rng(seed)
    draw = generator.exponential if noise == "exponential" else generator.gumbel
    return int(np.argmax(scores + draw(scale=scale, size=len(scores))))


def add_discrete_laplace(integers: Integers, *, scale: float, sensitivity: int) -> Integers:
    """Add independent discrete Laplace noise to a vector of integers.

    Parameters
    ----------
    integers : array of shape (k,)
        Private.
    scale : float
        τ, in units of the grid: an integer t is drawn in proportion to exp(−|t|/τ).
    sensitivity : int
        The most that the vector can move between neighbours, in ℓ1 norm. OpenDP's own privacy map
        must find a loss of at most ε = sensitivity/τ for it.

    Returns
    -------
    array of shape (k,)

    Raises
    ------
    RuntimeError
        If OpenDP's map disagrees.
    """
    dp = _opendp()
    measurement = dp.m.make_laplace(dp.integers, dp.metrics.l1_distance(T="i64"), scale=scale)
    mapped: float = measurement.map(sensitivity)
    if not mapped <= sensitivity / scale * (1 + 1e-9):
        raise RuntimeError("OpenDP's privacy map disagrees with the calibration; nothing released")
    cost = _cost_of_laplace(sensitivity=sensitivity, scale=scale)
    return spend(cost, lambda: np.array(measurement(integers.tolist()), dtype=np.int64))


def _cost_of_laplace(*, sensitivity: int, scale: float) -> Cost:
    # On a coarse grid it tells more than Laplace noise does, though no more than its ε.
    fine = 1 / (4 * scale**2) <= COARSEST * sensitivity / scale
    return Cost.of_pure(
        LAPLACE if fine else "discrete Laplace", sensitivity=sensitivity, scale=scale
    )


def add_share_of_laplace(
    integers: Integers, *, scale: float, sensitivity: int, sharers: int, hide: Hide
) -> Integers:
    """Add a share of discrete Laplace noise to a vector of integers, and hide the sum.

    Parameters
    ----------
    integers : array of shape (k,)
        Private.
    scale : float
        τ of the noise of all shares, in units of the grid.
    sensitivity : int
        The most that the vector can move between neighbours, in ℓ1 norm. What is counted is
        sensitivity/τ, which the noise of all shares keeps.
    sharers : int
        n: so many shares are noise of scale τ.
    hide : callable
        Without it a share of the noise would keep too little.

    Returns
    -------
    array of shape (k,)
    """
    return spend(
        _cost_of_laplace(sensitivity=sensitivity, scale=scale),
        lambda: hide(
            _wrapped_sum(integers, _polya_differences(len(integers), scale=scale, sharers=sharers))
        ),
    )


def _polya_differences(count: int, *, scale: float, sharers: int) -> list[int]:
    """Draw differences of two Pólya numbers each."""
    shape, exact = Fraction(1, sharers), Fraction(scale)
    return [
        draw_polya(shape, scale=exact, below=secrets.randbelow)
        - draw_polya(shape, scale=exact, below=secrets.randbelow)
        for _ in range(count)
    ]


def add_share_of_gaussian(
    integers: Integers, *, scale: float, sensitivity: int, sharers: int, hide: Hide
) -> Integers:
    """Add a share of discrete Gaussian noise to a vector of integers, and hide the sum.

    Parameters
    ----------
    integers, scale, sensitivity, sharers, hide
        As for `add_share_of_laplace`, in ℓ2 norm. A share has the scale τ/√n, rounded up.

    Returns
    -------
    array of shape (k,)

    Raises
    ------
    ValueError
        If the grid is so coarse that shares do not add up to what is counted.
    """
    share = share_of_scale(scale, sharers=sharers)
    if share < LEAST_SHARE:
        raise ValueError("the grid is too coarse for noise in shares of this budget")
    dp = _opendp()
    measurement = dp.m.make_gaussian(dp.integers, dp.metrics.l2_distance(T="i64"), scale=share)
    cost = Cost.of_gaussian(sensitivity=sensitivity, scale=scale, answers=len(integers))
    return spend(cost, lambda: hide(np.array(measurement(integers.tolist()), dtype=np.int64)))


def share_of_scale(scale: float, *, sharers: int) -> float:
    """Return the scale of one of n Gaussian shares, τ/√n, rounded up.

    Examples
    --------
    >>> share_of_scale(6.0, sharers=4)
    3.0
    """
    share = scale / math.sqrt(sharers)
    while Fraction(share) ** 2 * sharers < Fraction(scale) ** 2:
        share = math.nextafter(share, math.inf)
    return share


def _wrapped_sum(integers: Integers, shares: list[int]) -> Integers:
    """Return sums modulo 2⁶⁴: noise of any size is hidden all the same."""
    wrapped = np.array([each % 2**64 for each in shares], dtype=np.uint64)
    return (integers.view(np.uint64) + wrapped).view(np.int64)


def add_insecure_laplace(integers: Integers, *, scale: float, seed: int) -> Integers:
    """Add reproducible rounded Laplace noise. NOT PRIVATE, as every seeded draw.

    For experiments and tests only.

    Examples
    --------
    >>> add_insecure_laplace(np.zeros(2, dtype=np.int64), scale=1000.0, seed=1)
    array([  24, 2312])
    """
    refuse_seed()
    noise = np.random.default_rng(seed).laplace(scale=scale, size=len(integers))
    return integers + np.rint(noise).astype(np.int64)
