"""Scores of predicted quantiles: pinball loss, and the continuous ranked probability score."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from cloakgp.utils.arrays import Array

# Of predicted distributions: ends of 90 and 95 % intervals, and levels for the score.
LEVELS = np.array([0.025, *np.arange(0.05, 0.96, 0.05), 0.975])
ENDS = MappingProxyType({"90": (1, -2), "95": (0, -1)})


def pinball_losses(quantiles: Array, outputs: Array) -> Array:
    """Return the mean pinball loss of the quantile at each of `LEVELS`, shape (Q,).

    Parameters
    ----------
    quantiles : array of shape (P, Q)
    outputs : array of shape (P,)
    """
    beyond = outputs[:, None] - quantiles
    losses: Array = np.mean(np.maximum(LEVELS * beyond, (LEVELS - 1.0) * beyond), axis=0)
    return losses


def ranked_score(losses: Array) -> float:
    """Return the continuous ranked probability score: twice the integral of pinball losses."""
    return 2.0 * float(np.trapezoid([0.0, *losses, 0.0], [0.0, *LEVELS, 1.0]))
