"""Groups of many rows that are protected together, against releases that keep every row."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cloakgp import DPGPRegressor, Release, extend, refine
from cloakgp.data import ArrayRows, FileRows
from cloakgp.design.streaming.grouping import GroupedModel, GroupedPasses
from cloakgp.privacy.groups import checked_groups, greatest_gauge
from cloakgp.release import DenseStrategy
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text
from cloakgp.utils.passes import group_number

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

CRITERIA = ["bayes", "trace", "logdet"]
KERNEL = 1.5 * RBF([1.5, 4.0]) + WhiteKernel(0.05)
POINTS = np.array([[0.2, 1.0], [3.0, 3.0], [1.5, 0.1], [6.0, 2.0]])
SPENDING = {"epsilon": 2.0, "delta": 1e-3}


@pytest.fixture
def table(rng):
    """Rows of people who have one to seven of them, all over the table."""
    people = np.repeat(np.arange(26), rng.integers(1, 8, size=26))
    people = rng.permutation(people).tolist()
    X = rng.uniform(0, 4, size=(len(people), 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], people


def rows_of(X, y, people, **settings):
    return ArrayRows(X, y, groups=people, **{"chunk_rows": 16, "jobs": 1, **settings})


def model_of(X, **changes):
    settings = {
        "kernel": KERNEL,
        "noise_variance": 0.2,
        "mean": 0.4,
        "bounds": (-2.0, 3.0),
        "inducing": X[:12],
        "gap": 0.05,
        "learn": None,
        "stages": None,
        "insecure_seed": 0,
    }
    return DPGPRegressor(**(settings | SPENDING | {"noise": "gaussian"} | changes))


def columns_of(measurement, X, people):
    """What is asked of each row, from the sizes of its group as Python counts them."""
    sizes = np.array([people.count(one) for one in people], dtype=np.float64)
    strategy = measurement.strategy
    features, noise = strategy.columns(measurement.question).model.features_and_noise(X)
    return strategy.rule.columns(features / sizes, noise / sizes**2) / sizes


def keeping_rows(release, tables):
    measurements = []
    for one in release.measurements:
        kept, (X, _, people) = one.strategy, tables[one.strategy.table]
        dense = DenseStrategy(
            X=X,
            matrix=columns_of(one, X, people),
            X_query=kept.X_query,
            reconstruction=kept.reconstruction,
            certificate=kept.certificate,
            table=kept.table,
            row_groups=checked_groups(people, rows=len(X)),
        )
        measurements.append(replace(one, strategy=dense, question=one.question.of_rows(X)))
    return replace(release, measurements=tuple(measurements))


def assert_alike(release, other):
    for form in ({"return_cov": True}, {"return_std": True, "new_output": True}):
        ours, theirs = release.predict(POINTS, **form), other.predict(POINTS, **form)
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-8)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-8)


@pytest.mark.usefixtures("any_evidence")
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("learn", [None, "map", "average"])
def test_it_predicts_as_one_that_keeps_every_row(criterion, learn, table):
    X = table[0]
    release = model_of(X, criterion=criterion, learn=learn).fit_rows(rows_of(*table)).release_
    assert_alike(release, keeping_rows(release, [table]))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_nobody_moves_answers_by_more_than_the_guarantee_says(criterion, table):
    X, _, people = table
    release = model_of(X, criterion=criterion).fit_rows(rows_of(*table)).release_
    [measurement] = release.measurements
    matrix = columns_of(measurement, X, people)
    numbered = checked_groups(people, rows=len(X))
    together = np.bincount(numbered, weights=np.sqrt(np.square(matrix).sum(axis=0)))
    assert measurement.strategy.longest == pytest.approx(together.max(), rel=1e-9)
    assert greatest_gauge(matrix, groups=numbered) <= measurement.strategy.longest * (1 + 1e-9)
    moved = 5.0 * measurement.strategy.longest / measurement.noise_sd
    assert moved <= release.guarantee.mu <= moved * (1 + 1e-6)
    # Rows of a person that are asked differently move answers by less than the design allows for.
    assert 0.9 < measurement.strategy.longest <= 1 + 1e-6
    grouping = measurement.strategy.grouping
    sizes = np.bincount(numbered)
    assert (grouping.groups, grouping.most_rows) == (26, sizes.max())
    assert grouping.chunks == -(-len(X) // 16)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_raw_predictions_are_cloaked_ones(criterion, table):
    X, _, people = table
    release = model_of(X, criterion=criterion).fit_rows(rows_of(*table), POINTS).release_
    strategy = release.measurements[0].strategy
    cloaking = release.prior.cloaking_matrix(POINTS, X)
    asked = strategy.reconstruction @ columns_of(release.measurements[0], X, people)
    np.testing.assert_allclose(asked, cloaking, atol=1e-7)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_groups_of_one_row_are_rows(criterion, table):
    X, y, _ = table
    alone = model_of(X, criterion=criterion).fit_rows(ArrayRows(X, y, chunk_rows=16, jobs=1))
    grouped = model_of(X, criterion=criterion).fit_rows(rows_of(X, y, list(range(len(X)))))
    np.testing.assert_allclose(grouped.predict(POINTS), alone.predict(POINTS), atol=1e-7)
    assert grouped.guarantee_.mu == pytest.approx(alone.guarantee_.mu, rel=1e-8)


def test_it_is_the_better_for_knowing_whose_rows_they_are(table):
    """Than an equal share of the budget for each of the rows of whoever has most."""
    X, y, people = table
    together = model_of(X, epsilon=5.0, interval=False).fit_rows(rows_of(*table), POINTS)
    most = max(people.count(one) for one in people)
    unweighted = (
        model_of(X, epsilon=5.0, interval=False).fit_rows(ArrayRows(X, y, jobs=1), POINTS).release_
    )
    [one] = unweighted.measurements
    noisier = replace(one.answers, noise_sd=one.noise_sd * most)
    worse = replace(unweighted, measurements=(replace(one, answers=noisier),))
    sds = [each.predict(POINTS, return_std=True)[1] for each in (together, worse)]
    assert np.square(sds[0]).sum() < 0.9 * np.square(sds[1]).sum()


def test_files_and_arrays_give_the_same(table, tmp_path):
    X, y, people = table
    names = [f"rider {one}" for one in people]
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "who": names, "y": y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=11)
    expected = model_of(X).fit_rows(rows_of(X, y, names)).predict(POINTS)
    for name in ("rows.csv", "rows.parquet"):
        rows = FileRows(
            tmp_path / name, inputs=["a", "b"], output="y", groups="who", chunk_rows=16, jobs=1
        )
        model = model_of(X).fit_rows(rows)
        np.testing.assert_array_equal(model.release_.predict(POINTS), expected)


def test_files_keep_groups(table, tmp_path):
    release = model_of(table[0]).fit_rows(rows_of(*table)).release_
    release.save(tmp_path / "groups.cloak")
    loaded = Release.load(tmp_path / "groups.cloak")
    assert loaded.measurements[0].strategy.grouping == release.measurements[0].strategy.grouping
    assert_alike(loaded, release)
    said = as_text(describe(loaded), width=10_000)
    most = max(table[2].count(one) for one in table[2])
    assert f"at least 26 people with up to {most} rows each" in said
    assert "which rows are the same person" in said
    assert "no person weighs more than the guarantee allows" in said
    assert "protected together, as one" in said


def test_whoever_knows_the_groups_can_verify(table):
    X, y, people = table
    release = model_of(X, criterion="trace").fit_rows(rows_of(*table)).release_
    nothing = np.zeros(len(y))
    longest = release.verify(rows_of(X, nothing, people, chunk_rows=7))
    assert longest == pytest.approx(release.measurements[0].strategy.longest, rel=1e-9)
    with pytest.raises(ValueError, match="name their groups"):
        release.verify(ArrayRows(X, nothing, jobs=1))
    moved = [people[-1], *people[:-1]]
    with pytest.raises(ValueError, match=r"the guarantee allows|add up to something else"):
        release.verify(rows_of(X, nothing, moved))


def test_new_rows_of_groups_are_asked_given_what_is_known(table, rng):
    X, y, people = table
    release = model_of(X, learn="map").fit_rows(rows_of(*table)).release_
    others = rng.permutation(people).tolist()
    new = (X + 1.0, y, others)
    both = extend(release, rows_of(*new), X_query=POINTS, insecure_seed=1, **SPENDING)
    by_arrays = extend(
        release, X + 1.0, y, POINTS, groups=iter(others), insecure_seed=1, **SPENDING
    )
    # In other chunks: signs of answers may differ, and with them what seeded noise does.
    sds = [each.predict(POINTS, return_std=True)[1] for each in (both, by_arrays)]
    np.testing.assert_allclose(sds[0], sds[1], rtol=1e-4)
    assert_alike(both, keeping_rows(both, [table, new]))
    assert all(one.strategy.grouped for one in both.measurements)
    sds = [each.predict(POINTS, return_std=True)[1] for each in (release, both)]
    assert (sds[1] < sds[0]).all()


def test_what_cannot_be_told_of_groups_is_refused(table):
    X, y, people = table
    rows, alone = rows_of(*table), ArrayRows(X, y, jobs=1)
    first, again, single = (
        model_of(X, insecure_seed=seed).fit_rows(each).release_
        for seed, each in ((1, rows), (2, rows), (3, alone))
    )
    for one, other in ((first, rows), (first, alone), (single, rows)):
        with pytest.raises(ValueError, match="groups of many rows cannot be asked again"):
            refine(one, other, **SPENDING)
    with pytest.raises(ValueError, match="whether these are the same groups cannot be told"):
        first.combine(again)
    with pytest.raises(ValueError, match="different groups"):
        first.combine(single)
    # Copies of one visit are one visit, and other people's rows are other rows.
    extended = extend(first, rows_of(X + 9.0, y, people), insecure_seed=4, **SPENDING)
    assert len(first.combine(extended).measurements) == 2
    assert len(first.combine(again, same_rows=False).measurements) == 2


def test_groups_that_change_between_passes_release_nothing(table):
    """Somebody's rows are counted as several people's, and then are one's."""
    X, y, _ = table
    people = list(range(len(X)))

    class Changing(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            self._groups[10] = self._groups[70]
            return super().over_rows(work, what=what, labels=labels)

    rows = Changing(X, y, groups=people, chunk_rows=16, jobs=1)
    with pytest.raises(ValueError, match="nothing was released"):
        model_of(X).fit_rows(rows)


def test_groups_that_share_a_number_weigh_less(monkeypatch, table):
    """With four numbers for all people, everybody is taken for a quarter of them."""
    for module in ("design.streaming.grouping", "privacy.ask", "utils.passes"):
        monkeypatch.setattr(importlib.import_module(f"cloakgp.{module}"), "GROUP_NUMBERS", 4)
    X, _, people = table
    release = model_of(X).fit_rows(rows_of(*table)).release_
    grouping = release.measurements[0].strategy.grouping
    numbers = [group_number(str(one)) for one in people]
    assert grouping.groups == len(set(numbers)) <= 4
    assert grouping.most_rows == max(numbers.count(one) for one in numbers)
    assert_alike(release, keeping_rows(release, [(X, table[1], numbers)]))


def test_a_row_is_known_by_its_share():
    """y/n has the features v/n and the noise λ/n²: its covariance is that of y over n n'."""
    X = np.random.default_rng(2).uniform(0, 4, size=(9, 2))
    sizes = np.array([1.0, 2, 2, 3, 3, 3, 1, 1, 5])
    prior = model_of(X, inducing=X[:4]).fit_rows(ArrayRows(X, X[:, 0], jobs=1)).release_.prior
    features, noise = GroupedModel(prior).features_and_noise(np.column_stack([X, sizes]))
    ours = features.T @ features + np.diag(noise)
    K_y = prior.row_covariance(X, X.copy()) + np.diag(prior.row_noise(X))
    np.testing.assert_allclose(ours, K_y / np.outer(sizes, sizes), atol=1e-10)


def test_sizes_are_counted_over_all_chunks(table):
    X, y, people = table
    passes = GroupedPasses.of(rows_of(X, y, people, chunk_rows=3))
    assert passes.counts.sum() == len(X)
    for one in set(people):
        assert passes.counts[group_number(str(one))] == people.count(one)
