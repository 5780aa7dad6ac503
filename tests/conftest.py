"""Fixtures and settings that every test shares."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from typer.main import get_command

from cloakgp import DPGPRegressor
from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate, design_strategy
from cloakgp.models import SparsePrior
from cloakgp.models.scatter import Scatter
from cloakgp.models.summary import Summary
from cloakgp.models.trend import Trend
from cloakgp.privacy import Answers, Guarantee, OutputBounds
from cloakgp.privacy.accounting import gaussian_epsilon
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.release.hyperparameters import learning
from tests.repeating import repeating_noise

# What rewrites the golden files is run where their form changes.
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
NO_BROWSER = f"there is none of {', '.join(BROWSERS)} (on Debian, apt-get install chromium)"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Seconds that anything may take on a machine that is busy with other work: hours would be noticed.
PATIENCE = 120.0


@pytest.fixture(scope="session", autouse=True)
def commands_once():
    """Read the signatures of the command line's functions once, not at every call."""
    with pytest.MonkeyPatch.context() as patch:
        # Without the name in a later version, all is as before, and slower.
        patch.setattr("typer.testing._get_command", cache(get_command), raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def statements_once():
    """Compile each statement once for all databases of a kind, not for each one anew."""
    kept, create = {}, sa.create_engine

    def created(url, **chosen):
        engine = create(url, **chosen)
        kind = engine.dialect.name, chosen.get("isolation_level")
        if kind in kept:
            engine.dialect, engine._compiled_cache = kept[kind]
        else:
            # Before its first connection, it does not know the server.
            def keep(*_):
                kept.setdefault(kind, (engine.dialect, engine._compiled_cache))

            sa.event.listen(engine, "connect", keep, once=True)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", created)
        yield


def browser_path():
    """Where a browser is; None if there is none."""
    return next((found for found in map(shutil.which, BROWSERS) if found), None)


def pytest_itemcollected(item):
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker("browser")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Say last, in one line, whether pages were tried in a browser, or why not."""
    yield
    found = {
        kind: [one for one in reports if "browser" in getattr(one, "keywords", ())]
        for kind, reports in terminalreporter.stats.items()
        if kind in ("passed", "failed", "error", "skipped")
    }
    skipped = found.pop("skipped", [])
    if ran := sum(map(len, found.values())):
        terminalreporter.write_line(f"Browser tests: {ran} ran, with {browser_path()}.")
    if skipped:
        why = skipped[0].longrepr[-1].removeprefix("Skipped: ")
        terminalreporter.write_line(f"Browser tests: {len(skipped)} skipped: {why}.")


@pytest.fixture
def few_learning_cells(monkeypatch):
    """Kernels of tables in passes are learned at fewer rows: for what depends on nothing of it."""
    monkeypatch.setattr("cloakgp.fitting.row_learning.LEARNING_CELLS", 300)
    monkeypatch.setattr("cloakgp.fitting.row_learning.SLOW_LEARNING_CELLS", 100)


@pytest.fixture
def evaluated(monkeypatch):
    """How many rows sparse models were evaluated at, each time."""
    counts, features_and_noise = [], SparsePrior.features_and_noise
    monkeypatch.setattr(
        SparsePrior,
        "features_and_noise",
        lambda self, X: counts.append(len(X)) or features_and_noise(self, X),
    )
    return counts


@pytest.fixture(scope="session")
def patience():
    """Seconds that one thing may take before it is said never to happen."""
    return PATIENCE


@pytest.fixture(scope="session")
def wait_until():
    """Wait until something holds, and return it; what takes too long fails, with what is told."""

    def waited(holds, *, told=lambda: ""):
        deadline = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert time.monotonic() < deadline, told()
            time.sleep(0.02)
        return found

    return waited


@pytest.fixture(scope="session")
def browser():
    """Chromium without a screen; tests are skipped where none is installed."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = browser_path()
    if path is None:
        pytest.skip(NO_BROWSER)
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(
                executable_path=path, args=list(FLAGS), timeout=1000 * PATIENCE
            )
        except api.Error as error:
            pytest.skip(f"{path} does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture(autouse=True, scope="session")
def _no_power_cut():
    """Do not wait for the disk: no test cuts the power. Those of `os.fsync` put their own there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def _environment_of_its_own():
    """What a module leaves in the environment ends with it: clusters tell all later children."""
    before = dict(os.environ)
    yield
    for name in {*os.environ, *before}:
        # Those of pytest say where it is.
        if name.startswith("PYTEST_"):
            continue
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]


@pytest.fixture
def rng() -> np.random.Generator:
    """The same public draws in every run of a test."""
    return np.random.default_rng(20180331)


@pytest.fixture
def noise_that_repeats():
    """The same privacy noise in every run: for what is true of most draws, and not of all."""
    with repeating_noise():
        yield


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
        question = OutputBounds(*bounds)
        longest = np.sqrt(np.square(strategy).sum(axis=0).max()) if len(strategy) else 0.0
        mu = (bounds[1] - bounds[0]) * longest / noise_sd * (1 + 1e-12) if longest else 0.0
        epsilon = gaussian_epsilon(mu, 1e-3) if mu else 1.0
        answers = Answers(
            values=(strategy @ (np.asarray(y) - question.middle) + noise)[:, None],
            noise_sd=noise_sd if len(strategy) else 0.0,
            guarantee=Guarantee(epsilon=epsilon, delta=1e-3, mu=mu, answers=len(strategy)),
        )
        asked = DenseStrategy(
            X=X,
            matrix=strategy,
            X_query=X_query,
            reconstruction=reconstruction,
            certificate=Certificate(criterion="trace", gap=1e-3),
        )
        measurement = Measurement(strategy=asked, question=question, answers=answers)
        return Release(prior=prior, measurements=(measurement,))

    return make


@pytest.fixture
def any_evidence(monkeypatch):
    """Learn whatever the answers say, however faintly."""
    monkeypatch.setattr("cloakgp.release.hyperparameters.quadrature.EVIDENCE", 0.0)
    monkeypatch.setattr("cloakgp.release.hyperparameters.learning.EVIDENCE", -np.inf)


def kept_by_content(kept, key, compute):
    """A copy of what was computed for a key of the same content, which is computed at first."""
    content = pickle.dumps(key)
    if content not in kept:
        kept[content] = pickle.dumps(compute())
    return pickle.loads(kept[content])


@pytest.fixture
def designs_once(monkeypatch):
    """Compute the questions for a public problem once, whichever neighbour is asked them.

    All that they may depend on is the key: were an output among it, they would be computed again.
    """
    kept = {}

    def once(choose):
        def chosen(criterion, problem):
            # A sparse prior keeps what it computes for a design: it must see each.
            if isinstance(problem.prior, SparsePrior):
                return choose(criterion, problem)
            key = choose.__qualname__, replace(problem, progress=None)
            return kept_by_content(kept, key, lambda: choose(criterion, problem))

        return chosen

    for kind in {type(criterion) for criterion in CRITERIA.values()}:
        if "choose" in vars(kind):
            monkeypatch.setattr(kind, "choose", once(kind.choose))


@pytest.fixture
def learns_once(monkeypatch):
    """Learn from the same published answers once, whichever neighbour gave them.

    All that is learned from is the key: were an output among it, it would be learned anew.
    """

    def once(learn):
        kept = {}

        def learned(*given, **settings):
            return kept_by_content(kept, (given, settings), lambda: learn(*given, **settings))

        return learned

    monkeypatch.setattr("cloakgp.release.release.learn", once(learning.learn))
    monkeypatch.setattr("cloakgp.fitting.row_learning.learn_numbers", once(learning.learn_numbers))


@pytest.fixture
def few_group_numbers(monkeypatch):
    """Arrays by the numbers of groups that are quick to add up; no two groups share one."""
    for module in ("utils.passes", "privacy.ask", "design.streaming.grouping"):
        monkeypatch.setattr(import_module(f"cloakgp.{module}"), "GROUP_NUMBERS", 2**12)
    monkeypatch.setattr("cloakgp.design.streaming.together.GROUP_NUMBERS", 2**12)


@pytest.fixture(scope="module")
def clustered_once():
    """Find the k-means centres of the same public rows once in a module.

    Were an output among the rows, they would be found again.
    """
    kept, cluster = {}, Summary._clustered

    def clustered(summary, count, *, random_state):
        public = summary.count, summary.sample, summary.units
        key = pickle.dumps((*public, count, random_state))
        if key not in kept:
            kept[key] = cluster(summary, count, random_state=random_state)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Summary, "_clustered", clustered)
        yield


@pytest.fixture(scope="session")
def calibrated():
    """A release whose intervals go by noisy counts, in more than one stratum."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, size=(3000, 1))
    skewed = (1.0 + X[:, 0] / 5) * (rng.gamma(1.0, size=3000) - 1.0)
    y = 30.0 + 2.0 * np.sin(X[:, 0]) + 0.3 * skewed
    model = DPGPRegressor(
        bounds=(26.0, 37.0),
        epsilon=3.0,
        inducing=10,
        interval=False,
        gap=0.05,
        insecure_seed=1,
    )
    release = model.fit(X, y).release_
    assert len(release.calibrated_by.curves) > 1
    return release


@pytest.fixture(scope="session")
def scattered():
    """A release whose noise varies with the inputs."""
    X = np.random.default_rng(8).uniform(1, 5, size=(20, 2))
    model = DPGPRegressor(bounds=(20, 40), epsilon=2.0, delta=1e-3, insecure_seed=3)
    release = model.fit(X, np.linspace(25, 35, 20)).release_
    scatter = Scatter(
        centres=X[:3], units=np.array([1.0, 2.0]), length=1.5, weights=np.array([1.0, -0.5, 7.0])
    )
    learned = [replace(one, prior=replace(one.prior, scatter=scatter)) for one in release.learned]
    return replace(release, learned=tuple(learned))


@pytest.fixture(scope="session")
def trending(scattered):
    """A release of an exact process that goes by a public prediction of outputs."""
    learned = [
        replace(one, prior=replace(one.prior, trend=Trend(column=1, centre=2.0), scatter=None))
        for one in scattered.learned
    ]
    return replace(scattered, learned=tuple(learned))
