"""Calibrated distributions: what counts tell, against laws that are known; files; later visits."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from forging import write_forged
from scipy import stats

from cloakgp import DPGPClassifier, DPGPRegressor, ReleaseFileError, load, refine
from cloakgp.data import ArrayRows
from cloakgp.fitting.calibration import CELLS, COARSE_CELLS
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy.questions.calibration import CalibrationQuestion, CellCounts
from cloakgp.release.calibration import CENTRE, Calibration
from cloakgp.release.new_outputs import NewNumbers
from cloakgp.release.posterior.clipped import FREEDOM
from cloakgp.report.describe import describe
from cloakgp.report.worth import accuracies, accuracy_section

LAWS = {
    "narrow": stats.norm(scale=0.15),
    "wide": stats.norm(scale=2.0),
    "skewed": stats.gamma(2, loc=-np.sqrt(2), scale=np.sqrt(0.5)),
    "long tails": stats.t(3, scale=0.6),
    "off centre": stats.norm(loc=0.5, scale=0.7),
}
LEVELS = np.array([0.05, 0.5, 0.95])


def question(middles, sizes, strata=()):
    return CalibrationQuestion(
        mean=np.zeros(2),
        sd=np.ones(2),
        cells=CELLS,
        strata=np.array(strata, dtype=float),
        middles=np.array(middles, dtype=float),
        sizes=np.array(sizes, dtype=float),
    )


def counts_of(law, rows, rng, *, noise=0.0, cells=CELLS):
    shares = np.diff(np.concatenate([[0.0], law.cdf(cells), [1.0]]))
    return rng.multinomial(rows, shares) + noise * rng.laplace(size=len(shares)) / np.sqrt(2)


@pytest.mark.parametrize("name", LAWS)
def test_many_rows_tell_the_law(name, rng):
    law, rows = LAWS[name], 200_000
    known = Calibration(
        counts=counts_of(law, rows, rng, noise=28.0)[None, :],
        question=question([0.0], [rows]),
        noise_sd=28.0,
    )
    z = known.quantiles(np.zeros(1), LEVELS)
    np.testing.assert_allclose(law.cdf(z[0]), LEVELS, atol=0.012)
    np.testing.assert_allclose(known.probabilities(np.zeros(1), z)[0], LEVELS, atol=1e-3)
    assert known.coverage_sd(0.9) < 0.004


def typical_error(known):
    ends = (-100.0, 100.0)
    new = NewNumbers(np.zeros(1), np.ones(1), declared=ends, bounds=ends, calibration=known)
    return new.typical_errors()[0]


@pytest.mark.parametrize("name", [each for each in LAWS if each != "long tails"])
@pytest.mark.parametrize(
    ("rows", "noise", "cells", "off"),
    [(200_000, 28.0, CELLS, 0.06), (1000, 4.0, CELLS, 0.06), (1000, 10.0, COARSE_CELLS, 0.12)],
)
def test_errors_are_expected_neither_too_large_nor_too_small(name, rows, noise, cells, off, rng):
    """Root mean squares over draws of rows and noise; caution would make the last ones larger."""
    law, claimed = LAWS[name], []
    for _ in range(1 if rows > 1000 else 8):
        counts = counts_of(law, rows, rng, noise=noise, cells=cells)[None, :]
        asked = replace(question([0.0], [rows]), cells=cells)
        claimed.append(typical_error(Calibration(counts, asked, noise)))
    truth = np.sqrt(law.var() + law.mean() ** 2)
    assert np.sqrt(np.mean(np.square(claimed))) == pytest.approx(truth, rel=off)


def test_errors_of_transformed_outputs_are_from_the_median_within_the_bounds():
    transform = OutputTransform("log", (1.0, 50.0))
    new = NewNumbers(
        mean=np.array([1.0, 3.0]),
        sd=np.array([0.5, 2.0]),
        declared=transform.ends,
        bounds=transform.bounds,
        transform=transform,
    )
    for mean, sd, typical in zip(new.mean, new.sd, new.typical_errors(), strict=True):
        square = stats.norm.expect(
            lambda z, m=mean: np.square(np.exp(np.clip(z, 0.0, np.log(50.0))) - np.exp(m)),
            loc=mean,
            scale=sd,
            limit=200,
        )
        assert typical == pytest.approx(np.sqrt(square), rel=1e-3)


def test_the_tails_before_any_count_are_those_of_residuals_where_noise_is_learned():
    levels = np.linspace(0.01, 0.99, 99)
    student = stats.t.ppf(levels, FREEDOM) * np.sqrt((FREEDOM - 2) / FREEDOM)
    location, log_scale, skewness, log_tail = CENTRE
    bent = np.sinh(np.exp(-log_tail) * (np.arcsinh(stats.norm.ppf(levels)) + skewness))
    np.testing.assert_allclose(location + np.exp(log_scale) * bent, student, rtol=0.03, atol=0.02)


@pytest.mark.parametrize("name", LAWS)
def test_noisy_counts_are_not_believed_too_much(name, rng):
    """Over draws intervals hold what they say, or a little more, by the sd that is stated."""
    law, rows, noise = LAWS[name], 1000, 28.0
    held, stated = [], []
    for _ in range(12):
        counts = counts_of(law, rows, rng, noise=noise)[None, :]
        known = Calibration(counts=counts, question=question([0.0], [rows]), noise_sd=noise)
        [[lower, _, upper]] = known.quantiles(np.zeros(1), LEVELS)
        held.append(law.cdf(upper) - law.cdf(lower))
        stated.append(known.coverage_sd(0.9))
    assert 0.85 < np.mean(held) < 0.97
    assert 0.4 < np.mean(stated) / np.std(held, ddof=1) < 2.5
    assert np.mean(np.array(held) < 0.9 - 2 * np.array(stated)) < 0.1


@pytest.mark.parametrize(("noise", "name"), [(3.0, "narrow"), (28.0, "off centre")])
def test_curves_are_as_unsure_as_they_say(noise, name, rng):
    """Over draws of rows and noise, at quantiles of the law; with little noise and with much."""
    law, rows, draws = LAWS[name], 1000, 25
    known = [
        Calibration(
            counts=counts_of(law, rows, rng, noise=noise)[None, :],
            question=question([0.0], [rows]),
            noise_sd=noise,
        )
        for _ in range(draws)
    ]
    at = np.searchsorted(known[0].grid, law.ppf([0.1, 0.25, 0.5, 0.75, 0.9]))
    errors = np.array([one.together - law.cdf(one.grid) for one in known])[:, at]
    stated = np.array([one.together_sd for one in known])[:, at]
    ratio = np.sqrt(np.square(stated).mean(axis=0) / np.square(errors).mean(axis=0))
    assert ratio.min() > 0.5
    assert ratio.max() < 2.0
    # Of a single stratum, both curves are one; at the ends everything is sure.
    np.testing.assert_array_equal(known[0].curves, known[0].together[None, :])
    np.testing.assert_array_equal(known[0].curves_sd, known[0].together_sd[None, :])
    assert known[0].together_sd[[0, -1]].max() < 0.1 * stated.max()


def test_strata_have_their_own_and_nothing_jumps_between_them(rng):
    rows = 20_000
    counts = np.array([counts_of(LAWS[name], rows, rng) for name in ("narrow", "wide")])
    asked = question([0.0, 10.0], [rows, rows], strata=[5.0])
    known = Calibration(counts=counts, question=asked, noise_sd=20.0)
    means = np.linspace(-1.0, 11.0, 241)
    width = np.ptp(known.quantiles(means, LEVELS[[0, 2]]), axis=1)
    assert width[0] == pytest.approx(np.ptp(LAWS["narrow"].ppf([0.05, 0.95])), rel=0.1)
    assert width[-1] == pytest.approx(np.ptp(LAWS["wide"].ppf([0.05, 0.95])), rel=0.1)
    assert (np.diff(width) > -1e-9).all()
    assert np.diff(width).max() < 0.1 * width[-1]
    # Of all rows, the curve is the mean of both, and surer than either.
    np.testing.assert_allclose(known.together, known.curves.mean(axis=0), atol=0.01)
    assert known.together_sd.max() < known.curves_sd.max(axis=1).min()


@pytest.mark.parametrize("name", ["narrow", "wide"])
@pytest.mark.parametrize("noise", [30.0, 300.0])
def test_intervals_narrow_no_further_than_noise_lets_it_be_told(name, noise, rng):
    law, rows = LAWS[name], 10_000
    counts = counts_of(law, rows, rng)[None, :]
    known, unsure = (
        Calibration(counts=counts, question=question([0.0], [rows]), noise_sd=each)
        for each in (3.0, noise)
    )
    [[lower, upper]], [[outer_lower, outer_upper]] = (
        each.quantiles(np.zeros(1), LEVELS[[0, 2]]) for each in (known, unsure)
    )
    predicted = stats.norm.ppf(0.95)
    if name == "narrow":
        assert -predicted <= outer_lower < lower < 0 < upper < outer_upper <= predicted
    else:
        # Wide ones are not held back.
        assert min(-lower, upper, -outer_lower, outer_upper) > 1.2 * predicted


def test_quantiles_are_in_order_whatever_the_counts(rng):
    for _ in range(5):
        counts = rng.normal(50.0, 100.0, size=(1, len(CELLS) + 1))
        known = Calibration(counts=counts, question=question([0.0], [1000.0]), noise_sd=100.0)
        z = known.quantiles(np.zeros(1), np.linspace(0.001, 0.999, 499))[0]
        assert (np.diff(z) >= 0).all()
        below = known.probabilities(np.zeros(1), np.linspace(-50.0, 50.0, 1001)[None, :])[0]
        assert (np.diff(below) >= 0).all()
        assert below[0] == 0.0
        assert below[-1] == 1.0


def table(rows, rng, *, scale=0.3):
    X = rng.uniform(0.0, 10.0, size=(rows, 1))
    return X, 5.0 + np.sin(X[:, 0]) + scale * (rng.gamma(1.0, size=rows) - 1.0)


SETTINGS = {"bounds": (0.0, 10.0), "epsilon": 8.0, "inducing": 10, "interval": False, "gap": 0.05}


@pytest.fixture(scope="module")
def held():
    X, y = table(1500, np.random.default_rng(2))
    release = DPGPRegressor(**SETTINGS, insecure_seed=1).fit(X, y).release_
    return release, X, y


def test_a_release_counts_and_predicts_by_the_counts(held):
    release, _, _ = held
    assert isinstance(release.measurements[release.calibration].question, CellCounts)
    X, y = table(4000, np.random.default_rng(5))
    lower, upper = release.predict_interval(X)
    assert 0.88 < np.mean((lower <= y) & (y <= upper)) < 0.97
    mean, sd = release.predict(X, return_std=True, new_output=True)
    # The sd is learned from its own question, so that intervals need no other width on the whole.
    assert np.mean(upper - lower) == pytest.approx(np.mean(2 * 1.645 * sd), rel=0.2)
    # Skewed as outputs are, and Gaussian predictions are not.
    assert np.mean(upper - mean) > 1.3 * np.mean(mean - lower)
    q = release.predict_quantile(X, [0.1, 0.5, 0.9])
    assert (np.diff(q, axis=1) >= 0).all()
    np.testing.assert_array_equal(release.predict_quantile(X, 0.5), q[:, 1])
    threshold = float(np.median(y))
    above = release.probability_above(X, threshold)
    assert np.mean(above) == pytest.approx(np.mean(y > threshold), abs=0.05)
    inside = (q[:, 2] > 0) & (q[:, 2] < 10)
    each = [release.probability_above(X[[row]], q[row, 2])[0] for row in np.flatnonzero(inside)[:9]]
    np.testing.assert_allclose(each, 0.1, atol=2e-3)


def check_limits(release, X):
    """Limits of new outputs are those of their distribution; the sd is that of the model."""
    limits = release.predict_interval(X, 0.95)
    np.testing.assert_array_equal(release.predict_limits(X, new_output=True), limits)
    frame = release.predict_frame(X, new_output=True, interval=0.95)
    for names in (["lower", "upper"], ["lo_95", "hi_95"]):
        np.testing.assert_array_equal(frame[names].T, limits)
    _, sd = release.predict(X, return_std=True, new_output=True)
    np.testing.assert_array_equal(frame["sd"], sd)


def test_limits_of_new_outputs_go_by_the_counts(held):
    release, X, _ = held
    check_limits(release, X[:50])
    mean = release.predict(X[:50])
    lower, upper = release.predict_limits(X[:50], new_output=True)
    # Skewed as outputs are, and Gaussian limits are not.
    assert np.mean(upper - mean) > 1.3 * np.mean(mean - lower)
    check_limits(release.without_learning(), X[:50])


def test_it_is_told_with_its_numbers(held):
    release, _, _ = held
    [told] = [
        fact.text
        for section in describe(release)
        for fact in section.facts
        if fact.label == "intervals"
    ]
    unsure = 196 * release.calibrated_by.coverage_sd(0.9)
    assert "the values of 1,500 rows lie around their predictions" in told
    assert float(re.search(r"up to ([\d.]+) percentage points short", told)[1]) == pytest.approx(
        unsure, rel=0.06
    )
    [bare] = [
        fact.text
        for section in describe(release.without_learning())
        for fact in section.facts
        if fact.label == "intervals"
    ]
    assert bare.startswith("not measured here")


def said_of_one_person(release):
    [told] = [fact for fact in accuracy_section(release).facts if fact.label == "for one person"]
    return told.text


def test_how_far_off_a_new_person_is_goes_by_the_counts(held):
    release, _, _ = held
    X, y = table(4000, np.random.default_rng(5))
    measured = np.sqrt(np.mean(np.square(release.predict(X) - y)))
    [told] = accuracies(release)
    without = replace(release, measurements=release.measurements[:-1], calibration=None)
    [bare] = accuracies(without)
    assert told.new_error == pytest.approx(measured, rel=0.25)
    assert bare.new_error == pytest.approx(measured, rel=0.25)
    assert bare.new_error != told.new_error
    assert "noisy counts" in said_of_one_person(release)
    assert "noisy counts" not in said_of_one_person(without)
    low, high = told.between
    assert low < told.new_error < high
    ends = f"between {low:.3g} and {high:.3g} (80 %, if distances have as smooth a law as the"
    assert ends in said_of_one_person(release)
    assert "of tables that were tried" not in said_of_one_person(release)
    assert "of tables that were tried" in said_of_one_person(without)


def test_it_is_in_the_file(held, tmp_path):
    release, X, _ = held
    release.save(tmp_path / "one.cloak")
    loaded = load(tmp_path / "one.cloak")
    assert loaded.is_calibrated
    np.testing.assert_array_equal(
        loaded.predict_quantile(X[:9], [0.2, 0.7]), release.predict_quantile(X[:9], [0.2, 0.7])
    )


@pytest.mark.parametrize("place", [-1, 0, 99])
def test_a_calibration_by_other_answers_is_refused(held, tmp_path, place):
    release, _, _ = held
    write_forged(replace(release, calibration=place), tmp_path / "one.cloak")
    with pytest.raises(ReleaseFileError, match="calibration is damaged"):
        load(tmp_path / "one.cloak")


def test_what_changes_predictions_ends_it(held):
    release, _, y = held
    again = refine(release, y, epsilon=0.5, delta=0.0, insecure_seed=3)
    assert release.is_calibrated
    assert not again.is_calibrated
    assert not release.without_learning().is_calibrated
    X = np.array([[1.0], [2.0]])
    mean, sd = again.predict(X, return_std=True, new_output=True)
    lower, upper = again.predict_interval(X, 0.8)
    np.testing.assert_allclose(upper, mean + stats.norm.ppf(0.9) * sd)
    np.testing.assert_allclose(lower, mean - stats.norm.ppf(0.9) * sd)
    np.testing.assert_allclose(
        again.probability_above(X, 5.0), stats.norm.sf(5.0, loc=mean, scale=sd)
    )


def test_predictions_and_the_guarantee_stay_what_they_are(held):
    """Nothing of what is predicted of the curve depends on the counts."""
    release, X, _ = held
    bare = replace(release, measurements=release.measurements[:-1], calibration=None)
    np.testing.assert_array_equal(
        release.predict(X[:5], return_std=True), bare.predict(X[:5], return_std=True)
    )
    assert release.guarantee.epsilon == pytest.approx(8.0, rel=1e-5)
    assert bare.guarantee.epsilon == pytest.approx(7.6, rel=1e-5)


@pytest.mark.parametrize("approximation", ["fitc", pytest.param("sor", marks=pytest.mark.slow)])
def test_rows_in_passes_are_predicted_as_new_outputs_are(approximation):
    """What was counted is where `predict` says that outputs lie."""
    X, y = table(1200, np.random.default_rng(3))
    model = DPGPRegressor(**SETTINGS, approximation=approximation, insecure_seed=1)
    release = model.fit_rows(ArrayRows(X, y, chunk_rows=500)).release_
    asked = release.measurements[release.calibration].question.of_rows(X[:20])
    mean, sd = release.predict(X[:20], return_std=True, new_output=True)
    np.testing.assert_allclose(asked.mean, mean, rtol=1e-7)
    np.testing.assert_allclose(asked.sd, sd, rtol=1e-7)
    fresh, outputs = table(4000, np.random.default_rng(5))
    lower, upper = release.predict_interval(fresh)
    assert 0.84 < np.mean((lower <= outputs) & (outputs <= upper)) < 0.97


@pytest.mark.parametrize("changes", [{"learn": "average"}, {"approximation": "dtc"}], ids=str)
def test_passes_do_not_count_where_their_predictions_are_others(changes):
    X, y = table(1200, np.random.default_rng(3))
    model = DPGPRegressor(**SETTINGS, **changes, insecure_seed=1)
    assert not model.fit_rows(ArrayRows(X, y)).release_.is_calibrated


def test_transformed_outputs_have_quantiles_in_their_units(rng):
    X = rng.uniform(0.0, 10.0, size=(1500, 1))
    y = np.exp(3.0 + 0.3 * np.sin(X[:, 0]) + 0.2 * rng.normal(size=1500))
    model = DPGPRegressor(
        bounds=(1.0, 1000.0),
        epsilon=4.0,
        inducing=10,
        gap=0.05,
        output_transform="log",
        insecure_seed=0,
    )
    release = model.fit(X, y).release_
    assert release.is_calibrated
    lower, upper = release.predict_interval(X)
    assert 0.86 < np.mean((lower <= y) & (y <= upper)) < 0.94
    above = release.probability_above(X, 20.0)
    assert np.mean(above) == pytest.approx(np.mean(y > 20.0), abs=0.05)
    assert (release.probability_above(X[:3], 2000.0) == 0).all()
    assert (release.probability_above(X[:3], 0.5) == 1).all()
    check_limits(release, X[:50])
    # How far a new person is off is told in these units, by the counts.
    [told] = accuracies(release)
    measured = np.sqrt(np.mean(np.square(release.predict(X) - y)))
    assert told.new_error == pytest.approx(measured, rel=0.1)
    assert "noisy counts" in said_of_one_person(release)
    low, high = told.between
    assert low < measured < high
    assert f"between {low:.3g} and {high:.3g}" in said_of_one_person(release)


def test_what_makes_no_sense_is_refused(held):
    release, X, _ = held
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        release.predict_interval(X, 1.0)
    with pytest.raises(ValueError, match="quantiles must lie between 0 and 1"):
        release.predict_quantile(X, [0.5, np.nan])
    with pytest.raises(ValueError, match="threshold must be a number"):
        release.probability_above(X, np.inf)
    with pytest.raises(ValueError, match="calibrate must be 'auto', False, or the share"):
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, calibrate=True).fit(X, X[:, 0] / 10)
    classes = DPGPClassifier(classes=[0, 1], epsilon=1.0).fit([[0.0], [1.0]], [0, 1]).release_
    with pytest.raises(TypeError, match="no quantiles"):
        classes.predict_interval([[0.0]])
