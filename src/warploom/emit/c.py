"""A kernel as plain C: the threads of a block become a loop, which a compiler turns into vectors.

Where threads meet (barriers, shuffles) the loop ends and a new one begins. A register that lives
across such a place becomes an array with one element per thread; names for index expressions are
computed again, since they are pure. Shared memory is a local array, a shuffle a copy through one.

A *checked* text has one more parameter, `fault`: sizes of all arrays come in, and the first access
outside its array goes out. Such an access uses the first element instead, so nothing is ruined.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.emit.dialect import C
from warploom.emit.helper import INSIDE
from warploom.emit.literal import number_text
from warploom.emit.parts import (
    computes_floats,
    exchange_buffer,
    header,
    parameters,
    source_lane,
    thread_definitions,
    with_all_named,
)
from warploom.emit.simt import SimtPrinter, has_no_iteration, plus
from warploom.emit.spell import spelled
from warploom.errors import EmitError
from warploom.index.ir import Const, Expr, Var, substitute, variables
from warploom.index.laws import simplify
from warploom.index.ranges import range_of
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.function import Call, needed
from warploom.kernel.predicate import exchanges, predicate_exchanges
from warploom.kernel.traverse import exprs_in, exprs_of, target_of, values_of

AXES = "xyz"
# What `fault` holds: whether there is one, array, index, block (x, y, z), thread; then the sizes.
FAULT_HEAD = 8
MOST_STACK_BYTES = 1 << 18
MOST_KEPT_BYTES = 1 << 24
_MATH = re.compile(
    "|".join(rf"\b{name}\b" for names in C.functions.values() for name in names)
    + r"|\b(INFINITY|NAN|signbit)\b"
)

# Signed integers wrap, and every operation on floats is rounded by itself. Without -frounding-math
# gcc 12 makes -x of 0.0 - x where x is never -0.0, which is wrong for 0.0.
FLAGS = ("-std=c11", "-fwrapv")
FLOAT_FLAGS = ("-frounding-math", "-ffp-contract=off")
# gcc has the option alone, and warns of the pragma.
_NOT_CONTRACTED = """\
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
"""

_INSIDE = f"""\
static TYPE NAME(TYPE index, int array, int x, int y, int z, int thread, long long* fault) {{
  if (index >= 0 && index < fault[{FAULT_HEAD} + array]) return index;
  if (!fault[0]) {{
    const long long what[] = {{1, array, index, x, y, z, thread}};
    for (int i = 0; i < 7; ++i) fault[i] = what[i];
  }}
  return 0;
}}
"""


def c(kernel: ir.Kernel, checked: bool = False) -> str:
    """The text of the kernel as a C function that runs the whole grid."""
    check(kernel)
    kernel = spelled(predicate_exchanges(kernel), "c")
    text = c_text(kernel, checked)
    return header(kernel) + flags_comment(text, kernel) + text


def c_text(kernel: ir.Kernel, checked: bool = False) -> str:
    """What follows the comment, of a kernel that was checked and has names that C can have."""
    printer = CPrinter(kernel, checked)
    body = printer.body()
    texts = {each.name: _parameter(each) for each in kernel.params}
    if checked:
        texts["fault"] = "long long* fault"
    called = printer.helpers(body)
    if checked:
        inside = _INSIDE.replace("TYPE", printer.indices.type)
        called = inside.replace("NAME", printer.prefix + INSIDE) + called
    function = f"void {kernel.name}({parameters(texts)}) {{\n{with_all_named(body, texts)}}}\n"
    return preamble(called + body, kernel) + called + function


def preamble(text: str, kernel: ir.Kernel) -> str:
    """What a text needs before it."""
    head = "#include <math.h>\n" if _MATH.search(text) else ""
    head += _NOT_CONTRACTED if computes_floats(kernel) else ""
    return head + ("\n" if head else "")


def flags_comment(text: str, kernel: ir.Kernel) -> str:
    """With which options the text means what the kernel does."""
    flags = [*FLAGS, *(FLOAT_FLAGS if computes_floats(kernel) else ())]
    return f"// Compile with: {' '.join(flags)}{' -lm' if _MATH.search(text) else ''}\n"


def checked_arrays(kernel: ir.Kernel) -> list[str]:
    """The arrays whose accesses a checked text checks, in the order of their numbers."""
    shared = [each.name for each in kernel.body if isinstance(each, ir.Shared)]
    return [each.name for each in kernel.arrays] + shared


def _parameter(param: ir.Param) -> str:
    match param:
        case ir.ScalarParam(name, dtype):
            return f"const {C.types[dtype]} {name}"
        case ir.ArrayParam(name, dtype):
            const = "const " if param.const else ""
            restrict = C.restrict if param.restrict else ""
            return f"{const}{C.types[dtype]}*{restrict} {name}"


@dataclass(frozen=True, slots=True)
class Segment:
    """Statements between two meetings of the threads: one loop over threads runs them all."""

    stmts: tuple[ir.Stmt, ...]


def segments(body: tuple[ir.Stmt, ...]) -> Iterator[Segment | ir.Stmt]:
    """The body as segments, and the statements in which threads meet."""
    run: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Shared):
            continue
        if not exchanges(stmt) and not isinstance(stmt, Call):
            run.append(stmt)
            continue
        if run:
            yield Segment(tuple(run))
            run = []
        yield stmt
    if run:
        yield Segment(tuple(run))


def crossing_registers(body: tuple[ir.Stmt, ...]) -> dict[str, ir.Registers]:
    """The registers whose value goes from one segment to another, with their declarations."""
    declared: dict[str, tuple[ir.Registers, int]] = {}
    crossing: dict[str, ir.Registers] = {}
    for number, stmts in enumerate(_segment_lists(body)):
        for stmt in ir.walk(stmts):
            if isinstance(stmt, ir.Registers):
                declared[stmt.name] = (stmt, number)
        for name in dict.fromkeys(name for stmt in ir.walk(stmts) for name in registers_of(stmt)):
            if name not in declared:  # a constant array or scalar parameter
                continue
            declaration, home = declared[name]
            if number != home and (declaration.size is not None or not _set_first(stmts, name)):
                crossing[name] = declaration
    return crossing


def _set_first(stmts: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether the statements set a register before they may read it; exchanges never do."""
    for stmt in stmts:
        if all(name not in registers_of(each) for each in ir.walk((stmt,))):
            continue
        match stmt:
            case ir.For(_, _, _, inner) if stmt.counts:  # it surely has an iteration
                return _set_first(inner, name)
            case ir.Assign() | ir.Load():
                reads = {
                    part.name
                    for value in values_of(stmt)
                    for part in ir.walk_value(value)
                    if isinstance(part, ir.Cell)
                }
                return name not in reads
            case _:
                return False
    return True


