"""What separates decimals and thousands is found out by evidence, and is not guessed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakgp.columns import infer_schema, schema_from_text, schema_to_text
from cloakgp.columns.inference import check_one_notation, infer_number
from cloakgp.columns.notation import evidence_of
from cloakgp.columns.remarks import remarks_on
from cloakgp.data.cells import as_numbers
from cloakgp.data.raw import RawRows

THOUSANDS = [f"{value:,}" for value in range(1017, 99000, 4001)]
AMOUNTS = ["463", "7", "12", "850", "33"]
POINTS, COMMAS = ["1.5", "2"], ["1,5", "2"]
# Exports of instruments write three decimals of every value.
MEASURED = [f"{30 + number}.{101 + number}" for number in range(30)]
BOTH = ["1,250", "2.125", "3.375", "850", "12,500"]
CHOICES = ["1", "2", "1,2", "2,3", "3"]


def notation_of(cells, **others):
    table = {"x": cells, **others}
    column = infer_schema(table, list(table)).columns[0]
    return column.decimal, column.thousands


def in_points(cells):
    return [cell.replace(",", ".") for cell in cells]


FOUND = {
    "millions": (["1,234,567", "12"], {}, (".", ",")),
    "points behind them": (["51,082.5", "63,120"], {}, (".", ",")),
    "points alone in other cells": (["51,082", "463.5"], {}, (".", ",")),
    "many, beside whole numbers": ([*THOUSANDS, *AMOUNTS], {}, (".", ",")),
    "both signs, and points in another column": (BOTH, {"z": POINTS}, (".", ",")),
    "both signs, and commas in another column": (BOTH, {"z": COMMAS}, (",", ".")),
    "a code, and points in another column": ([*MEASURED, "0"], {"z": POINTS}, (".", "")),
    "three digits behind all points": (MEASURED, {}, (".", "")),
    "choices in another column": (["51,082", "1.5"], {"z": CHOICES}, (".", ",")),
    "points in another column": (THOUSANDS, {"z": POINTS}, (".", ",")),
    "commas in another column": (THOUSANDS, {"z": COMMAS}, (",", "")),
    "millions in another column": (THOUSANDS, {"z": ["1,234,567"]}, (".", ",")),
    "one digit": (["51,082", "63,1"], {}, (",", "")),
    "four digits before": (["51,082", "1463,120"], {}, (",", "")),
    "a zero before": (["51,082", "0,120"], {}, (",", "")),
    "German thousands, many": (in_points([*THOUSANDS, *AMOUNTS]), {}, (",", ".")),
    "German thousands, and commas elsewhere": (in_points(THOUSANDS), {"z": COMMAS}, (",", ".")),
    "three digits behind points": (["170.125", "160.250"], {}, (".", "")),
    "apostrophes": (["12'500", "3"], {}, (".", "'")),
    "apostrophes, and commas elsewhere": (["12'500", "3"], {"z": COMMAS}, (",", "'")),
    "apostrophes and commas": (["12'500,5", "3"], {}, (",", "'")),
    "blanks": (["12 500", "3"], {}, (".", " ")),
}


@pytest.mark.parametrize("case", FOUND)
def test_signs_are_found_by_evidence(case):
    cells, others, expected = FOUND[case]
    assert notation_of([*cells], **{name: [*column] for name, column in others.items()}) == expected


OPEN = {
    "commas alone": ([*THOUSANDS], {}, ","),
    "few, beside whole numbers": (["51,082", "463", "7,125"], {}, ","),
    "large whole numbers": ([*THOUSANDS, "12345"], {}, ","),
    "points and commas elsewhere": ([*THOUSANDS], {"z": POINTS, "w": COMMAS}, ","),
    "few points, beside whole numbers": (["1.125", "2", "3.375"], {}, "."),
    "both signs": (BOTH, {}, ","),
    "a zero": ([*MEASURED, "0"], {}, "."),
    "a code below zero": ([*MEASURED, "-9"], {}, "."),
    "a code of three digits": ([*MEASURED, "999"], {}, "."),
    "all codes of a survey": ([*MEASURED, "996", "997", "998", "999", *"0", "-1", "-2"], {}, "."),
    "a zero beside commas": ([*(each.replace(".", ",") for each in MEASURED), "0"], {}, ","),
    "choices in another column": ([*THOUSANDS], {"z": CHOICES}, ","),
}


@pytest.mark.parametrize("case", OPEN)
def test_what_stays_open_is_refused_and_says_what_to_write(case):
    cells, others, sign = OPEN[case]
    table = {"x": cells, **others}
    schema = infer_schema(table, list(table))
    assert notation_of(cells, **others) == (sign, sign)
    with pytest.raises(ValueError, match=rf"nothing tells whether 1\{sign}234 is a little more"):
        schema.validate()
    (told,) = remarks_on(schema, table)["x"]
    assert "it is refused" in told
    # What is said to be written is read as it is said.
    text = schema_to_text(schema)
    both = f'"decimalChar": "{sign}",\n      "groupChar": "{sign}"'
    both = both if both in text else f'"groupChar": "{sign}"'
    other = "." if sign == "," else ","
    for written, value in [
        (f'"decimalChar": "{sign}"', 51.082),
        (f'"decimalChar": "{other}", "groupChar": "{sign}"', 51082.0),
    ]:
        edited = schema_from_text(text.replace(both, written)).complete(table)
        edited.validate()
        assert edited.select(["x"]).encode({"x": [f"51{sign}082"]}).X.tolist() == [[value]]


def test_points_that_may_be_thousands_are_told():
    def said(cells):
        return remarks_on(infer_schema({"x": cells}, ["x"]), {"x": cells}).get("x", ())

    (told,) = said(["170.125", "160.250"])
    assert "1.234 may be more than a thousand" in told
    assert said(["170.125", "160.25"]) == ()
    assert said([170.125, 160.25]) == ()


@given(st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=40), st.sampled_from(",."))
def test_thousands_are_never_taken_for_decimals_without_a_word(numbers, sign):
    cells = [f"{number:,}".replace(",", sign) for number in numbers]
    schema = infer_schema({"x": cells}, ["x"])
    column = schema.columns[0]
    if getattr(column, "undecided", False) or remarks_on(schema, {"x": cells}):
        return
    assert schema.encode({"x": cells}).X[:, 0].tolist() == numbers


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=40), st.sampled_from(",."))
def test_decimals_are_never_taken_for_thousands_without_a_word(numbers, sign):
    cells = [f"{number / 1000:g}".replace(".", sign) for number in numbers]
    schema = infer_schema({"x": cells}, ["x"])
    if getattr(schema.columns[0], "undecided", False) or remarks_on(schema, {"x": cells}):
        return
    expected = [float(cell.replace(sign, ".")) for cell in cells]
    np.testing.assert_allclose(schema.encode({"x": cells}).X[:, 0], expected)


def test_whole_numbers_beside_two_signs_are_no_evidence():
    assert not evidence_of(["1.234", "1,234"]).decimals


@pytest.mark.parametrize(
    ("public", "private", "numbers"),
    [
        (["12'500", "3"], ["12.5", "12,5", "1'000.25", "7"], [12.5, 12.5, 1000.25, 7.0]),
        (["12'500,5", "3"], ["12.5", "12,5", "1'000,25"], [12.5, 12.5, 1000.25]),
        ([*THOUSANDS, *AMOUNTS], ["25,322.75", "1,000", "12.5"], [25322.75, 1000.0, 12.5]),
        (["1.234,5", "2"], ["4.677", "1,5"], [4677.0, 1.5]),
    ],
)
def test_private_numbers_are_read_by_what_public_ones_prove(public, private, numbers):
    raw = RawRows.by_schema(infer_schema({"x": public}, ["x"]))
    assert as_numbers(raw.private(pa.array(private))[0])[1].tolist() == numbers


def test_a_column_without_thousands_says_nothing_of_their_sign():
    table = {"age": COMMAS, "area": ["1.234,5", "2"]}
    assert infer_schema(table, ["age", "area"]).decimal == (",", ".")


def test_answers_of_several_choices_are_no_decimals():
    schema = infer_schema({"x": CHOICES}, ["x"])
    assert schema.columns[0].kind == "category"
    assert schema.decimal == (".", "")
    (told,) = remarks_on(schema, {"x": CHOICES})["x"]
    assert "answers of several choices" in told
    for halves in (["1", "1,5", "2", "2,5", "5"], ["1,2", "1,7"], ["3,1", "1", "3", "2,3", "2"]):
        assert notation_of(halves) == (",", "")


MANY_CODES = ["1", "2", "10", "0", "1,2", "2,10"]


@pytest.mark.parametrize(
    "cells",
    [
        [*MANY_CODES, "1,2,10"],
        ["1", "2", "3", "0", "1,2", "2,3"],
        ["9", "88", "9,88", "9,10", "10", "9,10,88"],
    ],
)
def test_codes_of_several_digits_are_choices_where_an_answer_has_three(cells):
    """Of codes from 1 to 9 alone, two tell it, as no decimals look so; 0 is none of them."""
    table = {"x": cells, "y": ["51,082"]}
    schema = infer_schema(table, ["x", "y"])
    assert schema.columns[0].kind == "category"
    assert "answers of several choices" in " ".join(remarks_on(schema, table)["x"])
    assert not any("no numbers," in told for told in remarks_on(schema, table)["x"])
    assert schema.columns[1].undecided


@pytest.mark.parametrize("cells", [MANY_CODES, ["0", "1", "2", "5", "0,1", "0,2", "0,5"]])
def test_what_may_be_choices_or_decimals_proves_nothing_and_is_remarked_on(cells):
    """It was taken for a proof that 51,082 in another column is a little more than 51."""
    table = {"x": cells, "y": ["51,082"]}
    schema = infer_schema(table, ["x", "y"])
    assert (schema.columns[0].decimal, schema.columns[0].thousands) == (",", "")
    assert schema.columns[1].undecided
    (told,) = remarks_on(schema, table)["x"]
    assert told == (
        "read with decimal commas: 1,5 is one and a half. If its cells are answers of several "
        "choices, such as 1,2, declare a category"
    )


@pytest.mark.parametrize(
    "cells",
    [
        # Prices, hours, and amounts of medicine.
        ["2,10", "1,50", "3", "10", "2", "1"],
        ["1", "2", "5", "25", "7,5", "1,25", "37,5", "1,5"],
        ["0,05", "0,1", "1", "5"],
        ["1,00", "2,00", "10,00"],
    ],
)
def test_decimals_that_look_little_like_choices_are_still_a_proof(cells):
    table = {"x": cells, "y": ["51,082"]}
    assert [column.decimal for column in infer_schema(table, ["x", "y"]).columns] == [",", ","]
    assert "choices" not in str(remarks_on(infer_schema(table, ["x", "y"]), table))


@pytest.mark.parametrize("inputs", [{"age": ["30,5", "40"]}, {"age": ["30", "40"]}])
def test_a_further_column_shares_the_evidence_of_all(inputs):
    table = {**inputs, "days": ["4.706", "956"], "area": ["1,5", "2"]}
    schema = infer_schema(table, ["age"], beside=["days", "area"])
    # Where the schema proves nothing, nothing but the column itself does.
    found = infer_number(table, "days", schema=schema)
    expected = (",", ".") if "," in inputs["age"][0] else (".", ".")
    assert (found.decimal, found.thousands) == expected
    both = infer_schema(table, ["days"], beside=["area"])
    assert both.columns[0].thousands == "."


@pytest.mark.parametrize("sign", ["", "."])
def test_a_further_column_follows_what_is_declared(sign):
    group = f', "groupChar": "{sign}"' if sign else ""
    field = f'{{"name": "age", "type": "number", "decimalChar": ","{group}}}'
    schema = schema_from_text(f'{{"fields": [{field}]}}')
    found = infer_number({"age": ["30"], "days": ["4.706"]}, "days", schema=schema)
    assert (found.decimal, found.thousands) == (",", ".")


def test_a_further_column_may_contradict_the_inputs():
    table = {"age": ["30,5", "40"], "days": ["4.5", "5"]}
    schema = infer_schema(table, ["age"], beside=["days"])
    check_one_notation(table, schema)
    with pytest.raises(ValueError, match="'age' has decimal commas and 'days' decimal points"):
        check_one_notation(table, schema, beside=["days"])
