"""Client of the service: its operations as methods."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from cloakgp.client.answers import (
    KINDS,
    Account,
    ClientError,
    InvalidError,
    Job,
    JobFailedError,
    JointRequest,
    NoAnswerError,
    NotFoundError,
    Plan,
    Predictions,
    Release,
    Request,
    Table,
    UnknownTokenError,
    check_form,
    read,
    read_all,
)
from cloakgp.client.exchange import ServiceExchange
from cloakgp.client.keys import new_key
from cloakgp.utils.extras import extra
from cloakgp.utils.names import REMARKS_HEADER

with extra("client"):
    import httpx

TOKEN = "CLOAKGP_TOKEN"
# Seconds of the longest answer, of a plan or of an upload.
PATIENCE = 300.0
EXAMPLE = "https://releases.example.org"
STRANGER = "the answer is not the service's: check its address, and the proxies before it"
FINISHED = ("done", "failed", "cancelled")
# What to do where an answer is lost: of what changes nothing, or nothing more the second time; and
# of what may have changed something.
AGAIN = "try again"
LOOK = "it may have been done all the same: look before you repeat it"

# Errors of httpx, which hold the request, and stay inside.
BROKEN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)


class Client:
    """A connection of a program to a service.

    Parameters
    ----------
    address : str
        As `cloakgp serve` prints it.
    token : str, optional
        By default, the environment variable ``CLOAKGP_TOKEN``.
    transport : httpx.BaseTransport, optional
        For tests.

    Raises
    ------
    InvalidError
        If the address or the token is not valid.
    UnknownTokenError
        If there is no token.

    Notes
    -----
    What goes wrong between a method and the service is a `ClientError`: one of its kinds for a
    refusal of the service, and `NoAnswerError` if the service does not answer, or something else
    does. Files of one's own raise what Python raises.

    Where an answer is lost, the message says whether to try again: what was asked may have been
    done. `request` draws a key, so that a release is not paid for twice.

    Examples
    --------
    >>> def answer(request):
    ...     return httpx.Response(200, json={"columns": ["mean"], "rows": [[1.5]], "remarks": []})
    >>> with Client("http://127.0.0.1:8000", "cloakgp_token",
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
        secret = (token or os.environ.get(TOKEN, "")).strip()
        if not secret:
            raise UnknownTokenError(f"give a token, or set the environment variable {TOKEN}")
        if not secret.isascii() or not secret.isprintable() or " " in secret:
            raise InvalidError("this is no token: it has blanks, or letters that tokens never have")
        self._http = httpx.Client(
            base_url=_checked(address) + "/api",
            headers={"Authorization": f"Bearer {secret}"},
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
        sent = check_form(self._json("GET", "/me"), dict)
        return check_form(sent.get("roles"), list)

    def rotate_token(self, *, grace_hours: int = 0) -> str:
        """Replace the token by a new one, which this client then uses; return it.

        Parameters
        ----------
        grace_hours : int
            Hours for which the old one stays valid.
        """
        body = {"grace_hours": grace_hours}
        sent = check_form(self._json("POST", "/me/token/rotate", unsure=LOOK, json=body), dict)
        token = check_form(sent.get("token"), str)
        self._http.headers["Authorization"] = f"Bearer {token}"
        return token

    def accounts(self) -> list[Account]:
        """Return all accounts, with the use of their limits."""
        return read_all(Account, self._json("GET", "/accounts"))

    def tables(self) -> list[Table]:
        """Return the tables that are open to requests."""
        return read_all(Table, self._json("GET", "/tables"))

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
        """Upload the file of a table; return its id for `register`. For custodians."""
        with Path(path).open("rb") as file:
            name = quote(Path(path).name, safe="")
            sent = self._json("PUT", f"/uploads/{name}", unsure=LOOK, content=file)
        return check_form(check_form(sent, dict).get("id"), str)

    def register(self, **table: Any) -> Table:
        """Register a table. For custodians.

        Parameters
        ----------
        **table
            name, account, upload or path, output, bounds or classes, and more, as in the OpenAPI
            document. With people="disjoint" nobody in it is in another such table of the account:
            it is one's word, which the ledger keeps.
        """
        return read(Table, self._json("POST", "/tables", unsure=LOOK, json=table))

    def erase(self, table: int) -> Table:
        """Erase the file that one uploaded for a table; that is withdrawn, its releases stay."""
        return read(Table, self._json("DELETE", f"/tables/{table}/file", unsure=LOOK))

    def plan(self, table: int, *, epsilon: float, delta: float = 0.0, **choices: Any) -> Plan:
        """Plan a release; spends nothing.

        Parameters
        ----------
        table : int
            Its number.
        epsilon, delta : float
        **choices
            inputs, quantiles, counts and more, as for `request`.
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
        """Request a release.

        Parameters
        ----------
        table : int
            Its number.
        epsilon, delta : float
        purpose : str
            Stands in the ledger.
        key : str, optional
            Any text of ASCII letters: a second call with it returns the same request, and nothing
            is spent twice. One is drawn if none is given, for this call alone; where an answer is
            lost, the error has it as its `key`. Give one that is written down where the program
            itself may end before.
        **choices
            inputs, quantiles, counts, exposure, inducing and more, as in the OpenAPI document.

        Raises
        ------
        NoRoomError
            If a limit leaves no room.
        NoAnswerError
            If no answer comes: the request may have been taken. Repeated with the error's `key`, it
            is not taken twice.
        """
        known = new_key() if key is None else key
        if not known.isascii() or not known.isprintable():
            raise InvalidError("a key is made of ASCII letters, digits and signs")
        unsure = f"it may have been taken: repeat it with key={known!r}, and it is not taken twice"
        chosen = {"epsilon": epsilon, "delta": delta, **choices}
        body = {"table": table, "choices": chosen, "purpose": purpose}
        headers = {"Idempotency-Key": known}
        try:
            sent = self._json("POST", "/requests", unsure=unsure, json=body, headers=headers)
            return read(Request, sent)
        except ClientError as error:
            error.key = known
            raise

    def requests(self) -> list[Request]:
        """Return one's own requests; for custodians and approvers, those of all."""
        return [read(Request, each) for each in self._listed("/requests")]

    def show_request(self, request: int) -> Request:
        """Return a request, and its result."""
        return read(Request, self._json("GET", f"/requests/{request}"))

    def approve(self, request: int, *, remark: str = "") -> Request:
        """Approve the request of another person. For approvers."""
        return self._decide(request, "approve", remark)

    def reject(self, request: int, *, remark: str = "") -> Request:
        """Reject the request of another person. For approvers."""
        return self._decide(request, "reject", remark)

    def cancel(self, job: int) -> Job:
        """Cancel a job, unless noise may have been drawn for it."""
        return read(Job, self._json("POST", f"/jobs/{job}/cancel", unsure=LOOK))

    def watch(self, job: int) -> Iterator[Job]:
        """Yield a job at each step, until it is finished."""
        # The service ends long streams: connect again.
        finished = False
        while not finished:
            seen = None
            for seen in self._events(job):
                yield seen
            if seen is None:
                raise NoAnswerError(STRANGER)
            finished = seen.state in FINISHED

    def _events(self, job: int) -> Iterator[Job]:
        """Yield the jobs of one stream of events."""
        self._check_open()
        failed: Exception | None = None
        try:
            with self._http.stream("GET", f"/jobs/{job}/events") as answer:
                if answer.is_error:
                    answer.read()
                _check(answer)
                for line in answer.iter_lines():
                    field, _, data = line.partition(": ")
                    if field == "data":
                        yield read(Job, _opened(data))
        except BROKEN as error:
            failed = error
        if failed is not None:
            raise _in_words(failed)

    def wait(self, request: int) -> Release:
        """Wait for the release of a request, and return it.

        Raises
        ------
        JobFailedError
            If its job fails or is cancelled, or the request has no approval yet.
        """
        before = self.show_request(request)
        if before.job is None:
            raise JobFailedError(f"request {request} has no job: it is {before.state}")
        for _ in self.watch(before.job.id):
            pass
        made = self.show_request(request)
        if made.release is None:
            reason = made.job.failure or made.job.state if made.job else made.state
            raise JobFailedError(f"request {request}: {reason}")
        return self.release(made.release)

    def begin_joint(
        self, plan: str, *, purpose: str, people: Mapping[str, str] | None = None
    ) -> JointRequest:
        """Begin a request for one release of several custodians, who keep their tables.

        Parameters
        ----------
        plan : str
            The file of a `cloakgp.custodians.Plan`.
        purpose : str
        people : mapping of str to str, optional
            Who each site is; a site that is left out is the person of its name.
        """
        body = {"plan": plan, "purpose": purpose, "people": dict(people or {})}
        return read(JointRequest, self._json("POST", "/joint-requests", unsure=LOOK, json=body))

    def joint_requests(self) -> list[JointRequest]:
        """Return one's own joint requests; for custodians and approvers, those of all."""
        return [read(JointRequest, each) for each in self._listed("/joint-requests")]

    def joint_request(self, request: int) -> JointRequest:
        """Return a joint request, and who comes next."""
        return read(JointRequest, self._json("GET", f"/joint-requests/{request}"))

    def continue_joint(self, request: int, *, without: Sequence[str] = ()) -> JointRequest:
        """Go on with one's own joint request, if need be without some sites.

        Raises
        ------
        ConflictError
            If they cannot be left out any more.
        """
        body = {"without": list(without)}
        path = f"/joint-requests/{request}/continue"
        return read(JointRequest, self._json("POST", path, unsure=LOOK, json=body))

    def close_joint(self, request: int) -> JointRequest:
        """Close one's own joint request: nothing more is taken."""
        path = f"/joint-requests/{request}/close"
        return read(JointRequest, self._json("POST", path, unsure=LOOK))

    def exchange(self, request: int) -> ServiceExchange:
        """Return the exchange of a joint request, for a `cloakgp.custodians.Site`."""
        return ServiceExchange(self, request)

    def read_joint_file(self, request: int, name: str) -> bytes:
        """Return a file of a joint request.

        Raises
        ------
        NotFoundError
            If there is none yet, or it is another's.
        """
        return self._sent("GET", f"/joint-requests/{request}/files/{quote(name)}").content

    def send_joint_file(self, request: int, name: str, content: bytes) -> None:
        """Send a file of one's own site, which may be sent again. For custodians.

        Raises
        ------
        ConflictError
            If it is refused.
        """
        self._sent("PUT", f"/joint-requests/{request}/files/{quote(name)}", content=content)

    def releases(self) -> list[Release]:
        """Return the published releases."""
        return [read(Release, each) for each in self._listed("/releases")]

    def release(self, release: int) -> Release:
        """Return a release."""
        return read(Release, self._json("GET", f"/releases/{release}"))

    def download(self, release: int, path: str | Path) -> None:
        """Write the file of a release, which `cloakgp.load` opens."""
        Path(path).write_bytes(self._sent("GET", f"/releases/{release}/file").content)

    def combine(
        self, releases: Sequence[int], path: str | Path, *, people: str | None = None
    ) -> None:
        """Write the file of one release that combines several; nothing is asked, or kept there.

        Parameters
        ----------
        releases : sequence of int
            Two or more, of equal priors and columns.
        path : str or Path
        people : {"disjoint", "overlapping"}, optional
            Disjoint only where custodians have said it of their tables; if not given, what they
            have said. The file names the assumption.

        Raises
        ------
        InvalidError
            If they do not go together, or no custodian has said that their people are disjoint.
        """
        body = {"releases": list(releases), "people": people}
        Path(path).write_bytes(self._sent("POST", "/releases/combine", json=body).content)

    def receipt(self, release: int) -> str:
        """Return a signed receipt of the cost of a release, as JSON."""
        return self._sent("GET", f"/releases/{release}/receipt").text

    def predict(
        self,
        release: int,
        rows: Iterable[Mapping[str, Any]],
        *,
        new_output: bool = False,
        estimate: str = "median",
        interval: float | None = None,
        quantiles: Sequence[float] = (),
        above: Sequence[float] = (),
        exposure: str = "",
    ) -> Predictions:
        """Predict rows; costs no privacy.

        Parameters
        ----------
        release : int
        rows : iterable of mapping
            Columns → values.
        new_output : bool
            Whether limits are for a new output; otherwise for the curve.
        estimate : {"median", "mean"}
        interval : float, optional
            Coverage of an interval for a new output: 0.9 gives the columns lo_90 and hi_90.
        quantiles : sequence of float
            Of a new output: 0.1 gives q_10.
        above : sequence of float
            The probability that a new output is above each: 180 gives above_180.
        exposure : str
            Column of the rows with the exposure of each new count; 1 if empty.
        """
        body = {
            "rows": _rows(rows),
            "new_output": new_output,
            "estimate": estimate,
            "interval": interval,
            "quantiles": list(quantiles),
            "above": list(above),
            "exposure": exposure,
        }
        return read(Predictions, self._json("POST", f"/releases/{release}/predict", json=body))

    def predict_table(
        self,
        release: int,
        path: str | Path,
        to: str | Path,
        *,
        new_output: bool = False,
        estimate: str = "median",
        interval: float | None = None,
        quantiles: Sequence[float] = (),
        above: Sequence[float] = (),
        exposure: str = "",
    ) -> list[str]:
        """Predict the rows of a table in a file, and write it as CSV with predictions behind.

        Costs no privacy.

        Parameters
        ----------
        release : int
        path : path-like
            The table: CSV, TSV, Excel or Parquet.
        to : path-like
            The file that is written.
        new_output, estimate, interval, quantiles, above, exposure
            As for `predict`.

        Returns
        -------
        list of str
            Remarks on the rows, as of `predict`, and on columns that were left out.
        """
        asked: dict[str, Any] = {
            "name": Path(path).name,
            "new_output": new_output,
            "estimate": estimate,
            "quantiles": list(quantiles),
            "above": list(above),
            "exposure": exposure,
        }
        if interval is not None:
            asked["interval"] = interval
        with Path(path).open("rb") as file:
            where = f"/releases/{release}/predict-table"
            answer = self._sent("POST", where, params=asked, content=file)
        remarks = check_form(_opened(answer.headers.get(REMARKS_HEADER, "[]")), list)
        Path(to).write_bytes(answer.content)
        return [check_form(remark, str) for remark in remarks]

    def plot(self, release: int, *, vary: Sequence[str] = (), suffix: str = ".png") -> bytes:
        """Return a picture of a release over one input or two."""
        body: dict[str, Any] = {"vary": list(vary), "suffix": suffix}
        return self._sent("GET", f"/releases/{release}/plot", params=body).content

    def events(self, *, after: int = 0) -> list[dict[str, Any]]:
        """Return the events after a known one. For auditors."""
        lines = self._sent("GET", "/events/export", params={"after": after}).text.splitlines()
        return [check_form(_opened(line), dict) for line in lines]

    def verify(self) -> dict[str, Any]:
        """Check the ledger. For auditors."""
        return check_form(self._json("POST", "/ledger/verify"), dict)

    def _decide(self, request: int, decision: str, remark: str) -> Request:
        path, body = f"/requests/{request}/{decision}", {"remark": remark}
        return read(Request, self._json("POST", path, unsure=LOOK, json=body))

    def _listed(self, path: str) -> Iterator[Any]:
        """Yield the items of a list, page after page."""
        answer = self._sent("GET", path)
        while True:
            yield from check_form(_opened(answer.text), list)
            if "next" not in answer.links:
                return
            answer = self._sent("GET", self._following(answer))

    def _following(self, answer: httpx.Response) -> str:
        """Return the address of the next page, which is the service's as the first one is."""
        found = None
        with suppress(httpx.InvalidURL):
            found = answer.url.join(answer.links["next"]["url"])
        # Whoever is asked is sent the token.
        if found is None or _place(found) != _place(self._http.base_url):
            raise NoAnswerError(STRANGER)
        return str(found)

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise InvalidError("this client is closed: make another")

    def _json(self, method: str, path: str, *, unsure: str = AGAIN, **more: Any) -> Any:
        return _opened(self._sent(method, path, unsure=unsure, **more).text, unsure=unsure)

    def _sent(self, method: str, path: str, *, unsure: str = AGAIN, **more: Any) -> httpx.Response:
        """Return an answer; where it is lost, the error says in such words what to do."""
        self._check_open()
        answer = failed = None
        try:
            answer = self._http.request(method, path, **more)
        except (*BROKEN, TypeError, ValueError) as error:
            failed = error
        # Raised outside of the block: an error of httpx holds the request, and so the token.
        if failed is not None:
            raise _in_words(failed, unsure=unsure)
        assert answer is not None
        _check(answer, unsure=unsure)
        return answer


def _checked(address: str) -> str:
    """Return the valid address of a service."""
    with suppress(httpx.InvalidURL, TypeError):
        url = httpx.URL(address)
        if url.scheme in ("http", "https") and url.host:
            return str(url).rstrip("/")
    raise InvalidError(f"{address!r} is no address of a service: it looks like {EXAMPLE}")


def _place(url: httpx.URL) -> tuple[str, str, int | None]:
    """Return who answers at an address."""
    return url.scheme, url.host, url.port


def _rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows to be sent."""
    found = list(rows) if isinstance(rows, Iterable) else [rows]
    if isinstance(rows, Mapping) or not all(isinstance(row, Mapping) for row in found):
        raise InvalidError("rows are given as a list, with the values of columns by their names")
    return [dict(row) for row in found]


def _opened(text: str, *, unsure: str = AGAIN) -> Any:
    """Return the value of JSON."""
    # What is nested without end is none of the service's either.
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    raise _stranger(unsure)


def _stranger(unsure: str) -> NoAnswerError:
    return NoAnswerError(STRANGER if unsure == AGAIN else f"{STRANGER}; {unsure}")


def _in_words(failed: Exception, *, unsure: str = AGAIN) -> ClientError:
    """Return the error of a failed connection, in words of this package."""
    if isinstance(failed, httpx.ConnectError | httpx.ConnectTimeout):
        return NoAnswerError("the service cannot be reached: check its address, and that it runs")
    if isinstance(failed, httpx.TimeoutException):
        return NoAnswerError(f"the service has not answered for {PATIENCE:g} seconds: {unsure}")
    if isinstance(failed, httpx.TransportError):
        return NoAnswerError(f"the connection to the service broke: {unsure}")
    if isinstance(failed, BROKEN):
        return _stranger(unsure)
    return InvalidError(
        "this cannot be sent: rows and choices are text, truth values and finite numbers"
    )


def _check(answer: httpx.Response, *, unsure: str = AGAIN) -> None:
    if answer.is_success:
        # Nothing that is asked of the service here comes as a page.
        if answer.headers.get("Content-Type", "").lower().startswith("text/html"):
            raise _stranger(unsure)
        return
    if answer.is_redirect:
        raise NoAnswerError("the service is at another address: take the one it is redirected to")
    try:
        refusal = answer.json()
        kind, message = KINDS.get(refusal["kind"], ClientError), str(refusal["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        kind, message = NoAnswerError, f"the service answers {answer.status_code}: {unsure}"
    else:
        # It failed, perhaps after it had done what was asked.
        if answer.is_server_error and unsure != AGAIN:
            message = f"{message}; {unsure}"
    raise kind(message)
