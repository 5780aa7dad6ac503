"""Later measurements of private outputs, designed given what a release already knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.data import ArrayRows
from cloakgp.design import Progress
from cloakgp.fitting.measuring import about_everybody, measured
from cloakgp.fitting.reach import reach_of_rows
from cloakgp.fitting.strategies import Budget, Query, choose_strategy
from cloakgp.fitting.streaming_measuring import Rows
from cloakgp.fitting.streaming_remeasure import Later, added, extend_rows, refine_rows
from cloakgp.models import NotPositiveDefiniteError
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.bands import UNIT_BAND, Bands, SpreadQuestion
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.groups import Groups, checked_groups
from cloakgp.privacy.noise import noise_for
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.privacy.transforms import transform_outputs
from cloakgp.release import DenseStrategy, Release, StreamedStrategy
from cloakgp.release.bands import account_in_bands, choose_bands
from cloakgp.release.measurement import same_groups
from cloakgp.release.predictions import complete_points
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseChoice


class Settings(TypedDict, total=False):
    """How outputs are measured again.

    Attributes
    ----------
    epsilon, delta : float
        The budget of this measurement, on top of what was spent. Required.
    noise : {"auto", "gaussian", "laplace"}
        "auto", if not given: Laplace noise where δ is 0, else Gaussian.
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
    noise: NoiseChoice
    query_weight: ArrayLike | None
    band: float | None
    groups: Iterable[Hashable] | None
    gap: float
    progress: Progress | None
    insecure_seed: int | None


@forget_on_failure
def refine(
    release: Release,
    y: ArrayLike | Rows,
    X_query: ArrayLike | None = None,
    **settings: Unpack[Settings],
) -> Release:
    """Ask the first table of a release again, for what the answers so far leave open.

    Designs new questions given all that is known, spends what is asked for here, and returns a
    release that knows both. y goes to `cloakgp.privacy.queries` and nowhere else.

    Parameters
    ----------
    release : Release
        It is left as it is.
    y : array-like of shape (N,), or ArrayRows, FileRows or DaskRows
        Private: the same outputs, in the same order, as when the table was first asked. Of a table
        that was read in passes the rows themselves, in any order.
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
        If it is another kind of release, or its rows are needed and it keeps none.
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> first = DPGPRegressor(bounds=(-1, 1), epsilon=0.5, delta=1e-3).fit(X, X[:, 0] / 10).release_
    >>> second = refine(first, X[:, 0] / 10, [[2.0]], epsilon=0.5, delta=1e-3)
    >>> len(first.measurements), len(second.measurements)
    (3, 4)
    """
    if isinstance(y, Rows):
        return refine_rows(release, y, _later(release, X_query, **settings))
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
    return measured_again(release, first.X, y, points, table=first.table, **settings)


