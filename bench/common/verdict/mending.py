"""Kernels with one fault each, and mends that are chosen by what the judge says and nothing else.

A mend reads a message, the line that it names, and the call. It knows nothing of the kernel or of
the fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from warploom.verdict.answer import Judgement, Reason
from warploom.verdict.judged import judge

ROUNDS = 3


@dataclass(frozen=True)
class Called:
    """A kernel and its call."""

    text: str
    reference: Callable[..., Any]
    args: Mapping[str, str]
    grid: str = "1"
    block: Any = 128
    shape: Mapping[str, int] = field(default_factory=lambda: {"n": 100})
    accumulate: str | None = "float32"

    def judged(self) -> Judgement:
        return judge(
            self.text, self.reference, self.args, grid=self.grid, block=self.block,
            shape=self.shape, seed=3, others=0, accumulate=self.accumulate,
        )  # fmt: skip

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def with_lines(self, lines: list[str]) -> Called:
        return replace(self, text="\n".join(lines))


# -- the kernels ------------------------------------------------------------------------------

_HEAD = """#include <cuda_bf16.h>
typedef __nv_bfloat16 bf16;
extern "C" __global__ void k("""
REVERSE = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[128];
    int i = threadIdx.x;
    s[i] = x[i];
    __syncthreads();
    y[i] = s[n - 1 - i];
}"""
)
TREE = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[128];
    int i = threadIdx.x;
    s[i] = i < n ? x[i] : 0;
    __syncthreads();
    for (int o = 64; o; o >>= 1) {
        if (i < o) s[i] += s[i + o];
        __syncthreads();
    }
    if (i == 0) y[0] = s[0];
}"""
)
SCALE = (
    _HEAD
    + """const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * x[i];
}"""
)
SAXPY = (
    _HEAD
    + """float *x, float *y, float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = 2 * x[i] + y[i];
}"""
)
TRANSPOSE = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[8][9];
    int u = threadIdx.x, v = threadIdx.y;
    int row = blockIdx.y * 8 + v, column = blockIdx.x * 8 + u;
    s[v][u] = row < n && column < n ? x[row * n + column] : 0;
    __syncthreads();
    row = blockIdx.x * 8 + v, column = blockIdx.y * 8 + u;
    if (row < n && column < n) y[row * n + column] = s[u][v];
}"""
)
STENCIL = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[130];
    int i = threadIdx.x;
    s[i + 1] = i < n ? x[i] : 0;
    if (i == 0) s[0] = 0;
    if (i == 0) s[129] = 0;
    __syncthreads();
    if (i < n) y[i] = s[i] + s[i + 1] + s[i + 2];
}"""
)
CENTRED = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[64];
    int i = threadIdx.x;
    float v = x[blockIdx.x * n + i];
    s[i] = v;
    __syncthreads();
    float mean = 0;
    for (int k = 0; k < n; k++) mean += s[k];
    v -= mean / n;
    __syncthreads();
    s[i] = v * v;
    __syncthreads();
    float square = 0;
    for (int k = 0; k < n; k++) square += s[k];
    y[blockIdx.x * n + i] = v / (square + 1);
}"""
)
MATMUL = (
    _HEAD
    + """const float *x, const float *w, float *y, int n) {
    __shared__ float u[8][8], v[8][8];
    int a = threadIdx.x, b = threadIdx.y;
    float s = 0;
    for (int k = 0; k < n; k += 8) {
        u[b][a] = x[b * n + k + a];
        v[b][a] = w[(k + b) * 8 + a];
        __syncthreads();
        for (int i = 0; i < 8; i++) s = float(s) + u[b][i] * v[i][a];
        __syncthreads();
    }
    y[b * 8 + a] = s;
}"""
)
ROWS = (
    _HEAD
    + """const float *x, float *y, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 32) s = float(s) + x[blockIdx.x * n + i];
    for (int o = 16; o; o >>= 1) s = float(s) + float(__shfl_xor_sync(0xffffffff, s, o));
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}"""
)
SCAN = (
    _HEAD
    + """const float *x, float *y, int n) {
    __shared__ float s[128];
    int i = threadIdx.x;
    s[i] = i < n ? x[i] : 0;
    __syncthreads();
    for (int o = 1; o < 128; o *= 2) {
        float left = i >= o ? s[i - o] : 0;
        __syncthreads();
        s[i] += left;
        __syncthreads();
    }
    if (i < n) y[i] = s[i];
}"""
)


