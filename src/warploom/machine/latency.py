"""What a shuffle costs beside a load: cycles of one machine, and the gain that they predict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """Cycles from issue to use, on a machine with warps of `lanes`. `corner` is what the test for
    corner lanes and their predicated load add to a shuffle; `test` one more comparison; `l2` an L2
    hit where it is known."""

    name: str
    lanes: int
    shuffle: float
    shared: float
    l1: float
    corner: float
    test: float
    l2: float | None = None
    source: str = "published"

    def gain(self, lanes: int, words: int, tests: int, space: str = "global") -> float:
        """Cycles won (or lost, if negative) by taking `words` 32-bit words from `lanes` away.

        A distance of 0 needs no shuffle: the load becomes a move. Otherwise the lanes at the end
        of the warp load as before, so `|lanes|` of them pay for both.
        """
        load = self.shared if space == "shared" else self.l1
        if lanes == 0 and tests == 0:
            return load
        if lanes == 0:
            return -self.test * tests  # the load stays, behind a predicate
        edge = load * abs(lanes) / self.lanes
        shuffles = self.shuffle + (words - 1) * self.test
        return load - shuffles - self.corner - self.test * tests - edge


def machine_for(target: str) -> str:
    """The machine nearest to an architecture: `sm_61` is a pascal; unknown ones are new."""
    digits = "".join(ch for ch in target if ch.isdigit())
    generation = int(digits) // 10 if digits else 99
    return {3: "kepler", 5: "maxwell", 6: "pascal", 7: "volta"}.get(generation, "h200")
