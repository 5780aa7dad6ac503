"""What a fit will take, and what is done where it would take too much, before anything is spent."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.estimates import KINDS
from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGridSearchCV,
    Release,
    SparseModelWarning,
)
from cloakgp.estimators.baselines import DPRowNoiseRegressor
from cloakgp.fitting.planning import fit_cost, plan_fit
from cloakgp.fitting.strategies import MANY_ROWS

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
# In gigabytes: room for sparse models of some hundred rows, and for exact ones of some dozens.
LITTLE, NOTHING = 5e-3, 1e-5
# Of what a fit takes, all that is not about its size.
PLAIN = {"learn": None, "stages": None, "noise": "gaussian", "gap": 0.1, **BUDGET}
# Kinds of fits that are measured whenever tests are run; the others take seconds each.
MEASURED = {"exact", "classes"}


def table(rows, *, classes=False):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(rows, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=rows)
    return X, (y > 0.5).astype(int) if classes else y


class Sealed:
    """A private column that nobody may read."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __array__(self, *_, **__):
        raise AssertionError("the private column was read")

    def __getitem__(self, _):
        raise AssertionError("the private column was read")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind not in MEASURED)) for kind in KINDS],
)
def test_estimates_hold_within_a_factor_of_two(kind):
    """Of few rows; `python -m benchmarks.estimates` says it of more."""
    assert 0.5 < KINDS[kind].share(KINDS[kind].small) < 2.0


def test_costs_grow_with_everything():
    least = fit_cost(1000, queries=100)
    assert fit_cost(2000, queries=100).memory > 3 * least.memory
    assert fit_cost(2000, queries=100).seconds > 3 * least.seconds
    assert fit_cost(1000, queries=500).memory > least.memory
    assert fit_cost(1000, queries=100, inducing=50).memory < least.memory


def test_a_table_that_does_not_fit_gets_a_sparse_model_and_says_so():
    X, y = table(600)
    model = DPGPRegressor(bounds=(-1, 1), memory=LITTLE * 4, **PLAIN)
    with pytest.warns(SparseModelWarning, match=r"exact .* 600 rows .* 60 inducing") as said:
        model.fit(X, y)
    assert {one.filename for one in said} == {__file__}
    assert isinstance(model.release_, Release)
    assert len(model.release_.prior.inducing) == 60
    assert model.predict(X[:3]).shape == (3,)


def test_a_large_one_goes_by_passes():
    X, y = table(MANY_ROWS + 10)
    model = DPGPRegressor(bounds=(-1, 1), memory=0.1, interval=False, **PLAIN)
    with pytest.warns(SparseModelWarning, match="200 inducing"):
        model.fit(X, y)
    assert isinstance(model.release_, Release)
    assert model.release_.n_rows == len(X)
    assert len(model.release_.prior.inducing) == 200


def test_there_is_no_warning_where_there_is_room_or_a_sparse_model_was_declared():
    X, y = table(600)
    DPGPRegressor(bounds=(-1, 1), memory=0.2, **PLAIN).fit(X[:50], y[:50])
    DPGPRegressor(bounds=(-1, 1), memory=LITTLE * 4, inducing=20, **PLAIN).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        DPGPRegressor(bounds=(-1, 1), memory=NOTHING, **BUDGET),
        DPGPRegressor(bounds=(-1, 1), memory=NOTHING, inducing=20, **BUDGET),
        DPGPRegressor(bounds=(-1, 1), memory=LITTLE / 3, criterion="functional", **BUDGET),
        DPGPClassifier(classes=[0, 1], memory=NOTHING, **BUDGET),
        DPGPClassifier(classes=[0, 1], memory=LITTLE / 3, criterion="newton", **BUDGET),
        DPGPMultiOutputRegressor(bounds=[(-1, 1), (0, 1)], memory=NOTHING, **BUDGET),
        DPGridSearchCV(
            DPGPRegressor(bounds=(-1, 1), memory=LITTLE / 3, **BUDGET),
            {"mean": [0.0]},
            selection_epsilon=1.0,
        ),
    ],
    ids=str,
)
def test_what_cannot_end_is_refused_before_outputs_are_read(model):
    X, _ = table(300)
    with pytest.raises(ValueError, match=r"GB .* may be used"):
        model.fit(X, Sealed(300))


def test_the_switch_comes_before_outputs_are_read():
    usual = {"memory": LITTLE * 4, "gap": 0.1, "noise": "gaussian", **BUDGET}
    for rows, model in (
        (600, DPGPRegressor(bounds=(-1, 1), **usual)),
        (600, DPGPClassifier(classes=[0, 1], **usual)),
        (300, DPGPMultiOutputRegressor(bounds=[(-1, 1), (0, 1)], **usual)),
    ):
        with (
            pytest.warns(SparseModelWarning, match="sparse one with"),
            pytest.raises((AssertionError, ValueError), match=r"was read|must have a shape"),
        ):
            model.fit(table(rows)[0], Sealed(rows))


def test_noise_on_every_row_is_refused_where_it_does_not_fit(monkeypatch):
    monkeypatch.setattr("cloakgp.utils.memory.free_memory", lambda: 1e6)
    with pytest.raises(ValueError, match="may be used: take inducing inputs or fewer rows"):
        DPRowNoiseRegressor(bounds=(-1, 1), **BUDGET).fit(table(300)[0], Sealed(300))


def test_candidates_side_by_side_take_more():
    X, y = table(120)
    search = DPGridSearchCV(
        DPGPRegressor(bounds=(-1, 1), memory=2e-3, **PLAIN),
        {"mean": [0.0, 0.1]},
        selection_epsilon=1.0,
        cv=2,
        n_jobs=2,
    )
    with pytest.raises(ValueError, match="2 are fitted at a time"):
        search.fit(X, Sealed(120))
    assert search.set_params(n_jobs=1).fit(X, y).best_estimator_.memory == 2e-3


def test_groups_keep_their_rows_and_stages_need_not():
    X, _ = table(MANY_ROWS + 10)
    model = DPGPRegressor(bounds=(-1, 1), inducing=20, memory=4.0, **BUDGET)
    assert model.plan_fit(X.shape).by_passes
    assert not model.plan_fit(X.shape, grouped=True).by_passes
    assert model.set_params(stages=[(0.3, None), (0.7, 1.0)]).plan_fit(X.shape).by_passes


def test_inducing_inputs_may_be_an_array():
    plan = plan_fit(100, n_inputs=2, inducing=np.zeros((3, 2)), memory=1.0)
    assert (np.shape(plan.inducing), plan.by_passes, plan.notice) == ((3, 2), False, "")
