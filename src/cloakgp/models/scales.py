"""Smaller scales of the default prior, which answers weigh where they are few.

The default prior takes its sds from the width of the bounds. Where these are much wider than
outputs scatter, few noisy answers do not say so clearly enough for a maximum a posteriori, and
curves follow noise. Predictions are then averaged over the prior and two that differ by one factor
of the sds of slope and curve, by how probable all answers are under each. The level keeps its sd:
outputs may lie anywhere within the bounds. So does the noise of one output, about which the answers
say least of all: intervals of new outputs are not to be shorter for it.
"""

from __future__ import annotations

from dataclasses import replace

from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product, Sum

from cloakgp.models.exact import ExactPrior
from cloakgp.models.sparse import SparsePrior

# Of the sds, all equally probable beforehand: bounds that were chosen with care, and wider ones.
SCALES = (1.0, 0.3, 0.1)


def smaller_scales(
    prior: ExactPrior | SparsePrior,
) -> tuple[ExactPrior | SparsePrior, ...]:
    """Return a default prior with those of smaller scales.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        Of level, linear part and curve, as `cloakgp.models.default_kernel` makes it. Any other is
        the only one.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp.models import default_kernel
    >>> kernel = default_kernel(np.array([[0.0], [40.0]]), width=100.0)
    >>> priors = smaller_scales(ExactPrior(kernel=kernel, noise_variance=100.0, mean=50.0))
    >>> print(priors[1].kernel)
    25**2 + 3**2 * Linear(20 ± 20) + 4.5**2 * Matern(length_scale=40, nu=1.5)
    """
    kernel = prior.kernel
    if not (isinstance(kernel, Sum) and isinstance(kernel.k1, Sum)):
        return (prior,)
    level, slope, curve = kernel.k1.k1, kernel.k1.k2, kernel.k2
    if not all(isinstance(part, Product) for part in (slope, curve)):
        return (prior,)
    others = tuple(
        replace(prior, kernel=Sum(Sum(level, _scaled(slope, scale)), _scaled(curve, scale)))
        for scale in SCALES[1:]
    )
    return (prior, *others)


def _scaled(part: Product, scale: float) -> Kernel:
    return Product(ConstantKernel(scale**2 * part.k1.constant_value), part.k2)
