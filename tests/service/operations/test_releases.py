"""Releases, plans and accounts, as analysts and auditors see them."""

from __future__ import annotations

import csv
import io
import json
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import services
from pydantic import ValidationError
from services import register, register_visits, work_as

from cloakgp.ledger.exports import is_receipt
from cloakgp.release.distribution_columns import DistributionColumns
from cloakgp.release.points import UnseenLevelWarning
from cloakgp.service import confined
from cloakgp.service.access import Role
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError, TooManyError
from cloakgp.service.messages import (
    Choices,
    NewAccount,
    NewLimit,
    NewRequest,
    NewTable,
    PlanRequest,
    PredictRequest,
    PrivacyBudget,
)
from cloakgp.service.models import Table
from cloakgp.service.operations import plans, releases
from cloakgp.service.operations.accounts import change_limit, list_accounts, open_account
from cloakgp.service.operations.audits import export_entries, list_entries, list_events
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tables import register_table
from cloakgp.service.orders import order_of

QUICK = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")


@pytest.fixture
def analyst(service, tokens):
    return work_as(service, tokens[Role.ANALYST])


@pytest.fixture
def release(analyst, table):
    """The number of a release that was made."""
    asked = make_request(analyst, NewRequest(table=table.id, choices=QUICK, purpose="a test"))
    assert asked.job.request == asked.id
    (made,) = releases.list_releases(analyst)
    assert made.request == asked.id
    return made.id


def test_predictions_are_those_of_the_release(analyst, release):
    made = releases.open_release(analyst, release)
    rows = [{"age": 3.0}, {"age": 12.5}]
    found = releases.predict_release(analyst, release, PredictRequest(rows=rows))
    expected = made.predict_frame([[3.0], [12.5]])
    assert found.columns == list(expected)
    assert found.rows == expected.to_numpy().tolist()
    new = PredictRequest(rows=rows, new_output=True)
    assert releases.predict_release(analyst, release, new).rows[0][1] > found.rows[0][1]


def test_distributions_of_new_outputs_stand_behind(analyst, release, tmp_path):
    made = releases.open_release(analyst, release)
    questions = {"interval": 0.9, "quantiles": [0.1, 0.5], "above": [100.0]}
    asked = PredictRequest(rows=[{"age": 3.0}, {"age": 12.5}], **questions)
    found = releases.predict_release(analyst, release, asked)
    expected = made.predict_frame([[3.0], [12.5]], **questions)
    assert found.columns == list(expected)
    assert found.columns[4:] == ["lo_90", "hi_90", "q_10", "q_50", "above_100"]
    assert found.rows == expected.to_numpy().tolist()
    (tmp_path / "new.csv").write_text("age\n3\n12.5\n")
    content = releases.predict_table(
        analyst,
        release,
        tmp_path / "new.csv",
        asked=DistributionColumns.asked(**questions),
    ).content
    table = pd.read_csv(io.BytesIO(content))
    assert list(table)[1:] == found.columns
    np.testing.assert_allclose(table["above_100"], expected["above_100"], atol=5.1e-5)


@pytest.mark.parametrize(
    "asked",
    [{"interval": 1.0}, {"quantiles": [0.5, 0.0]}, {"above": ["inf"]}, {"above": [0] * 101}],
)
def test_what_no_distribution_has_is_refused(asked):
    with pytest.raises(ValidationError):
        PredictRequest(rows=[{"age": 3.0}], **asked)


def made_with(analyst, table, **choices):
    """The number of a release of some choices, and the release itself."""
    chosen = QUICK.model_copy(update=choices)
    asked = make_request(analyst, NewRequest(table=table.id, choices=chosen, purpose="a test"))
    assert asked.release is not None or asked.job.failure == "", asked.job
    (made, *_) = releases.list_releases(analyst)
    return made.id, releases.open_release(analyst, made.id)


