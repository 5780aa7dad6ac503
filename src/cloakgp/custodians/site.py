"""A site: it joins a plan, answers questions about its own rows, and opens masks.

Whatever it does is done in the same order: counted, drawn, kept in a folder of its own, sent. A
process may be killed at every moment: what was kept is sent again, and never drawn anew; what was
counted and not kept is drawn under the same charge, as nobody has seen the other. Two answers to
one question would have the same masks, so that there is never a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
from cloakgp.custodians.exchange import PLAN, ROSTER, Exchange, written_before
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
)
from cloakgp.custodians.journal import (
    KEY,
    Drawn,
    SiteFolder,
    attempt_of,
    numbers_of,
    question_key,
)
from cloakgp.custodians.masks import SiteKey
from cloakgp.custodians.plan import Member, Plan, Roster, check_colluding, digest_of
from cloakgp.custodians.progress import latest_attempt
from cloakgp.custodians.request import Request
from cloakgp.fitting.passes import Rows
from cloakgp.privacy.ask import ask_share
from cloakgp.privacy.spending import Cost, counted_by, keeper_in_force
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import pair_in_words
from cloakgp.utils.locks import locked_folder
from cloakgp.utils.names import AUTO, NoiseChoice
from cloakgp.utils.passes import Chunk

if TYPE_CHECKING:
    from cloakgp.ledger import Ledger
    from cloakgp.ledger.accounts import Account

# Of a digest, as people read it to each other.
BEGINNING = re.compile(r"[0-9a-f]{8,64}")


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


def _numbered(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the same groups with the numbers 0, 1, 2, … in the order of their first rows.

    A number of a group is made of a person's id, and would tell of it; these tell which rows belong
    together, and nothing else.
    """
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[places]


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
    folder : str or Path
        Of this site alone, for its key and its journal. Without it nothing can be opened, and with
        it a reader of the exchange can take off this site's masks.
    ledger : Ledger, optional
        Counts every question.
    account : str
        Of the ledger.
    agreed : str
        The first digits of the roster's digest, eight or more, as all custodians have it by another
        way: nothing is answered to another roster. Without it, whoever has the exchange could put
        public keys of their own in the place of all others.

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
    ...     Site("north", rows, exchange, folder).step()
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
    ) -> None:
        self._agreed = "".join(agreed.split()).lower()
        if agreed and not BEGINNING.fullmatch(self._agreed):
            raise CustodiansError(
                f"a digest begins with eight digits or more, 0 to 9 and a to f, got {agreed!r}"
            )
        self.name = name
        self.folder = SiteFolder(folder)
        self._rows = rows
        self._exchange = exchange
        self._ledger = ledger
        self._account = account

    def step(self) -> tuple[str, ...]:
        """Do whatever comes next, and return what was done; nothing if others come next.

        It joins the plan; answers the question that is there; opens the mask of one that all have
        answered. It may be called any number of times, from processes one after the other.

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
            if self.folder.load().left:
                raise CustodiansError(
                    "this site has left: it answers nothing, and opens no mask any more"
                )
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
            If another process goes on with the site.
        """
        with self._locked():
            journal = self.folder.load()
            self.folder.save(replace(journal, left=True))
            if self._ledger is None:
                return
            for key, drawn in journal.questions.items():
                if not drawn.opened:
                    counting.void(self._ledger, self._account_of(key), reason=counting.LEFT)
                    continue
                # A process that opened it may have died before it told the ledger.
                content = self._get(*numbers_of(key), REQUEST)
                if content is not None:
                    self._commit(key, Request.from_bytes(content))
            # Of the next question the ledger may know before the journal does.
            counting.void(self._ledger, self._account_of(journal.next_key), reason=counting.LEFT)

    def _acts(self, plan: Plan) -> Iterator[tuple[str, Callable[[], bool]]]:
        yield "joined", partial(self._join, plan)
        roster = self._roster(plan)
        attempt = None if roster is None else self._attempt(plan)
        if roster is None or attempt is None:
            return
        number, members = 1, attempt[1]
        while (content := self._get(attempt[0], number, REQUEST)) is not None:
            request = self._request(content, plan, roster, attempt=attempt[0], number=number)
            keys = {name: roster.of(name).key for name in members}
            yield "answered", partial(self._answer, content, request, plan, keys=keys)
            yield "opened", partial(self._open, content, request)
            number += 1

    @cached_property
    def _inputs(self) -> Array:
        """The public inputs, shape (n, D); with groups, and the number of each row's person."""
        found = self._rows.over_inputs(_inputs_of, what="looking at the inputs")
        if not self._rows.grouped:
            return found.X
        return np.column_stack([found.X, _numbered(found.groups).astype(np.float64)])

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
        called = tuple(getattr(self._rows, "output_names", ()))
        if called and called != private:
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
        key = SiteKey.kept(self.folder.path / KEY)
        inputs = inputs_to_bytes(self._inputs)
        journal, digest = self.folder.load(), digest_of(inputs)
        if journal.inputs and journal.inputs != digest:
            raise CustodiansError(
                "the public inputs are others than those with which this site joined"
            )
        member = Member(
            name=self.name,
            key=key.public,
            rows=len(self._inputs),
            inputs=digest,
            plan=plan.digest,
        )
        if self._sent(member_file(self.name), member.to_bytes()):
            return False
        self._check_room(plan)
        self.folder.save(replace(journal, inputs=digest))
        self._exchange.put(inputs_file(self.name), inputs)
        self._exchange.put(member_file(self.name), member.to_bytes())
        return True

    def _check_room(self, plan: Plan) -> None:
        """Refuse to join a plan whose whole budget the ledger has no room for.

        Otherwise its first questions would be spent on a release that is never made. Nothing is
        held: every question is charged when it comes.
        """
        if self._ledger is None:
            return
        epsilon, delta = plan.budget
        noise: NoiseChoice = plan.settings.get("noise", AUTO)
        standing = self._ledger.account(self._account).standing
        if not standing.releases_left(epsilon, delta, noise=noise):
            raise CustodiansError(
                f"the account {self._account!r} has no room for all questions of the plan, "
                f"{pair_in_words(epsilon, delta)}: this site did not join, and nothing was asked"
            )

    def _roster(self, plan: Plan) -> Roster | None:
        content = self._exchange.get(ROSTER)
        if content is None:
            return None
        roster = Roster.from_bytes(content)
        own = self._exchange.get(member_file(self.name))
        if own is None or roster.of(self.name) != Member.from_bytes(own):
            raise CustodiansError("the roster has another entry for this site than it sent")
        if any(each.plan != plan.digest for each in roster.members):
            raise CustodiansError("a site of the roster joined another plan")
        if len({each.key for each in roster.members}) < len(roster.members):
            raise CustodiansError("two sites of the roster have one key")
        if not roster.digest.startswith(self._agreed):
            raise CustodiansError("the roster is another than was agreed: nothing was answered")
        self._agree("roster", roster.digest)
        return roster

    def _attempt(self, plan: Plan) -> tuple[int, tuple[str, ...]] | None:
        """Return the latest attempt and who is asked, after noting that earlier ones are void."""
        journal = self.folder.load()
        latest = max(journal.attempt, latest_attempt(self._exchange))
        if latest == 0:
            return None
        members = names_from_bytes(self._exchange.get(attempt_file(latest)) or b"")
        check_colluding(plan.colluding, sites=len(set(members)))
        if latest > journal.attempt:
            journal = replace(journal, attempt=latest)
            self.folder.save(journal)
        if self._ledger is not None:
            for key, drawn in journal.questions.items():
                if attempt_of(key) < latest and not drawn.opened:
                    counting.void(self._ledger, self._account_of(key), reason=counting.BEGUN_AGAIN)
        return (latest, members) if self.name in members else None

    def _request(
        self, content: bytes, plan: Plan, roster: Roster, *, attempt: int, number: int
    ) -> Request:
        request = Request.from_bytes(content)
        members = names_from_bytes(self._exchange.get(attempt_file(attempt)) or b"")
        if (
            request.roster != roster.digest
            or (request.attempt, request.number) != (attempt, number)
            or request.members != members
            or len(set(members)) < len(members)
        ):
            raise CustodiansError("a question is not about what was agreed")
        rows = sum(roster.of(name).rows for name in members)
        if request.count != rows * plan.reading.together:
            raise CustodiansError("a question is about another number of rows than all sites have")
        # What is protected together decides how far answers may move, and is the plan's affair.
        if (request.group_rows is not None) != plan.grouped or request.places != plan.places(
            sites=len(members)
        ):
            raise CustodiansError("a question protects others together than the plan")
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
        self._exchange.put(name, kept)
        return True

    def _draw(self, request: Request, plan: Plan, *, keys: dict[str, str], digest: str) -> None:
        """Count a question, draw its noise, and keep the hidden answer."""
        key, journal = question_key(request.attempt, request.number), self.folder.load()
        own = SiteKey.kept(self.folder.path / KEY)

        def note(cost: Cost) -> None:
            self.folder.save(journal.with_question(key, Drawn(request=digest, cost=cost)))

        def keep(hidden: NDArray[np.int64]) -> None:
            content = Hidden.of(hidden, request=digest, site=self.name).to_bytes()
            self.folder.keep_answer(key, content)

        keeper = SiteKeeper(
            spent=journal.spent(without=key),
            limit=plan.budget,
            noted=key in journal.questions,
            note=note,
            keep=keep,
            account=None if self._ledger is None else self._account_of(key),
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
        if not drawn.opened:
            self.folder.save(journal.with_question(key, replace(drawn, opened=True)))
        self._commit(key, request)
        own = SiteKey.kept(self.folder.path / KEY)
        name = question_file(request.attempt, request.number, opening_of(self.name))
        opening = Opening(request=digest, site=self.name, seed=own.own_seed(digest).hex())
        if self._sent(name, opening.to_bytes()):
            return False
        self._exchange.put(name, opening.to_bytes())
        return True

    def _commit(self, key: str, request: Request) -> None:
        """Commit the charge of a question whose mask is opened, if a ledger counts."""
        kept = self.folder.answer(key)
        if self._ledger is None or kept is None:
            return
        counting.commit(
            self._account_of(key),
            Hidden.from_bytes(kept).integers(count=request.numbers),
            budget=(request.epsilon, request.delta),
            unit="person" if self._rows.grouped else "row",
        )

    def _account_of(self, key: str) -> Account:
        assert self._ledger is not None
        roster = self.folder.load().roster
        named = f"custodians {roster[:16]}, question {key}"
        return replace(self._ledger.account(self._account), key=named)
