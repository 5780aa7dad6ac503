"""A file of a JSON manifest and plain arrays, with checksums: what every release is saved as.

The checksums find damage and careless edits. They are no signature: whoever can write the file can
write its checksums.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cloakgp.arrays import Array

FORMAT = "cloakgp release"
FORMAT_VERSION = 1
MANIFEST, MANIFEST_DIGEST = "manifest.json", "manifest.sha256"
# What a file without this entry holds: files are older than there being kinds.
FIRST_KIND = "regression"
# How to open a file of each kind.
LOADERS = {
    "regression": "cloakgp.Release.load",
    "regression of many rows": "cloakgp.ManyRowsRelease.load",
    "classification": "cloakgp.LabelRelease.load",
    "regression of several outputs": "cloakgp.MultiOutputRelease.load",
    "statistics": "cloakgp.StatisticsRelease.load",
}

Contents = TypeVar("Contents")
# Keeps an array, and returns the name by which the manifest speaks of it.
Store = Callable[[Array], Any]
# Returns the array of a name.
Load = Callable[[str], Array]


class ReleaseFileError(ValueError):
    """A file that is no release, or no longer one."""


def write_bundle(
    path: str | Path, *, kind: str, tree: Callable[[Store], dict[str, Any]], overwrite: bool
) -> None:
    """Write a file in one step: readers see the old file or the new one, never half.

    Parameters
    ----------
    path : str or Path
    kind : str
        What the file holds.
    tree : callable
        Given a way to keep arrays, returns the manifest's own entries.
    overwrite : bool

    Raises
    ------
    FileExistsError
        If the file exists and overwrite is False.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists: choose another name, or allow overwriting")
    arrays: dict[str, Array] = {}

    def stored(array: Array) -> str:
        name = f"array_{len(arrays)}.npy"
        arrays[name] = array
        return name

    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, **tree(stored)}
    payloads = {name: _array_bytes(array) for name, array in arrays.items()}
    manifest["sha256"] = {name: _digest(payload) for name, payload in payloads.items()}
    text = json.dumps(manifest, indent=1).encode()
    payloads |= {MANIFEST: text, MANIFEST_DIGEST: _digest(text).encode()}
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as temporary:
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as bundle:
                for name, payload in payloads.items():
                    # A fixed date: equal releases are equal files.
                    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                    bundle.writestr(entry, payload, compress_type=zipfile.ZIP_DEFLATED)
            temporary.close()
            Path(temporary.name).chmod(0o644)
            Path(temporary.name).replace(target)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def read_bundle(
    path: str | Path, *, kind: str, parse: Callable[[dict[str, Any], Load], Contents]
) -> Contents:
    """Read and check a file.

    Parameters
    ----------
    path : str or Path
    kind : str
        What it must hold.
    parse : callable
        Given the manifest and a way to get arrays, returns the contents.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not such a file, is damaged, edited or newer, or `parse` objects.
    """
    source, payloads = Path(path), _payloads(path)
    try:
        manifest, loaded = _checked(payloads)
        found = manifest.get("kind", FIRST_KIND)
        if found != kind:
            raise ReleaseFileError(
                f"this is a release of {found}: open it with {LOADERS.get(found, 'another loader')}"
            )
        return parse(manifest, loaded)
    except ReleaseFileError as error:
        raise ReleaseFileError(f"{source}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ReleaseFileError(f"{source} is damaged: {error}") from error


def kind_of(path: str | Path) -> str:
    """Return what a release file holds: "regression", "classification" or "statistics".

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not a release file.
    """
    try:
        manifest, _ = _checked(_payloads(path))
    except ReleaseFileError as error:
        raise ReleaseFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ReleaseFileError(f"{path} is damaged: {error}") from error
    return str(manifest.get("kind", FIRST_KIND))


def _payloads(path: str | Path) -> dict[str, bytes]:
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    try:
        with zipfile.ZipFile(source) as bundle:
            return {name: bundle.read(name) for name in bundle.namelist()}
    except (PermissionError, IsADirectoryError):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise ReleaseFileError(
            f"{source} is not a release file, or was cut off: get it again from its publisher"
        ) from error


def _checked(payloads: dict[str, bytes]) -> tuple[dict[str, Any], Load]:
    """Return the manifest and a way to get arrays, after all checks that need no meaning."""
    if MANIFEST not in payloads or MANIFEST_DIGEST not in payloads:
        raise ReleaseFileError("this is not a cloakgp release file")
    manifest = json.loads(payloads[MANIFEST])
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReleaseFileError("this is not a cloakgp release file")
    if manifest["version"] != FORMAT_VERSION:
        raise ReleaseFileError(
            f"the file has format version {manifest['version']} and this package reads version "
            f"{FORMAT_VERSION}: install a newer cloakgp"
        )
    edited = "the file was changed after it was written: get it again from its publisher"
    if _digest(payloads[MANIFEST]).encode() != payloads[MANIFEST_DIGEST]:
        raise ReleaseFileError(edited)
    for name, digest in manifest["sha256"].items():
        if name not in payloads or _digest(payloads[name]) != digest:
            raise ReleaseFileError(edited)

    def loaded(name: str) -> Array:
        if name not in manifest["sha256"]:
            raise ReleaseFileError(edited)
        array = np.lib.format.read_array(io.BytesIO(payloads[name]), allow_pickle=False)
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise ReleaseFileError("an array is not of finite numbers")
        return array

    return manifest, loaded


def _array_bytes(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False
    )
    return buffer.getvalue()


def _digest(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()
