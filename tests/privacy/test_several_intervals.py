"""Counts of several outputs of a person: verified over all neighbours, alone and in releases."""

from __future__ import annotations

import importlib
import itertools
import math

import band_neighbours
import laplace_neighbours
import numpy as np
import pytest
from neighbours import ACHIEVED_SHARE
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPMultiOutputRegressor
from cloakgp.privacy import OutputBounds, cohorts, compose
from cloakgp.privacy.ask import ask
from cloakgp.privacy.noise import GAUSSIAN
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.privacy.several_outputs import OutputColumns

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

PAIRS = [(-3.0, 997.0), (0.0, 4.0)]
EDGES = [np.array([-3.0, 100.0, 200.0, 997.0]), np.array([0.0, 1.0, 2.0, 4.0])]
# One value in each of a question's intervals.
WITHIN = [(0.0, 150.0, 500.0), (0.5, 1.5, 3.0)]
PEOPLE = ["abc", "aab"]
WHOLE = {"gaussian": 1e-4, "laplace": 0.0}

search_module = importlib.import_module("cloakgp.fitting.interval")
fit_module = importlib.import_module("cloakgp.fitting.fit")


def together(people):
    """The entries of each person."""
    units = OutputColumns.checked(PAIRS).units(list(people), rows=len(people))
    return [np.flatnonzero(units == unit).tolist() for unit in np.unique(units)]


def counting(people, *, noise, counted=lambda which, output: which == output):
    """Return what counts every output of all people, given entries."""
    units = OutputColumns.checked(PAIRS).units(list(people), rows=len(people))
    which = np.arange(len(units)) % 2

    def run(entries):
        return [
            ask(
                counted(which, output)[None, :].astype(float),
                entries,
                question=CountQuestion(edges),
                epsilon=1.0,
                delta=WHOLE[noise],
                groups=units.tolist(),
                noise=noise,
            )
            for output, edges in enumerate(EDGES)
        ]

    return run


def stated(answers):
    return compose(*(one.guarantee for one in answers))


# Counts alone.


@pytest.mark.parametrize("people", PEOPLE)
def test_counts_of_all_outputs_together_cost_what_is_stated(people):
    answers, alone, spent = band_neighbours.furthest(
        counting(people, noise="gaussian"),
        np.zeros(2 * len(people)),
        values=lambda entry: WITHIN[entry % 2],
        together=together(people),
    )
    for moved, one in zip(alone, answers, strict=True):
        assert ACHIEVED_SHARE * one.guarantee.mu <= moved <= one.guarantee.mu
    mu = stated(answers).mu
    assert ACHIEVED_SHARE * mu <= spent <= mu
    # Oracle: two indicators of every output change, in each row of the person with most.
    rows = max(map(len, together(people))) // 2
    assert answers[0].noise_sd == pytest.approx(rows * math.sqrt(2) / alone[0], rel=1e-6)


@pytest.mark.parametrize("people", PEOPLE)
def test_pure_counts_of_all_outputs_together_cost_what_is_stated(people):
    base = np.resize([WITHIN[0][0], WITHIN[1][0]], 2 * len(people))
    corners = [
        laplace_neighbours.moved(
            base, entries, bounds=[(WITHIN[one % 2][0], WITHIN[one % 2][2]) for one in range(6)]
        )
        for entries in together(people)
    ]
    answers, _, spent = laplace_neighbours.furthest(counting(people, noise="laplace"), corners)
    epsilon = sum(one.guarantee.pure_epsilon for one in answers)
    assert epsilon == pytest.approx(2.0)
    assert stated(answers).epsilon >= epsilon
    assert 0.999 * epsilon <= spent <= epsilon


