"""Combinations that no fit asks: each is refused by a public call, with the reason of the table."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process.kernels import RBF

import cloakgp
from cloakgp import (
    DPGPClassifier,
    DPGPQuantileRegressor,
    DPGPRegressor,
    DPGridSearchCV,
    extend,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.fitting.refusals import REFUSALS

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.linspace(0.0, 5.0, 40)[:, None]
Y = np.sin(X[:, 0])
LABELS = (Y > 0).astype(int)
PEOPLE = (np.arange(40) // 2).tolist()
BUDGET = {"epsilon": 2.0, "delta": 1e-3}
STAGES = [(0.4, None), (0.6, None)]
BANDS = [(0.4, None), (0.6, 1.0)]


class Unread(ArrayRows):
    """Rows whose outputs nobody may see."""

    def over_rows(self, work, *, what, labels=None):  # noqa: ARG002
        pytest.fail("the private column was read")


def rows(y=Y, **settings):
    return ArrayRows(X, y, jobs=1, **settings)


def numbers(**changes):
    chosen = {"bounds": (-1.0, 1.0), "learn": None, "stages": None, "inducing": 6, "gap": 0.1}
    return DPGPRegressor(**(chosen | BUDGET | changes))


def classes(**changes):
    chosen = {"classes": [0, 1], "learn": None, "inducing": 6, "gap": 0.1}
    return DPGPClassifier(**(chosen | BUDGET | changes))


def counts(**changes):
    return numbers(bounds=(0, 9), likelihood="counts", **changes)


def quantiles(**changes):
    chosen = {"bounds": (-1.0, 1.0), "learn": None, "stages": None, "inducing": 6, "gap": 0.1}
    return DPGPQuantileRegressor(**(chosen | BUDGET | changes))


def held(**changes):
    return numbers(**changes).fit(X, Y).release_


def in_passes(**settings):
    return numbers().fit_rows(rows(**settings)).release_


def again(release, y=Y, **settings):
    return refine(release, y, **(BUDGET | settings))


def added(release, *given, **settings):
    return extend(release, *given, **(BUDGET | settings))


CALLS = {
    "bands of labels": lambda: classes(stages=BANDS).fit(X, LABELS),
    "stages of labels in passes": lambda: classes(stages=STAGES).fit_rows(
        Unread(X, LABELS, jobs=1)
    ),
    "labels in passes again": lambda: again(
        classes().fit_rows(rows(LABELS)).release_, Unread(X, LABELS, jobs=1)
    ),
    "bands of quantiles": lambda: quantiles(stages=BANDS).fit(X, Y),
    "cells in passes again": lambda: added(quantiles().fit(X, Y).release_, Unread(X, Y, jobs=1)),
    "counts in candidates": lambda: DPGridSearchCV(
        counts(noise="gaussian"), {"kernel": [RBF(1.0)]}, selection_epsilon=1.0
    ).fit(X, LABELS),
    "raw predictions of counts": lambda: counts(criterion="trace").fit(X, LABELS),
    "the papers' iteration again": lambda: again(
        classes(criterion="newton", inducing=None).fit(X, LABELS).release_, LABELS
    ),
    "groups in passes again": lambda: again(
        in_passes(groups=PEOPLE), Unread(X, Y, groups=PEOPLE, jobs=1)
    ),
    "margins of other tables": lambda: numbers(calibrate=0.2).fit_rows(Unread(X, Y, jobs=1)),
    "margins of groups": lambda: numbers(calibrate=0.4, epsilon=30.0).fit(X, Y, groups=PEOPLE),
    "margins of counts": lambda: counts(calibrate=0.2).fit(X, LABELS),
    "margins in candidates": lambda: DPGridSearchCV(
        numbers(calibrate=0.2, noise="gaussian"), {"kernel": [RBF(1.0)]}, selection_epsilon=1.0
    ).fit(X, Y),
    "public predictions of transformed outputs": lambda: counts(public_prediction=0).fit(
        np.column_stack([X, X]), LABELS
    ),
    "public models in passes": lambda: numbers(
        public_prediction=DummyRegressor().fit(X, Y)
    ).fit_rows(Unread(X, Y, jobs=1)),
    "public predictions in candidates": lambda: DPGridSearchCV(
        numbers(public_prediction=0, noise="gaussian"),
        {"kernel": [RBF(1.0)]},
        selection_epsilon=1.0,
    ).fit(np.column_stack([X, X]), Y),
    "kept rows again": lambda: again(held(calibrate=0.4, epsilon=30.0)),
    "exact prior in passes": lambda: added(held(inducing=None), Unread(X, Y, jobs=1)),
    "passes beside bands": lambda: added(held(stages=BANDS), Unread(X, Y, jobs=1)),
    "bands beside passes": lambda: again(
        added(numbers().fit(X, Y).release_, rows(), insecure_seed=1), Y, band=1.0
    ),
    "rows are not kept": lambda: again(in_passes(), Y),
    "rows are kept": lambda: again(held(), Unread(X, Y, jobs=1)),
    "other groups": lambda: again(held(), Y, groups=PEOPLE),
    "persons without groups": lambda: added(numbers().fit(X, Y, groups=PEOPLE).release_, X, Y),
}


@pytest.mark.parametrize("model", [quantiles, counts])
def test_cells_of_rows_in_passes_are_not_asked_again(model):
    release = model().fit_rows(rows(LABELS)).release_
    with pytest.raises(TypeError, match=re.escape(REFUSALS["cells in passes again"].why)):
        again(release, Unread(X, Y, jobs=1))
    with pytest.raises(TypeError, match=re.escape(REFUSALS["rows are not kept"].why)):
        again(release)


@pytest.mark.parametrize("name", REFUSALS)
def test_each_is_what_a_public_call_says(name):
    refusal = REFUSALS[name]
    with pytest.raises(refusal.error, match=re.escape(refusal.why)):
        CALLS[name]()


def test_every_refusal_by_name_is_in_the_table():
    """And nothing is in the table that no line of the library refuses."""
    said = set()
    for path in (Path(cloakgp.__file__).parent).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refuse":
                [name] = node.args
                said.add(ast.literal_eval(name))
    assert said == set(REFUSALS) == set(CALLS)
