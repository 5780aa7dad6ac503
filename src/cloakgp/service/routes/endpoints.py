"""Endpoints: operations as routes of FastAPI, behind the guard."""

from __future__ import annotations

import functools
import inspect
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from cloakgp.service.access import OPEN
from cloakgp.service.guards import Working, admit

Most = Annotated[int, Query(ge=1, le=1000, description="The largest number of items.")]


class GuardedRoute(APIRoute):
    """A route that admits its caller before it reads a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def handle_admitted(request: Request) -> Response:
            if self.name not in OPEN:
                await run_in_threadpool(admit, request)
            return await handle(request)

        return handle_admitted


def add(
    router: APIRouter, method: str, path: str, operation: Callable[..., Any], *, status: int = 200
) -> None:
    """Add the route of an operation, with its name, its parameters and its description.

    Parameters
    ----------
    router : APIRouter
    method, path : str
        The path names those parameters of the operation that it holds.
    operation : callable
    status : int
        Of an answer.
    """

    @functools.wraps(operation)
    def endpoint(work: Working, **values: Any) -> Any:
        return operation(work, **values)

    _add(router, method, path, endpoint, _signature(operation), status=status)


def add_list(
    router: APIRouter,
    path: str,
    operation: Callable[..., Any],
    *,
    cursor: str = "before",
    key: str = "id",
) -> None:
    """Add the route of an operation that lists items, with the next ones in the header ``Link``.

    Parameters
    ----------
    router : APIRouter
    path : str
    operation : callable
        Returns at most `most` items.
    cursor : str
        The parameter that asks for the items beyond one.
    key : str
        The attribute of that item.
    """

    @functools.wraps(operation)
    def endpoint(
        work: Working, request: Request, response: Response, most: int, **values: Any
    ) -> list[Any]:
        items = operation(work, most=most + 1, **values)
        if len(items) > most:
            following = {cursor: getattr(items[most - 1], key)}
            url = request.url.include_query_params(**following)
            # Behind a proxy, host and scheme are others.
            response.headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
        return list(items[:most])

    signature = _signature(operation, most=Most, request=Request, response=Response)
    _add(router, "GET", path, endpoint, signature)


@asynccontextmanager
async def received(request: Request, *, folder: Path, suffix: str = "") -> AsyncIterator[Path]:
    """Receive a body into a file that its owner alone can read, and remove it in the end.

    Parameters
    ----------
    request : Request
    folder : Path
    suffix : str
        Of the file's name.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="receiving-") as place:
        path = Path(place) / f"body{suffix}"
        with path.open("wb") as file:
            async for piece in request.stream():
                file.write(piece)
        yield path


def _add(
    router: APIRouter,
    method: str,
    path: str,
    endpoint: Callable[..., Any],
    signature: inspect.Signature,
    *,
    status: int = 200,
) -> None:
    # FastAPI reads it in place of that of the wrapped operation.
    endpoint.__signature__ = signature  # type: ignore[attr-defined]
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        name=endpoint.__name__,
        status_code=status,
        description=inspect.cleandoc(endpoint.__doc__ or "").split("\n\n")[0],
    )


def _signature(operation: Callable[..., Any], **annotations: Any) -> inspect.Signature:
    """Return the signature of an operation for FastAPI, which makes its work by the guard."""
    hints = get_type_hints(operation, include_extras=True) | {"work": Working} | annotations
    declared = inspect.signature(operation).parameters
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[name],
            default=declared[name].default if name in declared else inspect.Parameter.empty,
        )
        for name in dict.fromkeys([*declared, *annotations])
    ]
    answer = hints["return"]
    # FastAPI knows an empty answer by None itself.
    return inspect.Signature(parameters, return_annotation=None if answer is type(None) else answer)
