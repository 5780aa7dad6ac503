"""CPU seconds of what passes do to a chunk, beside the same chunk in plain NumPy, in one run.

A machine is slow or busy for both. `MOST` is half as much again as was measured when it was set
(`docs/many-rows.md`): whoever makes a pass that much dearer meets it here.
"""

from __future__ import annotations

import pytest

from benchmarks import passes

# Over the plain pass.
MOST = {
    passes.FEATURES: 0.9,
    passes.STEP: 4.2,
    passes.PARTITION: 1.9,
    passes.PARTING: 4.8,
    passes.ASKING: 2.1,
}


@pytest.fixture(scope="module")
def ratios():
    return passes.measured_ratios()


@pytest.mark.parametrize("name", MOST)
def test_a_pass_costs_no_more_than_it_did(name, ratios):
    assert ratios[name] <= MOST[name]


def test_medians_over_runs_are_laid_out_with_their_spread():
    runs = [{passes.PLAIN: 1.0, passes.STEP: ratio} for ratio in (2.0, 4.0, 3.0)]
    table = passes.report(runs)
    assert table.rows[1] == {"": passes.STEP, "median": "3.00", "of all runs": "2.00 to 4.00"}
    assert "3 runs" in table.title
