"""Plans and forecasts of a fit: its cost and its accuracy, from public inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from cloakgp.criteria import Criterion
from cloakgp.estimators.base import Inputs, TableLike, count_queries
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.defaults import INDUCING, LARGEST_DEFAULT_QUERY
from cloakgp.fitting.forecast import FewRows, Forecast, forecast_release
from cloakgp.fitting.interval import adaptive_budget
from cloakgp.fitting.margins import check_kept, count_kept
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.planning import FitCost, FitPlan, plan_fit, resolves_inducing
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.release_plan import (
    NOT_AT_ONCE,
    NOT_IN_PASSES,
    PASS_STAGE_SECONDS,
    ReleasePlan,
    TableFacts,
    cost_of,
    file_size,
    most_questions,
    plan_budgets,
)
from cloakgp.fitting.request import FitRequest, Regression
from cloakgp.fitting.schedule import Schedule, schedule_release
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import refuse_nothing
from cloakgp.fitting.thinning import PLACES
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.noise_choice import LEAD, choose_noise, noises_for
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount
from cloakgp.utils.names import NoiseChoice, NoiseName, TransformName
from cloakgp.utils.passes import Chunk

# As near to where the choice between two noises turns, approximate errors do not decide.
CLOSE = 0.1


@dataclass(frozen=True, eq=False)
class Beforehand:
    """Facts about a fit from a table before an output is read.

    Attributes
    ----------
    table : TableFacts
    inputs : Inputs or None
        None of rows in chunks.
    how : FitPlan
    queries : int
        Number of query points.
    cost : FitCost
    channels : int
        Number of functions that are learned.
    asked_noise : {"auto", "gaussian", "laplace"}
    """

    table: TableFacts
    inputs: Inputs | None
    how: FitPlan
    queries: int
    cost: FitCost
    channels: int
    asked_noise: NoiseChoice

    def plan_of(self, questions: int, *, priors: int = 1, **said: Any) -> ReleasePlan:
        """Return the plan of a release of this table by an estimator."""
        file_bytes = file_size(
            self.table,
            self.how,
            queries=self.queries,
            questions=questions,
            channels=self.channels,
            priors=priors,
        )
        settled: dict[str, Any] = {
            "table": self.table,
            "how": self.how,
            "questions": questions * self.channels,
            "memory": self.cost.memory,
            "seconds": self.cost.seconds,
            "file_bytes": file_bytes,
            "asked_noise": self.asked_noise,
        }
        return ReleasePlan(**{**settled, **said})


class PlanMixin:
    """An estimator that plans the treatment of a table; nothing is read or spent."""

    epsilon: float
    delta: float
    noise: NoiseChoice
    inducing: Any
    memory: float | None
    # Whether persons' rows have to be held together, or may be read in passes; and whether all rows
    # are held where there is room.
    _holds_groups = False
    _holds_in_room = False

    @property
    def _holds_rows(self) -> bool:
        """Whether outputs are such that rows cannot be read in passes."""
        return False

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _criterion(self) -> Criterion: ...
        def _request(self) -> FitRequest: ...

    def plan_fit(
        self, shape: tuple[int, int], *, queries: int | None = None, grouped: bool = False
    ) -> FitPlan:
        """Plan the treatment of a table of some size by `fit`; nothing is read or spent.

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
        held = self._holds_rows or (grouped and self._holds_groups)
        passes = "many rows" in criterion.uses and not held
        return plan_fit(
            shape[0],
            n_inputs=shape[1],
            queries=queries,
            inducing=self.inducing,
            memory=self.memory,
            passes=passes,
            held=self._holds_in_room,
            at_rows=criterion.at_rows,
        )

    def _beforehand(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None,
        *,
        groups: Iterable[Hashable] | None,
        channels: int = 1,
    ) -> Beforehand:
        """Return facts about a fit from public inputs; names are kept in the estimator."""
        table, inputs = look_at(self, X, groups=groups)
        queries = count_queries(X_query)
        how = self.plan_fit(
            (table.rows, table.n_inputs), queries=queries, grouped=table.people is not None
        )
        if inputs is None and self._request().task.kept:
            refuse("margins of other tables")
        if inputs is None:
            resolves = resolves_inducing(self.inducing)
            how = replace(how, inducing=how.inducing or INDUCING, by_passes=True, resolves=resolves)
        count = queries or min(table.rows, LARGEST_DEFAULT_QUERY)
        cost = cost_of(table, how, queries=count, channels=channels)
        return Beforehand(
            table,
            inputs,
            how,
            queries=count,
            cost=cost,
            channels=channels,
            asked_noise=self.noise,
        )


