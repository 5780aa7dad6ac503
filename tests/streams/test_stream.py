"""Streams: what is asked when, by whose word, at what price; and what is refused."""

from __future__ import annotations

import io
import os
import pickle
import re
import sqlite3
import traceback
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from stream_tables import BOUNDS, model, month, months, stream

from cloakgp import DPGPClassifier, DPGPRegressor, PrivacyParameterWarning, Release, Stream, extend
from cloakgp.columns import Category, Number, Schema
from cloakgp.ledger import Ledger
from cloakgp.models.kernels.forgetting import ForgettingKernel
from cloakgp.privacy.spending import Cost
from cloakgp.report.describe import describe
from cloakgp.streams.plan import total_of
from cloakgp.streams.sources import TableChunk
from cloakgp.streams.state import StreamStateError
from cloakgp.streams.stream import StreamWarning


def told(release):
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def write(folder, number, table):
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / f"{number:02d}.csv", index=False)


@contextmanager
def untouched():
    """Fail where noise would be drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.privacy.sampler.spend", lambda *_: pytest.fail("drawn"))
        yield


def test_each_period_is_one_table_of_the_release(tmp_path):
    made = stream(months(3), tmp_path)
    settled = made.advance()
    assert [(each.number, each.stage, each.rows) for each in settled] == [
        (number, "released", 6) for number in range(3)
    ]
    release = made.release
    assert [one.strategy.table for one in release.measurements] == [0, 1, 2]
    assert release.cohorts == ((0,), (1,), (2,))
    assert release.visits == 3
    for number, measurement in enumerate(release.measurements):
        own = month(number)["age"].to_numpy()[:, None]
        np.testing.assert_array_equal(measurement.strategy.X, own)
    # After each period there was a release of all till then.
    for number in range(3):
        earlier = Release.load(tmp_path / f"period-{number + 1:04d}.cloak")
        assert len(earlier.measurements) == number + 1
        answers = earlier.measurements[-1].answers.values
        np.testing.assert_array_equal(answers, release.measurements[number].answers.values)


def test_it_asks_what_extend_asks(tmp_path):
    """Oracle: the same questions as by hand, of the same rows, from the same release."""
    made = stream(months(2), tmp_path, horizon=2)
    made.advance()
    first = Release.load(tmp_path / "period-0001.cloak")
    later = month(1)
    by_hand = extend(
        first,
        later[["age"]],
        later["pay"],
        people="disjoint",
        epsilon=1.0,
        delta=0.0,
        noise="laplace",
    )
    ours, theirs = (each.measurements[-1] for each in (made.release, by_hand))
    np.testing.assert_array_equal(ours.strategy.matrix, theirs.strategy.matrix)
    np.testing.assert_array_equal(ours.question.lower, theirs.question.lower)
    assert ours.answers.guarantee == theirs.answers.guarantee


@pytest.mark.parametrize(("people", "epsilon"), [("disjoint", 1.0), ("overlapping", 3.0)])
def test_people_pay_for_the_periods_that_they_are_in(people, epsilon, tmp_path):
    made = stream(months(3), tmp_path, people=people)
    assert made.plan().total == pytest.approx(epsilon)
    made.advance()
    assert made.release.guarantee.pure_epsilon == pytest.approx(epsilon)
    assert made.spent == pytest.approx(epsilon)


def test_ids_add_up_by_person(tmp_path):
    who = [list("abcdef"), list("abuvwx"), list("aklmno"), list("zzzzzz")]
    source = [month(number, people=each) for number, each in enumerate(who)]
    made = stream(source, tmp_path, people="overlapping", person="who")
    made.advance()
    # a is in all three.
    assert made.release.cohorts == ()
    assert made.spent == pytest.approx(3.0)
    source[2] = month(2, people=list("bklmno"))
    fewer = stream(
        [source[0], month(1, people=list("auvwxx")), *source[2:]],
        tmp_path / "fewer",
        people="overlapping",
        person="who",
    )
    fewer.advance()
    assert fewer.release.cohorts == ((0, 1), (0, 2))
    assert fewer.spent == pytest.approx(2.0)
    assert fewer.release.guarantee.pure_epsilon == pytest.approx(2.0)
    assert "of one person" in told(fewer.release)["protected"]
    # Neither the release nor the state holds an id.
    named = [month(number, people=[f"person-{row}" for row in range(6)]) for number in range(2)]
    stream(named, tmp_path / "named", horizon=1, person="who").advance()
    for path in (tmp_path / "named").iterdir():
        assert b"person-" not in path.read_bytes()


def test_a_person_in_two_disjoint_periods_is_refused_before_a_draw(tmp_path):
    source = [month(0), month(1, people=["p0-3", *"bcdef"]), month(2)]
    made = stream(source, tmp_path, person="who")
    with pytest.raises(ValueError, match="1 people of period 2 were asked in period 1") as caught:
        made.advance()
    assert "nothing was drawn" in str(caught.value)
    first, second, _ = made.periods
    assert (first.stage, second.stage, second.drawn) == ("released", "closed", ())
    with untouched(), pytest.raises(ValueError, match="people of period 2"):
        made.advance()
    assert made.spent == pytest.approx(1.0)


def as_pandas_reads(table, ids):
    return table.assign(who=pd.read_csv(io.StringIO("\n".join(["who", *ids])))["who"])


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("days", [30, 60])
def test_a_person_who_is_a_number_here_and_text_there_is_refused(days, in_files, tmp_path):
    """In two periods, and in two tables of one: 001 is read as 1 where no cell has a letter."""
    ids = [f"{number:03d}" for number in range(1, 7)]
    first = as_pandas_reads(month(0), ids)
    second = as_pandas_reads(month(1), [*ids[:5], "A07"])
    assert (first["who"].dtype.kind, second["who"].iloc[0]) == ("i", "001")
    source = [first, second, as_pandas_reads(month(2), ["B1"] * 6)]
    if in_files:
        folder = tmp_path / "arrivals"
        folder.mkdir()
        for number, table in enumerate(source):
            table.to_parquet(folder / f"{number}.parquet")
        source = folder
    made = stream(source, tmp_path / "s", person="who", length=days, horizon=1)
    with untouched(), pytest.raises(ValueError, match="'who' is not written in one way") as caught:
        made.advance()
    assert "Make the column text in all tables" in str(caught.value)


def test_a_person_who_is_written_in_another_way_in_a_later_run_is_refused(tmp_path):
    path = tmp_path / "people.sqlite"

    def add(table, kind):
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE IF EXISTS visits")
            table.to_sql("visits", database, index=False, dtype={"who": kind})

    first = month(0).assign(who=range(6))
    add(pd.concat([first, month(1).assign(who=range(6, 12))]), "INTEGER")
    made = stream(path, tmp_path / "s", person="who", horizon=2)
    assert len(made.advance()) == 1
    told = [f"{number:02d}" for number in range(18)]
    add(pd.concat([*months(1), month(2)]).assign(who=told), "TEXT")
    with untouched(), pytest.raises(ValueError, match="'who' is not written in one way"):
        made.advance()


def test_ids_that_read_alike_are_one_person_whatever_holds_them(tmp_path):
    tables = [month(0, people=[1, 2, 3, 4, 5, 6]), month(1, people=list("678901"))]
    made = stream([*tables, month(2, people=list("222222"))], tmp_path, person="who", horizon=2)
    with pytest.raises(ValueError, match="2 people of period 2 were asked in period 1"):
        made.advance()


def test_late_rows_are_left_out_and_counted(tmp_path):
    late = month(0, seed=3).assign(day=12.0)
    between = pd.concat([month(1), late])
    # With a lateness of ten days the first month closes at day 40.
    source = [month(0), month(1).assign(day=35.0), late, month(2), between, month(4)]
    made = stream(source, tmp_path, lateness=10.0, horizon=2)
    made.advance()
    first, second = made.periods
    assert (first.rows, first.late) == (12, 6)
    assert (second.rows, second.late) == (6, 6)
    asked = made.release.measurements[0].strategy.X[:, 0]
    np.testing.assert_array_equal(asked, [*month(0)["age"], *late["age"]])


def test_rows_outside_of_all_periods_are_left_out(tmp_path):
    early = month(-1)
    made = stream([early, *months(1)], tmp_path, horizon=1)
    made.advance()
    (period,) = made.periods
    assert period.rows == 6
    assert [(each.before, each.beyond) for each in made.state.chunks] == [(6, 0), (0, 0), (0, 6)]
    assert (made.rows_before, made.rows_after) == (6, 6)


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("zone", ["", "+09:00"])
def test_periods_of_times_with_a_zone_are_in_universal_time_and_that_is_told(
    zone, typed, in_files, tmp_path
):
    """The first nine hours of a year in Japan lie before it."""
    when = pd.date_range("2026-01-01T00:30", periods=24, freq="h", tz="Asia/Tokyo")
    table = pd.concat([month(0, rows=12), month(0, rows=12, seed=1)]).assign(
        day=when if typed else [each.isoformat() for each in when]
    )
    source = [table]
    if in_files:
        (tmp_path / "arrivals").mkdir()
        table.to_parquet(tmp_path / "arrivals" / "0.parquet")
        source = tmp_path / "arrivals"
    made = stream(source, tmp_path / "s", origin=f"2026-01-01T00:00{zone}", length=1, horizon=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made.advance()
        made.plan()
    told = [str(each.message) for each in said if each.category is StreamWarning]
    assert made.rows_before == (0 if zone else 9)
    if zone:
        assert told == []
        return
    (only,) = told
    assert "times in 'day' have a zone, and are turned into universal time" in only


def test_how_columns_are_read_is_told_once(tmp_path):
    """Text with commas and points was read by a guess, and a period's budget was spent on it."""
    parts = [
        each.assign(age=each["age"].map("{:.3f}9".format).str.replace(".", ","))
        for each in months(1)
    ]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = stream(parts, tmp_path / "s", horizon=1)
        made.plan()
        made.advance()
    told = [str(each.message) for each in said if each.category is StreamWarning]
    assert sum("age: read with decimal commas" in each for each in told) == 1
    assert sum("pay: text in it is read with decimal commas" in each for each in told) == 1
    (at,) = {each.filename for each in said if "read with" in str(each.message)}
    assert at == __file__


