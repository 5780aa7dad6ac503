"""An interval that holds most outputs of a table that is read in passes, and fits that go by it."""

import numpy as np
import pandas as pd
import pytest
from fits import find

from cloakgp import DPGPRegressor, Release, extend, refine
from cloakgp.data import ArrayRows, FileRows
from cloakgp.fitting.interval import NO_SEARCH, plan_search
from cloakgp.fitting.passes import RowTable
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.report.describe import describe

ROWS = 6_000
WIDE = OutputBounds(-5_000.0, 5_000.0)
BUDGET = Budget(0.5, 0.0, noise="laplace")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, size=(ROWS, 2))
    y = 50 + 10 * np.sin(X[:, 0]) + 3 * rng.normal(size=ROWS)
    return X, y, rng.integers(0, 1500, size=ROWS)


def fitted(table, *, groups=None, **changes):
    X, y, _ = table
    settings = {
        "bounds": (WIDE.lo, WIDE.hi),
        "epsilon": 0.5,
        "inducing": 20,
        "learn": None,
        "stages": None,
        "insecure_seed": 4,
    }
    rows = ArrayRows(X, y, groups=groups, chunk_rows=1000)
    return DPGPRegressor(**(settings | changes)).fit_rows(rows).release_


def counted(release):
    return [one for one in release.measurements if isinstance(one.question, CountQuestion)]


def error(release, table):
    X = table[0][:500]
    return float(np.sqrt(np.mean((release.predict(X) - 50 - 10 * np.sin(X[:, 0])) ** 2)))


@pytest.fixture(scope="module")
def release(table):
    return fitted(table)


@pytest.mark.parametrize("grouped", [False, True])
def test_wide_bounds_cost_little(table, grouped):
    groups = table[2] if grouped else None
    wide, without = (fitted(table, groups=groups, interval=one) for one in ("auto", False))
    sharp = fitted(table, groups=groups, interval=False, bounds=(0.0, 100.0))
    assert counted(wide)
    assert not counted(without)
    errors = [error(one, table) for one in (wide, without, sharp)]
    assert errors[0] < 0.1 * errors[1]
    assert errors[0] < 3 * errors[2]
    found = wide.measurements[0].question.limits
    assert WIDE.lo < found[0] < 30 < 70 < found[1] < WIDE.hi
    # The default prior is that of the interval.
    assert wide.prior.mean == pytest.approx(np.mean(found))


def test_all_of_the_budget_is_spent(release):
    parts = [one.answers.guarantee.laplace for one in release.measurements]
    assert sum(map(sum, parts)) == pytest.approx(0.5, rel=1e-3)


def search_of(table):
    return plan_search(WIDE, budget=BUDGET, rows=table.counted, largest_group=table.most_counted)


def test_of_groups_everybody_counts_once(table):
    """The budget of counts is that of so many people, and their shares add up to them."""
    X, y, groups = table
    alone = RowTable.of(ArrayRows(X, y))
    together = RowTable.of(ArrayRows(X, y, groups=groups))
    people = len(np.unique(groups))
    assert (together.counted, together.most_counted) == (people, 1)
    plan = search_of(together)
    assert search_of(alone).share < plan.share
    _, counts = find(together, together.passes, bounds=(WIDE,), plan=plan, insecure_seed=1)
    for one in counts:
        noise = one.answers.noise_sd * np.sqrt(one.question.intervals)
        # Several people may share a number.
        assert one.answers.values.sum() == pytest.approx(people, abs=4 * noise)


def test_nobody_looks_where_it_would_cost_too_much(table):
    X, y, _ = table
    few = (X[:60], y[:60], None)
    assert search_of(RowTable.of(ArrayRows(*few[:2]))) == NO_SEARCH
    assert not counted(fitted(few))


def test_how_rows_are_cut_does_not_matter(table, tmp_path):
    X, y, _ = table
    whole = fitted(table)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(path, index=False)
    model = DPGPRegressor(
        bounds=(WIDE.lo, WIDE.hi),
        epsilon=0.5,
        inducing=20,
        learn=None,
        stages=None,
        insecure_seed=4,
    )
    parts = model.fit_rows(FileRows(path, inputs=["a", "b"], output="y", chunk_rows=501)).release_
    for one, other in zip(counted(whole), counted(parts), strict=True):
        np.testing.assert_array_equal(one.question.edges, other.question.edges)
        np.testing.assert_allclose(one.answers.values, other.answers.values, rtol=1e-9)


def test_files_keep_counts_and_later_visits_the_interval(table, release, tmp_path):
    X, y, _ = table
    rows = ArrayRows(X, y, chunk_rows=1000)
    release.save(tmp_path / "found.cloak")
    loaded = Release.load(tmp_path / "found.cloak")
    np.testing.assert_array_equal(loaded.predict(X[:50]), release.predict(X[:50]))
    assert loaded.verify(rows) == pytest.approx(1.0)
    again = refine(loaded, rows, X[:20], epsilon=0.3, delta=0, band=None, insecure_seed=3)
    assert again.measurements[-1].question == release.measurements[0].question
    more = extend(loaded, ArrayRows(X + 0.01, y), epsilon=0.3, delta=0, insecure_seed=3)
    for one in (again, more):
        assert one.guarantee.epsilon_at(0.0) == pytest.approx(0.8, rel=1e-3)
    assert len(loaded.combine(release).measurements) == len(release.measurements)


@pytest.mark.usefixtures("few_learning_cells")
def test_stages_and_learning_go_by_what_was_found(table):
    staged = fitted(table, stages="auto", learn="map", epsilon=0.2)
    found = staged.measurements[0].question
    assert counted(staged)
    bands = [one.question for one in staged.measurements if hasattr(one.question, "reach")]
    assert bands
    for one in bands:
        # They may go beyond by its width.
        reach = max(WIDE.lo, found.lo - found.width), min(WIDE.hi, found.hi + found.width)
        assert one.bounds == pytest.approx(reach)
    assert error(staged, table) < 8


def test_words_tell_the_declared_bounds_and_what_was_found(release):
    said = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    assert "any other from -5000 to 5000." in said["protected"]
    assert "holds most values, by noisy counts" in said["y"]
    assert "to find an interval that holds most values" in said["design 2"]


def test_counts_that_do_not_fit_are_refused(release):
    one = counted(release)[0]
    one.validate()
    for strategy, encoding in (
        (release.measurements[0].strategy, one.question),
        (one.strategy, CountQuestion(one.question.edges[:-1])),
    ):
        with pytest.raises(ValueError, match=r"do not fit|answers"):
            type(one)(strategy=strategy, answers=one.answers, question=encoding).validate()
