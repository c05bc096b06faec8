"""What a compiler makes of a kernel, as far as its work depends on that: loops that it undoes, and
what it computes only where it is used.

The limits are those of NVRTC 13, seen in the PTX of kernels with such loops. Instructions are what
is computed, each access with its address, and of a loop its own.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence

import numpy as np

from warploom.index.ir import Expr, variables
from warploom.kernel import ir
from warploom.kernel.tensor import HELD, held
from warploom.kernel.traverse import target_of, values_of

WHOLE = 250  # instructions of all iterations together, of a loop that is undone
PART, MOST = 100, 8  # of several iterations that become one, and how many
OWN = 3  # of a loop
ACCESS = 2  # instructions of an access: itself and its address
REGISTER_BYTES = 4
IN_FLIGHT = 16  # registers for what is loaded ahead of its use, where there is so much
ADDED = 0.6  # more registers for each sum, as the next factors are there, and where it goes to


def length(body: Sequence[ir.Stmt]) -> float:
    """Instructions, with those of loops that are undone; infinite where a loop stays."""
    return sum(map(_length, body))


def _length(stmt: ir.Stmt) -> float:
    match stmt:
        case ir.For(body=body):
            inside = length(body)
            if stmt.counts is None:
                return math.inf
            if stmt.unroll:
                return len(stmt.counts) * inside
            whole = len(stmt.counts) * (inside + OWN)
            return whole if whole <= WHOLE else math.inf
        case ir.If(_, then, otherwise):
            return length(then) + length(otherwise)
        case ir.Load():
            return ACCESS
        case ir.Store():
            return ACCESS + operators(stmt)
        case ir.Assign():
            return max(1, operators(stmt))
        case ir.Barrier() | ir.Shuffle() | ir.TensorProduct():
            return 1
    return 0


def operators(stmt: ir.Stmt) -> int:
    """Operations of what a statement computes."""
    parts = (part for value in values_of(stmt) for part in ir.walk_value(value))
    return sum(isinstance(part, ir.Operation | ir.Choose | ir.Cast) for part in parts)


def undone(stmt: ir.For, trips: int) -> bool:
    """Whether nothing remains of the loop but its iterations, one behind the other. Loops in which
    threads meet are left as they are, if nobody asks for it."""
    if trips <= 1 or (stmt.unroll and stmt.counts is not None):
        return True
    if any(isinstance(each, ir.Barrier) for each in ir.walk(stmt.body)):
        return False
    return stmt.counts is not None and trips * (length(stmt.body) + OWN) <= WHOLE


def at_once(trips: int, size: float) -> int:
    """Iterations of so many instructions that become one, of a loop that stays.

    >>> [at_once(100, size) for size in (10, 15, 33, 60)]
    [8, 4, 2, 1]
    """
    return next((n for n in (MOST, MOST // 2, 2) if n * size <= PART and n <= trips), 1)


# -- what is only needed in some threads -----------------------------------------------------------


def needed_if(body: Sequence[ir.Stmt]) -> list[Expr | None]:
    """For each statement of a whole kernel under which condition its threads need what it computes;
    None: always. Compilers move it there, but neither past a barrier nor with a loop that stays."""
    found: list[Expr | None] = [None] * len(body)
    users: dict[str, Expr | None] = {}
    for at in reversed(range(len(body))):
        stmt = body[at]
        inside = list(ir.walk((stmt,)))
        if any(isinstance(each, ir.Barrier) for each in inside):
            users = dict.fromkeys(users)
        guard = _own_guard(stmt, inside)
        if guard is None and _is_pure(inside):
            guards = {users[name] for name in _written(inside) & users.keys()}
            guard = guards.pop() if len(guards) == 1 else None
            found[at] = guard
        for name in _read(inside):
            users[name] = guard if users.get(name, guard) == guard else None
    return found


def _own_guard(stmt: ir.Stmt, inside: Sequence[ir.Stmt]) -> Expr | None:
    """The condition of a branch, or of the only stores, where it is one."""
    if isinstance(stmt, ir.If):
        return None if stmt.otherwise else stmt.condition
    if any(
        isinstance(each, ir.Load | ir.Assign | ir.Shuffle | ir.TensorProduct) for each in inside
    ):
        return None
    some = {each.predicate for each in inside if isinstance(each, ir.Store)}
    guard = some.pop() if len(some) == 1 else None
    counters = {each.var for each in inside if isinstance(each, ir.For)}
    return None if guard is None or variables(guard) & counters else guard


def _is_pure(inside: Sequence[ir.Stmt]) -> bool:
    """Whether it only computes, and loads from arrays."""
    for each in inside:
        match each:
            case ir.For():
                if each.counts is None or not undone(each, len(each.counts)):
                    return False
            case ir.Load() | ir.Assign() | ir.Let() | ir.Registers() | ir.Comment():
                pass
            case _:
                return False
    return True


def _written(inside: Sequence[ir.Stmt]) -> set[str]:
    return {cell.name for each in inside if (cell := target_of(each)) is not None}


def _read(inside: Sequence[ir.Stmt]) -> Iterator[str]:
    for each in inside:
        if isinstance(each, HELD):
            yield from (cell.name for cell, _ in held(each))
        for value in values_of(each):
            yield from (part.name for part in ir.walk_value(value) if isinstance(part, ir.Cell))


def asked_ahead(kernel: ir.Kernel) -> set[str]:
    """Registers that are loaded for a later iteration: what takes them to shared memory does so
    ahead, or after something was computed of others."""
    loaded: dict[str, int] = {}
    stored, others = set[str](), set[str]()
    computed = 0
    for stmt in ir.walk(kernel.body):
        match stmt:
            case ir.Load(target):
                loaded[target.name] = computed
            case ir.Store(value=ir.Cell(name)) if name in loaded:
                between = computed > loaded[name]
                (stored if stmt.ahead or between else others).add(name)
            case ir.Store() | ir.Assign():
                others |= set(_read((stmt,)))
                computed += isinstance(stmt, ir.Assign) and operators(stmt) > 0
    shared = {each.name for each in kernel.body if isinstance(each, ir.Shared)}
    outside = {each.target.name for each in ir.walk(kernel.body)
               if isinstance(each, ir.Load) and each.array not in shared}  # fmt: skip
    return (stored - others) & outside


# -- registers -------------------------------------------------------------------------------------


def registers(kernel: ir.Kernel, passed: Container[str]) -> float:
    """Registers of a thread beside those that any kernel has: what is computed and held at once,
    from where it is first named in the text to where it is named last, and what is loaded ahead of
    its use. Loads are done so late that few of them are on their way."""
    sizes: dict[str, float] = {}
    spans: dict[str, tuple[int, int]] = {}
    loaded, sums = set[str](), set[str]()
    at = -1
    for at, stmt in enumerate(ir.walk(kernel.body)):
        if isinstance(stmt, ir.Registers) and stmt.name not in passed:
            sizes[stmt.name] = (stmt.size or 1) * stmt.dtype.bytes / REGISTER_BYTES
        target, named = target_of(stmt), set(_read((stmt,)))
        if target is not None:
            if target.name in named:
                sums.add(target.name)
            if isinstance(stmt, ir.Load):
                loaded.add(target.name)
            named.add(target.name)
        for name in named:
            spans[name] = spans.get(name, (at, at))[0], at
    change = np.zeros(at + 2)
    for name in (sizes.keys() & spans.keys()) - loaded:
        first, last = spans[name]
        change[first] += sizes[name]
        change[last + 1] -= sizes[name]
    held = float(np.cumsum(change).max(initial=0.0))
    added = ADDED * sum(sizes.get(name, 0.0) for name in sums)
    return held + added + min(IN_FLIGHT, max(_loaded(kernel.body, passed)))


def _loaded(body: Sequence[ir.Stmt], passed: Container[str]) -> tuple[float, float]:
    """Registers' worth of what is loaded between loops that stay and barriers: the most, and that
    of the last such part."""
    most = here = 0.0
    for stmt in body:
        match stmt:
            case ir.For(body=inner):
                inside, last = _loaded(inner, passed)
                if stmt.counts is not None and undone(stmt, len(stmt.counts)):
                    most, here = max(most, inside), here + last * len(stmt.counts)
                else:
                    most, here = max(most, inside, here), 0.0
            case ir.If(_, then, otherwise):
                for part in (then, otherwise):
                    inside, last = _loaded(part, passed)
                    most, here = max(most, inside), here + last
            case ir.Load(target, width=width) if target.name not in passed:
                here += width * target.dtype.bytes / REGISTER_BYTES
            case ir.Barrier():
                most, here = max(most, here), 0.0
    return max(most, here), here
