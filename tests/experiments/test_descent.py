"""The papers' gradient descent, as printed."""

import numpy as np
import pytest

from cloakgp.design import design_strategy
from experiments.descent import descend


@pytest.fixture
def cloaking():
    X, asked = np.linspace(0, 10, 30)[:, None], np.linspace(0, 10, 4)[:, None]
    covariance = np.exp(-((X - X.T) ** 2) / 8)
    crossed = np.exp(-((asked - X.T) ** 2) / 8)
    return crossed @ np.linalg.inv(covariance + 0.3 * np.eye(30))


def optimum(cloaking):
    design = design_strategy(cloaking, criterion="logdet", gap=1e-6)
    lengths = np.linalg.norm(design.reconstruction, axis=1)
    return np.sqrt(np.mean(lengths**2))


def test_kept_above_zero_it_comes_to_the_certified_optimum(cloaking):
    found = descend(cloaking, rng=np.random.default_rng(1), steps=20_000, stays_positive=True)
    assert found.negative == 0
    assert found.largest == pytest.approx(1.0, abs=0.01)
    assert found.rms == pytest.approx(optimum(cloaking), rel=0.01)


def test_as_printed_lambdas_fall_below_zero(cloaking):
    found = descend(cloaking, rng=np.random.default_rng(1), steps=2_000, stays_positive=False)
    assert found.negative > 0


def test_fewer_steps_leave_more_noise(cloaking):
    few, many = (
        descend(cloaking, rng=np.random.default_rng(2), steps=steps, stays_positive=True)
        for steps in (20, 5_000)
    )
    assert not few.converged
    assert few.rms > many.rms
