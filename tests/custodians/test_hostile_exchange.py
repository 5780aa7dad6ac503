"""Attacks of who can write to the exchange, runs it, or makes plan, roster and questions."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from small_plans import (
    NAMES,
    ONE_QUESTION,
    TWO_QUESTIONS,
    Ward,
    X,
    Y,
    plan_of,
    rows_of,
    site_at,
)

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.columns import Schema, Vector
from cloakgp.custodians import CustodiansError, FolderExchange, MemoryExchange, Plan
from cloakgp.custodians.counting import EXCHANGED, _has_room
from cloakgp.custodians.files import (
    Complete,
    attempt_file,
    inputs_file,
    inputs_from_bytes,
    member_file,
    names_to_bytes,
    question_file,
)
from cloakgp.custodians.journal import SiteFolder
from cloakgp.custodians.masks import SiteKey
from cloakgp.custodians.plan import LOW_ORDER, Member, Roster, digest_of
from cloakgp.custodians.request import Request
from cloakgp.data import ArrayRows, FileRows
from cloakgp.ledger import Ledger
from cloakgp.ledger.errors import PrivateInputError
from cloakgp.privacy.ask import StrategyBound
from cloakgp.privacy.filters import filter_of
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.spending import Cost, SpendingError
from cloakgp.release.streamed_strategy import EqualShares

REQUEST = question_file(1, 1, "request.cloak")


class FlippingExchange(MemoryExchange):
    """Files some of which say something else at each reading, in turn."""

    def __init__(self, files=None):
        super().__init__(files)
        self.flips, self.read = {}, {}

    def get(self, name):
        if name not in self.flips:
            return super().get(name)
        self.read[name] = self.read.get(name, 0) + 1
        return self.flips[name][(self.read[name] - 1) % len(self.flips[name])]


def question_of(ward, *, question=None, epsilon=1.0, delta=0.0, noise="laplace", **place):
    """A question of the coordinator's choice about all rows."""
    asked = {"attempt": 1, "number": 1, "members": NAMES, **place}
    return Request.of(
        EqualShares(),
        bound=StrategyBound(
            answers=1, longest=1.0, chunk_rows=100, count=len(Y), noise=noise_named(noise)
        ),
        question=question or OutputBounds(-2.0, 2.0),
        epsilon=epsilon,
        delta=delta,
        roster=ward.coordinator.roster.digest,
        reading=ward.plan.reading,
        **asked,
    ).to_bytes()


def answer_of(ward, name, *, attempt=1, number=1):
    return ward.exchange.get(question_file(attempt, number, f"answers/{name}.json"))


# The plan.


def test_a_plan_that_was_exchanged_before_joining_is_refused(tmp_path):
    agreed, other = plan_of(), plan_of(epsilon=100.0)
    exchange = MemoryExchange({"plan.json": other.to_bytes()})

    def site(digits):
        return site_at("west", rows_of(2), exchange, tmp_path, plan_agreed=digits)

    with pytest.raises(CustodiansError, match="plan is another than was agreed"):
        site(agreed.digest[:40]).step()
    assert set(exchange.files) == {"plan.json"}
    with pytest.raises(CustodiansError, match="40 digits"):
        site(agreed.digest[:39])
    exchange.files["plan.json"] = agreed.to_bytes()
    assert site(agreed.digest[:40].upper()).step() == ("joined",)


def test_a_plan_of_other_columns_than_the_rows_is_refused(tmp_path):
    table = tmp_path / "north.csv"
    table.write_text("age,height,ward\n30,170,1\n40,165,2\n")
    model = DPGPRegressor(bounds=(0, 240), epsilon=1.0)
    rows = FileRows(table, inputs=["age"], output="height")
    for inputs, output in ((["age", "height"], "ward"), (["ward"], "height"), (["age"], "ward")):
        plan = Plan.of(model, sites=NAMES, input_names=inputs, output_name=output)
        exchange = MemoryExchange({"plan.json": plan.to_bytes()})
        with pytest.raises(CustodiansError, match="the plan is about"):
            site_at("north", rows, exchange, tmp_path / "own").step()
        assert set(exchange.files) == {"plan.json"}


