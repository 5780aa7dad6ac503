"""Private grid search: `DPGridSearchCV`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cloakgp.criteria import criterion_named
from cloakgp.estimators.base import check_inputs_of, feature_names, read_inputs, tag_noisy
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.estimators.sample_weight import without_sample_weight
from cloakgp.estimators.sent import SentMixin, charged_as_sent
from cloakgp.estimators.surroundings import check_surroundings
from cloakgp.fitting.bands import ONE_STAGE, Step, stages_for
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_label_prior, choose_prior
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.planning import check_exact, resolves_inducing
from cloakgp.fitting.refusals import refuse
from cloakgp.fitting.strategies import MANY_ROWS, Budget, Query
from cloakgp.fitting.table import (
    DesignSettings,
    Model,
    NothingToAskError,
    after_a_draw,
    few_of,
)
from cloakgp.fitting.worst_schedule import worst_of_schedule
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.checks import already_warned, warn_of_parameters
from cloakgp.privacy.composition import MixedGuarantee, compose_with_selection
from cloakgp.privacy.cross_validation import check_folds
from cloakgp.privacy.noise_choice import check_noise
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.selection import Loss, SelectionMechanism, select
from cloakgp.privacy.spending import hold, one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.privacy.transforms import transform_outputs
from cloakgp.release import Choice, Release
from cloakgp.release.hyperparameters.gradients import check_gradient
from cloakgp.utils.arrays import Array
from cloakgp.utils.memory import GIGABYTE, memory_budget

Grid = Mapping[str, Iterable[Any]]

# Parameters of the prior, which is what candidates differ in. Budget, bounds and seeds are not a
# matter of choice.
SELECTABLE = ("kernel", "inducing", "approximation")
OF_NUMBERS, OF_CLASSES = ("noise_variance", "mean"), ("link", "class_rates")
# Labels are compared as ±1.
SIGNS = (-1.0, 1.0)
NUMBERS_ALONE = "candidates are compared on numbers as they are: encode the table first"


def _is_of_classes(search: DPGridSearchCV) -> bool:
    return isinstance(search.estimator, DPGPClassifier)


class DPGridSearchCV(MetaEstimatorMixin, SentMixin):
    r"""Choose hyperparameters from a grid privately, then release with them.

    `fit` reads the private outputs twice: once to choose, at ``selection_epsilon``, and once to
    release, at the estimator's own (ε, δ). `guarantee_` is what both cost together.

    Parameters
    ----------
    estimator : DPGPRegressor or DPGPClassifier
        With the budget of the release.
    param_grid : mapping of str to iterable, or list of such
        As in scikit-learn's grid search. May set kernel, ``kernel__...``, inducing and
        approximation; of numbers noise_variance and mean, of classes link and class_rates. The grid
        is public: do not choose it by looking at y.
    selection_epsilon : float
        The budget of the choice, on top of the estimator's.
    cv : int
        Number of folds. Rows are dealt to them in a fixed random order.
    mechanism : {"permute-and-flip", "exponential"}
        Permute-and-flip errs a little less for the same ``selection_epsilon``; the exponential
        mechanism composes better with the release.
    loss : {"absolute", "squared"}
        What makes a candidate good: a small sum of absolute errors, or of squared ones. The first
        tells candidates apart at a smaller ε; see `cloakgp.privacy.selection.select`.
    gap : float
        Certified relative gap at which the designs stop whose errors are compared.
    n_jobs : int, optional
        How many folds of candidates are designed at a time: one if not given, unless
        ``joblib.parallel_config`` says otherwise, and -1 for as many as there are processors.
        Neither the choice nor its guarantee depends on it.

    Attributes
    ----------
    best_index_ : int
        Of the chosen parameters in ``sklearn.model_selection.ParameterGrid(param_grid)``.
    best_params_ : dict
    best_estimator_ : DPGPRegressor or DPGPClassifier
        Fitted with them.
    release_ : Release
        The public result.
    guarantee_ : MixedGuarantee
        Of choice and release together. It is the same whatever was chosen.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X had column names.

    Notes
    -----
    Mechanism, neighbours, sensitivity, theorem and argument of the choice stand in
    `cloakgp.privacy.selection`, of the composition in `cloakgp.privacy.composition`. The errors
    compared are those of held-out predictions by the posterior mean, noise of the release included,
    with the hyperparameters as the grid declares them; what the estimator may ``learn`` from its
    answers comes after. Of classes, errors are those of the linear predictions of labels from
    which questions are designed (`cloakgp.models.likelihoods`), with +1 for a class and −1 for the
    others.

    Workers are sent the candidates' priors, rows of X, the sd of the release's noise and settings;
    never y, nor anything made of it. They send back the public map from outputs to held-out errors,
    and the calling process applies it. Any backend of joblib serves, a cluster's too: X, which is
    public, goes there.

    There is no ``cv_results_``, no ``best_score_`` and no ``scorer_``: the errors of the candidates
    are exact functions of the private outputs. They are forgotten as soon as the choice is made;
    publishing even one of them would be outside the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> y = 100 + 20 * np.sin(X).ravel()
    >>> search = DPGridSearchCV(
    ...     DPGPRegressor(bounds=(70, 130), epsilon=1.0, delta=1e-4),
    ...     {"noise_variance": [10.0, 100.0]}, selection_epsilon=0.5)
    >>> print(search.fit(X, y).guarantee_)
    (1.458, 0.0001)-differential privacy (release (1, 0.0001), permute-and-flip 0.5)
    >>> search.predict([[2.0], [5.0]]).shape
    (2,)
    """

    def __init__(
        self,
        estimator: DPGPRegressor | DPGPClassifier,
        param_grid: Grid | list[Grid],
        *,
        selection_epsilon: float,
        cv: int = 5,
        mechanism: SelectionMechanism = "permute-and-flip",
        loss: Loss = "absolute",
        gap: float = 1e-2,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.selection_epsilon = selection_epsilon
        self.cv = cv
        self.mechanism = mechanism
        self.loss = loss
        self.gap = gap
        self.n_jobs = n_jobs

    @forget_on_failure
    @charged_as_sent
    @one_charge
    @without_sample_weight
    def fit(self, X: ArrayLike, y: ArrayLike) -> DPGridSearchCV:
        """Choose, then release: spends ``selection_epsilon`` and the estimator's budget, each once.

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
        TypeError
            If another kind of estimator is to be chosen for.
        ValueError
            For invalid arguments; no message quotes an output.
        """
        check_surroundings(self)
        budget = self.estimator
        _check_kind(budget)
        if budget.schema is not None:
            raise ValueError(NUMBERS_ALONE)
        inputs = check_inputs_of(self, X, y)
        # Whoever is chosen reads the table anew, and encodes what scikit-learn takes for numbers,
        # such as dates.
        if not np.array_equal(read_inputs(BaseEstimator(), X, schema=None).X, inputs):
            raise ValueError(NUMBERS_ALONE)
        check_folds(self.cv, rows=len(inputs), name="cv")
        if budget.noise == "laplace":
            raise ValueError(
                "a private choice is composed with releases of Gaussian noise: leave noise='auto', "
                "with a delta above 0"
            )
        check_noise(budget.noise, epsilon=budget.epsilon, delta=budget.delta)
        labelled = isinstance(budget, DPGPClassifier)
        grid = list(ParameterGrid(self.param_grid))
        if not grid:
            raise ValueError("param_grid holds no candidate: give at least one")
        _check_names(grid, SELECTABLE + (OF_CLASSES if labelled else OF_NUMBERS))
        if any(
            name.startswith("kernel__") and params.get("kernel", budget.kernel) is None
            for params in grid
            for name in params
        ):
            raise ValueError(
                "param_grid sets parameters of a kernel, kernel__..., and there is none: give the "
                "estimator a kernel, or the grid whole kernels"
            )
        # Each candidate might choose another noise by forecast; the total is stated for all.
        alike = clone(budget).set_params(noise="gaussian")
        candidates = [clone(alike).set_params(**clone(params, safe=False)) for params in grid]
        if any(resolves_inducing(candidate.inducing) for candidate in candidates):
            raise ValueError(
                "candidates are compared in one stage, in which nothing is learned: give a number "
                "of inducing inputs in place of 'auto'"
            )
        if len(inputs) > MANY_ROWS and any(
            candidate.inducing is not None for candidate in candidates
        ):
            raise ValueError(
                "candidates are compared at held-out rows, in matrices of rows by rows: with "
                f"inducing inputs, more than {MANY_ROWS:,} rows are too many. Choose on some of "
                "the rows, or leave it to learn='map'"
            )
        if isinstance(budget, DPGPRegressor) and budget._regression().of_counts:
            refuse("counts in candidates")
        by = criterion_named(budget.criterion, use="held-out rows")
        if labelled and by.raw:
            raise ValueError(
                f"candidates for classes cannot be compared with criterion={by.name!r}, whose raw "
                "predictions are no labels: leave criterion out"
            )
        # Whatever the chosen one would refuse is refused before the choice is paid for.
        for candidate in candidates:
            candidate._request().validate()
        names = feature_names(self)
        task = (
            _label_task(budget, candidates, inputs, names=names)
            if isinstance(budget, DPGPClassifier)
            else _number_task(budget, candidates, inputs, names=names)
        )
        for candidate in candidates:
            if candidate.learn is not None and candidate.kernel is not None:
                check_gradient(candidate.kernel, inputs)
        allowed = memory_budget(budget.memory) / GIGABYTE
        if any(candidate.inducing is None for candidate in candidates):
            check_exact(
                len(inputs),
                queries=min(len(inputs), LARGEST_DEFAULT_QUERY),
                memory=allowed,
                at_a_time=min(effective_n_jobs(self.n_jobs), len(candidates) * self.cv),
            )
        _check_asking(grid, task, inputs, budget=Budget(budget.epsilon, budget.delta))
        worst = _worst_of(candidates, rows=len(inputs), channels=task.channels)
        total = compose_with_selection(worst, self.selection_epsilon, mechanism=self.mechanism)
        warn_of_parameters(
            epsilon=total.epsilon,
            delta=total.delta,
            rows=len(inputs),
            bounds=task.declared,
        )
        hold((self.selection_epsilon, 0.0), (budget.epsilon, budget.delta))
        chosen = select(
            task.priors,
            inputs,
            y
            if task.transform is None
            else transform_outputs(y, transform=task.transform, rows=len(inputs)),
            bounds=task.bounds,
            classes=task.classes,
            means=task.means,
            epsilon=self.selection_epsilon,
            folds=self.cv,
            release_epsilon=budget.epsilon,
            release_delta=budget.delta,
            mechanism=self.mechanism,
            loss=self.loss,
            criterion=by.name,
            gap=self.gap,
            n_jobs=self.n_jobs,
            insecure_seed=budget.insecure_seed,
        )
        with already_warned(), after_a_draw():
            # There was room for it: no other model may take its place now.
            best = candidates[chosen.index].set_params(memory=allowed).fit(X, y)
            # What is free at the moment is no part of the result.
            best.set_params(memory=budget.memory)
        spent = best.guarantee_
        if (
            spent.epsilon_of_parts > 0
            or spent.mu > worst.mu
            or spent.answers > worst.answers
            or spent.coarseness > worst.coarseness
        ):
            raise RuntimeError("the release exceeds what every candidate may spend; not published")
        # The chosen prior is in the release, so what choosing cost must be in it too.
        best.release_ = replace(
            best.release_,
            choice=Choice(
                epsilon=float(self.selection_epsilon),
                mechanism=self.mechanism,
                worst=worst,
                covers=len(best.release_.measurements),
            ),
        )
        self.best_index_ = chosen.index
        self.best_params_ = grid[chosen.index]
        self.best_estimator_ = best
        return self

    def predict(self, X: ArrayLike, **settings: Any) -> Any:
        """Predict with the release, at no further cost, as the estimator does.

        Parameters
        ----------
        X : array-like of shape (P, D)
        **settings
            Of numbers, ``return_std`` or ``return_cov``.

        Returns
        -------
        array of shape (P,), or a pair with sd or covariance
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, **settings)

    @available_if(_is_of_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, **settings: Any) -> Any:
        """Return the probabilities of classes, shape (P, C): `DPGPClassifier.predict_proba`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, **settings)

    @property
    def classes_(self) -> Any:
        """The declared classes, in the order of the columns of `predict_proba`."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    @forget_on_failure
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return R², or the share of right classes, on outputs that are given: private as these.

        Parameters
        ----------
        X : array-like of shape (P, D)
        y : array-like of shape (P,)
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    @property
    def guarantee_(self) -> MixedGuarantee:
        """The joint guarantee of the choice and the release, for any choice."""
        total = self.release_.guarantee
        assert isinstance(total, MixedGuarantee)
        return total

    @property
    def release_(self) -> Release:
        """The release of the chosen candidate."""
        check_is_fitted(self)
        release: Release = self.best_estimator_.release_
        return release

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), self.estimator.__sklearn_tags__()
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.target_tags = own.target_tags
        return tag_noisy(tags, seeded=getattr(self.estimator, "insecure_seed", None) is not None)


