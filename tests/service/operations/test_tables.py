"""Tables: which files may be registered, and what is checked when they are."""

from __future__ import annotations

import sqlite3
import stat
from dataclasses import replace

import pytest
from services import add_custodians, add_everything, register, work_as, write_people
from sqlalchemy import select

from cloakgp.ledger.marks import GUESSABLE
from cloakgp.privacy.spending import Cost, Spender
from cloakgp.service.access import Role
from cloakgp.service.confined import Confinement
from cloakgp.service.errors import ConflictError, InvalidError, NotFoundError, ServiceError
from cloakgp.service.messages import ChangedPerson, Look, NewAccount, NewTable, PrivacyBudget
from cloakgp.service.models import Event
from cloakgp.service.operations.accounts import list_accounts, open_account
from cloakgp.service.operations.audits import verify_ledger
from cloakgp.service.operations.people import change_person, erase_person
from cloakgp.service.operations.tables import (
    list_tables,
    look_at_table,
    register_table,
    show_table,
    upload_table,
    withdraw_table,
)
from cloakgp.service.public_columns import equal_columns, own_columns
from cloakgp.service.rates import Rates


@pytest.fixture
def custodian(service, tokens):
    return work_as(service, tokens[Role.CUSTODIAN])


@pytest.fixture
def account(custodian):
    return open_account(custodian, NewAccount(name="people", limit=PrivacyBudget(epsilon=1)))


@pytest.fixture
def folder(tmp_path):
    """The folder that the service may read."""
    made = tmp_path / "tables"
    made.mkdir(exist_ok=True)
    return made


def new(**changed):
    usual = {"name": "t", "account": "people", "output": "height", "bounds": (50, 250)}
    return NewTable(**{**usual, **changed})


@pytest.mark.usefixtures("account")
def test_a_file_in_the_folder_is_registered_by_its_path(custodian, folder):
    path = write_people(folder / "people.csv")
    made = register_table(custodian, new(path=str(path)))
    assert (made.inputs, made.rows, made.bounds) == (["age"], 24, (50, 250))
    assert made.described == {"age": "numbers"}
    assert show_table(custodian, made.id) == made
    assert str(folder) not in made.model_dump_json()
    withdraw_table(custodian, made.id)
    assert list_tables(custodian) == []
    assert show_table(custodian, made.id).withdrawn


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("name", ["bare.csv", "bare.tsv"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"person": "who"},
        {"inputs": ["age"]},
        {"bounds": None, "classes": ["a", "b"]},
        {"missing_output": "drop"},
    ],
)
def test_a_first_line_that_may_be_somebodys_row_is_not_shown(custodian, folder, name, asked):
    """Columns that are asked for by no name are those of the first line, and vouch for none."""
    mark = "\t" if name.endswith("tsv") else ","
    rows = (("31337.125", "CANARY"), ("40.5", "other"), ("50.5", "more"))
    (folder / name).write_text("".join(mark.join(row) + "\n" for row in rows))
    kind, words = said(lambda: register_table(custodian, new(path=name, **asked)))
    assert kind == "invalid"
    assert "It may be a person's row, and is not shown" in words
    assert not [cell for row in rows for cell in row if cell in words]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("path", ["../outside.csv", "/etc/passwd", "link.csv", "a/../../b.csv"])
def test_no_other_file_is_read(custodian, folder, path):
    outside = write_people(folder.parent / "outside.csv")
    (folder / "link.csv").symlink_to(outside)
    for look in (
        lambda: register_table(custodian, new(path=path)),
        lambda: look_at_table(custodian, Look(path=path)),
    ):
        with pytest.raises(InvalidError, match="none of the folders"):
            look()


def test_files_that_are_sent_are_their_owners_alone(service, custodian, tmp_path):
    sent = upload_table(custodian, "../../p.csv", received=write_people(tmp_path / "a.csv"))
    assert sent.name == "p.csv"
    (kept,) = service.settings.uploads.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(service.settings.uploads.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["db.url", "program.exe", "people"])
