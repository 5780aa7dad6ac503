"""Scales of inputs: which columns the first period leaves without one, and what is far outside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from stream_tables import model, month, months, stream

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import Category, Date, Number, Schema
from cloakgp.models.defaults import default_kernel
from cloakgp.streams.scales import find_constant, find_far
from cloakgp.streams.stream import StreamWarning

RNG = np.random.default_rng(0)


def encoded(schema, **columns):
    return schema.encode(pd.DataFrame(columns)).X


@pytest.mark.parametrize(
    ("column", "cells", "constant"),
    [
        (Number("a"), [1.0, 2.0, 3.0], False),
        (Number("a"), [0.1 + 0.2, 0.3, 0.3], True),
        (Number("a", missing="impute", fill=1.5), [1.0, 2.0, 3.0], False),
        (Number("a", missing="impute", fill=1.5), [1.0, 1.0, 1.0], True),
        (Category("a", levels=("x", "y", "z")), ["x", "y", "y"], False),
        (Category("a", levels=("x", "y", "z")), ["y", "y", "y"], True),
        (Date("a", cycles=("day",)), ["2026-01-01", "2026-02-01", "2026-03-01"], False),
    ],
)
def test_columns_that_do_not_vary(column, cells, constant):
    schema = Schema((Number("b"), column))
    X = encoded(schema, a=cells, b=[1.0, 2.0, 4.0])
    assert find_constant(schema, X) == ["a"] * constant


def test_of_many_inputs_of_one_unit_the_scale_is_that_of_all():
    """Oracle: by the kernel, what is constant among pixels is as near as anything else."""
    schema = Schema(tuple(Number(f"pixel {number}") for number in range(20)))
    X = RNG.uniform(size=(30, 20))
    X[:, 3] = 0.5
    assert find_constant(schema, X) == []
    kernel, moved = default_kernel(X, width=1.0), X[:1] + np.eye(20)[3]
    assert kernel(X[:1], moved)[0, 0] < 0.98 * kernel(X[:1], X[:1])[0, 0]
    few = Schema(schema.columns[:5])
    assert find_constant(few, X[:, :5]) == ["pixel 3"]
    kernel = default_kernel(X[:, :5], width=1.0)
    assert kernel(X[:1, :5], moved[:, :5])[0, 0] == pytest.approx(kernel.diag(X[:1, :5])[0])


def test_what_lies_far_outside():
    schema = Schema((Number("a"), Category("b", levels=("x", "y", "z"))))
    first = encoded(schema, a=[10.0, 20.0], b=["x", "y"])
    ranges = np.array([first.min(axis=0), first.max(axis=0)])
    for a, far in ((-0.1, True), (0.0, False), (15.0, False), (30.0, False), (30.1, True)):
        # A level that is new is no farther off than the others are.
        X = encoded(schema, a=[15.0, a], b=["z", "x"])
        assert find_far(schema, X, ranges) == ["a"] * far


def test_gaps_that_come_later_are_not_far_outside():
    schema = Schema((Number("a", missing="impute", fill=12.0), Number("b")))
    first = encoded(schema, a=[10.0, 20.0], b=[0.0, 1.0])
    ranges = np.array([first.min(axis=0), first.max(axis=0)])
    for b, far in ((0.5, []), (9.0, ["b"])):
        assert find_far(schema, encoded(schema, a=[None, 15.0], b=[b, 0.5]), ranges) == far
    assert find_far(schema, encoded(schema, a=[None, 99.0], b=[0.5, 0.5]), ranges) == ["a"]


def constant_first(count=2, **columns):
    return [
        table.assign(ward=0.0 if number == 0 else table["age"].round() % 2, **columns)
        for number, table in enumerate(months(count))
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None),
        DPGPClassifier(classes=[-3.0, 7.0], epsilon=1.0, stages=None),
    ],
    ids=["numbers", "classes"],
)
def test_a_constant_input_of_the_first_period_is_refused_before_a_draw(estimator, tmp_path):
    made = stream(constant_first(), tmp_path, estimator=estimator, inputs=["age", "ward"])
    with pytest.raises(ValueError, match="ward: constant in period 1") as caught:
        made.advance()
    assert "Nothing was drawn" in str(caught.value)
    assert made.spent == 0.0
    assert [each.stage for each in made.periods] == ["closed", "closed", "open"]


def test_what_it_advises_can_be_done_in_the_same_folder(tmp_path):
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    refused = stream(constant_first(), tmp_path, estimator=estimator, inputs=["age", "ward"])
    with pytest.raises(ValueError, match="ward: constant in period 1"):
        refused.advance()
    made = stream(constant_first(), tmp_path, estimator=estimator, inputs=["age"])
    assert len(made.advance()) == 2
    assert made.release.schema.sources == ("age",)
    for again in (
        refused.advance,
        lambda: stream(constant_first(), tmp_path, estimator=estimator, inputs=["age", "ward"]),
    ):
        with pytest.raises(ValueError, match="inputs differ from before"):
            again()


def test_a_plan_warns_of_it(tmp_path):
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    made = stream(constant_first(), tmp_path, estimator=estimator, inputs=["age", "ward"])
    with pytest.warns(StreamWarning, match="ward: constant in period 1"):
        made.plan()


def test_the_time_and_declared_kernels_have_scales_of_their_own(tmp_path):
    made = stream(constant_first(), tmp_path / "kernel", inputs=["age", "ward"])
    assert made.model.kernel is not None
    assert len(made.advance()) == 2
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    at_once = [month(0).assign(day=3.0), month(1)]
    drifting = stream(at_once, tmp_path / "time", estimator=estimator, forgetting=60.0, horizon=1)
    assert [each.stage for each in drifting.advance()] == ["released"]


def test_later_inputs_far_outside_are_told(tmp_path):
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    tables = months(2)
    tables[1] = tables[1].assign(age=tables[1]["age"] * 1000)
    made = stream(tables, tmp_path / "s", estimator=estimator, horizon=2)
    with pytest.warns(StreamWarning, match="period 2 has values of age far outside"):
        made.advance()
    declared = stream(tables, tmp_path / "kernel", estimator=model(), horizon=2)
    declared.advance()


def test_the_first_that_was_asked_is_meant_where_earlier_ones_are_empty(tmp_path):
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    tables = [month(1), month(2).assign(age=month(2)["age"] * 1000), month(3)]
    made = stream(tables, tmp_path, estimator=estimator)
    with pytest.warns(StreamWarning, match="outside of those of the first that was asked"):
        made.advance()
    assert [each.stage for each in made.periods] == ["empty", "released", "released"]


def test_levels_that_come_later_are_told(tmp_path):
    tables = [table.assign(job=["cook", "clerk"] * 3) for table in months(2)]
    tables[1] = tables[1].assign(job=["cook", "smith"] * 3)
    estimator = DPGPRegressor(bounds=(-3.0, 7.0), epsilon=1.0, stages=None)
    made = stream(tables, tmp_path, estimator=estimator, inputs=["age", "job"], horizon=2)
    words = r"period 2: column .job. has levels that were not declared in 3 rows"
    with pytest.warns(StreamWarning, match=words) as told:
        made.advance()
    assert len([one for one in told if one.category is StreamWarning]) == 1
