"""Services to test: their people, their tables, and a dispatcher that works at once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from shutil import copy

import numpy as np
import pytest
import sqlalchemy as sa
import uvicorn

from cloakgp import DPGPRegressor
from cloakgp.custodians import Plan, Site
from cloakgp.data import ArrayRows
from cloakgp.ledger import Ledger
from cloakgp.service.access import Role
from cloakgp.service.confined import Confinement
from cloakgp.service.context import Service, Work
from cloakgp.service.coordinator import coordinate
from cloakgp.service.database import VERSION_TABLE
from cloakgp.service.errors import NotFoundError
from cloakgp.service.messages import (
    Choices,
    Decision,
    NewAccount,
    NewJointRequest,
    NewPerson,
    NewRequest,
    NewTable,
    PrivacyBudget,
)
from cloakgp.service.operations.accounts import list_accounts, open_account
from cloakgp.service.operations.joint_requests import (
    begin_joint_request,
    read_joint_file,
    send_joint_file,
)
from cloakgp.service.operations.people import create_person
from cloakgp.service.operations.requests import approve_request, make_request, show_request
from cloakgp.service.operations.sessions import actor_by_token
from cloakgp.service.operations.tables import register_table, upload_table
from cloakgp.service.operations.tokens import create_token
from cloakgp.service.settings import Settings
from cloakgp.service.worker import run_job

ROWS = 24
# A quick release of the whole limit of `MonthlyOffice`.
ONE_EPSILON = Choices(epsilon=1.0, noise="laplace", stages="one", interval="off", learn="none")


# For what leaves all that databases differ in to others: locks, the end of a process, moments.
on_postgresql_slowly = pytest.mark.parametrize(
    "any_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)


class InlineDispatcher:
    """Does jobs at once, if it is told to."""

    def __init__(self):
        self.service = None
        self.waiting = []
        self.at_once = True

    def submit(self, job):
        self._add(run_job, job)

    def coordinate(self, request):
        self._add(coordinate, request)

    def _add(self, task, number):
        self.waiting.append((task, number))
        if self.at_once:
            self.work()

    def work(self):
        while self.waiting:
            task, number = self.waiting.pop(0)
            task(self.service, number)

    def close(self):
        pass


def opened(url, tmp_path, **changed):
    """A service on a database, its jobs done at once."""
    Ledger.create(url).close()
    (tmp_path / "tables").mkdir(exist_ok=True)
    settings = Settings(
        ledger=url, data=tmp_path / "data", tables=(tmp_path / "tables",), workers=0, **changed
    )
    dispatcher = InlineDispatcher()
    dispatcher.service = Service.open(settings)
    return dispatcher.service.with_dispatcher(dispatcher)


def looked_at(connection):
    """Columns with their kinds, and keys, of every table of the service."""
    found = sa.inspect(connection)
    return {
        name: (
            [
                (each["name"], type(each["type"]).__name__, each["nullable"])
                for each in found.get_columns(name)
            ],
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(str(each["constrained_columns"]) for each in found.get_foreign_keys(name)),
            sorted(str(each["column_names"]) for each in found.get_unique_constraints(name)),
        )
        for name in found.get_table_names()
        if name.startswith("service_") and name != VERSION_TABLE
    }


@contextmanager
def serving(app):
    """An application that answers on loopback: its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    # A test that fails leaves no thread that the process would wait for.
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.05)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(300)


@contextmanager
def waiting(url, tmp_path):
    """A service whose jobs wait, its analyst, and a table."""
    service = opened(url, tmp_path)
    tokens = add_people(service)
    table = register(service, tokens[Role.CUSTODIAN], tmp_path)
    service.dispatcher.at_once = False
    yield service, work_as(service, tokens[Role.ANALYST]), table
    service.close()


@contextmanager
def unconfined():
    """Tables are read, and releases planned, in this process: where that is not what is tested."""

    def call(_, function, _stopped, /, *given, **named):
        return function(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Confinement, "call", call)
        yield


def add_people(service):
    """A token for every role; the people are called after them."""
    tokens = {}
    with service.database.writing() as session:
        for role in Role:
            person = create_person(session, NewPerson(name=str(role), roles=[role]))
            tokens[role] = create_token(session, person, days=1).token
    return tokens


def add_everything(service):
    """A token of somebody with every role but the administrator's."""
    roles = [role for role in Role if role is not Role.ADMINISTRATOR]
    with service.database.writing() as session:
        person = create_person(session, NewPerson(name="everything", roles=roles))
        return create_token(session, person, days=1).token


def work_as(service, token):
    return Work(service=service, actor=actor_by_token(service, token))


def write_people(path, *, seed=0, secret=None):
    """A table of heights by age; one of them is a peculiar number if there is a secret."""
    numbers = np.random.default_rng(seed)
    age = numbers.uniform(1, 18, ROWS).round(1)
    height = (80 + 6 * age + numbers.normal(0, 5, ROWS)).round(1)
    lines = [f"{a},{h}" for a, h in zip(age, height, strict=True)]
    if secret is not None:
        lines[3] = f"{age[3]},{secret}"
    path.write_text("age,height\n" + "\n".join(lines) + "\n")
    return path


