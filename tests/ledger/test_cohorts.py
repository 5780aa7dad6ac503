"""Cohorts of an account: tables of disjoint people compose in parallel, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spenders import spender

from cloakgp.ledger import LedgerError, LimitError
from cloakgp.ledger.accounts import Account
from cloakgp.ledger.chain import acting_as
from cloakgp.ledger.database import Writing
from cloakgp.ledger.projection import amounts_text
from cloakgp.privacy.filters import Amount, filter_of
from cloakgp.privacy.fingerprints import fingerprint_column
from cloakgp.privacy.spending import Cost

LIMIT = (1.0, 1e-6)
MONTHS = ("May", "June")


@pytest.fixture
def people(ledger):
    """An account of two cohorts, beside whom there are others."""
    account = ledger.open_account("visitors", epsilon=LIMIT[0], delta=LIMIT[1])
    with acting_as("clara"):
        for place, month in enumerate(MONTHS):
            account.attach(np.arange(10.0) + place, column=f"{month}: minutes", cohort=month)
    return account


def charge(ledger, cohort, cost):
    opened = ledger.account("visitors", cohort=cohort).open_charge(spender())
    try:
        opened.reserve(cost)
    finally:
        opened.close(failed=False)


def taken(ledger, cohort, cost):
    try:
        charge(ledger, cohort, cost)
    except LimitError:
        return False
    return True


def test_months_of_other_people_cost_each_one_month(ledger, people):
    whole = Cost("laplace", epsilon=1.0)
    assert taken(ledger, "May", whole)
    assert taken(ledger, "June", whole)
    # Each has spent it all, and so has whoever may be in both.
    for cohort in (*MONTHS, ""):
        assert not taken(ledger, cohort, Cost("laplace", epsilon=1e-3))
    assert people.standing.used == pytest.approx(1.0)
    assert ledger.verify().findings == ()


def test_what_is_about_everybody_is_about_each_cohort(ledger, people):
    assert taken(ledger, "", Cost("laplace", epsilon=0.6))
    assert not taken(ledger, "May", Cost("laplace", epsilon=0.6))
    assert taken(ledger, "May", Cost("laplace", epsilon=0.3))
    assert taken(ledger, "June", Cost("laplace", epsilon=0.3))
    assert not taken(ledger, "", Cost("laplace", epsilon=0.3))
    assert people.standing.used == pytest.approx(0.9)


@pytest.mark.parametrize("seed", range(6))
def test_everybody_pays_for_all_that_is_about_them_and_for_nothing_else(ledger, people, seed):
    """Every person's own charges, added up by a filter of their own, in any order."""
    rng = np.random.default_rng(seed)
    rule = filter_of(LIMIT)
    # Somebody of each month, and somebody of neither.
    spent = dict.fromkeys((*MONTHS, "neither"), Amount())
    refused = 0
    for _ in range(25):
        cohort = str(rng.choice([*MONTHS, ""]))
        cost = (
            Cost("laplace", epsilon=float(rng.uniform(0.01, 0.2)))
            if rng.random() < 0.5
            else Cost("gaussian", mu=float(rng.uniform(0.01, 0.1)), answers=3)
        )
        concerned = [cohort] if cohort else list(spent)
        fits = all(rule.accepts(spent[person] + Amount.of(cost)) for person in concerned)
        # A charge that takes the limit whole is taken where it is alone; none here is as large.
        assert taken(ledger, cohort, cost) == fits
        refused += not fits
        if fits:
            for person in concerned:
                spent[person] = spent[person] + Amount.of(cost)
    standing = people.standing
    assert {name: standing.spent_by[name] for name in MONTHS} == {
        name: spent[name] for name in MONTHS
    }
    assert standing.spent_by[""] == spent["neither"]
    assert refused
    assert ledger.verify().findings == ()


def test_the_entry_says_who_gave_their_word(ledger, people):
    assert people.name == "visitors"
    found = [
        (entry.content["cohort"], ledger.names()[entry.content["who"]])
        for entry in ledger.entries()
        if entry.content["kind"] == "attached"
    ]
    assert found == [("May", "clara"), ("June", "clara")]


def test_nobody_charges_people_of_whom_nothing_was_said(ledger, people):
    with pytest.raises(LedgerError, match="nobody has said who the people of 'July' are"):
        charge(ledger, "July", Cost("laplace", epsilon=0.1))
    assert people.standing.charges == 0


def about(place):
    """Who is given the outputs of a cohort, or others."""
    outputs = np.arange(10.0) + place
    return replace(spender(), fingerprint=lambda key: fingerprint_column(outputs, key=key))


