"""A sum of kernels: figure 12 of the 2021 paper (appendix B), heights of !Kung women by age.

Stated: a bias, a linear and a periodic kernel of period 100 years, 287 women, (1, 0.01)-DP with d =
100 cm, five inducing inputs placed by k-means. Not stated: the variances, the periodic kernel's
lengthscale and how far the paper extrapolates. Here the bias and the periodic kernel have the
variance of the paper's other figures and the noise is theirs; the linear kernel has an sd of 25 cm
at 100 years, and the periodic one the default lengthscale of the authors' library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, ExpSineSquared, Kernel

from cloakgp.models import ExactPrior, SparsePrior, kmeans_centres
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.cloaking import SHOWN_NOISES, Noise, Prior
from experiments.cross_validation import root_mean_square
from experiments.datasets import load_kung
from experiments.figures import Curve, curves_figure, released_curve
from experiments.framework import Experiment, Progress, table_titled

PERIOD = 100.0
# In squared cm per squared year.
LINEAR_VARIANCE = (25.0 / 100.0) ** 2
# exp(−½ sin²(π r/T)/ℓ²) of GPy at ℓ = 1 is scikit-learn's exp(−2 sin²(π r/T)/ℓ²) at ℓ = 2.
PERIODIC_LENGTHSCALE = 2.0
AGES = np.linspace(-25.0, 200.0, 226)


def kernel() -> Kernel:
    """Return the sum of a bias, a linear and a periodic kernel over ages, in cm².

    Examples
    --------
    >>> summed = kernel()
    >>> at_0, a_period_later = np.array([[0.0]]), np.array([[PERIOD]])
    >>> bool(np.isclose(summed(at_0, at_0), summed(at_0, a_period_later))[0, 0])
    True
    """
    bias = ConstantKernel(kung.SIGNAL_VARIANCE)
    linear = ConstantKernel(LINEAR_VARIANCE) * DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
    periodic = ConstantKernel(kung.SIGNAL_VARIANCE) * ExpSineSquared(
        length_scale=PERIODIC_LENGTHSCALE, periodicity=PERIOD
    )
    return bias + linear + periodic


def prior_for(X: Array, *, inducing: int | None) -> Prior:
    """Return the prior, exact or sparse.

    Parameters
    ----------
    X : array of shape (N, 1)
        Ages, where inducing inputs are placed.
    """
    if inducing is None:
        return ExactPrior(kernel=kernel(), noise_variance=kung.NOISE_VARIANCE, mean=kung.PRIOR_MEAN)
    centres, _ = kmeans_centres(X, count=inducing)
    return SparsePrior(
        kernel=kernel(), noise_variance=kung.NOISE_VARIANCE, mean=kung.PRIOR_MEAN, inducing=centres
    )


def age_curve(
    women: pd.DataFrame,
    *,
    inducing: int | None,
    noise: Noise,
    releases: int = kung.DRAWN_RELEASES,
    insecure_seed: int | None = None,
) -> Curve:
    """Release heights by age, far beyond the women's ages."""
    X = women[["age"]].to_numpy(dtype=float)
    return released_curve(
        X,
        kung.heights(women),
        inputs=AGES,
        prior=prior_for(X, inducing=inducing),
        noise=noise,
        budget=kung.BUDGET,
        releases=releases,
        insecure_seed=insecure_seed,
    )


@dataclass(frozen=True, eq=False)
class Found:
    """Ages and heights, each of shape (N,), and curves by model and noise."""

    ages: Array
    heights: Array
    curves: Mapping[str, Mapping[str, Curve]]


@dataclass(frozen=True)
class Figure12(Experiment[Found]):
    """Figure 12 of the 2021 paper: a bias, a linear and a periodic kernel, extrapolated."""

    name: ClassVar[str] = "figure-12"

    def compute(self, progress: Progress) -> Found:
        """Release curves of both models with both noises."""
        del progress
        women = load_kung(male=False)
        return Found(
            ages=women["age"].to_numpy(dtype=float),
            heights=kung.heights(women),
            curves={
                "standard" if count is None else f"{count} inducing inputs": {
                    noise.name: age_curve(women, inducing=count, noise=noise)
                    for noise in SHOWN_NOISES
                }
                for count in (None, kung.INDUCING_INPUTS)
            },
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out the sd of the noise where the women are, and beyond."""
        table = table_titled(
            "Sd of the privacy noise (cm), root mean square over ages, (1, 0.01)-DP",
            *("model", "noise"),
            right=("where the women are", "beyond"),
        )
        within = (found.ages.min() <= AGES) & (found.ages.max() >= AGES)
        for model, by_noise in found.curves.items():
            for noise, curve in by_noise.items():
                sds = (root_mean_square(curve.noise_sd[one]) for one in (within, ~within))
                table.add_row(model, noise, *(f"{sd:.1f}" for sd in sds))
        yield table

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw figure 12."""
        title = (
            "Heights of !Kung women by age, bias + linear + periodic kernel (100 years), "
            "(1, 0.01)-DP\n(2021 paper, figure 12)"
        )
        figure = curves_figure(found.curves, X=found.ages, y=found.heights, title=title)
        return {"kung-figure-12.png": figure}
