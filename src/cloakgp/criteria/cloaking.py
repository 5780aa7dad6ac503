"""Criteria of the noise on raw predictions: its mean square (A-optimality), its volume (D-).

The papers' choice is `logdet`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.criteria.base import Chosen, ChosenRule, Criterion, Problem, StreamedProblem, Use
from cloakgp.utils.names import Ball, CriterionName

# Rows that the columns of a design for many rows are first taken from.
FIRST_COLUMNS = 10_000
USES: frozenset[Use] = frozenset({"numbers", "classes", "many rows", "held-out rows"})


@dataclass(frozen=True)
class CloakingCriterion(Criterion):
    """A criterion of the noise on the predictions C y of a cloaking matrix C.

    Attributes
    ----------
    shape : {"trace", "logdet"}
        What is least of that noise: its mean square or its volume.
    """

    shape: CriterionName = "trace"
    balls_of_rules: frozenset[Ball] = frozenset({"l2"})

    def choose(self, problem: Problem) -> Chosen:
        """Choose the questions whose answers give C y with the least noise."""
        from cloakgp.design import design_strategy, design_strategy_l1

        designed = design_strategy if problem.ball == "l2" else design_strategy_l1
        design = designed(
            problem.prior.cloaking_matrix(problem.X_query, problem.X),
            criterion=self.shape,
            weights=problem.weights if self.weighted else None,
            groups=problem.groups,
            gap=problem.gap,
            progress=problem.progress,
        )
        return Chosen(design.strategy, design.reconstruction, design.certificate)

    def choose_rule(self, problem: StreamedProblem) -> ChosenRule:
        """Choose a rule of such questions for a table that is read in passes.

        Raises
        ------
        ValueError
            In the ℓ1 ball, in which Laplace noise counts: rules in it are known for "bayes".
        """
        if problem.ball not in self.balls_of_rules:
            raise ValueError(
                f"Laplace noise of many rows is for criterion='bayes', not {self.name!r}: choose "
                "that, or give a delta above 0"
            )
        import numpy as np

        from cloakgp.design.streaming.grouping import GroupedModel
        from cloakgp.design.streaming.noise import design_streamed
        from cloakgp.design.streaming.sums import sum_strategy

        model = GroupedModel(problem.prior) if problem.grouped else problem.prior
        sample = problem.summary.sample[:FIRST_COLUMNS]
        if problem.grouped:
            # Of groups of one row: their columns are shorter than any, and may be among the first.
            sample = np.column_stack([sample, np.ones(len(sample))])
        design = design_streamed(
            problem.rows,
            problem.prior.features(problem.X_query),
            model=model,
            sample=sample,
            criterion=self.shape,
            weights=problem.weights if self.weighted else None,
            gap=problem.gap,
            progress=problem.progress,
        )
        sums = sum_strategy(problem.rows, model=model, rule=design.rule)
        return ChosenRule(design.rule, sums, design.certificate, design.reconstruction)


TRACE = CloakingCriterion(
    name="trace",
    option="least noise on raw predictions",
    aim="the questions were chosen for the least mean square noise on {predictions}.",
    certified="It is certified to be within {gap} of the least possible under this guarantee.",
    shape="trace",
    uses=USES,
    weighted=True,
)
LOGDET = CloakingCriterion(
    name="logdet",
    option="least volume of noise on raw predictions, the papers' choice",
    aim="the questions were chosen for the least volume of noise on {predictions} (the papers' "
    "choice).",
    certified="Per dimension, it is certified to be within {gap} of the least possible.",
    shape="logdet",
    uses=USES,
)
