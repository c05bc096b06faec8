"""Our layouts beside pycute, tensor-layouts and Triton, in an environment of their own.

    make oracles                # .venv-oracles, with the three packages
    .venv-oracles/bin/python -m bench.layout.oracles [--count 10000] [--out FILE]

What is not installed is left out, and the record says so. Triton runs in a child process: it ends
the process on some inputs.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import re
import time
from collections import Counter
from contextlib import redirect_stdout
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np
from bench.common.layout.attributes import register_attribute, shared_attribute
from bench.common.layout.oracle import ALWAYS, KNOWN, OPERATIONS, differences
from bench.harness import arguments, earlier, environment, save
from bench.layout.cute import types
from bench.layout.gluon import pairs
from bench.layout.ranked import ranked

from warploom.errors import CheckError, WarploomError
from warploom.layout.conversion.convert import convert
from warploom.layout.formats.encoding import linear_of
from warploom.layout.formats.fragment_bases import from_bases
from warploom.layout.formats.mlir import Attribute
from warploom.layout.formats.triton import from_offset_bases
from warploom.layout.language.evaluate import values
from warploom.ptx import load


def algebra(name: str, count: int) -> dict[str, Any]:
    """Every operation on random layouts: equal functions, or a known difference."""
    found: dict[str, Any] = {}
    for operation in OPERATIONS:
        seen = differences(name, operation, count, seed=17)
        strange = set(seen) - ALWAYS - KNOWN[operation]
        assert not strange, (operation, strange)
        found[operation] = dict(seen)
    return found


# -- Triton ----------------------------------------------------------------------------------------


def linear(count: int) -> dict[str, Any]:
    """Bases of registers, lanes and warps applied; bases of offsets inverted."""
    from triton.tools import LinearLayout

    draw, seen = np.random.default_rng(5), {"registers": 0, "inverses": 0}
    for number in range(count):
        rows, columns = int(draw.integers(1, 6)), int(draw.integers(1, 6))
        if number % 2:
            bases = {
                name: draw.integers(0, (1 << rows, 1 << columns), (bits, 2)).tolist()
                for name, bits in (("register", int(draw.integers(0, 4))), ("lane", 5), ("warp", 1))
            }
            theirs = LinearLayout.from_bases(
                list(bases.items()), ["dim0", "dim1"], [1 << rows, 1 << columns], False
            )
            ours = from_bases(bases, (1 << rows, 1 << columns)).elements
            warp, lane, register = (int(draw.integers(size)) for size in ours.shape)
            got = theirs.apply({"register": register, "lane": lane, "warp": warp})
            assert got["dim0"] << columns | got["dim1"] == ours[warp, lane, register], bases
            seen["registers"] += 1
            continue
        places = draw.permutation(rows + columns)
        offsets = [[0, 0] for _ in range(rows + columns)]
        for bit, place in enumerate(places.tolist()):
            offsets[place][int(bit >= rows)] = 1 << (bit if bit < rows else bit - rows)
        for first, second in draw.integers(0, rows + columns, (4, 2)).tolist():
            if first != second:  # a sum of two bases instead of one keeps it invertible
                offsets[first] = [
                    a ^ b for a, b in zip(offsets[first], offsets[second], strict=True)
                ]
        theirs = LinearLayout.from_bases([("offset", offsets)], ["dim0", "dim1"]).invert()
        table = values(from_offset_bases(offsets, (1 << rows, 1 << columns)))
        row, column = int(draw.integers(1 << rows)), int(draw.integers(1 << columns))
        assert theirs.apply({"dim0": row, "dim1": column})["offset"] == table[row | column << rows]
        seen["inverses"] += 1
    return seen


def attributes(count: int) -> dict[str, Any]:
    """Random layouts of Triton's IR: our linear layouts are those that Triton makes of them."""
    from triton._filecheck import run_parser
    from triton.backends.compiler import GPUTarget
    from triton.experimental import gluon
    from triton.experimental.gluon import language as ttgl

    @gluon.jit
    def told(layout: ttgl.constexpr, shape: ttgl.constexpr):
        ttgl.static_print(ttgl.to_linear_layout(layout, shape))

    draw, seen = np.random.default_rng(99), Counter[str]()
    while seen.total() < count:
        make = register_attribute if seen.total() % 2 else shared_attribute
        attribute, shape = make(draw)
        layout = _gluon_layout(ttgl, attribute)
        if layout is None:
            continue  # bases and paddings are what Gluon says itself
        out = io.StringIO()
        with redirect_stdout(out):
            run_parser(
                told,
                args=(layout, list(shape)),
                kwargs={"num_warps": _warps(attribute)},
                target=GPUTarget("cuda", 90, 32),
            )
        short = {"register": "reg", "lane": "lane", "warp": "warp", "offset": "offset"}
        ours = linear_of(attribute, shape).lists()
        for name, bases in ours.items():
            key = short.get(name, name)
            said = re.search(rf"{key}_bases=(\[.*?\])(?=, \w+=|\))", out.getvalue())
            assert said is not None, out.getvalue()[:200]
            # Versions of Triton differ in whether a register that repeats another is said.
            theirs, own = ([b for b in each if any(b)] if name == "register" else each
                           for each in (json.loads(said[1]), bases))  # fmt: skip
            assert theirs == own, (str(attribute), shape)
        seen[attribute.name] += 1
    return dict(seen) | {"different": 0}


