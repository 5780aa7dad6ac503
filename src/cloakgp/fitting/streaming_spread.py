"""The question how noisy outputs are, put to rows that are read in passes, and what it teaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloakgp.criteria.base import ChosenRule
from cloakgp.data.grouped import GroupedRows
from cloakgp.design import Certificate
from cloakgp.design.streaming.grouping import GroupedPasses, sum_grouped
from cloakgp.design.streaming.rules import EqualRule
from cloakgp.design.streaming.sums import sum_strategy
from cloakgp.fitting.reach import reach_of_bands
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.streaming_measuring import Rows, bound_of, streamed_strategy
from cloakgp.fitting.streaming_remeasure import first_bounds, row_prediction
from cloakgp.models import SparsePrior
from cloakgp.models.summary import Summary
from cloakgp.privacy.streaming import measure_rows
from cloakgp.release import Measurement, Release, StreamedStrategy, WeightedPrior
from cloakgp.release.bands import RowSpread
from cloakgp.release.hyperparameters.learning import linear_log_evidence
from cloakgp.release.hyperparameters.noise import (
    likeliest_position,
    noise_positions,
    scaled_noise,
)
from cloakgp.release.posterior.clipped_sums import restated, says_nothing, under_alone
from cloakgp.release.posterior.spread_sums import sum_spread
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.utils.passes import Passes


def ask_row_spread(
    release: Release,
    rows: Rows | GroupedRows,
    *,
    summary: Summary,
    query: Query,
    budget: Budget,
    insecure_seed: int | None = None,
) -> Measurement:
    """Ask how far outside of their predicted intervals the outputs of rows lie.

    One number: the sum over rows of what `cloakgp.privacy.bands.SpreadQuestion` says; with groups,
    of each row's share of its group.

    Parameters
    ----------
    release : Release
        About these rows alone.
    rows : Rows or GroupedRows
    summary : Summary
        Of the rows.
    query : Query
        As at first.
    budget : Budget
        On top of what was spent.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.
    """
    prior, bounds = release.fitted_prior, first_bounds(release)
    assert isinstance(prior, SparsePrior)
    within = reach_of_bands(bounds, release.measurements)
    spread = RowSpread(prediction=row_prediction(release), bounds=(within.lo, within.hi))
    rule, grouping = EqualRule(matrix=np.zeros((1, len(prior.inducing)))), None
    if isinstance(rows, GroupedPasses):
        [sums], grouping = sum_grouped(rows, [prior], model=spread, rule=rule)
    else:
        sums = sum_strategy(rows, model=spread, rule=rule)
    asked = ChosenRule(
        rule=rule,
        sums=sums,
        certificate=Certificate(criterion="given", gap=np.inf),
        reconstruction=None,
        grouping=grouping,
    )
    answers = measure_rows(
        rows,
        RuleColumns(model=spread, rule=rule, grouped=grouping is not None),
        bound=bound_of(asked, noise=budget.noise),
        bounds=bounds,
        bands=spread,
        epsilon=budget.epsilon,
        delta=budget.delta,
        insecure_seed=insecure_seed,
    )
    declared = release.prior
    assert isinstance(declared, SparsePrior)
    strategy = streamed_strategy(
        asked,
        prior=prior,
        summary=summary,
        query=query,
        sums=[says_nothing(declared, 1)],
        bands=spread,
        noise=budget.noise,
    )
    return Measurement(strategy=strategy, answers=answers)


def with_noise_of_rows(
    priors: Sequence[WeightedPrior], rows: Passes, *, release: Release
) -> tuple[WeightedPrior, ...]:
    """Return priors with the noise variance that the answers make most probable.

    As `cloakgp.release.hyperparameters.noise.with_learned_noise`, for rows that nobody keeps: the
    noise is tried at a few values, all of them in the same passes.

    Parameters
    ----------
    priors : sequence of WeightedPrior
        Their noise is changed by the factor that suits the one of most weight.
    rows : Passes
    release : Release
        With one measurement about the spread of outputs, the last.
    """
    main, declared = max(priors, key=lambda one: one.weight).prior, release.prior
    assert isinstance(declared, SparsePrior)
    *known, asked = release.measurements
    strategy = asked.strategy
    assert isinstance(strategy, StreamedStrategy)
    assert isinstance(strategy.bands, RowSpread)
    candidates = []
    for position in noise_positions().tolist():
        candidate = scaled_noise(main, position)
        assert isinstance(candidate, SparsePrior)
        candidates.append(candidate)
    stated = restated(rows, candidates, measurements=[under_alone(one, declared) for one in known])
    sums = sum_spread(
        rows,
        candidates,
        columns=strategy.columns,
        spread=strategy.bands,
        known=stated,
        table=strategy.table,
    )
    position = likeliest_position(
        np.array([linear_log_evidence(one, stated) for one in candidates]),
        value=float(asked.answers.values[0]),
        expected=sums.expected,
        scatter=sums.scatter + asked.noise_sd**2,
    )
    return tuple(replace(one, prior=scaled_noise(one.prior, position)) for one in priors)