@pytest.mark.parametrize("read_inputs", [None, {"x": lambda: [Y[0::3]]}])
def test_a_private_column_of_the_ledger_is_not_sent(tmp_path, read_inputs):
    ledger = Ledger.create(tmp_path / "ledger.db")
    account = ledger.open_account("patients", epsilon=2.0, delta=1e-4)
    account.attach(Y[0::3][::-1], column="height")
    exchange = MemoryExchange({"plan.json": plan_of().to_bytes()})
    rows = rows_of(0, inputs=X if read_inputs else Y[:, None], outputs=X[:, 0] / 10)

    def site(**settings):
        counted = {"ledger": ledger, "account": "patients", "read_inputs": read_inputs}
        return site_at("east", rows, exchange, tmp_path / "own", **counted, **settings)

    with pytest.raises(PrivateInputError, match="x cannot be public"):
        site().step()
    assert set(exchange.files) == {"plan.json"}
    assert site(declared_public=["x"]).step() == ("joined",)


# Files that say something else when they are read again.


def test_a_site_goes_by_its_own_key_whatever_its_file_says(tmp_path):
    """A roster of the attacker's keys alone, which the file of a site confirms when read again."""
    exchange = FlippingExchange()
    ward = Ward(tmp_path, exchange=exchange)
    ward.step()
    sent = [Member.from_bytes(exchange.files[member_file(name)]) for name in NAMES]
    fake = [replace(one, key=SiteKey.draw().public) for one in sent]
    exchange.put("roster.json", Roster(tuple(fake)).to_bytes())
    ward.begin_again(*NAMES)
    for name, true, other in zip(NAMES, sent, fake, strict=True):
        exchange.flips[member_file(name)] = [true.to_bytes(), other.to_bytes()]
        with pytest.raises(CustodiansError, match="another entry for this site"):
            ward.step(name)


def test_who_is_asked_is_read_once(tmp_path):
    """Shares of the noise, masks and rows are all by the same names."""
    exchange = FlippingExchange()
    ward = Ward(tmp_path, exchange=exchange, plan=plan_of(delta=0.0))
    ward.step()
    ward.coordinator.close_roster()
    two, three = names_to_bytes(NAMES[:2]), names_to_bytes(NAMES)
    exchange.files[attempt_file(1)] = three
    exchange.put(REQUEST, question_of(ward))
    ward.begin_again(*NAMES)
    for readings in ([two, three], [three, two]):
        exchange.read.clear()
        exchange.flips[attempt_file(1)] = readings
        ward.begin_again("north")
        if readings[0] == two:
            with pytest.raises(CustodiansError, match="not about what was agreed"):
                ward.step("north")
        else:
            assert ward.step("north") == {"north": ("answered",)}
        assert exchange.read[attempt_file(1)] == 1


def test_every_file_is_read_once_by_a_process(tmp_path):
    exchange = FlippingExchange()
    ward = Ward(tmp_path, exchange=exchange)
    ward.finish()
    ward.begin_again(*NAMES)
    for name, content in exchange.files.items():
        exchange.flips[name] = [content, b"something else"]
    for name in NAMES:
        for _ in range(3):
            assert ward.step(name) == {name: ()}
        assert set(exchange.read.values()) == {1}
        exchange.read.clear()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_folder_holds_regular_files_alone(tmp_path):
    exchange = FolderExchange(tmp_path)
    os.mkfifo(tmp_path / "plan.json")
    (tmp_path / "roster.json").mkdir()
    for name in ("plan.json", "roster.json"):
        with pytest.raises(CustodiansError, match="no regular file"):
            exchange.get(name)


# Questions.


@pytest.mark.parametrize("labels", [(0, True), (False, 1), (0.0, 1), (0, 1.0)])
@pytest.mark.parametrize("held", [0, 1])
def test_labels_that_are_equal_and_written_otherwise_are_others(tmp_path, labels, held):
    """Cells are compared as they are written: who answers would tell which there are."""
    plan = Plan.of(
        DPGPClassifier(classes=(0, 1), epsilon=1.0), sites=NAMES, input_names=["x"], colluding=1
    )
    ward = Ward(tmp_path, plan=plan, names=())
    outputs = np.zeros(len(Y), dtype=int)
    outputs[3] = held
    for part, name in enumerate(NAMES):
        rows = rows_of(part, outputs=outputs)
        ward.sites[name] = site_at(name, rows, ward.exchange, tmp_path / name)
    ward.step()
    ward.coordinator.close_roster()
    ward.exchange.put(attempt_file(1), names_to_bytes(NAMES))
    ward.exchange.put(REQUEST, question_of(ward, question=Classes(labels)))
    with pytest.raises(CustodiansError, match="other labels than the plan"):
        ward.step("east")
    assert answer_of(ward, "east") is None


