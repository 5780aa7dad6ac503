"""Requests: four eyes, shares, and one total that many analysts together cannot pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from services import add_people, on_postgresql_slowly, opened, register, unconfined, work_as

from cloakgp.data.limits import TooSlowError
from cloakgp.privacy.filters import Amount, costs_of_release, has_room
from cloakgp.service import budgets
from cloakgp.service.access import Role
from cloakgp.service.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NoRoomError,
    NotFoundError,
)
from cloakgp.service.messages import (
    Choices,
    Decision,
    NewPerson,
    NewRequest,
    NewRules,
    NewTable,
    PlanRequest,
    PrivacyBudget,
)
from cloakgp.service.operations.accounts import change_rules, list_accounts, set_share
from cloakgp.service.operations.jobs import cancel_job, list_jobs, show_job
from cloakgp.service.operations.people import create_person
from cloakgp.service.operations.plans import make_plan
from cloakgp.service.operations.proposals import confirm_proposal
from cloakgp.service.operations.requests import (
    approve_request,
    list_requests,
    make_request,
    reject_request,
    show_request,
    withdraw_request,
)
from cloakgp.service.operations.tables import register_table, withdraw_table
from cloakgp.service.operations.tokens import create_token


def write_classes(path):
    """A table of classes by age."""
    path.write_text("age,ill\n" + "".join(f"{n},{'yes' if n > 9 else 'no'}\n" for n in range(20)))
    return path


class Office:
    """A service with a table, and people who come and go; jobs wait."""

    def __init__(self, service, tmp_path):
        self.service = service
        self.tokens = add_people(service)
        self.table = register(service, self.tokens[Role.CUSTODIAN], tmp_path)
        service.dispatcher.at_once = False

    def work(self, role):
        return work_as(self.service, self.tokens[role])

    def newcomer(self, name, *roles):
        with self.service.database.writing() as session:
            person = create_person(session, NewPerson(name=name, roles=list(roles)))
            token = create_token(session, person, days=1).token
        return work_as(self.service, token)

    def ask(self, work, epsilon, *, key=None, delta=1e-6, **choices):
        chosen = Choices(epsilon=epsilon, delta=delta, **choices)
        asked = NewRequest(table=self.table.id, choices=chosen, purpose="a test")
        return make_request(work, asked, idempotency=key)


@pytest.fixture
def office(any_url, tmp_path):
    service = opened(any_url, tmp_path)
    with unconfined():
        yield Office(service, tmp_path)
    service.close()


def test_small_requests_begin_and_large_ones_wait(office):
    analyst = office.work(Role.ANALYST)
    small, large = office.ask(analyst, 0.2), office.ask(analyst, 1.2)
    assert (small.state, small.needs_approval, small.job.state) == ("approved", False, "queued")
    assert (large.state, large.needs_approval, large.job) == ("waiting", True, None)
    assert [one.id for one in list_requests(analyst)] == [large.id, small.id]


@on_postgresql_slowly
def test_what_is_split_waits_too(office):
    """The threshold is about the sum of what nobody has looked at."""
    analyst = office.work(Role.ANALYST)
    states = [office.ask(analyst, 0.4).state for _ in range(4)]
    assert "waiting" in states
    first = states.index("waiting")
    assert set(states[:first]) == {"approved"}
    each = costs_of_release(0.4, 1e-6)
    assert has_room(Amount(), [each] * first, limit=(1, 1e-6))
    assert not has_room(Amount(), [each] * (first + 1), limit=(1, 1e-6))


@on_postgresql_slowly
def test_no_threshold_or_share_is_passed_by_the_noise_that_is_drawn(office):
    """With δ = 1e-15 far less would be held for Gaussian noise than is drawn as Laplace noise."""
    analyst = office.work(Role.ANALYST)
    for noise in ("auto", "laplace"):
        with pytest.raises(NoRoomError, match="your share"):
            office.ask(analyst, 2.9, delta=1e-15, noise=noise)
        asked = office.ask(analyst, 1.5, delta=1e-15, noise=noise)
        assert (asked.state, asked.needs_approval) == ("waiting", True)
        withdraw_request(analyst, asked.id)


@on_postgresql_slowly
def test_a_delta_is_no_reason_to_refuse_a_release_that_needs_none(office):
    """Of a share without δ; what is held is what may be drawn, and nothing else may."""
    analyst = office.work(Role.ANALYST)
    set_share(office.work(Role.CUSTODIAN), "children", "analyst", PrivacyBudget(epsilon=2))
    planned = PlanRequest(table=office.table.id, choices=Choices(epsilon=1.0, delta=1e-6))
    plan = make_plan(analyst, planned)
    assert (plan.choices.delta, plan.mine_left, plan.plan["noise"]) == (0.0, 2, "laplace")
    asked = office.ask(analyst, 1.0, key="once")
    assert asked.choices.delta == 0.0
    assert budgets.costs_of(asked.choices) == costs_of_release(1.0, 0.0)
    assert office.ask(analyst, 1.0, key="once").id == asked.id
    with pytest.raises(ConflictError):
        office.ask(analyst, 1.0, key="once", delta=1e-6, noise="gaussian")
    with pytest.raises(NoRoomError, match="your share"):
        office.ask(analyst, 1.0, noise="gaussian")
    with pytest.raises(NoRoomError, match="your share"):
        office.ask(analyst, 1.5)
    assert office.ask(analyst, 1.0).choices.delta == 0.0


@on_postgresql_slowly
def test_where_there_is_room_for_every_noise_a_delta_stays(office):
    assert office.ask(office.work(Role.ANALYST), 1.0).choices.delta == 1e-6


def test_nobody_decides_about_their_own(office):
    both = office.newcomer("both", Role.ANALYST, Role.APPROVER)
    asked = office.ask(both, 1.2)
    for decide in (approve_request, reject_request):
        with pytest.raises(ForbiddenError, match="another person has to decide"):
            decide(both, asked.id, Decision())
    approved = approve_request(office.work(Role.APPROVER), asked.id, Decision(remark="fine"))
    assert (approved.state, approved.decided_by, approved.remark) == (
        "approved",
        "approver",
        "fine",
    )
    with pytest.raises(ConflictError):
        approve_request(office.work(Role.APPROVER), asked.id, Decision())
    assert len(list_jobs(both)) == 1


@on_postgresql_slowly
def test_a_share_is_all_that_one_may_spend(office):
    analyst = office.work(Role.ANALYST)
    office.ask(analyst, 1.9)
    with pytest.raises(NoRoomError, match="your share"):
        office.ask(analyst, 1.0)
    # Others have their own.
    assert office.ask(office.newcomer("anna", Role.ANALYST), 1.0).id == 2


def test_many_analysts_share_one_total(office):
    """Whoever has ten accounts of people gets no more out of the data than the limit allows."""
    granted, told = [], ""
    while not told:
        together = office.newcomer(f"analyst {len(granted)}", Role.ANALYST)
        try:
            asked = office.ask(together, 1.2)
            granted.append(approve_request(office.work(Role.APPROVER), asked.id, Decision()))
        except NoRoomError as error:
            told = str(error)
    assert "the account's limit" in told
    each = costs_of_release(1.2, 1e-6)
    assert has_room(Amount(), [each] * len(granted), limit=(3, 1e-6))
    assert not has_room(Amount(), [each] * (len(granted) + 1), limit=(3, 1e-6))


def test_who_waits_for_approval_blocks_nobody_and_is_approved_within_the_limit(office):
    approver = office.work(Role.APPROVER)
    waiting = [
        office.ask(office.newcomer(f"analyst {number}", Role.ANALYST), 1.9) for number in range(3)
    ]
    (account,) = list_accounts(approver)
    assert (account.held, account.left) == (0, 3)
    approve_request(approver, waiting[0].id, Decision())
    with pytest.raises(NoRoomError, match="the account's limit"):
        approve_request(approver, waiting[1].id, Decision())
    assert show_request(approver, waiting[1].id).state == "waiting"


def test_at_the_same_moment_two_do_not_count_on_the_same_room(office):
    rules = NewRules(approval=PrivacyBudget(epsilon=3, delta=1e-6))
    change = change_rules(office.work(Role.CUSTODIAN), "children", rules)
    confirm_proposal(office.work(Role.APPROVER), change.proposal.id)
    people = [office.newcomer(f"analyst {number}", Role.ANALYST) for number in range(6)]

    def try_it(work):
        try:
            return office.ask(work, 1.2).id
        except NoRoomError:
            return None

    with ThreadPoolExecutor(6) as pool:
        granted = [one for one in pool.map(try_it, people) if one is not None]
    assert len(granted) >= 1
    each = costs_of_release(1.2, 1e-6)
    assert has_room(Amount(), [each] * len(granted), limit=(3, 1e-6))
    assert not has_room(Amount(), [each] * (len(granted) + 1), limit=(3, 1e-6))


def test_what_is_rejected_or_withdrawn_or_cancelled_makes_room(office):
    analyst, approver = office.work(Role.ANALYST), office.work(Role.APPROVER)
    for give_back in (
        lambda asked: reject_request(approver, asked.id, Decision()),
        lambda asked: withdraw_request(analyst, asked.id),
        lambda asked: cancel_job(analyst, approve_request(approver, asked.id, Decision()).job.id),
    ):
        asked = office.ask(analyst, 1.9)
        with pytest.raises(NoRoomError, match="your share"):
            office.ask(analyst, 1.9)
        give_back(asked)
        (account,) = list_accounts(analyst)
        assert (account.held, account.left, account.mine) == (0, 3, None)


@on_postgresql_slowly
def test_what_is_approved_is_reserved(office):
    analyst, approver = office.work(Role.ANALYST), office.work(Role.APPROVER)
    approve_request(approver, office.ask(analyst, 1.9).id, Decision())
    (account,) = list_accounts(analyst)
    assert account.used == 0
    # Of Laplace noise 1.9 of 3, and of Gaussian noise less: more is not reserved.
    assert account.held == pytest.approx(1.9 / 3)
    assert account.left < 1.1
    assert account.mine == pytest.approx(1.9 / 2)


@on_postgresql_slowly
def test_a_share_of_ones_own(office):
    custodian, analyst = office.work(Role.CUSTODIAN), office.work(Role.ANALYST)
    set_share(custodian, "children", "analyst", PrivacyBudget(epsilon=0.1, delta=1e-6))
    with pytest.raises(NoRoomError, match="your share"):
        office.ask(analyst, 0.2)
    change = set_share(custodian, "children", "analyst", None)
    confirm_proposal(office.work(Role.APPROVER), change.proposal.id)
    assert office.ask(analyst, 0.2).state == "approved"
    with pytest.raises(NotFoundError):
        set_share(custodian, "children", "nobody", None)


def test_with_a_key_a_request_is_made_once(office):
    analyst = office.work(Role.ANALYST)
    first = office.ask(analyst, 0.3, key="figure 3")
    assert office.ask(analyst, 0.3, key="figure 3").id == first.id
    with pytest.raises(ConflictError, match="another request"):
        office.ask(analyst, 0.4, key="figure 3")
    # Of another analyst it is another.
    assert office.ask(office.newcomer("anna", Role.ANALYST), 0.4, key="figure 3").id != first.id


def test_analysts_see_their_own_alone(office):
    asked = office.ask(office.work(Role.ANALYST), 0.3)
    other = office.newcomer("anna", Role.ANALYST)
    assert (list_requests(other), list_jobs(other)) == ([], [])
    for look in (
        lambda: show_request(other, asked.id),
        lambda: show_job(other, asked.job.id),
        lambda: withdraw_request(other, asked.id),
        lambda: cancel_job(other, asked.job.id),
    ):
        with pytest.raises(NotFoundError):
            look()
    assert show_request(office.work(Role.APPROVER), asked.id).person == "analyst"


@on_postgresql_slowly
def test_choices_that_make_no_sense_are_refused_before_anything_is_held(office):
    analyst = office.work(Role.ANALYST)
    for choices, told in (
        ({"inputs": ["nobody"]}, "no column nobody"),
        ({"inputs": ["height"]}, "no column height"),
        ({"criterion": "best"}, "criterion must be one of"),
        ({"class_rates": [0.5, 0.5]}, "go with classes"),
        ({"transform": "logit"}, "logit"),
        ({"quantiles": [0.9, 0.5]}, "in order"),
        ({"quantiles": [0.5], "counts": True}, "no meaning with quantiles"),
        ({"quantiles": [0.5], "noise_variance": 2.0}, "no meaning with quantiles"),
        ({"quantiles": [0.5], "criterion": "trace"}, "questions about quantiles"),
        ({"overdispersion": 0.1}, "overdispersion is of counts"),
        ({"exposure": "age"}, "exposure goes with counts"),
        ({"counts": True, "exposure": "height"}, "exposure must be one of age"),
        ({"counts": True, "exposure": "age"}, "at least one column"),
        ({"counts": True, "transform": "log"}, "counts scatter"),
        ({"counts": True, "calibrate": 0.2}, "counts scatter by their likelihood"),
        ({"quantiles": [0.5], "calibrate": 0.2}, "no meaning with quantiles"),
    ):
        with pytest.raises(InvalidError, match=told):
            office.ask(analyst, 0.1, **choices)
        assert list_requests(analyst) == []
    assert office.ask(analyst, 0.1, transform="log").id == 1
    assert office.ask(analyst, 0.1, noise="laplace").id == 2
    assert office.ask(analyst, 0.1, quantiles=[0.1, 0.9], mean=100.0).id == 3
    assert office.ask(analyst, 0.1, counts=True, overdispersion=0.0).id == 4


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """An office of whose requests none is taken: what is refused leaves nothing behind."""
    folder = tmp_path_factory.mktemp("refusing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOAKGP_LEDGER_HOME", str(folder / "home"))
        service = opened(str(folder / "people.db"), folder)
        made = Office(service, folder)
        made.classed = register_table(
            made.work(Role.CUSTODIAN),
            NewTable(
                name="classes",
                account="children",
                path=str(write_classes(folder / "tables" / "classes.csv")),
                output="ill",
                classes=["no", "yes"],
            ),
        )
        yield made
        service.close()


REFUSED = [
    {"lengthscale": [1.0, 2.0, 3.0]},
    {"mean": 1e308},
    {"signal_variance": 1e308},
    {"signal_variance": 1e-300},
    {"noise_variance": 1e308},
    {"noise_variance": 1e100},
    {"calibrate": 0.1},
    {"transform": "log", "mean": -1.0},
    {"quantiles": [0.5], "mean": 1e308},
    {"quantiles": [0.5], "signal_variance": 1e308},
    {"counts": True, "mean": 1e308},
    {"counts": True, "overdispersion": 1e308},
]


@pytest.mark.parametrize("choices", REFUSED, ids=str)
def test_what_a_plan_refuses_a_request_refuses_in_the_same_words(refusing, choices):
    """It was approved, spent an approver's time, and failed without a word of why."""
    analyst, said = refusing.work(Role.ANALYST), []
    planned = PlanRequest(
        table=refusing.table.id, choices=Choices(epsilon=0.2, delta=1e-6, **choices)
    )
    for asked in (
        lambda: make_plan(analyst, planned),
        lambda: refusing.ask(analyst, 0.2, **choices),
        lambda: refusing.ask(analyst, 0.2, key="once", **choices),
    ):
        with pytest.raises(InvalidError) as refused:
            asked()
        said.append(str(refused.value))
    assert len(set(said)) == 1
    assert "/" not in said[0]
    assert list_requests(analyst) == []


