"""The regressor of several outputs: units, guarantee, files."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from forging import write_forged
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from unit_neighbours import spent_over_units

from cloakgp import DPGPRegressor
from cloakgp.estimators.multioutput import DPGPMultiOutputRegressor
from cloakgp.privacy.several_outputs import OutputColumns
from cloakgp.release import ReleaseFileError
from cloakgp.release.several_outputs import MultiOutputRelease
from cloakgp.report.describe import describe
from cloakgp.utils.formatting import NORMAL_95

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

PAIRS = [(70.0, 130.0), (-2.0, 2.0)]


@pytest.fixture
def table():
    X = np.linspace(0, 10, 20)[:, None]
    return X, np.column_stack([100 + 20 * np.sin(X), np.cos(X)])


def regressor(**settings):
    chosen = {"bounds": PAIRS, "epsilon": 1.0, "delta": 1e-3, "noise": "gaussian", **settings}
    return DPGPMultiOutputRegressor(**chosen)


def test_predictions_are_in_the_units_of_each_output(table):
    X, y = table
    model = regressor(epsilon=1000.0, insecure_seed=0)
    model.fit(np.repeat(X, 3, axis=0), np.repeat(y, 3, axis=0))
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (20, 2)
    assert np.abs(mean - y).mean(axis=0)[0] < 3.0
    assert np.abs(mean - y).mean(axis=0)[1] < 0.2
    assert model.score(X, y) > 0.8


def test_independent_outputs_are_two_independent_posteriors(table):
    """With B = I, given the answers, against dense algebra on each entry."""
    X, y = table
    kernel = 0.06 * RBF(2.0)
    settings = {"noise_variance": 0.01, "learn": None, "stages": None}
    model = regressor(kernel=kernel, insecure_seed=1, **settings).fit(X, y)
    (one,) = model.release_.entries.measurements
    prior = np.kron(kernel(X), np.eye(2))
    R = one.strategy.matrix
    covariance = R @ (prior + 0.01 * np.eye(40)) @ R.T
    covariance += one.answers.noise_sd**2 * np.eye(len(R))
    expected = prior @ R.T @ np.linalg.solve(covariance, one.answers.values[:, 0])
    shares = (model.predict(X) - [100.0, 0.0]) / [60.0, 4.0]
    np.testing.assert_allclose(shares.ravel(), expected, atol=1e-9)


def test_one_output_is_as_ever(table):
    X, y = table
    kernel = RBF(2.0)
    settings = {"noise_variance": 0.01, "learn": None, "stages": None}
    joint = regressor(bounds=[(-2, 2)], kernel=0.06 * kernel, **settings)
    alone = DPGPRegressor(
        16 * 0.06 * kernel,
        0.16,
        bounds=(-2, 2),
        epsilon=1.0,
        delta=1e-3,
        noise="gaussian",
        learn=None,
        stages=None,
    )
    joint_sd = joint.fit(X, y[:, 1:]).predict(X, return_std=True)[1][:, 0]
    alone_sd = alone.fit(X, y[:, 1]).predict(X, return_std=True)[1]
    np.testing.assert_allclose(joint_sd, alone_sd, rtol=1e-2)


@pytest.mark.parametrize("people", [None, ["a", "b", "a", "c"]])
def test_no_person_spends_more_than_claimed(people):
    X = np.arange(4.0)[:, None]
    y = np.array([[80.0, 0.0], [90.0, 1.0], [100.0, -1.0], [120.0, 3.0]])
    numbers = np.arange(4) if people is None else np.array([0, 1, 0, 2])
    entries = [np.flatnonzero(np.repeat(numbers, 2) == one) for one in range(numbers.max() + 1)]

    def run(flat):
        # Stages: tests/privacy/attacks.
        model = regressor(kernel=0.06 * RBF(1.0), learn=None, stages=None)
        return model.fit(X, flat.reshape(4, 2), groups=people).guarantee_.mu

    reached, claimed = spent_over_units(
        run, y.ravel(), members=entries, bounds=np.tile(PAIRS, (4, 1)), inner=1
    )
    assert 0.999 * claimed <= reached <= claimed


@pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning")
def test_correlated_outputs_tell_of_each_other(table):
    X, y = table
    settings = {"kernel": 0.06 * RBF(2.0), "noise_variance": 0.01, "learn": None, "stages": None}
    sds = [
        regressor(coregion=coregion, **settings).fit(X, y).predict(X, return_std=True)[1].mean()
        for coregion in (None, [[1, 0.9], [0.9, 1]])
    ]
    assert sds[1] < 0.95 * sds[0]


def test_files_come_back(table, tmp_path):
    X, y = table
    release = regressor(inducing=6).fit(X, y, groups=np.arange(20) // 2).release_
    release.save(tmp_path / "several.cloak")
    loaded = MultiOutputRelease.load(tmp_path / "several.cloak")
    np.testing.assert_allclose(loaded.predict(X), release.predict(X), rtol=1e-12)
    assert loaded.guarantee == release.guarantee
    assert loaded.columns == release.columns
    assert not loaded.insecure
    assert "2 outputs" in repr(loaded)


@pytest.mark.parametrize(
    "groups", [None, np.repeat(np.arange(20), 2)[::-1].copy(), np.append(0, np.arange(39) // 2 + 1)]
)
def test_files_that_protect_outputs_apart_are_refused(table, tmp_path, groups):
    """Without its groups a file would still load as single entries: not as several outputs."""
    release = regressor(stages=None).fit(*table).release_
    [one] = release.entries.measurements
    one = replace(one, strategy=replace(one.strategy, row_groups=groups))
    forged = replace(release, entries=replace(release.entries, measurements=(one,)))
    forged.save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError):
        MultiOutputRelease.load(tmp_path / "forged.cloak")


def test_stages_leave_less_open_and_cost_the_same():
    X = np.linspace(0, 10, 60)[:, None]
    y = np.column_stack([100 + 20 * np.sin(X), np.cos(X)])
    settings = {"delta": 1e-3, "noise": "gaussian", "interval": False}
    widths, errors = np.array([60.0, 4.0]), []
    # One draw of the noise goes either way.
    for seed in range(3):
        staged, at_once = (
            regressor(epsilon=3.0, stages=stages, insecure_seed=seed, **settings).fit(X, y)
            for stages in ("auto", None)
        )
        errors.append(
            [np.square((model.predict(X) - y) / widths).mean() for model in (staged, at_once)]
        )
    assert np.divide(*np.mean(errors, axis=0)) < 0.7
    assert staged.guarantee_.mu == pytest.approx(at_once.guarantee_.mu, rel=1e-4)
    bands = [each.question for each in staged.release_.entries.measurements[1:3]]
    assert all((band.width < 0.9).all() for band in bands)


def test_two_releases_add_up(table):
    first, second = (regressor(learn=None).fit(*table).release_ for _ in range(2))
    together = first.combine(second)
    assert together.guarantee.mu == pytest.approx(np.sqrt(2) * first.guarantee.mu, rel=1e-9)
    other = regressor(bounds=[(70, 131), (-2, 2)], learn=None).fit(*table).release_
    with pytest.raises(ValueError, match="different bounds"):
        first.combine(other)


def test_what_makes_no_sense_is_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="shape"):
        regressor().fit(X, y[:, :1])
    with pytest.raises(ValueError, match="symmetric"):
        regressor(coregion=np.eye(3)[:, :2]).fit(X, y)
    with pytest.raises(ValueError, match="query_weight"):
        regressor().fit(X, y, X, np.ones(3))
    with pytest.raises(ValueError, match="learn"):
        regressor(learn="all").fit(X, y)


def test_weights_may_differ_between_outputs(table):
    X, y = table
    settings = {"kernel": 0.06 * RBF(2.0), "noise_variance": 0.01, "learn": None}
    weights = np.column_stack([np.full(20, 100.0), np.ones(20)])
    sds = regressor(**settings).fit(X, y, X, weights).predict(X, return_std=True)[1] / [60.0, 4.0]
    assert sds[:, 0].mean() < sds[:, 1].mean()


# --- intervals first ---


@pytest.fixture(scope="module")
def wide():
    """A release of outputs whose bounds are far too wide, for which intervals were found."""
    X = np.linspace(0, 10, 150)[:, None]
    y = np.column_stack([100 + 20 * np.sin(X), np.cos(X)])
    settings = {"bounds": [(-900, 7000), (-2, 2)], "epsilon": 3.0, "insecure_seed": 2}
    return X, y, regressor(**settings, stages=None, gap=0.1).fit(X, y).release_


def test_intervals_come_back_from_files(wide, tmp_path):
    X, _, release = wide
    assert release.intervals is not None
    release.save(tmp_path / "found.cloak")
    loaded = MultiOutputRelease.load(tmp_path / "found.cloak")
    assert (loaded.intervals, loaded.columns) == (release.intervals, release.columns)
    assert loaded.guarantee == release.guarantee
    np.testing.assert_allclose(loaded.predict(X), release.predict(X), rtol=1e-12)
    for one, other in zip(loaded.entries.measurements, release.entries.measurements, strict=True):
        if release.counts_of(other) is not None:
            assert loaded.counts_of(one)[0] == release.counts_of(other)[0]
            np.testing.assert_array_equal(one.answers.values, other.answers.values)


def forgeries(release):
    """Releases whose intervals nobody can have found as they say."""
    columns, found = release.columns, release.intervals
    counts = [one for one in release.entries.measurements if release.counts_of(one) is not None]
    others = [one for one in release.entries.measurements if release.counts_of(one) is None]

    def holding(*measurements):
        return replace(release, entries=replace(release.entries, measurements=measurements))

    first = counts[0]
    mixed = first.strategy.matrix.copy()
    mixed[0, 1] = 1.0
    yield replace(release, intervals=replace(found, bounds=found.bounds[:1]))
    yield replace(release, intervals=replace(found, bounds=found.bounds[::-1]))
    yield replace(release, intervals=OutputColumns.checked([(-1000, 7000), (-2, 2)]))
    yield replace(release, intervals=OutputColumns.checked([(0, 300), (-2, 2)]))
    yield replace(release, intervals=None)
    yield replace(release, columns=OutputColumns.checked([(-900, 7001), (-2, 2)]))
    yield replace(release, columns=replace(columns, bounds=columns.bounds[:1]))
    yield holding(*others)
    yield holding(
        *others, *counts[1:], replace(first, strategy=replace(first.strategy, matrix=mixed))
    )


def test_intervals_that_were_not_found_so_are_refused(wide, tmp_path):
    _, _, release = wide
    release.validate()
    count = 0
    for forged in forgeries(release):
        with pytest.raises(ValueError, match=r"interval|counts|bounds|outputs|damaged|guarantee"):
            forged.validate()
        write_forged(forged, tmp_path / "forged.cloak")
        with pytest.raises(ReleaseFileError):
            MultiOutputRelease.load(tmp_path / "forged.cloak")
        count += 1
    assert count == 9


def test_releases_with_other_intervals_are_not_combined(wide):
    X, y, release = wide
    settings = {"bounds": [(-900, 7000), (-2, 2)], "epsilon": 3.0, "stages": None, "gap": 0.1}
    other = regressor(**settings, interval=False, insecure_seed=5).fit(X, y).release_
    for one, two in [(release, other), (other, release)]:
        with pytest.raises(ValueError, match="different intervals"):
            one.combine(two)
    with pytest.raises(TypeError, match="of its kind, not NoneType"):
        release.combine(None)
    # A copy of the same visit adds nothing.
    assert release.combine(release).guarantee == release.guarantee


def test_frames_are_limited_by_the_declared_bounds(wide):
    X, _, release = wide
    frame = release.predict_frame(X, new_output=True)
    limits = release.units.bounds[1]
    assert frame["y2_lower"].min() >= -2
    assert frame["y2_upper"].max() <= 2
    lower, upper = release.predict_interval(X, 0.95)
    np.testing.assert_array_equal(frame[["y1_lower", "y2_lower"]], lower)
    np.testing.assert_array_equal(frame[["y1_upper", "y2_upper"]], upper)
    mean, sd = release.predict(X, return_std=True, new_output=True)
    # Not by what was found: outputs may well lie beyond.
    assert (frame["y1_upper"] > mean[:, 0] + (NORMAL_95 - 1e-9) * sd[:, 0]).all()
    assert limits.lo >= -2


def test_a_kernel_that_is_given_stays_what_it_is_in_output_units(wide):
    X, y, _ = wide
    pairs = np.array([(-900.0, 7000.0), (-2.0, 2.0)])
    coregion = np.array([[1.0, 0.5], [0.5, 2.0]])
    kernel = 1e-5 * RBF(2.0)
    settings = {"bounds": pairs.tolist(), "epsilon": 6.0, "stages": None, "gap": 0.1}
    release = (
        regressor(kernel=kernel, coregion=coregion, insecure_seed=2, learn=None, **settings)
        .fit(X, y)
        .release_
    )
    assert release.intervals is not None
    joint = release.entries.prior.kernel
    units = np.diag(release.units.widths)
    declared = np.diag(pairs[:, 1] - pairs[:, 0])
    np.testing.assert_allclose(
        units @ joint.coregion @ units, declared @ coregion @ declared, rtol=1e-12
    )
    assert repr(joint.kernel) == repr(kernel)
    # The default kernel is of what was found, and a given covariance between outputs with it.
    default = regressor(coregion=coregion, insecure_seed=2, **settings).fit(X, y).release_
    assert default.intervals is not None
    np.testing.assert_array_equal(default.entries.prior.kernel.coregion, coregion)


def test_what_was_counted_is_told(wide):
    _, _, release = wide
    told = {fact.label: fact.text for part in describe(release) for fact in part.facts}
    found = release.intervals.bounds[0]
    assert (
        f"{found.lo:.6g} to {found.hi:.6g} of which holds most values, by noisy counts"
        in told["output 1"]
    )
    assert "how many values of output 1 lie in each" in told["answers 2"]
    assert "chosen from the counts before it" in told["design 2"]
    number = release.entries.measurements[1].question.intervals
    assert told["answers 2"].startswith(f"{number} numbers")
    edges = release.counts_of(release.entries.measurements[1])[1].edges
    assert f"end from {edges[1]:.4g} to {edges[-2]:.4g}" in told["answers 2"]


@pytest.mark.parametrize("wrong", ["on", True, None, 0])
def test_interval_is_auto_or_false(table, wrong):
    with pytest.raises(ValueError, match="interval must be 'auto', or 'off' or False"):
        regressor(interval=wrong).fit(*table)


def test_noise_is_chosen_on_few_rows_that_stand_for_many(monkeypatch):
    asked = []

    def forecast(X, **settings):
        asked.append((len(X), settings["budget"].epsilon, settings["outputs"]))
        return whole(X, **settings)

    module = importlib.import_module("cloakgp.estimators.multioutput")
    whole = module.forecast_release
    monkeypatch.setattr(module, "forecast_release", forecast)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 1))
    y = np.column_stack([X, 1 - X])
    settings = {"bounds": [(0, 1)] * 2, "noise": "auto", "inducing": 5, "stages": None}
    model = regressor(**settings, delta=1e-6, learn=None, gap=0.5)
    model.fit(X, y, X[:20])
    assert [rows for rows, _, _ in asked] == [500, 500]
    assert all(epsilon > 1.0 for _, epsilon, _ in asked)
    asked.clear()
    # Few rows do not tell whose they are.
    model.fit(X, y, X[:20], groups=np.arange(600) // 2)
    assert [rows for rows, _, _ in asked] == [1200, 1200]


# Calibrated distributions of each output.


def skewed(rows, *, seed):
    """A skewed output, and one with long tails: neither is normal."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    first = 100 + 10 * np.sin(X[:, 0]) + 8 * (rng.gamma(1.0, size=rows) - 1)
    second = 0.5 * np.cos(X[:, 0]) + 0.1 * rng.standard_t(2, size=rows)
    return X, np.column_stack([first, second])


