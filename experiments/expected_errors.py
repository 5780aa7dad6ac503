r"""Expected errors of raw predictions, in closed form: no draw of the noise is needed.

A release predicts C y + noise, and neither C nor the law of the noise depends on y. So the expected
squared error of one prediction is (C y − truth)² plus the variance of its noise. Errors here are,
for every fold, the root of the mean of those: at least the mean over draws of the root mean squared
error that `experiments.cross_validation` finds, and more where few held-out rows share their noise.
They have no error of their own from draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cloakgp.utils.arrays import Array
from experiments.cloaking import Budget, Cloaked, Noise, mean_without_privacy
from experiments.cross_validation import Errors, PriorFor, Protocol
from experiments.framework import Tick, no_tick


def expected_errors(
    X: Array,
    y: Array,
    *,
    prior_for: PriorFor,
    noises: Iterable[Noise],
    budget: Budget,
    protocol: Protocol,
    gap: float = 1e-3,
    tick: Tick = no_tick,
) -> dict[str, Errors]:
    """Cross-validate raw predictions without drawing noise, by name of noise.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
        Clipped to the bounds where predictions are compared with it, as in the papers.
    prior_for : callable
        Training inputs → prior.
    protocol : Protocol
        Its draws are not used.
    gap : float
        Of the designs, to certify.

    Returns
    -------
    dict of str to Errors
        Of one column. The entry "no privacy" has the bias alone.
    """
    asked = tuple(noises)
    names = ("no privacy", *(noise.name for noise in asked))
    found: dict[str, list[float]] = {name: [] for name in names}
    truth = budget.bounds.clip(y)
    for train, held_out in protocol.splits(len(X)):
        prior = prior_for(X[train])
        unnoised = mean_without_privacy(
            X[train], y[train], X_query=X[held_out], prior=prior, bounds=budget.bounds
        )
        squares = np.square(unnoised - truth[held_out])
        found["no privacy"].append(_root_mean(squares))
        for noise in asked:
            cloaked = Cloaked.designed(X[train], X[held_out], prior=prior, noise=noise, gap=gap)
            found[noise.name].append(_root_mean(squares + np.square(cloaked.noise_sd(budget))))
        tick()
    return {name: Errors(_one_column(errors)) for name, errors in found.items()}


def _root_mean(squares: Array) -> float:
    return float(np.sqrt(squares.mean()))


def _one_column(errors: Sequence[float]) -> Array:
    return np.array(errors)[:, None]
