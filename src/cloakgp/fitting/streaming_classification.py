"""One private fit of classes in a table that is read in passes: design, measure, learn, publish."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import criterion_named
from cloakgp.design import Certificate, Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.condensing import CellQuestions, condense
from cloakgp.design.streaming.rules import Rule
from cloakgp.fitting.checks import warn_of_parameters
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_label_prior
from cloakgp.fitting.streaming import INDUCING, Rows, design_rows, query_weights
from cloakgp.models import Approximation, SparsePrior
from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.models.summary import Summary, summarise
from cloakgp.privacy.accounting import check_budget, exact_noise_multiplier
from cloakgp.privacy.labels import Classes, LabelAnswers, signed_width
from cloakgp.privacy.streaming import Promise, measure_label_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Query
from cloakgp.release.hyperparameters.classification import WeightedLabelPrior, learn_from_cells
from cloakgp.release.posterior.label_sums import CellSigns, LabelSums, label_sums, sparse_channels
from cloakgp.release.posterior.probabilities import LabelPredictor, PosteriorFunctions
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import LinkName
from cloakgp.utils.passes import Passes, Tell, tell_nobody

# In which questions are kept: see `cloakgp.design.streaming.condensing`.
LABEL_CELLS = 500
# What recomputed columns, and sums of them, may be off by: float64 in another order of summation.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class LabelRowSettings:
    """How classes in a table in chunks are to be released; as for `DPGPClassifier`.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None
    link_name : {"probit", "logit"}
    class_rates : array-like of shape (C,) or None
        In the order of the classes.
    inducing : int or array of shape (M, D)
    approximation : {"fitc", "dtc", "sor"}
    criterion : str
        One of `cloakgp.criteria` for classes and for many rows.
    gap : float
    learning : {"map", "average"} or None
    random_state : int
    """

    kernel: Kernel | None = None
    link_name: LinkName = "probit"
    class_rates: ArrayLike | None = None
    inducing: int | Array = INDUCING
    approximation: Approximation = "fitc"
    criterion: str = "bayes"
    gap: float = 1e-3
    learning: Literal["map", "average"] | None = None
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class AskedLabelRows:
    """What was asked about labels of rows that nobody keeps, the noisy answers, and what they say.

    Public, all of it: no row, no label, nor anything computed from labels without noise.

    Attributes
    ----------
    prior : LabelPrior
        As declared, with a sparse latent prior.
    linear : SparsePrior
        The linear prior over labels by whose features and noise variances the rule goes.
    rule : Rule
        What was asked of a row.
    cells : CellQuestions
        What was asked of all rows, cell by cell.
    answers : LabelAnswers
    learned : tuple of WeightedLabelPrior
        What the answers say about the hyperparameters; empty if nothing was learned.
    sums : tuple of tuples of LabelSums
        What the answers ask of every channel's latent function, under each of the ``learned``
        priors, or the declared one.
    certificate : Certificate
    X_query : array of shape (P, D)
        Where predictions mattered.
    query_weights : array of shape (P,)
    reconstruction : array of shape (P, k) or None
        As for `cloakgp.criteria.ChosenRule`.
    ranges : array of shape (2, D)
        The least and the greatest of every input.
    input_names : tuple of str
    output_name : str
    """

    prior: LabelPrior
    linear: SparsePrior
    rule: Rule
    cells: CellQuestions
    answers: LabelAnswers
    learned: tuple[WeightedLabelPrior, ...]
    sums: tuple[tuple[LabelSums, ...], ...]
    certificate: Certificate
    X_query: Array
    query_weights: Array
    reconstruction: Array | None
    ranges: Array
    input_names: tuple[str, ...] = ()
    output_name: str = "y"

    @cached_property
    def predictors(self) -> tuple[tuple[LabelPredictor, float], ...]:
        """What predicts, under every prior that is averaged over, and the weights of these."""
        priors = self.learned or (WeightedLabelPrior(prior=self.prior, weight=1.0),)
        values = CellSigns.of(self.cells, self.answers).values
        return tuple(
            (label_predictor(one.prior, sums, values), one.weight)
            for one, sums in zip(priors, self.sums, strict=True)
        )

    def probabilities(self, X: Array) -> Array:
        """Return the probability of every class at some inputs, shape (P, C).

        Parameters
        ----------
        X : array of shape (P, D)
        """
        total: Array = np.sum(
            [
                weight * predictor.probabilities(X, privacy_noise=True)
                for predictor, weight in self.predictors
            ],
            axis=0,
        )
        return total


def label_predictor(
    prior: LabelPrior, sums: tuple[LabelSums, ...], values: Array
) -> LabelPredictor:
    """Return what predicts classes from answers about rows that nobody keeps.

    Parameters
    ----------
    prior : LabelPrior
        With a sparse latent prior.
    sums : tuple of LabelSums
        One per channel, under this prior.
    values : array of shape (channels, k)
        See `cloakgp.release.posterior.label_sums.CellSigns`.
    """
    posteriors = tuple(
        each.posterior(latent, answers)
        for latent, each, answers in zip(sparse_channels(prior), sums, values, strict=True)
    )
    return LabelPredictor(prior=prior, functions=PosteriorFunctions(posteriors=posteriors))


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of rows from their inputs: what the private pass asks."""

    linear: SparsePrior
    rule: Rule

    def __call__(self, X: Array) -> Array:
        return self.rule.columns(*self.linear.features_and_noise(X))


