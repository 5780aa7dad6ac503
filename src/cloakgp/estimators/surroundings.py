"""Surroundings of a fit: parts of scikit-learn that use outputs, and one guarantee does not cover.

scikit-learn tells an estimator nothing of what calls it, or of what made its inputs. So that is
known by the call stack alone. Nothing here reads a private output.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from weakref import WeakKeyDictionary

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomTreesEmbedding, StackingClassifier, StackingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import ClassifierChain, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from cloakgp.utils.warned import CloakWarning

AGAIN = "fits again and again: every fit spends its budget anew about the same people"
BARE = "what it computes from the private outputs has no noise"
SCORES = "scores are private"
# What follows of a fit that parts of scikit-learn call; of two names that fit, the first counts.
WITHIN = {
    "sklearn.model_selection._classification_threshold": f"{AGAIN}, and {BARE}",
    "sklearn.model_selection": f"{AGAIN}, and {SCORES}",
    "sklearn.ensemble._stacking": f"{AGAIN}, and {BARE}",
    "sklearn.ensemble._gb": f"{AGAIN}, and {BARE}",
    "sklearn.ensemble._weight_boosting": f"{AGAIN}, and {BARE}",
    # A worker does not show for which of them it fits.
    "sklearn.ensemble": f"{AGAIN}; in stacking and boosting, {BARE}",
    "sklearn.multiclass": AGAIN,
    "sklearn.multioutput": AGAIN,
    "sklearn.feature_selection": f"{AGAIN}, and {SCORES}",
    "sklearn.semi_supervised": f"{AGAIN}, and {BARE}",
    "sklearn.calibration": f"{AGAIN}, and {BARE}",
    "sklearn.compose._target": f"is not part of the release: {BARE}. See output_transform",
}
# By way of which it fits.
PARTS = ("sklearn.", "joblib.")
OWN = __name__.partition(".")[0]
# Score inputs by outputs where these are given, and have no tag that says so.
SUPERVISED = {"SelectKBest", "SelectPercentile"}
# Whichever of these a step has, pipelines call with X and y, by their places.
FITTING = ("fit", "fit_transform")
PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Lines that were warned of: files and numbers, by the code that they are in. Whatever is typed at a
# prompt is line 1 of the same file, and is gone when it was run.
_warned: WeakKeyDictionary[CodeType, set[tuple[str, int]]] = WeakKeyDictionary()


class RepeatedSpendingWarning(CloakWarning):
    """A part of scikit-learn uses private outputs in a way that one guarantee does not cover.

    `GridSearchCV`, `cross_val_score` and their like fit an estimator once for every fold and
    candidate; bagging, voting, stacking and boosting once for every member. Every fit spends its
    (ε, δ) about the people in it. Scores are computed from private outputs without noise, and so
    are final estimators of stacking, members and weights of boosting, labels of self-training
    (`SelfTrainingClassifier`), calibrators (`CalibratedClassifierCV`), thresholds
    (`TunedThresholdClassifierCV`) and transformers of outputs (`TransformedTargetRegressor`). The
    guarantee of one release covers none of that.

    It is known by the call stack of a fit, or of predictions that a fit of scikit-learn asks for:
    in this process, or in a worker, which sees no more than its own part. It is shown once for each
    line that calls such a function, and at a prompt for everything that is typed.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.model_selection import cross_val_score
    >>> from cloakgp import DPGPRegressor, RepeatedSpendingWarning
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None)
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always", RepeatedSpendingWarning)
    ...     _ = cross_val_score(model, [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], cv=2)
    >>> [each.category.__name__ for each in found]
    ['RepeatedSpendingWarning']
    """


def check_surroundings(estimator: BaseEstimator) -> None:
    """Refuse a fit to inputs that were made of outputs, and warn of one that is not the only one.

    To be called by every `fit` before anything is spent.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose fit calls this.

    Raises
    ------
    ValueError
        If a step before it in a pipeline learns from outputs, a chain puts outputs among inputs, or
        this is the final estimator of stacking, whose inputs are predictions that may hold them.

    Warns
    -----
    RepeatedSpendingWarning
        If it is called from within a part of scikit-learn that one guarantee does not cover.

    Examples
    --------
    >>> check_surroundings(BaseEstimator())
    """
    inside = [estimator]
    for frame in _callers():
        caller = _estimator_of(frame)
        if isinstance(caller, RegressorChain | ClassifierChain):
            raise ValueError(
                f"{type(caller).__name__} puts outputs among the inputs of its members, and inputs "
                "are published: fit each output on its own, or DPGPMultiOutputRegressor to all"
            )
        if isinstance(caller, StackingRegressor | StackingClassifier) and _has_private_final(
            caller, inside=inside
        ):
            raise ValueError(
                f"the final estimator of {type(caller).__name__} is fitted to predictions that "
                "may hold y itself, and inputs are published with the release: let another be the "
                "last, or fit this model by itself, to predictions of models that were fitted to "
                "other, public data"
            )
        if isinstance(caller, Pipeline):
            _refuse_supervised(caller, inside=inside)
        if caller is not None:
            inside.append(caller)
    found = _enclosing()
    if found is not None:
        part, line = found
        advice = ""
        if part == "sklearn.model_selection":
            advice = ". DPGridSearchCV chooses under one budget, and learn='map' learns at no cost"
        _warn_once(f"this fit runs within {part}, which {WITHIN[part]}{advice}", line)


def warn_of_use() -> None:
    """Warn if predictions are asked for by a fit of scikit-learn that sets outputs beside them.

    Such a fit may have no fit of this package within it: of a calibrator, say, for a model that was
    fitted before.

    Warns
    -----
    RepeatedSpendingWarning

    Examples
    --------
    >>> warn_of_use()
    """
    found = _enclosing(predicting=True)
    if found is not None:
        part, line = found
        _warn_once(f"these predictions are used by a fit within {part}: {BARE}", line)


def supervised_parts(name: str, step: object) -> list[str]:
    """Return what learns from outputs in a step of a pipeline, as scikit-learn names its parts.

    What is fitted already is left alone, and whatever uses outputs and says so nowhere is not
    known.

    Parameters
    ----------
    name : str
    step : object
        An estimator, or a word in its place.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.pipeline import make_union
    >>> from sklearn.preprocessing import StandardScaler
    >>> supervised_parts("union", make_union(StandardScaler(), SelectKBest()))
    ['union__selectkbest']
    """
    if isinstance(step, FrozenEstimator) or not any(hasattr(step, each) for each in FITTING):
        return []
    inner = _inner_parts(step)
    if inner is None:
        return [name] if _is_supervised(name, step) else []
    return [each for own, part in inner for each in supervised_parts(f"{name}__{own}", part)]


def _inner_parts(step: object) -> list[tuple[str, object]] | None:
    """Return the parts of a step, by their names, or None if it is judged as a whole."""
    if isinstance(step, Pipeline):
        return list(step.steps)
    if isinstance(step, FeatureUnion):
        return list(step.transformer_list)
    if isinstance(step, ColumnTransformer):
        columns = [(name, part) for name, part, _ in step.transformers]
        return [*columns, ("remainder", step.remainder)]
    return None


def _is_supervised(name: str, step: object) -> bool:
    """Return whether a step without parts of its own learns from outputs."""
    if hasattr(step, "__sklearn_tags__") and get_tags(step).target_tags.required:
        return True
    if hasattr(step, "fit_resample") or SUPERVISED & {one.__name__ for one in type(step).__mro__}:
        return True
    if any(_requires_outputs(getattr(step, each, None)) for each in FITTING):
        return True
    # Of what it chooses by; an imputer, say, fits its estimator to inputs alone.
    chooses = isinstance(step, MetaEstimatorMixin) and not getattr(step, "prefit", False)
    if isinstance(step, RandomTreesEmbedding):
        # Its trees are fitted to outputs that it draws.
        chooses = False
    return chooses and bool(supervised_parts(name, getattr(step, "estimator", None)))


def _requires_outputs(method: Callable[..., object] | None) -> bool:
    """Return whether a method cannot do without y, or whatever it calls what comes after X."""
    if method is None:
        return False
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        # Compiled ones may have none that can be read.
        return False
    places = [each for each in parameters.values() if each.kind in PLACED]
    taken = [*places[1:2], *(each for each in parameters.values() if each.name == "y")]
    return any(each.default is each.empty for each in taken)


def _refuse_supervised(pipeline: Pipeline, *, inside: Sequence[BaseEstimator]) -> None:
    """Refuse what learns from outputs in a pipeline before the step that is fitted now."""
    steps = pipeline.steps
    fitted = [any(step is each for each in inside) for _, step in steps]
    now = fitted.index(True) if any(fitted) else len(steps) - 1
    found = [part for name, step in steps[:now] for part in supervised_parts(name, step)]
    if found:
        raise ValueError(
            f"step {found[0]!r} of the pipeline learns from y, without noise, and the inputs that "
            "it makes are published with the release: leave it out, or fit it beforehand to other, "
            "public data and put FrozenEstimator(...) of it in its place"
        )


def _has_private_final(
    stacking: StackingRegressor | StackingClassifier, *, inside: Sequence[BaseEstimator]
) -> bool:
    """Return whether a final estimator is fitted now, or will be by a fit of this package.

    What is fitted now may be a member as well, which would have spent before the end was refused.
    """
    fitted = getattr(stacking, "final_estimator_", None)
    if any(fitted is each for each in inside):
        return True
    final = stacking.final_estimator
    if final is None or isinstance(final, FrozenEstimator):
        return False
    return any(_is_private(each) for each in (final, *final.get_params().values()))


def _is_private(part: object) -> bool:
    """Return whether something is an estimator of this package, or of a kind made of one."""
    kinds = type(part).__mro__ if isinstance(part, BaseEstimator) else ()
    return any(each.__module__.partition(".")[0] == OWN for each in kinds)


def _callers() -> Iterator[FrameType]:
    """Return the frames around whoever goes through this, from the inside."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _estimator_of(frame: FrameType) -> BaseEstimator | None:
    """Return the estimator whose method a frame is, if it is none of this package."""
    # Asked for its variables, a frame may keep a copy of them: those of this package must be able
    # to forget theirs.
    if frame.f_code.co_varnames[:1] != ("self",) or _module_of(frame).partition(".")[0] == OWN:
        return None
    found = frame.f_locals.get("self")
    return found if isinstance(found, BaseEstimator) else None


