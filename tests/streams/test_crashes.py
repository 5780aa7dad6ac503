"""Kills at every moment of a stream: nothing is spent twice, and nothing is lost without a word.

A *moment* is before or after anything that outlives the process: a file that is written, an entry
of a ledger, and the draw of noise itself. A run is killed at each of them in turn, and from then on
nothing more of it reaches the disk. The next run goes on from what is there.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from killed_runs import KilledError, Moments
from older_copies import keep_copy, put_back
from stream_tables import BOUNDS, model, month, months, stream

from cloakgp import DPGPRegressor, Release
from cloakgp.ledger import Ledger
from cloakgp.ledger.accounts import Account
from cloakgp.ledger.charges import LedgerCharge
from cloakgp.ledger.database import Database
from cloakgp.privacy import sampler
from cloakgp.privacy.spending import digest_of
from cloakgp.streams.state import StreamFolder, StreamStateError
from cloakgp.streams.stream import Stream, StreamWarning

PERIODS = 2


class StreamMoments(Moments):
    """The moments of a stream's runs."""

    def __init__(self, patch, *, last=None):
        self.draws, self.period = [], None
        super().__init__(patch, last=last)

    def patch(self, patch):
        write, spend, ask = StreamFolder._write, sampler.spend, Stream._ask

        def asked(this, state, number):
            self.period = number
            return ask(this, state, number)

        def written(this, name, content, **how):
            # The state's own files; releases are written below.
            self.reach(f"before {name}")
            write(this, name, content, **how)
            self.reach(f"after {name}")

        def spent(cost, draw):
            def drawn():
                self.reach("before a draw")
                self.draws.append(self.period)
                published = draw()
                self.reach("after a draw")
                return published

            return spend(cost, drawn)

        patch.setattr(Stream, "_ask", asked)
        patch.setattr(StreamFolder, "_write", written)
        self.around_writes(patch, of=lambda path: path.suffix == ".cloak")
        patch.setattr(sampler, "spend", spent)
        self.around_writing(patch, Database, name="an entry")


