"""Warnings as lines of standard error: this package's, at once and as sentences."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import cloakgp
from cloakgp import PrivacyParameterWarning, SparseModelWarning
from cloakgp.cli.app import app
from cloakgp.cli.console import fails_plainly, print_sections, showing_warnings
from cloakgp.report.facts import Fact, Section


@pytest.mark.parametrize("category", [PrivacyParameterWarning, SparseModelWarning])
def test_ours_are_sentences_and_come_at_once(category, capsys):
    with showing_warnings():
        for _ in range(2):
            warnings.warn("a budget [bold]like[/] that", category, stacklevel=1)
            assert capsys.readouterr().err == "Warning: a budget [bold]like[/] that\n"


def commands_in(group):
    """Every command, of groups of commands too, by its function."""
    yield from (each.callback for each in group.registered_commands)
    for each in group.registered_groups:
        yield from commands_in(each.typer_instance)


def test_every_command_shows_warnings_as_sentences(capsys):
    """Some were within a block of their own, and others printed the line of a file."""

    @fails_plainly
    def command():
        for _ in range(2):
            warnings.warn("a budget like that", PrivacyParameterWarning, stacklevel=1)

    command()
    assert capsys.readouterr().err == "Warning: a budget like that\n" * 2
    found = list(commands_in(app))
    assert len(found) > 30
    assert [each.__name__ for each in found if each.__code__ is not command.__code__] == []


def test_every_warning_is_one_of_the_package():
    package = Path(cloakgp.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py")]
    bases = [
        base for text in texts for base in re.findall(r"^class \w+Warning\((.*)\)", text, re.M)
    ]
    assert set(bases) == {"CloakWarning", "UserWarning"}
    assert bases.count("UserWarning") == 1


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