def test_a_count_is_of_the_entries_that_it_is_said_to_be_of(monkeypatch):
    seen = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        seen.append(integers)
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    entries = np.array([0.0, 3.0, 150.0, 3.0, 500.0, 0.5])
    first, second = counting("abc", noise="gaussian")(entries)
    np.testing.assert_allclose(first.values, [[1, 1, 1]], atol=1e-9)
    np.testing.assert_allclose(second.values, [[1, 0, 2]], atol=1e-9)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        (np.ones((1, 3)), "must agree"),
        (np.array([[1.0, 0.5]]), "do not fit"),
        (np.array([[1.0, -1.0]]), "do not fit"),
        (np.eye(2), "do not fit"),
    ],
)
def test_every_row_counts_once_or_not_at_all(weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        ask(weights, [0.5, 0.5], question=CountQuestion(EDGES[1]), epsilon=1.0, delta=0.01)


def test_counts_of_no_row_say_nothing():
    question = CountQuestion(EDGES[1])
    answers = ask(np.zeros((1, 2)), [0.5, 0.5], question=question, epsilon=1.0, delta=0.01)
    assert answers.values.tolist() == [[0.0] * question.intervals]
    assert answers.noise_sd == answers.guarantee.mu == 0


def test_entries_that_are_counted_as_if_one_alone_moved_are_caught(monkeypatch):
    """Mutation: all outputs are counted in each question, and noise is as for one of them."""
    monkeypatch.setattr(type(GAUSSIAN), "gauge", lambda *_, **__: 1.0)
    answers, _, spent = band_neighbours.furthest(
        counting("ab", noise="gaussian", counted=lambda which, _: which >= 0),
        np.full(4, -3.0),
        values=lambda _: (-3.0, 500.0),
        together=[[0, 1]],
    )
    assert spent > 1.9 * stated(answers).mu


# Whole releases.


def searching(*, people="abcd", **others):
    """Return a fit that looks first: few rows, so ε is large."""
    X = np.linspace(0.1, 4.4, len(people))[:, None]
    chosen = {"bounds": PAIRS, "epsilon": 300.0, "learn": None, "noise": "gaussian"} | others
    model = DPGPMultiOutputRegressor(0.06 * RBF(2.0), **{"delta": WHOLE[chosen["noise"]], **chosen})
    groups = None if len(set(people)) == len(people) else list(people)
    return lambda entries: model.fit(X, entries.reshape(-1, 2), groups=groups).release_


def published_with(release):
    """What a release shows, but for what it cost."""
    entries = [
        (one.strategy.matrix, one.answers.noise_sd, one.answers.values, one.question)
        for one in release.entries.measurements
    ]
    return [entries, release.units]


def lowest(people):
    # At the very ends they would have a value in common, around which no interval is looked for.
    return np.resize([lo + 1e-9 * (hi - lo) for lo, hi in PAIRS], 2 * len(people))


def ends(entry):
    return [*PAIRS[entry % 2], *((1.0, 0.7)[entry : entry + 1])]


@pytest.fixture
def few_rounds(monkeypatch):
    # More find so narrow an interval of equal outputs that later stages have nothing to ask.
    monkeypatch.setattr(search_module, "MOST_ROUNDS", 3)


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize(
    "others",
    [
        {},
        {"stages": None},
        {"learn": "map", "inducing": [[0.5], [2.0], [4.0]]},
        {"people": "aabc", "epsilon": 900.0},
    ],
    ids=str,
)
def test_counts_and_stages_of_all_outputs_spend_what_the_release_states(others):
    people = others.get("people", "abcd")
    release, _, spent = band_neighbours.furthest(
        searching(**others),
        lowest(people),
        values=ends if "people" not in others else lambda entry: ends(entry)[:2],
        together=together(people)[:2],
        public=published_with,
    )
    kinds = [type(one.question) for one in release.entries.measurements]
    rounds = kinds.count(CountQuestion)
    stages = [] if "stages" in others else [Bands, Bands]
    spread = [SpreadQuestion] * (others.get("learn") == "map")
    assert kinds == [OutputBounds, *[CountQuestion] * rounds, *stages, *spread]
    counted = [release.counts_of(one) for one in release.entries.measurements]
    assert {one[0] for one in counted if one is not None} == {0, 1}
    assert release.intervals is not None
    assert release.intervals.widths[0] < 0.1 * release.columns.widths[0]
    assert ACHIEVED_SHARE * release.guarantee.mu <= spent <= release.guarantee.mu
    # And what was asked for is used up.
    assert 0.999e-4 <= release.guarantee.delta_at(others.get("epsilon", 300.0)) <= 1e-4


def loss_of(measurement, entries, *, signs):
    """How far a person's entries move answers with Laplace noise, each from end to end, as ε."""
    if isinstance(measurement.question, CountQuestion):
        return measurement.guarantee.pure_epsilon
    moved = np.abs(measurement.strategy.matrix[:, entries] @ np.array(signs)).sum()
    return math.sqrt(2.0) * moved / measurement.answers.noise_sd


def summed_lengths(measurement, persons):
    """The greatest sum over a person's columns of their ℓ1 lengths, as ε."""
    lengths = np.abs(measurement.strategy.matrix).sum(axis=0)
    counts = isinstance(measurement.question, CountQuestion)
    # An output that moves to another interval changes two counts.
    longest = max((2.0 if counts else 1.0) * lengths[entries].sum() for entries in persons)
    return math.sqrt(2.0) * longest / measurement.answers.noise_sd


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.parametrize("people", ["abcd", "aabc"])
def test_pure_counts_and_stages_spend_what_the_release_states(people):
    epsilon = 300.0 * (1 + (len(set(people)) < len(people)))
    base = lowest(people)
    neighbourhoods = [
        laplace_neighbours.moved(base, entries, bounds=np.tile(PAIRS, (len(people), 1)))
        for entries in together(people)
    ]
    release, _, spent = laplace_neighbours.furthest(
        searching(people=people, noise="laplace", epsilon=epsilon),
        neighbourhoods,
        public=published_with,
    )
    assert any(isinstance(one.question, CountQuestion) for one in release.entries.measurements)
    assert release.guarantee.pure_epsilon <= epsilon
    assert release.guarantee.pure_epsilon == pytest.approx(epsilon, rel=1e-5)
    measured, persons = release.entries.measurements, together(people)
    # What is stated: entries of a person as if all of them moved every answer the same way.
    for one in measured:
        assert one.guarantee.pure_epsilon == pytest.approx(summed_lengths(one, persons), rel=1e-5)
    # Some person and signs attain the whole of it, unless an answer mixes entries of a person: of
    # late questions many are as good, and which one is asked depends on last bits.
    attained = max(
        sum(loss_of(one, entries, signs=signs) for one in measured)
        for entries in persons
        for signs in itertools.product((-1.0, 1.0), repeat=len(entries))
    )
    assert 0.999 * attained <= spent <= release.guarantee.pure_epsilon
    mixes = any(
        (np.count_nonzero(one.strategy.matrix[:, entries], axis=1) > 1).any()
        for one in measured
        if not isinstance(one.question, CountQuestion)
        for entries in persons
    )
    assert mixes or spent >= 0.999 * release.guarantee.pure_epsilon


@pytest.mark.usefixtures("few_rounds")
def test_counts_of_an_output_that_the_guarantee_forgets_are_caught(monkeypatch):
    """Mutation: as if a person were in the counts of the first output alone."""
    whole = cohorts.compose
    monkeypatch.setattr(cohorts, "compose", lambda *parts: whole(*parts[:2], *parts[-2:]))
    release, _, spent = band_neighbours.furthest(
        searching(), lowest("abcd"), values=ends, together=[[0, 1]], public=published_with
    )
    assert spent > release.guarantee.mu


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning")
def test_intervals_from_outputs_are_caught(monkeypatch):
    """Mutation: the second output's interval is what it spans, which no noise hides."""
    whole = fit_module.find_intervals

    def search(count, **settings):
        found, counted = whole(count, **settings)
        top = float(np.clip(np.asarray(count.keywords["y"])[:, 1].max() + 0.5, 1.0, 4.0))
        return (found[0], OutputBounds(0.0, top)), counted

    monkeypatch.setattr(fit_module, "find_intervals", search)
    with pytest.raises((AssertionError, ValueError), match=r"it shows outputs|cannot reshape"):
        band_neighbours.furthest(
            searching(), lowest("abcd"), values=ends, together=[[0, 1]], public=published_with
        )


def test_seeds_of_rounds_differ():
    """Noise that repeats between two outputs would show the difference of their counts."""
    X = np.linspace(0, 5, 200)[:, None]
    y = np.column_stack([np.sin(X), np.sin(X)])
    model = DPGPMultiOutputRegressor(
        bounds=[(-100, 100)] * 2, epsilon=3.0, noise="laplace", insecure_seed=4, stages=None
    )
    counts = [
        one.answers.values
        for one in model.fit(X, y).release_.entries.measurements
        if isinstance(one.question, CountQuestion)
    ]
    firsts = [one for one in counts if len(one) == len(counts[0])]
    assert len(firsts) >= 2
    assert not np.array_equal(firsts[0], firsts[1])
