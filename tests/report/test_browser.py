"""Pages in a headless browser: they ask for nothing, complain of nothing, fit, can be read, and a
value is traced end to end by pointer and by keyboard, as the evaluator says it goes."""

# ruff: noqa: E501 - scripts that run in the page
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Browser, Tab, find_browser
from tests.report.pages import data_of, memory_of, page_of

CHROMIUM = find_browser()
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"
)

# Boxes that reach out of the page or of what they are in, and texts that lie on one another.
MISFITS = """(() => {
  const wide = document.documentElement.clientWidth, found = [];
  const seen = (e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const name = (e) => `${e.tagName}.${e.className.baseVal ?? e.className}:${e.textContent.slice(0, 30)}`;
  if (document.documentElement.scrollWidth > wide) found.push("sideways scroll");
  const texts = [...document.querySelectorAll("h1,h2,h3,p,dt,dd,th,td,button,label,.now,.legend span,.r>span,.r>b,li>span,figcaption")]
    .filter((e) => seen(e) && e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) > 0);
  for (const e of texts) {
    const box = e.getBoundingClientRect();
    if (box.left < -0.5 || box.right > wide + 0.5) found.push(`out of the page: ${name(e)}`);
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && !e.closest(".now")) found.push(`clipped: ${name(e)} ${e.scrollWidth}>${e.clientWidth}`);
  }
  for (const e of document.querySelectorAll(".box")) if (seen(e) && e.scrollHeight > e.clientHeight + 1) found.push(`cut below: ${name(e)}`);
  const leaves = texts.filter((e) => ![...e.children].some((c) => texts.includes(c)));
  const boxes = leaves.map((e) => [e, e.getBoundingClientRect()]).filter(([, b]) => b.width && b.height).sort((a, b) => a[1].top - b[1].top);
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const [a, p] = boxes[i], [b, q] = boxes[j];
    if (q.top > p.bottom - 1.5) break;
    if (a.contains(b) || b.contains(a)) continue;
    if (p.left < q.right - 1.5 && q.left < p.right - 1.5 && !a.closest(".code") && !b.closest(".code")) found.push(`overlap: ${name(a)} | ${name(b)}`);
  }
  return found.slice(0, 12);
})()"""

