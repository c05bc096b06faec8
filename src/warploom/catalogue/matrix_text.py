"""Conversions by ldmatrix and stmatrix as CUDA text: kernels have no statement for these.

The kernel has the parameters of all conversions, and the same meaning: `conversion.py`.
"""

from __future__ import annotations

import numpy as np

from warploom.errors import UnsupportedError
from warploom.index.ir import Expr, Var
from warploom.index.show import c_text
from warploom.index.table import thread_expression
from warploom.layout.conversion.convert import Conversion
from warploom.layout.conversion.fragment import LANES
from warploom.layout.conversion.staging import Side, Staging
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.show import show
from warploom.layout.patterns.access import IDLE
from warploom.machine.record import CUDA

TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}
VECTORS = {4: "unsigned int", 8: "uint2", 16: "uint4"}


def matrix_text(conversion: Conversion, name: str = "convert", *, looped: bool = False) -> str:
    """The whole kernel; or the one that is measured, see `conversion.looped_text`."""
    way = conversion.matrices
    if way is None:
        raise UnsupportedError(
            "this conversion cannot be done by 'matrices'",
            advice=conversion.why.get("matrices", ""),
        )
    if way.slots * conversion.unit_bytes > CUDA.shared_bytes:
        raise UnsupportedError(
            f"this conversion takes {way.slots * conversion.unit_bytes} bytes of shared memory",
            advice=f"a block may declare at most {CUDA.shared_bytes}; convert smaller parts",
        )
    source, target = conversion.source, conversion.target
    kind, threads = TYPES[conversion.unit_bytes], LANES * source.warps
    held, wanted = source.registers, target.registers
    parts = 4 // conversion.unit_bytes if looped else 1  # matrices have whole words on both sides
    word = TYPES[conversion.unit_bytes * parts]
    meet = "__syncwarp();" if way.within_warps else "__syncthreads();"
    iterations = "const int iterations, " if looped else ""
    lines = [
        f"// From {source.name} to {target.name}: {way.store.name} and {way.load.name}.",
        f"// Shared memory: {show(way.layout)}",
        f"// Launch: (blocks) blocks of {threads} threads.",
        f'extern "C" __global__ void __launch_bounds__({threads})',
        f"{name}(const int blocks, {iterations}const {word}* __restrict__ x, "
        f"{word}* __restrict__ y) {{",
        f"  __shared__ __align__(16) {kind} memory[{way.slots}];",
        "  const int block_x = (int)blockIdx.x, thread = (int)threadIdx.x;",
        f"  const int lane = thread % {CUDA.lanes}, warp = thread / {CUDA.lanes};",
        f"  {kind} held[{held}], after[{wanted}];",
    ]
    body = []
    for step in range(way.store.steps):
        body += _access(way, way.store, step, conversion.unit_bytes, "held")
    body.append(f"  {meet}")
    for step in range(way.load.steps):
        body += _access(way, way.load, step, conversion.unit_bytes, "after")
    body += [f"  after[{register}] = after[{one}];" for register, one in way.load.copies]
    given, taken = ("words", "totals") if looped else ("held", "after")
    loaded = _each("r", held // parts, f"{given}[r] = x[{_at(held // parts, threads)}];")
    stored = _each("r", wanted // parts, f"y[{_at(wanted // parts, threads)}] = {taken}[r];")
    if looped:
        lines.append(f"  {word} words[{held // parts}], totals[{wanted // parts}] = {{}};")
        body = _iterations(body, held, wanted, parts, meet)
    return "\n".join([*lines, *loaded, *body, *stored, "}\n"])


def _at(count: int, threads: int) -> str:
    return f"(block_x * {count} + r) * {threads} + thread"


def _each(var: str, count: int, *statements: str) -> list[str]:
    head = ["  #pragma unroll", f"  for (int {var} = 0; {var} < {count}; ++{var}) {{"]
    return [*head, *(f"    {each}" for each in statements), "  }"]


def _iterations(body: list[str], held: int, wanted: int, parts: int, meet: str) -> list[str]:
    """The body in a loop, words taken apart before and put together after."""
    bits = 32 // parts
    apart = [
        f"held[r * {parts} + {n}] = words[r]" + (f" >> {bits * n};" if n else ";")
        for n in range(parts)
    ]
    joined = _word("after", tuple(range(parts))).replace("after[", f"after[r * {parts} + ")
    return [
        "  for (int iteration = 0; iteration < iterations; ++iteration) {",
        "  const unsigned changed = (unsigned)(iteration % 256) * 0x01010101u;",
        *_each("r", held // parts, "words[r] ^= changed;", *apart),
        f"  {meet}",
        *body,
        *_each("r", wanted // parts, f"totals[r] ^= {joined};"),
        "  }",
    ]


def _access(way: Staging, side: Side, step: int, unit_bytes: int, array: str) -> list[str]:
    """One instruction, with what puts registers into words and back."""
    store = array == "held"
    registers, parts = side.registers[step], 4 // unit_bytes
    first = side.elements[:, step, :, 0]
    at, active = _address(way, first)
    if "matrix" in side.kind:
        body = _matrix(side.kind, registers, parts, at, array)
    else:
        body = _vector(registers, unit_bytes, at, array, store)
    guard = "" if active is None or "matrix" in side.kind else f"if ({active}) "
    return [f"  {guard}{{", *(f"    {line}" for line in body), "  }"]


def _address(way: Staging, first: Numbers) -> tuple[str, str | None]:
    """The place that each thread names. Lanes beyond the rows of a matrix name the first."""
    busy = first != IDLE
    table = np.where(busy, way.addresses[np.maximum(first, 0)], way.addresses[first[:, :1]])
    names = tuple(Var(name) for name in ("thread", "lane", "warp"))
    bounds = {"thread": (0, first.size - 1), "lane": (0, LANES - 1), "warp": (0, len(first) - 1)}

    def text(expr: Expr) -> str:
        return c_text(expr, bounds)

    at = text(thread_expression(table, *names))
    if busy.all():
        return at, None
    return at, text(thread_expression(busy.astype(np.int64), *names))


def _matrix(kind: str, registers: tuple[int, ...], parts: int, at: str, array: str) -> list[str]:
    words = [registers[n : n + parts] for n in range(0, len(registers), parts)]
    name, *trans = kind.split(".")
    opcode = ".".join([name, "sync.aligned.m8n8", f"x{len(words)}", *trans, "shared.b16"])
    lines = [f"const unsigned at = (unsigned)__cvta_generic_to_shared(&memory[{at}]);"]
    numbers = range(len(words))
    if name == "stmatrix":
        listed = ", ".join(f"%{n + 1}" for n in numbers)
        given = ", ".join(f'"r"({_word(array, word)})' for word in words)
        lines.append(
            f'asm volatile("{opcode} [%0], {{{listed}}};" :: "r"(at), {given} : "memory");'
        )
        return lines
    listed = ", ".join(f"%{n}" for n in numbers)
    results = ", ".join(f'"=r"(w{n})' for n in numbers)
    lines += [f"unsigned {', '.join(f'w{n}' for n in numbers)};"]
    lines.append(
        f'asm volatile("{opcode} {{{listed}}}, [%{len(words)}];" : {results} : "r"(at) : "memory");'
    )
    return lines + [
        line for n, word in enumerate(words) for line in _unpacked(f"w{n}", array, word)
    ]


def _vector(
    registers: tuple[int, ...], unit_bytes: int, at: str, array: str, store: bool
) -> list[str]:
    """A plain access: as words where it has whole ones, else register by register."""
    size, parts = len(registers) * unit_bytes, 4 // unit_bytes
    if size < 4:
        cells = [(f"memory[{at} + {n}]", f"{array}[{r}]") for n, r in enumerate(registers)]
        return [f"{a} = {b};" if store else f"{b} = {a};" for a, b in cells]
    words = [registers[n : n + parts] for n in range(0, len(registers), parts)]
    kind = VECTORS[size]
    names = [f"v.{axis}" for axis in "xyzw"[: len(words)]] if size > 4 else ["v"]
    if store:
        lines = [f"{kind} v;"]
        lines += [f"{n} = {_word(array, word)};" for n, word in zip(names, words, strict=True)]
        return [*lines, f"*({kind}*)&memory[{at}] = v;"]
    lines = [f"const {kind} v = *(const {kind}*)&memory[{at}];"]
    for name, word in zip(names, words, strict=True):
        lines += _unpacked(name, array, word)
    return lines


def _word(array: str, registers: tuple[int, ...]) -> str:
    if len(registers) == 1:
        return f"{array}[{registers[0]}]"
    bits = 32 // len(registers)
    parts = [
        f"(unsigned){array}[{r}]" + (f" << {bits * n}" if n else "")
        for n, r in enumerate(registers)
    ]
    return (
        " | ".join(f"({part})" for part in parts) if len(parts) > 1 else f"{array}[{registers[0]}]"
    )


def _unpacked(word: str, array: str, registers: tuple[int, ...]) -> list[str]:
    if len(registers) == 1:
        return [f"{array}[{registers[0]}] = {word};"]
    bits = 32 // len(registers)
    mask = (1 << bits) - 1
    return [f"{array}[{r}] = ({word} >> {bits * n}) & {mask}u;" for n, r in enumerate(registers)]
