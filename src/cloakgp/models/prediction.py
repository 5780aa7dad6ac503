r"""Public prediction in a prior: its own mean function and slope, beside a process without it.

A public column p(x) says what outputs are. With t(x) = p(x) − c (`cloakgp.models.trend`),

    f(x) = m + t(x) + δ (p(x) − p̄) + ½ g(x),    δ ~ N(0, ½²),

1 + δ = β is the slope of outputs over their prediction, with the prior N(1, ½²): the kernel grows
by ¼ (p(x) − p̄)(p(x') − p̄). g, what the prediction gets wrong, is the process that the outputs
would have without it, of half the sd. So a right prediction helps before the first answer. This is
autoregressive co-kriging whose first code is public (Kennedy and O'Hagan 2000).

p is a function of public inputs alone. Outputs are clipped, and asked, as without it; what it
expects, R t, is subtracted from answers that are there already. No sensitivity changes.

A wrong prediction is found out by the same answers. After each stage hyperparameters are learned
under all `alternatives`, one of which is without the prediction, and predictions are averaged over
these, as probable as they make the answers. So a wrong prediction loses its weight as answers
tell, and has a part of it where they do not; what was lost by then are questions that were chosen
for the wrong prior: it has one coefficient more. `python -m experiments public-help` measures what
that is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product, Sum

from cloakgp.models.defaults import UNVARIED
from cloakgp.models.exact import ExactPrior
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.models.sparse import SparsePrior
from cloakgp.models.trend import Trend
from cloakgp.utils.arrays import Array

# Prior sd of the slope of outputs over their prediction, about 1.
SLOPE_SD = 0.5
# Of the process beside the prediction, of the sd that it has without it.
REST_SHARE = 0.5
# How far from the average an inducing input lies that carries the slope, in ranges of predictions.
FAR = 20.0


def unpredicted(X: Array, *, column: int) -> Array:
    """Return inputs whose public prediction never varies, for priors that do not go by it.

    Parameters
    ----------
    X : array of shape (N, D)
    column : int

    Examples
    --------
    >>> unpredicted(np.array([[1.0, 3.0], [2.0, -7.0]]), column=1)
    array([[1., 7.],
           [2., 7.]])
    """
    rest = X.copy()
    rest[:, column] = np.abs(X[:, column]).max()
    return rest


def with_prediction(
    prior: ExactPrior | SparsePrior, X: Array, *, column: int
) -> ExactPrior | SparsePrior:
    """Return a prior that goes by a public prediction.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        Without it.
    X : array of shape (N, D)
        Public inputs.
    column : int
        The place of the prediction among the inputs, from 0. In output units.

    Examples
    --------
    >>> X = np.array([[0.0, 4.0], [1.0, 8.0]])
    >>> prior = ExactPrior(kernel=ConstantKernel(9.0), noise_variance=1.0, mean=5.0)
    >>> helped = with_prediction(prior, X, column=1)
    >>> helped.means(X), helped.query_variance(X)
    (array([4., 8.]), array([3.25, 3.25]))
    """
    predicted = np.ascontiguousarray(X[:, column])
    average, width = float(predicted.mean()), float(np.ptp(predicted))
    centre, scale = X.mean(axis=0), UNVARIED * np.maximum(np.abs(X).max(axis=0), 1.0)
    centre[column], scale[column] = average, 1.0
    slope = ConstantKernel(SLOPE_SD**2 * X.shape[1]) * LinearKernel(centre, scale)
    share = ConstantKernel(REST_SHARE**2, constant_value_bounds="fixed")
    helped = replace(
        prior,
        kernel=Sum(Product(prior.kernel, share), slope),
        trend=Trend(column=column, centre=prior.mean),
    )
    if not isinstance(helped, SparsePrior) or not width:
        return helped
    # Among the rows, the rest would hide the slope.
    far = X.mean(axis=0)
    far[column] = average + FAR * width
    return replace(helped, inducing=np.vstack([helped.inducing, far]))


def alternatives(prior: ExactPrior | SparsePrior) -> tuple[ExactPrior | SparsePrior, ...]:
    """Return the priors that answers weigh: as it is, with all of the rest, and without it.

    Parameters
    ----------
    prior : ExactPrior or SparsePrior
        As declared. Without a public prediction, there is no other.

    Examples
    --------
    >>> X = np.array([[0.0, 4.0], [1.0, 8.0]])
    >>> prior = ExactPrior(kernel=ConstantKernel(9.0), noise_variance=1.0, mean=5.0)
    >>> [other.kernel for other in alternatives(with_prediction(prior, X, column=1))[2:]]
    [3**2]
    """
    if prior.trend is None:
        return (prior,)
    whole, slope = _parts(prior.kernel)
    return (
        prior,
        replace(prior, kernel=Sum(whole, slope)),
        replace(prior, kernel=whole, trend=None),
    )


def _parts(kernel: Kernel) -> tuple[Kernel, Kernel]:
    """Return the kernel without the prediction, and that of its slope."""
    if not (isinstance(kernel, Sum) and isinstance(kernel.k1, Product)):
        raise ValueError("the kernel of its public prediction is damaged")
    return kernel.k1.k1, kernel.k2
