"""Values outside the interval found by counts: their treatment, number and place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.privacy.questions.scatter import ScatterQuestion
from cloakgp.release import DenseStrategy, Measurement, Release, StreamedStrategy
from cloakgp.release.bands import RowBands, RowScatter
from cloakgp.release.common_values import (
    MOST_ALIKE,
    SingleValues,
    asked_tables,
    estimate_below,
    estimate_single_values,
    found_alike,
    rounds_of,
)
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.measurement import declared_bounds, narrower_interval
from cloakgp.report.columns import Tabular, asked_output, input_names, rows_like
from cloakgp.report.facts import Fact
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import amount

# How many sds of its noise a count is said to be off by.
GIVE_OR_TAKE = 2.0
# An interval of so small a share of the declared width may be around a value that most have.
AROUND_ONE = 1 / 500
# A column tells a group from others if the group spans no more than this of its range.
NARROW, MOST_COLUMNS = 0.6, 2


def clipped_facts(release: Release) -> tuple[Fact, ...]:
    """Describe the treatment of values outside the interval found by counts, if there is one.

    Parameters
    ----------
    release : Release
    """
    clipped, question = narrower_interval(release.measurements), release.measurements[0].question
    if clipped is None:
        return _alike_facts(release)
    assert isinstance(question, OutputBounds)
    lo, hi = clipped
    counted = [
        one
        for one in release.measurements
        if isinstance(one.question, OutsideQuestion)
        and (one.question.lo, one.question.hi) == (lo, hi)
    ]
    what = _treated(release, lo=lo, hi=hi) + _around_one(release, question)
    if not counted:
        return (
            Fact(
                "clipped",
                f"{what} {_how_many_in_all(release, question)}; whether these are a group of rows "
                "with like inputs is not known: too few rows, or too small a budget, to ask.",
            ),
        )
    return (Fact("clipped", f"{what} {how_many_outside(counted[-1], release)}"),)


def _alike_facts(release: Release) -> tuple[Fact, ...]:
    """Say that counts found most values at single ones, and what follows, if they did."""
    if len(asked_tables(release.measurements)) > 1:
        return _alike_somewhere(release)
    common = name_common_values(
        release.measurements, tell=lambda value: _in_output_units(value, release)
    )
    if not common:
        return ()
    banded = any(isinstance(one.question, Bands | RowBands) for one in release.measurements)
    if not release.counts_tell_noise:
        told = (
            "How far one value is from its prediction is told by what most are, and may be several "
            "times that; so intervals may hold fewer than they say."
        )
    elif release.transform is not None:
        told = (
            "How far the transformed values are from their predictions is told by these counts and "
            "by the mean of predictions; the values themselves may be several times as far as is "
            "told."
        )
    else:
        told = (
            "How far one value is from its prediction is told by these counts and by the mean of "
            "predictions: where the others are small beside the bounds, it is less than is told. "
            "Intervals are as wide everywhere, and values are not: where hardly any differ, fewer "
            "are outside than they say, and where many do, more."
        )
    return (
        Fact(
            "most values",
            f"by noisy counts most values of {release.output_name} {common}. Where the others lie "
            "these hardly tell: the declared bounds were kept"
            f"{'' if banded else ', and no values clipped to bands'}. {told} Of two values, or of "
            "whether there is anything at all, classes tell more.",
        ),
    )


def _alike_somewhere(release: Release) -> tuple[Fact, ...]:
    """Say that most values of one of several tables may be the same, by noisy counts, if so."""
    if not found_alike(release.measurements):
        return ()
    return (
        Fact(
            "most values",
            f"by noisy counts most values of {release.output_name} in one of these tables may "
            "be the same, or one of a few. How far one value is from its prediction is told for "
            "all tables together, and may be several times that; so intervals may hold fewer than "
            "they say.",
        ),
    )


def name_common_values(measurements: Sequence[Measurement], *, tell: Callable[[float], str]) -> str:
    """Say that most outputs seem to be, or may be, some values, and which; empty if they are not.

    They seem to be where the shares that are told are half of all together, and may be where the
    noise of these hides whether they are.

    Parameters
    ----------
    measurements : sequence of Measurement
        Of one output of one table.
    tell : callable
        Writes a value.
    """
    found = _single_values(measurements)
    if found is None:
        return ""
    apart, off = _told_apart(found)
    told = [
        f"{tell(value)} ({_share(share)}, {_give_or_take(error)})"
        for value, share, error in zip(
            found.values[apart], found.shares[apart], off[apart], strict=True
        )
    ]
    which = " and ".join(told) or "an end of the bounds, or nothing"
    alike = "the same" if len(told) == 1 else "one of these"
    return f"{_as_most(found.shares[apart])} {alike}: {which}"


def most_are_alike(measurements: Sequence[Measurement]) -> str:
    """Say that most outputs seem to be, or may be, the same, or one of a few; empty if none are.

    Parameters
    ----------
    measurements : sequence of Measurement
        As for `name_common_values`, whose words these are without the values.
    """
    found = _single_values(measurements)
    if found is None:
        return ""
    apart, _ = _told_apart(found)
    shares = found.shares[apart]
    return f"{_as_most(shares)} {'the same' if len(shares) == 1 else 'one of a few'}"


def _single_values(measurements: Sequence[Measurement]) -> SingleValues | None:
    """Return the values that most outputs may have; None if they have none in common."""
    rounds = [one for one in measurements if isinstance(one.question, CountQuestion)]
    if not rounds:
        return None
    found = estimate_single_values(rounds_of(rounds), rows=float(rounds[0].strategy.totals[0]))
    return found if found.may_be_most else None


def _told_apart(found: SingleValues) -> tuple[NDArray[np.bool_], Array]:
    """Return which values somebody has, whatever the noise; and how far each share may be off."""
    off: Array = GIVE_OR_TAKE * np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    return found.shares > off, off


def _as_most(shares: Array) -> str:
    return "seem to be" if shares.sum() >= MOST_ALIKE else "may be"


def band_facts(release: Release) -> tuple[Fact, ...]:
    """Say whether bands of later questions may have lost a group, as far as answers tell.

    Parameters
    ----------
    release : Release
    """
    questions = [one.question for one in release.measurements]
    if not any(isinstance(one, Bands | RowBands) for one in questions):
        return ()
    what = "later questions clipped values to bands around predictions, uncounted."
    asked = [one for one in release.measurements if one.about_scatter]
    if not asked:
        learned, few = release.hyperprior, ""
        if release.likelihood.linear and learned is not None and learned.noise_variance:
            few = ": too few rows, or too small a budget"
        return (
            Fact(
                "bands",
                f"{what} Whether the values outside are a group of rows with like inputs was not "
                f"asked{few}.",
            ),
        )
    question = asked[-1].question
    if release.fitted_prior.scatter is None:
        return (Fact("bands", f"{what} Where values scatter most is not told of this release."),)
    assert isinstance(question, ScatterQuestion | RowScatter)
    noise = np.sqrt(release.fitted_prior.observation_noise(question.centres))
    most = int(np.argmax(noise))
    others = np.delete(noise, most)
    place = rows_like(release, question.centres, which=most, units=question.units)
    return (
        Fact(
            "bands",
            f"{what} Then it was asked how far values lie from predictions, in {len(noise)} groups "
            f"of rows with like inputs. By noisy answers {asked_output(release)} scatters most "
            f"around {place}: with an sd of {amount(noise[most], 3)}, and of "
            f"{amount(others.min(), 3)} to "
            f"{amount(others.max(), 3)} elsewhere. What bands lost of a group counts as scatter.",
        ),
    )


def _treated(release: Release, *, lo: float | None, hi: float | None) -> str:
    parts = [(lo, "under"), (hi, "over")]
    told = [(word, _in_output_units(end, release)) for end, word in parts if end is not None]
    ends = [f"{word} {end} as {end}" for word, end in told]
    return (
        f"the first questions took values of {release.output_name} {' and '.join(ends)}, since "
        "noisy counts found most values within."
    )


def _in_output_units(value: float, release: Release) -> str:
    if release.transform is not None:
        value = float(release.transform.inverse(np.array([value]))[0])
    return amount(value, 4)


def _around_one(release: Release, taken: OutputBounds) -> str:
    """Say that most values may be one and the same, if the interval is very narrow."""
    [(lowest, highest)] = declared_bounds(release.measurements)
    share = taken.width / (highest - lowest)
    if share >= AROUND_ONE:
        return ""
    return (
        f" That is {amount(share, 1)} of the declared width: bounds are far wider than needed, or "
        "most values are one and the same, such as nothing. Then predictions are that value, "
        "errors are told far too small, and classes, or no interval, serve better."
    )


def _how_many_in_all(release: Release, taken: OutputBounds) -> str:
    """State the number of values outside, by the counts that found the interval."""
    rounds = [one for one in release.measurements if isinstance(one.question, CountQuestion)]
    asked = rounds_of(rounds)
    places, every = np.unique(np.concatenate([edges for edges, _ in asked])), rounds[0].strategy
    rows = float(every.totals[0])
    below, covariance = estimate_below(asked, places, rows=rows)
    # Between two ends of counts, along a line.
    inside = _weights(taken.hi, places) - _weights(taken.lo, places)
    share = 1.0 - float(inside @ below) / rows
    off = GIVE_OR_TAKE * math.sqrt(max(float(inside @ covariance @ inside), 0.0)) / rows
    return f"By noisy counts these are {_share(share)} of all, {_give_or_take(off)}"


def _weights(end: float, places: Array) -> Array:
    return np.array([np.interp(end, places, row) for row in np.eye(len(places))])


def how_many_outside(measurement: Measurement, release: Tabular) -> str:
    """State the number of values outside an interval, and of which group they are.

    Parameters
    ----------
    measurement : Measurement
        That asked who lies outside, by strata.
    release : Release or MultiOutputRelease
    """
    question, strategy = measurement.question, measurement.strategy
    assert isinstance(question, OutsideQuestion)
    sizes, noise_sd = strategy.totals, measurement.answers.noise_sd
    outside = question.how_many(measurement.answers.values, sizes)
    every, total = float(sizes.sum()), float(outside.sum())
    off = GIVE_OR_TAKE * noise_sd
    said = (
        f"By noisy counts these are {_share(total / every)} of all, "
        f"{_give_or_take(off * np.sqrt(len(sizes)) / every)}"
    )
    worst = int(np.argmax(outside - GIVE_OR_TAKE * noise_sd - sizes * total / every))
    if outside[worst] <= off:
        return f"{said}; no group of rows with like inputs stands out."
    return (
        f"{said}; of the {sizes[worst]:,.0f} rows {_where(measurement, release, worst)} they are "
        f"{_share(outside[worst] / sizes[worst])}, {_give_or_take(off / sizes[worst])}."
    )


def _share(share: float) -> str:
    return f"about {_percent(min(max(share, 0.0), 1.0))}"


def _give_or_take(off: float) -> str:
    # Of a share in per cent, and not a share of that share.
    return f"give or take {_hundredths(off)} percentage points"


def _percent(share: float) -> str:
    return f"{_hundredths(share)} %"


def _hundredths(share: float) -> str:
    return amount(100 * share, 2) if share < 0.1 else f"{100 * min(share, 1.0):.0f}"


def _where(measurement: Measurement, release: Tabular, stratum: int) -> str:
    """Describe the place of the rows of a stratum."""
    names = input_names(release)
    strategy, own = measurement.strategy, slice(len(names))
    if isinstance(strategy, DenseStrategy | GatheredStrategy):
        X = strategy.X[strategy.matrix[stratum] > 0, own]
        ends = np.array([X.min(axis=0), X.max(axis=0)])
        width = np.ptp(strategy.ranges[:, own], axis=0)
        spans = np.ptp(ends, axis=0) / np.where(width > 0, width, np.inf)
        spans[width == 0] = 1.0
        parts = [f"with {names[place]} {_range(ends[:, place])}" for place in _telling(spans)]
        return " and ".join(parts) or "of one group of like inputs"
    assert isinstance(strategy, StreamedStrategy)
    assert strategy.strata is not None
    strata = strategy.strata
    like = rows_like(release, strata.centres, which=stratum, units=strata.units)
    return f"around {like}"


def _telling(spans: Array) -> list[int]:
    return [int(place) for place in np.argsort(spans)[:MOST_COLUMNS] if spans[place] <= NARROW]


def _range(ends: Array) -> str:
    return (
        f"{amount(ends[0], 3)} to {amount(ends[1], 3)}"
        if ends[0] < ends[1]
        else f"{amount(ends[0], 3)}"
    )
