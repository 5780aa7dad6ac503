"""`cloakgp custodians` as users type it: a plan, two custodians, a coordinator, and refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from services import add_custodians, add_people, opened, serving
from typer.testing import CliRunner

from cloakgp import Release, load
from cloakgp.cli import app
from cloakgp.client import Client
from cloakgp.custodians import Site
from cloakgp.data.tables import read_people
from cloakgp.ledger import Ledger
from cloakgp.service.app import create_app

PLAN = [
    *("plan", "shared", "--output", "height", "--inputs", "age", "--sites", "north,south"),
    *("--bounds", "40", "240", "--epsilon", "1", "--stages", "one", "--interval", "off"),
    *("--inducing", "5", "--learn", "none"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("north", "south"):
        age = rng.integers(20, 80, size=30)
        height = (120.0 + age / 2 + rng.normal(0, 5, size=30)).round(1)
        pd.DataFrame({"age": age, "height": height}).to_csv(f"{name}.csv", index=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["custodians", *map(str, words)])


def done(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


TRUSTING = ("--trust-exchange",)


def answer(name, *more, bound=TRUSTING):
    words = ["answer", "shared", f"{name}.csv", "--site", name, "--own", f"own-{name}"]
    return run(*words, *bound, *more)


def step():
    return [answer(name).output for name in ("north", "south")]


def test_a_release_of_two_custodians(folder):
    told = done(*PLAN)
    digest = told.partition("Wrote the plan to shared: ")[2][:19]
    assert len(digest.replace(" ", "")) == 16
    assert f"Joined: the plan {digest}" in answer("north").output
    waiting = run("collect", "shared", "-o", "release.cloak")
    assert waiting.exit_code != 0
    assert "waiting for south to join" in " ".join(waiting.output.split())
    assert not (folder / "release.cloak").exists()
    step()
    assert "waiting for north, south to answer" in " ".join(run("collect", "shared").output.split())
    assert all("Answered" in told for told in step())
    assert "to open their masks" in " ".join(run("collect", "shared").output.split())
    assert all("Opened" in told for told in step())
    told = done("collect", "shared", "-o", "release.cloak")
    assert "60 rows, 1-differentially private" in told
    assert "any 1 of the custodians together" in told
    release = Release.load(folder / "release.cloak")
    assert release.predict([[40.0]]).shape == (1,)
    assert "The release is there" in step()[0]
    shown = " ".join(CliRunner().invoke(app, ["show", "release.cloak"]).output.split())
    assert "none of whom showed an output to another" in shown


def test_what_was_agreed_is_shown():
    done(*PLAN)
    assert "roster: not closed yet" in done("show", "shared")
    step()
    run("collect", "shared")
    told = done("show", "shared")
    assert "north: 30 rows, key " in told
    assert "asked, in attempt 1: north, south" in told


def test_only_the_roster_that_was_agreed_is_answered():
    done(*PLAN)
    step()
    run("collect", "shared")
    digest = done("show", "shared").partition("roster: ")[2][:49]
    result = answer("north", "--agreed", "0123 4567 " * 5)
    assert result.exit_code != 0
    assert "another than was agreed" in " ".join(result.output.split())
    assert "40 digits" in " ".join(answer("north", "--agreed", digest[:19]).output.split())
    assert "Answered" in answer("north", "--agreed", digest).output


def test_a_custodian_who_does_not_join_is_left_out(folder):
    done(*[word.replace("north,south", "north,south,west") for word in PLAN])
    step()
    result = run("collect", "shared", "--without", "west")
    assert "Going on without west" in result.output
    step()
    run("collect", "shared")
    step()
    assert "60 rows" in done("collect", "shared", "-o", "release.cloak")
    assert (folder / "release.cloak").exists()


def test_a_custodians_ledger_counts(folder):
    ledger = Ledger.create(folder / "ledger.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    done(*PLAN)
    words = ["--ledger", "ledger.db", "--account", "patients"]
    for _ in range(3):
        assert answer("north", *words).exit_code == 0
        answer("south")
        run("collect", "shared")
    [standing] = ledger.standings()
    assert standing.used == pytest.approx(1.0)
    assert standing.open == ()
    assert answer("north", "--ledger", "ledger.db").exit_code != 0


def exchange_plan(*changed):
    """Put another plan in the place of the one that was agreed, as who can write there may."""
    Path("other/plan.json").unlink(missing_ok=True)
    done(*[word.replace("shared", "other") for word in PLAN], *changed)
    Path("shared/plan.json").write_bytes(Path("other/plan.json").read_bytes())


EXCHANGED = ["--output", "ward", "--inputs", "age,height"]


@pytest.fixture
def wards():
    """Tables with another column, which nobody agreed to."""
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(ward=np.arange(30) % 3).to_csv(f"{name}.csv", index=False)


def nothing_was_sent():
    return not Path("shared/sites").exists()


@pytest.mark.usefixtures("wards")
def test_the_first_run_shows_the_plan_and_sends_nothing():
    """Whoever wrote the plan could have named the private column among the public ones."""
    done(*PLAN)
    exchange_plan(*EXCHANGED)
    result = answer("north", bound=())
    told = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "sent to all, row by row: age, height; private: ward" in told
    assert "bounds of ward: 40 to 240" in told
    assert "Nothing was sent of the private column" in told
    assert "--plan-agreed" in told
    assert nothing_was_sent()
    # Nor is it taken for agreed to by the next run.
    assert answer("north", bound=()).exit_code == 1
    assert nothing_was_sent()


def test_the_roster_is_compared_before_anything_is_answered():
    """Whoever can write there could have put keys of their own in the place of the others'."""
    done(*PLAN)
    digest = done("show", "shared").partition("plan: ")[2][:49]
    for name in ("north", "south"):
        assert "Joined" in answer(name, "--plan-agreed", digest, bound=()).output
    run("collect", "shared")
    result = answer("north", bound=())
    told = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "run this again with --agreed and its digits" in told
    assert "south: 30 rows, key " in told
    assert not list(Path("shared").rglob("answers"))
    roster = told.partition("roster: ")[2][:49]
    assert "Answered" in answer("north", "--agreed", roster, bound=()).output
    assert "Answered" in answer("south", "--agreed", roster, bound=()).output
    run("collect", "shared")
    # What was compared once is noted.
    assert all("Opened" in answer(name, bound=()).output for name in ("north", "south"))


