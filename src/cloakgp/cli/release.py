"""`cloakgp release`: the one command that touches private outputs, and spends."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say, warn
from cloakgp.cli.counting import (
    RESERVED_BYTES,
    AccountName,
    By,
    ChargeKey,
    Counting,
    LedgerAt,
    Licence,
    Purpose,
)
from cloakgp.cli.planning import plan_release, print_plan
from cloakgp.cli.show import print_sections
from cloakgp.criteria import criteria_for
from cloakgp.orders import texts
from cloakgp.orders.options import ClassOptions, NumberOptions, ReleaseOptions
from cloakgp.orders.origin import Origin
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import DEFAULT_GAP, NOISE_CHOICES

if TYPE_CHECKING:
    from cloakgp.release import Release


def _choices() -> str:
    """Return the criteria in a few words."""
    numbers, classes = criteria_for("numbers"), criteria_for("classes")
    listed = []
    for criterion in dict.fromkeys((*numbers, *classes)):
        which = (
            ""
            if criterion in numbers and criterion in classes
            else ("with --bounds: " if criterion in numbers else "with --classes: ")
        )
        listed.append(f"{criterion.name} ({which}{criterion.option})")
    return ", ".join(listed) + "."


STAGES = "auto", "one"
SHOWN_AFTERWARDS = ("Predictions", "Guarantee")


@fails_plainly
def release(
    table: Annotated[
        Path,
        typer.Argument(help="Table of people: CSV, Parquet, Excel, Arrow or SQLite, by its name."),
    ],
    output: Annotated[str, typer.Option(help="The private column, of numbers or of classes.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget; 1 is usual.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Release to write.")],
    delta: Annotated[
        float,
        typer.Option(
            help="Of the guarantee: 0, which promises most, or well below one over the number of "
            "people."
        ),
    ] = 0.0,
    inputs: Annotated[
        str,
        typer.Option(help="Public columns, with commas: age,weight; all of the schema if not."),
    ] = "",
    schema: Annotated[
        Path | None,
        typer.Option(
            help="What the public columns are, from `cloakgp schema`. If not given: the file "
            "beside the table, people.schema.json, or what the columns look like."
        ),
    ] = None,
    person: Annotated[
        str,
        typer.Option(
            help="Public column that says whose each row is: all rows of a person are protected "
            "together."
        ),
    ] = "",
    missing_output: Annotated[
        str,
        typer.Option(
            help="What an empty private cell means: refuse (an error), drop (the row is left out, "
            "and everybody can tell), or the number or class that it counts as."
        ),
    ] = "refuse",
    sql: options.Sql = "",
    purpose: Purpose = "",
    by: By = "",
    licence: Licence = "",
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="If the private column holds numbers: the range of one, known without the data. "
            "Values outside are clipped.",
            metavar="LO HI",
        ),
    ] = None,
    classes: Annotated[
        str,
        typer.Option(
            help="If it holds classes: every class that can occur, known without the data: no,yes. "
            "Cells are matched letter by letter."
        ),
    ] = "",
    queries: Annotated[
        Path | None,
        typer.Option(help="Table of inputs where predictions matter; the rows if not given."),
    ] = None,
    inducing: Annotated[
        int | None, typer.Option(help="Use a sparse model with so many inducing inputs.")
    ] = None,
    criterion: Annotated[
        str,
        typer.Option(help=f"What the questions are chosen for. {_choices()}"),
    ] = "bayes",
    learn: Annotated[
        str,
        typer.Option(
            help="Fit the hyperparameters that no option gives to the noisy answers, at no cost: "
            "map, average or none."
        ),
    ] = "map",
    lengthscale: Annotated[
        str, typer.Option(help="Of the RBF kernel, in input units: one, or one per input: 15,20.")
    ] = "",
    signal_variance: Annotated[
        float | None,
        typer.Option(
            help="Of the RBF kernel, in squared output units; of the latent function for classes."
        ),
    ] = None,
    noise_variance: Annotated[
        float | None, typer.Option(help="With --bounds: of one output about the curve.")
    ] = None,
    mean: Annotated[
        float | None, typer.Option(help="With --bounds: prior mean; their middle if not given.")
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="gaussian, laplace (which needs no delta), or auto: whichever is expected to "
            "predict better, from public inputs."
        ),
    ] = "auto",
    stages: Annotated[
        str,
        typer.Option(
            help="With --bounds: auto (if not given) asks several times under the one budget, each "
            "time about narrower bands around what the answers so far predict; one asks at once."
        ),
    ] = "",
    interval: Annotated[
        str,
        typer.Option(
            help="With --bounds: auto (if not given) first looks, under the one budget, for an "
            "interval that holds most values, where rows are many enough; off goes by the bounds."
        ),
    ] = "",
    transform: Annotated[
        str,
        typer.Option(
            help="With --bounds, for long tails: log models the logarithm of amounts, logit the "
            "log odds of shares. Bounds and predictions stay as they are."
        ),
    ] = "",
    log: Annotated[bool, typer.Option("--log", help="The same as --transform log.")] = False,
    class_rates: Annotated[
        str,
        typer.Option(
            help="With --classes: how common each is, known without the data: 0.9,0.1. All alike "
            "if not given. A start for --learn map, final for --learn none."
        ),
    ] = "",
    link: Annotated[
        str,
        typer.Option(
            help="With --classes: probit (if not given) or logit (which newton always takes)."
        ),
    ] = "",
    step_criterion: Annotated[
        str, typer.Option(help="With newton: of the noise on its steps, logdet or trace.")
    ] = "",
    steps: Annotated[
        int | None, typer.Option(help="With newton: steps, which share the budget; 1.")
    ] = None,
    gap: Annotated[
        float, typer.Option(help="Certified distance from the best design at which to stop.")
    ] = DEFAULT_GAP,
    memory: Annotated[
        float | None,
        typer.Option(
            help="Gigabytes that this may take; half of what is free if not given. Where an exact "
            "model would take more, a sparse one is used."
        ),
    ] = None,
    ledger: LedgerAt = "",
    account: AccountName = "",
    key: ChargeKey = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not show the plan and ask, on a terminal.")
    ] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the private column once, and write what may be published.

    Every run spends the budget anew about the same people. Bounds, classes, kernel and all other
    options are public: do not choose them by looking at the private column. On a terminal a short
    plan is shown first, and nothing is asked before somebody says yes.
    """
    plan, given = checked_options(
        table=table,
        output=output,
        epsilon=epsilon,
        delta=delta,
        inputs=inputs,
        schema=schema,
        person=person,
        missing_output=missing_output,
        sql=sql,
        origin=Origin(purpose, by, licence),
        bounds=bounds,
        classes=classes,
        queries=queries,
        inducing=inducing,
        criterion=criterion,
        learn=learn,
        lengthscale=lengthscale,
        signal_variance=signal_variance,
        noise_variance=noise_variance,
        mean=mean,
        noise=noise,
        stages=stages,
        interval=interval,
        transform=transform,
        log=log,
        class_rates=class_rates,
        link=link,
        step_criterion=step_criterion,
        steps=steps,
        gap=gap,
        memory=memory,
    )
    counting = Counting(ledger, account, purpose, key)
    counting.check()
    read = [each for each in (table, queries, schema) if each is not None]
    with reserve_file(to, overwrite=overwrite, inputs=read, size=RESERVED_BYTES) as target:
        if not yes and somebody_is_there():
            confirm(plan, given)
        published = counting.publish(lambda: _ask(plan, given))
        target.write(published.to_bytes(), keep=True)
    try:
        _tell(published, plan, to=to)
    # The terminal may end a program that writes to it, too.
    except (Exception, SystemExit):
        with suppress(Exception):
            warn(f"{to} is released and complete, but could not be described")


