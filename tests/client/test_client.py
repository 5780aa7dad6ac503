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
    NoRoomError,
    NotFoundError,
    UnknownTokenError,
    records,
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
    assert reader.plot(release.id, suffix=".svg").startswith(b"<?xml")
    assert '"signature"' in clients[Role.AUDITOR].receipt(release.id)
    assert clients[Role.AUDITOR].verify()["sound"]
    assert analyst.accounts()[0].mine == pytest.approx(0.5, rel=1e-3)


def test_what_is_refused_is_raised_by_its_kind(clients, served):
    analyst = clients[Role.ANALYST]
    table = analyst.table("diabetes")
    with pytest.raises(NoRoomError):
        analyst.request(table.id, epsilon=50, delta=1e-5, purpose="everything")
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
            assert type(error.value) is ClientError
            assert "token" not in repr(client)


def test_records_are_what_the_service_says(served):
    """Every field of a record is one of the message it is read from."""
    with httpx.Client(base_url=served[0]) as http:
        known = http.get("/api/openapi.json").json()["components"]["schemas"]
    for name in ("Account", "Table", "Plan", "Job", "Request", "Release"):
        sent = known[f"{name}View"]["properties"]
        fields = {field.name for field in dataclasses.fields(getattr(records, name))}
        assert fields <= set(sent), name
