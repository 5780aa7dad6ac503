"""Later visits to the private data, designed given what a release already knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.arrays import Array, as_matrix
from cloakgp.design import Progress
from cloakgp.privacy import OutputBounds, measure
from cloakgp.privacy.units import checked_groups
from cloakgp.release.measurement import Measurement, same_groups
from cloakgp.release.questions import Budget, Query, choose_questions

if TYPE_CHECKING:
    from cloakgp.release.release import Release


class Settings(TypedDict, total=False):
    """How a visit runs.

    Attributes
    ----------
    epsilon, delta : float
        The budget of this visit, on top of what was spent. Required.
    query_weight : array-like of shape (P,)
        Positive importance of the query points.
    groups : iterable of N hashables
        Whose row it is: all rows of one group are protected together. A table that is asked again
        keeps its groups.
    gap : float
        Certified relative gap at which the design stops.
    progress : callable
        Called with the certified gap while the design improves.
    insecure_seed : int
        Makes the noise reproducible and the release **not private**.
    """

    epsilon: Required[float]
    delta: Required[float]
    query_weight: ArrayLike | None
    groups: Iterable[Hashable] | None
    gap: float
    progress: Progress | None
    insecure_seed: int | None


def refine(
    release: Release,
    y: ArrayLike,
    X_query: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> Measurement:
    """Ask the first table of a release again, for what the answers so far leave open.

    y goes to `cloakgp.privacy.measure` and nowhere else.

    Parameters
    ----------
    release : Release
    y : array-like of shape (N,)
        Private: the same outputs, in the same order, as when the table was first asked.
    X_query : array-like of shape (P, D), optional
        Where predictions matter now; as at first if not given.
    **settings
        See `Settings`.

    Returns
    -------
    Measurement
        To be added to the release.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.
    """
    first = release.measurements[0]
    points = X_query
    if points is None:
        points = first.X_query
        settings = {"query_weight": first.query_weights, **settings}
    given = checked_groups(settings.get("groups"), rows=len(first.X))
    if given is not None and not same_groups(given, first.groups):
        raise ValueError(
            "the table was asked with other groups, so the guarantees would not add up: leave out "
            "groups"
        )
    settings = {**settings, "groups": first.groups}
    return _visit(release, first.X, y, points, table=first.table, **settings)


def extend(
    release: Release,
    X: ArrayLike,
    y: ArrayLike,
    X_query: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> Measurement:
    """Ask new rows, given what a release knows.

    The guarantee stated afterwards adds up all visits, as if everybody were in every table. If the
    new rows are other people, each person is protected by the visits to their own table alone.

    Parameters
    ----------
    release : Release
    X : array-like of shape (N, D)
        Public inputs of the new rows.
    y : array-like of shape (N,)
        Their private outputs.
    X_query : array-like of shape (P, D), optional
        Where predictions matter; the new rows if not given.
    **settings
        See `Settings`.

    Returns
    -------
    Measurement
        To be added to the release.

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.
    """
    rows = as_matrix(X, name="X", columns=release.n_inputs)
    table = 1 + max(one.table for one in release.measurements)
    return _visit(release, rows, y, rows if X_query is None else X_query, table=table, **settings)


def _visit(
    release: Release,
    X: Array,
    y: ArrayLike,
    X_query: ArrayLike,
    *,
    table: int,
    epsilon: float,
    delta: float,
    query_weight: ArrayLike | None = None,
    groups: Iterable[Hashable] | None = None,
    gap: float = 1e-3,
    progress: Progress | None = None,
    insecure_seed: int | None = None,
) -> Measurement:
    weights = None if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    units = checked_groups(groups, rows=len(X))
    lo, hi = release.measurements[0].answers.bounds
    questions = choose_questions(
        X,
        prior=release.fitted_prior,
        query=Query(
            X=as_matrix(X_query, name="X_query", columns=release.n_inputs), weights=weights
        ),
        bounds=OutputBounds(lo, hi),
        budget=Budget(epsilon=epsilon, delta=delta),
        gap=gap,
        known=release.posterior,
        table=table,
        groups=units,
        progress=progress,
    )
    answers = measure(
        questions.strategy,
        y,
        bounds=(lo, hi),
        epsilon=epsilon,
        delta=delta,
        groups=units,
        insecure_seed=insecure_seed,
    )
    return questions.answered(answers)
