"""Groups of rows through a release: later visits, files, combinations, words."""

from dataclasses import replace

import numpy as np
import pytest

from cloakgp import DPGPRegressor, Release, extend, refine
from cloakgp.criteria import criteria_for
from cloakgp.data import ArrayRows
from cloakgp.release import ReleaseFileError
from cloakgp.report.describe import describe


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, size=30))[:, None]
    return X, np.sin(X[:, 0]), [f"person {number}" for number in rng.integers(0, 12, size=30)]


def fitted(table, *, groups=True, **settings):
    X, y, people = table
    chosen = {
        "bounds": (-1, 1),
        "epsilon": 1.0,
        "delta": 1e-3,
        "noise": "gaussian",
        "learn": None,
        "stages": None,
        **settings,
    }
    return DPGPRegressor(**chosen).fit(X, y, groups=people if groups else None).release_


@pytest.fixture
def release(table):
    return fitted(table)


def with_groups(release, groups):
    """The release as somebody would forge it."""
    measurements = tuple(
        replace(measurement, strategy=replace(measurement.strategy, row_groups=groups))
        for measurement in release.measurements
    )
    return replace(release, measurements=measurements)


@pytest.mark.parametrize("criterion", [each.name for each in criteria_for("numbers")])
def test_the_noise_is_what_the_groups_need(table, criterion, tmp_path):
    release = fitted(table, criterion=criterion)
    (one,) = release.measurements
    assert one.sensitivity_over_noise == pytest.approx(release.guarantee.mu, rel=1e-3)
    assert one.sensitivity_over_noise <= release.guarantee.mu
    release.save(tmp_path / "groups.cloak")
    loaded = Release.load(tmp_path / "groups.cloak")
    np.testing.assert_array_equal(loaded.measurements[0].strategy.groups, one.strategy.groups)
    assert loaded.measurements[0].strategy.groups.dtype == one.strategy.groups.dtype
    assert loaded.measurements[0].sensitivity_over_noise == one.sensitivity_over_noise


def test_groups_cost_accuracy(table):
    X = table[0]
    sds = [
        fitted(table, groups=told).predict(X, return_std=True)[1].mean() for told in (True, False)
    ]
    assert sds[0] > 1.05 * sds[1]


def test_groups_of_one_row_each_are_no_groups(table):
    X, y, _ = table
    settings = {"bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3, "insecure_seed": 3}
    alone = DPGPRegressor(**settings).fit(X, y).release_
    single = DPGPRegressor(**settings).fit(X, y, groups=range(len(X))).release_
    assert single.measurements[0].strategy.groups is None
    np.testing.assert_array_equal(
        single.measurements[0].answers.values, alone.measurements[0].answers.values
    )


def test_both_stages_protect_groups(table):
    release = fitted(table, learn="map", stages=[(0.5, None), (0.5, 1.0)])
    assert len(release.measurements) == 2
    for one in release.measurements:
        np.testing.assert_array_equal(one.strategy.groups, release.measurements[0].strategy.groups)
        assert one.sensitivity_over_noise == pytest.approx(one.answers.guarantee.mu, rel=1e-3)


def test_refining_keeps_the_groups(table, release):
    _, y, people = table
    for named in ({}, {"groups": people}):
        refined = refine(release, y, [[2.0]], epsilon=0.5, delta=1e-3, noise="gaussian", **named)
        one = refined.measurements[1]
        np.testing.assert_array_equal(one.strategy.groups, release.measurements[0].strategy.groups)
        assert one.sensitivity_over_noise == pytest.approx(one.answers.guarantee.mu, rel=1e-3)
    with pytest.raises(ValueError, match="other groups"):
        refine(release, y, epsilon=0.5, delta=1e-3, groups=[0] * len(y))
    with pytest.raises(ValueError, match="other groups"):
        refine(fitted(table, groups=False), y, epsilon=0.5, delta=1e-3, groups=people)


def test_new_rows_have_groups_of_their_own(release):
    X, y = np.linspace(3, 4, 6)[:, None], np.zeros(6)
    extended = extend(
        release, X, y, epsilon=0.5, delta=1e-3, noise="gaussian", groups=list("aabbcc")
    )
    one = extended.measurements[1]
    assert one.strategy.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert one.sensitivity_over_noise == pytest.approx(one.answers.guarantee.mu, rel=1e-3)


def test_new_rows_of_a_release_for_groups_must_have_some(table, release):
    X, y = np.random.default_rng(1).uniform(0, 6, size=(6, 1)), np.zeros(6)
    budget = {"epsilon": 0.5, "delta": 1e-3}
    with pytest.raises(ValueError, match="give their groups, or by_rows=True"):
        extend(release, X, y, **budget)
    with pytest.raises(ValueError, match="contradict each other"):
        extend(release, X, y, groups=list("aabbcc"), by_rows=True, **budget)
    one = extend(release, X, y, by_rows=True, **budget).measurements[-1]
    assert not one.strategy.grouped
    assert len(extend(release, X, y, groups=range(6), **budget).measurements) == 2
    alone = fitted(table, groups=False)
    assert len(extend(alone, X, y, **budget).measurements) == 2


def test_rows_in_passes_of_a_release_for_groups_must_have_some(table):
    X, y, people = table
    model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, inducing=5, stages=None, gap=0.1)
    release = model.fit_rows(ArrayRows(X, y, groups=people)).release_
    budget = {"epsilon": 0.5, "delta": 1e-3, "gap": 0.1}
    with pytest.raises(ValueError, match="give their groups, or by_rows=True"):
        extend(release, ArrayRows(X, y), **budget)
    with pytest.raises(ValueError, match="give their groups, or by_rows=True"):
        extend(release, X, y, **budget)
    found = extend(release, ArrayRows(X, y), by_rows=True, **budget)
    assert [one.strategy.grouped for one in found.measurements] == [True, False]
    again = extend(release, ArrayRows(X, y, groups=people), **budget)
    assert all(one.strategy.grouped for one in again.measurements)


