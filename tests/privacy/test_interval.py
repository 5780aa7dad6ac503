"""Counts of outputs in intervals, verified over all neighbours; and whole releases that search."""

from __future__ import annotations

import importlib
import itertools
import math
import pickle

import numpy as np
import pytest
from band_neighbours import ends_of, furthest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPRegressor
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

FAR = (-1.7e308, -1e20, -5e-324, 0.0, 5e-324, 1e20, 1.7e308)
search_module = importlib.import_module("cloakgp.fitting.interval")
strata_module = importlib.import_module("cloakgp.fitting.strata")
fit_module = importlib.import_module("cloakgp.fitting.fit")
cohorts_module = importlib.import_module("cloakgp.privacy.cohorts")


def on_and_around(edges):
    """Return all ends, what is next to them, middles, and values far off."""
    near = [np.nextafter(end, far) for end in edges for far in (-np.inf, np.inf)]
    return [*edges, *near, *((edges[1:] + edges[:-1]) / 2), *FAR]


def drawn_edges(rng, intervals):
    return np.cumsum(10.0 ** rng.uniform(-6, 3, size=intervals + 1)) - 10.0


def counted_of(question, outputs):
    return question.encode(outputs).sum(axis=0)


# Counts alone.


def test_a_count_is_what_comparing_says():
    """Oracle: the definition, one output and one interval at a time."""
    edges = np.array([-1.0, 0.0, 0.5, 3.0])
    outputs = np.array(on_and_around(edges))
    expected = [
        sum(y < edges[1] for y in outputs),
        sum(edges[1] <= y < edges[2] for y in outputs),
        sum(y >= edges[2] for y in outputs),
    ]
    np.testing.assert_array_equal(counted_of(CountQuestion(edges), outputs), expected)
    assert counted_of(CountQuestion(edges), outputs).sum() == len(outputs)


@given(seed=st.integers(0, 2**32 - 1), intervals=st.integers(2, 6), rows=st.integers(2, 5))
@settings(max_examples=20)
def test_no_value_moves_counts_by_more_than_is_counted_and_one_does_by_all_of_it(
    seed, intervals, rows
):
    rng = np.random.default_rng(seed)
    question = CountQuestion(drawn_edges(rng, intervals))
    epsilon, delta = 10.0 ** rng.integers(-2, 3), 10.0 ** rng.integers(-12, 0)
    answers, _, spent = furthest(
        lambda y: ask(np.ones((1, rows)), y, question=question, epsilon=epsilon, delta=delta),
        rng.uniform(question.edges[0], question.edges[-1], size=rows),
        values=lambda _: on_and_around(question.edges),
        public=lambda answers: answers,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.guarantee.delta_at(epsilon) <= delta
    # Oracle: indicators of two different intervals are √2 apart.
    assert answers.noise_sd == pytest.approx(math.sqrt(2) / answers.guarantee.mu, rel=1e-6)


@pytest.mark.parametrize("groups", ["aaabbc", "aaaaaa", "abcdef"])
def test_groups_move_counts_by_all_their_rows(groups):
    question = CountQuestion(np.array([0.0, 1.0, 2.0, 3.0]))
    together = [[j for j, one in enumerate(groups) if one == each] for each in sorted(set(groups))]
    answers, _, spent = furthest(
        lambda y: ask(
            np.ones((1, 6)), y, question=question, epsilon=1.0, delta=1e-4, groups=list(groups)
        ),
        np.zeros(6),
        values=lambda _: [0.5, 1.5, 2.5],
        together=together,
    )
    most = max(map(len, together))
    assert answers.noise_sd == pytest.approx(most * math.sqrt(2) / answers.guarantee.mu, rel=1e-6)
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_counts_are_unbiased_with_the_stated_noise():
    question = CountQuestion(np.linspace(0.0, 1.0, 501))
    y = np.random.default_rng(0).uniform(size=300)
    answers = ask(np.ones((1, 300)), y, question=question, epsilon=2.0, delta=0.01)
    standardised = (answers.values[0] - counted_of(question, y)) / answers.noise_sd
    assert abs(standardised.mean()) < 5.5 / math.sqrt(500)
    assert standardised.std() == pytest.approx(1, abs=5.5 / math.sqrt(1000))


@pytest.mark.parametrize(
    "edges",
    [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, np.inf], [np.nan, 1.0], [[0.0, 1.0]], [0.0, 2.0, 1.0]],
    ids=str,
)
def test_intervals_that_are_none_are_refused(edges):
    with pytest.raises(ValueError, match="damaged"):
        ask(
            np.ones((1, 1)), [1.0], question=CountQuestion(np.array(edges)), epsilon=1.0, delta=0.01
        )


