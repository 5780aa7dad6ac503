"""Options of a release: what is asked of which table, before anything is read.

Mistakes in options import nothing that takes long: what needs numbers or tables is imported where
it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cloakgp.criteria import Criterion, Use, criterion_named
from cloakgp.orders import texts
from cloakgp.orders.origin import Origin
from cloakgp.utils.names import DEFAULT_GAP, NoiseChoice, TransformName

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.columns import Schema
    from cloakgp.data.formats import TableFormat
    from cloakgp.data.raw import RawRows, RawTable
    from cloakgp.utils.arrays import Array

LEARNING: dict[str, Literal["map", "average"] | None] = {
    "map": "map",
    "average": "average",
    "none": None,
}
SCHEMA_SUFFIX = ".schema.json"
# From which a schema is inferred, where there are more.
INFERENCE_ROWS = 200_000
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)


def check_missing_output(given: str, *, classes: Sequence[str]) -> None:
    """Raise ValueError unless it says what a missing private cell means."""
    from cloakgp.data.raw import DROP, REFUSE
    from cloakgp.privacy.entries import read_entry

    if given in (REFUSE, DROP):
        return
    if classes and given not in classes:
        raise ValueError(f"--missing-output {given} is none of the classes")
    if not classes and not isfinite(read_entry(given)):
        raise ValueError(
            "--missing-output is refuse, drop, or what missing cells count as: a number"
        )


def format_of_table(table: Path, query: str) -> TableFormat | None:
    """Return how a table is read, if its name alone does not say it.

    Raises
    ------
    ValueError
        If there is a query, and the table is no database.
    """
    from cloakgp.data.formats import AddressFormat, DatabaseFormat

    if not query:
        return None
    name, kinds = table.name.lower(), (DatabaseFormat, AddressFormat)
    for kind in kinds:
        if name.endswith(kind.suffixes):
            return kind(query)
    suffixes = [suffix for kind in kinds for suffix in kind.suffixes]
    raise ValueError(f"--sql goes with {', '.join(suffixes)}")


@dataclass(frozen=True)
class NumberOptions:
    """Options that go with --bounds only."""

    bounds: tuple[float, float]
    noise_variance: float | None
    mean: float | None
    stages: str
    interval: str
    transform: TransformName | None = None


@dataclass(frozen=True)
class ClassOptions:
    """Options that go with --classes only; empty text and None for what was not given."""

    classes: str
    class_rates: str
    link: str
    step_criterion: str
    steps: int | None


@dataclass(frozen=True)
class ReleaseOptions:
    """Options that values and classes share; all of them are public.

    Attributes
    ----------
    table : Path
    inputs : list of str
        Names of the public columns.
    output : str
        Name of the private column.
    epsilon, delta : float
    noise : {"auto", "gaussian", "laplace"}
    queries : Path or None
    inducing : int or None
    criterion, learn, lengthscale : str
    signal_variance : float or None
    gap : float
    memory : float or None
        In gigabytes.
    schema : Schema, Path or None
        What the public columns are, or the file that says it.
    person : str
        Name of the column that says whose rows they are; empty if rows are people.
    missing_output : str
    query : str
        Of a database.
    origin : Origin
    """

    table: Path
    inputs: list[str]
    output: str
    epsilon: float
    delta: float
    noise: NoiseChoice
    queries: Path | None = None
    inducing: int | None = None
    criterion: str = "bayes"
    learn: str = "map"
    lengthscale: str = ""
    signal_variance: float | None = None
    gap: float = DEFAULT_GAP
    memory: float | None = None
    schema: Schema | Path | None = None
    person: str = ""
    missing_output: str = "refuse"
    query: str = ""
    origin: Origin = field(default_factory=Origin)

    def check(self) -> None:
        """Raise ValueError for what makes no sense, before any table is read."""
        texts.one_of(tuple(LEARNING), self.learn, option="--learn")
        if not self.gap > 0:
            raise ValueError(f"--gap must be positive, got {self.gap}")
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"--memory must be positive, got {self.memory}")

    @property
    def learning(self) -> Literal["map", "average"] | None:
        """What estimators call `learn`."""
        return LEARNING[self.learn]

    def criterion_for(self, use: Use) -> Criterion:
        """Return what the questions are to be chosen for, or raise ValueError."""
        return criterion_named(self.criterion, use=use, parameter="--criterion")

    @property
    def table_format(self) -> TableFormat | None:
        """How the table is read, if its name alone does not say it."""
        return format_of_table(self.table, self.query)

    def raw_rows(self, *, classes: Sequence[str] = (), others: Sequence[str] = ()) -> RawRows:
        """Return what the public columns are, declared or inferred, and how private cells are read.

        Parameters
        ----------
        classes : sequence of str
            If the private column holds classes.
        others : sequence of str
            Further private columns.
        """
        from cloakgp.columns import Schema, infer_schema
        from cloakgp.data.raw import RawRows
        from cloakgp.data.schema import checked_names
        from cloakgp.data.tables import read_public

        declared = (
            self.schema
            if isinstance(self.schema, Schema)
            else declared_schema(self.schema or beside(self.table))
        )
        if declared is not None and self.inputs:
            declared = declared.select(self.inputs)
        names = self.inputs if declared is None else list(declared.sources)
        if not names:
            raise ValueError(
                "name the public columns: --inputs age,weight, or a schema, which cloakgp schema "
                f"{self.table} --output {self.output} writes"
            )
        for output in (self.output, *others):
            checked_names(names, output=output)
        if self.person in (*names, self.output, *others):
            raise ValueError(f"--person {self.person} says whose rows they are, and no more")
        public = read_public(
            self.table, names=names, most=INFERENCE_ROWS, table_format=self.table_format
        )
        schema = infer_schema(public, names) if declared is None else declared.completed(public)
        schema.validate()
        check_missing_output(self.missing_output, classes=classes)
        decimal, thousands = schema.decimal
        return RawRows(
            schema=schema,
            missing_output=self.missing_output,
            classes=tuple(classes),
            decimal=decimal,
            thousands=thousands,
        )

    def query_table(self, schema: Schema) -> RawTable | None:
        """Return the raw columns of query points, or None if there are none."""
        if self.queries is None:
            return None
        from cloakgp.data.tables import read_public

        table = read_public(self.queries, names=schema.sources)
        # What is wrong with it is said before anything is asked, with rows as the file has them.
        schema.encode(table)
        return table

    def kernel(
        self,
        X: Array,
        *,
        variance: float,
        default: Callable[[Array], Kernel],
        schema: Schema,
    ) -> Kernel | None:
        """Return the kernel that the options describe, or None if none do; what is given is fixed.

        Parameters
        ----------
        X : array of shape (N, D)
        variance : float
            Of the function, unless an option gives it.
        default : callable
            Returns the kernel for public inputs, a constant times a shape, if no option is given.
        schema : Schema
        """
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        given = self.signal_variance
        if not self.lengthscale and given is None:
            return None
        if given is not None and not 0 < given < float("inf"):
            raise ValueError(f"--signal-variance must be positive and finite, got {given}")
        if not self.lengthscale:
            return ConstantKernel(given, "fixed") * default(X).k2
        scales = texts.positive_numbers(self.lengthscale, option="--lengthscale")
        blocks = schema.block_names
        if len(scales) not in (1, len(blocks)):
            raise ValueError(
                f"--lengthscale has {len(scales)} numbers and --inputs {len(blocks)} parts "
                f"({', '.join(blocks)}): give one lengthscale for all, or one for each"
            )
        if len(scales) > 1:
            scales = [scales[block] for block in schema.groups]
        factor = ConstantKernel(variance, FREE) if given is None else ConstantKernel(given, "fixed")
        return factor * RBF(scales if len(scales) > 1 else scales[0], "fixed")


def beside(table: Path) -> Path | None:
    """Return the schema that lies beside a table, people.schema.json beside people.csv, if any."""
    from cloakgp.data.schema import table_suffix

    path = table.with_name(table.name[: -len(table_suffix(table))] + SCHEMA_SUFFIX)
    return path if path.is_file() else None


def declared_schema(path: Path | None) -> Schema | None:
    """Return the schema in a file, or None if there is no file.

    Raises
    ------
    ValueError
        If it is none.
    """
    if path is None:
        return None
    from cloakgp.columns import schema_from_text
    from cloakgp.columns.table_schema import LARGEST_FILE

    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path} is too large for a schema")
    try:
        return schema_from_text(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        pass
    raise ValueError(f"{path} is no schema: it is not UTF-8")
