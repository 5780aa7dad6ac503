"""Every site's ledger counts every question once, before its noise is drawn."""

from __future__ import annotations

import pytest
from small_plans import NAMES, TWO_QUESTIONS, Ward, plan_of

from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.files import answer_of, question_file
from cloakgp.custodians.plan import digest_of
from cloakgp.ledger import Ledger
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.imports import import_releases
from cloakgp.privacy.spending import SpendingError


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "ledger.db")
    made.open_account("patients", epsilon=2.0, delta=1e-5)
    return made


def ward_of(tmp_path, ledger, **settings):
    return Ward(tmp_path / "sites", ledger=ledger, account="patients", **settings)


def standing(ledger):
    [found] = ledger.standings()
    return found


@pytest.fixture
def alone(tmp_path, ledger):
    """One site that counts, among others that do not."""
    ward = Ward(tmp_path / "sites")
    counted = ward_of(tmp_path, ledger, exchange=ward.exchange).sites["west"]
    ward.sites["west"] = counted
    return ward


def test_a_question_is_charged_until_its_mask_is_opened_and_then_committed(alone, ledger):
    alone.ask()
    assert standing(ledger).charges == 0
    alone.step()
    before = standing(ledger)
    assert (before.charges, len(before.open)) == (1, 1)
    alone.finish()
    after = standing(ledger)
    assert (after.charges, after.open) == (1, ())
    assert after.spent == before.spent
    assert ledger.verify().findings == ()


def test_a_void_question_costs_nothing(alone, ledger):
    alone.ask()
    alone.step("north", "west")
    assert standing(ledger).used > 0.4
    alone.coordinator.begin_without(["east"])
    del alone.sites["east"]
    alone.finish()
    after = standing(ledger)
    assert (after.charges, after.open) == (2, ())
    assert after.used == pytest.approx(0.5, abs=0.02)
    states = [each.content["kind"] for each in ledger.entries() if "charge" in each.content]
    assert states.count("voided") == 1
    assert states.count("committed") == 1
    assert ledger.verify().findings == ()


def test_a_site_that_leaves_gets_back_what_it_did_not_open(alone, ledger):
    alone.ask()
    alone.step("north", "west")
    west = alone.sites["west"]
    assert standing(ledger).used > 0.4
    west.leave()
    after = standing(ledger)
    assert (after.used, after.open) == (0.0, ())
    assert ledger.verify().findings == ()
    # Its mask stays closed, whatever comes.
    alone.step("east")
    alone.collect()
    with pytest.raises(CustodiansError, match="this site has left"):
        west.step()
    assert alone.exchange.get("attempt-1/question-1/complete.json") is not None
    assert alone.exchange.get("attempt-1/question-1/openings/west.json") is None
    west.leave()
    assert standing(ledger) == after


def test_what_was_opened_stays_spent_when_a_site_leaves(alone, ledger):
    alone.finish()
    before = standing(ledger)
    alone.sites["west"].leave()
    assert standing(ledger) == before
    assert before.used == pytest.approx(0.5, abs=0.02)


def test_a_site_whose_account_has_no_room_for_the_whole_plan_does_not_join(alone, ledger):
    ledger.change_limit("patients", epsilon=0.5, delta=1e-6, reason="a test")
    west = alone.sites["west"]
    with pytest.raises(CustodiansError, match="no room for all questions of the plan"):
        west.step()
    assert not alone.exchange.has("sites/west.json")
    assert standing(ledger).charges == 0
    ledger.change_limit("patients", epsilon=2.0, delta=1e-5, reason="room for it")
    assert west.step() == ("joined",)


def test_a_site_that_lost_its_folder_is_told_so(tmp_path, alone):
    alone.sites["west"].step()
    other = Ward(tmp_path / "elsewhere", exchange=alone.exchange).sites["west"]
    with pytest.raises(CustodiansError, match="has joined already, and not from the folder"):
        other.step()


def test_an_account_without_room_refuses_before_the_draw(alone, ledger):
    alone.ask()
    # What was there when it joined has gone elsewhere since.
    ledger.change_limit("patients", epsilon=0.5, delta=1e-6, reason="a test")
    with pytest.raises(LedgerError, match="no room"):
        alone.step("west")
    assert standing(ledger).spent == type(standing(ledger).spent)()
    site = alone.sites["west"]
    assert site.folder.load().questions == {}
    assert site.folder.answer("1/1") is None


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_several_questions_are_the_plans_budget_together(tmp_path, ledger, noise):
    ward = Ward(tmp_path / "others", plan=plan_of(noise=noise, **TWO_QUESTIONS))
    ward.sites["west"] = ward_of(tmp_path, ledger, plan=ward.plan, exchange=ward.exchange).sites[
        "west"
    ]
    release = ward.finish()
    assert len(release.measurements) == 2
    found = standing(ledger)
    assert (found.charges, found.open) == (2, ())
    assert found.epsilon_if_fixed <= 1.0


