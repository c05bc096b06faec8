"""One launch of a movement: its kernel, and the numbers that the kernel is given.

Offsets count from the first element that is read, or written. Where accesses are wide, arrays begin
at a multiple of them, which may lie before that element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warploom.catalogue.permute.box import Box, box_kernel
from warploom.catalogue.permute.cost import Work
from warploom.catalogue.permute.cuts import ONE, Cut
from warploom.catalogue.permute.fields import Fields, fields_kernel
from warploom.catalogue.permute.frame import added, reciprocal
from warploom.catalogue.permute.gather import Gather, gather_kernel
from warploom.catalogue.permute.padded import Padded, padded_kernel
from warploom.catalogue.permute.planes import Planes, planes_kernel
from warploom.catalogue.permute.problem import MOST_AXES, Axis, Movement
from warploom.catalogue.permute.tile import WindowTile, tile_kernel
from warploom.catalogue.permute.vector import Vectors, vector_kernel
from warploom.kernel.ir import Kernel

Spec = WindowTile | Box | Gather | Vectors | Planes | Fields | Padded

GRIDS = (2, 3, 5, MOST_AXES + 1)  # axes that blocks are counted out over
MOST_BEYOND = 65535  # blocks along the second and third axis of a grid


@dataclass(frozen=True, slots=True)
class Part:
    """One launch: its kernel, the scalars by name, and where arrays begin: bytes from the first
    element that is read, and written."""

    spec: Spec
    scalars: dict[str, int]
    x_begin: int
    y_begin: int
    numbers: Mapping[str, Sequence[float]] = field(
        default_factory=dict
    )  # what conversions are passed

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along the axes that the machine counts."""
        counts = [v for k, v in self.scalars.items() if k.startswith("count")]
        first = len(counts) - self.spec.beyond
        beyond = (*counts[first:], 1, 1)
        return math.prod(counts[:first]), beyond[0], beyond[1]

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A launch that would do a movement, and what it does; None where nothing else does it."""

    work: Work | None
    spec: Spec
    part: Callable[[], Part]

    @property
    def cost(self) -> float:
        """What it is expected to cost: a copy costs 1."""
        return math.inf if self.work is None else self.work.cost


def kernel_of(spec: Spec) -> Kernel:
    match spec:
        case WindowTile():
            return tile_kernel(spec)
        case Box():
            return box_kernel(spec)
        case Vectors():
            return vector_kernel(spec)
        case Gather():
            return gather_kernel(spec)
        case Planes():
            return planes_kernel(spec)
        case Fields():
            return fields_kernel(spec)
        case Padded():
            return padded_kernel(spec)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a movement lies: how many bytes x and y begin after a multiple of 128."""

    moved: Movement
    x_late: int = 0
    y_late: int = 0

    def lead(self, written: bool, wide: int) -> int:
        """Elements from the last multiple of so many to the first that is read, or written."""
        moved = self.moved
        low = (moved.write_span if written else moved.read_span)[0]
        size = moved.written_bytes if written else moved.bytes
        late = (self.y_late if written else self.x_late) + low * size
        return late % (wide * size) // size


def counted(grid: Sequence[Axis], least: int = 2) -> list[Axis]:
    """The axes of a grid, with some of one step: few kernels serve all shapes."""
    count = next(each for each in GRIDS if each >= max(least, len(grid)))
    return [*grid, *[ONE] * (count - len(grid))]


def beyond(grid: Sequence[Axis]) -> int:
    """How many of the grid's last axes the machine counts by themselves."""
    found = 0
    while found < 2 and len(grid) - found > 1 and grid[-1 - found].size <= MOST_BEYOND:
        found += 1
    return found


