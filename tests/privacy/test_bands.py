"""Outputs in bands, verified over all neighbours: one stage, and whole releases of several."""

from __future__ import annotations

import importlib
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from band_neighbours import ends_of, furthest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door
from recording import recorded
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPRegressor
from cloakgp.fitting.bands import DEFAULT_STAGES
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.spread import SpreadQuestion

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

LIMITS = (-3.0, 7.0)
FAR = (-1.7e308, -1e20, -5e-324, 0.0, 5e-324, 1e-9, 1e20, 1.7e308)
cohorts_module = importlib.import_module("cloakgp.privacy.cohorts")
steps_module = importlib.import_module("cloakgp.fitting.steps")
held_module = importlib.import_module("cloakgp.fitting.held")
bands_module = importlib.import_module("cloakgp.privacy.questions.bands")


def in_and_around(bands):
    """Return for every row values inside of its band, on its ends, next to them, and far off."""

    def values(row):
        if isinstance(bands, SpreadQuestion):
            mean, sd = bands.mean[row], bands.sd[row]
            return [mean, *(mean + step * sd for step in (1.5, -2.0, 3.0, -3.1)), *FAR]
        ends = bands.lower[row], bands.upper[row]
        near = [np.nextafter(end, far) for end in ends for far in (-np.inf, np.inf)]
        return [*ends, *near, bands.middle[row], ends[0] + 0.3 * (ends[1] - ends[0]), *FAR]

    return values


def drawn_bands(rng, rows, *, offset=0.0):
    """Draw bands of widths from 10⁻⁶ to 10⁶, around anything."""
    lower = offset + rng.standard_t(2, size=rows) * 10.0 ** rng.integers(-3, 4, size=rows)
    return Bands(lower=lower, upper=lower + 10.0 ** rng.uniform(-6, 6, size=rows))


# One stage.


@st.composite
def stages(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers, rows = draw(st.integers(1, 4)), draw(st.integers(2, 5))
    strategy = rng.standard_t(2, size=(answers, rows)) * 10.0 ** draw(st.integers(-6, 6))
    bands = drawn_bands(rng, rows, offset=draw(st.sampled_from([0.0, -3.0, 1e3])))
    y = rng.uniform(bands.lower - bands.width, bands.upper + bands.width)
    return strategy, y, bands, 10.0 ** draw(st.integers(-2, 2)), 10.0 ** draw(st.integers(-12, -1))


@given(stages())
@settings(max_examples=25)
def test_no_value_moves_a_stage_by_more_than_is_counted_and_one_does_by_all_of_it(stage):
    strategy, y, bands, epsilon, delta = stage
    answers, _, spent = furthest(
        lambda outputs: ask(strategy, outputs, question=bands, epsilon=epsilon, delta=delta),
        y,
        values=in_and_around(bands),
        public=lambda answers: answers,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.guarantee.delta_at(epsilon) <= delta


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_groups_move_a_stage_by_their_gauge(seed):
    rng = np.random.default_rng(seed)
    strategy, bands = rng.normal(size=(2, 6)), drawn_bands(rng, 6)
    groups = [[0, 1, 2], [3, 4], [5]]
    answers, _, spent = furthest(
        lambda outputs: ask(
            strategy, outputs, question=bands, epsilon=1.0, delta=1e-4, groups=list("aaabbc")
        ),
        np.zeros(6),
        values=lambda row: [bands.lower[row], bands.upper[row], bands.middle[row], 1e300],
        together=groups,
    )
    # Oracle: all patterns of signs.
    gauge = max(
        np.linalg.norm(strategy[:, group] @ np.array(signs))
        for group in groups
        for signs in itertools.product((-1.0, 1.0), repeat=len(group))
    )
    assert answers.noise_sd == pytest.approx(gauge / answers.guarantee.mu, rel=1e-6)
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 5))
@settings(max_examples=10)
def test_a_spread_question_counts_at_most_one_for_every_row(seed, count):
    rng = np.random.default_rng(seed)
    asked = SpreadQuestion(
        mean=rng.normal(size=count) * 10.0 ** rng.integers(-3, 4),
        sd=10.0 ** rng.uniform(-6, 6, size=count),
    )
    answers, _, spent = furthest(
        lambda outputs: ask(np.ones((1, count)), outputs, question=asked, epsilon=1.0, delta=1e-4),
        asked.mean.copy(),
        values=in_and_around(asked),
        public=lambda answers: answers,
    )
    assert answers.noise_sd == pytest.approx(1 / answers.guarantee.mu, rel=1e-6)
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


# What is asked about.


