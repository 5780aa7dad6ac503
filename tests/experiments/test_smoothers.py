"""Linear smoothers' matrices against scikit-learn's and SciPy's own predictions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_smoothing_spline
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import cloakgp
from cloakgp import cloak
from experiments import kung, smoothers
from experiments.cross_validation import Protocol
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.pages import Kept
from experiments.smoothers import smoother_matrix

PAGE = Path(cloakgp.__file__).parents[2] / "docs" / "linear-smoothers.md"


@pytest.fixture
def table(rng):
    X, X_query = rng.normal(size=(30, 2)), rng.normal(size=(7, 2))
    return X, rng.normal(size=30), X_query


def test_kernel_ridge_predicts_what_scikit_learn_does(table):
    X, y, X_query = table
    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.7).fit(X, y).predict(X_query)
    C = smoothers.kernel_ridge(X, X_query=X_query, penalty=0.3, gamma=0.7)
    np.testing.assert_allclose(C @ y, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [1, 4, 30])
def test_neighbours_predict_what_scikit_learn_does(table, count):
    X, y, X_query = table
    theirs = KNeighborsRegressor(n_neighbors=count).fit(X, y).predict(X_query)
    C = smoothers.nearest_neighbours(X, X_query=X_query, count=count)
    np.testing.assert_allclose(C @ y, theirs, rtol=1e-12)


def test_linear_regression_predicts_what_scikit_learn_does(table):
    X, y, X_query = table
    theirs = LinearRegression().fit(X, y).predict(X_query)
    C = smoothers.linear_regression(X, X_query=X_query)
    np.testing.assert_allclose(C @ y, theirs, rtol=1e-9)


def test_spline_predicts_what_scipy_does(table):
    _, y, _ = table
    x, points = np.linspace(0.0, 3.0, 30) ** 2, np.array([0.1, 2.0, 8.9])
    theirs = make_smoothing_spline(x, y, lam=0.2)(points)
    C = smoothers.smoothing_spline(x[:, None], X_query=points[:, None], penalty=0.2)
    np.testing.assert_allclose(C @ y, theirs, rtol=1e-7, atol=1e-9)


def test_spline_with_repeated_inputs_solves_the_penalised_problem_of_all_rows(rng):
    """Reinsch's normal equations (Green and Silverman 1994, section 2.3), a row at a time."""
    places = np.array([0.0, 1.0, 1.5, 3.0, 4.0, 4.2, 6.0])
    members = rng.integers(len(places), size=40)
    members[: len(places)] = np.arange(len(places))
    y, gaps, penalty = rng.normal(size=40), np.diff(places), 0.4
    second = np.zeros((len(places), len(places) - 2))
    band = np.zeros((len(places) - 2, len(places) - 2))
    for j in range(len(places) - 2):
        second[j : j + 3, j] = 1 / gaps[j], -1 / gaps[j] - 1 / gaps[j + 1], 1 / gaps[j + 1]
        band[j, j] = (gaps[j] + gaps[j + 1]) / 3
        if j:
            band[j - 1, j] = band[j, j - 1] = gaps[j] / 6
    roughness = second @ np.linalg.solve(band, second.T)
    belongs = np.eye(len(places))[members]
    fitted = np.linalg.solve(belongs.T @ belongs + penalty * roughness, belongs.T @ y)
    C = smoothers.smoothing_spline(places[members, None], X_query=places[:, None], penalty=penalty)
    np.testing.assert_allclose(C @ y, fitted, rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(alpha=0.3, kernel="rbf", gamma=0.7),
        KNeighborsRegressor(n_neighbors=4, weights="distance"),
        make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge(alpha=2.0)),
    ],
    ids=["kernel ridge", "weighted neighbours", "pipeline"],
)
def test_unit_vectors_give_the_matrix_of_any_linear_regressor(table, model):
    X, y, X_query = table
    C = smoother_matrix(model, X, X_query=X_query)
    assert C.shape == (7, 30)
    np.testing.assert_allclose(C @ y, model.fit(X, y).predict(X_query), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [DecisionTreeRegressor(max_depth=2, random_state=0), Lasso(0.05)],
)
def test_models_that_look_at_outputs_are_refused(table, model):
    X, _, X_query = table
    with pytest.raises(ValueError, match="not linear"):
        smoother_matrix(model, X, X_query=X_query)