@forget_on_failure
def release_label_rows(
    rows: Rows,
    *,
    classes: Classes,
    epsilon: float,
    delta: float,
    query: Query | None = None,
    settings: LabelRowSettings | None = None,
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> AskedLabelRows:
    """Go through a table a few times, and return what may be published about its classes.

    Labels are read in one pass, by `cloakgp.privacy.streaming`, and touched nowhere else.

    Parameters
    ----------
    rows : Rows
        See `cloakgp.data`.
    classes : Classes
    epsilon, delta : float
        The whole budget, protecting the label of one row.
    query : Query, optional
        Where predictions matter; k-means centres of the rows if not given.
    settings : LabelRowSettings, optional
    progress : callable, optional
        Called with the gap of the design while it improves. How far each pass is, rows tell to
        their own watch.
    tell : callable, optional
        Called with what begins, in a few words.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**.

    Returns
    -------
    AskedLabelRows

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 6000)[:, None]
    >>> asked = release_label_rows(ArrayRows(X, X[:, 0] > 5), classes=Classes((False, True)),
    ...                            epsilon=1.0, delta=1e-5, settings=LabelRowSettings(inducing=10))
    >>> asked.probabilities(np.array([[1.0], [9.0]])).argmax(axis=1)
    array([0, 1])
    """
    check_budget(epsilon, delta)
    chosen = LabelRowSettings() if settings is None else settings
    criterion = criterion_named(chosen.criterion, use="classes")
    criterion_named(chosen.criterion, use="many rows")
    summary = summarise(rows)
    rates = None if chosen.class_rates is None else np.asarray(chosen.class_rates, np.float64)
    warn_of_parameters(
        epsilon=epsilon,
        delta=delta,
        rows=summary.count,
        rates=() if rates is None else rates.tolist(),
    )
    tell("choosing the prior")
    prior = _prior(summary, classes=classes, settings=chosen)
    linear = criterion.prior_over_labels(prior, summary.sample)
    assert isinstance(linear, SparsePrior)
    tell("choosing where predictions matter")
    points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    found = design_rows(
        rows,
        summary,
        prior=linear,
        query=points,
        noise_sd=signed_width(classes) * exact_noise_multiplier(epsilon, delta),
        criterion=chosen.criterion,
        gap=chosen.gap,
        progress=progress,
    )
    cells = condense(
        rows,
        model=linear,
        rule=found.rule,
        cells=Cells(centres=summary.centres(LABEL_CELLS)[0], units=summary.units),
    )
    answers = measure_label_rows(
        rows,
        _Columns(linear=linear, rule=found.rule),
        promise=Promise(
            answers=found.rule.answers,
            longest=found.sums.longest,
            chunk_rows=found.sums.chunk_rows,
            count=found.sums.count,
        ),
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    signs = CellSigns.of(cells, answers)
    learned: tuple[WeightedLabelPrior, ...] = ()
    if chosen.learning is not None:
        tell("learning from the noisy answers")
        learned = learn_from_cells(
            prior, signs, means=chosen.class_rates is None, average=chosen.learning == "average"
        )
    return AskedLabelRows(
        prior=prior,
        linear=linear,
        rule=found.rule,
        cells=cells,
        answers=answers,
        learned=learned,
        sums=label_sums(
            rows,
            signs,
            model=linear,
            rule=found.rule,
            priors=[one.prior for one in learned] or [prior],
        ),
        certificate=found.certificate,
        X_query=points.X,
        query_weights=query_weights(points),
        reconstruction=found.reconstruction,
        ranges=summary.ranges,
        input_names=rows.input_names,
        output_name=rows.output_name,
    )


def _prior(summary: Summary, *, classes: Classes, settings: LabelRowSettings) -> LabelPrior:
    inducing = settings.inducing
    if isinstance(inducing, int | np.integer) and not isinstance(inducing, bool):
        inducing = summary.centres(int(inducing), random_state=settings.random_state)[0]
    return choose_label_prior(
        # The sample lacks the ends of inputs; these alone say little of a variance that varies.
        np.vstack([summary.ranges, summary.sample]),
        classes=classes,
        kernel=settings.kernel,
        link_name=settings.link_name,
        class_rates=settings.class_rates,
        inducing=inducing,
        approximation=settings.approximation,
    )


def verify_label_rows(passes: Passes, asked: AskedLabelRows) -> CellQuestions:
    """Compute what was asked of every row anew, from the public inputs, and check it.

    Anybody who has the inputs can do so; it takes one pass and no label.

    Parameters
    ----------
    passes : Passes
        The same rows; `cloakgp.data` makes such objects.
    asked : AskedLabelRows

    Returns
    -------
    CellQuestions
        Over every row, in the cells that are nearest to the centres of those kept.

    Raises
    ------
    ValueError
        If there are other rows, or the column of any row is longer than the guarantee allows.
    """
    known = asked.cells
    spread = np.ptp(asked.ranges, axis=0)
    found = condense(
        passes,
        model=asked.linear,
        rule=asked.rule,
        cells=Cells(centres=known.centres, units=np.where(spread > 0, spread, 1.0)),
        what="verifying",
    )
    if found.count != known.count:
        raise ValueError(f"the release is about {known.count} rows, not {found.count}")
    if not found.longest <= known.longest * (1 + TOLERANCE):
        raise ValueError(
            f"the longest column is {found.longest:.12g}, and the guarantee allows "
            f"{known.longest:.12g}"
        )
    allowed = TOLERANCE * known.count * known.longest
    # Written so that NaN fails.
    alike = (np.abs(found.totals - known.totals) <= allowed).all()
    if not (alike and (np.abs(found.gram - known.gram) <= allowed * known.longest).all()):
        raise ValueError("the release is about other rows: these add up to something else")
    return found
