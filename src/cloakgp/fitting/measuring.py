"""Measuring: the questions of a strategy are put to private outputs, once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.design import Certificate
from cloakgp.fitting.strategies import Budget, Encoding
from cloakgp.privacy import measure
from cloakgp.privacy.bands import Bands, SpreadQuestion, measure_in_bands
from cloakgp.privacy.groups import Groups
from cloakgp.privacy.interval import CountQuestion, measure_counts
from cloakgp.privacy.labels import Classes, measure_labels
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Measurement
from cloakgp.utils.arrays import Array


def about_everybody(
    X: Array,
    *,
    X_query: Array,
    query_weights: Array | None,
    table: int,
    groups: Groups | None,
    counted: NDArray[np.bool_] | None = None,
) -> DenseStrategy:
    """Return one question about all rows alike, or about some of them.

    Parameters
    ----------
    X : array of shape (N, D)
        The table's public inputs.
    X_query, query_weights
        Where predictions matter, and how much.
    table : int
    groups : array of shape (N,) or None
        Which group each row belongs to.
    counted : array of bool, shape (N,), optional
        About which rows; all if not given.
    """
    return DenseStrategy(
        X=X,
        matrix=np.ones((1, len(X))) if counted is None else counted[None, :].astype(np.float64),
        X_query=X_query,
        query_weights=query_weights,
        reconstruction=None,
        certificate=Certificate(criterion="given", gap=np.inf),
        table=table,
        row_groups=groups,
    )


@forget_on_failure
def measured(
    strategy: DenseStrategy,
    y: ArrayLike,
    *,
    encoding: Encoding | Bands | SpreadQuestion | CountQuestion,
    budget: Budget,
    after_answers: bool = False,
    insecure_seed: int | None = None,
) -> Measurement:
    """Put a strategy to private outputs, under (ε, δ)-differential privacy.

    Mechanism: `cloakgp.privacy.queries` for numbers, `cloakgp.privacy.bands` for numbers in bands,
    `cloakgp.privacy.interval` for counts, `cloakgp.privacy.labels` for classes.

    Parameters
    ----------
    strategy : DenseStrategy
    y : array-like of shape (N,)
        Private outputs.
    encoding : OutputBounds, Bands, SpreadQuestion, CountQuestion or Classes
    budget : Budget
    after_answers : bool
        Whether answers that were published before decided what is asked: if that is nothing, the
        budget counts as spent all the same.
    insecure_seed : int, optional
        Makes the noise reproducible and the measurement **not private**.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.
    """
    if isinstance(encoding, Classes):
        labels = measure_labels(
            strategy.matrix,
            y,
            classes=encoding,
            epsilon=budget.epsilon,
            delta=budget.delta,
            groups=strategy.groups,
            noise=budget.noise,
            after_answers=after_answers,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=strategy, answers=labels)
    if isinstance(encoding, CountQuestion):
        counts = measure_counts(
            y,
            rows=strategy.n_rows,
            question=encoding,
            epsilon=budget.epsilon,
            delta=budget.delta,
            noise=budget.noise,
            groups=strategy.groups,
            counted=strategy.matrix[0] > 0,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=strategy, answers=counts, encoding=encoding)
    if isinstance(encoding, Bands | SpreadQuestion):
        placed = measure_in_bands(
            strategy.matrix,
            y,
            bands=encoding,
            epsilon=budget.epsilon,
            delta=budget.delta,
            groups=strategy.groups,
            noise=budget.noise,
            insecure_seed=insecure_seed,
        )
        return Measurement(strategy=strategy, answers=placed, encoding=encoding)
    answers = measure(
        strategy.matrix,
        y,
        bounds=(encoding.lo, encoding.hi),
        epsilon=budget.epsilon,
        delta=budget.delta,
        groups=strategy.groups,
        noise=budget.noise,
        after_answers=after_answers,
        insecure_seed=insecure_seed,
    )
    return Measurement(strategy=strategy, answers=answers)
