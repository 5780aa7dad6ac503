"""The study of section 6.7 on workers; its figures are looked at in test_selection_papers."""

from __future__ import annotations

import pandas as pd
import pytest
from joblib import parallel_config

from experiments import table2_choices
from experiments.table2 import Study


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_both_halves_are_cloaked_in_both_ways_each_in_its_place(monkeypatch, n_jobs):
    monkeypatch.setattr(
        table2_choices, "halves", lambda _, *, column: (f"{column} 1", f"{column} 2")
    )
    monkeypatch.setattr(table2_choices, "papers_folds", lambda half: f"papers, {half}")
    monkeypatch.setattr(table2_choices, "our_candidates", lambda half: f"ours, {half}")
    ticks = []
    with parallel_config(backend="threading"):
        study = Study.of(pd.DataFrame(), column="age", tick=lambda: ticks.append(1), n_jobs=n_jobs)
    assert study.halves == ("age 1", "age 2")
    assert study.papers == ("papers, age 1", "papers, age 2")
    assert study.ours == ("ours, age 1", "ours, age 2")
    assert len(ticks) == 4 * len(table2_choices.GRID)
