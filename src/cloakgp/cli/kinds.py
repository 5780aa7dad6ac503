"""`cloakgp release-...`: several private columns, private inputs, a private choice of priors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, print_sections, say, stdout, warn
from cloakgp.cli.counting import Counting
from cloakgp.cli.fit_options import class_names, notice_remarks
from cloakgp.fitting.request import FitRequest, MultiOutputRegression, Regression
from cloakgp.orders import texts
from cloakgp.orders.options import SourceTable, declared_schema, format_of_table
from cloakgp.orders.origin import with_left_out
from cloakgp.orders.public_inputs import public_inputs

if TYPE_CHECKING:
    from cloakgp.columns import Schema
    from cloakgp.columns.schema import Encoded
    from cloakgp.data.tables import People
    from cloakgp.estimators.private_inputs import (
        DPGPClassifierPrivateInputs,
        DPGPRegressorPrivateInputs,
    )
    from cloakgp.release import MultiOutputRelease, OneOutputRelease, Release, StatisticsRelease

MECHANISMS: tuple[Literal["permute-and-flip", "exponential"], ...] = (
    "permute-and-flip",
    "exponential",
)
NEIGHBOURS: tuple[Literal["replace", "add-remove"], ...] = ("replace", "add-remove")

Table = Annotated[Path, typer.Argument(help="Table of people.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget; 1 is usual.")]
Delta = Annotated[
    float, typer.Option(help="δ of the guarantee; well below one over the number of people.")
]
Inputs = Annotated[
    str, typer.Option(help="Public columns, with commas; by default all columns of the schema.")
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="Kinds of the public columns, as for release.")
]
MissingOutput = Annotated[
    str, typer.Option(help="refuse, or the number that an empty private cell counts as.")
]
Inducing = Annotated[int | None, typer.Option(help="Number of inducing inputs.")]
Outputs = Annotated[
    list[str],
    typer.Option(
        "--output", help="A private column of numbers and its range: height=100:220. Repeat it."
    ),
]


@fails_plainly
@options.takes_groups
def release_several(
    *,
    table: Table,
    output: Outputs,
    epsilon: Epsilon,
    to: options.To,
    delta: Delta = 0.0,
    inputs: Inputs = "",
    schema: SchemaFile = None,
    person: options.Person = "",
    missing_output: MissingOutput = "refuse",
    inducing: Inducing = None,
    noise: options.Noise = "auto",
    interval: Annotated[
        str,
        typer.Option(
            help="auto first looks, under the one budget, for an interval that holds most values "
            "of each column, if rows suffice; off uses the ranges."
        ),
    ] = "auto",
    calibrate: Annotated[
        str,
        typer.Option(
            help="auto calibrates intervals for new values by noisy counts of each column, under "
            "the one budget, if rows suffice; off takes them from the model."
        ),
    ] = "auto",
    sql: options.Sql = "",
    counting: Counting,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask several private columns under one budget, which protects them together.

    Ranges are public: do not choose them by looking at the columns.
    """
    ranges = texts.declared_ranges(output, option="--output")
    if missing_output == "drop":
        raise ValueError(
            "--missing-output drop goes with one private column: of several, a row may lack one "
            "and have the others"
        )
    source = SourceTable(
        path=table,
        inputs=texts.names(inputs) if inputs else [],
        output=next(iter(ranges)),
        schema=schema,
        person=person,
        missing_output=missing_output,
        query=sql,
    )
    notice_remarks(source, others=list(ranges)[1:])
    looking = texts.one_of(options.INTERVALS, interval, option="--interval") == "auto"
    counting_all = texts.one_of(options.CALIBRATIONS, calibrate, option="--calibrate") == "auto"
    request = FitRequest(
        task=MultiOutputRegression(
            bounds=list(ranges.values()),
            interval="auto" if looking else False,
            calibrate="auto" if counting_all else False,
        ),
        epsilon=epsilon,
        delta=delta,
        noise=texts.noise_choice(noise, option="--noise"),
        inducing=inducing,
    )
    made = counting.write(
        lambda: counting.origin.kept_in(_several(source, request, outputs=list(ranges))),
        to,
        choices={
            "command": "release-several",
            "source": source,
            "request": request,
            "outputs": list(ranges),
        },
        inputs=lambda: public_inputs(source, others=list(ranges)[1:]),
        delta=delta,
        read=[table] if schema is None else [table, schema],
        overwrite=overwrite,
    )
    if made is None:
        return
    say(
        f"Wrote {to}: predictions of {', '.join(ranges)}, from {made.n_rows:,} rows.", style="green"
    )
    _tell(made, to, another_run=counting.another_run)


