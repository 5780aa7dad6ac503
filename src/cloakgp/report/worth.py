"""Accuracy of predictions in words, of every kind of release: see `cloakgp.release.accuracy`."""

from __future__ import annotations

from functools import singledispatch
from typing import Literal

import numpy as np

from cloakgp.models.likelihoods import CountLikelihood
from cloakgp.release import (
    MultiOutputRelease,
    OneOutputRelease,
    Release,
    StatisticsRelease,
    Strategy,
    StreamedStrategy,
)
from cloakgp.release.accuracy import LIKELY, Accuracy, mean_root
from cloakgp.release.calibration import Calibration
from cloakgp.release.common_values import found_alike
from cloakgp.release.error_range import LOG_OWN_SD
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.hyperparameters.noise import LOG_NOISE_SD
from cloakgp.release.margins import Margins, noise_part
from cloakgp.release.measurement import narrower_interval, tables_of
from cloakgp.report.clipped import band_facts, clipped_facts, most_are_alike
from cloakgp.report.facts import Fact, Section
from cloakgp.report.outputs import BASIS
from cloakgp.report.prediction import prediction_facts
from cloakgp.utils.formatting import NORMAL_95, amount

Middle = Literal["average", "median", "rate"]

# Of such ranges on tables that nobody chose (`python -m experiments claims`: claims-judged).
HELD = "in seven of ten"
# Of whole private rows, whose prior goes by noisy counts of the same rows: no truth can be drawn
# from it before.
OF_WHOLE_ROWS = (
    " That is of points all over the declared ranges, not of people as they are; between what it "
    "lies is not known, as the prior itself goes by the noisy answers, or was declared."
)
# Where residuals were asked in ever narrower bands.
BEYOND_BANDS = (
    " How far values lie beyond the bands of later questions is in both figures only as far as "
    "noisy counts of the values tell: with long tails both may be too small."
)
# Of the curve, of which questions about spread tell only what it and chance make together.
IF_ROUGHER = (
    " If the curve is rougher than the prior has it, it is larger, up to the error for one person."
)
# Where first questions clipped values to a narrower interval.
BUT_FOR_CLIPPED = (
    ", but for values that were clipped, whose distance is not known: with long tails the error is "
    "mostly larger"
)
# Of rows with ids of persons.
SEVERAL_ROWS = Fact(
    "several rows",
    "rows of one person are taken as if of different people: where they are alike, errors are "
    "larger than told, and lie beyond the ranges told more often than is said.",
)
# Of noisy means over bins.
OF_BINS = Fact(
    "basis",
    "that is the noise alone, by its law. A histogram has no model of people: it tells nothing of "
    "errors for one person.",
)
# Of counts of events.
OF_COUNTS = (
    " How much more counts scatter than by chance was estimated; what is not known of it is in "
    "both figures, and in limits and intervals, if counts have the law that they are taken to "
    "have. Where they have not, as where most are 0 by another cause than chance, what is "
    "predicted, and what is said of its error, may be several times too small."
)
UNKNOWN_NOISE = Fact(
    "intervals",
    "no question asked how far values of people with equal inputs lie apart. Intervals, quantiles "
    "and probabilities of a new person's own value allow for that: the spread may be twice or half "
    "of what the typical error goes by (a factor of "
    f"{amount(np.exp(LOG_NOISE_SD), 2)} either way in two cases of three, if the prior holds).",
)
NOT_MEASURED = Fact(
    "intervals",
    "not measured here: no noisy counts tell how many values lie within them. Intervals, quantiles "
    "and probabilities of a new person's own value are the model's, and hold what they say if the "
    "model describes the private column.",
)
# Of the intervals whose coverage is stated.
STATED_COVERAGE = 0.9


@singledispatch
def accuracies(release: object) -> tuple[Accuracy, ...]:
    """Return the accuracy of predictions of each numeric output; none if nothing is predicted.

    Parameters
    ----------
    release : Release or any other kind of release

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> [accuracy] = accuracies(model.release_)
    >>> accuracy.error < accuracy.new_error
    True
    """
    del release
    return ()


