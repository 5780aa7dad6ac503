"""Every mechanism, attacked: none spends more than it states, or wastes what it may spend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attacks.checker import check
from attacks.families import ATTACKS, LONG, Table

SEED = 20190417


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """A cluster of threads of this process, for attacks that need one."""
    if not request.getfixturevalue("attack").name.startswith("Dask"):
        yield
        return
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as local,
        distributed.Client(local),
    ):
        yield


def test_names_are_different_and_known():
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
    assert set(names) >= LONG


@pytest.mark.usefixtures("cluster", "designs_once", "few_group_numbers")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=attack.name, marks=[pytest.mark.slow] * (attack.name in LONG))
        for attack in ATTACKS
    ],
)
def test_it_keeps_what_it_states(attack):
    check(attack, Table.of(SEED))


@pytest.mark.slow
@pytest.mark.usefixtures("cluster", "designs_once", "few_group_numbers")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed")
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
@pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_it_keeps_it_on_other_tables(attack, seed):
    check(attack, Table.of(seed, rows=6 + seed))