def checked_options(
    *,
    table: Path,
    output: str,
    epsilon: float,
    delta: float,
    inputs: str,
    schema: Path | None,
    person: str,
    missing_output: str,
    sql: str,
    bounds: tuple[float, float] | None,
    classes: str,
    queries: Path | None,
    inducing: int | None,
    criterion: str,
    learn: str,
    lengthscale: str,
    signal_variance: float | None,
    noise_variance: float | None,
    mean: float | None,
    noise: str,
    stages: str,
    interval: str,
    transform: str,
    log: bool,
    class_rates: str,
    link: str,
    step_criterion: str,
    steps: int | None,
    gap: float,
    memory: float | None,
    origin: Origin,
) -> tuple[ReleaseOptions, NumberOptions | ClassOptions]:
    """Return the options of a release together, after checking all that needs no table.

    Raises
    ------
    ValueError
        For what makes no sense.
    """
    if (bounds is None) == (not classes):
        raise ValueError(
            "give either --bounds LO HI, if the private column holds numbers, or --classes no,yes, "
            "if it holds classes"
        )
    _check_company(
        of_numbers={
            "--noise-variance": noise_variance,
            "--mean": mean,
            "--stages": stages or None,
            "--interval": interval or None,
            "--transform": transform or None,
            "--log": log or None,
        },
        of_classes={
            "--class-rates": class_rates or None,
            "--link": link or None,
            "--step-criterion": step_criterion or None,
            "--steps": steps,
        },
        numbers=bounds is not None,
    )
    if log and transform not in ("", "log"):
        raise ValueError("--log is --transform log: give one of them")
    given: NumberOptions | ClassOptions
    if bounds is not None:
        given = NumberOptions(
            bounds=bounds,
            noise_variance=noise_variance,
            mean=mean,
            stages=texts.one_of(STAGES, stages or "auto", option="--stages"),
            interval=texts.one_of(options.INTERVALS, interval or "auto", option="--interval"),
            transform=texts.transform_named("log" if log else transform),
        )
    else:
        given = ClassOptions(
            classes=classes,
            class_rates=class_rates,
            link=link,
            step_criterion=step_criterion,
            steps=steps,
        )
    plan = ReleaseOptions(
        table=table,
        inputs=texts.names(inputs) if inputs else [],
        output=output,
        epsilon=epsilon,
        delta=delta,
        noise=texts.one_of(NOISE_CHOICES, noise, option="--noise"),
        queries=queries,
        inducing=inducing,
        criterion=criterion,
        learn=learn,
        lengthscale=lengthscale,
        signal_variance=signal_variance,
        gap=gap,
        memory=memory,
        schema=schema,
        person=person,
        missing_output=missing_output,
        query=sql,
        origin=origin,
    )
    plan.check()
    if missing_output == "drop":
        warn(
            f"rows without {output} are left out: which people these are becomes public, with "
            "everything that may tell about them"
        )
    plan.criterion_for("numbers" if bounds is not None else "classes")
    return plan, given


