"""Hyperparameter choices: section 5.1, section 6.7 and figures 10 and 11 of the 2021 paper."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments import four_points, table2, table2_choices, table2_rows
from experiments.datasets import load_kung
from experiments.framework import no_tick
from experiments.reproduction.jobs.base import Found, Job, exactly
from experiments.reproduction.results import Quantity

EPSILONS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)


def toy(_: int) -> Found:
    """Return the figures of the four points, and of the counterexample to equation 13."""
    found: dict[str, Quantity] = {}
    for order in (0, 1):
        folds = four_points.four_points_folds(order=order, split=four_points.HALVES)
        wrong = 0.0
        for fold in folds:
            predicted = fold.cloaking @ four_points.Y[fold.train]
            wrong += float(np.sum(np.square(predicted - four_points.Y[fold.held_out])))
        found |= exactly(**{f"no noise, order {order}": wrong})
    for one in four_points.choices():
        for order in (0, 1):
            name = f"{one.split}, {one.label}, error {order}"
            found |= exactly(**{name: float(one.errors[order])})
        found |= exactly(
            **{
                f"{one.split}, {one.label}, sensitivity": one.sensitivity,
                f"{one.split}, {one.label}, P(0)": float(one.probabilities[0]),
            }
        )
    moved, claimed = four_points.counterexample()
    return Found(found | exactly(moved=moved, claimed=claimed))


def printed_rows(_: int) -> Found:
    """Return how far printed errors of table 2 differ where the cloaking matrix is the same."""
    spread, matrices = table2_rows.largest_spread_of_printed_rows()
    near = table2_rows.share_near_the_best()
    return Found(exactly(spread=spread, matrices=matrices, near=near))


def section_6_7(column: str, _: int) -> Found:
    """Return expected errors by way of choosing, by algorithm 1 and soundly, and draw figure 10."""
    study = table2.Study.of(load_kung(male=False), column=column, tick=no_tick)
    found: dict[str, Quantity] = {}
    for prefix, rows in (("papers", study.papers_rows()), ("ours", study.our_rows())):
        for name, (same, other) in rows.items():
            short = name.split(", Δ_u")[0]
            found |= exactly(
                **{f"{prefix}, {short}, same": same, f"{prefix}, {short}, other": other}
            )
    for half, short in zip(study.halves, ("same", "other"), strict=True):
        found |= exactly(**{f"declared, {short}": table2_choices.declared_default_rmse(half)})
    table = table2_rows.Rows.of(study.papers, study.halves)
    (length, noise, variance), probability, rmse = table.best
    found |= exactly(
        **{
            "best": rmse,
            "best, probability": probability,
            "best, lengthscale": length,
            "best, noise": noise,
            "best, variance": variance,
            "mean of 80": table.mean,
            "likeness": table.likeness()[0],
        }
    )
    for place, configuration in enumerate(table2_choices.GRID):
        name = ", ".join(f"{one:g}" for one in configuration)
        figures = (table.probabilities[place], table.chooser[place], table.other[place])
        for what, figure in zip(("p", "same", "other"), figures, strict=True):
            found |= exactly(**{f"row {name}, {what}": float(figure)})
    return Found(found, {"figure-10": table2.figure_10(study)})


def lengthscales(column: str, _: int) -> Found:
    """Draw figure 11, and return how probable short lengthscales are at both ends."""
    study = table2.Study.of(load_kung(male=False), column=column, tick=no_tick)
    chosen = table2.chosen_lengthscales(study, epsilons=EPSILONS)
    found: dict[str, Quantity] = {}
    for name, short in zip(chosen.panels, ("papers", "ours"), strict=True):
        shares = chosen.panels[name]
        for place, epsilon in ((0, EPSILONS[0]), (-1, EPSILONS[-1])):
            found |= exactly(**{f"{short}, up to 25, {epsilon:g}": float(shares[:3, place].sum())})
    return Found(found, {"figure-11": table2.figure_11(chosen, column=column)})


JOBS = (
    Job("four-points", "(1, 0.01), d = 2, expected over the noise", 0, toy),
    Job("table-2-printed", "the printed rows alone", 0, printed_rows),
    *(
        Job(
            f"section-6-7-{column}",
            f"the first 144 women choose by {column}, 5 folds in file order, a choice at ε = 1 and "
            "a release at (1, 0.01), expected over the noise at the optimum of log det",
            0,
            partial(section_6_7, column),
            minutes=0.1,
        )
        for column in ("weight", "age")
    ),
    *(
        Job(
            f"figure-11-{column}",
            f"as section 6.7 by {column}, exactly calibrated noise, the same ε for both",
            0,
            partial(lengthscales, column),
            minutes=0.3,
        )
        for column in ("weight", "age")
    ),
)
