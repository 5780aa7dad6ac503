r"""Integral histogram: a Gaussian process fitted to noisy bin sums, with the integral kernel.

Each bin's noisy mean is an average of the latent function over the bin, as if the rows in it were
spread evenly (2018 paper, supplement, "integral kernel"), plus observation noise of variance σ_n²/n
for its n rows, plus privacy noise of variance s²/n², which the paper does not state. In the words
of a `Release`: every row's input is the box of its bin instead of a point, the kernel is
`IntegralRBF`, and the questions are the bins' sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from cloakgp.estimators.base import PosteriorMixin
from cloakgp.estimators.baselines.histogram import BinnedBaseline
from cloakgp.estimators.baselines.undesigned import PRIOR_SD_SHARE, release_of_answers
from cloakgp.fitting.defaults import choose_prior, choose_query
from cloakgp.fitting.request import choose_hyperprior
from cloakgp.fitting.strategies import Query
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.defaults import find_varying
from cloakgp.models.kernels.integral import IntegralRBF, points_as_boxes
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.release import Hyperprior, Release
from cloakgp.release.histogram import BinsSpec, NoisyHistogram, Occupancy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# An RBF of a quarter of the range varies about as much as a Matérn 3/2 kernel of half of it.
LENGTHSCALE_SHARE = 1 / 4


def default_integral_kernel(X: Array, *, width: float) -> Kernel:
    """Return an integral kernel scaled to the inputs and the bounds.

    Signal sd: a quarter of the width of the bounds. Lengthscale: a quarter of each input's range;
    that of an input that never varies does not matter.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    width : float
        hi − lo, in output units.

    Examples
    --------
    >>> default_integral_kernel(np.array([[0.0], [40.0]]), width=100.0)
    25**2 * IntegralRBF(length_scale=10)
    """
    ranges = np.ptp(X, axis=0)
    scales = np.where(find_varying(X), LENGTHSCALE_SHARE * ranges, 1.0)
    return ConstantKernel((PRIOR_SD_SHARE * width) ** 2) * IntegralRBF(
        scales if len(scales) > 1 else float(scales[0])
    )


def release_over_boxes(
    histogram: NoisyHistogram,
    X: Array,
    *,
    prior: ExactPrior | SparsePrior,
    hyperprior: Hyperprior | None = None,
    average: bool = False,
) -> Release:
    """Condition a prior over boxes on a published histogram; post-processing.

    Parameters
    ----------
    histogram : NoisyHistogram
    X : array of shape (N, D)
        The public inputs that were binned.
    prior : ExactPrior or SparsePrior
        With a kernel over boxes.
    hyperprior : Hyperprior, optional
        What to learn from the noisy sums.
    average : bool

    Returns
    -------
    Release
        Its inputs are boxes: 2D columns, lower corners and then upper ones. `points_as_boxes` makes
        them of points.
    """
    occupancy = Occupancy.of(X, histogram.bins)
    if not np.array_equal(occupancy.counts, histogram.counts):
        raise ValueError("these are not the inputs of the histogram: their counts differ")
    query = choose_query(X)
    return release_of_answers(
        histogram.bins.boxes(histogram.bins.cells(X)),
        strategy=occupancy.strategy,
        bounds=OutputBounds(*histogram.bounds),
        answers=Answers(
            values=histogram.sums[:, None],
            noise_sd=histogram.noise_sd,
            guarantee=histogram.guarantee,
            insecure=histogram.insecure,
            noise=histogram.noise,
        ),
        prior=prior,
        query=Query(X=points_as_boxes(query.X), weights=query.weights),
        hyperprior=hyperprior,
        average=average,
        input_names=tuple(
            f"{name} {end}" for end in ("from", "to") for name in histogram.input_names
        ),
    )


class DPIntegralHistogramRegressor(PosteriorMixin[Guarantee], BinnedBaseline):
    """A Gaussian process fitted to a private histogram, with the integral kernel.

    Parameters
    ----------
    bins : int, or sequence of D items
    ranges : sequence of D pairs, optional
        These are as for `DPHistogramRegressor`.
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Over boxes, such as ``ConstantKernel() * IntegralRBF()``. If not given: signal sd a quarter
        of the bounds' width, lengthscale a quarter of each input's range.
    noise_variance : float, optional
        Of each output. If not given: the square of a tenth of the width.
    bounds : (float, float)
        Public range of one output. Outputs outside are clipped, silently.
    epsilon : float
        The budget of one `fit`.
    delta : float, optional
        Needed for Gaussian noise. Laplace noise spends none.
    noise : {"gaussian", "laplace"}
    mean : float, optional
        Prior mean, in output units. If not given: the middle of the bounds.
    learn : {"map", "average"} or None
        Fit the hyperparameters that are free to the noisy sums, at no cost in privacy.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**; it says so for ever. For
        experiments only.

    Attributes
    ----------
    histogram_ : NoisyHistogram
        What was published.
    release_ : Release
        Predictions from it, over boxes.
    guarantee_ : Guarantee
        What the histogram costs; the rest is post-processing.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.estimators.baselines.histogram.release_histogram`; all that follows sees its
    result alone. Kernel: the 2018 paper's supplement, "integral kernel".

    Examples
    --------
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = 100 + 20 * np.sin(X).ravel()
    >>> model = DPIntegralHistogramRegressor(bounds=(70, 130), epsilon=1.0, delta=1e-4).fit(X, y)
    >>> mean, sd = model.predict([[2.0], [5.0]], return_std=True)
    >>> mean.shape, sd.shape
    ((2,), (2,))
    """

    def __init__(
        self,
        bins: BinsSpec = 10,
        ranges: Sequence[tuple[float, float]] | None = None,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float | None = None,
        noise: NoiseName = "gaussian",
        mean: float | None = None,
        learn: Literal["map", "average"] | None = "map",
        insecure_seed: int | None = None,
    ) -> None:
        self.bins = bins
        self.ranges = ranges
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.mean = mean
        self.learn = learn
        self.insecure_seed = insecure_seed

    def _publish(self, inputs: Array, y: ArrayLike) -> None:
        limits = OutputBounds.checked(self.bounds)
        hyperprior = choose_hyperprior(
            self.learn, noise_variance=self.noise_variance, mean=self.mean
        )
        bins = self._bins(inputs)
        prior = choose_prior(
            bins.boxes(bins.cells(inputs)),
            bounds=limits,
            kernel=default_integral_kernel(inputs, width=limits.width)
            if self.kernel is None
            else self.kernel,
            noise_variance=self.noise_variance,
            mean=self.mean,
        )
        self.histogram_ = self._histogram(inputs, y)
        self.release_ = release_over_boxes(
            self.histogram_,
            inputs,
            prior=prior,
            hyperprior=hyperprior,
            average=self.learn == "average",
        )

    @property
    def guarantee_(self) -> Guarantee:
        """The guarantee of the histogram."""
        check_is_fitted(self)
        return self.histogram_.guarantee

    def _points(self, X: ArrayLike) -> Array:
        return points_as_boxes(super()._points(X))
