"""Fit request: every public choice of one private fit, typed, with defaults and checks.

Estimators, the command line and the service each have a parser into it. Mistakes that need no
numbers import nothing that takes long: what does is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf, log
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cloakgp.criteria import Criterion, Use, criterion_named
from cloakgp.criteria.newton import NEWTON
from cloakgp.utils.names import (
    AUTO,
    CRITERIA,
    DEFAULT_GAP,
    HALF_COUNT,
    LINKS,
    OUTPUT_LIKELIHOODS,
    CriterionName,
    LinkName,
    NoiseChoice,
    OutputLikelihood,
    TransformName,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.fitting.bands import Stages
    from cloakgp.models import Approximation
    from cloakgp.models.likelihoods import CountLikelihood
    from cloakgp.models.transforms import OutputTransform
    from cloakgp.privacy import OutputBounds
    from cloakgp.privacy.questions.classes import Classes
    from cloakgp.release import Hyperprior
    from cloakgp.utils.arrays import Array

Learn = Literal["map", "average"]
LEARNING: tuple[Learn | None, ...] = ("map", "average", None)

# Of roots of counts: within bounds that are no wider (0 to 400, say) an interval that holds most of
# them is not looked for. It would cost more than it saves, and lose places where counts are high.
NARROW_ROOTS = 20.0

# Of what numpy's older generators, by which scikit-learn draws, are begun with.
RANDOM_STATES = 2**32

# In widths of the bounds: a curve with a smaller sd is flat. Of log rates and classes, whose widths
# are of the order of 1, in their own units.
FLAT = 1e-6

# Of bounds: where the upper is as many times the lower, or more, quantiles are of logarithms.
LEAST_RATIO = 10.0

Spelling = Callable[..., str]
"""How messages name a parameter, and a value that it has, if one is passed."""


def as_parameter(name: str, value: object = None) -> str:
    """Name a parameter as Python spells it.

    Examples
    --------
    >>> as_parameter("link"), as_parameter("link", "logit")
    ('link', "link='logit'")
    """
    return name if value is None else f"{name}={value!r}"


def as_option(name: str, value: object = None) -> str:
    """Name a parameter as the command line spells it.

    Examples
    --------
    >>> as_option("class_rates"), as_option("link", "logit")
    ('--class-rates', '--link logit')
    """
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def check_learning(learn: object) -> None:
    """Refuse invalid values of `learn`.

    Raises
    ------
    ValueError
        Unless it is "map", "average" or None.

    Examples
    --------
    >>> check_learning("map")
    """
    if learn not in LEARNING:
        raise ValueError(f"learn must be 'map', 'average' or None, got {learn!r}")


def check_calibration(calibrate: object) -> None:
    """Refuse invalid values of `calibrate` where no rows can be kept out.

    Raises
    ------
    ValueError
        Unless it is "auto" or False.

    Examples
    --------
    >>> check_calibration("auto")
    """
    if calibrate is not False and calibrate != "auto":
        raise ValueError(f"calibrate must be 'auto' or False, got {calibrate!r}")


def check_public_prediction(given: object, *, spelled: Spelling = as_parameter) -> None:
    """Refuse what predicts nothing.

    Raises
    ------
    ValueError
        Unless it is a name, a place, something with a method predict, public rows, or None.

    Examples
    --------
    >>> check_public_prediction("census")
    """
    column = isinstance(given, str | int) and not isinstance(given, bool) and given != ""
    rows = isinstance(given, tuple) and len(given) == 2
    predicts = callable(getattr(given, "predict", None))
    if not (given is None or column or rows or predicts):
        raise ValueError(
            f"{spelled('public_prediction')} must be a public column, by its name or place, a "
            f"fitted model with a method predict, or public rows (X, y), got {given!r}"
        )


def check_prior_mean(mean: float | None, bounds: OutputBounds) -> None:
    """Refuse a declared prior mean, as bounds are transformed, that is far beyond these.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from cloakgp.privacy import OutputBounds
    >>> check_prior_mean(None, OutputBounds(0.0, 10.0))
    """
    if mean is not None:
        from cloakgp.fitting.defaults import check_mean

        check_mean(float(mean), bounds=bounds)


def _check_rate(mean: float, largest: float, spelled: Spelling) -> None:
    """Refuse a declared rate of counts, all or none of which would then be the largest."""
    from cloakgp.fitting.defaults import FARTHEST_MEAN

    if not largest / FARTHEST_MEAN**2 <= mean <= largest * FARTHEST_MEAN:
        raise ValueError(
            f"{spelled('mean')} = {mean:g} is no rate of counts up to {largest:g}, which would all "
            "be one and the same"
        )


def choose_hyperprior(
    learn: object, *, noise_variance: float | None, mean: float | None
) -> Hyperprior | None:
    """Return the hyperprior of the parameters that a regression leaves open.

    Raises
    ------
    ValueError
        Unless learn is "map", "average" or None.

    Examples
    --------
    >>> choose_hyperprior("map", noise_variance=1.0, mean=None)
    Hyperprior(noise_variance=False, mean=True, scale=False)
    """
    from cloakgp.release import Hyperprior

    check_learning(learn)
    if learn is None:
        return None
    return Hyperprior(noise_variance=noise_variance is None, mean=mean is None)


class SameWords:
    """A task that takes the words of the command line, too: stages "one", for None."""

    stages: Stages

    def __post_init__(self) -> None:
        """Put the one for the other."""
        if isinstance(self.stages, str) and self.stages == "one":
            object.__setattr__(self, "stages", None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Regression(SameWords):
    """A fit of one number in every row.

    Attributes
    ----------
    bounds : (float, float)
    noise_variance, mean : float or None
    stages : "auto", "one" or None, or sequence of (share, width)
    interval : "auto", or "off" or False
    output_transform : {"log", "logit"} or None
    likelihood : {"normal", "counts"}
    overdispersion : float or None
    calibrate : "auto", False or float
    public_prediction : str, int, object with a method predict, (X, y), or None
        All as for `DPGPRegressor`.
    """

    use: ClassVar[Use] = "numbers"

    bounds: tuple[float, float]
    noise_variance: float | None = None
    mean: float | None = None
    stages: Stages = "auto"
    interval: Literal["auto", "off", False] = "auto"
    output_transform: TransformName | None = None
    likelihood: OutputLikelihood = "normal"
    overdispersion: float | None = None
    calibrate: Literal["auto", False] | float = "auto"
    public_prediction: object = None

    @property
    def of_counts(self) -> bool:
        """Whether outputs are counts, with a likelihood of their own."""
        return self.likelihood == "counts"

    @cached_property
    def declared(self) -> OutputBounds:
        """The bounds of an output."""
        from cloakgp.privacy import OutputBounds

        return OutputBounds.checked(self.bounds)

    @cached_property
    def transform(self) -> OutputTransform | None:
        """The transform of outputs, if there is one."""
        from cloakgp.models.transforms import OutputTransform

        within = self.declared.lo, self.declared.hi
        if self.of_counts:
            made = OutputTransform(name="root", bounds=within)
            made.validate()
            return made
        return OutputTransform.checked(self.output_transform, within)

    @property
    def remark(self) -> str:
        """A remark on the declared bounds, in a sentence; empty if there is none."""
        from cloakgp.columns.remarks import remark_on_bounds

        return "" if self.of_counts else remark_on_bounds(self.declared.lo, self.declared.hi)

    @cached_property
    def limits(self) -> OutputBounds:
        """The bounds of a transformed output."""
        from cloakgp.privacy.transforms import transformed_bounds

        return self.declared if self.transform is None else transformed_bounds(self.transform)

    @cached_property
    def prior_mean(self) -> float | None:
        """The declared prior mean, transformed."""
        if self.transform is None or self.mean is None or self.of_counts:
            return None if self.of_counts else self.mean
        return self.transform.forward_number(self.mean, name="mean")

    def bounds_to_search(self, criterion: Criterion) -> tuple[OutputBounds, ...]:
        """Return the bounds within which an interval is looked for, if the budget allows it."""
        from cloakgp.fitting.interval import searches_interval

        looked = searches_interval(
            self.interval, criterion=criterion, bounds=self.limits, mean=self.prior_mean
        )
        if self.of_counts and self.limits.width <= NARROW_ROOTS:
            looked = False
        return (self.limits,) if looked else ()

    def asks_calibration(self, criterion: Criterion) -> bool:
        """Return whether outputs are counted where they were predicted, if the budget allows it.

        Raw predictions are published with the whole budget, and one measurement was asked for where
        there are to be no stages; counts have no Gaussian distribution.
        """
        several = self.stages is not None and "stages" in criterion.uses
        return self.calibrate == "auto" and several and not self.of_counts

    @cached_property
    def kept(self) -> float:
        """The share of the rows that is kept out of the fit, for margins of intervals."""
        from cloakgp.fitting.margins import kept_share

        return kept_share(self.calibrate)

    def hyperprior(self, learn: Learn | None) -> Hyperprior | None:
        """Return the hyperparameters that are learned."""
        return choose_hyperprior(learn, noise_variance=self.scatter, mean=self.mean)

    @property
    def scatter(self) -> float | None:
        """The declared variance between people with the same inputs, if any."""
        return self.overdispersion if self.of_counts else self.noise_variance

    def validate(self, criterion: Criterion, *, spelled: Spelling) -> None:
        """Refuse settings that are contradictory for any table."""
        if not (self.mean is None or isinstance(self.mean, Real)):
            raise ValueError(f"{spelled('mean')} must be a number, got {self.mean!r}")
        if self.likelihood not in OUTPUT_LIKELIHOODS:
            raise ValueError(
                f"{spelled('likelihood')} must be one of {', '.join(OUTPUT_LIKELIHOODS)}, "
                f"got {self.likelihood!r}"
            )
        self._check_counts(criterion, spelled)
        self._check_prediction(spelled)
        check_prior_mean(self.prior_mean, self.limits)
        self.bounds_to_search(criterion)
        if self.kept and self.of_counts:
            from cloakgp.fitting.refusals import refuse

            refuse("margins of counts")

    def _check_prediction(self, spelled: Spelling) -> None:
        """Refuse what predicts nothing, and outputs on another scale than their prediction."""
        check_public_prediction(self.public_prediction, spelled=spelled)
        if self.public_prediction is None:
            return
        if self.of_counts or self.output_transform is not None:
            from cloakgp.fitting.refusals import refuse

            refuse("public predictions of transformed outputs")

    def _check_counts(self, criterion: Criterion, spelled: Spelling) -> None:
        """Refuse settings that contradict counts, or need them."""
        from cloakgp.fitting.refusals import refuse

        if not self.of_counts:
            if self.overdispersion is not None:
                raise ValueError(f"{spelled('overdispersion')} is of counts")
            return
        if self.output_transform is not None or self.noise_variance is not None:
            raise ValueError(
                f"counts scatter by their likelihood: leave out {spelled('output_transform')} and "
                f"{spelled('noise_variance')}, and declare {spelled('overdispersion')} if it is "
                "known"
            )
        if "stages" not in criterion.uses:
            refuse("raw predictions of counts")
        if not (self.declared.lo >= 0 and self.declared.hi >= 1):
            raise ValueError(f"{spelled('bounds')} of counts begin at 0 or above, and reach 1")
        if not all(float(end).is_integer() for end in (self.declared.lo, self.declared.hi)):
            raise ValueError(f"{spelled('bounds')} of counts are whole numbers")
        if not (self.mean is None or 0 < self.mean < inf):
            raise ValueError(f"{spelled('mean')} of counts is a rate: it must be positive")
        if self.mean is not None:
            _check_rate(float(self.mean), self.declared.hi, spelled)
        _ = self.count_likelihood

    @property
    def log_rates(self) -> float:
        """The width of the bounds of counts on the scale of logarithms."""
        return log((self.declared.hi + HALF_COUNT) / (self.declared.lo + HALF_COUNT))

    @cached_property
    def count_likelihood(self) -> CountLikelihood:
        """The likelihood of counts, as declared."""
        from cloakgp.models.likelihoods import CountLikelihood
        from cloakgp.release.hyperparameters.overdispersion import USUAL_OVERDISPERSION

        declared = self.overdispersion
        made = CountLikelihood(
            largest=int(self.declared.hi),
            overdispersion=USUAL_OVERDISPERSION if declared is None else float(declared),
        )
        made.validate()
        return made


class NothingKept(SameWords):
    """A task all of whose rows are asked alike."""

    kept: ClassVar[float] = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class QuantileRegression(NothingKept):
    """A fit of quantiles of one number, given the inputs of its row.

    Attributes
    ----------
    bounds : (float, float)
    quantiles : float or sequence of float
    mean : float or None
    stages : "auto", "one" or None, or sequence of (share, None)
    interval : "auto", or "off" or False
    output_transform : {"auto", "log", "logit"} or None
        All as for `DPGPQuantileRegressor`.
    """

    use: ClassVar[Use] = "numbers"

    bounds: tuple[float, float]
    quantiles: float | Sequence[float] = (0.1, 0.5, 0.9)
    mean: float | None = None
    stages: Stages = "auto"
    interval: Literal["auto", "off", False] = "auto"
    output_transform: TransformName | Literal["auto"] | None = "auto"

    @cached_property
    def declared(self) -> OutputBounds:
        """The bounds of an output."""
        from cloakgp.privacy import OutputBounds

        return OutputBounds.checked(self.bounds)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The quantiles, at least one."""
        import numpy as np

        try:
            levels = np.atleast_1d(np.asarray(self.quantiles, dtype=np.float64))
        except (TypeError, ValueError):
            raise ValueError(
                f"quantiles must be numbers between 0 and 1, got {self.quantiles!r}"
            ) from None
        # Written so that NaN fails.
        fit = levels.ndim == 1 and len(levels) and ((levels > 0) & (levels < 1)).all()
        if not (fit and (np.diff(levels) > 0).all()):
            raise ValueError("quantiles must lie between 0 and 1, in order, each once")
        return tuple(levels.tolist())

    @cached_property
    def transform(self) -> OutputTransform | None:
        """The transform of outputs, if there is one: by itself, of amounts, the logarithm."""
        from cloakgp.models.transforms import OutputTransform

        lo, hi = self.declared.lo, self.declared.hi
        chosen = self.output_transform
        if chosen == "auto":
            chosen = "log" if 0 < LEAST_RATIO * lo <= hi else None
        return OutputTransform.checked(chosen, (lo, hi))

    @cached_property
    def limits(self) -> OutputBounds:
        """The bounds of a transformed output."""
        from cloakgp.privacy.transforms import transformed_bounds

        return self.declared if self.transform is None else transformed_bounds(self.transform)

    @cached_property
    def prior_mean(self) -> float | None:
        """The declared prior mean of the median, transformed."""
        if self.transform is None or self.mean is None:
            return self.mean
        return self.transform.forward_number(self.mean, name="mean")

    def bounds_to_search(self, criterion: Criterion) -> tuple[OutputBounds, ...]:
        """Return the bounds within which an interval is looked for, if the budget allows it.

        Not in a transformed scale: thresholds find outputs there, at less cost.
        """
        from cloakgp.fitting.interval import searches_interval

        looked = searches_interval(
            self.interval, criterion=criterion, bounds=self.limits, mean=self.prior_mean
        )
        return (self.limits,) if looked and self.transform is None else ()

    def asks_calibration(self, criterion: Criterion) -> bool:
        """Return that outputs are not counted where they were predicted: quantiles say where."""
        del criterion
        return False

    def hyperprior(self, learn: Learn | None) -> Hyperprior | None:
        """Return the hyperparameters that are learned: how outputs scatter is of the likelihood."""
        return choose_hyperprior(learn, noise_variance=0.0, mean=self.mean)

    def validate(self, criterion: Criterion, *, spelled: Spelling) -> None:
        """Refuse what makes no sense, whatever the table."""
        from cloakgp.fitting.bands import checked_stages
        from cloakgp.fitting.refusals import refuse

        if not (self.mean is None or isinstance(self.mean, Real)):
            raise ValueError(f"{spelled('mean')} must be a number, got {self.mean!r}")
        _ = self.levels
        check_prior_mean(self.prior_mean, self.limits)
        if "stages" not in criterion.uses:
            raise ValueError(f"questions about quantiles are for {spelled('criterion', 'bayes')}")
        stages = checked_stages(self.stages)
        # Widths of the default schedule are those of numbers, and left out here.
        if not isinstance(self.stages, str) and any(one.width is not None for one in stages):
            refuse("bands of quantiles")
        self.bounds_to_search(criterion)


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiOutputRegression(NothingKept):
    """A fit of several numbers in every row, in widths of their bounds.

    Attributes
    ----------
    bounds : sequence of (float, float)
        Of each output.
    noise_variance, coregion, stages, interval, calibrate
        As for `DPGPMultiOutputRegressor`.
    """

    use: ClassVar[Use] = "numbers"
    # Outputs are transformed by their widths alone.
    transform: ClassVar[OutputTransform | None] = None

    bounds: Sequence[tuple[float, float]]
    noise_variance: float | None = None
    coregion: ArrayLike | None = None
    stages: Stages = "auto"
    interval: Literal["auto", "off", False] = "auto"
    calibrate: Literal["auto", False] = "auto"

    @cached_property
    def declared(self) -> tuple[OutputBounds, ...]:
        """The bounds of each output."""
        from cloakgp.privacy.several_outputs import OutputColumns

        return OutputColumns.checked(self.bounds).bounds

    def bounds_to_search(self, criterion: Criterion) -> tuple[OutputBounds, ...]:
        """Return the bounds within which intervals are looked for, if the budget allows it.

        A noise variance that was declared is one of all outputs, in squared widths of their bounds:
        in widths of intervals it would be another of each.
        """
        from cloakgp.fitting.interval import can_be_divided, searches_interval
        from cloakgp.privacy.several_outputs import STANDARD_BOUNDS

        looked = searches_interval(
            self.interval, criterion=criterion, bounds=STANDARD_BOUNDS, mean=0.0
        )
        if not looked or self.noise_variance is not None:
            return ()
        return self.declared if all(map(can_be_divided, self.declared)) else ()

    def asks_calibration(self, criterion: Criterion) -> bool:
        """Return whether outputs are counted where they were predicted, if the budget allows it.

        As for one output.
        """
        check_calibration(self.calibrate)
        return self.calibrate == "auto" and self.stages is not None and "stages" in criterion.uses

    def hyperprior(self, learn: Learn | None) -> Hyperprior | None:
        """Return the hyperparameters that are learned: not the mean, the middle of each column."""
        return choose_hyperprior(learn, noise_variance=self.noise_variance, mean=0.0)

    def validate(self, criterion: Criterion, *, spelled: Spelling) -> None:
        """Refuse settings that are contradictory for any table."""
        del spelled
        self.bounds_to_search(criterion)
        self.asks_calibration(criterion)


