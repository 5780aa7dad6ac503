"""Boosting over random partitions of public inputs: one input at a time, or trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy import OutputBounds
from cloakgp.utils.arrays import Array
from experiments.priors import Split
from experiments.rivals.base import (
    Predictions,
    Rival,
    ask,
    mapped_inputs,
    noises_of,
    part_of,
)
from experiments.rivals.features import halves
from experiments.ways import Setting

# Of boosting one input at a time: rounds over the inputs, what is added of a leaf's mean, and how
# often the same answers are gone through.
ADDITIVE_ROUNDS = (3, 10, 40)
RATES = (0.1, 0.3, 1.0)
PASSES = (1, 5)
ADDITIVE_LEAVES = 3
# Of boosting random trees on clipped residuals.
TREE_ROUNDS = (1, 3, 6)
TREES_A_ROUND = (1, 4)
LEAVES = (3, 6, 12)
DECAYS = (0.5, 0.8)
TREE_RATES = (0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Partition:
    """Leaves that public rows lie in, from 0 on, and how many there are of them."""

    fitted: NDArray[np.int64]
    test: NDArray[np.int64]
    leaves: int

    @property
    def indicators(self) -> Array:
        """One row of ones and zeros for each leaf, shape (leaves, N)."""
        inside: Array = (np.arange(self.leaves)[:, None] == self.fitted).astype(np.float64)
        return inside

    def means(self, sums: Array, *, shrinkage: float = 0.0) -> Array:
        """Return means of leaves from their sums; 0 where there are no rows.

        Parameters
        ----------
        sums : array of shape (leaves,)
        shrinkage : float
            Rows of residual 0 that are thought to be in every leaf besides.
        """
        counts = np.bincount(self.fitted, minlength=self.leaves) + shrinkage
        means: Array = np.divide(sums, counts, out=np.zeros(self.leaves), where=counts > 0)
        return means


def random_partition(
    fitted: Array, test: Array, *, leaves: int, rng: np.random.Generator, column: int | None = None
) -> Partition:
    """Cut a random leaf in two at a random row's input, until there are so many leaves.

    Sees public inputs alone.

    Parameters
    ----------
    fitted, test : arrays of shape (·, D)
    leaves : int
    rng : numpy.random.Generator
    column : int, optional
        The only input to cut; any if not given. Leaves with many rows are likelier to be cut.
    """
    place, test_place = np.zeros(len(fitted), np.int64), np.zeros(len(test), np.int64)
    for new in range(1, leaves):
        pivot = rng.integers(len(fitted))
        cut = rng.integers(fitted.shape[1]) if column is None else column
        inside, test_inside = place == place[pivot], test_place == place[pivot]
        edge = fitted[pivot, cut]
        place[inside & (fitted[:, cut] > edge)] = new
        test_place[test_inside & (test[:, cut] > edge)] = new
    return Partition(place, test_place, leaves)


def additive_boosting(split: Split, setting: Setting) -> Predictions:
    """Boost one input at a time over random cuts: the method of DP-EBM, on public inputs.

    Nori, Caruana, Bu, Shen and Kulkarni 2021, *Accuracy, interpretability, and differential privacy
    via explainable boosting*, algorithm 2, with counts as they are, no budget spent on bins, and
    exact calibration. The fit so far is public, so sums of residuals are sums of outputs less a
    known number: all sums are asked at once, and boosting is post-processing.

    Neighbours: one output changes. Mechanism: `experiments.rivals.base.ask` on the leaves of all
    trees; every row is in one leaf of each. Tuned: rounds, learning rate, how often the same
    answers are gone through, and Laplace noise at ε or Gaussian at (ε, δ).
    """
    fitted, test = mapped_inputs(split, ranked=True)
    rng = np.random.default_rng(0)
    bounds, found = split.bounds, {}
    for rounds in ADDITIVE_ROUNDS:
        trees = [
            random_partition(fitted, test, leaves=ADDITIVE_LEAVES, rng=rng, column=column)
            for _ in range(rounds)
            for column in range(fitted.shape[1])
        ]
        for noise in noises_of(setting):
            asked = ask(
                np.concatenate([tree.indicators for tree in trees]),
                split.outputs,
                bounds=bounds,
                setting=setting,
                noise=noise,
            )
            sums = asked.values.reshape(len(trees), ADDITIVE_LEAVES)
            for rate in RATES:
                known, predicted = np.zeros(len(fitted)), np.zeros(len(test))
                for number in range(1, max(PASSES) + 1):
                    for tree, total in zip(trees, sums, strict=True):
                        step = rate * tree.means(total - tree.indicators @ known)
                        known += step[tree.fitted]
                        predicted += step[tree.test]
                    if number in PASSES:
                        label = f"{rounds} rounds, rate {rate:g}, passes {number}, {noise}"
                        found[label] = bounds.clip(asked.centre + predicted)
    return found


def boosted_trees(split: Split, setting: Setting) -> Predictions:
    """Boost random trees over all inputs on residuals that are clipped ever closer to 0.

    Neighbours: one output changes. Mechanism: in every round `experiments.rivals.base.ask` on the
    leaves of one or a few random trees, and residuals within ± half; the fit so far is public.
    Composition: `experiments.rivals.base.part_of_budget`. Tuned: rounds, trees in each, leaves, how
    fast clips close, learning rate, and Laplace noise at ε or Gaussian at (ε, δ); leaves are shrunk
    as their known noise asks for.
    """
    fitted, test = mapped_inputs(split, ranked=True)
    rng = np.random.default_rng(0)
    bounds, found = split.bounds, {}
    for rounds, leaves, count in product(TREE_ROUNDS, LEAVES, TREES_A_ROUND):
        # With one round nothing closes.
        for decay, rate, noise in product(
            DECAYS[: 1 if rounds == 1 else None], TREE_RATES, noises_of(setting)
        ):
            known = np.full(len(fitted), bounds.middle)
            predicted = np.full(len(test), bounds.middle)
            closing = halves(bounds, rounds=rounds, decay=decay)
            for number, half in enumerate(closing):
                trees = [
                    random_partition(fitted, test, leaves=leaves, rng=rng) for _ in range(count)
                ]
                asked = ask(
                    np.concatenate([tree.indicators for tree in trees]),
                    split.outputs - known,
                    bounds=OutputBounds(-half, half),
                    setting=part_of(setting, parts=rounds, number=number, noise=noise),
                    noise=noise,
                )
                # As many rows as make the noise on a mean as large as half of the clip.
                shrinkage = 2 * asked.noise_sd / (half * np.sqrt(count))
                sums = asked.values.reshape(count, leaves)
                steps = [
                    rate / count * tree.means(total, shrinkage=shrinkage)
                    for tree, total in zip(trees, sums, strict=True)
                ]
                for tree, step in zip(trees, steps, strict=True):
                    known += step[tree.fitted]
                    predicted += step[tree.test]
            label = (
                f"{rounds} rounds of {count}, {leaves} leaves, clips times {decay:g}, "
                f"rate {rate:g}, {noise}"
            )
            found[label] = bounds.clip(predicted)
    return found


ADDITIVE = Rival("boosting by input, as DP-EBM", "ε or (ε, δ)", additive_boosting)
TREES = Rival("boosted clipped residuals, trees", "ε or (ε, δ)", boosted_trees)
