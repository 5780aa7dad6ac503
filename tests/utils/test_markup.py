"""Objects show themselves in notebooks as tables that run nothing, and hold no output."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import (
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    compose,
)
from cloakgp.privacy.guesses import right_guess
from cloakgp.report.worth import accuracies
from cloakgp.utils.formatting import percent
from cloakgp.utils.markup import html_table

X, Y = np.linspace(0, 10, 30)[:, None], 0.123456789 + np.linspace(0.2, 0.7, 30)


class Tags(HTMLParser):
    """Which tags are opened and closed, and the text between them."""

    def __init__(self, markup):
        super().__init__()
        self.open, self.names, self.text = [], set(), ""
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.names.add(tag)
        assert {name for name, _ in attrs} <= {"style", "scope"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(thing):
    tags = Tags(thing._repr_html_())
    assert tags.open == []
    assert tags.names <= {
        *("div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td")
    }
    return tags.text


def test_releases_guarantees_and_plans_are_tables():
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None)
    assert "expected error" in shown(model.plan(X))
    release = model.fit(X, Y).release_
    # The one sentence comes first, and is that of the report.
    [accuracy] = accuracies(release)
    assert shown(release).startswith(f"For one person, {accuracy.for_one_person()}")
    right = percent(right_guess(release.guarantee))
    assert f"seem equally likely, is right at most {right} of the time." in shown(release.guarantee)
    assert shown(model.plan(X)).startswith("Predictions of the average of people")
    declared = DPGPRegressor(RBF(2.0), 0.04, bounds=(0, 1), epsilon=1.0).plan(X)
    assert shown(declared).startswith("For one person, predictions are typically off by")
    assert "1-differential privacy" in shown(release)
    assert "none is needed" in shown(release.guarantee)
    assert "is right at most" in shown(compose(release.guarantee, release.guarantee))
    several = DPGPMultiOutputRegressor(bounds=[(0, 1), (0, 2)], epsilon=1.0, delta=1e-3)
    together = several.fit(X, np.column_stack([Y, 2 * Y])).release_
    assert "y1 (0 to 1), y2 (0 to 2)" in shown(together)
    private = DPGPRegressorPrivateInputs(
        bounds=(0, 1), input_bounds=[(0, 10)], epsilon=1.0, delta=1e-3
    )
    assert "sums over" in shown(private.fit(X, Y).release_)
    for one in (release, together):
        assert not [value for value in Y if f"{value:.6g}" in shown(one)]


def test_names_run_nothing_and_seeds_are_told():
    model = DPGPRegressor(bounds=(0, 1), epsilon=1.0, learn=None, stages=None, insecure_seed=1)
    release = replace(model.fit(X, Y).release_, output_name="<script>alert(1)</script>\x1b[2J")
    text = shown(release)
    assert "<script>" in text
    assert "\\x1b" in text
    assert "NOT PRIVATE" in text


@pytest.mark.parametrize("rows", [(), [("a", "b"), ("1", "<2>")]])
def test_tables_have_as_many_cells_as_are_given(rows):
    markup = html_table("t", [("one", "1")], rows=rows)
    assert markup.count("<td") == 1 + sum(map(len, rows[1:]))
