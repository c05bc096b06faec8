"""Random layouts of Triton's IR, written as text and read again, and as bases and read again."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from warploom.errors import WarploomError
from warploom.layout.formats.encoding import linear_of, written_linear
from warploom.layout.formats.encoding_shared import SHARED, shared_layout
from warploom.layout.formats.fragment_bases import from_attribute
from warploom.layout.formats.mlir import Attribute, Value, read_attribute, written
from warploom.layout.formats.triton import offset_bases
from warploom.layout.language.evaluate import values

MOST_REGISTER_BITS = 8  # of a conversion


def _power(random: np.random.Generator, most: int, least: int = 0) -> int:
    return 1 << int(random.integers(least, most + 1))


def _parts(random: np.random.Generator, total: int, rank: int) -> list[Value]:
    """A number as a product of powers of two, one for each dimension."""
    found = [1] * rank
    for _ in range(total.bit_length() - 1):
        found[int(random.integers(rank))] *= 2
    return list(found)


def _order(random: np.random.Generator, rank: int) -> list[Value]:
    return [int(d) for d in random.permutation(rank)]


def blocked(random: np.random.Generator, rank: int, warps: int) -> Attribute:
    fields: dict[str, Value] = {
        "sizePerThread": _parts(random, _power(random, 3), rank),
        "threadsPerWarp": _parts(random, 32, rank),
        "warpsPerCTA": _parts(random, warps, rank),
        "order": _order(random, rank),
    }
    return Attribute("ttg.blocked", fields)


def mma(random: np.random.Generator, warps: int, hopper: bool) -> Attribute:
    instruction = [16, 8 * _power(random, 3), 16] if hopper else [16, 8]
    fields: dict[str, Value] = {
        "versionMajor": 3 if hopper else 2,
        "versionMinor": 0,
        "warpsPerCTA": [warps, 1] if hopper else _parts(random, warps, 2),
        "instrShape": list(instruction),
    }
    return Attribute("ttg.nvidia_mma", fields)


def register_attribute(random: np.random.Generator) -> tuple[Attribute, tuple[int, ...]]:
    """A register layout, and the shape of a tensor for it."""
    warps = _power(random, 3)
    shape = (16 * _power(random, 3), 16 * _power(random, 3))
    match int(random.integers(5)):
        case 0:
            rank = int(random.integers(1, 4))
            return blocked(random, rank, warps), tuple(_power(random, 6) for _ in range(rank))
        case 1:
            return mma(random, warps, bool(random.integers(2))), shape
        case 2:
            parent = mma(random, warps, hopper=False)
            fields: dict[str, Value] = {
                "opIdx": int(random.integers(2)), "parent": parent, "kWidth": _power(random, 3),
            }  # fmt: skip
            return Attribute("ttg.dot_op", fields), shape
        case 3:
            parent = blocked(random, 2, warps)
            sliced: dict[str, Value] = {"dim": int(random.integers(2)), "parent": parent}
            return Attribute("ttg.slice", sliced), (_power(random, 7),)
        case _:
            attribute, found = register_attribute(random)
            return written_linear(linear_of(attribute, found)), found


def shared_attribute(random: np.random.Generator) -> tuple[Attribute, tuple[int, ...]]:
    """A layout of shared memory, and the shape of a tile for it."""
    shape = (8 * _power(random, 4), 64 * _power(random, 1))
    fields: dict[str, Value]
    match int(random.integers(4)):
        case 0:
            fields = {"vec": _power(random, 3), "perPhase": _power(random, 2),
                      "maxPhase": _power(random, 3), "order": [1, 0]}  # fmt: skip
            return Attribute("ttg.swizzled_shared", fields), shape
        case 1:
            bits, width = int(random.choice([8, 16, 32])), int(random.choice([0, 32, 64, 128]))
            fields = {"swizzlingByteWidth": width, "transposed": False, "elementBitWidth": bits}
            return Attribute("ttg.nvmma_shared", fields), (shape[0], 2 * shape[1])
        case 2:
            count = int(random.integers(1, 4))
            sizes = sorted(int(n) for n in random.choice(range(3, 10), count, replace=False))
            pairs: list[Value] = [[1 << n, int(random.integers(1, 9))] for n in sizes]
            fields = {"order": _order(random, 2), "shape": list(shape)}
            return Attribute("ttg.padded_shared", fields, (pairs,)), shape
        case _:
            attribute, found = shared_attribute(random)
            linear = linear_of(attribute, found)
            return written_linear(linear), found


def amd_attribute(random: np.random.Generator) -> tuple[Attribute, tuple[int, ...]]:
    """A result or an operand of MFMA or WMMA, and the shape of a tensor for it."""
    warps, shape = _power(random, 2), (32 * _power(random, 2), 32 * _power(random, 2))
    fields: dict[str, Value]
    if random.integers(2):
        side = int(random.choice([16, 32]))
        fields = {
            "version": int(random.integers(1, 5)), "warpsPerCTA": _parts(random, warps, 2),
            "instrShape": [side, side, 256 // side], "isTransposed": bool(random.integers(2)),
        }  # fmt: skip
        result = Attribute("ttg.amd_mfma", fields)
    else:
        fields = {
            "version": int(random.integers(1, 3)), "isTranspose": bool(random.integers(2)),
            "warpsPerCTA": _parts(random, warps, 2),
        }  # fmt: skip
        result = Attribute("ttg.amd_wmma", fields)
    if random.integers(2):
        return result, shape
    operand: dict[str, Value] = {
        "opIdx": int(random.integers(2)), "parent": result, "kWidth": _power(random, 3, 1),
    }  # fmt: skip
    return Attribute("ttg.dot_op", operand), shape


def rare_attribute(random: np.random.Generator) -> tuple[Attribute, tuple[int, ...]]:
    """AMD's layouts, tensor memory, and tiles that two blocks share."""
    shape = (64 * _power(random, 1), 64 * _power(random, 1))
    fields: dict[str, Value]
    match int(random.integers(4)):
        case 0:
            fields = {"vec": _power(random, 2), "perPhase": _power(random, 2),
                      "maxPhase": _power(random, 3), "order": _order(random, 2)}  # fmt: skip
            return Attribute("ttg.amd_rotating_shared", fields), shape
        case 1:
            fields = {"blockM": 64 * _power(random, 1), "blockN": 32 * _power(random, 1),
                      "colStride": _power(random, 1)}  # fmt: skip
            return Attribute("ttng.tensor_memory_encoding", fields), (128, shape[1])
        case 2:
            fields = {
                "swizzlingByteWidth": 64, "transposed": bool(random.integers(2)),
                "elementBitWidth": 16, "CGALayout": [[1, 0]] if random.integers(2) else [[0, 1]],
            }  # fmt: skip
            return Attribute("ttg.nvmma_shared", fields), shape
        case _:
            return amd_attribute(random)


