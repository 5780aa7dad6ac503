"""Delinquent lines and default: which loans are drawn, and how far curves lie apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments import home_equity
from experiments.classification import Forecast, Task
from experiments.datasets import DatasetUnavailableError, load_hmeq


@pytest.fixture
def loans(rng):
    """Many loans, few of them late, and some whose count is not known."""
    late = rng.choice(6, p=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02], size=2000).astype(float)
    bad = (rng.uniform(size=2000) < 0.1 + 0.1 * late).astype(int)
    late[:100] = np.nan
    return pd.DataFrame({"DELINQ": late, "BAD": bad, "ROW": np.arange(2000)})


def test_loans_without_a_count_are_left_out(loans):
    found = home_equity.known(loans)
    assert len(found) == 1900
    assert found["ROW"].min() == 100


def test_the_draw_is_about_balanced(loans, rng):
    rows = home_equity.known(loans)
    found = home_equity.balanced(rows, rng=rng)
    assert len(found) == 200
    assert found["ROW"].is_unique
    assert 0.4 < found["BAD"].mean() < 0.6
    # Of 1900 loans, 60 % have no late line; of the draw, far fewer do.
    assert (found["DELINQ"] == 0).mean() < 0.3
    assert found["DELINQ"].nunique() == 6


def test_nobody_is_both_learned_from_and_judged_on(loans, monkeypatch):
    drawn = []
    balanced = home_equity.balanced

    def recorded(rows, *, rng):
        drawn.append(balanced(rows, rng=rng))
        return drawn[-1]

    monkeypatch.setattr(home_equity, "balanced", recorded)
    one, other = home_equity.tasks(loans, 2)
    assert not set(drawn[0]["ROW"]) & set(drawn[1]["ROW"])
    np.testing.assert_array_equal(one.X[:, 0], drawn[0]["DELINQ"])
    np.testing.assert_array_equal(one.y_test, drawn[1]["BAD"] == 1)
    assert not np.array_equal(one.X, other.X)


def test_distance_is_root_mean_square_over_counts():
    count = len(home_equity.COUNTS)

    def said(*positive):
        shares = np.tile(np.array(positive)[:, None], (1, count))
        probabilities = np.stack([1 - shares, shares], axis=2)
        return Forecast(integrated=probabilities, plugged=probabilities)

    task = Task(X=np.zeros((1, 1)), y=np.ones(1), X_test=np.zeros((1, 1)), y_test=np.ones(1))
    found = home_equity.Curves(
        learned=task, releases={home_equity.NO_PRIVACY: said(0.5), "one": said(0.6, 0.3)}
    )
    assert found.distance("one").value == pytest.approx((0.1 + 0.2) / 2)


def test_the_papers_probabilities_leave_the_noise_out():
    count = len(home_equity.COUNTS)
    said = Forecast(integrated=np.full((3, count, 2), 0.6), plugged=np.full((3, count, 2), 0.9))
    task = Task(X=np.zeros((1, 1)), y=np.ones(1), X_test=np.zeros((1, 1)), y_test=np.ones(1))
    found = home_equity.Curves(
        learned=task, releases=dict.fromkeys((home_equity.PAPERS, home_equity.DEFAULTS), said)
    )
    np.testing.assert_array_equal(found.probabilities(home_equity.PAPERS), np.full((3, count), 0.9))
    np.testing.assert_array_equal(
        found.probabilities(home_equity.DEFAULTS), np.full((3, count), 0.6)
    )


@pytest.mark.data
def test_what_is_missing_carries_the_label():
    """The module's docstring gives these figures."""
    try:
        loans = load_hmeq()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    missing = loans[loans["DELINQ"].isna()]
    assert len(missing) == 580
    assert round(missing["BAD"].mean(), 2) == 0.12
    assert round(home_equity.known(loans)["BAD"].mean(), 2) == 0.21
