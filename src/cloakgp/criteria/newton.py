"""Newton steps: the papers' iteration for two classes (Laplace approximation), noise on each."""

from __future__ import annotations

from cloakgp.criteria.base import Criterion

NEWTON = Criterion(
    name="newton",
    option="the papers' iteration",
    aim="the questions are those of the papers' Newton steps, at all rows.",
    uses=frozenset({"classes"}),
    link="logit",
    iterates=True,
    at_rows=True,
    balls=frozenset({"l2"}),
)
