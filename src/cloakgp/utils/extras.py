"""Extras: packages that some tasks alone need, and how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# The packages that each extra of pyproject.toml brings, by the names under which they are imported.
MODULES = {
    "cli": ("typer", "rich"),
    "tables": ("pandas", "pyarrow"),
    "excel": ("python_calamine", "openpyxl"),
    "sql": ("sqlalchemy",),
    "plots": ("matplotlib",),
    "page": ("jinja2", "markupsafe", "plotly"),
    "notebook": ("ipywidgets",),
    "dask": ("dask", "distributed"),
    "ledger": ("sqlalchemy", "alembic", "psycopg", "cryptography"),
    "client": ("httpx",),
    "custodians": ("cryptography",),
    "service": (
        "fastapi",
        "uvicorn",
        "limits",
        "authlib",
        "joserfc",
        "prometheus_client",
        "python_multipart",
    ),
}
TASKS = {
    "cli": "the command line needs",
    "tables": "tables in files need",
    "excel": "spreadsheets need",
    "sql": "databases other than SQLite need",
    "plots": "pictures need",
    "page": "pages need",
    "notebook": "sliders in notebooks need",
    "dask": "rows on a Dask cluster need",
    "ledger": "the ledger needs",
    "client": "clients of the service need",
    "custodians": "several custodians need",
    "service": "the service needs",
}


class MissingExtraError(ModuleNotFoundError):
    """A package is missing that an extra would have installed; the message says which extra."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import the packages of an extra, or name the missing extra.

    Parameters
    ----------
    name : str
        A key of `MODULES`.

    Raises
    ------
    MissingExtraError
        If a package of that extra is not installed.

    Examples
    --------
    >>> try:
    ...     with extra("plots"):
    ...         raise ModuleNotFoundError(name="matplotlib.figure")
    ... except MissingExtraError as error:
    ...     print(error)
    pictures need matplotlib: pip install "cloakgp[plots]"
    """
    missing = None
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in MODULES[name]:
            raise
    if missing:
        raise MissingExtraError(
            f'{TASKS[name]} {missing}: pip install "cloakgp[{name}]"', name=missing
        )
