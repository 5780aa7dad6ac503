"""Binning of the !Kung women (2018 paper, section 4)."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.estimators.baselines import DPHistogramRegressor, DPIntegralHistogramRegressor
from cloakgp.release.histogram import Bins
from experiments import kung, kung_binning
from experiments.cross_validation import Protocol, root_mean_square
from experiments.datasets import DatasetUnavailableError, load_kung

SEED = 20180404


@pytest.fixture
def few(synthetic_women):
    return synthetic_women(60)


def test_without_privacy_bins_are_means_and_the_process_is_the_estimators(few):
    X, y = few[["age"]].to_numpy(), kung.BUDGET.bounds.clip(kung.heights(few))
    bins = Bins.over(X, bins=4)
    found = kung_binning.unnoised_means(X, y, bins=bins, X_query=X)
    cells = bins.cells(X)
    expected = [y[cells == cell].mean() for cell in cells]
    np.testing.assert_allclose(found[kung_binning.SIMPLE], expected)
    prior = kung_binning.integral_prior()
    model = DPIntegralHistogramRegressor(
        4,
        kernel=prior.kernel,
        noise_variance=prior.noise_variance,
        mean=prior.mean,
        bounds=(kung.BUDGET.bounds.lo, kung.BUDGET.bounds.hi),
        epsilon=1e7,
        noise="laplace",
        learn=None,
        insecure_seed=SEED,
    ).fit(X, y)
    np.testing.assert_allclose(found[kung_binning.INTEGRAL], model.predict(X), atol=1e-2)


def test_the_papers_simple_binning_is_the_baseline_unclipped(few):
    protocol = Protocol(folds=2, draws=2, insecure_seed=SEED)
    found = kung_binning.binning_errors(few, bins=(4,), protocol=protocol)[4]
    X, y = few[["age"]].to_numpy(), kung.heights(few)
    train, out = next(protocol.splits(len(X)))
    model = DPHistogramRegressor(
        4,
        ranges=[(float(X.min()), float(X.max()))],
        bounds=(kung.BUDGET.bounds.lo, kung.BUDGET.bounds.hi),
        epsilon=1.0,
        noise="laplace",
        clip=False,
        insecure_seed=protocol.seed(0, 0, 1),
    ).fit(X[train], y[train])
    error = root_mean_square(model.predict(X[out]) - kung.BUDGET.bounds.clip(y)[out])
    laplace = found.private[kung_binning.SIMPLE][kung_binning.LAPLACE]
    assert laplace.by_fold.shape == (2, 2)
    assert laplace.by_fold[0, 1] == pytest.approx(error)


def test_the_verdict_names_the_winner():
    def found(best, cloaking):
        errors = kung_binning.Errors(np.full((2, 2), best))
        private = {way: {kung_binning.LAPLACE: errors} for way in kung_binning.PUBLISHED}
        return kung_binning.Found(
            binning={3: kung_binning.Binning(no_privacy={}, private=private)},
            cloaking={
                noise.name: kung_binning.Errors(np.full((2, 1), cloaking))
                for noise in (kung_binning.PAPERS_NOISE, kung_binning.TRACE_NOISE)
            },
        )

    assert "turns the paper's verdict round" in " ".join(kung_binning.verdict(found(9.0, 16.0)))
    assert "As in the paper" in " ".join(kung_binning.verdict(found(17.0, 16.0)))


@pytest.mark.data
def test_integral_binning_of_the_women_beats_what_is_published_for_it(tmp_path, capsys):
    try:
        load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    kung_binning.KungBinning(bins=(8,), draws=3).run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "turns the paper's verdict round" in said
    assert (tmp_path / "kung-binning.png").stat().st_size > 20_000