def somebody_is_there() -> bool:
    """Return whether a person reads what is written, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(plan: ReleaseOptions, given: NumberOptions | ClassOptions) -> None:
    """Show a short plan, and end unless somebody says yes."""
    from cloakgp.fitting.release_plan import SHORT

    print_plan(plan_release(plan, given, epsilons=()), output=plan.output, only=SHORT)
    if not typer.confirm("Ask the private column now, and spend this?"):
        say("Nothing was asked, and nothing spent.")
        raise typer.Exit(code=1)


def _ask(plan: ReleaseOptions, given: NumberOptions | ClassOptions) -> Release:
    """Ask the private column, with what only this needs."""
    from cloakgp.cli.console import showing_warnings
    from cloakgp.cli.progress import reporting
    from cloakgp.orders.estimators import make_release

    with reporting("opening the table", gap=plan.gap) as reporter, showing_warnings():
        return make_release(plan, given, reporter=reporter)


def _tell(made: Release, plan: ReleaseOptions, *, to: Path) -> None:
    """Say what was written, what it guarantees and what it cost."""
    from cloakgp.report.columns import has_classes
    from cloakgp.report.describe import describe

    what = "probabilities" if has_classes(made) else "predictions"
    say(f"Wrote {to}: {what} of {plan.output}, from {made.n_rows:,} rows.", style="green")
    print_sections([section for section in describe(made) if section.title in SHOWN_AFTERWARDS])
    explain(
        f"This spent ({plan.epsilon:g}, {plan.delta:g}) about these people. Running it again "
        "spends again, unless the first file is never seen by anybody. All that is protected, and "
        "what is not, in words:"
    )
    say(f"  cloakgp show {to}")


def _check_company(
    *, of_numbers: Mapping[str, object], of_classes: Mapping[str, object], numbers: bool
) -> None:
    """Raise ValueError for an option that goes with the other kind of column."""
    strangers, with_what = (of_classes, "--classes") if numbers else (of_numbers, "--bounds")
    for name, value in strangers.items():
        if value is not None:
            raise ValueError(f"{name} goes with {with_what}, and has no meaning here")
