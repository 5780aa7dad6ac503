"""What is chosen for somebody who does not choose: from public inputs and bounds alone."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel

from cloakgp.fitting import defaults as choices
from cloakgp.fitting.defaults import choose_label_prior, choose_prior, choose_query
from cloakgp.models import APPROXIMATIONS, ExactPrior, SparsePrior, default_kernel
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.questions.classes import Classes

BOUNDS = OutputBounds(-10.0, 30.0)


def test_outputs_are_no_argument():
    for chooser in (choose_prior, choose_query):
        assert "y" not in inspect.signature(chooser).parameters
    assert not hasattr(choices, "measure")


def test_the_default_prior(rng):
    X = rng.uniform(size=(20, 2)) * [8.0, 0.5]
    prior = choose_prior(X, bounds=BOUNDS)
    assert isinstance(prior, ExactPrior)
    assert prior.mean == 10.0
    assert prior.noise_variance == pytest.approx(16.0)
    assert prior.kernel == default_kernel(X, width=40.0)


@given(
    shift=st.floats(-1e6, 1e6),
    unit=st.sampled_from([1e-3, 1.0, 1e5]),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_the_default_prior_follows_units(shift, unit, scale):
    X = np.linspace(0, 7, 6)[:, None]
    plain = choose_prior(X, bounds=BOUNDS)
    other = choose_prior(
        unit * X, bounds=OutputBounds(scale * (-10.0 + shift), scale * (30.0 + shift))
    )
    np.testing.assert_allclose(
        other.row_covariance(unit * X, unit * X),
        scale**2 * plain.row_covariance(X, X),
        rtol=1e-6,
        atol=1e-12 * scale**2,
    )
    assert other.noise_variance == pytest.approx(scale**2 * plain.noise_variance, rel=1e-6)
    assert other.mean == pytest.approx(scale * (10.0 + shift), rel=1e-9, abs=1e-6 * scale)


def test_what_is_given_is_kept():
    kernel = ConstantKernel(3.0, "fixed") * RBF(2.0)
    prior = choose_prior(np.zeros((3, 1)), bounds=BOUNDS, kernel=kernel, noise_variance=0, mean=-4)
    assert prior.kernel == kernel
    assert prior.kernel is not kernel
    assert (prior.noise_variance, prior.mean) == (0.0, -4.0)
    assert isinstance(prior.mean, float)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_inducing_inputs(approximation, rng):
    X = rng.uniform(size=(40, 2))
    counted = choose_prior(X, bounds=BOUNDS, inducing=np.int64(5), approximation=approximation)
    assert isinstance(counted, SparsePrior)
    assert counted.approximation == approximation
    assert counted.inducing.shape == (5, 2)
    given_ = choose_prior(X, bounds=BOUNDS, inducing=X[:3].tolist(), approximation=approximation)
    np.testing.assert_array_equal(given_.inducing, X[:3])
    again = choose_prior(X, bounds=BOUNDS, inducing=5, approximation=approximation)
    np.testing.assert_array_equal(again.inducing, counted.inducing)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "rbf"}, "kernel must be one of scikit-learn's kernels"),
        ({"kernel": CompoundKernel([RBF()])}, "kernel must be one of scikit-learn's kernels"),
        ({"noise_variance": -1.0}, "noise_variance must be at least 0 and finite, got -1.0"),
        ({"noise_variance": np.nan}, "noise_variance must be at least 0 and finite, got nan"),
        ({"noise_variance": np.inf}, "noise_variance must be at least 0 and finite, got inf"),
        ({"noise_variance": "a"}, "noise_variance must be at least 0 and finite, got 'a'"),
        ({"noise_variance": 1e308}, "noise_variance = 1e\\+308 is beyond 1e\\+140"),
        ({"kernel": 1e300 * RBF()}, "has a variance beyond 1e\\+140"),
        ({"mean": np.nan}, "mean must be finite, got nan"),
        ({"mean": 1e308}, "lies so far beyond the bounds"),
        ({"approximation": "vfe"}, "approximation must be one of fitc, dtc, sor, got 'vfe'"),
        ({"inducing": True}, "not a truth value"),
        ({"inducing": 0}, "at least 1"),
        ({"inducing": [[1.0, 2.0]]}, "inducing has 2 columns, expected 1"),
    ],
)
def test_what_makes_no_sense_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        choose_prior(np.linspace(0, 1, 4)[:, None], bounds=BOUNDS, **changes)


def test_an_input_that_never_varies_has_a_default():
    X = np.array([[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    prior = choose_prior(X, bounds=BOUNDS)
    np.testing.assert_allclose(
        prior.row_covariance(X, X + np.array([0.0, 50.0])), prior.row_covariance(X, X), rtol=1e-6
    )


def test_an_input_that_never_varies_does_not_matter_to_a_latent_function():
    classes = Classes(("no", "yes"))
    with_it, _ = choose_label_prior(np.array([[0.0, 1.0], [2.0, 1.0]]), classes=classes)
    without, _ = choose_label_prior(np.array([[0.0], [2.0]]), classes=classes)
    np.testing.assert_allclose(
        with_it.kernel(np.array([[0.5, 1.0], [1.0, 1.0]])),
        without.kernel(np.array([[0.5], [1.0]])),
        rtol=1e-6,
    )


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 60))
def test_query_points_are_the_distinct_rows_counted(seed, rows):
    X = np.random.default_rng(seed).integers(0, 4, size=(rows, 2)).astype(float)
    query = choose_query(X)
    assert query.weights.sum() == rows
    assert len(np.unique(query.X, axis=0)) == len(query.X)
    for point, weight in zip(query.X, query.weights, strict=True):
        assert (point == X).all(axis=1).sum() == weight


def test_many_rows_are_stood_for_by_centres(monkeypatch, rng):
    monkeypatch.setattr(choices, "LARGEST_DEFAULT_QUERY", 20)
    X = rng.uniform(size=(200, 2))
    query = choose_query(X, random_state=3)
    assert query.X.shape == (20, 2)
    assert query.weights.sum() == 200
    assert (query.weights > 0).all()
    # Centres are means of what they stand for.
    np.testing.assert_allclose(query.weights @ query.X / 200, X.mean(axis=0), atol=1e-9)


def test_centres_are_as_fine_in_a_small_unit_as_in_a_large_one(monkeypatch, rng):
    """Years beside pounds: forty places in the units given would tell few ages apart."""
    monkeypatch.setattr(choices, "LARGEST_DEFAULT_QUERY", 40)
    X = np.column_stack([rng.uniform(20, 80, 400), rng.uniform(0, 1e5, 400)])
    inducing = choose_prior(X, bounds=OutputBounds(0.0, 100.0), inducing=40).inducing
    for found in (inducing, choose_query(X).X):
        spans = np.ptp(found, axis=0) / np.ptp(X, axis=0)
        # In raw units: .4 of the ages, all of the incomes.
        assert (spans > 0.7).all()
    np.testing.assert_allclose(choose_query(X[:5]).X, np.unique(X[:5], axis=0), rtol=0)