# Texts with less than 4.5:1 against what is behind them, and cells with less than 3:1 against it.
PALE = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const lum = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, style = getComputedStyle(e);
    if (!walk.currentNode.textContent.trim() || !e.checkVisibility() || parseFloat(style.fontSize) === 0 || ["SCRIPT", "STYLE", "TITLE"].includes(e.tagName)) continue;
    const svg = e.closest("svg");
    const ink = parse(svg ? style.fill : style.color);
    let ground = behind(svg ? svg.parentElement : e);
    const under = svg && e.previousElementSibling;
    if (under && under.tagName === "rect" && under.getAttribute("class") && under.getAttribute("class") !== "empty") {
      const fill = parse(getComputedStyle(under).fill); if (ratio(parse(style.fill), fill) >= 4.5) continue;
      const a = under.getBoundingClientRect(), b = e.getBoundingClientRect();
      if (b.left >= a.left - 2 && b.right <= a.right + 2 && b.top >= a.top - 3 && b.bottom <= a.bottom + 3) ground = fill;
    }
    const r = ratio(ink, ground);
    if (r < 4.5) found.add(`text ${r.toFixed(2)}: ${e.tagName}.${e.className.baseVal ?? e.className} ${e.textContent.slice(0, 24)}`);
  }
  for (const e of document.querySelectorAll(".grid b:not(.empty),.legend i")) {
    const r = ratio(behind(e), behind(e.parentElement));
    if (r < 3) found.add(`mark ${r.toFixed(2)}: ${e.className}`);
  }
  return [...found].slice(0, 12);
})()"""

TRACED = """(() => {
  const flow = document.querySelector(".flow");
  const panels = [...flow.querySelectorAll(".panel")].map((p) => [...p.querySelectorAll("b")]);
  const marked = [];
  panels.forEach((cells, p) => cells.forEach((cell, c) => {
    for (const name of ["back", "fwd", "here"]) if (cell.classList.contains(name)) marked.push([p, c, name]);
  }));
  return {marked, said: document.getElementById("trace").textContent};
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None
    started = Browser(CHROMIUM)
    yield started
    started.close()


def cell_at(panel: int, cell: int) -> str:
    return f"document.querySelectorAll('.flow .panel')[{panel}].querySelectorAll('b')[{cell}]"


def hover(tab: Tab, panel: int, cell: int) -> dict[str, Any]:
    """Points at a cell, from elsewhere: a pointer that rests where it was points at nothing new."""
    tab.hover(1, 1)
    at = cell_at(panel, cell)
    box = tab.ask(
        f"({at}.scrollIntoView({{block: 'center'}}), "
        f"(({{left, top, width, height}}) => [left + width / 2, top + height / 2])"
        f"({at}.getBoundingClientRect()))"
    )
    tab.hover(*box)
    found: dict[str, Any] = tab.ask(TRACED)
    return found


def back_in_memory(data: dict[str, Any], traced: dict[str, Any]) -> set[tuple[str, int]]:
    return {
        (data["panels"][p]["name"], c)
        for p, c, name in traced["marked"]
        if name == "back" and data["panels"][p]["kind"] == "memory"
    }


def check_tracing(tab: Tab, data: dict[str, Any]) -> None:
    """From an output, from the middle, and by keyboard: memory is what the page's data say it is,
    which `test_fill.py` compares with the evaluator."""
    last = len(data["panels"]) - 1
    for panel, cell in ((last, 1), (last, data["panels"][last]["cells"] - 2), (last - 1, 0)):
        traced = hover(tab, panel, cell)
        assert [panel, cell, "here"] in traced["marked"]
        if data["panels"][panel]["kind"] != "memory":
            assert back_in_memory(data, traced) == memory_of(data, panel, cell)
    if last > 1:
        name, element = min(memory_of(data, last, 0))
        first = next(n for n, each in enumerate(data["panels"]) if each["name"] == name)
        traced = hover(tab, first, element)
        ends = {c for p, c, kind in traced["marked"] if p == last and kind == "fwd"}
        wanted = {
            cell
            for cell in range(data["panels"][last]["cells"])
            if (name, element) in memory_of(data, last, cell)
        }
        assert ends == wanted
    tab.ask(f"{cell_at(last, 0)}.focus()")
    tab.press("ArrowRight")
    traced = tab.ask(TRACED)
    at = 1 if data["panels"][last]["columns"] > 1 else 0
    assert [last, at, "here"] in traced["marked"]
    assert back_in_memory(data, traced) == memory_of(data, last, at)
    tab.press("PageUp")
    assert [last - 1, at, "here"] in tab.ask(TRACED)["marked"]
    tab.press("Escape")


LINKED = "[...document.querySelectorAll('.linked')].map((e) => e.dataset.name)"


def check_links(tab: Tab) -> None:
    """By pointer and by keyboard: what a thing is about is lit, and nothing else."""
    count = tab.ask("document.querySelectorAll('[data-link]').length")
    assert count > 2
    for number in {0, count // 2, count - 1}:
        at = f"document.querySelectorAll('[data-link]')[{number}]"
        wanted = sorted(set(tab.ask(f"{at}.dataset.link").split()))
        tab.ask(f"{at}.focus()")
        assert sorted(tab.ask(LINKED)) == wanted
        tab.ask("document.activeElement.blur()")
        assert tab.ask(LINKED) == []
        box = tab.ask(
            f"({at}.scrollIntoView({{block: 'center'}}), "
            f"(({{left, top}}) => [left + 4, top + 4])({at}.getBoundingClientRect()))"
        )
        tab.hover(*box)
        assert sorted(tab.ask(LINKED)) == wanted
        tab.hover(1, 1)


def check_page(browser: Browser, name: str, folder: Path) -> list[str]:
    html = page_of(name).html
    file = folder / f"{name}.html"
    file.write_text(html)
    found = []
    with browser.tab(file, 1600, 1000) as tab:
        for theme in ("light", "dark"):
            tab.theme(theme)
            found += [f"{name}, {theme}: {each}" for each in tab.ask(PALE)]
        for width in (1400, 320):
            tab.resize(width, 900)
            tab.ask(
                "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )
            tab.ask("scrollTo(0, 0)")
            found += [f"{name}, {width} px: {each}" for each in tab.ask(MISFITS)]
            if 'class="flow"' in html:
                check_tracing(tab, data_of(html))
            if "data-link=" in html:
                check_links(tab)
        found += [f"{name}: console: {each}" for each in tab.complaints]
        found += [f"{name}: request: {each}" for each in tab.requests]
    return found


def test_pages(browser: Browser, tmp_path: Path) -> None:
    names = ("small", "impossible", "ptx", "mapping", "nest", "search")
    assert [each for name in names for each in check_page(browser, name, tmp_path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transposition", "stencil"])
def test_large_pages(browser: Browser, tmp_path: Path, name: str) -> None:
    assert check_page(browser, name, tmp_path) == []


@pytest.mark.slow
def test_a_large_transposition_is_drawn_soon(browser: Browser, tmp_path: Path) -> None:
    """32 × 16: well below the three seconds that are promised, from opening it to a page in use."""
    file = tmp_path / "page.html"
    file.write_text(page_of("large").html)
    with browser.tab(file) as tab:
        assert tab.ask("document.documentElement.dataset.ready") == "yes"
        shown = tab.ask("performance.getEntriesByType('navigation')[0].loadEventEnd")
        assert 0 < shown < 3000
    assert len(page_of("transposition").html.encode()) < 2_000_000


def test_steps_play_and_light_their_code(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of("small").html)
    with browser.tab(file) as tab:
        lit = "[...document.querySelectorAll('#code li.lit')].map((e) => e.textContent).join('\\n')"
        assert tab.ask(lit) == ""
        data = data_of(page_of("small").html)
        seen = []
        for _ in data["panels"]:
            tab.ask("document.getElementById('after').click()")
            seen.append(tab.ask("document.querySelector('.panel.now h3').textContent"))
            panel = data["panels"][len(seen) - 1]
            if panel["kind"] == "registers":
                assert f"v{len(seen) - 2}[" in tab.ask(lit)
            if panel["index"]:
                assert panel["index"] == tab.ask(
                    "document.querySelector('#about code').textContent"
                )
        assert [title.split()[-1] for title in seen] == [each["name"] for each in data["panels"]]
        assert "__shfl_sync" in tab.ask("document.getElementById('code').textContent")
        tab.ask("document.getElementById('play').click()")
        assert tab.ask("document.getElementById('play').textContent") == "Pause"
        tab.ask("document.getElementById('play').click()")
        tab.ask("document.querySelector('[data-mode=moves]').click()")
        across = "[...document.querySelectorAll('.flow:not(.heat) .panel')].map((p) => p.querySelectorAll('b.across').length)"
        counts = [each["moves"].count("a") for each in data["panels"]]
        assert tab.ask(across) == counts
        assert max(counts) > 0
        assert tab.ask(PALE) == []
        assert tab.complaints == []
