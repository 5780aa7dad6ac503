"""Private columns: by what is declared alone, row by row, and no message tells a cell."""

import datetime as dt
import traceback
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cloakgp.columns import (
    Boolean,
    Category,
    Date,
    Identifier,
    Number,
    OrderedCategory,
    Place,
    Schema,
    Vector,
    schema_from_text,
    schema_to_text,
)
from cloakgp.columns.private import axes_of, box_of, encode_private, private_schema
from cloakgp.models.axes import Circle, Levels, Line

DAYS = (17897.0, 19357.0)
SCHEMA = Schema(
    (
        Number("age", missing="impute", fill=float("nan"), ranges=((0.0, 100.0),)),
        Category("job", levels=("clerk", "cook"), missing="category"),
        Category("sex", levels=("f", "m"), other=False),
        OrderedCategory("grade", levels=("a", "b", "c"), missing="impute", fill=float("nan")),
        Boolean("smoker", true_values=("yes",), false_values=("no",)),
        Date("when", cycles=("year", "week"), ranges=(DAYS,)),
        Place(
            "home",
            latitude="lat",
            longitude="lon",
            centre=(float("nan"),) * 2,
            ranges=((51.0, 52.0), (-1.0, 1.0)),
        ),
        Vector("light", columns=("l1", "l2"), ranges=((-1.0, 1.0),)),
        Identifier("name"),
    )
)


def table(count=12):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, count).round(3),
            "job": rng.choice(["clerk", "cook", "smith"], count),
            "sex": rng.choice(["f", "m"], count),
            "grade": rng.choice(["a", "b", "c"], count),
            "smoker": rng.choice(["yes", "NO"], count),
            "when": [
                f"20{year}-0{month}-1{day}"
                for year, month, day in rng.integers([19, 1, 0], [23, 9, 9], (count, 3))
            ],
            "lat": rng.uniform(51, 52, count),
            "lon": rng.uniform(-1, 1, count),
            "l1": rng.normal(size=count),
            "l2": rng.normal(size=count),
        }
    ).astype(object)
    frame.loc[0, "age"] = None
    frame.loc[1, ["job", "grade"]] = None
    return frame


def closed():
    return private_schema(SCHEMA)


def test_open_parts_follow_from_what_is_declared():
    found = {column.name: column for column in closed().columns}
    assert found["age"].fill == 50.0
    assert found["grade"].fill == 1.0
    assert found["home"].centre == (51.5, 0.0)
    assert found["light"].centre == (0.0, 0.0)
    assert "name" not in found


def test_columns_lie_along_axes_and_in_a_box():
    schema = closed()
    assert axes_of(schema) == (
        Line(0),
        Levels((1,)),
        Levels((2, 3, 4, 5)),
        Levels((6, 7)),
        Line(8),
        Levels((9,)),
        Levels((10,)),
        Line(11),
        Circle(12, 13),
        Circle(14, 15),
        Line(16),
        Line(17),
        Line(18),
        Line(19),
    )
    box = box_of(schema)
    assert box.n_inputs == len(schema.names) == 20
    assert (box.lo[0], box.hi[0]) == (0.0, 100.0)
    assert (box.lo[11], box.hi[11]) == DAYS
    X = encode_private(schema, table())
    inside = np.clip(X[:, :18], box.lo[:18], box.hi[:18])
    np.testing.assert_allclose(X[:, :18], inside, atol=1e-9)


def test_it_says_what_public_columns_say():
    """But that a public table is encoded at once."""
    schema = closed()
    np.testing.assert_allclose(
        encode_private(schema, table()), schema.encode(table()).X, rtol=1e-14, atol=1e-12
    )


def test_a_row_is_the_same_numbers_whatever_the_others_hold():
    """To the last bit: alone, in another place, and beside cells of other types."""
    schema, frame = closed(), table()
    whole = encode_private(schema, frame)
    for row in range(len(frame)):
        alone = encode_private(schema, frame.iloc[[row]])
        assert alone.tobytes() == whole[row].tobytes()
    turned = encode_private(schema, frame.iloc[::-1])
    assert turned.tobytes() == whole[::-1].copy().tobytes()
    other = frame.copy()
    other.loc[3] = ["17", "baker", "m", "c", True, dt.datetime(2020, 3, 4, 5), "51.5", 0, "0", 1]
    other.loc[3, "smoker"] = "no"
    changed = encode_private(schema, other)
    kept = [row for row in range(len(frame)) if row != 3]
    assert changed[kept].tobytes() == whole[kept].tobytes()


