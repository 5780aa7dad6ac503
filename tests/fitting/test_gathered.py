"""Quantiles of rows that are read in passes: near those of rows that are held, at any size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPQuantileRegressor, extend, load
from cloakgp.data import ArrayRows
from cloakgp.fitting import gathered
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.usefixtures("clustered_once"),
]

RNG = np.random.default_rng(2)
X = RNG.uniform(0.0, 10.0, size=(3000, 1))
Y = np.exp(6.0 + np.sin(X[:, 0]) + 0.5 * RNG.normal(size=3000))
STEPS = np.array([-1.2815515655446004, 0.0, 1.2815515655446004])
POINTS = np.linspace(0.5, 9.5, 19)[:, None]
TRUE = np.exp(6.0 + np.sin(POINTS) + 0.5 * STEPS)
SETTINGS = {"bounds": (1.0, 1e6), "epsilon": 20.0, "inducing": 20, "gap": 0.1, "insecure_seed": 1}
# For what does not depend on how much is learned.
PLAIN = {"stages": None, "learn": None, "kernel": RBF(2.0)}


def fitted(rows=None, **others):
    model = DPGPQuantileRegressor(**SETTINGS | others)
    return model.fit_rows(ArrayRows(X, Y, input_names=("age",)) if rows is None else rows)


@pytest.fixture(scope="module", autouse=True)
def fewer_cells():
    """Of ten rows each, in place of three: designs take a third."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathered, "CELLS", 300)
        yield


@pytest.fixture(scope="module")
def release(fewer_cells):
    del fewer_cells
    return fitted().release_


def test_they_are_near_the_true_quantiles_and_those_of_held_rows(release, monkeypatch):
    # A quarter of the rows, as they are held, takes long enough.
    held = DPGPQuantileRegressor(**SETTINGS).fit(X[::4], Y[::4]).release_
    errors = [
        np.sqrt(np.square(np.log(one.predict(POINTS)) - np.log(TRUE)).mean(axis=0))
        for one in (release, held)
    ]
    # Their scatter has sd 0.5.
    assert (errors[0] < 0.15).all()
    assert (errors[0] < 1.2 * errors[1] + 0.03).all()
    # Cells that are as wide as the curve lose it.
    monkeypatch.setattr(gathered, "CELLS", 3)
    coarse = np.log(fitted().release_.predict(POINTS)[:, 1]) - np.log(TRUE[:, 1])
    assert np.sqrt(np.square(coarse).mean()) > 2 * errors[0][1]


def test_what_is_kept_does_not_grow_with_the_rows(release, tmp_path):
    release.save(tmp_path / "one")
    twice = ArrayRows(np.vstack([X, X]), np.concatenate([Y, Y]), input_names=("age",))
    fitted(twice).release_.save(tmp_path / "two")
    sizes = [(tmp_path / name).stat().st_size for name in ("one", "two")]
    # A few more questions, and no more cells.
    assert sizes[1] < 1.4 * sizes[0]
    strategy = release.measurements[0].strategy
    assert isinstance(strategy, GatheredStrategy)
    assert (strategy.n_rows, len(strategy.X) <= gathered.CELLS) == (3000, True)
    again = load(tmp_path / "one")
    np.testing.assert_array_equal(again.predict(POINTS), release.predict(POINTS))


def test_anybody_with_the_inputs_can_check_the_cells(release):
    for one in release.measurements:
        found = one.strategy.verify(ArrayRows(X, Y), question=one.question)
        assert found == one.strategy.longest_column()
        with pytest.raises(ValueError, match="other rows"):
            one.strategy.verify(ArrayRows(X[1:], Y[1:]), question=one.question)


def test_words_say_that_rows_are_gathered(release):
    words = as_text(describe(release), width=10_000)
    assert "cells of similar inputs, and those of a cell are asked alike" in words
    assert "of which this file holds ranges, cluster centres and sums" in words
    assert "row by row" not in words


def test_an_interval_is_found_in_passes_too():
    y = 1e4 + 10.0 * X[:, 0]
    model = fitted(
        ArrayRows(X, y, input_names=("age",)), bounds=(-1e6, 1e6), kernel=None, quantiles=0.5
    )
    kinds = {type(one.question).__name__ for one in model.release_.measurements}
    assert "CountQuestion" in kinds
    np.testing.assert_allclose(model.release_.predict(POINTS), 1e4 + 10.0 * POINTS, atol=1000.0)


@pytest.mark.parametrize("learn", [None, "average"])
def test_one_stage_and_laplace_noise(learn):
    model = fitted(stages=None, delta=0.0, noise="laplace", learn=learn, kernel=RBF(2.0))
    assert model.release_.guarantee.delta == 0.0
    assert len(model.release_.measurements) == 1
    predicted = model.release_.predict(POINTS)
    assert (np.diff(predicted, axis=1) >= 0).all()


def test_fit_reads_in_passes_where_rows_have_no_room():
    many = np.vstack([X, X])
    plan = DPGPQuantileRegressor(**SETTINGS, memory=0.01).plan_fit(many.shape)
    assert plan.by_passes
    assert not DPGPQuantileRegressor(**SETTINGS, memory=8.0).plan_fit(many.shape).by_passes
    with pytest.raises(ValueError, match="even a sparse"):
        DPGPQuantileRegressor(**SETTINGS, memory=0.01).plan_fit(many.shape, grouped=True)
    model = DPGPQuantileRegressor(**SETTINGS, **PLAIN, memory=0.01)
    model.fit(pd.DataFrame(many, columns=["age"]), pd.Series(np.tile(Y, 2), name="pay"))
    [first, *_] = model.release_.measurements
    assert isinstance(first.strategy, GatheredStrategy)
    assert (model.release_.input_names, model.release_.output_name) == (("age",), "pay")


def test_plans_of_rows_in_passes_read_no_output():
    class Unread(ArrayRows):
        def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
            pytest.fail("the private column was read")

    plan = DPGPQuantileRegressor(**SETTINGS).plan(Unread(X, Y, jobs=1))
    assert plan.how.by_passes
    assert "how near quantiles come" in str(plan)


def test_later_rows_and_other_releases_are_added(release):
    new = X[:40] + 0.01
    more = extend(release, new, Y[:40], epsilon=2.0, delta=0.0, gap=0.1, insecure_seed=4)
    assert more.n_rows == 3040
    assert np.isfinite(more.predict(POINTS)).all()


def test_releases_with_one_prior_are_combined():
    """Of other rows of the same function: each alone is farther off on average."""
    alike = {**PLAIN, "inducing": X[:15]}
    alone = []
    for part, seed in ((slice(0, 1500), 1), (slice(1500, 3000), 2)):
        rows = ArrayRows(X[part], Y[part], input_names=("age",))
        alone.append(fitted(rows, **alike, insecure_seed=seed).release_)
    both = alone[0].combine(alone[1])
    assert both.n_rows == 3000
    spreads = [np.subtract(*each.predict_limits(POINTS)[::-1]).mean() for each in (both, *alone)]
    assert spreads[0] < min(spreads[1:])
