"""Errors of releases of several custodians."""

from __future__ import annotations

from collections.abc import Sequence


class CustodiansError(ValueError):
    """A release of several custodians cannot be gone on with; nothing more was drawn."""


class WaitingError(CustodiansError):
    """Some sites have not yet done what comes next.

    Attributes
    ----------
    sites : tuple of str
        Their names.
    """

    def __init__(self, sites: Sequence[str], *, to: str) -> None:
        self.sites = tuple(sites)
        super().__init__(waiting_for(self.sites, to=to))


def waiting_for(sites: Sequence[str], *, to: str) -> str:
    """Say for whom others wait.

    Examples
    --------
    >>> waiting_for(["north"], to="join")
    'waiting for north to join'
    """
    return f"waiting for {', '.join(sites)} to {to}"