@pytest.fixture(scope="module")
def calibrated():
    X, y = skewed(900, seed=0)
    settings = {
        "learn": None,
        "epsilon": 30.0,
        "delta": 0.0,
        "noise": "laplace",
        "inducing": 10,
        "gap": 0.05,
    }
    model = regressor(insecure_seed=1, **settings).fit(X, y)
    plain = regressor(insecure_seed=1, calibrate=False, **settings).fit(X, y)
    return model, plain


def coverage_of(release, level):
    X, y = skewed(20_000, seed=1)
    lower, upper = release.predict_interval(X, level)
    return ((y >= lower) & (y <= upper)).mean(axis=0)


def test_each_output_has_its_own_calibrated_distribution(calibrated):
    release, plain = (model.release_ for model in calibrated)
    assert release.is_calibrated
    assert not plain.is_calibrated
    assert len(release.calibrated_by) == 2
    for level in (0.5, 0.9):
        errors = np.abs(coverage_of(release, level) - level)
        assert (errors < 0.06).all()
    # Half of a normal distribution are many more of an exponential one.
    assert np.abs(coverage_of(plain, 0.5) - 0.5).max() > 0.1


def test_probabilities_and_quantiles_of_each_output_agree(calibrated):
    release = calibrated[0].release_
    X = np.array([[2.0], [7.0]])
    levels = np.array([0.2, 0.5, 0.8])
    quantiles = calibrated[0].predict_quantile(X, levels)
    assert quantiles.shape == (2, 2, 3)
    for place, level in enumerate(levels):
        for row in range(2):
            above = release.probability_above(X[row : row + 1], quantiles[row, :, place])
            np.testing.assert_allclose(above, 1 - level, atol=0.02)


