"""Laplace approximation: the papers' iteration for two classes, noise on every Newton step."""

from __future__ import annotations

from cloakgp.criteria.base import Criterion

LAPLACE = Criterion(
    name="laplace",
    option="the papers' iteration",
    aim="the questions are those of the papers' Newton steps, at all rows.",
    uses=frozenset({"classes"}),
    link="logit",
    iterates=True,
    at_rows=True,
)
