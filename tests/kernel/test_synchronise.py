"""Barriers put in are enough, and none is too many: by the evaluator, and by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from bench.common.kernel import kernels
from bench.common.narrowed import of

from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Expr, Var
from warploom.kernel.build import Array, Builder, ceil_div, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import DType, f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Barrier, For, If, Kernel, Stmt, walk
from warploom.kernel.synchronise import synchronise

THREADS, WARP = 16, 4


def scopes_of(kernel: Kernel) -> list[str]:
    return [each.scope for each in walk(kernel.body) if isinstance(each, Barrier)]


def races(kernel: Kernel) -> bool:
    arguments = [np.zeros(int(each.size.value), each.dtype.numpy) for each in kernel.arrays]  # type: ignore[union-attr]
    try:
        run(kernel, arguments)
    except DeviceError as error:
        if "race" not in error.message:
            raise
        return True
    return False


def without(body: tuple[Stmt, ...], number: Iterator[int], which: int) -> tuple[Stmt, ...]:
    """The body without its barrier number `which`."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Barrier():
                if next(number) != which:
                    result.append(stmt)
            case For():
                result.append(replace(stmt, body=without(stmt.body, number, which)))
            case If(_, then, otherwise):
                then = without(then, number, which)
                result.append(replace(stmt, then=then, otherwise=without(otherwise, number, which)))
            case _:
                result.append(stmt)
    return tuple(result)


def weakened(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with warp barriers where it has block barriers."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Barrier():
                result.append(Barrier("warp"))
            case For():
                result.append(replace(stmt, body=weakened(stmt.body)))
            case _:
                result.append(stmt)
    return tuple(result)


# -- random kernels: every statement gives each thread a cell of its own --------------------------

T = Var("thread")


def places(random: Random, counters: list[Expr]) -> Expr:
    """A permutation of the threads, within warps or across them, moved by a loop counter or not."""
    moved: Expr = T
    if counters and random.random() < 0.3:
        moved = (T + random.choice(counters) * random.choice((1, WARP))) % THREADS
    return random.choice(
        (T, T, T ^ 1, T ^ (WARP - 1), T ^ WARP, THREADS - 1 - T, (T + 1) % THREADS, moved)
    )


def statements(k: Builder, random: Random, arrays: list[Array], counters: list[Expr],
               depth: int) -> None:  # fmt: skip
    v = k.register(f"v{depth}", i32, 0)
    for number in range(random.randint(2, 4)):
        kind = random.random()
        if depth and kind < 0.25:
            with k.loop(f"i{depth}{number}", random.randint(1, 3), unroll=False) as i:
                statements(k, random, arrays, [*counters, i], depth - 1)
        elif depth and kind < 0.35:
            with k.when(T.ge(0)):  # which is known to hold; others may hold in some iterations only
                statements(k, random, arrays, counters, depth - 1)
        elif kind < 0.7:
            k.set(v, random.choice(arrays)[places(random, counters)])
        else:
            random.choice(arrays)[places(random, counters)] = v + 1


def random_kernel(seed: int) -> Kernel:
    random = Random(seed)
    k = Builder("shared_work", block=THREADS, warp_size=WARP)
    out = k.array("out", i32, THREADS)
    arrays = [k.shared(name, i32, THREADS) for name in "st"]
    for array in arrays:
        array[T] = from_index(T)
    statements(k, random, [*arrays, out], [], 2)
    return k.raw()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", range(40))
def test_enough_and_not_too_many(seed: int) -> None:
    kernel = random_kernel(seed)
    check(kernel)
    made = synchronise(kernel)
    check(made)
    assert not races(made)
    count = len(scopes_of(made))
    for which in range(count):
        fewer = replace(made, body=without(made.body, iter(range(count)), which))
        assert races(fewer), f"barrier {which} of {count} is not needed"
    assert synchronise(made) == made


# -- the fewest, by brute force -------------------------------------------------------------------


def ring(seed: int) -> tuple[Kernel, list[Stmt]]:
    """A loop of a few accesses, and its body."""
    random = Random(seed)
    k = Builder("ring", block=THREADS, warp_size=WARP)
    arrays = [k.shared(name, i32, THREADS) for name in "st"]
    v = k.register("v", i32, 0)
    for array in arrays:
        array[T] = from_index(T)
    k.barrier()
    with k.loop("i", 3, unroll=False) as i:
        for _ in range(random.randint(2, 4)):
            array, at = random.choice(arrays), places(random, [i])
            if random.random() < 0.5:
                k.set(v, array[at])
            else:
                array[at] = v + 1
    kernel = k.raw()
    loop = kernel.body[-1]
    assert isinstance(loop, For)
    return kernel, list(loop.body)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(25))
