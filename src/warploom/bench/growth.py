"""How time and memory grow with the size of a sketch, family by family: all fills, full grammar.

`rows` says what to measure, `figures` keeps what a record says of growth, `table` makes lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from warploom.bench.measure import Request
from warploom.bench.synth import laid_out
from warploom.sketch.synth.result_json import Record

HEADER = ("sketch", "cells", "options", "fills", "states", "CPU s", "µs per cell", "MB")

KEPT = (
    "cells", "options", "outcome", "complete", "stopped", "solutions", "states", "seconds",
    "cpu_seconds", "peak_mb", "phases", "error",
)  # fmt: skip

Sizes = Mapping[str, int]


def _matrices() -> list[Sizes]:
    """32 rows and more and more columns, then five columns and more and more rows."""
    wide = [{"columns": columns} for columns in (3, 5, 7, 11, 15, 19, 23, 27, 31)]
    tall = [{"rows": rows, "columns": 5} for rows in (64, 96, 128, 192, 256)]
    return [{**size, "level": 3} for size in (*wide, *tall)]


FAMILIES: Mapping[str, Sequence[Sizes]] = {
    "transposition": _matrices(),
    "transposition-rcr": _matrices(),
    "sums": _matrices(),
    "convolution": [{"taps": taps} for taps in (3, 7, 11, 15, 21, 25, 31)],
    "stencil": [{"taps": taps} for taps in (3, 7, 11, 15, 21, 25, 31)],
    "stencil-2d": [{"taps": taps} for taps in (3, 5, 7, 9, 11, 13, 17)],
    "product": [{"width": width, "level": 3} for width in (4, 8, 12, 16, 20, 24)],
    "product-registers": [{"level": level} for level in (1, 2, 3)],
    "product-shared": [{"level": level} for level in (1, 2, 3)],
}


def rows(match: str = "", seconds: float | None = None) -> Iterator[Request]:
    for family, sizes in FAMILIES.items():
        for size in sizes:
            request = Request(family, dict(size), seconds=seconds)
            if re.search(match, request.label):
                yield request


def figures(request: Request, record: Record) -> Record:
    """What is kept of a run."""
    found = {key: record[key] for key in KEPT if key in record}
    return {"name": request.label, "family": request.name, "sizes": dict(request.sizes), **found}


def table(records: Sequence[Record]) -> list[str]:
    return laid_out([HEADER, *map(_cells, records)])


def _cells(record: Record) -> tuple[str, ...]:
    if "error" in record:
        return (record["name"], record["error"])
    return (
        record["name"],
        str(record["cells"]),
        str(record["options"]),
        str(record["solutions"]) + ("" if record["complete"] else "+"),
        str(record["states"]),
        f"{record['cpu_seconds']:.2f}",
        f"{1e6 * record['cpu_seconds'] / record['cells']:.0f}",
        f"{record['peak_mb']:.0f}",
    )
