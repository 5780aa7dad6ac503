"""What it cost to choose a release's prior by looking at the private data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.composition import MixedGuarantee, compose_with_selection
from cloakgp.privacy.selection import SelectionMechanism
from cloakgp.release.measurement import Measurement


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

    def total(self, parts: Sequence[Guarantee]) -> MixedGuarantee:
        """Return the guarantee of the choice and of all measurements, in order."""
        return compose_with_selection(
            compose(self.worst, *parts[self.covers :]), self.epsilon, mechanism=self.mechanism
        )


def same_choice(
    one: tuple[Choice | None, Sequence[Measurement]],
    other: tuple[Choice | None, Sequence[Measurement]],
) -> bool:
    """Return whether two releases carry one and the same choice, rather than two that look alike.

    Two searches may choose the same prior at the same price, and then cost that price twice. The
    answers that a choice covers tell: noise never repeats by chance.

    Parameters
    ----------
    one, other : pair of a choice and the measurements of its release
    """
    (mine, measurements), (theirs, others) = one, other
    if mine is None or mine != theirs:
        return False
    covered = list(zip(measurements[: mine.covers], others[: mine.covers], strict=True))
    return any(known.answers.noise_sd > 0 for known, _ in covered) and all(
        np.array_equal(known.strategy, again.strategy)
        and np.array_equal(known.answers.values, again.answers.values)
        for known, again in covered
    )
