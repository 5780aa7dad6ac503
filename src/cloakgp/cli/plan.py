"""`cloakgp plan`: everything about a release before it is made, from public columns only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli.console import fails_plainly, say, stdout
from cloakgp.cli.counting import Counting
from cloakgp.cli.fit_options import FitOptions, TableOptions
from cloakgp.cli.planning import plan_release, print_plan
from cloakgp.cli.signature import takes_groups
from cloakgp.utils.files import reserve_file

if TYPE_CHECKING:
    from cloakgp.fitting.release_plan import ReleasePlan


@fails_plainly
@takes_groups
def plan(
    table: TableOptions,
    epsilon: Annotated[
        list[float],
        typer.Option(
            help="Privacy budget; 1 is usual. Repeat the option to compare budgets; by default the "
            "plan shows a few around it."
        ),
    ],
    fit: FitOptions,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw the expected error over the inputs: .png, .pdf or .svg."),
    ] = None,
    vary: Annotated[str, typer.Option(help="With --picture: one input to draw over, or two.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a picture that exists.")
    ] = False,
) -> None:
    """Describe a release before it is made: error, protection and cost. Spends nothing.

    Takes the options of `cloakgp release`. Only public columns are read: expected error, what
    becomes public, how much noise protects whom, and what it takes, over several budgets.
    """
    order = fit.order(table, epsilon=epsilon[0])
    if vary and picture is None:
        raise ValueError("--vary goes with --picture")
    with Counting().telling():
        found = plan_release(order, epsilons=epsilon[1:] or None)
    if as_json:
        stdout.print(json.dumps(found.to_dict(), indent=2), soft_wrap=True, markup=False)
    else:
        print_plan(found, output=table.output)
        say("Nothing of the private column was read, and nothing spent.", style="green")
    if picture is not None:
        _draw(found, picture, vary=vary, output=table.output, overwrite=overwrite)
        if not as_json:
            say(f"Drew {picture}.", style="green")


def _draw(found: ReleasePlan, path: Path, *, vary: str, output: str, overwrite: bool) -> None:
    from cloakgp.orders.texts import names
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.plans import PlanDisplay

    suffix = picture_suffix(path)
    with reserve_file(path, overwrite=overwrite, inputs=[]) as target:
        display = PlanDisplay.of(found, vary=names(vary) if vary else (), output=output)
        target.write(figure_bytes(display.draw(), suffix=suffix))