def test_two_rosters_of_one_plan_protect_a_person_at_all_sites(tmp_path):
    """Each asks two of four sites: a person at all of them pays the plan's budget once."""
    names = ("east", "north", "south", "west")
    model = DPGPRegressor(**{"bounds": (-2, 2), "epsilon": 1.0, **ONE_QUESTION})
    plan = Plan.of(
        model, sites=names, input_names=["x"], person_name="who", rows_of_person=1, colluding=1
    )
    found = []
    for pair in (names[:2], names[2:]):
        ward = Ward(tmp_path / pair[0], plan=plan, names=())
        for part, name in enumerate(pair):
            rows = ArrayRows(X[part::2], Y[part::2], groups=list(range(15)))
            ward.sites[name] = site_at(name, rows, ward.exchange, tmp_path / pair[0] / name)
        ward.step()
        ward.coordinator.close_roster(without=[name for name in names if name not in pair])
        ward.collect()
        request = Request.from_bytes(ward.exchange.files[REQUEST])
        fewer = replace(request, places=2).to_bytes()
        stranger = MemoryExchange({**ward.exchange.files, REQUEST: fewer})
        site = site_at(pair[0], ward.sites[pair[0]]._rows, stranger, tmp_path / pair[0] / pair[0])
        with pytest.raises(CustodiansError, match="others together than the plan"):
            site.step()
        found.append(ward.finish())
    for release in found:
        assert release.measurements[0].strategy.grouping.places == 4
        assert "at however many custodians" in release.custodians.assumption


# What the order of rows tells.


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_a_table_is_not_sent(tmp_path, grouped):
    """Tables may be sorted by their output, or ids given in its order."""
    rng = np.random.default_rng(5)
    inputs = rng.integers(0, 4, size=(40, 2)).astype(float)
    inputs[0] = -0.0
    whose = rng.integers(0, 12, size=40)
    sent = []
    for number in range(4):
        order = rng.permutation(40)
        renamed = rng.permutation(12)[whose]
        groups = [f"p{one}" for one in renamed[order]] if grouped else None
        plan = Plan.of(
            DPGPRegressor(bounds=(0, 1), epsilon=1.0),
            sites=NAMES,
            input_names=["a", "b"],
            **({"person_name": "who", "rows_of_person": 40} if grouped else {}),
        )
        exchange = MemoryExchange({"plan.json": plan.to_bytes()})
        rows = ArrayRows(inputs[order], rng.uniform(size=40), groups=groups)
        site_at("east", rows, exchange, tmp_path / str(number)).step()
        sent.append(exchange.files[inputs_file("east")])
    assert len(set(sent)) == 1
    found = inputs_from_bytes(sent[0], columns=2 + grouped)
    # The same rows, of the same persons.
    expected = inputs + 0.0
    by_inputs = expected[np.lexsort(expected.T[::-1])]
    np.testing.assert_array_equal(found[:, :2], by_inputs)
    if grouped:
        persons = [sorted(map(tuple, expected[whose == one])) for one in set(whose)]
        numbers = set(found[:, 2])
        told = [sorted(map(tuple, found[found[:, 2] == one, :2])) for one in numbers]
        assert sorted(told) == sorted(persons)


# Counting.