@dataclass(frozen=True, eq=False)
class _Task:
    """The comparison of candidates, for numbers or for classes.

    Attributes
    ----------
    priors : tuple of ExactPrior or SparsePrior
        Of candidates, over what is compared.
    declared : tuple of (float, float)
        Bounds, for warnings.
    bounds, transform
        Of numbers.
    classes, means
        Of classes; the means of labels ±1, of each candidate.
    """

    priors: tuple[ExactPrior | SparsePrior, ...]
    declared: tuple[tuple[float, float], ...] = ()
    bounds: tuple[float, float] | None = None
    transform: OutputTransform | None = None
    classes: Classes | None = None
    means: tuple[tuple[float, ...], ...] = ()

    @property
    def channels(self) -> int:
        """The number of answers of a question."""
        return 1 if self.classes is None else self.classes.channels


def _check_asking(
    grid: Sequence[dict[str, Any]], task: _Task, inputs: Array, *, budget: Budget
) -> None:
    """Refuse candidates by which no question would tell anything: the choice is paid for."""
    table = HeldTable(X=inputs)
    settings = DesignSettings(query=Query(few_of(inputs)))
    question = OutputBounds(*(SIGNS if task.bounds is None else task.bounds))
    for params, prior in zip(grid, task.priors, strict=True):
        model = Model(prior=prior, question=question)
        try:
            table.check_first(Step(stage=ONE_STAGE[0], budget=budget), model, settings)
        except NothingToAskError as error:
            raise NothingToAskError(f"candidate {params}: {error}") from None


