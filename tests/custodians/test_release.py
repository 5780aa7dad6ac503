"""Several custodians, from the plan to the release."""

from __future__ import annotations

import json

import numpy as np
import pytest
from quiet_noise import silence
from sklearn.gaussian_process.kernels import RBF
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

from cloakgp import DPGPClassifier, DPGPRegressor, Release
from cloakgp.custodians import (
    Coordinator,
    CustodiansError,
    FolderExchange,
    MemoryExchange,
    Plan,
    WaitingError,
    simulate,
)
from cloakgp.custodians.files import Complete, Hidden, names_to_bytes, question_file
from cloakgp.custodians.masks import SiteKey
from cloakgp.custodians.plan import Member, Roster
from cloakgp.custodians.request import Request
from cloakgp.data import ArrayRows
from cloakgp.fitting.passes import RowTable
from cloakgp.privacy.ask import StrategyBound
from cloakgp.privacy.noise import noise_named
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.spending import SpendingError
from cloakgp.release.custodians import Custodians
from cloakgp.release.streamed_strategy import EqualShares
from cloakgp.report.describe import describe

FIRST = question_file(1, 1, "")


@pytest.fixture
def quiet(monkeypatch):
    """No noise is drawn; what was to be hidden is noted."""
    return silence(monkeypatch)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("settings", [ONE_QUESTION, TWO_QUESTIONS])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_answers_are_those_of_one_table(settings, noise):
    """But for the noise, and for the rounding of each site's sums."""
    plan = plan_of(noise=noise, colluding=0, **settings)
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    found = simulate(plan, tables)
    order = np.concatenate([np.arange(part, 30, 3) for part in range(3)])
    alone = plan.estimator().fit_rows(ArrayRows(X[order], Y[order], jobs=1)).release_
    assert found.guarantee == alone.guarantee
    for one, other in zip(found.measurements, alone.measurements, strict=True):
        assert one.noise_sd == pytest.approx(other.noise_sd, rel=1e-12)
        np.testing.assert_allclose(one.answers.values, other.answers.values, atol=1e-6)
    np.testing.assert_allclose(found.predict(X), alone.predict(X), atol=1e-6)


def test_noise_is_in_shares_of_those_that_do_not_collude(quiet):
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    release = simulate(plan_of(colluding=1, noise="gaussian"), tables)
    assert {sharers for *_, sharers in quiet} == {2}
    alone = simulate(plan_of(colluding=0, noise="gaussian"), tables)
    assert release.guarantee == alone.guarantee
    [one], [other] = release.measurements, alone.measurements
    assert one.noise_sd == pytest.approx(other.noise_sd * np.sqrt(3 / 2))
    assert release.custodians.honest == 2
    assert alone.custodians.honest == 3


def rule_of(release):
    return np.abs(release.measurements[0].strategy.rule.matrix)


@pytest.mark.usefixtures("quiet")
def test_questions_are_chosen_for_all_of_the_noise_that_answers_have(monkeypatch):
    """Not for that which the budget needs: as of one table whose answers have as much noise."""
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    order = np.concatenate([np.arange(part, 30, 3) for part in range(3)])
    plan = plan_of(colluding=2, noise="gaussian")
    found = rule_of(simulate(plan, tables))
    alone = plan.estimator().fit_rows(ArrayRows(X[order], Y[order], jobs=1)).release_
    assert found.shape != rule_of(alone).shape or not np.allclose(found, rule_of(alone), rtol=0.01)
    monkeypatch.setattr(RowTable, "added_noise", np.sqrt(3.0))
    noisy = plan.estimator().fit_rows(ArrayRows(X[order], Y[order], jobs=1)).release_
    np.testing.assert_allclose(found, rule_of(noisy), rtol=1e-6, atol=1e-9)


def test_a_release_is_an_ordinary_one(tmp_path):
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    release = simulate(plan_of(), tables)
    release.save(tmp_path / "release.cloak")
    again = Release.load(tmp_path / "release.cloak")
    assert again.custodians == release.custodians
    np.testing.assert_array_equal(again.predict(X), release.predict(X))
    assert again.n_rows == 30
    assert not again.insecure


