"""What all texts share: the header comment, parameters, helper functions, indented lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from warploom.errors import EmitError
from warploom.index.ir import Binary, Const, Expr, Var, select, variables
from warploom.index.laws import simplify
from warploom.index.show import show
from warploom.kernel import ir
from warploom.kernel.dtype import DType
from warploom.kernel.pool import launched_bytes
from warploom.kernel.traverse import exprs_of, values_of
from warploom.machine.record import CUDA

LINE = 97  # letters of a comment
_SWALLOWING = re.compile(r"(\\|\?\?/|\s)+\Z")


class Lines:
    """Text lines with two-space indentation."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def add(self, text: str) -> None:
        self.lines.append("  " * self.depth + text if text else "")

    def open(self, text: str) -> None:
        self.add(f"{text} {{" if text else "{")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        self.depth -= 1
        self.add(text)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def comment_lines(text: str) -> list[str]:
    """Any text as `//` lines. A backslash at the end, or the trigraph `??/`, which is one, would
    swallow the next line of code."""
    lines = []
    for line in text.split("\n"):
        clean = "".join(ch if ch.isprintable() else " " for ch in line)
        lines.append(f"// {_SWALLOWING.sub('', clean)}".rstrip())
    return lines


def with_notes(kernel: ir.Kernel, *notes: str) -> ir.Kernel:
    """The kernel with more lines in the comment before its text."""
    lines = [line for note in notes if note for line in _wrapped(note)]
    return replace(kernel, doc="\n".join([kernel.doc] * bool(kernel.doc) + lines))


def with_names(kernels: Sequence[ir.Kernel], name: str | None) -> list[ir.Kernel]:
    """The kernels by another name; several are numbered, in the order in which they run."""
    if name is None:
        return list(kernels)
    several = len(kernels) > 1
    return [
        replace(kernel, name=f"{name}_{number}" if several else name)
        for number, kernel in enumerate(kernels)
    ]


def noted_text(text: str, *notes: str) -> str:
    """A text with comments before it, wrapped as those of kernels are."""
    lines = [line for note in notes if note for line in _wrapped(note)]
    return "".join(f"{line}\n" for each in lines for line in comment_lines(each)) + text


def _wrapped(note: str) -> list[str]:
    """Lines that are read without scrolling; a command stays whole, to be copied."""
    if note.startswith("Command:"):
        return [note]
    return textwrap.wrap(note, LINE, subsequent_indent="  ", drop_whitespace=True)


def header(kernel: ir.Kernel) -> str:
    """What the kernel does (its doc, with fill and verdict if it has them) and how to launch it, by
    the names that the text has."""
    lines = comment_lines(kernel.doc) if kernel.doc else []
    grid = " x ".join(show(simplify(size)) for size in _trim(kernel.grid))
    block = " x ".join(str(size) for size in _trim_ints(kernel.launched))
    blocks, threads = "block" if grid == "1" else "blocks", "thread" if block == "1" else "threads"
    lines += comment_lines(f"Launch: ({grid}) {blocks} of {block} {threads}.")
    for condition in kernel.requires:
        lines += comment_lines(f"Requires: {show(condition)}.")
    return "\n".join(lines) + "\n"


def _trim(sizes: tuple[Expr, Expr, Expr]) -> list[Expr]:
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] is Const(1):
        kept.pop()
    return kept


def _trim_ints(sizes: tuple[int, int, int]) -> list[int]:
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return kept


def with_all_named(body: str, names: Iterable[str]) -> str:
    """The body of a function that mentions all its parameters: compilers warn of others."""
    idle = [name for name in names if not re.search(rf"\b{name}\b", body)]
    return "".join(f"  (void){name};\n" for name in idle) + body.removeprefix("\n")


def parameters(texts: Mapping[str, str]) -> str:
    """The parameter list, one line each if it is long."""
    flat = ", ".join(texts.values())
    return flat if len(flat) <= 70 else "\n    " + ",\n    ".join(texts.values())


def used_variables(kernel: ir.Kernel) -> frozenset[str]:
    """Every index variable that some expression of the kernel's body mentions."""
    names: set[str] = set()
    for stmt in ir.walk(kernel.body):
        for expr in exprs_of(stmt):
            names |= variables(expr)
        if isinstance(stmt, ir.Shuffle):
            names |= variables(source_lane(stmt, kernel.warp_size))
    return frozenset(names)


def check_declared(kernel: ir.Kernel, language: str) -> None:
    if total := launched_bytes(kernel):
        raise EmitError(
            f"'{kernel.name}' has {total} bytes of shared memory, given at a launch of CUDA alone",
            advice=f"for {language} use smaller tiles: {CUDA.shared_bytes} bytes at most",
        )


def exchange_buffer(dtype: DType) -> str:
    """The array through which lanes exchange, in languages without shuffles."""
    return f"exchange_{dtype!r}"


def dtypes_of(kernel: ir.Kernel) -> Iterator[DType]:
    """The type of everything that a kernel declares or computes."""
    yield from (param.dtype for param in kernel.params)
    for stmt in ir.walk(kernel.body):
        if isinstance(stmt, ir.Registers | ir.Shared):
            yield stmt.dtype
        for value in values_of(stmt):
            yield from (ir.dtype_of(part) for part in ir.walk_value(value))


def computes_floats(kernel: ir.Kernel) -> bool:
    """Whether some result depends on how floats are rounded."""
    return any(
        isinstance(part, ir.Operation) and ir.dtype_of(part).is_float
        for stmt in ir.walk(kernel.body)
        for value in values_of(stmt)
        for part in ir.walk_value(value)
    )


def source_lane(stmt: ir.Shuffle, warp_size: int) -> Expr:
    """The lane a shuffle reads, as an expression: always within the warp."""
    lane, by = Var("lane"), stmt.lane
    match stmt.mode:
        case "idx":
            within = isinstance(by, Binary) and by.op == "%" and by.right is Const(warp_size)
            return by if within else by % warp_size
        case "xor":
            return lane ^ by
        case "up":
            return select((lane - by).lt(0), lane, lane - by)
        case "down":
            return select((lane + by).ge(warp_size), lane, lane + by)


def thread_definitions(kernel: ir.Kernel) -> dict[str, Expr]:
    """The thread variables from the linear thread number, as expressions."""
    thread = Var("thread")
    x, y, _ = kernel.block
    flat = kernel.block[1] == kernel.block[2] == 1
    return {
        "thread_x": thread if flat else thread % x,
        "thread_y": thread // x % y,
        "thread_z": thread // (x * y),
        "lane": thread % kernel.warp_size,
        "warp": thread // kernel.warp_size,
    }


def linear_thread(kernel: ir.Kernel) -> Expr:
    """The linear thread number from its coordinates."""
    x, y, z = kernel.block
    total: Expr = Var("thread_x")
    if y > 1 or z > 1:
        total = total + Var("thread_y") * x
    if z > 1:
        total = total + Var("thread_z") * (x * y)
    return total
