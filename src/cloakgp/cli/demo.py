"""`cloakgp demo`: the main job on data that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from cloakgp.cli.console import explain, fails_plainly, plain, print_sections, say, stdout

if TYPE_CHECKING:
    from cloakgp.cli.demonstration import Demonstration, People

RELEASE_NAME, PICTURE_NAME = "demo.cloak", "demo.png"


@fails_plainly
def demo(
    output_dir: Annotated[
        Path, typer.Option("--output-dir", help="Folder for the release and the picture.")
    ] = Path("output"),
) -> None:
    """Demonstrate on public data: release, predict, compare, draw."""
    from cloakgp.cli import demonstration
    from cloakgp.cli.progress import reporting
    from cloakgp.plots.figures import figure_bytes, picture_suffix
    from cloakgp.report.describe import describe
    from cloakgp.utils.files import write_file

    output_dir.mkdir(parents=True, exist_ok=True)
    people = demonstration.load_people()
    _introduce(people)
    with reporting("designing the noise") as reporter:
        outcome = demonstration.demonstrate(
            people, on_step=lambda name: reporter.step(f"designing, asking and predicting: {name}")
        )
        picture = demonstration.draw(outcome)
    stdout.print(_comparison(outcome))
    explain(
        f"The spread is over {len(outcome.kept.private_rmse)} draws of the noise, possible only "
        "because these data are no secret. The written release asked once."
    )
    stdout.line()
    sections = describe(outcome.kept.release)
    print_sections(
        [section for section in sections if section.title in ("Protection", "Guarantee")]
    )
    outcome.kept.release.save(output_dir / RELEASE_NAME, overwrite=True)
    drawn = figure_bytes(picture, suffix=picture_suffix(PICTURE_NAME))
    write_file(output_dir / PICTURE_NAME, drawn, overwrite=True)
    say(f"Release: {output_dir / RELEASE_NAME}", style="green")
    say(f"Picture: {output_dir / PICTURE_NAME}", style="bold green")


def _introduce(people: People) -> None:
    from cloakgp.cli.demonstration import BOUNDS, DELTA, EPSILON

    rows = len(people.X)
    stdout.print(plain("Diabetes progression, as if it were private", style="bold cyan"))
    explain(
        f"{rows} patients. Public: age, body mass index, blood pressure. Private: a score of the "
        f"progress of the disease in a year. {len(people.X_test)} other patients, picked at "
        "random, are predicted."
    )
    explain(
        f"Bounds: {BOUNDS.lo:g} to {BOUNDS.hi:g}. The score cannot be negative, and {BOUNDS.hi:g} "
        "is a round number above its maximum."
    )
    explain(
        f"Budget: epsilon = {EPSILON:g}, delta = {DELTA:g}, which is "
        f"below one patient in {rows} ({1 / rows:.4f})."
    )
    stdout.line()


def _comparison(demonstration: Demonstration) -> Table:
    table = Table(
        title="Error on the other patients (RMSE)", box=box.SIMPLE_HEAD, title_justify="left"
    )
    table.add_column("predicting with")
    table.add_column("private", justify="right", style="bold")
    table.add_column("without privacy", justify="right")
    for trial in demonstration.trials:
        private = f"{trial.private_rmse.mean():.1f} ± {trial.private_rmse.std():.1f}"
        table.add_row(f"Gaussian process, {trial.name}", private, f"{trial.rmse:.1f}")
    table.add_row("their own mean (sd of the scores)", "", f"{demonstration.output_sd:.1f}")
    table.add_row("the middle of the bounds", f"{demonstration.middle_rmse:.1f}", "")
    return table
