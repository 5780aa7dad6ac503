"""Rivals that protect whole rows of classes: diffprivlib's, and models that protect nobody.

Inputs are in [0, 1] by public ranges, and labels are places of public classes, from 0. diffprivlib
(0.6.6) needs no δ: its models keep ε by its own idea of neighbours, and the same in all columns.
Its logistic regression is not here: it passes an argument that scikit-learn no longer takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from cloakgp.utils.arrays import Array
from experiments.rivals.whole_rows import Promise

TREES = (1, 5, 20)
DEPTHS = (3, 6)


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Rows to fit and inputs to predict at, by public ranges.

    Attributes
    ----------
    X : array of shape (N, D)
        Private, in [0, 1].
    labels : array of int, shape (N,)
        Private, from 0.
    X_query : array of shape (P, D)
    classes : int
    """

    X: Array
    labels: NDArray[np.intp]
    X_query: Array
    classes: int


Method = Callable[[LabelTable, Promise, np.random.Generator], NDArray[np.intp]]


def of_diffprivlib(
    table: LabelTable, promise: Promise, rng: np.random.Generator, *, name: str, **settings: Any
) -> NDArray[np.intp]:
    """Predict by a model of diffprivlib, at ε alone, that knows the ranges of inputs.

    Parameters
    ----------
    table : LabelTable
    promise : Promise
    rng : Generator
    name : str
        Of the model's class.
    **settings
    """
    from sklearn.tree import _tree

    # It imports names that scikit-learn's trees no longer have, and does not use them here.
    for old in ("DOUBLE", "DTYPE"):
        vars(_tree).setdefault(old, np.float64)
    from diffprivlib import models

    ends = np.zeros(table.X.shape[1]), np.ones(table.X.shape[1])
    model = getattr(models, name)(
        epsilon=promise.epsilon, bounds=ends, random_state=int(rng.integers(2**31)), **settings
    )
    with warnings.catch_warnings():
        # Of fixed seeds.
        warnings.simplefilter("ignore")
        model.fit(table.X, table.labels)
        return np.asarray(model.predict(table.X_query), dtype=np.intp)


def forest(
    table: LabelTable, promise: Promise, rng: np.random.Generator, *, trees: int, depth: int
) -> NDArray[np.intp]:
    """Predict by diffprivlib's random forest, whose trees ask disjoint rows."""
    return of_diffprivlib(
        table,
        promise,
        rng,
        name="RandomForestClassifier",
        classes=list(range(table.classes)),
        n_estimators=trees,
        max_depth=depth,
    )


def without_privacy(
    table: LabelTable, promise: Promise, rng: np.random.Generator, *, model: Any
) -> NDArray[np.intp]:
    """Predict by a model that protects nobody."""
    del promise, rng
    return np.asarray(model.fit(table.X, table.labels).predict(table.X_query), dtype=np.intp)


def methods() -> Mapping[str, Mapping[str, Method]]:
    """Return rivals by name, each with all of its tunings; packages only if they are installed.

    Examples
    --------
    >>> list(methods())[-1]
    'the commonest class, not private'
    """
    found: dict[str, dict[str, Method]] = {}
    if find_spec("diffprivlib") is not None:
        found["diffprivlib, naive Bayes, ε only"] = {
            "as it is": partial(of_diffprivlib, name="GaussianNB")
        }
        found["diffprivlib, random forest, ε only"] = {
            f"{trees} trees of depth {depth}": partial(forest, trees=trees, depth=depth)
            for trees in TREES
            for depth in DEPTHS
        }
    models = {
        "logistic regression, not private": LogisticRegression(max_iter=1000),
        "boosted trees, not private": HistGradientBoostingClassifier(random_state=0),
        "the commonest class, not private": DummyClassifier(),
    }
    for name, model in models.items():
        found[name] = {"as it is": partial(without_privacy, model=model)}
    return found
