"""Quantiles of rows that are read in passes, in cells: all neighbours, in every stage."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from band_neighbours import ends_of, furthest
from neighbours import ACHIEVED_SHARE
from recording import recorded

from cloakgp import DPGPQuantileRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting import gathered
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.release.gathered_strategy import CellColumns

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

LIMITS = (-3.0, 7.0)
BUDGET = {"epsilon": 1.0, "delta": 1e-4, "noise": "gaussian"}
X = np.array([[0.1], [0.1], [1.3], [1.4], [3.9], [4.4], [4.5]])
LOWEST = np.full(len(X), LIMITS[0])


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch):
    """Fewer cells than rows, so that some have several rows."""
    monkeypatch.setattr(gathered, "CELLS", 4)


def fit_of(**others):
    """Return a fit of two stages in chunks of two rows."""
    chosen = {
        "quantiles": (0.2, 0.7),
        "bounds": LIMITS,
        "stages": [(0.4, None), (0.6, None)],
        "inducing": [[0.5], [2.0], [4.0]],
        "learn": None,
        "gap": 0.1,
        **BUDGET,
    }
    model = DPGPQuantileRegressor(**chosen | others)

    def fit(y):
        return model.fit_rows(ArrayRows(X, y, chunk_rows=2, jobs=1)).release_

    return fit


def published_with(release):
    """What a release shows, but for its answers' noise."""
    return [
        (one.strategy.matrix, one.strategy.sizes, one.question.thresholds, one.answers.values)
        for one in release.measurements
    ]


@pytest.mark.parametrize(
    "others", [{}, {"quantiles": 0.5}, {"learn": "map"}, {"stages": None}], ids=str
)
def test_all_stages_together_spend_what_the_release_states(others):
    release, alone, together = furthest(
        fit_of(**others), LOWEST, values=ends_of(LIMITS), public=published_with
    )
    assert release.measurements[0].strategy.sizes.max() > 1
    assert release.n_rows == len(X)
    mus = [one.answers.guarantee.mu for one in release.measurements]
    assert len(mus) == (1 if "stages" in others else 2)
    for spent, claimed in zip(alone, mus, strict=True):
        assert ACHIEVED_SHARE * claimed <= spent <= claimed
    assert ACHIEVED_SHARE * release.guarantee.mu <= together <= release.guarantee.mu
    assert release.guarantee.mu == pytest.approx(math.sqrt(math.fsum(mu**2 for mu in mus)))


def test_an_output_that_counts_in_several_cells_is_caught(monkeypatch):
    """Mutation: an output counts in its cell between thresholds and in all above."""
    right = QuantileQuestion.encode
    monkeypatch.setattr(QuantileQuestion, "encode", lambda q, y: np.cumsum(right(q, y), axis=1))
    release, _, together = furthest(
        fit_of(stages=None, quantiles=(0.1, 0.3, 0.6, 0.8)), LOWEST, values=ends_of(LIMITS)
    )
    assert together > 1.2 * release.guarantee.mu


def test_columns_that_are_longer_than_promised_release_nothing(monkeypatch):
    right = CellColumns.__call__
    monkeypatch.setattr(CellColumns, "__call__", lambda columns, X: 1.01 * right(columns, X))
    with pytest.raises(ValueError, match="nothing was released"):
        fit_of()(LOWEST)


def test_nothing_that_is_published_holds_an_output():
    y = np.array(
        [1.2345678901, 0.987654321, 2.3456789012, -1.92837465, 5.01928374, 0.1357924, 1.12345]
    )
    release = fit_of(learn="map")(y)
    content, shown = pickle.dumps(release), repr(release) + repr(vars(release))
    for value in (*y, y.sum()):
        assert value.tobytes() not in content
        assert f"{value:.7g}" not in shown


def test_chunks_say_what_the_whole_says():
    """Oracle: the sums over cells, by the definition."""
    y = np.array([1.0, -2.0, 6.0, 0.0, 2.5, 2.5, -1.0])
    release, draws = recorded(lambda: fit_of(stages=None)(y), noise="gaussian")
    [measurement] = release.measurements
    strategy = measurement.strategy
    asked = QuantileQuestion(
        measurement.question.thresholds[strategy.cells.nearest(X)], bounds=LIMITS
    )
    expected = strategy.columns(X) @ asked.encode(y)
    np.testing.assert_allclose(measurement.answers.values, expected, atol=1e-6)
    assert len(draws) == 1
