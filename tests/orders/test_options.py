"""Orders: what is asked, without a command line."""

from __future__ import annotations

import pytest

from cloakgp.columns import Number, Schema
from cloakgp.fitting.request import FitRequest, Regression
from cloakgp.orders.estimators import make_release, plan_release
from cloakgp.orders.options import Order, SourceTable
from cloakgp.orders.progress import Reporter


@pytest.fixture
def order(tmp_path):
    """A table, and what is asked of it; beside it lies the schema of another."""
    path = tmp_path / "people.csv"
    path.write_text("age,height\n" + "\n".join(f"{a},{80 + 5 * a}" for a in range(2, 18)) + "\n")
    (tmp_path / "people.schema.json").write_text('{"fields": [{"name": "shoe", "type": "any"}]}')
    return Order(
        source=SourceTable(path=path, output="height", schema=Schema((Number("age"),))),
        request=FitRequest(
            task=Regression(bounds=(50, 250), stages=None, interval=False),
            epsilon=1.0,
            delta=1e-6,
            learn=None,
        ),
    )


def test_a_schema_that_is_given_counts(order):
    told = []
    made = make_release(order, reporter=Reporter(show=told.append))
    assert (made.input_names, made.output_name, made.n_rows) == (("age",), "height", 16)
    assert any("rows" in state.text for state in told)


def test_whoever_is_told_can_stop_it(order):
    """What the reporter raises ends the order, before anything is drawn."""

    def stop(_):
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        make_release(order, reporter=Reporter(show=stop))


def test_a_plan_forecasts_the_budgets_that_are_named(order):
    found = plan_release(order, epsilons=[2.0], reporter=Reporter(show=lambda _: None))
    assert [each.epsilon for each in found.forecasts] == [1.0, 2.0]