@forget_on_failure
def extend(
    release: Release,
    X: ArrayLike | Rows,
    y: ArrayLike | None = None,
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
        It is left as it is.
    X : array-like or table of shape (N, D), or ArrayRows, FileRows or DaskRows
        Public inputs of the new rows. Columns of a table are found by name, as by
        `Release.predict`. Rows from `cloakgp.data` are read in passes, with their outputs; so are
        arrays, if the release keeps no rows.
    y : array-like of shape (N,), optional
        Their private outputs, unless X has them.
    X_query : array-like or table of shape (P, D), optional
        Where predictions matter; the new rows if not given, or k-means centres of many.
    **settings
        ``epsilon`` and ``delta``, and what else `Settings` lists.

    Returns
    -------
    Release

    Raises
    ------
    TypeError
        If it is another kind of release, or its rows are needed and it keeps none.
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> first = DPGPRegressor(bounds=(-1, 1), epsilon=0.5, delta=1e-3).fit(X, X[:, 0] / 10).release_
    >>> both = extend(first, X + 10, X[:, 0] / 10, epsilon=0.5, delta=1e-3)
    >>> [one.strategy.table for one in both.measurements]
    [0, 0, 0, 1]
    """
    if isinstance(X, Rows):
        if y is not None:
            raise ValueError("rows have their outputs with them: leave out y")
        return extend_rows(release, X, _later(release, X_query, **settings))
    if y is None:
        raise ValueError("y is missing: give an output for every row of X")
    rows = complete_points(release, X)
    if any(isinstance(one.strategy, StreamedStrategy) for one in release.measurements):
        names, name = release.input_names, release.output_name
        groups = settings.pop("groups", None)
        table_rows = ArrayRows(
            rows,
            y,
            input_names=names,
            output_name=name,
            groups=None if groups is None else list(groups),
        )
        return extend_rows(release, table_rows, _later(release, X_query, **settings))
    _kept_strategy(release)
    table = 1 + max(one.strategy.table for one in release.measurements)
    points = rows if X_query is None else X_query
    return measured_again(release, rows, y, points, table=table, **settings)


def _later(release: Release, X_query: ArrayLike | None, **settings: Unpack[Settings]) -> Later:
    """Return how rows that are read in passes are to be asked.

    Raises
    ------
    ValueError
        If a setting makes no sense, or does not go with passes.
    """
    budget = _budget(settings["epsilon"], settings["delta"], settings.get("noise", "auto"))
    if settings.get("groups") is not None:
        raise ValueError(
            "groups of rows that are read in passes go with the rows: ArrayRows(..., groups=...)"
        )
    weights = settings.get("query_weight")
    if X_query is None and weights is not None:
        raise ValueError("query_weight goes with X_query: give both")
    query = None if X_query is None else _query(release, X_query, weights)
    return Later(
        budget=budget,
        query=query,
        band=_checked_band(settings.get("band", 1.0)),
        gap=settings.get("gap", 1e-3),
        progress=settings.get("progress"),
        insecure_seed=settings.get("insecure_seed"),
    )


def _budget(epsilon: float, delta: float, noise: NoiseChoice) -> Budget:
    return Budget(epsilon, delta, noise=noise_for(noise, epsilon=epsilon, delta=delta))


def _checked_band(band: float | None) -> float | None:
    if band is not None and not 0 < band < np.inf:
        raise ValueError(f"band must be positive and finite, or None, got {band}")
    return band


def _query(release: Release, X_query: ArrayLike, query_weight: ArrayLike | None) -> Query:
    return Query(
        X=complete_points(release, X_query, name="X_query"),
        weights=None if query_weight is None else np.asarray(query_weight, dtype=np.float64),
    )


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
    if isinstance(answers, Answers):
        raise TypeError(
            "this release keeps no row: to ask them again, give the rows with their outputs, as to "
            "fit_rows"
        )
    raise TypeError("this release cannot be measured again: only one about numbers can")


@forget_on_failure
@one_charge
def measured_again(
    release: Release,
    X: Array,
    y: ArrayLike,
    X_query: ArrayLike,
    *,
    table: int,
    epsilon: float,
    delta: float,
    noise: NoiseChoice = "auto",
    query_weight: ArrayLike | None = None,
    band: float | None = 1.0,
    groups: Iterable[Hashable] | None = None,
    gap: float = 1e-3,
    progress: Progress | None = None,
    insecure_seed: int | None = None,
) -> Release:
    """Return a release that knows one more measurement."""
    budget = _budget(epsilon, delta, noise)
    warn_of_parameters(epsilon=epsilon, delta=delta, rows=len(X))
    if _checked_band(band) is not None and any(
        isinstance(one.strategy, StreamedStrategy) for one in release.measurements
    ):
        raise ValueError(
            "rows that are kept are not asked in bands beside others that are not: give band=None"
        )
    units = checked_groups(groups, rows=len(X))
    answers = release.measurements[0].answers
    if not isinstance(answers, Answers):
        raise TypeError("only answers about numbers can be added to")
    bounds = OutputBounds(*answers.bounds)
    query = _query(release, X_query, query_weight)
    design = partial(
        design_stage,
        X=X,
        query=query,
        bounds=bounds,
        budget=budget,
        table=table,
        groups=units,
        band=band,
        gap=gap,
        progress=progress,
    )
    try:
        stage = design(release)
    except NotPositiveDefiniteError:
        # Hyperparameters that were learned may make no covariance of these rows; those that were
        # declared do, or the first stage would have been refused.
        stage = design(release.without_learning())
    if release.transform is not None:
        y = transform_outputs(y, transform=release.transform, rows=len(X))
    measurement = measured(
        stage.strategy,
        y,
        encoding=stage.encoding,
        budget=budget,
        after_answers=True,
        insecure_seed=insecure_seed,
    )
    if release.hyperprior is None:
        return added(release, measurement)
    return release.with_measurements((*release.measurements, measurement))


@dataclass(frozen=True, eq=False)
class StageDesign:
    """What a later stage will ask, and of what.

    Attributes
    ----------
    strategy : DenseStrategy
    encoding : OutputBounds or Bands
    expected : array of shape (N,)
        Encoded outputs, as the answers so far expect them.
    """

    strategy: DenseStrategy
    encoding: OutputBounds | Bands
    expected: Array


def design_stage(
    release: Release,
    X: Array,
    query: Query,
    *,
    bounds: OutputBounds,
    budget: Budget,
    table: int,
    groups: Groups | None,
    band: float | None,
    gap: float,
    progress: Progress | None,
) -> StageDesign:
    """Choose bands and questions given what a release knows. Sees no output.

    Parameters
    ----------
    release : Release
    X : array of shape (N, D)
        The rows to ask.
    query : Query
    bounds : OutputBounds
        Declared, or found.
    budget : Budget
        Of this stage.
    table : int
    groups : array of shape (N,) or None
    band : float or None
        To how many predictive sds on either side outputs are clipped.
    gap : float
    progress : callable or None
    """
    known = release.posterior
    mean, variance = known.outputs(X, table=table)
    encoding: OutputBounds | Bands = bounds
    account, expected = None, mean - bounds.middle
    if band is not None:
        reach = reach_of_rows(bounds, release.measurements, rows=len(X))
        encoding = choose_bands(mean, variance, width=band, bounds=reach)
        account = account_in_bands(mean, variance, bands=encoding)
        expected = account.expected
    strategy = choose_strategy(
        X,
        prior=release.fitted_prior,
        likelihood=release.likelihood,
        encoding=bounds if band is None else OutputBounds(*UNIT_BAND),
        query=query,
        budget=budget,
        gap=gap,
        known=known,
        table=table,
        groups=groups,
        account=account,
        progress=progress,
    )
    return StageDesign(strategy=strategy, encoding=encoding, expected=expected)


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
    within = reach_of_rows(bounds, release.measurements, rows=len(first.X))
    question = SpreadQuestion(mean=within.clip(mean), sd=np.sqrt(variance))
    strategy = about_everybody(
        first.X,
        X_query=first.X_query,
        query_weights=first.query_weights,
        table=first.table,
        groups=first.groups,
    )
    measurement = measured(
        strategy, y, encoding=question, budget=budget, insecure_seed=insecure_seed
    )
    return release.with_measurements((*release.measurements, measurement))
