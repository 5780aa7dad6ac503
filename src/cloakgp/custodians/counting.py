"""Counting at a site: every question is charged before its noise is drawn, and once.

The plan's own budget is a limit that no site goes beyond: what was opened, what may be opened still
and the new question add up to no more. The rule by which they add up is settled before the first
draw: all questions of a plan have one kind of noise, and each kind has one rule
(`cloakgp.privacy.filters`). Beside it a ledger may count, under a key of each question and its
request: its charge is open from before the draw until the mask is opened, and then committed. A
question that is void before that has told nothing, and will not: its charge is voided. The sum of
all answers, which the release holds, is noted with the charge when all masks are open.

A person may void a charge while its mask is closed, and an older copy of the ledger may not have
it. So whatever is sent of a question is sent while the ledger counts it: where its charge was
voided, nothing is sent, and where it is missing, its cost is reserved anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.filters import Amount, filter_of
from cloakgp.privacy.spending import (
    Budget,
    Charge,
    Cost,
    Keeper,
    Spender,
    SpendingError,
    Unit,
    digest_of,
)
from cloakgp.utils.formatting import pair_in_words

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger
    from cloakgp.ledger.accounts import Account

# Why a question whose mask is closed costs nothing.
BEGUN_AGAIN = "a site dropped out before any mask of this question was opened, and none will be"
EXCHANGED = "nothing was drawn for this question, and another one is answered in its place"
LEFT = "this site left before it opened its mask of this question, and will not open it"

# Why nothing is sent of a question for which noise was drawn.
VOIDED = (
    "the ledger's charge of this question was voided, by the word of a person that nobody sees "
    "what was drawn for it: nothing more of it is sent. Leave (--leave, Site.leave), and agree on "
    "another plan"
)
MISSING = "the ledger has no charge of this question any more: nothing more of it is sent"
# Why nothing is drawn for a question that is not in the journal.
ANSWERED_ELSEWHERE = (
    "the ledger counts this question, and this site's folder has no note of it: noise was drawn "
    "from another copy of the folder, and a second answer would go uncounted. Nothing was drawn: "
    "go on with that copy; or leave (--leave, Site.leave), and agree on another plan"
)


@dataclass(frozen=True)
class SiteKeeper:
    """A keeper of one question, beside another keeper.

    Attributes
    ----------
    spent : tuple of Cost
        Of all other questions.
    limit : (float, float)
        The plan's budget.
    noted : Cost or None
        What the journal says that this request costs, if it is charged already.
    note : callable
        Writes the question's cost into the journal.
    keep : callable
        Writes the hidden answer.
    account : Account or None
        Of a ledger, with the question's key.
    inner : Keeper or None
        That in force, if there is no account.
    """

    spent: tuple[Cost, ...]
    limit: Budget
    noted: Cost | None
    note: Callable[[Cost], None]
    keep: Callable[[NDArray[np.int64]], None]
    account: Account | None = None
    inner: Keeper | None = None

    def open_charge(self, spender: Spender) -> SiteCharge:
        """Begin to count a question."""
        charged = self.noted is not None and self.account is None
        inner: Charge | None = None
        if self.account is not None:
            known = self.account.find(str(self.account.key))
            if known is not None and not known.open:
                raise SpendingError(
                    "the ledger has closed the charge of this question: nothing is drawn for it"
                )
            charged = known is not None and known.drawn
            resumed = None if known is None else known.number
            inner = replace(self.account, resumed=resumed).open_charge(spender)
        elif self.inner is not None and not charged:
            inner = self.inner.open_charge(spender)
        return SiteCharge(keeper=self, inner=inner, charged=charged)


@dataclass
class SiteCharge:
    """The charge of one question.

    Attributes
    ----------
    keeper : SiteKeeper
    inner : Charge or None
    charged : bool
        Whether its cost is reserved.
    """

    keeper: SiteKeeper
    inner: Charge | None
    charged: bool
    _kept: bool = False

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold nothing: a question is one draw."""

    def recall(self, cost: Cost) -> NDArray[Any] | None:
        """Return nothing: what was kept is sent again without a call."""

    def reserve(self, cost: Cost) -> None:
        """Reserve the cost in the ledger, and note it.

        Raises
        ------
        SpendingError
            If it is beyond the plan's budget, has another kind of noise than questions before it,
            costs otherwise than was noted, or the ledger refuses.
        """
        if self.keeper.noted not in (None, cost):
            raise SpendingError(
                "this question was charged at another price: go on with the version of this "
                "package with which it was begun"
            )
        if not _are_of_one_kind(*self.keeper.spent, cost):
            raise SpendingError(
                "this question has another kind of noise than those before it: nothing was drawn"
            )
        if not _has_room(self.keeper.limit, *self.keeper.spent, cost):
            raise SpendingError(
                "this question and those before it are more than the plan's budget: nothing was "
                "drawn"
            )
        if self.inner is not None and not self.charged:
            self.inner.reserve(cost)
        self.charged = True
        self.keeper.note(cost)

    def keep(self, published: NDArray[Any]) -> None:
        """Keep the hidden answer."""
        self.keeper.keep(published)
        self._kept = True

    def drawn(self, digest: str | None) -> None:
        """Note the digest of what is sent; an account has it when the mask is opened."""
        if self.inner is not None and self.keeper.account is None:
            self.inner.drawn(digest)

    def close(self, *, failed: bool) -> None:
        """Close the charge of another keeper; that of an account stays open until the mask is."""
        if self.inner is None:
            return
        # What was reserved and not drawn is drawn by the next try, under the same charge.
        if self.keeper.account is None or (failed and not self.charged):
            self.inner.close(failed=failed)


