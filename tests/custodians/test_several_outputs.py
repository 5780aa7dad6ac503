"""Several private columns of a row, protected together: as of one table."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from quiet_noise import silence
from small_plans import NAMES, site_at

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.custodians import (
    Coordinator,
    CustodiansError,
    MemoryExchange,
    Plan,
    WaitingError,
    simulate,
)
from cloakgp.custodians.coordinator import release_of
from cloakgp.custodians.files import question_file
from cloakgp.custodians.request import Request
from cloakgp.data import ArrayRows
from cloakgp.ledger import Ledger
from cloakgp.ledger.imports import import_releases
from cloakgp.report.describe import describe

N = 36
X = np.linspace(0.0, 10.0, N)[:, None]
Y = np.column_stack([100.0 + 20.0 * np.sin(X[:, 0]), np.cos(X[:, 0])])
ORDER = np.concatenate([np.arange(part, N, 3) for part in range(3)])
WHOSE = np.array([f"{row % 3} {row // 9}" for row in range(N)])


def plan_of(*, persons=False, sites_of_person=1, colluding=0, **settings):
    model = DPGPMultiOutputRegressor(
        **{
            "bounds": ((70, 130), (-2, 2)),
            "epsilon": 3.0,
            "delta": 1e-5,
            "inducing": 4,
            "learn": None,
            "noise": "gaussian",
            "gap": 0.05,
            **settings,
        }
    )
    given = {}
    if persons:
        given = {
            "person_name": "who",
            "rows_of_person": N,
            "sites_of_person": sites_of_person,
        }
    return Plan.of(
        model,
        sites=NAMES,
        input_names=["x"],
        output_name="height",
        more_outputs=["score"],
        colluding=colluding,
        **given,
    )


def rows_of(part, *, persons=False):
    outputs = pd.DataFrame(Y[part], columns=["height", "score"])
    return ArrayRows(X[part], outputs, groups=WHOSE[part].tolist() if persons else None, jobs=1)


def tables_of(*, persons=False):
    return {name: rows_of(slice(part, None, 3), persons=persons) for part, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("persons", "settings"),
    [
        (False, {"stages": None, "interval": False}),
        (True, {"stages": None, "interval": False}),
        (False, {"epsilon": 8.0}),
        (False, {"stages": None, "interval": False, "noise": "laplace", "delta": 0.0}),
    ],
)
def test_the_release_is_that_of_one_table(persons, settings, monkeypatch):
    """But for the rounding of each site's sums."""
    silence(monkeypatch)
    plan = plan_of(persons=persons, **settings)
    assert Plan.from_bytes(plan.to_bytes()) == plan
    found = simulate(plan, tables_of(persons=persons))
    alone = plan.estimator().fit_rows(rows_of(ORDER, persons=persons)).release_
    assert found.columns == alone.columns
    assert found.intervals == alone.intervals
    assert found.names == ("height", "score")
    asked = zip(found.entries.measurements, alone.entries.measurements, strict=True)
    for one, other in asked:
        assert one.noise_sd == pytest.approx(other.noise_sd, rel=1e-4)
        # Of outputs that are alike, questions may be others that ask as much: turned together.
        lengths = [np.linalg.norm(each.answers.values) for each in (one, other)]
        assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)
    np.testing.assert_allclose(found.predict(X), alone.predict(X), rtol=1e-4, atol=1e-4)


def test_it_says_of_whom_it_is_and_comes_back_from_its_file():
    found = simulate(plan_of(colluding=1, stages=None), tables_of())
    again = release_of(found.to_bytes())
    assert again.custodians == found.custodians
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    facts = {fact.label: fact.text for section in describe(found) for fact in section.facts}
    assert "Its rows are of 3 custodians" in facts["custodians"]


def asked_of(tmp_path, **settings):
    exchange = MemoryExchange()
    coordinator = Coordinator(exchange, plan_of(**settings))
    sites = [site_at(name, rows, exchange, tmp_path / name) for name, rows in tables_of().items()]
    for site in sites:
        site.step()
    with pytest.raises(CustodiansError, match="to answer"):
        coordinator.collect()
    return exchange, question_file(1, 1, "request.cloak"), sites[0]


def test_a_question_that_parts_the_outputs_of_a_row_is_refused(tmp_path):
    """Each entry on its own would be protected by half of the noise that both take."""
    exchange, name, site = asked_of(tmp_path, stages=None, interval=False)
    request = Request.from_bytes(exchange.files[name])
    assert (request.together, request.count) == (2, 2 * N)
    alone = replace(request, together=1)
    with pytest.raises(CustodiansError, match="read otherwise than they are protected"):
        Request.from_bytes(alone.to_bytes())
    reading = replace(request.reading, columns=None, units=None)
    exchange.files[name] = replace(alone, reading=reading).to_bytes()
    with pytest.raises(CustodiansError, match="reads rows otherwise"):
        site.step()
    exchange.files[name] = replace(request, count=N).to_bytes()
    with pytest.raises(CustodiansError, match="another number of rows"):
        site_at(site.name, site._rows, exchange, site.folder.path).step()
    assert site.folder.load().questions == {}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (Y[:, 0], "2 private columns, and the rows have 1"),
        (np.column_stack([Y, Y]), "2 private columns, and the rows have 4"),
        (pd.DataFrame(Y, columns=["score", "height"]), "the rows have score, height"),
    ],
)
def test_a_site_with_other_private_columns_is_refused(tmp_path, outputs, message):
    exchange = MemoryExchange()
    exchange.put("plan.json", plan_of().to_bytes())
    site = site_at("west", ArrayRows(X, outputs), exchange, tmp_path)
    with pytest.raises(CustodiansError, match=message):
        site.step()
    assert exchange.get("sites/west.json") is None


@pytest.mark.parametrize("more", [[], ["score", "weight"], ["height"]])
def test_names_that_are_not_those_of_the_bounds_are_refused(more):
    model = DPGPMultiOutputRegressor(bounds=((0, 1), (0, 1)), epsilon=1.0)
    settings = {"sites": NAMES, "input_names": ["x"], "output_name": "height"}
    with pytest.raises(CustodiansError, match="name every private column once"):
        Plan.of(model, more_outputs=more, **settings)
    with pytest.raises(CustodiansError, match="name every private column once"):
        Plan.of(DPGPRegressor(bounds=(0, 1), epsilon=1.0), more_outputs=["score"], **settings)


def test_a_plan_is_read_strictly():
    content = json.loads(plan_of().to_bytes())
    with pytest.raises(CustodiansError, match="damaged"):
        Plan.from_bytes(json.dumps({**content, "more_outputs": "score"}).encode())


def test_an_import_does_not_count_again_what_a_custodian_has_counted(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.open_account("patients", epsilon=5.0, delta=1e-5)
    exchange = MemoryExchange()
    coordinator = Coordinator(exchange, plan_of(stages=None, interval=False))
    sites = [
        site_at(
            *(name, rows, exchange, tmp_path / name),
            **({"ledger": ledger, "account": "patients"} if name == NAMES[0] else {}),
        )
        for name, rows in tables_of().items()
    ]
    for _ in range(3):
        for site in sites:
            site.step()
        with suppress(WaitingError):
            release = coordinator.collect()
    sites[0].step()
    release.save(tmp_path / "a.cloak")
    account = ledger.account("patients")
    [found] = import_releases(account, [tmp_path / "a.cloak"], reason="older than the ledger")
    assert (found.charge, account.standing.charges) == (None, 1)
