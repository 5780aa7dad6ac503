"""Later measurements of tables that are read in passes, designed given what a release knows.

Hyperparameters stay those that the release has: to learn them anew would take the first rows again.
Where predictions average over several, these are weighed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from cloakgp.criteria.base import ChosenRule
from cloakgp.data.grouped import GroupedRows
from cloakgp.design import Progress
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.sums import sum_strategy_under
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY
from cloakgp.fitting.strategies import Budget, Query, design_rows, query_weights, unit_noise_sd
from cloakgp.fitting.streaming import Rows, RuleColumns, bound_of
from cloakgp.models import SparsePrior
from cloakgp.models.likelihoods import NUMBERS
from cloakgp.models.summary import summarise
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.streaming import measure_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Measurement, Release, StreamedStrategy
from cloakgp.release.hyperparameters.learning import reweighed
from cloakgp.release.measurement import is_in_bands
from cloakgp.release.streamed_strategy import same_covariance
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.passes import Passes


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
    gap : float
    progress : callable or None
    insecure_seed : int or None
    """

    budget: Budget
    query: Query | None = None
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
    bounds, prior = _numbers(release)
    if is_in_bands(release.measurements):
        raise TypeError(
            "this release asked outputs in bands, and rows that are read in passes cannot be added "
            "to it: fit it with stages=None, or these rows on their own"
        )
    _check_columns(release, rows)
    table = 1 + max(one.strategy.table for one in release.measurements)
    return _measured(release, rows, later, bounds=bounds, prior=prior, table=table, earlier=())


@forget_on_failure
def refine_rows(release: Release, rows: Rows, later: Later) -> Release:
    """Ask the first rows of a release again, for what the answers so far leave open.

    Inference is exact for the sparse model: one pass sums how far answers share the rows' own
    noise. The design takes the rows' own noise to be independent of the earlier answers, as that of
    other rows is, and so is the best for other rows at the same places.

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
    bounds, prior = _numbers(release)
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
    same = [
        one.strategy
        for one in release.measurements
        if one.strategy.table == first.table and one.noise_sd > 0
    ]
    earlier = _different([one for one in same if isinstance(one, StreamedStrategy)])
    return _measured(
        release, rows, later, bounds=bounds, prior=prior, table=first.table, earlier=earlier
    )


def _numbers(release: Release) -> tuple[OutputBounds, SparsePrior]:
    """Return the bounds and the prior of a release whose rows can be asked in passes.

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
    return OutputBounds(*answers.bounds), prior


def _check_columns(release: Release, rows: Rows) -> None:
    if rows.n_inputs != release.n_inputs:
        raise ValueError(f"the rows have {rows.n_inputs} inputs, expected {release.n_inputs}")
    names = tuple(rows.input_names)
    if names and release.input_names and names != release.input_names:
        raise ValueError(
            f"the rows' inputs are {', '.join(names)}: name them as the release does, "
            f"{', '.join(release.input_names)}"
        )


def _different(strategies: Sequence[StreamedStrategy]) -> tuple[StreamedStrategy, ...]:
    """Return each of several strategies about the same rows once."""
    found: list[StreamedStrategy] = []
    for one in strategies:
        if not any(one.same_questions(other) for other in found):
            found.append(one)
    return tuple(found)


def _measured(
    release: Release,
    rows: Rows,
    later: Later,
    *,
    bounds: OutputBounds,
    prior: SparsePrior,
    table: int,
    earlier: tuple[StreamedStrategy, ...],
) -> Release:
    summary = summarise(rows)
    budget = later.budget
    warn_of_parameters(epsilon=budget.epsilon, delta=budget.delta, rows=summary.count)
    query = later.query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    asking: Rows | GroupedRows = GroupedRows.of(rows) if rows.grouped else rows
    asked = design_rows(
        asking,
        summary,
        prior=prior,
        query=query,
        noise_sd=unit_noise_sd(bounds, budget),
        gap=later.gap,
        known=release.posterior,
        progress=later.progress,
    )
    # Before outputs are read: what fails here has spent nothing.
    sums = _sums(asking, release, prior=prior, asked=asked, earlier=earlier)
    answers = measure_rows(
        asking,
        RuleColumns(prior=prior, rule=asked.rule, grouped=rows.grouped),
        bound=bound_of(asked),
        bounds=bounds,
        epsilon=budget.epsilon,
        delta=budget.delta,
        insecure_seed=later.insecure_seed,
    )
    strategy = StreamedStrategy(
        prior=prior,
        rule=asked.rule,
        sums=sums,
        row_totals=asked.sums.totals,
        rows=asked.sums.count,
        chunk_rows=asked.sums.chunk_rows,
        longest=asked.sums.longest,
        input_ranges=summary.ranges,
        X_query=query.X,
        query_weights=query_weights(query),
        reconstruction=asked.reconstruction,
        certificate=asked.certificate,
        table=table,
        earlier=tuple(one.row_totals for one in earlier),
        grouping=asked.grouping,
    )
    return added(release, Measurement(strategy=strategy, answers=answers))


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
    )


def _sums(
    rows: Passes,
    release: Release,
    *,
    prior: SparsePrior,
    asked: ChosenRule,
    earlier: tuple[StreamedStrategy, ...],
) -> tuple[PriorSums, ...]:
    """Return what is asked, and what it shares with earlier questions, as every prior sees it."""
    priors: list[SparsePrior] = []
    for one in (release.prior, *(each.prior for each in release.learned)):
        assert isinstance(one, SparsePrior)
        if not any(same_covariance(other, one) for other in priors):
            priors.append(one)
    rules = [(prior, asked.rule), *((one.prior, one.rule) for one in earlier)]
    stops = list(accumulate(rule.answers for _, rule in rules))
    own, *others = [slice(*ends) for ends in pairwise([0, *stops])]
    if isinstance(rows, GroupedPasses):
        # Groups are not asked again: there is one rule.
        found, _ = sum_grouped(rows, priors, model=prior, rule=asked.rule)
    else:
        found = sum_strategy_under(rows, priors, asked=rules)
    return tuple(
        PriorSums(
            prior=each,
            likelihood=NUMBERS,
            channels=(
                ChannelSums(
                    features=sums.features[own],
                    noise=sums.noise[own, own],
                    shared=tuple(sums.noise[own, other] for other in others),
                ),
            ),
        )
        for each, sums in zip(priors, found, strict=True)
    )
