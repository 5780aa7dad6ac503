"""Tables of disjoint people: parallel budgets, the custodian's word, people found in two."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from services import ONE_EPSILON, MonthlyOffice
from sqlalchemy import select

from cloakgp.ledger.accounts import open_content
from cloakgp.report.describe import describe
from cloakgp.service.errors import (
    InvalidError,
    NoRoomError,
    NotFoundError,
    ServiceError,
    TooManyError,
)
from cloakgp.service.messages import Choices, Combination, NewTable, PlanRequest
from cloakgp.service.models import Event, Job, Table
from cloakgp.service.operations.plans import make_plan
from cloakgp.service.operations.releases import combine_releases, show_release
from cloakgp.service.operations.tables import register_table, upload_table
from cloakgp.service.people import SHARED
from cloakgp.service.rates import Rates

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


def noted(office, what):
    with office.service.database.reading() as session:
        events = select(Event).where(Event.what == what).order_by(Event.id)
        return [
            (event.actor and event.actor.name, event.about) for event in session.scalars(events)
        ]


def test_whoever_asks_for_people_of_others_leaves_a_trace(office):
    """A refusal says that some of them are in a table of the account."""
    office.add("May", named=True)
    with pytest.raises(InvalidError, match="in another one"):
        office.add("guess", persons=["May 3", "nobody"], named=True)
    assert noted(office, "table refused") == [
        ("custodian", "guess: people of another table of visitors, as people of no other")
    ]


def test_so_many_guesses_a_day(service, tmp_path):
    """And then neither yes nor no, however the table is made up."""
    rates = Rates({"people in two tables": "2/day"})
    office = MonthlyOffice(replace(service, rates=rates), tmp_path)
    office.add("May", named=True)
    for number in range(2):
        with pytest.raises(InvalidError, match="in another one"):
            office.add(f"guess {number}", persons=[f"May {number}", "nobody"], named=True)
    for persons in (["May 3", "nobody"], ["somebody", "else"]):
        with pytest.raises(TooManyError, match="people of other tables"):
            office.add("one more", persons=persons, named=True)
    assert len(noted(office, "table refused")) == 2
    # What compares nobody goes on.
    office.add("June")
    office.add("July", persons=["May 3"], named=True, people="overlapping")


def test_guesses_at_the_same_moment_are_counted_one_by_one(service, tmp_path):
    rates = Rates({"people in two tables": "2/day"})
    office = MonthlyOffice(replace(service, rates=rates), tmp_path)
    office.add("May", named=True)
    texts = [f"person,age,minutes\nMay {k},30,20\nnobody,31,21\n" for k in range(5)]
    uploads = []
    for text in texts:
        (tmp_path / "sent.csv").write_text(text)
        uploads.append(upload_table(office.custodian, "t.csv", received=tmp_path / "sent.csv").id)

    def told(number):
        table = NewTable(
            name=f"guess {number}",
            account="visitors",
            upload=uploads[number],
            output="minutes",
            table_schema=office.schema,
            bounds=(0, 100),
            person="person",
            people="disjoint",
        )
        with pytest.raises(ServiceError) as refused:
            register_table(office.custodian, table)
        return refused.value.kind

    with ThreadPoolExecutor(5) as pool:
        kinds = list(pool.map(told, range(5)))
    assert (kinds.count("invalid"), kinds.count("too-many")) == (2, 3)


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
    about = "people of its table are in another one of visitors"
    assert noted(office, "release refused") == [(None, f"job {each}: {about}") for each in (1, 2)]


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


HALF_DECLARED = DECLARED.model_copy(update={"epsilon": 0.5})


def visited(office, table, after, **changed):
    """The release of a later visit, which knows another."""
    return office.ask(table, Choices(epsilon=0.5, noise="laplace", after=after, **changed)).release


def test_whoever_was_asked_by_two_releases_pays_for_both_however_they_began(office):
    """May was asked by the first release of it, and by what a visit of June began with."""
    may, june = office.add("May"), office.add("June")
    first, again = (office.ask(may, HALF_DECLARED).release for _ in range(2))
    visit = visited(office, june, first)
    for pair in ((again, visit), (visit, again)):
        for people in (None, "overlapping"):
            made = combined(office, *pair, people=people)
            # Twice .5 for those of May, once .5 for those of June.
            assert made.guarantee.pure_epsilon == pytest.approx(1.0)
            assert made.cohorts == ((0,), (1,))
            assert made.n_rows == 40
            assert len(made.measurements) == 3
        with pytest.raises(InvalidError, match="no custodian has said"):
            combined(office, *pair, people="disjoint")
    # The ledger counts the same.
    assert office.account.cohorts == pytest.approx({"May": 1.0, "June": 0.5})


def test_a_release_beside_what_it_was_the_beginning_of_adds_nothing(office):
    first = office.ask(office.add("May"), HALF_DECLARED).release
    visit = visited(office, office.add("June"), first)
    for pair in ((first, visit), (visit, first)):
        made = combined(office, *pair)
        assert made.guarantee.pure_epsilon == pytest.approx(0.5)
        assert len(made.measurements) == 2


def test_releases_that_know_several_tables_combine_in_parallel(office):
    """Where nobody is in two of all these tables."""
    first = visited(
        office, office.add("June"), office.ask(office.add("May"), HALF_DECLARED).release
    )
    other = visited(
        office, office.add("August"), office.ask(office.add("July"), HALF_DECLARED).release
    )
    made = combined(office, first, other)
    assert made.guarantee.pure_epsilon == pytest.approx(0.5)
    assert made.cohorts == ((0,), (1,), (2,), (3,))
    # Without this word, somebody may be in one table of each.
    made = combined(office, first, other, people="overlapping")
    assert made.guarantee.pure_epsilon == pytest.approx(1.0)


def test_the_budget_of_a_visit_is_shown_beside_what_it_began_with(office):
    first = office.ask(office.add("May"), HALF_DECLARED).release
    visit = visited(office, office.add("June"), first)
    shown = [show_release(office.analyst, release) for release in (first, visit)]
    assert [(each.epsilon, each.after) for each in shown] == [(0.5, None), (0.5, first)]


def test_releases_of_some_tables_in_common_are_refused(office):
    """Which of their rows are the same cannot be said of all of them at once."""
    may, june, july = (office.add(month) for month in MONTHS)
    first = visited(office, june, office.ask(may, HALF_DECLARED).release)
    other = visited(office, july, office.ask(may, HALF_DECLARED).release)
    with pytest.raises(InvalidError, match="in two of the releases, and others are not"):
        combined(office, first, other)


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
