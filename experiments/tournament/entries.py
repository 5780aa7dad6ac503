"""Entries: ours, its rivals with every tuning, and what may be had without privacy.

A subclass of `Entry` for numbers or classes sees a `Deal`, and says what it predicts by tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from sklearn.ensemble import HistGradientBoostingRegressor

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.raw_tables import encoded_by_hand
from experiments.rivals.base import Given, Rival
from experiments.rivals.classes import (
    TOLD_LABELS,
    TWO_STAGES,
    VOTES,
    WITHOUT_PRIVACY,
    LabelSplit,
)
from experiments.rivals.cloaked import EXACT, PAPERS
from experiments.rivals.direct import LOCAL_NOISE, NOISY_MEAN
from experiments.rivals.explainable_boosting import EXPLAINABLE_BOOSTING, is_installed
from experiments.rivals.features import BOOSTED_SUMS, POLYNOMIALS
from experiments.rivals.histograms import HISTOGRAM, PROCESS_ON_CELLS
from experiments.rivals.references import forest_without_privacy
from experiments.rivals.told import TOLD_OUTPUTS
from experiments.rivals.trees import ADDITIVE, TREES
from experiments.scores import LEVELS
from experiments.tournament.tables import Judged
from experiments.ways import Setting

OURS = "cloakgp, default"
UNTOUCHED = "untouched"
COMMON_LEVELS = 20
MOST_HELD_OUT, ROWS = 300, 1_000
HELD_OUT_OF_WHOLE = 2_000
BOOSTED_ROUNDS = (30, 100)


@dataclass(frozen=True, eq=False)
class Deal:
    """Rows of a judged table, to fit and to predict, as they come and encoded.

    Attributes
    ----------
    columns, columns_test : DataFrame
    outputs, outputs_test : array of shape (N,), (P,)
        Numbers, or classes as text.
    bounds : OutputBounds or None
    classes : tuple of str
        Of the whole table, in order; empty if outputs are numbers.
    """

    columns: pd.DataFrame
    outputs: Any
    columns_test: pd.DataFrame
    outputs_test: Any
    bounds: OutputBounds | None
    classes: tuple[str, ...] = ()

    @cached_property
    def encoded(self) -> tuple[Array, Array]:
        """Public inputs as most people would encode them, of both parts."""
        return encoded_by_hand(self.columns, self.columns_test, most_levels=COMMON_LEVELS)

    @cached_property
    def numbers(self) -> Split:
        """The same for rivals of numbers."""
        assert self.bounds is not None
        X, asked = self.encoded
        return Split(
            X=X,
            outputs=self.outputs,
            X_test=asked,
            outputs_test=self.outputs_test,
            bounds=self.bounds,
        )

    @cached_property
    def labels(self) -> LabelSplit:
        """The same for rivals of classes, whose labels are numbers from 0."""
        X, asked = self.encoded
        place = {label: number for number, label in enumerate(self.classes)}
        return LabelSplit(
            X=X,
            labels=np.array([place[label] for label in self.outputs], dtype=np.intp),
            X_test=asked,
            labels_test=np.array([place[label] for label in self.outputs_test], dtype=np.intp),
            classes=len(self.classes),
        )


def deal(table: Judged, split: int, *, rows: int | None = ROWS) -> Deal:
    """Deal the rows of a table to fit and to predict; the same for the same number.

    Parameters
    ----------
    table : Judged
    split : int
    rows : int or None
        The most that are fitted. None: all, and more are held out.
    """
    columns, outputs = table.read()
    order = np.random.default_rng(split).permutation(len(columns))
    most = HELD_OUT_OF_WHOLE if rows is None else MOST_HELD_OUT
    held_out = min(most, len(order) // 4)
    test, train = order[:held_out], order[held_out:][:rows]
    # A gap where no fitted row has one is refused by our release: such rows are nobody's.
    gaps = columns.isna()
    predicted = ~(gaps.iloc[test] & ~gaps.iloc[train].any()).any(axis=1).to_numpy()
    test = test[predicted]
    values = outputs.to_numpy()
    return Deal(
        columns=columns.iloc[train].reset_index(drop=True),
        outputs=values[train],
        columns_test=columns.iloc[test].reset_index(drop=True),
        outputs_test=values[test],
        bounds=None if table.bounds is None else OutputBounds(*table.bounds),
        classes=tuple(sorted(set(values))) if table.is_of_classes else (),
    )


@dataclass(frozen=True, eq=False)
class Told:
    """What is predicted: a mean and quantiles, or probabilities.

    Attributes
    ----------
    mean : array of shape (P,) or (P, classes)
    quantiles : array of shape (P, levels), or None
        At `experiments.claims.LEVELS`.
    """

    mean: Array
    quantiles: Array | None = None


@dataclass(frozen=True)
class Entry:
    """One way to predict a judged table.

    Attributes
    ----------
    name : str
    is_private : bool
    predict : callable
        Deal and setting → what is predicted, by tuning.
    is_of_classes : bool
    grows_with_rows : bool
        Whether time and memory grow with the rows alone, so that whole tables can be fitted.
    needs_delta : bool
        Without one it has no cells.
    """

    name: str
    is_private: bool
    predict: Callable[[Deal, Setting], Mapping[str, Told]]
    is_of_classes: bool = False
    grows_with_rows: bool = False
    needs_delta: bool = False


def our_numbers(dealt: Deal, setting: Setting) -> Mapping[str, Told]:
    """Fit `DPGPRegressor` to the table as it comes, told bounds and budget alone."""
    assert dealt.bounds is not None
    model = DPGPRegressor(
        bounds=(dealt.bounds.lo, dealt.bounds.hi),
        epsilon=setting.epsilon,
        delta=setting.delta,
        insecure_seed=setting.insecure_seed,
    )
    release = model.fit(dealt.columns, dealt.outputs).release_
    return {
        UNTOUCHED: Told(
            mean=np.asarray(release.predict(dealt.columns_test)),
            quantiles=np.asarray(release.predict_quantile(dealt.columns_test, LEVELS)),
        )
    }


def our_classes(dealt: Deal, setting: Setting) -> Mapping[str, Told]:
    """Fit `DPGPClassifier` to the table as it comes, told classes and budget alone."""
    model = DPGPClassifier(
        classes=list(dealt.classes),
        epsilon=setting.epsilon,
        delta=setting.delta,
        insecure_seed=setting.insecure_seed,
    )
    model.fit(dealt.columns, dealt.outputs)
    return {UNTOUCHED: Told(np.asarray(model.predict_proba(dealt.columns_test)))}


def entry_of(rival: Rival[Given], dealt_to: Callable[[Deal], Given], **facts: bool) -> Entry:
    """Return the entry of a rival.

    Parameters
    ----------
    rival : Rival
    dealt_to : callable
        What it is given of a deal.
    **facts
        Of `Entry`.
    """

    def predict(dealt: Deal, setting: Setting) -> Mapping[str, Told]:
        found = rival.predict(dealt_to(dealt), setting)
        return {tuning: Told(np.asarray(told)) for tuning, told in found.items()}

    return Entry(rival.name, rival.is_private, predict, **facts)


def of_numbers(rival: Rival[Split], *, grows_with_rows: bool = False) -> Entry:
    """Return the entry of a rival for numbers."""
    return entry_of(
        rival,
        lambda dealt: dealt.numbers,
        grows_with_rows=grows_with_rows,
        needs_delta=rival in (EXACT, PAPERS, EXPLAINABLE_BOOSTING),
    )


def of_classes(rival: Rival[LabelSplit]) -> Entry:
    """Return the entry of a rival for classes."""
    return entry_of(rival, lambda dealt: dealt.labels, is_of_classes=True)


def boosting_without_privacy(dealt: Split, setting: Setting) -> Mapping[str, Array]:
    """Fit scikit-learn's histogram boosting. Not private. Tuned: rounds."""
    del setting
    return {
        f"{rounds} rounds": np.asarray(
            HistGradientBoostingRegressor(max_iter=rounds, random_state=0)
            .fit(dealt.X, dealt.outputs)
            .predict(dealt.X_test)
        )
        for rounds in BOOSTED_ROUNDS
    }


