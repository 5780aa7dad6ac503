"""Posteriors of rows that are not kept, stage after stage."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.models import SparsePrior
from cloakgp.release.posterior.row_stages import RowKnowledge, Rows

STAGES = (slice(0, 3), slice(3, 7))


@pytest.mark.parametrize("at", [[3, 7], [7], [7, 3], [3, 3, 7], [0, 7]])
def test_outputs_are_those_of_the_joint_normal_after_any_answers_before(at, rng):
    """Oracle: conditioning the rows on the first answers, whatever these were gone on from."""
    inducing = rng.normal(size=(5, 2))
    prior = SparsePrior(kernel=2.0 * RBF(1.3), noise_variance=0.3, mean=0.7, inducing=inducing)
    features, noise = prior.features_and_noise(rng.normal(size=(9, 2)))
    columns, residuals = rng.normal(size=(7, 9)), rng.normal(size=7)
    outputs = features.T @ features + np.diag(noise)
    answers = np.eye(7) + columns @ outputs @ columns.T
    inverse = np.linalg.inv(np.linalg.cholesky(answers))
    known = inverse @ columns @ features.T
    whole = RowKnowledge(
        prior=prior,
        known=known,
        inverse=inverse,
        whitened=inverse @ residuals,
        own=STAGES,
        whole=known,
    )
    rows = Rows(features, noise)
    for count in at:
        earlier = [columns[span] for span in STAGES if span.stop <= count]
        mean, variance = rows.outputs(whole.first(count), earlier)
        crossed = outputs @ columns[:count].T
        gain = np.linalg.solve(answers[:count, :count], crossed.T).T
        np.testing.assert_allclose(mean, 0.7 + gain @ residuals[:count])
        np.testing.assert_allclose(
            variance, np.diag(outputs) - np.einsum("nk,nk->n", gain, crossed)
        )