def settle(make):
    """Go on until all is settled, as a custodian would; return the stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)
        made = make()
        while not made.periods or not all(each.settled for each in made.periods):
            made.advance()
    return made


def check(made, moments, *, count=1):
    """Hold what a crash must not change."""
    periods = made.periods
    for each in periods:
        draws = moments.draws.count(each.number)
        # Each draw was noted before it was made, and of what is released no other draw was made.
        assert draws <= len(each.drawn)
        assert each.stage in ("released", "lost")
        if each.stage == "released":
            assert draws == len(each.drawn) == count
    # What is left out, is so because noise may have been drawn.
    assert all(each.drawn for each in periods)
    released = [each for each in periods if each.stage == "released"]
    if released:
        assert len(made.release.measurements) == count * len(released)
        assert made.release.guarantee.pure_epsilon == pytest.approx(1.0, rel=1e-4)
    if len(released) == len(periods) or count == 1:
        assert made.spent == pytest.approx(1.0, rel=1e-4)
    assert made.spent <= 1.0
    assert sum(each.stage == "lost" for each in periods) <= 1
    if moments.last is None:
        return
    died = moments.names[moments.last]
    lost = [each for each in periods if each.stage == "lost"]
    if not lost:
        return
    # After its release all is there.
    assert not (died.startswith("after") and died.endswith(".cloak"))
    files = {path.name for path in made.folder.path.glob("*.cloak")}
    assert files == {each.release for each in released}


def count_moments(make, **how):
    with pytest.MonkeyPatch.context() as patch:
        moments = StreamMoments(patch)
        check(settle(make), moments, **how)
    return moments.names


def kill_at(number, make, **how):
    with pytest.MonkeyPatch.context() as patch:
        moments = StreamMoments(patch, last=number)
        with pytest.raises(KilledError):
            settle(make)
        assert moments.dead
        moments.dead, moments.last = False, None
        made = settle(make)
        moments.last = number
        check(made, moments, **how)
    return made


def test_kills_at_every_moment(tmp_path):
    def make(folder):
        return lambda: stream(months(PERIODS), folder, horizon=PERIODS)

    names = count_moments(make(tmp_path / "whole"))
    assert names.count("before a draw") == PERIODS
    assert sum(name.endswith(".cloak") for name in names) == 2 * PERIODS
    stages = []
    for number, name in enumerate(names):
        made = kill_at(number, make(tmp_path / str(number)))
        stages.append((name, [each.stage for each in made.periods]))
    lost = [name for name, found in stages if "lost" in found]
    # Between the note of a draw and its answers a period is left out, and at no other moment.
    assert lost == [
        name
        for number in (1, 2)
        for name in (
            "after stream.json",
            "before a draw",
            "after a draw",
            f"before period-000{number}.answers",
        )
    ]


def test_kills_between_the_draws_of_one_fit(tmp_path):
    """Of a fit in several stages: what was drawn is not drawn again, and the rest is."""
    count = 3

    def make(folder):
        estimator = DPGPRegressor(bounds=BOUNDS, epsilon=1.0)
        source = months(1, rows=20)
        return lambda: stream(source, folder, horizon=1, estimator=estimator)

    names = count_moments(make(tmp_path / "whole"), count=count)
    assert names.count("before a draw") == count
    answered = [place for place, name in enumerate(names) if name.endswith(".answers")]
    for number in answered:
        made = kill_at(number, make(tmp_path / str(number)), count=count)
        (period,) = made.periods
        assert (period.stage == "lost") == names[number].startswith("before")
        if period.stage == "released":
            assert len(made.release.measurements) == count
        assert not list((tmp_path / str(number)).glob("*.answers"))


def test_kills_at_every_moment_with_a_ledger(tmp_path):
    def make(number):
        home = tmp_path / str(number)
        home.mkdir()
        made = Ledger.create(home / "people.db")

        def go_on():
            return stream(
                months(1, people=list("aabcde")),
                home / "stream",
                horizon=1,
                person="who",
                ledger=Ledger(home / "people.db"),
                account="month {period}",
            )

        del made
        return go_on

    names = count_moments(make("whole"))
    assert "before an entry" in names
    lost = []
    for number, name in enumerate(names):
        go_on = make(number)
        made = kill_at(number, go_on)
        (period,) = made.periods
        ledger = Ledger(tmp_path / str(number) / "people.db")
        (standing,) = ledger.standings()
        # What may have been drawn counts, once, and no more: a charge that died, for its hold.
        assert standing.spent.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-12)
        assert period.spent.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-12)
        assert [one for one in ledger.verify().findings if "open" not in one] == []
        assert standing.charges <= 2
        if period.stage == "lost":
            lost.append(name)
        assert standing.open == ()
    # Every account ends with its one charge closed, that of a lost period as failed. What was noted
    # and not reserved yet was not drawn, as the ledger knows.
    assert lost == [
        "after an entry",
        "before a draw",
        "after a draw",
        "before period-0001.answers",
    ]


SCRIPT = """
import os, sys
from stream_tables import months, stream
from cloakgp.privacy import sampler
from cloakgp.utils.files import ReservedFile

moment, folder = sys.argv[1:]
spend, write = sampler.spend, ReservedFile.write

def spent(cost, draw):
    def drawn():
        published = draw()
        if moment == "draw":
            os._exit(9)
        return published
    published = spend(cost, drawn)
    if moment == "answers":
        os._exit(9)
    return published

def written(this, content, **how):
    write(this, content, **how)
    if moment == "release" and this.path.suffix == ".cloak":
        os._exit(9)

sampler.spend, ReservedFile.write = spent, written
stream(months(1), folder, horizon=1).advance()
"""


@pytest.mark.parametrize(
    ("moment", "stage"), [("draw", "lost"), ("answers", "released"), ("release", "released")]
)
def test_a_process_that_is_killed(moment, stage, tmp_path):
    """The same with a process that really ends, without a chance to clean up."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, moment, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 9, done.stderr
    made = stream(months(1), tmp_path, horizon=1)
    assert [each.stage for each in made.periods] == ["asking"]
    (period,) = settle(lambda: made).periods
    assert period.stage == stage
    assert len(period.drawn) == 1


