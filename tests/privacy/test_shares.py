"""Shares of custodians: their integers add up to those of one table, and move as far at most."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from private_chunks import PrivateChunks

from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import StrategyBound, ask_chunks, ask_share
from cloakgp.privacy.grid import Sensitivity
from cloakgp.privacy.noise import GAUSSIAN, LAPLACE
from cloakgp.privacy.noise import gaussian as gaussian_noise
from cloakgp.privacy.noise import laplace as laplace_noise
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.spending import counted_by
from cloakgp.privacy.tally import tallied

BOUNDS = OutputBounds(-3.3, 7.1)
BUDGET = {"epsilon": 1.3, "delta": 1e-4}
ROWS = 9


def waves(X):
    """Three questions, about rows whose only input is their number."""
    return np.vstack([np.sin(X[:, 0]), 1e-5 * X[:, 0], np.cos(2 * X[:, 0])])


def bound_of(noise, *, count=ROWS):
    lengths = noise.lengths(waves(np.arange(ROWS, dtype=float)[:, None]))
    return StrategyBound(
        answers=3, longest=float(lengths.max()), chunk_rows=count, count=count, noise=noise
    )


@pytest.fixture
def drawn(monkeypatch):
    """What noise was to be added to, with scale, sensitivity and sharers; no noise is."""
    found = []

    def add(integers, *, scale, sensitivity, sharers, hide):
        found.append((integers.copy(), scale, sensitivity, sharers))
        return hide(integers)

    monkeypatch.setattr(laplace_noise, "add_share_of_laplace", add)
    monkeypatch.setattr(gaussian_noise, "add_share_of_gaussian", add)
    return found


class OffsetChunks(PrivateChunks):
    """Rows that begin elsewhere than at the first of the table."""

    def over_rows(self, work, *, what, labels=None):
        def moved(chunk, entries):
            return work(replace(chunk, X=chunk.X + self.first), entries)

        return super().over_rows(moved, what=what, labels=labels)


def site(outputs, *, first, cuts=()):
    rows = OffsetChunks(outputs, cuts=cuts)
    object.__setattr__(rows, "first", float(first))
    return rows


def share(rows, *, noise=GAUSSIAN, count, question=BOUNDS, hide=lambda hidden: hidden, **changed):
    settings = {"bound": bound_of(noise), "question": question, **BUDGET, "sharers": 2, **changed}
    return ask_share(rows, waves, count=count, hide=hide, **settings)


def integers_of_sites(outputs, drawn, *, noise, parts=(4, 5), cuts=((2,), (1, 3))):
    """The sum of all sites' integers, its stated sensitivity, and its scale."""
    drawn.clear()
    first = 0
    for size, cut in zip(parts, cuts, strict=True):
        share(site(outputs[first : first + size], first=first, cuts=cut), noise=noise, count=size)
        first += size
    [(_, scale, sensitivity, _), *_] = drawn
    assert all(each[1:3] == (scale, sensitivity) for each in drawn)
    return sum(each[0] for each in drawn), sensitivity, scale


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_sites_have_the_sums_and_the_noise_of_one_table(noise, drawn, monkeypatch):
    outputs = np.linspace(-4.0, 8.0, ROWS)
    total, sensitivity, scale = integers_of_sites(outputs, drawn, noise=noise)
    whole = []

    def add(_, integers, *, scale, sensitivity, **__):
        whole.append((integers.copy(), sensitivity, scale))
        return integers

    monkeypatch.setattr(type(noise), "add", add)
    ask_chunks(PrivateChunks(outputs), waves, bound=bound_of(noise), question=BOUNDS, **BUDGET)
    [(integers, told, tau)] = whole
    assert (sensitivity, scale) == (told, tau)
    # Every chunk is rounded on its own: five of them here.
    assert np.abs(total - integers).max() <= 5


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_no_output_moves_the_sum_of_all_sites_beyond_the_sensitivity(noise, drawn):
    base = np.where(np.arange(ROWS) % 2, *(BOUNDS.lo, BOUNDS.hi))
    total, sensitivity, _ = integers_of_sites(base, drawn, noise=noise)
    moves = []
    for row in range(ROWS):
        for value in (BOUNDS.lo, BOUNDS.hi, 1e300, -1e300, 1 / 3):
            outputs = base.copy()
            outputs[row] = value
            moved, told, _ = integers_of_sites(outputs, drawn, noise=noise)
            assert told == sensitivity
            steps = [int(each) for each in moved - total]
            moves.append(
                sum(map(abs, steps)) if noise is LAPLACE else sum(one * one for one in steps) ** 0.5
            )
    assert sensitivity * (1 - 1e-6) < max(moves) <= sensitivity


