"""A release about many rows in words: what differs from one that keeps its rows."""

from __future__ import annotations

from cloakgp.release import ManyRowsRelease
from cloakgp.report.columns import input_names
from cloakgp.report.facts import Fact, Section
from cloakgp.report.guarantee import guarantee_facts, not_in_the_promise
from cloakgp.report.measurements import how_designed, how_sharp, prior_facts, what_was_answered


def describe_many_rows(release: ManyRowsRelease) -> tuple[Section, ...]:
    """Return everything that a custodian should know about a release, in sections.

    Parameters
    ----------
    release : ManyRowsRelease
    """
    return (
        Section("Protection", _protection(release)),
        Section(
            "Guarantee",
            guarantee_facts(
                release.guarantee, output=release.output_name, parts=[release.guarantee]
            ),
        ),
        Section("Noise", _noise(release)),
        Section("Prior", prior_facts(release)),
        Section("Data", _data(release)),
    )


def _protection(release: ManyRowsRelease) -> tuple[Fact, ...]:
    output, names = release.output_name, ", ".join(input_names(release))
    lo, hi = release.answers.bounds
    return (
        Fact(
            "protected",
            f"the value of {output} in every single row. What is published would be almost as "
            f"likely if that value were any other from {lo:g} to {hi:g}.",
        ),
        Fact(
            "not protected",
            f"the inputs ({names}): of these, the file holds centres of where the rows are, ranges "
            "and sums; that somebody is in the table; the bounds and the prior.",
        ),
        *not_in_the_promise(output),
    )


def _noise(release: ManyRowsRelease) -> tuple[Fact, ...]:
    return (
        Fact(
            "answers",
            what_was_answered(
                release.answers,
                queries=release.X_query,
                reconstruction=release.reconstruction,
                output=release.output_name,
            ),
        ),
        Fact("design", how_designed(release.certificate)),
        Fact(
            "checked",
            f"what was asked of every one of {release.count:,} rows was measured while it was "
            "asked, and none weighs more than the guarantee allows. Whoever has the inputs can do "
            "so again.",
        ),
        how_sharp(release, release.X_query),
    )


def _data(release: ManyRowsRelease) -> tuple[Fact, ...]:
    lo, hi = release.answers.bounds
    ranges = zip(input_names(release), release.ranges.T, strict=True)
    return (
        Fact("rows", f"{release.count:,}, none of which is in the file"),
        *(Fact(name, f"{low:.4g} to {high:.4g}") for name, (low, high) in ranges),
        Fact(
            release.output_name,
            f"private; declared to lie in {lo:g} to {hi:g}; values outside were clipped, "
            "uncounted.",
        ),
    )
