"""The breast-cancer table by epsilon."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import breast_cancer
from experiments.classification import compare


def test_splits_part_the_table():
    one, other = breast_cancer.tasks(2)
    assert one.X.shape == (400, 30)
    assert one.X_test.shape == (169, 30)
    together = np.vstack([one.X, one.X_test])
    np.testing.assert_allclose(together.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(together.std(axis=0), 1.0)
    assert not np.array_equal(one.X, other.X)
    # 212 of 569 are malignant.
    assert one.y.sum() + one.y_test.sum() == 212


def test_the_papers_noise_is_asked_only_where_it_is_private():
    assert breast_cancer.PAPERS in breast_cancer.methods(1.0)
    assert breast_cancer.PAPERS not in breast_cancer.methods(3.0)


@pytest.mark.slow
def test_more_budget_helps():
    found = {
        epsilon: compare(
            breast_cancer.tasks(10),
            {breast_cancer.DECLARED: breast_cancer.methods(epsilon)[breast_cancer.DECLARED]},
        )[breast_cancer.DECLARED]
        for epsilon in (0.1, 1.0)
    }
    assert found[1.0].hits.mean() > 0.93
    assert found[1.0].hits.mean() > found[0.1].hits.mean()
