"""All candidates of section 6.7 of the 2021 paper, chosen in every way, on both halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd

from cloakgp.arrays import Array
from cloakgp.experiments import sound_selection, table2
from cloakgp.experiments.selection_papers import Fold
from cloakgp.privacy.heldout import HeldOutErrors
from cloakgp.privacy.select import SelectionMechanism
from cloakgp.privacy.utility import Loss
from cloakgp.workers import in_order

Cloaked = TypeVar("Cloaked")

MECHANISMS: tuple[SelectionMechanism, ...] = ("permute-and-flip", "exponential")
LOSS_NAMES: dict[Loss, str] = {"squared": "root of squares", "absolute": "absolute errors"}


@dataclass(frozen=True, eq=False)
class Study:
    """All candidates' errors on one input, for the half that chooses and for the other.

    Attributes
    ----------
    column : {"weight", "age"}
    halves : pair of Half
    papers : pair of lists
        Folds of every candidate with the papers' noise.
    ours : pair of lists
        What `cloakgp.privacy.select` knows of every candidate.
    """

    column: str
    halves: tuple[table2.Half, table2.Half]
    papers: tuple[list[list[Fold]], list[list[Fold]]]
    ours: tuple[list[HeldOutErrors], list[HeldOutErrors]]

    @classmethod
    def of(
        cls,
        women: pd.DataFrame,
        *,
        column: str,
        tick: Callable[[], None],
        n_jobs: int | None = None,
    ) -> Study:
        """Cloak everything.

        Parameters
        ----------
        women : DataFrame
        column : {"weight", "age"}
        tick : callable
            Called four times for every candidate, in four bursts.
        n_jobs : int, optional
            How many of four parts at a time; see `cloakgp.workers.in_order`.
        """
        halves = table2.halves(women, column=column)

        def of_both(cloaked: Callable[[table2.Half], Cloaked]) -> tuple[Cloaked, Cloaked]:
            found = []
            for one in in_order((partial(cloaked, half) for half in halves), n_jobs=n_jobs):
                found.append(one)
                for _ in table2.GRID:
                    tick()
            first, second = found
            return first, second

        return cls(
            column=column,
            halves=halves,
            papers=of_both(table2.papers_folds),
            ours=of_both(sound_selection.our_candidates),
        )

    def papers_rows(self) -> dict[str, tuple[float, float]]:
        """Return the papers' expected RMSEs on both halves, in cm, by way of choosing."""
        chooser, candidates = self.halves[0], self.papers[0]
        rmse = [
            table2.papers_rmse(one, half)
            for one, half in zip(self.papers, self.halves, strict=True)
        ]
        kept = table2.kept_by_threshold(candidates, width=chooser.width)
        found = {}
        for label, thresholded, sensitivity in (
            ("notebook", True, table2.NOTEBOOK_SENSITIVITY),
            ("equation 14", True, None),
            ("nothing dropped", False, None),
        ):
            choice = table2.papers_choice(
                candidates, chooser, thresholded=thresholded, sensitivity=sensitivity
            )
            name = f"algorithm 1, {label}, Δ_u = {choice.claimed_sensitivity:.1f}"
            found[name] = _expected(rmse, choice.probabilities)
        found[f"any of the {kept.sum()} not dropped"] = _expected(rmse, kept / kept.sum())
        found["any of the 80"] = _expected(rmse, np.full(len(kept), 1 / len(kept)))
        found["best of the 80 (not private)"] = _expected(rmse, rmse[0] == rmse[0].min())
        return found

    def our_rows(self) -> dict[str, tuple[float, float]]:
        """Return our expected RMSEs on both halves, in cm, by way of choosing."""
        rmse = [
            sound_selection.our_rmse(one, half)
            for one, half in zip(self.ours, self.halves, strict=True)
        ]
        found = {
            f"{name}, {mechanism}": _expected(
                rmse,
                sound_selection.our_choice(
                    self.ours[0], self.halves[0], mechanism=mechanism, loss=loss
                ),
            )
            for loss, name in LOSS_NAMES.items()
            for mechanism in MECHANISMS
        }
        for mechanism in MECHANISMS:
            epsilon = sound_selection.epsilon_within_total(mechanism)
            name = f"absolute errors, {mechanism}, ε = {epsilon:.2f}: total (2, 0.01)"
            found[name] = _expected(
                rmse,
                sound_selection.our_choice(
                    self.ours[0],
                    self.halves[0],
                    epsilon=epsilon,
                    mechanism=mechanism,
                    loss="absolute",
                ),
            )
        count = len(table2.GRID)
        found["any of the 80"] = _expected(rmse, np.full(count, 1 / count))
        found["best of the 80 (not private)"] = _expected(rmse, rmse[0] == rmse[0].min())
        return found

    def default_rows(self, *, draws: int) -> dict[str, tuple[float, float]]:
        """Return the defaults' RMSEs on both halves at the total budget, in cm."""
        first, second = self.halves
        return {
            "default prior as declared": (
                sound_selection.declared_default_rmse(first),
                sound_selection.declared_default_rmse(second),
            ),
            f"untouched defaults ({draws} draws a fold)": (
                sound_selection.default_rmse(first, draws=draws),
                sound_selection.default_rmse(second, draws=draws),
            ),
        }


def _expected(rmse: Sequence[Array], probabilities: Array) -> tuple[float, float]:
    same, other = (table2.expected_rmse(one, probabilities) for one in rmse)
    return same, other
