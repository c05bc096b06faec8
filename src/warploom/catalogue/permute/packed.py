"""A tile of elements smaller than a word, put together anew in registers: rows may begin anywhere.

    x[from + p + IN(u)]   →   memory[p, u / group]   →   y[to + OUT(p) + u]

A lane reads one word of each of `group` rows, takes what is missing from the next lane, and turns
the square of elements over. So shared memory is stored to and loaded from in words alone. Windows
of y begin at a multiple of `align` elements, as in `tile.py`: a word of a window is made of two
words of shared memory, which lie side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.permute.frame import WORDS, Grid, Lets, Side, marked
from warploom.index.ir import Expr, Var, lift, maximum, minimum, select
from warploom.kernel.build import Builder, RegisterArray, cast, from_index, pick_bytes
from warploom.kernel.dtype import u32
from warploom.kernel.ir import Kernel, Value

LANES = 32
BANKS = 32


@dataclass(frozen=True, slots=True)
class Packed:
    """Windows of `q` elements of so many bytes along y, `across` lanes along x, so many threads.

    Digits of p and q; `grid` axes of blocks, of which the first counts chunks of q and the second
    those of p, or the other way round (`p_first`).
    """

    bytes: int
    q: int
    across: int = LANES
    threads: int = 256
    align: int = 32
    p_digits: int = 1
    q_digits: int = 1
    grid: int = 2
    beyond: int = 0
    p_first: bool = False
    streaming: tuple[bool, bool] = (False, False)

    @property
    def group(self) -> int:
        """Elements of a word."""
        return 4 // self.bytes

    @property
    def wide(self) -> int:
        return self.group

    @property
    def out(self) -> int:
        return self.group

    @property
    def unit(self) -> int:
        return 1

    @property
    def p(self) -> int:
        """Columns: the last lane has only what the one before it lacks."""
        return (self.across - 1) * self.group

    @property
    def tall(self) -> int:
        """Words of a line in shared memory."""
        return (self.q + self.align) // self.group

    @property
    def apart(self) -> int:
        """Groups of rows that the block reads at once."""
        return self.threads // self.across

    @property
    def passes(self) -> int:
        """Groups of rows that a lane reads of."""
        return -(-self.tall // self.apart)

    @property
    def held(self) -> int:
        return self.passes * self.group

    @property
    def pitch(self) -> int:
        """From a line in shared memory to the next: `group` of them begin in the same bank."""
        step = BANKS // self.group
        return -(-(self.passes * self.apart) // step) * step

    @property
    def column(self) -> int:
        """From the lines of a lane to those of the next one, in other banks."""
        return self.group * self.pitch + LANES // self.across

    @property
    def slots(self) -> int:
        return self.across * self.column

    @property
    def shared_bytes(self) -> int:
        return self.slots * 4

    @property
    def lines(self) -> int:
        """Lines that a warp writes."""
        return -(-self.p // (self.threads // LANES))

    @property
    def words(self) -> int:
        """Words of a window that a lane writes."""
        return -(-self.q // (self.group * LANES))

    @property
    def name(self) -> str:
        digits = f"{self.grid}{self.beyond}{self.p_digits}{self.q_digits}"
        ways = marked("pcw", (self.p_first, *self.streaming))
        sides = f"{self.across}x{self.q}_{self.threads}_{self.align}"
        return f"permute_packed_{self.bytes}_{sides}_{digits}{ways}"


def packed_kernel(spec: Packed) -> Kernel:
    return _PackedWriter(spec).write()


class _PackedWriter:
    def __init__(self, spec: Packed) -> None:
        self.spec = spec
        what = f"Moves tiles of {spec.p} × {spec.q} elements of {spec.bytes} bytes, word by word."
        told = f"shared memory: lines {spec.pitch} words apart, one wavefront for each access"
        self.k = k = Builder(spec.name, block=spec.threads, doc=f"{what}\n{told}")
        self.x_size, self.y_size = k.scalar("x_size"), k.scalar("y_size")
        self.x = k.array("x", u32, self.x_size, const=True)
        self.y = k.array("y", WORDS[spec.bytes], self.y_size)
        self.blocks = Grid(k, spec.grid, spec.beyond)
        self.p, self.q = Side(k, "p", spec.p_digits), Side(k, "q", spec.q_digits)
        self.lead = k.scalar("q_lead")
        self.let = Lets(k)
        k.require(self.lead.ge(0))
        for each in (*self.blocks.writes, Var("first_write"), self.p.writes[0]):
            k.require(each.ge(0))
        if spec.q_digits == 1:
            for each in (*self.blocks.reads, Var("first_read"), self.q.reads[0]):
                k.require(each.ge(0))

    def write(self) -> Kernel:
        k, spec = self.k, self.spec
        self.read, self.written, digits = self.blocks.begin()
        q_at, p_at = (1, 0) if spec.p_first else (0, 1)
        self.p.begin(digits[p_at])
        self.width = k.let("width", maximum(self.p.inside, lift(1)))
        self.first = k.let("first", digits[q_at] * self.q.chunk)
        self.left = k.let("left", self.q.count - self.first)
        self.is_last = (digits[q_at] + 1).eq(self.blocks.counts[q_at])
        self.memory = k.shared("memory", u32, spec.slots)
        self._load()
        k.barrier()
        self._store()
        return k.done()

    # -- in

    def _load(self) -> None:
        """All loads are under way before the first is used."""
        k, spec = self.k, self.spec
        self.most = k.let("most", self.first + minimum(self.left, self.q.chunk) - 1)
        self.lane = k.let("lane_x", k.thread % spec.across)
        self.row = k.let("row", k.thread // spec.across)
        held = k.registers("held", u32, spec.held)
        with k.loop("n", spec.passes) as n, k.loop("r", spec.group) as r:
            begin = self._begin((self.row + n * spec.apart) * spec.group + r)
            last = minimum((begin + self.width - 1) // spec.group, self.x_size - 1)
            at = minimum(begin // spec.group + self.lane, last)
            at = k.let("at", maximum(at, lift(0)))
            held[n * spec.group + r] = self.x.at(at, streaming=spec.streaming[0])
        whole = k.registers("whole", u32, spec.group)
        beyond = k.register("beyond", u32)
        with k.loop("n", spec.passes) as n:
            group = k.let("group", self.row + n * spec.apart)
            for r in range(spec.group):
                own = held[n * spec.group + r]
                k.set(beyond, k.shuffle(own, 1, "down"))
                late = self._begin(group * spec.group + r) % spec.group
                whole[r] = pick_bytes(own, beyond, self._from(late))
            for c in range(spec.group):
                place = self.lane * spec.column + group + c * spec.pitch
                self.memory.put(place, self._column(whole, c))

    def _begin(self, row: Expr) -> Expr:
        """Where a row begins in x: of those outside, some other one is loaded and never used."""
        step = self.first + row - (self.spec.align - 1)
        step = self.let("step", maximum(minimum(step, self.most), lift(0)))
        if self.spec.q_digits == 1:
            return self.let("begin", self.read + step * self.q.reads[0])
        digits = self.let("digits", step - self.first + self.lead + (self.spec.align - 1))
        return self.let("begin", self.read + self.q.offset(digits, self.q.reads))

    def _from(self, late: Expr) -> Value:
        """What picks four bytes, so many elements after the first."""
        return from_index(late * (0x1111 * self.spec.bytes) + 0x3210, u32)

    def _column(self, rows: RegisterArray, c: int) -> Value:
        """Element c of each row, side by side."""
        if self.spec.group == 2:
            return pick_bytes(rows[0], rows[1], 0x7632 if c else 0x5410)
        pairs = [pick_bytes(rows[r], rows[r + 1], 0x7362 if c // 2 else 0x5140) for r in (0, 2)]
        return pick_bytes(pairs[0], pairs[1], 0x7632 if c % 2 else 0x5410)

    # -- out

    def _store(self) -> None:
        k, spec = self.k, self.spec
        self.along = k.let("along", k.thread % LANES)
        own = k.let("own", k.thread // LANES)
        self.got = k.register("got", u32)
        self.parts = k.registers("parts", WORDS[spec.bytes], spec.group)
        with k.loop("t", spec.lines) as t:
            line = self.let("line", own + t * (spec.threads // LANES))
            inside = minimum(line, self.width - 1)  # offsets outside may have too many bits
            begin = self.let("line_to", self.written + self.p.offset(inside, self.p.writes))
            late = self.let("late", begin & (spec.align - 1))
            follows = self.q.chunk - ((begin + self.q.chunk) & (spec.align - 1))
            stop = select(self.is_last, self.left, minimum(follows, self.left))
            stop = self.let("stop", select(line.lt(self.p.inside), stop, lift(-spec.align)))
            skipped = self.let("skipped", (spec.align - 1) - late)
            place = line // spec.group * spec.column + line % spec.group * spec.pitch
            place = self.let("place", place + skipped // spec.group)
            for g in range(spec.words):
                word = self.let("word", self.along + g * LANES)
                self._word(_Word(word, begin - late, late, stop, place + word, skipped))

    def _word(self, word: _Word) -> None:
        k, spec = self.k, self.spec
        u = self.let("u", word.number * spec.group - word.late)
        to = self.let("to_at", maximum(word.begin + word.number * spec.group, lift(0)))
        low, fits = u.ge(lift(0) - self.first), (to + spec.group).le(self.y_size)
        asked = (word.number * spec.group).lt(spec.q)
        whole = self.let("all", asked.and_(low).and_((u + spec.group).le(word.stop)).and_(fits))
        some = asked.and_((u + spec.group).gt(lift(0) - self.first)).and_(u.lt(word.stop))
        with k.when(some):
            at = minimum(word.place, lift(spec.slots - 2))
            low_word, high_word = self.memory.at(at), self.memory.at(at + 1)
            k.set(self.got, low_word)
            high = k.register(f"high{self.let.numbers['u']}", u32)
            k.set(high, high_word)
            picked = pick_bytes(self.got, high, self._from(word.skipped % spec.group))
            k.set(self.got, picked)
            for i in range(spec.group):
                self.parts[i] = cast(WORDS[spec.bytes], self.got >> (8 * spec.bytes * i))
            with k.when(whole.ne(0)):
                self.y.put(to, self.parts[0], width=spec.group, streaming=spec.streaming[1])
            with k.when(whole.eq(0)):
                for i in range(spec.group):
                    one = u + i
                    inside = one.ge(lift(0) - self.first).and_(one.lt(word.stop))
                    fits = (word.begin + word.number * spec.group + i).ge(0)
                    self.y.put(
                        to + i, self.parts[i],
                        when=inside.and_(fits).and_((to + i).lt(self.y_size)),
                    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a window: its number, where the window begins in y, how late the line begins in
    it, where it stops, and where the word begins in shared memory; rows before the window."""

    number: Expr
    begin: Expr
    late: Expr
    stop: Expr
    place: Expr
    skipped: Expr

