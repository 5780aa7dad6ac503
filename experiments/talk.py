r"""The talk of 2017 on cloaking: inducing inputs for the !Kung women, and for whole functions.

The talk prints, for cross-validated heights of the 287 women at (1, 0.01):

    from age              15.0 ± 2.0 cm  →  11.1 ± 0.8 cm  with inducing inputs,
    from weight and age   22.8 ± 1.9 cm  →   8.8 ± 0.6 cm,

and shows London's prices and a whole function without and with inducing inputs. It prints neither
how many inducing inputs there are, nor folds, nor hyperparameters; on other slides the lengthscale
is 25 years and d = 100 cm. Here are the settings of the 2018 paper (`kung2018`: lengthscale 25,
variances 1 and 0.3 in units of the heights' sd) and those of the 2021 paper (`kung`: lengthscale
15, variances 10 and 25), with five inducing inputs by k-means, as the 2021 paper has them.

Errors are exact expectations (`experiments.expected_errors`). The sensitivity of a whole function
is that of the posterior mean in the kernel's space (`cloakgp.models.rkhs`): inducing inputs lower
it, "a little" by the slide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.models import ExactPrior, SparsePrior, kmeans_centres, rkhs
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.utils.arrays import Array
from experiments import kung, kung2018, london
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE, Prior
from experiments.cross_validation import Errors, Protocol
from experiments.datasets import load_kung, load_london
from experiments.expected_errors import expected_errors
from experiments.figures import BLACK, GREY, RED, Surface, surfaces_figure
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled
from experiments.published import Published

INDUCING = 5
LONDON_INDUCING = 20
NOISES = (PAPERS_NOISE, TRACE_NOISE)
# By inputs: without and with inducing inputs.
PUBLISHED = {
    "1d": (Published(15.0, 2.0), Published(11.1, 0.8)),
    "2d": (Published(22.8, 1.9), Published(8.8, 0.6)),
}


@dataclass(frozen=True)
class Settings:
    """Hyperparameters that the talk may have had.

    Attributes
    ----------
    name : str
    lengthscale : float
        In years, and in kg.
    signal_variance, noise_variance : float
        In cm².
    """

    name: str
    lengthscale: float
    signal_variance: float
    noise_variance: float

    def prior_for(self, X: Array, *, inducing: int | None) -> Prior:
        """Return the prior for training inputs.

        Parameters
        ----------
        X : array of shape (N, D)
        inducing : int or None
            Inducing inputs by k-means, or the exact process.
        """
        kernel = ConstantKernel(self.signal_variance) * RBF(self.lengthscale)
        shared = {"kernel": kernel, "noise_variance": self.noise_variance, "mean": kung.PRIOR_MEAN}
        if inducing is None:
            return ExactPrior(**shared)
        centres, _ = kmeans_centres(X, count=inducing)
        return SparsePrior(**shared, inducing=centres)


SETTINGS = (
    Settings(
        "2018 paper's", kung2018.LENGTHSCALE, kung2018.SIGNAL_VARIANCE, kung2018.NOISE_VARIANCE
    ),
    Settings("2021 paper's", kung.LENGTHSCALE, kung.SIGNAL_VARIANCE, kung.NOISE_VARIANCE),
)


@dataclass(frozen=True, eq=False)
class Compared:
    """Expected errors without and with inducing inputs, by noise; in cm."""

    settings: str
    inputs: str
    without: Mapping[str, Errors]
    inducing: Mapping[str, Errors]


def kung_errors(
    women: pd.DataFrame,
    *,
    settings: Sequence[Settings] = SETTINGS,
    inducing: int = INDUCING,
    protocol: Protocol,
    tick: Tick = no_tick,
) -> list[Compared]:
    """Cross-validate heights without and with inducing inputs, by settings and inputs.

    Parameters
    ----------
    inducing : int
        Number of them.
    protocol : Protocol
        Its draws are not used: errors are exact.
    """
    found = []
    for one in settings:
        for inputs, columns in kung.INPUTS.items():
            X = women[columns].to_numpy(dtype=float)
            without, with_inducing = (
                expected_errors(
                    X,
                    kung.heights(women),
                    prior_for=partial(one.prior_for, inducing=count),
                    noises=NOISES,
                    budget=kung.BUDGET,
                    protocol=protocol,
                    tick=tick,
                )
                for count in (None, inducing)
            )
            found.append(Compared(one.name, inputs, without, with_inducing))
    return found


@dataclass(frozen=True)
class FunctionNoise:
    """Noise of a whole function, in cm.

    Attributes
    ----------
    inducing : int or None
        None for the exact process.
    sd : float
        Of the noise with Hall et al.'s whole draw of the prior, where the prior's sd is largest.
    """

    inducing: int | None
    sd: float


def function_noises(
    women: pd.DataFrame, *, counts: Sequence[int] = (3, 5, 8, 12, 20), epsilon: float = 1.0
) -> list[FunctionNoise]:
    """Return the noise of whole functions of age, exact calibration, by number of inducing inputs.

    Parameters
    ----------
    counts : sequence of int
        Numbers of inducing inputs.
    epsilon : float
    """
    X = women[["age"]].to_numpy(dtype=float)
    answer_sd = kung.BUDGET.bounds.width * exact_noise_multiplier(epsilon, kung.BUDGET.delta)
    sd = float(np.sqrt(SETTINGS[0].signal_variance))
    return [
        FunctionNoise(
            inducing=count,
            sd=answer_sd * rkhs.rkhs_sensitivity(SETTINGS[0].prior_for(X, inducing=count), X) * sd,
        )
        for count in (None, *counts)
    ]


def london_surfaces(
    sales: pd.DataFrame, *, steps: int = london.QUERY_STEPS, inducing: int = LONDON_INDUCING
) -> dict[str, dict[str, Surface]]:
    """Release prices around London without and with inducing inputs, by that and by noise.

    Parameters
    ----------
    sales : DataFrame
    steps : int
        Query points along each side.
    inducing : int
        Number of inducing inputs by k-means; the talk prints none.
    """
    return {
        name: {
            noise.name: london.price_surface(sales, noise=noise, steps=steps, inducing=count)
            for noise in NOISES
        }
        for name, count in (("no inducing inputs", None), (f"{inducing} inducing inputs", inducing))
    }


@dataclass(frozen=True, eq=False)
class Found:
    """Errors on the women, noise of whole functions, and surfaces of London."""

    errors: Sequence[Compared]
    functions: Sequence[FunctionNoise]
    surfaces: Mapping[str, Mapping[str, Surface]]


@dataclass(frozen=True)
class Talk(Experiment[Found]):
    """The talk of 2017: !Kung, whole functions and London, without and with inducing inputs."""

    name: ClassVar[str] = "talk"
    small: ClassVar[Mapping[str, Any]] = {"folds": 3, "steps": 8, "counts": (5,)}

    folds: int = 14
    steps: int = london.QUERY_STEPS
    counts: Sequence[int] = (3, 5, 8, 12, 20)

    def compute(self, progress: Progress) -> Found:
        """Cross-validate, and release London's prices."""
        women = load_kung(male=False)
        with progress("folds", steps=8 * self.folds) as tick:
            errors = kung_errors(women, protocol=Protocol(folds=self.folds), tick=tick)
        sales = london.sales_between(load_london(), years=london.PAPERS_YEARS)
        return Found(
            errors=errors,
            functions=function_noises(women, counts=self.counts),
            surfaces=london_surfaces(sales, steps=self.steps),
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out errors and noises, published figures first."""
        table = table_titled(
            f"!Kung heights, (1, 0.01)-DP, {self.folds} folds in file order: root of the expected "
            "mean square (cm), mean ± sd over folds; the talk prints neither settings nor folds",
            *("inputs", "settings", "noise"),
            right=("no inducing inputs", f"{INDUCING} inducing inputs"),
        )
        for inputs, published in PUBLISHED.items():
            table.add_row(inputs, "published", "", *(one.shown for one in published), style="dim")
            for one in found.errors:
                if one.inputs == inputs:
                    for name in one.without:
                        cells = (
                            errors[name].with_spread() for errors in (one.without, one.inducing)
                        )
                        table.add_row("", one.settings, name, *cells)
        yield table
        table = table_titled(
            "Noise sd (cm) of a whole function of age, (1, 0.01)-DP, exact calibration, "
            "lengthscale 25 years, by number of inducing inputs (slide: they “can help reduce the "
            "sensitivity a little”)",
            right=[
                "none" if one.inducing is None else str(one.inducing) for one in found.functions
            ],
        )
        table.add_row(*(f"{one.sd:.1f}" for one in found.functions))
        yield table
        yield london.london_report(
            {
                name: {noise: london.summarise_noise(one) for noise, one in by_noise.items()}
                for name, by_noise in found.surfaces.items()
            }
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw errors beside the published ones, and London without and with inducing inputs."""
        return {
            "talk-kung.png": errors_figure(found.errors),
            "talk-london.png": surfaces_figure(
                found.surfaces,
                style=london.style(self.steps),
                title="Sale prices around London, (1, 0.01)-DP (talk of 2017)\nDisc area: released "
                "price. Fainter: more privacy noise, gone at 40 % of Δ = £400k.",
            ),
        }


def errors_figure(found: Sequence[Compared]) -> Figure:
    """Draw errors without and with inducing inputs, beside the published ones."""
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    for axes, (inputs, published) in zip(
        figure.subplots(1, len(PUBLISHED), sharey=True), PUBLISHED.items(), strict=True
    ):
        axes.errorbar(
            (0, 1),
            [one.mean for one in published],
            yerr=[one.sd or 0.0 for one in published],
            fmt="s",
            color=GREY,
            capsize=4,
            label="published",
        )
        lines = iter(("-", "--"))
        for one in found:
            if one.inputs == inputs:
                line = next(lines)
                for noise, colour in ((PAPERS_NOISE, BLACK), (TRACE_NOISE, RED)):
                    means = [errors[noise.name].mean for errors in (one.without, one.inducing)]
                    axes.plot(
                        (0, 1),
                        means,
                        line,
                        marker="o",
                        color=colour,
                        label=f"{noise.name}, {one.settings}",
                    )
        axes.set_xticks((0, 1), ["no inducing inputs", f"{INDUCING} inducing inputs"])
        axes.set_xlim(-0.4, 1.4)
        axes.set_title({"1d": "from age", "2d": "from weight and age"}[inputs], fontsize=11)
        axes.grid(alpha=0.25)
    axes.legend(loc="best", fontsize=8, frameon=False)
    axes.set_ylim(0.0, 26.0)
    figure.axes[0].set_ylabel("root mean squared error (cm)")
    figure.suptitle("Heights of !Kung women, (1, 0.01)-DP (talk of 2017)", fontsize=12)
    return figure
