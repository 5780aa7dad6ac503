"""Functional release: the posterior mean plus noise, one function wherever it is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.function import FunctionAnswers
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.release.measurement import Measurement
from cloakgp.release.strategy import DenseStrategy
from cloakgp.utils.arrays import Array, as_inputs
from cloakgp.utils.formatting import short_form


@dataclass(frozen=True, eq=False)
class ReleasedFunction:
    """The raw predictions of a function release, unbiased, at any inputs; a public object.

    Its noise was drawn once, with the answers. Evaluating costs nothing, and the same input has the
    same value for ever, up to rounding: evaluated alone or among others, today or from a file.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    X : array of shape (N, D)
        The rows.
    weights : array of shape (N,)
        The function is the prior mean plus the sum over rows of weight times k(., x_j).
    noise_roots : array of shape (N, k)
        The noise is the sum over rows of k(., x_j) times this times k standard normals.
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: not private.
    input_names : tuple of str
        By which columns of a table are found, as by `cloakgp.Release.predict`; empty if the inputs
        have no names.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.privacy.function import measure_function
    >>> prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.5)
    >>> measured = measure_function([[0.0], [9.0]], [0.0, 1.0], prior=prior, bounds=(0, 1),
    ...                             epsilon=1.0, delta=0.01)
    >>> released = ReleasedFunction.given(prior, measured)
    >>> released([[0.0], [4.0], [9.0]]).shape
    (3,)
    >>> released.noise_sd([[0.0], [4.0]]).round(3)
    array([0.939, 0.   ])
    """

    prior: ExactPrior | SparsePrior
    X: Array
    weights: Array
    noise_roots: Array
    guarantee: Guarantee
    insecure: bool
    input_names: tuple[str, ...] = ()

    @classmethod
    def given(cls, prior: ExactPrior | SparsePrior, measured: FunctionAnswers) -> ReleasedFunction:
        """Return the function that was measured.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
            The one that the questions were made for.
        measured : FunctionAnswers
        """
        residuals = measured.bounds.about_outputs(
            measured.answers.values, measured.questions.strategy.sum(axis=1), prior.mean
        )
        return cls._weighed(
            prior,
            measured.X,
            representers=measured.questions.representers,
            residuals=residuals[:, 0],
            answers=measured.answers,
        )

    @classmethod
    def of_measurement(
        cls,
        prior: ExactPrior | SparsePrior,
        measurement: Measurement,
        *,
        input_names: tuple[str, ...] = (),
    ) -> ReleasedFunction:
        """Return the function of a measurement.

        Parameters
        ----------
        prior : ExactPrior or SparsePrior
            The one that the questions were made for.
        measurement : Measurement
        input_names : tuple of str

        Raises
        ------
        ValueError
            If the questions were not those of a whole function.
        """
        strategy, answers = measurement.strategy, measurement.answers
        if (
            not isinstance(strategy, DenseStrategy)
            or strategy.representers is None
            or not isinstance(measurement.question, OutputBounds)
        ):
            raise ValueError(
                "only criterion='functional' publishes a whole function: use predict, which "
                "answers anywhere for every criterion"
            )
        return cls._weighed(
            prior,
            strategy.X,
            representers=strategy.representers,
            residuals=measurement.residuals(prior.mean)[:, 0] - strategy.trend_answers(prior),
            answers=answers,
            input_names=input_names,
        )

    @classmethod
    def _weighed(
        cls,
        prior: ExactPrior | SparsePrior,
        X: Array,
        *,
        representers: Array,
        residuals: Array,
        answers: Answers,
        input_names: tuple[str, ...] = (),
    ) -> ReleasedFunction:
        return cls(
            prior=prior,
            X=X,
            weights=representers @ residuals,
            noise_roots=answers.noise_sd * representers,
            guarantee=answers.guarantee,
            insecure=answers.insecure,
            input_names=input_names,
        )

    def __call__(self, X: ArrayLike) -> Array:
        """Return the values at inputs of shape (P, D), shape (P,), in output units.

        The posterior mean that the owner of the outputs would have, plus noise.
        """
        points = self._points(X)
        values: Array = self.prior.means(points) + self._cross(points) @ self.weights
        return values

    def noise_sd(self, X: ArrayLike) -> Array:
        """Return the sd of the noise at each input, shape (P,), in output units."""
        sd: Array = np.linalg.norm(self._cross(self._points(X)) @ self.noise_roots, axis=1)
        return sd

    def noise_cov(self, X: ArrayLike) -> Array:
        """Return the covariance of the noise between inputs, shape (P, P)."""
        root = self._cross(self._points(X)) @ self.noise_roots
        covariance: Array = root @ root.T
        return covariance

    def _points(self, X: ArrayLike) -> Array:
        return as_inputs(X, input_names=self.input_names, n_inputs=self.X.shape[1])

    def _cross(self, points: Array) -> Array:
        return self.prior.cross_covariance(points, self.X)

    def __repr__(self) -> str:
        return short_form(
            f"Function on {self.X.shape[1]} inputs, {self.guarantee}", insecure=self.insecure
        )
