"""Older copies of a ledger, which are put back by the book."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

from cloakgp.ledger import Ledger


def keep_copy(path, kept):
    """Keep a copy of the file of a ledger as it is now."""
    with closing(sqlite3.connect(path)) as there, closing(sqlite3.connect(kept)) as copy:
        there.backup(copy)


def put_back(path, kept, *, before_reconciling=None):
    """Return the ledger of a file after a copy of it was put back, recovered and reconciled."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(kept, path)
    ledger = Ledger(path)
    ledger.recover(reason="a disk failed")
    if before_reconciling is not None:
        before_reconciling(ledger)
    ledger.reconcile(reason="no release was made since")
    return ledger
