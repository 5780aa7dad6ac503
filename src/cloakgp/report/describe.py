"""A release in words, for whoever must decide whether it may be published.

Pure functions of the public object: nothing here computes anything from an output. Releases about
numbers, one output or several, are described here, and of every other kind by a module of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

import numpy as np

from cloakgp.privacy import CloakedPredictions
from cloakgp.privacy.pure_dp import PureGuarantee
from cloakgp.release import (
    LabelRelease,
    ManyRowsRelease,
    MultiOutputRelease,
    Published,
    Release,
    StatisticsRelease,
)
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.measurement import Measurement
from cloakgp.release.open import OpenedRelease
from cloakgp.report.classification import describe_labels
from cloakgp.report.columns import NumberRelease, input_names, rows, tables
from cloakgp.report.facts import Fact, Section
from cloakgp.report.guarantee import guarantee_facts, insecurity, not_in_the_promise
from cloakgp.report.measurements import how_designed, how_sharp, prior_facts, what_was_answered
from cloakgp.report.statistics import (
    describe_cloaked,
    describe_histogram,
    describe_published,
    describe_statistics,
)
from cloakgp.report.streaming import describe_many_rows
from cloakgp.utils.formatting import ceiling

# What outputs that are measured together are called.
OUTPUTS = "the outputs"
WIDTHS = "widths of the outputs' bounds"

Describable = OpenedRelease | CloakedPredictions | Published


def describe(release: Describable) -> tuple[Section, ...]:
    """Return everything that a custodian should know about a release, in sections.

    Parameters
    ----------
    release : Release or any other kind of release
        Or what `cloak` or `Release.published` return.

    Raises
    ------
    TypeError
        If it is no release.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> sections = describe(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> [section.title for section in sections]
    ['Protection', 'Guarantee', 'Noise', 'Prior', 'Data']
    """
    warning = (insecurity(),) * release.insecure
    return (*warning, *_sections(release))


@singledispatch
def _sections(release: object) -> tuple[Section, ...]:
    """Return what is said of a kind of release; of each kind by a module of its own."""
    raise TypeError(f"{type(release).__name__} is no release")


@_sections.register
def _of_numbers(release: Release) -> tuple[Section, ...]:
    parts = [one.answers.guarantee for one in release.measurements]
    return (
        Section("Protection", _protection(release)),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee,
                output=release.output_name,
                parts=parts,
                choice=release.choice,
                grouped=_grouped(release),
            ),
        ),
        Section("Noise", _noise(release)),
        Section("Prior", prior_facts(release)),
        Section("Data", _data(release)),
    )


def headline(release: OpenedRelease | CloakedPredictions) -> str:
    """Return the guarantee in a few words, or that there is none.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, delta=1e-3)
    >>> headline(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    '(1, 0.001)-differentially private'
    """
    if release.insecure:
        return "INSECURE: seeded noise, not private"
    guarantee = release.guarantee
    if isinstance(guarantee, PureGuarantee):
        return f"{ceiling(guarantee.epsilon)}-differentially private"
    return f"({ceiling(guarantee.epsilon)}, {guarantee.delta:.4g})-differentially private"


def bounds(release: NumberRelease) -> tuple[float, float]:
    """Return the declared range of one output; of several measurements, what spans them all."""
    if isinstance(release, ManyRowsRelease):
        return release.answers.bounds
    pairs = np.array([one.answers.bounds for one in release.measurements])
    return float(pairs[:, 0].min()), float(pairs[:, 1].max())


def _grouped(release: Release) -> bool:
    """Return whether every table protects all rows of one person together."""
    return all(one.groups is not None for one in release.measurements)


def _any_groups(release: Release) -> bool:
    return any(one.groups is not None for one in release.measurements)


def _unit(release: Release) -> str:
    """Say whose values are protected together."""
    output = release.output_name
    groups = {one.table: one.groups for one in release.measurements}
    together = [each for each in groups.values() if each is not None]
    if not together:
        return f"the value of {output} in every single row"
    people = " and ".join(
        f"{int(each.max()) + 1:,} people with up to {int(np.bincount(each).max()):,} rows each"
        for each in together
    )
    said = f"all values of {output} of one person, in every row of theirs ({people})"
    if len(together) == len(groups):
        return said
    return f"{said}; in tables that do not say whose rows they are, every single row"


def _protection(release: Release) -> tuple[Fact, ...]:
    output, names = release.output_name, ", ".join(input_names(release))
    lo, hi = bounds(release)
    return (
        Fact(
            "protected",
            f"{_unit(release)}. What is published would be almost as likely if "
            f"{'these were any others' if _grouped(release) else 'that value were any other'} "
            f"from {lo:g} to {hi:g}.",
        ),
        Fact(
            "not protected",
            f"the inputs ({names}), which are in this file row by row; that somebody is in the "
            f"table; {'which rows are the same person; ' * _any_groups(release)}the bounds and "
            "the prior.",
        ),
        *not_in_the_promise(output),
    )


def _noise(release: Release) -> tuple[Fact, ...]:
    visits = len(release.measurements)
    facts = []
    for number, one in enumerate(release.measurements):
        ordinal = f" {number + 1}" if visits > 1 else ""
        facts += [
            Fact(
                f"answers{ordinal}",
                what_was_answered(
                    one.answers,
                    queries=one.X_query,
                    reconstruction=one.reconstruction,
                    output=release.output_name,
                ),
            ),
            Fact(f"design{ordinal}", how_designed(one.certificate)),
        ]
    points = np.vstack([one.X_query for one in release.measurements])
    facts.append(how_sharp(release, points))
    return tuple(facts)


def _data(release: Release) -> tuple[Fact, ...]:
    sizes = [f"{len(X):,}" for X in tables(release)]
    X = rows(release)
    ranges = [
        Fact(name, f"{column.min():.4g} to {column.max():.4g}")
        for name, column in zip(input_names(release), X.T, strict=True)
    ]
    pairs = dict.fromkeys(one.answers.bounds for one in release.measurements)
    stated = " and ".join(f"{lo:g} to {hi:g}" for lo, hi in pairs)
    return (
        Fact("rows", " + ".join(sizes) + f", in {len(sizes)} tables" * (len(sizes) > 1)),
        *ranges,
        Fact(
            release.output_name,
            f"private; declared to lie in {stated}; values outside were clipped, uncounted.",
        ),
    )


def describe_several_outputs(release: MultiOutputRelease) -> tuple[Section, ...]:
    """Return everything that a custodian should know about several outputs, in sections.

    Parameters
    ----------
    release : MultiOutputRelease
    """
    entries, names = release.entries, ", ".join(input_names(release))
    count = len(release.columns.bounds)
    measurements = entries.measurements
    grouped = all(_people(one) < len(one.X) // count for one in measurements)
    noise = []
    for number, one in enumerate(measurements):
        ordinal = f" {number + 1}" if len(measurements) > 1 else ""
        noise += [
            Fact(
                f"answers{ordinal}",
                what_was_answered(
                    one.answers,
                    queries=one.X_query,
                    reconstruction=one.reconstruction,
                    output=WIDTHS,
                ),
            ),
            Fact(f"design{ordinal}", how_designed(one.certificate)),
        ]
    tables = {one.table: one.X[::count, :-1] for one in measurements}
    X = np.vstack(list(tables.values()))
    return (
        Section(
            "Protection",
            (
                Fact(
                    "protected",
                    f"all {count} outputs together of every "
                    f"{'person' if grouped else 'single row'}. What is published would be almost "
                    "as likely if they were any others within their bounds.",
                ),
                Fact(
                    "not protected",
                    f"the inputs ({names}), which are in this file row by row; that somebody is "
                    "in the table; the bounds and the prior.",
                ),
                *not_in_the_promise(OUTPUTS),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee,
                output="outputs (all together)",
                parts=[one.answers.guarantee for one in measurements],
                choice=entries.choice,
                grouped=grouped,
            ),
        ),
        Section("Noise", tuple(noise)),
        Section("Prior", prior_facts(replace(entries, output_name=WIDTHS))),
        Section(
            "Data",
            (
                Fact("rows", f"{len(X):,}"),
                *(
                    Fact(name, f"{column.min():.4g} to {column.max():.4g}")
                    for name, column in zip(input_names(release), X.T, strict=True)
                ),
                *(
                    Fact(
                        f"output {number + 1}",
                        f"private; declared to lie in {one.lo:g} to {one.hi:g}; values outside "
                        "were clipped, uncounted.",
                    )
                    for number, one in enumerate(release.columns.bounds)
                ),
            ),
        ),
    )


def _people(one: Measurement) -> int:
    """Return how many groups of entries are protected together."""
    return len(one.X) if one.groups is None else int(one.groups.max()) + 1


_sections.register(ManyRowsRelease, describe_many_rows)
_sections.register(LabelRelease, describe_labels)
_sections.register(MultiOutputRelease, describe_several_outputs)
_sections.register(StatisticsRelease, describe_statistics)
_sections.register(NoisyHistogram, describe_histogram)
_sections.register(CloakedPredictions, describe_cloaked)
_sections.register(Published, describe_published)
