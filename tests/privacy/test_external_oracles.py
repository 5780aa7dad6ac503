"""Calibration and composition beside the accountants of others: OpenDP and dp-accounting.

OpenDP accounts for Gaussian noise by zero-concentrated privacy, whose conversion is an upper bound;
dp-accounting by privacy loss distributions, which are exact up to their grid, rounded up.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from cloakgp import DPGPRegressor, Guarantee, compose
from cloakgp.privacy.accounting import exact_noise_multiplier, gaussian_delta

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: E402

pytestmark = pytest.mark.slow

BUDGETS = [(0.1, 1e-3), (0.5, 1e-6), (1.0, 1e-2), (1.0, 1e-5), (3.0, 1e-8), (8.0, 1e-4)]
GRID = 1e-4


@pytest.fixture(scope="module")
def dp():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_calibration_is_what_dp_accounting_finds(epsilon, delta):
    sigma = exact_noise_multiplier(epsilon, delta)
    loss = pld.from_gaussian_mechanism(sigma, value_discretization_interval=GRID)
    # Their grid rounds losses up by at most a step, which moves δ by at most as much.
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=2 * GRID)
    assert loss.get_delta_for_epsilon(epsilon) >= delta * (1 - 1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_opendp_never_promises_more_for_gaussian_noise(dp, epsilon, delta):
    steps = 10**6
    sigma = exact_noise_multiplier(epsilon, delta)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=sigma * steps)
    assert mechanism.map(float(steps)) == pytest.approx(1 / (2 * sigma**2), rel=1e-6)
    promised = dp.c.make_zCDP_to_approxDP(mechanism).map(float(steps))
    assert promised.epsilon(delta) >= epsilon
    assert gaussian_delta(1 / sigma, epsilon) <= promised.delta(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_laplace_noise_costs_what_opendp_says(dp, epsilon):
    """The scale that a fit chose, and the distance that its questions have, by OpenDP's own map."""
    X = np.linspace(0, 10, 30)[:, None]
    settings = {"stages": None, "interval": False, "learn": None}
    model = DPGPRegressor(bounds=(-1, 1), epsilon=epsilon, **settings)
    (measured,) = model.fit(X, np.sin(X[:, 0])).release_.measurements
    steps = 2**40
    moved = math.ceil(2.0 * np.abs(measured.strategy.matrix).sum(axis=0).max() * steps)
    # The sd of Laplace noise is √2 times its scale.
    scale = measured.noise_sd / math.sqrt(2) * steps
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    spent = dp.m.make_laplace(*space, scale=scale).map(moved)
    assert spent == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("mus", [(0.3, 0.4), (0.2,) * 5])
def test_gaussian_composition_is_what_dp_accounting_finds(mus):
    parts = [Guarantee(epsilon=1.0, delta=gaussian_delta(mu, 1.0), mu=mu) for mu in mus]
    total = compose(*parts, delta=1e-5)
    losses = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=GRID) for mu in mus]
    together = losses[0]
    for other in losses[1:]:
        together = together.compose(other)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = together.get_epsilon_for_delta(1e-5)
    assert total.epsilon == pytest.approx(theirs, abs=len(mus) * 2 * GRID)


@pytest.mark.parametrize(("laplace", "mu"), [((0.3, 0.5), 0.0), ((0.4,), 0.3), ((0.1,) * 6, 0.0)])
def test_compositions_with_laplace_noise_are_no_better_than_exact(laplace, mu):
    """Ours is an upper bound that is close: nowhere below theirs, less their grid."""
    mixed = Guarantee(epsilon=2.0, delta=1e-3, mu=mu, laplace=laplace)
    losses = [
        pld.from_laplace_mechanism(1 / each, value_discretization_interval=GRID) for each in laplace
    ]
    if mu:
        losses.append(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=GRID))
    together = losses[0]
    for other in losses[1:]:
        together = together.compose(other)
    for epsilon in (0.0, 0.2, 0.5):
        theirs = together.get_delta_for_epsilon(epsilon)
        ours = mixed.delta_at(epsilon)
        assert ours >= theirs - len(losses) * 2 * GRID
        assert ours <= theirs + 0.02
