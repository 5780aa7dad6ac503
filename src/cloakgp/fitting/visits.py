"""Later visits: one more step of a fit, designed given a release."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.data import ArrayRows
from cloakgp.design import DesignGapWarning, Progress
from cloakgp.fitting.bands import Stage, Step
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.expected import ExpectedTable
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.passes import Rows, RowTable
from cloakgp.fitting.refusals import WrongKindError, refuse
from cloakgp.fitting.steps import take_step
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import DesignSettings, Model, Table
from cloakgp.fitting.thinning import ROUGHLY
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import CountLikelihood, QuantileLikelihood
from cloakgp.models.summary import summarise
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.budgets import Pair
from cloakgp.privacy.checks import PrivacyParameterWarning, warn_of_parameters
from cloakgp.privacy.cohorts import (
    DISJOINT,
    OVERLAPPING,
    Cohorts,
    People,
    compare_ids,
    join_cohorts,
)
from cloakgp.privacy.entries import check_apart, check_same_order
from cloakgp.privacy.filters import costs_of_release
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise_choice import (
    budgets_at_equal_total,
    check_noise,
    choose_noise,
    laws_beside,
    noises_for,
)
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import DenseStrategy, Measurement, Release, StreamedStrategy
from cloakgp.release.common_values import found_alike
from cloakgp.release.hyperparameters.learning import reweighed
from cloakgp.release.measurement import is_in_bands, same_groups, tables_of
from cloakgp.release.points import complete_points
from cloakgp.release.strategy import Strategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import (
    AUTO,
    DEFAULT_BAND,
    DEFAULT_GAP,
    BandChoice,
    NoiseChoice,
    NoiseName,
)

# What accounts note of the people in a new table.
ALL_OTHERS = "in none of the tables before, as the caller says"
COMPARED = "compared with those of the tables before by the caller's ids"


class Settings(TypedDict, total=False):
    """How outputs are measured again.

    Attributes
    ----------
    epsilon : float
        The budget of this measurement, on top of what was spent. Required.
    delta : float
        The other part of the budget; 0 if not given.
    noise : {"auto", "gaussian", "laplace"}
        "auto", if not given: that of earlier answers about the same people, as a law that these
        chose could not be added up; within a limit (`Release.within`), and of people of whom
        nothing was asked, the one that is expected to predict better, given all that is known and
        at the same total with what was spent; see `cloakgp.privacy.noise_choice`.
    query_weight : array-like of shape (P,)
        Positive importance of the query points.
    band : "auto", float or None
        To how many predictive sds on either side of their predicted means outputs are clipped, so
        that questions cost less. None clips them to the bounds alone. "auto", if not given: 1, and
        None where by published counts more than half of the outputs seem to be at single values, 0
        and 1 say, as a band around these would hide the others. Of no meaning for classes and
        quantiles.
    groups : iterable of N texts or whole numbers
        Whose row it is: all rows of one group are protected together. A table that is asked again
        keeps its groups. New rows of a release that protects groups must have some.
    exposure : array-like of shape (N,)
        Of counts in new rows, as for `DPGPRegressor.fit`.
    gap : float
        Certified relative gap at which the design stops.
    progress : callable
        Called with the certified gap while the design improves.
    insecure_seed : int
        Makes the noise reproducible and the release **not private**.
    """

    epsilon: Required[float]
    delta: float
    noise: NoiseChoice
    query_weight: ArrayLike | None
    band: BandChoice
    groups: Iterable[Hashable] | None
    exposure: ArrayLike | None
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
    """Ask the first table of a release again, where predictions are uncertain.

    Designs new questions given all that is known, spends what is asked for here, and returns a
    release that knows both. Its guarantee adds up prices that were fixed before any answer was
    read; see `Release.within` for those that are chosen by answers. y goes to `cloakgp.privacy.ask`
    and nowhere else.

    Parameters
    ----------
    release : Release
        It is left as it is.
    y : array-like of shape (N,), or ArrayRows, FileRows or DaskRows
        Private: the same outputs, or labels of classes, in the same order, as when the table was
        first asked. Of a table that was read in passes the rows themselves, in any order.
    X_query : array-like or table of shape (P, D), optional
        New query points; by default the earlier ones. Columns of a table are found by
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
    _check_release(release)
    _check_kept(release)
    first = release.measurements[0].strategy
    visit = replace(_visit_of(release, X_query, settings), table=first.table)
    if visit.query is None:
        weights = settings.get("query_weight")
        given = first.query_weights if weights is None else np.asarray(weights, dtype=np.float64)
        visit = replace(visit, query=Query(X=first.X_query, weights=given))
    if isinstance(y, Rows):
        _check_passes(release, y, settings, queried=X_query is not None)
        if not isinstance(first, StreamedStrategy):
            refuse("rows are kept")
        _check_alone(first, rows=y)
        first.verify(y, question=release.measurements[0].question)
        table = RowTable.of(y, transform=release.transform, number=first.table)
        return ask_again(release, table, table.passes, visit)
    _check_held(release)
    check_same_order(y, settings.get("groups"))
    if not isinstance(first, DenseStrategy):
        refuse("rows are not kept")
    assert isinstance(first, DenseStrategy)
    owners = checked_groups(settings.get("groups"), rows=len(first.X))
    if owners is not None and not same_groups(owners, first.groups):
        refuse("other groups")
    kept = None if first.groups is None else first.groups.tolist()
    if settings.get("exposure") is not None:
        raise ValueError("exposure is of new rows: those that are asked again have theirs")
    held = HeldTable.of(
        first.X, groups=kept, exposure=first.row_exposure, transform=release.transform
    )
    named = kept is not None or settings.get("groups") is not None
    return ask_again(release, replace(held, number=first.table, named=named), y, visit)


