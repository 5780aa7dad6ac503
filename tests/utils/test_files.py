"""Files that are there whole or not at all, and never in the place of what is read."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from cloakgp.utils import files
from cloakgp.utils.files import remove_unfinished, reserve_file, write_file


@pytest.fixture(params=["without a name", "with a name"])
def unfinished(request, monkeypatch):
    """How the system holds what is not finished yet."""
    if request.param == "with a name":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    return request.param


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("unfinished")
def test_nothing_is_seen_of_a_file_until_it_is_whole(tmp_path):
    target = tmp_path / "heights.cloak"
    with reserve_file(target, size=1000) as reserved:
        assert "heights.cloak" not in names(tmp_path)
        reserved.write(b"x" * 10)
        assert target.read_bytes() == b"x" * 10
    assert names(tmp_path) == ["heights.cloak"]
    assert target.read_bytes() == b"x" * 10


def test_an_unfinished_file_is_recognised(tmp_path, unfinished):
    with reserve_file(tmp_path / "heights.cloak"):
        [*left] = names(tmp_path)
    if unfinished == "with a name":
        assert left == [f".heights.cloak.{os.getpid()}-0.partial"]
    else:
        assert left == []
    assert names(tmp_path) == []


@pytest.mark.usefixtures("unfinished")
@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_the_work_leaves_nothing(tmp_path, end):
    with pytest.raises(end), reserve_file(tmp_path / "heights.cloak"):
        raise end
    assert names(tmp_path) == []


@pytest.mark.usefixtures("unfinished")
def test_files_are_replaced_only_if_allowed(tmp_path):
    target = tmp_path / "heights.cloak"
    write_file(target, b"first")
    with pytest.raises(FileExistsError, match=r"heights\.cloak exists.*--overwrite"):
        write_file(target, b"second")
    assert target.read_bytes() == b"first"
    write_file(target, memoryview(b"second"), overwrite=True)
    assert target.read_bytes() == b"second"
    assert names(tmp_path) == ["heights.cloak"]


def test_a_failure_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    target = tmp_path / "heights.cloak"
    write_file(target, b"first")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_file(target, b"second", overwrite=True)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"first"
    assert names(tmp_path) == ["heights.cloak"]


@pytest.mark.usefixtures("unfinished")
def test_of_many_writers_exactly_one_wins_and_all_others_know(tmp_path):
    for attempt in range(20):
        target = tmp_path / f"{attempt}.cloak"
        outcomes = {}
        barrier = threading.Barrier(4)

        def write(who, *, target=target, outcomes=outcomes, barrier=barrier):
            try:
                with reserve_file(target) as reserved:
                    barrier.wait()
                    reserved.write(who)
                outcomes[who] = True
            except FileExistsError:
                outcomes[who] = False

        writers = [threading.Thread(target=write, args=(who,)) for who in (b"a", b"b", b"c", b"d")]
        for one in writers:
            one.start()
        for one in writers:
            one.join()
        [winner] = [who for who, won in outcomes.items() if won]
        assert len(outcomes) == 4
        assert target.read_bytes() == winner


def test_where_files_have_one_name_only_writers_still_lose_nothing(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "heights.cloak"
    with reserve_file(target) as late:
        write_file(target, b"first")
        with pytest.raises(FileExistsError):
            late.write(b"second")
    assert target.read_bytes() == b"first"
    assert names(tmp_path) == ["heights.cloak"]


@pytest.mark.parametrize("arrives", ["nothing", "this file", "another"])
def test_where_files_have_one_name_only_a_failure_leaves_no_empty_file(
    tmp_path, monkeypatch, arrives
):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    def failing(source, target, **folders):
        if arrives == "this file":
            replace(source, target, **folders)
        elif arrives == "another":
            (tmp_path / "other").write_bytes(b"of somebody else")
            replace(tmp_path / "other", tmp_path / target)
        raise OSError(errno.EIO, "Input/output error")

    replace = os.replace
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output error"):
        write_file(tmp_path / "heights.cloak", b"content")
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    content = {"this file": b"content", "another": b"of somebody else"}
    assert left == ({} if arrives == "nothing" else {"heights.cloak": content[arrives]})


@pytest.mark.usefixtures("unfinished")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_umask_is_respected(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_file(tmp_path / "new", b"")
        write_file(tmp_path / "new", b"", overwrite=True)
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~umask


def test_file_and_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(os.fstat(one).st_mode & 0o170000))
    write_file(tmp_path / "new", b"content")
    assert synced == [0o100000, 0o040000]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_killed_processes_leave_nothing(tmp_path, number, patience):
    if number == signal.SIGKILL and not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    # Whoever started the tests may have it ignore SIGHUP (nohup).
    program = f"""
        import select, signal, sys
        from cloakgp.cli.console import exit_on_signals
        from cloakgp.utils.files import reserve_file
        if {number:d} != signal.SIGKILL:
            signal.signal({number:d}, signal.SIG_DFL)
        exit_on_signals()
        with reserve_file("heights.cloak", size=2**20):
            print("ready", flush=True)
            # A signal that comes just before a call that waits is seen when it returns.
            while not select.select([sys.stdin], [], [], 0.05)[0]:
                pass
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(patience) == (-number if number == signal.SIGKILL else 128 + number)
    assert names(tmp_path) == []


