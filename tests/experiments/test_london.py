"""Figure 3 of the 2018 paper."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from experiments import __main__ as command_line
from experiments import london
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE
from experiments.datasets import DatasetUnavailableError, load_london


@pytest.fixture(scope="module")
def prices():
    try:
        return load_london()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def since_2013(prices):
    return london.sales_between(prices, years=london.PAPERS_YEARS)


def test_far_from_all_sales_the_prior_returns_and_needs_no_noise():
    """The paper's areas C: with rows in the middle only, the corners are noise-free."""
    rng = np.random.default_rng(0)
    centre = rng.normal((530e3, 180e3), 5e3, size=(80, 2))
    sales = pd.DataFrame(
        {"easting": centre[:, 0], "northing": centre[:, 1], "price": rng.uniform(1e5, 5e5, 80)}
    )
    surface = london.price_surface(sales, noise=TRACE_NOISE, steps=5, insecure_seed=1)
    corner = surface.noise_sd[0]
    middle = surface.noise_sd[12]
    assert corner < 0.05 * middle
    assert surface.released[0] == pytest.approx(london.BUDGET.bounds.middle, rel=1e-2)


@pytest.mark.data
def test_the_table_has_fewer_sales_than_the_paper(prices, since_2013):
    assert len(since_2013) == 1545
    latest = london.latest_sales(prices, count=london.PAPERS_ROWS)
    assert len(latest) == 4766
    assert latest["years"].min() == 2004
    assert latest["years"].is_monotonic_decreasing


@pytest.mark.data
def test_400k_is_root_ten_times_the_sd_of_the_prices(since_2013):
    """Why the "Gaussian variance 400k²" is read as the noise, ten times the kernel variance."""
    thresholded = london.BUDGET.bounds.clip(since_2013["price"].to_numpy(dtype=float))
    assert np.sqrt(10.0) * thresholded.std() == pytest.approx(400e3, rel=0.02)


@pytest.mark.slow
@pytest.mark.data
def test_discs_fade_out_with_one_to_one_and_not_with_ten_to_one(prices):
    """As many sales as the paper has: the caption's fading regions need the notebook's ratio."""
    latest = london.latest_sales(prices, count=london.PAPERS_ROWS // 3)
    ten, one = (
        london.summarise_noise(
            london.price_surface(latest, noise=PAPERS_NOISE, ratio=ratio, steps=10, insecure_seed=1)
        )
        for ratio in london.RATIOS
    )
    assert ten.visible == 1.0
    assert one.visible < 0.9
    assert one.rms > 1.5 * ten.rms


def test_the_ratio_alone_matters_to_the_cloaking_matrix(rng):
    X = rng.uniform((480e3, 130e3), (580e3, 230e3), size=(30, 2))
    ten = london.prior(ratio=10.0)
    scaled = london.ExactPrior(
        kernel=4.0 * ten.kernel, noise_variance=4.0 * ten.noise_variance, mean=ten.mean
    )
    np.testing.assert_allclose(
        ten.cloaking_matrix(X[:4], X), scaled.cloaking_matrix(X[:4], X), rtol=1e-8
    )
    sparse = london.prior(inducing=X)
    np.testing.assert_allclose(
        sparse.cloaking_matrix(X[:4], X), ten.cloaking_matrix(X[:4], X), atol=1e-6
    )


@pytest.mark.data
def test_contours_are_near_the_papers_and_ours_have_less_noise(since_2013):
    papers, ours = (
        london.price_surface(since_2013, noise=noise, steps=7, insecure_seed=1)
        for noise in (PAPERS_NOISE, TRACE_NOISE)
    )
    assert papers.mean.min() == pytest.approx(215e3, abs=20e3)
    assert papers.mean.max() == pytest.approx(437e3, abs=20e3)
    summaries = [london.summarise_noise(surface) for surface in (papers, ours)]
    assert summaries[1].rms < 0.5 * summaries[0].rms
    assert all(summary.gap <= london.GAP for summary in summaries)
    assert 0.0 < summaries[0].largest < 1.0


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("prices")
def test_the_command_writes_its_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["experiments", "london", "--fast", "--output-dir", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 0
    assert "1545 of them in 2013 to 2016" in capsys.readouterr().out.replace("\n", " ")
    for name in ("london-figure-3", "london-figure-3-1-to-1"):
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000
