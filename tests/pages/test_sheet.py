"""The data-protection sheet: the same facts as in words, escaped, with pictures, on its own."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from test_every_kind import KINDS, release_of

from cloakgp import DPGPRegressor, Release
from cloakgp.pages.sheet import sheet_html
from cloakgp.report.describe import describe

BAD = "</dd><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_sheet_with_all_its_facts(name, monkeypatch):
    # Pictures are tried with the panels themselves, and take most of the time.
    monkeypatch.setattr("cloakgp.pages.sheet._pictures", lambda _: ())
    release = release_of(name)
    content = sheet_html(release)
    text = html.unescape(re.sub(r"<[^>]+>", "", content))
    for section in describe(release):
        assert section.title in text
        for fact in section.facts:
            assert fact.text in text
    assert "<script" not in content
    assert not re.search(r"(src|href)=\"(?!data:)", content)


def test_it_is_shown_by_a_browser_with_pictures_and_fetches_nothing(opened):
    release = replace(release_of("exact"), output_name=BAD, input_names=(BAD, "$x_1$"))
    for width in (1200, 390):
        page = opened(sheet_html(release), width=width)
        assert BAD in page.inner_text("h1")
        assert page.evaluate("[...document.images].map((each) => each.naturalWidth > 100)") == [
            True,
            True,
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    release = release_of("exact", 17)
    assert "NOT PRIVATE" in opened(sheet_html(release)).inner_text(".alarm")


@pytest.mark.parametrize("name", [name for name in KINDS if "classes" in name])
def test_probabilities_of_classes_are_drawn(name):
    content = sheet_html(release_of(name))
    assert content.count("<img") > 0
    assert content.index("<h2>Predictions") < content.index("<img")


def test_predictions_are_said_in_their_own_units():
    X = np.linspace(0, 10, 60)[:, None]
    model = DPGPRegressor(bounds=(0, 100), epsilon=5.0, delta=1e-3, learn=None)
    release = model.fit(X, 50 + 30 * np.sin(X.ravel())).release_
    assert isinstance(release, Release)
    assert "typical error" in sheet_html(release)


@pytest.mark.parametrize(
    ("settings", "middle", "told"),
    [
        ({}, "average", "average"),
        ({"output_transform": "log"}, "median", "median"),
        ({"likelihood": "counts"}, "rate", "average"),
    ],
)
def test_what_is_predicted_is_called_by_its_name(settings, middle, told):
    X = np.linspace(0, 10, 60)[:, None]
    model = DPGPRegressor(bounds=(1, 100), epsilon=5.0, delta=1e-3, learn=None, **settings)
    content = sheet_html(model.fit(X, np.round(50 + 30 * np.sin(X.ravel()))).release_)
    assert f"Dark bands hold the {middle} of such people" in content
    assert f"of the predicted {told} of people with equal inputs" in content