@pytest.mark.usefixtures("noise_that_repeats")
def test_noise_has_the_stated_sd():
    """Of answers to outputs that are 0, which are noise alone."""
    settings = {"epsilon": 10.0, "kernel": 0.5 * RBF(0.1), "inducing": 30}
    plan = plan_of(noise="laplace", colluding=1, **settings)
    tables = {name: rows_of(part, outputs=np.zeros(30)) for part, name in enumerate(NAMES)}
    found = [simulate(plan, tables).measurements[0].answers for _ in range(8)]
    ratios = np.concatenate([one.values.ravel() / one.noise_sd for one in found])
    assert len(ratios) >= 150
    # Three shares of which two make a Laplace: differences of gammas of shape 3/2, whose mean
    # size is .735 sds. Of 150 of them, means outside of these limits come once in 300,000 runs;
    # half of the noise, or twice as much, lies outside in all but one of 3,000.
    assert 0.5 < np.mean(np.abs(ratios)) < 1.1


def test_sites_in_a_folder_agree_on_what_they_join(tmp_path):
    ward = Ward(tmp_path / "own", exchange=FolderExchange(tmp_path / "shared"))
    release = ward.finish()
    assert release.n_rows == 30
    # Whoever asks again gets the same one.
    assert ward.coordinator.collect().to_bytes() == release.to_bytes()
    assert set(ward.step().values()) == {()}


def test_nothing_that_is_exchanged_holds_an_output(tmp_path):
    outputs = Y + 0.123456789
    exchange = FolderExchange(tmp_path / "shared")
    plan = plan_of()
    coordinator = Coordinator(exchange, plan)
    sites = [
        site_at(name, rows_of(part, outputs=outputs), exchange, tmp_path / name)
        for part, name in enumerate(NAMES)
    ]

    def pause():
        for site in sites:
            site.step()

    coordinator.collect(patience=60.0, pause=pause)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    for value in outputs:
        for form in (value.tobytes(), repr(float(value)).encode()):
            assert not any(form in content for content in files)


# Dropouts.


