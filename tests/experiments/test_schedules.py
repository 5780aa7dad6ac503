"""Tables of public rules: the fewest rows are those from which a fit asks."""

from __future__ import annotations

import pytest

from experiments.progress import quietly
from experiments.schedules import QUESTIONS, Schedules, budget_of, fewest_rows


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_below_the_fewest_rows_nothing_is_asked_and_from_them_on_something_is(name, delta):
    budget, asked = budget_of(1.0, delta), QUESTIONS[name]
    rows = fewest_rows(lambda count: asked(budget, count))
    assert 20 < rows < 100_000
    assert [asked(budget, rows + more) for more in (-1, 0, 1, 100)] == [False, True, True, True]


@pytest.mark.slow
def test_more_budget_needs_fewer_rows():
    experiment = Schedules()
    found = experiment.compute(quietly)
    for delta in (0.0, 1e-2, 1e-5):
        for weak, strong in zip(found[0.3, delta], found[3.0, delta], strict=True):
            assert strong < weak
    fewest, rounds = experiment.tables(found)
    assert fewest.row_count == 9
    assert next(iter(rounds.columns[1].cells)) == "none"


def test_what_is_never_asked_says_so():
    experiment = Schedules()
    table, _ = experiment.tables({(1.0, 0.0): [None, 10, 1_000, 2, 3]})
    assert [next(iter(column.cells)) for column in table.columns[2:5]] == ["never", "10", "1,000"]
