"""The private choice on workers: the same choice, and no output sent to anyone."""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from spying_backend import holds, spying

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import cross_validation as heldout
from cloakgp.privacy.cross_validation import deal, each_held_out_errors, held_out_errors
from cloakgp.privacy.selection import select
from cloakgp.privacy.workers import in_order

BACKENDS = ("threading", "loky", "multiprocessing")
ROWS = 40
BOUNDS = (-1.0, 1.0)
SEEDS = range(3)


def candidates():
    inducing = np.linspace(0, 10, 4)[:, None]
    return [
        ExactPrior(kernel=RBF(1.0), noise_variance=0.1, mean=0.0),
        ExactPrior(kernel=ConstantKernel(0.1) * DotProduct(), noise_variance=0.3, mean=0.25),
        SparsePrior(kernel=RBF(3.0), noise_variance=0.2, mean=0.0, inducing=inducing),
    ]


def table(seed=0):
    rng = np.random.default_rng(seed)
    return np.linspace(0, 10, ROWS)[:, None], rng.uniform(-1.2, 1.2, size=ROWS)


def chosen(y, *, priors=None, n_jobs=None, seed=None, **settings):
    return select(
        candidates() if priors is None else priors,
        table()[0],
        y,
        bounds=BOUNDS,
        epsilon=1.0,
        folds=3,
        release_epsilon=1.0,
        release_delta=0.01,
        n_jobs=n_jobs,
        insecure_seed=seed,
        **settings,
    )


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_workers_return_the_very_bits(backend, criterion):
    X, _ = table()
    settings = {"splits": deal(ROWS, folds=3), "answer_sd": 0.7, "criterion": criterion}
    alone = [held_out_errors(prior, X, **settings) for prior in candidates()]
    with parallel_config(backend=backend):
        shared = list(each_held_out_errors(candidates(), X, **settings, n_jobs=2))
    for one, other in zip(alone, shared, strict=True):
        assert one.residual_map.tobytes() == other.residual_map.tobytes()
        assert one.noise_variance.tobytes() == other.noise_variance.tobytes()
        assert one.mean == other.mean


@functools.cache
def alone():
    """Choices without workers, not all the same."""
    found = [chosen(table()[1], seed=seed) for seed in SEEDS]
    assert len({one.index for one in found}) > 1
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_choice_is_the_same_whoever_computed(backend):
    _, y = table()
    with parallel_config(backend=backend):
        assert [chosen(y, seed=seed, n_jobs=2) for seed in SEEDS] == alone()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_choice_is_the_same_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    _, y = table()
    alone = [chosen(y, seed=seed) for seed in range(4)]
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.Client(**cluster), parallel_config(backend="dask"):
        assert [chosen(y, seed=seed) for seed in range(4)] == alone


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_no_output_is_sent_to_a_worker(loss):
    X, y = table()
    clipped = np.clip(y, *BOUNDS)
    seen = np.unique(np.concatenate([y, clipped, y - 0.25, clipped - 0.25, -y, y**2]))
    # The ends of the bounds and what they are apart are public.
    public = [0.0, *BOUNDS, 1.0 - 0.25, -1.0 - 0.25]
    with spying() as sent:
        chosen(y, loss=loss)
    assert len(sent) == 3 * len(candidates())
    for task in sent:
        assert not holds(task, np.setdiff1d(seen, public))
        # The spy would have seen them: it sees the inputs.
        assert holds(task, X[1:])


def test_workers_are_sent_the_same_whatever_the_outputs_are():
    """Of two tables that differ in every output, each task pickles to the same bytes."""
    tasks = []
    for seed in (1, 2):
        with spying() as sent:
            chosen(table(seed)[1])
        tasks.append(sorted(sent))
    assert tasks[0] == tasks[1]


def test_the_spy_sees_what_is_sent():
    _, y = table()
    for leak in (partial(np.sum, y), partial(np.sum, y.tolist()), partial(len, f"{y[3]!r}")):
        with spying() as sent:
            list(in_order([leak]))
        assert [holds(task, y) for task in sent] == [True]


def test_bad_outputs_are_refused_before_anything_is_sent():
    with spying() as sent, pytest.raises(ValueError, match="NaN"):
        chosen(np.full(ROWS, np.nan))
    assert sent == []


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_a_candidate_that_fails_on_a_worker_fails_here(backend):
    _, y = table()
    two_inputs = ExactPrior(kernel=RBF([1.0, 1.0]), noise_variance=0.1, mean=0.0)
    with (
        parallel_config(backend=backend),
        pytest.raises(ValueError, match="same number of dimensions"),
    ):
        chosen(y, priors=[*candidates(), two_inputs], n_jobs=2)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda weights, variance: (np.nan * weights, variance),
        lambda weights, variance: (weights, np.inf * variance),
        lambda weights, variance: (weights, -variance),
    ],
)
def test_what_no_design_gives_is_refused_from_workers(monkeypatch, spoilt):
    honest = heldout._fold
    monkeypatch.setattr(heldout, "_fold", lambda *args, **rest: spoilt(*honest(*args, **rest)))
    with pytest.raises(RuntimeError, match="a worker returned"):
        chosen(table()[1])
