"""Life of a charge, at a limit, through failures, and by several at once."""

from __future__ import annotations

import numpy as np
import pytest
from spenders import charge, gaussian, spender

from cloakgp import DPGPClassifier, DPGPQuantileRegressor, DPGPRegressor, extend, refine
from cloakgp.ledger import Ledger, LedgerError, LimitError, projection
from cloakgp.ledger.charges import LedgerCharge
from cloakgp.ledger.database import TableStore
from cloakgp.ledger.errors import ClosedByAnotherError
from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.filters import UNITS, Amount, filter_of
from cloakgp.privacy.spending import Cost
from cloakgp.privacy.tracebacks import forget_on_failure

X = np.linspace(0, 10, 30)[:, None]


def kinds(ledger):
    return [entry.content["kind"] for entry in ledger.entries()]


def test_a_charge_is_reserved_then_drawn_then_committed(ledger, account):
    charge(account, gaussian(0.1), draws=["a"])
    assert kinds(ledger)[2:] == ["reserved", "drawing", "committed"]
    assert account.standing.spent == Amount.of(gaussian(0.1))
    assert account.standing.open == ()
    assert list(ledger.entries())[-1].content["draws"] == ["a"]


def test_the_limit_is_kept_before_anything_is_drawn(ledger, account):
    with pytest.raises(LimitError, match="no room"):
        charge(account, gaussian(5.0))
    assert kinds(ledger) == ["ledger", "account"]
    assert account.standing.spent == Amount()


def test_what_was_held_counts_until_the_call_ends(ledger, account):
    first = account.open_charge(spender())
    first.hold([(0.9, 1e-6)])
    assert account.standing.open == (first.number,)
    assert account.standing.epsilon_if_fixed == pytest.approx(0.9)
    second = account.open_charge(spender())
    with pytest.raises(LimitError):
        second.hold([(0.9, 1e-6)])
    first.close(failed=True)
    second.hold([(0.9, 1e-6)])
    assert kinds(ledger)[2:] == ["reserved", "refunded", "reserved"]


def test_a_failure_after_the_first_draw_costs_that_draw(ledger, account):
    opened = account.open_charge(spender())
    opened.hold([(0.9, 1e-6)])
    opened.reserve(gaussian(0.05))
    opened.drawn("a")
    opened.close(failed=True)
    assert kinds(ledger)[-1] == "failed"
    assert account.standing.spent == Amount.of(gaussian(0.05))


def test_more_than_was_held_is_reserved_too_and_refused_at_the_limit(account):
    opened = account.open_charge(spender())
    opened.hold([(0.1, 1e-6)])
    opened.reserve(gaussian(0.1))
    assert account.standing.spent == Amount.of(gaussian(0.1))
    with pytest.raises(LimitError):
        opened.reserve(gaussian(5.0))
    opened.close(failed=False)
    assert account.standing.spent == Amount.of(gaussian(0.1))


def test_a_call_whose_process_died_counts_until_it_is_voided(ledger, account):
    held = account.open_charge(spender())
    held.hold([(0.5, 1e-6)])
    drawn = charge(account, gaussian(0.05), close=False)
    spent = account.standing.spent
    assert spent == Amount.to_hold([(0.5, 1e-6)]) + Amount.of(gaussian(0.05))
    ledger.void(held.number, reason="the machine lost power")
    assert account.standing.spent == Amount.of(gaussian(0.05))
    with pytest.raises(LedgerError, match="noise may have been drawn"):
        ledger.void(drawn.number, reason="the machine lost power")
    with pytest.raises(LedgerError, match="give a reason"):
        ledger.void(drawn.number, reason=" ", although_drawn=True)
    ledger.void(drawn.number, reason="nothing had left the machine", although_drawn=True)
    assert account.standing.spent == Amount()
    assert ledger.verify().sound