def register_visits(service, token, tmp_path):
    """A table of counts of visits by age, in years of exposure; pay is no public column of it."""
    numbers = np.random.default_rng(3)
    age, years = numbers.uniform(20, 80, ROWS).round(1), numbers.uniform(0.5, 2, ROWS).round(2)
    visits = numbers.poisson(years * np.exp(age / 40))
    lines = [f"{a},{e},{v},{100 * a}" for a, e, v in zip(age, years, visits, strict=True)]
    path = tmp_path / "visits.csv"
    path.write_text("age,years,visits,pay\n" + "\n".join(lines) + "\n")
    custodian = work_as(service, token)
    sent = upload_table(custodian, "visits.csv", received=Path(copy(path, tmp_path / "sent.csv")))
    table = NewTable(
        name="visits",
        account="children",
        upload=sent.id,
        output="visits",
        inputs=["age", "years"],
        bounds=(0, 40),
    )
    return register_table(custodian, table)


def add_custodians(service, *names):
    """Custodians of these names, and a token of each."""
    with service.database.writing() as session:
        people = [
            create_person(session, NewPerson(name=name, roles=["custodian"])) for name in names
        ]
        tokens = [create_token(session, person, days=1).token for person in people]
    return dict(zip(names, tokens, strict=True))


def begin_joint(service, token, *, model=None, **changed):
    """A joint request of custodians who are called north and south, whom nobody has added yet."""
    tokens = add_custodians(service, "north", "south")
    plan = Plan.of(
        model or DPGPRegressor(bounds=(-2, 2), epsilon=1.0, stages=None, interval=False),
        sites=tuple(tokens),
        input_names=["x"],
        **changed,
    )
    new = NewJointRequest(plan=plan.to_bytes().decode(), purpose="a test")
    return begin_joint_request(work_as(service, token), new), tokens


class Sent:
    """The exchange of a site, by the operations of the service."""

    def __init__(self, work, request):
        self.work, self.request = work, request

    def get(self, name):
        try:
            return read_joint_file(self.work, self.request, name)
        except NotFoundError:
            return None

    def has(self, name):
        return self.get(name) is not None

    def put(self, name, content):
        send_joint_file(self.work, self.request, name, content=content)


def joint_sites(service, request, tokens, folder, *, groups=None, several=False):
    """The sites of a joint request, each with some rows of one curve."""
    x = np.linspace(0.0, 10.0, 30)[:, None]
    y = np.column_stack([np.sin(x), np.cos(x)]) if several else np.sin(x[:, 0])
    parts = len(tokens)
    return {
        name: Site(
            name,
            ArrayRows(x[part::parts], y[part::parts], groups=groups, jobs=1),
            Sent(work_as(service, token), request),
            folder / "own" / name,
            trusts_exchange=True,
        )
        for part, (name, token) in enumerate(tokens.items())
    }


class MonthlyOffice:
    """An account with a limit of ε = 1, and everybody who works with it."""

    def __init__(self, service, folder, *, unit="row"):
        self.service, self.folder, self.unit, self.schema = service, folder, unit, ""
        tokens = add_people(service)
        self.custodian, self.analyst, self.approver = (
            work_as(service, tokens[role]) for role in (Role.CUSTODIAN, Role.ANALYST, Role.APPROVER)
        )
        open_account(
            self.custodian,
            NewAccount(
                name="visitors",
                unit=unit,
                limit=PrivacyBudget(epsilon=1, delta=1e-6),
                approval=PrivacyBudget(epsilon=1, delta=1e-6),
                share=PrivacyBudget(epsilon=1, delta=1e-6),
            ),
        )

    def write(self, name, persons, *, seed=0):
        numbers = np.random.default_rng(seed)
        path = self.folder / f"{name}.csv"
        lines = [
            f"{person},{numbers.uniform(20, 80):.1f},{numbers.uniform(10, 90):.1f}"
            for person in persons
        ]
        path.write_text("person,age,minutes\n" + "\n".join(lines) + "\n")
        return path

    def add(self, name, *, persons=None, people="disjoint", named=False, seed=0):
        persons = persons or [f"{name} {number}" for number in range(20)]
        path = self.write(name, persons, seed=seed or sum(map(ord, name)))
        sent = upload_table(
            self.custodian, path.name, received=Path(copy(path, self.folder / "sent.csv"))
        )
        table = NewTable(
            name=name,
            account="visitors",
            upload=sent.id,
            output="minutes",
            inputs=[] if self.schema else ["age"],
            # Months have one schema, that of the first.
            table_schema=self.schema,
            bounds=(0, 100),
            person="person" if named or self.unit == "person" else "",
            people=people,
        )
        made = register_table(self.custodian, table)
        self.schema = made.table_schema
        return made

    def ask(self, table, choices=ONE_EPSILON):
        asked = make_request(
            self.analyst, NewRequest(table=table.id, choices=choices, purpose="a month")
        )
        if asked.state == "waiting":
            approve_request(self.approver, asked.id, Decision())
        return show_request(self.analyst, asked.id)

    @property
    def account(self):
        (found,) = list_accounts(self.custodian)
        return found


def register(service, token, tmp_path, **changed):
    """An account of heights, and a table of it."""
    custodian = work_as(service, token)
    account = NewAccount(
        name="children",
        limit=PrivacyBudget(epsilon=3, delta=1e-6),
        approval=PrivacyBudget(epsilon=1, delta=1e-6),
        share=PrivacyBudget(epsilon=2, delta=1e-6),
    )
    open_account(custodian, account)
    path = tmp_path / "sent.csv"
    write_people(path)
    sent = upload_table(custodian, "people.csv", received=path)
    table = NewTable(
        name="heights", account="children", upload=sent.id, output="height", bounds=(50, 250)
    )
    with unconfined():
        return register_table(custodian, table.model_copy(update=changed))
