"""Groups of products of warp groups as CUDA: their fence, factors in registers as words,
descriptors of those in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from warploom.emit.async_helper import product_name
from warploom.emit.under_way import Words, at_once, products_in
from warploom.errors import EmitError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, variables
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.descriptor import UNIT
from warploom.kernel.names import Fresh, names_of
from warploom.kernel.pool import offsets
from warploom.kernel.warpgroup import Ring

if TYPE_CHECKING:
    from warploom.emit.cuda import CudaPrinter

_MODE = {0: 0, 128: 1, 64: 2, 32: 3}  # of a swizzle, in a descriptor
WORD = 4  # bytes of a register


class ProductPrinter:
    """Prints for a printer of CUDA. `around` are the rings around what is printed."""

    def __init__(self, printer: CudaPrinter) -> None:
        self.printer, self.kernel = printer, printer.kernel
        self.shared = {each.name: each for each in printer.shared}
        self.at = offsets(printer.shared)
        self.around: list[Ring] = []
        stmts = ir.walk(printer.kernel.body)
        self.sizes = {e.name: e.size or 1 for e in stmts if isinstance(e, ir.Registers)}
        self.fresh = Fresh(names_of(printer.kernel))
        self.base = self.fresh.name("shared_begin")
        self.words: dict[str, str] = {}  # of factors in registers

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

    # -- groups

    def _held(self, targets: Mapping[str, ir.Cell], words: Sequence[Words]) -> list[str]:
        """Registers of products as operands that a piece of PTX seems to write."""
        held = [f'"+r"({name}[{at}])' for name, count in words for at in range(count)]
        for name, cell in targets.items():
            kind = "f" if cell.dtype.is_float else "r"
            held += [f'"+{kind}"({name}[{at}])' for at in range(self.sizes[name])]
        return held

    def _pinned(self, text: str, held: list[str]) -> None:
        self.add(f'asm volatile("{text}"')
        self.add(f'  : {", ".join(held)} :: "memory");')

    def _started(self, body: tuple[ir.Stmt, ...]) -> list[Words]:
        """Products as a group. What their factors in registers are packed in, and the sums, is
        there before the fence, which seems to write it: else some might be computed after it."""
        products = list(products_in(body))
        factors = {each.a.name: each for each in products if isinstance(each.a, ir.Cell)}
        words = [self._packed(each) for each in factors.values()]
        fence = "wgmma.fence.sync.aligned;"
        if words:
            self._pinned(fence, self._held({e.target.name: e.target for e in products}, words))
        else:
            self.asm(fence)
        self._multiplied(body, ())
        self.asm("wgmma.commit_group.sync.aligned;")
        return words

    def _packed(self, stmt: ir.WarpgroupProduct) -> tuple[str, int]:
        """A factor in registers as words, all of its array."""
        assert isinstance(stmt.a, ir.Cell)
        name, each = stmt.a.name, WORD // stmt.a.dtype.bytes
        count = self.sizes[name] // each
        cells = [self.printer.cell(replace(stmt.a, index=Const(at))) for at in range(count * each)]
        if stmt.kind == "tf32":
            words = [f"__float_as_uint({cell})" for cell in cells]
        else:
            words = self.printer.words_of(cells, 8 * stmt.a.dtype.bytes)
        own = self.words[name] = self.fresh.name(f"{name}_words")
        self.add(f"unsigned int {own}[{count}] = {{")
        for at in range(0, count, 2):
            self.add(f"  {', '.join(words[at : at + 2])},")
        self.add("};")
        return own, count

    def _multiplied(self, body: tuple[ir.Stmt, ...], loops: tuple[ir.For, ...]) -> None:
        lines = self.printer.lines
        for stmt in body:
            match stmt:
                case ir.For():
                    if not stmt.unroll:
                        raise EmitError(
                            f"the loop over '{stmt.var}' around products of warp groups stays one",
                            advice="unroll it: registers are named by constants",
                        )
                    lines.add("#pragma unroll")
                    self.printer.loop_head(stmt, stmt.start, stmt.stop)
                    self._multiplied(stmt.body, (*loops, stmt))
                    lines.close()
                case ir.WarpgroupProduct():
                    self._product(stmt, loops)
                case _:
                    self.printer.statement(stmt)

    # -- products

    def _product(self, stmt: ir.WarpgroupProduct, loops: tuple[ir.For, ...]) -> None:
        held = isinstance(stmt.a, ir.Cell)
        majors = ("k" if isinstance(stmt.a, ir.Cell) else stmt.a.major, stmt.b.major)
        name = product_name(stmt.kind, stmt.columns, majors, held)
        a = self._words(stmt) if isinstance(stmt.a, ir.Cell) else [self._descriptor(stmt.a, loops)]
        target = self.printer.cell(stmt.target)
        self.call(name, f"&{target}", *a, self._descriptor(stmt.b, loops), self._adds(stmt, loops))

    def _words(self, stmt: ir.WarpgroupProduct) -> list[str]:
        """A factor in registers, four words of a thread."""
        assert isinstance(stmt.a, ir.Cell)
        assert stmt.a.index is not None
        each = WORD // stmt.a.dtype.bytes
        if simplify(stmt.a.index % each) is not Const(0):
            raise EmitError(
                f"a factor in '{stmt.a.name}' begins inside a word",
                advice=f"let it begin at a multiple of {each} registers",
            )
        first = simplify(stmt.a.index // each)
        return [f"{self.words[stmt.a.name]}[{self.index(first + at)}]" for at in range(4)]

    def _descriptor(self, tile: ir.Tile, loops: tuple[ir.For, ...]) -> str:
        """Where a factor begins, in units of 16 bytes, beside what is known of it beforehand. How
        far it is from where it begins in the first iterations is added last, to the one word that
        they all have in common."""
        fixed = tile.leading // UNIT << 16 | tile.stride // UNIT << 32 | _MODE[tile.swizzle] << 62
        begin, far = _parted(simplify(tile.index), loops, self.shared[tile.array].dtype.bytes)
        head = f"({fixed}ull | (({self.place(tile.array, begin)}) & 0x3ffff) >> 4)"
        return head if far is Const(0) else f"{head} + ({self.index(far)})"

    def _adds(self, stmt: ir.WarpgroupProduct, loops: tuple[ir.For, ...]) -> str:
        """False of the first product of a sum that begins at zero."""
        for ring in self.around:
            if stmt.target.name not in ring.sums:
                continue
            earlier = next(e for e in products_in(ring.rest) if e.target.name == stmt.target.name)
            if earlier is not stmt:
                if earlier.target.index is not stmt.target.index:
                    raise EmitError(f"'{stmt.target.name}' is summed by several products of a ring")
                return "1"
            first = [] if at_once(ring) else [f"{ring.var} > 0"]
            first += [f"{outer.var} > 0" for outer in self.around[self.around.index(ring) + 1 :]]
            assert stmt.target.index is not None
            named = variables(stmt.target.index)
            first += [f"{e.var} > {self.index(e.start)}" for e in loops if e.var not in named]
            return " || ".join(first) or "0"
        return "1"


def _parted(index: Expr, loops: tuple[ir.For, ...], size: int) -> tuple[Expr, Expr]:
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
