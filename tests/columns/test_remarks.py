"""What is remarked on public columns is so in the table, and what is ordinary is not remarked."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloakgp.columns import Category, Number, Schema, infer_schema
from cloakgp.columns.cells import cells_of
from cloakgp.columns.remarks import remark_on_bounds, remarks_on
from cloakgp.data.raw import ArrowCells

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


def test_numbers_that_may_be_codes_are_remarked():
    """A code of twelve, taken for an amount, was predicted with a tenth of its true error."""
    rng = np.random.default_rng(1)
    people = {
        "code": rng.integers(0, 12, COUNT),
        "yes": rng.integers(0, 2, COUNT),
        "year": rng.integers(1900, 2000, COUNT),
        "half": rng.integers(0, 12, COUNT) / 2,
    }
    told = remarks_on(infer_schema(people, list(people)), people)
    assert list(told) == ["code"]
    assert told["code"][0].startswith("12 different whole numbers, taken for amounts")
    few = {"code": people["code"][:100]}
    assert remarks_on(infer_schema(few, ["code"]), few) == {}


@pytest.mark.parametrize("cells", [["01685", "12001", "99084"], ["007", "", "12"]])
def test_whole_numbers_that_begin_with_zero_are_remarked(cells):
    """Postcodes are taken for amounts, as many as there are."""
    assert "whole numbers that begin with 0, as 007 does" in said_of(cells * 30)[-1]
    for amounts in (["0", "12", "7"], ["0.5", "12", "7"], ["-3", "0", "12"]):
        assert not any("007" in each for each in said_of(amounts * 30))


def test_a_table_without_rows_is_not_remarked():
    schema = Schema((Number("age"), Category("job", levels=("cook",))))
    assert remarks_on(schema, {"age": [], "job": []}) == {}


def test_levels_that_are_not_declared_are_no_remark_where_they_are_faults():
    schema = Schema((Category("job", levels=("cook",), other=False),))
    assert remarks_on(schema, {"job": ["cook", "clerk"]}) == {}


def said_of(cells):
    table = {"x": list(cells)}
    return remarks_on(infer_schema(table, ["x"]), table).get("x", ())


def test_cells_that_are_no_numbers_are_counted():
    cells = [f"{number}.5" for number in range(50)]
    assert said_of(cells) == ()
    assert "2 of its 52 cells are no numbers: they are refused" in said_of([*cells, "a", "b"])
    mixed = [*cells[:30], *"abcdefghijkl", *"abcdefgh"]
    assert any("20 of its 50 cells are no numbers, and all are" in one for one in said_of(mixed))


def test_how_decimals_are_written_is_told():
    assert said_of(["1.5", "2.5", "3"]) == ()
    assert said_of(["1,5", "2,5", "3"]) == ("read with decimal commas: 1,5 is one and a half",)
    assert "and '.' between thousands" in said_of(["1.000,5", "2,5", "3"])[0]


def test_dates_in_several_forms_are_told():
    german = [f"{day:02}.03.2026" for day in range(1, 29)]
    iso = [f"2026-03-{day:02}" for day in range(1, 29)]
    assert said_of(german) == said_of(iso) == ()
    (told,) = [one for one in said_of([*german, *iso] * 2) if "forms" in one]
    assert told.startswith("dates are written in several forms (2026-01-31, %d.%m.%Y)")
    few = said_of([*german, "soon", "later"])
    assert "2 of its 30 cells are no dates or times as %d.%m.%Y: they are refused" in few
    assert not any("forms" in one for one in said_of(["cook", "clerk"] * 20))


def test_days_that_may_be_months_are_told():
    firsts = [f"{month:02}/01/{year}" for year in (2023, 2024) for month in range(1, 13)]
    (told,) = (one for one in said_of([*firsts, ""]) if "first" in one)
    assert told.startswith("the day is taken to come first")
    assert '"format": "%m/%d/%Y"' in told
    timed = [f"{each} 10:30" for each in firsts]
    assert any('"%m/%d/%Y %H:%M"' in one for one in said_of(timed))
    for settled in (
        [*firsts, "13/01/2024"],
        [*firsts, "01/13/2024"],
        ["01/01/2023", "02/02/2023"],
        [each.replace("/", ".") for each in firsts],
    ):
        assert said_of(settled) == ()


def test_cells_beside_dates_of_one_form_are_counted():
    dates = [f"2026-01-{day:02}" for day in range(1, 21)] * 2
    (told,) = said_of([*dates, *(f"{serial}" for serial in range(46023, 46028)), "46023"])
    assert told == "6 of its 46 cells are no dates as 2026-01-31, and all are taken as text"


def test_ids_that_repeat_are_told_to_be_persons_perhaps():
    names = [f"P{max(number - 9, 0):05d}" for number in range(COUNT)]
    told = " ".join(said_of(names))
    assert "taken for an id: 391 different values in 400 rows" in told
    assert "all rows of a person are protected together" in told
    assert "together" not in " ".join(said_of([f"P{number:05d}" for number in range(COUNT)]))
    table = {"patient_id": [number // 2 for number in range(COUNT)]}
    (told,) = remarks_on(infer_schema(table, ["patient_id"]), table)["patient_id"]
    assert told.startswith("200 different values in 400 rows: some of them repeat")


@pytest.mark.parametrize("words", [("True", "False"), ("yes", "no"), ("1", "0"), ("a", "b")])
def test_answers_of_two_words_are_no_ids_of_persons(words):
    """Of a column member, which may name persons by its name."""
    table = {"member": list(words) * 20}
    assert remarks_on(infer_schema(table, ["member"]), table) == {}


@pytest.mark.parametrize(
    ("bounds", "told"), [((0, 1), True), ((0.0, 1.0), True), ((0, 2), False), ((-1, 1), False)]
)
def test_bounds_of_zero_and_one_may_be_those_of_classes(bounds, told):
    assert ("--classes 0,1" in remark_on_bounds(*bounds)) == told


@pytest.mark.parametrize("form", ["{}%", "€ {}", "{} EUR", "{}\u00a0"])
def test_numbers_with_something_around_them_are_told(form):
    cells = [form.format(number % 20) for number in range(100)]
    table = {"x": ArrowCells(pa.array([cell.encode() for cell in cells]))}
    schema = infer_schema(table, ["x"])
    (told,) = remarks_on(schema, table)["x"]
    assert isinstance(schema.columns[0], Category)
    assert told.startswith("100 of its 100 cells are numbers with something around them")
    codes = {"x": ArrowCells(pa.array([str(number % 20).encode() for number in range(100)]))}
    declared = Schema((Category("x", levels=tuple(map(str, range(20)))),))
    assert remarks_on(declared, codes) == {}


def of_days(form, *, count=300, first="1999-01-01"):
    """Return dates and times as text, of some three years, each different."""
    days = pd.Timestamp(first) + pd.to_timedelta(np.arange(count) * 5257 % 1_600_000, unit="min")
    return [day.strftime(form) for day in days]


def kind_of(cells):
    people = {"cell": np.array(cells, dtype=object)}
    schema = infer_schema(people, ["cell"])
    return schema.columns[0], remarks_on(schema, people).get("cell", ())


@pytest.mark.parametrize(
    "form",
    [
        *("%m-%d-%Y", "%d-%b-%Y", "%Y.%m.%d", "%B %d, %Y", "%m/%d/%Y %I:%M %p"),
        *("%m/%d/%y", "%m/%d/%y %H:%M", "%m-%d-%y", "%d-%b-%y", "%d.%m.%y", "%d/%m/%y", "%y-%m-%d"),
    ],
)
def test_dates_are_read_in_the_forms_of_many_tables(form):
    """They were taken for ids, which were to be declared as whose rows they are."""
    for cells in (of_days(form, first="1980-01-01"), of_days(form, first="1980-01-01")[:30] * 9):
        column, told = kind_of(cells)
        assert (column.kind, column.form) == ("date", form)
        assert told == (PIVOT,) * ("%y" in form)


PIVOT = "years have two digits: 69 to 99 are taken for 1969 to 1999, and 00 to 68 for 2000 to 2068"


def test_years_of_two_digits_are_of_the_centuries_that_are_told():
    cells = ["13/05/69", "14/05/99", "15/05/00", "16/05/68"]
    column, told = kind_of(cells)
    days = column.read([cells_of(cells)], codes=frozenset()).values[:, 0]
    read = [str(np.datetime64(int(day), "D")) for day in days]
    assert read == ["1969-05-13", "1999-05-14", "2000-05-15", "2068-05-16"]
    assert told == (PIVOT,)


@pytest.mark.parametrize("sign", ["/", ".", "-"])
def test_dates_whose_years_may_come_first_or_last_are_left_to_the_schema(sign):
    form = f"%d{sign}%m{sign}%y"
    column, told = kind_of(of_days(form, first="2003-01-01"))
    assert column.kind == "identifier"
    assert told[0].startswith("taken for an id")
    assert f"look like dates as {form} or %y{sign}%m{sign}%d" in told[1]
    assert len(told) == 2
    # A day that is no month, in the middle, settles it.
    american = of_days(f"%m{sign}%d{sign}%y", first="2003-01-01")
    if sign != ".":
        assert kind_of(american)[0].form == f"%m{sign}%d{sign}%y"


@pytest.mark.parametrize(
    ("cells", "meant"),
    [
        ([f"{number // 60:02}:{number % 60:02}:38" for number in range(60, 160)], "durations"),
        ([f"{number // 60}:{number % 60:02}" for number in range(500, 600)], "durations"),
        ([f"{number // 60 + 1}:{number % 60:02} PM" for number in range(100)], "durations"),
        ([f"{1950 + number // 4} Q{number % 4 + 1}" for number in range(100)], "quarters"),
        ([f"{1950 + number // 4}Q{number % 4 + 1}" for number in range(100)] * 3, "quarters"),
        ([f"{1950 + number // 40}-Q{number % 4 + 1}" for number in range(100)], "quarters"),
        ([f"{2018 + number // 50} W{number % 50 + 1}" for number in range(100)], "weeks"),
        ([f"w{number % 50 + 1}-{2018 + number // 50}" for number in range(100)], "weeks"),
    ],
)
def test_times_and_quarters_are_named_and_nobody_is_said_to_be_in_them(cells, meant):
    """Finishing times were "taken for an id", and to be declared as persons'."""
    for each in (cells, [*cells[:90], *cells[:10]]):
        column, told = kind_of(each)
        assert column.kind in ("identifier", "category")
        assert any("look like" in one and meant in one for one in told)
        assert not any("--person" in one for one in told)
    # Few of them are no more than other text.
    assert not any("look like" in one for one in kind_of([*cells[:9], *"abcdefghijklmnop"])[1])


