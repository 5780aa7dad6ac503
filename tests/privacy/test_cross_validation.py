"""Errors on held-out rows are linear in the outputs, and of the rows that were held out."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models import ExactPrior
from cloakgp.privacy.cross_validation import deal, held_out_errors


def test_residuals_are_those_of_predictions_from_the_other_folds(rng):
    X, y = rng.uniform(0, 5, size=(12, 1)), rng.normal(size=12)
    prior = ExactPrior(kernel=RBF(1.0), noise_variance=1.0, mean=0.0)
    splits = deal(12, folds=3)
    errors = held_out_errors(
        prior, X, splits=splits, answer_sd=0.5, predictions="raw", criterion="trace"
    )
    residuals = errors.residual_map @ y
    for train, held_out in splits:
        predicted = prior.cloaking_matrix(X[held_out], X[train]) @ y[train]
        assert residuals[held_out] == pytest.approx(y[held_out] - predicted)
    assert np.all(errors.noise_variance > 0)


def test_folds():
    for shuffle in (False, True):
        splits = deal(11, folds=4, shuffle=shuffle)
        held_out = np.concatenate([rows for _, rows in splits])
        assert np.array_equal(np.sort(held_out), np.arange(11))
        assert np.array_equal(held_out, np.arange(11)) is not shuffle
        assert all(not set(train) & set(rows) for train, rows in splits)