def _stencil(x: Any) -> Any:
    zero = np.zeros(1)
    wide = np.concatenate([zero, x, zero])
    return wide[:-2] + wide[1:-1] + wide[2:]


def _centred(x: Any) -> Any:
    v = x - x.mean(axis=1, keepdims=True)
    return v / ((v * v).sum(axis=1, keepdims=True) + 1)


_LINE = {"x": "f32[n]", "y": "f32[n]=out", "n": "i32=n"}
_ROWS = {"x": "f32[2,n]", "y": "f32[2,n]=out", "n": "i32=n"}
_GRID = "(n+127)//128"
RIGHT = {
    "reverse": Called(REVERSE, lambda x: x[::-1], _LINE, shape={"n": 128}),
    "tree": Called(
        TREE, lambda x: x.sum().reshape(1), {"x": "f32[n]", "y": "f32[1]=out", "n": "i32=n"}
    ),
    "scale": Called(SCALE, lambda x: 3 * x, _LINE, _GRID, shape={"n": 200}),
    "saxpy": Called(
        SAXPY, lambda x, y: 2 * x + y,
        {"x": "f32[n]", "y": "f32[n]", "z": "f32[n]=out", "n": "i32=n"}, _GRID, shape={"n": 200},
    ),
    "transpose": Called(
        TRANSPOSE, lambda x: x.T, {"x": "f32[n,n]", "y": "f32[n,n]=out", "n": "i32=n"},
        "(n+7)//8,(n+7)//8", (8, 8), {"n": 13},
    ),
    "stencil": Called(STENCIL, _stencil, _LINE),
    "centred": Called(CENTRED, _centred, _ROWS, "2", 64, {"n": 64}),
    "matmul": Called(
        MATMUL, lambda x, w: x @ w,
        {"x": "f32[8,n]", "w": "f32[n,8]", "y": "f32[8,8]=out", "n": "i32=n"}, "1", (8, 8),
        {"n": 24},
    ),
    "rows": Called(
        ROWS, lambda x: x.sum(axis=1), {"x": "f32[2,n]", "y": "f32[2]=out", "n": "i32=n"}, "2", 32,
        {"n": 70},
    ),
    "scan": Called(SCAN, lambda x: np.cumsum(x), _LINE),
}  # fmt: skip
_BARRIER = "    __syncthreads();\n"

# By name: the kernel, what is replaced by what, which of several places; and for the grid.
FAULTS: dict[str, tuple[str, str, str, int]] = {
    "reverse: no barrier": ("reverse", _BARRIER, "", 0),
    "reverse: writes its input": ("reverse", "y[i] = s", "((float *)x)[i] = s", 0),
    "tree: no barrier before": ("tree", _BARRIER, "", 0),
    "tree: no barrier in the loop": ("tree", "    " + _BARRIER, "", 0),
    "tree: unguarded load": ("tree", "i < n ? x[i] : 0", "x[i]", 0),
    "tree: cells that nobody writes": ("tree", "s[i] = i < n ? x[i] : 0",
                                       "if (i < n) s[i] = x[i]", 0),
    "tree: bound too large": ("tree", "i < n ?", "i <= n ?", 0),
    "scale: unguarded": ("scale", "if (i < n) ", "", 0),
    "scale: bound too small": ("scale", "i < n", "i < n - 1", 0),
    "scale: bound too large": ("scale", "i < n", "i <= n", 0),
    "scale: factor": ("scale", "3 *", "2 *", 0),
    "scale: sign": ("scale", "3 *", "-3 *", 0),
    "scale: grid": ("scale", _GRID, "n//128", -1),
    "saxpy: reads its output": ("saxpy", "z[i] = 2", "z[i] += 2", 0),
    "saxpy: writes its input": ("saxpy", "z[i] = 2", "x[i] = 2", 0),
    "saxpy: grid": ("saxpy", _GRID, "n//128", -1),
    "transpose: no barrier": ("transpose", _BARRIER, "", 0),
    "transpose: unguarded load": ("transpose", "row < n && column < n ? x[row * n + column] : 0",
                                  "x[row * n + column]", 0),
    "transpose: grid": ("transpose", "(n+7)//8,(n+7)//8", "(n+7)//8,n//8", -1),
    "stencil: no barrier": ("stencil", _BARRIER, "", 0),
    "stencil: no cell at the left": ("stencil", "    if (i == 0) s[0] = 0;\n", "", 0),
    "stencil: unguarded load": ("stencil", "i < n ? x[i] : 0", "x[i]", 0),
    "stencil: unguarded store": ("stencil", "if (i < n) y[i]", "y[i]", 0),
    "centred: no barrier at first": ("centred", _BARRIER, "", 0),
    "centred: no barrier between": ("centred", _BARRIER, "", 1),
    "centred: no barrier at last": ("centred", _BARRIER, "", 2),
    "matmul: no barrier before": ("matmul", "    " + _BARRIER, "", 0),
    "matmul: no barrier after": ("matmul", "    " + _BARRIER, "", 1),
    "matmul: sum in bf16": ("matmul", "float s = 0", "bf16 s = 0", 0),
    "rows: sum in bf16": ("rows", "float s = 0", "bf16 s = 0", 0),
    "rows: half a mask": ("rows", "0xffffffff", "0xffff", 0),
    "rows: bound too large": ("rows", "i < n", "i <= n", 0),
    "scan: no barrier between": ("scan", "    " + _BARRIER, "", 0),
    "scan: no barrier after": ("scan", "    " + _BARRIER, "", 1),
}  # fmt: skip


