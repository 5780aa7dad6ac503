"""Screenshots of every page of the service, wide and narrow, light and dark.

`python -m benchmarks.screenshots --out FOLDER` opens a service with the demonstration's people and
table, asks for a release, and takes a picture of each page as the person sees it who works there.
The pages are those that the tests of accessibility go through. It needs Playwright, and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from cloakgp import DPGPRegressor
from cloakgp.custodians import MemoryExchange, Plan, Site
from cloakgp.data import ArrayRows
from cloakgp.ledger import Ledger
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.context import Service, Work
from cloakgp.service.coordinator import coordinate
from cloakgp.service.demonstration import Demonstration, prepare_demonstration
from cloakgp.service.messages import (
    Choices,
    NewAccount,
    NewJointRequest,
    NewLimit,
    NewPerson,
    NewRequest,
    PrivacyBudget,
)
from cloakgp.service.operations.accounts import change_limit, open_account
from cloakgp.service.operations.joint_requests import (
    begin_joint_request,
    close_joint_request,
    send_joint_file,
)
from cloakgp.service.operations.people import create_person
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.sessions import actor_by_token
from cloakgp.service.operations.tables import upload_table
from cloakgp.service.settings import Settings
from cloakgp.service.worker import run_job

WIDE, NARROW, HEIGHT = 1280, 390, 900
SCHEMES = ("light", "dark")
QUICK = {"stages": "one", "interval": "off", "learn": "none"}
# Columns of a table to add: with gaps, with a diagnosis that is nobody's business, and with ids.
PEOPLE = "id,age,town,diagnosis,income\n" + "".join(
    f"p{number:03d},{'' if number % 9 == 0 else 20 + number % 60},"
    f"{'Bern' if number % 3 else 'Basel' if number % 50 else 'Chur'},"
    f"{'flu' if number % 4 else 'none'},{3000 + 17 * number % 2000}\n"
    for number in range(120)
)


@dataclass(frozen=True)
class Shown:
    """A page, as somebody sees it.

    Attributes
    ----------
    name : str
        Of the picture.
    role : Role or None
        Who looks; None before anybody has signed in.
    address : str
        With ``{upload}`` for the upload of a table, and ``{link}`` for that of the demonstration.
    """

    name: str
    role: Role | None
    address: str


PLAN = "epsilon=0.5&delta=0"
PAGES = (
    Shown("sign-in", None, "/sign-in"),
    Shown("sign-in-demonstration", None, "{link}"),
    Shown("help", Role.READER, "/help"),
    Shown("not-there", Role.READER, "/releases/77"),
    Shown("not-allowed", Role.READER, "/people"),
    Shown("budgets", Role.CUSTODIAN, "/budgets"),
    Shown("budget-new", Role.CUSTODIAN, "/budgets/new"),
    Shown("budget", Role.CUSTODIAN, "/budgets/patients%20of%20the%20demonstration"),
    Shown("table", Role.CUSTODIAN, "/tables/1"),
    Shown("add-file", Role.CUSTODIAN, "/add-table"),
    Shown("add-column", Role.CUSTODIAN, "/add-table/column?upload={upload}&called=people.csv"),
    Shown(
        "add-declare",
        Role.CUSTODIAN,
        "/add-table/declare?upload={upload}&called=people.csv&output=income&public=age"
        "&public=town&public=id",
    ),
    Shown("plan", Role.ANALYST, f"/tables/1/plan?{PLAN}"),
    Shown("request-new", Role.ANALYST, f"/tables/1/request?{PLAN}"),
    Shown("request-visit", Role.ANALYST, "/tables/1/request?after=1&epsilon=0.5"),
    Shown("requests-analyst", Role.ANALYST, "/requests"),
    Shown("requests", Role.APPROVER, "/requests"),
    Shown("request-done", Role.APPROVER, "/requests/1"),
    Shown("request-waiting", Role.APPROVER, "/requests/3"),
    Shown("request-under-way", Role.ANALYST, "/requests/2"),
    Shown("joint-requests", Role.ANALYST, "/joint-requests"),
    Shown("joint-request", Role.CUSTODIAN, "/joint-requests/1"),
    Shown("joint-request-own", Role.ANALYST, "/joint-requests/2"),
    Shown("joint-request-closed", Role.ANALYST, "/joint-requests/3"),
    Shown("releases", Role.READER, "/releases"),
    Shown("release", Role.READER, "/releases/1?x0=50"),
    Shown("release-analyst", Role.ANALYST, "/releases/1"),
    Shown("ledger", Role.AUDITOR, "/ledger"),
    Shown("events", Role.AUDITOR, "/events"),
    Shown("people", Role.ADMINISTRATOR, "/people"),
    Shown("person", Role.ADMINISTRATOR, "/people/1"),
)


class _Held:
    """A dispatcher that does jobs at once, until it is told to hold them."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self.holds = False

    def submit(self, job: int) -> None:
        if not self.holds and self.service is not None:
            run_job(self.service, job)

    def coordinate(self, request: int) -> None:
        if not self.holds and self.service is not None:
            coordinate(self.service, request)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Office:
    """A service that answers, and what its visitors need.

    Attributes
    ----------
    place : str
        Its address.
    tokens : dict of Role to str
    upload : str
        Of a table that nobody has added yet.
    link : str
        On which one enters as any of its people.
    """

    place: str
    tokens: dict[Role, str]
    upload: str
    link: str

    def address_of(self, shown: Shown) -> str:
        """Return the full address of a page."""
        return self.place + shown.address.format(upload=self.upload, link=self.link)


