"""Hyperparameters of classes from cells, where no row is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cloakgp.design.streaming.condensing import CellQuestions
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.release.hyperparameters.classification import LabelObjective
from cloakgp.release.hyperparameters.covariance import CellAnswers, LearningQuestions
from cloakgp.release.hyperparameters.hyperprior import Hyperprior
from cloakgp.release.hyperparameters.learning import learn_classes, minimise
from cloakgp.release.posterior.label_sums import CellSigns
from cloakgp.release.posterior.mixture import WeightedPrior
from cloakgp.release.tables import DenseTable


def prior_of(*, means=(0.2,), lengthscales=(1.0, 1.5)):
    latent = SparsePrior(
        kernel=ConstantKernel(2.0) * Matern(list(lengthscales), nu=1.5),
        noise_variance=2e-6,
        mean=0.0,
        inducing=np.random.default_rng(3).uniform(0, 3, size=(9, 2)),
    )
    return weighted(latent, means=means)


def weighted(latent, *, means):
    likelihood = ClassLikelihood(link_name="probit", latent_means=means)
    return WeightedPrior(prior=latent, likelihood=likelihood, weight=1.0)


def learned_from_cells(declared, signs, *, means=True, average=False):
    hyperprior = Hyperprior(noise_variance=False, mean=means)
    return learn_classes(
        declared.prior, declared.likelihood, signs, hyperprior=hyperprior, average=average
    )


def smooth_questions(X, *, answers=6):
    """Columns that change slowly from place to place, as those of a design do."""
    rng = np.random.default_rng(5)
    waves = np.sin(rng.normal(size=(answers, 2)) @ X.T + rng.uniform(0, 6, size=(answers, 1)))
    return waves / np.linalg.norm(waves, axis=0)


def gathered(X, questions, *, cells):
    """Rows in a grid of cells."""
    side = 3.0 / cells
    at = np.clip(X // side, 0, cells - 1) @ [cells, 1.0]
    _, positions = np.unique(at, return_inverse=True)
    return CellQuestions.of_rows(X, questions).gathered(positions)


@pytest.fixture
def rows(rng):
    X = rng.uniform(0, 3, size=(4000, 2))
    labels = np.where(np.sin(2 * X[:, 0]) + rng.normal(size=4000) > 0, 1.0, -1.0)
    questions = smooth_questions(X, answers=20) / 6.0
    values = questions @ labels + rng.normal(size=20)
    return X, questions, values[None, :]


def objective_of(questions, values, *, prior=None):
    chosen = prior or prior_of()
    return LabelObjective(
        prior=chosen.prior,
        likelihood=chosen.likelihood,
        questions=questions,
        values=values,
        means=True,
    )


def test_cells_of_one_row_say_what_rows_say(rng):
    X, questions = rng.uniform(0, 3, size=(40, 2)), rng.normal(size=(6, 40))
    values = rng.normal(size=(1, 6))
    cells = CellQuestions.of_rows(X, questions)
    table = DenseTable(number=0, X=X, questions=questions)
    one = objective_of(LearningQuestions.of_cells(cells), values)
    other = objective_of(LearningQuestions.of([table]), values)
    for _ in range(3):
        position = rng.normal(size=4)
        (value, slopes), (expected, expected_slopes) = one(position), other(position)
        assert value == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("cells", [3, 8])
def test_slopes_are_those_of_the_value(rows, cells):
    X, questions, values = rows
    found = objective_of(
        LearningQuestions.of_cells(gathered(X, questions, cells=cells)),
        np.vstack([values, -values, values]),
        prior=prior_of(means=(0.2, -0.3, 0.0)),
    )
    position = np.linspace(-0.5, 0.5, found.size)
    expected = optimize.approx_fprime(position, lambda at: found(at)[0], 1e-6)
    np.testing.assert_allclose(found(position)[1], expected, rtol=1e-3, atol=1e-3)


def test_a_value_from_cells_is_near_that_from_rows(rows):
    X, questions, values = rows
    table = DenseTable(number=0, X=X, questions=questions)
    exact = objective_of(LearningQuestions.of([table], most=600), values)
    near = objective_of(LearningQuestions.of_cells(gathered(X, questions, cells=15)), values)
    for position in (np.zeros(4), np.array([0.5, -0.5, 0.3, 0.2]), np.array([-1.0, 1.0, 0, -0.5])):
        assert near(position)[0] == pytest.approx(exact(position)[0], abs=0.15)


def test_what_is_learned_from_cells_is_learned_from_rows(rows):
    X, questions, values = rows
    table = DenseTable(number=0, X=X, questions=questions)
    declared = prior_of(lengthscales=(8.0, 0.3))
    (expected,) = minimise(
        objective_of(LearningQuestions.of([table], most=300), values, prior=declared),
        declared=declared,
        average=False,
    )
    signs = CellSigns(cells=gathered(X, questions, cells=15), values=values, noise_sd=1.0)
    (found,) = learned_from_cells(declared, signs)
    np.testing.assert_allclose(found.prior.kernel.theta, expected.prior.kernel.theta, atol=0.1)
    np.testing.assert_allclose(
        found.likelihood.latent_means, expected.likelihood.latent_means, atol=0.05
    )
    # Neither is what was declared.
    assert np.abs(found.prior.kernel.theta - declared.prior.kernel.theta).max() > 0.5
    averaged = learned_from_cells(declared, signs, average=True)
    assert len(averaged) > 1
    assert sum(one.weight for one in averaged) == pytest.approx(1.0)


def test_many_cells_are_gathered_in_fewer(rows):
    X, questions, _ = rows
    cells = gathered(X, questions, cells=15)
    found = LearningQuestions.of_cells(cells, most=50)
    (table,) = found.tables
    assert found.points.shape == (50, 2)
    np.testing.assert_allclose(found.sums, cells.totals, rtol=1e-9)
    np.testing.assert_allclose(found.row_products(), questions @ questions.T, rtol=1e-9)
    assert isinstance(table, CellAnswers)
    assert table.cells.count == 4000


def test_cells_stand_where_they_are_told_among_points(rows):
    X, questions, _ = rows
    cells = gathered(X, questions, cells=3)
    variances = np.arange(20.0)
    placed, forms = CellAnswers(cells=cells, first=4), np.zeros(20)
    np.testing.assert_allclose(placed.products(variances), cells.row_products(variances[4:13]))
    placed.add_forms(np.eye(20), forms)
    placed.add_forms(np.eye(20), forms)
    np.testing.assert_allclose(forms[4:13], 2 * cells.row_forms(np.eye(20)))
    assert not forms[:4].any()
    assert not forms[13:].any()


def test_nothing_asked_teaches_nothing(rng):
    cells = CellQuestions.of_rows(rng.uniform(size=(3, 2)), np.zeros((0, 3)))
    signs = CellSigns(cells=cells, values=np.zeros((1, 0)), noise_sd=0.0)
    declared = prior_of()
    (found,) = learned_from_cells(declared, signs)
    assert found.prior is declared.prior
    fixed = replace(prior_of().prior, kernel=ConstantKernel(1.0, "fixed"))
    (same,) = learned_from_cells(
        weighted(fixed, means=(0.0,)),
        CellSigns(
            cells=CellQuestions.of_rows(rng.uniform(size=(3, 2)), np.eye(3)),
            values=np.ones((1, 3)),
            noise_sd=1.0,
        ),
        means=False,
    )
    assert same.prior is fixed