def test_a_custodians_own_folder_is_not_within_the_shared_one():
    done(*PLAN)
    words = ["answer", "shared", "north.csv", "--site", "north", "--own", "shared/own", *TRUSTING]
    result = run(*words)
    assert "not within the shared one" in " ".join(result.output.split())
    assert not Path("shared/own").exists()


@pytest.mark.usefixtures("wards")
def test_only_the_plan_that_was_agreed_is_joined():
    told = done(*PLAN)
    digest = told.partition("Wrote the plan to shared: ")[2][:49]
    assert len(digest.replace(" ", "")) == 40
    exchange_plan("--epsilon", "100")
    result = answer("north", "--plan-agreed", digest, bound=())
    assert "the plan is another than was agreed" in " ".join(result.output.split())
    assert "40 digits" in " ".join(answer("north", "--plan-agreed", digest[:30]).output.split())
    assert nothing_was_sent()
    Path("shared/plan.json").unlink()
    done(*PLAN)
    assert "Joined" in answer("north", "--plan-agreed", digest, bound=()).output
    # What was agreed to once is noted, and need not be said again.
    assert "Run it again" in answer("north", bound=()).output
    Path("shared/plan.json").unlink()
    exchange_plan(*EXCHANGED)
    result = answer("north", bound=())
    assert "another than this site agreed to" in " ".join(result.output.split())


@pytest.mark.usefixtures("wards")
def test_a_ledger_knows_what_is_private_before_anything_is_sent(folder):
    ledger = Ledger.create(folder / "ledger.db")
    account = ledger.open_account("patients", epsilon=1.0, delta=0.0)
    account.attach(pd.read_csv("north.csv")["height"], column="height")
    done(*PLAN, *EXCHANGED)
    words = ["--ledger", "ledger.db", "--account", "patients"]
    result = answer("north", *words)
    assert result.exit_code != 0
    assert "height cannot be public" in " ".join(result.output.split())
    assert nothing_was_sent()
    declared = answer("north", *words, "--declared-public", "height")
    assert "Joined" in declared.output


