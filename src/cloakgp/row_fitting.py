"""One private fit of a table that is read in passes: design, measure, learn, publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.arrays import Array, as_matrix
from cloakgp.choices import LARGEST_DEFAULT_QUERY, choose_prior
from cloakgp.design import Certificate, Progress
from cloakgp.design.asked import AskedSums, asked_sums, asked_sums_under
from cloakgp.design.cells import Cells
from cloakgp.design.rules import Rule
from cloakgp.design.streamed import design_streamed
from cloakgp.design.streamed_bayes import design_streamed_bayes
from cloakgp.models import Approximation, SparsePrior
from cloakgp.models.summary import Summary, summarise
from cloakgp.passes import Passes
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.guarantee import check_budget, exact_noise_multiplier
from cloakgp.privacy.measure_rows import PrivateRows, Promise, measure_rows
from cloakgp.release import (
    MECHANISMS,
    Hyperprior,
    ManyRowsRelease,
    Mechanism,
    Query,
    WeightedPrior,
)
from cloakgp.release.answer_covariance import gather_sums
from cloakgp.release.learning import learn_from

INDUCING = 200
# Of the smaller problem that `bayes` starts from, and of the points that kernels are learned at.
DESIGN_CELLS, LEARNING_CELLS = 1000, 400
# Rows that the columns of `trace` and `logdet` are first taken from.
FIRST_COLUMNS = 10_000


class Rows(Passes, PrivateRows, Protocol):
    """A table in chunks: public inputs, and private outputs that `measure_rows` alone reads."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the public columns, if there are any."""

    @property
    def output_name(self) -> str:
        """Name of the private column."""


