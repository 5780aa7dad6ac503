"""Comparison of releases of public inputs, of whole rows, and of one of each."""

import numpy as np
import pandas as pd
import pytest

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressor, DPGPRegressorPrivateInputs
from cloakgp.columns import Category, Number, Schema
from cloakgp.report.comparison import compare_releases, describe_comparison
from cloakgp.report.facts import as_text

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

BUDGET = {"epsilon": 20.0, "delta": 1e-3, "insecure_seed": 1}
RANGE = ((0.0, 100.0),)
PRIVATE = Schema((Number("age", ranges=RANGE), Category("job", levels=("clerk", "cook"))))
PUBLIC = Schema((Number("age"), Category("job", levels=("clerk", "cook"))))


def people(seed, rows=300, *, shift=0.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.uniform(10, 90, rows), "job": rng.choice(["clerk", "cook"], rows)}
    )
    y = 40 + frame.age / 4 + 8 * (frame.job == "cook") + shift + rng.normal(size=rows)
    return frame, y.rename("pay")


def whole_rows(seed, *, neighbours="replace", shift=0.0):
    model = DPGPRegressorPrivateInputs(
        schema=PRIVATE, bounds=(0, 100), neighbours=neighbours, **BUDGET
    )
    return model.fit(*people(seed, shift=shift)).release_


def numbers(seed, *, ends=(0, 100), name="age"):
    frame, y = people(seed)
    model = DPGPRegressorPrivateInputs(input_bounds=[ends], bounds=(0, 100), **BUDGET)
    return model.fit(frame[["age"]].rename(columns={"age": name}), y).release_


def words(first, second, found):
    return as_text(describe_comparison(first, second, found), width=10_000)


def test_two_of_whole_rows_are_compared_all_over_their_ranges():
    first, second = whole_rows(0), whole_rows(1, neighbours="add-remove", shift=30.0)
    found = compare_releases(first, second)
    assert len(found.X) == 256
    np.testing.assert_allclose(found.first, first.predict(found.X))
    np.testing.assert_allclose(found.second, second.predict(found.X))
    assert np.mean(found.second - found.first) == pytest.approx(30.0, abs=5.0)
    assert np.mean(found.apart > 2) > 0.9
    told = words(first, second, found)
    assert "300 rows, whose inputs are private too" in told
    assert "a private number of rows, whose inputs are private too" in told
    assert compare_releases(first, first).apart.max() == 0.0


def test_whole_rows_are_compared_with_public_inputs_where_rows_are_known():
    frame, y = people(2)
    public = DPGPRegressor(bounds=(0, 100), **BUDGET).fit(frame[["age"]], y).release_
    private = numbers(3)
    found = compare_releases(public, private)
    assert len(found.X) == len(np.unique(frame.age))
    assert np.sqrt(np.mean((found.first - found.second) ** 2)) < 6.0
    assert "300 rows\n" in words(public, private, found)
    turned = compare_releases(private, public)
    np.testing.assert_array_equal(turned.first, found.second)
    np.testing.assert_array_equal(turned.apart, found.apart)


def test_releases_of_different_schemas_are_compared_at_raw_rows():
    frame, y = people(4)
    public = DPGPRegressor(bounds=(0, 100), schema=PUBLIC, **BUDGET).fit(frame, y).release_
    private = whole_rows(5)
    with pytest.raises(ValueError, match="different schemas: give raw rows"):
        compare_releases(public, private)
    rows = frame.head(9).assign(extra=1)
    found = compare_releases(public, private, rows)
    np.testing.assert_allclose(found.first, public.predict(rows))
    np.testing.assert_allclose(found.second, private.predict(rows))
    rows.loc[2, "age"] = None
    with pytest.warns(UserWarning, match="lacks age"):
        assert len(compare_releases(public, private, rows).X) == 8
    with pytest.raises(ValueError, match="every row lacks"):
        compare_releases(public, private, rows.loc[[2]])


def test_what_says_nothing_in_common_is_refused():
    frame, y = people(6)
    labels = np.where(y > y.median(), "much", "little")
    classes = DPGPClassifierPrivateInputs(
        classes=["little", "much"], input_bounds=[(0, 100)], **BUDGET
    ).fit(frame[["age"]], labels)
    one = numbers(7)
    for other, complaint in (
        (classes.release_, "one of these is of classes"),
        (numbers(8, name="years"), "different columns"),
        (whole_rows(9), "different columns"),
    ):
        with pytest.raises(ValueError, match=complaint):
            compare_releases(one, other)
    # Other ranges are no other columns.
    assert len(compare_releases(one, numbers(10, ends=(0, 120))).X) > 500
