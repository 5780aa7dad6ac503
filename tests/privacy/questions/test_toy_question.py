"""A new question and its likelihood are a class each and an entry of two registries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp import ReleaseFileError, load
from cloakgp.data import ArrayRows
from cloakgp.fitting.bands import Stage, Step
from cloakgp.fitting.fit import Plan, fit
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import DesignSettings, Model
from cloakgp.fitting.visits import refine
from cloakgp.models import ExactPrior
from cloakgp.models.likelihoods import LIKELIHOODS, Likelihood, Linearisation
from cloakgp.plots import display_of
from cloakgp.privacy.ask import StrategyBound, ask, ask_chunks
from cloakgp.privacy.entries import INFINITE, MISSING, number_faults
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.questions import QUESTIONS, Question
from cloakgp.report.describe import describe

HALF = 1.0 / 2.0
PRIOR = ExactPrior(kernel=2.0 * RBF(1.5), noise_variance=1e-4, mean=0.0)


@dataclass(frozen=True)
class Above(Question):
    """Whether an output is above a threshold: ½ if it is, and −½ if not."""

    name: ClassVar = "above"
    channels: ClassVar = 1
    distance: ClassVar = 1.0
    absolute_distance: ClassVar = 1.0
    largest: ClassVar = HALF
    complaints: ClassVar = (MISSING, INFINITE)

    threshold: float

    def validate(self):
        if not np.isfinite(self.threshold):
            raise ValueError("its threshold is damaged")

    def faults(self, entries):
        return number_faults(entries)

    def encode(self, entries):
        return np.where(entries > self.threshold, HALF, -HALF)[:, None]


@dataclass(frozen=True)
class ProbitShare(Likelihood):
    """An output is above the threshold with probability Φ(f)."""

    name: ClassVar = "probit share"
    outputs: ClassVar = "numbers"

    def linearise(self, mean, variance):
        spread = np.sqrt(1.0 + variance)
        share, slope = norm.cdf(mean / spread), norm.pdf(mean / spread) / spread
        residual = share * (1.0 - share) - slope**2 * variance
        return Linearisation(expected=share - HALF, slope=slope, residual=residual)

    def linear_prior(self, prior, X):
        account = self.linearise(np.full(len(X), prior.mean), prior.query_variance(X))
        return replace(
            prior,
            kernel=ConstantKernel(float(np.mean(account.slope**2))) * prior.kernel,
            noise_variance=float(account.residual.mean()),
            mean=float(account.expected.mean()),
        )

    def predict(self, functions, X, *, return_std, return_cov, new_output):
        del return_cov, new_output
        [part] = functions.marginals(X)
        account = self.linearise(part.mean[:, 0], part.variance[:, 0])
        sd = np.abs(account.slope) * np.sqrt(part.variance[:, 0])
        return (account.expected, sd) if return_std else account.expected


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(QUESTIONS, Above.name, Above)
    monkeypatch.setitem(LIKELIHOODS, ProbitShare.name, ProbitShare)


@pytest.fixture
def table():
    X = np.linspace(0.0, 6.0, 30)[:, None]
    return X, 100.0 + 10.0 * np.sin(X[:, 0])


def fitted(X, y, *, noise="gaussian", groups=None, epsilon=100.0, stages=None):
    model = Model(prior=PRIOR, question=Above(100.0), likelihood=ProbitShare())
    plan = Plan(
        budget=Budget(epsilon, 1e-3 * (noise == "gaussian"), noise=noise),
        model=lambda _: model,
        settings=DesignSettings(query=Query(X)),
        stages=stages,
        insecure_seed=5,
    )
    return fit(HeldTable.of(X, groups=groups, output_name="height"), y, plan)


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_it_is_fitted_saved_loaded_told_and_drawn(table, tmp_path, noise):
    X, y = table
    release = fitted(X, y, noise=noise)
    clear = np.abs(y - 100.0) > 3.0
    share, sd = release.predict(X, return_std=True)
    assert np.array_equal(share[clear] > 0, y[clear] > 100.0)
    assert (sd > 0).all()
    release.save(tmp_path / "above.cloak")
    loaded = load(tmp_path / "above.cloak")
    assert loaded.measurements[0].question == Above(100.0)
    np.testing.assert_array_equal(loaded.predict(X), share)
    told = " ".join(fact.text for section in describe(loaded) for fact in section.facts)
    assert "about above of height" in told
    assert "from -0.5 to 0.5" in told
    assert len(display_of(loaded).draw().axes) == 1


def test_it_is_asked_in_stages_and_again(table):
    X, y = table
    release = fitted(X, y, epsilon=10.0, stages=[(0.5, None), (0.5, None)])
    assert [type(one.question) for one in release.measurements] == [Above, Above]
    again = refine(release, y, epsilon=5.0, delta=1e-3, insecure_seed=1)
    assert len(again.measurements) == 3
    assert (
        again.predict(X, return_std=True)[1].mean() < release.predict(X, return_std=True)[1].mean()
    )


def test_groups_and_chunks_ask_it_within_its_distance(table):
    X, y = table
    whose = np.arange(30) // 3
    release = fitted(X, y, groups=whose.tolist(), epsilon=1.0)
    [measurement] = release.measurements
    # All three outputs of a person cross the threshold: that moves answers the farthest.
    moved = 0.0
    for person in range(10):
        columns = measurement.strategy.matrix[:, whose == person].sum(axis=1)
        moved = max(moved, float(np.linalg.norm(columns)))
    assert moved / measurement.noise_sd <= measurement.guarantee.mu * (1 + 1e-9)
    bound = StrategyBound(answers=1, longest=1.0, chunk_rows=30, count=30)
    settings = {"question": Above(100.0), "epsilon": 1.0, "delta": 1e-3, "insecure_seed": 2}
    parts = ask_chunks(
        ArrayRows(X, y, chunk_rows=7), lambda X: np.ones((1, len(X))), bound=bound, **settings
    )
    whole = ask(np.ones((1, 30)), y, **settings)
    assert parts.noise_sd == pytest.approx(whole.noise_sd, rel=1e-6)
    assert parts.values[0, 0] == pytest.approx(whole.values[0, 0], abs=1e-4)


def test_whoever_does_not_know_it_refuses_its_files(table, tmp_path, monkeypatch):
    X, y = table
    fitted(X, y).save(tmp_path / "above.cloak")
    monkeypatch.delitem(QUESTIONS, "above")
    with pytest.raises(ReleaseFileError, match="unknown kind"):
        load(tmp_path / "above.cloak")


def test_what_it_forgets_is_refused(table):
    """A question that makes several numbers of an entry, and says that it makes one."""
    _, y = table

    class Several(Above):
        def encode(self, entries):
            return np.repeat(super().encode(entries), 2, axis=1)

    with pytest.raises(TypeError, match="one row of float64 numbers"):
        ask(np.ones((1, 30)), y, question=Several(1.0), epsilon=1.0, delta=1e-3)


def test_steps_are_of_its_own(table):
    X, _ = table
    step = Step(stage=Stage(share=1.0), budget=Budget(1.0, 1e-3))
    held = HeldTable.of(X)
    model = Model(prior=PRIOR, question=Above(100.0), likelihood=ProbitShare())
    design = held.design(step, model, DesignSettings(query=Query(X)), known=None)
    assert design.question == Above(100.0)
