"""Texts of entries: what cannot be written down is refused before it is, and old entries read."""

from __future__ import annotations

import numpy as np
import pytest
from spenders import charge, gaussian, spender
from typer.testing import CliRunner

from cloakgp.cli import app
from cloakgp.ledger import LedgerError
from cloakgp.ledger.imports import import_releases
from cloakgp.ledger.marks import marked
from cloakgp.ledger.projection import amounts_from, amounts_text
from cloakgp.privacy.filters import Amount

NO_TEXTS = [None, 2024, 1.0, True, ["A"], b"A", "a\ud800", "a\0b", "\x1b[31m"]
ids = [ascii(each) for each in NO_TEXTS]


@pytest.fixture
def untouched(ledger, account):
    """The account; afterwards no entry was written, and the ledger is sound."""
    account.attach([1.0, 2.0], column="height")
    before = len(list(ledger.entries()))
    yield account
    assert len(list(ledger.entries())) == before
    assert ledger.verify().sound
    assert account.standing.charges == 0


@pytest.mark.parametrize("wrong", NO_TEXTS, ids=ids)
def test_what_is_no_text_is_refused_before_it_is_written(ledger, untouched, wrong, tmp_path):
    with pytest.raises(LedgerError, match="name of a column must be text that can be printed"):
        untouched.attach([3.0, 4.0], column=wrong)
    with pytest.raises(LedgerError, match="name of a cohort must be text that can be printed"):
        untouched.attach([3.0, 4.0], column="height", cohort=wrong)
    for about in ("purpose", "approved_by", "cohort"):
        with pytest.raises(LedgerError, match="must be text that can be printed"):
            ledger.account("people", **{about: wrong})
        with pytest.raises(LedgerError, match="must be text that can be printed"):
            ledger.any_account(**{about: wrong})
    with pytest.raises(LedgerError, match="an account needs a name that can be printed"):
        ledger.open_account(wrong, epsilon=1.0, delta=0)
    with pytest.raises(LedgerError, match="there is no account"):
        ledger.account(wrong)
    with pytest.raises(LedgerError, match="a reason must be text"):
        import_releases(untouched, [tmp_path], reason=wrong)
    for change in (
        lambda: ledger.change_limit("people", epsilon=2.0, delta=0, reason=wrong),
        lambda: ledger.void(1, reason=wrong),
        lambda: ledger.erase(["Ada"], reason=wrong),
        lambda: ledger.rotate_keys(reason=wrong),
        lambda: ledger.rebuild(reason=wrong),
        lambda: ledger.recover(reason=wrong),
        lambda: ledger.reconcile(reason=wrong),
    ):
        with pytest.raises(LedgerError, match="give a reason, as text that can be printed"):
            change()


@pytest.mark.parametrize("wrong", NO_TEXTS, ids=ids)
def test_a_key_that_is_no_text_finds_nobodys_charge(ledger, account, wrong):
    charge(account, gaussian(0.01))
    for look in (account.find, account.recall):
        with pytest.raises(LedgerError, match="a key must be text that can be printed"):
            look(wrong)
    if wrong is not None:
        with pytest.raises(LedgerError, match="a key must be text"):
            account.publish(pytest.fail, key=wrong)
    assert account.find("figure 3") is None
    assert ledger.verify().sound


def test_words_of_several_lines_and_any_language_are_taken(ledger, account):
    account.attach([1.0, 2.0], column="Höhe\u00a0(cm)\n♂\u200d")
    purpose = "figure 3:\r\n\theights"
    charge(ledger.account("people", purpose=purpose), gaussian(0.01))
    ledger.change_limit("people", epsilon=2.0, delta=1e-6, reason="one\nanother")
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert reserved["purpose"] == purpose
    assert ledger.verify().sound


def test_names_that_look_alike_are_one_account(ledger):
    opened = ledger.open_account(" Zoe\u0308 ", epsilon=1.0, delta=0)
    assert opened.name == "Zoë"
    for name in ("Zoë", "Zoe\u0308", "Zoë "):
        assert ledger.account(name).name == "Zoë"
        with pytest.raises(LedgerError, match="there is an account 'Zoë' already"):
            ledger.open_account(name, epsilon=1.0, delta=0)
    ledger.change_limit("Zoe\u0308", epsilon=0.5, delta=0, reason="a study ended")
    assert [each.limit for each in ledger.standings()] == [(0.5, 0.0)]


def test_names_that_look_alike_are_one_cohort(ledger, account):
    account.attach([1.0, 2.0], column="May", cohort="Zoe\u0308 ")
    account.attach([1.0, 3.0], column="June", cohort="Zoë")
    assert set(account.standing.spent_by) == {"", "Zoë"}
    charge(ledger.account("people", cohort=" Zoe\u0308"), gaussian(0.01))
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert reserved["cohort"] == "Zoë"
    for blank in (" ", "\u00a0"):
        with pytest.raises(LedgerError, match="needs a name that can be printed"):
            account.attach([1.0, 4.0], column="July", cohort=blank)


