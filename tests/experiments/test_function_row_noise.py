"""Row noises for whole functions (2018 paper, discussion)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cloakgp.models import rkhs
from experiments import function_row_noise, kung2018
from experiments.cross_validation import Protocol
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.function_row_noise import BY_ROW, SHARED, WAYS


@pytest.fixture
def X(rng):
    """Most rows close together, one far from them."""
    return np.append(rng.normal(20.0, 8.0, size=30), 90.0)[:, None]


@pytest.fixture
def believed(X):
    return function_row_noise.declared(kung2018.prior_for(X), X)


def test_with_the_declared_noise_the_sensitivity_is_the_packages(X, believed):
    prior = kung2018.prior_for(X)
    assert believed.sensitivity == pytest.approx(rkhs.rkhs_sensitivity(prior, X), rel=1e-6)
    bounds = rkhs.sensitivity_bounds(prior, X)
    expected = np.sqrt(kung2018.SIGNAL_VARIANCE) * believed.infinity_norm
    assert bounds.infinity == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_the_target_is_met_and_no_row_is_believed_more(believed, way, share):
    found = function_row_noise.raised(believed, share=share, way=way)
    tolerance = 2 * function_row_noise.TOLERANCE
    assert found.sensitivity == pytest.approx(share * believed.sensitivity, rel=tolerance)
    assert (found.variance >= believed.variance * (1 - 1e-12)).all()
    if way == SHARED:
        factors = found.variance / believed.variance
        np.testing.assert_allclose(factors, factors[0])


@pytest.mark.parametrize("way", WAYS)
def test_no_neighbour_moves_the_function_further(believed, way, rng):
    """Brute force: the norm of f − f′ in the kernel's space, for every row and many tables."""
    found = function_row_noise.raised(believed, share=0.3, way=way)
    norms = []
    for row in range(31):
        outputs = rng.uniform(-50.0, 50.0, size=31)
        outputs[row] = -50.0
        moved = outputs.copy()
        moved[row] = 50.0
        apart = found.inverse @ (moved - outputs)
        norms.append(float(np.sqrt(apart @ found.covariance @ apart)))
    assert max(norms) == pytest.approx(100.0 * found.sensitivity, rel=1e-9)


def test_the_lonely_row_is_believed_least(believed):
    found = function_row_noise.raised(believed, share=0.5, way=BY_ROW)
    factors = found.variance / believed.variance
    assert factors.argmax() == 30
    assert np.median(factors) == pytest.approx(1.0, abs=0.2)


def test_by_row_follows_the_outputs_more_than_one_factor_does(rng):
    age = np.concatenate([rng.uniform(0.0, 40.0, size=50), rng.uniform(60.0, 90.0, size=4)])
    women = pd.DataFrame({"age": rng.permutation(age)})
    women["height"] = 70.0 + 80.0 * np.minimum(women["age"] / 18.0, 1.0)
    found = function_row_noise.outcomes(women, shares=(0.2,), protocol=Protocol(folds=3))
    by_row, shared = (found[way][0.2] for way in WAYS)
    assert by_row.noise_sd == pytest.approx(shared.noise_sd, rel=1e-3)
    assert by_row.bias < shared.bias
    for one in (by_row, shared):
        assert one.error**2 == pytest.approx(one.bias**2 + one.noise_sd**2, rel=1e-9)


@pytest.mark.data
def test_whole_functions_of_the_women_become_usable(tmp_path, capsys):
    try:
        women = load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    found = function_row_noise.outcomes(women, shares=(1.0, 0.1), protocol=Protocol(folds=4))
    assert found[BY_ROW][0.1].error < 0.2 * found[BY_ROW][1.0].error
    assert found[BY_ROW][0.1].error < found[SHARED][0.1].error
    function_row_noise.FunctionRowNoise(**function_row_noise.FunctionRowNoise.small).run(
        output_dir=tmp_path
    )
    assert "outlook holds" in capsys.readouterr().out
    assert (tmp_path / "function-row-noise.png").stat().st_size > 20_000