def test_rows_are_kept_out_for_margins_and_counted_once(
    analyst, service, tokens, tmp_path, monkeypatch
):
    """Nobody's output is both in the fit and in the one question about margins."""
    monkeypatch.setattr(services, "ROWS", 600)
    table = register(service, tokens[Role.CUSTODIAN], tmp_path)
    chosen = QUICK.model_copy(update={"epsilon": 0.45, "noise": "laplace", "calibrate": 0.4})
    plan = plans.make_plan(analyst, PlanRequest(table=table.id, choices=chosen))
    assert (plan.releases_left, plan.needs_approval) == (6, False)
    number, made = made_with(analyst, table, **chosen.model_dump())
    assert made.kept == len(made.measurements) - 1
    assert made.guarantee.epsilon == pytest.approx(0.45)
    assert list_accounts(analyst)[0].mine == pytest.approx(0.45 / 2, rel=1e-3)
    found = releases.predict_release(
        analyst, number, PredictRequest(rows=[{"age": 3.0}], interval=0.5)
    )
    low, high = made.predict_interval([[3.0]], 0.5)
    assert found.rows[0][-2:] == [low[0], high[0]]


def test_quantiles_are_planned_released_and_predicted(analyst, table):
    chosen = QUICK.model_copy(update={"quantiles": [0.1, 0.9], "stages": "auto"})
    plan = plans.make_plan(analyst, PlanRequest(table=table.id, choices=chosen))
    facts = {fact.label: fact.text for fact in plan.facts}
    assert "how near quantiles come" in facts["expected error"]
    number, made = made_with(analyst, table, quantiles=[0.1, 0.9], stages="auto")
    assert made.likelihood.quantiles == (0.1, 0.9)
    assert len(made.measurements) == 3
    rows = [{"age": 3.0}, {"age": 12.5}]
    found = releases.predict_release(analyst, number, PredictRequest(rows=rows))
    expected = made.predict_frame([[3.0], [12.5]])
    assert found.columns == list(expected)
    assert found.columns[:3] == ["q_10", "q_10_lower", "q_10_upper"]
    assert found.rows == expected.to_numpy().tolist()
    drawn = releases.plot_release(analyst, number, vary=["age"], only=None, suffix=".svg")
    assert drawn.startswith(b"<?xml")
    assert "Cloak" in releases.page_release(analyst, number)
    told = {
        fact.text for section in releases.report_release(analyst, number) for fact in section.facts
    }
    assert any("quantile" in text for text in told)
    with pytest.raises(InvalidError, match="exposure goes with releases of counts"):
        releases.predict_release(
            analyst, number, PredictRequest(rows=rows, above=[9.0], exposure="age")
        )


@pytest.fixture
def visits(service, tokens, tmp_path, table):
    """A table of counts in the account of the other one."""
    assert table.account == "children"
    return register_visits(service, tokens[Role.CUSTODIAN], tmp_path)


def test_counts_are_planned_released_and_predicted(analyst, visits, tmp_path):
    chosen = {"counts": True, "exposure": "years", "overdispersion": 0.1}
    plan = plans.make_plan(
        analyst, PlanRequest(table=visits.id, choices=QUICK.model_copy(update=chosen))
    )
    assert plan.plan["columns"] == ("age",)
    number, made = made_with(analyst, visits, **chosen)
    assert made.input_names == ("age",)
    assert made.likelihood.overdispersion == 0.1
    years = pd.read_csv(tmp_path / "visits.csv")["years"]
    np.testing.assert_array_equal(made.measurements[0].strategy.row_exposure, years)
    rows = [{"age": 30.0, "years": 2}, {"age": 70.0, "years": "0.5"}]
    questions = {"interval": 0.9, "above": [0.0]}
    asked = PredictRequest(rows=rows, exposure="years", **questions)
    found = releases.predict_release(analyst, number, asked)
    expected = made.predict_frame([[30.0], [70.0]], exposure=[2.0, 0.5], **questions)
    assert found.columns == list(expected)
    assert found.rows == expected.to_numpy().tolist()
    (tmp_path / "new.csv").write_text("age,years\n30,2\n70,0.5\n")
    content = releases.predict_table(
        analyst,
        number,
        tmp_path / "new.csv",
        asked=DistributionColumns.asked(**questions),
        exposure="years",
    ).content
    table = pd.read_csv(io.BytesIO(content))
    np.testing.assert_array_equal(table[["lo_90", "hi_90"]], expected[["lo_90", "hi_90"]])
    np.testing.assert_allclose(table["above_0"], expected["above_0"], atol=5.1e-5)
    assert "Cloak" in releases.page_release(analyst, number)
    for wrong, told in (
        ({"exposure": "hours", "above": [0.0]}, "no column hours"),
        ({"exposure": "years"}, "rates are those of one unit"),
        ({"exposure": "none", "above": [0.0]}, "positive and finite"),
    ):
        short = PredictRequest(rows=[{**row, "none": 0} for row in rows], **wrong)
        with pytest.raises(InvalidError, match=told):
            releases.predict_release(analyst, number, short)


