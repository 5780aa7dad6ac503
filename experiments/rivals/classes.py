"""Rivals for a private column of classes: labels told at random, noisy votes, noisy shares.

Neighbours: one label changes among the declared classes, and inputs are public. Random numbers of
randomisers are numpy's: for comparison only, not for a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cloakgp.models import kmeans_centres
from cloakgp.utils.arrays import Array
from experiments.randomised_labels import (
    Labels,
    fit_likelihood,
    fit_told,
    likelihood_of_told,
    tell,
    truth_probability,
)
from experiments.rivals.base import Predictions, Rival
from experiments.ways import Setting

PENALTIES = (0.1, 1.0, 10.0, 100.0)
CELLS = (1, 2, 4, 8, 16, 32)
# Rows of the noisy overall shares that every cell is thought to have besides.
SHRUNK = (0.0, 10.0, 40.0)
# Sds of cells' shares about the overall ones, where counts are shrunk as their noise asks for.
SPREADS = (0.05, 0.15, 0.4)
BOOSTED_ROUNDS = (20, 60)
LEAST_IN_LEAF = (20, 80)
# Of which models told of the first part make a prior for the second.
FIRST_PART = (0.5, 0.8)


@dataclass(frozen=True, eq=False)
class LabelSplit:
    """Rows of one table of classes, to fit and to predict; labels from 0.

    Attributes
    ----------
    X : array of shape (N, D)
    labels : array of shape (N,)
    X_test : array of shape (P, D)
    labels_test : array of shape (P,)
    classes : int
    """

    X: Array
    labels: Labels
    X_test: Array
    labels_test: Labels
    classes: int


def standardised(split: LabelSplit) -> tuple[Array, Array]:
    """Return both parts' inputs, by the mean and sd of those that are fitted."""
    scaler = StandardScaler().fit(split.X)
    return scaler.transform(split.X), scaler.transform(split.X_test)


def told_labels(split: LabelSplit, setting: Setting) -> Predictions:
    """Fit models to randomised labels: as they are, or with the odds of a lie, which are known.

    Mechanism: `experiments.randomised_labels.tell` (Warner 1965; Kairouz, Oh and Viswanath 2014), ε
    for each row. Tuned: a logistic model by the likelihood that knows the odds, with its ridge; or
    logistic models and boosting that take labels as told (LP-1ST of Ghazi et al. 2021), whose
    probabilities are left as they are, drawn together as much as lies do, or have the odds undone.
    """
    rng = np.random.default_rng(setting.insecure_seed)
    told = tell(split.labels, epsilon=setting.epsilon, classes=split.classes, rng=rng)
    X, asked = standardised(split)
    found = {
        f"knowing the odds, ridge {penalty:g}": fit_told(
            X, told, epsilon=setting.epsilon, classes=split.classes, penalty=penalty
        )(asked)
        for penalty in PENALTIES
    }
    for name, model in _models():
        as_told = _predicted(model, X, told, asked, classes=split.classes)
        found[f"as told, {name}"] = as_told
        found[f"odds undone, {name}"] = undo_lies(as_told, epsilon=setting.epsilon)
    return found


def undo_lies(as_told: Array, *, epsilon: float) -> Array:
    """Return probabilities of true labels from those of labels told by `tell`.

    A label is told with probability q + (p − q) π if π is that of its truth; what is impossible is
    brought to the nearest that is not.

    Parameters
    ----------
    as_told : array of shape (P, C)
    epsilon : float

    Examples
    --------
    >>> undo_lies(np.array([[0.5, 0.5], [0.9, 0.1]]), epsilon=1.0)
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    classes = as_told.shape[1]
    kept = truth_probability(epsilon, classes=classes)
    lied = (1.0 - kept) / (classes - 1)
    undone: Array = np.clip((as_told - lied) / (kept - lied), 0.0, 1.0)
    undone /= undone.sum(axis=1, keepdims=True)
    return undone


def tell_with_prior(
    labels: Labels, prior: Array, *, epsilon: float, rng: np.random.Generator
) -> Labels:
    """Return labels told at random among those that a public prior of each row finds likeliest.

    Mechanism: RRWithPrior (Ghazi, Golowich, Kumar, Manurangsi and Zhang 2021, *Deep learning with
    label differential privacy*, algorithm 2): of the k likeliest classes, with the k for which the
    label is told truly most probably, the label with probability e^ε/(e^ε + k − 1) if it is one of
    them and any of the others otherwise; else one of the k at random. Argument: any two labels give
    a class with probabilities e^ε/(e^ε + k − 1), 1/(e^ε + k − 1) or 1/k, which differ by e^ε at
    most (their theorem 4).

    Parameters
    ----------
    labels : array of shape (N,)
    prior : array of shape (N, C)
    epsilon : float
    rng : numpy.random.Generator

    Examples
    --------
    >>> prior = np.array([[0.9, 0.1, 0.0]])
    >>> tell_with_prior(np.array([2]), prior, epsilon=0.1, rng=np.random.default_rng(0))
    array([0])
    """
    ranked, k = _likeliest(prior, epsilon=epsilon)
    place = (ranked == labels[:, None]).argmax(axis=1)
    inside = place < k
    keeps = inside & (rng.uniform(size=len(k)) < np.exp(epsilon) / (np.exp(epsilon) + k - 1))
    # Another of the k, each alike; of labels outside any of them.
    step = 1 + np.floor(rng.uniform(size=len(k)) * np.maximum(k - 1, 1)).astype(np.intp)
    any_of_them = np.floor(rng.uniform(size=len(k)) * k).astype(np.intp)
    other = np.where(inside, (place + step) % k, any_of_them)
    told: Labels = np.where(keeps, labels, ranked[np.arange(len(k)), other])
    return told


def _likeliest(prior: Array, *, epsilon: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return classes by their prior, the likeliest first, and how many may be told of each row."""
    ranked = np.argsort(-prior, axis=1, kind="stable")
    likeliest = np.cumsum(np.take_along_axis(prior, ranked, axis=1), axis=1)
    sizes = np.arange(1, prior.shape[1] + 1)
    truly = likeliest * np.exp(epsilon) / (np.exp(epsilon) + sizes - 1)
    return ranked, sizes[truly.argmax(axis=1)]


