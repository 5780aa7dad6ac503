"""Accounts of populations: their charges, and the blocks that count further ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from numpy.typing import ArrayLike

from cloakgp.ledger import projection, schema
from cloakgp.ledger.blocks import ACCOUNT, exported, refuse_several
from cloakgp.ledger.chain import Entry
from cloakgp.ledger.charges import LedgerCharge, Purpose, check_unit
from cloakgp.ledger.database import Database, TableStore, Writing
from cloakgp.ledger.errors import LedgerError, OtherChoicesError
from cloakgp.ledger.marks import (
    ReadInputs,
    RecognisedInputs,
    elsewhere,
    marked,
    recognised,
)
from cloakgp.ledger.texts import checked_name, checked_text, is_text, known_name
from cloakgp.privacy.filters import (
    Amount,
    Costs,
    checked_limit,
    costs_of_release,
    filter_of,
    releases_left,
)
from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.privacy.spending import Budget, Spender, counted_by
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release.open import OpenedRelease, load
from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import percent
from cloakgp.utils.names import NoiseChoice

with extra("ledger"):
    from sqlalchemy.engine import Connection

if TYPE_CHECKING:
    from types import TracebackType


# Blocks of accounts that this code is within, the inner ones last: threads may share an account.
_entered: ContextVar[tuple[ExitStack, ...]] = ContextVar("_entered", default=())


class Publishable(Protocol):
    """A release that can be written to a file."""

    def to_bytes(self) -> bytes:
        """Return the file."""


Made = TypeVar("Made", bound=Publishable)


@dataclass(frozen=True, repr=False)
class Standing:
    """The standing of an account at one moment.

    Attributes
    ----------
    name : str
    unit : str
        The protected unit.
    limit : (float, float)
        (ε, δ).
    spent : Amount
        On anybody: the largest over cohorts, part by part.
    spent_by : mapping of str to Amount
        On the people of each cohort; on everybody else under "".
    open : tuple of int
        Open charges: of running calls, or of processes that died. They count.
    charges : int
        Number of charges in all states.
    beyond : frozenset of str
        Cohorts on whose people more was spent than the limit allows, as after it was lowered:
        nothing that is about them fits any more.
    """

    name: str
    unit: str
    limit: Budget
    spent: Amount
    spent_by: Mapping[str, Amount]
    open: tuple[int, ...]
    charges: int
    beyond: frozenset[str] = frozenset()

    @property
    def used(self) -> float:
        """The used share of the limit, from 0 to 1, also where more was spent (`beyond`).

        This, and no (ε, δ), is the measure of all charges: see `cloakgp.privacy.filters`.
        """
        return min(1.0, filter_of(self.limit).used(self.spent))

    def used_by(self, cohort: str) -> float:
        """Return the used share of the limit for the people of a cohort, from 0 to 1."""
        return min(1.0, filter_of(self.limit).used(self.spent_by[cohort]))

    @property
    def epsilon_if_fixed(self) -> float:
        """The ε of all charges at the limit's δ, if every price was fixed before any answer.

        No guarantee where a price was chosen after reading answers: there the limit is one.
        """
        return self.spent.epsilon_at(self.limit[1])

    @property
    def used_in_words(self) -> str:
        """What of the limit is used, as a part of a sentence."""
        if not self.beyond:
            return f"{percent(self.used)} of the limit"
        if self.beyond >= self.spent_by.keys():
            return "more than the limit: nothing fits"
        listed = ", ".join(sorted(self.beyond - {""}))
        return f"more than the limit, of the people of {listed}: nothing about them fits"

    def __repr__(self) -> str:
        many = "charge" if self.charges == 1 else "charges"
        waiting = f", {len(self.open)} of them open" if self.open else ""
        return (
            f"<Standing of {self.name!r}: used {self.used_in_words}; the limit is (ε, δ) = "
            f"({self.limit[0]:g}, {self.limit[1]:g}); {self.charges:,} {many}{waiting}; protects "
            f"each {self.unit}>"
        )

    def releases_left(self, epsilon: float, delta: float, *, noise: NoiseChoice = "auto") -> int:
        """Return the number of further releases of a budget for which the limit has room.

        Parameters
        ----------
        epsilon, delta : float
            Of each.
        noise : {"auto", "gaussian", "laplace"}
            "auto" stands for the one that costs more.
        """
        costs: Costs = costs_of_release(*checked_limit(epsilon, delta), noise=noise)
        return releases_left(self.spent, costs, limit=self.limit)


@dataclass(frozen=True)
class KeyedCharge:
    """The charge of one release that has a key.

    Attributes
    ----------
    number : int
    open : bool
        Whether its call is running, or its process died.
    drawn : bool
        Whether noise may have been drawn.
    draws : int
        How often it may have been.
    amount : Amount
        What it counts for.
    release : str or None
        The digest of the release, if the ledger keeps it.
    """

    number: int
    open: bool
    drawn: bool
    draws: int
    amount: Amount
    release: str | None

    @property
    def kept(self) -> bool:
        """Whether the ledger keeps the release."""
        return self.release is not None


@dataclass(frozen=True)
class Account:
    """An account of one population; its block counts all charges within.

    ``with ledger.account("patients 2024"):`` counts every fit, those of ``cross_val_score``
    included, in threads and processes that are started within the block as well, and in any that
    estimators are sent to from within it; it refuses a charge beyond the limit before any noise is
    drawn.

    Attributes
    ----------
    database : Database
    name : str
        Empty for the account to which the table is attached.
    purpose : str
        Purpose, which stands in every charge.
    approved_by : str
        The approver, if approval was needed.
    key : str or None
        See `publish`.
    choices : str
        The digest of the public choices that go with the key; see `publish`.
    resumed : int or None
        Number of the open charge that the next call goes on with.
    cohort : str
        Of an attached column (`attach`): charges are about its people alone. Empty for everybody.
    inputs : mapping
        Public inputs of the next call; see `with_inputs`.
    declared_public : tuple of str
        Those that the caller declares to be public.
    own : frozenset of str or None
        Private columns of the account that are the caller's own; None for all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cloakgp import DPGPRegressor
    >>> from cloakgp.ledger import Ledger
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6)
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder + "/people.db")
    ...     account = ledger.open_account("patients 2024", epsilon=2.0, delta=1e-6)
    ...     with account:
    ...         model = model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    ...     standing = account.standing
    >>> round(standing.used, 2), standing.releases_left(0.5, 0), standing.releases_left(0.5, 1e-6)
    (0.5, 2, 1)
    """

    database: Database = field(repr=False)
    name: str
    purpose: str = ""
    approved_by: str = ""
    key: str | None = None
    choices: str = ""
    resumed: int | None = None
    cohort: str = ""
    inputs: ReadInputs = field(default_factory=dict, compare=False, repr=False)
    declared_public: tuple[str, ...] = ()
    own: frozenset[str] | None = None

    @property
    def standing(self) -> Standing:
        """The standing of the account, now."""
        with self.database.reading() as connection:
            return standing_of(self.name, connection)

    def __enter__(self) -> Account:
        block = ExitStack()
        block.enter_context(counted_by(self))
        block.enter_context(_exported(self))
        _entered.set((*_entered.get(), block))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        *others, block = _entered.get()
        _entered.set(tuple(others))
        block.close()

    def directions(self) -> dict[str, str]:
        """Return what names the account to other processes, and holds no secret.

        A password of the ledger's address is left out: the other process has it in its environment,
        or in a file of its own, or does not reach the ledger.
        """
        return {
            "ledger": self.database.name,
            "url": self.database.bare_url,
            "account": self.name,
            "purpose": self.purpose,
            "approved_by": self.approved_by,
            "cohort": self.cohort,
        }

    def with_inputs(
        self,
        inputs: ReadInputs,
        *,
        declared_public: Sequence[str] = (),
        own: Collection[str] | None = None,
    ) -> Account:
        """Return the account for calls with public inputs, which it compares with private columns.

        A charge, or an attachment, is refused if an input has the values of a column that is
        attached to the account: releases hold public inputs, row by row. That it is attached to
        another account the caller does not learn; auditors see it.

        Parameters
        ----------
        inputs : mapping of str to callable
            Name → a function that reads the column, and returns it in all forms in which it may
            have been attached. Nothing is read if no column is attached.
        declared_public : sequence of str
            Inputs that everybody may know, though a private column has the same values: of few
            different ones, say. The entry has this word, and who gave it.
        own : collection of str, optional
            Private columns of the account that are the caller's own, by the names with which they
            were attached; by default all, as for whoever holds the ledger. Of the others they are
            not told which input is one of them, and nothing at all of inputs with few different
            values (`cloakgp.ledger.marks.GUESSABLE`): auditors see both.

        Raises
        ------
        LedgerError
            If one that is declared is no input.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from cloakgp.ledger import Ledger
        >>> with TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(folder + "/people.db")
        ...     account = ledger.open_account("patients 2024", epsilon=2.0, delta=1e-6)
        ...     account.attach([170, 180], column="height")
        ...     account.with_inputs({"tall": lambda: [[180, 170]]}).check_inputs()
        Traceback (most recent call last):
        cloakgp.ledger.errors.PrivateInputError: tall cannot be public: ...
        """
        if unknown := [name for name in declared_public if name not in inputs]:
            raise LedgerError(f"{', '.join(unknown)} cannot be declared public: it is no input")
        return replace(
            self,
            inputs=inputs,
            declared_public=tuple(declared_public),
            own=None if own is None else frozenset(own),
        )

    def keyed(self, key: str | None, *, choices: str = "") -> Account:
        """Return the account for one charge, under a key if there is one.

        Parameters
        ----------
        key, choices : str
            As for `publish`.
        """
        return replace(self, key=key, choices=_digest_choices(choices))

    def check_inputs(self) -> None:
        """Refuse public inputs that are private columns of the account, if one is named.

        Without a name, `open_charge` does, when it has found the account.

        Raises
        ------
        PrivateInputError
        """
        if self.name and self.inputs:
            with self.database.reading() as connection:
                recognised_inputs = self._recognise_inputs(connection)
            self._check_inputs(recognised_inputs, account=self.name)

    def _check_inputs(self, inputs: RecognisedInputs, *, account: str) -> None:
        inputs.check(account, declared=self.declared_public, own=self.own)

    def _recognise_inputs(self, connection: Connection) -> RecognisedInputs:
        attached = TableStore(connection).all("columns")
        return RecognisedInputs.of(self.inputs, attached, keys=self.database.keys)

    def open_charge(self, spender: Spender) -> LedgerCharge:
        """Open a charge for a call; `cloakgp.privacy.spending` calls this.

        A named account is taken at its word: the caller does not learn that the outputs are
        attached to another, since that would confirm a guess of them. Auditors see it.

        Raises
        ------
        LedgerError
            If the account protects another unit than the call, or none is named and the outputs are
            not attached to one; or if a public input is a private column of it.
        """
        with self.database.reading() as connection:
            rows = TableStore(connection)
            attached = rows.all("columns")
            found = recognised(spender.fingerprint, attached, keys=self.database.keys)
            accounts = {row["account"] for row in found}
            name = self.name or (accounts.pop() if len(accounts) == 1 else "")
            if not name:
                raise LedgerError(
                    "these outputs are attached to no account, or to several: name one "
                    f"(--account, {ACCOUNT}), or attach them (cloakgp ledger attach)"
                )
            account = checked_account(name, rows)
            inputs = self._recognise_inputs(connection)
        check_unit(account["unit"], spender.unit, name=name)
        self._check_inputs(inputs, account=name)
        if self.cohort not in projection.amounts_of(account):
            raise LedgerError(
                f"nobody has said who the people of {self.cohort!r} are: attach its column as one "
                "of a cohort"
            )
        here = [row for row in found if row["account"] == name]
        self._check_cohort(here)
        return LedgerCharge(
            self.database,
            spender,
            purpose=Purpose(
                account=name,
                text=self.purpose,
                key=self.key,
                choices=self.choices,
                approved_by=self.approved_by,
                cohort=self.cohort,
                declared_public=self.declared_public,
            ),
            note={
                "columns": [row["name"] for row in here],
                **({"cohorts": sorted({row["cohort"] for row in here})} if self.cohort else {}),
                "elsewhere": elsewhere(found, account=name),
                **inputs.note(name, declared=self.declared_public),
            },
            resumed=self.resumed,
        )

    def _check_cohort(self, columns: Sequence[projection.Row]) -> None:
        """Refuse a charge about one cohort of a column that was attached as another's.

        Of columns that are not the caller's own, auditors alone see it.
        """
        own = [row["cohort"] for row in columns if self.own is None or row["name"] in self.own]
        if self.cohort and own and self.cohort not in own:
            raise LedgerError(
                "these outputs are attached to the account as those of "
                f"{' and '.join(sorted({cohort or 'everybody' for cohort in own}))}, and this "
                f"would be about the people of {self.cohort} alone: nothing was drawn. Name the "
                "cohort with which they were attached, or none, for everybody"
            )

    @forget_on_failure
    def attach(self, y: ArrayLike, *, column: str, cohort: str = "") -> None:
        """Attach a private column, which the ledger recognises from now on.

        The caller does not learn whether it is attached already, to this account or another: that
        would confirm a guess of another person's column. Auditors see it.

        Parameters
        ----------
        y : array-like of shape (N,)
            Private. A mark of its keyed fingerprint is kept, and nothing else of it.
        column : str
            Its name.
        cohort : str
            A name for its people, if the caller says that none of them is in another cohort of the
            account; it is composed (NFC), and stripped of blanks. Charges about one cohort and
            about another then do not add up: everybody pays for those about their own, and about
            everybody (`cloakgp.privacy.cohorts`). The entry has this word, and who gave it; no
            ledger can show that it is right.

        Raises
        ------
        LedgerError
            If it is no column, or has no entries; if a name is not text that can be printed; or if
            a public input (`with_inputs`) is a private column of the
            account.
        """

        def fingerprinted(key: bytes) -> str | None:
            return fingerprint_column(y, key=key)

        checked_text(column, what="the name of a column")
        checked_text(cohort, what="the name of a cohort", empty=True)
        if not _is_column(y):
            raise LedgerError("y must be a private column: a list, an array, or one of a table")
        # Inputs are read before the only writer begins.
        with self.database.reading() as connection:
            inputs = self._recognise_inputs(connection)
        self._check_inputs(inputs, account=self.name)
        with self.database.writing() as writing:
            row = checked_account(self.name, writing.rows)
            known = known_cohort(cohort, row)
            if known and known not in projection.amounts_of(row):
                known = checked_name(known, what="a cohort")
            mark = marked(fingerprinted, key=writing.key)
            if mark is None:
                raise LedgerError("there are no outputs to attach")
            attached = writing.rows.all("columns")
            found = recognised(fingerprinted, attached, keys=self.database.keys)
            here = [row["name"] for row in found if row["account"] == self.name]
            writing.append_noted(
                "attached",
                # Of a cohort of other people, that they are not others is for auditors to see.
                note={"elsewhere": elsewhere(found, account=self.name)}
                | ({"columns": here} if known else {})
                | inputs.note(self.name, declared=self.declared_public),
                account=self.name,
                column=column,
                **({"cohort": known} if known else {}),
                **({"declared_public": list(self.declared_public)} if self.declared_public else {}),
                **mark,
            )

    def publish(
        self,
        make: Callable[[], Made],
        *,
        key: str | None = None,
        choices: str = "",
        resume: bool = False,
    ) -> Made:
        """Make one release, count it, and note the digest of its file.

        With a key, the ledger keeps the release, and a second call with that key returns it:
        nothing is drawn a second time, by any number of calls from any place. What the release is
        of, the ledger cannot see: state the choices, or another ``make`` with a key that was used
        returns the release of the first.

        Parameters
        ----------
        make : callable
            Fits once, and returns a release.
        key : str, optional
            Any text; one for each release.
        choices : str, optional
            The public choices of the release: table, columns, bounds, budget and all others, as
            text that is the same in each call. Never anything that follows from private values.
            The ledger keeps its digest with the key, and refuses other choices with that key. A
            call that states none, or a key that was used without, is not compared.
        resume : bool
            Go on with the charge of this key, if a process died over it: the caller knows that it
            did, and has the answers that were drawn (`cloakgp.privacy.spending.RecallingCharge`).

        Returns
        -------
        object
            The result of ``make``, or that of its first call.

        Raises
        ------
        LedgerError
            If the limit leaves no room; if another call with this key is running, or died after it
            had drawn noise, or made other choices; or if ``make`` does not fit exactly once.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from cloakgp import DPGPRegressor
        >>> from cloakgp.ledger import Ledger
        >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6)
        >>> def make():
        ...     return model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_
        >>> with TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(folder + "/people.db")
        ...     account = ledger.open_account("patients 2024", epsilon=2.0, delta=1e-6)
        ...     first = account.publish(make, key="figure 3")
        ...     again = account.publish(make, key="figure 3")
        ...     first.to_bytes() == again.to_bytes(), account.standing.charges
        (True, 1)
        """
        resumed = None
        if key is None and choices:
            raise LedgerError("choices are kept with a key: give one")
        if key is not None:
            checked_text(key, what="a key", empty=True)
            known = self.find(key, choices=choices) if resume else None
            if known is not None and known.open:
                resumed = known.number
            else:
                kept = self.recall(key, choices=choices)
                if kept is not None:
                    return cast(Made, kept)
        counting = _OneCharge(replace(self.keyed(key, choices=choices), resumed=resumed))
        with counted_by(counting), _exported(self):
            made = make()
        if counting.charge is None or counting.charge.number is None:
            raise LedgerError("nothing was drawn, so there is nothing to publish")
        content = made.to_bytes()
        digest = hashlib.sha256(content).hexdigest()
        number = counting.charge.number
        with self.database.writing() as writing:
            row = writing.rows.get("charges", number)
            assert row is not None
            if key is not None:
                keep(content, digest=digest, writing=writing)
            writing.append("published", charge=number, account=row["account"], release=digest)
        return made

    def recall(self, key: str, *, choices: str = "") -> OpenedRelease | None:
        """Return the release that the ledger keeps under a key; None if none was drawn for it.

        Parameters
        ----------
        key, choices : str
            As for `publish`.

        Raises
        ------
        LedgerError
            If no account is named; or if another call with this key is running, or died after it
            had drawn noise, or made other choices.
        """
        with self._keyed(key, choices) as (charge, connection):
            if charge is None:
                return None
            kept = None
            if charge["release"] is not None:
                table = schema.releases
                kept = connection.execute(
                    table.select().where(table.c.digest == charge["release"])
                ).first()
        if kept is not None:
            return open_content(kept.content)
        if charge["state"] == projection.OPEN:
            raise LedgerError(
                f"charge {charge['number']} has the key {key!r} and is not closed: it is running, "
                "or its process died. Void it if that is so, and try again"
            )
        raise LedgerError(
            f"noise was drawn for the key {key!r}, and the release was lost: it stays spent. Take "
            "another key"
        )

    def find(self, key: str, *, choices: str = "") -> KeyedCharge | None:
        """Return the charge that has a key; None if none has, or it gave its key back.

        Parameters
        ----------
        key, choices : str
            As for `publish`.

        Raises
        ------
        LedgerError
            If no account is named.
        OtherChoicesError
            If the key was used with other choices.
        """
        with self._keyed(key, choices) as (charge, _):
            if charge is None:
                return None
        return KeyedCharge(
            number=charge["number"],
            open=charge["state"] == projection.OPEN,
            drawn=projection.drawn_of(charge) != Amount(),
            draws=charge["draws"],
            amount=projection.counted(charge),
            release=charge["release"],
        )

    def is_voided(self, key: str, *, choices: str = "") -> bool:
        """Return whether noise was drawn under a key, and its charge was voided.

        By the word of a person that nobody will see what was drawn. The key is free again, so that
        `find` tells only of a later charge that has it.

        Parameters
        ----------
        key : str
        choices : str
            As for `publish`: if there are any, charges with others are passed over.

        Raises
        ------
        LedgerError
            If no account is named.
        """
        _check_named(self.name)
        with self.database.reading() as connection:
            voided = TableStore(connection).all(
                "charges", account=self.name, state=projection.VOIDED
            )
            openings = (
                _opening_of(charge["number"], connection)
                for charge in voided
                if projection.drawn_of(charge) != Amount()
            )
            return any(
                opening.get("key") == key
                and (not choices or opening.get("choices") == _digest_choices(choices))
                for opening in openings
            )

    def counts(self, digest: str) -> bool:
        """Return whether a charge of this account counts some answers, an import included.

        Parameters
        ----------
        digest : str
            Of the answers, by `cloakgp.privacy.spending.digest_of`.
        """
        with self.database.reading() as connection:
            rows = TableStore(connection)
            return projection.charge_of_draw(digest, self.name, rows) is not None

    def note(self, key: str, digest: str) -> None:
        """Note that answers follow from those of the charge that has a key: they count with it.

        An import of a release that holds them counts them no second time. What is noted already is
        not noted again, and nothing where no charge has the key, or nothing was drawn.

        Parameters
        ----------
        key : str
        digest : str
            Of the answers, by `cloakgp.privacy.spending.digest_of`.

        Raises
        ------
        LedgerError
            If no account is named.
        """
        known = self.find(key)
        if known is None or not known.drawn:
            return
        with self.database.writing() as writing:
            if projection.charge_of_draw(digest, self.name, writing.rows) is None:
                writing.append(
                    projection.NOTED, charge=known.number, account=self.name, draws=[digest]
                )

    def give_up(self, key: str) -> None:
        """Close the open charge that has a key, if noise was drawn for it: nothing more will be.

        What was drawn counts, and the rest of its hold is given back. It is for a caller who knows
        that its process died, or that no result will be made of it.

        Parameters
        ----------
        key : str

        Raises
        ------
        LedgerError
            If no account is named.
        """
        known = self.find(key)
        if known is None or not known.open:
            return
        with self.database.writing() as writing:
            row = writing.rows.get("charges", known.number)
            assert row is not None
            # It is settled in the transaction that closes it.
            if row["state"] == projection.OPEN and projection.drawn_of(row) != Amount():
                writing.append(projection.FAILED, charge=known.number, account=self.name, draws=[])

    @contextmanager
    def _keyed(self, key: str, choices: str) -> Iterator[tuple[projection.Row | None, Connection]]:
        """Yield the charge of a key, if its choices are these or are not known."""
        checked_text(key, what="a key", empty=True)
        _check_named(self.name)
        with self.database.reading() as connection:
            found = TableStore(connection).all("charges", account=self.name, key=key)
            charge = found[0] if found else None
            if charge is not None and choices:
                kept = _choices_of(charge["number"], connection)
                if kept not in ("", _digest_choices(choices)):
                    raise OtherChoicesError(
                        f"the key {key!r} belongs to another release of this account, with another "
                        "table, column or budget, or another choice of its options: nothing was "
                        "drawn. Take another key, or repeat the choices of the first call"
                    )
            yield charge, connection


def _digest_choices(choices: str) -> str:
    """Return the digest of choices, which the chain holds in their place; empty for none."""
    return hashlib.sha256(choices.encode()).hexdigest() if choices else ""


def _check_named(name: str) -> None:
    if not name:
        raise LedgerError("a key belongs to an account: name the account")


def _choices_of(number: int, connection: Connection) -> str:
    """Return the digest of choices of a charge."""
    return str(_opening_of(number, connection).get("choices", ""))


def _opening_of(number: int, connection: Connection) -> dict[str, Any]:
    """Return the content of the entry that opened a charge."""
    table = schema.entries
    row = connection.execute(table.select().where(table.c.number == number)).first()
    return {} if row is None else Entry(*row).content


def standing_of(name: str, connection: Connection) -> Standing:
    """Return the standing of an account, as a transaction sees it.

    Raises
    ------
    LedgerError
        If there is none.
    """
    rows = TableStore(connection)
    row = checked_account(name, rows)
    charges = rows.all("charges", account=name)
    return Standing(
        name=name,
        unit=row["unit"],
        limit=(float.fromhex(row["epsilon"]), float.fromhex(row["delta"])),
        spent=projection.amount_of(row),
        spent_by=projection.amounts_of(row),
        open=tuple(one["number"] for one in charges if one["state"] == projection.OPEN),
        charges=len(charges),
        beyond=projection.cohorts_beyond(row, charges),
    )


def checked_account(name: str, rows: TableStore) -> projection.Row:
    """Return the row of an account.

    Raises
    ------
    LedgerError
        If there is none; or if the name stands for several that were open together.
    """
    refuse_several(name)
    row = rows.get("accounts", name) if is_text(name) else None
    if row is None and is_text(name):
        known = [each["name"] for each in rows.all("accounts")]
        row = rows.get("accounts", known_name(name, known))
    if row is None:
        raise LedgerError(f"there is no account {name!r:.200}: cloakgp ledger limit opens one")
    return row


def keep(content: bytes, *, digest: str, writing: Writing) -> None:
    """Keep the file of a release, which is public."""
    table = schema.releases
    held = writing.connection.execute(table.select().where(table.c.digest == digest)).first()
    if held is None:
        writing.connection.execute(table.insert().values(digest=digest, content=content))


def known_cohort(cohort: str, account: projection.Row) -> str:
    """Return the cohort of an account that is meant by a name; the name itself if there is none.

    Parameters
    ----------
    cohort : str
        Empty for everybody.
    account : row
    """
    cohorts = projection.amounts_of(account).keys() - {projection.EVERYBODY}
    known = known_name(cohort, cohorts)
    return known if known in cohorts else cohort


def _is_column(y: object) -> bool:
    """Return whether something has rows; a mapping has columns, and text is one value."""
    if not hasattr(y, "__len__") or isinstance(y, str | bytes | Mapping):
        return False
    return bool(getattr(y, "ndim", 1))


class _OneCharge:
    """A keeper that lets one charge through."""

    def __init__(self, account: Account) -> None:
        self.charge: LedgerCharge | None = None
        self._account = account

    def open_charge(self, spender: Spender) -> LedgerCharge:
        if self.charge is not None:
            raise LedgerError("one release is one fit: this is a second")
        self.charge = self._account.open_charge(spender)
        return self.charge


def open_content(content: bytes) -> OpenedRelease:
    """Return the release of a file's content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kept.cloak"
        path.write_bytes(content)
        return load(path)


def _exported(account: Account) -> AbstractContextManager[None]:
    """Have processes that are started within a block charge the account as well."""
    return exported(
        url=account.database.url.render_as_string(hide_password=False),
        account=account.name,
        purpose=account.purpose,
        cohort=account.cohort,
        approved_by=account.approved_by,
    )
