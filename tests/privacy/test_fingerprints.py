"""Fingerprints: the same for copies, another for anything else, nothing without the key."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.privacy.fingerprints import fingerprint_column

KEY = b"secret"

entries = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=4), st.integers(-5, 5)
)


@given(st.lists(entries, min_size=1, max_size=8), st.randoms())
def test_order_does_not_matter(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert fingerprint_column(values, key=KEY) == fingerprint_column(shuffled, key=KEY)


def test_the_way_of_writing_does_not_matter():
    written = [
        [1.5, 2.0, -0.0],
        np.array([1.5, 2.0, 0.0]),
        ["1.50", "2", "0"],
        pd.Series([1.5, 2, 0], name="height"),
        pd.Series(["1.5", "2", "0.0"], dtype="object"),
        np.array([[2.0], [0.0], [1.5]]),
    ]
    assert len({fingerprint_column(values, key=KEY) for values in written}) == 1


@pytest.mark.parametrize(
    "other",
    [[1.0, 2.0], [1.0, 2.0, 3.0, 3.0], [1.0, 2.0, 4.0], [1.0, 2.0, "c"], ["a", "b", "c"], [6.0]],
)
def test_other_columns_have_others(other):
    assert fingerprint_column(other, key=KEY) != fingerprint_column([1.0, 2.0, 3.0], key=KEY)


def test_texts_are_told_apart_wherever_one_ends():
    assert fingerprint_column(["ab", "c"], key=KEY) != fingerprint_column(["a", "bc"], key=KEY)


def test_the_key_decides():
    assert fingerprint_column([1.0], key=b"a") != fingerprint_column([1.0], key=b"b")


class Hostile:
    def __str__(self):
        raise RuntimeError("a secret")

    __float__ = __repr__ = __str__


@pytest.mark.parametrize("values", [[], None, object(), [Hostile()], [[1], [1, 2]]])
def test_what_is_no_column_has_none_and_raises_nothing(values):
    found = fingerprint_column(values, key=KEY)
    assert found is None or len(found) == 64
