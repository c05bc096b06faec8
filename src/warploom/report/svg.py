"""Drawings of cells, words and lines: SVG with the classes of the theme, put together by calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape


@dataclass(slots=True)
class Drawing:
    """Things are drawn in order; the picture is as large as what is in it, and a margin."""

    title: str
    parts: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, told: str = "",
        *, round_: float = 2,
    ) -> None:  # fmt: skip
        """`told` is what a pointer or a reader of the screen is told."""
        self._reach(x + width, y + height)
        shape = (
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" '
            f'class="{kind}"'
        )
        title = f"><title>{escape(told)}</title></rect>" if told else "/>"
        self.parts.append(shape + title)

    def text(
        self, x: float, y: float, words: str, kind: str = "", anchor: str = "start", size: int = 11
    ) -> None:
        wide = 0.62 * size * len(words)
        self._reach(x + wide * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor], y + 3)
        look = f' class="{kind}"' if kind else ""
        small = f' style="font-size:{size}px"' if size != 11 else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{look}{small}>{escape(words)}</text>'
        )

    def line(self, points: list[tuple[float, float]], kind: str) -> None:
        for x, y in points:
            self._reach(x, y)
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f'<path d="M{path}" class="{kind}"/>')

    def cell(
        self, x: float, y: float, width: float, height: float, kind: str, words: str, told: str = ""
    ) -> None:
        """A filled rectangle with a word on it, in the colour that is read on it."""
        self.rect(x, y, width, height, kind, told)
        size = 10 if len(words) * 6.2 <= width else 8
        self.text(x + width / 2, y + height / 2 + 3.5, words, "on", "middle", size)

    def _reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def svg(self) -> str:
        width, height = self.width + 6, self.height + 6
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" '
            f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        )
        return "\n".join([head, f"<title>{escape(self.title)}</title>", *self.parts, "</svg>"])
