"""Later visits of a table in a file: the rows of a release again, or new ones beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloakgp.orders.options import SourceTable
from cloakgp.orders.origin import Origin, with_left_out
from cloakgp.orders.public_inputs import Read, inputs_named
from cloakgp.utils.names import AUTO, DEFAULT_GAP, BandChoice, NoiseChoice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloakgp.columns.numbers import Number
    from cloakgp.columns.reading import PublicColumns
    from cloakgp.data.raw import RawRows
    from cloakgp.fitting.visit_plan import VisitPlan
    from cloakgp.orders.progress import Reporter
    from cloakgp.privacy.cohorts import People
    from cloakgp.release import Release
    from cloakgp.utils.arrays import Array


@dataclass(frozen=True, kw_only=True)
class VisitOrder:
    """A later visit that is asked for. All of it is public.

    Attributes
    ----------
    known : Release
        What was published before. It says what the columns are, and stays as it is.
    source : SourceTable
        With the name of the release's private column. Its schema is the release's.
    epsilon, delta : float
        Of this visit, on top of what was spent.
    noise : {"auto", "gaussian", "laplace"}
    band : "auto", float or None
        As for `cloakgp.extend`.
    new_rows : bool
        Whether the rows are new, or those that the release was made from.
    queries : Path or None
        A table of query points.
    by_rows : bool
        That each new row is protected on its own, though the release protects persons.
    people : {"overlapping", "disjoint"}
        Of new rows: whether anybody may be in the tables before.
    person_ids : str
        Name of the column of ids that are compared; empty for none.
    earlier : sequence of Path
        With ids: the tables that were asked before, in their order.
    origin : Origin
    """

    known: Release
    source: SourceTable
    epsilon: float
    delta: float = 0.0
    noise: NoiseChoice = AUTO
    band: BandChoice = "auto"
    new_rows: bool = True
    queries: Path | None = None
    by_rows: bool = False
    people: People = "overlapping"
    person_ids: str = ""
    earlier: Sequence[Path] = ()
    origin: Origin = field(default_factory=Origin)

    @property
    def gap(self) -> float:
        """The certified relative gap at which the design stops."""
        return DEFAULT_GAP

    def validate(self) -> None:
        """Refuse contradictory options, before any table is read.

        Raises
        ------
        ValueError
            In the words of options.
        """
        from cloakgp.data.raw import check_missing_output
        from cloakgp.fitting.refusals import WrongKindError
        from cloakgp.fitting.visits import check_visit, protects_persons
        from cloakgp.privacy.noise_choice import check_noise

        try:
            check_visit(self.known, new_rows=self.new_rows)
        except WrongKindError as error:
            raise ValueError(str(error)) from None
        check_noise(self.noise, epsilon=self.epsilon, delta=self.delta)
        check_missing_output(self.source.missing_output, classes=class_names_of(self.known))
        if bool(self.person_ids) != bool(self.earlier):
            raise ValueError("--id and --earlier go together: the column, and each table before")
        if self.person_ids and self.source.person not in ("", self.person_ids):
            raise ValueError(
                "--id and --person name one column: whose rows are protected together, and who is "
                "in which tables"
            )
        if not self.new_rows:
            if self.by_rows:
                raise ValueError(
                    "rows that are asked again keep whose they are: leave out --by-rows"
                )
            if self.people != "overlapping" or self.person_ids:
                raise ValueError(
                    "--people, --id and --earlier are about new rows: take cloakgp extend"
                )
            if self.source.exposure:
                raise ValueError(
                    "rows that are asked again keep their exposures: leave out --exposure"
                )
        elif protects_persons(self.known) and not (self.source.person or self.by_rows):
            raise ValueError(
                "the release protects all rows of a person together: name the column that says "
                "whose the new rows are, --person, or say --by-rows to protect each row on its own"
            )
        else:
            self._check_exposure()

    def _check_exposure(self) -> None:
        """Refuse new counts that would be taken to be of exposure 1, where others were not."""
        from cloakgp.models.likelihoods import CountLikelihood
        from cloakgp.release import DenseStrategy

        counts = isinstance(self.known.likelihood, CountLikelihood)
        if self.source.exposure and not counts:
            raise ValueError("--exposure is of counts, and the release is about other outputs")
        first = self.known.measurements[0].strategy
        exposed = isinstance(first, DenseStrategy) and first.row_exposure is not None
        if counts and exposed and not self.source.exposure:
            raise ValueError(
                "the release is about counts with exposures: name the column that has those of the "
                "new rows, --exposure"
            )


def make_visit(order: VisitOrder, *, reporter: Reporter) -> Release:
    """Ask the private column once more, given a release.

    Parameters
    ----------
    order : VisitOrder
    reporter : Reporter
        Receives the progress.

    Raises
    ------
    TypeError, ValueError
        For anything that does not make sense; no message quotes a private value.
    """
    from cloakgp.fitting.refusals import WrongKindError

    order.validate()
    try:
        made = (_ask_new_rows if order.new_rows else _ask_again)(order, reporter)
    except WrongKindError as error:
        raise ValueError(str(error)) from None
    return order.origin.kept_in(made)


def plan_visit(order: VisitOrder, *, reporter: Reporter) -> VisitPlan:
    """Plan what `make_visit` would do; the private column is not read.

    Where rows without a private value are left out, which these are is public: then the plan reads
    which cells are empty.

    Parameters
    ----------
    order : VisitOrder
    reporter : Reporter
        Receives the progress.

    Raises
    ------
    TypeError, ValueError
        For what makes no sense.
    """
    from cloakgp.fitting.visit_plan import plan_visit as plan_of
    from cloakgp.fitting.visits import protects_persons
    from cloakgp.models.summary import summarise
    from cloakgp.orders.estimators import public_columns, rows_of
    from cloakgp.release import DenseStrategy

    order.validate()
    known, raw = order.known, _raw_rows(order)
    settings = _settings(order, reporter)
    held = all(isinstance(each.strategy, DenseStrategy) for each in known.measurements)
    X = None
    if held and order.new_rows:
        columns, groups = public_columns(order.source, raw)
        encoded = raw.schema.encode(columns)
        X, rows = encoded.X, len(encoded.X)
        if groups is not None:
            settings["groups"] = list(compress(groups, encoded.kept))
    elif order.new_rows:
        rows = summarise(rows_of(order.source, raw).report_to(reporter.rows), size=1).count
    else:
        rows = known.measurements[0].strategy.n_rows
    return plan_of(
        known,
        X,
        new_rows=order.new_rows,
        rows=rows,
        grouped=bool(order.source.person) if order.new_rows else protects_persons(known),
        people=order.people,
        X_query=_query_points(order),
        **settings,
    )


def inputs_of_visit(order: VisitOrder) -> dict[str, Read]:
    """Return functions that read the public columns of a visit's table, by name."""
    return inputs_named(order.source, _raw_rows(order).schema.sources)


