"""What is said of quantiles: what was asked about values, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPQuantileRegressor
from cloakgp.report.describe import describe


@pytest.mark.parametrize("transform", [None, "log"])
def test_values_are_said_to_be_clipped_only_where_they_are(transform):
    X = np.linspace(0, 6, 30)[:, None]
    model = DPGPQuantileRegressor(
        quantiles=(0.2, 0.5),
        bounds=(1.0, 1000.0),
        epsilon=2.0,
        learn=None,
        interval=False,
        output_transform=transform,
    )
    facts = {
        fact.label: fact.text
        for section in describe(model.fit(X, np.linspace(1, 1000, 30)).release_)
        for fact in section.facts
    }
    text = " ".join(facts.values())
    assert "at or below each of 2 thresholds of their row, and not how far away." in text
    assert ("clipped" in text) == (transform is not None)