def test_repeated_rows_are_replaced_until_the_period_closes(tmp_path):
    corrected = month(0).iloc[[1, 4]].assign(age=[4.5, 0.5])
    after = month(0).iloc[[2]].assign(age=9.9)
    source = [month(0), corrected, month(1), after, month(2)]
    made = stream(source, tmp_path, person="who", horizon=2)
    made.advance()
    first, _ = made.periods
    assert (first.rows, first.repeated, first.late) == (6, 2, 1)
    ages = made.release.measurements[0].strategy.X[:, 0].tolist()
    kept = month(0)["age"].drop([1, 4]).tolist()
    assert ages == [*kept, 4.5, 0.5]


def test_the_private_values_are_those_of_the_rows(tmp_path):
    """Rows of several chunks, in part late and in part replaced, keep their outputs."""
    seen = {}

    def fit(self, X, y, **how):
        seen["pairs"] = dict(zip(X["age"].tolist(), np.asarray(y).tolist(), strict=True))
        return DPGPRegressor.__wrapped_fit__(self, X, y, **how)

    table = month(0, rows=20).assign(pay=np.linspace(-3, 7, 20))
    shuffled = table.sample(frac=1, random_state=1)
    corrected = table.iloc[[3]].assign(age=4.875, pay=6.5)
    source = [shuffled.iloc[:9], shuffled.iloc[9:], corrected, month(1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DPGPRegressor, "__wrapped_fit__", DPGPRegressor.fit, raising=False)
        patch.setattr(DPGPRegressor, "fit", fit)
        stream(source, tmp_path, person="who", horizon=1).advance()
    kept = table.drop(index=3)
    expected = dict(zip(kept["age"], kept["pay"], strict=True)) | {4.875: 6.5}
    assert seen["pairs"] == pytest.approx(expected)


def test_files_are_read_once_and_restarts_go_on(tmp_path):
    folder = tmp_path / "arrivals"
    for number in range(2):
        write(folder, number, month(number))
    go_on = lambda: stream(folder, tmp_path / "stream")  # noqa: E731
    assert [each.number for each in go_on().advance()] == [0]
    assert go_on().advance() == ()
    write(folder, 2, month(2))
    assert [each.number for each in go_on().advance()] == [1]
    # Of what was asked, the file may go.
    (folder / "00.csv").unlink()
    write(folder, 3, month(3))
    assert [each.number for each in go_on().advance()] == [2]
    assert len(go_on().release.measurements) == 3
    with pytest.raises(ValueError, match="the horizon of 3 periods is exhausted"):
        go_on().advance()


def test_a_file_that_changes_is_read_again_or_refused(tmp_path):
    folder = tmp_path / "arrivals"
    write(folder, 0, month(0))
    made = stream(folder, tmp_path / "stream")
    assert made.advance() == ()
    write(folder, 0, month(0, rows=8))
    os.utime(folder / "00.csv", ns=(1, 1))
    with pytest.warns(StreamWarning, match=r"00\.csv has changed .* so it is read again"):
        made.advance()
    write(folder, 1, month(1))
    (period,) = made.advance()
    assert period.rows == 8
    write(folder, 0, month(0))
    os.utime(folder / "00.csv", ns=(2, 2))
    with untouched(), pytest.raises(StreamStateError, match="since its rows were asked"):
        made.advance()
    write(folder, 0, month(0, rows=8))
    os.utime(folder / "00.csv", ns=(3, 3))
    assert made.advance() == ()


def test_a_private_cell_that_changes_after_it_was_asked_is_not_noticed_and_counts_no_more(tmp_path):
    folder = tmp_path / "arrivals"
    for number in range(2):
        write(folder, number, month(number))
    made = stream(folder, tmp_path / "stream")
    assert [each.number for each in made.advance()] == [0]
    before = made.release.to_bytes()
    low, high = BOUNDS
    write(folder, 0, month(0).assign(pay=lambda table: low + high - table["pay"]))
    os.utime(folder / "00.csv", ns=(4, 4))
    with untouched():
        assert made.advance() == ()
    assert made.release.to_bytes() == before


def test_a_file_that_is_gone_or_of_another_form_is_refused(tmp_path):
    folder = tmp_path / "arrivals"
    write(folder, 0, month(0))
    made = stream(folder, tmp_path / "stream")
    made.advance()
    write(folder, 1, month(1).drop(columns="age"))
    with pytest.raises(ValueError, match=r"01\.csv.*age"):
        made.advance()
    write(folder, 1, month(1).assign(age="old"))
    with pytest.raises(ValueError, match=r"01\.csv.*age"):
        made.advance()
    write(folder, 1, month(1).assign(day="never"))
    with pytest.raises(ValueError, match=r"01\.csv.*day"):
        made.advance()
    (folder / "00.csv").unlink()
    write(folder, 1, month(1))
    with untouched(), pytest.raises(StreamStateError, match=r"00\.csv .* put it back"):
        made.advance()


def test_another_replay_is_refused(tmp_path):
    """An iterable that does not begin with the chunks that were read."""
    stream([month(0)], tmp_path).advance()
    made = stream([month(0, seed=9), month(1)], tmp_path)
    with untouched(), pytest.raises(StreamStateError, match="chunk 1 has other rows"):
        made.advance()


def test_only_what_is_new_is_no_replay(tmp_path):
    """Tables of an earlier run that do not come again would be left out without a word."""
    stream([month(0)], tmp_path).advance()
    with untouched(), pytest.raises(StreamStateError, match="come again from the first"):
        stream([month(1)], tmp_path).advance()
    made = stream(months(1), tmp_path)
    assert [each.rows for each in made.advance()] == [6]
    # What was asked is compared, too.
    with untouched(), pytest.raises(StreamStateError, match="chunk 2 has other rows"):
        stream([month(0), month(2)], tmp_path).advance()
    assert made.advance() == ()


def test_late_rows_of_a_file_that_changes_are_counted_once(tmp_path):
    folder = tmp_path / "arrivals"
    for number in (0, 2):
        write(folder, number, month(number))
    made = stream(folder, tmp_path / "stream", horizon=4)
    assert [each.number for each in made.advance()] == [0, 1]
    for turn, rows in enumerate((3, 5), start=1):
        write(folder, 2, pd.concat([month(2), month(0, rows=rows, seed=4)]))
        os.utime(folder / "02.csv", ns=(turn, turn))
        with pytest.warns(StreamWarning, match="so it is read again"):
            assert made.advance() == ()
        assert [each.late for each in made.periods] == [rows, 0, 0, 0]
    write(folder, 3, month(3))
    (period,) = made.advance()
    assert (period.number, period.rows) == (2, 6)
    assert [each.rows for each in made.periods] == [6, 0, 6, 0]


def test_a_file_that_changes_keeps_rows_of_a_period_that_closed_and_was_not_asked(tmp_path):
    folder = tmp_path / "arrivals"
    write(folder, 0, month(0).assign(pay="none"))
    write(folder, 1, month(1))
    made = stream(folder, tmp_path / "stream", horizon=1)
    with untouched(), pytest.raises(ValueError, match="pay"):
        made.advance()
    write(folder, 0, month(0, rows=8))
    os.utime(folder / "00.csv", ns=(1, 1))
    with pytest.warns(StreamWarning):
        (period,) = made.advance()
    assert (period.rows, period.late) == (8, 0)


def test_chunks_come_from_an_iterator_as_they_come(tmp_path):
    arrived = []

    def arriving():
        for number in range(4):
            while len(arrived) <= number:
                return
            yield arrived[number]

    class Growing:
        def __iter__(self):
            return self

        def __init__(self):
            self.next = 0

        def __next__(self):
            if self.next >= len(arrived):
                raise StopIteration
            self.next += 1
            return arrived[self.next - 1]

    del arriving
    made = stream(Growing(), tmp_path, horizon=1)
    arrived.append(month(0))
    assert made.advance() == ()
    arrived.append(month(1))
    assert len(made.advance()) == 1


def test_a_database_grows(tmp_path):
    path = tmp_path / "people.sqlite"

    def add(table):
        with sqlite3.connect(path) as database:
            table.to_sql("visits", database, if_exists="append", index=False)

    add(month(0))
    go_on = lambda: stream(  # noqa: E731
        path, tmp_path / "stream", query="SELECT day, age, pay FROM visits", horizon=2
    )
    assert go_on().advance() == ()
    add(month(1))
    assert [each.rows for each in go_on().advance()] == [6]
    add(pd.concat([month(0, seed=8), month(2)]))
    assert [each.rows for each in go_on().advance()] == [6]
    first, second = go_on().periods
    assert (first.late, second.late) == (6, 0)


def before_outputs_are_read(patch, change):
    """Let somebody change a table after it was looked at, and before its outputs are read."""
    read = TableChunk.read

    def changed(this, names, **how):
        if how.get("private") is not None:
            change(this)
        return read(this, names, **how)

    patch.setattr(TableChunk, "read", changed)


def test_outputs_are_of_the_rows_that_were_looked_at_in_a_database_that_grows(tmp_path):
    path = tmp_path / "people.sqlite"

    def add(table):
        with sqlite3.connect(path) as database:
            table.to_sql("visits", database, if_exists="append", index=False)

    for each in months(1):
        add(each)
    made = stream(
        path,
        tmp_path / "stream",
        query="SELECT day, age, pay FROM visits ORDER BY day",
        horizon=1,
    )
    with pytest.MonkeyPatch.context() as patch:
        before_outputs_are_read(patch, lambda _: add(month(0, rows=2, seed=5)))
        with untouched(), pytest.raises(StreamStateError, match="were added or changed") as caught:
            made.advance()
    assert "ORDER BY" in str(caught.value)
    assert made.spent == 0.0
    with pytest.MonkeyPatch.context() as patch:
        # Rows of other periods do not matter.
        before_outputs_are_read(patch, lambda _: add(month(2, rows=2)))
        with pytest.warns(StreamWarning, match="8 instead of 6"):
            (period,) = made.advance()
    assert (period.stage, period.rows) == ("released", 8)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.iloc[::-1],
        lambda table: table.iloc[:4],
        lambda table: table.assign(age=table["age"] + 1),
        lambda table: table.assign(who=table["who"] + "x"),
    ],
)
def test_outputs_are_of_the_rows_that_were_looked_at_in_a_file(change, tmp_path):
    folder = tmp_path / "arrivals"
    for number in range(2):
        write(folder, number, month(number))
    made = stream(folder, tmp_path / "stream", person="who", horizon=1)
    with pytest.MonkeyPatch.context() as patch:
        before_outputs_are_read(patch, lambda _: write(folder, 0, change(month(0))))
        with untouched(), pytest.raises(StreamStateError, match=r"00\.csv has other rows"):
            made.advance()
    write(folder, 0, month(0))
    assert [each.stage for each in made.advance()] == ["released"]


