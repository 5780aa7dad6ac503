"""Pages of releases: reports, pictures, and predictions of one row or of a table."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copyfileobj
from typing import Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from starlette.datastructures import QueryParams, UploadFile

from cloakgp.models.likelihoods import QuantileLikelihood
from cloakgp.orders.predictions import spreads
from cloakgp.pages.rendering import POLICY, SCRIPTS
from cloakgp.release import Release
from cloakgp.release.distribution_columns import NOTHING, DistributionColumns, quantile_column
from cloakgp.release.predictions import sensible_digits
from cloakgp.report.columns import input_names
from cloakgp.report.controls import Control, controls_of, raw_rows
from cloakgp.report.describe import headline
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Before, Id
from cloakgp.service.operations import releases
from cloakgp.service.pages.base import (
    SHOWN,
    Page,
    PageRoute,
    RowsForm,
    go_to,
    varied,
)
from cloakgp.service.pages.fields import distribution_of, number_of, text_of
from cloakgp.utils.formatting import amount

router = APIRouter(route_class=PageRoute)
# Its forms are larger.
uploads = APIRouter(route_class=PageRoute)
PNG = "image/png"
DAY = 86_400.0
LAST_DAY = datetime(9999, 12, 31, 23, 59, tzinfo=UTC).timestamp() / DAY
# Of intervals for a new person, in per cent, and the one that is shown first.
COVERAGES = ("50", "80", "90", "95", "99")
COVERAGE = "95"
# A page that predicts has inline scripts: the sandbox takes its identity, and all connections.
ALONE = f"{POLICY}{SCRIPTS}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"


@dataclass(frozen=True)
class Chosen:
    """One input of a prediction, and its value.

    Attributes
    ----------
    control : Control
    value : float
        A number, days since 1970, or the number of a level.
    text : str
        The value in a field.
    low, high : str
        Ends of the field.
    """

    control: Control
    value: float
    text: str
    low: str = ""
    high: str = ""


@dataclass(frozen=True)
class Answer:
    """The prediction of one row.

    Attributes
    ----------
    middle : str
        The most probable class, or the middle of the prediction.
    average : tuple of str
        Ends of the interval of 95 % for such people on average.
    person : tuple of str
        Ends of the interval for a new person.
    coverage : str
        Of that interval, in per cent.
    above : tuple of (str, str)
        Thresholds, and how probable it is that a new person is above, in per cent.
    quantiles : tuple of (str, str, (str, str))
        Predicted quantiles by their per cent, and ends of the interval of 95 % for each curve.
    shares : tuple of (str, float)
        Probabilities of classes.
    outside : tuple of (str, str, str)
        Numbers beyond the range that was asked, by their columns, with this range.
    """

    middle: str
    average: tuple[str, str] = ("", "")
    person: tuple[str, str] = ("", "")
    coverage: str = ""
    above: tuple[tuple[str, str], ...] = ()
    quantiles: tuple[tuple[str, str, tuple[str, str]], ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    outside: tuple[tuple[str, str, str], ...] = ()


@router.get("/releases", name="page: releases")
def show_releases(page: Page, before: Before = None) -> Response:
    """List releases, the latest first."""
    listed = releases.list_releases(page.work("list_releases"), before=before, most=SHOWN + 1)
    shown, last = page.page_of(listed)
    return page.show("releases.html", releases=shown, older=last and last.id)


@router.get("/releases/{release}", name="page: release")
def show_release(page: Page, release: Id) -> Response:
    """Show a release in words and pictures, and predict from it."""
    work = page.work("show_release")
    about = releases.show_release(work, release)
    made = releases.open_release(work, release)
    predicts = page.actor.may("predict_release")
    fields = page.request.query_params
    chosen = chosen_of(made, fields) if predicts else ()
    return page.show(
        "release.html",
        about=about,
        headline=headline(made),
        sections=releases.report_release(work, release),
        inputs=input_names(made),
        varied=varied(page),
        predicts=predicts,
        chosen=chosen,
        answer=_answer(made, chosen, fields) if predicts else None,
        coverages=COVERAGES,
        coverage=text_of(fields, "coverage") or COVERAGE,
        above=text_of(fields, "above"),
        counts=made.likelihood.windowed,
        exposure=text_of(fields, "exposure"),
        visited=releases.tables_to_ask(work, release) if page.actor.may("make_request") else (),
        problem="",
    )


@router.get("/releases/{release}/visit", name="page: later visit")
def show_visit(page: Page, release: Id, table: Id) -> Response:
    """Show the cost of a later visit, before its request."""
    page.work("make_request")
    given = [
        (name, text)
        for name in ("epsilon", "delta", "noise", "band", "exposure")
        if (text := text_of(page.request.query_params, name))
    ]
    return go_to(f"/tables/{table}/request?{urlencode([('after', release), *given])}")


@router.get("/releases/{release}/answer", name="page: prediction alone")
def show_answer(page: Page, release: Id) -> Response:
    """Predict one row, for the script of the page around it."""
    work = page.work("predict_release")
    about = releases.show_release(work, release)
    made = releases.open_release(work, release)
    fields = page.request.query_params
    try:
        answer, problem = _answer(made, chosen_of(made, fields), fields), ""
    except InvalidError as error:
        answer, problem = None, str(error)
    return page.show("release_answer.html", about=about, answer=answer, problem=problem)


@router.get("/releases/{release}/picture", name="page: release, picture")
def show_picture(page: Page, release: Id) -> Response:
    """Draw predictions over one input or two."""
    work = page.work("plot_release")
    over = varied(page) or list(input_names(releases.open_release(work, release))[:1])
    content = releases.plot_release(
        work, release, vary=over, only=None, suffix=".png", dark=page.dark
    )
    return Response(content, media_type=PNG)


@router.get("/releases/{release}/page", name="page: release, alone")
def show_page_alone(page: Page, release: Id) -> Response:
    """Show the page that predicts by itself."""
    content = releases.page_release(page.work("page_release"), release)
    headers = {"Content-Security-Policy": ALONE}
    return Response(content, media_type="text/html", headers=headers)


@uploads.post("/releases/{release}/table", name="page: predict table")
def predict_table(form: RowsForm, release: Id) -> Response:
    """Predict the rows of a table; the answer is CSV, and the script of the page shows remarks."""
    work = form.work("predict_table")
    file = form.fields.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidError("choose a file with the rows to predict")
    suffix = releases.suffix_of_sent(file.filename)
    with tempfile.TemporaryDirectory(dir=work.service.settings.uploads) as folder:
        path = Path(folder) / f"body{suffix}"
        with path.open("wb") as target:
            copyfileobj(file.file, target)
        new = form.text("limits") == "person"
        asked = distribution_of(form.fields)
        made = releases.predict_table(
            work, release, path, new_output=new, asked=asked, exposure=form.text("exposure")
        )
    named = {"Content-Disposition": f'attachment; filename="predicted-{release}.csv"'}
    return Response(made.content, media_type="text/csv", headers=named | made.headers)


def chosen_of(release: Release, fields: QueryParams) -> tuple[Chosen, ...]:
    """Return the chosen value of each input, or a typical one.

    Parameters
    ----------
    release : Release
    fields : QueryParams
        ``x0``, ``x1``, … in the order of its controls.

    Raises
    ------
    InvalidError
        If a field has no valid value.
    """
    return tuple(
        _chosen(control, text_of(fields, f"x{number}"))
        for number, control in enumerate(controls_of(release))
    )


def answer_of(
    release: Release,
    chosen: tuple[Chosen, ...],
    asked: DistributionColumns = NOTHING,
    *,
    exposure: float | None = None,
) -> Answer:
    """Return the prediction of one row.

    Parameters
    ----------
    release : Release
    chosen : tuple of Chosen
    asked : DistributionColumns
        The first interval is that of a new person, of `COVERAGE` % if there is none. Of numbers
        only.
    exposure : float, optional
        Of a new count.

    Raises
    ------
    InvalidError
        If the exposure is none, or inputs are beyond what can be computed with.
    """
    try:
        return _answered(release, chosen, asked, exposure=exposure)
    except ValueError as error:
        raise InvalidError(str(error)) from None


def _answered(
    release: Release,
    chosen: tuple[Chosen, ...],
    asked: DistributionColumns,
    *,
    exposure: float | None,
) -> Answer:
    controls = tuple(each.control for each in chosen)
    values = {each.control.name: np.array([each.value]) for each in chosen}
    row = raw_rows(release, controls, values, count=1)
    if release.class_labels:
        (classes,) = release.predict_frame(row).to_dict("records")
        shares = [(str(name)[2:], float(classes[name])) for name in classes if name != "predicted"]
        return Answer(
            middle=str(classes["predicted"]), shares=tuple(shares), outside=_outside(chosen)
        )
    coverage = (*asked.interval, float(COVERAGE) / 100)[0]
    found = release.predict_frame(row)
    digits = sensible_digits(np.concatenate(spreads(found)))

    def shown(value: Any) -> str:
        return f"{round(float(value), digits):,.{max(digits, 0)}f}"

    def at(name: str) -> str:
        return shown(found[name].iloc[0])

    (low,), (high,) = release.predict_interval(row, coverage, exposure=exposure)
    above = tuple(
        (
            f"{each:.6g}",
            f"{100 * float(release.probability_above(row, each, exposure=exposure)[0]):.1f}",
        )
        for each in asked.thresholds_of()
    )
    beyond: dict[str, Any] = {
        "outside": _outside(chosen),
        "person": (shown(low), shown(high)),
        "coverage": f"{100 * coverage:.6g}",
        "above": above,
    }
    likelihood = release.likelihood
    if isinstance(likelihood, QuantileLikelihood):
        names = [quantile_column(level) for level in likelihood.quantiles]
        quantiles = tuple(
            (f"{100 * level:g}", at(name), (at(f"{name}_lower"), at(f"{name}_upper")))
            for level, name in zip(likelihood.quantiles, names, strict=True)
        )
        return Answer(middle=quantiles[likelihood.middle][1], quantiles=quantiles, **beyond)
    return Answer(middle=shown(found.iloc[0, 0]), average=(at("lower"), at("upper")), **beyond)


def _outside(chosen: tuple[Chosen, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return the columns whose numbers are beyond the range that was asked, with this range."""
    return tuple(
        (control.label, control.in_words(control.lo), control.in_words(control.hi))
        for control, value in ((each.control, each.value) for each in chosen)
        if control.kind == "number" and not control.lo <= value <= control.hi
    )