def test_a_site_that_drops_out_before_it_answers_costs_nothing(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step("east", "north")
    with pytest.raises(WaitingError, match="waiting for west to answer") as caught:
        ward.coordinator.collect()
    assert caught.value.sites == ("west",)
    ward.coordinator.begin_without(["west"])
    del ward.sites["west"]
    release = ward.finish()
    assert release.n_rows == 20
    assert release.custodians.sites == 2
    journal = ward.sites["east"].folder.load()
    assert [(key, one.opened) for key, one in journal.questions.items()] == [
        ("1/1", False),
        ("2/1", True),
    ]
    # Whatever came of the first attempt, nobody opens a mask of it.
    assert ward.exchange.get(FIRST + "openings/east.json") is None


def test_a_late_site_changes_nothing(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    late = ward.sites.pop("west")
    ward.step()
    ward.coordinator.begin_without(["west"])
    assert late.step() == ()
    release = ward.finish()
    assert late.step() == ()
    assert ward.exchange.get(FIRST + "answers/west.json") is None
    assert release.n_rows == 20


def test_a_coordinator_that_claims_late_that_all_answered_opens_nothing(tmp_path):
    """Of a void question no mask is opened, whoever says what."""
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    ward.coordinator.begin_without(["west"])
    ward.collect()
    ward.step("east", "north")
    # All three answers of the first question are there, and it is void.
    ward.exchange.put(FIRST + "complete.json", b'{"request": "", "answers": {}}')
    ward.finish()
    assert ward.exchange.get(FIRST + "openings/east.json") is None


def test_once_all_have_answered_nobody_is_left_out(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    ward.collect()
    ward.step("east", "north")
    with pytest.raises(WaitingError, match="west to open"):
        ward.coordinator.collect()
    with pytest.raises(CustodiansError, match="new plan"):
        ward.coordinator.begin_without(["west"])
    assert ward.finish().n_rows == 30


def test_a_dishonest_restart_is_refused_by_the_budget(tmp_path):
    """An opened question counts; the plan's budget has no room for it once more."""
    ward = Ward(tmp_path)
    ward.finish()
    ward.exchange.files.pop("release.cloak")
    ward.exchange.put("attempt-2/members.json", json.dumps(list(NAMES)).encode())
    assert isinstance(ward.collect(), tuple)
    with pytest.raises(SpendingError, match="plan's budget"):
        ward.step("east")
    assert ward.exchange.get(question_file(2, 1, "answers/east.json")) is None


def test_too_few_are_left(tmp_path):
    ward = Ward(tmp_path, plan=plan_of(colluding=2))
    ward.ask()
    with pytest.raises(CustodiansError, match="may work together"):
        ward.coordinator.begin_without(["west"])
    with pytest.raises(CustodiansError, match="none of the sites"):
        ward.coordinator.begin_without(["south"])


def test_the_roster_may_be_closed_without_a_site(tmp_path):
    ward = Ward(tmp_path)
    ward.step("east", "north")
    with pytest.raises(WaitingError, match="waiting for west to join"):
        ward.coordinator.collect()
    ward.coordinator.close_roster(without=["west"])
    with pytest.raises(CustodiansError, match="not among"):
        ward.step("west")
    del ward.sites["west"]
    assert ward.finish().n_rows == 20


# Refusals: nothing is drawn.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sites": ["a"]}, "two sites"),
        ({"sites": ["a", "a"]}, "two sites"),
        ({"sites": ["a", "../b"]}, "no name"),
        ({"colluding": 3}, "may work together"),
        ({"colluding": -1}, "may work together"),
        ({"colluding": True}, "may work together"),
        ({"approximation": "dtc"}, "approximation"),
        ({"insecure_seed": 1}, "insecure_seed"),
        ({"memory": 1.0}, "memory"),
        ({"inducing": np.zeros((2, 1))}, "inducing"),
    ],
)
def test_plans_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(CustodiansError, match=message):
        plan_of(**settings)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"sites": []}'])
def test_damaged_plans_are_refused(content):
    with pytest.raises(CustodiansError, match="damaged"):
        Plan.from_bytes(content)


def test_a_plan_with_a_field_changed_is_another(tmp_path):
    ward = Ward(tmp_path)
    ward.step("east")
    content = json.loads(ward.exchange.files["plan.json"])
    content["settings"]["epsilon"] = 2.0
    ward.exchange.files["plan.json"] = json.dumps(content).encode()
    ward.begin_again("east")
    with pytest.raises(CustodiansError, match="agreed"):
        ward.step("east")
    with pytest.raises(CustodiansError, match="another"):
        Coordinator(ward.exchange, ward.plan)


def test_sites_of_another_plan_are_refused(tmp_path):
    ward = Ward(tmp_path)
    ward.step()
    member = json.loads(ward.exchange.files["sites/west.json"])
    ward.exchange.files["sites/west.json"] = json.dumps({**member, "plan": "0" * 64}).encode()
    with pytest.raises(CustodiansError, match="west joined another plan"):
        ward.coordinator.collect()


def test_inputs_that_are_not_those_of_the_site_are_refused(tmp_path):
    ward = Ward(tmp_path)
    ward.step()
    ward.exchange.files["sites/west.npy"] = ward.exchange.files["sites/east.npy"]
    with pytest.raises(CustodiansError, match="public inputs of west"):
        ward.coordinator.collect()


def test_a_site_whose_table_changed_is_refused(tmp_path):
    ward = Ward(tmp_path)
    ward.step()
    moved = site_at("west", rows_of(1), ward.exchange, tmp_path / "west")
    with pytest.raises(CustodiansError, match="others than those"):
        moved.step()
    fewer = site_at("west", ArrayRows(X[:3], Y[:3]), ward.exchange, tmp_path / "west")
    with pytest.raises(CustodiansError, match="others than those"):
        fewer.step()


