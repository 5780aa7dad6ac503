"""Baselines have one name in the package's documents, and can be imported from it."""

from __future__ import annotations

import subprocess
import sys

import cloakgp
import cloakgp.estimators.baselines as kept
from cloakgp.baselines import DPHistogramRegressor


def test_they_are_those_of_the_estimators():
    assert DPHistogramRegressor is kept.DPHistogramRegressor
    assert cloakgp.baselines.__all__ == kept.__all__
    assert all(getattr(cloakgp.baselines, name) is getattr(kept, name) for name in kept.__all__)


FRESHLY = """
import sys

for first in (
    "from cloakgp.baselines import DPMeanRegressor",
    "import cloakgp; cloakgp.baselines.DPMeanRegressor",
    "from cloakgp import baselines; baselines.DPMeanRegressor",
):
    # What others imported before decides nothing: theirs are other packages.
    for name in [name for name in sys.modules if name.partition(".")[0] == "cloakgp"]:
        del sys.modules[name]
    exec(first, {})
"""


def test_they_can_be_imported_before_all_else():
    subprocess.run([sys.executable, "-c", FRESHLY], check=True)
