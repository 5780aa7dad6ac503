"""Restoring a backup as it is documented: nothing is counted on it before it is recovered."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from services import InlineDispatcher, add_people, register, work_as
from sqlalchemy import select
from typer.testing import CliRunner

from cloakgp.cli import app as command
from cloakgp.ledger import DamagedLedgerError, Ledger, LedgerError
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.errors import UnknownActorError
from cloakgp.service.maintenance import revoke_all_tokens
from cloakgp.service.messages import Choices, NewIdentity, NewRequest
from cloakgp.service.models import Event
from cloakgp.service.operations.people import link_identity, show_person
from cloakgp.service.operations.releases import download_release
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tokens import revoke_token
from cloakgp.service.server import prepare
from cloakgp.service.settings import Settings


def settings_of(url, tmp_path):
    return Settings(ledger=url, data=tmp_path / "data", tables=(tmp_path / "tables",), workers=0)


def begun(url, tmp_path):
    """A service that does its jobs at once."""
    dispatcher = InlineDispatcher()
    dispatcher.service = Service.open(settings_of(url, tmp_path))
    return dispatcher.service.with_dispatcher(dispatcher)


def dump(url, to):
    """Back up a database as documented."""
    if "://" in url:
        parsed = sa.make_url(url)
        schema = parsed.query["options"].partition("=")[2]
        words = ["--clean", "--if-exists", f"--schema={schema}", f"--file={to}"]
        subprocess.run(["pg_dump", *words, f"--dbname={plain(parsed)}"], check=True)
    else:
        with sqlite3.connect(url) as source, sqlite3.connect(to) as target:
            source.backup(target)


def restore(url, copy):
    """Put a backup back as documented; nothing else is running."""
    if "://" in url:
        parsed = sa.make_url(url)
        words = ["--quiet", "--set=ON_ERROR_STOP=1", f"--file={copy}"]
        subprocess.run(["psql", *words, f"--dbname={plain(parsed)}"], check=True, text=True)
    else:
        for path in Path(url).parent.glob(f"{Path(url).name}*"):
            path.unlink()
        shutil.copy(copy, url)


def plain(parsed):
    return parsed.set(drivername="postgresql", query={}).render_as_string(hide_password=False)


def run(url, *words, fails=False):
    done = CliRunner().invoke(command, ["ledger", *words, "--ledger", url])
    assert (done.exit_code != 0) == fails, done.output
    return done.output


def status(service):
    return TestClient(create_app(service), base_url="http://127.0.0.1").get("/health").status_code


@pytest.fixture
def restored(any_url, tmp_path):
    """A copy that was put back: since it was made, a release was made and a token was revoked."""
    if "://" in any_url and not (shutil.which("pg_dump") and shutil.which("psql")):
        pytest.fail("pg_dump and psql are needed beside a server")
    (tmp_path / "tables").mkdir()
    Ledger.create(any_url).close()
    service = begun(any_url, tmp_path)
    tokens = add_people(service)
    table = register(service, tokens[Role.CUSTODIAN], tmp_path)
    dump(any_url, tmp_path / "copy")
    analyst = work_as(service, tokens[Role.ANALYST])
    choices = Choices(epsilon=0.5, delta=1e-6, inputs=["age"], learn="none", stages="one")
    make_request(analyst, NewRequest(table=table.id, choices=choices, purpose="a test"))
    (tmp_path / "made.cloak").write_bytes(download_release(analyst, 1))
    reader = work_as(service, tokens[Role.READER]).actor
    revoke_token(work_as(service, tokens[Role.ADMINISTRATOR]), reader.token)
    spent = service.ledger.account("children").standing.spent
    assert status(service) == 200
    service.close()
    restore(any_url, tmp_path / "copy")
    return any_url, tokens, spent


def test_a_restored_service_is_recovered_as_documented(restored, tmp_path):
    url, tokens, spent = restored
    # Nobody serves or counts on it.
    with pytest.raises(DamagedLedgerError, match="cloakgp ledger recover"):
        prepare(settings_of(url, tmp_path), demonstration=False)
    service = begun(url, tmp_path)
    assert status(service) == 503
    service.close()
    assert "put back to before entry" in run(url, "verify", fails=True)
    assert "not the one that this machine saw" in run(
        url, "recover", "--reconciled", "nothing", fails=True
    )
    said = run(url, "recover", "--reason", "the disk failed; copy of Monday")
    assert "at least 4 are missing" in said
    assert f"All {len(tokens)} tokens" in said
    # Imports and lower limits, and nothing else.
    service = begun(url, tmp_path)
    assert status(service) == 503
    ledger = service.ledger
    account = ledger.account("children")
    for refused in (
        lambda: ledger.open_account("others", epsilon=1.0, delta=1e-6),
        lambda: account.attach([1.0], column="a"),
        lambda: ledger.change_limit("children", epsilon=3.1, delta=1e-6, reason="more"),
        lambda: ledger.change_limit("children", epsilon=2.0, delta=1e-5, reason="more"),
    ):
        with pytest.raises(LedgerError, match="an older copy of the ledger was put back"):
            refused()
    for token in tokens.values():
        with pytest.raises(UnknownActorError):
            work_as(service, token)
    with service.database.reading() as session:
        events = list(session.scalars(select(Event.what)))
    assert events[-1] == "all tokens revoked"
    run(url, "import", str(tmp_path / "made.cloak"), "--account", "children", "--reason", "since")
    assert account.standing.epsilon_if_fixed == pytest.approx(spent.epsilon_at(1e-6), rel=1e-9)
    limit = ("limit", "children", "--epsilon", "2", "--delta", "1e-6", "--reason", "what is lost")
    run(url, *limit)
    assert "not reconciled" in run(url, "verify")
    # And then all of it again.
    run(url, "recover", "--reconciled", "one release imported, the limit lowered by 1")
    assert status(service) == 200
    ledger.open_account("others", epsilon=1.0, delta=1e-6)
    found = ledger.verify()
    assert found.sound
    assert any("an older copy was put back" in note for note in found.notes)
    written = {entry.content["kind"]: entry.content for entry in ledger.entries()}
    assert written["recovering"]["reason"] == "the disk failed; copy of Monday"
    assert written["recovered"]["reason"] == "one release imported, the limit lowered by 1"
    service.close()
    prepared = prepare(settings_of(url, tmp_path), demonstration=False)
    prepared.service.close()
    assert "nothing to recover" in run(url, "recover", "--reason", "again", fails=True)
    assert "that is not reconciled" in run(url, "recover", "--reconciled", "again", fails=True)
    assert "give --reason" in run(url, "recover", fails=True)


def test_a_ledger_that_is_not_older_is_not_recovered(service, tokens):
    url = service.settings.ledger
    assert "nothing to recover" in run(url, "recover", "--reason", "to see", fails=True)
    # And nobody's token is revoked for it.
    assert work_as(service, tokens[Role.READER]).actor.name == "reader"


def test_a_damaged_copy_is_not_recovered(restored):
    url, _, _ = restored
    ledger = Ledger(url)
    with ledger.database._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE accounts SET spending = 7")
    with pytest.raises(DamagedLedgerError, match="was changed"):
        ledger.recover(reason="the disk failed")
    with pytest.raises(DamagedLedgerError, match="not the one that this machine saw"):
        ledger.check()
    ledger.close()


def test_without_an_anchor_what_is_missing_is_unknown(restored, tmp_path):
    """The disk of the anchor was lost, too: the copy goes on in the same way."""
    url, _, _ = restored
    for anchor in (tmp_path / "home").glob("*.anchor"):
        anchor.unlink()
    assert "number of missing entries" in run(url, "recover", "--reason", "both disks")
    ledger = Ledger(url)
    with pytest.raises(LedgerError, match="are not reconciled"):
        ledger.check()
    ledger.reconcile(reason="half of the limit taken for spent")
    ledger.check()
    ledger.close()


def test_a_recovery_that_died_before_the_anchor_is_done_again(restored, monkeypatch):
    url, _, _ = restored
    ledger = Ledger(url)
    with monkeypatch.context() as patched:
        patched.setattr("cloakgp.ledger.chain.Anchor.replace", fail)
        with pytest.raises(RuntimeError):
            ledger.recover(reason="the disk failed")
    assert ledger.recover(reason="again").missing
    ledger.reconcile(reason="all of it")
    ledger.check()
    assert ledger.verify().sound
    ledger.close()


def fail(*_):
    raise RuntimeError


def test_all_tokens_are_revoked_and_it_is_noted(service, tokens):
    admin = work_as(service, tokens[Role.ADMINISTRATOR])
    linked = NewIdentity(issuer="https://id.example.org", subject="subject-1")
    link_identity(admin, admin.actor.id, linked)
    assert revoke_all_tokens(service.settings.ledger) == len(tokens)
    # Of accounts that were unlinked after the copy was made, too, nobody knows.
    assert show_person(admin, admin.actor.id).identities == []
    assert revoke_all_tokens(service.settings.ledger) == 0
    with pytest.raises(UnknownActorError):
        work_as(service, tokens[Role.READER])
