"""The shared part of CUDA C++ and OpenCL C: every thread runs the text as it stands."""

from __future__ import annotations

from warploom.emit.dialect import Dialect
from warploom.emit.helper import helper_prefix, helper_text
from warploom.emit.literal import CHOICE, number_text
from warploom.emit.parts import Lines, comment_lines, linear_thread, used_variables
from warploom.emit.value import ValuePrinter
from warploom.emit.width import IndexPrinter
from warploom.errors import EmitError, spelled
from warploom.index.ir import Expr, Var
from warploom.index.laws import simplify
from warploom.index.ranges import Ranges, range_of
from warploom.index.show import c_helpers
from warploom.kernel import ir
from warploom.kernel.bounds import Bounds, counter_range, static_bounds
from warploom.kernel.check_hopper import of_hopper
from warploom.kernel.dtype import DType
from warploom.kernel.function import Call
from warploom.kernel.pool import offsets, whole_bytes
from warploom.kernel.traverse import widest_access
from warploom.kernel.warpgroup import Hopper

AXES = "xyz"


class SimtPrinter:
    """Prints the body of a kernel; a language overrides the few methods in which it differs."""

    def __init__(self, kernel: ir.Kernel, dialect: Dialect, owner: str = "") -> None:
        """`owner` is the function whose name the helpers begin with: the kernel, or one in it."""
        self.kernel = kernel
        self.prefix = helper_prefix(owner or kernel.name)
        self.dialect = dialect
        self.lines = Lines(depth=1)
        self.bounds: Bounds = static_bounds(kernel)
        self.indices = IndexPrinter(kernel, dialect, self.bounds, self.prefix)
        self.values = ValuePrinter(dialect, self.index, self.cell, self.prefix)
        self.constants = {each.name for each in kernel.arrays if each.space == "constant"}
        self.shared = [each for each in kernel.body if isinstance(each, ir.Shared)]
        self.pooled = any(each.offset is not None for each in self.shared) or of_hopper(kernel)

    # -- spelling

    def index(self, expr: Expr) -> str:
        return self.indices.text(expr)

    def cell(self, cell: ir.Cell) -> str:
        return cell.name if cell.index is None else f"{cell.name}[{self.index(cell.index)}]"

    def value(self, value: ir.Value, least: int = 0) -> str:
        return self.values.text(value, least)

    def type(self, dtype: DType) -> str:
        return self.dialect.types[dtype]

    def zero(self, dtype: DType) -> str:
        return number_text(0, dtype, self.dialect)[1]

    # -- the text

    def helpers(self, body: str) -> str:
        """The helper functions that a text of this printer calls."""
        used = self.helper_texts(body)
        return "".join(used.values()) + "\n" if used else ""

    def helper_texts(self, body: str) -> dict[str, str]:
        """The helper functions by name: those for indices, found in the text, and for values."""
        own = c_helpers(self.indices.type, self.dialect.helper_qualifiers, self.prefix)
        used = {name: text for name, text in own.items() if f"{name}(" in body}
        return used | {
            self.prefix + name: helper_text(name, self.dialect, self.prefix)
            for name in self.values.helpers
        }

    def body(self) -> str:
        """The lines between the braces of the kernel function."""
        if self.pooled:
            self.pool()
        self.prologue()
        self.statements(self.kernel.body)
        return self.lines.text()

    def prologue(self) -> None:
        """Names for the coordinates that the kernel uses."""
        used = set(used_variables(self.kernel)) | self.extra_variables()
        flat = self.kernel.block[1] == self.kernel.block[2] == 1
        if used & {"lane", "warp"}:
            used.add("thread")
        if "thread" in used and not flat:
            used |= {"thread_x", "thread_y"} | ({"thread_z"} if self.kernel.block[2] > 1 else set())
        for axis, name in enumerate(AXES):
            if f"block_{name}" in used:
                self._define(f"block_{name}", f"(int){self.dialect.block[axis]}")
        for axis, name in enumerate(AXES):
            if f"thread_{name}" in used:
                self._define(f"thread_{name}", f"(int){self.dialect.thread[axis]}")
        if "thread" in used:
            if flat:
                self._define("thread", f"(int){self.dialect.thread[0]}")
            else:
                self._define("thread", self.index(linear_thread(self.kernel)))
        width = self.kernel.warp_size
        for name, expr in (("lane", Var("thread") % width), ("warp", Var("thread") // width)):
            if name in used:
                self._define(name, self.index(expr))

    def pool(self) -> None:
        """All shared arrays lie in one array of bytes, some of them in the same ones."""
        align = self.dialect.align.format(max(each.align for each in self.shared))
        size = whole_bytes(self.kernel)
        kind = self.type(DType.U8)
        self.lines.add(f"{self.dialect.shared} {align} {kind} pool[{size}];")

    def pointer_text(self, stmt: ir.Shared) -> str:
        """A shared array as a pointer into the pool."""
        space = "" if self.dialect.generic else f"{self.dialect.shared} "
        kind, at = self.type(stmt.dtype), offsets(self.shared)[stmt.name]
        return f"{space}{kind}* const {stmt.name} = ({space}{kind}*)(pool + {at});"

    def extra_variables(self) -> set[str]:
        """Index variables that the language's own spellings need."""
        return set()

    def _define(self, name: str, text: str, kind: str = "int") -> None:
        self.lines.add(f"const {kind} {name} = {text};")

    def _define_index(self, name: str, expr: Expr) -> None:
        self.bounds[name] = values = range_of(expr, self.bounds)
        text = self.index(expr)
        self._define(name, text, self.indices.declared(name, values))

    def statements(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Let() | ir.Named():
                self.naming(stmt)
            case ir.Registers() | ir.Shared():
                self.declaration(stmt)
            case ir.Assign(target, value):
                self.lines.add(f"{self.cell(target)} = {self.value(value)};")
            case ir.Load():
                self.load(stmt)
            case ir.Store():
                self.store(stmt)
            case ir.For():
                self.loop(stmt)
            case ir.If():
                self.branch(stmt)
            case ir.Barrier():
                self.barrier(stmt)
            case ir.Shuffle() | ir.TensorProduct():
                self.together(stmt)
            case ir.Comment(text):
                for line in [text] if isinstance(stmt, Call) else comment_lines(text):
                    self.lines.add(line)
            case _:
                self.hopper(stmt)

    def naming(self, stmt: ir.Let | ir.Named) -> None:
        if isinstance(stmt, ir.Let):
            self._define_index(stmt.name, stmt.expr)
            return
        self.bounds[stmt.name] = stmt.bounds
        kind = self.indices.declared(stmt.name, stmt.bounds)
        self._define(stmt.name, self.value(stmt.chosen), kind)

    def barrier(self, stmt: ir.Barrier) -> None:
        block = stmt.scope == "block"
        self.lines.add(self.dialect.barrier if block else self.dialect.warp_barrier)

    def declaration(self, stmt: ir.Registers | ir.Shared) -> None:
        size = "" if stmt.size is None else f"[{stmt.size}]"
        if isinstance(stmt, ir.Shared):
            if self.pooled:
                self.lines.add(self.pointer_text(stmt))
            else:
                head = f"{self.shared_qualifiers(stmt)} {self.type(stmt.dtype)}"
                self.lines.add(f"{head} {stmt.name}{size};")
        else:
            self.lines.add(f"{self.type(stmt.dtype)} {stmt.name}{size}{self.initial(stmt)};")

    def shared_qualifiers(self, stmt: ir.Shared) -> str:
        """What stands before the type of a shared array: wide accesses need its alignment."""
        width = widest_access(self.kernel, stmt.name)
        if width == 1 or not self.dialect.align:
            return self.dialect.shared
        return f"{self.dialect.shared} {self.dialect.align.format(width * stmt.dtype.bytes)}"

    def initial(self, stmt: ir.Registers) -> str:
        if stmt.initial is None:
            return ""
        number = number_text(stmt.initial, stmt.dtype, self.dialect)[1]
        if stmt.size is None:
            return f" = {number}"
        return " = {" + ", ".join([number] * stmt.size) + "}"

    def loop(self, stmt: ir.For) -> None:
        if has_no_iteration(stmt):
            return
        if stmt.unroll and self.dialect.unroll:
            self.lines.add(self.dialect.unroll)
        self.loop_head(stmt, stmt.start, stmt.stop)
        self.statements(stmt.body)
        self.lines.close()

    def loop_head(self, stmt: ir.For, start: Expr, stop: Expr) -> None:
        first, last = self.index(start), self.index(stop)
        low, high = counter_range(stmt, Ranges(self.bounds))
        self.bounds[stmt.var] = (low, max(low, high))
        kind = self.indices.declared(stmt.var, (low, max(low, high + stmt.step)))
        step = f"++{stmt.var}" if stmt.step == 1 else f"{stmt.var} += {stmt.step}"
        end = f"({last})" if "?" in last else last
        self.lines.open(f"for ({kind} {stmt.var} = {first}; {stmt.var} < {end}; {step})")

    def branch(self, stmt: ir.If) -> None:
        self.lines.open(f"if ({self.index(stmt.condition)})")
        self.statements(stmt.then)
        if stmt.otherwise:
            self.lines.close("} else {")
            self.lines.depth += 1
            self.statements(stmt.otherwise)
        self.lines.close()

    # -- memory: one element at a time unless the language has wider accesses

    def load(self, stmt: ir.Load) -> None:
        """A load of several elements is one step: what it gives otherwise is computed first."""
        predicate = "" if stmt.predicate is None else self.values.condition(stmt.predicate)
        other = self.other(stmt)
        kept = (
            bool(predicate) and stmt.width > 1 and not isinstance(stmt.otherwise, ir.Number | None)
        )
        if kept:
            self.lines.open("")
            zero, kind = self.zero(stmt.target.dtype), self.type(stmt.target.dtype)
            self.lines.add(f"const {kind} other = {predicate} ? {zero} : {other};")
            other = "other"
        for offset in range(stmt.width):
            target = self.cell(shifted(stmt.target, offset))
            fetched = self.element(stmt, offset)
            chosen = f"{predicate} ? {fetched} : {other}" if predicate else fetched
            self.lines.add(f"{target} = {chosen};")
        if kept:
            self.lines.close()

    def other(self, stmt: ir.Load) -> str:
        """What a load gives where its predicate is false."""
        if stmt.otherwise is None:
            return self.zero(stmt.target.dtype)
        return self.value(stmt.otherwise, CHOICE)

    def element(self, stmt: ir.Load, offset: int) -> str:
        return f"{stmt.array}[{self.index(plus(stmt.index, offset))}]"

    def store(self, stmt: ir.Store) -> None:
        guard = "" if stmt.predicate is None else f"if ({self.index(stmt.predicate)}) "
        for offset in range(stmt.width):
            stored = stmt.value if stmt.width == 1 else shifted(stmt.value, offset)
            value = self.value(stored)
            self.lines.add(guard + self.store_text(stmt, offset, value))

    def store_text(self, stmt: ir.Store, offset: int, value: str) -> str:
        return f"{stmt.array}[{self.index(plus(stmt.index, offset))}] = {value};"

    def together(self, stmt: ir.Shuffle | ir.TensorProduct) -> None:
        """What lanes of a warp do with each other."""
        if isinstance(stmt, ir.Shuffle):
            self.shuffle(stmt)
        else:
            self.tensor(stmt)

    def hopper(self, stmt: Hopper) -> None:
        """What rings, boxes and warp groups are for."""
        raise EmitError(
            f"{self.dialect.language} has no {type(stmt).__name__}: it is of Hopper",
            advice="emit CUDA",
        )

    def shuffle(self, stmt: ir.Shuffle) -> None:
        raise EmitError(f"{self.dialect.language} has no shuffle for '{stmt.target.name}'")

    def tensor(self, stmt: ir.TensorProduct) -> None:
        raise EmitError(
            f"{self.dialect.language} has no tensor cores for '{stmt.target.name}'",
            advice="emit CUDA, or explore without " + spelled("'--space tensor'", "space='tensor'"),
        )


def plus(expr: Expr, offset: int) -> Expr:
    return simplify(expr + offset) if offset else expr


def shifted(value: ir.Value, offset: int) -> ir.Cell:
    """The register `offset` places after an element of a register array."""
    if offset == 0 and isinstance(value, ir.Cell):
        return value
    if not isinstance(value, ir.Cell) or value.index is None:
        raise EmitError("an access of several elements needs a register array")
    return ir.Cell(value.name, simplify(value.index + offset), value.dtype)


def has_no_iteration(stmt: ir.For) -> bool:
    return stmt.counts is not None and not stmt.counts
