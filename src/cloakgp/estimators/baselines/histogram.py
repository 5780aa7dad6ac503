"""Histogram regression: noisy means of the outputs in bins of public inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

from numpy.typing import ArrayLike

from cloakgp.estimators.baselines.undesigned import Baseline
from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.noise_choice import check_noise
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.histogram import Bins, BinsSpec, NoisyHistogram, Occupancy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName


@forget_on_failure
def release_histogram(
    X: Array,
    y: ArrayLike,
    *,
    bins: Bins,
    noise: NoiseName,
    bounds: object,
    epsilon: float,
    delta: float | None = None,
    input_names: Sequence[str] = (),
    insecure_seed: int | None = None,
) -> NoisyHistogram:
    """Publish noisy sums of the outputs in every bin that holds rows.

    Mechanism: the strategy of one question per such bin, 1 for its rows and 0 for others, put to y
    by `cloakgp.privacy.ask`, where neighbours, theorem and argument stand. Sensitivity: every
    column has a single one, so one change moves one bin's sum by at most d, in ℓ1 and in ℓ2 norm.
    Which bins hold rows, and how many, is public.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs; clipped to the bounds.
    bins : Bins
    noise : {"gaussian", "laplace"}
    bounds : (float, float)
    epsilon : float
    delta : float, optional
        Needed for Gaussian noise; Laplace noise spends none.
    input_names : sequence of str
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Returns
    -------
    NoisyHistogram

    Raises
    ------
    ValueError
        For invalid arguments; no message quotes an output.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(100.0)[:, None]
    >>> histogram = release_histogram(X, X[:, 0], bins=Bins.over(X, bins=4), noise="laplace",
    ...                               bounds=(0, 100), epsilon=1.0)
    >>> histogram.counts, round(histogram.noise_sd, 1)
    (array([25., 25., 25., 25.]), 141.4)
    """
    law = noise_named(noise)
    if delta is None and law.needs_delta:
        raise ValueError("Gaussian noise needs a delta: give one, or choose noise='laplace'")
    spent = delta if delta is not None and law.needs_delta else 0.0
    check_noise(law.name, epsilon=epsilon, delta=spent if delta is None else delta)
    limits = OutputBounds.checked(bounds)
    warn_of_parameters(
        epsilon=epsilon,
        delta=spent or None,
        rows=len(X),
        bounds=[(limits.lo, limits.hi)],
    )
    occupancy = Occupancy.of(X, bins)
    answers = ask(
        occupancy.strategy,
        y,
        question=limits,
        epsilon=epsilon,
        delta=spent,
        noise=law.name,
        insecure_seed=insecure_seed,
    )
    return NoisyHistogram(
        bins=bins,
        places=bins.places(occupancy.cells),
        counts=occupancy.counts,
        sums=answers.values[:, 0],
        noise_sd=answers.noise_sd,
        noise=noise,
        bounds=(limits.lo, limits.hi),
        guarantee=answers.guarantee,
        insecure=answers.insecure,
        input_names=tuple(input_names),
    )


class BinnedBaseline(Baseline):
    """A baseline that asks for the sums of the outputs in bins of the inputs."""

    bins: BinsSpec
    ranges: Sequence[tuple[float, float]] | None
    noise: NoiseName

    def _bins(self, inputs: Array) -> Bins:
        return Bins.over(inputs, bins=self.bins, ranges=self.ranges)

    def _histogram(self, inputs: Array, y: ArrayLike) -> NoisyHistogram:
        return release_histogram(
            inputs,
            y,
            bins=self._bins(inputs),
            noise=self.noise,
            bounds=self.bounds,
            epsilon=self.epsilon,
            delta=self.delta,
            input_names=self._names(),
            insecure_seed=self.insecure_seed,
        )


class DPHistogramRegressor(BinnedBaseline):
    """Histogram regression that protects each output: noisy bin means.

    Parameters
    ----------
    bins : int, or sequence of D items
        Bins along every input; or for each input how many, or where their edges are. Public: not to
        be chosen by looking at y.
    ranges : sequence of D pairs, optional
        Of the grid; those of X if not given. Rows and points beyond belong to the nearest bin.
    bounds : (float, float)
        Public range of one output. Outputs outside are clipped, silently.
    epsilon : float
        The budget of one `fit`.
    delta : float, optional
        Its δ. Needed for Gaussian noise; Laplace noise spends none, so its guarantee has δ = 0.
    noise : {"gaussian", "laplace"}
        Gaussian noise of exact (ε, δ)-calibration, or Laplace noise of scale d/ε.
    clip : bool
        Bring predictions inside the bounds.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**; it says so for ever. For
        experiments only.

    Attributes
    ----------
    release_ : NoisyHistogram
        The public result.
    guarantee_ : Guarantee
        What it costs.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `release_histogram`. A bin without rows predicts the middle of the bounds. This is
    the binning that the 2018 paper compares with (its section 4), but for empty bins, which it
    gives the population's mean, and for its noise.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> y = 100 + 20 * np.sin(X).ravel()
    >>> model = DPHistogramRegressor(bounds=(70, 130), epsilon=1.0, delta=1e-4).fit(X, y)
    >>> mean, sd = model.predict([[2.0], [5.0]], return_std=True)
    >>> mean.shape, sd.round(1)
    ((2,), array([4.8, 4.8]))
    """

    release_: NoisyHistogram

    def __init__(
        self,
        bins: BinsSpec = 10,
        ranges: Sequence[tuple[float, float]] | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float | None = None,
        noise: NoiseName = "gaussian",
        clip: bool = True,
        insecure_seed: int | None = None,
    ) -> None:
        self.bins = bins
        self.ranges = ranges
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.clip = clip
        self.insecure_seed = insecure_seed

    def _publish(self, inputs: Array, y: ArrayLike) -> None:
        self.release_ = self._histogram(inputs, y)

    @overload
    def predict(self, X: ArrayLike) -> Array: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the noisy means of the bins that points lie in, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the sd of the privacy noise on the mean of the values in a bin, before
            clipping; how far people within a bin differ from it is not in it.

        Returns
        -------
        mean : array of shape (P,)
        std : array of shape (P,)
            If asked for.
        """
        points = self._points(X)
        if return_std:
            return self.release_.predict(points, return_std=True, clip=self.clip)
        return self.release_.predict(points, clip=self.clip)
