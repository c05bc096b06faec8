"""HVX register sets: two-register vector instructions on a [registers, lanes] array.

An instruction reads registers u and v and writes register d (and dd); every other register is
copied, and is undefined if the argument does not have it. (The published sets also list a
`swap_regs` for u = dd and v = d; it writes both registers back where they are, which is the
identity that leads every set.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.index.ir import Const, Expr, lift, select
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Candidates, Integers, Positions, distinct
from warploom.sketch.holes.expressions import (
    OUTSIDE,
    coordinate,
    flat,
    only,
    own_coordinates,
    total,
)
from warploom.sketch.term.ir import UNDEFINED, GatherExpr, Table

_MOST_MASK_LANES = 16
_FEWER = "limit the registers with in_lim=…, in=[…] or out=[…], or leave out swaps"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Every instruction with `outputs` destinations on every tuple (u, v, d, dd) of registers."""

    outputs: int
    lanes: int
    registers: Integers  # [tuples, 4]
    swaps: bool

    @property
    def instructions(self) -> int:
        fixed = 2 + 2 * self.lanes if self.outputs == 1 else 2
        return fixed + ((1 << self.lanes) if self.swaps else 0)

    def instruction(self, number: int) -> tuple[str, int]:
        """The name and its shift or mask, of one of the instructions in order."""
        if self.outputs == 2:
            return (("vshuffoe", "vdeal")[number], 0) if number < 2 else ("vswap", number - 2)
        if number < 2:
            return ("vshuffo", "vshuffe")[number], 0
        shift, left = divmod(number - 2, 2)
        if shift < self.lanes:
            return ("vlalign" if left else "valign"), shift
        return "vmux", number - 2 - 2 * self.lanes


def hvx_2x1(call: Call) -> Candidates:
    return _candidates(call, [1], inplace=call.flag("inplace"))


def hvx_2x2(call: Call) -> Candidates:
    return _candidates(call, [2], inplace=call.flag("inplace"))


def hvx_inplace(call: Call) -> Candidates:
    return _candidates(call, [2, 1], inplace=True)


def _candidates(call: Call, outputs: list[int], inplace: bool) -> Candidates:
    _check_shapes(call)
    rows, lanes = call.out_shape
    swaps = call.flag("swaps")
    if swaps and lanes > _MOST_MASK_LANES:
        call.fail(
            f"{call.function}: swaps on {lanes} lanes has 2^{lanes} masks for each register tuple",
            f"use at most {_MOST_MASK_LANES} lanes with swaps",
        )
    copy = np.arange(rows * lanes, dtype=np.int32)
    copy[call.in_shape[0] * lanes :] = UNDEFINED
    copy_rows = copy.reshape(1, rows, lanes)
    blocks, tables, owners = [], [copy_rows], [np.zeros(1, np.intp)]
    for count in outputs:
        block = _block(call, count, swaps, inplace)
        made, owner = _block_tables(call, block, copy_rows)
        owners.append(owner + sum(map(len, tables)))
        tables.append(made)
        blocks.append(block)
    all_tables: Table = np.concatenate(tables).reshape(-1, call.cells)

    def choice(number: int) -> tuple[Block, int, list[int]] | None:
        number -= 1
        for block in blocks:
            size = len(block.registers) * block.instructions
            if 0 <= number < size:
                row, instruction = divmod(number, block.instructions)
                return block, instruction, block.registers[row].tolist()
            number -= size
        return None

    def name(number: int) -> str:
        found = choice(number)
        return "id" if found is None else _show(*found)

    def expression(number: int) -> GatherExpr:
        found = choice(number)
        offset = flat(call.out_shape, own_coordinates(call.out_shape))
        return only(offset if found is None else _written(*found, rows, offset))

    return Candidates(all_tables, np.concatenate(owners), name, expression)


def _check_shapes(call: Call) -> None:
    if len(call.in_shape) != 2 or len(call.out_shape) != 2:
        call.fail(
            f"{call.function} works on [registers, lanes], got {list(call.in_shape)} to"
            f" {list(call.out_shape)}",
            "reshape to two dimensions first",
        )
    if call.in_shape[1] != call.out_shape[1]:
        call.mismatch("the number of lanes", call.in_shape[1], call.out_shape[1])


