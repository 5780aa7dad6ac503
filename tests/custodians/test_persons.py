"""Persons with several rows: as of one table, and each site verifies its own."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from quiet_noise import silence
from small_plans import NAMES, ONE_QUESTION, TWO_QUESTIONS, Ward, X, Y, site_at

from cloakgp import DPGPClassifier, DPGPRegressor, PrivacyParameterWarning, Release
from cloakgp.custodians import CustodiansError, MemoryExchange, Plan, simulate
from cloakgp.custodians.files import (
    attempt_file,
    inputs_from_bytes,
    inputs_to_bytes,
    names_to_bytes,
    persons_of,
    question_file,
)
from cloakgp.custodians.plan import Member, digest_of
from cloakgp.custodians.request import Request
from cloakgp.data import ArrayRows
from cloakgp.fitting.passes import RowTable
from cloakgp.ledger import Ledger
from cloakgp.report.describe import describe

# Ten rows at each site, of four persons, one of whom has four rows there.
PERSONS = np.array(["a", "b", "c", "a", "d", "b", "a", "c", "a", "d"])
SHARED = dict.fromkeys(NAMES, PERSONS)
# Nobody is at two sites.
APART = {name: np.char.add(f"{name} ", PERSONS) for name in NAMES}


@pytest.fixture
def quiet(monkeypatch):
    """No noise is drawn, by custodians or of one table."""
    silence(monkeypatch)


def plan_of(model=None, *, colluding=0, rows_of_person=4, sites_of_person=None, **settings):
    made = model or DPGPRegressor(
        **{"bounds": (-2, 2), "epsilon": 1.0, "delta": 1e-5, **ONE_QUESTION, **settings}
    )
    return Plan.of(
        made,
        sites=NAMES,
        input_names=["x"],
        colluding=colluding,
        person_name="who",
        rows_of_person=rows_of_person,
        sites_of_person=sites_of_person,
    )


def rows_of(part, *, outputs=Y, persons=None):
    owners = PERSONS if persons is None else persons
    return ArrayRows(X[part::3], outputs[part::3], groups=owners.tolist(), jobs=1, chunk_rows=4)


def tables_of(persons=SHARED, *, outputs=Y):
    return {
        name: rows_of(part, outputs=outputs, persons=persons[name])
        for part, name in enumerate(NAMES)
    }


def one_table(*, outputs=Y):
    """The rows of all sites, where a person of a site is one of nobody else's."""
    order = np.concatenate([np.arange(part, 30, 3) for part in range(3)])
    groups = np.concatenate([APART[name] for name in NAMES]).tolist()
    return ArrayRows(X[order], np.asarray(outputs)[order], groups=groups, jobs=1)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("settings", [ONE_QUESTION, TWO_QUESTIONS])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_answers_are_those_of_one_table(settings, noise):
    """But for the rounding of each site's sums; persons that share a site's number there, too.

    What a second question asks was learned from the first answers, by an optimiser that stops
    within a tolerance of its own: other last digits, as other processors have them, move it there.
    """
    plan = plan_of(noise=noise, sites_of_person=1, **settings)
    found = simulate(plan, tables_of(APART))
    alone = plan.estimator().fit_rows(one_table()).release_
    near = 1e-6 if settings is ONE_QUESTION else 1e-4
    # In how many chunks rows lie is not known of custodians, and decides a last digit.
    assert (found.guarantee.epsilon, found.guarantee.delta) == (
        pytest.approx(alone.guarantee.epsilon, rel=1e-9),
        alone.guarantee.delta,
    )
    for one, other in zip(found.measurements, alone.measurements, strict=True):
        assert replace(one.strategy.grouping, chunks=1) == replace(
            other.strategy.grouping, chunks=1
        )
        assert one.noise_sd == pytest.approx(other.noise_sd, rel=1e-6)
        # A question may be asked with the other sign, as rounding has it.
        values = np.abs(one.answers.values), np.abs(other.answers.values)
        np.testing.assert_allclose(*values, atol=near)
    np.testing.assert_allclose(found.predict(X), alone.predict(X), atol=near)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("places", [1, 2, 3])
def test_noise_grows_with_the_sites_of_a_person(places):
    plan = plan_of(noise="gaussian", sites_of_person=places)
    release = simulate(plan, tables_of())
    [measurement] = release.measurements
    strategy, answers = measurement.strategy, measurement.answers
    assert strategy.grouping.places == places
    assert strategy.longest_column() == places * strategy.longest
    # Answers are what the questions make of all rows, whatever the noise.
    sizes = np.array([(one == PERSONS).sum() for one in PERSONS])
    expected = np.zeros_like(answers.values)
    for part in range(3):
        inputs = np.column_stack([X[part::3], sizes])
        columns = strategy.columns(measurement.question)(inputs)
        expected += columns @ measurement.question.encode(Y[part::3])
    np.testing.assert_allclose(answers.values, expected, atol=1e-6)
    # The noise that the guarantee needs, and no less.
    mu = measurement.sensitivity_over_noise
    assert mu == pytest.approx(answers.guarantee.mu, rel=1e-6)