@dataclass(frozen=True, eq=False)
class RowSettings:
    """How a table in chunks is to be released; as for `DPGPRegressor`.

    Attributes
    ----------
    kernel : callable
        Returns a kernel, or None for the default one, for inputs of shape (n, D) that span the
        table's.
    noise_variance, mean : float or None
    inducing : int or array of shape (M, D)
    approximation : {"fitc", "dtc", "sor"}
    mechanism : {"bayes", "trace", "logdet"}
    gap : float
    hyperprior : Hyperprior or None
    average : bool
    random_state : int
    """

    kernel: Callable[[Array], Kernel | None] = lambda _: None
    noise_variance: float | None = None
    mean: float | None = None
    inducing: int | Array = INDUCING
    approximation: Approximation = "fitc"
    mechanism: Mechanism = "bayes"
    gap: float = 1e-3
    hyperprior: Hyperprior | None = None
    average: bool = False
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class _Asked:
    """What will be asked: public."""

    rule: Rule
    sums: AskedSums
    certificate: Certificate
    reconstruction: Array | None


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of rows from their inputs: what the private pass asks."""

    prior: SparsePrior
    rule: Rule

    def __call__(self, X: Array) -> Array:
        return self.rule.columns(*self.prior.features_and_noise(X))


def release_rows(
    rows: Rows,
    *,
    bounds: OutputBounds,
    epsilon: float,
    delta: float,
    query: Query | None = None,
    settings: RowSettings | None = None,
    progress: Progress | None = None,
    insecure_seed: int | None = None,
) -> ManyRowsRelease:
    """Go through a table a few times, and return what may be published.

    Outputs are read in one pass, by `cloakgp.privacy.measure_rows`, and touched nowhere else.

    Parameters
    ----------
    rows : Rows
        See `cloakgp.rows`.
    bounds : OutputBounds
    epsilon, delta : float
        The whole budget, protecting the output of one row.
    query : Query, optional
        Where predictions matter; k-means centres of the rows if not given.
    settings : RowSettings, optional
    progress : callable, optional
        Called with the gap of the design while it improves. How far each pass is, rows tell to
        their own watch.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Returns
    -------
    ManyRowsRelease

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes an output.

    Examples
    --------
    >>> from cloakgp.rows import ArrayRows
    >>> X = np.linspace(0, 10, 5000)[:, None]
    >>> release = release_rows(ArrayRows(X, np.sin(X).ravel()), bounds=OutputBounds(-1.0, 1.0),
    ...                        epsilon=1.0, delta=1e-5, settings=RowSettings(inducing=10))
    >>> release.count
    5000
    """
    check_budget(epsilon, delta)
    chosen = RowSettings() if settings is None else settings
    if chosen.mechanism == "functional":
        raise ValueError(
            "mechanism='functional' needs every row at once: use 'bayes', 'trace' or 'logdet'"
        )
    if chosen.mechanism not in MECHANISMS:
        raise ValueError(
            f"mechanism must be 'bayes', 'trace' or 'logdet', got {chosen.mechanism!r}"
        )
    summary = summarise(rows)
    prior = _prior(summary, bounds=bounds, settings=chosen)
    points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    # Of another dimension, they could broadcast in a kernel and waste the budget.
    as_matrix(points.X, name="X_query", columns=rows.n_inputs)
    weights = np.ones(len(points.X)) if points.weights is None else points.weights
    if weights.shape != (len(points.X),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("query weights must be positive and finite, one per query point")
    tally = Cells(centres=summary.centres(LEARNING_CELLS)[0], units=summary.units)
    asked = _design(
        rows,
        summary,
        prior=prior,
        query=Query(points.X, weights),
        noise_sd=bounds.width * exact_noise_multiplier(epsilon, delta),
        settings=chosen,
        tally=tally,
        progress=progress,
    )
    answers = measure_rows(
        rows,
        _Columns(prior=prior, rule=asked.rule),
        promise=Promise(
            answers=asked.rule.answers,
            longest=asked.sums.longest,
            chunk_rows=asked.sums.chunk_rows,
            count=asked.sums.count,
        ),
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    learned = _learn(prior, asked.sums, answers, tally=tally, settings=chosen)
    return ManyRowsRelease(
        prior=prior,
        rule=asked.rule,
        sums=_sums_under(rows, learned, prior=prior, asked=asked),
        learned=learned,
        answers=answers,
        certificate=asked.certificate,
        X_query=points.X,
        query_weights=weights,
        reconstruction=asked.reconstruction,
        ranges=summary.ranges,
        input_names=rows.input_names,
        output_name=rows.output_name,
    )


def _prior(summary: Summary, *, bounds: OutputBounds, settings: RowSettings) -> SparsePrior:
    inducing = settings.inducing
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool):
        inducing = summary.centres(int(inducing), random_state=settings.random_state)[0]
    prior = choose_prior(
        summary.ranges,
        bounds=bounds,
        kernel=settings.kernel(summary.ranges),
        noise_variance=settings.noise_variance,
        mean=settings.mean,
        inducing=inducing,
        approximation=settings.approximation,
    )
    assert isinstance(prior, SparsePrior)
    return prior


def _design(
    rows: Passes,
    summary: Summary,
    *,
    prior: SparsePrior,
    query: Query,
    noise_sd: float,
    settings: RowSettings,
    tally: Cells,
    progress: Progress | None,
) -> _Asked:
    weights = np.ones(len(query.X)) if query.weights is None else query.weights
    features = prior.features(query.X)
    if settings.mechanism == "bayes":
        sharpest = design_streamed_bayes(
            rows,
            features * np.sqrt(weights),
            model=prior,
            cells=Cells(centres=summary.centres(DESIGN_CELLS)[0], units=summary.units),
            prior_variance=float(weights @ prior.query_variance(query.X)),
            noise_sd=noise_sd,
            tally=tally,
            gap=settings.gap,
            progress=progress,
        )
        return _Asked(sharpest.rule, sharpest.sums, sharpest.certificate, None)
    design = design_streamed(
        rows,
        features,
        model=prior,
        sample=summary.sample[:FIRST_COLUMNS],
        criterion="trace" if settings.mechanism == "trace" else "logdet",
        weights=weights if settings.mechanism == "trace" else None,
        gap=settings.gap,
        progress=progress,
    )
    sums = asked_sums(rows, model=prior, rule=design.rule, cells=tally)
    return _Asked(design.rule, sums, design.certificate, design.reconstruction)


def _learn(
    prior: SparsePrior,
    sums: AskedSums,
    answers: Answers,
    *,
    tally: Cells,
    settings: RowSettings,
) -> tuple[WeightedPrior, ...]:
    if settings.hyperprior is None or answers.noise_sd == 0:
        return ()
    return learn_from(
        prior,
        gather_sums(sums, answers, points=tally.centres),
        bounds=answers.bounds,
        hyperprior=settings.hyperprior,
        average=settings.average,
    )


def _sums_under(
    rows: Passes, learned: tuple[WeightedPrior, ...], *, prior: SparsePrior, asked: _Asked
) -> tuple[AskedSums, ...]:
    """Return what was asked as every prior sees it, in another pass if one differs."""
    others = [
        one.prior
        for one in learned
        if one.prior is not prior and isinstance(one.prior, SparsePrior)
    ]
    seen = asked_sums_under(rows, others, model=prior, rule=asked.rule) if others else ()
    found = iter(seen)
    return tuple(asked.sums if one.prior is prior else next(found) for one in learned) or (
        asked.sums,
    )
