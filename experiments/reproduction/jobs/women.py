"""!Kung women: section 4 of the 2018 paper; table 1, figures 3, 4, 5, 12 of the 2021 paper."""

from __future__ import annotations

from functools import partial

import numpy as np

from cloakgp import DPGPRegressor
from cloakgp.utils.names import NoiseName
from experiments import figure_12, figures, kung, kung2018, nonstationary, published
from experiments.cloaking import PAPERS_NOISE, SHOWN_NOISES, TRACE_NOISE
from experiments.cross_validation import (
    CrossValidation,
    Protocol,
    cross_validate,
    posterior_errors,
    root_mean_square,
)
from experiments.datasets import load_kung
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly, of_errors
from experiments.reproduction.results import Quantity

FOLDS_2018 = (10, 14, 29, 72)
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)
DEFAULTS = "defaults"
CHOICES = (
    "papers",
    "algorithm 1",
    "any",
    "ours",
    "sound",
    "any of ours",
    "default",
    "map",
    "average",
)


def quantities_of(found: CrossValidation) -> dict[str, Quantity]:
    """Return the errors of a cross-validation: papers' noise, trace, and no privacy."""
    names = {PAPERS_NOISE.name: "papers", TRACE_NOISE.name: "trace"}
    return {"no privacy": of_errors(found.no_privacy)} | {
        short: of_errors(found.raw[name]) for name, short in names.items() if name in found.raw
    }


def by_folds(folds: int, draws: int) -> Found:
    """Return errors of the 2018 paper's setting for one number of folds."""
    women = load_kung(male=False)
    found = kung2018.errors_by_folds(women, protocol=Protocol(draws=draws), folds=(folds,))[folds]
    return Found(quantities_of(found.cloaked) | {"bayes": of_errors(found.bayes)})


def choice_2018(draws: int) -> Found:
    """Return the errors of private choices of a lengthscale and a noise, draws being splits."""
    errors = kung2018.compare_choices(load_kung(male=False), splits=draws)
    return Found({name: Quantity.of(one) for name, one in zip(CHOICES, errors, strict=True)})


def table_1(setting: kung.Model, draws: int) -> Found:
    """Return a cell of table 1 of the 2021 paper, and what it is without privacy."""
    women = load_kung(male=False)
    found = cross_validate(
        setting.rows(women),
        kung.heights(women),
        prior_for=setting.prior_for,
        noises=SHOWN_NOISES,
        budget=kung.BUDGET,
        protocol=Protocol(draws=draws),
    )
    return Found(quantities_of(found))


def defaults(setting: kung.Setting, draws: int) -> Found:
    """Return the errors of untouched defaults on the rows of table 1."""
    women = load_kung(male=False)
    rows = [row for row in kung.kung_rows(setting) if row.name == DEFAULTS]
    found = posterior_errors(
        setting.rows(women),
        kung.heights(women),
        rows=rows,
        budget=kung.BUDGET,
        protocol=Protocol(draws=draws),
    )
    return Found({DEFAULTS: of_errors(found[DEFAULTS])})


def figure_3(_: int) -> Found:
    """Draw figures 3A to 3D."""
    women = load_kung(male=False)
    standard, sparse = kung.TABLE_1[:2]
    models = {"A, standard": standard, "B, non-stationary": nonstationary.NONSTATIONARY[0]}
    curves = {
        name: {
            noise.name: kung.age_curve(women, setting=setting, noise=noise)
            for noise in SHOWN_NOISES
        }
        for name, setting in (models | {"C, sparse": sparse}).items()
    }
    ages = standard.rows(women)[:, 0]
    found: dict[str, Quantity] = {}
    for name, by_noise in curves.items():
        beyond = ages.max() <= kung.AGES
        sd = by_noise[PAPERS_NOISE.name].noise_sd[beyond]
        found |= exactly(**{f"{name[0]}, beyond the oldest": float(sd.max())})
    return Found(
        found,
        {
            "figure-3": figures.curves_figure(
                curves,
                X=ages,
                y=kung.heights(women),
                title="Heights of !Kung women by age, (1, 0.01)-DP (2021 paper, figures 3A to 3C)",
            ),
            "figure-3d": nonstationary.lengthscale_figure(
                nonstationary.lengthscales_by_age(women),
                X=ages,
                title="Lengthscale by age (2021 paper, figure 3D)",
            ),
        },
    )


def figure_4(_: int) -> Found:
    """Return expected errors by number of inducing inputs."""
    women = load_kung(male=False)
    by_count = kung.figure_4(women, counts=COUNTS, protocol=Protocol())
    found: dict[str, Quantity] = {}
    for count, one in by_count.items():
        found |= {f"{count}, {name}": each for name, each in quantities_of(one).items()}
    return Found(found, {"figure-4": published.inducing_inputs_figure(by_count)})


def figure_5(_: int) -> Found:
    """Return the noise at the point that the paper names, and draw figures 5A to 5C."""
    women = load_kung(male=False)
    models: dict[str, kung.Model] = {
        "A, standard": kung.TABLE_1[2],
        "B, sparse": kung.TABLE_1[3],
        "C, non-stationary": nonstationary.NONSTATIONARY[1],
    }
    surfaces = {
        name: {
            noise.name: kung.weight_age_surface(women, setting=setting, noise=noise)
            for noise in SHOWN_NOISES
        }
        for name, setting in models.items()
    }
    found: dict[str, Quantity] = {}
    for name, by_noise in surfaces.items():
        for noise, short in ((PAPERS_NOISE, "papers"), (TRACE_NOISE, "trace")):
            sd = kung.noise_sd_at_named_point(by_noise[noise.name])
            found |= exactly(**{f"{name[0]}, {short}": sd})
    drawn = figures.surfaces_figure(
        surfaces,
        style=kung.HEIGHTS,
        title="Heights of !Kung women by weight and age, (1, 0.01)-DP (2021 paper, figure 5)\nDisc "
        "area: released height. Fainter: more privacy noise, gone at 40 cm.",
    )
    return Found(found, {"figure-5": drawn})


