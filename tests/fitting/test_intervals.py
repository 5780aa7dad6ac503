"""The search for intervals of several outputs: what it may spend, and what it hands on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fits import find

from cloakgp import DPGPMultiOutputRegressor
from cloakgp.design import Certificate
from cloakgp.fitting.bands import (
    DEFAULT_STAGES,
    REACH,
    default_stages,
    reach_of_rows,
    schedule_stages,
)
from cloakgp.fitting.held import HeldEntries, HeldTable
from cloakgp.fitting.interval import (
    COUNT_PRECISION,
    MOST_ROUNDS,
    NO_SEARCH,
    plan_search,
)
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models.kernels.coregion import as_entries
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.noise import LAPLACE, NOISES
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns
from cloakgp.release import DenseStrategy
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

BUDGETS = {"gaussian": Budget(1.0, 1e-5), "laplace": Budget(1.0, 0.0, noise="laplace")}
ROWS = 600
X = np.linspace(0.0, 10.0, ROWS)[:, None]


def plan(noise="laplace", *, rows=ROWS, outputs=2, **others):
    return plan_search(STANDARD_BOUNDS, budget=BUDGETS[noise], rows=rows, outputs=outputs, **others)


def searched(y, pairs, *, noise="laplace", groups=None, seed=3):
    """Return the intervals that were found, and the counts as a release keeps them."""
    columns = OutputColumns.checked(pairs)
    table = HeldEntries.of_columns(X, columns=columns, groups=groups)
    search = plan(noise, outputs=len(pairs))
    found, counts = find(table, y, bounds=columns.bounds, plan=search, insecure_seed=seed)
    every = Query(as_entries(X, count=len(pairs)))
    first = DenseStrategy(
        X=table.X,
        matrix=np.ones((1, len(table.X))),
        X_query=every.X,
        query_weights=every.weights,
        reconstruction=None,
        certificate=Certificate(criterion="given", gap=np.inf),
    )
    return OutputColumns(found), table.within(found).measure_counts(counts, first=first)


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(100.0, 8.0, size=ROWS), rng.uniform(0.0, 1.0, size=ROWS)])


# --- the price ---


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("rows", [800, 3_000, 10**6])
def test_a_round_of_all_outputs_costs_no_more_than_one_of_one_output_may(rows, outputs, noise):
    found = plan(noise, rows=rows, outputs=outputs)
    assert len(found.rounds) % outputs == 0
    assert outputs <= len(found.rounds) <= outputs * MOST_ROUNDS
    assert outputs * found.share <= NOISES[noise].shares.largest_round
    assert found.spent(len(found.rounds)) <= NOISES[noise].shares.all_rounds * (1 + 1e-9)
    # Counts of one output are as precise as they are to be, whatever the others cost.
    two = math.sqrt(2.0) if noise == "gaussian" else 2.0
    assert two * found.rounds[0].unit_sd() / rows <= COUNT_PRECISION * (1 + 1e-4)


def test_several_outputs_need_more_rows():
    """With Laplace noise as many times more, as ε adds up; with Gaussian noise by the root."""
    least = {
        noise: [
            next(
                rows
                for rows in range(50, 2_000, 5)
                if plan(noise, rows=rows, outputs=outputs) != NO_SEARCH
            )
            for outputs in (1, 2, 4)
        ]
        for noise in ("gaussian", "laplace")
    }
    one, two, four = least["laplace"]
    assert [two / one, four / one] == pytest.approx([2, 4], rel=0.05)
    one, two, four = least["gaussian"]
    assert [two / one, four / one] == pytest.approx([math.sqrt(2), 2], rel=0.05)


@pytest.mark.parametrize("outputs", [2, 3])
@pytest.mark.parametrize("more", [0, 1, 3])
def test_search_and_stages_share_one_budget(outputs, more):
    whole, search = BUDGETS["gaussian"], plan("gaussian", rows=900, outputs=outputs)
    steps = schedule_stages(
        DEFAULT_STAGES, budget=whole, rows=900, ask_spread=True, spent=search.spent(outputs + more)
    )
    parts = [*search.rounds[: outputs + more], *(step.budget for step in steps)]
    squares = math.fsum(exact_noise_multiplier(one.epsilon, one.delta) ** -2 for one in parts)
    limit = exact_noise_multiplier(whole.epsilon, whole.delta) ** -2
    assert limit * (1 - 1e-4) <= squares <= limit


@pytest.mark.parametrize("outputs", [2, 3])
@pytest.mark.parametrize("more", [0, 1, 3])
def test_search_and_stages_share_one_pure_budget(outputs, more):
    search = plan("laplace", rows=900, outputs=outputs)
    steps = schedule_stages(
        default_stages(LAPLACE),
        budget=BUDGETS["laplace"],
        rows=900,
        ask_spread=True,
        spent=search.spent(outputs + more),
    )
    parts = [*search.rounds[: outputs + more], *(step.budget for step in steps)]
    spent = math.fsum(one.epsilon for one in parts)
    assert 1 - 1e-5 <= spent <= 1.0


# --- the search ---


def test_one_output_is_searched_as_ever():
    """The first of two outputs, with the same budgets and seeds, finds what it would alone."""
    y, pairs = drawn(), [(-4000.0, 4000.0), (0.0, 1.0)]
    found, counted = searched(y, pairs)
    bounds = OutputBounds(*pairs[0])
    [alone], rounds = find(
        HeldTable.of(X), y[:, 0], bounds=(bounds,), plan=plan("laplace"), insecure_seed=3
    )
    assert found.bounds[0] == alone
    for one, other in zip(counted, rounds, strict=False):
        np.testing.assert_allclose(one.answers.values, other.answers.values, rtol=1e-6, atol=1e-6)


def test_counts_are_about_one_output_each_and_in_its_widths():
    pairs = [(-4000.0, 4000.0), (0.0, 1.0)]
    found, counted = searched(drawn(), pairs)
    assert found.bounds[0].width < 200
    # Good bounds stay.
    assert found.bounds[1] == OutputBounds(0.0, 1.0)
    which = np.tile([0, 1], ROWS)
    for one in counted:
        output = int(one.strategy.matrix[0].argmax())
        np.testing.assert_array_equal(one.strategy.matrix[0] == 1.0, which == output)
        one.validate()
        limits = found.bounds[output]
        ends = limits.middle + limits.width * np.array(one.question.ends)
        np.testing.assert_allclose(ends, pairs[output], rtol=1e-12)
    assert {int(one.strategy.matrix[0].argmax()) for one in counted} == {0, 1}


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_rounds_that_one_output_does_not_need_are_for_the_next(wide, seed):
    pairs = [(0.0, 200.0), (-0.1, 1.1)]
    pairs[wide] = (-1e5, 1e6)
    most = len(plan().rounds)
    _, counted = searched(drawn(seed), pairs, seed=seed)
    rounds = [
        sum(int(one.strategy.matrix[0].argmax()) == output for one in counted) for output in (0, 1)
    ]
    assert sum(rounds) <= most
    assert min(rounds) >= 1
    assert rounds[wide] > 1
    # Until the last: the first output has its part alone.
    assert rounds[0] <= most // 2
    assert rounds[1] <= min(most - rounds[0], MOST_ROUNDS)


def test_groups_are_one_person():
    people = np.arange(ROWS) // 2
    _, counted = searched(drawn(), [(0.0, 200.0), (0.0, 1.0)], groups=people)
    _, alone = searched(drawn(), [(0.0, 200.0), (0.0, 1.0)])
    ratio = counted[0].answers.noise_sd / alone[0].answers.noise_sd
    assert ratio == pytest.approx(2.0, rel=1e-6)


# --- where bands are cut ---


def test_bands_may_go_beyond_intervals_and_never_beyond_bounds():
    pairs = [(90.0, 4000.0), (0.0, 1.0)]
    found, counted = searched(drawn(), pairs)
    reach = reach_of_rows(STANDARD_BOUNDS, counted, rows=2 * ROWS)
    for output, (declared, taken) in enumerate(zip(pairs, found.bounds, strict=True)):
        lo = taken.middle + taken.width * reach.lo[output::2]
        hi = taken.middle + taken.width * reach.hi[output::2]
        expected = (
            max(declared[0], taken.lo - REACH * taken.width),
            min(declared[1], taken.hi + REACH * taken.width),
        )
        np.testing.assert_allclose(lo, expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(hi, expected[1], rtol=1e-9, atol=1e-9)
    assert reach_of_rows(STANDARD_BOUNDS, (), rows=2 * ROWS) == STANDARD_BOUNDS


def test_damaged_counts_of_a_part_of_the_rows_are_refused():
    _, counted = searched(drawn(), [(0.0, 200.0), (0.0, 1.0)])
    one = counted[0]
    assert isinstance(one.question, CountQuestion)
    for matrix in (0.5 * one.strategy.matrix, 0.0 * one.strategy.matrix):
        with pytest.raises(ValueError, match=r"fit|noise"):
            replace(one, strategy=replace(one.strategy, matrix=matrix)).validate()


def test_one_output_of_two_values_is_told_and_takes_bands_from_all():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(600, 1))
    chance = 1 / (1 + np.exp(5 - X[:, 0]))
    Y = np.column_stack([rng.random(600) < chance, 50 + 5 * np.sin(X[:, 0])])
    model = DPGPMultiOutputRegressor(
        bounds=[(0, 1), (0, 100)], epsilon=5.0, inducing=10, insecure_seed=0
    )
    release = model.fit(X, Y).release_
    text = as_text(describe(release), width=10_000)
    assert text.count("By noisy counts most seem to be one of these: 0 (about") == 1
    assert not any(isinstance(one.question, Bands) for one in release.entries.measurements)