@dataclass
class JointCount:
    """Counting of sites of one process in the charge of the call that asks them.

    A question costs everybody what one site's answer costs, which holds for the sum of all: a row
    is at one site, and a person who may be at several is counted at all of them in the cost of
    each answer. So it is reserved once.
    """

    _reserved: list[Cost] = field(default_factory=list)
    _answered: Counter[str] = field(default_factory=Counter)

    def keeper_of(self, charge: Charge, *, site: str) -> JointKeeper:
        """Return the keeper of a site's answers."""
        return JointKeeper(self, charge=charge, site=site)

    def reserve(self, cost: Cost, *, charge: Charge, site: str) -> None:
        """Reserve the cost of a site's next answer, unless another site's answer did."""
        number = self._answered[site]
        # Those who are at one site are told apart from others where draws are told, not here.
        cost = replace(cost, cohort=0)
        if self._reserved[number : number + 1] != [cost]:
            charge.reserve(cost)
        if number == len(self._reserved):
            self._reserved.append(cost)
        self._answered[site] += 1


@dataclass(frozen=True)
class JointKeeper:
    """A keeper of one site's answers (`JointCount`)."""

    count: JointCount
    charge: Charge
    site: str

    def open_charge(self, spender: Spender) -> JointCharge:
        """Begin to count an answer; whom it protects is said of the whole."""
        del spender
        return JointCharge(self)


