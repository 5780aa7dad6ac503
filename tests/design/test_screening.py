"""No column that is ruled out carries weight in an optimum solved without ruling anything out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.design import screening
from cloakgp.design.objectives import factorise
from cloakgp.design.screening import may_carry_weight
from cloakgp.design.solver import optimal_weights

CRITERIA = ["logdet", "trace"]
# Weights of an optimum solved to 1e-11 that are above what its gap leaves open.
WEIGHT = 1e-5
POWER = {"logdet": 1.0, "trace": 2.0}


def gaussian(rng, dimension, count):
    return rng.normal(size=(dimension, count))


def on_sphere(rng, dimension, count):
    columns = rng.normal(size=(dimension, count))
    return columns / np.linalg.norm(columns, axis=0)


def duplicates(rng, dimension, count):
    distinct = rng.normal(size=(dimension, max(count // 2, dimension)))
    return np.hstack([distinct, distinct])


def nearly_dependent(rng, dimension, count):
    columns = rng.normal(size=(dimension, count))
    columns[-1] = columns[0] + 1e-4 * columns[-1]
    return columns


def graded(rng, dimension, count):
    return rng.normal(size=(dimension, count)) * np.logspace(0, -3, dimension)[:, None]


FAMILIES = [gaussian, on_sphere, duplicates, nearly_dependent, graded]


def iterates(criterion, columns, steps=(0, 2, 6, 15, 40, 120)):
    """Weights on the way to the optimum, from the definition of the multiplicative algorithm."""
    weights = np.full(columns.shape[1], 1 / columns.shape[1])
    for step in range(max(steps) + 1):
        iterate = factorise(criterion, columns, weights)
        gains = iterate.gains(columns)
        if step in steps:
            yield iterate, max(float(gains.max() - 1.0), 0.0)
        weights = weights * gains ** POWER[criterion]
        weights /= weights.sum()


def least_ratio(criterion, columns):
    """c_jᵀ X* c_j: 1 where weight may lie."""
    optimum = optimal_weights(columns, criterion=criterion, gap=1e-11)
    assert optimum.gap <= 1e-9
    return optimum.weights, optimum.iterate.gains(columns)


def wrongly_ruled_out(criterion, columns, *, rule=may_carry_weight):
    """How many supporting columns are ruled out along the way, and how many columns in all."""
    weights, tightness = least_ratio(criterion, columns)
    supporting = (weights > WEIGHT) & (tightness > 1 - 1e-6)
    wrong = ruled_out = 0
    for iterate, gap in iterates(criterion, columns):
        kept = rule(iterate, columns, gap=gap)
        wrong += int(np.count_nonzero(~kept & supporting))
        ruled_out += int(np.count_nonzero(~kept))
    return wrong, ruled_out


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1), dimension=st.integers(2, 6), extra=st.integers(0, 30))
def test_no_supporting_column_is_ruled_out(criterion, family, seed, dimension, extra):
    columns = family(np.random.default_rng(seed), dimension, dimension + extra)
    wrong, _ = wrongly_ruled_out(criterion, columns)
    assert wrong == 0


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", [gaussian, nearly_dependent])
def test_most_columns_are_ruled_out_near_the_optimum(criterion, family, rng):
    columns = family(rng, 5, 200)
    optimum = optimal_weights(columns, criterion=criterion, gap=1e-9)
    kept = may_carry_weight(optimum.iterate, columns, gap=optimum.gap)
    assert kept[optimum.weights > WEIGHT].all()
    assert np.count_nonzero(kept) < 100


# Bounds that look right, and forget how far the design is from the optimum.
CARELESS = {
    "trace": lambda iterate, columns, *, gap: iterate.gains(columns) >= 1.0 - gap,
    "logdet": lambda iterate, columns, *, gap: iterate.gains(columns) >= 1.0 / (1.0 + gap),
}


@pytest.mark.parametrize("criterion", CRITERIA)
def test_careless_bounds_are_caught(criterion):
    wrong = 0
    for seed in range(20):
        for family in FAMILIES:
            columns = family(np.random.default_rng(seed), 4, 25)
            wrong += wrongly_ruled_out(criterion, columns, rule=CARELESS[criterion])[0]
    assert wrong > 0


@pytest.mark.parametrize(
    ("criterion", "term", "without"),
    [
        ("trace", "np.sqrt(widened * leverages)", "0.0"),
        ("logdet", "1.0 + excess / 2.0 + spread / 2.0", "1.0 + excess / 2.0"),
    ],
)
def test_the_terms_of_the_bounds_are_needed(criterion, term, without):
    """The very code, without one term of it, rules out columns that carry weight."""
    source = inspect.getsource(may_carry_weight)
    assert term in source
    names = dict(vars(screening))
    exec(source.replace(term, without), names)
    wrong = 0
    for seed in range(20):
        for family in FAMILIES:
            columns = family(np.random.default_rng(seed), 4, 25)
            wrong += wrongly_ruled_out(criterion, columns, rule=names["may_carry_weight"])[0]
    assert wrong > 0


@given(dimension=st.integers(2, 50), gap=st.floats(1e-12, 10.0), seed=st.integers(0, 2**32 - 1))
def test_the_bound_of_logdet_is_that_of_harman_and_pronzato(dimension, gap, seed):
    """In their own form, on a design of known gains."""
    scale = np.random.default_rng(seed).uniform(0, 1.2)
    iterate = factorise("logdet", np.eye(dimension), np.full(dimension, 1 / dimension))
    column = np.zeros((dimension, 1))
    column[0] = np.sqrt(scale)
    excess = dimension * gap
    bound = 1 + excess / 2 - np.sqrt(excess * (4 + excess - 4 / dimension)) / 2
    if abs(scale - bound) > 1e-9 * (1 + excess):
        assert may_carry_weight(iterate, column, gap=gap)[0] == (scale >= bound)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_nothing_is_ruled_out_without_digits(criterion):
    columns = np.diag([1.0, 1e-12])
    columns = np.hstack([columns, 1e-3 * columns])
    iterate = factorise(criterion, columns, np.array([0.5, 0.5, 0.0, 0.0]))
    assert may_carry_weight(iterate, columns, gap=1e-9).all()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("gap", [np.inf, np.nan, -1e-3])
def test_nothing_is_ruled_out_without_a_gap(criterion, gap):
    iterate = factorise(criterion, np.eye(2), np.array([0.5, 0.5]))
    assert may_carry_weight(iterate, 1e-3 * np.eye(2), gap=gap).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_optimum_without_them_is_the_same(criterion, rng):
    columns = rng.normal(size=(6, 400))
    rough = optimal_weights(columns, criterion=criterion, gap=1e-3)
    kept = may_carry_weight(rough.iterate, columns, gap=rough.gap)
    assert np.count_nonzero(kept) < 200
    few = optimal_weights(columns[:, kept], criterion=criterion, gap=1e-10)
    assert few.iterate.gains(columns).max() - 1 <= 1e-9
