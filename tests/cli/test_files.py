"""What the command line writes: never in the place of what it reads, and not in vain."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cloakgp import Release
from cloakgp.cli import app

OPTIONS = (
    *("--inputs", "age", "--output", "height", "--bounds", "80", "180", "--inducing", "4"),
    *("--epsilon", "1", "--delta", "0.001", "--learn", "none"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a table of people in a file and in two, in which commands run."""
    rng = np.random.default_rng(7)
    age = rng.uniform(0, 80, 30)
    people = pd.DataFrame({"age": age, "height": 90 + age + rng.normal(0, 5, 30)})
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "parts").mkdir()
    people.head(20).to_parquet(tmp_path / "parts" / "a.parquet", index=False)
    people.tail(10).to_parquet(tmp_path / "parts" / "b.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The system's folder for temporary files, as it seems."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("cloakgp.utils.files.tempfile.gettempdir", lambda: str(place))
    return place


@pytest.fixture
def unasked(monkeypatch):
    """Fail if private outputs are so much as read."""

    def asked(*_, **__):
        raise AssertionError("asked the private outputs in vain")

    for name in ("read_people", "FileRows"):
        monkeypatch.setattr(f"cloakgp.orders.estimators.{name}", asked)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def release(to: object, *words: object, table: object = "people.csv") -> Result:
    return run("release", table, *OPTIONS, "--to", to, *words)


def refusal(result: Result) -> str:
    """Return the one red line of a command that failed."""
    assert result.exit_code == 1, result.output
    [line] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize(
    ("to", "table"),
    [
        ("people.csv", "people.csv"),
        ("hard.cloak", "people.csv"),
        ("symbolic.cloak", "people.csv"),
        ("parts/a.parquet", "parts"),
        ("parts/c.parquet", "parts"),
        ("parts/../parts/new.cloak", "parts"),
        ("hard_part.cloak", "parts"),
    ],
)
def test_no_release_takes_the_place_of_the_private_table(folder, to, table):
    (folder / "hard.cloak").hardlink_to("people.csv")
    (folder / "symbolic.cloak").symlink_to("people.csv")
    (folder / "hard_part.cloak").hardlink_to("parts/b.parquet")
    before = everything(folder)
    for words in ((), ("--overwrite",)):
        assert "read here" in refusal(release(to, *words, table=table))
    assert everything(folder) == before


@pytest.mark.usefixtures("unasked")
def test_no_release_takes_the_place_of_the_queries(folder):
    pd.DataFrame({"age": [1.0]}).to_csv("queries.csv", index=False)
    before = everything(folder)
    assert "read here" in refusal(release("queries.csv", "--overwrite", "--queries", "queries.csv"))
    assert everything(folder) == before


def test_nothing_that_is_predicted_or_drawn_takes_the_place_of_what_is_read(folder):
    assert release("heights.cloak").exit_code == 0
    for name in ("link.csv", "link.png"):
        (folder / name).symlink_to("heights.cloak")
    before = everything(folder)
    predict = ("predict", "heights.cloak", "--overwrite", "--at", "people.csv", "-o")
    assert "people.csv is read here" in refusal(run(*predict, "people.csv"))
    assert "link.csv is read here" in refusal(run(*predict, "link.csv"))
    drawn = run("plot", "heights.cloak", "--overwrite", "-o", "link.png")
    assert "link.png is read here" in refusal(drawn)
    assert everything(folder) == before


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather"])
def test_predictions_that_are_not_written_to_their_end_leave_nothing(folder, monkeypatch, suffix):
    """Whatever ends them, in the first pass or the second."""
    from cloakgp.orders import predictions

    assert release("heights.cloak").exit_code == 0
    before = everything(folder)
    predict = ("predict", "heights.cloak", "--at", "people.csv", "-o", f"out.{suffix}")
    monkeypatch.setattr(predictions, "CHUNK_ROWS", 2)
    for step in ("_points", "_spooled"):
        usual, calls = getattr(predictions.TablePredictions, step), []

        def fails(self, *given, usual=usual, calls=calls, **named):
            calls.append(given)
            if len(calls) == 6:
                raise ValueError("the second chunk fails")
            return usual(self, *given, **named)

        with monkeypatch.context() as broken:
            broken.setattr(predictions.TablePredictions, step, fails)
            assert "the second chunk fails" in refusal(run(*predict))
        assert everything(folder) == before
    assert run(*predict).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_a_folder_of_tables_is_predicted_at():
    assert release("heights.cloak").exit_code == 0
    assert run("predict", "heights.cloak", "--at", "people.csv", "-o", "whole.csv").exit_code == 0
    assert run("predict", "heights.cloak", "--at", "parts", "-o", "parts.csv").exit_code == 0
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert "lie within" in refusal(
        run("predict", "heights.cloak", "--at", "parts", "-o", "parts/out.csv")
    )


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("/proc/heights.cloak", "No such file or directory"),
        ("/dev/null", "no ordinary file"),
        ("n" * 300, "File name too long"),
    ],
)
def test_nothing_is_asked_where_nothing_can_be_written(to, reason):
    assert reason in refusal(release(to, "--overwrite"))


