"""Figure 12 of the 2021 paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

from experiments import figure_12, kung
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE


@pytest.fixture(scope="module")
def women():
    rng = np.random.default_rng(2)
    ages = rng.uniform(0, 85, 90)
    heights = np.clip(60 + 6 * ages, 0, 155) + rng.normal(0, 6, 90)
    return pd.DataFrame({"age": ages, "height": heights})


def test_the_kernel_is_bias_line_and_period():
    """k(x, z) = v + w x z + v exp(−½ sin²(π (x − z)/100)), GPy's forms at lengthscale 1."""
    x, z = np.array([[3.0], [40.0]]), np.array([[25.0], [120.0], [-10.0]])
    distance = x - z.T
    expected = (
        kung.SIGNAL_VARIANCE
        + (25.0 / 100.0) ** 2 * x @ z.T
        + kung.SIGNAL_VARIANCE * np.exp(-0.5 * np.sin(np.pi * distance / 100.0) ** 2)
    )
    np.testing.assert_allclose(figure_12.kernel()(x, z), expected, rtol=1e-12)


def test_the_mean_is_scikit_learns(women):
    curve = figure_12.age_curve(
        women, inducing=None, noise=TRACE_NOISE, releases=1, insecure_seed=1
    )
    bounds = kung.BUDGET.bounds
    model = GaussianProcessRegressor(figure_12.kernel(), alpha=kung.NOISE_VARIANCE, optimizer=None)
    clipped = bounds.clip(kung.heights(women)) - kung.PRIOR_MEAN
    model.fit(women[["age"]].to_numpy(), clipped)
    theirs = model.predict(figure_12.AGES[:, None]) + kung.PRIOR_MEAN
    np.testing.assert_allclose(curve.mean, theirs, rtol=1e-6)


def test_beyond_a_period_the_curve_comes_again_along_a_line(women):
    """Bias and period repeat; so differences over a period grow by the linear kernel alone."""
    curve = figure_12.age_curve(
        women, inducing=None, noise=TRACE_NOISE, releases=1, insecure_seed=1
    )
    steps = int(figure_12.PERIOD / np.diff(curve.inputs)[0])
    np.testing.assert_allclose(np.diff(curve.mean[steps:] - curve.mean[:-steps]), 0.0, atol=1e-6)


@pytest.mark.parametrize("inducing", [None, 5])
def test_trace_needs_less_noise_than_the_paper(women, inducing):
    theirs, ours = (
        figure_12.age_curve(women, inducing=inducing, noise=noise, releases=2, insecure_seed=1)
        for noise in (PAPERS_NOISE, TRACE_NOISE)
    )
    assert (theirs.inducing is None) == (inducing is None)
    assert np.square(ours.noise_sd).mean() < 0.5 * np.square(theirs.noise_sd).mean()
    errors = (ours.releases - ours.mean) / ours.noise_sd
    assert abs(errors).max() < 6


def test_the_command_draws_the_figure(women, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figure_12, "load_kung", lambda *, male: women.assign(male=int(male)))
    figure_12.Figure12().run(output_dir=tmp_path / "new")
    assert (tmp_path / "new" / "kung-figure-12.png").stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "5 inducing inputs" in printed
