"""What every part of a printer of pipelines asks: where things are, and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.emit.under_way import Group
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, variables
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.descriptor import UNIT
from warploom.kernel.names import Fresh, names_of
from warploom.kernel.pool import BARRIER_BYTES, barriers_at, offsets, rings_of
from warploom.kernel.warpgroup import GROUP, Ring

if TYPE_CHECKING:
    from warploom.emit.cuda import CudaPrinter


class PipelineText:
    """Names, addresses and barriers of a kernel with rings."""

    def __init__(self, printer: CudaPrinter) -> None:
        self.printer, self.kernel = printer, printer.kernel
        kernel = printer.kernel
        self.maps = {each.name: each for each in kernel.maps}
        self.shared = {each.name: each for each in printer.shared}
        self.at = offsets(printer.shared)
        self.barriers = barriers_at(kernel)
        self.rings = rings_of(kernel)
        self.around: list[Ring] = []
        stmts = list(ir.walk(kernel.body))
        self.sizes = {e.name: e.size or 1 for e in stmts if isinstance(e, ir.Registers)}
        self.fresh = fresh = Fresh(names_of(kernel))
        self.base = fresh.name("shared_begin")
        self.phases = {each.stage: fresh.name(f"{each.stage}_phase") for each in self.rings}
        self.lasts = {each.stage: fresh.name(f"{each.stage}_before") for each in self.rings}
        sent = [each for each in ir.walk(kernel.body) if isinstance(each, ir.BulkStore)]
        self.sent = {each.array: each.scope for each in sent}
        turns = [each for each in stmts if isinstance(each, ir.PingPong)]
        self.taken = {id(e) for turn in turns for e in turn.body if isinstance(e, Ring)}
        self.ordered_turns = bool(self.taken)
        self.groups = kernel.threads // GROUP
        self.passes = self.groups > 1 and any(isinstance(each, ir.Turn) for each in stmts)
        self.words: dict[str, str] = {}  # of factors in registers
        self.under_way: list[Group] = []
        self.whose = fresh.name("whose")
        self.last_of_turn: Ring | None = None
        self.met = False  # since the last statement that is no box
        self.covered = False  # by a wait before a statement around
        self.uses_base = bool(self.rings or sent) or any(
            isinstance(each, ir.LoadMatrix | ir.StoreMatrix) for each in ir.walk(kernel.body)
        )

    def by_address(self, array: str) -> bool:
        """Whether a shared array is never named in the text, only the address of its elements."""
        stmts = list(ir.walk(self.kernel.body))
        named = {each.array for each in stmts if isinstance(each, ir.Load | ir.Store)}
        return self.uses_base and array not in named

    # -- spelling

    def add(self, text: str) -> None:
        self.printer.lines.add(text)

    def call(self, name: str, *arguments: str) -> None:
        self.add(f"{self.printer.prefix}{name}({', '.join(arguments)});")

    def asm(self, text: str, operands: str = "") -> None:
        self.add(f'asm volatile("{text}" {operands}::: "memory");')

    def index(self, expr: Expr) -> str:
        return self.printer.index(simplify(expr))

    def place(self, array: str, index: Expr) -> str:
        """The address of an element in shared memory, as a number."""
        size = self.shared[array].dtype.bytes
        return f"{self.base} + ({self.index(index * size + self.at[array])})"

    def barrier_of(self, ring: Ring, empty: bool, stage: str) -> str:
        first = self.barriers[ring.stage] + (BARRIER_BYTES * ring.stages if empty else 0)
        return f"{self.base} + {first} + {BARRIER_BYTES} * {stage}"

    def shared_by_cluster(self, ring: Ring) -> bool:
        return any(each.split is not None for each in ring.fills)


def parted(index: Expr, loops: tuple[ir.For, ...], size: int) -> tuple[Expr, Expr]:
    """An index as a sum: what is known at a stage, and what unrolled loops add to it, in units of
    16 bytes."""
    known: list[Expr] = []
    far: list[Expr] = []
    names = {each.var for each in loops}
    pending = [index]
    while pending:
        term = pending.pop()
        match term:
            case Binary("+", left, right):
                pending += [right, left]
            case _:
                (far if variables(term) and variables(term) <= names else known).append(term)
    bytes = _sum(far) * size
    axes = np.ix_(*[np.asarray(each.counts) for each in loops])
    env = {each.var: axis for each, axis in zip(loops, axes, strict=True)}
    if not far or np.any(np.asarray(evaluate(bytes % UNIT, env))):
        return index, Const(0)
    return _sum(known), simplify(bytes // UNIT)


def _sum(terms: list[Expr]) -> Expr:
    total: Expr = Const(0)
    for each in terms:
        total = each if total is Const(0) else total + each
    return total