@given(penalty=st.floats(1e-2, 1e4), count=st.integers(1, 12))
def test_rows_of_what_keeps_constants_sum_to_one(penalty, count):
    x = np.array([0.0, 1.0, 1.0, 2.5, 3.0, 4.0, 4.0, 6.0, 7.0, 7.5, 9.0, 11.0])[:, None]
    points = np.array([[0.5], [6.5], [12.0]])
    for C in (
        smoothers.smoothing_spline(x, X_query=points, penalty=penalty),
        smoothers.nearest_neighbours(x, X_query=points, count=count),
        smoothers.linear_regression(x, X_query=points),
    ):
        np.testing.assert_allclose(C.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("penalty", [0.0, -1.0, np.nan])
def test_penalties_are_positive(table, penalty):
    X, _, X_query = table
    with pytest.raises(ValueError, match="penalty"):
        smoothers.kernel_ridge(X, X_query=X_query, penalty=penalty, gamma=1.0)
    with pytest.raises(ValueError, match="penalty"):
        smoothers.smoothing_spline(X[:, :1], X_query=X_query[:, :1], penalty=penalty)


def test_cloak_releases_a_smoother_without_bias(table):
    """At a budget that hides nothing, what is published is what scikit-learn predicts."""
    X, y, X_query = table
    C = smoothers.nearest_neighbours(X, X_query=X_query, count=10)
    released = cloak(C, y, bounds=(-4, 4), epsilon=1e4, delta=0.1, insecure_seed=3)
    noise_sd = np.sqrt(np.diag(released.noise_cov))
    theirs = KNeighborsRegressor(n_neighbors=10).fit(X, y).predict(X_query)
    assert noise_sd.max() < 0.05
    assert (abs(released.values - theirs) < 6 * noise_sd).all()


def test_expected_errors_are_the_means_of_drawn_ones():
    rng = np.random.default_rng(1)
    ages = rng.uniform(0, 80, 60)
    women = pd.DataFrame({"age": ages, "height": 60 + 1.1 * ages + rng.normal(0, 8, 60)})
    found = [
        smoothers.smooth(
            women,
            matrix_for=smoothers.linear_regression,
            protocol=Protocol(folds=3, insecure_seed=seed),
        )
        for seed in range(40)
    ]
    drawn = np.mean([np.square(one.drawn) for one in found], axis=(0, 2))
    np.testing.assert_allclose(drawn, np.square(found[0].expected).mean(axis=1), rtol=0.2)
    assert (found[0].noise_sd[1] < found[0].noise_sd[0]).all()
    report = smoothers.smoothers_report({"a line": found[0]}, title="heights")
    assert report.row_count == 1


@pytest.mark.data
def test_a_line_and_few_neighbours_of_the_women():
    """A line needs little noise and says little; five neighbours say much and need much noise."""
    try:
        women = load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    protocol = Protocol(folds=4, shuffle=True, insecure_seed=0)
    line = smoothers.smooth(women, matrix_for=smoothers.linear_regression, protocol=protocol)
    few = smoothers.smooth(
        women,
        matrix_for=lambda X, *, X_query: smoothers.nearest_neighbours(X, X_query=X_query, count=5),
        protocol=protocol,
    )
    assert line.no_privacy.mean() > 2 * few.no_privacy.mean()
    assert (few.noise_sd > 5 * line.noise_sd).all()
    assert line.no_privacy.mean() < kung.BUDGET.bounds.width / 4


@pytest.mark.data
def test_the_kept_table_is_what_the_command_computes():
    """Errors without privacy and expected ones do not depend on the draw."""
    try:
        women = load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    printed = {
        name: list(map(float, cells)) for name, *cells in Kept.read("smoothers").table(1).rows
    }
    matrices = smoothers.declared_smoothers()
    assert list(printed) == list(matrices)
    for name in ("kernel ridge, RBF of 15 years, λ = 2.5", "40 nearest neighbours"):
        one = smoothers.smooth(
            women, matrix_for=matrices[name], protocol=smoothers.Smoothers().protocol
        )
        sds, expected = one.noise_sd.mean(axis=1), one.expected.mean(axis=1)
        computed = [one.no_privacy.mean(), sds[0], expected[0], sds[1], expected[1]]
        not_drawn = [printed[name][column] for column in (0, 1, 2, 4, 5)]
        np.testing.assert_allclose(not_drawn, computed, atol=0.03)


def test_the_page_runs_as_it_stands(capsys):
    """Every block of the page, one after the other; each C is that of the model it names."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    matrices = []
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        matrices.append(names.get("C"))
    assert "1-differential privacy" in capsys.readouterr().out
    X, y, X_query = (np.asarray(names[name]) for name in ("X", "y", "X_query"))
    theirs = (
        KernelRidge(alpha=5.0, kernel="rbf", gamma=0.02),
        make_pipeline(StandardScaler(), PolynomialFeatures(3), Ridge(alpha=1.0)),
        None,
        KNeighborsRegressor(n_neighbors=60),
        LinearRegression(),
    )
    for C, model in zip(matrices[1:], theirs, strict=True):
        if model is not None:
            np.testing.assert_allclose(C @ y, model.fit(X, y).predict(X_query), rtol=1e-7)
    spline = smoothers.smoothing_spline(X, X_query=X_query, penalty=5000.0)
    np.testing.assert_allclose(matrices[3], spline, atol=1e-12)
