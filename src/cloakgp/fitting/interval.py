r"""Private interval: a first small step that finds an interval which holds most outputs.

Declared bounds may be as wide as is certain. Counts of outputs in a few intervals, with noise, tell
where most outputs lie; later questions clip to that interval, widened, and the prior is scaled to
it. Counts are measurements like all others (`cloakgp.privacy.questions.counts`), and decisions
here are made by them and by public numbers.

The search goes in rounds. Each divides the interval that the answers so far favour, with a margin,
into sixteen, and counts the outputs in these and on either side of it. From the answers of *all*
rounds the number of outputs below every end is estimated by least squares, the number of rows being
known. What a narrower interval [l, u] is worth is

    log(W / (u − l)) − P / price − (P / most)²,   P = E[p | p ≥ 0],

W the width of the declared bounds, p the share of outputs outside, with its estimate and standard
error. The expectation is large where the estimate is, and where the answers cannot tell: noise
alone narrows nothing. The square keeps a very narrow interval from being worth many outputs. And
u − l counts as at least half of the width of the narrowest interval that leaves one in twenty
outside, by the estimates: around a value that many outputs have (of 0 and 1, of hours of which most
are 40) a narrower one would be worth more for ever, and all others be outside. Since
every round counts what lies outside again, an interval that was wrong is given up; and one that
would not be half as wide as the declared bounds, when widened, is not taken at all.

Of nothing, and of 0 and 1, no interval is that narrow. So the first round counts apart who has the
value of either end of the bounds, or zero, to the last digits. Where more than half have one of
these, how few others lie near it says nothing of where they are: p is a share of the others alone,
and as counts seldom tell where those are, the bounds mostly stay. Bands would lose the others, too,
wherever these are few: there are none if more than half have such values, as far as an sd of the
counts' noise allows (`cloakgp.release.common_values`).

No interval is taken that is expected to leave more than three in ten outside, nor one of which the
counts do not refute that half lie outside (`cloakgp.fitting.refuted`): it is widened until they do.
The search ends as
soon as the bounds are to stay (after the first round, with both prices half as large again, too),
or the interval is resolved: three of the last round's sixteenths wide, what would be taken is at
most twice what would be tried next, and with both prices half as large again this would not be a
third as wide. So good bounds cost one round. What is left is for the
stages. How many
rounds there are is a function of published counts, and so are the budgets of what comes after:
these are such that all together they spend the whole on every path. Of Laplace noise the
probabilities of any path of answers differ between neighbours by e^ε_t at each step, so by e^ε in
all, whoever chose the ε_t that add up to ε (Rogers, Roth, Ullman and Vadhan 2016, theorem 3.6 and
before). Of Gaussian noise, steps of which each may be chosen from the answers before it, with
Σ μ_t² at most μ² whatever happens, are μ-Gaussian DP (Smith and Thakurta 2022, *Fully adaptive
composition for Gaussian differential privacy*).

What a round costs is a public rule: noise on a count is to be a fixed share of the rows. Where so
much precision is not to be had for a part of the budget, nobody looks, and the declared bounds
stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakgp.criteria import Criterion
from cloakgp.fitting.refuted import refutes_half_outside
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.fitting.table import Count
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.questions.bounds import SMALLEST_WIDTH
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release.common_values import MOST_ALIKE, estimate_below, near_enough
from cloakgp.utils.arrays import Array

# How many intervals a round divides into.
BINS = 16
# The noise sd of a count, over the rows, that a round pays for: at most, and at least, if that is
# to be had for a small share of the budget.
COUNT_PRECISION, FINEST_PRECISION = 0.105, 0.03
# The least share of a round: less is not worth its questions.
LEAST_ROUND_SHARE = 1e-3
# The most rounds; what they may cost, a law of noise says (`cloakgp.privacy.noise.base`).
MOST_ROUNDS = 6
# In how many of a round's intervals outputs lie if it has resolved them.
RESOLVED = 3
# More than this is not left outside for any width.
NEVER_OUTSIDE = 0.3
# The least share of these prices, where counts are precise.
STRICTEST = 0.5
# How many times these may be before good bounds, or an interval, are taken for that; and how many
# times as wide as what is then favoured the interval is, if the search is to go on there.
DOUBT, MUCH_WIDER = 1.5, 3.0
# How much wider may be what is taken than what would be tried next, if the search is to end.
AGREED = 2.0
# The share of outputs outside that is as bad as an interval e times as wide: while looking, so that
# a narrow interval is tried, and at the end; and the share that is as bad again.
TRIED_PRICE, FINAL_PRICE, MOST_OUTSIDE = 0.2, 0.15, 0.2
# More outputs than this share are no outliers: an interval that leaves them outside counts as at
# least so wide, in widths of the narrowest which does not, as counts have it.
OUTLIERS, NARROWEST = 0.05, 0.5
# By how many sds of its noise the share outside is taken to be larger, at the end: of many
# intervals the one is favoured for which noise is kindest.
CAUTION = 0.5
# How far the interval is widened at either end, in widths of its own; and how wide it may then be.
WIDENING, WIDEST = 0.5, 0.5
# How far a round looks beyond what is favoured, in its widths.
MARGIN = 1 / 8
# Ends of intervals are multiples of this many halvings of the bounds.
HALVINGS = 22
# The most intervals that a round counts: the first also at either end of the bounds, around zero
# and between these; later ones on either side of their own.
MOST_COUNTS = BINS + 4

# From the seeds of the stages, where noise is to repeat.
SEEDS_APART = 100

Ask = Callable[[CountQuestion, Budget], Answers]
"""Counts outputs in intervals, with one round's budget."""