@dataclass(frozen=True)
class JointCharge:
    """The charge of one answer, a part of a charge."""

    keeper: JointKeeper

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold nothing: the whole does."""

    def reserve(self, cost: Cost) -> None:
        """Reserve the cost of the answer."""
        self.keeper.count.reserve(cost, charge=self.keeper.charge, site=self.keeper.site)

    def drawn(self, digest: str | None) -> None:
        """Record nothing of an answer that is hidden."""

    def close(self, *, failed: bool) -> None:
        """Close nothing: the whole is open."""


def _are_of_one_kind(*costs: Cost) -> bool:
    return len({each.mechanism for each in costs}) <= 1


def _has_room(limit: Budget, *costs: Cost) -> bool:
    """Return whether questions are within a budget, each of which earlier answers may have chosen.

    They have one kind of noise, and each kind one rule: who may choose between two after an answer
    gets more than either allows. Those with Gaussian noise take the budget whole, as one charge of
    an account may; of others the filter decides, but for a first one that takes all.
    """
    if not _are_of_one_kind(*costs):
        return False
    rule, total = filter_of(limit), sum(map(Amount.of, costs), start=Amount())
    if total.gaussian:
        return rule.takes_whole(total, draws=len(costs))
    return rule.accepts(total) or (len(costs) <= 1 and rule.takes_whole(total))


def check_unnoted(account: Account, *, choices: str) -> None:
    """Refuse a question of which a site has no note, and the ledger a charge with noise drawn.

    A question is noted before it is charged, so that another copy of the site's folder charged it;
    or another site of the same account, with other choices, whose charge counts for both. Where
    that charge was voided, the copy's answer may be with others all the same, and a second one
    would go by the same masks.

    Parameters
    ----------
    account : Account
        With the question's key.
    choices : str
        Those of the charge if this site opened it.

    Raises
    ------
    SpendingError
    """
    from cloakgp.ledger.errors import OtherChoicesError

    try:
        known = account.find(str(account.key), choices=choices)
    except OtherChoicesError:
        return
    if known is not None and known.open and known.drawn:
        raise SpendingError(ANSWERED_ELSEWHERE)
    if known is None and account.is_voided(str(account.key), choices=choices):
        raise SpendingError(VOIDED)


def ensure_charged(account: Account, cost: Cost, *, budget: Budget, unit: Unit = "row") -> None:
    """Make sure that the ledger counts a question for which noise was drawn, or refuse.

    Parameters
    ----------
    account : Account
        With the question's key.
    cost : Cost
        As it was noted before the draw.
    budget : (float, float)
        Of the question.
    unit : {"row", "person"}
        Whom it protects.

    Raises
    ------
    SpendingError
        If its charge was voided; or if the ledger has none, as an older copy of it, and the account
        no room for the cost.
    """
    from cloakgp.ledger.errors import LimitError

    key = str(account.key)
    known = account.find(key)
    if known is not None and known.drawn:
        return
    if known is None and account.is_voided(key):
        raise SpendingError(VOIDED)
    resumed = None if known is None else known.number
    charge = replace(account, resumed=resumed).open_charge(_spender(budget, unit))
    try:
        charge.reserve(cost)
    except LimitError:
        raise SpendingError(
            "noise was drawn for this question, and the ledger has no charge of it, as when an "
            f"older copy of it was put back; the account {account.name!r} has no room for its cost,"
            f" {pair_in_words(*budget)}: nothing more of it is sent"
        ) from None


def commit(
    account: Account, published: NDArray[np.int64], *, budget: Budget, unit: Unit = "row"
) -> None:
    """Commit the charge of a question whose mask is opened, unless it is.

    Parameters
    ----------
    account : Account
        With the question's key.
    published : array of int
        The hidden answer.
    budget : (float, float)
        Of the question.
    unit : {"row", "person"}
        Whom it protects.

    Raises
    ------
    SpendingError
        If the ledger has no charge of it.
    """
    known = account.find(str(account.key))
    if known is None:
        raise SpendingError(MISSING)
    if not known.open:
        return
    charge = replace(account, resumed=known.number).open_charge(_spender(budget, unit))
    charge.drawn(digest_of(published))
    charge.close(failed=False)


def _spender(budget: Budget, unit: Unit) -> Spender:
    epsilon, delta = budget
    return Spender(
        call="ask_share",
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        fingerprint=lambda key: None,  # noqa: ARG005
    )


def note_sum(account: Account, total: NDArray[np.int64]) -> None:
    """Note the digest of the sum of all answers to a question, which the release holds.

    By it an import of the release knows that this account has counted it.

    Parameters
    ----------
    account : Account
        With the question's key.
    total : array of int

    Raises
    ------
    SpendingError
        If the account counts neither the question nor the sum.
    """
    account.note(str(account.key), digest_of(total))
    if not counts_sum(account, total):
        raise SpendingError(MISSING)


def counts_sum(account: Account, total: NDArray[np.int64]) -> bool:
    """Return whether an account counts the sum of all answers, which the release holds.

    With the charge of the question; or with an import of the release, as after an older copy of the
    ledger was put back.

    Parameters
    ----------
    account : Account
    total : array of int
    """
    return account.counts(digest_of(total))


def void(ledger: Ledger, account: Account, *, reason: str) -> None:
    """Void the charge of a question whose mask was not opened, and never will be.

    Parameters
    ----------
    ledger : Ledger
    account : Account
        With the question's key.
    reason : str
    """
    known = account.find(str(account.key))
    if known is not None and known.open:
        ledger.void(known.number, reason=reason, although_drawn=known.drawn)