@pytest.mark.parametrize(
    ("cohort", "place", "refused"),
    [
        ("May", 0, ""),
        ("", 0, ""),
        ("June", 0, "as those of May, and this would be about the people of June alone"),
        ("May", 2, "as those of everybody, and this would be about the people of May alone"),
        # Outputs that the ledger does not know: it takes the caller at their word.
        ("June", 9, ""),
    ],
)
def test_outputs_of_one_cohort_are_not_charged_to_another(ledger, people, cohort, place, refused):
    """Else somebody pays for others: twelve charges about January are one for each month."""
    people.attach(np.arange(10.0) + 2, column="minutes")
    account = ledger.account("visitors", cohort=cohort)
    if refused:
        with pytest.raises(LedgerError, match=refused):
            account.open_charge(about(place))
        assert people.standing.charges == 0
        return
    opened = account.open_charge(about(place))
    opened.reserve(Cost("laplace", epsilon=0.1))
    opened.close(failed=False)
    assert ledger.verify().notes == ()


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.usefixtures("people")
def test_auditors_alone_see_that_outputs_are_those_of_another_custodians_cohort(
    ledger, monkeypatch, earlier
):
    """A refusal would confirm a guess of them; and earlier versions refused nothing."""
    account = ledger.account("visitors", cohort="June")
    if earlier:
        monkeypatch.setattr(Account, "_check_cohort", lambda *_: None)
        append = Writing.append_noted

        def appended(this, kind, *, note, **content):
            kept = {name: each for name, each in note.items() if name != "cohorts"}
            return append(this, kind, note=kept, **content)

        monkeypatch.setattr(Writing, "append_noted", appended)
    else:
        account = account.with_inputs({}, own=["June: minutes"])
    opened = account.open_charge(about(0))
    opened.reserve(Cost("laplace", epsilon=0.1))
    opened.close(failed=False)
    assert ledger.verify().notes == (
        f"entry {opened.number} of the account 'visitors' is about the people of 'June' alone, and "
        "the same outputs are attached there as those of 'May'",
    )
    assert ledger.verify().findings == ()


def test_a_charge_that_was_moved_to_another_cohort_is_found(ledger, people):
    charge(ledger, "May", Cost("laplace", epsilon=0.5))
    with ledger.database.writing() as writing:
        (row,) = writing.rows.all("charges")
        writing.rows.put("charges", {**row, "cohort": "June"})
    assert people.standing.charges == 1
    assert any("charges" in finding for finding in ledger.verify().findings)


def test_a_cohort_of_which_nothing_was_said_is_found(ledger, people):
    """An edit of the account, in which a month has spent nothing."""
    charge(ledger, "May", Cost("laplace", epsilon=0.5))
    with ledger.database.writing() as writing:
        row = writing.rows.get("accounts", people.name)
        nothing = Amount()
        moved = amounts_text({"": nothing, "May": nothing, "June": nothing})
        writing.rows.put("accounts", {**row, "spent": moved})
    assert any("accounts" in finding for finding in ledger.verify().findings)


def test_the_same_outputs_as_two_cohorts_are_told_to_auditors(ledger, people):
    """Whoever attaches them does not learn it: that would confirm a guess of a column."""
    assert ledger.verify().notes == ()
    with acting_as("clara"):
        people.attach(np.arange(10.0), column="July: minutes", cohort="July")
    (told,) = ledger.verify().notes
    assert told.endswith(
        "says of 'July: minutes' that its people are others, and the same outputs are attached "
        "there as 'May: minutes'"
    )


def test_more_than_the_limit_is_told_of_those_on_whom_it_was_spent(ledger, people):
    charge(ledger, "May", Cost("laplace", epsilon=0.9))
    charge(ledger, "June", Cost("laplace", epsilon=0.1))
    assert people.standing.beyond == frozenset()
    ledger.change_limit(people.name, epsilon=0.5, delta=1e-6, reason="the study ended")
    assert people.standing.used_in_words == (
        "more than the limit, of the people of May: nothing about them fits"
    )
    little = Cost("laplace", epsilon=1e-3)
    assert [taken(ledger, cohort, little) for cohort in ("May", "", "June")] == [False, False, True]
    charge(ledger, "June", Cost("laplace", epsilon=0.3))
    ledger.change_limit(people.name, epsilon=0.2, delta=1e-6, reason="the study ended")
    assert people.standing.beyond == {"May", "June"}


def test_each_month_may_take_the_limit_whole(ledger, people):
    whole = Cost("gaussian", mu=0.235, answers=1, coarseness=2.0**-80)
    for month in MONTHS:
        charge(ledger, month, whole)
    standing = people.standing
    assert not filter_of(LIMIT).accepts(standing.spent)
    assert standing.used_in_words == "100 % of the limit"
    ledger.change_limit(people.name, epsilon=0.9, delta=1e-6, reason="the study ended")
    assert people.standing.beyond == frozenset(MONTHS)
