"""Raw columns become the numbers that textbooks name, whatever holds them, and nothing crashes."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from cloakgp.columns import (
    COLUMN_KINDS,
    Boolean,
    Category,
    Date,
    Identifier,
    Number,
    OrderedCategory,
    Place,
    Schema,
    infer_schema,
    schema_from_text,
    schema_to_text,
)
from cloakgp.columns.cells import cells_of
from cloakgp.release.io.codec import Reader, to_tree

LEVELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
CELLS = st.none() | LEVELS | st.floats() | st.integers() | st.booleans() | st.datetimes()


def one(column, cells):
    return Schema((column,)).encode({column.name: cells}).X


def test_categories_are_one_hot_at_distance_one():
    cells = np.array(["b", "a", "c", "b"], dtype=object)
    X = one(Category("job", levels=("a", "b", "c"), other=False), cells)
    oracle = OneHotEncoder(sparse_output=False).fit_transform(cells[:, None])
    np.testing.assert_allclose(X * np.sqrt(2), oracle)
    assert np.linalg.norm(X[0] - X[1]) == pytest.approx(1.0)


def test_levels_that_are_not_declared_are_others_or_faults():
    table = {"job": ["a", "zzz"]}
    X = Schema((Category("job", levels=("a",)),)).encode(table).X
    np.testing.assert_allclose(X * np.sqrt(2), [[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="a level that is not declared in row 2 below") as caught:
        Schema((Category("job", levels=("a",), other=False),)).encode(table)
    assert "zzz" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("impute", [[1.0, 0], [2.0, 1], [3.0, 0]]), ("drop", [[1.0], [3.0]])],
)
def test_missing_numbers(policy, expected):
    column = Number("age", missing=policy, fill=2.0)
    encoded = Schema((column,)).encode({"age": [1, None, 3]})
    np.testing.assert_array_equal(encoded.X, expected)
    assert encoded.kept.tolist() == [True, policy != "drop", True]


def test_missing_categories_can_be_a_level_of_their_own():
    X = one(Category("job", levels=("a",), other=False, missing="category"), ["a", None, "NA"])
    np.testing.assert_allclose(X * np.sqrt(2), [[1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("form", "cells"),
    [
        ("default", ["2020-02-03", "2020-02-03T12:00", "2020-02-03T14:00+02:00"]),
        ("default", pd.to_datetime(["2020-02-03 00:00", "2020-02-03 12:00", "2020-02-03 12:00"])),
        ("default", pa.array([dt.datetime(2020, 2, 3), dt.datetime(2020, 2, 3, 12), None])),
        ("default", [dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 12), None]),
        ("%d.%m.%Y %H:%M", ["03.02.2020 00:00", "03.02.2020 12:00", None]),
    ],
)
def test_dates_are_days_since_1970(form, cells):
    day = (dt.date(2020, 2, 3) - dt.date(1970, 1, 1)).days
    X = one(Date("when", form=form, missing="impute", fill=day + 0.5), cells)
    np.testing.assert_allclose(X[:, 0], [day, day + 0.5, day + 0.5], rtol=1e-12)


def test_circles_come_round():
    cells = pd.Series(pd.to_datetime(["2020-02-03 06:00", "2020-02-10 06:00", "2020-02-04 18:00"]))
    X = one(Date("when", linear=False, cycles=("day", "week")), cells)
    np.testing.assert_allclose(X[0], X[1], atol=1e-9)
    np.testing.assert_allclose(X[0, :2], [0, 1], atol=1e-9)
    np.testing.assert_allclose(X[2, :2], [0, -1], atol=1e-9)


@pytest.mark.parametrize("projection", ["plane", "sphere"])
def test_places_are_as_far_apart_as_on_the_globe(projection):
    """London to Paris along the great circle: 343.6 km."""
    place = Place("at", latitude="lat", longitude="lon", projection=projection, centre=(50.2, 1.1))
    X = Schema((place,)).encode({"lat": [51.5074, 48.8566], "lon": [-0.1278, 2.3522]}).X
    assert np.linalg.norm(X[0] - X[1]) == pytest.approx(343.6, rel=5e-3)


def test_numbers_in_notations_of_other_countries():
    made = infer_schema({"x": ["1,5", "2,25", "1.000,5", "-3"]}, ["x"])
    assert (made.columns[0].decimal, made.columns[0].thousands) == (",", ".")
    again = schema_from_text(schema_to_text(made))
    np.testing.assert_array_equal(again.encode({"x": ["1,5", "1.000,5"]}).X.ravel(), [1.5, 1000.5])
    with pytest.raises(ValueError, match="not a number"):
        again.encode({"x": ["1.5"]})


INFERRED = {
    "numbers": (["1", "2.5", "3"], Number),
    "numbers and a mistake": ([*map(str, range(30)), "old"], Number),
    "few numbers and a mistake": ([*"1234" * 5, "1O"], Number),
    "few numbers and a mark": ([*"1234" * 5, "?"], Number),
    "few numbers and a letter": ([*"1234" * 5, "x"], Number),
    "few numbers and a word": ([*"1234" * 5, "not asked"], Category),
    "grades": (["9", "10", "11", "12"] * 10 + 2 * ["other"], Category),
    "numbers, and a code in many cells": ([*map(str, range(90)), *3 * ["none"]], Number),
    "words for truth": (["Yes", "no", "yes"], Boolean),
    "truths": ([True, False, True], Boolean),
    "truths as pandas writes them": (["True", "False", "", "TRUE"], Boolean),
    "one truth alone": (["True", "True"], Boolean),
    "truths and numbers": (["True", "0", "1"], Number),
    "zeros and ones": (["0", "1", "1"], Number),
    "text": (["a", "b", "a"], Category),
    "German dates": (["03.02.2020", "28.02.2020"], Date),
    "months in words": (["1960 Jan", "1960 Feb", "1961 Jan"], Date),
    "dates without signs": (["20200203", "", "20200228", "20210301", "19991231", "20240229"], Date),
    "dates as numbers": ([20200203, 20200228, 20210301, 19991231, 20240229], Date),
    "dates as numbers, with a gap": (
        [20200203, 20200228, 20210301, 19991231, 20240229, None],
        Date,
    ),
    "numbers of eight digits": ([20200203, 20200228, 20210301, 19991231, 20240230], Number),
    "few numbers of eight digits": (["20200203", "20200228"], Number),
    "ISO dates": (["2020-02-03", "2020-02-28 10:00"], Date),
    "names of rows": ([f"p{number}" for number in range(60)], Identifier),
    "nothing": ([None, "", "NA"], Identifier),
    "ordered": (pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True), OrderedCategory),
}


@pytest.mark.parametrize(("cells", "kind"), INFERRED.values(), ids=INFERRED.keys())
def test_kinds_are_inferred(cells, kind):
    cells = pd.Series(cells)
    made = infer_schema({"x": cells}, ["x"])
    assert type(made.columns[0]) is kind


def test_places_are_found_by_the_names_of_their_columns():
    made = infer_schema(
        {"start_lat": [40.1, 40.2], "age": [1, 2], "start_lon": [-73.0, -73.1]},
        ["start_lat", "age", "start_lon"],
    )
    assert [type(column) for column in made.columns] == [Place, Number]
    assert made.names == ("start: north", "start: east", "age")
    assert made.groups == (0, 0, 1)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (["lng", "age", "lat"], ("place: north", "place: east", "age")),
        (["age", "lng", "lat"], ("age", "place: north", "place: east")),
        (["lat", "lng", "age"], ("place: north", "place: east", "age")),
    ],
)
def test_either_coordinate_of_a_place_may_come_first(order, names):
    made = infer_schema({"lat": [40.1, 40.2], "age": [1, 2], "lng": [-73.0, -73.1]}, order)
    made.validate()
    assert made.names == names
    assert schema_from_text(schema_to_text(made)) == made


def test_places_share_no_column_and_no_name():
    """Both latitudes would take the same longitude, and both places the same name."""
    table = {name: [40.1, 40.2] for name in ("lon", "latitude", "lat", "longitude", "place")}
    made = infer_schema(table, list(table))
    made.validate()
    assert sorted(made.sources) == sorted(table)
    assert [column.name for column in made.columns] == ["place 3", "place 2", "place"]


def test_no_other_column_is_looked_at():
    class Table(dict):
        def __getitem__(self, name):
            assert name != "height"
            return super().__getitem__(name)

    made = infer_schema(Table(age=[1, 2], height=[3, 4]), ["age"])
    assert made.sources == ("age",)


def test_all_problems_are_in_one_report():
    schema = Schema((Number("age"), Date("when"), Category("job", levels=("a",), other=False)))
    table = {"age": ["x", "1", ""], "when": ["2020-01-01", "soon", "2020-01-01"], "job": ["a"] * 3}
    with pytest.raises(ValueError, match="3 cells that cannot be used") as caught:
        schema.encode(table)
    told = str(caught.value)
    assert "'age' is not a number in row 1 below the header" in told
    assert "'age' is empty in row 3" in told
    assert "'when' is not a date or time as 2024-09-05 in row 2" in told
    assert "soon" not in told
    # Whoever shows it shows a line: an end of one in a name of a column is none of this report's.
    assert "\n" not in told


def test_a_truth_may_be_written_as_a_number_and_another_cell_is_told_what_is_read():
    """As tools write truths that make one or zero of them; the same from a file and a frame."""
    for cells in ([True, False], ["True", "False"]):
        made = infer_schema({"flag": cells}, ["flag"])
        for new in ([1, 0], [1.0, 0.0], ["1", "0"], ["true", "FALSE"], [True, False]):
            np.testing.assert_array_equal(made.encode({"flag": new}).X.ravel(), [1.0, 0.0])
        with pytest.raises(ValueError, match=r"\(true, 1 for yes; false, 0 for no\) in row 2"):
            made.encode({"flag": ["1", "2"]})


@given(st.lists(CELLS, min_size=1, max_size=8), st.lists(CELLS, min_size=1, max_size=8))
def test_whatever_cells_hold_a_schema_is_found_read_again_and_used(cells, others):
    """And at prediction anything may come: numbers of the same width, or advice."""
    made = infer_schema({"x": cells}, ["x"])
    if not made.used:
        return
    assert schema_from_text(schema_to_text(made)) == made
    assert Reader(loaded=lambda _: np.zeros(0)).read(to_tree(made), Schema) == made
    for table in ({"x": cells}, {"x": others}):
        try:
            X = made.encode(table, one_by_one=True).X
        except ValueError as error:
            assert "column 'x'" in str(error)  # noqa: PT017
        else:
            assert X.shape == (len(table["x"]), len(made.names))


@pytest.mark.parametrize("kind", COLUMN_KINDS.values(), ids=COLUMN_KINDS.keys())
def test_damaged_columns_are_refused(kind):
    with pytest.raises(ValueError, match=r"\w"):
        kind(name="").validate()
    with pytest.raises(ValueError, match=r"\w"):
        kind(name="x", missing="sometimes").validate()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"fields": 3}', '{"fields": [{"name": "a", "kind": "secret"}]}']
)
def test_what_is_no_table_schema_is_refused(text):
    with pytest.raises(ValueError, match=r"Table Schema|kind must be"):
        schema_from_text(text)


def test_schemas_of_others_are_completed_from_public_columns():
    text = '{"fields": [{"name": "age", "type": "integer"}, {"name": "job", "type": "string"}]}'
    made = schema_from_text(text).complete({"age": [1, None, 9, 5], "job": ["b", "a", "a", None]})
    assert made.columns[0].fill == 5.0
    assert made.columns[1].levels == ("a", "b")


@pytest.mark.parametrize("kind", ["integer", "number", "string", "any"])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_whatever_has_categories_is_one_of_them(kind, labelled, ordered):
    """Regions 11 to 13 were read as amounts."""
    listed = [11, 12.0, "13"]
    field = {
        "name": "region",
        "type": kind,
        "categories": [{"value": each, "label": "x"} for each in listed] if labelled else listed,
        "categoriesOrdered": ordered,
    }
    [column] = schema_from_text(json.dumps({"fields": [field]})).columns
    assert isinstance(column, OrderedCategory if ordered else Category)
    assert column.levels == ("11", "12", "13")
    read = column.read([cells_of([12, 11, 12.0])], codes=frozenset())
    assert read.values.ravel().tolist() == [1.0, 0.0, 1.0]


def test_codes_for_missing_cells_may_have_labels():
    tree = {
        "missingValues": ["", {"value": "-9", "label": "refused"}, -8],
        "fields": [{"name": "age", "type": "integer"}],
    }
    made = schema_from_text(json.dumps(tree))
    assert made.missing_values == ("", "-9", "-8")
    assert made.complete({"age": ["-9", "30", "-8", "50"]}).columns[0].fill == 40.0


def test_codes_of_one_field_are_refused_in_words():
    """They were passed over: -9 was an age."""
    own = {"name": "age", "type": "integer", "missingValues": ["-9"]}
    part = {"name": "lat", "type": "number", "place": "home", "missingValues": ["0"]}
    for field in (own, part):
        with pytest.raises(ValueError, match=f"'{field['name']}': missingValues of one field"):
            schema_from_text(json.dumps({"fields": [field]}))
    same = {"missingValues": ["-9"], "fields": [own]}
    assert schema_from_text(json.dumps(same)).missing_values == ("-9",)


def test_a_schema_of_which_nothing_is_used_says_which_columns_were_taken_for_ids():
    names = [f"p{number}" for number in range(60)]
    with pytest.raises(ValueError, match=r"used: who, none are taken for ids, or are empty"):
        infer_schema({"who": names, "none": [""] * 60}, ["who", "none"]).validate()
    with pytest.raises(ValueError, match="used, and there is none"):
        Schema(()).validate()
    many = tuple(Number(f"x{number}") for number in range(10_001))
    with pytest.raises(ValueError, match="10,000 columns at most, not 10,001"):
        Schema(many).validate()


def test_names_and_levels_that_files_cannot_hold_are_refused():
    for columns in ((Number("\ud800"),), (Category("job", levels=("cook", "\ud800")),)):
        with pytest.raises(ValueError, match="half of a character"):
            Schema(columns).validate()


def test_dates_without_signs_are_days_whatever_holds_them():
    written = [20200203, 20200228, 20210301, 19991231, 20240229]
    made = infer_schema({"x": written}, ["x"])
    days = [
        (dt.datetime.strptime(str(each), "%Y%m%d") - dt.datetime(1970, 1, 1)).days
        for each in written
    ]
    for cells in (written, list(map(str, written)), pd.Series(written, dtype=float)):
        np.testing.assert_array_equal(made.encode({"x": cells}).X[:, 0], days)
    assert schema_from_text(schema_to_text(made)).columns[0].form == "%Y%m%d"
