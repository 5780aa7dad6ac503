"""What people do on pages: add a table, plan, request, decide, predict, audit, give tokens."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from services import ROWS, register_visits, work_as, write_people
from visitors import Page

from cloakgp.privacy.spending import Cost, Spender
from cloakgp.report.controls import controls_of
from cloakgp.service.access import Role
from cloakgp.service.database import note_event
from cloakgp.service.messages import NewPerson
from cloakgp.service.models import Person
from cloakgp.service.operations.people import create_person
from cloakgp.service.operations.releases import open_release
from cloakgp.service.operations.tokens import create_token

DECLARED = {
    "output": "height",
    "public": "age",
    "holds": "numbers",
    "person": "",
    "low": "50",
    "high": "250",
    "missing_output": "refuse",
    "kind_0": "number",
    "missing_0": "refuse",
    "unit_0": "years",
    "account": "new",
    "new_name": "children",
    "limit_epsilon": "3",
    "limit_delta": "1e-6",
    "approval_epsilon": "1",
    "approval_delta": "1e-6",
    "share_epsilon": "",
    "share_delta": "",
    "name": "heights",
    "note": "of children",
}
QUICK = {"epsilon": "0.5", "delta": "1e-6", "stages": "one", "interval": "off", "learn": "none"}


@pytest.fixture
def sent(visit, tmp_path):
    """A custodian who has sent a file, and what the wizard knows of it."""
    custodian = visit(Role.CUSTODIAN)
    with write_people(tmp_path / "people.csv").open("rb") as file:
        answer = custodian.send("/add-table", files={"file": ("people.csv", file, "text/csv")})
    assert answer.url.path == "/add-table/column", answer.text
    (form,) = [each for each in Page(answer.text).forms if "output" in each["fields"]]
    where = {name: form["fields"][name] for name in ("upload", "path", "query", "called")}
    assert {each.get("value") for each in Page(answer.text).of("input")} >= {"age", "height"}
    return custodian, where


def test_a_table_is_added(sent):
    custodian, where = sent
    answer = custodian.get(
        "/add-table/declare", params={**where, "output": "height", "public": "age"}
    )
    assert "Seen: numbers" in answer.text
    assert 'name="kind_1"' not in answer.text
    made = custodian.send("/add-table/declare", {**where, **DECLARED})
    assert made.url.path.startswith("/tables/"), made.text
    for told in ("from 50 to 250", "of children", f"{ROWS}", "years"):
        assert told in made.text
    assert "room for one more release of up to ε = 3 at δ" in custodian.get("/budgets").text


def test_a_table_of_other_people_is_added(sent, visit):
    """The custodian's word stands on its page, on the account's and in the ledger."""
    custodian, where = sent
    made = custodian.send("/add-table/declare", {**where, **DECLARED, "people": "disjoint"})
    assert made.url.path.startswith("/tables/"), made.text
    assert "are in no other such table of the account, as custodian says" in made.text
    assert "Of the people of this table 0 % of the limit is used" in made.text
    account = custodian.get("/budgets/children").text
    assert "heights: 0 % of the limit used" in account
    assert "room for one more release about everybody of up to ε = 3" in account
    assert "cohort" in visit(Role.AUDITOR).get("/ledger").text


def test_a_column_that_a_private_one_equals_is_ticked_or_not_public(sent):
    custodian, where = sent
    first = custodian.send("/add-table/declare", {**where, **DECLARED})
    turned = {"output": "age", "public": "height", "account": "=children", "name": "ages"}
    asked = {**where, **DECLARED, **turned}
    assert (
        "is public: everybody may know it"
        not in custodian.get(
            "/add-table/declare", params={**where, "output": "age", "public": "height"}
        ).text
    )
    refused = custodian.send("/add-table/declare", asked)
    assert refused.status_code == 422
    assert "age cannot be private: releases of the table heights hold the public age" in (
        refused.text
    )
    custodian.send(f"{first.url.path}/withdraw")
    refused = custodian.send("/add-table/declare", asked)
    assert refused.status_code == 422
    assert "height cannot be public: a private column of the account has the same" in refused.text
    assert "height is public: everybody may know it of each person" in refused.text
    made = custodian.send("/add-table/declare", {**asked, "declared_public": "height"})
    assert made.url.path.startswith("/tables/"), made.text


def test_a_limit_below_what_was_spent_is_told_as_that(sent, service):
    custodian, where = sent
    custodian.send("/add-table/declare", {**where, **DECLARED, "people": "disjoint"})
    opened = service.ledger.account("children", cohort="heights").open_charge(
        Spender("test", unit="row", epsilon=None, delta=None, fingerprint=lambda _: None)
    )
    opened.reserve(Cost("laplace", epsilon=0.9))
    opened.close(failed=False)
    service.ledger.change_limit("children", epsilon=0.5, delta=0.0, reason="the study ended")
    account = custodian.get("/budgets/children").text
    assert "Used: more than the limit, of the people of heights: nothing about them fits" in account
    assert "heights: more than the limit used" in account
    table = custodian.get("/tables/1").text
    assert "Of the people of this table more than the limit is used" in table
    assert "100 %" not in account + table


def test_what_is_wrong_is_said_beside_what_was_typed(sent):
    custodian, where = sent
    for changed, told in (
        ({"low": "x"}, "low-wrong"),
        ({"high": "2,500"}, "may be 2500 or 2.500: write one of these"),
        ({"limit_epsilon": ""}, "a new account needs a limit"),
        ({"limit_epsilon": "-1"}, "limit_epsilon-wrong"),
        ({"account": ""}, "account-wrong"),
        # From here on the account is there.
        ({"low": "300"}, "must be more than the lowest value"),
        ({"kind_0": "category", "missing_0": "impute"}, "missing_0-wrong"),
        ({"name": ""}, "name-wrong"),
        ({"upload": "other"}, "no such upload"),
    ):
        answer = custodian.send("/add-table/declare", {**where, **DECLARED, **changed})
        assert answer.status_code in (404, 422), answer.text
        assert told in answer.text
        if "upload" not in changed:
            assert 'value="children"' in answer.text
            assert Page(answer.text).forms[-1]["fields"]["form_token"] == custodian.form_token
    again = custodian.send("/add-table/declare", {**where, **DECLARED})
    assert again.url.path.startswith("/tables/"), again.text


def test_all_that_is_wrong_is_said_at_once_and_at_its_field(sent):
    custodian, where = sent
    bad = {"low": "x", "high": "", "name": "", "account": "", "limit_epsilon": "-1"}
    answer = custodian.send("/add-table/declare", {**where, **DECLARED, **bad})
    page = Page(answer.text)
    fields = {each.get("id"): each for kind in ("input", "select") for each in page.of(kind)}
    for name in ("low", "high", "name", "account"):
        assert fields[name]["aria-invalid"] == "true", name
        assert f"{name}-wrong" in fields[name]["aria-describedby"].split()
        assert f'id="{name}-wrong"' in answer.text
        assert f'href="#{name}"' in answer.text
    # What was typed is there to be corrected.
    assert fields["low"]["value"] == "x"
    assert fields["note" if "note" in fields else "high"] is not None
    for word in ("Input should", "String should", "None", "ValueError", "pydantic"):
        assert word not in answer.text


def test_columns_are_public_by_choice_alone(visit):
    """Nothing is ticked, and what is not ticked is not read: neither private nor left out."""
    custodian = visit(Role.CUSTODIAN)
    rows = "\n".join(
        f"{number},{20 + number if number % 4 else ''},secret{number},{1000 + number}"
        for number in range(1, 41)
    )
    content = f"number,age,diagnosis,income\n{rows}\n".encode()
    answer = custodian.send("/add-table", files={"file": ("people.csv", content, "text/csv")})
    boxes = [each for each in Page(answer.text).of("input") if each.get("name") == "public"]
    assert [each["value"] for each in boxes] == ["number", "age", "diagnosis", "income"]
    assert not [each for each in boxes if "checked" in each]
    radios = [each for each in Page(answer.text).of("input") if each.get("name") == "output"]
    assert not [each for each in radios if "checked" in each]
    where = {"upload": dict(answer.url.params)["upload"], "called": "people.csv"}
    chosen = {**where, "output": "income", "public": ["age", "number"]}
    shown = custodian.get("/add-table/declare", params=chosen).text
    assert "40 rows" in shown
    assert "25 % of its cells are empty" in shown
    assert "an id, perhaps" in shown
    assert '<span class="cell">21</span>' in shown
    for unread in ("secret", "1001"):
        assert unread not in shown
    accounts = Page(shown).of("option")
    assert [each["value"] for each in accounts if each.get("value") in ("", "new", "=children")]
    for wrong, told in (
        ({"output": "income"}, "tick a public column at least"),
        ({"public": ["age"]}, "choose the private column first"),
        ({"output": "age", "public": ["age"]}, "age cannot be public"),
        ({"output": "income", "public": ["size"]}, "there is no column size"),
    ):
        again = custodian.get("/add-table/declare", params={**where, **wrong})
        assert again.status_code == 422
        assert told in again.text
        # The way on is there, with what was chosen.
        assert "2. The public columns" in again.text
        if wrong.get("public") == ["age"]:
            assert 'value="age" data-unless="output,person" checked' in again.text
    gone = custodian.get("/add-table/column", params={"upload": "other"})
    assert gone.status_code == 404
    assert 'name="file"' in gone.text


def test_no_account_is_chosen_where_there_are_some(sent):
    custodian, where = sent
    chosen = {**where, "output": "height", "public": "age"}

    def options():
        shown = Page(custodian.get("/add-table/declare", params=chosen).text)
        return [
            (each["value"], "selected" in each)
            for each in shown.of("option")
            if each.get("value") in ("", "new", "=first", "=second")
        ]

    assert ("new", True) in options()
    for name in ("first", "second"):
        custodian.send("/budgets/new", {"name": name, "limit_epsilon": "1", "limit_delta": "0"})
    assert [each for each in options() if each[1]] == []
    assert {each[0] for each in options()} >= {"=first", "=second", "new"}


def test_kinds_are_changed_and_kept(sent):
    """A number that is a code becomes a category with levels that are declared."""
    custodian, where = sent
    levels = {"kind_0": "category", "levels_0": "1\r\n<b>\r\n", "missing_0": "category"}
    answer = custodian.send("/add-table/declare", {**where, **DECLARED, **levels, "low": "x"})
    assert re.search(r"<textarea[^>]*>1\s+&lt;b&gt;\s*</textarea>", answer.text), answer.text
    made = custodian.send("/add-table/declare", {**where, **DECLARED, **levels})
    assert "2 categories (1, &lt;b&gt;)" in made.text


def test_classes_are_declared_one_a_line(visit):
    custodian = visit(Role.CUSTODIAN)
    lines = "\n".join(f"{age},{'yes' if age % 2 else 'no'}" for age in range(20))
    files = {"file": ("ill.csv", f"age,ill\n{lines}\n".encode(), "text/csv")}
    answer = custodian.send("/add-table", files=files)
    upload = dict(answer.url.params)["upload"]
    declared = DECLARED | {
        "output": "ill",
        "public": "age",
        "holds": "classes",
        "classes": "no\r\n yes \r\n",
    }
    made = custodian.send("/add-table/declare", {"upload": upload, **declared})
    assert "one of no, yes" in made.text


def test_files_that_are_no_tables_are_refused(visit):
    custodian = visit(Role.CUSTODIAN)
    for files in ({"file": ("a.exe", b"x", "text/csv")}, {"file": ("", b"", "text/csv")}, None):
        answer = custodian.send("/add-table", files=files)
        assert answer.status_code == 422
        assert "Add a table" in answer.text
    outside = custodian.send("/add-table", {"path": "/etc/passwd"})
    assert "in none of the folders" in outside.text


def test_the_way_of_a_request(visit, table):
    analyst, approver = visit(Role.ANALYST), visit(Role.APPROVER)
    first = analyst.page(f"/tables/{table.id}/plan")
    assert [each for each in first.of("div") if "data-ask" in each]
    plan = analyst.get(f"/tables/{table.id}/plan", params=QUICK | {"vary": ["age", "other"]})
    assert "vary=age" in plan.text
    assert "vary=other" not in plan.text
    assert "a guess is right" not in plan.text
    compared = analyst.get(f"/tables/{table.id}/plan", params=QUICK | {"figures": "full"})
    assert "a guess is right" in compared.text
    for told in ("Expected error", "The guess of an attacker", "What becomes public"):
        assert told in plan.text
    big = QUICK | {"epsilon": "1.5"}
    form = analyst.get(f"/tables/{table.id}/request", params=big)
    fields = next(each["fields"] for each in Page(form.text).forms if "once" in each["fields"])
    assert (fields["epsilon"], fields["learn"]) == ("1.5", "none")
    asked = {name: value for name, value in fields.items() if name} | {"purpose": "figure <3>"}
    first, second = (analyst.send(f"/tables/{table.id}/request", asked) for _ in range(2))
    assert first.url == second.url
    assert "figure &lt;3&gt;" in first.text
    assert "Approve" not in first.text
    inbox = approver.get("/requests")
    assert "Waiting for you" in inbox.text
    decision = approver.get(first.url.path)
    for told in ("What becomes public", "Cost", "0 % reserved"):
        assert told in decision.text
    done = approver.send(f"{first.url.path}/approve", {"remark": "fine"})
    assert "published" in done.text
    assert ": fine" in done.text
    late = approver.send(f"{first.url.path}/reject")
    assert late.status_code == 409
    assert "the request is approved" in late.text


def test_nobody_approves_their_own(visit, table, service):
    with service.database.writing() as session:
        both = create_person(session, NewPerson(name="both", roles=[Role.ANALYST, Role.APPROVER]))
        token = create_token(session, both, days=1).token
    visitor = visit(None, token)
    asked = QUICK | {"epsilon": "1.5", "purpose": "mine"}
    made = visitor.send(f"/tables/{table.id}/request", asked)
    assert "Your own request needs the decision of another person" in made.text
    assert not [form for form in Page(made.text).forms if "approve" in str(form["attributes"])]
    assert visitor.send(f"{made.url.path}/approve").status_code == 403
    gone = visitor.send(f"{made.url.path}/withdraw")
    assert "withdrawn" in gone.text


def test_a_job_that_waits_is_followed_and_cancelled(visit, table, service):
    service.dispatcher.at_once = False
    analyst = visit(Role.ANALYST)
    made = analyst.send(f"/tables/{table.id}/request", QUICK | {"purpose": "a test"})
    page = Page(made.text)
    (section,) = [each for each in page.of("section") if "data-job" in each]
    assert re.fullmatch(r"/api/jobs/\d+/events", section["data-job"])
    (form,) = [each for each in page.forms if "cancel" in each["attributes"]["action"]]
    after = analyst.send(form["attributes"]["action"])
    assert "nothing was spent" in after.text


@pytest.fixture
def large(visit):
    """The number of a table for which a few places stand."""
    rng = np.random.default_rng(4)
    ages, heights = rng.uniform(1, 18, 300), rng.uniform(80, 180, 300)
    rows = "\n".join(f"{a:.2f},{h:.1f}" for a, h in zip(ages, heights, strict=True))
    custodian = visit(Role.CUSTODIAN)
    files = {"file": ("large.csv", f"age,height\n{rows}\n".encode(), "text/csv")}
    upload = dict(custodian.send("/add-table", files=files).url.params)["upload"]
    added = {"upload": upload, **DECLARED, "name": "large", "new_name": "many"}
    made = custodian.send("/add-table/declare", added)
    return made.url.path.rpartition("/")[2]


def test_better_figures_take_the_place_of_approximate_ones(visit, large):
    analyst = visit(Role.ANALYST)
    fast = {"epsilon": "1", "delta": "0", "learn": "none"}
    plan = analyst.get(f"/tables/{large}/plan/answer", params=fast).text
    assert "≈" in plan
    assert "within 20 %" in plan
    assert "Request this release" in plan
    later = [html.unescape(each) for each in re.findall(r'data-later="([^"]+)"', plan)]
    error, budgets = sorted(later, reverse=True)
    exact = analyst.get(error).text
    assert "≈" not in exact
    assert "data-later" not in exact
    assert 'id="more-of-plan"' in exact
    # Approximate comparisons, exact ones after them, and then no more.
    rough = analyst.get(budgets).text
    assert rough.count("≈") > 5
    [full] = re.findall(r'data-later="([^"]+)"', rough)
    full = analyst.get(html.unescape(full)).text
    assert "≈" not in full
    assert "a guess is right" in full
    assert "data-later" not in full
    # Without a script a link leads to all of it.
    whole = html.unescape(re.search(r'class="waiting"><a href="([^"]+)"', plan)[1])
    assert "a guess is right" in analyst.get(whole).text
    drawn = analyst.get(f"/tables/{large}/plan/picture", params=fast)
    dark = analyst.get(f"/tables/{large}/plan/picture", params=fast | {"scheme": "dark"})
    assert drawn.headers["content-type"] == dark.headers["content-type"] == "image/png"
    assert drawn.content != dark.content


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("epsilon", "x", "must be a number"),
        ("epsilon", "-1", "must be at least"),
        ("delta", "2", "must be"),
        ("quantiles", "a; b", "must be a number"),
        ("mean", "high", "must be a number"),
        ("calibrate", "some", "must be a number"),
    ],
)
def test_a_plan_says_what_is_wrong_at_its_field(visit, table, field, value, told):
    analyst = visit(Role.ANALYST)
    address = f"/tables/{table.id}/plan"
    answer = analyst.get(address, params=QUICK | {field: value}).text
    [wrong] = re.findall(rf'id="{field}-wrong">([^<]+)<', answer)
    assert told in html.unescape(wrong)
    page = Page(answer)
    fields = {each.get("id"): each for each in page.of("input")}
    assert fields[field]["aria-invalid"] == "true"
    assert f"{field}-wrong" in fields[field]["aria-describedby"].split()
    # Where the answer alone is fetched, it leads to the field.
    assert (
        f'href="#{field}"' in analyst.get(f"{address}/answer", params=QUICK | {field: value}).text
    )


def test_a_new_account_says_what_is_wrong_at_its_field(visit):
    custodian = visit(Role.CUSTODIAN)
    custodian.page("/budgets/new")
    sent = {"name": "", "unit": "row", "limit_epsilon": "much", "limit_delta": "0"}
    answer = custodian.send("/budgets/new", sent).text
    assert 'id="limit_epsilon-wrong"' in answer
    assert 'href="#limit_epsilon"' in answer


def test_plans_say_what_is_wrong(visit, table):
    analyst = visit(Role.ANALYST)
    for asked, told in (
        ("epsilon=x", "ε must be a number"),
        ("epsilon=-1", "must be"),
        ("epsilon=1&inputs=height", "height"),
        ("epsilon=1&delta=2", "must be less than 1"),
        ("epsilon=nan", "finite"),
        ("epsilon=1&ticked=yes", "tick a public column at least"),
    ):
        answer = analyst.get(f"/tables/{table.id}/plan?{asked}")
        assert told in answer.text, asked
        assert 'role="alert"' in answer.text
        assert "<html" not in analyst.get(f"/tables/{table.id}/plan/answer?{asked}").text


def test_without_room_nobody_is_said_to_approve(visit, table):
    analyst = visit(Role.ANALYST)
    none = analyst.get(f"/tables/{table.id}/plan/answer", params=QUICK | {"epsilon": "15"}).text
    some = analyst.get(f"/tables/{table.id}/plan/answer", params=QUICK).text
    assert "There is no room for this" in none
    assert "approval" not in none
    assert "Request this release" not in none
    assert "approval" in some


def test_a_delta_for_which_there_is_no_room_is_left_out_and_said(visit, table):
    analyst = visit(Role.ANALYST)
    asked = {"epsilon": "1.5", "delta": "0.001"}
    told = analyst.get(f"/tables/{table.id}/plan/answer", params=asked).text
    assert "There is no room for noise that spends δ = 0.001." in told
    assert "With ε = 1.5, no δ" in told
    assert "epsilon=1.5&amp;delta=0.0" in told.split("Request this release")[0]
    named = analyst.get(f"/tables/{table.id}/plan/answer", params=asked | {"noise": "gaussian"})
    assert "Request this release" not in named.text


@pytest.fixture
def release(visit, table):
    """The address of a release's page."""
    analyst = visit(Role.ANALYST)
    made = analyst.send(f"/tables/{table.id}/request", QUICK | {"purpose": "a test"})
    return re.search(r'href="(/releases/\d+)"', made.text)[1]


