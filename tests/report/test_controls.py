"""Public inputs as people know them: rows made from what is typical are rows like the table's."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cloakgp import DPGPRegressor
from cloakgp.report.controls import controls_of, raw_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-3, "learn": None, "stages": None}


def fitted(table):
    model = DPGPRegressor(bounds=(0, 1), **BUDGET)
    return model.fit(table, np.linspace(0, 1, len(table))).release_


def test_raw_columns_are_chosen_in_their_own_terms():
    table = pd.DataFrame(
        {
            "age": [20, 30, 40, 80, 30, 30],
            "job": ["cook", "clerk", "cook", "cook", "clerk", "smith"],
            "sure": [True, False, True, True, True, False],
            "when": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-02-01"] * 2),
            "lat": [51.3, 51.4, 51.5, 51.6, 51.5, 51.5],
            "lon": [-0.1, 0.0, 0.1, 0.1, 0.0, 0.0],
        }
    )
    release = fitted(table)
    controls = {each.name: each for each in controls_of(release)}
    assert list(controls) == ["age", "job", "sure", "when", "lat", "lon"]
    age, job, when = controls["age"], controls["job"], controls["when"]
    assert (age.lo, age.hi, age.typical, age.whole) == (20, 80, 30, True)
    assert job.levels[int(job.typical)] == "cook"
    assert job.levels[-1] == "(any other)"
    assert controls["sure"].levels[int(controls["sure"].typical)] in ("true", "True", "yes", "1")
    assert str(when.raw(when.lo))[:10] == "2020-01-01"
    np.testing.assert_allclose([controls["lat"].lo, controls["lat"].hi], [51.3, 51.6], atol=1e-9)
    np.testing.assert_allclose(controls["lon"].typical, 0.0, atol=1e-9)
    rows = raw_rows(release, tuple(controls.values()), {"age": np.array([20.0, 80.0])}, count=2)
    assert release.predict(rows).shape == (2,)
    assert release.schema.encode(rows).X[:, 0].tolist() == [20.0, 80.0]


def test_matrices_are_chosen_as_numbers():
    release = fitted(np.array([[0.0, 5.5], [1.0, 6.5], [4.0, 7.5]]))
    first, second = controls_of(release)
    assert (first.name, first.typical, first.whole, second.whole) == ("x1", 1.0, True, False)
    rows = raw_rows(release, (first, second), {}, count=3)
    np.testing.assert_array_equal(rows, np.tile([1.0, 6.5], (3, 1)))