def test_a_plan_that_changes_between_two_readings_is_refused(folder):
    """A pipe tells each reader something else."""
    done(*PLAN)
    (folder / "shared" / "plan.json").unlink()
    os.mkfifo(folder / "shared" / "plan.json")
    assert "no regular file" in " ".join(answer("north").output.split())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--sites", "north"], "two sites"),
        (["--sites", "north,North"], "in capital letters alone"),
        (["--colluding", "2"], "may work together"),
        (["--transform", "log", "--bounds", "-40", "240"], "output_transform"),
        (["--exposure", "years"], "of rows with counts"),
        (["--output", "height=40:240,weight=20:200"], "of several, --output has them"),
        (["--lengthscale", "3"], "--lengthscale has no meaning"),
        (["--schema", "people.schema.json"], "by --inputs or by --schema"),
        (["--inputs", "age,height"], "no public one"),
        (["--person", "who"], "--person goes with --rows-of-person"),
        (["--sites-of-person", "1"], "--person goes with --rows-of-person"),
        (["--person", "age", "--rows-of-person", "2"], "and no more"),
        (["--person", "who", "--rows-of-person", "2", "--sites-of-person", "3"], "1 to 2 sites"),
    ],
)
def test_plans_that_make_no_sense_are_refused(changed, message, folder):
    result = run(*PLAN, *changed)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert not (folder / "shared" / "plan.json").exists()


def test_categories_come_by_a_schema(folder):
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(sex=["f", "m"] * 15).to_csv(f"{name}.csv", index=False)
    made = CliRunner().invoke(app, ["schema", "north.csv", "--output", "height", "-o", "s.json"])
    assert made.exit_code == 0, made.output
    words = [word for word in PLAN if word not in ("--inputs", "age")]
    done(*words, "--schema", "s.json")
    for _ in range(3):
        assert all("Error" not in told for told in step())
        run("collect", "shared", "-o", "release.cloak")
    release = Release.load(folder / "release.cloak")
    assert release.schema.sources == ("age", "sex")
    raw = pd.DataFrame({"age": [30], "sex": ["f"]})
    assert release.predict(raw).shape == (1,)


def test_all_rows_of_a_person_are_protected_together():
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        who = [f"{name} {number // 3}" for number in range(30)]
        table.assign(who=who).to_csv(f"{name}.csv", index=False)
    done(*PLAN, "--person", "who", "--rows-of-person", "3", "--sites-of-person", "1")
    told = done("show", "shared")
    assert "all rows of a person by who, up to 3 at a site; nobody is at two sites" in told
    for _ in range(3):
        assert all("Error" not in told for told in step())
        run("collect", "shared", "-o", "release.cloak")
    told = done("collect", "shared")
    assert "if nobody has rows at two of the custodians" in told
    shown = " ".join(CliRunner().invoke(app, ["show", "release.cloak"]).output.split())
    assert "at least 20 people with up to 3 rows each" in shown


def released(*changed):
    words = [word for word in PLAN if word not in ("--bounds", "40", "240")]
    done(*words, *changed)
    for _ in range(12):
        assert all("Error" not in told for told in step())
        if run("collect", "shared", "-o", "release.cloak").exit_code == 0:
            return load("release.cloak")
    raise AssertionError("it does not come to an end")


def test_quantiles_of_custodians():
    release = released("--quantiles", "0.25,0.75", "--bounds", "40", "240", "--gap", "0.1")
    assert release.predict([[40.0]]).shape == (1, 2)
    assert release.custodians.sites == 2


def test_counts_with_exposures_of_custodians():
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(height=table["age"] // 20, years=[1.0, 2.5] * 15).to_csv(
            f"{name}.csv", index=False
        )
    words = ["--counts", "--exposure", "years", "--bounds", "0", "20", "--gap", "0.1"]
    release = released(*words)
    assert release.input_names == ("age",)
    assert release.predict([[40.0]]).shape == (1,)


def test_several_private_columns_of_custodians():
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(weight=table["height"] / 3).to_csv(f"{name}.csv", index=False)
    release = released("--output", "height=40:240,weight=20:200")
    assert release.names == ("height", "weight")
    assert release.predict([[40.0]]).shape == (1, 2)
    assert "height, weight by age" in done("show", "shared")


