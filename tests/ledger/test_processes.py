"""Several processes at once, killed and cut off: the ledger has what their journals have."""

from __future__ import annotations

import pytest

from benchmarks.chaos import wreak


def test_nothing_is_overspent_and_nothing_lost(url, tmp_path):
    found = wreak(url, charges=60, processes=3, folder=tmp_path)
    assert found.attempts >= 60
    assert found.lost == 0
    assert found.drawn > 0
    assert found.spent <= found.limit
    assert found.sound


@pytest.mark.slow
def test_nothing_is_overspent_and_nothing_lost_by_many(url, tmp_path):
    found = wreak(url, charges=2000, processes=4, folder=tmp_path)
    assert found.kills > 0
    assert found.refused > 0
    assert (found.lost, found.sound) == (0, True)
    assert found.spent <= found.limit
