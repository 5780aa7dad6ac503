"""Options of a fit, which `cloakgp release` and `cloakgp plan` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import notice, warn
from cloakgp.criteria import criteria_for
from cloakgp.fitting.request import (
    Classification,
    FitRequest,
    Learn,
    QuantileRegression,
    Regression,
)
from cloakgp.orders import texts
from cloakgp.orders.options import Order, SourceTable, person_hint, remarks_of_reading
from cloakgp.orders.origin import Origin
from cloakgp.utils.names import CRITERIA, LINKS, TRANSFORMS

LEARNING: dict[str, Learn | None] = {"map": "map", "average": "average", "none": None}
STAGES = "auto", "one"


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


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table of a release, and its columns by name."""

    table: Annotated[
        Path,
        typer.Argument(help="Table of people: CSV, Parquet, Excel, Arrow or SQLite, by its name."),
    ]
    output: Annotated[str, typer.Option(help="The private column, of numbers or of classes.")]
    inputs: Annotated[
        str,
        typer.Option(
            help="Public columns, with commas: age,weight; by default all columns of the schema."
        ),
    ] = ""
    schema: Annotated[
        Path | None,
        typer.Option(
            help="Kinds of the public columns, from `cloakgp schema`. By default the file beside "
            "the table, people.schema.json, or kinds inferred from the columns."
        ),
    ] = None
    person: Annotated[
        str,
        typer.Option(
            help="Public column with the id of each row's person: all rows of a person are "
            "protected together."
        ),
    ] = ""
    exposure: Annotated[
        str,
        typer.Option(
            help="With --counts: public column with the exposure of each row: years, people, "
            "kilometres. Predictions are rates for one unit of it."
        ),
    ] = ""
    missing_output: Annotated[
        str,
        typer.Option(
            help="Meaning of an empty private cell: refuse (an error), drop (leave the row out, "
            "which becomes public), or the number or class that it counts as."
        ),
    ] = "refuse"
    sql: options.Sql = ""

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return [each for each in (self.table, self.schema) if each is not None]

    def source(self) -> SourceTable:
        """Return the table of an order."""
        return SourceTable(
            path=self.table,
            output=self.output,
            inputs=texts.names(self.inputs) if self.inputs else [],
            schema=self.schema,
            person=self.person,
            exposure=self.exposure,
            missing_output=self.missing_output,
            query=self.sql,
        )


