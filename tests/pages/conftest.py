"""A browser for pages, where there is one."""

from __future__ import annotations

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Milliseconds that a browser may take on a machine that is busy with other tests.
PATIENCE = 180_000


@pytest.fixture(scope="session")
def browser():
    """Chromium without a screen; tests are skipped where none is installed."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)}")
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(
                executable_path=path, args=list(FLAGS), timeout=PATIENCE
            )
        except api.Error as error:
            pytest.skip(f"{path} does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page of HTML from a file; what it fetches, or complains of, fails the test."""
    pages = []

    def open_page(content, *, width=1200):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(content, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.heard = []
        page.on("console", lambda said: page.heard.append(said.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on("request", lambda asked: _note(page.heard, asked.url))
        page.on("dialog", lambda dialog: (page.heard.append("a dialog"), dialog.dismiss()))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_page
    heard = [said for page in pages for said in page.heard]
    for page in pages:
        page.close()
    assert heard == []


def _note(heard, url):
    if not url.startswith(("file:", "data:", "blob:")):
        heard.append(url)