def test_exposures_are_read_as_they_were_declared(analyst, visits):
    fields = [
        {"name": "age", "type": "number", "fill": 40.0},
        {"name": "years", "type": "number", "groupChar": ",", "fill": 1.0},
    ]
    with analyst.service.database.reading() as session:
        row = session.get(Table, visits.id)
        session.expunge(row)
    row.schema = json.dumps({"fields": fields})
    choices = QUICK.model_copy(update={"counts": True, "exposure": "years"})
    order = order_of(row, choices, settings=analyst.service.settings)
    assert order.source.raw_rows().exposure.thousands == ","
    assert order.source.raw_rows().schema.sources == ("age",)


def test_exposures_are_read_from_public_columns_alone(analyst, visits):
    for hidden in ("pay", "visits"):
        chosen = QUICK.model_copy(update={"counts": True, "exposure": hidden})
        with pytest.raises(InvalidError, match="exposure must be one of age, years"):
            plans.make_plan(analyst, PlanRequest(table=visits.id, choices=chosen))
        asked = NewRequest(table=visits.id, choices=chosen, purpose="a test")
        with pytest.raises(InvalidError, match="exposure must be one of age, years"):
            make_request(analyst, asked)
    assert releases.list_releases(analyst) == []


def test_rows_that_lack_an_input_are_refused(analyst, release):
    for row in ({"weight": 3.0}, {"age": "old"}, {"age": None}, {}, {"age": 1e400}):
        with pytest.raises(InvalidError):
            releases.predict_release(analyst, release, PredictRequest(rows=[row]))


@pytest.mark.filterwarnings("ignore::cloakgp.release.points.UnseenLevelWarning")
def test_levels_that_no_row_had_are_told(analyst, service, tokens, tmp_path):
    """The command line warns of them; a prediction of a place that nobody is from looks as any."""
    table = register(service, tokens[Role.CUSTODIAN], tmp_path)
    rows = "".join(f"{'north' if n % 2 else 'south'},{100 + n}\n" for n in range(40))
    (tmp_path / "tables" / "places.csv").write_text(f"place,height\n{rows}")
    placed = register_table(
        work_as(service, tokens[Role.CUSTODIAN]),
        NewTable(
            name="places",
            account=table.account,
            path="places.csv",
            output="height",
            bounds=(50, 250),
        ),
    )
    number, made = made_with(analyst, placed)
    asked = [{"place": "north"}, {"place": "west"}]
    told = releases.predict_release(analyst, number, PredictRequest(rows=asked))
    with pytest.warns(UnseenLevelWarning) as warned:
        made.predict_frame(pd.DataFrame(asked))
    assert told.remarks == [str(each.message) for each in warned]
    assert len(told.remarks) == 1
    assert "west" in told.remarks[0]
    known = releases.predict_release(analyst, number, PredictRequest(rows=asked[:1]))
    assert known.remarks == []
    (tmp_path / "new.csv").write_text("place,height\nnorth,1\nwest,2\n")
    table = releases.predict_table(analyst, number, tmp_path / "new.csv")
    left_out = "column height of the table has the private column's name: left out"
    assert list(table.remarks) == [left_out, *told.remarks]


