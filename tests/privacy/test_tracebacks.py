"""An exception that leaves a door forgets what went in: nothing it holds leads to an output."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
import traceback
from functools import cache
from types import FrameType, FunctionType, ModuleType

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF

import cloakgp
from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    baselines,
    cloak,
    extend,
    privacy,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.function import measure_function
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.tracebacks import forget_on_failure

# The package re-exports the function `measure` under the name of its module.
grid = importlib.import_module("cloakgp.privacy.grid")

# Tables are small here, and a large budget is what looks for an interval.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

ROWS = 12
X = np.linspace(0, 5, ROWS)[:, None]
# Recognisable to the last digit.
Y = np.random.default_rng(8).uniform(-1, 1, size=ROWS)
BUDGET = {"epsilon": 1.0, "delta": 1e-3}
NUMBERS = {"bounds": (-1.0, 1.0), **BUDGET}
# So much that an interval is looked for first.
WIDE = {"bounds": (-1e4, 1e4), "epsilon": 90.0, "delta": 1e-3}
PEOPLE = [row // 2 for row in range(ROWS)]
PRIOR = ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.0)


class Exploding:
    """Outputs that fail as nobody foresaw, deep inside."""

    def __init__(self, error):
        self.error, self.values = error, Y.tolist()

    def __len__(self):
        return ROWS

    def __iter__(self):
        raise self.error

    def __array__(self, dtype=None, copy=None):
        raise self.error


DOORS = {
    "regressor": lambda y: DPGPRegressor(**NUMBERS).fit(X, y),
    "regressor, intervals first": lambda y: DPGPRegressor(**WIDE).fit(X, y),
    "regressor, groups": lambda y: DPGPRegressor(**NUMBERS).fit(X, y, groups=PEOPLE),
    "regressor, rows": lambda y: DPGPRegressor(**NUMBERS, inducing=3).fit_rows(ArrayRows(X, y)),
    "regressor, rows, intervals first": lambda y: DPGPRegressor(
        **WIDE, inducing=3, stages=[(0.2, None), (0.8, 1.0)]
    ).fit_rows(ArrayRows(X, y)),
    "regressor, rows, groups": lambda y: DPGPRegressor(**NUMBERS, inducing=3).fit_rows(
        ArrayRows(X, y, groups=PEOPLE)
    ),
    "refine": lambda y: refine(known(), y, **BUDGET),
    "refine, rows": lambda y: refine(known_of_rows(), ArrayRows(X, y), **BUDGET),
    "extend": lambda y: extend(known(), X, y, **BUDGET),
    "extend, rows": lambda y: extend(known_of_rows(), ArrayRows(X, y), **BUDGET),
    "classifier": lambda y: DPGPClassifier(classes=[0, 1], **BUDGET).fit(X, y),
    "classifier, rows": lambda y: DPGPClassifier(classes=[0, 1], **BUDGET, inducing=3).fit_rows(
        ArrayRows(X, y)
    ),
    "classifier, groups": lambda y: DPGPClassifier(classes=[0, 1], **BUDGET).fit(
        X, y, groups=PEOPLE
    ),
    "classifier, newton": lambda y: DPGPClassifier(
        classes=[0, 1], **BUDGET, criterion="newton"
    ).fit(X, y),
    "several outputs": lambda y: DPGPMultiOutputRegressor(bounds=[(-1, 1)], **BUDGET).fit(X, y),
    "several outputs, intervals first": lambda y: DPGPMultiOutputRegressor(
        bounds=[(-1, 1)], epsilon=90.0, delta=1e-3
    ).fit(X, y),
    "private inputs": lambda y: DPGPRegressorPrivateInputs(
        input_bounds=(0, 5), **NUMBERS, n_features=3
    ).fit(X, y),
    "private inputs, classes": lambda y: DPGPClassifierPrivateInputs(
        input_bounds=(0, 5), classes=[0, 1], **BUDGET, n_features=3
    ).fit(X, y),
    "grid search": lambda y: DPGridSearchCV(
        DPGPRegressor(**NUMBERS), {"mean": [0.0]}, selection_epsilon=1.0, cv=2
    ).fit(X, y),
    "grid search, classes": lambda y: DPGridSearchCV(
        DPGPClassifier(classes=[0, 1], **BUDGET),
        {"link": ["probit"]},
        selection_epsilon=1.0,
        cv=2,
    ).fit(X, y),
    "noise on rows": lambda y: baselines.DPRowNoiseRegressor(**NUMBERS).fit(X, y),
    "noise on the mean": lambda y: baselines.DPMeanRegressor(**NUMBERS).fit(X, y),
    "histogram": lambda y: baselines.DPHistogramRegressor(**NUMBERS).fit(X, y),
    "integral": lambda y: baselines.DPIntegralHistogramRegressor(**NUMBERS).fit(X, y),
    "cloak": lambda y: cloak(np.ones((1, ROWS)), y, **NUMBERS),
    "outputs": lambda y: ask(
        np.ones((1, ROWS)), y, question=OutputBounds.checked((-1, 1)), **BUDGET
    ),
    "laplace": lambda y: ask(
        np.ones((1, ROWS)),
        y,
        question=OutputBounds.checked((-1, 1)),
        epsilon=1.0,
        delta=0.0,
        noise="laplace",
    ),
    "labels": lambda y: ask(np.ones((1, ROWS)), y, question=Classes.checked([0, 1]), **BUDGET),
    "function": lambda y: measure_function(X, y, prior=PRIOR, **NUMBERS),
}


@cache
def known():
    return DPGPRegressor(**NUMBERS).fit(X, Y).release_


@cache
def known_of_rows():
    return DPGPRegressor(**NUMBERS, inducing=3).fit_rows(ArrayRows(X, Y)).release_


def is_output(value, others=()):
    """Whether something is an output, or made of outputs alone, or one of others."""
    if isinstance(value, Exploding) or any(value is one for one in others):
        return True
    if isinstance(value, np.ndarray) and value.dtype.kind in "fO":
        # Numbers are not traversed, as the entries of a list are.
        return bool(np.isin(Y, value.astype(object)).any())
    return isinstance(value, float) and value in Y


def reachable(start, others=()):
    """What leads to outputs from something: by attributes, frames, cells, caches, anything.

    Modules, types and what this file holds are not gone through.
    """
    passed = {id(vars(module)) for module in list(sys.modules.values()) if module is not None}
    frame = sys._getframe()
    while frame is not None:
        passed.add(id(frame))
        frame = frame.f_back
    before, pending, found = {}, [(start, None)], []
    while pending:
        value, parent = pending.pop()
        if id(value) in before:
            continue
        before[id(value)] = (value, parent)
        if is_output(value, others):
            path = [value]
            while before[id(path[-1])][1] is not None:
                path.append(before[id(path[-1])][1])
            found.append([_told(one) for one in path])
            continue
        code = getattr(value, "f_code" if isinstance(value, FrameType) else "__code__", None)
        if (
            id(value) in passed
            or isinstance(value, ModuleType | type)
            or (
                isinstance(value, FrameType | FunctionType)
                and code is not None
                and code.co_filename == __file__
            )
        ):
            continue
        pending += [(one, value) for one in gc.get_referents(value)]
    return found


def _told(value):
    code = getattr(value, "f_code", None) or getattr(value, "__code__", None)
    return type(value).__name__ if code is None else code.co_qualname


def leaks(error, others=()):
    return reachable(error, others)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "spoiled",
    [
        [*Y[:-1], "secret"],
        [*Y[:-1], np.nan],
        np.append(Y, 0.5),
        Exploding(RuntimeError("unforeseen")),
        Exploding(AttributeError("unforeseen", obj=Y)),
        Exploding(KeyboardInterrupt()),
    ],
    ids=["text", "nan", "length", "unforeseen", "attribute", "interrupted"],
)
def test_no_frame_of_an_exception_holds_an_output(door, spoiled):
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        DOORS[door](spoiled)
    assert leaks(caught.value) == []


def watched(calls, run):
    """Call something while functions of this package that have cells are told of."""

    def tell(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_freevars and code.co_filename.startswith(PACKAGE):
            calls(frame)

    sys.setprofile(tell)
    try:
        run()
    finally:
        sys.setprofile(None)


PACKAGE = str(cloakgp.__path__[0])
# These have functions in their cells, which hold nothing while nobody calls them.
WRAPPERS = {
    "forget_on_failure.<locals>.guarded",
    "one_charge.<locals>.charged",
    "charged_as_sent.<locals>.charged",
}


@pytest.mark.parametrize("door", DOORS)
def test_a_closure_that_fails_leads_to_no_output(door):
    """An exception keeps frames, a frame its function, a function its cells: they had y in them."""
    y = np.where(Y > 0, 1, 0) if "class" in door or door == "labels" else Y.copy()
    given = y[:, None] if "several" in door else y
    others = [y, given]
    # Fitted here, they would call other closures than the door does.
    known(), known_of_rows()
    holding, seen = set(), set()

    def look(frame):
        code = frame.f_code
        if code in seen or code.co_qualname in WRAPPERS:
            return
        seen.add(code)
        cells = [frame.f_locals.get(name) for name in code.co_freevars]
        if reachable(cells, others):
            holding.add(code)

    watched(look, lambda: DOORS[door](given))
    for code in holding:

        def fail(frame, code=code):
            if frame.f_code is code:
                sys.setprofile(None)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            watched(fail, lambda: DOORS[door](given))
        assert leaks(caught.value, others) == [], code.co_qualname


def test_the_search_finds_what_closures_hold():
    y = Y.copy()

    def fit(y):
        def fail():
            raise ValueError(len(y))

        fail()

    # As if they were another file's.
    inner = next(one for one in fit.__code__.co_consts if hasattr(one, "co_code"))
    inside = inner.replace(co_filename="elsewhere.py")
    constants = tuple(inside if one is inner else one for one in fit.__code__.co_consts)
    fit.__code__ = fit.__code__.replace(co_filename="elsewhere.py", co_consts=constants)
    with pytest.raises(ValueError, match="12") as caught:
        fit(y)
    # By clearing its frames alone.
    traceback.clear_frames(caught.tb)
    assert any("cell" in path for path in leaks(caught.value))
    with pytest.raises(ValueError, match="12") as caught:
        forget_on_failure(fit)(y)
    # Cells are emptied of frames of this package, as others may be in use.
    assert leaks(caught.value)
    ours = FunctionType(fit.__code__, {"__name__": "cloakgp.fitting", "len": len})
    with pytest.raises(ValueError, match="12") as caught:
        forget_on_failure(ours)(y)
    assert leaks(caught.value) == []


@pytest.mark.parametrize("door", ["regressor", "grid search", "cloak", "outputs", "function"])
def test_failing_noise_leaves_no_answer_without_it(monkeypatch, door):
    """What was computed of the outputs is forgotten with them."""

    def failing(*_, **__):
        raise RuntimeError("no randomness to be had")

    for law in ("gaussian", "laplace"):
        monkeypatch.setattr(f"cloakgp.privacy.noise.{law}.add_discrete_{law}", failing)
    with pytest.raises(RuntimeError, match="no randomness") as caught:
        DOORS[door](Y)
    assert leaks(caught.value) == []
    for frame, _ in traceback.walk_tb(caught.value.__traceback__):
        inside = frame.f_code.co_filename.startswith(str(cloakgp.__path__[0]))
        assert not inside or set(frame.f_locals) <= {"function", "handled", "drawn"}


def test_the_search_finds_what_is_not_forgotten():
    def fit(y):
        centred = np.asarray(y) - 0.0
        raise ValueError(len(centred))

    # As if it were another file's.
    code = fit.__code__.replace(co_filename="elsewhere.py")
    fit.__code__ = code
    with pytest.raises(ValueError, match="12") as caught:
        fit(Y)
    assert len(leaks(caught.value)) == 2
    with pytest.raises(ValueError, match="12") as caught:
        forget_on_failure(fit)(Y)
    assert leaks(caught.value) == []


def test_it_can_still_be_seen_where_something_failed():
    with pytest.raises(ValueError, match="numeric") as caught:
        DPGPRegressor(**NUMBERS).fit(X, ["secret"] * ROWS)
    places = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert "read_outputs" in places
    assert "take_steps" in places


def test_what_the_caller_was_handling_is_left_alone():
    def caller():
        kept = "theirs"
        raise KeyError(kept)

    try:
        caller()
    except KeyError as error:
        with pytest.raises(ValueError, match="numeric"):
            DPGPRegressor(**NUMBERS).fit(X, ["secret"] * ROWS)
        last = list(traceback.walk_tb(error.__traceback__))[-1][0]
        assert last.f_locals["kept"] == "theirs"


PRIVATE = {"y", "rows"}


def doors():
    """Everything public that is given outputs."""
    for module in (cloakgp, baselines, privacy):
        for name in module.__all__:
            one = getattr(module, name)
            if inspect.isfunction(one):
                yield name, one
            elif inspect.isclass(one) and issubclass(one, BaseEstimator):
                # `score` is scikit-learn's, whose frames are its own.
                yield from (
                    (f"{name}.{method}", function)
                    for method, function in inspect.getmembers(one, inspect.isfunction)
                    if not method.startswith("_") and method != "score"
                )


def test_every_door_forgets_on_failure():
    guard, every = forget_on_failure(len).__code__, dict(doors())
    takes = {name for name in every if PRIVATE & set(inspect.signature(every[name]).parameters)}
    assert takes == {name for name, function in every.items() if function.__code__ is guard}
    assert len(takes) > 15
