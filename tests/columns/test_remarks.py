"""What is remarked on public columns is so in the table, and what is ordinary is not remarked."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cloakgp.columns import Category, Number, Schema, infer_schema
from cloakgp.columns.remarks import remarks_on

COUNT = 400


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "ward": [f"P{number:05d}" for number in range(COUNT)],
            "age": rng.uniform(2, 89, COUNT).round(1),
            "town": [f"t{number % 200}" for number in range(COUNT)],
            "unit": 1,
            "blood": np.where(np.arange(COUNT) % 5 < 2, np.nan, rng.normal(size=COUNT)),
            "line": np.arange(COUNT),
            "job": rng.choice(["cook", "clerk"], COUNT),
        }
    )


def test_levels_gaps_constants_and_ids_are_remarked():
    people = table()
    told = remarks_on(infer_schema(people, list(people)), people)
    assert told == {
        "ward": ("taken for an id: 400 different values in 400 rows",),
        "town": ('75 % of rows count as "other": their levels are rare',),
        "unit": ("the same in every row: nothing can be predicted from it",),
        "blood": ("40 % of its cells are empty",),
        "line": ("it counts the rows: an id, perhaps, or their order",),
    }


def test_a_table_without_rows_is_not_remarked():
    schema = Schema((Number("age"), Category("job", levels=("cook",))))
    assert remarks_on(schema, {"age": [], "job": []}) == {}


def test_levels_that_are_not_declared_are_no_remark_where_they_are_faults():
    schema = Schema((Category("job", levels=("cook",), other=False),))
    assert remarks_on(schema, {"job": ["cook", "clerk"]}) == {}
