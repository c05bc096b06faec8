"""Judges the time model by convolutions that were measured: which block sizes are the fastest?

    python -m bench.array.times [--out FILE]

None of them had a part in its fit (`bench/loopnest/times.py`). Measured times are those of
bench/results/array_device.json: blocks of VGG-16's layers on an H200.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from bench.array.prepare import blocks_of
from bench.common.array.blocks import seconds
from bench.harness import RESULTS, arguments, environment, save
from bench.loopnest.times import judged

from warploom.array.workload import VGG_16
from warploom.machine.record import H200


def judged_layer(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """How well one layer's measured blocks are ranked."""
    layer = VGG_16[name]
    ran = [each for each in shape["ours"]["trials"] if each["seconds"]]
    blocks = [blocks_of(layer, each["blocks"]) for each in ran]
    return judged(seconds(layer, blocks, H200), np.array([each["seconds"] for each in ran]))


def main() -> int:
    given = arguments(__doc__, "array_times.json").parse_args()
    measured = json.loads((RESULTS / "array_device.json").read_text())
    rows = {name: judged_layer(name, shape) for name, shape in measured["shapes"].items()}
    for name, row in rows.items():
        print(name, json.dumps(row))
    save(given.out, {**environment(), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
