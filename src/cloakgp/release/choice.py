"""What it cost to choose a release's prior by looking at the private data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.mixed import MixedGuarantee, compose_with_selection
from cloakgp.privacy.select import SelectionMechanism


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