def _ask_again(order: VisitOrder, reporter: Reporter) -> Release:
    import numpy as np

    from cloakgp.fitting.visits import refine
    from cloakgp.orders.estimators import rows_of
    from cloakgp.release import DenseStrategy

    known, raw = order.known, _raw_rows(order)
    queries, settings = _query_points(order), _settings(order, reporter)
    strategy = known.measurements[0].strategy
    if not isinstance(strategy, DenseStrategy):
        rows = rows_of(order.source, raw).report_to(reporter.rows)
        return refine(known, rows, queries, **settings)
    X, private, of_rows, _ = _read(order, raw, person=order.source.person)
    if not np.array_equal(X, strategy.X):
        raise ValueError(
            f"{order.source.path} has other rows than the release was made from, or in another "
            "order: give the same table, or take cloakgp extend for new people"
        )
    settings |= of_rows
    return refine(known, private, queries, **settings)


def _ask_new_rows(order: VisitOrder, reporter: Reporter) -> Release:
    from cloakgp.data.tables import read_person_ids
    from cloakgp.fitting.visits import extend
    from cloakgp.orders.estimators import rows_of
    from cloakgp.release import DenseStrategy

    known, source = order.known, order.source
    raw = _raw_rows(order)
    about: dict[str, Any] = {"by_rows": order.by_rows, "people": order.people, "ids": None}
    ids = [read_person_ids(path, name=order.person_ids) for path in order.earlier]
    queries, settings = _query_points(order), _settings(order, reporter)
    if not all(isinstance(each.strategy, DenseStrategy) for each in known.measurements):
        rows = rows_of(source, raw).report_to(reporter.rows)
        if order.person_ids:
            own = read_person_ids(
                source.path, name=order.person_ids, table_format=source.table_format
            )
            about["ids"] = [*ids, own]
        made = extend(known, rows, None, queries, **about, **settings)
        return with_left_out(
            made, without_output=rows.without_output, without_inputs=rows.without_inputs
        )
    X, private, of_rows, gone = _read(order, raw, person=source.person or order.person_ids)
    settings |= of_rows
    if order.person_ids:
        # Of the rows that are asked: another read of a database may be of others.
        about["ids"] = [*ids, settings["groups"]]
    if not source.person:
        settings["groups"] = None
    return with_left_out(extend(known, X, private, queries, **about, **settings), **gone)