def _warps(attribute: Attribute) -> int:
    while "parent" in attribute.fields:
        attribute = attribute.parent()
    return prod(attribute.numbers("warpsPerCTA", [1]))


def _gluon_layout(ttgl: Any, attribute: Attribute) -> Any:
    fields: Any = attribute.fields
    match attribute.name:
        case "ttg.blocked":
            return ttgl.BlockedLayout(*(fields[key] for key in fields))
        case "ttg.nvidia_mma":
            version = [fields["versionMajor"], 0]
            return ttgl.NVMMADistributedLayout(version, fields["warpsPerCTA"], fields["instrShape"])
        case "ttg.dot_op":
            parent = _gluon_layout(ttgl, attribute.parent())
            return ttgl.DotOperandLayout(fields["opIdx"], parent, fields["kWidth"])
        case "ttg.slice":
            return ttgl.SliceLayout(fields["dim"], _gluon_layout(ttgl, attribute.parent()))
        case "ttg.swizzled_shared":
            return ttgl.SwizzledSharedLayout(*(fields[key] for key in fields))
        case "ttg.nvmma_shared":
            width, bits = fields["swizzlingByteWidth"], fields["elementBitWidth"]
            return ttgl.NVMMASharedLayout(width, bits, 2, fields["transposed"])
    return None


OPS = re.compile(r"\b(shfl\.sync|(?:ld|st)\.shared|ldmatrix|stmatrix)")


