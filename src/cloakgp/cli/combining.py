"""`cloakgp combine` and `cloakgp compare`: releases together. Costs no privacy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import fails_plainly, say
from cloakgp.cli.show import print_sections
from cloakgp.orders import texts
from cloakgp.utils.files import reserve_file

if TYPE_CHECKING:
    from cloakgp.release import MultiOutputRelease, Release

SAME: dict[str, bool | None] = {"auto": None, "same": True, "other": False}


@fails_plainly
def combine(
    releases: Annotated[
        list[Path], typer.Argument(help="Two releases or more.", metavar="RELEASE...")
    ],
    to: Annotated[Path, typer.Option("--to", "-o", help="Release to write.")],
    rows: Annotated[
        str,
        typer.Option(
            help="Whether tables with equal inputs hold the same people (same) or others at the "
            "same places (other); auto compares inputs."
        ),
    ] = "auto",
    overwrite: options.Overwrite = False,
) -> None:
    """Combine releases with the same prior and columns into one. Costs no privacy.

    Its guarantee covers all of them together, for a person who is in every one.
    """
    if len(releases) < 2:
        raise ValueError("name two releases at least")
    said = texts.one_of(tuple(SAME), rows, option="--rows")
    with reserve_file(to, overwrite=overwrite, inputs=releases) as target:
        made = _together([options.open_combinable(path) for path in releases], same_rows=SAME[said])
        target.write(made.to_bytes())
    say(f"Wrote {to}, of {len(releases)} releases.", style="green")
    say(f"  all together: {made.guarantee}")


def _together(
    releases: Sequence[Release | MultiOutputRelease], *, same_rows: bool | None
) -> Release | MultiOutputRelease:
    """Return one release that combines all."""
    from cloakgp.release import MultiOutputRelease, Release

    single = [each for each in releases if isinstance(each, Release)]
    several = [each for each in releases if isinstance(each, MultiOutputRelease)]
    if single and several:
        raise ValueError("releases of one private column and of several are not combined")
    if single:
        return single[0].combine(*single[1:], same_rows=same_rows)
    if same_rows is not None:
        raise ValueError("--rows goes with releases of one private column")
    return several[0].combine(*several[1:])


@fails_plainly
def compare(
    first: Annotated[Path, typer.Argument(help="A release.")],
    second: Annotated[Path, typer.Argument(help="Another, about the same columns.")],
    at: Annotated[
        Path | None,
        typer.Option(
            "--at", help="Table of inputs to compare at; by default the rows of the releases."
        ),
    ] = None,
) -> None:
    """Compare two releases: guarantees, typical sds, and places of different predictions.

    Costs no privacy.
    """
    from cloakgp.data.tables import read_public
    from cloakgp.release.predictions import points_of
    from cloakgp.report.comparison import compare_releases, describe_comparison

    one, other = options.open_release(first), options.open_release(second)
    points = None if at is None else points_of(one, read_public(at), name="--at").X
    print_sections(describe_comparison(one, other, compare_releases(one, other, points)))
