"""Sparse approximations under privacy noise (future work of the 2021 paper)."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import approximations, kung
from experiments.cross_validation import Protocol
from experiments.datasets import DatasetUnavailableError, load_kung


@pytest.fixture
def women(synthetic_women):
    return synthetic_women(40)


def test_dtc_and_sor_have_the_same_raw_predictions_and_fitc_has_others(women):
    X = women[["age"]].to_numpy()
    fitc, dtc, sor = (
        approximations.sparse_prior(X, inputs="1d", inducing=3, approximation=one).cloaking_matrix(
            X[:5] + 1.0, X
        )
        for one in ("fitc", "dtc", "sor")
    )
    np.testing.assert_allclose(dtc, sor)
    assert np.abs(fitc - dtc).max() > 1e-4
    found = approximations.compare(
        women, counts=(3,), approximations=("dtc", "sor"), protocol=Protocol(folds=2)
    )
    for noise, errors in found["1d", "dtc", 3].items():
        np.testing.assert_allclose(errors.by_fold, found["1d", "sor", 3][noise].by_fold)


def test_with_as_many_inducing_inputs_as_rows_all_are_the_exact_process(women):
    X = women[["age"]].to_numpy()
    exact = kung.Setting("1d", None).prior_for(X).cloaking_matrix(X[:5] + 1.0, X)
    for one in ("fitc", "dtc"):
        sparse = approximations.sparse_prior(X, inputs="1d", inducing=40, approximation=one)
        np.testing.assert_allclose(sparse.cloaking_matrix(X[:5] + 1.0, X), exact, atol=1e-5)


@pytest.mark.data
def test_on_the_women_the_approximation_hardly_matters(tmp_path, capsys):
    try:
        women = load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    found = approximations.compare(women, counts=(5,), protocol=Protocol())
    for inputs in kung.INPUTS:
        one, other = (found[inputs, name, 5] for name in ("fitc", "dtc"))
        for noise in one:
            assert one[noise].mean == pytest.approx(other[noise].mean, rel=0.02)
    approximations.Approximations(**approximations.Approximations.small).run(output_dir=tmp_path)
    assert "hardly matters" in capsys.readouterr().out.replace("\n", " ")
    assert (tmp_path / "approximations.png").stat().st_size > 20_000
