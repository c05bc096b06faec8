"""Layouts of Triton's IR (TTGIR attributes) → linear layouts of registers, lanes, warps and blocks,
and back.

Facts of the formats, in our words: a tile of one instruction, or of one thread's vector, grows
first over lanes, then over warps, then over further registers, and blocks share out the rest.
AMD's instructions are in `encoding_amd.py`, shared memory is in `encoding_shared.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.errors import CheckError, UnsupportedError
from warploom.layout.formats.attribute_fields import check_fields
from warploom.layout.formats.encoding_amd import mfma, mfma_operand, wmma, wmma_operand
from warploom.layout.formats.encoding_shared import ALIGNMENT, SHARED, shared_linear_of
from warploom.layout.formats.linear import (
    Growing,
    Linear,
    bits_of,
    blocks_of,
    check_shape,
    order_of,
    powers,
)
from warploom.layout.formats.mlir import Attribute, Value

INPUTS = ("register", "lane", "warp")
REGISTERS = (
    "ttg.blocked", "ttg.nvidia_mma", "ttg.amd_mfma", "ttg.amd_wmma", "ttg.dot_op", "ttg.slice",
    "ttg.linear",
)  # fmt: skip
_MOST_NESTED = 8


def linear_of(attribute: Attribute, shape: Sequence[int]) -> Linear:
    """Which element of a tensor of this shape each bit of each input adds.

    >>> from warploom.layout.formats.mlir import read_attribute
    >>> text = "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [4], warpsPerCTA = [1], "
    >>> linear_of(read_attribute(text + "order = [0]}>"), (16,)).bases["lane"]
    ((2,), (4,))
    """
    if len(shape) > _MOST_NESTED:
        raise CheckError(f"a tensor of {len(shape)} dimensions", advice=f"at most {_MOST_NESTED}")
    check_shape(shape)
    check_fields(attribute)
    if attribute.name in SHARED:
        return shared_linear_of(attribute, shape)
    match attribute.name:
        case "ttg.blocked":
            return _blocked(attribute, shape)
        case "ttg.nvidia_mma":
            return _mma(attribute, shape)
        case "ttg.amd_mfma":
            return mfma(attribute, shape, blocks_of(attribute, len(shape)))
        case "ttg.amd_wmma":
            return wmma(attribute, shape, blocks_of(attribute, len(shape)))
        case "ttg.dot_op":
            return _operand(attribute, shape)
        case "ttg.slice":
            return _slice(attribute, shape)
        case "ttg.linear":
            return _linear(attribute, shape)
    raise UnsupportedError(
        f"#{attribute.name[:40]} is no layout that is known here",
        advice=f"known are {', '.join((*REGISTERS, *SHARED))}",
    )


def matrix_order(rank: int, rows: bool) -> list[int]:
    """Dimensions from the fastest on: of a matrix by rows or by columns; batches are last."""
    order = list(range(rank))[::-1]
    if not rows and rank >= 2:
        order[0], order[1] = order[1], order[0]
    return order


# -- registers -------------------------------------------------------------------------------------


def _blocked(attribute: Attribute, shape: Sequence[int]) -> Linear:
    rank, found = len(shape), Growing(len(shape), *INPUTS)
    order = order_of(attribute, "order", rank)
    keys = ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    for name, key in zip(INPUTS, keys, strict=True):
        found.grow_all(name, powers(attribute, key, rank), order)
    return found.filling(shape, order, blocks_of(attribute, rank))


def _mma(attribute: Attribute, shape: Sequence[int]) -> Linear:
    rank, hopper = len(shape), _version(attribute) == 3
    instruction = attribute.numbers("instrShape")
    tile = instruction[:2] if hopper else instruction
    if len(tile) != rank or rank not in (2, 3):
        raise CheckError(f"instrShape {instruction} for a tensor of {rank} dimensions")
    found, order = Growing(rank, *INPUTS), matrix_order(rank, rows=True)
    _mma_tile(found, tile, 2, order)
    found.grow_all("warp", powers(attribute, "warpsPerCTA", rank), matrix_order(rank, not hopper))
    return found.filling(shape, order, blocks_of(attribute, rank))


def _version(attribute: Attribute) -> int:
    version = attribute.number("versionMajor")
    if version not in (2, 3):
        raise attribute.wrong("versionMajor", "2 (mma) or 3 (wgmma)")
    return version


def _mma_tile(found: Growing, tile: Sequence[int], together: int, order: Sequence[int]) -> None:
    """One instruction: `together` registers and 4 lanes along a row, 8 lanes along a column, and
    registers for the rest."""
    inner, outer = order[0], order[1]
    if tile[outer] % 8 or tile[inner] % (4 * together):
        raise CheckError(f"an instruction of {'x'.join(map(str, tile))} elements")
    found.grow("register", inner, together)
    found.grow("lane", inner, 4)
    found.grow("lane", outer, 8)
    found.grow("register", outer, tile[outer] // 8)
    found.grow("register", inner, tile[inner] // (4 * together))


def _operand(attribute: Attribute, shape: Sequence[int]) -> Linear:
    parent, rank = attribute.parent(), len(shape)
    which = attribute.number("opIdx")
    if which not in (0, 1) or rank not in (2, 3):
        raise attribute.wrong("opIdx", "0 or 1, of a matrix or of several")
    deep = rank - 1 if which == 0 else rank - 2  # the dimension of k
    blocks = blocks_of(parent, rank)
    own = [[0 if d == deep else n for d, n in enumerate(base)] for base in blocks]
    match parent.name:
        case "ttg.blocked":
            return _blocked_operand(parent, shape, deep, own)
        case "ttg.nvidia_mma":
            return _mma_operand(parent, shape, which, attribute.number("kWidth", 2), own)
        case "ttg.amd_mfma":
            return mfma_operand(parent, shape, which, attribute.number("kWidth"), blocks)
        case "ttg.amd_wmma":
            return wmma_operand(parent, shape, which, attribute.number("kWidth"), own)
    raise attribute.wrong("parent", "blocked, nvidia_mma, amd_mfma or amd_wmma")


def _blocked_operand(
    parent: Attribute, shape: Sequence[int], deep: int, blocks: list[list[int]]
) -> Linear:
    rank, found = len(shape), Growing(len(shape), *INPUTS)
    order = order_of(parent, "order", rank)
    vector = powers(parent, "sizePerThread", rank)
    vector[deep] = shape[deep]
    found.grow_all("register", vector, order)
    _shared_along(found, "lane", powers(parent, "threadsPerWarp", rank), order, deep)
    _shared_along(found, "warp", powers(parent, "warpsPerCTA", rank), order, deep)
    return found.filling(shape, order, blocks)


def _shared_along(
    found: Growing, name: str, counts: Sequence[int], order: Sequence[int], deep: int
) -> None:
    """Grows over all dimensions but that of k, along which all hold the same."""
    for dimension in order:
        if dimension == deep:
            found.repeat(name, counts[dimension])
        else:
            found.grow(name, dimension, counts[dimension])


def _mma_operand(
    parent: Attribute, shape: Sequence[int], which: int, together: int, blocks: list[list[int]]
) -> Linear:
    rank, hopper = len(shape), _version(parent) == 3
    if hopper and which == 1:
        raise CheckError("the second operand of wgmma is in shared memory, not in registers")
    instruction = parent.numbers("instrShape")
    if len(instruction) < 2 or bits_of(max(1, together)) > 6 or together < 1:
        raise parent.wrong("instrShape", "the sizes of an instruction")
    rows = instruction[0] if hopper else instruction[rank - 2 : rank][0]
    depth = together * (4 if rows == 8 else 8)
    deep = rank - 1 if which == 0 else rank - 2
    tile = [1] * rank
    tile[rank - 2 if which == 0 else rank - 1] = rows if which == 0 else 8
    tile[deep] = depth
    order = operand_order(rank, which)
    found = Growing(rank, *INPUTS)
    _mma_tile(found, tile, together, order)
    warps = powers(parent, "warpsPerCTA", rank)
    _shared_along(found, "warp", warps, matrix_order(rank, not hopper), deep)
    return found.filling(shape, order, blocks)


def operand_order(rank: int, which: int) -> list[int]:
    """k first, then the other, then batches."""
    return matrix_order(rank, rows=which == 0)


def _slice(attribute: Attribute, shape: Sequence[int]) -> Linear:
    dimension = attribute.number("dim")
    if not 0 <= dimension <= len(shape):
        raise attribute.wrong("dim", f"a dimension of the parent, at most {len(shape)}")
    whole = [*shape[:dimension], 1, *shape[dimension:]]
    parent = linear_of(attribute.parent(), whole)
    bases = {
        name: tuple((*base[:dimension], *base[dimension + 1 :]) for base in bases)
        for name, bases in parent.bases.items()
    }
    bases["register"] = tuple(base for base in bases["register"] if any(base))
    return Linear(bases, tuple(shape))


def _linear(attribute: Attribute, shape: Sequence[int]) -> Linear:
    """Bases as they are; a larger tensor is gone through by registers, a smaller one cut."""
    rank, found = len(shape), Growing(len(shape), *INPUTS)
    for name in (*INPUTS, "block"):
        for base in attribute.bases(name):
            if len(base) != rank:
                raise CheckError(f"the base {base} of {name} has not {rank} coordinates")
            found.add(name, tuple(base))
    blocks = found.bases.pop("block", [])
    spans = [1] * rank
    for dimension in range(rank):
        every = [base[dimension] for each in (*found.bases.values(), blocks) for base in each]
        spans[dimension] = 1 << max(every, default=0).bit_length()
    found.sizes = spans
    for dimension in matrix_order(rank, rows=True):
        if found.sizes[dimension] < shape[dimension]:
            found.grow("register", dimension, shape[dimension] // found.sizes[dimension])
    cut = {
        name: tuple(
            tuple(n if n < size else 0 for n, size in zip(base, shape, strict=True))
            for base in bases
        )
        for name, bases in {**found.bases, "block": blocks}.items()
    }
    return Linear(cut, tuple(shape))


def written_linear(layout: Linear) -> Attribute:
    """The attribute that says the bases themselves: #ttg.linear or #ttg.shared_linear."""
    fields: dict[str, Value] = {
        name: [list(base) for base in bases] for name, bases in layout.bases.items()
    }
    if "offset" in layout.bases:
        return Attribute("ttg.shared_linear", fields | {"alignment": ALIGNMENT})
    return Attribute("ttg.linear", fields)
