"""The table of the Swizzleflow paper's section 5, measured again, with its figures beside ours.

`rows`, `limits` and `ablations` say what to measure; `table`, `summary`, … turn records into lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warploom.bench.measure import Request
from warploom.bench.published import Published, published
from warploom.sketch.synth.result_json import Record

# One row of each kind: enough to see that all is well.
QUICK = re.compile(
    r"trove-8x3|l3/(trove-(crc|rcr|cr_sum)-[35]|1d-conv|1d-stencil|2d-stencil-3|mult-32.*)$|-arith$"
)
SMALL = (
    "trove-8x3",
    "swinv_like/l1/mult-32-with-4",
    "swinv_like/l1/2d-stencil-3",
    "swinv_like/l1/1d-stencil",
    "swinv_like/l1/trove-cr_sum-3",
)
# Where the published count is known to be wrong, and why.
UNSOUND = {
    "hvx_conv/6-regs-hvx-conv-arith-blocks": "published pruning loses fills of blocks that read"
    " outer variables",
}
FUELS = (1, 4, 16)
HEADER = ("sketch", "fills", "pub.", "states", "pub.", "factor", "CPU s", "pub.", "times", "MB")


def rows(match: str = "", quick: bool = False) -> list[Request]:
    wanted = re.compile(match)
    names = [n for n in published() if wanted.search(n) and (not quick or QUICK.search(n))]
    return [Request(name) for name in names]


def limits(match: str = "") -> list[Request]:
    """Sizes at which the published tool fails or takes an hour; the full grammar."""
    wide = [
        Request(name, {"columns": columns, "level": 3})
        for name in ("transposition", "transposition-rcr", "sums")
        for columns in (11, 13, 15, 16)
    ]
    long = [Request("convolution", {"taps": taps}) for taps in (15, 21, 31)]
    square = [Request("stencil-2d", {"taps": taps}) for taps in (11, 13)]
    shared = [Request("product-shared", {"level": level}) for level in (1, 3)]
    return [r for r in (*wide, *long, *square, *shared) if re.search(match, r.label)]


@dataclass(frozen=True, slots=True)
class Ablation:
    """One way to weaken the pairs engine."""

    label: str
    engine: str = "pairs"
    fuel: int | None = None
    single: bool = False


ABLATIONS = (
    Ablation("default engine", "default"),
    Ablation("pairs"),
    Ablation("single locations", single=True),
    *(Ablation(f"fuel {fuel}", fuel=fuel) for fuel in FUELS),
)


def ablations(seconds: float, match: str = "") -> Iterator[tuple[Ablation, Request]]:
    for name in SMALL:
        if re.search(match, name):
            for way in ABLATIONS:
                yield way, Request(name, {}, way.engine, seconds, fuel=way.fuel, single=way.single)


def cells(record: Record, known: Published | None) -> tuple[str, ...]:
    """One line of the table."""
    if "error" in record:
        return (record["name"], record["error"])
    seconds = record["cpu_seconds"]
    theirs = known.cpu_seconds if known else None
    return (
        record["name"],
        _count(record["solutions"]) + ("" if record["complete"] else "+"),
        _count(known.solutions if known else None),
        _count(record["states"]),
        _count(known.states if known else None),
        "–" if record["factor"] is None else f"{record['factor']:.2f}",
        f"{seconds:.2f}",
        "–" if theirs is None else f"{theirs:.2f}",
        f"{theirs / seconds:.0f}" if theirs and seconds else "–",
        f"{record['peak_mb']:.0f}",
    )


def _count(number: int | None) -> str:
    return "–" if number is None else str(number)


def laid_out(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns: the first to the left, the others to the right; short lines (errors) as they are."""
    whole = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(len(line[i]) for line in whole) for i in range(len(lines[0]))]
    out = []
    for line in lines:
        first = line[0].ljust(widths[0])
        if len(line) == len(widths):
            rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        else:
            rest = list(line[1:])
        out.append("  ".join([first, *rest]))
    return out


def summary(records: Sequence[Record]) -> list[str]:
    """Totals, agreement with the published counts, and the share of sketches at factor 1.0."""
    done = [r for r in records if "error" not in r]
    known = published()
    counted = [r for r in done if r["name"] in known and known[r["name"]].solutions is not None]
    same = sum(r["solutions"] == known[r["name"]].solutions for r in counted)
    rated = [r["factor"] for r in done if r["factor"] is not None]
    ideal = sum(factor <= 1.0 for factor in rated)
    lines = [f"{len(done)} of {len(records)} answered"]
    if done:
        total = sum(r["cpu_seconds"] for r in done)
        lines[0] += f" in {total:.1f} CPU s, peak {max(r['peak_mb'] for r in done):.0f} MB"
    if counted:
        lines.append(f"solution counts equal to the published ones: {same} of {len(counted)}")
        for r in counted:
            if r["solutions"] != known[r["name"]].solutions:
                why = UNSOUND.get(r["name"], "unexplained")
                lines.append(f"  {r['name']} has {r['solutions']}: {why}")
    if rated:
        share = 100 * ideal / len(rated)
        lines.append(f"factor at most 1.0: {ideal} of {len(rated)} ({share:.0f} %)")
    return lines


def phase_lines(records: Sequence[Record], top: int = 12) -> list[str]:
    """CPU seconds by phase, for the sketches that took longest."""
    done = [r for r in records if "error" not in r]
    slowest = sorted(done, key=lambda r: -r["cpu_seconds"])[:top]
    phases = list(dict.fromkeys(phase for r in slowest for phase in r["phases"]))
    figures = [(r["name"], *(f"{r['phases'].get(p, 0.0):.3f}" for p in phases)) for r in slowest]
    return laid_out([("CPU s by phase", *phases), *figures])


def ablation_cells(way: Ablation, record: Record) -> tuple[str, ...]:
    if "error" in record:
        return (record["name"], way.label, record["error"])
    return (
        record["name"],
        way.label,
        _count(record["solutions"]) + ("" if record["complete"] else "+"),
        _count(record["states"]),
        "–" if record["factor"] is None else f"{record['factor']:.2f}",
        f"{record['cpu_seconds']:.2f}",
    )


ABLATION_HEADER = ("sketch", "pruning", "fills", "states", "factor", "CPU s")
