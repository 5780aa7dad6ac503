"""A small group that lies apart: what is drawn, and a table of it."""

import numpy as np
import pytest

from experiments import progress
from experiments.small_group import PLACES, SHIFT, Grouped, SmallGroup


@pytest.mark.parametrize("place", PLACES)
def test_a_tenth_of_the_rows_lies_eight_sds_higher(place):
    drawn = Grouped.drawn(np.random.default_rng(0), 20_000, place=place)
    assert drawn.group.mean() == pytest.approx(0.1, abs=0.01)
    apart = drawn.curve - np.sin(drawn.X[:, 0])
    np.testing.assert_allclose(apart, SHIFT * drawn.group, atol=1e-12)


def test_its_small_version_has_a_table():
    experiment = SmallGroup(rows=80, draws=1, epsilon=5.0)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == 4
