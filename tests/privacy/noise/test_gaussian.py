"""Gaussian noise as a law: its norm, its calibration, and what keeps a guarantee."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.privacy.accounting import Guarantee, exact_noise_multiplier, papers_noise_multiplier
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes


@given(st.integers(0, 2**32 - 1))
def test_norms_are_rounded_up(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(rng.integers(1, 30), 4)) * 10.0 ** rng.uniform(-8, 8, size=4)
    squares = [sum(Fraction(entry) ** 2 for entry in column) for column in columns.T]
    for found, square in zip(GAUSSIAN.lengths(columns), squares, strict=True):
        assert square <= Fraction(found) ** 2 <= square * (1 + Fraction(1, 10**12))
    assert sum(squares) <= Fraction(GAUSSIAN.norm(columns)) ** 2
    assert Fraction(GAUSSIAN.gauge(columns, groups=None)) ** 2 >= max(squares)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 10**6])
def test_the_norm_of_ones_is_rounded_up(count):
    assert count <= Fraction(GAUSSIAN.norm_of_ones(count)) ** 2 <= count * (1 + 2.0**-40)


@pytest.mark.parametrize(
    ("encoding", "squared"),
    [(OutputBounds(-1.0, 2.0), 9), (Classes((0, 1)), 4), (Classes(("a", "b", "c")), 2)],
)
def test_how_far_a_row_moves(encoding, squared):
    assert squared <= Fraction(GAUSSIAN.distance(encoding)) ** 2 <= squared * (1 + 2.0**-40)


@given(
    sensitivity=st.integers(2**35, 2**45), epsilon=st.floats(0.01, 50), delta=st.floats(1e-9, 0.3)
)
def test_a_scale_keeps_its_guarantee_and_wastes_little(sensitivity, epsilon, delta):
    scale, guarantee = GAUSSIAN.scale(sensitivity, answers=3, epsilon=epsilon, delta=delta)
    assert Fraction(sensitivity) <= Fraction(guarantee.mu) * Fraction(scale)
    assert guarantee.delta_at(epsilon) <= delta
    assert scale / sensitivity == pytest.approx(GAUSSIAN.unit_sd(epsilon, delta), rel=1e-6)
    assert GAUSSIAN.unit_sd(epsilon, delta) == exact_noise_multiplier(epsilon, delta)
    assert GAUSSIAN.sd(scale) == scale
    assert GAUSSIAN.keeps(guarantee, sensitivity_over_noise=sensitivity / scale)
    assert not GAUSSIAN.keeps(guarantee, sensitivity_over_noise=1.00001 * sensitivity / scale)


def test_the_papers_scale():
    scale, _ = GAUSSIAN.scale(2**40, answers=1, epsilon=0.5, delta=0.01, calibration="papers")
    assert scale / 2**40 == pytest.approx(papers_noise_multiplier(0.5, 0.01), rel=1e-12)


def test_noise_of_another_law_keeps_no_guarantee_of_this():
    pure = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    assert not GAUSSIAN.keeps(pure, sensitivity_over_noise=0.0)
    assert not GAUSSIAN.keeps(
        Guarantee(epsilon=1.0, delta=0.1, mu=math.nan), sensitivity_over_noise=0.1
    )


@pytest.mark.parametrize(
    ("budget", "calibration", "complaint"),
    [
        ((1.0, 0.0), "exact", "needs a delta above 0"),
        ((0.0, 0.1), "exact", "epsilon"),
        ((1.0, 1.0), "exact", "delta"),
        ((1.0, 0.1), "wishful", "calibration"),
    ],
)
def test_budgets_that_are_none(budget, calibration, complaint):
    with pytest.raises(ValueError, match=complaint):
        GAUSSIAN.check(*budget, calibration=calibration)
