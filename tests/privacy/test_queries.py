"""The guarantee, verified over all neighbours on the very integers that get the noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door, spent_over_neighbours

from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.ask import ask
from cloakgp.privacy.grid import Sensitivity, calibrate, integer_sensitivity
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.bounds import OutputBounds


def spent_by_measure(strategy, y, *, bounds, **settings_):
    """Return (largest μ over all neighbours of y, claimed μ) of one call of `measure`."""
    return spent_over_neighbours(
        lambda outputs: (
            ask(strategy, outputs, question=OutputBounds.checked(bounds), **settings_).guarantee.mu
        ),
        y,
        bounds=bounds,
    )


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 6)), draw(st.integers(2, 12))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    offset = draw(st.sampled_from([0.0, -3.0, 1e6, -1e9]))
    width = 10.0 ** draw(st.integers(-2, 5))
    bounds = (offset, offset + width)
    # Some outputs at the ends, some beyond, the rest anywhere.
    y = rng.uniform(offset - width / 2, offset + 1.5 * width, size=rows)
    y[rng.integers(rows)] = offset
    epsilon = 10.0 ** draw(st.integers(-2, 2))
    delta = 10.0 ** draw(st.integers(-12, -1))
    return strategy, y, bounds, epsilon, delta


@given(problems())
@settings(max_examples=60)
def test_no_neighbour_spends_more_than_claimed_and_one_spends_nearly_all(problem):
    strategy, y, bounds, epsilon, delta = problem
    # Every row sits at one end in turn, so that a full move exists for the heaviest column.
    heaviest = np.square(strategy).sum(axis=0).argmax()
    y[heaviest] = bounds[0]
    spent, claimed = spent_by_measure(strategy, y, bounds=bounds, epsilon=epsilon, delta=delta)
    assert spent <= claimed
    assert spent >= ACHIEVED_SHARE * claimed


def test_papers_calibration_spends_what_it_claims():
    strategy = np.random.default_rng(0).normal(size=(3, 10))
    y = np.zeros(10)
    spent, claimed = spent_by_measure(
        strategy, y, bounds=(0, 1), epsilon=0.5, delta=0.01, calibration="papers"
    )
    assert ACHIEVED_SHARE * claimed <= spent <= claimed
    assert claimed == pytest.approx(0.5 / math.sqrt(2 * math.log(200)), rel=1e-6)


def test_a_broken_sensitivity_is_caught(monkeypatch):
    """Mutation: with a sensitivity one per cent short, the brute force above must object."""
    whole = integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *args, **kw: int(0.99 * whole(*args, **kw))
    )
    strategy = np.random.default_rng(0).normal(size=(3, 10))
    spent, claimed = spent_by_measure(strategy, np.zeros(10), bounds=(0, 1), epsilon=1, delta=0.01)
    assert spent > claimed


def test_a_broken_calibration_is_refused(monkeypatch):
    """Mutation: σ rounded down is noticed before anything is drawn."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.exact_noise_multiplier",
        lambda epsilon, delta: exact_noise_multiplier(epsilon, delta) * (1 - 1e-9),
    )
    with pytest.raises(RuntimeError, match="nothing released"):
        ask(np.eye(2), [0.0, 1.0], question=OutputBounds.checked((0, 1)), epsilon=1, delta=0.01)


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 1000, 5000]))
@settings(max_examples=20)
def test_sensitivity_covers_the_rounding_of_long_sums(seed, rows):
    """Far-off bounds and wild weights: sums in float64, their exact moves within the bound."""
    rng = np.random.default_rng(seed)
    strategy = rng.normal(size=(2, rows)) * 10.0 ** rng.uniform(-8, 8, size=rows)
    bounds = OutputBounds(1e9, 1e9 + 1)
    grid, _ = calibrate(
        strategy,
        sensitivity=Sensitivity.of_strategy(strategy, question=bounds),
        epsilon=1,
        delta=1e-6,
    )
    y = rng.uniform(bounds.lo, bounds.hi, size=rows)
    heaviest = np.square(strategy).sum(axis=0).argmax()
    moved = y.copy()
    y[heaviest], moved[heaviest] = bounds.lo, bounds.hi
    integers = [np.rint(strategy @ (outputs - bounds.middle) / grid.step) for outputs in (y, moved)]
    assert np.linalg.norm(integers[0] - integers[1]) <= grid.sensitivity