def test_other_files_are_not_taken(custodian, tmp_path, name):
    with pytest.raises(InvalidError):
        upload_table(custodian, name, received=write_people(tmp_path / "a.csv"))


@pytest.mark.usefixtures("account")
def test_what_is_sent_belongs_to_whoever_sent_it(service, custodian, tmp_path):
    sent = upload_table(custodian, "p.csv", received=write_people(tmp_path / "a.csv"))
    with pytest.raises(NotFoundError):
        register_table(work_as(service, add_everything(service)), new(upload=sent.id))
    assert register_table(custodian, new(upload=sent.id)).rows == 24


@pytest.fixture
def other(service):
    """Another custodian."""
    return work_as(service, add_custodians(service, "bob")["bob"])


def said(act):
    """The kind and the words of a refusal."""
    with pytest.raises(ServiceError) as refused:
        act()
    return refused.value.kind, str(refused.value)


def events(service):
    with service.database.reading() as session:
        rows = session.scalars(select(Event).order_by(Event.id))
        return [(event.actor and event.actor.name, event.what, event.about) for event in rows]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("withdrawn", [False, True])
@pytest.mark.parametrize("name", ["people.csv", "./people.csv", "link.csv", "hard.csv"])
def test_a_file_that_another_custodian_registered_is_not_found(
    service, custodian, other, folder, name, withdrawn
):
    """By its own name or another one, and as if there were none."""
    path = write_people(folder / "people.csv")
    (folder / "link.csv").symlink_to(path)
    (folder / "hard.csv").hardlink_to(path)
    made = register_table(custodian, new(path="people.csv"))
    if withdrawn:
        withdraw_table(custodian, made.id)
    absent = said(lambda: look_at_table(other, Look(path="nothing.csv", private=["age"])))
    assert absent == ("not-found", "there is no such file")
    for look in (Look(path=name), Look(path=name, private=["age"]), Look(path=str(folder / name))):
        assert said(lambda look=look: look_at_table(other, look)) == absent
    turned = new(name="u", path=name, output="age", inputs=["height"], bounds=(0, 100))
    assert said(lambda: register_table(other, turned)) == absent
    kept = "people.csv" if name in ("./people.csv", "link.csv") else name
    refused = [
        about for who, what, about in events(service) if (who, what) == ("bob", "file refused")
    ]
    assert refused == [f"{kept}: another custodian has registered it"] * 4
    # Its custodian goes on.
    seen = look_at_table(custodian, Look(path=name, private=["height"]))
    assert list(seen.public) == ["age"]
    assert register_table(custodian, new(name="again", path=name)).rows == 24


