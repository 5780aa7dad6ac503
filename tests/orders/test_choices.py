"""Choices of an order as text: the same for the same, another for another, and no table is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.fitting.request import FitRequest, Regression
from cloakgp.orders.choices import state_choices
from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.origin import Origin


@pytest.fixture
def order(tmp_path, monkeypatch):
    """An order of a table that is not there."""
    monkeypatch.chdir(tmp_path)
    return Order(
        source=SourceTable(path=tmp_path / "people.csv", output="height", inputs=["age"]),
        request=FitRequest(task=Regression(bounds=(0, 1)), epsilon=1),
    )


def test_one_order_has_one_text_however_it_is_written(order, tmp_path):
    source = replace(order.source, path=tmp_path / "." / "people.csv", inputs=("age",))
    request = FitRequest(task=Regression(bounds=(0.0, 1.0)), epsilon=1.0, noise="auto")
    same = replace(order, source=source, request=request, origin=Origin(by="somebody"))
    assert state_choices(order=order) == state_choices(order=same)


@pytest.mark.parametrize(
    "change",
    [
        {"path": "june/people.csv"},
        {"output": "weight"},
        {"inputs": ["age", "sex"]},
        {"missing_output": "0"},
        {"person": "id"},
        {"query": "SELECT 1"},
    ],
)
def test_another_table_has_another_text(order, tmp_path, change):
    if "path" in change:
        change = {"path": tmp_path / change["path"]}
    other = replace(order, source=replace(order.source, **change))
    assert state_choices(order=order) != state_choices(order=other)


def test_a_schema_beside_the_table_and_query_points_count_by_their_content(order, tmp_path):
    before = state_choices(order=order)
    schema = {"fields": [{"name": "age", "type": "number"}]}
    (tmp_path / "people.schema.json").write_text(json.dumps(schema))
    declared = state_choices(order=order)
    assert declared != before
    points = tmp_path / "points.csv"
    points.write_text("age\n30\n")
    asked = replace(order, queries=points)
    one = state_choices(order=asked)
    points.write_text("age\n40\n")
    assert len({declared, one, state_choices(order=asked)}) == 3


def test_what_has_its_default_is_not_stated(order):
    """So that a key still returns its release when there are further options."""
    stated = json.loads(state_choices(order=order))["order"]
    assert set(stated) == {"kind", "source", "request"}
    assert set(stated["request"]) == {"kind", "task", "epsilon"}
    assert stated["request"]["task"] == {"kind": "Regression", "bounds": [0.0, 1.0]}


def test_what_has_no_text_is_refused():
    with pytest.raises(TypeError, match="a RBF has no text"):
        state_choices(kernel=RBF(1.0))
