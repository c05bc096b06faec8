"""The kernels of `layout_device.py`: one for each access and each conversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.catalogue.conversion import conversion_text
from warploom.emit.index_function import index_function
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.access import IDLE, STORES, Access, Problem
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.front import front_of
from warploom.layout.solver.task import Task

Bytes = np.ndarray
LANES = 32
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel of one block; `known` are the bytes of its output that must be as wanted."""

    name: str
    about: str
    text: str
    threads: int
    inputs: list[Any]
    wanted: Bytes
    known: np.ndarray
    model: dict[str, int] = field(default_factory=dict)


def content(elements: np.ndarray, size: int) -> Bytes:
    """The bytes of elements: a number that tells them apart, [..., size]."""
    mixed = (elements.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    shifts = np.arange(size, dtype=np.uint64) % np.uint64(8) * np.uint64(8)
    return ((mixed[..., None] >> shifts) & np.uint64(255)).astype(np.uint8)


# -- accesses --------------------------------------------------------------------------------------


def access_launches(number: int, name: str) -> list[Launch]:
    """The accesses of one problem, in the layout that the solver gives for it."""
    task = Task(pattern(name))
    best = front_of(task, "mixed").best
    assert best is not None
    place = index_function(task.layout(best), "cuda", "place")
    addresses = task.addresses(best.map)
    return [
        _access(f"p{number + 1}_a{n}", task.problem, access, addresses, place, count)
        for n, (access, count) in enumerate(
            zip(task.problem.accesses, best.score.wavefronts, strict=True)
        )
    ]


def _access(
    name: str, problem: Problem, access: Access, addresses: np.ndarray, place: str, count: int
) -> Launch:
    size = problem.element_bytes
    total = -(-(int(addresses.max()) + 1) * size // 16) * 16
    memory, known = np.zeros(total, np.uint8), np.zeros(total, bool)
    spots = (addresses[:, None] * size + np.arange(size)).ravel()
    memory[spots] = content(np.arange(problem.size), size).ravel()
    moved = access.elements != IDLE
    lanes = content(np.maximum(access.elements, 0), size).reshape(access.steps, access.lanes, -1)
    first = np.full((access.steps, LANES), -1, np.int32)
    first[:, : access.lanes] = access.elements[:, :, 0]
    padded = np.zeros((access.steps, LANES, lanes.shape[2]), np.uint8)
    padded[:, : access.lanes] = lanes
    store = access.kind in STORES
    text = place + _kernel(name, problem, access, total, store)
    about = f"{problem.name}: {access.name} ({access.kind})"
    model = {} if access.kind == "cp.async" else {"st" if store else "ld": count}
    if store:
        written = np.unique(access.elements[moved])
        known[(addresses[written][:, None] * size + np.arange(size)).ravel()] = True
        inputs = [first.ravel(), _as_registers(access, padded).ravel()]
        return Launch(name, about, text, LANES, inputs, memory, known, model)
    wanted = _as_registers(access, padded)
    there = np.repeat(first >= 0, wanted.shape[2], axis=1).reshape(wanted.shape)
    if "matrix" in access.kind:  # every lane gets a word of each matrix that has rows
        matrices = (first >= 0).reshape(access.steps, 4, 8).any(axis=2)
        there = np.repeat(matrices, 4, axis=1)[:, None].repeat(LANES, axis=1)
    inputs = [first.ravel(), memory]
    return Launch(name, about, text, LANES, inputs, wanted.ravel(), there.ravel(), model)


def _as_registers(access: Access, rows: Bytes) -> Bytes:
    """The bytes of each lane's registers; of matrices, [step, lane, matrix · 4 bytes]."""
    if "matrix" not in access.kind:
        return rows
    matrices = rows.reshape(access.steps, 4, 8, 16)  # [step, matrix, row, byte]
    if access.kind.endswith(".trans"):
        halves = matrices.reshape(access.steps, 4, 8, 8, 2).transpose(0, 1, 3, 2, 4)
        matrices = halves.reshape(access.steps, 4, 8, 16)
    words = matrices.reshape(access.steps, 4, LANES, 4)
    return np.ascontiguousarray(words.transpose(0, 2, 1, 3)).reshape(access.steps, LANES, 16)


def _kernel(name: str, problem: Problem, access: Access, total: int, store: bool) -> str:
    size, columns = problem.element_bytes, problem.columns
    width = access.width * size
    arguments = "e" if len(problem.shape) == 1 else f"e / {columns}, e % {columns}"
    copy = (
        f"  for (int i = threadIdx.x * 4; i < {total}; i += 128)\n"
        "    *(unsigned*)({to} + i) = *(const unsigned*)({of} + i);\n  __syncthreads();\n"
    )
    body = _one(access, width)
    return (
        f'\nextern "C" __global__ void {name}(const int* first, const unsigned char* given, '
        "unsigned char* out) {\n"
        f"  __shared__ __align__(16) unsigned char memory[{total}];\n"
        "  const int lane = threadIdx.x;\n"
        + ("" if store else copy.format(to="memory", of="given"))
        + f"  #pragma unroll 1\n  for (int step = 0; step < {access.steps}; ++step) {{\n"
        "    const int e = max(0, first[step * 32 + lane]);\n"
        "    const bool active = first[step * 32 + lane] >= 0;\n"
        f"    unsigned char* const at = memory + place({arguments}) * {size};\n{body}  }}\n"
        "  __syncthreads();\n" + (copy.format(to="out", of="memory") if store else "") + "}\n"
    )


def _one(access: Access, width: int) -> str:
    if "matrix" in access.kind:
        return _matrices(access)
    kind, spot = TYPES[width], f"(step * 32 + lane) * {width}"
    if access.kind == "cp.async":
        return (
            "    const unsigned to = (unsigned)__cvta_generic_to_shared(at);\n"
            f'    if (active) asm volatile("cp.async.cg.shared.global [%0], [%1], {width};" '
            f':: "r"(to), "l"(given + {spot}) : "memory");\n'
            '    asm volatile("cp.async.wait_all;" ::: "memory");\n'
        )
    if access.kind == "st":
        return f"    if (active) *({kind}*)at = *(const {kind}*)(given + {spot});\n"
    return f"    if (active) *({kind}*)(out + {spot}) = *(const {kind}*)at;\n"


def _matrices(access: Access) -> str:
    """One instruction for up to four matrices; three are two and one."""
    name, *trans = access.kind.split(".")
    count = int((access.elements[0, :, 0] != IDLE).sum()) // 8
    parts = {4: [(0, 4)], 3: [(0, 2), (2, 1)], 2: [(0, 2)], 1: [(0, 1)]}[count]
    lines = ["const unsigned mine = (unsigned)__cvta_generic_to_shared(at);"]
    for start, many in parts:
        opcode = ".".join([name, "sync.aligned.m8n8", f"x{many}", *trans, "shared.b16"])
        listed = ", ".join(f"%{n + (name == 'stmatrix')}" for n in range(many))
        lines.append("{")
        lines.append(f"const unsigned p = __shfl_sync(~0u, mine, (lane + {8 * start}) & 31);")
        spot = f"((step * 32 + lane) * 4 + {start})"
        if name == "stmatrix":
            given = ", ".join(f'"r"(((const unsigned*)given)[{spot} + {n}])' for n in range(many))
            lines.append(f'asm volatile("{opcode} [%0], {{{listed}}};" :: "r"(p), {given});')
        else:
            results = ", ".join(f'"=r"(w{n})' for n in range(many))
            lines.append(f"unsigned {', '.join(f'w{n}' for n in range(many))};")
            lines.append(f'asm volatile("{opcode} {{{listed}}}, [%{many}];" : {results} : "r"(p));')
            lines += [f"((unsigned*)out)[{spot} + {n}] = w{n};" for n in range(many)]
        lines.append("}")
    return "".join(f"    {line}\n" for line in lines)


# -- conversions -----------------------------------------------------------------------------------


def _rows(size: int, lanes: tuple[int, int], warps: int, order: str = "[1,0]") -> str:
    return f"blocked([1,{size}],[{lanes[0]},{lanes[1]}],[{warps},1],{order})"


def _columns(size: int, lanes: tuple[int, int], warps: int) -> str:
    return f"blocked([{size},1],[{lanes[0]},{lanes[1]}],[1,{warps}],[0,1])"


# (from, to, bytes of an element, shape)
CONVERSIONS: list[tuple[str, str, int, tuple[int, ...] | None]] = [
    *((f"(32,{n}):(1,32)", f"(32,{n}):({n},1)", 4, None) for n in (2, 4, 8, 16, 3, 5, 6, 7, 12)),
    (_rows(1, (1, 32), 1), _columns(1, (32, 1), 1), 4, (32, 32)),
    (_rows(4, (4, 8), 1), _columns(4, (8, 4), 1), 4, (32, 32)),
    (_rows(8, (4, 8), 4), _columns(8, (8, 4), 4), 2, (64, 64)),
    (_rows(8, (4, 8), 4), "mma_a(2,[4,1])", 2, (64, 64)),
    ("mma_c([4,1])", _rows(4, (2, 16), 4), 4, (64, 64)),
    ("mma_c([4,1])", _rows(8, (4, 8), 4), 2, (64, 64)),
    (_rows(1, (1, 32), 1), _columns(1, (16, 2), 1), 4, (16, 32)),
    (_rows(1, (1, 32), 1), _rows(2, (2, 16), 1), 4, (2, 32)),
    ("mma_c()", "mma_a(4)", 1, (16, 32)),
    ("mma_c()", "mma_a(2)", 2, (16, 16)),
    ("blocked([1,3],[4,8],[1,1],[1,0])", "blocked([1,1],[8,4],[1,1],[0,1])", 4, (8, 24)),
]


def conversion_launches(
    number: int, source: str, target: str, size: int, shape: tuple[int, ...] | None
) -> list[Launch]:
    """Every way of one conversion."""
    found = convert(read_fragment(source, shape), read_fragment(target, shape), size)
    ways = [found.chosen] if found.renames is not None else [
        way for way in ("shuffles", "shared", "matrices") if getattr(found, way) is not None
    ]  # fmt: skip
    return [_conversion(f"c{number + 1}_{way}", found, way) for way in ways]


def _conversion(name: str, found: Conversion, way: str) -> Launch:
    source, target, size = found.source, found.target, found.unit_bytes
    text = conversion_text(found, way, "cuda").replace("convert(", f"{name}(", 1)
    threads = LANES * source.warps

    def registers(elements: np.ndarray) -> tuple[Bytes, np.ndarray]:
        turned = elements.transpose(2, 0, 1)
        known = np.repeat((turned != IDLE)[..., None], size, axis=3)
        return content(np.maximum(turned, 0), size).ravel(), known.ravel()

    given, _ = registers(source.elements)
    wanted, known = registers(target.elements)
    staging = {"shared": found.shared, "matrices": found.matrices}.get(way)
    model = {"st": 0, "ld": 0}
    if staging is not None:
        model = dict(zip(("st", "ld"), staging.answer.score.wavefronts, strict=True))
    about = f"{source.name} → {target.name}, {found.element_bytes} bytes: {way}"
    return Launch(name, about, text, threads, [np.int32(1), given], wanted, known, model)
