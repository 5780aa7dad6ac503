"""Notes of draws: on the disk before the noise, and after the reservation of another keeper."""

from __future__ import annotations

import numpy as np
import pytest
from counting_keeper import Counting
from stream_tables import BOUNDS, model

from cloakgp import DPGPRegressor
from cloakgp.privacy import sampler
from cloakgp.privacy.spending import Cost, SpendingError, counted_by, spend
from cloakgp.streams.noting import NotingKeeper

X = np.linspace(0, 5, 8)[:, None]


def fit(estimator=None):
    return (estimator or model()).fit(X, np.tile(BOUNDS, 4)).release_


def test_every_draw_is_noted_before_it_is_made(monkeypatch):
    events = []

    def spending(cost, draw):
        return spend(cost, lambda: (events.append("drawn"), draw())[1])

    monkeypatch.setattr(sampler, "spend", spending)
    keeper = NotingKeeper(note=lambda cost: events.append(cost))
    with counted_by(keeper):
        release = fit(DPGPRegressor(bounds=BOUNDS, epsilon=1.0))
    notes = [event for event in events if isinstance(event, Cost)]
    assert events == [each for cost in notes for each in (cost, "drawn")]
    assert len(notes) == len(release.measurements) > 1
    # What was noted is what the release states.
    assert sum(cost.epsilon for cost in notes) == pytest.approx(release.guarantee.pure_epsilon)


def test_another_keeper_reserves_first_and_hears_all():
    inner, notes = Counting(), []

    def note(cost):
        assert inner.costs[-1] is cost
        notes.append(cost)

    with counted_by(NotingKeeper(note=note, inner=inner)):
        fit()
    (charge,) = inner.charges
    assert notes == charge.costs
    assert len(charge.digests) == 1
    assert charge.held
    assert charge.ended == "committed"


def test_what_is_refused_is_not_noted():
    notes = []
    with (
        counted_by(NotingKeeper(note=notes.append, inner=Counting(refuse_after=0))),
        pytest.raises(SpendingError, match="no more"),
    ):
        fit()
    assert notes == []


def test_nothing_is_drawn_if_the_note_fails(monkeypatch):
    def note(_):
        raise OSError("the disk is full")

    monkeypatch.setattr("cloakgp.privacy.spending.note_draw", lambda _: pytest.fail("drawn"))
    with counted_by(NotingKeeper(note=note)), pytest.raises(OSError, match="full"):
        fit()
