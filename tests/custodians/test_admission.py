"""Admission: what a site may send and read, and when; refusals leave the exchange as it was."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from small_plans import NAMES, TWO_QUESTIONS, Ward, plan_of, rows_of, site_at

from cloakgp.custodians import CustodiansError
from cloakgp.custodians.admission import admit_file, may_read
from cloakgp.custodians.files import inputs_from_bytes, inputs_to_bytes, question_file
from cloakgp.custodians.progress import Progress

FIRST = question_file(1, 1, "")


class Kept:
    """The exchange as somebody keeps it for one site."""

    def __init__(self, exchange, site):
        self.exchange, self.site = exchange, site

    def get(self, name):
        assert may_read(name, site=self.site), name
        return self.exchange.get(name)

    def has(self, name):
        return self.get(name) is not None

    def put(self, name, content):
        assert admit_file(self.exchange, site=self.site, name=name, content=content)


def kept_ward(folder, **settings):
    """Sites that reach the exchange only as they may."""
    ward = Ward(folder, plan=plan_of(**settings))
    for part, name in enumerate(NAMES):
        kept = Kept(ward.exchange, name)
        ward.sites[name] = site_at(name, rows_of(part), kept, folder / name)
    return ward


def send(ward, site, name, content):
    """Send a file; whatever is refused changes nothing."""
    before = dict(ward.exchange.files)
    try:
        return admit_file(ward.exchange, site=site, name=name, content=content)
    except CustodiansError:
        assert ward.exchange.files == before
        raise


def drop(ward, name):
    """Take a file back, to send another in its place; return it."""
    return ward.exchange.files.pop(name)


def changed(content, **more):
    return json.dumps({**json.loads(content), **more}).encode()


def test_sites_need_no_more_than_they_may(tmp_path):
    """A dropout, two questions, and the end: every file passes the door once."""
    ward = kept_ward(tmp_path, **TWO_QUESTIONS)
    ward.ask()
    late = ward.sites.pop("west")
    ward.step()
    ward.coordinator.begin_without(["west"])
    assert late.step() == ()
    assert ward.finish().n_rows == 20
    assert ward.coordinator.progress == Progress("done", 2, 2, ("east", "north"))


def test_what_was_taken_may_be_sent_again_at_any_time(tmp_path):
    ward = kept_ward(tmp_path)
    ward.finish()
    for name, content in list(ward.exchange.files.items()):
        if "west" in name:
            assert send(ward, "west", name, content) is False
            with pytest.raises(CustodiansError, match="written before, and is another"):
                send(ward, "west", name, content + b" ")


@pytest.mark.parametrize(
    "name",
    [
        "plan.json",
        "roster.json",
        "release.cloak",
        "attempt-2/members.json",
        FIRST + "request.cloak",
        FIRST + "complete.json",
        FIRST + "total.json",
        FIRST + "answers/north.json",
        FIRST + "openings/north.json",
        "sites/north.json",
        "sites/../plan.json",
        "sites/west.json/../../plan.json",
        "sites/west.json\n",
        "attempt-0/question-1/answers/west.json",
        "attempt-01/question-1/answers/west.json",
        "",
    ],
)
def test_a_site_writes_its_own_files_alone(tmp_path, name):
    ward = kept_ward(tmp_path)
    ward.ask()
    with pytest.raises(CustodiansError, match="no file that west writes"):
        send(ward, "west", name, b"{}")


def test_a_site_reads_the_schedule_and_its_own_files(tmp_path):
    ward = kept_ward(tmp_path)
    ward.finish()
    read = {name for name in ward.exchange.files if may_read(name, site="west")}
    assert read == {
        *("plan.json", "roster.json", "release.cloak", "attempt-1/members.json"),
        *(FIRST + "request.cloak", FIRST + "complete.json"),
        *(name for name in ward.exchange.files if "west" in name),
    }
    assert not any("east" in name for name in read)
    assert not may_read(FIRST + "total.json", site="west")


def test_a_stranger_sends_nothing(tmp_path):
    ward = kept_ward(tmp_path)
    content = inputs_to_bytes(np.zeros((2, 1)))
    with pytest.raises(CustodiansError, match="none of the sites of the plan"):
        send(ward, "south", "sites/south.npy", content)


def npy(X, **settings):
    file = io.BytesIO()
    np.save(file, X, **settings)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        npy(np.zeros((3, 2))),
        npy(np.zeros((0, 1))),
        npy(np.zeros(3)),
        npy(np.zeros((3, 1), dtype="f4")),
        npy(np.zeros((3, 1))) + b"0",
        npy(np.zeros((3, 1))).replace(b"False", b"True "),
        npy(np.zeros((3, 1)))[:-1],
        npy(np.array([[np.nan]])),
        npy(np.array([[None]])),
        npy(np.zeros((3, 1))).replace(b"(3, 1)", b"(9, 1)"),
        npy(np.zeros((3, 1))).replace(b"(3, 1)", b"(-3,1)"),
        # Far more than is there, and than there is memory.
        npy(np.zeros((3, 1))).replace(b"(3, 1), }           ", b"(3000000000000, 1), }"),
    ],
)
def test_inputs_that_are_none_are_refused(tmp_path, content):
    ward = kept_ward(tmp_path)
    with pytest.raises(CustodiansError, match="finite numbers"):
        send(ward, "west", "sites/west.npy", content)


def test_inputs_are_read_as_they_were_written():
    X = np.random.default_rng(0).normal(size=(7, 3))
    content = inputs_to_bytes(X)
    np.testing.assert_array_equal(inputs_from_bytes(content, columns=3), X)
    np.testing.assert_array_equal(inputs_from_bytes(content, columns=3, rows=7), X)
    with pytest.raises(CustodiansError, match="6 rows of 3"):
        inputs_from_bytes(content, columns=3, rows=6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": "east"}, "another plan"),
        ({"plan": "0" * 64}, "another plan"),
        ({"inputs": "0" * 64}, "public inputs of west"),
        ({"rows": 11}, "finite numbers"),
        ({"rows": 0}, "no rows"),
        ({"more": 1}, "damaged"),
    ],
)
def test_joining_with_something_else_is_refused(tmp_path, more, message):
    ward = kept_ward(tmp_path)
    ward.step()
    content = drop(ward, "sites/west.json")
    with pytest.raises(CustodiansError, match=message):
        send(ward, "west", "sites/west.json", changed(content, **more))
    assert send(ward, "west", "sites/west.json", content)


def test_two_sites_have_two_keys(tmp_path):
    ward = kept_ward(tmp_path)
    ward.step()
    key = json.loads(ward.exchange.files["sites/east.json"])["key"]
    content = drop(ward, "sites/west.json")
    with pytest.raises(CustodiansError, match="west has the key of east"):
        send(ward, "west", "sites/west.json", changed(content, key=key))


def test_nobody_joins_too_late(tmp_path):
    ward = kept_ward(tmp_path)
    ward.step()
    files = {name: drop(ward, name) for name in ("sites/west.npy", "sites/west.json")}
    ward.coordinator.close_roster(without=["west"])
    for name, content in files.items():
        with pytest.raises(CustodiansError, match="too late: the others go on without west"):
            send(ward, "west", name, content)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"request": "0" * 64}, "west answered another question"),
        ({"site": "east"}, "west answered another question"),
        ({"numbers": "AAAAAAAAAAA="}, "west has not 2 numbers"),
        ({"numbers": "?"}, "numbers"),
        ({"more": 1}, "damaged"),
    ],
)
def test_answers_to_something_else_are_refused(tmp_path, more, message):
    ward = kept_ward(tmp_path)
    ward.ask()
    ward.step()
    name = FIRST + "answers/west.json"
    content = drop(ward, name)
    with pytest.raises(CustodiansError, match=message):
        send(ward, "west", name, changed(content, **more))
    assert send(ward, "west", name, content)


def test_a_second_answer_is_refused(tmp_path):
    ward = kept_ward(tmp_path)
    ward.ask()
    ward.step()
    content = ward.exchange.files[FIRST + "answers/west.json"]
    with pytest.raises(CustodiansError, match="written before, and is another"):
        send(ward, "west", FIRST + "answers/west.json", changed(content, numbers="AAAA"))


def test_answers_to_a_void_question_are_too_late(tmp_path):
    ward = kept_ward(tmp_path)
    ward.ask()
    ward.step("east", "north", "west")
    name = FIRST + "answers/west.json"
    content = drop(ward, name)
    ward.coordinator.begin_without(["west"])
    ward.collect()
    with pytest.raises(CustodiansError, match="too late: the question is void"):
        send(ward, "west", name, content)
    with pytest.raises(CustodiansError, match="west is not asked"):
        send(ward, "west", question_file(2, 1, "answers/west.json"), content)
    with pytest.raises(CustodiansError, match="no such question yet"):
        send(ward, "east", question_file(2, 2, "answers/east.json"), content)
    with pytest.raises(CustodiansError, match="no such question yet"):
        send(ward, "east", question_file(3, 1, "answers/east.json"), content)


def test_masks_are_opened_when_all_have_answered_and_not_before(tmp_path):
    ward = kept_ward(tmp_path)
    ward.finish()
    name = FIRST + "openings/west.json"
    content, answer = drop(ward, name), drop(ward, FIRST + "answers/west.json")
    for late in ("release.cloak", FIRST + "total.json"):
        drop(ward, late)
    complete = drop(ward, FIRST + "complete.json")
    with pytest.raises(CustodiansError, match="masks stay closed"):
        send(ward, "west", name, content)
    ward.exchange.put(FIRST + "complete.json", complete)
    ward.exchange.put(FIRST + "answers/west.json", answer)
    for more, message in (
        ({"request": "0" * 64}, "mask of another question"),
        ({"site": "east"}, "mask of another question"),
        ({"seed": "00"}, "damaged"),
    ):
        with pytest.raises(CustodiansError, match=message):
            send(ward, "west", name, changed(content, **more))
    assert send(ward, "west", name, content)


def test_after_the_release_nothing_more_is_taken(tmp_path):
    ward = kept_ward(tmp_path)
    ward.finish()
    content = drop(ward, FIRST + "openings/west.json")
    with pytest.raises(CustodiansError, match="too late: the release is there"):
        send(ward, "west", FIRST + "openings/west.json", content)


def test_progress_names_who_comes_next(tmp_path):
    ward = kept_ward(tmp_path)
    assert ward.coordinator.progress == Progress("join", 0, 0, NAMES, NAMES)
    ward.step("east", "north")
    assert ward.coordinator.progress == Progress("join", 0, 0, NAMES, ("west",))
    ward.step()
    assert ward.coordinator.progress == Progress("collect", 0, 0, NAMES)
    ward.collect()
    assert ward.coordinator.progress == Progress("answer", 1, 1, NAMES, NAMES)
    ward.step("west")
    assert ward.coordinator.progress == Progress("answer", 1, 1, NAMES, ("east", "north"))
    ward.step()
    assert ward.coordinator.progress == Progress("collect", 1, 1, NAMES)
    ward.collect()
    ward.step("east")
    assert ward.coordinator.progress == Progress("open", 1, 1, NAMES, ("north", "west"))
    ward.step()
    assert ward.coordinator.progress == Progress("collect", 1, 1, NAMES)
    ward.collect()
    assert ward.coordinator.progress == Progress("done", 1, 1, NAMES)
