"""Laplace noise: the guarantee over all neighbours, the noise itself, and an attack on it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laplace_neighbours import laplace_door, loss_over_neighbours
from scipy import stats

from cloakgp.privacy.bounds import OutputBounds
from cloakgp.privacy.laplace import (
    absolute_sensitivity,
    calibrate_laplace,
    measure_laplace,
)
from cloakgp.privacy.sampler import add_discrete_laplace, add_insecure_laplace

ACHIEVED_SHARE = 0.999
DRAWS = 25_000


def spent_by_measure(strategy, y, *, bounds, epsilon):
    return loss_over_neighbours(
        lambda outputs: (
            measure_laplace(strategy, outputs, bounds=bounds, epsilon=epsilon).guarantee.epsilon
        ),
        y,
        bounds=bounds,
    )


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 6)), draw(st.integers(2, 12))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    if draw(st.booleans()):
        strategy = (rng.integers(answers, size=rows) == np.arange(answers)[:, None]).astype(float)
    offset = draw(st.sampled_from([0.0, -3.0, 1e6, -1e9]))
    width = 10.0 ** draw(st.integers(-2, 5))
    y = rng.uniform(offset - width / 2, offset + 1.5 * width, size=rows)
    # A full move exists for the heaviest column.
    y[np.abs(strategy).sum(axis=0).argmax()] = offset
    return strategy, y, (offset, offset + width), 10.0 ** draw(st.integers(-2, 2))


@given(problems())
@settings(max_examples=60)
def test_no_neighbour_spends_more_than_claimed_and_one_spends_nearly_all(problem):
    strategy, y, bounds, epsilon = problem
    spent, claimed = spent_by_measure(strategy, y, bounds=bounds, epsilon=epsilon)
    assert spent <= Fraction(claimed)
    assert claimed == epsilon
    assert spent >= ACHIEVED_SHARE * claimed


@pytest.mark.parametrize("norm", [np.square, np.abs])
def test_a_broken_sensitivity_is_caught(monkeypatch, norm):
    """Mutations: a sensitivity one per cent short, and one in the norm of Gaussian noise."""
    whole = absolute_sensitivity

    def broken(strategy, *, bounds, step):
        if norm is np.abs:
            return int(0.99 * whole(strategy, bounds=bounds, step=step))
        return int(bounds.width * math.sqrt(norm(strategy).sum(axis=0).max()) / step)

    monkeypatch.setattr(laplace_door, "absolute_sensitivity", broken)
    strategy = np.random.default_rng(0).normal(size=(3, 10))
    spent, claimed = spent_by_measure(strategy, np.zeros(10), bounds=(0, 1), epsilon=1)
    assert spent > Fraction(claimed)


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 1000, 5000]))
@settings(max_examples=20)
def test_sensitivity_covers_the_rounding_of_long_sums(seed, rows):
    """Far-off bounds and wild weights: sums in float64, their exact moves within the bound."""
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(2, rows)) * 10.0 ** rng.uniform(-8, 8, size=rows)
    bounds = OutputBounds(1e9, 1e9 + 1)
    grid = calibrate_laplace(strategy, bounds=bounds, epsilon=1.0)
    y = rng.uniform(bounds.lo, bounds.hi, size=rows)
    heaviest = np.abs(strategy).sum(axis=0).argmax()
    moved = y.copy()
    y[heaviest], moved[heaviest] = bounds.lo, bounds.hi
    integers = [np.rint(strategy @ (outputs - bounds.middle) / grid.step) for outputs in (y, moved)]
    assert np.abs(integers[0] - integers[1]).sum() <= grid.sensitivity


def test_the_noise_is_discrete_laplace():
    tau, draws = 2.5, 40_000
    noise = add_discrete_laplace(np.zeros(draws, dtype=np.int64), scale=tau, sensitivity=1)
    edges = np.arange(-8, 9)
    ratio = math.exp(-1 / tau)
    middle = (1 - ratio) / (1 + ratio) * ratio ** np.abs(edges)
    observed = np.array([(noise == edge).sum() for edge in edges])
    expected = np.append(middle, 1 - middle.sum()) * draws
    # One test in 10,000 fails by chance.
    assert stats.chisquare(np.append(observed, draws - observed.sum()), expected).pvalue > 1e-4


def test_answers_are_unbiased_with_the_stated_noise():
    strategy = np.random.default_rng(1).normal(size=(4000, 3))
    answers = measure_laplace(strategy, [0.2, 0.9, 5.0], bounds=(0, 1), epsilon=2.0)
    noise = answers.values - strategy @ (np.array([0.2, 0.9, 1.0]) - 0.5)
    longest = np.abs(strategy).sum(axis=0).max()
    assert answers.scale == pytest.approx(longest / 2, rel=1e-8)
    assert answers.noise_sd**2 == pytest.approx(2 * answers.scale**2)
    assert stats.kstest(noise / answers.scale, "laplace").pvalue > 1e-4
    # The fourth moment of a Laplace variable is 24 b⁴, so its square has sd √20 b².
    tolerance = 4.5 * math.sqrt(20 / 4000) * answers.scale**2
    assert np.square(noise).mean() == pytest.approx(answers.noise_sd**2, abs=tolerance)


def test_against_opendp_and_the_pure_definition():
    grid = calibrate_laplace(np.eye(3), bounds=OutputBounds(0.0, 10.0), epsilon=0.7)
    # Three answers rounded to the grid cost three steps of it.
    assert grid.sensitivity == pytest.approx(10 / grid.step, rel=1e-11)
    assert Fraction(grid.sensitivity) <= Fraction(grid.scale) * Fraction(0.7)
    assert grid.scale / (grid.sensitivity / 0.7) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 1.0), (0.3, 1.0), (2.0, 1.0), (1.0, 0.8)])
def test_an_attack_on_a_histogram_attains_the_loss_and_no_more(epsilon, share):
    """The event that attains e^ε, over many releases; with a fifth less noise it is found out."""
    strategy = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    bounds = OutputBounds(0.0, 1.0)
    grid = calibrate_laplace(strategy, bounds=bounds, epsilon=epsilon)
    y, neighbour = np.array([0.0, 0.5, 0.2]), np.array([1.0, 0.5, 0.2])
    rates = []
    for outputs in (y, neighbour):
        integers = np.rint(strategy @ (outputs - 0.5) / grid.step).astype(np.int64)
        # The other bin is alike in both: its noise tells nothing.
        noisy = add_discrete_laplace(
            np.repeat(integers[:1], DRAWS), scale=grid.scale * share, sensitivity=grid.sensitivity
        )
        rates.append(np.mean(noisy * grid.step <= -0.5))
    here, there = rates
    excess = here - math.exp(epsilon) * there
    error = math.sqrt((here * (1 - here) + math.exp(2 * epsilon) * there * (1 - there)) / DRAWS)
    if share == 1:
        # Five standard errors: a false alarm in a million runs. P = ½ e^0, P' = ½ e^-ε.
        assert abs(excess) <= 5 * error
        assert here == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(DRAWS))
    else:
        assert excess > 5 * error


def test_openDPs_own_map_must_agree(monkeypatch):
    class Measurement:
        def map(self, distance):
            return float(distance)

        def __call__(self, _):
            raise AssertionError("nothing may be drawn")

    monkeypatch.setattr("opendp.prelude.m.make_laplace", lambda *_, **__: Measurement())
    with pytest.raises(RuntimeError, match="nothing released"):
        add_discrete_laplace(np.zeros(1, dtype=np.int64), scale=10.0, sensitivity=3)


def test_noise_differs_and_seeded_noise_repeats_and_says_so():
    arguments = {"bounds": (0, 1), "epsilon": 1.0}
    first, second = (measure_laplace(np.eye(2), [0.0, 1.0], **arguments) for _ in range(2))
    assert not np.array_equal(first.values, second.values)
    assert not first.insecure
    first, second = (
        measure_laplace(np.eye(2), [0.0, 1.0], **arguments, insecure_seed=7) for _ in range(2)
    )
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    noise = add_insecure_laplace(np.zeros(20_000, dtype=np.int64), scale=1e9, seed=0)
    assert stats.kstest(noise / 1e9, "laplace").pvalue > 1e-4


def test_huge_answers_take_a_coarser_grid():
    bounds = OutputBounds(0.0, 1.0)
    fine = calibrate_laplace(np.ones((1, 3)), bounds=bounds, epsilon=1.0)
    coarse = calibrate_laplace(np.ones((1, 3_000_000)), bounds=bounds, epsilon=1.0)
    assert coarse.step > fine.step
    assert Fraction(coarse.sensitivity) <= Fraction(coarse.scale)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": 1e-300}, "too small"),
        ({"bounds": None}, "bounds"),
        ({"strategy": np.zeros((1, 2))}, "rescale"),
        ({"strategy": np.array([[math.nan, 1.0]])}, "strategy"),
        ({"y": [math.nan, 1.0]}, "NaN"),
        ({"y": [1.0]}, "agree"),
    ],
)
def test_bad_settings(change, complaint):
    given_ = {"strategy": np.eye(2), "y": [0.0, 1.0], "bounds": (0, 1), "epsilon": 1.0} | change
    with pytest.raises(ValueError, match=complaint):
        measure_laplace(given_.pop("strategy"), given_.pop("y"), **given_)


def test_noise_that_64_bits_cannot_hold_is_refused():
    """So many answers that counting their rounding outgrows the noise."""
    with pytest.raises(ValueError, match="too small"):
        calibrate_laplace(np.ones((2**19, 1)), bounds=OutputBounds(0.0, 1.0), epsilon=2.0**-40)


def test_no_message_shows_an_output():
    with pytest.raises(ValueError, match="numeric") as caught:
        measure_laplace(np.eye(2), ["secret", 1.0], bounds=(0, 1), epsilon=1.0)
    assert "secret" not in str(caught.value)