def written(ledger, name, **content):
    """What an earlier version wrote, as it was given."""
    with ledger.database.writing() as writing:
        if content:
            mark = marked(lambda _: "fingerprint" + str(content), key=writing.key)
            writing.append_noted(
                "attached", note={"elsewhere": []}, account=name, **content, **mark
            )
        else:
            writing.append("account", account=name, unit="row", epsilon=1.0, delta=0.0)


def test_an_older_account_keeps_its_name_and_is_found_by_one_that_looks_alike(ledger):
    written(ledger, " A")
    assert ledger.account(" A").name == " A"
    assert ledger.account("A").name == " A"
    with pytest.raises(LedgerError, match="there is an account ' A' already"):
        ledger.open_account("A", epsilon=1.0, delta=0)
    # Of two that look alike, each is meant by itself.
    written(ledger, "A")
    assert [ledger.account(name).name for name in (" A", "A", "A ")] == [" A", "A", "A"]
    written(ledger, " A", column="May", cohort=" May")
    assert ledger.account(" A", cohort="May").cohort == " May"
    assert ledger.verify().sound


@pytest.mark.parametrize("cohort", [2024, 7.5])
def test_an_account_whose_cohort_was_a_number_is_read_again(ledger, account, cohort):
    """Its sums were no JSON: every later use of the account failed."""
    charge(account, gaussian(0.01))
    written(ledger, "people", column="minutes", cohort=cohort)
    assert ledger.verify().sound
    assert set(account.standing.spent_by) == {"", str(cohort)}
    with pytest.raises(LedgerError, match="must be text"):
        ledger.account("people", cohort=cohort)
    asked = ledger.account("people", cohort=str(cohort))
    charge(asked, gaussian(0.02))
    account.attach([1.0, 2.0], column="June", cohort="June")
    assert set(account.standing.spent_by) == {"", str(cohort), "June"}
    spent = account.standing.spent_by
    assert spent[str(cohort)] == spent["June"] + Amount.of(gaussian(0.02))
    assert ledger.verify().sound


def test_an_attachment_whose_column_was_a_number_is_no_tampering(ledger, account):
    written(ledger, account.name, column=2024)
    assert ledger.verify().findings == ()
    assert [row["name"] for row in ledger.columns()] == ["2024"]


def test_bare_names_are_quoted_and_quoted_ones_kept():
    sums = amounts_text({"": Amount(pure=1), 'x, 5: ["': Amount(pure=2), 2024: Amount(pure=3)})
    read = amounts_from(sums, alone="")
    assert {name: amount.pure for name, amount in read.items()} == {
        "": 1,
        'x, 5: ["': 2,
        "2024": 3,
    }


def test_sums_that_cannot_be_read_are_found(ledger, account):
    with ledger.database.writing() as writing:
        row = writing.rows.get("accounts", account.name)
        writing.rows.put("accounts", {**row, "spent": "{nothing"})
    assert "accounts: the sums of people cannot be read" in ledger.verify().findings


@pytest.mark.parametrize(
    "wrong", [None, 5, "abc", b"abc", {"a": 1}, np.float64(5), np.array(5.0)], ids=repr
)
def test_what_is_no_column_is_not_attached(ledger, account, wrong):
    with pytest.raises(LedgerError, match="y must be a private column"):
        account.attach(wrong, column="height")
    assert ledger.columns() == []


@pytest.mark.parametrize("wrong", [None, "1", 1.0, True, [1]])
def test_what_is_no_number_of_a_charge_is_refused(ledger, wrong):
    with pytest.raises(LedgerError, match="a charge is a whole number"):
        ledger.void(wrong, reason="died")


@pytest.mark.parametrize("wrong", [0, -1, 10**30, 7])
def test_a_charge_that_is_not_there_is_not_voided(ledger, wrong):
    with pytest.raises(LedgerError, match=f"there is no charge {wrong}"):
        ledger.void(wrong, reason="died")


def test_a_charge_of_numpys_numbers_is_voided(ledger, account):
    opened = account.open_charge(spender())
    opened.hold([(0.1, 1e-7)])
    ledger.void(np.int64(opened.number), reason="died")
    assert account.standing.open == ()


@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_a_limit_beyond_all_numbers_is_refused(ledger, field):
    with pytest.raises(LedgerError, match=r"too large|below 1"):
        ledger.open_account("people", **{"epsilon": 1.0, "delta": 0.0, field: 10**400})
    assert ledger.standings() == []


def test_a_command_changes_the_limit_of_an_account_whose_name_looks_alike(ledger):
    ledger.open_account("Zoë", epsilon=1.0, delta=0)
    words = ["ledger", "limit", "Zoe\u0308", "--epsilon", "0.5", "--delta", "0", "--reason", "less"]
    done = CliRunner().invoke(app, [*words, "--ledger", ledger.database.shown])
    assert done.exit_code == 0, done.output
    assert [(each.name, each.limit) for each in ledger.standings()] == [("Zoë", (0.5, 0.0))]