def test_a_lost_period_is_told_and_counts(tmp_path):
    make = lambda: stream(months(2), tmp_path, horizon=2, people="overlapping")  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        keep = StreamFolder.keep_answers

        def lost(this, number, answers):
            if number == 1:
                raise KilledError
            keep(this, number, answers)

        patch.setattr(StreamFolder, "keep_answers", lost)
        with pytest.raises(KilledError):
            make().advance()
    with pytest.warns(StreamWarning, match="period 2 is left out, and its budget is spent") as told:
        settled = make().advance()
    assert len(told) == 1
    assert [each.stage for each in settled] == ["lost"]
    made = make()
    assert made.release.guarantee.pure_epsilon == pytest.approx(1.0)
    # Who is in both periods has spent both, though the release knows of one.
    assert made.spent == pytest.approx(2.0)


def test_a_lost_period_gives_back_what_was_not_drawn_for_it(tmp_path):
    """Of a fit in several stages: the ledger counts the draws, and says that they failed."""
    Ledger.create(tmp_path / "people.db").open_account("all", epsilon=3.0, delta=0.0)
    estimator = DPGPRegressor(bounds=BOUNDS, epsilon=1.0)

    def make():
        ledger = Ledger(tmp_path / "people.db")
        source = months(1, rows=20)
        how = {"people": "overlapping", "ledger": ledger, "account": "all"}
        return stream(source, tmp_path / "s", horizon=1, estimator=estimator, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamFolder, "keep_answers", killed)
        # Nothing is closed by who is no more.
        patch.setattr(LedgerCharge, "close", killed)
        with pytest.raises(KilledError):
            make().advance()
    ledger = Ledger(tmp_path / "people.db")
    (before,) = ledger.standings()
    assert before.spent.epsilon_at(0.0) == pytest.approx(1.0)
    assert len(before.open) == 1
    with pytest.MonkeyPatch.context() as patch:
        # Killed when the charge is closed, and before the folder knows of it.
        give_up = Account.give_up

        def closed(this, key):
            give_up(this, key)
            raise KilledError

        patch.setattr(Account, "give_up", closed)
        with pytest.warns(StreamWarning, match="left out"), pytest.raises(KilledError):
            make().advance()
    with pytest.warns(StreamWarning, match="left out"):
        make().advance()
    made = make()
    assert [each.stage for each in made.periods] == ["lost"]
    (after,) = ledger.standings()
    assert after.open == ()
    # A first stage of several.
    assert after.spent.epsilon_at(0.0) == pytest.approx(made.spent)
    assert 0 < made.spent < 1
    assert [each.content["kind"] for each in ledger.entries()][-2:] == ["drawing", "failed"]
    assert ledger.verify().findings == ()


def test_a_period_that_died_is_asked_again_with_its_answers(tmp_path):
    """What the second run publishes is what the first one drew."""
    make = lambda: stream(months(2), tmp_path, horizon=2)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.streams.stream.extend", killed)
        with pytest.raises(KilledError):
            make().advance()
    (drawn,) = StreamFolder(tmp_path).answers(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "note_draw", pytest.fail, raising=False)
        patch.setattr("cloakgp.privacy.spending.note_draw", pytest.fail)
        (period,) = make().advance()
    assert period.stage == "released"
    answers = make().release.measurements[-1].answers
    assert digest_of(answers.values) == digest_of(drawn)
    assert make().spent == pytest.approx(1.0)


def test_a_period_whose_rows_are_others_since_is_lost(tmp_path):
    """Answers about some rows are not taken for those about others: a late row of a database."""
    path = tmp_path / "people.sqlite"

    def add(table):
        with sqlite3.connect(path) as database:
            table.to_sql("visits", database, if_exists="append", index=False)

    for table in months(1):
        add(table)
    make = lambda: stream(path, tmp_path / "stream", horizon=1)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "_keep", killed)
        with pytest.raises(KilledError):
            make().advance()
    add(months(1, seed=4)[0])
    with pytest.warns(StreamWarning, match="its rows are others now"):
        (period,) = make().advance()
    assert (period.stage, len(period.drawn)) == ("lost", 1)
    assert make().release is None
    assert make().spent == pytest.approx(1.0)