def _segment_lists(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, ...]]:
    """Each segment's statements; an exchange stands alone, so that all it uses is crossing."""
    for part in segments(body):
        match part:
            case Segment(stmts):
                yield stmts
            case ir.For(_, _, _, inner):
                yield from _segment_lists(inner)
            case ir.If(_, then, otherwise):
                yield from _segment_lists(then)
                yield from _segment_lists(otherwise)
            case _:
                yield (part,)


def registers_of(stmt: ir.Stmt) -> Iterator[str]:
    """The names that a statement itself reads or writes as registers or constants."""
    target = target_of(stmt)
    if target is not None:
        yield target.name
    for value in values_of(stmt):
        yield from (part.name for part in ir.walk_value(value) if isinstance(part, ir.Cell))


class CPrinter(SimtPrinter):
    def __init__(self, kernel: ir.Kernel, checked: bool = False, owner: str = "") -> None:
        super().__init__(kernel, C, owner)
        self.pooled = False  # shared arrays lie apart; none reads what another wrote
        self.checked = checked_arrays(kernel) if checked else []
        self.crossing = crossing_registers(kernel.body)
        for call in (each for each in kernel.body if isinstance(each, Call)):
            self.crossing |= {each.name: each for each in call.registers}
        self.registers = {
            each.name: each for each in ir.walk(kernel.body) if isinstance(each, ir.Registers)
        }
        self.threads = thread_definitions(kernel)
        self.data = {each.name for each in ir.walk(kernel.body) if isinstance(each, ir.Named)}

    def cell(self, cell: ir.Cell) -> str:
        if cell.name in self.checked and cell.index is not None:  # a constant array
            return f"{cell.name}[{self._inside(cell.name, cell.index)}]"
        text = super().cell(cell)
        return f"{text}[thread]" if cell.name in self.crossing else text

    def element(self, stmt: ir.Load, offset: int) -> str:
        return self._element(stmt.array, plus(stmt.index, offset))

    def store_text(self, stmt: ir.Store, offset: int, value: str) -> str:
        return f"{self._element(stmt.array, plus(stmt.index, offset))} = {value};"

    def _element(self, array: str, index: Expr) -> str:
        return f"{array}[{self._inside(array, index) if self.checked else self.index(index)}]"

    def _inside(self, array: str, index: Expr) -> str:
        block = ", ".join(
            "0" if size is Const(1) else f"block_{axis}"
            for axis, size in zip(AXES, self.kernel.grid, strict=True)
        )
        number = self.checked.index(array)
        return f"{self.prefix}{INSIDE}({self.index(index)}, {number}, {block}, thread, fault)"

    def body(self) -> str:
        loops = [(f"block_{axis}", size) for axis, size in zip(AXES, self.kernel.grid, strict=True)]
        for name, size in reversed(loops):
            if size is not Const(1):
                count = self.index(simplify(size, self.bounds))
                self.lines.open(f"for (int {name} = 0; {name} < {count}; ++{name})")
        for name, size in loops:
            if size is Const(1) and self._mentions(name):
                self.lines.add(f"const int {name} = 0;")
        self.memory()
        self.parts(self.kernel.body, {})
        while self.lines.depth > 1:
            self.lines.close()
        return self.lines.text()

    def _mentions(self, name: str) -> bool:
        return any(
            name in variables(expr) for stmt in ir.walk(self.kernel.body) for expr in exprs_of(stmt)
        )

    def memory(self) -> None:
        """Shared arrays, registers that outlive a thread loop, and places to exchange."""
        count = self.kernel.threads
        arrays = [(each.dtype, each.name, f"[{each.size}]", each.bytes) for each in self.shared]
        for each in self.crossing.values():
            size = "" if each.size is None else f"[{each.size}]"
            total = each.dtype.bytes * (each.size or 1) * count
            arrays.append((each.dtype, each.name, f"{size}[{count}]", total))
        exchanged = {
            ir.dtype_of(each.value): None
            for each in ir.walk(self.kernel.body)
            if isinstance(each, ir.Shuffle)
        }
        arrays += [
            (each, exchange_buffer(each), f"[{count}]", each.bytes * count) for each in exchanged
        ]
        # What is too large for a stack is kept for each thread of the process.
        needed = sum(total for *_, total in arrays)
        if needed > MOST_KEPT_BYTES:
            raise EmitError(
                f"the registers of a block that outlive a barrier take {needed} bytes",
                advice=f"C text has room for {MOST_KEPT_BYTES}; use fewer threads or registers",
            )
        large = needed > MOST_STACK_BYTES
        for dtype, name, sizes, _ in arrays:
            kept = "static _Thread_local " if large else ""
            self.lines.add(f"{kept}{self.type(dtype)} {name}{sizes};")

    def parts(self, body: tuple[ir.Stmt, ...], lets: Mapping[str, Expr]) -> None:
        known = dict(lets)
        for part in segments(body):
            match part:
                case Segment(stmts):
                    self._segment(stmts, known)
                    known |= {each.name: each.expr for each in stmts if isinstance(each, ir.Let)}
                case ir.For(_, start, stop, inner):
                    if not has_no_iteration(part):
                        self.loop_head(part, _inlined(start, known), _inlined(stop, known))
                        self.parts(inner, known)
                        self.lines.close()
                case ir.If(condition, then, otherwise):
                    self._meeting_branch(_inlined(condition, known), then, otherwise, known)
                case ir.Shuffle():
                    self._exchange(part, known)
                case Call(text):
                    self.lines.add(text)
                case ir.Barrier():
                    pass
                case _:
                    raise AssertionError(f"threads do not meet in {part}")

    def _meeting_branch(
        self,
        condition: Expr,
        then: tuple[ir.Stmt, ...],
        otherwise: tuple[ir.Stmt, ...],
        lets: Mapping[str, Expr],
    ) -> None:
        self.lines.open(f"if ({self.index(condition)})")
        self.parts(then, lets)
        if otherwise:
            self.lines.close("} else {")
            self.lines.depth += 1
            self.parts(otherwise, lets)
        self.lines.close()

    def _segment(self, stmts: tuple[ir.Stmt, ...], lets: Mapping[str, Expr]) -> None:
        for stmt in stmts:  # a name may be for later loops alone, which must know its bounds
            if isinstance(stmt, ir.Let):
                self.bounds[stmt.name] = range_of(stmt.expr, self.bounds)
        stmts = needed(stmts)
        own = {each.name for each in ir.walk(stmts) if isinstance(each, ir.Let | ir.Named)}
        exprs = [expr for stmt in ir.walk(stmts) for expr in exprs_of(stmt)]
        if not any(self._prints(stmt) for stmt in stmts):
            return
        self._thread_loop(exprs, {name: lets[name] for name in lets if name not in own}, own)
        self._local_registers(stmts)
        self.statements(stmts)
        self.lines.close()

    def _local_registers(self, stmts: tuple[ir.Stmt, ...]) -> None:
        """Declares registers of other segments that this one uses for itself."""
        here = {each.name for each in ir.walk(stmts) if isinstance(each, ir.Registers)}
        for name in dict.fromkeys(name for stmt in ir.walk(stmts) for name in registers_of(stmt)):
            if name in self.registers and name not in self.crossing and name not in here:
                self.declaration(replace(self.registers[name], initial=None))

    def _prints(self, stmt: ir.Stmt) -> bool:
        if isinstance(stmt, ir.Registers):
            return stmt.name not in self.crossing or stmt.initial is not None
        return not isinstance(stmt, ir.Let)

    def _thread_loop(
        self, exprs: list[Expr], lets: Mapping[str, Expr], own: Collection[str] = ()
    ) -> None:
        """Opens a loop over threads and defines the names that the expressions use, but for its
        own."""
        self.lines.open(f"for (int thread = 0; thread < {self.kernel.threads}; ++thread)")
        definitions = {**self.threads, **lets}
        needed: set[str] = set()
        pending = [name for expr in exprs for name in variables(expr)]
        while pending:
            name = pending.pop()
            if name in self.data and name not in own:
                raise EmitError(
                    f"'{name}' is named by data before threads meet, and used after that",
                    advice="name it again where it is used: C text keeps registers alone",
                )
            if name in definitions and name not in needed:
                needed.add(name)
                pending.extend(variables(definitions[name]))
        for name, expr in definitions.items():
            if name in needed:
                self._define_index(name, simplify(expr, self.bounds))

    def declaration(self, stmt: ir.Registers | ir.Shared) -> None:
        if not isinstance(stmt, ir.Registers) or stmt.name not in self.crossing:
            super().declaration(stmt)
        elif stmt.initial is not None:
            number = number_text(stmt.initial, stmt.dtype, self.dialect)[1]
            for i in [""] if stmt.size is None else [f"[{i}]" for i in range(stmt.size)]:
                self.lines.add(f"{stmt.name}{i}[thread] = {number};")

    def _exchange(self, stmt: ir.Shuffle, lets: Mapping[str, Expr]) -> None:
        buffer = exchange_buffer(ir.dtype_of(stmt.value))
        source = Var("thread") - Var("lane") + source_lane(stmt, self.kernel.warp_size)
        offered = [expr for part in ir.walk_value(stmt.value) for expr in exprs_in(part)]
        self._thread_loop(offered, lets)
        self.lines.add(f"{buffer}[thread] = {self.value(stmt.value)};")
        self.lines.close()
        wanted = [source] + ([] if stmt.target.index is None else [stmt.target.index])
        self._thread_loop(wanted, lets)
        self.lines.add(f"{self.cell(stmt.target)} = {buffer}[{self.index(source)}];")
        self.lines.close()


def _inlined(expr: Expr, lets: Mapping[str, Expr]) -> Expr:
    """The expression without names: earlier names first, as each may use those before it."""
    for name in reversed(list(lets)):
        expr = substitute(expr, {name: lets[name]})
    return expr
