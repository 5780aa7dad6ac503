"""Private inputs are never quoted, nor counted."""

import traceback

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cloakgp.privacy.inputs import checked_paired_outputs, checked_private_inputs

SECRET = 123456.789


def test_tables_of_numbers_pass():
    for table in (
        [[1, 2], [3, 4]],
        np.ones((2, 2), np.float32),
        pd.DataFrame({"a": [1], "b": [2]}),
    ):
        checked = checked_private_inputs(table, columns=2)
        assert checked.dtype == np.float64
        assert checked.ndim == 2


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ([SECRET, 1.0], "Reshape your data"),
        (SECRET, "Reshape your data"),
        ([[[SECRET]]], "Reshape your data"),
        ([[f"{SECRET} years"]], "declare a schema"),
        (np.array([[{"age": SECRET}]], dtype=object), "no numbers"),
        ([[SECRET + 1j]], "Complex data not supported"),
        ([[SECRET, np.nan]], "NaN"),
        ([[SECRET, np.inf]], "infinity"),
        ([[SECRET], [SECRET, 1.0]], "numbers"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((17, 0)), "0 feature"),
        (np.full((17, 3), SECRET), "3 columns"),
        (sparse.csr_matrix(np.full((17, 2), SECRET)), "sparse"),
    ],
)
def test_complaints_quote_nothing(table, complaint):
    with pytest.raises((ValueError, TypeError), match=complaint) as caught:
        checked_private_inputs(table, columns=2)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    said = "".join(traceback.format_exception_only(caught.value))
    assert "123456" not in said
    assert "17" not in said


def test_lengths_are_not_told():
    with pytest.raises(ValueError, match="different numbers of rows") as caught:
        checked_paired_outputs(np.zeros(23), rows=17)
    assert not any(count in str(caught.value) for count in ("17", "23"))


@pytest.mark.parametrize("y", [None, 3.0, [[1.0], [1.0, 2.0]], ["a", "b"]])
def test_outputs_that_make_no_sense(y):
    with pytest.raises(ValueError, match=r"y|rows"):
        checked_paired_outputs(y, rows=2)


def test_outputs_pass():
    assert checked_paired_outputs([1, 2], rows=2).tolist() == [1.0, 2.0]