def test_strata_of_each_output_are_in_its_units(calibrated):
    for known, (lo, hi), (low, high) in zip(
        calibrated[0].release_.calibrated_by, PAIRS, [(89.0, 111.0), (-0.6, 0.6)], strict=True
    ):
        assert (known.middles >= max(lo, low)).all()
        assert (known.middles <= min(hi, high)).all()
        assert np.ptp(known.middles) > 0.3 * (high - low)


def test_calibrations_come_back_from_files_and_are_told_of_each_output(calibrated, tmp_path):
    release = calibrated[0].release_
    release.save(tmp_path / "calibrated.cloak")
    loaded = MultiOutputRelease.load(tmp_path / "calibrated.cloak")
    X = np.array([[2.0], [7.0]])
    for one, other in zip(loaded.predict_interval(X), release.predict_interval(X), strict=True):
        np.testing.assert_array_equal(one, other)
    facts = {fact.label: fact.text for section in describe(loaded) for fact in section.facts}
    for name in ("y1", "y2"):
        assert "are calibrated by noisy counts" in facts[f"intervals of {name}"]
        assert "900 rows" in facts[f"intervals of {name}"]
    told = [text for label, text in facts.items() if label.startswith("answers")]
    for name in ("output 1", "output 2"):
        of_this = [text for text in told if f"{name} lie" in text]
        assert sum("intervals around their predictions" in text for text in of_this) == 1
    plain = {fact.label for section in describe(calibrated[1].release_) for fact in section.facts}
    assert not any(label.startswith("intervals of") for label in plain)


@pytest.mark.parametrize("wrong", [(1, 0), (0,), (0, 0), (99, 100), (-2, -1)])
def test_files_with_calibrations_of_other_outputs_are_refused(calibrated, tmp_path, wrong):
    release = calibrated[0].release_
    first = release.calibrations[0]
    numbers = tuple(first + one for one in wrong)
    replace(release, calibrations=numbers).save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError):
        MultiOutputRelease.load(tmp_path / "forged.cloak")


def test_combined_releases_are_not_calibrated(calibrated):
    model = calibrated[0]
    X, y = skewed(900, seed=0)
    other = clone(model).set_params(insecure_seed=2, interval=False, stages=None).fit(X, y).release_
    release = replace(model.release_, entries=other.entries, intervals=None, calibrations=())
    again = clone(model).set_params(insecure_seed=3, interval=False).fit(X, y).release_
    assert again.is_calibrated
    assert not again.combine(release).is_calibrated


def test_a_calibration_that_is_neither_is_refused(table):
    with pytest.raises(ValueError, match="calibrate must be"):
        regressor(calibrate="yes").fit(*table)
