"""The noise of outputs most of which are at an end of their bounds."""

from dataclasses import replace

import numpy as np
import pytest

from cloakgp import DPGPRegressor, extend
from cloakgp.data import ArrayRows
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.release.common_values import HALVINGS_ALIKE
from cloakgp.release.hyperparameters.alike import AlikeOutputs, _positive_quantiles
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

NEAR = 2.0**-HALVINGS_ALIKE


def counted(outputs, *, bounds=(0.0, 1.0), noise_sd=1.0, seed=0, backwards=False):
    """Return what noisy counts tell of outputs, with the ends apart."""
    lo, hi = bounds
    inner = np.linspace(lo, hi, 17)[1:-1]
    near = NEAR * (hi - lo)
    edges = np.concatenate([[lo, lo + near], inner, [hi - near, hi]])
    counts, _ = np.histogram(outputs, bins=edges)
    noise = noise_sd * np.random.default_rng(seed).normal(size=len(counts))
    noise = noise[::-1] if backwards else noise
    answers = Answers((counts + noise)[None, :], noise_sd=noise_sd, guarantee=None)
    return AlikeOutputs.of([(edges, answers)], rows=float(len(outputs)))


def with_amounts(rows, *, share, shape, mean, rng):
    """Return outputs of which a share has an amount, and the others nothing."""
    amounts = np.minimum(rng.gamma(shape, mean / shape, size=rows), 1.0)
    return np.where(rng.random(rows) < share, amounts, 0.0)


@pytest.mark.parametrize("noise_sd", [1.0, 60.0])
def test_of_two_values_the_noise_is_that_of_a_coin(noise_sd):
    rng = np.random.default_rng(0)
    curve = 1 / (1 + np.exp(-rng.normal(size=2000)))
    outputs = (rng.random(2000) < curve).astype(np.float64)
    found = counted(outputs, noise_sd=noise_sd)
    variance, log_sd = found.noise(curve, np.zeros((2000, 2000)))
    assert variance == pytest.approx(np.mean(curve * (1 - curve)), rel=0.15)
    assert log_sd < 0.2
    # What is not known of the curve is not noise.
    less, _ = found.noise(curve, 0.03 * np.eye(2000))
    assert less == pytest.approx(variance - 0.03, rel=0.01)


@pytest.mark.parametrize("shape", [1.0, 2.0, 20.0])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_of_amounts_it_is_what_they_scatter_by(shape, share):
    outputs = with_amounts(20_000, share=share, shape=shape, mean=0.2, rng=np.random.default_rng(0))
    ratios, spreads = [], []
    for seed in range(20):
        found = counted(outputs, noise_sd=200.0, seed=seed)
        variance, log_sd = found.noise(np.full(9, outputs.mean()), np.zeros((9, 9)))
        ratios.append(0.5 * np.log(variance / outputs.var()))
        spreads.append(log_sd)
    assert abs(np.mean(ratios)) < 0.12
    # It says itself how well it knows.
    assert np.std(ratios) < 2.0 * np.mean(spreads) + 0.05


def test_a_mean_square_is_one_of_numbers_between_the_bounds():
    outputs = with_amounts(1000, share=0.2, shape=1.0, mean=0.1, rng=np.random.default_rng(1))
    for mean in (1e-9, 1e-3, 0.02, 0.5, 0.999, 1.0):
        squares, logs = counted(outputs, noise_sd=30.0)._mean_squares(max(mean, 1e-6))
        assert (squares <= max(mean, 1e-6) * (1 + 1e-9)).all()
        assert (squares >= max(mean, 1e-6) ** 2 * (1 - 1e-9)).all()
        assert np.isfinite(logs).all()


def test_either_end_and_any_unit():
    outputs = with_amounts(1000, share=0.2, shape=1.0, mean=0.1, rng=np.random.default_rng(1))
    curve = np.linspace(0.01, 0.04, 50)
    first, log_sd = counted(outputs, noise_sd=30.0).noise(curve, 1e-6 * np.eye(50))
    mirrored = counted(50.0 - 40.0 * outputs, bounds=(10.0, 50.0), noise_sd=30.0, backwards=True)
    assert not mirrored.at_lo
    other, other_sd = mirrored.noise(50.0 - 40.0 * curve, 1600e-6 * np.eye(50))
    assert other == pytest.approx(1600.0 * first, rel=1e-9)
    assert other_sd == pytest.approx(log_sd, rel=1e-9)