def shuffles(count: int) -> dict[str, Any]:
    """Random conversions within a warp that Triton itself does by shuffles: ours are no more."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental import gluon
    from triton.experimental.gluon import _runtime
    from triton.experimental.gluon import language as ttgl

    @gluon.jit
    def moved(x, y, n: ttgl.constexpr, a: ttgl.constexpr, b: ttgl.constexpr):
        at = ttgl.arange(0, n, layout=a)
        to = ttgl.arange(0, n, layout=b)
        ttgl.store(y + to, ttgl.convert_layout(ttgl.load(x + at), b))

    draw = np.random.default_rng(9)
    found: dict[str, Any] = {"by_shuffles": 0, "by_memory": 0, "by_nothing": 0, "pairs": []}
    for _ in range(count):
        register_bits, size = int(draw.integers(1, 4)), int(draw.choice([1, 2, 4]))
        bits = register_bits + 5
        one = [[1 << bit] for bit in range(bits)]
        two = [list(base) for base in one]
        for _ in range(int(draw.integers(1, 3))):  # a few exchanges: few mixed bits
            first, second = draw.integers(0, bits, 2).tolist()
            two[first], two[second] = two[second], two[first]
        layouts = [
            ttgl.DistributedLinearLayout(b[:register_bits], b[register_bits:], [], [], [1 << bits])
            for b in (one, two)
        ]
        names = {"x": f"*i{8 * size}", "y": f"*i{8 * size}", **dict.fromkeys("nab", "constexpr")}
        constants = {"n": 1 << bits, "a": layouts[0], "b": layouts[1]}
        source = _runtime.GluonASTSource(moved, signature=names, constexprs=constants)
        ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
        ops = OPS.findall(ptx.asm["ptx"])
        theirs = ops.count("shfl.sync")
        source_, target = (
            from_bases({"register": b[:register_bits], "lane": b[register_bits:]}, None)
            for b in (one, two)
        )
        plan = convert(source_, target, size, shared=False)
        ours = plan.shuffles.rounds if plan.shuffles is not None else 0
        if len(ops) > theirs:
            found["by_memory"] += 1
        elif theirs:
            assert ours <= theirs, (one, two, size, ours, theirs)
            found["by_shuffles"] += 1
            found["pairs"].append([ours, theirs])
        else:
            assert ours == 0, (one, two, size)
            found["by_nothing"] += 1
    return found


def _gluon_cases(ttgl: Any) -> list[tuple[str, int, tuple[int, int], Any, Any, int]]:
    """Conversions that Triton itself does in several ways: name, bytes, shape, from, to, warps."""

    def rows(wide: int, lanes: list[int], warps: int) -> Any:
        return ttgl.BlockedLayout([1, wide], lanes, [warps, 1], [1, 0])

    def columns(tall: int, lanes: list[int], warps: int) -> Any:
        return ttgl.BlockedLayout([tall, 1], lanes, [1, warps], [0, 1])

    def mma(warps: int) -> Any:
        return ttgl.NVMMADistributedLayout(
            version=[2, 0], warps_per_cta=[warps, 1], instr_shape=[16, 8]
        )

    def operand(warps: int, k: int) -> Any:
        return ttgl.DotOperandLayout(operand_index=0, parent=mma(warps), k_width=k)

    plain = rows(1, [1, 32], 1)
    return [
        ("f32 32x32, rows to columns", 4, (32, 32), plain, columns(1, [32, 1], 1), 1),
        ("f32 32x32, v4", 4, (32, 32), rows(4, [4, 8], 1), columns(4, [8, 4], 1), 1),
        ("f32 128x128, v4", 4, (128, 128), rows(4, [1, 32], 4), columns(4, [32, 1], 4), 4),
        ("f16 64x64, v8", 2, (64, 64), rows(8, [4, 8], 4), columns(8, [8, 4], 4), 4),
        ("f16 64x64 to mma A", 2, (64, 64), rows(8, [4, 8], 4), operand(4, 2), 4),
        ("f32 64x64 of mma C", 4, (64, 64), mma(4), rows(4, [2, 16], 4), 4),
        ("f16 64x64 of mma C", 2, (64, 64), mma(4), rows(8, [4, 8], 4), 4),
        ("f32 16x32, columns in pairs", 4, (16, 32), plain, columns(1, [16, 2], 1), 1),
        ("f32 2x32", 4, (2, 32), plain, rows(2, [2, 16], 1), 1),
        ("f32 4x32", 4, (4, 32), plain, rows(4, [4, 8], 1), 1),
        ("f32 8x32", 4, (8, 32), plain, rows(8, [8, 4], 1), 1),
        ("f16 16x16, mma C to A", 2, (16, 16), mma(1), operand(1, 2), 1),
        ("i8 16x32, mma C to A", 1, (16, 32), mma(1), operand(1, 4), 1),
    ]


def emulated(_: int) -> dict[str, Any]:
    """Those conversions as Triton compiles them, run on our emulator: right, without conflicts."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental import gluon
    from triton.experimental.gluon import _runtime
    from triton.experimental.gluon import language as ttgl

    @gluon.jit
    def moved(x, y, m: ttgl.constexpr, n: ttgl.constexpr, a: ttgl.constexpr, b: ttgl.constexpr):
        row = ttgl.arange(0, m, layout=ttgl.SliceLayout(1, a))
        column = ttgl.arange(0, n, layout=ttgl.SliceLayout(0, a))
        w = ttgl.convert_layout(ttgl.load(x + row[:, None] * n + column[None, :]), b)
        to_row = ttgl.arange(0, m, layout=ttgl.SliceLayout(1, b))
        to_column = ttgl.arange(0, n, layout=ttgl.SliceLayout(0, b))
        ttgl.store(y + to_row[:, None] + to_column[None, :] * m, w)

    found: dict[str, Any] = {}
    for name, size, shape, a, b, warps in _gluon_cases(ttgl):
        kind = f"*i{8 * size}"
        names = {"x": kind, "y": kind, **dict.fromkeys("mnab", "constexpr")}
        constants = {"m": shape[0], "n": shape[1], "a": a, "b": b}
        source = _runtime.GluonASTSource(
            moved, signature=names, constexprs=constants,
            attrs={(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]},
        )  # fmt: skip
        made = triton.compile(
            source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}
        )
        ops = OPS.findall(made.asm["ptx"])
        row: dict[str, Any] = {"emitted": {op: ops.count(op) for op in sorted(set(ops))}}
        row |= _run(made.asm["ptx"], size, shape, 32 * warps, int(made.metadata.shared))
        found[name] = row
    return found


