"""Every site's ledger counts every question once, before its noise is drawn."""

from __future__ import annotations

import json
import shutil

import pytest
from counting_keeper import Counting
from older_copies import keep_copy, put_back
from small_plans import NAMES, TWO_QUESTIONS, Ward, plan_of, rows_of

from cloakgp.custodians import simulate
from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.files import answer_of, question_file
from cloakgp.custodians.plan import digest_of
from cloakgp.ledger import Ledger
from cloakgp.ledger.errors import LedgerError
from cloakgp.ledger.imports import import_releases
from cloakgp.privacy.spending import SpendingError, counted_by
from cloakgp.privacy.tally import describe_spent, tallied


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


def test_a_copy_of_a_folder_draws_no_second_answer_under_the_charge_of_the_first(
    tmp_path, alone, ledger
):
    """An older copy that was put back, where the first answer was lost or taken away."""
    alone.ask()
    folder = tmp_path / "sites" / "west"
    shutil.copytree(folder, tmp_path / "older")
    alone.step()
    first = alone.exchange.files.pop("attempt-1/question-1/answers/west.json")
    newer = folder.rename(tmp_path / "newer")
    shutil.copytree(tmp_path / "older", folder)
    before = standing(ledger)
    alone.sites["west"] = ward_of(tmp_path, ledger, exchange=alone.exchange).sites["west"]
    for _ in range(2):
        with pytest.raises(SpendingError, match=r"another copy of the folder.*Nothing was drawn"):
            alone.step("west")
    assert not alone.exchange.has("attempt-1/question-1/answers/west.json")
    assert not (folder / "answer-1-1.json").exists()
    assert standing(ledger) == before
    # The copy that drew goes on.
    shutil.rmtree(folder)
    newer.rename(folder)
    alone.sites["west"] = ward_of(tmp_path, ledger, exchange=alone.exchange).sites["west"]
    alone.step("west")
    assert alone.exchange.get("attempt-1/question-1/answers/west.json") == first
    alone.finish()
    assert standing(ledger).spent == before.spent


def test_a_copy_from_before_its_site_left_draws_no_second_answer(tmp_path, alone, ledger):
    alone.ask()
    folder = tmp_path / "sites" / "west"
    shutil.copytree(folder, tmp_path / "older")
    alone.step()
    alone.sites["west"].leave()
    alone.exchange.files.pop("attempt-1/question-1/answers/west.json")
    shutil.rmtree(folder)
    (tmp_path / "older").rename(folder)
    alone.sites["west"] = ward_of(tmp_path, ledger, exchange=alone.exchange).sites["west"]
    for _ in range(2):
        with pytest.raises(SpendingError, match=r"was voided.*nothing more of it is sent"):
            alone.step("west")
    assert not (folder / "answer-1-1.json").exists()
    assert standing(ledger).used == 0.0


def test_sites_of_one_account_are_counted_together(tmp_path, ledger):
    """What one of them draws, or voids as it leaves, is no copy's of another."""
    ward = ward_of(tmp_path, ledger)
    ward.ask()
    ward.step("west")
    ward.sites["west"].leave()
    del ward.sites["west"]
    ward.step("north")
    before = standing(ledger)
    ward.step("east")
    assert standing(ledger) == before
    ward.coordinator.begin_without(["west"])
    ward.finish()
    assert standing(ledger).used == pytest.approx(0.5, abs=0.02)


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


def void_what_is_open(ledger):
    [number] = standing(ledger).open
    ledger.void(number, reason="its process seems dead", although_drawn=True)


@pytest.mark.parametrize("sent", [True, False], ids=["answered", "not sent yet"])
def test_nothing_is_sent_of_a_question_whose_charge_was_voided(tmp_path, alone, ledger, sent):
    """The page of the ledger says so: its result is not returned."""
    alone.ask()
    alone.step()
    void_what_is_open(ledger)
    if sent:
        alone.collect()
    else:
        alone.exchange.files.pop("attempt-1/question-1/answers/west.json")
        alone.sites["west"] = ward_of(tmp_path, ledger, exchange=alone.exchange).sites["west"]
    for _ in range(2):
        with pytest.raises(SpendingError, match=r"was voided.*nothing more of it is sent"):
            alone.sites["west"].step()
    assert alone.exchange.has("attempt-1/question-1/answers/west.json") == sent
    assert not alone.exchange.has("attempt-1/question-1/openings/west.json")
    assert not alone.sites["west"].folder.load().questions["1/1"].opened
    alone.sites["west"].leave()
    assert standing(ledger).used == 0.0


def test_a_mask_is_not_opened_if_its_charge_is_voided_while_that_is_noted(
    alone, ledger, monkeypatch
):
    alone.ask()
    alone.step()
    alone.collect()
    west = alone.sites["west"]
    save = west.folder.save

    def voided_before_saving(journal):
        if standing(ledger).open:
            void_what_is_open(ledger)
        save(journal)

    monkeypatch.setattr(west.folder, "save", voided_before_saving)
    for _ in range(2):
        with pytest.raises(SpendingError, match="nothing more of it is sent"):
            west.step()
    assert not alone.exchange.has("attempt-1/question-1/openings/west.json")
    west.leave()
    assert standing(ledger).used == 0.0


@pytest.fixture
def restored(tmp_path, alone, ledger):
    """Put back the ledger as it is now, later."""
    path, kept = tmp_path / "ledger.db", tmp_path / "backup.db"
    keep_copy(path, kept)

    def restore(count=None):
        ledger.close()
        old = put_back(path, kept, before_reconciling=count)
        alone.sites["west"] = ward_of(tmp_path, old, exchange=alone.exchange).sites["west"]
        return old

    return restore


