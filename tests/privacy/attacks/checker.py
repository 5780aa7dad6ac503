"""Attack a mechanism: run it on neighbours, and compare what it spends with what it states.

What is checked of every attack:

1. Noise is drawn alike for all data sets, given the same results of earlier draws.
2. Everything that is published is the same, byte for byte, if the noisy results are.
3. Integers move by no more than the mechanism said to OpenDP, in Python integers.
4. δ(ε) of all draws together, by `loss`, is at most what the guarantee states, at its own ε and at
   others; so is μ.
5. It is nearly as much, where the worst neighbours are among those tried. Where no two data sets
   are the worst for every draw, each draw is moved by nearly as much as it may by some of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from attacks.loss import (
    as_mp,
    chosen_delta,
    composed_delta,
    gaussian_delta,
    laplace_delta,
    laplace_loss,
    mp,
    probabilities,
    squared_mu,
)
from attacks.tape import DependsOnDataError, Draw, Tape, catching, pairs

SELECTIONS = ("exponential", "gumbel")
SHARES_OF_EPSILON = (0.0, 0.3, 2.0)
# What float64 may lose where losses are added up.
FLOAT_SLACK = 1e-11
# Of a pair of neighbours: for every candidate that a choice may take, its draws.
Way = list[list[tuple[Draw, Draw]]]


class ViolationError(AssertionError):
    """A mechanism spends more than it states."""


@dataclass(frozen=True)
class Outcome:
    """What a run of a mechanism makes public.

    Attributes
    ----------
    guarantees : tuple
        Everything that states what it cost.
    public : bytes
        All that is published.
    """

    guarantees: tuple[Any, ...]
    public: bytes


@dataclass(frozen=True)
class Attack:
    """A mechanism, and data sets that it is run on.

    Attributes
    ----------
    name : str
    neighbourhoods : callable
        From a table to lists of data sets, of which any two in one list are neighbours. One that
        stands in several lists is run once.
    run : callable
        From a data set and the table to an `Outcome`.
    tight : float or None
        How much less than it states it may spend on the worst of these neighbours; None if
        the worst need not be among them.
    each : float or None
        How much less than the sensitivity of each draw the worst neighbours for that draw may move
        it; None if these need not be among them.
    branches : int
        How many candidates a private choice has, each of which is tried.
    counted : callable, optional
        As ``run``, from a ledger, too, by which it counts: of what is refused in an open account.
    """

    name: str
    neighbourhoods: Callable[[Any], Sequence[Sequence[Any]]]
    run: Callable[[Any, Any], Outcome]
    tight: float | None = 1e-6
    each: float | None = None
    branches: int = 1
    counted: Callable[[Any, Any, Any], Outcome] | None = None


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes
    ----------
    share : float
        Of what is stated, so much was spent on the worst of the neighbours tried.
    pairs : int
        How many were compared.
    """

    share: float
    pairs: int


def check(attack: Attack, table: Any = None) -> Verdict:
    """Run an attack.

    Parameters
    ----------
    attack : Attack
    table : optional
        What its neighbours are made from, and what is public.

    Raises
    ------
    ViolationError, DependsOnDataError
        If it succeeds, or the mechanism wastes noise.
    """
    neighbourhoods = attack.neighbourhoods(table)
    runs = [_runs(attack, index, neighbourhoods, table) for index in range(attack.branches)]
    outcome = runs[0].outcome
    if any(
        list(map(_stated, run.outcome.guarantees)) != list(map(_stated, outcome.guarantees))
        for run in runs
    ):
        raise DependsOnDataError("the guarantee depends on what was chosen")
    # The same draws between neighbours, in both directions where these differ.
    ways = [
        [list(pairs(run.draws[id(one)], run.draws[id(other)])) for run in runs]
        for neighbourhood in neighbourhoods
        for one, other in itertools.permutations(neighbourhood, 2)
    ]
    for one, other in (draw for way in ways for branch in way for draw in branch):
        _check_sensitivity(one, other)
    share = min(_share_spent(ways, guarantee) for guarantee in outcome.guarantees)
    if attack.tight is not None and not share >= 1 - attack.tight:
        raise ViolationError(f"noise is wasted: {share:.9f} of what is stated is spent")
    if attack.each is not None:
        for place, draws in enumerate(zip(*(way[0] for way in ways), strict=True)):
            moved = max(_share_moved(one, other) for one, other in draws)
            if not moved >= 1 - attack.each:
                raise ViolationError(f"noise of draw {place} is wasted: it moves by {moved:.9f}")
    return Verdict(share=share, pairs=len(ways))


