"""Every page of the built site (`make docs`) in a headless browser, on a phone and on a desk:
nothing reaches out of the page, no line of code is cut, links lead somewhere, search finds."""

# ruff: noqa: E501 - scripts that run in the page
from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.report.browser import Browser, Tab, find_browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"
CHROMIUM = find_browser()
WIDTHS = (320, 1400)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site yet: make docs"),
]
PAGES = sorted(path.parent.relative_to(SITE).as_posix() for path in SITE.rglob("index.html"))

# A table may scroll inside itself; nothing else may be wider than what it is in.
MISFITS = """(() => {
  const wide = document.documentElement.clientWidth, found = [];
  const name = (e) => `${e.tagName}: ${e.textContent.trim().slice(0, 50)}`;
  if (document.documentElement.scrollWidth > wide) found.push(`sideways scroll: ${document.documentElement.scrollWidth}`);
  for (const e of document.querySelectorAll(".md-content *")) {
    if (!e.checkVisibility() || e.closest("svg, table, .md-typeset__scrollwrap, .headerlink, .md-code__nav")) continue;
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    if (box.left < -0.5 || box.right > wide + 0.5) found.push(`out of the page: ${name(e)}`);
    if (getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1) found.push(`cut: ${name(e)} ${e.scrollWidth}>${e.clientWidth}`);
  }
  for (const e of document.querySelectorAll(".md-content table")) {
    const box = (e.closest(".md-typeset__table, .md-typeset__scrollwrap") || e).parentElement.getBoundingClientRect();
    if (box.right > wide + 0.5) found.push(`a table reaches out of the page: ${name(e)}`);
  }
  return found.slice(0, 12);
})()"""
LINKS = "[...document.links].map((each) => each.getAttribute('href') && each.href)"
IDS = "[...document.querySelectorAll('[id]')].map((each) => each.id)"
PICTURES = "[...document.images].filter((each) => !each.naturalWidth).map((each) => each.src)"
SEARCH = """new Promise((done) => {
  document.querySelector("[data-md-toggle=search]").click();
  const box = document.querySelector("[data-md-component=search-query]");
  box.focus(); box.value = "%s"; box.dispatchEvent(new Event("keyup", {bubbles: true})); box.dispatchEvent(new Event("input", {bubbles: true}));
  const end = Date.now() + 20000;
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map((each) => each.href);
    if (found.length || Date.now() > end) done(found); else setTimeout(look, 50);
  };
  look();
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Search asks for its index, which a browser grants to a server only."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tab(served: str) -> Iterator[Tab]:
    assert CHROMIUM is not None
    browser = Browser(CHROMIUM)
    with browser.tab(SITE / "404.html") as opened:
        yield opened
    browser.close()


def show(tab: Tab, url: str) -> None:
    tab.browser.events.clear()
    tab.call("Page.navigate", url=url)
    tab.browser.wait("Page.loadEventFired", tab.session)


def test_the_site_has_a_page_for_each_text() -> None:
    names = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert names <= {*PAGES}, "the site is old: make docs"
    assert {"reference/commands", "reference/python", "reference/records"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_its_pictures_load(page: str, served: str, tab: Tab) -> None:
    found = []
    for width in WIDTHS:
        tab.resize(width, 900)
        show(tab, f"{served}/{page}/")
        found += [f"{width} px: {each}" for each in tab.ask(MISFITS)]
    assert found == []
    assert tab.ask(PICTURES) == []
    assert [each for each in tab.complaints if "favicon" not in each] == []
    assert [each for each in tab.requests if not each.startswith(served)] == []


def test_every_link_leads_to_a_page_and_a_place_of_it(served: str, tab: Tab) -> None:
    links, places = dict[str, list[str]](), dict[str, set[str]]()
    for page in PAGES:
        show(tab, f"{served}/{page}/")
        links[page] = [each for each in tab.ask(LINKS) if each and each.startswith(served)]
        places[page] = {*tab.ask(IDS)}
    assert sum(map(len, links.values())) > 500
    lost = []
    for page, found in links.items():
        for each in found:
            split = urlsplit(each)
            path = unquote(split.path).strip("/")
            there = path.removesuffix("index.html").strip("/") or "."
            known = there in places or (SITE / path).is_file()
            place = unquote(split.fragment)
            if not known or (place and place not in places.get(there, set())):
                lost.append(f"{page}: {each}")
    assert lost == []


@pytest.mark.parametrize(
    ("asked", "page"), [("bank conflicts", "layouts"), ("peak_mb", "reference/records")]
)
def test_search_finds(asked: str, page: str, served: str, tab: Tab) -> None:
    tab.resize(1400, 900)
    show(tab, f"{served}/")
    assert any(f"/{page}/" in each for each in tab.ask(SEARCH % asked))
