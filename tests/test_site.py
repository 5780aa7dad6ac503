"""The site: built without a warning, whole without a network, and found by its search.

Examples of the gallery are not run here: `make docs` does. To build it takes as long as 300 tests.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import cloakgp

pytestmark = pytest.mark.slow

PROJECT = Path(cloakgp.__file__).parents[2]
# What a page loads by itself; links to elsewhere are for readers to follow.
LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"'
    r'|<link[^>]*rel="(?:stylesheet|preload|icon)"[^>]*href="([^"]+)"'
)
OF_STYLES = re.compile(r"""url\(["']?([^"')]+)|@import\s+["']([^"']+)""")
ESTIMATORS = (
    "DPGPRegressor",
    "DPGPClassifier",
    "DPGPQuantileRegressor",
    "DPGPMultiOutputRegressor",
    "DPGPRegressorPrivateInputs",
    "DPGPClassifierPrivateInputs",
    "DPGridSearchCV",
)
# What one would look for, and the page that explains it.
EXPLAINED = {
    "bounds": "how-to/bounds.html",
    "quantiles": "how-to/quantiles.html",
    "counts": "how-to/counts.html",
    "categories": "how-to/categories.html",
    "classes": "how-to/classes.html",
    "streams": "how-to/streams.html",
    "install": "install.html",
    "ledger": "ledger.html",
    "glossary": "glossary.html",
    "DPGPRegressor": "api/cloakgp.DPGPRegressor.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, from a copy of its sources: what is generated beside them is not left behind."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed (the extra docs)")
    folder = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("api", "auto_examples", "sg_execution_times.rst")
    shutil.copytree(PROJECT / "docs", folder / "docs", ignore=made)
    for beside in PROJECT.iterdir():
        # Pages that are included are looked for beside the copy.
        if beside.suffix == ".md":
            shutil.copy(beside, folder)
        elif beside.name != "docs" and not beside.name.startswith("."):
            (folder / beside.name).symlink_to(beside)
    # Millions of nodes make collecting garbage a quarter of the work.
    build = "import gc; gc.disable(); from sphinx.cmd.build import main; raise SystemExit(main())"
    told = ["-W", "--keep-going", "-q", "-b", "html", "-D", "plot_gallery=0", "docs", "out"]
    built = subprocess.run(
        [sys.executable, "-c", build, *told],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return folder / "out"


def pages(site):
    return [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]


def test_nothing_is_loaded_from_elsewhere(site):
    elsewhere = []
    for page in pages(site):
        found = LOADED.findall(page.read_text(encoding="utf-8"))
        elsewhere += [(page.name, name) for pair in found for name in pair if "//" in name]
    for sheet in site.rglob("*.css"):
        found = OF_STYLES.findall(sheet.read_text(encoding="utf-8"))
        elsewhere += [
            (sheet.name, name) for pair in found for name in pair if name.startswith(("http", "//"))
        ]
    assert elsewhere == []


def test_formulas_are_typeset_with_the_font_that_is_there(site):
    for page in (PROJECT / "docs" / "mathematics").glob("*.rst"):
        if page.stem == "index":
            continue
        text = (site / "mathematics" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') >= 2
        written = page.read_text(encoding="utf-8")
        stated = len(re.findall(r":math:|\.\. math::", written))
        assert text.count("<math ") >= stated
        assert r"\frac" not in re.sub(r"<annotation.*?</annotation>", "", text, flags=re.S)
    font = site / "_static" / "formulas.woff"
    assert font.read_bytes().startswith(b"wOFF")
    assert font.name in (site / "_static" / "site.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_page_of_an_estimator_begins_with_an_example(site, name):
    text = (site / "api" / f"cloakgp.{name}.html").read_text(encoding="utf-8")
    page = text[text.index("<article") :]
    example = page.index("&gt;&gt;&gt;")
    assert page.index(">Examples<") < example < page.index(">Parameters")


@pytest.fixture
def address(site):
    """Where the site is served, to this machine alone."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    served = threading.Thread(target=server.serve_forever)
    served.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    served.join()
    server.server_close()


def test_the_search_finds_first_what_explains(browser, address, patience):
    page = browser.new_page()
    page.set_default_timeout(1000 * patience)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for words, expected in EXPLAINED.items():
        page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
        page.wait_for_selector("#search-results ul.search li a")
        # Pages are listed once their summaries came.
        page.wait_for_function("() => !document.querySelector('#search-progress')?.innerText")
        first = page.query_selector("#search-results ul.search li a").get_attribute("href")
        assert first.partition("?")[0].partition("#")[0] == expected, words
    assert all(url.startswith(address) for url in asked)
    page.close()


def test_a_formula_is_as_wide_as_its_parts_and_in_its_font(browser, address, patience):
    page = browser.new_page()
    page.set_default_timeout(1000 * patience)
    page.goto(f"{address}/mathematics/calibration.html")
    assert page.evaluate("document.fonts.load('16px Formulas').then((found) => found.length)") == 1
    fraction, whole = (
        page.locator(f"div.formula {part}").first.bounding_box() for part in ("mfrac", "math")
    )
    # A fraction is higher than a line of the text around it.
    line = page.evaluate("parseFloat(getComputedStyle(document.body).lineHeight)")
    assert fraction["height"] > 1.2 * line
    assert whole["width"] > fraction["width"] > 0
    page.close()
