"""The demonstration's figures: patients predicted from a private fit to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import typer
from rich.table import Table

from cloakgp.cli.demonstration import DELTA, EPSILON, REPETITIONS, demonstrate, load_people
from cloakgp.cli.demonstration import Demonstration as Demonstrated
from experiments.framework import Experiment, Progress, table_titled
from experiments.spread import standard_error, with_error


@dataclass(frozen=True)
class Demonstration(Experiment[Demonstrated]):
    """Measure what ``cloakgp demo`` shows: errors with privacy and without."""

    name: ClassVar[str] = "demonstration"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({"draws": 2})

    draws: Annotated[int, typer.Option(min=2, help="Of the noise.")] = REPETITIONS

    def compute(self, progress: Progress) -> Demonstrated:
        """Release, and predict."""
        with progress("demonstration", steps=3) as tick:
            return demonstrate(load_people(), repetitions=self.draws, on_step=lambda _: tick())

    def tables(self, found: Demonstrated) -> Iterable[Table | str]:
        """Lay out errors by way."""
        people = found.people
        table = table_titled(
            f"RMSE of {len(people.X_test)} patients from {len(people.X)} others at ({EPSILON:g}, "
            f"{DELTA:g}), {self.draws} draws of the noise (se)",
            "way",
            right=["private", "without privacy"],
        )
        for trial in found.trials:
            errors = trial.private_rmse
            error = with_error(float(errors.mean()), standard_error(errors), ".1f")
            table.add_row(trial.name, error, f"{trial.rmse:.1f}")
        table.add_row("their mean", "", f"{found.output_sd:.1f}")
        table.add_row("the middle of the bounds", f"{found.middle_rmse:.1f}", "")
        yield table