@dataclass(frozen=True, eq=False, kw_only=True)
class Classification(NothingKept):
    """A fit of one class in every row.

    Attributes
    ----------
    classes : Classes or sequence of labels
        Sorted, unless they are `Classes`.
    link, class_rates, stages, step_criterion, steps
        As for `DPGPClassifier`.
    """

    use: ClassVar[Use] = "classes"
    transform: ClassVar[OutputTransform | None] = None

    classes: object
    link: LinkName | None = None
    class_rates: Sequence[float] | None = None
    stages: Stages = None
    step_criterion: CriterionName | None = None
    steps: int | None = None

    @cached_property
    def ordered(self) -> Classes:
        """The classes in the order of their probabilities."""
        from cloakgp.privacy.questions.classes import Classes

        return Classes.ordered(self.classes)

    @cached_property
    def ordered_rates(self) -> Array | None:
        """The declared class rates in the same order."""
        import numpy as np

        from cloakgp.privacy.questions.classes import Classes

        if self.class_rates is None:
            return None
        labels = Classes.checked(self.classes).labels
        try:
            rates = np.asarray(self.class_rates, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "class_rates must be numbers in the order of classes, one for each"
            ) from None
        if rates.shape != (len(labels),):
            raise ValueError("class_rates must be one per class")
        ordered: Array = rates[[labels.index(label) for label in self.ordered.labels]]
        return ordered

    def link_name(self, criterion: Criterion) -> LinkName:
        """Return the link of a criterion."""
        return criterion.link or self.link or "probit"

    def bounds_to_search(self, criterion: Criterion) -> tuple[OutputBounds, ...]:
        """Return no bounds: no interval of classes is looked for."""
        del criterion
        return ()

    def asks_calibration(self, criterion: Criterion) -> bool:
        """Return that outputs are not counted where they were predicted."""
        del criterion
        return False

    def hyperprior(self, learn: Learn | None) -> Hyperprior | None:
        """Return the hyperparameters that are learned: classes have no noise of their own."""
        mean = None if self.class_rates is None else 0.0
        return choose_hyperprior(learn, noise_variance=0.0, mean=mean)

    def validate(self, criterion: Criterion, *, spelled: Spelling) -> None:
        """Refuse settings that are contradictory for any table."""
        for name in ("steps", "step_criterion"):
            if getattr(self, name) is not None and not criterion.iterates:
                raise ValueError(
                    f"{spelled('steps')} and {spelled('step_criterion')} go with "
                    f"{spelled('criterion', NEWTON.name)}"
                )
        for name, choices in (("link", LINKS), ("step_criterion", CRITERIA)):
            if getattr(self, name) not in (None, *choices):
                raise ValueError(
                    f"{spelled(name)} must be one of {', '.join(choices)}, "
                    f"got {getattr(self, name)!r}"
                )
        if isinstance(self.steps, int) and self.steps < 1:
            raise ValueError(f"{spelled('steps')} must be at least 1, got {self.steps}")
        if criterion.link is not None and self.link not in (None, criterion.link):
            raise ValueError(
                f"{spelled('criterion', criterion.name)} knows the {criterion.link} link alone: "
                f"use {spelled('link', criterion.link)}"
            )
        if self.ordered.channels > 1 and criterion.iterates:
            raise ValueError(
                f"{spelled('criterion', criterion.name)} is for two classes: take bayes for more"
            )
        _ = self.ordered_rates


