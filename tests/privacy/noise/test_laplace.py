"""Laplace noise: the guarantee over all neighbours, the noise itself, and an attack on it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laplace_neighbours import loss_over_neighbours
from scipy import stats

from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.ask import ask
from cloakgp.privacy.grid import Sensitivity, calibrate
from cloakgp.privacy.noise import LAPLACE
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.sampler import add_discrete_laplace, add_insecure_laplace

ACHIEVED_SHARE = 0.999
DRAWS = 25_000


def measure_laplace(strategy, y, *, bounds, delta=0.0, **settings_):
    question = OutputBounds.checked(bounds)
    return ask(strategy, y, question=question, delta=delta, noise="laplace", **settings_)


def calibrate_laplace(strategy, *, bounds, epsilon):
    grid, _ = calibrate(
        strategy,
        sensitivity=Sensitivity.of_strategy(strategy, question=bounds, noise=LAPLACE),
        epsilon=epsilon,
        delta=0.0,
        noise=LAPLACE,
    )
    return grid


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


@pytest.mark.parametrize(
    "lengths",
    [
        lambda columns: 0.99 * np.abs(columns).sum(axis=0),
        lambda columns: np.sqrt(np.square(columns).sum(axis=0)),
        lambda columns: np.abs(columns).max(axis=0),
    ],
    ids=["short", "of Gaussian noise", "the greatest entry"],
)
def test_broken_lengths_are_caught(monkeypatch, lengths):
    """Mutations: one per cent short, and norms that are not that of Laplace noise."""
    monkeypatch.setattr(type(LAPLACE), "lengths", lambda _, columns: lengths(columns))
    strategy = np.random.default_rng(0).normal(size=(3, 10))
    spent, claimed = spent_by_measure(strategy, np.zeros(10), bounds=(0, 1), epsilon=1)
    assert spent > Fraction(claimed)


def test_a_calibration_that_falls_short_is_refused(monkeypatch):
    """Mutation: what float64 rounds off a scale is not made good."""
    monkeypatch.setattr("cloakgp.privacy.noise.laplace.UNIT_ROUNDOFF", -(2.0**-50))
    with pytest.raises(RuntimeError, match="nothing released"):
        LAPLACE.scale(2**40, answers=1, epsilon=0.3, delta=0.0)


@given(st.integers(0, 2**32 - 1))
def test_norms_are_rounded_up(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(rng.integers(1, 30), 4)) * 10.0 ** rng.uniform(-8, 8, size=4)
    exact = [sum(abs(Fraction(entry)) for entry in column) for column in columns.T]
    for found, length in zip(LAPLACE.lengths(columns), exact, strict=True):
        assert length <= Fraction(found) <= length * (1 + Fraction(1, 10**12))
    assert sum(exact) <= Fraction(LAPLACE.norm(columns))
    groups = np.array([0, 1, 0, 1])
    together = max(exact[0] + exact[2], exact[1] + exact[3])
    found = Fraction(LAPLACE.gauge(columns, groups=groups))
    assert together <= found <= together * (1 + Fraction(1, 10**12))
    assert Fraction(LAPLACE.gauge(columns, groups=None)) >= max(exact)


# How far apart data sets are: the claim at the head of the module.


def discrete_laplace(scale, reach):
    """Probabilities on −reach, …, reach; what lies beyond is less than float64 tells."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return weights / weights.sum()


def hockey_stick(one, other, epsilon):
    return np.maximum(one - math.exp(epsilon) * other, 0.0).sum()


@pytest.mark.parametrize("scale", [0.7, 2.5, 6.0])
@pytest.mark.parametrize("shifts", [(1, 1), (1, 4), (3, 3), (1, 2, 2)])
@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.1, 0.5, 1.0, 2.0])
def test_several_shifts_are_never_further_apart_than_one_by_all_of_them(scale, shifts, epsilon):
    """In as many coordinates, over every joint outcome: no pair of laws is taken for another."""
    reach = 40 if len(shifts) == 3 else 150
    base = discrete_laplace(scale, reach)
    one, other = np.ones(1), np.ones(1)
    for shift in shifts:
        one, other = np.multiply.outer(one, base), np.multiply.outer(other, np.roll(base, shift))
    whole = hockey_stick(base, np.roll(base, sum(shifts)), epsilon)
    tail = 4 * math.exp(epsilon - (reach - sum(shifts)) / scale)
    assert hockey_stick(one, other, epsilon) <= whole + tail + 1e-13