def sum_of_kernels(_: int) -> Found:
    """Draw figure 12, and return the noise within the women's ages and beyond."""
    experiment = figure_12.Figure12()
    computed = experiment.compute(quietly)
    within = (computed.ages.min() <= figure_12.AGES) & (computed.ages.max() >= figure_12.AGES)
    found: dict[str, Quantity] = {}
    for model, by_noise in computed.curves.items():
        for noise, short in ((PAPERS_NOISE, "papers"), (TRACE_NOISE, "trace")):
            sd = by_noise[noise.name].noise_sd
            for where, chosen in (("within", within), ("beyond", ~within)):
                name = f"{model}, {short}, {where}"
                found |= exactly(**{name: root_mean_square(sd[chosen])})
    drawn = experiment.figures(computed)["kung-figure-12.png"]
    return Found(found, {"figure-12": drawn})


# Of the Laplace note: (noise, ε, δ).
NOISES: dict[str, tuple[NoiseName, float]] = {
    "Laplace, 0": ("laplace", 0.0),
    "Gaussian, 1e-2": ("gaussian", 1e-2),
    "Gaussian, 1e-5": ("gaussian", 1e-5),
}


def laplace_noise(epsilon: float, draws: int) -> Found:
    """Return errors of untouched defaults by age, with Laplace noise and with Gaussian noise."""
    women = load_kung(male=False)
    X, y = kung.TABLE_1[0].rows(women), kung.heights(women)
    bounds = kung.BUDGET.bounds
    found = {}
    for name, (noise, delta) in NOISES.items():
        errors = np.zeros((14, draws))
        for fold, (train, held_out) in enumerate(Protocol().splits(len(X))):
            for draw in range(draws):
                model = DPGPRegressor(
                    bounds=(bounds.lo, bounds.hi), epsilon=epsilon, delta=delta, noise=noise
                ).fit(X[train], y[train])
                wrong = model.predict(X[held_out]) - bounds.clip(y[held_out])
                errors[fold, draw] = root_mean_square(wrong)
        found[name] = Quantity.of(errors.mean(axis=0), spread=float(errors.mean(axis=1).std()))
    return Found(found)


HOW_2021 = (
    "(1, 0.01), d = 100 cm, 14 folds in file order, {draws} draws of the noise; spread: sd over "
    "folds"
)
JOBS = (
    *(
        Job(
            f"kung-2018-{folds}-folds",
            f"heights by age, ℓ = 25 years, (1, 0.01), {folds} folds in file order, {{draws}} "
            "draws of the noise; spread: sd over folds",
            40,
            partial(by_folds, folds),
            minutes=0.1,
        )
        for folds in FOLDS_2018
    ),
    Job(
        "kung-2018-choice",
        "a choice at ε = 1 and a release at (1, 0.01), 16 candidates, 100 Monte-Carlo runs, "
        "expected over the noise; {draws} validation sets of a tenth",
        10,
        choice_2018,
        minutes=1.1,
    ),
    *(
        Job(
            f"kung-{setting.name.replace(' ', '-')}",
            f"ℓ = 15, papers' ratio 10 : 25; {HOW_2021}",
            100,
            partial(table_1, setting),
            minutes=0.05,
        )
        for setting in kung.TABLE_1
    ),
    *(
        Job(
            f"kung-{setting.inputs}-nonstationary",
            f"longest lengthscale {setting.longest:g}, {setting.crowd:g} rows at it, bandwidth "
            f"{nonstationary.BANDWIDTH:g}, radius {nonstationary.RADIUS:g}; {HOW_2021}",
            60,
            partial(table_1, setting),
            minutes=0.05,
        )
        for setting in nonstationary.NONSTATIONARY
    ),
    *(
        Job(
            f"kung-{setting.inputs}-defaults",
            f"DPGPRegressor with bounds and budget alone; {HOW_2021}",
            20,
            partial(defaults, setting),
            minutes=1.1,
        )
        for setting in kung.TABLE_1[::2]
    ),
    Job(
        "kung-figure-3",
        "one release drawn ten times a panel; sds of the noise exactly",
        0,
        figure_3,
    ),
    Job(
        "kung-figure-4",
        "(1, 0.01), d = 100 cm, 14 folds in file order, expected over the noise; spread: sd over "
        "folds",
        0,
        figure_4,
    ),
    Job(
        "kung-figure-5",
        "(1, 0.01), 16 × 16 query points, 0 to 75 kg and 0 to 90 years",
        0,
        figure_5,
    ),
    Job("kung-figure-12", "(1, 0.01), variances of kernels not printed", 0, sum_of_kernels),
    *(
        Job(
            f"laplace-noise-{epsilon:g}",
            f"DPGPRegressor with bounds and budget alone, heights by age, ε = {epsilon:g}, 14 "
            "folds, {draws} draws of the noise",
            10,
            partial(laplace_noise, epsilon),
            minutes=1.5,
        )
        for epsilon in (0.3, 1.0, 3.0)
    ),
)