def test_releases_of_different_groups_do_not_add_up(table, release):
    again = fitted(table)
    assert len(release.combine(again).measurements) == 2
    for other in (fitted(table, groups=False), with_groups(again, np.arange(30) // 2)):
        with pytest.raises(ValueError, match="different groups"):
            release.combine(other)
    assert len(release.combine(fitted(table, groups=False), same_rows=False).measurements) == 2


def test_a_file_that_claims_larger_groups_is_refused(release, tmp_path):
    with_groups(release, np.zeros(30, dtype=np.intp)).save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError, match="less than its guarantee needs"):
        Release.load(tmp_path / "forged.cloak")


def _section(release, title):
    [found] = [each for each in describe(release) if each.title == title]
    return found


def test_a_file_without_its_groups_promises_less(release, tmp_path):
    """Dropping groups leaves a true statement, about single rows: their columns are shorter."""
    with_groups(release, None).save(tmp_path / "forged.cloak")
    loaded = Release.load(tmp_path / "forged.cloak")
    assert (
        loaded.measurements[0].sensitivity_over_noise
        < release.measurements[0].sensitivity_over_noise
    )
    protection, guarantee = (_section(loaded, name) for name in ("Protection", "Guarantee"))
    assert "every single row" in protection.facts[0].text
    assert "two rows" in guarantee.facts[-1].text


@pytest.mark.parametrize(
    "groups", [np.arange(30) + 1.0, np.arange(29) // 2 + 0.0, np.full(30, 0.5), np.arange(30) + 0.0]
)
def test_damaged_groups_are_refused(release, tmp_path, groups):
    with_groups(release, groups).save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError):
        Release.load(tmp_path / "forged.cloak")


def test_different_groups_of_one_table_are_refused(release, table, tmp_path):
    twice = release.combine(fitted(table))
    first, second = twice.measurements
    forged = replace(
        twice,
        measurements=(first, replace(second, strategy=replace(second.strategy, row_groups=None))),
    )
    forged.save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError, match="different groups"):
        Release.load(tmp_path / "forged.cloak")


def test_words_name_the_unit(release):
    protection, guarantee = (_section(release, name) for name in ("Protection", "Guarantee"))
    people = int(release.measurements[0].strategy.groups.max()) + 1
    assert f"one person, over all rows ({people} people" in protection.facts[0].text
    assert "which rows are the same person" in protection.facts[1].text
    assert any("all values together" in fact.text for fact in guarantee.facts)
    assert "protected together" in guarantee.facts[-1].text


def test_words_of_tables_with_and_without_groups(release):
    X, y = np.linspace(3, 4, 6)[:, None], np.zeros(6)
    extended = extend(release, X, y, epsilon=0.5, delta=1e-3, by_rows=True)
    said = _section(extended, "Protection").facts[0].text
    assert "of one person, over all rows" in said
    assert "every single row in tables without ids of persons" in said
