"""Several outputs of a person: the joint guarantee over all neighbours, in output units."""

import numpy as np
import pytest
from neighbours import ACHIEVED_SHARE
from unit_neighbours import spent_over_units

from cloakgp.privacy.measure import measure
from cloakgp.privacy.several_outputs import STANDARD_BOUNDS, OutputColumns

PAIRS = [(0.0, 50.0), (100.0, 104.0), (-1e4, 1e4)]


def spent(strategy, y, *, groups=None, together=True):
    """What asking all outputs spends between neighbours, moved in their own units."""
    columns = OutputColumns.checked(PAIRS)
    units = columns.units(groups, rows=len(y))
    entries = [np.flatnonzero(units == unit) for unit in np.unique(units)]

    def run(flat):
        values = columns.standardised(flat.reshape(y.shape), rows=len(y))
        answers = measure(
            strategy,
            values,
            bounds=(STANDARD_BOUNDS.lo, STANDARD_BOUNDS.hi),
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