def faulty(name: str) -> Called:
    """A kernel with its fault; the last number of its row says at which place, or the grid."""
    of, old, new, place = FAULTS[name]
    right = RIGHT[of]
    if place < 0:
        return replace(right, grid=right.grid.replace(old, new))
    parts = right.text.split(old)
    if len(parts) <= place + 1:
        raise ValueError(f"{name}: '{old}' is not there")
    left, rest = parts[: place + 1], parts[place + 1 :]
    return replace(right, text=old.join(left) + new + old.join(rest))


# -- the table of mends -----------------------------------------------------------------------


def _place(reason: Reason) -> int:
    """The line that a reason names, from 0; -1 where it names none."""
    return -1 if reason.span is None else reason.span.line - 1


def _ordered(called: Called, reason: Reason, said: re.Match[str]) -> Called:
    """A barrier before the later of two lines; after it if one is between them already, or if the
    line meets itself."""
    lines, here, other = called.lines, _place(reason), int(said[1]) - 1
    first, last = min(here, other), max(here, other)
    between = any("__syncthreads" in line for line in lines[first:last])
    at = last + (between or first == last)
    return called.with_lines([*lines[:at], "        __syncthreads();", *lines[at:]])


def _inside(called: Called, reason: Reason, said: re.Match[str]) -> Called:
    """Within the array: what is read beyond is 0, what is written there is not."""
    name, at = said[1], _place(reason)
    line = called.lines[at]
    index = _indexed(line, name)
    size = "*".join(
        f"({each})" for each in called.args[name].split("[")[1].split("]")[0].split(",")
    )
    whole, within = f"{name}[{index}]", f"(unsigned)({index}) < {size}"
    left, equals, right = line.rpartition(" = ") if " = " in line else ("", "", line)
    if whole in right:
        made = left + equals + right.replace(whole, f"({within} ? {whole} : 0)")
    else:
        made = line.replace(whole, f"if ({within}) {whole}", 1)
    return called.with_lines([*called.lines[:at], made, *called.lines[at + 1 :]])


def _indexed(line: str, name: str) -> str:
    """What stands in the brackets after a name."""
    start = re.search(rf"\b{name}\[", line)
    depth, first = 1, start.end() if start else 0
    for at in range(first, len(line)):
        depth += {"[": 1, "]": -1}.get(line[at], 0)
        if not depth:
            return line[first:at]
    return ""


def _whole(called: Called, _: Reason, __: re.Match[str]) -> Called:
    """Blocks for the rest; and a bound that is not short of the size."""
    grid = re.sub(
        r"(?<![)\w])(\w+)//(\d+)", lambda m: f"({m[1]}+{int(m[2]) - 1})//{m[2]}", called.grid
    )
    if grid != called.grid:
        return replace(called, grid=grid)
    return replace(called, text=re.sub(r"< (\w+) - \d+", r"< \1", called.text))