@dataclass(frozen=True)
class _Runs:
    """The draws for every data set, by its id, given the same results; and what was published."""

    draws: dict[int, list[Draw]]
    outcome: Outcome


def _runs(attack: Attack, index: int, neighbourhoods: Sequence[Sequence[Any]], table: Any) -> _Runs:
    found: dict[int, list[Draw]] = {}
    first: Tape | None = None
    outcome: Outcome | None = None
    for data in itertools.chain(*neighbourhoods):
        if id(data) in found:
            continue
        with catching(Tape(index=index, played=None if first is None else first.draws)) as tape:
            published = attack.run(data, table)
        if first is None or outcome is None:
            first, outcome = tape, published
            if not tape.draws:
                raise ViolationError("no noise was drawn")
        if len(tape.draws) != len(first.draws):
            raise DependsOnDataError("noise is drawn more often for one data set")
        if published.public != outcome.public:
            raise DependsOnDataError("what is published tells more than the noisy results")
        if list(map(_stated, published.guarantees)) != list(map(_stated, outcome.guarantees)):
            raise DependsOnDataError("the guarantee depends on the data")
        found[id(data)] = tape.draws
    assert outcome is not None, "there is no data"
    return _Runs(draws=found, outcome=outcome)


def _stated(guarantee: Any) -> tuple[Any, ...]:
    laplace = getattr(guarantee, "laplace", ())
    return guarantee.epsilon, guarantee.delta, guarantee.mu, laplace


def _share_spent(ways: list[Way], guarantee: Any) -> float:
    """Hold all pairs of neighbours against what is stated; return the share of it that is spent."""
    branches = ways[0]
    kinds = {one.noise for one, _ in branches[0]}
    if kinds == {"gaussian"}:
        return _gaussian_share(ways, guarantee)
    if kinds <= {"gaussian", "laplace"}:
        return _laplace_share(ways, guarantee)
    first, _ = branches[0][0]
    later = {one.noise for branch in branches for one, _ in branch[1:]}
    if first.noise in SELECTIONS and later <= {"gaussian"}:
        if later and len(branches) != len(first.integers):
            raise NotImplementedError("try every candidate: branches must be their number")
        return _chosen_share(ways, guarantee)
    raise NotImplementedError(f"how {kinds} compose is for `attacks.loss` to learn")


def _share_moved(one: Draw, other: Draw) -> float:
    """Return how far integers move, in sensitivities."""
    moves = [abs(a - b) for a, b in zip(one.integers, other.integers, strict=True)]
    norms: dict[str, Callable[[list[int]], float]] = {
        "gaussian": lambda found: math.hypot(*found),
        "laplace": sum,
    }
    return norms.get(one.noise, max)(moves) / one.sensitivity


def _check_sensitivity(one: Draw, other: Draw) -> None:
    moves = [abs(a - b) for a, b in zip(one.integers, other.integers, strict=True)]
    if one.noise == "gaussian":
        within = sum(move**2 for move in moves) <= one.sensitivity**2
    elif one.noise == "laplace":
        within = sum(moves) <= one.sensitivity
    else:
        within = max(moves) <= one.sensitivity
    if not within:
        raise ViolationError("integers move by more than the sensitivity that noise was drawn for")


def _check_deltas(guarantee: Any, profiles: Iterable[Callable[[Any], Any]]) -> None:
    """Hold profiles δ(ε) against what is stated."""
    stated = _stated_pairs(guarantee)
    for profile in profiles:
        for epsilon, delta in stated:
            if profile(as_mp(epsilon)) > as_mp(delta):
                raise ViolationError(f"{guarantee} does not hold at epsilon = {epsilon}")


def _stated_pairs(guarantee: Any) -> list[tuple[float, float]]:
    """Return pairs (ε, δ) that are stated."""
    others = [share * guarantee.epsilon for share in SHARES_OF_EPSILON]
    stated = [(epsilon, guarantee.delta_at(epsilon)) for epsilon in others]
    return [(guarantee.epsilon, guarantee.delta), *stated]