@accuracies.register
def _of_one_output(release: OneOutputRelease) -> tuple[Accuracy, ...]:
    found = release.accuracy()
    return () if found is None else (found,)


@accuracies.register
def _of_several(release: MultiOutputRelease) -> tuple[Accuracy, ...]:
    return release.accuracies()


@accuracies.register
def _of_histogram(release: NoisyHistogram) -> tuple[Accuracy, ...]:
    centres = [(edges[1:] + edges[:-1]) / 2 for edges in map(np.asarray, release.bins.edges)]
    points = np.column_stack([each.ravel() for each in np.meshgrid(*centres, indexing="ij")])
    mean, sd = release.predict(points, return_std=True)
    known = np.isfinite(mean) & np.isfinite(sd)
    return (Accuracy(output="the output", error=mean_root(sd[known])),) if known.any() else ()


def accuracy_section(release: object) -> Section | None:
    """Return the accuracy of predictions in words, or None if no number is predicted.

    Parameters
    ----------
    release : Release or any other kind of release
    """
    found = accuracies(release)
    if not found:
        return None
    facts: list[Fact] = []
    columns, places = "the public columns", "at the query points"
    # A rate of events is an average.
    middle = "median" if middle_of(release) == "median" else "average"
    if isinstance(release, OneOutputRelease) and release.private_inputs:
        columns, places = "the inputs", "all over the declared ranges"
    for each in found:
        whose = f" of {each.output}" if len(found) > 1 else ""
        if one_person := each.for_one_person():
            rounds = isinstance(release, StatisticsRelease) and bool(release.residuals)
            sure = f"{OF_WHOLE_ROWS}{BEYOND_BANDS * rounds}{_of_tails(each)}"
            if isinstance(release, Release | MultiOutputRelease):
                sure = _how_sure(release, each)
            facts.append(Fact(f"for one person{whose}", f"{one_person}{sure}"))
        if isinstance(release, NoisyHistogram):
            facts.append(
                Fact(
                    f"typical error{whose}",
                    f"{amount(each.error, 3)}, of the mean of the values in a bin, by the noise; "
                    "how far people within a bin differ from it is not in it.",
                )
            )
            continue
        before = (
            ""
            if each.without is None
            else f" ({amount(each.without, 3)} before the first question)"
        )
        facts.append(
            Fact(
                f"typical error{whose}",
                f"{amount(each.error, 3)}{before}, of the predicted {middle} of people with "
                "equal inputs, "
                f"{places}. It includes the effect of the noise.{IF_ROUGHER * bool(one_person)}",
            )
        )
        if each.share is not None:
            facts.append(
                Fact(
                    f"explained{whose}",
                    f"{columns} explain {_percent(each.share)} of the variation of "
                    f"{each.output} between people.",
                )
            )
    if isinstance(release, Release):
        facts += (*prediction_facts(release), *clipped_facts(release), *band_facts(release))
    if isinstance(release, OneOutputRelease) and not release.class_labels:
        facts += calibration_facts(release)
    if isinstance(release, MultiOutputRelease):
        for name, known in zip(release.names, release.calibrated_by, strict=False):
            facts.append(_calibration_fact(known, label=f"intervals of {name}"))
        if release.noise_is_unknown:
            facts.append(UNKNOWN_NOISE)
        elif not release.is_calibrated:
            facts.append(NOT_MEASURED)
    if _rows_of_a_person(release) > 1:
        facts.append(SEVERAL_ROWS)
    basis = OF_BINS if isinstance(release, NoisyHistogram) else BASIS
    return Section("Predictions", (*facts, basis))


def middle_of(release: object) -> Middle:
    """Return what is predicted of people with the same inputs.

    Parameters
    ----------
    release : Release or any other kind of release
    """
    if not isinstance(release, Release):
        return "average"
    # The root of counts is asked as if they were transformed, and their rate is predicted.
    if isinstance(release.likelihood, CountLikelihood):
        return "rate"
    return "average" if release.transform is None else "median"


