"""The client against a service that serves."""

from __future__ import annotations

import dataclasses

import httpx
import numpy as np
import pytest
from services import serving

from cloakgp.client import (
    Client,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    JobFailedError,
    NoAnswerError,
    NoRoomError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
    UnknownTokenError,
    answers,
)
from cloakgp.ledger import Ledger
from cloakgp.release.open import load
from cloakgp.service.access import Role
from cloakgp.service.app import create_app
from cloakgp.service.context import Service
from cloakgp.service.demonstration import prepare_demonstration
from cloakgp.service.dispatch import ThreadDispatcher
from cloakgp.service.settings import Settings

QUICK = {"stages": "one", "interval": "off", "learn": "none"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service of the demonstration: its address, and a token for every role."""
    folder = tmp_path_factory.mktemp("served")
    url = str(folder / "ledger.db")
    Ledger.create(url).close()
    settings = Settings(ledger=url, data=folder / "data", workers=0)
    service = Service.open(settings)
    tokens = {each.role: each.token for each in prepare_demonstration(service)}
    app = create_app(service.with_dispatcher(ThreadDispatcher(settings)))
    with serving(app) as place:
        yield place, tokens


@pytest.fixture
def clients(served):
    address, tokens = served
    made = {role: Client(address, token) for role, token in tokens.items()}
    yield made
    for client in made.values():
        client.close()


def test_from_a_table_to_predictions(clients, tmp_path):
    analyst, reader = clients[Role.ANALYST], clients[Role.READER]
    table = analyst.table("diabetes")
    assert table.inputs == ["age", "sex", "bmi", "blood pressure"]
    plan = analyst.plan(table.id, epsilon=0.5, delta=1e-5, inputs=["bmi"])
    assert plan.releases_left >= 1
    assert not plan.needs_approval
    asked = {"epsilon": 0.5, "delta": 1e-5, "inputs": ["bmi"], "purpose": "a test", **QUICK}
    request = analyst.request(table.id, key="first", **asked)
    states = [job.state for job in analyst.watch(request.job.id)]
    assert states[-1] == "done"
    release = analyst.wait(request.id)
    assert analyst.request(table.id, key="first", **asked).id == request.id
    assert (release.person, release.output) == ("Anna", "progression")
    rows = [{"bmi": 22.0}, {"bmi": 35.0}]
    found = reader.predict(release.id, rows)
    reader.download(release.id, tmp_path / "a.cloak")
    expected = load(tmp_path / "a.cloak").predict_frame(np.array([[22.0], [35.0]]))
    assert found.columns == list(expected)
    np.testing.assert_allclose(np.array(found.rows, dtype=float), expected.to_numpy())
    questions = {"interval": 0.9, "quantiles": [0.5], "above": [150.0]}
    more = reader.predict(release.id, rows, **questions)
    oracle = load(tmp_path / "a.cloak").predict_frame(np.array([[22.0], [35.0]]), **questions)
    assert more.columns == list(oracle)
    np.testing.assert_allclose(np.array(more.rows, dtype=float), oracle.to_numpy())
    (tmp_path / "new.csv").write_text("bmi\n22\n900\n")
    where = (tmp_path / "new.csv", tmp_path / "predicted.csv")
    (remark,) = reader.predict_table(release.id, *where, **questions)
    assert "Nothing was asked there" in remark
    head, first, _ = (tmp_path / "predicted.csv").read_text().splitlines()
    assert head.split(",") == ["bmi", *oracle]
    assert float(first.split(",")[1]) == pytest.approx(oracle.iloc[0, 0], abs=1.0)
    assert reader.plot(release.id, suffix=".svg").startswith(b"<?xml")
    assert '"signature"' in clients[Role.AUDITOR].receipt(release.id)
    assert clients[Role.AUDITOR].verify()["sound"]
    assert analyst.accounts()[0].mine == pytest.approx(0.5 / 2, rel=1e-3)


def test_quantiles_and_counts_are_requested(clients):
    analyst, reader = clients[Role.ANALYST], clients[Role.READER]
    table = analyst.table("diabetes")
    asked = {"epsilon": 0.1, "delta": 1e-5, "inputs": ["bmi"], "purpose": "a test", **QUICK}
    quantiles = analyst.request(table.id, quantiles=[0.5, 0.9], **asked)
    rows = [{"bmi": 22.0, "days": 2.0}]
    found = reader.predict(analyst.wait(quantiles.id).id, rows)
    assert found.columns[3:] == ["q_90", "q_90_lower", "q_90_upper"]
    counts = analyst.request(table.id, counts=True, **asked)
    release = analyst.wait(counts.id).id
    one, two = (
        reader.predict(release, rows, quantiles=[0.5], exposure=column).rows[0]
        for column in ("", "days")
    )
    assert one[:4] == two[:4]
    assert two[4] > one[4]


def test_rows_are_kept_out_on_request(clients):
    """As a choice like others, which its request shows."""
    analyst = clients[Role.ANALYST]
    table = analyst.table("diabetes")
    asked = {"epsilon": 0.01, "delta": 1e-5, "inputs": ["bmi"], "purpose": "a test", **QUICK}
    with pytest.raises(InvalidError, match=r"calibrate.*less than 0\.5"):
        analyst.request(table.id, calibrate=0.6, **asked)
    with pytest.raises(InvalidError, match="calibrate keeps 44 rows out of the fit, too few"):
        analyst.request(table.id, calibrate=0.1, **asked)
    # It waits, and is rejected: others need the account's room.
    request = analyst.request(table.id, calibrate=0.4, **asked | {"epsilon": 1.1})
    assert analyst.show_request(request.id).choices["calibrate"] == 0.4
    clients[Role.APPROVER].reject(request.id, remark="a test")


def test_what_is_refused_is_raised_by_its_kind(clients, served):
    analyst = clients[Role.ANALYST]
    table = analyst.table("diabetes")
    with pytest.raises(NoRoomError):
        analyst.request(table.id, epsilon=15, delta=1e-5, purpose="everything")
    with pytest.raises(InvalidError, match="no column nobody"):
        analyst.request(table.id, epsilon=0.1, inputs=["nobody"], purpose="nothing")
    with pytest.raises(NotFoundError):
        analyst.show_request(999)
    with pytest.raises(ForbiddenError):
        clients[Role.READER].tables()
    with pytest.raises(UnknownTokenError), Client(served[0], "wrong") as nobody:
        nobody.releases()
    with pytest.raises(NotFoundError):
        analyst.table("none")


def test_requests_wait_for_approval_and_are_rejected(clients):
    analyst, approver = clients[Role.ANALYST], clients[Role.APPROVER]
    table = analyst.table("diabetes")
    request = analyst.request(table.id, epsilon=1.1, delta=1e-5, purpose="large")
    assert request.state == "waiting"
    with pytest.raises(JobFailedError, match="waiting"):
        analyst.wait(request.id)
    rejected = approver.reject(request.id, remark="too large")
    assert (rejected.state, rejected.remark) == ("rejected", "too large")
    with pytest.raises(ConflictError):
        approver.approve(request.id)


def test_custodians_send_tables(clients, tmp_path):
    custodian = clients[Role.CUSTODIAN]
    (tmp_path / "few people.csv").write_text("age,ill\n" + "30,no\n40,yes\n50,no\n" * 4)
    sent = custodian.upload(tmp_path / "few people.csv")
    account = custodian.accounts()[0].name
    made = custodian.register(
        name="ill", account=account, upload=sent, output="ill", classes=["no", "yes"]
    )
    assert (made.rows, made.classes) == (12, ["no", "yes"])


def test_a_service_that_does_not_answer():
    def broken(request):
        raise httpx.ConnectError("no", request=request)

    for answer in (broken, lambda _: httpx.Response(502, text="<html>")):
        transport = httpx.MockTransport(answer)
        with Client("http://127.0.0.1:1", "x", transport=transport) as client:
            with pytest.raises(ClientError) as error:
                client.releases()
            assert type(error.value) is NoAnswerError
            assert "token" not in repr(client)


def answering(answer):
    return Client("http://127.0.0.1:1", "x", transport=httpx.MockTransport(answer))


def broken(kind):
    def answer(_):
        raise kind("https://secret:x@h/")

    return answer


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (broken(httpx.ConnectError), NoAnswerError, "cannot be reached"),
        (broken(httpx.ConnectTimeout), NoAnswerError, "cannot be reached"),
        (broken(httpx.ReadTimeout), NoAnswerError, "for 300 seconds"),
        (broken(httpx.ReadError), NoAnswerError, "broke"),
        (broken(httpx.RemoteProtocolError), NoAnswerError, "broke"),
        (broken(httpx.DecodingError), NoAnswerError, "not the service"),
        (broken(httpx.TooManyRedirects), NoAnswerError, "not the service"),
        (broken(httpx.InvalidURL), NoAnswerError, "not the service"),
        (lambda _: httpx.Response(200, text="<html>"), NoAnswerError, "not the service"),
        (lambda _: httpx.Response(200, json={"id": 1}), NoAnswerError, "version of the client"),
        (lambda _: httpx.Response(200, json=[1]), NoAnswerError, "version of the client"),
        (lambda _: httpx.Response(302, headers={"Location": "x"}), NoAnswerError, "redirected"),
        (lambda _: httpx.Response(502, text="<html>"), NoAnswerError, "answers 502"),
        (
            lambda _: httpx.Response(413, json={"kind": "too-large", "message": "too large"}),
            TooLargeError,
            "too large",
        ),
        (
            lambda _: httpx.Response(503, json={"kind": "unavailable", "message": "later"}),
            UnavailableError,
            "later",
        ),
    ],
)
def test_nothing_of_httpx_is_raised(answer, kind, message):
    with answering(answer) as client:
        with pytest.raises(kind, match=message) as asked:
            client.show_request(1)
        with pytest.raises(ClientError) as watched:
            list(client.watch(1))
    for error in (asked.value, watched.value):
        assert error.__context__ is None
        assert "secret" not in str(error)


class Lost:
    """A service that takes what it is sent, and whose answers are lost."""

    def __init__(self, answer):
        self.answer, self.keys = answer, []

    def __call__(self, request):
        self.keys.append(request.headers.get("Idempotency-Key"))
        return self.answer(request)


LOST = [
    (broken(httpx.ReadTimeout), NoAnswerError),
    (broken(httpx.ReadError), NoAnswerError),
    (lambda _: httpx.Response(504, text="<html>"), NoAnswerError),
    (lambda _: httpx.Response(200, text="<html>"), NoAnswerError),
    (
        lambda _: httpx.Response(503, json={"kind": "unavailable", "message": "later"}),
        UnavailableError,
    ),
    (lambda _: httpx.Response(500, json={"kind": "unforeseen", "message": "?"}), ClientError),
]


@pytest.mark.parametrize(("answer", "kind"), LOST)
def test_a_request_whose_answer_is_lost_is_repeated_by_its_key(answer, kind):
    service = Lost(answer)
    with answering(service) as client:
        with pytest.raises(kind) as lost:
            client.request(1, epsilon=1.0, purpose="a test")
        [key] = service.keys
        assert key
        assert lost.value.key == key
        assert f"repeat it with key={key!r}" in str(lost.value)
        with pytest.raises(kind) as again:
            client.request(1, epsilon=1.0, purpose="a test", key=lost.value.key)
        with pytest.raises(kind) as other:
            client.request(1, epsilon=1.0, purpose="a test")
    assert again.value.key == key
    assert other.value.key == service.keys[2] != key
    assert service.keys[:2] == [key, key]


def test_a_request_is_repeated_by_its_error(clients, monkeypatch):
    """The first one was taken, and stays the only one."""
    analyst = clients[Role.ANALYST]
    table = analyst.table("diabetes")
    before = len(analyst.requests())
    asked = {"epsilon": 0.01, "delta": 1e-5, "inputs": ["bmi"], "purpose": "a test", **QUICK}
    send = analyst._http.request

    def lose(*args, **more):
        send(*args, **more)
        raise httpx.ReadTimeout("late")

    with monkeypatch.context() as patched:
        patched.setattr(analyst._http, "request", lose)
        with pytest.raises(NoAnswerError) as lost:
            analyst.request(table.id, **asked)
    request = analyst.request(table.id, key=lost.value.key, **asked)
    assert len(analyst.requests()) == before + 1
    analyst.wait(request.id)


def test_a_key_that_no_header_holds():
    with answering(lambda _: httpx.Response(200)) as client:
        for key in ("ä", "a\nb"):
            with pytest.raises(InvalidError, match="ASCII"):
                client.request(1, epsilon=1.0, purpose="a test", key=key)


CHANGES = {
    "rotate_token": lambda client, _: client.rotate_token(),
    "upload": lambda client, path: client.upload(path),
    "register": lambda client, _: client.register(name="a"),
    "erase": lambda client, _: client.erase(1),
    "approve": lambda client, _: client.approve(1),
    "reject": lambda client, _: client.reject(1),
    "cancel": lambda client, _: client.cancel(1),
    "begin_joint": lambda client, _: client.begin_joint("{}", purpose="a test"),
    "continue_joint": lambda client, _: client.continue_joint(1),
    "close_joint": lambda client, _: client.close_joint(1),
}
# And what may be sent again.
READS = {
    "roles": lambda client, _: client.roles(),
    "accounts": lambda client, _: client.accounts(),
    "tables": lambda client, _: client.tables(),
    "plan": lambda client, _: client.plan(1, epsilon=1.0),
    "requests": lambda client, _: client.requests(),
    "show_request": lambda client, _: client.show_request(1),
    "joint_requests": lambda client, _: client.joint_requests(),
    "joint_request": lambda client, _: client.joint_request(1),
    "read_joint_file": lambda client, _: client.read_joint_file(1, "plan.json"),
    "send_joint_file": lambda client, _: client.send_joint_file(1, "a.json", b"{}"),
    "releases": lambda client, _: client.releases(),
    "release": lambda client, _: client.release(1),
    "download": lambda client, path: client.download(1, path),
    "combine": lambda client, path: client.combine([1, 2], path),
    "receipt": lambda client, _: client.receipt(1),
    "predict": lambda client, _: client.predict(1, [{"age": 1}]),
    "predict_table": lambda client, path: client.predict_table(1, path, path),
    "plot": lambda client, _: client.plot(1),
    "events": lambda client, _: client.events(),
    "verify": lambda client, _: client.verify(),
    "wait": lambda client, _: client.wait(1),
    "watch": lambda client, _: list(client.watch(1)),
}
# Answers without JSON, which these take as they are.
CONTENT = (
    *("read_joint_file", "send_joint_file", "download", "combine", "receipt", "plot"),
    "predict_table",
)
# These return records of any fields.
RECORDS = ("events", "verify")


@pytest.mark.parametrize("method", [*CHANGES, *READS])
def test_what_to_do_where_an_answer_is_lost(method, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a")
    told = "look before you repeat it" if method in CHANGES else "try again"
    for answer, _ in LOST[:3]:
        with answering(answer) as client, pytest.raises(NoAnswerError, match=told):
            (CHANGES | READS)[method](client, path)


@pytest.mark.parametrize("method", [*CHANGES, *READS])
def test_answers_that_are_not_the_services(method, tmp_path):
    path = tmp_path / "table.csv"
    page = httpx.Response(200, html="<html>sign in: 12345</html>")
    sent = [page]
    if method not in CONTENT:
        texts = ["<html>sign in: 12345</html>", "5", "[5]", '"a"', "[" * 10**5]
        texts += [] if method in RECORDS else ["{}"]
        sent += [httpx.Response(200, text=text) for text in texts]
    for answer in sent:
        path.write_text("a")
        client = answering(lambda _, answer=answer: answer)
        with client, pytest.raises(NoAnswerError) as caught:
            (CHANGES | READS)[method](client, path)
        assert "12345" not in str(caught.value)
        assert caught.value.__context__ is None
        assert path.read_text() == "a"


@pytest.mark.parametrize("rows", [[5], 5, {"age": 5}, ["age"], [[1.0]]])
def test_rows_that_are_none(rows):
    with (
        answering(lambda _: httpx.Response(200)) as client,
        pytest.raises(InvalidError, match="rows are given as a list"),
    ):
        client.predict(1, rows)


def test_a_client_that_is_closed():
    client = answering(lambda _: httpx.Response(200))
    client.close()
    for ask in (client.tables, lambda: list(client.watch(1))):
        with pytest.raises(InvalidError, match="closed"):
            ask()


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/x",
        "//evil.example/x",
        "http://127.0.0.1:2/api/releases",
        "https://127.0.0.1:1/api/releases",
        "http://[",
    ],
)
def test_the_token_goes_to_nobody_else(link):
    asked = []

    def answer(request):
        asked.append(request.url.host)
        return httpx.Response(200, json=[], headers={"Link": f'<{link}>; rel="next"'})

    with answering(answer) as client, pytest.raises(NoAnswerError, match="not the service"):
        client.releases()
    assert asked == ["127.0.0.1"]


@pytest.mark.parametrize("address", ["", "releases", "ftp://x", "http://", "http://x:y", None, 3])
def test_addresses_of_nothing(address):
    with pytest.raises(InvalidError, match="looks like https"):
        Client(address, "x")


def test_tokens_that_are_none(monkeypatch):
    monkeypatch.delenv("CLOAKGP_TOKEN", raising=False)
    with pytest.raises(UnknownTokenError, match="CLOAKGP_TOKEN"):
        Client("http://127.0.0.1:1")
    for token in ("a\nb", "ä", "a b"):
        with pytest.raises(InvalidError, match="no token"):
            Client("http://127.0.0.1:1", token)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("nan"), object()])
def test_what_cannot_be_sent(value):
    with (
        answering(lambda _: httpx.Response(200)) as client,
        pytest.raises(InvalidError, match="finite numbers"),
    ):
        client.predict(1, [{"age": value}])


def test_records_are_what_the_service_says(served, patience):
    """Every field of a record is one of the message it is read from."""
    with httpx.Client(base_url=served[0], timeout=patience) as http:
        known = http.get("/api/openapi.json").json()["components"]["schemas"]
    for name in ("Account", "Table", "Plan", "Job", "Request", "Release"):
        sent = known[f"{name}View"]["properties"]
        fields = {field.name for field in dataclasses.fields(getattr(answers, name))}
        assert fields <= set(sent), name


def test_lists_are_whole_however_long_they_are():
    pages = {None: [2, 1], "1": [0]}

    def answer(request):
        before = request.url.params.get("before")
        link = {"Link": '</api/requests?before=1>; rel="next"'} if before is None else {}
        assert request.url.path == "/api/requests"
        listed = [{**dict.fromkeys(names), "id": number} for number in pages[before]]
        return httpx.Response(200, json=listed, headers=link)

    names = [field.name for field in dataclasses.fields(answers.Request)]
    with Client("http://127.0.0.1", "a", transport=httpx.MockTransport(answer)) as client:
        assert [each.id for each in client.requests()] == [2, 1, 0]


def test_a_token_is_replaced_and_what_was_done_is_read(served):
    address, tokens = served
    with Client(address, tokens[Role.AUDITOR]) as auditor:
        token = auditor.rotate_token(grace_hours=1)
        assert token != tokens[Role.AUDITOR]
        events = auditor.events()
        assert events[-1]["what"] == "token replaced"
        assert auditor.events(after=events[-1]["id"]) == []
    with Client(address, token) as auditor:
        assert auditor.roles() == ["auditor"]