def _raw_rows(order: VisitOrder) -> RawRows:
    """Return the reading of the table by the release's schema."""
    from cloakgp.data.raw import RawRows

    known, source, classes = order.known, order.source, class_names_of(order.known)
    public = _public_columns(order)
    if public is not None:
        public.validate(private_numbers=not classes)
        if known.schema is None and not public.schema.plain:
            raise ValueError("the release was made of numbers alone, and the table holds others")
    schema = known.schema if public is None else public.schema
    exposure = _known_exposure(order) if public is None else public.exposure
    assert schema is not None
    return RawRows.by_schema(
        schema, missing_output=source.missing_output, classes=classes, exposure=exposure
    )


def _public_columns(order: VisitOrder) -> PublicColumns | None:
    """Return how public columns are read that the release says nothing of; None if it says all."""
    from cloakgp.report.columns import public_columns

    known, source, exposure = order.known, order.source, _known_exposure(order)
    if known.schema is not None and (exposure is not None or not source.exposure):
        return None
    return source.read_public(
        public_columns(known), declared=known.schema, exposure=exposure or source.exposure
    )


def _known_exposure(order: VisitOrder) -> Number | None:
    """Return what the column of exposures is, if there is one and the release says it."""
    name, known = order.source.exposure, order.known.exposure
    return None if known is None or not name else replace(known, name=name)


def remarks_of_visit(order: VisitOrder) -> list[str]:
    """Return what should be known of how a visit's table is read, where the release does not say.

    Parameters
    ----------
    order : VisitOrder

    Raises
    ------
    FileNotFoundError, ValueError
        If the table cannot be read.
    """
    public = _public_columns(order)
    if public is None:
        return []
    numbers = not class_names_of(order.known)
    return public.remarks(private=[order.source.output] if numbers else ())


def class_names_of(known: Release) -> tuple[str, ...]:
    """Return the declared classes, as a table writes them; none of a release of numbers.

    Raises
    ------
    ValueError
        If they are no texts.
    """
    labels = known.measurements[0].question.labels or ()
    names = tuple(label for label in labels if isinstance(label, str))
    if len(names) != len(labels):
        raise ValueError(
            "the classes of the release are not texts, as those of a table are: ask it again in "
            "Python, with cloakgp.refine or cloakgp.extend"
        )
    return names


def _read(
    order: VisitOrder, raw: RawRows, *, person: str
) -> tuple[Array, NDArray[Any], dict[str, Any], dict[str, int]]:
    """Return inputs and outputs of the kept rows, their settings, and how many are left out."""
    from cloakgp.orders.estimators import people_of
    from cloakgp.privacy.person_ids import WHOLE, PersonIds

    people = people_of(replace(order.source, person=person), raw)
    encoded = raw.schema.encode(people.columns)
    of_rows: dict[str, Any] = {}
    if people.groups is not None:
        of_rows["groups"] = PersonIds(
            compress(people.groups, encoded.kept), whole=people.groups.kind == WHOLE
        )
    if people.exposure is not None:
        of_rows["exposure"] = people.exposure[encoded.kept]
    gone = {
        "without_output": people.without_output,
        "without_inputs": len(encoded.kept) - len(encoded.X),
    }
    return encoded.X, people.private[encoded.kept], of_rows, gone


def _query_points(order: VisitOrder) -> Array | None:
    if order.queries is None:
        return None
    from cloakgp.data.tables import read_public
    from cloakgp.release.points import complete_points

    return complete_points(order.known, read_public(order.queries), name="--queries")


def _settings(order: VisitOrder, reporter: Reporter) -> dict[str, Any]:
    return {
        "epsilon": order.epsilon,
        "delta": order.delta,
        "noise": order.noise,
        "band": order.band,
        "gap": order.gap,
        "progress": reporter.gap,
    }
