"""Conditional quantiles of a private output: `DPGPQuantileRegressor`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns import Schema
from cloakgp.data import ArrayRows
from cloakgp.design import Progress
from cloakgp.estimators.base import (
    DesignMixin,
    DistributionMixin,
    TableLike,
    column_name,
    count_queries,
)
from cloakgp.estimators.later_visits import LaterVisitsMixin
from cloakgp.estimators.quantile_planning import QuantilePlanMixin
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.bands import Stages
from cloakgp.fitting.defaults import choose_quantile_prior
from cloakgp.fitting.forecast import FewRows, forecast_quantiles
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.passes import Rows
from cloakgp.fitting.request import FitRequest, Learn, QuantileRegression
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import Model
from cloakgp.models import Approximation, SparsePrior
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.entries import read_numbers
from cloakgp.privacy.noise_choice import choose_noise
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice, NoiseName, TransformName
from cloakgp.utils.passes import OnStep, ignore_step
from cloakgp.utils.threads import OPERATIONS_A_PAIR, suitable_threads


class DPGPQuantileRegressor(
    QuantilePlanMixin,
    DesignMixin,
    LaterVisitsMixin,
    DistributionMixin[Guarantee | MixedGuarantee],
    RegressorMixin,
    BaseEstimator,
):
    r"""Regression of conditional quantiles that protects each output.

    For outputs with long tails, or without narrow bounds: incomes, durations. No output is clipped
    to an interval: `fit` asks which outputs lie at or below thresholds, and moves the thresholds to
    the quantiles that the answers imply, stage by stage. Quantiles are correlated Gaussian
    processes; predicted quantiles never cross.

    Parameters
    ----------
    quantiles : float, or sequence of float
        Between 0 and 1, in order. One set of answers serves all.
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Covariance of a quantile, in squared units of (transformed) outputs. If not given: as for
        `DPGPRegressor`.
    bounds : (float, float)
        Public range in which outputs matter, as wide as is certain. Outputs beyond it are taken to
        lie at its end.
    epsilon, delta : float
        The budget of one `fit`. δ may be 0: noise is Laplace noise then.
    noise : {"auto", "gaussian", "laplace"}
        As for `DPGPRegressor`.
    inducing, approximation
        As for `DPGPRegressor`.
    mean : float, optional
        Prior mean of the median, in output units; the middle of the (transformed) bounds if not
        given.
    learn : {"map", "average"} or None
        Fit the free hyperparameters, and the scatter of outputs near their quantiles, to the
        published answers, at no cost in privacy.
    stages : "auto", "one" or None, or sequence of (share, None)
        Shares of the budget of several measurements; "auto": three. None: one measurement, with
        thresholds at the quantiles of the prior.
    interval : "auto", or "off" or False
        Whether to find an interval that holds most outputs first, as for `DPGPRegressor`. Only the
        prior is scaled to it. "auto": where outputs are not transformed.
    output_transform : {"auto", "log", "logit"} or None
        The scale in which quantiles are smooth, and outputs scatter alike. Quantiles are the same
        in every scale. "auto": the logarithm, where the lower bound is above 0 and the upper one
        at least ten times as high.
    gap, memory, schema, random_state, insecure_seed
        As for `DPGPRegressor`.

    Attributes
    ----------
    release_ : Release
        What may be published: save it, predict from it.
    guarantee_ : Guarantee
        What the release costs.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask` about `cloakgp.privacy.questions.quantiles`, where neighbours,
    sensitivity, theorem and argument are stated. Mathematics:
    `cloakgp.models.likelihoods.quantiles`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(300, 1))
    >>> y = np.exp(8 + X[:, 0] / 10 + rng.normal(size=300))
    >>> model = DPGPQuantileRegressor(
    ...     quantiles=(0.1, 0.5, 0.9), bounds=(10, 1e7), epsilon=3.0, gap=0.1)
    >>> predicted = model.fit(X, y).predict([[2.0], [8.0]])
    >>> predicted.shape, bool((np.diff(predicted, axis=1) >= 0).all())
    ((2, 3), True)
    """

    release_: Release
    _task = QuantileRegression

    def __init__(
        self,
        quantiles: float | Sequence[float] = QuantileRegression.quantiles,
        kernel: Kernel | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float = FitRequest.delta,
        noise: NoiseChoice = FitRequest.noise,
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = FitRequest.approximation,
        mean: float | None = None,
        learn: Learn | None = FitRequest.learn,
        stages: Stages = QuantileRegression.stages,
        interval: Literal["auto", "off", False] = QuantileRegression.interval,
        output_transform: TransformName | Literal["auto"] | None = (
            QuantileRegression.output_transform
        ),
        gap: float = FitRequest.gap,
        memory: float | None = None,
        schema: Schema | None = None,
        random_state: int = FitRequest.random_state,
        insecure_seed: int | None = None,
    ) -> None:
        self.quantiles = quantiles
        self.kernel = kernel
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.inducing = inducing
        self.approximation = approximation
        self.mean = mean
        self.learn = learn
        self.stages = stages
        self.interval = interval
        self.output_transform = output_transform
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
        progress: Progress | None = None,
        on_step: OnStep = ignore_step,
    ) -> DPGPQuantileRegressor:
        """Spend the budget once: ask the outputs, keep the noisy answers.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        y : array-like of shape (N,)
            Private outputs.
        X_query, query_weight, groups, progress, on_step
            As for `DPGPRegressor.fit`.

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
        inputs, y, groups = given.X, given.of_rows(y), given.of_rows(groups)
        self._request().validate()
        task, rows = self._quantiles(), len(inputs)
        grouped = groups is not None
        plan = self.plan_fit(inputs.shape, queries=count_queries(X_query), grouped=grouped)
        plan.announce()
        if plan.by_passes:
            many = ArrayRows(inputs, y, input_names=self._names(), output_name=column_name(y))
            many.schema = given.schema
            return self.fit_rows(many, X_query, query_weight, progress=progress, on_step=on_step)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=rows,
            bounds=[(task.declared.lo, task.declared.hi)],
            mean=self.mean,
        )
        on_step("choosing the query points")
        query = self._query(inputs, X_query, query_weight)
        table = HeldTable.of(
            inputs,
            groups=groups,
            transform=task.transform,
            input_names=self._names(),
            output_name=column_name(y),
        )

        model = partial(self._model, inputs, plan.inducing)
        declared = model(None)
        prior = declared.prior
        width = len(prior.inducing) if isinstance(prior, SparsePrior) else rows
        with suitable_threads(OPERATIONS_A_PAIR * rows * width):
            return self._fit_table(
                table,
                y,
                model,
                query=query,
                noise=self._noise(inputs, model=declared, query=query),
                progress=progress,
                on_step=on_step,
            )

    @forget_on_failure
    @charged_as_sent
    def fit_rows(
        self,
        rows: Rows,
        X_query: TableLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
        on_step: OnStep = ignore_step,
    ) -> DPGPQuantileRegressor:
        """Spend the budget once on a table in chunks: files, arrays or a cluster, of any length.

        Rows are gathered in up to 1,000 cells of similar public inputs, and those of a cell are
        asked alike: see `cloakgp.fitting.gathered`. The size of `release_` does not depend on the
        number of rows, and it holds none of them.

        Parameters
        ----------
        rows : ArrayRows, FileRows or DaskRows
            From `cloakgp.data`. Every row is protected on its own, unless they were given
            ``groups``: then all rows of one group are protected together.
        X_query, query_weight, progress, on_step
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
        >>> X = np.linspace(0, 10, 1000)[:, None]
        >>> model = DPGPQuantileRegressor(
        ...     quantiles=0.5, bounds=(-1, 1), epsilon=1.0, inducing=20, gap=0.1)
        >>> model.fit_rows(ArrayRows(X, np.sin(X).ravel())).release_.n_rows
        1000
        """
        self._look_at(rows)
        self._request().validate()
        task = self._quantiles()
        table, inducing, query = self._gather(
            rows, X_query, query_weight, task=task, on_step=on_step
        )
        sample = table.summary.sample
        model = partial(self._model, sample, inducing)
        return self._fit_table(
            table,
            table.passes,
            model,
            query=query,
            noise=self._noise(sample, model=model(None), query=query, rows=table.rows),
            progress=progress,
            on_step=on_step,
        )

    def _model(
        self, X: Array, inducing: int | ArrayLike | None, found: Sequence[OutputBounds] | None
    ) -> Model:
        """Return the model of outputs within an interval that was found, or the declared bounds."""
        task = self._quantiles()
        [within] = (task.limits,) if found is None else found
        latent, likelihood = choose_quantile_prior(
            X,
            quantiles=task.levels,
            bounds=within,
            kernel=self.kernel,
            mean=task.prior_mean,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            blocks=self._blocks(),
            random_state=self.random_state,
        )
        return Model(prior=latent, question=within, likelihood=likelihood)

    def predict(self, X: ArrayLike) -> Array:
        """Predict quantiles of a new output, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)

        Returns
        -------
        array of shape (P, K), or (P,) if ``quantiles`` is one number
            In order; NaN where a row lacks an input.
        """
        points = self._points(X)
        predicted: Array = self.release_.predict(points)
        return predicted if np.ndim(self.quantiles) else predicted[:, 0]

    def predict_interval(self, X: ArrayLike, coverage: float = 0.8) -> tuple[Array, Array]:
        """Return intervals that hold new outputs with a given probability, each for itself.

        Parameters
        ----------
        X, coverage
            As for `Release.predict_interval`.

        Returns
        -------
        lower, upper : arrays of shape (P,)
        """
        return super().predict_interval(X, coverage)

    @forget_on_failure
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share by which predictions reduce the pinball loss of constant quantiles.

        The constants are the quantiles of y. 1 is perfect, 0 no better than the constants. No noise
        is added: the result is private if y is.

        Parameters
        ----------
        X : array-like of shape (P, D)
        y : array-like of shape (P,)
        sample_weight : array-like of shape (P,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If outputs are no finite numbers. No message quotes one.
        """
        from sklearn.metrics import d2_pinball_score

        outputs = read_numbers(y)
        predicted = self.predict(X).reshape(len(outputs), -1)
        return float(
            np.mean(
                [
                    d2_pinball_score(outputs, each, sample_weight=sample_weight, alpha=level)
                    for each, level in zip(predicted.T, self._quantiles().levels, strict=True)
                ]
            )
        )

    def _noise(
        self, inputs: Array, *, model: Model, query: Query, rows: int | None = None
    ) -> NoiseName:
        """Return the chosen noise, or the better one by forecast."""
        few = FewRows.of(inputs, model.prior, rows=rows)
        rough = Model(prior=few.prior, question=model.question, likelihood=model.likelihood)
        return choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            expected_error=lambda law: forecast_quantiles(
                few.X,
                model=rough,
                query=query,
                budget=few.budget(Budget(self.epsilon, self.delta, noise=law)),
            ),
        )