def test_what_is_predicted_is_what_the_release_predicts(visit, release, service, tokens):
    reader = visit(Role.READER)
    answer = reader.get(f"{release}/answer", params={"x0": "12.5"})
    made = open_release(work_as(service, tokens[Role.READER]), int(release.rpartition("/")[2]))
    found = made.predict_frame({"age": [12.5]})
    shown = float(re.search(r'class="large">([\d.]+)<', answer.text)[1])
    assert shown == pytest.approx(found["mean"][0], abs=float(found["sd"][0]) / 50)
    low, high = made.predict_interval({"age": [12.5]}, 0.8)
    share = 100 * made.probability_above({"age": [12.5]}, 110.5)[0]
    asked = {"x0": "12.5", "coverage": "80", "above": "110,5"}
    answer = reader.get(f"{release}/answer", params=asked)
    ends = re.search(r"A new person: from ([\d.]+) to ([\d.]+), with 80 %", answer.text)
    np.testing.assert_allclose([float(end) for end in ends.groups()], [low[0], high[0]], rtol=1e-2)
    assert f"A new person is above 110.5 with {share:.1f} %" in answer.text
    page = reader.get(release, params=asked).text
    assert '<option value="80" selected>' in page
    assert 'value="110,5"' in page
    for bad, told in (
        ({"above": "tall"}, "above must be a number"),
        ({"above": "1,000"}, "above may be 1000 or 1.000: write one of these"),
        (
            {"coverage": "100"},
            "interval must lie between 0 and 1",
        ),
    ):
        assert told in reader.get(f"{release}/answer", params={"x0": "12.5"} | bad).text
    beyond = reader.get(f"{release}/answer", params={"x0": "300"}).text
    ages = [each for each in controls_of(made) if each.name == "age"]
    told = f"is outside {ages[0].in_words(ages[0].lo)} to {ages[0].in_words(ages[0].hi)}"
    assert told in beyond
    assert told not in answer.text
    assert "must be a number" in reader.get(f"{release}/answer", params={"x0": "old"}).text
    assert "must be a number" in reader.get(f"{release}/answer", params={"x0": "inf"}).text


