"""Functions as headers: CUDA C++, OpenCL C and C text to include in a kernel of one's own.

In CUDA a function is called by the lanes of a warp, each with its own registers; one that only
moves values is a template over what it moves (`item.py`). In OpenCL, without sub-groups, lanes
exchange through local memory that the caller gives. In C the function does all lanes of a warp:
a register is an array with an element for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from warploom.emit.c import CPrinter, c_text, flags_comment, preamble
from warploom.emit.cuda import HARDWARE_WARP, CudaPrinter, check_warp, cuda_text
from warploom.emit.dialect import CUDA, OPENCL, C, Dialect, Language
from warploom.emit.item import (
    LANE_FUNCTION,
    LANE_TEXT,
    WHOLE_TEXT,
    item_function,
    without_idle,
)
from warploom.emit.opencl import LocalPrinter, opencl_text, pragmas
from warploom.emit.parts import (
    comment_lines,
    exchange_buffer,
    helper_texts,
    parameters,
    with_all_named,
)
from warploom.emit.spell import spelled_function
from warploom.errors import EmitError
from warploom.index.ir import Expr, substitute, variables
from warploom.index.laws import simplify
from warploom.index.show import c_text as index_text
from warploom.index.show import show
from warploom.kernel.bounds import Bounds, static_bounds
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.function import WHOLE, Call, DeviceFunction, function_of
from warploom.kernel.ir import (
    ArrayParam,
    If,
    Kernel,
    Let,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    dtype_of,
    walk,
)
from warploom.kernel.predicate import predicate_exchanges


def function_text(kernel: Kernel, language: Language) -> str:
    """The header with the function that is written in a kernel."""
    return _header(_prepared(kernel, language), language)


def calling_text(kernel: Kernel, language: Language) -> str:
    """The header, and the kernel that calls the function in it."""
    function = _prepared(kernel, language)
    given = _names(function, language)
    if language == "cuda":
        inside = {each.name for each in function.arrays if each.space == "constant"}
        given = [f"{name}.at" if name in inside else name for name in given]
    if language == "c":  # where threads are a loop, a caller's names are known in it alone
        lets = {each.name: each.expr for each in function.before if isinstance(each, Let)}
        given = [_inlined(name, lets, static_bounds(kernel)) for name in given]
    call = Call(f"{function.name}({', '.join(given)});", function.registers)
    room = tuple(Shared(exchange_buffer(d), d, kernel.threads) for d in _exchanged(function))
    room = room if language == "opencl" else ()
    body = (*room, *function.before, call, *function.after)
    caller = replace(function.kernel, body=body)
    texts: dict[Language, Callable[[Kernel], str]] = {
        "cuda": cuda_text, "opencl": opencl_text, "c": c_text,
    }  # fmt: skip
    return f"{_header(function, language)}\n{texts[language](caller)}"


def _inlined(name: str, lets: Mapping[str, Expr], bounds: Bounds) -> str:
    if name not in lets:
        return name
    expr = lets[name]
    for other in reversed(list(lets)):
        expr = substitute(expr, {other: lets[other]})
    return index_text(simplify(expr, bounds), bounds)


def _prepared(kernel: Kernel, language: Language) -> DeviceFunction:
    """The function in a kernel that is checked, with names that the language can have."""
    check(kernel)
    check_warp(kernel)
    if kernel.index is not DType.I32:
        raise EmitError(
            "a device function has indices of 32 bits",
            advice="ask for a kernel, or give the function the part of an array that it is about",
        )
    if kernel.threads != kernel.warp_size:
        raise EmitError(
            f"'{kernel.name}' calls its function with {kernel.threads} threads in a block",
            advice=f"give it blocks of {kernel.warp_size}, one warp",
        )
    if language != "cuda":  # there all lanes are always there
        kernel = replace(kernel, body=tuple(_with_all_lanes(kernel.body)))
        kernel = predicate_exchanges(kernel, everywhere=language == "opencl")
    return function_of(spelled_function(kernel, language))


def _with_all_lanes(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements without the way for lanes that are alone."""
    for stmt in body:
        if isinstance(stmt, If) and WHOLE in variables(stmt.condition):
            yield from stmt.then
        else:
            yield stmt


def _header(function: DeviceFunction, language: Language) -> str:
    write = {"cuda": _cuda, "opencl": _opencl, "c": _c}[language]
    lines = comment_lines(function.kernel.doc)
    for condition in function.kernel.requires if function.arrays else ():
        lines += comment_lines(f"Requires: {show(condition)}.")
    comment, text = "\n".join(lines) + "\n", write(function)
    comment += flags_comment(text, function.kernel) if language == "c" else ""
    guard = f"WARPLOOM_{function.name.upper()}_{_digest(text)}"
    return f"{comment}#ifndef {guard}\n#define {guard}\n\n{text}\n#endif\n"


def _digest(text: str) -> str:
    """What tells functions of one name apart: were it the name alone, of two that are included the
    second would be gone without a word."""
    return hashlib.sha256(text.encode()).hexdigest()[:8].upper()


def guarded_helpers(body: str, called: Iterable[str], dialect: Dialect) -> str:
    """Helper functions, each once however many headers a text includes."""
    return "".join(
        f"#ifndef WARPLOOM_HELPER_{name.upper()}\n#define WARPLOOM_HELPER_{name.upper()}\n"
        f"{text}#endif\n\n"
        for name, text in helper_texts(body, called, dialect).items()
    )


