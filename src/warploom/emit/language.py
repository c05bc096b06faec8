"""What each language of `choices.py` is: a kernel, a function or an index function in, text out.

A language is a name there, a module of this folder and its row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.choices import LANGUAGES
from warploom.emit.c import c, c_text, flags_comment
from warploom.emit.cuda import check_warp, cuda, cuda_text
from warploom.emit.dialect import CUDA, OPENCL, C, Dialect, Language
from warploom.emit.function import (
    c_function,
    cuda_function,
    exchanged,
    hip_function,
    opencl_function,
)
from warploom.emit.helper import include_guard
from warploom.emit.hip import HIP, hip, hip_text
from warploom.emit.opencl import opencl, opencl_text
from warploom.emit.parts import comment_lines, exchange_buffer
from warploom.emit.spell import spelled_function
from warploom.errors import EmitError, one_of
from warploom.index.ir import Expr, substitute, variables
from warploom.index.laws import simplify
from warploom.index.show import c_text as index_text
from warploom.index.show import show
from warploom.kernel.bounds import Bounds, static_bounds
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.function import WHOLE, Call, DeviceFunction, function_of
from warploom.kernel.ir import If, Kernel, Let, Shared, Stmt
from warploom.kernel.predicate import predicate_exchanges


@dataclass(frozen=True, slots=True)
class Backend:
    """`kernel` gives a whole text, `body` what follows its comment, `function` a device function.
    `structures`: constant arrays are passed in structures; `exchanges`: lanes exchange through
    memory that a caller gives; `loops`: threads are a loop; `whole`: all lanes of a warp are always
    there."""

    dialect: Dialect
    kernel: Callable[[Kernel], str]
    body: Callable[[Kernel], str]
    function: Callable[[DeviceFunction], str] | None
    structures: bool = False
    exchanges: bool = False
    loops: bool = False
    whole: bool = False

    @property
    def name(self) -> Language:
        return self.dialect.language


_ROWS = {
    each.name: each
    for each in (
        Backend(CUDA, cuda, cuda_text, cuda_function, structures=True),
        Backend(HIP, hip, hip_text, hip_function, structures=True, whole=True),
        Backend(OPENCL, opencl, opencl_text, opencl_function, exchanges=True, whole=True),
        Backend(C, c, c_text, c_function, loops=True, whole=True),
    )
}
BACKENDS: dict[Language, Backend] = {name: _ROWS[name] for name in LANGUAGES}


def backend_of(language: Language) -> Backend:
    """The row of a language, or an error that names all."""
    if language not in BACKENDS:
        raise EmitError(
            f"there is no language '{language[:40]}'", advice=one_of(language, BACKENDS)
        )
    return BACKENDS[language]


def emit(kernel: Kernel, language: Language) -> str:
    """The kernel in a language by its name, such as `cuda`."""
    return backend_of(language).kernel(kernel)


def function_text(kernel: Kernel, language: Language) -> str:
    """The header with the function that is written in a kernel."""
    return _header(_prepared(kernel, language), backend_of(language))


def calling_text(kernel: Kernel, language: Language) -> str:
    """The header, and the kernel that calls the function in it."""
    backend, function = backend_of(language), _prepared(kernel, language)
    given = _names(function, backend)
    if backend.structures:
        inside = {each.name for each in function.arrays if each.space == "constant"}
        given = [f"{name}.at" if name in inside else name for name in given]
    if backend.loops:  # where threads are a loop, a caller's names are known in it alone
        lets = {each.name: each.expr for each in function.before if isinstance(each, Let)}
        given = [_inlined(name, lets, static_bounds(kernel)) for name in given]
    call = Call(f"{function.name}({', '.join(given)});", function.registers)
    room = tuple(Shared(exchange_buffer(d), d, kernel.threads) for d in exchanged(function))
    room = room if backend.exchanges else ()
    body = (*room, *function.before, call, *function.after)
    caller = replace(function.kernel, body=body)
    return f"{_header(function, backend)}\n{backend.body(caller)}"


def _inlined(name: str, lets: Mapping[str, Expr], bounds: Bounds) -> str:
    if name not in lets:
        return name
    expr = lets[name]
    for other in reversed(list(lets)):
        expr = substitute(expr, {other: lets[other]})
    return index_text(simplify(expr, bounds), bounds)


def _prepared(kernel: Kernel, language: Language) -> DeviceFunction:
    """The function in a kernel that is checked, with names that the language can have."""
    backend = backend_of(language)
    if backend.function is None:
        have = ", ".join(each.name for each in BACKENDS.values() if each.function is not None)
        raise EmitError(f"there are no device functions in {language}", advice=f"use {have}")
    check(kernel)
    check_warp(kernel)
    if kernel.index is not DType.I32:
        raise EmitError(
            "a device function has indices of 32 bits",
            advice="ask for a kernel, or pass the function only its part of the array",
        )
    if kernel.threads != kernel.warp_size:
        raise EmitError(
            f"'{kernel.name}' calls its function with {kernel.threads} threads in a block",
            advice=f"give it blocks of {kernel.warp_size}, one warp",
        )
    if backend.whole:
        kernel = replace(kernel, body=tuple(_with_all_lanes(kernel.body)))
    if backend.loops or backend.exchanges:
        kernel = predicate_exchanges(kernel, everywhere=backend.exchanges)
    return function_of(spelled_function(kernel, language))


def _with_all_lanes(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements without the way for lanes that are alone."""
    for stmt in body:
        if isinstance(stmt, If) and WHOLE in variables(stmt.condition):
            yield from stmt.then
        else:
            yield stmt


def _header(function: DeviceFunction, backend: Backend) -> str:
    assert backend.function is not None  # `_prepared` looked
    lines = comment_lines(function.kernel.doc)
    for condition in function.kernel.requires if function.arrays else ():
        lines += comment_lines(f"Requires: {show(condition)}.")
    comment, text = "\n".join(lines) + "\n", backend.function(function)
    comment += flags_comment(text, function.kernel) if backend.loops else ""
    return include_guard(function.name, text, comment)


def _names(function: DeviceFunction, backend: Backend) -> Iterable[str]:
    """What a caller gives, in order."""
    yield from (each.name for each in function.arrays)
    yield from (name for name in function.numbers if name != WHOLE)
    yield from (each.name for each in function.shared)
    if backend.exchanges:
        yield from (exchange_buffer(dtype) for dtype in exchanged(function))
    yield from (each.name for each in function.registers)
