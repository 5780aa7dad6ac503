"""Outputs outside of an interval, by strata: all neighbours, both noises, groups and passes."""

import numpy as np
import pytest
from band_neighbours import furthest as furthest_gaussian
from laplace_neighbours import furthest as furthest_laplace
from laplace_neighbours import moved
from neighbours import ACHIEVED_SHARE
from private_chunks import PrivateChunks

from cloakgp.design.streaming.binning import Partition
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.release.streamed_strategy import EqualShares

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

QUESTION = OutsideQuestion(-1.0, 2.0)
STRATA = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]])
CELLS = Partition(centres=np.array([[0.5], [2.0], [3.5]]), units=np.ones(1))
ENDS = (-1.0, 2.0)
TRIED = [
    *ENDS,
    *(np.nextafter(end, far) for end in ENDS for far in (-np.inf, np.inf)),
    -1.7e308,
    1.7e308,
]


def asked(y, *, noise="gaussian", groups=None):
    delta = 1e-4 if noise == "gaussian" else 0.0
    return ask(STRATA, y, question=QUESTION, epsilon=0.7, delta=delta, noise=noise, groups=groups)


def in_chunks(y, *, noise="gaussian", groups=None):
    """Ask rows whose inputs are their numbers: strata by the nearest of three centres."""
    sizes = None if groups is None else np.bincount(groups)[groups].astype(float)
    bound = StrategyBound(
        answers=3, longest=1.0 + 1e-12, chunk_rows=5, count=5, noise=NOISES[noise], chunks=5
    )
    columns = EqualShares(strata=CELLS)
    if sizes is not None:
        bound = StrategyBound(**{**vars(bound), "group_rows": int(sizes.max())})
        columns = _shares_of(sizes)
    return ask_chunks(
        PrivateChunks(np.asarray(y), cuts=(2,), groups=groups),
        columns,
        bound=bound,
        question=QUESTION,
        epsilon=0.7,
        delta=1e-4 if noise == "gaussian" else 0.0,
    )


def _shares_of(sizes):
    shares = EqualShares(grouped=True, strata=CELLS)
    return lambda X: shares(np.column_stack([X, sizes[X[:, 0].astype(int)]]))


def test_what_lies_outside_is_what_comparing_says():
    expected = [0.5 if y < -1.0 or y > 2.0 else -0.5 for y in TRIED]
    np.testing.assert_array_equal(QUESTION.place(np.array(TRIED)), expected)
    below = OutsideQuestion(-1.0, None).place(np.array([-2.0, 9.0]))
    np.testing.assert_array_equal(below, [0.5, -0.5])


def test_strata_of_chunks_are_the_nearest_centres():
    X = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(EqualShares(strata=CELLS)(X), STRATA)


@pytest.mark.parametrize("run", [asked, in_chunks])
def test_no_output_moves_answers_by_more_than_is_counted_and_one_does_by_all_of_it(run):
    answers, _, spent = furthest_gaussian(run, np.zeros(5), values=lambda _: TRIED)
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    # Oracle: of however many strata, one number moves by 1.
    assert answers.noise_sd == pytest.approx(1 / answers.guarantee.mu, rel=1e-6)


