"""Designs in passes against `design_strategy` on the whole cloaking matrix."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from cloakgp.design import DesignGapWarning, design_strategy
from cloakgp.design.streaming.noise import design_streamed
from cloakgp.models import APPROXIMATIONS, SparsePrior

tables = importlib.import_module("chunks")
Chunks, LastChunkLost = tables.Chunks, tables.LastChunkLost
CRITERIA = ["trace", "logdet"]
GAP = 1e-3


def prior_on(inducing, *, kernel=None, approximation="fitc", noise=0.3):
    return SparsePrior(
        kernel=kernel or ConstantKernel(2.0) * Matern(1.0, nu=1.5),
        noise_variance=noise,
        mean=0.0,
        inducing=inducing,
        approximation=approximation,
    )


class Task:
    """A table, a model and query points, with everything that passes never form."""

    def __init__(self, X, *, inducing=8, points=6, seed=0, **settings):
        self.rng = np.random.default_rng(seed)
        self.X = np.asarray(X, dtype=float)
        width = self.X.shape[1]
        self.model = prior_on(self.rng.uniform(-2, 2, size=(inducing, width)), **settings)
        self.X_query = self.rng.uniform(-2, 2, size=(points, width))
        self.C = self.model.cloaking_matrix(self.X_query, self.X)

    @classmethod
    def drawn(cls, seed=0, *, rows=120, width=2, **settings):
        rng = np.random.default_rng([seed, rows])
        return cls(rng.uniform(-2, 2, size=(rows, width)), seed=seed, **settings)

    def design(self, table=None, *, sample=20, **settings):
        return design_streamed(
            Chunks.of(self.X, rows=50) if table is None else table,
            self.model.features(self.X_query),
            model=self.model,
            sample=self.X[:sample],
            **{"gap": GAP, **settings},
        )

    def strategy(self, design):
        return design.rule.columns(*self.model.features_and_noise(self.X))


def lengths(strategy):
    return np.linalg.norm(strategy, axis=0)


def noise_of(design, *, criterion, weights=None):
    """What the criterion minimises: the mean square, or the volume's root, of L z."""
    reconstruction = design.reconstruction
    if criterion == "logdet":
        squares = np.linalg.svd(reconstruction, compute_uv=False) ** 2
        return float(np.exp(np.log(squares).mean()))
    weights = np.ones(len(reconstruction)) if weights is None else weights
    return float(np.average(np.square(reconstruction).sum(axis=1), weights=weights))


def assert_as_good(task, design, *, criterion, weights=None, gap=GAP):
    """As little noise as the whole matrix allows, for columns at most 1 long, of the same C y."""
    strategy = task.strategy(design)
    assert lengths(strategy).max() == pytest.approx(1.0, rel=1e-7)
    assert design.certificate.criterion == criterion
    assert 0 <= design.certificate.gap <= gap
    size = np.abs(task.C).max()
    np.testing.assert_allclose(design.reconstruction @ strategy, task.C, atol=1e-5 * size)
    best = design_strategy(task.C, criterion=criterion, weights=weights, gap=1e-5)
    assert len(best.strategy) == design.rule.answers
    least = noise_of(best, criterion=criterion, weights=weights)
    found = noise_of(design, criterion=criterion, weights=weights)
    assert least / (1 + 2e-5) <= found <= least * (1 + design.certificate.gap + 1e-5)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_as_little_noise_as_with_every_row_at_once(criterion, approximation):
    task = Task.drawn(approximation=approximation)
    assert_as_good(task, task.design(criterion=criterion), criterion=criterion)


@given(seed=st.integers(0, 10**6), criterion=st.sampled_from(CRITERIA), width=st.integers(1, 4))
def test_as_little_noise_for_any_table(seed, criterion, width):
    rows = 3 + seed % 150
    task = Task.drawn(seed, rows=rows, width=width, inducing=6, points=3)
    design = task.design(criterion=criterion, sample=min(rows, 10))
    assert_as_good(task, design, criterion=criterion)


@given(cuts=tables.cuts(120), criterion=st.sampled_from(CRITERIA))
def test_chunks_do_not_matter(cuts, criterion):
    task = Task.drawn()
    cut = task.design(Chunks(task.X, cuts=cuts), criterion=criterion)
    whole = task.design(Chunks(task.X), criterion=criterion)
    assert_as_good(task, cut, criterion=criterion)
    np.testing.assert_allclose(
        noise_of(cut, criterion=criterion), noise_of(whole, criterion=criterion), rtol=2 * GAP
    )


