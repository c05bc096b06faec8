"""Which cells of a search in pieces are done, as far as what was kept of it says."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Iterable, Iterator

from warploom.search.workers.pieces import Line, Range

Span = tuple[int, int]


class Cover:
    """Ranges of a line of cells, and of lines that cells were divided into; none twice."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._done: dict[Line, list[Span]] = {}
        self._divided: dict[tuple[Line, int], Line] = {}

    def add(self, ranges: Iterable[Range]) -> bool:
        """Takes all of them, or none: two runs at once may have done the same cells."""
        added: list[Range] = []
        for each in ranges:
            if not self._fits(each):
                for line, low, high in added:
                    self._done[line].remove((low, high))
                return False
            insort(self._done.setdefault(each.line, []), (each.low, each.high))
            for depth, (cell, _, _) in enumerate(each.line):
                self._divided[each.line[:depth], cell] = each.line[: depth + 1]
            added.append(each)
        return True

    def cells_of(self, line: Line) -> int:
        return line[-1][2] if line else self._cells

    def _fits(self, given: Range) -> bool:
        line, low, high = given
        if not 0 <= low < high <= self.cells_of(line):
            return False
        for depth, (cell, _, _) in enumerate(line):
            outer, own = line[:depth], line[: depth + 1]
            if not cell < self.cells_of(outer) or self._is_done(outer, cell, cell + 1):
                return False
            if self._is_divided(outer, cell, own):
                return False
        inner = (own for cell, own in self._inner(line).items() if low <= cell < high)
        return not self._is_done(line, low, high) and not any(map(self._has_any, inner))

    def _is_divided(self, line: Line, cell: int, own: Line) -> bool:
        """Whether it became other cells than `own`, of which some are done."""
        other = self._divided.get((line, cell), own)
        return other != own and self._has_any(other)

    def _inner(self, line: Line) -> dict[int, Line]:
        return {cell: own for (outer, cell), own in self._divided.items() if outer == line}

    def _is_done(self, line: Line, low: int, high: int) -> bool:
        """Whether any of these cells is done as a whole."""
        done = self._done.get(line, [])
        at = bisect(done, (low, high))
        return any(span[0] < high and span[1] > low for span in done[max(0, at - 1) : at + 1])

    def left(self, line: Line = ()) -> Iterator[Range]:
        """The ranges that are not done, those of divided cells among them."""
        at, cells = 0, self.cells_of(line)
        inner = {cell: own for cell, own in self._inner(line).items() if self._has_any(own)}
        spans = [*self._done.get(line, []), *((cell, cell + 1) for cell in inner), (cells, cells)]
        for low, high in sorted(spans):
            if low > at:
                yield Range(line, at, low)
            at = max(at, high)
        for own in inner.values():
            yield from self.left(own)

    def _has_any(self, line: Line) -> bool:
        return any(done for each, done in self._done.items() if each[: len(line)] == line)
