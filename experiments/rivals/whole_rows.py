"""Rivals that protect whole rows: AdaSSP, once and boosted, on inputs or random features; packages.

Inputs are in [0, 1] and outputs in [−1, 1], by public ranges. Neighbours, of those that are written
here: one whole row is replaced, or added or removed. Noise is numpy's: for comparison only, not for
a release.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product

import numpy as np
from scipy import linalg
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.statistics import Neighbours
from cloakgp.utils.arrays import Array

# ρ of AdaSSP: its ridge is large enough with probability 1 − ρ.
FAILURE = 0.05
ROUNDS, CLIPS = (5, 20, 60), (1.0, 0.5, 0.3, 0.2, 0.1)
RANDOM_FEATURES, FREQUENCIES = (10, 20, 40), (0.5, 1.0, 2.0)
# Rounds and learning rate, bins, and the budget's share for bins; the package's defaults are first.
BOOSTED_MEANS = (
    (300, 0.01, 32, 0.1),
    (100, 0.03, 16, 0.1),
    (40, 0.1, 10, 0.1),
    (10, 0.3, 10, 0.1),
    (10, 0.3, 5, 0.1),
    (3, 1.0, 5, 0.1),
)
FEATURE_SEED = 5


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to fit and inputs to predict at, by public ranges.

    Attributes
    ----------
    X : array of shape (N, D)
        Private, in [0, 1].
    outputs : array of shape (N,)
        Private, in [−1, 1].
    X_query : array of shape (P, D)
    """

    X: Array
    outputs: Array
    X_query: Array


@dataclass(frozen=True)
class Promise:
    """A budget of whole rows.

    Attributes
    ----------
    epsilon, delta : float
    neighbours : {"replace", "add-remove"}
    """

    epsilon: float
    delta: float
    neighbours: Neighbours

    @property
    def products_reach(self) -> float:
        """How far a row of norm 1 moves XᵀX: 1 if it comes or goes, √2 if it is replaced."""
        return 1.0 if self.neighbours == "add-remove" else 2.0**0.5

    @property
    def moments_reach(self) -> float:
        """How far a row of norm 1 with an output in [−1, 1] moves Xᵀy."""
        return 1.0 if self.neighbours == "add-remove" else 2.0

    def noise_sd(self, reach: float, *, share: float) -> float:
        """Return the noise sd of numbers that move by so much, for a share of μ²."""
        return exact_noise_multiplier(self.epsilon, self.delta) * reach / share**0.5


Features = Callable[[Array], Array]
Method = Callable[[Table, Promise, np.random.Generator], Array]


def linear_features(X: Array) -> Array:
    """Return centred inputs and a constant, divided by √(D + 1), so that no row is longer than 1.

    Examples
    --------
    >>> linear_features(np.array([[1.0]])).round(3).tolist()
    [[0.707, 0.707]]
    """
    rows = np.column_stack([2.0 * X - 1.0, np.ones(len(X))])
    scaled: Array = rows / rows.shape[1] ** 0.5
    return scaled


def random_features(X: Array, *, count: int, frequency: float) -> Array:
    """Return random Fourier features of norm at most 1 (Rahimi and Recht 2007): public projections.

    Parameters
    ----------
    X : array of shape (N, D)
    count : int
    frequency : float
        The sd of the projections, per unit of an input.
    """
    rng = np.random.default_rng(FEATURE_SEED)
    directions = rng.normal(size=(X.shape[1], count)) * frequency
    phases = rng.uniform(0.0, 2.0 * np.pi, size=count)
    waves: Array = np.cos(X @ directions + phases) / count**0.5
    return waves


def ada_ridge(least_eigenvalue: float, *, noise_sd: float, features: int) -> float:
    """Return AdaSSP's ridge, λ = max(0, √(d ln(2d²/ρ)) τ − λ̃) (Wang 2018, algorithm 2).

    Parameters
    ----------
    least_eigenvalue : float
        λ̃, a noisy lower bound of the least eigenvalue of XᵀX.
    noise_sd : float
        τ, of XᵀX.
    features : int
        d.

    Examples
    --------
    >>> round(ada_ridge(0.0, noise_sd=1.0, features=2), 3), ada_ridge(9.0, noise_sd=1.0, features=2)
    (3.186, 0.0)
    """
    wanted = np.sqrt(features * np.log(2.0 * features**2 / FAILURE)) * noise_sd
    return float(max(0.0, wanted - least_eigenvalue))


