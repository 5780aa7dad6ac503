"""A calibrated release, which several displays draw."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor, Release


@pytest.fixture(scope="session")
def calibrated() -> Release:
    """Outputs that are skewed, and scatter far less than the model takes them to; in strata."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, size=(3000, 1))
    scatter = 0.3 * (1.0 + X[:, 0] / 5) * (rng.gamma(1.0, size=3000) - 1.0)
    model = DPGPRegressor(
        bounds=(1.0, 12.0), epsilon=3.0, inducing=10, interval=False, gap=0.05, insecure_seed=1
    )
    release = model.fit(X, 5.0 + 2.0 * np.sin(X[:, 0]) + scatter).release_
    assert release.calibrated_by is not None
    assert len(release.calibrated_by.curves) > 1
    return release
