"""Assumptions by which no answer would tell anything: refused before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGridSearchCV,
)
from cloakgp.data import ArrayRows
from cloakgp.fitting.held import HeldTable
from cloakgp.ledger import Ledger
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask

BOUNDS = (0.0, 100.0)
X = np.linspace(0.0, 10.0, 40)[:, None]
y = 50 + 20 * np.sin(X[:, 0])
FLAT = ConstantKernel(1e-200, "fixed") * RBF(2.0, "fixed")


@pytest.fixture
def account(tmp_path, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    ledger = Ledger.create(tmp_path / "people.db")
    ledger.open_account("people", epsilon=400.0, delta=1e-3)
    yield ledger.account("people")
    ledger.close()


def used(account):
    return account.standing.used


def model(**changed):
    usual = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6}
    return DPGPRegressor(**usual | changed)


@pytest.mark.parametrize("noise", ["auto", "gaussian", "laplace"])
@pytest.mark.parametrize("interval", ["auto", False])
@pytest.mark.parametrize(
    "changed",
    [
        {"noise_variance": 1e12},
        {"noise_variance": 1e120},
        {"kernel": FLAT, "noise_variance": 25.0},
        {"kernel": FLAT, "noise_variance": 25.0, "learn": None, "stages": None},
    ],
)
def test_nothing_is_spent_where_nothing_can_be_told(account, noise, interval, changed):
    """Zeros were published as three measurements, with a guarantee that was none of theirs."""
    asked = model(noise=noise, interval=interval, **changed)
    with account, pytest.raises(ValueError, match="nothing was asked, and nothing spent"):
        asked.fit(X, y)
    assert used(account) == 0.0


@pytest.mark.parametrize("interval", ["auto", False])
def test_nor_of_rows_in_passes(account, interval):
    asked = model(noise_variance=1e13, interval=interval)
    with account, pytest.raises(ValueError, match="nothing was asked, and nothing spent"):
        asked.fit_rows(ArrayRows(X, y))
    assert used(account) == 0.0


@pytest.mark.filterwarnings("ignore:the prior mean")
def test_nor_of_counts_classes_and_several_outputs(account):
    rates = model(bounds=(0, 100), likelihood="counts", mean=1e8)
    labels = DPGPClassifier(classes=["a", "b"], epsilon=1.0, delta=1e-6, kernel=FLAT)
    several = DPGPMultiOutputRegressor(
        bounds=[BOUNDS, BOUNDS], epsilon=1.0, delta=1e-6, noise_variance=1e12
    )
    for asked, outputs in (
        (rates, np.round(y)),
        (labels, np.where(y > 50, "a", "b")),
        (several, np.column_stack([y, y])),
    ):
        with account, pytest.raises(ValueError, match="nothing was asked, and nothing spent"):
            asked.fit(X, outputs)
        assert used(account) == 0.0


KERNEL = ConstantKernel(400.0, "fixed") * RBF(1.0, "fixed")
FAR = [[1e6], [2e6]]
RATES = {"bounds": (0, 1000), "likelihood": "counts"}


def fit_far(asked, outputs, *, passes, groups=None):
    if passes:
        return asked.fit_rows(ArrayRows(X, outputs, groups=groups), FAR)
    return asked.fit(X, outputs, FAR, groups=groups)


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize(
    ("changed", "scale"),
    [({}, 1.0), ({"noise": "laplace"}, 1.0), ({"stages": "one"}, 1.0), (RATES, 10.0)],
)
def test_queries_far_from_all_rows_are_refused_before_counts(account, passes, changed, scale):
    """An interval was looked for, and the questions that followed were none."""
    asked = model(epsilon=5.0, kernel=KERNEL, **changed)
    outputs = np.round(scale * y)
    with account, pytest.raises(ValueError, match="so many lengthscales from all rows"):
        fit_far(asked, outputs, passes=passes)
    assert used(account) == 0.0


@pytest.mark.parametrize("passes", [False, True])
def test_nor_are_they_asked_of_persons_quantiles_and_several_outputs(account, passes):
    several = DPGPMultiOutputRegressor(
        bounds=[BOUNDS, BOUNDS], epsilon=5.0, delta=1e-6, kernel=RBF(1.0, "fixed")
    )
    quantiles = DPGPQuantileRegressor(
        bounds=BOUNDS, epsilon=5.0, delta=1e-6, kernel=KERNEL, quantiles=[0.5]
    )
    persons = np.arange(len(X)) // 2
    for asked, outputs, groups in (
        (several, np.column_stack([y, y]), None),
        (quantiles, y, None),
        (model(epsilon=5.0, kernel=KERNEL), y, persons),
    ):
        with account, pytest.raises(ValueError, match="so many lengthscales from all rows"):
            fit_far(asked, outputs, passes=passes, groups=groups)
        assert used(account) == 0.0


def test_a_few_rows_tell_that_others_need_not_be_looked_at(monkeypatch):
    """As of nearly every table: no design for all of its rows is made twice."""
    designed = []
    design = HeldTable.design

    def watched(table, step, *args, **kwargs):
        designed.append((len(table.X), kwargs["known"] is None))
        return design(table, step, *args, **kwargs)

    monkeypatch.setattr(HeldTable, "design", watched)
    many = np.linspace(0.0, 10.0, 300)[:, None]
    asked = model(kernel=KERNEL, epsilon=5.0, learn=None, noise="gaussian", insecure_seed=1)
    asked.fit(many, 50 + 20 * np.sin(many[:, 0]), [[2.0], [5.0]])
    assert [rows for rows, first in designed if first] == [128, 300]


def test_a_row_near_enough_is_found_among_many(account):
    rows = np.append(np.linspace(0.0, 10.0, 300), 500.0)[:, None]
    rows[[200, 300]] = rows[[300, 200]]
    asked = model(kernel=KERNEL, epsilon=5.0, stages="one", learn=None)
    with account:
        asked.fit(rows, np.full(len(rows), 50.0), [[500.5]])
    assert asked.release_.measurements[0].strategy.asks_something


def flat_grid(**changed):
    kernels = [KERNEL, ConstantKernel(1e-60, "fixed") * RBF(2.0, "fixed")]
    candidate = model(delta=1e-4, noise="gaussian", learn=None, **changed)
    return DPGridSearchCV(candidate, {"kernel": kernels}, selection_epsilon=0.5, cv=2)


@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_candidates_that_would_ask_nothing_are_refused_before_the_choice(account):
    classes = DPGPClassifier(classes=["a", "b"], epsilon=1.0, delta=1e-4, kernel=KERNEL)
    of_classes = flat_grid().set_params(estimator=classes)
    for search, outputs in ((flat_grid(), y), (of_classes, np.where(y > 50, "a", "b"))):
        with account, pytest.raises(ValueError, match=r"candidate {'kernel'.*nothing was asked"):
            search.fit(X, outputs)
        assert used(account) == 0.0


@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
def test_what_was_chosen_and_paid_for_is_returned(account, monkeypatch):
    """Of a grid, were it not seen before: that nothing is asked was then decided by a draw."""
    monkeypatch.setattr(HeldTable, "check_first", lambda *_: None)
    search = flat_grid(stages=None, interval=False)
    search.set_params(param_grid={"kernel": search.param_grid["kernel"][1:]})
    with account:
        search.fit(X, y)
    assert used(account) > 0.0
    assert search.guarantee_.selection_epsilon == 0.5
    assert not search.release_.measurements[0].strategy.asks_something


def test_a_plan_refuses_it_as_well_and_other_budgets_do_not_matter():
    with pytest.raises(ValueError, match="nothing was asked, and nothing spent"):
        model(noise_variance=1e12).plan(X)


@pytest.mark.filterwarnings("ignore:class rates with as many digits")
def test_plans_of_classes_refuse_what_fits_refuse():
    rare = DPGPClassifier(
        classes=["no", "yes"], class_rates=[1 - 1e-12, 1e-12], epsilon=0.5, delta=1e-6
    )
    for refused in (lambda: rare.plan(X), lambda: rare.fit(X, ["no"] * len(X))):
        with pytest.raises(ValueError, match="nothing was asked, and nothing spent"):
            refused()
    planned = model(noise_variance=1e4).plan(X, epsilons=[1e-5])
    assert [each.epsilon for each in planned.forecasts] == [1e-5, 1.0]


@pytest.mark.parametrize(("law", "delta"), [("gaussian", 1e-5), ("laplace", 0.0)])
@pytest.mark.parametrize("after_answers", [True, False])
def test_what_a_guarantee_counts_as_spent_is_charged(account, law, delta, after_answers):
    """Where answers decided that nothing is asked, what is claimed must not depend on them."""
    with account:
        told = ask(
            np.zeros((2, 3)),
            np.zeros(3),
            question=OutputBounds(0.0, 1.0),
            epsilon=1.0,
            delta=delta,
            noise=law,
            after_answers=after_answers,
        )
    assert told.guarantee.spent == after_answers
    if not after_answers:
        assert used(account) == 0.0
        return
    # At the δ of the account's limit.
    stated = told.guarantee.epsilon_at(1e-3)
    assert account.standing.epsilon_if_fixed == pytest.approx(stated, rel=1e-3)
