"""Random small kernels: with shuffles and without they must leave the same bytes in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from warploom.ptx.shuffle import Launch, check, rewrite

WORDS = 1 << 17
MIDDLE = 4 * WORDS // 2
SHAPES = (
    ((2, 1, 1), (64, 1, 1)), ((1, 1, 1), (48, 1, 1)), ((1, 2, 1), (16, 8, 1)),
    ((1, 1, 1), (33, 2, 1)), ((1, 1, 1), (7, 3, 4)), ((1, 1, 1), (40, 1, 1)),
)  # fmt: skip
HEAD = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 OUT, .param .u32 N)
{{
    .reg .pred %p<400>; .reg .b16 %h<400>; .reg .b32 %r<900>; .reg .b64 %rd<900>;
    .shared .align 16 .b8 pool[8192];
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [OUT]; ld.param.u32 %r4, [N];
    add.s64 %rd1, %rd1, {MIDDLE}; add.s64 %rd2, %rd2, {MIDDLE};
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r5, 1;
"""


@dataclass
class Writer:
    """The text so far; `indices` and `places` hold what later statements may use."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list)
    indices: list[tuple[str, int]] = field(default_factory=list)  # register, largest magnitude
    places: list[tuple[str, str, int]] = field(default_factory=list)  # address, array, alignment
    next: int = 10
    budget: int = 14
    left: bool = False  # some lane may have left the kernel

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def new(self, bank: str) -> str:
        self.next += 1
        return f"%{bank}{self.next}"

    def put(self, line: str) -> None:
        self.lines.append("    " + line)

    def index(self) -> tuple[str, int]:
        return self.indices[self.number(0, len(self.indices) - 1)]

    def add_index(self) -> None:
        a, high = self.index()
        b, other = self.index()
        small = self.number(-5, 5)
        r, h = self.new("r"), self.new("h")
        choices = {
            "const": (f"add.s32 {r}, {a}, {small};", high + 5),
            "sum": (f"add.s32 {r}, {a}, {b};", high + other),
            "difference": (f"sub.s32 {r}, {a}, {b};", high + other),
            "scale": (f"mul.lo.s32 {r}, {a}, {abs(small) + 1};", 6 * high),
            "mad": (f"mad.lo.s32 {r}, {a}, {small}, {b};", 5 * high + other),
            "shl": (f"shl.b32 {r}, {a}, 1;", 2 * high),
            "or": (f"shl.b32 {r}, {a}, 2; or.b32 {r}, {r}, {abs(small)};", 4 * high + 8),
            "and": (f"and.b32 {r}, {a}, {2 ** (abs(small) + 1) - 1};", 63),
            "xor": (f"and.b32 {r}, {a}, 255; xor.b32 {r}, {r}, {abs(small)};", 255),
            "shr": (f"shr.s32 {r}, {a}, 1;", high + 1),
            "bfe": (f"bfe.u32 {r}, {a}, 1, 5;", 31),
            "popc": (f"popc.b32 {r}, {a};", 32),
            "lane": (f"mov.u32 {r}, %laneid;", 31),
            "min": (f"min.s32 {r}, {a}, {small + 20};", high + 25),
            "narrow": (
                f"cvt.u16.u32 {h}, {a}; mul.lo.s16 {h}, {h}, {367 * abs(small) + 1}; "
                f"cvt.{self.pick('u', 's')}32.{self.pick('u', 's')}16 {r}, {h};",
                40000,
            ),
        }
        line, bound = choices[self.pick(*choices)]
        if "32.s16" in line or "32.u16" in line:
            line += f" shr.s32 {r}, {r}, 2;"
            bound = 16384
        if bound <= 20000:
            self.put(line)
            self.indices.append((r, bound))

    def add_place(self) -> None:
        r, _ = self.index()
        array = self.pick("A", "A", "B", "shared")
        if array == "shared":
            s = self.new("r")
            self.put(f"and.b32 {s}, {r}, 1023; shl.b32 {s}, {s}, 2; add.s32 {s}, {s}, pool;")
            self.put(f"and.b32 {s}, {s}, -8;" if self.number(0, 1) else "")
            self.places.append((s, array, 4))
            return
        rd = self.new("rd")
        size = int(self.pick("4", "4", "4", "8", "2"))
        how = self.pick("wide", "wide", "cvt", "mad")
        base = "%rd1" if array == "A" else "%rd2"
        if how == "wide":
            self.put(f"mul.wide.s32 {rd}, {r}, {size}; add.s64 {rd}, {rd}, {base};")
        elif how == "mad":
            self.put(f"mad.wide.s32 {rd}, {r}, {size}, {base};")
        else:
            self.put(f"cvt.s64.s32 {rd}, {r}; mul.lo.s64 {rd}, {rd}, {size};")
            self.put(f"add.s64 {rd}, {rd}, {base};")
        self.places.append((rd, array, size))

    def load(self) -> None:
        """One to four loads around one place, most of them of one kind."""
        place = self.places[self.number(0, len(self.places) - 1)]
        usual = {2: "u16", 4: "u32", 8: "u64"}[place[2]]
        for _ in range(self.number(1, 4)):
            self.load_from(place, self.pick(usual, usual, usual, usual, "u16", "s8"))

    def load_from(self, place: tuple[str, str, int], kind: str) -> None:
        base, array, _ = place
        size = int(kind[1:]) // 8
        offset = size * self.number(-3, 6)
        if array == "shared":
            offset = size * self.number(0, 3)
            name = f"ld.shared.{kind}"
        else:
            name = f"ld.global{'.nc' if array == 'A' and self.number(0, 5) else ''}.{kind}"
        guard = f"@%p{self.number(1, 3)} " if self.number(0, 14) == 0 else ""
        value = self.new("rd") if kind == "u64" else self.new("r")
        self.put(f"mov.b{64 if kind == 'u64' else 32} {value}, 0;" if guard else "")
        self.put(f"{guard}{name} {value}, [{base}+{offset}];")
        if kind == "u64":
            narrow = self.new("r")
            self.put(f"shr.u64 {value}, {value}, 7; cvt.u32.u64 {narrow}, {value};")
            value = narrow
        self.put(f"mad.lo.s32 %r5, %r5, 31, {value};")
        if self.number(0, 7) == 0:
            r = self.new("r")
            self.put(f"and.b32 {r}, {value}, 127;")
            self.indices.append((r, 127))

    def store(self) -> None:
        places = [p for p in self.places if p[1] != "A"]
        if places:
            base, array, align = places[self.number(0, len(places) - 1)]
            kind = "u32" if align >= 4 else "u16"
            space = "shared" if array == "shared" else "global"
            value = "%r5"
            if kind == "u16":
                value = self.new("h")
                self.put(f"cvt.u16.u32 {value}, %r5;")
            self.put(f"st.{space}.{kind} [{base}], {value};")

    def other(self) -> None:
        kind = self.pick("red", "fence", "barrier", "overwrite", "predicated", "leave")
        name, bound = self.index()
        if kind == "fence":
            self.put("membar.gl;")
        elif kind == "barrier" and not self.left:
            self.put("bar.sync 0;")
        elif kind == "red":
            self.put("red.global.add.u32 [%rd2], 1;")
        elif kind == "leave" and self.number(0, 2) == 0:
            self.left = True
            p = self.condition()
            self.put(f"@{p} {self.pick('ret', 'exit')};")
        elif bound < 4000 and name not in ("%r1", "%r2", "%r3", "%r4"):
            guard = f"@{self.condition()} " if kind == "predicated" else ""
            self.put(f"{guard}add.s32 {name}, {name}, {self.number(-3, 3)};")

    def condition(self) -> str:
        p = self.new("p")
        a, _ = self.index()
        b = self.pick("%r4", "20", "3", "40", "-1")
        self.put(f"setp.{self.pick('lt', 'ge', 'eq', 'ne', 'gt')}.s32 {p}, {a}, {b};")
        return p

    def block(self, depth: int) -> None:
        for _ in range(self.number(1, 5)):
            if self.budget <= 0:
                return
            self.budget -= 1
            kind = self.pick("load", "load", "load", "load", "index", "place", "store", "other",
                             "if", "loop")  # fmt: skip
            match kind:
                case "load":
                    self.load()
                case "index":
                    self.add_index()
                case "place":
                    self.add_place()
                case "store":
                    self.store()
                case "other" if depth == 0:
                    self.other()
                case "if" if depth < 2:
                    self.branch(depth)
                case "loop" if depth < 2:
                    self.loop(depth)

    def scoped(self, depth: int) -> None:
        """What a branch defines is not used outside it."""
        kept = list(self.indices), list(self.places)
        self.block(depth + 1)
        self.indices, self.places = kept

    def branch(self, depth: int) -> None:
        self.next += 1
        label = self.next
        p = self.condition()
        self.put(f"@{p} bra ELSE{label};")
        self.scoped(depth)
        if self.number(0, 1):
            self.put(f"bra JOIN{label};")
            self.put(f"ELSE{label}:")
            self.scoped(depth)
            self.put(f"JOIN{label}:")
        else:
            self.put(f"ELSE{label}:")

    def loop(self, depth: int) -> None:
        self.next += 1
        label = self.next
        count, p = self.new("r"), self.new("p")
        trips = self.pick("2", "3", "2", "lane")
        limit = trips
        if trips == "lane":
            limit = self.new("r")
            self.put(f"and.b32 {limit}, {self.index()[0]}, 3;")
        base, bound = self.index()
        moving = self.new("r")
        self.put(f"mov.u32 {count}, 0; mov.u32 {moving}, {base};")
        self.put(f"LOOP{label}:")
        kept = list(self.indices), list(self.places)
        self.indices.append((moving, bound + 600))
        self.add_place_of(moving, bound + 600)
        self.block(depth + 1)
        self.indices, self.places = kept
        step = self.pick("1", "7", "33", "%r4", "-2", "%r1")
        self.put(f"add.s32 {moving}, {moving}, {step}; add.s32 {count}, {count}, 1;")
        if self.number(0, 3) == 0:  # continue, for some lanes
            q = self.condition()
            more = self.new("p")
            self.put(f"setp.lt.s32 {more}, {count}, {limit}; and.pred {q}, {q}, {more};")
            self.put(f"@{q} bra LOOP{label};")
            self.load()
        self.put(f"setp.lt.s32 {p}, {count}, {limit}; @{p} bra LOOP{label};")

    def add_place_of(self, register: str, bound: int) -> None:
        kept = self.indices
        self.indices = [(register, bound)]
        self.add_place()
        self.indices = kept


@st.composite
def kernels(draw: st.DrawFn) -> str:
    w = Writer(draw)
    w.indices = [("%r1", 63), ("%r1", 63), ("%r2", 8), ("%r3", 2), ("%r4", 9)]
    for number in (1, 2, 3):
        w.put(f"setp.lt.s32 %p{number}, %r1, {number * 11};")
    for number in range(800, 812):  # shared memory starts as something
        w.put(f"mov.u32 %r{number}, pool;" if number == 800 else "")
    w.lines = [line for line in w.lines if line.strip()]
    w.add_index()
    w.add_place()
    w.add_place()
    w.load()
    w.block(0)
    w.block(0)
    w.put("mov.u32 %r880, %ntid.x; mov.u32 %r881, %ntid.y; mov.u32 %r882, %tid.z;")
    w.put("mad.lo.s32 %r883, %r882, %r881, %r2; mad.lo.s32 %r883, %r883, %r880, %r1;")
    w.put("mov.u32 %r884, %ctaid.y; mad.lo.s32 %r885, %r884, 2, %r3;")
    w.put("mad.lo.s32 %r883, %r885, 1024, %r883;")
    w.put("mul.wide.s32 %rd890, %r883, 4; add.s64 %rd890, %rd890, %rd3;")
    w.put("st.global.u32 [%rd890], %r5; ret;")
    return HEAD + "\n".join(w.lines) + "\n}\n"


RNG = np.random.default_rng(7)
DATA = RNG.integers(-(2**31), 2**31, WORDS, dtype=np.int64).astype(np.int32)
OTHER = RNG.integers(-(2**31), 2**31, WORDS, dtype=np.int64).astype(np.int32)


LOUD = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def run_one(text: str, shape: int) -> tuple[int, int]:
    """Shuffles put in, and launches that could not be compared."""
    result = rewrite(text, "fuzz.ptx", select="all")
    (report,) = result.kernels
    if result.text == text:
        return report.shuffles, 0
    out = np.zeros(8192, np.int32)
    picked = [SHAPES[shape % len(SHAPES)], SHAPES[(shape + 1) % len(SHAPES)]]
    runs = [Launch(grid, block, (DATA, OTHER, out, 5)) for grid, block in picked]
    compared = check(text, result.text, launches={"k": runs})
    assert compared.mismatch is None, f"{compared.mismatch}\n{result.text}"
    return report.shuffles, compared.skipped


def fuzz(examples: int, start: int) -> None:
    seen: list[tuple[int, int]] = []

    @seed(start)
    @settings(max_examples=examples, deadline=None, suppress_health_check=LOUD)
    @given(kernels(), st.integers(0, len(SHAPES) - 1))
    def each(text: str, shape: int) -> None:
        seen.append(run_one(text, shape))

    each()
    assert len(seen) >= examples
    assert sum(shuffles for shuffles, _ in seen) > examples // 2, "too dull to be worth running"
    assert sum(skipped for _, skipped in seen) < examples // 20


# All of them in the acceptance run; a few of them in every run.
@pytest.mark.slow
@pytest.mark.parametrize("start", range(10))
def test_two_thousand_random_kernels_compute_the_same(start: int) -> None:
    fuzz(200, start)


def test_some_random_kernels_compute_the_same() -> None:
    fuzz(30, 0)
