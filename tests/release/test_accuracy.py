"""Accuracy by a release's own estimate: what of it declared bounds rule out."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.release.accuracy import Accuracy
from cloakgp.release.error_range import ErrorRange

ENDS = (0.0, 200.0)


def test_no_constant_guess_is_off_by_more_than_the_width_of_the_bounds():
    mean = np.array([0.0, 1e9])
    without, within = (
        Accuracy.expected("y", mean, np.ones(2), new_error=120.0, ends=ends)
        for ends in (None, ENDS)
    )
    assert without.nothing == pytest.approx(5e8)
    assert without.share == pytest.approx(1.0)
    assert within.nothing == 200.0
    assert within.share == pytest.approx(1.0 - 0.6**2)
    assert Accuracy.expected("y", mean, np.ones(2), new_error=300.0, ends=ENDS).share == 0.0


def test_clipped_values_make_a_constant_guess_no_worse_than_that():
    found = Accuracy.expected("y", np.array([0.0, 300.0]), np.ones(2), new_error=50.0, ends=ENDS)
    every = ErrorRange(within=(40.0, 60.0), with_outside=(100.0, 250.0), middle=180.0)
    counted = found.with_range(every)
    assert (counted.new_error, counted.nothing) == (180.0, 200.0)
    assert counted.share == pytest.approx(1.0 - 0.9**2)


def test_points_far_away_tell_nothing_of_constant_guesses():
    X = np.linspace(0.0, 10.0, 60)[:, None]
    model = DPGPRegressor(bounds=ENDS, epsilon=1.0, gap=0.1, insecure_seed=1)
    release = model.fit(X, 100.0 + 5.0 * X[:, 0], [[-1e12], [1e12]]).release_
    assert release.accuracy().new_error > 1e9
    assert release.accuracy().nothing == 200.0


def test_rates_may_be_beyond_the_bounds_of_counts():
    """A count in a hundredth of a year stands for a rate that is a hundred times as high."""
    X = np.linspace(0.0, 10.0, 60)[:, None]
    counts = np.full(60, 10.0)
    model = DPGPRegressor(
        bounds=(0, 20), likelihood="counts", epsilon=3.0, gap=0.1, insecure_seed=1
    )
    found = model.fit(X, counts, exposure=np.full(60, 0.01)).release_.accuracy()
    assert found.nothing > found.new_error > 20.0
    assert found.far is None
    assert model.fit(X, counts).release_.accuracy().nothing <= 20.0
