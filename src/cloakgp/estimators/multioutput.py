"""Private Gaussian-process regression of several outputs: `DPGPMultiOutputRegressor`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from cloakgp.columns import Schema
from cloakgp.estimators.base import (
    DesignMixin,
    ReleaseMixin,
    TableLike,
    choose_hyperprior,
    count_queries,
)
from cloakgp.estimators.repetition import warn_of_repetition
from cloakgp.fitting.bands import Stages, stages_for
from cloakgp.fitting.defaults import choose_prior
from cloakgp.fitting.dense import StageSettings
from cloakgp.fitting.forecast import FewRows, choose_noise, forecast_release
from cloakgp.fitting.interval import can_be_divided, searches_interval
from cloakgp.fitting.planning import plan_fit
from cloakgp.fitting.several_outputs import release_several_outputs
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models import Approximation, ExactPrior, SparsePrior, matern_kernel
from cloakgp.models.kernels.coregion import CoregionKernel, as_entries, checked_coregion
from cloakgp.privacy import Guarantee
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Hyperprior
from cloakgp.release.provenance import Provenance
from cloakgp.release.several_outputs import WHICH_OUTPUT, MultiOutputRelease
from cloakgp.utils.arrays import Array, column_names
from cloakgp.utils.names import NoiseChoice, NoiseName

# Sd of each output's own level around the middle of its bounds, in widths.
LEVEL_SD = 1 / 8


class DPGPMultiOutputRegressor(
    DesignMixin,
    ReleaseMixin[Guarantee | MixedGuarantee],
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
        What is added to answers; "auto" is Laplace noise where δ is 0, else the better by forecast.
    coregion : array-like of shape (T, T), optional
        B, the public covariance between outputs that the kernel is multiplied by; independent
        outputs if not given.
    criterion : {"bayes", "trace", "logdet", "functional"}
        As for `DPGPRegressor`.
    inducing, approximation, learn, stages, gap, memory, schema, random_state, insecure_seed
        As for `DPGPRegressor`; inducing inputs serve every output, and every output has bands.
    interval : "auto" or False
        Whether an interval that holds most of it is looked for of every output first, by noisy
        counts, within the one budget (`docs/adaptive.md`). Outputs are measured in widths of these
        intervals then; a kernel that is given stays as it is, in squared widths of the bounds.
        "auto": with criterion "bayes" and no given noise variance, where rows are so many that it
        costs little. False: everything goes by the bounds.

    Attributes
    ----------
    release_ : MultiOutputRelease
        What may be published.
    guarantee_ : Guarantee
        What it costs.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.
    schema_ : Schema
        If X was encoded.

    Notes
    -----
    Mechanism: `cloakgp.privacy.queries` on the entries of all outputs in units of their widths,
    with the entries of one person as a group; sensitivity in `cloakgp.privacy.groups` and
    `cloakgp.privacy.several_outputs`. Counts of each output: `cloakgp.privacy.interval`.

    Examples
    --------
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.column_stack([100 + 20 * np.sin(X), np.cos(X)])
    >>> model = DPGPMultiOutputRegressor(bounds=[(70, 130), (-2, 2)], epsilon=1.0, delta=1e-3)
    >>> model.fit(X, y).predict([[2.0], [5.0], [7.0]]).shape
    (3, 2)
    """

    release_: MultiOutputRelease

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        bounds: ArrayLike,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseChoice = "auto",
        coregion: ArrayLike | None = None,
        criterion: str = "bayes",
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = "fitc",
        learn: Literal["map", "average"] | None = "map",
        stages: Stages = "auto",
        interval: Literal["auto", False] = "auto",
        gap: float = 1e-3,
        memory: float | None = None,
        schema: Schema | None = None,
        random_state: int = 0,
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
        self.gap = gap
        self.memory = memory
        self.schema = schema
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    @forget_on_failure
    @one_charge
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
            Where predictions matter most; the rows of X, or 500 k-means centres, if not given.
            Columns of a table are found by name, where X has names.
        query_weight : array-like of shape (P,) or (P, T), optional
            Positive importance of each point, or of each output there.
        groups : iterable of N hashables, optional
            Public: whose row it is, where people have several.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For anything that does not make sense; no message quotes an output.
        """
        warn_of_repetition()
        given = self._read(X)
        names = _output_names(y)
        inputs, y, groups = given.X, given.of_rows(y), given.of_rows(groups)
        columns = OutputColumns.checked(self.bounds)
        # Columns are measured from the middle of their bounds: the mean is given.
        hyperprior = choose_hyperprior(self.learn, noise_variance=self.noise_variance, mean=0.0)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(inputs),
            bounds=[(limits.lo, limits.hi) for limits in columns.bounds],
        )
        count = len(columns.bounds)
        plan = plan_fit(
            len(inputs),
            n_inputs=inputs.shape[1],
            queries=count_queries(X_query),
            inducing=self.inducing,
            memory=self.memory,
            at_rows=self._criterion().at_rows,
            n_outputs=count,
        )
        plan.announce()
        searched = self._searches(columns)
        query = self._entries(self._query(inputs, X_query, query_weight), count=count)
        base = self._base_prior(inputs, inducing=plan.inducing)
        noise = self._noise(
            inputs,
            prior=self._joint_prior(base, columns=columns, found=columns),
            query=query,
            hyperprior=hyperprior,
            searched=searched,
            groups=groups,
            columns=columns,
        )
        entries, found = release_several_outputs(
            inputs,
            y,
            columns=columns,
            prior_within=lambda found: self._joint_prior(base, columns=columns, found=found),
            epsilon=self.epsilon,
            delta=self.delta,
            noise=noise,
            groups=groups,
            stages=stages_for(self.stages, criterion=self._criterion(), noise=noise),
            searched=searched,
            settings=StageSettings(
                query=query,
                criterion=self.criterion,
                gap=self.gap,
                hyperprior=hyperprior,
                average=self.learn == "average",
                input_names=(*self._names(), WHICH_OUTPUT) if self._names() else (),
                insecure_seed=self.insecure_seed,
            ),
        )
        self.release_ = MultiOutputRelease(
            entries=entries,
            columns=columns,
            output_names=names if len(names) == count else (),
            schema=self.schema_,
            provenance=Provenance.of(entries.measurements),
            intervals=None if found == columns else found,
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

    def _searches(self, columns: OutputColumns) -> bool:
        """Return whether intervals are to be looked for, if the budget allows it.

        A noise variance that was given is one of all outputs, in squared widths of their bounds:
        in widths of intervals it would be another of each.
        """
        asked = searches_interval(
            self.interval, criterion=self._criterion(), bounds=STANDARD_BOUNDS, mean=0.0
        )
        divided = all(can_be_divided(limits) for limits in columns.bounds)
        return asked and divided and self.noise_variance is None

    def _noise(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        query: Query,
        hyperprior: Hyperprior | None,
        searched: bool,
        groups: Iterable[Hashable] | None,
        columns: OutputColumns,
    ) -> NoiseName:
        """Return what noise is taken: the one that was asked for, or the better by forecast."""
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
            criterion=self._criterion(),
            expected_error=lambda law: (
                forecast_release(
                    points,
                    prior=few.prior,
                    bounds=STANDARD_BOUNDS,
                    query=query,
                    budget=few.budget(Budget(self.epsilon, self.delta, noise=law)),
                    stages=stages_for(self.stages, criterion=self._criterion(), noise=law),
                    hyperprior=hyperprior,
                    criterion=self.criterion,
                    searched=searched,
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
        """Return the prior of entries in widths of what was found.

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


def _output_names(columns: ArrayLike) -> tuple[str, ...]:
    """Return the names of private columns, none if they have none."""
    found = column_names(columns)
    names = tuple(name for name in found if isinstance(name, str))
    return names if len(names) == len(found) else ()
