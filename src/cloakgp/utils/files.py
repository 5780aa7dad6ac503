"""Atomic files: reserved before the work that fills them, then there whole or not at all.

Until it is complete a file has no name where the system can hold such (``O_TMPFILE``): then even a
process that is killed leaves nothing behind. Elsewhere it is called ``.NAME.PID-N.partial``, and is
removed by whatever ends the ``with`` block.
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# What file systems answer that cannot do such a thing at all.
UNSUPPORTED = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
# Names may have 255 bytes; what is shown of one in the name of its unfinished file is shorter.
SHOWN_CHARACTERS = 50
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.\d+-\d+\.partial")
PUBLIC, PERSONAL = 0o666, 0o600
# Bytes that are held before they are written, where a file is written bit by bit.
BUFFER = 2**18


class ReservedFile:
    """A file that can be written, though nothing is to be seen of it before it is.

    Attributes
    ----------
    path : Path
        Where it will be.

    See Also
    --------
    reserve_file : Makes them, and takes back what was not written.
    """

    def __init__(self, path: Path, *, folder: int, overwrite: bool, mode: int) -> None:
        self.path = path
        self._folder = folder
        self._overwrite = overwrite
        # Of the unfinished file, if it has one.
        self._name: str | None = None
        descriptor = self._open_unnamed(mode)
        if descriptor is None:
            descriptor = self._open_named(mode)
        self._file = os.fdopen(descriptor, "wb", buffering=0)

    def write(self, content: bytes | memoryview, *, keep: bool = False) -> None:
        """Write everything, to the disk, and only then under its name; to be called once.

        Parameters
        ----------
        content : bytes or memoryview
        keep : bool
            If the file cannot be written all the same, write another, in the system's folder for
            temporary files or at home; the error says where.

        Raises
        ------
        FileExistsError
            If somebody else has written it meanwhile, and may not be overwritten.
        OSError
            If the system refuses for another reason.
        """
        try:
            with _errors_name(self.path):
                self._fill(content)
                self._publish()
        except OSError as error:
            if not keep:
                raise
            reason = error.strerror or str(error)
            kept = _keep_elsewhere(content, name=self.path.name)
        else:
            return
        if kept is None:
            raise OSError(
                f"{self.path} could not be written ({reason}), and nothing else either: what was "
                "to be in it is lost"
            )
        raise OSError(
            f"{self.path} could not be written ({reason}). Its complete content is in "
            f"{kept}: move it from there"
        )

    @contextmanager
    def filling(self) -> Iterator[BinaryIO]:
        """Give the file to be written bit by bit; it has its name after the block, if that ends.

        In place of `write`, where the content is larger than memory. Whatever is raised in the
        block, nothing is to be seen of the file.

        Yields
        ------
        binary file

        Raises
        ------
        FileExistsError, OSError
            As `write`.
        """
        file = io.BufferedWriter(self._file, BUFFER)
        try:
            with _errors_name(self.path):
                yield file
                file.flush()
                self._finish()
                self._publish()
        finally:
            # Without what is still held, if it could not be written before.
            with suppress(OSError, ValueError):
                file.detach()

    def allocate(self, size: int) -> None:
        """Reserve bytes of the disk, so that it is not full later."""
        if size and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._file.fileno(), 0, size)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise

    def discard(self) -> None:
        """Remove the unfinished file, if there is one."""
        self._file.close()
        if self._name is not None:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)

    def _open_unnamed(self, mode: int) -> int | None:
        """Return a file without a name; None where a trial shows that it could not be named."""
        if not hasattr(os, "O_TMPFILE"):
            return None
        flags = os.O_TMPFILE | os.O_WRONLY
        try:
            trial = os.open(".", flags, PERSONAL, dir_fd=self._folder)
            try:
                os.unlink(self._link_to_free_name(trial), dir_fd=self._folder)
            finally:
                os.close(trial)
            return os.open(".", flags, mode, dir_fd=self._folder)
        except OSError:
            return None

    def _open_named(self, mode: int) -> int:
        for name in self._names():
            with suppress(FileExistsError):
                descriptor = os.open(
                    name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=self._folder
                )
                self._name = name
                return descriptor
        raise AssertionError("there is no end to names")

    def _names(self) -> Iterator[str]:
        """Return names for an unfinished file without end."""
        shown = self.path.name[:SHOWN_CHARACTERS]
        return (f".{shown}.{os.getpid()}-{number}.partial" for number in itertools.count())

    def _fill(self, content: bytes | memoryview) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._finish()

    def _finish(self) -> None:
        """Cut off unused reserved bytes, and flush the rest to the disk."""
        self._file.truncate()
        os.fsync(self._file.fileno())

    def _publish(self) -> None:
        """Give the complete file its name."""
        target = self.path.name
        if self._overwrite:
            self._replace(target)
        else:
            try:
                self._link(self._file.fileno() if self._name is None else self._name, target)
            except FileExistsError:
                raise _exists(self.path) from None
            except OSError as error:
                if error.errno not in UNSUPPORTED or self._name is None:
                    raise
                self._claim(target)
        # Some file systems have nothing to do here, and say so.
        with suppress(OSError):
            os.fsync(self._folder)

    def _replace(self, target: str) -> None:
        """Put the file in another's place, or in an empty one."""
        if self._name is None:
            self._name = self._link_to_free_name(self._file.fileno())
        os.replace(self._name, target, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._name = None

    def _link_to_free_name(self, unnamed: int) -> str:
        for name in self._names():
            with suppress(FileExistsError):
                self._link(unnamed, name)
                return name
        raise AssertionError("there is no end to names")

    def _link(self, source: int | str, name: str) -> None:
        """Give a file, by its descriptor or its name, another name that none has."""
        os.link(
            f"/proc/self/fd/{source}" if isinstance(source, int) else source,
            name,
            # That both folders are given makes links to descriptors be followed.
            src_dir_fd=self._folder,
            dst_dir_fd=self._folder,
            follow_symlinks=isinstance(source, int),
        )

    def _claim(self, target: str) -> None:
        """Take a name where files have one only: first an empty file, then in its place this."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = os.open(target, flags, PERSONAL, dir_fd=self._folder)
        except FileExistsError:
            raise _exists(self.path) from None
        empty = os.fstat(descriptor)
        os.close(descriptor)
        try:
            self._replace(target)
        except BaseException:
            with suppress(OSError):
                # Not what another has put there meanwhile, nor this file if it arrived after all.
                present = os.stat(target, dir_fd=self._folder, follow_symlinks=False)
                if os.path.samestat(present, empty):
                    os.unlink(target, dir_fd=self._folder)
            raise


@contextmanager
def reserve_file(
    path: str | Path,
    *,
    overwrite: bool = False,
    inputs: Sequence[str | Path] = (),
    size: int = 0,
    mode: int = PUBLIC,
) -> Iterator[ReservedFile]:
    """Make sure that a file can be written, before the work whose result it will hold.

    Nothing is to be seen until all of it is written; if nothing is, nothing is left.

    Parameters
    ----------
    path : str or Path
    overwrite : bool
        Replace a file that exists. A symbolic link is replaced itself.
    inputs : sequence of str or Path
        Files, and folders of files, that the work reads. None of them is ever replaced, and nothing
        is added to these folders.
    size : int
        Bytes of the disk to take at once.
    mode : int
        Permissions, of which the umask is taken away.

    Yields
    ------
    ReservedFile

    Raises
    ------
    FileExistsError
        If the file exists and overwrite is False.
    FileNotFoundError
        If its folder does not exist.
    IsADirectoryError
        If it is a folder itself.
    OSError
        If the system does not let it be written: no permission, no space, no such name.
    ValueError
        If it is an input, or exists and is no ordinary file.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "answer.txt"
    ...     with reserve_file(path) as target:
    ...         nothing_yet = list(Path(folder).glob("answer*"))
    ...         target.write(b"42")
    ...     nothing_yet, path.read_text()
    ([], '42')
    """
    target = Path(path)
    with _errors_name(target):
        _check_target(target, overwrite=overwrite, inputs=[Path(path) for path in inputs])
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _errors_name(target):
            reserved = ReservedFile(target, folder=folder, overwrite=overwrite, mode=mode)
        try:
            with _errors_name(target):
                reserved.allocate(size)
            yield reserved
        finally:
            reserved.discard()
    finally:
        os.close(folder)


def write_file(path: str | Path, content: bytes | memoryview, *, overwrite: bool = False) -> None:
    """Write a file in one step: readers see the old one or the new one, never half.

    Parameters
    ----------
    path : str or Path
    content : bytes or memoryview
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    FileExistsError
        If it exists and overwrite is False.
    OSError, ValueError
        As `reserve_file`.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "answer.txt", b"42")
    ...     (Path(folder) / "answer.txt").read_text()
    '42'
    """
    with reserve_file(path, overwrite=overwrite) as target:
        target.write(content)


def remove_unfinished(folder: Path, names: re.Pattern[str]) -> None:
    """Remove files that processes left unfinished when they were killed.

    For a caller who knows that nobody else writes files of these names now.

    Parameters
    ----------
    folder : Path
    names : re.Pattern
        Of the whole name that a file was to have, of 50 characters at most.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in (".a.txt.12-0.partial", ".b.txt.12-0.partial"):
    ...         _ = (Path(folder) / name).write_text("4")
    ...     remove_unfinished(Path(folder), re.compile("a[.]txt"))
    ...     [path.name for path in Path(folder).iterdir()]
    ['.b.txt.12-0.partial']
    """
    for path in folder.glob(".*.partial"):
        found = _UNFINISHED.fullmatch(path.name)
        if found is not None and names.fullmatch(found["name"]):
            path.unlink(missing_ok=True)


def _check_target(target: Path, *, overwrite: bool, inputs: Sequence[Path]) -> None:
    """Raise unless a file may be written there."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}: create it first")
    for path in inputs:
        _check_apart(target, path)
    try:
        # Raises for names that cannot be, too.
        os.lstat(target)
    except FileNotFoundError:
        return
    if not overwrite:
        raise _exists(target)
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is no ordinary file: name another")


