"""Pieces of a kernel as C: what only computes, between the evaluator's own steps.

A kernel that cannot be C as a whole, as it waits at mbarriers or meets other blocks, is run by the
evaluator: its order, its memory, its barriers, its races. But instructions in a row that do nothing
but write registers are one call of compiled code for all threads that run there. Where one of
their registers holds no value, the evaluator's steps are taken instead, which watch that.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.machine.c_source import whole_text
from warploom.machine.record import CUDA
from warploom.machine.value.text import HEADERS
from warploom.native import kept_library, load_library
from warploom.options import cache_folder
from warploom.ptx import ir
from warploom.ptx.emulate.code import Code, CodeBlock
from warploom.ptx.emulate.compile import uses
from warploom.ptx.emulate.frame import Batch, Frame
from warploom.ptx.emulate.poison import PoisonTransfer
from warploom.ptx.fast import elementwise, floats, move
from warploom.ptx.fast.arithmetic import CompiledArithmetic, compiled_arithmetic
from warploom.ptx.fast.build import FLAGS
from warploom.ptx.fast.cores import bare_launch
from warploom.ptx.fast.operand import NotTaken, Spell, Writer, plain
from warploom.ptx.types import is_float, type_of

Array = npt.NDArray[Any]
TABLE: dict[str, Spell] = {**elementwise.TABLE, **move.TABLE}
FEWEST = 3  # instructions that are worth a call
PER_UNIT = 150  # instructions that a compiler is given at once
UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_ROWS = "rows of warps"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of a block, from `first` to before `after`, and their text; registers by key."""

    block: int
    first: int
    after: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    touched: frozenset[str]
    lines: tuple[str, ...]


@dataclass(slots=True)
class Piece:
    """A compiled part: what it reads and writes, as slots with their bits."""

    after: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]
    touched: frozenset[int]
    watched: bool  # with races the steps also look after registers of products
    code: Callable[..., int]
    launch: Any

    def run(self, f: Frame) -> bool:
        """Whether it was done; else nothing has changed."""
        if not self._may_run(f):
            return False
        given = [f.regs[slot] for slot, _ in self.reads]
        uniform = all(each.size == 1 for each in given)
        rows = _ALL_ALIKE if uniform else _rows(f)
        kept = [each if each.flags.c_contiguous else np.ascontiguousarray(each) for each in given]
        made: list[Array] = [
            np.empty(1 if uniform else f.n, np.dtype(UNSIGNED[bits])) for _, bits in self.writes
        ]
        values = [(each.ctypes.data, each.size == 1) for each in (*kept, *made)]
        places = np.array(values, np.uint64)
        self.code(ctypes.byref(self.launch), rows.address, ctypes.c_void_p(places.ctypes.data))
        if self.launch.lost:
            raise KeyboardInterrupt
        for (slot, _), value in zip(self.writes, made, strict=True):
            f.write(slot, value[f.index] if f.compact and not uniform else value)
        return True

    def _may_run(self, f: Frame) -> bool:
        batch = f.batch
        if batch.origins is not None or (self.watched and batch.races is not None):
            return False
        if f.undefined and not self.touched.isdisjoint(f.undefined):
            return False
        flying = () if batch.flight is None else batch.flight.under_way
        return all(self.touched.isdisjoint(one.left) for one in flying)


# -- warps ----------------------------------------------------------------------------------------


class _PassedRows(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint64), ("active", ctypes.c_void_p), ("first", ctypes.c_void_p),
        ("lanes", ctypes.c_void_p),
    ]  # fmt: skip


class Rows:
    """The warps of a batch, of which some lanes are active."""

    def __init__(self, active: Array, first: Array, lanes: Array) -> None:
        self._kept = (active, first, lanes)
        places = (each.ctypes.data for each in self._kept)
        self._passed = _PassedRows(active.size, *places)
        self.address = ctypes.byref(self._passed)


_ALL_ALIKE = Rows(np.ones(1, np.uint32), np.zeros(1, np.uint64), np.ones(1, np.uint32))


