"""Pictures of plans show the expected errors of their forecasts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.plots.plans import plot_plan

X = pd.DataFrame(np.random.default_rng(1).uniform(0, 5, size=(30, 2)), columns=["age", "weight"])


def test_curves_of_all_budgets_and_maps_are_drawn():
    plan = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3).plan(X, epsilons=[0.5])
    axes = plot_plan(plan, output="height").axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["ε = 0.5", "ε = 1", "nothing asked"]
    assert axes.get_xlabel() == "age"
    weak, strong = (line.get_ydata() for line in axes.get_lines()[:2])
    assert (strong < weak).mean() > 0.9
    drawn = plot_plan(plan, vary=["age", "weight"], output="height")
    assert [each.get_ylabel() for each in drawn.axes] == ["weight", "expected error of height"]
    with pytest.raises(ValueError, match="no input size"):
        plot_plan(plan, vary=["size"])


def test_without_a_forecast_there_is_no_picture():
    plan = DPGPClassifier(classes=["a", "b"], epsilon=1.0).plan(X)
    with pytest.raises(ValueError, match="depends on the labels"):
        plot_plan(plan)
