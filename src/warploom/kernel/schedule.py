"""A schedule in the words of an engineer: launch, who makes which results, memory, registers.

In come a kernel and what its maker knows of it (tiles, staged arrays, loops); out goes a sentence.
Grid, block, shared bytes and registers are those of the kernel itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warploom.index.show import show
from warploom.kernel.direct_copy import passed
from warploom.kernel.ir import Kernel, Registers, Shared, TensorProduct, walk
from warploom.kernel.pool import pool_bytes


@dataclass(frozen=True, slots=True)
class Staged:
    """An array that goes through shared memory: the part that is there at once, in how many
    stages, and how its rows lie. `stored` are its dimensions as they lie, neighbours last."""

    array: str
    shape: tuple[int | str, ...]
    stages: int = 1
    swizzled: bool = False
    padding: int = 0
    asynchronous: bool = False
    stored: tuple[int, ...] = ()

    @property
    def how(self) -> str:
        """What is said once of several arrays that are staged alike."""
        words = [f"{self.stages} stages"] if self.stages > 1 else []
        words += ["swizzled"] if self.swizzled else []
        return ", ".join(words + (["by cp.async"] if self.asynchronous else []))


def schedule_text(kernel: Kernel, made: Iterable[str], staged: Sequence[Staged] = ()) -> str:
    """The sentence: the launch, what `made` says, what is staged, what memory it takes."""
    parts = [launch_words(kernel), *made, *_staged_words(staged), *_tensor_words(kernel)]
    return "; ".join([*parts, memory_words(kernel)])


def launch_words(kernel: Kernel) -> str:
    """`grid 8×8, block 16×16 = 256 threads`"""
    grid = by_words([show(size) for size in kernel.grid])
    sides = by_words([str(size) for size in kernel.block])
    total = f" = {kernel.threads}" if "×" in sides else ""
    return f"grid {grid}, block {sides}{total} thread{'' if kernel.threads == 1 else 's'}"


def memory_words(kernel: Kernel) -> str:
    """`96 registers for values, 16 KB shared`"""
    count = value_registers(kernel)
    shared = pool_bytes([each for each in kernel.body if isinstance(each, Shared)])
    size = f"{bytes_words(shared)} shared" if shared else "no shared memory"
    return f"{count} register{'' if count == 1 else 's'} for values, {size}"


def value_registers(kernel: Kernel) -> int:
    """The words of all register arrays that a thread has; addresses and counters come on top.
    An asynchronous copy has none of its own."""
    direct = passed(kernel)
    declared = [s for s in walk(kernel.body) if isinstance(s, Registers) and s.name not in direct]
    return sum(-(-each.dtype.bytes // 4) * (each.size or 1) for each in declared)


def bytes_words(count: int) -> str:
    """
    >>> bytes_words(16384), bytes_words(160)
    ('16 KB', '160 bytes')
    """
    return f"{count // 1024} KB" if count and count % 1024 == 0 else f"{count} bytes"


def by_words(sizes: Sequence[str] | Sequence[int]) -> str:
    """
    >>> by_words([8, 8, 1]), by_words(["1", "1"])
    ('8×8', '1')
    """
    kept = [str(size) for size in sizes]
    while len(kept) > 1 and kept[-1] == "1":
        kept.pop()
    return "×".join(f"({each})" if " " in each and len(kept) > 1 else each for each in kept)


def and_words(names: Iterable[str]) -> str:
    """
    >>> and_words(["A", "B", "C"])
    'A, B and C'
    """
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} and {last}" if first else last


def _staged_words(staged: Sequence[Staged]) -> list[str]:
    by: dict[str, list[Staged]] = {}
    for each in staged:
        by.setdefault(each.how, []).append(each)
    return [
        f"{and_words(_part_words(each) for each in alike)} through shared memory"
        + (f", {how}" if how else "")
        for how, alike in by.items()
    ]


def _part_words(each: Staged) -> str:
    padded = f" {_padded_words(each)}" if each.padding else ""
    return f"{each.array} ({'×'.join(map(str, each.shape))}{padded})" if each.shape else each.array


def _padded_words(each: Staged) -> str:
    """Rows are those of the storage, which need not be those of the array."""
    *outer, row = each.stored
    sides = "×".join(map(str, [size for size in outer if size > 1] + [row]))
    longer = row + each.padding
    words = f"rows of {row} padded to {longer}, {math.prod(outer) * longer} elements"
    return f"stored as {sides}, {words}"


def _tensor_words(kernel: Kernel) -> list[str]:
    kinds = {each.kind for each in walk(kernel.body) if isinstance(each, TensorProduct)}
    return [f"on tensor cores ({and_words(sorted(kinds))})"] if kinds else []


def tile_words(
    array: str,
    whole: Sequence[int],
    threads: int,
    own: Sequence[int],
    held: int,
    partial: tuple[bool, bool] = (False, False),
) -> str:
    """Who makes what: a block `whole` of an array, each of its threads `own`, `held` at a time.
    `partial`: whether some blocks, and some threads, have less than that.

    >>> tile_words("z", [4], 1, [4], 1)
    'each block computes 4 elements of z, one thread all of them, one at a time'
    >>> tile_words("C", [96, 2], 12, [9, 2], 18, (False, True))
    'each block computes 96×2 elements of C, each of 12 threads up to 9×2, all in registers'
    """
    count, share = math.prod(whole), math.prod(own)
    most = ["up to " if less else "" for less in partial]
    noun = "element" if count == 1 else "elements"
    block = f"each block computes {most[0]}{'×'.join(map(str, whole))} {noun} of {array}"
    if share == 1:
        return f"{block}, each of {threads} threads {most[1]}one" if threads > 1 else block
    at_once = "all in registers" if held >= share else f"{'one' if held == 1 else held} at a time"
    if threads == 1:
        return f"{block}, one thread all of them, {at_once}"
    return f"{block}, each of {threads} threads {most[1]}{'×'.join(map(str, own))}, {at_once}"
