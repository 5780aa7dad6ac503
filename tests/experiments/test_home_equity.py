"""Delinquent lines and default: which loans are drawn, and how far curves lie apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier

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


def test_counts_are_even_and_labels_as_they_are(loans, rng):
    rows = home_equity.known(loans)
    draws = [home_equity.balanced(rows, rng=rng) for _ in range(40)]
    for found in draws:
        assert len(found) == 200
        assert found["ROW"].is_unique
        # Of 1900 loans, 60 % have no late line; of the draw, far fewer do.
        assert (found["DELINQ"] == 0).mean() < 0.3
    counts = range(6)
    drawn = np.mean([home_equity.default_shares(found, counts=counts) for found in draws], axis=0)
    np.testing.assert_allclose(drawn, home_equity.default_shares(rows, counts=counts), atol=0.06)
    assert np.isnan(home_equity.default_shares(rows, counts=(99,))).all()


def test_the_latent_mode_is_scikit_learns(rng):
    X = rng.integers(0, 8, size=(60, 1)).astype(float)
    y = rng.uniform(size=60) < 0.1 + 0.1 * X[:, 0]
    points = np.arange(10.0)[:, None]
    learned = Task(X=X, y=y, X_test=points, y_test=np.zeros(10, dtype=bool))
    found = home_equity.latent_mode(learned)
    model = GaussianProcessClassifier(home_equity.KERNEL, optimizer=None).fit(X, y)
    # Beyond a half, and by how much at most: integrating over the latent variance draws it in.
    probabilities = model.predict_proba(points)[:, 1]
    assert ((found > 0) == (probabilities > 0.5)).all()
    assert (np.abs(expit(found) - 0.5) >= np.abs(probabilities - 0.5) - 1e-6).all()
    if hasattr(model, "latent_mean_and_variance"):
        np.testing.assert_allclose(found, model.latent_mean_and_variance(points)[0], atol=1e-4)


def test_latent_means_scatter_about_those_without_privacy(loans, rng):
    drawn = home_equity.balanced(home_equity.known(loans), rng=rng)
    learned = Task(
        X=drawn[["DELINQ"]].to_numpy(dtype=float),
        y=drawn["BAD"].to_numpy() == 1,
        X_test=np.arange(6.0)[:, None],
        y_test=np.zeros(6, dtype=bool),
    )
    found = home_equity.latent_means(learned, releases=40)
    assert found.private.shape == (40, 6)
    error = found.private.std(axis=0) / np.sqrt(40)
    # One Newton step from nought stops short of the mode.
    assert (np.abs(found.private.mean(axis=0) - found.reference) < 5 * error + 0.3).all()


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
        learned=task,
        releases={home_equity.NO_PRIVACY: said(0.5), "one": said(0.6, 0.3)},
        latent=home_equity.LatentMeans(reference=np.zeros(1), private=np.zeros((2, 1))),
    )
    assert found.distance("one").value == pytest.approx((0.1 + 0.2) / 2)


def test_the_papers_probabilities_leave_the_noise_out():
    count = len(home_equity.COUNTS)
    said = Forecast(integrated=np.full((3, count, 2), 0.6), plugged=np.full((3, count, 2), 0.9))
    task = Task(X=np.zeros((1, 1)), y=np.ones(1), X_test=np.zeros((1, 1)), y_test=np.ones(1))
    found = home_equity.Curves(
        learned=task,
        releases=dict.fromkeys((home_equity.PAPERS, home_equity.DEFAULTS), said),
        latent=home_equity.LatentMeans(reference=np.zeros(1), private=np.zeros((2, 1))),
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


@pytest.mark.data
def test_the_draw_keeps_the_tables_trend():
    """The shares of all loans rise from 14 to 59 % between no line and four; so do those drawn."""
    try:
        loans = home_equity.known(load_hmeq())
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(home_equity.SEED)
    draws = [home_equity.balanced(loans, rng=rng) for _ in range(20)]
    counts = range(5)
    drawn = np.mean([home_equity.default_shares(found, counts=counts) for found in draws], axis=0)
    table = home_equity.default_shares(loans, counts=counts)
    np.testing.assert_allclose(drawn, table, atol=0.07)
    assert (np.diff(table) > 0).all()
    assert np.mean([found["BAD"].mean() for found in draws]) == pytest.approx(0.5, abs=0.1)
