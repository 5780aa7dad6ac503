"""What pictures share: which inputs they vary, what the others are, and how they are written."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.plots.figures import chosen_inputs, figure_bytes, picture_suffix, slice_points
from cloakgp.plots.regression import plot_release


def _release(*, width: int):
    X = np.random.default_rng(3).uniform(0, 50, size=(60, width))
    model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-3, inducing=6)
    return model.fit(X, X[:, 0]).release_


def test_one_or_two_inputs_vary_and_the_others_are_at_their_medians():
    release = _release(width=3)
    with pytest.raises(ValueError, match="one or two"):
        chosen_inputs(release, vary=["x1", "x1"])
    points = slice_points(release, vary=["x1"], grids=[np.array([1.0, 2.0])])
    np.testing.assert_array_equal(points[:, 0], [1.0, 2.0])
    medians = np.median(release.measurements[0].strategy.X, axis=0)
    np.testing.assert_array_equal(points[0, 1:], medians[1:])


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?x")]
)
@pytest.mark.parametrize("width", [1, 2])
def test_figures_are_written(suffix, start, width):
    figure = plot_release(_release(width=width))
    assert figure_bytes(figure, suffix=f".{suffix}").startswith(start)


def test_other_formats_are_refused():
    with pytest.raises(ValueError, match=r"must end in \.png, \.pdf, \.svg"):
        picture_suffix("picture.docx")
