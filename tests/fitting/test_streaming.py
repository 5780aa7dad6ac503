"""Private fits of tables in chunks, end to end."""

from __future__ import annotations

import importlib
import pickle
import traceback
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fits import release_rows
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows, FileRows
from cloakgp.design.streaming import remembering, row_model
from cloakgp.design.streaming.rules import PartitionRule
from cloakgp.fitting import passes as row_fitting
from cloakgp.fitting import row_learning
from cloakgp.fitting.passes import RowTable
from cloakgp.fitting.strategies import Query
from cloakgp.models import default_kernel
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

door = importlib.import_module("cloakgp.privacy.grid")

BOUNDS = OutputBounds(-2.0, 3.0)
CRITERIA = ["bayes", "trace", "logdet"]
POINTS = np.array([[0.5, 1.0], [3.0, 3.0], [2.0, 0.1]])


@pytest.fixture
def table(rng):
    X = rng.uniform(0, 4, size=(90, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]


@pytest.fixture
def fit(table):
    def make(*, chunk_rows=20, epsilon=2.0, delta=1e-4, query=None, rows=None, seed=3, **settings):
        X, outputs = table
        return release_rows(
            ArrayRows(X, outputs, chunk_rows=chunk_rows, jobs=1) if rows is None else rows,
            bounds=BOUNDS,
            query=query,
            epsilon=epsilon,
            delta=delta,
            insecure_seed=seed,
            **{"inducing": 8, "gap": 1e-2} | settings,
        )

    return make


class Unread(ArrayRows):
    """Rows whose outputs nobody may see."""

    def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
        pytest.fail("the private column was read")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_mechanism_gives_what_it_promises(criterion, fit):
    release = fit(criterion=criterion, seed=None)
    assert release.n_rows == 90
    assert release.measurements[0].strategy.certificate.criterion == criterion
    assert 0 <= release.measurements[0].strategy.certificate.gap < 0.2
    assert release.guarantee.epsilon == 2.0
    assert release.guarantee.delta_at(2.0) <= 1e-4
    assert not release.insecure
    # Columns of norm 1 get the least noise that the budget allows, and no more.
    assert release.measurements[0].strategy.longest == pytest.approx(1.0, abs=1e-6)
    expected = BOUNDS.width * exact_noise_multiplier(2.0, 1e-4)
    assert release.measurements[0].answers.noise_sd == pytest.approx(expected, rel=1e-5)
    assert (release.measurements[0].strategy.reconstruction is None) == (criterion == "bayes")
    assert release.predict(POINTS).shape == (3,)


def test_defaults_come_from_inputs_and_bounds_alone(table, fit):
    X, _ = table
    release = fit()
    prior = release.prior
    assert prior.mean == BOUNDS.middle
    assert prior.noise_variance == pytest.approx(0.25)
    np.testing.assert_allclose(prior.kernel(X), default_kernel(X, width=BOUNDS.width)(X), rtol=1e-9)
    assert prior.approximation == "fitc"
    assert len(prior.inducing) == 8
    # Where the rows are, each as important as it is frequent.
    np.testing.assert_array_equal(release.measurements[0].strategy.X_query, np.unique(X, axis=0))
    np.testing.assert_array_equal(release.measurements[0].strategy.query_weights, np.ones(90))
    assert release.learned == ()
    assert (release.input_names, release.output_name) == ((), "y")


def test_default_settings(table):
    X, outputs = table
    release = release_rows(
        ArrayRows(X, outputs, jobs=1), bounds=BOUNDS, epsilon=1.0, delta=1e-4, insecure_seed=1
    )
    assert release.measurements[0].strategy.certificate.criterion == "bayes"
    # As many inducing inputs as there are rows, if they are fewer than two hundred.
    assert len(release.prior.inducing) == 90


def test_settings_arrive(table, fit):
    X, _ = table
    release = fit(
        kernel=2.0 * RBF(1.75),
        noise_variance=0.7,
        mean=-0.5,
        inducing=X[:5],
        approximation="dtc",
    )
    prior = release.prior
    assert prior.kernel.k2.length_scale == 1.75
    assert (prior.noise_variance, prior.mean, prior.approximation) == (0.7, -0.5, "dtc")
    np.testing.assert_array_equal(prior.inducing, X[:5])
    named = fit(rows=ArrayRows(*table, input_names=("a", "b"), output_name="height", jobs=1))
    assert (named.input_names, named.output_name) == (("a", "b"), "height")


def test_random_state_chooses_inducing_inputs(fit):
    one, again, other = (fit(random_state=state).prior.inducing for state in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(("criterion", "margin"), [("bayes", 2.0), ("trace", 1.02)])
def test_predictions_are_sharper_where_weights_are(criterion, margin, fit):
    """Every row tells of both slopes, and what is asked about one is not asked of the other."""
    points = np.array([[1.0, 0.0], [0.0, 1.0]])

    def uncertainty(weights):
        release = fit(
            criterion=criterion,
            query=Query(X=points, weights=np.array(weights)),
            kernel=DotProduct(1e-3),
            inducing=np.array([[4.0, 0.0], [0.0, 4.0]]),
            epsilon=1.0,
            gap=1e-4,
        )
        np.testing.assert_array_equal(release.measurements[0].strategy.query_weights, weights)
        np.testing.assert_array_equal(release.measurements[0].strategy.X_query, points)
        if criterion == "trace":
            return np.sqrt(np.diag(release.published().noise_cov))
        return release.predict(points, return_std=True)[1]

    first, second = uncertainty([1000.0, 1.0]), uncertainty([1.0, 1000.0])
    assert second[0] > margin * first[0]
    assert first[1] > margin * second[1]


def test_progress_is_told(table):
    heard = []
    release_rows(
        ArrayRows(*table, jobs=1),
        bounds=BOUNDS,
        epsilon=1.0,
        delta=1e-4,
        criterion="trace",
        inducing=8,
        progress=heard.append,
    )
    assert heard
    assert heard[-1] <= 1e-3


@pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning")
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_seed_repeats_however_rows_are_cut(criterion, fit):
    """The same noise on the same questions: apart by rounding, and by which pass saw what."""
    same = [fit(criterion=criterion, query=Query(X=POINTS), inducing=5) for _ in range(2)]
    assert (
        same[0].measurements[0].answers.values.tobytes()
        == same[1].measurements[0].answers.values.tobytes()
    )
    assert same[0].insecure
    other = fit(criterion=criterion, query=Query(X=POINTS), inducing=5, seed=4)
    assert not np.allclose(
        same[0].measurements[0].answers.values, other.measurements[0].answers.values
    )


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_chunking_does_not_matter(criterion, chunk_rows, fit, table):
    """But for which rows come first in a summary, which changes k-means: inducing are given."""
    ask = {"criterion": criterion, "query": Query(X=POINTS), "inducing": table[0][:6], "gap": 1e-8}
    one, other = fit(**ask), fit(**ask, chunk_rows=chunk_rows)
    # Answers may be rotated or mirrored: predictions, and all that is known, are not.
    np.testing.assert_allclose(
        one.predict(POINTS, return_std=True)[1],
        other.predict(POINTS, return_std=True)[1],
        rtol=1e-5,
    )
    assert one.measurements[0].strategy.longest == pytest.approx(
        other.measurements[0].strategy.longest, rel=1e-9
    )
    assert one.guarantee.mu == pytest.approx(other.guarantee.mu, rel=1e-9)


def test_files_and_arrays_give_the_same(table, fit, tmp_path):
    X, outputs = table
    frame = pd.DataFrame({"a": X[:, 0], "secret": outputs, "b": X[:, 1]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    found = [
        fit(
            rows=FileRows(
                tmp_path / name, inputs=["a", "b"], output="secret", chunk_rows=20, jobs=jobs
            )
        )
        for name, jobs in (("table.csv", 1), ("table.parquet", 2))
    ]
    expected = fit()
    for one in found:
        assert (
            one.measurements[0].answers.values.tobytes()
            == expected.measurements[0].answers.values.tobytes()
        )
        assert one.predict(POINTS).tobytes() == expected.predict(POINTS).tobytes()
        assert (one.input_names, one.output_name) == (("a", "b"), "secret")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_only_the_measurement_depends_on_outputs(criterion, fit, table, monkeypatch, tmp_path):
    """Neighbours that get the same noisy integers give files that are equal to the last byte."""
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**39,
    )
    X, outputs = table
    for name, end in (("one", -2.0), ("two", 3.0)):
        moved = outputs.copy()
        moved[17] = end
        release = fit(
            rows=ArrayRows(X, moved, chunk_rows=20, jobs=1),
            criterion=criterion,
            learn="map",
            seed=None,
        )
        # When it was made is said to the second.
        replace(release, provenance=None).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# Learning.


def test_nothing_is_learned_unless_asked_or_without_answers(fit, any_evidence):  # noqa: ARG001
    assert fit().learned == ()
    fixed = fit(
        learn="map",
        noise_variance=0.25,
        mean=0.5,
        kernel=RBF(2.0, length_scale_bounds="fixed"),
    )
    assert fixed.fitted_prior is fixed.prior
    learned = fit(learn="map", noise_variance=0.25, epsilon=50.0)
    assert learned.fitted_prior.noise_variance == learned.prior.noise_variance
    assert learned.fitted_prior.mean != learned.prior.mean


@pytest.mark.parametrize("average", [False, True])
def test_what_was_learned_sees_every_row(average, fit, table, any_evidence):  # noqa: ARG001
    """The sums under each learned prior are those of the columns that were asked."""
    release = fit(learn="average" if average else "map", epsilon=50.0)
    X, _ = table
    R = release.measurements[0].strategy.rule.columns(*release.prior.features_and_noise(X))
    strategy = release.measurements[0].strategy
    # The declared prior comes first.
    assert len(strategy.sums) == 1 + len(release.learned)
    assert strategy.sums[0].prior is release.prior
    np.testing.assert_allclose(strategy.totals, R.sum(axis=1), atol=1e-8)
    assert sum(weighted.weight for weighted in release.learned) == pytest.approx(1)
    for one, sums in zip(release.learned, strategy.sums[1:], strict=True):
        features, noise = one.prior.features_and_noise(X)
        [channel] = sums.channels
        np.testing.assert_allclose(channel.features, R @ features.T, atol=1e-8)
        np.testing.assert_allclose(channel.noise, (R * noise) @ R.T, atol=1e-8)


def test_learning_from_cells_of_several_rows_finds_the_mean(monkeypatch, rng):
    monkeypatch.setattr(row_learning, "LEARNING_CELLS", 25)
    X = rng.uniform(0, 10, size=(3000, 1))
    release = release_rows(
        ArrayRows(X, 2.2 + 0.1 * rng.normal(size=3000), chunk_rows=700, jobs=1),
        bounds=OutputBounds(-3.0, 3.0),
        epsilon=5.0,
        delta=1e-5,
        query=Query(X=np.linspace(0, 10, 20)[:, None]),
        kernel=0.1 * RBF(3.0),
        inducing=8,
        learn="map",
        gap=0.1,
        insecure_seed=0,
    )
    assert release.n_rows == 3000
    assert release.fitted_prior.mean > 0.8
    assert abs(release.predict([[5.0]])[0] - 2.2) < 0.2


# What does not make sense.


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 1e-40}, "too small"),
        ({"criterion": "functional"}, "must be one of bayes, trace, logdet for many rows"),
        ({"criterion": "wishful"}, "criterion must be"),
        ({"approximation": "exactly"}, "approximation must be"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": np.nan}, "noise_variance"),
        ({"mean": np.inf}, "mean"),
        ({"inducing": 0}, "at least 1"),
        ({"inducing": True}, "must have two dimensions"),
        ({"inducing": np.zeros((3, 5))}, "inducing has 5 columns, expected 2"),
        ({"inducing": np.full((3, 2), np.nan)}, "inducing contains NaN"),
        ({"kernel": "RBF"}, "kernel must be"),
        ({"query": Query(X=POINTS, weights=np.ones(2))}, "query weights"),
        ({"query": Query(X=POINTS, weights=np.array([1.0, 0.0, 1.0]))}, "query weights"),
        ({"query": Query(X=POINTS, weights=np.array([1.0, np.nan, 1.0]))}, "query weights"),
        ({"query": Query(X=POINTS[:, :1])}, "X_query has 1 columns, expected 2"),
        ({"query": Query(X=np.full((2, 2), np.nan))}, "X_query contains NaN"),
        ({"query": Query(X=np.zeros((0, 2)))}, "X_query needs at least one row"),
        (
            {"kernel": DotProduct(), "noise_variance": 0.0, "approximation": "dtc"},
            "noise",
        ),
    ],
)
def test_nonsense_is_refused_before_outputs_are_read(change, complaint, fit, table):
    with pytest.raises(ValueError, match=complaint):
        fit(rows=Unread(*table, jobs=1), **change)


