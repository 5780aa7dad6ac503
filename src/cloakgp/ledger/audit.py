"""Audit of a ledger: edits, gaps, forgeries and rollbacks.

Every entry's digest must follow from the one before, and be signed with the ledger's key of that
time, which is not in the database; the tables must follow from the entries; files, names and notes
beside the chain must have the digests and marks of the chain; and the chain must reach the anchor,
which lies outside of the database, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cloakgp.ledger import projection, schema
from cloakgp.ledger.chain import GENESIS, Anchor, Entry, is_endorsed, linked
from cloakgp.ledger.database import TableStore, Writing, is_recovering
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError
from cloakgp.ledger.keys import KeyFile
from cloakgp.ledger.marks import mark_of
from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy.engine import Connection

# Number and digest of an entry, or a finding.
Noted = tuple[int, str] | str
# Findings of a report, which counts further ones.
MOST_FINDINGS = 20
# Seconds of difference between the clocks of machines.
CLOCKS = 60.0
# Columns of tables that hold sums.
AMOUNTS = {"accounts": ("spent",), "charges": ("held", "drawn")}
ROLLBACK = "the ledger was put back to before entry"


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    entries : int
        Number of entries.
    digest : str
        Digest of the last entry, worth a note elsewhere.
    findings : tuple of str
        Errors; empty for a sound ledger.
    notes : tuple of str
        Facts for auditors that are no errors: a column of two accounts, or of other people than a
        charge says, answers that two count, a release that counts less by the word of whoever
        imported it, a clock that went back, an older copy that was put back, tables that were
        made anew.
    """

    entries: int
    digest: str
    findings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def note_of(anchor: Anchor) -> Noted:
    """Return the entry of an anchor, or a finding about the anchor."""
    try:
        noted = anchor.read()
    except DamagedLedgerError as error:
        return str(error)
    if noted is None:
        return f"there is no anchor at {anchor.path}: whether entries were taken back is not known"
    return noted


def is_rollback(finding: str) -> bool:
    """Return whether a finding is that the ledger does not reach its anchor."""
    return finding.startswith(ROLLBACK)


def audit(connection: Connection, *, noted: Noted, keys: KeyFile) -> Audit:
    """Check a ledger as one transaction sees it.

    Parameters
    ----------
    connection : Connection
        It sees one moment of the database, whatever is written meanwhile.
    noted : Noted
        From `note_of`, before the transaction began: a ledger would fall short of an anchor that is
        read later, if it is written meanwhile.
    keys : KeyFile
    """
    followed, findings = _follow_all(connection, keys=keys)
    rows = TableStore(connection)
    findings += _differences(followed.rows, rows)
    findings += _kept(connection, followed)
    findings += _named(connection, followed)
    notes = [*followed.notes, *_noted(connection, followed, findings)]
    if is_recovering(rows):
        notes.append("an older copy was put back, and its missing charges are not reconciled")
    findings += _anchored(noted, followed.digests)
    return Audit(
        entries=len(followed.digests),
        digest=followed.digest,
        findings=_first(findings),
        notes=_first(notes),
    )


def rebuild(writing: Writing, *, noted: Noted, keys: KeyFile, reason: str) -> int:
    """Make the tables anew from the entries, and return how many of their rows were others.

    Entries alone say what was spent. Rows differ from them where the database was edited, or where
    another version of this package made them; and each charge goes by the rows.

    Parameters
    ----------
    writing : Writing
    noted, keys
        As for `audit`.
    reason : str
        Stands in the entry.

    Raises
    ------
    DamagedLedgerError
        If the entries are not sound themselves, or do not reach the anchor.
    LedgerError
        If all rows are what the entries make them.
    """
    followed, findings = _follow_all(writing.connection, keys=keys)
    findings += _anchored(noted, followed.digests)
    if findings:
        raise DamagedLedgerError(f"tables are made anew of sound entries alone: {findings[0]}")
    others = len(list(_differences(followed.rows, writing.rows)))
    if not others:
        raise LedgerError("all tables are what the entries make them: there is nothing to rebuild")
    writing.rows.replace(followed.rows.tables)
    writing.append(projection.REBUILT, reason=reason, rows=others)
    return others


