"""Schedule of a release of numbers: its possible draws, and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cloakgp.fitting.bands import Stage, Step, schedule_stages
from cloakgp.fitting.calibration import calibration_share
from cloakgp.fitting.interval import NO_SEARCH, SearchPlan, adaptive_budget
from cloakgp.fitting.margins import count_kept
from cloakgp.fitting.strata import plan_checked_search
from cloakgp.fitting.strategies import Budget
from cloakgp.privacy import Guarantee, OutputBounds


def whole_guarantee(budget: Budget) -> Guarantee:
    """Return the guarantee of one measurement with the whole budget.

    Parameters
    ----------
    budget : Budget

    Examples
    --------
    >>> print(whole_guarantee(Budget(1.0, 1e-6, noise="laplace")))
    1-differential privacy
    """
    return budget.law.whole(*budget.pair)


@dataclass(frozen=True)
class Schedule:
    """The possible draws of a release of numbers, known before the first question.

    Attributes
    ----------
    budget : Budget
        The whole.
    search : SearchPlan
        For an interval that holds most outputs.
    steps : tuple of Step
        If one round of the search is enough for each output.
    kept : int
        How many rows are kept out of these, and asked one question with the whole budget.
    """

    budget: Budget
    search: SearchPlan
    steps: tuple[Step, ...]
    kept: int = 0

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that the release will state."""
        if self.search.rounds or self.kept:
            # Answers decide which parts there are: their sum is the whole.
            return replace(whole_guarantee(self.budget), adaptive=True)
        return self._of_parts(fixed=True)

    @property
    def guarantee_of_passes(self) -> Guarantee:
        """The largest guarantee if designs decide later about several stages."""
        return self.guarantee if self.search.rounds or self.kept else self._of_parts(fixed=False)

    def _of_parts(self, *, fixed: bool) -> Guarantee:
        parts = [step.budget.pair for step in self.steps]
        return self.budget.law.whole_of_parts(*self.budget.pair, parts=parts, fixed=fixed)


def schedule_release(
    budget: Budget,
    *,
    bounds: OutputBounds,
    stages: Sequence[Stage],
    rows: int,
    most_rows: int,
    ask_spread: bool,
    searched: bool,
    calibrated: bool = False,
    kept: float = 0.0,
    outputs: int = 1,
) -> Schedule:
    """Return the possible draws of a release of numbers.

    Parameters
    ----------
    budget : Budget
        The whole.
    bounds : OutputBounds
    stages : sequence of Stage
    rows : int
        N; of several outputs, their entries.
    most_rows : int
        Of one group.
    ask_spread : bool
        Whether outputs' noise is to be learned.
    searched : bool
        Whether an interval that holds most outputs is looked for first.
    calibrated : bool
        Whether outputs are counted in cells of their predicted distributions.
    kept : float
        The share of the rows that is kept out.
    outputs : int
        T.
    """
    budget.law.check(*budget.pair)
    search, out = NO_SEARCH, 0
    if kept:
        out = count_kept(rows, share=kept)
        budget, rows = adaptive_budget(budget), rows - out
    if searched:
        search = plan_checked_search(
            bounds,
            budget=adaptive_budget(budget),
            rows=rows // outputs,
            largest_group=max(most_rows // outputs, 1),
            outputs=outputs,
        )
        if search.rounds:
            budget = adaptive_budget(budget)
    steps = schedule_stages(
        stages,
        budget=budget,
        rows=rows,
        ask_spread=ask_spread,
        spent=search.spent(outputs if search.rounds else 0),
        calibration=calibration_share(
            budget,
            rows=rows // outputs,
            largest_group=max(most_rows // outputs, 1),
            outputs=outputs,
        )
        if calibrated
        else 0.0,
        outputs=outputs,
    )
    return Schedule(budget=budget, search=search, steps=steps, kept=out)
