"""Accounts: what a block counts, columns that are recognised, and keys of releases."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spenders import charge, gaussian

from cloakgp import DPGPRegressor
from cloakgp.ledger import Ledger, LedgerError, LimitError
from cloakgp.ledger.charges import LedgerCharge
from cloakgp.ledger.database import Database
from cloakgp.ledger.engines import parse_url
from cloakgp.ledger.errors import PrivateInputError
from cloakgp.ledger.exports import receipt_of
from cloakgp.privacy import OutputBounds, ask
from cloakgp.privacy.filters import filter_of
from cloakgp.privacy.spending import Cost, Spender, SpendingError, counted_by, keeper_in_force
from cloakgp.streams.noting import Notes, NotingKeeper
from cloakgp.utils.formatting import percent

X = np.linspace(0, 10, 30)[:, None]
y = X[:, 0] / 10
SMALL = {"bounds": (0, 1), "epsilon": 0.05, "delta": 1e-7}


def draw(epsilon=0.1, outputs=(0.0, 1.0)):
    return ask(
        np.ones((1, 2)), outputs, question=OutputBounds.checked((0, 1)), epsilon=epsilon, delta=1e-7
    )


def test_a_standing_is_read_in_a_line(account):
    with account:
        draw()
    standing = account.standing
    said = repr(standing)
    assert f"used {percent(standing.used)} of the limit;" in said
    assert "1 charge;" in said
    assert len(said) < 150
    assert not re.search(r"\d{8}", said)


def test_outside_of_a_block_nothing_is_counted(account):
    draw()
    with account:
        pass
    draw()
    assert account.standing.charges == 0


@pytest.mark.filterwarnings("ignore::cloakgp.RepeatedSpendingWarning")
def test_every_fit_of_a_cross_validation_counts(account):
    with account:
        cross_val_score(DPGPRegressor(**SMALL), X, y, cv=3)
    assert account.standing.charges == 3


@pytest.mark.parametrize(
    "backend",
    # Of loky's, those that are started anew below do.
    [pytest.param("loky", marks=pytest.mark.slow), "threading", "multiprocessing"],
)
@pytest.mark.filterwarnings("ignore::cloakgp.RepeatedSpendingWarning")
def test_workers_that_are_started_within_a_block_count(backend, account):
    get_reusable_executor(max_workers=1).shutdown(wait=True)
    from joblib import parallel_config

    try:
        with account, parallel_config(backend=backend, n_jobs=2):
            cross_val_score(DPGPRegressor(**SMALL), X, y, cv=3)
    finally:
        get_reusable_executor(max_workers=1).shutdown(wait=True)
    assert account.standing.charges == 3
    assert "CLOAKGP_LEDGER" not in os.environ


@pytest.fixture
def kept_workers(home):
    """Two workers of joblib's that were started when no account was open, and are kept.

    They know where keys are.
    """
    assert os.environ["CLOAKGP_LEDGER_HOME"] == str(home)
    get_reusable_executor(max_workers=1).shutdown(wait=True)
    workers = joblib.Parallel(n_jobs=2)
    workers(joblib.delayed(abs)(number) for number in range(4))
    yield workers
    get_reusable_executor(max_workers=1).shutdown(wait=True)


@pytest.mark.usefixtures("kept_workers")
@pytest.mark.filterwarnings("ignore::cloakgp.RepeatedSpendingWarning")
def test_workers_that_are_kept_count_for_the_block_that_they_are_sent_from(ledger, account):
    """Those of before any block counted for nobody, and those of another's block for the other."""
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    model = DPGPRegressor(**SMALL)
    with account:
        cross_val_score(model, X, y, cv=2, n_jobs=2)
    assert account.standing.charges == 2
    get_reusable_executor(max_workers=1).shutdown(wait=True)
    with account:
        cross_val_score(model, X, y, cv=2, n_jobs=2)
    with other:
        cross_val_score(model, X, y, cv=3, n_jobs=2)
        # A search within a worker copies its model before it fits it.
        within = GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=2, refit=False)
        joblib.Parallel(n_jobs=2)(joblib.delayed(fitted_alone)(within) for _ in range(1))
    assert (account.standing.charges, other.standing.charges) == (4, 5)


