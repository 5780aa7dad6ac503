"""Spending: the cost of every draw of noise, reported to an account before the draw.

Nothing here keeps an account. A `Keeper` does, from above (`cloakgp.ledger`), and is put in force
by `counted_by`, or for a whole process by the environment variable ``CLOAKGP_LEDGER``; an estimator
that was sent by another process brings the one that was in force there (`cloakgp.privacy.sent`).
Then

* a function that is given private outputs is one charge (`one_charge`), with all that it calls;
* what it may spend at most can be held for it as soon as it is known (`hold`);
* the sampler, the only source of noise, passes every draw through `spend`: the keeper reserves what
  the draw costs, by the very numbers with which it is drawn, or raises, and then nothing is drawn.

Whatever cannot be counted while a keeper is in force is refused: noise from a seed, which protects
nobody, and a draw of which nobody said whom it protects.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import entry_points
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.privacy.rounding import UNIT_ROUNDOFF, round_up, round_up_decimal
from cloakgp.privacy.tally import Drawn, is_tallied, note_draw, tallied

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Budget = tuple[float, float]

# Whom a guarantee is about; neighbours differ in that.
Unit = Literal["row", "person", "whole row replaced", "whole row added or removed"]
WHOLE_ROWS: dict[str, Unit] = {
    "replace": "whole row replaced",
    "add-remove": "whole row added or removed",
}
ENVIRONMENT = "CLOAKGP_LEDGER"
KEEPERS = "cloakgp_spending"
# Mechanisms of which more is known than an ε: see `cloakgp.privacy.filters`.
GAUSSIAN, LAPLACE = "gaussian", "laplace"


class SpendingError(ValueError):
    """Something cannot be counted, so nothing was drawn for it."""


class ClosedChargeError(SpendingError):
    """The charge of a call was closed by another person while the call ran.

    Attributes
    ----------
    counts : bool
        Whether what was drawn for it counts all the same: not if it was voided.
    """

    def __init__(self, message: str, *, counts: bool) -> None:
        super().__init__(message)
        self.counts = counts


@dataclass(frozen=True)
class Cost:
    """The cost of one draw of noise, from the numbers with which it is drawn.

    Attributes
    ----------
    mechanism : str
    mu : float
        Of Gaussian noise: sensitivity over noise sd, rounded up.
    epsilon : float
        Of noise that needs no δ: the ε that it keeps, rounded up; the decimal number that it is
        written as, so that ten of 0.1 are 1.
    answers : int
        How many numbers with Gaussian noise.
    coarseness : float
        Σ (grid / noise sd)² over these; see `cloakgp.privacy.accounting.discretisation_delta`.
    cohort : int
        Which of the cohorts of its charge it is about; see `asking_cohort`.
    """

    mechanism: str
    mu: float = 0.0
    epsilon: float = 0.0
    answers: int = 0
    coarseness: float = 0.0
    cohort: int = 0

    @classmethod
    def of_gaussian(cls, *, sensitivity: int, scale: float, answers: int) -> Cost:
        """Return the cost of Gaussian noise of a scale, for a sensitivity in ℓ2 norm.

        Examples
        --------
        >>> Cost.of_gaussian(sensitivity=2, scale=4.0, answers=1).mu
        0.5
        """
        return cls(
            mechanism=GAUSSIAN,
            mu=round_up(Fraction(sensitivity) / Fraction(scale)),
            answers=answers,
            coarseness=answers / scale**2 * (1 + 4 * UNIT_ROUNDOFF),
        )

    @classmethod
    def of_pure(cls, mechanism: str, *, sensitivity: int, scale: float) -> Cost:
        """Return the cost of an ε-DP mechanism with ε = sensitivity/scale.

        Examples
        --------
        >>> Cost.of_pure("laplace", sensitivity=1, scale=4.0).epsilon
        0.25
        """
        exact = Fraction(sensitivity) / Fraction(scale)
        return cls(mechanism=mechanism, epsilon=round_up_decimal(exact))


@dataclass(frozen=True)
class Spender:
    """The caller that is about to spend: public, except for the source of a fingerprint.

    Attributes
    ----------
    call : str
        The function that was given private outputs.
    unit : Unit
        Whom its guarantee is about.
    epsilon, delta : float or None
        The budget that it was given.
    fingerprint : callable
        A key → the keyed fingerprint of the private column, None where there is no column.
    people : str
        What the caller says of the people asked, beside those who were asked before; empty if
        nothing.
    """

    call: str
    unit: Unit
    epsilon: float | None
    delta: float | None
    fingerprint: Callable[[bytes], str | None]
    people: str = ""


class Charge(Protocol):
    """The spending of one call, while it runs."""

    def hold(self, budgets: Sequence[Cost | Budget]) -> None:
        """Hold budgets, or known costs, for later draws, or raise."""

    def reserve(self, cost: Cost) -> None:
        """Reserve the cost of a draw, durably, or raise; the noise is drawn directly afterwards."""

    def drawn(self, digest: str | None) -> None:
        """Record a draw, by the digest of the published answers."""

    def close(self, *, failed: bool) -> None:
        """Commit the drawn costs, and give back the rest of the hold."""


@runtime_checkable
class RecallingCharge(Charge, Protocol):
    """A charge that kept the answers of draws, and gives them again in the place of others.

    For a call that ended before its result was there, and is made again: what was drawn for it is
    not drawn twice. A kept answer is published once, and is the answer to a question with the same
    cost; whatever else follows from it is post-processing.
    """

    def recall(self, cost: Cost) -> NDArray[Any] | None:
        """Return the kept answers of the next draw, None if there are none, or raise.

        Raises
        ------
        SpendingError
            If the kept answers have another cost: then they are those of another question.
        """

    def keep(self, published: NDArray[Any]) -> None:
        """Keep the answers of a draw; they are noisy, and may be published."""


class Keeper(Protocol):
    """The keeper of an account."""

    def open_charge(self, spender: Spender) -> Charge:
        """Begin to count a call, or raise."""


@runtime_checkable
class SendableKeeper(Keeper, Protocol):
    """A keeper that another process can find."""

    def directions(self) -> Mapping[str, str]:
        """Return what names it to the package that keeps it: no secret, as it is written down."""


@dataclass(frozen=True, eq=False)
class Block:
    """A block within which a keeper counts.

    Attributes
    ----------
    keeper : Keeper
    process : str
        The process that opened the block (`this_process`): a forked one finds it open, too.
    sent : object
        With what the keeper was found, if another process had sent it (`cloakgp.privacy.sent`).
    opened : float
        When it was opened, in seconds since 1970.
    """

    keeper: Keeper
    process: str
    sent: object = None
    opened: float = field(default_factory=time.time)


_block: ContextVar[Block | None] = ContextVar("_block", default=None)
_charge: ContextVar[Charge | None] = ContextVar("_charge", default=None)
_cohort: ContextVar[int] = ContextVar("_cohort", default=0)
# Of the whole process: threads that are started within a block do not see its context.
_in_force: list[Block] = []
_STARTED = time.time_ns()


def this_process() -> str:
    """Return what tells this process from others, forked ones and those of other machines too.

    Examples
    --------
    >>> this_process() == this_process()
    True
    """
    return f"{os.getpid()}-{_STARTED}"


@contextmanager
def counted_by(keeper: Keeper, *, sent: object = None) -> Iterator[None]:
    """Have a keeper count all that is spent within a block, by threads that it starts as well.

    Parameters
    ----------
    keeper : Keeper
    sent : object, optional
        See `Block`. Such a block is about one call that was sent, and counts in its thread alone:
        other threads of a worker run calls that others have sent.

    Examples
    --------
    >>> class Refusing:
    ...     def open_charge(self, spender):
    ...         raise SpendingError(f"no more for {spender.call}")
    >>> keeper = Refusing()
    >>> with counted_by(keeper):
    ...     keeper_in_force() is keeper
    True
    """
    block = Block(keeper, process=this_process(), sent=sent)
    token = _block.set(block)
    _in_force.append(block)
    try:
        yield
    finally:
        _in_force.remove(block)
        _block.reset(token)


def open_blocks() -> tuple[Block, ...]:
    """Return the block that this code runs in; in a thread that is in none, all that are open.

    Of these, blocks of calls that were sent here are left out: each is about its own thread.

    Examples
    --------
    >>> open_blocks()
    ()
    """
    block = _block.get()
    if block is not None:
        return (block,)
    # Of a copy, made at once: other threads open and leave blocks meanwhile.
    return tuple(each for each in tuple(_in_force) if each.sent is None)


@contextmanager
def staying_within(blocks: Sequence[Block]) -> Iterator[None]:
    """Have the keeper of open blocks count within this one, also once their own threads leave them.

    For a call in a thread that is in no block: whoever counts when it begins counts all of it.

    Parameters
    ----------
    blocks : sequence of Block
        Of `open_blocks`; none change nothing.

    Raises
    ------
    SpendingError
        If they have several keepers.

    Examples
    --------
    >>> with staying_within(open_blocks()):
    ...     keeper_in_force() is None
    True
    """
    block = _only(blocks)
    if block is None:
        yield
        return
    token = _block.set(block)
    try:
        yield
    finally:
        _block.reset(token)


def is_charged() -> bool:
    """Return whether this code is a part of a call that is counted.

    Examples
    --------
    >>> is_charged()
    False
    """
    return _charge.get() is not None


@contextmanager
def asking_cohort(cohort: int) -> Iterator[None]:
    """State which rows the draws within a block are about, beside others of the same charge.

    A charge may ask sets of rows that have none in common: those that are fitted, and those that
    are kept out for margins. Nobody's output is in two of them, so that such a charge costs each
    the draws of one cohort: the guarantee of all is the largest over cohorts
    (`cloakgp.privacy.cohorts`). Draws outside of such a block are about cohort 0. It is for the
    code that divides the rows itself.

    Parameters
    ----------
    cohort : int
        From 0.

    Examples
    --------
    >>> from cloakgp.privacy.tally import tallied
    >>> with tallied() as drawn, asking_cohort(1):
    ...     spend(Cost(mechanism="gaussian", mu=1.0), lambda: None)
    >>> drawn[0].cohort
    1
    """
    token = _cohort.set(cohort)
    try:
        yield
    finally:
        _cohort.reset(token)


@contextmanager
def counted_in_charge(keeper_of: Callable[[Charge], Keeper]) -> Iterator[None]:
    """Have calls within a block be charges of their own, of a keeper that counts in this charge.

    For a call that asks others who run in the same process, as in a simulation: each of them counts
    by a keeper of its own, which within the call's charge would never hear of a draw. Changes
    nothing where nobody counts.

    Parameters
    ----------
    keeper_of : callable
        From the charge of the call that this code runs in to the keeper.

    Examples
    --------
    >>> with counted_in_charge(lambda charge: None):
    ...     is_charged()
    False
    """
    charge = _charge.get()
    if charge is None:
        yield
        return
    token = _charge.set(None)
    try:
        with counted_by(keeper_of(charge)):
            yield
    finally:
        _charge.reset(token)


def keeper_in_force() -> Keeper | None:
    """Return the keeper in force: that of the block, or that of the environment.

    Raises
    ------
    SpendingError
        If this is a thread outside of several blocks, or nothing knows what the environment names.

    Examples
    --------
    >>> keeper_in_force() is None
    True
    """
    block = _only(open_blocks())
    if block is not None:
        return block.keeper
    if os.environ.get(ENVIRONMENT):
        return keeper_found()
    return None


def keeper_found(directions: Mapping[str, str] | None = None, *, process: str = "") -> Keeper:
    """Return the keeper that directions name, or else the environment.

    Parameters
    ----------
    directions : mapping, optional
        From `SendableKeeper.directions`.
    process : str
        The process whose block they are of (`this_process`).

    Raises
    ------
    SpendingError
        If there is no such keeper, or no installed package keeps any.
    """
    for entry in entry_points(group=KEEPERS):
        find = entry.load()
        keeper: Keeper = find() if directions is None else find(directions, process=process)
        return keeper
    named = f"{ENVIRONMENT} names a ledger" if directions is None else "a ledger is to count this"
    remedy = ", or unset it" if directions is None else ""
    raise SpendingError(
        f"{named}, and no installed package keeps one: install cloakgp[ledger]{remedy}"
    )


def one_charge(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a function one charge, with all that it calls, if a keeper is in force.

    For every public function that is given private outputs and a budget. Within another such
    function it is a part of that one's charge. What it says of itself is read off its arguments:
    ``epsilon`` and ``delta``, or the budget of a ``plan`` or ``visit``; ``y``, for the fingerprint;
    ``groups``, ``neighbours``, or a table or rows that say whose each row is, for whom it protects.

    Parameters
    ----------
    function : callable
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def charged(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        keeper = None if _charge.get() is not None else keeper_in_force()
        if keeper is None:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        charge = keeper.open_charge(_spender(function.__qualname__, given))
        del given
        with _tallied_apart() as drawn:
            token = _charge.set(charge)
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                _close_failed(charge, error, drawn)
                raise
            finally:
                _charge.reset(token)
            try:
                charge.close(failed=False)
            except ClosedChargeError as error:
                _forget_uncounted(error, drawn)
                raise
            return result

    return charged


def _tallied_apart() -> AbstractContextManager[list[Drawn]]:
    """Collect the draws of one charge apart from those of others, where draws are collected."""
    return tallied() if is_tallied() else nullcontext([])


def _close_failed(charge: Charge, error: BaseException, drawn: list[Drawn]) -> None:
    """Close the charge of a call that failed, and note at its error where that fails, too."""
    try:
        charge.close(failed=True)
    except ClosedChargeError as closed:
        _forget_uncounted(closed, drawn)
        if not isinstance(error, ClosedChargeError):
            error.add_note(f"Of the ledger: {closed}.")
    except Exception:
        error.add_note("The ledger could not be reached: the reserved budget counts as spent.")


def _forget_uncounted(closed: ClosedChargeError, drawn: list[Drawn]) -> None:
    """Have nobody told that draws count which do not."""
    if not closed.counts:
        drawn.clear()


def hold(*budgets: Cost | Budget) -> None:
    """Hold the spending of a call, before its first part.

    For calls that draw several times, once everything is validated that can be without an output:
    so that they do not spend a first part and find that there is no room for the rest. Does nothing
    where nobody counts, and within a call that holds already.

    Parameters
    ----------
    *budgets : Cost or (float, float)
        Of what is drawn at most: what it costs, or pairs (ε, δ) of Gaussian noise, or of any noise
        without δ. They add up.

    Examples
    --------
    >>> hold((1.0, 1e-5))
    """
    charge = _charge.get()
    if charge is not None:
        charge.hold(budgets)


def spend(cost: Cost, draw: Callable[[], Result]) -> Result:
    """Reserve the cost of a draw, and draw.

    Parameters
    ----------
    cost : Cost
    draw : callable
        Draws the noise, and returns what may be published.

    Raises
    ------
    SpendingError
        If a keeper is in force and refuses; then nothing was drawn.

    Examples
    --------
    >>> spend(Cost(mechanism="gaussian", mu=1.0), lambda: 5)
    5
    """
    cost = replace(cost, cohort=_cohort.get())
    charge = _charge.get()
    if charge is None:
        if keeper_in_force() is not None:
            raise SpendingError(
                "an account is open, and nothing says whom this noise protects: call a function of "
                "cloakgp that takes outputs, not the sampler"
            )
        note_draw(cost)
        return draw()
    recalling = charge if isinstance(charge, RecallingCharge) else None
    if recalling is not None:
        kept = recalling.recall(cost)
        if kept is not None:
            charge.drawn(digest_of(kept))
            return cast(Result, kept)
    charge.reserve(cost)
    note_draw(cost)
    published = draw()
    answers = published if isinstance(published, np.ndarray) else None
    if recalling is not None and answers is not None:
        recalling.keep(answers)
    charge.drawn(None if answers is None else digest_of(answers))
    return published


def refuse_seed() -> None:
    """Refuse noise from a seed where an account is open.

    Raises
    ------
    SpendingError

    Examples
    --------
    >>> refuse_seed()
    """
    if keeper_in_force() is not None:
        raise SpendingError(
            "insecure_seed makes noise that protects no one, so no budget covers it: leave it out, "
            "or close the account for data that are public"
        )


def digest_of(values: NDArray[Any]) -> str:
    """Return the digest that identifies noisy answers in any file.

    SHA-256 of the numbers in float64, over the power of two that brings the largest below 1: the
    same for whole numbers on a grid and for these in output units.

    Parameters
    ----------
    values : array
        Published.

    Examples
    --------
    >>> digest_of(np.array([3, 4])) == digest_of(np.array([[0.75, 1.0]]))
    True
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    largest = float(np.abs(numbers).max(initial=0.0))
    _, exponent = np.frexp(largest)
    scaled = np.ldexp(numbers, -int(exponent)) + 0.0
    return hashlib.sha256(scaled.astype("<f8").tobytes()).hexdigest()


