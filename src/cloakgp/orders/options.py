"""Orders: a fit request with a table in a file, before anything is read.

Mistakes in orders import nothing that takes long: what needs numbers or tables is imported where
it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cloakgp.data.limits import UNLIMITED, ReadingLimits
from cloakgp.fitting.request import Classification, FitRequest, Regression, as_option
from cloakgp.orders.origin import Origin

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from cloakgp.columns import Schema
    from cloakgp.columns.numbers import Number
    from cloakgp.columns.reading import PublicColumns
    from cloakgp.data.formats import TableFormat
    from cloakgp.data.raw import RawRows, RawTable
    from cloakgp.utils.arrays import Array

SCHEMA_SUFFIX = ".schema.json"
# From which a schema is inferred, where there are more.
INFERENCE_ROWS = 200_000
# scikit-learn's own bounds of a hyperparameter that may be learned.
FREE = (1e-5, 1e5)


def format_of_table(
    table: Path, query: str, *, limits: ReadingLimits = UNLIMITED
) -> TableFormat | None:
    """Return the format of a table, if its name alone does not determine it.

    Parameters
    ----------
    table : Path
    query : str
        Of a database.
    limits : ReadingLimits, optional
        Of what is read.

    Raises
    ------
    ValueError
        If there is a query, and the table is no database.
    """
    from cloakgp.data.formats import format_of
    from cloakgp.data.schema import ADDRESSES, DATABASES

    queried = (*DATABASES, *ADDRESSES)
    if query and not table.name.lower().endswith(queried):
        raise ValueError(f"--sql goes with {', '.join(queried)}")
    if not query and limits is UNLIMITED:
        return None
    return format_of(table, limits=limits, query=query)


@dataclass(frozen=True, kw_only=True)
class SourceTable:
    """A table in a file, with its columns by name.

    Attributes
    ----------
    path : Path
    output : str
        Name of the private column.
    inputs : list of str
        Names of the public columns; all of the schema if empty.
    chosen : bool
        Whether somebody chose these inputs: one that would not be used is refused then.
    schema : Schema, Path or None
        What the public columns are, or the file that says it.
    person : str
        Name of the column that says whose rows they are; empty if rows are people.
    exposure : str
        Name of the public column that says in how much each row was counted; empty if in 1 each.
    missing_output : str
    query : str
        Of a database.
    limits : ReadingLimits
        Of what is read.
    """

    path: Path
    output: str
    inputs: Sequence[str] = ()
    chosen: bool = True
    schema: Schema | Path | None = None
    person: str = ""
    exposure: str = ""
    missing_output: str = "refuse"
    query: str = ""
    limits: ReadingLimits = UNLIMITED

    @property
    def table_format(self) -> TableFormat | None:
        """The format of the table, if its name alone does not determine it."""
        return format_of_table(self.path, self.query, limits=self.limits)

    @property
    def declared(self) -> Schema | None:
        """The schema that was given, or that lies in a file beside the table."""
        if self.schema is None or isinstance(self.schema, Path):
            return declared_schema(self.schema or beside(self.path))
        return self.schema

    def raw_rows(self, *, classes: Sequence[str] = (), others: Sequence[str] = ()) -> RawRows:
        """Return the schema of the public columns, and the reading of private cells.

        Parameters
        ----------
        classes : sequence of str
            If the private column holds classes.
        others : sequence of str
            Further private columns.
        """
        from cloakgp.columns.reading import declared_exposure
        from cloakgp.data.raw import RawRows, check_missing_output
        from cloakgp.data.schema import checked_names

        declared = self.declared
        exposure = None if declared is None else declared_exposure(declared, self.exposure)
        if declared is not None and self.inputs:
            declared = declared.select(list(self.inputs))
        elif declared is not None and self.person:
            # `cloakgp schema` was not told that it is no input.
            declared = declared.without(self.person)
        if declared is not None and not self.inputs and self.exposure:
            declared = declared.without(self.exposure)
        names = list(self.inputs) if declared is None else list(declared.sources)
        if not names:
            raise ValueError(
                "name the public columns (--inputs, with commas), or a schema, which cloakgp "
                f"schema {self.path} --output {self.output} writes"
            )
        for output in (self.output, *others):
            checked_names(names, output=output)
        if self.person in (*names, self.output, *others):
            raise ValueError(f"{self.person} (--person) says whose rows they are, and no more")
        public = self.read_public(
            names, declared=declared, exposure=exposure or self.exposure, others=others
        )
        if self.chosen:
            public.schema.check_used(self.inputs)
        public.validate(private_numbers=not classes)
        check_missing_output(self.missing_output, classes=classes)
        return RawRows.by_schema(
            public.schema,
            missing_output=self.missing_output,
            classes=tuple(classes),
            exposure=public.exposure,
        )

    def read_public(
        self,
        names: Sequence[str],
        *,
        declared: Schema | None = None,
        exposure: Number | str = "",
        others: Sequence[str] = (),
    ) -> PublicColumns:
        """Return public columns of the table, as they are declared or inferred.

        Parameters
        ----------
        names : sequence of str
            Of the inputs.
        declared, exposure
            As for `cloakgp.columns.reading.PublicColumns.of`.
        others : sequence of str
            Further private columns.

        Raises
        ------
        ValueError
            If exposures are to be read from an input, or from a private column.
        """
        if self.exposure in (*names, self.output, *others):
            raise ValueError(f"{self.exposure} (--exposure) is no input, and no output")
        from cloakgp.columns.reading import PublicColumns
        from cloakgp.data.tables import read_public

        further = [self.exposure] if self.exposure else []
        table = read_public(
            self.path,
            names=[*names, *further],
            most=INFERENCE_ROWS,
            table_format=self.table_format,
        )
        return PublicColumns.of(table, names, declared=declared, exposure=exposure)


def remarks_of_reading(
    source: SourceTable, *, others: Sequence[str] = (), private_numbers: bool = True
) -> list[str]:
    """Return what should be known of how a table is read, where no schema declares it.

    Parameters
    ----------
    source : SourceTable
    others : sequence of str
        Further private columns.
    private_numbers : bool
        Whether the private columns are of numbers. No private cell is looked at.

    Raises
    ------
    FileNotFoundError, ValueError
        If the table cannot be read.
    """
    if source.declared is not None or not source.inputs:
        return []
    from cloakgp.data.schema import checked_names

    private = (source.output, *others)
    for output in private:
        checked_names(source.inputs, output=output)
    public = source.read_public(source.inputs, exposure=source.exposure, others=others)
    return public.remarks(private=private if private_numbers else ())


def person_hint(source: SourceTable) -> str:
    """Return a hint that rows may belong together, in a sentence; empty if nothing says so.

    Of a public column its values are looked at, of any other its name alone.

    Parameters
    ----------
    source : SourceTable

    Raises
    ------
    FileNotFoundError, ValueError
        If the table cannot be read.
    """
    if source.person:
        return ""
    from cloakgp.columns.identifiers import may_name_persons
    from cloakgp.columns.remarks import repeats
    from cloakgp.data.tables import column_names_of, read_public

    table_format = source.table_format
    schema = source.declared
    public = [*source.inputs, *(() if schema is None else [each.name for each in schema.columns])]
    codes = frozenset(() if schema is None else schema.missing_values)
    for name in column_names_of(source.path, table_format=table_format):
        if name in (source.output, source.exposure) or not may_name_persons(name):
            continue
        seen = ""
        if name in public:
            table = read_public(
                source.path, names=[name], most=INFERENCE_ROWS, table_format=table_format
            )
            often = repeats(table[name], codes=codes)
            if not often:
                continue
            seen = f" ({often})"
        return (
            f"If {name} says whose rows these are{seen}, --person {name} protects all rows of a "
            "person together. Without it, each row is protected on its own."
        )
    return ""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A release that is asked for: a fit request for a table in a file. All of it is public.

    Attributes
    ----------
    source : SourceTable
    request : FitRequest
    queries : Path or None
        A table of query points.
    origin : Origin
    """

    source: SourceTable
    request: FitRequest
    queries: Path | None = None
    origin: Origin = field(default_factory=Origin)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the private column, if it holds classes."""
        task = self.request.task
        if not isinstance(task, Classification):
            return ()
        return tuple(cast("Sequence[str]", task.classes))

    @property
    def remark(self) -> str:
        """A remark on what is declared of the private column; empty if there is none."""
        task = self.request.task
        return task.remark if isinstance(task, Regression) else ""

    @property
    def gap(self) -> float:
        """The certified relative gap at which the design stops."""
        return self.request.gap

    def validate(self) -> None:
        """Refuse contradictory options, before any table is read.

        Raises
        ------
        ValueError
            In the words of options.
        """
        task = self.request.task
        if self.source.exposure and not (isinstance(task, Regression) and task.of_counts):
            raise ValueError("--exposure goes with --counts, and has no meaning here")
        self.request.validate(spelled=as_option)
        criterion = self.request.chosen_criterion(as_option)
        if not criterion.iterates:
            return
        if self.queries is not None:
            raise ValueError(
                f"{as_option('criterion', criterion.name)} asks at the rows: --queries goes with "
                "the others"
            )
        if self.source.person:
            raise ValueError(f"--person goes with other criteria than {criterion.name!r}")

    def query_table(self, schema: Schema) -> RawTable | None:
        """Return the raw columns of query points, or None if there are none."""
        if self.queries is None:
            return None
        from cloakgp.data.tables import read_public

        table = read_public(self.queries, names=schema.sources)
        # What is wrong with it is said before anything is asked, with rows as the file has them.
        schema.encode(table)
        return table


def kernel_of(
    request: FitRequest,
    X: Array,
    *,
    variance: float,
    default: Callable[[Array], Kernel],
    schema: Schema,
) -> Kernel | None:
    """Return the kernel of a lengthscale and a signal variance, or None; these are fixed.

    Parameters
    ----------
    request : FitRequest
    X : array of shape (N, D)
    variance : float
        Of the function, unless the request gives it.
    default : callable
        Returns the kernel for public inputs, a constant times a shape, without a lengthscale.
    schema : Schema
    """
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    given, scales = request.signal_variance, list(request.lengthscale)
    if not scales and given is None:
        return request.kernel
    if not scales:
        return ConstantKernel(given, "fixed") * default(X).k2
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
