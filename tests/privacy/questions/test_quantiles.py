"""Outputs at or below thresholds of their rows: all neighbours, both noises, groups, mutations."""

from __future__ import annotations

import numpy as np
import pytest
from band_neighbours import furthest as furthest_gaussian
from laplace_neighbours import furthest as furthest_laplace
from neighbours import ACHIEVED_SHARE

from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.quantiles import QuantileQuestion, indicator_units

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BOUNDS = (-2.0, 9.0)
# In order; the same twice; at the ends of what float64 holds, and outside of the bounds.
THRESHOLDS = {
    1: np.array([[0.0], [0.3], [-1e300], [1e300]]),
    2: np.array([[0.0, 1.0], [0.3, 0.3], [-1e300, 5e-324], [-3.0, 12.0]]),
    3: np.array([[0.0, 1.0, 2.0], [0.3, 0.3, 0.3], [-1.0, 0.0, 1e300], [-3.0, 1.0, 12.0]]),
}
MANY = sorted(THRESHOLDS)
ENDS = (0.0, 0.3, 1.0)
TRIED = (
    *ENDS,
    *(np.nextafter(end, far) for end in ENDS for far in (-np.inf, np.inf)),
    1.5,
    -1.7e308,
    1.7e308,
)
STRATEGY = np.array([[0.5, -0.8, 0.3, 1.0], [0.2, 0.6, -0.9, 0.0]])


def question_of(count):
    return QuantileQuestion(THRESHOLDS[count], bounds=BOUNDS)


def asked(y, *, count, noise="gaussian", groups=None, seed=None):
    delta = 1e-4 if noise == "gaussian" else 0.0
    return ask(
        STRATEGY,
        y,
        question=question_of(count),
        epsilon=0.7,
        delta=delta,
        noise=noise,
        groups=groups,
        insecure_seed=seed,
    )


def ends_of(rows):
    """Data sets with the outputs of some rows far below, between and above thresholds."""
    return [
        np.where(np.isin(np.arange(4), rows), value, 0.0) for value in (-1.7e308, 0.31, 1.7e308)
    ]


def test_one_threshold_is_a_comparison():
    """Oracle: the definition."""
    y = np.array([0.0, np.nextafter(0.3, 1.0), 5.0, 5.0])
    np.testing.assert_array_equal(question_of(1).encode(y)[:, 0], [0.5, -0.5, -0.5, 0.5])


@pytest.mark.parametrize("count", [2, 3])
def test_partial_sums_of_cells_are_comparisons(count):
    """Oracle: the definition."""
    for value in TRIED:
        encoded = question_of(count).encode(np.full(4, value))
        np.testing.assert_array_equal(encoded.sum(axis=1), 1.0)
        below = value <= THRESHOLDS[count]
        np.testing.assert_array_equal(np.cumsum(encoded, axis=1)[:, :-1], below)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", MANY)
def test_no_output_moves_answers_by_more_than_is_counted_and_one_does_by_all_of_it(count, noise):
    if noise == "gaussian":
        answers, _, spent = furthest_gaussian(
            lambda y: asked(y, count=count), np.zeros(4), values=lambda _: TRIED
        )
        claimed = answers.guarantee.mu
    else:
        tables = [
            [np.where(np.arange(4) == row, value, 0.0) for value in TRIED] for row in range(4)
        ]
        answers, _, spent = furthest_laplace(lambda y: asked(y, count=count, noise=noise), tables)
        [claimed] = answers.guarantee.laplace
    assert ACHIEVED_SHARE * claimed <= float(spent) <= claimed


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", MANY)
def test_a_group_moves_answers_by_no_more_than_is_counted(count, noise):
    groups, together = [0, 1, 1, 0], [[0, 3], [1, 2]]
    if noise == "gaussian":
        answers, _, spent = furthest_gaussian(
            lambda y: asked(y, count=count, groups=groups),
            np.zeros(4),
            values=lambda _: (-1.7e308, 0.31, 1.7e308),
            together=together,
        )
        claimed = answers.guarantee.mu
    else:
        answers, _, spent = furthest_laplace(
            lambda y: asked(y, count=count, noise=noise, groups=groups),
            [ends_of(rows) for rows in together],
        )
        [claimed] = answers.guarantee.laplace
    assert 0.5 * claimed <= float(spent) <= claimed


