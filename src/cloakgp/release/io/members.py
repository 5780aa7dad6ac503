"""Bounded reading of ZIP files: members whole, and never more than is allowed in all.

Whoever wrote such a file may have meant harm: a small file can declare, or unpack to, far more than
there is memory. Sizes are therefore added up from the directory before anything is unpacked, and no
member is read beyond the size it declares.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# What is always read, how many times its own size a larger file may unpack to, and the most.
ALWAYS_BYTES, LARGEST_RATIO, MOST_BYTES = 2**28, 100, 2**33
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# No byte of DEFLATE unpacks to more: see "Maximum Compression Factor" in zlib's technical details.
LARGEST_DEFLATE_RATIO = 1032
ENCRYPTED = 1
# What `zipfile` and what it calls raise for files that are none, or damaged.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class NotZipError(Exception):
    """A file that is no ZIP file, or no longer one."""


class RefusedError(ValueError):
    """A ZIP file with content that no file of this package has."""


@dataclass(frozen=True)
class Members:
    """The members of a ZIP file that is open.

    Attributes
    ----------
    sizes : mapping of str to int
        Bytes of each, unpacked, as declared.
    """

    sizes: Mapping[str, int]
    _file: zipfile.ZipFile

    def read(self, name: str) -> bytearray:
        """Return all of a member.

        Raises
        ------
        KeyError
            If there is none of that name.
        NotZipError
            If it is damaged.
        """
        content = bytearray(self.sizes[name])
        try:
            with self._file.open(name) as member:
                length = 0
                while length < len(content):
                    part = member.read(min(len(content) - length, 2**20))
                    if not part:
                        raise NotZipError
                    content[length : length + len(part)] = part
                    length += len(part)
                # At the end its checksum is compared.
                if member.read(1):
                    raise NotZipError
        except ZIP_ERRORS:
            raise NotZipError from None
        return content


def allowed_bytes(size: int) -> int:
    """Return the default limit of the unpacked size of a file.

    Parameters
    ----------
    size : int
        Bytes of the file itself.

    Examples
    --------
    >>> allowed_bytes(10) == ALWAYS_BYTES, allowed_bytes(10**7), allowed_bytes(10**15) == MOST_BYTES
    (True, 1000000000, True)
    """
    return min(max(ALWAYS_BYTES, LARGEST_RATIO * size), MOST_BYTES)


@contextmanager
def open_members(path: str | Path, *, max_bytes: int | None = None) -> Iterator[Members]:
    """Open a ZIP file whose members are unpacked, or stored, within bounds.

    Parameters
    ----------
    path : str or Path
    max_bytes : int, optional
        The most that all members together may hold; see `allowed_bytes`.

    Yields
    ------
    Members

    Raises
    ------
    OSError
        If the file cannot be opened.
    NotZipError
        If it is no such file, or damaged.
    RefusedError
        If it is no ordinary file, two members share a name, one is encrypted or packed in another
        way, or all together hold more than is allowed.
    """
    with open_ordinary(path) as source:
        size = os.fstat(source.fileno()).st_size
        allowed = allowed_bytes(size) if max_bytes is None else max_bytes
        try:
            file = zipfile.ZipFile(source)
        except ZIP_ERRORS:
            raise NotZipError from None
        with file:
            yield Members(sizes=_checked_sizes(file, size=size, allowed=allowed), _file=file)


def open_ordinary(path: str | Path) -> BinaryIO:
    """Open a file for reading, without waiting for the writer of a pipe.

    Raises
    ------
    OSError
        If it cannot be opened.
    RefusedError
        If it is a folder, a pipe, a device or a socket.
    """
    advice = "it is no ordinary file"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        # A socket.
        if error.errno != errno.ENXIO:
            raise
        raise RefusedError(advice) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RefusedError(advice)
    return os.fdopen(descriptor, "rb")


def _checked_sizes(file: zipfile.ZipFile, *, size: int, allowed: int) -> dict[str, int]:
    entries = file.infolist()
    sizes = {entry.filename: entry.file_size for entry in entries}
    if len(sizes) < len(entries):
        raise RefusedError("two of its members have the same name")
    if any(entry.compress_type not in METHODS for entry in entries):
        raise RefusedError("one of its members is packed in a way that is never used")
    if any(entry.flag_bits & ENCRYPTED for entry in entries):
        raise RefusedError("one of its members is encrypted")
    total = sum(sizes.values())
    if total > allowed:
        raise RefusedError(
            f"it would unpack to {total:,} bytes, and {allowed:,} are allowed: if you trust it, "
            "open it in Python with max_bytes"
        )
    # Memory is taken for what is declared, so a size that cannot be true must not get so far.
    if any(entry.file_size > _most_unpacked(entry, size=size) for entry in entries):
        raise NotZipError
    return sizes


def _most_unpacked(entry: zipfile.ZipInfo, *, size: int) -> int:
    """Return the most bytes that a member of a file of `size` bytes can hold."""
    packed = min(entry.compress_size, size)
    return packed * (1 if entry.compress_type == zipfile.ZIP_STORED else LARGEST_DEFLATE_RATIO)