@pytest.mark.parametrize("at", ["a later draw", "the end", "a failure"])
def test_of_a_call_whose_charge_is_voided_nobody_is_told_that_it_counts(
    ledger, account, monkeypatch, at
):
    """Nor that the ledger could not be reached. Others of the same call are told as before."""
    fit = DPGPRegressor(bounds=(0, 1), epsilon=0.2, delta=1e-6, stages=None, interval=False)

    def void(*_, **__):
        [number] = account.standing.open
        ledger.void(number, reason="taken for dead", although_drawn=True)
        if at == "a failure":
            raise OSError("no memory")

    @forget_on_failure
    def two_fits(X, y):
        fit.fit(X, y)
        with monkeypatch.context() as patch:
            if at == "a later draw":
                reserve, draws = LedgerCharge.reserve, []

                def reserved(charge, cost):
                    draws.append(cost)
                    if len(draws) == 2:
                        void()
                    reserve(charge, cost)

                patch.setattr(LedgerCharge, "reserve", reserved)
                fit.set_params(stages=[(0.4, None), (0.6, None)])
            else:
                patch.setattr(LedgerCharge, "drawn", void)
            fit.fit(X, y)

    kind = OSError if at == "a failure" else ClosedByAnotherError
    with account, pytest.raises(kind) as caught:
        two_fits(X, X[:, 0] / 10)
    notes = caught.value.__notes__
    voided = "closed by another person, who voided it: nothing of it counts"
    assert voided in " ".join([str(caught.value), *notes])
    # The fit before it.
    spent = account.standing.spent.epsilon_at(1e-6)
    assert spent == pytest.approx(0.2, rel=1e-3)
    told = [note for note in notes if "counts as spent" in note]
    assert told == [
        "Noise had been drawn before this: ε = 0.2, with no δ, counts as spent, though nothing was "
        "returned."
    ]


def test_answers_noted_on_a_charge_that_is_voided_count_with_the_next_that_has_them(
    ledger, account
):
    """Whoever voids it says that nobody will see them; if somebody does, they count anew."""
    keyed, digest = account.keyed("a question"), "ab" * 32
    drawn = charge(keyed, gaussian(0.05), close=False)
    account.note("a question", digest)
    assert account.counts(digest)
    ledger.void(drawn.number, reason="lost before they were sent", although_drawn=True)
    assert not account.counts(digest)
    for _ in range(2):
        charge(account, gaussian(0.05), draws=[digest])
        assert account.counts(digest)
    assert ledger.verify().sound


def test_who_was_voided_while_running_draws_and_publishes_nothing(ledger, account):
    held = account.open_charge(spender())
    held.hold([(0.5, 1e-6)])
    ledger.void(held.number, reason="taken for dead")
    with pytest.raises(LedgerError, match="closed by another person"):
        held.reserve(gaussian(0.1))
    drawn = charge(account, gaussian(0.05), close=False)
    ledger.void(drawn.number, reason="taken for dead", although_drawn=True)
    with pytest.raises(LedgerError, match="closed by another person"):
        drawn.close(failed=False)


def test_closing_again_changes_nothing(ledger, account):
    opened = charge(account, gaussian(0.1))
    before = ledger.verify()
    opened.close(failed=False)
    assert ledger.verify() == before
    with pytest.raises(LedgerError, match="committed"):
        ledger.void(opened.number, reason="a mistake")


@pytest.mark.parametrize(
    ("account_unit", "unit", "allowed"),
    [
        ("row", "row", True),
        ("row", "person", True),
        ("person", "row", False),
        ("row", "whole row replaced", True),
        ("row", "whole row added or removed", False),
        ("whole row replaced", "row", False),
        ("person", "person", True),
    ],
)
def test_units_do_not_add_up_unless_one_implies_the_other(ledger, account_unit, unit, allowed):
    account = ledger.open_account("others", epsilon=1.0, delta=1e-6, unit=account_unit)
    if allowed:
        account.open_charge(spender(unit=unit)).close(failed=False)
    else:
        with pytest.raises(LedgerError, match="do not add up"):
            account.open_charge(spender(unit=unit))


def test_pure_and_gaussian_charges_share_a_limit(account):
    charge(account, Cost(mechanism="laplace", epsilon=0.5))
    with pytest.raises(LimitError):
        charge(account, gaussian(0.2))
    charge(account, gaussian(0.05))
    assert account.standing.used < 1


def test_a_fit_in_stages_is_one_charge_that_holds_its_whole_budget(ledger, account):
    with account:
        model = DPGPRegressor(bounds=(0, 1), noise="gaussian", epsilon=0.5, delta=1e-6)
        model.fit(X, X[:, 0] / 10)
    stages = len(model.release_.measurements)
    assert kinds(ledger)[2:] == ["reserved", *(["drawing"] * stages), "committed"]
    reserved, committed = list(ledger.entries())[2], list(ledger.entries())[-1]
    assert reserved.content["call"] == "fit"
    assert reserved.content["epsilon"] == 0.5
    assert Amount.from_numbers(reserved.content).epsilon_at(1e-6) == pytest.approx(0.5, rel=1e-4)
    assert len(committed.content["draws"]) == stages
    expected = model.guarantee_
    assert account.standing.epsilon_if_fixed == pytest.approx(expected.epsilon, rel=1e-4)
    assert account.standing.spent.answers == expected.answers