def _answer(release: Release, chosen: tuple[Chosen, ...], fields: QueryParams) -> Answer:
    """Return the prediction of one row, as fields ask for it."""
    text = text_of(fields, "exposure")
    exposure = number_of(text, called="exposure") if text else None
    return answer_of(release, chosen, distribution_of(fields), exposure=exposure)


def _chosen(control: Control, text: str) -> Chosen:
    if control.kind == "level":
        value = _number(text, control) if text else control.typical
        if value not in range(len(control.levels)):
            raise InvalidError(f"{control.label}: choose one of the levels")
        return Chosen(control, value, str(int(value)))
    if control.kind == "date":
        value = _days(text, control) if text else control.typical
        ends = (_date(control.lo, control), _date(control.hi, control))
        return Chosen(control, value, _date(value, control), *ends)
    value = _number(text, control) if text else control.typical
    return Chosen(control, value, f"{value:.6g}", amount(control.lo), amount(control.hi))


def _number(text: str, control: Control) -> float:
    value = number_of(text, called=control.label)
    if not math.isfinite(value):
        raise InvalidError(f"{control.label} must be a number")
    return value


def _days(text: str, control: Control) -> float:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidError(f"{control.label} must be a date") from None
    return moment.timestamp() / DAY


def _date(days: float, control: Control) -> str:
    # Days of a moment are rounded, and those of the last one beyond the end of the calendar.
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=min(days, LAST_DAY))
    return moment.strftime("%Y-%m-%dT%H:%M" if control.by_time else "%Y-%m-%d")
