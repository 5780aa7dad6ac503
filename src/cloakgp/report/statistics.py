"""Noisy sums and raw predictions in words: statistics, histograms, `cloak`, `Release.published`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cloakgp.models.axes import Levels
from cloakgp.models.cosines import CosineBasis
from cloakgp.privacy import CloakedPredictions
from cloakgp.privacy.noise import NOISES
from cloakgp.release import Published, StatisticsRelease
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.report.columns import input_names
from cloakgp.report.facts import Fact, Section
from cloakgp.report.guarantee import describe_exclusions, guarantee_facts
from cloakgp.utils.formatting import amount, ceiling

# Of a release that keeps no name of it.
OUTPUT = "the output"


def describe_statistics(release: StatisticsRelease) -> tuple[Section, ...]:
    """Return the facts that a custodian should know about released statistics, in sections.

    Parameters
    ----------
    release : StatisticsRelease
    """
    published, names = release.statistics, input_names(release)
    lo, hi = release.bounds
    columns = names if release.schema is None else [each.name for each in release.schema.used]
    present, output = release.neighbours == "add-remove", release.called
    return (
        Section(
            "Protection",
            (
                Fact(
                    "protected",
                    f"whole rows: the inputs ({', '.join(columns)}) and {output} of every single "
                    "row. The published values would be almost as likely "
                    + ("without that row." if present else "if they were any others."),
                ),
                Fact(
                    "not protected",
                    ("the bounds" if release.classes is None else "which classes there are")
                    + " and the prior"
                    + "; how many rows there are" * (not present)
                    + ".",
                ),
                *describe_exclusions("a person"),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee,
                output="row",
                parts=[part.guarantee for part in release.parts],
                present=present,
            ),
        ),
        Section(
            "Noise",
            (
                *_counts_of_columns(release),
                Fact(
                    "answers",
                    f"{published.guarantee.answers} sums over all rows of {release.basis.count} "
                    f"features and their products, with normal noise drawn from "
                    f"{_source(release.insecure)}: of sd {amount(published.gram_sd, 4)} on "
                    # Features of which a row has one alone have no other products.
                    f"squares, {'' if published.exclusive else '√2 times less on other products, '}"
                    f"and {amount(published.moment_sd, 4)} on sums with {output}.",
                ),
                *_rounds(release),
            ),
        ),
        Section(
            "Prior",
            (
                _prior(release),
                Fact(
                    "noise sd",
                    f"{amount(math.sqrt(release.noise_variance), 4)}, of each output about the "
                    "curve.",
                ),
            ),
        ),
        Section(
            "Data",
            (
                Fact("rows", "private" if published.rows is None else f"{published.rows:,}"),
                *_inputs(release),
                Fact(
                    output,
                    f"private; declared to lie in {amount(lo, 12)} to {amount(hi, 12)}; values "
                    "outside were clipped, uncounted."
                    if release.classes is None
                    else "private; declared to be one of "
                    f"{_one_of(release.classes.labels)}, for which corners of a "
                    "simplex stand, at equal distances.",
                ),
            ),
        ),
    )


def _inputs(release: StatisticsRelease) -> tuple[Fact, ...]:
    """Return what is declared of each input."""
    if release.schema is None:
        box = zip(input_names(release), release.basis.box.lo, release.basis.box.hi, strict=True)
        return tuple(
            Fact(name, f"private; declared to lie in {amount(low, 12)} to {amount(high, 12)}")
            for name, low, high in box
        )
    return tuple(
        Fact(
            column.name,
            f"private; declared to be {column.describe()}"
            + (f", in {column.describe_ranges()}" if column.ranges else "")
            + ("" if column.missing == "refuse" else f"; missing: {column.missing}"),
        )
        for column in release.schema.used
    )


def _one_of(classes: Sequence[object]) -> str:
    *first, last = map(str, classes)
    return f"{', '.join(first)} and {last}"


def _counts_of_columns(release: StatisticsRelease) -> tuple[Fact, ...]:
    if release.counts is None:
        return ()
    counts, names = release.counts, input_names(release)
    axes = release.basis.spread_along if isinstance(release.basis, CosineBasis) else ()
    called = [axis.called(names) for axis in axes]
    parts = [
        f"{len(counts.counts[column])} of {name} (noise sd {amount(counts.sd_of(column), 4)})"
        for column, name in enumerate((*called, release.called))
    ]
    levels = ", and of levels" * any(isinstance(axis, Levels) for axis in axes)
    return (
        Fact(
            "counts",
            f"of rows in equal bins of every column's range{levels}: {', '.join(parts)}. They "
            "chose the features below, and "
            + (
                "where the middle of labels lies." * (release.classes is not None)
                or "the band to which outputs were clipped."
            ),
        ),
    )


def _rounds(release: StatisticsRelease) -> tuple[Fact, ...]:
    """Return a fact about each later round."""
    return tuple(
        Fact(
            f"round {number}",
            f"{part.guarantee.answers - 1} sums over what was left of {release.called}, clipped to "
            f"{amount(part.half_width, 4)} to either side of the predictions so far, with noise of "
            f"sd {amount(part.moment_sd, 4)}, and one of its squares, with noise of sd "
            f"{amount(part.squares_sd * part.half_width**2, 4)}.",
        )
        for number, part in enumerate(release.residuals, start=2)
    )


def _prior(release: StatisticsRelease) -> Fact:
    basis = release.basis
    if not isinstance(basis, CosineBasis):
        return Fact("kernel", f"{basis.kernel} (covariance, in squared output units)")
    pairs = ", and of pairs of inputs," if basis.box.n_inputs > 1 else ""
    return Fact(
        "prior",
        f"smooth effects of single inputs{pairs} over the share of rows below an input, of sd "
        f"{amount(math.sqrt(basis.signal_variance), 4)} together.",
    )


def describe_histogram(release: NoisyHistogram) -> tuple[Section, ...]:
    """Return the facts that a custodian should know about a released histogram, in sections.

    Parameters
    ----------
    release : NoisyHistogram
    """
    lo, hi = release.bounds
    names, spent = input_names(release), release.guarantee
    ranges = [
        Fact(name, f"{amount(edges[0], 4)} to {amount(edges[-1], 4)}, in {len(edges) - 1} bins")
        for name, edges in zip(names, release.bins.edges, strict=True)
    ]
    return (
        Section(
            "Protection",
            (
                Fact(
                    "protected",
                    f"{OUTPUT} of every single row. The published values would be almost as likely "
                    f"if that value were any other from {amount(lo, 12)} to {amount(hi, 12)}.",
                ),
                Fact(
                    "not protected",
                    f"how many rows lie in each bin of the inputs ({', '.join(names)}), which are "
                    "in this file; who is in the table; the bounds.",
                ),
                *describe_exclusions(OUTPUT),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(spent, output="output", parts=[spent]),
        ),
        Section(
            "Noise",
            (
                Fact(
                    "answers",
                    f"{len(release.sums)} sums over bins, each with {NOISES[release.noise].law} "
                    f"noise of sd {amount(release.noise_sd, 4)}, in output units, drawn from "
                    f"{_source(release.insecure)}.",
                ),
            ),
        ),
        Section(
            "Data",
            (
                Fact("rows", f"{release.counts.sum():,.0f}, of which the file holds counts"),
                *ranges,
                Fact(
                    OUTPUT,
                    f"private; declared to lie in {amount(lo, 12)} to {amount(hi, 12)}; values "
                    "outside were clipped, "
                    "uncounted.",
                ),
            ),
        ),
    )


def describe_cloaked(release: CloakedPredictions) -> tuple[Section, ...]:
    """Return the facts that a custodian should know about cloaked predictions, in sections.

    Parameters
    ----------
    release : CloakedPredictions
    """
    return (
        Section(
            "Protection",
            (
                Fact("protected", f"{OUTPUT} of every single row, within the declared bounds."),
                Fact("not protected", "the map from outputs to predictions, and the bounds."),
                *describe_exclusions(OUTPUT),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(release.guarantee, output="output", parts=[release.guarantee]),
        ),
        Section(
            "Noise",
            (
                _noise(release),
                Fact(
                    "design",
                    "the noise was shaped to be the least. It is certified to be within "
                    f"{ceiling(100 * release.gap, digits=2)} % of the least possible.",
                ),
            ),
        ),
    )


def describe_published(release: Published) -> tuple[Section, ...]:
    """Return the facts about raw predictions, in sections.

    Parameters
    ----------
    release : Published
    """
    return (Section("Noise", (_noise(release),)),)


def _noise(release: CloakedPredictions | Published) -> Fact:
    sd = float(np.sqrt(np.diag(release.noise_cov).mean())) if len(release.values) else 0.0
    return Fact(
        "answers",
        f"raw predictions at {len(release.values)} points, with "
        f"{NOISES[release.noise].of_sums} of {amount(sd, 4)} (root mean square, in output units), "
        f"drawn from {_source(release.insecure)}.",
    )


def _source(insecure: bool) -> str:
    return "a FIXED SEED" if insecure else "the operating system's randomness"
