"""Whole functions: section 2 and figures 1 and 2 of the 2018 paper.

Figure 1 has the heights of 287 !Kung women by age, lengthscale 25 years, d = 100 cm, δ = 0.01. With
kernel variance 1 and noise variance 0.3 in units of the heights' sd (`kung2018`) its bound b(K⁻¹)
is 4.38, and its noise at ε = 50 has the sd 28.53 cm that it prints. A note says ε = 50 and the
caption ε = 100, as do the talk and a public notebook: at 100 the sd is half. Both are drawn. The
constant √(2 ln(2/δ))/ε that it uses there is proved for ε ≤ 1 only: with a tight sensitivity it
gives no privacy at ε = 50, δ being 1. What saves figure 1A is that b(K⁻¹) is not tight.

Figure 2 explains the noise with two rows and two query points. Its settings are not printed; these
are our own, with the same behaviour: moving one output moves the two predictions apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF

from cloakgp.design import Certificate, design_strategy
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.models import ExactPrior, rkhs
from cloakgp.privacy.accounting import gaussian_delta, gaussian_epsilon, papers_noise_multiplier
from cloakgp.privacy.function import FunctionAnswers, measure_function
from cloakgp.release import DenseStrategy, Measurement, Release
from cloakgp.release.functional import ReleasedFunction
from cloakgp.utils.arrays import Array
from experiments import figures, kung, kung2018
from experiments.cloaking import (
    LOGDET_NOISE,
    PAPERS_NOISE,
    TRACE_NOISE,
    Cloaked,
    Prior,
    mean_without_privacy,
    noise_sd,
    sd_without_privacy,
)
from experiments.datasets import load_kung
from experiments.figures import Curve, released_curve
from experiments.fits import release_under
from experiments.framework import Experiment, Progress, table_titled

BUDGET = kung.BUDGET
# Of the note and of the caption.
PAPERS_EPSILON, CAPTIONS_EPSILON = 50.0, 100.0
PAPERS_SCALE = 28.53
# A point a year; the paper has 200 points over an interval that it does not print.
AGES = np.linspace(-20.0, 150.0, 171)
POINTS = AGES[:, None]
# The oldest woman is 88 years old.
BEYOND = np.linspace(89.0, 200.0, 112)
SHOWN_AGES = (0, 25, 50, 75, 100)
DRAWN_RELEASES = 8
# For what is independent of all outputs and protects nothing: public, and no privacy noise.
PUBLIC_SEED = 2018

TOY_PRIOR = ExactPrior(kernel=RBF(5.0), noise_variance=0.02, mean=0.0)
# Outputs in a unit in which d = 1.
TOY_X, TOY_Y = np.array([[1.0], [4.0]]), np.array([0.2, 0.6])
TOY_QUERY = np.array([[0.3], [4.7]])
TOY_COLOURS = (figures.RED, "#27854a")


@dataclass(frozen=True)
class PapersNoise:
    """What the 2018 paper's noise is, and what it guarantees.

    Attributes
    ----------
    bounds : SensitivityBounds
    sd : float
        Of the noise, anywhere, in output units.
    mu : float
        Of Gaussian differential privacy, really.
    true_epsilon : float
        At δ = 0.01, really.
    tight_delta : float
        At the claimed ε, if the bound of the sensitivity were tight.
    """

    bounds: rkhs.SensitivityBounds
    sd: float
    mu: float
    true_epsilon: float
    tight_delta: float


def papers_noise(prior: Prior, X: Array, *, epsilon: float) -> PapersNoise:
    """Return the noise of section 2 of the 2018 paper, f + d b(K⁻¹) √(2 ln(2/δ))/ε G.

    Its algorithm 1 squares d b(K⁻¹) in line 3 and multiplies by d once more in line 5; equation 1
    and the printed scale do neither.

    Parameters
    ----------
    X : array of shape (N, D)
    """
    bounds = rkhs.sensitivity_bounds(prior, X)
    # The package refuses this constant beyond ε = 1.
    multiplier = papers_noise_multiplier(1.0, BUDGET.delta) / epsilon
    mu = bounds.exact / (bounds.signed * multiplier)
    kernel_sd = float(np.sqrt(prior.query_variance(X).max()))
    return PapersNoise(
        bounds=bounds,
        sd=BUDGET.bounds.width * bounds.signed * multiplier * kernel_sd,
        mu=mu,
        true_epsilon=gaussian_epsilon(mu, BUDGET.delta),
        tight_delta=gaussian_delta(1.0 / multiplier, epsilon),
    )


def bounds_of_two(apart: float) -> rkhs.SensitivityBounds:
    """Return how far one of two outputs can move a function, with next to no noise in the prior.

    Parameters
    ----------
    apart : float
        Years between the two.
    """
    prior = ExactPrior(kernel=RBF(kung2018.LENGTHSCALE), noise_variance=1e-6, mean=0.0)
    return rkhs.sensitivity_bounds(prior, np.array([[50.0], [50.0 + apart]]))


def cloaking_beyond(women: pd.DataFrame) -> dict[str, Array]:
    """Return sds of cloaked heights at the ages `BEYOND` the oldest woman's, by noise, in cm.

    Asked for every age from −20 to the last of these.
    """
    X, y, prior = _table(women)
    points = np.arange(AGES[0], BEYOND[-1] + 1.0)[:, None]
    found = {}
    for noise in (PAPERS_NOISE, TRACE_NOISE):
        cloaked = Cloaked.designed(X, points, prior=prior, noise=noise)
        found[f"cloaking, {noise.name}"] = noise_sd(cloaked.released(y, budget=BUDGET))[
            -len(BEYOND) :
        ]
    return found


def function_curve(women: pd.DataFrame, *, epsilon: float, in_full: bool) -> Curve:
    """Release heights by age as whole functions, (ε, 0.01)-DP each.

    Parameters
    ----------
    in_full : bool
        Add, from a public seed, the part of Hall et al.'s noise that is independent of all answers
        and protects nothing, as in the paper.
    """
    X, y, prior = _table(women)
    drawn = [
        ReleasedFunction.given(prior, _measure(X, y, prior=prior, epsilon=epsilon))
        for _ in range(DRAWN_RELEASES)
    ]
    values = np.array([function(POINTS) for function in drawn])
    sd = drawn[0].noise_sd(POINTS)
    if in_full:
        scale = BUDGET.bounds.width * rkhs.rkhs_sensitivity(prior, X) / drawn[0].guarantee.mu
        left_out = rkhs.function_span(prior, X).unspanned_covariance(POINTS)
        values = values + scale * _public_draws(left_out, count=DRAWN_RELEASES)
        sd = scale * np.sqrt(prior.query_variance(POINTS))
    return Curve(
        inputs=AGES,
        mean=mean_without_privacy(X, y, X_query=POINTS, prior=prior, bounds=BUDGET.bounds),
        sd=sd_without_privacy(X, X_query=POINTS, prior=prior),
        noise_sd=sd,
        releases=values,
        inducing=None,
    )


def sds_by_age(women: pd.DataFrame) -> dict[str, Array]:
    """Return the sds at `AGES` of every way to release heights, by name, in cm."""
    X, y, prior = _table(women)
    measured = _measure(X, y, prior=prior, epsilon=BUDGET.epsilon)
    scale = BUDGET.bounds.width * rkhs.rkhs_sensitivity(prior, X) / measured.answers.guarantee.mu
    sds = {
        name: np.full(len(AGES), papers_noise(prior, X, epsilon=epsilon).sd)
        for name, epsilon in (
            (f"function, papers', “ε = {CAPTIONS_EPSILON:g}”", CAPTIONS_EPSILON),
            (f"function, papers', “ε = {PAPERS_EPSILON:g}”", PAPERS_EPSILON),
            ("function, papers'", BUDGET.epsilon),
        )
    }
    sds["function, exact, G in full"] = scale * np.sqrt(prior.query_variance(POINTS))
    sds["function, exact"] = ReleasedFunction.given(prior, measured).noise_sd(POINTS)
    for noise in (PAPERS_NOISE, TRACE_NOISE):
        cloaked = Cloaked.designed(X, POINTS, prior=prior, noise=noise)
        sds[f"cloaking, {noise.name}"] = noise_sd(cloaked.released(y, budget=BUDGET))
    bayes = release_under(
        prior,
        X,
        y,
        query=Query(X=POINTS),
        bounds=BUDGET.bounds,
        budget=Budget(BUDGET.epsilon, BUDGET.delta),
    )
    strategy = DenseStrategy(
        X=X,
        matrix=measured.questions.strategy,
        X_query=X,
        reconstruction=None,
        certificate=Certificate(criterion="trace", gap=np.inf),
    )
    of_function = Measurement(strategy=strategy, question=measured.bounds, answers=measured.answers)
    function = Release(prior=prior, measurements=(of_function,))
    for name, release in (("function, exact", function), ("bayes", bayes)):
        sds[f"posterior, {name}"] = release.predict(POINTS, return_std=True)[1]
    sds["posterior, no privacy"] = sd_without_privacy(X, X_query=POINTS, prior=prior)
    return sds


def sds_report(sds: dict[str, Array], women: pd.DataFrame) -> Table:
    """Lay out sds by age.

    Parameters
    ----------
    sds : mapping of name to array of shape (171,)
        At `AGES`.
    """
    table = table_titled(
        f"Sd (cm) by age in years, and root mean square over the women; ({BUDGET.epsilon:g}, "
        f"{BUDGET.delta:g})-DP unless it says otherwise. Of the noise in raw predictions, then of "
        "the latent function. Cloaking and bayes: for one age a year, −20 to 150",
        "release",
        right=[*map(str, SHOWN_AGES), "rms"],
    )
    table.columns[0].no_wrap = True
    where = np.rint(_table(women)[0][:, 0] - AGES[0]).astype(int)
    for name, sd in sds.items():
        shown = [sd[round(age - AGES[0])] for age in SHOWN_AGES]
        rms = np.sqrt(np.mean(np.square(sd[where])))
        table.add_row(name, *(f"{one:.3g}" if one < 100 else f"{one:.0f}" for one in (*shown, rms)))
    return table


def two_points_noise() -> dict[str, Array]:
    """Return the covariances of the noise in figure 2, each of shape (2, 2), by panels.

    Scaled so that moving one output by d moves the predictions by at most one sd: μ = 1.
    """
    C = TOY_PRIOR.cloaking_matrix(TOY_QUERY, TOY_X)
    root = design_strategy(C, criterion="logdet").reconstruction
    scale = rkhs.rkhs_sensitivity(TOY_PRIOR, TOY_X)
    return {
        "B, D, F: noise of a function release": scale**2 * TOY_PRIOR.query_covariance(TOY_QUERY),
        "G, H: noise of cloaking (least volume)": root @ root.T,
    }


def two_points_figure() -> Figure:
    """Draw figure 2 of the 2018 paper, its eight panels as three."""
    figure = Figure(figsize=(14.5, 5.6), layout="constrained")
    functions, *planes = figure.subplots(1, 3)
    inputs = np.vstack([np.linspace(-0.5, 5.5, 200)[:, None], TOY_QUERY])
    C = TOY_PRIOR.cloaking_matrix(inputs, TOY_X)
    scale = rkhs.rkhs_sensitivity(TOY_PRIOR, TOY_X)
    noise = scale * _public_draws(TOY_PRIOR.query_covariance(inputs), count=10)
    for number, one in enumerate(C @ TOY_Y + noise):
        label = None if number else "function releases"
        functions.plot(inputs[:-2], one[:-2], color=figures.GREY, linewidth=0.7, label=label)
        functions.plot(TOY_QUERY, one[-2:], "*", color="0.35", markersize=6)
    moves = [(TOY_Y, "-", figures.BLUE, "mean")] + [
        (TOY_Y + np.eye(2)[row], "--", colour, f"output {row + 1} moved by d")
        for row, colour in enumerate(TOY_COLOURS)
    ]
    for outputs, line, colour, label in reversed(moves):
        mean = C @ outputs
        functions.plot(inputs[:-2], mean[:-2], line, color=colour, linewidth=1.9, label=label)
        functions.plot(TOY_QUERY, mean[-2:], "*", color=colour, markersize=12)
        functions.plot(TOY_X, outputs, "o", color=colour, markersize=5)
    functions.set(xlabel="input", ylabel="output (unit: d)", ylim=(-3.0, 4.2))
    functions.set_title("A, C, E: the function, and what one output can do")
    functions.legend(fontsize=9, ncols=2, loc="upper left")
    for axes, (title, covariance) in zip(planes, two_points_noise().items(), strict=True):
        _draw_plane(axes, covariance, centre=(C @ TOY_Y)[-2:], moves=C[-2:])
        axes.set_title(title)
    planes[0].legend(fontsize=9, loc="upper left")
    figure.suptitle(
        "Two rows (dots), two query points (stars) (2018 paper, figure 2). Noise of the size at "
        "which moving one output by d moves the predictions by at most one sd (μ = 1)",
        fontsize=12,
    )
    return figure


def _draw_plane(axes: Axes, covariance: Array, *, centre: Array, moves: Array) -> None:
    """Draw the two predictions against each other, the ellipse of the noise, and the moves."""
    turns = np.linspace(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    ellipse = centre + circle @ np.linalg.cholesky(covariance).T
    releases = centre + _public_draws(covariance, count=10)
    axes.plot(*ellipse.T, color=figures.BLACK, linewidth=1.3, label="one sd of the noise")
    axes.plot(*releases.T, "*", color="0.35", markersize=6, label="releases")
    for row, colour in enumerate(TOY_COLOURS):
        for sign in (-1.0, 1.0):
            axes.annotate(
                "",
                xy=tuple(centre + sign * moves[:, row]),
                xytext=tuple(centre),
                arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.8},
            )
        axes.plot([], [], color=colour, label=f"output {row + 1} moved by ± d")
    axes.plot(*centre, "*", color=figures.BLUE, markersize=12, label="without noise")
    axes.set(xlabel="prediction at the first point", ylabel="prediction at the second point")
    axes.set(xlim=(-2.4, 3.0), ylim=(-2.1, 3.3), aspect="equal")


def _table(women: pd.DataFrame) -> tuple[Array, Array, Prior]:
    X = women[["age"]].to_numpy(dtype=float)
    return X, kung.heights(women), kung2018.prior_for(X)


def _measure(X: Array, y: Array, *, prior: Prior, epsilon: float) -> FunctionAnswers:
    ends = (BUDGET.bounds.lo, BUDGET.bounds.hi)
    return measure_function(X, y, prior=prior, bounds=ends, epsilon=epsilon, delta=BUDGET.delta)


def _public_draws(covariance: Array, *, count: int) -> Array:
    """Return normal draws of some covariance from a public seed, shape (count, n)."""
    variances, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(variances, 0.0))
    standard = np.random.default_rng(PUBLIC_SEED).normal(size=(count, len(covariance)))
    draws: Array = standard @ root.T
    return draws


@dataclass(frozen=True, eq=False)
class Found:
    """Ages and heights, the paper's noise by its ε, sds by way to release, and curves by way."""

    women: pd.DataFrame
    claimed: Mapping[float, PapersNoise]
    sds: dict[str, Array]
    curves: Mapping[str, Mapping[str, Curve]]