def asked_for(visitor, table, **choices):
    """The address of the page of a release of some choices, asked for by the forms of its pages."""
    plan = visitor.get(f"/tables/{table.id}/plan", params=QUICK | choices)
    address = re.search(rf'href="(/tables/{table.id}/request[^"]+)"', plan.text)
    form = visitor.get(html.unescape(address[1]))
    hidden = [each for each in Page(form.text).of("input") if each.get("type") == "hidden"]
    asked = {
        "purpose": "a test",
        "inputs": [each["value"] for each in hidden if each["name"] == "inputs"],
    }
    asked |= {each["name"]: each["value"] for each in hidden if each["name"] != "inputs"}
    made = visitor.send(f"/tables/{table.id}/request", asked)
    return made.text, re.search(r'href="(/releases/\d+)"', made.text)[1]


def test_rows_that_are_kept_out_are_a_field_of_plans(visit, table):
    analyst = visit(Role.ANALYST)
    plan = analyst.get(f"/tables/{table.id}/plan", params=QUICK | {"calibrate": "0,4"}).text
    # Of 24 rows as many as that are too few, and the plan says so.
    assert "calibrate keeps 10 rows out of the fit, too few" in plan
    assert 'name="calibrate" inputmode="decimal" autocomplete="off" value="0,4"' in plan
    assert "so that the account counts such a release once." in plan
    for bad, told in (("0.7", "less than 0.5"), ("much", "rows kept out must be a number")):
        refused = analyst.get(f"/tables/{table.id}/plan", params=QUICK | {"calibrate": bad}).text
        assert told in refused
    request, _ = asked_for(analyst, table, calibrate="off")
    assert "<dt>Rows kept out</dt><dd>off</dd>" in request