@forget_on_failure
def extend(
    release: Release,
    X: ArrayLike | Rows,
    y: ArrayLike | None = None,
    X_query: ArrayLike | None = None,
    *,
    by_rows: bool = False,
    people: People = OVERLAPPING,
    ids: Sequence[Iterable[Hashable]] | None = None,
    **settings: Unpack[Settings],
) -> Release:
    """Ask new rows, given a release, and return a release that combines both.

    The guarantee stated afterwards adds up all measurements, as if everybody were in every table,
    at prices that were fixed before any answer was read; see `Release.within` for others.
    If the new rows are other people, say ``people="disjoint"``: each person is protected by the
    measurements of their own table alone, and that is stated (`cloakgp.privacy.cohorts`). With
    ``ids``, measurements add up by person. If the release protects all rows of a person together,
    new rows must say whose they are; with ``by_rows=True`` each is protected on its own, and so is
    what the release then states.

    Parameters
    ----------
    release : Release
        It is left as it is.
    X : array-like or table of shape (N, D), or ArrayRows, FileRows or DaskRows
        Public inputs of the new rows. Columns of a table are found by name, as by
        `Release.predict`. Rows from `cloakgp.data` are read in passes, with their outputs; so are
        arrays, if the release keeps no rows.
    y : array-like of shape (N,), optional
        Their private outputs, or labels of the release's classes, unless X has them.
    X_query : array-like or table of shape (P, D), optional
        Query points; by default the new rows, or k-means centres of many.
    by_rows : bool
        That each new row is protected on its own, though the release protects persons.
    people : {"overlapping", "disjoint"}
        Whether anybody in the tables so far may be in the new one. That nobody is, is the word of
        the caller, and stands in what an account in force notes.
    ids : sequence of iterables of texts or whole numbers, optional
        Whose each row is, of each table in the order in which they were asked, and of the new one
        at the end. Not kept. People who are in several tables are found; if they were said to be
        disjoint, that is refused before anything is drawn.
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
    >>> others = extend(first, X + 10, X[:, 0] / 10, people="disjoint", epsilon=0.5, delta=1e-3)
    >>> round(both.guarantee.epsilon, 1), round(others.guarantee.epsilon, 1)
    (1.0, 0.5)
    """
    _check_release(release)
    _check_whose(
        release,
        grouped=X.grouped if isinstance(X, Rows) else settings.get("groups") is not None,
        by_rows=by_rows,
    )
    visit = _visit_of(release, X_query, settings)
    number = 1 + max(one.strategy.table for one in release.measurements)
    rows: Rows | None = None
    if isinstance(X, Rows):
        if y is not None:
            raise ValueError("rows have their outputs with them: leave out y")
        rows = X
        _check_passes(release, rows, settings, queried=X_query is not None)
    elif y is None:
        raise ValueError("y is missing: give an output for every row of X")
    else:
        groups = settings.get("groups")
        check_apart(release.input_names if release.schema is None else release.schema.sources, y)
        last = () if ids is None else ids[-1:]
        check_same_order(X, y, groups, settings.get("exposure"), *last)
        inputs = complete_points(release, X)
        if any(isinstance(one.strategy, StreamedStrategy) for one in release.measurements):
            rows = ArrayRows(
                inputs,
                y,
                input_names=release.input_names,
                output_name=release.output_name,
                groups=None if groups is None else list(groups),
            )
            own = Settings(epsilon=settings["epsilon"])
            _check_passes(release, rows, own, queried=X_query is not None)
    if rows is not None:
        _check_unbanded(release)
        summary = summarise(rows)
        if visit.query is None:
            visit = replace(visit, query=Query(*summary.centres(LARGEST_DEFAULT_QUERY)))
        table = RowTable.of(rows, transform=release.transform, summary=summary, number=number)
        return ask_again(
            release, table, table.passes, _among(visit, release, table, people=people, ids=ids)
        )
    _check_held(release)
    assert y is not None
    exposure = settings.get("exposure")
    if exposure is not None and not isinstance(release.likelihood, CountLikelihood):
        raise ValueError("exposure is of counts, and this release is about other outputs")
    held = HeldTable.of(inputs, groups=groups, exposure=exposure, transform=release.transform)
    if visit.query is None:
        weights = settings.get("query_weight")
        chosen = None if weights is None else np.asarray(weights, dtype=np.float64)
        visit = replace(visit, query=Query(X=inputs, weights=chosen))
    held = replace(held, number=number)
    return ask_again(release, held, y, _among(visit, release, held, people=people, ids=ids))


