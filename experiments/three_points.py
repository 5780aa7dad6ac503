r"""Section 6.3 of the 2021 paper: why varying lengthscales do not tie sparse regions to dense ones.

Three points are evenly spaced: A and B where lengthscales are short, C where they are long. For
predictions at C one wants large covariances of A with C and of B with C, and for predictions at A a
small one of A with B. The paper argues that no such kernel can be had: by Gibbs's prefactor
(its equation 8), points with very different lengthscales r and r' have a covariance of at most

    √(2 r r' / (r² + r'²)),        one input,

however near they are; and the sum of two processes with weights w and 1 − w (Herlands et al. 2016),

    k(x, x') = w(x) k_f(x, x') w(x') + (1 − w(x)) k_g(x, x') (1 − w(x')),

has small products of weights across the two regimes.

Both hold for these two kernels, with a limit. Written as here, the sum has the variance w² + (1 −
w)², which sags to a half between the regimes; correlations say more than covariances. And neither
is a proof for all kernels: of three correlations, any that leave the matrix positive definite can
be had. What cannot be had is corr(A, C) and corr(B, C) both above √((1 + corr(A, B))/2), for their
matrix would not be positive definite; so two points that are unrelated to each other correlate with
a third by at most √½ = 0.71 each. That is the bound behind the argument, of any kernel at all.

The paper says that the sum of two was found to have the same restriction, and prints no error of
it. Here both are tried on its !Kung women by age: short lengthscale 15 years, long one 50 years,
which take over from each other at an age of 50.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from rich.table import Table
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from cloakgp.models import ExactPrior
from cloakgp.utils.arrays import Array, as_matrix
from experiments import kung, nonstationary
from experiments.cloaking import SHOWN_NOISES
from experiments.cross_validation import Errors, PriorFor, Protocol
from experiments.datasets import load_kung
from experiments.expected_errors import expected_errors
from experiments.figures import BLUE, GREY, RED
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

# A, B and C: a lengthscale apart, in the unit of the short one.
POINTS = np.array([[-1.5], [-0.5], [0.5]])
PAIRS = {"A, B": (0, 1), "B, C": (1, 2), "A, C": (0, 2)}
SHORT, RATIOS = 1.0, (1.0, 3.0, 10.0, 30.0)
# Over how much of the input one regime gives way to the other.
WIDTH = 0.05

# Of the !Kung women, in years: the lengthscales of `kung` and of `nonstationary`, and the change.
LONG_AGE, CHANGE_AGE, CHANGE_WIDTH = 50.0, 50.0, 5.0
# 2021 paper, table 1, 1d: (1, 0.01)-differentially private, and without privacy.
PUBLISHED = {"standard": (13.3, 7.1), "non-stationary, Gibbs": (12.8, 8.6)}


class HerlandsKernel(Kernel):  # type: ignore[misc]
    r"""Covariance of w f + (1 − w) g for two independent processes and a weight of one input.

    The weight is logistic, w(x) = 1/(1 + exp(−(x_0 − change)/width)): g before the change and f
    after it. Positive definite, as the covariance of a process.

    Parameters
    ----------
    before, after : sklearn.gaussian_process.kernels.Kernel
        Of g and of f.
    change : float
        At which value of the first input they weigh alike.
    width : float
        Positive; of the change.
    normalised : bool
        Divide by the sds, so that the variance is 1 everywhere if that of both kernels is.

    Examples
    --------
    >>> kernel = HerlandsKernel(RBF(1.0), RBF(10.0), change=0.0, width=0.1)
    >>> far = np.array([[50.0], [60.0]])
    >>> bool(np.allclose(kernel(far), RBF(10.0)(far)))
    True
    """

    def __init__(
        self,
        before: Kernel,
        after: Kernel,
        change: float = 0.0,
        width: float = 1.0,
        normalised: bool = False,
    ) -> None:
        self.before = before
        self.after = after
        self.change = change
        self.width = width
        self.normalised = normalised

    def weight(self, X: Array) -> Array:
        """Return w, the weight of the second process, shape (n,)."""
        weight: Array = expit((X[:, 0] - self.change) / self.width)
        return weight

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array:
        """Return the covariances, shape (n, m).

        Parameters
        ----------
        X : array of shape (n, D)
        Y : array of shape (m, D), optional
            X if not given.

        Raises
        ------
        ValueError
            For a gradient: it has no free hyperparameters.
        """
        if eval_gradient:
            raise ValueError("this kernel has no free hyperparameters")
        rows = as_matrix(X, name="X")
        others = rows if Y is None else as_matrix(Y, name="Y", columns=rows.shape[1])
        across, down = self.weight(rows)[:, None], self.weight(others)[None, :]
        covariance: Array = across * self.after(rows, others) * down
        covariance += (1 - across) * self.before(rows, others) * (1 - down)
        if self.normalised:
            covariance /= np.sqrt(np.outer(self._variance(rows), self._variance(others)))
        return covariance

    def diag(self, X: ArrayLike) -> Array:
        """Return the variances, shape (n,)."""
        rows = as_matrix(X, name="X")
        variance = self._variance(rows)
        return np.ones(len(rows)) if self.normalised else variance

    def _variance(self, X: Array) -> Array:
        weight = self.weight(X)
        variance: Array = weight**2 * self.after.diag(X) + (1 - weight) ** 2 * self.before.diag(X)
        return variance

    def is_stationary(self) -> bool:
        """Return False."""
        return False


def two_lengthscales(X: Array, *, long: float, change: float = 0.0, width: float = WIDTH) -> Array:
    """Return a lengthscale that goes from `SHORT` to another at a change, shape (n,).

    Parameters
    ----------
    X : array of shape (n, 1)
    long : float
        Lengthscale far beyond the change.
    """
    share = expit((X[:, 0] - change) / width)
    lengthscales: Array = SHORT ** (1 - share) * long**share
    return lengthscales


def gibbs_covariance(X: Array, *, lengthscale: Callable[[Array], Array]) -> Array:
    """Return Gibbs's covariance of one input for any lengthscale (2021 paper, equation 8).

    Parameters
    ----------
    X : array of shape (n, 1)
    lengthscale : callable
        Inputs, shape (n, 1) → lengthscales, shape (n,).

    Examples
    --------
    >>> X = np.array([[0.0], [1.0]])
    >>> constant = gibbs_covariance(X, lengthscale=lambda X: np.full(len(X), 2.0))
    >>> bool(np.allclose(constant, RBF(2.0)(X)))
    True
    """
    r = lengthscale(X)
    total = np.add.outer(r**2, r**2)
    covariance: Array = np.sqrt(2 * np.outer(r, r) / total)
    return np.asarray(covariance * np.exp(-np.square(X - X.T) / total), dtype=np.float64)


def largest_gibbs(ratio: float) -> float:
    """Return the most that two points of unit variance and such lengthscales covary, however near.

    Examples
    --------
    >>> largest_gibbs(1.0), round(largest_gibbs(30.0), 3)
    (1.0, 0.258)
    """
    return math.sqrt(2 * ratio / (1 + ratio**2))


def largest_with_a_third(between: float) -> float:
    """Return the most that two points can both correlate with a third, given their correlation.

    The matrix of the three is positive semi-definite only if 1 + ρ ≥ 2 c².

    Examples
    --------
    >>> largest_with_a_third(1.0), round(largest_with_a_third(0.0), 3)
    (1.0, 0.707)
    """
    return math.sqrt((1.0 + between) / 2.0)


def correlations(covariance: Array) -> Array:
    """Return the correlations of a covariance, shape (n, n).

    Examples
    --------
    >>> correlations(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    sds = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(sds, sds), dtype=np.float64)


