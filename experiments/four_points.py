"""Section 5.1 of the 2021 paper: four points, and where its sensitivity fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.table import Table

from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.algorithm_1 import (
    LOSS_NAMES,
    THRESHOLD,
    Fold,
    claimed_sensitivity,
    expected_squared_errors,
    fold_of,
    held_out_of,
    papers_selection_with_unsound_bound,
    sound_choice,
)
from experiments.framework import Experiment, Progress, table_titled

X = np.array([0.0, 1.0, 2.0, 4.0])
Y = np.array([0.0, 0.5, 1.0, 2.0])
BOUNDS = OutputBounds(0.0, 2.0)
HALVES = ((0, 1), (2, 3))
INTERLEAVED = ((0, 2), (1, 3))


# 2021 paper, section 5.1.
PUBLISHED = {
    "halves": ("50", "1597", "116", "99.87 %"),
    "interleaved": ("", "337", "53", "93.94 %"),
}


def counterexample_tables(*, near: int = 2, far: int = 20) -> tuple[list[Fold], Array, Array]:
    """Return two folds, and two neighbouring tables of outputs between 0 and d = 1.

    Fold A has rows at x = 1, fold B at x = 4 with outputs 0, and a line through the origin is
    fitted. All of A's outputs but one are d, and that one moves from 0 to d.

    Parameters
    ----------
    near, far : int
        Rows of A and of B.
    """
    x = np.concatenate([np.ones(near), np.full(far, 4.0)])
    rows_a, rows_b = np.arange(near), np.arange(near, near + far)
    folds = [
        Fold(
            train=train,
            held_out=held_out,
            cloaking=np.outer(x[held_out], x[train]) / float(x[train] @ x[train]),
            noise_variance=np.zeros(len(held_out)),
        )
        for train, held_out in ((rows_a, rows_b), (rows_b, rows_a))
    ]
    y = np.zeros(near + far)
    y[1:near] = 1.0
    moved = y.copy()
    moved[0] = 1.0
    return folds, y, moved


def counterexample() -> tuple[float, float]:
    """Return how far one output moves the SSE, and what equation 13 allows, in units of d².

    Examples
    --------
    >>> [round(one) for one in counterexample()]
    [241, 89]
    """
    folds, y, moved = counterexample_tables()
    before, after = (expected_squared_errors(folds, one) for one in (y, moved))
    return after - before, claimed_sensitivity(folds, width=1.0)


def polynomial_cloaking(x: Array, x_query: Array, *, order: int) -> Array:
    """Return X_* (XᵀX)⁻¹ Xᵀ of least squares, shape (P, N) (2021 paper, section 5.1).

    Examples
    --------
    >>> polynomial_cloaking(np.array([0.0, 1.0]), np.array([2.0, 4.0]), order=1).round()
    array([[-1.,  2.],
           [-3.,  4.]])
    """
    design, query = (np.vander(points, order + 1, increasing=True) for points in (x, x_query))
    return np.asarray(query @ np.linalg.pinv(design), dtype=np.float64)


def four_points_folds(*, order: int, split: Sequence[Sequence[int]]) -> list[Fold]:
    """Return the two folds of the four-point example for one order of polynomial.

    Parameters
    ----------
    split : pair of pairs of int
        `HALVES` or `INTERLEAVED`.
    """
    return [
        fold_of(
            polynomial_cloaking(X[list(train)], X[list(held_out)], order=order),
            train=train,
            held_out=held_out,
            width=BOUNDS.width,
            gap=1e-9,
        )
        for train, held_out in (split, split[::-1])
    ]


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice between order 0 and order 1.

    Attributes
    ----------
    split, label : str
    errors : array of shape (2,)
    sensitivity : float
    probabilities : array of shape (2,)
    """

    split: str
    label: str
    errors: Array
    sensitivity: float
    probabilities: Array


def choices() -> list[Choice]:
    """Choose by algorithm 1, with errors cut off and without, and soundly, for both splits."""
    found = []
    for name, split in {"halves": HALVES, "interleaved": INTERLEAVED}.items():
        candidates = [four_points_folds(order=order, split=split) for order in (0, 1)]
        for label, threshold in (
            ("algorithm 1, expected SSE (bound fails)", np.inf),
            ("the same, errors cut off at 4d", THRESHOLD * BOUNDS.width),
        ):
            chosen = papers_selection_with_unsound_bound(
                candidates, Y, width=BOUNDS.width, threshold=threshold
            )
            found.append(
                Choice(name, label, chosen.errors, chosen.claimed_sensitivity, chosen.probabilities)
            )
        public = [held_out_of(folds, rows=len(Y)) for folds in candidates]
        for loss, label in LOSS_NAMES.items():
            sound = sound_choice(public, Y, bounds=BOUNDS, loss=loss)
            found.append(Choice(name, f"ours, {label}", *sound))
    return found


def squared_errors_without_noise(*, order: int, split: Sequence[Sequence[int]]) -> list[float]:
    """Return the sum of squared errors of each fold without privacy noise.

    Examples
    --------
    >>> squared_errors_without_noise(order=0, split=HALVES)
    [3.625, 3.25]
    """
    errors = (
        polynomial_cloaking(X[list(train)], X[list(out)], order=order) @ Y[list(train)]
        - Y[list(out)]
        for train, out in (split, split[::-1])
    )
    return [round(float(one @ one), 12) for one in errors]


def without_noise_lines() -> Iterable[str]:
    """Say what the paper says of its example before noise: errors, and two cloaking matrices."""
    train, held_out = (list(rows) for rows in HALVES)
    for order, published in ((0, "6.875 (3.625 + 3.25)"), (1, "0 (0 + 0)")):
        folds = squared_errors_without_noise(order=order, split=HALVES)
        matrix = polynomial_cloaking(X[train], X[held_out], order=order).round(12) + 0.0
        yield (
            f"Order {order}, halves, no noise: {sum(folds):g} ({folds[0]:g} + {folds[1]:g}), "
            f"published {published}; C{'₀₁'[order]} of the first split: {matrix.tolist()}"
        )


@dataclass(frozen=True)
class FourPoints(Experiment[list[Choice]]):
    """Section 5.1 of the 2021 paper: polynomials of order 0 and 1 through four points."""

    name: ClassVar[str] = "four-points"

    def compute(self, progress: Progress) -> list[Choice]:
        """Choose in every way."""
        del progress
        return choices()

    def tables(self, found: list[Choice]) -> Iterable[Table | str]:
        """Lay out the choices, and say how far one output moves the papers' errors."""
        table = table_titled(
            "Four points (2021 paper, section 5.1), (1, 0.01)-DP, d = 2: order 0 or order 1?",
            *("split", "choice"),
            right=("error, order 0", "order 1", "sensitivity", "P(order 0)"),
        )
        split = ""
        for one in found:
            if one.split != split:
                split = one.split
                table.add_row(split, "published", *PUBLISHED[split], style="dim")
            errors = (f"{error:.2f}" for error in one.errors)
            table.add_row(
                "", one.label, *errors, f"{one.sensitivity:.4g}", f"{one.probabilities[0]:.2%}"
            )
        yield table
        yield from without_noise_lines()
        moved, claimed = counterexample()
        yield (
            f"The paper's bound fails: two rows at x = 1, twenty at x = 4, a line through the "
            f"origin. One output moves the sum of squared errors by {moved:.0f} d²; equation 13 "
            f"allows {claimed:.0f} d²."
        )
