"""Later visits: months that follow one another, each counted about its own people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from services import ONE_EPSILON, MonthlyOffice
from starlette.datastructures import QueryParams

from cloakgp.privacy.accounting import compose
from cloakgp.privacy.noise_choice import however_priced
from cloakgp.service.errors import InvalidError, NoRoomError, NotFoundError
from cloakgp.service.messages import Choices, NewRequest, NewTable, PlanRequest
from cloakgp.service.models import Table
from cloakgp.service.operations.plans import make_plan, plot_plan
from cloakgp.service.operations.releases import list_releases, open_release, tables_to_ask
from cloakgp.service.operations.requests import make_request, show_request
from cloakgp.service.operations.tables import register_table, upload_table
from cloakgp.service.pages.fields import choices_of, fields_of
from cloakgp.service.visits import asked_of


def later(after, epsilon=1.0, **changed):
    return Choices(epsilon=epsilon, noise="laplace", after=after, **changed)


@pytest.fixture
def office(service, tmp_path):
    return MonthlyOffice(service, tmp_path)


def test_a_month_follows_another_and_each_person_pays_once(office):
    """The whole limit thrice, about people of three disjoint tables."""
    may, june, july = (office.add(month) for month in ("May", "June", "July"))
    first = office.ask(may).release
    second = office.ask(june, later(first)).release
    third = office.ask(july, later(second)).release
    made = open_release(office.analyst, third)
    assert [one.strategy.table for one in made.measurements] == [0, 1, 2]
    assert made.cohorts == ((0,), (1,), (2,))
    assert made.guarantee.epsilon == pytest.approx(1.0)
    assert made.n_rows == 60
    assert office.account.cohorts == pytest.approx({"May": 1.0, "June": 1.0, "July": 1.0})
    # What was spent before is spent: nobody is asked again.
    with pytest.raises(NoRoomError):
        office.ask(may, later(third, 0.5))
    assert office.service.ledger.verify().findings == ()


def test_the_same_rows_are_asked_again_and_pay_for_both(office):
    may = office.add("May")
    first = office.ask(may, ONE_EPSILON.model_copy(update={"epsilon": 0.5})).release
    again = office.ask(may, later(first, 0.5)).release
    before, after = (open_release(office.analyst, each) for each in (first, again))
    assert after.n_rows == before.n_rows == 20
    assert len(after.measurements) == len(before.measurements) + 1
    assert after.guarantee.epsilon == pytest.approx(1.0)
    assert office.account.cohorts == pytest.approx({"May": 1.0})
    np.testing.assert_array_less(
        after.predict_latent(np.array([[50.0]])).sd, before.predict_latent(np.array([[50.0]])).sd
    )


def test_without_the_custodians_word_anybody_may_be_in_both(office):
    half = ONE_EPSILON.model_copy(update={"epsilon": 0.5})
    first = office.ask(office.add("May"), half).release
    june = office.add("June", people="overlapping")
    second = office.ask(june, later(first, 0.5)).release
    made = open_release(office.analyst, second)
    assert made.cohorts == ()
    assert made.guarantee.epsilon == pytest.approx(1.0)
    assert office.account.used == pytest.approx(1.0)


def test_a_plan_states_what_both_cost_and_reads_no_private_cell(office):
    """It is the composition that the release then states."""
    may, june = office.add("May"), office.add("June", people="overlapping")
    half = ONE_EPSILON.model_copy(update={"epsilon": 0.5})
    first = office.ask(may, half).release
    with office.service.database.reading() as session:
        path = Path(session.get(Table, june.id).path)
    sent = path.read_text()
    head, *lines = sent.splitlines()
    # Cells that no noise could be added to.
    path.write_text("\n".join([head, *(f"{line.rpartition(',')[0]},x" for line in lines), ""]))
    request = PlanRequest(table=june.id, choices=later(first, 0.5))
    plan = make_plan(office.analyst, request)
    path.write_text(sent)
    made = open_release(office.analyst, office.ask(june, later(first, 0.5)).release)
    known = open_release(office.analyst, first)
    own = compose(*(one.guarantee for one in made.measurements[len(known.measurements) :]))
    assert compose(known.guarantee, own).epsilon == pytest.approx(made.guarantee.epsilon)
    assert plan.plan["visit"] == "extend"
    held = however_priced(made.guarantee, visits=2)
    assert plan.plan["guess"] == pytest.approx((1 + held.delta_at(0.0)) / 2, abs=1e-9)
    assert plan.plan["error_after"] < plan.plan["error_before"]
    facts = {each.label: each.text for each in plan.facts}
    assert "at most ε = 1, with no δ, for a person who is in all tables" in facts["protected"]
    assert plan.releases_left == 1
    with pytest.raises(InvalidError, match="no picture"):
        plot_plan(office.analyst, request, vary=[], suffix=".png")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"inputs": ["age"]}, "takes these from the release: inputs"),
        ({"stages": "one", "learn": "none"}, "from the release: learn, stages"),
        ({"exposure": "age"}, "leave out exposure"),
        ({"noise": "cauchy"}, "noise"),
    ],
)
def test_what_the_release_says_is_no_choice(office, changed, told):
    may = office.add("May")
    first = office.ask(may, ONE_EPSILON.model_copy(update={"epsilon": 0.5})).release
    asked = NewRequest(
        table=may.id, choices=Choices(epsilon=0.1, after=first, **changed), purpose="a test"
    )
    with pytest.raises(InvalidError, match=told):
        make_request(office.analyst, asked)
    assert office.account.charges == 1


def test_tables_that_do_not_go_with_a_release_are_refused_before_anything_is_asked(office):
    may = office.add("May")
    first = office.ask(may, ONE_EPSILON.model_copy(update={"epsilon": 0.5})).release
    path = office.write("July", [str(number) for number in range(20)])
    sent = upload_table(office.custodian, path.name, received=path)
    table = NewTable(name="ages", account="visitors", upload=sent.id, output="age", bounds=(0, 100))
    ages = register_table(office.custodian, table)
    with pytest.raises(InvalidError, match="another private column"):
        office.ask(ages, later(first, 0.1))
    with pytest.raises(NotFoundError, match="release"):
        office.ask(may, later(99, 0.1))
    assert office.account.charges == 1


def test_a_later_table_is_not_asked_again_through_the_release(office):
    half = ONE_EPSILON.model_copy(update={"epsilon": 0.3})
    may, june = office.add("May"), office.add("June")
    first = office.ask(may, half).release
    second = office.ask(june, later(first, 0.3)).release
    with pytest.raises(InvalidError, match="the first alone is asked again"):
        office.ask(june, later(second, 0.3))
    offered = tables_to_ask(office.analyst, second)
    assert [(table.name, again) for table, again in offered] == [("May", True)]
    assert [(table.name, again) for table, again in tables_to_ask(office.analyst, first)] == [
        ("May", True),
        ("June", False),
    ]


def test_a_visit_whose_process_died_spends_once(office):
    """Its key is that of its request, as of every other."""
    first = office.ask(office.add("May")).release
    asked = office.ask(office.add("June"), later(first))
    assert len(list_releases(office.analyst)) == 2
    office.service.dispatcher.submit(asked.job.id)
    assert show_request(office.analyst, asked.id).release == asked.release
    assert office.account.charges == 2


@pytest.mark.parametrize(
    ("given", "band"),
    [({}, "auto"), ({"band": "auto"}, "auto"), ({"band": 0}, None), ({"band": 2}, 2)],
)
def test_a_band_is_chosen_by_what_was_counted_unless_one_is_given(office, given, band):
    may = office.add("May")
    first = office.ask(may, ONE_EPSILON.model_copy(update={"epsilon": 0.5})).release
    with office.service.database.reading() as session:
        table = session.get(Table, may.id)
        order = asked_of(office.service, session, table, later(first, 0.5, **given))
    assert order.band == band
    sent = choices_of(QueryParams(fields_of(later(first, 0.5, **given))))
    assert sent == later(first, 0.5, **given)
