"""Standard errors are told from five draws on, by whatever lays them out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.classification import Mean, percent
from experiments.coverage import Coverage, coverage_report
from experiments.cross_validation import Errors, mean_of_draws
from experiments.spread import FEWEST, mean_and_error, standard_error, with_error
from experiments.written import Plain


def test_from_five_draws_on_it_is_scipys(rng):

    draws = rng.normal(size=FEWEST)
    assert standard_error(draws) == pytest.approx(stats.sem(draws))
    assert standard_error(draws[1:]) is None


def test_tables_as_they_are_have_the_error_of_independent_draws(rng):
    errors = rng.normal(size=(3, 8))
    mean, error = mean_and_error(errors)
    assert mean == pytest.approx(errors.mean())
    assert error == pytest.approx(np.sqrt((errors.var(axis=1, ddof=1) / 8).sum()) / 3)
    assert mean_and_error(errors[:, :4])[1] is None


def test_two_draws_are_shown_as_a_mean_alone():
    two = np.array([1.0, 3.0])
    errors = Errors(np.array([two, two]))
    coverage = Coverage(np.array([two, two, two]))
    [row] = Plain.of(coverage_report({"a": coverage}, title="t")).rows
    shown = [
        errors.with_error,
        errors.with_spread(),
        mean_of_draws(two),
        percent(Mean.of(two)),
        with_error(*mean_and_error(two[None])),
        *row,
    ]
    assert shown == ["2.00", "2.00 ± 0.0", "2.00", "200.0", "2.00", "a", *(["200.0%"] * 3), ""]
