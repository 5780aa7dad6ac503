"""Whole releases, of every criterion and model, over all neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import ACHIEVED_SHARE, spent_over_neighbours
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)

from cloakgp import DPGPRegressor
from cloakgp.privacy import groups

# Budgets are as large as it takes to try them all.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

KERNELS = [
    None,
    RBF(2.0),
    ConstantKernel(4.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.1),
    DotProduct() + ExpSineSquared(periodicity=3.0),
    RBF(1e6),
]


def spent_by_fit(y, X, *, bounds, **parameters):
    """Return (largest μ over all neighbours of y, claimed μ) of one call of `fit`."""
    # Searches for an interval: tests/privacy/test_interval.py.
    model = DPGPRegressor(bounds=bounds, noise="gaussian", interval=False, **parameters)
    return spent_over_neighbours(
        lambda outputs: model.fit(X, outputs).guarantee_.mu, y, bounds=bounds
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(KERNELS),
    criterion=st.sampled_from(["bayes", "trace", "logdet"]),
    approximation=st.sampled_from([None, "fitc", "dtc", "sor"]),
    epsilon=st.sampled_from([0.05, 1.0, 20.0]),
    # Learning takes most of the time, and begins when all is spent.
    learn=st.sampled_from([None, None, None, "map"]),
)
@settings(max_examples=25)
def test_every_release_spends_what_it_claims(
    seed, kernel, criterion, approximation, epsilon, learn
):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, size=(7, 1))
    X[1] = X[0]
    bounds = (-3.0, 7.0)
    y = np.where(rng.uniform(size=7) < 0.5, *bounds)
    spent, claimed = spent_by_fit(
        y,
        X,
        bounds=bounds,
        epsilon=epsilon,
        delta=1e-4,
        kernel=kernel,
        criterion=criterion,
        learn=learn,
        # Several are tried by `test_bands`: the worst neighbours of one are those of all there.
        stages=None,
        inducing=None if approximation is None else X[[0, 3, 5]],
        approximation=approximation or "fitc",
    )
    assert ACHIEVED_SHARE * claimed <= spent <= claimed


def test_the_check_can_fail(monkeypatch):
    """Mutation: a release whose sensitivity leaves out half of the rows is found out."""
    whole = groups.column_lengths

    def of_the_first_rows(strategy):
        return whole(strategy[:, : strategy.shape[1] // 2])

    monkeypatch.setattr("cloakgp.privacy.noise.balls.column_lengths", of_the_first_rows)
    X = np.concatenate([np.zeros(8), [1.0, 2.0, 3.0, 9.0]])[:, None]
    spent, claimed = spent_by_fit(
        np.zeros(12), X, bounds=(0.0, 1.0), epsilon=1.0, delta=0.01, criterion="trace"
    )
    assert spent > claimed


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
def test_combined_releases_spend_the_root_of_the_sum_of_squares(criterion):
    X = np.linspace(0, 1, 6)[:, None]
    model = DPGPRegressor(
        bounds=(0, 1),
        epsilon=1,
        delta=0.01,
        noise="gaussian",
        criterion=criterion,
        interval=False,
    )
    parts = [model.fit(X, np.zeros(6)).release_ for _ in range(3)]
    total = parts[0].combine(*parts[1:])
    assert total.guarantee.mu == pytest.approx(np.sqrt(3) * parts[0].guarantee.mu)
    assert total.guarantee.delta_at(total.guarantee.epsilon) <= 0.01