@pytest.mark.usefixtures("account")
def test_a_database_is_whole_the_custodians_who_registered_it(custodian, other, folder):
    """Whatever a query calls its columns."""
    with sqlite3.connect(folder / "people.db") as database:
        database.execute("CREATE TABLE t (age, height)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(20 + k, 150 + k) for k in range(9)])
    look = Look(path="people.db", query="SELECT age, height AS size FROM t", private=["age"])
    # Nobody has registered it.
    assert look_at_table(other, look).public["size"].cells[0] == "150"
    register_table(custodian, new(path="people.db", query="SELECT age, height FROM t"))
    assert said(lambda: look_at_table(other, look))[0] == "not-found"


def test_files_of_the_service_are_in_no_shared_folder(service, custodian, other, tmp_path):
    """Uploads, and the ledger with all that the service knows, where their folder is shared."""
    settings = replace(service.settings, tables=(tmp_path,))
    everything = replace(other, service=replace(service, settings=settings))
    sent = upload_table(custodian, "p.csv", received=write_people(tmp_path / "a.csv"))
    own = [
        Look(path=f"data/uploads/{sent.id}.csv", private=["age"]),
        Look(path="people.db", query="SELECT name, digest FROM service_tokens", private=["name"]),
    ]
    for look in own:
        assert (tmp_path / look.path).exists()
        with pytest.raises(InvalidError, match="none of the folders"):
            look_at_table(everything, look)


def test_looks_at_files_of_the_server_are_noted(service, custodian, folder, tmp_path):
    write_people(folder / "people.csv")
    look_at_table(custodian, Look(path=str(folder / "people.csv"), private=["height"]))
    assert events(service)[-1] == ("custodian", "file looked at", "people.csv")
    sent = upload_table(custodian, "p.csv", received=write_people(tmp_path / "a.csv"))
    look_at_table(custodian, Look(upload=sent.id))
    assert events(service)[-1][1] == "file uploaded"


@pytest.mark.usefixtures("account")
def test_a_name_that_was_erased_gives_no_file_to_whoever_has_it_next(
    service, tokens, custodian, folder
):
    write_people(folder / "people.csv")
    register_table(custodian, new(path="people.csv"))
    admin = work_as(service, tokens[Role.ADMINISTRATOR])
    change_person(admin, custodian.actor.id, ChangedPerson(active=False))
    erase_person(admin, custodian.actor.id)
    heir = work_as(service, add_custodians(service, "custodian")["custodian"])
    assert said(lambda: look_at_table(heir, Look(path="people.csv")))[0] == "not-found"


def test_columns_are_looked_at_before_the_private_are_known(custodian, folder):
    write_people(folder / "people.csv")
    first = look_at_table(custodian, Look(path="people.csv"))
    assert (first.columns, first.table_schema) == (["age", "height"], "")
    second = look_at_table(custodian, Look(path="people.csv", private=["height"]))
    assert second.described == {"age": "numbers"}
    assert "height" not in second.table_schema


@pytest.mark.parametrize("is_right", [True, False])
def test_no_custodian_confirms_a_guess_of_anothers_column(
    is_right, service, tokens, custodian, folder, tmp_path
):
    """A sorted copy is the same column: auditors see it, and nobody else."""
    register(service, tokens[Role.CUSTODIAN], tmp_path)
    open_account(custodian, NewAccount(name="people", limit=PrivacyBudget(epsilon=1)))
    lines = write_people(folder / "copy.csv").read_text().splitlines()
    if not is_right:
        lines[5] = lines[5].partition(",")[0] + ",100.01"
    (folder / "copy.csv").write_text("\n".join([lines[0], *sorted(lines[1:])]) + "\n")
    made = register_table(custodian, new(path="copy.csv"))
    assert (made.account, made.rows) == ("people", len(lines) - 1)
    assert service.ledger.database.head()["number"] == 5
    (note,) = verify_ledger(work_as(service, tokens[Role.AUDITOR])).notes or [""]
    assert ("the column 'heights: height' of another account, 'children'" in note) == is_right
    with pytest.raises(ConflictError, match="of that name"):
        register_table(custodian, new(path="copy.csv"))


@pytest.mark.usefixtures("account")
def test_what_makes_no_sense_is_not_registered(custodian, folder):
    write_people(folder / "people.csv")
    for changed, told in (
        ({"bounds": None}, "either bounds"),
        ({"classes": ["a", "b"]}, "either bounds"),
        ({"bounds": (5, 5)}, "bounds"),
        ({"bounds": None, "classes": ["a"]}, "two are needed"),
        ({"bounds": None, "classes": ["a", "b,c"]}, "no commas"),
        ({"output": "weight"}, "no column weight"),
        ({"inputs": ["height"]}, "input"),
        ({"table_schema": "{}"}, "Table Schema"),
        ({"missing_output": "tall"}, "missing"),
        ({"path": ""}, "either an upload or a path"),
    ):
        with pytest.raises(InvalidError, match=told):
            register_table(custodian, new(**{"path": "people.csv", **changed}))
        assert list_tables(custodian) == []


def test_whom_an_account_protects_must_be_told(custodian, folder):
    limit = PrivacyBudget(epsilon=1)
    open_account(custodian, NewAccount(name="persons", limit=limit, unit="person"))
    open_account(custodian, NewAccount(name="rows", limit=limit, unit="whole row replaced"))
    write_people(folder / "people.csv")
    with pytest.raises(InvalidError, match="each row's person"):
        register_table(custodian, new(path="people.csv", account="persons"))
    with pytest.raises(InvalidError, match="whole rows"):
        register_table(custodian, new(path="people.csv", account="rows"))
    with pytest.raises(NotFoundError):
        register_table(custodian, new(path="people.csv", account="nobody"))


GAPS = {"refuse": "7", "drop": "", "0": ""}


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("missing", GAPS)
def test_a_private_column_of_the_account_is_no_public_column(
    missing, service, tokens, custodian, folder
):
    rows = [f"{20 + row},{row % 7},{50 * row}" for row in range(1, 20)]
    rows.append(f"60,{GAPS[missing]},900")
    (folder / "pay.csv").write_text("\n".join(["age,visits,pay", *rows]) + "\n")
    about = {"path": "pay.csv", "bounds": (0, 1000)}
    register_table(
        custodian,
        new(name="visits", output="visits", inputs=["age"], missing_output=missing, **about),
    )
    second = {"name": "pay", "output": "pay", "inputs": ["age", "visits"], **about}
    before = service.ledger.database.head()["number"]
    with pytest.raises(InvalidError, match="visits cannot be public") as refused:
        register_table(custodian, new(**second))
    assert "age" not in str(refused.value)
    assert list(refused.value.fields) == ["declared_public"]
    assert [table.name for table in list_tables(custodian)] == ["visits"]
    assert service.ledger.database.head()["number"] == before
    with service.database.reading() as session:
        noted = [event.about for event in session.scalars(select(Event))]
    assert "pay: visits, a private column of people, as a public one" in noted
    with pytest.raises(InvalidError, match="weight cannot be declared public"):
        register_table(custodian, new(**second, declared_public=["weight"]))
    made = register_table(custodian, new(**second, declared_public=["visits"]))
    assert made.inputs == ["age", "visits"]
    (note,) = verify_ledger(work_as(service, tokens[Role.AUDITOR])).notes
    assert "takes 'visits' to be public, as its writer declares" in note


def write_columns(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n")


ILL = ["yes"] * 3 + ["no"] * 5
# As many as nobody guesses.
PAY = [1000 + 7 * k for k in range(GUESSABLE)]
ABOUT_PAY = {"name": "pay", "path": "pay.csv", "output": "pay", "bounds": (0, 9000)}


def told_auditors(service, tokens):
    return verify_ledger(work_as(service, tokens[Role.AUDITOR])).notes


@pytest.mark.usefixtures("account")
def test_guesses_of_a_column_of_few_values_are_answered_to_nobody(
    service, tokens, custodian, other, folder
):
    """One table has all guesses of how many are ill, and is registered as any other."""
    write_columns(folder / "clinic.csv", age=range(8), ill=ILL)
    write_columns(
        folder / "guesses.csv",
        **{f"c{k}": ["yes"] * k + ["no"] * (8 - k) for k in range(9)},
        height=range(8),
    )
    clinic = {"output": "ill", "inputs": ["age"], "bounds": None, "classes": ["yes", "no"]}
    register_table(custodian, new(name="clinic", path="clinic.csv", **clinic))
    made = register_table(other, new(path="guesses.csv", bounds=(0, 9)))
    assert len(made.inputs) == 9
    (note,) = told_auditors(service, tokens)
    assert (
        "takes 'c3' to be public, and the same few values are attached there as 'clinic: " in note
    )
    # Of one's own columns all is told.
    write_columns(folder / "mine.csv", c3=ILL[::-1], ill=["yes"] * 2 + ["no"] * 6)
    mine = new(name="mine", path="mine.csv", **clinic | {"inputs": ["c3"]})
    with pytest.raises(InvalidError, match="c3 cannot be public"):
        register_table(custodian, mine)


@pytest.mark.usefixtures("account")
def test_of_others_columns_of_many_values_no_name_is_told_and_rarely(
    service, custodian, other, folder
):
    service = replace(service, rates=Rates({"columns of others": "1/day"}))
    other = replace(other, service=service)
    write_columns(folder / "pay.csv", age=range(GUESSABLE), pay=PAY)
    register_table(custodian, new(**ABOUT_PAY))
    write_columns(folder / "copy.csv", height=range(200, 264), wage=PAY[::-1], age=range(1, 65))
    write_columns(folder / "none.csv", height=range(200, 264), age=range(1, 65))
    copy = {"path": "copy.csv", "bounds": (0, 300)}
    kind, words = said(lambda: register_table(other, new(**copy)))
    assert (kind, "wage" in words, "pay" in words) == ("invalid", False, False)
    assert "same values as a private column of somebody else" in words
    noted = ("bob", "table refused", "t: wage, a private column of people, as a public one")
    assert events(service)[-1] == noted
    # And then neither yes nor no.
    for path in ("copy.csv", "none.csv"):
        kind, words = said(lambda path=path: register_table(other, new(**copy | {"path": path})))
        assert (kind, "no more of them are compared today" in words) == ("too-many", True)
    # Where nothing is answered, nothing is compared; others go on.
    assert register_table(other, new(**copy, declared_public=["age", "wage"])).rows == 64
    write_people(folder / "people.csv")
    assert register_table(custodian, new(name="u", path="people.csv")).rows == 24


@pytest.mark.usefixtures("account")
def test_so_many_columns_a_day_are_compared_with_those_of_others(service, custodian, other, folder):
    other = replace(other, service=replace(service, rates=Rates({"compared columns": "3/day"})))
    write_columns(folder / "wide.csv", a=range(1, 9), b=range(2, 10), height=range(8))
    wide = {"path": "wide.csv", "bounds": (0, 9)}
    # As long as nobody else has a private column here, no answer tells anything.
    for name in ("one", "two"):
        register_table(other, new(**wide, name=name))
    write_columns(folder / "pay.csv", age=range(100, 100 + GUESSABLE), pay=PAY)
    register_table(custodian, new(**ABOUT_PAY))
    register_table(other, new(**wide, name="three"))
    assert said(lambda: register_table(other, new(**wide)))[0] == "too-many"
    register_table(other, new(**wide, declared_public=["a"]))


@pytest.mark.usefixtures("account")
def test_a_public_column_of_a_table_is_no_private_one_of_another(custodian, folder):
    """In either order: releases of the first table hold it, row by row."""
    write_columns(folder / "t.csv", age=range(8), height=range(60, 68), weight=range(20, 28))
    heights = new(name="heights", path="t.csv", inputs=["age", "weight"], bounds=(0, 100))
    weights = new(name="w", path="t.csv", output="weight", inputs=["age"], bounds=(0, 100))
    first = register_table(custodian, heights)
    kind, words = said(lambda: register_table(custodian, weights))
    assert kind == "invalid"
    assert "weight cannot be private: releases of the table heights hold the public weight" in words
    withdraw_table(custodian, first.id)
    declared = {"name": "again", "declared_public": ["weight"]}
    register_table(custodian, heights.model_copy(update=declared))
    assert register_table(custodian, weights).rows == 8


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("rows", [8, GUESSABLE])
def test_a_public_column_of_another_custodian_is_no_private_one(
    service, custodian, other, folder, rows
):
    """Few values may be the same by chance, and nobody keeps others from registering these."""
    write_columns(folder / "a.csv", weight=range(rows), height=range(100, 100 + rows))
    write_columns(folder / "b.csv", age=range(200, 200 + rows), weight=range(rows))
    register_table(other, new(name="heights", path="a.csv", bounds=(0, 300)))
    weights = new(name="w", path="b.csv", output="weight", bounds=(0, 100))
    noted = "w: its private column is the public weight of heights"
    if rows < GUESSABLE:
        assert register_table(custodian, weights).rows == rows
        assert ("custodian", "column noted", noted) in events(service)
    else:
        assert "weight cannot be private" in said(lambda: register_table(custodian, weights))[1]
        assert events(service)[-1] == ("custodian", "table refused", noted)


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("error", [OSError(5, "failed"), InvalidError("it took too long")])
def test_a_table_that_cannot_be_read_keeps_nobody_from_registering(
    custodian, other, folder, monkeypatch, error
):
    write_columns(folder / "a.csv", age=range(8), height=range(100, 108))
    register_table(other, new(name="first", path="a.csv", bounds=(0, 300)))
    call = Confinement.call

    def called(self, function, *given, **more):
        if function is equal_columns:
            raise error
        return call(self, function, *given, **more)

    monkeypatch.setattr(Confinement, "call", called)
    write_columns(folder / "b.csv", height=range(8), age=range(200, 208))
    assert register_table(custodian, new(path="b.csv", bounds=(0, 9))).rows == 8


@pytest.mark.usefixtures("account")
def test_a_copy_of_the_private_column_is_no_public_one(custodian, folder):
    write_columns(folder / "t.csv", height=range(8), cm=range(8))
    copied = new(path="t.csv", bounds=(0, 9))
    kind, words = said(lambda: register_table(custodian, copied))
    assert (kind, "cm cannot be public: the private column has" in words) == ("invalid", True)
    register_table(custodian, copied.model_copy(update={"declared_public": ["cm"]}))


def test_who_has_a_column_is_not_guessed_from_its_name(service, custodian, other, folder):
    """Two tables of two people may give their columns one name in the ledger."""
    open_account(custodian, NewAccount(name="people", limit=PrivacyBudget(epsilon=1)))
    write_columns(folder / "a.csv", age=range(8), **{"b: c": range(20, 28)})
    write_columns(folder / "b.csv", age=range(8), c=range(30, 38))
    about = {"inputs": ["age"], "bounds": (0, 100)}
    register_table(custodian, new(name="a", path="a.csv", output="b: c", **about))
    register_table(other, new(name="a: b", path="b.csv", output="c", **about))
    with service.database.reading() as session:
        assert own_columns(session, "people", who="bob") == frozenset()


@pytest.mark.usefixtures("account")
def test_a_private_column_of_another_account_is_told_to_auditors_alone(
    service, tokens, custodian, folder
):
    open_account(custodian, NewAccount(name="others", limit=PrivacyBudget(epsilon=1)))
    write_people(folder / "people.csv")
    register_table(custodian, new(path="people.csv"))
    turned = {"output": "age", "inputs": ["height"], "bounds": (0, 100)}
    made = register_table(custodian, new(name="u", account="others", path="people.csv", **turned))
    assert made.inputs == ["height"]
    (note,) = verify_ledger(work_as(service, tokens[Role.AUDITOR])).notes
    assert "takes 'height' to be public" in note
    assert "another account, 'people', as 't: height'" in note


def test_a_limit_below_what_was_spent_is_told_as_that(service, custodian, account):
    assert (account.used_in_words, account.beyond) == ("0 % of the limit", [])
    opened = service.ledger.account("people").open_charge(
        Spender("test", unit="row", epsilon=None, delta=None, fingerprint=lambda _: None)
    )
    opened.reserve(Cost("laplace", epsilon=0.9))
    opened.close(failed=False)
    service.ledger.change_limit("people", epsilon=0.5, delta=0.0, reason="the study ended")
    (shown,) = list_accounts(custodian)
    assert (shown.used, shown.beyond) == (1.0, [""])
    assert shown.used_in_words == "more than the limit: nothing fits"
    assert shown.left == 0
