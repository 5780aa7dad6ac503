"""Coefficients give back what a release predicts, for every kind."""

from __future__ import annotations

import numpy as np
import pytest
from test_every_kind import KINDS, POINTS, release_of

from cloakgp.models.latent import latent_covariance, latent_variance
from cloakgp.release.coefficients import coefficients

X = POINTS.to_numpy()


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.drawn])
def test_they_are_the_latent_functions(name):
    release, means, variances, weights = release_of(name), [], [], []
    for part in coefficients(release):
        basis = latent_covariance(part.kernel, part.centres, X)
        if part.factor is not None:
            basis = np.linalg.solve(part.factor, basis)
        own = np.square(basis).sum(axis=0) if part.all_explained else None
        own = latent_variance(part.kernel, X) if own is None else own
        trend = 0.0 if part.trend is None else part.trend(X)
        means.append([each.mean + trend + each.weights @ basis for each in part.channels])
        variances.append(
            [
                np.maximum(own - np.square(each.subtracted @ basis).sum(axis=0), 0)
                + np.square(each.added @ basis).sum(axis=0)
                for each in part.channels
            ]
        )
        weights.append(part.weight)
    assert sum(weights) == pytest.approx(1.0)
    means, variances = np.array(means), np.array(variances)
    mean = np.tensordot(weights, means, axes=1)
    variance = np.tensordot(weights, variances + (means - mean) ** 2, axes=1)
    oracle = release.predict_latent(X)
    np.testing.assert_allclose(mean.T.reshape(oracle.mean.shape), oracle.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        np.sqrt(variance).T.reshape(oracle.sd.shape), oracle.sd, rtol=1e-6, atol=1e-9
    )