def _follow_all(connection: Connection, *, keys: KeyFile) -> tuple[_Followed, list[str]]:
    """Return what follows from all entries, and the findings about these and their end."""
    head = connection.execute(schema.head.select()).mappings().one()
    followed = _Followed(keys=keys)
    findings: list[str] = []
    query = schema.entries.select().order_by(schema.entries.c.number)
    for row in connection.execute(query.execution_options(yield_per=1000)):
        findings += followed.follow(Entry(*row))
    number, digest = followed.number, followed.digest
    if (number, digest) != (head["number"], head["digest"]):
        findings.append(f"the ledger ends at entry {number}, and should at {head['number']}")
    if followed.key_check != head["key_check"]:
        findings.append("the ledger's key is not the one that its entries name")
    return followed, findings


def _first(told: list[str]) -> tuple[str, ...]:
    if len(told) <= MOST_FINDINGS:
        return tuple(told)
    return (*told[:MOST_FINDINGS], f"and {len(told) - MOST_FINDINGS} more")


@dataclass
class _Followed:
    """The state that follows from the entries so far."""

    keys: KeyFile
    rows: projection.MemoryStore = field(default_factory=projection.MemoryStore)
    number: int = 0
    digest: str = GENESIS
    digests: dict[int, str] = field(default_factory=dict)
    # Check and public part of the key that signs.
    key_check: str = ""
    public: str = ""
    when: datetime | None = None
    # Marks of persons in entries, and of erased names.
    persons: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    # Entries with a note for auditors.
    noted: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def follow(self, entry: Entry) -> Iterator[str]:
        """Yield the findings about the next entry."""
        number = entry.number
        if number != self.number + 1:
            yield f"entries {self.number + 1} to {number - 1} are missing"
        if linked(self.digest, entry.body) != entry.digest:
            yield f"entry {number} was changed, or does not follow"
        try:
            content: Mapping[str, Any] = entry.content
            if content["number"] != number:
                yield f"entry {number} says that it is entry {content['number']}"
            yield from self._signed(entry, content)
            projection.project(content, self.rows)
            self._note(number, content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield f"entry {number} makes no sense after those before it ({error})"
        self.number, self.digest = number, entry.digest
        self.digests[number] = entry.digest

    def _signed(self, entry: Entry, content: Mapping[str, Any]) -> Iterator[str]:
        kind = content["kind"]
        if kind == "ledger" and not self.key_check:
            yield from self._take(content, entry.number)
        if not entry.is_signed(public=self.public):
            yield f"entry {entry.number} was not written with the ledger's key"
        if kind == projection.ROTATED:
            public, endorsement = content["public_key"], content["endorsement"]
            if not is_endorsed(self.digest, endorsement, public=public):
                yield f"the key of entry {entry.number} did not take over the entries before it"
            yield from self._take(content, entry.number)

    def _take(self, content: Mapping[str, Any], number: int) -> Iterator[str]:
        """Change the key that signs entries, which must be a key of the file."""
        self.key_check, self.public = content["key_check"], content["public_key"]
        try:
            ours = self.keys.key(self.key_check).public
        except LedgerError:
            ours = ""
        if self.public != ours:
            yield f"the key of entry {number} is not in {self.keys.path}"

    def _note(self, number: int, content: Mapping[str, Any]) -> None:
        called = (content["who"], content.get("approved_by"))
        self.persons |= {mark for mark in called if mark is not None}
        kind = content["kind"]
        if kind == projection.IMPORTED and content.get("people"):
            self.notes.append(
                f"entry {number} of the account {content['account']!r} counts less than the sum of "
                "a release's parts: whoever imported it says that nobody is in all of its tables"
            )
        if kind == projection.REBUILT:
            self.notes.append(
                f"before entry {number} the tables were made anew from the entries; rows that were "
                f"not what these make them: {content['rows']}"
            )
        if kind == projection.ERASED:
            self.erased |= set(content["persons"])
        elif "note" in content:
            self.noted[number] = content
        elif kind == projection.RECOVERING:
            self.notes.append(f"before entry {number} an older copy was put back")
        when = datetime.fromisoformat(content["when"])
        if self.when is not None and (back := (self.when - when).total_seconds()) > CLOCKS:
            self.notes.append(f"the clock went back by {back:.0f} seconds before entry {number}")
        self.when = when


def _differences(made: projection.MemoryStore, kept: TableStore) -> Iterator[str]:
    for table, key in projection.KEYED_BY.items():
        there = {row[key]: row for row in kept.all(table)}
        wanted = made.tables[table]
        for place in sorted(there.keys() | wanted.keys(), key=str):
            if there.get(place) != wanted.get(place):
                yield f"{table}: {place} is not what the entries make it"
    for table, columns in AMOUNTS.items():
        for row in kept.all(table):
            if not all(map(_is_amounts, (row[column] for column in columns))):
                yield f"{table}: the sums of {row[projection.KEYED_BY[table]]} cannot be read"


def _is_amounts(text: str) -> bool:
    try:
        projection.amounts_from(text, alone=projection.EVERYBODY)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _kept(connection: Connection, followed: _Followed) -> Iterator[str]:
    """Yield findings about published files that are missing, or have another digest."""
    wanted = {
        charge["release"]: number
        for number, charge in followed.rows.tables["charges"].items()
        if charge["key"] is not None and charge["release"] is not None
    }
    query = schema.releases.select().order_by(schema.releases.c.digest)
    for kept in connection.execute(query.execution_options(yield_per=1)):
        wanted.pop(kept.digest, None)
        if hashlib.sha256(kept.content).hexdigest() != kept.digest:
            yield f"the release {kept.digest} differs from the published one"
    for charge in wanted.values():
        yield f"the release of charge {charge} is missing"


def _named(connection: Connection, followed: _Followed) -> Iterator[str]:
    """Yield findings about missing names that were not erased, and about changed ones."""
    names = {row.mark: row for row in connection.execute(schema.names.select())}
    for mark in sorted(followed.persons - followed.erased - names.keys()):
        yield f"the name of {mark} is missing, and was not erased"
    for mark, row in names.items():
        if mark in followed.erased:
            yield f"the name of {mark} was erased, and is there"
        elif mark_of(row.name, salt=row.salt) != mark:
            yield f"the name of {mark} is another's"


def _noted(connection: Connection, followed: _Followed, findings: list[str]) -> Iterator[str]:
    """Yield the notes about entries; add the findings about notes."""
    wanted = dict(followed.noted)
    query = schema.notes.select().order_by(schema.notes.c.number)
    for row in connection.execute(query.execution_options(yield_per=1000)):
        entry = wanted.pop(row.number, None)
        if entry is None or mark_of(row.content, salt=row.salt) != entry["note"]:
            findings.append(f"the note of entry {row.number} was changed")
            continue
        note = json.loads(row.content)
        about = f"entry {row.number} of the account {entry['account']!r}"
        for one in note.get("declared_public", ()):
            yield (
                f"{about} takes {one['input']!r} to be public, as its writer declares, and the "
                f"same values are attached there as {one['column']!r}"
            )
        for one in note.get("inputs_of_others", ()):
            yield (
                f"{about} takes {one['input']!r} to be public, and the same few values are "
                f"attached there as {one['column']!r}, by another person"
            )
        for one in note.get("inputs_elsewhere", ()):
            yield (
                f"{about} takes {one['input']!r} to be public, and the same values are attached to "
                f"another account, {one['account']!r}, as {one['column']!r}"
            )
        if note.get("columns"):
            # A column of its own account: its attachment noted the other accounts.
            if entry["kind"] == "attached":
                yield (
                    f"{about} says of {entry['column']!r} that its people are others, and the same "
                    f"outputs are attached there as {', '.join(map(repr, note['columns']))}"
                )
            else:
                yield from _other_people(about, entry, note, followed)
            continue
        for other in note.get("charges_elsewhere", ()):
            yield (
                f"{about} counts answers that charge {other['charge']} of another account, "
                f"{other['account']!r}, counts, too"
            )
        for other in note["elsewhere"]:
            yield (
                f"{about} is about the column {other['column']!r} of another account, "
                f"{other['account']!r}"
            )
    findings += [f"the note of entry {number} is missing" for number in wanted]


def _other_people(
    about: str, entry: Mapping[str, Any], note: Mapping[str, Any], followed: _Followed
) -> Iterator[str]:
    """Yield a note about a charge of one cohort whose column was attached as another's."""
    cohort = entry.get("cohort")
    # Earlier versions noted the names of columns alone.
    attached = note.get(
        "cohorts",
        {
            row["cohort"]
            for row in followed.rows.tables["columns"].values()
            if row["account"] == entry["account"] and row["name"] in note["columns"]
        },
    )
    if cohort and cohort not in attached:
        others = " and ".join(repr(other) if other else "everybody" for other in sorted(attached))
        yield (
            f"{about} is about the people of {cohort!r} alone, and the same outputs are attached "
            f"there as those of {others}"
        )


def _anchored(noted: Noted, digests: Mapping[int, str]) -> Iterator[str]:
    if isinstance(noted, str):
        yield noted
    elif noted[0] and digests.get(noted[0]) != noted[1]:
        yield f"{ROLLBACK} {noted[0]}, or is another since then"
