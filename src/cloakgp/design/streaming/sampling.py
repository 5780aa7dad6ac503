"""Sampled steps: the first steps of a design for many rows go by some rows that stand for all.

Sums over rows are estimated by those over a sample, times N/n. A design is at the top of what can
be explained, so what an error of the estimate loses is of the order of its square; and what is lost
in the end is certified over all rows. Lengths of columns are never estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.utils.passes import Passes

# A smaller table is gone through as fast as a sample and the table after it.
LEAST_SHARE = 4.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table, spread over all of it.

    Attributes
    ----------
    passes : Passes
    share : float
        N/n, how many rows each stands for.
    """

    passes: Passes
    share: float