def protects_persons(release: Release) -> bool:
    """Return whether rows of a table were protected together, as those of one person."""
    return any(one.strategy.grouped for one in release.measurements)


def expect_extension(
    release: Release,
    X: Array,
    X_query: Array | None = None,
    *,
    people: People = OVERLAPPING,
    **settings: Unpack[Settings],
) -> Release:
    """Return what `extend` would, if answers were as the release predicts. Nothing is asked.

    Parameters
    ----------
    release : Release
        Of numbers, or an expected one (`Forecast.release`).
    X : array of shape (N, D)
        Public inputs of the new rows.
    X_query : array of shape (P, D), optional
        By default the new rows.
    people : {"overlapping", "disjoint"}
    **settings
        As for `extend`.

    Returns
    -------
    Release
        Its sds are the expected ones. No output is in it, and it states no guarantee.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=0.5)
    >>> (first,) = model.forecast(X)
    >>> both = expect_extension(first.release, X, people="disjoint", epsilon=0.5, delta=0.0)
    >>> sds = [float(each.predict_latent(X).sd.mean()) for each in (first.release, both)]
    >>> sds[1] < sds[0]
    True
    """
    number = 1 + max(one.strategy.table for one in release.measurements)
    groups = checked_groups(settings.get("groups"), rows=len(X))
    table = ExpectedTable(X=X, groups=groups, transform=release.transform, number=number)
    known = tables_of(release.measurements)
    visit = _visit_of(release, X_query, settings)
    visit = replace(
        visit,
        query=visit.query or Query(X=X),
        table=number,
        cohorts=join_cohorts(release.cohorts, (), tables=(known, [number]), people=people),
    )
    return visit_table(replace(release, hyperprior=None), table, None, visit)


def expect_places(
    release: Release, table: ExpectedTable, *, query: Query, budget: Budget
) -> Release:
    """Return what `expect_extension` would, of places that stand for the rows of a table.

    Parameters
    ----------
    release : Release
        Of places (`Forecast.release`).
    table : ExpectedTable
        Places, from `cloakgp.fitting.thinning.Thinned`.
    query : Query
    budget : Budget
        With as much less noise as a place stands for rows, or a person for persons.

    Returns
    -------
    Release
        Its sds are the expected ones. No output is in it, and it states no guarantee.
    """
    model = Model(
        prior=release.prior,
        question=release.measurements[0].question,
        likelihood=release.likelihood,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DesignGapWarning)
        _, measurement = take_step(
            table,
            None,
            model,
            Step(stage=Stage(share=1.0, width=DEFAULT_BAND), budget=budget),
            settings=DesignSettings(query=query, gap=ROUGHLY),
            known=release,
            insecure_seed=None,
        )
    return table.finish(_added(release, measurement))


