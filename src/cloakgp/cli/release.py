"""`cloakgp release`: the one command that touches private outputs, and spends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.classification import ClassOptions, release_classes
from cloakgp.cli.console import explain, fails_plainly, say
from cloakgp.cli.plan import Plan
from cloakgp.cli.regression import NumberOptions, release_numbers
from cloakgp.cli.show import print_sections
from cloakgp.columns import AnyRelease, row_count
from cloakgp.design.strategy import DEFAULT_GAP
from cloakgp.privacy.guarantee import check_budget
from cloakgp.release import LabelRelease
from cloakgp.table_files import check_target
from cloakgp.words import describe

SHOWN_AFTERWARDS = ("Guarantee", "Noise")


@fails_plainly
def release(
    table: Annotated[Path, typer.Argument(help="Table of people: .csv, .csv.gz or .parquet.")],
    inputs: Annotated[str, typer.Option(help="Public columns, with commas: age,weight.")],
    output: Annotated[str, typer.Option(help="The private column, of numbers or of classes.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget; 1 is usual.")],
    delta: Annotated[float, typer.Option(help="Well below one over the number of people.")],
    to: Annotated[Path, typer.Option("--to", "-o", help="Release to write.")],
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
    mechanism: Annotated[
        str,
        typer.Option(
            help="What the questions are chosen for: bayes (sharpest predictions), trace (least "
            "noise on raw predictions), logdet (the papers' choice), or for two classes laplace "
            "(the papers' iteration)."
        ),
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
            help="With --classes: probit (if not given) or logit (which laplace always takes)."
        ),
    ] = "",
    criterion: Annotated[
        str, typer.Option(help="With laplace: of the noise on its steps, logdet or trace.")
    ] = "",
    steps: Annotated[
        int | None, typer.Option(help="With laplace: Newton steps, which share the budget; 1.")
    ] = None,
    gap: Annotated[
        float, typer.Option(help="Certified distance from the best design at which to stop.")
    ] = DEFAULT_GAP,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask the private column once, and write what may be published.

    Every run spends the budget anew about the same people. Bounds, classes, kernel and all other
    options are public: do not choose them by looking at the private column.
    """
    if (bounds is None) == (not classes):
        raise ValueError(
            "give either --bounds LO HI, if the private column holds numbers, or --classes no,yes, "
            "if it holds classes"
        )
    _check_company(
        of_numbers={"--noise-variance": noise_variance, "--mean": mean},
        of_classes={
            "--class-rates": class_rates or None,
            "--link": link or None,
            "--criterion": criterion or None,
            "--steps": steps,
        },
        numbers=bounds is not None,
    )
    check_budget(epsilon, delta)
    plan = Plan(
        table=table,
        inputs=options.names(inputs),
        output=output,
        epsilon=epsilon,
        delta=delta,
        queries=queries,
        inducing=inducing,
        mechanism=mechanism,
        learn=learn,
        lengthscale=lengthscale,
        signal_variance=signal_variance,
        gap=gap,
    )
    plan.check()
    _check_release_target(to, table=table, overwrite=overwrite)
    made: AnyRelease
    if bounds is not None:
        numbers = NumberOptions(bounds=bounds, noise_variance=noise_variance, mean=mean)
        made = release_numbers(plan, numbers)
    else:
        given = ClassOptions(
            classes=classes,
            class_rates=class_rates,
            link=link,
            criterion=criterion,
            steps=steps,
        )
        made = release_classes(plan, given)
    made.save(to, overwrite=overwrite)
    what = "probabilities" if isinstance(made, LabelRelease) else "predictions"
    say(f"Wrote {to}: {what} of {output}, from {row_count(made):,} rows.", style="green")
    print_sections([one for one in describe(made) if one.title in SHOWN_AFTERWARDS])
    explain(
        f"This spent ({epsilon:g}, {delta:g}) about these people. Running it again spends again, "
        "unless the first file is never seen by anybody. All that is protected, and what is not, "
        "in words:"
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


def _check_release_target(to: Path, *, table: Path, overwrite: bool) -> None:
    """Raise before anything is spent, if the result could not be written afterwards."""
    check_target(to, overwrite=overwrite)
    if to.exists() and table.exists() and to.samefile(table):
        raise ValueError(f"{to} is the private table itself: name another file with -o")