def notice_remarks(
    source: SourceTable, *, others: Sequence[str] = (), private_numbers: bool = True
) -> None:
    """Say how a table is read, where somebody should know it.

    Parameters
    ----------
    source, others, private_numbers
        As for `remarks_of_reading`.
    """
    with suppress(ValueError, OSError):
        for remark in remarks_of_reading(source, others=others, private_numbers=private_numbers):
            notice(remark)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The choices of a fit, but for ε."""

    delta: Annotated[
        float,
        typer.Option(
            help="δ of the guarantee: 0, the strongest promise, or well below one over the number "
            "of people."
        ),
    ] = FitRequest.delta
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Range of a numeric private column, known without the data. Values outside are "
            "clipped.",
            metavar="LO HI",
        ),
    ] = None
    classes: Annotated[
        str,
        typer.Option(
            help="Every class that a private column of classes can hold, known without the data: "
            "no,yes. Cells are matched letter by letter."
        ),
    ] = ""
    counts: Annotated[
        bool,
        typer.Option(
            "--counts",
            help="With --bounds: the private column holds counts of events, whole numbers. "
            "Predictions are their rates.",
        ),
    ] = False
    overdispersion: Annotated[
        float | None,
        typer.Option(
            help="With --counts: a in the variance m + a m² of a count with mean m; 0 for Poisson. "
            "Learned by default."
        ),
    ] = None
    quantiles: Annotated[
        str,
        typer.Option(
            help="With --bounds: predict these quantiles, 0.1,0.5,0.9 say, for amounts with long "
            "tails, or without bounds worth the name. Values are compared with thresholds, and "
            "clipped to no band."
        ),
    ] = ""
    queries: Annotated[
        Path | None,
        typer.Option(help="Table of inputs to predict at; by default the rows of the table."),
    ] = None
    noise: Annotated[
        str,
        typer.Option(
            help="gaussian, laplace (which needs no delta), or auto: the one with the smaller "
            "expected error, from public inputs."
        ),
    ] = FitRequest.noise
    criterion: Annotated[
        str,
        typer.Option(help=f"Aim of the questions. {_choices()}"),
    ] = FitRequest.criterion
    learn: Annotated[
        str,
        typer.Option(
            help="Fit hyperparameters without an option of their own to the noisy answers, at no "
            "cost: map, average or none."
        ),
    ] = "map"
    inducing: Annotated[
        str | None,
        typer.Option(
            help="Number of inducing inputs of a sparse model, or auto: as many as the kernel that "
            "is learned is worth."
        ),
    ] = None
    lengthscale: Annotated[
        str,
        typer.Option(
            help="Lengthscale of the RBF kernel, in input units: one, or one per input: 15,20."
        ),
    ] = ""
    signal_variance: Annotated[
        float | None,
        typer.Option(
            help="Variance of the RBF kernel, in squared output units; for classes, of the latent "
            "function."
        ),
    ] = None
    noise_variance: Annotated[
        float | None, typer.Option(help="With --bounds: variance of one output about the curve.")
    ] = None
    mean: Annotated[
        float | None, typer.Option(help="With --bounds: prior mean; by default their middle.")
    ] = None
    public_prediction: Annotated[
        str,
        typer.Option(
            help="With --bounds: public column that predicts the private one, in its units: by an "
            "older census, or a model of other people. What it gets right need not be asked.",
            metavar="COLUMN",
        ),
    ] = ""
    stages: Annotated[
        str,
        typer.Option(
            help="With --bounds: auto (the default) asks in several stages under the one budget, "
            "each about narrower bands around earlier predictions; one asks all at once."
        ),
    ] = ""
    interval: Annotated[
        str,
        typer.Option(
            help="With --bounds: auto (the default) first looks, under the one budget, for an "
            "interval that holds most values, if there are enough rows; off uses the bounds."
        ),
    ] = ""
    calibrate: Annotated[
        str,
        typer.Option(
            help="With --bounds: auto (the default) calibrates intervals for new values by noisy "
            "counts, under the one budget, if there are enough rows; off takes them from the "
            "model; a share, 0.1, keeps so many rows out of the fit, for intervals that hold what "
            "they say on average, whatever the model."
        ),
    ] = ""
    transform: Annotated[
        str,
        typer.Option(
            help="With --bounds, for long tails: log models the logarithm of amounts, logit the "
            "log odds of shares. Bounds and predictions keep the original scale."
        ),
    ] = ""
    log: Annotated[bool, typer.Option("--log", help="The same as --transform log.")] = False
    class_rates: Annotated[
        str,
        typer.Option(
            help="With --classes: share of each class, known without the data: 0.9,0.1; equal by "
            "default. A start for --learn map, final for --learn none."
        ),
    ] = ""
    link: Annotated[
        str,
        typer.Option(help="With --classes: probit (the default) or logit (always with newton)."),
    ] = ""
    step_criterion: Annotated[
        str, typer.Option(help="With newton: criterion of the noise on its steps, logdet or trace.")
    ] = ""
    steps: Annotated[
        int | None,
        typer.Option(help="With newton: number of steps, which share the budget; 1 by default."),
    ] = None
    gap: Annotated[
        float, typer.Option(help="Certified distance from the best design at which to stop.")
    ] = FitRequest.gap
    memory: Annotated[
        float | None,
        typer.Option(
            help="Memory limit in gigabytes; by default half of the free memory. A sparse model "
            "replaces an exact one that would need more."
        ),
    ] = None

    def order(self, table: TableOptions, *, epsilon: float, origin: Origin | None = None) -> Order:
        """Return an order, after the checks that need no table.

        Raises
        ------
        ValueError
            For options that contradict each other.
        """
        source = table.source()
        if source.inputs and self.public_prediction not in ("", *source.inputs):
            source = replace(source, inputs=[*source.inputs, self.public_prediction])
        order = Order(
            source=source,
            request=self.request(epsilon),
            queries=self.queries,
            origin=origin or Origin(),
        )
        order.validate()
        if table.missing_output == "drop":
            warn(
                f"rows without {table.output} are left out: which people these are becomes public, "
                "with everything that may tell about them"
            )
        # What is wrong with a table is for whoever asks it.
        with suppress(ValueError, OSError):
            if hint := person_hint(order.source):
                notice(hint)
        notice_remarks(order.source, private_numbers=not order.classes)
        return order

    def request(self, epsilon: float) -> FitRequest:
        """Return the options as a request.

        Raises
        ------
        ValueError
            For unreadable values, or options of the other kind of column.
        """
        return FitRequest(
            task=self._task(),
            epsilon=epsilon,
            delta=self.delta,
            noise=texts.noise_choice(self.noise, option="--noise"),
            criterion=self.criterion,
            inducing=texts.count_or_auto(self.inducing, option="--inducing"),
            learn=LEARNING[texts.one_of(tuple(LEARNING), self.learn, option="--learn")],
            lengthscale=texts.positive_numbers(self.lengthscale, option="--lengthscale"),
            signal_variance=self.signal_variance,
            gap=self.gap,
            memory=self.memory,
        )

    def _task(self) -> Regression | QuantileRegression | Classification:
        if (self.bounds is None) == (not self.classes):
            raise ValueError(
                "give either --bounds LO HI, if the private column holds numbers, or --classes "
                "no,yes, if it holds classes"
            )
        self._check_company()
        if self.bounds is None:
            return Classification(
                classes=class_names(self.classes),
                class_rates=texts.positive_numbers(self.class_rates, option="--class-rates")
                or None,
                link=texts.one_of_or_none(LINKS, self.link, option="--link"),
                step_criterion=texts.one_of_or_none(
                    CRITERIA, self.step_criterion, option="--step-criterion"
                ),
                steps=self.steps,
            )
        if self.log and self.transform not in ("", "log"):
            raise ValueError("--log is --transform log: give one of them")
        if self.counts and (self.log or self.transform):
            raise ValueError("--transform has no meaning with --counts: leave it out")
        stages = texts.one_of(STAGES, self.stages or "auto", option="--stages")
        interval = texts.one_of(options.INTERVALS, self.interval or "auto", option="--interval")
        transform = texts.one_of_or_none(
            TRANSFORMS, "log" if self.log else self.transform, option="--transform"
        )
        if self.quantiles:
            return QuantileRegression(
                bounds=self.bounds,
                quantiles=texts.positive_numbers(self.quantiles, option="--quantiles"),
                mean=self.mean,
                stages="auto" if stages == "auto" else None,
                interval="auto" if interval == "auto" else False,
                output_transform=transform or "auto",
            )
        return Regression(
            bounds=self.bounds,
            noise_variance=self.noise_variance,
            mean=self.mean,
            stages="auto" if stages == "auto" else None,
            interval="auto" if interval == "auto" else False,
            output_transform=transform,
            likelihood="counts" if self.counts else "normal",
            overdispersion=self.overdispersion,
            calibrate=texts.calibration(self.calibrate or "auto", option="--calibrate"),
            public_prediction=self.public_prediction or None,
        )

    def _check_company(self) -> None:
        """Raise ValueError for an option that goes with the other kind of column."""
        of_numbers: Mapping[str, object] = {
            "--noise-variance": self.noise_variance,
            "--mean": self.mean,
            "--public-prediction": self.public_prediction or None,
            "--stages": self.stages or None,
            "--interval": self.interval or None,
            "--calibrate": self.calibrate or None,
            "--transform": self.transform or None,
            "--log": self.log or None,
            "--counts": self.counts or None,
            "--overdispersion": self.overdispersion,
            "--quantiles": self.quantiles or None,
        }
        of_classes: Mapping[str, object] = {
            "--class-rates": self.class_rates or None,
            "--link": self.link or None,
            "--step-criterion": self.step_criterion or None,
            "--steps": self.steps,
        }
        strangers, with_what = (
            (of_numbers, "--bounds") if self.bounds is None else (of_classes, "--classes")
        )
        for name, value in strangers.items():
            if value is not None:
                raise ValueError(f"{name} goes with {with_what}, and has no meaning here")
        if self.quantiles:
            for name in (
                "--noise-variance",
                "--counts",
                "--overdispersion",
                "--calibrate",
                "--public-prediction",
            ):
                if of_numbers[name] is not None:
                    raise ValueError(f"{name} has no meaning with --quantiles: leave it out")


def class_names(listed: str) -> tuple[str, ...]:
    """Return the classes that --classes names, with commas; at least two.

    Examples
    --------
    >>> class_names("no,yes")
    ('no', 'yes')
    """
    names = texts.names(listed, example="yes,no")
    if len(names) == 1:
        raise ValueError(
            f"--classes names one class, {names[0]}: name every class that can occur, at least two"
        )
    return tuple(names)