def test_a_site_with_other_columns_is_refused(tmp_path):
    ward = Ward(tmp_path)
    rows = ArrayRows(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(CustodiansError, match="1 public columns, and the rows have 2"):
        site_at("west", rows, ward.exchange, tmp_path / "west").step()
    named = ArrayRows(np.zeros((3, 1)), np.zeros(3), input_names=["z"])
    with pytest.raises(CustodiansError, match="the rows have z"):
        site_at("west", named, ward.exchange, tmp_path / "west").step()
    with pytest.raises(CustodiansError, match="none of the sites"):
        site_at("south", rows_of(2), ward.exchange, tmp_path / "south").step()
    grouped = ArrayRows(np.zeros((3, 1)), np.zeros(3), groups=["a", "a", "b"])
    with pytest.raises(CustodiansError, match="each on its own"):
        site_at("west", grouped, ward.exchange, tmp_path / "west").step()


def test_another_roster_is_refused(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    roster = Roster.from_bytes(ward.exchange.files["roster.json"])
    entries = json.loads(roster.to_bytes())
    entries[0]["key"] = "11" * 32
    ward.step("north")
    ward.exchange.files["roster.json"] = json.dumps(entries, indent=1).encode()
    ward.begin_again("east", "north")
    with pytest.raises(CustodiansError, match="another entry"):
        ward.step("east")
    with pytest.raises(CustodiansError, match="another than this site agreed"):
        ward.step("north")


def test_only_the_roster_that_was_agreed_is_answered(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    digest = ward.coordinator.roster.digest

    def site(agreed):
        return site_at("west", rows_of(2), ward.exchange, tmp_path / "west", agreed=agreed)

    with pytest.raises(CustodiansError, match="another than was agreed"):
        site("01234567" * 5).step()
    assert ward.exchange.get(FIRST + "answers/west.json") is None
    # Of fewer digits, whoever makes the roster finds two with the same ones by trying keys.
    for wrong in ("0123", digest[:39], "not a digest", digest + "0"):
        with pytest.raises(CustodiansError, match="40 digits"):
            site(wrong)
    assert site(f"{digest[:4]} {digest[4:40].upper()}").step() == ("answered",)


def entry(ward, name, key):
    return Member(name=name, key=key.public, rows=1, inputs="0" * 64, plan=ward.plan.digest)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("g0", "g1"), "does not name, or one twice"),
        (("east", "east"), "does not name, or one twice"),
    ],
)
def test_a_roster_with_sites_that_the_plan_does_not_name_is_refused(tmp_path, names, message):
    """Sites that the coordinator invents would bring down the share of the noise of all others."""
    ward = Ward(tmp_path)
    ward.step()
    sent = [Member.from_bytes(ward.exchange.files[f"sites/{name}.json"]) for name in NAMES]
    roster = Roster((*sent, *(entry(ward, name, SiteKey.draw()) for name in names)))
    ward.exchange.put("roster.json", roster.to_bytes())
    for name in NAMES:
        with pytest.raises(CustodiansError, match=message):
            ward.step(name)
    with pytest.raises(CustodiansError, match=message):
        ward.coordinator.collect()


def test_a_roster_of_one_site_is_refused(tmp_path):
    ward = Ward(tmp_path, plan=plan_of(colluding=0))
    ward.step()
    own = Member.from_bytes(ward.exchange.files["sites/east.json"])
    ward.exchange.put("roster.json", Roster((own,)).to_bytes())
    with pytest.raises(CustodiansError, match="two sites or more"):
        ward.step("east")


@pytest.mark.parametrize(
    ("asked", "message"), [(("east",), "two sites or more"), (("east", "g0"), "others are asked")]
)
def test_one_site_is_not_asked_alone_and_none_with_others_than_joined(tmp_path, asked, message):
    ward = Ward(tmp_path, plan=plan_of(colluding=0))
    ward.step()
    ward.coordinator.close_roster()
    ward.exchange.put("attempt-1/members.json", names_to_bytes(asked))
    with pytest.raises(CustodiansError, match=message):
        ward.step("east")


