"""Joint requests: the service as coordinator, its refusals, its database, and kills."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from killed_runs import KilledError, Moments
from services import InlineDispatcher, add_custodians, add_people, opened, work_as
from small_plans import NAMES, TWO_QUESTIONS, Ward, X, Y, plan_of, rows_of
from sqlalchemy import select

from cloakgp.client import Client, ClientError, ConflictError
from cloakgp.custodians import MemoryExchange, Site
from cloakgp.custodians.coordinator import release_of
from cloakgp.custodians.files import Hidden
from cloakgp.ledger import Ledger
from cloakgp.ledger.database import Database
from cloakgp.privacy.noise import gaussian, laplace
from cloakgp.privacy.spending import Cost, spend
from cloakgp.service import coordinator
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.database import ServiceDatabase
from cloakgp.service.health import Readiness, Rounds
from cloakgp.service.metrics import Metrics
from cloakgp.service.models import Event, JointFile, JointRequest
from cloakgp.service.operations.erasing import erase_old_exchanges
from cloakgp.service.operations.joint_requests import open_joint_requests
from cloakgp.service.settings import Settings

FIRST = "attempt-1/question-1/"


class Wards:
    """Custodians, and an analyst, who reach a service by its client alone."""

    def __init__(self, service, folder, *, outputs=Y, tokens=None, **settings):
        self.service, self.folder = service, folder
        # Of many clients: an application finds its routes anew at its first request.
        self.app = create_app(service)
        self.tokens = tokens or {
            **add_custodians(service, *NAMES),
            "analyst": add_people(service)[Role.ANALYST],
        }
        self.plan = plan_of(**settings)
        self.outputs = outputs
        self.analyst = self.client("analyst")
        self.request = self.begin().id
        self.sites = {name: self.site(name) for name in NAMES}

    def client(self, name):
        http = TestClient(self.app, base_url="http://127.0.0.1")

        def answer(request):
            sent = http.request(
                request.method, str(request.url), content=request.content, headers=request.headers
            )
            return httpx.Response(sent.status_code, content=sent.content)

        transport = httpx.MockTransport(answer)
        return Client("http://127.0.0.1", self.tokens[name], transport=transport)

    def begin(self, **changed):
        plan = self.plan.to_bytes().decode()
        return self.analyst.begin_joint(plan, purpose="all clinics", **changed)

    def site(self, name, **more):
        exchange = self.client(name).exchange(self.request)
        rows = rows_of(NAMES.index(name), outputs=self.outputs)
        own = self.folder / "own" / name
        return Site(name, rows, exchange, own, trusts_exchange=True, **more)

    def step(self, *names):
        return {name: self.sites[name].step() for name in names or self.sites}

    @property
    def shown(self):
        return self.analyst.joint_request(self.request)

    @property
    def release(self):
        return release_of(self.analyst.read_joint_file(self.request, "release.cloak"))

    def send(self, name, file, content):
        return self.client(name).send_joint_file(self.request, file, content)

    def files(self):
        with self.service.database.reading() as session:
            return coordinator.DatabaseExchange(session, self.request).files()

    def take_back(self, *names):
        """As if these files had not come."""
        with self.service.database.writing() as session:
            session.execute(sa.delete(JointFile).where(JointFile.name.in_(names)))


@pytest.fixture
def wards(service, tmp_path):
    return Wards(service, tmp_path)


def test_a_release_by_the_service(any_service, tmp_path):
    """It goes on by itself, each time that all have done what comes next."""
    wards = Wards(any_service, tmp_path)
    assert (wards.shown.stage, wards.shown.missing) == ("join", list(NAMES))
    assert wards.step("east", "north") == dict.fromkeys(NAMES[:2], ("joined",))
    assert (wards.shown.stage, wards.shown.missing) == ("join", ["west"])
    # The last one sees what the others make possible at once.
    assert wards.step("west") == {"west": ("joined", "answered")}
    assert (wards.shown.stage, wards.shown.missing) == ("answer", ["east", "north"])
    assert [site.missing for site in wards.shown.sites] == [True, True, False]
    assert wards.step("east", "north") == {"east": ("answered",), "north": ("answered", "opened")}
    assert (wards.shown.stage, wards.shown.missing) == ("open", ["east", "west"])
    wards.step()
    assert (wards.shown.stage, wards.shown.problem) == ("done", "")
    assert wards.release.n_rows == 30
    assert wards.release.custodians.sites == 3
    # Whoever goes on has nothing to do.
    assert wards.step() == dict.fromkeys(NAMES, ())


def test_several_questions_and_a_dropout(service, tmp_path):
    wards = Wards(service, tmp_path, **TWO_QUESTIONS)
    wards.step()
    late = wards.sites.pop("east")
    wards.step(*wards.sites)
    assert wards.analyst.continue_joint(wards.request, without=["east"]).attempt == 2
    assert late.step() == ()
    for _ in range(4):
        wards.step(*wards.sites)
    assert (wards.shown.stage, wards.shown.question) == ("done", 2)
    assert wards.release.n_rows == 20
    assert not [name for name in wards.files() if name.startswith(FIRST + "openings")]


def test_a_site_that_does_not_join_is_left_out(wards):
    wards.step("east", "north")
    left = wards.analyst.continue_joint(wards.request, without=["west"])
    assert left.asked == ["east", "north"]
    with pytest.raises(ClientError, match="too late: the others go on without west"):
        wards.step("west")
    for _ in range(2):
        wards.step("east", "north")
    assert wards.release.n_rows == 20


def test_once_masks_may_be_open_nobody_is_left_out(wards):
    wards.step()
    wards.step()
    assert wards.shown.stage == "open"
    with pytest.raises(ConflictError, match="all sites have answered a question"):
        wards.analyst.continue_joint(wards.request, without=["west"])


# What is refused, in words, and changes nothing.


def refused(wards, name, file, content, message):
    before = wards.files()
    with pytest.raises(ClientError, match=message):
        wards.send(name, file, content)
    assert wards.files() == before


def changed(content, **more):
    return json.dumps({**json.loads(content), **more}).encode()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"request": "0" * 64}, "west answered another question"),
        ({"numbers": "AAAAAAAAAAA="}, "west has not 2 numbers"),
        ({"site": "east"}, "west answered another question"),
        ({"more": 1}, "damaged"),
    ],
)
def test_sums_of_another_schedule_or_size_are_refused(wards, more, message):
    wards.step()
    wards.step("west")
    name = FIRST + "answers/west.json"
    content = wards.files()[name]
    wards.take_back(name)
    refused(wards, "west", name, changed(content, **more), message)
    wards.send("west", name, content)


def test_a_second_sum_is_refused_and_the_same_is_not(wards):
    wards.step()
    wards.step("west")
    name = FIRST + "answers/west.json"
    content = wards.files()[name]
    wards.send("west", name, content)
    refused(wards, "west", name, changed(content, numbers=""), "written before, and is another")


def test_a_sum_that_comes_too_late_is_refused(wards):
    wards.step()
    wards.step("west", "east")
    name = FIRST + "answers/west.json"
    content = wards.files()[name]
    wards.take_back(name)
    wards.analyst.continue_joint(wards.request, without=["west"])
    refused(wards, "west", name, content, "too late: the question is void")


def test_whoever_is_not_in_the_request_sends_nothing(wards):
    wards.step()
    wards.step("west")
    name = FIRST + "answers/west.json"
    content = wards.files()[name]
    wards.take_back(name)
    wards.tokens |= add_custodians(wards.service, "south")
    for stranger in ("south", "analyst"):
        refused(wards, stranger, name, content, r"none of the custodians|roles do not allow")
    refused(wards, "east", name, content, "no file that east writes")
    for file in ("total.json", "complete.json", "request.cloak"):
        refused(wards, "west", FIRST + file, b"{}", "no file that west writes")


def test_after_closing_nothing_is_taken(wards):
    wards.step()
    wards.step("west")
    name = FIRST + "answers/west.json"
    content = wards.files()[name]
    with pytest.raises(ClientError, match=r"roles|no such joint request"):
        wards.client("west").close_joint(wards.request)
    assert wards.analyst.close_joint(wards.request).closed
    # Its answer was taken; whether that was told may be asked again.
    wards.send("west", name, content)
    with pytest.raises(ConflictError, match="the request is closed"):
        wards.step("east")
    for again in (wards.analyst.close_joint, wards.analyst.continue_joint):
        with pytest.raises(ConflictError, match="closed"):
            again(wards.request)
    coordinator.coordinate(wards.service, wards.request)
    assert wards.shown.stage == "answer"


def test_after_the_release_nothing_is_taken(wards):
    for _ in range(3):
        wards.step()
    name = FIRST + "answers/west.json"
    wards.take_back(name)
    refused(wards, "west", name, b"{}", "the release is there")
    with pytest.raises(ConflictError, match="the release is there"):
        wards.analyst.close_joint(wards.request)


def test_each_site_reads_the_schedule_and_its_own_files(wards):
    for _ in range(3):
        wards.step()
    west, files = wards.client("west"), wards.files()
    for name, content in files.items():
        if "east" in name or "north" in name or "total" in name:
            for reader in (west, wards.analyst):
                with pytest.raises(ClientError, match="no such file"):
                    reader.read_joint_file(wards.request, name)
        else:
            assert west.read_joint_file(wards.request, name) == content


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ({"west": "nobody"}, "no custodian 'nobody'"),
        ({"west": "analyst"}, "no custodian 'analyst'"),
        ({"west": "east"}, "is two sites"),
        ({"south": "east"}, "the plan has no site south"),
    ],
)
def test_sites_are_different_custodians(wards, people, message):
    with pytest.raises(ClientError, match=message):
        wards.begin(people=people)


@pytest.mark.parametrize("plan", ["", "{}", "[]", "[" * 5000, '{"sites": 1}'])
def test_plans_that_are_none_are_refused(wards, plan):
    with pytest.raises(ClientError, match="damaged"):
        wards.analyst.begin_joint(plan, purpose="none")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"inducing": 10**6}, "inducing inputs at most"), ({"epsilon": 1e4}, "plans of ε = 20")],
)
def test_plans_that_take_too_much_are_refused(wards, settings, message):
    plan = plan_of(**settings).to_bytes().decode()
    with pytest.raises(ClientError, match=message):
        wards.analyst.begin_joint(plan, purpose="more")


def test_one_plan_begun_twice_is_one_request(wards):
    assert wards.begin().id == wards.request
    wards.analyst.close_joint(wards.request)
    assert wards.begin().id != wards.request


def test_an_inconsistent_site_is_named(wards):
    """What only the coordinator can find is said; nothing goes on."""
    wards.step("east", "north")
    with wards.service.database.writing() as session:
        row = session.get(JointFile, (wards.request, "sites/east.npy"))
        row.content = row.content[:-8] + bytes(8)
    wards.step("west")
    assert "public inputs of east are not those it joined with" in wards.shown.problem
    assert wards.shown.stage == "collect"


def test_what_was_not_foreseen_is_told_without_its_words(wards, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("secret 173.9")

    with monkeypatch.context() as patch:
        patch.setattr(coordinator.Coordinator, "collect", fail)
        wards.step()
    assert wards.shown.problem == coordinator.FAILED
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    # Asked once more, it goes on.
    assert wards.analyst.continue_joint(wards.request).problem == ""
    assert wards.shown.stage == "answer"


# What the service has.


def test_the_database_holds_what_a_folder_would_and_nothing_else(service, tmp_path):
    """File by file; no output, and no unhidden sum of one site, is anywhere on its disk."""
    outputs = Y + 0.123456789
    wards = Wards(service, tmp_path, outputs=outputs)
    for _ in range(3):
        wards.step()
    names = set(wards.files())
    folder = MemoryExchange()
    Ward(tmp_path / "beside", exchange=folder).finish()
    assert names == set(folder.files)
    with service.database.reading() as session:
        events = list(session.scalars(select(Event.what)))
    assert "release of several custodians made" in events
    kept = [path.read_bytes() for path in tmp_path.glob("*.db*")]
    kept += [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert kept
    for value in outputs:
        for form in (value.tobytes(), repr(float(value)).encode()):
            assert not any(form in content for content in kept)
    keys = [(tmp_path / "own" / name / "site.key").read_bytes() for name in NAMES]
    for key in keys:
        for half in (key[:32], key[32:]):
            assert not any(half in content for content in kept)


def test_what_is_held_of_one_site_is_uniform_until_it_opens(service, tmp_path, monkeypatch):
    """The same sums under the masks of two questions have nothing in common."""

    def add(integers, *, scale, sensitivity, hide, **_):
        cost = Cost.of_gaussian(answers=len(integers), sensitivity=sensitivity, scale=scale)
        return spend(cost, lambda: hide(np.zeros_like(integers)))

    monkeypatch.setattr(gaussian, "add_share_of_gaussian", add)
    wards = Wards(service, tmp_path)
    wards.step()
    wards.step("west")
    hidden = Hidden.from_bytes(wards.files()[FIRST + "answers/west.json"]).integers(count=2)
    # All of them were 0; one of two masks of 64 bits is so small once in 2²⁸ times.
    assert np.all(np.abs(hidden.astype(float)) > 2**34)


# Kills: at every moment of the service and of a site.


class ServiceMoments(Moments):
    """Before and after every transaction, file and draw of the service and of sites."""

    def __init__(self, patch, *, last=None):
        self.draws = 0
        super().__init__(patch, last=last)

    def patch(self, patch):
        add = laplace.add_share_of_laplace

        def added(integers, *, hide, **settings):
            def hidden(noisy):
                self.reach("before the draw is hidden")
                self.draws += 1
                return hide(noisy)

            return add(integers, hide=hidden, **settings)

        self.around_writes(patch)
        self.around_writing(patch, ServiceDatabase, name="a transaction", within=True)
        self.around_writing(patch, Database, name="an entry")
        patch.setattr(laplace, "add_share_of_laplace", added)


def restarted(folder, tokens):
    """The service and the custodians as new processes find them; west has a ledger."""
    settings = Settings(
        ledger=str(folder / "people.db"), data=folder / "data", tables=(folder,), workers=0
    )
    dispatcher = InlineDispatcher()
    dispatcher.service = Service.open(settings)
    service = dispatcher.service.with_dispatcher(dispatcher)
    wards = Wards(service, folder, tokens=tokens, noise="laplace", delta=0.0, inducing=2)
    ledger = Ledger(folder / "west.db")
    wards.sites["west"] = wards.site("west", ledger=ledger, account="patients")
    # As at its start.
    for request in open_joint_requests(service):
        dispatcher.coordinate(request)
    return wards


def go_on(wards):
    for _ in range(6):
        wards.step()
        if wards.shown.stage == "done":
            return
    raise AssertionError(f"it does not come to an end: {wards.shown}")


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_every_moment(tmp_path, monkeypatch, step):
    """Of the service, or of a custodian: nothing is drawn, counted or lost twice."""
    killed, names = 0, []
    while True:
        folder = tmp_path / f"run-{killed}"
        folder.mkdir()
        monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(folder / "home"))
        service = opened(str(folder / "people.db"), folder)
        tokens = {
            **add_custodians(service, *NAMES),
            "analyst": add_people(service)[Role.ANALYST],
        }
        service.close()
        Ledger.create(folder / "west.db").open_account("patients", epsilon=1.0, delta=0.0)
        wards = restarted(folder, tokens)
        dead = False
        with monkeypatch.context() as patch:
            moments = ServiceMoments(patch, last=killed)
            try:
                go_on(wards)
            except KilledError:
                dead = True
        wards.service.close()
        if not dead:
            names = moments.names
            break
        again = restarted(folder, tokens)
        go_on(again)
        check(again, folder)
        again.service.close()
        killed += step
    assert len(names) > 40
    assert {"before a transaction", "within a transaction", "before the draw is hidden"} <= set(
        names
    )


def check(wards, folder):
    [standing] = Ledger(folder / "west.db").standings()
    assert standing.open == ()
    assert standing.used == pytest.approx(1.0, abs=1e-6)
    assert wards.release.n_rows == 30
    for name in NAMES:
        own = wards.sites[name].folder
        assert [each.opened for each in own.load().questions.values()] == [True]
        assert wards.files()[f"{FIRST}answers/{name}.json"] == own.answer("1/1")
    with wards.service.database.reading() as session:
        assert len(list(session.scalars(select(JointRequest)))) == 1


def test_a_worker_that_is_late_says_nothing_of_a_void_question(wards, monkeypatch):
    """All had answered; while a worker reads that, one is left out: masks stay closed."""
    wards.step()
    wards.service.dispatcher.at_once = False
    wards.step()
    collect = coordinator.Coordinator.collect

    def late(this, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(coordinator.Coordinator, "collect", collect)
            wards.analyst.continue_joint(wards.request, without=["west"])
        return collect(this, **settings)

    monkeypatch.setattr(coordinator.Coordinator, "collect", late)
    coordinator.coordinate(wards.service, wards.request)
    assert FIRST + "complete.json" not in wards.files()
    assert wards.shown.attempt == 2


def test_reasons_of_the_host_end_with_the_next_step(wards):
    with wards.service.database.writing() as session:
        session.get(JointRequest, wards.request).problem = "once"
    wards.step()
    assert wards.shown.problem == ""


def test_an_unknown_request_is_left_alone(service):
    coordinator.coordinate(service, 99)


def test_predictions_are_near_the_curve(service, tmp_path):
    wards = Wards(service, tmp_path, epsilon=20.0, delta=1e-5)
    for _ in range(3):
        wards.step()
    assert np.abs(wards.release.predict(X) - Y).max() < 2.0
    assert work_as(service, wards.tokens["analyst"]).actor.name == "analyst"


# Retention.


def let_go_by(service, days):
    """Age all joint requests, and their files."""
    seconds = days * 24 * 3600
    with service.database.writing() as session:
        session.execute(sa.update(JointFile).values(created=JointFile.created - seconds))
        closed = sa.update(JointRequest).where(JointRequest.closed.is_not(None))
        session.execute(closed.values(closed=JointRequest.closed - seconds))


def test_what_was_exchanged_for_a_release_is_erased_and_the_release_stays(any_service, tmp_path):
    wards = Wards(any_service, tmp_path)
    for _ in range(3):
        wards.step()
    before, shown = wards.files(), wards.shown
    assert shown.stage == "done"
    let_go_by(any_service, 29)
    assert erase_old_exchanges(any_service) == 0
    let_go_by(any_service, 2)
    erased = erase_old_exchanges(any_service)
    assert erase_old_exchanges(any_service) == 0
    left = wards.files()
    lasting = {"plan.json", "roster.json", "release.cloak", "attempt-1/members.json"}
    assert set(left) == lasting | {f"sites/{name}.json" for name in NAMES}
    assert len(left) + erased == len(before)
    assert all(left[name] == before[name] for name in left)
    # What each sees and needs is as it was: sites have nothing to do, and the release is there.
    again = wards.shown
    assert (again.stage, again.roster_digest) == ("done", shown.roster_digest)
    assert again.sites == shown.sites
    assert wards.step() == dict.fromkeys(NAMES, ())
    assert wards.release.n_rows == 30
    assert all(site.folder.load().questions["1/1"].opened for site in wards.sites.values())
    with pytest.raises(ConflictError, match="too late"):
        wards.send("east", FIRST + "answers/east.json", before[FIRST + "answers/east.json"])
    with any_service.database.reading() as session:
        noted = session.scalars(select(Event.about).where(Event.what == "exchanged files erased"))
        assert noted.all() == [f"joint request {wards.request}: {erased} files"]


def test_what_was_exchanged_for_a_closed_request_is_erased(service, tmp_path):
    wards = Wards(service, tmp_path)
    wards.step()
    wards.step("east")
    wards.analyst.close_joint(wards.request)
    let_go_by(service, 31)
    assert erase_old_exchanges(service) > 0
    assert set(wards.files()) == {
        *("plan.json", "roster.json", "attempt-1/members.json"),
        *(f"sites/{name}.json" for name in NAMES),
    }
    assert wards.shown.closed
    # Nothing that was answered can be opened any more.
    assert wards.step() == dict.fromkeys(NAMES, ())


def test_what_is_under_way_is_kept_and_all_where_days_are_none(service, tmp_path):
    wards = Wards(service, tmp_path)
    wards.step()
    before = wards.files()
    let_go_by(service, 400)
    assert erase_old_exchanges(service) == 0
    assert wards.files() == before
    for _ in range(3):
        wards.step()
    let_go_by(service, 400)
    forever = replace(service, settings=replace(service.settings, keep_days=0))
    assert erase_old_exchanges(forever) == 0
    assert wards.shown.stage == "done"


def test_a_round_of_the_service_erases_it(service, tmp_path):
    wards = Wards(service, tmp_path)
    for _ in range(3):
        wards.step()
    let_go_by(service, 31)
    Rounds(service, Metrics(), Readiness(service), threading.Event()).make_round()
    assert FIRST + "total.json" not in wards.files()
    assert "release.cloak" in wards.files()
