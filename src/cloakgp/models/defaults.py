"""Default kernels and noise, from bounds and public inputs: no output is looked at."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from cloakgp.utils.arrays import Array

SIGNAL_SD_SHARE = 3 / 10
NOISE_SD_SHARE = 1 / 10
LENGTHSCALE_SHARE = 1 / 2
SMOOTHNESS = 1.5
# Of a latent function behind classes.
LATENT_SD = 2.0


def default_kernel(X: Array, *, width: float) -> Kernel:
    """Return a Matérn 3/2 kernel scaled to the inputs and the bounds.

    Signal sd: 0.3 of the width of the bounds. Lengthscale: 0.5 √D of each of D inputs' ranges. How
    it compares with others on twelve tables is recorded in ``docs/default-prior.md``.

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
    30**2 * Matern(length_scale=20, nu=1.5)
    """
    ranges = np.ptp(X, axis=0)
    constant = np.flatnonzero(ranges <= 0)
    if len(constant):
        raise ValueError(
            f"input columns {constant.tolist()} are constant, so no default lengthscale can be "
            "had from their range: drop them, or give a kernel with lengthscales"
        )
    # Distances over D inputs grow as √D.
    lengthscales = LENGTHSCALE_SHARE * np.sqrt(len(ranges)) * ranges
    return ConstantKernel((SIGNAL_SD_SHARE * width) ** 2) * Matern(
        lengthscales if len(lengthscales) > 1 else float(lengthscales[0]), nu=SMOOTHNESS
    )


def default_noise_variance(*, width: float) -> float:
    """Return the square of a tenth of the width of the bounds."""
    return (NOISE_SD_SHARE * width) ** 2


def default_latent_kernel(X: Array) -> Kernel:
    """Return the kernel of a latent function behind classes: as `default_kernel`, with sd 2.

    At two sds of its prior a probit link gives 98 % to one class wherever the latent function is
    known: classes may, and need not, be told apart well.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.

    Raises
    ------
    ValueError
        If an input never varies, which leaves its lengthscale undefined.

    Examples
    --------
    >>> default_latent_kernel(np.array([[0.0], [40.0]]))
    2**2 * Matern(length_scale=20, nu=1.5)
    """
    return default_kernel(X, width=LATENT_SD / SIGNAL_SD_SHARE)