@given(
    ends=st.tuples(*[st.floats(-1e100, 1e100)] * 2),
    output=st.floats(allow_nan=False, allow_infinity=False),
)
def test_encoded_outputs_are_places_in_their_bands(ends, output):
    lower, upper = sorted(ends)
    assume(upper - lower > 1e-12 * max(abs(lower), abs(upper), 1e-280))
    bands = Bands(lower=np.array([lower]), upper=np.array([upper]))
    bands.validate()
    [placed] = bands.encode(np.array([output]))
    inside = min(max(Fraction(output), Fraction(lower)), Fraction(upper))
    exact = (inside - Fraction(lower)) / (Fraction(upper) - Fraction(lower)) - Fraction(1, 2)
    assert -0.5 <= placed <= 0.5
    assert abs(float(exact) - placed) < 1e-3


def test_every_row_has_a_band_of_its_own():
    """Oracle: exact fractions. The band of another row would place outputs elsewhere."""
    rng = np.random.default_rng(3)
    bands = drawn_bands(rng, 40)
    y = rng.uniform(bands.lower, bands.upper)
    exact = [
        float((Fraction(value) - Fraction(lo)) / (Fraction(hi) - Fraction(lo)) - Fraction(1, 2))
        for value, lo, hi in zip(y, bands.lower, bands.upper, strict=True)
    ]
    np.testing.assert_allclose(bands.encode(y)[:, 0], exact, atol=1e-6)


def test_rounding_does_not_take_encoded_outputs_beyond_a_half():
    """Bands of a few roundings' width: a quotient alone goes up to one, and is brought back."""
    rng = np.random.default_rng(0)
    lower = rng.uniform(1, 2, size=500)
    bands = Bands(lower=lower, upper=lower + rng.integers(1, 4, size=500) * np.spacing(lower))
    bands.validate()
    quotients = (bands.upper - bands.middle) / bands.width
    assert quotients.max() > 0.5
    for output in (bands.lower, bands.upper, np.full(500, 1e300), np.full(500, -1e300)):
        assert np.abs(bands.encode(output)).max() <= 0.5


@given(
    mean=st.floats(-1e300, 1e300),
    sd=st.floats(5e-324, 1e300),
    output=st.floats(allow_nan=False, allow_infinity=False),
)
def test_how_far_from_its_mean_an_output_lies(mean, sd, output):
    asked = SpreadQuestion(mean=np.array([mean]), sd=np.array([sd]))
    asked.validate()
    [placed] = asked.encode(np.array([output]))
    distance = abs(Fraction(output) - Fraction(mean)) / Fraction(sd)
    octaves = math.log2(8 * min(max(distance, Fraction(1, 8)), Fraction(2)))
    assert placed == pytest.approx(octaves / 4 - 0.5, abs=1e-9)


def test_answers_are_unbiased_with_the_stated_noise():
    rng = np.random.default_rng(1)
    strategy, bands = rng.normal(size=(2000, 3)), drawn_bands(rng, 3)
    y = bands.lower + np.array([0.25, 2.0, -1.0]) * bands.width
    answers = ask(strategy, y, question=bands, epsilon=2, delta=0.01)
    standardised = (
        answers.values[:, 0] - strategy @ np.array([-0.25, 0.5, -0.5])
    ) / answers.noise_sd
    assert abs(standardised.mean()) < 5.5 / math.sqrt(2000)
    assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(4000))


ROW = np.zeros(1)


@pytest.mark.parametrize(
    "bands",
    [
        Bands(lower=ROW, upper=ROW),
        Bands(lower=ROW + 1, upper=ROW),
        Bands(lower=ROW, upper=ROW + np.inf),
        Bands(lower=ROW + np.nan, upper=ROW),
        Bands(lower=ROW, upper=ROW + 5e-324),
        Bands(lower=ROW - 1.7e308, upper=ROW + 1.7e308),
        Bands(lower=ROW, upper=np.ones(2)),
        Bands(lower=np.zeros((1, 1)), upper=np.ones((1, 1))),
        SpreadQuestion(mean=ROW, sd=ROW),
        SpreadQuestion(mean=ROW, sd=ROW + np.inf),
        SpreadQuestion(mean=ROW + np.nan, sd=ROW + 1),
        SpreadQuestion(mean=ROW, sd=np.ones(2)),
    ],
    ids=repr,
)
def test_bands_that_are_none_are_refused(bands):
    with pytest.raises(ValueError, match="damaged"):
        ask(np.ones((1, 1)), [1.0], question=bands, epsilon=1, delta=0.01)


