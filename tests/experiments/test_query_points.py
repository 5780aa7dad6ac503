"""Noise by number of query points (2018 paper, section 3; 2021 paper, figure 5)."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import kung, query_points
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE, Cloaked, noise_sd
from experiments.datasets import DatasetUnavailableError, load_kung


@pytest.fixture
def few(synthetic_women):
    return synthetic_women(40)


def test_the_noise_is_that_of_a_release(few):
    model = query_points.MODELS["A, standard"]
    X, points = model.rows(few), kung.Grid(kung.WEIGHT, kung.AGE, steps=4).points
    (found,) = query_points.by_grid(few, model=model, noise=PAPERS_NOISE, steps=(4,))
    release = Cloaked.designed(
        X, points, prior=model.prior_for(X), noise=PAPERS_NOISE, gap=query_points.GAP
    ).released(kung.heights(few), budget=kung.BUDGET, insecure_seed=1)
    sds = noise_sd(release)
    at = [tuple(point) for point in points].index(kung.NAMED_POINT)
    assert found.points == 16
    assert found.rms == pytest.approx(float(np.sqrt(np.mean(sds**2))), rel=1e-6)
    assert found.at_named == pytest.approx(sds[at], rel=1e-6)


def test_every_grid_has_the_named_point_and_one_input_has_none(few):
    model = query_points.MODELS["B, sparse"]
    found = query_points.by_grid(few, model=model, noise=TRACE_NOISE, steps=query_points.STEPS[:3])
    assert all(one.at_named is not None for one in found)
    (alone,) = query_points.by_count(few, noise=TRACE_NOISE, counts=(5,))
    assert alone.at_named is None


def test_a_copy_of_a_query_point_is_for_free(few):
    """Not nearby points alone: the same ones, asked twice, have the noise of one."""
    X = few[["age"]].to_numpy()
    points = np.linspace(0.0, 80.0, 6)[:, None]
    prior = query_points.kung2018.prior_for(X)
    once, twice = (
        query_points.noise_over(X, asked, prior=prior, noise=PAPERS_NOISE)
        for asked in (points, np.repeat(points, 2, axis=0))
    )
    assert twice.rms == pytest.approx(once.rms, rel=2 * query_points.GAP)


@pytest.mark.data
def test_dense_points_cost_no_more_and_few_ones_less(tmp_path, capsys):
    try:
        load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    query_points.QueryPoints(steps=(4, 10, 16), counts=(5, 50, 200)).run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "fits a grid of 16 points best" in said
    assert (tmp_path / "query-points.png").stat().st_size > 20_000
    women = load_kung(male=False)
    few, many, most = query_points.by_count(women, noise=PAPERS_NOISE, counts=(5, 100, 200))
    assert few.rms < 0.9 * many.rms
    assert most.rms == pytest.approx(many.rms, rel=0.01)
