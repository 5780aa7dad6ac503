"""Metadata that depends on where a distribution is published: addresses, and the README's links.

The README's links go to files beside it, which an index does not have. With CLOAKGP_REPOSITORY, the
address of the repository (``https://HOST/OWNER/NAME``), they become links to the files of this
version there. Without it no address is made up: links become their text, and pictures what they
show.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "CLOAKGP_REPOSITORY"
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)#\s]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)#\s]+)((?:#[\w-]+)?)\)")
# The papers, wherever the package is published.
ALWAYS = {
    "Paper of 2018": "https://arxiv.org/abs/1606.00720",
    "Paper of 2021": "https://jmlr.org/papers/v22/19-017.html",
}


def addresses(repository: str, *, version: str) -> dict[str, str]:
    """Return the addresses that an index shows."""
    if not repository:
        return dict(ALWAYS)
    files = f"{repository}/blob/v{version}"
    return {
        "Repository": repository,
        "Changes": f"{files}/CHANGELOG.md",
        "Security": f"{files}/SECURITY.md",
        **ALWAYS,
    }


def readable_alone(text: str, *, repository: str, version: str) -> str:
    """Return the README as it can be read away from its files."""
    if not repository:
        return LINK.sub(r"\1", PICTURE.sub(r"*Picture: \1.*", text))
    files, raw = (f"{repository}/{kind}/v{version}" for kind in ("blob", "raw"))
    text = PICTURE.sub(rf"![\1]({raw}/\2)", text)
    return LINK.sub(rf"[\1]({files}/\2\3)", text)


class PublishedMetadata(MetadataHookInterface):
    """Fills in ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill them in."""
        repository = os.environ.get(REPOSITORY, "").rstrip("/")
        if repository and not repository.startswith("https://"):
            raise ValueError(f"{REPOSITORY} must begin with https://, got {repository}")
        root = Path(self.root)
        source = (root / "src" / "cloakgp" / "__init__.py").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "(.+)"$', source, re.M)
        assert found is not None
        version = found.group(1)
        metadata["urls"] = addresses(repository, version=version)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readable_alone(
                (root / "README.md").read_text(encoding="utf-8"),
                repository=repository,
                version=version,
            ),
        }