def test_a_fit_that_fails_in_a_later_stage_costs_what_was_drawn(ledger, account, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("the second stage fails")

    monkeypatch.setattr("cloakgp.fitting.steps.take_step", refuse)
    with account, pytest.raises(RuntimeError):
        DPGPRegressor(
            bounds=(0, 1),
            epsilon=0.5,
            delta=1e-6,
            noise="gaussian",
            stages=[(0.4, None), (0.6, 1.0)],
        ).fit(X, X[:, 0] / 10)
    assert kinds(ledger)[2:] == ["reserved", "drawing", "failed"]
    assert 0 < account.standing.epsilon_if_fixed < 0.4


def test_a_fit_that_is_wrong_costs_nothing(ledger, account):
    with account, pytest.raises(ValueError, match="y"):
        DPGPRegressor(bounds=(0, 1), epsilon=0.5, delta=1e-6).fit(X, ["text"] * 30)
    assert account.standing.spent == Amount()
    assert set(kinds(ledger)[2:]) <= {"reserved", "refunded"}
    with account, pytest.raises(ValueError, match="epsilon"):
        DPGPRegressor(bounds=(0, 1), epsilon=-0.5, delta=1e-6).fit(X, X[:, 0] / 10)
    assert ledger.verify().sound


def test_no_fit_begins_that_would_not_end_within_the_limit(ledger, account):
    with account, pytest.raises(LimitError):
        DPGPRegressor(bounds=(0, 1), epsilon=1.01, delta=1e-6).fit(X, X[:, 0] / 10)
    assert kinds(ledger) == ["ledger", "account"]


def test_exactly_the_limit_can_be_spent(account):
    with account:
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6).fit(X, X[:, 0] / 10)
        assert account.standing.releases_left(0.5, 1e-6) == 0
        with pytest.raises(LimitError):
            ask(
                np.ones((1, 2)),
                [0.0, 1.0],
                question=OutputBounds.checked((0, 1)),
                epsilon=0.5,
                delta=1e-6,
            )


def test_a_person_with_several_rows_is_another_unit(ledger):
    people = ledger.open_account("patients", epsilon=1.0, delta=1e-6, unit="person")
    model = DPGPRegressor(bounds=(0, 1), epsilon=0.5, delta=1e-6)
    with people:
        model.fit(X, X[:, 0] / 10, groups=[row // 3 for row in range(30)])
        with pytest.raises(LedgerError, match="do not add up"):
            model.fit(X, X[:, 0] / 10)
    assert people.standing.charges == 1


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DPGPRegressor(bounds=(0, 1), epsilon=0.2, delta=1e-6), X[:, 0] / 10),
        (DPGPQuantileRegressor(bounds=(0, 1), epsilon=0.2, delta=1e-6), X[:, 0] / 10),
        (DPGPClassifier(classes=["a", "b"], epsilon=0.2, delta=1e-6), np.repeat(["a", "b"], 15)),
    ],
)
def test_persons_who_have_one_row_each_are_persons(model, y, ledger):
    """Whom a charge protects does not depend on whether anybody happens to have two rows."""
    people = ledger.open_account("patients", epsilon=1.0, delta=1e-6, unit="person")
    persons = [f"p{row}" for row in range(30)]
    with people:
        first = model.fit(X, y, groups=iter(persons)).release_
        later = extend(first, X + 1, y, epsilon=0.2, delta=1e-6, groups=persons)
        asked = refine(first, y, epsilon=0.2, delta=1e-6, groups=persons)
    assert people.standing.charges == 3
    for release in (first, later, asked):
        # Protecting a person who has one row is protecting that row: nothing dearer is stated.
        assert not any(one.strategy.grouped for one in release.measurements)
    alone = model.fit(X, y).release_.guarantee
    assert first.guarantee.epsilon == pytest.approx(alone.epsilon, rel=1e-6)
    rows = ledger.open_account("rows", epsilon=1.0, delta=1e-6)
    with rows:
        model.fit(X, y, groups=persons)


def test_labels_count(account):
    with account:
        model = DPGPClassifier(classes=["a", "b"], epsilon=0.5, delta=1e-6, noise="gaussian")
        model.fit(X, np.where(X[:, 0] > 5, "a", "b"))
    assert account.standing.epsilon_if_fixed == pytest.approx(0.5, rel=1e-6)


def test_both_databases_keep_the_same_account(url):
    ledger = Ledger.create(url)
    account = ledger.open_account("people", epsilon=1.0, delta=1e-6)
    charge(account, gaussian(0.1), draws=["a"])
    charge(account, gaussian(0.05), failed=True)
    with pytest.raises(LimitError):
        charge(account, gaussian(3.0))
    again = Ledger(url)
    expected = Amount.of(gaussian(0.1)) + Amount.of(gaussian(0.05))
    assert again.account("people").standing.spent == expected
    assert again.verify().sound
    again.close()
    ledger.close()


