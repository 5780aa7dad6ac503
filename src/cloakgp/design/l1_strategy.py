r"""Strategies in the ℓ1 ball: questions whose answers give C y with little Laplace noise.

Laplace noise on answers to R costs its scale times max_j ‖r_j‖₁, and the noise on C y = L R y is
L times theirs. Neither the least mean square nor the least volume of it is known for that norm
(Li, Hay, Rastogi, Miklau and McGregor 2010, *Optimizing linear counting queries under differential
privacy*, has bounds for sets of counts). Three factorisations are compared, and the best is taken:

1. that of `cloakgp.design.design_strategy`, which is the best for Gaussian noise, its answers
   rotated by quartimax, so that each row is mostly in one of them;
2. the rows on their own, R = I and L = C;
3. the predictions themselves, R = C and L = I, as the papers add noise.

Every column in the ℓ1 ball is in the Euclidean one, so that no strategy has less noise than the
first is certified for there: the certificate's gap compares with that, and does not close.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from cloakgp.design.groups import Groups
from cloakgp.design.l1_ball import quartimax
from cloakgp.design.solver import Progress
from cloakgp.design.strategy import Certificate, Design, design_strategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import DEFAULT_GAP, CriterionName


def design_strategy_l1(
    C: Array,
    *,
    criterion: CriterionName = "trace",
    weights: Array | None = None,
    groups: Groups | None = None,
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> Design:
    """Choose questions with columns of ℓ1 norm at most 1 whose answers give C y.

    Sees the public cloaking matrix only.

    Parameters
    ----------
    C : array of shape (P, N)
    criterion : {"trace", "logdet"}
    weights : array of shape (P,), optional
    groups : array of shape (N,), optional
    gap : float
    progress : callable, optional
        These are as for `cloakgp.design.design_strategy`.

    Returns
    -------
    Design
        The absolute entries of each column, or of all columns of a group, add up to 1 at most.

    Examples
    --------
    Two means of different rows, each asked on its own:

    >>> design = design_strategy_l1(np.kron(np.eye(2), np.full((1, 3), 1 / 3)))
    >>> np.abs(design.strategy).sum(axis=0).round(6)
    array([1., 1., 1., 1., 1., 1.])
    >>> abs(design.reconstruction).round(6)
    array([[0.333333, 0.      ],
           [0.      , 0.333333]])
    """
    euclidean = design_strategy(
        C, criterion=criterion, weights=weights, groups=groups, gap=gap, progress=progress
    )
    if len(euclidean.strategy) == 0:
        return euclidean
    # The rows' own noise has more dimensions, along which C y hardly varies.
    measured = partial(
        log_noise, criterion=criterion, weights=weights, dimensions=len(euclidean.strategy)
    )
    sized = [(measured(design), design) for design in _factorisations(C, euclidean, groups=groups)]
    noise, best = min(sized, key=lambda each: each[0])
    reference = measured(euclidean)
    # Of the mean square, or of the volume as a factor in each dimension.
    least = reference - np.log1p(euclidean.certificate.gap)
    certificate = Certificate(criterion=criterion, gap=max(float(np.expm1(noise - least)), 0.0))
    return replace(best, certificate=certificate)


def log_noise(
    design: Design, *, criterion: CriterionName, dimensions: int, weights: Array | None = None
) -> float:
    """Return the noise in predictions from noise of unit sd on answers, in nats.

    Parameters
    ----------
    design : Design
    criterion : {"trace", "logdet"}
        The logarithm of the weighted mean square, or of the volume as a factor in each dimension.
    dimensions : int
        Along how many the volume is taken, the greatest first.
    weights : array of shape (P,), optional
        Importance of each prediction, for ``trace``.

    Examples
    --------
    >>> design = design_strategy(np.eye(2))
    >>> log_noise(design, criterion="logdet", dimensions=2)
    0.0
    """
    if criterion == "logdet":
        sizes = np.linalg.svd(design.reconstruction, compute_uv=False)[:dimensions]
        return 2.0 * float(np.log(sizes).mean())
    squares = np.square(design.reconstruction).sum(axis=1)
    return float(np.log(squares.sum() if weights is None else weights @ squares))


def _factorisations(C: Array, euclidean: Design, *, groups: Groups | None) -> Iterator[Design]:
    rows = C.shape[1]
    strategy = euclidean.strategy
    rotated = quartimax(strategy)
    # Rotations are orthogonal, R' = Q R: L' = L Qᵀ.
    turn = np.linalg.lstsq(strategy.T, rotated.T, rcond=None)[0].T
    for questions, answers in (
        (rotated, euclidean.reconstruction @ turn.T),
        (np.eye(rows), C),
        (C, np.eye(len(C))),
    ):
        longest = _longest(questions, groups=groups)
        if longest > 0:
            yield replace(euclidean, strategy=questions / longest, reconstruction=answers * longest)


def _longest(questions: Array, *, groups: Groups | None) -> float:
    lengths = np.abs(questions).sum(axis=0)
    return float(lengths.max() if groups is None else np.bincount(groups, weights=lengths).max())
