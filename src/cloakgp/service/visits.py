"""Later visits: requests that begin with a published release, of its own table or of another.

What columns, kernel and stages are, the release says; a request has a budget beside it. Each visit
is a charge of its own, about the people of its table. Who is in several tables is what custodians
said when they registered them: nobody, if all of them are tables of disjoint people of one account;
otherwise anybody may be, and the release's guarantee adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.columns import schema_from_text
from cloakgp.ledger import schema
from cloakgp.ledger.accounts import open_content
from cloakgp.orders import texts
from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.origin import Origin
from cloakgp.orders.visits import VisitOrder
from cloakgp.privacy.cohorts import DISJOINT, OVERLAPPING, People
from cloakgp.release import Release
from cloakgp.report.columns import public_columns
from cloakgp.service.context import Service
from cloakgp.service.database import row_of
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices
from cloakgp.service.models import MadeRelease, Table
from cloakgp.service.orders import order_of, without_path

# What a later visit has choices about; all else the release says.
OF_VISITS = ("epsilon", "delta", "noise", "after", "band", "exposure")


def asked_of(
    service: Service,
    session: Session,
    table: Table,
    choices: Choices,
    *,
    origin: Origin | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Order | VisitOrder:
    """Return the order of a release, or of a later visit where choices name what is known.

    Parameters
    ----------
    service : Service
    session : Session
        Of the database.
    table : Table
    choices : Choices
    origin, stopped
        As for `cloakgp.service.orders.order_of`.

    Raises
    ------
    InvalidError
        If the choices make no sense, or the table does not go with the release that is known.
    NotFoundError
        If there is no such release.
    """
    if choices.after is not None:
        return visit_of(
            service, session, table, choices, after=choices.after, origin=origin, stopped=stopped
        )
    return order_of(table, choices, settings=service.settings, origin=origin, stopped=stopped)


def visit_of(
    service: Service,
    session: Session,
    table: Table,
    choices: Choices,
    *,
    after: int,
    origin: Origin | None = None,
    stopped: Callable[[], bool] | None = None,
) -> VisitOrder:
    """Return the order of a later visit.

    Parameters
    ----------
    service, session, table, choices, origin, stopped
        As for `asked_of`.
    after : int
        The release that is known.

    Raises
    ------
    InvalidError
        If the choices make no sense, or the table does not go with the release.
    NotFoundError
        If there is no such release.
    """
    given = [
        name
        for name, field in Choices.model_fields.items()
        if name not in OF_VISITS and getattr(choices, name) != field.default
    ]
    if given:
        raise InvalidError(f"a later visit takes these from the release: {', '.join(given)}")
    row = row_of(session, MadeRelease, after, called="release")
    known = opened(service, session, row.digest)
    tables = tables_of(session, row)
    if problem := differs(tables[0], table):
        raise InvalidError(problem)
    public = schema_from_text(table.schema).sources
    _check_columns(known, public=public, exposure=choices.exposure)
    again = table.id == tables[0].id
    if not again and table.id in [each.id for each in tables]:
        raise InvalidError(
            "of several tables the first alone is asked again, and this one came later: request a "
            "release of its own"
        )
    try:
        noise = texts.noise_choice(choices.noise, option="noise")
    except ValueError as error:
        raise InvalidError(str(error)) from None
    order = VisitOrder(
        known=known,
        source=SourceTable(
            path=Path(table.path),
            output=table.output,
            person=table.person,
            exposure=choices.exposure,
            missing_output=table.missing_output,
            query=table.query,
            limits=replace(service.settings.table_limits, stopped=stopped),
        ),
        epsilon=choices.epsilon,
        delta=choices.delta,
        noise=noise,
        band=choices.band or None,
        new_rows=not again,
        people=OVERLAPPING if again else people_of([*tables, table]),
        origin=origin or Origin(),
    )
    try:
        order.validate()
    except (TypeError, ValueError) as error:
        raise InvalidError(without_path(error, table)) from None
    return order


def tables_of(session: Session, made: MadeRelease) -> list[Table]:
    """Return the tables that a release knows of, in the order in which they were first asked."""
    found = [made.request.table]
    while (after := made.request.choices.get("after")) is not None:
        made = row_of(session, MadeRelease, after, called="release")
        found.append(made.request.table)
    return list({table.id: table for table in reversed(found)}.values())


def people_of(tables: Sequence[Table]) -> People:
    """Return what custodians have said of the people of tables."""
    cohorts = {(table.account, table.cohort) for table in tables}
    accounts = {table.account for table in tables}
    apart = len(cohorts) == len(tables) and len(accounts) == 1
    return DISJOINT if apart and all(table.cohort for table in tables) else OVERLAPPING


def opened(service: Service, session: Session, digest: str) -> Release:
    """Return a release itself, one of the latest without reading its file again."""

    def load() -> Release:
        made = open_content(content_of(session, digest))
        # Jobs make no other kind.
        assert isinstance(made, Release)
        return made

    made = service.releases.get(digest, load)
    assert isinstance(made, Release)
    return made


def content_of(session: Session, digest: str) -> bytes:
    """Return the file of a release."""
    table = schema.releases
    query = select(table.c.content).where(table.c.digest == digest)
    content: bytes = session.execute(query).scalar_one()
    return content


def differs(first: Table, table: Table) -> str:
    """Return how a table differs from the first of a release, in words; empty if it may follow."""
    declared: dict[str, Callable[[Table], object]] = {
        "another private column": lambda one: one.output,
        "other bounds": lambda one: (one.low, one.high),
        "other classes": lambda one: one.classes,
    }
    for words, of in declared.items():
        if of(first) != of(table):
            return f"the table has {words} than {first.name}, of which the release is"
    if first.person and not table.person:
        return (
            "the release protects all rows of a person together, and this table does not say whose "
            "its rows are"
        )
    return ""


def _check_columns(known: Release, *, public: Sequence[str], exposure: str) -> None:
    """Refuse a table that lacks a public column of the release.

    Other columns of the file were not declared to be public.
    """
    wanted = [*public_columns(known), *([exposure] if exposure else [])]
    lacking = [name for name in wanted if name not in public]
    if lacking:
        raise InvalidError(f"the table has no public column {', '.join(lacking)}")