def _only(blocks: Sequence[Block]) -> Block | None:
    """Return a block of the only keeper of open ones, None if there is none, or raise."""
    keepers = {id(each.keeper): each for each in blocks}
    if len(keepers) > 1:
        raise SpendingError(
            "several accounts are open, and this thread was started within none of them: open the "
            "account in the thread"
        )
    return next(iter(keepers.values()), None)


def _spender(call: str, given: Mapping[str, Any]) -> Spender:
    """Return the spender of a call, from its arguments."""
    passed = given.get("settings")
    settings = {**(passed if isinstance(passed, Mapping) else {}), **given}
    # Of an estimator's method.
    owner = given.get("self")
    planned = settings.get("plan", settings.get("visit"))
    budget = getattr(planned, "budget", owner)
    private: Any = settings.get("y")
    return Spender(
        call=call,
        unit=_unit(settings),
        epsilon=_number(settings.get("epsilon", getattr(budget, "epsilon", None))),
        delta=_number(settings.get("delta", getattr(budget, "delta", None))),
        fingerprint=lambda key: fingerprint_column(private, key=key),
        people=getattr(planned, "people", ""),
    )


def _unit(given: Mapping[str, Any]) -> Unit:
    if "neighbours" in given:
        # What is no such word is refused where it is checked.
        return WHOLE_ROWS.get(str(given["neighbours"]), "whole row added or removed")
    # Who is named is a person, with one row or many.
    named = any(
        getattr(given.get(name), "by_person", getattr(given.get(name), "grouped", False))
        for name in ("table", "rows", "y", "X")
    )
    if given.get("groups") is not None or named or getattr(given.get("bound"), "group_rows", None):
        return "person"
    return "row"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float | np.integer | np.floating) else None
