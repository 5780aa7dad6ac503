"""Releases: their files, reports, pictures and predictions.

All of these are made from the release alone, cost no privacy, and tell nothing beyond the file.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.columns.problems import FROM_ZERO
from cloakgp.data.limits import ReadingLimits
from cloakgp.data.schema import table_suffix
from cloakgp.ledger.accounts import open_content
from cloakgp.ledger.exports import receipt_of
from cloakgp.orders.predictions import TablePredictions, check_exposure, exposures_of
from cloakgp.orders.progress import Reporter
from cloakgp.pages.prediction import prediction_html
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plotting import display_of
from cloakgp.privacy.cohorts import DISJOINT
from cloakgp.release import Release
from cloakgp.release.distribution_columns import NOTHING, DistributionColumns
from cloakgp.release.points import remarked_points
from cloakgp.report.controls import remark_outside, rows_outside
from cloakgp.report.describe import describe
from cloakgp.service.access import operation
from cloakgp.service.context import Work
from cloakgp.service.database import newest, row_of
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import (
    Before,
    Combination,
    FactView,
    Id,
    Predictions,
    PredictRequest,
    ReleaseView,
    SectionView,
    TableView,
)
from cloakgp.service.models import MadeRelease, Table, TablePeople
from cloakgp.service.operations.tables import view_of_table
from cloakgp.service.visits import content_of, differs, opened, people_of, tables_of
from cloakgp.utils.names import REMARKS_HEADER, Estimate

# Formats of tables to predict.
FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx")
# Numbers that are predicted within the service, as this takes little time; more of them have a
# process of their own, with limits.
AT_ONCE = 1000
# Of a header, in letters.
LONGEST_HEADER = 4000
# Pictures are drawn one at a time: they share fonts.
_DRAWING = threading.Lock()


@dataclass(frozen=True)
class PredictedTable:
    """A table with predictions behind its columns.

    Attributes
    ----------
    content : bytes
        As CSV.
    remarks : tuple of str
        What to know of its rows and columns.
    """

    content: bytes
    remarks: tuple[str, ...]

    @property
    def headers(self) -> dict[str, str]:
        r"""The remarks, as a header of the answer: a list of JSON, and no more than proxies let by.

        Examples
        --------
        >>> PredictedTable(b"", ("1 row lacks Größe", "x" * 5000)).headers[REMARKS_HEADER]
        '["1 row lacks Gr\\u00f6\\u00dfe", "further remarks, which are too long for a header: 1"]'
        """
        if not self.remarks:
            return {}
        told, kept = list(self.remarks), len(self.remarks)
        while len(text := json.dumps(told)) > LONGEST_HEADER:
            kept -= 1
            more = len(self.remarks) - kept
            further = f"further remarks, which are too long for a header: {more}"
            told = [*self.remarks[:kept], further]
        return {REMARKS_HEADER: text}


@operation
def list_releases(work: Work, *, before: Before = None, most: int = 100) -> list[ReleaseView]:
    """Return the published releases, the latest first.

    Parameters
    ----------
    work : Work
    before : int, optional
        The number that all of them come before.
    most : int
    """
    query = newest(MadeRelease, before=before, most=most)
    with work.database.reading() as session:
        return [_view(release) for release in session.scalars(query)]


@operation
def show_release(work: Work, release: Id) -> ReleaseView:
    """Return a release."""
    with work.database.reading() as session:
        return _view(_row(session, release))


@operation
def download_release(work: Work, release: int) -> bytes:
    """Return the file of a release."""
    with work.database.reading() as session:
        return content_of(session, _row(session, release).digest)


@operation
def combine_releases(work: Work, chosen: Combination) -> bytes:
    """Return the file of one release that combines several, with the guarantee of all together.

    Of tables of which custodians have said that nobody is in two of them it is that of somebody who
    is in one, and the release names this assumption; of others it adds up. The tables are those of
    the releases and of all that they began with: people of a table that two releases know are in
    both. Nothing is asked, and nothing is kept.

    Raises
    ------
    InvalidError
        If priors or columns differ, or people are said to be disjoint and no custodian has said so.
    NotFoundError
    EndedError, TooManyError
        As of `cloakgp.service.confined.Confinement`.
    """
    with work.database.reading() as session:
        rows = [_row(session, release) for release in dict.fromkeys(chosen.releases)]
        parts = [(tables_of(session, row), content_of(session, row.digest)) for row in rows]
    # Tables that two of them know are found among those of the first.
    parts.sort(key=lambda part: len(part[0]), reverse=True)
    tables, contents = zip(*parts, strict=True)
    said = people_of([table for each in tables for table in each])
    if len(rows) < 2:
        raise InvalidError("name two different releases at least")
    if chosen.people == DISJOINT and said != DISJOINT:
        raise InvalidError(
            "no custodian has said that nobody is in two of these tables: it is theirs to say"
        )
    try:
        return work.service.predicting.call(
            _combine,
            work.stopped,
            contents,
            people=chosen.people or said,
            same_rows=_are_same(tables),
        )
    except ValueError as error:
        raise InvalidError(str(error)) from None


@operation
def report_release(work: Work, release: Id) -> list[SectionView]:
    """Return a release in words."""
    return [
        SectionView(
            title=section.title,
            technical=section.technical,
            facts=[FactView(label=fact.label, text=fact.text) for fact in section.facts],
        )
        for section in describe(open_release(work, release))
    ]


@operation
def receipt_release(work: Work, release: int) -> str:
    """Return a signed receipt of the cost of a release, as JSON."""
    with work.database.reading() as session:
        charge = _row(session, release).charge
    return receipt_of(work.ledger, charge)


@operation
def page_release(work: Work, release: int) -> str:
    """Return a page of HTML that predicts in any browser."""
    try:
        return prediction_html(open_release(work, release))
    except ValueError as error:
        raise InvalidError(str(error)) from None


@operation
def predict_release(work: Work, release: Id, request: PredictRequest) -> Predictions:
    """Predict rows; costs no privacy.

    Raises
    ------
    InvalidError
        If a row lacks an input, there are too many, or they take too much time or memory.
    NotFoundError
    EndedError, TooManyError
        As of `cloakgp.service.confined.Confinement`.
    """
    if len(request.rows) > work.service.settings.rows:
        raise InvalidError(f"at most {work.service.settings.rows} rows are predicted at once")
    asked = {
        "new_output": request.new_output,
        "estimate": request.estimate,
        "interval": request.interval,
        "quantiles": request.quantiles,
        "above": request.above,
    }
    columns = 1 + (request.interval is not None) + len(request.quantiles) + len(request.above)
    try:
        if columns * len(request.rows) <= AT_ONCE:
            made = open_release(work, release)
            frame, remarks = _predict_rows(made, request.rows, asked, exposure=request.exposure)
        else:
            with work.database.reading() as session:
                content = content_of(session, _row(session, release).digest)
            frame, remarks = work.service.predicting.call(
                _predict_confined,
                work.stopped,
                content,
                request.rows,
                asked,
                exposure=request.exposure,
            )
    except ValueError as error:
        raise InvalidError(str(error)) from None
    return Predictions(
        columns=[str(name) for name in frame],
        rows=[[_cell(value) for value in row] for row in frame.itertuples(index=False)],
        remarks=remarks,
    )


@operation
def predict_table(
    work: Work,
    release: int,
    at: Path,
    *,
    new_output: bool = False,
    estimate: Estimate = "median",
    asked: DistributionColumns = NOTHING,
    exposure: str = "",
) -> PredictedTable:
    """Predict the rows of a table, and return it with predictions behind its columns.

    Parameters
    ----------
    work : Work
    release : int
    at : Path
    new_output, estimate
        As for `Release.predict_frame`.
    asked : DistributionColumns
        Of the distribution of new outputs.
    exposure : str
        The column with the exposures of new counts, which are 1 if it is empty.

    Raises
    ------
    InvalidError
        If the table cannot be read, lacks an input, has too many rows or bytes, or takes too much
        time or memory.
    NotFoundError
    EndedError, TooManyError
        As of `cloakgp.service.confined.Confinement`.
    """
    with work.database.reading() as session:
        content = content_of(session, _row(session, release).digest)
    try:
        return work.service.predicting.call(
            _predict,
            work.stopped,
            content,
            at,
            new_output=new_output,
            estimate=estimate,
            asked=asked,
            exposure=exposure,
            limits=work.service.settings.predict_limits,
        )
    except (ValueError, OSError) as error:
        raise InvalidError(_without_path(str(error), at)) from None


@operation
def plot_release(
    work: Work,
    release: int,
    *,
    vary: list[str],
    only: str | None,
    suffix: str,
    dark: bool = False,
) -> bytes:
    """Draw predictions over one input or two.

    Parameters
    ----------
    work : Work
    release : int
    vary : list of str
        The inputs; if empty, all of them.
    only : str or None
        The class to draw, of several.
    suffix : {".png", ".svg"}
    dark : bool
        Whether on a dark background.

    Raises
    ------
    InvalidError
        If there is no such input or class, or no such picture.
    """
    made = open_release(work, release)
    try:
        with _DRAWING:
            chosen: dict[str, Any] = {"only": only} if made.class_labels else {}
            return figure_bytes(
                display_of(made, vary=vary, **chosen).draw(dark=dark), suffix=suffix
            )
    except (ValueError, TypeError) as error:
        raise InvalidError(str(error)) from None


def tables_to_ask(work: Work, release: int) -> list[tuple[TableView, bool]]:
    """Return the tables that a later visit may ask, and of each whether it is the same rows again.

    Parameters
    ----------
    work : Work
    release : int
    """
    with work.database.reading() as session:
        first, *later = tables_of(session, _row(session, release))
        asked = {table.id for table in later}
        query = select(Table).where(Table.withdrawn.is_(None)).order_by(Table.name)
        alike = [
            (view_of_table(table), table.id == first.id)
            for table in session.scalars(query)
            if table.id not in asked and not differs(first, table)
        ]
    return sorted(alike, key=lambda one: not one[1])


def open_release(work: Work, release: int) -> Release:
    """Return a release itself."""
    with work.database.reading() as session:
        return opened(work.service, session, _row(session, release).digest)


def _row(session: Session, release: int) -> MadeRelease:
    return row_of(session, MadeRelease, release, called="release")


def _are_same(tables: Sequence[Sequence[Table]]) -> bool | None:
    """Return whether releases know the tables of the first, or others; None if both."""
    first, *others = [{table.id for table in each} for each in tables]
    if all(each <= first for each in others):
        return True
    together = first.union(*others)
    return False if len(together) == sum(map(len, tables)) else None


def _combine(contents: Sequence[bytes], *, people: TablePeople, same_rows: bool | None) -> bytes:
    with warnings.catch_warnings(action="ignore"):
        contained = [open_content(content) for content in contents]
        made = [each for each in contained if isinstance(each, Release)]
        # Jobs make no other kind.
        assert len(made) == len(contained)
        first, *others = made
        if people == DISJOINT or not any(each.cohorts for each in made):
            return first.combine(*others, people=people).to_bytes()
        if same_rows is None:
            raise ValueError(
                "some of the tables are in two of the releases, and others are not: combine "
                "releases of the same tables, or of different ones"
            )
        # People are in few of the tables: equal inputs do not tell who is in both.
        return first.combine(*others, people=people, same_rows=same_rows).to_bytes()


def _predict(
    content: bytes,
    at: Path,
    *,
    new_output: bool,
    estimate: Estimate,
    asked: DistributionColumns,
    exposure: str,
    limits: ReadingLimits,
) -> PredictedTable:
    made = open_content(content)
    assert isinstance(made, Release)
    remarks: list[str] = []
    with TemporaryFile() as spool, warnings.catch_warnings():
        # Warnings quote cells of the table.
        warnings.simplefilter("ignore")
        predictions = TablePredictions(
            made,
            at,
            spool=spool,
            suffix=".csv",
            new_output=new_output,
            estimate=estimate,
            asked=asked,
            exposure=exposure,
            reporter=Reporter(show=lambda _: None),
            notify=remarks.append,
            limits=limits,
        )
        written = BytesIO()
        predictions.write(written)
    return PredictedTable(
        content=written.getvalue(), remarks=tuple(_without_path(each, at) for each in remarks)
    )


def _without_path(text: str, at: Path) -> str:
    """Return a text about a table that was sent, whose place is the service's own."""
    return text.replace(str(at), "the table")


