"""The answers' covariance and its slopes against dense matrices and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from conditioning import learning_answers
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior
from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.cells import InputCells, between_cells
from cloakgp.models.kernels.linear import LinearKernel
from cloakgp.release.hyperparameters import covariance as answer_covariance
from cloakgp.release.hyperparameters import gradients
from cloakgp.release.hyperparameters.covariance import (
    LearningQuestions,
    StageOfCells,
    StagesOfCells,
)
from cloakgp.release.hyperparameters.gradients import latent_covariance_of
from cloakgp.release.tables import DenseTable

KERNELS = {
    "rbf": RBF(1.3),
    "ard": ConstantKernel(2.0) * RBF([1.3, 0.6]),
    "matern 1/2": Matern(1.1, nu=0.5),
    "matern 3/2, ard": 3.0 * Matern([0.8, 2.0], nu=1.5),
    "matern 5/2": Matern(1.1, nu=2.5),
    "rational quadratic": RationalQuadratic(length_scale=1.2, alpha=0.7),
    "periodic": ExpSineSquared(length_scale=1.4, periodicity=2.2),
    "linear": DotProduct(sigma_0=0.8),
    "sum": RBF(1.3) + 0.5 * DotProduct(0.7),
    "product": ExpSineSquared(1.5, 3.0) * Matern(4.0, nu=2.5),
    "squared": Exponentiation(RBF(1.1) + ConstantKernel(0.3), 2),
    "white": 2.0 * RBF(1.1) + WhiteKernel(0.4),
    "white inside a product": (RBF(1.1) + WhiteKernel(0.4)) * ConstantKernel(1.7),
    "white squared": Exponentiation(RBF(1.1) + WhiteKernel(0.4), 2),
    "some fixed": ConstantKernel(2.0, "fixed") * RBF(1.1) + WhiteKernel(0.4, "fixed"),
    "all fixed": ConstantKernel(2.0, "fixed") * RBF(1.1, "fixed"),
}


# No covariance functions of more than one input.
OF_ONE_INPUT = {"periodic", "product"}


def prior_of(kernel, approximation, *, noise=0.3, mean=0.4, inputs=2):
    if approximation is None:
        return ExactPrior(kernel=kernel, noise_variance=noise, mean=mean)
    grid = np.array([[0.3, 0.4], [1.5, 2.5], [2.6, 0.9], [2.0, 2.0]])
    return SparsePrior(
        kernel=kernel,
        noise_variance=noise,
        mean=mean,
        inducing=grid[:, :inputs],
        approximation=approximation,
    )


@pytest.fixture
def inputs(request):
    """As many as the kernel of the test is for."""
    name = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else None
    return 1 if name in OF_ONE_INPUT else 2


@pytest.fixture
def measurements(make_release, rng, inputs):
    """Two tables, the first asked twice, with rows that share their inputs."""
    X, Z = rng.uniform(0, 3, size=(9, inputs)), rng.uniform(0, 3, size=(6, inputs))
    X[3] = X[0]
    Z[2] = Z[5] = X[1]
    prior = prior_of(RBF(), None)
    parts = [
        make_release(
            prior,
            rows,
            rng.normal(size=len(rows)),
            strategy=rng.normal(size=(count, len(rows))),
            noise_sd=sd,
            seed=seed,
        )
        for seed, (rows, count, sd) in enumerate([(X, 3, 0.3), (Z, 2, 1.1), (X, 2, 0.7)])
    ]
    whole = parts[0].combine(*parts[1:])
    assert [measurement.strategy.table for measurement in whole.measurements] == [0, 1, 0]
    return whole.measurements


def dense(prior, measurements):
    """R K_y Rᵀ by dense matrices over all rows of all tables, in the order of `gather`."""
    tables = list(dict.fromkeys(measurement.strategy.table for measurement in measurements))
    rows = {measurement.strategy.table: measurement.strategy.X for measurement in measurements}
    X = np.vstack([rows[table] for table in tables])
    starts = dict(zip(tables, np.cumsum([0, *(len(rows[t]) for t in tables)]), strict=False))
    stacked = []
    for table in tables:
        for one in measurements:
            if one.strategy.table == table:
                block = np.zeros((one.strategy.n_answers, len(X)))
                block[:, starts[table] : starts[table] + len(one.strategy.X)] = one.strategy.matrix
                stacked.append(block / one.answers.noise_sd)
    questions = np.vstack(stacked)
    latent = prior.row_covariance(X, X.copy())
    noise = np.concatenate([prior.row_noise(rows[table]) for table in tables])
    return questions @ (latent + np.diag(noise)) @ questions.T


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
@pytest.mark.parametrize("name", KERNELS)
def test_the_covariance_is_that_of_dense_matrices(name, approximation, inputs, measurements):
    prior = prior_of(KERNELS[name], approximation, inputs=inputs)
    answers = learning_answers(None, measurements)
    covariance, _ = latent_covariance_of(prior, answers)
    covariance = covariance + prior.noise_variance * answers.row_products()
    expected = dense(prior, measurements)
    np.testing.assert_allclose(covariance, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("approximation", [None, *APPROXIMATIONS])
@pytest.mark.parametrize("name", KERNELS)
def test_slopes_are_those_of_finite_differences(name, approximation, inputs, measurements, rng):
    kernel = KERNELS[name]
    answers = learning_answers(None, measurements)
    covariance, pull_back = latent_covariance_of(
        prior_of(kernel, approximation, inputs=inputs), answers
    )
    # The covariance is symmetric, and so is what depends on it.
    weights = rng.normal(size=covariance.shape)
    weights = weights + weights.T
    gradient = pull_back(weights)
    assert gradient.shape == (len(kernel.theta),)
    step = 1e-4
    for index, slope in enumerate(gradient):
        shift = step * np.eye(len(kernel.theta))[index]
        ahead, behind = (
            latent_covariance_of(
                prior_of(
                    kernel.clone_with_theta(kernel.theta + sign * shift),
                    approximation,
                    inputs=inputs,
                ),
                answers,
            )[0]
            for sign in (1, -1)
        )
        expected = np.vdot(weights, (ahead - behind) / (2 * step))
        scale = np.abs(covariance).max() * np.abs(weights).sum()
        assert slope == pytest.approx(expected, abs=1e-5 * scale)


def test_answers_are_brought_to_unit_noise(measurements):
    answers = learning_answers(None, measurements)
    order = [0, 2, 1]
    values = [measurements[i].residuals()[:, 0] / measurements[i].answers.noise_sd for i in order]
    sums = [measurements[i].strategy.totals / measurements[i].answers.noise_sd for i in order]
    np.testing.assert_allclose(answers.values, np.concatenate(values))
    np.testing.assert_allclose(answers.sums, np.concatenate(sums))
    # Rows at one place are one learning point, within a table.
    assert len(answers.points) == 8 + 5
    assert answers.questions.shape == (7, 13)


def test_few_distinct_inputs_are_kept_as_they_are(measurements):
    points = learning_answers(None, measurements).points
    for one in measurements:
        for row in one.strategy.X:
            assert (points == row).all(axis=1).any()


def test_many_rows_are_binned_to_something_near(make_release, rng):
    X = rng.uniform(0, 3, size=(900, 2))
    prior = prior_of(2.0 * RBF(1.1) + WhiteKernel(0.4), None)
    strategy = np.vstack([np.ones(900), np.sin(X[:, 0]), np.cos(2 * X[:, 1])]) / np.sqrt(3)
    release = make_release(prior, X, rng.normal(size=900), strategy=strategy, noise_sd=2.0)
    answers = learning_answers(prior, release.measurements)
    assert len(answers.points) == answer_covariance.LEARNING_POINTS
    covariance, pull_back = latent_covariance_of(prior, answers)
    covariance = covariance + prior.noise_variance * answers.row_products()
    expected = dense(prior, release.measurements)
    np.testing.assert_allclose(covariance, expected, atol=1e-3 * np.abs(expected).max())
    # Observation noise is that of the rows, not of the points.
    np.testing.assert_allclose(answers.row_products(), strategy @ strategy.T / 4, rtol=1e-10)
    each = np.eye(3)[:1].T @ np.eye(3)[:1]
    assert pull_back(each)[2] == pytest.approx(0.4 * (strategy @ strategy.T)[0, 0] / 4, rel=1e-6)


def test_binning_is_the_limit_of_no_binning(make_release, rng, monkeypatch):
    X = rng.uniform(0, 3, size=(120, 1))
    prior = ExactPrior(kernel=RBF(0.7), noise_variance=0.3, mean=0.0)
    release = make_release(
        prior, X, rng.normal(size=120), strategy=np.cos(np.outer([1, 2, 5], X)), noise_sd=1.0
    )
    expected = dense(prior, release.measurements)
    errors = []
    for points in (6, 30, 119):
        monkeypatch.setattr(answer_covariance, "LEARNING_POINTS", points)
        answers = learning_answers(prior, release.measurements)
        assert len(answers.points) == points
        covariance = latent_covariance_of(prior, answers)[0] + 0.3 * answers.row_products()
        errors.append(np.abs(covariance - expected).max() / np.abs(expected).max())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_binning_respects_inputs_of_different_units(make_release, rng):
    X = rng.uniform(size=(900, 2)) * [1.0, 1e4]
    prior = ExactPrior(kernel=RBF([0.3, 3e3]), noise_variance=0.3, mean=0.0)
    strategy = np.vstack([np.cos(6 * X[:, 0]), np.sin(9 * X[:, 0])])
    release = make_release(prior, X, rng.normal(size=900), strategy=strategy, noise_sd=2.0)
    answers = learning_answers(prior, release.measurements)
    covariance = latent_covariance_of(prior, answers)[0] + 0.3 * answers.row_products()
    expected = dense(prior, release.measurements)
    np.testing.assert_allclose(covariance, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("rows", [30, 400], ids=["row by row", "point by point"])
def test_rows_at_one_point_are_added_up_once(rng, rows):
    """Two tables, and sums over rows that are kept per point where that is less."""
    tables = tuple(
        DenseTable(
            number=number,
            X=rng.integers(0, 4, size=(rows, 2)).astype(float),
            questions=rng.normal(size=(count, rows)),
        )
        for number, count in enumerate((5, 3))
    )
    asked = LearningQuestions.of(tables)
    assert [table.squares is None for table in asked.tables] == [rows == 30] * 2
    variances, matrix = rng.uniform(1, 2, size=len(asked.points)), rng.normal(size=(8, 8))
    expected, forms, start = np.zeros((8, 8)), np.zeros(len(asked.points)), 0
    for one in asked.tables:
        span = slice(start, start + len(one.questions))
        for column, position in zip(one.questions.T, one.positions, strict=True):
            expected[span, span] += variances[position] * np.outer(column, column)
            forms[position] += column @ matrix[span, span] @ column
        start = span.stop
    np.testing.assert_allclose(asked.row_products(variances), expected, atol=1e-9)
    np.testing.assert_allclose(asked.row_forms(matrix), forms, atol=1e-9)
    np.testing.assert_allclose(asked.row_products(), asked.row_products(np.ones_like(variances)))


def rows_of_cells(rng, *, in_parts, aligned):
    """Rows that two stages asked: their columns, the cells that they are in, and sums over cells.

    The second asks whole cells alike if they are aligned.
    """
    rows, cells = 60, 8
    places = np.arange(rows) % cells
    stages = []
    for answers, whole in ((3, False), (4, aligned)):
        if in_parts:
            which = places % answers if whole else rng.integers(answers, size=rows)
            columns = np.zeros((answers, rows))
            columns[which, np.arange(rows)] = rng.uniform(0.5, 1.0, size=cells)[places]
        else:
            columns = rng.normal(size=(answers, cells))[:, places]
        stages.append(columns)
    membership = np.equal.outer(np.arange(cells), places).astype(float)
    asked = StagesOfCells(
        stages=tuple(
            StageOfCells(
                questions=columns @ membership.T,
                squares=membership @ np.square(columns).sum(axis=0),
                in_parts=in_parts,
            )
            for columns in stages
        ),
        counts=membership.sum(axis=1),
    )
    return asked, stages, places


@pytest.mark.parametrize("in_parts", [True, False])
def test_products_over_rows_of_cells_are_those_of_rows(in_parts, rng):
    """Oracle: row by row. Exact where all rows of a cell are asked alike."""
    asked, stages, places = rows_of_cells(rng, in_parts=in_parts, aligned=True)
    variances = rng.uniform(1, 2, size=len(asked.counts))
    columns = np.vstack(stages)
    expected = (columns * variances[places]) @ columns.T
    np.testing.assert_allclose(asked.products(variances), expected, atol=1e-12)


@pytest.mark.parametrize("in_parts", [True, False])
@pytest.mark.parametrize("aligned", [True, False])
def test_forms_are_the_adjoint_of_products(in_parts, aligned, rng):
    asked, _, _ = rows_of_cells(rng, in_parts=in_parts, aligned=aligned)
    variances, matrix = rng.uniform(size=len(asked.counts)), rng.normal(size=(7, 7))
    forms = np.zeros(len(variances))
    asked.add_forms(matrix, forms)
    assert forms @ variances == pytest.approx(np.vdot(asked.products(variances), matrix))


def test_what_falls_into_parts_by_chance_is_shared_in_expectation(rng):
    """Two stages whose parts have nothing to do with each other: over draws of the first."""
    found, expected = np.zeros((7, 7)), np.zeros((7, 7))
    for _ in range(300):
        asked, stages, _ = rows_of_cells(rng, in_parts=True, aligned=False)
        columns = np.vstack(stages)
        found += asked.products(np.ones(len(asked.counts)))
        expected += columns @ columns.T
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=30.0)


def cells_and_rows(rng, *, inputs=2, each=40, spread=0.4):
    """Questions of cells, with those of all of their rows."""
    middles = rng.integers(0, 5, size=(30, inputs)).astype(float)
    X = middles[:, None, :] + rng.uniform(-spread, spread, size=(30, each, inputs))
    counts = np.full(30, float(each))
    questions = rng.normal(size=(4, 30))
    stage = StageOfCells(
        questions=questions * each, squares=np.square(questions).sum(axis=0) * each, in_parts=False
    )
    table = StagesOfCells(stages=(stage,), counts=counts)
    asked = LearningQuestions(
        points=X.mean(axis=1),
        variances=X.var(axis=1),
        questions=table.questions,
        tables=(table,),
    )
    return asked, X.reshape(-1, inputs), np.repeat(questions, each, axis=1)


SLOPING = RBF(1.3) + 2.0 * LinearKernel([1.0, 2.0], [1.0, 3.0])


@pytest.mark.parametrize("kernel", [2.0 * RBF(0.7), SLOPING, 3.0 * Matern([0.8, 2.0], nu=1.5)])
def test_the_covariance_of_answers_about_cells_is_nearly_that_of_their_rows(kernel, rng):
    """Oracle: every row at its place. Rows taken to be at one place are further from it."""
    asked, X, columns = cells_and_rows(rng)
    found, _ = latent_covariance_of(prior_of(kernel, None), asked)
    expected = columns @ kernel(X) @ columns.T
    lost = np.abs(found - expected).max()
    assert lost < 0.1 * np.abs(expected).max()
    at_means = asked.questions @ kernel(asked.points) @ asked.questions.T
    assert lost < 0.5 * np.abs(at_means - expected).max()
    assert np.linalg.eigvalsh(found).min() > 0.0


def test_cells_of_rows_that_are_alike_are_exact(rng):
    asked, X, columns = cells_and_rows(rng, spread=0.0)
    found, _ = latent_covariance_of(prior_of(SLOPING, None), asked)
    np.testing.assert_allclose(found, columns @ SLOPING(X) @ columns.T)


@pytest.mark.parametrize(
    "kernel",
    [
        3.0 * Matern([0.8, 2.0], nu=1.5) + ConstantKernel(0.5),
        SLOPING,
        2.0 * BlockMatern([1.5], blocks=[0, 0]),
    ],
)
@pytest.mark.parametrize("block", [7, 128])
def test_it_moves_with_the_kernel_as_slopes_say(kernel, block, rng, monkeypatch):
    monkeypatch.setattr(gradients, "BLOCK_CELLS", block)
    asked, _, _ = cells_and_rows(rng)
    weights = rng.normal(size=(4, 4))
    weights = weights + weights.T
    _, back = latent_covariance_of(prior_of(kernel, None), asked)

    def weighed(theta):
        moved = prior_of(kernel.clone_with_theta(theta), None)
        return float(np.vdot(weights, latent_covariance_of(moved, asked)[0]))

    expected = approx_fprime(kernel.theta, weighed, 1e-6)
    np.testing.assert_allclose(back(weights), expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("in_parts", [True, False])
def test_blocks_of_cells_are_those_of_the_whole_matrix(in_parts, rng, monkeypatch):
    """Oracle: the kernel between all cells, and what rows have of their own."""
    table, _, _ = rows_of_cells(rng, in_parts=in_parts, aligned=False)
    asked = LearningQuestions(
        points=rng.normal(size=(8, 2)),
        variances=rng.uniform(size=(8, 2)),
        questions=table.questions,
        tables=(table,),
    )
    monkeypatch.setattr(gradients, "BLOCK_CELLS", 3)
    found, _ = latent_covariance_of(prior_of(SLOPING, None), asked)
    between = between_cells(SLOPING, InputCells(means=asked.points, variances=asked.variances))
    own = between.variances - np.diag(between.matrix)
    expected = asked.questions @ between.matrix @ asked.questions.T + table.products(own)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
