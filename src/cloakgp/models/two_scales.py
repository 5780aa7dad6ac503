"""A finer part beside the curve of a prior: an alternative that answers may be explained by.

A curve with one lengthscale for each input is smooth or fine. Outputs may be a sum of both: the
weather has a course over the year, and days. Of these the smooth part is most of what answers tell,
and what is finer is then taken for noise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.rebuilding import at_theta, count_free

# Of the variance of the curve, that of the finer part.
SHARE = 0.3


def with_finer_part(kernel: Kernel, *, shorter: float) -> Kernel | None:
    """Return the sum of a kernel and of a finer part of the kind of its curve.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    shorter : float
        The lengthscales of the finer part, in those of the curve.

    Returns
    -------
    Kernel or None
        None unless exactly one term is a curve whose variance and lengthscales are to be learned.

    Examples
    --------
    >>> with_finer_part(9.0 + 4.0 * RBF([1.0, 8.0]), shorter=0.25)
    3**2 + 2**2 * RBF(length_scale=[1, 8]) + 1.1**2 * RBF(length_scale=[0.25, 2])
    >>> with_finer_part(RBF(1.0) + 2.0 * RBF(3.0, length_scale_bounds="fixed"), shorter=0.5)
    """
    curves = [term for term in _terms(kernel) if _is_free_curve(term)]
    if len(curves) != 1:
        return None
    [curve] = curves
    finer = at_theta(curve.k2)(curve.k2.theta + np.log(shorter))
    return Sum(kernel, Product(ConstantKernel(SHARE * curve.k1.constant_value), finer))


def _terms(kernel: Kernel) -> Iterator[Kernel]:
    if isinstance(kernel, Sum):
        yield from _terms(kernel.k1)
        yield from _terms(kernel.k2)
    else:
        yield kernel


def _is_free_curve(term: Kernel) -> bool:
    return (
        isinstance(term, Product)
        and isinstance(term.k1, ConstantKernel)
        and isinstance(term.k2, RBF | Matern | BlockMatern)
        and count_free(term.k1) > 0
        and count_free(term.k2) > 0
    )