def test_no_fewer_would_do(seed: int) -> None:
    """No smaller set of block barriers, with warp barriers everywhere else, has no race."""
    kernel, body = ring(seed)
    made = synchronise(kernel)
    assert not races(made)
    wanted = scopes_of(made)[1:].count("block")
    for size in range(wanted):
        for gaps in combinations(range(len(body)), size):
            stmts: list[Stmt] = []
            for place, stmt in enumerate(body):
                stmts += [Barrier("block" if place in gaps else "warp"), stmt]
            loop = replace(of(For, kernel.body[-1]), body=(*stmts, Barrier("warp")))
            assert races(replace(kernel, body=(*kernel.body[:-1], loop)))


# -- sample kernels -------------------------------------------------------------------------------


def reversal(times: int, size: int = 64) -> Kernel:
    k = Builder("reversal", block=size)
    y, s, v = k.array("y", i32, size), k.shared("s", i32, size), k.register("v", i32, 0)
    with k.loop("i", times):
        s[k.thread] = v + 1
        k.set(v, s[size - 1 - k.thread])
    y[k.thread] = v
    return k.done()


def test_a_loop_needs_two_and_one_iteration_one() -> None:
    assert scopes_of(synchronise(reversal(3))) == ["block", "block"]
    assert scopes_of(synchronise(reversal(1))) == ["block"]
    assert scopes_of(synchronise(reversal(3, size=32))) == ["warp", "warp"]


def double_buffer() -> Kernel:
    """Two buffers by turns: one barrier for each iteration is enough."""
    k = Builder("double", block=64)
    y, s, v = k.array("y", i32, 64), k.shared("s", i32, 128), k.register("v", i32, 0)
    with k.loop("i", 6, unroll=False) as i:
        s[i % 2 * 64 + k.thread] = v + 1
        k.set(v, s[i % 2 * 64 + 63 - k.thread])
    y[k.thread] = v
    return k.done()


def test_two_buffers_need_one_barrier() -> None:
    made = synchronise(double_buffer())
    assert scopes_of(made) == ["block"]
    assert not races(made)
    assert races(replace(made, body=weakened(made.body)))


def test_outputs_need_none() -> None:
    """Rows and columns of a matrix of any size are different cells, by the conditions on them."""
    for kernel in (kernels.aos_to_soa(), kernels.stencil(), kernels.convolution()):
        assert scopes_of(synchronise(kernel)) == []


def test_three_axes() -> None:
    """Planes, rows and columns of any size, each thread with a few cells of its own."""
    k = Builder("volume", block=(8, 4, 2))
    x, y, z = k.scalar("columns"), k.scalar("rows"), k.scalar("planes")
    out, v = k.array("out", f32, z * y * x), k.register("v", f32, 1.0)
    k.require(x.ge(1).and_(y.ge(1)).and_(z.ge(1)))
    k.grid(ceil_div(x, 16), ceil_div(y, 4), ceil_div(z, 2))
    plane, row = k.block_z * 2 + k.thread_z, k.block_y * 4 + k.thread_y
    for half in range(2):
        column = k.block_x * 16 + half * 8 + k.thread_x
        inside = plane.lt(z).and_(row.lt(y)).and_(column.lt(x))
        out.put((plane * y + row) * x + column, v, when=inside)
        k.set(v, out.at((plane * y + row) * x + column, when=inside))
    assert scopes_of(synchronise(k.done())) == []


def test_what_is_there_counts() -> None:
    kernel = kernels.transpose()
    assert synchronise(kernel) == kernel
    bare = replace(kernel, body=tuple(s for s in kernel.body if not isinstance(s, Barrier)))
    made = synchronise(bare)
    assert scopes_of(made) == ["block"]
    data, out = np.arange(40 * 70, dtype=np.float32), np.zeros(40 * 70, np.float32)
    run(made, [data, out], {"height": 40, "width": 70})
    assert np.array_equal(out.reshape(70, 40), data.reshape(40, 70).T)


def test_global_memory_that_is_read_again() -> None:
    k = Builder("again", block=64)
    y, v = k.array("y", i32, 64), k.register("v", i32, 0)
    y[k.thread] = from_index(k.thread)
    k.set(v, y[63 - k.thread])
    y[63 - k.thread] = v
    made = synchronise(k.done())
    assert scopes_of(made) == ["block"]
    assert not races(made)


def test_two_names_of_one_array() -> None:
    k = Builder("alias", block=64)
    x = k.array("x", i32, 64, const=True, restrict=False)
    y, v = k.array("y", i32, 64, restrict=False), k.register("v", i32, 0)
    k.set(v, x[63 - k.thread])
    y[k.thread] = v
    kernel = k.done()
    made = synchronise(kernel)
    assert scopes_of(made) == ["block"]
    data = np.arange(64, dtype=np.int32)
    with pytest.raises(DeviceError, match="race"):
        run(kernel, [data, data])
    data = np.arange(64, dtype=np.int32)
    run(made, [data, data])
    assert data.tolist() == list(range(63, -1, -1))