def test_inputs_that_never_vary_tell_nothing(table, fit):
    X, outputs = table[0].copy(), table[1]
    X[:, 1] = 7.0
    release = fit(rows=ArrayRows(X, outputs, jobs=1))
    elsewhere = np.column_stack([POINTS[:, 0], np.full(len(POINTS), -7.0)])
    np.testing.assert_allclose(release.predict(POINTS), release.predict(elsewhere), atol=1e-5)
    np.testing.assert_array_equal(release.measurements[0].strategy.ranges[:, 1], [7.0, 7.0])


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rows_that_are_all_the_same(criterion, fit):
    rows = ArrayRows(np.full((50, 1), 2.0), np.full(50, 1.0), chunk_rows=20, jobs=1)
    release = fit(rows=rows, kernel=RBF(2.0), criterion=criterion, epsilon=30.0)
    # One mean of fifty outputs is all there is to know: half-way from the prior to it, and more.
    assert release.measurements[0].strategy.rule.answers == 1
    assert 0.8 < release.predict([[2.0]])[0] < 1.2


def test_as_few_rows_as_may_be(fit):
    release = fit(rows=ArrayRows([[1.0], [1.0]], [0.5, 0.6], jobs=1), kernel=RBF(2.0))
    assert release.n_rows == 2
    assert np.isfinite(release.predict([[1.0]], return_std=True)).all()