def fitted_alone(model):
    model.fit(X, y)


@pytest.mark.usefixtures("kept_workers")
def test_what_is_sent_counts_for_its_cohort_and_purpose_or_is_refused(ledger, account):
    """Refused where several accounts are open, or one release's alone."""
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)

    def run():
        joblib.Parallel(n_jobs=2)([joblib.delayed(fitted_alone)(DPGPRegressor(**SMALL))])

    with account, other, pytest.raises(SpendingError, match="several accounts were open"):
        run()
    with pytest.raises(SpendingError, match="counts in that one alone"):
        account.publish(run)
    assert (account.standing.charges, other.standing.charges) == (0, 0)
    account.attach(y, column="May", cohort="May")
    asked = ledger.account("people", cohort="May", purpose="figure 3", approved_by="Ada")
    with asked:
        run()
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert (reserved["cohort"], reserved["purpose"]) == ("May", "figure 3")
    assert "approved_by" in reserved


def sent(model, account, monkeypatch):
    """A model as another process has it, sent from within the block of an account."""
    with account:
        content, exported = pickle.dumps(model), {name: os.environ[name] for name in EXPORTED}
    monkeypatch.setattr("cloakgp.privacy.spending._STARTED", 0)
    return pickle.loads(content), exported


def test_fits_of_two_accounts_in_threads_of_one_worker_count_each_in_its_own(
    ledger, account, monkeypatch
):
    """Each is within its own block before the first of them draws."""
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    models = []
    for each in (account, other):
        with each:
            models.append(pickle.dumps(DPGPRegressor(**SMALL)))
    monkeypatch.setattr("cloakgp.privacy.spending._STARTED", 0)
    first, together = threading.Event(), threading.Barrier(2, timeout=20)
    validated = DPGPRegressor._request

    def validate(model):
        first.set()
        together.wait()
        return validated(model)

    monkeypatch.setattr(DPGPRegressor, "_request", validate)
    with ThreadPoolExecutor(2) as threads:
        fits = [threads.submit(fitted_alone, pickle.loads(models[0]))]
        assert first.wait(20)
        fits.append(threads.submit(fitted_alone, pickle.loads(models[1])))
        for fit in fits:
            fit.result()
    assert (account.standing.charges, other.standing.charges) == (1, 1)


EXPORTED = ("CLOAKGP_LEDGER", "CLOAKGP_ACCOUNT", "CLOAKGP_PURPOSE", "CLOAKGP_LEDGER_BLOCK")


def test_an_environment_that_a_person_set_must_agree_with_what_is_sent(
    ledger, account, tmp_path, monkeypatch
):
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    model, exported = sent(DPGPRegressor(**SMALL), account, monkeypatch)
    # That of an earlier block of the same process.
    for name, value in (exported | {"CLOAKGP_ACCOUNT": "others"}).items():
        monkeypatch.setenv(name, value)
    model.fit(X, y)
    assert (account.standing.charges, other.standing.charges) == (1, 0)
    monkeypatch.delenv("CLOAKGP_LEDGER_BLOCK")
    with pytest.raises(LedgerError, match=r"account 'people' of .*names the account 'others' of"):
        model.fit(X, y)
    monkeypatch.delenv("CLOAKGP_ACCOUNT")
    model.fit(X, y)
    assert (account.standing.charges, other.standing.charges) == (2, 0)
    monkeypatch.setenv("CLOAKGP_LEDGER_HOME", str(tmp_path / "other home"))
    second = Ledger.create(tmp_path / "other.db")
    monkeypatch.setenv("CLOAKGP_LEDGER", second.database.shown)
    with pytest.raises(LedgerError, match="names no account of"):
        model.fit(X, y)


def test_an_account_that_is_found_by_the_outputs_is_sent_too(ledger, account, monkeypatch):
    account.attach(y, column="heights")
    model, _ = sent(DPGPRegressor(**SMALL), ledger.any_account(), monkeypatch)
    model.fit(X, y)
    assert account.standing.charges == 1


