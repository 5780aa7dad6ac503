"""Files of releases that do not fit together, as somebody could write them."""

from __future__ import annotations

from cloakgp.release.io.bundle import bundle_bytes
from cloakgp.release.io.codec import to_tree


def write_forged(release, path):
    """Write the fields of a release to a file, without computing what follows from them."""
    path.write_bytes(
        bundle_bytes(kind=release.kind, tree=lambda stored: to_tree(release, stored=stored))
    )