def test_the_clock_does_not_go_back_from_nought(tmp_path):
    late = [month(-1).assign(day=0.0), month(-1)]
    made = stream(late, tmp_path, origin=-30)
    made.advance()
    assert made.state.clock == 0.0


def mistyped(number, day, **settings):
    """A month of which the last row has a wrong time."""
    table = month(number, **settings)
    table.loc[len(table) - 1, "day"] = day
    return table


@pytest.mark.parametrize("day", [9100.0, 1e15, 400.0])
@pytest.mark.parametrize("in_files", [False, True])
def test_one_wrong_time_closes_nothing(day, in_files, tmp_path):
    tables, source = [month(0), mistyped(1, day), month(2)], tmp_path / "tables"
    for number, table in enumerate(tables):
        write(source, number, table)
    made = stream(source if in_files else tables, tmp_path / "out", horizon=12)
    with untouched(), pytest.raises(ValueError, match="whole periods") as failure:
        made.advance()
    said = str(failure.value)
    assert ("01.csv" if in_files else "chunk 2") in said
    assert "Nothing was drawn" in said
    assert {each.stage for each in made.periods} == {"open"}
    # It is corrected, or it is so.
    write(source, 1, month(1))
    if in_files:
        assert [each.stage for each in made.advance()] == ["released"] * 2
    else:
        assert [each.stage for each in made.advance(now=65)] == ["released"] * 2
        assert made.rows_after == 1


