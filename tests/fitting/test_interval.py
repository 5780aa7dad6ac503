"""The search for an interval: its price, what answers say together, and that it does no harm."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import null_space
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor, Release, refine
from cloakgp.criteria import criterion_named
from cloakgp.data import ArrayRows
from cloakgp.fitting.bands import DEFAULT_STAGES, default_stages, reach_of_bands, schedule_stages
from cloakgp.fitting.interval import (
    COUNT_PRECISION,
    FINEST_PRECISION,
    MOST_COUNTS,
    MOST_ROUNDS,
    NO_SEARCH,
    WIDEST,
    _expected_share,
    find_interval,
    plan_search,
    searches_interval,
)
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.ask import ask
from cloakgp.privacy.noise import LAPLACE, NOISES
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release.bands import RowBands
from cloakgp.release.common_values import estimate_below, found_alike, mostly_alike
from cloakgp.report.describe import describe

WIDE = OutputBounds(-40.0, 960.0)
BUDGET = Budget(epsilon=1.0, delta=1e-5)


def answered(values, *, noise_sd):
    return Answers(
        values=np.asarray(values, dtype=np.float64)[None, :],
        noise_sd=noise_sd,
        guarantee=Guarantee(epsilon=1.0, delta=1e-5, mu=0.1),
    )


def noisily(outputs, rng, *, precision=COUNT_PRECISION):
    """Return something to ask: counts with noise of a share of the rows."""
    noise_sd = precision * len(outputs)

    def ask(question, budget):
        del budget
        noise = noise_sd * rng.normal(size=question.intervals)
        return answered(question.encode(outputs).sum(axis=0) + noise, noise_sd=noise_sd)

    return ask


def searched(outputs, rng, *, bounds=WIDE, rounds=MOST_ROUNDS, precision=COUNT_PRECISION):
    return find_interval(
        noisily(outputs, rng, precision=precision),
        bounds=bounds,
        rows=len(outputs),
        rounds=[BUDGET] * rounds,
    )


# --- the price ---


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("rows", [180, 250, 500, 2_000, 10**6])
@pytest.mark.parametrize("largest", [1, 3])
def test_a_search_pays_for_the_stated_precision_and_no_more(rows, largest, noise):
    budget = Budget(1.0, 1e-5 if noise == "gaussian" else 0.0, noise=noise)
    plan = plan_search(WIDE, budget=budget, rows=largest * rows, largest_group=largest)
    assert 1 <= len(plan.rounds) <= MOST_ROUNDS
    assert 0 < plan.share <= NOISES[noise].shares.largest_round
    assert plan.spent(len(plan.rounds)) <= NOISES[noise].shares.all_rounds
    # Oracle: the mechanism itself, on as many rows in a group.
    groups = np.repeat(np.arange(5), largest)
    noise_sd = ask(
        np.ones((1, len(groups))),
        np.zeros(len(groups)),
        question=CountQuestion(np.arange(3.0)),
        epsilon=plan.rounds[0].epsilon,
        delta=plan.rounds[0].delta,
        groups=groups,
        noise=noise,
    ).noise_sd
    precision = noise_sd / (largest * rows)
    assert precision <= COUNT_PRECISION * (1 + 1e-4)
    if rows == 10**6:
        assert precision < FINEST_PRECISION
    elif plan.share > NOISES[noise].shares.cheap_round * (1 + 1e-9):
        assert precision == pytest.approx(COUNT_PRECISION, rel=1e-3)
    else:
        assert precision >= FINEST_PRECISION * (1 - 1e-3)


def test_nobody_looks_where_it_would_cost_too_much():
    pure = Budget(1.0, 0.0, noise="laplace")
    assert plan_search(WIDE, budget=pure, rows=99) == NO_SEARCH
    assert plan_search(WIDE, budget=Budget(1.0, 1e-5), rows=120) == NO_SEARCH
    assert plan_search(WIDE, budget=Budget(1.0, 1e-5), rows=240, largest_group=2) == NO_SEARCH
    assert plan_search(WIDE, budget=Budget(1e-6, 1e-12), rows=10**6) == NO_SEARCH


@pytest.mark.parametrize("bounds", [(1e9, 1e9 + 1e-3), (0.0, 2e-100)])
def test_nobody_looks_within_bounds_that_float64_cannot_divide(bounds):
    assert plan_search(OutputBounds(*bounds), budget=Budget(1.0, 1e-5), rows=10**5) == NO_SEARCH


@pytest.mark.parametrize("rows", [400, 5_000])
@pytest.mark.parametrize("stages", [DEFAULT_STAGES, DEFAULT_STAGES[:1]])
@pytest.mark.parametrize("made", [1, 3])
def test_search_and_stages_share_one_budget(rows, stages, made):
    """However many rounds are made, all that is spent is the whole."""
    plan = plan_search(WIDE, budget=Budget(1.0, 1e-5), rows=rows)
    steps = schedule_stages(
        stages, budget=Budget(1.0, 1e-5), rows=rows, ask_spread=True, spent=plan.spent(made)
    )
    noise_multiplier = cache(exact_noise_multiplier)
    budgets = [*plan.rounds[:made], *(step.budget for step in steps)]
    squares = [noise_multiplier(one.epsilon, one.delta) ** -2 for one in budgets]
    whole = exact_noise_multiplier(1.0, 1e-5) ** -2
    assert math.fsum(squares) <= whole
    assert math.fsum(squares) == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("made", [1, 2, 5])
def test_search_and_stages_share_one_pure_budget(made):
    whole = Budget(1.0, 0.0, noise="laplace")
    plan = plan_search(WIDE, budget=whole, rows=250)
    steps = schedule_stages(
        default_stages(LAPLACE), budget=whole, rows=250, ask_spread=True, spent=plan.spent(made)
    )
    spent = math.fsum(
        [one.epsilon for one in plan.rounds[:made]] + [step.budget.epsilon for step in steps]
    )
    assert spent <= 1.0
    assert spent == pytest.approx(1.0, rel=1e-5)


def test_what_interval_means():
    bayes, trace = (criterion_named(name, use="numbers") for name in ("bayes", "trace"))
    assert searches_interval("auto", criterion=bayes, bounds=WIDE, mean=None)
    assert searches_interval("auto", criterion=bayes, bounds=WIDE, mean=960.0)
    assert not searches_interval("auto", criterion=bayes, bounds=WIDE, mean=961.0)
    assert not searches_interval("auto", criterion=trace, bounds=WIDE, mean=None)
    for word in (False, "off"):
        assert not searches_interval(word, criterion=bayes, bounds=WIDE, mean=None)
    for wrong in ("on", True, None, 0.5, 0):
        with pytest.raises(ValueError, match="interval must be 'auto', or 'off' or False"):
            searches_interval(wrong, criterion=bayes, bounds=WIDE, mean=None)


def test_words_of_the_command_line_and_of_python_are_the_same():
    X, y = np.linspace(0, 9, 20)[:, None], np.linspace(0, 1, 20)
    settings = {"bounds": (0, 1), "epsilon": 1.0, "insecure_seed": 3}
    words = DPGPRegressor(interval="off", stages="one", **settings).fit(X, y).release_
    python = DPGPRegressor(interval=False, stages=None, **settings).fit(X, y).release_
    # When each was made, to the second, is not.
    first, second = (replace(each, provenance=None).to_bytes() for each in (words, python))
    assert first == second


# --- what answers say together ---


def test_of_one_round_what_is_missing_is_shared_out():
    """Closed form: with N known, every count gets its part of N less their sum."""
    values = np.array([3.0, 80.0, 30.0, -5.0])
    below, covariance = estimate_below(
        [(np.arange(5.0), answered(values, noise_sd=7.0))], np.arange(5.0), rows=100
    )
    np.testing.assert_allclose(np.diff(below), values + (100 - values.sum()) / 4)
    # That of so many of four counts whose noises are made to add up to zero.
    inside = np.arange(5)
    np.testing.assert_allclose(np.diag(covariance), 49.0 * inside * (4 - inside) / 4, atol=1e-9)


def test_several_rounds_are_weighed_as_least_squares_does():
    """Oracle: least squares for counts of the finest intervals that add up to N."""
    rng = np.random.default_rng(2)
    rounds = [np.array([0.0, 4.0, 8.0, 12.0]), np.array([0.0, 3.0, 5.0, 12.0])]
    sds, values = (5.0, 2.0), [rng.normal(30, 9, size=3) for _ in rounds]
    asked = [
        (edges, answered(one, noise_sd=sd))
        for edges, one, sd in zip(rounds, values, sds, strict=True)
    ]
    places = np.unique(np.concatenate(rounds))
    below, covariance = estimate_below(asked, places, rows=100)
    middles = (places[1:] + places[:-1]) / 2
    weighed = [
        ((edges[:-1, None] < middles) & (middles < edges[1:, None])) / sd
        for edges, sd in zip(rounds, sds, strict=True)
    ]
    design = np.vstack(weighed)
    target = np.concatenate([one / sd for one, sd in zip(values, sds, strict=True)])
    # What adds up to N: a part of it for each, and what adds up to nothing.
    even, free = np.full(len(middles), 100 / len(middles)), null_space(np.ones((1, len(middles))))
    inverse = np.linalg.inv((design @ free).T @ (design @ free))
    found = even + free @ inverse @ (design @ free).T @ (target - design @ even)
    np.testing.assert_allclose(np.diff(below), found)
    sums = np.tri(len(places), len(middles), -1) @ free
    np.testing.assert_allclose(covariance, sums @ inverse @ sums.T, atol=1e-9)


@given(estimate=st.floats(-1, 1), error=st.floats(1e-3, 1))
def test_a_share_is_expected_as_a_truncated_normal_law_says(estimate, error):
    if estimate / error < -30:
        return
    law = stats.truncnorm(-estimate / error, np.inf, loc=estimate, scale=error)
    [found] = _expected_share(np.array([estimate]), np.array([error]))
    assert found == pytest.approx(law.mean(), rel=1e-6, abs=1e-9)


def test_a_share_without_error_is_itself():
    found = _expected_share(np.array([0.3, 0.0, -1e-17]), np.zeros(3))
    np.testing.assert_array_equal(found, [0.3, 0.0, 0.0])


@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(1, MOST_ROUNDS))
@settings(max_examples=40)
def test_whatever_is_answered_an_interval_within_the_bounds_comes_back(seed, rounds):
    rng = np.random.default_rng(seed)
    bounds = OutputBounds(*np.sort(rng.standard_t(1, size=2) * 10.0 ** rng.integers(-6, 7)))
    questions = []

    def ask(question, budget):
        del budget
        question.validate()
        questions.append(question)
        size = 10.0 ** rng.integers(-3, 6)
        return answered(size * rng.standard_t(1, size=question.intervals), noise_sd=size)

    found = find_interval(ask, bounds=bounds, rows=100, rounds=[BUDGET] * rounds)
    assert bounds.lo <= found.lo < found.hi <= bounds.hi
    assert found == bounds or found.width <= WIDEST * bounds.width * (1 + 1e-6)
    assert 1 <= len(questions) <= rounds
    for question in questions:
        assert question.ends == (bounds.lo, bounds.hi)
        assert question.intervals <= MOST_COUNTS


def test_an_interval_that_was_wrong_is_given_up():
    """The first round misses a third of the outputs and sees them elsewhere, by five of its sds."""
    outputs = np.full(1000, 900.0)
    calls = []

    def ask(question, budget):
        del budget
        counts = question.encode(outputs).sum(axis=0)
        if not calls:
            counts = 0.7 * counts + 0.3 * np.roll(counts, 1 - int(counts.argmax()))
        calls.append(question)
        return answered(counts, noise_sd=60.0)

    found = find_interval(ask, bounds=WIDE, rows=1000, rounds=[BUDGET] * 4)
    assert found.lo < 900.0 < found.hi


def test_good_bounds_cost_one_round_and_wide_ones_a_few():
    for factor, least, most in [(1.0, 1, 1), (10.0, 2, 3), (1000.0, 3, 4)]:
        asked = []
        outputs = np.random.default_rng(0).uniform(size=500)

        def ask(question, budget, outputs=outputs, asked=asked):
            del budget
            asked.append(question)
            return answered(question.encode(outputs).sum(axis=0), noise_sd=1.0)

        find_interval(
            ask, bounds=OutputBounds(-0.2 * (factor > 1), factor), rows=500, rounds=[BUDGET] * 6
        )
        assert least <= len(asked) <= most


def test_answers_that_tell_nothing_narrow_nothing():
    outputs = np.random.default_rng(0).uniform(100.0, 110.0, size=500)
    found = [searched(outputs, np.random.default_rng(d), precision=3.0) for d in range(50)]
    assert all(one == WIDE for one in found)


# --- no harm ---

SHAPES = {
    "normal": lambda rng, n: np.clip(0.5 + rng.normal(size=n) / 6, 0, 1),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "two clusters": lambda rng, n: (
        np.where(rng.uniform(size=n) < 0.5, 0.05, 0.95) + 0.01 * rng.normal(size=n)
    ),
    "a small cluster": lambda rng, n: (
        np.where(rng.uniform(size=n) < 0.9, 0.05, 0.95) + 0.01 * rng.normal(size=n)
    ),
    "a long tail": lambda rng, n: np.clip(np.exp(rng.normal(size=n)) / 20, 0, 1),
    "heavy tails": lambda rng, n: np.clip(0.5 + rng.standard_t(2, size=n) / 40, 0, 1),
    "integers": lambda rng, n: rng.integers(0, 5, size=n) / 4,
    "half at a bound": lambda rng, n: np.where(rng.uniform(size=n) < 0.5, 0, rng.uniform(size=n)),
    "a quarter apart": lambda rng, n: np.where(
        rng.uniform(size=n) < 0.25, rng.uniform(0.1, 0.6, size=n), 0.71 + 0.04 * rng.normal(size=n)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [1, 3, 10, 100])
def test_a_mean_of_what_is_clipped_is_hardly_worse_than_with_sharp_bounds(shape, factor):
    """The error of a noisy mean at ε = 1, N = 1000, over outputs: clipping and noise count."""
    rows, draws = 1000, 30
    budget = Budget(1.0, 0.0, noise="laplace")
    plan = plan_search(WIDE, budget=budget, rows=rows)
    noise_sd = math.sqrt(8.0) / plan.rounds[0].epsilon
    unit = budget.unit_sd() / rows
    ratios = []
    for draw in range(draws):
        rng = np.random.default_rng((draw, factor))
        y = SHAPES[shape](rng, rows)
        start = -rng.uniform(0, factor - 1) if draw % 2 else 0.0
        asked = []

        def ask(question, budget, y=y, rng=rng, asked=asked):
            asked.append(budget)
            noise = rng.laplace(size=question.intervals) * noise_sd / math.sqrt(2.0)
            return answered(question.encode(y).sum(axis=0) + noise, noise_sd=noise_sd)

        found = find_interval(
            ask, bounds=OutputBounds(start, start + factor), rows=rows, rounds=plan.rounds
        )
        bias = np.clip(y, found.lo, found.hi).mean() - y.mean()
        left = 1.0 - plan.spent(len(asked))
        with_found = y.var() + bias**2 + (found.width * unit / left) ** 2
        ratios.append(math.sqrt(with_found / (y.var() + unit**2)))
    assert np.mean(ratios) < 1.06
    # Of two kinds of outputs, far from each other, one may be clipped now and then.
    assert np.mean(np.array(ratios) > 1.15) <= 0.1


@pytest.mark.parametrize("shape", ["normal", "uniform", "two clusters", "integers"])
def test_bounds_that_are_good_stay(shape):
    kept = 0
    for draw in range(100):
        rng = np.random.default_rng(draw)
        outputs = SHAPES[shape](rng, 500)
        kept += searched(outputs, rng, bounds=OutputBounds(0.0, 1.0)) == OutputBounds(0.0, 1.0)
    assert kept >= 97


@pytest.mark.parametrize("value", [0.0, -40.0, 960.0, 1e6])
@pytest.mark.parametrize("others", [0.0, 0.05, 0.1])
def test_equal_outputs_tell_nothing_of_others(value, others):
    """However few these are, an interval around the one value would leave all of them outside."""
    for draw in range(20):
        rng = np.random.default_rng(draw)
        outputs = np.where(rng.random(500) < others, rng.uniform(-40, 960, 500), value)
        assert searched(outputs, rng) == WIDE


@pytest.mark.parametrize(
    ("bounds", "law"),
    [
        ((0.0, 1e9), lambda rng: 70 + 10 * rng.normal(size=1000)),
        ((-1e6, 1e6), lambda rng: rng.normal(size=1000)),
        ((-1e7, 1e7), lambda rng: 3.3 + 2 * rng.normal(size=1000)),
        ((0.0, 1e6), lambda rng: np.exp(3 + 2 * rng.normal(size=1000))),
    ],
)
def test_outputs_near_a_likely_value_are_not_equal(bounds, law):
    """Bounds that are millions of times too wide are narrowed all the same."""
    widths = []
    for draw in range(20):
        rng = np.random.default_rng(draw)
        found = searched(law(rng), rng, bounds=OutputBounds(*bounds), precision=0.05)
        widths.append(found.width / (bounds[1] - bounds[0]))
    assert np.max(widths) < 0.3
    assert np.median(widths) < 1e-3


def test_where_counts_are_precise_an_interval_holds_the_others():
    """One in ten lie around 100, and most at nothing."""
    for draw in range(3):
        rng = np.random.default_rng(draw)
        outputs = np.where(rng.random(10**6) < 0.1, rng.normal(100, 10, 10**6), 0.0)
        found = searched(outputs, rng, precision=0.001)
        assert found.lo <= 0.0 < 130.0 < found.hi
        assert found.width < 0.5 * WIDE.width


def test_values_that_most_have_are_seen_in_the_first_round():
    """At either end of the bounds and at zero, wherever that is."""
    for lo, hi in [(0.0, 1.0), (-1.0, 1.0), (-3.0, 0.1), (5.0, 7.0), (-1e-9, 1e6)]:
        questions = []

        def ask(question, budget, questions=questions):
            del budget
            questions.append(question)
            return answered(np.full(question.intervals, 5.0), noise_sd=1.0)

        find_interval(ask, bounds=OutputBounds(lo, hi), rows=100, rounds=[BUDGET])
        edges = questions[0].edges
        assert questions[0].ends == (lo, hi)
        for value in (lo, hi, 0.0):
            if lo <= value <= hi:
                place = min(np.searchsorted(edges, value, side="right"), len(edges) - 1)
                assert 0 < edges[place] - edges[place - 1] < 1e-12 * (hi - lo)


@pytest.mark.parametrize(
    ("shares", "alike"), [([0.5, 0.0, 0.5], True), ([0.3, 0.4, 0.0], True), ([0.2, 0, 0.1], False)]
)
def test_most_outputs_are_alike_or_not(shares, alike):
    rng = np.random.default_rng(1)
    values, rest = np.array([-40.0, 0.0, 960.0]), 1.0 - sum(shares)
    which = rng.choice(4, size=2000, p=[*shares, rest])
    outputs = np.where(which == 3, rng.uniform(-40, 960, 2000), values[np.minimum(which, 2)])
    asked = []

    def ask(question, budget):
        answers = noisily(outputs, rng, precision=FINEST_PRECISION)(question, budget)
        asked.append((question.edges, answers))
        return answers

    find_interval(ask, bounds=WIDE, rows=2000, rounds=[BUDGET] * 3)
    assert mostly_alike(asked, rows=2000) == alike
    assert mostly_alike([], rows=2000) is False


def test_outputs_beyond_the_bounds_count_at_their_ends():
    widths = []
    for draw in range(10):
        rng = np.random.default_rng(draw)
        found = searched(rng.normal(950.0, 8.0, size=500), rng)
        assert found.hi > 950.0
        widths.append(found.width)
    assert np.median(widths) < 0.1 * WIDE.width


# --- fits ---


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 6, size=(150, 1))
    return X, 20 + 6 * np.sin(X[:, 0]) + rng.normal(size=150)


def fitted(table, **changes):
    settings_ = {"bounds": (WIDE.lo, WIDE.hi), "epsilon": 4.0, "delta": 1e-3, "insecure_seed": 4}
    return DPGPRegressor(**(settings_ | changes)).fit(*table).release_


def counted(release):
    return [one for one in release.measurements if isinstance(one.question, CountQuestion)]


@pytest.fixture(scope="module")
def release(table):
    return fitted(table)


def test_a_fit_goes_by_what_was_found(table, release):
    X, y = table
    plan = plan_search(WIDE, budget=Budget(4.0, 1e-3, noise="laplace"), rows=150)
    shares = [sum(one.answers.guarantee.laplace) / 4.0 for one in counted(release)]
    assert 1 < len(shares) <= len(plan.rounds)
    assert sum(shares) == pytest.approx(plan.spent(len(shares)), rel=1e-3)
    bounds = release.measurements[0].question
    assert bounds.lo < y.min() < y.max() < bounds.hi
    assert bounds.width < 0.2 * WIDE.width
    # The default prior is that of the interval.
    assert release.prior.mean == pytest.approx(bounds.middle)
    assert release.prior.noise_variance == pytest.approx((0.1 * bounds.width) ** 2)
    for one in release.measurements[len(shares) + 1 :]:
        if hasattr(one.question, "lower"):
            # They may go beyond by its width.
            reach = OutputBounds(max(bounds.lo - bounds.width, WIDE.lo), bounds.hi + bounds.width)
            assert reach_of_bands(bounds, release.measurements) == reach
            assert reach.lo <= one.question.lower.min() < one.question.upper.max() <= reach.hi
    without = fitted(table, interval=False)
    assert not counted(without)
    truth = 20 + 6 * np.sin(X[:, 0])
    errors = [np.sqrt(np.mean((part.predict(X) - truth) ** 2)) for part in (release, without)]
    assert errors[0] < 0.3 * errors[1]


def test_what_is_given_stays(table):
    kernel = ConstantKernel(30.0) * RBF(1.1)
    release = fitted(table, kernel=kernel, noise_variance=1.0, mean=15.0, learn=None, stages=None)
    assert counted(release)
    assert (release.prior.mean, release.prior.noise_variance) == (15.0, 1.0)
    assert repr(release.prior.kernel) == repr(kernel)


def test_few_rows_are_asked_within_the_bounds(table):
    X, y = table
    release = fitted((X[:20], y[:20]), epsilon=0.5)
    assert not counted(release)
    assert release.measurements[0].question == WIDE


def test_files_keep_counts_and_later_visits_the_interval(table, release, tmp_path):
    release.save(tmp_path / "found.cloak")
    loaded = Release.load(tmp_path / "found.cloak")
    np.testing.assert_array_equal(loaded.predict(table[0]), release.predict(table[0]))
    for one, other in zip(counted(release), counted(loaded), strict=True):
        np.testing.assert_array_equal(one.question.edges, other.question.edges)
        np.testing.assert_array_equal(one.answers.values, other.answers.values)
    again = refine(loaded, table[1], epsilon=1.0, delta=1e-3, band=None, insecure_seed=3)
    assert again.measurements[-1].question == release.measurements[0].question


def test_words_tell_the_declared_bounds_and_what_was_found(release):
    said = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    lo, hi = release.measurements[0].question.limits
    assert "any other from -40 to 960." in said["protected"]
    assert f"declared to lie in -40 to 960, {lo:.6g} to {hi:.6g} of which" in said["y"]
    assert "how many values of y lie in each of so many intervals" in said["answers 2"]
    assert "to find an interval that holds most values" in said["design 2"]
    assert said["declared"].endswith("without looking at any answer but the counts.")


def test_counts_that_do_not_fit_are_refused(release):
    one = counted(release)[0]
    one.validate()
    shorter = type(one)(
        strategy=one.strategy, answers=one.answers, question=CountQuestion(one.question.edges[:-1])
    )
    with pytest.raises(ValueError, match="do not fit"):
        shorter.validate()
    banded = type(one)(
        strategy=one.strategy, answers=release.measurements[0].answers, question=one.question
    )
    with pytest.raises(ValueError, match=r"not about bands|do not fit"):
        banded.validate()


def test_a_forecast_counts_the_search(table):
    X = table[0][:60]
    model = {"bounds": (0.0, 40.0), "epsilon": 12.0, "delta": 1e-3}
    [with_it] = DPGPRegressor(**model).forecast(X)
    [without] = DPGPRegressor(**model, interval=False).forecast(X)
    rounds = len(plan_search(OutputBounds(0.0, 40.0), budget=Budget(12.0, 1e-3), rows=60).rounds)
    assert rounds
    assert with_it.questions >= without.questions + rounds * MOST_COUNTS
    assert without.error <= with_it.error < 1.1 * without.error


def test_limits_stay_within_what_was_declared_and_not_within_what_was_found():
    """Outputs may lie beyond an interval that holds most of them."""
    X = np.linspace(0.0, 10.0, 400)[:, None]
    y = 50.0 + 8.0 * np.sin(X.ravel())
    model = DPGPRegressor(bounds=(0.0, 1000.0), epsilon=3.0, insecure_seed=1).fit(X, y)
    release = model.release_
    found = release.measurements[0].question.limits
    assert found[1] - found[0] < 500.0
    assert release.output_bounds == (0.0, 1000.0)
    far = np.array([[200.0]])
    mean, sd = release.predict(far, return_std=True, new_output=True)
    lower, upper = release.predict_limits(far, new_output=True)
    np.testing.assert_allclose(
        [lower, upper], np.clip([mean - 1.959964 * sd, mean + 1.959964 * sd], 0.0, 1000.0)
    )
    assert upper > found[1]


@pytest.mark.parametrize(("share", "rows"), [(0.2, 3000), (0.3, 600), (0.3, 3000)])
def test_no_interval_shrinks_around_a_value_that_most_outputs_have(share, rows):
    """Of 0 and 1, most 0: the ones would be outside, however narrow it was."""
    rng = np.random.default_rng(6)
    bounds, left = OutputBounds(0.0, 1.0), []
    plan = plan_search(bounds, budget=Budget(1.0, 0.0, noise="laplace"), rows=rows)
    for _ in range(20):
        outputs = (rng.random(rows) < share).astype(np.float64)
        # With noise as a round of this plan has it.
        ask = noisily(outputs, rng, precision=2.0**1.5 / (plan.share * rows))
        found = find_interval(ask, bounds=bounds, rows=rows, rounds=plan.rounds)
        left.append(np.mean(outputs > found.hi))
    assert np.median(left) == 0.0
    assert np.mean(left) < share / 3


def two_valued(rows, rng):
    X = rng.uniform(0, 10, size=(rows, 2))
    chance = 1 / (1 + np.exp(-(X[:, 0] - 5) / 2))
    return X, (rng.random(rows) < chance).astype(np.float64), chance


@pytest.mark.parametrize("tables", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("read", ["held", "in passes"])
def test_a_curve_between_two_values_is_followed(read, tables):
    """Bands would take outputs that are near one of the two for all there is."""
    errors = []
    for seed in range(tables):
        X, y, chance = two_valued(1000, np.random.default_rng(seed))
        model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, insecure_seed=seed)
        if read == "in passes":
            release = model.fit_rows(ArrayRows(X, y, chunk_rows=300)).release_
        else:
            release = model.fit(X, y).release_
        assert not any(hasattr(one.question, "lower") for one in release.measurements)
        assert not any(isinstance(one.question, RowBands) for one in release.measurements)
        mean, sd = release.predict(X, return_std=True)
        errors.append((mean - chance) / np.sqrt(np.mean(sd**2)))
        assert np.sqrt(np.mean((mean - chance) ** 2)) < 0.08
        mean_, told = release.predict(X, return_std=True, new_output=True)
        off = np.sqrt(np.mean((y - mean_) ** 2))
        assert 0.8 < np.sqrt(np.mean(told**2)) / off < 1.25
        assert "most values" in str(describe(release))
    assert np.sqrt(np.mean(np.square(errors))) < 1.5


def test_stages_that_are_given_have_bands_whatever_counts_say():
    X, y, _ = two_valued(600, np.random.default_rng(0))
    model = DPGPRegressor(
        bounds=(0, 1), epsilon=1.0, stages=[(0.4, None), (0.6, 1.0)], insecure_seed=0
    )
    release = model.fit(X, y).release_
    assert any(hasattr(one.question, "lower") for one in release.measurements)


def test_a_later_visit_has_no_band_where_most_outputs_are_alike():
    X, y, _ = two_valued(600, np.random.default_rng(0))
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, insecure_seed=0).fit(X, y)
    again = refine(model.release_, y, [[2.0, 5.0], [8.0, 5.0]], epsilon=0.5, insecure_seed=1)
    assert again.measurements[-1].question == model.release_.measurements[0].question
    banded = refine(
        model.release_, y, [[2.0, 5.0], [8.0, 5.0]], epsilon=0.5, band=1.0, insecure_seed=1
    )
    assert hasattr(banded.measurements[-1].question, "lower")
    named = refine(
        model.release_, y, [[2.0, 5.0], [8.0, 5.0]], epsilon=0.5, band="auto", insecure_seed=1
    )
    np.testing.assert_array_equal(named.predict(X), again.predict(X))


def test_a_later_visit_of_counts_has_no_band_where_most_are_nothing():
    """As their first fit has none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(800, 1))
    y = np.where(rng.random(800) < 0.2, rng.poisson(30, size=800), 0.0)
    quick = {"learn": None, "inducing": 10, "insecure_seed": 1}
    model = DPGPRegressor(bounds=(0, 2000), epsilon=6.0, likelihood="counts", **quick)
    first = model.fit(X, y).release_
    assert not any(hasattr(one.question, "lower") for one in first.measurements)
    again = refine(first, y, X[:20], epsilon=1.0, insecure_seed=2)
    assert again.measurements[-1].question == first.measurements[0].question


@pytest.mark.parametrize(
    ("read", "place"), [("held", 0), ("held", None), ("in passes", 1), ("in passes", None)]
)
def test_one_of_several_outputs_that_is_mostly_alike_is_known_by_its_own_counts(read, place):
    """Together with those of another output they would tell of neither."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 1))
    Y = 50 + 10 * rng.normal(size=(500, 2))
    if place is not None:
        Y[:, place] = 100.0 * (rng.random(500) < 0.5)
    quick = {"learn": None, "stages": None, "inducing": 5, "insecure_seed": 1}
    model = DPGPMultiOutputRegressor(bounds=[(0, 100)] * 2, epsilon=10.0, **quick)
    model = model.fit(X, Y) if read == "held" else model.fit_rows(ArrayRows(X, Y))
    entries = model.release_.entries
    assert sum(isinstance(one.question, CountQuestion) for one in entries.measurements) >= 2
    assert found_alike(entries.measurements) == (place is not None)
