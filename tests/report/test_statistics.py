"""Whole private rows in words: classes as such, and noise on each kind of sum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressorPrivateInputs
from cloakgp.columns import Category, Number, Schema
from cloakgp.report.describe import describe
from cloakgp.utils.formatting import amount

SCHEMA = Schema(
    (
        Number("age", ranges=((0.0, 100.0),), missing="impute"),
        Category("job", levels=("clerk", "cook"), missing="category"),
        Category("sex", levels=("f", "m"), other=False),
    )
)
BUDGET = {"epsilon": 8.0, "delta": 1e-3, "insecure_seed": 3}


def facts_of(release):
    return {fact.label: fact.text for section in describe(release) for fact in section.facts}


def fitted(model, outputs):
    rng = np.random.default_rng(0)
    table = {
        "age": rng.uniform(20, 80, 60),
        "job": rng.choice(["clerk", "cook"], 60),
        "sex": rng.choice(["f", "m"], 60),
    }
    with warnings.catch_warnings():
        # So few rows, so large a budget.
        warnings.simplefilter("ignore")
        return model.fit(table, outputs(table["age"])).release_


@pytest.fixture(scope="module")
def numbers():
    model = DPGPRegressorPrivateInputs(bounds=(0, 100), schema=SCHEMA, **BUDGET)
    return fitted(model, lambda ages: ages)


@pytest.fixture(scope="module")
def classes():
    model = DPGPClassifierPrivateInputs(classes=["no", "yes"], schema=SCHEMA, **BUDGET)
    return fitted(model, lambda ages: np.where(ages > 50, "yes", "no"))


def test_noise_is_told_of_squares_of_products_and_of_every_sum_of_a_round(numbers):
    facts, published = facts_of(numbers), numbers.statistics
    assert (
        f"of sd {amount(published.gram_sd, 4)} on squares, √2 times less on other products, and "
        f"{amount(published.moment_sd, 4)} on sums with the output."
    ) in facts["answers"]
    features = len(published.moments)
    assert numbers.residuals
    for number, part in enumerate(numbers.residuals, start=2):
        told = facts[f"round {number}"]
        assert told.startswith(f"{features} sums over what was left of the output")
        # Of the squares of residuals in half widths, whose weight in the vector is a half.
        sd = 2 * part.noise_sd * part.half_width**2
        assert f"and one of its squares, with noise of sd {amount(sd, 4)}." in told


def test_levels_of_others_and_of_missing_cells_are_told(numbers):
    facts = facts_of(numbers)
    told = "private; declared to be 2 categories"
    assert facts["job"] == f"{told} (clerk, cook), or another; missing: category"
    assert facts["sex"] == f"{told} (f, m)"
    assert facts["age"].endswith("in 0 to 100; missing: impute")


def test_classes_have_no_bounds(classes, numbers):
    assert facts_of(numbers)["not protected"].startswith("the bounds and the prior")
    assert "output, within 0 to 100" in numbers._repr_html_()
    assert facts_of(classes)["not protected"].startswith("which classes there are and the prior")
    assert "class, one of no, yes" in classes._repr_html_()
    assert "within" not in classes._repr_html_()