def entries(
    *, classes: bool, whole: bool = False, setting: Setting | None = None
) -> tuple[Entry, ...]:
    """Return the entries of a kind of table; DP-EBM only where its package is installed.

    Parameters
    ----------
    classes : bool
    whole : bool
        Those whose time and memory grow with the rows alone.
    setting : Setting, optional
        Private entries that go with it. None: those without privacy.
    """
    return tuple(
        one
        for one in _all_entries(classes=classes, whole=whole)
        if one.is_private is (setting is not None)
        and not (one.needs_delta and setting is not None and setting.delta == 0.0)
    )


def _all_entries(*, classes: bool, whole: bool) -> tuple[Entry, ...]:
    if classes:
        return (
            Entry(OURS, True, our_classes, is_of_classes=True),
            *map(of_classes, (TOLD_LABELS, TWO_STAGES, VOTES, WITHOUT_PRIVACY)),
        )
    small = (
        PROCESS_ON_CELLS,
        BOOSTED_SUMS,
        ADDITIVE,
        EXACT,
        PAPERS,
        LOCAL_NOISE,
        TOLD_OUTPUTS,
        *((EXPLAINABLE_BOOSTING,) if is_installed() else ()),
        Rival("random forest, not private", "", forest_without_privacy),
    )
    large = (
        HISTOGRAM,
        POLYNOMIALS,
        TREES,
        NOISY_MEAN,
        Rival("boosting, not private", "", boosting_without_privacy),
    )
    every = (
        Entry(OURS, True, our_numbers, grows_with_rows=True),
        *(of_numbers(rival, grows_with_rows=True) for rival in large),
        *(of_numbers(rival) for rival in small),
    )
    return tuple(one for one in every if one.grows_with_rows or not whole)


def normal_quantiles(mean: Array, sd: float) -> Array:
    """Return the quantiles at `LEVELS` of normal laws, shape (P, levels)."""
    quantiles: Array = mean[:, None] + sd * special.ndtri(LEVELS)
    return quantiles
