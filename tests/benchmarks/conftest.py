"""The small version of everything, measured once: each of its processes takes seconds to start."""

from __future__ import annotations

import shutil

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app


@pytest.fixture(scope="session")
def small_version(tmp_path_factory):
    """The folder into which ``python -m benchmarks --small`` wrote."""
    folder = tmp_path_factory.mktemp("benchmarks")
    result = CliRunner().invoke(app, ["--small", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def measured(small_version, tmp_path):
    """A copy of what it measured, to go on with."""
    return shutil.copytree(small_version / "measurements", tmp_path / "measurements")
