"""A tile through shared memory: rows of x come in as they lie, whole sectors of y go out.

    x[from + p + IN(u)]   →   memory[u, p]   →   y[to + OUT(p) + u]

Steps of `p` lie side by side in x, steps of `u` in y; both may run over several axes. Rows of y may
begin anywhere: each has a window of its own, which begins `late` steps before the block's chunk, at
a multiple of `align` elements of y. So no sector is written by two blocks, except where rows end.
A tile therefore has `align - 1` rows more than a window is long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from warploom.catalogue.permute.convert import Conversion, Converter
from warploom.catalogue.permute.frame import Grid, Lets, OfWords, Side, arrays, marked, pitched
from warploom.index.ir import Expr, Var, lift, maximum, minimum, select
from warploom.kernel.build import Builder
from warploom.kernel.ir import Barrier, Kernel, Store
from warploom.layout.patterns.access import IDLE

LANES, BANKS, BANK_BYTES = 32, 32, 4


@dataclass(frozen=True, slots=True)
class WindowTile(OfWords):
    """`p` steps along x and windows of `q` along y, elements of so many bytes, so many threads.

    `wide` elements are read by one access. They are stored one by one, or as they lie in x where
    the strides of rows leave a known `residue` when they are divided by `wide`. In a `linear` tile
    all rows are one run of x, and one of shared memory. `out` elements are written by one access.
    Digits of p and q; `grid` axes of blocks, of which the first counts chunks of q and the second
    those of p, or the other way round (`p_first`). `strided`: steps do not lie side by side.
    `ahead`: asynchronous copies. `to`: elements are converted between shared memory and y.
    """

    bytes: int
    p: int
    q: int
    threads: int = 256
    align: int = 1
    wide: int = 1
    out: int = 1
    residue: int | None = None
    p_digits: int = 1
    q_digits: int = 1
    grid: int = 2
    beyond: int = 0  # of the grid's last axes, those that the machine counts
    p_first: bool = False
    strided: bool = False
    linear: bool = False
    ahead: bool = False
    streaming: tuple[bool, bool] = (False, False)
    to: Conversion | None = None

    @property
    def rows(self) -> int:
        return self.q + self.align - 1

    @property
    def runs(self) -> int:
        """Runs of x that are read."""
        return 1 if self.linear else self.rows

    @property
    def words(self) -> int:
        """Accesses that a run may need, wherever it begins."""
        length = self.p * self.rows if self.linear else self.p
        return -(-(length + self.wide - 1) // self.wide)

    @property
    def across(self) -> int:
        """Threads that read side by side in a run."""
        if self.linear:
            return self.threads
        return min(LANES, 1 << (self.words - 1).bit_length())

    @property
    def times(self) -> int:
        """Words of a run that a thread reads."""
        return -(-self.words // self.across)

    @property
    def along(self) -> int:
        """Threads that write side by side in a row."""
        return min(LANES, self.q // self.out)

    @property
    def passes(self) -> int:
        """Runs that a thread reads of."""
        return -(-self.runs // (self.threads // self.across))

    @property
    def in_parts(self) -> bool:
        """Whether elements that were read together are stored one by one."""
        return self.wide > 1 and self.residue is None and not self.linear

    @property
    def apart(self) -> int:
        """Lines that the block writes at once."""
        return self.threads // self.along

    @property
    def lines(self) -> int:
        """Lines of a thread."""
        return -(-self.p // self.apart)

    @property
    def classes(self) -> int:
        """How many classes lines have: those of one begin as late after a multiple of `align`."""
        if self.p_digits > 1 or self.strided:
            return self.lines
        return min(self.lines, max(1, self.align // math.gcd(self.align, self.apart)))

    @property
    def further(self) -> int:
        """From a line of a thread to its next one of the same class."""
        return self.classes * self.apart

    @property
    def pitch(self) -> int:
        """From a row in shared memory to the next."""
        return pitch_of(self)[0]

    @property
    def slots(self) -> int:
        """Elements of shared memory, those included that a thread without a step would use."""
        pitch, lines = self.pitch, self.lines * self.apart
        stored = self.times * self.across * self.wide
        if not self.linear:
            stored += (self.passes * (self.threads // self.across) - 1) * pitch + 2 * self.wide
        return max(stored, (self.rows - 1) * pitch + lines + self.wide)

    @property
    def shared_bytes(self) -> int:
        return self.slots * self.bytes

    @property
    def name(self) -> str:
        sides = f"{self.p}x{self.q}_{self.threads}"
        digits = f"{self.grid}{self.beyond}{self.p_digits}{self.q_digits}"
        residue = "p" if self.residue is None else self.residue
        given = (self.p_first, self.strided, self.linear, self.ahead, *self.streaming)
        widths = f"{self.align}_{self.wide}{self.out}{residue}{marked('pslacw', given)}"
        how = "" if self.to is None else self.to.name
        return f"permute_tile_{self.bytes}_{sides}_{digits}_{widths}{how}"


@lru_cache(maxsize=1024)
def pitch_of(tile: WindowTile) -> tuple[int, int]:
    """The distance of rows with the fewest wavefronts of a warp's first stores and loads, and how
    many these are."""
    if tile.linear:
        return tile.p, _wavefronts(tile, tile.p)
    least = tile.p + 2 * (tile.wide - 1)
    step = 1 if tile.residue is None else tile.wide
    least += 0 if tile.residue is None else (tile.residue - least) % tile.wide
    least_wavefronts, best = sum(len(each) for each in (_stored(tile), _loaded(tile))), (0, 1 << 30)
    # A row longer by all banks has the same banks.
    for pitch in range(least, least + BANKS * BANK_BYTES // tile.bytes, step):
        wavefronts = _wavefronts(tile, pitch)
        if wavefronts < best[1]:
            best = (pitch, wavefronts)
        if wavefronts <= least_wavefronts:
            break
    return best


def _wavefronts(tile: WindowTile, pitch: int) -> int:
    total = 0
    for accesses in (_stored(tile), _loaded(tile)):
        lanes = max(1, BANKS * BANK_BYTES // (accesses.shape[2] * max(tile.bytes, BANK_BYTES)))
        for request in accesses:
            elements = request[request[:, 0] >= 0]
            at = (elements // tile.p * pitch + elements % tile.p) * tile.bytes // BANK_BYTES
            for first in range(0, len(at), lanes):
                total += int(np.bincount(np.unique(at[first : first + lanes]) % BANKS).max())
    return total


@lru_cache(maxsize=64)
def proof_of(tile: WindowTile) -> str:
    """What the solver says of the distance of rows."""
    shape = (tile.rows, tile.p)
    return pitched(shape, tile.bytes, _stored(tile), _loaded(tile), pitch_of(tile)[0])


def _stored(tile: WindowTile) -> np.ndarray:
    """What the lanes of a warp store first, of rows that begin at a multiple of `wide`."""
    lane = np.arange(LANES)
    row, first = lane // tile.across, lane % tile.across * tile.wide
    rows = 1 if tile.wide > 1 else tile.rows  # words of other rows begin elsewhere in a word
    inside = (row < rows) & (first + tile.wide <= tile.p)
    found = np.where(inside, row * tile.p + first, IDLE)[:, None] + np.arange(tile.wide)
    found = np.where(inside[:, None], found, IDLE)
    return found.T[:, :, None] if tile.in_parts else found[None]


def _loaded(tile: WindowTile) -> np.ndarray:
    """What the lanes of a warp load first: `out` elements of one line each."""
    lane = np.arange(LANES)
    row, line = lane % tile.along * tile.out, lane // tile.along
    inside = line < tile.p
    found = [np.where(inside, (row + i) * tile.p + line, IDLE) for i in range(tile.out)]
    return np.array(found)[:, :, None]


def tile_kernel(tile: WindowTile) -> Kernel:
    return _TileWriter(tile).write()


class _TileWriter:
    def __init__(self, tile: WindowTile) -> None:
        self.tile = tile
        what = f"Moves tiles of {tile.p} × {tile.q} elements of {tile.bytes} bytes."
        self.k = k = Builder(tile.name, block=tile.threads, doc=f"{what}\n{proof_of(tile)}")
        written = None if tile.to is None else tile.to.target
        self.x, self.y, self.x_size, self.y_size = arrays(
            k, tile.dtype, tile.wide * tile.unit, written
        )
        factors = tile.factors
        self.blocks = Grid(k, tile.grid, tile.beyond, factors)
        self.p = Side(k, "p", tile.p_digits, factors)
        self.q = Side(k, "q", tile.q_digits, factors)
        self.lead = k.scalar("q_lead")
        self.convert = None if tile.to is None else Converter(k, tile.to)
        self.let = Lets(k)
        self._require()

    def _require(self) -> None:
        k, tile = self.k, self.tile
        k.require(self.lead.ge(0))
        if tile.strided:
            return
        for each in (*self.blocks.writes, Var("first_write"), self.p.writes[0]):
            k.require(each.ge(0))
        if tile.q_digits == 1:
            for each in (*self.blocks.reads, Var("first_read"), self.q.reads[0]):
                k.require(each.ge(0))
        if tile.residue is not None:
            k.require(((self.q.reads[0] - tile.residue) % tile.wide).eq(0))

    def write(self) -> Kernel:
        k, tile = self.k, self.tile
        self.read, self.written, digits = self.blocks.begin()
        q_at, p_at = (1, 0) if tile.p_first else (0, 1)
        self.p.begin(digits[p_at])
        self.width = k.let("width", maximum(self.p.inside, lift(1)))
        self.first = k.let("first", digits[q_at] * self.q.chunk)
        self.left = k.let("left", self.q.count - self.first)
        self.is_last = (digits[q_at] + 1).eq(self.blocks.counts[q_at])
        self.late_x: Expr = lift(tile.wide - 1)  # of the first row in shared memory
        if not tile.in_parts:
            self.late_x = self.let("late_x", self._begin(self._step(lift(0))) % tile.wide)
        self.memory = k.shared("memory", tile.dtype, tile.slots * tile.unit)
        self._load()
        k.add(Barrier(waits=0 if tile.ahead else None))
        self._store()
        return k.done()

    # -- in

    def _load(self) -> None:
        """All loads are under way before the first is used. Where a row or column is outside, its
        neighbour is loaded again and never used, which costs less than a condition."""
        k, tile = self.k, self.tile
        self.most = k.let("most", self.first + minimum(self.left, self.q.chunk) - 1)
        self.row = k.let("row", k.thread // tile.across)
        count = tile.passes * tile.times * tile.wide * tile.unit
        self.held = k.registers("held", tile.dtype, count)
        for way in (self._copy,) if tile.ahead else (self._fetch, self._keep):
            with k.loop("n", tile.passes) as n, k.loop("m", tile.times) as m:
                column = self.let("column", k.thread % tile.across + m * tile.across)
                at = (n * tile.times + m) * tile.wide * tile.unit
                way(at, n * (tile.threads // tile.across), column)

    def _step(self, row: Expr) -> Expr:
        """The step of q that a row has."""
        return self.first + row - (self.tile.align - 1)

    def _inside(self, step: Expr) -> Expr:
        return self.let("step", maximum(minimum(step, self.most), lift(0)))

    def _begin(self, step: Expr) -> Expr:
        """Where the row of a step begins in x."""
        if self.tile.q_digits == 1:
            return self.read + step * self.q.reads[0]
        digits = self.let("digits", step - self.first + self.lead + (self.tile.align - 1))
        return self.read + self.q.offset(digits, self.q.reads)

    def _at(self, further: Expr, column: Expr) -> Expr:
        """Which element of x a thread reads, or the first of several."""
        tile, wide = self.tile, self.tile.wide
        if tile.linear:
            begin = self._begin(self._step(lift(0)))
            last = begin + (self.most - self._step(lift(0)) + 1) * tile.p
            return self._word(minimum((begin // wide) + column, last // wide))
        begin = self.let("begin", self._begin(self._inside(self._step(self.row + further))))
        if wide > 1:
            last = (begin + self.width - 1) // wide
            return self._word(minimum(begin // wide + column, last))
        inside = minimum(column, self.width - 1)
        step = self.p.offset(self.let("inside", inside), self.p.reads) if tile.strided else inside
        return self._word(begin + step)

    def _word(self, at: Expr) -> Expr:
        """The first machine word of a word of x, inside of it whatever is asked for."""
        tile = self.tile
        if tile.strided or tile.q_digits > 1 or tile.linear:
            at = maximum(at, lift(0))
        count = tile.wide * tile.unit
        return self.let("at", minimum(at, self.x_size - 1)) * count

    def _fetch(self, n: Expr, further: Expr, column: Expr) -> None:
        tile, at = self.tile, self._at(further, column)
        width = tile.wide * tile.unit
        self.held[n] = self.x.at(at, width=width, streaming=tile.streaming[0])

    def _place(self, further: Expr, column: Expr) -> Expr:
        """Where in shared memory it goes."""
        tile, wide, pitch = self.tile, self.tile.wide, self.tile.pitch
        if tile.linear:
            return column * wide
        if tile.residue is not None:
            row = self.let("word", (self.row * pitch + self.late_x) // wide)
            return (row + column + further * pitch // wide) * wide
        place = (self.row + further) * pitch + column * wide
        if wide > 1:
            begin = self.let("begin", self._begin(self._inside(self._step(self.row + further))))
            place = place + (wide - 1 - (begin % wide))
        return place

    def _keep(self, n: Expr, further: Expr, column: Expr) -> None:
        tile, place = self.tile, self._place(further, column)
        if tile.in_parts:
            for i in range(tile.wide):
                self.memory.put(place + i, self.held[n + i])
            return
        self.memory.put(place * tile.unit, self.held[n], width=tile.wide * tile.unit)

    def _copy(self, n: Expr, further: Expr, column: Expr) -> None:
        """Asynchronously, past registers."""
        tile = self.tile
        width, place = tile.wide * tile.unit, self._place(further, column) * tile.unit
        self.held[n] = self.x.at(self._at(further, column), width=width)
        self.k.add(Store(self.memory.name, place, self.held[n], None, width, False, True))

    # -- out

    def _store(self) -> None:
        """Lines of y by classes: those of one class begin as late after a multiple of `align`."""
        k, tile = self.k, self.tile
        self.lane = k.let("along", k.thread % tile.along)
        self.own = k.let("own", k.thread // tile.along)
        self.got = k.registers("got", tile.dtype, tile.out * tile.unit)
        self.made = self.got
        if tile.to is not None:
            self.made = k.registers("made", tile.to.target, tile.out)
        for t in range(tile.classes):
            line = self.let("line", self.own + t * tile.apart)
            inside = minimum(line, self.width - 1)  # offsets outside may have too many bits
            begin = self.let("line_to", self.written + self.p.offset(inside, self.p.writes))
            late, stop = self._window(begin)
            for g in range(-(-tile.q // (tile.along * tile.out))):
                u = self.let("u", (self.lane + g * tile.along) * tile.out - late)
                passes = len(range(t, tile.lines, tile.classes))
                self._lines(_Window(line, inside, begin, stop, u, g), passes)

    def _window(self, begin: Expr) -> tuple[Expr, Expr]:
        """How late a line begins, and where its window ends."""
        tile = self.tile
        if tile.align == 1:
            return lift(0), minimum(self.left, self.q.chunk)
        late = self.let("late", begin & (tile.align - 1))
        follows = self.q.chunk - ((begin + self.q.chunk) & (tile.align - 1))
        stop = select(self.is_last, self.left, minimum(follows, self.left))
        return late, self.let("stop", stop)

    def _lines(self, window: _Window, passes: int) -> None:
        k, tile = self.k, self.tile
        u, out, unit = window.u, tile.out, tile.unit
        low, high = u.ge(lift(0) - self.first), (u + out).le(window.stop)
        whole = high if tile.align == 1 else low.and_(high)
        to, apart = self._to(window)
        left = self.p.inside - window.line
        end = self.let("end", minimum(self.y_size, self._end(left, to)))
        lies = self.let("place", (u + (tile.align - 1)) * tile.pitch + window.line)
        place = lies + self.late_x
        with k.when(whole), k.loop("n", passes) as n:
            at = self.let("to_at", to + n * apart)
            with k.when((at + out * unit).le(end)):
                for i in range(out):
                    self._get(i, place + n * tile.further + i * tile.pitch, window, n)
                self.y.put(at, self.made[0], width=out * unit, streaming=tile.streaming[1])
        if out == 1:
            return
        lines = (self.p.inside + (tile.further - 1)) // tile.further
        with k.when(whole.not_()), k.loop("n", minimum(lines, lift(passes))) as n:
            at = self.let("to_at", to + n * apart)
            for i in range(out):
                to_one = at + i
                inside = (u + i).ge(lift(0) - self.first).and_((u + i).lt(window.stop))
                inside = inside.and_((n * tile.further).lt(left))
                with k.when(inside.and_(to_one.ge(0)).and_(to_one.lt(self.y_size))):
                    self._get(i, place + n * tile.further + i * tile.pitch, window, n)
                    self.y.put(to_one, self.made[i])

    def _to(self, window: _Window) -> tuple[Expr, Expr]:
        """Where a thread's first step goes in y, and how far apart its lines are."""
        tile, unit = self.tile, self.tile.unit
        if tile.strided:
            inside = minimum(window.u, self.left - 1)
            step = self.q.offset(inside + self.lead, self.q.writes)
            return self.let("to", maximum(window.begin + step, lift(0)) * unit), lift(0)
        bits = tile.align.bit_length() - 1
        to = (window.begin >> bits << bits) if bits else window.begin
        to = to + (self.lane + window.group * tile.along) * tile.out
        if tile.p_digits > 1:
            to = maximum(to, lift(0))
        return self.let("to", to * unit), self.p.writes[0] * (tile.further * unit)

    def _end(self, left: Expr, to: Expr) -> Expr:
        """Behind the last word of a thread's lines, of which so many are left; 0 if none is."""
        tile = self.tile
        if tile.classes == tile.lines:
            return select(left.gt(0), self.y_size, lift(0))
        return to + ((left - 1) * self.p.writes[0] + tile.out) * tile.unit

    def _get(self, i: int, place: Expr, window: _Window, n: Expr) -> None:
        """Element i of a word of y, in its n-th line."""
        unit = self.tile.unit
        self.got[i * unit] = self.memory.at(place * unit, width=unit)
        if self.convert is not None:
            self.made[i] = self.convert.value(self.got[i], self._factor(window, window.u + i, n))

    def _factor(self, window: _Window, u: Expr, n: Expr) -> Expr | None:
        """Which factor an element has. Those of a step outside are others', and never used."""
        tile, q = self.tile, self.q
        if not tile.factors:
            return None
        number = self.blocks.factor + n * tile.further * self.p.factors[0]
        number = number + self.p.offset(window.inside, self.p.factors)
        if tile.q_digits == 1:
            return self.let("number", number + (self.first + u) * q.factors[0])
        step = maximum(minimum(u, self.left - 1), lift(1 - tile.align))
        steps = self.let("steps", step + self.lead + (tile.align - 1))
        return self.let("number", number + q.offset(steps, q.factors))


@dataclass(frozen=True, slots=True)
class _Window:
    """What a thread has of the lines of one class: the first line, and one that is inside; where it
    begins in y, where its window stops, the thread's first step in it."""

    line: Expr
    inside: Expr
    begin: Expr
    stop: Expr
    u: Expr
    group: int