def test_numbers_outside_of_what_was_asked_are_told_alike(analyst, release, tmp_path):
    told = "in 1 row. Nothing was asked there: the further away, the more"
    rows = PredictRequest(rows=[{"age": 3.0}, {"age": 500.0}])
    (remark,) = releases.predict_release(analyst, release, rows).remarks
    assert told in remark
    (tmp_path / "new.csv").write_text("age\n3\n500\n")
    assert releases.predict_table(analyst, release, tmp_path / "new.csv").remarks == (remark,)


def test_many_rows_are_predicted_within_limits(analyst, release, monkeypatch):
    """As those of a table are: a thread of the server has none."""
    asked = PredictRequest(rows=[{"age": 3.0}, {"age": 500.0}], interval=0.5)
    at_once = releases.predict_release(analyst, release, asked)
    confining = []

    def call(function, stopped, *args, **kwargs):
        confining.append(stopped)
        return function(*args, **kwargs)

    monkeypatch.setattr(analyst.service.predicting, "call", call)
    assert releases.predict_release(analyst, release, asked) == at_once
    assert confining == []
    # Two rows, and two columns of each.
    monkeypatch.setattr(releases, "AT_ONCE", 3)
    assert releases.predict_release(analyst, release, asked) == at_once
    assert confining == [analyst.stopped]
    with pytest.raises(InvalidError, match="age"):
        releases.predict_release(analyst, release, PredictRequest(rows=[{"weight": 3.0}] * 4))


def test_a_header_tells_no_more_than_proxies_let_by():
    remarks = [f"{number} Größe {'x' * 300}" for number in range(100)]
    (told,) = releases.PredictedTable(b"", tuple(remarks)).headers.values()
    assert told.isascii()
    assert len(told) <= releases.LONGEST_HEADER
    *first, last = json.loads(told)
    assert first == remarks[: len(first)]
    assert last.endswith(f": {100 - len(first)}")


def test_so_many_rows_at_once(service, analyst, release):
    most = service.settings.rows
    asked = PredictRequest(rows=[{"age": 3.0}] * (most + 1))
    with pytest.raises(InvalidError, match=f"at most {most}"):
        releases.predict_release(analyst, release, asked)


def test_a_table_that_is_sent_comes_back_with_predictions(analyst, release, tmp_path):
    (tmp_path / "new.csv").write_text("name,age\nanna,3\nbob,9\n")
    content = releases.predict_table(analyst, release, tmp_path / "new.csv").content
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    assert [line["name"] for line in lines] == ["anna", "bob"]
    assert all(float(line["lower"]) < float(line["mean"]) < float(line["upper"]) for line in lines)
    (tmp_path / "bad.csv").write_text("weight\n3\n")
    with pytest.raises(InvalidError, match="the table"):
        releases.predict_table(analyst, release, tmp_path / "bad.csv")


def test_pictures_and_words(analyst, release):
    drawn = releases.plot_release(analyst, release, vary=["age"], only=None, suffix=".svg")
    assert b"<svg" in drawn
    with pytest.raises(InvalidError):
        releases.plot_release(analyst, release, vary=["weight"], only=None, suffix=".png")
    titles = [section.title for section in releases.report_release(analyst, release)]
    assert titles[:2] == ["Predictions", "Protection"]
    assert "<html" in releases.page_release(analyst, release)


def test_a_receipt_is_signed(service, analyst, release):
    assert is_receipt(
        releases.receipt_release(analyst, release), public_key=service.ledger.public_key
    )


def test_there_is_no_other_release(analyst):
    for look in (releases.show_release, releases.download_release, releases.receipt_release):
        with pytest.raises(NotFoundError):
            look(analyst, 99)


