"""A site: it joins a plan, answers questions about its own rows, and opens masks.

Whatever it does is done in the same order: counted, drawn, kept in a folder of its own, sent. A
process may be killed at every moment: what was kept is sent again, and never drawn anew; what was
counted and not kept is drawn under the same charge, as nobody has seen the other. Two answers to
one question would have the same masks, so that there is never a second.

Whoever can write to the exchange can change a file at every moment. Each is read once by a process
(`cloakgp.custodians.exchange.ReadOnce`), so that what was checked is what is gone by, and what was
agreed is noted for the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cloakgp.columns import Schema
from cloakgp.columns.table_schema import schema_to_text
from cloakgp.custodians import counting
from cloakgp.custodians.counting import SiteKeeper
from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.exchange import PLAN, ROSTER, Exchange, ReadOnce, written_before
from cloakgp.custodians.files import (
    COMPLETE,
    REQUEST,
    Complete,
    Hidden,
    Opening,
    answer_of,
    attempt_file,
    inputs_file,
    inputs_to_bytes,
    member_file,
    names_from_bytes,
    opening_of,
    persons_of,
    question_file,
    read_answer,
    read_opening,
)
from cloakgp.custodians.journal import (
    KEY,
    Drawn,
    Journal,
    SiteFolder,
    attempt_of,
    charge_name,
    numbers_of,
    question_key,
)
from cloakgp.custodians.masks import SiteKey, open_sum
from cloakgp.custodians.plan import (
    AGREED_DIGITS,
    Member,
    Plan,
    Roster,
    check_colluding,
    digest_of,
)
from cloakgp.custodians.progress import latest_attempt
from cloakgp.custodians.request import Request
from cloakgp.fitting.passes import Rows
from cloakgp.privacy.ask import ask_share, check_entries
from cloakgp.privacy.entries import MISSING
from cloakgp.privacy.filters import costs_of_release, filter_of
from cloakgp.privacy.spending import Budget, Cost, Unit, counted_by, keeper_in_force
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import pair_in_words
from cloakgp.utils.locks import locked_folder
from cloakgp.utils.names import AUTO
from cloakgp.utils.passes import Chunk

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger
    from cloakgp.ledger.accounts import Account
    from cloakgp.ledger.marks import ReadInputs

BEGINNING = re.compile(f"[0-9a-f]{{{AGREED_DIGITS},64}}")
# What rows call an output that nobody named.
UNNAMED = "y"
# A limit with room for several charges is told as so many times the plan's δ.
ROOMIER = (1.5, 2.0, 3.0, 5.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Public inputs of some chunks, and whose rows they are by numbers of groups."""

    X: Array
    groups: NDArray[np.intp]

    def merge(self, other: _Inputs) -> _Inputs:
        return _Inputs(
            np.concatenate([self.X, other.X]), np.concatenate([self.groups, other.groups])
        )


def _inputs_of(chunk: Chunk) -> _Inputs:
    groups = np.zeros(len(chunk.X), dtype=np.intp) if chunk.groups is None else chunk.groups
    return _Inputs(chunk.X, groups)


def _in_order(X: Array, groups: NDArray[np.intp] | None = None) -> Array:
    """Return what is sent of rows, in an order that is that of the inputs alone.

    A table may be sorted by its output, and ids of persons may be given in its order: inputs in the
    table's order, or numbers in that of ids, would tell which outputs are larger. So rows are
    sorted by their inputs, and persons by those of their rows; whatever is alike in these is sent
    alike.

    Parameters
    ----------
    X : array of shape (n, D)
    groups : array of int, shape (n,), optional
        Whose rows they are.

    Returns
    -------
    array of shape (n, D), or (n, D + 1) with numbers of persons from 0

    Examples
    --------
    >>> _in_order(np.array([[3.0], [1.0], [2.0]]), np.array([9, 4, 9]))
    array([[1., 0.],
           [2., 1.],
           [3., 1.]])
    """
    # −0 and 0 are one number, and two in a file.
    numbers = X + 0.0
    if groups is None:
        return numbers[np.lexsort(numbers.T[::-1])]
    places = np.unique(numbers, axis=0, return_inverse=True)[1].reshape(-1)
    _, persons = np.unique(groups, return_inverse=True)
    persons = persons.reshape(-1)
    by_person = np.lexsort((places, persons))
    ends = np.cumsum(np.bincount(persons))[:-1]
    rows = [tuple(each.tolist()) for each in np.split(places[by_person], ends)]
    number = np.empty(len(rows), dtype=np.intp)
    number[sorted(range(len(rows)), key=rows.__getitem__)] = np.arange(len(rows))
    order = np.lexsort((number[persons], places))
    return np.column_stack([numbers[order], number[persons][order].astype(np.float64)])


