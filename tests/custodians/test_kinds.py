"""Kinds of outputs: quantiles, counts with exposures and transformed outputs, as of one table."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from quiet_noise import silence
from small_plans import NAMES, site_at

from cloakgp import DPGPQuantileRegressor, DPGPRegressor, PrivacyParameterWarning, Release
from cloakgp.custodians import CustodiansError, MemoryExchange, Plan, simulate
from cloakgp.custodians.coordinator import Coordinator
from cloakgp.custodians.files import question_file
from cloakgp.custodians.request import Request
from cloakgp.data import ArrayRows
from cloakgp.models.transforms import OutputTransform

N = 36
RNG = np.random.default_rng(3)
X = RNG.uniform(0.0, 10.0, size=(N, 1))
AMOUNTS = np.exp(1.5 + np.sin(X[:, 0]) + 0.2 * RNG.normal(size=N))
YEARS = RNG.uniform(0.5, 4.0, size=N)
COUNTS = RNG.poisson(YEARS * np.exp(np.sin(X[:, 0]))).astype(float)
# Nobody is at two sites; as many rows as come.
WHOSE = np.array([f"{row % 3} {row % 7}" for row in range(N)])
SETTINGS = {"epsilon": 5.0, "delta": 1e-5, "inducing": 4, "gap": 0.1, "noise": "gaussian"}


@pytest.fixture
def _quiet(monkeypatch):
    silence(monkeypatch)


def of_quantiles(**changed):
    return DPGPQuantileRegressor(
        **{"quantiles": (0.25, 0.75), "bounds": (0.1, 50.0), **SETTINGS, **changed}
    )


def of_counts(**changed):
    return DPGPRegressor(**{"likelihood": "counts", "bounds": (0, 30), **SETTINGS, **changed})


def of_amounts(**changed):
    return DPGPRegressor(
        **{"bounds": (0.1, 50.0), "output_transform": "log", **SETTINGS, **changed}
    )


def order_of(inputs):
    """The order of rows of all sites, each of which sends its own by their inputs."""
    parts = [np.arange(part, N, 3) for part in range(3)]
    return np.concatenate([part[np.lexsort(inputs[part].T[::-1])] for part in parts])


def joint(model, inputs, outputs, *, names=("x",), persons=False, **changed):
    """The release of three sites, and that of one table."""
    given = {"exposure_name": "years"} if "years" in names else {}
    if persons:
        given |= {"person_name": "who", "rows_of_person": N, "sites_of_person": 1}
    plan = Plan.of(model, sites=NAMES, input_names=names, colluding=0, **{**given, **changed})
    assert Plan.from_bytes(plan.to_bytes()) == plan

    def rows(part):
        return ArrayRows(
            inputs[part],
            outputs[part],
            groups=WHOSE[part].tolist() if persons else None,
            input_names=names,
            jobs=1,
        )

    tables = {name: rows(slice(part, None, 3)) for part, name in enumerate(NAMES)}
    exposed = {"exposure": "years"} if "years" in names else {}
    with warnings.catch_warnings(action="ignore", category=PrivacyParameterWarning):
        found = simulate(plan, tables)
        alone = plan.estimator().fit_rows(rows(order_of(inputs)), **exposed).release_
    return found, alone


CASES = {
    "quantiles": (of_quantiles(), X, AMOUNTS, ("x",)),
    "counts": (of_counts(), X, COUNTS, ("x",)),
    "counts with exposures": (
        of_counts(),
        np.column_stack([YEARS, X[:, 0]]),
        COUNTS,
        ("years", "x"),
    ),
    "amounts": (of_amounts(interval=False), X, AMOUNTS, ("x",)),
}


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize(
    ("case", "persons"),
    [*((case, False) for case in CASES), ("quantiles", True), ("counts with exposures", True)],
)
def test_the_release_is_that_of_one_table(case, persons):
    """But for the rounding of each site's sums."""
    model, inputs, outputs, names = CASES[case]
    found, alone = joint(model, inputs, outputs, names=names, persons=persons)
    assert len(found.measurements) == len(alone.measurements)
    # Which overdispersions stand for what answers leave open is searched: that magnifies rounding.
    near = 2e-3 if case.startswith("counts") else 1e-4
    for one, other in zip(found.measurements, alone.measurements, strict=True):
        assert one.noise_sd == pytest.approx(other.noise_sd, rel=near)
        values = np.abs(one.answers.values), np.abs(other.answers.values)
        np.testing.assert_allclose(*values, rtol=near, atol=near)
    points = np.linspace(1.0, 9.0, 5)[:, None]
    np.testing.assert_allclose(found.predict(points), alone.predict(points), rtol=near)


