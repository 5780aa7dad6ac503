"""Declarations: what they refuse, what they keep of a model, and how others are refused later."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.streams.declaration import Declaration, exact_text

DECLARED = Declaration(
    output="pay",
    inputs=("age",),
    time="day",
    person="",
    origin="0",
    length=10.0,
    horizon=3,
    lateness=0.0,
    people="disjoint",
    epsilon=1.0,
    delta=0.0,
    forgetting=None,
    lasting=0.5,
    model="",
    schema="",
    missing_output="refuse",
    ledger="4f",
    account="month {period}",
)


def test_an_account_for_each_period_is_for_disjoint_people():
    with pytest.raises(ValueError, match="would count a part of what is drawn"):
        replace(DECLARED, people="overlapping")
    replace(DECLARED, people="overlapping", account="months")
    with pytest.raises(ValueError, match="go together"):
        replace(DECLARED, ledger="")


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"ledger": "", "account": ""}, "'month {period}' of the ledger 4f: name these again"),
        ({"account": "others"}, "'month {period}' of the ledger 4f: name these again"),
        ({"ledger": "5a"}, "'month {period}' of the ledger 4f: name these again"),
        ({"missing_output": "0"}, "missing_output differ from before"),
        ({"schema": "{}"}, "schema differ from before"),
    ],
)
def test_what_is_counted_and_read_otherwise_is_refused(changed, advice):
    with pytest.raises(ValueError, match="differ from before") as caught:
        replace(DECLARED, **changed).check_kept(DECLARED)
    assert advice in str(caught.value)
    DECLARED.check_kept(DECLARED)


def test_what_was_begun_without_a_ledger_goes_on_without_one():
    with pytest.raises(ValueError, match="begun without a ledger: go on without one"):
        DECLARED.check_kept(replace(DECLARED, ledger="", account=""))


def test_it_comes_back_from_plain_data():
    assert Declaration.from_dict(DECLARED.to_dict()) == DECLARED


def of_classes(classes):
    return DPGPClassifier(classes=classes, epsilon=1.0)


def many_terms(last):
    return sum((RBF(0.1 + number) for number in range(30)), RBF(last))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RBF(0.12341), RBF(0.12342)),
        (RBF([1.0, 0.12341]), RBF([1.0, 0.12342])),
        (many_terms(1.0), many_terms(2.0)),
        (
            DPGPRegressor(many_terms(1.0), bounds=(0, 9), epsilon=1.0, noise="laplace"),
            DPGPRegressor(many_terms(1.0), bounds=(0, 9), epsilon=1.0, noise="gaussian"),
        ),
        (
            of_classes([f"c{number}" for number in range(40)]),
            of_classes([*(f"c{number}" for number in range(39)), "other"]),
        ),
        (of_classes([0, 1]), of_classes(["0", "1"])),
        (of_classes(np.arange(2000)), of_classes(np.arange(1, 2001))),
    ],
)
def test_texts_of_models_are_exact(one, other):
    assert exact_text(one) != exact_text(other)
    assert exact_text(one) == exact_text(one)


def released(seed):
    X = np.linspace(0, 1, 5)[:, None]
    asked = DPGPRegressor(bounds=(0, 9), epsilon=1.0, stages=None, insecure_seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return asked.fit(X, X[:, 0]).release_


def test_releases_are_told_by_what_they_hold(tmp_path):
    one, other = released(0), released(1)
    one.save(tmp_path / "one.cloak")
    again = type(one).load(tmp_path / "one.cloak")
    texts = [
        exact_text(DPGPRegressor(bounds=(0, 9), epsilon=1.0, public_prediction=each))
        for each in (one, again, other)
    ]
    assert texts[0] == texts[1] != texts[2]


def shape(x):
    return x


@pytest.mark.parametrize("given", [shape, RBF(1.0).diag, partial(shape, x=1.5), RBF])
def test_functions_are_told_by_their_names(given):
    """No place in memory, which is another one in the next process."""
    text = exact_text(given)
    assert "0x" not in text
    assert text != exact_text(released)


def test_values_of_partial_functions_are_told():
    assert exact_text(partial(shape, x=1.5)) != exact_text(partial(shape, x=2.5))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        ((0, 1), (0.0, 1.0), True),
        (np.float32(0.5), 0.5, True),
        (0.0, -0.0, True),
        (float("nan"), float("nan"), True),
        (10**400, 10**400, True),
        ({1: 2}, {1.0: 2.0}, True),
        (1, True, False),
        (0.0, False, False),
        (1, "1", False),
        (2**53 + 1, 2**53, False),
        (2**53 + 1, float(2**53), False),
        (10**400, 10**400 + 1, False),
    ],
)
def test_equal_numbers_have_one_text(one, other, same):
    assert (exact_text(one) == exact_text(other)) is same


def test_equal_models_have_one_text():
    texts = {
        exact_text(DPGPClassifier(classes=classes, epsilon=epsilon))
        for classes in ([0, 1], (0, 1), np.array([0, 1]), pd.Series([0, 1]))
        for epsilon in (1, 1.0)
    }
    assert texts == {"DPGPClassifier(classes=[0.0, 1.0], epsilon=1.0)"}
