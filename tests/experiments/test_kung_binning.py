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
    np.testing.assert_allclose(found[kung_binning.KNOWN], model.predict(X), atol=1e-2)


def test_the_papers_bins_have_one_noise_variance(few):
    """Beside a process of integrals, in scikit-learn's words, given the bins' means."""
    X, y = few[["age"]].to_numpy(), kung.BUDGET.bounds.clip(kung.heights(few))
    bins = Bins.over(X, bins=5)
    found = kung_binning.unnoised_means(X, y, bins=bins, X_query=X)[kung_binning.INTEGRAL]
    cells = bins.cells(X)
    known = np.unique(cells)
    means = np.array([y[cells == cell].mean() for cell in known])
    prior = kung_binning.integral_prior()
    boxes = bins.boxes(known)
    K = prior.kernel(boxes) + prior.noise_variance * np.eye(len(boxes))
    crossed = prior.kernel(np.hstack([X, X]), boxes)
    np.testing.assert_allclose(
        found, prior.mean + crossed @ np.linalg.solve(K, means - prior.mean), rtol=1e-8
    )


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


def test_the_verdict_says_what_is_the_papers_and_what_is_not():
    errors = {
        way: kung_binning.Errors(np.full((2, 2), error))
        for way, error in zip(kung_binning.WAYS, (30.0, 14.5, 9.0), strict=True)
    }
    private = {way: {kung_binning.LAPLACE: each} for way, each in errors.items()}
    found = kung_binning.Found(
        binning={3: kung_binning.Binning(no_privacy={}, private=private)},
        cloaking={
            noise.name: kung_binning.Errors(np.full((2, 1), 14.0))
            for noise in (kung_binning.PAPERS_NOISE, kung_binning.TRACE_NOISE)
        },
    )
    said = " ".join(kung_binning.verdict(found))
    assert "Here they have 14.0 and 14.5 cm" in said
    assert "has 9.0 cm at best" in said
    assert "neither is the paper's" in said


@pytest.mark.data
def test_integral_binning_of_the_women_is_as_published(tmp_path, capsys):
    """With one noise variance for all bins; published: 14.2 to 20.8 cm over numbers of bins."""
    try:
        load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    found = kung_binning.binning_errors(
        load_kung(male=False), bins=(3, 8), protocol=Protocol(folds=10, draws=5)
    )
    least, most = (
        found[count].private[kung_binning.INTEGRAL][kung_binning.LAPLACE].mean for count in (8, 3)
    )
    assert least == pytest.approx(14.2, abs=2.0)
    assert most == pytest.approx(20.8, abs=1.5)
    kung_binning.KungBinning(bins=(8,), draws=3).run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "comparable to the best integral binning" in said
    assert (tmp_path / "kung-binning.png").stat().st_size > 20_000