def test_a_table_with_many_months_at_once_leaps_over_nothing(tmp_path):
    made = stream([pd.concat(months(12))], tmp_path, horizon=12)
    assert [each.stage for each in made.advance()] == ["released"] * 12


def test_a_month_without_rows_is_passed_over_and_two_are_not(tmp_path):
    one = stream([month(0), month(2)], tmp_path / "one", horizon=12)
    assert [each.stage for each in one.advance()] == ["released", "empty"]
    two = stream([month(0), month(3)], tmp_path / "two", horizon=12)
    with untouched(), pytest.raises(ValueError, match=r"chunk 2: .* 2 whole periods"):
        two.advance()
    assert [each.stage for each in two.advance(now=90)] == ["released", "empty", "empty"]
    # What was said so once need not be said again.
    later = stream([month(0), month(3), month(4)], tmp_path / "two", horizon=12)
    assert [each.stage for each in later.advance()] == ["released"]


def test_a_tenth_of_all_periods_may_be_without_rows(tmp_path):
    """Days of which some are holidays."""
    days = {"length": 1, "horizon": 40}
    tables = [month(day).assign(day=float(day)) for day in (0, 1, 6)]
    made = stream(tables, tmp_path / "four", **days)
    assert [each.stage for each in made.advance()] == ["released"] * 2 + ["empty"] * 4
    tables[2]["day"] = 7.0
    with untouched(), pytest.raises(ValueError, match="5 whole periods"):
        stream(tables, tmp_path / "five", **days).advance()


def test_the_last_period_is_closed_by_what_follows_it(tmp_path):
    made = stream([*months(2), month(3)], tmp_path / "next")
    assert [each.stage for each in made.advance()] == ["released"] * 3
    for name, last in (("gap", [month(0), month(1), month(3)]), ("far", [*months(2), month(4)])):
        made = stream(last, tmp_path / name)
        with untouched(), pytest.raises(ValueError, match="a whole period of this stream, or aft"):
            made.advance()
        assert len(made.advance(now=90)) == 3


