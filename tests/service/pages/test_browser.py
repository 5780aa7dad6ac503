"""The whole way in a browser: from a CSV to a page that predicts, by people of four roles."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from services import add_people, opened, serving, write_people

from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.dispatch import ThreadDispatcher

WIDE, NARROW = 1200, 390


class HeldDispatcher(ThreadDispatcher):
    """Does jobs in a thread, from when it is told to."""

    def __init__(self, settings):
        super().__init__(settings)
        self.held = []

    def submit(self, job):
        self.held.append(job)

    def begin(self):
        while self.held:
            super().submit(self.held.pop())


@pytest.fixture
def dispatcher():
    return []


@pytest.fixture
def office(url, tmp_path, browser, patience, dispatcher):
    """A service that does its jobs in a thread, and a browser of its own for everybody."""
    service = opened(url, tmp_path)
    tokens = add_people(service)
    dispatcher.append(HeldDispatcher(service.settings))
    service = service.with_dispatcher(dispatcher[0])
    app = create_app(service)
    contexts, heard = [], []

    def signed_in(role, *, place, **more):
        context = browser.new_context(viewport={"width": WIDE, "height": 900}, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * patience)
        page.on("console", lambda said: heard.append(said.text) if said.type != "verbose" else None)
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on(
            "request", lambda asked: heard.append(asked.url) if place not in asked.url else None
        )
        page.goto(place)
        # Browsers move there by themselves, but not at once: what is typed before that is lost.
        page.locator("input[name=token]").press_sequentially(tokens[role])
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Sign out")
        return page

    with serving(app) as place:
        yield lambda role, **more: signed_in(role, place=place, **more)
        for context in contexts:
            context.close()
    assert [said for said in heard if "username fields" not in said] == []


def fits(page):
    """Expect that nothing is wider than the window, on desks and in hands."""
    for width in (NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("html").evaluate("root => root.scrollWidth") <= width, page.url


def follow(page, selector):
    """Click, and wait for the next page: what is asked sooner may be of the one before."""
    with page.expect_navigation():
        page.click(selector)


def tab_to(page, selector):
    """Reach something with the tab key alone."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("chosen => document.activeElement.matches(chosen)", selector):
            return
    raise AssertionError(f"{selector} is out of the keyboard's reach")


def test_from_a_table_to_a_page_that_predicts(office, tmp_path, dispatcher, wait_until):
    # Playwright's own way of waiting needs eval, which pages forbid.
    path = write_people(tmp_path / "people.csv")

    custodian = office(Role.CUSTODIAN)
    custodian.click("text=Add a table")
    custodian.set_input_files("#file", str(path))
    follow(custodian, "button:text-is('Next')")
    assert custodian.locator("input[name=public]:checked").count() == 0
    custodian.check("input[name=public][value=height]")
    custodian.check("input[name=output][value=height]")
    # What is private cannot be public.
    assert custodian.locator("input[name=public]:checked").count() == 0
    assert custodian.locator("input[name=public][value=height]").is_disabled()
    custodian.check("input[name=public][value=age]")
    fits(custodian)
    follow(custodian, "button:text-is('Next')")
    fields = {"low": 50, "high": 250, "unit_0": "years", "new_name": "children", "name": "heights"}
    budgets = {"limit_epsilon": 3, "limit_delta": 1e-6}
    for name, value in (fields | budgets).items():
        custodian.fill(f"#{name}", str(value))
    fits(custodian)
    custodian.click("button:text-is('Add the table')")
    custodian.wait_for_url(re.compile(r"/tables/\d+$"))
    fits(custodian)

    analyst = office(Role.ANALYST)
    analyst.click("text=Plan a release")
    analyst.click("summary:has-text('Methods, for experts')")
    analyst.select_option("#stages", "one")
    analyst.select_option("#interval", "off")
    tab_to(analyst, "input[data-of=epsilon]")
    analyst.keyboard.press("PageDown")
    analyst.keyboard.press("ArrowLeft")
    chosen = float(analyst.input_value("#epsilon"))
    assert 0.3 < chosen < 0.9
    analyst.wait_for_selector(f"#answer h2:has-text('ε = {chosen:g}')")
    assert "There is room for" in analyst.inner_text("#answer")
    assert f"epsilon={chosen:g}" in analyst.url
    wait_until(lambda: analyst.evaluate("document.querySelector('#answer img').naturalWidth > 0"))
    fits(analyst)
    # What was planned of other choices can be asked for no more, from the first letter on.
    assert analyst.locator("text=Request this release").count() == 1
    analyst.focus("#delta")
    analyst.keyboard.type("0")
    assert analyst.locator("text=Request this release").count() == 0
    analyst.keyboard.press("Backspace")
    analyst.keyboard.press("Tab")
    follow(analyst, "text=Request this release")
    analyst.fill("#purpose", "figure 3")
    analyst.click("text=I have read")
    fits(analyst)
    analyst.click("text=Request it")
    analyst.wait_for_selector("text=waits for approval")

    approver = office(Role.APPROVER)
    approver.click("nav >> text=Requests")
    follow(approver, "text=figure 3")
    assert "What becomes public" in approver.inner_text("main")
    fits(approver)
    approver.click("text=I have read")
    follow(approver, "text=Approve, and make it public")
    # The page moves on by itself when the job does.
    assert approver.inner_text("[data-step]") == "waiting for its turn"
    fits(approver)
    dispatcher[0].begin()
    approver.wait_for_selector("text=See the release")
    follow(approver, "text=See the release")
    fits(approver)

    reader = office(Role.READER, color_scheme="dark")
    follow(reader, "text=figure 3")
    # Another answer takes its place; of few rows it may be the same number.
    reader.evaluate("document.querySelector('#answer .answer').id = 'before'")
    tab_to(reader, "input[data-of=x0]")
    reader.keyboard.press("End")
    wait_until(lambda: reader.locator("#before").count() == 0)
    assert reader.locator("#answer .large").count() == 1
    assert reader.input_value("#x0") == f"{float(reader.input_value('#x0')):g}"
    wait_until(lambda: reader.evaluate("document.querySelector('figure img').naturalWidth > 0"))
    fits(reader)
    with reader.expect_download() as coming:
        reader.set_input_files("#file", str(path))
        reader.click("form[enctype] button")
    predicted = coming.value.path().read_text().splitlines()
    assert predicted[0] == "age,mean,sd,lower,upper"
    told = reader.locator("#table-remarks")
    wait_until(lambda: "has the private column's name: left out" in told.inner_text())
    with reader.expect_download() as coming:
        reader.click("a:has-text('File')")
    assert coming.value.suggested_filename.endswith(".cloak")
    reader.click("text=Interactive page")
    reader.wait_for_selector("#prediction:not(:empty)")
    assert reader.evaluate("origin") == "null"


