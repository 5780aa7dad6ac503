"""A sum of kernels: figure 12 of the 2021 paper (appendix B), heights of !Kung women by age.

Stated: a bias, a linear and a periodic kernel of period 100 years, 287 women, (1, 0.01)-DP with d =
100 cm, five inducing inputs placed by k-means. Not stated: the variances, the periodic kernel's
lengthscale and how far the paper extrapolates. Here the bias and the periodic kernel have the
variance of the paper's other figures and the noise is theirs; the linear kernel has an sd of 25 cm
at 100 years, and the periodic one the default lengthscale of the authors' library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, ExpSineSquared, Kernel

from cloakgp.arrays import Array
from cloakgp.datasets import load_kung
from cloakgp.experiments import figures, kung
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE, Noise, Prior
from cloakgp.experiments.crossvalidation import root_mean_square
from cloakgp.experiments.surfaces import Curve, released_curve
from cloakgp.experiments.terminal import console, table_titled
from cloakgp.models import ExactPrior, SparsePrior, kmeans_centres

PERIOD = 100.0
# In squared cm per squared year.
LINEAR_VARIANCE = (25.0 / 100.0) ** 2
# exp(−½ sin²(π r/T)/ℓ²) of GPy at ℓ = 1 is scikit-learn's exp(−2 sin²(π r/T)/ℓ²) at ℓ = 2.
PERIODIC_LENGTHSCALE = 2.0
AGES = np.linspace(-25.0, 200.0, 226)
SHOWN_NOISES = (PAPERS_NOISE, TRACE_NOISE)


def run_figure_12(
    output_dir: Annotated[Path, typer.Option(help="Where pictures are written.")] = Path("output"),
) -> None:
    """Figure 12 of the 2021 paper: a bias, a linear and a periodic kernel, extrapolated."""
    women = load_kung(male=False)
    curves = {
        "standard" if count is None else f"{count} inducing inputs": {
            noise.name: age_curve(women, inducing=count, noise=noise) for noise in SHOWN_NOISES
        }
        for count in (None, kung.INDUCING_INPUTS)
    }
    ages = women["age"].to_numpy(dtype=float)
    table = table_titled("Sd of the privacy noise (cm), root mean square over ages, (1, 0.01)-DP")
    for column in ("model", "noise", "where the women are", "beyond"):
        table.add_column(column, justify="left" if column in ("model", "noise") else "right")
    within = (ages.min() <= AGES) & (ages.max() >= AGES)
    for model, by_noise in curves.items():
        for noise, curve in by_noise.items():
            sds = (root_mean_square(curve.noise_sd[one]) for one in (within, ~within))
            table.add_row(model, noise, *(f"{sd:.1f}" for sd in sds))
    console.print(table)
    output_dir.mkdir(parents=True, exist_ok=True)
    path = output_dir / "kung-figure-12.png"
    figures.curves_figure(
        curves,
        X=ages,
        y=kung.heights(women),
        title="Heights of !Kung women by age, bias + linear + periodic kernel (100 years), "
        "(1, 0.01)-DP\n(2021 paper, figure 12)",
    ).savefig(path, dpi=figures.DPI)
    console.print(f"wrote {path}")


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
    inducing : int or None
    """
    if inducing is None:
        return ExactPrior(kernel=kernel(), noise_variance=kung.NOISE_VARIANCE, mean=kung.PRIOR_MEAN)
    centres, _ = kmeans_centres(X, count=inducing)
    return SparsePrior(
        kernel=kernel(),
        noise_variance=kung.NOISE_VARIANCE,
        mean=kung.PRIOR_MEAN,
        inducing=centres,
    )


def age_curve(
    women: pd.DataFrame,
    *,
    inducing: int | None,
    noise: Noise,
    releases: int = kung.DRAWN_RELEASES,
    insecure_seed: int | None = None,
) -> Curve:
    """Release heights by age, far beyond the women's ages.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    inducing : int or None
    noise : Noise
    releases : int
    insecure_seed : int, optional
    """
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
