"""Which types of tiles of a module of Triton's IR are views of one tile, and which element of one
is which of the other.

Accesses of all of them are accesses to the same memory, so a layout is judged by all together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from warploom.errors import CheckError, ParseError, UnsupportedError
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.encoding_shared import shared_layout
from warploom.layout.formats.given import row_major_addresses
from warploom.layout.formats.ttgir import MOVES, VIEWS, Operation, TileType, TritonModule
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import Problem

_SAME_TYPE = ("ttg.memdesc_subslice",)  # its type says the whole tile, which stays the same


@dataclass(frozen=True, eq=False)
class TileViews:
    """The types that are views of one tile: for each, which element of the tile each of its
    elements is. `held` says what keeps the tile in its layout, if anything does."""

    numbers: dict[str, Numbers]
    held: str


class ModuleTiles:
    """All types of tiles of a module, by their text. `uncounted` are the lines of accesses of which
    nothing is known: nobody knows what another layout would do to them."""

    def __init__(self, module: TritonModule, uncounted: Collection[int] = ()) -> None:
        self._module = module
        self._views: dict[str, dict[str, Operation]] = {}
        self._held: dict[str, str] = {}
        for operation in module.operations:
            tiles = [each for each in operation.types if each.place == "memdesc"]
            texts = [type_text(each) for each in tiles]
            if operation.name in VIEWS:
                self._join(operation, texts)
            elif operation.name not in MOVES:
                self._held |= dict.fromkeys(texts, operation.name)
            elif operation.line in uncounted:
                name = f"{operation.name} in line {operation.line}, which was not counted,"
                self._held |= dict.fromkeys(texts, name)

    def _join(self, operation: Operation, texts: list[str]) -> None:
        if len(texts) != 2 or operation.name in _SAME_TYPE:
            return
        for here, there in (texts, texts[::-1]):
            self._views.setdefault(here, {}).setdefault(there, operation)

    def views_of(self, tile: TileType, used: set[str]) -> TileViews:
        """From one type on; `used` are the texts of the types by which elements are moved."""
        start = type_text(tile)
        found = {start: np.arange(np.prod(block_part(tile)), dtype=np.int64)}
        seen, waiting, held = {start: ""}, deque([start]), self._held.get(start, "")
        while waiting:
            here = waiting.popleft()
            for there, view in self._views.get(here, {}).items():
                numbers = self._numbers(view, here) if here in found else None
                if numbers is not None and there not in found:
                    found[there] = found[here][numbers]
                    waiting.append(there)
                elif numbers is not None and not np.array_equal(found[there], found[here][numbers]):
                    held = held or view.name
                elif there not in seen:
                    waiting.append(there)
                seen.setdefault(there, view.name)
                held = held or self._held.get(there, "")
        unknown = [name for there, name in seen.items() if there in used and there not in found]
        return TileViews(found, held or "".join(unknown[:1]))

    def _numbers(self, view: Operation, here: str) -> Numbers | None:
        """Which element of the type `here` each element of the other is; None where that is not
        known."""
        first, second = (each for each in view.types if each.place == "memdesc")
        try:
            numbers = _elements(view, first, second)
            if numbers is None:
                return None
            laid, again = addresses_of(first)[numbers], addresses_of(second)
        except (CheckError, UnsupportedError):
            return None
        if not np.array_equal(laid, again):
            raise ParseError(
                f"{view.name} gives its tile the layout {str(second.layout)[:60]}",
                self._module.span(view.line),
                f"{str(first.layout)[:60]} puts elements elsewhere, and a view moves none",
            )
        return numbers if here == type_text(first) else np.argsort(numbers)


def _elements(view: Operation, first: TileType, second: TileType) -> Numbers | None:
    """Which element of the first each element of the second is."""
    whole, other = block_part(first), block_part(second)
    numbers = np.arange(np.prod(whole), dtype=np.int64)
    if view.name == "ttg.memdesc_reshape" and whole == first.whole and other == second.whole:
        return numbers if np.prod(other) == len(numbers) else None
    if view.name == "ttg.memdesc_trans" and sorted(view.order) == list(range(len(whole))):
        turned = numbers.reshape(whole).transpose(view.order)
        return turned.ravel() if turned.shape == other else None
    return None


def block_part(tile: TileType) -> tuple[int, ...]:
    """The shape of what one block of a cluster has of a tile."""
    return linear_of(tile.layout, tile.whole).of_one_block().shape


def addresses_of(tile: TileType) -> Numbers:
    """Where each element of one block's part lies, in elements, by its row-major number."""
    layout = shared_layout(tile.layout, tile.whole)
    return row_major_addresses(layout, Problem("", block_part(tile), 1, ()))


def type_text(tile: TileType) -> str:
    return f"{tile.whole}{tile.shape if tile.place == 'tensor' else ''}{tile.element}{tile.layout}"