@pytest.mark.parametrize("typed", ["datetime64[s]", "datetime64[ns]"])
def test_columns_of_times_are_read_as_their_text(typed):
    frame = table()
    times = frame.assign(when=pd.to_datetime(frame.when).astype(typed))
    assert encode_private(closed(), times).tobytes() == encode_private(closed(), frame).tobytes()


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (Number("age"), "needs a range"),
        (Category("job"), "needs its levels"),
        (OrderedCategory("grade"), "needs its levels"),
        (Date("when"), "a first and a last date"),
        (Place("home", latitude="lat", longitude="lon"), "ranges of its degrees"),
        (Place("home", latitude="lat", longitude="lon", ranges=((0, 1),)), "ranges of its degrees"),
        (Vector("light", columns=("l1", "l2")), "a range of its numbers"),
        (
            Vector("light", columns=tuple(f"l{i}" for i in range(40)), ranges=((0.0, 1.0),)),
            "needs axes",
        ),
        (Number("age", missing="drop", ranges=((0.0, 1.0),)), "cannot be left out"),
        (Number("age", ranges=((1.0, 0.0),)), "its range must be finite, the lower end first"),
        (Number("age", ranges=((0.0, float("inf")),)), "its range must be finite"),
        (Number("age", ranges=((-1e308, 1e308),)), "its range must be finite"),
    ],
)
def test_what_is_left_open_is_refused_in_words(column, what):
    with pytest.raises(ValueError, match=what) as caught:
        private_schema(Schema((column,)))
    assert column.name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "cell", "what"),
    [
        ("age", "4711 years", "is not a number"),
        ("sex", "4711", "has a level that is not declared"),
        ("sex", None, "is empty"),
        ("smoker", "4711", "is neither yes nor no"),
        ("when", "4711", "is not a date or time"),
        ("lat", 4711.0, "is no latitude and longitude in degrees"),
        ("l1", "4711x", "is not a vector of finite numbers"),
        ("l2", [4711], "is not a vector of finite numbers"),
    ],
)
def test_no_message_tells_a_cell_or_where_it_stands(name, cell, what):
    frame = table(13)
    frame.at[7, name] = cell
    with pytest.raises(ValueError, match=what) as caught:
        encode_private(closed(), frame)
    said = "".join(traceback.format_exception_only(caught.value))
    assert not any(told in said for told in ("4711", "7", "8", "13", "12"))


@pytest.mark.parametrize("kind", [Category, OrderedCategory])
def test_long_whole_numbers_that_became_floats_are_refused(kind):
    """pandas makes them floats where another row lacks one, and two of them the same."""
    levels = ("9007199254740992", "9007199254740993")
    schema = private_schema(Schema((kind("person", levels=levels),)))
    whole = encode_private(schema, pd.DataFrame({"person": [2**53, 2**53 + 1]}))
    assert not np.array_equal(whole[0], whole[1])
    for beside in ([np.nan], []):
        frame = pd.DataFrame({"person": np.array([2.0**53, *beside])})
        with pytest.raises(ValueError, match="hand over text or whole numbers") as caught:
            encode_private(schema, frame)
        assert not any(digit in str(caught.value) for digit in "0123456789")
    short = private_schema(Schema((kind("person", levels=("1", "2")),)))
    floats = encode_private(short, pd.DataFrame({"person": [1.0, 2.0]}))
    assert np.array_equal(floats, encode_private(short, pd.DataFrame({"person": [1, 2]})))


def test_columns_of_other_lengths_or_none_are_refused_without_counting():
    columns = {name: list(cells) for name, cells in table(13).items()}
    with pytest.raises(ValueError, match="as many rows") as caught:
        encode_private(closed(), columns | {"sex": ["f"] * 17})
    assert not any(told in str(caught.value) for told in ("13", "17"))
    with pytest.raises(ValueError, match="as many rows"):
        encode_private(closed(), columns | {"l2": [0.0] * 17})
    with pytest.raises(ValueError, match="0 sample"):
        encode_private(closed(), {name: [] for name in columns})
    with pytest.raises(ValueError, match="no column sex"):
        encode_private(closed(), {name: cells for name, cells in columns.items() if name != "sex"})


def test_ranges_stand_in_files_of_schemas():
    schema = closed()
    again = schema_from_text(schema_to_text(schema))
    assert again.columns == schema.columns
    open_one = replace(SCHEMA.columns[0], fill=0.0, ranges=())
    assert "constraints" not in schema_to_text(Schema((open_one,)))


def test_half_a_range_is_none():
    for limits in ("{}", '{"minimum": 0}', '{"minimum": "low", "maximum": 5}'):
        text = f'{{"fields": [{{"name": "age", "type": "number", "constraints": {limits}}}]}}'
        assert schema_from_text(text).columns[0].ranges == ()
    text = (
        '{"fields": [{"name": "when", "type": "date", "format": "%d.%m.%Y", '
        '"constraints": {"minimum": "01.01.2019", "maximum": "2022-12-31"}}]}'
    )
    assert schema_from_text(text).columns[0].ranges == (DAYS,)


def test_ranges_are_told():
    told = {column.name: column.describe_ranges() for column in closed().columns}
    assert told["age"] == "0 to 100"
    assert told["when"] == "2019-01-01 to 2022-12-31"
    assert told["home"] == "51 to 52 and -1 to 1"
    assert told["job"] == ""
