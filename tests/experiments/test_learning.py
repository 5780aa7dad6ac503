"""Learning from answers compared with declared hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.privacy import OutputBounds
from experiments import priors
from experiments.datasets import DatasetUnavailableError
from experiments.priors import (
    DEFAULT_SHAPE,
    WAYS,
    Paired,
    Scale,
    Table,
    compare_learning,
    compare_shapes,
    tables,
)
from experiments.spread import mean_and_error

SCALE = Scale(rows=80, draws=3, insecure_seed=1)


@pytest.fixture
def wave(rng):
    X = rng.uniform(0.0, 10.0, size=(120, 1))
    return Table("wave", X=X, outputs=np.sin(X).ravel(), bounds=OutputBounds(-2.0, 2.0))


def test_the_standard_error_is_that_of_repeated_experiments(rng):
    means = []
    claimed = []
    centres = rng.normal(size=(4, 1))
    for _ in range(2000):
        mean, error = mean_and_error(centres + rng.normal(size=(4, 6)))
        means.append(mean)
        claimed.append(error**2)
    assert np.var(means) == pytest.approx(np.mean(claimed), rel=0.15)


def test_differences_are_to_the_declared_prior():
    errors = np.array([[1.0, 2.0], [1.5, 1.0], [1.0, 1.0]])
    paired = Paired(by_table={"one": errors, "other": errors + 1.0})
    assert paired.errors.shape == (3, 2, 2)
    assert not paired.differences[0].any()
    np.testing.assert_allclose(paired.differences[1], [[0.5, -1.0], [0.5, -1.0]])


def test_not_learning_is_the_default_shape_of_the_other_comparison(wave):
    paired = compare_learning([wave], epsilons=(1.0,), scale=SCALE)[1.0]
    shape = compare_shapes([wave], shapes=(DEFAULT_SHAPE,), scale=SCALE)["wave"]
    np.testing.assert_allclose(paired.by_table["wave"][0], shape[0], rtol=1e-6)
    assert paired.by_table["wave"].shape == (len(WAYS), SCALE.draws)


@pytest.mark.slow
def test_learning_pays_where_the_declared_lengthscale_is_far_off(rng):
    """Six waves where the default expects one, and answers good enough to tell."""
    X = rng.uniform(0.0, 10.0, size=(160, 1))
    waves = Table("w", X=X, outputs=1.8 * np.sin(2 * X).ravel(), bounds=OutputBounds(-2.0, 2.0))
    scale = Scale(rows=120, draws=4, insecure_seed=1)
    paired = compare_learning([waves], epsilons=(100.0,), scale=scale)[100.0]
    declared, *learned = paired.by_table["w"].mean(axis=1)
    assert max(learned) < 0.7 * declared


def test_the_reports_have_a_line_per_way_and_per_table(wave):
    found = compare_learning([wave], epsilons=(0.3, 1.0), scale=SCALE)
    report = priors.learning_report(found, title="toy")
    assert list(report.columns[1].cells) == 2 * list(WAYS)
    differences = found[1.0].differences[1]
    assert list(report.columns[3].cells)[4].startswith(f"{differences.mean():+.4f}")
    assert list(report.columns[6].cells)[4] == f"{differences.max():+.3f}"
    by_table = priors.learning_by_table_report(found, way=1, title="toy")
    assert list(by_table.columns[0].cells) == ["wave"]
    assert len(by_table.columns) == 3


@pytest.mark.slow
@pytest.mark.data
def test_learning_is_not_worse_than_the_defaults():
    try:
        compared = list(tables())
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    found = compare_learning(compared, epsilons=(1.0, 10.0), scale=Scale(draws=6, insecure_seed=1))
    for paired in found.values():
        for way in (1, 2):
            gain, error = mean_and_error(paired.differences[way])
            assert gain <= 2 * error
