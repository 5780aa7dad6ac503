r"""Private interval: a first small step that finds an interval which holds most outputs.

Declared bounds may be as wide as is certain. Counts of outputs in a few intervals, with noise, tell
where most outputs lie; later questions clip to that interval, widened, and the prior is scaled to
it. Counts are measurements like all others (`cloakgp.privacy.interval`), and all that is decided
here is decided by them and by public numbers.

The search goes in rounds. Each divides the interval that the answers so far favour, with a margin,
into sixteen, and counts the outputs in these and on either side of it. From the answers of *all*
rounds the number of outputs below every end is estimated by least squares, the number of rows being
known. What a narrower interval [l, u] is worth is

    log(W / (u − l)) − P / price − (P / most)²,   P = E[p | p ≥ 0],

W the width of the declared bounds, p the share of outputs outside, with its estimate and standard
error. The expectation is large where the estimate is, and where the answers cannot tell: noise
alone narrows nothing. The square keeps a very narrow interval from being worth many outputs. Since
every round counts what lies outside again, an interval that was wrong is given up; and one that
would not be half as wide as the declared bounds, when widened, is not taken at all.

No interval is taken that is expected to leave more than three in ten outside. The search ends as
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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special

from cloakgp.criteria import Criterion
from cloakgp.fitting.measuring import about_everybody, measured
from cloakgp.fitting.strategies import Budget, Query, split_budget
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.bounds import SMALLEST_WIDTH
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.interval import CountQuestion
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Measurement
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName

# How many intervals a round divides into.
BINS = 16
# The noise sd of a count, over the rows, that a round pays for: at most, and at least, if that is
# to be had for a small share of the budget.
COUNT_PRECISION, FINEST_PRECISION = 0.105, 0.03
CHEAP_SHARES: dict[NoiseName, float] = {"gaussian": 0.02, "laplace": 0.05}
# The least share of a round: less is not worth its questions.
LEAST_ROUND_SHARE = 1e-3
# What one round and all of them may cost, as a share of μ², or of ε with Laplace noise; and the
# most of them.
LARGEST_SHARES: dict[NoiseName, float] = {"gaussian": 0.15, "laplace": 0.27}
LARGEST_SUMS: dict[NoiseName, float] = {"gaussian": 0.3, "laplace": 0.55}
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
# By how many sds of its noise the share outside is taken to be larger, at the end: of many
# intervals the one is favoured for which noise is kindest.
CAUTION = 0.5
# How far the interval is widened at either end, in widths of its own; and how wide it may then be.
WIDENING, WIDEST = 0.5, 0.5
# How far a round looks beyond what is favoured, in its widths.
MARGIN = 1 / 8
# Ends of intervals are multiples of this many halvings of the bounds.
HALVINGS = 22

# From the seeds of the stages, where noise is to repeat.
SEEDS_APART = 100

# Asks how many outputs lie in intervals, with one round's budget; and with a seed, if there is one.
Ask = Callable[[CountQuestion, Budget], Answers]
SeededAsk = Callable[[CountQuestion, Budget, int | None], Answers]
Counted = tuple[CountQuestion, Answers]


@dataclass(frozen=True)
class SearchPlan:
    """What a search may spend; public.

    Attributes
    ----------
    rounds : tuple of Budget
        Of each round, at most; none if nobody looks. Of several outputs, rounds of all of them.
    share : float
        Of μ², or of ε with Laplace noise, of one round of one output.
    """

    rounds: tuple[Budget, ...] = ()
    share: float = 0.0

    def spent(self, rounds: int) -> float:
        """Return the share of so many rounds."""
        return rounds * self.share


NO_SEARCH = SearchPlan()


def searches_interval(
    interval: object, *, criterion: Criterion, bounds: OutputBounds, mean: float | None
) -> bool:
    """Return whether an interval is to be looked for, if the budget allows it.

    Parameters
    ----------
    interval : "auto" or False
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
    if interval is False:
        return False
    if not (isinstance(interval, str) and interval == "auto"):
        raise ValueError(f"interval must be 'auto' or False, got {interval!r}")
    within = mean is None or bounds.lo <= mean <= bounds.hi
    return within and "stages" in criterion.uses


def decided_by_answers(budget: Budget) -> Budget:
    """Return what may be spent in parts whose sizes earlier answers decide.

    Of Laplace noise ε without the δ: what this allows beyond is for parts that are fixed
    (`cloakgp.privacy.accounting.Guarantee.adaptive`).

    Parameters
    ----------
    budget : Budget

    Examples
    --------
    >>> decided_by_answers(Budget(1.0, 1e-5, noise="laplace"))
    Budget(epsilon=1.0, delta=0.0, noise='laplace')
    """
    return replace(budget, delta=0.0) if budget.noise == "laplace" else budget


