"""Private fits of numbers under a prior that is declared, as `cloakgp.fitting.fit` makes them."""

from __future__ import annotations

from cloakgp.fitting.bands import Stages
from cloakgp.fitting.fit import Plan, fit
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.steps import NOTHING, Learning
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import DesignSettings, Model
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds
from cloakgp.release import Release
from cloakgp.utils.arrays import Array


def release_under(
    prior: ExactPrior,
    X: Array,
    y: Array,
    *,
    query: Query,
    bounds: OutputBounds,
    budget: Budget,
    learning: Learning = NOTHING,
    stages: Stages = None,
    insecure_seed: int | None = None,
) -> Release:
    """Return a release of numbers under a declared prior.

    Parameters
    ----------
    prior : ExactPrior
    X : array of shape (N, D)
    y : array of shape (N,)
    query : Query
        Where predictions matter.
    bounds : OutputBounds
    budget : Budget
    learning : Learning
    stages : "auto", None, or sequence of (share, width)
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.
    """
    model = Model(prior=prior, question=bounds)
    plan = Plan(
        budget=budget,
        model=lambda found: model,  # noqa: ARG005
        settings=DesignSettings(query=query),
        learning=learning,
        stages=stages,
        insecure_seed=insecure_seed,
    )
    return fit(HeldTable.of(X), y, plan)