@pytest.fixture
def counted(tmp_path):
    """One of three sites with a ledger."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open_account("patients", epsilon=1.0, delta=0.0)
    plan = plan_of(delta=0.0, noise="laplace")
    ward = Ward(tmp_path, plan=plan, ledger=ledger, account="patients")
    others = Ward(tmp_path, plan=plan, exchange=ward.exchange)
    ward.sites.update({name: others.sites[name] for name in NAMES[1:]})
    ward.step()
    ward.coordinator.close_roster()
    ward.exchange.put(attempt_file(1), names_to_bytes(NAMES))
    return ward, ledger


def kill_before_the_journal(monkeypatch, ward):
    """Kill a site when its ledger has the charge and its journal has not."""
    save = SiteFolder.save

    def killed(self, journal):
        if journal.questions:
            raise KeyboardInterrupt
        save(self, journal)

    with monkeypatch.context() as patch:
        patch.setattr(SiteFolder, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            ward.step("east")
    ward.begin_again("east")


def test_a_dearer_question_in_the_place_of_a_charged_one_is_charged(counted, monkeypatch):
    ward, ledger = counted
    ward.exchange.files[REQUEST] = question_of(ward, epsilon=0.001)
    kill_before_the_journal(monkeypatch, ward)
    [standing] = ledger.standings()
    assert standing.used == pytest.approx(0.001)
    ward.exchange.files[REQUEST] = question_of(ward, epsilon=0.9)
    assert ward.step("east") == {"east": ("answered",)}
    [standing] = ledger.standings()
    # The other one was never drawn.
    assert (standing.used, len(standing.open)) == (pytest.approx(0.9), 1)
    [voided] = [each.content for each in ledger.entries() if each.content["kind"] == "voided"]
    assert voided["reason"] == EXCHANGED
    assert ledger.verify().findings == ()


@pytest.mark.parametrize("way", ["a new attempt", "leaving"])
def test_a_charge_that_the_journal_does_not_have_is_voided(counted, monkeypatch, way):
    ward, ledger = counted
    ward.exchange.files[REQUEST] = question_of(ward)
    kill_before_the_journal(monkeypatch, ward)
    assert len(ledger.standings()[0].open) == 1
    if way == "leaving":
        ward.sites["east"].leave()
    else:
        ward.exchange.put(attempt_file(2), names_to_bytes(NAMES[:2]))
        ward.step("east")
    [standing] = ledger.standings()
    assert (standing.used, standing.open) == (0.0, ())


def test_a_question_with_other_noise_than_the_plan_is_refused(counted):
    ward, _ = counted
    ward.exchange.put(REQUEST, question_of(ward, epsilon=0.5, delta=1e-6, noise="gaussian"))
    with pytest.raises(CustodiansError, match="another kind of noise than the plan"):
        ward.step("north")


@pytest.mark.parametrize("first", ["laplace", "gaussian"])
def test_questions_of_one_plan_have_one_kind_of_noise(tmp_path, first):
    """Who could choose by the answers which of two rules goes on would get more than either."""
    second = {"laplace": "gaussian", "gaussian": "laplace"}[first]
    ward = Ward(tmp_path, plan=plan_of(noise="auto", **TWO_QUESTIONS))
    ward.step()
    ward.coordinator.close_roster()
    ward.exchange.put(attempt_file(1), names_to_bytes(NAMES))
    for number, noise in enumerate((first, second), start=1):
        delta = 1e-6 if noise == "gaussian" else 0.0
        asked = question_of(ward, epsilon=0.1, delta=delta, noise=noise, number=number)
        ward.exchange.put(question_file(1, number, "request.cloak"), asked)
    ward.step()
    # One after the other: none before the mask of the one before is opened.
    assert answer_of(ward, "east") is not None
    assert answer_of(ward, "east", number=2) is None
    answers = {
        name: digest_of(ward.exchange.files[question_file(1, 1, f"answers/{name}.json")])
        for name in NAMES
    }
    complete = Complete(digest_of(ward.exchange.files[REQUEST]), answers)
    ward.exchange.put(question_file(1, 1, "complete.json"), complete.to_bytes())
    with pytest.raises(SpendingError, match="another kind of noise than those before it"):
        ward.step("east")
    assert answer_of(ward, "east", number=2) is None


def test_no_rule_takes_what_another_would():
    """Of Gaussian noise the budget is taken whole, and of Laplace noise by the filter."""
    limit = (1.0, 1e-6)
    gaussian = Cost("gaussian", mu=0.1, answers=1, coarseness=1e-24)
    laplace = Cost("laplace", epsilon=0.3)
    assert _has_room(limit, gaussian, gaussian)
    assert _has_room(limit, laplace, laplace)
    assert not _has_room(limit, gaussian, laplace)
    assert _has_room(limit, *[laplace] * 3)
    assert not _has_room(limit, *[laplace] * 4)
    # Coarse grids have a share of their own in each rule, and not in one after the other.
    coarse = replace(gaussian, mu=0.01, coarseness=1e-3)
    assert not _has_room(limit, gaussian, coarse)


def test_several_charges_need_the_room_that_a_ledger_gives_to_several(tmp_path):
    """One charge may take a limit whole; of several its filter decides, which leaves less."""
    ledger = Ledger.create(tmp_path / "ledger.db")
    account = ledger.open_account("patients", epsilon=1.0, delta=1e-5)
    plan = plan_of(noise="gaussian", **TWO_QUESTIONS)
    words = {"ledger": ledger, "account": "patients"}
    ward = Ward(tmp_path, plan=plan, **words)
    with pytest.raises(CustodiansError, match=r"each of which is a charge; a limit of .* has room"):
        ward.step("east")
    assert not ward.exchange.has(member_file("east"))
    assert account.standing.charges == 0
    # One question is one charge.
    once = Ward(tmp_path / "once", plan=plan_of(noise="gaussian"), **words)
    assert once.step("east") == {"east": ("joined",)}
    ledger.change_limit("patients", epsilon=1.0, delta=1.5e-5, reason="as it was told")
    others = Ward(tmp_path, plan=plan, exchange=ward.exchange)
    ward.sites.update({name: others.sites[name] for name in NAMES[1:]})
    assert ward.finish().n_rows == len(Y)
    standing = account.standing
    assert (standing.charges, standing.open) == (2, ())
    assert filter_of(standing.limit).accepts(standing.spent)


# What makes no sense.


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 10**400), ("delta", 10**400), ("noise", 5), ("bounds", None)],
    ids=["epsilon", "delta", "noise", "bounds"],
)
def test_plans_with_damaged_settings_are_refused(name, value):
    content = json.loads(plan_of().to_bytes())
    content["settings"][name] = value
    with pytest.raises(CustodiansError, match="the plan is damaged"):
        Plan.from_bytes(json.dumps(content).encode())


@pytest.mark.parametrize("kind", [[], {}, None, 5])
def test_plans_of_no_kind_are_refused(kind):
    content = json.loads(plan_of().to_bytes()) | {"outputs": kind}
    with pytest.raises(CustodiansError, match="the plan is damaged, or of another version"):
        Plan.from_bytes(json.dumps(content).encode())


def test_sites_that_some_disks_take_for_one_are_refused():
    with pytest.raises(CustodiansError, match="in capital letters alone"):
        plan_of(sites=("north", "North", "west"))


def test_one_key_in_several_forms_is_one(tmp_path):
    ward = Ward(tmp_path)
    ward.step()
    east, north, west = (Member.from_bytes(ward.exchange.files[member_file(n)]) for n in NAMES)
    own = bytes.fromhex(east.key)
    # X25519 leaves the highest bit of a key out.
    same = (own[:-1] + bytes([own[-1] ^ 0x80])).hex()
    roster = Roster((east, replace(north, key=same), west))
    with pytest.raises(CustodiansError, match="two sites of the roster have one key"):
        roster.check(ward.plan)
    for other in (east.key.upper() if east.key.upper() != east.key else "AA" * 32, "00", ""):
        with pytest.raises(CustodiansError, match="public key of north is none"):
            Member.from_bytes(replace(north, key=other).to_bytes())


def test_a_site_neither_joins_nor_answers_what_it_has_not_compared(tmp_path):
    """Whoever has the exchange chooses plan and roster: columns, budget, sites, keys."""
    ward = Ward(tmp_path, names=())

    def site(name, **settings):
        part, folder = NAMES.index(name), tmp_path / name
        return site_at(
            name, rows_of(part), ward.exchange, folder, trusts_exchange=False, **settings
        )

    with pytest.raises(CustodiansError, match="not said which plan was agreed"):
        site("east").step()
    assert not ward.exchange.has(member_file("east"))
    for name in NAMES:
        assert site(name, plan_agreed=ward.plan.digest).step() == ("joined",)
    ward.collect()
    assert [site(name).step() for name in NAMES] == [()] * 3
    assert answer_of(ward, "east") is None
    roster = ward.coordinator.roster.digest
    assert site("east", agreed=roster).step() == ("answered",)
    # What was compared is noted, and nothing is answered twice.
    assert site("east").step() == ()


def test_keys_with_which_every_secret_is_nothing_are_refused(tmp_path):
    """Otherwise all others would fail, after the charge of a question."""
    ward = Ward(tmp_path)
    ward.step()
    sent = Member.from_bytes(ward.exchange.files[member_file("west")])
    for point in LOW_ORDER:
        key = point.to_bytes(32, "little").hex()
        with pytest.raises(CustodiansError, match="public key"):
            SiteKey.draw().pair_seed(key, "a question")
        ward.exchange.files[member_file("west")] = replace(sent, key=key).to_bytes()
        with pytest.raises(CustodiansError, match="the public key of west is none"):
            ward.coordinator.collect()


def test_a_column_that_a_vector_is_made_of_is_not_the_private_one():
    schema = Schema((Vector("body", columns=("age", "height")),))
    with pytest.raises(CustodiansError, match="no public one"):
        Plan.of(
            DPGPRegressor(bounds=(0, 1), epsilon=1.0),
            sites=NAMES,
            schema=schema,
            output_name="height",
        )