def test_a_ledger_that_is_not_there_is_refused(ledger, account, tmp_path, monkeypatch):
    model, _ = sent(DPGPRegressor(**SMALL), account, monkeypatch)
    model._ticket.directions["url"] = f"sqlite:///{tmp_path / 'nowhere.db'}"
    with pytest.raises(LedgerError, match="is not found from this process: there is no ledger"):
        model.fit(X, y)
    model._ticket.directions.update(url=ledger.database.bare_url, ledger="f" * 32)
    with pytest.raises(LedgerError, match="the ledger ffffffff, which is not found"):
        model.fit(X, y)


@pytest.mark.usefixtures("home")
def test_no_password_is_sent():
    given = "postgresql://ada:secret@host:5433/people?options=-csearch_path%3Dx&sslpassword=secret"
    bare = Database(parse_url(given)).bare_url
    assert bare == "postgresql://ada@host:5433/people?options=-csearch_path%3Dx"
    assert parse_url(bare).password is None


def test_a_thread_counts_for_the_only_block_that_is_open(ledger, account):
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    failures = []

    def spend():
        try:
            draw()
        except SpendingError as error:
            failures.append(error)

    def run():
        thread = threading.Thread(target=spend)
        thread.start()
        thread.join()

    with account:
        run()
        with other:
            run()
    assert account.standing.charges == 1
    assert other.standing.charges == 0
    (failure,) = failures
    assert "several accounts are open" in str(failure)


def test_blocks_can_be_nested_and_entered_again(ledger, account):
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    with account:
        with other:
            draw()
        draw()
    with account:
        draw()
    assert (account.standing.charges, other.standing.charges) == (2, 1)
    assert keeper_in_force() is None


@pytest.mark.usefixtures("account")
def test_the_environment_names_an_account(ledger, monkeypatch):
    monkeypatch.setenv("CLOAKGP_LEDGER", ledger.database.shown)
    with pytest.raises(LedgerError, match="attached to no account"):
        draw()
    monkeypatch.setenv("CLOAKGP_ACCOUNT", "people")
    monkeypatch.setenv("CLOAKGP_PURPOSE", "figure 3")
    draw()
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert reserved["purpose"] == "figure 3"
    monkeypatch.setenv("CLOAKGP_ACCOUNT", "nobody")
    with pytest.raises(LedgerError, match="no account 'nobody'"):
        draw()
    monkeypatch.setenv("CLOAKGP_LEDGER", "/nowhere/people.db")
    with pytest.raises(LedgerError, match="no ledger"):
        draw()


def test_a_column_finds_its_account_whatever_its_order(ledger, account, monkeypatch):
    account.attach([3.0, 1.0, 2.0], column="heights")
    monkeypatch.setenv("CLOAKGP_LEDGER", ledger.database.shown)
    ask(
        np.ones((1, 3)),
        ["1", 2, "3.0"],
        question=OutputBounds.checked((0, 9)),
        epsilon=0.1,
        delta=1e-7,
    )
    reserved = list(ledger.entries())[-3]
    assert reserved.content["account"] == "people"
    assert ledger.notes()[reserved.number] == {"columns": ["heights"], "elsewhere": []}
    assert ledger.verify().notes == ()


GUESSES = {"right": [1.0, 0.0], "wrong": [1.0, 1.0]}


@pytest.mark.parametrize("guess", GUESSES)
def test_no_answer_confirms_a_guess_of_a_column_of_another_account(guess, ledger, account):
    """Whoever attaches, or spends, hears and sees the same; auditors see which it was."""
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    account.attach([0.0, 1.0], column="ill")
    assert other.attach(GUESSES[guess], column="guess") is None
    with other:
        draw(outputs=GUESSES[guess])
    assert (other.standing.charges, account.standing.charges) == (1, 0)
    entries = list(ledger.entries())
    assert [entry.content["kind"] for entry in entries[2:]] == [
        *("account", "attached", "attached", "reserved", "drawing", "committed")
    ]
    shown = json.dumps(json.loads(receipt_of(ledger, entries[5].number)))
    # Signatures have any letters, now and then these.
    assert not re.search(r"\b(ill|guess|people)\b", shown)
    told = ledger.verify()
    assert told.sound
    is_right = guess == "right"
    assert told.notes == (
        ("entry 5 of the account 'others' is about the column 'ill' of another account, 'people'",)
        if is_right
        else ()
    )