def test_a_sensitivity_of_half_would_be_found(drawn, monkeypatch):
    """The mutation that the test above is for."""
    honest = Sensitivity.of_one_row

    def halved(longest, **settings):
        found = honest(longest, **settings)
        return replace(found, distance=found.distance / 2)

    monkeypatch.setattr(Sensitivity, "of_one_row", halved)
    with pytest.raises(AssertionError):
        test_no_output_moves_the_sum_of_all_sites_beyond_the_sensitivity(GAUSSIAN, drawn)


def test_a_site_without_a_neighbours_row_sends_the_same(drawn):
    outputs = np.zeros(5)
    share(site(outputs, first=4), count=5)
    share(site(outputs, first=4), count=5)
    assert np.array_equal(drawn[0][0], drawn[1][0])


def test_labels_of_sites_are_asked_alike(drawn):
    share(
        site(np.array(["a", "b", "a"]), first=0),
        count=3,
        question=Classes(("a", "b")),
    )
    assert len(drawn) == 1


class Refusing:
    def open_charge(self, _):
        return self

    def hold(self, _):
        raise AssertionError("nothing may be counted")

    reserve = drawn = hold

    def close(self, *, failed):
        assert failed


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"count": 3}, ValueError, "changed"),
        ({"count": 5}, ValueError, "changed"),
        ({"bound": replace(bound_of(GAUSSIAN), longest=0.5)}, ValueError, "changed"),
        ({"bound": replace(bound_of(GAUSSIAN), chunk_rows=2)}, ValueError, "changed"),
        # Whose rows they are is not told.
        ({"bound": replace(bound_of(GAUSSIAN), group_rows=2)}, TypeError, "number of a group"),
        ({"bound": replace(bound_of(GAUSSIAN), places=2)}, ValueError, "at several"),
        ({"bound": replace(bound_of(GAUSSIAN), group_rows=2, places=0)}, ValueError, "at several"),
        # Entries of one row move answers further together than each.
        ({"bound": replace(bound_of(GAUSSIAN), together=2)}, ValueError, "changed"),
        ({"bound": replace(bound_of(GAUSSIAN), answers=2)}, TypeError, "float64"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"question": OutputBounds(2.0, 1.0)}, ValueError, "bounds"),
    ],
)
def test_what_is_not_as_promised_is_refused_before_anything_is_counted(changed, error, message):
    rows = site(np.zeros(4), first=0)
    with (
        tallied() as tally,
        counted_by(Refusing()),
        pytest.raises(error, match=message),
    ):
        share(rows, **{"count": 4, **changed})
    assert not tally


def test_a_missing_output_is_refused_without_being_shown(drawn):
    with pytest.raises(ValueError, match="NaN") as caught:
        share(site(np.array([1.0, np.nan, 3.25, 2.0]), first=0), count=4)
    assert "3.25" not in str(caught.value)
    assert not drawn


def test_a_share_is_charged_as_the_whole_noise():
    """What the ledger counts is what all shares keep, and no less for there being several."""
    costs = []
    for sharers in (1, 4):
        with tallied() as tally:
            share(site(np.zeros(4), first=0), count=4, sharers=sharers)
        costs.append([(each.mu, each.answers) for each in tally])
    assert costs[0] == costs[1]
    [(mu, answers)] = costs[0]
    assert answers == 3
    assert 0 < mu < 1


