"""`cloakgp show`, `plot`, `page` and `compare`: releases presented, which costs no privacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cloakgp.cli import options
from cloakgp.cli.console import fails_plainly, print_sections, say, stdout
from cloakgp.orders import texts
from cloakgp.utils.files import reserve_file
from cloakgp.utils.names import PICTURE_KINDS


@fails_plainly
def show(
    release_file: options.ReleaseFile,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also the noise, the design and the prior, in technical terms."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="All facts, as JSON: numbers, and the words behind them.")
    ] = False,
    json_schema: options.JsonSchema = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write all facts, with pictures, as one page to print to this file."),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Describe in words the accuracy and the protection of a release."""
    del json_schema
    from cloakgp.release.open import load
    from cloakgp.report.describe import describe
    from cloakgp.report.summary import summarise

    if html is not None:
        _write_sheet(release_file, html, overwrite=overwrite)
        return
    opened = load(release_file)
    if as_json:
        told = json.dumps(summarise(opened), indent=2, allow_nan=False)
        stdout.print(told, soft_wrap=True, markup=False, highlight=False)
        return
    sections = describe(opened)
    print_sections([each for each in sections if everything or not each.technical])
    if not everything and any(each.technical for each in sections):
        say("The noise, the design and the prior: --all. As a page to print: --html FILE.")


def _write_sheet(release_file: Path, html: Path, *, overwrite: bool) -> None:
    from cloakgp.pages.sheet import sheet_html
    from cloakgp.release.open import load

    with reserve_file(html, overwrite=overwrite, inputs=[release_file]) as target:
        target.write(sheet_html(load(release_file)).encode())
    say(f"Wrote {html}.", style="green")


@fails_plainly
def plot(
    release_file: options.ReleaseFile,
    to: Annotated[Path, typer.Option("--to", "-o", help="Picture: .png, .pdf or .svg.")],
    vary: Annotated[
        str,
        typer.Option(
            help="Inputs to draw over: one for a curve, two for a map, more for a curve each. The "
            "others stay at typical values. By default all inputs, or the first six."
        ),
    ] = "",
    kind: Annotated[
        str,
        typer.Option(
            help="prediction; fan, for quantiles of a new output; or calibration, for how many "
            "outputs lie where the model says that they do."
        ),
    ] = PICTURE_KINDS[0],
    only: Annotated[
        str,
        typer.Option(
            "--class",
            help="Class to draw. By default the second of two, or each of several.",
        ),
    ] = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Draw predictions, quantiles, or probabilities of classes. Costs no privacy.

    A curve over one input, a map over two, or a curve for each of more; quantiles over each input.
    Not drawn: releases of several private columns, histograms, and quantiles (fan) of classes.
    """
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.plots.plotting import display_of

    suffix = picture_suffix(to)
    with reserve_file(to, overwrite=overwrite, inputs=[release_file]) as target:
        release = options.open_drawn(release_file)
        chosen: dict[str, Any] = {"kind": texts.one_of(PICTURE_KINDS, kind, option="--kind")}
        if vary:
            if kind == "calibration":
                raise ValueError("calibration is of all rows: leave --vary out")
            chosen["vary"] = texts.names(vary)
        if only:
            if kind != "prediction" or not release.class_labels:
                raise ValueError("--class goes with predictions of classes, and not with numbers")
            chosen["only"] = only
        target.write(figure_bytes(display_of(release, **chosen).draw(), suffix=suffix))
    say(f"Drew {to}.", style="green")


PAGE_SUFFIXES = (".html", ".htm")


@fails_plainly
def page(
    release_file: options.ReleaseFile,
    to: Annotated[Path, typer.Option("--to", "-o", help="Page to write: .html.")],
    overwrite: options.Overwrite = False,
) -> None:
    """Write a page that predicts, for any browser: one file, no server. Costs no privacy.

    Whoever opens it moves the inputs, and sees prediction, bands and guarantee. Nothing is fetched
    from elsewhere, and nothing sent.
    """
    from cloakgp.pages.prediction import prediction_html
    from cloakgp.utils.formatting import bytes_in_words

    if to.suffix.lower() not in PAGE_SUFFIXES:
        raise ValueError(f"{to}: the name of a page must end in {' or '.join(PAGE_SUFFIXES)}")
    with reserve_file(to, overwrite=overwrite, inputs=[release_file]) as target:
        content = prediction_html(options.open_drawn(release_file)).encode()
        target.write(content)
    say(f"Wrote {to} ({bytes_in_words(len(content))}): open it in a browser.", style="green")


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
    import pandas as pd

    from cloakgp.data.tables import read_public
    from cloakgp.report.comparison import compare_releases, describe_comparison

    one, other = options.open_drawn(first), options.open_drawn(second)
    points = None if at is None else pd.DataFrame(read_public(at).frame(numeric=True))
    print_sections(describe_comparison(one, other, compare_releases(one, other, points)))
