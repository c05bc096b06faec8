"""Index functions in C, CUDA and OpenCL: compiled, run, and compared with their layouts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.layout.strategies import layouts
from tests.sampled import examples
from tests.tools import require

from warploom.emit.index_function import index_function
from warploom.errors import WarploomError
from warploom.index.table import tabulated
from warploom.layout.language.build import padded, row_major, swizzled
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import expression, names_of, sizes_of
from warploom.layout.language.ir import Compose, Layout, Matrix, Table, compose
from warploom.layout.language.parse import parse
from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.native import c_compiler
from warploom.ptx import load
from warploom.runtime.compile import compile_cuda

REVERSED = tuple(1 << b for b in range(5)) + tuple(
    1 << (5 + b) | 1 << (4 - b) for b in range(5)
)  # column ^ row with its bits in reverse order
LAYOUTS: dict[str, Layout] = {
    "rows": row_major(32, 32),
    "padded": padded(16, 24, by=1),
    "swizzled": swizzled(64, 64, bits=3, base=3, shift=3),
    "reversed": Compose(Matrix(REVERSED, 0), row_major(32, 32)),
    "matrix": parse("F2[16,1,2,4,8,63,64,128,256,512]^3 o (32,32):(32,1)"),
    "tiles": parse("tile<40,4,8> o rotate<40,8,1,4> o (34,34):(40,1)"),
    "exchange": parse("exchange<24,1,8,2> o (32,24):(24,1)"),
    "nested": parse("((2,4),(8,2)):((8,16),(1,64))"),
    "far": parse("rotate<24,24,2147483647,1> o (32,24):(24,1)"),
    "flat": parse("S<2,0,3> o 64:1"),
    "three": parse("pad<5,1> o (2,3,5):(15,5,1)"),
    "table": compose(Table(tuple(range(99, -1, -1))), row_major(10, 10)),
}


def in_order(layout: Layout, results: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Results for the first coordinate slowest, as a layout's values come: the first fastest."""
    return np.asarray(results.reshape(sizes_of(layout)).T).ravel()


def loops(layout: Layout, name: str, out: str) -> str:
    """C statements that call a function at every coordinate."""
    sizes = sizes_of(layout)
    names = names_of(len(sizes))
    heads = [f"for (int {n} = 0; {n} < {s}; ++{n})" for n, s in zip(names, sizes, strict=True)]
    return f"{' '.join(heads)} {out}[at++] = {name}({', '.join(names)});"


def compared_in_c(layouts: dict[str, Layout], tmp_path: Path) -> None:
    """Index functions compiled together, each called at every coordinate."""
    require("c")
    functions = {name: index_function(layout, "c", f"f_{name}") for name, layout in layouts.items()}
    helpers = next((t.split("// ")[0] for t in functions.values() if "floor_" in t), "")
    body = "".join(text.removeprefix(helpers) for text in functions.values())
    calls = "\n".join(
        f"void run_{name}(int *out) {{ int at = 0; {loops(layout, f'f_{name}', 'out')} }}"
        for name, layout in layouts.items()
    )
    source, library = tmp_path / "places.c", tmp_path / "places.so"
    source.write_text(helpers + body + calls)
    compiler = c_compiler()
    assert compiler is not None
    command = [compiler, "-std=c99", "-Wall", "-Werror", "-shared", "-fPIC", "-O1", "-o"]
    subprocess.run([*command, str(library), str(source)], check=True, timeout=60)
    loaded = ctypes.CDLL(str(library))
    for name, layout in layouts.items():
        out = np.zeros(len(values(layout)), np.int32)
        getattr(loaded, f"run_{name}")(out.ctypes.data_as(ctypes.c_void_p))
        assert np.array_equal(in_order(layout, out), values(layout)), name


def test_c_functions_are_their_layouts(tmp_path: Path) -> None:
    compared_in_c(LAYOUTS, tmp_path)


