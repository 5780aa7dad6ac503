"""Bodies of requests that are files: received piece by piece, and gone when they are done with."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Request


@asynccontextmanager
async def received(request: Request, *, folder: Path, suffix: str = "") -> AsyncIterator[Path]:
    """Receive a body into a file that its owner alone can read, and remove it in the end.

    Parameters
    ----------
    request : Request
    folder : Path
    suffix : str
        How its name ends.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="receiving-") as place:
        path = Path(place) / f"body{suffix}"
        with path.open("wb") as file:
            async for piece in request.stream():
                file.write(piece)
        yield path
