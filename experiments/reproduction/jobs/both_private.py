"""Private inputs: the 2018 supplement's bound, and what this package does instead."""

from __future__ import annotations

import numpy as np

from cloakgp.privacy.varah import NotDominantError, dominance_bound
from experiments import kung, private_inputs
from experiments.cross_validation import Protocol
from experiments.datasets import load_kung
from experiments.reproduction.jobs.base import Found, Job, exactly, of_errors
from experiments.reproduction.results import Quantity


def dominance(_: int) -> Found:
    """Return the supplement's bound for inducing ages so far apart; 0 where there is none."""
    rows = len(load_kung(male=False))
    found: dict[str, Quantity] = {}
    for gap in private_inputs.GAPS:
        try:
            move = dominance_bound(
                np.arange(5.0, 100.0, gap)[:, None],
                signal_variance=kung.TUNED_SIGNAL,
                lengthscale=kung.TUNED_LENGTHSCALES["1d"],
                noise_variance=kung.TUNED_NOISE,
                rows=rows,
                width=kung.BUDGET.bounds.width,
            ).prediction_move
        except NotDominantError:
            move = 0.0
        found |= exactly(**{f"{gap:g} years": move})
    return Found(found)


def statistics(draws: int) -> Found:
    """Return errors of private statistics, of histograms, and with public inputs."""
    computed = private_inputs.kung_errors(
        load_kung(male=False), epsilon=1.0, neighbours="replace", protocol=Protocol(draws=draws)
    )
    found = {name: of_errors(errors) for name, errors in computed.errors.items()}
    for name, share in computed.coverage.items():
        found[f"coverage, {name}"] = Quantity(mean=share, draws=draws)
    return Found(found)


JOBS = (
    Job("dominance", "287 rows, ℓ = 15 years, sds 25.5 and 6.7 cm, d = 100 cm", 0, dominance),
    Job(
        "private-inputs",
        "ages and heights both private, one row replaced, (1, 0.01), 14 folds, {draws} draws of "
        "the noise",
        10,
        statistics,
        minutes=0.2,
    ),
)