def _check_apart(target: Path, read: Path) -> None:
    """Raise ValueError if a file to be written is an input, or belongs to one."""
    within = target.parent.resolve()
    around = {_identity(folder) for folder in (within, *within.parents, *target.resolve().parents)}
    parts = [read, *(read.iterdir() if read.is_dir() else ())]
    known = _identity(target)
    if known is not None and known in map(_identity, parts):
        raise ValueError(f"{target} is read here, as {read}: name another file to write")
    if read.is_dir() and _identity(read) in around:
        raise ValueError(
            f"{target} would lie within {read}, which is read here: name a file elsewhere to write"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file under all its names; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _keep_elsewhere(content: bytes | memoryview, *, name: str) -> Path | None:
    """Write a file wherever that is possible; return where, or None."""
    for folder in (tempfile.gettempdir, Path.home):
        with suppress(OSError, RuntimeError):
            for number in itertools.count():
                path = Path(folder()) / f"{number or ''}{'-' if number else ''}{name}"
                try:
                    with reserve_file(path, mode=PERSONAL) as target:
                        target.write(content)
                except FileExistsError:
                    continue
                return path
    return None


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Name the file that is meant, where the system names none or an unfinished one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(
        f"{path} exists: choose another name, or replace it with --overwrite (in Python, "
        "overwrite=True)"
    )
