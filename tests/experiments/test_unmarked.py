"""Figures without a source: what is found, what is no measurement, and that no page has any."""

from __future__ import annotations

import pytest

from experiments.pages import StaleFigureError
from experiments.unmarked import check_marks, unmarked_figures


def test_every_decimal_figure_of_a_page_has_a_source():
    check_marks()


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        ("an error of 0.83 at ε = 1", ["0.83"]),
        ("an error of .83 at ε = 1", [".83"]),
        ("| ours | 0.83 (0.02) |", ["0.83", "0.02"]),
        ("a guess is right 73.2 % of the time", ["73.2"]),
        ("at ε = 1, 0.83 and no less", ["0.83"]),
        ("with noise at δ = 0.001, 57.7 %", ["57.7"]),
        ("a 2.6 MB file", ["2.6"]),
        ("less by −0.4", ["−0.4"]),
        ("figures of the table: 0.5\n<!-- end kept one 1 -->", ["0.5"]),
        ("(published: 0.4), 0.6 here", ["0.6"]),
        ("Values from 0.1 to 2", ["0.1"]),
    ],
)
def test_measurements_are_found(said, figures):
    assert [figure for _, figure in unmarked_figures(said)] == figures


@pytest.mark.parametrize(
    "said",
    [
        "```python\nerror = 0.83\n```",
        "  ```sh\n  cloakgp release --epsilon 0.5\n  ```",
        "`gap=0.02` accepts more",
        "<!-- begin kept one 1 -->\n| 0.83 |\n<!-- end kept one 1 -->",
        "0.83<!-- kept one 1: ours, ε = 1 -->",
        "8.7<!-- reproduced kung-1d-standard: trace --> cm",
        "at (1, 0.01), (0.5, 1e-6) and (0.1, 10⁻⁵)",
        "at ε = 0.1, 0.3 and 1",
        "an ε from 0.1 to 2",
        "a lengthscale of 0.125°",
        "the quantiles 0.1, 0.5 and 0.9",
        "| published, private | 13.3 | 9.9 |",
        "402 s (published: 402.5)",
        "theorem 5.2, corollary 3.3 and section 3.1",
        "equations 2.22 to 2.24",
        "Python 3.11, until 1.0, interpret 0.7.8",
        "at ε = 0.1 and\n0.3",
        "a lengthscale of 0.5 √D",
        "[more](docs/page-1.5.md)",
        "250 rows, 95 % intervals",
    ],
)
def test_what_is_no_measurement_needs_no_source(said):
    assert unmarked_figures(said) == []


def test_lines_are_counted_across_what_is_left_out():
    page = "```sh\na 0.1\n\nb\n```\n<!-- one\ntwo -->\nan error of 0.83"
    assert unmarked_figures(page) == [(8, "0.83")]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("at ε = 0.3 nothing", encoding="utf-8")
    return tmp_path


def test_a_page_with_a_figure_of_no_source_is_named(root):
    check_marks(root)
    for name in ("page.md", "page.rst"):
        page = root / "docs" / name
        page.write_text("one\nan error of 0.83", encoding="utf-8")
        with pytest.raises(StaleFigureError, match=rf"docs/{name}:2: 0\.83 has no source"):
            check_marks(root)
        page.unlink()
