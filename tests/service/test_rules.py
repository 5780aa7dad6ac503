"""Rules of messages in words: what is an option of the command line, and what only looks so."""

from __future__ import annotations

import pytest

from cloakgp.service.rules import as_requested


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("--signal-variance must be positive", "signal_variance must be positive"),
        ("it takes --sql, and no file", "it takes query, and no file"),
        ("in none of the folders (cloakgp serve --tables)", None),
        ("a schema, which cloakgp schema a.csv --output height writes", None),
        ("(cloakgp ledger recover --reconciled); --delta is 0", "…; delta is 0"),
        ("column '--sql' is empty", None),
        ("missing_output (--missing-output) is refuse or drop", "missing_output is refuse or drop"),
        (
            "they count (missing_output; --missing-output): none",
            "they count (missing_output): none",
        ),
        ("say what cells count as (--missing-output)", "say what cells count as (missing_output)"),
        ("height (--person) says whose rows", "height (person) says whose rows"),
        ("leave out --by-rows; --person too", "leave out by_rows; person too"),
    ],
)
def test_options_are_told_as_fields_and_commands_stay(text, told):
    expected = text if told is None else told.replace("…", text.partition(";")[0])
    assert as_requested(text) == expected
