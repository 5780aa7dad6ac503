"""Tables, sparse models and query points for designs of many rows."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from cloakgp.design import design_bayes
from cloakgp.design.streaming.bayes import (
    Stepping,
    StrategyState,
    main_query_directions,
)
from cloakgp.design.streaming.bayes import design_streamed_bayes as streamed_bayes
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.sampling import Sample
from cloakgp.design.streaming.sums import sum_strategy
from cloakgp.models import SparsePrior
from cloakgp.models.summary import summarise

Chunks = importlib.import_module("chunks").Chunks


@dataclass(frozen=True, eq=False)
class Task:
    """A table, a model and weighted query points."""

    X: np.ndarray
    model: SparsePrior
    X_query: np.ndarray
    weights: np.ndarray
    noise_sd: float

    @classmethod
    def drawn(
        cls,
        seed=0,
        *,
        rows=200,
        width=2,
        inducing=15,
        points=12,
        noise_sd=3.0,
        kernel=None,
        **model,
    ):
        rng = np.random.default_rng([seed, rows, width])
        X = rng.normal(size=(rows, width)) * rng.gamma(2.0, 0.5, size=(rows, 1))
        return cls(
            X=X,
            model=SparsePrior(
                kernel=kernel or Matern(1.5 * width**0.5, nu=1.5),
                noise_variance=0.1,
                mean=0.0,
                inducing=rng.normal(size=(inducing, width)),
                **model,
            ),
            X_query=rng.normal(size=(points, width)),
            weights=rng.uniform(0.5, 2.0, size=points),
            noise_sd=noise_sd,
        )

    @property
    def queries(self):
        return self.model.features(self.X_query) * np.sqrt(self.weights)

    @property
    def prior_variance(self):
        return float(self.weights @ self.model.query_variance(self.X_query))

    def design(self, table=None, *, cells=40, **settings):
        table = Chunks.of(self.X, rows=70) if table is None else table
        summary = summarise(Chunks(self.X))
        return streamed_bayes(
            table,
            self.queries,
            model=self.model,
            cells=Partition(centres=summary.centres(cells)[0], units=summary.units),
            prior_variance=self.prior_variance,
            noise_sd=self.noise_sd,
            **settings,
        )

    def sampled(self, rows, *, seed=0):
        """Some of the rows, which stand for all."""
        chosen = np.random.default_rng(seed).permutation(len(self.X))[:rows]
        return Sample(passes=Chunks.of(self.X[chosen], rows=50), share=len(self.X) / rows)

    def strategy(self, rule):
        return rule.columns(*self.model.features_and_noise(self.X))

    def explained(self, strategy):
        """By dense matrices alone."""
        outputs = self.model.row_covariance(self.X, self.X) + np.diag(self.model.row_noise(self.X))
        crossed = self.model.cross_covariance(self.X, self.X_query) * np.sqrt(self.weights)
        answers = strategy @ outputs @ strategy.T + self.noise_sd**2 * np.eye(len(strategy))
        answered = strategy @ crossed
        return float(np.vdot(answered, np.linalg.solve(answers, answered)))

    def best(self, *, gap=1e-4):
        """The design that sees every row."""
        return design_bayes(
            self.model.output_covariance(self.X),
            self.model.features(self.X).T @ self.queries,
            prior_variance=self.prior_variance,
            noise_sd=self.noise_sd,
            gap=gap,
        )

    def bound(self, rule, *, table=None):
        """The bound of a pass at any rule, by the duals of the strategy that follows it."""
        table = Chunks.of(self.X, rows=70) if table is None else table
        directions, lost = main_query_directions(self.queries, prior_variance=self.prior_variance)
        sums = sum_strategy(Chunks(self.X), model=self.model, rule=rule)
        state = StrategyState(
            features=sums.features,
            noise=sums.noise,
            queries=directions,
            noise_sd=self.noise_sd,
        )
        return self.bound_by(state, rule, table=table) + lost

    def bound_by(self, state, rule, *, table):
        """The bound of a pass at any rule, by the duals of any strategy."""
        duals = state.duals(gap=1e-9)
        stepping = Stepping(model=self.model, rule=rule, duals=duals)
        found = table.over_inputs(stepping, what="certifying")
        return duals.most_explained(
            found.duals, features=found.sums.features, noise=found.sums.noise
        )


TASKS = {
    "1-d, strong noise": {"width": 1, "rows": 300, "noise_sd": 30.0},
    "1-d, weak noise": {"width": 1, "rows": 150, "noise_sd": 1.0, "inducing": 8},
    "2-d, strong noise": {"rows": 600, "noise_sd": 30.0},
    "2-d, medium noise": {"rows": 300, "noise_sd": 3.0, "inducing": 8},
    "4-d, strong noise": {"width": 4, "rows": 400, "noise_sd": 30.0, "inducing": 20},
    "4-d, medium noise": {"width": 4, "rows": 250, "noise_sd": 5.0, "inducing": 8},
}