@contextmanager
def open_office(folder: Path) -> Iterator[Office]:
    """Open a service in a folder, with requests in every state, and answer for it."""
    ledger = f"sqlite:///{folder}/ledger.db"
    Ledger.create(ledger).close()
    dispatcher = _Held()
    # Somebody who looks at every page asks often.
    rates = {"plan": "10000/minute", "default": "100000/minute"}
    settings = Settings(ledger=ledger, data=folder / "data", workers=0, rates=rates)
    service = Service.open(settings).with_dispatcher(dispatcher)
    dispatcher.service = service
    demonstration = Demonstration(people=tuple(prepare_demonstration(service)))
    tokens = {each.role: each.token for each in demonstration.people}

    def work_as(role: Role) -> Work:
        return Work(service=service, actor=actor_by_token(service, tokens[role]))

    def ask(epsilon: float, purpose: str) -> None:
        choices = Choices(epsilon=epsilon, delta=1e-5, **QUICK)  # type: ignore[arg-type]
        new = NewRequest(table=1, choices=choices, purpose=purpose)
        make_request(work_as(Role.ANALYST), new)

    _begin_joint_requests(service, work_as(Role.ANALYST), work_as(Role.CUSTODIAN))
    ask(0.5, "a first look")
    dispatcher.holds = True
    ask(0.2, "a comparison of clinics")
    ask(0.9, "figure 3 of the report")
    custodian = work_as(Role.CUSTODIAN)
    open_account(
        custodian, NewAccount(name="volunteers", limit=PrivacyBudget(epsilon=1.0, delta=0.0))
    )
    change_limit(
        custodian,
        "volunteers",
        NewLimit(limit=PrivacyBudget(epsilon=2.0, delta=0.0), reason="a year more"),
    )
    people = folder / "people.csv"
    people.write_text(PEOPLE)
    upload = upload_table(custodian, "people.csv", received=people).id
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(service, demonstration=demonstration), port=0, log_level="critical"
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.05)
    place = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield Office(place=place, tokens=tokens, upload=upload, link=demonstration.link)
    finally:
        server.should_exit = True
        thread.join()


def _begin_joint_requests(service: Service, analyst: Work, custodian: Work) -> None:
    """Begin joint requests: one whose custodians have joined but one, others that nobody has."""
    with service.database.writing() as session:
        create_person(session, NewPerson(name="Carlo", roles=[Role.CUSTODIAN]))
    people = {"north": custodian.actor.name, "south": "Carlo"}
    for epsilon, purpose in ((1.0, "all clinics"), (0.5, "a pilot"), (0.2, "a plan given up")):
        plan = Plan.of(
            DPGPRegressor(bounds=(0, 350), epsilon=epsilon, stages=None, interval=False),
            sites=list(people),
            input_names=["age"],
            output_name="progression",
        ).to_bytes()
        new = NewJointRequest(plan=plan.decode(), people=people, purpose=purpose)
        begun = begin_joint_request(analyst, new)
        with tempfile.TemporaryDirectory() as folder:
            exchange = MemoryExchange({"plan.json": plan})
            rows = ArrayRows([[30.0], [40.0]], [90.0, 120.0])
            Site("north", rows, exchange, folder, trusts_exchange=True).step()
            for name in ("sites/north.npy", "sites/north.json"):
                send_joint_file(custodian, begun.id, name, content=exchange.files[name])
    close_joint_request(analyst, begun.id)


def enter(browser: Any, office: Office, role: Role | None, **chosen: Any) -> Any:
    """Return a page of a browser in which somebody of a role has signed in."""
    page = browser.new_context(**chosen).new_page()
    page.set_default_timeout(120_000)
    if role is not None:
        page.goto(f"{office.place}/sign-in")
        page.fill("input[name=token]", office.tokens[role])
        page.click("main form:has(input[name=token]) button")
        page.wait_for_selector("text=Sign out")
    return page


def settle(page: Any, address: str) -> None:
    """Go to a page, and wait until all is there that comes by itself."""
    page.goto(address)
    while page.evaluate(
        "document.querySelector('[data-later], .busy, [data-ask]:has(.note)') !== null"
        " || [...document.images].some((each) => !each.complete)"
    ):
        page.wait_for_timeout(100)


def take_pictures(folder: Path, *, only: str = "") -> None:
    """Write a picture of every page into a folder."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    with (
        tempfile.TemporaryDirectory() as home,
        open_office(Path(home)) as office,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for scheme in SCHEMES:
            for width in (WIDE, NARROW):
                pages: dict[Role | None, Any] = {}
                for shown in PAGES:
                    if not any(part in shown.name for part in only.split(",")):
                        continue
                    if shown.role not in pages:
                        pages[shown.role] = enter(
                            browser,
                            office,
                            shown.role,
                            viewport={"width": width, "height": HEIGHT},
                            color_scheme=scheme,
                        )
                    page = pages[shown.role]
                    settle(page, office.address_of(shown))
                    name = f"{shown.name}-{width}-{scheme}.png"
                    page.screenshot(path=folder / name, full_page=True)
                    print(folder / name)
                for page in pages.values():
                    page.context.close()
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("output/pages"))
    parser.add_argument("--only", default="", help="Parts of pages' names, with commas.")
    asked = parser.parse_args()
    take_pictures(asked.out, only=asked.only)
