"""Counts of outputs of tables in chunks: over all neighbours, in any chunking, and whole fits."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from band_neighbours import furthest
from laplace_neighbours import furthest as furthest_by_laplace
from neighbours import ACHIEVED_SHARE
from private_chunks import Picked, PrivateChunks, all_cuts, bound_of
from sklearn.gaussian_process.kernels import Matern

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting.passes import EqualShares
from cloakgp.privacy.ask import ask, ask_chunks
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions.counts import CountQuestion

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

QUESTION = CountQuestion(np.array([-1.0, 0.0, 0.5, 3.0]))
# On and beside all ends, and far off.
VALUES = (-1e300, -0.5, np.nextafter(0.0, -1.0), 0.0, np.nextafter(0.5, 0.0), 0.5, 7.0)
LIMITS = (-40.0, 960.0)
room = importlib.import_module("cloakgp.privacy.ask")


@pytest.fixture
def few_numbers(monkeypatch):
    """Arrays by the numbers of groups that are quick to add up."""
    monkeypatch.setattr(room, "GROUP_NUMBERS", 8)


def shares_of(groups):
    return 1.0 / np.bincount(groups)[np.asarray(groups)][None, :]


def counted(y, *, cuts=(), groups=None, strategy=None, law="gaussian", **budget):
    weights = np.ones((1, len(y))) if groups is None else shares_of(groups)
    bound = bound_of(weights, cuts, noise=NOISES[law])
    if groups is not None:
        most = int(np.bincount(groups).max())
        # As rounded shares add up to, in whatever order.
        bound = bound_of(
            weights,
            cuts,
            noise=NOISES[law],
            longest=1.0 + 1e-12,
            group_rows=most,
            chunks=len(cuts) + 1,
        )
    return ask_chunks(
        PrivateChunks(np.asarray(y, dtype=np.float64), tuple(cuts), None, groups),
        Picked(weights if strategy is None else strategy),
        bound=bound,
        question=QUESTION,
        **({"epsilon": 1.0, "delta": 1e-4 if law == "gaussian" else 0.0} | budget),
    )


@pytest.mark.parametrize("cuts", all_cuts(4))
def test_no_value_moves_counts_by_more_than_is_counted_in_any_chunking(cuts):
    answers, _, spent = furthest(
        lambda y: counted(y, cuts=cuts), np.zeros(4), values=lambda _: VALUES
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.guarantee.adaptive


@pytest.mark.usefixtures("few_numbers")
@pytest.mark.parametrize("cuts", [(), (1,), (2, 3, 5)])
@pytest.mark.parametrize("groups", [[0, 1, 1, 0, 1, 2], [0, 0, 0, 0, 0, 1], [5, 4, 3, 2, 1, 0]])
def test_a_group_moves_counts_as_one_row_does(groups, cuts):
    together = [np.flatnonzero(np.array(groups) == each).tolist() for each in sorted(set(groups))]
    answers, _, spent = furthest(
        lambda y: counted(y, cuts=cuts, groups=groups),
        np.zeros(6),
        values=lambda _: (-0.5, 0.1, 2.0),
        together=together,
    )
    assert ACHIEVED_SHARE * answers.guarantee.mu <= spent <= answers.guarantee.mu
    assert answers.noise_sd == pytest.approx(np.sqrt(2) / answers.guarantee.mu, rel=1e-6)


@pytest.mark.usefixtures("few_numbers")
@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0]])
def test_laplace_noise_counts_in_the_other_norm(groups):
    rows = [[row] for row in range(4)] if groups is None else [[0, 3], [1, 2]]
    neighbourhoods = []
    for together in rows:
        tables = []
        for value in VALUES:
            y = np.zeros(4)
            y[together] = value
            tables.append(y)
        neighbourhoods.append(tables)
    answers, _, spent = furthest_by_laplace(
        lambda y: counted(y, groups=groups, cuts=(2,), law="laplace"), neighbourhoods
    )
    [claimed] = answers.guarantee.laplace
    assert ACHIEVED_SHARE * claimed <= float(spent) <= claimed


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_counts_are_those_of_rows_at_hand(law, rng):
    """Oracle: the same question about an array, with noise that does not matter."""
    y = rng.normal(0.3, 1.0, size=50)
    budget = {"epsilon": 1e5, "delta": 1e-4 if law == "gaussian" else 0.0}
    whole = ask(np.ones((1, 50)), y, question=QUESTION, noise=law, **budget)
    parts = counted(y, cuts=(7, 8, 30), law=law, **budget)
    np.testing.assert_allclose(parts.values[0], QUESTION.encode(y).sum(axis=0), atol=0.1)
    np.testing.assert_allclose(whole.values, parts.values, atol=0.2)
    assert parts.noise_sd == pytest.approx(whole.noise_sd, rel=1e-6)


@pytest.mark.usefixtures("few_numbers")
def test_groups_whose_rows_count_in_full_are_not_let_through():
    """Mutation: the shares of a group's rows are forgotten."""
    with pytest.raises(ValueError, match="nothing was released"):
        counted(np.zeros(4), groups=[0, 0, 1, 2], strategy=np.ones((1, 4)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_outputs_are_refused_and_not_quoted(bad):
    with pytest.raises(ValueError, match="y contains") as caught:
        counted([0.123456, bad, 2.0], cuts=(1,))
    assert "0.123" not in str(caught.value)


def test_shares_of_rows():
    sizes = np.array([[3.0, 1.0], [4.0, 4.0]])
    np.testing.assert_array_equal(EqualShares(grouped=True)(sizes), [[1.0, 0.25]])
    np.testing.assert_array_equal(EqualShares()(sizes), [[1.0, 1.0]])


# Whole fits that search.


def searching(*, groups=None, law="gaussian", **others):
    X = np.linspace(0.1, 4.4, 6)[:, None]
    chosen = {
        "bounds": LIMITS,
        "epsilon": 300.0 if groups is None else 900.0,
        "delta": 1e-4 if law == "gaussian" else 0.0,
        "noise": law,
        "learn": None,
        "inducing": [[0.5], [2.0], [4.0]],
        "kernel": 4.0 * Matern(1.0, nu=1.5),
    }

    def fit(y):
        rows = ArrayRows(X, y, groups=groups, chunk_rows=2, jobs=1)
        return DPGPRegressor(**(chosen | others)).fit_rows(rows).release_

    return fit


def published_with(release):
    """What a release shows, but for its answers' noise."""
    return [
        (one.strategy.rule.matrix, one.answers.noise_sd, one.answers.values, one.question)
        for one in release.measurements
    ]


@pytest.mark.parametrize("groups", [None, list("aabcde")])
@pytest.mark.parametrize("stages", [None, [(0.4, None), (0.6, 1.0)]])
def test_the_search_and_all_stages_together_spend_what_the_release_states(groups, stages):
    release, _, together = furthest(
        searching(groups=groups, stages=stages),
        np.full(6, LIMITS[0] + 1e-6),
        values=lambda row: [*LIMITS, *((1e300, -0.37) if row == 0 else ())],
        together=None if groups is None else [[0, 1], [2], [5]],
        public=published_with,
    )
    asked = [one for one in release.measurements if isinstance(one.question, CountQuestion)]
    assert asked
    # It did find a narrower interval, and every question after it goes by that.
    assert release.measurements[0].question.width < 0.1 * (LIMITS[1] - LIMITS[0])
    assert together <= release.guarantee.mu
    if groups is None:
        assert ACHIEVED_SHARE * release.guarantee.mu <= together
    # And what was asked for is used up.
    epsilon = 300.0 if groups is None else 900.0
    assert release.guarantee.delta_at(epsilon) == pytest.approx(1e-4, rel=1e-3)
    release.verify(ArrayRows(np.linspace(0.1, 4.4, 6)[:, None], np.zeros(6), groups=groups))


def test_all_of_a_pure_budget_is_spent():
    release = searching(law="laplace")(np.full(6, 3.0))
    assert any(isinstance(one.question, CountQuestion) for one in release.measurements)
    assert release.guarantee.epsilon_at(0.0) == pytest.approx(300.0, rel=1e-3)
    assert release.guarantee.epsilon_at(0.0) <= 300.0


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_first_stage_that_asks_nothing_counts_as_spent(streamed, law):
    """Counts decided that nothing is asked: what is claimed must not depend on answers."""
    X, y, delta = np.linspace(0.1, 4.4, 6)[:, None], np.full(6, LIMITS[0] + 1e-6), 1e-4
    model = DPGPRegressor(
        bounds=LIMITS,
        epsilon=300.0,
        delta=delta if law == "gaussian" else 0.0,
        noise=law,
        learn=None,
        noise_variance=1.0,
        stages=None,
        inducing=[[0.5], [2.0], [4.0]],
        # Other noise may leave the interval wider, and something to ask.
        insecure_seed=1,
    )
    model = model.fit_rows(ArrayRows(X, y)) if streamed else model.fit(X, y)
    first = model.release_.measurements[0]
    # All outputs are at one place, which is found: what they are within it is less than the noise.
    assert not first.strategy.asks_something
    guarantee = model.release_.guarantee
    if law == "gaussian":
        assert guarantee.delta_at(300.0) == pytest.approx(delta, rel=1e-3)
    else:
        assert guarantee.epsilon_at(0.0) == pytest.approx(300.0, rel=1e-3)
