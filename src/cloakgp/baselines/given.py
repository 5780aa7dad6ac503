"""Releases whose questions were not designed: given strategies, answered, as ordinary releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cloakgp.arrays import Array
from cloakgp.design import Certificate
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.pure import PureGuarantee
from cloakgp.release import Hyperprior, Measurement, Query, Release
from cloakgp.release.release import ReleasePrior

LEARNING = ("map", "average", None)
# Prior sd where none is declared, as a share of the bounds' width.
PRIOR_SD_SHARE = 1 / 4
# Nothing was optimised. A gap is the share of the remaining variance that a better design could
# save, so 1 is true of any.
UNCERTIFIED = Certificate(criterion="given", gap=1.0)


def release_of_answers(
    X: Array,
    *,
    strategy: Array,
    answers: Answers,
    prior: ReleasePrior,
    query: Query,
    hyperprior: Hyperprior | None = None,
    average: bool = False,
    input_names: Sequence[str] = (),
) -> Release:
    """Return the release of a given strategy's answers, with hyperparameters learned from them.

    Sees published answers only.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    strategy : array of shape (k, N)
    answers : Answers
    prior : ExactPrior or SparsePrior
    query : Query
        Kept with the release; predictions can be had anywhere.
    hyperprior : Hyperprior, optional
        What to learn from the answers; None to keep the prior as declared.
    average : bool
        Average over the posterior of the hyperparameters.
    input_names : sequence of str

    Returns
    -------
    Release

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.models import ExactPrior
    >>> from cloakgp.privacy import measure
    >>> answers = measure(np.eye(2), [0.0, 1.0], bounds=(0, 1), epsilon=1.0, delta=0.01)
    >>> X = np.array([[0.0], [1.0]])
    >>> release_of_answers(X, strategy=np.eye(2), answers=answers, query=Query(X=X),
    ...                    prior=ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.5))
    <Release of 2 noisy answers, (1, 0.01)-differential privacy (mu = 0.5325).>
    """
    measurement = Measurement(
        X=X,
        strategy=strategy,
        answers=answers,
        X_query=query.X,
        reconstruction=None,
        certificate=UNCERTIFIED,
        query_weights=query.weights,
    )
    release = Release(prior=prior, measurements=(measurement,), input_names=tuple(input_names))
    return release if hyperprior is None else release.learn(hyperprior, average=average)


def chosen_hyperprior(
    learn: object, *, noise_variance: float | None, mean: float | None
) -> Hyperprior | None:
    """Return what an estimator's parameters leave to be learned.

    Raises
    ------
    ValueError
        Unless learn is "map", "average" or None.

    Examples
    --------
    >>> chosen_hyperprior("map", noise_variance=1.0, mean=None)
    Hyperprior(noise_variance=False, mean=True)
    """
    if learn not in LEARNING:
        raise ValueError(f"learn must be 'map', 'average' or None, got {learn!r}")
    if learn is None:
        return None
    return Hyperprior(noise_variance=noise_variance is None, mean=mean is None)


class ReleaseRegressor(RegressorMixin, BaseEstimator):
    """What estimators share whose predictions are those of a `Release`."""

    release_: Release
    insecure_seed: int | None

    @overload
    def predict(self, X: ArrayLike) -> Array: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = ..., *, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predict the latent function, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the posterior sd, shape (P,), in output units.
        return_cov : bool
            Also return the posterior covariance, shape (P, P).

        Returns
        -------
        mean : array of shape (P,)
        std or cov : array
            If asked for. Both include what is due to the privacy noise.
        """
        check_is_fitted(self)
        points = self._release_inputs(validate_data(self, X, dtype=np.float64, reset=False))
        if return_cov and return_std:
            raise ValueError("ask for return_std or return_cov, not both")
        if return_cov:
            return self.release_.predict(points, return_cov=True)
        if return_std:
            return self.release_.predict(points, return_std=True)
        return self.release_.predict(points)

    @property
    def guarantee_(self) -> Guarantee | PureGuarantee:
        """What the release costs."""
        check_is_fitted(self)
        # Of one measurement and no choice, it is that of the measurement.
        return self.release_.measurements[0].answers.guarantee

    def _release_inputs(self, points: Array) -> Array:
        """Return points in the form of the release's inputs."""
        return points

    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.insecure_seed is None
        tags.regressor_tags.poor_score = True
        return tags
