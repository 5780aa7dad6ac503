"""Histograms of public inputs with noisy sums, and Gaussian processes fitted to them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cloakgp.estimators.baselines import DPIntegralHistogramRegressor
from cloakgp.estimators.baselines.undesigned import release_of_answers
from cloakgp.fitting.defaults import choose_prior, choose_query
from cloakgp.models import kmeans_centres
from cloakgp.privacy import Answers, Guarantee
from cloakgp.release import Hyperprior
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.rivals.base import Predictions, Rival, ask, mapped_inputs, noises_of, shrunk
from experiments.rivals.trees import Partition
from experiments.ways import Setting

CELLS = (1, 2, 3, 4, 6, 9, 14, 20, 30)
# Learned processes take longest.
LEARNED_CELLS = (6, 14)
# Bins along each input, if their product is not beyond the other.
BINS, MOST_BINS = (2, 3, 5, 8, 14), 130


@lru_cache(maxsize=64)
def cells_around_centres(split: Split, *, count: int, ranked: bool) -> Partition:
    """Return the cells of k-means centres of public inputs, mapped to [−1, 1]."""
    fitted, test = mapped_inputs(split, ranked=ranked)
    centres, _ = kmeans_centres(fitted, count=count)
    return Partition(_nearest(fitted, centres), _nearest(test, centres), len(centres))


def _nearest(X: Array, centres: Array) -> NDArray[np.int64]:
    nearest: NDArray[np.int64] = cdist(X, centres, "sqeuclidean").argmin(axis=1)
    return nearest


def noisy_histogram(split: Split, setting: Setting) -> Predictions:
    """Predict noisy means over cells.

    Neighbours: one output changes. Mechanism: `experiments.rivals.base.ask` on one question a
    cell; every row is in one. Tuned: how many cells, around k-means centres of inputs by range or
    by rank; Laplace noise at ε or Gaussian at (ε, δ); means as they are or shrunk. In one dimension
    cells by rank are bins of as many rows.
    """
    found = {}
    for count, ranked in product(CELLS, (False, True)):
        cells = cells_around_centres(split, count=count, ranked=ranked)
        rows = np.maximum(np.bincount(cells.fitted, minlength=cells.leaves), 1)
        for noise in noises_of(setting):
            asked = ask(
                cells.indicators, split.outputs, bounds=split.bounds, setting=setting, noise=noise
            )
            means = split.bounds.clip(asked.values / rows + asked.centre)
            evaluated = {
                "as they are": means,
                "shrunk": shrunk(means, noise_sd=asked.noise_sd / rows, bounds=split.bounds),
            }
            for kind, one in evaluated.items():
                label = f"{count} cells by {'rank' if ranked else 'range'}, {noise}, {kind}"
                found[label] = one[cells.test]
    return found


def process_on_cells(split: Split, setting: Setting) -> Predictions:
    """Condition the default Gaussian process on noisy sums over cells.

    What `cloakgp.DPGPRegressor` would be with Laplace noise, which needs no δ, and cells in the
    place of designed questions and stages.

    Neighbours: one output changes. Mechanism: as for `noisy_histogram`; what follows is
    post-processing, and takes Laplace noise for Gaussian of its variance. Tuned: how many cells;
    Laplace noise at ε or Gaussian at (ε, δ); the prior as declared, or hyperparameters learned.
    """
    prior = choose_prior(split.X, bounds=split.bounds)
    found = {}
    for count, noise in product(CELLS[1:], noises_of(setting)):
        cells = cells_around_centres(split, count=count, ranked=False)
        asked = ask(
            cells.indicators, split.outputs, bounds=split.bounds, setting=setting, noise=noise
        )
        answers = Answers(
            values=asked.values[:, None],
            noise_sd=asked.noise_sd,
            # Nothing is published here.
            guarantee=Guarantee(epsilon=setting.epsilon, delta=setting.delta, mu=0.0),
            noise=noise,
        )
        declared = release_of_answers(
            split.X,
            strategy=cells.indicators,
            answers=answers,
            bounds=split.bounds,
            prior=prior,
            query=choose_query(split.X),
        )
        releases = {"declared": declared}
        if count in LEARNED_CELLS:
            releases["learned"] = declared.learn(Hyperprior())
        for kind, release in releases.items():
            predicted = split.bounds.clip(np.asarray(release.predict(split.X_test)))
            found[f"{count} cells, {noise}, {kind}"] = predicted
    return found


def process_on_integrals(split: Split, setting: Setting) -> Predictions:
    """Condition a Gaussian process on noisy sums over a grid, through integrals of its kernel.

    Neighbours: one output changes. Mechanism:
    `cloakgp.estimators.baselines.DPIntegralHistogramRegressor`. Tuned: bins along each input;
    Laplace noise at ε or Gaussian at (ε, δ); the prior as declared, or hyperparameters learned.
    """
    learnings: tuple[Literal["map"] | None, ...] = ("map", None)
    found = {}
    for bins, noise, learn in product(BINS, noises_of(setting), learnings):
        if bins ** split.X.shape[1] > MOST_BINS:
            continue
        model = DPIntegralHistogramRegressor(
            bins=bins,
            bounds=(split.bounds.lo, split.bounds.hi),
            epsilon=setting.epsilon,
            delta=setting.delta,
            noise=noise,
            learn=learn,
            insecure_seed=setting.insecure_seed,
        )
        predicted = model.fit(split.X, split.outputs).predict(split.X_test)
        label = f"{bins} bins an input, {noise}, {'learned' if learn else 'declared'}"
        found[label] = split.bounds.clip(predicted)
    return found


HISTOGRAM = Rival("histogram", "ε or (ε, δ)", noisy_histogram)
PROCESS_ON_CELLS = Rival("default GP on a histogram", "ε or (ε, δ)", process_on_cells)
PROCESS_ON_INTEGRALS = Rival("integral GP on a histogram", "ε or (ε, δ)", process_on_integrals)
