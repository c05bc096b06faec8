"""What candidates do, counted for a whole batch before any of them is lowered: the work that the
time model asks for.

An access is looked at as the first warp does it, address by address: its sectors, lines and banks.
Loops say how often it comes, and what of an array a block and the grid touch. Lowering knows more
(`kernel/work.py` counts a kernel), so the most promising are lowered and compared again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.array.code.storage import indices_of, parts_of
from warploom.array.joint.measure import CODE, Batch, Columns, Ints, Runs, StageMeasure
from warploom.array.language.ir import Param
from warploom.array.mapping.constraint import (
    BY_THREAD,
    FUSED,
    GLOBAL,
    GROUP,
    LANE,
    LOCAL,
    VECTOR,
    WARP,
)
from warploom.array.plan.loops import Buffer, Loop, Node, Site, Write, reads_of
from warploom.array.plan.view import Path
from warploom.array.types import Array, Tuple, Type, Vector, dtype_of
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, variables
from warploom.kernel.compiled import IN_FLIGHT
from warploom.kernel.ir import Cast, Choose, Operation, walk_value
from warploom.kernel.work import AT_ONCE, ITERATIONS, SPECIAL
from warploom.machine.record import Machine, timed
from warploom.machine.times import predicted
from warploom.machine.work import Work
from warploom.schedule.lower import UNROLLED

Mask = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
STATEMENT = 2  # statements that a write becomes, about
WIDEST = 4  # numbers of one access


def counted(batch: Batch, stages: Sequence[StageMeasure], machine: Machine) -> list[Work]:
    """What each kernel of each candidate does."""
    return [
        _Count(stage, batch.sizes, batch.runs[at], batch.groups[at], machine).work()
        for at, stage in enumerate(stages)
    ]


def predicted_times(batch: Batch, stages: Sequence[StageMeasure], machine: Machine) -> Reals:
    """Nanoseconds that all kernels of each candidate take, one after another."""
    own, total = timed(machine), np.zeros(batch.count)
    for work in counted(batch, stages, machine):
        total = total + predicted(work, own).nanoseconds
    return total


@dataclass(frozen=True, slots=True)
class _Turn:
    """A loop of `size`: `own` iterations of one thread, of which a block takes `beside` each other;
    the one that each lane of the first warp begins with; how wide an access is that takes several;
    whether it stays a loop."""

    loop: Loop
    own: Ints
    beside: Ints
    size: Ints
    first: Ints
    wide: Ints
    stays: Mask

    def inside(self, own: Ints) -> Ints:
        """Iterations of a block, of which each thread takes so many."""
        found: Ints = np.minimum(self.size, self.beside * own)
        return found


@dataclass(slots=True)
class _Around:
    """Loops that are fused: iterations of all of them that a block takes, where lanes begin, and
    whether other threads take others."""

    reach: Ints
    first: Ints
    parallel: Mask


class _Count:
    def __init__(
        self, stage: StageMeasure, sizes: Columns, runs: Runs, group: Ints, machine: Machine
    ) -> None:
        self.stage, self.runs, self.group, self.machine = stage, runs, group, machine
        self.count = len(group)
        self.sizes = {
            name: np.broadcast_to(np.asarray(each), (self.count,)) for name, each in sizes.items()
        }
        self.threads = group.prod(1)
        self.warps = -(-self.threads // machine.lanes)
        lane = np.arange(machine.lanes)
        self.lane = lane < self.threads[:, None]
        x, y = group[:, :1], group[:, 1:2]
        self.along = (lane % x, lane // x % y, lane // (x * y))
        self.of: dict[str, Any] = defaultdict(lambda: np.zeros(self.count))
        self.spaces = {each.memory: each for each in stage.plan.buffers}
        self.blocks = self._blocks()
        self.turns: dict[str, _Turn] = {}
        self._enter(stage.body, None)
        self.waited: dict[str, Mask] = {}
        # Of an array, loaded or stored: sectors of a block, of all, and lines that L2 is asked for.
        self.touched: dict[Any, tuple[Any, Any, Any]] = {}

    def work(self) -> Work:
        for site in self.stage.sites:
            self._site(site, [self.turns[each.counter] for each in site.loops])
        for local in self.stage.local:
            self._barriers(local)
        self._iterations(self.stage.body, np.ones(self.count))
        self._add("global_rounds", self.waited.get("", 0))
        for (*_, load), (own, every, asked) in self.touched.items():
            common = load & (self.blocks > 1) & (every <= own)
            self._add("common", own * common)
            own, asked = own * ~common, asked * ~common
            self._add("sectors", own)
            self._add("touched", every * self.machine.sector_bytes)
            self._add("fetched", own * self.blocks * self.machine.sector_bytes)
            self._add("asked", asked * self.blocks)
        placed = self.runs, self.group
        return Work(
            blocks=self.blocks,
            threads=self.threads,
            registers=self.stage.registers(self.sizes, placed) + IN_FLIGHT,
            shared_bytes=self.stage.shared(self.sizes, self.runs, self.group)[0],
            **self.of,
        )

    def _blocks(self) -> Reals:
        count: Reals = np.ones(self.count)
        for side in range(3):
            groups = self.stage.along((GROUP[side],), self.sizes, self.runs)
            whole = self.stage.along((GLOBAL[side],), self.sizes, self.runs)
            count = count * np.maximum(1, np.maximum(groups, -(-whole // self.group[:, side])))
        return count

    # -- loops -------------------------------------------------------------------------------------

    def _code(self, loop: Loop) -> Any:
        if loop.map is not None:
            return self.runs[loop.map.number]
        return np.full(self.count, CODE[VECTOR if loop.lanes else "seq"], np.int8)

    def _enter(self, body: Sequence[Node], around: _Around | None) -> Reals:
        """Looks at all loops of a body; how many statements it is, once short ones are unrolled."""
        weight: Reals = np.zeros(self.count)
        for node in body:
            weight = weight + (STATEMENT if isinstance(node, Write) else self._loop(node, around))
        return weight

    def _loop(self, loop: Loop, around: _Around | None) -> Reals:
        """A loop that is fused counts the iterations of the one around it, from the inner side."""
        size = np.broadcast_to(self.stage.size(loop, self.sizes), (self.count,))
        code, inner = self._code(loop), self._fused_inside(loop)
        own, here = self._head(code, size, size * inner)
        if around is not None:
            fused = code == CODE[FUSED]
            own = np.where(fused, np.where(around.parallel, 1, size), own)
            here.reach = np.where(fused, around.reach, here.reach)
            here.first = np.where(fused[:, None], around.first, here.first)
            here.parallel = np.where(fused, around.parallel, here.parallel)
        wide = np.where(code == CODE[VECTOR], np.gcd(size, WIDEST), 1)
        own = own // wide
        inside = np.clip(-(-here.reach // inner), 1, size)
        first = here.first // inner[:, None] % size[:, None]
        weight = self._enter(loop.body, here)
        unrolled = (code == CODE[VECTOR]) | (loop.counter in self.stage.unrolled)
        stays = ~unrolled & (own > 1) & (weight * own > UNROLLED)
        beside = np.maximum(1, inside // own)
        self.turns[loop.counter] = _Turn(loop, own, beside, size, first, wide, stays)
        return 1 + np.where(stays, UNROLLED + 1.0, weight * own)

    def _fused_inside(self, loop: Loop) -> Ints:
        """Iterations of the loops that are fused with it, in each of its own."""
        inner = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(inner, Loop):
            return np.ones(self.count, np.int64)
        size = self.stage.size(inner, self.sizes) * self._fused_inside(inner)
        found: Ints = np.where(self._code(inner) == CODE[FUSED], size, 1)
        return found

    def _head(self, code: Any, size: Ints, whole: Ints) -> tuple[Ints, _Around]:
        """Iterations of one thread of a loop that is not fused, and what others inside are in."""
        own, reach, lanes = size, whole, self.machine.lanes
        first: Ints = np.zeros((self.count, lanes), np.int64)
        kinds = [(LOCAL[d], self.group[:, d], self.along[d]) for d in range(3)]
        kinds += [(LANE, np.full(self.count, lanes), self.along[0] % lanes)]
        kinds += [(WARP, np.maximum(1, self.group[:, 0] // lanes), self.along[0] // lanes)]
        for run, threads, at in kinds:
            here = code == CODE[run]
            own = np.where(here, -(-whole // threads), own)
            first = np.where(here[:, None], at, first)
        for side, run in enumerate(GLOBAL):
            here = code == CODE[run]
            own = np.where(here, 1, own)
            reach = np.where(here, np.minimum(self.group[:, side], whole), reach)
            first = np.where(here[:, None], self.along[side], first)
        groups = np.isin(code, [CODE[run] for run in GROUP])
        parallel = ~np.isin(code, [CODE["seq"], CODE[VECTOR]])
        around = _Around(np.where(groups, 1, reach), first, parallel)
        return np.where(groups, 1, own), around

    def _iterations(self, body: Sequence[Node], times: Any) -> None:
        """Counts loops that stay, with what is waited for in each."""
        for node in body:
            if isinstance(node, Loop):
                turn = self.turns[node.counter]
                inner = times * turn.own
                self._issue("iterations", inner * turn.stays)
                waited = self.waited.get(node.counter, 0) * inner
                self._add("global_rounds", waited / np.minimum(turn.own, AT_ONCE))
                self._iterations(node.body, inner)

    # -- statements --------------------------------------------------------------------------------

    def _add(self, name: str, count: Any) -> None:
        self.of[name] = self.of[name] + count

    def _issue(self, name: str, times: Any) -> None:
        """An instruction of every warp, so many times."""
        self._add(name, times * self.warps)
        self._add("longest", times)

    def _site(self, site: Site, turns: list[_Turn]) -> None:
        times = _product([each.own for each in turns])
        wide = _product([each.wide for each in turns])
        special = operators = 0
        for part in walk_value(site.write.value):
            if isinstance(part, Operation) and part.op in SPECIAL:
                special += 1
            operators += isinstance(part, Operation | Choose | Cast)
        if special:
            self._issue("special", times * wide * special)
        if operators - special:
            self._issue("arithmetic", times * wide * (operators - special))
        private = self.spaces[site.write.memory].space == "private"
        outside = [each for each in reads_of(site.write.value) if self._space(each.memory)]
        if private and not operators and not outside:
            self._issue("moves", times * wide)
        self._access(site.write.memory, site.write.path, turns, load=False)
        for read in outside:
            self._access(read.memory, read.path, turns, load=True)

    def _space(self, memory: Param) -> str:
        """Where an access goes; nothing where it is to registers or parameters."""
        space = self.spaces[memory].space
        return "" if space == "private" else space

    def _barriers(self, local: Buffer) -> None:
        """Before and behind what fills it, in each iteration of the loops around all of its uses;
        behind is a wait for shared memory."""
        numbers = set(local.chain)
        site = next(each for each in self.stage.sites if each.write.memory is local.memory)
        turns = [self.turns[each.counter] for each in site.loops]
        times = _product(
            [each.own for each in turns if each.loop.map and each.loop.map.number in numbers]
        )
        self._issue("barriers", 2 * times)
        self._add("shared_rounds", times)

    # -- memory ------------------------------------------------------------------------------------

    def _access(self, memory: Param, path: Path, turns: list[_Turn], load: bool) -> None:
        space, indices = self._space(memory), indices_of(path)
        dims, width = self._dims(memory.type, parts_of(path))
        if not space or len(dims) != len(indices):
            return
        copies = self._copies(self.spaces[memory])
        indices, dims = (*copies, *indices), [*copies.values(), *dims]
        named = frozenset[str]().union(*(variables(each) for each in indices))
        needed = list(turns)
        while load and needed and needed[-1].loop.counter not in named:
            needed.pop()
        times = _product([each.own for each in needed])
        used = [each for each in needed if each.loop.counter in named]
        lanes = {each.loop.counter: each.first for each in turns}
        place = self._place(indices, dims, lanes)
        vector = _product([each.wide for each in used])
        if space == "local":
            self._issue("shared_requests", times)
            passes = self._passes(place * width, vector * width)
            self._add("wavefronts", times * self.warps * passes)
            return
        self._issue("requests", times)
        lines = _distinct(place * width // self.machine.line_bytes, self.lane)
        self._add("lines", times * self.warps * lines)
        sent = _distinct(place * width // self.machine.sector_bytes, self.lane)
        sent = times * self.warps * np.maximum(sent, lines)
        rest, some = _window([each.own for each in used])
        inside = [each.inside(own) for each, own in zip(used, some, strict=True)]
        own = rest * self._sectors(used, indices, dims, width, inside)
        every = self._sectors(used, indices, dims, width, [each.size for each in used])
        key = memory, parts_of(path), load
        before = self.touched.get(key, (0.0, 0.0, 0.0))
        missed = np.minimum(1.0, own / np.maximum(1.0, sent)) if load else np.ones(1)
        asked = missed * times * self.warps * lines
        counts = (own if load else sent, every, asked)
        self.touched[key] = tuple(map(np.maximum, counts, before))
        if load:
            self._wait(needed)

    def _copies(self, buffer: Buffer) -> dict[Expr, Ints]:
        """Counters that number the copies of what is made anew in each of their iterations, and how
        many there are: one where a thread does them one after another."""
        found: dict[Expr, Ints] = {}
        if buffer.role != "temporary" or buffer.space != "global":
            return found
        for number in buffer.chain:
            loop = self.stage.loops[number]
            code = self.runs[number]
            alone = np.isin(code, [CODE[run] for run in BY_THREAD])
            size = np.broadcast_to(self.stage.size(loop, self.sizes), (self.count,))
            found[Var(loop.counter)] = np.where(alone, 1, size)
        return found

    def _wait(self, turns: list[_Turn]) -> None:
        """In the innermost loop that stays one; loads of one iteration are waited for together."""
        here = np.ones(self.count, bool)
        for each in reversed(turns):
            name = each.loop.counter
            self.waited[name] = self.waited.get(name, False) | (here & each.stays)
            here &= ~each.stays
        self.waited[""] = self.waited.get("", False) | here

    def _dims(self, type_: Type, parts: tuple[int, ...]) -> tuple[list[Ints], int]:
        """The sizes along a path through a type, and the bytes of the number at its end."""
        dims, rest = list[Ints](), list(parts)
        while True:
            match type_:
                case Array(element, size):
                    dims.append(np.asarray(evaluate(size, self.sizes)))
                    type_ = element
                case Tuple(members):
                    type_ = members[rest.pop(0)]
                case Vector(element, width):
                    dims.append(np.asarray(width))
                    type_ = element
                case _:
                    dtype = dtype_of(type_)
                    return dims, dtype.bytes if dtype else self.machine.bank_bytes

    def _place(self, indices: Sequence[Any], dims: list[Ints], counters: dict[str, Ints]) -> Ints:
        """Elements from the begin, for each candidate and whatever counters have beside it."""
        env = {**{name: each[:, None] for name, each in self.sizes.items()}, **counters}
        total: Ints = np.zeros((self.count, 1), np.int64)
        for index, size in zip(indices, dims, strict=True):
            total = total * np.reshape(size, (-1, 1)) + np.asarray(evaluate(index, env))
        return np.broadcast_to(total, (self.count, total.shape[1]))

    def _sectors(
        self, used: list[_Turn], indices: Sequence[Any], dims: list[Ints], width: int,
        counts: list[Ints],
    ) -> Reals:  # fmt: skip
        """Sectors of an array that so many iterations of each loop touch: what is dense around the
        first one, in as many pieces as there are behind gaps."""
        zero = {each.loop.counter: np.zeros((self.count, 1), np.int64) for each in used}
        first = self._place(indices, dims, zero)
        moved = ({**zero, name: np.ones_like(at)} for name, at in zero.items())
        steps = [np.abs(self._place(indices, dims, each) - first)[:, 0] for each in moved]
        dense, pieces = np.ones(self.count), np.ones(self.count)
        if steps:
            by_step, many = np.stack(steps, 1), np.stack(np.broadcast_arrays(*counts), 1)
            order = np.argsort(by_step, 1, kind="stable")
            by_step = np.take_along_axis(by_step, order, 1)
            many = np.take_along_axis(many, order, 1)
            for step, often in zip(by_step.T, many.T, strict=True):
                inside = step <= dense
                dense, pieces = (
                    np.where(inside, dense + step * (often - 1.0), dense),
                    np.where(inside, pieces, pieces * often),
                )
        bytes_ = math.prod(dims, start=np.ones(1)) * width
        most = np.maximum(1.0, bytes_ / self.machine.sector_bytes)
        each = np.maximum(1.0, dense * width / self.machine.sector_bytes)
        found: Reals = np.minimum(pieces * each, most)
        return found

    def _passes(self, addresses: Ints, width: Ints) -> Reals:
        """Wavefronts of a request: the words of the busiest bank; each bank gives one at a time."""
        word, banks = self.machine.bank_bytes, self.machine.banks
        words = np.sort(np.where(self.lane, addresses // word, -1), 1)
        once = np.diff(words, axis=1, prepend=-1) != 0
        rows = np.broadcast_to(np.arange(self.count)[:, None], words.shape)
        used = np.bincount((rows * banks + words % banks)[once], minlength=self.count * banks)
        busiest = used.reshape(self.count, banks).max(1)
        found: Reals = np.maximum(1.0, busiest * np.maximum(1, width // word))
        return found


def _window(own: Sequence[Ints]) -> tuple[Any, list[Ints]]:
    """Some iterations of inner loops, in which a block finds again what it has loaded, and how
    often there are as many."""
    rest, inner, some = np.ones(1), np.ones(1, np.int64), list[Ints]()
    for each in reversed(own):
        part = np.minimum(each, np.maximum(1, ITERATIONS // inner))
        rest, inner = rest * (each / part), inner * part
        some.append(part)
    return rest, some[::-1]


def _product(counts: Sequence[Any]) -> Any:
    return math.prod(counts, start=np.ones(1))


def _distinct(places: Ints, active: Mask) -> Ints:
    """How many different ones each row has."""
    ordered = np.sort(np.where(active, places, -1), 1)
    found: Ints = (np.diff(ordered, axis=1, prepend=-1) != 0).sum(1)
    return found
