"""Private choice of a release's prior, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.budgets import check_budget
from cloakgp.privacy.composition import MixedGuarantee, compose_with_selection
from cloakgp.privacy.selection import SelectionMechanism
from cloakgp.release.measurement import Measurement

# How much more than its δ the guarantee of the worst candidate may need.
WORST_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Choice:
    """A private choice whose outcome, the prior, is part of a release.

    Attributes
    ----------
    epsilon : float
        Of the choice alone.
    mechanism : {"permute-and-flip", "exponential"}
    worst : Guarantee
        What every candidate's release keeps: the total must not depend on what was chosen.
    covers : int
        How many of the release's first measurements that is about.
    """

    epsilon: float
    mechanism: SelectionMechanism
    worst: Guarantee
    covers: int

    def check_covers(self, parts: Sequence[Guarantee]) -> None:
        """Refuse a choice that does not cover the measurements made with it.

        Parameters
        ----------
        parts : sequence of Guarantee
            Of all measurements, in order.

        Raises
        ------
        ValueError
            If its candidates do not all keep at least what these do, or its cost makes no sense.
        """
        covered = compose(*parts[: self.covers])
        worst = self.worst
        check_budget(worst.epsilon, worst.delta)
        if not (
            0 < self.covers <= len(parts)
            and covered.delta == worst.delta
            and covered.epsilon_of_parts == worst.epsilon_of_parts == 0
            and covered.mu <= worst.mu
            and covered.answers <= worst.answers
            and 0 <= covered.coarseness <= worst.coarseness
            # Its μ lies just beyond what its own (ε, δ) allows.
            and worst.delta_at(worst.epsilon) <= worst.delta * (1 + WORST_TOLERANCE)
        ):
            raise ValueError("what its choice cost is damaged")
        # Raises for an ε or a mechanism that does not make sense.
        compose_with_selection(worst, self.epsilon, mechanism=self.mechanism)

    def total(self, parts: Sequence[Guarantee]) -> MixedGuarantee:
        """Return the guarantee of the choice and of all measurements, in order."""
        return compose_with_selection(
            compose(self.worst, *parts[self.covers :]), self.epsilon, mechanism=self.mechanism
        )


def same_choice(
    first: tuple[Choice | None, Sequence[Measurement]],
    second: tuple[Choice | None, Sequence[Measurement]],
) -> bool:
    """Return whether two releases carry one and the same choice, rather than two that look alike.

    Two searches may choose the same prior at the same price, and then cost that price twice. The
    answers that a choice covers tell: noise never repeats by chance.

    Parameters
    ----------
    first, second : pair of a choice and the measurements of its release
    """
    (mine, measurements), (theirs, others) = first, second
    if mine is None or mine != theirs:
        return False
    covered = list(zip(measurements[: mine.covers], others[: mine.covers], strict=True))
    return any(known.answers.noise_sd > 0 for known, _ in covered) and all(
        known.strategy.same_questions(again.strategy)
        and np.array_equal(known.answers.values, again.answers.values)
        for known, again in covered
    )