def _beginning(given: str) -> str:
    """Return digits of a digest as it is written.

    Raises
    ------
    CustodiansError
        If it is no beginning of a digest, or too short.
    """
    digits = "".join(given.split()).lower()
    if given and not BEGINNING.fullmatch(digits):
        raise CustodiansError(
            f"give {AGREED_DIGITS} digits of the digest or more, 0 to 9 and a to f, got {given!r}"
        )
    return digits


class Site:
    """A custodian of some of the rows.

    Parameters
    ----------
    name : str
        As the plan has it.
    rows : Rows
        Its rows, from `cloakgp.data`: public inputs in the plan's order, and private outputs. With
        groups where the plan protects all rows of a person together.
    exchange : Exchange
        Each of its files is read once: another process finds what was changed.
    folder : str or Path
        Of this site alone, for its key and its journal. Without it nothing can be opened, and with
        it a reader of the exchange can take off this site's masks.
    ledger : Ledger, optional
        Counts every question. A site does not join with public inputs that are private columns of
        the account.
    account : str
        Of the ledger.
    agreed : str
        The first digits of the roster's digest, 40 or more, as all custodians have it by another
        way: nothing is answered to another roster. Whoever has the exchange could put public keys
        of their own in the place of all others, and take this site's masks off.
    plan_agreed : str
        The same of the plan's digest: nothing is sent for another plan. Whoever has the exchange
        could choose the plan before this site joins: its columns, its budget, and sites that are
        none. Names of the rows' columns are compared with it in any case, where rows have names.
    trusts_exchange : bool
        Whether whoever has the exchange is trusted with both. Otherwise a site does not join
        without the plan's digest, and does not answer without the roster's; what was agreed is
        noted, and need not be said again.
    read_inputs : mapping of str to callable, optional
        For the ledger: name of a public column → a function that reads it in all forms in which it
        may have been attached (`cloakgp.ledger.accounts.Account.with_inputs`). If not given, the
        numbers that are sent.
    declared_public : sequence of str
        Public inputs that everybody may know, though a private column of the account has the same
        values.

    Raises
    ------
    CustodiansError
        If what is agreed is no beginning of a digest.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cloakgp import DPGPRegressor
    >>> from cloakgp.custodians import MemoryExchange
    >>> from cloakgp.data import ArrayRows
    >>> exchange = MemoryExchange()
    >>> plan = Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), sites=["north", "south"],
    ...                input_names=["age"])
    >>> exchange.put("plan.json", plan.to_bytes())
    >>> rows = ArrayRows([[1.0], [2.0]], [0.5, 0.6])
    >>> with TemporaryDirectory() as folder:
    ...     Site("north", rows, exchange, folder, plan_agreed=plan.digest).step()
    ('joined',)
    """

    def __init__(
        self,
        name: str,
        rows: Rows,
        exchange: Exchange,
        folder: str | Path,
        *,
        ledger: Ledger | None = None,
        account: str = "",
        agreed: str = "",
        plan_agreed: str = "",
        trusts_exchange: bool = False,
        read_inputs: ReadInputs | None = None,
        declared_public: Sequence[str] = (),
    ) -> None:
        self._agreed = _beginning(agreed)
        self._plan_agreed = _beginning(plan_agreed)
        self._trusts_exchange = trusts_exchange
        self.name = name
        self.folder = SiteFolder(folder)
        self._rows = rows
        self._exchange = ReadOnce.of(exchange)
        self._ledger = ledger
        self._account = account
        self._read_inputs = read_inputs
        self._declared_public = tuple(declared_public)
        # Digests of questions whose sums the ledger knows.
        self._noted = set[str]()

    def step(self) -> tuple[str, ...]:
        """Do whatever comes next, and return what was done; nothing if others come next.

        It joins the plan; answers the question that is there; opens the mask of one that all have
        answered; and notes the sum in the ledger when all have opened theirs. It may be called any
        number of times, from processes one after the other.

        Returns
        -------
        tuple of str
            Of "joined", "answered" and "opened".

        Raises
        ------
        CustodiansError
            If what the coordinator says is not as agreed; then nothing was drawn.
        SpendingError
            If the question is beyond the plan's budget, or that of the ledger's account.
        """
        with self._locked():
            journal = self.folder.load()
            if journal.left:
                raise CustodiansError(
                    "this site has left: it answers nothing, and opens no mask any more"
                )
            self._check_counting(journal)
            plan = self._plan()
            done = [what for what, act in self._acts(plan) if act()]
        return tuple(done)

    def leave(self) -> None:
        """Take part no more, for good: where no release is made, its ledger gets back what it may.

        From then on no question is answered and no mask is opened. A hidden answer without its mask
        is uniformly random whatever it says (`cloakgp.custodians.masks`), so charges of questions
        whose masks are closed are voided. What was opened stays spent.

        Raises
        ------
        CustodiansError
            If another process goes on with the site, or it was counted elsewhere.
        """
        with self._locked():
            journal = self.folder.load()
            self._check_counting(journal)
            self.folder.save(replace(journal, left=True))
            if self._ledger is None:
                return
            opened = {}
            for charge, drawn in journal.charges.items():
                if drawn is None or not drawn.opened:
                    self._void(charge, reason=counting.LEFT)
                else:
                    opened[charge] = drawn
            # A process that opened it may have died before it told the ledger.
            for charge, drawn in opened.items():
                self._settle_opened(charge, drawn)

    def _settle_opened(self, charge: str, drawn: Drawn) -> None:
        """Have the ledger count a question whose mask was opened, when this site leaves."""
        place = numbers_of(charge)
        content, key = self._get(*place, REQUEST), question_key(*place)
        if content is None or digest_of(content) != drawn.request:
            return
        # Voided between the note that it is opened and its opening, which then never came.
        account = self._account_of(charge)
        never_sent = self._get(*place, opening_of(self.name)) is None
        if never_sent and account.is_voided(str(account.key)):
            return
        request = Request.from_bytes(content)
        self._ensure_charged(key, request, drawn)
        self._commit(key, request, digest=drawn.request)

    def _acts(self, plan: Plan) -> Iterator[tuple[str, Callable[[], bool]]]:
        yield "joined", partial(self._join, plan)
        roster = self._roster(plan)
        attempt = None if roster is None else self._attempt(plan, roster)
        if roster is None or attempt is None:
            return
        number, members = 1, tuple(roster.of(name) for name in attempt[1])
        while (content := self._get(attempt[0], number, REQUEST)) is not None:
            place = {"attempt": attempt[0], "number": number}
            request = self._request(content, plan, roster, members=members, **place)
            keys = {each.name: each.key for each in members}
            yield "answered", partial(self._answer, content, request, plan, keys=keys)
            yield "opened", partial(self._open, content, request)
            drawn = self.folder.load().questions.get(question_key(**place))
            if drawn is None or not drawn.opened:
                # The next question comes after this one.
                return
            self._note_sum(request, digest=digest_of(content))
            number += 1

    @cached_property
    def _inputs(self) -> Array:
        """The public inputs, shape (n, D); with groups, and the number of each row's person."""
        found = self._rows.over_inputs(_inputs_of, what="looking at the inputs")
        return _in_order(found.X, found.groups if self._rows.grouped else None)

    @cached_property
    def _digest_of_inputs(self) -> str:
        return digest_of(inputs_to_bytes(self._inputs))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(locked_folder(self.folder.path))
            except BlockingIOError:
                raise CustodiansError(
                    f"another process goes on with the site in {self.folder.path}"
                ) from None
            yield

    def _get(self, attempt: int, number: int, what: str) -> bytes | None:
        return self._exchange.get(question_file(attempt, number, what))

    def _sent(self, name: str, content: bytes) -> bool:
        """Return whether a file is there already, so that nothing is sent again.

        Raises
        ------
        CustodiansError
            If it is there with another content.
        """
        known = self._exchange.get(name)
        if known is not None and known != content:
            raise written_before(name)
        return known is not None

    # What was agreed.

    def _plan(self) -> Plan:
        content = self._exchange.get(PLAN)
        if content is None:
            raise CustodiansError("there is no plan yet")
        plan = Plan.from_bytes(content)
        if not plan.digest.startswith(self._plan_agreed):
            raise CustodiansError("the plan is another than was agreed: nothing was sent")
        if not self._is_bound(self._plan_agreed, noted=self.folder.load().plan):
            raise CustodiansError(
                "it is not said which plan was agreed: compare its digest by another way than the "
                "exchange"
            )
        if self.name not in plan.sites:
            raise CustodiansError(f"{self.name} is none of the sites of the plan")
        names = tuple(self._rows.input_names)
        if names and names != plan.input_names:
            raise CustodiansError(
                f"the plan is about {', '.join(plan.input_names)}, in this order, and the rows "
                f"have {', '.join(names)}"
            )
        if self._rows.n_inputs != len(plan.input_names):
            raise CustodiansError(
                f"the plan is about {len(plan.input_names)} public columns, and the rows have "
                f"{self._rows.n_inputs}"
            )
        if self._rows.grouped != plan.grouped:
            raise CustodiansError(
                "the plan protects all rows of a person together: say whose rows they are"
                if plan.grouped
                else "the plan protects rows, each on its own: leave groups out"
            )
        if plan.grouped:
            self._check_persons(plan)
        found, private = getattr(self._rows, "n_outputs", 1), plan.output_names
        if found != len(private):
            raise CustodiansError(
                f"the plan is about {len(private)} private columns, and the rows have {found}"
            )
        called = tuple(getattr(self._rows, "output_names", ())) or (self._rows.output_name,)
        if called not in (private, (UNNAMED,)):
            raise CustodiansError(
                f"the plan is about {', '.join(private)}, in this order, and the rows have "
                f"{', '.join(called)}"
            )
        schema: Schema | None = getattr(self._rows, "schema", None)
        if schema is not None and schema_to_text(schema) != plan.schema:
            raise CustodiansError(
                "the schema of the rows is another than the plan's, or the plan's leaves something "
                "to each table"
            )
        self._agree("plan", digest_of(content))
        return plan

    @property
    def is_bound_to_roster(self) -> bool:
        """Whether the roster was compared, now or before, or need not be: then it is answered."""
        return self._is_bound(self._agreed, noted=self.folder.load().roster)

    def _is_bound(self, agreed: str, *, noted: str) -> bool:
        """Return whether a plan, or a roster, was compared, now or before, or need not be."""
        return bool(agreed or noted or self._trusts_exchange)

    def _check_persons(self, plan: Plan) -> None:
        """Refuse persons of more rows than the plan allows at one site."""
        most = int(np.bincount(persons_of(self._inputs)).max())
        if most > plan.rows_of_person and hasattr(self._rows, "most_rows_of_person"):
            # Persons who share a number are counted apart.
            most = self._rows.most_rows_of_person()
        if most > plan.rows_of_person:
            raise CustodiansError(
                f"a person has {most} rows at one site, and the plan allows "
                f"{plan.rows_of_person}: leave rows out, or make another plan"
            )

    def _agree(self, what: str, digest: str) -> None:
        """Note a digest, or refuse another than was noted."""
        journal = self.folder.load()
        known = {"plan": journal.plan, "roster": journal.roster}[what]
        if known and known != digest:
            raise CustodiansError(f"the {what} is another than this site agreed to")
        if not known:
            self.folder.save(
                replace(journal, plan=digest) if what == "plan" else replace(journal, roster=digest)
            )

    def _join(self, plan: Plan) -> bool:
        if self._exchange.has(member_file(self.name)) and not (self.folder.path / KEY).exists():
            raise CustodiansError(
                f"{self.name} has joined already, and not from the folder {self.folder.path}: go "
                "on with the one that it joined from, where its key and its answers are"
            )
        journal, member = self.folder.load(), self._member(plan)
        if journal.inputs and journal.inputs != member.inputs:
            raise CustodiansError(
                "the public inputs are others than those with which this site joined"
            )
        if self._sent(member_file(self.name), member.to_bytes()):
            return False
        self._check_public(plan)
        self._check_room(plan)
        # Before anybody hears of this site: later it would tell of a cell by not answering.
        self._check_entries(plan)
        ledger, account = self._counting
        joined = replace(journal, inputs=member.inputs, ledger=ledger, account=account)
        self.folder.save(joined)
        self._exchange.put(inputs_file(self.name), inputs_to_bytes(self._inputs))
        self._exchange.put(member_file(self.name), member.to_bytes())
        return True

    @property
    def _counting(self) -> tuple[str, str]:
        """The ledger that counts, by its id, and the account; empty if none does."""
        if self._ledger is None:
            return "", ""
        return self._ledger.id, self._ledger.account(self._account).name

    def _check_counting(self, journal: Journal) -> None:
        """Refuse to go on without the ledger with which this site joined, or with another."""
        if journal.ledger is None or self._counting == (journal.ledger, journal.account):
            return
        raise CustodiansError(
            f"this site is counted in the account {journal.account!r} of the ledger "
            f"{journal.ledger}: name these again (--ledger, --account), so that all of it is"
            if journal.ledger
            else "this site joined without a ledger: go on without one"
        )

    def _check_entries(self, plan: Plan) -> None:
        """Refuse private cells that are none, by the name of the column."""
        try:
            check_entries(plan.reading.rows(self._rows), plan.question)
        except ValueError as error:
            said = str(error)
        else:
            return
        columns = f"the private {'columns' if plan.more_outputs else 'column'} "
        option = ", or say what empty cells count as (--missing-output)" * said.startswith(MISSING)
        raise CustodiansError(f"{columns}{', '.join(plan.output_names)}: {said}{option}")

    def _member(self, plan: Plan) -> Member:
        """Return this site as it joins the plan: by its own key and rows, whatever others wrote."""
        return Member(
            name=self.name,
            key=SiteKey.kept(self.folder.path / KEY).public,
            rows=len(self._inputs),
            inputs=self._digest_of_inputs,
            plan=plan.digest,
        )

    def _check_public(self, plan: Plan) -> None:
        """Refuse public inputs that are private columns of the ledger's account."""
        if self._ledger is None:
            return
        columns = zip(plan.input_names, self._inputs.T, strict=False)
        sent = {name: partial(list[Array], [column]) for name, column in columns}
        inputs = sent if self._read_inputs is None else self._read_inputs
        account = self._ledger.account(self._account)
        account.with_inputs(inputs, declared_public=self._declared_public).check_inputs()

    def _check_room(self, plan: Plan) -> None:
        """Refuse to join a plan for all of whose questions the ledger has no room.

        Otherwise its first questions would be spent on a release that is never made. Every question
        is a charge, so that several are counted by the filter of the account's limit, which leaves
        less room than one charge may take. Nothing is held: every question is charged when it
        comes.
        """
        if self._ledger is None:
            return
        epsilon, delta = plan.budget
        standing = self._ledger.account(self._account).standing
        if plan.asks_once:
            if standing.releases_left(epsilon, delta, noise=plan.noise):
                return
            more = ""
        else:
            costs = costs_of_release(epsilon, delta, noise=plan.noise)

            def takes(most: float) -> bool:
                rule = filter_of((standing.limit[0], most))
                return all(rule.accepts(standing.spent + cost) for cost in costs)

            if takes(standing.limit[1]):
                return
            more = _limit_in_words(standing.limit, takes, delta=delta)
        raise CustodiansError(
            f"the account {self._account!r} has no room for all questions of the plan, "
            f"{pair_in_words(epsilon, delta)}{more}: this site did not join, and nothing was asked"
        )

    def _roster(self, plan: Plan) -> Roster | None:
        content = self._exchange.get(ROSTER)
        if content is None:
            return None
        roster = Roster.from_bytes(content)
        if roster.of(self.name) != self._member(plan):
            raise CustodiansError("the roster has another entry for this site than it sent")
        roster.check(plan)
        if not roster.digest.startswith(self._agreed):
            raise CustodiansError("the roster is another than was agreed: nothing was answered")
        if not self.is_bound_to_roster:
            # Not before it was compared.
            return None
        self._agree("roster", roster.digest)
        return roster

    def _attempt(self, plan: Plan, roster: Roster) -> tuple[int, tuple[str, ...]] | None:
        """Return the latest attempt and who is asked, after noting that earlier ones are void.

        All that follows goes by these names: how many shares of noise there are, whose masks are
        taken, and how many rows are asked.
        """
        journal = self.folder.load()
        latest = max(journal.attempt, latest_attempt(self._exchange))
        if latest == 0:
            return None
        members = names_from_bytes(self._exchange.get(attempt_file(latest)) or b"")
        check_colluding(plan.colluding, sites=len(set(members)))
        if len(set(members)) < len(members) or not set(members) <= {
            each.name for each in roster.members
        }:
            raise CustodiansError("others are asked than joined, or one twice")
        if latest > journal.attempt:
            journal = replace(journal, attempt=latest)
            self.folder.save(journal)
        if self._ledger is not None:
            for charge, drawn in journal.charges.items():
                if attempt_of(charge) < latest and not (drawn is not None and drawn.opened):
                    self._void(charge, reason=counting.BEGUN_AGAIN)
        return (latest, members) if self.name in members else None

    def _request(
        self,
        content: bytes,
        plan: Plan,
        roster: Roster,
        *,
        members: tuple[Member, ...],
        attempt: int,
        number: int,
    ) -> Request:
        request = Request.from_bytes(content)
        if (
            request.roster != roster.digest
            or (request.attempt, request.number) != (attempt, number)
            or request.members != tuple(each.name for each in members)
        ):
            raise CustodiansError("a question is not about what was agreed")
        rows = sum(each.rows for each in members)
        if request.count != rows * plan.reading.together:
            raise CustodiansError("a question is about another number of rows than all sites have")
        # What is protected together decides how far answers may move, and is the plan's affair.
        protected = request.group_rows is not None, request.places
        if protected != (plan.grouped, plan.sites_of_person):
            raise CustodiansError("a question protects others together than the plan")
        if plan.noise not in (AUTO, request.noise):
            raise CustodiansError("a question has another kind of noise than the plan")
        # A site refuses cells that are none of a question's labels: with labels of the
        # coordinator's choice that would tell which there are. 1 and True are equal, and two of
        # them.
        if repr(request.question.labels) != repr(plan.question.labels):
            raise CustodiansError("a question is about other labels than the plan")
        # Of several outputs, intervals that were found may be their units.
        if replace(request.reading, units=None) != plan.reading:
            raise CustodiansError("a question reads rows otherwise than the plan")
        return request

    # Answers.

    def _answer(
        self, content: bytes, request: Request, plan: Plan, *, keys: dict[str, str]
    ) -> bool:
        name = question_file(request.attempt, request.number, answer_of(self.name))
        key = question_key(request.attempt, request.number)
        digest = digest_of(content)
        drawn = self.folder.load().questions.get(key)
        if drawn is not None and drawn.request != digest:
            raise CustodiansError("a question was changed after this site had answered it")
        kept = self.folder.answer(key)
        if kept is None:
            self._draw(request, plan, keys=keys, digest=digest)
            kept = self.folder.answer(key)
        assert kept is not None
        if self._sent(name, kept):
            return False
        if drawn is not None:
            self._ensure_charged(key, request, drawn)
        self._exchange.put(name, kept)
        return True

    def _draw(self, request: Request, plan: Plan, *, keys: dict[str, str], digest: str) -> None:
        """Count a question, draw its noise, and keep the hidden answer."""
        key = question_key(request.attempt, request.number)
        charge, journal = charge_name(key, digest), self._begin_charge(key, digest)
        drawn = journal.questions.get(key)
        own = SiteKey.kept(self.folder.path / KEY)

        def note(cost: Cost) -> None:
            self.folder.save(journal.with_question(key, Drawn(request=digest, cost=cost)))

        def keep(hidden: NDArray[np.int64]) -> None:
            content = Hidden.of(hidden, request=digest, site=self.name).to_bytes()
            self.folder.keep_answer(key, content)

        keeper = SiteKeeper(
            spent=journal.spent(without=key),
            limit=plan.budget,
            noted=None if drawn is None else drawn.cost,
            note=note,
            keep=keep,
            account=None if self._ledger is None else self._account_of(charge),
            inner=keeper_in_force(),
        )
        with counted_by(keeper):
            ask_share(
                request.reading.rows(self._rows),
                request.columns,
                bound=request.bound,
                question=request.asked,
                epsilon=request.epsilon,
                delta=request.delta,
                count=len(self._inputs) * request.together,
                sharers=len(request.members) - plan.colluding,
                hide=partial(own.hide, site=self.name, keys=keys, question=digest),
            )

    def _begin_charge(self, key: str, digest: str) -> Journal:
        """Note that a ledger may know a question from now on; of another one, that it is void.

        Of a question that was begun and is not in the journal nothing was drawn.
        """
        journal, charge = self.folder.load(), charge_name(key, digest)
        if journal.begun == charge:
            return journal
        if self._ledger is not None:
            counting.check_unnoted(self._account_of(charge), choices=self._choices)
            if journal.charges.get(journal.begun, True) is None:
                self._void(journal.begun, reason=counting.EXCHANGED)
        journal = replace(journal, begun=charge)
        self.folder.save(journal)
        return journal

    def _open(self, content: bytes, request: Request) -> bool:
        """Open the mask of a question that all have answered."""
        key, digest = question_key(request.attempt, request.number), digest_of(content)
        said = self._get(request.attempt, request.number, COMPLETE)
        kept, journal = self.folder.answer(key), self.folder.load()
        drawn = journal.questions.get(key)
        if said is None or kept is None or drawn is None:
            return False
        complete = Complete.from_bytes(said)
        if complete.request != digest or set(complete.answers) != set(request.members):
            raise CustodiansError("not all that were asked have answered")
        if complete.answers[self.name] != digest_of(kept):
            raise CustodiansError("another answer came from this site than it sent")
        self._ensure_charged(key, request, drawn)
        if not drawn.opened:
            self.folder.save(journal.with_question(key, replace(drawn, opened=True)))
        self._commit(key, request, digest=digest)
        own = SiteKey.kept(self.folder.path / KEY)
        name = question_file(request.attempt, request.number, opening_of(self.name))
        opening = Opening(request=digest, site=self.name, seed=own.own_seed(digest).hex())
        if self._sent(name, opening.to_bytes()):
            return False
        self._exchange.put(name, opening.to_bytes())
        return True

    def _ensure_charged(self, key: str, request: Request, drawn: Drawn) -> None:
        """Make sure that the ledger counts what is sent of a question, if one counts, or refuse."""
        account = self._account_to_charge(key, request, digest=drawn.request)
        if account is not None:
            counting.ensure_charged(
                account, drawn.cost, budget=(request.epsilon, request.delta), unit=self._unit
            )

    def _commit(self, key: str, request: Request, *, digest: str) -> None:
        """Commit the charge of a question whose mask is opened, if a ledger counts."""
        kept = self.folder.answer(key)
        account = self._account_to_charge(key, request, digest=digest)
        if account is not None and kept is not None:
            counting.commit(
                account,
                Hidden.from_bytes(kept).integers(count=request.numbers),
                budget=(request.epsilon, request.delta),
                unit=self._unit,
            )

    def _account_to_charge(self, key: str, request: Request, *, digest: str) -> Account | None:
        """Return the account that is to have a charge of a question.

        None if no ledger counts, if this process has seen that one counts the question with its
        sum, or if an import of the release counts it.
        """
        if self._ledger is None or digest in self._noted:
            return None
        account = self._account_of(charge_name(key, digest))
        if account.find(str(account.key)) is None:
            total = self._sum(request, digest=digest)
            if total is not None and counting.counts_sum(account, total):
                return None
        return account

    @property
    def _unit(self) -> Unit:
        return "person" if self._rows.grouped else "row"

    def _note_sum(self, request: Request, *, digest: str) -> None:
        """Note in the ledger what the release holds of a question, once all masks are opened."""
        if self._ledger is None or digest in self._noted:
            return
        total = self._sum(request, digest=digest)
        if total is None:
            return
        key = question_key(request.attempt, request.number)
        counting.note_sum(self._account_of(charge_name(key, digest)), total)
        self._noted.add(digest)

    def _sum(self, request: Request, *, digest: str) -> NDArray[np.int64] | None:
        """Return the sum of all answers to a question; None before all masks are opened.

        It is added up here: what the coordinator says is the sum could be the answers of another
        release, which an import would then take for counted.
        """
        place = partial(self._get, request.attempt, request.number)
        said, seeds, hidden = place(COMPLETE), {}, {}
        for site in request.members:
            answer, opening = place(answer_of(site)), place(opening_of(site))
            if said is None or answer is None or opening is None:
                return None
            if Complete.from_bytes(said).answers.get(site) != digest_of(answer):
                raise CustodiansError(f"the answer of {site} was changed after all had answered")
            hidden[site] = read_answer(answer, site=site, request=digest, count=request.numbers)
            seeds[site] = read_opening(opening, site=site, request=digest)
        return open_sum(hidden, seeds)

    def _void(self, charge: str, *, reason: str) -> None:
        """Void the charge of a question whose mask is never opened, if it is open."""
        assert self._ledger is not None
        counting.void(self._ledger, self._account_of(charge), reason=reason)

    def _account_of(self, charge: str) -> Account:
        """Return the ledger's account for the charge of a question, by its name."""
        assert self._ledger is not None
        roster = self.folder.load().roster
        named = f"custodians {roster}, question {charge}"
        account = self._ledger.account(self._account).keyed(named, choices=self._choices)
        return replace(account, declared_public=self._declared_public)

    @property
    def _choices(self) -> str:
        """What tells its charges from those of other sites of one account."""
        return f"site {self.name}"


def _limit_in_words(limit: Budget, takes: Callable[[float], bool], *, delta: float) -> str:
    """Say which limit has room, where one of the same ε and a larger δ has."""
    for factor in ROOMIER:
        most = max(limit[1], factor * delta)
        if most < 1 and takes(most):
            return (
                f", each of which is a charge; a limit of {pair_in_words(limit[0], most)} has room"
            )
    return ", each of which is a charge"
