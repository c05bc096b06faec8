"""What depends on the order of statements, found by walking the program with its loops unrolled.

Registers are set before they are read; register arrays are indexed by constants within bounds;
shared accesses stay inside their array; barriers are met by whole blocks, shuffles by whole warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError
from warploom.index.evaluate import Value as Numbers
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, fold_up, substitute, variables
from warploom.index.laws import simplify
from warploom.index.ranges import range_of
from warploom.kernel.bounds import static_bounds, thread_variables
from warploom.kernel.ir import (
    ArrayParam,
    Barrier,
    Cell,
    For,
    If,
    Kernel,
    Let,
    Load,
    Registers,
    Shared,
    Shuffle,
    Stmt,
    Store,
    walk,
    walk_value,
)
from warploom.kernel.traverse import target_of, values_of

MAX_STEPS = 200_000

Place = tuple[str, int | None]


class Level(IntEnum):
    """Who is sure to agree on a value."""

    BLOCK = 0
    WARP = 1
    NOBODY = 2


def level_of(expr: Expr, kernel: Kernel, lets: Mapping[str, Expr]) -> Level:
    """Whether all threads of a block, or of a warp, agree on an expression."""
    threads = thread_variables(kernel)

    def visit(part: Expr, levels: tuple[Level, ...]) -> Level:
        names = variables(part)
        if names and names <= threads.keys():
            return _exact_level(evaluate(part, threads), kernel)
        return max(levels, default=Level.BLOCK)

    return fold_up(substitute(expr, lets), visit)


def _exact_level(value: Numbers, kernel: Kernel) -> Level:
    if isinstance(value, int) or bool(np.all(value == value[0])):
        return Level.BLOCK
    first = (np.arange(kernel.threads) // kernel.warp_size) * kernel.warp_size
    return Level.WARP if bool(np.all(value == value[first])) else Level.NOBODY


@dataclass(slots=True)
class _Walk:
    """The facts about one kernel that the walk needs everywhere."""

    kernel: Kernel
    threads: dict[str, npt.NDArray[np.int64]]
    sizes: dict[str, int]
    registers: dict[str, Registers]
    steps: int = 0
    levels: dict[tuple[Expr, tuple[Expr, ...]], Level] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _State:
    """Where the walk stands: loop counters, names for expressions, conditions, agreement."""

    counts: Mapping[str, int] = field(default_factory=dict)
    unrolled: frozenset[str] = frozenset()
    lets: Mapping[str, Expr] = field(default_factory=dict)
    guards: tuple[Expr, ...] = ()
    level: Level = Level.BLOCK


def check_flow(kernel: Kernel) -> None:
    """Raises CheckError at the first statement that breaks one of the promises above."""
    registers = {each.name: each for each in walk(kernel.body) if isinstance(each, Registers)}
    sizes = {each.name: each.size for each in walk(kernel.body) if isinstance(each, Shared)}
    walk_ = _Walk(kernel, thread_variables(kernel), sizes, registers)
    _follow(kernel.body, _State(), set(), walk_)


def _follow(body: tuple[Stmt, ...], state: _State, ready: set[Place], walk_: _Walk) -> None:
    """Walks a body; `ready` are the registers that hold something, and grows."""
    for stmt in body:
        _count_step(walk_)
        match stmt:
            case Let(name, expr):
                state = replace(state, lets={**state.lets, name: substitute(expr, state.lets)})
            case For():
                _follow_loop(stmt, state, ready, walk_)
            case If():
                _follow_branches(stmt, state, ready, walk_)
            case Registers(name, _, size, initial):
                places = [(name, i) for i in ([None] if size is None else range(size))]
                (ready.difference_update if initial is None else ready.update)(places)
            case _:
                _check_step(stmt, state, ready, walk_)


def _count_step(walk_: _Walk) -> None:
    walk_.steps += 1
    if walk_.steps > MAX_STEPS:
        raise CheckError(
            f"'{walk_.kernel.name}' runs more than {MAX_STEPS} statements with loops unrolled",
            advice="use smaller loop bounds",
        )


def _follow_loop(stmt: For, state: _State, ready: set[Place], walk_: _Walk) -> None:
    inner = state.unrolled | {stmt.var} if stmt.unroll else state.unrolled
    for count in stmt.counts if stmt.unroll or _matters(stmt, walk_) else stmt.counts[:1]:
        _count_step(walk_)
        step = replace(state, counts={**state.counts, stmt.var: count}, unrolled=inner)
        _follow(stmt.body, step, ready, walk_)


def _matters(stmt: For, walk_: _Walk) -> bool:
    """Whether later iterations of a loop that stays a loop may break what the first does not.

    Registers are indexed by unrolled loops alone, and what one iteration sets stays set; but an
    index of shared memory or of a constant array may run out of bounds later.
    """
    inside = tuple(walk(stmt.body))
    moving = {stmt.var} | {each.name for each in inside if isinstance(each, Let)}
    if any(each.array in walk_.sizes for each in inside if isinstance(each, Load | Store)):
        return True
    reads = (part for each in inside for value in values_of(each) for part in walk_value(value))
    return any(
        each.name not in walk_.registers
        and each.index is not None
        and variables(each.index) & moving
        for each in reads
        if isinstance(each, Cell)
    )


def _follow_branches(stmt: If, state: _State, ready: set[Place], walk_: _Walk) -> None:
    level = max(state.level, _level(stmt.condition, state, walk_))
    after_then, after_otherwise = set(ready), set(ready)
    guard = substitute(stmt.condition, state.lets)
    then = replace(state, guards=(*state.guards, guard), level=level)
    otherwise = replace(state, guards=(*state.guards, guard.not_()), level=level)
    _follow(stmt.then, then, after_then, walk_)
    _follow(stmt.otherwise, otherwise, after_otherwise, walk_)
    ready |= after_then & after_otherwise


def _level(condition: Expr, state: _State, walk_: _Walk) -> Level:
    key = (condition, tuple(state.lets[name] for name in sorted(state.lets)))
    if key not in walk_.levels:
        walk_.levels[key] = level_of(condition, walk_.kernel, state.lets)
    return walk_.levels[key]


def _check_step(stmt: Stmt, state: _State, ready: set[Place], walk_: _Walk) -> None:
    match stmt:
        case Barrier("block") if state.level > Level.BLOCK:
            raise CheckError(
                "a barrier stands under a condition that differs between threads of a block",
                advice="move the barrier out of the condition",
            )
        case Barrier() | Shuffle() if state.level > Level.WARP:
            what = "barrier" if isinstance(stmt, Barrier) else "shuffle"
            raise CheckError(
                f"a {what} stands under a condition that differs between lanes of a warp",
                advice=f"move the {what} out and select its result instead",
            )
        case Load() | Store() if stmt.array in walk_.sizes:
            _check_shared_bounds(stmt, state, walk_)
        case _:
            pass
    width = stmt.width if isinstance(stmt, Load | Store) else 1
    for value in values_of(stmt):
        for part in walk_value(value):
            if isinstance(part, Cell):
                _check_read(part, state, ready, walk_, width)
    target = target_of(stmt)
    if target is not None:
        ready.update(_places(target, state, walk_, width))


def _check_read(cell: Cell, state: _State, ready: set[Place], walk_: _Walk, width: int) -> None:
    if cell.name not in walk_.registers:
        _check_constant_bounds(cell, state, walk_)
        return
    for place in _places(cell, state, walk_, width):
        if place not in ready:
            where = cell.name if place[1] is None else f"{cell.name}[{place[1]}]"
            raise CheckError(
                f"the register '{where}' is read before it is set on every path",
                advice="give it an initial value",
            )


def _places(cell: Cell, state: _State, walk_: _Walk, width: int) -> Iterator[Place]:
    """The registers a cell names; its index must be known after unrolling and within bounds."""
    if cell.index is None:
        yield cell.name, None
        return
    index = substitute(cell.index, state.lets)
    unknown = sorted(variables(index) - state.unrolled)
    if unknown:
        raise CheckError(
            f"the register array '{cell.name}' is indexed by '{unknown[0]}', "
            "which is not known after unrolling",
            advice="use warploom.kernel.laws.distribute or warploom.kernel.lower.permute",
        )
    first = int(evaluate(index, state.counts))
    size = walk_.registers[cell.name].size or 1
    if first < 0 or first + width > size:
        raise CheckError(f"'{cell.name}' has {size} registers, but [{first}] is used")
    yield from ((cell.name, first + i) for i in range(width))


def _check_constant_bounds(cell: Cell, state: _State, walk_: _Walk) -> None:
    for param in walk_.kernel.params:
        if isinstance(param, ArrayParam) and param.name == cell.name and cell.index is not None:
            size = int(evaluate(param.size, {}))
            _check_inside(cell.index, 1, size, param.name, state, walk_, None)


def _check_shared_bounds(stmt: Load | Store, state: _State, walk_: _Walk) -> None:
    _check_inside(
        stmt.index, stmt.width, walk_.sizes[stmt.array], stmt.array, state, walk_, stmt.predicate
    )


def _check_inside(
    expr: Expr,
    width: int,
    size: int,
    name: str,
    state: _State,
    walk_: _Walk,
    predicate: Expr | None,
) -> None:
    """Exact where the index depends on threads and loops alone, by bounds elsewhere."""
    index = substitute(expr, state.lets)
    env: dict[str, Any] = {**walk_.threads, **state.counts}
    if variables(index) <= env.keys():
        used = _active(state, predicate, env, walk_)
        values = np.broadcast_to(np.asarray(evaluate(index, env)), (walk_.kernel.threads,))
        wrong = used & ((values < 0) | (values + width > size))
        if wrong.any():
            thread = int(np.argmax(wrong))
            raise CheckError(
                f"'{name}' has {size} elements, but thread {thread} uses [{values[thread]}]"
                + _counts_text(state)
            )
        return
    low, high = range_of(simplify(index), _bounds(state, walk_))
    if low < 0 or high + width > size:
        raise CheckError(
            f"the index of '{name}' cannot be shown to stay within its {size} elements",
            advice="index shared arrays by threads and loops, or take the index modulo the size",
        )


def _active(
    state: _State, predicate: Expr | None, env: Mapping[str, Any], walk_: _Walk
) -> npt.NDArray[np.bool_]:
    """The threads that may get here; a condition on parameters or blocks is taken as true."""
    active = np.ones(walk_.kernel.threads, dtype=bool)
    guards = state.guards + (() if predicate is None else (substitute(predicate, state.lets),))
    for guard in guards:
        if variables(guard) <= env.keys():
            active &= np.asarray(evaluate(guard, env)) != 0
    return active


def _bounds(state: _State, walk_: _Walk) -> dict[str, tuple[int, int]]:
    counts = {name: (count, count) for name, count in state.counts.items()}
    return static_bounds(walk_.kernel) | counts


def _counts_text(state: _State) -> str:
    if not state.counts:
        return ""
    return " at " + ", ".join(f"{name} = {count}" for name, count in state.counts.items())