def expect_refinement(
    release: Release, X_query: Array | None = None, **settings: Unpack[Settings]
) -> Release:
    """Return what `refine` would, if answers were as the release predicts. Nothing is asked.

    Parameters
    ----------
    release : Release
        Of numbers, whose rows are held.
    X_query : array of shape (P, D), optional
    **settings
        As for `refine`.

    Returns
    -------
    Release
        As of `expect_extension`.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> (first,) = DPGPRegressor(bounds=(-1, 1), epsilon=0.5).forecast(X)
    >>> both = expect_refinement(first.release, epsilon=0.5, delta=0.0)
    >>> sds = [float(each.predict_latent(X).sd.mean()) for each in (first.release, both)]
    >>> sds[1] < sds[0]
    True
    """
    first = release.measurements[0].strategy
    assert isinstance(first, DenseStrategy)
    table = ExpectedTable(
        X=first.X, groups=first.groups, transform=release.transform, number=first.table
    )
    visit = _visit_of(release, X_query, settings)
    visit = replace(
        visit,
        query=visit.query or Query(X=first.X_query, weights=first.query_weights),
        table=first.table,
    )
    return visit_table(replace(release, hyperprior=None), table, None, visit)


@dataclass(frozen=True, eq=False)
class Visit:
    """A later visit: its price, and how its questions are designed.

    Attributes
    ----------
    budget : Budget
    query : Query or None
    band : float or None
    gap : float
    progress : callable or None
    insecure_seed : int or None
    cohorts : tuple of tuples of int
        Of the tables, with those that this visit asks.
    table : int
        The number of that which this visit asks.
    people : str
        What the caller says of whose they are.
    """

    budget: Budget
    query: Query | None
    band: float | None
    gap: float
    progress: Progress | None
    insecure_seed: int | None
    cohorts: Cohorts
    table: int = 0
    people: str = ""


def _visit_of(release: Release, X_query: ArrayLike | None, settings: Settings) -> Visit:
    """Return a visit, after checking its price.

    Raises
    ------
    TypeError
        If a setting is unknown, or the budget is missing.
    ValueError
        If a setting makes no sense.
    """
    unknown = sorted(settings.keys() - Settings.__annotations__.keys())
    if unknown:
        raise TypeError(
            f"a later visit has no setting {', '.join(unknown)}: it may have "
            f"{', '.join(Settings.__annotations__)}"
        )
    if settings.get("epsilon") is None:
        raise TypeError(
            "epsilon is missing: give the budget of this visit, on top of what was spent"
        )
    epsilon, delta, noise = (
        settings["epsilon"],
        settings.get("delta", 0.0),
        settings.get("noise", AUTO),
    )
    check_noise(noise, epsilon=epsilon, delta=delta)
    banded = release.likelihood.linear or release.likelihood.windowed
    band = _band_of(release, settings.get("band", "auto")) if banded else None
    weights, query = settings.get("query_weight"), None
    if X_query is not None:
        query = Query(
            X=complete_points(release, X_query, name="X_query"),
            weights=None if weights is None else np.asarray(weights, dtype=np.float64),
        )
    return Visit(
        budget=Budget(epsilon, delta, noise=noise),
        query=query,
        band=band,
        gap=settings.get("gap", DEFAULT_GAP),
        progress=settings.get("progress"),
        insecure_seed=settings.get("insecure_seed"),
        cohorts=release.cohorts,
    )


def _among(
    visit: Visit,
    release: Release,
    table: RowTable | HeldTable,
    *,
    people: People,
    ids: Sequence[Iterable[Hashable]] | None,
) -> Visit:
    """Return a visit to a new table that says which people are in which tables.

    Raises
    ------
    ValueError
        If ids contradict that.
    """
    known = tables_of(release.measurements)
    cohorts = join_cohorts(release.cohorts, (), tables=(known, [table.number]), people=people)
    if ids is None:
        said = ALL_OTHERS if people == DISJOINT else ""
        if said and any(_has_inputs_of(table, strategy) for strategy in known.values()):
            warnings.warn(
                "the new table has the inputs of one before: people='disjoint' says that these are "
                "other people at the same places. The same people asked again pay for both",
                PrivacyParameterWarning,
                stacklevel=3,
            )
        return replace(visit, cohorts=cohorts, table=table.number, people=said)
    if any(isinstance(one.question, MarginQuestion) for one in release.measurements):
        raise ValueError(
            "ids cannot be compared with those of rows that were kept out by a draw: leave out ids"
        )
    compared = compare_ids(
        ids,
        rows={**{each: one.n_rows for each, one in known.items()}, table.number: table.rows},
        groups={
            **{each: one.groups for each, one in known.items() if one.grouped},
            **({table.number: getattr(table, "groups", None)} if table.grouped else {}),
        },
        apart=[known, [table.number]] if people == DISJOINT else (),
    )
    return replace(visit, cohorts=compared, table=table.number, people=COMPARED)


