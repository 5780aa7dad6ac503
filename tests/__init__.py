"""Tests: a package, as otherwise the folder `tests` of any package that is installed would hide it."""
