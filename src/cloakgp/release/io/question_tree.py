"""Questions as part of a release file, and the checks on reading them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakgp.criteria import CRITERIA
from cloakgp.design import Certificate
from cloakgp.privacy import Guarantee
from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.grid import SMALLEST_ENTRY
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.release.io.bundle import Load, ReleaseFileError, Store
from cloakgp.release.measurement import Measurement, same_groups
from cloakgp.release.questions import Questions
from cloakgp.utils.arrays import Array

# What a recomputed μ may exceed the stated one by: float64 in another order of summation.
MU_TOLERANCE = 1e-9
WEIGHT_TOLERANCE = 1e-9


def questions_to_tree(asked: Questions | Measurement, stored: Store) -> dict[str, Any]:
    """Return the manifest's entries about what was asked."""
    return {
        "X": stored(asked.X),
        "strategy": stored(asked.strategy),
        "X_query": stored(asked.X_query),
        "reconstruction": None if asked.reconstruction is None else stored(asked.reconstruction),
        "query_weights": None if asked.query_weights is None else stored(asked.query_weights),
        "representers": None if asked.representers is None else stored(asked.representers),
        "groups": None if asked.groups is None else stored(asked.groups.astype(np.float64)),
        "table": asked.table,
        "certificate": {"criterion": asked.certificate.criterion, "gap": asked.certificate.gap},
    }


def questions_from_tree(tree: dict[str, Any], loaded: Load) -> Questions:
    """Rebuild questions from `questions_to_tree`."""
    return Questions(
        X=loaded(tree["X"]),
        strategy=loaded(tree["strategy"]),
        X_query=loaded(tree["X_query"]),
        reconstruction=None if tree["reconstruction"] is None else loaded(tree["reconstruction"]),
        certificate=Certificate(
            criterion=tree["certificate"]["criterion"], gap=float(tree["certificate"]["gap"])
        ),
        table=int(tree["table"]),
        query_weights=None if tree["query_weights"] is None else loaded(tree["query_weights"]),
        # Files from before whole functions have no such entry.
        representers=None if tree.get("representers") is None else loaded(tree["representers"]),
        # Files from before groups have no such entry: every row was on its own.
        groups=None if tree.get("groups") is None else _groups(loaded(tree["groups"])),
    )


def _groups(numbers: Array) -> Groups:
    """Return groups as they were written, numbered from 0 in order of appearance."""
    groups = checked_groups(numbers.ravel().tolist(), rows=len(numbers))
    if groups is None or not np.array_equal(groups, numbers):
        raise ReleaseFileError("the groups of its rows are damaged")
    return groups


def guarantee_from_tree(tree: dict[str, Any]) -> Guarantee:
    """Rebuild a guarantee from its attributes."""
    return Guarantee(
        epsilon=float(tree["epsilon"]),
        delta=float(tree["delta"]),
        mu=float(tree["mu"]),
        answers=int(tree["answers"]),
        coarseness=float(tree["coarseness"]),
    )


def check_questions(asked: Questions | Measurement, *, inputs: int) -> None:
    """Refuse questions whose shapes disagree.

    Raises
    ------
    ReleaseFileError
        If they do, or the certificate is none.
    """
    answers, rows = asked.strategy.shape
    weights, reconstruction = asked.query_weights, asked.reconstruction
    shapes_agree = (
        asked.X.shape == (rows, inputs)
        and asked.X_query.ndim == 2
        and asked.X_query.shape[1] == inputs
        and (weights is None or (weights.shape == (len(asked.X_query),) and weights.min() > 0))
        and (asked.representers is None or asked.representers.shape == (rows, answers))
        and (asked.groups is None or asked.groups.shape == (rows,))
        and (reconstruction is None or reconstruction.shape == (len(asked.X_query), answers))
    )
    if not shapes_agree:
        raise ReleaseFileError("its arrays do not fit each other")
    # Written so that NaN fails.
    if asked.certificate.criterion not in CRITERIA or not asked.certificate.gap >= 0:
        raise ReleaseFileError("its certificate is damaged")


def check_tables(asked: Sequence[Questions | Measurement]) -> None:
    """Refuse tables whose rows, or their groups, differ from one measurement to the next.

    Raises
    ------
    ReleaseFileError
        If they do.
    """
    tables: dict[int, Questions | Measurement] = {}
    for one in asked:
        first = tables.setdefault(one.table, one)
        if not np.array_equal(first.X, one.X):
            raise ReleaseFileError("one of its tables has different rows in different places")
        if not same_groups(first.groups, one.groups):
            raise ReleaseFileError("one of its tables has different groups in different places")


def check_weights(weights: Sequence[float]) -> None:
    """Refuse weights of priors that are not shares of one.

    Raises
    ------
    ReleaseFileError
        If some are negative, or they do not add up to 1.
    """
    if weights and not (min(weights) >= 0 and abs(sum(weights) - 1) <= WEIGHT_TOLERANCE):
        raise ReleaseFileError("the weights of its priors are damaged")


def check_noise(
    strategy: Array, *, guarantee: Guarantee, noise_sd: float, attained_mu: float, answers: int
) -> None:
    """Refuse answers whose noise is less than their guarantee says.

    Parameters
    ----------
    strategy : array of shape (k, N)
    guarantee : Guarantee
        As stated.
    noise_sd, attained_mu : float
        As kept, and as recomputed.
    answers : int
        How many numbers were published.

    Raises
    ------
    ReleaseFileError
        If the noise does not keep the guarantee, or the guarantee itself does not hold.
    """
    asked = bool(strategy.any())
    check_budgeted_noise(
        asked=asked,
        guarantee=guarantee,
        noise_sd=noise_sd,
        attained_mu=attained_mu,
        answers=answers,
    )
    largest = float(np.abs(strategy).max()) if asked else 1.0
    if not SMALLEST_ENTRY < largest < 1 / SMALLEST_ENTRY:
        raise ReleaseFileError("its questions are out of scale")


def check_budgeted_noise(
    *, asked: bool, guarantee: Guarantee, noise_sd: float, attained_mu: float, answers: int
) -> None:
    """Refuse noise that is less than a guarantee says, whatever was asked.

    Parameters
    ----------
    asked : bool
        Whether any question was.
    guarantee : Guarantee
        As stated.
    noise_sd, attained_mu : float
        As kept, and as recomputed.
    answers : int
        How many numbers were published.

    Raises
    ------
    ReleaseFileError
        If the noise does not keep the guarantee, or the guarantee itself does not hold.
    """
    check_budget(guarantee.epsilon, guarantee.delta)
    # Written so that NaN fails every one of them.
    if not 0 <= noise_sd < np.inf or (asked and not (noise_sd > 0 and guarantee.mu > 0)):
        raise ReleaseFileError("its answers carry no noise")
    if not attained_mu <= guarantee.mu * (1 + MU_TOLERANCE):
        raise ReleaseFileError("its noise is less than its guarantee needs")
    if guarantee.mu and not (guarantee.answers == answers and guarantee.coarseness >= 0):
        raise ReleaseFileError("its guarantee is damaged")
    if guarantee.mu and not guarantee.delta_at(guarantee.epsilon) <= guarantee.delta:
        raise ReleaseFileError("its guarantee does not hold")
