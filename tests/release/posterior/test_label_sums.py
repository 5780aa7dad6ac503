"""Latent functions behind labels of rows that nobody keeps, against a search over all rows."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.condensing import CellQuestions, condense
from cloakgp.design.streaming.grouping import GroupedPasses, columns_at
from cloakgp.design.streaming.rules import BallRule
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.answers import Answers
from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.classes import Classes
from cloakgp.release.posterior import classification as rows_module
from cloakgp.release.posterior import label_sums as module
from cloakgp.release.posterior.classification import SignAnswers, label_posterior
from cloakgp.release.posterior.label_sums import CellSigns, label_sums, row_marginals
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.release.tables import DenseTable

tables = importlib.import_module("chunks")
Chunks = tables.Chunks

BUDGET = {"epsilon": 1.0, "delta": 1e-3}
POINTS = np.random.default_rng(8).uniform(0, 4, size=(200, 2))


def prior_of(*, means=(0.3,), link_name="probit", approximation="sor", scale=1.5, inducing=25):
    places = np.stack(np.meshgrid(*[np.linspace(0, 4, round(inducing**0.5))] * 2), -1)
    latent = SparsePrior(
        kernel=ConstantKernel(4.0) * Matern(scale, nu=1.5),
        noise_variance=4e-6,
        mean=0.0,
        inducing=places.reshape(-1, 2),
        approximation=approximation,
    )
    return weighted(latent, means=means, link_name=link_name)


def weighted(latent, *, means, link_name="probit"):
    likelihood = ClassLikelihood(link_name=link_name, latent_means=means)
    return WeightedPrior(prior=latent, likelihood=likelihood, weight=1.0)


def rule_of(linear, *, answers=12, seed=1):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(answers, len(linear.inducing)))
    return BallRule(matrix=matrix, curvatures=np.linspace(0.0, 3.0, answers))


def labels_of(X, *, count, seed=2):
    rng = np.random.default_rng(seed)
    strength = np.stack([2 * np.sin(X @ rng.normal(size=2) + one) for one in range(count)], axis=1)
    chances = np.exp(strength) / np.exp(strength).sum(axis=1, keepdims=True)
    return (rng.uniform(size=(len(X), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)


class Task:
    """Rows, what was asked of them, and the answers."""

    def __init__(
        self, rows=3000, *, count=2, cells=60, sample=None, epsilon=1.0, groups=None, **settings
    ):
        rng = np.random.default_rng(rows)
        self.X = rng.uniform(0, 4, size=(rows, 2))
        self.classes = Classes(tuple(range(count)))
        means = (0.3,) if count == 2 else tuple(-0.5 - 0.2 * one for one in range(count))
        self.prior = prior_of(means=means, **settings)
        self.linear = self.prior.likelihood.linear_prior(self.prior.prior, self.X)
        self.rule = rule_of(self.linear)
        self.passes = Chunks(self.X, cuts=range(701, rows, 701), groups=groups)
        asked = self.X
        if groups is not None:
            self.passes = GroupedPasses.of(self.passes)
            asked = np.column_stack([self.X, np.bincount(groups)[groups]])
        self.strategy, _ = columns_at(
            asked, model=self.linear, rule=self.rule, grouped=groups is not None
        )
        self.answers = ask(
            self.strategy,
            labels_of(self.X, count=count),
            question=self.classes,
            **BUDGET | {"epsilon": epsilon},
            insecure_seed=4,
        )
        centres = rng.uniform(0, 4, size=(cells, 2))
        self.cells = condense(
            self.passes,
            model=self.linear,
            rule=self.rule,
            cells=Partition(centres=centres, units=np.ones(2)),
            sample=None if sample is None else self.X[:sample],
        )
        self.signs = CellSigns.of(self.cells, self.answers, classes=self.classes)

    def sums(self, priors=None, passes=None):
        return label_sums(
            passes or self.passes,
            self.signs,
            model=self.linear,
            rule=self.rule,
            priors=priors or [self.prior],
        )

    def found(self, sums, prior=None):
        """Means and variances at some points, of every channel."""
        latent = (prior or self.prior).prior
        means = (prior or self.prior).likelihood.latent_means
        return [
            each.posterior(replace(latent, mean=mean), values).marginals(POINTS)
            for mean, each, values in zip(means, sums, self.signs.values, strict=True)
        ]

    def dense(self, prior=None):
        """The same of the posterior that keeps every row."""
        prior = prior or self.prior
        values = self.classes.about_outputs(self.answers.values, self.strategy.sum(axis=1))
        noise_sd = self.classes.output_noise_sd(self.answers.noise_sd)
        table = DenseTable(number=0, X=self.X, questions=self.strategy / noise_sd)
        return [
            label_posterior(
                replace(prior.prior, mean=mean),
                SignAnswers(tables=(table,), values=column / noise_sd),
                likelihood=prior.likelihood,
            ).marginals(POINTS)
            for mean, column in zip(prior.likelihood.latent_means, values.T, strict=True)
        ]


def assert_near(found, expected, *, share):
    """Means within a share of the sd, and sds within that share of themselves."""
    for one, other in zip(found, expected, strict=True):
        sd = np.sqrt(other.variance)
        np.testing.assert_array_less(np.abs(one.mean - other.mean), share * sd)
        np.testing.assert_array_less(np.abs(np.sqrt(one.variance) - sd), share * sd)


@pytest.fixture
def patient(monkeypatch):
    """Some channels take a search over rows seven hundred steps."""
    monkeypatch.setattr(rows_module, "STEPS", 3000)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("approximation", ["sor", "dtc", "fitc"])
@pytest.mark.parametrize(("count", "link_name"), [(2, "probit"), (2, "logit"), (3, "probit")])
def test_few_passes_find_what_a_search_over_all_rows_finds(count, link_name, approximation):
    task = Task(count=count, link_name=link_name, approximation=approximation)
    sums = task.sums()
    assert_near(task.found(sums[0]), task.dense(), share=0.01)
    assert 2 <= len(task.passes.passes) <= 1 + module.MOST_PASSES


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("count", [2, 3])
def test_rows_of_groups_weigh_less_and_the_same_is_found(count):
    groups = np.random.default_rng(6).integers(0, 900, size=3000)
    task = Task(count=count, groups=groups)
    alone = Task(count=count)
    sizes = np.bincount(groups)[groups]
    np.testing.assert_allclose(task.cells.count, 3000)
    # A row of many is asked less; of a person with one row as much as before.
    longest = np.linalg.norm(task.strategy, axis=0) * sizes
    assert longest.max() < 1.5 * np.linalg.norm(alone.strategy, axis=0).max()
    assert_near(task.found(task.sums()[0]), task.dense(), share=0.01)


def test_cells_alone_are_not_enough_and_better_cells_need_no_more_passes(monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSES", 0)
    task = Task(rows=20_000, cells=30)
    with pytest.raises(AssertionError):
        assert_near(task.found(task.sums()[0]), task.dense(), share=0.2)
    monkeypatch.setattr(module, "MOST_PASSES", 5)
    assert_near(task.found(task.sums()[0]), task.dense(), share=0.01)
    several = len(task.passes.passes)
    finer = Task(rows=20_000, cells=600)
    assert_near(finer.found(finer.sums()[0]), finer.dense(), share=0.002)
    assert len(finer.passes.passes) < several


def test_one_pass_leaves_a_tenth_of_what_cells_are_off(monkeypatch):
    task = Task(rows=6000, cells=100)
    off = []
    for most in (0, 1, 2):
        monkeypatch.setattr(module, "MOST_PASSES", most)
        monkeypatch.setattr(module, "SETTLED", 0.0)
        (found,), (exact,) = task.found(task.sums()[0]), task.dense()
        off.append(np.abs((found.mean - exact.mean) / np.sqrt(exact.variance)).max())
    assert off[1] < 0.1 * off[0]
    assert off[2] < 0.2 * off[1]


@pytest.mark.parametrize("link_name", ["probit", "logit"])
def test_a_sample_spares_passes(link_name):
    passes = {}
    for sample in (None, 2000):
        task = Task(rows=20_000, cells=20, sample=sample, link_name=link_name)
        assert_near(task.found(task.sums()[0]), task.dense(), share=0.02)
        passes[sample] = len(task.passes.passes)
    assert passes[2000] < passes[None]


def test_a_sample_of_all_rows_needs_no_pass(monkeypatch):
    monkeypatch.setattr(module, "MOST_PASSES", 0)
    task = Task(rows=2000, cells=10, sample=2000)
    assert_near(task.found(task.sums()[0]), task.dense(), share=0.01)


def test_several_priors_are_served_by_the_same_passes():
    task = Task(count=3, sample=1000)
    other = prior_of(scale=0.7, inducing=36, means=(0.0, -0.4, -0.8))
    sums = task.sums([task.prior, other])
    passes = len(task.passes.passes)
    assert_near(task.found(sums[1], other), task.dense(other), share=0.01)
    alone = task.sums([task.prior])
    assert len(task.passes.passes) - passes <= passes
    assert_near(task.found(sums[0]), task.found(alone[0]), share=0.01)


def test_chunks_may_be_cut_at_will_and_the_work_sent():
    task = Task()

    class Sent(Chunks):
        def over_inputs(self, work, *, what):
            return super().over_inputs(pickle.loads(pickle.dumps(work)), what=what)

    one, other = task.sums()[0][0], task.sums(passes=Sent(task.X, cuts=(1, 2, 2500)))[0][0]
    for name in ("features", "noise", "offset"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-9)


def test_rows_as_cells_of_their_own_need_no_pass():
    task = Task(rows=400)
    values = task.classes.about_outputs(task.answers.values, task.strategy.sum(axis=1))
    noise_sd = task.classes.output_noise_sd(task.answers.noise_sd)
    signs = CellSigns.of(
        CellQuestions.of_rows(task.X, task.strategy), task.answers, classes=task.classes
    )
    (channel,) = module._Channel.of(task.prior, signs)
    found = [channel.search().posterior.marginals(POINTS)]
    assert_near(found, task.dense(), share=1e-4)
    np.testing.assert_allclose(signs.values[0], values[:, 0] / noise_sd, rtol=1e-12)


def test_marginals_of_rows_are_those_of_the_posterior():
    task = Task(approximation="fitc")
    (sums,) = task.sums()[0]
    prior = replace(task.prior.prior, mean=0.3)
    posterior = sums.posterior(prior, task.signs.values[0])
    mean, variance = row_marginals(posterior, *prior.features_and_noise(POINTS))
    expected = posterior.marginals(POINTS)
    np.testing.assert_allclose(mean, expected.mean, atol=1e-9)
    # A row's own noise, which a nugget is, too.
    np.testing.assert_allclose(variance, expected.variance + prior.noise_variance, atol=1e-9)


def test_labels_that_all_agree_are_believed():
    """The far tail: every row of one class, at no noise to speak of."""
    task = Task(epsilon=100.0)
    answers = ask(
        task.strategy,
        np.ones(len(task.X), dtype=int),
        question=task.classes,
        epsilon=100.0,
        delta=1e-3,
        insecure_seed=0,
    )
    task.answers, task.signs = answers, CellSigns.of(task.cells, answers, classes=task.classes)
    (found,), (exact,) = task.found(task.sums()[0]), task.dense()
    assert (found.mean > 1.5).all()
    assert np.abs(found.mean - exact.mean).max() < 0.05


def test_what_takes_plain_steps_many_hundreds_takes_accelerated_ones_few(monkeypatch):
    task = Task(count=3, approximation="fitc")
    (_, slow, _), steps = task.dense(), []
    plain = ClassLikelihood.linearise

    def counted(*given, **named):
        steps.append(given)
        return plain(*given, **named)

    monkeypatch.setattr(ClassLikelihood, "linearise", counted)
    whole = rows_module.iterate_linearisation
    monkeypatch.setattr(
        rows_module,
        "iterate_linearisation",
        lambda *given, **named: whole(*given, **named | {"accelerate": True}),
    )
    (_, quick, _) = task.dense()
    assert len(steps) < 3 * 130
    monkeypatch.setattr(rows_module, "iterate_linearisation", whole)
    monkeypatch.setattr(rows_module, "STEPS", 3000)
    (_, exact, _) = task.dense()
    assert_near([quick], [exact], share=1e-3)
    assert (np.abs(slow.mean - exact.mean) / np.sqrt(exact.variance)).max() > 0.02


@pytest.mark.parametrize("count", [2, 3])
def test_nothing_asked_leaves_the_prior_and_needs_no_pass(count):
    task = Task(rows=50, count=count)
    channels = task.classes.channels
    nothing = Answers(
        values=np.zeros((12, channels)),
        noise_sd=0.0,
        guarantee=Guarantee(epsilon=1.0, delta=1e-3, mu=0.0),
    )
    task.signs = CellSigns.of(task.cells, nothing, classes=task.classes)
    passes = len(task.passes.passes)
    sums = task.sums()
    assert len(task.passes.passes) == passes
    assert len(sums[0]) == channels
    for mean, found in zip(task.prior.likelihood.latent_means, task.found(sums[0]), strict=True):
        np.testing.assert_allclose(found.mean, mean)
        np.testing.assert_allclose(found.variance, task.prior.prior.query_variance(POINTS))
        assert not found.noise_share.any()


def test_a_latent_prior_that_keeps_rows_is_refused():
    exact = ExactPrior(kernel=RBF(1.0), noise_variance=1e-6, mean=0.0)
    with pytest.raises(TypeError, match="inducing inputs"):
        module.sparse_channels(weighted(exact, means=(0.0,)))


def test_what_differences_make_negative_is_left_out(rng):
    root = rng.normal(size=(4, 4))
    positive = root @ root.T
    assert module._positive(positive) is positive
    values, vectors = np.linalg.eigh(positive)
    broken = (vectors * (values - np.array([values[0] + 0.3, 0, 0, 0]))) @ vectors.T
    expected = (vectors * (values - np.array([values[0], 0, 0, 0]))) @ vectors.T
    np.testing.assert_allclose(module._positive(broken), expected, atol=1e-12)
