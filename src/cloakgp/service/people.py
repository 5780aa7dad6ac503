"""People of disjoint tables: whoever is named in two of them is found before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.data.limits import ReadingLimits
from cloakgp.data.tables import read_person_ids
from cloakgp.orders.options import format_of_table
from cloakgp.privacy.person_ids import PersonIds, one_kind
from cloakgp.service.models import Table

SHARED = (
    "people of this table are in another one that was said to have none of them: nothing was "
    "drawn. Register it without this word, and what is asked of it counts for everybody"
)


class SharedPeopleError(ValueError):
    """Somebody is in two tables that were said to be of disjoint people."""

    def __init__(self) -> None:
        super().__init__(SHARED)


@dataclass(frozen=True)
class NamedPeople:
    """The column of a table that names its people.

    Attributes
    ----------
    path : Path
    column, query : str
    """

    path: Path
    column: str
    query: str = ""

    def read(self, limits: ReadingLimits) -> PersonIds:
        """Return the ids, as `cloakgp.privacy.person_ids` compares them."""
        table_format = format_of_table(self.path, self.query, limits=limits)
        return read_person_ids(self.path, name=self.column, table_format=table_format)


def others_of(session: Session, account: str, *, but: str = "") -> list[NamedPeople]:
    """Return the columns of the other disjoint tables of an account that name people.

    Withdrawn tables are among them, as long as their files are there: their people were asked.

    Parameters
    ----------
    session : Session
    account : str
    but : str
        Name of a table that is left out.
    """
    query = select(Table).where(
        Table.account == account, Table.people == "disjoint", Table.name != but
    )
    return [
        NamedPeople(Path(table.path), table.person, table.query)
        for table in session.scalars(query)
        if table.person and Path(table.path).exists()
    ]


def are_apart(own: NamedPeople, others: Sequence[NamedPeople], *, limits: ReadingLimits) -> bool:
    """Return whether none of a table's people is in another.

    It tells neither who nor how many are, but the answer itself says that somebody is: who names
    few people, of a table that they make up, learns whether one of them is in a table of another
    custodian. Whoever is told it is noted, and told so a few times a day at most.

    Raises
    ------
    ValueError
        If a table cannot be read, or its ids cannot be compared with those of another.
    """
    mine = own.read(limits)
    people = set(mine)
    for other in others:
        theirs = other.read(limits)
        one_kind({"this table": mine.kind, "another one of the account": theirs.kind})
        if not people.isdisjoint(theirs):
            return False
    return True


def check_disjoint(
    own: NamedPeople, others: Sequence[NamedPeople], *, limits: ReadingLimits
) -> None:
    """Refuse a table whose people are in another.

    Raises
    ------
    SharedPeopleError
    """
    if not are_apart(own, others, limits=limits):
        raise SharedPeopleError