def test_rows_of_other_chunks_are_no_gap(tmp_path):
    """Where the clock was given, chunks may have later rows than it said."""
    first = pd.concat([month(0), month(1), month(2), month(3)])
    stream([first], tmp_path, horizon=12).advance(now=10)
    made = stream([first, month(4)], tmp_path, horizon=12)
    assert [each.stage for each in made.advance()] == ["released"] * 4


def test_files_whose_names_are_in_another_order_than_their_times_are_refused(tmp_path):
    source = tmp_path / "tables"
    source.mkdir()
    for number in (0, 1, 2, 10):
        month(number).to_csv(source / f"m{number}.csv", index=False)
    with untouched(), pytest.raises(ValueError, match=r"m10.csv: .*files by their names"):
        stream(source, tmp_path / "out", horizon=12).advance()


EMPTY_FILES = {"header": "day,age,who,pay\n", "no line end": "day,age,who,pay", "nothing": ""}


@pytest.mark.parametrize("person", ["", "who"])
@pytest.mark.parametrize("content", EMPTY_FILES.values(), ids=EMPTY_FILES.keys())
def test_a_file_without_rows_is_a_table_without_rows(content, person, tmp_path):
    source = tmp_path / "tables"
    for number, table in enumerate(months(2)):
        write(source, number, table)
    # As the first, and between others.
    for name in ("00 early.csv", "01 more.csv"):
        (source / name).write_text(content)
    (source / "0 first.csv").write_text(content)
    made = stream(source, tmp_path / "out", person=person)
    made.plan()
    assert [(each.stage, each.rows) for each in made.advance()] == [("released", 6)] * 2
    # Rows of a period that is open may come into it.
    write(source, 3, month(3))
    month(2).assign(who="others").to_csv(source / "01 more.csv", index=False)
    with pytest.warns(StreamWarning, match="01 more.csv has changed"):
        assert [each.stage for each in made.advance()] == ["released"]


def test_tables_of_no_rows_begin_no_stream(tmp_path):
    nothing = month(0).iloc[:0].astype(object)
    made = stream([nothing], tmp_path)
    assert made.advance() == ()
    assert made.periods == ()
    made = stream([nothing, *months(1), nothing], tmp_path)
    assert [each.stage for each in made.advance()] == ["released"]


WITHOUT = {
    "no output": (lambda table: table.drop(columns="pay"), "no column pay"),
    "two outputs": (lambda table: table.rename(columns={"who": "pay"}), "several columns"),
    "two inputs": (lambda table: table.rename(columns={"who": "age"}), "several columns"),
}


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize(("spoil", "match"), WITHOUT.values(), ids=WITHOUT.keys())
def test_a_table_without_its_columns_is_refused_when_it_comes(spoil, match, in_files, tmp_path):
    """And not a month later, when its period is asked."""
    tables, source = [month(0), spoil(month(1))], tmp_path / "tables"
    for number, table in enumerate(tables):
        write(source, number, table)
    made = stream(source if in_files else tables, tmp_path / "out")
    with untouched(), pytest.raises(ValueError, match=match) as failure:
        made.advance()
    name = "01.csv" if in_files else "chunk 2"
    assert str(failure.value).count(name) == 1


@pytest.mark.parametrize("column", ["day", "age"])
def test_a_cell_that_cannot_be_used_is_named_as_its_table_counts_rows(column, tmp_path):
    spoiled = month(1).astype({column: object})
    spoiled.loc[1, column] = "x"
    write(tmp_path / "tables", 0, month(0))
    write(tmp_path / "tables", 1, spoiled)
    counted = {"frames": "row 1, counted from 0", "files": "row 2 below the header"}
    for kind, source in (("frames", [month(0), spoiled]), ("files", tmp_path / "tables")):
        with pytest.raises(ValueError, match=f"'{column}' is not a number in {counted[kind]}"):
            stream(source, tmp_path / kind).advance()


def test_the_clock_may_be_given(tmp_path):
    made = stream([month(0)], tmp_path, lateness=5.0, horizon=2)
    assert made.advance(now=34.9) == ()
    assert [each.rows for each in made.advance(now=35.0)] == [6]
    with pytest.raises(ValueError, match="the clock went back: now is 34, and it was 35 before"):
        made.advance(now=34)
    with pytest.raises(ValueError, match="now must be a number"):
        made.advance(now="soon")
    # A month without rows is not asked, and costs nothing.
    (empty,) = made.advance(now=70)
    assert (empty.stage, empty.rows, empty.drawn) == ("empty", 0, ())
    assert made.spent == pytest.approx(1.0)


def test_rows_that_come_with_the_clock_are_in_time(tmp_path):
    """A job that runs each month finds the whole month at once."""
    folder = tmp_path / "arrivals"
    folder.mkdir()
    made = stream(folder, tmp_path / "stream")
    assert made.advance(now=1) == ()
    write(folder, 0, month(0))
    assert [each.rows for each in made.advance(now=31)] == [6]


def test_dates_and_calendar_months(tmp_path):
    table = pd.concat(months(3)).assign(
        day=lambda t: (
            pd.Timestamp("2026-01-01") + pd.to_timedelta(t["day"], unit="D")
        ).dt.strftime("%Y-%m-%d")
    )
    made = stream([table], tmp_path, origin="2026-01-01", length="month")
    made.advance()
    assert [made.describe(each.end) for each in made.periods] == [
        "2026-02-01",
        "2026-03-01",
        "2026-04-01",
    ]
    by_month = pd.to_datetime(table["day"]).dt.month.value_counts()
    assert [each.rows for each in made.periods] == [by_month[1], by_month[2], by_month[3]]
    with pytest.raises(ValueError, match="a month is of dates"):
        stream(months(1), tmp_path / "numbers", length="month").advance()
    with pytest.raises(ValueError, match="origin must be a date"):
        stream([table], tmp_path / "origin", origin="spring", length="month").advance()