def _run(text: str, size: int, shape: tuple[int, int], threads: int, shared: int) -> dict[str, Any]:
    kind: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32}[size]
    x = np.random.default_rng(size).integers(0, np.iinfo(kind).max, shape, kind)
    y = np.zeros(shape[::-1], kind)
    try:
        module = load(text)
        kernel = module.kernel("moved")
        more = [0] * (len(kernel.function.parameters) - 2)  # scratch memory, which is not used
        ran = kernel.launch(
            1, threads, [x.ravel(), y.ravel(), *more], shared_bytes=shared, counters=True
        )
    except WarploomError as error:
        return {"not_run": error.message}
    assert (y == x.T).all(), "Triton's conversion is wrong on the emulator"
    return {"right": True, "conflicts": int(ran.bank_conflicts)}


def in_child(function: Any, count: int) -> dict[str, Any]:
    """The result of a function in a process of its own; what ends that is said."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_child, args=(function, count, there))
    child.start()
    there.close()
    try:
        found: dict[str, Any] = here.recv()
    except EOFError:
        found = {"failed": f"the process ended with {child.exitcode}"}
    child.join()
    return found


def _child(function: Any, count: int, there: Any) -> None:
    try:
        there.send(function(count))
    except (AssertionError, CheckError) as error:
        there.send({"failed": f"{type(error).__name__}: {error}"})


def main() -> None:
    parser = arguments(__doc__, "layout_oracles.json")
    parser.add_argument("lines", nargs="*", metavar="LINE", help="by default all of them")
    parser.add_argument("--count", type=int, default=10_000)
    given = parser.parse_args()
    record: dict[str, Any] = earlier(given.out, {"count": given.count}, again=not given.lines)
    record |= environment()
    lines = {
        "pycute": ("pycute", lambda: algebra("pycute", given.count)),
        "tensor_layouts": ("tensor_layouts", lambda: algebra("tensor_layouts", given.count)),
        "triton_linear": ("triton", lambda: in_child(linear, given.count)),
        "triton_attributes": ("triton", lambda: in_child(attributes, max(1, given.count // 10))),
        "triton_shuffles": ("triton", lambda: in_child(shuffles, max(1, given.count // 50))),
        "triton_emulated": ("triton", lambda: in_child(emulated, given.count)),
        "triton_ranked": ("triton", lambda: in_child(ranked, max(1, given.count // 1000))),
        "cute_types": ("cutlass_library", lambda: types(max(1, given.count // 100))),
        "gluon_conflicts": ("triton", lambda: in_child(pairs, max(1, given.count * 3 // 100))),
    }
    for name, (package, line) in lines.items():
        if given.lines and name not in given.lines:
            continue
        started = time.process_time()
        there = find_spec(package) is not None
        record[name] = line() if there else {"skipped": f"{package} is not installed: make oracles"}
        record[name]["cpu_seconds"] = round(time.process_time() - started, 1)
        print(f"{name}: {json.dumps(record[name])[:300]}", flush=True)
        save(given.out, record)
    if any("failed" in each for each in record.values() if isinstance(each, dict)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