@pytest.mark.parametrize("held", [0.25, 0.75])
def test_labels_of_the_coordinator_s_choice_tell_nothing(tmp_path, held):
    """A site would fail if, and only if, an output is none of them: a bit, exact and for free."""
    outputs = np.full(len(Y), 0.5)
    outputs[0] = held
    ward = Ward(tmp_path, plan=plan_of(delta=0.0))
    ward.sites["east"] = site_at(
        "east", rows_of(0, outputs=outputs), ward.exchange, tmp_path / "east"
    )
    ward.step()
    roster = ward.coordinator.close_roster()
    ward.exchange.put("attempt-1/members.json", names_to_bytes(NAMES))
    request = Request.of(
        EqualShares(),
        bound=StrategyBound(
            answers=1, longest=1.0, chunk_rows=100, count=len(Y), noise=noise_named("laplace")
        ),
        question=Classes((0.25, 0.5)),
        epsilon=1.0,
        delta=0.0,
        roster=roster.digest,
        attempt=1,
        number=1,
        members=NAMES,
        reading=ward.plan.reading,
    )
    ward.exchange.put(FIRST + "request.cloak", request.to_bytes())
    with pytest.raises(CustodiansError, match="other labels than the plan"):
        ward.step("east")
    assert ward.exchange.get(FIRST + "answers/east.json") is None


def test_a_site_with_invalid_cells_does_not_join(tmp_path):
    """Afterwards, not answering would tell the others of them."""
    ward = Ward(tmp_path)
    outputs = Y.copy()
    outputs[3] = np.nan
    site = site_at("east", rows_of(0, outputs=outputs), ward.exchange, tmp_path / "east")
    told = r"the private column y: y contains NaN.*, or say what empty .* \(--missing-output\)$"
    with pytest.raises(CustodiansError, match=told):
        site.step()
    assert not [name for name in ward.exchange.files if name.startswith("sites/")]


def change(ward, name, **changed):
    content = json.loads(ward.exchange.files[FIRST + name])
    ward.exchange.files[FIRST + name] = json.dumps({**content, **changed}).encode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"request": "0" * 64}, "another question"),
        ({"site": "east"}, "another question"),
        ({"numbers": "AAAAAAAAAAA="}, "numbers"),
        ({"numbers": "?"}, "numbers"),
        ({"numbers": 5}, "numbers"),
        ({"more": 1}, "damaged"),
    ],
)
def test_answers_that_are_none_are_refused(tmp_path, changed, message):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    change(ward, "answers/west.json", **changed)
    with pytest.raises(CustodiansError, match=message):
        ward.coordinator.collect()
    assert ward.exchange.get(FIRST + "complete.json") is None


