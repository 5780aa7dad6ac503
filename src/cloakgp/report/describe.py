"""Releases in words: the facts that a custodian should know, in sections.

Pure functions of the public object: nothing here computes anything from an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import singledispatch

from cloakgp.columns import Number, Schema
from cloakgp.models.kernels.forgetting import ForgettingKernel
from cloakgp.models.latent import components
from cloakgp.models.likelihoods import (
    ClassLikelihood,
    CountLikelihood,
    Likelihood,
    QuantileLikelihood,
)
from cloakgp.privacy import CloakedPredictions
from cloakgp.privacy.questions.outside import OutsideQuestion
from cloakgp.release import (
    MultiOutputRelease,
    Published,
    Release,
    StatisticsRelease,
    Strategy,
    StreamedStrategy,
)
from cloakgp.release.gathered_strategy import GatheredStrategy
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.measurement import tables_of
from cloakgp.release.open import OpenedRelease
from cloakgp.report.classification import ClassWords
from cloakgp.report.clipped import how_many_outside, name_common_values
from cloakgp.report.columns import (
    input_names,
    public_columns,
)
from cloakgp.report.counts import CountWords
from cloakgp.report.facts import Fact, Section
from cloakgp.report.guarantee import describe_exclusions, guarantee_facts, insecurity
from cloakgp.report.measurements import describe_answers, prior_facts
from cloakgp.report.outputs import NumberWords, OutputWords
from cloakgp.report.prediction import protection_facts
from cloakgp.report.quantiles import QuantileWords
from cloakgp.report.statistics import (
    describe_cloaked,
    describe_histogram,
    describe_published,
    describe_statistics,
)
from cloakgp.report.worth import accuracy_section, most_of_a_person
from cloakgp.utils.formatting import amount, ceiling, percent

# What outputs that are measured together are called.
OUTPUTS = "the outputs"
WIDTHS = "widths of the outputs' bounds"
FOUND_WIDTHS = "widths of the outputs' intervals"
# The order of sections: accuracy comes first; the last ones are for those who know the methods.
TECHNICAL = ("Noise", "Prior")
ORDER = ("Predictions", "Protection", "Guarantee", "Data", *TECHNICAL)

Describable = OpenedRelease | CloakedPredictions | Published


def describe(release: Describable) -> tuple[Section, ...]:
    """Return the facts that a custodian should know about a release, in sections.

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
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0)
    >>> sections = describe(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    >>> [section.title for section in sections]
    ['Predictions', 'Protection', 'Guarantee', 'Data', 'Noise', 'Prior']
    """
    warning = (insecurity(),) * release.insecure
    told = [
        replace(section, technical=section.title in TECHNICAL) for section in _sections(release)
    ]
    worth = accuracy_section(release)
    every = [*told, *(() if worth is None else (worth,))]
    return (*warning, *sorted(every, key=lambda section: ORDER.index(section.title)))


@singledispatch
def _sections(release: object) -> tuple[Section, ...]:
    """Return the sections of a kind of release; each kind has a module of its own."""
    raise TypeError(f"{type(release).__name__} is no release")


# How releases about each kind of output are put into words; others as those about numbers.
WORDS: dict[type[Likelihood], OutputWords] = {
    ClassLikelihood: ClassWords(),
    CountLikelihood: CountWords(),
    QuantileLikelihood: QuantileWords(),
}


@_sections.register
def _of_release(release: Release) -> tuple[Section, ...]:
    words = WORDS.get(type(release.likelihood), NumberWords())
    predictions = (*words.predictions(release), *_drift(release))
    return (
        Section("Protection", _protection(release, words)),
        Section(
            "Guarantee",
            (
                *guarantee_facts(
                    release.guarantee,
                    output=release.output_name,
                    parts=[measurement.guarantee for measurement in release.measurements],
                    cohorts=() if release.choice is not None else release.cohorts,
                    tables=[measurement.strategy.table for measurement in release.measurements],
                    kept=release.kept,
                    choice=release.choice,
                    grouped=_grouped(release),
                    visits=release.visits,
                    limit=release.limit,
                    origin=release.provenance,
                ),
                *_custodians(release),
            ),
        ),
        Section("Noise", _noise(release, words)),
        *((Section("Predictions", predictions),) if predictions else ()),
        Section("Prior", words.prior(release)),
        Section("Data", _data(release, words)),
    )


def _drift(release: Release) -> tuple[Fact, ...]:
    """Say how fast what is known is forgotten, if it is."""
    names = input_names(release)
    return tuple(
        Fact(
            "drift",
            f"{percent(1 - part.lasting)} of the variance drifts with {names[part.place]}: what is "
            f"known of it fades by a factor e = 2.72 every {amount(part.length, 4)}, as was "
            "declared; the "
            "rest lasts.",
        )
        for part in components(release.fitted_prior.kernel)
        if isinstance(part, ForgettingKernel)
    )


def _custodians(release: Release) -> tuple[Fact, ...]:
    """Say what the guarantee assumes of several custodians, if there were any."""
    if release.custodians is None:
        return ()
    return (Fact("custodians", release.custodians.assumption),)


def headline(release: OpenedRelease | CloakedPredictions) -> str:
    """Return the guarantee in a few words, or that there is none.

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0)
    >>> headline(model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_)
    '1-differentially private'
    """
    if release.insecure:
        return "INSECURE: seeded noise, not private"
    guarantee = release.guarantee
    if guarantee.delta_at(guarantee.epsilon) == 0:
        return f"{ceiling(guarantee.epsilon)}-differentially private"
    delta = ceiling(guarantee.delta, digits=4)
    return f"({ceiling(guarantee.epsilon)}, {delta})-differentially private"


def _groups(release: Release) -> list[str]:
    """State the number of people of each table that protects all rows of a person together."""
    said = []
    for strategy in tables_of(release.measurements).values():
        groups = strategy.groups
        if groups is not None:
            most = most_of_a_person(strategy)
            said.append(f"{int(groups.max()) + 1:,} people with up to {most:,} rows each")
        elif isinstance(strategy, StreamedStrategy | GatheredStrategy) and strategy.grouping:
            known = strategy.grouping
            # Of several custodians, a person is counted at each.
            least = -(-known.groups // known.places)
            where = " at each custodian" if known.places > 1 else " each"
            said.append(f"at least {least:,} people with up to {known.most_rows:,} rows{where}")
    return said


def _grouped(release: Release) -> bool:
    """Return whether every table protects all rows of one person together."""
    return all(strategy.grouped for strategy in tables_of(release.measurements).values())


def _unit(release: Release) -> str:
    """Name the values that are protected together."""
    output, people = release.output_name, _groups(release)
    if not people:
        return f"the value of {output} in every single row"
    said = f"all values of {output} of one person, over all rows ({' and '.join(people)})"
    if _grouped(release):
        return said
    return f"{said}; every single row in tables without ids of persons"


def _protection(release: Release, words: OutputWords) -> tuple[Fact, ...]:
    names = ", ".join(public_columns(release))
    inputs = (
        f"the inputs ({names}), which are in this file row by row"
        if release.keeps_rows
        else f"the inputs ({names}), of which this file holds ranges, cluster centres and sums"
    )
    return (
        Fact(
            "protected",
            words.describe_protection(release, unit=_unit(release), grouped=_grouped(release)),
        ),
        Fact(
            "not protected",
            f"{inputs}; who is in the table; "
            f"{'which rows are the same person; ' * bool(_groups(release))}{words.also_public()}.",
        ),
        *protection_facts(release),
        *describe_exclusions(release.output_name),
    )


def _noise(release: Release, words: OutputWords) -> tuple[Fact, ...]:
    facts = []
    for number, measurement in enumerate(release.measurements):
        ordinal = f" {number + 1}" if len(release.measurements) > 1 else ""
        facts += [
            Fact(f"answers{ordinal}", words.describe_answers(measurement, release)),
            Fact(f"design{ordinal}", words.describe_design(measurement, release)),
        ]
        if isinstance(measurement.strategy, StreamedStrategy | GatheredStrategy):
            facts.append(
                Fact(
                    f"checked{ordinal}",
                    f"the weight of each of {measurement.strategy.n_rows:,} rows in the questions "
                    "was measured while they were asked, and "
                    f"no {'person' if measurement.strategy.grouped else 'row'} weighs more than "
                    "the guarantee allows. Anyone who has the inputs can repeat this check.",
                )
            )
    return (*facts, *words.sharpness(release))


def _data(release: Release, words: OutputWords) -> tuple[Fact, ...]:
    strategies = tables_of(release.measurements).values()
    sizes = [f"{strategy.n_rows:,}" for strategy in strategies]
    ranges = zip(input_names(release), release.input_ranges.T, strict=True)
    plain = {name: f"{amount(low, 4)} to {amount(high, 4)}" for name, (low, high) in ranges}
    told = plain if release.schema is None else _raw_columns(release.schema, plain)
    gone = "" if release.provenance is None else release.provenance.left_out
    return (
        Fact(
            "rows",
            " + ".join(sizes)
            + f", in {len(sizes)} tables" * (len(sizes) > 1)
            + ", none of which is in the file" * (not release.keeps_rows)
            + (f". {gone}" if gone else ""),
        ),
        *(Fact(name, text) for name, text in told.items()),
        Fact(release.output_name, words.declared(release)),
        *_origin(release),
    )


def _raw_columns(schema: Schema, ranges: Mapping[str, str]) -> dict[str, str]:
    """Return descriptions of the raw public columns: of numbers, their ranges."""
    told = {}
    for column in schema.used:
        unit = f" {column.unit}" if column.unit else ""
        gaps = "" if column.missing == "refuse" else f"; missing: {column.missing}"
        what = ranges[column.name] if isinstance(column, Number) else column.describe()
        told[column.title or column.name] = f"{what}{unit}{gaps}"
    return told


def _origin(release: Release) -> tuple[Fact, ...]:
    origin = release.provenance
    if origin is None:
        return ()
    after = f", from {origin.refines}" if origin.refines else ""
    purpose = f", for {origin.purpose}" if origin.purpose else ""
    by = f", by {origin.by}" if origin.by else ""
    made = f"{origin.made}, with cloakgp {origin.version}{by}{purpose}; id {origin.id}{after}"
    licence = (Fact("licence", origin.licence),) if origin.licence else ()
    return (Fact("made", made), *licence)


def describe_several_outputs(release: MultiOutputRelease) -> tuple[Section, ...]:
    """Return the facts that a custodian should know about several outputs, in sections.

    Parameters
    ----------
    release : MultiOutputRelease
    """
    entries, names = release.entries, ", ".join(input_names(release))
    in_widths = replace(entries, output_name=WIDTHS if release.intervals is None else FOUND_WIDTHS)
    count = len(release.columns.bounds)
    called = release.output_names or [f"output {number + 1}" for number in range(count)]
    measurements = entries.measurements
    grouped = all(of_people(measurement.strategy, count=count) for measurement in measurements)
    kept = "in this file row by row" if entries.keeps_rows else "not in this file row by row"
    noise = []
    for number, measurement in enumerate(measurements):
        ordinal = f" {number + 1}" if len(measurements) > 1 else ""
        counted = release.counts_of(measurement)
        if counted is None:
            # How far values lie from predictions is told of outputs, and amounts in their unit.
            far = measurement.about_spread or measurement.about_scatter
            answered = describe_answers(
                measurement, output=OUTPUTS if far else in_widths.output_name
            )
        else:
            output, question = counted
            answered = describe_answers(
                replace(measurement, question=question), output=called[output]
            )
        noise += [
            Fact(f"answers{ordinal}", answered),
            Fact(f"design{ordinal}", NumberWords().describe_design(measurement, in_widths)),
        ]
    ranges = entries.input_ranges[:, :-1]
    return (
        Section(
            "Protection",
            (
                Fact(
                    "protected",
                    f"all {count} outputs together of every "
                    f"{'person' if grouped else 'single row'}. The published values would be "
                    "almost as likely if they were any others within their bounds.",
                ),
                Fact(
                    "not protected",
                    f"the inputs ({names}), which are {kept}; who is in the table; "
                    "the bounds and the prior.",
                ),
                *describe_exclusions(OUTPUTS),
            ),
        ),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee,
                output="outputs (all together)",
                parts=[measurement.answers.guarantee for measurement in measurements],
                choice=entries.choice,
                grouped=grouped,
                visits=entries.visits,
                limit=entries.limit,
                cohorts=() if entries.choice is not None else entries.cohorts,
                tables=[measurement.strategy.table for measurement in measurements],
                origin=release.provenance,
            )
            + _custodians(entries),
        ),
        Section("Noise", tuple(noise)),
        Section("Prior", prior_facts(in_widths)),
        Section(
            "Data",
            (
                Fact("rows", f"{release.n_rows:,}"),
                *(
                    Fact(name, f"{amount(low, 4)} to {amount(high, 4)}")
                    for name, (low, high) in zip(input_names(release), ranges.T, strict=True)
                ),
                *(
                    Fact(
                        name,
                        f"private; declared to lie in {amount(limits.lo, 12)} to "
                        f"{amount(limits.hi, 12)}"
                        + f", {amount(taken.lo, 6)} to {amount(taken.hi, 6)} of which holds "
                        "most values, by "
                        "noisy counts"
                        * (taken != limits)
                        + f"; values outside were clipped{_outside(release, output)}"
                        + _in_common(release, output),
                    )
                    for output, (name, limits, taken) in enumerate(
                        zip(called, release.columns.bounds, release.units.bounds, strict=True)
                    )
                ),
            ),
        ),
    )


def _in_common(release: MultiOutputRelease, output: int) -> str:
    """Say which values most of an output may be, by noisy counts, and what follows for all."""
    counted = [
        replace(one, question=found[1])
        for one in release.entries.measurements
        if (found := release.counts_of(one)) is not None and found[0] == output
    ]
    common = name_common_values(counted, tell=lambda value: amount(value, 4))
    if not common:
        return ""
    return f". By noisy counts most {common}; so no output has bands unless declared"


def _outside(release: MultiOutputRelease, output: int) -> str:
    """State how many values of an output lie outside what was found, if that was asked."""
    if release.units.bounds[output] == release.columns.bounds[output]:
        return ", uncounted."
    last = None
    for one in release.entries.measurements:
        counted = release.counts_of(one)
        if counted is not None and counted[0] == output and isinstance(counted[1], OutsideQuestion):
            last = one
    if last is None:
        return (
            ". Whether these are a group of rows with like inputs is not known: too few rows, or "
            "too small a budget, to ask."
        )
    return f". {how_many_outside(last, release)}"


def of_people(strategy: Strategy, *, count: int) -> bool:
    """Return whether entries of several rows are protected together."""
    if isinstance(strategy, StreamedStrategy):
        return strategy.grouped
    groups = strategy.groups
    return groups is not None and int(groups.max()) + 1 < strategy.n_rows // count


_sections.register(MultiOutputRelease, describe_several_outputs)
_sections.register(StatisticsRelease, describe_statistics)
_sections.register(NoisyHistogram, describe_histogram)
_sections.register(CloakedPredictions, describe_cloaked)
_sections.register(Published, describe_published)
