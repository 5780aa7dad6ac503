"""`cloakgp service`: what whoever runs the machine does beside serving."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cloakgp.cli import service as commands
from cloakgp.cli.app import app
from cloakgp.service.context import Service, Work
from cloakgp.service.operations.sessions import actor_by_token
from cloakgp.service.server import prepare
from cloakgp.service.settings import Settings


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A service that has an administrator, and is not running."""
    monkeypatch.delenv("CLOAKGP_LEDGER", raising=False)
    monkeypatch.delenv("CLOAKGP_LEDGER_HOME", raising=False)
    settings = Settings(ledger=str(tmp_path / "ledger.db"), data=tmp_path, workers=0)
    prepare(settings, demonstration=False).service.close()
    return settings


def run(place, *words):
    return CliRunner().invoke(app, ["service", *words, "--data", str(place.data)])


def roles_of(place, token):
    service = Service.open(place)
    try:
        return [str(role) for role in Work(service, actor_by_token(service, token)).actor.roles]
    finally:
        service.close()


def test_an_administrator_is_recovered_into_a_file(place):
    path = place.data / "administrator.token"
    before = path.read_text().strip()
    done = run(place, "recover-administrator")
    assert done.exit_code == 0, done.output
    after = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    assert after not in done.output
    assert roles_of(place, after) == ["administrator"]
    with pytest.raises(Exception, match="a valid token is needed"):
        roles_of(place, before)


def test_on_a_terminal_the_token_is_shown_and_kept_nowhere(place, monkeypatch):
    (place.data / "administrator.token").unlink()

    class Terminal:
        @staticmethod
        def isatty():
            return True

    shown = []
    monkeypatch.setattr(commands.sys, "stdout", Terminal)
    monkeypatch.setattr(commands, "say", shown.append)
    monkeypatch.setattr(commands, "explain", shown.append)
    commands.recover(data=place.data)
    assert roles_of(place, shown[0].split()[-1]) == ["administrator"]
    assert not (place.data / "administrator.token").exists()


def test_events_are_lines_of_json(place):
    run(place, "recover-administrator")
    lines = run(place, "events").output.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["what"] for event in events] == ["person added", "administrator recovered"]
    assert run(place, "events", "--after", "1").output.splitlines() == lines[1:]


def test_names_are_erased(place):
    done = run(place, "retain", "--days", "30")
    assert done.output == "erased 0 names and 0 addresses\n"
    assert run(place, "retain").exit_code == 2


@pytest.mark.parametrize("words", [("recover-administrator",), ("events",)])
def test_where_there_is_no_service_nothing_is_made(tmp_path, words, monkeypatch):
    monkeypatch.delenv("CLOAKGP_LEDGER", raising=False)
    elsewhere = tmp_path / "elsewhere"
    done = CliRunner().invoke(app, ["service", *words, "--data", str(elsewhere)])
    assert done.exit_code == 1
    assert "there is no service at" in done.output
    assert not elsewhere.exists()