def _has_inputs_of(table: RowTable | HeldTable, strategy: Strategy) -> bool:
    """Return whether a table looks like one that was asked, by its inputs in whatever order."""
    if isinstance(table, HeldTable):
        return (
            isinstance(strategy, DenseStrategy)
            and strategy.X.shape == table.X.shape
            and np.array_equal(_sorted_rows(table.X), _sorted_rows(strategy.X))
        )
    return (
        isinstance(strategy, StreamedStrategy)
        and strategy.rows == table.rows
        and np.array_equal(strategy.input_ranges, table.summary.ranges)
    )


def _sorted_rows(X: Array) -> Array:
    """Return rows in an order that they alone decide."""
    return X[np.lexsort(X.T)]


@forget_on_failure
@one_charge
def ask_again(release: Release, table: Table, y: Any, visit: Visit) -> Release:
    """Ask a table, and return a release that knows one more measurement.

    Parameters
    ----------
    release : Release
    table : Table
    y : array-like of shape (N,), or Rows
        Private: handed to `cloakgp.privacy.ask`, and touched nowhere else.
    visit : Visit
    """
    return visit_table(release, table, y, visit)


def visit_table(release: Release, table: Table, y: Any, visit: Visit) -> Release:
    """Ask a table as `ask_again` does, counted by whoever calls; an expected one costs nothing.

    Parameters
    ----------
    release, table, y, visit
        As for `ask_again`.
    """
    epsilon, delta, question = *visit.budget.pair, release.measurements[0].question
    warn_of_parameters(epsilon=epsilon, delta=delta, rows=table.rows)
    streamed = any(isinstance(one.strategy, StreamedStrategy) for one in release.measurements)
    if streamed and isinstance(table, HeldTable) and visit.band is not None:
        refuse("bands beside passes")
    assert visit.query is not None
    model = Model(prior=release.prior, question=question, likelihood=release.likelihood)
    settings = DesignSettings(query=visit.query, gap=visit.gap, progress=visit.progress)

    def step_with(noise: NoiseName, budget: Pair = visit.budget.pair) -> Step:
        return Step(stage=Stage(share=1.0, width=visit.band), budget=Budget(*budget, noise=noise))

    # By people of the table that is asked.
    others = {table for cohort in visit.cohorts if visit.table in cohort for table in cohort}
    earlier = [
        one.answers
        for one in release.measurements
        if not visit.cohorts or one.strategy.table in others
    ]
    allowed = noises_for(visit.budget.noise, epsilon=epsilon, delta=delta)
    if release.limit is None:
        allowed = laws_beside(allowed, earlier=[answers.noise for answers in earlier])

    @cache
    def budgets() -> dict[NoiseName, Pair]:
        spent = [answers.guarantee for answers in earlier]
        return budgets_at_equal_total(allowed, epsilon=epsilon, delta=delta, spent=spent)

    noise = choose_noise(
        allowed[0] if len(allowed) == 1 else visit.budget.noise,
        epsilon=epsilon,
        delta=delta,
        expected_error=lambda name: table.expected_error(
            step_with(name, budgets()[name]), model, settings, known=release
        ),
    )
    if release.limit is not None:
        release.check_limit(
            costs_of_release(epsilon, delta, noise=noise),
            table=visit.table,
            cohorts=visit.cohorts,
        )
    _, measurement = take_step(
        table,
        y,
        model,
        step_with(noise),
        settings=settings,
        known=release,
        insecure_seed=visit.insecure_seed,
    )
    together = (*release.measurements, measurement)
    relearned = isinstance(table, HeldTable) and not streamed and release.hyperprior is not None
    later = release.with_measurements(together) if relearned else _added(release, measurement)
    origin = later.provenance
    if origin is not None:
        origin = origin.allow(delta, noise=visit.budget.noise)
    return replace(
        table.finish(later), visits=release.visits + 1, cohorts=visit.cohorts, provenance=origin
    )


