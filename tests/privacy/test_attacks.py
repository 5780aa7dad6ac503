"""Attacks that succeed on the papers' own code; here they must fail.

The first test of each pair shows that the attack works on the mechanism as the papers write it, so
that the second one means something.
"""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import DPGPRegressor, cloak
from cloakgp.design import design_strategy
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

# The package re-exports the function `measure` under the name of its module.

BOUNDS = (58.27, 158.27)
GAUSSIAN = {"epsilon": 1, "delta": 0.01, "noise": "gaussian"}
EPSILON, DELTA = 1.0, 0.01
RELEASES = 400


@pytest.fixture(scope="module")
def smooth_problem():
    """20 query points on 0 to 90 years, 287 rows, a kernel so smooth that C is nearly singular."""
    rng = np.random.default_rng(0)
    ages = np.sort(rng.gamma(1.6, 18, size=287).clip(0, 86))[:, None]
    prior = ExactPrior(kernel=ConstantKernel(260.0) * RBF(15.0), noise_variance=650.0, mean=108.27)
    C = prior.cloaking_matrix(np.linspace(0, 90, 20)[:, None], ages)
    y = rng.uniform(*BOUNDS, size=287)
    neighbour = y.copy()
    row = int(np.square(C).sum(axis=0).argmax())
    y[row], neighbour[row] = BOUNDS
    return C, y, neighbour


def null_space_attack(release, C, y, neighbour, directions):
    """Return the δ attained by comparing released doubles with C y where there is no noise."""
    hidden = np.eye(len(C)) - directions @ directions.T
    candidates = [hidden @ (C @ outputs) for outputs in (y, neighbour)]

    def share_of_guesses_for_y(outputs):
        guesses = 0
        for _ in range(RELEASES):
            seen = hidden @ release(outputs)
            distances = [np.linalg.norm(seen - candidate) for candidate in candidates]
            guesses += distances[0] < distances[1]
        return guesses / RELEASES

    here, there = share_of_guesses_for_y(y), share_of_guesses_for_y(neighbour)
    return max(here - math.exp(EPSILON) * there, there - math.exp(EPSILON) * here)


def test_null_space_attack_breaks_noise_added_to_the_predictions(smooth_problem):
    C, y, neighbour = smooth_problem
    design = design_strategy(C, criterion="logdet")
    directions = np.linalg.qr(design.reconstruction)[0]
    rng = np.random.default_rng(1)
    sd = 3.255 * (BOUNDS[1] - BOUNDS[0])

    def as_in_the_papers(outputs):
        noise = rng.normal(size=design.strategy.shape[0])
        return C @ outputs + sd * design.reconstruction @ noise

    assert null_space_attack(as_in_the_papers, C, y, neighbour, directions) > 0.5


def test_null_space_attack_fails_here(smooth_problem):
    C, y, neighbour = smooth_problem
    design = design_strategy(C, criterion="logdet")
    directions = np.linalg.qr(design.reconstruction)[0]
    centre = (BOUNDS[0] + BOUNDS[1]) / 2

    def released(outputs):
        answers = ask(
            design.strategy,
            outputs,
            question=OutputBounds.checked(BOUNDS),
            epsilon=EPSILON,
            delta=DELTA,
        )
        return C @ np.full(C.shape[1], centre) + design.reconstruction @ answers.values[:, 0]

    attained = null_space_attack(released, C, y, neighbour, directions)
    # What is seen along the hidden directions is the rounding of L a: four standard errors.
    assert attained <= DELTA + 4 * math.exp(EPSILON) / math.sqrt(RELEASES)


def test_every_published_double_is_a_function_of_the_answers(smooth_problem, monkeypatch):
    """The same answers for neighbours: identical doubles in values, predictions and the file."""
    C, y, neighbour = smooth_problem
    X = np.linspace(0, 90, C.shape[1])[:, None]

    def same_answers(integers, *, scale, sensitivity):  # noqa: ARG001
        return np.arange(len(integers)) * 2**38 - 2**40

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", same_answers)
    for criterion in ("trace", "logdet"):
        first, second = (
            cloak(
                C,
                outputs,
                bounds=BOUNDS,
                epsilon=1,
                delta=0.01,
                noise="gaussian",
                criterion=criterion,
            )
            for outputs in (y, neighbour)
        )
        assert first.values.tobytes() == second.values.tobytes()
    for inducing in (None, 5):
        models = [
            DPGPRegressor(bounds=BOUNDS, epsilon=1, delta=0.01, inducing=inducing).fit(X, outputs)
            for outputs in (y, neighbour)
        ]
        predictions = [model.predict(X, return_std=True) for model in models]
        assert predictions[0][0].tobytes() == predictions[1][0].tobytes()
        assert predictions[0][1].tobytes() == predictions[1][1].tobytes()


def test_released_files_of_neighbours_with_the_same_answers_are_the_same(
    smooth_problem, monkeypatch, tmp_path
):
    C, y, neighbour = smooth_problem
    X = np.linspace(0, 90, C.shape[1])[:, None]
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)),
    )
    for name, outputs in (("one", y), ("two", neighbour)):
        model = DPGPRegressor(bounds=BOUNDS, epsilon=1, delta=0.01).fit(X, outputs)
        model.release_.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
@pytest.mark.parametrize("rows", [100, 200, 287])
def test_many_alike_rows_do_not_collapse_the_noise(criterion, rows):
    """A constant model and one query point: the papers' code releases the exact mean here."""
    C = np.full((1, rows), 1 / rows)
    y = np.linspace(*BOUNDS, rows)
    values = [
        cloak(C, y, bounds=BOUNDS, **GAUSSIAN, criterion=criterion).values[0] for _ in range(10)
    ]
    cloaked = cloak(C, y, bounds=BOUNDS, **GAUSSIAN, criterion=criterion)
    assert math.sqrt(cloaked.noise_cov[0, 0]) == pytest.approx(187.78756 / rows, rel=1e-6)
    assert len(set(values)) == 10
    assert not np.isin(y.mean(), values)


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
def test_huge_lengthscale_and_one_query_point_still_get_noise(criterion):
    ages = np.random.default_rng(2).uniform(0, 86, size=(287, 1))
    prior = ExactPrior(kernel=ConstantKernel(260.0) * RBF(125.0), noise_variance=650.0, mean=108.27)
    C = prior.cloaking_matrix(np.array([[40.0]]), ages)
    cloaked = cloak(
        C,
        np.full(287, 100.0),
        bounds=BOUNDS,
        epsilon=1,
        delta=0.01,
        noise="gaussian",
        criterion=criterion,
    )
    expected = 187.78756 * np.abs(C).max()
    assert math.sqrt(cloaked.noise_cov[0, 0]) == pytest.approx(expected, rel=1e-6)
