"""A tree of loops as rows: coloured by where each runs; as HTML, as a drawing, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warploom.report.svg import Drawing

LEVEL_WORDS = {
    "global": "blocks, or all threads",
    "thread": "threads of a block",
    "vector": "one access for several iterations",
    "serial": "one iteration after another",
    "shared": "shared memory of a block",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a tree; `kind` is a class of the theme, "" for what is no loop."""

    depth: int
    kind: str
    word: str  # what is said in the colour
    text: str
    note: str = ""


def html(rows: Sequence[Row]) -> str:
    """Rows that can be focused: the loops around one are lit with it."""
    lines = []
    for number, row in enumerate(rows):
        around = " ".join(f"row{at}" for at in [*enclosing(rows, number), number])
        chip = f'<i class="chip {row.kind}">{escape(row.word)}</i>' if row.kind else ""
        note = f"<small>{escape(row.note)}</small>" if row.note else ""
        lines.append(
            f'<div class="branch" style="--depth:{row.depth}" data-name="row{number}" '
            f'data-link="{around}" tabindex="0">{chip}<code>{escape(row.text)}</code>{note}</div>'
        )
    return f'<div class="tree">{"".join(lines)}</div>\n'


def enclosing(rows: Sequence[Row], number: int) -> list[int]:
    """The rows around a row, the outermost first."""
    found: list[int] = []
    depth = rows[number].depth
    for at in reversed(range(number)):
        if rows[at].depth < depth:
            found.append(at)
            depth = rows[at].depth
    return found[::-1]


def legend(rows: Sequence[Row]) -> str:
    used = dict.fromkeys(row.kind for row in rows if row.kind)
    parts = (f'<span><i class="{kind}"></i>{LEVEL_WORDS[kind]}</span>' for kind in used)
    return f'<p class="legend">{"".join(parts)}</p>\n'


def svg(title: str, rows: Sequence[Row]) -> str:
    drawing = Drawing(title)
    for number, row in enumerate(rows):
        x, y = 6.0 + 22 * row.depth, 6.0 + 22 * number
        if row.kind:
            wide = 6.6 * len(row.word) + 12
            drawing.cell(x, y, wide, 18, row.kind, row.word)
            x += wide + 8
        drawing.text(x, y + 13, row.text)
        if row.note:
            drawing.text(x + 6.9 * len(row.text) + 14, y + 13, row.note, "label")
    return drawing.svg()


def lines(rows: Sequence[Row]) -> list[str]:
    return [
        f"{'  ' * row.depth}{f'[{row.word}] ' if row.kind else ''}{row.text}"
        + (f"  ({row.note})" if row.note else "")
        for row in rows
    ]
