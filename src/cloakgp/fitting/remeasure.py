"""Later measurements of private outputs, designed given what a release already knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.design import Certificate, Progress
from cloakgp.fitting.bands import account_in_bands, choose_bands
from cloakgp.fitting.measuring import measured
from cloakgp.fitting.strategies import Budget, Query, choose_strategy
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.accounting import check_budget
from cloakgp.privacy.bands import UNIT_BAND, SpreadQuestion
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Release
from cloakgp.release.measurement import same_groups
from cloakgp.utils.arrays import Array, as_inputs


class Settings(TypedDict, total=False):
    """How outputs are measured again.

    Attributes
    ----------
    epsilon, delta : float
        The budget of this measurement, on top of what was spent. Required.
    query_weight : array-like of shape (P,)
        Positive importance of the query points.
    band : float or None
        To how many predictive sds on either side of their predicted means outputs are clipped, so
        that questions cost less; 1 if not given. None clips them to the bounds alone.
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
    band: float | None
    groups: Iterable[Hashable] | None
    gap: float
    progress: Progress | None
    insecure_seed: int | None


@forget_on_failure
def refine(
    release: Release,
    y: ArrayLike,
    X_query: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> Release:
    """Ask the first table of a release again, for what the answers so far leave open.

    Designs new questions given all that is known, spends what is asked for here, and returns a
    release that knows both. y goes to `cloakgp.privacy.gaussian` and nowhere else.

    Parameters
    ----------
    release : Release
        It is left as it is. One that keeps no rows is refused.
    y : array-like of shape (N,)
        Private: the same outputs, in the same order, as when the table was first asked.
    X_query : array-like or table of shape (P, D), optional
        Where predictions matter now; as at first if not given. Columns of a table are found by
        name, as by `Release.predict`.
    **settings
        ``epsilon`` and ``delta``, and what else `Settings` lists.

    Returns
    -------
    Release

    Raises
    ------
    TypeError
        If it is another kind of release, which does not keep what was asked of every row.
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> first = DPGPRegressor(bounds=(-1, 1), epsilon=0.5, delta=1e-3).fit(X, X[:, 0] / 10).release_
    >>> second = refine(first, X[:, 0] / 10, [[2.0]], epsilon=0.5, delta=1e-3)
    >>> len(second.measurements)
    2
    """
    first = _kept_strategy(release)
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
    return _measured(release, first.X, y, points, table=first.table, **settings)


@forget_on_failure
def extend(
    release: Release,
    X: ArrayLike,
    y: ArrayLike,
    X_query: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> Release:
    """Add new rows: ask them, given what a release knows, and return one that knows both.

    The guarantee stated afterwards adds up all measurements, as if everybody were in every table.
    If the new rows are other people, each person is protected by the measurements of their own
    table alone.

    Parameters
    ----------
    release : Release
        It is left as it is. One that keeps no rows is refused.
    X : array-like or table of shape (N, D)
        Public inputs of the new rows. Columns of a table are found by name, as by
        `Release.predict`.
    y : array-like of shape (N,)
        Their private outputs.
    X_query : array-like or table of shape (P, D), optional
        Where predictions matter; the new rows if not given.
    **settings
        ``epsilon`` and ``delta``, and what else `Settings` lists.

    Returns
    -------
    Release

    Raises
    ------
    TypeError
        If it is another kind of release, which does not keep what was asked of every row.
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> first = DPGPRegressor(bounds=(-1, 1), epsilon=0.5, delta=1e-3).fit(X, X[:, 0] / 10).release_
    >>> both = extend(first, X + 10, X[:, 0] / 10, epsilon=0.5, delta=1e-3)
    >>> [one.strategy.n_rows for one in both.measurements]
    [50, 50]
    """
    _kept_strategy(release)
    rows = as_inputs(X, input_names=release.input_names, n_inputs=release.n_inputs)
    table = 1 + max(one.strategy.table for one in release.measurements)
    points = rows if X_query is None else X_query
    return _measured(release, rows, y, points, table=table, **settings)


def _kept_strategy(release: Release) -> DenseStrategy:
    """Return the first strategy of a release that keeps what was asked of every row.

    Raises
    ------
    TypeError
        If it is about something else, or keeps no rows.
    """
    strategy, answers = release.measurements[0].strategy, release.measurements[0].answers
    if isinstance(strategy, DenseStrategy) and isinstance(answers, Answers):
        return strategy
    raise TypeError(
        "this release cannot be measured again: only one that keeps what was asked of every row "
        "about a number can"
    )


def _measured(
    release: Release,
    X: Array,
    y: ArrayLike,
    X_query: ArrayLike,
    *,
    table: int,
    epsilon: float,
    delta: float,
    query_weight: ArrayLike | None = None,
    band: float | None = 1.0,
    groups: Iterable[Hashable] | None = None,
    gap: float = 1e-3,
    progress: Progress | None = None,
    insecure_seed: int | None = None,
) -> Release:
    """Return a release that knows one more measurement."""
    check_budget(epsilon, delta)
    warn_of_parameters(epsilon=epsilon, delta=delta, rows=len(X))
    if band is not None and not 0 < band < np.inf:
        raise ValueError(f"band must be positive and finite, or None, got {band}")
    weights = None if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    units = checked_groups(groups, rows=len(X))
    answers = release.measurements[0].answers
    if not isinstance(answers, Answers):
        raise TypeError("only answers about numbers can be added to")
    bounds, budget = OutputBounds(*answers.bounds), Budget(epsilon=epsilon, delta=delta)
    known = release.posterior
    bands, account = None, None
    if band is not None:
        mean, variance = known.outputs(X, table=table)
        bands = choose_bands(mean, variance, width=band, bounds=bounds)
        account = account_in_bands(mean, variance, bands=bands)
    strategy = choose_strategy(
        X,
        prior=release.fitted_prior,
        likelihood=release.likelihood,
        encoding=bounds if bands is None else OutputBounds(*UNIT_BAND),
        query=Query(
            X=as_inputs(
                X_query,
                input_names=release.input_names,
                n_inputs=release.n_inputs,
                name="X_query",
            ),
            weights=weights,
        ),
        budget=budget,
        gap=gap,
        known=known,
        table=table,
        groups=units,
        account=account,
        progress=progress,
    )
    encoding = bounds if bands is None else bands
    measurement = measured(
        strategy, y, encoding=encoding, budget=budget, insecure_seed=insecure_seed
    )
    return release.with_measurements((*release.measurements, measurement))


@forget_on_failure
def ask_spread(
    release: Release, y: ArrayLike, *, budget: Budget, insecure_seed: int | None = None
) -> Release:
    """Ask how far outside of their predicted intervals the outputs of the first table lie.

    One number: the mean over rows of what `cloakgp.privacy.bands.SpreadQuestion` says. It tells how
    noisy outputs are, which answers about sums of outputs hardly do.

    Parameters
    ----------
    release : Release
        It is left as it is.
    y : array-like of shape (N,)
        Private: the same outputs, in the same order, as when the table was first asked.
    budget : Budget
        On top of what was spent.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.
    """
    first = _kept_strategy(release)
    answers = release.measurements[0].answers
    assert isinstance(answers, Answers)
    mean, variance = release.posterior.outputs(first.X, table=first.table)
    bounds = OutputBounds(*answers.bounds)
    question = SpreadQuestion(mean=bounds.clip(mean), sd=np.sqrt(variance))
    strategy = replace(
        first,
        matrix=np.ones((1, first.n_rows)),
        reconstruction=None,
        representers=None,
        certificate=Certificate(criterion="given", gap=np.inf),
    )
    measurement = measured(
        strategy, y, encoding=question, budget=budget, insecure_seed=insecure_seed
    )
    return release.with_measurements((*release.measurements, measurement))