@pytest.mark.parametrize("guess", GUESSES)
def test_a_charge_of_what_is_attached_elsewhere_alone_is_told_to_auditors(guess, ledger, account):
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    account.attach([0.0, 1.0], column="ill")
    with other:
        draw(outputs=GUESSES[guess])
    assert other.standing.charges == 1
    assert ledger.verify().notes == (
        ("entry 5 of the account 'others' is about the column 'ill' of another account, 'people'",)
        if guess == "right"
        else ()
    )


def test_a_column_of_several_accounts_needs_one_to_be_named(ledger, account, monkeypatch):
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    for each in (account, other):
        each.attach([0.0, 1.0], column="ill")
        each.attach([0.0, 1.0], column="ill, again")
    monkeypatch.setenv("CLOAKGP_LEDGER", ledger.database.shown)
    with pytest.raises(LedgerError, match="or to several: name one"):
        draw()
    monkeypatch.setenv("CLOAKGP_ACCOUNT", "others")
    draw()
    assert other.standing.charges == 1
    with pytest.raises(LedgerError, match="no outputs"):
        account.attach([], column="nothing")


HEIGHTS = [170.0, 180.0, 165.5]
AS_INPUT = {"sorted": [165.5, 170, 180], "as text": ["180", "170.0", "165.5"]}


@pytest.mark.parametrize("form", AS_INPUT)
def test_a_private_column_of_the_account_is_no_public_input(form, ledger, account, monkeypatch):
    account.attach(HEIGHTS, column="height")
    account.attach([1.0, 0.0], column="ill")
    inputs = {"age": lambda: [[20, 30, 40]], "tall": lambda: [AS_INPUT[form]]}
    asked = account.with_inputs(inputs)
    with pytest.raises(PrivateInputError, match=r"tall cannot be public.*as the private height"):
        asked.check_inputs()
    with asked, pytest.raises(PrivateInputError, match="tall cannot be public"):
        draw()
    with pytest.raises(PrivateInputError):
        asked.attach([5.0, 6.0], column="pay")
    # The account that is found by the outputs refuses it, too.
    monkeypatch.setenv("CLOAKGP_LEDGER", ledger.database.shown)
    with ledger.any_account().with_inputs(inputs), pytest.raises(PrivateInputError):
        draw()
    assert account.standing.charges == 0
    assert {row["name"] for row in ledger.columns()} == {"height", "ill"}
    with account.with_inputs({"age": inputs["age"]}):
        draw()
    assert account.standing.charges == 1


def test_nothing_is_read_where_no_column_is_attached(account):
    with account.with_inputs({"age": pytest.fail}):
        draw()
    assert account.standing.charges == 1


def test_a_column_that_is_declared_public_is_taken_and_told(ledger, account):
    account.attach([1.0, 0.0], column="ill")
    inputs = {"sex": lambda: [[0, 1]], "age": lambda: [[20, 30]]}
    with pytest.raises(LedgerError, match="size cannot be declared public: it is no input"):
        account.with_inputs(inputs, declared_public=["size"])
    with account.with_inputs(inputs, declared_public=["sex"]):
        draw()
    (reserved,) = (e.content for e in ledger.entries() if e.content["kind"] == "reserved")
    assert reserved["declared_public"] == ["sex"]
    told = ledger.verify()
    assert told.findings == ()
    assert told.notes == (
        "entry 4 of the account 'people' takes 'sex' to be public, as its writer declares, and the "
        "same values are attached there as 'ill'",
    )


