"""Inputs are found by their names, whatever kind of table they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp.utils.arrays import as_inputs, as_matrix, check_writable, output_names

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


@pytest.mark.parametrize(
    "values",
    [
        np.array([[1.0, 2.0 + 1j]]),
        np.array([[1.0 + 0j]], dtype=np.complex64),
        [[1.0, np.complex128(1j)]],
        [np.array([1j])],
        pd.DataFrame({"a": [1.0], "b": [1j]}),
        pd.Series([1j]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_complex_numbers_are_refused_rather_than_halved(values):
    with pytest.raises(ValueError, match="C has complex numbers"):
        as_matrix(values, name="C")


def test_names_that_files_cannot_hold_are_refused():
    check_writable(["é", "\U0001f600", "", 7, None])
    for name in ("a\ud800", "\udfff"):
        with pytest.raises(ValueError, match="half of a character") as refused:
            check_writable(["a", name])
        str(refused.value).encode()


@pytest.mark.parametrize(
    ("names", "twice"),
    [
        (("u", "u"), "u"),
        (("u", "u_sd"), "u_sd"),
        (("u_upper", "u"), "u_upper"),
        # As the reader for R names them.
        (("u", "u_new_sd"), "u_new_sd"),
    ],
)
def test_outputs_of_which_predictions_would_have_one_name_are_refused(names, twice):
    """A table of predictions would lose one of them."""
    with pytest.raises(ValueError, match=f"would be named '{twice}': rename one of the outputs"):
        output_names(pd.DataFrame(np.zeros((2, 2)), columns=names))
    assert output_names(pd.DataFrame(np.zeros((2, 2)), columns=("u", "sd"))) == ("u", "sd")
