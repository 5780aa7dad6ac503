"""Worst cases: outputs that are permuted, and what is laid out of them."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import OutputBounds
from experiments import progress
from experiments.pages import Kept
from experiments.priors import Table, first_tables
from experiments.small_tables import search_of_fit
from experiments.worst_cases import AS_THEY_ARE, CASES, EPSILONS, PERMUTED, WorstCases, permuted


def test_permuted_outputs_tell_nothing_of_inputs():
    X = np.linspace(-1.0, 1.0, 400)
    table = Table("line", X[:, None], 3.0 * X, OutputBounds(-3.0, 3.0))
    shuffled = permuted(table, seed=0)
    assert abs(np.corrcoef(X, table.outputs)[0, 1]) == pytest.approx(1.0)
    # Its sd is a twentieth.
    assert abs(np.corrcoef(X, shuffled.outputs)[0, 1]) < 0.2
    assert not np.array_equal(shuffled.outputs, permuted(table, seed=1).outputs)
    np.testing.assert_array_equal(shuffled.X, table.X)


def test_ratios_are_of_means_and_the_largest_of_a_tables():
    found = {
        (((AS_THEY_ARE, 10, 0.3), name), way): [(value,) for value in values]
        for (name, way), values in {
            ("a", "default"): (2.0, 4.0),
            ("a", "noisy mean"): (1.0, 1.0),
            ("b", "default"): (1.0, 1.0),
            ("b", "noisy mean"): (3.0, 3.0),
        }.items()
    }
    [laid] = WorstCases().tables(found)
    assert [list(column.cells) for column in laid.columns][-2:] == [["1.00"], ["3.00"]]


def test_what_docs_say_of_the_kept_table_is_what_it_shows():
    """Sentences below the table of docs/adaptive.md."""
    [kept] = Kept.read("worst-cases").tables
    rows = {tuple(row[:3]): row[3:] for row in kept.rows}
    ratios = {setting: float(row[2]) for setting, row in rows.items()}
    wide = "10 times as wide"
    assert max(ratios[PERMUTED, "of round numbers", epsilon] for epsilon in ("0.3", "1")) < 1.1
    assert max(ratios[outputs, wide, "1"] for outputs in (AS_THEY_ARE, PERMUTED)) < 1
    for outputs, most in ((AS_THEY_ARE, 1.3), (PERMUTED, 1.4)):
        errors = [float(cell.split()[0]) for cell in rows[outputs, wide, "0.3"][:2]]
        assert 1.1 < errors[0] / errors[1] < most
        assert min(errors) > 1


def test_an_interval_is_searched_for_at_1_and_not_at_a_third():
    rounds = {
        epsilon: search_of_fit(
            OutputBounds(0.0, 1.0), budget=Budget(epsilon, 0.0, noise="laplace"), rows=250
        ).rounds
        for epsilon in EPSILONS
    }
    assert not rounds[0.3]
    assert rounds[1.0]


@pytest.mark.data
def test_its_small_version_lays_out_all_cases():
    experiment = WorstCases(**WorstCases.small, insecure_seed=0)
    assert len(first_tables(1)) == 1
    [laid] = experiment.tables(experiment.compute(progress.quietly))
    assert laid.row_count == len(CASES) * len(EPSILONS)
    assert {*laid.columns[0].cells} == {AS_THEY_ARE, PERMUTED}
