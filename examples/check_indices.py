"""One's own index arithmetic, checked: a warp-level sketch without holes is proved or refuted.

Structures of three fields become runs of fields, in registers alone: turn each lane's registers by
its number, then exchange between lanes. The first try forgets that lanes count by threes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import warploom
from warploom import solve, warp_sketch

FIELDS = 3


def transposition(source: Callable[[Any, Any], Any]) -> Any:
    """Three registers in each lane; `source` says from which lane register i comes."""

    @warp_sketch
    def fields(k: Any, lanes: int = 32) -> None:
        lane = k.warp(lanes)
        x, y = k.input("x", FIELDS * lanes), k.output("y", FIELDS * lanes)
        r = k.load(x, rounds=FIELDS)
        r = k.permute(r, lambda i: (i * 2 + lane) % FIELDS)
        moved = k.registers(FIELDS)
        for i in k.loop(FIELDS):
            moved[i] = k.shuffle(r[i], source(lane, i))
        k.store(y, moved)

    fields.specification(lambda x, lanes: x.reshape(lanes, FIELDS).T.reshape(-1))
    return fields


def main() -> None:
    wrong = solve(transposition(lambda lane, i: (lane + i) % 32))
    assert wrong.verdict.value == "impossible"
    print(wrong)
    right = solve(transposition(lambda lane, i: (lane * FIELDS + i) % 32))
    assert right.verdict.value == "proved"
    print(right.kernel.doc)
    x = np.arange(5 * 96, dtype=np.float32)
    y = warploom.compile(right)(x)
    assert np.array_equal(y.reshape(5, FIELDS, 32), x.reshape(5, 32, FIELDS).transpose(0, 2, 1))


if __name__ == "__main__":
    main()
