"""CPU seconds of what passes do to a chunk, beside the same chunk in plain NumPy, in one run.

A machine is slow or busy for both. `MOST` is half as much again as was measured when it was set
(`docs/many-rows.md`): whoever makes a pass that much dearer meets it here.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.runners import plain
from cloakgp.design.streaming.bayes import Stepping, StrategyState
from cloakgp.design.streaming.binning import Partition
from cloakgp.design.streaming.l1_ball import _Parting
from cloakgp.design.streaming.rules import PartitionRule
from cloakgp.design.streaming.sums import _Asking
from cloakgp.models import SparsePrior
from cloakgp.models.defaults import default_kernel
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.utils.passes import Chunk
from cloakgp.utils.threads import suitable_threads

ROWS, INDUCING, REPEATS = 8192, 200, 5
# Over the plain pass.
MOST = {"features": 0.9, "step": 4.2, "partition": 1.9, "parting": 4.8, "asking": 2.1}


@pytest.fixture(scope="module")
def ratios():
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(ROWS, 4)), rng.uniform(size=(INDUCING, 4))
    prior = SparsePrior(
        kernel=default_kernel(X, width=10.0),
        noise_variance=1.0,
        mean=0.0,
        inducing=rng.uniform(size=(INDUCING, 4)),
    )
    lengthscale = prior.kernel.k2.k2.length_scale
    matrix = rng.normal(size=(INDUCING, INDUCING))
    sums = matrix / INDUCING
    state = StrategyState(
        features=sums, noise=sums @ sums.T, queries=prior.features(queries), noise_sd=30.0
    )
    rule, state = state.rule()
    partition = PartitionRule(matrix=matrix, curvatures=np.ones(INDUCING))
    cells = Partition(centres=queries, units=np.ones(4))
    columns = RuleColumns(model=prior, rule=rule)
    duals = state.duals(gap=1e-3)
    work = {
        "plain": lambda chunk: plain.pass_over(chunk.X, prior.inducing, lengthscale=lengthscale),
        "features": lambda chunk: prior.features_and_noise(chunk.X),
        "step": Stepping(model=prior, rule=rule, cells=cells, duals=duals),
        "partition": _Asking(model=prior, rule=partition, cells=cells),
        "parting": _Parting(
            model=prior,
            rule=partition,
            cells=cells,
            bounding=Stepping(model=prior, rule=rule, cells=None, duals=duals),
        ),
        "asking": lambda chunk: columns(chunk.X),
    }
    best = dict.fromkeys(work, np.inf)
    with suitable_threads(0.0):
        # In turn, so that all meet the same machine.
        for _ in range(REPEATS):
            for name, each in work.items():
                began = time.process_time()
                each(Chunk(number=0, X=X))
                best[name] = min(best[name], time.process_time() - began)
    found = {name: seconds / best["plain"] for name, seconds in best.items()}
    # Shown by pytest -s.
    print({name: round(ratio, 2) for name, ratio in found.items()})  # noqa: T201
    return found


@pytest.mark.parametrize("name", MOST)
def test_a_pass_costs_no_more_than_it_did(name, ratios):
    assert ratios[name] <= MOST[name]