def _added(release: Release, measurement: Measurement) -> Release:
    """Return a release that knows one more measurement; its priors stay.

    To learn hyperparameters anew would take rows that are not there. Where predictions average over
    several priors, these are weighed anew.
    """
    together = (*release.measurements, measurement)
    return replace(
        release,
        measurements=together,
        learned=reweighed(release.learned, before=release.measurements, after=together),
        hyperprior=None,
        calibration=None,
        kept=None,
        provenance=None if release.provenance is None else release.provenance.successor(together),
    )


def _check_release(release: object) -> None:
    """Refuse what has no questions of this kind to go on from.

    Raises
    ------
    TypeError
    """
    if not isinstance(release, Release):
        raise WrongKindError(
            f"later visits go on from a Release, and not from {type(release).__name__}: give the "
            "release_ of a regressor, quantile regressor or classifier of public inputs, or what "
            "load returns of it"
        )


def _check_whose(release: Release, *, grouped: bool, by_rows: bool) -> None:
    """Refuse new rows without persons if a release protects persons.

    Raises
    ------
    ValueError
    """
    if grouped and by_rows:
        raise ValueError("by_rows and groups contradict each other: give one of them")
    if not grouped and not by_rows and protects_persons(release):
        refuse("persons without groups")


def check_visit(release: Release, *, new_rows: bool) -> None:
    """Refuse a later visit that would be refused whatever the rows are.

    Parameters
    ----------
    release : Release
    new_rows : bool
        Whether `extend` is to be called, or `refine`.

    Raises
    ------
    TypeError, ValueError
    """
    if not new_rows:
        _check_kept(release)
    if not any(isinstance(one.strategy, StreamedStrategy) for one in release.measurements):
        _check_held(release)
        return
    _check_passable(release)
    if new_rows:
        _check_unbanded(release)
    else:
        _check_alone(release.measurements[0].strategy)


def _check_kept(release: Release) -> None:
    """Refuse to ask rows again of which some were kept out by a draw."""
    if any(isinstance(one.question, MarginQuestion) for one in release.measurements):
        refuse("kept rows again")


def _check_alone(strategy: Strategy, rows: Rows | None = None) -> None:
    """Refuse to ask rows of persons in passes again."""
    if strategy.grouped or (rows is not None and rows.grouped):
        refuse("groups in passes again")


def _band_of(release: Release, given: BandChoice) -> float | None:
    """Return the band of a later visit, of a release of numbers.

    Raises
    ------
    ValueError
        If it is no band.
    """
    if isinstance(given, str) and given == AUTO:
        return None if found_alike(release.measurements) else DEFAULT_BAND
    if given is not None and (isinstance(given, str) or not 0 < given < np.inf):
        raise ValueError(f"band must be positive and finite, None or {AUTO!r}, got {given}")
    return given


def _check_unbanded(release: Release) -> None:
    """Refuse rows in passes beside answers about bands."""
    if is_in_bands(release.measurements):
        refuse("passes beside bands")


def _check_passable(release: Release) -> None:
    """Refuse rows in passes beside answers that they add nothing to."""
    if isinstance(release.likelihood, QuantileLikelihood | CountLikelihood):
        refuse("cells in passes again")
    if not isinstance(release.measurements[0].question, OutputBounds):
        refuse("labels in passes again")
    if not isinstance(release.fitted_prior, SparsePrior):
        refuse("exact prior in passes")


def _check_held(release: Release) -> None:
    """Refuse to ask held rows given answers that nothing can be added to."""
    if release.likelihood.linear:
        return
    if release.inference not in ("posterior", "iterated"):
        refuse("the papers' iteration again")
    if any(isinstance(one.strategy, StreamedStrategy) for one in release.measurements):
        refuse("labels in passes again")


def _check_passes(release: Release, rows: Rows, settings: Settings, *, queried: bool) -> None:
    """Refuse rows that are read in passes and do not go with a release.

    Raises
    ------
    TypeError, ValueError
    """
    if settings.get("groups") is not None:
        raise ValueError(
            "groups of rows that are read in passes go with the rows: ArrayRows(..., groups=...)"
        )
    if not queried and settings.get("query_weight") is not None:
        raise ValueError("query_weight goes with X_query: give both")
    _check_passable(release)
    if rows.n_inputs != release.n_inputs:
        raise ValueError(f"the rows have {rows.n_inputs} inputs, expected {release.n_inputs}")
    names = tuple(rows.input_names)
    if names and release.input_names and names != release.input_names:
        raise ValueError(
            f"the rows' inputs are {', '.join(names)}: name them as the release does, "
            f"{', '.join(release.input_names)}"
        )
