"""Bounds and the private column: every complaint is clear, and none quotes a value."""

import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from cloakgp.privacy.entries import as_column, read_outputs
from cloakgp.privacy.questions.bounds import OutputBounds

SECRET = 123.456789


@pytest.mark.parametrize(
    ("bounds", "complaint"),
    [
        (None, "missing"),
        ((1,), "pair"),
        ((1, 2, 3), "pair"),
        ("ab", "pair"),
        (("a", "b"), "pair"),
        ((1, 1), "below"),
        ((2, 1), "below"),
        ((0, np.inf), "finite"),
        ((np.nan, 1), "finite"),
        ((0, 1e-200), "rescale"),
        ((-1e300, 1e300), "rescale"),
    ],
)
def test_bad_bounds(bounds, complaint):
    with pytest.raises(ValueError, match=complaint):
        OutputBounds.checked(bounds)


def test_bounds_clip_silently():
    limits = OutputBounds.checked((np.float32(0), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert limits.clip(np.array([-5.0, 0.5, 9.0])).tolist() == [0.0, 0.5, 1.0]
    assert limits.middle == 0.5


@pytest.mark.parametrize(
    ("y", "complaint"),
    [
        (None, "None"),
        ([SECRET, np.nan], "NaN"),
        ([SECRET, np.inf], "infinity"),
        ([SECRET, 1.0, 2.0], "2 rows and y has 3"),
        ([[SECRET, 1.0], [2.0, 3.0]], "one dimension"),
        ([SECRET, "not a number"], "numeric"),
        ([f"{SECRET}x", "1"], "numeric"),
        ([SECRET + 1j, 1], "numeric"),
        ([[SECRET], [1.0, 2.0]], "numeric"),
        ([{"value": SECRET}, 1], "numeric"),
    ],
)
def test_bad_outputs_are_named_and_never_quoted(y, complaint):
    with pytest.raises(ValueError, match=complaint) as raised:
        read_outputs(y, rows=2)
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
    assert "123.45" not in shown.replace("SECRET", "")
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_column_vector_is_accepted_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning):
        assert read_outputs([[1.0], [2.0]], rows=2).tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("error")
def test_a_named_column_of_a_table_is_no_mistake():
    frame = pd.DataFrame({"height": [1.0, 2.0]})
    assert read_outputs(frame, rows=2).tolist() == [1.0, 2.0]
    assert as_column(frame, rows=2).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="one dimension"):
        read_outputs(frame.assign(weight=3.0), rows=2)


def test_outputs_are_a_copy():
    y = np.array([1.0, 2.0])
    checked = read_outputs(y, rows=2)
    checked[0] = 7
    assert y[0] == 1.0
