"""Pictures show what the release holds, and say what it guarantees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloakgp import DPGPRegressor, Release
from cloakgp.plots.figures import slice_points
from cloakgp.plots.regression import plot_release
from cloakgp.utils.formatting import NORMAL_95


def _release(*, width: int, queries: int | None = None, seed: int | None = None) -> Release:
    X = np.random.default_rng(3).uniform(0, 50, size=(60, width))
    points = None if queries is None else np.linspace(0, 50, queries)[:, None]
    model = DPGPRegressor(
        bounds=(0, 100),
        epsilon=1.0,
        delta=1e-3,
        criterion="trace",
        inducing=6,
        insecure_seed=seed,
    )
    made = model.fit(X, 50 + 30 * np.sin(X[:, 0] / 10), X_query=points).release_
    names = ("age", "weight in $", "size of $")[:width]
    return replace(made, input_names=names, output_name="cost_$")


def _legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_curve_shows_mean_and_bands():
    release = _release(width=1)
    figure = plot_release(release)
    (axes,) = figure.axes
    curve = next(line for line in axes.get_lines() if line.get_label() == "prediction")
    grid = np.asarray(curve.get_xdata())
    mean, sd = release.predict(grid[:, None], return_std=True)
    np.testing.assert_allclose(curve.get_ydata(), mean)
    band = next(one for one in axes.collections if one.get_label() == "95 % for the curve")
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx((mean + NORMAL_95 * sd).max())
    assert edges.min() == pytest.approx((mean - NORMAL_95 * sd).min())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "cost_$")
    assert figure.get_suptitle() == "cost_$ from age, (1, 0.001)-differentially private"


def test_few_raw_predictions_are_drawn_and_many_are_not():
    few, many = _release(width=1, queries=7), _release(width=1, queries=60)
    assert any("raw predictions" in text for text in _legend(plot_release(few).axes[0]))
    assert not any("raw predictions" in text for text in _legend(plot_release(many).axes[0]))
    combined = few.combine(replace(_release(width=1, queries=6), prior=few.prior))
    assert any("raw predictions" in text for text in _legend(plot_release(combined).axes[0]))


def test_raw_predictions_beyond_the_frame_are_counted():
    release = _release(width=1, queries=7)
    (one,) = release.measurements
    far = replace(one, answers=replace(one.answers, values=1000 + one.answers.values))
    labels = _legend(plot_release(replace(release, measurements=(one, far))).axes[0])
    assert any("beyond the frame" in text for text in labels)


def test_a_map_fades_where_little_is_known():
    release = _release(width=2)
    axes, bar = plot_release(release).axes
    discs = axes.collections[0]
    points = slice_points(release, vary=("age", "weight in $"), grids=discs.get_offsets().T)
    mean, sd = release.predict(points, return_std=True)
    np.testing.assert_allclose(discs.get_facecolor()[:, 3], np.clip(1 - sd / 40, 0, 1))
    assert np.corrcoef(discs.get_sizes(), mean)[0, 1] > 0.99
    assert len(axes.collections[1].get_offsets()) == 60
    assert bar.get_ylabel().startswith("predicted cost_$")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("age", "weight in $")


def test_more_inputs_must_be_chosen_among():
    release = _release(width=3)
    with pytest.raises(ValueError, match="--vary age or --vary age,weight"):
        plot_release(release)
    with pytest.raises(ValueError, match="no input sex; its inputs are: age"):
        plot_release(release, vary=["sex"])
    (axes,) = plot_release(release, vary=["age"]).axes
    assert "at the median of the rows: weight in $ = " in axes.get_title()


def test_seeded_noise_is_in_the_title():
    figure = plot_release(_release(width=1, seed=1))
    assert "INSECURE: seeded noise, not private" in figure.get_suptitle()


def test_a_constant_input_can_be_drawn():
    release = _release(width=1)
    (one,) = release.measurements
    moved = replace(one.strategy, X=np.full_like(one.strategy.X, 7.0))
    plot_release(replace(release, measurements=(replace(one, strategy=moved),)))