@pytest.mark.parametrize("level", [-0.3, -0.02, 0.0, 0.02])
def test_what_is_not_known_of_the_mean_is_not_known_of_the_noise(level):
    """Of a curve that may lie at the end, outputs may all be there, or a few be far away."""
    found = counted(np.where(np.arange(1000) < 10, 1.0, 0.0), noise_sd=30.0)
    covariance = np.full((9, 9), 0.02**2)
    variance, log_sd = found.noise(np.full(9, level), covariance)
    assert log_sd > 0.25
    assert 0.02**2 < variance < 0.05
    # The curve's own variance at a known mean is no such doubt.
    _, known = found.noise(np.full(9, 0.02), np.zeros((9, 9)))
    assert known < log_sd


def test_several_tables_tell_nothing_together():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = (rng.random(300) < 0.2).astype(np.float64)
    quick = {"epsilon": 2.0, "gap": 0.3, "insecure_seed": 0}
    first = DPGPRegressor(bounds=(0, 1), learn=None, inducing=8, **quick).fit(X, y).release_
    both = extend(first, X + 1.0, rng.uniform(size=300), **quick)
    assert AlikeOutputs.counted(first.measurements) is not None
    assert AlikeOutputs.counted(both.measurements) is None
    assert "in one of these tables may be the same, or one" in as_text(
        [*describe(both)], width=10_000
    )


@pytest.mark.parametrize("level", [1.5, -1.5])
def test_a_mean_far_outside_of_the_bounds_counts_as_near_them(level):
    found = counted(np.where(np.arange(1000) < 10, 1.0, 0.0), noise_sd=30.0)
    near, far = (
        found.noise(np.full(5, one), 1e-4 * np.ones((5, 5)))[0] for one in (np.sign(level), level)
    )
    assert np.isfinite(far)
    assert 0.0 < far < 10.0 * max(near, 1e-3)
    quantiles = _positive_quantiles(level, sd=0.01)
    assert np.abs(quantiles - (1.0 if level > 0 else 0.0)).max() < 0.03


@pytest.mark.parametrize("corner", [(0.0, 0.02), (0.98, 1.0)])
def test_the_range_goes_by_rows_and_not_by_where_predictions_are_asked(corner):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = (rng.random(300) < 0.9 * X[:, 0] ** 4).astype(np.float64)
    quick = {"epsilon": 3.0, "gap": 0.3, "learn": "map", "inducing": 8, "insecure_seed": 0}
    release = DPGPRegressor(bounds=(0, 1), **quick).fit(X, y, np.array(corner)[:, None]).release_
    assert release.counts_tell_noise
    points = release.measurements[0].strategy.X_query
    multiple, log_sd = release._noise_by_counts(points)
    assert multiple == pytest.approx(1.0, abs=0.05)
    assert log_sd < 0.5
    # Whatever a file claims, the range is where the counts have it.
    less = [
        replace(one, prior=replace(one.prior, noise_variance=one.prior.noise_variance / 9.0))
        for one in release.learned
    ]
    assert replace(release, learned=tuple(less))._noise_by_counts(points)[0] > 4.0


def test_rows_that_tell_margins_are_no_other_table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 1))
    y = (rng.random(400) < 0.2).astype(np.float64)
    quick = {"epsilon": 2.0, "gap": 0.3, "inducing": 8, "insecure_seed": 0}
    release = DPGPRegressor(bounds=(0, 1), calibrate=0.4, **quick).fit(X, y).release_
    assert AlikeOutputs.counted(release.measurements) is not None
    assert "in one of these tables" not in as_text([*describe(release)], width=10_000)


