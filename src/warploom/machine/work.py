"""What a launch does, as a time model asks for it: counts for one of its blocks, and its memory.

`kernel/work.py` counts it of a kernel without running it, `times.py` makes nanoseconds of it. Each
field is a number, or an array of numbers, one for each of many launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of one block, but for `blocks` and what is of the whole launch: `touched`, bytes of
    global memory that all blocks touch together, in so many `runs` that lie apart, for blocks that
    come together; `fetched`, those that each asks for, summed, and `asked`, in how many lines.

    Instructions are those of warps. `longest` is how many the busiest warp has; of `requests`,
    `streamed` are to store what nobody keeps. `sectors` are those that L2 gives or takes: each once
    for a block that loads it, and as often as it is stored. `common` are others that all blocks
    load, which those of one processor do together.

    A round is when a thread waits for what it has loaded; `ahead_rounds` are those for what it has
    asked for an iteration before. `registers` are those beside what every thread has.
    `group_products` are of warp groups, each 64 x 8 by 32 bytes of factors, and `bulk_bytes` what
    boxes bring and take. `cached_rounds` are for what L1 has, `shuffle_rounds` for what another
    lane has; at each of `edges` lanes at the end of a warp see that they must load themselves.
    Those three are known where single accesses are compared."""

    blocks: Any
    threads: Any
    registers: Any
    shared_bytes: Any
    arithmetic: Any = 0.0
    special: Any = 0.0
    moves: Any = 0.0
    shuffles: Any = 0.0
    products: Any = 0.0
    iterations: Any = 0.0
    barriers: Any = 0.0
    longest: Any = 0.0
    requests: Any = 0.0
    streamed: Any = 0.0
    lines: Any = 0.0
    sectors: Any = 0.0
    common: Any = 0.0
    shared_requests: Any = 0.0
    wavefronts: Any = 0.0
    global_rounds: Any = 0.0
    ahead_rounds: Any = 0.0
    shared_rounds: Any = 0.0
    touched: Any = 0.0
    fetched: Any = 0.0
    asked: Any = 0.0
    runs: Any = 0.0
    group_products: Any = 0.0
    bulk_bytes: Any = 0.0
    cached_rounds: Any = 0.0
    shuffle_rounds: Any = 0.0
    edges: Any = 0.0


def stacked(works: Sequence[Work]) -> Work:
    """Many as one, of arrays."""
    return Work(
        *(np.array([getattr(each, field.name) for each in works], float) for field in fields(Work))
    )
