"""Outputs in bands, in tables that come in chunks: one stage, and whole releases of several."""

from __future__ import annotations

import importlib
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from band_neighbours import ends_of, furthest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door
from private_chunks import Picked, PrivateChunks, all_cuts, bound_of
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPRegressor, refine
from cloakgp.data import ArrayRows
from cloakgp.privacy.ask import ask_chunks
from cloakgp.privacy.questions.bands import Bands, UnitQuestion
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.spread import SpreadQuestion
from cloakgp.release.bands import RowBands, RowSpread

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

room = importlib.import_module("cloakgp.privacy.ask")
LIMITS = (-3.0, 7.0)
BUDGET = {"epsilon": 1.0, "delta": 1e-4}
FAR = (-1.7e308, -1e20, 0.0, 5e-324, 1e20, 1.7e308)


@dataclass(frozen=True)
class PickedBands(UnitQuestion):
    """Bands of rows by their numbers."""

    bands: Bands | SpreadQuestion

    def validate(self):
        pass

    def place(self, outputs):
        raise NotImplementedError

    def of_rows(self, X):
        rows = X[:, 0].astype(int)
        if isinstance(self.bands, SpreadQuestion):
            return SpreadQuestion(mean=self.bands.mean[rows], sd=self.bands.sd[rows])
        return Bands(lower=self.bands.lower[rows], upper=self.bands.upper[rows])


class Given(PickedBands):
    """The same bands for all rows, right or wrong."""

    def of_rows(self, X):
        del X
        return self.bands


def drawn_bands(rng, rows):
    """Draw bands of widths from 10⁻⁶ to 10⁶, around anything."""
    lower = rng.standard_t(2, size=rows) * 10.0 ** rng.integers(-3, 4, size=rows)
    return Bands(lower=lower, upper=lower + 10.0 ** rng.uniform(-6, 6, size=rows))


def in_and_around(bands):
    """Return for every row values inside of its band, on its ends, next to them, and far off."""

    def values(row):
        if isinstance(bands, SpreadQuestion):
            mean, sd = bands.mean[row], bands.sd[row]
            return [mean, *(mean + step * sd for step in (1.5, -2.0, 3.0, -3.1)), *FAR]
        ends = bands.lower[row], bands.upper[row]
        near = [np.nextafter(end, far) for end in ends for far in (-np.inf, np.inf)]
        return [*ends, *near, bands.middle[row], *FAR]

    return values


def answers_of(strategy, outputs, bands, *, cuts=(), **rest):
    settings_ = {"bound": bound_of(strategy, cuts), "groups": None} | BUDGET | rest
    rows = PrivateChunks(np.asarray(outputs), tuple(cuts), None, settings_.pop("groups"))
    return ask_chunks(rows, Picked(strategy), question=PickedBands(bands), **settings_)


# One stage.


