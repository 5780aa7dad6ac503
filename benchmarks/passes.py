"""Cost of a pass: CPU seconds of what it does to a chunk, over those of the plain pass.

All work is done to the same rows in the same process, in turn: a machine is slow or busy for both,
so that ratios say what seconds do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median

import numpy as np

from benchmarks.runners import plain
from benchmarks.tables import Table
from cloakgp.design.streaming.bayes import Stepping, StrategyState
from cloakgp.design.streaming.l1_ball import _Parting
from cloakgp.design.streaming.rules import PartitionRule
from cloakgp.design.streaming.sums import _Asking
from cloakgp.models import SparsePrior
from cloakgp.models.defaults import default_kernel
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.utils.passes import Chunk
from cloakgp.utils.threads import suitable_threads

ROWS, INPUTS, INDUCING, QUERIES = 8192, 4, 200, 200
REPEATS = 5
PLAIN = "the plain pass"
FEATURES = "features and noise of rows"
ASKING = "columns that are asked (`bayes`)"
PARTITION = "a step of a partition (Laplace noise)"
PARTING = "a step of a partition that bounds, too"
STEP = "a step that designs and certifies"


def work_on_chunks() -> Mapping[str, Callable[[Chunk], object]]:
    """Return what passes do to a chunk of rows, by name, the plain pass first."""
    rng = np.random.default_rng(1)
    queries = rng.uniform(size=(QUERIES, INPUTS))
    prior = SparsePrior(
        kernel=default_kernel(queries, width=10.0),
        noise_variance=1.0,
        mean=0.0,
        inducing=rng.uniform(size=(INDUCING, INPUTS)),
    )
    lengthscale = prior.kernel.k2.k2.length_scale
    matrix = rng.normal(size=(INDUCING, INDUCING))
    sums = matrix / INDUCING
    state = StrategyState(
        features=sums, noise=sums @ sums.T, queries=prior.features(queries), noise_sd=30.0
    )
    rule, state = state.rule()
    partition = PartitionRule(matrix=matrix, curvatures=np.ones(INDUCING))
    columns = RuleColumns(model=prior, rule=rule)
    duals = state.duals(gap=1e-3)
    return {
        PLAIN: lambda chunk: plain.pass_over(chunk.X, prior.inducing, lengthscale=lengthscale),
        FEATURES: lambda chunk: prior.features_and_noise(chunk.X),
        ASKING: lambda chunk: columns(chunk.X),
        PARTITION: _Asking(model=prior, rule=partition),
        PARTING: _Parting(
            model=prior,
            rule=partition,
            bounding=Stepping(model=prior, rule=rule, duals=duals),
        ),
        STEP: Stepping(model=prior, rule=rule, duals=duals),
    }


def measured_ratios(*, repeats: int = REPEATS) -> dict[str, float]:
    """Return CPU seconds over those of the plain pass, each the least of some runs.

    Parameters
    ----------
    repeats : int
    """
    chunk = Chunk(number=0, X=np.random.default_rng(0).uniform(size=(ROWS, INPUTS)))
    best = dict.fromkeys(work := work_on_chunks(), np.inf)
    with suitable_threads(0.0):
        # In turn, so that all meet the same machine.
        for _ in range(repeats):
            for name, each in work.items():
                began = time.process_time()
                each(chunk)
                best[name] = min(best[name], time.process_time() - began)
    return {name: seconds / best[PLAIN] for name, seconds in best.items()}


def measure_all(*, runs: int) -> Iterator[dict[str, float]]:
    """Yield the ratios of every run."""
    for _ in range(runs):
        yield measured_ratios()


def report(found: list[dict[str, float]]) -> Table:
    """Lay out the median over runs, and the least and the most.

    Parameters
    ----------
    found : list of mapping
        Of `measure_all`.
    """
    rows = []
    for name in found[0]:
        ratios = [run[name] for run in found]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append({"": name, "median": f"{median(ratios):.2f}", "of all runs": spread})
    title = (
        f"CPU time over that of the plain pass: {INDUCING} inducing inputs, questions and query "
        f"points, {INPUTS} inputs; {len(found)} runs, one thread"
    )
    return Table(title, ("", "median", "of all runs"), rows)
