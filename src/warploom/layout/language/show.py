"""How a layout prints: as text that `parse` reads back. Dialects of others are in `cute.py`."""

from __future__ import annotations

from typing import assert_never

from warploom.layout.language import ir


def show(layout: ir.Layout) -> str:
    """
    >>> show(ir.compose(ir.Swizzle(3, 3, 3), ir.Pad(64, 8), ir.Strided((8, 64), (64, 1))))
    'S<3,3,3> o pad<64,8> o (8,64):(64,1)'
    """
    return " o ".join(_part(part) for part in ir.chain(layout))


def show_tree(tree: ir.Tree, join: str = ",") -> str:
    if isinstance(tree, int):
        return str(tree)
    inner = join.join(show_tree(part, join) for part in tree)
    return f"({inner},)" if len(tree) == 1 else f"({inner})"


def _part(part: ir.Layout) -> str:
    match part:
        case ir.Strided(shape, stride):
            return f"{show_tree(shape)}:{show_tree(stride)}"
        case ir.Swizzle(bits, base, shift):
            return f"S<{bits},{base},{shift}>"
        case ir.Matrix(columns, offset):
            return f"F2[{_list(columns)}]" + (f"^{offset}" if offset else "")
        case ir.Table(table):
            return f"table[{_list(table)}]"
        case ir.Shift(by):
            return f"shift<{by}>"
        case ir.Pad(every, by):
            return f"pad<{every},{by}>"
        case ir.Rotate(columns, within, by, rows):
            return f"rotate<{columns},{within},{by},{rows}>"
        case ir.Exchange(columns, unit, period, shift):
            return f"exchange<{columns},{unit},{period},{shift}>"
        case ir.Tile(columns, height, width):
            return f"tile<{columns},{height},{width}>"
        case ir.Compose():
            return f"({show(part)})"
        case _:
            assert_never(part)


def _list(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
