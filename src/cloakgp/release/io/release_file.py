"""Release files: the container, the codec, and what files of earlier versions held."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release.io.bundle import (
    TEXT_FORMAT,
    TEXT_FORMAT_VERSION,
    TEXT_KIND,
    Load,
    ReleaseFileError,
    Store,
    bundle_bytes,
    read_bundle,
    read_text,
)
from cloakgp.release.io.codec import Reader, to_tree
from cloakgp.release.io.upgrade import current_tree, tree_of_text

RELEASE = "one output"

Read = TypeVar("Read")


def to_bytes(release: object, *, kind: str) -> bytes:
    """Return the file of a release.

    Parameters
    ----------
    release : dataclass
    kind : str
        What the file says that it holds.
    """

    def tree(stored: Store) -> dict[str, Any]:
        entries: dict[str, Any] = to_tree(release, stored=stored)
        return entries

    return bundle_bytes(kind=kind, tree=tree)


def read(
    path: str | Path,
    made: type[Read],
    *,
    kind: str,
    kernels: tuple[type[Kernel], ...] = (),
    max_bytes: int | None = None,
) -> Read:
    """Read and check a release.

    Parameters
    ----------
    path : str or Path
    made : type
        Of the release, a dataclass.
    kind : str
    kernels : tuple of kernel classes
    max_bytes : int, optional
        See `read_bundle`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If it is not such a release, is damaged, edited or newer, or does not keep its guarantee.
    """

    def parse(manifest: dict[str, Any], loaded: Load) -> Read:
        return Reader(loaded=loaded, kernels=kernels).read(current_tree(manifest), made)

    def parse_text(manifest: dict[str, Any]) -> Read:
        if (manifest["format"], manifest["version"]) != (TEXT_FORMAT, TEXT_FORMAT_VERSION):
            raise ReleaseFileError("unknown format or version")
        tree, arrays = tree_of_text(manifest)
        return Reader(loaded=arrays.__getitem__).read(tree, made)

    if kind == TEXT_KIND:
        release = read_text(path, parse=parse_text)
        if release is not None:
            return release
    return read_bundle(path, kind=kind, parse=parse, max_bytes=max_bytes)
