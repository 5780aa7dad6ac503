"""Amounts are written as people write them, and lose nothing that was not rounded away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.utils.formatting import amount


@pytest.mark.parametrize(
    ("value", "digits", "written"),
    [
        (22_345.6, 3, "22,300"),
        (-22_345.6, 3, "-22,300"),
        (999.96, 4, "1000"),
        (9_999.6, 3, "10,000"),
        (2026.0, 4, "2026"),
        (1183.4, 6, "1183.4"),
        (2e6, 12, "2,000,000"),
        (12_345.678, 8, "12,345.678"),
        (123_458.07, 12, "123,458.07"),
        (0.0123, 2, "0.012"),
        (0.0, 3, "0"),
        (float("nan"), 3, "nan"),
        (float("inf"), 3, "inf"),
    ],
)
def test_amounts_as_people_write_them(value, digits, written):
    assert amount(value, digits) == written


@given(st.floats(-9e14, 9e14, allow_nan=False), st.integers(1, 12))
def test_an_amount_is_the_rounded_number(value, digits):
    read = float(amount(value, digits).replace(",", ""))
    assert read == pytest.approx(float(f"{value:.{digits}g}"), rel=1e-12)
    assert "e+" not in amount(value, digits)
