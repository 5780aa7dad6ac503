"""Demonstration of the service: scikit-learn's diabetes table, and a person of every role."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sklearn.datasets import load_diabetes
from sqlalchemy import select

from cloakgp.service.access import Role
from cloakgp.service.context import Service, Work
from cloakgp.service.credentials import is_same, new_token
from cloakgp.service.messages import NewAccount, NewPerson, NewTable, PrivacyBudget
from cloakgp.service.models import Person, Table
from cloakgp.service.operations.accounts import open_account
from cloakgp.service.operations.people import create_person
from cloakgp.service.operations.sessions import actor_by_token
from cloakgp.service.operations.tables import register_table, upload_table
from cloakgp.service.operations.tokens import create_token
from cloakgp.service.settings import SIGN_IN

PEOPLE = {
    "Clara": Role.CUSTODIAN,
    "Paul": Role.APPROVER,
    "Anna": Role.ANALYST,
    "Rita": Role.READER,
    "Udo": Role.AUDITOR,
    "Adam": Role.ADMINISTRATOR,
}
COLUMNS = {"age": "age", "sex": "sex", "bmi": "bmi", "bp": "blood pressure"}
OUTPUT = "progression"
ACCOUNT, TABLE = "patients of the demonstration", "diabetes"
NOTE = (
    "442 patients: age in years, sex, body mass index, mean blood pressure, and a measure of the "
    "progression of their diabetes in a year. It comes with scikit-learn, and is no secret."
)
LIMIT, APPROVAL, SHARE = (
    PrivacyBudget(epsilon=3.0, delta=1e-4),
    PrivacyBudget(epsilon=1.0, delta=1e-4),
    PrivacyBudget(epsilon=2.0, delta=1e-4),
)
# Decided before a look at the table, as in `cloakgp demo`.
BOUNDS = (0.0, 350.0)


@dataclass(frozen=True)
class Introduced:
    """A person of the demonstration, with a new token.

    Attributes
    ----------
    name : str
    role : Role
    token : str
    """

    name: str
    role: Role
    token: str


@dataclass(frozen=True)
class Demonstration:
    """People of a demonstration, and the secret of the link that shows them.

    Attributes
    ----------
    people : tuple of Introduced
    secret : str
    """

    people: tuple[Introduced, ...]
    secret: str = field(default_factory=new_token, repr=False)

    @property
    def link(self) -> str:
        """The address, below that of the service, of a page to sign in as any of them."""
        return f"{SIGN_IN}?demonstration={self.secret}"

    def people_for(self, secret: str) -> tuple[Introduced, ...]:
        """Return the people for whoever has the link, and none for others."""
        return self.people if is_same(secret, self.secret) else ()


def prepare_demonstration(service: Service) -> list[Introduced]:
    """Add a person of every role, and a table; return all people with new tokens.

    Parameters
    ----------
    service : Service
    """
    introduced = []
    with service.database.writing() as session:
        for name, role in PEOPLE.items():
            person = session.scalar(select(Person).where(Person.name == name))
            if person is None:
                person = create_person(session, NewPerson(name=name, roles=[role]))
            issued = create_token(session, person, label="demonstration", days=1)
            introduced.append(Introduced(name=name, role=role, token=issued.token))
    with service.database.reading() as session:
        exists = session.scalar(select(Table.id).where(Table.name == TABLE)) is not None
    if not exists:
        _add_table(service, introduced[0].token)
    return introduced


def _add_table(service: Service, token: str) -> None:
    custodian = Work(service=service, actor=actor_by_token(service, token))
    open_account(custodian, NewAccount(name=ACCOUNT, limit=LIMIT, approval=APPROVAL, share=SHARE))
    with tempfile.TemporaryDirectory(dir=service.settings.uploads) as folder:
        path = Path(folder) / "diabetes.csv"
        _write_table(path)
        sent = upload_table(custodian, path.name, received=path)
    table = NewTable(
        name=TABLE,
        account=ACCOUNT,
        note=NOTE,
        upload=sent.id,
        output=OUTPUT,
        bounds=BOUNDS,
    )
    register_table(custodian, table)


def _write_table(path: Path) -> None:
    table = load_diabetes(scaled=False)
    places = [table.feature_names.index(name) for name in COLUMNS]
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow([*COLUMNS.values(), OUTPUT])
        for row, target in zip(table.data[:, places], table.target, strict=True):
            sex = "a" if row[1] == 1 else "b"
            lines.writerow([f"{row[0]:g}", sex, f"{row[2]:g}", f"{row[3]:g}", f"{target:g}"])