def test_whether_a_charge_takes_a_limit_whole_is_settled_before_its_first_answer(ledger):
    """A fourth way beside the three filters, that an answer could choose, would add its own δ."""
    small = Cost(mechanism="laplace", epsilon=0.01)
    for number, ended_early in enumerate((False, True)):
        people = ledger.open_account(f"whole {number}", epsilon=1.0, delta=1e-5)
        first = people.open_charge(spender())
        first.hold([(1.0, 1e-5)])
        assert not filter_of((1.0, 1e-5)).accepts(people.standing.spent)
        first.reserve(gaussian(0.1))
        first.close(failed=ended_early)
        # It has drawn little, and counts for all: nothing more fits, ever.
        with pytest.raises(LimitError):
            charge(people, small)
        assert people.standing.used == 1
    assert ledger.verify().sound


def test_a_charge_that_the_filters_accept_never_takes_the_limit_whole(ledger):
    people = ledger.open_account("others", epsilon=1.0, delta=1e-5)
    rule = filter_of((1.0, 1e-5))
    whole = Amount.to_hold([(1.0, 1e-5)])
    part = 0.9 * (rule.gaussian_cap / UNITS) ** 0.5
    for held in ([], [(0.3, 1e-6)]):
        first = people.open_charge(spender())
        first.hold(held)
        first.reserve(gaussian(part))
        # Within all of δ, and no more within the filters.
        more = (whole.gaussian / UNITS - part**2) ** 0.5 * 0.999
        with pytest.raises(LimitError):
            first.reserve(gaussian(more))
        first.close(failed=True)
        people = ledger.open_account(f"more {bool(held)}", epsilon=1.0, delta=1e-5)


def test_what_is_not_drawn_takes_nothing(ledger):
    people = ledger.open_account("others", epsilon=1.0, delta=1e-5)
    first = people.open_charge(spender())
    first.hold([(1.0, 1e-5)])
    with pytest.raises(LimitError):
        charge(people, Cost(mechanism="laplace", epsilon=0.01))
    first.close(failed=True)
    charge(people, Cost(mechanism="laplace", epsilon=0.01))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_rows_that_are_kept_out_for_margins_add_nothing(noise, ledger):
    """Nobody's output is both in the fit and in the question about margins."""
    delta = 0.0 if noise == "laplace" else 1e-5
    people = ledger.open_account("others", epsilon=9.0, delta=1e-5)
    rows = np.linspace(0, 10, 400)[:, None]
    model = DPGPRegressor(
        bounds=(0, 10), epsilon=2.0, delta=delta, noise=noise, calibrate=0.4, inducing=5
    )
    with people:
        release = model.fit(rows, rows[:, 0]).release_
    assert release.margins is not None
    whole = Amount.to_hold([(2.0, delta)])
    spent, whole = (
        one.gaussian if delta else one.laplace + one.pure for one in (people.standing.spent, whole)
    )
    assert 0.9 * whole < spent <= 1.0001 * whole
    cohorts = [
        entry.content.get("cohort") for entry in ledger.entries() if "mechanism" in entry.content
    ]
    assert cohorts[-1] == 1
    assert set(cohorts[:-1]) == {None}
    assert people.standing.charges == 1
    assert ledger.verify().sound


def test_a_cohort_that_is_counted_as_another_is_found(ledger):
    """An edit of the table, which says that two draws are about different rows."""
    people = ledger.open_account("others", epsilon=9.0, delta=1e-5)
    opened = people.open_charge(spender())
    for cohort in (0, 1, 1):
        opened.reserve(Cost(mechanism="laplace", epsilon=0.25, cohort=cohort))
    opened.close(failed=False)
    assert people.standing.epsilon_if_fixed == pytest.approx(0.5, rel=1e-3)
    assert ledger.verify().sound
    amounts = projection.amounts_from(row_of(ledger, opened.number)["drawn"], alone="0")
    assert list(amounts) == ["0", "1"]
    moved = projection.amounts_text({"0": amounts["0"], "1": amounts["0"], "2": amounts["0"]})
    with ledger.database.writing() as writing:
        writing.rows.put("charges", {**row_of(ledger, opened.number), "drawn": moved})
    assert any("charges" in finding for finding in ledger.verify().findings)


def row_of(ledger, number):
    with ledger.database.reading() as connection:
        return TableStore(connection).get("charges", number)
