"""Conflicts of random register layouts with random shared ones: Gluon's `bank_conflicts` and ours.

`layout_oracles.py` runs it, in a process of its own. Gluon's number is how many wavefronts there
are for each that there must be, less one, without the pairs of lanes that a load merges. Where the
two differ, what Triton compiles is run on our emulator, whose count must be ours.
"""

from __future__ import annotations

import contextlib
import io
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.layout.formats.fragment_bases import from_bases
from warploom.layout.formats.triton import swizzled_shared
from warploom.layout.language.evaluate import values
from warploom.layout.patterns.access import Access, AccessKind, Problem
from warploom.layout.wavefronts.cost import Meter
from warploom.ptx import load

LANE_BITS, MOST_REGISTER_BITS, MOST_BYTES = 5, 5, 16
KINDS = {1: "int8", 2: "int16", 4: "int32"}
STORE_LOAD: tuple[AccessKind, ...] = ("st", "ld")
Numbers = npt.NDArray[np.int64]


def pairs(count: int) -> dict[str, Any]:
    """So many random pairs: equal, or a swizzle finer than a word, where the emulator decides."""
    found: dict[str, Any] = {"equal": 0, "with conflicts": 0, "finer than a word": []}
    for number in range(count):
        pair = Pair(np.random.default_rng([23, number]))
        theirs, ours = pair.theirs(), pair.conflicts()
        found["with conflicts"] += ours > 0
        if theirs == ours:
            found["equal"] += 1
            continue
        assert pair.finer, (pair, theirs, ours)
        counted, wanted = pair.emulated(), pair.excess()
        assert counted == wanted, (pair, counted, wanted)
        found["finer than a word"].append([theirs, float(ours), counted])
    return found