def test_a_question_of_its_own_for_each_threshold_is_caught(monkeypatch):
    """Mutation: an output counts at every threshold that it lies at or below."""
    right = QuantileQuestion.encode

    def each(self, entries):
        return np.cumsum(right(self, entries), axis=1)

    monkeypatch.setattr(QuantileQuestion, "encode", each)
    answers, _, spent = furthest_gaussian(
        lambda y: asked(y, count=3), np.zeros(4), values=lambda _: TRIED
    )
    assert spent > 1.2 * answers.guarantee.mu


def test_thresholds_that_follow_private_outputs_are_caught():
    """Mutation: thresholds at what is private: a neighbour then changes what others count."""

    def leaking(y):
        question = QuantileQuestion(np.full((4, 1), np.median(y)), bounds=BOUNDS)
        return ask(STRATEGY, y, question=question, epsilon=0.7, delta=1e-4)

    y = np.array([0.0, 0.0, 1.0, 1.0])
    answers, _, spent = furthest_gaussian(leaking, y, values=lambda _: (-9.0, 9.0))
    assert spent > 1.2 * answers.guarantee.mu


@pytest.mark.parametrize("count", [*MANY, 9])
def test_units_make_noise_alike(count):
    """Oracle: the covariance of partial sums of equal noises that are made to add up."""
    cells = 1 if count == 1 else count + 1
    if count == 1:
        understood = np.eye(1)
    else:
        understood = np.tril(np.ones((cells, cells)))[:-1] @ (np.eye(cells) - 1.0 / cells)
    variances = np.diag(understood @ understood.T) * indicator_units(count) ** 2
    np.testing.assert_allclose(variances, 1.0)


@pytest.mark.parametrize("count", MANY)
def test_answers_are_about_outputs_at_or_below_thresholds(count):
    y = np.array([0.3, 0.3, -5.0, 2.0])
    question, below = question_of(count), y[:, None] <= THRESHOLDS[count]
    values, totals = STRATEGY @ question.encode(y), STRATEGY.sum(axis=1)
    about = question.about_outputs(values, totals)
    np.testing.assert_allclose(about, STRATEGY @ below * indicator_units(count), atol=1e-12)
    less = question.about_outputs(values, totals, 0.25)
    expected = STRATEGY @ (below - 0.25) * indicator_units(count)
    np.testing.assert_allclose(less, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("thresholds", "bounds"),
    [
        ([[1.0, 0.0]], BOUNDS),
        ([[np.nan]], BOUNDS),
        ([[0.0, np.inf]], BOUNDS),
        ([0.0, 1.0], BOUNDS),
        (np.zeros((3, 0)), BOUNDS),
        ([[0.0]], (1.0, 1.0)),
        ([[0.0]], (0.0, np.nan)),
    ],
)
def test_what_are_no_thresholds_is_refused(thresholds, bounds):
    with pytest.raises(ValueError, match="thresholds are damaged"):
        QuantileQuestion(np.asarray(thresholds, dtype=float), bounds=bounds).validate()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_outputs_are_refused_and_not_quoted(bad):
    with pytest.raises(ValueError, match="y contains") as raised:
        asked([61.80339887498949, bad, 0.0, 0.0], count=2)
    assert "61.8" not in repr(raised.value)


@pytest.mark.parametrize("count", MANY)
def test_words_say_how_many_numbers_there_are(count):
    said = question_of(count).describe_answers(2, noise=lambda unit: f"noise{unit}", output="pay")
    assert said.startswith(f"{2 if count == 1 else 2 * (count + 1)} numbers")
    assert "pay" in said
