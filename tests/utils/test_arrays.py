"""Inputs are found by their names, whatever kind of table they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp.utils.arrays import as_inputs

NAMES = ("age", "weight")
VALUES = np.array([[40.0, 70.0], [50.0, 60.0]])


def people(**changes):
    return pd.DataFrame(dict(zip(NAMES, VALUES.T, strict=True)) | changes)


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored():
    table = people(id=["p1", "p2"])[["weight", "id", "age"]]
    for found in (table, pa.Table.from_pandas(table)):
        np.testing.assert_array_equal(as_inputs(found, input_names=NAMES, n_inputs=2), VALUES)


def test_missing_columns_are_named_and_repeated_ones_refused():
    with pytest.raises(ValueError, match=r"X_query has no column age: the inputs are age, weight"):
        as_inputs(people().drop(columns="age"), input_names=NAMES, n_inputs=2, name="X_query")
    twice = pd.concat([people(), people()[["age"]]], axis=1)
    with pytest.raises(ValueError, match="more than one column age"):
        as_inputs(twice, input_names=NAMES, n_inputs=2)


@pytest.mark.parametrize("names", [(), NAMES])
def test_without_names_columns_are_taken_by_position_if_their_number_is_right(names):
    unnamed = pd.DataFrame(VALUES)
    for table in (unnamed, VALUES, VALUES.tolist()):
        np.testing.assert_array_equal(as_inputs(table, input_names=names, n_inputs=2), VALUES)
    with pytest.raises(ValueError, match="X has 3 columns, expected 2"):
        as_inputs(np.hstack([VALUES, VALUES[:, :1]]), input_names=names, n_inputs=2)


def test_a_table_with_names_for_inputs_without_is_taken_by_position():
    np.testing.assert_array_equal(as_inputs(people(), input_names=(), n_inputs=2), VALUES)
    with pytest.raises(ValueError, match="X has 3 columns, expected 2"):
        as_inputs(people(height=1.0), input_names=(), n_inputs=2)