def test_a_table_smaller_than_one_chunk():
    task = Task.drawn(rows=5, points=3)
    design = task.design(Chunks.of(task.X, rows=1000), sample=5)
    assert_as_good(task, design, criterion="trace")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rows_that_are_alike_count_one_by_one(criterion):
    X = np.repeat(np.random.default_rng(5).uniform(-2, 2, size=(15, 2)), 12, axis=0)
    task = Task(X, points=3)
    assert_as_good(task, task.design(criterion=criterion, sample=180), criterion=criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_few_distinct_rows_span_few_directions(criterion):
    X = np.tile([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]], (30, 1))
    task = Task(X)
    design = task.design(criterion=criterion, sample=90)
    assert design.rule.answers == 3
    assert_as_good(task, design, criterion=criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("sample", [1, 3])
def test_a_sample_that_does_not_span_the_table(criterion, sample):
    """The columns that are missing join, round by round."""
    task = Task.drawn()
    table = Chunks.of(task.X, rows=50)
    design = task.design(table, criterion=criterion, sample=sample)
    assert len(table.passes) > 2
    assert_as_good(task, design, criterion=criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rows_that_the_model_knows_nothing_of_cost_nothing(criterion):
    """Far from every inducing input their columns are zero."""
    near = Task.drawn(kernel=RBF(0.5), points=3)
    far = Task(np.vstack([near.X, np.full((40, 2), 1e3)]), kernel=RBF(0.5), points=3)
    for sample in (160, 20):
        design = far.design(criterion=criterion, sample=sample)
        assert_as_good(far, design, criterion=criterion)
    found = far.design(Chunks.of(far.X[::-1], rows=50), criterion=criterion, sample=160)
    np.testing.assert_allclose(
        noise_of(found, criterion=criterion),
        noise_of(near.design(criterion=criterion), criterion=criterion),
        rtol=2 * GAP,
    )


def test_weights_lower_the_noise_where_they_are():
    task = Task.drawn()
    weights = np.array([100.0, 1.0, 1.0, 1.0, 1.0, 0.01])
    weighted = task.design(weights=weights)
    assert_as_good(task, weighted, criterion="trace", weights=weights)
    plain = task.design()
    assert np.linalg.norm(weighted.reconstruction[0]) < np.linalg.norm(plain.reconstruction[0])
    # Their size does not matter.
    same = task.design(weights=1e6 * weights)
    np.testing.assert_allclose(same.reconstruction, weighted.reconstruction, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_queries_of_which_nothing_is_known_ask_nothing(criterion):
    task = Task.drawn()
    design = design_streamed(
        Chunks(task.X),
        np.zeros((8, 4)),
        model=task.model,
        sample=task.X,
        criterion=criterion,
    )
    assert design.rule.answers == 0
    assert design.reconstruction.shape == (4, 0)
    assert design.certificate.gap == 0
    assert task.strategy(design).shape == (0, 120)


@pytest.mark.parametrize("gap", [0.3, 1e-2, 1e-5])
def test_the_gap_asked_for_is_certified(gap):
    task = Task.drawn(3)
    seen = []
    design = task.design(gap=gap, progress=seen.append)
    assert_as_good(task, design, criterion="trace", gap=gap)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == design.certificate.gap


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_design_that_ran_out_of_rounds_says_so(criterion, monkeypatch):
    monkeypatch.setattr("cloakgp.design.streaming.noise.ROUNDS", 1)
    task = Task.drawn()
    with pytest.warns(DesignGapWarning, match="This costs accuracy, never privacy"):
        design = task.design(criterion=criterion, sample=12)
    assert design.certificate.gap > GAP
    assert_as_good(task, design, criterion=criterion, gap=np.inf)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_pass_that_loses_its_last_chunk_is_noticed(criterion):
    """The tests above would see it: the longest column of all stands in the last chunk."""
    task = Task.drawn(noise=0.05)
    longest = lengths(task.strategy(task.design(criterion=criterion, sample=1))).argmax()
    order = np.r_[np.delete(np.arange(120), longest), longest]
    last = Task(task.X[order], noise=0.05)
    table = LastChunkLost(last.X, cuts=[60, 119], what="designing")
    with pytest.raises(AssertionError):
        assert_as_good(last, last.design(table, criterion=criterion), criterion=criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_smooth_kernels_whose_moments_lose_half_the_digits(criterion):
    """Many answers that hardly differ: what is asked must still give C y."""
    task = Task.drawn(kernel=RBF(2.0), inducing=30, points=20, rows=400, noise=0.01)
    design = task.design(criterion=criterion, sample=100)
    strategy = task.strategy(design)
    assert lengths(strategy).max() == pytest.approx(1.0, rel=1e-6)
    assert design.certificate.gap <= GAP
    np.testing.assert_allclose(
        design.reconstruction @ strategy, task.C, atol=1e-4 * np.abs(task.C).max()
    )
    if criterion == "trace":
        least = noise_of(design_strategy(task.C), criterion=criterion)
        np.testing.assert_allclose(noise_of(design, criterion=criterion), least, rtol=3 * GAP)
