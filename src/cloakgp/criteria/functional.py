"""Functional release: the whole function, wherever it may be queried (2018 paper, section 2)."""

from __future__ import annotations

from cloakgp.criteria.base import Chosen, Criterion, Problem


class _Functional(Criterion):
    def choose(self, problem: Problem) -> Chosen:
        from cloakgp.design import Certificate
        from cloakgp.models.rkhs import function_questions

        whole = function_questions(problem.prior, problem.X)
        return Chosen(
            strategy=whole.strategy,
            reconstruction=problem.prior.cross_covariance(problem.X_query, problem.X)
            @ whole.representers,
            certificate=Certificate(criterion=self.name, gap=0.0),
            representers=whole.representers,
        )


FUNCTIONAL = _Functional(
    name="functional",
    option="the whole curve",
    aim="the questions are the coordinates of the whole curve: raw predictions follow from their "
    "answers at any inputs.",
    uses=frozenset({"numbers"}),
    at_rows=True,
)