class AskCounts(Protocol):
    """Counts one output of several, with a seed if there is one: `Table.count`."""

    def __call__(
        self,
        question: CountQuestion,
        *,
        budget: Budget,
        output: int,
        insecure_seed: int | None,
    ) -> Answers:
        """Return noisy counts."""


@dataclass(frozen=True)
class SearchPlan:
    """The budget of a search; public.

    Attributes
    ----------
    rounds : tuple of Budget
        Of each round, at most; none if nobody looks. Of several outputs, rounds of all of them.
    share : float
        Of μ², or of ε with Laplace noise, of one round of one output.
    checks : tuple of Budget
        Of each question who lies outside, at most (`cloakgp.fitting.strata`).
    check_share : float
        Of one of these.
    strata : int
        In how many it is asked.
    """

    rounds: tuple[Budget, ...] = ()
    share: float = 0.0
    checks: tuple[Budget, ...] = ()
    check_share: float = 0.0
    strata: int = 0

    def spent(self, rounds: int, *, checks: int = 0) -> float:
        """Return the share of some rounds, and of some questions about outputs outside."""
        return rounds * self.share + checks * self.check_share

    @property
    def parts(self) -> tuple[Budget, ...]:
        """All that it may spend."""
        return self.rounds + self.checks


NO_SEARCH = SearchPlan()


