"""Runs of y: the launches that write them as they lie, whichever way x is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from warploom.catalogue.permute.box import SIDES, Box
from warploom.catalogue.permute.cost import SECTOR, Work
from warploom.catalogue.permute.cuts import (
    MOST_DIGITS,
    ONE,
    WHOLE,
    Cut,
    contiguous,
    cut,
    numbered,
    side_by_side,
)
from warploom.catalogue.permute.fields import Fields
from warploom.catalogue.permute.frame import MOST_STEPS
from warploom.catalogue.permute.gather import Gather
from warploom.catalogue.permute.launch import (
    Candidate,
    Part,
    Place,
    Spec,
    beyond,
    box_part,
    counted,
    leading,
    part,
)
from warploom.catalogue.permute.planes import MOST_FIELDS, Planes
from warploom.catalogue.permute.problem import MOST_AXES, Axis
from warploom.catalogue.permute.requests import of_box, of_gather
from warploom.catalogue.permute.tiles import reading

THREADS = 256
TIMES = {1: (4, 8, 16), 2: (4, 8, 16), 4: (4, 8, 16), 8: (4, 8), 16: (2, 4)}  # words of a thread
FEW = (1, 2)  # where blocks are few
ROWS = (2, 4, 8, 16, 32)  # short runs of a block
LEAST = 32  # bytes that a thread has under way in long runs, or as many as 8 loads
BOX_BYTES = 16 << 10
PLANE_WORDS = 16  # of a thread
FEW_BLOCKS = 264
FEW_BYTES = 4 << 20


def candidates(place: Place) -> Iterator[Candidate]:
    moved = place.moved
    if not moved.axes or moved.axes[0].write != 1:
        return
    yield from gathers(place)
    yield from _planes(place)
    yield from _fields(place)
    yield from _boxes(place)


# -- rows that stay whole --------------------------------------------------------------------------


def gathers(place: Place, whole: bool = False) -> Iterator[Candidate]:
    """Gathers of runs of one axis, of two, and so on. `whole`: windows keep all steps that they are
    tried with, as in earlier records."""
    moved = place.moved
    side = contiguous(moved.axes, "write")[:MOST_AXES]
    small = moved.count * moved.bytes < FEW_BYTES
    for digits in (side[: count + 1] for count in range(len(side))):
        seen: set[Spec] = set()
        for times in (*(FEW if small else ()), *TIMES[moved.bytes]):
            found = _gather(place, digits, times, whole)
            if found is not None and found.spec not in seen:
                seen.add(found.spec)
                yield found
        others = [axis for axis in moved.axes if axis not in digits]
        if others and others[0].write > 0:
            yield from _several_rows(place, digits, others[0])


def _gather(place: Place, digits: Sequence[Axis], times: int, whole: bool) -> Candidate | None:
    """Windows of a run, as many threads and steps as they need."""
    spec, numbers = _of_digits(place, digits, times)
    q = cut(numbers, spec.count, spec.align, spec.align - 1)
    if q is None or spec.count + q.inner >= MOST_STEPS:
        return None
    if q.chunks > 1 and not _under_way(place, spec):
        return None
    needed = -(-(q.chunk + spec.align - 1) // (THREADS * spec.out))
    least = replace(spec, times=needed)
    idle = 4 * needed < 3 * times and _under_way(place, least)
    return _gathered(place, least if idle and not whole else spec, q)


def _several_rows(place: Place, digits: Sequence[Axis], row: Axis) -> Iterator[Candidate]:
    """Short runs, several of them in a block: some of its threads for each."""
    spec, numbers = _of_digits(place, digits, 1)
    count = math.prod(axis.size for axis in digits)
    words = -(-(count + spec.out - 1) // spec.out)
    if words > 4 * THREADS:
        return
    for rows in ROWS:
        times = -(-words * rows // THREADS)
        each = replace(spec, times=times, align=spec.out, rows=rows)
        if rows <= 2 * row.size and times <= TIMES[1][-1] and _under_way(place, each):
            yield _gathered(place, each, Cut(tuple(numbers), count, 1), row)


def _of_digits(place: Place, digits: Sequence[Axis], times: int) -> tuple[Gather, tuple[Axis, ...]]:
    moved = place.moved
    out = max(1, 4 // moved.written_bytes)
    numbers = numbered(digits, plain=False)
    span = moved.read_span[1] - moved.read_span[0]
    if len(digits) == 1 and not 0 <= (out - 1) * digits[0].read < span:
        out = 1
    align = max(1, SECTOR // moved.written_bytes)
    to = None if moved.to is None else moved.to.to
    return Gather(moved.bytes, times, THREADS, align, out, len(numbers), to=to), numbers


def _under_way(place: Place, spec: Gather) -> bool:
    """Whether the threads of a long movement have enough loads under way."""
    moved, loads = place.moved, spec.times * spec.out
    small = moved.count * moved.bytes < FEW_BYTES
    return small or loads * moved.bytes >= LEAST or loads >= LEAST // 4


def _gathered(place: Place, spec: Gather, q: Cut, row: Axis = ONE) -> Candidate:
    moved, size = place.moved, place.moved.bytes
    digits = sum(axis is not ONE for axis in q.digits)
    blocks = q.chunks * (moved.count // (q.count * row.size)) * -(-row.size // spec.rows)
    each = 13 + spec.out * (2 + (2 * digits - 1) * (digits > 1))
    total = math.ceil(moved.count * moved.mean_bytes)
    work = Work(
        "gather" if row is ONE else "rows", size, total, total / blocks, side_by_side(q) * size,
        _ends(place, q), THREADS * (60 + 15 * (row is not ONE) + spec.times * each),
        spec.times * spec.out * max(1, size // 4), digits - 1, lines=of_gather(spec, q),
    )  # fmt: skip
    return Candidate(work, spec, lambda: gather_part(spec, place, q, row))


def gather_part(spec: Gather, place: Place, q: Cut, row: Axis = ONE) -> Part:
    held = {*q.digits, row} - {ONE}
    others = [axis for axis in place.moved.axes if axis not in held]
    if spec.rows > 1:
        steps = (spec.rows * each for each in (row.read, row.write, row.factor))
        others = [Axis(-(-row.size // spec.rows), *steps), *others]
    grid = counted([q.outer(), *others], spec.grid)
    spec = replace(spec, grid=len(grid), beyond=beyond(grid))
    made = part(spec, place, grid, {"q": q}, 1, spec.align, spec.unit)
    single = len(q.digits) == 1
    times = 0 if single else -(-(spec.align - 1) // q.inner)
    rows = {"row_count": row.size, "row_read": row.read, "row_write": row.write}
    rows["row_factor"] = row.factor
    return replace(made, scalars=made.scalars | leading(made, times, times * q.inner, q) | rows)


def _ends(place: Place, q: Cut) -> float:
    """Bytes from one sector of y that is written in part to the next, in windows."""
    moved, size = place.moved, place.moved.written_bytes
    begins = [place.y_late + moved.first_write * size, q.count * size]
    begins += [axis.write * size for axis in moved.axes if axis not in q.digits]
    return math.inf if all(each % SECTOR == 0 for each in begins) else q.count * size


# -- short on a side -------------------------------------------------------------------------------


def _boxes(place: Place) -> Iterator[Candidate]:
    """The first axes of y whole, some of the next one: all that lie side by side. If x goes along
    another axis first, the box has a line of y for each of its steps."""
    moved = place.moved
    if any(axis.read < 0 for axis in moved.axes):
        return
    read = contiguous(reading(moved), "read")
    side = contiguous(moved.axes, "write")
    for count in range(1, len(side) + 1):
        axes = side[:count]
        inner = math.prod(axis.size for axis in axes[:-1]) * moved.written_bytes
        if inner * 2 > BOX_BYTES:
            return
        others = [axis for axis in read if axis not in axes][:1]
        for line in (ONE, *others):
            for bytes in (2 * BOX_BYTES, BOX_BYTES, BOX_BYTES // 2, BOX_BYTES // 4):
                if inner * line.size * 2 <= bytes:
                    found = _box(place, axes, line, bytes)
                    if found is not None:
                        yield found


def _box(place: Place, axes: Sequence[Axis], line: Axis, bytes: int) -> Candidate | None:
    moved, size, made = place.moved, place.moved.bytes, place.moved.written_bytes
    last, out = axes[-1], min(4, max(1, (16 if made < 8 else 8) // made))
    inner = math.prod(axis.size for axis in axes[:-1])
    each = (bytes // made // line.size - 2 * out) // inner
    held = {*axes, line}
    read = [axis for axis in reading(moved) if axis in held]
    p_axes = contiguous(read, "read")[:MOST_DIGITS]
    if last in p_axes:
        p_axes = p_axes[: p_axes.index(last) + 1]
    # The axis that is cut is the last of its side.
    others = [axis for axis in (line, *axes) if axis not in p_axes and axis is not ONE]
    j_axes = tuple(sorted(others, key=lambda axis: axis is last))
    if each < 1 or not p_axes or max(len(p_axes), len(j_axes)) > MOST_DIGITS:
        return None
    p, j = (_side(some, last, each) for some in (p_axes, j_axes))
    if p is None or j is None or j.chunk > SIDES[-1] or p.chunk + p.inner >= MOST_STEPS:
        return None
    run = p.chunk * j.chunk // line.size
    pitch = run + (line.write - run) % out if line is not ONE else 0
    wide = max(1, 4 // size)
    p_side = _finely(p.chunk + wide - 1) - (wide - 1)
    slots = _power(max(out, line.size * max(pitch, run) + out - 1))
    spec = Box(
        size, p_side, _least(j.chunk), slots, _least(line.size), THREADS, wide, out,
        len(p.digits), len(j.digits), to=None if moved.to is None else moved.to.to,
    )  # fmt: skip
    if spec.shared_bytes > 2 * BOX_BYTES or line.size > THREADS // 2:
        return None
    blocks = max(p.chunks, j.chunks) * (moved.count // (p.count * j.count))
    words = spec.passes * spec.times
    each_of = 4 + 3 * (len(p.digits) > 1) + 3 * (moved.to is not None)
    load = 9 + wide * each_of + 4 * (len(j.digits) > 1)
    total = math.ceil(moved.count * moved.mean_bytes)
    stores = spec.written * (9 if line is ONE else 12)
    work = Work(
        "box", size, total, total / blocks,
        side_by_side(p, j) * size, run * made, THREADS * (120 + words * load + stores),
        words * max(1, size // 4), len(p_axes) + len(j_axes) - 1,
        lines=of_box(spec, p, j, line.size),
    )  # fmt: skip
    return Candidate(work, spec, lambda: box_part(spec, place, p, j, line, pitch))


def _side(axes: Sequence[Axis], last: Axis, each: int) -> Cut | None:
    """Axes of a box whole; of the last one in y some steps."""
    if not axes:
        return WHOLE
    digits = numbered(axes, plain=False)
    count = math.prod(axis.size for axis in axes)
    if last not in axes:
        return Cut(digits, count, 1)
    if axes[-1] is not last:
        return None
    inner = count // last.size
    steps = -(-last.size // -(-last.size // each))
    return Cut(digits, steps * inner, -(-last.size // steps))


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _finely(count: int) -> int:
    """The least number that is no less and has three bits: few kernels, and few idle threads."""
    step = max(1, _power(count) // 8)
    return -(-count // step) * step


def _least(count: int) -> int:
    return next(side for side in SIDES if side >= count)


# -- few fields ------------------------------------------------------------------------------------


def _planes(place: Place) -> Iterator[Candidate]:
    """Fields side by side on one side of the movement, in planes on the other, few and small."""
    moved = place.moved
    read = reading(moved)
    first = moved.axes[0]
    if not read or read[0] is first or any(axis.read < 0 for axis in moved.axes):
        return
    back = first.write == 1 and 1 < first.size <= MOST_FIELDS
    fields, e = (first, read[0]) if back else (read[0], first)
    steps, plane = ((e.write, e.read), fields.read) if back else ((e.read, e.write), fields.write)
    close = fields.write if back else fields.read
    if max(moved.bytes, moved.written_bytes) > 4 or close != 1 or e.factor:
        return
    to = None if moved.to is None else moved.to.to
    spec = Planes(moved.bytes, fields.size, back, THREADS, 1, to=to)
    others = [axis for axis in moved.axes if axis not in (fields, e)]
    if not 1 < fields.size <= MOST_FIELDS or steps != (fields.size, 1):
        return
    if not _in_words(place, spec, (e.size, plane), others):
        return
    words = e.size // spec.group
    times = max(1, PLANE_WORDS // spec.across)
    if moved.count < times * THREADS * spec.group * fields.size * FEW_BLOCKS:
        times = 1
    if words < THREADS * times // 2:
        return
    chunk = min(words, THREADS * times)
    step = chunk * spec.group
    grid = counted([Axis(-(-words // chunk), step * e.read, step * e.write), *others])
    spec = replace(spec, times=times, grid=len(grid), beyond=beyond(grid))

    def make() -> Part:
        made = part(spec, place, grid, {"q": Cut((Axis(words, 1, 1),), chunk, 1)})
        of_x, of_y = spec.units
        scalars = {"plane": plane // (of_x if back else of_y), "field_factor": fields.factor}
        for name, value in made.scalars.items():
            way = name.rpartition("_")[2] if name.startswith("first") else name
            unit = of_x if way.startswith(("read", "x_")) else 1
            scalars[name] = value // (of_y if way.startswith(("write", "y_")) else unit)
        return replace(made, scalars=scalars)

    count = chunk * spec.group * fields.size
    total = math.ceil(moved.count * moved.mean_bytes)
    each = max(5.0 * moved.bytes, 15.0 if moved.to is not None else 0.0)
    work = Work(
        "planes", moved.bytes, total, count * moved.mean_bytes, 4096, 4096, each * count
    )  # fmt: skip
    yield Candidate(work, spec, make)


def _fields(place: Place) -> Iterator[Candidate]:
    """Fields side by side in x, in planes of y that begin anywhere."""
    moved = place.moved
    read, e = reading(moved), moved.axes[0]
    if not read or read[0] is e or any(min(axis.read, axis.write) < 0 for axis in moved.axes):
        return
    fields = read[0]
    if max(moved.bytes, moved.written_bytes) > 8 or e.factor or not 1 < fields.size <= MOST_FIELDS:
        return
    if (fields.read, e.read, e.write) != (1, fields.size, 1):
        return
    to = None if moved.to is None else moved.to.to
    for times in (4, 2, 1):
        spec = Fields(moved.bytes, fields.size, times, THREADS, to=to)
        q = cut((e,), spec.chunk, spec.chunk, spec.align - 1)
        few = moved.count < 2 * spec.chunk * fields.size * FEW_BLOCKS
        if q is not None and spec.shared_bytes <= 2 * BOX_BYTES and (times > 1 or few):
            yield _apart(place, spec, fields, replace(q, chunk=spec.chunk))


def _apart(place: Place, spec: Fields, fields: Axis, q: Cut) -> Candidate:
    moved = place.moved
    others = [axis for axis in moved.axes if axis not in (fields, *q.digits)]
    grid = counted([q.outer(), *others])
    spec = replace(spec, grid=len(grid), beyond=beyond(grid))

    def make() -> Part:
        made = part(spec, place, grid, {"q": q}, spec.wide, spec.align)
        scalars = {"plane": fields.write, "field_factor": fields.factor}
        return replace(made, scalars=made.scalars | scalars)

    total = math.ceil(moved.count * moved.mean_bytes)
    blocks = q.chunks * (moved.count // (q.count * fields.size))
    word = 6 + spec.out * (2 if spec.to is None else 3)
    each = 40 + 4 * spec.loads + spec.fields * (20 + spec.times * word)
    work = Work(
        "fields", moved.bytes, total, total / blocks, 4096, q.chunk * moved.written_bytes,
        THREADS * each, spec.loads * max(1, moved.bytes // 4),
    )  # fmt: skip
    return Candidate(work, spec, make)


def _in_words(place: Place, spec: Planes, sides: Sequence[int], others: Sequence[Axis]) -> bool:
    """Whether all accesses of such a kernel begin at a multiple of their length."""
    moved = place.moved
    numbers = [*sides, moved.first_read, moved.first_write]
    numbers += [n for axis in others for n in (axis.read, axis.write)]
    lates = zip((place.x_late, place.y_late), (moved.bytes, moved.written_bytes), spec.units,
                strict=True)  # fmt: skip
    aligned = all(late % (size * unit) == 0 for late, size, unit in lates)
    return aligned and not any(number % spec.group for number in numbers)
