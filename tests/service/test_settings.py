"""What a file declares about an identity provider, and the rates of requests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cloakgp
from cloakgp.service.settings import RATES, read_provider

PROJECT = Path(cloakgp.__file__).parents[2]

DECLARED = """
issuer = "https://id.example.org/realms/house"
client = "cloakgp"
address = "https://releases.example.org/"
roles_claim = "realm_access.roles"
[roles]
statisticians = "analyst"
"""


def declared(tmp_path, text):
    path = tmp_path / "provider.toml"
    path.write_text(text)
    return path


def test_a_file_declares_a_provider(tmp_path):
    provider = read_provider(declared(tmp_path, DECLARED))
    assert provider.redirect == "https://releases.example.org/sign-in/callback"
    assert provider.roles_of({"realm_access": {"roles": ["statisticians"]}}) == {"analyst"}
    assert provider.roles_of({"realm_access": "statisticians"}) == set()
    assert provider.secret() is None


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("https://id", "http://id", "issuer must begin with https"),
        ("https://releases", "http://releases", "address must begin with https"),
        ('"analyst"', '"king"', "no role 'king'"),
        ('client = "cloakgp"', "", "lacks: client"),
        ('client = "cloakgp"', 'client = "a"\nsecret = "b"', "unknown names: secret"),
        ('client = "cloakgp"', "client = 7", "must hold texts"),
        ('client = "cloakgp"', "client =", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, before, after, told):
    with pytest.raises(ValueError, match=told):
        read_provider(declared(tmp_path, DECLARED.replace(before, after)))


def test_rates_are_as_the_page_says():
    """Of the row "requests of one person" in docs/operating.md."""
    text = (PROJECT / "docs/operating.md").read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("| requests of one person")]
    told = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", row)]
    kinds = ("default", "predict", "plan", "upload", "people in two tables")
    assert told == [int(RATES[kind].partition("/")[0]) for kind in kinds]
