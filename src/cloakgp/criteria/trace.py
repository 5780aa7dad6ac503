"""A-optimality: the least mean squared noise on raw predictions."""

from __future__ import annotations

from cloakgp.criteria.cloaking import CloakingCriterion

TRACE = CloakingCriterion(
    name="trace",
    option="least noise on raw predictions",
    aim="the questions were chosen for the least mean square noise on {predictions}.",
    certified="It is certified to be within {gap} of the least possible under this guarantee.",
    shape="trace",
    uses=frozenset({"numbers", "classes", "many rows", "held-out rows"}),
    weighted=True,
)
