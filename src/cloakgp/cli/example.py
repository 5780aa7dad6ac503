"""`cloakgp example`: tables of simulated people, to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say


@fails_plainly
def example(
    folder: Annotated[Path, typer.Argument(help="Folder for the tables.")] = Path(),
    overwrite: options.Overwrite = False,
) -> None:
    """Write example tables of simulated people: people.csv, people.xlsx, care.csv, new.csv.

    What the README and the tutorials say can be tried on them as it stands there. Where Excel's
    package is not installed, people.xlsx is left out.
    """
    from cloakgp.data.example import example_care, example_people, new_people
    from cloakgp.utils.files import write_file

    folder.mkdir(parents=True, exist_ok=True)
    people, new = example_people(), new_people()
    contents = {
        "people.csv": people.to_csv(index=False).encode(),
        "care.csv": example_care().to_csv(index=False).encode(),
        "new.csv": new.to_csv(index=False).encode(),
    }
    sheet = _as_excel(people.drop(columns="ill"))
    if sheet is not None:
        contents["people.xlsx"] = sheet
    for name, content in contents.items():
        write_file(folder / name, content, overwrite=overwrite)
        say(f"Wrote {folder / name}", style="green")
    explain(
        f"{len(people)} simulated people with households, text, dates and gaps, and {len(new)} "
        "new ones without private columns. Nobody in them exists. Begin with:"
    )
    say(
        f"  cloakgp plan {folder / 'people.csv'} --inputs age,weight --output height "
        "--bounds 40 200 --epsilon 1"
    )


def _as_excel(people: object) -> bytes | None:
    """Return a sheet, or None where nothing can write one."""
    import io

    import pandas as pd

    assert isinstance(people, pd.DataFrame)
    file = io.BytesIO()
    try:
        people.to_excel(file, index=False)
    except ImportError:
        return None
    return file.getvalue()
