"""`cloakgp plan`: everything about a release before it is made, from public columns only."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from cloakgp.cli import release as making
from cloakgp.cli.console import fails_plainly, say, stdout
from cloakgp.cli.planning import plan_release, print_plan
from cloakgp.orders.origin import Origin
from cloakgp.utils.files import reserve_file

if TYPE_CHECKING:
    from cloakgp.fitting.release_plan import ReleasePlan

# Of the options of a release, those that say nothing of what it will be.
NOT_PLANNED = {
    *("to", "yes", "overwrite"),
    *("purpose", "by", "licence", "ledger", "account", "key"),
}
OWN: dict[str, tuple[Any, Any]] = {
    "epsilon": (
        Annotated[
            list[float],
            typer.Option(
                help="Privacy budget; 1 is usual. Say it again for others to compare with: some "
                "around it if not."
            ),
        ],
        inspect.Parameter.empty,
    ),
    "picture": (
        Annotated[
            Path | None,
            typer.Option(help="Draw the expected error over the inputs: .png, .pdf or .svg."),
        ],
        None,
    ),
    "vary": (
        Annotated[str, typer.Option(help="With --picture: one input to draw over, or two.")],
        "",
    ),
    "as_json": (Annotated[bool, typer.Option("--json", help="As JSON.")], False),
    "overwrite": (
        Annotated[bool, typer.Option("--overwrite", help="Replace a picture that exists.")],
        False,
    ),
}


@fails_plainly
def plan(**given: Any) -> None:
    """Say everything about a release before it is made; nothing is asked or spent.

    Takes the options of `cloakgp release`. Only public columns are read: expected error, what
    becomes public, how much noise protects whom, and what it takes, over several budgets.
    """
    as_json, picture, vary = (given.pop(name) for name in ("as_json", "picture", "vary"))
    overwrite, budgets = given.pop("overwrite"), given.pop("epsilon")
    options, kind = making.checked_options(epsilon=budgets[0], origin=Origin(), **given)
    if vary and picture is None:
        raise ValueError("--vary goes with --picture")
    found = plan_release(options, kind, epsilons=budgets[1:] or None)
    if as_json:
        stdout.print(json.dumps(found.to_dict(), indent=2), soft_wrap=True, markup=False)
    else:
        print_plan(found, output=options.output)
        say("Nothing of the private column was read, and nothing spent.", style="green")
    if picture is not None:
        _draw(found, picture, vary=vary, output=options.output, overwrite=overwrite)
        if not as_json:
            say(f"Drew {picture}.", style="green")


def _with_options_of_release(command: Any) -> Any:
    """Give a command the options of `cloakgp release`, so that these stand in one place."""
    hints = get_type_hints(making.release, include_extras=True)
    asked = inspect.signature(making.release).parameters
    every = {
        name: (hints[name], parameter.default)
        for name, parameter in asked.items()
        if name not in NOT_PLANNED
    } | OWN
    command.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
            for name, (annotation, default) in every.items()
        ]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in every.items()}
    return command


plan = _with_options_of_release(plan)


def _draw(found: ReleasePlan, path: Path, *, vary: str, output: str, overwrite: bool) -> None:
    from cloakgp.orders.texts import names
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.plans import PlanDisplay

    suffix = picture_suffix(path)
    with reserve_file(path, overwrite=overwrite, inputs=[]) as target:
        display = PlanDisplay.of(found, vary=names(vary) if vary else (), output=output)
        target.write(figure_bytes(display.draw(), suffix=suffix))