@pytest.mark.parametrize("guess", GUESSES)
def test_no_input_confirms_a_guess_of_a_column_of_another_account(guess, ledger, account):
    """Whoever guesses hears and sees the same; auditors see which it was."""
    other = ledger.open_account("others", epsilon=1.0, delta=1e-6)
    account.attach([0.0, 1.0], column="ill")
    asked = other.with_inputs({"guess": lambda: [GUESSES[guess]]})
    asked.check_inputs()
    with asked:
        draw(outputs=[0.5, 0.6])
    asked.attach([5.0, 6.0], column="pay")
    entries = list(ledger.entries())
    assert [entry.content["kind"] for entry in entries[3:]] == [
        *("attached", "reserved", "drawing", "committed", "attached")
    ]
    shown = json.dumps(json.loads(receipt_of(ledger, entries[4].number)))
    # Signatures have any letters, now and then these.
    assert not re.search(r"\b(ill|guess|people)\b", shown)
    told = ledger.verify()
    assert told.findings == ()
    assert told.notes == tuple(
        f"entry {number} of the account 'others' takes 'guess' to be public, and the same values "
        "are attached to another account, 'people', as 'ill'"
        for number in ((5, 8) if guess == "right" else ())
    )


def test_a_key_gives_the_same_release_and_spends_once(account):
    made = []

    def make():
        made.append(1)
        return DPGPRegressor(**SMALL).fit(X, y).release_

    first = account.publish(make, key="figure 3")
    again = account.publish(make, key="figure 3")
    assert first.to_bytes() == again.to_bytes()
    assert (len(made), account.standing.charges) == (1, 1)
    other = account.publish(make, key="figure 4")
    assert other.to_bytes() != first.to_bytes()
    assert account.publish(make).to_bytes() != account.publish(make).to_bytes()
    assert account.standing.charges == 4


def test_a_key_with_other_choices_is_refused_before_anything_is_drawn(ledger, account):
    def make():
        return DPGPRegressor(**SMALL).fit(X, y).release_

    first = account.publish(make, key="figure 3", choices="heights, of May")
    for resume in (False, True):
        with pytest.raises(LedgerError, match="'figure 3' belongs to another release"):
            account.publish(pytest.fail, key="figure 3", choices="weights, of May", resume=resume)
    for choices in ("heights, of May", ""):
        kept = account.publish(pytest.fail, key="figure 3", choices=choices)
        assert kept.to_bytes() == first.to_bytes()
    assert account.standing.charges == 1
    # The chain has a digest, and not the choices.
    written = "".join(entry.body for entry in ledger.entries())
    assert hashlib.sha256(b"heights, of May").hexdigest() in written
    assert "of May" not in written
    assert ledger.verify().findings == ()


def test_a_key_that_was_used_without_choices_returns_its_release(account):
    first = account.publish(lambda: DPGPRegressor(**SMALL).fit(X, y).release_, key="a")
    again = account.publish(pytest.fail, key="a", choices="heights")
    assert again.to_bytes() == first.to_bytes()
    with pytest.raises(LedgerError, match="choices are kept with a key"):
        account.publish(pytest.fail, choices="heights")


def test_choices_are_free_again_with_their_key(account):
    def wrong():
        return DPGPRegressor(**SMALL).fit(X, ["text"] * 30).release_

    with pytest.raises(ValueError, match="y"):
        account.publish(wrong, key="a", choices="words")
    account.publish(lambda: DPGPRegressor(**SMALL).fit(X, y).release_, key="a", choices="numbers")
    assert account.standing.charges == 2


def test_a_key_whose_noise_was_drawn_in_vain_is_not_drawn_again(account):
    def fail():
        DPGPRegressor(**SMALL).fit(X, y)
        raise RuntimeError("the disk is full")

    def make():
        return DPGPRegressor(**SMALL).fit(X, y).release_

    with pytest.raises(RuntimeError):
        account.publish(fail, key="a")
    with pytest.raises(LedgerError, match="release was lost"):
        account.publish(make, key="a")
    assert account.standing.charges == 1


