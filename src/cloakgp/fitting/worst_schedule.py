"""Worst case of a schedule of measurements: its largest spending over all answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from cloakgp.fitting.bands import ONE_STAGE, RESOLVING_STAGES, Stage, Step, schedule_stages
from cloakgp.fitting.calibration import CELLS, MOST_STRATA, calibration_share
from cloakgp.fitting.interval import MOST_COUNTS, NO_SEARCH
from cloakgp.fitting.scatter import choose_count
from cloakgp.fitting.strata import plan_checked_search
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Guarantee, OutputBounds
from cloakgp.privacy.accounting import ROUNDING, discretisation_delta, exact_noise_multiplier
from cloakgp.privacy.composition import least_scale, worst_release


def worst_of_schedule(
    stages: Sequence[Stage],
    *,
    budget: Budget,
    rows: int,
    channels: int = 1,
    search_within: OutputBounds | None = None,
    ask_spread: bool = False,
    calibrated: bool = False,
) -> Guarantee:
    r"""Return a guarantee that every release of a schedule keeps; refuse one that may fail midway.

    Depends on public numbers alone. How many rounds of counts there are is decided by answers, and
    how many questions who lies outside: every number of them is gone through, with the stages and
    the question of spread that follow.

    Parameters
    ----------
    stages : sequence of Stage
    budget : Budget
        The whole, on Gaussian noise.
    rows : int
        N. A stage asks no more questions than there are rows.
    channels : int
        How many answers a question has.
    search_within : OutputBounds, optional
        The declared bounds, if an interval may be looked for within them.
    ask_spread : bool
        Whether outputs' noise may be learned.
    calibrated : bool
        Whether outputs may be counted in cells of their predicted distributions.

    Returns
    -------
    Guarantee

    Raises
    ------
    ValueError
        If a part of the budget is too small for the grid on which noise is drawn, or the parts
        would exceed the whole.

    Examples
    --------
    >>> from cloakgp.fitting.bands import DEFAULT_STAGES
    >>> worst = worst_of_schedule(DEFAULT_STAGES, budget=Budget(1.0, 0.01), rows=101,
    ...                           search_within=OutputBounds(0.0, 1e4), ask_spread=True)
    >>> worst.answers
    384
    """
    search = NO_SEARCH
    if search_within is not None:
        search = plan_checked_search(search_within, budget=budget, rows=rows)
    paths = []
    share = calibration_share(budget, rows=rows) if calibrated else 0.0
    sizes = product(range(len(search.rounds) + 1), range(len(search.checks) + 1))
    for rounds, checks in sizes:
        spent = search.spent(rounds, checks=checks)
        counts = [(part, MOST_COUNTS) for part in search.rounds[:rounds]]
        counts += [(part, search.strata) for part in search.checks[:checks]]
        # Counts may find most outputs at single values: then nothing is calibrated, either.
        unbanded = [RESOLVING_STAGES, ONE_STAGE] if rounds and len(stages) > 1 else []
        shares = {share, 0.0} if rounds else {share}
        for later, calibration in product([stages, *unbanded], shares):
            steps = schedule_stages(
                later,
                budget=budget,
                rows=rows,
                ask_spread=ask_spread,
                spent=spent,
                calibration=calibration,
            )
            asked = [(step.budget, _most_answers(step, rows=rows * channels)) for step in steps]
            paths.append(counts + asked)
    worst = worst_release(
        budget.epsilon,
        budget.delta,
        rows=rows,
        answers=max(sum(answers for _, answers in path) for path in paths),
    )
    for path in paths:
        for part, answers in path:
            _check_grid(part, answers=answers, rows=rows)
        mu = math.hypot(*(1 / exact_noise_multiplier(p.epsilon, p.delta) for p, _ in path))
        # One part is the whole, and its guarantee is checked where it is calibrated.
        if len(path) > 1 and mu * (1 + 2**10 * ROUNDING) > worst.mu:
            raise ValueError(
                f"epsilon = {budget.epsilon} and delta = {budget.delta} cannot be split over "
                "several measurements: give stages=None and interval=False"
            )
    return worst


def _most_answers(step: Step, *, rows: int) -> int:
    """Return the largest number of answers of a step."""
    if step.calibrates:
        return MOST_STRATA * (len(CELLS) + 1)
    return rows if step.stage is not None else choose_count(step.budget, rows=rows)


def _check_grid(part: Budget, *, answers: int, rows: int) -> None:
    """Refuse a part that would be refused when its noise is calibrated."""
    scale = least_scale(part.unit_sd(), rows=rows)
    cost = discretisation_delta(part.epsilon, answers=answers, coarseness=answers / scale**2)
    if cost >= part.delta / 2:
        raise ValueError(
            f"delta = {part.delta} is too small: drawing noise on a grid may cost {cost:.1e} of it"
        )