@pytest.mark.parametrize(
    "y", [[61.80339887498949, np.nan], [61.80339887498949], ["61.80339887498949 kg", 1], None]
)
def test_bad_outputs_are_refused_and_not_quoted(y):
    question = CountQuestion(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="y") as raised:
        ask(np.ones((1, 2)), y, question=question, epsilon=1.0, delta=0.01)
    error: BaseException | None = raised.value
    while error is not None:
        assert "61.8" not in repr(error)
        error = error.__cause__ or error.__context__


def test_seeded_noise_repeats_and_says_so():
    arguments = {"question": CountQuestion(np.arange(4.0)), "epsilon": 1, "delta": 0.01}
    once = np.ones((1, 2))
    first, second = (ask(once, [0.0, 1.0], **arguments, insecure_seed=7) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert first.insecure
    assert not ask(once, [0.0, 1.0], **arguments).insecure


# Mutations of counts.


def attacked_counts(rows=2, **others):
    answers, _, spent = furthest(
        lambda y: ask(
            np.ones((1, rows)),
            y,
            question=CountQuestion(np.arange(4.0)),
            epsilon=1.0,
            delta=1e-4,
            **others,
        ),
        np.full(rows, 0.5),
        values=lambda _: [0.5, 1.5, 2.5],
        together=None if not others else [list(range(rows))],
    )
    return spent, answers.guarantee.mu


def test_noise_for_one_count_that_moves_is_caught(monkeypatch):
    """Mutation: of two counts that move, one is forgotten."""
    monkeypatch.setattr(CountQuestion, "distance", 1.0)
    spent, claimed = attacked_counts()
    assert spent > 1.4 * claimed


def test_intervals_that_overlap_are_caught(monkeypatch):
    """Mutation: an output counts in every interval below it, too."""
    whole = CountQuestion.encode
    monkeypatch.setattr(
        CountQuestion,
        "encode",
        lambda self, y: np.cumsum(whole(self, y)[:, ::-1], axis=1)[:, ::-1],
    )
    monkeypatch.setattr(CountQuestion, "distance", 1.0)
    spent, claimed = attacked_counts()
    assert spent > 1.4 * claimed


def test_groups_that_are_forgotten_are_caught(monkeypatch):
    monkeypatch.setattr(type(GAUSSIAN), "gauge", lambda *_, **__: 1.0)
    spent, claimed = attacked_counts(rows=3, groups=list("aaa"))
    assert spent > 2.9 * claimed


# Whole releases.

LIMITS = (-3.0, 997.0)


def searching(*, groups=None, rows=6, **others):
    """Return a fit that looks first: few rows, so ε is large."""
    X = np.linspace(0.1, 4.4, rows)[:, None]
    chosen = {"bounds": LIMITS, "epsilon": 300.0, "delta": 1e-4, "learn": None} | others
    chosen = {"noise": "gaussian", **chosen}
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
    [{}, {"learn": "map"}, {"stages": None}, {"inducing": [[0.5], [2.0], [4.0]]}],
    ids=str,
)
def test_the_search_and_all_stages_together_spend_what_the_release_states(others, monkeypatch):
    # More find so narrow an interval of equal outputs that later stages have nothing to ask.
    monkeypatch.setattr(search_module, "MOST_ROUNDS", 2)
    # However few rows there are, it is asked by strata who lies outside.
    monkeypatch.setattr(strata_module, "COARSEST", 1.0)
    release, alone, together = furthest(
        searching(**others),
        np.full(6, LIMITS[0] + 1e-6),
        values=ends_of(LIMITS),
        public=published_with,
    )
    kinds = [type(one.question) for one in release.measurements]
    rounds = kinds.count(CountQuestion)
    stages = [] if "stages" in others else [Bands, Bands]
    spread = [SpreadQuestion] * (others.get("learn") == "map")
    assert rounds == 2
    # Nobody does.
    assert kinds == [OutputBounds, *[CountQuestion] * rounds, OutsideQuestion, *stages, *spread]
    # It did find a narrower interval, and every question after it goes by that.
    assert release.measurements[0].question.width < 0.1 * (LIMITS[1] - LIMITS[0])
    # Counts come first in time, and stand behind the first stage.
    mus = [one.answers.guarantee.mu for one in release.measurements]
    mus = [*mus[1 : rounds + 2], mus[0], *mus[rounds + 2 :]]
    for spent, claimed in zip(alone, mus, strict=True):
        assert ACHIEVED_SHARE * claimed <= spent <= claimed
    guarantee = release.guarantee
    assert ACHIEVED_SHARE * guarantee.mu <= together <= guarantee.mu
    # And what was asked for is used up.
    assert 0.999e-4 <= guarantee.delta_at(300.0) <= 1e-4