def test_weeks_of_years_are_dates_as_the_standard_writes_them():
    weeks = [f"{2018 + number // 50}-W{number % 50 + 1:02}" for number in range(100)]
    column, told = kind_of(weeks)
    assert column.kind == "date"
    assert not any("look like" in one for one in told)
    monday = (dt.date(2018, 1, 1) - dt.date(1970, 1, 1)).days
    assert cells_of(weeks).times("default")[0][:3].tolist() == [monday, monday + 7, monday + 14]


@pytest.mark.parametrize("form", ["%d%m%Y", "%m%d%Y"])
@pytest.mark.parametrize("typed", [str, int])
def test_numbers_that_look_like_dates_with_the_year_last_are_named(form, typed):
    column, told = kind_of([typed(day) for day in of_days(form, count=300)])
    assert column.kind == "number"
    assert any(f"look like dates as {form}" in one for one in told)
    # Of numbers of as many digits that are no days, nothing is said.
    amounts = [typed(31_990_000 + 7 * number) for number in range(300)]
    assert not any("look like" in one for one in kind_of(amounts)[1])


def test_dates_that_a_schema_takes_for_words_are_named():
    people = {"day": of_days("%d.%m.%Y", count=40)}
    told = remarks_on(Schema((Category("day", levels=("a", "b")),)), people)["day"]
    assert any(
        "look like dates as %d.%m.%Y" in one and '"format": "%d.%m.%Y"' in one for one in told
    )
