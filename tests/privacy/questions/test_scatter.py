"""Distances from predicted means by strata: all neighbours, both noises, groups, and mutations."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from band_neighbours import furthest as furthest_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from laplace_neighbours import furthest as furthest_laplace
from laplace_neighbours import moved
from neighbours import ACHIEVED_SHARE
from private_chunks import PrivateChunks

from cloakgp.design.streaming.binning import Partition
from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.bands import UnitQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.release.streamed_strategy import EqualShares

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

STRATA = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]])
CENTRES = {"centres": np.array([[0.5], [2.0], [3.5]]), "units": np.ones(1)}
MEAN = np.array([0.0, -3.0, 1e6, 0.25, 0.0])
SD = np.array([1.0, 0.5, 1e-3, 1e6, 5e-324])
QUESTION = ScatterQuestion(mean=MEAN, sd=SD, **CENTRES)
FAR = (-1.7e308, -1e20, 0.0, 5e-324, 1.7e308)


def around(row):
    """Return values on the predicted mean, at the ends of what counts, between, and far off."""
    return [MEAN[row], *(MEAN[row] + step * SD[row] for step in (0.125, -0.5, 2.0, -2.1)), *FAR]


def asked(y, *, noise="gaussian", groups=None, strategy=STRATA):
    delta = 1e-4 if noise == "gaussian" else 0.0
    return ask(strategy, y, question=QUESTION, epsilon=0.7, delta=delta, noise=noise, groups=groups)


@dataclass(frozen=True)
class _OfRows(UnitQuestion):
    """The same question about rows whose inputs are their numbers."""

    def validate(self):
        pass

    def of_rows(self, X):
        rows = X[:, 0].astype(int)
        return ScatterQuestion(mean=MEAN[rows], sd=SD[rows], **CENTRES)


def in_chunks(y, *, noise="gaussian"):
    bound = StrategyBound(
        answers=3, longest=1.0 + 1e-12, chunk_rows=5, count=5, noise=NOISES[noise], chunks=5
    )
    return ask_chunks(
        PrivateChunks(np.asarray(y), cuts=(2,)),
        EqualShares(strata=Partition(**CENTRES)),
        bound=bound,
        question=_OfRows(),
        epsilon=0.7,
        delta=1e-4 if noise == "gaussian" else 0.0,
    )


@given(
    mean=st.floats(-1e300, 1e300),
    sd=st.floats(5e-324, 1e300),
    output=st.floats(allow_nan=False, allow_infinity=False),
)
def test_a_distance_counts_by_its_logarithm(mean, sd, output):
    one = ScatterQuestion(mean=np.array([mean]), sd=np.array([sd]), **CENTRES)
    one.validate()
    [[placed]] = one.encode(np.array([output]))
    with np.errstate(over="ignore"):
        distance = float(np.abs(np.float64(output) - mean) / sd)
    exact = 0.0 if distance <= 0.125 else min(math.log2(8.0 * min(distance, 2.0)) / 4.0, 1.0)
    assert -0.5 <= placed <= 0.5
    assert placed == pytest.approx(exact - 0.5, abs=1e-9)


@pytest.mark.parametrize("run", [asked, in_chunks])
def test_no_output_moves_answers_by_more_than_is_counted_and_one_does_by_all_of_it(run):
    answers, _, spent = furthest_gaussian(
        run, MEAN.copy(), values=around, public=lambda answers: answers.noise_sd
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    # Oracle: of however many strata, one number moves by 1.
    assert answers.noise_sd == pytest.approx(1 / answers.guarantee.mu, rel=1e-6)


@pytest.mark.parametrize("run", [asked, in_chunks])
def test_laplace_noise_is_that_of_one_number_that_moves(run):
    neighbours = (
        [[*MEAN[:row], value, *MEAN[row + 1 :]] for value in around(row)] for row in range(5)
    )
    answers, _, spent = furthest_laplace(lambda y: run(y, noise="laplace"), neighbours)
    assert 0.999 * 0.7 <= spent <= 0.7
    assert answers.noise_sd == pytest.approx(np.sqrt(2) / 0.7, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_groups_move_answers_of_several_strata_together(noise):
    together, groups = [[0, 2, 3], [1], [4]], list("abaac")

    def run(y):
        return asked(y, noise=noise, groups=groups)

    if noise == "gaussian":
        answers, _, spent = furthest_gaussian(
            run, MEAN.copy(), values=lambda row: (MEAN[row], 1e300), together=together
        )
        claimed = answers.guarantee.mu
    else:
        nearby = ([MEAN, *moved(MEAN, rows, bounds=(-1e300, 1e300))] for rows in together)
        _, _, spent = furthest_laplace(run, nearby)
        claimed = 0.7
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(2, 5))
@settings(max_examples=10)
def test_no_neighbour_of_any_strata_is_told_apart_by_more(seed, rows):
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=rows) * 10.0 ** rng.integers(-3, 4), 10.0 ** rng.uniform(-6, 6, rows)
    one = ScatterQuestion(mean=mean, sd=sd, centres=np.arange(3.0)[:, None], units=np.ones(1))
    strata = np.eye(3)[rng.integers(3, size=rows)].T
    answers, _, spent = furthest_gaussian(
        lambda y: ask(strata, y, question=one, epsilon=1.0, delta=1e-4),
        mean.copy(),
        values=lambda row: [mean[row], mean[row] + 0.6 * sd[row], mean[row] - 3 * sd[row], *FAR],
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


def test_a_row_that_counts_more_than_one_is_caught(monkeypatch):
    """Mutation: octaves are counted, and nothing makes one of four."""
    whole = ScatterQuestion.encode
    monkeypatch.setattr(ScatterQuestion, "encode", lambda self, y: 4 * whole(self, y))
    answers, _, spent = furthest_gaussian(asked, MEAN.copy(), values=around)
    assert spent > 3.9 * answers.guarantee.mu


def test_strata_that_go_by_outputs_are_caught(monkeypatch):
    """Mutation: a row counts in the stratum after its own as well, where its output is high."""
    whole = ScatterQuestion.encode

    def encode(self, y):
        placed = whole(self, y)
        placed[1:] += (y[:-1] > self.mean[:-1])[:, None]
        return placed

    monkeypatch.setattr(ScatterQuestion, "encode", encode)
    answers, _, spent = furthest_gaussian(asked, MEAN.copy(), values=around)
    assert spent > 1.1 * answers.guarantee.mu


@pytest.mark.parametrize(
    "strategy",
    [np.ones((3, 5)), STRATA / 2, STRATA[:2], np.ones((1, 5))],
    ids=["in all", "halves", "some in none", "one stratum"],
)
def test_rows_that_do_not_count_once_are_refused(strategy):
    with pytest.raises(ValueError, match="fit"):
        asked(MEAN, strategy=strategy)


ROW = np.zeros(1)


@pytest.mark.parametrize(
    "damaged",
    [
        {"sd": ROW},
        {"mean": ROW + np.nan},
        {"centres": np.zeros((1, 1))},
        {"centres": np.array([[0.0], [np.inf]])},
        {"centres": np.zeros((2, 2))},
        {"units": ROW},
        {"units": ROW + np.inf},
        {"units": np.ones(2)},
    ],
    ids=str,
)
def test_questions_that_are_none_are_refused(damaged):
    fine = {"mean": ROW, "sd": ROW + 1, "centres": np.array([[0.0], [1.0]]), "units": np.ones(1)}
    ScatterQuestion(**fine).validate()
    with pytest.raises(ValueError, match="damaged"):
        ScatterQuestion(**fine | damaged).validate()
