r"""Stream: a table that grows in time, fitted period by period through the door of later visits.

Before the first row is there, a stream declares its periods, their number, the budget of each, and
whether anybody may be in several. When a period has closed, its rows are asked once: those of the
first by the estimator's own fit, those of later ones by `cloakgp.fitting.visits.extend`. After each
there is a release, which predicts from everything till then.

Guarantee
    That of `cloakgp.privacy.cohorts`, of one table for each period: of people who are in one period
    each, the largest over periods; of others, the composition of all of theirs. Which rows are in
    which period, and which came too late, is decided by public columns and by the order in which
    chunks came: it is the same for all neighbours.
Crashes
    What is published is the release of a period, which is there whole or not at all. The cost of
    each draw is on the disk before the draw, and its noisy answers are right after it, before
    anything is made of them. After a crash

    * where nothing is noted, nothing was drawn from this folder: the period is asked as if never
      before. What a ledger counts without a note was drawn from a copy of the folder: the release
      that it keeps is taken, if it is of these rows, and without one the period is lost;
    * where its release is there, or an account kept it, that one is taken;
    * where the answers of all noted draws are there, the period is asked again with *these*
      answers, under the same charge, and what was not drawn yet is drawn: each question is answered
      once, as if there had been no crash;
    * else, in the moment between a draw and its answers, noise was drawn that nobody has seen. Its
      cost counts for ever, and the period is *lost*. It is not asked again: whether an answer is
      drawn anew must not depend on what it was.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.base import clone

from cloakgp.columns import Schema, schema_to_text
from cloakgp.estimators.classification import DPGPClassifier
from cloakgp.estimators.quantiles import DPGPQuantileRegressor
from cloakgp.estimators.regression import DPGPRegressor
from cloakgp.fitting.visits import extend
from cloakgp.models.kernels.forgetting import ForgettingKernel
from cloakgp.privacy.cohorts import OVERLAPPING, People
from cloakgp.privacy.filters import Amount
from cloakgp.privacy.person_ids import one_kind
from cloakgp.privacy.questions.classes import Classes, ClassLabel
from cloakgp.privacy.spending import Cost, SpendingError, counted_by, keeper_in_force
from cloakgp.privacy.tally import describe_spent
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Release
from cloakgp.release.measurement import tables_of
from cloakgp.streams.declaration import PERIOD, Declaration, exact_text
from cloakgp.streams.marks import mark_of
from cloakgp.streams.noting import ClosedKeeper, Notes, NotingKeeper, OtherDrawError
from cloakgp.streams.periods import Calendar, Periods, moment_of
from cloakgp.streams.plan import Errors, StreamPlan, forecast_errors, total_of
from cloakgp.streams.rows import (
    Columns,
    Looked,
    PeriodRows,
    check_columns,
    collect,
    declared_inputs,
    has_rows,
    has_zone,
    look_at,
    record_of,
)
from cloakgp.streams.scales import describe_constant, describe_far, find_constant, find_far
from cloakgp.streams.sources import Chunk, PrivateColumn, Source, source_of
from cloakgp.streams.state import (
    ChunkRecord,
    PeriodRecord,
    StreamFolder,
    StreamState,
    StreamStateError,
    release_name,
)
from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra
from cloakgp.utils.warned import CloakWarning

if TYPE_CHECKING:
    import pandas as pd

    from cloakgp.ledger import Ledger
    from cloakgp.ledger.accounts import KeyedCharge

Estimator = DPGPRegressor | DPGPQuantileRegressor | DPGPClassifier
# Fewer rows are not asked.
LEAST_ROWS = 2


class StreamWarning(CloakWarning):
    """Something about the chunks of a stream is worth knowing."""


@dataclass(frozen=True)
class Statement:
    """What releases keep of their purpose, maker and licence.

    Attributes
    ----------
    purpose, by, licence : str
    """

    purpose: str = ""
    by: str = ""
    licence: str = ""


class Stream:
    """A table that grows in time, asked once for each period of a declared horizon.

    All of this is declared beforehand, public, and kept in the stream's folder. Until noise is
    drawn for the first period, another declaration replaces it, and all is read anew; then an
    attempt to go on with another one is refused.

    Parameters
    ----------
    model : DPGPRegressor, DPGPQuantileRegressor or DPGPClassifier
        Its budget (ε, δ) is that of each period. It asks the first period; later ones are asked by
        `cloakgp.extend`, given what is known.
    source : str, Path, iterable of pandas.DataFrame, or Source
        A folder of files, each of which is read once; a database; or chunks of rows, which after a
        restart must come again from the first.
    folder : str or Path
        For the state and the releases.
    output, time : str
        Names of the private column, and of the public one that says when: numbers or dates.
    origin : str or number
        The start of the first period; in universal time where times have a zone, unless it has one.
    length : float, "month" or "year"
        Of each period, in units of the time, which are days for dates.
    horizon : int
        How many periods are asked at most.
    inputs : sequence of str
        Names of the public columns that predict; all of the schema if empty.
    schema : Schema, optional
        Of these; inferred from the first chunk if not given.
    people : {"overlapping", "disjoint"}
        Whether anybody may be in several periods, as for `cloakgp.extend`. That nobody is, is your
        word, unless persons are named.
    person : str
        Name of the public column that says whose row it is: all rows of a person in a period are
        protected together, and persons are found again in other periods.
    lateness : float
        How long after the end of a period its rows are waited for. Later ones are left out, and
        counted.
    forgetting : float, optional
        ℓ, in units of the time: what is known fades by a factor e after each ℓ, but for a share
        ``lasting`` (`cloakgp.models.kernels.forgetting`). If not given, the time is no input, and
        periods are about one function.
    lasting : float
    query : str
        Of a database.
    missing_output : str
        "refuse", or what a missing private cell counts as.
    ledger : Ledger, optional
        Counts each period in ``account``, and keeps each release until it is in its file. A stream
        that was begun with one goes on with it.
    account : str
        With "{period}" in it, which goes with disjoint people, an account for each period, opened
        with its budget if there is none.
    statement : Statement, optional

    Raises
    ------
    ValueError
        If the declaration makes no sense, or differs from that by which a period was asked.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> def month(n):
    ...     day = 30.0 * n + np.arange(30)
    ...     return pd.DataFrame({"day": day, "age": 20 + day % 31, "hours": 5.0})
    >>> with TemporaryDirectory() as folder:
    ...     stream = Stream(
    ...         DPGPRegressor(bounds=(0, 10), epsilon=1.0), [month(n) for n in range(3)],
    ...         folder=folder, output="hours", inputs=["age"], time="day", origin=0, length=30,
    ...         horizon=12, people="disjoint",
    ...     )
    ...     released = stream.advance()
    ...     guarantee = stream.release.guarantee
    >>> [(each.number, each.rows, each.stage) for each in released]
    [(0, 30, 'released'), (1, 30, 'released')]
    >>> print(guarantee)
    1-differential privacy
    """

    @forget_on_failure
    def __init__(
        self,
        model: Estimator,
        source: str | Path | Iterable[pd.DataFrame] | Source,
        *,
        folder: str | Path,
        output: str,
        time: str,
        origin: str | float,
        length: float | Calendar,
        horizon: int,
        inputs: Sequence[str] = (),
        schema: Schema | None = None,
        people: People = OVERLAPPING,
        person: str = "",
        lateness: float = 0.0,
        forgetting: float | None = None,
        lasting: float = 0.5,
        query: str = "",
        missing_output: str = "refuse",
        ledger: Ledger | None = None,
        account: str = "",
        statement: Statement | None = None,
    ) -> None:
        if not isinstance(model, Estimator):
            raise TypeError(
                "a stream goes on with DPGPRegressor, DPGPQuantileRegressor or DPGPClassifier, "
                f"got {type(model).__name__}"
            )
        if model.insecure_seed is not None:
            raise ValueError("noise from a seed protects no one: leave out insecure_seed")
        if forgetting is not None and model.inducing is not None:
            raise ValueError(
                "inducing inputs are placed in the first period, and what drifts is asked in later "
                "ones: leave out inducing, or forgetting"
            )
        if missing_output == "drop":
            raise ValueError(
                "which rows are there is fixed by public columns: missing_output is 'refuse', or "
                "what a missing cell counts as"
            )
        from cloakgp.data.raw import check_missing_output

        self.model = clone(model)
        schema = model.schema if schema is None else schema
        check_missing_output(missing_output, classes=self._written_classes)
        declared = Declaration(
            output=output,
            inputs=tuple(inputs),
            time=time,
            person=person,
            origin=str(origin),
            length=length if isinstance(length, str) else float(length),
            horizon=horizon,
            lateness=float(lateness),
            people=people,
            epsilon=float(model.epsilon),
            delta=float(model.delta),
            forgetting=None if forgetting is None else float(forgetting),
            lasting=float(lasting),
            model=exact_text(clone(model).set_params(schema=None)),
            schema="",
            missing_output=missing_output,
            ledger="" if ledger is None else ledger.id,
            account=account,
        )
        # Refuses what is no input, before anything is read.
        self._schema = declared_inputs(schema, declared)
        self.declaration = replace(
            declared, schema="" if self._schema is None else schema_to_text(self._schema)
        )
        self.folder = StreamFolder(folder)
        self.source = source_of(source, query=query)
        self._ledger = ledger
        # Names of chunks that were compared with what was read of them before.
        self._compared = set[str]()
        self._told_of_zones = False
        self._told_of_reading = False
        self._statement = statement or Statement()
        known = self._begun()
        if known is not None:
            self.declaration.check_kept(known.declaration)

    def __repr__(self) -> str:
        return f"Stream({str(self.folder.path)!r}, {len(self.periods)} periods)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream may hold private outputs, and is not pickled")

    @property
    def state(self) -> StreamState:
        """What the folder says; that of a stream of which nothing was read, if it is empty."""
        return self._begun() or StreamState.begin(self.declaration)

    @property
    def periods(self) -> tuple[PeriodRecord, ...]:
        """What has become of each period; none before the first chunk."""
        return self.state.periods

    @property
    def rows_before(self) -> int:
        """How many rows that were read lie before the first period: they are left out."""
        return sum(each.before for each in self.state.chunks)

    @property
    def rows_after(self) -> int:
        """How many rows that were read lie after the last period: they are left out."""
        return sum(each.beyond for each in self.state.chunks)

    @property
    def release(self) -> Release | None:
        """The latest release, which predicts from everything till then; None before the first."""
        return self._latest(self.state)

    @property
    def spent(self) -> float:
        """ε at the declared δ, of the person about whom most was drawn, lost periods included."""
        return self._epsilon_of(self.state)

    def describe(self, when: float) -> str:
        """Return a time in words.

        Parameters
        ----------
        when : float
            In units of the time.
        """
        return self._described(self.state, when)

    @staticmethod
    def _described(state: StreamState, when: float) -> str:
        if not state.times or not Columns.from_texts(state.schema, state.times).dated:
            return f"{when:g}"
        moment = moment_of(when)
        return moment.isoformat(sep=" ") if when % 1 else moment.date().isoformat()

    @forget_on_failure
    def advance(self, now: str | float | None = None) -> tuple[PeriodRecord, ...]:
        """Read what is new, close periods, and ask those that have closed.

        Parameters
        ----------
        now : str or number, optional
            The time of the clock, written as in the tables. If not given, it is the latest time in
            the chunks so far; a period then closes before the chunk that follows. A chunk whose
            latest time passes over more than one whole period without a row (of twenty periods
            or more, more than a tenth of them), or over one to beyond the last period, is refused
            without it: one wrong time would close them for good.

        Returns
        -------
        tuple of PeriodRecord
            Of the periods that were settled.

        Raises
        ------
        ValueError
            If the horizon is exhausted, the clock went back, or would leap, a chunk does not fit or
            has changed since its rows were asked, or a person is in two periods of disjoint people.
            Nothing is drawn then. No message quotes an output.
        """
        if self._ledger is None and keeper_in_force() is not None:
            raise SpendingError(
                "an account is open: name it to the stream, ledger= and account=, so that it goes "
                "on with a charge whose process died"
            )
        with self.folder.locked():
            state = self._begun()
            if state is None:
                state = StreamState.begin(self.declaration)
                self.folder.save(state)
            self.declaration.check_kept(state.declaration)
            before = {each.number for each in state.periods if each.settled}
            state = self._recover(state)
            if state.periods and all(each.settled for each in state.periods):
                if len(before) == len(state.periods):
                    raise ValueError(
                        f"the horizon of {len(state.periods)} periods is exhausted: nothing more "
                        "is asked. Another stream has a folder of its own, and people in both pay "
                        "for both"
                    )
                return tuple(each for each in state.periods if each.number not in before)
            state = self._take_in(state, now=now)
            for number in [each.number for each in state.periods if each.stage == "closed"]:
                state = self._ask(state, number)
            return tuple(
                each for each in state.periods if each.settled and each.number not in before
            )

    @forget_on_failure
    def plan(self) -> StreamPlan:
        """Plan the stream from public columns: its cost and expected errors; nothing is spent.

        Errors are forecast of a regression whose rows are held, as if every period had the rows
        that are there of the first one so far. Of many rows a few places stand for all.

        Returns
        -------
        StreamPlan
            Print it.
        """
        declared = self.declaration
        together = 1 if declared.disjoint else declared.horizon
        return StreamPlan(
            horizon=declared.horizon,
            epsilon=declared.epsilon,
            delta=declared.delta,
            people=declared.people,
            unit="person" if declared.person else "row",
            total=total_of(
                together, epsilon=declared.epsilon, delta=declared.delta, noise=self.model.noise
            ),
            errors=self._errors(),
        )

    def _errors(self) -> Errors | None:
        """Return the expected errors, None where nothing is forecast."""
        if not isinstance(self.model, DPGPRegressor):
            return None
        columns: Columns | None = None
        looked: dict[str, Looked] = {}
        records = []
        number = self.declaration.horizon
        for chunk in self.source.chunks():
            if columns is None:
                if not has_rows(chunk, self.declaration):
                    continue
                columns = self._columns_of(chunk)
                self._tell_of_reading(columns)
                periods = self._declared_periods(columns)
            found = look_at(chunk, columns, self.declaration)
            self._tell_of_zones(found)
            place = periods.place(found.times)
            inside = place[(place >= 0) & (place < periods.horizon)]
            number = min(number, int(inside.min(initial=periods.horizon)))
            looked[chunk.name] = found
            records.append(record_of(chunk, found, periods=periods, closed=0, version=""))
        if columns is None or number == periods.horizon:
            return None
        rows = collect(number, looked=looked, records=records, periods=periods).looked
        if rows is None or len(rows.times) < LEAST_ROWS:
            return None
        if constant := self._constant(columns.inputs, rows.X):
            told = describe_constant(constant, period=number)
            warnings.warn(f"{told}, unless further rows of it vary", StreamWarning, stacklevel=4)
        if self.model.plan_fit(rows.X.shape, queries=None).by_passes:
            return None
        model = self._first(columns, rows.X)
        if not isinstance(model, DPGPRegressor) or model.likelihood != "normal":
            return None
        model.set_params(schema=None)
        step = None
        if self.declaration.forgetting is not None:
            step = np.zeros(rows.X.shape[1])
            step[-1] = float(np.mean(np.diff(periods.edges)))
        return forecast_errors(
            model,
            rows.X,
            horizon=periods.horizon,
            people=self.declaration.people,
            step=step,
            groups=rows.persons,
        )

    # What is there.

    def _begun(self) -> StreamState | None:
        """Return what the folder says; None if it is empty, or may begin anew.

        It may as long as nothing was asked: what was declared otherwise is then replaced, but for
        where it is counted. The new state has an id of its own, by which no account knows another.
        """
        known = self.folder.load()
        if known is None or known.declaration == self.declaration:
            return known
        anew = known.unasked and self.declaration.counted_as(known.declaration)
        return None if anew else known

    def _latest(self, state: StreamState) -> Release | None:
        released = [each for each in state.periods if each.stage == "released"]
        if not released:
            return None
        path = self.folder.path / released[-1].release
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise StreamStateError(f"{path} is missing: restore it from a copy") from None
        if hashlib.sha256(content).hexdigest() != released[-1].sha256:
            raise StreamStateError(f"{path} is not what was released: restore it from a copy")
        return Release.load(path)

    def _epsilon_of(self, state: StreamState) -> float:
        drawn = [each for each in state.periods if each.drawn]
        if not drawn:
            return 0.0
        if self.declaration.disjoint:
            together = [each.spent for each in drawn]
        elif self.declaration.person:
            visits: dict[str, list[int]] = {}
            for each in drawn:
                for mark in set(self.folder.persons(each.number)):
                    visits.setdefault(mark, []).append(each.number)
            together = [
                sum((state.periods[number].spent for number in numbers), start=Amount())
                for numbers in set(map(tuple, visits.values()))
            ]
        else:
            together = [sum((each.spent for each in drawn), start=Amount())]
        delta = self.declaration.delta
        return max(each.epsilon_at(delta) for each in together)

    # What is new.

    def _take_in(self, state: StreamState, *, now: str | float | None) -> StreamState:
        """Read new chunks, and close periods."""
        for chunk in self.source.chunks():
            if not state.edges:
                if not has_rows(chunk, self.declaration):
                    continue
                columns = self._columns_of(chunk)
                self._tell_of_reading(columns)
                state = self._begin(state, columns)
            columns = Columns.from_texts(state.schema, state.times)
            periods = Periods(state.edges, self.declaration.lateness)
            known, version = state.chunk(chunk.name), chunk.version
            if known is not None and self._stands(known, version):
                continue
            check_columns(chunk, self.declaration)
            looked = look_at(chunk, columns, self.declaration)
            self._tell_of_zones(looked)
            looked = replace(looked, ids=self._checked_ids(state, chunk.name, looked))
            self._compared.add(chunk.name)
            closed = sum(each.stage != "open" for each in state.periods)
            if known is not None:
                closed = known.closed
            if known is not None and not self.source.grows:
                if looked.digest == known.digest:
                    # It was written again, and its public columns are what they were.
                    state = state.with_chunk(replace(known, version=version, ids=looked.ids))
                    self.folder.save(state)
                    continue
                _check_change(state, known)
                # Rows of a period that closed meanwhile, and was not asked, are still taken.
                asked = sum(each.settled or bool(each.drawn) for each in state.periods)
                closed = max(closed, asked)
            record = record_of(chunk, looked, periods=periods, closed=closed, version=version)
            state = self._with_late(state.with_chunk(record), looked, periods)
            if now is None and len(looked.times):
                latest = float(looked.times.max())
                clock = latest if state.clock is None else max(latest, state.clock)
                self._check_leap(state, chunk.name, looked, periods)
                state = self._at(state, clock, periods)
            self.folder.save(state)
        if now is not None and state.edges:
            columns = Columns.from_texts(state.schema, state.times)
            clock = columns.moment(str(now), name="now")
            if state.clock is not None and clock < state.clock:
                raise ValueError(
                    f"the clock went back: now is {self.describe(clock)}, and it was "
                    f"{self.describe(state.clock)} before"
                )
            state = self._at(state, clock, Periods(state.edges, self.declaration.lateness))
            self.folder.save(state)
        return state

    def _check_leap(self, state: StreamState, name: str, looked: Looked, periods: Periods) -> None:
        """Refuse times of a chunk that pass over more periods without a row than they may.

        Raises
        ------
        ValueError
        """
        others = [each for each in state.chunks if each.name != name]
        held = {place for each in others for place in range(each.first, each.last + 1)}
        found = periods.leap(looked.times, since=state.clock, held=held)
        if not found.is_doubtful:
            return
        latest = self._described(state, float(looked.times.max()))
        gap = len(found.empty) + found.after
        many = "a whole period" if gap == 1 else f"{gap:,} whole periods"
        raise ValueError(
            f"{name}: its latest time is {latest}, and before it {many} of this stream, or after "
            "its last one, would pass without a row, and be closed for good. If that is so, give "
            "the time of the clock (--now, now=); if not, correct the time, or have the tables "
            "come in the order of their times, files by their names. Nothing was drawn"
        )

    def _tell_of_reading(self, columns: Columns) -> None:
        """Say, once, how the first chunk is read, where somebody should know it."""
        if not self._told_of_reading:
            self._told_of_reading = True
            for remark in columns.remarks:
                warnings.warn(remark, StreamWarning, stacklevel=5)

    def _tell_of_zones(self, looked: Looked) -> None:
        """Say, once, in which time periods are, where times have a zone and the origin has none."""
        if looked.zoned and not self._told_of_zones and not has_zone(self.declaration.origin):
            self._told_of_zones = True
            warnings.warn(
                f"times in {self.declaration.time!r} have a zone, and are turned into universal "
                f"time, in which the first period begins at {self.declaration.origin}. If that is "
                "meant in another, write the origin with its zone, or times without one",
                StreamWarning,
                stacklevel=5,
            )

    def _checked_ids(self, state: StreamState, name: str, looked: Looked) -> str:
        """Return what ids of a chunk are, and were before; refuse those that split a person.

        Raises
        ------
        ValueError
            If they are text and those of another chunk whole numbers, or the other way round.
        """
        try:
            one_kind(
                {each.name: each.ids for each in state.chunks if each.name != name}
                | {name: looked.ids}
            )
            known = state.chunk(name)
            earlier = "" if known is None else known.ids
            return one_kind({f"{name}, as it was read before,": earlier, name: looked.ids})
        except ValueError as error:
            raise ValueError(
                f"{self.declaration.person!r} is not written in one way in all tables: {error}"
            ) from None

    def _stands(self, known: ChunkRecord, version: str) -> bool:
        """Return whether a chunk is as it was read, so that it is not read again."""
        if self.source.grows or known.version != version:
            return False
        # Where no version tells a change, rows are compared, once.
        return bool(version) or known.name in self._compared

    def _columns_of(self, chunk: Chunk) -> Columns:
        """Return the columns by the first chunk."""
        return Columns.of(
            chunk,
            self.declaration,
            schema=self._schema,
            private_numbers=not self._classes,
        )

    def _begin(self, state: StreamState, columns: Columns) -> StreamState:
        periods = self._declared_periods(columns)
        inputs, times = columns.to_texts()
        edges = periods.edges
        return replace(
            state,
            schema=inputs,
            times=times,
            edges=edges,
            periods=tuple(
                PeriodRecord(number=number, start=edges[number], end=edges[number + 1])
                for number in range(periods.horizon)
            ),
        )

    def _declared_periods(self, columns: Columns) -> Periods:
        """Return the periods, in the unit of the time."""
        length = self.declaration.length
        if isinstance(length, str) and not columns.dated:
            raise ValueError(f"a {length} is of dates, and the time is a number")
        return Periods.declared(
            columns.moment(self.declaration.origin, name="origin"),
            length=length,
            horizon=self.declaration.horizon,
            lateness=self.declaration.lateness,
        )

    def _with_late(self, state: StreamState, looked: Looked, periods: Periods) -> StreamState:
        """Count rows that came too late, by their period."""
        if self.source.grows:
            # All rows are there at once: what is more than was asked came later.
            there = np.bincount(
                np.clip(periods.place(looked.times), -1, periods.horizon) + 1,
                minlength=periods.horizon + 2,
            )[1:-1]
            for each in state.periods:
                if each.settled:
                    more = max(int(there[each.number]) - each.rows - each.repeated, 0)
                    state = state.with_period(each.number, late=more)
            return state
        counted = Counter[int]()
        for chunk in state.chunks:
            counted.update(dict(chunk.late))
        for number, late in counted.items():
            state = state.with_period(number, late=late)
        return state

    def _at(self, state: StreamState, clock: float, periods: Periods) -> StreamState:
        """Return the state at a time of the clock."""
        for number in range(periods.count_closed(clock)):
            if state.periods[number].stage == "open":
                state = state.with_period(number, stage="closed")
        return replace(state, clock=clock)

    # What is asked.

    def _ask(self, state: StreamState, number: int) -> StreamState:
        """Ask a closed period, and write the release."""
        rows = self._rows(state, number)
        looked = rows.looked
        period = state.periods[number]
        if period.digest and period.digest != rows.digest:
            if period.drawn:
                return self._lose(state, number, because="its rows are others now")
            warnings.warn(
                f"period {number + 1} holds other rows than when it closed, {rows.count:,} instead "
                f"of {period.rows:,}: nothing of it was asked yet, so these are taken",
                StreamWarning,
                stacklevel=4,
            )
        state = state.with_period(
            number, rows=rows.count, repeated=rows.repeated, digest=rows.digest
        )
        if looked is None or rows.count < LEAST_ROWS:
            state = state.with_period(number, stage="empty")
            self.folder.save(state)
            return state
        marks = [mark_of(person, key=state.key) for person in looked.persons or ()]
        self._check_apart(state, number, marks)
        path = self.folder.path / release_name(number)
        if path.exists():
            raise StreamStateError(_in_the_way(path))
        # The release from which it goes on is opened before anything is reserved.
        known = self._latest(state)
        self._check_scales(state, number, looked, known=known)
        charge = self._check_unnoted(state, number)
        self.folder.save(state)
        # After it is known whose rows a ledger has asked, and before anybody is asked here.
        if marks:
            self.folder.keep_persons(number, marks)
        if charge is not None:
            return self._taken(state, number, charge)
        before = self._charge_of(state, number) if period.drawn else None
        if period.drawn and (because := self._why_uncounted(state, number, before)):
            return self._lose(state, number, because=because)
        # What was drawn before an older copy of the ledger was put back is counted again.
        counted = 0 if before is None else before.draws
        asking = [state.with_period(number, stage="asking")]
        self.folder.save(asking[0])

        def set_drawn(drawn: tuple[Cost, ...]) -> None:
            asking[0] = asking[0].with_period(number, drawn=drawn)
            self.folder.save(asking[0])

        notes = Notes(
            note=lambda cost: set_drawn((*asking[0].periods[number].drawn, cost)),
            forget=lambda: set_drawn(asking[0].periods[number].drawn[:-1]),
            keep=lambda answers: self.folder.keep_answers(number, answers),
            costs=period.drawn,
            answers=self.folder.answers(number) if period.drawn else [],
            counted=None if self._ledger is None else counted,
        )
        # An account that has closed the charge of a release draws nothing more for it.
        keeper = None if before is None or before.open else ClosedKeeper()

        def make() -> Release:
            with counted_by(NotingKeeper(notes=notes, inner=keeper or keeper_in_force())):
                made = self._fit(asking[0], number, known, marks)
            return self._stated(made)

        try:
            made = (
                make()
                if keeper is not None
                else self._publish(state, number, make, uncounted=period.drawn[counted:])
            )
        except OtherDrawError as error:
            return self._lose(asking[0], number, because=str(error))
        except BaseException:
            # Where nothing was drawn, the period is as it was, and may be declared otherwise.
            if not asking[0].periods[number].drawn:
                self.folder.save(asking[0].with_period(number, stage="closed"))
            raise
        found = asking[0]
        charge = None if found.periods[number].drawn else self._charge_of(found, number)
        if charge is not None:
            # Another copy of the folder was faster, and the ledger gave its release.
            found = found.with_period(number, drawn=charge.amount.costs)
        return self._keep(found, number, made.to_bytes())

    def _lose(
        self, state: StreamState, number: int, *, because: str, elsewhere: bool = False
    ) -> StreamState:
        """Leave out a period for which noise was drawn.

        Its charge is closed, as nothing more is drawn for it; but for one of another copy of this
        folder (``elsewhere``), whose process may be running.
        """
        spent = "its budget is spent"
        if self._ledger is not None and self._account_of(number).find(_key(state, number)) is None:
            spent = "this stream counts its budget as spent, which the ledger does not"
        warnings.warn(
            f"period {number + 1} is left out, and {spent}: noise was drawn for it by a process "
            f"that died, and {because}",
            StreamWarning,
            stacklevel=6,
        )
        # Before it is noted here: whoever is killed in between loses the period once more.
        if self._ledger is not None and not elsewhere:
            self._account_of(number).give_up(_key(state, number))
        state = state.with_period(number, stage="lost")
        self.folder.save(state)
        self.folder.drop_answers(number)
        return state

    def _keep(self, state: StreamState, number: int, content: bytes) -> StreamState:
        """Write a release to its file, and note that it is there."""
        # Noted before there is a file: after a crash another one of this name is told from it.
        state = state.with_period(number, sha256=hashlib.sha256(content).hexdigest())
        self.folder.save(state)
        name = self.folder.keep_release(number, content)
        state = state.with_period(number, stage="released", release=name)
        self.folder.save(state)
        self.folder.drop_answers(number)
        return state

    def _rows(
        self, state: StreamState, number: int, *, private: PrivateColumn | None = None
    ) -> PeriodRows:
        """Return the rows of a period, after checking that chunks are as they were read.

        With their private column, if that is asked for, of the same reads.
        """
        columns = Columns.from_texts(state.schema, state.times)
        present = {each.name: each for each in self.source.chunks()}
        looked = {}
        for record in state.chunks:
            if not record.first <= number <= record.last or record.closed > number:
                continue
            if record.name not in present:
                raise StreamStateError(
                    f"{record.name} holds rows of period {number + 1}, and is gone: put it back"
                )
            found = look_at(present[record.name], columns, self.declaration, private=private)
            if found.digest != record.digest and not self.source.grows:
                raise StreamStateError(
                    f"{record.name} has other rows than when it was read: put back the first ones"
                )
            self._checked_ids(state, record.name, found)
            looked[record.name] = found
        return collect(
            number,
            looked=looked,
            records=state.chunks,
            periods=Periods(state.edges, self.declaration.lateness),
        )

    def _check_apart(self, state: StreamState, number: int, marks: Sequence[str]) -> None:
        """Refuse persons who were asked before, if people are disjoint."""
        if not (self.declaration.disjoint and marks):
            return
        own = set(marks)
        for each in state.periods:
            if each.number == number or not each.drawn:
                continue
            shared = len(own.intersection(self.folder.persons(each.number)))
            if shared:
                raise ValueError(
                    f"{shared:,} people of period {number + 1} were asked in period "
                    f"{each.number + 1}, and people were declared disjoint: nothing was drawn. "
                    "Leave their rows out, or declare another stream with people='overlapping'"
                )

    def _check_scales(
        self, state: StreamState, number: int, looked: Looked, *, known: Release | None
    ) -> None:
        """Refuse inputs without a scale by the first period; tell of far ones, and new levels."""
        schema = Columns.from_texts(state.schema, state.times).inputs
        for unseen in schema.encode(looked.frame).unseen:
            warnings.warn(f"period {number + 1}: {unseen}", StreamWarning, stacklevel=5)
        if known is None:
            if constant := self._constant(schema, looked.X):
                told = describe_constant(constant, period=number)
                raise ValueError(f"{told}. Nothing was drawn")
            return
        (first, *_) = tables_of(known.measurements).values()
        if far := self._scaled(find_far(schema, looked.X, first.ranges)):
            warnings.warn(describe_far(far, period=number), StreamWarning, stacklevel=5)

    def _constant(self, schema: Schema, X: Array) -> list[str]:
        """Return the names of inputs that the rows of the first period leave without a scale."""
        return self._scaled(find_constant(schema, X))

    def _scaled(self, names: Sequence[str]) -> list[str]:
        """Return the names of inputs of which the first period sets the scale.

        The time has one of its own, and a declared kernel has all of them.
        """
        declared = self.model.kernel is not None
        return [] if declared else [name for name in names if name != self.declaration.time]

    def _asked(self, state: StreamState, number: int) -> Looked:
        """Return the rows of a period with their outputs, by one read of each chunk.

        Raises
        ------
        StreamStateError
            If they are not those that were looked at, and to which what is asked belongs.
        """
        from cloakgp.data.raw import RawRows

        schema = Columns.from_texts(state.schema, state.times).inputs
        private = PrivateColumn(
            name=self.declaration.output,
            raw=replace(
                RawRows.by_schema(
                    schema,
                    missing_output=self.declaration.missing_output,
                    classes=self._written_classes,
                ),
                fixed=True,
            ),
            classes=self._classes,
        )
        rows = self._rows(state, number, private=private)
        if rows.looked is None or rows.digest != state.periods[number].digest:
            raise StreamStateError(
                f"rows of period {number + 1} were added or changed, or came in another order, "
                "while they were read: nothing more was drawn. Run it again; name an order in the "
                "query of a database (ORDER BY)"
            )
        return rows.looked

    @property
    def _classes(self) -> tuple[ClassLabel, ...]:
        """The classes, none of numbers."""
        if not isinstance(self.model, DPGPClassifier):
            return ()
        return Classes.checked(self.model.classes).labels

    @property
    def _written_classes(self) -> tuple[str, ...]:
        """The classes as files write them."""
        from cloakgp.data.cells import as_written

        return tuple(map(as_written, self._classes))

    def _fit(
        self, state: StreamState, number: int, known: Release | None, marks: Sequence[str]
    ) -> Release:
        """Ask the rows of a period, given a release or for the first time."""
        columns = Columns.from_texts(state.schema, state.times)
        rows, groups = self._asked(state, number), list(marks) or None
        if known is None:
            with extra("tables"):
                import pandas as pd
            model = self._first(columns, rows.X)
            kind = object if isinstance(model, DPGPClassifier) else None
            outputs = pd.Series(rows.private, name=self.declaration.output, dtype=kind)
            made: Release = model.fit(rows.frame, outputs, groups=groups).release_
            return made
        asked = [each.number for each in state.periods if each.stage == "released"]
        ids = [self.folder.persons(number) for number in asked if marks] + [list(marks)]
        return extend(
            known,
            rows.X,
            rows.private,
            people=self.declaration.people,
            ids=ids if marks else None,
            epsilon=self.declaration.epsilon,
            delta=self.declaration.delta,
            noise=self.model.noise,
            groups=groups,
        )

    def _first(self, columns: Columns, X: Array) -> Estimator:
        """Return the estimator that asks the first period."""
        model: Estimator = clone(self.model).set_params(schema=columns.inputs)
        length = self.declaration.forgetting
        if length is None:
            return model
        how = model.plan_fit(X.shape, queries=None)
        if how.by_passes or how.inducing is not None:
            raise ValueError(
                "what drifts is asked of rows that are held, and these are too many: take shorter "
                "periods, or leave out forgetting"
            )
        if X.shape[1] < 2:
            raise ValueError("forgetting goes with an input beside the time")
        # The time is the last of the inputs, and a block of its own.
        blocks = None if columns.inputs.plain else columns.inputs.groups[:-1]
        kernel = ForgettingKernel(
            model.base_kernel(X[:, :-1], blocks=blocks),
            place=X.shape[1] - 1,
            length=length,
            lasting=self.declaration.lasting,
        )
        model.set_params(kernel=kernel)
        return model

    def _stated(self, made: Release) -> Release:
        """Return a release that keeps purpose, maker and licence."""
        if made.provenance is None:
            return made
        stated = self._statement
        origin = made.provenance.with_statement(
            purpose=stated.purpose, by=stated.by, licence=stated.licence
        )
        return replace(made, provenance=origin)

    # What is counted.

    def _account_of(self, number: int) -> Any:
        """Return the account of a period; one of its own is opened with its budget."""
        assert self._ledger is not None
        account = self.declaration.account
        name = account.replace(PERIOD, str(number + 1))
        standings = {each.name for each in self._ledger.standings()}
        if PERIOD in account and name not in standings:
            self._ledger.open_account(
                name,
                epsilon=self.declaration.epsilon,
                delta=self.declaration.delta,
                unit="person" if self.declaration.person else "row",
            )
        return self._ledger.account(name, purpose=self._statement.purpose)

    def _publish(
        self,
        state: StreamState,
        number: int,
        make: Callable[[], Release],
        *,
        uncounted: Sequence[Cost],
    ) -> Release:
        """Make a release, counted by the ledger if there is one.

        Parameters
        ----------
        uncounted : sequence of Cost
            Of draws that were made before, and that the ledger does not count yet.

        Raises
        ------
        StreamStateError
            If the account has no room for these.
        """
        if self._ledger is None:
            return make()
        from cloakgp.ledger.errors import LimitError

        resume = bool(state.periods[number].drawn)
        try:
            made: Release = self._account_of(number).publish(
                make, key=_key(state, number), choices=self._choices(state, number), resume=resume
            )
        except LimitError:
            if not uncounted:
                raise
            spent = describe_spent(uncounted, delta=self.declaration.delta).removesuffix(",")
            raise StreamStateError(
                f"noise was drawn for period {number + 1}, {spent}, and the ledger does not count "
                "it, as when an older copy of it was put back; the account has no room for the "
                "period: nothing was released, and nothing more was drawn"
            ) from None
        return made

    def _choices(self, state: StreamState, number: int) -> str:
        """Return the public choices of a period's release: its rows, and what was declared."""
        rows = state.periods[number].digest
        return json.dumps({"rows": rows, "declaration": self.declaration.to_dict()}, sort_keys=True)

    def _charge_of(self, state: StreamState, number: int) -> KeyedCharge | None:
        """Return the charge of a period in the ledger; None if there is no ledger, or no charge.

        Raises
        ------
        StreamStateError
            If it is of other rows, or of what was declared otherwise.
        """
        if self._ledger is None:
            return None
        from cloakgp.ledger.errors import OtherChoicesError

        account = self._account_of(number)
        try:
            found: KeyedCharge | None = account.find(
                _key(state, number), choices=self._choices(state, number)
            )
        except OtherChoicesError:
            raise StreamStateError(
                f"period {number + 1} was asked of other rows, as the ledger knows and this folder "
                "does not: it is a copy from before. Put back the rows of then, for whose people "
                "that counts: nothing more was drawn"
            ) from None
        return found

    def _check_unnoted(self, state: StreamState, number: int) -> KeyedCharge | None:
        """Return a charge in which noise was drawn for a period of which there is no note here.

        Every draw is noted before it is reserved, so that another copy of this folder made it. A
        charge in which nothing was drawn is voided: its process died, or will draw nothing.
        """
        charge = None if state.periods[number].drawn else self._charge_of(state, number)
        if charge is None or charge.drawn or charge.kept:
            return charge
        if charge.open:
            assert self._ledger is not None
            self._ledger.void(charge.number, reason="its process died before any noise was drawn")
        return None

    def _taken(self, state: StreamState, number: int, charge: KeyedCharge) -> StreamState:
        """Take the release that the ledger kept of a period, which was asked elsewhere; or lose it.

        Its people were asked either way, and what the ledger counts is noted for them.
        """
        state = state.with_period(number, stage="asking", drawn=charge.amount.costs)
        self.folder.save(state)
        if charge.kept:
            return self._keep_kept(state, number)
        return self._lose(
            state,
            number,
            because="this folder is a copy that knows no answers of it",
            elsewhere=True,
        )

    def _keep_kept(self, state: StreamState, number: int) -> StreamState:
        """Write the release that the ledger kept to its file."""
        kept = self._account_of(number).publish(
            _never, key=_key(state, number), choices=self._choices(state, number)
        )
        return self._keep(state, number, kept.to_bytes())

    def _why_uncounted(self, state: StreamState, number: int, charge: KeyedCharge | None) -> str:
        """Return why the ledger will not count what was drawn for a period; empty if it will."""
        if self._ledger is None:
            return ""
        if charge is None:
            voided = self._account_of(number).is_voided(_key(state, number))
            return "its charge was voided" if voided else ""
        fewer = not charge.open and charge.draws < len(state.periods[number].drawn)
        return "its charge was closed with fewer draws than were made" if fewer else ""

    def _recover(self, state: StreamState) -> StreamState:
        """Settle a period at which a process died, as the head of this module says."""
        for period in [each for each in state.periods if each.stage == "asking"]:
            state = self._recover_period(state, period)
            self.folder.save(state)
        return state

    def _recover_period(self, state: StreamState, period: PeriodRecord) -> StreamState:
        number = period.number
        path = self.folder.path / release_name(number)
        if path.exists():
            if hashlib.sha256(path.read_bytes()).hexdigest() != period.sha256:
                raise StreamStateError(_in_the_way(path))
            self.folder.drop_answers(number)
            return state.with_period(number, stage="released", release=path.name)
        charge = self._charge_of(state, number) if period.drawn else None
        noted = len(period.drawn)
        answers = len(self.folder.answers(number))
        if charge is not None:
            if charge.kept:
                return self._keep_kept(state, number)
            if charge.draws > noted:
                state = state.with_period(number, drawn=charge.amount.costs)
                return self._lose(
                    state, number, because="another copy of this folder drew more", elsewhere=True
                )
            if charge.open and charge.draws == answers == noted - 1:
                # The last was noted, and not reserved: it was not drawn.
                noted = answers
                state = state.with_period(number, drawn=period.drawn[:noted])
        if answers == noted:
            # Nothing was drawn, or all that was is there.
            return state.with_period(number, stage="closed")
        return self._lose(state, number, because="its answers are not there")


def _in_the_way(path: Path) -> str:
    return (
        f"{path} was not made by this stream, and is where its release will be: nothing more was "
        "drawn. Move that file, and run it again"
    )


def _never() -> Release:
    raise StreamStateError("the release that the ledger kept is gone")


def _key(state: StreamState, number: int) -> str:
    """Return the name of a period's release in a ledger."""
    return f"stream {state.id}, period {number + 1}"


def _check_change(state: StreamState, record: ChunkRecord) -> None:
    """Refuse a chunk that changed after rows of it were asked; tell of others.

    Raises
    ------
    StreamStateError
    """
    name = record.name
    if not record.version:
        raise StreamStateError(
            f"{name} has other rows than when it was read: in every run the tables come again from "
            "the first, and new ones after them"
        )
    touched = state.periods[max(record.first, record.closed, 0) : record.last + 1]
    if any(each.drawn for each in touched):
        raise StreamStateError(
            f"{name} has changed since its rows were asked: put back the first ones, and new rows "
            "in a new file"
        )
    warnings.warn(
        f"{name} has changed since it was read: nothing of it was asked yet, so it is read again",
        StreamWarning,
        stacklevel=6,
    )
