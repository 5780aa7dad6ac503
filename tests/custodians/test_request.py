"""Requests: what sites are asked is what the coordinator asks, and nothing else can be read."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from small_plans import TWO_QUESTIONS, Ward, X, plan_of

from cloakgp import PrivacyParameterWarning
from cloakgp.custodians.errors import CustodiansError
from cloakgp.custodians.request import Request


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    """Those of a fit that looks for an interval, and asks in stages, of spread and of strata."""
    plan = plan_of(**{**TWO_QUESTIONS, "interval": "auto", "learn": "map", "epsilon": 300.0})
    ward = Ward(tmp_path_factory.mktemp("sites"), plan=plan)
    with warnings.catch_warnings(action="ignore", category=PrivacyParameterWarning):
        ward.finish()
    names = [name for name in ward.exchange.files if name.endswith("request.cloak")]
    assert len(names) >= 3
    return [Request.from_bytes(ward.exchange.files[name]) for name in names]


def test_a_request_is_read_as_it_was_written(requests):
    kinds = {type(one.question).__name__ for one in requests}
    assert {"OutputBounds", "RowBands"} <= kinds
    assert any(one.rule is None for one in requests)
    for one in requests:
        again = Request.from_bytes(one.to_bytes())
        assert again.to_bytes() == one.to_bytes()
        np.testing.assert_array_equal(again.columns(X), one.columns(X))
        assert again.bound == one.bound
        assert len(one.columns(X)) == one.answers


@pytest.mark.parametrize(
    "changed",
    [
        {"longest": float("nan")},
        {"longest": 0.0},
        {"answers": 0},
        {"answers": 10**9},
        {"count": -1},
        {"attempt": 0},
        {"noise": "none"},
        {"prior": None},
    ],
)
def test_requests_that_make_no_sense_are_refused(requests, changed):
    first = next(one for one in requests if one.rule is not None)
    with pytest.raises(CustodiansError, match="cannot be read"):
        Request.from_bytes(replace(first, **changed).to_bytes())


def test_nothing_else_is_read(requests):
    content = requests[0].to_bytes()
    for damaged in (b"", content[:-30], pickle.dumps(requests[0].epsilon), b"PK"):
        with pytest.raises(CustodiansError, match="cannot be read"):
            Request.from_bytes(damaged)
    # A release is no request.
    names = zipfile.ZipFile(BytesIO(content)).namelist()
    assert all(name.endswith((".npy", ".json", ".sha256")) for name in names)