@pytest.mark.parametrize(
    "y", [[61.80339887498949, np.nan], [61.80339887498949], ["61.80339887498949 kg", 1], None]
)
def test_bad_outputs_are_refused_and_not_quoted(y):
    bands = Bands(lower=np.zeros(2), upper=np.ones(2))
    with pytest.raises(ValueError, match="y") as raised:
        ask(np.ones((1, 2)), y, question=bands, epsilon=1, delta=0.01)
    error: BaseException | None = raised.value
    while error is not None:
        assert "61.8" not in repr(error)
        error = error.__cause__ or error.__context__


def test_seeded_noise_repeats_and_says_so():
    bands = Bands(lower=np.zeros(2), upper=np.ones(2))
    arguments = {"question": bands, "epsilon": 1, "delta": 0.01}
    first, second = (ask(np.eye(2), [0.0, 1.0], **arguments, insecure_seed=7) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    assert not ask(np.eye(2), [0.0, 1.0], **arguments).insecure


# Mutations of one stage.


def stage_that_forgets(monkeypatch, encoded, *, bands, y):
    """Let the encoding be another, and the Gaussian mechanism trust it; return spent, claimed."""
    monkeypatch.setattr(type(bands), "encode", lambda *given_: encoded(*given_)[:, None])
    answers, _, spent = furthest(
        lambda outputs: ask(np.ones((1, len(y))), outputs, question=bands, epsilon=1.0, delta=1e-4),
        y,
        values=lambda row: [y[row], y[row] + 9.0],
    )
    return spent, answers.guarantee.mu


def test_outputs_that_are_not_brought_into_their_bands_are_caught(monkeypatch):
    spent, claimed = stage_that_forgets(
        monkeypatch,
        lambda self, outputs: (outputs - self.middle) / self.width,
        bands=Bands(lower=np.zeros(2), upper=np.ones(2)),
        y=np.zeros(2),
    )
    assert spent > 2 * claimed


def test_a_row_that_counts_more_than_one_is_caught(monkeypatch):
    spent, claimed = stage_that_forgets(
        monkeypatch,
        lambda self, outputs: 2 * self.share_of(np.abs(outputs - self.mean) / self.sd),
        bands=SpreadQuestion(mean=np.zeros(2), sd=np.ones(2)),
        y=np.zeros(2),
    )
    assert spent > 1.9 * claimed


# Whole releases.

ASKED = {"noise": "gaussian", "interval": False}
FOUR = [(0.15, None), (0.2, 2.0), (0.25, 1.5), (0.4, 1.0)]


def several_stages(*, groups=None, **others):
    """Return a fit of four stages, and a question about the spread where ε is large."""
    X = np.array([[0.1], [0.1], [1.3], [2.2], [3.9], [4.4]])
    chosen = {"bounds": LIMITS, "epsilon": 1.0, "delta": 1e-4, "stages": FOUR, **ASKED} | others
    model = DPGPRegressor(4.0 * Matern(1.0, nu=1.5), **chosen)
    return lambda y: model.fit(X, y, groups=groups).release_


def published_with(release):
    """What a release shows, but for its answers' noise."""
    return [
        (one.strategy.matrix, one.answers.noise_sd, one.answers.values, one.question)
        for one in release.measurements
    ]


@pytest.mark.parametrize(
    "others",
    [
        {"learn": None},
        {"learn": "map"},
        {"learn": "map", "inducing": [[0.5], [2.0], [4.0]]},
        {"learn": "average", "stages": "auto", "epsilon": 0.3},
        {"learn": "map", "epsilon": 100.0},
        {"learn": None, "stages": [(0.4, None), (0.6, None)]},
    ],
    ids=str,
)
def test_all_stages_together_spend_what_the_release_states(others):
    others = {"epsilon": 1.0, **others}
    y = np.full(6, LIMITS[0])
    release, alone, together = furthest(
        several_stages(**others), y, values=ends_of(LIMITS), public=published_with
    )
    mus = [one.answers.guarantee.mu for one in release.measurements]
    stages = others.get("stages", FOUR)
    asks_spread = others["epsilon"] == 100.0
    assert len(mus) == (len(DEFAULT_STAGES) if stages == "auto" else len(stages)) + asks_spread
    encodings = [type(one.question) for one in release.measurements]
    assert (SpreadQuestion in encodings) == asks_spread
    for spent, claimed in zip(alone, mus, strict=True):
        assert ACHIEVED_SHARE * claimed <= spent <= claimed
    guarantee = release.guarantee
    assert guarantee.mu == pytest.approx(math.sqrt(math.fsum(mu**2 for mu in mus)), rel=1e-12)
    assert guarantee.mu >= math.sqrt(math.fsum(mu**2 for mu in mus))
    assert ACHIEVED_SHARE * guarantee.mu <= together <= guarantee.mu
    # And what was asked for is used up.
    assert 0.999e-4 <= guarantee.delta_at(others["epsilon"]) <= 1e-4


def test_groups_are_protected_in_all_stages():
    groups, rows = list("aabccb"), [[0, 1], [2, 5], [3, 4]]
    release, _, together = furthest(
        several_stages(groups=groups, learn=None, stages="auto"),
        np.full(6, LIMITS[0]),
        values=lambda _: LIMITS,
        together=rows,
        public=published_with,
    )
    assert ACHIEVED_SHARE * release.guarantee.mu <= together <= release.guarantee.mu


def test_nothing_that_is_published_holds_an_output():
    """Neither outputs, nor what they are in their bands, are in a pickle or a repr."""
    y = np.array([1.2345678901, 0.9876543210, 2.3456789012, -1.9283746501, 5.0192837465, 0.1357924])
    release = several_stages(learn="map")(y)
    content, shown = pickle.dumps(release), repr(release) + repr(vars(release))
    for one in release.measurements:
        private = y if isinstance(one.question, OutputBounds) else one.question.place(y)
        for value in (*private, *(y - 2.0)):
            # An output outside of its band is at one end of it: that many have the same place.
            if f"{abs(value):.6g}" != "0.5":
                assert value.tobytes() not in content
                assert f"{value:.6g}" not in shown


# Mutations of whole releases: each is one that the tests above must catch.


def attacked(others=None):
    return furthest(
        several_stages(learn=None, stages="auto", **(others or {})),
        np.full(6, LIMITS[0]),
        values=ends_of(LIMITS),
        public=published_with,
    )


def test_bands_from_outputs_are_caught(monkeypatch):
    """Mutation: bands around what is private, which no noise hides."""
    whole, private = steps_module.take_step, []

    def step(table, y, *more, **settings_):
        private[:] = [np.asarray(y)]
        return whole(table, y, *more, **settings_)

    def choose(mean, variance, *, width, bounds):
        del mean
        return bands_module.Bands(
            lower=np.clip(private[0], *LIMITS) - width * np.sqrt(variance),
            upper=np.clip(private[0], *LIMITS) + width * np.sqrt(variance) + 0 * bounds.width,
        )

    monkeypatch.setattr(steps_module, "take_step", step)
    monkeypatch.setattr(held_module, "choose_bands", choose)
    with pytest.raises(AssertionError, match="it shows outputs"):
        attacked()


def test_a_stage_that_the_guarantee_forgets_is_caught(monkeypatch):
    """Mutation: all but the last are counted."""
    whole = cohorts_module.compose
    monkeypatch.setattr(cohorts_module, "compose", lambda *parts: whole(*parts[:-1]))
    release, _, together = attacked()
    assert together > release.guarantee.mu


def test_later_stages_that_count_bands_as_half_as_wide_are_caught(monkeypatch):
    """Mutation: noise for outputs that move by a half, in all stages but the first."""
    whole = door.integer_sensitivity
    calls = itertools.count()

    def half(*arguments, **settings_):
        return whole(*arguments, **settings_) // (2 if next(calls) % len(DEFAULT_STAGES) else 1)

    monkeypatch.setattr(door, "integer_sensitivity", half)
    release, _, together = attacked()
    assert together > 1.1 * release.guarantee.mu


def test_what_is_recorded_is_what_is_hidden():
    """The helper sees the draw of `measure` itself."""
    answers, [(integers, scale)] = recorded(
        lambda: ask(
            np.eye(2), [0.0, 1.0], question=OutputBounds.checked((0, 1)), epsilon=1, delta=0.01
        ),
        noise="gaussian",
    )
    np.testing.assert_allclose(integers * (answers.noise_sd / scale), [-0.5, 0.5])


@pytest.mark.parametrize("zeros", [np.zeros((0, 3)), np.zeros((2, 3))])
@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-5), ("laplace", 0.0)])
def test_a_stage_that_asks_nothing_counts_as_spent(noise, delta, zeros):
    """That it asks nothing was decided by earlier answers, so that no less can be said to hold."""
    bands = Bands(lower=np.zeros(3), upper=np.ones(3))
    asked, empty = (
        ask(strategy, np.zeros(3), question=bands, epsilon=1.0, delta=delta, noise=noise).guarantee
        for strategy in (np.eye(3), zeros)
    )
    assert empty.answers == len(zeros)
    assert empty.epsilon_at(delta) == pytest.approx(asked.epsilon_at(delta), rel=1e-6)