def test_plans_say_what_is_left(analyst, table):
    found = plans.make_plan(analyst, PlanRequest(table=table.id, choices=QUICK, epsilons=[1.0]))
    assert [line[0] for line in found.budgets] == ["ε", "0.5", "1"]
    assert found.plan["rows"] == 24
    assert found.releases_left > found.mine_left >= 1
    assert not found.needs_approval
    before = analyst.ledger.account("children").standing.charges
    drawn = plans.plot_plan(
        analyst, PlanRequest(table=table.id, choices=QUICK), vary=[], suffix=".png"
    )
    assert drawn.startswith(b"\x89PNG")
    assert analyst.ledger.account("children").standing.charges == before
    with pytest.raises(InvalidError):
        plans.plot_plan(
            analyst, PlanRequest(table=table.id, choices=QUICK), vary=["none"], suffix=".png"
        )


def test_plans_wait_for_each_other_and_not_for_ever(service, analyst, table, monkeypatch):
    monkeypatch.setattr(confined, "PATIENCE", 0.05)
    asked = PlanRequest(table=table.id, choices=QUICK)
    with ExitStack() as stack:
        for _ in range(service.settings.plans):
            stack.enter_context(service.planning._slots)
        with pytest.raises(TooManyError):
            plans.make_plan(analyst, asked)
        gone = replace(analyst, stopped=lambda: True)
        with pytest.raises(confined.EndedError):
            plans.make_plan(gone, asked)
    assert plans.make_plan(analyst, asked).facts


@pytest.mark.usefixtures("release")
def test_accounts_say_what_was_spent(service, tokens, analyst):
    (account,) = list_accounts(analyst)
    assert account.used == pytest.approx(0.5 / 3, rel=1e-3)
    assert account.epsilon_if_fixed == pytest.approx(0.5, rel=1e-3)
    assert account.mine == pytest.approx(0.5 / 2, rel=1e-3)
    assert (account.held, account.charges, account.open) == (0, 1, [])
    assert 2 < account.left < 3
    custodian = work_as(service, tokens[Role.CUSTODIAN])
    (other,) = list_accounts(custodian)
    assert (other.mine, other.used) == (None, account.used)
    lower = NewLimit(limit=PrivacyBudget(epsilon=0.4, delta=1e-6), reason="caution")
    assert change_limit(custodian, "children", lower).account.left == 0
    with pytest.raises(ConflictError):
        open_account(custodian, NewAccount(name="children", limit=PrivacyBudget(epsilon=1)))
    with pytest.raises(NotFoundError):
        change_limit(custodian, "nobody", lower)


def test_an_account_that_the_ledger_has_is_taken_up(service, tokens):
    custodian = work_as(service, tokens[Role.CUSTODIAN])
    service.ledger.open_account("older", epsilon=2.0, delta=1e-6)
    with pytest.raises(ConflictError, match="another unit or limit"):
        open_account(
            custodian, NewAccount(name="older", limit=PrivacyBudget(epsilon=3, delta=1e-6))
        )
    made = open_account(
        custodian, NewAccount(name="older", limit=PrivacyBudget(epsilon=2, delta=1e-6))
    )
    assert made.left == 2


@pytest.mark.usefixtures("release")
def test_auditors_see_every_entry(service, tokens):
    auditor = work_as(service, tokens[Role.AUDITOR])
    entries = list_entries(auditor)
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.number for entry in list_entries(auditor, after=2, most=2)] == [3, 4]
    kinds = [entry.body["kind"] for entry in entries]
    assert kinds[:3] == ["ledger", "account", "attached"]
    assert kinds[-1] == "published"
    exported = json.loads(export_entries(auditor, form="json"))
    assert len(exported["entries"]) == len(entries)
    assert export_entries(auditor, form="csv").count("\n") == len(entries) + 1
    assert list_events(auditor)[0].what == "release requested"
    newest = list_events(auditor, most=1)[0].id
    assert all(event.id < newest for event in list_events(auditor, before=newest))
