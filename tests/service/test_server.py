"""`cloakgp serve`: it prints where it is and who may do what, answers, and ends when told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from cloakgp.cli.app import app
from cloakgp.client import Client
from cloakgp.ledger import Ledger, LedgerError
from cloakgp.service.access import Role
from cloakgp.service.context import Service
from cloakgp.service.demonstration import prepare_demonstration
from cloakgp.service.models import Person
from cloakgp.service.server import prepare
from cloakgp.service.settings import Settings


@pytest.fixture
def start(tmp_path):
    """Start the command; it is ended in the end."""
    running = []

    def started(*words):
        program = "from cloakgp.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "--port", "0", "--workers", "0", *words]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "CLOAKGP_LEDGER_HOME": str(tmp_path / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        said = []
        for line in process.stdout:
            said.append(line)
            if "Serving at" in line:
                break
        else:
            pytest.fail(process.stderr.read())
        return process, "".join(said), line.split()[-1]

    yield started
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A service on the ledger that the environment names."""
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLOAKGP_LEDGER", str(tmp_path / "house.db"))
    Ledger.create(tmp_path / "house.db").close()
    made = Service.open(Settings(ledger=str(tmp_path / "house.db"), data=tmp_path / "data"))
    yield made
    made.close()


def test_the_demonstration_has_somebody_of_every_role_and_a_ledger_of_its_own(
    start, house, tmp_path, patience
):
    process, said, address = start("--demo")
    tokens = dict(re.findall(r"(\w+)\s+(cloakgp_\S+)", said))
    assert set(tokens) == {str(role) for role in Role}
    asking = {"timeout": patience}
    assert httpx.get(f"{address}/health", **asking).json()["status"] == "ok"
    with Client(address, tokens["analyst"]) as client:
        assert [table.name for table in client.tables()] == ["diabetes"]
    # In a browser, whoever has the link enters as anybody, and nobody else does.
    [link] = re.findall(rf"{address}/sign-in\?demonstration=\S+", said)
    shown = httpx.get(link, **asking).text
    assert all(f'value="{token}"' in shown for token in tokens.values())
    for other in (f"{address}/sign-in", f"{link[:-1]}", f"{link}x"):
        assert not any(token in httpx.get(other, **asking).text for token in tokens.values())
    entered = httpx.post(
        f"{address}/sign-in",
        data={"token": tokens["custodian"]},
        headers={"origin": address},
        **asking,
    )
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    process.send_signal(signal.SIGTERM)
    _, noted = process.communicate(timeout=patience)
    assert "GET list_tables 200" in noted
    assert not any(token in noted for token in (*tokens.values(), link.partition("=")[2]))
    # Whatever ledger the environment names: nothing is written there.
    assert house.ledger.standings() == []
    with house.database.reading() as session:
        assert session.scalars(sa.select(Person)).all() == []
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == [
        "house.db.anchor",
        "house.db.key",
    ]


def test_the_first_administrators_token_is_in_a_file_and_no_log(start, tmp_path, patience):
    kept = tmp_path / "kept" / "administrator.token"
    for first in (True, False):
        process, said, address = start("--data", str(tmp_path / "kept"))
        assert kept.exists() == first
        assert (str(kept) in said.replace("\n", "")) == first
        if first:
            assert kept.stat().st_mode & 0o777 == 0o600
            token = kept.read_text().strip()
            kept.unlink()
        with Client(address, token) as client:
            assert client.roles() == ["administrator"]
        process.send_signal(signal.SIGTERM)
        rest, noted = process.communicate(timeout=patience)
        assert "cloakgp_" not in said + rest + noted
    assert (tmp_path / "kept" / "ledger.db").exists()


@pytest.mark.parametrize("given", [("--ledger", "house.db"), ("--data", "house")])
def test_the_demonstration_takes_no_ledger_that_is_named(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", "--demo", *given])
    assert done.exit_code == 1
    assert "of its own" in done.output
    assert list(tmp_path.iterdir()) == []


def test_no_demonstration_is_added_to_a_ledger_that_is_there(tmp_path, monkeypatch):
    monkeypatch.delenv("CLOAKGP_LEDGER_HOME", raising=False)
    settings = Settings(ledger=str(tmp_path / "l.db"), data=tmp_path / "data", workers=0)
    prepare(settings, demonstration=False).service.close()
    with pytest.raises(ValueError, match="one of its own"):
        prepare(settings, demonstration=True)


def test_a_demonstration_is_prepared_again(tmp_path, monkeypatch):
    monkeypatch.delenv("CLOAKGP_LEDGER_HOME", raising=False)
    settings = Settings(ledger=str(tmp_path / "l.db"), data=tmp_path / "data", workers=0)
    prepared = prepare(settings, demonstration=True)
    again = prepare_demonstration(prepared.service)
    assert [each.role for each in again] == [each.role for each in prepared.demonstration.people]
    assert {each.token for each in again}.isdisjoint(
        each.token for each in prepared.demonstration.people
    )
    prepared.service.close()


def test_a_database_of_a_newer_version_is_refused_with_a_sentence(service):
    with service.ledger.database._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE service_version SET version_num = '999'")
    with pytest.raises(LedgerError, match="made by a newer version of cloakgp"):
        prepare(service.settings, demonstration=False)
