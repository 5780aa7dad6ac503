"""Coordinator: it fits one release of the rows of all sites, and sees no output.

It goes on from the files of the exchange: the fit is made again from its beginning, with the noisy
sums that are there already in the place of questions. So it may be stopped at every moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cloakgp.columns import Schema
from cloakgp.custodians.errors import CustodiansError, WaitingError
from cloakgp.custodians.exchange import PLAN, RELEASE, ROSTER, Exchange
from cloakgp.custodians.files import (
    COMPLETE,
    REQUEST,
    TOTAL,
    Complete,
    Hidden,
    answer_of,
    attempt_file,
    inputs_file,
    inputs_from_bytes,
    member_file,
    names_from_bytes,
    names_to_bytes,
    opening_of,
    persons_of,
    question_file,
    read_answer,
    read_opening,
)
from cloakgp.custodians.masks import open_sum
from cloakgp.custodians.plan import Member, Plan, Roster, check_colluding, digest_of
from cloakgp.custodians.progress import TO_DO, Progress, latest_attempt, progress_of
from cloakgp.custodians.request import Request
from cloakgp.data import InputRows
from cloakgp.data.entries import AS_THEY_ARE, RowReading
from cloakgp.privacy.ask import StrategyBound
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.sampler import Integers
from cloakgp.release import MultiOutputRelease, Release
from cloakgp.release.custodians import Custodians
from cloakgp.release.open import load
from cloakgp.utils.arrays import Array
from cloakgp.utils.passes import GROUP_NUMBERS, Chunk, OnStep, PartOf, ignore_step

POLL = 0.5
JointRelease = Release | MultiOutputRelease


def _pause() -> None:
    time.sleep(POLL)


class Coordinator:
    """The coordinator of a release of several custodians.

    Parameters
    ----------
    exchange : Exchange
    plan : Plan, optional
        To begin with; if not given, the one that is in the exchange.

    Raises
    ------
    CustodiansError
        If there is no plan, or another.
    """

    def __init__(self, exchange: Exchange, plan: Plan | None = None) -> None:
        self._exchange = exchange
        if plan is not None:
            exchange.put(PLAN, plan.to_bytes())
        content = exchange.get(PLAN)
        if content is None:
            raise CustodiansError("there is no plan yet")
        self.plan = Plan.from_bytes(content)

    @property
    def roster(self) -> Roster | None:
        """The sites that joined; None before the roster is closed."""
        content = self._exchange.get(ROSTER)
        return None if content is None else Roster.from_bytes(content)

    @property
    def attempt(self) -> int:
        """The number of the latest attempt; 0 before the first."""
        return latest_attempt(self._exchange)

    @property
    def members(self) -> tuple[str, ...]:
        """The sites that are asked in the latest attempt."""
        content = self._exchange.get(attempt_file(self.attempt))
        return () if content is None else names_from_bytes(content)

    @property
    def done(self) -> bool:
        """Whether the release is there."""
        return self._exchange.has(RELEASE)

    @property
    def progress(self) -> Progress:
        """What has been done, and who comes next."""
        return progress_of(self._exchange, self.plan)

    def collect(
        self,
        *,
        patience: float = 0.0,
        pause: Callable[[], None] = _pause,
        on_step: OnStep = ignore_step,
    ) -> JointRelease:
        """Fit, asking all sites, and return the release.

        Parameters
        ----------
        patience : float
            Seconds to wait for sites, each time.
        pause : callable
            Waits a little.
        on_step : callable
            Called with what begins, in a few words.

        Returns
        -------
        Release or MultiOutputRelease

        Raises
        ------
        WaitingError
            If sites have not done what comes next. Call it again later, or go on without them
            (`begin_without`).
        CustodiansError
            If what a site sent is not as agreed.
        """
        content = self._exchange.get(RELEASE)
        if content is not None:
            return release_of(content)
        roster = self._close_roster(patience=patience, pause=pause)
        if not self.attempt:
            names = names_to_bytes(tuple(each.name for each in roster.members))
            self._exchange.put(attempt_file(1), names)
        members = self.members
        rows = CustodianRows(
            exchange=self._exchange,
            plan=self.plan,
            roster=roster,
            attempt=self.attempt,
            members=members,
            inputs=self._rows_of([roster.of(one) for one in members]),
            wait=_Waiting(patience=patience, pause=pause),
        )
        estimator = self.plan.estimator()
        # Custodians' rows are public inputs; their outputs are asked where they are.
        told: dict[str, Any] = {} if self.plan.outputs == "several" else {"on_step": on_step}
        if self.plan.exposure_name:
            told["exposure"] = self.plan.exposure_name
        release = estimator.fit_rows(rows, **told).release_
        if isinstance(release, Release):
            release = replace(release, exposure=self.plan.read_exposure())
        custodians = Custodians(
            sites=len(members),
            colluding=self.plan.colluding,
            sites_of_person=min(rows.places, len(members)) if self.plan.grouped else None,
        )
        stated = _of_custodians(release, custodians)
        self._exchange.put(RELEASE, stated.to_bytes())
        return stated

    def begin_without(self, dropped: Sequence[str]) -> None:
        """Begin again without some sites, whose rows are then in no question.

        Parameters
        ----------
        dropped : sequence of str

        Raises
        ------
        CustodiansError
            If they are not asked; if too few are left; or if all have answered a question, so that
            masks of it may be open: then only a new plan, which costs its own budget, can do
            without them.
        """
        members, attempt = self.members, self.attempt
        for name in dropped:
            if name not in members:
                raise CustodiansError(f"{name} is none of the sites that are asked")
        if self._exchange.has(question_file(attempt, 1, COMPLETE)):
            raise CustodiansError(
                "all sites have answered a question, and its answer may be known: wait for them, "
                "or make a new plan, which costs its own budget"
            )
        left = tuple(name for name in members if name not in dropped)
        check_colluding(self.plan.colluding, sites=len(left))
        self._exchange.put(attempt_file(attempt + 1), names_to_bytes(left))

    def close_roster(self, *, without: Sequence[str] = ()) -> Roster:
        """Close the roster, before some sites of the plan have joined.

        Parameters
        ----------
        without : sequence of str

        Raises
        ------
        WaitingError
            If others have not joined.
        """
        return self._close_roster(patience=0.0, pause=_pause, without=without)

    def _close_roster(
        self, *, patience: float, pause: Callable[[], None], without: Sequence[str] = ()
    ) -> Roster:
        known = self.roster
        if known is not None:
            known.check(self.plan)
            return known
        names = [name for name in self.plan.sites if name not in without]
        check_colluding(self.plan.colluding, sites=len(names))
        wait = _Waiting(patience=patience, pause=pause)
        files = wait.for_files(
            {name: member_file(name) for name in names}, self._exchange, to=TO_DO["join"]
        )
        members = tuple(Member.from_bytes(files[name]) for name in names)
        roster = Roster(members)
        roster.check(self.plan)
        for name, member in zip(names, members, strict=True):
            if member.name != name:
                raise CustodiansError(f"the file of {name} is that of another site")
            self._inputs_of(member)
        self._exchange.put(ROSTER, roster.to_bytes())
        return roster

    def _rows_of(self, members: Sequence[Member]) -> InputRows:
        """Return the public inputs of some sites, whose persons have numbers of their own each."""
        sent = [self._inputs_of(member) for member in members]
        if not self.plan.grouped:
            return InputRows(np.concatenate(sent))
        groups, first = [], 0
        for X in sent:
            groups.append(first + persons_of(X))
            first = int(groups[-1].max()) + 1
        if first > GROUP_NUMBERS:
            raise CustodiansError(f"the sites have more than {GROUP_NUMBERS:,} persons together")
        return InputRows(np.concatenate(sent)[:, :-1], groups=np.concatenate(groups))

    def _inputs_of(self, member: Member) -> Array:
        content = self._exchange.get(inputs_file(member.name))
        if content is None or digest_of(content) != member.inputs:
            raise CustodiansError(
                f"the public inputs of {member.name} are not those it joined with"
            )
        return inputs_from_bytes(content, columns=self.plan.sent_columns, rows=member.rows)


@dataclass(frozen=True)
class _Waiting:
    """Waits for files of sites."""

    patience: float
    pause: Callable[[], None]

    def for_files(self, names: dict[str, str], exchange: Exchange, *, to: str) -> dict[str, bytes]:
        """Return the content of a file of each site, or raise WaitingError."""
        until = time.monotonic() + self.patience
        while True:
            found = {site: exchange.get(name) for site, name in names.items()}
            missing = [site for site, content in found.items() if content is None]
            if not missing:
                return {site: content for site, content in found.items() if content is not None}
            if time.monotonic() >= until:
                raise WaitingError(missing, to=to)
            self.pause()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CustodianRows:
    """The rows of several custodians: public inputs, and questions to where the outputs are.

    Attributes
    ----------
    exchange : Exchange
    plan : Plan
    roster : Roster
    attempt : int
    members : tuple of str
    inputs : InputRows
        Of all members, in order.
    reading : RowReading
        How custodians read them.
    """

    exchange: Exchange
    plan: Plan
    roster: Roster
    attempt: int
    members: tuple[str, ...]
    inputs: InputRows
    wait: _Waiting
    reading: RowReading = AS_THEY_ARE
    _asked: list[str] = field(default_factory=list)

    @property
    def grouped(self) -> bool:
        """Whether all rows of a person are protected together."""
        return self.plan.grouped

    @property
    def places(self) -> int:
        """At how many sites a person may have rows, as the plan says."""
        return self.plan.sites_of_person

    def read_as(self, reading: RowReading) -> CustodianRows:
        """Return the same rows, which custodians read in some way."""
        return replace(self, reading=reading)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self.inputs.n_inputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns."""
        return self.plan.input_names

    @property
    def schema(self) -> Schema | None:
        """The schema of raw public columns, if the plan has one."""
        return self.plan.read_schema()

    @property
    def output_name(self) -> str:
        """Name of the private column."""
        return self.plan.output_name

    @property
    def n_outputs(self) -> int:
        """T, the number of private columns."""
        return len(self.output_names)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the private columns."""
        return self.plan.output_names

    @property
    def noise_ratio(self) -> float:
        """√(n/(n − t)): n sites add a share each, of which n − t are the noise of the budget."""
        sites = len(self.members)
        return math.sqrt(sites / (sites - self.plan.colluding))

    def over_inputs(self, work: Callable[[Chunk], PartOf], *, what: str) -> PartOf:
        """Do some work on every chunk, and merge the parts in order."""
        return self.inputs.over_inputs(work, what=what)

    def over_rows(self, *_: Any, **__: Any) -> Any:
        """Refuse: no output is here.

        Raises
        ------
        TypeError
        """
        raise TypeError("the outputs are with their custodians")

    def noisy_sums(
        self,
        columns: Callable[[Array], Array],
        *,
        bound: StrategyBound,
        question: Question,
        epsilon: float,
        delta: float,
    ) -> Integers:
        """Ask all sites, and return the noisy sums of their rows, in grid steps."""
        number = len(self._asked) + 1
        request = Request.of(
            columns,
            bound=bound,
            question=question,
            epsilon=epsilon,
            delta=delta,
            roster=self.roster.digest,
            attempt=self.attempt,
            number=number,
            members=self.members,
            reading=self.reading,
        )
        content = request.to_bytes()
        digest = digest_of(content)
        self._asked.append(digest)
        known = self._get(number, REQUEST)
        if known is not None and known != content:
            raise CustodiansError(
                "another question comes out than was asked: go on with the version of this package "
                "and on the machine with which it was begun, or make a new plan"
            )
        self._put(number, REQUEST, content)
        total = self._get(number, TOTAL)
        if total is None:
            total = self._total(number, digest, count=request.numbers)
        return Hidden.from_bytes(total).integers(count=request.numbers)

    def _get(self, number: int, what: str) -> bytes | None:
        return self.exchange.get(question_file(self.attempt, number, what))

    def _put(self, number: int, what: str, content: bytes) -> None:
        self.exchange.put(question_file(self.attempt, number, what), content)

    def _files(self, number: int, what: Callable[[str], str], *, to: str) -> dict[str, bytes]:
        names = {site: question_file(self.attempt, number, what(site)) for site in self.members}
        return self.wait.for_files(names, self.exchange, to=to)

    def _total(self, number: int, digest: str, *, count: int) -> bytes:
        """Wait for answers and for opened masks, and return the file of their sum."""
        answers = self._files(number, answer_of, to=TO_DO["answer"])
        hidden = {}
        for site, content in answers.items():
            hidden[site] = read_answer(content, site=site, request=digest, count=count)
        complete = Complete(
            request=digest,
            answers={site: digest_of(content) for site, content in answers.items()},
        )
        self._put(number, COMPLETE, complete.to_bytes())
        seeds = {}
        for site, content in self._files(number, opening_of, to=TO_DO["open"]).items():
            seeds[site] = read_opening(content, site=site, request=digest)
        total = Hidden.of(open_sum(hidden, seeds), request=digest).to_bytes()
        self._put(number, TOTAL, total)
        return total


def release_of(content: bytes) -> JointRelease:
    """Return the release of a file.

    Raises
    ------
    CustodiansError
        If it is of another kind than custodians make.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / RELEASE
        path.write_bytes(content)
        found = load(path)
    if not isinstance(found, Release | MultiOutputRelease):
        raise CustodiansError("the release is none of several custodians")
    return found


def _of_custodians(release: JointRelease, custodians: Custodians) -> JointRelease:
    """Return a release that says of whose rows it is."""
    if isinstance(release, MultiOutputRelease):
        return replace(release, entries=replace(release.entries, custodians=custodians))
    return replace(release, custodians=custodians)
