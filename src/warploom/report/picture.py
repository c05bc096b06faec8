"""What a picture is: a title, facts, parts of a page, figures that stand alone, and lines of text.

Every kind of record has a function that makes one of these (`registry.py`); a page, SVG files and
the text of a terminal are all made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from warploom.errors import EmitError
from warploom.report.page import page, stacked, standalone

OTHERS = (".png", ".jpg", ".jpeg", ".gif", ".pdf")  # formats that are not written


def check_name(path: Path) -> None:
    """Refuses the name of a file that no picture is written to."""
    if path.suffix.lower() in OTHERS:
        raise EmitError(f"'{path.name}': figures are SVG", advice="give a name in .svg or .html")


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure at the head of a page; `tone` is good, bad or nothing."""

    label: str
    value: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing that stands alone: `svg` has classes of the theme, `caption` says what is seen.

    `inside` is the same for a page, where it is drawn differently there.
    """

    name: str
    caption: str
    svg: str
    inside: str = ""

    @property
    def html(self) -> str:
        drawn = self.inside or self.svg
        return f"<figure>{drawn}<figcaption>{escape(self.caption)}</figcaption></figure>\n"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page: HTML that was made of escaped text."""

    heading: str
    html: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """`assets` are scripts and styles that the page needs besides the common ones, `data` what they
    read."""

    kind: str
    title: str
    facts: tuple[Fact, ...]
    parts: tuple[Part, ...]
    figures: tuple[Figure, ...]
    lines: tuple[str, ...]
    data: Mapping[str, Any] | None = None
    assets: tuple[str, ...] = ()
    style: str = field(default="", repr=False)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def html(self) -> str:
        """One page that needs nothing else."""
        facts = [(fact.label, fact.value, fact.tone) for fact in self.facts]
        parts = [(part.heading, part.note, part.html) for part in self.parts]
        return page(self.kind, self.title, facts, parts, self.data, self.assets, self.style)

    @property
    def svgs(self) -> dict[str, str]:
        """The figures as files, by name."""
        return {figure.name: standalone(figure.svg) for figure in self.figures}

    def files(self, file: str | Path) -> dict[Path, str]:
        """The page, or for a name that ends in .svg all figures, one below the other: what goes
        into the file. `svgs` has each figure by itself."""
        path = Path(file)
        check_name(path)
        if path.suffix != ".svg":
            return {path: self.html}
        if len(self.figures) == 1:
            return {path: standalone(self.figures[0].svg)}
        return {path: stacked([figure.svg for figure in self.figures])}

    def save(self, file: str | Path) -> None:
        for path, text in self.files(file).items():
            path.write_bytes(text.encode("utf-8", "surrogateescape"))

    def _repr_html_(self) -> str:
        """For notebooks: the whole page in a frame of its own."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:720px;border:0" '
            f'title="{escape(self.title)}"></iframe>'
        )
