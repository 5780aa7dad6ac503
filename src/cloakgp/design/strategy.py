r"""Strategy of least noise on raw predictions: from a cloaking matrix to the questions put to y.

The published predictions are C y + noise of covariance s² M. Write M = L Lᵀ on the range of C and
R = L⁺ C, so that C = L R: asking the k questions R y and publishing L (R y + s z) is the same thing
(z standard normal, k numbers instead of P). Everything published is thus computed from the k noisy
answers alone, and nothing leaks through rounding or through directions without noise.

Where rows come in groups, ‖R_g s‖ ≤ 1 must hold for the columns R_g of each group and all vectors
of signs s. That is the same problem, with the columns C_g s besides those of C: those that are the
worst for one design join for the next.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from cloakgp.design.groups import GroupGauges, Groups
from cloakgp.design.numerical_range import NumericalRange, numerical_range
from cloakgp.design.solver import Progress, optimal_weights
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import CRITERIA, DEFAULT_GAP, CriterionName
from cloakgp.utils.threads import suitable_threads
from cloakgp.utils.warned import CloakWarning

# With groups, how often columns may join, and how many times the gap asked for is near enough.
ROUNDS, ENOUGH = 40, 3.0
# Where bounds are not tight by nature, so many times the gap asked for is no reason to warn.
LOOSE = 10.0
# A gap beyond this is told as one that stopped short.
CLOSE_GAP = 1e-2


@dataclass(frozen=True)
class Certificate:
    """A bound of the distance of a design to the best one.

    Attributes
    ----------
    criterion : str
        Its name in `cloakgp.criteria`.
    gap : float
        For ``trace``, the weighted mean squared noise is at most (1 + gap) times the least possible
        for the same guarantee; for ``logdet``, the k-th root of the determinant of its covariance;
        for ``bayes``, the weighted posterior variance exceeds the least that linear questions,
        asked at once, can leave, by at most this share of itself; for ``functional`` nothing is
        optimised, and the gap is 0; questions that were ``given`` were not designed at all, and
        the gap is 1.
    """

    criterion: str
    gap: float


class DesignGapWarning(CloakWarning):
    """A design is certified less closely than was asked, which costs accuracy and never privacy."""


def warn_if_short(certificate: Certificate, *, gap: float, allowed: float) -> None:
    """Warn, on behalf of the caller's caller, if a design ended short of the gap asked for.

    Designs end short where neither they nor their bounds came closer at a pace that would have
    reached the gap, or where float64 has no more digits.

    Parameters
    ----------
    certificate : Certificate
    gap : float
        What was asked for.
    allowed : float
        The gap up to which this kind of design says nothing: there, somebody who asks again for the
        same gap gets no more.
    """
    if certificate.gap <= allowed:
        return
    warnings.warn(
        f"the design is certified to be within {100 * certificate.gap:.2g} % of the best, not "
        f"within the {100 * gap:.2g} % asked for: it no longer came closer. This costs accuracy, "
        "never privacy.",
        DesignGapWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class Design:
    """The questions to ask and how predictions follow from their answers.

    Attributes
    ----------
    strategy : array of shape (k, N)
        R; its longest column has norm 1, or its largest group gauge 1.
    reconstruction : array of shape (P, k)
        L, with L R = C on the numerical range of C.
    certificate : Certificate
    """

    strategy: Array
    reconstruction: Array
    certificate: Certificate


def design_strategy(
    C: Array,
    *,
    criterion: CriterionName = "trace",
    weights: Array | None = None,
    groups: Groups | None = None,
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> Design:
    """Choose the questions whose answers give C y with the least noise.

    Sees the public cloaking matrix only. Any design it returns can be released privately, converged
    or not: the sensitivity is computed from the very strategy whose answers are published.

    Parameters
    ----------
    C : array of shape (P, N)
        Linear map from outputs to predictions.
    criterion : {"trace", "logdet"}
        Least weighted mean squared noise, or least volume (the papers' choice).
    weights : array of shape (P,), optional
        Positive importance of each prediction; for ``trace`` alone (the volume cannot be weighted).
    groups : array of shape (N,), optional
        Which group each row belongs to, from 0; every row alone if not given.
    gap : float
        Relative gap to certify; with groups, three times that.
    progress : callable, optional
        Called with the gap certified so far.

    Returns
    -------
    Design

    Warns
    -----
    DesignGapWarning
        If the gap, or three times that with groups, was not reached.

    Raises
    ------
    ValueError
        For an unknown criterion, a matrix that is not finite, weights that are not positive, or a
        gap that is not.

    Warns
    -----
    DesignGapWarning
        If the design is certified less closely than that.

    Examples
    --------
    Two alike averages of the same three people need one question, not two.

    >>> design = design_strategy(np.full((2, 3), 1 / 3))
    >>> design.strategy.shape
    (1, 3)
    """
    C = as_matrix(C, name="C")
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}")
    if not 0 < gap < np.inf:
        raise ValueError(f"gap must be positive and finite, got {gap}")
    importance = _checked_weights(weights, criterion=criterion, count=len(C))
    alone = _design(
        C, importance, criterion=criterion, gap=gap, progress=progress if groups is None else None
    )
    if groups is None:
        warn_if_short(alone.certificate, gap=gap, allowed=gap)
        return alone
    together = _for_groups(
        alone, C, importance, criterion=criterion, groups=groups, gap=gap, progress=progress
    )
    warn_if_short(together.certificate, gap=gap, allowed=ENOUGH * gap)
    return together


def _design(
    C: Array,
    importance: Array,
    *,
    criterion: CriterionName,
    gap: float,
    progress: Progress | None = None,
) -> Design:
    """Return the design in which every row is on its own."""
    with suitable_threads(float(C.size) * min(C.shape)):
        span = numerical_range(np.sqrt(importance)[:, None] * C)
    questions, optimum_gap = _optimal_questions(
        span, criterion=criterion, gap=gap, progress=progress
    )
    return Design(
        strategy=questions.strategy,
        # From C itself: small weights would divide the rounding of the weighted one by almost 0.
        reconstruction=C @ span.right.T @ questions.from_answers,
        certificate=Certificate(criterion=criterion, gap=optimum_gap),
    )


def _for_groups(
    alone: Design,
    C: Array,
    importance: Array,
    *,
    criterion: CriterionName,
    groups: Groups,
    gap: float,
    progress: Progress | None,
) -> Design:
    """Return the design for groups: columns C_g s join until no signs are worse than those.

    With fewer columns the least noise is smaller, so what is certified for them holds for all.
    """
    rows = C.shape[1]
    columns, current, best, certified = C, alone, alone, np.inf
    for _ in range(ROUNDS if len(alone.strategy) else 0):
        questions = current.strategy[:, :rows]
        gauges = GroupGauges.of(groups, questions)
        largest = float(gauges.lengths(questions).max())
        attained = (1 + current.certificate.gap) * largest**2 - 1
        if attained < certified:
            certified = attained
            best = Design(
                strategy=questions / largest,
                reconstruction=current.reconstruction * largest,
                certificate=Certificate(criterion=criterion, gap=attained),
            )
        if progress is not None:
            progress(certified)
        if certified <= ENOUGH * gap:
            break
        columns = np.hstack([columns, gauges.worst_columns(C, questions, above=1 + gap / 4)])
        current = _design(columns, importance, criterion=criterion, gap=gap)
    return best


@dataclass(frozen=True)
class _Questions:
    """R in the rows' coordinates, and the map from its answers to those of the range."""

    strategy: Array
    from_answers: Array


def _optimal_questions(
    span: NumericalRange, *, criterion: CriterionName, gap: float, progress: Progress | None
) -> tuple[_Questions, float]:
    """Solve the design in the r dimensions of the range, and lift the answer back."""
    rank, rows = span.right.shape
    if rank == 0:
        empty = np.zeros((0, 0))
        return _Questions(strategy=np.zeros((0, rows)), from_answers=empty), 0.0
    # log det is the same problem in every basis: take the orthonormal one.
    scales = np.ones(rank) if criterion == "logdet" else span.scales / span.scales[0]
    columns = scales[:, None] * span.right
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    nonzero = np.flatnonzero(lengths > np.finfo(np.float64).eps * lengths.max())
    with suitable_threads(float(rank) ** 2 * len(nonzero)):
        optimum = optimal_weights(
            columns[:, nonzero], criterion=criterion, gap=gap, progress=progress
        )
        root = optimum.iterate.noise_root()
        strategy = np.linalg.solve(root, columns)
    longest = float(np.sqrt(np.einsum("ij,ij->j", strategy, strategy)).max())
    from_answers = root / scales[:, None] * longest
    return _Questions(strategy=strategy / longest, from_answers=from_answers), optimum.gap


def _checked_weights(weights: Array | None, *, criterion: CriterionName, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    if criterion != "trace":
        raise ValueError(f"weights apply to criterion='trace', not to {criterion!r}")
    importance = np.asarray(weights, dtype=np.float64)
    if importance.shape != (count,):
        raise ValueError(f"weights must have shape ({count},), got {importance.shape}")
    if not (np.isfinite(importance).all() and (importance > 0).all()):
        raise ValueError("weights must be positive and finite: leave out points of no importance")
    normalised: Array = importance / float(importance.mean())
    return normalised