def test_forgetting_makes_the_time_an_input(tmp_path):
    made = stream(months(3), tmp_path, forgetting=60.0, lasting=0.25)
    made.advance()
    release = made.release
    kernel = release.fitted_prior.kernel
    assert isinstance(kernel, ForgettingKernel)
    assert (kernel.place, kernel.length, kernel.lasting) == (1, 60.0, 0.25)
    assert release.schema.names == ("age", "day")
    text = told(release)["drift"]
    assert text.startswith("75 % of the variance drifts with day")
    assert "every 60, as was declared" in text
    # What is long gone is known by its lasting part alone.
    near, far = (release.predict_latent([[2.0, day]]).sd[0] for day in (60.0, 1e4))
    assert near < far < np.sqrt(4.0)
    assert "drift" not in told(stream_without(tmp_path))


def stream_without(folder):
    made = stream(months(1), folder / "still", horizon=1)
    made.advance()
    return made.release


def test_what_drifts_and_cannot_be_asked_is_refused(tmp_path):
    with pytest.raises(ValueError, match="inducing"):
        stream(months(1), tmp_path, estimator=model(inducing=3), forgetting=3.0)
    many = DPGPRegressor(bounds=BOUNDS, epsilon=1.0, memory=0.25)
    rows = pd.concat([month(0, rows=3000), month(1)])
    made = stream([rows], tmp_path, estimator=many, forgetting=3.0)
    with untouched(), pytest.raises(ValueError, match="too many"):
        made.advance()


def test_classes_and_other_columns(tmp_path):
    schema = Schema(columns=(Number(name="age"), Category(name="job")))
    source = [
        month(number, rows=12).assign(
            job=["cook", "clerk"] * 6, pay=lambda t: np.where(t["pay"] > 0, "yes", "no")
        )
        for number in range(3)
    ]
    estimator = DPGPClassifier(classes=["no", "yes"], epsilon=1.0, stages=None, learn=None)
    made = Stream(
        estimator,
        source,
        folder=tmp_path,
        output="pay",
        schema=schema,
        time="day",
        origin=0,
        length=30,
        horizon=2,
        people="disjoint",
    )
    assert made.plan().errors is None
    made.advance()
    assert len(made.release.measurements) == 2
    assert set(made.release.schema.sources) == {"age", "job"}
    assert made.release.guarantee.pure_epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("in_files", [False, True])
def test_missing_outputs_count_as_what_was_said(in_files, tmp_path):
    tables = months(1)
    tables[0].loc[3, "pay"] = np.nan
    source = tables
    if in_files:
        source = tmp_path / "arrivals"
        for number, table in enumerate(tables):
            write(source, number, table)
    refused = stream(source, tmp_path / "refused", horizon=1)
    with untouched(), pytest.raises(ValueError, match=r"missing|empty"):
        refused.advance()
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        fit = DPGPRegressor.fit
        patch.setattr(
            DPGPRegressor, "fit", lambda *given, **how: seen.append(given[2]) or fit(*given, **how)
        )
        (period,) = stream(source, tmp_path / "s", horizon=1, missing_output="1.25").advance()
    assert period.stage == "released"
    expected = tables[0]["pay"].fillna(1.25).tolist()
    assert seen[0].astype(float).tolist() == expected


def test_classes_of_files_may_be_whole_numbers(tmp_path):
    folder = tmp_path / "arrivals"
    for number, table in enumerate(months(1, rows=12)):
        write(folder, number, table.assign(pay=lambda t: (t["pay"] > 0).astype(int)))
    estimator = DPGPClassifier(classes=[0, 1], epsilon=1.0, stages=None, learn=None)
    made = stream(folder, tmp_path / "stream", estimator=estimator, horizon=1)
    assert [each.stage for each in made.advance()] == ["released"]
    assert made.release.class_labels == (0, 1)


def test_the_private_column_is_no_input_of_a_schema(tmp_path):
    """Or what is made of it would be planned with, and kept."""
    with_pay = Schema(columns=(Number(name="age"), Number(name="pay")))
    for how in ({"schema": with_pay}, {"estimator": model(schema=with_pay)}):
        with pytest.raises(ValueError, match="'pay' is named as input and as output"):
            stream(months(1), tmp_path, inputs=(), **how)
    # Of a schema that was made of the whole table, what predicts may be named.
    stream(months(1), tmp_path, inputs=["age"], schema=with_pay).advance()
    assert "pay" not in (tmp_path / "stream.json").read_text().replace('"output": "pay"', "", 1)


def test_another_declaration_is_refused(tmp_path):
    stream(months(1), tmp_path).advance()
    for changed in (
        {"length": 31},
        {"origin": 1},
        {"horizon": 4},
        {"lateness": 1.0},
        {"people": "overlapping"},
        {"forgetting": 5.0},
        {"person": "who"},
        {"estimator": model(epsilon=2.0)},
        {"estimator": model(memory=0.25)},
        {"missing_output": "0"},
        {"schema": Schema(columns=(Number(name="age"),))},
    ):
        with pytest.raises(
            ValueError, match="differ from before: a stream keeps what was declared"
        ):
            stream(months(1), tmp_path, **changed)


def test_until_a_period_is_asked_another_declaration_replaces_it(tmp_path):
    first = stream([month(0)], tmp_path)
    assert first.advance() == ()
    known = first.state
    assert len(known.periods) == 3
    other = stream([month(1)], tmp_path, estimator=model(epsilon=2.0), horizon=1)
    # Nothing is replaced before it goes on.
    assert first.state == known
    assert other.periods == ()
    (period,) = other.advance(now=60)
    assert period.stage == "empty"
    assert other.state.id != known.id
    last = stream(months(1), tmp_path, estimator=model(epsilon=3.0))
    assert [each.stage for each in last.advance()] == ["released"]
    assert last.spent == pytest.approx(3.0)
    for changed in (first, other):
        with pytest.raises(ValueError, match="differ from before"):
            changed.advance()


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_until_noise_is_drawn_an_error_leaves_the_declaration_open(counted, in_files, tmp_path):
    """An empty private cell of the first period is answered as the message says."""
    how = {"horizon": 1}
    if counted:
        how["ledger"] = Ledger.create(tmp_path / "people.db")
        how["ledger"].open_account("all", epsilon=1.0, delta=0.0)
        how["account"] = "all"
    source = months(1)
    source[0].loc[2, "pay"] = np.nan
    if in_files:
        for number, table in enumerate(source):
            write(tmp_path / "arrivals", number, table)
        source = tmp_path / "arrivals"
    first = stream(source, tmp_path / "s", **how)
    with untouched(), pytest.raises(ValueError, match="as which number they count") as caught:
        first.advance()
    assert "drop" not in str(caught.value)
    assert "leav" not in str(caught.value)
    assert [(each.stage, each.drawn) for each in first.periods] == [("closed", ())]
    second = stream(source, tmp_path / "s", missing_output="2", **how)
    assert [each.stage for each in second.advance()] == ["released"]
    if counted:
        (standing,) = how["ledger"].standings()
        assert standing.spent.epsilon_at(0.0) == pytest.approx(1.0)
        assert standing.open == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"stage": "asking"},
        {"stage": "lost"},
        {"stage": "closed", "drawn": (Cost("laplace", epsilon=1.0),)},
    ],
)
def test_what_was_reserved_or_drawn_keeps_the_declaration(changed, tmp_path):
    made = stream([month(1)], tmp_path)
    made.advance()
    made.folder.save(made.state.with_period(0, **changed))
    with pytest.raises(ValueError, match="horizon differ from before"):
        stream([month(1)], tmp_path, horizon=2)