def kernels_at(ratio: float) -> dict[str, Callable[[Array], Array]]:
    """Return the covariances that are compared, by name, for one ratio of lengthscales.

    Parameters
    ----------
    ratio : float
        Of the long lengthscale to the short one.
    """
    parts: dict[str, Any] = {
        "before": RBF(SHORT),
        "after": RBF(ratio * SHORT),
        "change": 0.0,
        "width": WIDTH,
    }
    return {
        "Gibbs": partial(
            gibbs_covariance, lengthscale=partial(two_lengthscales, long=ratio * SHORT)
        ),
        "sum of two": HerlandsKernel(**parts),
        "one long lengthscale": RBF(ratio * SHORT),
    }


@dataclass(frozen=True, eq=False)
class Row:
    """Correlations of the three points under one kernel.

    Attributes
    ----------
    ratio : float
        Of the long lengthscale to the short one.
    kernel : str
    by_pair : mapping of str to float
    variances : array of shape (3,)
    """

    ratio: float
    kernel: str
    by_pair: Mapping[str, float]
    variances: Array

    @property
    def allowed(self) -> float:
        """The most that A and B could both correlate with C, of any kernel."""
        return largest_with_a_third(self.by_pair["A, B"])


def compare(ratios: Sequence[float] = RATIOS) -> list[Row]:
    """Return the correlations of A, B and C under every kernel and ratio of lengthscales."""
    found = []
    for ratio in ratios:
        for name, kernel in kernels_at(ratio).items():
            covariance = kernel(POINTS)
            related = correlations(covariance)
            by_pair = {pair: float(related[at]) for pair, at in PAIRS.items()}
            found.append(Row(ratio, name, by_pair, np.diag(covariance)))
    return found