def _names(function: DeviceFunction, language: Language) -> Iterable[str]:
    """What a caller gives, in order."""
    yield from (each.name for each in function.arrays)
    yield from (name for name in function.numbers if name != WHOLE)
    yield from (each.name for each in function.shared)
    if language == "opencl":
        yield from (exchange_buffer(dtype) for dtype in _exchanged(function))
    yield from (each.name for each in function.registers)


def _exchanged(function: DeviceFunction) -> list[DType]:
    shuffles = (each for each in walk(function.body) if isinstance(each, Shuffle))
    return list(dict.fromkeys(dtype_of(each.value) for each in shuffles))


# -- CUDA ------------------------------------------------------------------------------------------


def _cuda(function: DeviceFunction) -> str:
    if function.is_template:
        return item_function(function, guarded_helpers)
    kernel = replace(function.kernel, body=function.body)
    printer = CudaPrinter(kernel)
    printer.constants = set()  # what the kernel has as a structure is given as a pointer
    if kernel.warp_size < HARDWARE_WARP:
        printer.lines.add("const int thread = warploom_lane();")
        printer.lines.add(f"const int lane = thread % {kernel.warp_size};")
    else:
        printer.lines.add(LANE_TEXT)
    if WHOLE in function.numbers:
        printer.lines.add(WHOLE_TEXT)
    printer.statements(function.body)
    body = without_idle(printer.lines.text())
    texts = {each.name: _array(each, CUDA, "") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers if name != WHOLE}
    texts |= {each.name: f"{CUDA.types[each.dtype]}* {each.name}" for each in function.shared}
    texts |= {each.name: _reference(each, function) for each in function.registers}
    called = guarded_helpers(body, printer.values.helpers, CUDA)
    head = f"__device__ __forceinline__ void {function.name}({parameters(texts)}) {{\n"
    return f"{LANE_FUNCTION}{called}{head}{with_all_named(body, texts)}}}\n"


def _reference(registers: Registers, function: DeviceFunction) -> str:
    const = "" if registers.name in function.written else "const "
    kind = CUDA.types[registers.dtype]
    size = "" if registers.size is None else f"[{registers.size}]"
    name = f"(&{registers.name}){size}" if size else f"&{registers.name}"
    return f"{const}{kind} {name}"


def _array(array: ArrayParam, dialect: Dialect, space: str) -> str:
    if array.space == "constant":
        where = "__constant " if space else "const "
        return f"{where}{dialect.types[array.dtype]}* {array.name}"
    const = "const " if array.const else ""
    return f"{space}{const}{dialect.types[array.dtype]}*{dialect.restrict} {array.name}"


# -- OpenCL ----------------------------------------------------------------------------------------


class _LocalFunctionPrinter(LocalPrinter):
    """Lanes exchange through room that the caller gives, an element for each lane of the warp."""

    def prologue(self) -> None:
        linear = "get_local_id(0) + get_local_size(0) * (get_local_id(1)"
        linear += " + get_local_size(1) * get_local_id(2))"
        self.lines.add(f"const int lane = (int)(({linear}) % {self.kernel.warp_size});")
        if self.exchanged:
            self.lines.add("const int thread = lane;")


def _opencl(function: DeviceFunction) -> str:
    kernel = replace(function.kernel, body=function.body)
    printer = _LocalFunctionPrinter(kernel)
    body = without_idle(printer.body())
    texts = {each.name: _array(each, OPENCL, "__global ") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers}
    for each in function.shared:
        texts[each.name] = f"__local {OPENCL.types[each.dtype]}* {each.name}"
    for dtype in _exchanged(function):
        name = exchange_buffer(dtype)
        texts[name] = f"__local {OPENCL.types[dtype]}* {name}"
    for registers in function.registers:
        const = "" if registers.name in function.written else "const "
        texts[registers.name] = f"{const}{OPENCL.types[registers.dtype]}* {registers.name}"
    called = guarded_helpers(body, printer.values.helpers, OPENCL)
    head = f"static void {function.name}({parameters(texts)}) {{\n"
    return f"{pragmas(kernel, False, False)}{called}{head}{with_all_named(body, texts)}}}\n"


# -- C ---------------------------------------------------------------------------------------------


class _CFunctionPrinter(CPrinter):
    """Registers that are given lie in arrays with an element for each lane."""

    def __init__(self, function: DeviceFunction) -> None:
        super().__init__(replace(function.kernel, body=function.body))
        self.function = function

    def body(self) -> str:
        self.memory()
        self.crossing |= {each.name: each for each in self.function.registers}
        self.parts(self.kernel.body, {})
        return self.lines.text()


def _c(function: DeviceFunction) -> str:
    printer = _CFunctionPrinter(function)
    body = printer.body()
    texts = {each.name: _array(each, C, "") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers}
    texts |= {each.name: f"{C.types[each.dtype]}* {each.name}" for each in function.shared}
    lanes = function.kernel.threads
    for registers in function.registers:
        size = "" if registers.size is None else f"[{registers.size}]"
        texts[registers.name] = f"{C.types[registers.dtype]} {registers.name}{size}[{lanes}]"
    called = guarded_helpers(body, printer.values.helpers, C)
    head = f"static inline void {function.name}({parameters(texts)}) {{\n"
    return (
        f"{preamble(called + body, printer.kernel)}{called}{head}{with_all_named(body, texts)}}}\n"
    )
