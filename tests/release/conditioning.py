"""Shorter ways to condition on measurements, and to build them, for tests."""

from __future__ import annotations

import numpy as np

from cloakgp.design import Certificate
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.release import DenseStrategy, Measurement, StreamedStrategy, WeightedPrior
from cloakgp.release.hyperparameters.covariance import gather
from cloakgp.release.hyperparameters.learning import learn
from cloakgp.release.posterior.mixture import Mixture, answered_tables, condition
from cloakgp.release.sums import ChannelSums, PriorSums

UNCERTIFIED = Certificate(criterion="trace", gap=1e-3)


def weighted(prior, weight=1.0, likelihood=NUMBERS):
    return WeightedPrior(prior=prior, likelihood=likelihood, weight=weight)


def posterior_of(prior, measurements):
    """The posterior of one latent function given numbers."""
    [posterior] = condition(prior, NUMBERS, measurements)
    return posterior


def learning_answers(prior, measurements):
    tables, values = answered_tables(prior, measurements)
    return gather(tables, values[:, 0])


def learn_numbers(prior, measurements, **settings):
    return learn(prior, NUMBERS, measurements, **settings)


def mixture_of(priors, measurements):
    return Mixture.given(priors, measurements)


def dense(X, matrix, *, X_query=None, reconstruction=None, certificate=UNCERTIFIED, **others):
    return DenseStrategy(
        X=X,
        matrix=matrix,
        X_query=X if X_query is None else X_query,
        reconstruction=reconstruction,
        certificate=certificate,
        **others,
    )


def measured(X, matrix, answers, *, question, **others):
    return Measurement(strategy=dense(X, matrix, **others), question=question, answers=answers)


def streamed(prior, rule, sums, *, others=(), X_query=None, ranges=None):
    """A strategy of sums over rows; others are pairs of a prior and sums under it."""
    inputs = prior.inducing.shape[1]
    return StreamedStrategy(
        prior=prior,
        rule=rule,
        sums=tuple(
            PriorSums(
                prior=one, likelihood=NUMBERS, channels=(ChannelSums(each.features, each.noise),)
            )
            for one, each in ((prior, sums), *others)
        ),
        row_totals=sums.totals,
        rows=sums.count,
        chunk_rows=sums.chunk_rows,
        longest=sums.longest,
        input_ranges=np.array([[0.0] * inputs, [4.0] * inputs]) if ranges is None else ranges,
        X_query=np.zeros((1, inputs)) if X_query is None else X_query,
        query_weights=None,
        reconstruction=None,
        certificate=UNCERTIFIED,
    )