def test_others_than_the_ends_tell_nothing():
    rng = np.random.default_rng(0)
    assert counted(rng.uniform(size=500)) is None
    assert counted(np.where(rng.random(500) < 0.3, 0.0, rng.uniform(size=500))) is None
    signed = np.where(rng.random(500) < 0.8, 0.0, rng.uniform(-1, 1, size=500))
    edges = np.array([-1.0, -1.0 + NEAR, -0.5, -NEAR, NEAR, 0.5, 1 - NEAR, 1.0])
    counts, _ = np.histogram(signed, bins=edges)
    answers = Answers(counts[None, :].astype(np.float64), noise_sd=1.0, guarantee=None)
    assert AlikeOutputs.of([(edges, answers)], rows=500.0) is None
    assert AlikeOutputs.of([], rows=500.0) is None
    # Nor do three values, of which one is between.
    three = np.repeat([-1.0, 0.0, 1.0], [210, 200, 90])
    counts, _ = np.histogram(three, bins=edges)
    answers = Answers(counts[None, :].astype(np.float64), noise_sd=1.0, guarantee=None)
    assert AlikeOutputs.of([(edges, answers)], rows=500.0) is None
    assert counted(np.zeros(500)).bounds == OutputBounds(0.0, 1.0)


@pytest.mark.parametrize("read", ["held", pytest.param("in passes", marks=pytest.mark.slow)])
def test_errors_of_rare_ones_are_told(read):
    """By distances of all they were a third of what they are."""
    ratios = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(500, 1))
        y = (rng.random(500) < 0.2 * X[:, 0]).astype(np.float64)
        model = DPGPRegressor(bounds=(0, 1), epsilon=2.0, delta=1e-6, insecure_seed=seed)
        if read == "in passes":
            release = model.fit_rows(ArrayRows(X, y, chunk_rows=300)).release_
        else:
            release = model.fit(X, y).release_
        told = release.accuracy()
        error = np.sqrt(np.mean((y - release.predict(X)) ** 2))
        ratios.append(error / told.new_error)
        assert told.between[0] < error < told.between[1]
        assert told.between[0] < told.new_error < told.between[1]
    assert 0.75 < np.mean(ratios) < 1.3


def test_nothing_is_calibrated_where_most_are_alike():
    """Counts in cells of smooth laws told a third of the errors of rare ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 1))
    quick = {
        "bounds": (0, 1),
        "epsilon": 3.0,
        "delta": 1e-7,
        "gap": 0.3,
        "inducing": 10,
        "insecure_seed": 0,
    }
    uniform = DPGPRegressor(**quick).fit(X, rng.uniform(size=2000)).release_
    rare = DPGPRegressor(**quick).fit(X, (rng.random(2000) < 0.1).astype(float)).release_
    assert (uniform.is_calibrated, rare.is_calibrated) == (True, False)
    # What it would have taken the other questions have.
    assert rare.guarantee.epsilon_at(1e-7) == pytest.approx(3.0, rel=1e-5)


@pytest.mark.parametrize("given", [0.04, 0.0])
@pytest.mark.parametrize("learn", [None, "map"])
def test_noise_that_is_given_stays(given, learn):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    y = (rng.random(200) < 0.2).astype(np.float64)
    model = DPGPRegressor(
        bounds=(0, 1), epsilon=2.0, noise_variance=given, learn=learn, insecure_seed=0
    )
    release = model.fit(X, y).release_
    assert AlikeOutputs.counted(release.measurements) is not None
    assert release.fitted_prior.noise_variance == given


def test_of_logarithms_the_range_is_wide():
    """Of errors in output units a law of logarithms says too little."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    y = np.where(rng.random(300) < 0.2, 1000.0, 1.0)
    model = DPGPRegressor(
        bounds=(1, 1000), epsilon=1.0, gap=0.3, output_transform="log", insecure_seed=0
    )
    release = model.fit(X, y).release_
    assert release.counts_tell_noise
    low, high = release.accuracy().between
    assert low < np.sqrt(np.mean((release.predict(X) - y) ** 2)) < high
    text = as_text([*describe(release)], width=10_000)
    assert "the values themselves may be several times as far as is told" in text


def test_later_visits_keep_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 1))
    y = (rng.random(500) < 0.1 + 0.3 * X[:, 0]).astype(np.float64)
    model = DPGPRegressor(bounds=(0, 1), epsilon=2.0, delta=1e-6, insecure_seed=0).fit(X, y)
    first = model.release_.fitted_prior.noise_variance
    assert first == pytest.approx(0.1875, rel=0.2)
    model.refine(y, X[:20], epsilon=1.0, delta=1e-7, insecure_seed=1)
    assert model.release_.fitted_prior.noise_variance == pytest.approx(first, rel=0.2)
