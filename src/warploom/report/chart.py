"""Bars and lines: amounts beside one another, and what grows over time, as drawings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warploom.report.svg import Drawing

_BAR, _STEP = 14, 20  # pixels: how thick a bar is, and from one to the next


@dataclass(frozen=True, slots=True)
class Bar:
    """`least` of the amount could not be less; `kind` is a class of the theme."""

    label: str
    amount: float
    words: str
    least: float | None = None
    kind: str = "across"


def bars(title: str, rows: Sequence[Bar], width: int = 420) -> str:
    """Bars that start at one line; the part that is needed is darker than what is lost."""
    drawing = Drawing(title)
    left = 10 + 6.8 * max((len(row.label) for row in rows), default=0)
    most = max((row.amount for row in rows), default=0) or 1
    for number, row in enumerate(rows):
        top = 6 + number * _STEP
        drawing.text(left - 8, top + 11, row.label, "label", "end")
        long = max(1.0, width * row.amount / most) if row.amount else 0.0
        if long:
            drawing.rect(left, top, long, _BAR, row.kind, f"{row.label}: {row.words}")
        if row.least is not None and row.amount:
            drawing.rect(left, top, long * row.least / row.amount, _BAR, "folds", "", round_=2)
        drawing.text(left + long + 8, top + 11, row.words)
    drawing.line([(left, 2), (left, 6 + len(rows) * _STEP)], "axis")
    return drawing.svg()


def bars_html(rows: Sequence[Bar]) -> str:
    """`bars` as HTML for a page, where words keep their size however narrow it is."""
    most = max((row.amount for row in rows), default=0) or 1
    lines = []
    for row in rows:
        share = 100 * row.amount / most
        needed = 100 * (row.least or 0) / row.amount if row.amount else 0
        inner = (
            f'<i class="folds" style="width:{needed:.2f}%"></i>' if row.least is not None else ""
        )
        lines.append(
            f'<div class="bar"><span>{escape(row.label)}</span><div class="track">'
            f'<div class="{row.kind}" style="width:{share:.2f}%">{inner}</div></div>'
            f"<span>{escape(row.words)}</span></div>"
        )
    return f'<div class="bars">{"".join(lines)}</div>\n'


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order of x. `stairs`: a value holds until the next one."""

    label: str
    kind: str
    points: Sequence[tuple[float, float]]
    stairs: bool = False


def lines(
    title: str, series: Sequence[Series], across: str, down: str, *,
    size: tuple[int, int] = (580, 220),
) -> str:  # fmt: skip
    """Curves over a common axis, with round numbers at both."""
    drawing, (width, height), left, top = Drawing(title), size, 64, 28
    points = [point for each in series for point in each.points]
    right = max((x for x, _ in points), default=0) or 1.0
    low, high = _ends([y for _, y in points])
    drawing.text(6, 14, down, "label")
    for tick in ticks(low, high):
        y = top + height * (1 - (tick - low) / (high - low))
        drawing.line([(left, y), (left + width, y)], "rule")
        drawing.text(left - 8, y + 4, number_words(tick), "label", "end")
    for tick in ticks(0, right, 4 if width > 300 else 2):
        x = left + width * tick / right
        drawing.text(x, top + height + 16, number_words(tick), "label", "middle")
    drawing.text(left + width, top + height + 32, across, "label", "end")
    drawing.line([(left, top), (left, top + height), (left + width, top + height)], "axis")
    for each in series:
        placed = [
            (left + width * x / right, top + height * (1 - (y - low) / (high - low)))
            for x, y in each.points
        ]
        path = _stairs(placed, left + width) if each.stairs else placed
        drawing.line(path, f"curve {each.kind}-line")
        if placed:
            drawing.rect(
                placed[-1][0] - 3, placed[-1][1] - 3, 6, 6, each.kind, each.label, round_=3
            )
    beside = max(1, int(width // 180))
    for number, each in enumerate(series):
        x = left + number % beside * 180
        y = top + height + 46 + number // beside * 18
        drawing.rect(x, y - 9, 10, 10, each.kind)
        drawing.text(x + 16, y, each.label)
    return drawing.svg()


def lines_html(title: str, series: Sequence[Series], across: str, down: str) -> str:
    """Curves for a page: as wide as there is room, and once more for narrow ones."""
    wide = lines(title, series, across, down)
    slim = lines(title, series, across, down, size=(196, 150))
    return f'<div class="wide">{wide}</div><div class="slim">{slim}</div>'


def _stairs(points: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    path: list[tuple[float, float]] = []
    for x, y in points:
        path += [(x, path[-1][1])] if path else []
        path.append((x, y))
    return [*path, (end, path[-1][1])] if path else []


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """From zero, or a little below what varies little, to a little above the most."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        return (0.0, high or 1.0)
    return (0.0 if low < high / 2 else low - 0.1 * (high - low), high + 0.05 * (high - low))


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers between two ends.

    >>> ticks(0, 10)
    [0.0, 2.5, 5.0, 7.5, 10.0]
    """
    rough = (high - low) / wanted
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(each * scale for each in (1, 2, 2.5, 5, 10) if each * scale >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [(first + number) * step for number in range(count)]


def number_words(value: float) -> str:
    """
    >>> [number_words(each) for each in (0.0, 0.25, 1234567, 1.5e-07, 2500)]
    ['0', '0.25', '1.23e6', '1.5e-7', '2 500']
    """
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        return (
            f"{value:,.4g}".replace(",", " ")
            if abs(value) < 1e4
            else f"{value:,.0f}".replace(",", " ")
        )
    mantissa, _, power = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(power)}" if power else mantissa