def test_a_key_can_be_tried_again_if_nothing_was_drawn(ledger, account):
    def wrong():
        return DPGPRegressor(**SMALL).fit(X, ["text"] * 30).release_

    def make():
        return DPGPRegressor(**SMALL).fit(X, y).release_

    with pytest.raises(ValueError, match="y"):
        account.publish(wrong, key="a")
    account.publish(make, key="a")
    assert ledger.verify().sound


def test_a_key_in_use_is_refused(account):
    from dataclasses import replace

    running = charge(replace(account, key="a"), gaussian(0.01), close=False)
    with pytest.raises(LedgerError, match=f"charge {running.number} has the key 'a'"):
        account.publish(lambda: DPGPRegressor(**SMALL).fit(X, y).release_, key="a")
    with pytest.raises(LedgerError, match="has been used"):
        charge(replace(account, key="a"), gaussian(0.01))
    assert account.standing.charges == 1


def test_what_is_published_is_one_fit(ledger, account):
    model = DPGPRegressor(**SMALL)
    with pytest.raises(LedgerError, match="this is a second"):
        account.publish(lambda: (model.fit(X, y), model.fit(X, y))[0].release_)
    release = model.fit(X, y).release_
    with pytest.raises(LedgerError, match="nothing was drawn"):
        account.publish(lambda: release)
    with pytest.raises(LedgerError, match="name the account"):
        ledger.any_account().publish(lambda: release, key="a")


def test_nothing_of_the_outputs_is_in_the_ledger(ledger, account, tmp_path):
    secret = 0.7312345678901234
    outputs = np.linspace(0.1, 0.9, 30)
    outputs[3] = secret
    account.attach(outputs, column="heights")
    with account:
        DPGPRegressor(bounds=(0, 1), epsilon=0.5, delta=1e-6).fit(X, outputs)
    written = "".join(entry.body for entry in ledger.entries())
    assert "0.73123456" not in written
    content = b"".join(path.read_bytes() for path in tmp_path.glob("people.db*"))
    assert b"0.73123456" not in content
    assert np.float64(secret).tobytes() not in content


def test_seeded_noise_is_refused_within_a_block(account):
    with account, pytest.raises(SpendingError, match="insecure_seed"):
        DPGPRegressor(**SMALL, insecure_seed=1).fit(X, y)
    assert account.standing.charges in (0, 1)
    assert account.standing.epsilon_if_fixed == 0


@pytest.mark.usefixtures("account")
def test_accounts_are_opened_once_and_with_sense(ledger):
    with pytest.raises(LedgerError, match="already"):
        ledger.open_account("people", epsilon=1.0, delta=1e-6)
    for name in ("", " ", "a\nb"):
        with pytest.raises(LedgerError, match="needs a name"):
            ledger.open_account(name, epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="unit must be"):
        ledger.open_account("b", epsilon=1.0, delta=1e-6, unit="family")
    for epsilon in (float("nan"), -1.0, "1", 5e-324):
        with pytest.raises(LedgerError, match="epsilon"):
            ledger.open_account("b", epsilon=epsilon, delta=1e-6)
    with pytest.raises(LedgerError, match="no account 'b'"):
        ledger.account("b")


def test_a_limit_can_be_changed_and_what_was_spent_stays(ledger, account):
    charge(account, gaussian(0.1))
    spent = account.standing.spent
    ledger.change_limit("people", epsilon=0.01, delta=1e-9, reason="the study ended")
    assert account.standing.spent == spent
    assert account.standing.limit == (0.01, 1e-9)
    with pytest.raises(LimitError):
        charge(account, gaussian(1e-6))
    with pytest.raises(LedgerError, match="give a reason"):
        ledger.change_limit("people", epsilon=1.0, delta=1e-6, reason="")


