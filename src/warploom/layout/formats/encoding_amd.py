"""Register layouts of AMD's matrix instructions, as Triton's IR names them: MFMA with 64 lanes and
WMMA with 32, results and operands."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.errors import CheckError
from warploom.layout.formats.linear import Growing, Linear, bits_of
from warploom.layout.formats.mlir import Attribute

_INPUTS = ("register", "lane", "warp")
_MFMA_LANES = 64
_WMMA_LANES = 32
_WMMA_TILE = 16


def mfma(attribute: Attribute, shape: Sequence[int], blocks: list[list[int]]) -> Linear:
    """Four rows (one of f64) in a thread's registers, lanes along columns and then rows; with
    `isTransposed` the other way round. Tiles go along columns first, through the whole tensor."""
    rank, found = len(shape), Growing(len(shape), *_INPUTS)
    rows, columns = rank - 2, rank - 1
    sizes = _instruction(attribute)
    warps, tiles = _per_warp(attribute, rank)
    together = 1 if attribute.number("elementBitWidth", 32) == 64 else 4
    along, across = (columns, rows) if attribute.truth("isTransposed") else (rows, columns)
    lanes = sizes[0] if attribute.truth("isTransposed") else sizes[1]
    found.grow("register", along, together)
    found.grow("lane", across, lanes)
    found.grow("lane", along, _MFMA_LANES // lanes)
    found.grow("register", along, max(1, sizes[0] * sizes[1] // (_MFMA_LANES * together)))
    found.grow("register", columns, tiles[columns])
    found.grow("warp", columns, warps[columns])
    more = shape[columns] // (sizes[1] * warps[columns] * tiles[columns])
    found.grow("register", columns, max(1, more))
    found.grow("register", rows, tiles[rows])
    found.grow("warp", rows, warps[rows])
    if rank == 3:
        found.grow("warp", 0, warps[0])
    return found.filling(shape, [columns, rows, *range(rank - 2)], blocks)


def mfma_operand(
    parent: Attribute, shape: Sequence[int], which: int, together: int, blocks: list[list[int]]
) -> Linear:
    """`together` elements along k in registers; lanes along the other dimension, then along k."""
    rank, found = len(shape), Growing(len(shape), *_INPUTS)
    deep, other = (rank - 1, rank - 2) if which == 0 else (rank - 2, rank - 1)
    sizes = _instruction(parent)
    warps, tiles = _per_warp(parent, rank)
    lanes = sizes[which]
    found.grow("register", deep, together)
    found.grow("lane", other, lanes)
    found.grow("lane", deep, _MFMA_LANES // lanes)
    depth = _MFMA_LANES // lanes * together
    if (tuple(sizes[:2]), which) in (((64, 4), 0), ((4, 64), 1)):
        found.grow("register", deep, 16)
        depth *= 16
    found.grow("register", deep, max(1, shape[deep] // depth))
    found.grow("register", other, tiles[other])
    found.grow_all("warp", warps, list(range(rank))[::-1])
    return found.filling(shape, [deep, other, *range(rank - 2)], blocks)


def _instruction(attribute: Attribute) -> list[int]:
    sizes = attribute.numbers("instrShape")
    if len(sizes) < 2 or any(size > 64 for size in sizes[:2]):
        raise attribute.wrong("instrShape", "[32, 32, 8], [16, 16, 16] or the like")
    for size in sizes[:2]:
        bits_of(size)
    return sizes


def _per_warp(attribute: Attribute, rank: int) -> tuple[list[int], list[int]]:
    """Warps of a block, and tiles of a warp, along each dimension."""
    warps = attribute.numbers("warpsPerCTA")
    tiles = attribute.numbers("tilesPerWarp", [1] * rank) or [1] * rank
    if len(warps) != rank or len(tiles) != rank:
        raise CheckError(f"#{attribute.name} has not sizes of {rank} dimensions")
    return warps, tiles


# -- WMMA ------------------------------------------------------------------------------------------


def wmma(attribute: Attribute, shape: Sequence[int], blocks: list[list[int]]) -> Linear:
    """16 lanes along a row; the other 16 hold the next row (version 1) or eight rows further."""
    rank, found = len(shape), Growing(len(shape), *_INPUTS)
    version, sizes = _wmma_version(attribute), _wmma_instruction(attribute)
    across, along = rank - 1, rank - 2
    if attribute.truth("isTranspose") or attribute.truth("isTransposed"):
        across, along = along, across
    if version == 1:
        found.grow("lane", across, _WMMA_TILE)
        found.grow("lane", along, 2)
        found.grow("register", along, 8)
    else:
        found.grow("register", along, 8)
        found.grow("lane", across, _WMMA_TILE)
        found.grow("lane", along, 2)
        if sizes[:2] == [32, 16]:
            found.grow("register", along, 2)
    _wmma_warps(found, attribute, rank, None)
    return found.filling(shape, list(range(rank))[::-1], blocks)


def wmma_operand(
    parent: Attribute, shape: Sequence[int], which: int, together: int, blocks: list[list[int]]
) -> Linear:
    rank, found = len(shape), Growing(len(shape), *_INPUTS)
    deep, other = (rank - 1, rank - 2) if which == 0 else (rank - 2, rank - 1)
    version, sizes = _wmma_version(parent), _wmma_instruction(parent)
    depth = _WMMA_LANES // _WMMA_TILE
    found.grow("register", deep, together)
    found.grow("lane", other, _WMMA_TILE)
    if version == 1:
        found.repeat("lane", depth)
    else:
        found.grow("lane", deep, depth)
    found.grow("register", deep, max(1, sizes[2] // (depth * together)))
    found.grow("register", other, max(1, sizes[which] // _WMMA_TILE))
    _wmma_warps(found, parent, rank, deep)
    return found.filling(shape, [deep, other, *range(rank - 2)], blocks)


def _wmma_version(attribute: Attribute) -> int:
    version = attribute.number("version")
    if version not in (1, 2, 3):
        raise attribute.wrong("version", "1, 2 or 3")
    return version


def _wmma_instruction(attribute: Attribute) -> list[int]:
    sizes = attribute.numbers("instrShape", [16, 16, 16])
    if len(sizes) != 3:
        raise attribute.wrong("instrShape", "[16, 16, 16] or the like")
    return sizes


def _wmma_warps(found: Growing, attribute: Attribute, rank: int, deep: int | None) -> None:
    """Tiles of warps and registers, by bases (`ctaLayout`) or by `warpsPerCTA`; along `deep`, the
    dimension of k, all warps hold the same, and registers have no tiles."""
    register, warp = wmma_warps(attribute, rank)
    if deep is not None:
        register, warp = ([_without(b, deep) for b in each] for each in (register, warp))
        register = [base for base in register if any(base)]
    sizes = [
        1 << max((b[d] for b in (*register, *warp)), default=0).bit_length() for d in range(rank)
    ]
    found.times("register", register)
    found.times("warp", warp)
    found.sizes = [own * more for own, more in zip(found.sizes, sizes, strict=True)]


def wmma_warps(attribute: Attribute, rank: int) -> tuple[list[list[int]], list[list[int]]]:
    """Bases of registers' tiles and of warps, in tiles of an instruction."""
    named = attribute.fields.get("ctaLayout")
    if isinstance(named, dict):
        inner = Attribute(attribute.name, named)
        register, warp = inner.bases("register"), inner.bases("warp")
    else:
        made = Growing(rank, "warp")
        made.grow_all("warp", attribute.numbers("warpsPerCTA"), list(range(rank))[::-1])
        register, warp = [], [list(base) for base in made.bases["warp"]]
    if any(len(base) != rank for base in (*register, *warp)):
        raise attribute.wrong("ctaLayout", f"bases of {rank} coordinates")
    return register, warp


def _without(base: list[int], deep: int) -> list[int]:
    return [0 if d == deep else n for d, n in enumerate(base)]
