"""What a plan says is guaranteed is what the release states, to the digits that are told."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.privacy.guesses import right_guess
from cloakgp.report.guarantee import stated
from cloakgp.utils.formatting import percent

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning"),
]

CASES = {
    "pure": {},
    "stages of Laplace noise, with a δ": {"delta": 1e-6, "noise": "laplace", "interval": False},
    "one stage of Laplace noise, with a δ": {"delta": 1e-6, "noise": "laplace", "stages": None},
    "Gaussian": {"delta": 1e-3, "noise": "gaussian"},
    "auto": {"delta": 1e-6},
    "much δ": {"delta": 1e-2, "noise": "laplace", "interval": False},
}


def table(rows):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, size=(rows, 1))
    return X, 100 + 5 * X[:, 0] + rng.normal(size=rows)


def assert_agree(plan, guarantee):
    assert percent(plan.guess) == percent(right_guess(guarantee))
    protected = dict(plan.facts())["protected"]
    assert f"with {stated(guarantee)}." in protected


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", [60, 600])
def test_a_plan_says_what_the_release_states(case, rows):
    """Of 600 rows an interval is looked for first."""
    X, y = table(rows)
    model = DPGPRegressor(bounds=(0, 250), **{"epsilon": 1.0, "gap": 0.1, **CASES[case]})
    if rows == 600:
        # No part of what is guaranteed, and most of the time.
        model.set_params(learn=None, inducing=20)
    plan = model.plan(X, epsilons=())
    assert_agree(plan, model.fit(X, y).release_.guarantee)


@pytest.mark.parametrize("case", ["pure", "stages of Laplace noise, with a δ", "Gaussian"])
@pytest.mark.parametrize("rows", [60, 6000])
def test_so_does_a_plan_of_passes(case, rows):
    X, y = table(rows)
    settings = {"bounds": (0, 250), "epsilon": 1.0, "gap": 0.1, "inducing": 5, **CASES[case]}
    model = DPGPRegressor(**settings, learn="map" if rows == 60 else None)
    plan = model.plan(ArrayRows(X, y))
    guarantee = model.fit_rows(ArrayRows(X, y)).release_.guarantee
    # Designs decide later how many stages there are: the more, the less anybody can guess.
    assert plan.guess >= right_guess(guarantee)
    assert f"with {stated(guarantee)}." in dict(plan.facts())["protected"]


@pytest.mark.parametrize("settings", [{}, {"delta": 1e-6, "noise": "laplace"}, {"delta": 1e-3}])
def test_so_does_a_plan_of_classes(settings):
    X, y = table(60)
    labels = np.where(y > 125, "high", "low")
    model = DPGPClassifier(classes=["low", "high"], epsilon=1.0, **settings)
    plan = model.plan(X)
    release = model.fit(X, labels).release_
    if plan.guarantee is None:
        # Which noise is taken is decided later: the plan says no less than is guaranteed.
        assert plan.guess >= right_guess(release.guarantee)
    else:
        assert_agree(plan, release.guarantee)


def test_other_budgets_are_told_by_the_same_rule():
    X, _ = table(60)
    model = DPGPRegressor(bounds=(0, 250), epsilon=1.0, gap=0.1)
    plan = model.plan(X, epsilons=[0.5])
    assert [each["guess"] for each in plan.to_dict()["forecasts"]] == pytest.approx(
        [model.set_params(epsilon=spent).plan(X, epsilons=()).guess for spent in (0.5, 1.0)]
    )