def likelihood_with_prior(told: Labels, prior: Array, *, epsilon: float) -> Array:
    """Return how probably `tell_with_prior` tells of each class what it told, shape (N, C).

    Parameters
    ----------
    told : array of shape (N,)
    prior : array of shape (N, C)
    epsilon : float

    Examples
    --------
    >>> prior = np.array([[0.9, 0.1, 0.0]])
    >>> likelihood_with_prior(np.array([0]), prior, epsilon=0.1)  # of these, no other is told
    array([[1., 1., 1.]])
    """
    ranked, k = _likeliest(prior, epsilon=epsilon)
    place = np.argsort(ranked, axis=1)
    odds = np.exp(epsilon)
    likelihood = np.where(place < k[:, None], 1.0 / (odds + k - 1)[:, None], 1.0 / k[:, None])
    likelihood[np.arange(len(told)), told] *= odds
    return likelihood


def two_stages(split: LabelSplit, setting: Setting) -> Predictions:
    """Fit a model to randomised labels of one part, and use it as the prior of the others' labels.

    LP-2ST (Ghazi et al. 2021): the first part's labels are told by `tell`, the second's by
    `tell_with_prior` with the predictions of a logistic model of the first; the last model is
    fitted to all that was told. Every row is told once, at ε. Tuned: the first part's share, the
    ridge, and logistic or boosting at the end, which take labels as told, or logistic by the
    likelihood that knows the odds of a lie, row by row.
    """
    X, asked = standardised(split)
    found = {}
    for share in FIRST_PART:
        rng = np.random.default_rng(setting.insecure_seed)
        order = rng.permutation(len(X))
        first, second = np.split(order, [int(share * len(X))])
        told = split.labels.copy()
        told[first] = tell(
            split.labels[first], epsilon=setting.epsilon, classes=split.classes, rng=rng
        )
        prior_of = fit_told(
            X[first], told[first], epsilon=setting.epsilon, classes=split.classes, penalty=10.0
        )
        prior = prior_of(X[second])
        told[second] = tell_with_prior(
            split.labels[second], prior, epsilon=setting.epsilon, rng=rng
        )
        likelihood = likelihood_of_told(told, epsilon=setting.epsilon, classes=split.classes)
        likelihood[second] = likelihood_with_prior(told[second], prior, epsilon=setting.epsilon)
        for penalty in PENALTIES:
            label = f"first {share:g} and knowing the odds, ridge {penalty:g}"
            found[label] = fit_likelihood(X, likelihood, penalty=penalty)(asked)
        for name, model in _models():
            found[f"first {share:g}, {name}"] = _predicted(
                model, X, told, asked, classes=split.classes
            )
    return found


def _models() -> Iterator[tuple[str, LogisticRegression | HistGradientBoostingClassifier]]:
    for penalty in PENALTIES:
        yield f"ridge {penalty:g}", LogisticRegression(C=1.0 / penalty, max_iter=500)
    for rounds in BOOSTED_ROUNDS:
        for leaf in LEAST_IN_LEAF:
            yield (
                f"boosting, {rounds} rounds, leaves of {leaf}",
                HistGradientBoostingClassifier(
                    max_iter=rounds, min_samples_leaf=leaf, early_stopping=False, random_state=0
                ),
            )


