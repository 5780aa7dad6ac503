"""A prior for somebody who has looked at no output: from the bounds and the public inputs alone."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from cloakgp.arrays import Array

SIGNAL_SD_SHARE = 1 / 4
NOISE_SD_SHARE = 1 / 10
LENGTHSCALE_SHARE = 1 / 2
SMOOTHNESS = 1.5


def default_kernel(X: Array, *, width: float) -> Kernel:
    """Return a Matérn 3/2 kernel scaled to the inputs and the bounds.

    Signal sd: a quarter of the width of the bounds. Lengthscale: half of each input's range. How it
    compares with others on twelve tables is recorded in ``docs/default-prior.md``.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    width : float
        hi − lo, in output units.

    Raises
    ------
    ValueError
        If an input never varies, which leaves its lengthscale undefined.

    Examples
    --------
    >>> default_kernel(np.array([[0.0], [40.0]]), width=100.0)
    25**2 * Matern(length_scale=20, nu=1.5)
    """
    ranges = np.ptp(X, axis=0)
    constant = np.flatnonzero(ranges <= 0)
    if len(constant):
        raise ValueError(
            f"input columns {constant.tolist()} are constant, so no default lengthscale can be "
            "had from their range: drop them, or give a kernel with lengthscales"
        )
    lengthscales = LENGTHSCALE_SHARE * ranges
    return ConstantKernel((SIGNAL_SD_SHARE * width) ** 2) * Matern(
        lengthscales if len(lengthscales) > 1 else float(lengthscales[0]), nu=SMOOTHNESS
    )


def default_noise_variance(*, width: float) -> float:
    """Return the square of a tenth of the width of the bounds."""
    return (NOISE_SD_SHARE * width) ** 2
