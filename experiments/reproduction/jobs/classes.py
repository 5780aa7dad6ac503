"""Classification: sections 6.4 to 6.6 of the 2021 paper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from experiments import digits, home_equity, stripes
from experiments.classification import Outcome, compare
from experiments.datasets import load_mnist_subset
from experiments.framework import quietly
from experiments.reproduction.jobs.base import Found, Job, exactly
from experiments.reproduction.results import Quantity


def accuracies(outcomes: Mapping[str, Outcome], *, of: Mapping[str, str]) -> dict[str, Quantity]:
    """Return shares of hits over draws, by the short names of methods."""
    return {short: Quantity.of(outcomes[name].hits) for short, name in of.items()}


def default_by_lines(draws: int) -> Found:
    """Return accuracies and probabilities of default by count, and draw figure 6."""
    experiment = home_equity.HomeEquity(draws=draws)
    computed = experiment.compute(quietly)
    methods = {
        "no privacy": home_equity.NO_PRIVACY,
        "papers": home_equity.PAPERS,
        "defaults": home_equity.DEFAULTS,
    }
    found = accuracies(computed.outcomes, of=methods)
    curves = computed.curves
    for count in (0, 2, 4, 6, 10):
        found |= exactly(**{f"P at {count}, no privacy": float(curves.reference[count])})
        for short in ("papers", "defaults"):
            probabilities = curves.probabilities(methods[short])[:, count]
            found[f"P at {count}, {short}"] = Quantity.of(
                probabilities, spread=float(probabilities.std(ddof=1))
            )
    drawn = experiment.figures(computed)["home-equity-figure-6.png"]
    return Found(found, {"figure-6": drawn})


def diagonal_stripes(draws: int) -> Found:
    """Return accuracies on stripes, and draw figure 7."""
    experiment = stripes.Stripes(draws=draws)
    computed = experiment.compute(quietly)
    methods = {
        "no privacy": stripes.NO_PRIVACY,
        "one step": stripes.PAPERS_ONE,
        "two steps": stripes.PAPERS_TWO,
        "bayes": stripes.SAME_KERNEL,
        "defaults": stripes.DEFAULTS,
    }
    found = accuracies(computed.outcomes, of=methods)
    return Found(found, {"figure-7": experiment.figures(computed)["stripes-figure-7.png"]})


def low_or_high(draws: int) -> Found:
    """Return accuracies on digits."""
    names = {
        "no privacy": digits.NO_PRIVACY,
        "papers": digits.PAPERS,
        "bayes": digits.DECLARED,
        "defaults": digits.DEFAULTS,
    }
    methods = {name: digits.METHODS[name] for name in names.values()}
    outcomes = compare(digits.tasks(load_mnist_subset(), draws), methods)
    return Found(accuracies(outcomes, of=names))


def by_lengthscale(lengthscale: float, draws: int) -> Found:
    """Return accuracies by number of inducing inputs, for one lengthscale of figure 8."""
    images = load_mnist_subset()
    by_count = digits.figure_8(
        images, lengthscales=(lengthscale,), counts=digits.FIGURE_8_COUNTS, draws=draws
    )
    shorts = {"no privacy": "no privacy", "papers' mechanism": "papers", "bayes": "bayes"}
    found: dict[str, Quantity] = {}
    for name, short in shorts.items():
        for count, outcome in by_count[name][lengthscale].items():
            found[f"{short}, {count}"] = Quantity.of(outcome.hits)
    high = np.array([one.y_test.mean() for one in digits.tasks(images, draws)])
    found["chance"] = Quantity.of(np.maximum(high, 1.0 - high))
    title = f"Low or high digits, l = {lengthscale:g}, (1, 0.01)-DP (2021 paper, figure 8)"
    return Found(found, {"figure-8": digits.inducing_figure(by_count, title=title)})


def convergence(_: int) -> Found:
    """Return how far the first Newton step goes, and draw figure 9."""
    computed = digits.figure_9(load_mnist_subset(), steps=8)
    title = "Newton's iteration, l = 380, 16 inducing (2021 paper, figure 9)"
    return Found(
        exactly(first=computed.first_share),
        {"figure-9": digits.convergence_figure(computed, title=title)},
    )


DRAWN = "(1, 0.01), {draws} draws of rows and noise; errors over draws"
JOBS = (
    Job(
        "home-equity",
        f"ℓ = 4 lines, 200 rows; {DRAWN}; probabilities in 100 releases about one draw of rows, "
        "spread: sd over releases",
        25,
        default_by_lines,
        minutes=0.4,
    ),
    Job("stripes", f"ℓ = 3.5, 200 rows; {DRAWN}", 25, diagonal_stripes, minutes=0.6),
    Job("digits", f"256 images to learn from, 100 to judge; {DRAWN}", 25, low_or_high, minutes=1.9),
    *(
        Job(
            f"digits-figure-8-{length:g}",
            f"ℓ = {length:g}, sixteen numbers of inducing inputs; {DRAWN}",
            25,
            partial(by_lengthscale, length),
            minutes=5.0,
        )
        for length in digits.FIGURE_8_LENGTHSCALES
    ),
    Job("digits-figure-9", "one draw of images, ℓ = 380, 16 inducing inputs", 0, convergence),
)