def killed(*given, **settings):
    """Ask as `extend` does, and be no more."""
    from cloakgp import extend

    if "people" in settings:
        extend(*given, **settings)
    raise KilledError


def test_a_release_that_was_written_is_taken_as_it_is(tmp_path):
    """Killed after the file and before the note of it: the same answers, byte for byte."""
    make = lambda: stream(months(1), tmp_path, horizon=1)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        moments = StreamMoments(patch)
        reach = moments.reach
        patch.setattr(moments, "last", None)

        def reached(name):
            reach(name)
            if name == "after period-0001.cloak":
                moments.dead = True
                raise KilledError

        moments.reach = reached
        with pytest.raises(KilledError):
            make().advance()
    content = (tmp_path / "period-0001.cloak").read_bytes()
    made = settle(make)
    assert (tmp_path / "period-0001.cloak").read_bytes() == content
    assert [each.stage for each in made.periods] == ["released"]
    assert made.release.to_bytes() == Release.load(tmp_path / "period-0001.cloak").to_bytes()


def test_a_file_that_came_before_the_release_is_not_taken_for_it(tmp_path):
    """Noise was drawn, and somebody else has written a file of that name meanwhile."""
    make = lambda: stream(months(1), tmp_path / "s", horizon=1)  # noqa: E731
    other = stream(months(1, seed=9), tmp_path / "other", horizon=1)
    other.advance()
    place = tmp_path / "s" / "period-0001.cloak"
    keep = StreamFolder.keep_release

    def late(this, number, content):
        place.write_bytes((tmp_path / "other" / "period-0001.cloak").read_bytes())
        return keep(this, number, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamFolder, "keep_release", late)
        with pytest.raises(OSError, match="period-0001"):
            make().advance()
    with pytest.raises(StreamStateError, match="was not made by this stream"):
        make().advance()
    place.unlink()
    with pytest.MonkeyPatch.context() as patch:
        # Its answers are there: none are drawn anew.
        moments = StreamMoments(patch)
        (period,) = make().advance()
        assert "before a draw" not in moments.names
    assert (period.stage, len(period.drawn)) == ("released", 1)


class Copied:
    """A stream that a ledger counts, and a copy of its folder that comes back after a crash."""

    def __init__(self, home, source, **how):
        self.home, self.source = home, source
        Ledger.create(home / "people.db").open_account("all", epsilon=3.0, delta=0.0, unit="row")
        self.how = {"horizon": 1, "account": "all", **how}

    def make(self):
        ledger = Ledger(self.home / "people.db")
        return stream(self.source, self.home / "stream", ledger=ledger, **self.how)

    def copy(self):
        shutil.copytree(self.home / "stream", self.home / "copy", dirs_exist_ok=True)

    def restore(self):
        shutil.rmtree(self.home / "stream")
        shutil.move(self.home / "copy", self.home / "stream")

    @property
    def standing(self):
        (found,) = Ledger(self.home / "people.db").standings()
        return found


def drawn_at(patch):
    """The draws of noise that are made from now on."""
    draws, spend = [], sampler.spend
    patch.setattr(
        sampler, "spend", lambda cost, draw: spend(cost, lambda: (draws.append(cost), draw())[1])
    )
    return draws