@pytest.mark.parametrize("scale", [3.0, 20.0])
@pytest.mark.parametrize("shift", [1, 2, 7, 30])
def test_the_discrete_law_is_hardly_further_apart_than_the_continuous_one(scale, shift):
    """At s/τ + 1/4τ², as the module says; and without that it would not hold."""
    reach = int(45 * scale)
    one = discrete_laplace(scale, reach)
    other = np.roll(one, shift)
    loss = shift / scale
    exceeded = False
    for epsilon in np.linspace(0.0, loss, 12, endpoint=False):
        found = hockey_stick(one, other, epsilon)
        assert found <= -math.expm1((epsilon - loss - 1 / (4 * scale**2)) / 2) + 1e-13
        exceeded = exceeded or found > -math.expm1((epsilon - loss) / 2) + 1e-13
    assert exceeded


@given(st.floats(0.01, 8.0), st.floats(0.0, 1.0))
def test_one_part_has_the_closed_form(spent, share):
    guarantee = Guarantee(epsilon=spent, delta=0.0, mu=0.0, laplace=(spent,))
    epsilon = share * spent
    assert guarantee.delta_at(epsilon) == pytest.approx(
        -math.expm1((epsilon - spent) / 2), abs=1e-11
    )
    assert guarantee.delta_at(spent) == 0.0


def test_two_parts_are_the_convolution_of_the_law():
    """Two measurements, each moved in one coordinate: over every joint outcome of a fine grid."""
    scale, reach, shifts = 12.0, 420, (12, 8)
    base = discrete_laplace(scale, reach)
    one = np.multiply.outer(base, base)
    other = np.multiply.outer(*(np.roll(base, shift) for shift in shifts))
    losses = tuple(shift / scale for shift in shifts)
    guarantee = Guarantee(epsilon=sum(losses), delta=0.0, mu=0.0, laplace=losses)
    for epsilon in (0.0, 0.3, 0.9, 1.5):
        found = hockey_stick(one, other, epsilon)
        # Of the grid: a half of 1/4τ² for each.
        assert found - 2e-3 <= guarantee.delta_at(epsilon) <= found + 2e-3
        assert guarantee.delta_at(epsilon) < -math.expm1((epsilon - sum(losses)) / 2) + 1e-12


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
    # One run in a hundred million fails by chance.
    assert stats.chisquare(np.append(observed, draws - observed.sum()), expected).pvalue > 1e-8


def test_answers_are_unbiased_with_the_stated_noise():
    strategy = np.random.default_rng(1).normal(size=(4000, 3))
    answers = measure_laplace(strategy, [0.2, 0.9, 5.0], bounds=(0, 1), epsilon=2.0)
    noise = answers.values[:, 0] - strategy @ (np.array([0.2, 0.9, 1.0]) - 0.5)
    longest = np.abs(strategy).sum(axis=0).max()
    scale = answers.noise_sd / math.sqrt(2)
    assert scale == pytest.approx(longest / 2, rel=1e-8)
    assert stats.kstest(noise / scale, "laplace").pvalue > 1e-8
    # The fourth moment of a Laplace variable is 24 b⁴, so its square has sd √20 b²; it is skewed.
    tolerance = 7 * math.sqrt(20 / 4000) * scale**2
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
        # Six standard errors: a false alarm in hundreds of millions of runs. P = ½, P' = ½ e^-ε.
        assert abs(excess) <= 6 * error
        assert here == pytest.approx(0.5, abs=6 * 0.5 / math.sqrt(DRAWS))
    else:
        assert excess > 6 * error


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
    assert stats.kstest(noise / 1e9, "laplace").pvalue > 1e-8


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
        ({"strategy": np.full((1, 2), 1e-200)}, "rescale"),
        ({"delta": -0.1}, "delta"),
        ({"calibration": "papers"}, "one calibration"),
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
