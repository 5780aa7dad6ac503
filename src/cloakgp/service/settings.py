"""Settings of a service: where its ledger and files are, and how much anybody may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 2**20
# How often one actor may do what, as the package `limits` writes it. "failed" is of wrong tokens,
# by address.
RATES: Mapping[str, str] = {
    "default": "600/minute",
    "predict": "1200/minute",
    "plan": "30/minute",
    "upload": "20/minute",
    "failed": "20/minute",
}


@dataclass(frozen=True)
class Settings:
    """What whoever starts a service decides.

    Attributes
    ----------
    ledger : str
        A file, ``sqlite:///FILE`` or ``postgresql://…``: of the ledger and of the service's tables.
    data : Path
        Folder of uploaded tables, readable by its owner alone.
    tables : tuple of Path
        Folders whose files may be registered as tables, beside uploaded ones.
    host, port
        Where it listens.
    names : tuple of str
        Further host names under which browsers may call it.
    scheduler : str
        Address of a Dask scheduler; a cluster of its own if empty.
    workers : int
        Processes of its own cluster; with 0, jobs run in a thread of the server.
    rates : mapping
    body, predict_body, upload : int
        The largest requests, in bytes.
    rows : int
        The most rows of one prediction.
    plans : int
        Plans that are made at once.
    token_days, session_hours : int
        How long tokens last if nobody says, and sessions.
    memory : float or None
        Gigabytes that a fit may take.
    secure : bool
        Whether cookies go over TLS alone.
    """

    ledger: str
    data: Path
    tables: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()
    scheduler: str = ""
    workers: int = 1
    rates: Mapping[str, str] = field(default_factory=lambda: dict(RATES))
    body: int = MIB
    predict_body: int = 8 * MIB
    upload: int = 1024 * MIB
    rows: int = 20_000
    plans: int = 2
    token_days: int = 90
    session_hours: int = 12
    memory: float | None = None
    secure: bool = False

    @property
    def uploads(self) -> Path:
        """Folder of uploaded tables."""
        return self.data / "uploads"
