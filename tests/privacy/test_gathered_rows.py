"""Quantiles and counts of rows in passes, in cells: all neighbours, in every stage."""

from __future__ import annotations

import importlib
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from band_neighbours import ends_of, furthest
from neighbours import ACHIEVED_SHARE
from recording import recorded

from cloakgp import DPGPQuantileRegressor, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.design.streaming import grouping
from cloakgp.fitting import gathered
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.questions.quantiles import QuantileQuestion
from cloakgp.release.gathered_strategy import CellColumns
from cloakgp.utils import passes

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

LIMITS = (-3.0, 7.0)
BUDGET = {"epsilon": 1.0, "delta": 1e-4, "noise": "gaussian"}
X = np.array([[0.1], [0.1], [1.3], [1.4], [3.9], [4.4], [4.5]])
LOWEST = np.full(len(X), LIMITS[0])
# Of counts: how much each row was counted in, and the declared bounds.
EXPOSURE = np.array([1.0, 1.1, 1.0, 3.0, 1.0, 2.0, 2.2])
COUNTED = (0, 9)
# Whose rows they are: two people have two each, in one cell and in several.
PEOPLE = ["a", "a", "b", "c", "d", "e", "b"]
# The package's functions have the names of their modules.
room = importlib.import_module("cloakgp.privacy.ask")


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch):
    """Fewer cells than rows, so that some have several rows; and few numbers of groups."""
    monkeypatch.setattr(gathered, "CELLS", 4)
    for module in (passes, room, grouping):
        monkeypatch.setattr(module, "GROUP_NUMBERS", 16)


def fit_of(*, groups=None, **others):
    """Return a fit of quantiles in two stages, in chunks of two rows."""
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
        return model.fit_rows(ArrayRows(X, y, groups=groups, chunk_rows=2, jobs=1)).release_

    return fit


def counts_of(*, groups=None, **others):
    """Return a fit of counts with exposures: outputs as they are, in bands, and their spread."""
    chosen = {
        "likelihood": "counts",
        "bounds": COUNTED,
        "stages": [(0.4, None), (0.6, 1.0)],
        "inducing": [[0.5], [2.0], [4.0]],
        "learn": None,
        "gap": 0.1,
        **BUDGET,
    }
    model = DPGPRegressor(**chosen | others)
    columns = np.column_stack([X, EXPOSURE])

    def fit(y):
        rows = ArrayRows(columns, y, groups=groups, chunk_rows=2, jobs=1)
        return model.fit_rows(rows, exposure=1).release_

    return fit


def members():
    """Return which rows are whose."""
    people = np.array(PEOPLE)
    return [np.flatnonzero(people == one).tolist() for one in dict.fromkeys(PEOPLE)]


def published_with(release):
    """What a release shows, but for its answers' noise."""
    return [
        (one.strategy.matrix, one.strategy.sizes, vars(one.question), one.answers.values)
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


@pytest.mark.parametrize("others", [{}, {"learn": "map", "epsilon": 60.0}], ids=str)
def test_counts_spend_what_the_release_states(others):
    release, alone, together = furthest(
        counts_of(**others), np.zeros(len(X)), values=ends_of(COUNTED), public=published_with
    )
    strategy = release.measurements[0].strategy
    assert strategy.sizes.max() > 1
    assert strategy.row_exposure.shape == strategy.sizes.shape
    names = [one.question.name for one in release.measurements]
    assert names == ["bounds", "bands", *["spread"] * ("learn" in others)]
    mus = [one.answers.guarantee.mu for one in release.measurements]
    for spent, claimed, name in zip(alone, mus, names, strict=True):
        # Distances from predictions are the least and the greatest for none of these values.
        assert (name != "spread") * ACHIEVED_SHARE * claimed <= spent <= claimed
    assert together <= release.guarantee.mu


@pytest.mark.parametrize(
    ("fit", "limits"), [(fit_of, LIMITS), (counts_of, COUNTED)], ids=["quantiles", "counts"]
)
def test_all_rows_of_a_person_spend_what_the_release_states(fit, limits):
    """Most who have both of their rows in one cell, where they move answers alike."""

    def values(row):
        return limits if row else (*limits, 1.9)

    release, alone, together = furthest(
        fit(groups=PEOPLE),
        np.full(len(X), float(limits[0])),
        values=values,
        together=members(),
        public=published_with,
    )
    assert all(one.strategy.grouped for one in release.measurements)
    for spent, one in zip(alone, release.measurements, strict=True):
        claimed = one.answers.guarantee.mu
        assert ACHIEVED_SHARE * claimed <= spent <= claimed
        one.validate()
    assert together <= release.guarantee.mu
    # A person of two rows has half of what one of a row has.
    strategy = release.measurements[0].strategy
    np.testing.assert_allclose(strategy.weights.sum(), len(set(PEOPLE)))


def test_people_whose_rows_count_in_full_release_nothing(monkeypatch):
    """Mutation: columns are not divided by the sizes of groups."""
    right = CellColumns.__call__
    monkeypatch.setattr(
        CellColumns, "__call__", lambda columns, X: right(replace(columns, grouped=False), X)
    )
    with pytest.raises(ValueError, match="nothing was released"):
        fit_of(groups=PEOPLE)(LOWEST)


def test_counts_by_cells_are_answered_by_the_definition():
    """Oracle: roots of counts, clipped to the band of their cell, and added up with weights."""
    y = np.array([1, 4, 0, 9, 2, 3, 8])
    release, _ = recorded(lambda: counts_of(groups=PEOPLE)(y), noise="gaussian")
    roots = OutputTransform(name="root", bounds=COUNTED).forward(y.astype(float))
    sizes = np.array([PEOPLE.count(one) for one in PEOPLE])
    bounds, bands = release.measurements
    cells = bands.strategy.cells.nearest(np.column_stack([X, np.log(EXPOSURE)]))
    lower, upper = bands.question.lower[cells], bands.question.upper[cells]
    placed = (np.clip(roots, lower, upper) - (lower + upper) / 2) / (upper - lower)
    for one, values in ((bounds, roots - bounds.question.middle), (bands, placed)):
        expected = (one.strategy.matrix[:, cells] / sizes) @ values
        np.testing.assert_allclose(one.answers.values[:, 0], expected, atol=1e-6)


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
