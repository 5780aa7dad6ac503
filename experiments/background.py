r"""Sections 1 to 3 of the 2021 paper: figures 1 and 2, a count, and fifty copies of a statistic.

Figure 1 is a Gaussian process before and after it is conditioned on one observation. Its
lengthscale is not printed; here it is 1.

Figure 2 motivates the rest of the paper: ten rows, one apart from the others, whose output is
lowered by 0.25, and a posterior mean that moves "by up to six times" as much. Kernel, lengthscale 2
and noise 0.001 are printed, the inputs are not. The factor is the largest entry of one column of
C = K_*f K⁻¹, so that no output matters to it. Here nine rows are evenly spread over an interval and
the tenth lies beyond it at several distances; and nine are scattered, as rows are, many times.

Section 2.2 counts insulin-dependent inpatients, who each change the count by one, and says that "a
variance of at least 1.77²" is needed for (1, 0.01)-differential privacy, by σ² ≥ c Δ/ε with c² = 2
ln(1.25/δ). The theorem that it cites (Dwork and Roth 2014, appendix A) has σ ≥ c Δ/ε: the square is
in the wrong place. The noise of sd 1.77 that the paper names does not keep (1, 0.01).

It goes on that fifty copies of a statistic need no more noise than one, where the noise is the
same, and that noise should be independent for independent statistics. Both are exact. With the
matrix C of the statistics, fifty equal rows leave a strategy of one question. Where every person is
in one of fifty statistics, each gets the noise that it would get alone; where every person is in
all of fifty that have nothing in common, each needs √50 times the noise of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from scipy.linalg import hadamard
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from cloakgp.design import CriterionName, design_strategy
from cloakgp.models import ExactPrior
from cloakgp.privacy.accounting import (
    exact_noise_multiplier,
    gaussian_delta,
    papers_noise_multiplier,
)
from cloakgp.utils.arrays import Array
from experiments.figures import BLACK, BLUE, GREY, RED
from experiments.framework import Experiment, Progress, table_titled

EPSILON, DELTA = 1.0, 0.01
# For draws of a prior and of a posterior that hold nobody's output: no privacy noise.
PUBLIC_SEED = 2021

# Figure 1: the kernel, the observation, and where the function is wanted.
LENGTHSCALE_1 = 1.0
OBSERVED, OUTPUT = 5.0, 1.0
WANTED = 6.0
DRAWN = 12

# Figure 2.
PRIOR = ExactPrior(kernel=RBF(2.0), noise_variance=0.001, mean=0.0)
CLUSTER = np.linspace(0.0, 2.0, 9)
OUTLIER_BEFORE, OUTLIER_AFTER = 0.4, 0.15
DISTANCES = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
SCATTER_SD, SCATTERS = 1.0, 200
QUANTILES = (0.1, 0.5, 0.9, 1.0)
PUBLISHED_FACTOR = 6.0

# Section 2.2.
PUBLISHED_COUNT_SD = 1.77
COPIES = 50
PEOPLE = 64


@dataclass(frozen=True)
class CountNoise:
    """Noise on a count, and what it guarantees.

    Attributes
    ----------
    rule : str
    sd : float
    delta : float
        At ε = 1, really.
    """

    rule: str
    sd: float
    delta: float


def count_noises() -> list[CountNoise]:
    """Return the noises that rules ask for on a count at (1, 0.01).

    Examples
    --------
    >>> [(round(one.sd, 2), one.delta <= DELTA) for one in count_noises()][0]
    (1.77, False)
    """
    rules = {
        "2021 paper, “variance 1.77²”": PUBLISHED_COUNT_SD,
        "what it cites, σ ≥ √(2 ln(1.25/δ))/ε": math.sqrt(2 * math.log(1.25 / DELTA)) / EPSILON,
        "the papers' own, √(2 ln(2/δ))/ε": papers_noise_multiplier(EPSILON, DELTA),
        "exact": exact_noise_multiplier(EPSILON, DELTA),
    }
    return [
        CountNoise(rule=rule, sd=sd, delta=gaussian_delta(1.0 / sd, EPSILON))
        for rule, sd in rules.items()
    ]


def copies_of_a_mean(*, copies: int, people: int) -> Array:
    """Return C of one mean over all people, so many times, shape (copies, people).

    Examples
    --------
    >>> copies_of_a_mean(copies=2, people=4).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    return np.full((copies, people), 1.0 / people)


