"""`cloakgp release`: asks one private column, and spends."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, notice, print_sections, say, warn
from cloakgp.cli.counting import Counting
from cloakgp.cli.fit_options import FitOptions, TableOptions
from cloakgp.cli.plan import plan_release, print_plan
from cloakgp.orders.options import Order
from cloakgp.orders.public_inputs import public_inputs

if TYPE_CHECKING:
    from cloakgp.release import Release

SHOWN_AFTERWARDS = ("Predictions", "Guarantee")


@fails_plainly
@options.takes_groups
def release(
    table: TableOptions,
    epsilon: Annotated[float, typer.Option(help="Privacy budget; 1 is usual.")],
    to: options.To,
    fit: FitOptions,
    counting: Counting,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the plan and its confirmation on a terminal.")
    ] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the private column once, and write a release that may be published.

    Every run spends the budget anew about the same people. Bounds, classes, kernel and all other
    options are public: do not choose them by looking at the private column. On a terminal the
    command first shows a short plan, and asks nothing before you confirm.
    """
    order = fit.order(table, epsilon=epsilon, origin=counting.origin)
    plans_first = somebody_is_there() and not yes
    if not plans_first and (remark := order.remark):
        notice(remark[0].upper() + remark[1:])
    published = counting.write(
        lambda: _ask(order),
        to,
        choices={"command": "release", "order": order},
        read=[*table.files, *([fit.queries] if fit.queries else [])],
        overwrite=overwrite,
        delta=fit.delta,
        inputs=lambda: public_inputs(order.source, classes=order.classes),
        confirm=(lambda: confirm(order)) if plans_first else None,
    )
    if published is None:
        return
    try:
        _tell(published, order, to=to, another_run=counting.another_run)
    # The terminal may end a program that writes to it, too.
    except (Exception, SystemExit, KeyboardInterrupt):
        with suppress(Exception):
            warn(f"{to} is released and complete, but could not be described")


def somebody_is_there() -> bool:
    """Return whether a person reads the output, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(order: Order) -> None:
    """Show a short plan, and exit unless the user confirms it."""
    from cloakgp.fitting.release_plan import SHORT

    print_plan(plan_release(order), output=order.source.output, only=SHORT)
    if not typer.confirm("Ask the private column now, and spend this?"):
        say("Nothing was asked, and nothing spent.")
        raise typer.Exit(code=1)


def _ask(order: Order) -> Release:
    """Ask the private column, and import the modules that only this needs."""
    from cloakgp.cli.progress import reporting
    from cloakgp.orders.estimators import make_release

    with reporting("opening the table", gap=order.request.gap) as reporter:
        return make_release(order, reporter=reporter)


def _tell(made: Release, order: Order, *, to: Path, another_run: str) -> None:
    """Describe the written release, its guarantee and its cost."""
    from cloakgp.report.describe import describe
    from cloakgp.report.guarantee import stated

    what = "probabilities" if made.class_labels else "predictions"
    say(f"Wrote {to}: {what} of {order.source.output}, from {made.n_rows:,} rows.", style="green")
    if made.provenance is not None and made.provenance.left_out:
        explain(made.provenance.left_out)
    print_sections([section for section in describe(made) if section.title in SHOWN_AFTERWARDS])
    explain(
        f"This spent {stated(made.guarantee)}, about these people. {another_run} The limits of "
        "protection, in words:"
    )
    say(f"  cloakgp show {to}")