def regularised_gram(rows: Array, promise: Promise, rng: np.random.Generator) -> Array:
    """Return a noisy XᵀX with AdaSSP's ridge, for two thirds of μ².

    One third is for the least eigenvalue, which a row of norm 1 moves by at most 1, and one for the
    products, with noise of equal sd on and above the diagonal.

    Parameters
    ----------
    rows : array of shape (N, d)
        None longer than 1.
    promise : Promise
    rng : Generator
    """
    features = rows.shape[1]
    gram = rows.T @ rows
    spread = promise.noise_sd(1.0, share=1 / 3)
    least = float(linalg.eigvalsh(gram)[0]) + spread * float(rng.normal())
    believed = max(least - spread * np.sqrt(2.0 * np.log(1.0 / FAILURE)), 0.0)
    noise_sd = promise.noise_sd(promise.products_reach, share=1 / 3)
    noise = np.triu(rng.normal(size=(features, features))) * noise_sd
    ridge = ada_ridge(believed, noise_sd=noise_sd, features=features)
    found: Array = gram + noise + np.triu(noise, 1).T + ridge * np.eye(features)
    return found


def adassp(
    table: Table, promise: Promise, rng: np.random.Generator, *, features: Features
) -> Array:
    """Predict by AdaSSP (Wang 2018, *Revisiting differentially private linear regression*).

    Neighbours, sensitivities: `regularised_gram` and `Promise`, each a third of μ²; that is tighter
    than its paper's ε/3, in its favour.
    """
    rows = features(table.X)
    gram = regularised_gram(rows, promise, rng)
    noise = promise.noise_sd(promise.moments_reach, share=1 / 3) * rng.normal(size=rows.shape[1])
    predicted: Array = features(table.X_query) @ linalg.solve(gram, rows.T @ table.outputs + noise)
    return predicted


def boosted_adassp(
    table: Table,
    promise: Promise,
    rng: np.random.Generator,
    *,
    features: Features,
    rounds: int,
    clip: float,
) -> Array:
    """Predict by BoostedAdaSSP: AdaSSP's regression again and again, on clipped residuals.

    Tang, Aydöre, Kearns, Rho, Roth, Wang, Wang and Wu 2023, *Improved differentially private
    regression via gradient boosting*. XᵀX and its ridge are asked once; moments of residuals, each
    within ± clip, share the last third of μ² equally among rounds.
    """
    rows = features(table.X)
    gram = regularised_gram(rows, promise, rng)
    noise_sd = clip * promise.noise_sd(promise.moments_reach, share=1 / (3 * rounds))
    coefficients = np.zeros(rows.shape[1])
    for _ in range(rounds):
        left = np.clip(table.outputs - rows @ coefficients, -clip, clip)
        noise = noise_sd * rng.normal(size=len(coefficients))
        coefficients = coefficients + linalg.solve(gram, rows.T @ left + noise)
    predicted: Array = features(table.X_query) @ coefficients
    return predicted


def explainable_boosting(
    table: Table,
    promise: Promise,
    rng: np.random.Generator,
    *,
    rounds: int,
    rate: float,
    bins: int,
    share: float,
) -> Array:
    """Predict by `interpret`'s DP-EBM, with its own noise and its own idea of neighbours."""
    from interpret.privacy import DPExplainableBoostingRegressor

    logging.getLogger("interpret").setLevel(logging.ERROR)
    inputs = table.X.shape[1]
    model = DPExplainableBoostingRegressor(
        feature_types=["continuous"] * inputs,
        max_rounds=rounds,
        learning_rate=rate,
        max_bins=bins,
        bin_budget_frac=share,
        epsilon=promise.epsilon,
        delta=promise.delta,
        privacy_bounds=np.tile([0.0, 1.0], (inputs, 1)),
        privacy_target_min=-1.0,
        privacy_target_max=1.0,
        random_state=int(rng.integers(2**31)),
        n_jobs=1,
    )
    with warnings.catch_warnings():
        # Of fixed seeds, and of bins that noise has emptied.
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.fit(table.X, table.outputs).predict(table.X_query))
    # Noisy counts of bins can be zero.
    sound: Array = np.where(np.isfinite(predicted), predicted, 0.0)
    return sound


