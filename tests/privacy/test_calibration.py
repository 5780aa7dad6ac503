"""Counts in cells of predicted distributions: over all neighbours, in chunks and whole fits."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from band_neighbours import furthest
from laplace_neighbours import furthest as furthest_by_laplace
from neighbours import ACHIEVED_SHARE
from private_chunks import Picked, PrivateChunks, all_cuts, bound_of
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting import calibration as schedule
from cloakgp.privacy import compose
from cloakgp.privacy.ask import ask, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.calibration import CalibrationQuestion, CellCounts
from cloakgp.release.bands import RowCalibration

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

room = importlib.import_module("cloakgp.privacy.ask")
cohorts_module = importlib.import_module("cloakgp.privacy.cohorts")
ROWS = 5
# Two strata; sds from which residuals overflow, and in which they vanish.
QUESTION = CalibrationQuestion(
    mean=np.array([0.0, 0.3, 2.0, 2.0, -1e300]),
    sd=np.array([1.0, 1e-300, 1e300, 0.5, 3.0]),
    cells=np.array([-1.0, 0.0, 2.0]),
    strata=np.array([1.0]),
    middles=np.array([0.0, 2.0]),
    sizes=np.array([3.0, 2.0]),
)
# In, on and beside every cell of some row, and far off.
VALUES = (-1.7e308, -1.0, np.nextafter(-1.0, -2.0), 0.0, 0.3, 1.0, 2.0, 3.0, 1.7e308)


class ByNumber(CellCounts):
    """The question about rows, by their numbers."""

    cells, strata = QUESTION.cells, QUESTION.strata
    middles, sizes = QUESTION.middles, QUESTION.sizes

    def encode(self, entries):
        raise NotImplementedError

    def of_rows(self, X):
        rows = X[:, 0].astype(int)
        return CalibrationQuestion(
            mean=QUESTION.mean[rows],
            sd=QUESTION.sd[rows],
            cells=self.cells,
            strata=self.strata,
            middles=self.middles,
            sizes=self.sizes,
        )


def budget_of(law):
    return {"epsilon": 1.0, "delta": 1e-4 if law == "gaussian" else 0.0}


def held(y, *, groups=None, law="gaussian"):
    return ask(np.ones((1, ROWS)), y, question=QUESTION, groups=groups, noise=law, **budget_of(law))


def chunked(y, *, cuts=(), groups=None, law="gaussian"):
    weights = np.ones((1, ROWS))
    bound = bound_of(weights, cuts, noise=NOISES[law])
    if groups is not None:
        sizes = np.bincount(groups)[np.asarray(groups)]
        weights = 1.0 / sizes[None, :]
        bound = bound_of(
            weights,
            cuts,
            noise=NOISES[law],
            longest=1.0 + 1e-12,
            group_rows=int(sizes.max()),
            chunks=len(cuts) + 1,
        )
    rows = PrivateChunks(np.asarray(y, dtype=np.float64), tuple(cuts), None, groups)
    return ask_chunks(rows, Picked(weights), bound=bound, question=ByNumber(), **budget_of(law))


@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0, 0]])
@pytest.mark.filterwarnings("error")
def test_no_value_moves_counts_by_more_than_is_counted(groups):
    together = None if groups is None else [[0, 3, 4], [1, 2]]
    values = VALUES if groups is None else (-1.7e308, 0.0, 0.3, 1.7e308)
    answers, _, spent = furthest(
        lambda y: held(y, groups=groups),
        np.zeros(ROWS),
        values=lambda _: values,
        together=together,
        public=lambda answers: answers,
    )
    # Rows of one group may fall in different cells, where counts move less than in one.
    least = ACHIEVED_SHARE if groups is None else 0.5
    assert least * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.values.shape == (1, 8)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_noise_does_not_depend_on_cells_and_strata(law):
    """Oracle: a histogram of two cells."""
    two = CalibrationQuestion(
        mean=QUESTION.mean,
        sd=QUESTION.sd,
        cells=np.zeros(1),
        strata=np.zeros(0),
        middles=np.zeros(1),
        sizes=np.array([5.0]),
    )
    few = ask(np.ones((1, ROWS)), VALUES[:5], question=two, noise=law, **budget_of(law))
    assert held(VALUES[:5], law=law).noise_sd == pytest.approx(few.noise_sd, rel=1e-6)


def test_laplace_noise_counts_in_the_other_norm():
    tables = []
    for row in range(ROWS):
        tables.append([])
        for value in VALUES:
            y = np.zeros(ROWS)
            y[row] = value
            tables[-1].append(y)
    answers, _, spent = furthest_by_laplace(lambda y: held(y, law="laplace"), tables)
    [claimed] = answers.guarantee.laplace
    assert ACHIEVED_SHARE * claimed <= float(spent) <= claimed


@pytest.mark.parametrize("cuts", all_cuts(ROWS)[::3])
def test_in_any_chunking(cuts):
    answers, _, spent = furthest(
        lambda y: chunked(y, cuts=cuts), np.zeros(ROWS), values=lambda _: VALUES
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_a_group_in_chunks_moves_counts_as_one_row_does(monkeypatch):
    monkeypatch.setattr(room, "GROUP_NUMBERS", 8)
    answers, _, spent = furthest(
        lambda y: chunked(y, cuts=(2, 3), groups=[0, 1, 1, 0, 0]),
        np.zeros(ROWS),
        values=lambda _: (-1.7e308, 0.0, 1.7e308),
        together=[[0, 3, 4], [1, 2]],
    )
    assert 0.5 * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.noise_sd == pytest.approx(np.sqrt(2) / answers.guarantee.mu, rel=1e-6)


def test_an_output_that_counts_in_several_cells_is_caught(monkeypatch):
    """Mutation: all cells up to that of the output."""
    right = CalibrationQuestion.encode
    monkeypatch.setattr(
        CalibrationQuestion,
        "encode",
        lambda self, y: np.cumsum(right(self, y)[:, ::-1], axis=1)[:, ::-1],
    )
    answers, _, spent = furthest(held, np.zeros(ROWS), values=lambda _: VALUES)
    assert spent > 1.2 * answers.guarantee.mu


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_outputs_are_refused_and_not_quoted(bad):
    with pytest.raises(ValueError, match="y contains") as raised:
        held([61.80339887498949, bad, 0.0, 0.0, 0.0])
    assert "61.8" not in repr(raised.value)


# Whole fits.

X = np.array([[0.1], [0.1], [1.3], [2.2], [3.9], [4.4]])
STAGES = [(0.4, None), (0.6, 1.0)]


@pytest.fixture
def asks_few(monkeypatch):
    monkeypatch.setattr(schedule, "LEAST_ROWS", 1)
    monkeypatch.setattr(schedule, "NOISIEST", 1.0)


def fit(y, *, passes=False, groups=None, **others):
    model = DPGPRegressor(
        4.0 * Matern(1.0, nu=1.5),
        **{
            "bounds": (-3.0, 7.0),
            "epsilon": 60.0,
            "delta": 1e-4,
            "noise": "gaussian",
            "stages": STAGES,
            "interval": False,
            "inducing": [[0.5], [2.0], [4.0]],
            "noise_variance": 1.0,
        }
        | others,
    )
    if passes:
        rows = ArrayRows(X, y, groups=groups, chunk_rows=2, jobs=1)
        return model.fit_rows(rows).release_
    return model.fit(X, y, groups=groups).release_


def published_with(release):
    """What was counted, and how."""
    last = release.measurements[release.calibration]
    if isinstance(last.question, RowCalibration):
        question = last.question.of_rows(X)
    else:
        question = last.question
    return [question.mean, question.sd, question.strata, question.sizes, last.answers.values]


@pytest.mark.usefixtures("asks_few")
@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_stages_of_a_fit_keep_its_guarantee(passes, grouped):
    """Stages, spread and counts, whatever was published before each: together no more than μ."""
    groups = [0, 0, 1, 1, 2, 2] if grouped else None
    y = np.array([0.5, -1.0, 3.0, 1.0, 2.0, 0.0])
    release, _, spent = furthest(
        lambda outputs: fit(outputs, passes=passes, groups=groups),
        y,
        values=lambda _: (-1e300, 1e300) if grouped else (-1e300, 0.2, 1e300),
        together=[[0, 1]] if grouped else [[4]],
        public=published_with,
    )
    assert isinstance(release.measurements[-1].question, CellCounts)
    assert release.is_calibrated
    whole = release.guarantee
    assert spent <= whole.mu
    assert whole.epsilon_at(1e-4) <= 60.0 * (1 + 1e-9)
    assert spent >= 0.4 * whole.mu


# Several outputs.

PAIRS = [(-3.0, 7.0), (0.0, 1.0)]


def counting_both(people, *, law="gaussian"):
    """Return what counts each of two outputs of people, given entries."""
    which = np.arange(2 * len(people)) % 2
    question = CalibrationQuestion(
        mean=which * 0.5,
        sd=1.0 + which,
        cells=QUESTION.cells,
        strata=np.array([0.25]),
        middles=np.array([0.0, 0.5]),
        sizes=np.full(2, float(len(people))),
    )

    def run(entries):
        return [
            ask(
                (which == output)[None, :].astype(float),
                entries,
                question=question,
                groups=np.repeat(list(people), 2).tolist(),
                noise=law,
                **budget_of(law),
            )
            for output in range(2)
        ]

    return run


@pytest.mark.parametrize("people", ["abc", "aab"])
def test_counts_of_two_outputs_together_cost_the_sum_of_both(people):
    owners = np.repeat(list(people), 2)
    answers, alone, spent = furthest(
        counting_both(people),
        np.zeros(len(owners)),
        values=lambda _: (-5.0, 0.6, 9.0),
        together=[np.flatnonzero(owners == one).tolist() for one in sorted(set(people))],
    )
    for moved, one in zip(alone, answers, strict=True):
        assert ACHIEVED_SHARE * one.guarantee.mu <= moved <= one.guarantee.mu
    mu = compose(*(one.guarantee for one in answers)).mu
    assert ACHIEVED_SHARE * mu <= spent <= mu
    # Oracle: one count falls and one rises for each output, in each row of the person with most.
    rows = max(map(people.count, people))
    assert answers[0].noise_sd * alone[0] == pytest.approx(rows * np.sqrt(2), rel=1e-6)


def test_pure_counts_of_two_outputs_cost_the_sum_of_both():
    tables = [[np.array([a, b, 0.0, 0.0]) for a in (-5.0, 9.0) for b in (-5.0, 9.0)]]
    answers, _, spent = furthest_by_laplace(counting_both("ab", law="laplace"), tables)
    claimed = sum(one.guarantee.pure_epsilon for one in answers)
    assert claimed == pytest.approx(2.0)
    assert ACHIEVED_SHARE * claimed <= float(spent) <= claimed


def fit_both(entries, *, passes=False, people=None):
    rows = X[: len(entries) // 2]
    model = DPGPMultiOutputRegressor(
        0.06 * Matern(1.0, nu=1.5),
        0.01,
        bounds=PAIRS,
        epsilon=60.0,
        delta=1e-4,
        noise="gaussian",
        stages=STAGES,
        interval=False,
        inducing=[[0.5], [2.0], [4.0]],
    )
    y = entries.reshape(-1, 2)
    if passes:
        return model.fit_rows(ArrayRows(rows, y, groups=people, chunk_rows=2, jobs=1)).release_
    return model.fit(rows, y, groups=people).release_


def published_of_both(release):
    entries, told = release.entries, []
    points = np.column_stack([np.repeat(X, 2, axis=0), np.tile([0.0, 1.0], len(X))])
    for number in release.calibrations:
        one = entries.measurements[number]
        question = one.question
        if isinstance(question, RowCalibration):
            question = question.of_rows(points)
        told += [question.mean, question.sd, question.strata, question.sizes, one.answers.values]
    return told


def furthest_of_both(*, passes, people):
    y = np.array([[0.5, 0.2], [-1.0, 0.9], [3.0, 0.4], [1.0, 0.0]])
    return furthest(
        lambda entries: fit_both(entries, passes=passes, people=people),
        y.ravel(),
        values=lambda entry: PAIRS[entry % 2],
        together=[[0, 1, 2, 3] if people else [2, 3]],
        public=published_of_both,
    )


@pytest.mark.usefixtures("asks_few")
@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("people", [None, [0, 0, 1, 1]])
def test_all_stages_of_a_fit_of_two_outputs_keep_its_guarantee(passes, people):
    release, _, spent = furthest_of_both(passes=passes, people=people)
    assert release.is_calibrated
    counted = [release.counts_of(release.entries.measurements[one]) for one in release.calibrations]
    assert [output for output, _ in counted] == [0, 1]
    whole = release.guarantee
    assert spent <= whole.mu
    assert whole.epsilon_at(1e-4) <= 60.0 * (1 + 1e-9)
    assert spent >= 0.4 * whole.mu


@pytest.mark.usefixtures("asks_few")
def test_counts_of_the_second_output_that_the_guarantee_forgets_are_caught(monkeypatch):
    """Mutation: as if a person were in the counts of the first output alone, and in no stage."""
    whole = cohorts_module.compose
    monkeypatch.setattr(cohorts_module, "compose", lambda *parts: whole(parts[-2]))
    release, _, spent = furthest_of_both(passes=False, people=None)
    assert spent > release.guarantee.mu
