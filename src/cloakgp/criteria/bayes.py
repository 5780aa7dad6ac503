"""Bayesian A-optimality: the least posterior variance at the query points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloakgp.criteria.base import Chosen, ChosenRule, Criterion, Problem, StreamedProblem

if TYPE_CHECKING:
    from cloakgp.models import OutputCovariance
    from cloakgp.models.likelihoods import LatentPrior, Likelihood
    from cloakgp.utils.arrays import Array

# Of the smaller problem that a design for many rows starts from.
DESIGN_CELLS = 1000


class _Bayes(Criterion):
    def choose(self, problem: Problem) -> Chosen:
        import numpy as np

        from cloakgp.design import design_bayes, design_l1
        from cloakgp.models import ConditionedCovariance, LinearisedCovariance

        prior, X, points = problem.prior, problem.X, problem.X_query
        weights = np.ones(len(points)) if problem.weights is None else problem.weights
        if weights.shape != (len(points),) or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError("query weights must be positive and finite, one per query point")
        covariance: OutputCovariance = prior.output_covariance(X)
        crossed = prior.cross_covariance(points, X).T
        variance = prior.query_variance(points)
        if problem.known is not None:
            at_rows = problem.known.row_root(X, table=problem.table)
            at_points = problem.known.query_root(points)
            precision = problem.known.precision_of(problem.table)
            floor = 1.0 / (1.0 / covariance.least_noise + precision)
            covariance = ConditionedCovariance(prior=covariance, known=at_rows, least_noise=floor)
            crossed = crossed - at_rows @ at_points.T
            variance = np.maximum(variance - np.square(at_points).sum(axis=1), 0.0)
        if problem.account is not None:
            slope = problem.account.slope
            covariance = LinearisedCovariance(covariance, slope, problem.account.residual)
            crossed = slope[:, None] * crossed
        sharpest = design_bayes if problem.ball == "l2" else design_l1
        design = sharpest(
            covariance,
            crossed * np.sqrt(weights),
            prior_variance=float(weights @ variance),
            noise_sd=problem.noise_sd,
            groups=problem.groups,
            gap=problem.gap,
            progress=problem.progress,
        )
        return Chosen(design.strategy, reconstruction=None, certificate=design.certificate)

    def choose_rule(self, problem: StreamedProblem) -> ChosenRule:
        import numpy as np

        from cloakgp.design.streaming.bayes import design_streamed_bayes
        from cloakgp.design.streaming.binning import Partition
        from cloakgp.design.streaming.conditioning import ConditionedModel
        from cloakgp.design.streaming.grouping import GroupedModel
        from cloakgp.design.streaming.l1_ball import design_streamed_l1
        from cloakgp.design.streaming.row_model import RememberedFeatures, RememberingModel
        from cloakgp.design.streaming.sums import sum_strategy

        prior, points, summary = problem.prior, problem.X_query, problem.summary
        queries, variance = prior.features(points), prior.query_variance(points)
        asked = prior if problem.bands is None else problem.bands
        model = GroupedModel(asked) if problem.grouped else asked
        conditioned = None
        if problem.bands is not None:
            queries = problem.bands.root.T @ queries
        elif problem.known is not None:
            conditioned = ConditionedModel(model=model, root=problem.known.inducing_root())
            queries = conditioned.root.T @ queries
        if problem.known is not None:
            explained = np.square(problem.known.query_root(points)).sum(axis=1)
            variance = np.maximum(variance - explained, 0.0)
        sharpest = design_streamed_bayes if problem.ball == "l2" else design_streamed_l1
        # Of a table that is much larger than its sample, the sample alone is gone through again.
        again = summary.count if problem.sample is None else len(summary.sample)
        design = sharpest(
            problem.rows,
            queries * np.sqrt(problem.weights),
            model=RememberingModel(conditioned or model, RememberedFeatures(again)),
            cells=Partition(centres=summary.centres(DESIGN_CELLS)[0], units=summary.units),
            prior_variance=float(problem.weights @ variance),
            noise_sd=problem.noise_sd,
            sample=problem.sample,
            gap=problem.gap,
            progress=problem.progress,
        )
        if conditioned is None:
            return ChosenRule(design.rule, design.sums, design.certificate, reconstruction=None)
        rule = conditioned.unconditioned(design.rule)
        sums = sum_strategy(problem.rows, model=model, rule=rule, remember=True)
        return ChosenRule(rule, sums, design.certificate, reconstruction=None)

    def prior_over_outputs(
        self, prior: LatentPrior, likelihood: Likelihood, X: Array
    ) -> LatentPrior:
        return likelihood.linear_prior(prior, X)


BAYES = _Bayes(
    name="bayes",
    option="sharpest predictions",
    aim="the questions were chosen for the sharpest predictions under {prior}.",
    certified="The variance that remains is certified to be within {gap} of the least that linear "
    "questions, asked at once, can leave under this guarantee.",
    uses=frozenset({"numbers", "classes", "many rows", "held-out rows", "stages"}),
    weighted=True,
    raw=False,
)
