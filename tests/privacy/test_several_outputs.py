"""Several outputs of a person: the joint guarantee over all neighbours, in output units."""

import math

import numpy as np
import pandas as pd
import pytest
from neighbours import ACHIEVED_SHARE
from unit_neighbours import spent_over_units

from cloakgp.privacy import OutputBounds
from cloakgp.privacy.ask import ask
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns

PAIRS = [(0.0, 50.0), (100.0, 104.0), (-1e4, 1e4)]


def spent(strategy, y, *, groups=None, together=True):
    """What asking all outputs spends between neighbours, moved in their own units."""
    columns = OutputColumns.checked(PAIRS)
    units = columns.units(groups, rows=len(y))
    entries = [np.flatnonzero(units == unit) for unit in np.unique(units)]

    def run(flat):
        values = columns.standardised(flat.reshape(y.shape), rows=len(y))
        answers = ask(
            strategy,
            values,
            question=OutputBounds.checked((STANDARD_BOUNDS.lo, STANDARD_BOUNDS.hi)),
            epsilon=1.0,
            delta=1e-5,
            groups=units if together else None,
        )
        return answers.guarantee.mu

    bounds = np.tile(PAIRS, (len(y), 1))
    return spent_over_units(run, y.ravel(), members=entries, bounds=bounds)


@pytest.mark.parametrize("groups", [None, ["a", "b", "a"]])
def test_no_person_spends_more_than_claimed_and_one_spends_nearly_all(groups):
    rng = np.random.default_rng(0)
    strategy = rng.normal(size=(4, 9))
    y = np.column_stack([rng.uniform(lo - 1, hi + 1, size=3) for lo, hi in PAIRS])
    reached, claimed = spent(strategy, y, groups=groups)
    assert ACHIEVED_SHARE * claimed <= reached <= claimed


def test_entries_alone_would_spend_more():
    """The brute force can fail: a person has more to lose than one output."""
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.uniform(lo, hi, size=3) for lo, hi in PAIRS])
    reached, claimed = spent(rng.normal(size=(4, 9)), y, together=False)
    assert reached > 1.1 * claimed


def test_standardised_values_never_leave_their_range():
    columns = OutputColumns.checked([(0.1, 0.3), (-1e9, 1e9 + 1)])
    y = [[0.1, -1e9], [0.3, 1e300], [-5.0, 0.5]]
    values = columns.standardised(y, rows=3)
    assert np.abs(values).max() <= 0.5
    np.testing.assert_allclose(
        values.reshape(3, 2), [[-0.5, -0.5], [0.5, 0.5], [-0.5, 0]], atol=1e-9
    )


@pytest.mark.parametrize("bounds", [None, (0, 1), [], [(0, 1), (1, 0)], [(0, 1), (0, np.inf)]])
def test_bounds_must_be_pairs(bounds):
    with pytest.raises(ValueError, match="bound"):
        OutputColumns.checked(bounds)


@pytest.mark.parametrize(
    "y", [None, [1.0, 77123.5], [[1.0, 2.0, 77123.5]], [[1.0], [77123.5, 2.0]], [["77123.5x", 1.0]]]
)
def test_no_message_shows_an_output(y):
    with pytest.raises(ValueError, match="y ") as caught:
        OutputColumns.checked([(0, 1), (0, 1)]).standardised(y, rows=1)
    assert "77123" not in str(caught.value)
    assert caught.value.__cause__ is None


def few_bits(rng, *, kind, text):
    """Rows of few bits, and a person's whose second output is text or the same number."""
    rows = [[kind(one) for one in row] for row in rng.uniform(0, 1, size=(300, 2))]
    rows[0] = [kind(0.3), "0.7" if text else kind(0.7)]
    return rows


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize(
    "make",
    [list, tuple, lambda rows: [tuple(row) for row in rows], pd.DataFrame],
    ids=["list", "tuple", "rows", "frame"],
)
def test_an_entry_of_text_moves_the_answers_by_its_persons_outputs_alone(monkeypatch, kind, make):
    columns = OutputColumns.checked([(0.0, 1.0), (0.0, 1.0)])
    asked = []

    def record(integers, *, scale, sensitivity):  # noqa: ARG001
        asked.append((integers, sensitivity))
        return integers

    monkeypatch.setattr("cloakgp.privacy.noise.gaussian.add_discrete_gaussian", record)
    for text in (False, True):
        rows = make(few_bits(np.random.default_rng(3), kind=kind, text=text))
        values = columns.standardised(rows, rows=300)
        # All entries in one question, and the person's outputs as far apart as they can be.
        values[:2] = [0.5, 0.5] if text else [-0.5, -0.5]
        ask(
            np.ones((1, 600)),
            values,
            question=OutputBounds.checked((STANDARD_BOUNDS.lo, STANDARD_BOUNDS.hi)),
            epsilon=1.0,
            delta=1e-5,
            groups=columns.units(None, rows=300),
        )
    (one, sensitivity), (other, _) = asked
    moved = math.sqrt(sum((int(a) - int(b)) ** 2 for a, b in zip(one, other, strict=True)))
    assert 0.99 < moved / sensitivity <= 1