def test_the_answers_of_several_custodians_state_all_of_the_noise():
    class Elsewhere:
        noise_ratio, places = 1.25, 1

        def noisy_sums(self, _, **__):
            return np.arange(3, dtype=np.int64)

    bound = bound_of(GAUSSIAN)
    found = ask_chunks(Elsewhere(), waves, bound=bound, question=BOUNDS, **BUDGET)
    alone = ask_chunks(PrivateChunks(np.zeros(ROWS)), waves, bound=bound, question=BOUNDS, **BUDGET)
    assert found.noise_sd == 1.25 * alone.noise_sd
    assert found.guarantee == alone.guarantee
    with pytest.raises(ValueError, match="insecure_seed"):
        ask_chunks(Elsewhere(), waves, bound=bound, question=BOUNDS, **BUDGET, insecure_seed=1)


def test_noise_is_for_all_custodians_at_whom_a_group_may_be():
    class Elsewhere:
        noise_ratio, places = 1.0, 2

        def noisy_sums(self, _, *, bound, **__):
            # Nobody knows in how many chunks their rows are: each row in its own.
            assert (bound.places, bound.chunks) == (2, ROWS)
            return np.arange(3, dtype=np.int64)

    bound = replace(bound_of(GAUSSIAN), group_rows=3)
    with pytest.raises(ValueError, match="more custodians than noise is for"):
        ask_chunks(Elsewhere(), waves, bound=bound, question=BOUNDS, **BUDGET)
    found = ask_chunks(
        Elsewhere(), waves, bound=replace(bound, places=2), question=BOUNDS, **BUDGET
    )
    grouped = PrivateChunks(np.zeros(ROWS), groups=np.arange(ROWS))
    alone = ask_chunks(grouped, waves, bound=bound, question=BOUNDS, **BUDGET)
    assert found.noise_sd == pytest.approx(2 * alone.noise_sd, rel=1e-9)
    assert found.guarantee.mu == pytest.approx(alone.guarantee.mu, rel=1e-12)


# Groups, whose rows are at two sites.

# Of a site four rows, and of another five; the group of many is at both, the last at one.
OWNERS = ((0, 0, 1, 2), (0, 1, 0, 0, 3))
LENGTHS = ((1.0, 1.0, 1.0, 1.0), (0.5, 1.0, 0.5, 1.0, 2.0))


def alike(X):
    """Two questions about rows whose columns all point the same way, as a group moves most by."""
    lengths = np.concatenate(LENGTHS)[X[:, 0].astype(int)]
    return np.vstack([0.6 * lengths, 0.8 * lengths])


def bound_of_groups(noise, **changed):
    # Of each site alone: two rows of length 1, three of 0.5, 0.5 and 1, or one of 2.
    longest = {GAUSSIAN: 2.0, LAPLACE: 2.8}[noise]
    bound = StrategyBound(
        answers=2,
        longest=longest,
        chunk_rows=ROWS,
        count=ROWS,
        group_rows=3,
        chunks=ROWS,
        noise=noise,
        places=2,
    )
    return replace(bound, **changed)


def site_of_groups(outputs, which, *, cuts=(), renumbered=0):
    first = len(OWNERS[0]) * which
    size = len(OWNERS[which])
    rows = OffsetChunks(
        outputs[first : first + size], cuts=cuts, groups=np.array(OWNERS[which]) + renumbered
    )
    object.__setattr__(rows, "first", float(first))
    return rows, size


