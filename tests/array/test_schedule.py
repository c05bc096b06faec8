"""The sentence about a mapping has the numbers of its kernels and the places of its loops."""

from __future__ import annotations

import math
import re
from functools import cache
from random import Random

from tests.array.mapped import random_candidate
from tests.array.test_lower import RECIPES

from warploom.array.code.program import Compiled, compile_candidate
from warploom.array.code.schedule import mapping_schedules
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, LOCAL, SEQUENTIAL
from warploom.array.plan.plan import plan
from warploom.emit.parts import used_variables
from warploom.index.show import show
from warploom.kernel.ir import Let, Load, Registers, Shared, Store, walk
from warploom.kernel.pool import pool_bytes


@cache
def candidates(count: int) -> list[Compiled]:
    random = Random(28)
    found = []
    for name in ("stencil",):
        make, sizes, _ = RECIPES[name]
        made = plan(make())
        drawn = [random_candidate(made, random, **sizes) for _ in range(count)]
        found += [compile_candidate(made, each) for each in drawn]
    return found


def test_launch_and_memory_are_the_kernels() -> None:
    for compiled in candidates(4):
        for kernel, text in zip(compiled.kernels, mapping_schedules(compiled), strict=True):
            launch = re.match(r"grid (.+), block ([\d×]+)(?: = (\d+))? threads?; ", text)
            assert launch is not None, text
            sides = [int(each) for each in launch[2].split("×")]
            assert math.prod(sides) == int(launch[3] or sides[0]) == kernel.threads
            grid = [*launch[1].split("×"), "1", "1"][:3]
            assert [each.strip("()") for each in grid] == [show(size) for size in kernel.grid]
            words = [each for each in walk(kernel.body) if isinstance(each, Registers)]
            assert f"{sum(each.size or 1 for each in words)} register" in text
            shared = [each for each in kernel.body if isinstance(each, Shared)]
            assert ("no shared memory" in text) == (not shared)
            assert not shared or f"{pool_bytes(shared)} bytes shared" in text or "KB shared" in text


def test_loops_are_where_they_run() -> None:
    """Words for blocks, threads and loops stand there only if some map runs so."""
    seen = set()
    for compiled in candidates(4):
        for spread, text in zip(compiled.spreads, mapping_schedules(compiled), strict=True):
            used = set(spread.runs.values())
            for word, runs in {
                r"over blockIdx\.[xyz](?! ×)": GROUP,
                r"over threadIdx": LOCAL,
                r"over blockIdx\.[xyz] × threadIdx": GLOBAL,
                "in each thread": (SEQUENTIAL, FUSED),
            }.items():
                if re.search(word, text):
                    assert used & set(runs)
                    seen.add(word)
            for at, run in enumerate(GROUP):
                assert run in used or not re.search(rf"over blockIdx\.{'xyz'[at]}(?! ×)", text)
    assert len(seen) >= 3


def test_vectors_are_as_wide_as_in_the_text() -> None:
    """Loops that vectors run are said by how wide accesses are; no counter is there for nothing."""
    for compiled in candidates(4):
        for kernel, text in zip(compiled.kernels, mapping_schedules(compiled), strict=True):
            wide = {s.width for s in walk(kernel.body) if isinstance(s, Load | Store)}
            for said in re.findall(r"loops? of [^;]* in vectors of ([^;]*);", text):
                assert {int(each) for each in re.findall(r"\d+", said)} == wide - {1}
            assert "vector lanes" not in text
            alone = [s for s in walk(kernel.body) if isinstance(s, Let)]
            assert {each.name for each in alone} <= used_variables(kernel)
