"""Random indices, sizes, guards and loops against the evaluator, which checks every index.

What is accepted never leaves; what is refused with a thread does leave there.
"""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

from warploom.errors import CheckError, DeviceError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Expr, Var, maximum, minimum, select
from warploom.kernel.build import Builder, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, Store

THREADS = 8
n, m = Var("n"), Var("m")


def affine(random: Random, names: list[Expr]) -> Expr:
    total: Expr = random.choice(names)
    for name in random.sample(names, random.randint(0, 2)):
        total = total + name * random.choice((1, 1, 2, 3, 4, 8, -1))
    return total + random.choice((0, 0, 0, 1, -1, 3, 7))


def index(random: Random, names: list[Expr]) -> Expr:
    expr = affine(random, names)
    match random.randrange(9):
        case 0:
            return expr % random.choice((n, m, n * m, 4, 8))
        case 1:
            return expr // random.choice((2, 4, 8))
        case 2:
            return maximum(0, minimum(expr, random.choice((n, m, n * m)) - 1))
        case 3:
            return affine(random, names) * random.choice((n, m)) + expr
        case 4:
            return select(expr.lt(n), affine(random, names), affine(random, names))
        case 5:
            return (expr // 4 * 4 + expr % 4) ^ random.choice((0, 1, 3))
        case _:
            return expr


def size(random: Random) -> Expr:
    return random.choice((n, n, m, n * m, n * 2, n + 3, n * m * 2, n * 8))


def guard(random: Random, at: Expr, length: Expr, names: list[Expr]) -> Expr:
    match random.randrange(5):
        case 0:
            return at.lt(length)
        case 1:
            return at.ge(0).and_(at.lt(length))
        case 2:
            return affine(random, names).lt(random.choice((n, m)))
        case 3:
            return at.le(length).and_(affine(random, names).ge(1))
        case _:
            return affine(random, names).lt(n).or_(at.eq(0))


def random_kernel(seed: int) -> Kernel:
    random = Random(seed)
    k = Builder("bounds", block=random.choice((THREADS, (4, 2))), warp_size=4)
    k.scalar("n"), k.scalar("m")
    k.require(random.choice((n.ge(1), (n % 4).eq(0).and_(n.ge(4)), n.ge(m), n.gt(0))))
    k.require(random.choice((m.ge(1), m.ge(2), (m % 8).eq(0).and_(m.ge(8)))))
    length = size(random)
    k.array("y", i32, length)
    k.grid(random.choice((1, 2, n // 4 + 1, (n + 7) // 8, m)))
    names: list[Expr] = [k.thread, k.thread_x, k.lane, k.warp, k.block_x, n, m]
    bounds = random.choice(((0, 3), (0, n), (0, (m + 3) // 4), (k.block_x, n), (1, 4)))
    with k.loop("i", bounds[0], bounds[1], random.choice((1, 1, 2)), unroll=False) as i:
        at = k.let("at", index(random, [*names, i, i, k.thread, k.thread]))
        condition = guard(random, at, length, [*names, i]) if random.random() < 0.7 else None
        if condition is not None and random.random() < 0.5:
            with k.when(condition):
                k.add(_store(at, None))
        else:
            k.add(_store(at, condition))
    return k.raw()


def _store(at: Expr, condition: Expr | None) -> Store:
    return Store("y", at, from_index(1), condition)


def leaves(kernel: Kernel, scalars: dict[str, int]) -> bool | None:
    """Whether the evaluator finds an index outside in a launch; None if there is no such launch."""
    try:
        length = int(evaluate(kernel.arrays[0].size, scalars))
        run(kernel, [np.zeros(max(length, 0), np.int32)], scalars, races=False)
    except DeviceError as error:
        return True if "elements, but is used" in error.message else None
    return False


LAUNCHES = [{"n": a, "m": b} for a in (1, 2, 3, 4, 5, 8, 12, 17) for b in (1, 2, 3, 8, 16)]


def judged(seed: int) -> str:
    kernel = random_kernel(seed)
    try:
        check(kernel)
    except CheckError as error:
        given = re.search(r"uses \[.* at (.*?);", error.message)
        if given is None:
            return "not shown"
        scalars = {k: int(v) for k, v in re.findall(r"\b([nm]) = (-?\d+)", given[1])}
        return "leaves" if leaves(kernel, scalars) else f"{seed}: wrong, {error.message}"
    wrong = [scalars for scalars in LAUNCHES if leaves(kernel, scalars)]
    return f"{seed}: wrong, leaves at {wrong[0]}" if wrong else "inside"


def wrong(fates: list[str]) -> list[str]:
    return [each for each in fates if "wrong" in each]


@pytest.mark.parametrize("count", [24, pytest.param(60, marks=pytest.mark.slow)])
def test_accepted_stays_and_refused_leaves(count: int) -> None:
    fates = [judged(seed) for seed in range(count)]
    assert wrong(fates) == []
    assert fates.count("inside") > count / 8
    assert fates.count("leaves") > count / 3
    # A refusal that is wrong would be one that no launch bears out; few are left open.
    assert fates.count("not shown") < count / 12


@pytest.mark.slow
def test_many_more() -> None:
    fates = [judged(seed) for seed in range(1000, 6000)]
    assert wrong(fates) == []
    assert fates.count("not shown") < 200
