"""What looks like a race and is none: loads of no use, sums that differ by how they are rounded.

Where fewer elements than threads are worked on, threads repeat what others do, and compilers let
them: they load what another overwrites and drop it, they store what another stores. Comes in: the
races of a launch. Goes out: what is excused of them, found by running the launch again from the
same memory.

* A plain load that was of no use to its thread (`origins`) is no access.
* A sum over lanes, s = p + shfl(p) with p = a·b, may be compiled to fma(a, b, shfl(a·b)): one of
  the products is not rounded, in each lane another one, and lanes that store the one sum store
  values that differ. Two writes are *one value but for that rounding* if they write equal bits once
  all such fma round their product first. Nothing else is forgiven: no distance between numbers is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.machine.judges import Cause
from warploom.machine.memory import Memory
from warploom.machine.race import Pair, Race, Side
from warploom.machine.semantics import Kind
from warploom.ptx.emulate.origins import Reader
from warploom.ptx.ir import Function, Instruction, Operand
from warploom.ptx.known import keys_of, registers, split_operands
from warploom.ptx.patience import timed
from warploom.ptx.table import BIT_MOVES
from warploom.ptx.types import is_float, types_of

Made = dict[str, Instruction | None]  # of a register: what sets it, if that is one alone


@dataclass(frozen=True, slots=True)
class Excused:
    """None where it was not yet asked for."""

    dead: Mapping[Span, npt.NDArray[np.bool_]] | None = None  # by load, threads of the grid
    rounded: frozenset[Pair] | None = None  # writes of one value, but for rounding

    @property
    def dead_loads(self) -> Mapping[Span, npt.NDArray[np.bool_]]:
        return self.dead or {}

    @property
    def rounded_pairs(self) -> frozenset[Pair]:
        return self.rounded or frozenset()


def writable_bytes(memory: Memory) -> int:
    return sum(region.data.nbytes for region in memory.regions if not region.read_only)


@dataclass(slots=True)
class Kept:
    """The bytes of a launch's memory at some moment."""

    memory: Memory
    data: list[npt.NDArray[np.uint8]] = field(init=False)

    def __post_init__(self) -> None:
        self.data = [region.data.copy() for region in self._written()]

    def _written(self) -> list[Any]:
        return [region for region in self.memory.regions if not region.read_only]

    def digest(self) -> bytes:
        made = sha256()
        for data in self.data:
            made.update(data.tobytes())
        return made.digest()

    def restore(self) -> None:
        for region, data in zip(self._written(), self.data, strict=True):
            region.data[:] = data


def readers_among(races: Iterable[Race], block_threads: int) -> set[Reader]:
    """The plain loads among the sides of races, each with its thread in the grid."""
    sides = [
        side for race in races for side in (race.first, race.second)
        if race.cause is not Cause.GRID or side is race.second  # the first is of another launch
    ]  # fmt: skip
    return {
        (side.label, side.block * block_threads + side.thread)
        for side in sides
        if isinstance(side.label, Span) and _is_load(side)
    }


def _is_load(side: Side) -> bool:
    return side.kind is Kind.READ and not side.under_way


def may_be_rounding(race: Race) -> bool:
    """Two plain writes of different values."""
    writes = race.first.kind is Kind.WRITE and race.second.kind is Kind.WRITE
    return writes and not race.same_value


def one_value(races: Iterable[Race]) -> frozenset[Pair]:
    """The pairs of writes of one value, of all races of a launch that rounds products first."""
    return frozenset(race.pair for race in races if race.same_value)


def fused_sums(function: Function) -> frozenset[int]:
    """Where those fma stand that add a product to what a shuffle brings of the same product."""
    made: Made = {}
    steps = list(timed(function.instructions()))
    for ins in steps:
        for key in _keys(split_operands(ins)[0]):
            made[key] = None if key in made else ins
    return frozenset(ins.start for ins in steps if ins.opcode == "fma" and _is_fused(ins, made))


def _is_fused(ins: Instruction, made: Made) -> bool:
    """The addend is made of the bits of one `mul`, that of the same factors, by a shuffle."""
    work, sources, shuffled = _keys(ins.operands[3:4]), set[int](), False
    for _ in made:
        maker = made.get(work.pop()) if work else None
        if maker is None or maker.predicate is not None:
            return False
        if maker.opcode == "mul":
            sources.add(maker.start)
            product = maker
        elif maker.opcode == "shfl" or _moves(maker):
            shuffled |= maker.opcode == "shfl"
            work += _keys(maker.operands[1 : 2 if maker.opcode == "shfl" else None])
        else:
            return False
        if not work:
            return shuffled and len(sources) == 1 and _factors(product) == _factors(ins)
    return False


def _moves(ins: Instruction) -> bool:
    """Bits are taken apart, put together and moved, as doubles and halves are for a shuffle."""
    whole = not any(is_float(kind) for kind in types_of(ins))
    return ins.opcode == "mov" or (whole and ins.opcode in BIT_MOVES)


def _factors(ins: Instruction) -> tuple[list[str], list[str]]:
    return types_of(ins), sorted(map(repr, ins.operands[1:3]))


def _keys(operands: tuple[Operand, ...]) -> list[str]:
    return [key for register in registers(operands) for key in keys_of(register)]
