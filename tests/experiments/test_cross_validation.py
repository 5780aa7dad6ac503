"""Cross-validation of releases: what its figures mean, and that workers do not change them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from joblib import parallel_config

from cloakgp.fitting.defaults import choose_prior
from cloakgp.privacy import OutputBounds
from experiments.cloaking import LOGDET_NOISE, TRACE_NOISE, Budget
from experiments.cross_validation import Protocol, cross_validate
from experiments.framework import no_tick, ticked

BUDGET = Budget(bounds=OutputBounds(-1.0, 1.0), epsilon=1.0, delta=0.01)
# Workers can find it: it is no test's own function.
DEFAULT_PRIOR = partial(choose_prior, bounds=BUDGET.bounds)
PROTOCOL = Protocol(folds=4, draws=3, shuffle=True, insecure_seed=2)


def waves(rows=40):
    X = np.linspace(0, 10, rows)[:, None]
    return X, 1.3 * np.sin(X).ravel()


def found(*, budget=BUDGET, n_jobs=None, tick=no_tick, **protocol):
    return cross_validate(
        *waves(),
        prior_for=DEFAULT_PRIOR,
        noises=(LOGDET_NOISE, TRACE_NOISE),
        budget=budget,
        protocol=PROTOCOL if not protocol else Protocol(**protocol),
        posterior_of=(TRACE_NOISE,),
        tick=tick,
        n_jobs=n_jobs,
    )


def every_figure(one):
    kinds = {"raw": one.raw, "posterior": one.posterior, "no privacy": {"": one.no_privacy}}
    return {
        (kind, name): errors.by_fold
        for kind, named in kinds.items()
        for name, errors in named.items()
    }


def test_what_is_found_has_a_row_per_fold_and_a_column_per_draw():
    ticks = []
    one = found(tick=lambda: ticks.append(1))
    assert len(ticks) == PROTOCOL.folds
    assert list(one.raw) == [LOGDET_NOISE.name, TRACE_NOISE.name]
    assert list(one.posterior) == [TRACE_NOISE.name]
    shapes = {name: errors.shape for name, errors in every_figure(one).items()}
    assert shapes.pop(("no privacy", "")) == (4, 1)
    assert set(shapes.values()) == {(4, 3)}


def test_without_privacy_it_is_the_mean_of_the_process_against_clipped_outputs():
    X, y = waves()
    one = found()
    for fold, (train, held_out) in enumerate(PROTOCOL.splits(len(X))):
        prior = DEFAULT_PRIOR(X[train])
        cloaking = prior.cloaking_matrix(X[held_out], X[train])
        mean = prior.mean + cloaking @ (np.clip(y[train], -1, 1) - prior.mean)
        errors = mean - np.clip(y[held_out], -1, 1)
        assert one.no_privacy.by_fold[fold] == pytest.approx(np.sqrt(np.mean(errors**2)))


def test_with_a_vast_budget_noise_is_forgotten():
    vast = found(budget=Budget(bounds=BUDGET.bounds, epsilon=1e6, delta=0.01))
    for raw in vast.raw.values():
        assert raw.by_fold == pytest.approx(np.repeat(vast.no_privacy.by_fold, 3, axis=1), rel=1e-2)


def test_every_draw_has_noise_of_its_own():
    for errors in (*found().raw.values(), *found(folds=4, draws=3).raw.values()):
        assert len(np.unique(errors.by_fold)) == errors.by_fold.size


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_workers_change_no_figure(backend):
    ticks = []
    with parallel_config(backend=backend):
        shared = every_figure(found(n_jobs=2, tick=lambda: ticks.append(1)))
    alone = every_figure(found())
    assert list(shared) == list(alone)
    assert all(np.array_equal(shared[name], alone[name]) for name in alone)
    assert len(ticks) == PROTOCOL.folds


def test_ticks_come_after_so_many_results():
    seen = []
    for number in ticked(range(7), tick=lambda: seen.append("tick"), every=3):
        seen.append(number)
    assert seen == [0, 1, 2, "tick", 3, 4, 5, "tick", 6]
    assert list(ticked(range(3))) == [0, 1, 2]