def _not_read(called: Called, reason: Reason, _: re.Match[str]) -> Called:
    at = _place(reason)
    made = called.lines[at].replace("+=", "=", 1)
    return called.with_lines([*called.lines[:at], made, *called.lines[at + 1 :]])


def _elsewhere(called: Called, _: Reason, said: re.Match[str]) -> Called:
    """What is stored to an input goes to the output."""
    output = next(name for name, text in called.args.items() if text.endswith("=out"))
    stored = rf"(?:\(\(float \*\){said[1]}\)|\b{said[1]})\[([^\]]*)\] = "
    return replace(called, text=re.sub(stored, rf"{output}[\1] = ", called.text))


def _wider(called: Called, reason: Reason, _: re.Match[str]) -> Called:
    """The variable that is stored to on the line, as float."""
    names = re.findall(r"(\w+) \+?= ", called.lines[_place(reason)])
    chosen = names[-1] if names else ""
    return replace(called, text=re.sub(rf"\bbf16 {chosen}\b", f"float {chosen}", called.text))


def _begun(called: Called, reason: Reason, _: re.Match[str]) -> Called:
    """Zeros in the arrays that the line uses, before all else."""
    lines, used = called.lines, called.lines[_place(reason)]
    shared = [
        (n, each[1], each[2])
        for n, line in enumerate(lines)
        for each in re.finditer(r"__shared__ \w+ (\w+)\[(\d+)\];", line)
        if re.search(rf"\b{each[1]}\[", used)
    ]
    clear = [
        f"    for (int _ = threadIdx.x; _ < {size}; _ += blockDim.x) {name}[_] = 0;"
        for _, name, size in shared
    ]
    at = max((n for n, _, _ in shared), default=0) + 1
    return called.with_lines([*lines[:at], *clear, "    __syncthreads();", *lines[at:]])


def _all_lanes(called: Called, reason: Reason, _: re.Match[str]) -> Called:
    at = _place(reason)
    made = re.sub(r"_sync\(0x[0-9a-f]+", "_sync(0xffffffff", called.lines[at])
    return called.with_lines([*called.lines[:at], made, *called.lines[at + 1 :]])


def _factor(called: Called, found: float, wanted: float, output: str) -> Called | None:
    """What is off by a simple number is multiplied by it."""
    ratio = Fraction(wanted / found).limit_denominator(8)
    if not ratio or abs(float(ratio) * found - wanted) > 1e-5 * abs(wanted):
        return None
    text = re.sub(
        rf"(\b{output}\[[^\]]*\] = )([^;]*);",
        rf"\g<1>{float(ratio)!r}f * (\2);", called.text,
    )  # fmt: skip
    return replace(called, text=text)


Mend = Callable[[Called, Reason, re.Match[str]], Called]
TABLE: tuple[tuple[str, str, Mend], ...] = (
    ("race", r"data race: .* at [^:]*:(\d+)", _ordered),
    ("fault", r"out-of-bounds access of .* (?:into|before) '(\w+)'", _inside),
    ("fault", r"reads shared memory that was never written", _begun),
    ("fault", r"mask|lane", _all_lanes),
    ("reads output", r"", _not_read),
    ("writes input", r"its input (\w+)", _elsewhere),
    ("unwritten", r"", _whole),
    ("accumulator", r"sums are held in", _wider),
)


def mended(called: Called, found: Judgement) -> Called | None:
    """The first mend of the table that a message asks for."""
    shape = found.shapes[0]
    for reason in sorted(shape.reasons, key=lambda each: each.what == "unwritten"):
        for what, pattern, mend in TABLE:
            said = re.search(pattern, reason.message) if what == reason.what else None
            if said is not None:
                return mend(called, reason, said)
    example = shape.counterexample
    if example is not None and example.kernel:
        return _factor(called, example.kernel, example.reference, example.output)
    return None


def rounds(called: Called) -> Iterator[tuple[Called, Judgement]]:
    """Judged, mended by what was said, and judged again, until it is equal."""
    for number in range(ROUNDS + 1):
        found = called.judged()
        yield called, found
        made = mended(called, found) if found.verdict != "equal" and number < ROUNDS else None
        if made is None or (made.text == called.text and made.grid == called.grid):
            return
        called = made
