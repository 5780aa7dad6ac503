"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from cloakgp.design import Certificate, design_strategy
from cloakgp.privacy import Answers, Guarantee
from cloakgp.privacy.accounting import gaussian_epsilon
from cloakgp.release import DenseStrategy, Measurement, Release

# What wrote the golden files is for the version that wrote them.
collect_ignore = ["data/golden"]

# The same examples on every machine: a failure in CI is a failure here.
settings.register_profile(
    "cloakgp",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("CLOAKGP_EXAMPLES", "25")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", parent=settings.get_profile("cloakgp"), derandomize=False)
settings.load_profile(os.environ.get("CLOAKGP_HYPOTHESIS", "cloakgp"))

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Milliseconds that a browser may take on a machine that is busy with other tests.
PATIENCE = 180_000


@pytest.fixture(scope="session")
def patience():
    """Milliseconds that a browser may take for one thing."""
    return PATIENCE


@pytest.fixture(scope="session")
def browser():
    """Chromium without a screen; tests are skipped where none is installed."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)}")
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(
                executable_path=path, args=list(FLAGS), timeout=PATIENCE
            )
        except api.Error as error:
            pytest.skip(f"{path} does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def rng() -> np.random.Generator:
    """The same public draws in every run of a test."""
    return np.random.default_rng(20180331)


@pytest.fixture
def make_release():
    """Build a release from a prior and public tables, without the estimator.

    The answers are exact multiples of a seeded normal draw, so a test can condition on them by
    other means. ``noise_sd`` is free: the guarantee is computed from it.
    """

    def make(prior, X, y, *, strategy=None, X_query=None, noise_sd=0.5, bounds=(-3.0, 3.0), seed=0):
        X_query = X if X_query is None else X_query
        if strategy is None:
            design = design_strategy(prior.cloaking_matrix(X_query, X))
            strategy, reconstruction = design.strategy, design.reconstruction
        else:
            reconstruction = np.zeros((len(X_query), len(strategy)))
        noise = noise_sd * np.random.default_rng(seed).normal(size=len(strategy))
        centre = (bounds[0] + bounds[1]) / 2
        longest = np.sqrt(np.square(strategy).sum(axis=0).max()) if len(strategy) else 0.0
        mu = (bounds[1] - bounds[0]) * longest / noise_sd * (1 + 1e-12) if longest else 0.0
        epsilon = gaussian_epsilon(mu, 1e-3) if mu else 1.0
        answers = Answers(
            values=strategy @ (y - centre) + noise,
            noise_sd=noise_sd if len(strategy) else 0.0,
            centre=centre,
            bounds=bounds,
            guarantee=Guarantee(epsilon=epsilon, delta=1e-3, mu=mu, answers=len(strategy)),
        )
        asked = DenseStrategy(
            X=X,
            matrix=strategy,
            X_query=X_query,
            reconstruction=reconstruction,
            certificate=Certificate(criterion="trace", gap=1e-3),
        )
        return Release(prior=prior, measurements=(Measurement(strategy=asked, answers=answers),))

    return make


@pytest.fixture
def any_evidence(monkeypatch):
    """Learn whatever the answers say, however faintly."""
    monkeypatch.setattr("cloakgp.release.hyperparameters.quadrature.EVIDENCE", 0.0)
