"""Citi Bike: who is ahead, whose trips, and how many bins hold any."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments import citibike, citibike_folds, citibike_verdict
from experiments.cross_validation import Errors
from experiments.datasets import DatasetUnavailableError, load_citibike


def by_budget(*means, spread=0.0):
    """Errors of two folds by budget, apart by twice the spread."""
    budgets = (None, 1.0, 0.5, 0.2)
    return {
        budget: Errors(np.array([[mean - spread], [mean + spread]]))
        for budget, mean in zip(budgets, means, strict=True)
    }


def test_the_least_errors_are_those_of_the_papers_table():
    for column, budget in enumerate(citibike.COLUMNS):
        least = [
            min(row[column][0] for key, row in citibike.PUBLISHED.items() if key.method == method)
            for method in ("cloaking", citibike.INTEGRAL)
        ]
        assert tuple(least) == citibike_verdict.PUBLISHED_LEAST[budget]


def test_the_verdict_is_by_the_best_setting_at_every_budget():
    cloaking = {"long": by_budget(5, 6, 7, 8), "short": by_budget(3, 6, 9, 20)}
    behind = {"few": by_budget(9, 9, 9, 9), "many": by_budget(4, 7, 8, 30)}
    ahead = {**behind, "few": by_budget(9, 9, 9, 7.5)}
    said = citibike_verdict.verdict_lines(cloaking, behind)
    assert said[-2].endswith("cloaking: no privacy, ε = 1, ε = 0.5, ε = 0.2.")
    said = citibike_verdict.verdict_lines(cloaking, ahead)
    assert "integral binning: ε = 0.2." in said[-3]
    assert said[-2] == "So the paper's conclusion is reversed there."
    assert "cloaking 3 s (short), integral binning 4 s (many), difference -1 s" in said[1]


def test_what_chance_could_do_is_no_verdict():
    cloaking = {"one": by_budget(5, 5, 5, 5)}
    scattered = {"one": by_budget(4, 4, 4, 4, spread=3.0)}
    said = citibike_verdict.verdict_lines(cloaking, scattered)
    assert "neither: no privacy, ε = 1, ε = 0.5, ε = 0.2." in said[-2]


def test_occupied_bins_are_counted():
    X = np.zeros((40, 4))
    X[:10] = 1.0
    X[39, 0] = 1.0
    trips = citibike_folds.Trips(X=X, durations=np.zeros(40))
    found = citibike_verdict.occupied_bins(trips, bins=2, folds=3, training=40)
    assert found == citibike_verdict.OccupiedBins(
        bins=16, occupied=3 / 16, single=pytest.approx(1 / 3), folds=3
    )


def test_subscribers_are_told_from_visitors():
    table = pd.DataFrame(np.zeros((3, 4)), columns=citibike_folds.INPUTS).assign(
        tripduration=[1.0, 2.0, 3.0], usertype=["Subscriber", "Customer", "Subscriber"]
    )
    found = citibike_folds.Trips.of(table, subscribers=True)
    assert found.durations.tolist() == [1.0, 3.0]
    assert len(citibike_folds.Trips.of(table).X) == 3


@pytest.mark.data
def test_bins_are_as_empty_as_the_paper_says():
    try:
        trips = citibike_folds.Trips.of(load_citibike(), subscribers=True)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    found = citibike_verdict.occupied_bins(trips, folds=2)
    assert found.occupied == pytest.approx(citibike_verdict.PUBLISHED_OCCUPIED, abs=0.03)
    assert found.single == pytest.approx(citibike_verdict.PUBLISHED_SINGLE, abs=0.06)