class Pair:
    """One register layout, whose bases are those of a tensor in any order, of one warp; and one
    SwizzledSharedLayout of that tensor."""

    def __init__(self, draw: np.random.Generator) -> None:
        self.size = int(draw.choice([1, 2, 4]))
        # Of fewer than 128 bytes Triton 3.9 ends the process.
        least = max(1, 7 - LANE_BITS - (self.size.bit_length() - 1))
        bits = LANE_BITS + int(draw.integers(least, MOST_REGISTER_BITS + 1))
        columns = int(draw.integers(2, bits))
        self.shape = 1 << bits - columns, 1 << columns
        order = draw.permutation(bits).tolist()
        if draw.random() < 0.5:  # as blocked layouts have it: a vector along a row first
            wide = int(draw.integers(0, min(columns, bits - LANE_BITS) + 1))
            order = [*range(wide), *(each for each in order if each >= wide)]
        bases = [self._base(1 << place) for place in order]
        self.bases = {"register": bases[:-LANE_BITS], "lane": bases[-LANE_BITS:]}
        vector = int(draw.integers(0, columns + 1))
        phases = int(draw.integers(0, columns - vector + 1))
        self.swizzle = 1 << vector, 1 << int(draw.integers(0, 3)), 1 << phases

    def __repr__(self) -> str:
        return f"{self.shape} of {self.size} bytes, {self.bases}, swizzled{self.swizzle}"

    def _base(self, element: int) -> list[int]:
        return [element // self.shape[1], element % self.shape[1]]

    @property
    def finer(self) -> bool:
        vector, _, phases = self.swizzle
        return vector * self.size < 4 and phases > 1

    # -- ours

    def addresses(self) -> Numbers:
        """Of every element by its row-major number."""
        rows = np.arange(self.shape[0] * self.shape[1])
        row, column = rows // self.shape[1], rows % self.shape[1]
        vector, per_phase, phases = self.swizzle
        by_rule = row * self.shape[1] + (column ^ vector * (row // per_phase % phases))
        layout = values(swizzled_shared(self.shape, *self.swizzle))  # the first coordinate fastest
        assert (layout.reshape(self.shape[::-1]).T.ravel() == by_rule).all()
        return by_rule

    def width(self, held: Numbers, ordered: bool) -> int:
        """Elements of a vector: every lane holds it in the same registers, and all else moves it as
        a whole. Triton's count leaves registers as they are; its code puts them in order first."""
        first, starts = held[0] ^ held[0, 0], held[:, 0] ^ held[0, 0]
        bits = range(len(self.bases["register"]))
        moves = set(first.tolist()) if ordered else {int(first[1 << bit]) for bit in bits}
        width = 1
        while width * 2 * self.size <= MOST_BYTES and width in moves:
            torn = any(move % (width * 2) for move in moves if move > width) and not ordered
            if torn or (starts % (width * 2)).any():
                break
            width *= 2
        return width

    def passes(self, kind: AccessKind, ordered: bool) -> Numbers:
        """Wavefronts of each group of lanes of each step."""
        places = self.addresses()
        held = places[from_bases(self.bases, self.shape).elements[0]]  # [lane, register]
        width = self.width(held, ordered)
        _, steps = np.unique((held[0] ^ held[0, 0]) // width, return_index=True)
        chunks = held[:, steps].T // width * width
        elements = np.argsort(places)[chunks[:, :, None] + np.arange(width)]
        problem = Problem("pair", self.shape, self.size, (Access("all", elements, kind),))
        return Meter(problem).passes(0, places)

    def conflicts(self) -> Fraction:
        """As Gluon counts them."""
        each = self.passes("st", ordered=False)
        return Fraction(int(each.sum()), len(each)) - 1

    def excess(self) -> int:
        """Of a store and a load of all."""
        return sum(int((self.passes(kind, ordered=True) - 1).sum()) for kind in STORE_LOAD)

    # -- theirs

    def _layouts(self) -> tuple[Any, Any, Any]:
        from triton.experimental.gluon import language as ttgl

        held = ttgl.DistributedLinearLayout(
            self.bases["register"], self.bases["lane"], [], [], list(self.shape)
        )
        return (
            getattr(ttgl, KINDS[self.size]),
            held,
            ttgl.SwizzledSharedLayout(*self.swizzle, [1, 0]),
        )

    def theirs(self) -> int:
        from triton._filecheck import run_parser
        from triton.backends.compiler import GPUTarget
        from triton.experimental import gluon
        from triton.experimental.gluon import language as ttgl

        @gluon.jit
        def asked(a: ttgl.constexpr, b: ttgl.constexpr):
            ttgl.static_print(ttgl.bank_conflicts(a, b))

        kind, held, shared = self._layouts()
        shape = list(self.shape)
        types = (
            ttgl.distributed_type(kind, shape, held),
            ttgl.shared_memory_descriptor_type(kind, shape, shared, shape),
        )
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run_parser(asked, args=types, kwargs={"num_warps": 1}, target=GPUTarget("cuda", 80, 32))
        return int(said.getvalue())

    def emulated(self) -> int:
        """Conflicts of a store and a load as Triton compiles them, on our emulator."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.experimental import gluon
        from triton.experimental.gluon import _runtime
        from triton.experimental.gluon import language as ttgl

        @gluon.jit
        def moved(x, y, m: ttgl.constexpr, n: ttgl.constexpr, a: ttgl.constexpr, b: ttgl.constexpr):
            row = ttgl.arange(0, m, layout=ttgl.SliceLayout(1, a))
            column = ttgl.arange(0, n, layout=ttgl.SliceLayout(0, a))
            at = row[:, None] * n + column[None, :]
            memory = ttgl.allocate_shared_memory(x.dtype.element_ty, [m, n], b)
            memory.store(ttgl.load(x + at))
            ttgl.store(y + at, memory.load(a))

        _, held, shared = self._layouts()
        names = dict.fromkeys("xy", f"*i{8 * self.size}") | dict.fromkeys("mnab", "constexpr")
        constants = {"m": self.shape[0], "n": self.shape[1], "a": held, "b": shared}
        source = _runtime.GluonASTSource(moved, signature=names, constexprs=constants)
        made = triton.compile(source, target=GPUTarget("cuda", 70, 32), options={"num_warps": 1})
        kind = {1: np.uint8, 2: np.uint16, 4: np.uint32}[self.size]
        x = np.arange(self.shape[0] * self.shape[1]).astype(kind)
        y = np.zeros_like(x)
        kernel = load(made.asm["ptx"]).kernel("moved")
        more = [0] * (len(kernel.function.parameters) - 2)
        ran = kernel.launch(
            1, 32, [x, y, *more], shared_bytes=int(made.metadata.shared), counters=True
        )
        assert (x == y).all()
        return int(ran.bank_conflicts)
