"""Later measurements of tables that are read in passes, designed given what a release knows.

Hyperparameters stay those that the release has: to learn them anew would take the first rows again.
Where predictions average over several, these are weighed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cloakgp.data.grouped import GroupedRows
from cloakgp.data.transformed import TransformedRows
from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.sums import StrategySums
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.reach import reach_of_bands
from cloakgp.fitting.strategies import Budget, Query, design_rows, unit_noise_sd
from cloakgp.fitting.streaming_measuring import Rows, bound_of, streamed_strategy
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary, summarise
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.bands import UNIT_BAND
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.streaming import measure_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Measurement, Release, StreamedStrategy
from cloakgp.release.bands import RowBands, RowPrediction
from cloakgp.release.hyperparameters.learning import reweighed
from cloakgp.release.measurement import is_in_bands
from cloakgp.release.posterior.clipped_sums import as_kept, stages_of, sum_stage
from cloakgp.release.strategy import Strategy
from cloakgp.release.streamed_strategy import RuleColumns, same_covariance


@dataclass(frozen=True, eq=False)
class Later:
    """How rows are asked later.

    Attributes
    ----------
    budget : Budget
        On top of what was spent.
    query : Query or None
        Where predictions matter; if None, as at first for the same rows, and k-means centres of new
        ones.
    band : float or None
        To how many predictive sds on either side outputs are clipped; None for the bounds alone.
    gap : float
    progress : callable or None
    insecure_seed : int or None
    """

    budget: Budget
    query: Query | None = None
    band: float | None = 1.0
    gap: float = 1e-3
    progress: Progress | None = None
    insecure_seed: int | None = None


@forget_on_failure
def extend_rows(release: Release, rows: Rows, later: Later) -> Release:
    """Ask other rows, given what a release knows, and return one that knows both.

    Parameters
    ----------
    release : Release
        About numbers, with a sparse prior; of few rows or of many.
    rows : Rows
        If they say whose they are, all rows of a group are protected together.
    later : Later

    Returns
    -------
    Release

    Raises
    ------
    TypeError, ValueError
        If the release or the rows cannot be used, or anything else makes no sense; no message
        quotes an output.
    """
    _check_prior(release)
    if is_in_bands(release.measurements):
        raise TypeError(
            "this release asked outputs in bands, and rows that are read in passes cannot be added "
            "to it: fit it with stages=None, or these rows on their own"
        )
    _check_columns(release, rows)
    table = 1 + max(one.strategy.table for one in release.measurements)
    return _measured(release, rows, later, table=table)


@forget_on_failure
def refine_rows(release: Release, rows: Rows, later: Later) -> Release:
    """Ask the first rows of a release again, for what the answers so far leave open.

    Without a band, inference is exact for the sparse model: one pass sums how far answers share the
    rows' own noise. The design takes that noise to be independent of the earlier answers, as that
    of other rows is, and so is the best for other rows at the same places.

    Parameters
    ----------
    release : Release
        About numbers; its first table was read in passes.
    rows : Rows
        The same rows, in any order and in any chunks.
    later : Later

    Returns
    -------
    Release

    Raises
    ------
    TypeError, ValueError
        As `extend_rows`; and if these are other rows, as far as inputs tell.
    """
    _check_prior(release)
    _check_columns(release, rows)
    first = release.measurements[0].strategy
    if not isinstance(first, StreamedStrategy):
        raise TypeError(
            "the release keeps the rows that are to be asked again: give their outputs alone, in "
            "the order of its rows"
        )
    if rows.grouped or first.grouped:
        raise ValueError(
            "groups of many rows cannot be asked again: guarantees add up if the groups are the "
            "same, and a release does not keep which row belongs to which group"
        )
    first.verify(rows)
    if later.query is None:
        later = replace(later, query=Query(X=first.X_query, weights=first.query_weights))
    return _measured(release, rows, later, table=first.table)


def _check_prior(release: Release) -> None:
    """Refuse a release whose rows cannot be asked in passes.

    Raises
    ------
    TypeError
        If it is about classes, or its prior is an exact one.
    """
    answers, prior = release.measurements[0].answers, release.fitted_prior
    if not isinstance(answers, Answers):
        raise TypeError(
            "this release cannot be measured again: labels were linearised where its answers say "
            "that latent values are, later answers move that, and to linearise anew takes the "
            "first rows. Fit other rows on their own (fit_rows), and combine"
        )
    if not isinstance(prior, SparsePrior):
        raise TypeError(
            "rows that are read in passes need inducing inputs, and this release has an exact "
            "prior: give rows as arrays X and y"
        )


def _check_columns(release: Release, rows: Rows) -> None:
    if rows.n_inputs != release.n_inputs:
        raise ValueError(f"the rows have {rows.n_inputs} inputs, expected {release.n_inputs}")
    names = tuple(rows.input_names)
    if names and release.input_names and names != release.input_names:
        raise ValueError(
            f"the rows' inputs are {', '.join(names)}: name them as the release does, "
            f"{', '.join(release.input_names)}"
        )


def _measured(release: Release, rows: Rows, later: Later, *, table: int) -> Release:
    summary = summarise(rows)
    budget = later.budget
    warn_of_parameters(epsilon=budget.epsilon, delta=budget.delta, rows=summary.count)
    rows = TransformedRows.of(rows, release.transform)
    asking: Rows | GroupedRows = GroupedRows.of(rows) if rows.grouped else rows
    measurement, _ = ask_again(release, asking, later, summary=summary, table=table)
    assert isinstance(measurement.strategy, StreamedStrategy)
    measurement.strategy.columns.forget()
    return added(release, measurement)


def ask_again(
    release: Release,
    rows: Rows | GroupedRows,
    later: Later,
    *,
    summary: Summary,
    table: int,
    cells: Cells | None = None,
) -> tuple[Measurement, StrategySums]:
    """Ask rows given what a release knows.

    Parameters
    ----------
    release : Release
        About numbers, with a sparse prior.
    rows : Rows or GroupedRows
    later : Later
    summary : Summary
        Of the rows.
    table : int
        The number of their table, which the release may know already.
    cells : Cells, optional
        In which what is asked is added up, too.

    Returns
    -------
    Measurement
    StrategySums
        Under the declared prior.
    """
    bounds, known = first_bounds(release), release.posterior
    prior = release.fitted_prior
    assert isinstance(prior, SparsePrior)
    query = later.query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    bands = None
    if later.band is not None:
        within = reach_of_bands(bounds, release.measurements)
        bands = RowBands(
            prediction=row_prediction(release),
            reach=later.band,
            bounds=(within.lo, within.hi),
        )
    asked = design_rows(
        rows,
        summary,
        prior=prior,
        query=query,
        noise_sd=unit_noise_sd(bounds if bands is None else OutputBounds(*UNIT_BAND), later.budget),
        noise=later.budget.noise,
        gap=later.gap,
        known=known,
        bands=bands,
        progress=later.progress,
    )
    columns = RuleColumns(
        model=prior if bands is None else bands,
        rule=asked.rule,
        grouped=asked.grouping is not None,
    )
    # Before outputs are read: what fails here has spent nothing.
    priors, before = _priors(release), stages_of(release.measurements, table)
    sums = sum_stage(
        rows,
        priors,
        columns=columns,
        bands=bands,
        known=release.measurements,
        table=table,
        cells=cells,
    )
    places = _different([one.strategy for one in before])
    answers = measure_rows(
        rows,
        columns,
        bound=bound_of(asked, noise=later.budget.noise),
        bounds=bounds,
        bands=bands,
        epsilon=later.budget.epsilon,
        delta=later.budget.delta,
        after_answers=True,
        insecure_seed=later.insecure_seed,
    )
    earlier = [before[place].strategy for place in places]
    strategy = streamed_strategy(
        asked,
        prior=prior,
        summary=summary,
        query=query,
        sums=[as_kept(*each, shared=places) for each in zip(priors, sums, strict=True)],
        bands=bands,
        table=table,
        earlier=[one for one in earlier if isinstance(one, StreamedStrategy)],
        noise=later.budget.noise,
    )
    return Measurement(strategy=strategy, answers=answers), sums[0]


def row_prediction(release: Release) -> RowPrediction:
    """Return what a release predicts of the output of a row, by its inputs.

    Parameters
    ----------
    release : Release
        About numbers, with a sparse prior.
    """
    known = release.posterior
    assert isinstance(known.prior, SparsePrior)
    return RowPrediction(prior=known.prior, mean=known.inducing_mean(), root=known.inducing_root())


def first_bounds(release: Release) -> OutputBounds:
    """Return the bounds by which outputs were asked first: declared, or found within those.

    Parameters
    ----------
    release : Release
        About numbers.
    """
    answers = release.measurements[0].answers
    assert isinstance(answers, Answers)
    return OutputBounds(*answers.bounds)


def _different(strategies: Sequence[Strategy]) -> list[int]:
    """Return the places of the first of those about the same rows that ask the same."""
    found: list[int] = []
    for place, one in enumerate(strategies):
        if not any(one.same_questions(strategies[other]) for other in found):
            found.append(place)
    return found


def _priors(release: Release) -> list[SparsePrior]:
    """Return the declared prior, and those that were learned, each once."""
    priors: list[SparsePrior] = []
    for one in (release.prior, *(each.prior for each in release.learned)):
        assert isinstance(one, SparsePrior)
        if not any(same_covariance(other, one) and other.mean == one.mean for other in priors):
            priors.append(one)
    return priors


def added(release: Release, measurement: Measurement) -> Release:
    """Return a release that knows one more measurement about numbers; its priors stay.

    Parameters
    ----------
    release : Release
    measurement : Measurement
    """
    together = (*release.measurements, measurement)
    return replace(
        release,
        measurements=together,
        learned=reweighed(release.learned, before=release.measurements, after=together),
        hyperprior=None,
        provenance=None if release.provenance is None else release.provenance.successor(together),
    )