def test_an_answer_is_sent_once(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    sent = ward.exchange.files[FIRST + "answers/west.json"]
    assert ward.step("west") == {"west": ()}
    # Were the file lost, the same would be sent.
    ward.exchange.files.pop(FIRST + "answers/west.json")
    ward.begin_again("west")
    assert ward.step("west") == {"west": ("answered",)}
    assert ward.exchange.files[FIRST + "answers/west.json"] == sent


def test_an_exchanged_answer_is_not_opened(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    answer = Hidden.from_bytes(ward.exchange.files[FIRST + "answers/west.json"])
    change(ward, "answers/west.json", numbers="AAAA" + answer.numbers[4:])
    ward.collect()
    assert Complete.from_bytes(ward.exchange.files[FIRST + "complete.json"])
    with pytest.raises(CustodiansError, match="written before, and is another"):
        ward.step("west")


@pytest.mark.parametrize("changed", [{"seed": "00"}, {"seed": 3}, {"site": "east"}])
def test_opened_masks_that_are_none_are_refused(tmp_path, changed):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step()
    ward.collect()
    ward.step()
    change(ward, "openings/west.json", **changed)
    with pytest.raises(CustodiansError, match="mask"):
        ward.coordinator.collect()


def test_a_question_that_was_changed_is_refused(tmp_path):
    ward = Ward(tmp_path)
    ward.ask()
    ward.step("east")
    other = Ward(tmp_path / "other", plan=plan_of(kernel=2.0 * ONE_QUESTION["kernel"]))
    other.ask()
    ward.exchange.files[FIRST + "request.cloak"] = other.exchange.files[FIRST + "request.cloak"]
    with pytest.raises(CustodiansError, match="not about what was agreed"):
        ward.step("north")
    assert ward.sites["north"].folder.load().questions == {}
    ward.exchange.files[FIRST + "request.cloak"] = b"nothing"
    ward.begin_again("north")
    with pytest.raises(CustodiansError, match="cannot be read"):
        ward.step("north")
    with pytest.raises(CustodiansError, match="another question comes out"):
        ward.coordinator.collect()


def test_a_coordinator_that_asks_more_than_the_plan_is_refused(tmp_path, monkeypatch):
    """A plan of ε = 1, and a coordinator that fits with 2."""
    ward = Ward(tmp_path)
    ward.step()
    dishonest = DPGPRegressor(bounds=(-2, 2), epsilon=2.0, delta=1e-5, **ONE_QUESTION)
    monkeypatch.setattr(Plan, "estimator", lambda _: dishonest)
    ward.collect()
    monkeypatch.undo()
    with pytest.raises(SpendingError, match="more than the plan's budget"):
        ward.step("west")
    assert ward.exchange.get(FIRST + "answers/west.json") is None


def test_two_processes_do_not_answer_at_once(tmp_path):
    from cloakgp.utils.locks import locked_folder

    ward = Ward(tmp_path)
    with locked_folder(tmp_path / "west"), pytest.raises(CustodiansError, match="another process"):
        ward.step("west")


def test_a_coordinator_without_a_plan_is_refused():
    with pytest.raises(CustodiansError, match="no plan"):
        Coordinator(MemoryExchange())


def test_the_assumption_is_told_and_kept():
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    release = simulate(plan_of(), tables)
    facts = {fact.label: fact.text for section in describe(release) for fact in section.facts}
    assert (
        "any 1 of the custodians together, if the other 2 kept to the protocol"
        in (facts["custodians"])
    )
    alone = plan_of().estimator().fit_rows(ArrayRows(X, Y, input_names=["x"])).release_
    told = {fact.label for section in describe(alone) for fact in section.facts}
    assert "custodians" not in told


def test_releases_of_different_custodians_are_not_combined():
    settings = {"inducing": 4, "learn": None}
    tables = {name: rows_of(part) for part, name in enumerate(NAMES)}
    one = simulate(plan_of(**settings), tables)
    other = simulate(plan_of(colluding=2, **settings), tables)
    with pytest.raises(ValueError, match="different custodians"):
        one.combine(other, same_rows=False)
    assert one.combine(simulate(plan_of(), tables), same_rows=False).custodians == one.custodians


@pytest.mark.parametrize(("sites", "colluding"), [(1, 0), (3, 3), (3, -1)])
def test_damaged_custodians_are_refused(sites, colluding):
    with pytest.raises(ValueError, match="damaged"):
        Custodians(sites, colluding).validate()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("classes", [("no", "yes"), (0, 1, 2)])
def test_classes_are_released_as_those_of_one_table(classes):
    """But for the noise, which is none here."""
    labels = [classes[number] for number in np.digitize(Y, [-0.3, 0.3][: len(classes) - 1])]
    model = DPGPClassifier(classes=classes, epsilon=3.0, delta=1e-5, inducing=4, learn=None)
    plan = Plan.of(model, sites=NAMES, input_names=["x"], colluding=0)
    assert Plan.from_bytes(plan.to_bytes()).estimator().classes == classes
    tables = {
        name: ArrayRows(X[part::3], labels[part::3], jobs=1) for part, name in enumerate(NAMES)
    }
    found = simulate(plan, tables)
    order = [row for part in range(3) for row in range(part, 30, 3)]
    alone = model.fit_rows(ArrayRows(X[order], [labels[row] for row in order], jobs=1)).release_
    assert found.classes == classes
    np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-5)
