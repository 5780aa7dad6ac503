"""Archive of a JSON manifest and plain arrays, with checksums: the format of every release.

The checksums find damage and careless edits. They are no signature: whoever can write the file can
write its checksums. Reading is therefore strict, and bounded in memory and time: members that the
manifest does not list, headers that promise other sizes, and trees that are too large or too deep
are refused before anything is made of them.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cloakgp.release.io.members import (
    ALWAYS_BYTES,
    Members,
    NotZipError,
    RefusedError,
    open_members,
)
from cloakgp.utils.arrays import Array

FORMAT = "cloakgp release"
FORMAT_VERSION = 1
MANIFEST, MANIFEST_DIGEST = "manifest.json", "manifest.sha256"
# What other languages predict by: see `cloakgp.release.coefficient_tree`. Not read here.
COEFFICIENTS = "coefficients"
# What every manifest says beside what its release holds.
ENVELOPE = ("format", "version", "kind", "sha256", COEFFICIENTS)
EDITED = "the file was changed after it was written: get it again from its publisher"
# Of a manifest: its bytes, the brackets and commas in it, and how deep it is nested.
MOST_TEXT, MOST_MARKS, MOST_NESTED = 2**24, 2 * 10**6, 256
TOO_MUCH_TEXT = f"its manifest has more than {MOST_TEXT:,} bytes, far more than any has"
MOST_SHOWN = 300
# Doubles in C order, the one kind of array there is: their type, and the start of their files.
LITTLE_ENDIAN = np.dtype("<f8")
NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '<f8', 'fortran_order': False, 'shape': \((?P<shape>[0-9, ]{0,1000})\), \} *\n",
    re.DOTALL,
)
NPY_START = 10
# What readers of trees raise for what they cannot read.
DAMAGE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)

# What a member consists of, one after the other.
Parts = list[bytes | memoryview]
Contents = TypeVar("Contents")
# Keeps an array, and returns the name by which the manifest speaks of it.
Store = Callable[[Array], Any]
# Returns the array of a name.
Load = Callable[[str], Array]


class ReleaseFileError(ValueError):
    """A file that is no release, or no longer one."""


def bundle_bytes(*, kind: str, tree: Callable[[Store], dict[str, Any]]) -> bytes:
    """Return the content of a file; equal releases have equal files.

    Parameters
    ----------
    kind : str
        What the file holds.
    tree : callable
        Given a way to keep arrays, returns the manifest's own entries.

    Examples
    --------
    >>> content = bundle_bytes(kind="statistics", tree=lambda stored: {"a": stored(np.arange(3.0))})
    >>> zipfile.ZipFile(io.BytesIO(content)).namelist()
    ['array_0.npy', 'manifest.json', 'manifest.sha256']
    """
    arrays: dict[str, Parts] = {}
    names: dict[str, str] = {}

    def stored(array: Array) -> str:
        parts = _array_parts(array)
        # Arrays that are alike, as the inducing inputs of several priors are, are kept once.
        name = names.setdefault(_digest(*parts), f"array_{len(arrays)}.npy")
        arrays[name] = parts
        return name

    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, **tree(stored)}
    manifest["sha256"] = {name: _digest(*parts) for name, parts in arrays.items()}
    text = json.dumps(manifest, indent=1).encode()
    members: dict[str, Parts] = {
        **arrays,
        MANIFEST: [text],
        MANIFEST_DIGEST: [_digest(text).encode()],
    }
    sizes = {name: sum(map(len, parts)) for name, parts in members.items()}
    # Larger ones are not packed, so that their own size tells a reader how much to expect.
    small = sum(sizes.values()) <= ALWAYS_BYTES
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as bundle:
        for name, parts in members.items():
            # A fixed date: equal releases are equal files.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.file_size = sizes[name]
            entry.compress_type = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            with bundle.open(entry, "w") as member:
                for part in parts:
                    member.write(part)
    return content.getvalue()


def read_bundle(
    path: str | Path,
    *,
    kind: str,
    parse: Callable[[dict[str, Any], Load], Contents],
    max_bytes: int | None = None,
) -> Contents:
    """Read and check a file.

    Parameters
    ----------
    path : str or Path
    kind : str
        What it must hold.
    parse : callable
        Given the manifest's own entries and a way to get arrays, each of them once, returns the
        contents.
    max_bytes : int, optional
        The most that the file may unpack to. If not given, a hundred times its size, but at least
        256 MiB and at most 8 GiB.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not such a file, is too large, damaged, edited or newer, or `parse` objects.
    """

    def contents(members: Members) -> Contents:
        manifest = _manifest(members)
        if manifest["kind"] != kind:
            raise ReleaseFileError(
                f"this is a release of {manifest['kind']}: open it with cloakgp.load"
            )
        entries = {name: entry for name, entry in manifest.items() if name not in ENVELOPE}
        return parse(entries, _arrays(members, manifest))

    return _read(path, contents, max_bytes=max_bytes)


def kind_of(path: str | Path, *, max_bytes: int | None = None) -> str:
    """Return the stated kind of a release file.

    Parameters
    ----------
    path : str or Path
    max_bytes : int, optional
        The most that the file may unpack to; see `read_bundle`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not a release file.
    """
    return _read(path, lambda members: str(_manifest(members)["kind"]), max_bytes=max_bytes)


def _read(
    path: str | Path, contents: Callable[[Members], Contents], *, max_bytes: int | None
) -> Contents:
    with _objections(path), open_members(path, max_bytes=max_bytes) as members:
        return contents(members)


@contextmanager
def _objections(path: str | Path) -> Iterator[None]:
    """Put every objection to a file into words."""
    try:
        # Numbers that overflow or are none fail the checks, which say it better.
        with np.errstate(all="ignore"):
            yield
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no file {path}") from None
    except NotZipError:
        raise ReleaseFileError(
            f"{path} is not a release file, or was cut off: get it again from its publisher"
        ) from None
    except (ReleaseFileError, RefusedError) as error:
        raise ReleaseFileError(f"{path}: {_shortened(error)}") from None
    except MemoryError:
        raise ReleaseFileError(f"{path} needs more memory than there is") from None
    except DAMAGE as error:
        raise ReleaseFileError(f"{path} is damaged: {_shortened(error)}") from error


def _shortened(error: Exception) -> str:
    """Return the message of an error, shortened: it may quote any part of a file."""
    message = str(error)
    return message if len(message) <= MOST_SHOWN else f"{message[:MOST_SHOWN]} …"


def _manifest(members: Members) -> dict[str, Any]:
    """Return the manifest, after all checks that need no meaning."""
    foreign = "this is not a cloakgp release file"
    sizes = members.sizes
    if MANIFEST not in sizes or MANIFEST_DIGEST not in sizes:
        raise ReleaseFileError(foreign)
    if sizes[MANIFEST] > MOST_TEXT:
        raise ReleaseFileError(TOO_MUCH_TEXT)
    text = bytes(members.read(MANIFEST))
    manifest = _tree(text)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReleaseFileError(foreign)
    version = manifest["version"]
    if type(version) is not int:
        raise ReleaseFileError("its version is damaged")
    if version != FORMAT_VERSION:
        advice = "install a newer cloakgp" if version > FORMAT_VERSION else "have it made anew"
        raise ReleaseFileError(
            f"the file has format version {version} and this package reads version "
            f"{FORMAT_VERSION}: {advice}"
        )
    if not isinstance(manifest.get("kind"), str):
        raise ReleaseFileError("its kind is damaged")
    digest = _digest(text).encode()
    if sizes[MANIFEST_DIGEST] != len(digest) or members.read(MANIFEST_DIGEST) != digest:
        raise ReleaseFileError(EDITED)
    listed = set(manifest["sha256"])
    if not listed <= set(sizes):
        raise ReleaseFileError(EDITED)
    if set(sizes) != {MANIFEST, MANIFEST_DIGEST} | listed:
        raise ReleaseFileError("the file holds something that its manifest does not list")
    return manifest


def _tree(text: bytes) -> Any:
    """Return the value of JSON, unless it is too large or too deep."""
    if len(text) > MOST_TEXT:
        raise ReleaseFileError(TOO_MUCH_TEXT)
    # Without what is escaped, quotation marks open and close in turn.
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(plain, dtype=np.uint8)
    marks = marks[~np.logical_xor.accumulate(marks == ord('"'))]
    opening = (marks == ord("[")) | (marks == ord("{"))
    closing = (marks == ord("]")) | (marks == ord("}"))
    if np.count_nonzero(opening | closing | (marks == ord(","))) > MOST_MARKS:
        raise ReleaseFileError("its manifest has far more entries than any has")
    steps = opening.astype(np.int8) - closing.astype(np.int8)
    if steps[steps != 0].cumsum(dtype=np.int64).max(initial=0) > MOST_NESTED:
        raise ReleaseFileError("its manifest is nested far deeper than any is")
    return json.loads(text.decode())


def _arrays(members: Members, manifest: dict[str, Any]) -> Load:
    """Return a way to get arrays. Each is made once, however often it is named."""
    payloads = {}
    for name, digest in manifest["sha256"].items():
        payloads[name] = members.read(name)
        if _digest(payloads[name]) != digest:
            raise ReleaseFileError(EDITED)
    longest = sum(map(len, payloads.values()))
    made: dict[str, Array] = {}

    def loaded(name: str) -> Array:
        if name not in payloads:
            raise ReleaseFileError(EDITED)
        if name not in made:
            made[name] = _array(payloads[name], longest=longest)
        return made[name]

    return loaded


def _array_parts(array: Array) -> Parts:
    """Return a .npy file, without copying the numbers."""
    numbers = np.ascontiguousarray(array, dtype=LITTLE_ENDIAN)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(numbers))
    # Arrays without entries cannot be cast.
    return [header.getvalue(), numbers.data.cast("B") if numbers.size else b""]


def _array(payload: bytearray, *, longest: int) -> Array:
    """Return the numbers of a .npy file, in place.

    Its header is not parsed as Python, as numpy would: it must be such as `_array_parts` writes.

    Parameters
    ----------
    payload : bytearray
    longest : int
        The most that any dimension can be, even where another is 0.
    """
    header = NPY_HEADER.match(payload)
    if header is None or int.from_bytes(header["length"], "little") != header.end() - NPY_START:
        raise ReleaseFileError("an array is written in another way")
    shape = tuple(int(part) for part in header["shape"].split(b",") if part)
    entries = (len(payload) - header.end()) / LITTLE_ENDIAN.itemsize
    if math.prod(shape) != entries or max(shape, default=0) > longest:
        raise ReleaseFileError("an array has another size than it says")
    numbers = np.frombuffer(payload, dtype=LITTLE_ENDIAN, offset=header.end())
    array: Array = numbers.reshape(shape).astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise ReleaseFileError("an array is not of finite numbers")
    return array


def _digest(*parts: bytes | bytearray | memoryview) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
