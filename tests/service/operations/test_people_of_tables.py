"""Tables of disjoint people: parallel budgets, the custodian's word, people found in two."""

from __future__ import annotations

from pathlib import Path

import pytest
from services import ONE_EPSILON, MonthlyOffice
from sqlalchemy import select

from cloakgp.ledger.accounts import open_content
from cloakgp.report.describe import describe
from cloakgp.service.errors import InvalidError, NoRoomError, NotFoundError
from cloakgp.service.messages import (
    Combination,
    PlanRequest,
)
from cloakgp.service.models import Job, Table
from cloakgp.service.operations.plans import make_plan
from cloakgp.service.operations.releases import combine_releases
from cloakgp.service.people import SHARED

HALF = ONE_EPSILON.model_copy(update={"epsilon": 0.5})
MONTHS = ("May", "June", "July")


@pytest.fixture
def office(service, tmp_path):
    return MonthlyOffice(service, tmp_path)


def test_months_of_other_people_cost_each_one_month(office):
    """Three releases of the whole limit, and of the whole share; not one more."""
    tables = [office.add(month) for month in MONTHS]
    for table in tables:
        assert office.ask(table).release is not None
    assert office.account.cohorts == pytest.approx(dict.fromkeys(MONTHS, 1.0))
    assert office.account.used == pytest.approx(1.0)
    assert office.account.held == pytest.approx(0.0)
    for table in (tables[0], office.add("August", people="overlapping")):
        with pytest.raises(NoRoomError, match="no room"):
            office.ask(table, HALF)
    assert office.ask(office.add("September")).release is not None
    assert office.service.ledger.verify().findings == ()


def test_tables_of_anybody_add_up(office):
    """As without a word about their people."""
    office.ask(office.add("May", people="overlapping"))
    with pytest.raises(NoRoomError):
        office.ask(office.add("June", people="overlapping"), HALF)
    # It counts for everybody, those of disjoint tables among them.
    with pytest.raises(NoRoomError):
        office.ask(office.add("July"), HALF)


def test_room_is_held_by_cohorts(office):
    """Requests under way hold room of their own people's."""
    office.service.dispatcher.at_once = False
    may, june = office.add("May"), office.add("June")
    office.ask(may)
    plan = PlanRequest(table=june.id, choices=ONE_EPSILON)
    assert make_plan(office.analyst, plan).releases_left == 1
    assert (
        make_plan(office.analyst, PlanRequest(table=may.id, choices=ONE_EPSILON)).releases_left == 0
    )
    office.ask(june)
    assert make_plan(office.analyst, plan).releases_left == 0
    assert office.account.held == pytest.approx(1.0)
    office.service.dispatcher.work()
    assert office.account.used == pytest.approx(1.0)


def test_the_ledger_has_the_custodians_word(office):
    office.add("May")
    ledger = office.service.ledger
    (entry,) = [each for each in ledger.entries() if each.content["kind"] == "attached"]
    assert entry.content["cohort"] == "May"
    assert ledger.names()[entry.content["who"]] == "custodian"
    office.ask(office.add("June"))
    (entry,) = [each for each in ledger.entries() if each.content["kind"] == "reserved"]
    assert entry.content["cohort"] == "June"


def test_people_who_are_in_two_tables_are_refused(office):
    office.add("May", named=True)
    shared = ["May 3", *(f"June {number}" for number in range(19))]
    with pytest.raises(InvalidError, match="people of this table are in another one") as caught:
        office.add("June", persons=shared, named=True)
    # Neither who nor how many: the tables may be of different custodians.
    assert "May" not in str(caught.value)
    assert "1" not in str(caught.value)
    with office.service.database.reading() as session:
        assert [table.name for table in session.scalars(select(Table))] == ["May"]
    kinds = [entry.content["kind"] for entry in office.service.ledger.entries()]
    assert kinds.count("attached") == 1
    # The word is not asked for, and what is asked of it counts for everybody.
    office.add("June", persons=shared, named=True, people="overlapping")
    office.add("July", named=True)


