"""Every page by axe-core, in light and dark, on desks and in hands; by the keyboard; on paper."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from benchmarks.screenshots import HEIGHT, NARROW, PAGES, SCHEMES, WIDE, enter, open_office, settle

axe = pytest.importorskip("axe_playwright_python")


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    with open_office(tmp_path_factory.mktemp("office")) as opened:
        yield opened


@pytest.fixture(scope="module")
def visitors(browser, office):
    """Pages of people by their role and scheme, who have signed in once."""
    entered = {}

    def visit(role, scheme, width=WIDE, **more):
        key = (role, scheme, *more)
        if key not in entered:
            entered[key] = enter(browser, office, role, color_scheme=scheme, **more)
            # Pages forbid scripts from elsewhere and `eval`; this one is of the browser's driver.
            entered[key].add_init_script(files(axe).joinpath("axe.min.js").read_text("utf-8"))
        entered[key].set_viewport_size({"width": width, "height": HEIGHT})
        entered[key].emulate_media(color_scheme=scheme)
        return entered[key]

    yield visit
    for page in entered.values():
        page.context.close()


# What else axe-core looks at does not depend on colours.
OF_COLOURS = ["color-contrast", "link-in-text-block"]


def violations(page, *, only=None):
    chosen = {"resultTypes": ["violations"], **({"runOnly": only} if only else {})}
    found = page.evaluate("(chosen) => axe.run(document, chosen)", chosen)["violations"]
    return [
        (each["id"], each["help"], [node["html"][:150] for node in each["nodes"]]) for each in found
    ]


@pytest.mark.parametrize("shown", PAGES, ids=[each.name for each in PAGES])
def test_no_page_has_a_violation(visitors, office, shown):
    """Of any rule, wide and narrow; and of those of colours in the dark."""
    page = visitors(shown.role, "light")
    settle(page, office.address_of(shown))
    # What is folded away is on the page, too.
    page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    for width in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            only = OF_COLOURS if scheme == "dark" else None
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = violations(page, only=only)
            assert found == [], f"{scheme}: {json.dumps(found, indent=1)}"


def test_a_violation_would_be_found(visitors, office):
    page = visitors(PAGES[0].role, "light")
    settle(page, office.address_of(PAGES[0]))
    page.evaluate("document.querySelector('label').style.color = 'rgb(20, 25, 31)'")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert "color-contrast" in [each[0] for each in violations(page, only=OF_COLOURS)]
    page.emulate_media(color_scheme="light")
    page.evaluate("document.querySelector('label').remove()")
    assert "label" in [each[0] for each in violations(page)]


@pytest.mark.parametrize("shown", PAGES, ids=[each.name for each in PAGES])
def test_everything_is_in_reach_of_the_keyboard_and_shows_its_focus(visitors, office, shown):
    page = visitors(shown.role, "light")
    settle(page, office.address_of(shown))
    wanted = page.evaluate(
        """[...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
        .filter((each) => each.checkVisibility() && each.type !== "hidden" && !each.disabled)
        .map((each) => each.type === "radio" ? "radio:" + each.name : each)
        .filter((each, place, all) => all.indexOf(each) === place).length"""
    )
    reached, unmarked = set(), []
    page.evaluate("document.querySelectorAll('*').forEach((each, n) => each.dataset.n = n)")
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        now = page.evaluate(
            """(() => { const on = document.activeElement, style = getComputedStyle(on);
            return on === document.body ? null : {
              n: on.type === "radio" ? "radio:" + on.name : on.dataset.n, html: on.outerHTML,
              control: on.matches("a[href], button, input, select, textarea, summary"),
              marked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
            }; })()"""
        )
        # After the last comes the window itself, and then the first.
        if now is None:
            if len(reached) == wanted:
                break
            continue
        if now["control"]:
            reached.add(now["n"])
        if not now["marked"]:
            unmarked.append(now["html"][:100])
    assert unmarked == []
    assert len(reached) == wanted


@pytest.mark.parametrize("name", ["plan", "release"])
def test_dark_pages_have_dark_pictures(visitors, office, name):
    shown = next(each for each in PAGES if each.name == name)
    corners = {}
    for scheme in SCHEMES:
        page = visitors(shown.role, scheme)
        settle(page, office.address_of(shown))
        corners[scheme] = page.evaluate(
            """(() => { const drawn = document.querySelector("main img"),
            canvas = document.createElement("canvas"), to = canvas.getContext("2d");
            to.drawImage(drawn, 0, 0); return [...to.getImageData(2, 2, 1, 1).data]; })()"""
        )
    assert min(corners["light"][:3]) > 240
    assert max(corners["dark"][:3]) < 60


def test_paper_has_no_controls_and_black_words(visitors, office):
    shown = next(each for each in PAGES if each.name == "release")
    page = visitors(shown.role, "dark")
    settle(page, office.address_of(shown))
    page.emulate_media(media="print", color_scheme="dark")
    try:
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        shown_now = page.evaluate(
            "[...document.querySelectorAll('nav, button, input[type=range], .button')]"
            ".filter((each) => each.checkVisibility()).map((each) => each.outerHTML.slice(0, 90))"
        )
        assert shown_now == []
        # A browser chooses another picture a moment after the medium changes.
        page.wait_for_function("!document.querySelector('main img').currentSrc.includes('dark')")
    finally:
        page.emulate_media(media="screen", color_scheme="dark")
