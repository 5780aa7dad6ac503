"""Hyperpriors: the free hyperparameters, and their weak priors around declared values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloakgp.utils.arrays import Array

# Sd of log hyperparameters around their declared values: a factor of 1.4 either way is ordinary.
LOG_SD = 0.35
# Degrees of freedom of their priors for several stages of tables in passes. So many rows can tell
# that outputs vary ten times as fast along an input as was declared: that is 22 nats away under
# normal tails, more than what one stage's answers tell, and 6 under these.
DEGREES_IN_PASSES = 4.0


@dataclass(frozen=True)
class Hyperprior:
    """Which hyperparameters are free, and whether smaller scales of the prior are weighed.

    Attributes
    ----------
    noise_variance, mean : bool
        Whether these are learned; the kernel's own are where they are not marked "fixed". For
        classes, the means are those of the latent functions, and there is no noise variance.
    scale : bool
        Whether predictions are averaged over the prior and those of smaller scales, where it is the
        default one for numbers (`cloakgp.models.scales`).
    """

    noise_variance: bool = True
    mean: bool = True
    scale: bool = False


def weak_prior(position: Array, *, degrees: float = np.inf) -> tuple[float, Array]:
    """Return minus the log density of standardised hyperparameters, and its gradient, shape (p,).

    Of independent ones with Student's t, up to a constant that makes it 0 at the declared values.

    Parameters
    ----------
    position : array of shape (p,)
        ψ, each less its declared value and divided by its prior scale.
    degrees : float
        Of freedom; infinitely many for normal ones.

    Examples
    --------
    >>> weak_prior(np.array([2.0]))
    (2.0, array([2.]))
    >>> value, gradient = weak_prior(np.array([2.0]), degrees=4.0)
    >>> round(value, 2), gradient.round(2)
    (1.73, array([1.25]))
    """
    if np.isinf(degrees):
        return 0.5 * float(position @ position), position
    squares = np.square(position)
    value = 0.5 * (degrees + 1.0) * float(np.log1p(squares / degrees).sum())
    return value, (degrees + 1.0) * position / (degrees + squares)
