r"""Sparse approximations beside each other: FITC, DTC and SoR under privacy noise.

The 2021 paper takes FITC for regression and SoR for classification, and names as future work "which
approximations achieve better DP noise results". They differ in the noise of the rows:

* FITC believes a row less by what the inducing inputs leave open of it, K_ff − Q_ff;
* DTC and SoR believe all rows alike, and have the same C, hence the same raw predictions and the
  same privacy noise; they differ in the posterior variance alone.

So FITC holds rows back that lie far from all inducing inputs. With the papers' hyperparameters that
is little beside the noise that all rows have, and which approximation is taken hardly matters: few
inducing inputs lower the privacy noise, in whichever way they are used. Errors are exact
expectations (`experiments.expected_errors`), for the !Kung women with the settings of `kung`, by
number of inducing inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from cloakgp.models import SparsePrior
from cloakgp.models.sparse import Approximation
from cloakgp.utils.arrays import Array
from experiments import kung
from experiments.cloaking import PAPERS_NOISE, SHOWN_NOISES, TRACE_NOISE
from experiments.cross_validation import Errors, Protocol
from experiments.datasets import load_kung
from experiments.expected_errors import expected_errors
from experiments.figures import BLACK, RED
from experiments.framework import Experiment, Progress, Tick, no_tick, table_titled

COUNTS = (3, 5, 8, 12, 20)
# SoR has the same C as DTC.
SHOWN: dict[Approximation, str] = {"fitc": "FITC", "dtc": "DTC and SoR"}


def sparse_prior(
    X: Array, *, inputs: str, inducing: int, approximation: Approximation
) -> SparsePrior:
    """Return the papers' prior of heights, seen through inducing inputs in one of the ways.

    Parameters
    ----------
    X : array of shape (N, D)
    inputs : {"1d", "2d"}
    inducing : int
        Number of inducing inputs, by k-means.
    approximation : {"fitc", "dtc", "sor"}
    """
    fitc = kung.Setting(inputs, inducing).prior_for(X)
    if not isinstance(fitc, SparsePrior):
        raise TypeError("a setting with inducing inputs has a sparse prior")
    return SparsePrior(
        kernel=fitc.kernel,
        noise_variance=fitc.noise_variance,
        mean=fitc.mean,
        inducing=fitc.inducing,
        approximation=approximation,
    )


# By inputs, approximation and number of inducing inputs; then by noise.
Compared = Mapping[tuple[str, Approximation, int], Mapping[str, Errors]]


def compare(
    women: pd.DataFrame,
    *,
    counts: Sequence[int] = COUNTS,
    approximations: Sequence[Approximation] = tuple(SHOWN),
    protocol: Protocol,
    tick: Tick = no_tick,
) -> Compared:
    """Return expected errors by inputs, approximation and number of inducing inputs, in cm.

    Parameters
    ----------
    counts : sequence of int
        Numbers of inducing inputs.
    protocol : Protocol
        Its draws are not used: errors are exact.
    """
    return {
        (inputs, approximation, count): expected_errors(
            women[columns].to_numpy(dtype=float),
            kung.heights(women),
            prior_for=partial(
                sparse_prior, inputs=inputs, inducing=count, approximation=approximation
            ),
            noises=SHOWN_NOISES,
            budget=kung.BUDGET,
            protocol=protocol,
            tick=tick,
        )
        for inputs, columns in kung.INPUTS.items()
        for approximation in approximations
        for count in counts
    }


@dataclass(frozen=True)
class Approximations(Experiment[Compared]):
    """Future work of the 2021 paper: which sparse approximation suits privacy noise best."""

    name: ClassVar[str] = "approximations"
    small: ClassVar[Mapping[str, Any]] = {"counts": (5,), "folds": 3}

    counts: Sequence[int] = COUNTS
    folds: int = 14

    def compute(self, progress: Progress) -> Compared:
        """Cross-validate every approximation."""
        women = load_kung(male=False)
        steps = len(kung.INPUTS) * len(SHOWN) * len(self.counts) * self.folds
        with progress("folds", steps=steps) as tick:
            return compare(
                women, counts=self.counts, protocol=Protocol(folds=self.folds), tick=tick
            )

    def tables(self, found: Compared) -> Iterable[Table | str]:
        """Lay out errors, and say which is ahead."""
        table = table_titled(
            f"Root of the expected mean square (cm), mean over {self.folds} folds in file order, "
            "raw predictions, (1, 0.01)-DP, 2021 paper's settings, by number of inducing inputs",
            *("inputs", "noise", "approximation"),
            right=map(str, self.counts),
        )
        for inputs in kung.INPUTS:
            for noise in ("no privacy", *(one.name for one in SHOWN_NOISES)):
                for approximation, name in SHOWN.items():
                    cells = (found[inputs, approximation, count][noise] for count in self.counts)
                    table.add_row(inputs, noise, name, *(f"{cell.mean:.2f}" for cell in cells))
        yield table
        for shown in SHOWN_NOISES:
            ahead = [
                found[inputs, "dtc", count][shown.name].mean
                - found[inputs, "fitc", count][shown.name].mean
                for inputs in kung.INPUTS
                for count in self.counts
            ]
            yield (
                f"{shown.name}: FITC is more accurate than DTC and SoR in "
                f"{sum(one > 0 for one in ahead)} of {len(ahead)} cases, by {min(ahead):+.2f} to "
                f"{max(ahead):+.2f} cm: which is taken hardly matters."
            )

    def figures(self, found: Compared) -> Mapping[str, Figure]:
        """Draw errors by number of inducing inputs."""
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        for axes, inputs in zip(figure.subplots(1, 2, sharey=True), kung.INPUTS, strict=True):
            for noise, colour in ((PAPERS_NOISE, BLACK), (TRACE_NOISE, RED)):
                for (approximation, name), line in zip(SHOWN.items(), ("-o", "--s"), strict=True):
                    means = [
                        found[inputs, approximation, count][noise.name].mean
                        for count in self.counts
                    ]
                    axes.plot(self.counts, means, line, color=colour, label=f"{noise.name}, {name}")
            axes.set(xlabel="inducing inputs", title=inputs)
            axes.grid(alpha=0.25)
        axes.legend(loc="best", fontsize=8, frameon=False)
        figure.axes[0].set_ylabel("root mean squared error (cm)")
        figure.suptitle("Sparse approximations, !Kung women, (1, 0.01)-DP", fontsize=12)
        return {"approximations.png": figure}
