"""Warnings about what is declared: one set of sentences, before anything is spent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    PrivacyParameterWarning,
    cloak,
    extend,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)
from cloakgp.privacy.checks import bounds_doubts, budget_doubts, mean_doubts, rates_doubts

ROWS = 40
X = np.linspace(0, 10, ROWS)[:, None]
WEAK, RISKY, COMPUTED = "hardly anyone", "one in 40 rows", "look computed from the data"


class Sealed:
    """A private column that nobody may read."""

    def __len__(self) -> int:
        return ROWS

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise AssertionError("the private column was read")

    def __getitem__(self, _: object) -> object:
        raise AssertionError("the private column was read")


LOUD = {"epsilon": 20.0, "delta": 0.05}
COMPUTED_BOUNDS = (-1.00231, 1.0)
ESTIMATORS = {
    "regressor": DPGPRegressor(bounds=COMPUTED_BOUNDS, **LOUD),
    "classifier": DPGPClassifier(classes=[0, 1], class_rates=[0.71234, 0.28766], **LOUD),
    "several outputs": DPGPMultiOutputRegressor(bounds=[(0, 1), COMPUTED_BOUNDS], **LOUD),
    "private inputs": DPGPRegressorPrivateInputs(
        input_bounds=[(0, 10)], bounds=COMPUTED_BOUNDS, **LOUD
    ),
    "grid search": DPGridSearchCV(
        DPGPRegressor(bounds=COMPUTED_BOUNDS, **LOUD), {"mean": [0.0]}, selection_epsilon=1.0
    ),
    "histogram": DPHistogramRegressor(bounds=COMPUTED_BOUNDS, **LOUD),
    "process on a histogram": DPIntegralHistogramRegressor(bounds=COMPUTED_BOUNDS, **LOUD),
    "mean": DPMeanRegressor(bounds=COMPUTED_BOUNDS, **LOUD),
    "noise on rows": DPRowNoiseRegressor(bounds=COMPUTED_BOUNDS, **LOUD),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator_warns_before_it_reads_outputs(kind):
    with (
        pytest.warns(PrivacyParameterWarning) as said,
        pytest.raises(
            (AssertionError, ValueError), match=r"was read|must hold|numbers|must have a shape"
        ),
    ):
        ESTIMATORS[kind].fit(X, Sealed())
    sentences = [str(one.message) for one in said]
    computed = "look counted in the data" if kind == "classifier" else COMPUTED
    for doubt in (WEAK, RISKY, computed):
        assert sum(doubt in sentence for sentence in sentences) == 1, (doubt, sentences)
    assert len(sentences) == 3
    # They point at the line of whoever called, not at one inside the package.
    assert {one.filename for one in said} == {__file__}


@pytest.fixture(scope="module")
def fitted():
    return DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, gap=0.1).fit(X, np.sin(X[:, 0]))


DOORS = {
    "cloak": lambda _, y: cloak(np.ones((1, ROWS)), y, bounds=COMPUTED_BOUNDS, **LOUD),
    "refine": lambda fitted, y: refine(fitted.release_, y, **LOUD),
    "extend": lambda fitted, y: extend(fitted.release_, X + 0.1, y, **LOUD),
    "refine, of the estimator": lambda fitted, y: fitted.refine(y, **LOUD),
    "extend, of the estimator": lambda fitted, y: fitted.extend(X + 0.1, y, **LOUD),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_other_door_warns_before_it_reads_outputs(door, fitted):
    with (
        pytest.warns(PrivacyParameterWarning) as said,
        pytest.raises(
            (AssertionError, ValueError), match=r"was read|must hold|numbers|must have a shape"
        ),
    ):
        DOORS[door](fitted, Sealed())
    sentences = [str(one.message) for one in said]
    # Later measurements keep the bounds of the first.
    doubts = (WEAK, RISKY, COMPUTED) if door == "cloak" else (WEAK, RISKY)
    for doubt in doubts:
        assert sum(doubt in sentence for sentence in sentences) == 1, (doubt, sentences)
    assert len(sentences) == len(doubts)
    assert {one.filename for one in said} == {__file__}


def test_stages_of_one_fit_are_warned_of_once():
    model = DPGPRegressor(bounds=(-1, 1), stages=[(0.5, None), (0.5, 1.0)], gap=0.1, **LOUD)
    with pytest.warns(PrivacyParameterWarning) as said:
        model.fit(X, np.sin(X[:, 0]))
    assert len(said) == 2


def test_a_choice_counts_in_what_is_weak():
    model = DPGPRegressor(bounds=(-1, 1), epsilon=9.0, delta=1e-3)
    search = DPGridSearchCV(model, {"mean": [0.0]}, selection_epsilon=9.0)
    with pytest.warns(PrivacyParameterWarning, match=WEAK) as said:
        search.fit(X, np.sin(X[:, 0]))
    assert len(said) == 1


def test_rows_in_passes_are_warned_of_once_before_outputs_are_read(monkeypatch):
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("the private column was read")

    monkeypatch.setattr("cloakgp.fitting.passes.ask_chunks", measured)
    with (
        pytest.warns(PrivacyParameterWarning) as said,
        pytest.raises(AssertionError, match="was read"),
    ):
        DPGPRegressor(bounds=(-1, 1), inducing=5, **LOUD).fit_rows(ArrayRows(X, X[:, 0]))
    assert len(said) == 2


def test_the_number_of_rows_is_not_told_where_it_is_private():
    def sentences(neighbours):
        model = DPGPRegressorPrivateInputs(
            input_bounds=[(0, 10)], bounds=(-1, 1), epsilon=1.0, delta=0.05, neighbours=neighbours
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(X, np.sin(X[:, 0]))
        return [str(one.message) for one in said]

    assert sentences("add-remove") == []
    assert RISKY in sentences("replace")[0]


def test_bounds_of_private_inputs_are_looked_at():
    model = DPGPRegressorPrivateInputs(
        input_bounds=[(0.01237, 9.98123)], bounds=(-1, 1), epsilon=1.0, delta=1e-3
    )
    with pytest.warns(PrivacyParameterWarning, match="lowest and highest inputs"):
        model.fit(X, np.sin(X[:, 0]))


def test_usual_declarations_raise_no_doubt():
    assert budget_doubts(epsilon=1.0, delta=1e-4, rows=500) == ()
    assert budget_doubts(epsilon=1.0) == ()
    assert bounds_doubts([(84.6, 184.6), (-1200000, 0.001)]) == ()
    assert rates_doubts([0.999, 0.001]) == rates_doubts([1 / 4, 3 / 4]) == ()
    assert "0.2871" in rates_doubts([0.2871, 0.7129])[0]
    assert mean_doubts(None, [(0, 1)]) == mean_doubts(0.5, [(0, 1)]) == ()


@pytest.mark.parametrize("scale", [np.log, np.log1p, np.log10, np.log2, np.sqrt])
def test_bounds_may_be_declared_before_a_transform(scale):
    round_ones = [(scale(50), scale(20_000)), (scale(0.5), scale(7200)), (scale(1), scale(1e6))]
    assert bounds_doubts(round_ones) == ()
    # An amount that somebody has, and an end that was moved a little.
    for computed in (scale(32.61), scale(18_823), np.nextafter(scale(60), 9) + 1e-9):
        assert "look computed" in bounds_doubts([(0.0, float(computed))])[0]


@pytest.mark.parametrize("end", [-710.123456, 710.123456, 1e300 / 7, -1e-300 / 7])
def test_bounds_of_any_size_are_looked_at(end):
    assert "look computed" in bounds_doubts([tuple(sorted((0.0, end)))])[0]


def test_what_is_no_mean_is_refused_and_not_warned_of():
    for mean in (float("nan"), "middle"):
        with pytest.raises(ValueError, match=r"mean|could not convert"):
            DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3, mean=mean).fit(X, X[:, 0])