@pytest.mark.usefixtures("quiet")
def test_classes_of_persons_are_released_as_those_of_one_table():
    labels = np.where(Y > 0, "yes", "no")
    model = DPGPClassifier(classes=("no", "yes"), epsilon=3.0, delta=1e-5, inducing=4, learn=None)
    found = simulate(plan_of(model, sites_of_person=1), tables_of(APART, outputs=labels))
    alone = model.fit_rows(one_table(outputs=labels)).release_
    np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_all_kinds_of_questions_are_asked_of_persons(tmp_path):
    """An interval, stages, the spread and counts where outputs were predicted."""
    settings = {**TWO_QUESTIONS, "interval": "auto", "learn": "map", "epsilon": 300.0}
    with warnings.catch_warnings(action="ignore", category=PrivacyParameterWarning):
        release = simulate(plan_of(colluding=1, **settings), tables_of())
    assert len(release.measurements) >= 3
    release.save(tmp_path / "release.cloak")
    again = Release.load(tmp_path / "release.cloak")
    assert again.custodians == release.custodians
    np.testing.assert_array_equal(again.predict(X), release.predict(X))


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (None, "All rows of a person are protected together, at however many custodians."),
        (1, "if nobody has rows at two of the custodians: that they promised, and nothing here"),
        (2, "if nobody has rows at more than 2 of the custodians: that they promised"),
    ],
)
def test_the_promise_is_told(places, told):
    release = simulate(plan_of(sites_of_person=places), tables_of())
    facts = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    assert told in facts["custodians"]
    most = {None: "4 people with up to 4 rows at each", 1: "12 people with up to 4 rows each"}
    assert most.get(places, "6 people with up to 4 rows at each") in facts["protected"]


def test_a_person_counts_as_at_all_sites_of_the_plan():
    """Of those alone that are asked, attempts with others in each would add up to more."""
    release = simulate(plan_of(colluding=1), tables_of(), dropping=["west"])
    assert release.custodians.sites_of_person == 2
    assert release.measurements[0].strategy.grouping.places == 3


def test_attempts_with_different_sites_protect_a_person_at_all_of_them(tmp_path):
    """Two of three are asked, and then another two: nobody pays more than the plan's budget."""
    ward = Ward(tmp_path, plan=plan_of(delta=0.0), names=())
    for name, rows in tables_of().items():
        ward.sites[name] = site_at(name, rows, ward.exchange, tmp_path / name)
    ward.step()
    ward.coordinator.close_roster()
    for number, asked in enumerate([("east", "north"), ("west", "east")], start=1):
        ward.exchange.put(attempt_file(number), names_to_bytes(asked))
        ward.collect()
        asking = Request.from_bytes(ward.exchange.files[question_file(number, 1, "request.cloak")])
        assert asking.places == 3
        ward.step(asked[0])
        fewer = replace(asking, places=2).to_bytes()
        ward.exchange.files[question_file(number, 1, "request.cloak")] = fewer
        with pytest.raises(CustodiansError, match="others together than the plan"):
            ward.step(asked[1])


def test_ids_of_persons_stay_at_their_site(tmp_path):
    """Numbers tell which rows of a site belong together, and not whose they are."""
    persons = np.array([f"person {number % 4} of town" for number in range(10)])
    exchange = MemoryExchange()
    ward = Ward(tmp_path, plan=plan_of(), exchange=exchange, names=())
    for part, name in enumerate(NAMES):
        ward.sites[name] = site_at(name, rows_of(part, persons=persons), exchange, tmp_path / name)
    ward.finish()
    sent = inputs_from_bytes(exchange.files["sites/east.npy"], columns=2)
    assert sent[:, 1].tolist() == [number % 4 for number in range(10)]
    contents = [
        *exchange.files.values(),
        *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()),
    ]
    assert not any(b"of town" in content for content in contents)


# Refusals: nothing is drawn.


def site_of(tmp_path, rows, *, plan, name="west"):
    ward = Ward(tmp_path, plan=plan, names=())
    return site_at(name, rows, ward.exchange, tmp_path / name)


def test_a_person_with_more_rows_than_the_plan_allows_is_refused(tmp_path):
    site = site_of(tmp_path, rows_of(2), plan=plan_of(rows_of_person=3))
    with pytest.raises(CustodiansError, match="4 rows at one site, and the plan allows 3"):
        site.step()
    assert site._exchange.get("sites/west.json") is None


def test_rows_that_do_not_say_whose_they_are_are_refused(tmp_path):
    site = site_of(tmp_path, ArrayRows(X[2::3], Y[2::3]), plan=plan_of())
    with pytest.raises(CustodiansError, match="say whose rows they are"):
        site.step()


@pytest.mark.parametrize("numbers", [[0.0, 0.5, 1.0], [0.0, -1.0, 1.0], [0.0, 3.0, 1.0]])
def test_persons_that_are_none_are_refused(numbers):
    with pytest.raises(CustodiansError, match="whose rows"):
        persons_of(np.column_stack([np.zeros(3), numbers]))


