"""What all tests of experiments share.

The papers' budgets are what they are: that a delta is large for so few rows is no news here.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.datasets import DatasetUnavailableError, load_kung

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Commands write into a folder of the working directory unless they are told another."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def women():
    """The papers' table of !Kung women."""
    try:
        return load_kung(male=False)
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that needs the papers' tables where they are not to be had."""
    try:
        return (yield)
    except DatasetUnavailableError as error:
        if item.get_closest_marker("data") is None:
            raise
        pytest.skip(str(error))


@pytest.fixture
def synthetic_women(rng):
    """Makes as many women as asked for: heights grow with age."""

    def make(rows):
        age = rng.uniform(0.0, 80.0, size=rows)
        height = 70.0 + 80.0 * np.minimum(age / 18.0, 1.0) + rng.normal(scale=6.0, size=rows)
        return pd.DataFrame({"age": age, "weight": height / 3.5, "height": height, "male": 0})

    return make


def pytest_collection_modifyitems(items):
    papers_budgets = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(papers_budgets)