def test_c_functions_of_the_amd_problems(tmp_path: Path) -> None:
    layouts = {}
    for number, name in enumerate(each for each in FIFTY if "@gfx" in each):
        task = Task(pattern(name))
        best = solve(task, "mixed").best
        assert best is not None
        layouts[f"amd{number}"] = task.layout(best)
    assert len(layouts) == 6
    compared_in_c(layouts, tmp_path)


def test_cuda_functions_are_their_layouts() -> None:
    """Compiled for a GPU, run on the emulator; also the one that reverses bits, and a table."""
    require("ptx")
    chosen = ("swizzled", "reversed", "tiles", "table")
    text = ""
    for name in chosen:
        layout = LAYOUTS[name]
        rows, columns = sizes_of(layout)
        text += index_function(layout, "cuda", f"f_{name}")
        text += f'extern "C" __global__ void run_{name}(int *out) {{\n'
        text += f"  int at = blockIdx.x * blockDim.x + threadIdx.x;\n  if (at < {rows * columns})"
        text += f" out[at] = f_{name}(at / {columns}, at % {columns});\n}}\n"
    assert "__brev" in text
    module = load(compile_cuda(text).text)
    for name in chosen:
        layout = LAYOUTS[name]
        out = np.zeros(len(values(layout)), np.int32)
        blocks = -(-len(out) // 128)
        module.kernel(f"run_{name}").launch(blocks, 128, [out])
        assert np.array_equal(in_order(layout, out), values(layout)), name


OPENCL = """
import sys
import numpy as np
from warploom.runtime.opencl import pyopencl

cl = pyopencl()
device = next(each for one in cl.get_platforms() for each in one.get_devices())
context = cl.Context([device])
queue = cl.CommandQueue(context)
out = np.zeros(int(sys.argv[1]), np.int32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, out.nbytes)
kernel = cl.Kernel(cl.Program(context, sys.stdin.read()).build(), "run")
kernel.set_args(buffer)
cl.enqueue_nd_range_kernel(queue, kernel, out.shape, None)
cl.enqueue_copy(queue, out, buffer)
queue.finish()
print(*out)
"""


@pytest.mark.slow
def test_opencl_functions_are_their_layouts(tmp_path: Path) -> None:
    """In a process of its own, with a cache of its own: a compiler for the GPU may be loaded here,
    and what others left half written in a common cache crashes the reader."""
    require("opencl")
    layout = LAYOUTS["tiles"]
    rows, columns = sizes_of(layout)
    text = index_function(layout, "opencl", "f") + (
        "__kernel void run(__global int *out) {\n  int at = get_global_id(0);\n"
        f"  out[at] = f(at / {columns}, at % {columns});\n}}\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", OPENCL, str(rows * columns)]
    own = os.environ | {"POCL_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=True, env=own)
    out = np.array(ran.stdout.split(), np.int32)
    assert np.array_equal(in_order(layout, out), values(layout))


@given(layouts())
@examples(25)
def test_expressions_of_random_layouts(layout: Layout) -> None:
    sizes = sizes_of(layout)
    try:
        form = expression(layout)
    except WarploomError:
        assert "table" in repr(layout).lower()
        return
    found = tabulated(form, dict(zip(names_of(len(sizes)), sizes, strict=True)))
    assert np.array_equal(found.ravel(order="F"), values(layout))


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "cuda", "opencl"])
def test_every_answer_has_an_index_function(language: str) -> None:
    for name in FIFTY:
        task = Task(pattern(name))
        best = solve(task, "mixed").best
        assert best is not None
        assert "int place(" in index_function(task.layout(best), language)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: index_function(row_major(4, 4), "fortran"), "no index function in 'fortran'"),
        (lambda: index_function(row_major(4, 4), "c", "a b"), "no name of a function"),
        (lambda: index_function(Table(tuple(range(0, 3 << 15, 3))), "c"), "too large"),
        (lambda: expression(parse("table[1,2,4]")), "no expression"),
    ],
)
def test_what_cannot_be_written(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(WarploomError, match=message):
        call()
