"""Plans and forecasts of a fit: what it will take and what it is worth, from public inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from cloakgp.criteria import Criterion
from cloakgp.estimators.base import Inputs, TableLike, count_queries
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.forecast import FewRows, Forecast, choose_noise, forecast_release
from cloakgp.fitting.planning import FitPlan, plan_fit
from cloakgp.fitting.release_plan import (
    NOT_IN_PASSES,
    ReleasePlan,
    TableFacts,
    cost_of,
    file_size,
    most_questions,
    plan_budgets,
)
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.streaming_measuring import INDUCING, Rows
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise import noise_for
from cloakgp.privacy.transforms import transformed_bounds
from cloakgp.release import Hyperprior
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice, NoiseName, TransformName
from cloakgp.utils.passes import Chunk


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
    output_transform: TransformName | None

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

    def plan_fit(
        self, shape: tuple[int, int], *, queries: int | None = None, grouped: bool = False
    ) -> FitPlan:
        """Say beforehand how `fit` will treat a table of a size; nothing is read or spent.

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
        >>> model.plan_fit((40_000, 2)).by_passes
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

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        epsilons: Sequence[float] | None = None,
    ) -> ReleasePlan:
        """Say everything about a release before it is made, from public inputs; nothing is spent.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or rows in chunks
            Public inputs. Of rows in chunks (`cloakgp.data`), no private entry is read.
        X_query, query_weight, groups
            As for `fit`. Rows in chunks say themselves whose they are.
        epsilons : sequence of float, optional
            Other budgets to forecast, at the declared δ; some around the declared ε if not given,
            unless that would take more than a minute.

        Returns
        -------
        ReleasePlan
            Print it.

        Raises
        ------
        ValueError
            For anything that `fit` would refuse without looking at outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-5)
        >>> plan = model.plan(np.linspace(0, 10, 300)[:, None], epsilons=[0.1])
        >>> [forecast.epsilon for forecast in plan.forecasts]
        [0.1, 1.0]
        >>> print(plan)  # doctest: +ELLIPSIS
        expected error: ... typically, ...
        """
        model = clone(self)
        check_budget(self.epsilon, self.delta, pure=True)
        limits = OutputBounds.checked(self.bounds)
        queries = count_queries(X_query)
        table, given = look_at(model, X, groups=groups)
        how = model.plan_fit(
            (table.rows, table.n_inputs), queries=queries, grouped=table.people is not None
        )
        if given is None:
            how = replace(how, inducing=how.inducing or INDUCING, by_passes=True)
        query_count = queries or min(table.rows, LARGEST_DEFAULT_QUERY)
        cost = cost_of(table, how, queries=query_count)
        forecasts: tuple[Forecast, ...] = ()
        if given is not None and not how.by_passes:
            most = len(stages_for(self.stages, criterion=self._criterion(), noise="gaussian"))
            budgets = plan_budgets(self.epsilon, epsilons, seconds=cost.seconds * most)
            forecasts = model._forecasts(
                given.X,
                given.of_rows(groups),
                inducing=how.inducing,
                query=model._query(given.X, X_query, query_weight),
                epsilons=budgets,
            )
        own = next((each for each in forecasts if each.epsilon == self.epsilon), None)
        questions = own.questions if own else most_questions(table, how, queries=query_count)
        fixed = noise_for(self.noise, epsilon=self.epsilon, delta=self.delta)
        return ReleasePlan(
            table=table,
            declared=f"{limits.lo:g} to {limits.hi:g}",
            transform=self.output_transform,
            epsilon=self.epsilon,
            delta=self.delta,
            noise=own.noise if own else (None if self.noise == "auto" and self.delta else fixed),
            how=how,
            stages=own.stages if own else 1,
            questions=questions,
            memory=own.memory if own else cost.memory,
            seconds=own.seconds if own else cost.seconds,
            file_bytes=own.file_bytes
            if own
            else file_size(table, how, queries=query_count, questions=questions),
            forecasts=forecasts,
            unknown="" if forecasts else NOT_IN_PASSES,
        )

    def forecast(
        self,
        X: TableLike,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        epsilons: Sequence[float] | None = None,
    ) -> tuple[Forecast, ...]:
        """Say what `fit` would be worth at several budgets, from public inputs; nothing is spent.

        Expectations are those of the declared prior, which may be wrong: see `docs/adaptive.md`.
        Of outputs that are transformed, errors are those of the transformed.

        Parameters
        ----------
        X : array-like or table of shape (N, D)
            Public inputs.
        X_query, query_weight, groups
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
        given = model._read(X)
        plan = model.plan_fit(
            given.X.shape, queries=count_queries(X_query), grouped=groups is not None
        )
        if plan.by_passes:
            raise ValueError("tables that are read in passes cannot be forecast: take some rows")
        found: tuple[Forecast, ...] = model._forecasts(
            given.X,
            given.of_rows(groups),
            inducing=plan.inducing,
            query=model._query(given.X, X_query, query_weight),
            epsilons=[self.epsilon] if epsilons is None else list(map(float, epsilons)),
        )
        return found

    def _forecasts(
        self,
        inputs: Array,
        groups: Iterable[Hashable] | None,
        *,
        inducing: int | ArrayLike | None,
        query: Query,
        epsilons: Sequence[float],
    ) -> tuple[Forecast, ...]:
        prior = self._prior(inputs, self._limits(), inducing=inducing)
        units = checked_groups(groups, rows=len(inputs))
        return tuple(
            self._forecast(
                inputs,
                prior=prior,
                query=query,
                epsilon=epsilon,
                groups=units,
                noise=self._noise(inputs, prior=prior, query=query, epsilon=epsilon),
            )
            for epsilon in epsilons
        )

    def _transform(self) -> OutputTransform | None:
        """Return what is done to outputs first, if anything."""
        declared = OutputBounds.checked(self.bounds)
        return OutputTransform.checked(self.output_transform, (declared.lo, declared.hi))

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
        few = FewRows.of(inputs, prior)
        return choose_noise(
            self.noise,
            epsilon=spent,
            delta=self.delta,
            criterion=self._criterion(),
            expected_error=lambda noise: (
                self._forecast(
                    few.X,
                    prior=few.prior,
                    query=query,
                    epsilon=few.budget(Budget(spent, self.delta, noise=noise)).epsilon,
                    noise=noise,
                ).error
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
        groups: Groups | None = None,
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
            groups=groups,
        )


@dataclass(frozen=True, eq=False)
class _Counted:
    """How many rows there are, and how many of each group's number."""

    rows: int
    numbers: NDArray[np.intp]
    sizes: NDArray[np.intp]

    def merged(self, other: _Counted) -> _Counted:
        numbers = np.concatenate([self.numbers, other.numbers])
        found, places = np.unique(numbers, return_inverse=True)
        sizes = np.concatenate([self.sizes, other.sizes])
        summed = np.bincount(places, weights=sizes, minlength=len(found)).astype(np.intp)
        return _Counted(rows=self.rows + other.rows, numbers=found, sizes=summed)


