"""One self-contained page: styles, scripts and data are in it, and nothing is fetched.

The page itself forbids it, too: its content policy allows what is inline, and no connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from warploom.errors import ensure
from warploom.report.theme import classes, css, stylesheet

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SHORT = 10  # letters of a word that is not broken
_DOCUMENT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style></head>
<body><main>
<div class="top"><div><p class="eyebrow">{kind}</p><h1>{title}</h1></div>
<button id="theme" type="button">Theme</button></div>
{facts}{parts}<footer>Made by warploom show. This page needs no network.</footer>
</main>
{data}<script>
{script}</script>
</body></html>
"""


@cache
def asset(name: str) -> str:
    """A style or script of this folder."""
    return (files("warploom.report") / "assets" / name).read_text(encoding="utf-8")


def page(
    kind: str,
    title: str,
    facts: Sequence[tuple[str, str, str]],
    parts: Sequence[tuple[str, str, str]],
    data: Mapping[str, Any] | None = None,
    assets: Sequence[str] = (),
    style: str = "",
) -> str:
    """`facts` are label, value and tone; `parts` are heading, note and HTML."""
    styles = ["page.css", *(name for name in assets if name.endswith(".css"))]
    scripts = ["page.js", *(name for name in assets if name.endswith(".js"))]
    return _DOCUMENT.format(
        policy=escape(_POLICY),
        title=escape(title),
        kind=escape(kind),
        style="".join([stylesheet(), *map(asset, styles), style]),
        facts=_facts(facts),
        parts="".join(_part(*part) for part in parts),
        data="" if data is None else embedded(data),
        script="".join(map(asset, scripts)),
    )


def embedded(data: Mapping[str, Any]) -> str:
    """Data for scripts; nothing in it can end the element that it is in."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>\n'


def _facts(facts: Sequence[tuple[str, str, str]]) -> str:
    rows = "".join(
        f'<div class="{tone}"><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>'
        for label, value, tone in facts
    )
    return f'<dl class="facts">{rows}</dl>\n' if rows else ""


def _part(heading: str, note: str, html: str) -> str:
    head = f"<h2>{escape(heading)}</h2>\n" if heading else ""
    said = f'<p class="note">{escape(note)}</p>\n' if note else ""
    return f"<section>{head}{said}{html}</section>\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[str | int]]) -> str:
    """Rows of text; whole numbers stand to the right, short words stay on one line."""
    looks = [_look([row[n] for row in rows]) for n in range(len(heads))]
    head = "".join(_cell("th", text, look) for text, look in zip(heads, looks, strict=True))
    body = "".join(
        "<tr>" + "".join(map(_cell, ["td"] * len(row), map(str, row), looks)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n"


def _look(column: Sequence[str | int]) -> str:
    if column and all(isinstance(each, int) for each in column):
        return "n"
    return "s" if all(len(str(each)) <= _SHORT for each in column) else ""


def _cell(tag: str, text: str, look: str) -> str:
    kind = f' class="{look}"' if look else ""
    broken = escape(text).replace("_", "_<wbr>")  # long names are broken there, if at all
    return f"<{tag}{kind}>{broken}</{tag}>"


def listing(lines: Sequence[tuple[str, str]], identity: str = "", before: int = 0) -> str:
    """Code line by line, each with attributes of its own; `before` lines are left out in front."""
    rows = "".join(
        f"<li{mark}><span>{escape(text) or '&nbsp;'}</span></li>" for text, mark in lines
    )
    name = f' id="{identity}"' if identity else ""
    return f'<div class="code" tabindex="0"><ol{name} style="--before:{before}">{rows}</ol></div>\n'


def standalone(svg: str) -> str:
    """A figure as a file: light, with its colours in it."""
    inside = (
        css("light", "svg.figure")
        + classes()
        + "svg.figure{background:var(--page)}"
        + "".join(line for line in asset("page.css").splitlines(True) if line.startswith("svg."))
    )
    return svg.replace(">", f"><style>{inside}</style>", 1) + "\n"


def stacked(svgs: Sequence[str], gap: float = 24) -> str:
    """Figures as one file, one below the other."""
    inside, below, width = [], 0.0, 0.0
    for svg in svgs:
        size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
        ensure(size, "a figure says its size")
        assert size is not None
        inside.append(svg.replace("<svg ", f'<svg y="{below:g}" ', 1))
        below, width = below + float(size[2]) + gap, max(width, float(size[1]))
    box = f'viewBox="0 0 {width:g} {below - gap:g}" width="{width:g}" height="{below - gap:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" {box}>'
    return standalone("".join([head, *inside, "</svg>"]))


def notebook(figures: Sequence[tuple[str, str]], lines: Sequence[str]) -> str:
    """Figures with captions inside somebody else's page; without any, the lines."""
    if not figures:
        return f"<pre>{escape(chr(10).join(lines))}</pre>"
    return "".join(
        f"<figure>{standalone(svg)}<figcaption>{escape(caption)}</figcaption></figure>\n"
        for svg, caption in figures
    )