@pytest.mark.parametrize("cuts", all_cuts(4))
@pytest.mark.parametrize("spread", [False, True])
def test_no_value_moves_a_stage_by_more_than_is_counted_in_any_chunking(cuts, spread):
    rng = np.random.default_rng(len(cuts) + 10 * spread)
    strategy = rng.normal(size=(3, 4)) * np.array([1.0, 1e-3, 7.0, 1e-8])
    bands = drawn_bands(rng, 4)
    if spread:
        bands = SpreadQuestion(mean=bands.lower, sd=bands.width)
    answers, _, spent = furthest(
        lambda outputs: answers_of(strategy, outputs, bands, cuts=cuts),
        np.zeros(4),
        values=in_and_around(bands),
        public=lambda answers: answers,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.guarantee.delta_at(1.0) <= 1e-4


@given(
    seed=st.integers(0, 2**32 - 1),
    epsilon=st.sampled_from([1e-2, 1.0, 30.0]),
    scale=st.integers(-6, 6),
)
@settings(max_examples=15)
def test_whatever_the_scales_and_the_budget(seed, epsilon, scale):
    rng = np.random.default_rng(seed)
    strategy, bands = rng.standard_t(2, size=(2, 5)) * 10.0**scale, drawn_bands(rng, 5)
    answers, _, spent = furthest(
        lambda outputs: answers_of(strategy, outputs, bands, cuts=(2,), epsilon=epsilon),
        rng.uniform(bands.lower - bands.width, bands.upper + bands.width),
        values=lambda row: [bands.lower[row], bands.upper[row], *FAR],
        public=lambda answers: answers,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_groups_move_a_stage_by_the_lengths_of_their_columns(monkeypatch):
    monkeypatch.setattr(room, "GROUP_NUMBERS", 8)
    rng = np.random.default_rng(0)
    strategy, bands = np.abs(rng.normal(size=(1, 5))), drawn_bands(rng, 5)
    groups = np.array([0, 1, 0, 2, 1])
    longest = max(strategy[0, groups == group].sum() for group in range(3))
    bound = bound_of(strategy, (2, 4), longest=longest, group_rows=2, chunks=3)
    answers, _, spent = furthest(
        lambda outputs: answers_of(
            strategy, outputs, bands, cuts=(2, 4), bound=bound, groups=groups
        ),
        np.zeros(5),
        values=lambda row: [bands.lower[row], bands.upper[row], bands.middle[row], 1e300],
        together=[np.flatnonzero(groups == group) for group in range(3)],
        public=lambda answers: answers,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_chunks_say_what_the_whole_says():
    """Oracle: the answers to one chunk of all rows, with the same noise."""
    rng = np.random.default_rng(1)
    strategy, bands = rng.normal(size=(3, 6)), drawn_bands(rng, 6)
    y = rng.uniform(bands.lower - bands.width, bands.upper + bands.width)
    bound = bound_of(strategy)
    whole, cut = (
        answers_of(strategy, y, bands, cuts=cuts, bound=bound, insecure_seed=3)
        for cuts in ((), (1, 4))
    )
    np.testing.assert_allclose(cut.values, whole.values, atol=1e-6)
    noiseless = strategy @ bands.encode(y)
    other = answers_of(strategy, bands.middle, bands, bound=bound, insecure_seed=3)
    np.testing.assert_allclose(whole.values - other.values, noiseless, atol=1e-3)


ROW = np.zeros(2)


@pytest.mark.parametrize(
    ("bands", "error"),
    [
        (Bands(lower=ROW, upper=ROW), ValueError),
        (Bands(lower=ROW, upper=ROW + np.nan), ValueError),
        (SpreadQuestion(mean=ROW, sd=ROW), ValueError),
        (Bands(lower=np.zeros(1), upper=np.ones(1)), TypeError),
        (SpreadQuestion(mean=np.zeros((2, 1)), sd=np.ones((2, 1))), ValueError),
    ],
    ids=repr,
)
def test_bands_that_are_none_are_refused(bands, error):
    rows = PrivateChunks(np.array([61.80339887498949, 3.0]))
    with pytest.raises(error, match=r"each of the rows|damaged") as raised:
        ask_chunks(
            rows,
            Picked(np.ones((1, 2))),
            bound=bound_of(np.ones((1, 2))),
            question=Given(bands),
            **BUDGET,
        )
    assert "61.8" not in repr(raised.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_outputs_are_refused_and_not_quoted(bad):
    bands = Bands(lower=np.zeros(2), upper=np.ones(2))
    with pytest.raises(ValueError, match="y contains") as raised:
        answers_of(np.ones((1, 2)), [61.80339887498949, bad], bands)
    assert "61.8" not in repr(raised.value)


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_bands_of_low_precision_move_answers_no_further(precision):
    bands = Bands(lower=precision([0.1, 7.7]), upper=precision([0.3, 1e4]))
    answers, _, spent = furthest(
        lambda outputs: answers_of(np.array([[0.1, 0.7]]), outputs, bands),
        np.zeros(2),
        values=in_and_around(bands),
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_outputs_that_are_not_brought_into_their_bands_are_caught(monkeypatch):
    """Mutation: the place in a band without its clip."""
    monkeypatch.setattr(Bands, "encode", lambda self, y: ((y - self.middle) / self.width)[:, None])
    bands = Bands(lower=np.zeros(2), upper=np.ones(2))
    answers, _, spent = furthest(
        lambda outputs: answers_of(np.ones((1, 2)), outputs, bands),
        np.zeros(2),
        values=lambda _: [0.0, 9.0],
    )
    assert spent > 2 * answers.guarantee.mu


# Whole releases.

FOUR = [(0.15, None), (0.2, 2.0), (0.25, 1.5), (0.4, 1.0)]
X = np.array([[0.1], [0.1], [1.3], [2.2], [3.9], [4.4]])
INDUCING = [[0.5], [2.0], [4.0]]
LOWEST = np.full(6, LIMITS[0])


def several_stages(*, groups=None, **others):
    """Return a fit of four stages in chunks of two rows."""
    chosen = (
        {"bounds": LIMITS, "stages": FOUR, "inducing": INDUCING, "noise": "gaussian"}
        | BUDGET
        | others
    )
    model = DPGPRegressor(4.0 * Matern(1.0, nu=1.5), **chosen)

    def fit(y):
        rows = ArrayRows(X, y, groups=groups, chunk_rows=2, jobs=1)
        return model.fit_rows(rows).release_

    return fit


def published_with(release):
    """What a release shows, but for its answers' noise."""
    return [
        (
            one.strategy.columns(one.question)(with_sizes(one)),
            one.answers.values,
            one.strategy.sums,
            bands_of(one),
        )
        for one in release.measurements
    ]


def with_sizes(measurement):
    return np.column_stack([X, np.full(6, 2.0)]) if measurement.strategy.grouped else X


def bands_of(measurement):
    question = measurement.question.of_rows(X)
    return None if isinstance(question, OutputBounds) else question


@pytest.mark.parametrize(
    "others",
    [
        {"learn": None},
        {"learn": "map"},
        {"learn": "average", "epsilon": 0.3},
        {"learn": None, "stages": [(0.4, None), (0.6, None)]},
    ],
    ids=str,
)
def test_all_stages_together_spend_what_the_release_states(others):
    release, alone, together = furthest(
        several_stages(**others),
        np.full(6, LIMITS[0]),
        values=ends_of(LIMITS),
        public=published_with,
    )
    mus = [one.answers.guarantee.mu for one in release.measurements]
    stages = others.get("stages", FOUR)
    kinds = [type(one.question) for one in release.measurements]
    assert kinds == [OutputBounds if width is None else RowBands for _, width in stages]
    for spent, claimed in zip(alone, mus, strict=True):
        assert ACHIEVED_SHARE * claimed <= spent <= claimed
    guarantee = release.guarantee
    assert guarantee.mu == pytest.approx(math.sqrt(math.fsum(mu**2 for mu in mus)), rel=1e-12)
    assert ACHIEVED_SHARE * guarantee.mu <= together <= guarantee.mu
    assert 0.999e-4 <= guarantee.delta_at(others.get("epsilon", 1.0)) <= 1e-4


@pytest.mark.parametrize("free", [False, True])
def test_stages_that_go_by_the_noise_of_outputs_spend_what_is_stated(free, monkeypatch):
    """How many there are, and in which bands, is decided by an answer."""
    monkeypatch.setattr("cloakgp.fitting.bands.PRECISE_SPREAD", 1e9)
    monkeypatch.setattr("cloakgp.fitting.passes.LITTLE_OF_CURVE", np.inf if free else -1.0)
    release, alone, together = furthest(
        several_stages(stages="auto", learn="map", interval=False),
        np.full(6, LIMITS[0]),
        values=ends_of(LIMITS),
        public=published_with,
    )
    later = [OutputBounds, RowSpread] if free else 2 * [RowBands, RowSpread]
    kinds = [type(one.question) for one in release.measurements]
    assert kinds == [OutputBounds, RowSpread, *later]
    # Nothing else is decided by how much: of Laplace noise only sums would count.
    decided = [one.answers.guarantee.adaptive for one in release.measurements]
    assert decided == [place == 1 for place in range(len(kinds))]
    assert release.guarantee.adaptive
    mus = [one.answers.guarantee.mu for one in release.measurements]
    assert all(spent <= claimed for spent, claimed in zip(alone, mus, strict=True))
    # No two outputs lie as far from a prediction as the question allows.
    assert 0.99 * release.guarantee.mu <= together <= release.guarantee.mu
    assert 0.999e-4 <= release.guarantee.delta_at(1.0) <= 1e-4


def test_groups_are_protected_in_all_stages():
    groups, rows = list("aabccb"), [[0, 1], [2, 5], [3, 4]]
    release, _, together = furthest(
        several_stages(groups=groups, learn=None),
        np.full(6, LIMITS[0]),
        values=lambda _: LIMITS,
        together=rows,
        public=published_with,
    )
    assert len(release.measurements) == len(FOUR)
    assert together <= release.guarantee.mu
    # Columns of two rows in one place point the same way.
    assert together >= 0.9 * release.guarantee.mu


def test_a_later_visit_spends_what_it_claims():
    first = several_stages(learn=None, stages=None)(np.zeros(6))

    def run(y):
        return refine(first, ArrayRows(X, y, chunk_rows=2, jobs=1), noise="gaussian", **BUDGET)

    release, [spent], _ = furthest(
        run,
        np.full(6, LIMITS[0]),
        values=ends_of(LIMITS),
        public=lambda found: published_with(found)[1:],
    )
    claimed = release.measurements[1].answers.guarantee.mu
    assert release.measurements[1].question.reach == 1.0
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


def test_nothing_that_is_published_holds_an_output():
    y = np.array([1.2345678901, 0.9876543210, 2.3456789012, -1.9283746501, 5.0192837465, 0.1357924])
    release = several_stages(learn="map")(y)
    content, shown = pickle.dumps(release), repr(release) + repr(vars(release))
    for one in release.measurements:
        bands = bands_of(one)
        private = y if bands is None else bands.place(y)
        for value in (*private, *(y - 2.0)):
            if f"{abs(value):.6g}" != "0.5":
                assert value.tobytes() not in content
                assert f"{value:.6g}" not in shown


def test_later_stages_that_count_bands_as_half_as_wide_are_caught(monkeypatch):
    """Mutation: noise for outputs that move by a half."""
    whole = door.integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *given, **named: whole(*given, **named) // 2
    )
    release, _, together = furthest(
        several_stages(learn=None),
        np.full(6, LIMITS[0]),
        values=ends_of(LIMITS),
        public=published_with,
    )
    assert together > 1.1 * release.guarantee.mu
