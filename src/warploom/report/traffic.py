"""What a kernel asks of memory, request by request: which sectors and banks its lanes touch.

A kernel is run by its evaluator on one block, and every access of the first warp is noted as it is
counted there; the heat maps are made of these, and their totals are the evaluator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warploom.kernel.evaluate import Accessed, Ints, Mask, run
from warploom.kernel.ir import Kernel, Store
from warploom.machine.banks import BANKS, bank_use
from warploom.machine.coalesce import SECTOR_BYTES, traffic
from warploom.machine.record import NVIDIA
from warploom.report.grid import Grid
from warploom.report.theme import heat_of
from warploom.sketch.code.need import scalars_of
from warploom.sketch.code.tiling import Tiled
from warploom.sketch.code.trial import shapes_at
from warploom.sketch.term.ir import size

MOST_REQUESTS, MOST_ROWS = 40, 96  # drawn; of more the rest is counted only

HEAT_NOTE = (
    "What the first warp of a block asks of memory, as the simulator counts it. Across: requests, "
    "in order. Down: sectors of 32 bytes, or banks of shared memory. The number is how many lanes "
    "touch the sector, or how many words are wanted of the bank, which serves one after another."
)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One request of one warp: a byte address for each lane, and which lanes take part."""

    row: Ints
    width: int
    active: Mask

    @property
    def addresses(self) -> Ints:
        return self.row[self.active]

    def lanes_by(self, unit: int) -> dict[int, int]:
        """How many lanes touch each stretch of `unit` bytes."""
        spread = np.arange(0, self.width, min(unit, self.width))
        touched = [np.unique((at + spread) // unit) for at in self.addresses.tolist()]
        numbers, counts = np.unique(np.concatenate(touched), return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    @property
    def sectors(self) -> int:
        return len(self.lanes_by(SECTOR_BYTES))

    def words_by_bank(self) -> dict[int, int]:
        """How many different words are wanted of each bank."""
        words = np.array(sorted(self.lanes_by(NVIDIA.word_bytes)))
        banks, counts = np.unique(words % BANKS, return_counts=True)
        return dict(zip(banks.tolist(), counts.tolist(), strict=True))

    def conflicts(self, load: bool) -> int:
        return bank_use(self.row[None], self.width, self.active[None], load=load).conflicts


@dataclass(slots=True)
class Stream:
    """All requests of one warp to one array, in order."""

    array: str
    shared: bool
    writes: bool
    requests: list[Asked] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{'stores to' if self.writes else 'loads of'} {self.array}"


@dataclass(slots=True)
class Noted:
    """Notes the accesses of the first warp of all."""

    streams: dict[tuple[str, bool], Stream] = field(default_factory=dict)

    def __call__(self, seen: Accessed) -> None:
        writes = isinstance(seen.statement, Store)
        active: Mask = seen.active[0]
        if seen.first == 0 and active.any():
            name = seen.statement.array
            stream = self.streams.setdefault((name, writes), Stream(name, seen.shared, writes))
            stream.requests.append(Asked(seen.addresses[0], seen.width, active))


def streams_of(tiled: Tiled) -> list[Stream]:
    """What the first warp of one block asks for, on tiles that are whole."""
    tiling = tiled.tiling
    axes = len(tiling.outputs[0].shape)
    shapes = shapes_at(tiling, (*(1 for _ in range(axes - 1)), tiled.group), lambda tile: tile)
    arrays = [np.zeros(size(shapes[each.name]), each.dtype.storage) for each in tiled.kernel.arrays]
    return noted(tiled.kernel, arrays, scalars_of(tiling, shapes))


def noted(
    kernel: Kernel, arrays: Sequence[np.ndarray], scalars: Mapping[str, int | float]
) -> list[Stream]:
    """The accesses of the first warp in a launch on these arrays."""
    watch = Noted()
    run(kernel, list(arrays), scalars, watch=watch)
    return list(watch.streams.values())


def stream_words(stream: Stream) -> str:
    """The counts of a stream: `5 requests, 20 sectors, 100 % used`."""
    count = len(stream.requests)
    return f"{count} request{'' if count == 1 else 's'}, {stream_fact(stream)}"


def stream_fact(stream: Stream) -> str:
    """The counts of a stream without its requests: `20 sectors, 100 % used`."""
    if stream.shared:
        lost = sum(each.conflicts(not stream.writes) for each in stream.requests)
        return f"{lost} passes lost to bank conflicts"
    moved = [traffic(each.row[None], each.width, each.active[None]) for each in stream.requests]
    used = sum(each.useful_bytes for each in moved) / max(1, sum(e.moved_bytes for e in moved))
    return f"{sectors_of(stream)} sectors, {100 * used:.0f} % used"


def sectors_of(stream: Stream) -> int:
    return sum(each.sectors for each in stream.requests)


def heat_map(stream: Stream) -> Grid:
    """Requests across, sectors or banks down; the number is how many lanes, or words, are there."""
    shown = stream.requests[:MOST_REQUESTS]
    if stream.shared:
        counts = [each.words_by_bank() for each in shown]
        rows, names = list(range(BANKS)), [f"bank {bank}" for bank in range(BANKS)]
        what = "words of bank"
    else:
        counts = [each.lanes_by(SECTOR_BYTES) for each in shown]
        rows = sorted({sector for each in counts for sector in each})[:MOST_ROWS]
        names = [f"sector {sector}" for sector in rows]
        what = "lanes in sector"
    most = max((count for each in counts for count in each.values()), default=1)
    cells = [each.get(row, 0) for row in rows for each in counts]
    told = [
        f"request {number}: {count} {what} {row}" if count else ""
        for row, number, count in (
            (row, number, each.get(row, 0)) for row in rows for number, each in enumerate(counts)
        )
    ]
    left = len(stream.requests) - len(shown)
    more = f"; {left} more requests are not drawn" if left > 0 else ""
    return Grid(
        stream.title,
        stream_words(stream) + more,
        len(shown),
        tuple(names),
        tuple(map(str, range(len(shown)))),
        tuple(f"h{heat_of(cell, most)}" if cell else "" for cell in cells),
        tuple(str(cell) if cell else "" for cell in cells),
        tuple(told),
        "requests",
        "banks" if stream.shared else "sectors of 32 bytes",
    )


def heat_html(heats: Sequence[Grid]) -> str:
    return f'<div class="flow heat">{"".join(heat.html() for heat in heats)}</div>'
