"""Questions by cells: each row has the question of its cell, and moves no further."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.design.streaming.binning import Partition
from cloakgp.privacy.questions import Bands, CalibrationQuestion, OutputBounds, QuantileQuestion
from cloakgp.privacy.questions.gathered import CellQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion

CELLS = Partition(centres=np.array([[0.0], [10.0]]), units=np.ones(1))
ROWS = np.array([[9.0, 3.0], [1.0, 3.0], [8.0, 3.0]])
PLACES = [1, 0, 1]
ENDS = np.array([0.0, 4.0]), np.array([2.0, 8.0])


@pytest.mark.parametrize(
    "question",
    [
        Bands(*ENDS),
        SpreadQuestion(mean=ENDS[0], sd=ENDS[1]),
        QuantileQuestion(np.stack(ENDS, axis=1), bounds=(-9.0, 9.0)),
        QuantileQuestion(ENDS[0][:, None], bounds=(-9.0, 9.0)),
    ],
)
def test_a_row_is_asked_what_stands_for_its_cell(question):
    """Oracle: the question of each cell, asked of one row at a time."""
    by_cells, y = CellQuestion(question, CELLS), np.array([5.0, -3.0, 1.5])
    of_rows = by_cells.of_rows(ROWS)
    expected = [question.at(np.array([place])).encode(y[[row]]) for row, place in enumerate(PLACES)]
    np.testing.assert_array_equal(of_rows.encode(y), np.vstack(expected))
    moves = [
        (one.channels, one.distance, one.absolute_distance, one.largest, one.complaints)
        for one in (by_cells, of_rows, question)
    ]
    assert moves[0] == moves[1] == moves[2]
    with pytest.raises(TypeError, match="needs their inputs"):
        by_cells.encode(y)


def test_questions_that_are_alike_for_all_stay_and_others_are_refused():
    bounds = OutputBounds(0.0, 1.0)
    assert bounds.at(np.array([0, 0])) is bounds
    held = CalibrationQuestion(
        mean=np.zeros(2),
        sd=np.ones(2),
        cells=np.array([0.0]),
        strata=np.zeros(0),
        middles=np.zeros(1),
        sizes=np.array([2.0]),
    )
    with pytest.raises(TypeError, match="rows that are held"):
        held.at(np.array([0]))