def test_several_private_columns_of_a_row_are_of_one_read(monkeypatch):
    seen = []

    def read(*args, **kwargs):
        seen.append(kwargs)
        return read_people(*args, **kwargs)

    monkeypatch.setattr("cloakgp.data.tables.read_people", read)
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(weight=table["height"] / 3).to_csv(f"{name}.csv", index=False)
    released("--output", "height=40:240,weight=20:200")
    assert {(each["output"], each["more_outputs"]) for each in seen} == {("height", ("weight",))}


def test_a_person_with_too_many_rows_is_refused(folder):
    table = pd.read_csv("north.csv")
    table.assign(who="somebody").to_csv("north.csv", index=False)
    done(*PLAN, "--person", "who", "--rows-of-person", "3")
    result = answer("north")
    assert result.exit_code != 0
    assert "30 rows at one site, and the plan allows 3" in " ".join(result.output.split())
    assert not (folder / "shared" / "sites").exists()


def test_several_processes_on_one_machine(folder, patience):
    """Each waits for the others, until the release is there."""
    done(*PLAN)
    program = [sys.executable, "-m", "cloakgp", "custodians"]
    waiting = [
        subprocess.Popen(
            [
                *program,
                *("answer", "shared", f"{name}.csv", "--site", name, "--own", f"own-{name}"),
                *(*TRUSTING, "--wait", str(patience)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("north", "south")
    ]
    made = run("collect", "shared", "-o", "release.cloak", "--wait", str(patience))
    assert made.exit_code == 0, made.output
    for process in waiting:
        told, _ = process.communicate(timeout=2 * patience)
        assert "The release is there" in told
    assert Release.load(folder / "release.cloak").n_rows == 60


def test_a_roster_that_is_closed_between_two_looks_is_answered(monkeypatch):
    """Who trusts the exchange, or compared the roster, stopped there, and the others waited."""
    done(*PLAN)
    step()
    taken = Site.step

    def before_the_roster(self):
        told = taken(self)
        if not Path("shared/roster.json").exists():
            run("collect", "shared")
        return told

    monkeypatch.setattr(Site, "step", before_the_roster)
    result = answer("north", "--wait", "3")
    assert result.exit_code == 0, result.output
    assert "Answered" in result.output


def test_a_release_of_classes(folder):
    for name in ("north", "south"):
        table = pd.read_csv(f"{name}.csv")
        tall = np.where(table["height"] > 145, "yes", "no")
        table.assign(height=tall).to_csv(f"{name}.csv", index=False)
    done(
        *("plan", "shared", "--output", "height", "--inputs", "age", "--sites", "north,south"),
        *("--classes", "no,yes", "--epsilon", "3", "--inducing", "5"),
    )
    for _ in range(3):
        step()
        run("collect", "shared", "-o", "release.cloak")
    assert Release.load(folder / "release.cloak").classes == ("no", "yes")


def test_a_custodian_leaves(folder):
    ledger = Ledger.create(folder / "ledger.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    done(*PLAN)
    words = ["--ledger", "ledger.db", "--account", "patients"]
    for _ in range(2):
        assert answer("north", *words).exit_code == 0
        answer("south")
        run("collect", "shared")
    assert ledger.standings()[0].open
    result = answer("north", *words, "--leave")
    assert result.exit_code == 0
    assert "north takes part no more" in result.output
    assert ledger.standings()[0].used == 0.0
    assert "this site has left" in " ".join(answer("north", *words).output.split())


# On a service.


@pytest.fixture
def office(folder, monkeypatch):
    """A service that answers, and tokens of two custodians and an analyst."""
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(folder / "home"))
    service = opened(str(folder / "people.db"), folder)
    tokens = {**add_custodians(service, "north", "sami"), **add_people(service)}
    with serving(create_app(service)) as place:
        yield place, tokens


@pytest.fixture
def act(office, monkeypatch):
    """Run a command as somebody."""

    def acted(who, *words):
        monkeypatch.setenv("CLOAKGP_TOKEN", office[1][who])
        return " ".join(run(*words).output.split())

    return acted


def planned(office, act, *more):
    words = [office[0] if word == "shared" else word for word in PLAN]
    told = act("analyst", *words, "--people", "south=sami", *more)
    return told, f"{office[0]}/joint-requests/1"


def answered(act, who, site, place, *more):
    words = ["answer", place, f"{site}.csv", "--site", site, "--own", f"own-{site}"]
    return act(who, *words, *TRUSTING, *more)


def test_a_release_by_a_service(office, act, folder):
    """The same commands, with the address of a request in the place of a folder."""
    told, place = planned(office, act, "--purpose", "figure 3")
    assert f"Wrote the plan to {place}: " in told
    digest = told.partition(f"{place}: ")[2][:19]
    assert f"Joined: the plan {digest}" in answered(act, "north", "north", place)
    assert "waiting for south to join" in act("analyst", "collect", place)
    told = answered(act, "sami", "south", place)
    assert "Joined" in told
    assert "Answered" in told
    shown = act("north", "show", place)
    assert "next: waiting for north to answer" in shown
    roster = shown.partition("roster: ")[2][:49]
    # The service goes on at once when all have answered.
    told = answered(act, "north", "north", place, "--agreed", roster)
    assert "Answered" in told
    assert "Opened" in told
    assert "next: waiting for south to open their masks" in act("analyst", "show", place)
    assert "Opened" in answered(act, "sami", "south", place)
    told = act("analyst", "collect", place, "-o", "release.cloak")
    assert "60 rows, 1-differentially private" in told
    assert Release.load(folder / "release.cloak").n_rows == 60
    assert "The release is there" in answered(act, "sami", "south", place)
    assert "next: the release is there" in act("sami", "show", place)


def test_a_custodian_who_does_not_join_a_service_is_left_out(office, act):
    add = [word.replace("north,south", "north,south,custodian") for word in PLAN]
    words = [office[0] if word == "shared" else word for word in add]
    act("analyst", *words, "--people", "south=sami")
    place = f"{office[0]}/joint-requests/1"
    answered(act, "north", "north", place)
    answered(act, "sami", "south", place)
    told = act("analyst", "collect", place, "--without", "custodian")
    assert "Going on without custodian" in told
    for _ in range(2):
        answered(act, "north", "north", place)
        answered(act, "sami", "south", place)
    assert "60 rows" in act("analyst", "collect", place, "-o", "release.cloak")


def test_a_ledger_of_the_custodian_counts_at_a_service(office, act, folder):
    ledger = Ledger.create(folder / "own.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    _, place = planned(office, act)
    for _ in range(3):
        answered(act, "north", "north", place, "--ledger", "own.db", "--account", "patients")
        answered(act, "sami", "south", place)
    assert "60 rows" in act("analyst", "collect", place, "-o", "release.cloak")
    [standing] = ledger.standings()
    assert standing.used == pytest.approx(1.0)
    assert standing.open == ()


def test_what_a_service_refuses_is_told_plainly(office, act):
    _, place = planned(office, act)
    assert "a valid token is needed" in act_with(act, office, "nonsense", "show", place)
    assert "no such joint request" in act("north", "show", f"{office[0]}/joint-requests/7")
    assert "is no address" in act("north", "show", f"{office[0]}/joint-requests/seven")
    assert "no file that north writes" in answered(act, "north", "south", place)
    assert "none of the custodians" in answered(act, "custodian", "north", place)
    assert "go with a service" in act("north", *PLAN, "--purpose", "more")
    words = [office[0] if word == "shared" else word for word in PLAN]
    assert "no custodian 'south'" in act("analyst", *words)
    assert "names who each custodian is" in act("analyst", *words, "--people", "south")


def act_with(act, office, token, *words):
    office[1]["stranger"] = token
    return act("stranger", *words)


def test_a_closed_request_gives_a_ledger_back_what_was_not_opened(office, act, folder):
    _, place = planned(office, act)
    ledger = Ledger.create(folder / "north.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    words = ["--ledger", "north.db", "--account", "patients"]
    answered(act, "sami", "south", place)
    assert "Answered" in answered(act, "north", "north", place, *words)
    [before] = ledger.standings()
    assert len(before.open) == 1
    with Client(office[0], token=office[1]["analyst"]) as client:
        client.close_joint(1)
    assert "The joint request is closed" in answered(act, "north", "north", place, *words)
    [after] = ledger.standings()
    assert (after.used, after.open) == (0.0, ())