def test_noise_sd_is_exact_gaussian_calibration():
    strategy = np.array([[0.6, 0.0], [0.8, 0.1]])
    answers = ask(
        strategy, [1.0, 2.0], question=OutputBounds.checked((0, 10)), epsilon=1, delta=0.01
    )
    assert answers.noise_sd == pytest.approx(10 * 1.8778755609, rel=1e-9)
    assert answers.guarantee.delta_at(1) <= 0.01
    assert answers.guarantee.answers == 2
    assert answers.guarantee.coarseness < 2 * 2.0**-78


def test_answers_are_unbiased_with_the_stated_noise():
    strategy = np.random.default_rng(1).normal(size=(2000, 3))
    answers = ask(
        strategy, [0.2, 0.9, 5.0], question=OutputBounds.checked((0, 1)), epsilon=2, delta=0.01
    )
    noise = answers.values[:, 0] - strategy @ (np.array([0.2, 0.9, 1.0]) - 0.5)
    standardised = noise / answers.noise_sd
    assert abs(standardised.mean()) < 5.5 / math.sqrt(2000)
    assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(4000))


@pytest.mark.parametrize("strategy", [np.zeros((0, 3)), np.zeros((2, 3))])
def test_questions_that_ask_nothing_cost_nothing(strategy):
    answers = ask(
        strategy, [1.0, 2.0, 3.0], question=OutputBounds.checked((0, 4)), epsilon=1, delta=0.01
    )
    assert answers.noise_sd == 0
    assert answers.guarantee.mu == 0
    assert not answers.values.any()


def test_seeded_noise_repeats_and_says_so():
    arguments = {"question": OutputBounds(0.0, 1.0), "epsilon": 1, "delta": 0.01}
    first, second = (ask(np.eye(2), [0.0, 1.0], **arguments, insecure_seed=7) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    assert not ask(np.eye(2), [0.0, 1.0], **arguments).insecure


def test_delta_too_small_for_any_grid():
    with pytest.raises(ValueError, match="too small"):
        ask(np.eye(2), [0.0, 1.0], question=OutputBounds.checked((0, 1)), epsilon=1, delta=1e-30)


def test_huge_answers_take_a_coarser_grid_and_count_it():
    """A strategy whose sums outgrow 64 bits at the finest grid still works, and counts its cost."""
    strategy = np.full((1, 3), 1.0)
    bounds = OutputBounds(0.0, 1.0)
    long = np.full((1, 3_000_000), 1.0)
    (fine, _), (coarse, guarantee) = (
        calibrate(
            questions,
            sensitivity=Sensitivity.of_strategy(questions, question=bounds),
            epsilon=1,
            delta=0.01,
        )
        for questions in (strategy, long)
    )
    assert coarse.step > fine.step
    assert guarantee.delta_at(1) <= 0.01


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"question": OutputBounds(1.0, 0.0)}, "bound"),
        ({"question": OutputBounds(0.0, np.nan)}, "bounds"),
        ({"question": Bands(np.zeros(3), np.ones(3))}, "about 3 rows"),
        ({"calibration": "wishful"}, "calibration"),
        ({"calibration": "papers", "epsilon": 2}, "at most 1"),
    ],
)
def test_bad_settings(change, complaint):
    settings_ = {"question": OutputBounds(0.0, 1.0), "epsilon": 1, "delta": 0.01} | change
    with pytest.raises(ValueError, match=complaint):
        ask(np.eye(2), [0.0, 1.0], **settings_)


def test_a_strategy_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="strategy"):
        ask(
            np.array([[np.nan, 1.0]]),
            [0.0, 1.0],
            question=OutputBounds.checked((0, 1)),
            epsilon=1,
            delta=0.01,
        )


def test_strategies_whose_squares_underflow_are_refused():
    """Entries near 1e-162 have squares near zero: the sensitivity would come out too small."""
    strategy = np.full((100, 2), 1.5e-162)
    strategy[:, 1], strategy[0, 1] = 0, 2.7e-162
    with pytest.raises(ValueError, match="rescale"):
        ask(strategy, [0.0, 1.0], question=OutputBounds.checked((0, 1)), epsilon=1, delta=1e-3)


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_budgets_of_low_precision_are_taken_at_their_exact_value(precision):
    epsilon, delta = precision(0.1), precision(0.1)
    guarantee = ask(
        np.eye(2), [0.0, 1.0], question=OutputBounds.checked((0, 1)), epsilon=epsilon, delta=delta
    ).guarantee
    assert guarantee.delta_at(float(epsilon)) <= float(delta)
