"""A launch of PTX as a picture: memory instructions by line of the source, with what they ask of
memory, where threads race, and which loads could be shuffles, with the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from warploom.errors import Span
from warploom.machine.race import Race, Side
from warploom.pictured import Pictured
from warploom.ptx.demangle import demangled
from warploom.ptx.launch import Kernel, Report
from warploom.ptx.shuffle import KernelReport, rewrite
from warploom.ptx.traffic import TrafficRow, traffic_rows
from warploom.report.chart import Bar, bars, bars_html
from warploom.report.page import table
from warploom.report.picture import Fact, Figure, Part, Picture

_WIDEST = 34  # letters of a label


@dataclass(frozen=True, slots=True, eq=False)
class Observed(Pictured):
    """A kernel of PTX, what a launch of it did, and what the rewriter says of its loads."""

    kernel: Kernel
    report: Report
    rows: tuple[TrafficRow, ...]
    shuffles: KernelReport | None


def observed(kernel: Kernel, report: Report) -> Observed:
    """What a launch with counters did; races, where they were asked for, are in the report."""
    text = kernel.owner.module.text.source
    done = rewrite(text.text, text.name)
    own = next((each for each in done.kernels if each.name == kernel.name), None)
    return Observed(kernel, report, tuple(traffic_rows(kernel, report)), own)


def picture(seen: Observed, brief: bool = False) -> Picture:
    del brief  # everything is known already
    return _Launch(seen).picture()


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of the source, or of the PTX where no source is known."""

    file: str
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"line{self.line}-{sum(map(ord, self.file))}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class _Launch:
    def __init__(self, seen: Observed) -> None:
        self.seen = seen
        self.rows = [row for row in seen.rows if row.requests]
        self.races = [
            (race, self._place(race.first), self._place(race.second)) for race in seen.report.races
        ]

    def _place(self, side: Side) -> _Place:
        if not isinstance(side.label, Span):
            return _Place("", 0, "")
        found = self.seen.kernel.owner.places.at(side.label)
        if found is None:
            line = side.label.line
            name = Path(side.label.source.name).name
            return _Place(name, line, _plain(side.label.source.line(line)))
        outer = found.frames[-1]
        shown = outer.span()
        text = "" if shown is None else _plain(shown.source.line(outer.line))
        return _Place(Path(outer.file).name, outer.line, text)

    def picture(self) -> Picture:
        parts = [
            Part("Races", self._races_html(), _RACES) if self.races else None,
            Part("Memory, line by line", self._sites(), _SITES),
            Part("Shuffles", self._shuffles(), _SHUFFLES) if self.seen.shuffles else None,
        ]
        rows = self._bars()
        figures = [Figure("memory", _BARS, bars("Memory by instruction", rows), bars_html(rows))]
        if not self.rows:
            figures = []
        else:
            parts.insert(2, Part("Where most is lost", figures[0].html))
        return Picture(
            "Launch of PTX",
            demangled(self.seen.kernel.name),
            self._facts(),
            tuple(part for part in parts if part is not None),
            tuple(figures),
            tuple(self._lines()),
            None,
            ("link.css", "link.js"),
        )

    # -- figures -----------------------------------------------------------------------------------

    def _facts(self) -> tuple[Fact, ...]:
        report = self.seen.report
        grid = " × ".join(map(str, report.grid)).removesuffix(" × 1").removesuffix(" × 1")
        races = len(self.races)
        least = sum(row.least_sectors or 0 for row in self.rows)
        sectors = sum(row.sectors or 0 for row in self.rows)
        lost = sum((row.wavefronts or 0) - (row.least_wavefronts or 0) for row in self.rows)
        facts = [
            Fact("launch", f"{grid} block{'' if grid == '1' else 's'} of {report.threads} threads"),
            Fact("races", str(races) if races else "none", "bad" if races else "good"),
            Fact("sectors", f"{sectors}, at best {least}"),
            Fact("lost to bank conflicts", f"{lost} passes", "bad" if lost else ""),
            Fact("branches that part", str(report.divergent_branches)),
        ]
        own = self.seen.shuffles
        if own is not None:
            facts.append(Fact("loads that pay as shuffles", f"{own.shuffles} of {own.loads}"))
        return tuple(facts)

    def _bars(self) -> list[Bar]:
        """The instructions that touch memory, those that lose most first."""
        counted = [row for row in self.rows if row.what != "branches"]
        worst = sorted(counted, key=lambda row: -row.waste)[:12]
        return [_bar(row) for row in worst]

    # -- parts -------------------------------------------------------------------------------------

    def _sites(self) -> str:
        raced = {str(place) for _, first, second in self.races for place in (first, second)}
        sites = []
        for place, group in groupby(self.rows, key=_row_place):
            mark = " raced" if str(place) in raced else ""
            items = "".join(f"<li>{_row_html(row)}</li>" for row in group)
            if mark:
                items += '<li><b class="lost">races: see above</b></li>'
            sites.append(
                f'<div class="site{mark}" data-name="{place.name}" data-link="{place.name}" '
                f'tabindex="0"><span class="at">{place.line}</span>'
                f"<code>{escape(place.text)}</code><ul>{items}</ul></div>"
            )
        return f'<div class="sites">{"".join(sites)}</div>\n'

    def _races_html(self) -> str:
        return "".join(
            f'<div class="race" tabindex="0" data-link="{first.name} {second.name}">'
            f"<p>{escape(race_words(race, first, second))}</p>"
            f"<p><code>{escape(f'{first.line}: {first.text}')}</code></p>"
            f"<p><code>{escape(f'{second.line}: {second.text}')}</code></p></div>\n"
            for race, first, second in self.races
        )

    def _shuffles(self) -> str:
        own = self.seen.shuffles
        assert own is not None
        if own.refusal:
            return f"<p>{escape(own.refusal)}</p>"
        rows = [
            (each.line, each.load, "taken" if each.taken else "left", _reason(each.why, each.proof))
            for each in own.candidates
        ]
        if not rows:
            return "<p>No load of this kernel could come from another lane.</p>"
        return table(("PTX line", "load", "", "why"), rows)

    def _lines(self) -> list[str]:
        facts = "; ".join(f"{fact.label} {fact.value}" for fact in self._facts())
        lines = [f"{demangled(self.seen.kernel.name)}: {facts}"]
        lines += [f"  race: {race_words(*each)}" for each in self.races]
        for place, group in groupby(self.rows, key=_row_place):
            lines.append(f"  {place}: {place.text}")
            lines += [f"    {_row_words(row)}" for row in group]
        own = self.seen.shuffles
        for each in own.candidates if own is not None else ():
            mark = "+" if each.taken else "-"
            lines.append(f"  {mark} line {each.line}: {each.load}: {each.why}")
        return lines


