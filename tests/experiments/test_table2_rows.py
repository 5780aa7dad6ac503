"""Table 2 of the 2021 paper as printed, and rows beside it."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import table2_choices, table2_rows
from experiments.table2_choices import GRID
from experiments.table2_rows import (
    PUBLISHED_BEST,
    PUBLISHED_EXPECTED,
    PUBLISHED_MEAN,
    PUBLISHED_ROWS,
)


def test_the_printed_rows_agree_with_what_the_paper_says_of_all_80():
    assert set(PUBLISHED_ROWS) <= set(GRID)
    assert len(PUBLISHED_ROWS) == 76
    probabilities, errors = np.array(list(PUBLISHED_ROWS.values())).T
    best, probability, rmse = PUBLISHED_BEST
    assert PUBLISHED_ROWS[best] == (probability, rmse)
    assert probabilities.max() == probability
    # One row with lengthscale 1 is missing, and three with lengthscale 25 and noise 5.
    missing = [one for one in GRID if one not in PUBLISHED_ROWS]
    assert missing == [(1.0, 0.2, 5.0), (25.0, 5.0, 5.0), (25.0, 5.0, 25.0), (25.0, 5.0, 125.0)]
    left = 80 * PUBLISHED_MEAN - errors.sum()
    assert 300 < left < 650
    # The rest of the probability, and of the expected error, is theirs.
    rest = 1.0 - probabilities.sum()
    assert 0.0 < rest < 3 * 0.0244
    assert probabilities @ errors < PUBLISHED_EXPECTED < probabilities @ errors + 35 * rest


@pytest.fixture
def rows():
    """Our rows, if they were the printed ones, and others alike."""
    printed = np.array([PUBLISHED_ROWS.get(one, (0.0, 99.0)) for one in GRID])
    return table2_rows.Rows(
        probabilities=printed[:, 0], chooser=printed[:, 1], other=-printed[:, 1]
    )


def test_rows_are_compared_with_the_printed_ones_alone(rows):
    assert rows.best == PUBLISHED_BEST
    assert rows.likeness() == pytest.approx((1.0, -1.0))
    published, here, matrices, counts = table2_rows.summary_lines(rows)
    assert (
        published.removeprefix("Published").split(";")[0] == here.removeprefix("Here").split(";")[0]
    )
    assert "87.05" in published
    assert "35 different cloaking matrices" in matrices
    assert "44 here, 44 of the 76" in counts


def test_the_table_has_all_80(rows):
    report = table2_rows.rows_report(rows, column="weight")
    assert report.row_count == 80
    printed = list(report.columns[4].cells)
    assert printed.count("") == 4
    assert "14.55" in printed
    assert list(report.columns[6].cells)[GRID.index(PUBLISHED_BEST[0])] == "14.55"


def test_rows_come_from_the_papers_choice(monkeypatch):
    half = "half"
    asked = []

    def choice(candidates, given, *, sensitivity):
        asked.append((candidates, given, sensitivity))
        return table2_choices.PapersSelection(
            errors=np.zeros(2), claimed_sensitivity=1.0, probabilities=np.array([0.1, 0.9])
        )

    monkeypatch.setattr(table2_choices, "papers_choice", choice)
    monkeypatch.setattr(table2_choices, "papers_rmse", lambda folds, _: np.array(folds))
    found = table2_rows.Rows.of(([3.0, 1.0], [2.0, 5.0]), (half, "other"))
    assert asked == [([3.0, 1.0], half, table2_choices.NOTEBOOK_SENSITIVITY)]
    assert found.best == (GRID[1], 0.9, 1.0)
    assert found.mean == 2.0
    np.testing.assert_array_equal(found.other, [2.0, 5.0])


def test_printed_errors_of_one_matrix_differ_by_what_the_optimiser_leaves():
    spread, count = table2_rows.largest_spread_of_printed_rows()
    # Lengthscale 5, variances 5 and 5 against 1 and 1: 133.09 and 52.59 cm.
    assert spread == pytest.approx(133.09 / 52.59 - 1.0)
    # Seven ratios of four variances by four, a factor of 5 apart.
    assert count == 5 * 7
