"""The papers' budgets are what they are: that a delta is large for so few rows is no news here."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    papers_budgets = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(papers_budgets)