def _block(call: Call, outputs: int, swaps: bool, inplace: bool) -> Block:
    """The register tuples: for each pair of sources the in-place destinations, then the others."""
    lanes = call.in_shape[1]
    sources = _sources(call)
    destinations = _destinations(call, outputs, inplace)
    beside = 2 if inplace else 0
    empty = Block(outputs, lanes, np.empty((0, 4), np.intp), swaps)
    count = len(sources) * (beside + len(destinations))
    call.afford(count, 8 * 4, _FEWER)
    call.afford(count * empty.instructions, 12 * (outputs * lanes + 2), _FEWER)
    tuples = np.zeros((len(sources), beside + len(destinations), 4), np.intp)
    tuples[:, :, :2] = sources[:, None]
    if inplace:
        tuples[:, :2, 2] = sources
        tuples[:, :2, 3] = sources + 1
    tuples[:, beside:, 2:] = destinations
    usable = np.ones(tuples.shape[:2], bool)
    if inplace and outputs == 2:
        usable[:, :2] = sources % 2 == 0
    return Block(outputs, lanes, tuples[usable], swaps)


def _sources(call: Call) -> Integers:
    registers = call.in_shape[0]
    if "in" in call.options:
        pairs = call.pairs("in")
        for pair in pairs:
            for register in pair:
                call.below(register, registers, "option in: register")
        return np.array(pairs, np.intp).reshape(-1, 2)
    limit = call.maybe_number("in_lim")
    limit = registers if limit is None else limit
    if not 1 <= limit <= registers:
        call.fail(
            f"{call.function}: option in_lim={limit} is out of range", f"use 1 to {registers}"
        )
    call.afford(limit * limit, 8 * 4, _FEWER)
    return np.indices((limit, limit)).reshape(2, -1).T


