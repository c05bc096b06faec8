"""A GPU that is none: each kernel takes a few times its bound, by a digest of its text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from warploom.pipeline.drawn import Made
from warploom.runtime.quick import SLOWER


@dataclass(slots=True, eq=False)
class PretendedQuick:
    """`looks` are how many first looks there were, `samples` how many kernels got more."""

    device: str = "pretended GPU"
    arch: str = "sm_90"
    pause: float = 0.005  # seconds that a kernel takes to be measured
    looks: int = 0
    samples: int = 0
    seen: list[str] = field(default_factory=list)

    def nanoseconds(self, made: Made) -> float:
        return made.bound * (1.2 + int(made.key[:4], 16) / 0x8000)

    def time(self, made: Made, best: float) -> tuple[float, bool]:
        time.sleep(self.pause)
        self.looks += 1
        self.seen.append(made.key)
        taken = self.nanoseconds(made)
        is_sure = taken <= SLOWER * best
        self.samples += is_sure
        return taken, is_sure

    def again(self, made: Sequence[Made], rounds: int) -> list[float]:
        del rounds
        return [self.nanoseconds(each) for each in made]