def test_quantiles_are_asked_for_and_predicted(visit, table, service, tokens):
    analyst, reader = visit(Role.ANALYST), visit(Role.READER)
    request, release = asked_for(analyst, table, quantiles="0,1; 0.9")
    assert "<dt>Quantiles</dt><dd>0.1, 0.9</dd>" in request
    made = open_release(work_as(service, tokens[Role.READER]), int(release.rpartition("/")[2]))
    found = made.predict_frame({"age": [12.5]})
    asked = {"x0": "12.5", "coverage": "80", "above": "110,5"}
    answer = reader.get(f"{release}/answer", params=asked).text
    for level in (10, 90):
        told = re.search(
            rf"<dt>{level} % are at most</dt><dd>([\d.]+); from ([\d.]+) to ([\d.]+), with 95 %",
            answer,
        )
        known = [found[f"q_{level}{end}"][0] for end in ("", "_lower", "_upper")]
        np.testing.assert_allclose([float(each) for each in told.groups()], known, rtol=1e-2)
    share = 100 * made.probability_above({"age": [12.5]}, 110.5)[0]
    assert f"A new person is above 110.5 with {share:.1f} %" in answer
    assert "on average" not in answer
    page = reader.get(release).text
    assert 'name="limits"' not in page
    files = {"file": ("new.csv", b"age\n5\n10\n", "text/csv")}
    head = reader.send(f"{release}/table", {"above": "120"}, files=files).text.split()[0]
    assert head.split(",")[:4] == ["age", "q_10", "q_10_lower", "q_10_upper"]
    picture = reader.get(f"{release}/picture")
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")


