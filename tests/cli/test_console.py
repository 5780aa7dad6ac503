"""Warnings as lines of standard error: this package's, at once and as sentences."""

from __future__ import annotations

import warnings

import pytest

from cloakgp import PrivacyParameterWarning, SparseModelWarning
from cloakgp.cli.console import print_sections, showing_warnings
from cloakgp.report.facts import Fact, Section


@pytest.mark.parametrize("category", [PrivacyParameterWarning, SparseModelWarning])
def test_ours_are_sentences_and_come_at_once(category, capsys):
    with showing_warnings():
        for _ in range(2):
            warnings.warn("a budget [bold]like[/] that", category, stacklevel=1)
            assert capsys.readouterr().err == "Warning: a budget [bold]like[/] that\n"


def test_others_stay_as_they_are(capsys):
    with pytest.warns(FutureWarning, match="not ours"), showing_warnings():
        warnings.warn("not ours", FutureWarning, stacklevel=1)
    assert "Warning: not ours" not in capsys.readouterr().err


def test_all_is_as_before_afterwards():
    before = warnings.showwarning
    with showing_warnings():
        assert warnings.showwarning is not before
    assert warnings.showwarning is before
    with pytest.raises(PrivacyParameterWarning):
        warnings.warn("an error here, as in every test", PrivacyParameterWarning, stacklevel=1)


@pytest.mark.parametrize("columns", ["0", "1", "20"])
def test_words_are_not_dropped_in_a_narrow_terminal(columns, capsys, monkeypatch):
    facts = (Fact("a label of some length", "a text that is longer than its label, and wrapped"),)
    monkeypatch.setenv("COLUMNS", columns)
    print_sections([Section("A title", facts)])
    said = capsys.readouterr().out
    for word in ("title", "length", *facts[0].text.split()):
        assert word in said
