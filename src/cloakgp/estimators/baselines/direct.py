"""Direct baselines: noise on every output, and noise on their mean."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from cloakgp.estimators.base import PosteriorMixin
from cloakgp.estimators.baselines.undesigned import PRIOR_SD_SHARE, Baseline, release_of_answers
from cloakgp.fitting.defaults import choose_prior, choose_query
from cloakgp.fitting.planning import check_exact
from cloakgp.fitting.request import choose_hyperprior
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Guarantee, OutputBounds, ask
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.release import Hyperprior
from cloakgp.utils.arrays import Array


class _DirectRegressor(PosteriorMixin[Guarantee], Baseline):
    """Gaussian noise on given questions, and a Gaussian process that knows of it."""

    delta: float
    mean: float | None = None
    learn: Literal["map", "average"] | None = None

    @abstractmethod
    def _strategy(self, rows: int) -> Array:
        """Return the questions."""

    @abstractmethod
    def _prior(self, inputs: Array, limits: OutputBounds) -> ExactPrior | SparsePrior:
        """Return the process that is conditioned on the answers."""

    def _hyperprior(self) -> Hyperprior | None:
        """Return no hyperprior: nothing is learned from the answers."""
        return None

    def _publish(self, inputs: Array, y: ArrayLike) -> None:
        limits = OutputBounds.checked(self.bounds)
        hyperprior = self._hyperprior()
        check_budget(self.epsilon, self.delta)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(inputs),
            bounds=[(limits.lo, limits.hi)],
            mean=self.mean,
        )
        prior = self._prior(inputs, limits)
        strategy = self._strategy(len(inputs))
        answers = ask(
            strategy,
            y,
            question=limits,
            epsilon=self.epsilon,
            delta=self.delta,
            insecure_seed=self.insecure_seed,
        )
        self.release_ = release_of_answers(
            inputs,
            strategy=strategy,
            answers=answers,
            bounds=limits,
            prior=prior,
            query=choose_query(inputs),
            hyperprior=hyperprior,
            average=self.learn == "average",
            input_names=self._names(),
        )


class DPRowNoiseRegressor(_DirectRegressor):
    """Noise on every output, then the Gaussian process that knows of it.

    What each person could do alone, without trusting anybody (local privacy): publish one's output
    with Gaussian noise. Nothing is gained from the fact that predictions need less than all the
    outputs, so it is the noisiest of all that is sensible.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
    noise_variance : float, optional
        Of each output, without what is added for privacy.
    bounds : (float, float)
    epsilon, delta : float
    mean : float, optional
    learn : {"map", "average"} or None
    insecure_seed : int, optional
        These are as for `cloakgp.DPGPRegressor`.

    Attributes
    ----------
    release_ : Release
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask` on the strategy R = I. Neighbours, theorem and argument
    are stated there. Sensitivity: every column of R has norm 1, so one change moves one answer by
    at most d.

    Examples
    --------
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> model = DPRowNoiseRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3).fit(X, X[:, 0] / 10)
    >>> model.release_
    <Release of 60 noisy answers, (1, 0.001)-differential privacy (mu = 0.3885).>
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float,
        mean: float | None = None,
        learn: Literal["map", "average"] | None = "map",
        insecure_seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.mean = mean
        self.learn = learn
        self.insecure_seed = insecure_seed

    def _strategy(self, rows: int) -> Array:
        return np.eye(rows)

    def _prior(self, inputs: Array, limits: OutputBounds) -> ExactPrior | SparsePrior:
        check_exact(len(inputs))
        return choose_prior(
            inputs,
            bounds=limits,
            kernel=self.kernel,
            noise_variance=self.noise_variance,
            mean=self.mean,
        )

    def _hyperprior(self) -> Hyperprior | None:
        return choose_hyperprior(self.learn, noise_variance=self.noise_variance, mean=self.mean)


class DPMeanRegressor(_DirectRegressor):
    """The noisy mean of all outputs, predicted everywhere.

    Parameters
    ----------
    noise_variance : float, optional
        Of each output about the mean. If not given: the square of a quarter of the bounds' width.
    bounds : (float, float)
    epsilon, delta : float
    insecure_seed : int, optional
        These are as for `cloakgp.DPGPRegressor`.

    Attributes
    ----------
    release_ : Release
        Of one answer, under a latent function that is the same everywhere, with a prior mean in the
        middle of the bounds and a prior sd of a quarter of their width. Its posterior mean is the
        noisy mean, moved towards the middle of the bounds if the noise is large beside that sd.
    guarantee_ : Guarantee
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask` on the strategy of a single row of ones. Neighbours,
    theorem and argument are stated there. Sensitivity: one change moves the sum by at most d.

    Examples
    --------
    >>> X = np.linspace(0, 10, 400)[:, None]
    >>> model = DPMeanRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3).fit(X, X[:, 0] / 10)
    >>> mean, sd = model.predict([[0.0], [10.0]], return_std=True)
    >>> bool(mean[0] == mean[1]), sd.round(3)
    (True, array([0.028, 0.028]))
    """

    def __init__(
        self,
        noise_variance: float | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float,
        insecure_seed: int | None = None,
    ) -> None:
        self.noise_variance = noise_variance
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.insecure_seed = insecure_seed

    def _strategy(self, rows: int) -> Array:
        return np.ones((1, rows))

    def _prior(self, inputs: Array, limits: OutputBounds) -> ExactPrior | SparsePrior:
        variance = (PRIOR_SD_SHARE * limits.width) ** 2
        return choose_prior(
            inputs,
            bounds=limits,
            kernel=ConstantKernel(variance),
            noise_variance=variance if self.noise_variance is None else self.noise_variance,
        )
