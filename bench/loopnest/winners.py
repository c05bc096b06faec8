"""Writes the winners that come with the package, from what was measured on an H200.

    python -m bench.loopnest.winners

`bench/results/matrix_device.json` says of each row the fastest implementation in words. A row's
tiling is read from these, and has to give the same words again. The file is
src/warploom/pipeline/winners.json; `warploom explore` on that device begins with them.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from bench.harness import RESULTS, ROOT, arguments
from bench.loopnest.matrix_device import RECORDS, ROWS

from warploom.loopnest.matrix.product import matrix_product
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.matrix.words import tiling_words
from warploom.pipeline.meant import statement

FILE = ROOT / "src" / "warploom" / "pipeline" / "winners.json"


def tiling_of(words: str, first: str) -> Tiling:
    """The tiling that a schedule says; `first` is the name of the first factor of its tiles."""

    def number(pattern: str, otherwise: int) -> int:
        found = re.search(pattern, words)
        return int(found[1]) if found else otherwise

    shared = re.search(r"clusters of \d+ blocks share (\w+)", words)
    return Tiling(
        number(r"tiles of (\d+)×", 0), number(r"tiles of \d+×(\d+)", 0),
        number(r"in steps of (\d+)", 0), number(r"(\d+) stages", 0),
        number(r"by (\d+) warp groups", 1), number(r"clusters of (\d+)", 1),
        number(r"bands of (\d+)", 1), number(r"tensor copies, (\d+) at a time", 0),
        int(shared is not None and shared[1] == first), int("ping-pong" in words),
        number(r"split among (\d+) blocks", 1),
    )  # fmt: skip


def winner(row: dict[str, Any]) -> dict[str, Any] | None:
    """What is kept of a row; nothing of one that no tiling of warp groups won."""
    strategy = str(row.get("strategy", ""))
    if not strategy.startswith("warp-group-tile") or row["name"] not in ROWS:
        return None
    if not callable(ROWS[row["name"]].nest):
        return None
    program = ROWS[row["name"]].program
    product = matrix_product(program, turned=strategy.endswith(" 2"))
    tiling = tiling_of(row["schedule"], product.a.array.name)
    for said in tiling_words(product, tiling):
        if said not in row["schedule"]:
            raise SystemExit(f"{row['name']}: '{said}' is not in '{row['schedule']}'")
    return {
        "name": row["name"], "device": row["device"], "date": row["date"],
        "nanoseconds": round(1000 * row["best_us"], 1), "strategy": strategy,
        "decisions": {n: getattr(tiling, n) for n in Tiling.__dataclass_fields__},
        "statement": statement(program),
    }  # fmt: skip


def main() -> int:
    arguments(__doc__).parse_args()
    rows = json.loads((RESULTS / RECORDS).read_text())
    found = [each for each in map(winner, rows) if each is not None]
    FILE.write_text("[\n" + ",\n".join(json.dumps(each) for each in found) + "\n]\n")
    print(f"{len(found)} winners in {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
