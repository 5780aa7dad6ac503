"""Release of a whole function: what it spends over all neighbours, and what an attacker sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, door, spent_over_neighbours
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.rkhs import rkhs_sensitivity
from cloakgp.privacy import function as functional
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.function import measure_function
from cloakgp.release.functional import ReleasedFunction

KERNELS = [
    RBF(2.0),
    ConstantKernel(4.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.1),
    DotProduct() + RBF(1.0),
    RBF(1e6),
]
BOUNDS = (-3.0, 7.0)


def spent(prior, X, y, *, epsilon=1.0, delta=1e-4):
    """Return (largest μ over all neighbours of y, claimed μ)."""

    def run(outputs):
        measured = measure_function(
            X, outputs, prior=prior, bounds=BOUNDS, epsilon=epsilon, delta=delta
        )
        return measured.answers.guarantee.mu

    return spent_over_neighbours(run, y, bounds=BOUNDS)


@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    approximation=st.sampled_from([None, "fitc", "dtc", "sor"]),
    noise_variance=st.sampled_from([0.0, 0.5]),
    epsilon=st.sampled_from([0.05, 1.0, 20.0]),
)
@settings(max_examples=25)
def test_every_function_spends_what_it_claims(seed, kernel, approximation, noise_variance, epsilon):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, size=(10, 1))
    y = np.where(rng.uniform(size=10) < 0.5, *BOUNDS)
    model = {"kernel": kernel, "noise_variance": noise_variance + 1e-3, "mean": 1.0}
    prior = (
        ExactPrior(**model)
        if approximation is None
        else SparsePrior(**model, inducing=X[[0, 4, 7]], approximation=approximation)
    )
    achieved, claimed = spent(prior, X, y, epsilon=epsilon)
    assert ACHIEVED_SHARE * claimed <= achieved <= claimed


def test_questions_of_another_kernel_are_charged_for_what_they_are(monkeypatch):
    """Mutation: the claim follows the matrix that is asked, so wrong questions still keep it."""
    whole = functional.function_questions

    def of_another(prior, X):
        return whole(ExactPrior(kernel=RBF(0.1), noise_variance=5.0, mean=prior.mean), X)

    monkeypatch.setattr(functional, "function_questions", of_another)
    X = np.linspace(0, 5, 8)[:, None]
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=0.5, mean=1.0)
    achieved, claimed = spent(prior, X, np.full(8, BOUNDS[0]))
    assert ACHIEVED_SHARE * claimed <= achieved <= claimed


def test_the_check_can_fail(monkeypatch):
    """Mutation: with a sensitivity one per cent short the brute force objects."""
    whole = door.integer_sensitivity
    monkeypatch.setattr(
        door, "integer_sensitivity", lambda *args, **kw: int(0.99 * whole(*args, **kw))
    )
    X = np.linspace(0, 5, 8)[:, None]
    prior = ExactPrior(kernel=RBF(2.0), noise_variance=0.5, mean=1.0)
    achieved, claimed = spent(prior, X, np.full(8, BOUNDS[0]))
    assert achieved > claimed


@pytest.mark.parametrize("points", [1, 3, 400])
def test_noise_at_any_points_masks_every_row(points, rng):
    """max_j d √(c_jᵀ Σ⁻¹ c_j) ≤ μ for the published covariance Σ, however many points are asked."""
    X, X_query = rng.uniform(0, 5, size=(20, 1)), rng.uniform(-5, 10, size=(points, 1))
    prior = ExactPrior(kernel=2.0 * RBF(1.0), noise_variance=0.5, mean=1.0)
    measured = measure_function(X, np.ones(20), prior=prior, bounds=BOUNDS, epsilon=1, delta=0.01)
    noise_cov = ReleasedFunction.given(prior, measured).noise_cov(X_query)
    inverse = np.linalg.pinv(noise_cov, hermitian=True, rcond=1e-9)
    columns = prior.cloaking_matrix(X_query, X).T
    attained = 10.0 * np.sqrt(max(column @ inverse @ column for column in columns))
    mu = measured.answers.guarantee.mu
    assert attained <= mu * (1 + 1e-6)
    if points == 400:
        assert attained >= 0.99 * mu


def test_noise_is_calibrated_to_the_exact_sensitivity(rng):
    X = rng.uniform(0, 5, size=(20, 1))
    prior = ExactPrior(kernel=2.0 * RBF(1.0), noise_variance=0.5, mean=1.0)
    budget = {"bounds": BOUNDS, "epsilon": 1.0, "delta": 0.01}
    measured = measure_function(X, np.ones(20), prior=prior, **budget)
    released = ReleasedFunction.given(prior, measured)
    scale = 10.0 * rkhs_sensitivity(prior, X) * exact_noise_multiplier(1.0, 0.01)
    assert released.noise_sd(X) == pytest.approx(scale * np.sqrt(2.0) * np.ones(20), rel=1e-6)
    papers = measure_function(X, np.ones(20), prior=prior, calibration="papers", **budget)
    ratio = np.sqrt(2 * np.log(200)) / exact_noise_multiplier(1.0, 0.01)
    assert papers.answers.noise_sd / measured.answers.noise_sd == pytest.approx(ratio)


def test_everything_published_is_a_function_of_the_answers(monkeypatch, rng):
    """Replay: neighbours with the same noisy answers publish identical doubles, at any points."""
    X, y = rng.uniform(0, 5, size=(12, 1)), rng.uniform(*BOUNDS, size=12)
    neighbour = y.copy()
    neighbour[3] = BOUNDS[1]
    prior = ExactPrior(kernel=2.0 * RBF(1.0), noise_variance=0.5, mean=1.0)
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**30,
    )
    first, second = (
        ReleasedFunction.given(
            prior,
            measure_function(X, one, prior=prior, bounds=BOUNDS, epsilon=1, delta=0.01),
        )
        for one in (y, neighbour)
    )
    points = np.linspace(-3, 9, 300)[:, None]
    assert first(points).tobytes() == second(points).tobytes()
    assert first.noise_cov(points).tobytes() == second.noise_cov(points).tobytes()
    assert first.guarantee == second.guarantee


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"X": [[np.nan], [1.0]]}, "X contains NaN"),
        ({"X": [[1.0]], "y": [1.0]}, "1 sample"),
        ({"y": [1.0, 2.0, 3.0]}, "must agree"),
        ({"epsilon": 0}, "epsilon"),
        ({"bounds": (1, 0)}, "below"),
        ({"epsilon": 50.0, "calibration": "papers"}, "at most 1"),
    ],
)
def test_bad_input(change, complaint):
    prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    arguments = {
        "X": [[0.0], [1.0]], "y": [0.0, 1.0], "bounds": (0, 1), "epsilon": 1.0, "delta": 0.01
    } | change  # fmt: skip
    with pytest.raises(ValueError, match=complaint):
        measure_function(arguments.pop("X"), arguments.pop("y"), prior=prior, **arguments)


def test_seeded_noise_says_so():
    prior = ExactPrior(kernel=RBF(), noise_variance=1.0, mean=0.0)
    budget = {"prior": prior, "bounds": (0, 1), "epsilon": 1.0, "delta": 0.01}
    one, other = (
        measure_function([[0.0], [1.0]], [0.0, 1.0], insecure_seed=5, **budget) for _ in range(2)
    )
    assert np.array_equal(one.answers.values, other.answers.values)
    assert "INSECURE" in repr(ReleasedFunction.given(prior, one))
    secure = measure_function([[0.0], [1.0]], [0.0, 1.0], **budget)
    assert "INSECURE" not in repr(ReleasedFunction.given(prior, secure))
