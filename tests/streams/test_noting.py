"""Notes of draws: on the disk before the noise, and before the reservation of another keeper."""

from __future__ import annotations

import numpy as np
import pytest
from counting_keeper import Counting
from sklearn.base import clone
from stream_tables import BOUNDS, model

from cloakgp import DPGPRegressor
from cloakgp.privacy import sampler
from cloakgp.privacy.spending import Cost, SpendingError, counted_by, spend
from cloakgp.streams.noting import ClosedKeeper, Notes, NotingKeeper, OtherDrawError

X = np.linspace(0, 5, 8)[:, None]


def fit(estimator=None):
    return (estimator or model()).fit(X, np.tile(BOUNDS, 4)).release_


def test_every_draw_is_noted_before_it_is_made(monkeypatch):
    events = []

    def spending(cost, draw):
        return spend(cost, lambda: (events.append("drawn"), draw())[1])

    monkeypatch.setattr(sampler, "spend", spending)
    notes = Notes(note=events.append, keep=lambda answers: events.append(len(answers)))
    with counted_by(NotingKeeper(notes)):
        release = fit(DPGPRegressor(bounds=BOUNDS, epsilon=1.0))
    noted = [event for event in events if isinstance(event, Cost)]
    assert events == [
        each for number, cost in enumerate(noted, 1) for each in (cost, "drawn", number)
    ]
    assert len(noted) == len(release.measurements) > 1
    # What was noted is what the release states.
    assert sum(cost.epsilon for cost in noted) == pytest.approx(release.guarantee.pure_epsilon)


def test_a_note_comes_before_another_keeper_reserves_which_hears_all():
    inner, notes = Counting(), []

    def note(cost):
        # What it reserves without a note is of another process.
        assert inner.costs == []
        notes.append(cost)

    with counted_by(NotingKeeper(Notes(note=note, keep=len), inner)):
        fit()
    (charge,) = inner.charges
    assert notes == charge.costs
    assert len(charge.digests) == 1
    assert charge.held
    assert charge.ended == "committed"


def test_what_is_refused_does_not_stay_noted():
    notes = []
    with (
        counted_by(
            NotingKeeper(
                Notes(note=notes.append, keep=len, forget=notes.pop), Counting(refuse_after=0)
            ),
        ),
        pytest.raises(SpendingError, match="no more"),
    ):
        fit()
    assert notes == []


def test_nothing_is_drawn_if_the_note_fails(monkeypatch):
    def note(_):
        raise OSError("the disk is full")

    monkeypatch.setattr("cloakgp.privacy.spending.note_draw", lambda _: pytest.fail("drawn"))
    with counted_by(NotingKeeper(Notes(note=note, keep=len))), pytest.raises(OSError, match="full"):
        fit()


def drawn_once(estimator, *, stop=None):
    """Fit, and return costs, answers and the release; end after some draws if told so."""
    costs, answers = [], []

    def keep(found):
        answers[:] = [each.copy() for each in found]
        if stop is not None and len(found) == stop:
            raise KeyboardInterrupt

    release = None
    try:
        with counted_by(NotingKeeper(Notes(note=costs.append, keep=keep))):
            release = fit(clone(estimator))
    except KeyboardInterrupt:
        pass
    return costs, answers, release


@pytest.mark.parametrize("stop", [1, 3, None])
def test_what_was_drawn_is_not_drawn_again(stop, monkeypatch):
    """The same answers, to the last bit, and the rest of the draws alone."""
    estimator = DPGPRegressor(bounds=BOUNDS, epsilon=1.0)
    costs, answers, release = drawn_once(estimator, stop=stop)
    assert (release is None) == (stop is not None)
    inner, later, draws = Counting(), [], []

    def spending(cost, draw):
        return spend(cost, lambda: (draws.append(cost), draw())[1])

    monkeypatch.setattr(sampler, "spend", spending)
    notes = Notes(note=later.append, keep=len, costs=tuple(costs), answers=list(answers))
    with counted_by(NotingKeeper(notes, inner)):
        again = fit(clone(estimator))
    assert draws == later == inner.costs
    if stop is None:
        assert draws == []
        assert [
            one.answers.values.tolist() == other.answers.values.tolist()
            for one, other in zip(release.measurements, again.measurements, strict=True)
        ] == [True] * len(costs)
    assert len(costs) + len(draws) == len(again.measurements)
    # The account hears of all answers, those of before as well.
    (charge,) = inner.charges
    assert len(charge.digests) == len(again.measurements)
    assert again.guarantee.pure_epsilon == pytest.approx(1.0, rel=1e-4)


def test_answers_to_other_questions_are_not_taken():
    costs, answers, _ = drawn_once(model())
    notes = Notes(note=pytest.fail, keep=len, costs=tuple(costs), answers=answers)
    with counted_by(NotingKeeper(notes)), pytest.raises(OtherDrawError, match="other questions"):
        fit(model(epsilon=1.5))


def test_a_closed_account_draws_nothing_more():
    costs, answers, _ = drawn_once(model())
    notes = Notes(note=pytest.fail, keep=len, costs=tuple(costs), answers=answers)
    with counted_by(NotingKeeper(notes, ClosedKeeper())):
        assert len(fit().measurements) == 1
    noted = []
    notes = Notes(note=noted.append, keep=pytest.fail, forget=noted.pop)
    with (
        counted_by(NotingKeeper(notes, ClosedKeeper())),
        pytest.raises(OtherDrawError, match="nothing more is drawn"),
    ):
        fit()
    assert noted == []