def _worst_of(
    candidates: Sequence[DPGPRegressor | DPGPClassifier], *, rows: int, channels: int
) -> Guarantee:
    """Return a guarantee that the release of every candidate keeps; refuse what none could keep."""
    first = candidates[0]
    budget = Budget(float(first.epsilon), float(first.delta))
    if not isinstance(first, DPGPRegressor):
        # Of several classes every question has an answer for each.
        return worst_of_schedule(ONE_STAGE, budget=budget, rows=rows, channels=channels)
    schedule = stages_for(first.stages, criterion=first._criterion())
    if any(each._regression().kept for each in candidates if isinstance(each, DPGPRegressor)):
        refuse("margins in candidates")
    if any(getattr(each, "public_prediction", None) is not None for each in candidates):
        refuse("public predictions in candidates")
    # Candidates may differ in whether an interval is looked for, in what they learn and count.
    kinds = {
        (
            bool(each._regression().bounds_to_search(each._criterion())),
            each.learn is not None and each.noise_variance is None,
            each._regression().asks_calibration(each._criterion()),
        )
        for each in candidates
        if isinstance(each, DPGPRegressor)
    }
    every = [
        worst_of_schedule(
            schedule,
            budget=budget,
            rows=rows,
            search_within=first._regression().limits if searches else None,
            ask_spread=learns_noise,
            calibrated=calibrated,
        )
        for searches, learns_noise, calibrated in kinds
    ]
    return max(every, key=lambda worst: worst.answers)


