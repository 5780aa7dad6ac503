"""No criterion: questions that were given, and not designed."""

from __future__ import annotations

from cloakgp.criteria.base import Criterion

GIVEN = Criterion(
    name="given",
    option="no design",
    aim="the questions were given and not designed: others might say more under this guarantee.",
    raw=False,
)