def test_counts_are_asked_for_and_predicted(visit, table, service, tokens, tmp_path):
    assert table.output == "height"
    visits = register_visits(service, tokens[Role.CUSTODIAN], tmp_path)
    analyst, reader = visit(Role.ANALYST), visit(Role.READER)
    form = analyst.get(f"/tables/{visits.id}/plan").text
    assert '<option value="years">' in form
    assert '<option value="pay">' not in form
    chosen = {"counts": "yes", "exposure": "years", "inputs": ["age", "years"]}
    request, release = asked_for(analyst, visits, overdispersion="0,1", **chosen)
    for told in ("<dt>Exposure</dt><dd>years</dd>", "rates of events", "columns</dt><dd>age</dd>"):
        assert told in request
    made = open_release(work_as(service, tokens[Role.READER]), int(release.rpartition("/")[2]))
    assert (made.input_names, made.likelihood.overdispersion) == (("age",), 0.1)
    assert 'name="exposure"' in reader.get(release).text
    asked = {"x0": "60", "coverage": "90", "above": "2", "exposure": "0,5"}
    answer = reader.get(f"{release}/answer", params=asked).text
    ends = re.search(r"A new person: from ([\d.]+) to ([\d.]+), with 90 %", answer).groups()
    known = made.predict_interval({"age": [60.0]}, 0.9, exposure=0.5)
    np.testing.assert_allclose([float(end) for end in ends], np.ravel(known))
    share = 100 * made.probability_above({"age": [60.0]}, 2, exposure=0.5)[0]
    assert f"A new person is above 2 with {share:.1f} %" in answer
    for bad, told in (("x", "exposure must be a number"), ("0", "positive and finite")):
        assert told in reader.get(f"{release}/answer", params=asked | {"exposure": bad}).text
        assert reader.get(release, params=asked | {"exposure": bad}).status_code == 422
    files = {"file": ("new.csv", b"age,years\n30,2\n60,0.5\n", "text/csv")}
    more = {"above": "2", "exposure": "years"}
    rows = reader.send(f"{release}/table", more, files=files).text.split()
    assert rows[0].startswith("age,years,median,sd,lower,upper,above_2")
    assert float(rows[2].split(",")[-1]) == pytest.approx(share / 100, abs=5.1e-5)


