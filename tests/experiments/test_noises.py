"""Both noises: what is forecast of them, and the small comparison."""

import contextlib

import numpy as np
import pytest

from experiments.noises import MEAN, PURE, Noises, better_way, forecast_error, gaussian_way


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
    assert compared.ways == (PURE, gaussian_way(1e-5), better_way(1e-5), MEAN)
    assert np.isfinite(compared.errors).all()
    # Whatever is forecast to be better is one of the two.
    one, other, better = (compared.errors_of(way) for way in compared.ways[:3])
    alike = np.isclose(better, one) | np.isclose(better, other)
    assert alike.all()


def test_what_is_laid_out_says_where_gaussian_noise_wins():
    experiment = Noises(**Noises.small, insecure_seed=1)
    forecasts, errors, ratios = experiment.tables(experiment.compute(progress))
    assert [column.header for column in forecasts.columns][-1] == "Gaussian wins at"
    assert forecasts.row_count == errors.row_count == ratios.row_count == 1


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_forecast_is_a_share_of_the_bounds(delta):
    assert 0 < forecast_error(40, 2, epsilon=1.0, delta=delta) < 0.4