MAKERS = (register_attribute, shared_attribute, rare_attribute)


def round_trips(count: int, seed: int = 3) -> dict[str, Any]:
    """Each text is read as what it was written of; its bases are read as the same layout."""
    random, seen = np.random.default_rng(seed), dict[str, int]()
    for number in range(count):
        attribute, shape = MAKERS[number % len(MAKERS)](random)
        assert read_attribute(written(attribute)) == attribute
        linear = linear_of(attribute, shape)
        if not {"register", "offset"} & set(linear.bases):
            seen[attribute.name] = seen.get(attribute.name, 0) + 1
            continue  # tensor memory has rows and columns, for which there is no attribute of bases
        again = linear_of(read_attribute(str(written_linear(linear))), shape)
        assert again == linear, (str(attribute), shape)
        if attribute.name in SHARED:
            _check_shared(attribute, shape)
        elif prod(shape) <= 4096 and len(linear.bases["register"]) <= MOST_REGISTER_BITS:
            elements = from_attribute(attribute, shape).elements
            assert set(elements.ravel().tolist()) == set(range(prod(shape)))  # all are held
        seen[attribute.name] = seen.get(attribute.name, 0) + 1
    return seen


def _check_shared(attribute: Attribute, shape: tuple[int, ...]) -> None:
    """Elements have different places; without padding, the bases of the places are the bases."""
    layout = shared_layout(attribute, shape)
    part = linear_of(attribute, shape).of_one_block().shape
    assert len(set(values(layout).tolist())) == prod(part)
    if attribute.name != "ttg.padded_shared":
        bases = linear_of(attribute, shape).lists()["offset"]
        assert offset_bases(layout)["offset"] == bases


def damaged(count: int, seed: int = 4) -> int:
    """Texts with a letter changed, dropped or doubled: one error of ours, or another layout."""
    random, refused = np.random.default_rng(seed), 0
    for number in range(count):
        attribute, shape = MAKERS[number % len(MAKERS)](random)
        text, at = written(attribute), 0
        at = int(random.integers(len(text)))
        with_ = ("", text[at] * 2, chr(int(random.integers(32, 127))))[int(random.integers(3))]
        try:
            linear_of(read_attribute(text[:at] + with_ + text[at + 1 :]), shape)
        except WarploomError:
            refused += 1
    return refused
