"""Counts as whole functions (2018 paper, section 2)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cloakgp.models import rkhs
from experiments import counts
from experiments.datasets import DatasetUnavailableError, load_kung


@pytest.fixture
def counted(rng):
    age = rng.uniform(0.0, 90.0, size=300)
    height = np.where(age > 15, 150.0, 100.0) + rng.normal(scale=8.0, size=300)
    return counts.Counted.of(pd.DataFrame({"age": age, "height": height}))


def test_everybody_is_in_one_bin_and_moves_one_count_by_one(counted):
    np.testing.assert_array_equal(counted.members.sum(axis=0), np.ones(300))
    assert counted.counts.sum() == counted.taller.sum()
    asked = rkhs.function_questions(counts.prior(), counted.X).strategy @ counted.members
    assert np.linalg.norm(asked, axis=0).max() <= 1.0 + 1e-12


def test_without_noise_the_function_is_the_posterior_mean(counted):
    points = np.linspace(0.0, 90.0, 7)[:, None]
    (found,) = counts.released_functions(counted, points, epsilon=1e6, releases=1, insecure_seed=2)
    C = counts.prior().cloaking_matrix(points, counted.X)
    expected = counts.MEAN + C @ (counted.counts - counts.MEAN)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_releases_have_the_noise_that_is_stated(counted):
    found = counts.released_functions(
        counted, counted.X, epsilon=1.0, releases=300, insecure_seed=4
    )
    stated = counts.function_noise_sds(counted.X, epsilon=1.0)
    # On the rows the projected noise has the whole variance of the kernel.
    np.testing.assert_allclose(found.std(axis=0), stated["exact"], rtol=0.2)
    assert stated["2018 paper, b(K⁻¹)"] > 5 * stated["exact"]


@pytest.mark.data
def test_the_command_says_what_counts_are_and_draws(tmp_path, capsys):
    try:
        load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    counts.Counts(releases=2, insecure_seed=3).run(output_dir=tmp_path)
    assert "remark holds for the exact noise" in capsys.readouterr().out.replace("\n", " ")
    assert (tmp_path / "counts.png").stat().st_size > 20_000
