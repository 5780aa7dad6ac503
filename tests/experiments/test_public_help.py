"""Public predictions, right and wrong: what is dealt and spoiled, and a table of it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import progress
from experiments.public_help import ALONE, AS_INPUT, ROWS, SPOILED, Case, Dealt, PublicHelp, _ratio


def test_rows_are_dealt_to_three_kinds_of_people():
    dealt = Dealt.of("diabetes", 0, rows=60)
    parts = [dealt.X, dealt.others, dealt.X_test]
    assert [len(each) for each in parts] == [60, 60, 110]
    assert len(dealt.outputs) == len(dealt.public) == 60
    # Few patients are alike in age, weight and blood pressure.
    assert len(np.unique(np.vstack(parts), axis=0)) > 225


def test_predictions_are_spoiled_as_they_say():
    rng, right = np.random.default_rng(0), np.random.default_rng(1).normal(50, 10, size=4000)
    spoiled = {way: spoil(right, rng, 100.0) for way, spoil in SPOILED.items()}
    follows = {way: np.corrcoef(right, each)[0, 1] for way, each in spoiled.items()}
    assert follows["right"] == pytest.approx(1)
    assert follows["half right"] == pytest.approx(0.71, abs=0.03)
    assert follows["useless (permuted)"] == pytest.approx(0, abs=0.05)
    assert follows["sign flipped"] == pytest.approx(-1)
    apart = spoiled["permuted, ten times as far apart"]
    assert apart.std() == pytest.approx(10 * right.std())
    assert np.ptp(spoiled["right but for a quarter of the width"] - right) < 1e-9


def test_errors_are_told_relative_to_those_of_the_same_draws():
    case = Case("diabetes", 1.0)
    found = {(case, ALONE): [(2.0,), (4.0,)] * 3, (case, "right"): [(1.0,), (2.0,)] * 3}
    ratio, error = _ratio(found, case, "right")
    assert ratio == pytest.approx(0.5)
    assert error == pytest.approx(np.std([1, 2] * 3, ddof=1) / np.sqrt(6) / 3)


@pytest.mark.slow
def test_its_small_version_has_both_tables():
    experiment = PublicHelp(rows=40, draws=1, names=["diabetes"], epsilons=[1.0])
    every, summary = experiment.tables(experiment.compute(progress.quietly))
    assert every.row_count == 3 + len(SPOILED)
    assert summary.row_count == every.row_count - 1
    assert {AS_INPUT, ROWS} <= set(summary.columns[0].cells)
