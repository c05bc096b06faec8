"""The published table of the Swizzleflow paper's section 5: its rows, and the sketch of each.

A row's name, e.g. `swinv_like/l3/trove-crc-5`, is a name for `warploom synth`, too.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files

from warploom.catalogue import names, program
from warploom.catalogue.entry import Parameters
from warploom.catalogue.texts import (
    WARP,
    convolution_1d,
    gaussian_goal,
    gaussian_hvx,
    gaussian_input,
    multiplication_narrow,
    multiplication_registers,
    multiplication_shared,
    received,
    stencil_1d,
    stencil_2d,
    transposition,
)
from warploom.errors import CheckError
from warploom.sketch.front import load_text
from warploom.sketch.term.ir import Program


def named(name: str) -> Callable[[Parameters], Program] | None:
    """What a name means, as a function of sizes: one of the catalogue, or a row of the table."""
    known = names().get(name)
    if known is not None:
        return lambda sizes: program(known, sizes)
    return partial(_row, name) if name in published() else None


def _row(name: str, sizes: Parameters) -> Program:
    if sizes:
        raise CheckError(f"'{name}' is a row of the published table: it has no sizes to set")
    return load_text(published_sketch(name), name)


@dataclass(frozen=True, slots=True)
class Published:
    """A row of the published table; None where the published tool gave up."""

    name: str
    solutions: int | None
    states: int | None
    cpu_seconds: float | None  # nothing cached
    peak_mb: float


@cache
def published() -> Mapping[str, Published]:
    """The rows of section 5 of the Swizzleflow paper: what its tool needs with nothing cached."""
    text = files("warploom.bench").joinpath("published_synth.csv").read_text()
    return {
        row["name"]: Published(
            row["name"],
            int(row["solutions"]) if row["solutions"] else None,
            int(row["states"]) if row["states"] else None,
            float(row["cold_cpu_s"]) if row["cold_cpu_s"] else None,
            float(row["peak_mb"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


# -- sketches that only the table has


def proper_convolution(taps: int = 3) -> str:
    """The weights are swizzled too."""
    first = WARP + taps - 1
    shape = f"[{WARP},{taps}]"
    lines = [
        *received(taps, 1),
        f"w: [{taps}] = range({first}, {first + taps})",
        f"weights: {shape} = broadcast(w)",
        f"received_w_1: {shape} = ?row_xforms_no_group(weights)",
        f"received_w: {shape} = ?row_rots_no_group(received_w_1)",
        f"products: [{WARP},{taps},2] = * stack(received, received_w)",
        f"out: [{WARP}] = + ?cond_keep_no_consts{{fold_len={taps}}}(products)",
        f"goal: [{WARP}] weight_conv{{k={taps}}}",
    ]
    return "\n".join(lines) + "\n"


def gaussian_hvx_blocks() -> str:
    """`gaussian_hvx` with one block per half of the output; both read the input from outside."""
    lines = [f"define taps([7,8]) -> [3,8] = {list(range(32, 56))}", gaussian_input()]
    for half in ("low", "high"):
        lines.append(f"{half}: [8] = {{")
        before = "x"
        for number in range(1, 4):
            lines.append(f"  o{number}: [{4 + number},8] = ?hvx_2x1{{in_lim=4,fresh}}({before})")
            before = f"o{number}"
        lines += [
            "  picked: [3,8] = taps(o3)",
            "  by_lane: [8,3] = transpose(picked)",
            "  w: [3] = [18, 19, 18]",
            "  weights: [8,3] = broadcast(w)",
            "  products: [8,3] = * stack{fold_len=2}(by_lane, weights)",
            "  sums: [8] = + identity{fold_len=3}(products)",
            "}",
        ]
    lines += ["both: [8,2] = stack(low, high)", "out: [16] = reshape(both)", gaussian_goal()]
    return "\n".join(lines) + "\n"


def useless_variable() -> str:
    """The narrow multiplication with a hole that nothing depends on."""
    text = multiplication_narrow(1)
    head, _, tail = text.partition("turned:")
    extra = "w: [4,2] = ?rots_no_group{main=0,second=1,out=0}(sums)\n"
    return head + extra + "turned:" + tail


def closed_fold() -> str:
    return "x: [1,2] = range(0, 2)\ny: [1,2] = fold identity(x)\ngoal: [1] = fold [[0, 1]]\n"


def published_sketch(name: str) -> str:
    """The text for a row of the published table, e.g. `swinv_like/l3/trove-crc-5`."""
    fixed = {
        "hvx_conv/6-regs-hvx-conv-arith-blocks": gaussian_hvx_blocks,
        "hvx_conv/6-regs-hvx-conv-arith": gaussian_hvx,
        "proper_conv/32x3-noprune": proper_convolution,
        "proper_conv/32x3": proper_convolution,
        "trove-8x3": lambda: transposition("crc", 3, 1, rows=8),
        "universe-soundness-test": closed_fold,
        "useless-var-test": useless_variable,
    }
    if name in fixed:
        return fixed[name]()
    level = int(name.split("/")[1][1:])
    return _by_family(name.rsplit("/", 1)[1], level)


def _by_family(family: str, level: int) -> str:
    stem, _, last = family.rpartition("-")
    number = int(last) if last.isdigit() else 0
    match stem:
        case "trove-crc" | "trove-rcr":
            return transposition(stem[-3:], number, level)
        case "trove-cr_sum":
            return transposition("cr", number, level)
        case "1d-conv":
            return convolution_1d(number, level)
        case "2d-stencil":
            return stencil_2d(number, level)
        case "mult-32-with":
            return multiplication_narrow(level)
        case "mult-64-with":
            return multiplication_registers(level)
    return {
        "1d-conv": lambda: convolution_1d(3, level),
        "1d-stencil": lambda: stencil_1d(3, level),
        "mult-64-with-16-shared": lambda: multiplication_shared(level),
    }[family]()
