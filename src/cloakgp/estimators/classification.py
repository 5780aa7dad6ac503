"""Private Gaussian-process classification: `DPGPClassifier`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.columns import Schema
from cloakgp.criteria import criterion_named
from cloakgp.data import ArrayRows
from cloakgp.design import Progress
from cloakgp.estimators.base import (
    ClassScoreMixin,
    DesignMixin,
    Inputs,
    ReleaseMixin,
    TableLike,
    column_name,
    count_queries,
)
from cloakgp.estimators.planning import Beforehand, PlanMixin
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.bands import Stages
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_label_prior
from cloakgp.fitting.forecast import LabelForecast, forecast_labels
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.iteration import release_iteration
from cloakgp.fitting.passes import LabelTable, Rows, inducing_inputs
from cloakgp.fitting.release_plan import NOT_OF_CLASSES, PATIENCE, ReleasePlan, most_questions
from cloakgp.fitting.request import Classification, FitRequest, Learn
from cloakgp.fitting.schedule import whole_guarantee
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import Model, refuse_nothing
from cloakgp.models import Approximation, ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood, Likelihood
from cloakgp.privacy import Guarantee
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise_choice import check_noise, choose_noise, noises_for
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import LatentPrediction, Release
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import CriterionName, LinkName, NoiseChoice, NoiseName
from cloakgp.utils.passes import OnStep, ignore_step


class ClassPlanMixin(PlanMixin):
    """Plans of an estimator of classes; nothing is read or spent."""

    classes: object
    steps: int | None
    kernel: Kernel | None
    approximation: Approximation
    criterion: str
    random_state: int

    if TYPE_CHECKING:
        # What the estimator itself brings.
        def _names(self) -> tuple[str, ...]: ...

        def _blocks(self) -> tuple[int, ...] | None: ...

        def _query(
            self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
        ) -> Query: ...

    def _classification(self) -> Classification:
        """Return the classification task of the parameters."""
        task = self._request().task
        assert isinstance(task, Classification)
        return task

    def _label_prior(
        self, inputs: Array, *, inducing: int | ArrayLike | None
    ) -> tuple[ExactPrior | SparsePrior, ClassLikelihood]:
        """Return the prior of the latent functions of a table that is held, and their link."""
        task = self._classification()
        return choose_label_prior(
            inputs,
            classes=task.ordered,
            kernel=self.kernel,
            link_name=task.link_name(self._criterion()),
            class_rates=task.ordered_rates,
            inducing=inducing,
            approximation=self.approximation,
            input_names=self._names(),
            blocks=self._blocks(),
            random_state=self.random_state,
        )

    def _forecaster(
        self,
        inputs: Array,
        *,
        prior: ExactPrior | SparsePrior,
        likelihood: Likelihood,
        query: Query,
        groups: Groups | None,
    ) -> Callable[[NoiseName], LabelForecast]:
        """Return the forecast of a table that is held, as a function of the noise."""

        @cache
        def forecast(law: NoiseName) -> LabelForecast:
            return forecast_labels(
                inputs,
                prior=prior,
                likelihood=likelihood,
                classes=self._classification().ordered,
                query=query,
                budget=Budget(self.epsilon, self.delta, noise=law),
                criterion=self.criterion,
                groups=groups,
            )

        return forecast

    def _noise(self, expected_error: Callable[[NoiseName], float]) -> NoiseName:
        """Return the noise of a table that is held."""
        return choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            balls=self._criterion().balls,
            expected_error=expected_error,
        )

    def plan(
        self,
        X: TableLike | Rows,
        X_query: TableLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
    ) -> ReleasePlan:
        """Plan a release from public inputs: cost, protection and public parts; nothing is spent.

        How well classes will be told apart is not among that: it depends on the labels.

        Parameters
        ----------
        X : array-like or table of shape (N, D), or rows in chunks
            Public inputs. Of rows in chunks (`cloakgp.data`), no private entry is read.
        X_query, groups
            As for `fit`.

        Returns
        -------
        ReleasePlan
            Print it.

        Raises
        ------
        ValueError
            For anything that `fit` would refuse without looking at labels.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPClassifier
        >>> model = DPGPClassifier(classes=["no", "yes"], epsilon=1.0)
        >>> print(model.plan(np.linspace(0, 10, 300)[:, None]))  # doctest: +ELLIPSIS
        expected error: cannot be forecast: ...
        """
        model = clone(self)
        check_noise(self.noise, epsilon=self.epsilon, delta=self.delta)
        classes = Classes.checked(self.classes)
        known: Beforehand = model._beforehand(X, X_query, groups=groups, channels=classes.channels)
        criterion = self._criterion()
        given = known.inputs
        if (
            given is not None
            and not known.how.by_passes
            and not criterion.iterates
            and known.cost.seconds <= PATIENCE
        ):
            planned: ReleasePlan = model._plan_of_design(known, given, X_query, groups=groups)
            return planned
        balls = criterion.balls_of_rules if known.how.by_passes else criterion.balls
        possible = noises_for(self.noise, epsilon=self.epsilon, delta=self.delta, balls=balls)
        chooses = len(possible) > 1
        budget = Budget(self.epsilon, self.delta, noise=possible[0])
        return known.plan_of(
            most_questions(known.table, known.how, queries=known.queries),
            declared=", ".join(map(str, classes.labels)),
            epsilon=self.epsilon,
            delta=self.delta,
            noise=None if chooses else budget.noise,
            stages=1 if self.steps is None else self.steps,
            unknown=NOT_OF_CLASSES,
            guarantee=None if chooses else whole_guarantee(budget),
        )

    def _plan_of_design(
        self,
        known: Beforehand,
        given: Inputs,
        X_query: TableLike | None,
        *,
        groups: Iterable[Hashable] | None,
    ) -> ReleasePlan:
        """Return the plan of a table that is held, from the questions that `fit` will ask."""
        prior, likelihood = self._label_prior(given.X, inducing=known.how.inducing)
        forecast = self._forecaster(
            given.X,
            prior=prior,
            likelihood=likelihood,
            query=self._query(given.X, X_query, None),
            groups=checked_groups(given.of_rows(groups), rows=len(given.X)),
        )
        noise = self._noise(lambda law: forecast(law).error)
        found = forecast(noise)
        refuse_nothing(found.release.measurements[0].strategy)
        return replace(
            known.plan_of(
                found.questions,
                declared=", ".join(map(str, self._classification().ordered.labels)),
                epsilon=self.epsilon,
                delta=self.delta,
                noise=noise,
                stages=1,
                unknown=NOT_OF_CLASSES,
                guarantee=whole_guarantee(Budget(self.epsilon, self.delta, noise=noise)),
            ),
            questions=found.questions,
            file_bytes=found.file_bytes,
        )


class DPGPClassifier(
    ClassScoreMixin,
    ClassPlanMixin,
    DesignMixin,
    ReleaseMixin[Guarantee],
    ClassifierMixin,
    BaseEstimator,
):
    r"""Gaussian-process classification that protects each label.

    `fit` asks the private labels once, by linear questions under (ε, δ)-differential privacy of one
    row's label, and keeps the noisy answers only; the link, all iterations and all learning come
    after the noise, and `predict` is free, anywhere, for ever. Inputs, the set of classes and
    hyperparameters are public and must not be chosen by looking at y.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, optional
        Covariance of the latent function, with the hyperparameters to use. If not given: a linear
        part and a Matérn 3/2 part of sds 1.5, scaled to the inputs (`default_latent_kernel`).
    classes : list of labels
        Every possible class: public, and never inferred from y. With two, the latent function
        is high where the second is probable. They are sorted, unless they come as
        `cloakgp.privacy.questions.classes.Classes`, which keep their order.
    epsilon, delta : float
        The budget of one `fit`. δ may be 0: noise is Laplace noise then.
    noise : {"auto", "gaussian", "laplace"}
        The noise on answers; "auto" is Laplace noise where δ is 0, else the better by forecast
        (of tables that are read in passes Gaussian). "newton" knows Gaussian noise alone.
    criterion : {"bayes", "trace", "logdet", "newton"}
        The aim of the questions: the least posterior variance at the query points under
        the linear prior over labels nearest to the declared one; the least mean squared noise, or
        the least volume of noise, on the linear part of one Newton step at the query points; or
        the papers' iteration, which puts noise on every Newton step at all N training points.
    link : {"probit", "logit"}, optional
        From the latent function to the probability of a class. If not given: the probit, and for
        "newton", which knows no other, the logit.
    class_rates : array-like of shape (C,), optional
        Public prior probabilities of the classes, in their order, on average over rows. They are
        kept whatever kernel is learned, of more than two up to a hundredth. If not given: all
        alike, and learned with the hyperparameters.
    inducing : int or array-like of shape (M, D), optional
        Sparse model with this number of inducing inputs, placed by k-means on X, each
        column in units of its spread, or with these.
    approximation : {"fitc", "dtc", "sor"}
        Of the sparse model.
    learn : {"map", "average"} or None
        Fit the kernel's free hyperparameters, and the classes' rates unless given, to the published
        answers, at no cost in privacy. With "map", declared values stay unless the answers make
        others more probable by a nat. "newton" learns nothing.
    stages : "auto", None, or sequence of (share, None)
        How the budget is spread over several measurements of the same labels, each designed from
        the answers before it; criterion "bayes", rows that are held. "auto" and None: one
        stage, since there is nothing to clip (`docs/adaptive.md`).
    step_criterion : {"logdet", "trace"}, optional
        Of the noise on the Newton steps of "newton"; the papers' is "logdet".
    steps : int, optional
        The number of Newton steps of "newton"; they share the budget. One by default.
    gap : float
        Certified relative gap at which the design stops.
    memory : float, optional
        Memory limit of a fit in gigabytes; by default half of the free memory. Where an exact
        process would take more, one with 200 inducing inputs is fitted, and a `SparseModelWarning`
        says so before the first question.
    schema : Schema, optional
        Kinds of the columns of a table (`cloakgp.columns`); inferred where it holds more than
        numbers, or has gaps.
    random_state : int
        Of k-means on public inputs. Has nothing to do with privacy noise.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**; it says so for ever. For
        experiments only.

    Attributes
    ----------
    release_ : Release
        The public result: save it, combine it, predict from it. With inducing inputs and more
        than 5,000 rows, it is of the second kind, whose size does not depend on the number of rows.
    guarantee_ : Guarantee
        The guarantee of the release.
    classes_ : array of shape (C,)
        The declared classes: the order of the columns of `predict_proba`.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.
    schema_ : Schema
        If X was encoded.

    Notes
    -----
    Mechanism: `cloakgp.privacy.ask`. Neighbours, sensitivity, theorem and
    argument are stated there. With more than two classes one person's change of label moves two of
    C indicators by one each, and that is the sensitivity used; each class has a latent function of
    its own, for "this class or another".

    `score` compares predictions with labels that you pass to it, without noise: its result is
    private if they are.

    Examples
    --------
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> y = np.sin(X).ravel() > 0
    >>> model = DPGPClassifier(classes=[False, True], epsilon=1.0, delta=1e-4).fit(X, y)
    >>> model.predict_proba([[2.0], [5.0]]).shape
    (2, 2)
    """

    release_: Release
    _task = Classification

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        classes: object,
        epsilon: float,
        delta: float = FitRequest.delta,
        noise: NoiseChoice = FitRequest.noise,
        criterion: str = FitRequest.criterion,
        link: LinkName | None = None,
        class_rates: ArrayLike | None = None,
        inducing: int | ArrayLike | None = None,
        approximation: Approximation = FitRequest.approximation,
        learn: Learn | None = FitRequest.learn,
        stages: Stages = Classification.stages,
        step_criterion: CriterionName | None = None,
        steps: int | None = None,
        gap: float = FitRequest.gap,
        memory: float | None = None,
        schema: Schema | None = None,
        random_state: int = FitRequest.random_state,
        insecure_seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.criterion = criterion
        self.link = link
        self.class_rates = class_rates
        self.inducing = inducing
        self.approximation = approximation
        self.learn = learn
        self.stages = stages
        self.step_criterion = step_criterion
        self.steps = steps
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
    ) -> DPGPClassifier:
        """Spend the budget once: ask the labels, keep the noisy answers.

        Every call spends (ε, δ) anew about the same people; combine releases to add it up.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Public inputs.
        y : array-like of shape (N,)
            Private labels, each one of the declared classes.
        X_query : array-like or table of shape (P, D), optional
            Points of the wanted predictions. By default the rows of X, or 500 k-means centres of
            them. Predictions are possible anywhere all the same. Columns of a table are found by
            name, where X has names.
        query_weight : array-like of shape (P,), optional
            Positive importance of each of them, for criteria "bayes" and "trace".
        groups : iterable of N texts or whole numbers, optional
            Public: the person of each row, if people have several. All rows of one person are then
            protected together. Not for criterion "newton".
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
            For invalid arguments; no message quotes a label of y.
        """
        check_surroundings(self)
        given = self._read(X)
        self._check_private(X, y, groups)
        inputs, y, groups = given.X, given.of_rows(y), given.of_rows(groups)
        units = checked_groups(groups, rows=len(inputs))
        # Persons who have one row each are persons, too.
        owners = None if groups is None else range(len(inputs)) if units is None else units.tolist()
        if units is not None and self._criterion().iterates:
            raise ValueError(f"groups are for other criteria than {self.criterion!r}")
        self._request().validate()
        task = self._classification()
        classes, rates = task.ordered, task.ordered_rates
        plan = self.plan_fit(inputs.shape, queries=count_queries(X_query))
        plan.announce()
        if plan.by_passes:
            many = ArrayRows(
                inputs,
                y,
                input_names=self._names(),
                output_name=column_name(y),
                groups=owners,
            )
            many.schema = given.schema
            return self.fit_rows(many, X_query, query_weight, progress=progress, on_step=on_step)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=len(inputs),
            rates=() if rates is None else rates.tolist(),
        )
        on_step("choosing the prior")
        prior, likelihood = self._label_prior(inputs, inducing=plan.inducing)
        self.classes_ = classes.as_array()
        on_step("choosing the query points")
        query = self._query(inputs, X_query, query_weight)
        if self._criterion().iterates:
            released = release_iteration(
                inputs,
                y,
                prior=prior,
                likelihood=likelihood,
                classes=classes,
                epsilon=self.epsilon,
                delta=self.delta,
                steps=1 if self.steps is None else self.steps,
                step_criterion="logdet" if self.step_criterion is None else self.step_criterion,
                gap=self.gap,
                input_names=self._names(),
                output_name=column_name(y),
                progress=progress,
                on_step=on_step,
                insecure_seed=self.insecure_seed,
            )
            return self._keep(released)
        forecast = self._forecaster(
            inputs, prior=prior, likelihood=likelihood, query=query, groups=units
        )
        noise = self._noise(lambda law: forecast(law).error)
        table = HeldTable.of(
            inputs,
            groups=owners,
            input_names=self._names(),
            output_name=column_name(y),
        )
        model = Model(prior=prior, question=classes, likelihood=likelihood)
        return self._fit_table(
            table, y, lambda _: model, query=query, noise=noise, progress=progress, on_step=on_step
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
    ) -> DPGPClassifier:
        """Spend the budget once on a table in chunks: files, arrays or a cluster, of any length.

        The table is read a few times, chunk by chunk; its labels once. The size of `release_` does
        not depend on the number of rows then, and it holds none of them.

        Parameters
        ----------
        rows : ArrayRows, FileRows or DaskRows
            From `cloakgp.data`. Every row is protected on its own, unless they were given
            ``groups``: then all rows of one group are protected together.
        X_query, query_weight
            As for `fit`.
        progress, on_step
            As for `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For invalid arguments; no message quotes a label.

        Examples
        --------
        >>> from cloakgp.data import ArrayRows
        >>> X = np.linspace(0, 10, 300)[:, None]
        >>> model = DPGPClassifier(classes=[False, True], epsilon=1.0, delta=1e-5, inducing=10)
        >>> model.fit_rows(ArrayRows(X, X[:, 0] > 5)).release_.n_rows
        300
        """
        self._request().validate()
        task = self._classification()
        classes, rates = task.ordered, task.ordered_rates
        self._look_at(rows)
        balls = criterion_named(self.criterion, use="many rows").balls_of_rules
        table = replace(LabelTable.of(rows), criterion=self.criterion)
        self._check_several(table.rows)
        warn_of_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            rows=table.rows,
            rates=() if rates is None else rates.tolist(),
        )
        on_step("choosing the prior")
        summary = table.summary
        prior, likelihood = choose_label_prior(
            # The sample lacks the ends of inputs; these alone say little of a variance that varies.
            np.vstack([summary.ranges, summary.sample]),
            classes=classes,
            kernel=self.kernel,
            link_name=task.link_name(self._criterion()),
            class_rates=rates,
            inducing=inducing_inputs(
                summary, self._inducing_of(rows), random_state=self.random_state
            ),
            approximation=self.approximation,
            blocks=self._blocks(),
        )
        on_step("choosing the query points")
        query = self._query_for(rows, X_query, query_weight)
        points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
        self.classes_ = classes.as_array()
        model = Model(prior=prior, question=classes, likelihood=likelihood)
        noise = choose_noise(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            expected_error=lambda law: (
                table.forecast(
                    model,
                    Budget(self.epsilon, self.delta, noise=law, added=table.added_noise),
                    points,
                ).error
            ),
            balls=balls,
        )
        return self._fit_table(
            table,
            table.passes,
            lambda _: model,
            query=points,
            noise=noise,
            progress=progress,
            on_step=on_step,
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class, at no further cost in privacy, shape (P,)."""
        best = np.nan_to_num(self.predict_proba(X)).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def predict_proba(self, X: ArrayLike, *, privacy_noise: bool = True) -> Array:
        """Return the probability of every class, shape (P, C), in the order of ``classes_``.

        Averaged over the latent function and the privacy noise; see `Release.predict_proba`.

        Parameters
        ----------
        X : array-like of shape (P, D)
        privacy_noise : bool
            False leaves out what the privacy noise makes unknown, as the papers do.
        """
        points = self._points(X)
        return self.release_.predict_proba(points, privacy_noise=privacy_noise)

    def predict_latent(self, X: ArrayLike) -> LatentPrediction:
        """Return mean and sd of the latent functions, and the part of it due to privacy noise.

        Parameters
        ----------
        X : array-like of shape (P, D)
        """
        points = self._points(X)
        return self.release_.predict_latent(points)

    def _query(
        self, inputs: Array, X_query: TableLike | None, query_weight: ArrayLike | None
    ) -> Query:
        if X_query is not None and self._criterion().iterates:
            raise ValueError(
                f"criterion={self.criterion!r} asks at the training points: X_query is for the "
                "others"
            )
        return super()._query(inputs, X_query, query_weight)