def _predicted(
    model: LogisticRegression | HistGradientBoostingClassifier,
    X: Array,
    told: Labels,
    asked: Array,
    *,
    classes: int,
) -> Array:
    """Return probabilities of all classes; of those that nobody was told of, 0."""
    seen = np.unique(told)
    found = np.zeros((len(asked), classes))
    found[:, seen] = 1.0 if len(seen) == 1 else model.fit(X, told).predict_proba(asked)
    return found


@lru_cache(maxsize=32)
def _cells(split: LabelSplit, *, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    X, asked = standardised(split)
    centres, _ = kmeans_centres(X, count=min(count, len(np.unique(X, axis=0))))
    nearest = [
        np.square(part[:, None] - centres[None]).sum(axis=2).argmin(axis=1) for part in (X, asked)
    ]
    return nearest[0], nearest[1]


def noisy_votes(split: LabelSplit, setting: Setting) -> Predictions:
    """Predict the noisy shares of classes in cells of public inputs.

    Neighbours: one label changes, and with it two counts by 1. Mechanism: Laplace noise of scale
    2/ε on the count of every class in every cell, which is that of noisy votes (Papernot et al.
    2017) with cells in the place of teachers. How many rows a cell has is public: used for that, of
    two classes one is counted, with noise of scale 1/ε, and counts of more are brought to add up.
    Tuned: how many cells (one: the same shares everywhere), and how much shares are shrunk towards
    those of all cells: by so many rows, or, with totals, as their known noise asks for.
    """
    found = {}
    for count in CELLS:
        rng = np.random.default_rng(setting.insecure_seed)
        fitted, asked = _cells(split, count=count)
        cells = int(max(fitted.max(), asked.max())) + 1
        counts = np.zeros((cells, split.classes))
        np.add.at(counts, (fitted, split.labels), 1.0)
        noisy = np.maximum(counts + rng.laplace(scale=2.0 / setting.epsilon, size=counts.shape), 0)
        overall = noisy.sum(axis=0) + 1e-9
        for rows in SHRUNK:
            # Half a row of each class at least: nothing is certain.
            mixed = noisy + rows * overall / overall.sum() + 0.5
            found[f"{count} cells, shrunk by {rows:g}"] = (
                mixed / mixed.sum(axis=1, keepdims=True)
            )[asked]
        for spread in SPREADS:
            shares = shares_with_totals(counts, setting=setting, spread=spread)
            found[f"{count} cells, totals known, spread {spread:g}"] = shares[asked]
    return found


def shares_with_totals(counts: Array, *, setting: Setting, spread: float) -> Array:
    """Return noisy shares of classes in cells whose numbers of rows are public.

    Neighbours and mechanism: as for `noisy_votes`; of two classes the first alone is counted, which
    one label changes by 1 (Laplace noise of scale 1/ε).

    Parameters
    ----------
    counts : array of shape (cells, C)
    setting : Setting
    spread : float
        Sd that cells' shares are thought to have about the overall ones.

    Examples
    --------
    >>> known = Setting(epsilon=1e6, delta=0.0, insecure_seed=0)
    >>> shares_with_totals(np.array([[30.0, 70.0], [0.0, 0.0]]), setting=known, spread=0.4).round(2)
    array([[0.3, 0.7],
           [0.3, 0.7]])
    """
    rng = np.random.default_rng(setting.insecure_seed)
    totals, classes = counts.sum(axis=1), counts.shape[1]
    asked, scale = (counts[:, :1], 1.0) if classes == 2 else (counts, 2.0)
    scale /= setting.epsilon
    noisy = asked + rng.laplace(scale=scale, size=asked.shape)
    if classes == 2:
        noisy = np.column_stack([noisy, totals - noisy[:, 0]])
    noisy += ((totals - noisy.sum(axis=1)) / classes)[:, None]
    overall = np.maximum(noisy.sum(axis=0), 0.5)
    overall /= overall.sum()
    # Of a share: of the noise, and of which rows a cell happens to have.
    rows = np.maximum(totals, 1.0)[:, None]
    variance = 2.0 * scale**2 / rows**2 + overall * (1.0 - overall) / rows
    kept = np.where(totals[:, None] > 0, spread**2 / (spread**2 + variance), 0.0)
    shares = np.maximum(overall + kept * (noisy / rows - overall), 0.5 / (rows + 0.5 * classes))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def models_without_privacy(split: LabelSplit, setting: Setting) -> Predictions:
    """Fit the same models to the labels themselves. Not private."""
    del setting
    X, asked = standardised(split)
    return {
        name: _predicted(model, X, split.labels, asked, classes=split.classes)
        for name, model in _models()
    }


TOLD_LABELS = Rival("labels told at random", "ε, local", told_labels)
TWO_STAGES = Rival("LP-2ST", "ε, local", two_stages)
VOTES = Rival("noisy votes in cells", "ε", noisy_votes)
WITHOUT_PRIVACY = Rival("models without privacy", "", models_without_privacy)
