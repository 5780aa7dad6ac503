"""Rounds of questions about whole rows: what each may see, and what bands do."""

import numpy as np
import pytest

from cloakgp.fitting import whole_rows
from cloakgp.fitting.whole_rows import (
    SHARES,
    default_features,
    hold_far_outputs,
    middle_and_sd,
    release_whole_rows,
)
from cloakgp.models.features import InputBox
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.statistics import NEIGHBOURS
from cloakgp.privacy.tally import tallied


def table(rng, rows=400):
    X = rng.uniform(size=(rows, 2)) * [10.0, 1.0]
    return X, 50 + 3 * np.sin(X[:, 0]) + 2 * X[:, 1] + rng.normal(size=rows)


def released(X, y, **changes):
    given = {
        "box": InputBox((0.0, 0.0), (10.0, 1.0)),
        "bounds": OutputBounds(0.0, 100.0),
        "epsilon": 1.0,
        "delta": 1e-5,
        "neighbours": "replace",
        "features": 20,
        "insecure_seed": 1,
        **changes,
    }
    return release_whole_rows(X, y, **given)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_all_draws_together_cost_what_was_given(neighbours):
    X, y = table(np.random.default_rng(0))
    with tallied() as drawn:
        release = released(X, y, neighbours=neighbours, insecure_seed=None)
    spent = np.sqrt(sum(cost.mu**2 for cost in drawn))
    assert len(drawn) == len(SHARES) == len(release.parts)
    assert sum(SHARES) == pytest.approx(1)
    assert 0.9999 <= spent * exact_noise_multiplier(1.0, 1e-5) <= 1.0
    assert release.guarantee.epsilon <= 1.0
    assert release.guarantee.delta_at(1.0) <= 1e-5
    shares = [part.guarantee.mu**2 / spent**2 for part in release.parts]
    np.testing.assert_allclose(shares, SHARES, rtol=1e-3)


def test_outputs_beyond_the_declared_bounds_count_as_at_them():
    """The first band may reach beyond these."""
    X, y = table(np.random.default_rng(3))
    y = np.where(np.arange(len(y)) % 2, 5.0, 95.0)
    clipped, beyond = y.copy(), y.copy()
    clipped[:8], beyond[:8] = 100.0, 1e6
    one, other = released(X, clipped), released(X, beyond)
    assert one.statistics.bounds[1] > 100.0
    np.testing.assert_array_equal(one.statistics.moments, other.statistics.moments)
    np.testing.assert_array_equal(one.weights[0], other.weights[0])


def test_questions_depend_on_rows_through_answers_alone(monkeypatch):
    """With the noise of another table's sums put in, all that is asked and released is equal."""
    rng = np.random.default_rng(1)
    kept = []

    def remember(integers, **_):
        kept.append(integers)
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_insecure_gaussian", remember)
    one = released(*table(rng))
    answers = iter(kept)
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_insecure_gaussian", lambda *_, **__: next(answers)
    )
    other = released(*table(rng))
    points = rng.uniform(size=(20, 2)) * [10.0, 1.0]
    np.testing.assert_array_equal(one.predict(points), other.predict(points))
    assert [part.half_width for part in one.residuals] == [
        part.half_width for part in other.residuals
    ]


def test_bands_close_in_on_what_is_left():
    """Outputs have an sd of 2.4 within 0 to 100, and residuals one of 1."""
    X, y = table(np.random.default_rng(2), rows=4000)
    release = released(X, y, epsilon=5.0)
    widths = [part.half_width for part in release.residuals]
    assert release.statistics.bounds[1] - release.statistics.bounds[0] < 30
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 6
    # A declared noise variance is kept.
    assert released(X, y, noise_variance=7.0).noise_variance == 7.0


def test_rounds_predict_better_than_the_first_alone():
    rng, errors = np.random.default_rng(3), []
    for seed in range(5):
        X, y = table(rng, rows=1500)
        release = released(X[:1000], y[:1000], insecure_seed=seed)
        first = type(release)(
            basis=release.basis,
            statistics=release.statistics,
            noise_variance=release.noise_variance,
            counts=release.counts,
        )
        errors.append(
            [np.mean((one.predict(X[1000:]) - y[1000:]) ** 2) for one in (first, release)]
        )
    first, rounds = np.mean(errors, axis=0)
    assert rounds < 0.95 * first


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_tiny_tables_have_finite_predictions(rows, neighbours):
    X, y = table(np.random.default_rng(4), rows=rows)
    mean, sd = released(X, y, neighbours=neighbours, epsilon=0.1).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0).all()


def test_the_number_of_features_grows_with_inputs():
    assert [default_features(count) for count in (1, 39, 40, 500)] == [40, 40, 41, 200]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_outputs_that_few_have_are_not_lost_beyond_a_band(neighbours):
    """Nine in ten have nothing: between quantiles outputs lie in a part of one bin."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(2000, 2)) * [10.0, 1.0]
    y = np.where(rng.uniform(size=2000) < 0.9, 0.0, rng.uniform(0, 100, 2000))
    release = released(X, y, epsilon=3.0, neighbours=neighbours)
    points = release.even_inputs
    lower, upper = release.predict_limits(points)
    error = release.accuracy().error
    # All of them had been predicted at 0.4, and told to .3.
    assert np.mean((lower <= 5.0) & (upper >= 5.0)) > 0.9
    assert 0.3 < np.sqrt(np.mean((release.predict(points) - 5.0) ** 2)) < 1.5 * error
    low, high = release.predict_interval(points, 0.9)
    new = np.where(rng.uniform(size=len(points)) < 0.9, 0.0, rng.uniform(0, 100, len(points)))
    assert np.mean((low <= new) & (new <= high)) > 0.85


def test_a_band_is_as_narrow_as_before_where_outputs_are_spread():
    counts = released(*table(np.random.default_rng(0), rows=3000)).counts
    centre, sd = middle_and_sd(counts)
    assert hold_far_outputs(counts, centre=centre, half_width=2.5 * sd, sd=sd) == 2.5 * sd


def test_errors_know_of_a_mean_that_counts_refute(monkeypatch):
    """With bands that lose them, the error says how far off predictions are at least."""
    monkeypatch.setattr(
        whole_rows, "hold_far_outputs", lambda _counts, *, half_width, **_others: half_width
    )
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(2000, 2)) * [10.0, 1.0]
    y = np.where(rng.uniform(size=2000) < 0.9, 0.0, rng.uniform(0, 100, 2000))
    release = released(X, y, epsilon=3.0)
    assert release.predict(release.even_inputs).mean() < 1.0
    found = release.accuracy()
    assert found.error > 3.0
    assert found.new_error > 3.0