@pytest.mark.parametrize("case", ["quantiles", "counts with exposures"])
def test_it_is_a_release_as_any_other(case, tmp_path):
    model, inputs, outputs, names = CASES[case]
    found, alone = joint(model, inputs, outputs, names=names)
    assert found.input_names == alone.input_names
    found.save(tmp_path / "release.cloak")
    again = Release.load(tmp_path / "release.cloak")
    np.testing.assert_array_equal(again.predict([[5.0]]), found.predict([[5.0]]))


def asked_of(tmp_path, case):
    """The first question to a site of three, and what it takes to ask it."""
    model, inputs, outputs, names = CASES[case]
    exposed = {"exposure_name": "years"} if "years" in names else {}
    plan = Plan.of(model, sites=NAMES, input_names=names, colluding=0, **exposed)
    exchange = MemoryExchange()
    coordinator = Coordinator(exchange, plan)
    sites = [
        site_at(name, ArrayRows(inputs[part::3], outputs[part::3]), exchange, tmp_path / name)
        for part, name in enumerate(NAMES)
    ]
    for site in sites:
        site.step()
    with pytest.raises(CustodiansError, match="to answer"):
        coordinator.collect()
    name = question_file(1, 1, "request.cloak")
    return exchange, name, sites[0]


@pytest.mark.parametrize("case", CASES)
def test_a_question_is_read_as_it_was_written(case, tmp_path):
    exchange, name, _ = asked_of(tmp_path, case)
    request = Request.from_bytes(exchange.files[name])
    assert Request.from_bytes(request.to_bytes()).to_bytes() == request.to_bytes()
    if request.cells is not None:
        nearest = request.columns(request.cells.centres)
        np.testing.assert_array_equal(nearest, request.matrix)


@pytest.mark.parametrize(
    "changed",
    [
        {"transform": OutputTransform("log", (1e-3, 1e3))},
        {"exposure": None},
        {"exposure": 1},
    ],
)
def test_a_question_that_reads_rows_otherwise_is_refused(tmp_path, changed):
    exchange, name, site = asked_of(tmp_path, "counts with exposures")
    request = Request.from_bytes(exchange.files[name])
    changed = replace(request, reading=replace(request.reading, **changed))
    exchange.files[name] = changed.to_bytes()
    with pytest.raises(CustodiansError, match="reads rows otherwise"):
        site.step()
    assert site.folder.load().questions == {}


@pytest.mark.parametrize("changed", [{"matrix": np.ones((1, 1))}, {"cells": None}])
def test_cells_that_make_no_sense_are_refused(tmp_path, changed):
    exchange, name, _ = asked_of(tmp_path, "quantiles")
    request = Request.from_bytes(exchange.files[name])
    with pytest.raises(CustodiansError, match="cannot be read"):
        Request.from_bytes(replace(request, **changed).to_bytes())


@pytest.mark.parametrize(
    ("model", "exposure"), [(of_amounts(), "x"), (of_counts(), "years"), (of_quantiles(), "x")]
)
def test_exposures_that_make_no_sense_are_refused(model, exposure):
    with pytest.raises(CustodiansError, match="of rows with counts"):
        Plan.of(model, sites=NAMES, input_names=["x"], exposure_name=exposure)
