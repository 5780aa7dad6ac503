"""Citi Bike by Gaussian processes: errors of one fold under cloaking, `bayes` and the defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.design import design_strategy
from cloakgp.experiments import citibike
from cloakgp.experiments.asked import Asked, learned
from cloakgp.experiments.citibike import Fold
from cloakgp.experiments.cloaked import (
    LOGDET_NOISE,
    PAPERS_NOISE,
    TRACE_NOISE,
    Cloaked,
    Prior,
    mean_without_privacy,
)
from cloakgp.experiments.crossvalidation import root_mean_square
from cloakgp.release import Budget as VisitBudget
from cloakgp.release import Query, Release, choose_questions
from cloakgp.release.posterior import Posterior

NOISES = (PAPERS_NOISE, LOGDET_NOISE, TRACE_NOISE)
# A closer design takes ten times longer, for errors that differ by less than those of two draws.
GAP = 3e-2
# With these, FITC is the exact process to five digits down to 0.125°, and not quite at 0.05°.
INDUCING = 200
DEFAULT_INDUCING = 200

# Errors of one fold by budget, one per draw of the noise; of None, without privacy, there is one.
ByBudget = dict[float | None, list[float]]
Seed = Callable[[float, int], int | None]


def cloaking_errors(
    fold: Fold, *, lengthscale: float, draws: int, seed: Seed
) -> dict[str, ByBudget]:
    """Return errors of the raw predictions C y + noise of the exact process, by noise.

    Parameters
    ----------
    fold : Fold
    lengthscale : float
        In degrees.
    draws : int
        Releases for each noise and budget; the design is the same for all.
    seed : callable
        Budget and draw → insecure seed or None.
    """
    prior = citibike.exact_prior(lengthscale)
    cloaking = prior.cloaking_matrix(fold.X_query, fold.X)
    unnoised = prior.mean + cloaking @ (citibike.BOUNDS.clip(fold.y) - prior.mean)
    designs = {
        criterion: design_strategy(cloaking, criterion=criterion, gap=GAP)
        for criterion in {noise.criterion for noise in NOISES}
    }
    found: dict[str, ByBudget] = {}
    for noise in NOISES:
        cloaked = Cloaked(
            prior=prior,
            X=fold.X,
            X_query=fold.X_query,
            cloaking=cloaking,
            noise=noise,
            design=designs[noise.criterion],
        )
        found[noise.name] = {None: [root_mean_square(unnoised - fold.truth)]}
        for epsilon in citibike.EPSILONS:
            releases = (
                cloaked.released(
                    fold.y, budget=citibike.budget(epsilon), insecure_seed=seed(epsilon, draw)
                )
                for draw in range(draws)
            )
            found[noise.name][epsilon] = [
                root_mean_square(one.published().values - fold.truth) for one in releases
            ]
    return found


def bayes_errors(
    fold: Fold, *, lengthscale: float, inducing: Array, draws: int, seed: Seed
) -> ByBudget:
    """Return errors of posterior means, the questions chosen for the held-out inputs.

    Where somebody wants predictions is public, as it is in the paper's cloaking.

    Parameters
    ----------
    fold : Fold
    lengthscale : float
        In degrees.
    inducing : array of shape (M, 4)
    draws : int
    seed : callable
    """
    prior = citibike.sparse_prior(lengthscale, inducing=inducing)
    found: ByBudget = {None: [_error_without_privacy(fold, prior=prior)]}
    for epsilon in citibike.EPSILONS:
        questions = choose_questions(
            fold.X,
            prior=prior,
            query=Query(X=fold.X_query),
            bounds=citibike.BOUNDS,
            budget=VisitBudget(epsilon=epsilon, delta=citibike.DELTA),
            gap=GAP,
        )
        asked = Asked(prior=prior, questions=questions, budget=citibike.budget(epsilon))
        releases = [
            asked.released(fold.y, insecure_seed=seed(epsilon, draw)) for draw in range(draws)
        ]
        found[epsilon] = [
            root_mean_square(mean - fold.truth)
            for mean in posterior_means(releases, X_query=fold.X_query)
        ]
    return found


def default_errors(fold: Fold, *, draws: int, seed: Seed) -> dict[str, ByBudget]:
    """Return errors of ``DPGPRegressor(inducing=200)`` with nothing else chosen, by learning.

    It is not told where predictions will be wanted. Hyperparameters are learned from the first
    draw alone, which takes longer than all the rest.

    Parameters
    ----------
    fold : Fold
    draws : int
        Where nothing is learned.
    seed : callable
    """
    prior = choose_prior(fold.X, bounds=citibike.BOUNDS, inducing=DEFAULT_INDUCING)
    unnoised = _error_without_privacy(fold, prior=prior)
    declared: ByBudget = {None: [unnoised]}
    fitted: ByBudget = {None: [unnoised]}
    for epsilon in citibike.EPSILONS:
        asked = Asked.designed(fold.X, prior=prior, budget=citibike.budget(epsilon))
        releases = [
            asked.released(fold.y, insecure_seed=seed(epsilon, draw)) for draw in range(draws)
        ]
        declared[epsilon] = [
            root_mean_square(mean - fold.truth)
            for mean in posterior_means(releases, X_query=fold.X_query)
        ]
        best = learned(releases[0], "map").predict(fold.X_query)
        fitted[epsilon] = [root_mean_square(best - fold.truth)]
    return {"defaults, learn=None": declared, "defaults": fitted}


def posterior_means(releases: Sequence[Release], *, X_query: Array) -> list[Array]:
    """Return the posterior mean of every release, where all asked the same questions.

    One factorisation serves them all: the mean is linear in the answers.

    Parameters
    ----------
    releases : sequence of Release
        With one prior, and one measurement each, of the same questions.
    X_query : array of shape (P, D)

    Raises
    ------
    ValueError
        If their questions differ.
    """
    first = releases[0].measurements[0]
    if any(one.measurements[0].strategy is not first.strategy for one in releases):
        raise ValueError("these releases did not ask the same questions")
    prior = releases[0].prior
    posterior = Posterior.given(prior, releases[0].measurements)
    root = posterior.query_root(X_query)
    means = []
    for release in releases:
        (measurement,) = release.measurements
        residuals = measurement.residuals(prior.mean) / measurement.answers.noise_sd
        weights = linalg.solve_triangular(posterior.factor, residuals, lower=True)
        means.append(np.asarray(prior.mean + root @ weights, dtype=np.float64))
    return means


def _error_without_privacy(fold: Fold, *, prior: Prior) -> float:
    mean = mean_without_privacy(
        fold.X, fold.y, X_query=fold.X_query, prior=prior, bounds=citibike.BOUNDS
    )
    return root_mean_square(mean - fold.truth)
