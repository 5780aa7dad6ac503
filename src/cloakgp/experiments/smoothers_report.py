"""Command: linear smoothers of the heights of !Kung women, released by `cloakgp.cloak`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol as TypingProtocol

import numpy as np
import pandas as pd
from rich.table import Table

from cloakgp.arrays import Array
from cloakgp.choices import choose_prior
from cloakgp.datasets import load_kung
from cloakgp.experiments import kung, smoothers
from cloakgp.experiments.cloaked import PAPERS_NOISE, TRACE_NOISE
from cloakgp.experiments.crossvalidation import Errors, Protocol, Tick, root_mean_square
from cloakgp.experiments.posterior_rows import Row, posterior_errors
from cloakgp.experiments.terminal import console, progress, table_titled
from cloakgp.privacy import cloak


class MatrixFor(TypingProtocol):
    """A smoother with its parameters."""

    def __call__(self, X: Array, *, X_query: Array) -> Array:
        """Return C, shape (P, N)."""


NOISES = (PAPERS_NOISE, TRACE_NOISE)
LENGTHSCALE = 15.0
GAP = 1e-2
PROTOCOL = Protocol(shuffle=True)


def declared_smoothers() -> dict[str, MatrixFor]:
    """Return the smoothers of the table by name; their parameters are round numbers, not fits.

    Examples
    --------
    >>> list(declared_smoothers())[-1]
    'linear regression'
    """
    gamma = 1.0 / (2.0 * LENGTHSCALE**2)
    found: dict[str, MatrixFor] = {
        f"kernel ridge, RBF of {LENGTHSCALE:g} years, λ = {penalty:g}": partial(
            smoothers.kernel_ridge, penalty=penalty, gamma=gamma
        )
        for penalty in (0.1, 2.5)
    }
    for penalty in (1e3, 1e5):
        found[f"smoothing spline, λ = {penalty:g} years³"] = partial(
            smoothers.smoothing_spline, penalty=penalty
        )
    for count in (5, 40):
        found[f"{count} nearest neighbours"] = partial(smoothers.nearest_neighbours, count=count)
    found["linear regression"] = smoothers.linear_regression
    return found


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Errors of one smoother, by fold, in cm.

    Attributes
    ----------
    no_privacy : array of shape (folds,)
        RMSE of C y.
    noise_sd : array of shape (noises, folds)
        Root mean square, over the held-out rows, of the sd of the noise in `cloak`'s predictions.
    drawn : array of shape (noises, folds)
        RMSE of its predictions.
    """

    no_privacy: Array
    noise_sd: Array
    drawn: Array

    @property
    def expected(self) -> Array:
        """Root of the mean squared error expected over the noise, shape (noises, folds).

        The noise has mean zero and knows nothing of the outputs, so mean squares add.
        """
        return np.asarray(np.hypot(self.no_privacy, self.noise_sd), dtype=np.float64)


def run_smoothers() -> None:
    """Kernel ridge, splines, neighbours and lines through `cloak`: heights of !Kung women."""
    women = load_kung(male=False)
    started = time.monotonic()
    matrices = declared_smoothers()
    with progress("smoothers", steps=len(matrices) * PROTOCOL.folds) as tick:
        found = {
            name: smooth(women, matrix_for=matrix_for, protocol=PROTOCOL, tick=tick)
            for name, matrix_for in matrices.items()
        }
    title = (
        "Heights of !Kung women by age through cloak, (1, 0.01)-DP, d = 100 cm, mean over "
        f"{PROTOCOL.folds} shuffled folds; expected over the noise, and of one draw a fold"
    )
    console.print(smoothers_report(found, title=title))
    errors = default_process_errors(women, protocol=PROTOCOL)
    console.print(
        "For comparison, DPGPRegressor with bounds and budget alone, learn=None: "
        f"{errors.mean:.2f} cm (se over {PROTOCOL.draws} draws {errors.standard_error:.2f})"
    )
    console.print(f"{time.monotonic() - started:.0f} s")


def smooth(
    women: pd.DataFrame,
    *,
    matrix_for: MatrixFor,
    protocol: Protocol,
    tick: Tick | None = None,
) -> Smoothed:
    """Cross-validate one smoother, releasing each fold's predictions once under every noise.

    Predictions are C y + m (1 − C 1) with the public m = 135 cm, which matters to smoothers that
    shrink to zero and to no others. The truth is clipped to the bounds, as in the papers.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    matrix_for : callable
        Training and query inputs → C.
    protocol : Protocol
    tick : callable, optional
        Called after every fold.
    """
    X, bounds = women[["age"]].to_numpy(dtype=float), kung.BUDGET.bounds
    heights = bounds.clip(kung.heights(women))
    no_privacy, noise_sd, drawn = [], [], []
    for fold, (train, held_out) in enumerate(protocol.splits(len(X))):
        C = matrix_for(X[train], X_query=X[held_out])
        shift = kung.PRIOR_MEAN * (1.0 - C.sum(axis=1)) - heights[held_out]
        no_privacy.append(root_mean_square(C @ heights[train] + shift))
        released = [
            cloak(
                C,
                heights[train],
                bounds=(bounds.lo, bounds.hi),
                epsilon=kung.BUDGET.epsilon,
                delta=kung.BUDGET.delta,
                criterion=noise.criterion,
                calibration=noise.calibration,
                gap=GAP,
                insecure_seed=protocol.seed(fold, number),
            )
            for number, noise in enumerate(NOISES)
        ]
        noise_sd.append([float(np.sqrt(np.diag(one.noise_cov).mean())) for one in released])
        drawn.append([root_mean_square(one.values + shift) for one in released])
        if tick is not None:
            tick()
    return Smoothed(
        no_privacy=np.array(no_privacy), noise_sd=np.array(noise_sd).T, drawn=np.array(drawn).T
    )


def default_process_errors(women: pd.DataFrame, *, protocol: Protocol) -> Errors:
    """Return the errors of the default Gaussian process under `bayes`, on the same folds.

    Parameters
    ----------
    women : DataFrame
    protocol : Protocol
    """
    row = Row("defaults", partial(choose_prior, bounds=kung.BUDGET.bounds))
    X = women[["age"]].to_numpy(dtype=float)
    return posterior_errors(
        X, kung.heights(women), rows=(row,), budget=kung.BUDGET, protocol=protocol
    )[row.name]


def smoothers_report(found: Mapping[str, Smoothed], *, title: str) -> Table:
    """Lay out errors and noise by smoother.

    Parameters
    ----------
    found : mapping of str to Smoothed
    title : str
    """
    table = table_titled(title)
    table.add_column("RMSE (cm)")
    table.add_column("no privacy", justify="right")
    for noise in NOISES:
        for column in (f"noise sd,\n{noise.name}", "expected", "drawn"):
            table.add_column(column, justify="right")
    for name, one in found.items():
        figures = (
            f"{part[number].mean():.2f}"
            for number in range(len(NOISES))
            for part in (one.noise_sd, one.expected, one.drawn)
        )
        table.add_row(name, f"{one.no_privacy.mean():.2f}", *figures)
    return table
