"""The museum of public faults: is each named before its mend, and none accused after?

    python -m bench.ptx.museum [--only WORD]

Every kernel of `tests/ptx/museum` is run before and after its mend with races and a proof; the
mended ones also with lanes in other orders. Results go to bench/results/museum.json, and the page
docs/museum.md is written from them. The exit status is 1 if a fault is missed, or a mended kernel
accused. It needs a CUDA compiler (NVRTC or nvcc).
"""

from __future__ import annotations

import sys
from typing import Any

from bench.common.ptx.museum import Exhibit, exhibits, look, named, read
from bench.common.ptx.museum_page import PAGE, page
from bench.harness import arguments, earlier, environment, measured, save

SCHEDULES = (1, 2, 3)  # seeds, beside the schedule of the proof


def row(name: str) -> dict[str, Any]:
    exhibit = read(name)
    before, after = look(name, mended=False), look(name, mended=True)
    return {
        "title": exhibit.title,
        "link": exhibit.link,
        "before": {"kind": before.kind, "says": before.told, "lines": sorted(before.lines)},
        "named": named(exhibit, before),
        "after": after.proved,
        "accused": accused(exhibit),
        "seconds": round(before.seconds + after.seconds, 2),
    }


def accused(exhibit: Exhibit) -> str:
    """What is said against the mended kernel: by the proof's run, or by any other schedule."""
    runs = [look(exhibit.name, mended=True)]
    if runs[0].proved != exhibit.after:
        return f"proved for {runs[0].proved or 'nothing'}, not for {exhibit.after}"
    runs += [look(exhibit.name, mended=True, schedule=seed) for seed in SCHEDULES]
    return next((each.message for each in runs if each.kind), "")


def summed(rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "faults": len(rows),
        "named": sum(bool(each.get("named")) for each in rows.values()),
        "accused": sum(bool(each.get("accused", "failed")) for each in rows.values()),
        "rows": dict(sorted(rows.items())),
    }


def main() -> int:
    parser = arguments(__doc__, "museum.json", only="exhibits whose names have this word")
    asked = parser.parse_args()
    names = [each.name for each in exhibits()]
    rows = {
        name: each for name, each in earlier(asked.out).get("rows", {}).items()
        if name in names and asked.only not in name
    } if asked.only else {}  # fmt: skip
    measured(rows, names, row, only=asked.only)
    record = {**summed(rows), **environment()}
    save(asked.out, record)
    PAGE.write_text(page(record))
    print(f"{record['named']} of {record['faults']} faults named, {record['accused']} accused")
    return 0 if record["named"] == record["faults"] and not record["accused"] else 1


if __name__ == "__main__":
    sys.exit(main())
