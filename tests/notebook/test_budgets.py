"""A slider over budgets shows what the plan says of each, and spends nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.notebook import choose_budget

X = np.linspace(0, 1, 30)[:, None]


def test_each_budget_shows_its_row_of_the_plan():
    plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0).plan(X)
    slider, told = choose_budget(plan).children
    assert slider.value == 1.0
    head, *rows = plan.budgets()
    assert len(rows) == len(slider.options) > 1
    for (label, epsilon), row in zip(slider.options, rows, strict=True):
        slider.value = epsilon
        shown = re.findall(r"<td[^>]*>(.*?)</td>", told.value)
        assert shown == list(row)
        assert label == row[0]
    assert head[1] in told.value
    assert "nothing spent" in told.value


def test_a_plan_without_budgets_is_refused_with_its_reason():
    plan = DPGPClassifier(classes=[0, 1], epsilon=1.0).plan(X)
    with pytest.raises(ValueError, match="depends on the labels"):
        choose_budget(plan)
