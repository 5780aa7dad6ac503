"""Commands of the classification experiments."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from experiments import __main__
from experiments.datasets import DatasetUnavailableError, load_hmeq

PNG = b"\x89PNG"


def run(*arguments):
    """Call a command."""
    return CliRunner().invoke(__main__.app, list(arguments), catch_exceptions=False)


@pytest.mark.slow
def test_stripes_prints_published_figures_and_draws(tmp_path):
    result = run("stripes", "--fast", "--output-dir", str(tmp_path))
    assert result.exit_code == 0
    assert "published" in result.output
    for name in ("stripes-figure-7.png", "stripes-calibration.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)


@pytest.mark.slow
@pytest.mark.data
def test_home_equity_says_what_was_left_out(tmp_path):
    try:
        load_hmeq()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))
    result = run("home-equity", "--fast", "--output-dir", str(tmp_path))
    assert result.exit_code == 0
    assert "missing in 580 of 5960" in result.output
    assert (tmp_path / "home-equity-figure-6.png").read_bytes().startswith(PNG)


def test_too_few_draws_are_refused():
    for command in ("stripes", "digits", "breast-cancer"):
        assert run(command, "--draws", "1").exit_code == 2
