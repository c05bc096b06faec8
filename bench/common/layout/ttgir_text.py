"""Kernels of Triton's IR that convert tiles between register layouts, written as TTGIR texts.

Each case loads a tile in one layout, converts it, and stores it in the other. Triton compiles such
a file as it compiles its own, so that a line of the file is a line of its PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bench.common.layout.attributes import blocked, mma

from warploom.layout.formats.fragment_bases import from_attribute
from warploom.layout.formats.mlir import Attribute, Value, written

MOST_HELD = 128  # registers of a thread in one case


@dataclass(frozen=True)
class Case:
    """A tile of integers of so many bits, from one layout to the other."""

    shape: tuple[int, int]
    bits: int
    source: Attribute
    target: Attribute


def conversions_text(cases: Sequence[Case], warps: int, target: int, turns: int = 0) -> str:
    """A function of pointers %x8, %y8, %x16, %y16, %x32, %y32: tiles lie one after another in each.

    With `turns`, all is done in a loop that runs so often.
    """
    pointer = "{tt.divisibility = 16 : i32}"
    taken = ", ".join(
        f"%{name}{bits}: !tt.ptr<i{bits}> {pointer}" for bits in (8, 16, 32) for name in "xy"
    )
    aliases = "".join(
        f"#s{n} = {written(each.source)}\n#t{n} = {written(each.target)}\n"
        for n, each in enumerate(cases)
    )
    lines = [f"  tt.func public @conversions({taken}) attributes {{noinline = false}} {{"]
    if turns:
        lines += [
            "    %begin = arith.constant 0 : i32", "    %one = arith.constant 1 : i32",
            f"    %end = arith.constant {turns} : i32",
            "    scf.for %turn = %begin to %end step %one : i32 {",
        ]  # fmt: skip
    starts = {8: 0, 16: 0, 32: 0}
    for number, each in enumerate(cases):
        lines += _case(number, each, starts[each.bits])
        starts[each.bits] += each.shape[0] * each.shape[1]
    lines += ["    }"] if turns else []
    facts = (
        f'module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, '
        f'ttg.target = "cuda:{target}", "ttg.threads-per-warp" = 32 : i32}} {{'
    )
    return "\n".join([aliases + facts, *lines, "    tt.return", "  }", "}", ""])


def _case(number: int, case: Case, start: int) -> list[str]:
    kind, size = f"i{case.bits}", "x".join(map(str, case.shape))
    held = f"tensor<{size}x{kind}"
    lines = []
    for side, layout in (("x", f"#s{number}"), ("y", f"#t{number}")):
        lines += _pointers(f"{side}{number}", f"%{side}{case.bits}", case, layout, start)
    name, pointers = f"%v{number}", f"tensor<{size}x!tt.ptr<{kind}>"
    return [
        *lines,
        f"    {name} = tt.load %px{number} : {pointers}, #s{number}>",
        f"    {name}c = ttg.convert_layout {name} : {held}, #s{number}> -> {held}, #t{number}>",
        f"    tt.store %py{number}, {name}c : {pointers}, #t{number}>",
    ]


def _pointers(name: str, base: str, case: Case, layout: str, start: int) -> list[str]:
    """The address of every element of the tile, by rows."""
    (rows, columns), kind = case.shape, f"i{case.bits}"
    slices = [f"#ttg.slice<{{dim = {dim}, parent = {layout}}}>" for dim in (1, 0)]
    down, whole = f"tensor<{rows}x1xi32, {layout}>", f"tensor<{rows}x{columns}xi32, {layout}>"
    across = f"tensor<1x{columns}xi32, {layout}>"
    pointers = f"tensor<{rows}x{columns}x!tt.ptr<{kind}>, {layout}>"
    return [
        f"    %{line}"
        for line in (
            f"r{name} = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : "
            f"tensor<{rows}xi32, {slices[0]}>",
            f"c{name} = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : "
            f"tensor<{columns}xi32, {slices[1]}>",
            f"re{name} = tt.expand_dims %r{name} {{axis = 1 : i32}} : "
            f"tensor<{rows}xi32, {slices[0]}> -> {down}",
            f"ce{name} = tt.expand_dims %c{name} {{axis = 0 : i32}} : "
            f"tensor<{columns}xi32, {slices[1]}> -> {across}",
            f"w{name} = arith.constant dense<{columns}> : {down}",
            f"rw{name} = arith.muli %re{name}, %w{name} : {down}",
            f"rb{name} = tt.broadcast %rw{name} : {down} -> {whole}",
            f"cb{name} = tt.broadcast %ce{name} : {across} -> {whole}",
            f"at{name} = arith.addi %rb{name}, %cb{name} : {whole}",
            f"o{name} = arith.constant {start} : i32",
            f"b{name} = tt.addptr {base}, %o{name} : !tt.ptr<{kind}>, i32",
            f"s{name} = tt.splat %b{name} : !tt.ptr<{kind}> -> {pointers}",
            f"p{name} = tt.addptr %s{name}, %at{name} : {pointers}, {whole}",
        )
    ]


# -- random cases ----------------------------------------------------------------------------------


def random_cases(random: np.random.Generator, count: int, warps: int) -> list[Case]:
    """Tiles of 8, 16 and 32 bits between blocked layouts, results and operands of mma."""
    found: list[Case] = []
    while len(found) < count:
        shape = (16 << int(random.integers(3)), 16 << int(random.integers(3)))
        bits = int(random.choice([8, 16, 32]))
        source, target = (_layout(random, warps, bits) for _ in range(2))
        case = Case(shape, bits, source, target)
        if all(from_attribute(a, shape).registers <= MOST_HELD for a in (source, target)):
            found.append(case)
    return found


def _layout(random: np.random.Generator, warps: int, bits: int) -> Attribute:
    match int(random.integers(4)):
        case 0:
            return mma(random, warps, hopper=False)
        case 1 if bits < 32:
            parent = mma(random, warps, hopper=False)
            fields: dict[str, Value] = {
                "opIdx": int(random.integers(2)),
                "parent": parent,
                "kWidth": 32 // bits,
            }
            return Attribute("ttg.dot_op", fields)
    return blocked(random, 2, warps)


def arguments_for(cases: Sequence[Case], seed: int = 0) -> dict[str, np.ndarray]:
    """What the pointers of `conversions_text` point to, by name; each %y is to become its %x."""
    random, found = np.random.default_rng(seed), {}
    for bits in (8, 16, 32):
        size = sum(each.shape[0] * each.shape[1] for each in cases if each.bits == bits)
        kind = np.dtype(f"u{bits // 8}")
        found[f"x{bits}"] = random.integers(0, 1 << bits, max(size, 1), dtype=kind)
        found[f"y{bits}"] = np.zeros(max(size, 1), kind)
    return found