def integers_of_groups(outputs, drawn, *, noise, renumbered=7, **changed):
    """As above, of groups of which each site has its own numbers."""
    drawn.clear()
    for which, cuts in enumerate([(1,), (1, 3)]):
        rows, size = site_of_groups(outputs, which, cuts=cuts, renumbered=which * renumbered)
        ask_share(
            rows,
            alike,
            bound=bound_of_groups(noise, **changed),
            question=BOUNDS,
            **BUDGET,
            count=size,
            sharers=2,
            hide=lambda hidden: hidden,
        )
    [(_, scale, sensitivity, _), other] = drawn
    assert other[1:3] == (scale, sensitivity)
    return drawn[0][0] + drawn[1][0], sensitivity


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_no_group_moves_the_sum_of_all_sites_beyond_the_sensitivity(noise, drawn):
    """Whatever all rows of a group were and become, at both of its sites."""
    owners = np.concatenate(OWNERS)
    rng, moves = np.random.default_rng(0), []
    extremes = (BOUNDS.lo, BOUNDS.hi, 1e300, -1e300, 1 / 3)
    for group in range(4):
        rows = np.flatnonzero(owners == group)
        for trial in range(12):
            before = rng.uniform(BOUNDS.lo, BOUNDS.hi, size=ROWS)
            after = before.copy()
            if trial == 0:
                before[rows], after[rows] = BOUNDS.lo, BOUNDS.hi
            else:
                before[rows] = rng.choice(extremes, size=len(rows))
                after[rows] = rng.choice(extremes, size=len(rows))
            one, told = integers_of_groups(before, drawn, noise=noise)
            other, _ = integers_of_groups(after, drawn, noise=noise)
            steps = [int(each) for each in one - other]
            moved = sum(map(abs, steps))
            moves.append(moved if noise is LAPLACE else sum(each**2 for each in steps) ** 0.5)
    assert told * (1 - 1e-6) < max(moves) <= told


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_noise_for_one_site_alone_would_be_found(noise, drawn):
    """The mutation: a promise that nobody is at two sites, where somebody is."""
    owners = np.concatenate(OWNERS)
    lo, hi = (np.where(owners == 0, end, 0.0) for end in (BOUNDS.lo, BOUNDS.hi))
    one, told = integers_of_groups(lo, drawn, noise=noise, places=1)
    other, _ = integers_of_groups(hi, drawn, noise=noise, places=1)
    steps = [int(each) for each in one - other]
    moved = sum(map(abs, steps)) if noise is LAPLACE else sum(each**2 for each in steps) ** 0.5
    assert moved > 1.9 * told


@pytest.mark.parametrize(
    "changed",
    [{"group_rows": 2}, {"longest": 1.9}, {"chunks": 1}],
)
def test_a_site_verifies_its_own_groups(changed):
    """Three rows of one group, in two chunks, of lengths that add up to 2."""
    rows, size = site_of_groups(np.zeros(ROWS), 1, cuts=(1, 3))
    with (
        tallied() as tally,
        counted_by(Refusing()),
        pytest.raises(ValueError, match="changed"),
    ):
        ask_share(
            rows,
            alike,
            bound=bound_of_groups(GAUSSIAN, **changed),
            question=BOUNDS,
            **BUDGET,
            count=size,
            sharers=2,
            hide=lambda hidden: hidden,
        )
    assert not tally


# Rows that have two entries each, which change together: their columns point the same way.


def entries_of_sites(outputs, drawn, *, noise, together=2):
    drawn.clear()
    longest = noise.lengths_together(alike(np.arange(8.0)[:, None]), together=together).max()
    bound = StrategyBound(
        answers=2,
        longest=float(longest),
        chunk_rows=8,
        count=8,
        noise=noise,
        together=together,
    )
    for which, cuts in enumerate([(2,), ()]):
        ask_share(
            site(outputs[4 * which : 4 * which + 4], first=4 * which, cuts=cuts),
            alike,
            bound=bound,
            question=BOUNDS,
            **BUDGET,
            count=4,
            sharers=2,
            hide=lambda hidden: hidden,
        )
    return drawn[0][0] + drawn[1][0], drawn[0][2]


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("together", [2, 1])
def test_no_row_of_two_entries_moves_the_sum_beyond_the_sensitivity(noise, together, drawn):
    """And with each entry on its own, the mutation, one does."""
    moves = []
    for row in range(4):
        for ends in product((BOUNDS.lo, BOUNDS.hi, 1e300, 1 / 3), repeat=4):
            before, after = np.full(8, 0.5), np.full(8, 0.5)
            before[2 * row : 2 * row + 2], after[2 * row : 2 * row + 2] = ends[:2], ends[2:]
            one, told = entries_of_sites(before, drawn, noise=noise, together=together)
            other, _ = entries_of_sites(after, drawn, noise=noise, together=together)
            steps = [int(each) for each in one - other]
            moved = sum(map(abs, steps))
            moves.append(moved if noise is LAPLACE else sum(each**2 for each in steps) ** 0.5)
    if together == 2:
        assert told * (1 - 1e-6) < max(moves) <= told
    else:
        assert max(moves) > 1.9 * told
