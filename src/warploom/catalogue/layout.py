"""How the structures of an array lie in the registers of a warp: parameters come in, checked.

A lane's share of a tile is `pack` neighbouring structures, which move as one: `columns` accesses of
`width` words. A warp has `tiles` such tiles, all of whose loads are under way before the first use.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.errors import CheckError
from warploom.kernel.dtype import DType
from warploom.machine.record import CUDA

WARP = CUDA.lanes
MOST_FIELDS = 64
MOST_WORDS = 128  # per thread; what does not fit into registers is slower than no exchange at all
ACCESS_BYTES = CUDA.access_bytes
MOST_WORDS_UNASKED = 48
WIDTHS = (4, 2, 1)
WORDS_IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class Layout:
    fields: int
    dtype: DType
    block: int
    tiles: int
    pack: int
    width: int

    @property
    def share(self) -> int:
        """Words of a tile per lane."""
        return self.pack * self.fields

    @property
    def columns(self) -> int:
        return self.share // self.width

    @property
    def warps(self) -> int:
        return self.block // WARP

    @property
    def least_blocks(self) -> int:
        """Blocks per multiprocessor to ask for: 0 leaves it to the assembler, which would rather
        spill a large share than run fewer threads."""
        words = self.tiles * self.share * max(1, self.dtype.bytes // 4)
        return 0 if words <= MOST_WORDS_UNASKED else max(1, 512 // self.block)

    @property
    def structures_per_block(self) -> int:
        return self.warps * self.tiles * WARP * self.pack


def layout(
    fields: int, dtype: str, block: int, tiles: int, pack: int = 1, width: int = 0
) -> Layout:
    """The layout with these parameters; 0 tiles or width means: as suits the size."""
    kind = element_type(dtype)
    check_fields(fields)
    check_block(block)
    if pack not in WIDTHS or pack * kind.bytes > ACCESS_BYTES:
        raise CheckError(
            f"{pack} structures of {kind.value} side by side",
            advice=f"1, 2 or 4, and at most {ACCESS_BYTES} bytes of one field",
        )
    share = pack * fields
    width = width or widest(share, kind)
    if width not in WIDTHS or share % width or width * kind.bytes > ACCESS_BYTES:
        raise CheckError(
            f"accesses of {width} elements of {kind.value} do not fit {share} words per lane",
            advice=f"use {', '.join(str(w) for w in WIDTHS if w <= widest(share, kind))}",
        )
    tiles = tiles or max(1, WORDS_IN_FLIGHT // share)
    if tiles < 1 or tiles * share > MOST_WORDS:
        raise CheckError(
            f"{tiles} tiles of {share} words per lane",
            advice=f"at most {MOST_WORDS} words per lane in all",
        )
    return Layout(fields, kind, block, tiles, pack, width)


def check_fields(fields: int) -> None:
    if not 1 <= fields <= MOST_FIELDS:
        raise CheckError(
            f"structures of {fields} fields", advice=f"between 1 and {MOST_FIELDS} fields"
        )


def check_block(block: int) -> None:
    if not WARP <= block <= CUDA.block_threads or block % WARP:
        raise CheckError(
            f"a block of {block} threads",
            advice=f"use a multiple of {WARP} up to {CUDA.block_threads}",
        )


def widest(share: int, dtype: DType) -> int:
    """The widest access that divides a lane's share."""
    return next(w for w in WIDTHS if share % w == 0 and w * dtype.bytes <= ACCESS_BYTES)


def is_streaming(value: int) -> bool:
    if value not in (0, 1):
        raise CheckError(f"streaming={value}", advice="use 1 for accesses past the cache, or 0")
    return value == 1


def element_type(name: str) -> DType:
    known = {each.value: each for each in DType}
    if name not in known:
        raise CheckError(f"no element type '{name[:40]}'", advice="use " + ", ".join(known))
    return known[name]