@pytest.mark.parametrize("stage", ["closed", "asking"])
@pytest.mark.parametrize("died", ["draw", "answers", "release"])
def test_a_copy_from_before_the_draw_draws_nothing_anew(stage, died, tmp_path):
    """What the ledger alone knows of was drawn: it is not voided, and its people have paid."""
    made = Copied(tmp_path, months(1), person="who")

    with pytest.MonkeyPatch.context() as patch:
        place = {"closed": "_ask", "asking": "_fit"}[stage]
        act = getattr(Stream, place)

        def copied(this, *given, **settings):
            made.copy()
            return act(this, *given, **settings)

        patch.setattr(Stream, place, copied)
        if died == "release":
            patch.setattr(Stream, "_keep", killed)
        else:
            patch.setattr(StreamFolder, "keep_answers", killed)
            # Dead is dead: it closes nothing.
            patch.setattr("cloakgp.ledger.charges.LedgerCharge.close", lambda *_, **__: None)
        with pytest.raises(KilledError):
            made.make().advance()
    made.restore()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        draws = drawn_at(patch)
        (period,) = made.make().advance()
    assert draws == []
    assert made.standing.spent.epsilon_at(0.0) == pytest.approx(1.0)
    assert made.standing.charges == 1
    assert made.make().spent == pytest.approx(1.0)
    kept = died == "release"
    assert period.stage == ("released" if kept else "lost")
    assert [str(each.message) for each in told if each.category is StreamWarning] == (
        []
        if kept
        else [
            "period 1 is left out, and its budget is spent: noise was drawn for it by a process "
            "that died, and this folder is a copy that knows no answers of it"
        ]
    )
    kinds = [entry.content["kind"] for entry in Ledger(tmp_path / "people.db").entries()]
    assert "voided" not in kinds
    assert len(set(made.make().folder.persons(0))) == 6


def test_a_copy_that_is_slower_than_another_counts_what_that_drew(tmp_path):
    """The other one asks the period after this one looked, and before it would draw."""
    made = Copied(tmp_path, months(1))
    other = tmp_path / "other"
    look = Stream._check_unnoted

    def slow(this, state, number):
        found = look(this, state, number)
        if not other.exists():
            shutil.copytree(tmp_path / "stream", other)
            ledger = Ledger(tmp_path / "people.db")
            stream(made.source, other, ledger=ledger, **made.how).advance()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "_check_unnoted", slow)
        (period,) = made.make().advance()
    assert period.stage == "released"
    assert made.standing.charges == 1
    assert made.make().spent == pytest.approx(1.0)
    name = "period-0001.cloak"
    assert (other / name).read_bytes() == (tmp_path / "stream" / name).read_bytes()


def test_a_copy_from_between_the_draws_draws_nothing_anew(tmp_path):
    estimator = DPGPRegressor(bounds=BOUNDS, epsilon=1.0)
    made = Copied(tmp_path, months(1, rows=20), estimator=estimator)
    keep = StreamFolder.keep_answers

    def kept(this, number, answers):
        keep(this, number, answers)
        if len(answers) == 1:
            made.copy()
        if len(answers) == 2:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamFolder, "keep_answers", kept)
        patch.setattr("cloakgp.ledger.charges.LedgerCharge.close", lambda *_, **__: None)
        with pytest.raises(KilledError):
            made.make().advance()
    made.restore()
    with pytest.MonkeyPatch.context() as patch:
        draws = drawn_at(patch)
        with pytest.warns(StreamWarning, match="another copy of this folder drew more"):
            (period,) = made.make().advance()
    assert (draws, period.stage) == ([], "lost")
    assert made.make().spent == pytest.approx(made.standing.spent.epsilon_at(0.0))


def test_a_copy_does_not_take_the_release_of_other_rows_for_that_of_its_own(tmp_path):
    """Or people of later periods would be compared with some who were not asked."""
    folder = tmp_path / "arrivals"
    folder.mkdir()

    def write(number, table):
        table.to_csv(folder / f"{number}.csv", index=False)

    made = Copied(tmp_path, folder, person="who", horizon=2)
    write(0, month(0))
    made.make().advance()
    made.copy()
    write(1, month(1))
    assert [each.stage for each in made.make().advance()] == ["released"]
    made.restore()
    others = month(0, people=[f"other-{row}" for row in range(6)])
    write(0, others)
    write(1, month(1, people=[f"p0-{row}" for row in range(6)]))
    write(2, month(2))
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", StreamWarning)
            patch.setattr(sampler, "spend", pytest.fail)
            with pytest.raises(StreamStateError, match="period 1 was asked of other rows"):
                made.make().advance()
        assert made.make().release is None
        assert not list((tmp_path / "stream").glob("*.persons"))
    write(0, month(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)
        with pytest.raises(ValueError, match="6 people of period 2 were asked in period 1"):
            made.make().advance()
    assert made.make().spent == pytest.approx(1.0)
    assert made.make().periods[0].stage == "released"


def died_after_answers(made, count):
    """Let a run die when so many answers are kept; of before the last, the ledger is kept."""
    keep = StreamFolder.keep_answers

    def kept(this, number, answers):
        keep(this, number, answers)
        if len(answers) == count:
            raise KilledError
        keep_copy(made.home / "people.db", made.home / "backup.db")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamFolder, "keep_answers", kept)
        # Dead is dead: it closes nothing.
        patch.setattr(LedgerCharge, "close", lambda *_, **__: None)
        with pytest.raises(KilledError):
            made.make().advance()


