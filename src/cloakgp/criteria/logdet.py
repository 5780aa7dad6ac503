"""D-optimality: the least volume of the noise on raw predictions, the papers' choice."""

from __future__ import annotations

from cloakgp.criteria.cloaking import CloakingCriterion

LOGDET = CloakingCriterion(
    name="logdet",
    option="least volume of noise on raw predictions, the papers' choice",
    aim="the questions were chosen for the least volume of noise on {predictions} (the papers' "
    "choice).",
    certified="Per dimension, it is certified to be within {gap} of the least possible.",
    shape="logdet",
    uses=frozenset({"numbers", "classes", "many rows", "held-out rows"}),
)