def _count(chunk: Chunk) -> _Counted:
    none = np.zeros(0, dtype=np.intp)
    numbers, sizes = (
        (none, none) if chunk.groups is None else np.unique(chunk.groups, return_counts=True)
    )
    return _Counted(rows=len(chunk.X), numbers=numbers, sizes=np.asarray(sizes, dtype=np.intp))


def look_at(
    model: Any, X: TableLike | Rows, *, groups: Iterable[Hashable] | None
) -> tuple[TableFacts, Inputs | None]:
    """Return what is known of a table beforehand, and its inputs if it is not in chunks.

    Parameters
    ----------
    model : DPGPRegressor or DPGPClassifier
        Names and number of inputs are kept in it.
    X : array-like, table, or rows in chunks
        Of rows in chunks, public inputs are gone over once.
    groups : iterable of N hashables, optional

    Raises
    ------
    ValueError
        If X does not fit.
    """
    if not hasattr(X, "over_inputs"):
        given = model._read(X)
        units = checked_groups(given.of_rows(groups), rows=len(given.X))
        sizes = None if units is None else np.bincount(units)
        rows = len(given.X)
    else:
        given = None
        if groups is not None:
            raise ValueError("rows in chunks say themselves whose they are")
        chunks: Any = X
        model._look_at(chunks)
        counted = chunks.over_inputs(_count, what="counting rows")
        rows, sizes = counted.rows, counted.sizes if chunks.grouped else None
    schema = model.schema_
    people = len(sizes) if sizes is not None else (rows if groups is not None else None)
    return (
        TableFacts(
            rows=rows,
            columns=model._names() if schema is None else schema.sources,
            n_inputs=len(schema.names) if schema is not None else model.n_features_in_,
            names=model._names(),
            people=people,
            most_rows=1 if sizes is None else int(sizes.max()),
        ),
        given,
    )