def _number_task(
    first: DPGPRegressor,
    candidates: Sequence[DPGPRegressor],
    inputs: Array,
    *,
    names: tuple[str, ...],
) -> _Task:
    task = first._regression()
    declared, limits = task.declared, task.limits
    priors = tuple(
        choose_prior(
            inputs,
            bounds=limits,
            kernel=candidate.kernel,
            noise_variance=candidate.noise_variance,
            mean=candidate._regression().prior_mean,
            inducing=candidate.inducing,
            approximation=candidate.approximation,
            input_names=names,
            random_state=candidate.random_state,
        )
        for candidate in candidates
    )
    return _Task(
        priors=priors,
        declared=((declared.lo, declared.hi),),
        bounds=(limits.lo, limits.hi),
        transform=task.transform,
    )


def _label_task(
    first: DPGPClassifier,
    candidates: Sequence[DPGPClassifier],
    inputs: Array,
    *,
    names: tuple[str, ...],
) -> _Task:
    classes = first._classification().ordered
    priors, means = [], []
    for candidate in candidates:
        latent, likelihood = choose_label_prior(
            inputs,
            classes=classes,
            kernel=candidate.kernel,
            link_name=candidate._classification().link_name(candidate._criterion()),
            class_rates=candidate._classification().ordered_rates,
            inducing=candidate.inducing,
            approximation=candidate.approximation,
            input_names=names,
            random_state=candidate.random_state,
        )
        priors.append(likelihood.linear_prior(latent, inputs))
        means.append(likelihood.label_means(latent, inputs))
    return _Task(priors=tuple(priors), classes=classes, means=tuple(means))


def _check_kind(estimator: object) -> None:
    """Refuse to choose for estimators whose candidates cannot be compared."""
    if isinstance(estimator, DPGPRegressor | DPGPClassifier):
        return
    if isinstance(estimator, type):
        given = f"the class {estimator.__name__}"
    else:
        given = type(estimator).__name__
    raise TypeError(
        "DPGridSearchCV chooses for a DPGPRegressor or a DPGPClassifier, not for "
        f"{given}: at the end of a pipeline put it around the last step alone, and leave others to "
        "learn='map', where they have it"
    )


def _check_names(grid: list[dict[str, Any]], selectable: tuple[str, ...]) -> None:
    named = {name for params in grid for name in params}
    refused = sorted(
        name for name in named if name not in selectable and not name.startswith("kernel__")
    )
    if refused:
        raise ValueError(
            f"param_grid may set {', '.join(selectable)} and kernel__..., not "
            f"{', '.join(refused)}: budget, bounds and criterion are the same for every candidate"
        )
