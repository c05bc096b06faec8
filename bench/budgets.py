"""Budgets of time and memory on large sketches, each run in a process of its own.

Writes `bench/results/budgets.json`: what was asked for, by how much it was exceeded, what was kept.
Ends with 1 if a run was later than max(1 s, 10 %) or larger than 1.15 M + 50 MB.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.sketch.synth.large import LARGE  # noqa: E402  # the tests are no package that is installed
from tests.sketch.synth.measured import apart  # noqa: E402

SECONDS = (0.5, 3.0)
MEGABYTES = (100, 400)
KEPT = ("stopped", "late", "silence", "peak", "count", "listed", "complete", "verdict", "cpu")


def runs() -> Iterator[dict[str, Any]]:
    for name, text in LARGE.items():
        for seconds in SECONDS:
            yield measured(name, text, seconds, None)
        for megabytes in MEGABYTES:
            yield measured(name, text, 10.0, megabytes)


def measured(name: str, text: str, seconds: float, megabytes: int | None) -> dict[str, Any]:
    found = apart(text=text, seconds=seconds, megabytes=megabytes)
    kept = {key: found[key] for key in KEPT if key in found}
    kept["proved"] = sum(found.get("proved", []))
    record = {"sketch": name, "seconds": seconds, "megabytes": megabytes, **kept}
    return {**record, "held": holds(record)}


def holds(record: dict[str, Any]) -> bool:
    late = record["late"] <= max(1.0, 0.1 * record["seconds"])
    most = record["megabytes"]
    return bool(late and (most is None or record["peak"] <= 1.15 * most + 50))


def main() -> int:
    records = []
    for record in runs():
        records.append(record)
        limit = record["megabytes"] or f"{record['seconds']} s"
        print(
            f"{record['sketch']:18} {limit!s:>6}  late {record['late']:6.2f} s  "
            f"peak {record['peak']:6.0f} MB  {record['count']} fills"
            + ("" if record["held"] else "  NOT HELD")
        )
    file = ROOT / "bench" / "results" / "budgets.json"
    file.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if all(record["held"] for record in records) else 1


if __name__ == "__main__":
    sys.exit(main())