def divergent(condition: Expr) -> Kernel:
    k = Builder("divergent", block=128)
    s, v = k.shared("s", i32, 128), k.register("v", i32, 0)
    s[k.thread] = from_index(k.thread)
    k.barrier()
    with k.when(condition):
        s[k.thread] = v
        k.set(v, s[k.thread ^ 33])
    return k.done()


def test_never_under_a_condition_that_differs() -> None:
    with pytest.raises(CheckError, match=r"a block barrier is needed before the load of s\["):
        synchronise(divergent(Var("warp").lt(2)))
    with pytest.raises(CheckError, match="between threads of a block"):
        synchronise(divergent(Var("lane").lt(7)))
    made = synchronise(divergent(Var("block_x").lt(1)))
    assert scopes_of(made) == ["block", "block"]


def test_branches_that_meet() -> None:
    k = Builder("both", block=64)
    s, v = k.shared("s", i32, 64), k.register("v", i32, 0)
    with k.when(k.lane.lt(16)):
        s[k.thread] = v
    with k.otherwise():
        k.set(v, s[k.thread ^ 16])
    with pytest.raises(CheckError, match="different branches may meet in 's'"):
        synchronise(k.done())


def test_symbolic_loops() -> None:
    k = Builder("scan", block=64)
    n = k.scalar("n")
    x, y = k.array("x", f32, n * 64, const=True), k.array("y", f32, n * 64)
    s, v = k.shared("s", f32, 64), k.register("v", f32)
    with k.loop("i", n) as i:
        k.set(v, x[i * 64 + k.thread])
        s[k.thread] = v
        k.set(v, s[63 - k.thread])
        y[i * 64 + k.thread] = v
    made = synchronise(k.done())
    assert scopes_of(made) == ["block", "block"]
    data, out = np.arange(320, dtype=np.float32), np.zeros(320, np.float32)
    run(made, [data, out])
    assert np.array_equal(out.reshape(5, 64), data.reshape(5, 64)[:, ::-1])
    for which in range(2):
        with pytest.raises(DeviceError, match="race"):
            run(replace(made, body=without(made.body, iter(range(2)), which)), [data, out])


def test_a_loop_that_may_have_no_iteration_ends_behind_its_barriers() -> None:
    """Its last store meets the load of the next iteration around it, though its first does not."""
    k = Builder("around", block=64)
    n = k.scalar("n")
    y, s, t = k.array("y", i32, 64), k.shared("s", i32, 64), k.shared("t", i32, 64)
    v = k.register("v", i32, 1)
    s.put(k.thread, v)
    with k.loop("i", 3, unroll=False):
        t.put(k.thread, v)
        with k.when(k.warp.eq(0)):
            k.set(v, s.at(k.thread))
        with k.loop("j", n % 4, unroll=False):
            s.put(k.thread, v + 1)
            s.put(k.thread ^ 46, v + 2)
    y[k.thread] = v
    made = synchronise(k.done())
    for size in range(4):
        run(made, [size, np.zeros(64, np.int32)])


@pytest.mark.parametrize("dtype", [DType.F64, DType.U8])
def test_wide_accesses(dtype: DType) -> None:
    kernel = kernels.wide(dtype, 2)
    bare = replace(kernel, body=tuple(s for s in kernel.body if not isinstance(s, Barrier)))
    assert synchronise(bare) == kernel


def test_a_iteration_that_multiplies_a_thread_is_no_row_length() -> None:
    k = Builder("iterations", block=64)
    n, y = k.scalar("n"), k.array("y", i32, 100_000)
    k.require(n.ge(1))
    k.require(n.le(100))
    v = k.register("v", i32, 0)
    with k.loop("t", 0, n) as t:
        here, later = t * k.thread, t.ge(1)
        k.set(v, y.at(here, when=later))
        y.put(here, v + 1, when=later)
        k.barrier()
        k.set(v, y.at(here, when=later))
        y.put(here, v * 3, when=later)
    run(synchronise(k.done()), [5, np.zeros(100_000, np.int32)])


@pytest.mark.parametrize("name", ["columns", "blockcolumns"])
def test_row_lengths_by_any_name(name: str) -> None:
    k = Builder("rows", block=(16, 16))
    rows, columns = k.scalar("rows"), k.scalar(name)
    k.require(columns.ge(1))
    k.require(rows.ge(1))
    y, v = k.array("y", f32, rows * columns), k.register("v", f32)
    at = k.thread_y * columns + k.thread_x
    with k.when(k.thread_x.lt(columns).and_(k.thread_y.lt(rows))):
        for _ in range(2):
            k.set(v, y[at])
            y[at] = v + 1.0
    assert scopes_of(synchronise(k.done())) == []
