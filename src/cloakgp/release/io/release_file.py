"""Files of releases that are dataclasses: the container, the codec, and what older files held."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release.io.bundle import FIRST_VERSION, Load, Store, bundle_bytes, read_bundle
from cloakgp.release.io.codec import Reader, to_tree
from cloakgp.release.io.upgrade import upgraded

RELEASE = "one output"
# What every manifest says beside what its release holds.
ENVELOPE = ("format", "version", "kind", "sha256")

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
        if manifest["version"] == FIRST_VERSION:
            tree = upgraded(manifest)
        else:
            tree = {name: entry for name, entry in manifest.items() if name not in ENVELOPE}
        return Reader(loaded=loaded, kernels=kernels).read(tree, made)

    return read_bundle(path, kind=kind, parse=parse, max_bytes=max_bytes)