def sum_prior(_: Array, *, normalised: bool) -> ExactPrior:
    """Return the prior of heights by age with the sum of two processes as its kernel.

    Parameters
    ----------
    normalised : bool
        Whether its variance is the same at all ages.
    """
    kernel = HerlandsKernel(
        RBF(kung.LENGTHSCALE),
        RBF(LONG_AGE),
        change=CHANGE_AGE,
        width=CHANGE_WIDTH,
        normalised=normalised,
    )
    return ExactPrior(
        kernel=ConstantKernel(kung.SIGNAL_VARIANCE) * kernel,
        noise_variance=kung.NOISE_VARIANCE,
        mean=kung.PRIOR_MEAN,
    )


def kung_errors(
    women: pd.DataFrame, *, protocol: Protocol, tick: Tick = no_tick
) -> dict[str, dict[str, Errors]]:
    """Return expected errors of heights by age, by kernel and by noise, in cm.

    Parameters
    ----------
    protocol : Protocol
        Its draws are not used: errors are exact.
    """
    priors: dict[str, PriorFor] = {
        "standard": kung.TABLE_1[0].prior_for,
        "non-stationary, Gibbs": nonstationary.NONSTATIONARY[0].prior_for,
        "sum of two": partial(sum_prior, normalised=False),
        "sum of two, normalised": partial(sum_prior, normalised=True),
        "sparse, 5 inducing inputs": kung.TABLE_1[1].prior_for,
    }
    return {
        name: expected_errors(
            women[["age"]].to_numpy(dtype=float),
            kung.heights(women),
            prior_for=prior_for,
            noises=SHOWN_NOISES,
            budget=kung.BUDGET,
            protocol=protocol,
            tick=tick,
        )
        for name, prior_for in priors.items()
    }


@dataclass(frozen=True, eq=False)
class Found:
    """Correlations of three points, and errors on the !Kung women by kernel and noise."""

    rows: Sequence[Row]
    errors: Mapping[str, Mapping[str, Errors]]


