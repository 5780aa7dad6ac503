"""Section 2 of the 2018 paper: constants, whole functions, figures 1 and 2."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np

from cloakgp.privacy.accounting import (
    exact_noise_multiplier,
    papers_noise_multiplier,
)
from experiments import functional, kung, kung2018
from experiments.cloaking import PAPERS_NOISE, Cloaked
from experiments.datasets import load_kung
from experiments.descent import descend
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly, rms
from experiments.reproduction.results import Quantity

# Published in its footnote, and in its caption and the talk.
FOOTNOTE, CAPTION = 50.0, 100.0
ASKED_AGES, DESCENT_STEPS = 20, (100, 2_000)


def constants(_: int) -> Found:
    """Return the papers' constant beside the exact one."""
    budget = kung.BUDGET
    papers = papers_noise_multiplier(budget.epsilon, budget.delta)
    return Found(
        exactly(
            papers=papers,
            exact=exact_noise_multiplier(budget.epsilon, budget.delta),
        )
    )


def claims(_: int) -> Found:
    """Return what the noise of figure 1A is, and what it guarantees."""
    women = load_kung(male=False)
    X = women[["age"]].to_numpy(dtype=float)
    prior = kung2018.prior_for(X)
    found: dict[str, Quantity] = {}
    for epsilon in (1.0, FOOTNOTE, CAPTION):
        claimed = functional.papers_noise(prior, X, epsilon=epsilon)
        exact, entry, signed, infinity = (kung2018.UNIT * one for one in astuple(claimed.bounds))
        found |= exactly(exact=exact, entry=entry, signed=signed, infinity=infinity)
        found |= exactly(
            **{
                f"sd at {epsilon:g}": claimed.sd,
                f"true epsilon at {epsilon:g}": claimed.true_epsilon,
                f"tight delta at {epsilon:g}": claimed.tight_delta,
            }
        )
    for apart in (1.0, 0.01):
        bounds = functional.bounds_of_two(apart)
        name = f"two rows {apart:g} apart"
        found |= exactly(**{name: bounds.signed, f"{name}, exact": bounds.exact})
    return Found(found)


def sds(_: int) -> Found:
    """Return sds of noise in predictions at some ages, and figures 1 and 2."""
    experiment = functional.Functional()
    women = load_kung(male=False)
    at = np.rint(women["age"].to_numpy(dtype=float) - functional.AGES[0]).astype(int)
    found: dict[str, Quantity] = {}
    for name, sd in functional.sds_by_age(women).items():
        found |= exactly(**{f"{name}, rms": rms(sd[at])})
        for age in (50, 150):
            place = int(age - functional.AGES[0])
            found |= exactly(**{f"{name}, {age} years": float(sd[place])})
    for name, sd in functional.cloaking_beyond(women).items():
        beyond = functional.BEYOND
        found |= exactly(
            **{
                f"{name}, greatest at": float(beyond[sd.argmax()]),
                f"{name}, greatest": float(sd.max()),
                f"{name}, 200 years": float(sd[-1]),
            }
        )
    drawn = experiment.figures(experiment.compute(quietly))
    return Found(
        found,
        {
            "figure-1": drawn["functional-figure-1.png"],
            "figure-2": drawn["functional-figure-2.png"],
        },
    )


def descents(starts: int) -> Found:
    """Return the noise of the papers' descents beside that of the optimum that they look for."""
    X = load_kung(male=False)[["age"]].to_numpy(dtype=float)
    asked = np.linspace(0.0, 90.0, ASKED_AGES)[:, None]
    optimum = Cloaked.designed(X, asked, prior=kung2018.prior_for(X), noise=PAPERS_NOISE)
    least = rms(np.linalg.norm(optimum.design.reconstruction, axis=1))
    found: dict[str, Quantity] = {}
    for steps in DESCENT_STEPS:
        for stays_positive, name in ((False, "as printed"), (True, "kept above zero")):
            made = [
                descend(
                    optimum.cloaking,
                    rng=np.random.default_rng(start),
                    steps=steps,
                    stays_positive=stays_positive,
                )
                for start in range(starts)
            ]
            excess = np.array([one.rms for one in made]) / least - 1.0
            found[f"{name}, {steps}"] = Quantity.of(excess)
            found |= exactly(
                **{
                    f"{name}, {steps}, most": float(excess.max()),
                    f"{name}, {steps}, least": float(excess.min()),
                    f"{name}, {steps}, converged": float(np.mean([one.converged for one in made])),
                }
            )
    return Found(found)


KUNG = "287 women, kernel variance 25.7² cm², ℓ = 25 years, noise variance 0.3 of it, d = 100 cm"
JOBS = (
    Job(
        "descent",
        f"287 women, kernel and noise variances as functions, {ASKED_AGES} ages from 0 to 90; "
        "from ten random starts",
        10,
        descents,
    ),
    Job("constants", "ε = 1, δ = 0.01", 0, constants),
    Job("function-claims", f"{KUNG}, δ = 0.01", 0, claims),
    Job(
        "functions",
        f"{KUNG}, δ = 0.01; sds exactly, 8 releases drawn; cloaking and bayes asked for one age a "
        "year, −20 to 150",
        0,
        sds,
    ),
)