def _rows(f: Frame) -> Rows:
    batch = f.batch
    known: dict[str, Any] = batch.special_state.setdefault(_ROWS, {})
    if not known:
        first = batch.warp_starts.astype(np.uint64)
        lanes = np.diff(np.append(batch.warp_starts, batch.threads)).astype(np.uint32)
        known |= {"first": first, "lanes": lanes}
    first, lanes = known["first"], known["lanes"]
    if f.mask is None:
        if "all" not in known:
            known["all"] = Rows(_packed(batch, np.ones(f.n, bool)), first, lanes)
        found: Rows = known["all"]
        return found
    return Rows(_packed(batch, f.mask), first, lanes)


def _packed(batch: Batch, mask: Array) -> Array:
    """By warp, the active lanes as bits."""
    if batch.block_size % CUDA.lanes:
        wide = np.zeros((batch.warp_starts.size, CUDA.lanes), bool)
        wide[batch.warp_of, batch.lane] = mask
    else:
        wide = mask.reshape(-1, CUDA.lanes)
    found: Array = np.packbits(wide, axis=1, bitorder="little").view(np.uint32).reshape(-1)
    return found


# -- text -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Pieces:
    """The pieces of one kernel as they are written."""

    code: Code
    writer: Writer
    everywhere: Counter[str] = field(default_factory=Counter)  # how often registers are read
    parts: list[Stretch] = field(default_factory=list)

    @staticmethod
    def of(code: Code, function: ir.Function, shared: dict[str, int]) -> Pieces:
        found = Pieces(code, _writer(code, function, shared))
        for step in function.instructions():
            found.everywhere.update(uses(step)[0])
        if code.refusal:  # the evaluator says what is wrong where a thread comes to it
            return found
        for number, block in enumerate(code.blocks):
            for first, after in found._stretches(block):
                found._write(number, block, first, after)
        return found

    def _stretches(self, block: CodeBlock) -> Iterator[tuple[int, int]]:
        first = 0
        passages = block.passages
        for at in range(len(passages) + 1):
            if at < len(passages) and self._may_be_written(passages[at]):
                continue
            if at - first >= FEWEST:
                yield first, at
            first = at + 1

    def _may_be_written(self, passage: PoisonTransfer) -> bool:
        ins = passage.instruction
        if not passage.plain or passage.across or not _spells(ins):
            return False
        if not all(map(self._is_known, ins.operands)):
            return False
        try:
            _spell(_writer(self.code, self.writer.function, self.writer.shared), ins)
        except NotTaken:
            return False
        return True

    def _is_known(self, operand: ir.Operand) -> bool:
        """Registers, constants and places in shared memory: the same whoever asks."""
        match operand:
            case ir.Register() | ir.Component() | ir.Immediate():
                return True
            case ir.Symbol(name):
                return name == "_" or (name in self.writer.shared and name not in self.code.locals)
            case ir.Offset(base):
                return self._is_known(base)
            case ir.Negated(inner):
                return self._is_known(inner)
            case ir.Vector(elements):
                return all(map(self._is_known, elements))
            case ir.Pair(one, other):
                return self._is_known(one) and self._is_known(other)
            case _:
                return False

    def _write(self, number: int, block: CodeBlock, first: int, after: int) -> None:
        steps = [each.instruction for each in block.passages[first:after]]
        reads, writes = dict[str, None](), dict[str, None]()
        own = Counter[str]()
        for step in steps:
            read, written = uses(step)
            reads |= dict.fromkeys(key for key in sorted(read) if key not in writes)
            writes |= dict.fromkeys(sorted(written))
            own.update(read)
        lasts = [key for key in writes if key in reads or self.everywhere[key] > own[key]]
        w = self.writer
        w.lasting = frozenset((*reads, *lasts))
        w.start()
        for step in steps:
            _spell(w, step)
        w.close()
        self.parts.append(Stretch(
            number, first, after, tuple(reads), tuple(lasts), frozenset((*reads, *writes)),
            (*w.arrays.values(), *w.lines),
        ))  # fmt: skip

    @property
    def has_products(self) -> bool:
        """Whether the kernel multiplies matrices, which takes the evaluator longest."""
        steps = (step for block in self.code.blocks for step in block.passages)
        return any(step.instruction.opcode.endswith("mma") for step in steps)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the kernel would be compiled: no piece, and no product."""
        return not self.parts and not self.has_products

    def compiled(self, seconds: float) -> Joint:
        """The code with its pieces, several compilers at work."""
        units = self._units()
        texts = [_text(self.writer, unit) for unit in units]
        with ThreadPoolExecutor(1 + min(len(units), cpu_count() or 1)) as pool:
            arithmetic = pool.submit(compiled_arithmetic)
            libraries = list(pool.map(lambda text: _library(text, seconds), texts))
        blocks = [replace(block, pieces={}) for block in self.code.blocks]
        launch = bare_launch()
        for unit, library in zip(units, libraries, strict=True):
            for number, part in enumerate(unit):
                run = getattr(library, f"piece{number}")
                blocks[part.block].pieces[part.first] = self._piece(part, run, launch)
        return Joint(replace(self.code, blocks=blocks), arithmetic.result())

    def _units(self) -> list[list[Stretch]]:
        """The parts, as many together as a compiler is given at once."""
        units: list[list[Stretch]] = []
        size = PER_UNIT
        for part in self.parts:
            if size >= PER_UNIT:
                units.append([])
                size = 0
            units[-1].append(part)
            size += part.after - part.first
        return units

    def _piece(self, part: Stretch, run: Callable[..., int], launch: Any) -> Piece:
        slots, w = self.code.slots, self.writer
        reads, writes = (
            tuple((slots[key], w.sizes[w.names[key]]) for key in keys)
            for keys in (part.reads, part.writes)
        )
        touched = frozenset(slots[key] for key in part.touched)
        return Piece(part.after, reads, writes, touched, self.code.watches_products, run, launch)


@dataclass(frozen=True, slots=True)
class Joint:
    """What the evaluator runs, with compiled code in it."""

    code: Code
    arithmetic: CompiledArithmetic


def _library(text: str, seconds: float) -> ctypes.CDLL:
    return load_library(kept_library(text, ("-O1", *FLAGS), cache_folder(), seconds))


def _writer(code: Code, function: ir.Function, shared: dict[str, int]) -> Writer:
    nothing = frozenset[str]()
    return Writer(code.module, function, shared, {}, {}, nothing, nothing)


def _spells(ins: ir.Instruction) -> bool:
    kind = type_of(ins)
    return ins.opcode in TABLE or bool(kind and is_float(kind) and ins.opcode in floats.TABLE)


def _spell(w: Writer, ins: ir.Instruction) -> None:
    w.guard = ""
    if ins.predicate is not None:
        operand = ir.Negated(ins.predicate) if ins.negated else ins.predicate
        w.guard = w.filled(1, w.read(operand, "pred"))
    kind = type_of(ins)
    floating = kind and is_float(kind) and ins.opcode in floats.TABLE
    (floats.TABLE if floating else TABLE)[ins.opcode](w, ins)


def _text(w: Writer, parts: Iterable[Stretch]) -> str:
    """Parts of a kernel as one text: a function each, called by their numbers within it."""
    parts = list(parts)
    keys = sorted({key for part in parts for key in (*part.reads, *part.writes)})
    fields = " ".join(f"{plain(w.sizes[w.names[key]])} {w.names[key]}[LANES];" for key in keys)
    lines = [f"#define WARP_REGISTERS {fields}", _around()]
    lines += [f"static const uint16_t {name}[] = {{{x}}};" for x, name in w.tables.items()]
    for number, part in enumerate(parts):
        taken = [_moved(w, "take", key, at) for at, key in enumerate(part.reads)]
        given = [_moved(w, "give", key, at + len(taken)) for at, key in enumerate(part.writes)]
        lines += [
            f"int piece{number}(Launch *L, const Rows *rows, const Value *v) {{",
            "  static __thread Warp room;", "  Warp *S = &room;", "  WARPS(w) {",
            "  const uint32_t m = rows->active[w];",
            "  int32_t on[LANES]; EACH on[l] = -(int32_t)((m >> l) & 1u);", *taken,
            *part.lines, *given, "  }", "  return DONE;", "}",
        ]  # fmt: skip
    return "\n".join(lines)


def _moved(w: Writer, verb: str, key: str, at: int) -> str:
    name = w.names[key]
    whom = "rows->lanes[w]" if verb == "take" else "m"
    return f"  {verb}_{w.sizes[name]}(S->{name}, v + {at}, rows->first[w], {whom});"


@cache
def _around() -> str:
    return whole_text(Path(__file__).with_name("c") / "pieces.h", [HEADERS])
