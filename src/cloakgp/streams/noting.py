"""Noting: what is about to be drawn, written to the disk between its reservation and its draw.

So whoever finds the notes after a crash knows whether noise may have been drawn: where nothing is
noted, nothing was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloakgp.privacy.spending import Budget, Charge, Cost, Keeper, Spender


@dataclass(frozen=True)
class NotingKeeper:
    """A keeper that notes every draw before it is made, beside another keeper.

    Attributes
    ----------
    note : callable
        Called with the cost of each draw; what it writes must be on the disk when it returns.
    inner : Keeper or None
        That in force around it, which reserves first.
    """

    note: Callable[[Cost], None]
    inner: Keeper | None = None

    def open_charge(self, spender: Spender) -> NotedCharge:
        """Begin to count a call."""
        charge = None if self.inner is None else self.inner.open_charge(spender)
        return NotedCharge(note=self.note, inner=charge)


@dataclass(frozen=True)
class NotedCharge:
    """The charge of one call, every draw of which is noted."""

    note: Callable[[Cost], None]
    inner: Charge | None

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold budgets in the other keeper's account."""
        if self.inner is not None:
            self.inner.hold(budgets)

    def reserve(self, cost: Cost) -> None:
        """Reserve the cost of a draw in the other keeper's account, and note it."""
        if self.inner is not None:
            self.inner.reserve(cost)
        self.note(cost)

    def drawn(self, digest: str | None) -> None:
        """Record a draw in the other keeper's account."""
        if self.inner is not None:
            self.inner.drawn(digest)

    def close(self, *, failed: bool) -> None:
        """Close the other keeper's charge."""
        if self.inner is not None:
            self.inner.close(failed=failed)