@pytest.mark.parametrize("draws", [1, 2])
def test_what_a_restored_ledger_does_not_count_is_counted_before_its_release(draws, tmp_path):
    """It was put back to before the only draw, or to between two of one fit."""
    stages = None if draws == 1 else [(0.4, None), (0.6, None)]
    made = Copied(tmp_path, months(1, rows=20), estimator=model(stages=stages))
    keep_copy(tmp_path / "people.db", tmp_path / "backup.db")
    died_after_answers(made, draws)
    ledger = put_back(tmp_path / "people.db", tmp_path / "backup.db")
    with pytest.MonkeyPatch.context() as patch:
        drawn = drawn_at(patch)
        (period,) = made.make().advance()
    assert (drawn, period.stage, len(period.drawn)) == ([], "released", draws)
    assert made.standing.spent.epsilon_at(0.0) == pytest.approx(made.make().spent)
    assert (made.standing.charges, made.standing.open) == (1, ())
    assert ledger.verify().findings == ()


def test_a_release_for_which_a_restored_ledger_has_no_room_is_not_made(tmp_path):
    made = Copied(tmp_path, months(1))
    keep_copy(tmp_path / "people.db", tmp_path / "backup.db")
    died_after_answers(made, 1)
    ledger = put_back(tmp_path / "people.db", tmp_path / "backup.db")
    ledger.change_limit("all", epsilon=0.5, delta=0.0, reason="a test")
    told = "noise was drawn for period 1, ε = 1, with no δ, and the ledger does not count it"
    for _ in range(2):
        with pytest.raises(StreamStateError, match=told):
            made.make().advance()
    assert made.standing.used == 0.0
    assert made.make().release is None
    ledger.change_limit("all", epsilon=3.0, delta=0.0, reason="room for it")
    assert [each.stage for each in made.make().advance()] == ["released"]
    assert made.standing.spent.epsilon_at(0.0) == pytest.approx(1.0)


def test_a_period_whose_charge_was_voided_is_left_out(tmp_path):
    """The page of the ledger says so: its result is not returned."""
    made = Copied(tmp_path, months(1))
    died_after_answers(made, 1)
    [number] = made.standing.open
    ledger = Ledger(tmp_path / "people.db")
    ledger.void(number, reason="nobody will see it", although_drawn=True)
    told = (
        "period 1 is left out, and this stream counts its budget as spent, which the ledger does "
        "not: noise was drawn for it by a process that died, and its charge was voided"
    )
    with pytest.warns(StreamWarning, match=told):
        (period,) = made.make().advance()
    assert period.stage == "lost"
    assert made.standing.used == 0.0
    assert made.make().spent == pytest.approx(1.0)
    assert made.make().release is None


def test_files_that_a_killed_run_left_unfinished_are_removed(tmp_path):
    """And others are not."""
    made = stream(months(1), tmp_path, horizon=2)
    made.advance()
    names = ["stream.json", "period-0002.answers", "period-0002.persons", "period-0002.cloak"]
    for name in (*names, "predictions.csv"):
        (tmp_path / f".{name}.4711-0.partial").touch()
    made = stream(months(2), tmp_path, horizon=2)
    made.advance()
    left = [path.name for path in tmp_path.glob(".*.partial")]
    assert left == [".predictions.csv.4711-0.partial"]
    assert [each.stage for each in made.periods] == ["released"] * 2
