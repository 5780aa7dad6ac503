"""`cloakgp serve`: it prints where it is and who may do what, answers, and ends when told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from cloakgp.client import Client
from cloakgp.service.access import Role
from cloakgp.service.demonstration import prepare_demonstration
from cloakgp.service.serving import prepare
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


def test_the_demonstration_has_somebody_of_every_role(start):
    process, said, address = start("--demo")
    tokens = dict(re.findall(r"(\w+)\s+(cloakgp_\S+)", said))
    assert set(tokens) == {str(role) for role in Role}
    assert httpx.get(f"{address}/health").json()["status"] == "ok"
    with Client(address, tokens["analyst"]) as client:
        assert [table.name for table in client.tables()] == ["diabetes"]
    process.send_signal(signal.SIGTERM)
    _, noted = process.communicate(timeout=60)
    assert "GET list_tables 200" in noted
    assert not any(token in noted for token in tokens.values())


def test_the_first_administrators_token_is_shown_once(start, tmp_path):
    for expected in (1, 0):
        process, said, address = start("--data", str(tmp_path / "kept"))
        tokens = re.findall(r"cloakgp_\S+", said)
        assert len(tokens) == expected
        for token in tokens:
            with Client(address, token) as client:
                assert client.roles() == ["administrator"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert (tmp_path / "kept" / "ledger.db").exists()


def test_a_demonstration_is_prepared_again(tmp_path, monkeypatch):
    monkeypatch.delenv("CLOAKGP_LEDGER_HOME", raising=False)
    settings = Settings(ledger=str(tmp_path / "l.db"), data=tmp_path / "data", workers=0)
    prepared = prepare(settings, demonstration=True)
    again = prepare_demonstration(prepared.service)
    assert [each.role for each in again] == [each.role for each in prepared.introduced]
    assert {each.token for each in again}.isdisjoint(each.token for each in prepared.introduced)
    prepared.service.close()
