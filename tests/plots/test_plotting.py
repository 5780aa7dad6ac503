"""Objects draw themselves, in the display that suits them."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.figure import Figure

from cloakgp import DPGPRegressor
from cloakgp.plots import display_of


def test_objects_draw_themselves_as_the_function_does():
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None, interval=False)
    plan = model.plan([[0.0], [1.0], [2.0]])
    release = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_
    for drawn in (release, plan, release.guarantee):
        panels = display_of(drawn).n_panels
        own = drawn.plot(ax=Figure().subplots(1, panels))
        assert type(own) is type(display_of(drawn))
        pd.testing.assert_frame_equal(own.to_frame(), display_of(drawn).to_frame())
    fan = release.plot(kind="fan", unit="m", ax=Figure().add_subplot())
    assert fan.ax_.get_ylabel() == "y (m)"
    with pytest.raises(ValueError, match="kind must be one of"):
        release.plot(kind="cake")
