"""Smaller scales beside one: the same tables, splits and noise."""

from __future__ import annotations

import pytest

from experiments import progress
from experiments.interval import error_of_table
from experiments.pages import Kept
from experiments.priors import first_tables
from experiments.scales import MEAN, ONE, WAYS, WEIGHED, Scales


@pytest.mark.data
def test_ways_differ_in_nothing_but_the_scales():
    """With many answers nothing is weighed, and both are one fit."""
    [table] = first_tables(1)

    def errors(*, epsilon, factor):
        return {
            way: error_of_table(
                table, ask, epsilon=epsilon, factor=factor, draw=0, rows=60, insecure_seed=5
            )
            for way, ask in WAYS.items()
        }

    many = errors(epsilon=3.0, factor=1)
    assert many[WEIGHED] == pytest.approx(many[ONE], rel=1e-9)
    few = errors(epsilon=0.3, factor=10)
    assert few[WEIGHED] != pytest.approx(few[ONE], rel=1e-3)
    assert few[MEAN] > 0


@pytest.mark.data
def test_its_small_version_has_a_table():
    experiment = Scales(**Scales.small, insecure_seed=0)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == 4


def test_what_docs_say_of_the_kept_table_is_what_it_shows():
    """The sentence of docs/adaptive.md."""
    [kept] = Kept.read("scales").tables
    places = [kept.columns.index(way) for way in (WEIGHED, ONE, MEAN)]
    errors = {
        tuple(row[:2]): [float(row[place].split()[0]) for place in places] for row in kept.rows
    }
    weighed, one, mean = errors["10 times as wide", "0.3"]
    assert 0.7 < weighed / one < 0.78
    assert mean < weighed
    weighed, one, _ = errors["of round numbers", "0.3"]
    assert 1.01 < weighed / one < 1.025
