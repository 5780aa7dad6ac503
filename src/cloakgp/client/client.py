"""Client: what one can ask of a service, as methods."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from cloakgp.client.errors import KINDS, ClientError, JobFailedError, NotFoundError
from cloakgp.client.records import (
    Account,
    Job,
    Plan,
    Predictions,
    Release,
    Request,
    Table,
    read,
)
from cloakgp.utils.extras import extra

with extra("client"):
    import httpx

TOKEN = "CLOAKGP_TOKEN"
# Seconds: planning takes long, and so does a table that is sent.
PATIENCE = 300.0
FINISHED = ("done", "failed", "cancelled")


class Client:
    """A service, for programs.

    Parameters
    ----------
    address : str
        As `cloakgp serve` prints it.
    token : str, optional
        The environment variable ``CLOAKGP_TOKEN`` if not given.
    transport : httpx.BaseTransport, optional
        For tests.

    Examples
    --------
    >>> def answer(request):
    ...     return httpx.Response(200, json={"columns": ["mean"], "rows": [[1.5]]})
    >>> with Client("http://127.0.0.1:8000", "a token",
    ...             transport=httpx.MockTransport(answer)) as client:
    ...     client.predict(1, [{"age": 30}]).rows
    [[1.5]]
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        given = token or os.environ.get(TOKEN, "")
        self._http = httpx.Client(
            base_url=address.rstrip("/") + "/api",
            headers={"Authorization": f"Bearer {given}"},
            timeout=PATIENCE,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __repr__(self) -> str:
        return f"<Client of {self._http.base_url}>"

    def roles(self) -> list[str]:
        """Return the roles of the token."""
        return list(self._json("GET", "/me")["roles"])

    def accounts(self) -> list[Account]:
        """Return what was spent of every account, and what is left."""
        return [read(Account, each) for each in self._json("GET", "/accounts")]

    def tables(self) -> list[Table]:
        """Return the tables of which releases can be asked."""
        return [read(Table, each) for each in self._json("GET", "/tables")]

    def table(self, name: str) -> Table:
        """Return the table of a name.

        Raises
        ------
        NotFoundError
        """
        for each in self.tables():
            if each.name == name:
                return each
        raise NotFoundError(f"there is no table {name!r}")

    def upload(self, path: str | Path) -> str:
        """Send the file of a table; returns by what `register` knows it. For custodians."""
        with Path(path).open("rb") as file:
            sent = self._json("PUT", f"/uploads/{quote(Path(path).name, safe='')}", content=file)
        return str(sent["id"])

    def register(self, **table: Any) -> Table:
        """Register a table. For custodians.

        Parameters
        ----------
        **table
            name, account, upload or path, output, bounds or classes, and more: the OpenAPI document
            says which.
        """
        return read(Table, self._json("POST", "/tables", json=table))

    def plan(self, table: int, *, epsilon: float, delta: float = 0.0, **choices: Any) -> Plan:
        """Plan a release; spends nothing.

        Parameters
        ----------
        table : int
            Its number.
        epsilon, delta : float
        **choices
            inputs, noise, inducing and more, as for `request`.
        """
        chosen = {"epsilon": epsilon, "delta": delta, **choices}
        return read(Plan, self._json("POST", "/plans", json={"table": table, "choices": chosen}))

    def request(
        self,
        table: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        purpose: str,
        key: str | None = None,
        **choices: Any,
    ) -> Request:
        """Ask for a release.

        Parameters
        ----------
        table : int
            Its number.
        epsilon, delta : float
        purpose : str
            Is written down.
        key : str, optional
            Any text: asked again with it, the same request is answered, and nothing is spent twice.
        **choices
            inputs, noise, inducing and more: the OpenAPI document says which.

        Raises
        ------
        NoRoomError
            If a limit leaves no room.
        """
        chosen = {"epsilon": epsilon, "delta": delta, **choices}
        asked = {"table": table, "choices": chosen, "purpose": purpose}
        headers = {} if key is None else {"Idempotency-Key": key}
        return read(Request, self._json("POST", "/requests", json=asked, headers=headers))

    def requests(self) -> list[Request]:
        """Return one's own requests; for custodians and approvers, those of all."""
        return [read(Request, each) for each in self._json("GET", "/requests")]

    def show_request(self, request: int) -> Request:
        """Return a request, and what came of it."""
        return read(Request, self._json("GET", f"/requests/{request}"))

    def approve(self, request: int, *, remark: str = "") -> Request:
        """Approve somebody else's request. For approvers."""
        return self._decided(request, "approve", remark)

    def reject(self, request: int, *, remark: str = "") -> Request:
        """Reject somebody else's request. For approvers."""
        return self._decided(request, "reject", remark)

    def cancel(self, job: int) -> Job:
        """Cancel a job, unless noise may have been drawn for it."""
        return read(Job, self._json("POST", f"/jobs/{job}/cancel"))

    def watch(self, job: int) -> Iterator[Job]:
        """Yield a job whenever it has come further, until it is finished."""
        seen: Job | None = None
        # The service ends long streams: whoever watches asks anew.
        while seen is None or seen.state not in FINISHED:
            with self._http.stream("GET", f"/jobs/{job}/events") as answer:
                if answer.is_error:
                    answer.read()
                _check(answer)
                for line in answer.iter_lines():
                    field, _, data = line.partition(": ")
                    if field == "data":
                        seen = read(Job, json.loads(data))
                        yield seen

    def wait(self, request: int) -> Release:
        """Return the release of a request when it is made.

        Raises
        ------
        JobFailedError
            If its job fails or is cancelled, or nobody has approved it yet.
        """
        asked = self.show_request(request)
        if asked.job is None:
            raise JobFailedError(f"request {request} has no job: it is {asked.state}")
        for _ in self.watch(asked.job.id):
            pass
        made = self.show_request(request)
        if made.release is None:
            told = made.job.failure or made.job.state if made.job else made.state
            raise JobFailedError(f"request {request}: {told}")
        return self.release(made.release)

    def releases(self) -> list[Release]:
        """Return the releases that were made."""
        return [read(Release, each) for each in self._json("GET", "/releases")]

    def release(self, release: int) -> Release:
        """Return what is known of a release."""
        return read(Release, self._json("GET", f"/releases/{release}"))

    def download(self, release: int, path: str | Path) -> None:
        """Write the file of a release, which `cloakgp.load` opens."""
        Path(path).write_bytes(self._sent("GET", f"/releases/{release}/file").content)

    def receipt(self, release: int) -> str:
        """Return a signed receipt of what a release cost, as JSON."""
        return self._sent("GET", f"/releases/{release}/receipt").text

    def predict(
        self,
        release: int,
        rows: Iterable[Mapping[str, Any]],
        *,
        new_output: bool = False,
        estimate: str = "median",
    ) -> Predictions:
        """Predict for some rows; costs no privacy.

        Parameters
        ----------
        release : int
        rows : iterable of mapping
            Of columns to values.
        new_output : bool
            Limits for a new output, not for the curve alone.
        estimate : {"median", "mean"}
        """
        asked = {
            "rows": [dict(row) for row in rows],
            "new_output": new_output,
            "estimate": estimate,
        }
        found = self._json("POST", f"/releases/{release}/predict", json=asked)
        return read(Predictions, found)

    def plot(self, release: int, *, vary: Sequence[str] = (), suffix: str = ".png") -> bytes:
        """Return a picture of a release over one input or two."""
        asked: dict[str, Any] = {"vary": list(vary), "suffix": suffix}
        return self._sent("GET", f"/releases/{release}/plot", params=asked).content

    def verify(self) -> dict[str, Any]:
        """Check the ledger. For auditors."""
        return dict(self._json("POST", "/ledger/verify"))

    def _decided(self, request: int, how: str, remark: str) -> Request:
        sent = self._json("POST", f"/requests/{request}/{how}", json={"remark": remark})
        return read(Request, sent)

    def _json(self, method: str, path: str, **more: Any) -> Any:
        return self._sent(method, path, **more).json()

    def _sent(self, method: str, path: str, **more: Any) -> httpx.Response:
        failed = ""
        try:
            answer = self._http.request(method, path, **more)
        except httpx.TransportError as error:
            failed = type(error).__name__
        if failed:
            raise ClientError(f"the service does not answer ({failed})")
        _check(answer)
        return answer


def _check(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        told = answer.json()
        kind, message = KINDS.get(told["kind"], ClientError), str(told["message"])
    except (ValueError, KeyError, TypeError):
        kind, message = ClientError, f"the service answers {answer.status_code}"
    raise kind(message)
