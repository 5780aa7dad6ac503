"""Private Gaussian-process regression of several outputs: `DPGPMultiOutputRegressor`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from cloakgp.columns import Schema
from cloakgp.criteria import criterion_named
from cloakgp.data import ArrayRows
from cloakgp.estimators.base import (
    DesignMixin,
    DistributionMixin,
    TableLike,
    count_queries,
)
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_prior
from cloakgp.fitting.fit import Plan, fit
from cloakgp.fitting.forecast import FewRows, forecast_release
from cloakgp.fitting.held import HeldEntries
from cloakgp.fitting.passes import EntryTable, Rows, inducing_inputs
from cloakgp.fitting.planning import plan_fit
from cloakgp.fitting.request import FitRequest, Learn, MultiOutputRegression
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import Model, Table
from cloakgp.models import Approximation, ExactPrior, SparsePrior, matern_kernel
from cloakgp.models.kernels.coregion import CoregionKernel, as_entries, checked_coregion
from cloakgp.models.summary import summarise
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.entries import as_entries as as_columns
from cloakgp.privacy.noise_choice import check_noise, choose_noise
from cloakgp.privacy.questions.calibration import CellCounts
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.provenance import Provenance
from cloakgp.release.several_outputs import WHICH_OUTPUT, MultiOutputRelease
from cloakgp.utils.arrays import Array, output_names
from cloakgp.utils.names import NoiseChoice, NoiseName

# Sd of each output's own level around the middle of its bounds, in widths.
LEVEL_SD = 1 / 8


class DPGPMultiOutputRegressor(
    DesignMixin,
    DistributionMixin[Guarantee | MixedGuarantee],
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    r"""Gaussian-process regression that protects all outputs of a person together.

    `fit` asks all outputs at once, under one (ε, δ): neighbours differ in every output of one
    person. Questions may be about several outputs, and each person's share of the budget goes where
    it tells most.

    Outputs are measured in widths of their own bounds, or of the intervals that are found to hold
    most of them: the kernel, the noise variance and ``coregion`` are in squared widths.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Covariance over inputs, common to the outputs. If not given: as for `DPGPRegressor`, plus a
        constant level of sd ⅛.
    noise_variance : float, optional
        Of every output, in squared widths. If not given: 0.01.
    bounds : array-like of shape (T, 2)
        Public range of each output. Outputs outside are clipped, silently. It may be as wide as is
        certain, where intervals can be looked for (`interval`).
    epsilon, delta : float
        The budget of one `fit`, for all outputs together. δ may be 0: noise is Laplace noise then.
    noise : {"auto", "gaussian", "laplace"}
        The noise on answers; "auto" is Laplace noise where δ is 0, else the better by forecast.
    coregion : array-like of shape (T, T), optional
        B, the public covariance between outputs that the kernel is multiplied by; independent
        outputs if not given.
    criterion : {"bayes", "trace", "logdet", "functional"}
        As for `DPGPRegressor`.
    inducing, approximation, learn, stages, gap, memory, schema, random_state, insecure_seed
        As for `DPGPRegressor`; inducing inputs serve every output, and every output has bands. With
        inducing inputs and more than 5,000 rows, the table is read in passes.
    interval : "auto", or "off" or False
        Whether an interval that holds most of it is looked for of every output first, by noisy
        counts, within the one budget (`docs/adaptive.md`). Outputs are measured in widths of these
        intervals then; a kernel that is given stays as it is, in squared widths of the bounds.
        "auto": with criterion "bayes" and no given noise variance, where rows are so many that it
        costs little. False: everything goes by the bounds.
    calibrate : "auto" or False
        Whether every output is counted, with noise, in cells of its predicted distributions, as for
        `DPGPRegressor`: the counts then calibrate intervals, quantiles and probabilities of that
        output. All of these counts together take no more of the budget than those of one output
        may, so that "auto" asks for them where there are more rows.

    Attributes
    ----------
    release_ : MultiOutputRelease
        The public result.
    guarantee_ : Guarantee
        What it costs.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.
    schema_ : Schema
        If X was encoded.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask` on the entries of all outputs in units of their widths,
    with the entries of one person as a group; sensitivity in `cloakgp.privacy.groups` and
    `cloakgp.privacy.several_outputs`. Counts of each output: `cloakgp.privacy.questions.counts`.

    Examples
    --------
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.column_stack([100 + 20 * np.sin(X), np.cos(X)])
    >>> model = DPGPMultiOutputRegressor(bounds=[(70, 130), (-2, 2)], epsilon=1.0, delta=1e-3)
    >>> model.fit(X, y).predict([[2.0], [5.0], [7.0]]).shape
    (3, 2)
    """

    release_: MultiOutputRelease
    _task = MultiOutputRegression

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        bounds: ArrayLike,
        epsilon: float,
        delta: float = FitRequest.delta,
        noise: NoiseChoice = FitRequest.noise,
        coregion: ArrayLike | None = None,
        criterion: str = FitRequest.criterion,
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = FitRequest.approximation,
        learn: Learn | None = FitRequest.learn,
        stages: Stages = MultiOutputRegression.stages,
        interval: Literal["auto", "off", False] = MultiOutputRegression.interval,
        calibrate: Literal["auto", False] = MultiOutputRegression.calibrate,
        gap: float = FitRequest.gap,
        memory: float | None = None,
        schema: Schema | None = None,
        random_state: int = FitRequest.random_state,
        insecure_seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.coregion = coregion
        self.criterion = criterion
        self.inducing = inducing
        self.approximation = approximation
        self.learn = learn
        self.stages = stages
        self.interval = interval
        self.calibrate = calibrate
        self.gap = gap
        self.memory = memory
        self.schema = schema
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    @forget_on_failure
    @charged_as_sent
    @without_sample_weight
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
    ) -> DPGPMultiOutputRegressor:
        """Spend the budget once: ask all outputs, keep the noisy answers.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        y : array-like of shape (N, T)
            Private outputs.
        X_query : array-like or table of shape (P, D), optional
            Query points; by default the rows of X, or 500 k-means centres of them.
            Columns of a table are found by name, where X has names.
        query_weight : array-like of shape (P,) or (P, T), optional
            Positive importance of each point, or of each output there.
        groups : iterable of N texts or whole numbers, optional
            Public: whose row it is, where people have several.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For invalid arguments; no message quotes an output.
        """
        check_surroundings(self)
        given = self._read(X)
        self._check_private(X, y, groups)
        names = output_names(y)
        inputs, y, groups = given.X, given.of_rows(y), given.of_rows(groups)
        columns = OutputColumns.checked(self.bounds)
        request = self._request()
        request.validate()
        count = len(columns.bounds)
        plan = plan_fit(
            len(inputs),
            n_inputs=inputs.shape[1],
            queries=count_queries(X_query),
            inducing=self.inducing,
            memory=self.memory,
            at_rows=self._criterion().at_rows,
            passes="many rows" in self._criterion().uses,
            n_outputs=count,
        )
        plan.announce()
        if plan.by_passes:
            many = ArrayRows(
                inputs,
                y if hasattr(y, "shape") else as_columns(y),
                input_names=self._names(),
                groups=groups,
            )
            many.schema, many.output_names = given.schema, names
            return self.fit_rows(many, X_query, query_weight)
        self._warn(rows=len(inputs), columns=columns)
        query = self._entries(self._query(inputs, X_query, query_weight), count=count)
        base = self._base_prior(inputs, inducing=plan.inducing)
        noise = self._noise(
            inputs,
            prior=self._joint_prior(base, columns=columns, found=columns),
            query=query,
            request=request,
            groups=groups,
            columns=columns,
        )
        names_of_entries = (*self._names(), WHICH_OUTPUT) if self._names() else ()
        table = HeldEntries.of_columns(
            inputs, columns=columns, groups=groups, input_names=names_of_entries
        )
        return self._ask(
            table,
            y,
            base,
            columns=columns,
            names=names,
            query=query,
            noise=noise,
        )

    @forget_on_failure
    @charged_as_sent
    def fit_rows(
        self,
        rows: Rows,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> DPGPMultiOutputRegressor:
        """Spend the budget once on a table in chunks, of any length.

        The table is read a few times, chunk by chunk; its outputs once for each stage. The size of
        `release_` does not depend on the number of rows then, and it holds none of them.

        Parameters
        ----------
        rows : ArrayRows
            With private outputs of shape (N, T). All outputs of a row are protected together, or
            if rows were given ``groups``, of all rows of one group.
        X_query, query_weight
            As for `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For invalid arguments; no message quotes an output.

        Examples
        --------
        >>> from cloakgp.data import ArrayRows
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> y = np.column_stack([100 + 20 * np.sin(X), np.cos(X)])
        >>> model = DPGPMultiOutputRegressor(
        ...     bounds=[(70, 130), (-2, 2)], epsilon=1.0, delta=1e-5, inducing=10
        ... )
        >>> model.fit_rows(ArrayRows(X, y)).release_.n_rows
        300
        """
        self._look_at(rows)
        self._request().validate()
        check_noise(self.noise, epsilon=self.epsilon, delta=self.delta)
        criterion = criterion_named(self.criterion, use="many rows")
        columns = OutputColumns.checked(self.bounds)
        summary = summarise(rows)
        self._check_several(summary.count)
        self._warn(rows=summary.count, columns=columns)
        inducing = inducing_inputs(summary, self._inducing_of(rows), random_state=self.random_state)
        base = self._base_prior(summary.sample, inducing=inducing)
        places = self._query_for(rows, X_query, query_weight)
        query = self._entries(
            places or Query(*summary.centres(LARGEST_DEFAULT_QUERY)), count=len(columns.bounds)
        )
        table = EntryTable.of_columns(rows, columns=columns, summary=summary)
        declared = Model(
            prior=self._joint_prior(base, columns=columns, found=columns),
            question=STANDARD_BOUNDS,
        )
        noise = choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            expected_error=lambda law: (
                table.forecast(
                    declared,
                    Budget(self.epsilon, self.delta, noise=law, added=table.added_noise),
                    query,
                ).error
            ),
            balls=criterion.balls_of_rules,
        )
        return self._ask(
            table,
            table.passes,
            base,
            columns=columns,
            names=tuple(getattr(rows, "output_names", ())),
            query=query,
            noise=noise,
        )

    def _ask(
        self,
        table: Table,
        y: Any,
        base: ExactPrior | SparsePrior,
        *,
        columns: OutputColumns,
        names: tuple[str, ...],
        query: Query,
        noise: NoiseName,
    ) -> DPGPMultiOutputRegressor:
        """Fit a table of entries, held or read in passes, and keep the release."""
        found = columns

        def model(intervals: Sequence[OutputBounds] | None) -> Model:
            nonlocal found
            if intervals is not None:
                found = OutputColumns(bounds=tuple(intervals))
            prior = self._joint_prior(base, columns=columns, found=found)
            return Model(prior=prior, question=STANDARD_BOUNDS)

        entries = fit(
            table,
            y,
            Plan.of(self._request(), model, query=query, noise=noise),
        )
        self.release_ = MultiOutputRelease(
            entries=entries,
            columns=columns,
            output_names=names if len(names) == len(columns.bounds) else (),
            schema=self.schema_,
            provenance=Provenance.of(entries.measurements).allow(self.delta, noise=self.noise),
            intervals=None if found == columns else found,
            calibrations=tuple(
                number
                for number, one in enumerate(entries.measurements)
                if isinstance(one.question, CellCounts)
            ),
        )
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = ...) -> Array: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predict every output, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std : bool
            Also return the posterior sds of the latent functions.

        Returns
        -------
        mean : array of shape (P, T)
            In the units of each output.
        std : array of shape (P, T)
            If asked for; includes what is due to the privacy noise.
        """
        points = self._points(X)
        if return_std:
            return self.release_.predict(points, return_std=True)
        return self.release_.predict(points)

    def _warn(self, *, rows: int, columns: OutputColumns) -> None:
        """Warn of a budget or bounds that are unlikely to be meant."""
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=rows,
            bounds=[(limits.lo, limits.hi) for limits in columns.bounds],
        )

    def _noise(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        request: FitRequest,
        groups: Iterable[Hashable] | None,
        columns: OutputColumns,
    ) -> NoiseName:
        """Return the noise: the requested one, or the better by forecast."""
        count = len(columns.bounds)
        # Rows that stand for several say nothing of whose these are.
        whole = FewRows(X=inputs, prior=prior, share=1.0)
        few = FewRows.of(inputs, prior, outputs=count) if groups is None else whole
        points = as_entries(few.X, count=count)
        units = columns.units(groups, rows=len(few.X))
        return choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            balls=self._criterion().balls,
            expected_error=lambda law: (
                forecast_release(
                    points,
                    prior=few.prior,
                    bounds=STANDARD_BOUNDS,
                    query=query,
                    budget=few.budget(Budget(self.epsilon, self.delta, noise=law)),
                    stages=stages_for(self.stages, criterion=self._criterion(), noise=law),
                    hyperprior=request.hyperprior,
                    criterion=self.criterion,
                    searched=bool(request.task.bounds_to_search(self._criterion())),
                    calibrated=request.task.asks_calibration(self._criterion()),
                    outputs=count,
                    groups=units,
                ).error
            ),
        )

    def _base_prior(
        self, inputs: Array, *, inducing: int | ArrayLike | None
    ) -> ExactPrior | SparsePrior:
        """Return the prior of one output, in widths of its bounds, or of its interval."""
        kernel = self.kernel
        if kernel is None:
            level = ConstantKernel(LEVEL_SD**2, constant_value_bounds="fixed")
            standard = STANDARD_BOUNDS.width
            kernel = matern_kernel(inputs, width=standard, blocks=self._blocks()) + level
        return choose_prior(
            inputs,
            bounds=STANDARD_BOUNDS,
            kernel=kernel,
            noise_variance=self.noise_variance,
            mean=0.0,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            blocks=self._blocks(),
            random_state=self.random_state,
        )

    def _joint_prior(
        self, prior: ExactPrior | SparsePrior, *, columns: OutputColumns, found: OutputColumns
    ) -> ExactPrior | SparsePrior:
        """Return the prior of entries in widths of the intervals.

        The default kernel is of these widths; one that was given is of the declared bounds', so
        that covariances between outputs are as many times larger as these are wider.
        """
        count = len(columns.bounds)
        given = checked_coregion(
            np.eye(count) if self.coregion is None else self.coregion, count=count
        )
        if self.kernel is not None and found != columns:
            wider = columns.widths / found.widths
            given = given * wider[:, None] * wider
        joint = CoregionKernel(prior.kernel, given)
        if isinstance(prior, SparsePrior):
            return replace(prior, kernel=joint, inducing=as_entries(prior.inducing, count=count))
        return replace(prior, kernel=joint)

    def _entries(self, places: Query, *, count: int) -> Query:
        """Return the query of every output at each place."""
        points, weights = as_entries(places.X, count=count), places.weights
        if weights is None or not self._criterion().weighted:
            return Query(X=points)
        if weights.shape not in {(len(places.X),), (len(places.X), count)}:
            raise ValueError("query_weight must have shape (P,) or (P, T)")
        entry_weights = weights if weights.ndim == 2 else np.repeat(weights[:, None], count, axis=1)
        return Query(X=points, weights=entry_weights.ravel())
