"""A release about several outputs in words: what differs from a release about one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloakgp.asked_words import how_designed, prior_facts, what_was_answered
from cloakgp.columns import input_names
from cloakgp.guarantee_words import guarantee_facts, not_in_the_promise
from cloakgp.release import MultiOutputRelease
from cloakgp.release.measurement import Measurement
from cloakgp.sections import Fact, Section

OUTPUTS = "the outputs"
WIDTHS = "widths of the outputs' bounds"


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
