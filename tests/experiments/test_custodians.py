"""Several custodians: what is drawn, and a table of errors by the way of fitting."""

import numpy as np
import pytest

from experiments import progress
from experiments.custodians import ANYWHERE, WAYS, Custodians, Ward, curve, ways_of


def ward(**settings):
    rng = np.random.default_rng(0)
    given = {"epsilon": 1.0, "delta": 0.0, "noise": "laplace", **settings}
    return Ward.drawn(rng, sites=5, rows=20, **given)


def test_sites_have_other_rows_of_one_curve():
    drawn = ward()
    assert [len(X) for X in drawn.X] == [20] * 5
    off = np.concatenate(drawn.outputs) - curve(np.concatenate(drawn.X))
    assert off.std() == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_all_ways_have_the_same_guarantee(noise):
    drawn = ward(noise=noise, delta=0.0 if noise == "laplace" else 1e-6)
    releases = {way: release_of(drawn) for way, release_of in WAYS.items()}
    assert {round(one.guarantee.epsilon, 4) for one in releases.values()} == {1.0}
    assert {way: one.n_rows for way, one in releases.items()} == {
        "one table": 100,
        "custodians, none of whom collude": 100,
        "custodians, two of whom may collude": 100,
        "the same, and 2 have dropped out": 60,
        "a release of each, combined": 100,
    }
    honest = [one.custodians.honest for one in releases.values() if one.custodians]
    assert honest == [5, 3, 1]


def test_persons_with_several_rows_are_protected_in_all_ways():
    drawn = ward(rows_of_person=4)
    releases = {way: release_of(drawn) for way, release_of in ways_of(4).items()}
    assert {round(one.guarantee.epsilon, 4) for one in releases.values()} == {1.0}
    assert all(one.measurements[0].strategy.grouped for one in releases.values())
    where = {way: one.custodians.sites_of_person for way, one in releases.items() if one.custodians}
    assert where.pop(ANYWHERE) == 5
    assert set(where.values()) == {1}


def test_its_small_version_has_a_table():
    experiment = Custodians(**Custodians.small)
    [table] = experiment.tables(experiment.compute(progress.quietly))
    assert table.row_count == len(WAYS)
