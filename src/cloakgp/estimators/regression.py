"""Private Gaussian-process regression: `DPGPRegressor`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns import Schema
from cloakgp.columns.numbers import Number
from cloakgp.criteria import criterion_named
from cloakgp.data import ArrayRows
from cloakgp.data.entries import ExposedRows
from cloakgp.design import Progress
from cloakgp.estimators.base import (
    DesignMixin,
    Inputs,
    PosteriorMixin,
    TableLike,
    column_name,
    count_queries,
    feature_names,
    read_inputs,
)
from cloakgp.estimators.later_visits import LaterVisitsMixin
from cloakgp.estimators.planning import ForecastMixin
from cloakgp.estimators.prediction import (
    check_near,
    check_public_rows,
    place_of,
    predicts,
    with_prediction_of,
)
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.bands import Stages
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_prior, choose_rate_prior
from cloakgp.fitting.held import HeldTable, checked_exposure
from cloakgp.fitting.passes import Rows, RowTable, inducing_inputs
from cloakgp.fitting.public_rows import condition_on_public_rows
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.request import FitRequest, Learn, Regression, check_public_prediction
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import Model
from cloakgp.models import Approximation, ExactPrior, SparsePrior
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.models.prediction import unpredicted
from cloakgp.models.summary import Summary
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.entries import check_same_order
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.noise_choice import choose_noise
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release
from cloakgp.release.public_rows import PublicRows
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import (
    PUBLIC_PREDICTION,
    Estimate,
    NoiseChoice,
    OutputLikelihood,
    TransformName,
)
from cloakgp.utils.passes import OnStep, ignore_step
from cloakgp.utils.threads import OPERATIONS_A_PAIR, suitable_threads

EXPOSURE_OF_COUNTS = "exposure is of counts: it goes with likelihood='counts'"


class DPGPRegressor(
    ForecastMixin,
    DesignMixin,
    LaterVisitsMixin,
    PosteriorMixin[Guarantee | MixedGuarantee],
    RegressorMixin,
    BaseEstimator,
):
    r"""Gaussian-process regression that protects each output.

    `fit` asks the private outputs once, under (ε, δ)-differential privacy of one row's output, and
    keeps the noisy answers only; `predict` is free, anywhere, for ever. Inputs, bounds and
    hyperparameters are public and must not be chosen by looking at y.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Covariance of the latent function, in squared output units, with the hyperparameters to use.
        If not given: a level, a linear and a Matérn 3/2 part on standardised inputs, of sds 0.25,
        0.1 and 0.15 of the bounds' width (`docs/default-prior.md`).
    noise_variance : float, optional
        Of each output, in squared output units. If not given: the square of a tenth of the width.
    bounds : (float, float)
        Public range of one output. Outputs outside are clipped, silently. It may be as wide as is
        certain, if noisy counts can find an interval that holds most outputs (`interval`).
    epsilon, delta : float
        The budget of one `fit`. δ may be 0: noise is Laplace noise then.
    noise : {"auto", "gaussian", "laplace"}
        The noise on answers. Laplace noise needs no δ, and is cheaper for questions about a few
        rows; "auto" takes the one with the smaller expected error, from public inputs.
    criterion : {"bayes", "trace", "logdet", "functional"}
        The aim of the questions: the least posterior variance at the query points; the
        least mean squared noise on the non-private predictions there; the least volume of that
        noise (the papers' choice); or the whole function, wherever it may be queried (2018 paper,
        section 2), at a price: its noise is the same everywhere. `Release.function` evaluates it.
    inducing : int, array-like of shape (M, D) or "auto", optional
        Sparse model with this number of inducing inputs, placed by k-means on X, each
        column in units of its spread, or with these.
        "auto", of more than 5,000 rows: 200 in the first stage, and in the second as many as the
        kernel that was learned is worth, up to 1,000, placed for it; a process of every row, of
        fewer.
    approximation : {"fitc", "dtc", "sor"}
        Of the sparse model.
    mean : float, optional
        Prior mean, in output units. If not given: the middle of the (transformed) bounds.
    learn : {"map", "average"} or None
        Fit the hyperparameters that are free to the published answers, at no cost in privacy:
        their maximum a posteriori, if it is more probable than the declared values by a nat, or an
        average over their posterior. Free are those that the kernel does not mark "fixed", the
        noise variance and the mean unless given. Of rows that are held, where persons times ε are
        below 150, smaller scales of the default prior are weighed as well
        (`cloakgp.models.scales`).
    stages : "auto", "one" or None, or sequence of (share, width)
        How the budget is spread over several measurements of the same outputs (`docs/adaptive.md`).
        Each stage spends its share of μ² and clips outputs to bands of its width, in predictive sds
        on either side of earlier predictions; the first has no band, so its width is None. "auto":
        three stages, (0.2, None), (0.3, 1.5) and (0.5, 1), with criterion "bayes" (shares of ε, a
        quarter for the first, with Laplace noise). For tables that are read in passes, where
        privacy is not expected to add more than 1 % to the error of new outputs anyway, two without
        bands, (0.3, None) and (0.7, None), the second at the resolution that was learned from the
        first; one if nothing is learned. None: one stage. Of several stages, 5 % (10 % of ε) are
        for a question about the noise of outputs, if that is learned and rows suffice; of those
        without bands, no more than makes it precise.
    interval : "auto", or "off" or False
        Whether noisy counts first find an interval that holds most outputs, within the one
        budget (`docs/adaptive.md`). All later questions clip to it, and the default prior is
        scaled to it. "auto": with criterion "bayes", if rows are enough that it costs little.
        False: the bounds alone.
    calibrate : "auto", False, or float
        Whether outputs are counted, with noise, in cells of their predicted distributions, within
        the one budget: the counts then calibrate intervals, quantiles and probabilities. "auto":
        with criterion "bayes", for at most 5 % of ε (3 % of μ²), where noise on a count is at most
        1.5 % of the rows, and not with ``stages=None``. False: the Gaussian predictive
        distribution. A number above 0 and below .5: that share of the rows, drawn by
        ``random_state``, is kept out of the fit, and asked with the whole budget how far
        predictions are off. Intervals then hold new outputs with at least the stated probability,
        on average over rows like these and whatever the model (`cloakgp.release.margins`);
        quantiles and probabilities are those of the Gaussian. A ledger counts both budgets, as it
        does not know who is in which rows.
    output_transform : {"log", "logit"}, optional
        For long tails: outputs are clipped to the bounds, and their logarithm is modelled; or of
        shares, between 0 and 1, their log odds. Bounds and mean stay in output units, and so are
        predictions; kernel and noise variance are of the transformed outputs.
    likelihood : {"normal", "counts"}
        "counts": outputs are whole numbers of events, negative binomial about their exposure times
        a rate whose logarithm is the Gaussian process (`docs/how-to/counts.md`). Predictions are
        rates, per unit of exposure; kernel and mean are those of the log rate and of the rate;
        bounds are whole numbers, and questions are about √(y + 3/8). Rows are held.
    overdispersion : float, optional
        α of counts: a count of mean λ has variance λ + α λ²; 0 for Poisson. If not given: learned
        from a question about the spread of counts about their predictions, if that is asked (with
        several stages, as outputs' noise is), and else 1/4.
    gap : float
        Certified relative gap at which the design stops.
    memory : float, optional
        Memory limit of a fit in gigabytes; by default half of the free memory. Where an exact
        process would take more, one with 200 inducing inputs is fitted, and a `SparseModelWarning`
        says so before the first question.
    public_prediction : str, int, object with a method predict, or (X, y), optional
        What is said of outputs by public knowledge, in output units: a public column of X, by its
        name or place, a fitted model, a `Release` about others, or up to 2,000 public rows with
        their outputs (`docs/how-to/public-help.md`). Predictions then are this plus what the
        answers say it gets wrong, and if they say that it is worth nothing, they do not go by it: a
        column is then no input at all, as it is none of the default kernel. It must be public: a
        model of these very outputs is not. What a model, a release or public rows predict is one
        more column, the last. A file keeps release and rows, and of models needs the column. To be
        fitted in clones, a model is wrapped in ``sklearn.frozen.FrozenEstimator``.
    schema : Schema, optional
        Kinds of the columns of a table; inferred where it holds more than numbers, or has gaps.
    random_state : int
        Of k-means on public inputs. Has nothing to do with privacy noise.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**; it says so for ever. For
        experiments only.

    Attributes
    ----------
    release_ : Release
        The public result: save it, predict from it. With inducing inputs and more than 5,000
        rows, it is of the second kind, whose size does not depend on the number of rows.
    guarantee_ : Guarantee
        The guarantee of the release.
    public_rows_ : PublicRows
        The process given public rows, if there are any.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask` on the strategy of `cloakgp.design.design_bayes`, or of
    `cloakgp.design.design_strategy` for the cloaking matrix C = K_*f (K + σ_n² I)⁻¹ (2018 paper,
    equation 7). Neighbours, sensitivity, theorem and argument are stated there. Predictions
    condition the Gaussian process on the noisy answers, so their sd includes the privacy noise.

    Outputs are transformed one by one, after clipping, in `cloakgp.privacy.transforms`, with the
    argument why the guarantee stays the same. Bounds and transform are public.

    `score` compares predictions with outputs that you pass to it, without noise: its result is
    private if they are.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> y = 100 + 20 * np.sin(X).ravel()
    >>> model = DPGPRegressor(bounds=(70, 130), epsilon=1.0, delta=1e-4).fit(X, y)
    >>> mean, sd = model.predict([[2.0], [5.0]], return_std=True)
    >>> mean.shape, sd.shape
    ((2,), (2,))
    """

    release_: Release

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_variance: float | None = None,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        delta: float = FitRequest.delta,
        noise: NoiseChoice = FitRequest.noise,
        criterion: str = FitRequest.criterion,
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = FitRequest.approximation,
        mean: float | None = None,
        learn: Learn | None = FitRequest.learn,
        stages: Stages = Regression.stages,
        interval: Literal["auto", "off", False] = Regression.interval,
        calibrate: Literal["auto", False] | float = Regression.calibrate,
        output_transform: TransformName | None = None,
        likelihood: OutputLikelihood = Regression.likelihood,
        overdispersion: float | None = None,
        gap: float = FitRequest.gap,
        memory: float | None = None,
        public_prediction: object = None,
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
        self.criterion = criterion
        self.inducing = inducing
        self.approximation = approximation
        self.mean = mean
        self.learn = learn
        self.stages = stages
        self.interval = interval
        self.calibrate = calibrate
        self.output_transform = output_transform
        self.likelihood = likelihood
        self.overdispersion = overdispersion
        self.gap = gap
        self.memory = memory
        self.public_prediction = public_prediction
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
        exposure: ArrayLike | None = None,
        progress: Progress | None = None,
        on_step: OnStep = ignore_step,
    ) -> DPGPRegressor:
        """Spend the budget once: ask the outputs, keep the noisy answers.

        Every call spends (ε, δ) anew about the same people; combine releases to add it up.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        y : array-like of shape (N,)
            Private outputs.
        X_query : array-like or table of shape (P, D), optional
            Points of the wanted predictions. By default the rows of X, or 500 k-means centres of
            them. Predictions are possible anywhere all the same. Columns of a table are found by
            name, where X has names.
        query_weight : array-like of shape (P,), optional
            Positive importance of each of them, for criteria "bayes" and "trace".
        groups : iterable of N texts or whole numbers, optional
            Public: the person of each row. The guarantee is then that of all rows of one group
            together. By default every row is protected on its own.
        exposure : array-like of shape (N,), optional
            Public, of counts: years, people, kilometres, in which each was counted. 1 if not given.
        progress : callable, optional
            Called with the certified gap while the design improves.
        on_step : callable, optional
            Called with the name of each step as it begins.

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
        self._check_private(X, y, groups, exposure)
        inputs, y, groups = given.X, given.of_rows(y), given.of_rows(groups)
        self._request().validate()
        task = self._regression()
        exposures = checked_exposure(given.of_rows(exposure), rows=len(inputs))
        if exposures is not None and not task.of_counts:
            raise ValueError(EXPOSURE_OF_COUNTS)
        declared, limits = task.declared, task.limits
        grouped, queries = groups is not None, count_queries(X_query)
        plan = self.plan_fit(inputs.shape, queries=queries, grouped=grouped)
        plan.announce()
        if plan.by_passes:
            names, columns, place = self._names(), inputs, None
            if exposures is not None:
                columns, place = np.column_stack([inputs, exposures]), inputs.shape[1]
                names = (*names, "exposure") if names else ()
            many = ArrayRows(columns, y, input_names=names, output_name=column_name(y))
            many.schema = given.schema
            return self._fit_in_passes(
                many, X_query, query_weight, exposure=place, progress=progress, on_step=on_step
            )
        bounds, rows = [(declared.lo, declared.hi)], len(inputs)
        warn_of_parameters(
            epsilon=self.epsilon, delta=self.delta, rows=rows, bounds=bounds, mean=self.mean
        )
        on_step("choosing the prior")
        prior = self._prior(inputs, limits, inducing=plan.inducing)
        on_step("choosing the query points")
        query = self._query(inputs, X_query, query_weight)
        width = len(prior.inducing) if isinstance(prior, SparsePrior) else rows
        table = HeldTable.of(
            inputs,
            groups=groups,
            exposure=exposures,
            transform=task.transform,
            input_names=self._names(),
            output_name=column_name(y),
        )
        prior_within = partial(self._prior, inputs, inducing=plan.inducing)
        if task.of_counts:
            prior_within = partial(
                self._rate_prior,
                inputs,
                typical=1.0 if exposures is None else float(exposures.mean()),
                inducing=plan.inducing,
            )
        with suitable_threads(OPERATIONS_A_PAIR * rows * width):
            return self._fit_table(
                table,
                y,
                partial(self._model_within, prior_within),
                query=query,
                noise=self._noise(inputs, prior=prior, query=query),
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
        exposure: str | int | None = None,
        progress: Progress | None = None,
        on_step: OnStep = ignore_step,
    ) -> DPGPRegressor:
        """Spend the budget once on a table in chunks: files, arrays or a cluster, of any length.

        The table is read a few times, chunk by chunk; its outputs once for each stage. The size of
        `release_` does not depend on the number of rows then, and it holds none of them. For counts
        rows are gathered in up to 1,000 cells of similar public inputs and exposures, and those of
        a cell are asked alike: see `cloakgp.fitting.gathered`.

        Parameters
        ----------
        rows : ArrayRows, FileRows or DaskRows
            From `cloakgp.data`. Every row is protected on its own, unless they were given
            ``groups``: then all rows of one group are protected together.
        X_query, query_weight
            As for `fit`.
        exposure : str or int, optional
            Of counts: the name of the public column of the rows, or its place, that is no input but
            says in how much each row was counted.
        progress, on_step
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
        >>> import numpy as np
        >>> from cloakgp.data import ArrayRows
        >>> X = np.linspace(0, 10, 1000)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-5, inducing=20)
        >>> model.fit_rows(ArrayRows(X, np.sin(X).ravel())).release_.n_rows
        1000
        """
        if predicts(self.public_prediction):
            refuse("public models in passes")
        return self._fit_in_passes(
            rows,
            X_query,
            query_weight,
            exposure=exposure,
            progress=progress,
            on_step=on_step,
        )

    def _fit_in_passes(
        self,
        rows: Rows,
        X_query: TableLike | None,
        query_weight: ArrayLike | None,
        *,
        exposure: str | int | None,
        progress: Progress | None,
        on_step: OnStep,
    ) -> DPGPRegressor:
        """Fit a table in chunks, with its public prediction as a column."""
        seen = rows if exposure is None else ExposedRows.of(rows, exposure)
        self._look_at(seen)
        self._request().validate()
        task = self._regression()
        declared = task.declared
        if exposure is not None and not task.of_counts:
            raise ValueError(EXPOSURE_OF_COUNTS)
        if task.kept:
            refuse("margins of other tables")
        if task.of_counts:
            return self._fit_cells(seen, X_query, query_weight, progress=progress, on_step=on_step)
        criterion = criterion_named(self.criterion, use="many rows")
        table = RowTable.of(rows, transform=task.transform, resolves=self._resolves)
        self._check_several(table.rows)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=table.rows,
            bounds=[(declared.lo, declared.hi)],
            mean=self.mean,
        )
        self._check_prediction(table.summary.ranges)
        on_step("choosing the prior")
        inducing = inducing_inputs(
            self._unpredicted(table.summary),
            self._inducing_of(rows),
            random_state=self.random_state,
        )
        prior_within = cache(partial(self._prior, table.summary.sample, inducing=inducing))
        model = partial(self._model_within, prior_within)
        on_step("choosing the query points")
        query = self._query_for(rows, X_query, query_weight)
        points = query or Query(*table.summary.centres(LARGEST_DEFAULT_QUERY))
        noise = choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            expected_error=lambda law: (
                table.forecast(
                    model(None),
                    Budget(
                        *NOISES[law].check(self.epsilon, self.delta),
                        noise=law,
                        added=table.added_noise,
                    ),
                    points,
                ).error
            ),
            balls=criterion.balls_of_rules,
        )
        return self._fit_table(
            table,
            table.passes,
            model,
            query=points,
            noise=noise,
            progress=progress,
            on_step=on_step,
        )

    def _fit_cells(
        self,
        rows: Rows | ExposedRows,
        X_query: TableLike | None,
        query_weight: ArrayLike | None,
        *,
        progress: Progress | None,
        on_step: OnStep,
    ) -> DPGPRegressor:
        """Fit counts in cells of rows that are read in passes."""
        task = self._regression()
        table, inducing, query = self._gather(
            rows, X_query, query_weight, task=task, on_step=on_step
        )
        sample = table.summary.sample
        prior_within = partial(
            self._rate_prior, sample, typical=table.typical_exposure, inducing=inducing
        )
        rough = self._prior(sample, task.limits, inducing=inducing)
        return self._fit_table(
            table,
            table.passes,
            partial(self._model_within, prior_within),
            query=query,
            noise=self._noise(sample, prior=rough, query=query, rows=table.rows),
            progress=progress,
            on_step=on_step,
        )

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        estimate: Estimate = "median",
    ) -> Any:
        """Predict the latent function, at no further cost in privacy.

        Parameters
        ----------
        X : array-like of shape (P, D)
        return_std, return_cov : bool
            Also return the posterior sd, shape (P,), or covariance, shape (P, P), in output units
            or their square.
        estimate : {"median", "mean"}
            Of transformed outputs: what is predicted; see `Release.predict`.

        Returns
        -------
        array of shape (P,), or a pair with sd or covariance
            Both include what is due to the privacy noise. For those of a new output, see
            ``release_.predict``.

        Raises
        ------
        ValueError
            If both are asked for, or X does not fit.
        """
        points = self._points(X)
        release: Any = self.release_
        return release.predict(
            points, return_std=return_std, return_cov=return_cov, estimate=estimate
        )

    def predict_interval(
        self, X: ArrayLike, coverage: float = 0.9, *, exposure: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return intervals that hold a new output with a given probability.

        Parameters
        ----------
        X, coverage, exposure
            As for `Release.predict_interval`, which says what they rest on.

        Returns
        -------
        lower, upper : arrays of shape (P,)
        """
        points = self._points(X)
        return self.release_.predict_interval(points, coverage, exposure=exposure)

    def predict_quantile(
        self, X: ArrayLike, quantiles: ArrayLike, *, exposure: ArrayLike | None = None
    ) -> Array:
        """Return quantiles of a new output.

        Parameters
        ----------
        X, quantiles, exposure
            As for `Release.predict_quantile`.

        Returns
        -------
        array of shape (P,), or (P, Q)
        """
        points = self._points(X)
        return self.release_.predict_quantile(points, quantiles, exposure=exposure)

    def probability_above(
        self, X: ArrayLike, threshold: float, *, exposure: ArrayLike | None = None
    ) -> Array:
        """Return how probable it is that a new output is above a threshold.

        Parameters
        ----------
        X, threshold, exposure
            As for `Release.probability_above`.

        Returns
        -------
        array of shape (P,)
        """
        points = self._points(X)
        return self.release_.probability_above(points, threshold, exposure=exposure)

    def _prior(
        self, inputs: Array, bounds: OutputBounds, *, inducing: int | ArrayLike | None
    ) -> ExactPrior | SparsePrior:
        return choose_prior(
            inputs,
            bounds=bounds,
            # Of counts, this is the prior of their roots, by which they are forecast.
            kernel=None if self._regression().of_counts else self.kernel,
            noise_variance=self.noise_variance,
            mean=self._regression().prior_mean,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            blocks=self._blocks(),
            random_state=self.random_state,
            prediction=self._prediction_place(),
        )

    def _prediction_place(self) -> int | None:
        """Return the place of the public prediction among the inputs; None without one."""
        names = self._names()
        count = len(names) if self.schema_ is not None else self.n_features_in_
        return place_of(self.public_prediction, names=names, n_inputs=count)

    def _unpredicted(self, summary: Summary) -> Summary:
        """Return the summary of inputs for a prior that does not go by their prediction itself."""
        column = self._prediction_place()
        if column is None or self.kernel is not None:
            return summary
        return replace(summary, sample=unpredicted(summary.sample, column=column))

    def _read(self, X: Any) -> Inputs:
        check_public_prediction(self.public_prediction)
        self.__dict__.pop("public_rows_", None)
        if isinstance(self.public_prediction, tuple):
            self.public_rows_ = self._condition_on_public_rows(*self.public_prediction)
        given = super()._read(self._with_prediction(X))
        self._check_prediction(given.X)
        return given

    def _check_prediction(self, points: Array) -> None:
        """Refuse public predictions that lie too far beyond the bounds."""
        place = self._prediction_place()
        if place is not None:
            check_near(points[:, place], bounds=self._regression().limits)

    def _condition_on_public_rows(self, X: TableLike, outputs: ArrayLike) -> PublicRows:
        """Return the process given public rows, which have no more to do with the private ones."""
        check_same_order(X, outputs)
        check_public_rows(X)
        read = read_inputs(columns := BaseEstimator(), X, schema=self.schema)
        values = np.asarray(read.of_rows(outputs), dtype=np.float64)
        names = feature_names(columns) if read.schema is None else read.schema.names
        within = self._regression().limits
        return condition_on_public_rows(
            read.X, values, bounds=within, input_names=names, schema=read.schema
        )

    def _predictor(self) -> Any:
        """Return what predicts publicly: public rows as their process."""
        return getattr(self, "public_rows_", self.public_prediction)

    def _declared_schema(self) -> Schema | None:
        if self.schema is None or not predicts(self.public_prediction):
            return self.schema
        # What a model predicts is a number of its own, after all columns.
        columns = (*self.schema.columns, Number(name=PUBLIC_PREDICTION))
        return replace(self.schema, columns=columns)

    def _query(
        self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
    ) -> Query:
        if X_query is not None:
            X_query = self._with_prediction(X_query)
        query = super()._query(inputs, X_query, query_weight)
        self._check_prediction(query.X)
        return query

    def _points(self, X: ArrayLike) -> Any:
        return super()._points(self._with_prediction(X))

    def _with_prediction(self, X: Any) -> Any:
        return with_prediction_of(self._predictor(), X)

    def _keep(self, release: Release) -> Self:
        kept = self._predictor()
        if isinstance(kept, Release):
            release = replace(release, predictor=kept)
        elif isinstance(kept, PublicRows):
            release = replace(release, public_rows=kept)
        return super()._keep(release)

    def _model_within(
        self,
        prior_within: Callable[[OutputBounds], ExactPrior | SparsePrior],
        found: Sequence[OutputBounds] | None,
    ) -> Model:
        """Return the model within an interval that was found; within the bounds if None."""
        task = self._regression()
        [within] = (task.limits,) if found is None else found
        likelihood = task.count_likelihood if task.of_counts else NUMBERS
        return Model(prior=prior_within(within), question=within, likelihood=likelihood)

    def _rate_prior(
        self,
        inputs: Array,
        roots: OutputBounds,
        *,
        typical: float,
        inducing: int | ArrayLike | None,
    ) -> ExactPrior | SparsePrior:
        task = self._regression()
        assert task.transform is not None
        lo, hi = task.transform.inverse(np.array([roots.lo, roots.hi]))
        return choose_rate_prior(
            inputs,
            counts=(float(lo), float(hi)),
            typical=typical,
            kernel=self.kernel,
            mean=self.mean,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            blocks=self._blocks(),
            random_state=self.random_state,
        )

    @property
    def _holds_rows(self) -> bool:
        return self._regression().kept > 0