Task = Regression | QuantileRegression | MultiOutputRegression | Classification


@dataclass(frozen=True, eq=False, kw_only=True)
class FitRequest:
    """All that is chosen of one private fit, but its table: all public.

    Attributes
    ----------
    task : Regression, QuantileRegression, MultiOutputRegression or Classification
        What outputs are, with the choices that go with these only.
    epsilon, delta : float
    noise : {"auto", "gaussian", "laplace"}
    criterion : str
        One of `cloakgp.criteria`.
    inducing : int, array-like of shape (M, D), "auto" or None
    approximation : {"fitc", "dtc", "sor"}
    learn : {"map", "average"} or None
    kernel : Kernel or None
    lengthscale : tuple of float
        Of an RBF kernel, one or one for each column, in place of `kernel`; empty for the default.
    signal_variance : float or None
        Of that kernel, or of the default one.
    gap : float
    memory : float or None
        In gigabytes.
    random_state : int
    insecure_seed : int or None
    """

    task: Task
    epsilon: float
    delta: float = 0.0
    noise: NoiseChoice = "auto"
    criterion: str = "bayes"
    inducing: int | ArrayLike | None = None
    approximation: Approximation = "fitc"
    learn: Learn | None = "map"
    kernel: Kernel | None = None
    lengthscale: tuple[float, ...] = ()
    signal_variance: float | None = None
    gap: float = DEFAULT_GAP
    memory: float | None = None
    random_state: int = 0
    insecure_seed: int | None = None

    @classmethod
    def of(cls, task: type[Task], parameters: dict[str, Any]) -> FitRequest:
        """Return the request of an estimator's parameters.

        Parameters
        ----------
        task : type
        parameters : dict
            By name; those that belong to a table are passed over.
        """
        of_task = {each.name: parameters[each.name] for each in fields(task)}
        own = {each.name for each in fields(cls)} & parameters.keys()
        return cls(task=task(**of_task), **{name: parameters[name] for name in own})

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of an estimator, by name."""
        own = {each.name for each in fields(self)} - {"task", "lengthscale", "signal_variance"}
        return {each.name: getattr(self.task, each.name) for each in fields(self.task)} | {
            name: getattr(self, name) for name in own
        }

    def chosen_criterion(self, spelled: Spelling = as_parameter) -> Criterion:
        """Return the criterion of the questions, or raise an error that lists all."""
        return criterion_named(self.criterion, use=self.task.use, parameter=spelled("criterion"))

    @property
    def hyperprior(self) -> Hyperprior | None:
        """The hyperparameters that are learned."""
        return self.task.hyperprior(self.learn)

    @property
    def has_default_prior(self) -> bool:
        """Whether numbers have the default prior, scaled to their bounds in all its parts."""
        task = self.task
        given = (self.kernel, self.signal_variance, *self.lengthscale)
        return (
            isinstance(task, Regression)
            and not task.of_counts
            and task.noise_variance is None
            and task.public_prediction is None
            and all(each is None for each in given)
        )

    def validate(self, *, spelled: Spelling = as_parameter) -> None:
        """Refuse settings that are contradictory for any table.

        Parameters
        ----------
        spelled : callable
            How messages name parameters.

        Raises
        ------
        ValueError
        """
        check_learning(self.learn)
        criterion = self.chosen_criterion(spelled)
        for name, value in (("gap", self.gap), ("signal_variance", self.signal_variance)):
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{spelled(name)} must be positive and finite, got {value}")
        self._check_signal(spelled)
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"{spelled('memory')} must be positive, got {self.memory}")
        if isinstance(self.random_state, Integral) and not 0 <= self.random_state < RANDOM_STATES:
            raise ValueError(
                f"{spelled('random_state')} must be a whole number from 0 to {RANDOM_STATES - 1}, "
                f"got {self.random_state}"
            )
        self._check_inducing(spelled)
        self.task.validate(criterion, spelled=spelled)
        # What draws noise is imported last.
        from cloakgp.privacy.noise_choice import check_noise

        check_noise(self.noise, epsilon=self.epsilon, delta=self.delta)

    def _check_signal(self, spelled: Spelling) -> None:
        """Refuse variances of a curve with which nothing can be computed, or that is flat."""
        from cloakgp.models.prior import LARGEST_VARIANCE

        value, task = self.signal_variance, self.task
        if value is None:
            return
        if value > LARGEST_VARIANCE:
            raise ValueError(
                f"{spelled('signal_variance')} = {value:g} is a variance beyond "
                f"{LARGEST_VARIANCE:g}, with which nothing can be computed: give less"
            )
        width = 1.0
        if isinstance(task, QuantileRegression) or (
            isinstance(task, Regression) and not task.of_counts
        ):
            width = task.limits.width
        least = (FLAT * width) ** 2
        if value < least:
            raise ValueError(
                f"{spelled('signal_variance')} = {value:g} is a curve that varies by less than "
                f"{FLAT:g} of the bounds' width, so that no answer would tell anything: give "
                f"{least:g} or more"
            )

    def _check_inducing(self, spelled: Spelling) -> None:
        """Refuse words other than "auto", and that where nothing follows what was learned."""
        if isinstance(self.inducing, Real) and not isinstance(self.inducing, Integral):
            raise ValueError(
                f"{spelled('inducing')} must be a whole number, or inputs, got {self.inducing!r}"
            )
        if not isinstance(self.inducing, str):
            return
        if self.inducing != AUTO:
            raise ValueError(
                f"{spelled('inducing')} must be a number, {AUTO} or inputs, got {self.inducing!r}"
            )
        if not isinstance(self.task, Regression) or self.task.of_counts:
            raise ValueError(
                f"{spelled('inducing', AUTO)} is for one output of numbers: give a number"
            )
        if self.task.stages is None or self.task.kept:
            raise ValueError(
                f"{spelled('inducing', AUTO)} places those of a second stage for the kernel that "
                "is known by then, in tables that are read in passes: where there is one stage, or "
                "rows are kept out, give a number"
            )
