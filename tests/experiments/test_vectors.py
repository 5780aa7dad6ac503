"""Images as vectors: what is compared, and how."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.models import default_latent_kernel
from experiments import progress
from experiments.vectors import MEASURES, Vectors, _measures, eights, scale_for_each


def test_a_scale_for_each_is_the_default_of_inputs_of_several_units():
    X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 50.0, 0.01]
    np.testing.assert_allclose(scale_for_each(X)(X), default_latent_kernel(X)(X))


def test_of_many_inputs_of_one_unit_the_default_is_another():
    images = eights(0, components=16, rows=80)
    assert images.X.shape == (80, 16)
    apart = scale_for_each(images.X)(images.X) - default_latent_kernel(images.X)(images.X)
    assert np.abs(apart).max() > 0.5


def test_certain_and_right_is_perfect():
    images = eights(0, components=16, rows=60)
    perfect = np.eye(10)[images.labels_test]
    accuracy, loss = _measures(perfect, images)
    assert accuracy == 100.0
    assert loss == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.data
def test_its_small_version_has_a_table():
    experiment = Vectors(rows=30, draws=2, insecure_seed=0)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == 10
    assert len(table.columns) == 2 + len(MEASURES)