def _destinations(call: Call, outputs: int, inplace: bool) -> Integers:
    """Destinations besides the in-place ones, as [d, dd]; dd means nothing with one output."""
    rows = call.out_shape[0]
    if call.flag("fresh"):
        flat_list = np.arange(call.in_shape[0], rows)
    elif "out" in call.options:
        named = call.maybe_numbers("out") or ()
        if outputs == 2:
            call.pairs("out")
        for register in named:
            call.below(register, rows, "option out: register")
        flat_list = np.array(named, np.intp)
    else:
        flat_list = np.arange(0 if inplace else rows)
    if outputs == 1:
        return np.stack([flat_list, flat_list], axis=1)
    return flat_list[: len(flat_list) // 2 * 2].reshape(-1, 2)


def _patterns(block: Block) -> tuple[Integers, Integers]:
    """For each instruction, output and lane: which source (0 is u) and which of its lanes."""
    n = block.lanes
    lane = np.arange(n)
    odd, even_lane = lane % 2, lane - lane % 2
    shape = (block.instructions, block.outputs, n)
    which, where = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    masks = np.arange(1 << n if block.swaps else 0)[:, None] >> lane & 1
    if block.outputs == 1:
        shift = np.arange(n)[:, None]
        which[0, 0] = which[1, 0] = 1 - odd
        where[0, 0], where[1, 0] = even_lane + 1, even_lane
        masked = 2 + 2 * n
        from_u = lane >= n - shift
        which[2:masked:2, 0] = ~from_u
        where[2:masked:2, 0] = np.where(from_u, lane - (n - shift), lane + shift)
        from_v = lane < shift
        which[3:masked:2, 0] = from_v
        where[3:masked:2, 0] = np.where(from_v, n - shift + lane, lane - shift)
        which[masked:, 0], where[masked:, 0] = 1 - masks, lane
        return which, where
    row = np.arange(2)[:, None]
    half = n // 2
    which[0], where[0] = 1 - odd, even_lane + row
    upper = lane >= half
    which[1], where[1] = upper, np.where(upper, 2 * (lane - half), 2 * lane) + row
    which[2:], where[2:] = 1 - (row ^ masks[:, None]), lane
    return which, where


def _block_tables(call: Call, block: Block, copy: Integers) -> tuple[Table, Positions]:
    which, where = _patterns(block)
    n, tuples = block.lanes, len(block.registers)
    sources = block.registers[:, :2].astype(np.int32) * np.int32(n)
    # [tuples, instructions, outputs, lanes], with the destinations behind: what makes a gather.
    keys = np.empty((tuples, block.instructions, block.outputs * n + 2), np.int32)
    offsets = np.where(which, sources[:, 1, None, None, None], sources[:, 0, None, None, None])
    offsets = np.where(where < n, offsets + where, np.int32(UNDEFINED))
    keys[:, :, :-2] = offsets.reshape(tuples, block.instructions, block.outputs * n)
    keys[:, :, -2:] = block.registers[:, None, 2:]
    if block.outputs == 1:
        keys[:, :, -1] = 0
    rows = keys.reshape(-1, keys.shape[2])
    first, owner = distinct(rows)
    call.afford(len(first), 4 * call.cells, _FEWER)
    tables = np.repeat(copy, len(first), axis=0)
    for output in range(block.outputs):
        destination = rows[first, output - 2]
        inside = np.flatnonzero(destination < tables.shape[1])
        written = rows[first[inside], output * n : (output + 1) * n]
        tables[inside, destination[inside]] = written
    return tables, owner


def _show(block: Block, number: int, registers: list[int]) -> str:
    u, v, d, dd = registers
    name, amount = block.instruction(number)
    if name == "valign" and amount == 0:
        return f"mov({d}:={v})"
    if name in ("vmux", "vswap"):
        name += f"[mask={amount:#0{block.lanes + 2}b}]"
    elif name in ("valign", "vlalign"):
        name += f"[{amount}]"
    return f"{name}({d if block.outputs == 1 else f'{d},{dd}'}:={u},{v})"


def _written(block: Block, number: int, registers: list[int], rows: int, copy: Expr) -> Expr:
    """What the whole array reads: the destinations their new value, the rest its own cell."""
    u, v, *destinations = registers
    result = copy
    for row in range(block.outputs):
        value = _value(block, number, u, v, row)
        if rows == 1:
            return value
        result = select(coordinate(0).eq(destinations[row]), value, result)
    return result


def _value(block: Block, number: int, u: int, v: int, row: int) -> Expr:
    """The offset that one destination reads, as a function of the lane."""
    n = block.lanes
    name, amount = block.instruction(number)
    lane = coordinate(1) if n > 1 else Const(0)
    if name in ("vshuffo", "vshuffe", "vshuffoe"):
        step = 1 if name == "vshuffo" else row
        source = _either(lane % 2, u * n, v * n)
        value = total([(1, source), (1, lane - lane % 2)], step)
        return select(lane.lt(n - 1), value, OUTSIDE) if n % 2 and step else value
    if name == "vdeal":
        half = n // 2
        upper = total([(2, lane)], v * n - 2 * half + row)
        value = _either(lane.ge(half), upper, total([(2, lane)], u * n + row))
        return select(lane.lt(n - 1), value, OUTSIDE) if n % 2 and row else value
    if name in ("vmux", "vswap"):
        if row:
            u, v = v, u
        bit = (Const(amount) >> lane) & 1
        return total([(1, _either(bit, u * n, v * n)), (1, lane)])
    return _aligned(name, amount, u, v, lane, n)


def _aligned(name: str, shift: int, u: int, v: int, lane: Expr, n: int) -> Expr:
    """n consecutive lanes of u and v side by side, from lane `start` of the first on."""
    low, high, start = (v, u, shift) if name == "valign" else (v, u, n - shift)
    if start in (0, n):
        return total([(1, lane)], (low if start == 0 else high) * n)
    if high == low + 1:  # the two registers lie side by side in the argument
        return total([(1, lane)], low * n + start)
    if u == v:
        return total([(1, total([(1, lane)], start) % n)], u * n)
    return select(
        lane.lt(n - start),
        total([(1, lane)], low * n + start),
        total([(1, lane)], high * n + start - n),
    )


def _either(condition: Expr, first: Expr | int, second: Expr | int) -> Expr:
    return lift(first) if first == second else select(condition, first, second)
