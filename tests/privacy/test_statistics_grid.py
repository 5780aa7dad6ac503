"""Sensitivity of the statistics against brute force, and calibration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.statistics import (
    NEIGHBOURS,
    best_weighting,
    calibrate_statistics,
    integer_sensitivity,
    joint_sensitivity,
)


def distance(one, other, *, weighting):
    """‖t − t'‖ from matrices: no √2, no triangle. None stands for no row."""
    size = len(one[0])
    empty = (np.zeros(size), 0.0)
    (a, v), (b, w) = one, (empty if other is None else other)
    gram = np.linalg.norm(np.outer(a, a) - np.outer(b, b))
    return math.hypot(gram, weighting * np.linalg.norm(a * v - b * w))


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 4.0), st.integers(2, 4))
def test_no_two_rows_are_further_apart(seed, weighting, size):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        rows = []
        for _ in range(2):
            direction = rng.normal(size=size)
            length = rng.choice([1.0, rng.uniform()])
            v = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])
            rows.append((length * direction / np.linalg.norm(direction), v))
        replaced = distance(*rows, weighting=weighting)
        assert replaced <= joint_sensitivity(weighting, neighbours="replace") * (1 + 1e-12)
        added = distance(rows[0], None, weighting=weighting)
        assert added <= joint_sensitivity(weighting, neighbours="add-remove") * (1 + 1e-12)


@pytest.mark.parametrize("weighting", [0.1, 0.7, 1.0, 1.3, math.sqrt(2), 1.6, 3.0])
def test_two_rows_attain_it(weighting):
    """A search over angle, lengths and outputs finds the bound, and nothing beyond it."""
    angles, lengths = np.linspace(0, math.pi, 721), (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
    best = {"replace": 0.0, "add-remove": 0.0}
    for length in lengths:
        for other in lengths:
            for v, w in ((1.0, -1.0), (1.0, 1.0), (1.0, 0.5), (0.0, 1.0)):
                a, b = np.array([length, 0.0]), other * np.array([np.cos(angles), np.sin(angles)])
                inner = a @ b
                square = length**4 + other**4 - 2 * inner**2
                moment = (length * v) ** 2 + (other * w) ** 2 - 2 * inner * v * w
                found = math.sqrt((square + weighting**2 * moment).max())
                best["replace"] = max(best["replace"], found)
        best["add-remove"] = max(
            best["add-remove"], distance((np.array([length]), 1.0), None, weighting=weighting)
        )
    for neighbours, found in best.items():
        bound = joint_sensitivity(weighting, neighbours=neighbours)
        assert found <= bound * (1 + 1e-12)
        assert found >= bound * (1 - 1e-5)


@pytest.mark.parametrize("weighting", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_bins_attain_theirs(weighting, neighbours):
    rows = [(unit, v) for unit in np.eye(3) for v in (-1.0, 0.0, 1.0)]
    others = [None] if neighbours == "add-remove" else rows
    found = max(distance(one, other, weighting=weighting) for one in rows for other in others)
    bound = joint_sensitivity(weighting, neighbours=neighbours, exclusive=True)
    assert found == pytest.approx(bound, rel=1e-12)


def test_replacing_costs_more_than_adding_and_at_most_twice():
    for weighting in np.geomspace(0.01, 10, 30):
        for exclusive in (False, True):
            add, replace = (
                joint_sensitivity(weighting, neighbours=one, exclusive=exclusive)
                for one in ("add-remove", "replace")
            )
            assert add < replace <= 2 * add * (1 + 1e-12)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("size", [0.01, 1.0, 50.0])
def test_the_weighting_minimises_the_disturbance(neighbours, exclusive, size):
    """The closed form against a numerical search, with W from simulated noise."""
    covariance = size * np.diag([1.0, 0.5, 0.1])
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40_000, 3, 3))
    symmetric = np.tril(noise, -1) / math.sqrt(2)
    symmetric = symmetric + symmetric.transpose(0, 2, 1)
    symmetric[:, range(3), range(3)] = noise[:, range(3), range(3)]
    if exclusive:
        symmetric = symmetric * np.eye(3)
    weights = rng.normal(size=(40_000, 3)) @ np.sqrt(covariance)
    disturbance = np.square(np.einsum("nij,nj->ni", symmetric, weights)).mean()

    def objective(log_u):
        u = math.exp(log_u)
        moved = joint_sensitivity(math.sqrt(u), neighbours=neighbours, exclusive=exclusive)
        return moved**2 * (1 / u + disturbance)

    chosen = best_weighting(covariance, neighbours=neighbours, exclusive=exclusive)
    least = minimize_scalar(objective, bounds=(-8, 8), method="bounded").fun
    assert objective(2 * math.log(chosen)) == pytest.approx(least, rel=2e-3)


@given(
    st.floats(0.05, 5.0),
    st.integers(1, 40),
    st.sampled_from(NEIGHBOURS),
    st.booleans(),
    st.floats(0.01, 20.0),
    st.integers(-9, -1),
)
def test_calibration_is_exact_and_covers_rounding(w, features, neighbours, exclusive, eps, power):
    delta = 10.0**power
    grid, guarantee = calibrate_statistics(
        features=features,
        weighting=w,
        neighbours=neighbours,
        exclusive=exclusive,
        epsilon=eps,
        delta=delta,
    )
    exact = joint_sensitivity(w, neighbours=neighbours, exclusive=exclusive)
    assert grid.sensitivity * grid.step >= exact
    assert grid.sensitivity * grid.step == pytest.approx(exact, rel=1e-6)
    assert guarantee.delta_at(eps) <= delta
    assert grid.scale * grid.step == pytest.approx(
        exact * exact_noise_multiplier(eps, delta), rel=1e-5
    )
    assert grid.most_rows > 2**24


def test_rounding_is_counted_for_both_rows():
    common = {
        "features": 3,
        "channels": 1,
        "entries": 9,
        "weighting": 1.0,
        "step": 0.5,
        "exclusive": False,
    }
    added = integer_sensitivity(**common, neighbours="add-remove")
    replaced = integer_sensitivity(**common, neighbours="replace")
    assert added == math.ceil(math.sqrt(2) / 0.5 + 1.5)
    assert replaced == math.ceil(3 / math.sqrt(2) / 0.5 + 3)


def test_refusals():
    common = {"features": 3, "neighbours": "replace", "exclusive": False, "epsilon": 1.0}
    with pytest.raises(ValueError, match="delta"):
        calibrate_statistics(weighting=1.0, delta=1e-18, **common)
    for weighting in (0.0, math.nan, 1e9):
        with pytest.raises(ValueError, match="weighting"):
            calibrate_statistics(weighting=weighting, delta=1e-3, **common)


def test_a_broken_calibration_is_refused(monkeypatch):
    """Mutation: σ rounded down is noticed before anything is drawn."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.exact_noise_multiplier",
        lambda epsilon, delta: exact_noise_multiplier(epsilon, delta) * (1 - 1e-9),
    )
    with pytest.raises(RuntimeError, match="nothing released"):
        calibrate_statistics(
            features=3,
            weighting=1.0,
            neighbours="replace",
            exclusive=False,
            epsilon=1.0,
            delta=0.01,
        )
