"""Private Gaussian-process regression: `DPGPRegressor`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, Unpack

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from cloakgp.data import ArrayRows
from cloakgp.design import Progress
from cloakgp.estimators.base import (
    DesignMixin,
    PosteriorMixin,
    check_inputs,
    choose_hyperprior,
    column_name,
    count_queries,
)
from cloakgp.fitting.bands import Stage, Stages, stages_for
from cloakgp.fitting.defaults import choose_prior
from cloakgp.fitting.dense import release_outputs
from cloakgp.fitting.forecast import Forecast, forecast_release
from cloakgp.fitting.planning import FitPlan, plan_fit
from cloakgp.fitting.remeasure import Settings, extend, refine
from cloakgp.fitting.streaming import Rows, RowSettings, release_rows
from cloakgp.models import Approximation, ExactPrior, SparsePrior
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Hyperprior, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import Tell, tell_nobody


class DPGPRegressor(
    DesignMixin, PosteriorMixin[Guarantee | MixedGuarantee], RegressorMixin, BaseEstimator
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
        Public range of one output. Outputs outside are clipped, silently.
    epsilon, delta : float
        The budget of one `fit`.
    criterion : {"bayes", "trace", "logdet", "functional"}
        What the questions are chosen for: the least posterior variance at the query points; the
        least mean squared noise on the non-private predictions there; the least volume of that
        noise (the papers' choice); or the whole function, wherever it may be queried (2018 paper,
        section 2), at a price: its noise is the same everywhere. `Release.function` evaluates it.
    inducing : int or array-like of shape (M, D), optional
        Sparse model with so many inducing inputs, placed by k-means on X, or with these.
    approximation : {"fitc", "dtc", "sor"}
        Of the sparse model.
    mean : float, optional
        Prior mean, in output units. If not given: the middle of the bounds.
    learn : {"map", "average"} or None
        Fit the hyperparameters that are free to the published answers, at no cost in privacy:
        their maximum a posteriori, if it is more probable than the declared values by a nat, or an
        average over their posterior. Free are those that the
        kernel does not mark "fixed", the noise variance and the mean unless given.
    stages : "auto", None, or sequence of (share, width)
        How the budget is spread over several measurements of the same outputs (`docs/adaptive.md`).
        Each stage spends its share of μ² and clips outputs to so many predictive sds on either side
        of what the answers before it predict; the first has no band, so its width is None. "auto":
        three stages, (0.2, None), (0.3, 1.5) and (0.5, 1), wherever criterion "bayes" keeps its
        rows. None: everything at once. Of several stages, 5 % are for the question how
        noisy outputs are, if that is learned and can be told.
    gap : float
        Certified relative gap at which the design stops.
    memory : float, optional
        Gigabytes that a fit may take; half of what is free if not given. Where an exact process
        would take more, one with 200 inducing inputs is fitted, and a `SparseModelWarning` says so
        before anything is asked.
    random_state : int
        Of k-means on public inputs. Has nothing to do with privacy noise.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**; it says so for ever. For
        experiments only.

    Attributes
    ----------
    release_ : Release
        What may be published: save it, predict from it. With inducing inputs and more than 5,000
        rows, it is of the second kind, whose size does not depend on the number of rows.
    guarantee_ : Guarantee
        What the release costs.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism: `cloakgp.privacy.gaussian` on the strategy of `cloakgp.design.design_bayes`, or of
    `cloakgp.design.design_strategy` for the cloaking matrix C = K_*f (K + σ_n² I)⁻¹ (2018 paper,
    equation 7). Neighbours, sensitivity, theorem and argument are stated there. Predictions
    condition the Gaussian process on the noisy answers, so their sd includes the privacy noise.

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
        delta: float,
        criterion: str = "bayes",
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = "fitc",
        mean: float | None = None,
        learn: Literal["map", "average"] | None = "map",
        stages: Stages = "auto",
        gap: float = 1e-3,
        memory: float | None = None,
        random_state: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.criterion = criterion
        self.inducing = inducing
        self.approximation = approximation
        self.mean = mean
        self.learn = learn
        self.stages = stages
        self.gap = gap
        self.memory = memory
        self.random_state = random_state
        self.insecure_seed = insecure_seed

    @forget_on_failure
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_query: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        progress: Progress | None = None,
        tell: Tell = tell_nobody,
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
            Where predictions matter most. If not given: the rows of X, or 500 k-means centres of
            them. Predictions can be had anywhere all the same. Columns of a table are found by
            name, where X has names.
        query_weight : array-like of shape (P,), optional
            Positive importance of each of them, for criteria "bayes" and "trace".
        groups : iterable of N hashables, optional
            Public: whose row it is. The guarantee is then that of all rows of one group together,
            for people with several rows. If not given, every row is protected on its own.
        progress : callable, optional
            Called with the certified gap while the design improves.
        tell : callable, optional
            Called with what begins, in a few words.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For anything that does not make sense; no message quotes an output.
        """
        inputs = check_inputs(self, X)
        check_budget(self.epsilon, self.delta)
        limits = OutputBounds.checked(self.bounds)
        hyperprior = self._hyperprior()
        plan = self.plan(
            inputs.shape,
            queries=count_queries(X_query),
            grouped=groups is not None,
        )
        plan.announce()
        if plan.by_passes:
            rows = ArrayRows(inputs, y, input_names=self._names(), output_name=column_name(y))
            return self.fit_rows(rows, X_query, query_weight, progress=progress, tell=tell)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(inputs),
            bounds=[(limits.lo, limits.hi)],
            mean=self.mean,
        )
        tell("choosing the prior")
        prior = self._prior(inputs, inducing=plan.inducing)
        tell("choosing where predictions matter")
        query = self._query(inputs, X_query, query_weight)
        self.release_ = release_outputs(
            inputs,
            y,
            prior=prior,
            encoding=limits,
            query=query,
            epsilon=self.epsilon,
            delta=self.delta,
            groups=groups,
            criterion=self.criterion,
            gap=self.gap,
            hyperprior=hyperprior,
            average=self.learn == "average",
            stages=self._stages(),
            input_names=self._names(),
            output_name=column_name(y),
            progress=progress,
            tell=tell,
            insecure_seed=self.insecure_seed,
        )
        return self

    @forget_on_failure
    def fit_rows(
        self,
        rows: Rows,
        X_query: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        *,
        progress: Progress | None = None,
        tell: Tell = tell_nobody,
    ) -> DPGPRegressor:
        """Spend the budget once on a table in chunks: files, arrays or a cluster, of any length.

        The table is read a few times, chunk by chunk; its outputs once. The size of
        `release_` does not depend on the number of rows then, and it holds none of them.

        Parameters
        ----------
        rows : ArrayRows, FileRows or DaskRows
            From `cloakgp.data`. Every row is protected on its own, unless they were given
            ``groups``: then all rows of one group are protected together.
        X_query, query_weight
            As for `fit`.
        progress, tell
            As for `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For anything that does not make sense; no message quotes an output.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp.data import ArrayRows
        >>> X = np.linspace(0, 10, 5000)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-5, inducing=20)
        >>> model.fit_rows(ArrayRows(X, np.sin(X).ravel())).release_.n_rows
        5000
        """
        if self.stages is not None and self.stages != "auto":
            raise ValueError("stages are for tables that are fitted at once: leave them out")
        self._look_at(rows)
        self.release_ = release_rows(
            rows,
            bounds=OutputBounds.checked(self.bounds),
            epsilon=self.epsilon,
            delta=self.delta,
            query=self._query_for(rows, X_query, query_weight),
            settings=RowSettings(
                kernel=self.kernel,
                noise_variance=self.noise_variance,
                mean=self.mean,
                inducing=self._inducing_of(rows),
                approximation=self.approximation,
                criterion=self.criterion,
                gap=self.gap,
                hyperprior=self._hyperprior(),
                average=self.learn == "average",
                random_state=self.random_state,
            ),
            progress=progress,
            tell=tell,
            insecure_seed=self.insecure_seed,
        )
        return self

    @forget_on_failure
    def refine(
        self,
        y: ArrayLike | Rows,
        X_query: ArrayLike | None = None,
        **settings: Unpack[Settings],
    ) -> DPGPRegressor:
        """Ask the outputs again, for what the answers so far leave open; see `cloakgp.refine`.

        Parameters
        ----------
        y : array-like of shape (N,), or ArrayRows, FileRows or DaskRows
            Private: the outputs that `fit` was given, in the same order, or the rows that
            `fit_rows` was given.
        X_query : array-like or table of shape (P, D), optional
        **settings
            ``epsilon`` and ``delta``, on top of what was spent, and others of `cloakgp.refine`.

        Returns
        -------
        self
            With a `release_` that knows both measurements.
        """
        check_is_fitted(self)
        self.release_ = refine(self.release_, y, X_query, **settings)
        return self

    @forget_on_failure
    def extend(
        self,
        X: ArrayLike | Rows,
        y: ArrayLike | None = None,
        X_query: ArrayLike | None = None,
        **settings: Unpack[Settings],
    ) -> DPGPRegressor:
        """Ask new rows, given what is known; see `cloakgp.extend`.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or ArrayRows, FileRows or DaskRows
            Public inputs of the new rows, or new rows with their outputs.
        y : array-like of shape (N,), optional
            Their private outputs, unless X has them.
        X_query : array-like or table of shape (P, D), optional
        **settings
            ``epsilon`` and ``delta``, on top of what was spent, and others of `cloakgp.extend`.

        Returns
        -------
        self
            With a `release_` that knows both tables.
        """
        check_is_fitted(self)
        self.release_ = extend(self.release_, X, y, X_query, **settings)
        return self

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
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-6, memory=4.0)
        >>> model.plan((40_000, 2)).by_passes
        True
        """
        criterion = self._criterion()
        staged = self.stages is not None and self.stages != "auto"
        at_once = grouped or staged or "many rows" not in criterion.uses
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
        >>> model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-5)
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> weak, strong = model.forecast(X, epsilons=[0.1, 1.0])
        >>> strong.error < weak.error < weak.prior_error
        True
        """
        model = clone(self)
        inputs = check_inputs(model, X)
        plan = model.plan(inputs.shape, queries=count_queries(X_query))
        if plan.by_passes:
            raise ValueError("tables that are read in passes cannot be forecast: take some rows")
        return forecast_release(
            inputs,
            prior=model._prior(inputs, inducing=plan.inducing),
            bounds=OutputBounds.checked(self.bounds),
            query=model._query(inputs, X_query, query_weight),
            epsilons=[self.epsilon] if epsilons is None else epsilons,
            delta=self.delta,
            stages=self._stages(),
            hyperprior=model._hyperprior(),
            criterion=self.criterion,
        )

    def _prior(
        self, inputs: Array, *, inducing: int | ArrayLike | None
    ) -> ExactPrior | SparsePrior:
        return choose_prior(
            inputs,
            bounds=OutputBounds.checked(self.bounds),
            kernel=self.kernel,
            noise_variance=self.noise_variance,
            mean=self.mean,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            random_state=self.random_state,
        )

    def _hyperprior(self) -> Hyperprior | None:
        return choose_hyperprior(self.learn, noise_variance=self.noise_variance, mean=self.mean)

    def _stages(self) -> tuple[Stage, ...]:
        return stages_for(self.stages, criterion=self._criterion())
