"""`cloakgp example`: tables of simulated people, to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say

if TYPE_CHECKING:
    import pandas as pd


@fails_plainly
def example(
    folder: Annotated[Path, typer.Argument(help="Folder for the tables.")] = Path(),
    trips: Annotated[
        int, typer.Option(min=0, help="Write trips.parquet, of so many rows, and nothing else.")
    ] = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Write tables of simulated people, to try the other commands on.

    people.csv, people.xlsx, care.csv, trips.csv, months/, and new.csv to predict at.

    What the README and the tutorials say can be tried on them as it stands there. Where Excel's
    package is not installed, people.xlsx is left out.
    """
    import io

    import pyarrow as pa

    from cloakgp.data import format_of
    from cloakgp.data.example import (
        TRIPS_OF_RIDER,
        example_care,
        example_months,
        example_people,
        example_trips,
        new_people,
    )
    from cloakgp.utils.extras import MissingExtraError
    from cloakgp.utils.files import write_file

    def write(tables: dict[str, pd.DataFrame]) -> None:
        for name, table in tables.items():
            path, file = folder / name, io.BytesIO()
            rows = pa.Table.from_pandas(table, preserve_index=False)
            try:
                format_of(path).write(iter([rows]), file, suffix=path.suffix)
            except MissingExtraError:
                continue
            write_file(path, file.getvalue(), overwrite=overwrite)
            say(f"Wrote {path}", style="green")

    if trips:
        folder.mkdir(parents=True, exist_ok=True)
        write({"trips.parquet": example_trips(trips)})
        explain(f"{trips:,} simulated trips with hired bicycles, some {TRIPS_OF_RIDER} a rider.")
        return
    (folder / "months").mkdir(parents=True, exist_ok=True)
    people, new = example_people(), new_people()
    tables = {
        "people.csv": people,
        "people.xlsx": people.drop(columns="ill"),
        "care.csv": example_care(),
        "trips.csv": example_trips(),
        "new.csv": new,
        **{f"months/{month}.csv": table for month, table in example_months().items()},
    }
    write(tables)
    explain(
        f"{len(people)} simulated people with households, text, dates and gaps, and {len(new)} "
        "new ones without private columns. Nobody in them exists. Begin with:"
    )
    say(
        f"  cloakgp plan {folder / 'people.csv'} --inputs age,weight --output height "
        "--bounds 40 200 --epsilon 1"
    )