def test_a_signal_that_is_ignored_ends_nothing(tmp_path, patience):
    """Under nohup the end of a session does not end a command."""
    program = """
        import signal, sys
        from cloakgp.cli.console import exit_on_signals
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        exit_on_signals()
        print("ready", flush=True)
        sys.exit(sys.stdin.read() != "go on")
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        process.communicate(b"go on", timeout=patience)
    assert process.returncode == 0


@pytest.mark.usefixtures("unfinished")
def test_a_full_disk_is_noticed_at_once(tmp_path):
    program = """
        import resource
        from cloakgp.utils.files import reserve_file
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
        try:
            with reserve_file("heights.cloak", size=2**21):
                print("asked in vain")
        except OSError as error:
            print(error.filename, error.strerror)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "heights.cloak File too large\n"
    assert names(tmp_path) == []


def test_systems_that_cannot_reserve_space_do_without(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with reserve_file(tmp_path / "new", size=10) as target:
        target.write(b"content")
    assert (tmp_path / "new").read_bytes() == b"content"


def fail_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever is synced to the disk in a folder fail, and nothing elsewhere."""

    def full(descriptor):
        where = Path(f"/proc/self/fd/{descriptor}").resolve()
        if folder in where.parents or where == folder:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


def test_what_must_not_be_lost_is_kept_elsewhere(tmp_path, monkeypatch):
    for name in ("full", "temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "temporary" / "heights.cloak").write_text("of somebody else")
    fail_in(tmp_path / "full", monkeypatch)
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    kept = tmp_path / "temporary" / "1-heights.cloak"
    said = rf"\(No space left on device\).*complete content is in {kept}: move"
    with (
        pytest.raises(OSError, match=said),
        reserve_file(tmp_path / "full" / "heights.cloak") as target,
    ):
        target.write(b"precious", keep=True)
    assert kept.read_bytes() == b"precious"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path / "full") == []
    assert (tmp_path / "temporary" / "heights.cloak").read_text() == "of somebody else"


def test_what_loses_its_name_to_another_is_kept_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    with reserve_file(tmp_path / "heights.cloak") as target:
        write_file(tmp_path / "heights.cloak", b"quicker")
        with pytest.raises(OSError, match=r"exists.*complete content is in"):
            target.write(b"precious", keep=True)
    assert (tmp_path / "heights.cloak").read_bytes() == b"quicker"
    assert (tmp_path / "temporary" / "heights.cloak").read_bytes() == b"precious"


def test_home_is_tried_last_and_losses_are_admitted(tmp_path, monkeypatch):
    for name in ("full", "home"):
        (tmp_path / name).mkdir()
    fail_in(tmp_path / "full", monkeypatch)
    monkeypatch.setattr(files.tempfile, "gettempdir", lambda: str(tmp_path / "full"))
    for home, said in (
        ("home", r"complete content is in .*home/heights\.cloak"),
        ("full", "is lost"),
    ):
        monkeypatch.setenv("HOME", str(tmp_path / home))
        with (
            pytest.raises(OSError, match=said),
            reserve_file(tmp_path / "full" / "heights.cloak") as target,
        ):
            target.write(b"precious", keep=True)
    assert names(tmp_path / "full") == []


def reserved(path, **settings):
    with reserve_file(path, **settings):
        pass


def test_inputs_are_never_replaced(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("age\n3\n")
    (tmp_path / "symbolic.csv").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table)
    (tmp_path / "other").mkdir()
    for name in ("people.csv", "symbolic.csv", "hard.csv", "other/../people.csv"):
        for overwrite in (True, False):
            with pytest.raises(ValueError, match=r"is read here, as .*people\.csv"):
                reserved(tmp_path / name, overwrite=overwrite, inputs=[tmp_path / "none", table])
    reserved(tmp_path / "new.csv", inputs=[tmp_path / "none", table])
    assert table.read_text() == "age\n3\n"


def test_nothing_is_put_into_a_folder_that_is_read(tmp_path):
    table = tmp_path / "people"
    (table / "inner").mkdir(parents=True)
    (table / "a.csv").write_text("age\n3\n")
    (tmp_path / "link").symlink_to(table)
    (tmp_path / "hard.csv").hardlink_to(table / "a.csv")
    for name in ("people/a.csv", "people/b.csv", "people/inner/b.csv", "link/b.csv", "hard.csv"):
        for folder in (table, tmp_path / "link"):
            with pytest.raises(ValueError, match="read here"):
                reserved(tmp_path / name, overwrite=True, inputs=[folder])
    reserved(tmp_path / "b.csv", inputs=[table])
    assert names(table) == ["a.csv", "inner"]


def test_targets_are_files_in_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        reserved(tmp_path / "none" / "out.csv")
    with pytest.raises(IsADirectoryError, match="name a file"):
        reserved(tmp_path, overwrite=True)
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ValueError, match="no ordinary file"):
            reserved(odd, overwrite=True)
    with pytest.raises(OSError, match=r"No such file or directory: '/proc/out\.csv'"):
        reserved("/proc/out.csv")
    with pytest.raises(OSError, match="File name too long"):
        reserved(tmp_path / ("long" * 64))
    with pytest.raises(ValueError, match="null"):
        reserved(tmp_path / "a\0b")
    longest = tmp_path / ("ä" * 127)
    write_file(longest, b"1")
    write_file(longest, b"2", overwrite=True)
    assert longest.read_bytes() == b"2"


def test_links_are_replaced_themselves(tmp_path):
    (tmp_path / "first").write_text("kept")
    (tmp_path / "latest").symlink_to(tmp_path / "first")
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    with pytest.raises(FileExistsError):
        reserved(tmp_path / "nowhere")
    for name in ("latest", "nowhere"):
        write_file(tmp_path / name, b"new", overwrite=True)
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == "new"
    assert (tmp_path / "first").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() == 0, reason="for root every folder is writable")
def test_unwritable_folders_are_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            reserved(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.usefixtures("unfinished")
def test_a_file_can_be_written_bit_by_bit(tmp_path):
    target = tmp_path / "predicted.csv"
    with reserve_file(target, size=10**6) as reserved, reserved.filling() as file:
        for _ in range(300):
            file.write(b"x" * 1000)
        assert "predicted.csv" not in names(tmp_path)
    assert names(tmp_path) == ["predicted.csv"]
    assert target.read_bytes() == b"x" * 300_000


def fill(target: Path, end: BaseException) -> None:
    """Begin to write a file, and end like that."""
    with reserve_file(target) as reserved, reserved.filling() as file:
        file.write(b"x" * 10**6)
        raise end


@pytest.mark.usefixtures("unfinished")
@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_file_that_is_not_written_to_its_end_is_not_there(tmp_path, end):
    with pytest.raises(end):
        fill(tmp_path / "predicted.csv", end())
    assert names(tmp_path) == []


def test_the_file_is_named_where_the_disk_is_full(tmp_path):
    with pytest.raises(OSError, match=r"predicted\.csv"):
        fill(tmp_path / "predicted.csv", OSError(errno.ENOSPC, "No space left on device"))
    assert names(tmp_path) == []


def test_what_others_left_unfinished_is_removed_by_its_name(tmp_path):
    kept = [
        "people.csv",
        ".people.csv.partial",
        ".other.csv.1-0.partial",
        ".people.csv.a-0.partial",
    ]
    for name in (*kept, ".people.csv.17-0.partial", ".people.csv.17-12.partial"):
        (tmp_path / name).touch()
    remove_unfinished(tmp_path, re.compile(r"people\.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