def test_groups_are_protected_in_search_and_stages():
    groups = list("aabcde")
    release, _, together = furthest(
        searching(groups=groups, epsilon=900.0),
        np.full(6, LIMITS[0] + 1e-6),
        values=lambda _: [*LIMITS, 1.0],
        together=[[0, 1], [2], [5]],
        public=published_with,
    )
    assert any(isinstance(one.question, CountQuestion) for one in release.measurements)
    assert ACHIEVED_SHARE * release.guarantee.mu <= together <= release.guarantee.mu


def test_nothing_that_is_published_holds_an_output():
    y = np.array([1.2345678901, 0.9876543210, 2.3456789012, -1.9283746501, 5.0192837465, 0.1357924])
    release = searching(learn="map")(y)
    content, shown = pickle.dumps(release), repr(release) + repr(vars(release))
    for value in (*y, *(y - LIMITS[0])):
        assert value.tobytes() not in content
        assert f"{value:.6g}" not in shown


def attacked():
    return furthest(
        searching(), np.full(6, LIMITS[0] + 1e-6), values=ends_of(LIMITS), public=published_with
    )


def test_an_interval_from_outputs_is_caught(monkeypatch):
    """Mutation: what is found is what outputs span, which no noise hides."""
    whole, private = fit_module.find_intervals, []

    def search(count, **settings_):
        private[:] = [np.clip(np.asarray(count.keywords["y"]), *LIMITS)]
        return whole(count, **settings_)

    def find(ask, *, bounds, rows, rounds):  # noqa: ARG001
        return OutputBounds(bounds.lo, float(private[0].max()) + 1.0)

    monkeypatch.setattr(fit_module, "find_intervals", search)
    monkeypatch.setattr(search_module, "find_interval", find)
    # Other questions, if not as many of them.
    with pytest.raises((AssertionError, ValueError), match=r"it shows outputs|cannot reshape"):
        attacked()


def test_counts_that_the_guarantee_forgets_are_caught(monkeypatch):
    """Mutation: what was counted is left out of the sum."""
    whole = cohorts_module.compose
    monkeypatch.setattr(cohorts_module, "compose", lambda *parts: whole(parts[0], *parts[-2:]))
    release, _, together = attacked()
    assert together > release.guarantee.mu


def test_two_indicators_are_as_far_apart_as_is_said():
    far = max(np.linalg.norm(one - other) for one, other in itertools.combinations(np.eye(4), 2))
    question = CountQuestion(np.arange(5.0))
    assert 0 <= question.distance - far < 1e-14
    assert 0 <= question.absolute_distance - 2.0 < 1e-14


@pytest.mark.parametrize("dust", [5.684e-14, -3.927e-13])
def test_an_end_at_zero_is_told_without_the_rounding_of_its_unit(dust):
    question = CountQuestion(np.array([-100.0, dust, 1.0, 100.0]))
    told = question.describe_answers(3, noise=lambda unit: f"noise{unit}", output="pay")
    assert "which end from 0 to 1, each with noise rows" in told
    small = CountQuestion(np.array([0.0, 1e-9, 2e-9, 3e-9]))
    assert "from 1e-09 to 2e-09" in small.describe_answers(3, noise=str, output="pay")
