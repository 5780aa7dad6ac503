"""Groups of rows: gauges against all signs, and the guarantee over all neighbours."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE
from unit_neighbours import spent_over_units

from cloakgp.privacy import OutputBounds
from cloakgp.privacy import groups as units
from cloakgp.privacy.ask import ask
from cloakgp.privacy.groups import checked_groups, gauge, greatest_gauge, members


def over_all_signs(columns):
    """The gauge by definition."""
    return max(
        float(np.linalg.norm(columns @ np.array(signs)))
        for signs in itertools.product((-1.0, 1.0), repeat=columns.shape[1])
    )


def drawn(seed, *, answers, rows):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(answers, rows)) * np.exp(rng.normal(size=rows))
    columns[:, rng.uniform(size=rows) < 0.2] = 0.0
    # Columns that point the same way, or the opposite way, are what people with alike rows have.
    if rows > 2:
        columns[:, 1] = -2.0 * columns[:, 0]
    return columns


sizes = {"seed": st.integers(0, 2**32 - 1), "answers": st.integers(1, 6), "rows": st.integers(1, 9)}


@given(**sizes)
@settings(max_examples=60)
def test_the_gauge_is_exact_and_rounded_up(seed, answers, rows):
    columns = drawn(seed, answers=answers, rows=rows)
    exact = over_all_signs(columns)
    assert exact * (1 - 1e-15) <= gauge(columns) <= exact * (1 + 1e-12)


@given(**sizes)
@settings(max_examples=60)
def test_the_relaxation_is_an_upper_bound(seed, answers, rows):
    columns = drawn(seed, answers=answers, rows=rows)
    columns = columns[:, columns.any(axis=0)]
    if columns.shape[1] == 0:
        return
    bound = math.sqrt(units._relaxed(columns.T @ columns))
    exact = over_all_signs(columns)
    # Nesterov: no worse than √(π/2) times the truth.
    assert exact * (1 - 1e-12) <= bound <= exact * math.sqrt(math.pi / 2) * (1 + 1e-3)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(21, 40))
@settings(max_examples=20)
def test_large_groups_are_bounded_from_above(seed, rows):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(5, rows))
    signs = np.where(rng.normal(size=(rows, 300)) > 0, 1.0, -1.0)
    for _ in range(30):
        signs = np.where(columns.T @ (columns @ signs) >= 0, 1.0, -1.0)
    reached = float(np.linalg.norm(columns @ signs, axis=0).max())
    bound = gauge(columns)
    assert reached <= bound <= 1.3 * reached
    assert bound <= float(np.linalg.norm(columns, axis=0).sum()) * (1 + 1e-12)


def test_twenty_rows_are_still_exact():
    """Orthonormal columns: every vector of signs is as bad, and ‖s‖ = √n."""
    assert gauge(np.eye(20)) == pytest.approx(math.sqrt(20), rel=1e-12)
    assert gauge(np.ones((1, 25))) == pytest.approx(25.0, rel=1e-12)


def test_the_greatest_gauge_is_that_of_some_group():
    rng = np.random.default_rng(3)
    strategy = rng.normal(size=(4, 30))
    groups = checked_groups(rng.integers(0, 8, size=30).tolist(), rows=30)
    each = [over_all_signs(strategy[:, rows]) for rows in members(groups)]
    assert greatest_gauge(strategy, groups=groups) == pytest.approx(max(each), rel=1e-12)


def test_rows_alone_have_their_columns_lengths():
    strategy = np.random.default_rng(0).normal(size=(3, 5))
    longest = np.linalg.norm(strategy, axis=0).max()
    assert greatest_gauge(strategy, groups=None) == pytest.approx(longest, rel=1e-12)
    alone = greatest_gauge(strategy, groups=np.arange(5))
    assert alone == pytest.approx(longest, rel=1e-12)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-3, 3))
    groups = rng.integers(0, draw(st.integers(1, 4)), size=rows)
    lo = draw(st.sampled_from([0.0, -3.0, 1e6]))
    bounds = (lo, lo + 10.0 ** draw(st.integers(-1, 3)))
    y = rng.uniform(*bounds, size=rows)
    return strategy, groups, y, bounds, 10.0 ** draw(st.integers(-1, 1))


def spent(strategy, groups, y, *, bounds, epsilon=1.0, told=True):
    """What `measure` spends between data sets that differ in a group, and what it claims."""
    numbers = np.unique(groups, return_inverse=True)[1]
    named = [f"person {number}" for number in groups] if told else None
    return spent_over_units(
        lambda outputs: (
            ask(
                strategy,
                outputs,
                question=OutputBounds.checked(bounds),
                epsilon=epsilon,
                delta=1e-5,
                groups=named,
            ).guarantee.mu
        ),
        y,
        members=members(numbers),
        bounds=np.tile(bounds, (len(y), 1)),
    )


@given(problems())
@settings(max_examples=25)
def test_no_group_spends_more_than_claimed_and_one_spends_nearly_all(problem):
    strategy, groups, y, bounds, epsilon = problem
    reached, claimed = spent(strategy, groups, y, bounds=bounds, epsilon=epsilon)
    assert ACHIEVED_SHARE * claimed <= reached <= claimed


def test_without_groups_a_group_spends_more():
    """The brute force can fail: protecting rows alone is not enough."""
    rng = np.random.default_rng(1)
    strategy, groups, y = rng.normal(size=(3, 8)), np.arange(8) // 2, rng.uniform(size=8)
    reached, claimed = spent(strategy, groups, y, bounds=(0.0, 1.0), told=False)
    assert reached > 1.1 * claimed


@pytest.mark.parametrize("share", [0.99, 0.9])
def test_a_broken_gauge_is_caught(monkeypatch, share):
    """Mutation: a gauge that is a little short must fail the brute force."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.balls.greatest_gauge",
        lambda strategy, groups: share * greatest_gauge(strategy, groups=groups),
    )
    rng = np.random.default_rng(1)
    strategy, groups, y = rng.normal(size=(3, 8)), np.arange(8) // 2, rng.uniform(size=8)
    reached, claimed = spent(strategy, groups, y, bounds=(0.0, 1.0))
    assert reached > claimed


def test_groups_are_numbered_in_order_of_appearance():
    names = pd.Series(["b", "a", "b", "c"])
    assert checked_groups(names, rows=4).tolist() == [0, 1, 0, 2]
    assert checked_groups(pd.Categorical(["u", "v", "u"]), rows=3).tolist() == [0, 1, 0]
    assert checked_groups([1, 2, 3], rows=3) is None
    assert checked_groups(None, rows=3) is None


@pytest.mark.parametrize(
    "groups",
    [
        ["a", "b"],
        "abc",
        ["a", None, "a"],
        ["a", math.nan, "a"],
        ["a", pd.NA, "a"],
        ["a", pd.NaT, "a"],
        [["a"], ["b"], ["a"]],
        np.zeros((3, 2)),
    ],
)
def test_groups_that_leave_somebody_out_are_refused(groups):
    with pytest.raises(ValueError, match="groups"):
        checked_groups(groups, rows=3)
