"""Conformal margins: coverage by simulation, against exact order statistics; files and words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forging import write_forged
from scipy import stats

from cloakgp import DPGPRegressor, ReleaseFileError, extend, load
from cloakgp.fitting.margins import CELLS
from cloakgp.pages.prediction import prediction_html
from cloakgp.privacy.noise import NOISES
from cloakgp.release.margins import Margins, least_count, noise_part
from cloakgp.report.describe import describe

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

LAWS = {
    "narrow": lambda rng, n: 0.3 * np.abs(rng.normal(size=n)),
    "long tails": lambda rng, n: np.abs(rng.standard_t(2, size=n)),
    "two values": lambda rng, n: rng.choice([0.4, 1.3], size=n),
    "far off": lambda rng, n: 20.0 + rng.uniform(size=n),
}


def noise_of(name, sd, rng, size):
    if name == "laplace":
        return rng.laplace(size=size) * sd / np.sqrt(2)
    return rng.normal(size=size) * sd


def margin_of(scores, *, coverage, name, sd, rng):
    counts = np.bincount(np.searchsorted(CELLS, scores, side="left"), minlength=len(CELLS) + 1)
    return Margins(
        counts=counts + noise_of(name, sd, rng, len(counts)),
        cells=CELLS,
        rows=len(scores),
        noise_sd=sd,
        noise=NOISES[name],
    ).margin(coverage)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize(("rows", "sd"), [(60, 1.0), (400, 6.0)])
def test_intervals_hold_a_new_output_with_at_least_what_they_say(law, name, rows, sd, rng):
    """Over draws of kept rows, new rows and noise; three sds of the simulation are allowed."""
    draws = 350
    for coverage in (0.5, 0.8, 0.9):
        held = []
        for _ in range(draws):
            scores = LAWS[law](rng, rows + 20)
            margin = margin_of(scores[20:], coverage=coverage, name=name, sd=sd, rng=rng)
            held.append(np.mean(scores[:20] <= margin))
        assert np.mean(held) >= coverage - 3 * np.std(held) / np.sqrt(draws)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_noise_makes_a_margin_too_short_no_more_often_than_stated(name, rng):
    """Against the exact order statistic of the kept scores, with noise of many rows."""
    rows, coverage, draws = 300, 0.8, 4_000
    scores = np.sort(LAWS["long tails"](rng, rows))
    exact = scores[least_count(coverage, rows=rows) - 1]
    short = [
        margin_of(scores, coverage=coverage, name=name, sd=5.0, rng=rng) < exact
        for _ in range(draws)
    ]
    stated = noise_part(coverage)
    assert np.mean(short) <= stated + 3 * np.sqrt(stated / draws)


def test_the_allowance_for_noise_is_needed(monkeypatch, rng):
    """Mutation: noise is counted as if there were none."""
    monkeypatch.setattr(type(NOISES["laplace"]), "quantile_of_sum", lambda *_: 0.0)
    rows, coverage = 300, 0.8
    scores = np.sort(LAWS["long tails"](rng, rows))
    exact = scores[least_count(coverage, rows=rows) - 1]
    short = [
        margin_of(scores, coverage=coverage, name="laplace", sd=20.0, rng=rng) < exact
        for _ in range(500)
    ]
    assert np.mean(short) > 3 * noise_part(coverage)


def test_without_noise_the_margin_is_that_of_split_conformal_prediction(rng):
    scores = np.abs(rng.normal(size=999))
    for coverage in (0.5, 0.9, 0.99):
        margin = margin_of(scores, coverage=coverage, name="gaussian", sd=1e-9, rng=rng)
        level = least_count(coverage, rows=999)
        assert level == np.ceil((coverage + (1 - coverage) / 10) * 1000)
        exact = np.sort(scores)[level - 1]
        assert margin == CELLS[np.searchsorted(CELLS, exact)]


def test_more_than_the_rows_can_tell_is_infinite(rng):
    scores = np.abs(rng.normal(size=20))
    assert margin_of(scores, coverage=0.99, name="gaussian", sd=1e-9, rng=rng) == np.inf
    far = np.full(200, 99.0)
    assert margin_of(far, coverage=0.5, name="gaussian", sd=1.0, rng=rng) == np.inf


@pytest.mark.parametrize("draws", [1, 2, 5, 20])
@pytest.mark.parametrize("probability", [0.6, 0.95, 0.999])
def test_quantiles_of_sums_of_noise(draws, probability, rng):
    found = {name: law.quantile_of_sum(draws, probability) for name, law in NOISES.items()}
    # Oracle: of one draw scipy's quantiles, of several the exact law of sums of squares' roots.
    assert found["gaussian"] == pytest.approx(np.sqrt(draws) * stats.norm.ppf(probability))
    if draws == 1:
        assert found["laplace"] == pytest.approx(stats.laplace.ppf(probability) / np.sqrt(2))
    sums = rng.laplace(size=(40_000, draws)).sum(axis=1) / np.sqrt(2)
    off = 4 * np.sqrt((1 - probability) * probability / len(sums))
    assert np.mean(sums > found["laplace"]) == pytest.approx(1 - probability, abs=off)
    # Whatever the law, no more than what holds for all.
    for name, law in NOISES.items():
        assert found[name] <= super(type(law), law).quantile_of_sum(draws, probability) + 1e-9


# Releases.


def table(rows, *, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    return X, 5 + 3 * np.sin(X[:, 0]) + rng.gamma(1.0, size=rows)


@pytest.fixture(scope="module")
def model():
    settings = {"bounds": (0.5, 40.0), "epsilon": 2.0, "inducing": 12, "gap": 0.05}
    return DPGPRegressor(**settings, calibrate=0.25, insecure_seed=1).fit(*table(1_200, seed=0))


def test_rows_that_are_kept_out_are_in_one_measurement(model):
    release = model.release_
    *fitted, kept = release.measurements
    assert release.kept == len(fitted)
    assert release.n_rows == 1_200
    assert kept.strategy.n_rows == 300
    assert {one.strategy.n_rows for one in fitted} == {900}
    rows = [one.strategy.X[:, 0] for one in (fitted[0], kept)]
    assert not set(rows[0]) & set(rows[1])
    assert not release.is_calibrated
    np.testing.assert_array_equal(
        np.sort(np.concatenate(rows)), np.sort(table(1_200, seed=0)[0][:, 0])
    )


def test_intervals_of_a_release_hold_new_outputs(model):
    X, y = table(20_000, seed=1)
    widths = []
    for coverage in (0.5, 0.8, 0.9):
        lower, upper = model.predict_interval(X, coverage)
        assert np.mean((lower <= y) & (y <= upper)) > coverage - 0.02
        widths.append(np.mean(upper - lower))
    assert widths[0] < widths[1] < widths[2] < 39.0
    # As far below the prediction as above, where no bound is near.
    mean = model.predict(X)
    inner = (lower > 0.5) & (upper < 40.0)
    np.testing.assert_allclose((upper - mean)[inner], (mean - lower)[inner], rtol=1e-9)


def test_where_rows_are_too_few_intervals_are_all_within_the_bounds(model):
    lower, upper = model.predict_interval([[3.0]], 0.9999)
    assert (lower[0], upper[0]) == (0.5, 40.0)


def test_frames_and_limits_have_the_same_ends(model):
    X = np.array([[2.0], [7.0]])
    frame = model.release_.predict_frame(X, interval=[0.9, 0.95], new_output=True)
    for name, coverage in (("90", 0.9), ("95", 0.95)):
        lower, upper = model.predict_interval(X, coverage)
        np.testing.assert_array_equal(frame[f"lo_{name}"], lower)
        np.testing.assert_array_equal(frame[f"hi_{name}"], upper)
    np.testing.assert_array_equal(frame["lower"], frame["lo_95"])


def test_quantiles_and_probabilities_are_the_models(model):
    X = np.array([[2.0], [7.0]])
    plain = replace(model.release_, kept=None)
    np.testing.assert_array_equal(
        model.predict_quantile(X, [0.1, 0.9]), plain.predict_quantile(X, [0.1, 0.9])
    )
    assert not np.array_equal(model.predict_interval(X)[0], plain.predict_interval(X)[0])


def test_transformed_outputs_have_margins_in_their_units():
    X, y = table(1_200, seed=0)
    settings = {"bounds": (0.5, 40.0), "epsilon": 3.0, "inducing": 12, "gap": 0.05}
    model = DPGPRegressor(**settings, output_transform="log", calibrate=0.25, insecure_seed=1)
    lower, upper = model.fit(X, y).predict_interval(X, 0.8)
    assert np.mean((lower <= y) & (y <= upper)) > 0.75
    mean = model.predict(X)
    inner = (lower > 0.51) & (upper < 39.9)
    np.testing.assert_allclose((upper / mean)[inner], (mean / lower)[inner], rtol=1e-6)


def test_files_come_back_and_forged_ones_are_refused(model, tmp_path):
    release = model.release_
    release.save(tmp_path / "kept.cloak")
    loaded = load(tmp_path / "kept.cloak")
    X = np.array([[2.0], [7.0]])
    for one, other in zip(loaded.predict_interval(X), release.predict_interval(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.guarantee == release.guarantee
    # Of rows that are in other questions, or of another question, nothing is apart.
    *fitted, kept = release.measurements
    same = replace(kept, strategy=replace(kept.strategy, table=0))
    forged = [
        replace(release, kept=0),
        replace(release, kept=99),
        replace(release, measurements=(*fitted, same)),
    ]
    for number, one in enumerate(forged):
        path = tmp_path / f"forged{number}.cloak"
        write_forged(one, path)
        with pytest.raises(ReleaseFileError):
            load(path)


def test_later_visits_give_up_margins_and_keep_who_was_asked_what(model):
    release = model.release_
    assert release.learn().guarantee == release.guarantee
    assert release.learn().margins is not None
    X, y = table(100, seed=5)
    more = extend(release, X, y, epsilon=1.0, delta=0.0, insecure_seed=4)
    assert more.margins is None
    # A person is among the rows that were fitted or among those kept out, and maybe in the new.
    assert more.cohorts == ((0, 2), (1, 2))
    assert more.guarantee.pure_epsilon == pytest.approx(2.0 + 1.0, rel=1e-4)


def test_words_state_which_guarantee_is_meant(model):
    facts = {fact.label: fact.text for part in describe(model.release_) for fact in part.facts}
    said = facts["intervals"]
    for words in ("300 rows", "kept out of the fit", "at least 90 %", "exchangeable", "β = 1 %"):
        assert words in said
    assert "not for each kind of person" in said
    assert "asked rows that were in no other" in facts["composition"]
    assert "for a person whose output is in every one" not in facts["composition"]
    assert facts["guarantee"] == "ε = 2, with no δ."


def test_pages_that_predict_are_refused(model):
    with pytest.raises(ValueError, match="kept out"):
        prediction_html(model.release_)
