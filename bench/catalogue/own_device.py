"""Sketches of a user's own on a GPU: filled, compiled and run at lengths that divide or not.

    python -m bench.catalogue.own_device --out RESULTS.json  on a machine with a GPU, NumPy and CuPy
    python -m bench.catalogue.own_device --dry               the simulator instead

The sketches are those of `bench/common/own`, the ten and their variations; what they must compute
is plain NumPy on whole numbers, so results must be equal. One record per sketch, with the text that
was compiled; a second run goes on after the first (`--again` forgets it).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from bench.common.own import variations as more
from bench.common.own.listing import OWN, Own, lengths, run
from bench.harness import arguments, earlier, environment, save

import warploom
from warploom.errors import WarploomError
from warploom.runtime.callable import Device

ELEMENTS = 1 << 24  # of all inputs together


def check(own: Own, dry: bool) -> dict[str, Any]:
    started = time.monotonic()
    made = own.compiled("simulator" if dry else "cuda")
    record: dict[str, Any] = {"built_seconds": round(time.monotonic() - started, 2), "wrong": []}
    tile = made.tiled.tiling.outputs[0].shape[0]
    sizes = lengths(made) if dry else [*lengths(made), 1000 * tile, 1_000_003, 12_345_677]
    for seed, length in enumerate(sizes):
        try:
            if not all(run(own, made, length, seed, _there(dry))):
                record["wrong"].append({"length": length, "why": "a wrong result"})
        except WarploomError as error:
            record["wrong"].append({"length": length, "why": error.message})
    return record | {"lengths": sizes, "text": made.text("cuda")}


def check_variation(variation: more.Variation, dry: bool) -> dict[str, Any]:
    """The same of the sketches of `bench/common/own/variations.py`."""
    device: Device = "simulator" if dry else "cuda"
    lengths = [*more.LENGTHS, *(() if dry else _long(variation))]
    record: dict[str, Any] = {"wrong": [], "lengths": lengths}
    try:
        made = warploom.compile(variation.subject, device=device, **variation.options)
        record["text"] = made.text("cuda")
        for seed, length in enumerate(record["lengths"]):
            if not all(more.run(variation, made, length, seed, _there(dry))):
                record["wrong"].append({"length": length, "why": "a wrong result"})
    except WarploomError as error:
        record["wrong"].append({"length": 0, "why": error.message})
    return record


def _long(variation: more.Variation) -> Iterator[int]:
    """A long array; of planes, whose elements grow with the square, a shorter one."""
    for length in (100_003, 2_003):
        if sum(math.prod(np.atleast_1d(shape)) for shape in variation.shapes(length)) < ELEMENTS:
            yield length
            return


def _there(dry: bool) -> Any:
    if dry:
        return lambda array: array
    import cupy as cp

    return cp.asarray


def machine(dry: bool) -> str:
    if dry:
        return "simulator"
    import cupy as cp

    return str(cp.cuda.runtime.getDeviceProperties(0)["name"].decode())


def main() -> int:
    parser = arguments(
        __doc__,
        "own_device.json",
        dry="the simulator instead of a GPU",
        only="names that contain this text",
        resumes=True,
    )
    options = parser.parse_args()
    record: dict[str, Any] = {
        **environment(machine(options.dry)),
        "sketches": {},
    }
    before = earlier(options.out, again=options.again or options.dry)
    record["sketches"] |= before.get("sketches", {})
    every: list[Own | more.Variation] = [*OWN, *more.variations()]
    asked = [each for each in every if options.only in each.name]
    asked = [each for each in asked if each.name not in record["sketches"]]
    for own in asked:
        judged = (
            check(own, options.dry) if isinstance(own, Own) else check_variation(own, options.dry)
        )
        result = record["sketches"][own.name] = judged
        print(
            f"{own.name}: {len(result['lengths'])} lengths, {len(result['wrong'])} wrong",
            flush=True,
        )
        if not options.dry:
            save(options.out, record)
    bad = sum(bool(each["wrong"]) for each in record["sketches"].values())
    print(f"{len(record['sketches'])} sketches, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
