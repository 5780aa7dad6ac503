import doctest
import importlib

import pytest

MODULES = (
    "jobs",
    "noise",
    "peers",
    "plots",
    "problems",
    "processes",
    "solvers",
    "store",
    "tables",
    "workloads",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"benchmarks.{name}")
    failed, _ = doctest.testmod(module)
    assert failed == 0
