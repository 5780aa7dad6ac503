"""Rates of simulated counts: what is drawn, and what is measured of it."""

import numpy as np
import pytest

from experiments import progress
from experiments.rates import MEASURES, Counted, Rates, _measures


@pytest.mark.parametrize("overdispersion", [0.0, 0.5])
def test_counts_have_the_mean_and_variance_that_are_said(overdispersion):
    drawn = Counted.drawn(np.random.default_rng(0), 100_000, overdispersion=overdispersion)
    assert drawn.rates.min() < 0.3
    assert drawn.rates.max() > 15
    mean = drawn.exposure * drawn.rates
    standardised = (drawn.counts - mean) / np.sqrt(mean + overdispersion * mean**2)
    assert standardised.mean() == pytest.approx(0.0, abs=0.02)
    assert standardised.std() == pytest.approx(1.0, abs=0.03)


def test_measures_of_the_truth_are_perfect():
    drawn = Counted.drawn(np.random.default_rng(0), 500, overdispersion=0.0)
    ends = (drawn.counts, drawn.counts)
    perfect = _measures(drawn.rates, (drawn.rates, drawn.rates), ends, drawn)
    assert perfect == (0.0, 0.0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.slow
def test_its_small_version_has_a_table():
    experiment = Rates(rows=40, draws=1, epsilon=5.0)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == 6
    assert len(table.columns) == 2 + len(MEASURES)
