"""Digits: how images are reduced, sparse models against dense ones, Newton's iteration."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models.likelihoods.classes import ClassLikelihood
from cloakgp.release.posterior.laplace import NewtonState
from experiments import digits
from experiments.classification import Mean, Task, compare, without_privacy
from experiments.datasets import DatasetUnavailableError, Digits, load_mnist_subset


@pytest.fixture
def images(rng):
    """Bright squares above for low digits and below for high ones."""
    labels = np.arange(400, dtype=np.uint8) % 10
    pixels = rng.integers(0, 60, size=(400, 28, 28))
    pixels[labels < 5, :14] += 150
    pixels[labels >= 5, 14:] += 150
    return Digits(pixels.astype(np.uint8), labels, np.arange(400, dtype=np.int32))


def test_reduction_is_the_mean_of_a_finer_grid(rng):
    images = rng.integers(0, 256, size=(3, 28, 28)).astype(np.uint8)
    # Every pixel becomes 15 × 15, and every 28 × 28 of those are averaged.
    fine = np.repeat(np.repeat(images, 15, axis=1), 15, axis=2).astype(float)
    expected = fine.reshape(3, 15, 28, 15, 28).mean(axis=(2, 4)).reshape(3, -1)
    np.testing.assert_allclose(digits.reduced(images), expected)


def test_draws_are_of_the_papers_sizes_and_apart(images):
    one, other = digits.tasks(images, 2)
    assert one.X.shape == (256, 225)
    assert one.X_test.shape == (100, 225)
    assert not np.array_equal(one.X, other.X)
    together = np.vstack([one.X, one.X_test])
    assert len(np.unique(together, axis=0)) == 356


def test_labels_say_low_or_high_or_which(images):
    (binary,) = digits.tasks(images, 1)
    (ten,) = digits.tasks(images, 1, classes=digits.TEN)
    np.testing.assert_array_equal(binary.y, ten.y >= 5)
    np.testing.assert_array_equal(ten.truths, ten.y_test)


def test_with_all_rows_as_inducing_inputs_sparse_is_dense(images):
    (one,) = digits.tasks(images, 1)
    few = Task(X=one.X[:30], y=one.y[:30], X_test=one.X_test, y_test=one.y_test)
    sparse = digits.sparse_without_privacy(380.0, inducing=30)(few, 0)
    dense = without_privacy(RBF(380.0))(few, 0)
    # The predictive variance of SoR differs, the mean does not: the same side of a half.
    sides = sparse.integrated[:, 1] > 0.5, dense.integrated[:, 1] > 0.5
    assert np.mean(sides[0] == sides[1]) > 0.95


def test_newtons_iteration_converges_without_noise_and_not_with_it(images):
    found = digits.figure_9(images, steps=8, insecure_seed=1)
    assert found.exact.shape == found.private.shape == (9, 256)
    np.testing.assert_array_equal(found.exact[0], found.private[0])
    assert found.exact[8].max() < 1e-6
    assert 0.5 < found.first_share < 1.0
    assert found.private[1:].mean(axis=1).min() > 0.01


def test_the_first_step_without_noise_is_the_papers_equation(images, monkeypatch):
    """Scikit-learn's mode after one step is C y (2021 paper, equations 10 and 11, from 0)."""
    monkeypatch.setattr(digits, "INDUCING", 6)
    one = digits.task(images, seed=0)
    prior = digits.sor_prior(one.X, lengthscale=digits.LENGTHSCALE, inducing=6)
    likelihood = ClassLikelihood(link_name="logit", latent_means=(0.0,))
    stepped = NewtonState.start(prior, likelihood, one.X).cloaking_matrix() @ np.where(
        one.y, 1.0, -1.0
    )
    optimum = digits._mode(prior.features(one.X).T, one.y, steps=100)
    found = digits.figure_9(images, steps=1, insecure_seed=1)
    np.testing.assert_allclose(found.exact[0], np.abs(optimum))
    np.testing.assert_allclose(found.exact[1], np.abs(stepped - optimum), atol=1e-8)


@pytest.mark.slow
def test_figure_8_holds_every_pair(images):
    found = digits.figure_8(images, lengthscales=(200.0, 800.0), counts=(4, 6), draws=2)
    assert set(found) == {"no privacy", "papers' mechanism", "bayes"}
    for by_length in found.values():
        assert {length: list(by_count) for length, by_count in by_length.items()} == {
            200.0: [4, 6],
            800.0: [4, 6],
        }
    assert found["no privacy"][800.0][6].hits.mean() > 0.9


@pytest.mark.data
@pytest.mark.slow
def test_bayes_reads_digits_better_than_published():
    try:
        images = load_mnist_subset()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    names = (digits.PAPERS, digits.DECLARED, digits.LEARNING)
    methods = {name: digits.METHODS[name] for name in names}
    found = compare(digits.tasks(images, 25), methods)
    for name in names[1:]:
        assert Mean.of(found[name].hits).value >= 0.79