def test_a_limit_below_what_was_spent_is_told_as_that(ledger, account):
    charge(account, gaussian(0.1))
    charge(account, gaussian(0.1))
    assert account.standing.beyond == frozenset()
    assert "of the limit;" in repr(account.standing)
    ledger.change_limit("people", epsilon=0.3, delta=1e-6, reason="the study ended")
    standing = account.standing
    assert standing.used == 1.0
    assert standing.used_in_words == "more than the limit: nothing fits"
    assert "used more than the limit: nothing fits;" in repr(standing)
    assert standing.releases_left(1e-6, 0.0) == 0
    with pytest.raises(LimitError):
        charge(account, Cost("laplace", epsilon=1e-9))


def test_a_release_that_takes_the_limit_whole_is_within_it(ledger, account):
    """Beyond the filter, and within the limit: until this is lowered."""
    with account:
        DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-6, noise="gaussian").fit(X, y)
    standing = account.standing
    assert not filter_of(standing.limit).accepts(standing.spent)
    assert standing.used_in_words == "100 % of the limit"
    ledger.change_limit("people", epsilon=0.99, delta=1e-6, reason="the study ended")
    assert account.standing.used_in_words == "more than the limit: nothing fits"


def test_one_fresh_process_sees_what_another_wrote(ledger, account):
    charge(account, gaussian(0.1))
    assert Ledger(ledger.database.shown).account("people").standing == account.standing


def test_a_charge_about_several_cohorts_is_found(ledger):
    account = ledger.open_account("people", epsilon=3.0, delta=1e-6)
    opened = replace(account, key="a").open_charge(
        Spender("fit", unit="row", epsilon=1.0, delta=0.0, fingerprint=lambda _: None)
    )
    for cohort in (0, 1):
        opened.reserve(replace(gaussian(0.1), cohort=cohort))
    found = account.find("a")
    assert (found.number, found.open, found.drawn) == (opened.number, True, True)
    opened.close(failed=True)


def test_the_charge_of_a_key_is_found(ledger):
    account = ledger.open_account("people", epsilon=3.0, delta=1e-6)
    assert account.find("a") is None
    account.publish(lambda: DPGPRegressor(**SMALL).fit(X, y).release_, key="a")
    found = account.find("a")
    assert (found.open, found.drawn, found.kept) == (False, True, True)
    charge = replace(account, key="b").open_charge(
        Spender("fit", unit="row", epsilon=1.0, delta=0.0, fingerprint=lambda _: None)
    )
    charge.hold([(1.0, 0.0)])
    found = account.find("b")
    assert (found.number, found.open, found.drawn, found.kept) == (
        charge.number,
        True,
        False,
        False,
    )
    charge.close(failed=True)
    # Nothing was drawn: the key is free again.
    assert account.find("b") is None
    with pytest.raises(LedgerError, match="name the account"):
        ledger.any_account().find("a")


class DeadError(BaseException):
    """The process is no more."""


def test_a_charge_whose_process_died_is_gone_on_with(ledger):
    """By whoever has its answers: nothing is drawn or counted twice, and the release is kept."""
    account = ledger.open_account("people", epsilon=1.0, delta=0.0)
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0)
    costs, answers = [], []

    def keep(found):
        answers[:] = found
        if len(found) == 2:
            raise DeadError

    def make(notes):
        with counted_by(NotingKeeper(notes, keeper_in_force())):
            return model.fit(X, y).release_

    with pytest.MonkeyPatch.context() as patch:
        # A process that dies closes nothing.
        patch.setattr(LedgerCharge, "close", lambda *_, **__: None)
        with pytest.raises(DeadError):
            account.publish(lambda: make(Notes(note=costs.append, keep=keep)), key="a")
    assert len(account.standing.open) == 1
    later = []
    notes = Notes(note=later.append, keep=len, costs=tuple(costs), answers=list(answers))
    with pytest.raises(LedgerError, match="is not closed"):
        account.publish(lambda: make(notes), key="a")
    release = account.publish(lambda: make(notes), key="a", resume=True)
    standing = account.standing
    assert (standing.charges, standing.open) == (1, ())
    assert standing.spent.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-4)
    assert len(costs) + len(later) == len(release.measurements)
    assert account.publish(pytest.fail, key="a", resume=True).to_bytes() == release.to_bytes()
    assert ledger.verify().findings == ()