@pytest.mark.usefixtures("unasked")
def test_nothing_is_asked_if_the_disk_is_full(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = everything(folder)
    assert refusal(release("heights.cloak")) == "Error: heights.cloak: No space left on device"
    assert everything(folder) == before


def test_a_release_that_cannot_be_written_is_kept_elsewhere(folder, temporary, monkeypatch):
    def full(descriptor):
        if temporary not in Path(f"/proc/self/fd/{descriptor}").resolve().parents:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    kept = temporary / "heights.cloak"
    assert f"complete content is in {kept}: move it" in refusal(release("heights.cloak"))
    assert not (folder / "heights.cloak").exists()
    assert Release.load(kept).output_name == "height"


def test_two_releases_of_one_name_are_both_kept(folder, temporary, monkeypatch):
    from cloakgp.orders.estimators import make_release

    def slow(*given, **how):
        (folder / "heights.cloak").write_text("quicker")
        return make_release(*given, **how)

    monkeypatch.setattr("cloakgp.orders.estimators.make_release", slow)
    said = refusal(release("heights.cloak"))
    assert "heights.cloak exists" in said
    assert (folder / "heights.cloak").read_text() == "quicker"
    assert Release.load(temporary / "heights.cloak").output_name == "height"


@pytest.mark.parametrize(
    "failure", [ValueError, RuntimeError, BrokenPipeError, UnicodeEncodeError, SystemExit]
)
def test_what_cannot_be_described_is_released_all_the_same(monkeypatch, failure):
    def speechless(_):
        raise failure("ascii", "ε", 0, 1, "?") if failure is UnicodeEncodeError else failure

    monkeypatch.setattr("cloakgp.report.describe.describe", speechless)
    result = release("heights.cloak")
    assert result.exit_code == 0
    assert "heights.cloak is released and complete, but could not be described" in result.stderr
    assert Release.load("heights.cloak").output_name == "height"


def test_a_reader_that_leaves_is_no_failure(patience):
    program = "from cloakgp.cli import main; main()"
    command = [sys.executable, "-c", program, "release", "people.csv", *OPTIONS]
    process = subprocess.Popen(
        [*command, "--to", "heights.cloak"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(patience) == 0, said
    assert "is released and complete" in said


def test_a_command_that_is_ended_cleans_up(folder, patience):
    program = """
        import os, sys, time
        from cloakgp.cli import main
        if hasattr(os, "O_TMPFILE"):
            del os.O_TMPFILE
        def endless(*_, **__):
            print("ready", flush=True)
            # A signal that comes just before a call that waits is seen when it returns.
            while True:
                time.sleep(0.05)
        import cloakgp.orders.estimators
        cloakgp.orders.estimators.make_release = endless
        main()
    """
    before = everything(folder)
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", textwrap.dedent(program), "release", "people.csv"),
            *(*OPTIONS, "--to", "heights.cloak"),
        ],
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"ready\n"
        [partial] = folder.glob(".heights.cloak.*.partial")
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience) == 128 + signal.SIGTERM
    assert everything(folder) == before
    assert not partial.exists()