def means_of_groups(*, groups: int, people: int) -> Array:
    """Return C of one mean for each of some groups, shape (groups, groups · people).

    Examples
    --------
    >>> means_of_groups(groups=2, people=2).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    return np.kron(np.eye(groups), np.full((1, people), 1.0 / people))


def unrelated_contrasts(*, count: int, people: int) -> Array:
    """Return C of contrasts between the same people, of any two of which neither tells the other.

    Parameters
    ----------
    count : int
        At most ``people``.
    people : int
        A power of two.

    Returns
    -------
    array of shape (count, people)
        Rows of a Hadamard matrix over ``people``: each person counts ± 1/people in all.

    Examples
    --------
    >>> unrelated_contrasts(count=2, people=2).tolist()
    [[0.5, 0.5], [0.5, -0.5]]
    """
    contrasts: Array = hadamard(people)[:count] / people
    return contrasts


def noise_sds(C: Array, *, criterion: CriterionName = "logdet") -> Array:
    """Return the sd of the noise on every statistic, in units of d, (1, 0.01)-DP, shape (P,).

    Parameters
    ----------
    C : array of shape (P, N)
    """
    design = design_strategy(C, criterion=criterion, gap=1e-9)
    lengths: Array = np.linalg.norm(design.reconstruction, axis=1)
    return exact_noise_multiplier(EPSILON, DELTA) * lengths


def copies() -> dict[str, Array]:
    """Return the noise sds of one mean, of fifty copies and of fifty other statistics, by name."""
    return {
        "one mean": noise_sds(copies_of_a_mean(copies=1, people=PEOPLE)),
        f"{COPIES} copies of it": noise_sds(copies_of_a_mean(copies=COPIES, people=PEOPLE)),
        f"{COPIES} means, each of {PEOPLE} others": noise_sds(
            means_of_groups(groups=COPIES, people=PEOPLE)
        ),
        f"{COPIES} unrelated contrasts of the same": noise_sds(
            unrelated_contrasts(count=COPIES, people=PEOPLE)
        ),
    }


@dataclass(frozen=True, eq=False)
class Pivot:
    """Ten rows, the last apart from the others, and how its output moves the posterior mean.

    Attributes
    ----------
    distance : float
        Of the last row from the nearest other.
    X : array of shape (10, 1)
    inputs : array of shape (P,)
    moved : array of shape (P,)
        The posterior mean's change per unit of the last output.
    """

    distance: float
    X: Array
    inputs: Array
    moved: Array

    @property
    def factor(self) -> float:
        """The largest change of the posterior mean per unit of the last output."""
        return float(np.abs(self.moved).max())

    @property
    def where(self) -> float:
        """At which input that is."""
        return float(self.inputs[np.abs(self.moved).argmax()])


def pivot(distance: float, *, others: Array = CLUSTER, points: int = 1201) -> Pivot:
    """Return what the output of an outlier does to the posterior mean of figure 2.

    Parameters
    ----------
    distance : float
        Of the outlier from the largest other input.
    others : array of shape (9,)
        The other inputs.
    points : int
        Where the mean is looked at, evenly from 8 before the first row to 8 beyond the last.
    """
    X = np.append(others, others.max() + distance)[:, None]
    inputs = np.linspace(X.min() - 8.0, X.max() + 8.0, points)
    moved = PRIOR.cloaking_matrix(inputs[:, None], X)[:, -1]
    return Pivot(distance=distance, X=X, inputs=inputs, moved=moved)


def scattered_factors(distance: float, *, draws: int = SCATTERS, points: int = 201) -> Array:
    """Return the factor for nine other inputs that are drawn from a normal law, shape (draws,).

    Parameters
    ----------
    distance : float
        Of the outlier from the largest other input.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    return np.array(
        [
            pivot(distance, others=rng.normal(scale=SCATTER_SD, size=9), points=points).factor
            for _ in range(draws)
        ]
    )


def noise_by_input(found: Pivot, *, criterion: CriterionName = "logdet") -> Array:
    """Return the sd of the noise along the inputs of figure 2, in units of d, shape (P,).

    Parameters
    ----------
    found : Pivot
    """
    return noise_sds(PRIOR.cloaking_matrix(found.inputs[:, None], found.X), criterion=criterion)


