"""Noting: the cost of every draw, on the disk before it is made, and its answers right afterwards.

So whoever finds the notes after a crash knows whether noise may have been drawn: where nothing is
noted, nothing was. A note is written before another keeper reserves, too: that keeper knows of no
draw of which there is no note, unless somebody else made it. And where the answers of all noted
draws are there, which are noisy and may be published, the call can be made again with the same
answers: nothing is drawn twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.spending import Budget, Charge, Cost, Keeper, Spender, SpendingError


class OtherDrawError(SpendingError):
    """A release cannot be made again with the answers that were drawn for it."""


@dataclass
class Notes:
    """The draws of one release.

    Attributes
    ----------
    note : callable
        Called with the cost of each draw before it is made; what it writes must be on the disk when
        it returns.
    keep : callable
        Called with the answers of all draws so far after each; the same holds.
    costs : sequence of Cost
        Of the draws that were made before.
    answers : list of array of int
        Their answers, and those of further ones.
    forget : callable
        Called if the draw that was noted last was refused, and not made.
    counted : int, optional
        How many of the draws before an account counts already, all by default. An older copy of a
        ledger may have been put back since: the others are reserved again when they are recalled.
    """

    note: Callable[[Cost], None]
    keep: Callable[[Sequence[NDArray[np.int64]]], None]
    costs: Sequence[Cost] = ()
    answers: list[NDArray[np.int64]] = field(default_factory=list, repr=False)
    forget: Callable[[], None] = lambda: None
    counted: int | None = None
    _next: int = 0

    @property
    def uncounted(self) -> bool:
        """Whether no account counts the draw that was recalled last."""
        return self.counted is not None and self._next > self.counted

    def recall(self, cost: Cost) -> NDArray[np.int64] | None:
        """Return the answers of the next draw, None if it was not made before.

        Raises
        ------
        OtherDrawError
            If another draw was made then.
        """
        if self._next == len(self.costs):
            return None
        if self.costs[self._next] != cost:
            raise OtherDrawError(
                "other questions come out than before: their answers are not known, and no others "
                "are drawn"
            )
        self._next += 1
        return self.answers[self._next - 1]

    def add(self, published: NDArray[np.int64]) -> None:
        """Keep the answers of a draw."""
        self.answers.append(published)
        self.keep(self.answers)


@dataclass(frozen=True)
class NotingKeeper:
    """A keeper that notes every draw, beside another keeper.

    Attributes
    ----------
    notes : Notes
    inner : Keeper or None
        That in force around it, which reserves when the draw is noted.
    """

    notes: Notes
    inner: Keeper | None = None

    def open_charge(self, spender: Spender) -> NotedCharge:
        """Begin to count a call."""
        charge = None if self.inner is None else self.inner.open_charge(spender)
        return NotedCharge(notes=self.notes, inner=charge)


@dataclass(frozen=True)
class NotedCharge:
    """The charge of one call, every draw of which is noted."""

    notes: Notes
    inner: Charge | None

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold budgets in the other keeper's account."""
        if self.inner is not None:
            self.inner.hold(budgets)

    def recall(self, cost: Cost) -> NDArray[Any] | None:
        """Return the answers of the next draw, if it was made before, and is counted."""
        made_before = self.notes.recall(cost)
        if made_before is not None and self.notes.uncounted and self.inner is not None:
            self.inner.reserve(cost)
        return made_before

    def reserve(self, cost: Cost) -> None:
        """Note the cost of a draw, and reserve it in the other keeper's account."""
        self.notes.note(cost)
        if self.inner is None:
            return
        try:
            self.inner.reserve(cost)
        except BaseException:
            self.notes.forget()
            raise

    def keep(self, published: NDArray[Any]) -> None:
        """Keep the answers of a draw."""
        self.notes.add(published)

    def drawn(self, digest: str | None) -> None:
        """Record a draw in the other keeper's account."""
        if self.inner is not None:
            self.inner.drawn(digest)

    def close(self, *, failed: bool) -> None:
        """Close the other keeper's charge."""
        if self.inner is not None:
            self.inner.close(failed=failed)


class ClosedKeeper:
    """A keeper of an account in which nothing more is drawn for a release."""

    def open_charge(self, spender: Spender) -> ClosedCharge:
        """Begin a call that draws nothing."""
        del spender
        return ClosedCharge()


class ClosedCharge:
    """The charge of a call that draws nothing: what it needs was drawn, and is counted."""

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold nothing: it is counted already."""

    def reserve(self, cost: Cost) -> None:
        """Refuse a draw.

        Raises
        ------
        OtherDrawError
        """
        del cost
        raise OtherDrawError("the account has closed this release: nothing more is drawn for it")

    def drawn(self, digest: str | None) -> None:
        """Record nothing."""

    def close(self, *, failed: bool) -> None:
        """Close nothing."""
