"""Which rows are kept out of a fit, and for whom: public numbers alone."""

from __future__ import annotations

import numpy as np
import pytest
from counting_keeper import Counting

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting.margins import CELLS, check_kept, choose_kept, kept_share
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.spending import counted_by

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")


@pytest.mark.parametrize("bad", [0.0, 0.5, 1.0, -0.1, 7, np.nan, np.inf, True, "0.1", None, "yes"])
def test_shares_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="above 0 and below"):
        kept_share(bad)
    with pytest.raises(ValueError, match="above 0 and below"):
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, calibrate=bad).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("rows", [7, 1000])
def test_as_many_rows_are_kept_as_is_said_and_all_alike(rows):
    share = 0.2
    found = np.array([choose_kept(rows, share=share, random_state=seed) for seed in range(2000)])
    assert (found.sum(axis=1) == max(round(share * rows), 1)).all()
    often = found.mean(axis=0)
    assert np.abs(often - found.mean()).max() < 5 * np.sqrt(0.16 / 2000)
    np.testing.assert_array_equal(found[3], choose_kept(rows, share=share, random_state=3))


def test_cells_end_further_and_further_out():
    assert (np.diff(CELLS) > 0).all()
    assert CELLS[0] == pytest.approx(0.1, rel=0.2)
    assert CELLS[-1] == 8.0


def test_so_few_rows_that_no_interval_can_be_told_from_all_are_refused():
    pure = Budget(1.0, 0.0, noise="laplace")
    with pytest.raises(ValueError, match="too few at this budget for intervals of 90 %"):
        check_kept(pure, rows=60)
    check_kept(pure, rows=300)
    # Oracle: without noise, as many rows as have a score for one in eleven of them.
    check_kept(Budget(1e6, 0.0, noise="laplace"), rows=12)
    with pytest.raises(ValueError, match="too few"):
        check_kept(Budget(1e6, 0.0, noise="laplace"), rows=9)


def test_nothing_is_drawn_of_a_table_that_is_too_small(monkeypatch):
    monkeypatch.setattr("cloakgp.fitting.steps.take_steps", lambda *_, **__: pytest.fail("asked"))
    X = np.linspace(0, 10, 100)[:, None]
    model = DPGPRegressor(bounds=(0, 10), epsilon=1.0, calibrate=0.1, gap=0.1, inducing=5)
    with pytest.raises(ValueError, match="keeps 10 rows out of the fit, too few"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="keeps 10 rows out of the fit, too few"):
        model.plan(X)


def test_the_plan_counts_what_the_fit_publishes_and_states_its_guarantee():
    X = np.linspace(0.0, 10.0, 500)[:, None]
    model = DPGPRegressor(
        bounds=(0, 10), epsilon=4.0, inducing=5, calibrate=0.2, gap=0.05, insecure_seed=0
    )
    plan = model.plan(X, epsilons=[4.0], approximate=False)
    release = model.fit(X, X[:, 0]).release_
    assert release.margins is not None
    assert sum(one.answers.values.size for one in release.measurements) <= plan.questions
    assert plan.guarantee.epsilon == pytest.approx(release.guarantee.epsilon)


def test_the_question_about_margins_is_counted_of_other_rows():
    """What is held is no less than what is drawn of anybody."""
    X, keeper = np.linspace(0.0, 10.0, 500)[:, None], Counting()
    model = DPGPRegressor(
        bounds=(0, 10), epsilon=4.0, noise="laplace", inducing=5, calibrate=0.2, gap=0.05
    )
    with counted_by(keeper):
        release = model.fit(X, X[:, 0]).release_
    [charge] = keeper.charges
    [[held]] = charge.held
    kept_out = [cost.epsilon for cost in keeper.costs if cost.cohort]
    fitted = [cost.epsilon for cost in keeper.costs if not cost.cohort]
    assert len(kept_out) == 1
    assert keeper.costs[-1].cohort
    assert sum(fitted) == pytest.approx(4.0, rel=1e-4)
    assert sum(kept_out) == pytest.approx(4.0, rel=1e-4)
    assert held.epsilon >= max(sum(fitted), sum(kept_out)) * (1 - 1e-9)
    assert release.guarantee.pure_epsilon == pytest.approx(4.0, rel=1e-4)


def test_tables_in_chunks_are_not_planned_either():
    rows = ArrayRows(np.zeros((9, 1)), np.zeros(9), jobs=1)
    with pytest.raises(ValueError, match="fit rows that are held"):
        DPGPRegressor(bounds=(0, 10), epsilon=4.0, calibrate=0.2).plan(rows)


def test_tables_of_many_rows_are_held():
    """Beside others, which are read in passes from 5,000 rows on."""
    X = np.linspace(0.0, 10.0, 6_000)[:, None]
    model = DPGPRegressor(bounds=(0, 10), epsilon=4.0, inducing=3, gap=0.3, stages=None, learn=None)
    assert model.plan_fit(X.shape).by_passes
    release = model.set_params(calibrate=0.1).fit(X, X[:, 0]).release_
    assert release.margins.rows == 600


def test_plans_leave_out_other_budgets_at_which_too_few_rows_are_kept_out():
    model = DPGPRegressor(
        bounds=(0, 1), epsilon=1.0, noise="laplace", calibrate=0.3, stages=None, inducing=5
    )
    X = np.linspace(0, 1, 400)[:, None]
    # 120 rows are enough at an ε of 1, and not at a half of it.
    assert [one.epsilon for one in model.plan(X).forecasts] == [1.0, 2.0, 4.0]
    with pytest.raises(ValueError, match="too few at this budget"):
        model.plan(X, epsilons=[0.1])
