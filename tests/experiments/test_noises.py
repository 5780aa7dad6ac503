"""Both noises: what is forecast of them, and the small comparison."""

import contextlib

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from experiments.adaptive import split_tables
from experiments.noises import MEAN, PURE, Noises, forecast_error, gaussian_way
from experiments.priors import first_tables


@contextlib.contextmanager
def progress(what, *, steps):
    del what, steps
    yield lambda: None


def test_a_forecast_falls_with_the_budget_and_with_delta():
    weak, strong = (forecast_error(60, 1, epsilon=each, delta=0.0) for each in (0.3, 3.0))
    assert strong < weak
    strict, loose = (forecast_error(60, 1, epsilon=1.0, delta=each) for each in (1e-8, 1e-2))
    assert loose < strict


def test_the_small_version_compares_every_noise():
    found = Noises(**Noises.small, insecure_seed=1).compute(progress)
    [compared] = found.tables.values()
    assert compared.ways == (PURE, gaussian_way(1e-5), MEAN)
    assert np.isfinite(compared.errors).all()


def test_what_is_laid_out_says_where_gaussian_noise_wins():
    experiment = Noises(**Noises.small, insecure_seed=1)
    forecasts, errors, ratios = experiment.tables(experiment.compute(progress))
    assert [column.header for column in forecasts.columns][-1] == "Gaussian wins at"
    assert [column.header for column in ratios.columns][-1] == "auto is Gaussian"
    assert forecasts.row_count == errors.row_count == ratios.row_count == 1


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_forecast_is_a_share_of_the_bounds(delta):
    assert 0 < forecast_error(40, 2, epsilon=1.0, delta=delta) < 0.4


def test_auto_is_counted_where_it_takes_gaussian_noise():
    """As a fit does, of the same rows and budget."""
    experiment = Noises(**Noises.small | {"table_deltas": (1e-2, 1e-8)}, insecure_seed=1)
    found = experiment.compute(progress)
    [split] = split_tables(first_tables(1), draws=1, rows=experiment.rows).popitem()[1]
    *_, ratios = experiment.tables(found)
    for delta, counted in zip(experiment.table_deltas, ratios.columns[-1].cells, strict=True):
        model = DPGPRegressor(bounds=(split.bounds.lo, split.bounds.hi), epsilon=1.0, delta=delta)
        noise = model.fit(split.X, split.outputs).release_.measurements[0].answers.noise
        assert int(counted) == (noise == "gaussian")
