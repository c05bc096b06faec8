"""HVX register sets: two-register vector instructions on a [registers, lanes] array.

An instruction reads registers u and v and writes register d (and dd); every other register is
copied, and is undefined if the argument does not have it. (The published sets also list a
`swap_regs` for u = dd and v = d; it writes both registers back where they are, which is the
identity that leads every set.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, lift, select
from warploom.sketch.holes.call import Call
from warploom.sketch.holes.common import Integers, distinct
from warploom.sketch.holes.expressions import (
    OUTSIDE,
    coordinate,
    flat,
    only,
    own_coordinates,
    total,
)
from warploom.sketch.holes.function import check_names, images, sizes_of, whole_number
from warploom.sketch.holes.moving import cheapest_expression, gather_set
from warploom.sketch.term.gather import (
    UNDEFINED,
    Family,
    GatherExpr,
    GatherSet,
    Sense,
    Setting,
    Settings,
    Table,
)

_MOST_MASK_LANES = 16
_FEWER = "limit the registers with in_lim=…, in=[…] or out=[…], or leave out swaps"

# Every instruction, and how many registers it writes; a row names one by its position.
_OUTPUTS = {
    "id": 0, "vshuffo": 1, "vshuffe": 1, "valign": 1, "vlalign": 1, "vmux": 1,
    "vshuffoe": 2, "vdeal": 2, "vswap": 2,
}  # fmt: skip
_NAMES = tuple(_OUTPUTS)
_SHIFTED = ("valign", "vlalign")
_MASKED = ("vmux", "vswap")
_NOTHING = UNDEFINED - 1  # stands where the identity writes nothing
_COLUMNS = ("instruction", "amount", "u", "v", "d", "dd")


@dataclass(frozen=True, slots=True)
class Instructions(Family):
    """A row is an instruction, its shift or mask, its two sources and its destinations.

    With one destination, `dd` repeats it.
    """

    name = "hvx"

    call: Call

    @property
    def lanes(self) -> int:
        return self.call.out_shape[1]

    def reads(self, rows: Settings) -> Table:
        return self.placed(rows, _written(rows, self.lanes))

    def placed(self, rows: Settings, written: Integers) -> Table:
        """A copy of the argument, as far as it goes, with the new registers put in."""
        registers, lanes = self.call.out_shape
        copy = np.arange(registers * lanes, dtype=np.int32)
        copy[self.call.in_shape[0] * lanes :] = UNDEFINED
        tables = np.repeat(copy.reshape(1, registers, lanes), len(rows), axis=0)
        outputs = np.array(list(_OUTPUTS.values()))[rows[:, 0]]
        for output in range(written.shape[1]):
            destination = rows[:, 4 + output]
            inside = np.flatnonzero((output < outputs) & (destination < registers))
            tables[inside, destination[inside]] = written[inside, output]
        return tables.reshape(len(rows), -1)

    def text(self, row: Setting) -> str:
        number, amount, u, v, d, dd = (int(n) for n in row)
        name = _NAMES[number]
        if name == "id":
            return name
        if name == "valign" and amount == 0:
            return f"mov({d}:={v})"
        to = d if _OUTPUTS[name] == 1 else f"{d},{dd}"
        if name in _MASKED:
            name += f"[mask={amount:#0{self.lanes + 2}b}]"
        elif name in _SHIFTED:
            name += f"[{amount}]"
        return f"{name}({to}:={u},{v})"

    def expression(self, row: Setting) -> GatherExpr:
        """What the whole array reads: the destinations their new value, the rest its own cell."""
        number, amount, u, v, *destinations = (int(n) for n in row)
        name = _NAMES[number]
        result = flat(self.call.out_shape, own_coordinates(self.call.out_shape))
        for output in range(_OUTPUTS[name]):
            value = _value(name, amount, u, v, output, self.lanes)
            if self.call.out_shape[0] == 1:
                return only(value)
            result = select(coordinate(0).eq(destinations[output]), value, result)
        return only(result)

    def cheapest(self, rows: Settings) -> int:
        return cheapest_expression(self, rows)

    def counterparts(self, rows: Settings, large: Family, reading: Sense) -> Settings:
        """Registers and shifts may count from either end; a mask means the lanes it names."""
        if not isinstance(large, Instructions):
            return rows[:0]
        if reading is Sense.NATURAL:
            return rows
        sizes = sizes_of(self.call, large.call)
        found: set[tuple[int, ...]] = set()
        for instruction, *numbers in rows.tolist():
            masked = _NAMES[instruction] in _MASKED
            meanings = [images(n, sizes) for n in numbers]
            meanings[0] = numbers[:1] if masked else meanings[0]
            if reading is Sense.SHARE:
                meanings[1:] = [[n] for n in numbers[1:]]
            found |= set(product([instruction], *meanings))
        return np.array(sorted(found), np.int64).reshape(-1, len(_COLUMNS))

    def forms(self, rows: Settings) -> Settings:
        """The instruction; a shift by nothing is a move, and masks are no constants."""
        masked = np.isin(rows[:, 0], [_NAMES.index(name) for name in _MASKED])
        still = (rows[:, 1] == 0) & (rows[:, 0] == _NAMES.index("valign"))
        return np.stack([rows[:, 0], still, np.where(masked, rows[:, 1], 0)], axis=1)

    def to_json(self, row: Setting) -> dict[str, Any]:
        numbers = dict(zip(_COLUMNS, map(int, row), strict=True))
        return numbers | {"instruction": _NAMES[row[0]]}

    def from_json(self, parameters: Mapping[str, Any]) -> Setting:
        check_names(parameters, _COLUMNS)
        instruction = parameters["instruction"]
        if instruction not in _NAMES:
            raise CheckError(
                f"there is no instruction {instruction!r:.80}", advice=f"use {', '.join(_NAMES)}"
            )
        numbers = [whole_number(name, parameters[name]) for name in _COLUMNS[1:]]
        return np.array([_NAMES.index(instruction), *numbers])


# -- the sets ------------------------------------------------------------------------------------


def hvx_2x1(call: Call) -> GatherSet:
    return _set(call, [1], inplace=call.flag("inplace"))


def hvx_2x2(call: Call) -> GatherSet:
    return _set(call, [2], inplace=call.flag("inplace"))


def hvx_inplace(call: Call) -> GatherSet:
    return _set(call, [2, 1], inplace=True)


def _set(call: Call, outputs: list[int], inplace: bool) -> GatherSet:
    _check_shapes(call)
    lanes = call.out_shape[1]
    swaps = call.flag("swaps")
    if swaps and lanes > _MOST_MASK_LANES:
        call.fail(
            f"{call.function}: swaps on {lanes} lanes has 2^{lanes} masks for each register tuple",
            f"use at most {_MOST_MASK_LANES} lanes with swaps",
        )
    family = Instructions(call)
    rows = np.concatenate(
        [np.zeros((1, len(_COLUMNS)), np.int64)]
        + [_rows(call, count, swaps, inplace) for count in outputs]
    )
    written = _written(rows, lanes)
    # What is written and where to makes a gather: equal ones are found before they are placed.
    first, owner = distinct(np.hstack([written.reshape(len(rows), -1), rows[:, 4:]]))
    call.afford(len(first), 4 * call.cells, _FEWER)
    return gather_set(call, family, rows, family.placed(rows[first], written[first]), owner)


def _rows(call: Call, outputs: int, swaps: bool, inplace: bool) -> Settings:
    """Every instruction with so many destinations on every tuple of registers, in order."""
    lanes = call.out_shape[1]
    instructions = _instructions(outputs, lanes, swaps)
    tuples = _registers(call, outputs, len(instructions), inplace)
    rows = np.empty((len(tuples), len(instructions), len(_COLUMNS)), np.int64)
    rows[:, :, :2] = instructions
    rows[:, :, 2:] = tuples[:, None]
    if outputs == 1:
        rows[:, :, 5] = rows[:, :, 4]
    return rows.reshape(-1, len(_COLUMNS))


def _instructions(outputs: int, lanes: int, swaps: bool) -> Settings:
    """Instructions with their shifts and masks, in the published order."""
    masks = range(1 << lanes if swaps else 0)
    if outputs == 2:
        named = [("vshuffoe", 0), ("vdeal", 0), *(("vswap", mask) for mask in masks)]
    else:
        shifts = [(name, shift) for shift in range(lanes) for name in _SHIFTED]
        named = [("vshuffo", 0), ("vshuffe", 0), *shifts, *(("vmux", mask) for mask in masks)]
    return np.array([(_NAMES.index(name), amount) for name, amount in named], np.int64)


def _check_shapes(call: Call) -> None:
    if len(call.in_shape) != 2 or len(call.out_shape) != 2:
        call.fail(
            f"{call.function} works on [registers, lanes], got {list(call.in_shape)} to"
            f" {list(call.out_shape)}",
            "reshape to two dimensions first",
        )
    if call.in_shape[1] != call.out_shape[1]:
        call.mismatch("the number of lanes", call.in_shape[1], call.out_shape[1])


def _registers(call: Call, outputs: int, instructions: int, inplace: bool) -> Settings:
    """The tuples (u, v, d, dd): for each pair of sources the in-place destinations, then others."""
    lanes = call.in_shape[1]
    sources = _sources(call)
    destinations = _destinations(call, outputs, inplace)
    beside = 2 if inplace else 0
    count = len(sources) * (beside + len(destinations))
    call.afford(count, 8 * 4, _FEWER)
    call.afford(count * instructions, 12 * (outputs * lanes + 2), _FEWER)
    tuples = np.zeros((len(sources), beside + len(destinations), 4), np.int64)
    tuples[:, :, :2] = sources[:, None]
    if inplace:
        tuples[:, :2, 2] = sources
        tuples[:, :2, 3] = sources + 1
    tuples[:, beside:, 2:] = destinations
    usable = np.ones(tuples.shape[:2], bool)
    if inplace and outputs == 2:
        usable[:, :2] = sources % 2 == 0
    chosen: Settings = tuples[usable]
    return chosen


def _sources(call: Call) -> Integers:
    registers = call.in_shape[0]
    if "in" in call.options:
        pairs = call.pairs("in")
        for pair in pairs:
            for register in pair:
                call.below(register, registers, "option in: register", "in")
        return np.array(pairs, np.intp).reshape(-1, 2)
    limit = call.maybe_number("in_lim")
    limit = registers if limit is None else limit
    if not 1 <= limit <= registers:
        call.fail(
            f"{call.function}: option in_lim={limit} is out of range",
            f"use 1 to {registers}",
            "in_lim",
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
            call.below(register, rows, "option out: register", "out")
        flat_list = np.array(named, np.intp)
    else:
        flat_list = np.arange(0 if inplace else rows)
    if outputs == 1:
        return np.stack([flat_list, flat_list], axis=1)
    return flat_list[: len(flat_list) // 2 * 2].reshape(-1, 2)


# -- what they do --------------------------------------------------------------------------------


def _written(rows: Settings, lanes: int) -> Integers:
    """[rows, outputs, lanes]: the offsets that each instruction puts into its destinations."""
    kinds, kind = np.unique(rows[:, 0] << 32 | rows[:, 1], return_inverse=True)
    names = [_NAMES[number] for number in (kinds >> 32).tolist()]
    most = max(1, *(_OUTPUTS[name] for name in names))
    which, where = np.zeros((2, len(kinds), most, lanes), np.int32)
    for number, (name, amount) in enumerate(zip(names, kinds & 0xFFFFFFFF, strict=True)):
        for output in range(_OUTPUTS[name]):
            which[number, output], where[number, output] = _pattern(name, amount, output, lanes)
    u, v = (rows[:, column].astype(np.int32)[:, None, None] * lanes for column in (2, 3))
    offsets = np.where(which[kind] != 0, v, u)
    written = np.where(where[kind] < lanes, offsets + where[kind], np.int32(UNDEFINED))
    written[rows[:, 0] == _NAMES.index("id")] = _NOTHING
    return written


def _pattern(name: str, amount: int, output: int, n: int) -> tuple[Integers, Integers]:
    """For each lane of an output: which source it is from (0 is u), and from which of its lanes."""
    lane = np.arange(n)
    match name:
        case "vshuffo" | "vshuffe" | "vshuffoe":
            second = output if name == "vshuffoe" else name == "vshuffo"
            return 1 - lane % 2, lane - lane % 2 + second
        case "vdeal":
            upper = lane >= n // 2
            return upper, np.where(upper, 2 * (lane - n // 2), 2 * lane) + output
        case "valign":
            from_u = lane >= n - amount
            return ~from_u, np.where(from_u, lane - (n - amount), lane + amount)
        case "vlalign":
            from_v = lane < amount
            return from_v, np.where(from_v, n - amount + lane, lane - amount)
        case _:  # a bit of the mask says u; the second output takes the other one
            return 1 - (output ^ (amount >> lane & 1)), lane


def _value(name: str, amount: int, u: int, v: int, row: int, n: int) -> Expr:
    """The offset that one destination reads, as a function of the lane."""
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