def test_ids_are_compared_as_everywhere(office):
    office.add("May", persons=[f" {number}" for number in range(20)], named=True)
    with pytest.raises(InvalidError, match="in another one"):
        office.add("June", persons=[str(number) for number in range(19, 39)], named=True)


def test_people_who_came_into_a_table_later_are_found_before_anything_is_drawn(office):
    """A file that was changed after both were registered."""
    office.add("May", named=True)
    june = office.add("June", named=True)
    with office.service.database.reading() as session:
        path = Path(session.get(Table, june.id).path)
    path.write_text(path.read_text().replace("June 4,", "May 4,"))
    asked = office.ask(june)
    assert (asked.job.state, asked.job.failure) == ("failed", SHARED)
    assert office.account.charges == 0
    # So is the other one: the people of both are not what was said.
    with office.service.database.reading() as session:
        may = session.scalar(select(Table).where(Table.name == "May"))
    assert office.ask(may).job.failure == SHARED
    assert office.account.used == 0.0
    with office.service.database.reading() as session:
        assert {job.failure for job in session.scalars(select(Job))} == {"people"}


def test_persons_are_protected_with_all_their_rows(service, tmp_path):
    office = MonthlyOffice(service, tmp_path, unit="person")
    twice = [f"p{number // 2}" for number in range(20)]
    assert office.ask(office.add("May", persons=twice)).release is not None
    others = [f"q{number // 2}" for number in range(20)]
    assert office.ask(office.add("June", persons=others)).release is not None
    assert office.account.cohorts == pytest.approx({"May": 1.0, "June": 1.0})
    with pytest.raises(InvalidError, match="in another one"):
        office.add("July", persons=[*others[:2], *(f"r{number}" for number in range(18))])


# Releases of several tables, in one.

DECLARED = ONE_EPSILON.model_copy(
    update={
        "lengthscale": [20.0],
        "signal_variance": 100.0,
        "noise_variance": 100.0,
        "mean": 50.0,
        "inputs": ["age"],
    }
)


def combined(office, *releases, **chosen):
    chosen = Combination(releases=list(releases), **chosen)
    return open_content(combine_releases(office.analyst, chosen))


def test_releases_of_disjoint_tables_combine_in_parallel(office):
    """By the custodians' word, which the release names as its assumption."""
    releases = [office.ask(office.add(month), DECLARED).release for month in MONTHS]
    made = combined(office, *releases)
    assert made.guarantee.pure_epsilon == pytest.approx(1.0)
    assert made.cohorts == ((0,), (1,), (2,))
    assert made.n_rows == 60
    told = " ".join(fact.text for section in describe(made) for fact in section.facts)
    assert "the word of whoever asked" in told
    assert combined(office, *releases, people="overlapping").guarantee.pure_epsilon == (
        pytest.approx(3.0)
    )


def test_nobody_but_a_custodian_says_that_people_are_disjoint(office):
    quarter = DECLARED.model_copy(update={"epsilon": 0.25})
    may, june = office.add("May"), office.add("June", people="overlapping")
    releases = [office.ask(table, quarter).release for table in (may, june, may)]
    for pair in ((releases[0], releases[1]), (releases[0], releases[2])):
        assert combined(office, *pair).guarantee.pure_epsilon == pytest.approx(0.5)
        with pytest.raises(InvalidError, match="no custodian has said"):
            combined(office, *pair, people="disjoint")


def test_releases_that_do_not_go_together_are_refused(office):
    one = office.ask(office.add("May"), DECLARED).release
    other = office.ask(
        office.add("June"), DECLARED.model_copy(update={"lengthscale": [5.0]})
    ).release
    with pytest.raises(InvalidError, match="prior"):
        combined(office, one, other)
    with pytest.raises(InvalidError, match="two different releases"):
        combined(office, one, one)
    with pytest.raises(NotFoundError):
        combined(office, one, 99)