def process_figure() -> Figure:
    """Draw figure 1: a Gaussian process, and the same one given an observation."""
    prior = ExactPrior(kernel=RBF(LENGTHSCALE_1), noise_variance=1e-9, mean=0.0)
    inputs = np.linspace(0.0, 10.0, 201)
    X = np.array([[OBSERVED]])
    C = prior.cloaking_matrix(inputs[:, None], X)
    covariance = prior.query_covariance(inputs[:, None])
    left = covariance - C @ prior.cross_covariance(inputs[:, None], X).T
    figure = Figure(figsize=(13.5, 7.2), layout="constrained")
    rows = figure.subplots(2, 3, width_ratios=(2.2, 1.2, 1.0))
    at = [int(np.abs(inputs - place).argmin()) for place in (OBSERVED, WANTED)]
    for (samples, pair, one), mean, cov, letters, word in (
        (rows[0], np.zeros(len(inputs)), covariance, "ABC", "prior"),
        (rows[1], C[:, 0] * OUTPUT, left, "DEF", "posterior"),
    ):
        for draw in _draws(mean, cov, count=DRAWN):
            samples.plot(inputs, draw, color=GREY, linewidth=0.8)
        samples.plot(inputs, mean, color=BLUE, linewidth=2.0)
        for place in (OBSERVED, WANTED):
            samples.axvline(place, color=BLACK, linewidth=0.8)
        samples.set(ylim=(-3.2, 3.2), xlabel="x", ylabel="f(x)")
        samples.set_title(f"{letters[0]}: draws of the {word}", fontsize=10)
        _draw_pair(pair, covariance[np.ix_(at, at)], observed=word == "posterior")
        pair.set_title(f"{letters[1]}: f({OBSERVED:g}) and f({WANTED:g})", fontsize=10)
        values = np.linspace(-3.2, 3.2, 200)
        density = norm.pdf(values, mean[at[1]], math.sqrt(cov[at[1], at[1]]))
        one.plot(density, values, color=BLUE)
        one.set(xlabel="density", ylabel=f"f({WANTED:g})", xlim=(0.0, 0.9))
        one.set_title(f"{letters[2]}: f({WANTED:g}), {word}", fontsize=10)
    rows[1][0].plot(OBSERVED, OUTPUT, "o", color=RED, markersize=8)
    figure.suptitle(
        f"A Gaussian process, and the same given f({OBSERVED:g}) = {OUTPUT:g} (2021 paper, figure "
        f"1); lengthscale {LENGTHSCALE_1:g}",
        fontsize=12,
    )
    return figure


def _draw_pair(axes: Axes, covariance: Array, *, observed: bool) -> None:
    turns = np.linspace(0, 2 * np.pi, 200)
    circle = np.vstack([np.cos(turns), np.sin(turns)])
    for sds in (1.0, 2.0):
        axes.plot(*(sds * np.linalg.cholesky(covariance) @ circle), color=BLUE, linewidth=1.0)
    if observed:
        axes.axvline(OUTPUT, color=RED, linewidth=1.2)
    axes.set(xlabel=f"f({OBSERVED:g})", ylabel=f"f({WANTED:g})", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))


def _draws(mean: Array, covariance: Array, *, count: int) -> Array:
    variances, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(variances, 0.0))
    standard = np.random.default_rng(PUBLIC_SEED).normal(size=(count, len(mean)))
    return np.asarray(mean + standard @ root.T, dtype=np.float64)


