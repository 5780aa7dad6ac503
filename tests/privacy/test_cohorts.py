"""Cohorts: who is in which tables, and that nobody pays for tables they are not in."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp import DPGPRegressor, Guarantee, Release, compose, extend, refine
from cloakgp.data import ArrayRows
from cloakgp.ledger import Ledger
from cloakgp.privacy.checks import PrivacyParameterWarning
from cloakgp.privacy.cohorts import (
    check_cohorts,
    compare_ids,
    guarantee_of_cohorts,
    join_cohorts,
    largest_cohorts,
)
from cloakgp.report.describe import describe

BOUNDS = (-3.0, 7.0)
# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

families = st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=4)


def allowed(cohorts, tables):
    """Return all sets of tables that a person may be in."""
    every = cohorts or (tuple(tables),)
    sets = [set(one) for one in every]
    return {
        chosen
        for size in range(len(tables) + 1)
        for chosen in itertools.combinations(sorted(tables), size)
        if any(set(chosen) <= one for one in sets)
    }


@given(family=families)
def test_largest_cohorts_allow_what_all_do(family):
    tables = set().union(*family)
    assert allowed(largest_cohorts(family), tables) == allowed(tuple(map(tuple, family)), tables)


@given(left=families, right=families, people=st.sampled_from(["overlapping", "disjoint"]))
def test_joined_cohorts_allow_what_both_do(left, right, people):
    """By trying every set of tables: within each part, what its cohorts allow."""
    tables = [set().union(*each) for each in (left, right)]
    if people == "disjoint":
        right = [{number + 10 for number in one} for one in right]
        tables[1] = {number + 10 for number in tables[1]}
    parts = [largest_cohorts(each) for each in (left, right)]
    joined = join_cohorts(*parts, tables=(tables[0], tables[1]), people=people)
    within = [allowed(part, each) for part, each in zip(parts, tables, strict=True)]
    every = sorted(tables[0] | tables[1])
    expected = set()
    for size in range(len(every) + 1):
        for chosen in itertools.combinations(every, size):
            shares = [tuple(n for n in chosen if n in each) for each in tables]
            if people == "disjoint" and all(shares):
                continue
            if all(share in known for share, known in zip(shares, within, strict=True)):
                expected.add(chosen)
    assert allowed(joined, every) == expected


def test_a_shared_table_has_no_disjoint_people():
    with pytest.raises(ValueError, match="the same table"):
        join_cohorts((), (), tables=([0, 1], [1]), people="disjoint")
    with pytest.raises(ValueError, match="people must be"):
        join_cohorts((), (), tables=([0], [1]), people="others")


@given(people=st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), min_size=1, max_size=5))
def test_ids_say_which_tables_people_share(people):
    """By looking for each person in each table."""
    rows = {number: len(each) for number, each in enumerate(people)}
    found = compare_ids([sorted(each) for each in people], rows=rows, groups={})
    expected = [
        tuple(number for number, each in enumerate(people) if person in each)
        for person in set().union(*people)
    ]
    assert allowed(found, rows) == allowed(tuple(expected), rows)


def test_ids_that_do_not_go_with_the_tables_are_refused():
    rows = {0: 2, 1: 2}
    with pytest.raises(ValueError, match="one list for each of 2 tables"):
        compare_ids([["a", "b"]], rows=rows, groups={})
    with pytest.raises(ValueError, match="table 2 has 2 rows that were asked and 1 ids"):
        compare_ids([["a", "b"], ["c"]], rows=rows, groups={})
    with pytest.raises(ValueError, match="occurs twice in table 2"):
        compare_ids([["a", "b"], ["c", "c"]], rows=rows, groups={})
    with pytest.raises(ValueError, match="table 2 are not those of its groups"):
        compare_ids([["a", "b"], ["c", "c"]], rows=rows, groups={1: np.array([0, 1])})
    assert compare_ids([["a", "b"], ["c", "c"]], rows=rows, groups={1: np.array([0, 0])})


def test_persons_in_two_disjoint_sets_are_counted_and_not_named():
    with pytest.raises(ValueError, match="1 people are in two tables") as caught:
        compare_ids(
            [["ann", "eve"], ["eve", "bob"]], rows={0: 2, 1: 2}, groups={}, apart=[[0], [1]]
        )
    assert "eve" not in str(caught.value)


def test_ids_that_are_text_in_one_table_and_numbers_in_another_are_refused():
    """Of the cells 001 and 002 one reader makes 1 and 2: these are no others."""
    rows, how = {0: 2, 1: 2}, {"groups": {}, "apart": [[0], [1]]}
    with pytest.raises(ValueError, match="whole numbers in table 1 and text in table 2"):
        compare_ids([[1, 2], ["002", "A7"]], rows=rows, **how)
    with pytest.raises(ValueError, match="whole numbers in table 2 and text in table 1"):
        compare_ids([iter(["01", "02"]), np.array([3, 4])], rows=rows, **how)
    # Text that is written as whole numbers are, is compared with them.
    assert compare_ids([[1, 2], ["3", "4"]], rows=rows, **how) == ((0,), (1,))
    with pytest.raises(ValueError, match="1 people are in two tables"):
        compare_ids([[1, 2], ["2", "4"]], rows=rows, **how)


@given(
    spent=st.lists(st.tuples(st.integers(0, 3), st.floats(0.1, 2.0)), min_size=1, max_size=6),
    family=st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=2, max_size=3),
    pure=st.booleans(),
)
def test_the_guarantee_is_that_of_the_cohort_asked_most(spent, family, pure):
    """Of Gaussian noise the greatest root of a sum of squares, without δ the greatest sum."""
    parts = [
        (
            table,
            Guarantee(epsilon=price, delta=0.0, mu=0.0, laplace=(price,))
            if pure
            else Guarantee(epsilon=price, delta=1e-3, mu=price),
        )
        for table, price in spent
    ]
    cohorts = largest_cohorts([*family, *({table} for table, _ in parts)])
    stated = guarantee_of_cohorts(cohorts, parts)
    own = [[price for table, price in spent if table in cohort] for cohort in cohorts or [range(4)]]
    if pure:
        assert stated.pure_epsilon == pytest.approx(max(map(sum, own)))
    else:
        assert stated.mu == pytest.approx(max(np.linalg.norm(each) for each in own if each))


def month(rng, rows=5):
    X = rng.uniform(0, 5, size=(rows, 1))
    return X, np.where(rng.uniform(size=rows) < 0.5, *BOUNDS)


def opened(release):
    """Return what a file of a release holds."""
    with tempfile.TemporaryDirectory() as folder:
        release.save(f"{folder}/r.cloak")
        return Release.load(f"{folder}/r.cloak")


def year(rng, months=3, **settings):
    """Return a release of some months of other people, and their tables."""
    tables = [month(rng) for _ in range(months)]
    X, y = tables[0]
    model = DPGPRegressor(
        ConstantKernel(4.0) * RBF(2.0) + WhiteKernel(0.1),
        bounds=BOUNDS,
        epsilon=1.0,
        delta=1e-4,
        noise="gaussian",
        stages=None,
        interval=False,
        learn=None,
    )
    release = model.fit(X, y).release_
    for X, y in tables[1:]:
        release = extend(release, X, y, epsilon=1.0, delta=1e-4, noise="gaussian", **settings)
    return release, tables


def test_months_of_other_people_cost_each_of_them_one(rng):
    release, _ = year(rng, people="disjoint")
    summed, _ = year(rng)
    assert release.cohorts == ((0,), (1,), (2,))
    assert 0.99 <= release.guarantee.epsilon <= 1.0 + 1e-9
    assert summed.guarantee.epsilon > 1.6
    again = refine(release, month(rng)[1], epsilon=1.0, delta=1e-4)
    assert again.cohorts == release.cohorts
    assert again.guarantee.epsilon > 1.3


def told_of(measurement, y):
    """Return what is asked of outputs, in sds of its noise."""
    values = measurement.question.encode(measurement.question.read(y, rows=len(y)))
    return (measurement.strategy.matrix @ values).ravel() / measurement.answers.noise_sd


def test_every_neighbour_is_covered(rng):
    """Each output in each table changes, all answers are held: what all measurements tell of it."""
    release, tables = year(rng, people="disjoint")
    most = 0.0
    for number, (X, y) in enumerate(tables):
        asked = [one for one in release.measurements if one.strategy.table == number]
        for row, end in itertools.product(range(len(X)), BOUNDS):
            neighbour = np.array(y)
            neighbour[row] = end
            moved = [told_of(one, y) - told_of(one, neighbour) for one in asked]
            most = max(most, np.linalg.norm(np.concatenate(moved)))
    assert ACHIEVED_SHARE * release.guarantee.mu <= most <= release.guarantee.mu
    # Were a table's people in another one too, the guarantee would not cover them.
    assert most < compose(*(one.guarantee for one in release.measurements)).mu / 1.5


def test_recurring_people_add_up_and_disjoint_ones_are_refused_before_a_draw(rng):
    release, _ = year(rng, months=1)
    X, y = month(rng)
    ids = [list("abcde"), list("vwxye")]
    both = extend(release, X, y, ids=ids, epsilon=1.0, delta=1e-4, noise="gaussian")
    assert both.cohorts == ()
    assert both.guarantee.mu > release.guarantee.mu * 1.3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", pytest.fail)
        patch.setattr("cloakgp.privacy.noise.laplace.add_discrete_laplace", pytest.fail)
        with pytest.raises(ValueError, match="nothing was drawn"):
            extend(release, X, y, ids=ids, people="disjoint", epsilon=1.0, delta=1e-4)
    others = [list("abcde"), list("vwxyz")]
    apart = extend(release, X, y, ids=others, epsilon=1.0, delta=1e-4, noise="gaussian")
    assert apart.cohorts == ((0,), (1,))


def test_a_limit_holds_of_each_person(rng):
    X, y = month(rng)
    model = DPGPRegressor(bounds=BOUNDS, epsilon=0.6, stages=None, interval=False)
    release = model.fit(X, y).release_.within(1.0, 0.0)
    for _ in range(2):
        release = extend(release, *month(rng), people="disjoint", epsilon=0.6, delta=0.0)
    assert release.guarantee.pure_epsilon == pytest.approx(0.6)
    for ask in (
        lambda: extend(release, *month(rng), epsilon=0.6, delta=0.0),
        lambda: refine(release, y, epsilon=0.6, delta=0.0),
        lambda: extend(release, *month(rng), people="disjoint", epsilon=1.1, delta=0.0),
    ):
        with pytest.raises(ValueError, match="no room"):
            ask()
    within = refine(release, y, epsilon=0.4, delta=0.0)
    assert within.guarantee.pure_epsilon == pytest.approx(1.0)
    opened(within)


def test_rows_in_passes_go_by_cohorts_too(rng):
    X, y = (rng.uniform(0, 5, size=(400, 1)), rng.uniform(*BOUNDS, size=400))
    model = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, delta=1e-4, inducing=5, stages=None)
    release = model.fit_rows(ArrayRows(X, y)).release_
    apart = model.extend(ArrayRows(X + 1, y), people="disjoint", epsilon=1.0, delta=1e-4).release_
    assert apart.cohorts == ((0,), (1,))
    assert apart.guarantee.epsilon == pytest.approx(release.guarantee.epsilon, rel=0.1)


def test_combined_releases_of_other_people(rng):
    parts = [year(rng, months=1)[0] for _ in range(3)]
    assert parts[0].combine(*parts[1:]).cohorts == ()
    apart = parts[0].combine(*parts[1:], people="disjoint")
    assert apart.cohorts == ((0,), (1,), (2,))
    assert apart.guarantee == parts[0].guarantee
    with pytest.raises(ValueError, match="people are in both"):
        parts[0].combine(parts[1], same_rows=True, people="disjoint")
    with pytest.raises(ValueError, match="copies"):
        parts[0].combine(parts[0], people="disjoint")
    with pytest.raises(ValueError, match="2 people are in two tables"):
        parts[0].combine(parts[1], people="disjoint", ids=[list("abcde"), list("adxyz")])
    two = apart.combine(year(rng, months=1)[0], same_rows=False)
    assert two.cohorts == ((0, 3), (1, 3), (2, 3))


def test_files_keep_cohorts_and_refuse_damaged_ones(rng):
    release, _ = year(rng, months=2, people="disjoint")
    loaded = opened(release)
    assert loaded.cohorts == release.cohorts
    assert loaded.guarantee == release.guarantee
    for damaged in (((0,),), ((0,), (2,)), ((1,), (0,)), ((0,), (0, 1))):
        with pytest.raises(ValueError, match="damaged"):
            check_cohorts(damaged, [0, 1])
        with pytest.raises(ValueError, match="damaged"):
            opened(replace(release, cohorts=damaged))


def told(release):
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def test_words_say_who_pays_what_and_whose_word_it_is(rng):
    apart, _ = year(rng, people="disjoint")
    words = told(apart)
    assert "asked 3 tables, and a person is in one of them" in words["composition"]
    assert words["assumption"].startswith("no person is in two of the tables.")
    assert "the file cannot show it" in words["assumption"]
    assert "ε, δ) = (1," in words["guarantee"]
    mixed = extend(apart, *month(rng), epsilon=1.0, delta=1e-4, noise="gaussian")
    words = told(mixed)
    assert "1 and 4; 2 and 4; 3 and 4" in words["composition"]
    assert "tables 1 (1 measurement), 2 (1 measurement)" in words["composition"]
    summed, _ = year(rng)
    assert "assumption" not in told(summed)
    assert "in every one" in told(summed)["composition"]


def test_the_ledger_notes_what_was_said_of_the_people(rng, tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    names = ("may", "june", "july")
    accounts = [ledger.open_account(name, epsilon=1.0, delta=1e-4) for name in names]
    tables = [month(rng) for _ in accounts]
    budget = {"epsilon": 0.9, "delta": 1e-5}
    with accounts[0]:
        model = DPGPRegressor(bounds=BOUNDS, stages=None, interval=False, **budget)
        release = model.fit(*tables[0]).release_
    with accounts[1]:
        release = extend(release, *tables[1], people="disjoint", **budget)
    ids = [[f"{month}{row}" for row in range(5)] for month in names]
    with accounts[2]:
        extend(release, *tables[2], people="disjoint", ids=ids, **budget)
    said = [
        entry.content.get("people")
        for entry in ledger.entries()
        if entry.content["kind"] == "reserved"
    ]
    assert said == [
        None,
        "in none of the tables before, as the caller says",
        "compared with those of the tables before by the caller's ids",
    ]
    assert [account.standing.charges for account in accounts] == [1, 1, 1]
    assert release.guarantee.epsilon < 1.0
    ledger.verify()


def other_people(X, y, **settings):
    """Return a release of months of other people at the same places, in one prior."""
    model = DPGPRegressor(
        ConstantKernel(4.0) * RBF(2.0) + WhiteKernel(0.1),
        bounds=BOUNDS,
        delta=0.0,
        interval=False,
        learn=None,
        stages=None,
        **settings,
    )
    return model.fit(X, y).release_


def test_no_guess_says_which_table_people_are_in(rng):
    """Tables with equal inputs may hold the same rows: of which of two would be a guess."""
    X, y = month(rng)
    cheap, dear, again = (other_people(X, y, epsilon=each) for each in (0.2, 1.0, 1.0))
    apart = cheap.combine(dear, people="disjoint")
    for one, other in ((apart, again), (again, apart)):
        with pytest.raises(ValueError, match="say whether tables with equal inputs"):
            one.combine(other)
        assert one.combine(other, same_rows=False).guarantee.pure_epsilon == pytest.approx(2.0)
    with pytest.raises(ValueError, match="several tables have these inputs"):
        apart.combine(again, same_rows=True)
    with pytest.raises(ValueError, match="say whether"):
        dear.combine(again, ids=[list("abcde")])
    same = dear.combine(again, same_rows=True, ids=[list("abcde")])
    assert same.guarantee.pure_epsilon == pytest.approx(2.0)


def test_ids_beside_groups_that_are_not_kept_are_refused(rng):
    X, y = rng.uniform(0, 5, size=(60, 1)), rng.uniform(*BOUNDS, size=60)
    homes = [f"h{row // 3}" for row in range(60)]
    model = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, inducing=5, stages=None, interval=False)
    release = model.fit_rows(ArrayRows(X, y, groups=homes)).release_
    later = ArrayRows(X + 1, y, groups=homes)
    ids = [[f"{who}{row}" for row in range(60)] for who in "ab"]
    with pytest.raises(ValueError, match="the groups of table 1 are not kept"):
        extend(release, later, ids=ids, epsilon=1.0, delta=0.0)


def test_persons_in_passes_are_combined_with_others(rng):
    """Each part has several measurements of one table; of the other it is no table."""
    X, y = rng.uniform(0, 5, size=(900, 1)), rng.uniform(*BOUNDS, size=900)
    parts = []
    for name in "ab":
        model = DPGPRegressor(RBF(2.0), bounds=BOUNDS, epsilon=4.0, inducing=X[:5], interval=False)
        groups = [f"{name}{row // 2}" for row in range(900)]
        parts.append(model.fit_rows(ArrayRows(X, y, groups=groups)).release_)
    assert len(parts[0].measurements) > 1
    both = parts[0].combine(parts[1], people="disjoint")
    assert both.cohorts == ((0,), (1,))
    assert both.guarantee.pure_epsilon == pytest.approx(4.0, rel=1e-3)


def test_the_same_rows_said_to_be_other_people_are_warned_of(rng):
    X, y = month(rng)
    release = other_people(X, y, epsilon=1.0)
    with pytest.warns(PrivacyParameterWarning, match="the inputs of one before"):
        extend(release, X, y, people="disjoint", epsilon=1.0, delta=0.0)


def test_the_same_rows_in_another_order_are_warned_of_and_others_are_not(rng):
    X, y = rng.uniform(0, 5, size=(40, 2)), rng.uniform(*BOUNDS, size=40)
    X[1] = X[0]
    release = other_people(X, y, epsilon=1.0)
    order = rng.permutation(40)
    with pytest.warns(PrivacyParameterWarning, match="the inputs of one before"):
        extend(release, X[order], y[order], people="disjoint", epsilon=1.0, delta=0.0)
    # Each column has the values that it had.
    others = np.column_stack([X[:, 0], X[::-1, 1]])
    for rows in (others, X[:-1]):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "the new table has the inputs")
            extend(release, rows, y[: len(rows)], people="disjoint", epsilon=1.0, delta=0.0)


def test_rows_that_were_kept_out_have_no_ids(rng):
    X, y = rng.uniform(0, 5, size=(300, 1)), rng.uniform(*BOUNDS, size=300)
    model = DPGPRegressor(bounds=BOUNDS, epsilon=4.0, inducing=5, stages=None, calibrate=0.4)
    release = model.fit(X, y).release_
    with pytest.raises(ValueError, match="kept out by a draw"):
        extend(release, X[:5], y[:5], ids=[range(300), range(5)], epsilon=1.0, delta=0.0)
