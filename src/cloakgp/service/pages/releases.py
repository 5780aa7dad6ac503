"""Pages of releases: in words and pictures, with predictions for one row or for a table."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from starlette.datastructures import QueryParams, UploadFile

from cloakgp.data.schema import table_suffix
from cloakgp.pages.rendering import POLICY, SCRIPTS
from cloakgp.release import Release
from cloakgp.release.predictions import sensible_digits
from cloakgp.report.columns import has_classes, input_names
from cloakgp.report.controls import Control, controls_of, raw_rows
from cloakgp.report.describe import headline
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Id
from cloakgp.service.operations import releases
from cloakgp.service.pages.fields import number_of, text_of
from cloakgp.service.pages.visits import PageRoute, Sending, Visiting, varied

router = APIRouter(route_class=PageRoute)
# Its forms are larger.
uploads = APIRouter(route_class=PageRoute)
PNG = "image/png"
DAY = 86_400.0
FORMATS = (".csv", ".tsv", ".parquet", ".xlsx")
# A page that predicts has scripts in itself: it is nobody here, and reaches nothing.
ALONE = f"{POLICY}{SCRIPTS}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"


@dataclass(frozen=True)
class Chosen:
    """One input of a prediction, and what was chosen.

    Attributes
    ----------
    control : Control
    value : float
        A number, days since 1970, or the place of a level.
    text : str
        As a field has it.
    low, high : str
        Ends of the field, as it has them.
    """

    control: Control
    value: float
    text: str
    low: str = ""
    high: str = ""


@dataclass(frozen=True)
class Answer:
    """What is predicted for one row.

    Attributes
    ----------
    middle : str
        The most probable class, or the middle of the prediction.
    average, person : tuple of str
        Ends of the intervals of 95 %: for such people on average, and for a new person.
    shares : tuple of (str, float)
        Of classes: how probable each is.
    """

    middle: str
    average: tuple[str, str] = ("", "")
    person: tuple[str, str] = ("", "")
    shares: tuple[tuple[str, float], ...] = ()


@router.get("/releases", name="page: releases")
def show_releases(visit: Visiting) -> Response:
    """List releases."""
    found = releases.list_releases(visit.work("list_releases"))
    return visit.show("releases.html", releases=found)


@router.get("/releases/{release}", name="page: release")
def show_release(visit: Visiting, release: Id) -> Response:
    """Show a release in words and pictures, and predict from it."""
    work = visit.work("show_release")
    about = releases.show_release(work, release)
    made = releases.open_release(work, release)
    predicts = visit.actor.may("predict_release")
    chosen = chosen_of(made, visit.request.query_params) if predicts else ()
    return visit.show(
        "release.html",
        about=about,
        headline=headline(made),
        sections=releases.report_release(work, release),
        inputs=input_names(made),
        varied=varied(visit),
        predicts=predicts,
        chosen=chosen,
        answer=answer_of(made, chosen) if predicts else None,
        problem="",
    )


@router.get("/releases/{release}/answer", name="page: prediction alone")
def show_answer(visit: Visiting, release: Id) -> Response:
    """Predict for one row, for the script of the page around it."""
    work = visit.work("predict_release")
    about = releases.show_release(work, release)
    made = releases.open_release(work, release)
    try:
        answer, problem = answer_of(made, chosen_of(made, visit.request.query_params)), ""
    except InvalidError as error:
        answer, problem = None, str(error)
    return visit.show("release_answer.html", about=about, answer=answer, problem=problem)


@router.get("/releases/{release}/picture", name="page: release, picture")
def show_picture(visit: Visiting, release: Id) -> Response:
    """Draw predictions over one input or two."""
    work = visit.work("plot_release")
    over = varied(visit) or list(input_names(releases.open_release(work, release))[:1])
    content = releases.plot_release(work, release, vary=over, only=None, suffix=".png")
    return Response(content, media_type=PNG)


@router.get("/releases/{release}/page", name="page: release, alone")
def show_page_alone(visit: Visiting, release: Id) -> Response:
    """Show the page that predicts by itself."""
    content = releases.page_release(visit.work("page_release"), release)
    headers = {"Content-Security-Policy": ALONE}
    return Response(content, media_type="text/html", headers=headers)


@uploads.post("/releases/{release}/table", name="page: predict table")
def predict_table(sent: Sending, release: Id) -> Response:
    """Predict for a table that is sent; it comes back as CSV."""
    work = sent.work("predict_table")
    file = sent.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidError("choose a file with the rows to predict")
    try:
        suffix = table_suffix(Path(file.filename).name)
    except ValueError as error:
        raise InvalidError(str(error)) from None
    if not suffix.startswith(FORMATS):
        raise InvalidError(f"send {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    with tempfile.TemporaryDirectory(dir=work.service.settings.uploads) as folder:
        path = Path(folder) / f"body{suffix}"
        with path.open("wb") as target:
            copyfileobj(file.file, target)
        new = sent.text("limits") == "person"
        content = releases.predict_table(work, release, path, new_output=new)
    named = {"Content-Disposition": f'attachment; filename="predicted-{release}.csv"'}
    return Response(content, media_type="text/csv", headers=named)


def chosen_of(release: Release, fields: QueryParams) -> tuple[Chosen, ...]:
    """Return what was chosen of each input, and what is typical of those that were not.

    Parameters
    ----------
    release : Release
    fields : QueryParams
        ``x0``, ``x1``, … in the order of its controls.

    Raises
    ------
    InvalidError
        If a field does not hold what it should.
    """
    return tuple(
        _chosen(control, text_of(fields, f"x{number}"))
        for number, control in enumerate(controls_of(release))
    )


def answer_of(release: Release, chosen: tuple[Chosen, ...]) -> Answer:
    """Return what a release predicts for one row.

    Parameters
    ----------
    release : Release
    chosen : tuple of Chosen
    """
    controls = tuple(each.control for each in chosen)
    values = {each.control.name: np.array([each.value]) for each in chosen}
    row = raw_rows(release, controls, values, count=1)
    if has_classes(release):
        (found,) = release.predict_frame(row).to_dict("records")
        shares = [(str(name)[2:], float(found[name])) for name in found if name != "predicted"]
        return Answer(middle=str(found["predicted"]), shares=tuple(shares))
    curve, person = (release.predict_frame(row, new_output=new).iloc[0] for new in (False, True))
    digits = sensible_digits(np.array([curve["sd"]]))

    def shown(value: Any) -> str:
        return f"{round(float(value), digits):,.{max(digits, 0)}f}"

    return Answer(
        middle=shown(curve.iloc[0]),
        average=(shown(curve["lower"]), shown(curve["upper"])),
        person=(shown(person["lower"]), shown(person["upper"])),
    )


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
    return Chosen(control, value, f"{value:.6g}", f"{control.lo:.6g}", f"{control.hi:.6g}")


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
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)
    return moment.strftime("%Y-%m-%dT%H:%M" if control.by_time else "%Y-%m-%d")