def test_more_is_asked_given_a_release(visit, release):
    """From its page, over the cost of both, to a release of two visits."""
    analyst, reader = visit(Role.ANALYST), visit(Role.READER)
    number = release.rpartition("/")[2]
    (form,) = [
        each
        for each in Page(analyst.get(release).text).forms
        if each["attributes"].get("action") == f"{release}/visit"
    ]
    assert {"table", "epsilon", "delta"} <= set(form["fields"])
    assert f"{release}/visit" not in reader.get(release).text
    asked = {"table": "1", "epsilon": "0.3", "delta": ""}
    page = analyst.get(f"{release}/visit", params=asked)
    assert page.url.path == "/tables/1/request"
    told = " ".join(page.text.split())
    assert "Request a later visit of height" in told
    assert "on top of (ε, δ) =" in told or "on top of ε = 0.5" in told
    assert "after this visit" in told
    fields = {"after": number, "epsilon": "0.3", "purpose": "a further test"}
    made = analyst.send("/tables/1/request", fields)
    assert f'<a href="{release}">release {number}</a>' in made.text
    second = re.search(r'href="(/releases/\d+)"(?! *>release)[^>]*>See the release', made.text)[1]
    assert second != release
    assert "asked 2 times" in analyst.get(second).text
    # The budget of this visit is not that of all.
    before = f'<a href="{release}">release {number}</a>'
    assert f"what {before} spent comes before it" in analyst.get(second).text
    assert f"after {before}, whose budget comes before it" in analyst.get("/releases").text
    refused = analyst.send("/tables/1/request", fields | {"inputs": "age"})
    assert "takes these from the release: inputs" in html.unescape(refused.text)


def test_a_table_is_predicted(visit, release):
    reader = visit(Role.READER)
    files = {"file": ("new.csv", b"age\n5\n10\n", "text/csv")}
    answer = reader.send(f"{release}/table", files=files)
    assert "attachment" in answer.headers["content-disposition"]
    head, *rows = answer.text.split()
    assert (head, len(rows)) == ("age,mean,sd,lower,upper", 2)
    far = reader.send(f"{release}/table", files={"file": ("new.csv", b"age\n500\n", "text/csv")})
    assert "Nothing was asked there" in far.headers["cloakgp-remarks"]
    wide = reader.send(f"{release}/table", {"limits": "person"}, files=files)
    assert wide.text != answer.text
    more = {"coverage": "90", "quantiles": "0.1; 0,5", "above": "120"}
    head = reader.send(f"{release}/table", more, files=files).text.split()[0]
    assert head == "age,mean,sd,lower,upper,lo_90,hi_90,q_10,q_50,above_120"
    refused = reader.send(f"{release}/table", {"quantiles": "2"}, files=files)
    assert (refused.status_code, "between 0 and 1" in refused.text) == (422, True)
    for name, content, told in (
        ("new.csv", b"weight\n5\n", "age"),
        ("new.db", b"x", "send .csv"),
        ("", b"", "choose a file"),
    ):
        refused = reader.send(f"{release}/table", files={"file": (name, content, "text/csv")})
        assert refused.status_code == 422
        assert told in refused.text


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("typed", ["1e308", "-1e308", "1e300"])
def test_inputs_beyond_computation_are_refused(visit, release, typed):
    reader = visit(Role.READER)
    for path in (f"{release}?x0={typed}", f"{release}/answer?x0={typed}"):
        answer = reader.get(path)
        assert answer.status_code < 500
        assert "gives NaN or infinite covariances on these inputs" in answer.text


