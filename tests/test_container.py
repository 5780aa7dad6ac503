"""The container's file: what can be known of it without a container, and its program's start."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cloakgp.ledger.engines import ANCHORS, KEYS, anchor_file, key_file, parse_url

PROJECT = Path(__file__).parents[1]
TEXT = (PROJECT / "Containerfile").read_text(encoding="utf-8")


def instructions():
    """Every instruction and what it is given, continued lines joined."""
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line]


def given_to(name):
    return [given for each, given in instructions() if each == name]


def variables():
    words = [word for given in given_to("ENV") for word in shlex.split(given)]
    return dict(word.split("=", 1) for word in words)


def test_the_image_that_it_is_built_on_is_one_and_the_same():
    images = [given.split(" AS ")[0] for given in given_to("FROM")]
    assert len(set(images)) == 1
    exact = r"docker\.io/library/python(:3\.\d+\.\d+-slim-[a-z]+|.*@sha256:[0-9a-f]{64})"
    assert re.fullmatch(exact, images[0]), images[0]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    least = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    assert tuple(map(int, re.findall(r"\d+", images[0].split(":")[1])[:2])) >= least
    assert {"service"} <= set(project["optional-dependencies"])
    assert 'install --no-cache-dir "/source[service]"' in TEXT


def test_nobody_is_root():
    (user,) = given_to("USER")
    assert user not in ("root", "0")
    assert f"useradd --system --uid 10001 --home-dir /data {user}" in TEXT


def test_key_anchor_and_database_are_apart(monkeypatch):
    (volumes,) = given_to("VOLUME")
    folders = [Path(each) for each in json.loads(volumes)]
    program = json.loads(given_to("ENTRYPOINT")[0])
    data = Path(program[program.index("--data") + 1])
    for name in (KEYS, ANCHORS):
        monkeypatch.setenv(name, variables()[name])
    url = parse_url(str(data / "ledger.db"))
    places = [data, key_file(url).parent, anchor_file(url).parent]
    assert sorted(places) == sorted(folders)
    assert len(set(places)) == 3
    for one in places:
        assert not any(one in other.parents for other in places)
        # Its user can write there, before a volume is put in its place.
        assert re.search(rf"install --directory --owner=\w+ --mode=0700[^&]* {one}\b", TEXT)
        assert f":{one} " in TEXT.replace("\\\n", " ").split("FROM")[0]


@pytest.mark.slow
def test_its_program_starts_and_is_found_healthy(tmp_path, patience):
    moved = {place: tmp_path / place.strip("/") for place in ("/data", "/keys", "/anchors")}
    for folder in moved.values():
        folder.mkdir()
    environment = dict(os.environ)
    environment |= {
        name: str(moved.get(value, value)) for name, value in variables().items() if name != "PATH"
    }
    program = [str(moved.get(word, word)) for word in json.loads(given_to("ENTRYPOINT")[0])]
    assert program[0] == "cloakgp"
    command = [sys.executable, "-m", *program, "--port", "0", "--workers", "0"]
    served = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        lines = iter(served.stdout.readline, "")
        port = next(found[1] for line in lines if (found := re.search(r"http://\S+:(\d+)", line)))
        (health,) = given_to("HEALTHCHECK")
        asking = json.loads(health.partition("CMD ")[2])
        assert asking[0] == "python"
        script = [word.replace(":8000/", f":{port}/") for word in asking[1:]]
        assert given_to("EXPOSE") == ["8000"]
        assert subprocess.run([sys.executable, *script], check=False).returncode == 0
        assert (moved["/data"] / "ledger.db").exists()
        assert [each.suffix for each in moved["/keys"].iterdir() if each.is_file()] == [".key"]
        assert [each.suffix for each in moved["/anchors"].iterdir()] == [".anchor"]
        assert not [each for each in moved["/data"].iterdir() if each.suffix in (".key", ".anchor")]
        (moved["/data"] / "uploads").rename(tmp_path / "away")
        # What was written just now holds for a moment.
        for _ in range(100):
            if subprocess.run(
                [sys.executable, *script], check=False, capture_output=True
            ).returncode:
                break
        else:
            pytest.fail("it is found healthy without its folder")
    finally:
        served.terminate()
        served.communicate(timeout=patience)
