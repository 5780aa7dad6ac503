"""Budgets with which no noise can be drawn as it should are refused before anything is held."""

import math

import numpy as np
import pytest
from counting_keeper import Counting

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    baselines,
    cloak,
    extend,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.fitting.bands import DEFAULT_STAGES, schedule_stages
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.budgets import LARGEST_EPSILON, SMALLEST_DELTA, SMALLEST_EPSILON, check_budget
from cloakgp.privacy.spending import counted_by

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

ROWS = 40
X = np.linspace(0, 5, ROWS)[:, None]
Y = np.sin(X).ravel()
LABELS = (Y > 0).astype(int)
BOUNDS = {"bounds": (-1.0, 1.0)}


@pytest.fixture(scope="module")
def known():
    return DPGPRegressor(**BOUNDS, epsilon=1.0, delta=1e-3).fit(X, Y).release_


FITS = {
    "numbers": lambda **spent: DPGPRegressor(**BOUNDS, **spent).fit(X, Y),
    "rows": lambda **spent: DPGPRegressor(**BOUNDS, **spent, inducing=3).fit_rows(ArrayRows(X, Y)),
    "classes": lambda **spent: DPGPClassifier(classes=[0, 1], **spent).fit(X, LABELS),
    "rows of classes": lambda **spent: DPGPClassifier(classes=[0, 1], **spent, inducing=3).fit_rows(
        ArrayRows(X, LABELS)
    ),
    "newton": lambda **spent: DPGPClassifier(classes=[0, 1], criterion="newton", **spent).fit(
        X, LABELS
    ),
    "several outputs": lambda **spent: DPGPMultiOutputRegressor(bounds=[(-1, 1)], **spent).fit(
        X, Y[:, None]
    ),
    "private inputs": lambda **spent: DPGPRegressorPrivateInputs(
        input_bounds=(0, 5), **BOUNDS, n_features=3, **spent
    ).fit(X, Y),
    "grid search": lambda **spent: DPGridSearchCV(
        DPGPRegressor(**BOUNDS, **spent), {"mean": [0.0]}, selection_epsilon=1.0, cv=2
    ).fit(X, Y),
    "choice": lambda epsilon, delta: DPGridSearchCV(
        DPGPRegressor(**BOUNDS, epsilon=1.0, delta=delta),
        {"mean": [0.0]},
        selection_epsilon=epsilon,
        cv=2,
    ).fit(X, Y),
    "histogram": lambda **spent: baselines.DPHistogramRegressor(**BOUNDS, **spent).fit(X, Y),
    "integral": lambda **spent: baselines.DPIntegralHistogramRegressor(**BOUNDS, **spent).fit(X, Y),
    "noisy mean": lambda **spent: baselines.DPMeanRegressor(**BOUNDS, **spent).fit(X, Y),
    "noise on rows": lambda **spent: baselines.DPRowNoiseRegressor(**BOUNDS, **spent).fit(X, Y),
    "cloak": lambda **spent: cloak(np.ones((1, ROWS)), Y, **BOUNDS, **spent),
}
EXTREMES = [
    (1e300, 1e-3),
    (1e300, 0.0),
    (1.0000001e10, 1e-3),
    (1e-300, 1e-3),
    (9.99e-7, 1e-3),
    (1e-300, 0.0),
    (5e-324, 0.0),
    (1.0, 5e-324),
    (1.0, 1e-300),
    (1.0, 1e-16),
]


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
@pytest.mark.parametrize("fit", FITS)
def test_extreme_budgets_are_refused_before_anything_is_held_or_drawn(fit, epsilon, delta):
    keeper = Counting()
    with counted_by(keeper), pytest.raises(ValueError, match=r"epsilon|delta"):
        FITS[fit](epsilon=epsilon, delta=delta)
    assert not keeper.costs
    assert not any(charge.held for charge in keeper.charges)


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
def test_extreme_budgets_of_later_visits_too(known, epsilon, delta):
    keeper = Counting()
    for visit in (
        lambda **spent: refine(known, Y, **spent),
        lambda **spent: extend(known, X, Y, **spent),
    ):
        with counted_by(keeper), pytest.raises(ValueError, match=r"too large|too small"):
            visit(epsilon=epsilon, delta=delta)
    assert not keeper.costs


@pytest.mark.parametrize("fit", ["numbers", "classes", "grid search", "noisy mean"])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-6, 1e-9), (1e10, 1e-3), (1.0, SMALLEST_DELTA)],
)
def test_budgets_at_the_limits_are_drawn(fit, epsilon, delta):
    FITS[fit](epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3, 1.0, 1e3, 1e10])
def test_parts_never_exceed_the_whole(epsilon, delta):
    """With ε = 1e-9 they did, by 1e-4 of μ, and with 1e-12 by 13 %."""
    steps = schedule_stages(
        DEFAULT_STAGES, budget=Budget(epsilon, delta), rows=10**6, ask_spread=True
    )
    parts = [1 / exact_noise_multiplier(step.budget.epsilon, step.budget.delta) for step in steps]
    assert math.hypot(*parts) * exact_noise_multiplier(epsilon, delta) <= 1 + 1e-15


def test_the_limits_are_said():
    for epsilon, delta, words in (
        (1e11, 0.01, "epsilon = 1.*0 is too large: give one from 1e-06 to 1e\\+10"),
        (1e-7, 0.01, "epsilon = 1e-07 is too small"),
        (1.0, 1e-16, "give at least 1e-15$"),
    ):
        with pytest.raises(ValueError, match=words):
            check_budget(epsilon, delta)
    with pytest.raises(ValueError, match="or 0 for Laplace noise"):
        check_budget(1.0, 1e-16, pure=True)
    check_budget(SMALLEST_EPSILON, SMALLEST_DELTA)
    check_budget(LARGEST_EPSILON, 0.0, pure=True)
    # Of a split budget a part may have next to no ε at its δ.
    check_budget(1e-300, 1e-17, part=True)
