r"""Counts as whole functions: a remark in section 2 of the 2018 paper.

"If the sensitivity of the training data had been smaller (for example count or histogram data, with
Δ = 1) then this method could produce usable predictions at reasonable ε." The paper does not try.

Here the outputs are counts: of the !Kung women who are taller than 145 cm, by age in bins of five
years. A woman is in one bin, whatever her height, so that she moves one count by at most 1. A
function of age is fitted to the counts and released whole, with the noise of the paper's section 2
and with the exact one. The prior is declared: mean and sd 10 women a bin, noise sd 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.models import ExactPrior, rkhs
from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.accounting import exact_noise_multiplier, papers_noise_multiplier
from cloakgp.release.histogram import Bins
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.datasets import load_kung
from experiments.figures import BLACK, BLUE, GREY
from experiments.framework import Experiment, Progress, table_titled

DELTA = 0.01
EPSILONS = (1.0, 0.5, 0.2)
TALL = 145.0
AGES, BIN_WIDTH = (0.0, 90.0), 5.0
MEAN, SD, NOISE_SD, LENGTHSCALE = 10.0, 10.0, 3.0, 25.0
DRAWN = 8


def prior() -> ExactPrior:
    """Return the prior of counts by age."""
    return ExactPrior(
        kernel=ConstantKernel(SD**2) * RBF(LENGTHSCALE), noise_variance=NOISE_SD**2, mean=MEAN
    )


@dataclass(frozen=True, eq=False)
class Counted:
    """Women by bin of age, and who counts.

    Attributes
    ----------
    X : array of shape (m, 1)
        Middles of the bins, in years.
    members : array of shape (m, N)
        1 where a woman is in a bin, 0 elsewhere: public.
    taller : array of shape (N,)
        1 or 0: private.
    """

    X: Array
    members: Array
    taller: Array

    @classmethod
    def of(cls, women: pd.DataFrame) -> Counted:
        """Count the women by age in equal bins, all of them, whether anybody is in them or not."""
        edges = np.arange(AGES[0], AGES[1] + BIN_WIDTH, BIN_WIDTH)
        bins = Bins(edges=(edges,))
        cells = bins.cells(women[["age"]].to_numpy(dtype=float))
        return cls(
            X=((edges[:-1] + edges[1:]) / 2)[:, None],
            members=(np.arange(len(edges) - 1)[:, None] == cells).astype(float),
            taller=(kung.heights(women) > TALL).astype(float),
        )

    @property
    def counts(self) -> Array:
        """Women who count by bin, without noise, shape (m,)."""
        counts: Array = self.members @ self.taller
        return counts


def function_noise_sds(X: Array, *, epsilon: float) -> dict[str, float]:
    """Return the noise sd of whole functions of counts, Δ = 1, in women a bin, by way.

    Parameters
    ----------
    X : array of shape (m, 1)
    epsilon : float
        At most 1, beyond which the paper's constant is not proved.
    """
    bounds = rkhs.sensitivity_bounds(prior(), X)
    return {
        "2018 paper, b(K⁻¹)": SD * bounds.signed * papers_noise_multiplier(epsilon, DELTA),
        "exact": SD * bounds.exact * exact_noise_multiplier(epsilon, DELTA),
    }


def released_functions(
    counted: Counted,
    points: Array,
    *,
    epsilon: float,
    releases: int,
    insecure_seed: int | None = None,
) -> Array:
    """Release the function of counts whole, exactly calibrated, shape (releases, P).

    One question for every coordinate of the posterior mean (`cloakgp.models.rkhs`), put to the
    women: what they answer is 0 or 1, and each is in one bin.

    Parameters
    ----------
    points : array of shape (P, 1)
        Where the functions are looked at, afterwards and for free.
    releases : int
        Each spends the budget anew.
    """
    questions = rkhs.function_questions(prior(), counted.X)
    asked = questions.strategy @ counted.members
    basis = prior().cross_covariance(points, counted.X) @ questions.representers
    found = []
    for draw in range(releases):
        answers = ask(
            asked,
            counted.taller,
            question=OutputBounds(0.0, 1.0),
            epsilon=epsilon,
            delta=DELTA,
            insecure_seed=None if insecure_seed is None else insecure_seed + draw,
        )
        # Answers are about outputs less the middle of their bounds, the function about counts less
        # the prior mean: both public.
        shift = 0.5 * counted.members.sum(axis=1) - MEAN
        found.append(MEAN + basis @ (answers.values[:, 0] + questions.strategy @ shift))
    return np.array(found)


@dataclass(frozen=True, eq=False)
class Found:
    """Noise sds by ε and way, counts, and releases at ε = 1."""

    sds: Mapping[float, Mapping[str, float]]
    counted: Counted
    points: Array
    mean: Array
    releases: Array


@dataclass(frozen=True)
class Counts(Experiment[Found]):
    """Section 2 of the 2018 paper, a remark: counts can be released as whole functions."""

    name: ClassVar[str] = "counts"
    small: ClassVar[Mapping[str, Any]] = {"releases": 2}

    epsilons: Sequence[float] = EPSILONS
    releases: int = DRAWN
    # Makes the noise reproducible. For tests.
    insecure_seed: int | None = None

    def compute(self, progress: Progress) -> Found:
        """Count, and release."""
        del progress
        counted = Counted.of(load_kung(male=False))
        points = np.linspace(*AGES, 181)[:, None]
        C = prior().cloaking_matrix(points, counted.X)
        return Found(
            sds={one: function_noise_sds(counted.X, epsilon=one) for one in self.epsilons},
            counted=counted,
            points=points,
            mean=MEAN + C @ (counted.counts - MEAN),
            releases=released_functions(
                counted,
                points,
                epsilon=1.0,
                releases=self.releases,
                insecure_seed=self.insecure_seed,
            ),
        )

    def tables(self, found: Found) -> Iterable[Table | str]:
        """Lay out the noise, and how large counts are."""
        table = table_titled(
            f"Noise sd of whole functions of counts (Δ = 1), women in a bin of {BIN_WIDTH:g} "
            f"years, δ = {DELTA:g}, by ε",
            "way",
            right=[f"ε = {epsilon:g}" for epsilon in found.sds],
        )
        for way in next(iter(found.sds.values())):
            table.add_row(way, *(f"{sds[way]:.2f}" for sds in found.sds.values()))
        yield table
        counts = found.counted.counts
        papers, exact = next(iter(found.sds.values())).values()
        yield (
            f"Counts are {counts.min():.0f} to {counts.max():.0f}, {counts.mean():.1f} on average "
            "(shown here as the table is public). The paper's remark holds for the exact noise, "
            f"{exact:.1f} women at ε = 1; its own, {papers:.1f}, would need larger counts."
        )

    def figures(self, found: Found) -> Mapping[str, Figure]:
        """Draw releases of the whole function."""
        figure = Figure(figsize=(7.6, 4.4), layout="constrained")
        axes = figure.subplots()
        for number, one in enumerate(found.releases):
            label = None if number else "private releases of the whole function, ε = 1"
            axes.plot(found.points, one, color=GREY, linewidth=0.9, label=label)
        axes.plot(found.points, found.mean, color=BLUE, linewidth=2.0, label="no privacy")
        axes.plot(found.counted.X, found.counted.counts, "x", color=BLACK, label="counts")
        axes.set(xlabel="age (years)", ylabel=f"women above {TALL:g} cm in {BIN_WIDTH:g} years")
        axes.set_title("Counts, released as a function (2018 paper, section 2)", fontsize=11)
        axes.legend(loc="best", fontsize=9, frameon=False)
        return {"counts.png": figure}