@pytest.mark.parametrize(
    "choices",
    [
        {"lengthscale": [1.0, 2.0]},
        {"signal_variance": 1e308},
        {"signal_variance": 1e-300},
        {"class_rates": [0.5, 0.2]},
        {"class_rates": [0.5, 0.2, 0.3]},
    ],
    ids=str,
)
def test_a_request_about_classes_is_refused_as_its_plan_is(refusing, choices):
    table, analyst = refusing.classed.id, refusing.work(Role.ANALYST)
    chosen, said = Choices(epsilon=0.2, delta=1e-6, **choices), []
    for asked in (
        lambda: make_plan(analyst, PlanRequest(table=table, choices=chosen)),
        lambda: make_request(analyst, NewRequest(table=table, choices=chosen, purpose="a test")),
    ):
        with pytest.raises(InvalidError) as refused:
            asked()
        said.append(str(refused.value))
    assert said[0] == said[1]


@on_postgresql_slowly
@pytest.mark.parametrize("kind", [InvalidError, TooSlowError])
def test_a_request_whose_plan_takes_too_long_is_taken(kind, office, monkeypatch):
    """A job may have more time and memory than plans, and than their queries."""

    def late(*_args, **_named):
        raise kind("planning this took longer than 60 seconds")

    monkeypatch.setattr(office.service.planning, "call", late)
    assert office.ask(office.work(Role.ANALYST), 0.2).state == "approved"


@on_postgresql_slowly
def test_the_request_of_a_key_is_returned_though_its_table_cannot_be_read_by_now(
    office, monkeypatch
):
    analyst = office.work(Role.ANALYST)
    made = office.ask(analyst, 0.2, key="once")

    def gone(*_args, **_named):
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(office.service.planning, "call", gone)
    assert office.ask(analyst, 0.2, key="once").id == made.id


@on_postgresql_slowly
def test_nothing_is_asked_of_a_table_that_is_withdrawn(office):
    asked = office.ask(office.work(Role.ANALYST), 1.2)
    withdraw_table(office.work(Role.CUSTODIAN), office.table.id)
    with pytest.raises(ConflictError, match="withdrawn"):
        office.ask(office.work(Role.ANALYST), 0.1)
    with pytest.raises(ConflictError, match="withdrawn"):
        approve_request(office.work(Role.APPROVER), asked.id, Decision())
