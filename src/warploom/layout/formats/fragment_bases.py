"""Fragments from bases, as Triton has them: what each bit of a register's, lane's and warp's number
adds, by exclusive or.

Bases of blocks say how several blocks of a cluster share a tensor. A fragment is of the part that
the first of them has; `Fragment.blocks` says where the parts of the others are.
"""

from __future__ import annotations

import numpy as np

from warploom.errors import CheckError
from warploom.layout.conversion.fragment import WARPS_OF, Fragment, check_fragment
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.linear import part_of_a_block
from warploom.layout.formats.mlir import Attribute
from warploom.layout.formats.triton import Bases
from warploom.layout.language.evaluate import Numbers

MOST_REGISTER_BITS, MOST_WARP_BITS = 11, 5


def from_attribute(
    attribute: Attribute, shape: tuple[int, ...], name: str | None = None
) -> Fragment:
    """A register layout of Triton's IR.

    >>> from warploom.layout.formats.mlir import read_attribute
    >>> text = "#ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], instrShape = [16, 8]}>"
    >>> from_attribute(read_attribute(text), (16, 8)).elements[0, 1].tolist()
    [2, 3, 66, 67]
    """
    return from_bases(linear_of(attribute, shape).lists(), shape, name or str(attribute))


def from_bases(bases: Bases, shape: tuple[int, ...] | None, name: str = "bases") -> Fragment:
    """Triton's linear layout: what each bit of register, lane and warp adds, by exclusive or."""
    known = ("register", "lane", "warp", "block")
    strange = [each for each in bases if each not in known]
    if strange:
        raise CheckError(f"bases of '{strange[0][:20]}'", advice=f"known are {', '.join(known)}")
    given = [base for each in known for base in bases.get(each, [])]
    if not given or len({len(base) for base in given}) != 1:
        raise CheckError("bases are of one number of coordinates, and there is at least one")
    rank = len(given[0])
    if min(min(base, default=0) for base in given) < 0:
        raise CheckError("a base has a coordinate below 0")
    spanned = [int(np.bitwise_or.reduce([base[d] for base in given])) for d in range(rank)]
    if shape is None:
        shape = tuple(1 << number.bit_length() for number in spanned)
    if len(shape) != rank:
        raise CheckError(f"bases of {rank} coordinates, and a tensor of {len(shape)}")
    if 1 << len(bases.get("lane", [])) not in WARPS_OF:
        advice = "a warp has five, one of 64 lanes six"
        raise CheckError(f"{len(bases.get('lane', []))} bases of lanes", advice=advice)
    most = {"warp": MOST_WARP_BITS, "register": MOST_REGISTER_BITS}
    if any(len(bases.get(each, [])) > count for each, count in most.items()):
        raise CheckError("more bases than registers or warps may have")
    blocks = tuple(tuple(base) for base in bases.get("block", []))
    shape = part_of_a_block(shape, blocks)
    parts = [[_spread(bases.get(each, []), d) for each in known[2::-1]] for d in range(rank)]
    element, inside = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
    for size, (warp, lane, register) in zip(shape, parts, strict=True):
        place = warp[:, None, None] ^ lane[:, None] ^ register
        inside = inside & (place < size)
        element = element * size + place
    if not inside.all():
        raise CheckError(f"bases go outside {'×'.join(map(str, shape))}")
    return check_fragment(Fragment(name, shape, element, blocks if any(map(any, blocks)) else ()))


def _spread(bases: list[list[int]], dimension: int) -> Numbers:
    found = np.zeros(1, dtype=np.int64)
    for base in bases:
        found = np.concatenate([found, found ^ base[dimension]])
    return found
