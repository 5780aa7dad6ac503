"""What all tests of experiments share.

The papers' budgets are what they are: that a delta is large for so few rows is no news here.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Commands write into a folder of the working directory unless they are told another."""
    monkeypatch.chdir(tmp_path)


def pytest_collection_modifyitems(items):
    papers_budgets = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(papers_budgets)