def part(
    spec: Spec,
    place: Place,
    grid: Sequence[Axis],
    sides: Mapping[str, Cut],
    wide: int = 1,
    align: int = 1,
    unit: int = 1,
) -> Part:
    """The launch of a kernel whose sides and blocks are these; x is read by so many elements at a
    time, lines of y begin at a multiple of `align` elements."""
    moved = place.moved
    (low_read, high_read), (low_write, high_write) = moved.read_span, moved.write_span
    x_lead, y_lead = place.lead(False, wide), place.lead(True, align)
    scalars = {
        "x_size": -(-(high_read - low_read + x_lead) // wide),
        "y_size": (high_write - low_write + y_lead) * unit,
    }
    for at, axis in enumerate(grid):
        scalars |= {f"count{at}": axis.size, f"read{at}": axis.read, f"write{at}": axis.write}
        scalars[f"factor{at}"] = axis.factor
    for name, side in sides.items():
        scalars |= side_scalars(name, side)
    scalars["first_read"] = moved.first_read - low_read + x_lead
    scalars["first_write"] = moved.first_write - low_write + y_lead
    scalars["first_factor"] = moved.first_factor
    begins = (low_read - x_lead) * moved.bytes, (low_write - y_lead) * moved.written_bytes
    return Part(spec, scalars, *begins, {} if moved.to is None else moved.to.numbers)


def side_scalars(name: str, side: Cut) -> dict[str, int]:
    sizes = [axis.size for axis in side.digits]
    made = {f"{name}_count": side.count, f"{name}_chunk": side.chunk}
    for at, size in enumerate(sizes[:-1]):
        made[f"{name}_over{at}"], made[f"{name}_shift{at}"] = reciprocal(size)
    for way in ("read", "write", "factor"):
        steps = added(sizes, [getattr(axis, way) for axis in side.digits])
        made |= {f"{name}_{way}{at}": step for at, step in enumerate(steps)}
    return made


def tile_part(tile: WindowTile, place: Place, p: Cut, q: Cut) -> Part:
    """Blocks that follow each other write side by side, or read so where there are few of those."""
    held = {*p.digits, *q.digits} - {ONE}
    outer = q.outer()
    single = len(q.digits) == 1
    if single:  # the kernel counts steps of q itself
        outer = replace(outer, read=0, factor=0)
    others = [axis for axis in place.moved.axes if axis not in held]
    sides = [p.outer(), outer] if tile.p_first else [outer, p.outer()]
    grid = counted([*sides, *others], tile.grid)
    spec = replace(tile, grid=len(grid), beyond=beyond(grid))
    made = part(
        spec, place, grid, {"p": p, "q": q}, tile.wide, max(tile.align, tile.out), tile.unit
    )
    times = 0 if single else -(-(tile.align - 1) // q.inner)
    lead = times * q.inner - (tile.align - 1) if times else 0
    return replace(made, scalars=made.scalars | leading(made, times, lead, q))


def leading(made: Part, times: int, lead: int, q: Cut) -> dict[str, int]:
    """Where a launch begins whose steps along q are counted from so many rows before it."""
    last, known = q.digits[-1], made.scalars
    return {
        "q_lead": lead,
        "first_read": known["first_read"] - times * last.read,
        "first_factor": known["first_factor"] - times * last.factor,
    }


def box_part(box: Box, place: Place, p: Cut, j: Cut, line: Axis = ONE, pitch: int = 0) -> Part:
    """In shared memory steps are as far apart as in y, but lines are by their `pitch`."""
    held = {*p.digits, *j.digits} - {ONE}
    others = [axis for axis in place.moved.axes if axis not in held]
    grid = counted([j.outer(), p.outer(), *others], box.grid)
    spec = replace(box, grid=len(grid), beyond=beyond(grid))

    def lies(side: Cut) -> Cut:
        digits = (replace(a, write=pitch) if a is line and a is not ONE else a for a in side.digits)
        return replace(side, digits=tuple(digits))

    made = part(spec, place, grid, {"p": lies(p), "j": lies(j)}, box.wide, box.out, box.unit)
    lines = {"line_count": line.size, "line_pitch": pitch, "line_to": line.write}
    return replace(made, scalars={**made.scalars, **lines})