PrivateInputs = Annotated[
    list[str],
    typer.Option("--input", help="A private input of numbers and its range: age=0:100. Repeat it."),
]
NO_INPUTS: list[str] = []
PrivateSchema = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        help="Instead of --input: kinds of the private inputs, with every level and range, known "
        "without the data.",
    ),
]
PrivateOutput = Annotated[
    str,
    typer.Option(
        help="The private column and its range: height=100:220; with --classes, its name."
    ),
]
PrivateClasses = Annotated[
    str,
    typer.Option(
        help="Every class that the private column can hold, known without the data: no,yes."
    ),
]
NeighboursOption = Annotated[
    str,
    typer.Option(
        help="replace protects any change of a row, where the number of rows is public; "
        "add-remove also protects the presence of a row."
    ),
]
Features = Annotated[
    int | None,
    typer.Option(help="The most features; by default 40, or one for each input and the mean."),
]


def _of_whole_rows(
    inputs: Sequence[str],
    output: str,
    *,
    schema: Path | None,
    classes: str,
    neighbours: str,
    features: int | None,
    epsilon: float,
    delta: float,
) -> tuple[list[str], str, DPGPRegressorPrivateInputs | DPGPClassifierPrivateInputs]:
    """Return the names of private inputs and output, and an estimator as declared."""
    from cloakgp.columns.private import private_schema
    from cloakgp.estimators.private_inputs import (
        DPGPClassifierPrivateInputs,
        DPGPRegressorPrivateInputs,
    )

    if bool(inputs) == (schema is not None):
        raise ValueError("name the private inputs by --input age=0:100, or by a --schema")
    boxes = texts.declared_ranges(inputs, option="--input") if inputs else {}
    declared = declared_schema(schema)
    known = None if declared is None else private_schema(declared)
    taken = list(boxes) if known is None else list(known.sources)
    asked: dict[str, Any] = {
        "input_bounds": list(boxes.values()) or None,
        "schema": known,
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": texts.one_of(NEIGHBOURS, neighbours, option="--neighbours"),
        "n_features": features,
    }
    if classes:
        labels = list(class_names(classes))
        return taken, _distinct(output, taken), DPGPClassifierPrivateInputs(classes=labels, **asked)
    ((name, limits),) = texts.declared_ranges([output], option="--output").items()
    return taken, _distinct(name, taken), DPGPRegressorPrivateInputs(bounds=limits, **asked)


def _distinct(name: str, inputs: Sequence[str]) -> str:
    if name in inputs:
        raise ValueError(f"{name} is an input, or the output")
    return name


