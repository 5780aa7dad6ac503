"""Repeated queries and new rows, given earlier answers (2021 paper, discussion)."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import repeated_queries
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.repeated_queries import AGAIN, ALONE, FREE, WHOLE


@pytest.fixture
def women(synthetic_women):
    return synthetic_women(160)


def test_at_the_first_ages_the_first_answers_are_all_there_is_to_pay_for(women):
    found = repeated_queries.repeated_query(women, distances=(0.0, 30.0))
    near, far = found[0.0], found[30.0]
    assert near[FREE] == pytest.approx(near[WHOLE], rel=1e-9)
    for sds in (near, far):
        assert sds[AGAIN] <= sds[FREE] * (1 + 1e-9)
        assert sds[AGAIN] < sds[ALONE]
    # What asking again is worth, near and far.
    assert near[AGAIN] > 0.9 * near[FREE]
    assert far[AGAIN] < 0.9 * far[FREE]


def test_sds_depend_on_no_output(women, monkeypatch):
    monkeypatch.setattr(repeated_queries, "NEW_ROWS", 50)
    other = women.assign(height=np.full(len(women), 140.0))
    ages = np.array([10.0, 40.0])
    first, again = (repeated_queries.new_rows(one, ages=ages) for one in (women, other))
    assert first.both == pytest.approx(again.both, rel=1e-6)
    assert first.alone == pytest.approx(again.alone, rel=1e-6)
    assert first.both < min(first.before, first.alone)


@pytest.mark.data
def test_the_command_says_whether_it_saves(tmp_path, capsys):
    try:
        load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    repeated_queries.RepeatedQueries(distances=(0.5, 40.0)).run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "the saving that the paper expects is there" in said
    assert "87 new rows" in said
    assert (tmp_path / "repeated-queries.png").stat().st_size > 20_000