def _predict_confined(
    content: bytes, given: Sequence[Mapping[str, Any]], asked: dict[str, Any], *, exposure: str
) -> tuple[pd.DataFrame, list[str]]:
    made = open_content(content)
    assert isinstance(made, Release)
    # Warnings quote cells of the rows.
    with warnings.catch_warnings(action="ignore"):
        return _predict_rows(made, given, asked, exposure=exposure)


def _predict_rows(
    made: Release, given: Sequence[Mapping[str, Any]], asked: dict[str, Any], *, exposure: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return the predictions of rows, and remarks on these."""
    rows = pd.DataFrame.from_records(list(given))
    try:
        if exposure:
            questions = {name: asked[name] for name in ("interval", "quantiles", "above")}
            check_exposure(made, DistributionColumns.asked(**questions))
            asked = asked | {"exposure": exposures_of(made, rows, exposure, row=FROM_ZERO)}
        frame = made.predict_frame(rows, **asked)
        points, remarks = remarked_points(made, rows)
    except TypeError as error:
        raise ValueError(str(error)) from None
    for name, (count, lo, hi) in rows_outside(made, points.X).items():
        remarks.append(remark_outside(name, count, lo=lo, hi=hi))
    return frame, remarks


def suffix_of_sent(name: str) -> str:
    """Return the suffix of a table to predict.

    Raises
    ------
    InvalidError
        If it is none of `FORMATS`.

    Examples
    --------
    >>> suffix_of_sent("people.CSV")
    '.csv'
    """
    with suppress(ValueError):
        if (suffix := table_suffix(Path(name).name)) in FORMATS:
            return suffix
    raise InvalidError(f"send {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")


def _cell(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return number if np.isfinite(number) else None


def _view(release: MadeRelease) -> ReleaseView:
    request = release.request
    return ReleaseView.of(
        release,
        request=request.id,
        table=request.table_id,
        table_name=request.table.name,
        output=request.table.output,
        person=request.person.name,
        purpose=request.purpose,
        epsilon=request.epsilon,
        delta=request.delta,
        after=request.choices.get("after"),
    )
