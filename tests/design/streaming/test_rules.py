"""Rules against what a maximum must satisfy, and against a solver that knows nothing of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from cloakgp.design.streaming import rules
from cloakgp.design.streaming.rules import BallRule, LinearRule, PartitionRule

SEEDS = st.integers(0, 2**32 - 1)
EPS = np.finfo(np.float64).eps


def lengths(columns):
    """‖r_j‖, whatever the scale."""
    largest = np.abs(columns).max(axis=0)
    scaled = columns / np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(np.square(scaled).sum(axis=0))


def value(columns, wanted, penalties):
    """2 rᵀ w − rᵀ diag(p) r of every column."""
    return (2 * columns * wanted - penalties * np.square(columns)).sum(axis=0)


def parts(rule, features, noise):
    """w = L v and p = λ q."""
    return rule.matrix @ features, rule.curvatures[:, None] * noise


def drawn(seed, *, answers=None, rows=40, spread=2.0):
    """A rule of any shape and rows for it: short, long and zero columns, some curvatures zero."""
    rng = np.random.default_rng(seed)
    answers = answers or int(rng.integers(1, 9))
    known = int(rng.integers(1, 6))
    curvatures = np.exp(spread * rng.normal(size=answers)) * (rng.random(answers) < 0.8)
    matrix = rng.normal(size=(answers, known)) * np.exp(spread * rng.normal(size=(answers, 1)))
    features = rng.normal(size=(known, rows)) * np.exp(spread * rng.normal(size=rows))
    features[:, rng.random(rows) < 0.1] = 0.0
    rule = BallRule(matrix=matrix, curvatures=curvatures)
    return rule, features, np.exp(rng.normal(size=rows))


@given(seed=SEEDS, answers=st.integers(1, 3))
def test_no_solver_finds_a_better_column(seed, answers):
    rule, features, noise = drawn(seed, answers=answers, rows=4, spread=1.0)
    wanted, penalties = parts(rule, features, noise)
    found = value(rule.columns(features, noise), wanted, penalties)
    for row in range(4):
        w, p = wanted[:, row], penalties[:, row]
        size = np.abs(w).max() or 1.0
        best = optimize.minimize(
            lambda r, w=w, p=p, size=size: (p @ r**2 - 2 * w @ r) / size,
            np.zeros(answers),
            jac=lambda r, w=w, p=p, size=size: 2 * (p * r - w) / size,
            constraints={"type": "ineq", "fun": lambda r: 1 - r @ r, "jac": lambda r: -2 * r},
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        )
        assert found[row] / size == pytest.approx(-best.fun, rel=1e-6, abs=1e-7)


@given(seed=SEEDS, spread=st.floats(0.0, 8.0))
def test_columns_satisfy_the_conditions_of_a_maximum(seed, spread):
    """Karush, Kuhn and Tucker: (p + ν) r = w, ν ≥ 0, and ν = 0 where ‖r‖ < 1.

    The objective is concave and the ball convex, so they are enough. ν is had from the column:
    rᵀ(w − p r) = ν where ‖r‖ = 1.
    """
    rule, features, noise = drawn(seed, spread=spread)
    wanted, penalties = parts(rule, features, noise)
    columns = rule.columns(features, noise)
    reached = lengths(columns)
    assert (reached <= 1 + 1e-12).all()
    residual = wanted - penalties * columns
    multipliers = np.where(reached > 1 - 1e-9, (columns * residual).sum(axis=0), 0.0)
    size = np.maximum(lengths(wanted), 1e-300)
    assert (multipliers >= -1e-9 * size).all()
    np.testing.assert_allclose(residual / size, multipliers / size * columns, atol=1e-8)


def test_inside_the_ball_the_maximum_is_that_of_the_quadratic_function():
    rule = BallRule(matrix=np.array([[1.0], [2.0]]), curvatures=np.array([4.0, 8.0]))
    noise = np.array([1.0, 2.0])
    columns = rule.columns(np.ones((1, 2)), noise)
    np.testing.assert_allclose(columns, [[1 / 4, 1 / 8], [2 / 8, 2 / 16]], rtol=1e-14)
    assert (lengths(columns) < 1).all()


def test_an_entry_without_curvature_takes_what_the_others_leave():
    """w = (1, w₂), q = (2, 0): r₁ = 1/(2 + ν), r₂ = √(1 − r₁²) = w₂/ν."""
    for small in (1e-2, 1e-6, 1e-12):
        rule = BallRule(matrix=np.array([[1.0], [small]]), curvatures=np.array([2.0, 0.0]))
        column = rule.columns(np.ones((1, 1)), np.ones(1))[:, 0]
        multiplier = small / column[1]
        np.testing.assert_allclose(column[0], 1 / (2 + multiplier), rtol=1e-8)
        np.testing.assert_allclose(np.square(column).sum(), 1.0, rtol=1e-8)


@given(seed=SEEDS)
def test_without_curvature_columns_are_directions(seed):
    rule, features, noise = drawn(seed)
    rule = BallRule(matrix=rule.matrix, curvatures=np.zeros(rule.answers))
    wanted, _ = parts(rule, features, noise)
    columns = rule.columns(features, noise)
    size = lengths(wanted)
    np.testing.assert_allclose(columns * size, wanted, rtol=1e-12, atol=0)
    np.testing.assert_allclose(lengths(columns), size > 0, rtol=1e-12)


@pytest.mark.parametrize("curvature", [0.0, 1.0])
def test_nothing_wanted_is_nothing_asked(curvature):
    rule = BallRule(matrix=np.eye(3), curvatures=np.array([curvature, 0.0, curvature]))
    columns = rule.columns(np.zeros((3, 2)), np.ones(2))
    np.testing.assert_array_equal(columns, np.zeros((3, 2)))


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-160, 1e-150, 1e20, 1e150, 1e160, 1e290])
@given(seed=SEEDS)
def test_units_do_not_matter(scale, seed):
    """With w and p in other units the maximum is where it was."""
    rule, features, noise = drawn(seed, rows=10, spread=1.0)
    for curvatures in (rule.curvatures, np.zeros(rule.answers)):
        plain = BallRule(matrix=rule.matrix, curvatures=curvatures)
        scaled = BallRule(matrix=rule.matrix * scale, curvatures=curvatures * scale)
        columns = scaled.columns(features, noise)
        assert (lengths(columns) <= 1 + 1e-12).all()
        np.testing.assert_allclose(columns, plain.columns(features, noise), rtol=1e-6, atol=1e-8)


@given(
    seed=SEEDS,
    exponents=st.tuples(*[st.integers(-150, 150)] * 3),
)
def test_columns_are_never_too_long(seed, exponents):
    """Whatever the scales of what is wanted, of curvatures and of noise are."""
    rule, features, noise = drawn(seed, rows=20, spread=4.0)
    wild = BallRule(
        matrix=rule.matrix * 10.0 ** exponents[0], curvatures=rule.curvatures * 10.0 ** exponents[1]
    )
    columns = wild.columns(features, noise * 10.0 ** (exponents[2] / 2))
    assert np.isfinite(columns).all()
    assert (lengths(columns) <= 1 + 1e-12).all()


@given(seed=SEEDS, block=st.integers(1, 50))
def test_blocks_change_nothing(seed, block):
    rule, features, noise = drawn(seed)
    whole = rule.columns(features, noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "BLOCK_ROWS", block)
        np.testing.assert_allclose(rule.columns(features, noise), whole, rtol=0, atol=1e-9)


@given(seed=SEEDS, start=st.integers(0, 39), count=st.integers(1, 40))
def test_a_column_depends_on_its_own_row_alone(seed, start, count):
    """The private pass asks in chunks of its own: it must ask what the design was made with."""
    ball, features, noise = drawn(seed)
    some = slice(start, start + count)
    for rule in (ball, LinearRule(matrix=ball.matrix)):
        whole = rule.columns(features, noise)
        # By as little as the promised length of `measure_rows` leaves room for.
        size = np.abs(whole).max(initial=1.0)
        np.testing.assert_allclose(
            rule.columns(features[:, some], noise[some]), whole[:, some], rtol=0, atol=1e-9 * size
        )


@given(seed=SEEDS)
def test_what_is_given_stays_as_it_was(seed):
    rule, features, noise = drawn(seed)
    before = rule.matrix.copy(), features.copy(), noise.copy()
    rule.columns(features, noise)
    for one, other in zip(before, (rule.matrix, features, noise), strict=True):
        np.testing.assert_array_equal(one, other)


def test_linear_rule_is_a_matrix_product(rng):
    matrix, features, noise = rng.normal(size=(3, 4)), rng.normal(size=(4, 9)), rng.random(9) + 0.1
    rule = LinearRule(matrix=matrix)
    assert rule.answers == 3
    np.testing.assert_allclose(
        rule.columns(features, noise), matrix @ features @ np.diag(1 / noise), rtol=1e-12
    )
    assert LinearRule(matrix=np.zeros((0, 4))).columns(features, noise).shape == (0, 9)


@given(seed=SEEDS)
def test_no_vertex_of_the_l1_ball_is_better(seed):
    ball, features, noise = drawn(seed)
    rule = PartitionRule(matrix=ball.matrix, curvatures=ball.curvatures)
    columns = rule.columns(features, noise)
    np.testing.assert_array_equal(np.abs(columns).sum(axis=0), np.ones(len(noise)))
    wanted, penalties = parts(rule, features, noise)
    found = value(columns, wanted, penalties)
    for part in range(rule.answers):
        for sign in (1.0, -1.0):
            vertex = np.zeros_like(columns)
            vertex[part] = sign
            assert (value(vertex, wanted, penalties) <= found).all()


def test_a_partition_without_answers_asks_nothing():
    rule = PartitionRule(matrix=np.zeros((0, 3)), curvatures=np.zeros(0))
    rule.validate()
    assert rule.columns(np.ones((3, 5)), np.ones(5)).shape == (0, 5)


@pytest.mark.parametrize("curvatures", [np.zeros(3), np.array([1.0, -1.0]), np.full(2, np.nan)])
def test_a_damaged_partition_is_refused(curvatures):
    with pytest.raises(ValueError, match="damaged"):
        PartitionRule(matrix=np.ones((2, 3)), curvatures=curvatures).validate()
