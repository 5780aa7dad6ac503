"""An exception that leaves a door forgets what went in: no frame of it holds an output."""

from __future__ import annotations

import importlib
import inspect
import traceback

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF

import cloakgp
from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    baselines,
    cloak,
    privacy,
)
from cloakgp.data import ArrayRows
from cloakgp.models import ExactPrior
from cloakgp.privacy.function import measure_function
from cloakgp.privacy.labels import Classes, measure_labels
from cloakgp.privacy.queries import measure
from cloakgp.privacy.tracebacks import forget_on_failure

# The package re-exports the function `measure` under the name of its module.
grid = importlib.import_module("cloakgp.privacy.grid")

ROWS = 12
X = np.linspace(0, 5, ROWS)[:, None]
# Recognisable to the last digit.
Y = np.random.default_rng(8).uniform(-1, 1, size=ROWS)
BUDGET = {"epsilon": 1.0, "delta": 1e-3}
NUMBERS = {"bounds": (-1.0, 1.0), **BUDGET}
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
    "regressor, rows": lambda y: DPGPRegressor(**NUMBERS, inducing=3).fit_rows(ArrayRows(X, y)),
    "classifier": lambda y: DPGPClassifier(classes=[0, 1], **BUDGET).fit(X, y),
    "several outputs": lambda y: DPGPMultiOutputRegressor(bounds=[(-1, 1)], **BUDGET).fit(X, y),
    "several outputs, intervals first": lambda y: DPGPMultiOutputRegressor(
        bounds=[(-1, 1)], epsilon=90.0, delta=1e-3
    ).fit(X, y),
    "private inputs": lambda y: DPGPRegressorPrivateInputs(
        input_bounds=(0, 5), **NUMBERS, n_features=3
    ).fit(X, y),
    "grid search": lambda y: DPGridSearchCV(
        DPGPRegressor(**NUMBERS), {"mean": [0.0]}, selection_epsilon=1.0, cv=2
    ).fit(X, y),
    "noise on rows": lambda y: baselines.DPRowNoiseRegressor(**NUMBERS).fit(X, y),
    "noise on the mean": lambda y: baselines.DPMeanRegressor(**NUMBERS).fit(X, y),
    "histogram": lambda y: baselines.DPHistogramRegressor(**NUMBERS).fit(X, y),
    "integral": lambda y: baselines.DPIntegralHistogramRegressor(**NUMBERS).fit(X, y),
    "cloak": lambda y: cloak(np.ones((1, ROWS)), y, **NUMBERS),
    "measure": lambda y: measure(np.ones((1, ROWS)), y, **NUMBERS),
    "laplace": lambda y: measure(
        np.ones((1, ROWS)), y, bounds=(-1, 1), epsilon=1.0, delta=0.0, noise="laplace"
    ),
    "labels": lambda y: measure_labels(
        np.ones((1, ROWS)), y, classes=Classes.checked([0, 1]), **BUDGET
    ),
    "function": lambda y: measure_function(X, y, prior=PRIOR, **NUMBERS),
}


def within(value, depth=5):
    """A value, and what it holds."""
    yield value
    if depth == 0:
        return
    parts = []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
    elif hasattr(value, "__dict__") and not inspect.ismodule(value) and not inspect.isclass(value):
        parts = list(vars(value).values())
    for part in parts:
        yield from within(part, depth - 1)


def holds_outputs(value):
    for one in within(value):
        if isinstance(one, Exploding):
            return True
        if isinstance(one, np.ndarray) and one.dtype.kind in "fO":
            if np.isin(Y, one.astype(object)).any():
                return True
        elif isinstance(one, float) and one in Y:
            return True
    return False


def exceptions(error):
    """An exception and all that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def leaks(error):
    """The variables in frames other than this file's that hold outputs."""
    found = []
    for one in exceptions(error):
        found += [
            (frame.f_code.co_qualname, name)
            for frame, _ in traceback.walk_tb(one.__traceback__)
            if frame.f_code.co_filename != __file__
            for name, value in frame.f_locals.items()
            if holds_outputs(value)
        ]
        found += [name for name, value in vars(one).items() if holds_outputs(value)]
        found += ["obj"] if holds_outputs(getattr(one, "obj", None)) else []
    return found


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


@pytest.mark.parametrize("door", ["regressor", "grid search", "cloak", "measure", "function"])
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
        assert not inside or set(frame.f_locals) <= {"function", "handled"}


def test_the_search_finds_what_is_not_forgotten():
    def fit(y):
        centred = np.asarray(y) - 0.0
        raise ValueError(len(centred))

    # As if it were another file's.
    code = fit.__code__.replace(co_filename="elsewhere.py")
    fit.__code__ = code
    with pytest.raises(ValueError, match="12") as caught:
        fit(Y)
    assert leaks(caught.value) == [(code.co_qualname, "y"), (code.co_qualname, "centred")]
    with pytest.raises(ValueError, match="12") as caught:
        forget_on_failure(fit)(Y)
    assert leaks(caught.value) == []


def test_it_can_still_be_seen_where_something_failed():
    with pytest.raises(ValueError, match="numeric") as caught:
        DPGPRegressor(**NUMBERS).fit(X, ["secret"] * ROWS)
    places = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert "checked_outputs" in places
    assert "release_outputs" in places


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


@pytest.mark.parametrize("name", dict(doors()))
def test_every_door_forgets_on_failure(name):
    function = dict(doors())[name]
    takes = PRIVATE & set(inspect.signature(function).parameters)
    guarded = function.__code__ is forget_on_failure(len).__code__
    assert guarded == bool(takes), name
