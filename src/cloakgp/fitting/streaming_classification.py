"""One private fit of classes in a table that is read in passes: design, measure, learn, publish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.criteria import criterion_named
from cloakgp.design import Progress
from cloakgp.design.streaming.binning import Cells
from cloakgp.design.streaming.condensing import condense
from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_label_prior
from cloakgp.fitting.strategies import Budget, Query, design_rows, unit_noise_sd
from cloakgp.fitting.streaming_measuring import (
    INDUCING,
    Rows,
    bound_of,
    inducing_inputs,
    streamed_strategy,
)
from cloakgp.models import Approximation, SparsePrior
from cloakgp.models.likelihoods import ClassLikelihood
from cloakgp.models.summary import Summary, summarise
from cloakgp.privacy.checks import warn_of_parameters
from cloakgp.privacy.labels import Classes
from cloakgp.privacy.noise import noise_for
from cloakgp.privacy.streaming import measure_label_rows
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.release import Hyperprior, Measurement, Release, WeightedPrior
from cloakgp.release.hyperparameters.learning import learn_classes
from cloakgp.release.posterior.label_sums import CellSigns, LabelSums, label_sums
from cloakgp.release.streamed_strategy import RuleColumns
from cloakgp.release.sums import ChannelSums, PriorSums
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import LinkName, NoiseChoice
from cloakgp.utils.passes import Tell, tell_nobody

# In which questions are kept: see `cloakgp.design.streaming.condensing`.
LABEL_CELLS = 500
# Rows that say how others differ from the centres of their cells: at most so many, and one in so
# many, as a search over more would cost what it spares.
LABEL_SAMPLE, SAMPLED_ONE_IN = 2**14, 16


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
    hyperprior : Hyperprior or None
    average : bool
    random_state : int
    blocks : tuple of int or None
        Which block each input is in, where several stand for one column of a table.
    """

    kernel: Kernel | None = None
    link_name: LinkName = "probit"
    class_rates: ArrayLike | None = None
    inducing: int | Array = INDUCING
    approximation: Approximation = "fitc"
    criterion: str = "bayes"
    gap: float = 1e-3
    hyperprior: Hyperprior | None = None
    average: bool = False
    random_state: int = 0
    blocks: tuple[int, ...] | None = None


@forget_on_failure
def release_label_rows(
    rows: Rows,
    *,
    classes: Classes,
    epsilon: float,
    delta: float,
    noise: NoiseChoice = "auto",
    query: Query | None = None,
    settings: LabelRowSettings | None = None,
    progress: Progress | None = None,
    tell: Tell = tell_nobody,
    insecure_seed: int | None = None,
) -> Release:
    """Go through a table a few times, and return what may be published about its classes.

    Labels are read in one pass, by `cloakgp.privacy.streaming`, and touched nowhere else.

    Parameters
    ----------
    rows : Rows
        See `cloakgp.data`.
    classes : Classes
    epsilon, delta : float
    noise : {"auto", "gaussian", "laplace"}
        "auto" is Laplace noise where δ is 0, else Gaussian.
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
    Release

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label.

    Examples
    --------
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 6000)[:, None]
    >>> release = release_label_rows(
    ...     ArrayRows(X, X[:, 0] > 5), classes=Classes((False, True)), epsilon=1.0, delta=1e-5,
    ...     settings=LabelRowSettings(inducing=10))
    >>> release.predict([[1.0], [9.0]])
    [False, True]
    """
    law = noise_for(noise, epsilon=epsilon, delta=delta)
    budget = Budget(epsilon, delta, noise=law)
    chosen = LabelRowSettings() if settings is None else settings
    criterion = criterion_named(chosen.criterion, use="classes")
    criterion_named(chosen.criterion, use="many rows")
    if rows.grouped:
        raise ValueError(
            "labels of tables that are read in passes are protected row by row: leave groups out "
            "and take the budget for one row accordingly, or take fewer rows"
        )
    summary = summarise(rows)
    rates = None if chosen.class_rates is None else np.asarray(chosen.class_rates, np.float64)
    warn_of_parameters(
        epsilon=epsilon,
        delta=delta,
        rows=summary.count,
        rates=() if rates is None else rates.tolist(),
    )
    tell("choosing the prior")
    prior, likelihood = _prior(summary, classes=classes, settings=chosen)
    linear = criterion.prior_over_outputs(prior, likelihood, summary.sample)
    assert isinstance(linear, SparsePrior)
    tell("choosing where predictions matter")
    points = query or Query(*summary.centres(LARGEST_DEFAULT_QUERY))
    found = design_rows(
        rows,
        summary,
        prior=linear,
        query=points,
        noise_sd=unit_noise_sd(classes, budget),
        noise=law,
        criterion=chosen.criterion,
        gap=chosen.gap,
        progress=progress,
    )
    cells = condense(
        rows,
        model=linear,
        rule=found.rule,
        cells=Cells(centres=summary.centres(LABEL_CELLS)[0], units=summary.units),
        sample=summary.sample[: min(LABEL_SAMPLE, summary.count // SAMPLED_ONE_IN + 1)],
    )
    answers = measure_label_rows(
        rows,
        RuleColumns(model=linear, rule=found.rule),
        bound=bound_of(found, noise=law),
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        insecure_seed=insecure_seed,
    )
    signs = CellSigns.of(cells, answers)
    learned: tuple[WeightedPrior, ...] = ()
    if chosen.hyperprior is not None:
        tell("learning from the noisy answers")
        learned = learn_classes(
            prior, likelihood, signs, hyperprior=chosen.hyperprior, average=chosen.average
        )
    priors = learned or (WeightedPrior(prior=prior, likelihood=likelihood, weight=1.0),)
    sums = label_sums(rows, signs, model=linear, rule=found.rule, priors=priors)
    strategy = streamed_strategy(
        found,
        prior=linear,
        summary=summary,
        query=points,
        sums=[
            _prior_sums(each, channels, noise_sd=signs.noise_sd)
            for each, channels in zip(priors, sums, strict=True)
        ],
        noise=law,
    )
    return Release(
        prior=prior,
        likelihood=likelihood,
        measurements=(Measurement(strategy=strategy, answers=answers),),
        learned=learned,
        input_names=tuple(rows.input_names),
        output_name=rows.output_name,
    )


def _prior_sums(
    prior: WeightedPrior, channels: tuple[LabelSums, ...], *, noise_sd: float
) -> PriorSums:
    """Return sums in the units of the answers, as strategies keep them."""
    assert isinstance(prior.prior, SparsePrior)
    return PriorSums(
        prior=prior.prior,
        likelihood=prior.likelihood,
        channels=tuple(
            ChannelSums(
                features=one.features * noise_sd,
                noise=one.noise * noise_sd**2,
                offset=one.offset * noise_sd,
            )
            for one in channels
        ),
    )


def _prior(
    summary: Summary, *, classes: Classes, settings: LabelRowSettings
) -> tuple[SparsePrior, ClassLikelihood]:
    prior, likelihood = choose_label_prior(
        # The sample lacks the ends of inputs; these alone say little of a variance that varies.
        np.vstack([summary.ranges, summary.sample]),
        classes=classes,
        kernel=settings.kernel,
        link_name=settings.link_name,
        class_rates=settings.class_rates,
        inducing=inducing_inputs(summary, settings.inducing, random_state=settings.random_state),
        approximation=settings.approximation,
        blocks=settings.blocks,
    )
    assert isinstance(prior, SparsePrior)
    return prior, likelihood
