"""What whoever runs the tests has set, and what decides nothing here: their terminal, their ledger.

Consoles are made when modules are imported, and tests write to any ledger that is named: this comes
before both. It stands here, not in `tests/`, for doctests too.
"""

from __future__ import annotations

import gc
import os

# Thousands of tests are collected: to look for garbage among them, again and again, is half of that
# work, and more than a little of all that comes after.
gc.disable()

# What widens, narrows or colours what commands write, in a terminal or in CI.
SHOWN = (
    *("COLUMNS", "LINES", "TERMINAL_WIDTH", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "PY_COLORS"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE", "GITHUB_ACTIONS"),
)
# Of what this package reads, what is meant for tests.
MEANT = {
    *("CLOAKGP_DATA", "CLOAKGP_EXAMPLES", "CLOAKGP_FUZZ", "CLOAKGP_HYPOTHESIS"),
    "CLOAKGP_TEST_POSTGRESQL",
}

for name in [each for each in os.environ if each.startswith("CLOAKGP_")]:
    if name not in MEANT:
        del os.environ[name]
for name in SHOWN:
    os.environ.pop(name, None)
os.environ["TERM"] = "xterm"


def pytest_collection_finish():
    """Look for garbage from here on, among what is made from here on, and less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