def test_another_keeper_counts_without_a_ledger(tmp_path, ledger):
    ward = Ward(tmp_path / "sites")
    ward.ask()
    with ledger.account("patients"):
        ward.step("west")
    assert standing(ledger).charges == 1
    assert standing(ledger).open == ()


def test_the_keys_of_questions_are_of_the_roster(alone, ledger):
    alone.finish()
    roster = alone.coordinator.roster.digest
    request = digest_of(alone.exchange.get("attempt-1/question-1/request.cloak"))
    found = ledger.account("patients").find(f"custodians {roster}, question 1/1, {request}")
    assert found.drawn
    assert not found.open


def test_the_coordinator_counts_nothing(tmp_path, ledger):
    """It draws no noise, and has no outputs: a ledger of its own stays as it was."""
    ward = Ward(tmp_path / "sites")
    with ledger.account("patients"):
        ward.step()
        ward.collect()
    assert standing(ledger).spent == type(standing(ledger).spent)()
    assert set(ward.sites) == set(NAMES)


def test_a_lost_folder_is_not_drawn_for_again(alone, tmp_path, ledger):
    """The ledger knows of what was drawn and opened; nobody can draw other noise for it."""
    alone.finish()
    (tmp_path / "sites" / "west" / "journal.json").unlink()
    (tmp_path / "sites" / "west" / "answer-1-1.json").unlink()
    alone.exchange.files.pop("attempt-1/question-1/answers/west.json")
    alone.sites["west"] = ward_of(tmp_path, ledger, exchange=alone.exchange).sites["west"]
    with pytest.raises(SpendingError, match="closed the charge"):
        alone.step("west")


def imported(ledger, release, path):
    release.save(path)
    [found] = import_releases(ledger.account("patients"), [path], reason="older than the ledger")
    return found


@pytest.mark.parametrize(
    "settings",
    [{}, TWO_QUESTIONS, {"noise": "laplace", "delta": 0.0, "epsilon": 0.5}],
    ids=["one", "two", "laplace"],
)
def test_a_release_that_was_counted_is_not_counted_again_by_an_import(tmp_path, ledger, settings):
    ledger.change_limit("patients", epsilon=5.0, delta=1e-4, reason="room for three sites")
    ward = ward_of(tmp_path, ledger, plan=plan_of(**settings))
    release = ward.finish()
    # Who comes by when the release is there.
    ward.step()
    before, entries = standing(ledger), len(list(ledger.entries()))
    assert imported(ledger, release, tmp_path / "a.cloak").charge is None
    assert standing(ledger) == before
    ward.begin_again(*NAMES)
    ward.step()
    assert len(list(ledger.entries())) == entries
    assert ledger.verify().findings == ()


def test_a_sum_that_the_coordinator_invents_is_not_noted(tmp_path, alone, ledger):
    """Else a release of the same answers, made elsewhere, would count for nothing."""
    release = alone.finish()
    alone.exchange.files["attempt-1/question-1/total.json"] = b"{}"
    alone.begin_again("north", "east")
    alone.step()
    assert imported(ledger, release, tmp_path / "a.cloak").charge is None


def test_an_import_knows_a_release_once_its_custodian_came_by_again(tmp_path, ledger):
    """As the page says: before, no ledger has seen the sum, and it is counted once more."""
    ward = Ward(tmp_path / "sites")
    first = next(iter(ward.sites))
    ward.sites[first] = ward_of(tmp_path, ledger, exchange=ward.exchange).sites[first]
    release = ward.finish()
    kinds = [each.content["kind"] for each in ledger.entries()]
    assert kinds[-1] == "committed"
    ward.step(first)
    kinds = [each.content["kind"] for each in ledger.entries()]
    assert kinds[-1] == "noted"
    before = standing(ledger)
    assert imported(ledger, release, tmp_path / "a.cloak").charge is None
    assert standing(ledger) == before
    assert ledger.verify().findings == ()


def test_an_answer_that_was_changed_after_all_had_answered_is_not_noted(tmp_path, ledger):
    ward = Ward(tmp_path / "sites")
    first, other, *_ = ward.sites
    ward.sites[first] = ward_of(tmp_path, ledger, exchange=ward.exchange).sites[first]
    ward.finish()
    answers = [question_file(1, 1, answer_of(name)) for name in (first, other)]
    ward.exchange.files[answers[1]] = ward.exchange.files[answers[0]]
    # A new process, which has read no answer.
    ward.sites[first] = ward_of(tmp_path, ledger, exchange=ward.exchange).sites[first]
    with pytest.raises(CustodiansError, match=f"the answer of {other} was changed"):
        ward.step(first)
    assert [each.content["kind"] for each in ledger.entries()][-1] == "committed"
