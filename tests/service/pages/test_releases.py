"""Inputs of a release's page."""

from __future__ import annotations

import pandas as pd
from starlette.datastructures import QueryParams

from cloakgp import DPGPRegressor
from cloakgp.service.pages.releases import answer_of, chosen_of


def test_dates_at_the_ends_of_the_calendar_are_taken():
    days = pd.date_range("2024-01-01", periods=12, freq="D")
    model = DPGPRegressor(bounds=(0, 10), epsilon=1.0, delta=1e-6, insecure_seed=0)
    release = model.fit(pd.DataFrame({"day": days}), [5.0] * 12).release_
    for typed in ("9999-12-31", "9999-12-31T23:59:59.999999", "0001-01-01"):
        chosen = chosen_of(release, QueryParams({"x0": typed}))
        assert chosen[0].text.split("-")[1:] == typed[:10].split("-")[1:]
        assert answer_of(release, chosen).middle
