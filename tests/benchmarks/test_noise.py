import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.noise import noise_figures, noise_root
from cloakgp.design import design_strategy
from cloakgp.design.numerical_range import numerical_range

P, N = 4, 9


def brute_force(C, M):
    """The figures by the textbook, where C has full rank: scale M, then measure it."""
    worst = max(float(c @ np.linalg.inv(M) @ c) for c in C.T)
    scaled = M * worst
    return worst, np.linalg.slogdet(scaled)[1] / len(C), np.trace(scaled) / len(C)


def agree(found, C, M):
    worst, volume, mean_square = brute_force(C, M)
    assert found.sensitivity == pytest.approx(np.sqrt(worst))
    assert found.volume == pytest.approx(volume)
    assert found.mean_square == pytest.approx(mean_square)
    assert found.rank == len(C)


@given(seed=st.integers(0, 10_000))
def test_weights_are_scaled_as_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    C, weights = rng.normal(size=(P, N)), rng.uniform(0.1, 1, size=N)
    span = numerical_range(C)
    root = noise_root({"weights": weights}, span)
    agree(noise_figures(root, span, predictions=P), C, (C * weights) @ C.T)


@given(seed=st.integers(0, 10_000))
def test_square_strategies_are_scaled_as_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    C, strategy = rng.normal(size=(P, N)), rng.normal(size=(N, N)) + 3 * np.eye(N)
    span = numerical_range(C)
    answered = C @ np.linalg.inv(strategy)
    root = noise_root({"strategy": strategy}, span)
    agree(noise_figures(root, span, predictions=P), C, answered @ answered.T)


@given(seed=st.integers(0, 10_000), criterion=st.sampled_from(["logdet", "trace"]))
def test_our_own_design_has_sensitivity_one_and_the_noise_of_its_reconstruction(seed, criterion):
    C = np.random.default_rng(seed).normal(size=(P, N))
    design = design_strategy(C, criterion=criterion)
    span = numerical_range(C)
    found = noise_figures(noise_root({"strategy": design.strategy}, span), span, predictions=P)
    agree(found, C, design.reconstruction @ design.reconstruction.T)
    assert found.sensitivity == pytest.approx(1)


@given(seed=st.integers(0, 10_000), factor=st.floats(0.01, 100))
def test_how_large_a_peer_makes_its_noise_does_not_matter_but_as_stated(seed, factor):
    rng = np.random.default_rng(seed)
    span = numerical_range(rng.normal(size=(P, N)))
    root = rng.normal(size=(P, P)) + 3 * np.eye(P)
    one = noise_figures(root, span, predictions=P)
    other = noise_figures(factor * root, span, predictions=P)
    assert other.volume == pytest.approx(one.volume)
    assert other.mean_square == pytest.approx(one.mean_square)
    stated = noise_figures(root, span, predictions=P, stated_scale=factor)
    times = factor / one.sensitivity**2
    assert stated.mean_square == pytest.approx(times * one.mean_square)
    assert stated.volume == pytest.approx(one.volume + np.log(times))


def test_no_neighbour_is_told_apart_by_more_than_one():
    rng = np.random.default_rng(1)
    C, weights = rng.normal(size=(P, N)), rng.uniform(size=N)
    span = numerical_range(C)
    root = noise_root({"weights": weights}, span)
    found = noise_figures(root, span, predictions=P)
    precision = np.linalg.inv((C * weights) @ C.T * found.sensitivity**2)
    y = rng.normal(size=N)
    moved = [C @ (y + np.eye(N)[j]) - C @ y for j in range(N)]
    assert max(step @ precision @ step for step in moved) == pytest.approx(1)


@pytest.mark.parametrize("collapsed", [np.zeros(N), np.eye(N)[0]])
def test_a_direction_without_noise_is_private_at_no_scale(collapsed):
    span = numerical_range(np.random.default_rng(2).normal(size=(P, N)))
    root = noise_root({"weights": collapsed}, span)
    found = noise_figures(root, span, predictions=P)
    assert np.isinf([found.sensitivity, found.volume, found.mean_square]).all()
    stated = noise_figures(root, span, predictions=P, stated_scale=1.0)
    assert np.isfinite(stated.mean_square)


def test_tiny_singular_values_are_not_drowned_by_rounding():
    rng = np.random.default_rng(3)
    left = np.linalg.qr(rng.normal(size=(P, P)))[0]
    right = np.linalg.qr(rng.normal(size=(N, P)))[0].T
    C = left @ np.diag([1, 1e-2, 1e-5, 1e-7]) @ right
    span = numerical_range(C)
    found = noise_figures(np.eye(P), span, predictions=P)
    assert found.volume == pytest.approx(
        2 * np.log([1, 1e-2, 1e-5, 1e-7]).mean() + np.log(found.sensitivity**2), rel=1e-6
    )


def test_a_runner_must_return_some_noise():
    span = numerical_range(np.eye(2))
    with pytest.raises(ValueError, match="neither weights"):
        noise_root({}, span)
