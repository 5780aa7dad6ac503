"""One training set, asked by the `bayes` design: designed once, answered as often as wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloakgp.arrays import Array
from cloakgp.choices import choose_query
from cloakgp.experiments.cloaked import Budget, Prior
from cloakgp.privacy import measure
from cloakgp.release import Budget as VisitBudget
from cloakgp.release import Query, Questions, Release, choose_questions

Learning = Literal["map", "average"] | None
LEARNINGS: tuple[Learning, ...] = (None, "map", "average")


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions that fit a prior and a budget, to be answered with new noise every time.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
    questions : Questions
    budget : Budget
    """

    prior: Prior
    questions: Questions
    budget: Budget

    @classmethod
    def designed(
        cls, X: Array, *, prior: Prior, budget: Budget, X_query: Array | None = None
    ) -> Asked:
        """Design the questions, for the rows of X if no query points are given.

        Parameters
        ----------
        X : array of shape (N, D)
        prior : ExactPrior or SparsePrior
        budget : Budget
        X_query : array of shape (P, D), optional
        """
        questions = choose_questions(
            X,
            prior=prior,
            query=choose_query(X) if X_query is None else Query(X=X_query),
            bounds=budget.bounds,
            budget=VisitBudget(epsilon=budget.epsilon, delta=budget.delta),
        )
        return cls(prior=prior, questions=questions, budget=budget)

    def released(self, y: Array, *, insecure_seed: int | None = None) -> Release:
        """Measure once, and learn nothing: every call draws new noise.

        Parameters
        ----------
        y : array of shape (N,)
        insecure_seed : int, optional
            Makes the noise reproducible and the release not private.
        """
        answers = measure(
            self.questions.strategy,
            y,
            bounds=(self.budget.bounds.lo, self.budget.bounds.hi),
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            insecure_seed=insecure_seed,
        )
        return Release(prior=self.prior, measurements=(self.questions.answered(answers),))


def learned(release: Release, learning: Learning) -> Release:
    """Return the same answers with hyperparameters learned from them, or as they are for None."""
    return release if learning is None else release.learn(average=learning == "average")
