r"""Clipped normal variables: their first two moments, and their best linear account.

For y ~ N(m, v), t = clip(y; l, u), a = (l − m)/√v, b = (u − m)/√v and ψ(a) = φ(a) − a Φ(−a),

    E[t] = l + √v (ψ(a) − ψ(b)),    cov(t, y)/v = E[t'] = Φ(b) − Φ(a)   (Stein's lemma),

and t ≈ E[t] + A (y − m) + e with A = Φ(b) − Φ(a) and var e = var t − A² v has the first two moments
of t, jointly with y: statistical linearisation. For a band of ±c √v about m, A = erf(c/√2), and
var t = v (A − 2 c φ(c) + 2 c² Φ(−c)).

What is left out: e_i and e_j of two rows count as independent, and are not where y_i and y_j are
correlated. An odd clip has an expansion in Hermite polynomials whose first term is A; the others
add Σ_n c_n² n! ρⁿ over odd n ≥ 3 to the covariance. Of two standard normal variables clipped at ±1
that is .454 instead of A² ρ = .419 at ρ = .9, .238 instead of .233 at ½: answers about sums of rows
that lie close together count as a little more precise than they are. That is a matter of how
accurate predictions and their intervals are, not of privacy: it comes after the noise.

Where outputs are skewed, a clipped mean tends to the median. `offset_per_sd` says how far, for one
unknown number of predictive sds that all rows of a table share.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from cloakgp.models.likelihoods.base import Linearisation
from cloakgp.utils.arrays import Array

# Sd of the offset, in predictive sds, of what is clipped at one predictive sd on either side: a
# gamma variable of shape 4 is clipped so by 0.08 sds, one of shape 1 by 0.16.
OFFSET_SD = 0.15
# A normal variable lies outside one sd so often: where OFFSET_SD is meant.
OUTSIDE_ONE_SD = float(2 * special.ndtr(-1.0))
# Of the variance: what rounding leaves of a difference of moments is not taken for less.
SMALLEST_RESIDUAL = 1e-12


def linearise_clipped(mean: Array, variance: Array, *, lower: Array, upper: Array) -> Linearisation:
    """Return the best linear account of clipped normal variables by the unclipped ones.

    Parameters
    ----------
    mean, variance : arrays of shape (n,)
        Of y; variances above zero, in squared output units.
    lower, upper : arrays of shape (n,)
        What it is clipped to, in output units.

    Returns
    -------
    Linearisation
        Of clip(y; lower, upper), in output units.

    Examples
    --------
    >>> one = np.ones(1)
    >>> account = linearise_clipped(0 * one, one, lower=-one, upper=one)
    >>> account.expected.round(3), account.slope.round(3), account.residual.round(3)
    (array([0.]), array([0.683]), array([0.05]))
    """
    sd = np.sqrt(variance)
    below, above = (lower - mean) / sd, (upper - mean) / sd
    slope = special.ndtr(above) - special.ndtr(below)
    expected = lower + sd * (_mean_excess(below) - _mean_excess(above))
    # E[(t − m)²]/v: the ends, and the second moment in between.
    inside = slope + below * _density(below) - above * _density(above)
    second = (
        np.square(below) * special.ndtr(below) + np.square(above) * special.ndtr(-above) + inside
    )
    scatter = variance * second - np.square(expected - mean)
    residual = np.maximum(scatter - np.square(slope) * variance, SMALLEST_RESIDUAL * variance)
    return Linearisation(expected=expected, slope=slope, residual=residual)


def offset_per_sd(slope: Array, variance: Array) -> Array:
    """Return the change of clipped variables by a shared offset of one predictive sd, shape (n,).

    Nothing where nothing is clipped, and a whole sd where a normal variable would be clipped as
    often as by a band of one sd on either side.

    Parameters
    ----------
    slope : array of shape (n,)
        The probability of not being clipped.
    variance : array of shape (n,)
        In squared output units.
    """
    shifted: Array = (1.0 - slope) / OUTSIDE_ONE_SD * np.sqrt(variance)
    return shifted


def _density(x: Array) -> Array:
    density: Array = np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)
    return density


def _mean_excess(x: Array) -> Array:
    """Return E[(z − x)₊] of a standard normal z."""
    excess: Array = _density(x) - x * special.ndtr(-x)
    return excess
