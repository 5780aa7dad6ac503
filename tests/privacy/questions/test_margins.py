"""Counts of distances from predictions: over all neighbours, alone and in whole fits."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from band_neighbours import furthest
from laplace_neighbours import furthest as furthest_by_laplace
from neighbours import ACHIEVED_SHARE
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPRegressor
from cloakgp.fitting import margins as schedule
from cloakgp.fitting.margins import choose_kept
from cloakgp.privacy import OutputBounds, compose
from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.margins import MarginQuestion

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

ROWS = 4
# Sds with which scores overflow, and in which they vanish.
QUESTION = MarginQuestion(
    mean=np.array([0.0, 0.3, 2.0, 9.0]),
    sd=np.array([1.0, 1e-300, 1e300, 0.5]),
    within=OutputBounds(-4.0, 8.0),
    cells=np.array([0.5, 1.0, 2.0]),
)
VALUES = (-1.7e308, -1.0, -0.5, np.nextafter(0.5, 1.0), 0.3, 2.0, 8.0, 9.0, 1.7e308)


def budget_of(law):
    return {"epsilon": 1.0, "delta": 1e-4 if law == "gaussian" else 0.0}


def held(y, *, law="gaussian", groups=None):
    return ask(np.ones((1, ROWS)), y, question=QUESTION, groups=groups, noise=law, **budget_of(law))


@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0]])
@pytest.mark.filterwarnings("error")
def test_no_value_moves_counts_by_more_than_is_counted(groups):
    answers, _, spent = furthest(
        lambda y: held(y, groups=groups),
        np.zeros(ROWS),
        values=lambda _: VALUES if groups is None else (-1.7e308, 0.3, 8.0),
        together=None if groups is None else [[0, 3], [1, 2]],
    )
    least = ACHIEVED_SHARE if groups is None else 0.5
    assert least * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.values.shape == (1, 4)


def test_laplace_noise_counts_in_the_other_norm():
    tables = []
    for row in range(ROWS):
        tables.append([])
        for value in VALUES:
            y = np.zeros(ROWS)
            y[row] = value
            tables[-1].append(y)
    answers, _, spent = furthest_by_laplace(lambda y: held(y, law="laplace"), tables)
    [claimed] = answers.guarantee.laplace
    assert ACHIEVED_SHARE * claimed <= float(spent) <= claimed


def test_an_output_that_counts_in_several_cells_is_caught(monkeypatch):
    """Mutation: all cells up to that of the output."""
    right = MarginQuestion.encode
    monkeypatch.setattr(
        MarginQuestion,
        "encode",
        lambda self, y: np.cumsum(right(self, y)[:, ::-1], axis=1)[:, ::-1],
    )
    answers, _, spent = furthest(held, np.zeros(ROWS), values=lambda _: VALUES)
    assert spent > 1.2 * answers.guarantee.mu


def test_cells_hold_their_upper_ends_and_bounds_hold_what_is_beyond():
    y = np.array([1.0, 0.3, 1e308, 1e308])
    expected = np.zeros((4, 4))
    # 8 is one from 9, which is two sds; beyond the bounds nobody is.
    expected[[0, 1, 2, 3], [1, 0, 0, 2]] = 1.0
    np.testing.assert_array_equal(QUESTION.encode(y), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_outputs_are_refused_and_not_quoted(bad):
    with pytest.raises(ValueError, match="y contains") as raised:
        held([61.80339887498949, bad, 0.0, 0.0])
    assert "61.8" not in repr(raised.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"cells": np.array([0.0, 1.0])},
        {"cells": np.array([1.0, 1.0])},
        {"cells": np.zeros(0)},
        {"cells": np.array([1.0, np.inf])},
        {"sd": np.zeros(4)},
        {"mean": np.full(4, np.nan)},
        {"mean": np.zeros(3)},
    ],
    ids=str,
)
def test_questions_that_are_none_are_refused(changed):
    with pytest.raises(ValueError, match="damaged"):
        MarginQuestion(**{**vars(QUESTION), **changed}).validate()


# Whole fits: who is kept out is in one question, and nobody else is.

X = np.array([[0.1], [0.7], [1.3], [2.2], [3.9], [4.4], [4.9], [5.2]])
Y = np.array([0.5, -1.0, 3.0, 1.0, 2.0, 0.0, -2.0, 1.0])
KEPT = choose_kept(8, share=0.25, random_state=0)


def fit(y, **others):
    chosen = {
        "bounds": (-3.0, 7.0),
        "epsilon": 40.0,
        "delta": 1e-4,
        "noise": "gaussian",
        "stages": [(0.4, None), (0.6, 1.0)],
        "interval": False,
        "inducing": [[0.5], [2.0], [4.0]],
        "calibrate": 0.25,
    }
    return DPGPRegressor(4.0 * Matern(1.0, nu=1.5), **chosen | others).fit(X, y).release_


@pytest.fixture
def keeps_few(monkeypatch):
    monkeypatch.setattr(schedule, "LEAST_COVERAGE", 0.1)


@pytest.mark.usefixtures("keeps_few")
@pytest.mark.parametrize("others", [{}, {"output_transform": "log", "bounds": (0.5, 7.0)}], ids=str)
def test_a_row_moves_its_own_questions_alone_and_no_more_than_is_stated(others):
    lo, hi = others.get("bounds", (-3.0, 7.0))
    spent = []
    for rows in (np.flatnonzero(~KEPT)[:2], np.flatnonzero(KEPT)):
        release, alone, together = furthest(
            lambda y: fit(y, **others),
            np.clip(Y, lo, hi),
            values=lambda _: (lo, hi, 1.9),
            together=[[int(row)] for row in rows],
            public=lambda one: [each.answers.values for each in one.measurements],
        )
        assert release.kept == len(release.measurements) - 1
        moved = np.array(alone) > 0
        in_kept = bool(KEPT[rows[0]])
        np.testing.assert_array_equal(moved, [not in_kept] * (len(moved) - 1) + [in_kept])
        assert together <= release.guarantee.mu
        spent.append(together)
    assert max(spent) >= 0.9 * release.guarantee.mu
    # Not as if everybody were in every question.
    whole = compose(*(one.guarantee for one in release.measurements))
    assert whole.mu > 1.3 * release.guarantee.mu
    assert release.guarantee.epsilon <= 40.0 * (1 + 1e-9)
    assert isinstance(release.measurements[-1].question, MarginQuestion)


@pytest.mark.usefixtures("keeps_few")
def test_rows_that_are_asked_twice_are_caught(monkeypatch):
    """Mutation: rows that are kept out stay in the fit."""
    held_table = importlib.import_module("cloakgp.fitting.held").HeldTable
    right = held_table.keep_out
    monkeypatch.setattr(
        held_table,
        "keep_out",
        lambda self, share, **chosen: (self, right(self, share, **chosen)[1]),
    )
    release, _, spent = furthest(
        fit,
        Y,
        values=lambda _: (-3.0, 7.0),
        together=[[int(row)] for row in np.flatnonzero(KEPT)],
        public=lambda one: [each.answers.values for each in one.measurements],
    )
    assert spent > 1.1 * release.guarantee.mu


@pytest.mark.usefixtures("keeps_few")
def test_without_delta_the_guarantee_is_the_budget():
    release = fit(Y, noise="laplace", delta=0.0)
    assert release.guarantee.pure_epsilon == pytest.approx(40.0, rel=1e-5)
    assert release.guarantee.pure_epsilon <= 40.0
    assert sum(one.guarantee.pure_epsilon for one in release.measurements) > 79.0
    assert release.learn().guarantee == release.guarantee
