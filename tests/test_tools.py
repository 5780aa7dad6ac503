"""What CI installs for some tests, or says that it cannot, without ever failing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import cloakgp

SCRIPT = Path(cloakgp.__file__).parents[2] / ".ci" / "install-tools"
# What the script itself takes.
COMMANDS = ("bash", "mktemp", "id", "tail", "rm", "head", "timeout")
TESTS = ("Browser", "JavaScript", "R")


def told(folder):
    """The lines of the script, on a machine with what is in a folder and nothing else."""
    made = subprocess.run(
        [shutil.which("bash"), SCRIPT],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert [line.split(" tests: ")[0] for line in lines] == list(TESTS)
    return lines


def command(folder, name, script):
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    for name in COMMANDS:
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "env").symlink_to(shutil.which("env"))
    return tmp_path


def test_without_apt_get_it_says_so(machine):
    assert all("no apt-get" in line for line in told(machine))


def test_what_cannot_be_installed_is_said_in_its_own_words(machine):
    command(machine, "apt-get", "echo 'E: no network'; exit 100")
    if subprocess.run(["id", "-u"], capture_output=True, check=True).stdout != b"0\n":
        command(machine, "sudo", 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"')
    assert all("E: no network" in line for line in told(machine))


def test_without_root_or_sudo_it_says_so(machine):
    command(machine, "apt-get", "exit 0")
    (machine / "id").unlink()
    command(machine, "id", "echo 1000")
    assert all("takes root" in line for line in told(machine))


def test_what_is_here_is_not_installed_again_and_an_old_node_does_not_count(machine):
    command(machine, "apt-get", "exit 100")
    command(machine, "chromium", "exit 0")
    command(machine, "node", "exit 1")
    command(machine, "Rscript", "exit 0")
    (machine / "id").unlink()
    command(machine, "id", "echo 0")
    browser, node, r = told(machine)
    assert "here already" in browser
    assert "did not install nodejs" in node
    assert "here already" in r
