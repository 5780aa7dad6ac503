"""Routes of releases, and of their predictions."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from cloakgp.release.distribution_columns import DistributionColumns
from cloakgp.service.guards import Working
from cloakgp.service.messages import (
    Combination,
    Coverage,
    ExposureColumn,
    Id,
    Quantiles,
    Thresholds,
)
from cloakgp.service.operations import releases
from cloakgp.service.routes.endpoints import GuardedRoute, add, add_list, received
from cloakgp.service.routes.requests import PICTURE, PICTURES
from cloakgp.service.routes.tables import FILE
from cloakgp.utils.names import REMARKS_HEADER, Estimate

router = APIRouter(route_class=GuardedRoute, tags=["releases"])
# Its bodies are larger.
predictions = APIRouter(route_class=GuardedRoute, tags=["releases"])
BINARY = "application/octet-stream"


add_list(router, "/releases", releases.list_releases)
add(router, "GET", "/releases/{release}", releases.show_release)
add(router, "GET", "/releases/{release}/report", releases.report_release)
add(predictions, "POST", "/releases/{release}/predict", releases.predict_release)


@router.get(
    "/releases/{release}/file",
    name="download_release",
    response_class=Response,
    responses={200: {"content": {BINARY: {}}}},
)
def download_release(work: Working, release: Id) -> Response:
    """Return the file of a release."""
    content = releases.download_release(work, release)
    named = {"Content-Disposition": f'attachment; filename="release-{release}.cloak"'}
    return Response(content, media_type=BINARY, headers=named)


@router.post(
    "/releases/combine",
    name="combine_releases",
    response_class=Response,
    responses={200: {"content": {BINARY: {}}}},
)
def combine_releases(work: Working, chosen: Combination) -> Response:
    """Return the file of one release that combines several; nothing is asked, and nothing kept."""
    named = {"Content-Disposition": 'attachment; filename="combined.cloak"'}
    content = releases.combine_releases(work, chosen)
    return Response(content, media_type=BINARY, headers=named)


@router.get(
    "/releases/{release}/receipt",
    name="receipt_release",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def receipt_release(work: Working, release: Id) -> Response:
    """Return a signed receipt of the cost of a release."""
    return Response(releases.receipt_release(work, release), media_type="application/json")


@router.get(
    "/releases/{release}/page",
    name="page_release",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
)
def page_release(work: Working, release: Id) -> Response:
    """Return a page that predicts in any browser, without the service."""
    named = {"Content-Disposition": f'attachment; filename="release-{release}.html"'}
    return Response(releases.page_release(work, release), media_type="text/html", headers=named)


@predictions.post(
    "/releases/{release}/predict-table",
    name="predict_table",
    response_class=Response,
    responses={
        200: {
            "content": {"text/csv": {}},
            "headers": {
                REMARKS_HEADER: {
                    "description": "What to know of the rows, as of `predict`, and of columns that "
                    "were left out: a list of JSON. Not there if there is nothing.",
                    "schema": {"type": "string"},
                }
            },
        }
    },
    openapi_extra=FILE,
)
async def predict_table(
    request: Request,
    work: Working,
    release: Id,
    name: Annotated[str, Query(max_length=200)] = "rows.csv",
    new_output: bool = False,
    estimate: Estimate = "median",
    interval: Annotated[Coverage, Query()] = None,
    quantiles: Annotated[Quantiles, Query()] = [],  # noqa: B006
    above: Annotated[Thresholds, Query()] = [],  # noqa: B006
    exposure: Annotated[ExposureColumn, Query()] = "",
) -> Response:
    """Predict the rows of a table, whose name tells the format.

    The answer is CSV, and a header has remarks.
    """
    asked = DistributionColumns.asked(interval=interval, quantiles=quantiles, above=above)
    suffix = releases.suffix_of_sent(name)
    folder = work.service.settings.uploads
    async with received(request, folder=folder, suffix=suffix) as path:
        made = await run_in_threadpool(
            releases.predict_table,
            work,
            release,
            path,
            new_output=new_output,
            estimate=estimate,
            asked=asked,
            exposure=exposure,
        )
    return Response(made.content, media_type="text/csv", headers=made.headers)


@router.get(
    "/releases/{release}/plot",
    name="plot_release",
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