def _gaussian_share(ways: list[Way], guarantee: Any) -> float:
    # δ(ε) grows with μ: the worst pair is worst at every ε.
    squared = max(_squared_mu(way[0]) for way in ways)
    _check_deltas(guarantee, [lambda epsilon: gaussian_delta(squared, epsilon)])
    if squared > Fraction(guarantee.mu) ** 2:
        raise ViolationError(f"mu is {float(squared) ** 0.5:.17g}, stated is {guarantee.mu}")
    return float(mp.sqrt(as_mp(squared)) / as_mp(guarantee.mu))


def _laplace_share(ways: list[Way], guarantee: Any) -> float:
    """Hold Laplace noise in one draw or several, and Gaussian noise beside it, against a statement.

    Whoever is moved less in every draw is told apart less: the others are tried.
    """
    spent = {_losses(way[0]) for way in ways}
    for losses, squared in spent:
        if sum(losses) > Fraction(math.fsum(guarantee.laplace)) * (1 + Fraction(1, 2**50)):
            raise ViolationError(f"epsilon is {float(sum(losses)):.17g}, stated is {guarantee}")
        if squared > Fraction(guarantee.mu) ** 2:
            raise ViolationError(f"mu is {float(squared) ** 0.5:.17g}, stated is {guarantee.mu}")
        if guarantee.mu == 0 and sum(losses) > Fraction(guarantee.pure_epsilon):
            raise ViolationError(f"epsilon is {float(sum(losses)):.17g}, stated is {guarantee}")
    for losses, squared in spent:
        if not any(_further((losses, squared), one) for one in spent):
            for epsilon, delta in _stated_pairs(guarantee):
                found = composed_delta([loss for loss in losses if loss], squared, epsilon)
                if found > delta * (1 + FLOAT_SLACK) + FLOAT_SLACK:
                    raise ViolationError(f"{guarantee} does not hold at epsilon = {epsilon}")
    if len(ways[0][0]) == 1:
        # Pairs that are as far apart with noise of one scale have one δ(ε).
        alone = [way[0][0] for way in ways]
        apart = {(laplace_loss(one, other), one.scale): (one, other) for one, other in alone}
        _check_deltas(guarantee, [partial(laplace_delta, *pair) for pair in apart.values()])
    shares = [max(sum(losses) for losses, _ in spent) / Fraction(math.fsum(guarantee.laplace))]
    if guarantee.mu > 0:
        largest = max(squared for _, squared in spent)
        shares.append(Fraction(math.sqrt(largest)) / Fraction(guarantee.mu))
    return float(min(shares))


def _losses(draws: Sequence[tuple[Draw, Draw]]) -> tuple[tuple[Fraction, ...], Fraction]:
    """Return the largest loss of every draw of Laplace noise, and μ² of all others."""
    laplace = [(one, other) for one, other in draws if one.noise == "laplace"]
    gaussian = [(one, other) for one, other in draws if one.noise == "gaussian"]
    return tuple(laplace_loss(one, other) for one, other in laplace), _squared_mu(gaussian)


def _further(
    one: tuple[tuple[Fraction, ...], Fraction], other: tuple[tuple[Fraction, ...], Fraction]
) -> bool:
    """Return whether another pair of data sets is at least as far apart in every draw."""
    pairs_of_losses = zip((*one[0], one[1]), (*other[0], other[1]), strict=True)
    return one != other and all(here <= there for here, there in pairs_of_losses)


def _chosen_share(ways: list[Way], guarantee: Any) -> float:
    profiles, moves = [], []
    epsilon = as_mp(getattr(guarantee, "selection_epsilon", guarantee.epsilon))
    for way in ways:
        first, second = way[0][0]
        later = [_squared_mu(branch[1:]) for branch in way]
        if len(later) < len(first.integers):
            later = [Fraction(0)] * len(first.integers)
        profiles.append(partial(chosen_delta, first, second, later))
        both = zip(probabilities(first), probabilities(second), strict=True)
        if max(abs(mp.log(here / there)) for here, there in both) > epsilon:
            raise ViolationError(f"the choice tells more than {mp.nstr(epsilon, 6)}")
        moved = max(abs(a - b) for a, b in zip(first.integers, second.integers, strict=True))
        moves.append(2 * moved / as_mp(first.scale) / epsilon)
    _check_deltas(guarantee, profiles)
    return float(max(moves))


def _squared_mu(draws: Sequence[tuple[Draw, Draw]]) -> Fraction:
    return sum((squared_mu(one, other) for one, other in draws), Fraction(0))