_RACES = (
    "Two threads touch one place, one of them writes, and nothing orders the two. Point at a race "
    "to light its lines."
)
_SITES = (
    "Requests are those of warps; in brackets, what the same bytes would need at best. Lines are "
    "those of the source where the PTX names one, else of the PTX."
)
_SHUFFLES = "Loads whose value another lane has: taken where that is proved and pays, else why not."
_BARS = (
    "Sectors of global memory and passes through shared memory, by instruction; the first part of "
    "a bar is what its bytes need at best."
)


def race_words(race: Race, first: _Place, second: _Place) -> str:
    """One sentence: who does what where."""
    sides = [
        f"{side.words} at {place} by block {side.block}, thread {side.thread}"
        for side, place in ((race.first, first), (race.second, second))
    ]
    same = " (both write one value)" if race.same_value else ""
    return f"byte {race.offset} of {race.region}: {sides[0]}, and {sides[1]}{same}"


def _row_place(row: TrafficRow) -> _Place:
    return _Place(row.file, row.line, _plain(row.text))


def _plain(line: str) -> str:
    return " ".join(line.split())


def _reason(why: str, proof: str) -> str:
    return f"{why} [{proof}]" if proof else why


def _figures(row: TrafficRow) -> Sequence[tuple[str, int, int]]:
    found = []
    if row.sectors is not None and row.least_sectors is not None:
        found.append(("sectors", row.sectors, row.least_sectors))
    if row.wavefronts is not None and row.least_wavefronts is not None:
        found.append(("wavefronts", row.wavefronts, row.least_wavefronts))
    return found


def _row_words(row: TrafficRow) -> str:
    if row.what == "branches":
        return f"{row.instruction}: {row.requests} warps, {row.divergent} part"
    parts = [
        f"{row.requests} requests",
        *(f"{n} {word} ({least})" for word, n, least in _figures(row)),
    ]
    return f"{row.instruction}: {', '.join(parts)}" + (f"; {row.note}" if row.note else "")


def _row_html(row: TrafficRow) -> str:
    name, _, rest = _row_words(row).partition(": ")
    lost = ' class="lost"' if row.waste or row.divergent else ""
    return f"<b>{escape(name)}</b> <span{lost}>{escape(rest)}</span>"


def _bar(row: TrafficRow) -> Bar:
    figures = _figures(row)
    amount = float(sum(n for _, n, _ in figures))
    least = float(sum(n for _, _, n in figures))
    label = f"{row.line}: {row.instruction}"[:_WIDEST]
    words = ", ".join(f"{n} {word}" for word, n, _ in figures) or f"{row.requests} requests"
    return Bar(label, amount, words, least)