def test_the_page_that_predicts_reaches_nothing(visit, release):
    answer = visit(Role.READER).get(f"{release}/page")
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert policy.startswith("default-src 'none'")
    assert "content-disposition" not in answer.headers


@pytest.mark.usefixtures("release")
def test_the_ledger_is_a_timeline(visit):
    auditor = visit(Role.AUDITOR)
    page = auditor.get("/ledger")
    for told in ("The account children was opened.", "is spent.", "“a test (service request 1)”"):
        assert told in page.text
    # An entry, opened, has a line for each of its parts.
    whole = re.search(r"<pre[^>]*>(.*?)</pre>", page.text, re.S)[1]
    assert "\\n" not in whole
    assert json.loads(html.unescape(whole))
    assert whole.count("\n") > 3
    assert "Verified: nothing was changed" in auditor.send("/ledger").text
    few = auditor.get("/ledger", params={"after": 2, "account": "children"})
    assert few.text.count("<li>\n<div>") < page.text.count("<li>\n<div>")
    assert "release requested" in auditor.get("/events").text.lower()


def test_findings_of_an_audit_are_shown(visit, monkeypatch):
    from cloakgp.service.messages import AuditView

    monkeypatch.setattr(
        "cloakgp.service.operations.audits.verify_ledger",
        lambda _: AuditView(sound=False, entries=3, digest="a", findings=["entry 2 was changed"]),
    )
    answer = visit(Role.AUDITOR).send("/ledger")
    assert "Something is wrong" in answer.text
    assert "entry 2 was changed" in answer.text


def test_tokens_are_shown_once(visit):
    admin = visit(Role.ADMINISTRATOR)
    made = admin.send("/people", {"name": "Nora", "roles": ["reader", "analyst"]})
    person = made.url.path
    issued = admin.send(f"{person}/tokens", {"label": "laptop", "days": "7"})
    token = re.search(r'id="new-token">([^<]+)<', issued.text)[1]
    assert visit(None, token).get("/").url.path == "/budgets"
    again = admin.get(person)
    assert token not in again.text
    assert "laptop" in again.text
    (revoke,) = [f for f in Page(again.text).forms if "revoke" in f["attributes"]["action"]]
    assert "revoked" in admin.send(revoke["attributes"]["action"]).text
    assert visit(None, token).form_token == ""


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "reader", "roles": ["reader"]}, "a person of that name"),
        ({"name": "", "roles": []}, "name: "),
        ({"name": "X", "roles": ["king"]}, "roles of the list"),
        ({"name": "X", "roles": ["administrator", "reader"]}, "no other role"),
    ],
)
def test_people_who_cannot_be_added(visit, fields, told):
    answer = visit(Role.ADMINISTRATOR).send("/people", fields)
    assert answer.status_code in (409, 422)
    assert told in answer.text
    field = "roles" if "role" in told else "name"
    assert_wrong(answer, field, within=("input", "fieldset"))
    # What was sent is there to be mended.
    if fields["name"]:
        assert f'value="{fields["name"]}"' in answer.text
        ticked = [each for each in Page(answer.text).of("input") if "checked" in each]
        known = set(fields["roles"]) & {str(role) for role in Role}
        assert {each["value"] for each in ticked} == known


def assert_wrong(answer, field, within=("input",)):
    """What is wrong is said at a field, and linked from the top."""
    page = Page(answer.text)
    (found,) = [each for each in page.of(*within) if each.get("id") == field]
    assert found["aria-invalid"] == "true"
    assert f"{field}-wrong" in found["aria-describedby"].split()
    assert f'href="#{field}"' in answer.text


@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("tokens", {"label": "x" * 2000, "days": "7"}, "label"),
        ("tokens", {"label": "laptop", "days": "a week"}, "days"),
        ("tokens", {"label": "laptop", "days": "0"}, "days"),
        ("", {"roles": ["king"]}, "roles"),
    ],
)
def test_what_is_wrong_with_a_person_is_said_at_its_field(visit, path, fields, field):
    admin = visit(Role.ADMINISTRATOR)
    here = admin.send("/people", {"name": "Nora", "roles": ["reader"]}).url.path
    answer = admin.send(f"{here}/{path}".rstrip("/"), fields)
    assert answer.status_code == 422
    assert_wrong(answer, field, within=("input", "fieldset"))
    if "label" in fields:
        assert fields["label"] in answer.text


