"""Estimators that are sent to other processes: what of the account they have with them."""

from __future__ import annotations

import copy
import inspect
import pickle
import time

import joblib
import numpy as np
import pytest
from counting_keeper import Counting
from sklearn.base import BaseEstimator, clone

import cloakgp.baselines
from cloakgp import DPGPRegressor, DPGridSearchCV, estimators
from cloakgp.estimators.sent import SentMixin
from cloakgp.privacy import sent, spending
from cloakgp.privacy.sent import VALID
from cloakgp.privacy.spending import SpendingError, counted_by

X = np.linspace(0, 10, 30)[:, None]
y = X[:, 0] / 10
MODEL = DPGPRegressor(bounds=(0, 1), epsilon=0.05, delta=1e-7, learn=None, stages=None)
CLASSES = [
    value
    for module in (estimators, cloakgp.baselines)
    for name in module.__all__
    if inspect.isclass(value := getattr(module, name)) and issubclass(value, BaseEstimator)
]
# Of private outputs, for questions of nothing but public inputs and releases.
ARE_GIVEN_OUTPUTS = {"fit", "fit_rows", "refine", "extend"}


class Sendable(Counting):
    def directions(self):
        return {"account": "people"}


@pytest.fixture
def keeper(monkeypatch):
    made = Sendable()

    class Entry:
        def load(self):
            return lambda *_, **__: made

    monkeypatch.setattr(spending, "entry_points", lambda **_: [Entry()])
    return made


def received(model, monkeypatch):
    """The model as another process has it, sent from within a block."""
    with counted_by(Sendable()):
        content = pickle.dumps(model)
    monkeypatch.setattr(spending, "_STARTED", 0)
    return pickle.loads(content)


def test_outside_of_blocks_nothing_is_added():
    model = clone(MODEL)
    assert model.__getstate__() == model.__dict__
    assert b"ticket" not in pickle.dumps(model)


def test_a_copy_in_the_same_process_has_no_ticket():
    model = clone(MODEL)
    with counted_by(Sendable()):
        copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model)
        assert b"ticket" in pickle.dumps(model)
    assert [vars(each).keys() for each in (model, *copies)] == [vars(MODEL).keys()] * 4


@pytest.mark.parametrize("prepare", [lambda model: model, clone, copy.deepcopy])
def test_fits_of_what_was_sent_count_and_those_of_its_copies(prepare, keeper, monkeypatch):
    prepare(received(MODEL, monkeypatch)).fit(X, y)
    (charge,) = keeper.charges
    assert charge.ended == "committed"
    assert charge.spender.epsilon == MODEL.epsilon


@pytest.mark.parametrize(
    "prepare",
    [
        lambda model: model,
        clone,
        copy.copy,
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
    ],
)
def test_copies_of_what_was_sent_long_ago_are_refused_as_it_is(prepare, keeper, monkeypatch):
    model = received(MODEL, monkeypatch)
    later = time.time() + VALID + 1
    monkeypatch.setattr(sent.time, "time", lambda: later)
    with pytest.raises(SpendingError, match="more than a day ago"):
        prepare(model).fit(X, y)
    assert keeper.charges == []


def test_results_that_are_kept_by_an_estimator_are_found_again_in_its_block(tmp_path):
    """A cache that missed would fit again, and spend again."""
    counting = Sendable()
    kept = joblib.Memory(tmp_path, verbose=0).cache(fitted)
    with counted_by(counting):
        first = joblib.hash(MODEL)
        kept(clone(MODEL), X, y)
        kept(clone(MODEL), X, y)
        assert joblib.hash(MODEL) == joblib.hash(clone(MODEL)) == first
    assert len(counting.charges) == 1


def fitted(model, X, y):
    return model.fit(X, y)


def test_a_choice_that_was_sent_counts_once(keeper, monkeypatch):
    search = DPGridSearchCV(MODEL, {"noise_variance": [0.01, 0.1]}, selection_epsilon=0.05, cv=2)
    received(search, monkeypatch).fit(X, y)
    assert len(keeper.charges) == 1


@pytest.mark.usefixtures("keeper")
def test_noise_from_a_seed_is_refused_for_what_was_sent(monkeypatch):
    seeded = received(clone(MODEL).set_params(insecure_seed=3), monkeypatch)
    with pytest.raises(SpendingError, match="insecure_seed"):
        seeded.fit(X, y)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_method_that_is_given_outputs_goes_by_the_ticket(kind):
    assert issubclass(kind, SentMixin)
    methods = {name: getattr(kind, name) for name in ARE_GIVEN_OUTPUTS if hasattr(kind, name)}
    assert "fit" in methods
    for method in methods.values():
        names = []
        while method is not None:
            names.append(method.__code__.co_qualname)
            method = getattr(method, "__wrapped__", None)
        assert "charged_as_sent.<locals>.charged" in names