class ForecastMixin(PlanMixin):
    """Plans and forecasts of an estimator of numbers; nothing is read or spent."""

    bounds: tuple[float, float]
    criterion: str
    stages: Stages
    mean: float | None
    output_transform: TransformName | None
    _holds_groups = True

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _request(self) -> FitRequest: ...

        def _read(self, X: TableLike) -> Inputs: ...

        def _prior(
            self, inputs: Array, bounds: OutputBounds, *, inducing: int | ArrayLike | None
        ) -> ExactPrior | SparsePrior: ...

        def _query(
            self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
        ) -> Query: ...

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        epsilons: Sequence[float] | None = None,
        approximate: bool = True,
    ) -> ReleasePlan:
        """Plan a release from public inputs: its error, cost and protection; nothing is spent.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or rows in chunks
            Public inputs. Of rows in chunks (`cloakgp.data`), no private entry is read.
        X_query, query_weight, groups
            As for `fit`. Rows in chunks say themselves whose they are.
        epsilons : sequence of float, optional
            Other budgets to forecast, at the declared δ; some around the declared ε if not given,
            unless that would take more than a minute.
        approximate : bool
            Whether errors may be those of a few places that stand for all rows, which come at once
            where rows are many: see `Forecast.within`. Those of counts are exact at any rate.

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
        >>> [(forecast.epsilon, forecast.within) for forecast in plan.forecasts]
        [(0.1, 0.2), (1.0, 0.2)]
        >>> print(plan)  # doctest: +ELLIPSIS
        expected error: the error for one person cannot be forecast: ...
        """
        *_, plan = self.plans(
            X,
            X_query,
            query_weight,
            groups=groups,
            epsilons=epsilons,
            approximate=approximate and not self._regression().of_counts,
        )
        return plan

    def plans(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        epsilons: Sequence[float] | None = None,
        approximate: bool | None = None,
    ) -> Iterator[ReleasePlan]:
        """Yield plans of one release as they are ready: an approximate one at once, then better.

        The last one is that of `plan` without approximation, beside approximate forecasts of other
        budgets where exact ones would take more than a minute.

        Parameters
        ----------
        X, X_query, query_weight, groups, epsilons
            As for `plan`.
        approximate : bool, optional
            Whether to yield approximate plans alone, or exact ones alone; both if not given.

        Yields
        ------
        ReleasePlan
            Each knows more than the one before. The first forecasts the declared budget, and later
            ones a further budget each, or one that was approximate.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-5)
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> for plan in model.plans(X, epsilons=[0.1]):
        ...     print([(each.epsilon, each.within) for each in plan.forecasts])
        [(1.0, 0.2)]
        [(1.0, 0.0)]
        [(0.1, 0.0), (1.0, 0.0)]
        """
        model = clone(self)
        self._request().validate()
        known: Beforehand = model._beforehand(X, X_query, groups=groups)
        given, how = known.inputs, known.how
        if given is None or how.by_passes:
            yield model._plan_of(known, {}, unknown=NOT_IN_PASSES)
            return
        if len(given.X) <= PLACES:
            # Of few rows exact errors come at once.
            approximate = False
        forecast = model._forecaster(
            given.X,
            given.of_rows(groups),
            inducing=how.inducing,
            # Places stand for rows without being looked for among them.
            near=Query(given.X) if X_query is None else None,
            query=cache(partial(model._query, given.X, X_query, query_weight)),
        )
        most = max(
            len(stages_for(self.stages, criterion=self._criterion(), noise=noise))
            for noise in NOISES
        )
        exact = plan_budgets(self.epsilon, epsilons, seconds=known.cost.seconds * most)
        every = plan_budgets(self.epsilon, epsilons, seconds=0.0)
        found: dict[float, Forecast] = {}
        asked: list[tuple[float, bool]] = []
        # Of counts no places stand for many rows.
        if approximate is not False and self._regression().of_counts:
            yield model._plan_of(known, {}, unknown=NOT_AT_ONCE)
        elif approximate is not False:
            asked += [(self.epsilon, True)]
            asked += [(epsilon, True) for epsilon in every if approximate or epsilon not in exact]
        if not approximate:
            asked += [(self.epsilon, False), *((epsilon, False) for epsilon in exact)]
        for epsilon, thins in asked:
            before = found.get(epsilon)
            if before is not None and (thins or not before.within):
                continue
            made = forecast(epsilon, thins=thins, chosen=epsilons is not None)
            if made is not None:
                if epsilon == self.epsilon and not made.within:
                    refuse_nothing(made.release.measurements[0].strategy)
                found[epsilon] = made
                yield model._plan_of(known, found, unknown="")

    def _plan_of(
        self, known: Beforehand, found: Mapping[float, Forecast], *, unknown: str
    ) -> ReleasePlan:
        """Return the plan of a release with some forecasts, or the reason why there are none."""
        limits, transform = self._regression().declared, self._regression().transform
        table, how = known.table, known.how
        said: dict[str, Any] = {
            "declared": f"{amount(limits.lo, 12)} to {amount(limits.hi, 12)}",
            "transform": None if transform is None else transform.name,
            "scatter_declared": self._regression().scatter is not None,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "forecasts": tuple(found[epsilon] for epsilon in sorted(found)),
            "unknown": unknown,
            "remark": self._regression().remark,
        }
        own = found.get(self.epsilon)
        if own is not None:
            said |= {"stages": own.stages, "memory": own.memory, "seconds": own.seconds}
            if own.certain_noise:
                said |= {"noise": own.noise, "guarantee": own.guarantee}
            else:
                said |= {"noise": None, "guarantee": None}
            if not own.within:
                said["file_bytes"] = own.file_bytes
            return known.plan_of(own.questions, **said)
        criterion = self._criterion()
        balls = criterion.balls_of_rules if how.by_passes else criterion.balls
        noises = noises_for(self.noise, epsilon=self.epsilon, delta=self.delta, balls=balls)
        noise = noises[0] if len(noises) == 1 else None
        schedule = (
            None
            if noise is None
            else self._schedule(noise, rows=table.rows, most_rows=table.most_rows)
        )
        stages = max(len(stages_for(self.stages, criterion=criterion, noise=law)) for law in noises)
        if how.by_passes:
            said["seconds"] = known.cost.seconds + PASS_STAGE_SECONDS * stages
        return known.plan_of(
            most_questions(table, how, queries=known.queries) * stages,
            priors=1 if self._request().learn is None else 2,
            **said,
            noise=noise,
            guarantee=None if schedule is None else schedule.guarantee_of_passes,
            stages=stages,
        )

    def forecast(
        self,
        X: TableLike,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        epsilons: Sequence[float] | None = None,
        thins: bool = False,
    ) -> tuple[Forecast, ...]:
        """Forecast the errors of `fit` at several budgets, from public inputs; nothing is spent.

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
        thins : bool
            Whether a few places stand for all rows where these are many: what comes out is
            approximate, and comes at once.

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
        forecast = model._forecaster(
            given.X,
            given.of_rows(groups),
            inducing=plan.inducing,
            query=cache(partial(model._query, given.X, X_query, query_weight)),
        )
        asked = [self.epsilon] if epsilons is None else epsilons
        # Budgets that are asked about are forecast, or refused.
        found = (forecast(float(epsilon), thins=thins) for epsilon in asked)
        return tuple(each for each in found if each is not None)

    def _forecaster(
        self,
        inputs: Array,
        groups: Iterable[Hashable] | None,
        *,
        inducing: int | ArrayLike | None,
        query: Callable[[], Query],
        near: Query | None = None,
    ) -> Callable[..., Forecast | None]:
        """Return the forecast of one table, as a function of a budget.

        Query points are chosen when they are needed; ``near`` are those of approximate forecasts.
        """
        prior = self._prior(inputs, self._regression().limits, inducing=inducing)
        units = checked_groups(groups, rows=len(inputs))
        share = self._regression().kept

        def forecast(
            epsilon: float, *, thins: bool = False, chosen: bool = True
        ) -> Forecast | None:
            """Forecast a budget; none that nobody chose and at which too few rows are kept out."""
            points = near if thins and near is not None else query()
            told = partial(
                self._forecast, inputs, prior=prior, query=points, epsilon=epsilon, groups=units
            )
            certain = True
            if thins:
                noise, certain = self._noise_of_places(partial(told, thins=True), epsilon=epsilon)
            else:
                noise = self._noise(inputs, prior=prior, query=points, epsilon=epsilon)
            if share and units is not None:
                refuse("margins of groups")
            if share:
                budget = adaptive_budget(Budget(epsilon, self.delta, noise=noise))
                try:
                    check_kept(budget, rows=count_kept(len(inputs), share=share))
                except ValueError:
                    if chosen or epsilon == self.epsilon:
                        raise
                    return None
            return replace(told(noise=noise, thins=thins), certain_noise=certain)

        return forecast

    def _noise_of_places(
        self, forecast: Callable[..., Forecast], *, epsilon: float
    ) -> tuple[NoiseName, bool]:
        """Return the noise that is better by approximate forecasts, and whether that is certain."""
        errors: dict[NoiseName, float] = {}

        def expected_error(noise: NoiseName) -> float:
            errors[noise] = forecast(noise=noise).error
            return errors[noise]

        noise = choose_noise(
            self.noise,
            epsilon=epsilon,
            delta=self.delta,
            balls=self._criterion().balls,
            expected_error=expected_error,
        )
        # The first is taken until another one leads by enough.
        first, *others = errors.values() or (0.0,)
        return noise, all(abs(LEAD * first / other - 1.0) > CLOSE for other in others)

    def _regression(self) -> Regression:
        """Return the regression task of the parameters."""
        task = self._request().task
        assert isinstance(task, Regression)
        return task

    def _noise(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        epsilon: float | None = None,
        rows: int | None = None,
    ) -> NoiseName:
        """Return the noise: the requested one, or the better by forecast."""
        spent = self.epsilon if epsilon is None else epsilon
        few = FewRows.of(inputs, prior, rows=rows)
        return choose_noise(
            self.noise,
            epsilon=spent,
            delta=self.delta,
            balls=self._criterion().balls,
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

    def _schedule(self, noise: NoiseName, *, rows: int, most_rows: int) -> Schedule:
        request = self._request()
        hyperprior = request.hyperprior
        return schedule_release(
            Budget(self.epsilon, self.delta, noise=noise),
            bounds=self._regression().limits,
            stages=stages_for(self.stages, criterion=self._criterion(), noise=noise),
            rows=rows,
            most_rows=most_rows,
            ask_spread=hyperprior is not None and hyperprior.noise_variance,
            searched=bool(request.task.bounds_to_search(request.chosen_criterion())),
            calibrated=request.task.asks_calibration(request.chosen_criterion()),
            kept=request.task.kept,
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
        thins: bool = False,
    ) -> Forecast:
        request = self._request()
        return forecast_release(
            inputs,
            prior=prior,
            bounds=self._regression().limits,
            query=query,
            budget=Budget(epsilon, self.delta, noise=noise),
            stages=stages_for(self.stages, criterion=self._criterion(), noise=noise),
            hyperprior=request.hyperprior,
            criterion=self.criterion,
            searched=bool(request.task.bounds_to_search(request.chosen_criterion())),
            calibrated=request.task.asks_calibration(request.chosen_criterion()),
            kept=request.task.kept,
            groups=groups,
            thins=thins,
        )


@dataclass(frozen=True, eq=False)
class _Counted:
    """The number of rows, and of rows with each group number."""

    rows: int
    numbers: NDArray[np.intp]
    sizes: NDArray[np.intp]

    def merge(self, other: _Counted) -> _Counted:
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
    """Return facts about a table before a fit, and its inputs if it is not in chunks.

    Parameters
    ----------
    model : DPGPRegressor or DPGPClassifier
        Names and number of inputs are kept in it.
    X : array-like, table, or rows in chunks
        Of rows in chunks, public inputs are gone over once.
    groups : iterable of N texts or whole numbers, optional

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
            schema=schema,
        ),
        given,
    )