@pytest.mark.usefixtures("table")
def test_limits_and_rules_are_changed(visit):
    custodian = visit(Role.CUSTODIAN)
    here = "/budgets/children"
    limit = {"limit_epsilon": "5", "limit_delta": "1e-6", "reason": "more people agreed"}
    proposed = custodian.send(f"{here}/limit", limit).text
    assert "The limit is ε = 3" in proposed
    assert "takes effect when another person confirms it" in proposed
    assert "more people agreed" in proposed
    approver = visit(Role.APPROVER)
    assert "1 change waits" in approver.get("/budgets").text
    assert "/proposals/1/confirm" not in proposed
    assert custodian.send(f"{here}/proposals/1/confirm").status_code == 403
    assert "The limit is ε = 5" in approver.send(f"{here}/proposals/1/confirm").text
    assert "the proposal is confirmed" in approver.send(f"{here}/proposals/1/reject").text
    lower = limit | {"limit_epsilon": "2"}
    assert "The limit is ε = 2" in custodian.send(f"{here}/limit", lower).text
    kept = {"share_epsilon": "2", "share_delta": "1e-6"}
    assert "always" in custodian.send(f"{here}/rules", kept).text
    kept["approval_epsilon"] = "2"
    assert "above ε = 2" not in custodian.send(f"{here}/rules", kept).text
    assert "Take it back" in custodian.get(here).text
    assert "Take it back" not in custodian.send(f"{here}/proposals/2/reject").text
    share = {"person": "analyst", "own_epsilon": "1", "own_delta": "0"}
    assert custodian.send(f"{here}/share", share).url.path == here
    for path, fields, told in (
        ("limit", {"limit_epsilon": "5"}, "reason"),
        ("limit", {"limit_epsilon": "x", "reason": "a"}, "limit_epsilon"),
        ("rules", {"approval_epsilon": "-1"}, "approval_epsilon"),
        ("rules", {"share_epsilon": "1", "share_delta": "2"}, "share_delta"),
        ("share", {"person": "nobody", "own_epsilon": "1"}, "person"),
        ("share", {"person": "analyst", "own_epsilon": "much"}, "own_epsilon"),
    ):
        answer = custodian.send(f"{here}/{path}", fields)
        assert answer.status_code in (404, 422)
        assert_wrong(answer, told)
        for name, value in fields.items():
            assert {"name": name, "value": value}.items() <= next(
                each for each in Page(answer.text).of("input") if each.get("name") == name
            ).items()
    assert "change_limit" not in visit(Role.ANALYST).get(here).text
    assert "New limit" not in visit(Role.ANALYST).get(here).text


def test_an_account_has_a_page_of_its_own_whatever_its_name(visit):
    custodian = visit(Role.CUSTODIAN)
    name = "a & b? <c> #1 %"
    new = {"name": name, "unit": "person", "limit_epsilon": "1", "limit_delta": "0"}
    listed = custodian.send("/budgets/new", new)
    (link,) = [each["href"] for each in Page(listed.text).of("a") if "%3C" in each.get("href", "")]
    assert "for every\nperson" in custodian.get(link).text
    assert json.dumps(name)[1:-1] not in listed.text
    again = custodian.send("/budgets/new", new)
    assert again.status_code == 409


def test_a_column_that_may_name_persons_is_pointed_at(visit):
    custodian = visit(Role.CUSTODIAN)
    for name, told in (("household", True), ("weight", False)):
        content = f"age,{name},height\n5,1,100\n".encode()
        files = {"file": ("people.csv", content, "text/csv")}
        assert (f"{name} may name it." in custodian.send("/add-table", files=files).text) == told


def test_files_may_be_larger_than_other_forms(visit):
    custodian = visit(Role.CUSTODIAN)
    content = b"age,height\n" + b"5,100\n" * 200_000
    files = {"file": ("people.csv", content, "text/csv")}
    assert len(content) > custodian.client.app.state.service.settings.body
    assert custodian.send("/add-table", files=files).url.path == "/add-table/column"
    for path in ("/sign-in", "/budgets/new"):
        assert custodian.send(path, {"token": "x", "name": "x" * 2_000_000}).status_code == 413


def test_somebody_leaves_and_their_name_is_erased(visit, tokens):
    admin = visit(Role.ADMINISTRATOR)
    reader = next(
        each["href"] for each in Page(admin.get("/people").text).of("a") if "4" in each["href"]
    )
    identity = {"issuer": "https://id.example.org", "subject": "subject-1"}
    linked = admin.send(f"{reader}/identities", identity).text
    assert "subject-1" in linked
    assert "subject-1" not in admin.send(f"{reader}/identities/unlink", identity).text
    replaced = admin.send(f"{reader}/tokens/4/rotate", {"grace": "24"})
    assert replaced.status_code == 201
    assert "It is shown this once" in replaced.text
    assert "first withdraw their access" in admin.send(f"{reader}/erase").text
    assert "Erase the name" in admin.send(reader, {"roles": "reader"}).text
    assert "erased person 4" in admin.send(f"{reader}/erase").text
    assert visit(Role.READER).form_token == ""
    assert "erased person 4" in visit(Role.AUDITOR).get("/events").text
    assert tokens[Role.READER] not in replaced.text


def test_long_lists_come_in_pages(visit, service):
    with service.database.writing() as session:
        session.add_all([Person(name=f"p{number:03}", roles=["reader"]) for number in range(60)])
        for number in range(60):
            note_event(session, who="service", what=f"event {number}")
    admin, auditor = visit(Role.ADMINISTRATOR), visit(Role.AUDITOR)
    first = admin.get("/people").text
    (more,) = [each["href"] for each in Page(first).of("a") if "after=" in each.get("href", "")]
    second = admin.get(more).text
    names = re.findall(r">(p\d{3})<", first + second)
    assert names == [f"p{number:03}" for number in range(60)]
    events = auditor.get("/events")
    (more,) = [
        each["href"] for each in Page(events.text).of("a") if "before=" in each.get("href", "")
    ]
    assert "Event 59" in events.text
    assert "Event 0<" in auditor.get(more).text.replace("\n", "<")
