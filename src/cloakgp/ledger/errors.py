"""Errors of the ledger."""

from __future__ import annotations

from cloakgp.privacy.spending import ClosedChargeError, SpendingError


class LedgerError(SpendingError):
    """The ledger refuses a call, or fails; nothing was drawn for it."""


class LimitError(LedgerError):
    """The limit of an account leaves no room."""


class ClosedByAnotherError(LedgerError, ClosedChargeError):
    """A charge was closed by another person while its call ran."""


class OtherChoicesError(LedgerError):
    """A key belongs to a release with other choices."""


class DamagedLedgerError(LedgerError):
    """The ledger was edited or cut, or is an older copy of itself."""


class PrivateInputError(LedgerError):
    """Public inputs are attached to the account as private columns.

    Attributes
    ----------
    names : tuple of str
        Of the inputs.
    """

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class OthersColumnError(PrivateInputError):
    """Public inputs are private columns of the account that are not the caller's own.

    Its message names none of them, and ``names`` are for auditors.
    """
