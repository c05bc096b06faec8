"""The winners that come with the package, certified: right on a sample, the same in every schedule,
no better layout.

    python -m bench.loopnest.certified [--only WORD] [--again]

No GPU is needed: kernels are made for axes that are cut short to a few tiles, compiled to PTX, and
run on the emulator. What was shown and what was not covered goes to
bench/results/certified_winners.json, row by row: a run that was stopped goes on. The exit status is
1 if a winner has no certificate.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.harness import arguments, earlier, environment, measured, save
from bench.loopnest.matrix_device import ROWS
from bench.loopnest.winners import FILE

from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.drawn import unpacked
from warploom.pipeline.kernel_certificate import certificate_of_tiling
from warploom.pipeline.matrix_nest import MatrixNest
from warploom.pipeline.nest import Nest, recipe_of
from warploom.pipeline.spaces import nest_by
from warploom.pipeline.strategic import strategies_of
from warploom.pipeline.winners import leaf_of, winner_of
from warploom.trust.kernel import check_kernel

RECORD = "certified_winners.json"
Row = dict[str, Any]


def certified(name: str) -> Row:
    """What the certificate of a row's winner shows."""
    nest = Nest(ROWS[name].program, H200.rates, everything(H200))
    winner = winner_of(nest.program)
    assert winner is not None
    variants = strategies_of(nest, "warp-group-tile", "default", free=True).variants
    ((strategy, leaf),) = leaf_of(winner, nest, variants)
    own = nest_by(recipe_of(variants[int(strategy.split()[-1]) - 1], nest))
    assert isinstance(own, MatrixNest)
    begun = time.perf_counter()
    record = certificate_of_tiling(own, unpacked(own, leaf))
    written = time.perf_counter()
    found = check_kernel(json.loads(json.dumps(record)))
    return {
        "tried": record["tried"], "words": record["words"], "shown": list(found.shown),
        "open": found.open, "not_covered": list(found.not_covered),
        "bytes": len(json.dumps(record)), "seconds_to_write": round(written - begun, 1),
        "seconds_to_verify": round(time.perf_counter() - written, 1),
    }  # fmt: skip


def main() -> int:
    asked = arguments(__doc__, RECORD, only="rows with this word", resumes=True).parse_args()
    record: Row = earlier(asked.out, again=asked.again)
    rows: dict[str, Row] = record.setdefault("rows", {})

    def keep(name: str) -> None:
        print(name, rows[name].get("failed") or rows[name]["shown"][0], flush=True)
        save(asked.out, record | environment())

    names = [each["name"] for each in json.loads(FILE.read_text())]
    measured(rows, names, certified, keep, only=asked.only)
    return 1 if any("failed" in row for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
