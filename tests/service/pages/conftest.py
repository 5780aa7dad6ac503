"""Pages of a service, and browsers that have signed in."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from visitors import Visitor

from cloakgp.service.app import create_app


@pytest.fixture
def app(service):
    return create_app(service)


@pytest.fixture
def visit(app, tokens):
    """Sign in as somebody of a role."""

    def signed_in(role, token=None):
        client = TestClient(app, base_url="http://127.0.0.1")
        visitor = Visitor(client)
        visitor.sign_in(token or tokens[role])
        return visitor

    return signed_in