def test_where_it_is_counted_is_kept_from_the_first_run_on(tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    ledger.open_account("all", epsilon=4.0, delta=0.0)
    stream([month(0)], tmp_path / "s", ledger=ledger, account="all").advance()
    with pytest.raises(ValueError, match="name these again"):
        stream(months(1), tmp_path / "s", horizon=2)
    made = stream(months(1), tmp_path / "s", horizon=2, ledger=ledger, account="all")
    assert len(made.advance()) == 1
    assert ledger.standings()[0].charges == 1


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"length": -1}, "length"),
        ({"length": "fortnight"}, "length"),
        ({"lateness": -1}, "lateness"),
        ({"people": "some"}, "people"),
        ({"time": ""}, "time"),
        ({"time": "pay"}, "three columns"),
        ({"inputs": ["age", "day"]}, "no inputs"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 1.0, "lasting": 2.0}, "lasting"),
        ({"missing_output": "drop"}, "public columns"),
        ({"missing_output": "none"}, "a number"),
        ({"account": "people"}, "go together"),
        ({"query": "SELECT 1"}, "a query goes with a database"),
        ({"estimator": model(insecure_seed=1)}, "insecure_seed"),
    ],
)
def test_contradictions_are_refused(settings, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        stream(months(1), tmp_path, **settings)
    assert list(tmp_path.iterdir()) == []


def test_sources_that_are_none_are_refused(tmp_path):
    with pytest.raises(TypeError, match="iterable of pandas tables"):
        stream(month(0), tmp_path)
    with pytest.raises(TypeError, match="iterable of pandas tables"):
        stream(3, tmp_path)
    with pytest.raises(FileNotFoundError):
        stream(tmp_path / "nowhere", tmp_path)
    with pytest.raises(TypeError, match="chunks must be pandas tables"):
        stream([[1, 2]], tmp_path).advance()
    with pytest.raises(TypeError, match="a stream goes on with"):
        Stream(object(), [], folder=tmp_path, output="a", time="b", origin=0, length=1, horizon=1)
    with pytest.raises(ValueError, match="inputs, or a schema"):
        stream(months(1), tmp_path / "inputs", inputs=()).advance()
    with pytest.raises(ValueError, match="must be numbers or dates"):
        stream([month(0).assign(day="spring")], tmp_path / "words").advance()


def test_two_processes_do_not_go_on_at_once(tmp_path):
    made = stream(months(1), tmp_path)
    with made.folder.locked(), pytest.raises(StreamStateError, match="another process"):
        stream(months(1), tmp_path).advance()
    made.advance()


@pytest.mark.parametrize(
    ("people", "account"),
    [("disjoint", "month {period}"), ("overlapping", "all"), ("disjoint", "all")],
)
def test_a_ledger_counts_what_is_printed(people, account, tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    if account == "all":
        ledger.open_account("all", epsilon=4.0, delta=0.0)
    made = stream(months(3), tmp_path / "s", people=people, ledger=ledger, account=account)
    made.advance()
    standings = ledger.standings()
    spent = [each.spent.epsilon_at(0.0) for each in standings]
    if account == "all":
        assert spent == [pytest.approx(3.0)]
        assert standings[0].charges == 3
    else:
        assert [each.name for each in standings] == ["month 1", "month 2", "month 3"]
        assert [each.limit for each in standings] == [(1.0, 0.0)] * 3
        assert max(spent) == pytest.approx(made.spent)
        assert made.plan().total == pytest.approx(max(spent))
    if people == "overlapping":
        assert made.plan().total == pytest.approx(spent[0])
        assert made.spent == pytest.approx(spent[0])
    said = [
        entry.content.get("people")
        for entry in ledger.entries()
        if entry.content["kind"] == "reserved"
    ]
    assert said[0] is None
    assert all((people == "disjoint") == bool(each) for each in said[1:])
    assert ledger.verify().findings == ()


@pytest.mark.parametrize("rows", [1, 2])
def test_persons_are_counted_however_many_rows_they_have(rows, tmp_path):
    """The account of a period is of persons, whether or not anybody has two rows in it."""
    ledger = Ledger.create(tmp_path / "people.db")
    source = [
        month(number, people=[f"p{number}-{row // rows}" for row in range(6)])
        for number in range(3)
    ]
    made = stream(
        source, tmp_path / "s", person="who", horizon=2, ledger=ledger, account="month {period}"
    )
    assert [each.stage for each in made.advance()] == ["released"] * 2
    assert [each.unit for each in ledger.standings()] == ["person"] * 2
    assert made.spent == pytest.approx(1.0)
    assert made.release.guarantee.pure_epsilon == pytest.approx(1.0)


def test_a_stream_that_is_counted_goes_on_being_counted(tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    ledger.open_account("all", epsilon=4.0, delta=0.0)
    counted = {"ledger": ledger, "account": "all"}
    stream(months(1), tmp_path / "s", **counted).advance()
    other = Ledger.create(tmp_path / "other.db")
    other.open_account("all", epsilon=4.0, delta=0.0)
    for changed in ({}, {"ledger": other, "account": "all"}, {**counted, "account": "nobody"}):
        with untouched(), pytest.raises(ValueError, match="name these again"):
            stream(months(2), tmp_path / "s", **changed).advance()
    stream(months(2), tmp_path / "s", **counted).advance()
    assert ledger.standings()[0].charges == 2


def test_an_account_for_each_period_counts_disjoint_people_alone(tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    with pytest.raises(ValueError, match="would count a part of what is drawn"):
        stream(
            months(1),
            tmp_path / "s",
            people="overlapping",
            ledger=ledger,
            account="month {period}",
        )
    assert ledger.standings() == []


def test_an_account_that_is_open_is_named_to_the_stream(tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    account = ledger.open_account("all", epsilon=4.0, delta=0.0)
    with account, untouched(), pytest.raises(ValueError, match="name it to the stream"):
        stream(months(1), tmp_path / "s").advance()


def test_a_limit_refuses_before_a_draw(tmp_path):
    ledger = Ledger.create(tmp_path / "people.db")
    ledger.open_account("all", epsilon=1.5, delta=0.0)
    made = stream(
        months(2), tmp_path / "s", people="overlapping", ledger=ledger, account="all", horizon=2
    )
    with pytest.raises(ValueError, match="no room"):
        made.advance()
    first, second = made.periods
    assert (first.stage, second.stage, second.drawn) == ("released", "closed", ())
    ledger.change_limit("all", epsilon=2.0, delta=0.0, reason="as planned")
    assert [each.stage for each in made.advance()] == ["released"]
    assert made.spent == pytest.approx(2.0)


def test_gaussian_noise_adds_up_as_planned(tmp_path):
    estimator = model(epsilon=1.0, delta=1e-5, noise="gaussian")
    made = stream(months(3), tmp_path, estimator=estimator, people="overlapping")
    made.advance()
    planned = total_of(3, epsilon=1.0, delta=1e-5, noise="gaussian")
    assert made.plan().total == planned
    assert made.spent == pytest.approx(planned, rel=1e-6)
    assert made.spent <= planned


def test_a_bad_private_cell_stops_before_a_draw_and_is_not_shown(tmp_path):
    folder = tmp_path / "arrivals"
    bad = month(0).astype({"pay": object})
    bad.loc[2, "pay"] = "sevenhundred"
    write(folder, 0, bad)
    write(folder, 1, month(1))
    made = stream(folder, tmp_path / "stream", horizon=1)
    with untouched(), pytest.raises(ValueError, match="pay") as caught:
        made.advance()
    assert "sevenhundred" not in str(caught.value)
    write(folder, 0, month(0))
    os.utime(folder / "00.csv", ns=(1, 1))
    # Its public columns are what they were: the file is the same as far as the stream knows.
    (period,) = made.advance()
    assert period.stage == "released"


def test_nothing_of_the_outputs_is_kept(tmp_path):
    """Neither the state, nor words, nor pickles hold an output, or its length."""
    folder = tmp_path / "arrivals"
    secret = "6.123456789"
    write(folder, 0, month(0).assign(pay=secret))
    write(folder, 1, month(1))
    made = stream(folder, tmp_path / "stream", horizon=1, person="who")
    made.advance()
    before = {path.name: path.read_bytes() for path in (tmp_path / "stream").iterdir()}
    for content in before.values():
        assert secret[2:9].encode() not in content
    numbers = re.findall(r"\b\d+\b", before["stream.json"].decode())
    assert str((folder / "00.csv").stat().st_mtime_ns) in numbers
    assert str((folder / "00.csv").stat().st_size) not in numbers
    held = stream([month(0).assign(pay=float(secret))], tmp_path / "held")
    held.advance()
    for said in (repr(held), repr(held.source), repr(held.source._chunks[0]), str(held.periods)):
        assert secret[2:9] not in said
    for each in (held, held.source, held.source._chunks[0]):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(each)


def test_a_damaged_folder_is_refused(tmp_path):
    made = stream(months(2), tmp_path)
    made.advance()
    path = tmp_path / "period-0002.cloak"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(StreamStateError, match="is not what was released"):
        _ = made.release
    path.unlink()
    with pytest.raises(StreamStateError, match="is missing"):
        _ = made.release
    path.write_bytes(content)
    state = tmp_path / "stream.json"
    text = state.read_text()
    for damaged in ("{}", text[:50], text.replace('"released"', '"paid"')):
        state.write_text(damaged)
        with pytest.raises(StreamStateError, match="damaged"):
            made.advance()
    state.write_text(text.replace('"version": 3', '"version": 2'))
    with pytest.raises(StreamStateError, match="another version"):
        made.advance()


def test_a_file_in_the_place_of_a_release_is_not_taken_for_it(tmp_path):
    stream(months(1, seed=9), tmp_path / "other").advance()
    (tmp_path / "s").mkdir()
    foreign, place = (tmp_path / each / "period-0001.cloak" for each in ("other", "s"))
    place.write_bytes(foreign.read_bytes())
    made = stream(months(1), tmp_path / "s")
    with untouched(), pytest.raises(StreamStateError, match="was not made by this stream"):
        made.advance()
    assert made.spent == 0.0
    assert place.read_bytes() == foreign.read_bytes()
    place.unlink()
    assert [each.stage for each in made.advance()] == ["released"]


def test_plans_forget_outputs_when_they_fail(tmp_path):
    held = month(0).assign(pay=77777.125)

    def tables():
        yield held
        raise ValueError("no more")

    made = stream(tables(), tmp_path, inputs=["weight"])
    for act in (made.plan, made.advance):
        with pytest.raises(ValueError, match="weight") as caught:
            act()
        frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][1:]
        assert frames
        assert "77777" not in str([frame.f_locals for frame in frames])


def test_the_same_inputs_each_month_are_warned_of_once_a_month(tmp_path):
    same = [month(0).assign(day=30.0 * number) for number in range(3)]
    made = stream(same, tmp_path, horizon=2)
    with pytest.warns(PrivacyParameterWarning, match="the inputs of one before"):
        made.advance()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.release is not None
