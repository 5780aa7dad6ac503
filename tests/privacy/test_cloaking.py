"""The papers' mechanism as one function: noise, unbiasedness, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakgp import cloak

# The package re-exports the function `measure` under the name of its module.

BUDGET = {"bounds": (0.0, 1.0), "epsilon": 1.0, "delta": 0.01, "noise": "gaussian"}


def brute_force_mu(noise_cov, C, width):
    """Return max_j d·sqrt(c_jᵀ Σ⁻¹ c_j) for published noise covariance Σ, by pseudo-inverse."""
    inverse = np.linalg.pinv(noise_cov, hermitian=True, rcond=1e-11)
    return width * math.sqrt(max(column @ inverse @ column for column in C.T))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["trace", "logdet"]),
    st.integers(1, 6),
    st.integers(2, 25),
)
@settings(max_examples=40)
def test_published_noise_keeps_the_guarantee_for_every_row(seed, criterion, predictions, rows):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(predictions, rows))
    cloaked = cloak(C, rng.uniform(size=rows), criterion=criterion, **BUDGET)
    attained = brute_force_mu(cloaked.noise_cov, C, 1.0)
    assert attained <= cloaked.guarantee.mu * (1 + 1e-6)
    assert attained >= 0.999 * cloaked.guarantee.mu
    assert cloaked.guarantee.delta_at(1.0) <= 0.01


def test_values_are_the_smoothers_plus_that_noise():
    rng = np.random.default_rng(3)
    C, y = rng.normal(size=(3, 8)), rng.uniform(size=8)
    draws = np.array([cloak(C, y, **BUDGET).values for _ in range(150)])
    noise_cov = cloak(C, y, **BUDGET).noise_cov
    whitened = np.linalg.solve(np.linalg.cholesky(noise_cov), (draws - C @ y).T)
    assert np.abs(whitened.mean(axis=1)).max() < 5 / math.sqrt(150)
    assert np.abs(np.cov(whitened) - np.eye(3)).max() < 5 * math.sqrt(2 / 150)


def test_papers_noise_exactly():
    """With orthonormal columns the least volume is M = I, and the papers' noise d·c(δ)/ε."""
    cloaked = cloak(np.eye(4), np.zeros(4), criterion="logdet", calibration="papers", **BUDGET)
    assert cloaked.noise_cov == pytest.approx(2 * math.log(200) * np.eye(4), rel=1e-6, abs=1e-9)
    with pytest.raises(ValueError, match="at most 1"):
        cloak(np.eye(4), np.zeros(4), calibration="papers", bounds=(0, 1), epsilon=1.5, delta=0.01)


def test_outputs_beyond_the_bounds_are_clipped_silently():
    C = np.full((1, 3), 1 / 3)
    low, high = (
        cloak(C, y, insecure_seed=1, **BUDGET).values for y in ([0.0, 1.0, 1.0], [-50.0, 1.0, 1e9])
    )
    assert np.array_equal(low, high)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
@pytest.mark.parametrize(
    "C",
    [
        np.ones((5, 3)),  # rank 1, P > N
        np.random.default_rng(0).normal(size=(30, 4)),  # P > N
        np.random.default_rng(0).normal(size=(1, 9)),  # P = 1
        np.pad(np.random.default_rng(0).normal(size=(3, 4)), ((0, 0), (0, 5))),  # zero columns
        np.zeros((2, 3)),  # nothing to ask
    ],
)
def test_shapes_at_the_edge(C, criterion):
    y = np.linspace(0, 1, C.shape[1])
    cloaked = cloak(C, y, criterion=criterion, **BUDGET)
    assert cloaked.values.shape == (len(C),)
    assert cloaked.noise_cov.shape == (len(C), len(C))
    assert (np.diag(cloaked.noise_cov) > 0).all() == bool(C.any())
    attained = brute_force_mu(cloaked.noise_cov, C, 1.0)
    assert attained <= cloaked.guarantee.mu * (1 + 1e-6)