def _rows_of_a_person(release: object) -> int:
    """Return how many rows one person has at most, by the ids that the rows had; else 1."""
    if isinstance(release, MultiOutputRelease):
        measurements, count = release.entries.measurements, len(release.columns.bounds)
    elif isinstance(release, Release):
        measurements, count = release.measurements, 1
    else:
        return 1
    return max(
        (most_of_a_person(strategy, count=count) for strategy in tables_of(measurements).values()),
        default=1,
    )


def most_of_a_person(strategy: Strategy, *, count: int = 1) -> int:
    """Return how many rows are protected together at most.

    Parameters
    ----------
    strategy : Strategy
    count : int
        The number of entries of a row.
    """
    if strategy.groups is not None:
        return int(np.bincount(strategy.groups).max()) // count
    if isinstance(strategy, StreamedStrategy | GatheredStrategy) and strategy.grouping:
        return strategy.grouping.most_rows
    return 1


def _how_sure(release: Release | MultiOutputRelease, accuracy: Accuracy) -> str:
    """Name the source of the spread between people with the same inputs, and what it leaves open.

    The spread is measured by the logarithm of distances, none of which counts for more than two
    sds; counts have a last cell, beyond which they do not tell how far values are.
    """
    between = _range_in_words(release, accuracy)
    tails = _of_tails(accuracy)
    if release.is_calibrated:
        return (
            " That rests on noisy counts of the distances of values from their predictions."
            f"{between}{tails}"
        )
    if isinstance(release, MultiOutputRelease):
        return (
            " That rests on one spread among people with equal inputs for all outputs, in widths "
            "of their intervals: each output's own may be larger or smaller, in two cases of three "
            f"by no more than a factor of {amount(np.exp(LOG_OWN_SD), 2)} if the prior holds."
            f"{between}"
        )
    if release.fitted_prior.scatter is not None:
        return (
            " Questions about parts of the rows measured the spread among people with equal "
            f"inputs, which varies with the inputs.{between}{tails}"
        )
    if release.counts_tell_noise:
        return (
            " Noisy counts, and the mean of predictions, tell the spread among people with equal "
            f"inputs: most values {most_are_alike(release.measurements)}.{between}{tails}"
        )
    if release.asks_spread:
        return (
            " One question about all rows measured the spread among people with equal inputs."
            f"{between}{tails}"
        )
    if release.fitted_prior.noise_variance != release.prior.noise_variance:
        return (
            " That is uncertain: the spread between people with the same inputs was not asked, but "
            f"estimated from sums, which say little about it.{between}"
        )
    return (
        " That rests on the assumed spread between people with the same inputs, which was not "
        f"asked.{between}"
    )


def _of_tails(accuracy: Accuracy) -> str:
    """State what an error without far values may miss; nothing where bounds are not known."""
    if accuracy.far is None:
        return ""
    return (
        " How far off a few values are that lie far from all others is not known: if one new "
        "value in a hundred lay at the farther declared bound, it would be "
        f"{amount(accuracy.far, 3)}."
    )


def _range_in_words(release: Release | MultiOutputRelease, accuracy: Accuracy) -> str:
    """State between what the error for one person lies, without clipped values and with them."""
    if accuracy.between is None:
        return OF_COUNTS * _learns_overdispersion(release)
    low, high = (amount(end, 3) for end in accuracy.between)
    clipped, counted, likely = _clips(release, accuracy.output), "", f"{100 * LIKELY:g} %"
    if accuracy.counts_clipped:
        return (
            " Values lie outside of the interval to which questions clip, as noisy counts tell: "
            "the first figure has their number and place as these have it, and may well be "
            f"anything from {low} to {high}."
        )
    if accuracy.with_clipped is not None:
        least, most = (amount(end, 3) for end in accuracy.with_clipped)
        counted = (
            f" With all of these the error may well be anything from {least} to {most}, by noisy "
            "counts that tell little of their number and place, and more where they are spread "
            "thinly over wide bounds, which no count sees."
        )
    unless = BUT_FOR_CLIPPED * clipped
    assumed = "if the prior holds"
    if release.is_calibrated:
        assumed = "if distances have as smooth a law as the counts are taken to have"
    tried = f"; of tables that were tried, {HELD}" * _is_tried(release)
    return (
        f" By what the answers leave open, the first figure lies between {low} and {high} "
        f"({likely}, {assumed}{tried}){unless}.{counted}"
    )