def _enclosing(*, predicting: bool = False) -> tuple[str, FrameType] | None:
    """Return the outermost part of scikit-learn that this is called from, and who called that.

    For predictions, only parts count that fit something to outputs beside them.
    """
    part, within, caller = "", False, None
    for frame in _callers():
        name = _module_of(frame)
        found = next((each for each in WITHIN if f"{name}.".startswith(f"{each}.")), None)
        if predicting and found is not None:
            fits = frame.f_code.co_name == "fit" and BARE in WITHIN[found]
            found = found if fits else None
        if found is not None and isinstance(_estimator_of(frame), FixedThresholdClassifier):
            # It fits once, and learns nothing beside.
            found = None
        if found is not None:
            part, within, caller = found, True, frame
        elif within and not name.startswith(PARTS):
            within, caller = False, frame
    return None if caller is None else (part, caller)


def _warn_once(message: str, caller: FrameType) -> None:
    """Warn at the line at which a frame is, unless it was warned of.

    Python's own record of what it showed is passed over: it goes by text and number of a line, and
    would show a prompt one warning for ever.
    """
    line = (caller.f_code.co_filename, caller.f_lineno)
    told = _warned.setdefault(caller.f_code, set())
    if line in told:
        return
    told.add(line)
    warnings.warn_explicit(message, RepeatedSpendingWarning, *line, module=_module_of(caller))
