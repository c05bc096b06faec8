"""Other shapes than those that were stated: which are tried, and what launches of them find.

A kernel may be right for the shapes that it was asked for alone. What is tried here are plain
launches with all checks, on one draw of inputs; nothing is shown for all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from warploom.errors import LimitError, WarploomError

Seen = Literal["alike", "different", "not tried"]
USUAL = 2  # shapes that are tried if nobody says how many
MOST = 16
TIMES = 64  # draws of a shape until it is a new one


@dataclass(frozen=True, slots=True)
class Other:
    """A shape that nobody stated. `why`: what was found, or why it could not be tried."""

    sizes: dict[str, int]
    found: Seen
    why: str = ""

    @property
    def text(self) -> str:
        name = ", ".join(f"{k}={v}" for k, v in self.sizes.items())
        told = {"alike": "as the reference", "different": "different", "not tried": "not tried"}
        why = f": {self.why}" if self.why else ""
        return f"also launched at {name}: {told[self.found]}{why}"

    def record(self) -> dict[str, Any]:
        return {"shape": self.sizes, "found": self.found, "why": self.why}


def other_shapes(
    stated: Sequence[Mapping[str, int]], count: int, draw: np.random.Generator
) -> list[dict[str, int]]:
    """Sizes near those that were stated: in turn a little larger, and anything below."""
    known = [dict(each) for each in stated]
    out: list[dict[str, int]] = []
    for number in range(count if known and known[0] else 0):
        for _ in range(TIMES):
            near = known[int(draw.integers(len(stated)))]
            made = {
                name: int(
                    size + draw.integers(1, 4) if number % 2 == 0 else draw.integers(1, size + 1)
                )
                for name, size in near.items()
            }
            if made not in known:
                known.append(made)
                out.append(made)
                break
    return out


def tried(sizes: dict[str, int], launched: Callable[[], list[str]]) -> Other:
    """`launched` gives what is wrong at a shape, if anything is."""
    try:
        wrong = launched()
    except LimitError:
        return Other(sizes, "not tried", "it took longer than the time that was given")
    except WarploomError as error:  # there is no such launch, or the reference is for others
        return Other(sizes, "not tried", error.message)
    return Other(sizes, "different", wrong[0]) if wrong else Other(sizes, "alike")