SECRETS = (0.777123456789, "s3cret-cell", np.nan, np.inf)


@pytest.mark.parametrize("secret", SECRETS)
def test_errors_about_outputs_quote_none(secret, fit, table):
    outputs = [*map(float, table[1])]
    outputs[41] = secret
    outputs[42] = None
    with pytest.raises(ValueError, match="y contains") as caught:
        fit(rows=ArrayRows(table[0], outputs, chunk_rows=20, jobs=1))
    told = "".join(traceback.format_exception(caught.value))
    for private in ("777123", "s3cret", "41", repr(float(table[1][40]))):
        assert private not in str(caught.value)
    assert "s3cret" not in told
    assert caught.value.__cause__ is None


def test_what_travels_is_public(table, fit):
    """The work of the private pass holds the questions, and nothing that outputs decided."""
    sent = []

    class Spied(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            sent.append(pickle.dumps(work))
            return super().over_rows(work, what=what, labels=labels)

    X, outputs = table
    for end in (-2.0, 3.0):
        moved = outputs.copy()
        moved[5] = end
        fit(rows=Spied(X, moved, chunk_rows=20, jobs=1))
    assert sent[0] == sent[1]


def test_outputs_are_read_once(table, fit):
    passes = []

    class Counted(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            passes.append(what)
            return super().over_rows(work, what=what, labels=labels)

    fit(rows=Counted(*table, chunk_rows=20, jobs=1), learn="average")
    assert len(passes) == 1


def test_inputs_that_change_between_passes_release_nothing(table, fit, monkeypatch):
    """A memory map that somebody writes to: the private pass itself sees longer columns."""
    X, outputs = table[0].copy(), table[1]

    class Changing(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            X[:] = X.mean(axis=0) + np.linspace(0, 1, 90)[:, None] * 100
            return super().over_rows(work, what=what, labels=labels)

    monkeypatch.setattr(door, "with_noise", None)
    with pytest.raises(ValueError, match="nothing was released"):
        fit(
            rows=Changing(X, outputs, chunk_rows=20, jobs=1),
            criterion="trace",
            kernel=DotProduct(),
        )


def test_what_rows_are_asked_is_remembered_and_changes_nothing(table, evaluated, monkeypatch):
    """Of Laplace noise: the same bits as without a memory, for fewer evaluations of the model."""
    X, outputs = table

    def release():
        evaluated.clear()
        made = release_rows(
            ArrayRows(X, outputs, chunk_rows=20, jobs=1),
            bounds=BOUNDS,
            epsilon=5.0,
            delta=0.0,
            noise="laplace",
            inducing=8,
            gap=1e-2,
            learn="map",
            insecure_seed=3,
        )
        # When it was made is said to the second.
        return replace(made, provenance=None), sum(evaluated)

    with_memory, few = release()
    rule = with_memory.measurements[0].strategy.rule
    assert isinstance(rule, PartitionRule)
    assert rule.remembered.of(X[:20]) is None
    monkeypatch.setattr(remembering, "MOST_BYTES", 0)
    monkeypatch.setattr(row_model, "MOST_BYTES", 0)
    without, many = release()
    assert with_memory.to_bytes() == without.to_bytes()
    assert few <= many - len(X)


def test_a_table_that_changes_is_asked_as_it_is(table):
    """What was remembered is of other inputs: columns are found, and measured, anew."""
    X = table[0].copy()
    asked = []

    class Changing(ArrayRows):
        def over_rows(self, work, *, what, labels=None):
            X[:] = X[::-1].copy()
            asked.append(work.columns(X[:20]))
            return super().over_rows(work, what=what, labels=labels)

    release = release_rows(
        Changing(X, table[1], chunk_rows=20, jobs=1),
        bounds=BOUNDS,
        epsilon=5.0,
        delta=0.0,
        noise="laplace",
        inducing=8,
        gap=1e-2,
        insecure_seed=3,
    )
    strategy = release.measurements[0].strategy
    assert len(asked) == 1
    expected = strategy.rule.columns(*strategy.prior.features_and_noise(X[:20]))
    np.testing.assert_array_equal(asked[0], expected)


# As a whole.


def test_it_agrees_with_a_fit_that_keeps_every_row(table):
    """Without noise to speak of, both see the same sparse model of the same rows."""
    X, outputs = table
    ask = {
        "kernel": 1.5 * RBF(1.5) + WhiteKernel(0.01),
        "noise_variance": 0.05,
        "bounds": (-2.0, 3.0),
        "epsilon": 1e5,
        "delta": 0.4,
        "noise": "gaussian",
        "inducing": X[:15],
        "learn": None,
        "insecure_seed": 0,
    }
    for criterion in CRITERIA:
        model = DPGPRegressor(**ask, criterion=criterion, stages=None)
        dense = model.fit(X, outputs, X[:40]).predict(POINTS)
        chunked = model.fit_rows(ArrayRows(X, outputs, chunk_rows=31, jobs=1), X[:40])
        np.testing.assert_allclose(chunked.predict(POINTS), dense, atol=0.02)


def test_limits_cover_as_often_as_they_say():
    """Functions drawn from the prior itself: 90 % limits hold 90 % of them, over many fits."""
    rng = np.random.default_rng(77)
    places, points = np.linspace(0, 10, 50)[:, None], np.linspace(0.5, 9.5, 10)[:, None]
    at = rng.integers(50, size=400)
    kernel = 0.5 * RBF(2.0)
    root = np.linalg.cholesky(kernel(np.vstack([places, points])) + 1e-9 * np.eye(60))
    standardised = []
    for draw in range(25):
        latent = root @ rng.normal(size=60)
        outputs = latent[at] + 0.4 * rng.normal(size=400)
        release = release_rows(
            ArrayRows(places[at], outputs, chunk_rows=150, jobs=1),
            bounds=OutputBounds(-4.0, 4.0),
            epsilon=1.0,
            delta=1e-3,
            query=Query(X=points),
            kernel=kernel,
            noise_variance=0.16,
            inducing=places[::4],
            gap=0.05,
            insecure_seed=draw,
        )
        mean, sd = release.predict(points, return_std=True)
        standardised.append((latent[50:] - mean) / sd)
        # The answers did say something.
        assert (sd < 0.9 * np.sqrt(0.5)).all()
    inside = np.abs(standardised) < stats.norm.ppf(0.95)
    # Points of one draw go together: the draws' shares give the error.
    shares = inside.mean(axis=1)
    assert abs(shares.mean() - 0.9) < 4 * shares.std() / np.sqrt(25)
    assert np.std(standardised) == pytest.approx(1, abs=0.15)


def test_cells_for_learning_are_all_rows_where_there_are_few(table):
    """So that what is learned there is no approximation."""
    cells = RowTable.of(ArrayRows(*table, jobs=1)).learning.cells_for(RBF(1.0))
    assert len(cells.centres) == 90
    assert (cells.membership(table[0]).sum(axis=1) == 1).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_designs_of_tables_beyond_a_sample_begin_with_it(noise, monkeypatch):
    """Fewer passes, as good predictions, and every column is as long as was promised."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, size=(3000, 2))
    rows = ArrayRows(X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], chunk_rows=500, jobs=1)
    made, passes = [], []
    for size in (3000, 600):
        monkeypatch.setattr(row_fitting, "summarise", partial(summarise, size=size))
        noted = []
        release = release_rows(
            rows.report_to(lambda what, done, _, noted=noted: done == 3000 and noted.append(what)),
            bounds=BOUNDS,
            epsilon=1.0,
            delta=1e-4 if noise == "gaussian" else 0.0,
            noise=noise,
            query=Query(X[100:200]),
            kernel=RBF(1.0),
            noise_variance=0.1,
            inducing=X[:25],
            gap=1e-2,
            insecure_seed=1,
        )
        assert release.verify(rows) == pytest.approx(1.0, abs=1e-9)
        made.append(release)
        passes.append([one for one in noted if one.startswith(("gathering", "designing"))])
    assert "gathering rows" in passes[0]
    assert passes[1] == ["designing, step 1"]
    left = [np.square(one.predict(X[100:200], return_std=True)[1]).sum() for one in made]
    assert left[1] <= 1.02 * left[0]