def functional_mechanism(table: Table, promise: Promise, rng: np.random.Generator) -> Array:
    """Predict by diffprivlib's linear regression, at ε alone, inputs in [−1, 1].

    Its faults (0.6.6): the sensitivity of a sum of squares is taken from the lower end of an
    input's range, twice, so that an input whose upper end is further from its noisy mean has less
    noise than ε needs; inputs' and outputs' means have ε/(D + 1) each and the rest εD/(D + 1),
    which adds up to more than ε; and the noisy quadratic form may have no minimum, so that
    coefficients run away.
    """
    from sklearn.tree import _tree

    # Its trees import names that scikit-learn's no longer have; they are not used here.
    for name in ("DOUBLE", "DTYPE"):
        vars(_tree).setdefault(name, np.float64)
    from diffprivlib.models import LinearRegression as FunctionalMechanism

    ends = np.ones(table.X.shape[1])
    model = FunctionalMechanism(
        epsilon=promise.epsilon,
        bounds_X=(-ends, ends),
        bounds_y=(-1.0, 1.0),
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(2.0 * table.X - 1.0, table.outputs)
    predicted: Array = np.nan_to_num(np.asarray(model.predict(2.0 * table.X_query - 1.0)))
    return predicted


def without_privacy(table: Table, model: LinearRegression | HistGradientBoostingRegressor) -> Array:
    """Predict by a model that protects nobody."""
    predicted: Array = model.fit(table.X, table.outputs).predict(table.X_query)
    return predicted


def linear_without_privacy(table: Table, promise: Promise, rng: np.random.Generator) -> Array:
    """Predict by least squares."""
    del promise, rng
    return without_privacy(table, LinearRegression())


def boosted_without_privacy(table: Table, promise: Promise, rng: np.random.Generator) -> Array:
    """Predict by boosted trees."""
    del promise, rng
    model = HistGradientBoostingRegressor(max_iter=80, learning_rate=0.08, random_state=0)
    return without_privacy(table, model)


def methods() -> Mapping[str, Mapping[str, Method]]:
    """Return rivals by name, each with all of its tunings; packages only if they are installed.

    Examples
    --------
    >>> len(methods()["BoostedAdaSSP"])
    15
    """
    found: dict[str, dict[str, Method]] = {
        "AdaSSP": {"as it is": partial(adassp, features=linear_features)},
        "BoostedAdaSSP": {
            f"{rounds} rounds, clip {clip:g}": partial(
                boosted_adassp, features=linear_features, rounds=rounds, clip=clip
            )
            for rounds, clip in product(ROUNDS, CLIPS)
        },
        "AdaSSP, random features": {
            f"{count} of frequency {frequency:g}": partial(
                adassp, features=partial(random_features, count=count, frequency=frequency)
            )
            for count, frequency in product(RANDOM_FEATURES, FREQUENCIES)
        },
    }
    if find_spec("interpret") is not None:
        found["DP-EBM (interpret)"] = {
            f"{rounds} rounds, rate {rate:g}, {bins} bins": partial(
                explainable_boosting, rounds=rounds, rate=rate, bins=bins, share=share
            )
            for rounds, rate, bins, share in BOOSTED_MEANS
        }
    if find_spec("diffprivlib") is not None:
        found["diffprivlib, linear, ε only"] = {"as it is": functional_mechanism}
    found["least squares, not private"] = {"as it is": linear_without_privacy}
    found["boosted trees, not private"] = {"as it is": boosted_without_privacy}
    return found