def pivot_figure(found: Pivot) -> Figure:
    """Draw figure 2: an output is lowered, and the posterior mean moves far from where it lies."""
    figure = Figure(figsize=(7.6, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    before = np.append(_smooth_outputs(), OUTLIER_BEFORE)
    after = np.append(before[:-1], OUTLIER_AFTER)
    C = PRIOR.cloaking_matrix(found.inputs[:, None], found.X)
    explained = np.einsum("ij,ij->i", C, PRIOR.cross_covariance(found.inputs[:, None], found.X))
    sd = np.sqrt(np.maximum(1.0 - explained, 0.0))
    mean = C @ before
    upper.plot(found.inputs, mean, color=RED, label="posterior mean, and ± sd")
    for sign in (-1.0, 1.0):
        upper.plot(found.inputs, mean + sign * sd, color=RED, linewidth=0.7)
    change = OUTLIER_BEFORE - OUTLIER_AFTER
    upper.plot(found.inputs, C @ after, "--", color=BLUE, label=f"one output lowered by {change:g}")
    upper.plot(found.X[:, 0], before, "x", color=RED, markersize=8)
    upper.plot(found.X[-1, 0], OUTLIER_AFTER, "x", color=BLUE, markersize=8)
    upper.set(ylabel="output", ylim=(-3.0, 3.0))
    upper.legend(loc="best", fontsize=9, frameon=False)
    lower.plot(found.inputs, np.abs(found.moved), color=BLUE, label="moved by the outlier's output")
    lower.plot(found.inputs, noise_by_input(found), color=BLACK, label="noise sd, log det")
    lower.set(xlabel="input", ylabel="in units of d")
    lower.legend(loc="best", fontsize=9, frameon=False)
    figure.suptitle(
        f"A change of {change:g} in an output moves the posterior mean by up to\n"
        f"{found.factor:.1f} times as much (2021 paper, figure 2)",
        fontsize=11,
    )
    return figure


def _smooth_outputs() -> Array:
    # The paper prints none, and the factor does not depend on them.
    outputs: Array = 0.3 * np.sin(CLUSTER / 2.0)
    return outputs


@dataclass(frozen=True, eq=False)
class Found:
    """Noise on a count, noise sds of statistics by name, pivots and scattered factors by distance.

    Attributes
    ----------
    counts : sequence of CountNoise
    copies : mapping of str to array
    pivots : sequence of Pivot
    scattered : sequence of array of shape (draws,)
    """

    counts: Sequence[CountNoise]
    copies: Mapping[str, Array]
    pivots: Sequence[Pivot]
    scattered: Sequence[Array]


@dataclass(frozen=True)
class Background(Experiment[Found]):
    """Figures 1 and 2 of the 2021 paper, and section 2.2: a count, and fifty copies."""

    name: ClassVar[str] = "background"
    small: ClassVar[Mapping[str, Any]] = {"distances": DISTANCES[:3], "scatters": 20}

    distances: Sequence[float] = DISTANCES
    scatters: int = SCATTERS

    def compute(self, progress: Progress) -> Found:
        """Compute everything: it is little."""
        with progress("distances", steps=len(self.distances)) as tick:
            pivots, scattered = [], []
            for distance in self.distances:
                pivots.append(pivot(distance))
                scattered.append(scattered_factors(distance, draws=self.scatters))
                tick()
        return Found(counts=count_noises(), copies=copies(), pivots=pivots, scattered=scattered)

    def nearest(self, found: Found) -> Pivot:
        """Return the distance at which the factor is nearest to the paper's."""
        return min(found.pivots, key=lambda one: abs(one.factor - PUBLISHED_FACTOR))

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out the count, the copies and the pivots."""
        table = table_titled(
            f"Noise on a count of people (Δ = 1) for ({EPSILON:g}, {DELTA:g})-differential privacy "
            "(2021 paper, section 2.2)",
            "rule",
            right=("sd", "variance", "δ at ε = 1"),
        )
        for one in found.counts:
            table.add_row(one.rule, f"{one.sd:.3f}", f"{one.sd**2:.2f}", f"{one.delta:.4f}")
        yield table
        paper, cited = found.counts[:2]
        yield (
            f"The paper takes √ of the cited bound: sd {paper.sd:g} instead of {cited.sd:.2f}. At "
            f"ε = 1 that has δ = {paper.delta:.4f}, above {DELTA:g}: its example is not private as "
            "stated, by a little."
        )
        table = table_titled(
            f"Noise sd of statistics of {PEOPLE} people's outputs, in units of d, (1, 0.01)-DP, "
            "log det design, exact calibration (2021 paper, section 2.2)",
            "statistics",
            right=("each", "times one mean"),
        )
        alone = float(found.copies["one mean"][0])
        for name, sds in found.copies.items():
            table.add_row(name, f"{sds.max():.5f}", f"{sds.max() / alone:.3f}")
        yield table
        yield (
            "Copies cost nothing, as the paper says. Independent statistics cost nothing if each "
            f"is about other people, and √{COPIES} = {math.sqrt(COPIES):.2f} times the sd if all "
            "are about the same."
        )
        table = table_titled(
            "Figure 2 of the 2021 paper: how far the posterior mean moves per unit of an outlier's "
            f"output, by its distance; nine rows evenly over {CLUSTER[0]:g} to {CLUSTER[-1]:g}, or "
            f"scattered, sd {SCATTER_SD:g}, {self.scatters} times (published: up to "
            f"{PUBLISHED_FACTOR:g}, inputs not printed)",
            right=(
                *("distance", "evenly", "at input"),
                *(f"scattered, {100 * share:g} %" for share in QUANTILES),
            ),
        )
        for moved, factors in zip(found.pivots, found.scattered, strict=True):
            table.add_row(
                *(f"{moved.distance:g}", f"{moved.factor:.2f}", f"{moved.where:.1f}"),
                *(f"{factor:.2f}" for factor in np.quantile(factors, QUANTILES)),
            )
        yield table

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw figures 1 and 2."""
        return {
            "background-figure-1.png": process_figure(),
            "background-figure-2.png": pivot_figure(self.nearest(found)),
        }
