"""Golden files in another form: to be run once where a change of classes changes what files hold.

Edit `changed` to make of the entries of a file what is read from now on, and run

    PYTHONPATH=src python tests/data/golden/rewrite.py

The predictions beside the files stay as they are, and so must those of the rewritten releases
(``tests/test_golden.py``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cloakgp import load
from cloakgp.release.io.bundle import (
    COEFFICIENTS,
    Load,
    Store,
    bundle_bytes,
    kind_of,
    read_bundle,
)

ARRAY = re.compile(r"array_\d+\.npy")


def changed(entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a file in the new form."""
    return entries


def stored_again(tree: Any, loaded: Load, stored: Store) -> Any:
    """Return a tree with its arrays moved to another file."""
    if isinstance(tree, dict):
        return {name: stored_again(entry, loaded, stored) for name, entry in tree.items()}
    if isinstance(tree, list):
        return [stored_again(entry, loaded, stored) for entry in tree]
    named = isinstance(tree, str) and ARRAY.fullmatch(tree)
    return stored(loaded(tree)) if named else tree


def rewrite(path: Path) -> None:
    """Write a golden file in the new form."""
    kind = kind_of(path)
    entries, loaded = read_bundle(path, kind=kind, parse=lambda *parts: parts)

    def tree(stored: Store) -> dict[str, Any]:
        made: dict[str, Any] = stored_again(changed(entries), loaded, stored)
        return made

    path.write_bytes(bundle_bytes(kind=kind, tree=tree))
    # What predicts in other languages is computed from the rest.
    release = load(path)

    def whole(stored: Store) -> dict[str, Any]:
        found = release.coefficients(stored=stored, beside=True)
        return tree(stored) | ({} if found is None else {COEFFICIENTS: found})

    path.write_bytes(bundle_bytes(kind=kind, tree=whole))


if __name__ == "__main__":
    for each in sorted(Path(__file__).parent.glob("*.cloak")):
        rewrite(each)