def test_a_charge_that_a_restored_ledger_does_not_have_is_reserved_anew(alone, ledger, restored):
    alone.ask()
    alone.step()
    before = standing(ledger).spent
    ledger = restored()
    assert standing(ledger).charges == 0
    ledger.change_limit("patients", epsilon=0.5, delta=1e-6, reason="a test")
    alone.collect()
    with pytest.raises(
        SpendingError, match=r"no room for its cost, \(ε, δ\) = \(1, 1e-05\): nothing"
    ):
        alone.step("west")
    assert not alone.exchange.has("attempt-1/question-1/openings/west.json")
    ledger.change_limit("patients", epsilon=2.0, delta=1e-5, reason="room for it")
    alone.finish()
    after = standing(ledger)
    assert (after.charges, after.open, after.spent) == (1, (), before)
    assert ledger.verify().findings == ()


@pytest.mark.parametrize("imports", [True, False])
def test_a_release_is_counted_once_after_a_ledger_was_restored(
    tmp_path, alone, ledger, restored, imports
):
    """By an import before it is reconciled, or by the custodian who comes by again."""
    release = alone.finish()
    before = standing(ledger).spent
    release.save(tmp_path / "a.cloak")

    def count(old):
        if imports:
            import_releases(old.account("patients"), [tmp_path / "a.cloak"], reason="it was lost")

    ledger = restored(count)
    alone.step("west")
    after = standing(ledger)
    assert (after.charges, after.open) == (1, ())
    assert imports or after.spent == before
    assert imported(ledger, release, tmp_path / "b.cloak").charge is None
    assert standing(ledger) == after


def test_a_site_goes_on_with_the_account_with_which_it_joined(tmp_path, alone, ledger):
    """Else a question is drawn, and a release made, that nothing counts."""
    alone.ask()
    joined, ledgerless = alone.sites["west"], Ward(tmp_path / "sites", exchange=alone.exchange)
    ledger.open_account("others", epsilon=2.0, delta=1e-5)
    other = Ledger.create(tmp_path / "other.db")
    other.open_account("patients", epsilon=2.0, delta=1e-5)
    wards = [
        ledgerless,
        Ward(tmp_path / "sites", exchange=alone.exchange, ledger=ledger, account="others"),
        Ward(tmp_path / "sites", exchange=alone.exchange, ledger=other, account="patients"),
    ]
    told = f"counted in the account 'patients' of the ledger {ledger.id}: name these again"
    for ward in wards:
        for act in (ward.sites["west"].step, ward.sites["west"].leave):
            with pytest.raises(CustodiansError, match=told):
                act()
    assert not joined.folder.load().left
    assert joined.step() == ("answered",)
    [_, account] = ledger.standings()
    assert account.used > 0.4
    # Who joined without one goes on without one.
    with pytest.raises(CustodiansError, match="joined without a ledger: go on without one"):
        ward_of(tmp_path, ledger, exchange=alone.exchange).sites["east"].step()


def test_the_journal_of_an_earlier_version_is_gone_on_with(tmp_path, alone, ledger):
    alone.ask()
    path = tmp_path / "sites" / "west" / "journal.json"
    journal = json.loads(path.read_text())
    assert (journal.pop("ledger"), journal.pop("account")) == (ledger.id, "patients")
    path.write_text(json.dumps(journal))
    alone.finish()
    assert standing(ledger).used == pytest.approx(0.5, abs=0.02)


TABLES = {name: rows_of(part) for part, name in enumerate(NAMES)}


@pytest.mark.parametrize("settings", [{}, {"noise": "laplace", "delta": 0.0}, TWO_QUESTIONS])
def test_a_simulation_in_an_open_account_is_one_charge_of_what_it_states(settings, tmp_path):
    """An account with the very budget has room: every site answers, and nobody is at two."""
    plan = plan_of(**settings)
    ledger = Ledger.create(tmp_path / "ledger.db")
    epsilon, delta = plan.budget
    ledger.open_account("all", epsilon=epsilon, delta=delta)
    with ledger.account("all"):
        release = simulate(plan, TABLES)
    found = standing(ledger)
    assert (found.charges, found.open) == (1, ())
    assert found.used == pytest.approx(1.0, rel=1e-4)
    assert release.guarantee.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-4)
    kinds = [each.content["kind"] for each in ledger.entries()]
    assert kinds.count("drawing") == len(release.measurements)
    assert ledger.verify().findings == ()
    with ledger.account("all"), pytest.raises(SpendingError, match="no room"):
        simulate(plan, TABLES)
    assert standing(ledger).spent == found.spent


def test_in_a_simulation_without_a_site_all_that_was_drawn_counts():
    keeper = Counting()
    with counted_by(keeper), tallied() as drawn:
        release = simulate(plan_of(), TABLES, dropping=["west"])
    # Two sites answered before the third was given up, and once more.
    first, second = keeper.charges
    assert (first.ended, second.ended) == ("failed", "committed")
    assert len(drawn) == 4
    assert [cost.mu for cost in first.costs] == [drawn[0].mu]
    assert [cost.mu for cost in second.costs] == [drawn[-1].mu]
    assert keeper.costs[-1].mu >= release.guarantee.mu * (1 - 1e-9)


def test_of_an_interrupted_simulation_is_told_what_one_site_drew():
    with tallied() as drawn:
        release = simulate(plan_of(noise="laplace", delta=0.0), TABLES)
    assert len(drawn) == len(NAMES)
    assert describe_spent(drawn) == "ε = 1, with no δ,"
    assert release.guarantee.pure_epsilon == pytest.approx(1.0)