@pytest.mark.parametrize("run", [asked, in_chunks])
def test_laplace_noise_is_that_of_one_number_that_moves(run):
    y = np.zeros(5)
    neighbours = ([y, *moved(y, [row], bounds=(0.0, 9.0))] for row in range(5))
    answers, _, spent = furthest_laplace(lambda one: run(one, noise="laplace"), neighbours)
    assert 0.999 * 0.7 <= spent <= 0.7
    assert answers.noise_sd == pytest.approx(np.sqrt(2) / 0.7, rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_groups_move_counts_in_several_strata_together(noise):
    together, groups = [[0, 2, 3], [1], [4]], list("abaac")

    def run(y):
        return asked(y, noise=noise, groups=groups)

    if noise == "gaussian":
        answers, _, spent = furthest_gaussian(
            run, np.zeros(5), values=lambda _: (0.0, 9.0), together=together
        )
        claimed = answers.guarantee.mu
    else:
        y = np.zeros(5)
        around = ([y, *moved(y, rows, bounds=(0.0, 9.0))] for rows in together)
        _, _, spent = furthest_laplace(run, around)
        claimed = 0.7
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


def test_shares_of_a_group_in_chunks_add_up_to_one_row():
    groups = np.array([0, 1, 0, 0, 2])
    answers, _, spent = furthest_gaussian(
        lambda y: in_chunks(y, groups=groups),
        np.zeros(5),
        values=lambda _: (0.0, 9.0),
        together=[[0, 2, 3], [1], [4]],
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_questions_about_two_outputs_cost_the_sum_of_both(noise):
    """Entries of two outputs in turn; each is asked about in strata of its own entries."""
    groups, which = np.repeat(np.arange(2), 2), np.arange(4) % 2
    apart = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    delta = 1e-4 if noise == "gaussian" else 0.0

    def run(y):
        return [
            ask(
                apart * (which == output),
                y,
                question=QUESTION,
                epsilon=0.7,
                delta=delta,
                noise=noise,
                groups=groups.tolist(),
            )
            for output in range(2)
        ]

    together = [[0, 1], [2, 3]]
    if noise == "gaussian":
        answers, _, spent = furthest_gaussian(
            run, np.zeros(4), values=lambda _: (0.0, 9.0), together=together
        )
        claimed = np.sqrt(2) * answers[0].guarantee.mu
        assert answers[0].noise_sd == pytest.approx(1 / answers[0].guarantee.mu, rel=1e-6)
    else:
        y = np.zeros(4)
        around = ([y, *moved(y, rows, bounds=(0.0, 9.0))] for rows in together)
        _, _, spent = furthest_laplace(run, around)
        claimed = 1.4
    assert ACHIEVED_SHARE * claimed <= spent <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("ends", [(-1.0, 2.0), (None, 2.0), (-1.0, None)])
def test_questions_in_other_units_are_about_the_same_outputs(ends):
    limits = OutputBounds(-3.0, 5.0)
    question = OutsideQuestion(*ends)
    moved_question = question.in_units(limits)
    y = np.array([-1.5, -0.5, 1.9, 2.1, 7.0])
    np.testing.assert_array_equal(moved_question.place((y - 1.0) / 8.0), question.place(y))
    back = moved_question.in_output_units(limits)
    for told, end in zip((back.lo, back.hi), ends, strict=True):
        assert told == (None if end is None else pytest.approx(end))


def test_half_the_noise_is_caught(monkeypatch):
    """Mutation: an output is said to move by a half."""
    monkeypatch.setattr(OutsideQuestion, "distance", 0.5)
    answers, _, spent = furthest_gaussian(asked, np.zeros(5), values=lambda _: TRIED)
    assert spent > 1.9 * answers.guarantee.mu


@pytest.mark.parametrize("weights", [[[1.0, 0.5]], [[1.0, 0.0], [1.0, 1.0]], [[-1.0, 0.0]]])
def test_rows_that_do_not_count_once_are_refused(weights):
    with pytest.raises(ValueError, match="do not fit"):
        ask(np.array(weights), [0.0, 1.0], question=QUESTION, epsilon=1.0, delta=1e-4)


@pytest.mark.parametrize("ends", [(None, None), (2.0, 2.0), (np.nan, 1.0), (0.0, np.inf)])
def test_intervals_that_are_none_are_refused(ends):
    with pytest.raises(ValueError, match="damaged"):
        OutsideQuestion(*ends).validate()


def test_counts_are_unbiased():
    rng = np.random.default_rng(0)
    strata = np.eye(40)[rng.integers(0, 40, size=2000)].T
    y = 3.0 * rng.normal(size=2000)
    answers = ask(strata, y, question=QUESTION, epsilon=2.0, delta=0.01)
    found = QUESTION.how_many(answers.values, strata.sum(axis=1))
    truth = strata @ ((y < -1) | (y > 2))
    assert abs((found - truth).mean()) < 5 * answers.noise_sd / np.sqrt(40)
