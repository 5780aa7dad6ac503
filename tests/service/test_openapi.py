"""The OpenAPI document, and that nothing it describes makes the service stumble."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from services import add_everything, add_people, opened, register, serving

from cloakgp.service.access import ACCESS, OPEN, Role
from cloakgp.service.app import create_app

OFTEN = dict.fromkeys(("default", "predict", "plan", "upload", "failed"), "1000000/minute")
# Streams last, and whoever logs out or replaces the token is gone.
LEFT_OUT = ("watch_job", "log_out", "rotate_my_token")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"


@pytest.fixture
def address(url, tmp_path):
    """A service that answers on loopback, however often, and two tokens."""
    service = opened(url, tmp_path, rates=OFTEN)
    tokens = add_people(service)
    register(service, tokens[Role.CUSTODIAN], tmp_path)
    everything = add_everything(service)
    with serving(create_app(service)) as place:
        yield place, (everything, tokens[Role.ADMINISTRATOR])


def attack(place, token, *, examples, folder):
    """Send what fits the document and what does not; return what came of it."""
    program = Path(sys.executable).with_name("schemathesis")
    authorised = {"Authorization": f"Bearer {token}"}
    # The document is made once, at its first reading, for which the program would wait 10 s.
    httpx.get(f"{place}/api/openapi.json", headers=authorised, timeout=600).raise_for_status()
    done = subprocess.run(
        [
            *(program, "run", f"{place}/api/openapi.json"),
            *("--header", f"Authorization: Bearer {token}"),
            *("--checks", CHECKS, "--phases", "examples,fuzzing"),
            *("--max-examples", str(examples), "--seed", "1", "--no-color"),
            # A plan takes seconds, and longer where the machine is busy.
            *("--request-timeout", "600", "--suppress-health-check", "too_slow"),
            *(word for name in LEFT_OUT for word in ("--exclude-operation-id", name)),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_nothing_that_the_document_describes_fails(address, tmp_path):
    place, (everything, _) = address
    tested = len(ACCESS) + len(OPEN) - len(LEFT_OUT)
    assert f"Tested: {tested}" in attack(place, everything, examples=1, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["everything", "administrator"])
def test_nothing_fails_however_long_one_tries(address, tmp_path, which):
    place, tokens = address
    attack(place, tokens[which], examples=100, folder=tmp_path)


def test_every_operation_is_described(app):
    """With a sentence, who may, what is refused and, where something is sent, an example."""
    document = app.openapi()
    for methods in document["paths"].values():
        for described in methods.values():
            assert described["description"].endswith(".")
            assert {"401", "403", "422"} <= set(described["responses"])
    examples = [
        name for name, each in document["components"]["schemas"].items() if "examples" in each
    ]
    assert {"NewTable", "NewRequest", "PredictRequest", "Choices"} <= set(examples)
