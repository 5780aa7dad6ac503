"""Counts of rows that are read in passes, and groups: near those of held rows, at any size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPQuantileRegressor, DPGPRegressor, extend, load
from cloakgp.data import ArrayRows
from cloakgp.data.entries import ExposedRows
from cloakgp.fitting import gathered
from cloakgp.fitting.gathered import GatheredTable
from cloakgp.models import ExactPrior
from cloakgp.models.likelihoods import CountLikelihood
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.posterior.classification import SignAnswers, label_posterior
from cloakgp.release.tables import DenseTable
from cloakgp.report.describe import describe
from cloakgp.report.facts import as_text

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.usefixtures("clustered_once"),
]

RNG = np.random.default_rng(3)
X = RNG.uniform(0.0, 10.0, size=(1200, 1))
EXPOSURE = np.exp(RNG.normal(size=1200))
Y = RNG.negative_binomial(4, 4 / (4 + EXPOSURE * np.exp(1.0 + np.sin(X[:, 0]))))
POINTS = np.linspace(0.5, 9.5, 19)[:, None]
RATES = np.exp(1.0 + np.sin(POINTS[:, 0]))
COLUMNS = pd.DataFrame({"years": EXPOSURE, "age": X[:, 0]})
SETTINGS = {"bounds": (0, 200), "likelihood": "counts", "epsilon": 8.0, "inducing": 20, "gap": 0.1}


def fitted(columns=COLUMNS, y=Y, *, exposure="years", groups=None, **others):
    model = DPGPRegressor(**SETTINGS | {"insecure_seed": 1} | others)
    return model.fit_rows(ArrayRows(columns, y, groups=groups, jobs=1), exposure=exposure)


def error(release):
    return np.sqrt(np.mean(np.square(np.log(release.predict(POINTS) / RATES))))


@pytest.fixture(scope="module", autouse=True)
def _some_cells():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathered, "CELLS", 250)
        yield


@pytest.fixture(scope="module")
def release(_some_cells):
    return fitted().release_


def test_rates_are_near_the_true_ones_and_those_of_held_rows(release, monkeypatch):
    held = DPGPRegressor(**SETTINGS, insecure_seed=1).fit(X, Y, exposure=EXPOSURE).release_
    assert error(release) < 1.5 * error(held) + 0.03 < 0.2
    found, wanted = (one.fitted.likelihood.overdispersion for one in (release, held))
    assert found == pytest.approx(wanted, rel=0.4)
    mean = EXPOSURE * np.exp(1.0 + np.sin(X[:, 0]))
    lower, upper = release.predict_interval(X, coverage=0.9, exposure=EXPOSURE)
    truth = stats.nbinom(4, 4 / (4 + mean))
    assert 0.86 < np.mean(truth.cdf(upper) - truth.cdf(lower - 1)) < 0.97
    # Cells that hold exposures far apart, and places too, lose rates.
    monkeypatch.setattr(gathered, "CELLS", 4)
    assert error(fitted().release_) > 2 * error(release)


def test_a_cell_of_n_outputs_is_n_rows_at_its_centre():
    """Oracle: the posterior of every row on its own."""
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=1e-9, mean=1.0)
    likelihood, sizes = CountLikelihood(largest=30, overdispersion=0.2), np.array([3, 1, 2])
    centres = np.array([[0.0], [1.0], [3.0]])
    matrix = np.array([[0.5, -1.0, 0.3], [0.2, 1.0, 1.0]])
    offset = np.log([1.0, 2.0, 0.5])
    rows, values = np.repeat(np.arange(3), sizes), np.array([4.0, 9.0])
    posteriors = [
        label_posterior(prior, SignAnswers((table,), values), likelihood=likelihood)
        for table in (
            DenseTable(0, centres, matrix * sizes, offset=offset, sizes=sizes.astype(float)),
            DenseTable(0, centres[rows], matrix[:, rows], offset=offset[rows]),
        )
    ]
    of_cells, of_rows = posteriors
    np.testing.assert_allclose(of_cells.mean(POINTS), of_rows.mean(POINTS), atol=1e-5)
    np.testing.assert_allclose(of_cells.variance(POINTS), of_rows.variance(POINTS), atol=1e-5)
    assert (of_cells.variance(POINTS) < 0.9).any()


def test_what_is_kept_does_not_grow_and_is_checked(release, tmp_path):
    release.save(tmp_path / "counts")
    again = load(tmp_path / "counts")
    np.testing.assert_array_equal(again.predict(POINTS), release.predict(POINTS))
    rows = ExposedRows.of(ArrayRows(COLUMNS, Y, jobs=1), "years")
    other = ExposedRows.of(ArrayRows(COLUMNS[1:], Y[1:], jobs=1), "years")
    for one in again.measurements:
        assert isinstance(one.strategy, GatheredStrategy)
        assert one.strategy.n_rows == 1200
        assert one.strategy.verify(rows, question=one.question) == one.strategy.longest_column()
        with pytest.raises(ValueError, match="other rows"):
            one.strategy.verify(other, question=one.question)
    assert again.input_names == ("age",)
    words = as_text(describe(again), width=10_000)
    assert "cells of similar inputs and exposures, and those of a cell are asked alike" in words
    exposures = release.measurements[0].strategy.row_exposure
    assert f"of which rows had {exposures.min():.4g} to {exposures.max():.4g}" in words


def test_exposures_of_a_cell_give_roots_the_right_mean(monkeypatch):
    monkeypatch.setattr(gathered, "CELLS", 3)
    rows = ExposedRows.of(ArrayRows(COLUMNS, Y, chunk_rows=300, jobs=1), "years")
    table = GatheredTable.gather(rows)
    places = table.cells.nearest(np.column_stack([X, np.log(EXPOSURE)]))
    for cell in range(3):
        roots = np.sqrt(EXPOSURE[places == cell])
        assert table.exposure[cell] == pytest.approx(roots.mean() ** 2)
        assert table.sums.counts[cell] == len(roots)


def test_fit_goes_by_passes_with_exposures_of_its_own_accord():
    many = np.tile(X, (5, 1))
    model = DPGPRegressor(**SETTINGS | {"learn": None, "stages": None}, insecure_seed=1)
    frame = pd.DataFrame(many, columns=["age"])
    made = model.fit(frame, np.tile(Y, 5), exposure=np.tile(EXPOSURE, 5)).release_
    assert made.n_rows == 6000
    assert made.input_names == ("age",)
    assert isinstance(made.measurements[0].strategy, GatheredStrategy)
    assert error(made) < 0.3


def test_invalid_exposures_are_refused():
    with pytest.raises(ValueError, match="none of the public columns"):
        fitted(exposure="weeks")
    with pytest.raises(ValueError, match="no public column beside"):
        fitted(EXPOSURE[:, None], exposure=0)
    with pytest.raises(ValueError, match="positive and finite"):
        fitted(COLUMNS.assign(years=0.0))
    with pytest.raises(ValueError, match="exposure is of counts"):
        fitted(likelihood="normal", overdispersion=None)


def test_rows_of_a_person_weigh_less_and_tell_less():
    """Who has two rows has half the weight in each: rates come out as of fewer rows."""
    people = [f"p{number // 2}" for number in range(1200)]
    grouped = fitted(groups=people, epsilon=4.0).release_
    strategy = grouped.measurements[0].strategy
    # Some numbers of persons coincide.
    assert 590 <= strategy.grouping.groups <= 600
    assert strategy.weights.sum() == pytest.approx(strategy.grouping.groups)
    assert error(grouped) < 0.3
    words = as_text(describe(grouped), width=10_000)
    assert "people with up to" in words
    assert "no person weighs more than the guarantee allows" in words
    rows = ArrayRows(COLUMNS, Y, groups=people, jobs=1)
    strategy.verify(ExposedRows.of(rows, "years"), question=grouped.measurements[0].question)


def test_quantiles_of_persons_come_in_passes_and_later_rows_are_held():
    y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=1200)
    people = [f"p{number // 2}" for number in range(1200)]
    model = DPGPQuantileRegressor(
        0.5, bounds=(-3, 3), epsilon=12.0, inducing=20, gap=0.1, insecure_seed=1
    )
    made = model.fit_rows(ArrayRows(X, y, groups=people, jobs=1)).release_
    assert np.sqrt(np.mean(np.square(made.predict(POINTS)[:, 0] - np.sin(POINTS[:, 0])))) < 0.2
    assert all(one.strategy.grouped for one in made.measurements)
    more = extend(made, X[:30], y[:30], epsilon=1.0, delta=0.0, gap=0.1, groups=people[:30])
    assert more.n_rows == 1230


def test_later_rows_are_added_to_counts_in_cells(release):
    budget = {"epsilon": 2.0, "delta": 0.0, "gap": 0.1, "insecure_seed": 4}
    more = extend(release, X[:40], Y[:40], exposure=EXPOSURE[:40], **budget)
    assert more.n_rows == 1240
    assert error(more) < 0.2
