"""The numbers in the sentence about an implementation are those of its kernel, and of its run."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import Any

from bench.common.loopnest.running import implementations
from tests.sampled import rounds

import warploom
from warploom import LoopNest
from warploom.emit import emit
from warploom.index.ir import Const
from warploom.kernel.ir import Kernel, Registers, Shared, walk
from warploom.kernel.pool import pool_bytes
from warploom.loopnest.bound import Reason
from warploom.loopnest.decided import Implementation
from warploom.loopnest.kernels import KERNELS, matmul
from warploom.loopnest.lower import lower
from warploom.loopnest.schedule import LIMITS, bound_words, limit_words, nest_schedule
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import everything
from warploom.machine.record import H200
from warploom.pipeline.nest import Nest
from warploom.search.branching.fix import fixed

SIZES = (16, 16, 8)  # which tiles divide, so that all blocks are alike

TILES = (
    r"each block computes (\d+)×(\d+) elements? of C"
    r"(?:, (?:each of (\d+) threads|one thread) (one|all|\d+×\d+))?"
)
DECLARED = re.compile(r"^ *float \w+(?:\[(\d+)\])?(?: = [^;]+)?;$", re.MULTILINE)
PADDED = re.compile(
    r"(\w+) \(([\d×]+)(?: stored as ([\d×]+), rows of (\d+) padded to (\d+), (\d+) elements)?\)"
)


@cache
def space() -> NestSpace:
    return NestSpace(matmul(*SIZES, ((4, 2), (4, 2), (4,))), everything(H200))


@cache
def sample(count: int) -> list[tuple[Implementation, Kernel, str]]:
    made = list(implementations(space(), count, seed=28))
    assert len(made) > count // 2
    kernels = [lower(each) for each in made]
    return [(m, k, nest_schedule(m, k)) for m, k in zip(made, kernels, strict=True)]


def numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", text)]


def found(pattern: str, text: str) -> Any:
    match = re.search(pattern, text)
    assert match is not None, text
    return match


def test_launch_and_memory_are_the_kernels() -> None:
    for _, kernel, text in sample(rounds(12)):
        launch = found(r"^grid ([\d×]+), block ([\d×]+)( = (\d+))? threads?;", text)
        grid = [size.value for size in kernel.grid if isinstance(size, Const)]
        assert [*numbers(launch[1]), 1, 1][:3] == grid
        assert math.prod(numbers(launch[2])) == kernel.threads
        assert registers_said(text) == registers_declared(kernel)
        shared = pool_bytes([each for each in kernel.body if isinstance(each, Shared)])
        said = re.search(r"for values, (\d+) (KB|bytes) shared$", text)
        size = 0 if said is None else int(said[1]) * (1024 if said[2] == "KB" else 1)
        assert size == shared
        assert (size > 0) == ("through shared memory" in text)


def registers_said(text: str) -> int:
    return int(found(r"(\d+) registers? for values", text)[1])


def registers_declared(kernel: Kernel) -> int:
    """Those of the text, all of four bytes: what it drops is not there."""
    return sum(int(size or 1) for size in DECLARED.findall(emit(kernel, "cuda")))


def test_registers_of_an_asynchronous_copy_are_not_counted() -> None:
    """The text has none for what `cp.async` copies."""
    wanted = ["fill(A_1>sum_1.array)=COPY", "lowered(A_1>sum_1.array)=TRUE"]
    copied = fixed(space().propagator, wanted)
    dropped = 0
    for made in implementations(space(), 6, 7, tuple(copied)):
        kernel = lower(made)
        text = nest_schedule(made, kernel)
        # One copies ahead where a loop is around the copy; others have nothing to be ahead of.
        assert ("by cp.async" in text) == ("cp.async" in emit(kernel, "cuda"))
        assert registers_said(text) == registers_declared(kernel)
        words = sum(s.size or 1 for s in walk(kernel.body) if isinstance(s, Registers))
        dropped += words - registers_said(text)
    assert dropped > 0


def test_no_block_computes_more_than_there_is() -> None:
    """With tiles that do not divide an axis, a block has at most the axis, a thread at most it."""
    nest = LoopNest("doubled")
    i = nest.axis("n", 20, (8, 12), (3,), tail=True)
    x, z = nest.array("x", i), nest.array("z", i)
    z[i] = 2.0 * x[i]
    tailed = NestSpace(nest.done(), everything(H200))
    seen: Counter[str] = Counter()
    for made in implementations(tailed, rounds(24), seed=3):
        kernel = lower(made)
        text = nest_schedule(made, kernel)
        said = found(r"each block computes (up to )?(\d+) elements? of z", text)
        blocks = math.prod(size.value for size in kernel.grid if isinstance(size, Const))
        # Blocks that all have as much make it exactly; others would make more than there is.
        size, whole = int(said[2]), math.ceil(20 / blocks)
        assert size <= 20
        assert (size * blocks > 20) if said[1] else size == whole
        seen["partial" if said[1] else "whole"] += 1
        seen["capped"] += size == 20
    assert seen["partial"], seen
    assert seen["capped"], seen


def test_tiles_make_the_whole_result() -> None:
    """Blocks are as many as the tiles that they are said to make, and threads share these."""
    for _, kernel, text in sample(rounds(12)):
        said = found(TILES, text)
        blocks = math.prod(size.value for size in kernel.grid if isinstance(size, Const))
        whole = int(said[1]) * int(said[2])
        assert blocks * whole == SIZES[0] * SIZES[1]
        own = 1 if said[4] in ("one", None) else math.prod(numbers(said[4]))
        own = whole if said[4] == "all" else own
        threads = int(said[3] or 1)
        assert threads * own == whole
        assert threads <= kernel.threads
        held = next(s for s in walk(kernel.body) if isinstance(s, Registers) and s.name == "sum_1")
        if own > 1:
            at_once = re.search(r"(\w+) at a time", text)
            assert at_once or "all in registers" in text
            said_held = int(at_once[1].replace("one", "1")) if at_once else own
            assert said_held == (held.size or 1)


def test_what_is_staged_is_in_the_shared_arrays() -> None:
    seen: Counter[str] = Counter()
    for made, kernel, text in sample(rounds(12)):
        for part in text.split("; "):
            if "through shared memory" not in part:
                continue
            stages = re.search(r"(\d+) stages", part)
            for array, shape, stored, row, longer, count in PADDED.findall(part):
                arrays = [s for s in kernel.body if isinstance(s, Shared) and s.name[0] == array]
                assert len(arrays) == (int(stages[1]) if stages else 1)
                elements = math.prod(numbers(shape))
                if stored:
                    *outer, last = numbers(stored)
                    assert (math.prod(outer) * last, last) == (elements, int(row))
                    elements = math.prod(outer) * int(longer)
                    assert elements == int(count)
                    cuda = emit(kernel, "cuda")  # arrays that share their place are in a pool
                    assert f"[{count}]" in cuda or "pool + " in cuda
                    seen["padded"] += 1
                assert {s.size for s in arrays} == {elements}
                seen["staged" if stages else "plain"] += 1
        through = {array for array, *_ in PADDED.findall(text) if array in ("A", "B")}
        assert through == {each.name[0] for each in made.lowered if each.name[0] in "AB"}
        straight = re.search(r"([AB and]+) straight from global memory", text)
        direct = set() if straight is None else set(straight[1]) & {"A", "B"}
        assert direct == {"A", "B"} - through
    assert seen["plain"] + seen["staged"] >= 4
    assert seen["padded"]


def test_decisions_of_a_user_are_said() -> None:
    """An array that a user sends through shared memory is said to go there."""
    own = space()
    temporary = next(t for t in own.program.temporaries if t.name.startswith("A"))
    fixes = [f"lowered({temporary})=TRUE", f"stages({temporary})=2"]
    decisions = tuple(fixed(own.propagator, fixes))
    texts = [nest_schedule(each, lower(each)) for each in implementations(own, 2, 3, decisions)]
    assert texts
    assert all(re.search(r"A \([^)]+\)[^;]* through shared memory", text) for text in texts)


def test_every_limit_has_a_word() -> None:
    nest = Nest(matmul(*SIZES, ((4, 2), (4, 2), (4,))), H200.rates, everything(H200))
    assert {each.resource for each in nest.reasons()} <= LIMITS.keys()
    terms = [Reason(1.0, "dram", ""), Reason(2.0, "alu", "")]
    assert limit_words(terms) == "arithmetic (FMA)"


def test_a_bound_says_of_which_tiles_it_holds() -> None:
    nest = LoopNest("scaled")
    i, j = nest.axis("n", 64, (32, 64)), nest.axis("m", 8)
    x, y = nest.array("x", i, j), nest.array("y", i, j)
    y[i, j] = 2.0 * x[i, j]
    program = nest.done()
    least = "no implementation takes less than 1.5 µs"
    assert bound_words(program, 1500.0) == f"with the tile sizes given (none for m), {least}"
    decided = bound_words(program, 1500.0, fixed=True)
    assert decided == f"with the tile sizes given (none for m) and the decisions fixed, {least}"
    tiled = KERNELS["axpy"](n=256)
    assert bound_words(tiled, 1500.0) == f"with the tile sizes given, {least}"
    found = warploom.explore(nest, evaluations=1, model=True, space="paper")
    assert "with the tile sizes given (none for m), no implementation" in str(found)
