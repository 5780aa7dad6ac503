r"""Adaptive stages: shares of the budget, and bands of outputs from published answers.

The first stage asks about outputs as they are, and pays for the whole width of the bounds. After
it, every output is known to lie near its predicted mean; a later stage clips it to c predictive sds
on either side, cut at the bounds, and pays for that width alone. Bands depend on public inputs and
on published answers, so that whatever is done with them is as private as the answers are
(`cloakgp.privacy.questions.bands`).

Shares and widths are a fixed schedule; shares are of what adds up for a law of noise, μ² or ε.
Choosing them by the variance that the prior predicts
does not work: it believes its own bands too much, prefers narrow ones and a first stage that is too
small. Bands of less than one predictive sd, and first shares below 0.15, did worse than one stage
on tables; two to five stages differ by less than a hundredth of an output's sd.

Of many rows, how noisy outputs are can be told precisely for little. Then it is asked after each
stage, and what comes later goes by it (`schedule_by_spread`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cloakgp.criteria import Criterion, criteria_for
from cloakgp.fitting.strategies import Budget, split_budget
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.noise import GAUSSIAN, NOISES, Noise
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.spending import Cost
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.release.bands import RowLimits
from cloakgp.utils.names import NoiseName

# The most noise, on a share of the rows, with which it is worth asking how noisy outputs are.
NOISIEST_SPREAD = 0.1
# Beside stages without bands it is asked so precisely, for no more than elsewhere and no less than
# this share.
PRECISE_SPREAD, LEAST_SPREAD_SHARE = 0.01, 1e-3


@dataclass(frozen=True)
class Stage:
    """One measurement of several about the same outputs.

    Attributes
    ----------
    share : float
        Of μ², or of ε with Laplace noise.
    width : float or None
        To how many predictive sds on either side outputs are clipped; None for the bounds alone.
    """

    share: float
    width: float | None = None


ONE_STAGE = (Stage(share=1.0),)
# Where privacy costs little, and lengthscales are learned: what the first stage tells of these
# decides at which resolution the second asks. Bands would buy nothing.
RESOLVING_STAGES = (Stage(share=0.3), Stage(share=0.7))
# To how many predictive sds on either side outputs are clipped in the default stages.
DEFAULT_WIDTHS = (None, 1.5, 1.0)
Stages = Sequence[tuple[float, float | None]] | Literal["auto", "one"] | None


def default_stages(law: Noise) -> tuple[Stage, ...]:
    """Return the default schedule of a law of noise, whose shares it states.

    Parameters
    ----------
    law : Noise

    Examples
    --------
    >>> [stage.share for stage in default_stages(GAUSSIAN)]
    [0.2, 0.3, 0.5]
    """
    pairs = zip(law.shares.stages, DEFAULT_WIDTHS, strict=True)
    return tuple(Stage(share=share, width=width) for share, width in pairs)


DEFAULT_STAGES = default_stages(GAUSSIAN)


def checked_stages(stages: Stages, *, noise: NoiseName = "gaussian") -> tuple[Stage, ...]:
    """Return a schedule of stages.

    Parameters
    ----------
    stages : "auto", "one" or None, or sequence of (share, width)
        The default schedule, one stage, or pairs as `Stage` holds them.
    noise : {"gaussian", "laplace"}
        For which the default is.

    Raises
    ------
    ValueError
        Unless shares are positive and add up to 1, widths are positive, and the first is None.

    Examples
    --------
    >>> checked_stages([(0.4, None), (0.6, 1.0)])
    (Stage(share=0.4, width=None), Stage(share=0.6, width=1.0))
    """
    if stages is None or (isinstance(stages, str) and stages == "one"):
        return ONE_STAGE
    if isinstance(stages, str):
        if stages != "auto":
            raise ValueError(
                f"stages must be 'auto', 'one' or None, or pairs of numbers, got {stages!r}"
            )
        return default_stages(NOISES[noise])
    advice = "give pairs (share of the budget, band's half width in predictive sds)"
    try:
        pairs = [(float(share), width) for share, width in stages]
        schedule = tuple(
            Stage(share=share, width=None if width is None else float(width))
            for share, width in pairs
        )
    except (TypeError, ValueError):
        raise ValueError(f"stages must be pairs: {advice}") from None
    if not schedule or schedule[0].width is not None:
        raise ValueError(f"the first stage has no band, so its width is None: {advice}")
    shares = np.array([stage.share for stage in schedule])
    # Written so that NaN fails.
    if not ((shares > 0).all() and abs(shares.sum() - 1.0) <= 1e-9):
        raise ValueError(f"the shares of stages must be positive and add up to 1: {advice}")
    for stage in schedule[1:]:
        if stage.width is not None and not 0 < stage.width < np.inf:
            raise ValueError(f"widths of bands must be positive and finite: {advice}")
    return schedule


def stages_for(
    stages: Stages, *, criterion: Criterion, noise: NoiseName = "gaussian"
) -> tuple[Stage, ...]:
    """Return a schedule of stages that a criterion can follow.

    Parameters
    ----------
    stages : "auto", None, or sequence of (share, width)
        As for `checked_stages`; "auto" is one stage where there cannot be several.
    criterion : Criterion
    noise : {"gaussian", "laplace"}

    Raises
    ------
    ValueError
        As `checked_stages`, or for several stages of a criterion that knows of no other answers.
    """
    schedule = checked_stages(stages, noise=noise)
    if len(schedule) == 1 or "stages" in criterion.uses:
        return schedule
    if isinstance(stages, str):
        return ONE_STAGE
    known = " or ".join(repr(each.name) for each in criteria_for("stages"))
    raise ValueError(
        f"several stages are for criterion={known}, not {criterion.name!r}: leave stages out"
    )


@dataclass(frozen=True)
class Step:
    """One measurement of a schedule, and its budget.

    Attributes
    ----------
    stage : Stage or None
        None for a question that does not ask where outputs are.
    budget : Budget
    calibrates : bool
        Of these, whether it is how outputs fall in their predicted distributions; else how noisy
        they are.
    output : int
        Of several, the one that is counted so, from 0.
    if_free : tuple of Step
        What follows instead of all later steps, where its answer shows that privacy costs little.
    """

    stage: Stage | None
    budget: Budget
    calibrates: bool = False
    output: int = 0
    if_free: tuple[Step, ...] = ()


def schedule_stages(
    stages: Sequence[Stage],
    *,
    budget: Budget,
    rows: int,
    ask_spread: bool,
    beside_one: bool = False,
    spent: float = 0.0,
    calibration: float = 0.0,
    outputs: int = 1,
) -> tuple[Step, ...]:
    """Split a budget over stages. Depends on public numbers alone.

    How noisy outputs are is asked last, and not at all where the answer would be mostly noise:
    beside stages without bands, where the share that it has beside others does not buy noise of a
    hundredth of the rows. (Asked of few rows earlier, so that later bands suit it, it made
    predictions no better and intervals too short.) Where the budget is so small that every stage
    would have ε = 0 at this δ, there is one stage.

    Parameters
    ----------
    stages : sequence of Stage
    budget : Budget
        The whole.
    rows : int
        N.
    ask_spread : bool
        Whether outputs' noise is to be learned.
    beside_one : bool
        Whether that is asked beside stages without bands, too, if precisely for little.
    spent : float
        The share of μ² that was for something before (`cloakgp.fitting.interval`).
    calibration : float
        The share for counts in cells of predicted distributions (`cloakgp.fitting.calibration`),
        which come last; 0 for none. The question how noisy outputs are leaves them up to half of
        its own, so that stages keep what they have, or nearly.
    outputs : int
        T: each is counted by a question of its own, with an equal part of that.

    Examples
    --------
    >>> steps = schedule_stages(DEFAULT_STAGES, budget=Budget(1.0, 1e-5), rows=300,
    ...                         ask_spread=True)
    >>> [step.stage and step.stage.width for step in steps]
    [None, 1.5, 1.0, None]
    >>> [round(step.budget.epsilon, 2) for step in steps]
    [0.4, 0.5, 0.67, 0.2]
    """
    precise = beside_one and all(stage.width is None for stage in stages)
    whole = _spread_share(stages, budget=budget, rows=rows, precise=precise)
    share = whole if precise or len(stages) == 1 else max(whole - calibration, whole / 2)
    asked = ask_spread and share > 0
    if len(stages) > 1 or asked or calibration > 0:
        kept = 1.0 - spent - (share if asked else 0.0) - calibration
        parts: list[tuple[Stage | None, float]] = [(stage, stage.share * kept) for stage in stages]
        parts += [(None, share)] * asked
        try:
            return _steps_of(parts, budget, calibration=calibration, outputs=outputs)
        except ValueError:
            pass
    [left] = split_budget(budget, shares=[1.0 - spent]) if spent else [budget]
    return (Step(stage=ONE_STAGE[0], budget=left),)


def schedule_by_spread(
    *,
    budget: Budget,
    rows: int,
    spent: float = 0.0,
    calibration: float = 0.0,
    outputs: int = 1,
) -> tuple[Step, ...] | None:
    """Split a budget over stages of which the later ones depend on how noisy outputs are.

    Of so many rows that this can be asked precisely for little, after each stage: bands of later
    ones suit it, or there is one later stage without bands where privacy costs little, and
    predictions go by the last. Depends on public numbers alone.

    Parameters
    ----------
    budget, rows, spent, calibration, outputs
        As for `schedule_stages`.

    Returns
    -------
    tuple of Step or None
        None where it cannot.

    Examples
    --------
    >>> many = schedule_by_spread(budget=Budget(1.0, 1e-10), rows=50_000)
    >>> [step.stage and step.stage.width for step in many]
    [None, None, 1.5, None, 1.0, None]
    >>> [step.stage is not None for step in many[1].if_free]
    [True, False]
    >>> schedule_by_spread(budget=Budget(1.0, 1e-10), rows=500)
    """
    share = _precise_share(budget, rows=rows)
    stages = default_stages(budget.law)
    asked = len(stages) * share
    if asked > budget.law.shares.spread:
        return None
    kept = 1.0 - spent - asked - calibration
    parts: list[tuple[Stage | None, float]] = []
    for stage in stages:
        parts += [(stage, stage.share * kept), (None, share)]
    first, second, *later = parts
    # One stage has what all later ones have, and what is asked between these.
    merged = Stage(share=sum(stage.share for stage in stages[1:]))
    together: list[tuple[Stage | None, float]] = [
        (merged, math.fsum(part for _, part in later[:-1])),
        (None, share),
    ]
    try:
        banded, free = (
            _steps_of([first, second, *rest], budget, calibration=calibration, outputs=outputs)
            for rest in (later, together)
        )
    except ValueError:
        return None
    return (banded[0], replace(banded[1], if_free=free[2:]), *banded[2:])


def _steps_of(
    parts: Sequence[tuple[Stage | None, float]],
    budget: Budget,
    *,
    calibration: float,
    outputs: int,
) -> tuple[Step, ...]:
    """Split a budget over parts, and over counts of each output after them, if there are any.

    Raises
    ------
    ValueError
        As `split_budget`.
    """
    counted = outputs if calibration > 0 else 0
    shares = [*(share for _, share in parts), *[calibration / outputs] * counted]
    budgets = split_budget(budget, shares=shares)
    asked = [
        Step(stage=stage, budget=part)
        for (stage, _), part in zip(parts, budgets[: len(parts)], strict=True)
    ]
    counts = [
        Step(stage=None, budget=part, calibrates=True, output=output)
        for output, part in enumerate(budgets[len(parts) :])
    ]
    return (*asked, *counts)


def _precise_share(budget: Budget, *, rows: int) -> float:
    """Return the share with which the answer about spread is precise."""
    return max((budget.unit_sd() / rows / PRECISE_SPREAD) ** budget.law.power, LEAST_SPREAD_SHARE)


def _spread_share(stages: Sequence[Stage], *, budget: Budget, rows: int, precise: bool) -> float:
    """Return the cost of the question about spread; 0 where it is not worth it."""
    law = budget.law
    most = law.shares.spread
    if len(stages) > 1 and not precise:
        noise_sd = law.sd_of_share(*budget.pair, share=most)
        return most if noise_sd / rows <= NOISIEST_SPREAD else 0.0
    share = _precise_share(budget, rows=rows)
    return share if precise and share <= most else 0.0


def whole_of(
    budget: Budget, *, steps: Sequence[Step], others: Sequence[Budget] = ()
) -> Cost | tuple[float, float]:
    """Return the largest spending of all steps, to be held in an account before the first draw.

    Parameters
    ----------
    budget : Budget
        That was split.
    steps : sequence of Step
        With what may follow instead of some.
    others : sequence of Budget
        Spent beside them.

    Examples
    --------
    >>> pure = Budget(1.0, 0.0, noise="laplace")
    >>> steps = schedule_stages(default_stages(pure.law), budget=pure, rows=300, ask_spread=True)
    >>> round(whole_of(pure, steps=steps).epsilon, 3)
    1.0
    """
    paths = [tuple(steps)]
    paths += [
        (*steps[: place + 1], *step.if_free) for place, step in enumerate(steps) if step.if_free
    ]
    costs = [[part.pair for part in (*others, *(one.budget for one in path))] for path in paths]
    largest = max(costs, key=lambda pairs: math.fsum(epsilon for epsilon, _ in pairs))
    return budget.law.budget_to_hold(*budget.pair, parts=largest)


# How far bands go beyond an interval, in its widths.
REACH = 1.0


def reach_of_bands(found: OutputBounds, measurements: Sequence[Measurement]) -> OutputBounds:
    """Return where bands of later stages are cut: beyond an interval that was found, if one was.

    The interval keeps questions about outputs themselves cheap, and the prior to scale. Bands cost
    what they are wide, wherever they are; so where answers say that some outputs lie at an end, or
    beyond it, their bands may follow them, by its width on either side and within the declared
    bounds; of several outputs that are read in passes, within the widest of these.

    Parameters
    ----------
    found : OutputBounds
        By which first stages go.
    measurements : sequence of Measurement
        Of one release: counts say what was declared.
    """
    ends = [one.question.ends for one in measurements if isinstance(one.question, CountQuestion)]
    if not ends:
        return found
    further = REACH * found.width
    lowest, highest = min(lo for lo, _ in ends), max(hi for _, hi in ends)
    return OutputBounds(max(lowest, found.lo - further), min(highest, found.hi + further))


def reach_of_rows(
    found: OutputBounds, measurements: Sequence[Measurement], *, rows: int
) -> OutputBounds | RowLimits:
    """Return where bands of rows that are kept are cut; of several outputs row by row.

    As `reach_of_bands`. Counts of some rows alone are counts of one output
    of several, and say what was declared of that.

    Parameters
    ----------
    found : OutputBounds
        By which first stages go.
    measurements : sequence of Measurement
        Of one release.
    rows : int
        N.
    """
    parts: list[tuple[NDArray[np.bool_], CountQuestion]] = [
        (one.strategy.matrix[0] > 0, one.question)
        for one in measurements
        if isinstance(one.question, CountQuestion)
        and isinstance(one.strategy, DenseStrategy)
        and one.strategy.n_rows == rows
        and not one.strategy.matrix.all()
    ]
    if not parts:
        return reach_of_bands(found, measurements)
    lowest, highest = np.full(rows, found.lo), np.full(rows, found.hi)
    further = REACH * found.width
    for counted, question in parts:
        lo, hi = question.ends
        lowest[counted] = max(lo, found.lo - further)
        highest[counted] = min(hi, found.hi + further)
    return RowLimits(lo=lowest, hi=highest)
