"""Sketches that take long in many different places: what `bench/cli/budgets.py` gives little time.

Each function returns the text of a sketch; `SKETCHES` names them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

MATRIX = ("row_xforms", "col_xforms", "row_rots", "col_rots", "row_linear", "col_linear")


def moved(rows: int, columns: int, holes: Sequence[str], goal: str = "trove") -> str:
    """A matrix through one hole after the other."""
    shape = f"[{rows},{columns}]"
    lines = [f"x: [{rows * columns}] = range(0, {rows * columns})", f"s0: {shape} = load_rep(x)"]
    lines += [f"s{n + 1}: {shape} = ?{hole}(s{n})" for n, hole in enumerate(holes)]
    return "\n".join([*lines, f"goal: {shape} {goal}"]) + "\n"


def drawn(seed: int, rows: int, columns: int, holes: int) -> str:
    """The same with holes of random families."""
    chosen = random.Random(seed).choices(MATRIX, k=holes)
    return moved(rows, columns, chosen)


def sums(lanes: int, length: int, holes: Sequence[str]) -> str:
    """Rows added up after their cells were moved."""
    cells, shape = lanes * length, f"[{lanes},{length}]"
    lines = [f"x: [{cells}] = range(0, {cells})", f"s0: {shape} = load_rep(x)"]
    lines += [f"s{n + 1}: {shape} = ?{hole}(s{n})" for n, hole in enumerate(holes)]
    lines.append(f"sum: [{lanes}] = + identity{{fold_len={length}}}(s{len(holes)})")
    return "\n".join([*lines, f"goal: [{lanes}] trove_sum{{n={length}}}"]) + "\n"


def nested_sums(lanes: int, length: int) -> str:
    """Sums of sums, equal up to their order and nesting: bags."""
    cells, shape = lanes * length, f"[{lanes},{length}]"
    lines = [
        f"x: [{cells}] = range(0, {cells})",
        f"a: {shape} = load_rep(x)",
        f"b: {shape} = ?row_xforms(a)",
        f"c: {shape} = ?col_xforms(b)",
        f"d: [{lanes},{length // 2}] = + reshape{{fold_len=2}}(c)",
        f"e: [{lanes},{length // 2}] = ?col_xforms(d)",
        f"f: [{lanes}] = + identity{{fold_len={length // 2}}}(e)",
        f"@flatten goal: [{lanes}] trove_sum{{n={length}}}",
    ]
    return "\n".join(lines) + "\n"


def convolution(lanes: int, taps: int) -> str:
    """Products of what was selected and moved with weights."""
    inputs = lanes + taps - 1
    lines = [
        f"x: [{inputs}] = range(0, {inputs})",
        f"w: [{taps}] = range({inputs}, {inputs + taps})",
        f"a: [{lanes},2] = load_trunc(x)",
        f"b: [{lanes},{taps}] = ?reg_select(a)",
        f"c: [{lanes},{taps}] = ?col_xforms(b)",
        f"d: [{lanes},{taps}] = ?col_rots(c)",
        f"v: [{lanes},{taps}] = broadcast(w)",
        f"p: [{lanes},{taps},2] = stack(d, v)",
        f"m: [{lanes},{taps}] = * identity{{fold_len=2}}(p)",
        f"s: [{lanes}] = + identity{{fold_len={taps}}}(m)",
        f"goal: [{lanes}] weight_conv{{k={taps}}}",
    ]
    return "\n".join(lines) + "\n"


def conditions(lanes: int, wide: int) -> str:
    """Cells kept by conditions, selected by others, moved and added up."""
    cells = lanes * wide
    lines = [
        f"x: [{cells}] = range(0, {cells})",
        f"a: [{lanes},{wide}] = load_rep(x)",
        f"b: [{lanes},{wide}] = ?cond_keep(a)",
        f"c: [{lanes},{wide}] = ?col_xforms(b)",
        f"d: [{lanes},{wide}] = ?cond_keep(c)",
        f"e: [{lanes},{wide}] = ?row_xforms(d)",
        f"s: [{lanes}] = + identity{{fold_len={wide}}}(e)",
        f"goal: [{lanes}] trove_sum{{n={wide}}}",
    ]
    return "\n".join(lines) + "\n"


def bits(rows: int, columns: int, holes: int) -> str:
    """Bit operations on lanes and registers in turn."""
    return moved(rows, columns, [("row_bits", "col_bits")[n % 2] for n in range(holes)])


def hvx(lanes: int, steps: int) -> str:
    """HVX instructions on two registers, one after another."""
    cells = 2 * lanes
    lines = [f"h0: [2,{lanes}] = range(0, {cells})"]
    lines += [f"h{n + 1}: [2,{lanes}] = ?hvx_2x2(h{n})" for n in range(steps)]
    order = [n // 2 + (n % 2) * lanes for n in range(cells)]
    rows = [order[:lanes], order[lanes:]]
    return "\n".join([*lines, f"goal: [2,{lanes}] = {rows}"]) + "\n"


def own_tables(cells: int, choices: int, holes: int) -> str:
    """Holes of tables that the text spells out."""
    draw = random.Random(cells * choices)
    tables = []
    for number in range(choices):
        order = list(range(cells))
        draw.shuffle(order)
        tables.append(f'"t{number}" = {order}')
    lines = [f"define f([{cells}]) -> [{cells}] = {{{', '.join(tables)}}}"]
    lines.append(f"h0: [{cells}] = range(0, {cells})")
    lines += [f"h{n + 1}: [{cells}] = ?f(h{n})" for n in range(holes)]
    return "\n".join([*lines, f"goal: [{cells}] id"]) + "\n"


def several_goals(rows: int, columns: int, goals: int) -> str:
    text = moved(rows, columns, ("row_xforms", "col_xforms", "row_xforms", "col_rots"))
    return text + f"goal: [{rows},{columns}] trove\n" * (goals - 1)


def long_sums(cells: int, length: int) -> str:
    """A goal whose terms are long."""
    return f"x: [4] = range(0, 4)\ngoal: [{cells}] trove_sum{{n={length}}}\n"


def stencil(size: int, window: int) -> str:
    """Windows of a square, added up after two holes."""
    wide = size + window - 1
    cells, shape = window * window, f"[{size},{size},{window * window}]"
    lines = [
        f"x: [{wide},{wide}] = range(0, {wide * wide})",
        f"a: {shape} = ?general_select{{axis=0,dims=[0,2]}}(x)",
        f"s: [{size},{size}] = + identity{{fold_len={cells}}}(a)",
        f"goal: [{size},{size}] stencil_2d{{k={window}}}",
    ]
    return "\n".join(lines) + "\n"


def joined(lanes: int, sides: int, family: str) -> str:
    """Values of different holes, multiplied and added up."""
    lines = []
    for n in range(sides):
        lines.append(f"x{n}: [{lanes},2] = range({2 * lanes * n}, {2 * lanes * (n + 1)})")
        lines.append(f"g{n}: [{lanes},2] = ?{family}(x{n})")
        lines.append(f"h{n}: [{lanes},2] = ?row_xforms(g{n})")
    args = ", ".join(f"h{n}" for n in range(sides))
    lines.append(f"p: [{lanes},2,{sides}] = stack({args})")
    lines.append(f"m: [{lanes},2] = * identity{{fold_len={sides}}}(p)")
    lines.append(f"s: [{lanes}] = + identity{{fold_len=2}}(m)")
    goal = [
        "+(" + ", ".join(
            "*(" + ", ".join(str(2 * lanes * n + 2 * lane + k) for n in range(sides)) + ")"
            for k in range(2)
        ) + ")"
        for lane in range(lanes)
    ]  # fmt: skip
    return "\n".join([*lines, f"goal: [{lanes}] = [{', '.join(goal)}]"]) + "\n"


SEVEN = ("row_xforms", "row_rots", "col_xforms", "col_rots", "row_xforms", "row_rots", "col_xforms")

SKETCHES: Mapping[str, str] = {
    "seven holes": moved(32, 15, SEVEN),
    "long goal": long_sums(4, 1_000_000),
    "longer goal": long_sums(1, 4_000_000),
    "many sums": long_sums(1000, 4000),
    "five holes": drawn(1, 64, 7, 5),
    "eight holes": drawn(2, 16, 15, 8),
    "six holes": drawn(3, 32, 30, 6),
    "four wide": drawn(4, 128, 12, 4),
    "large matrix": moved(512, 60, ("row_xforms", "col_xforms", "row_rots")),
    "huge matrix": moved(1024, 256, ("row_xforms", "col_xforms")),
    "square": moved(128, 128, ("row_xforms", "col_xforms", "row_xforms")),
    "sums": sums(64, 12, ("row_xforms", "col_xforms", "row_xforms", "col_rots")),
    "sums of many": sums(256, 24, ("row_xforms", "col_xforms")),
    "nested sums": nested_sums(32, 12),
    "nested sums wide": nested_sums(64, 30),
    "convolution": convolution(64, 9),
    "long convolution": convolution(256, 17),
    "conditions": conditions(32, 6),
    "many conditions": conditions(64, 16),
    "bits": bits(32, 32, 4),
    "more bits": bits(64, 16, 6),
    "hvx": hvx(64, 4),
    "more hvx": hvx(128, 6),
    "own tables": own_tables(64, 200, 4),
    "large tables": own_tables(1024, 150, 3),
    "several goals": several_goals(32, 12, 4),
    "stencil": stencil(12, 3),
    "joined": joined(32, 2, "col_xforms"),
    "joined three": joined(24, 3, "col_rots"),
    "linear": moved(64, 24, ("row_linear", "col_linear", "row_linear", "col_linear")),
}
