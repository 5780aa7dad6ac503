"""Experiments: what computes a table or figure of a paper, lays it out and draws it.

A new table is a new module of this folder with a subclass of `Experiment`: the command line finds
it by its name.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_type_hints

import typer
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from experiments.pages import keep_tables
from experiments.progress import Progress, Tick, no_tick, progress, quietly, ticked
from experiments.written import write_tables

__all__ = [
    "Experiment",
    "Fast",
    "Keep",
    "OutputDir",
    "Progress",
    "Releases",
    "RowDraws",
    "Rows",
    "Shuffle",
    "Splits",
    "Tick",
    "all_experiments",
    "command_of",
    "console",
    "no_tick",
    "progress",
    "quietly",
    "table_titled",
    "ticked",
]

Results = TypeVar("Results")

DPI = 130
# Rich takes 80 columns where there is no terminal, and would cut figures off to fit.
WIDTH = 144
# A narrow table is as wide as its title, up to this, which would otherwise be broken to fit.
TITLE_WIDTH = 72

console = Console(highlight=False, width=WIDTH)


def table_titled(title: str, *left: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table of one style, with columns of words and then of figures.

    Parameters
    ----------
    title : str
    *left : str
        Heads of columns that are justified to the left.
    right : iterable of str
        Heads of the columns after them, justified to the right.

    Examples
    --------
    >>> [column.justify for column in table_titled("errors", "method", right=["cm"]).columns]
    ['left', 'right']
    """
    table = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption_justify="left",
        min_width=min(len(title), TITLE_WIDTH),
    )
    for column in left:
        table.add_column(column)
    for column in right:
        table.add_column(column, justify="right")
    return table


class Experiment(ABC, Generic[Results]):
    """A table or figure of a paper: computed, laid out and drawn.

    A subclass is a frozen dataclass. Its fields are settings, and those whose annotation has a
    `typer.Option` are options of its command. The first sentence of its docstring is the command's
    help.

    Attributes
    ----------
    name : str
        Of the command.
    small : mapping of str to object
        Settings of the small version, ``--fast``, that the tests run.
    """

    name: ClassVar[str]
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @abstractmethod
    def compute(self, progress: Progress) -> Results:
        """Return everything that is laid out or drawn."""

    @abstractmethod
    def tables(self, found: Results) -> Iterable[Table | str]:
        """Lay out tables and sentences, published figures beside ours."""

    def figures(self, found: Results) -> Mapping[str, Figure]:
        """Draw, by name of the file."""
        del found
        return {}

    @classmethod
    def title(cls) -> str:
        """Return the first sentence of the docstring."""
        return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")

    def told(self) -> str:
        """Return the options of the command with their values, in words; places of files aside."""
        options = ((one.name, getattr(self, one.name)) for one in options_of(type(self)))
        values = ((name, value) for name, value in options if not isinstance(value, Path))
        return ", ".join((self.name, *(f"{name} = {value}" for name, value in values)))

    def run(self, *, output_dir: Path, keep: str | None = None) -> None:
        """Compute, print the tables, and write them and the figures.

        Parameters
        ----------
        output_dir : Path
            Made if it is not there.
        keep : str, optional
            The name by which pages show what is printed (`experiments.pages`).
        """
        started = time.monotonic()
        found = self.compute(progress)
        tables = []
        for shown in self.tables(found):
            console.print(shown)
            tables.append(shown)
        output_dir.mkdir(parents=True, exist_ok=True)
        written = write_tables(tables, folder=output_dir, name=self.name, settings=self.told())
        for name, figure in self.figures(found).items():
            figure.savefig(output_dir / name, dpi=DPI)
            written.append(output_dir / name)
        if keep is not None:
            written.append(keep_tables(tables, name=keep, settings=self.told()))
        for path in written:
            console.print(f"wrote {path}")
        console.print(f"{time.monotonic() - started:.0f} s")


OutputDir = Annotated[Path, typer.Option(help="Where tables and pictures are written.")]
Keep = Annotated[
    str | None, typer.Option(help="The name by which pages show what is printed: kept for them.")
]
Fast = Annotated[
    bool, typer.Option("--fast", help="The small version, but for options that are given.")
]
Releases = Annotated[int, typer.Option(min=2, help="Releases per fold and method.")]
Splits = Annotated[int, typer.Option(min=2, help="Splits and draws of the noise.")]
RowDraws = Annotated[int, typer.Option(min=2, help="Draws of rows, each with its noise.")]
NoisySplits = Annotated[int, typer.Option(min=1, help="Splits, each with its noise.")]
OfTheTwelve = Annotated[int | None, typer.Option(min=1, help="Of the twelve, the first.")]
Rows = Annotated[int, typer.Option(min=20, help="The most rows that are fitted.")]
Shuffle = Annotated[bool, typer.Option("--shuffle", help="Deal rows to folds at random.")]


def command_of(kind: type[Experiment[Any]]) -> Callable[..., None]:
    """Return an experiment's command: its options, ``--output-dir``, ``--keep`` and ``--fast``.

    Parameters
    ----------
    kind : type
        A subclass of `Experiment`.
    """
    hints = get_type_hints(kind, include_extras=True)
    settings = options_of(kind)

    def command(
        context: typer.Context,
        *,
        output_dir: Path,
        keep: str | None,
        fast: bool,
        **options: Any,
    ) -> None:
        if fast:
            given = {name for name in options if is_given(context, name)}
            small = {name: one for name, one in kind.small.items() if name not in given}
            options = options | small
        experiment: Any = kind(**options)
        experiment.run(output_dir=output_dir, keep=keep)

    parameters: list[tuple[str, Any, Any]] = [
        ("context", typer.Context, inspect.Parameter.empty),
        *((setting.name, hints[setting.name], setting.default) for setting in settings),
    ]
    parameters += [
        ("output_dir", OutputDir, Path("output")),
        ("keep", Keep, None),
        ("fast", Fast, False),
    ]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
            for name, annotation, default in parameters
        ]
    )
    command.__annotations__ = {name: annotation for name, annotation, _ in parameters}
    command.__doc__ = kind.title()
    return command


def options_of(kind: type[Experiment[Any]]) -> list[Field[Any]]:
    """Return the fields of an experiment that are options of its command."""
    hints = get_type_hints(kind, include_extras=True)
    # A dataclass, as its docstring demands: mypy knows the base alone.
    every = fields(kind)  # type: ignore[arg-type]
    return [one for one in every if hasattr(hints[one.name], "__metadata__")]


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether somebody gave an option of a command, so that it is no default.

    Parameters
    ----------
    context : Context
        Of the command.
    name : str
    """
    source = context.get_parameter_source(name)
    return source is not None and source.name not in {"DEFAULT", "DEFAULT_MAP"}


def all_experiments() -> dict[str, type[Experiment[Any]]]:
    """Return the experiments of this folder, by name.

    Examples
    --------
    >>> all_experiments()["kung"].title()
    'Table 1 and figures 3, 4 and 5 of the 2021 paper: heights of 287 !Kung women.'
    """
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name != "__main__":
            import_module(f"experiments.{module.name}")
    kinds = sorted(Experiment.__subclasses__(), key=lambda kind: kind.name)
    return {kind.name: kind for kind in kinds if kind.__module__.startswith("experiments.")}
