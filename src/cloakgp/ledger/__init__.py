"""Ledger: accounts of spent budgets, with limits that refuse further spending."""

from cloakgp.ledger.accounts import Account, Standing
from cloakgp.ledger.audit import Audit
from cloakgp.ledger.errors import DamagedLedgerError, LedgerError, LimitError
from cloakgp.ledger.ledger import Ledger

__all__ = [
    "Account",
    "Audit",
    "DamagedLedgerError",
    "Ledger",
    "LedgerError",
    "LimitError",
    "Standing",
]
