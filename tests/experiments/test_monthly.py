"""A year of monthly tables: what is drawn, what each way spends, and a table of it."""

import numpy as np
import pytest

from experiments import progress
from experiments.monthly import DRIFTING, STILL, WAYS, Monthly, alone, by_stream, drawn_months


def test_months_are_what_they_say():
    rng = np.random.default_rng(0)
    still = drawn_months(rng, rows=4000, months=2, truth=STILL)
    assert len(still) == 3
    for month, table in enumerate(still):
        assert table["day"].between(30 * month, 30 * month + 30).all()
        np.testing.assert_allclose(table["curve"], 2 * np.sin(table["x"]))
        assert (table["y"] - table["curve"]).std() == pytest.approx(1.0, abs=0.05)
    first, later = drawn_months(rng, rows=50, months=12, truth=DRIFTING)[::12]
    assert not np.allclose(later["curve"], 2 * np.sin(later["x"]), atol=0.1)
    assert len(first) == 50


def test_who_comes_again_spends_the_whole_in_parts():
    tables = drawn_months(np.random.default_rng(1), rows=30, months=3, truth=STILL)
    for people in ("disjoint", "overlapping"):
        errors, spent = by_stream(tables, 3.0, people=people)
        assert len(errors) == 3
        assert spent == pytest.approx(3.0, rel=1e-4)
    assert len(alone(tables, 3.0)[0]) == 3


@pytest.mark.slow
def test_its_small_version_has_a_table():
    experiment = Monthly(rows=25, months=2, draws=1, epsilon=3.0)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == 2 * len(WAYS)
