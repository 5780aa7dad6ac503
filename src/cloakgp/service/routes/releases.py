"""Routes of releases, and what is predicted from them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from cloakgp.data.schema import table_suffix
from cloakgp.service.errors import InvalidError
from cloakgp.service.guards import Working
from cloakgp.service.messages import Id, Predictions, PredictRequest, ReleaseView, SectionView
from cloakgp.service.operations import releases
from cloakgp.service.routes.receiving import received
from cloakgp.service.routes.requests import PICTURE, PICTURES
from cloakgp.service.routes.tables import FILE
from cloakgp.utils.names import Estimate

router = APIRouter()
# Its bodies are larger.
predictions = APIRouter()
BINARY = "application/octet-stream"


@router.get("/releases", name="list_releases", tags=["releases"])
def list_releases(work: Working) -> list[ReleaseView]:
    """Return the releases that were made."""
    return releases.list_releases(work)


@router.get("/releases/{release}", name="show_release", tags=["releases"])
def show_release(work: Working, release: Id) -> ReleaseView:
    """Return what is known of a release."""
    return releases.show_release(work, release)


@router.get(
    "/releases/{release}/file",
    name="download_release",
    tags=["releases"],
    response_class=Response,
    responses={200: {"content": {BINARY: {}}}},
)
def download_release(work: Working, release: Id) -> Response:
    """Return the file of a release."""
    content = releases.download_release(work, release)
    named = {"Content-Disposition": f'attachment; filename="release-{release}.cloak"'}
    return Response(content, media_type=BINARY, headers=named)


@router.get("/releases/{release}/report", name="report_release", tags=["releases"])
def report_release(work: Working, release: Id) -> list[SectionView]:
    """Return a release in words."""
    return releases.report_release(work, release)


@router.get(
    "/releases/{release}/receipt",
    name="receipt_release",
    tags=["releases"],
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def receipt_release(work: Working, release: Id) -> Response:
    """Return a signed receipt of what a release cost."""
    return Response(releases.receipt_release(work, release), media_type="application/json")


@router.get(
    "/releases/{release}/page",
    name="page_release",
    tags=["releases"],
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
)
def page_release(work: Working, release: Id) -> Response:
    """Return a page that predicts, to be kept and opened by anybody."""
    named = {"Content-Disposition": f'attachment; filename="release-{release}.html"'}
    return Response(releases.page_release(work, release), media_type="text/html", headers=named)


@predictions.post("/releases/{release}/predict", name="predict_release", tags=["releases"])
def predict_release(work: Working, release: Id, asked: PredictRequest) -> Predictions:
    """Predict for some rows; costs no privacy."""
    return releases.predict_release(work, release, asked)


@predictions.post(
    "/releases/{release}/predict-table",
    name="predict_table",
    tags=["releases"],
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}}},
    openapi_extra=FILE,
)
async def predict_table(
    request: Request,
    work: Working,
    release: Id,
    name: Annotated[str, Query(max_length=200)] = "rows.csv",
    new_output: bool = False,
    estimate: Estimate = "median",
) -> Response:
    """Predict for a table that is sent, whose format the name tells; CSV comes back."""
    try:
        suffix = table_suffix(name)
    except ValueError as error:
        raise InvalidError(str(error)) from None
    if not suffix.startswith((".csv", ".tsv", ".parquet", ".xlsx")):
        raise InvalidError("send .csv, .tsv, .parquet or .xlsx")
    folder = work.service.settings.uploads
    async with received(request, folder=folder, suffix=suffix) as path:
        content = await run_in_threadpool(
            releases.predict_table, work, release, path, new_output=new_output, estimate=estimate
        )
    return Response(content, media_type="text/csv")


@router.get(
    "/releases/{release}/plot",
    name="plot_release",
    tags=["releases"],
    response_class=Response,
    responses=PICTURE,
)
def plot_release(
    work: Working,
    release: Id,
    vary: Annotated[list[str], Query(max_length=2)] = [],  # noqa: B006
    only: Annotated[str | None, Query(max_length=200)] = None,
    suffix: Literal[".png", ".svg"] = ".png",
) -> Response:
    """Draw predictions over one input or two."""
    content = releases.plot_release(work, release, vary=vary, only=only, suffix=suffix)
    return Response(content, media_type=PICTURES[suffix])