@dataclass(frozen=True)
class ThreePoints(Experiment[Found]):
    """Section 6.3 of the 2021 paper: three points, Gibbs's kernel, and a sum of two processes."""

    name: ClassVar[str] = "three-points"
    small: ClassVar[Mapping[str, Any]] = {"folds": 3}

    ratios: Sequence[float] = RATIOS
    folds: int = 14

    def compute(self, progress: Progress) -> Found:
        """Compute the correlations, and the errors on the women."""
        women = load_kung(male=False)
        with progress("folds", steps=5 * self.folds) as tick:
            errors = kung_errors(women, protocol=Protocol(folds=self.folds), tick=tick)
        return Found(rows=compare(self.ratios), errors=errors)

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out correlations and errors, and say what they mean."""
        table = table_titled(
            "Correlations of A, B (short lengthscales) and C (long), each a short lengthscale from "
            "the next (2021 paper, section 6.3, which prints no figure)",
            *("long / short", "kernel"),
            right=(*PAIRS, "both with C, at most", "variance of B", "of C"),
        )
        for one in found.rows:
            table.add_row(
                f"{one.ratio:g}",
                one.kernel,
                *(f"{one.by_pair[pair]:.3f}" for pair in PAIRS),
                f"{one.allowed:.3f}",
                *(f"{variance:.3f}" for variance in one.variances[1:]),
            )
        yield table
        widest = max(self.ratios)
        by_name = {one.kernel: one for one in found.rows if one.ratio == widest}
        gibbs, both = by_name["Gibbs"], by_name["sum of two"]
        lengthscales = two_lengthscales(POINTS, long=widest * SHORT)
        most = largest_gibbs(float(lengthscales[2] / lengthscales[1]))
        yield (
            "As the paper says, across the two regimes little is left, though the points are near: "
            f"at a ratio of {widest:g}, {gibbs.by_pair['B, C']:.3f} by Gibbs's kernel (at most "
            f"{most:.3f} however near) and {both.by_pair['B, C']:.3f} by the sum."
        )
        yield (
            "That is a matter of these kernels. Any kernel may have A and B both correlate with C "
            f"by {gibbs.allowed:.3f}, given how A and B do: less than 1, and far more than either."
        )
        table = table_titled(
            f"!Kung women by age, (1, 0.01)-DP, {self.folds} folds in file order: root of the "
            "expected mean square (cm), mean over folds; raw predictions. Published: 2021 paper, "
            "table 1; none for the sum",
            "kernel",
            right=("published", *(noise.name for noise in SHOWN_NOISES), "published", "no privacy"),
        )
        for name, errors in found.errors.items():
            published = [f"{one:.1f}" for one in PUBLISHED.get(name, ())] or ["", ""]
            table.add_row(
                *(name, published[0]),
                *(f"{errors[noise.name].mean:.2f}" for noise in SHOWN_NOISES),
                *(published[1], f"{errors['no privacy'].mean:.2f}"),
            )
        yield table

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw the covariance with each of the three points along the input."""
        del found
        widest = max(self.ratios)
        inputs = np.linspace(-5.0, 8.0, 400)
        figure = Figure(figsize=(12.5, 4.2), layout="constrained")
        kernels = kernels_at(widest)
        for axes, (name, kernel) in zip(
            figure.subplots(1, len(kernels), sharey=True), kernels.items(), strict=True
        ):
            related = correlations(kernel(np.vstack([inputs[:, None], POINTS])))
            for at, (label, colour) in enumerate((("A", BLUE), ("B", RED), ("C", "#27854a"))):
                axes.plot(inputs, related[at - 3, :-3], color=colour, label=f"with {label}")
                axes.axvline(POINTS[at, 0], color=colour, linewidth=0.8, linestyle=":")
            axes.axvspan(0.0, inputs[-1], color=GREY, alpha=0.12, linewidth=0)
            axes.set_title(name, fontsize=11)
            axes.set_xlabel("input; grey: long lengthscales")
        axes.legend(loc="best", fontsize=9, frameon=False)
        figure.axes[0].set_ylabel("correlation")
        figure.suptitle(
            f"Lengthscales 1 and {widest:g}: correlations with A, B and C (2021 paper, section "
            "6.3)",
            fontsize=12,
        )
        return {"three-points.png": figure}
