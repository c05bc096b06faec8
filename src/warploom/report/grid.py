"""A grid of coloured cells with words on them: as HTML that shrinks with the page, as a drawing.

Fills and heat maps are grids. Where a page is too narrow for the words, the colours stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warploom.report.svg import Drawing

_LETTER = 6.3  # pixels of a letter in a cell
_NARROWEST, _TALL, _GAP = 17, 17, 1
_HEAD, _AXES = 44, 35  # above a grid that is drawn: title, detail, labels of the axes


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in row-major order; `kinds` are classes of the theme, "" for a cell with nothing in it.

    The last row may be short. `told` is what a pointer is told of a cell, where there is more.
    `across` and `down` say what columns and rows are: registers, banks, lanes.
    """

    title: str
    detail: str
    columns: int
    rows: tuple[str, ...]
    heads: tuple[str, ...]
    kinds: tuple[str, ...]
    texts: tuple[str, ...]
    told: tuple[str, ...] = ()
    across: str = ""
    down: str = ""

    @property
    def axes(self) -> str:
        """The labels of both axes, in one line."""
        named = ((self.across, "→"), (self.down, "↓"))
        return ", ".join(f"{word} {arrow}" for word, arrow in named if word)

    @property
    def letters(self) -> int:
        return max(map(len, self.texts), default=1)

    @property
    def cell_width(self) -> float:
        return max(_NARROWEST, self.letters * _LETTER + 3)

    @property
    def label_width(self) -> float:
        return max((len(name) for name in self.rows), default=1) * _LETTER + 8

    @property
    def width(self) -> float:
        return self.label_width + self.columns * (self.cell_width + _GAP)

    @property
    def panel_width(self) -> float:
        """With its heading, and a rim."""
        return max(self.width, 7.6 * len(self.title), 100) + 12

    @property
    def mark(self) -> str:
        """The class that grids of the same measures have."""
        return f"n{self.columns}l{self.letters}r{max(map(len, self.rows), default=1)}"

    @property
    def rule(self) -> str:
        """When the words of the cells do not fit any more."""
        least = self.label_width + self.columns * (self.letters * _LETTER + 2 * _GAP)
        inside = f".{self.mark} b,.{self.mark} .head span{{font-size:0}}"
        return f"@container (max-width:{least:.0f}px){{{inside}}}\n"

    def html(self, extra: str = "") -> str:
        """A panel of a page."""
        style = (
            f"--n:{self.columns};--label:{self.label_width:.0f}px;"
            f"width:min(100%,{self.panel_width:.0f}px)"
        )
        detail = f"<p>{escape(self.detail)}</p>" if self.detail else ""
        detail += f'<p class="axes">{escape(self.axes)}</p>' if self.axes else ""
        heads = "".join(f"<span>{escape(head)}</span>" for head in self.heads)
        first = f'<div class="r head"><span></span>{heads}</div>' if heads else ""
        rows = "".join(map(self._row, range(len(self.rows))))
        return (
            f'<section class="panel" style="{style}"{extra}><header><h3>{escape(self.title)}</h3>'
            f'{detail}</header><div class="grid {self.mark}" role="grid" '
            f'style="max-width:{self.width:.0f}px" aria-label="{escape(self.title)}">'
            f"{first}{rows}</div></section>\n"
        )

    def _row(self, row: int) -> str:
        cells = "".join(
            f'<b class="{self.kinds[at] or "empty"}"{self._title(at)}>{escape(self.texts[at])}</b>'
            for at in self._cells(row)
        )
        return f'<div class="r" role="row"><span>{escape(self.rows[row])}</span>{cells}</div>'

    def _title(self, at: int) -> str:
        return f' title="{escape(self.told[at])}"' if self.told and self.told[at] else ""

    def _cells(self, row: int) -> range:
        return range(row * self.columns, min(len(self.texts), (row + 1) * self.columns))

    def draw(self, drawing: Drawing, x: float, y: float) -> float:
        """Draws it there; the x where it ends."""
        drawing.text(x, y + 10, self.title, size=12)
        if self.detail:
            drawing.text(x, y + 23, self.detail, "label", size=9)
        if self.axes:
            drawing.text(x, y + _AXES, self.axes, "label", size=9)
        for row, name in enumerate(self.rows):
            top = y + _HEAD + row * (_TALL + _GAP)
            drawing.text(x + self.label_width - 6, top + 12, name, "label", "end", 10)
            for column, at in enumerate(self._cells(row)):
                left = x + self.label_width + column * (self.cell_width + _GAP)
                told = self.told[at] if self.told else ""
                drawing.cell(
                    left, top, self.cell_width, _TALL, self.kinds[at] or "empty", self.texts[at],
                    told,
                )  # fmt: skip
        return x + max(self.width, len(self.title) * 8, len(self.detail) * 6, len(self.axes) * 6)


def side_by_side(title: str, grids: Sequence[Grid], widest: float = 1500) -> str:
    """Grids in rows, as an SVG figure."""
    drawing, x, y, tallest = Drawing(title), 6.0, 6.0, 0.0
    for grid in grids:
        if x > 6 and x + grid.width > widest:
            x, y, tallest = 6.0, y + tallest + 24, 0.0
        x = grid.draw(drawing, x, y) + 24
        tallest = max(tallest, _HEAD + len(grid.rows) * (_TALL + _GAP))
    return drawing.svg()


def rules(grids: Sequence[Grid]) -> str:
    return "".join(sorted({grid.rule for grid in grids}))


def columns_of_text(grids: Sequence[Grid], rows: Sequence[int], width: int) -> list[str]:
    """These rows of grids of one height, side by side as text; what is too wide is left out."""
    blocks: list[list[str]] = []
    taken = 0
    for grid in grids:
        wide = max(grid.letters, 1)
        lines = [grid.title, *(_line(grid, row, wide) for row in rows)]
        across = max(map(len, lines))
        if taken and taken + across + 3 > width:
            blocks.append(["…", *("" for _ in rows)])
            break
        taken += across + 3
        blocks.append([line.ljust(across) for line in lines])
    return ["   ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]


def _line(grid: Grid, row: int, wide: int) -> str:
    return " ".join(grid.texts[at].rjust(wide) for at in grid._cells(row))