def _learns_overdispersion(release: Release | MultiOutputRelease) -> bool:
    """Return whether it is about counts of events whose scatter was estimated."""
    return isinstance(release, Release) and (
        isinstance(release.likelihood, CountLikelihood)
        and release.fitted.likelihood != release.likelihood
    )


def _is_tried(release: Release | MultiOutputRelease) -> bool:
    """Return whether it is of the kind whose ranges `HELD` tells of."""
    if not isinstance(release, Release) or found_alike(release.measurements):
        return False
    # What was tried is first fits of one table each.
    if release.visits > 1 or len(tables_of(release.measurements)) > 1:
        return False
    plain = release.transform is None and release.keeps_rows and not release.is_calibrated
    return plain and _rows_of_a_person(release) == 1


def _clips(release: Release | MultiOutputRelease, output: str) -> bool:
    """Return whether first questions clipped an output to an interval within its bounds."""
    if isinstance(release, MultiOutputRelease):
        place = release.called.index(output)
        return release.units.bounds[place] != release.columns.bounds[place]
    return narrower_interval(release.measurements) is not None


def calibration_facts(release: OneOutputRelease) -> tuple[Fact, ...]:
    """Describe how far intervals of new outputs can be trusted.

    Parameters
    ----------
    release : OneOutputRelease
        Of numbers.
    """
    if isinstance(release, Release):
        if release.margins is not None:
            return (_margin_fact(release.margins),)
        if release.noise_is_unknown:
            return (UNKNOWN_NOISE,)
    known = release.calibrated_by
    return (NOT_MEASURED if known is None else _calibration_fact(known, label="intervals"),)


def _calibration_fact(known: Calibration, *, label: str) -> Fact:
    """Describe the calibration of intervals of new values of one output."""
    strata = len(known.counts)
    parts = f" in each of {strata} parts by predicted value" if strata > 1 else ""
    unsure = 100 * NORMAL_95 * known.coverage_sd(STATED_COVERAGE)
    return Fact(
        label,
        "those for a new person's own value are calibrated by noisy counts of where the values "
        f"of {known.question.sizes.sum():,.0f} rows lie around their predictions{parts}. "
        f"Intervals of {100 * STATED_COVERAGE:g} % aim to hold that share of these values or "
        "somewhat more (they are narrowed only as far as the noise allows), over all rows "
        "together and not for each kind of person; noise and the number of rows may leave them "
        f"up to {amount(unsure, 2)} percentage points short of it (at 95 %). For new people this "
        "holds nearly: the predictions were fitted to the counted ones.",
    )


def _margin_fact(known: Margins) -> Fact:
    """Describe the coverage of intervals by rows that were kept out of the fit."""
    stated = f"{100 * STATED_COVERAGE:g} %"
    whole = (
        f" That takes more rows than these: an interval of {stated} is all within the bounds."
        if known.margin(STATED_COVERAGE) == np.inf
        else " An interval of more than these rows can tell is all within the bounds."
    )
    return Fact(
        "intervals",
        f"{known.rows:,} rows, drawn at random, were kept out of the fit and counted, with noise, "
        f"by their distance from predictions. An interval of {stated} holds a new person's own "
        f"value with a probability of at least {stated}, whatever the model, if new people are "
        "like those of the table (exchangeable with the rows that were kept out). That is on "
        "average over people and over draws of all this, and not for each kind of person; that "
        f"noise makes an interval too short has a probability of at most β = "
        f"{amount(100 * noise_part(STATED_COVERAGE), 2)} %, and is counted in. Values beyond "
        "the declared "
        f"bounds count as at their ends.{whole} Quantiles and probabilities do not go by this: "
        "they are the model's.",
    )


def _percent(share: float) -> str:
    return "hardly anything" if share < 0.01 else f"some {100 * share:.0f} %"
