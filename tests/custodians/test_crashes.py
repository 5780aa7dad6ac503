"""Kills at every moment: nothing is drawn twice for one question, counted twice, or lost.

A *moment* is before or after anything that outlives the process: a file that is written, a
transaction of the ledger, and the draw of noise itself. A site, or the coordinator, is killed at
each of them in turn, and from then on nothing more of it reaches the disk. The next process goes on
from what is there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from killed_runs import KilledError, Moments
from small_plans import Ward, plan_of

from cloakgp.custodians import FolderExchange
from cloakgp.ledger import Ledger
from cloakgp.ledger.database import Database
from cloakgp.privacy.noise import laplace

NAMES = ("north", "south")
FEWEST = 12


class SiteMoments(Moments):
    """The moments of a site and of the coordinator."""

    def __init__(self, patch, *, last=None):
        self.draws, self.published = 0, []
        super().__init__(patch, last=last)

    def patch(self, patch):
        add = laplace.add_share_of_laplace

        def added(integers, *, hide, **settings):
            def hidden(noisy):
                self.reach("before the draw is hidden")
                self.draws += 1
                found = hide(noisy)
                self.reach("after the draw is hidden")
                return found

            return add(integers, hide=hidden, **settings)

        self.around_writes(patch)
        self.around_writing(patch, Database, name="an entry")
        patch.setattr(laplace, "add_share_of_laplace", added)


def ward_of(folder):
    """Two sites, the second with a ledger, as new processes find them."""
    path = Path(folder)
    if not (path / "ledger.db").exists():
        Ledger.create(path / "ledger.db").open_account("patients", epsilon=1.0, delta=0.0)
    exchange = FolderExchange(path / "shared")
    plan = plan_of(sites=NAMES, noise="laplace", delta=0.0, inducing=2)
    ward = Ward(path / "sites", plan=plan, exchange=exchange, names=NAMES)
    counted = Ward(
        path / "sites",
        plan=plan,
        exchange=exchange,
        names=NAMES,
        ledger=Ledger(path / "ledger.db"),
        account="patients",
    )
    ward.sites["south"] = counted.sites["south"]
    return ward


def finished(folder):
    """Go on with new processes to the end."""
    release = ward_of(folder).finish()
    ward = ward_of(folder)
    assert set(ward.step().values()) == {()}
    return ward, release


def check(folder):
    ward, release = finished(folder)
    [standing] = Ledger(Path(folder) / "ledger.db").standings()
    assert standing.open == ()
    # The whole budget, once.
    assert standing.used == pytest.approx(1.0, abs=1e-6)
    assert Ledger(Path(folder) / "ledger.db").verify().findings == ()
    assert release.n_rows == 20
    for name in NAMES:
        journal = ward.sites[name].folder.load()
        assert [each.opened for each in journal.questions.values()] == [True]
        sent = ward.exchange.get(f"attempt-1/question-1/answers/{name}.json")
        assert sent == ward.sites[name].folder.answer("1/1")


def run_to(folder, who, monkeypatch, *, last=None):
    """Let one of the processes run, killed at a moment; the others as far as they can."""
    ward = ward_of(folder)
    for _ in range(4):
        for name in NAMES:
            if name != who:
                ward.step(name)
        if who != "coordinator":
            ward.collect()
        with monkeypatch.context() as patch:
            moments = SiteMoments(patch, last=last)
            try:
                if who == "coordinator":
                    ward.collect()
                else:
                    ward.step(who)
            except KilledError:
                return True, moments
        if last is not None:
            last -= len(moments.names)
            if last < 0:
                return True, moments
    return False, moments


@pytest.mark.parametrize(
    "who",
    # The one without a ledger does what the other does, and less.
    ["south", pytest.param("north", marks=pytest.mark.slow), "coordinator"],
)
def test_a_kill_at_every_moment(who, tmp_path, monkeypatch):
    killed = 0
    while True:
        folder = tmp_path / f"run-{killed}"
        folder.mkdir()
        dead, _ = run_to(folder, who, monkeypatch, last=killed)
        if not dead:
            break
        check(folder)
        killed += 1
    assert killed >= FEWEST


@pytest.mark.parametrize("others_answered", [False, True])
def test_a_kill_at_every_moment_before_leaving(others_answered, tmp_path, monkeypatch):
    """What is opened stays spent, and what is not is given back; nothing is left open."""
    killed = 0
    while True:
        folder = tmp_path / f"run-{killed}"
        folder.mkdir()
        ward = ward_of(folder)
        ward.ask()
        ward.step("north")
        with monkeypatch.context() as patch:
            moments = SiteMoments(patch, last=killed)
            try:
                ward.step("south")
                if others_answered:
                    ward.collect()
                    ward.step("south")
                ward.sites["south"].leave()
            except KilledError:
                dead = True
            else:
                dead = False
        site = ward_of(folder).sites["south"]
        site.leave()
        [standing] = Ledger(folder / "ledger.db").standings()
        opened = [each.opened for each in site.folder.load().questions.values()]
        assert standing.open == ()
        assert standing.used == pytest.approx(1.0 if True in opened else 0.0, abs=1e-6)
        opening = ward.exchange.get("attempt-1/question-1/openings/south.json")
        assert opening is None or opened == [True]
        assert Ledger(folder / "ledger.db").verify().findings == ()
        if not dead:
            break
        killed += 1
    assert killed >= FEWEST
    assert len(moments.names) == killed


def test_an_answer_that_was_kept_is_not_drawn_again(tmp_path, monkeypatch):
    ward = ward_of(tmp_path)
    ward.ask()
    ward.step("south")
    answer = tmp_path / "shared/attempt-1/question-1/answers/south.json"
    content = answer.read_bytes()
    answer.unlink()
    with monkeypatch.context() as patch:
        moments = SiteMoments(patch)
        assert ward_of(tmp_path).step("south") == {"south": ("answered",)}
    assert moments.draws == 0
    assert answer.read_bytes() == content