def can_be_divided(bounds: OutputBounds) -> bool:
    """Return whether float64 tells the ends of the finest intervals within bounds apart.

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
    """Return whether to look for an interval, and at what price. Depends on public numbers alone.

    Noise on a count has sd √2 g/μ_t, or √2 · 2g/ε_t with Laplace noise, with g the most rows of a
    group; it is to be 0.105 N, or what 2 % of μ² (5 % of ε) buy, if that is less, though not less
    than 0.03 N. Nobody looks where a round would cost more than 15 % of μ² (27 % of ε). There are
    up to six, for twice as much together. Of several outputs of a person a round counts each, with
    noise as of one output, and what all of these counts cost together is what a round costs.

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
    moved = largest_group * (math.sqrt(2.0) if budget.noise == "gaussian" else 2.0)
    unit = moved * budget.unit_sd() / rows
    power = 2 if budget.noise == "gaussian" else 1
    finest = (unit / FINEST_PRECISION) ** power
    cheap = CHEAP_SHARES[budget.noise] / outputs
    each = max((unit / COUNT_PRECISION) ** power, min(cheap, finest), LEAST_ROUND_SHARE)
    if outputs * each > LARGEST_SHARES[budget.noise]:
        return NO_SEARCH
    rounds = outputs * min(math.floor(LARGEST_SUMS[budget.noise] / (outputs * each)), MOST_ROUNDS)
    try:
        # Parts of Laplace noise that are not the whole are no larger for what δ allows.
        rest = [1.0 - each] if budget.noise == "gaussian" else []
        one, *_ = split_budget(budget, shares=[each, *rest])
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
    ...     return Answers(values=question.counts(outputs) + noise, noise_sd=30.0, centre=0.0,
    ...                    bounds=(-0.71, 0.71), guarantee=None)
    >>> found = find_interval(ask, bounds=OutputBounds(0.0, 10_000.0), rows=1000,
    ...                       rounds=[None] * 3)
    >>> found.lo < 150 < 190 < found.hi, found.width < 400
    (True, True)
    """
    whole = 2**HALVINGS
    asked: list[tuple[Array, Answers]] = []
    low, high = 0, whole
    for budget in rounds:
        places = _divided(low, high, whole=whole)
        question = CountQuestion(_in_output_units(places, bounds=bounds))
        asked.append((places, ask(question, budget)))
        # Counts that are more precise can tell more, and less is left outside.
        precision = asked[-1][1].noise_sd / rows / COUNT_PRECISION
        exact = min(max(precision**2, STRICTEST), 1.0)
        resolved = RESOLVED * float(np.median(np.diff(places)))
        low, high = _favoured(asked, rows=rows, price=exact * TRIED_PRICE)
        eager = {"price": DOUBT * exact * TRIED_PRICE, "most": DOUBT * MOST_OUTSIDE}
        if _widened(low, high, whole=whole) is None:
            # Noise of the first round alone may say so, unless that is far from deciding.
            if len(asked) > 1:
                return bounds
            low, high = _favoured(asked, rows=rows, **eager)
            if _widened(low, high, whole=whole) is None:
                return bounds
        start, stop = _favoured(asked, rows=rows, price=exact * FINAL_PRICE, caution=CAUTION)
        if high - low >= resolved and stop - start <= AGREED * (high - low):
            # Noise of one round may hide how little of the interval outputs fill.
            first, last = _favoured(asked, rows=rows, **eager)
            if MUCH_WIDER * (last - first) > high - low:
                break
            low, high = first, last
    found = _widened(start, stop, whole=whole) if asked else None
    if found is None:
        return bounds
    lowest, highest = _in_output_units(np.array(found), bounds=bounds)
    return OutputBounds(lo=float(lowest), hi=float(highest))


def _widened(low: int, high: int, *, whole: int) -> tuple[int, int] | None:
    """Return an interval with its margin; None if it is hardly narrower than the whole."""
    margin = WIDENING * (high - low)
    low, high = max(math.floor(low - margin), 0), min(math.ceil(high + margin), whole)
    return None if high - low > WIDEST * whole else (low, high)


@forget_on_failure
def search_outputs(
    X: Array,
    y: ArrayLike,
    *,
    query: Query,
    bounds: OutputBounds,
    plan: SearchPlan,
    groups: Groups | None,
    insecure_seed: int | None = None,
) -> tuple[OutputBounds, tuple[Measurement, ...]]:
    """Look for the interval that holds most outputs of a table; return it, and what was counted.

    y goes to `cloakgp.privacy.interval` and nowhere else.

    Parameters
    ----------
    X : array of shape (N, D)
        Public inputs.
    y : array-like of shape (N,)
        Private outputs.
    query : Query
    bounds : OutputBounds
        Declared.
    plan : SearchPlan
    groups : array of shape (N,) or None
        From `cloakgp.privacy.groups.checked_groups`.
    insecure_seed : int, optional
        Makes the noise reproducible and the counts **not private**.
    """
    strategy = about_everybody(
        X, X_query=query.X, query_weights=query.weights, table=0, groups=groups
    )

    def ask(question: CountQuestion, budget: Budget, seed: int | None) -> Answers:
        one = measured(strategy, y, encoding=question, budget=budget, insecure_seed=seed)
        assert isinstance(one.answers, Answers)
        return one.answers

    found, counted = search(ask, bounds=bounds, rows=len(X), plan=plan, insecure_seed=insecure_seed)
    return found, tuple(
        Measurement(strategy=strategy, answers=answers, encoding=question)
        for question, answers in counted
    )


def search(
    ask: SeededAsk,
    *,
    bounds: OutputBounds,
    rows: int,
    plan: SearchPlan,
    insecure_seed: int | None,
) -> tuple[OutputBounds, tuple[Counted, ...]]:
    """Look for the interval that holds most outputs; return it, and what was counted.

    Parameters
    ----------
    ask : callable
        Called once for each round that is made, with what to count, its budget and its seed.
    bounds : OutputBounds
        Declared.
    rows : int
        What all counts add up to.
    plan : SearchPlan
    insecure_seed : int or None
    """
    counted: list[Counted] = []

    def next_round(question: CountQuestion, budget: Budget) -> Answers:
        seed = None if insecure_seed is None else insecure_seed + SEEDS_APART + len(counted)
        answers = ask(question, budget, seed)
        counted.append((question, answers))
        return answers

    found = find_interval(next_round, bounds=bounds, rows=rows, rounds=plan.rounds)
    return found, tuple(counted)


def _divided(low: int, high: int, *, whole: int) -> Array:
    """Return where the intervals of a round end: those within [low, high] with a margin, and all.

    Places are whole numbers, from 0 to the number of the finest intervals.
    """
    if high - low < whole:
        margin = math.ceil(MARGIN * (high - low))
        low, high = max(low - margin, 0), min(high + margin, whole)
    inner = np.rint(np.linspace(low, high, BINS + 1))
    return np.unique(np.concatenate([[0], inner, [whole]]))


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
    price: float,
    most: float = MOST_OUTSIDE,
    caution: float = 0.0,
) -> tuple[int, int]:
    """Return the places between which outputs lie, as all answers together favour it."""
    places = np.unique(np.concatenate([edges for edges, _ in asked]))
    below, covariance = _estimate_below(asked, places, rows=rows)
    outside = below[:, None] + rows - below[None, :]
    spread = np.diag(covariance)
    variance = spread[:, None] + spread[None, :] - 2.0 * covariance
    error = np.sqrt(np.maximum(variance, 0.0)) / rows
    lost = _expected_share(outside / rows + caution * error, error)
    width = places[None, :] - places[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        harm = lost / price + (lost / most) ** 2
        worth = np.where(
            (width > 0) & (lost <= NEVER_OUTSIDE), -np.log(width / places[-1]) - harm, -np.inf
        )
    start, stop = np.unravel_index(int(np.argmax(worth)), worth.shape)
    return int(places[start]), int(places[stop])


def _estimate_below(
    asked: Sequence[tuple[Array, Answers]], places: Array, *, rows: int
) -> tuple[Array, Array]:
    """Return how many outputs lie below every place, by least squares, and its covariance.

    Every count is a difference of two such numbers. None lies below the first place, and all below
    the last: these are known.
    """
    count = len(places)
    precision, moment = np.zeros((count, count)), np.zeros(count)
    for edges, answers in asked:
        positions = np.searchsorted(places, edges)
        differences = np.zeros((len(edges) - 1, count))
        each = np.arange(len(edges) - 1)
        differences[each, positions[1:]], differences[each, positions[:-1]] = 1.0, -1.0
        precision += differences.T @ differences / answers.noise_sd**2
        moment += differences.T @ answers.values / answers.noise_sd**2
    below, covariance = np.zeros(count), np.zeros((count, count))
    below[-1] = rows
    inner = slice(1, count - 1)
    if count > 2:
        factor = linalg.cho_factor(precision[inner, inner])
        below[inner] = linalg.cho_solve(factor, moment[inner] - precision[inner, -1] * rows)
        covariance[inner, inner] = linalg.cho_solve(factor, np.eye(count - 2))
    return below, covariance


def _expected_share(estimate: Array, error: Array) -> Array:
    """Return the mean of a normal share given that it is not negative."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        # Where the density over the distribution function is below 1e-250 it is nothing.
        standardised = np.clip(estimate / error, -1e6, 35.0)
        density = math.sqrt(2.0 / math.pi) / special.erfcx(-standardised / math.sqrt(2.0))
    expected: Array = np.where(error > 0, estimate + error * density, estimate)
    return np.maximum(expected, 0.0)