def test_a_coordinator_refuses_a_site_that_does_not_say_whose_rows_they_are(tmp_path):
    ward = Ward(tmp_path, plan=plan_of(), names=())
    for part, name in enumerate(NAMES):
        site_at(name, rows_of(part), ward.exchange, tmp_path / name).step()
    content = inputs_to_bytes(np.column_stack([X[2::3], np.full(10, 0.5)]))
    member = Member.from_bytes(ward.exchange.files["sites/west.json"])
    ward.exchange.files["sites/west.npy"] = content
    changed = replace(member, inputs=digest_of(content))
    ward.exchange.files["sites/west.json"] = changed.to_bytes()
    with pytest.raises(CustodiansError, match="whose rows"):
        ward.coordinator.collect()


def test_persons_who_share_a_number_are_not_taken_for_one(tmp_path, monkeypatch):
    """Where all share one, they are asked as if they were one, and nobody is refused."""
    monkeypatch.setattr("cloakgp.data.arrays.group_number", lambda _: 5)
    ward = Ward(tmp_path, plan=plan_of(), names=())
    for part, name in enumerate(NAMES):
        ward.sites[name] = site_at(name, rows_of(part), ward.exchange, tmp_path / name)
    release = ward.finish()
    assert release.measurements[0].strategy.grouping.most_rows == 10
    # Of rows that say whose they are only once, nobody knows better.
    once = ArrayRows(X[2::3], Y[2::3], groups=iter(PERSONS.tolist()))
    with pytest.raises(CustodiansError, match="10 rows at one site"):
        site_at("west", once, ward.exchange, tmp_path / "other").step()


@pytest.mark.parametrize(
    "changed",
    [
        {"places": 2},
        {"places": 1},
        {"group_rows": None, "places": 1},
    ],
)
def test_a_question_that_protects_less_than_the_plan_is_refused(tmp_path, changed):
    """From a coordinator that asks rows of persons as if each were on its own, say."""
    ward = Ward(tmp_path, plan=plan_of(), names=())
    for part, name in enumerate(NAMES):
        ward.sites[name] = site_at(name, rows_of(part), ward.exchange, tmp_path / name)
    ward.ask()
    name = question_file(1, 1, "request.cloak")
    request = Request.from_bytes(ward.exchange.files[name])
    reading = replace(request.reading, grouped=changed.get("group_rows", 1) is not None)
    ward.exchange.files[name] = replace(request, reading=reading, **changed).to_bytes()
    with pytest.raises(CustodiansError, match="others together"):
        ward.step("east")
    assert ward.sites["east"].folder.load().questions == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows_of_person": 0}, "1 row or more"),
        ({"rows_of_person": True}, "whose rows"),
        ({"sites_of_person": 0}, "1 to 3 sites"),
        ({"sites_of_person": 4}, "1 to 3 sites"),
        ({"person_name": "x"}, "no more"),
        ({"person_name": "y"}, "no more"),
        ({"person_name": ""}, "name the column"),
    ],
)
def test_plans_of_persons_that_make_no_sense_are_refused(settings, message):
    model = DPGPRegressor(bounds=(-2, 2), epsilon=1.0, **ONE_QUESTION)
    given = {"person_name": "who", "rows_of_person": 4, "sites_of_person": 2, **settings}
    with pytest.raises(CustodiansError, match=message):
        Plan.of(model, sites=NAMES, input_names=["x"], **given)


def test_what_is_promised_of_persons_is_in_the_digest_that_all_note(tmp_path):
    ward = Ward(tmp_path, plan=plan_of(), names=())
    site = site_at("east", rows_of(0), ward.exchange, tmp_path / "east")
    site.step()
    content = json.loads(ward.exchange.files["plan.json"])
    assert content["sites_of_person"] == 3
    ward.exchange.files["plan.json"] = json.dumps({**content, "sites_of_person": 1}).encode()
    with pytest.raises(CustodiansError, match="another than this site agreed"):
        site_at("east", rows_of(0), ward.exchange, tmp_path / "east").step()


def test_a_ledger_counts_a_question_for_persons(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open_account("people", epsilon=2.0, delta=1e-4, unit="person")
    ward = Ward(tmp_path, plan=plan_of(), names=())
    for part, name in enumerate(NAMES):
        counted = {"ledger": ledger, "account": "people"} if name == "east" else {}
        ward.sites[name] = site_at(name, rows_of(part), ward.exchange, tmp_path / name, **counted)
    ward.finish()
    [standing] = ledger.standings()
    assert (standing.charges, standing.open) == (1, ())
    assert ledger.verify().findings == ()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("places", [1, 3])
def test_questions_are_chosen_for_the_noise_of_all_sites(places, monkeypatch):
    found = simulate(plan_of(noise="gaussian", sites_of_person=places), tables_of())
    monkeypatch.setattr(RowTable, "added_noise", float(places))
    model = plan_of(noise="gaussian").estimator()
    alone = model.fit_rows(one_table()).release_
    rules = [np.abs(one.measurements[0].strategy.rule.matrix) for one in (found, alone)]
    np.testing.assert_allclose(*rules, rtol=1e-6, atol=1e-9)