@fails_plainly
def plan_private_inputs(
    *,
    private_input: PrivateInputs = NO_INPUTS,
    schema: PrivateSchema = None,
    output: PrivateOutput,
    rows: Annotated[
        int,
        typer.Option(
            help="How many rows there are; with add-remove that is private: a round number that "
            "is known without the table."
        ),
    ],
    epsilon: Annotated[
        list[float],
        typer.Option(help="Privacy budget; 1 is usual. Repeat the option to compare budgets."),
    ],
    delta: Delta,
    classes: PrivateClasses = "",
    neighbours: NeighboursOption = "replace",
    features: Features = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Describe a release of whole rows before it is made: error, noise and cost. Spends nothing.

    Takes the options of `cloakgp release-private-inputs`, and no table: nothing is read.
    """
    _, name, model = _of_whole_rows(
        private_input,
        output,
        schema=schema,
        classes=classes,
        neighbours=neighbours,
        features=features,
        epsilon=epsilon[0],
        delta=delta,
    )
    found = model.plan(rows, epsilons=epsilon[1:] or None)
    if as_json:
        stdout.print(json.dumps(found.to_dict(), indent=2), soft_wrap=True, markup=False)
        return
    from cloakgp.cli.plan import print_plan
    from cloakgp.report.facts import Fact, Section

    print_plan(found, output=name)
    head, *lines = found.budgets()
    over = tuple(
        Fact(f"ε = {line[0]}", "; ".join(map(" ".join, zip(head[1:], line[1:], strict=True))))
        for line in lines
    )
    print_sections([Section("Over budgets", over)])
    say("No table was read, and nothing spent.", style="green")


@fails_plainly
@options.takes_groups
def release_private_inputs(
    *,
    table: Table,
    private_input: PrivateInputs = NO_INPUTS,
    schema: PrivateSchema = None,
    output: PrivateOutput,
    epsilon: Epsilon,
    to: options.To,
    delta: Delta,
    classes: PrivateClasses = "",
    neighbours: NeighboursOption = "replace",
    features: Features = None,
    sql: options.Sql = "",
    counting: Counting,
    overwrite: options.Overwrite = False,
) -> None:
    """Release predictions where the inputs are private, too: whole rows are protected.

    Nothing of the table is in the release, not even inputs; it costs accuracy. Ranges are
    public: do not choose them by looking at the columns.
    """
    inputs, name, model = _of_whole_rows(
        private_input,
        output,
        schema=schema,
        classes=classes,
        neighbours=neighbours,
        features=features,
        epsilon=epsilon,
        delta=delta,
    )

    def make() -> StatisticsRelease:
        import pandas as pd

        from cloakgp.data.tables import read_private_columns, read_private_rows

        asked: dict[str, Any] = {
            "output": name,
            "classes": class_names(classes) if classes else (),
            "table_format": format_of_table(table, sql),
        }
        if model.schema is None:
            numbers, y = read_private_rows(table, inputs=inputs, **asked)
            X = pd.DataFrame(numbers, columns=inputs)
        else:
            cells, y = read_private_columns(table, schema=model.schema, **asked)
            X = pd.DataFrame(cells)
        model.fit(X, pd.Series(y, name=name))
        return counting.origin.kept_in(model.release_)

    read = [table] if schema is None else [table, schema]
    made = counting.write(
        make,
        to,
        choices={
            "command": "release-private-inputs",
            "table": table,
            "query": sql,
            "inputs": inputs,
            "output": name,
            "estimator": {
                each: value for each, value in model.get_params(deep=False).items() if value
            },
        },
        delta=delta,
        read=read,
        overwrite=overwrite,
    )
    if made is None:
        return
    what = "probabilities" if classes else "predictions"
    say(f"Wrote {to}: {what} of {name}.", style="green")
    _tell(made, to, another_run=counting.another_run)


@fails_plainly
@options.takes_groups
def release_chosen(
    *,
    table: Table,
    output: Annotated[str, typer.Option(help="The private column and its range: height=100:220.")],
    lengthscale: Annotated[
        str,
        typer.Option(
            help="Candidate lengthscales of all inputs, with commas, in shares of their spread."
        ),
    ],
    selection_epsilon: Annotated[
        float, typer.Option(help="ε of the choice, on top of --epsilon for the release.")
    ],
    epsilon: Epsilon,
    to: options.To,
    delta: Delta,
    noise_sd: Annotated[
        str, typer.Option(help="Candidate variances of one value about the curve, with commas.")
    ] = "",
    inputs: Inputs = "",
    schema: SchemaFile = None,
    folds: Annotated[int, typer.Option(help="Number of folds for the comparison of errors.")] = 5,
    mechanism: Annotated[str, typer.Option(help=f"{' or '.join(MECHANISMS)}.")] = MECHANISMS[0],
    missing_output: MissingOutput = "refuse",
    inducing: Inducing = None,
    sql: options.Sql = "",
    counting: Counting,
    overwrite: options.Overwrite = False,
) -> None:
    """Choose hyperparameters privately by their errors on held-out rows, then release with them.

    Spends twice, on the choice and on the release. Often `cloakgp release`, which learns them from
    noisy answers at no cost, does as well.
    """
    ((name, limits),) = texts.declared_ranges([output], option="--output").items()
    scales = texts.positive_numbers(lengthscale, option="--lengthscale")
    sds = texts.positive_numbers(noise_sd, option="--noise-sd") if noise_sd else []
    if missing_output == "drop":
        warn(f"rows without {name} are left out: which people these are becomes public")
    source = SourceTable(
        path=table,
        inputs=texts.names(inputs) if inputs else [],
        output=name,
        schema=schema,
        missing_output=missing_output,
        query=sql,
    )
    notice_remarks(source)
    request = FitRequest(
        task=Regression(bounds=limits),
        epsilon=epsilon,
        delta=delta,
        noise="gaussian",
        inducing=inducing,
    )
    chosen = texts.one_of(MECHANISMS, mechanism, option="--mechanism")

    def make() -> Release:
        from dataclasses import replace

        import pandas as pd
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        from cloakgp.estimators.grid_search import DPGridSearchCV
        from cloakgp.estimators.regression import DPGPRegressor
        from cloakgp.models.defaults import SIGNAL_SD_SHARE, find_varying

        people, encoded, declared = _read(source)
        X = encoded.X
        spread = X.std(axis=0)
        # A level that nobody has is a number that never varies, and tells nobody apart.
        spread[~find_varying(X)] = 1.0
        variance = (SIGNAL_SD_SHARE * (limits[1] - limits[0])) ** 2
        grid: dict[str, list[object]] = {
            "kernel": [ConstantKernel(variance) * RBF(scale * spread) for scale in scales]
        }
        if sds:
            grid["noise_variance"] = [sd**2 for sd in sds]
        search = DPGridSearchCV(
            DPGPRegressor(**request.parameters()),
            grid,
            selection_epsilon=selection_epsilon,
            cv=folds,
            mechanism=chosen,
        )
        search.fit(
            pd.DataFrame(X, columns=list(declared.names)),
            pd.Series(people.private[encoded.kept], name=name),
        )
        made = with_left_out(
            replace(search.release_, schema=declared),
            without_output=people.without_output,
            without_inputs=len(encoded.kept) - len(encoded.X),
        )
        return counting.origin.kept_in(made)

    read = [table] if schema is None else [table, schema]
    made = counting.write(
        make,
        to,
        choices={
            "command": "release-chosen",
            "source": source,
            "request": request,
            "lengthscale": scales,
            "noise_sd": sds,
            "selection_epsilon": selection_epsilon,
            "folds": folds,
            "mechanism": chosen,
        },
        inputs=lambda: public_inputs(source),
        delta=delta,
        read=read,
        overwrite=overwrite,
    )
    if made is None:
        return
    say(f"Wrote {to}: predictions of {name}, from {made.n_rows:,} rows.", style="green")
    _tell(made, to, another_run=counting.another_run)


def _several(source: SourceTable, request: FitRequest, *, outputs: list[str]) -> MultiOutputRelease:
    import pandas as pd

    from cloakgp.data.tables import read_people
    from cloakgp.estimators.multioutput import DPGPMultiOutputRegressor

    raw = source.raw_rows(others=outputs[1:])
    people = read_people(
        source.path,
        raw=raw,
        output=outputs[0],
        groups=source.person or None,
        more_outputs=outputs[1:],
        table_format=source.table_format,
    )
    private = {outputs[0]: people.private, **people.more_private}
    model = DPGPMultiOutputRegressor(**request.parameters(), schema=raw.schema)
    model.fit(people.columns, pd.DataFrame(private), groups=people.groups)
    return model.release_


def _read(source: SourceTable) -> tuple[People, Encoded, Schema]:
    """Return a table, its public columns as numbers, and the kinds of these columns."""
    from cloakgp.data.tables import read_people

    raw = source.raw_rows()
    people = read_people(
        source.path, raw=raw, output=source.output, table_format=source.table_format
    )
    return people, raw.schema.encode(people.columns), raw.schema


def _tell(made: OneOutputRelease | MultiOutputRelease, to: Path, *, another_run: str) -> None:
    say(f"  {made.guarantee}")
    explain(f"{another_run} In words: cloakgp show {to}")
