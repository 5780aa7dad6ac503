"""When outputs are counted where they were predicted, and for which share: public numbers alone."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES, ONE_STAGE, default_stages, schedule_stages
from cloakgp.fitting.calibration import (
    FINEST,
    NOISIEST,
    calibration_share,
    choose_cells,
    choose_strata,
    noise_share,
)
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.privacy.noise import NOISES

BUDGETS = [Budget(1.0, 0.0, noise="laplace"), Budget(1.0, 1e-5), Budget(3.0, 1e-5)]


ROWS = [50, 200, 1000, 10_000, 100_000, 10**7]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_it_buys_is_precise_enough_and_no_more(budget):
    most = budget.law.shares.calibration
    asked = []
    for rows in ROWS:
        share = calibration_share(budget, rows=rows)
        assert 0 <= share <= most
        if share:
            asked.append(rows)
            [part] = split_budget(budget, shares=[share])
            noise = noise_share(part, rows=rows)
            assert noise <= NOISIEST * (1 + 1e-3)
            assert share == most or noise <= FINEST * (1 + 1e-3)
    assert asked == ROWS[-len(asked) :]
    assert 10_000 in asked
    assert 50 not in asked


def test_persons_with_many_rows_take_as_many_more():
    budget = BUDGETS[0]
    assert calibration_share(budget, rows=6000) > 0
    assert calibration_share(budget, rows=6000, largest_group=5) == 0
    alone, five = (calibration_share(budget, rows=rows * 10**5) for rows in (1, 5))
    assert calibration_share(budget, rows=5 * 10**5, largest_group=5) == pytest.approx(alone)
    assert alone > five


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("outputs", [2, 3])
def test_several_outputs_share_what_one_may_take(outputs, budget):
    most = budget.law.shares.calibration
    shares = [calibration_share(budget, rows=rows, outputs=outputs) for rows in ROWS]
    assert shares[0] == 0
    assert 0 < shares[-1] <= most
    for rows, share in zip(ROWS, shares, strict=True):
        assert share >= (calibration_share(budget, rows=rows) if share else 0)
        if share:
            [part] = split_budget(budget, shares=[share / outputs])
            assert noise_share(part, rows=rows) <= NOISIEST * (1 + 1e-3)
    steps = schedule_stages(
        DEFAULT_STAGES,
        budget=budget,
        rows=9999 * outputs,
        ask_spread=True,
        calibration=shares[-1],
        outputs=outputs,
    )
    counts = [step for step in steps if step.calibrates]
    assert list(steps[-outputs:]) == counts
    assert [step.output for step in counts] == list(range(outputs))
    power = budget.law.power
    spent = sum((budget.unit_sd() / step.budget.unit_sd()) ** power for step in steps)
    assert spent == pytest.approx(1.0, rel=1e-4)
    asked = sum((budget.unit_sd() / step.budget.unit_sd()) ** power for step in counts)
    assert asked == pytest.approx(shares[-1], rel=1e-3)


@pytest.mark.parametrize("stages", [ONE_STAGE, DEFAULT_STAGES])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_it_comes_last_and_all_parts_are_the_whole(stages, budget):
    share = calibration_share(budget, rows=6000)
    steps = schedule_stages(
        stages, budget=budget, rows=6000, ask_spread=True, spent=0.2, calibration=share
    )
    assert [step.calibrates for step in steps] == [False] * (len(steps) - 1) + [True]
    power = budget.law.power
    spent = sum((budget.unit_sd() / step.budget.unit_sd()) ** power for step in steps)
    assert spent == pytest.approx(0.8, rel=1e-4)
    assert (budget.unit_sd() / steps[-1].budget.unit_sd()) ** power == pytest.approx(
        share, rel=1e-3
    )


def test_stages_keep_what_they_have_where_spread_is_asked():
    for budget in BUDGETS:
        share = calibration_share(budget, rows=6000)
        plan = {"budget": budget, "rows": 5000, "ask_spread": True}
        with_counts = schedule_stages(DEFAULT_STAGES, **plan, calibration=share)
        without = schedule_stages(DEFAULT_STAGES, **plan)
        for one, other in zip(with_counts[:3], without[:3], strict=True):
            assert one.budget.unit_sd() == pytest.approx(other.budget.unit_sd(), rel=4e-3)
        assert without[3].budget.unit_sd() < with_counts[3].budget.unit_sd()


def test_strata_are_as_many_as_noise_allows(rng):
    means = rng.normal(size=999)
    for noise, count in [(0.001, 5), (0.0051, 4), (0.02, 4), (0.5, 4)]:
        ends, middles, shares = choose_strata(means, noise=noise)
        assert len(ends) + 1 == len(middles) == len(shares) == count
        assert shares.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(shares, 1 / count, atol=2e-3)
        assert (np.diff(middles) > 0).all()
    alike = choose_strata(np.repeat([1.0, 1.0, 2.0], 50), noise=0.001)
    np.testing.assert_array_equal(alike[1], [1.0, 2.0])
    assert len(choose_strata(np.ones(50), noise=0.001)[0]) == 0
    # Quantiles may lie between values, where nobody is.
    halves = choose_strata(np.repeat([1.0, 2.0], 50), noise=0.014)
    np.testing.assert_array_equal(halves[1], [1.0, 2.0])
    np.testing.assert_array_equal(halves[2], [0.5, 0.5])


def test_cells_are_few_where_noise_adds_up_over_them():
    coarse, fine = choose_cells(0.02), choose_cells(0.002)
    assert len(coarse) < len(fine)
    for cells in (coarse, fine):
        np.testing.assert_array_equal(cells, -cells[::-1])


def test_little_tables_and_raw_predictions_keep_the_whole_budget():
    settings = {"bounds": (0, 10), "epsilon": 4.0, "inducing": 5, "gap": 0.05, "insecure_seed": 0}
    for rows, criterion in [(90, "bayes"), (600, "trace")]:
        X = np.linspace(0.0, 10.0, rows)[:, None]
        model = DPGPRegressor(criterion=criterion, **settings)
        off = DPGPRegressor(criterion=criterion, calibrate=False, **settings)
        one, other = (each.fit(X, X[:, 0]).release_ for each in (model, off))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        assert not one.is_calibrated


def test_the_plan_counts_what_the_fit_publishes():
    X = np.linspace(0.0, 10.0, 1500)[:, None]
    model = DPGPRegressor(
        bounds=(0, 10), epsilon=4.0, inducing=5, interval=False, gap=0.05, insecure_seed=0
    )
    plan = model.plan(X, epsilons=[4.0], approximate=False)
    release = model.fit(X, X[:, 0]).release_
    assert release.is_calibrated
    assert sum(one.answers.values.size for one in release.measurements) <= plan.questions
    assert plan.guarantee.epsilon == pytest.approx(release.guarantee.epsilon)
    assert len(default_stages(NOISES["laplace"])) == plan.stages