def searches_interval(
    interval: object, *, criterion: Criterion, bounds: OutputBounds, mean: float | None
) -> bool:
    """Return whether an interval is to be looked for, if the budget allows it.

    Parameters
    ----------
    interval : "auto", "off" or False
        The last two are the same.
    criterion : Criterion
        What questions are chosen for: raw predictions are about outputs clipped to the declared
        bounds, and remain so.
    bounds : OutputBounds
        Declared.
    mean : float or None
        Of the prior, if it was given: one outside of the bounds may be too far from an interval.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    if interval is False or (isinstance(interval, str) and interval == "off"):
        return False
    if not (isinstance(interval, str) and interval == "auto"):
        raise ValueError(f"interval must be 'auto', or 'off' or False, got {interval!r}")
    within = mean is None or bounds.lo <= mean <= bounds.hi
    return within and "stages" in criterion.uses


def adaptive_budget(budget: Budget) -> Budget:
    """Return the budget for parts whose sizes depend on earlier answers.

    Of noise that needs no δ, ε without the δ: what this allows beyond is for parts that are fixed
    (`cloakgp.privacy.accounting.Guarantee.adaptive`).

    Parameters
    ----------
    budget : Budget

    Examples
    --------
    >>> adaptive_budget(Budget(1.0, 1e-5, noise="laplace"))
    Budget(epsilon=1.0, delta=0.0, noise='laplace')
    """
    return budget.of(budget.law.adaptive_budget(*budget.pair))


def can_be_divided(bounds: OutputBounds) -> bool:
    """Return whether float64 separates the ends of the finest intervals within bounds.

    Parameters
    ----------
    bounds : OutputBounds
        Declared.

    Examples
    --------
    >>> can_be_divided(OutputBounds(0.0, 1.0)), can_be_divided(OutputBounds(1e9, 1e9 + 1e-3))
    (True, False)
    """
    smallest = math.ldexp(bounds.width, -HALVINGS - 2)
    largest = max(abs(bounds.lo), abs(bounds.hi))
    return smallest > max(float(np.spacing(largest)), SMALLEST_WIDTH)


def plan_search(
    bounds: OutputBounds, *, budget: Budget, rows: int, largest_group: int = 1, outputs: int = 1
) -> SearchPlan:
    """Return whether to search for an interval, and the price. Depends on public numbers alone.

    Noise on a count has sd √2 g/μ_t, or √2 · 2g/ε_t with Laplace noise, with g the most rows of a
    group; it is to be 0.105 N, or what the cheap share of a round buys, if that is less, though not
    less than 0.03 N. Nothing is counted where a round would cost more than the largest share. There
    are up to six, for about twice as much together (`cloakgp.privacy.noise.base`). Of several
    outputs of a person a round counts each, with noise as of one output, and what all of these
    counts cost together is what a round costs.

    Parameters
    ----------
    bounds : OutputBounds
        Declared.
    budget : Budget
        The whole.
    rows : int
        N.
    largest_group : int
        How many rows one person has at most.
    outputs : int
        T, of every row.

    Examples
    --------
    >>> bounds = OutputBounds(0.0, 1e4)
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> plans = [plan_search(bounds, budget=pure, rows=rows) for rows in (90, 250, 50_000)]
    >>> [(len(plan.rounds), round(plan.share, 3)) for plan in plans]
    [(0, 0.0), (5, 0.108), (6, 0.002)]
    >>> plan = plan_search(bounds, budget=pure, rows=250, outputs=2)
    >>> len(plan.rounds), round(plan.share, 3)
    (4, 0.108)
    """
    if not can_be_divided(bounds):
        return NO_SEARCH
    # How far one person moves the counts of one output, in the noise's norm.
    law = budget.law
    unit = largest_group * law.between_indicators * budget.unit_sd() / rows
    finest = (unit / FINEST_PRECISION) ** law.power
    cheap = law.shares.cheap_round / outputs
    each = max((unit / COUNT_PRECISION) ** law.power, min(cheap, finest), LEAST_ROUND_SHARE)
    if outputs * each > law.shares.largest_round:
        return NO_SEARCH
    most = math.floor(law.shares.all_rounds / (outputs * each))
    rounds = outputs * min(most, MOST_ROUNDS)
    try:
        one, _ = split_budget(budget, shares=[each, 1.0 - each])
    except ValueError:
        return NO_SEARCH
    return SearchPlan(rounds=(one,) * rounds, share=each)


def find_interval(
    ask: Ask, *, bounds: OutputBounds, rows: int, rounds: Sequence[Budget]
) -> OutputBounds:
    """Return an interval that holds most outputs, widened; the declared bounds if none is narrower.

    Parameters
    ----------
    ask : callable
        Called once for each round that is made, with what to count and its budget.
    bounds : OutputBounds
        Declared.
    rows : int
        N.
    rounds : sequence of Budget
        The most that are made.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> outputs = rng.normal(170.0, 8.0, size=1000)
    >>> def ask(question, budget):
    ...     noise = 30.0 * rng.normal(size=question.intervals)
    ...     counts = question.encode(outputs).sum(axis=0) + noise
    ...     return Answers(values=counts[None, :], noise_sd=30.0, guarantee=None)
    >>> found = find_interval(ask, bounds=OutputBounds(0.0, 10_000.0), rows=1000,
    ...                       rounds=[None] * 3)
    >>> found.lo < 150 < 190 < found.hi, found.width < 400
    (True, True)
    """
    whole = 2**HALVINGS
    favoured = partial(_favoured, rows=rows, near=near_enough(bounds) / bounds.width * whole)
    asked: list[tuple[Array, Answers]] = []
    low, high = 0, whole
    for budget in rounds:
        places = _divided(low, high, whole=whole)
        if not asked:
            places = np.union1d(places, _around_likely_values(bounds, whole=whole))
        question = CountQuestion(_in_output_units(places, bounds=bounds))
        asked.append((places, ask(question, budget)))
        # Counts that are more precise can tell more, and less is left outside.
        precision = asked[-1][1].noise_sd / rows / COUNT_PRECISION
        exact = min(max(precision**2, STRICTEST), 1.0)
        resolved = RESOLVED * float(np.median(np.diff(places)))
        low, high = favoured(asked, price=exact * TRIED_PRICE)
        eagerly = partial(favoured, price=DOUBT * exact * TRIED_PRICE, most=DOUBT * MOST_OUTSIDE)
        if _widened(low, high, whole=whole) is None:
            # Noise of the first round alone may say so, unless that is far from deciding.
            if len(asked) > 1:
                return bounds
            low, high = eagerly(asked)
            if _widened(low, high, whole=whole) is None:
                return bounds
        start, stop = favoured(asked, price=exact * FINAL_PRICE, caution=CAUTION)
        if high - low >= resolved and stop - start <= AGREED * (high - low):
            # Noise of one round may hide how little of the interval outputs fill.
            first, last = eagerly(asked)
            if MUCH_WIDER * (last - first) > high - low:
                break
            low, high = first, last
    found = _widened(start, stop, whole=whole) if asked else None
    while found is not None and not refutes_half_outside(asked, *found, rows=rows):
        found = _widened(*found, whole=whole)
    if found is None:
        return bounds
    lowest, highest = _in_output_units(np.array(found), bounds=bounds)
    return OutputBounds(lo=float(lowest), hi=float(highest))


def _widened(low: int, high: int, *, whole: int) -> tuple[int, int] | None:
    """Return an interval with its margin; None if it is hardly narrower than the whole."""
    margin = WIDENING * (high - low)
    low, high = max(math.floor(low - margin), 0), min(math.ceil(high + margin), whole)
    return None if high - low > WIDEST * whole else (low, high)


def find_intervals(
    count: AskCounts,
    *,
    bounds: Sequence[OutputBounds],
    rows: int,
    plan: SearchPlan,
    insecure_seed: int | None = None,
) -> tuple[tuple[OutputBounds, ...], tuple[Count, ...]]:
    """Look for the interval that holds most of each output; return these, and all counts.

    A person is in the counts of every output, so that the costs of all counts add up: a round of
    all outputs may cost what a round of one output may. Outputs are searched in turn. Of the rounds
    that are left each has an equal part; those that it does not need are for the outputs after it,
    and then for the stages.

    Parameters
    ----------
    count : callable
        Called once for each round that is made, with the output, what to count, its budget and its
        seed.
    bounds : sequence of OutputBounds
        Declared, of each output.
    rows : int
        What the counts of one output add up to.
    plan : SearchPlan
        With the rounds of all outputs.
    insecure_seed : int, optional
        Makes the noise reproducible and the counts **not private**.

    Returns
    -------
    tuple of OutputBounds
        Where an output stays with its declared bounds, these.
    tuple of Count
    """
    left = plan.rounds
    counts: list[Count] = []
    found: list[OutputBounds] = []

    def counting(output: int) -> Ask:
        def ask(question: CountQuestion, budget: Budget) -> Answers:
            seed = None if insecure_seed is None else insecure_seed + SEEDS_APART + len(counts)
            answers = count(question, budget=budget, output=output, insecure_seed=seed)
            counts.append(Count(output=output, question=question, answers=answers))
            return answers

        return ask

    for output, limits in enumerate(bounds):
        part, made = min(len(left) // (len(bounds) - output), MOST_ROUNDS), len(counts)
        found.append(find_interval(counting(output), bounds=limits, rows=rows, rounds=left[:part]))
        left = left[len(counts) - made :]
    return tuple(found), tuple(counts)


def _divided(low: int, high: int, *, whole: int) -> Array:
    """Return where the intervals of a round end: those within [low, high] with a margin, and all.

    Places are whole numbers, from 0 to the number of the finest intervals.
    """
    if high - low < whole:
        margin = math.ceil(MARGIN * (high - low))
        low, high = max(low - margin, 0), min(high + margin, whole)
    inner = np.rint(np.linspace(low, high, BINS + 1))
    return np.unique(np.concatenate([[0], inner, [whole]]))


def _around_likely_values(bounds: OutputBounds, *, whole: int) -> Array:
    """Return where intervals end that hold a value which most outputs may have, and no other.

    Such are the ends of the bounds, and zero.
    """
    near = near_enough(bounds) / bounds.width * whole
    places = [0.0, near, whole - near, float(whole)]
    if bounds.lo < 0 < bounds.hi:
        zero = -bounds.lo / bounds.width * whole
        places += [zero - near, zero + near]
    return np.clip(places, 0.0, float(whole))


def _in_output_units(places: Array, *, bounds: OutputBounds) -> Array:
    """Return places in output units; the outermost are the bounds, to the last bit."""
    shares = np.ldexp(places.astype(np.float64), -HALVINGS)
    units = bounds.lo + bounds.width * shares
    ends: Array = np.where(shares == 1.0, bounds.hi, units)
    return ends


def _favoured(
    asked: Sequence[tuple[Array, Answers]],
    *,
    rows: int,
    near: float,
    price: float,
    most: float = MOST_OUTSIDE,
    caution: float = 0.0,
) -> tuple[int, int]:
    """Return the places between which outputs lie, as all answers together favour it.

    Outputs whose places differ by no more than `near` from that of a value have it.
    """
    places = np.unique(np.concatenate([edges for edges, _ in asked]))
    below, covariance = estimate_below(asked, places, rows=rows)
    outside = below[:, None] + rows - below[None, :]
    spread = np.diag(covariance)
    variance = spread[:, None] + spread[None, :] - 2.0 * covariance
    width = places[None, :] - places[:, None]
    # Where many outputs are one and the same, no interval around them would be too narrow.
    others, within = _others(below, places, rows=rows, near=near)
    share, error = outside / others, np.sqrt(np.maximum(variance, 0.0)) / others
    lost = _expected_share(share + caution * error, error)
    holds_most = within & (width > 0) & (share <= OUTLIERS)
    counted = np.maximum(width, NARROWEST * width[holds_most].min())
    with np.errstate(divide="ignore", invalid="ignore"):
        harm = lost / price + (lost / most) ** 2
        worth = np.where(
            within & (width > 0) & (lost <= NEVER_OUTSIDE),
            -np.log(counted / places[-1]) - harm,
            -np.inf,
        )
    start, stop = np.unravel_index(int(np.argmax(worth)), worth.shape)
    return math.floor(places[start]), math.ceil(places[stop])


def _others(
    below: Array, places: Array, *, rows: int, near: float
) -> tuple[float, NDArray[np.bool_]]:
    """Return how many outputs are not one and the same, and which intervals hold those that are.

    Parameters
    ----------
    below : array of shape (n,)
        The estimated numbers of outputs below the places.
    places : array of shape (n,)
    rows : int
        N.
    near : float
        How far from a value the places of outputs may be that have it.
    """
    alike = np.where(np.diff(places) <= 2.5 * near, np.diff(below), 0.0)
    place = int(np.argmax(alike))
    within = np.ones((len(places), len(places)), dtype=np.bool_)
    if alike[place] <= MOST_ALIKE * rows:
        return float(rows), within
    within[place + 1 :] = within[:, : place + 1] = False
    return max(rows - float(alike[place]), 1.0), within


def _expected_share(estimate: Array, error: Array) -> Array:
    """Return the mean of a normal share given that it is not negative."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # Where the density over the distribution function is below 1e-250 it is nothing.
        standardised = np.clip(estimate / error, -1e6, 35.0)
        density = math.sqrt(2.0 / math.pi) / special.erfcx(-standardised / math.sqrt(2.0))
    expected: Array = np.where(error > 0, estimate + error * density, estimate)
    return np.maximum(expected, 0.0)
