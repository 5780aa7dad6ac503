"""Releases of many rows, against releases that keep every row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conditioning import learn_numbers, learning_answers, measured
from row_fits import release_rows
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from cloakgp.data import ArrayRows
from cloakgp.design.streaming.binning import CellsOfAnswers, Partition
from cloakgp.design.streaming.rules import BallRule, LinearRule, Rule
from cloakgp.fitting.strategies import Query
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.release import Hyperprior, Release
from cloakgp.release.hyperparameters.covariance import (
    LearningQuestions,
    StageOfCells,
    StagesOfCells,
    gather_sums,
)
from cloakgp.release.hyperparameters.gradients import latent_covariance_of
from cloakgp.release.hyperparameters.regression import NumbersObjective
from cloakgp.release.posterior.clipped_sums import gather_cells

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BOUNDS = OutputBounds(-2.0, 3.0)
POINTS = np.array([[0.2, 1.0], [3.0, 3.0], [1.5, 0.1], [40.0, -7.0]])
KERNEL = 1.5 * RBF([1.5, 4.0]) + WhiteKernel(0.05)


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 4, size=(70, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=70)


@pytest.fixture
def made(table):
    def make(criterion="bayes", *, chunk_rows=16, epsilon=5.0, seed=1, query=None, **settings):
        X, outputs = table
        settings = {
            "kernel": KERNEL,
            "mean": 0.4,
            "noise_variance": 0.2,
            "inducing": X[:9],
            "gap": 1e-2,
        } | settings
        return release_rows(
            ArrayRows(X, outputs, chunk_rows=chunk_rows, jobs=1, input_names=("a", "b")),
            bounds=BOUNDS,
            epsilon=epsilon,
            delta=1e-3,
            query=query or Query(X=X[::7], weights=np.linspace(1, 3, 10)),
            criterion=criterion,
            **settings,
            insecure_seed=seed,
        )

    return make


def measurement_of(release, X):
    """The same visit, with the column of every row."""
    strategy = strategy_of(release)
    return measured(
        X,
        strategy.rule.columns(*release.prior.features_and_noise(X)),
        answers_of(release),
        question=BOUNDS,
        X_query=strategy.X_query,
        reconstruction=strategy.reconstruction,
        certificate=strategy.certificate,
    )


def strategy_of(release):
    return release.measurements[0].strategy


def answers_of(release):
    return release.measurements[0].answers


def with_strategy(release, **changes):
    [one] = release.measurements
    changed = replace(one, strategy=replace(one.strategy, **changes))
    return replace(release, measurements=(changed,))


def dense_of(release, X):
    """A release that keeps every row."""
    return Release(
        prior=release.prior,
        measurements=(measurement_of(release, X),),
        learned=release.learned,
    )


def assert_predicts_alike(found, expected):
    for new_output in (False, True):
        np.testing.assert_allclose(
            found.predict(POINTS, new_output=new_output), expected.predict(POINTS), rtol=1e-7
        )
        for also in ("return_std", "return_cov"):
            ask = {also: True, "new_output": new_output}
            mine, theirs = found.predict(POINTS, **ask), expected.predict(POINTS, **ask)
            np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-7)
            np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
@pytest.mark.parametrize("approximation", ["fitc", "dtc", "sor"])
def test_it_predicts_as_one_that_keeps_every_row(criterion, approximation, made, table):
    release = made(criterion, approximation=approximation)
    dense = dense_of(release, table[0])
    assert_predicts_alike(release, dense)
    assert release.guarantee == dense.guarantee
    assert (release.n_inputs, release.n_rows) == (2, 70)
    # What is stated about every row is so.
    lengths = np.sqrt(np.square(dense.measurements[0].strategy.matrix).sum(axis=0))
    assert strategy_of(release).longest == pytest.approx(lengths.max(), rel=1e-9)
    assert dense.measurements[0].sensitivity_over_noise == pytest.approx(
        release.guarantee.mu, rel=1e-8
    )
    assert dense.measurements[0].sensitivity_over_noise <= release.guarantee.mu


@pytest.mark.parametrize("criterion", ["trace", "logdet"])
@pytest.mark.parametrize("chunk_rows", [16, 1000])
def test_raw_predictions_are_cloaked_ones(criterion, chunk_rows, made, table):
    """m + C (clip(y) − m) plus the noise that was drawn, sent through L."""
    release = made(criterion, chunk_rows=chunk_rows)
    X, outputs = table
    prior, clipped = release.prior, BOUNDS.clip(outputs)
    dense = measurement_of(release, X)
    C = prior.cloaking_matrix(strategy_of(release).X_query, X)
    np.testing.assert_allclose(
        strategy_of(release).reconstruction @ dense.strategy.matrix, C, atol=1e-6
    )
    noise = answers_of(release).values[:, 0] - dense.strategy.matrix @ (clipped - BOUNDS.middle)
    published = release.published()
    expected = prior.mean + C @ (clipped - prior.mean) + strategy_of(release).reconstruction @ noise
    np.testing.assert_allclose(published.values, expected, atol=1e-5)
    root = answers_of(release).noise_sd * strategy_of(release).reconstruction
    np.testing.assert_allclose(published.noise_cov, root @ root.T)
    np.testing.assert_array_equal(published.X, strategy_of(release).X_query)
    again = dense.published(prior)
    np.testing.assert_allclose(published.values, again.values, rtol=1e-9)


def test_sharp_answers_determine_no_raw_predictions(made):
    with pytest.raises(ValueError, match="do not determine raw predictions"):
        made("bayes").published()


def test_bad_points_are_refused(made):
    release = made()
    for points in ([[1.0]], [1.0, 2.0], [[1.0, np.nan]], np.zeros((0, 2))):
        with pytest.raises(ValueError, match="X "):
            release.predict(points)
    with pytest.raises(ValueError, match="not both"):
        release.predict(POINTS, return_std=True, return_cov=True)


def test_what_it_says_of_itself(made, table):
    release = made(seed=0)
    assert repr(release).endswith("INSECURE: seeded noise, not private.>")
    assert release.insecure
    private = made(seed=None)
    assert not private.insecure
    assert "INSECURE" not in repr(private)
    assert f"<Release of {strategy_of(private).n_answers} noisy answers about 70 rows" in repr(
        private
    )
    assert not any(str(value)[:8] in repr(private) for value in table[1])
    assert release.input_names == ("a", "b")
    assert release.fitted_prior is release.prior
    assert release.posterior.prior is release.prior
    np.testing.assert_array_equal(
        strategy_of(release).ranges, [table[0].min(axis=0), table[0].max(axis=0)]
    )


def numbers_of(thing):
    """Every number that an object holds, however deep."""
    if isinstance(thing, np.ndarray):
        yield from thing.ravel().tolist()
    elif isinstance(thing, float):
        yield thing
    elif isinstance(thing, tuple | list):
        for one in thing:
            yield from numbers_of(one)
    elif hasattr(thing, "__dict__"):
        yield from numbers_of(list(vars(thing).values()))


def test_it_holds_no_output_and_no_row(made, table):
    X, outputs = table
    release = made(inducing=5, query=Query(X=POINTS), mean=None, hyperprior=Hyperprior())
    release.predict(POINTS)
    held = set(numbers_of(release))
    assert len(held) > 100
    assert not held & set(outputs.tolist())
    assert not held & set((BOUNDS.clip(outputs) - BOUNDS.middle).tolist())
    # But for the corners of the box that holds them all.
    assert held & set(X.ravel().tolist()) == set(strategy_of(release).ranges.ravel().tolist())


# Anybody with the inputs can check it.


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
@pytest.mark.parametrize("chunk_rows", [1, 16, 1000])
def test_the_same_rows_verify_however_they_are_cut(criterion, chunk_rows, made, table):
    release = made(criterion, hyperprior=Hyperprior())
    rows = ArrayRows(table[0], np.full(70, np.nan), chunk_rows=chunk_rows, jobs=1)
    assert release.verify(rows) == pytest.approx(strategy_of(release).longest, rel=1e-9)


def verify(release, X):
    return release.verify(ArrayRows(X, np.zeros(len(X)), jobs=1))


def test_more_or_fewer_rows_do_not_verify(made, table):
    X, release = table[0], made()
    for other in (X[:-1], np.vstack([X, X[:1]])):
        with pytest.raises(ValueError, match="about 70 rows, not"):
            verify(release, other)


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
@pytest.mark.parametrize("row", [0, 33, 69])
def test_as_many_other_rows_do_not_verify(criterion, row, made, table):
    """One row somewhere else suffices, though its column is no longer than allowed."""
    release, moved = made(criterion), table[0].copy()
    moved[row] = table[0].mean(axis=0)
    with pytest.raises(ValueError, match=r"about other rows|longest column"):
        verify(release, moved)


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_a_rule_with_a_longer_column_does_not_verify(criterion, made, table):
    release = made(criterion)
    linear = LinearRule(matrix=10 * strategy_of(release).rule.matrix)
    with pytest.raises(ValueError, match=r"longest column is .*, and the guarantee allows"):
        verify(with_strategy(release, rule=linear), table[0])
    shorter = strategy_of(release).longest * (1 - 1e-6)
    with pytest.raises(ValueError, match="longest column"):
        verify(with_strategy(release, longest=shorter), table[0])


def test_one_long_column_among_many_does_not_verify(made, table):
    """The longest counts, wherever it is: a rule that is long at one row only."""
    release = made("trace")

    class LongAtOne(Rule):
        def columns(self, features, noise):
            columns = strategy_of(release).rule.columns(features, noise)
            columns[:, np.all(features == here, axis=0)] *= 1.5
            return columns

    longest = np.sqrt(
        np.square(measurement_of(release, table[0]).strategy.matrix).sum(axis=0)
    ).argmax()
    rows = ArrayRows(table[0], np.zeros(70), chunk_rows=1, jobs=1)
    here = release.prior.features_and_noise(table[0][[longest]])[0]
    with pytest.raises(ValueError, match="longest column"):
        with_strategy(release, rule=LongAtOne(matrix=strategy_of(release).rule.matrix)).verify(rows)


@pytest.mark.parametrize("first", [0, 64])
def test_columns_that_are_no_numbers_do_not_verify(first, made, table):
    """Wherever they are: a sum with NaN is none, whatever the longest of the others is."""
    release = made("bayes")

    class Broken(Rule):
        def columns(self, features, noise):
            columns = strategy_of(release).rule.columns(features, noise)
            columns[:, np.all(features == here, axis=0)] = np.nan
            return columns

    rows = ArrayRows(table[0], np.zeros(70), chunk_rows=1, jobs=1)
    here = release.prior.features_and_noise(table[0][[first]])[0]
    with pytest.raises(ValueError, match=r"longest column|other rows"):
        with_strategy(release, rule=Broken(matrix=strategy_of(release).rule.matrix)).verify(rows)


# Learning: from sums over cells, as from every row, where every row is a cell of its own.


def objectives(release, X, outputs_bounds=(-2.0, 3.0)):
    cells = Partition(centres=np.unique(X, axis=0), units=np.ones(X.shape[1]))
    rows = ArrayRows(X, np.zeros(len(X)), chunk_rows=16, jobs=1)
    prior, origin = release.prior, X.mean(axis=0)
    found = gather_cells(
        rows, prior, measurements=release.measurements[:1], table=0, cells=cells, origin=origin
    )
    inputs = found.inputs
    np.testing.assert_allclose(inputs.means, cells.centres, atol=1e-12)
    return [
        NumbersObjective.of(release.prior, answers, bounds=outputs_bounds, hyperprior=Hyperprior())
        for answers in (
            gather_sums(
                [(found.stages[0], release.measurements[0])],
                mean=0.4,
                points=inputs.means,
                counts=found.counts,
            ),
            learning_answers(release.prior, [measurement_of(release, X)]),
        )
    ]


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
@pytest.mark.parametrize("approximation", ["fitc", "dtc"])
def test_the_objective_is_the_same(criterion, approximation, made, table, rng):
    release = made(criterion, approximation=approximation)
    found, expected = objectives(release, table[0])
    assert found.size == expected.size == 6
    for position in (np.zeros(6), *rng.normal(size=(4, 6))):
        (value, slopes), (other, others) = found(position), expected(position)
        assert value == pytest.approx(other, rel=1e-7)
        np.testing.assert_allclose(slopes, others, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("average", [False, True])
def test_what_is_learned_is_the_same(average, made, table, any_evidence):  # noqa: ARG001
    release = made(epsilon=50.0, hyperprior=Hyperprior(), average=average)
    expected = learn_numbers(
        release.prior,
        [measurement_of(release, table[0])],
        hyperprior=Hyperprior(),
        average=average,
    )
    assert len(release.learned) == len(expected) == len(strategy_of(release).sums) - 1
    assert len(expected) > 3 if average else len(expected) == 1
    for one, other in zip(release.learned, expected, strict=True):
        assert one.weight == pytest.approx(other.weight, abs=1e-3)
        np.testing.assert_allclose(one.prior.kernel.theta, other.prior.kernel.theta, atol=2e-3)
        assert one.prior.noise_variance == pytest.approx(other.prior.noise_variance, rel=2e-3)
        assert one.prior.mean == pytest.approx(other.prior.mean, abs=2e-3)
    # The priors did move, and predictions under all of them are those that keep every row.
    assert release.fitted_prior.mean != release.prior.mean
    assert_predicts_alike(release, dense_of(release, table[0]))


def test_many_alike_rows_are_learned_from_as_one_each(table, rng):
    """A cell of rows that are the same is no approximation either."""
    X = np.repeat(table[0][:12], 5, axis=0)[rng.permutation(60)]
    release = release_rows(
        ArrayRows(X, np.sin(X[:, 0]), chunk_rows=7, jobs=1),
        bounds=BOUNDS,
        epsilon=5.0,
        delta=1e-3,
        kernel=1.5 * RBF(2.0),
        inducing=X[:6],
        gap=1e-2,
    )
    found, expected = objectives(release, X)
    for position in rng.normal(size=(3, 4)):
        assert found(position)[0] == pytest.approx(expected(position)[0], rel=1e-7)


# Files.


@pytest.mark.parametrize("criterion", ["bayes", "trace", "logdet"])
@pytest.mark.parametrize("learned", ["nothing", "map", "average"])
def test_the_same_doubles_come_back(criterion, learned, made, table, tmp_path, any_evidence):  # noqa: ARG001
    hyperprior = None if learned == "nothing" else Hyperprior()
    release = made(criterion, hyperprior=hyperprior, average=learned == "average", epsilon=20.0)
    release.save(tmp_path / "one.cloak")
    back = Release.load(tmp_path / "one.cloak")
    back.save(tmp_path / "two.cloak")
    assert (tmp_path / "one.cloak").read_bytes() == (tmp_path / "two.cloak").read_bytes()
    for new_output in (False, True):
        for also in ("return_std", "return_cov"):
            ask = {also: True, "new_output": new_output}
            for mine, theirs in zip(
                release.predict(POINTS, **ask), back.predict(POINTS, **ask), strict=True
            ):
                assert mine.tobytes() == theirs.tobytes()
    assert back.guarantee == release.guarantee
    assert back.insecure is release.insecure
    assert strategy_of(back).certificate == strategy_of(release).certificate
    assert repr(back) == repr(release)
    assert (back.input_names, back.output_name) == (("a", "b"), "y")
    assert type(strategy_of(back).rule) is (BallRule if criterion == "bayes" else LinearRule)
    assert len(back.learned) == len(release.learned)
    if criterion != "bayes":
        assert back.published().values.tobytes() == release.published().values.tobytes()
    verify(back, table[0])
    with pytest.raises(FileExistsError):
        release.save(tmp_path / "one.cloak")
    release.save(tmp_path / "one.cloak", overwrite=True)


def test_its_file_does_not_grow_with_the_table(table, tmp_path):
    X, outputs = table
    sizes = []
    for times in (1, 20):
        many = release_rows(
            ArrayRows(np.tile(X, (times, 1)), np.tile(outputs, times), jobs=1),
            bounds=BOUNDS,
            epsilon=1.0,
            delta=1e-3,
            query=Query(X=X[::7]),
            criterion="trace",
            inducing=X[:9],
            gap=0.1,
        )
        many.save(tmp_path / str(times))
        sizes.append((tmp_path / str(times)).stat().st_size)
        assert many.n_rows == 70 * times
    assert sizes[1] < 1.1 * sizes[0]


@pytest.mark.parametrize("length", [1.0, 2.0])
def test_cells_within_answers_tell_of_a_kernel_what_all_rows_do(length, rng):
    """Oracle: every row at its place. Learned at rows of cells, lengthscales came out too short.

    Of four inputs, a design goes by two. Cells that answers cut through say less.
    """
    X, kernel = rng.uniform(size=(2_000, 4)), 2.0 * Matern(length, nu=1.5)
    answers = Partition(centres=rng.uniform(size=(40, 2)), units=np.ones(2)).nearest(X[:, :2])
    columns = sparse.csr_array((np.ones(2_000), (answers, np.arange(2_000))), shape=(40, 2_000))
    expected = columns @ kernel(X) @ columns.T
    lost = {}
    for name, membership in (
        (
            "within answers",
            CellsOfAnswers.of(X, columns, units=np.ones(4), most=200).membership(X, columns),
        ),
        (
            "of inputs alone",
            Partition(centres=X[:200], units=np.ones(4)).membership(X),
        ),
    ):
        counts = np.maximum(membership.sum(axis=1), 1.0)
        means = (membership @ X) / counts[:, None]
        variances = np.maximum((membership @ X**2) / counts[:, None] - means**2, 0.0)
        stage = StageOfCells(
            questions=(columns @ membership.T).toarray(),
            squares=membership @ np.ones(2_000),
            in_parts=True,
        )
        table = StagesOfCells(stages=(stage,), counts=counts)
        asked = LearningQuestions(
            points=means, variances=variances, questions=table.questions, tables=(table,)
        )
        prior = ExactPrior(kernel=kernel, noise_variance=0.1, mean=0.0)
        found, _ = latent_covariance_of(prior, asked)
        lost[name] = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert lost["within answers"] < 0.02
    assert lost["within answers"] < 0.5 * lost["of inputs alone"]
