"""Stripes of the 2021 paper, section 6.5."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import stripes
from experiments.classification import Mean, Outcome, compare


def test_the_grid_has_fifty_of_each_class_wherever_the_stripes_are(rng):
    for phase in rng.uniform(0.0, 2 * stripes.STRIPE_WIDTH, size=50):
        assert stripes.striped(stripes.grid(), phase=phase).sum() == 50


def test_stripes_are_diagonal_and_of_their_width():
    along = np.linspace(0.0, 4.0, 5)[:, None] * [1.0, 1.0] + [0.5, 0.0]
    assert len(np.unique(stripes.striped(along, phase=0.0))) == 1
    across = np.column_stack([np.arange(20.0) + 0.5, np.zeros(20)])
    (changes,) = np.nonzero(np.diff(stripes.striped(across, phase=0.0)))
    np.testing.assert_array_equal(np.diff(changes), [5, 5])


def test_rows_are_noisy_and_denser_below():
    drawn = [stripes.task(seed) for seed in range(40)]
    up = np.concatenate([one.X[:, 1] for one in drawn])
    assert all(one.X.shape == (200, 2) for one in drawn)
    # P(t > 5) of density 1.75/10 (1 − t/10)^0.75.
    assert (up + 0.5 > 5.0).mean() == pytest.approx(0.5**1.75, abs=0.02)
    assert not np.array_equal(drawn[0].X, drawn[1].X)
    again = stripes.task(0)
    np.testing.assert_array_equal(again.X, drawn[0].X)
    np.testing.assert_array_equal(again.y, drawn[0].y)


def test_the_share_of_flipped_labels(monkeypatch):
    noisy = np.concatenate([stripes.task(seed).y for seed in range(40)])
    monkeypatch.setattr(stripes, "FLIPPED", 0.0)
    clean = np.concatenate([stripes.task(seed).y for seed in range(40)])
    assert (noisy != clean).mean() == pytest.approx(0.1, abs=0.015)


def test_releases_of_one_draw_differ_by_their_noise():
    method = stripes.METHODS["bayes, this kernel, nothing learned"]
    found = stripes.repeated(method, stripes.task(0), releases=2)
    assert found.shape == (2, 100)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_noisy_labels_are_flipped_as_often_as_the_rows(rng):
    truths = rng.integers(0, 2, size=(25, 100))
    shown = np.full((25, 100, 2), 0.5)
    found = stripes.with_noisy_labels(Outcome(integrated=shown, plugged=shown, truths=truths))
    assert set(np.unique(found.truths)) == {0, 1}
    assert (found.truths != truths).mean() == pytest.approx(stripes.FLIPPED, abs=0.02)
    again = stripes.with_noisy_labels(found)
    np.testing.assert_array_equal(again.truths, truths)


def test_without_privacy_accuracy_is_the_published():
    """The simulation's constants were chosen for this; it guards them."""
    shown = {stripes.NO_PRIVACY: stripes.METHODS[stripes.NO_PRIVACY]}
    found = compare(stripes.tasks(25), shown)[stripes.NO_PRIVACY]
    assert found.hits.mean() == pytest.approx(stripes.PUBLISHED[stripes.NO_PRIVACY], abs=0.03)


@pytest.mark.slow
def test_bayes_is_six_points_ahead_of_the_papers_mechanism():
    names = (stripes.PAPERS_ONE, stripes.SAME_KERNEL, stripes.DEFAULTS)
    found = compare(stripes.tasks(25), {name: stripes.METHODS[name] for name in names})
    for name in names[1:]:
        ahead = Mean.of(found[name].hits - found[stripes.PAPERS_ONE].hits)
        assert ahead.value > 0.06
        assert ahead.value > 2 * ahead.error
