"""What a shuffle costs beside a load: cycles by machine, and the gain that predicts.

Kepler to Volta are the figures of the paper on shuffle synthesis (shuffle up, shared memory
without conflicts, L1 hit); `h200` is measured by `bench/ptx/shuffle_device.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.errors import UnsupportedError, one_of

_WARP = 32  # lanes, on every machine of the table


@dataclass(frozen=True, slots=True)
class Latency:
    """Cycles from issue to use. `corner` is what the test for corner lanes and their predicated
    load add to a shuffle; `test` one more comparison; `l2` an L2 hit where it is known."""

    name: str
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
        edge = load * abs(lanes) / _WARP
        shuffles = self.shuffle + (words - 1) * self.test
        return load - shuffles - self.corner - self.test * tests - edge


# Corner cost: two issue slots of dependent arithmetic on each machine (9, 6, 6, 4 cycles a step).
_TABLE = (
    Latency("kepler", 24, 26, 35, 9, 2),
    Latency("maxwell", 33, 23, 82, 12, 2),
    Latency("pascal", 33, 24, 82, 12, 2),
    Latency("volta", 22, 19, 28, 8, 2),
    # Measured: bench/results/ptx_shuffle_device.json. The corner test alone costs as much as an L1
    # hit there, and over the sixteen kernels no shuffle was faster than the load it replaced.
    Latency("h200", 24.0, 33.0, 39.0, 34.1, 2, 296.8, "measured"),
)
LATENCIES: dict[str, Latency] = {entry.name: entry for entry in _TABLE}


def latency_of(name: str) -> Latency:
    if name not in LATENCIES:
        raise UnsupportedError(
            f"no latencies are known for a machine called {name!r}",
            advice=one_of(name, LATENCIES),
        )
    return LATENCIES[name]


def machine_for(target: str) -> str:
    """The table entry nearest to an architecture: `sm_61` is a pascal; unknown ones are new."""
    digits = "".join(ch for ch in target if ch.isdigit())
    generation = int(digits) // 10 if digits else 99
    return {3: "kepler", 5: "maxwell", 6: "pascal", 7: "volta"}.get(generation, "h200")