@dataclass(frozen=True)
class Functional(Experiment[Found]):
    """Section 2 of the 2018 paper: whole functions; its figures 1 and 2."""

    name: ClassVar[str] = "functional"

    def compute(self, progress: Progress) -> Found:
        """Release whole functions and predictions."""
        del progress
        women = load_kung(male=False)
        X, y, prior = _table(women)
        claimed = {
            epsilon: papers_noise(prior, X, epsilon=epsilon)
            for epsilon in (PAPERS_EPSILON, CAPTIONS_EPSILON)
        }
        functions = {
            f"2018 paper, “ε = {epsilon:g}” (A)": function_curve(
                women, epsilon=one.true_epsilon, in_full=True
            )
            for epsilon, one in claimed.items()
        }
        functions["exact, ε = 1"] = function_curve(women, epsilon=BUDGET.epsilon, in_full=False)
        cloaking = {
            f"{noise.name}, ε = 1{panel}": released_curve(
                X, y, inputs=AGES, prior=prior, noise=noise, budget=BUDGET, releases=DRAWN_RELEASES
            )
            for noise, panel in ((PAPERS_NOISE, " (B)"), (LOGDET_NOISE, ""), (TRACE_NOISE, ""))
        }
        return Found(
            women=women,
            claimed=claimed,
            sds=sds_by_age(women),
            curves={"function": functions, "cloaking": cloaking},
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Say what the paper's noise guarantees, and lay out sds by age."""
        claimed = found.claimed[PAPERS_EPSILON]
        exact, *bounds = (kung2018.UNIT * bound for bound in astuple(claimed.bounds))
        names = ("largest entry of K⁻¹", "the paper's b(K⁻¹)", "its infinity norm")
        yield (
            f"Sensitivity of the posterior mean, in units of d and of the kernel's sd: {exact:.4f}"
        )
        for name, bound in zip(names, bounds, strict=True):
            yield f"  {name}: {bound:.3f}, {bound / exact:.2f} times as much"
        for epsilon, one in found.claimed.items():
            published = {
                PAPERS_EPSILON: f"published: {PAPERS_SCALE}",
                CAPTIONS_EPSILON: "the caption's ε; no scale is printed",
            }
            yield (
                f"Noise sd of figure 1A, “ε = {epsilon:g}”: {one.sd:.2f} cm ({published[epsilon]})."
                f" Were b(K⁻¹) tight, δ would be {one.tight_delta:.3g}: no privacy at all. It is "
                f"not tight, and so the release is ({one.true_epsilon:.2f}, {BUDGET.delta:g})-DP "
                f"(μ = {one.mu:.3f})."
            )
        yield sds_report(found.sds, found.women)

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw figures 1 and 2."""
        X, y, _ = _table(found.women)
        curves = figures.curves_figure(
            found.curves,
            X=X[:, 0],
            y=y,
            title="Heights of !Kung women by age, δ = 0.01 (2018 paper, figure 1)\nA: the "
            "paper's "
            + " and ".join(
                f"noise for ε = {epsilon:g}, which is really ({one.true_epsilon:.1f}, 0.01)-DP"
                for epsilon, one in found.claimed.items()
            ),
        )
        return {"functional-figure-1.png": curves, "functional-figure-2.png": two_points_figure()}
