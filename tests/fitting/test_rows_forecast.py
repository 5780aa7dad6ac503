"""Forecasts of whole rows: beside what was measured, and what moves them."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressorPrivateInputs
from cloakgp.fitting.rows_forecast import forecast_rows
from cloakgp.fitting.rows_plan import FACTOR
from cloakgp.models.axes import lines
from cloakgp.models.cosines import CosineBasis
from cloakgp.models.features import InputBox

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")


def curved(rng, rows=800):
    X = rng.uniform(size=(rows, 3))
    return X, 2 * np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] * X[:, 0] + rng.normal(size=rows)


def skewed(rng, rows=1000):
    X = rng.beta(1, 4, size=(rows, 2))
    return X, 3 * X[:, 0] + 0.7 * rng.normal(size=rows)


def two_kinds(rng, rows=1000):
    X = rng.uniform(size=(rows, 2))
    return X, (rng.uniform(size=rows) < 0.5 + 0.3 * np.sin(5 * X[:, 0])).astype(int)


NUMBERS = {
    "diabetes": lambda _: load_diabetes(return_X_y=True),
    "curved": curved,
    "skewed": skewed,
}
LABELS = {
    "iris": lambda _: load_iris(return_X_y=True),
    "wine": lambda _: load_wine(return_X_y=True),
    "cancer": lambda _: [
        part[:, :10] if part.ndim == 2 else part for part in load_breast_cancer(return_X_y=True)
    ],
    "drawn": two_kinds,
}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in ("diabetes", "iris")))
        for name in [*NUMBERS, *LABELS]
    ],
)
def test_what_noise_does_is_as_forecast_within_the_stated_factor(name, neighbours):
    X, y = {**NUMBERS, **LABELS}[name](np.random.default_rng(0))
    box = list(zip(X.min(axis=0) - 0.01, X.max(axis=0) + 0.01, strict=True))

    def model(epsilon, **changes):
        given = {"input_bounds": box, "epsilon": epsilon, "delta": len(y) ** -2.0, **changes}
        if name in LABELS:
            return DPGPClassifierPrivateInputs(classes=sorted(set(y.tolist())), **given)
        return DPGPRegressorPrivateInputs(bounds=(y.min(), y.max()), **given)

    def predicted(fitted):
        if name in LABELS:
            return fitted.predict_proba(X)
        return fitted.predict(X) / y.std()

    exact = predicted(model(1e5).fit(X, y))
    asked = {"epsilon": 2.0, "neighbours": neighbours}
    moved = [
        np.mean((predicted(model(insecure_seed=10 * seed, **asked).fit(X, y)) - exact) ** 2)
        for seed in range(2)
    ]
    expected = model(**asked).plan(len(y), epsilons=()).forecast.of_noise
    assert 1 / FACTOR < np.sqrt(np.mean(moved)) / expected < FACTOR


def test_without_noise_it_is_the_posterior_of_even_rows():
    """With ε beyond all measure: Σ_j c_j² / (1/P_j + N c_j²/σ²)."""
    asked = {"rows": 500, "axes": lines(2), "features": 20, "delta": 0.1, "neighbours": "replace"}
    basis = CosineBasis(
        box=InputBox((0.0, 0.0), (1.0, 1.0)),
        shares=(np.ones(1),) * 2,
        signal_variance=0.6,
        mean_variance=0.25,
        wanted=20,
    )
    left = basis.residual_variance(np.zeros((1, 2)))[0]
    gram = 500 * basis.scales**2
    known = 1 / (1 / np.diag(basis.weight_covariance) + gram / (0.4 + left))
    expected = np.sqrt(basis.scales**2 @ known + left)
    for found in (
        forecast_rows(epsilon=1e9, **asked).error,
        forecast_rows(epsilon=1.0, **asked).without_noise,
    ):
        assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("classes", [None, 2, 5])
def test_errors_fall_with_the_budget_and_rows_and_never_exceed_the_prior(classes):
    asked = {"axes": lines(3), "features": 40, "delta": 1e-6, "classes": classes}
    found = [
        forecast_rows(rows=rows, epsilon=epsilon, neighbours="replace", **asked).error
        for rows, epsilon in ((10, 0.01), (1000, 0.1), (1000, 1.0), (1000, 10.0), (10**5, 10.0))
    ]
    assert found == sorted(found, reverse=True)
    one = forecast_rows(rows=1000, epsilon=1.0, neighbours="replace", **asked)
    other = forecast_rows(rows=1000, epsilon=1.0, neighbours="add-remove", **asked)
    assert one.without_noise < other.error < one.error < one.prior_error
    assert one.without_noise == other.without_noise


def test_many_rows_and_inputs_are_forecast_at_once():
    found = forecast_rows(
        rows=10**8, axes=lines(500), features=200, epsilon=1.0, delta=1e-9, neighbours="replace"
    )
    assert 0 < found.error <= 1
