"""Places of a ledger's key and anchor: files outside of its database.

Those of SQLite lie beside the database, those of a server in the user's folder. The environment
variable ``CLOAKGP_LEDGER_HOME`` names another folder for both, ``CLOAKGP_LEDGER_KEYS`` and
``CLOAKGP_LEDGER_ANCHORS`` one for each. An anchor protects best on another disk, and a backup of
the database should not have the key with it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from cloakgp.utils.extras import extra

with extra("ledger"):
    from sqlalchemy.engine import URL

HOME, KEYS, ANCHORS = "CLOAKGP_LEDGER_HOME", "CLOAKGP_LEDGER_KEYS", "CLOAKGP_LEDGER_ANCHORS"


def key_file(url: URL) -> Path:
    """Return the place of a ledger's key.

    Parameters
    ----------
    url : sqlalchemy.URL
        From `cloakgp.ledger.engines.parse_url`.
    """
    return _place(url, KEYS, ".key")


def anchor_file(url: URL) -> Path:
    """Return the place of a ledger's anchor.

    Parameters
    ----------
    url : sqlalchemy.URL
        From `cloakgp.ledger.engines.parse_url`.
    """
    return _place(url, ANCHORS, ".anchor")


def _place(url: URL, variable: str, suffix: str) -> Path:
    named = os.environ.get(variable) or os.environ.get(HOME)
    if url.get_backend_name() == "sqlite":
        database = Path(url.database or "")
        folder, name = Path(named) if named else database.parent, database.name
    else:
        folder = Path(named) if named else Path.home() / ".local" / "share" / "cloakgp"
        name = _name_on_server(url)
    return folder / (name + suffix)


def _name_on_server(url: URL) -> str:
    place = (url.host or "localhost", str(url.port or 5432), url.database or "")
    schema = str(url.query.get("options", ""))
    marked = hashlib.sha256(schema.encode()).hexdigest()[:8] if schema else ""
    return "-".join(part.replace("/", "_") for part in (*place, marked) if part)
