"""Pictures are written in the formats that their names say."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.plots import display_of
from cloakgp.plots.figures import figure_bytes, picture_suffix


def _release(*, width: int):
    X = np.random.default_rng(3).uniform(0, 50, size=(60, width))
    model = DPGPRegressor(bounds=(0, 100), epsilon=1.0, delta=1e-3, inducing=6)
    return model.fit(X, X[:, 0]).release_


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?x")]
)
@pytest.mark.parametrize("width", [1, 2])
def test_figures_are_written(suffix, start, width):
    figure = display_of(_release(width=width)).draw()
    assert figure_bytes(figure, suffix=f".{suffix}").startswith(start)


def test_other_formats_are_refused():
    with pytest.raises(ValueError, match=r"must end in \.png, \.pdf, \.svg"):
        picture_suffix("picture.docx")
