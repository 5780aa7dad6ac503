"""DP-EBM of the `interpret` package, which protects inputs as well."""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec
from itertools import product

import numpy as np

from experiments.priors import Split
from experiments.rivals.base import Predictions, Rival
from experiments.ways import Setting

# Rounds and learning rate; the package's defaults are the last.
ROUNDS = ((3, 1.0), (10, 0.3), (40, 0.1), (300, 0.01))
# How many bins; with the last rounds, the last alone, which is the default too.
BINS = (5, 10, 32)
BIN_SHARES = (0.1, 0.3)


def is_installed() -> bool:
    """Return whether the package is there, which the extra "rivals" installs."""
    return find_spec("interpret") is not None


def explainable_boosting(split: Split, setting: Setting) -> Predictions:
    """Fit `DPExplainableBoostingRegressor`, with the ranges of inputs declared to be public.

    Neighbours: a whole row changes, inputs too: more than the others promise. The package has no
    way to say that inputs are public; ranges of inputs and outputs are all that can be declared, so
    bins, counts in them, and a part of (ε, δ) go to inputs. The guarantee is the one that it claims
    (Gaussian DP of its noise), with its own sampler in floating point. What its algorithm does
    where inputs are public is `experiments.rivals.trees.additive_boosting`. Tuned: rounds with
    learning rate, bins, and the budget's share for bins.
    """
    from interpret.privacy import DPExplainableBoostingRegressor

    logging.getLogger("interpret").setLevel(logging.ERROR)
    ranges = np.stack([split.X.min(axis=0), split.X.max(axis=0)], axis=1)
    found = {}
    for (rounds, rate), bins, share in product(ROUNDS, BINS, BIN_SHARES):
        if rounds == ROUNDS[-1][0] and bins != BINS[-1]:
            continue
        model = DPExplainableBoostingRegressor(
            feature_types=["continuous"] * split.X.shape[1],
            max_rounds=rounds,
            learning_rate=rate,
            max_bins=bins,
            bin_budget_frac=share,
            epsilon=setting.epsilon,
            delta=setting.delta,
            privacy_bounds=ranges,
            privacy_target_min=split.bounds.lo,
            privacy_target_max=split.bounds.hi,
            random_state=setting.insecure_seed,
            n_jobs=1,
        )
        with warnings.catch_warnings():
            # Of fixed seeds, and of bins that noise has emptied.
            warnings.simplefilter("ignore")
            predicted = np.asarray(model.fit(split.X, split.outputs).predict(split.X_test))
        # Noisy counts of bins can be zero.
        sound = np.where(np.isfinite(predicted), predicted, split.bounds.middle)
        label = f"{rounds} rounds, rate {rate:g}, {bins} bins, {share:g} of ε for bins"
        found[label] = split.bounds.clip(sound)
    return found


EXPLAINABLE_BOOSTING = Rival("DP-EBM (interpret)", "(ε, δ), inputs too", explainable_boosting)
