"""References: the default, and what the same tables allow without privacy."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from experiments.priors import Split
from experiments.rivals.base import Predictions, Rival
from experiments.ways import Setting, released, without_privacy

TREES = 200
RESTARTS = 2


def default_process(split: Split, setting: Setting) -> Predictions:
    """Fit `cloakgp.DPGPRegressor`, its defaults untouched. Nothing is tuned."""
    return {"untouched": released(split, setting).mean}


def default_without_privacy(split: Split, setting: Setting) -> Predictions:
    """Condition the default prior, as declared, on the outputs themselves. Not private."""
    return {"as declared": without_privacy(split, setting).mean}


def learned_without_privacy(split: Split, setting: Setting) -> Predictions:
    """Fit scikit-learn's Gaussian process, hyperparameters by likelihood. Not private."""
    del setting
    scale = np.where(np.ptp(split.X, axis=0) > 0, np.ptp(split.X, axis=0), 1.0)
    kernel = ConstantKernel(1.0) * Matern(0.5 * np.ones(split.X.shape[1]), nu=1.5)
    kernel += WhiteKernel(0.3, noise_level_bounds=(1e-3, 1e1))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=RESTARTS, random_state=0
    )
    model.fit(split.X / scale, split.outputs)
    return {"learned": np.asarray(model.predict(split.X_test / scale))}


def forest_without_privacy(split: Split, setting: Setting) -> Predictions:
    """Fit scikit-learn's random forest. Not private. Tuned: rows in a leaf."""
    del setting
    return {
        f"leaves of {rows}": np.asarray(
            RandomForestRegressor(TREES, min_samples_leaf=rows, random_state=0)
            .fit(split.X, split.outputs)
            .predict(split.X_test)
        )
        for rows in (3, 10)
    }


DEFAULT = Rival("cloakgp, default", "(ε, δ)", default_process)
NOT_PRIVATE = (
    Rival("default prior, not private", "", default_without_privacy),
    Rival("learned GP, not private", "", learned_without_privacy),
    Rival("random forest, not private", "", forest_without_privacy),
)
