"""Pictures of guarantees show the exact curve, and guesses that it allows."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from matplotlib import pyplot as plt

from cloakgp import DPGPRegressor, Guarantee
from cloakgp.plots import GuaranteeDisplay, display_of
from cloakgp.privacy.accounting import gaussian_delta

MU = 0.4


def test_the_curve_is_that_of_the_guarantee_and_the_stated_pair_is_marked():
    guarantee = Guarantee(epsilon=1.0, delta=gaussian_delta(MU, 1.0), mu=MU)
    display = GuaranteeDisplay.of(guarantee)
    figure = display.draw()
    curve, point = display.ax_.get_lines()
    for epsilon, delta in zip(*curve.get_data(), strict=True):
        assert delta == pytest.approx(gaussian_delta(MU, float(epsilon)), rel=1e-9)
    assert point.get_xydata().tolist() == [[guarantee.epsilon, guarantee.delta]]
    assert "differential privacy" in figure.get_suptitle()
    frame = display.to_frame()
    assert len(frame) == len(display.epsilons) + len(display.beliefs)


def test_guesses_are_those_of_the_best_attacker_on_a_normal():
    """Of two normals a distance μ apart the best test is a threshold on the likelihood ratio."""
    display = display_of(Guarantee(epsilon=1.0, delta=gaussian_delta(MU, 1.0), mu=MU))
    cdf = NormalDist().cdf
    for belief, right in zip(display.beliefs[1:-1], display.right[1:-1], strict=True):
        cut = MU / 2 + np.log(belief / (1 - belief)) / MU
        best = belief * cdf(cut) + (1 - belief) * cdf(MU - cut)
        assert right == pytest.approx(best, abs=1e-9)


def test_guarantees_without_delta_are_drawn():
    display = GuaranteeDisplay.of(Guarantee(epsilon=0.5, delta=0.0, mu=0.0, laplace=(0.5,)))
    display.draw()
    assert [text.get_text() for text in display.ax_.texts] == ["no δ from ε = 0.5 on"]
    assert display.title == "0.5-differential privacy"


def test_seeded_noise_is_in_the_title():
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None, insecure_seed=1)
    model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    display = GuaranteeDisplay.from_estimator(model)
    assert "INSECURE" in display.figure_.get_suptitle()
    plt.close(display.figure_)
