"""Undesigned releases: given strategies, answered; the base of the baselines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin

from cloakgp.criteria.given import GIVEN
from cloakgp.design import Certificate
from cloakgp.estimators.base import ReleaseMixin, check_inputs_of
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.strategies import Query
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Hyperprior, Measurement, Release
from cloakgp.utils.arrays import Array

# Prior sd where none is declared, as a share of the bounds' width.
PRIOR_SD_SHARE = 1 / 4
# Nothing was optimised. A gap is the share of the remaining variance that a better design could
# save, so 1 is true of any.
UNCERTIFIED = Certificate(criterion=GIVEN.name, gap=1.0)


def release_of_answers(
    X: Array,
    *,
    strategy: Array,
    answers: Answers,
    bounds: OutputBounds,
    prior: ExactPrior | SparsePrior,
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
    bounds : OutputBounds
        To which outputs were clipped.
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
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cloakgp.models import ExactPrior
    >>> from cloakgp.privacy import ask
    >>> bounds = OutputBounds(0.0, 1.0)
    >>> answers = ask(np.eye(2), [0.0, 1.0], question=bounds, epsilon=1.0, delta=0.01)
    >>> X = np.array([[0.0], [1.0]])
    >>> release_of_answers(X, strategy=np.eye(2), answers=answers, bounds=bounds,
    ...                    query=Query(X=X),
    ...                    prior=ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.5))
    <Release of 2 noisy answers, (1, 0.01)-differential privacy (mu = 0.5326).>
    """
    given = DenseStrategy(
        X=X,
        matrix=strategy,
        X_query=query.X,
        reconstruction=None,
        certificate=UNCERTIFIED,
        query_weights=query.weights,
    )
    measurement = Measurement(strategy=given, question=bounds, answers=answers)
    release = Release(prior=prior, measurements=(measurement,), input_names=tuple(input_names))
    return release if hyperprior is None else release.learn(hyperprior, average=average)


class Baseline(ReleaseMixin[Guarantee], RegressorMixin, BaseEstimator):
    """A regressor whose questions are given and not designed: it spends its budget once."""

    bounds: tuple[float, float]
    epsilon: float
    delta: float | None

    @forget_on_failure
    @charged_as_sent
    @without_sample_weight
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Spend the budget once: publish noisy answers, and predictions from them.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        y : array-like of shape (N,)
            Private outputs.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For invalid arguments; no message quotes an output.
        """
        check_surroundings(self)
        self._publish(check_inputs_of(self, X, y), y)
        return self

    @abstractmethod
    def _publish(self, inputs: Array, y: ArrayLike) -> None:
        """Ask the outputs, and keep the published answers."""
