"""Errors of the ledger: what it refuses, and what it finds wrong with itself."""

from __future__ import annotations

from cloakgp.privacy.spending import SpendingError


class LedgerError(SpendingError):
    """The ledger cannot do what was asked; nothing was drawn for it."""


class LimitError(LedgerError):
    """The limit of an account leaves no room."""


class DamagedLedgerError(LedgerError):
    """The ledger is not what was written: edited, cut, or an older copy of itself."""
