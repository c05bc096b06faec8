"""Implementations of a loop nest drawn in processes of their own: lowered, written, compiled.

In come a nest (as it is made) and what is known so far: the best time, or an implementation to stay
near. Out go implementations ready to be launched, each with its bound and with all its decisions.
"""

from __future__ import annotations

import hashlib
import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.emit.cuda import cuda
from warploom.emit.spell import function_name
from warploom.errors import CheckError, InternalError, WarploomError
from warploom.index.ir import Const
from warploom.kernel.ir import Kernel
from warploom.pipeline.nest import Nest
from warploom.pipeline.spaces import nest_by
from warploom.runtime.compile import arch_of, compile_cuda
from warploom.runtime.quick import Launched, MapOf
from warploom.search.branching.candidate import Bits, Candidates, Index, Numbers
from warploom.search.branching.descent import Descents, descended, seeds
from warploom.search.engine import Watch
from warploom.search.workers.farm import shared

UNCHOSEN = 4  # of so many pieces of work one takes whatever comes


@dataclass(frozen=True, slots=True)
class Made:
    """An implementation, ready to be launched. `leaf` are its decisions (`packed`); `between` are
    arrays that its kernels have for themselves, with their types and sizes."""

    leaf: bytes
    bound: float
    launches: tuple[Launched, ...]
    key: str  # of its text
    between: tuple[tuple[str, str, int], ...] = ()

    @property
    def name(self) -> str:
        return self.launches[0].name


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one piece of work gave: `reached` descents ended well, `failed` had no kernel."""

    made: list[Made]
    reached: int
    failed: int
    built: float  # seconds that the space took, the first time
    least: float  # the bound of the whole space


@dataclass(frozen=True, slots=True)
class Asked:
    """A piece of work: so many descents by a seed, to where the bound is below `cut`; near the
    implementation `near`, or that one itself with `count` 0."""

    count: int
    seed: tuple[int, ...]
    cut: float = math.inf
    near: bytes | None = None


# -- decisions as bytes ----------------------------------------------------------------------------


def packed(candidates: Candidates, row: int) -> bytes:
    """The value of every choice of a decided candidate. It is read by the same space only."""
    _, bit = np.frexp(candidates.domains[row].astype(np.float64))
    return zlib.compress((bit - 1).astype(np.uint8).tobytes(), 9)


def unpacked(nest: Nest, leaf: bytes, again: tuple[str, ...] = ()) -> Candidates:
    """The candidate, without the decisions of some choices; none if the space has no such."""
    propagator = nest.space.propagator
    values = np.frombuffer(zlib.decompress(leaf), np.uint8)
    if len(values) != nest.root.domains.shape[1]:
        raise CheckError("the kept implementation is none of this space")
    position = _positions(nest, again)
    bits: Bits = np.uint64(1) << values[position].astype(np.uint64)
    here = nest.root.take(np.zeros(1, np.int64))
    alive = propagator.restrict(here, np.zeros(len(position), np.int64), position, bits)
    return here.take(alive)


def _positions(nest: Nest, again: tuple[str, ...]) -> Index:
    """Where decisions lie that were not left open; what follows from others is left to them."""
    columns = [
        np.arange(span.start, span.stop)
        for choice in nest.space.space.choices
        if choice.name not in again and not choice.derived
        for span in (nest.space.propagator.columns(choice),)
    ]
    return np.concatenate([np.zeros(0, np.int64), *columns])


# -- over there ------------------------------------------------------------------------------------

_nests: dict[str, Nest] = {}  # of this process
_seen: dict[str, set[str]] = {}  # texts that it has compiled


def drawn(recipe: Any, digest: str, arch: str, asked: Asked) -> Drawn:
    """Run in a process of its own, which keeps the spaces that it has made."""
    since = time.monotonic()
    if digest not in _nests:
        _nests[digest] = nest_by(shared(recipe))
    nest, built = _nests[digest], time.monotonic() - since
    found = leaves_of(nest, asked)
    made, failed = [], 0
    for row in np.flatnonzero(found.arrived):
        try:
            each = made_of(nest, found.leaves, int(row), arch, _seen.setdefault(digest, set()))
        except InternalError:
            raise
        except WarploomError:
            failed += 1
            continue
        made += [each] if each is not None else []
    least = nest.least() if nest.is_possible else math.inf
    return Drawn(made, int(np.count_nonzero(found.arrived)), failed, built, least)


def leaves_of(nest: Nest, asked: Asked) -> Descents:
    """Where the descents of a piece of work end."""
    random = np.random.default_rng(asked.seed)
    here = nest.root
    if asked.near is not None:
        again = nest.reopened(random) if asked.count else ()
        here = unpacked(nest, asked.near, again)
    draws = nest.draws if asked.near is None and asked.seed[-1] % UNCHOSEN else 1
    here = here.take(np.zeros(max(1, asked.count * draws) if len(here) else 0, np.int64))

    def weigh(candidates: Candidates) -> Numbers:
        bounds = nest.bound(candidates)
        if math.isinf(asked.cut):
            return 1 / (bounds + 1)
        return np.maximum(asked.cut - bounds, 0.0)

    found = descended(nest.problem, here, seeds(len(here), random), weigh, Watch())
    return found if draws == 1 else _likely(nest, found, asked.count)


def _likely(nest: Nest, found: Descents, count: int) -> Descents:
    """So many that arrived, those of the shortest predicted times, each once."""
    times: dict[bytes, tuple[float, int]] = {}
    for row in map(int, np.flatnonzero(found.arrived)):
        key = packed(found.leaves, row)
        if key not in times:
            leaf = found.leaves.take(slice(row, row + 1))
            times[key] = (nest.predicted_time(leaf), row)
    kept = [row for _, row in sorted(times.values())[:count]]
    return replace(found, arrived=np.isin(np.arange(len(found.arrived)), kept))


def made_of(nest: Nest, leaves: Candidates, row: int, arch: str, seen: set[str]) -> Made | None:
    """A decided candidate, compiled; None where its text was `seen` before."""
    leaf = leaves.take(slice(row, row + 1))
    kernels = nest.lowered(leaf)
    texts = [cuda(each) for each in kernels]
    key = hashlib.sha256("".join(texts).encode()).hexdigest()[:32]
    if key in seen:
        return None
    seen.add(key)
    launches = tuple(_launched(kernel, text, arch)
                     for kernel, text in zip(kernels, texts, strict=True))  # fmt: skip
    known = {each.name for each in nest.whole.arrays}
    between = {array.name: (array.name, str(array.dtype.numpy), array.size.value)
               for kernel in kernels for array in kernel.arrays
               if array.name not in known and isinstance(array.size, Const)}  # fmt: skip
    return Made(packed(leaf, 0), nest.least_of(leaf), launches, key, tuple(between.values()))


def _launched(kernel: Kernel, text: str, arch: str) -> Launched:
    code = compile_cuda(text, arch_of(kernel, arch), kind="cubin", contract=False).code
    grid = [each.value for each in kernel.grid if isinstance(each, Const)]
    names = tuple(each.name for each in kernel.params)
    arrays = {each.name: each for each in kernel.arrays}
    maps = []
    for each in kernel.maps:
        array = arrays[each.array]
        assert isinstance(array.size, Const)
        maps.append(MapOf(each, array.dtype, array.size.value))
    sides = grid[0], grid[1], grid[2]
    return Launched(function_name(kernel, "cuda"), sides, kernel.launched, code, names, tuple(maps))


def made_again(nest: Nest, record: Mapping[str, Any]) -> Candidates:
    """The decided candidate of a kept row."""
    found = unpacked(nest, bytes.fromhex(record["leaf"]))
    if not len(found) or nest.space.branch(found)[0] >= 0:
        raise CheckError("the kept implementation is none of this space")
    return found
