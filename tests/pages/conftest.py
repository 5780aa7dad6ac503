"""Pages of HTML in a browser, where there is one."""

from __future__ import annotations

import pytest


@pytest.fixture
def opened(browser, patience, tmp_path):
    """Open a page of HTML from a file; what it fetches, or complains of, fails the test."""
    pages = []

    def open_page(content, *, width=1200):
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(content, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(1000 * patience)
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
