"""Releases: what was published, in a file, in words, in pictures, and as predictions.

All of it is made from the release alone, costs no privacy, and tells nothing that the file does
not tell everybody who holds it.
"""

from __future__ import annotations

import threading
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pandas as pd
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloakgp.ledger import schema
from cloakgp.ledger.accounts import opened
from cloakgp.ledger.exports import receipt_of
from cloakgp.orders.predictions import TablePredictions
from cloakgp.orders.progress import Reporter
from cloakgp.pages.prediction import prediction_html
from cloakgp.plots.figures import figure_bytes
from cloakgp.plots.plotting import display_of
from cloakgp.release import Release
from cloakgp.report.columns import has_classes
from cloakgp.report.describe import describe
from cloakgp.service.access import operation
from cloakgp.service.context import Work
from cloakgp.service.errors import InvalidError, NotFoundError
from cloakgp.service.messages import (
    FactView,
    Predictions,
    PredictRequest,
    ReleaseView,
    SectionView,
    moment,
)
from cloakgp.service.models import MadeRelease
from cloakgp.utils.names import Estimate

# Pictures are drawn one at a time: they share fonts.
_DRAWING = threading.Lock()


@operation
def list_releases(work: Work) -> list[ReleaseView]:
    """Return the releases that were made."""
    with work.database.reading() as session:
        query = select(MadeRelease).order_by(MadeRelease.id.desc())
        return [_view(release) for release in session.scalars(query)]


@operation
def show_release(work: Work, release: int) -> ReleaseView:
    """Return what is known of a release."""
    with work.database.reading() as session:
        return _view(_found(session, release))


@operation
def download_release(work: Work, release: int) -> bytes:
    """Return the file of a release."""
    with work.database.reading() as session:
        return _content(session, _found(session, release).digest)


@operation
def report_release(work: Work, release: int) -> list[SectionView]:
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
    """Return a signed receipt of what a release cost, as JSON."""
    with work.database.reading() as session:
        charge = _found(session, release).charge
    return receipt_of(work.ledger, charge)


@operation
def page_release(work: Work, release: int) -> str:
    """Return a page of HTML that predicts, for any browser."""
    try:
        return prediction_html(open_release(work, release))
    except ValueError as error:
        raise InvalidError(str(error)) from None


@operation
def predict_release(work: Work, release: int, asked: PredictRequest) -> Predictions:
    """Predict for some rows.

    Raises
    ------
    InvalidError
        If a row lacks an input, or there are too many.
    NotFoundError
    """
    if len(asked.rows) > work.service.settings.rows:
        raise InvalidError(f"at most {work.service.settings.rows} rows are predicted at once")
    made = open_release(work, release)
    try:
        found = made.predict_frame(
            pd.DataFrame.from_records(asked.rows),
            new_output=asked.new_output,
            estimate=asked.estimate,
        )
    except (ValueError, TypeError) as error:
        raise InvalidError(str(error)) from None
    return Predictions(
        columns=[str(name) for name in found],
        rows=[[_cell(value) for value in row] for row in found.itertuples(index=False)],
    )


@operation
def predict_table(
    work: Work, release: int, at: Path, *, new_output: bool = False, estimate: Estimate = "median"
) -> bytes:
    """Predict for a table in a file, and return it as CSV with predictions behind its columns.

    Raises
    ------
    InvalidError
        If it cannot be read, or lacks an input.
    NotFoundError
    """
    made = open_release(work, release)
    try:
        with TemporaryFile() as spool:
            predictions = TablePredictions(
                made,
                at,
                spool=spool,
                suffix=".csv",
                new_output=new_output,
                estimate=estimate,
                reporter=Reporter(show=lambda _: None),
                tell=lambda _: None,
            )
            written = BytesIO()
            predictions.write(written)
        return written.getvalue()
    except ValueError as error:
        raise InvalidError(str(error).replace(str(at), "the table")) from None


@operation
def plot_release(
    work: Work, release: int, *, vary: list[str], only: str | None, suffix: str
) -> bytes:
    """Draw predictions over one input or two.

    Parameters
    ----------
    work : Work
    release : int
    vary : list of str
        All of them if empty.
    only : str or None
        Of classes: the one to draw.
    suffix : {".png", ".svg"}

    Raises
    ------
    InvalidError
        If there is no such input or class, or no such picture.
    """
    made = open_release(work, release)
    try:
        with _DRAWING:
            chosen = {"only": only} if has_classes(made) else {}
            return figure_bytes(display_of(made, vary=vary, **chosen).draw(), suffix=suffix)
    except (ValueError, TypeError) as error:
        raise InvalidError(str(error)) from None


def open_release(work: Work, release: int) -> Release:
    """Return a release itself; for whoever makes more of it."""
    with work.database.reading() as session:
        digest = _found(session, release).digest

        def load() -> Release:
            made = opened(_content(session, digest))
            # Jobs make no other kind.
            assert isinstance(made, Release)
            return made

        found = work.service.releases.get(digest, load)
    assert isinstance(found, Release)
    return found


def _found(session: Session, release: int) -> MadeRelease:
    found = session.get(MadeRelease, release)
    if found is None:
        raise NotFoundError("release")
    return found


def _content(session: Session, digest: str) -> bytes:
    table = schema.releases
    query = select(table.c.content).where(table.c.digest == digest)
    content: bytes = session.execute(query).scalar_one()
    return content


def _cell(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return number if np.isfinite(number) else None


def _view(release: MadeRelease) -> ReleaseView:
    request = release.request
    return ReleaseView(
        id=release.id,
        request=request.id,
        table=request.table_id,
        table_name=request.table.name,
        output=request.table.output,
        person=request.person.name,
        purpose=request.purpose,
        epsilon=request.epsilon,
        delta=request.delta,
        digest=release.digest,
        size=release.size,
        charge=release.charge,
        created=moment(release.created),
    )
