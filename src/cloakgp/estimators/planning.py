"""Plans and forecasts of a fit: what it will take and what it is worth, from public inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike
from sklearn.base import clone

from cloakgp.criteria import Criterion
from cloakgp.estimators.base import Inputs, TableLike, count_queries
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.forecast import Forecast, choose_noise, forecast_release
from cloakgp.fitting.planning import FitPlan, plan_fit
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.transforms import transformed_bounds
from cloakgp.release import Hyperprior
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice, NoiseName, TransformName


class PlanMixin:
    """What an estimator of numbers says of a fit beforehand; nothing is read or spent."""

    bounds: tuple[float, float]
    epsilon: float
    delta: float
    noise: NoiseChoice
    criterion: str
    stages: Stages
    inducing: int | ArrayLike | None
    memory: float | None
    mean: float | None
    transform: TransformName | None

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _criterion(self) -> Criterion: ...

        def _hyperprior(self) -> Hyperprior | None: ...

        def _searches(self) -> bool: ...

        def _read(self, X: TableLike) -> Inputs: ...

        def _prior(
            self, inputs: Array, bounds: OutputBounds, *, inducing: int | ArrayLike | None
        ) -> ExactPrior | SparsePrior: ...

        def _query(
            self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
        ) -> Query: ...

    def plan(
        self, shape: tuple[int, int], *, queries: int | None = None, grouped: bool = False
    ) -> FitPlan:
        """Say beforehand how `fit` will treat a table; nothing is read or spent.

        Parameters
        ----------
        shape : (int, int)
            N and D, of X.
        queries : int, optional
            How many query points will be given.
        grouped : bool
            Whether groups will be given.

        Returns
        -------
        FitPlan
            With ``by_passes``, `fit` does what `fit_rows` does.

        Raises
        ------
        ValueError
            If there is no room for a sparse process either.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-6, memory=4.0)
        >>> model.plan((40_000, 2)).by_passes
        True
        """
        criterion = self._criterion()
        at_once = grouped or "many rows" not in criterion.uses
        return plan_fit(
            shape[0],
            n_inputs=shape[1],
            queries=queries,
            inducing=self.inducing,
            memory=self.memory,
            passes=not at_once,
            at_rows=criterion.at_rows,
        )

    def forecast(
        self,
        X: ArrayLike,
        X_query: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        epsilons: Sequence[float] | None = None,
    ) -> tuple[Forecast, ...]:
        """Say what `fit` would be worth at several budgets, from public inputs; nothing is spent.

        Expectations are those of the declared prior, which may be wrong: see `docs/adaptive.md`.
        Of outputs that are transformed, errors are those of the transformed.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        X_query, query_weight
            As for `fit`.
        epsilons : sequence of float, optional
            Budgets, all at the declared δ; the declared ε alone if not given.

        Returns
        -------
        tuple of Forecast
            One for each.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-5)
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> weak, strong = model.forecast(X, epsilons=[0.1, 1.0])
        >>> strong.error < weak.error < weak.prior_error
        True
        """
        model = clone(self)
        inputs = model._read(X).X
        plan = model.plan(inputs.shape, queries=count_queries(X_query))
        if plan.by_passes:
            raise ValueError("tables that are read in passes cannot be forecast: take some rows")
        limits = self._limits()
        prior = model._prior(inputs, limits, inducing=plan.inducing)
        query = model._query(inputs, X_query, query_weight)
        return tuple(
            model._forecast(
                inputs,
                prior=prior,
                query=query,
                epsilon=epsilon,
                noise=model._noise(inputs, prior=prior, query=query, epsilon=epsilon),
            )
            for epsilon in ([self.epsilon] if epsilons is None else map(float, epsilons))
        )

    def _transform(self) -> OutputTransform | None:
        """Return what is done to outputs first, if anything."""
        declared = OutputBounds.checked(self.bounds)
        return OutputTransform.checked(self.transform, (declared.lo, declared.hi))

    def _limits(self) -> OutputBounds:
        """Return the bounds of what is asked: of outputs, or of transformed ones."""
        transform = self._transform()
        return (
            OutputBounds.checked(self.bounds)
            if transform is None
            else transformed_bounds(transform)
        )

    def _prior_mean(self) -> float | None:
        """Return the declared prior mean, of what is asked."""
        transform = self._transform()
        if transform is None or self.mean is None:
            return self.mean
        return transform.forward_number(self.mean, name="mean")

    def _noise(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        epsilon: float | None = None,
    ) -> NoiseName:
        """Return what noise is taken: the one that was asked for, or the better by forecast."""
        spent = self.epsilon if epsilon is None else epsilon
        return choose_noise(
            self.noise,
            epsilon=spent,
            delta=self.delta,
            criterion=self._criterion(),
            expected_error=lambda noise: (
                self._forecast(inputs, prior=prior, query=query, epsilon=spent, noise=noise).error
            ),
        )

    def _forecast(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        epsilon: float,
        noise: NoiseName,
    ) -> Forecast:
        return forecast_release(
            inputs,
            prior=prior,
            bounds=self._limits(),
            query=query,
            budget=Budget(epsilon, self.delta, noise=noise),
            stages=stages_for(self.stages, criterion=self._criterion(), noise=noise),
            hyperprior=self._hyperprior(),
            criterion=self.criterion,
            searched=self._searches(),
        )