def test_without_script_everything_works(office, tmp_path):
    path = write_people(tmp_path / "people.csv")
    custodian = office(Role.CUSTODIAN, java_script_enabled=False)
    custodian.click("text=Add an account")
    for name, value in {"name": "children", "limit_epsilon": 1, "limit_delta": 0}.items():
        custodian.fill(f"#{name}", str(value))
    custodian.click("button:text-is('Add the account')")
    custodian.click("text=Add a table")
    custodian.set_input_files("#file", str(path))
    follow(custodian, "button:text-is('Next')")
    custodian.check("input[name=output][value=height]")
    custodian.check("input[name=public][value=age]")
    follow(custodian, "button:text-is('Next')")
    for name, value in {"low": 50, "high": 250, "name": "heights"}.items():
        custodian.fill(f"#{name}", str(value))
    custodian.select_option("#account", label="children")
    custodian.click("button:text-is('Add the table')")
    follow(custodian, "text=Plan a release")
    assert custodian.locator("input[type=range]:visible").count() == 0
    custodian.fill("#epsilon", "0.25")
    follow(custodian, "button:text-is('Plan')")
    assert "With ε = 0.25" in custodian.inner_text("#answer")


def test_answers_to_older_choices_are_dropped(office, tmp_path, wait_until):
    """The first answer comes last, and is not shown; only the last choices are asked for."""
    path = write_people(tmp_path / "people.csv")
    custodian = office(Role.CUSTODIAN)
    custodian.click("text=Add a table")
    custodian.set_input_files("#file", str(path))
    follow(custodian, "button:text-is('Next')")
    custodian.check("input[name=output][value=height]")
    custodian.check("input[name=public][value=age]")
    follow(custodian, "button:text-is('Next')")
    fields = {"low": 50, "high": 250, "new_name": "children", "name": "heights"}
    for name, value in (fields | {"limit_epsilon": 3, "limit_delta": 0}).items():
        custodian.fill(f"#{name}", str(value))
    custodian.click("button:text-is('Add the table')")
    custodian.wait_for_url(re.compile(r"/tables/\d+$"))
    asked, held = [], []

    def hold(route):
        asked.append(route.request.url)
        if "epsilon=0.5&" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    custodian.goto(f"{custodian.url}/plan?epsilon=1&stages=one&interval=off&learn=none")
    custodian.route("**/plan/answer?*", hold)
    custodian.fill("#epsilon", "0.5")
    wait_until(lambda: custodian.wait_for_timeout(50) or held)
    # Between two letters nothing is asked.
    custodian.focus("#epsilon")
    custodian.keyboard.press("End")
    custodian.keyboard.type("55", delay=20)
    custodian.wait_for_selector("#answer h2:has-text('ε = 0.555')")
    assert [re.search(r"epsilon=([\d.]+)", each)[1] for each in asked] == ["0.5", "0.555"]
    # Nobody waits for it any more: the browser may refuse to take it.
    with suppress(Exception):
        held[0].fulfill(body="<p>too late</p>", content_type="text/html", status=200)
    # While a slider moves, its places are asked for, too, before it is let go of.
    box = custodian.locator("input[data-of=epsilon]").bounding_box()
    custodian.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    custodian.mouse.down()
    chosen = wait_until(lambda: custodian.input_value("#epsilon"))
    assert chosen != "0.555"
    custodian.wait_for_selector(f"#answer h2:has-text('ε = {float(chosen):g}')")
    count = len(asked)
    custodian.mouse.up()
    custodian.wait_for_timeout(600)
    # That it was let go of changes nothing.
    assert len(asked) == count
    assert "too late" not in custodian.inner_text("#answer")
    assert f"epsilon={chosen}" in custodian.url