def test_weights_shift_the_noise():
    C = np.eye(2)
    cloaked = cloak(C, [0.0, 1.0], weights=[16.0, 1.0], **BUDGET)
    first, second = np.diag(cloaked.noise_cov)
    assert first == pytest.approx(second, rel=1e-3)
    C = np.array([[1.0, 1.0], [1.0, -1.0]])
    plain, weighted = (
        np.diag(cloak(C, [0.0, 1.0], weights=weights, **BUDGET).noise_cov)
        for weights in (None, [16.0, 1.0])
    )
    assert weighted[0] < plain[0]
    assert weighted[1] > plain[1]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"C": [[np.nan, 1.0]]}, "C contains NaN"),
        ({"C": [1.0, 2.0]}, "two dimensions"),
        ({"C": np.zeros((0, 2))}, "at least one row"),
        ({"C": [[1.0]], "y": [1.0]}, "1 sample"),
        ({"C": np.array([[1.0, 1j]])}, "C has complex numbers"),
        ({"y": [1.0, 2.0, 3.0]}, "C has 2 columns and y has 3 entries: they must agree"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 0, "noise": "gaussian"}, "delta"),
        ({"delta": -1.0}, "delta"),
        ({"bounds": (1, 0)}, "below"),
        ({"criterion": "volume"}, "criterion"),
        ({"criterion": "logdet", "weights": [1.0]}, "weights apply"),
        ({"weights": [0.0]}, "positive"),
        ({"weights": [1.0, 2.0]}, "shape"),
        ({"gap": 0}, "gap"),
    ],
)
def test_bad_input(change, complaint):
    arguments = {"C": [[1.0, 2.0]], "y": [0.0, 1.0], **BUDGET} | change
    with pytest.raises(ValueError, match=complaint):
        cloak(arguments.pop("C"), arguments.pop("y"), **arguments)


def test_outputs_in_another_order_than_columns_are_refused():
    people = ["ann", "bob", "cy"]
    C, y = pd.DataFrame(np.eye(3), columns=people), pd.Series([0.0, 0.5, 1.0], index=people)
    with pytest.raises(ValueError, match=r"columns of C and rows of y .* in another order") as told:
        cloak(C, y[::-1], **BUDGET)
    assert "ann" not in str(told.value)
    # Other labels, or none, say nothing of the order.
    for outputs in (y, y[::-1].to_numpy(), y[::-1].reset_index(drop=True)):
        assert cloak(C, outputs, **BUDGET).values.shape == (3,)


def test_seeded_noise_is_admitted():
    arguments = [[1.0, 2.0]], [0.0, 1.0]
    seeded, honest = cloak(*arguments, insecure_seed=1, **BUDGET), cloak(*arguments, **BUDGET)
    assert seeded.insecure
    assert "INSECURE: seeded noise, not private" in repr(seeded)
    assert not honest.insecure
    assert "INSECURE" not in repr(honest)


def test_nothing_published_depends_on_outputs_but_through_the_answers(monkeypatch):
    """Replay: neighbours with the same noisy answers publish identical doubles."""
    rng = np.random.default_rng(5)
    C, y = rng.normal(size=(4, 9)), rng.uniform(size=9)
    neighbour = y.copy()
    neighbour[2] = 1.0 - y[2]
    fixed = rng.integers(-(2**42), 2**42, size=4)
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian", lambda *_, **__: fixed
    )
    first, second = cloak(C, y, **BUDGET), cloak(C, neighbour, **BUDGET)
    assert first.values.tobytes() == second.values.tobytes()
    assert first.noise_cov.tobytes() == second.noise_cov.tobytes()
    assert first.guarantee == second.guarantee


def noise_left(cloaked, weights=1.0):
    return float(np.sum(np.diag(cloaked.noise_cov) * weights))


@pytest.mark.parametrize(
    ("C", "better"),
    [
        # One answer: Laplace noise has the smaller sd. Many that every row moves: the larger norm.
        (np.full((1, 20), 0.05), "laplace"),
        (np.random.default_rng(0).normal(size=(8, 200)), "gaussian"),
    ],
)
@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_the_noise_that_leaves_less_is_taken(C, better, criterion):
    y = np.linspace(0, 1, C.shape[1])
    budget = {"bounds": (0, 1), "epsilon": 1.0, "delta": 4e-3, "criterion": criterion}
    found = {noise: cloak(C, y, noise=noise, **budget) for noise in ("auto", "gaussian", "laplace")}
    assert (found["auto"].guarantee.mu == 0) == (better == "laplace")
    np.testing.assert_allclose(found["auto"].noise_cov, found[better].noise_cov, rtol=1e-6)
    if criterion == "trace":
        assert noise_left(found["auto"]) <= min(map(noise_left, found.values())) * (1 + 1e-6)


def test_the_papers_calibration_is_of_gaussian_noise():
    C = np.full((1, 20), 0.05)
    budget = {"bounds": (0, 1), "epsilon": 1.0, "delta": 1e-3}
    assert cloak(C, np.zeros(20), calibration="papers", **budget).guarantee.mu > 0
