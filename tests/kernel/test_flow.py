"""What `check` shows, what it refuses with a thread that leaves, and what it asks to be guarded."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from bench.common.kernel.kernels import tiled_product

from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Expr, Var, lift, maximum, minimum
from warploom.index.show import show
from warploom.kernel.build import Array, Builder, ceil_div, choose, from_index
from warploom.kernel.dtype import DType, f32, i32, i64, u8
from warploom.kernel.evaluate import run
from warploom.kernel.flow import check_flow
from warploom.kernel.guard import predicate_accesses
from warploom.kernel.ir import Cell, Kernel, Load, Number, Store, Value, walk


@pytest.mark.parametrize(("depth", "unroll"), [(4096, None), (4096, False), (None, None)])
def test_a_tiled_product_of_any_depth_is_shown(depth: int | None, unroll: bool | None) -> None:
    """Iteration by iteration this took minutes; bench/kernel/check.py has the figures."""
    tiled_product(depth, unroll)
    with pytest.raises(CheckError, match=r"'b' has .* elements, but thread 255 .* uses \[\d+\] at"):
        tiled_product(depth, unroll, off=1)


def test_a_tiled_product_of_any_depth_computes() -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, (128, 24)).astype(np.float32) for _ in range(2))
    c = np.zeros((128, 128), np.float32)
    run(tiled_product(None), [128, 128, 24, a, b.T.copy(), c])
    assert np.array_equal(c, a @ b.T)


# -- accesses that are shown to stay inside --------------------------------------------------------


def line(write: Callable[[Builder, Var], None], threads: int = 64) -> Kernel:
    """A kernel over n elements of x and y, grid and all but the accesses given."""
    k = Builder("line", block=threads)
    n = k.scalar("n")
    k.array("x", f32, n, const=True)
    k.array("y", f32, n)
    k.grid(ceil_div(n, threads))
    k.register("v", f32, 0.0)
    write(k, n)
    return k.done()


def grid_stride(k: Builder, n: Var) -> None:
    """Each thread takes every 64th element."""
    x, y, v = k.array("p", f32, n, const=True), k.array("q", f32, n), k.register("w", f32)
    with k.loop("i", 0, ceil_div(n, 64)) as i:
        at = k.let("at", i * 64 + k.thread)
        k.set(v, x.at(at, when=at.lt(n)))
        y.put(at, v, when=at.lt(n))


def mirrored(k: Builder, n: Var) -> None:
    """Borders reflected by minimum and maximum, or taken around by a remainder."""
    x, v = k.array("p", f32, n, const=True), k.register("w", f32)
    i = k.block_x * 64 + k.thread
    k.set(v, x[maximum(0, minimum(i - 3, n - 1))])
    k.set(v, x[(i * 7 - 5) % n])
    with k.when(n.gt(3)):
        k.set(v, x[3])


def triangle(k: Builder, n: Var) -> None:
    """The bound of a loop is the counter of another."""
    x, v = k.array("p", f32, n * n, const=True), k.register("w", f32)
    with k.loop("i", n) as i, k.loop("j", i, n) as j:
        k.set(v, x[i * n + j])


def by_step(k: Builder, n: Var) -> None:
    x, r = k.array("p", f32, n * 4, const=True), k.registers("r", f32, 4)
    with k.loop("i", 0, n * 4, 4) as i:
        r[0] = x.at(i, width=4)


def backwards(k: Builder, n: Var) -> None:
    x, v = k.array("p", f32, n, const=True), k.register("w", f32)
    with k.loop("i", n) as i:
        k.set(v, x[n - 1 - i])


@pytest.mark.parametrize("write", [grid_stride, mirrored, triangle, by_step, backwards])
def test_shown(write: Callable[[Builder, Var], None]) -> None:
    check_flow(line(write))


# -- and those that do not ------------------------------------------------------------------------


def refused(write: Callable[[Builder, Var], None], threads: int = 64) -> CheckError:
    with pytest.raises(CheckError) as caught:
        line(write, threads)
    return caught.value


def put(k: Builder, index: Expr | int, when: Expr | None = None) -> None:
    Array(k, "y", f32).put(index, 1.0, when=when)


def test_a_thread_that_leaves_is_named() -> None:
    error = refused(lambda k, n: put(k, k.block_x * 64 + k.thread))
    assert error.message == (
        "'y' has n elements, but thread 1 uses [1] at n = 1; the index is block_x * 64 + thread"
    )
    assert "done(predicate=True)" in error.advice
    far = refused(lambda k, n: put(k, k.thread + 10**8))
    assert "uses [100000000]" in far.message
    below = refused(lambda k, n: put(k, k.thread - 1, when=k.thread.lt(n)))
    assert "thread 0 uses [-1]" in below.message


def test_a_block_and_a_iteration_are_named() -> None:
    def late(k: Builder, n: Var) -> None:
        with k.loop("i", n) as i:
            put(k, i * 2, when=k.thread.eq(0))

    error = refused(late)
    assert "thread 0 uses [2] at i = 1, n = 2" in error.message

    def block(k: Builder, n: Var) -> None:
        put(k, k.block_x * 64 + k.thread, when=(k.block_x * 64 + k.thread).le(n))

    assert "thread 1 uses [1] at n = 1" in refused(block).message
    second = refused(lambda k, n: put(k, n + k.block_x - 1, when=k.thread.eq(0)))
    assert "thread 0 of block 1 uses [65] at n = 65" in second.message


def test_what_nobody_can_tell() -> None:
    """A condition that holds in launches too large to try."""
    error = refused(lambda k, n: put(k, k.thread, when=(n * n + k.thread).gt(10**8)))
    assert "cannot be shown to stay within its n elements: thread" in error.message


def test_a_wide_access_that_is_crooked() -> None:
    def crooked(k: Builder, n: Var) -> None:
        x, r = k.array("p", f32, n * 4, const=True), k.registers("r", f32, 2)
        with k.loop("i", n) as i:
            r[0] = x.at(i, width=2)

    error = refused(crooked)
    assert "cannot be shown to be aligned: thread 0 uses [1] at i = 1, n = 2" in error.message


# -- divisions, shifts, shuffles -------------------------------------------------------------------


def test_divisors_of_indices() -> None:
    def plain(k: Builder, n: Var) -> None:
        k.let("a", k.thread // k.scalar("m"))

    assert "'//' divides by m, which may be 0 in thread 0" in refused(plain).message

    def guarded(k: Builder, n: Var) -> None:
        m = k.scalar("m")
        with k.when(m.ne(0)):
            k.let("a", k.thread // m)
        put(k, k.thread % m, when=m.gt(0).and_(m.le(n)))
        k.set(k.register("w", i32), choose(m.gt(3), from_index(k.thread % (m - 3)), 0))

    check_flow(line(guarded))

    def varying(k: Builder, n: Var) -> None:
        k.let("a", 5 % (k.lane - 7))

    assert "may be 0 in thread 7" in refused(varying).message


def test_shifts_of_indices() -> None:
    def shifted(by: Callable[[Var], Expr]) -> Callable[[Builder, Var], None]:
        def write(k: Builder, n: Var) -> None:
            k.let("a", k.thread << by(n))

        return write

    assert "'<<' shifts by n, which may be 32" in refused(shifted(lambda n: n)).message
    check_flow(line(shifted(lambda n: n % 32)))


def quotient(dtype: DType, value: Callable[[Cell, Cell, Builder], Value]) -> Kernel:
    """A kernel that computes something of two numbers it reads."""
    k = Builder("quotient", block=32)
    x, y = k.array("x", dtype, 32, const=True), k.array("y", dtype, 32)
    a, b = k.register("a", dtype), k.register("b", dtype)
    k.set(a, x[k.thread])
    k.set(b, x[k.thread ^ 1])
    y[k.thread] = value(a, b, k)
    return k.done()


SAFE: dict[str, Callable[[Cell, Cell, Builder], Value]] = {
    "a mask": lambda a, b, k: a / ((b & 15) + 1),
    "a guard": lambda a, b, k: choose(b.ne(0), a / b, 0),
    "another guard": lambda a, b, k: choose(b.gt(2), a / (b - 1), 0),
    "the other side": lambda a, b, k: choose(b.eq(0), a, a / b),
    "a constant": lambda a, b, k: a / 3,
    "an index": lambda a, b, k: a / (from_index(k.lane, a.dtype) + 1),
    "at least one": lambda a, b, k: a / b.max(1),
    "a small shift": lambda a, b, k: a << (b & 7),
}
UNSAFE: dict[str, Callable[[Cell, Cell, Builder], Value]] = {
    "nothing": lambda a, b, k: a / b,
    "zero": lambda a, b, k: a / 0,
    "off by one": lambda a, b, k: a / ((b & 15) - 1),
    "another number": lambda a, b, k: choose(a.ne(0), a / b, 0),
    "it may wrap": lambda a, b, k: choose(b.ne(0), a / (b + 1), 0),
}


@pytest.mark.parametrize("dtype", [i32, u8, i64])
def test_divisors_of_values(dtype: DType) -> None:
    for value in SAFE.values():
        quotient(dtype, value)
    for value in UNSAFE.values():
        with pytest.raises(CheckError, match="a divisor may be zero"):
            quotient(dtype, value)
    with pytest.raises(CheckError, match="'<<' may shift too far"):
        quotient(dtype, lambda a, b, k: a << b)


@pytest.mark.parametrize("dtype", [i32, i64, u8])
def test_an_index_that_is_a_divisor(dtype: DType) -> None:
    """An index fits 32 bits in every launch; a smaller type may make a zero of it."""
    k = Builder("divided", block=32)
    n, y = k.scalar("n"), k.array("y", dtype, 32)
    with k.when((n - k.lane).ne(0)):
        y[k.thread] = Number(100, dtype) / from_index(n - k.lane, dtype)
    if dtype is u8:
        with pytest.raises(CheckError, match="a divisor may be zero"):
            k.done()
    else:
        k.done()


def test_a_division_on_the_side_that_is_not_taken_does_no_harm() -> None:
    k = Builder("guarded", block=32)
    x, y = k.array("x", i32, 32, const=True), k.array("y", i32, 32)
    a = k.register("a", i32)
    k.set(a, x[k.thread])
    y.put(k.thread, choose(a.ne(0), 100 / a, -1))
    out = np.zeros(32, np.int32)
    run(k.done(), [np.arange(-3, 29, dtype=np.int32), out])
    assert out[:7].tolist() == [-33, -50, -100, -1, 100, 50, 33]
    k = Builder("unguarded", block=32)
    x, y = k.array("x", i32, 32, const=True), k.array("y", i32, 32)
    a = k.register("a", i32)
    k.set(a, x[k.thread])
    y.put(k.thread, 100 / a)
    with pytest.raises(DeviceError, match="divided by zero"):
        run(k.raw(), [np.arange(-3, 29, dtype=np.int32), out])


def test_shuffle_amounts() -> None:
    def moved(amount: Callable[[Builder], Expr]) -> Callable[[Builder, Var], None]:
        def write(k: Builder, n: Var) -> None:
            v = k.register("w", f32, 0.0)
            k.set(v, k.shuffle(v, amount(k), "down"))

        return write

    check_flow(line(moved(lambda k: k.lane % 7)))
    error = refused(moved(lambda k: k.lane + 1))
    assert "by lane + 1, which may be 32 in thread 31" in error.message


# -- loops ----------------------------------------------------------------------------------------


def test_bounds_on_which_lanes_differ_are_refused() -> None:
    def write(k: Builder, n: Var) -> None:
        with k.loop("i", k.lane):
            k.comment("some lanes are here longer than others")

    assert "bounds that differ between lanes of a warp: 0 to lane" in refused(write).message


def test_a_barrier_in_a_loop_of_warps() -> None:
    def write(scope: str) -> Callable[[Builder, Var], None]:
        def body(k: Builder, n: Var) -> None:
            with k.loop("i", n + k.warp):
                k.barrier(scope)  # type: ignore[arg-type]

        return body

    check_flow(line(write("warp")))
    assert "differs between threads of a block" in refused(write("block")).message


def test_what_a_loop_sets_that_may_not_run() -> None:
    def write(least: int) -> Callable[[Builder, Var], None]:
        def body(k: Builder, n: Var) -> None:
            m = k.scalar("m")
            k.require(m.ge(least))
            a, b = k.register("a", f32), k.register("b", f32)
            with k.loop("i", m):
                k.set(a, 1.0)
            k.set(b, a)

        return body

    assert "'a' is read before it is set" in refused(write(0)).message
    check_flow(line(write(1)))


def test_registers_by_iterations() -> None:
    """Long unrolled loops over few registers take no time; order within an iteration counts."""
    k = Builder("iterations", block=32)
    y = k.array("y", f32, 32)
    r = k.registers("r", f32, 3)
    r[0] = 1.0
    r[1] = 2.0
    with k.loop("i", 4096) as i:
        r[(i + 2) % 3] = r[i % 3] + r[(i + 1) % 3]
    y[k.thread] = r[2]
    start = time.process_time()
    k.done()
    assert time.process_time() - start < 10
    k = Builder("early", block=32)
    r = k.registers("r", f32, 3)
    r[0] = 1.0
    with k.loop("i", 2) as i:
        r[i + 1] = r[i] + r[2 - i]
    with pytest.raises(CheckError, match=r"'r\[2\]' is read before it is set"):
        k.done()


def test_a_condition_on_unrolled_counters_is_followed() -> None:
    k = Builder("first", block=32)
    y, r = k.array("y", f32, 32), k.registers("r", f32, 4)
    with k.loop("i", 4) as i:
        with k.when(i.eq(0)):
            r[i] = 1.0
        with k.otherwise():
            r[i] = r[i - 1] * 2.0
    y[k.thread] = r[3]
    out = np.zeros(32, np.float32)
    run(k.done(), [out])
    assert set(out.tolist()) == {8.0}


def test_loops_are_lexically_scoped() -> None:
    """One name, two loops, different bounds; and a name for an expression in each."""
    k = Builder("scopes", block=32)
    y = k.array("y", i32, 96)
    with k.loop("i", 3) as i:
        at = k.let("at", i * 32 + k.thread)
        y[at] = from_index(1)
    with k.loop("i", 2, unroll=False) as i:
        at = k.let("at", i * 64)
        y.put(at + k.thread, from_index(2))
    k.done()


# -- conditions put in -----------------------------------------------------------------------------


def test_conditions_where_they_are_missing_and_nowhere_else() -> None:
    k = Builder("tail", block=64)
    n = k.scalar("n")
    x, y = k.array("x", f32, n, const=True), k.array("y", f32, n)
    w = k.constant("w", f32, 3)
    k.grid(ceil_div(n, 64))
    v = k.register("v", f32)
    i = k.let("i", k.block_x * 64 + k.thread)
    k.set(v, x[i - 1])
    k.set(v, v + w[k.thread])
    y[i] = v + 1.0
    y.put(i, v, when=i.lt(n))
    made = k.done(predicate=True)
    accesses = [each for each in walk(made.body) if isinstance(each, Load | Store)]
    assert [show(each.predicate) for each in accesses if each.predicate is not None] == [
        "i - 1 >= 0 and i - 1 < n",
        "i < n",
        "i < n",
    ]
    assert predicate_accesses(made) == made
    data, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    run(made, [100, data, out, np.array([10, 20, 30], np.float32)], races=False)
    expected = np.concatenate([[0], data[:-1]])
    for block in range(0, 100, 64):
        expected[block : block + 3] += [10, 20, 30]
    assert np.array_equal(out, expected)


def test_loads_give_what_they_are_asked_to() -> None:
    k = Builder("otherwise", block=32)
    x, y = k.array("x", i32, 5, const=True), k.array("y", i32, 32)
    v = k.register("v", i32)
    k.set(v, x.at(k.lane, when=k.lane.ne(2), otherwise=-7))
    y[k.lane] = v
    out = np.zeros(32, np.int32)
    run(k.done(predicate=True), [np.arange(5, dtype=np.int32), out])
    assert out[:6].tolist() == [0, 1, -7, 3, 4, -7]


def test_a_constant_read_twice_is_guarded_by_what_either_read_needs() -> None:
    k = Builder("twice", block=16)
    c, y = k.constant("c", f32, 16), k.array("y", f32, 16)
    at = k.let("at", k.thread - 3)
    y[k.thread] = c[at] + choose(at.ge(0), c[at], 0.0)
    out = np.zeros(16, np.float32)
    run(k.done(predicate=True), [np.arange(16, dtype=np.float32), out])
    assert out.tolist() == [0, 0, 0, *(2.0 * n for n in range(13))]


@pytest.mark.parametrize("n", [3, 0, -1, 40])
def test_what_a_launch_never_gets_to_may_be_undefined_there(n: int) -> None:
    k = Builder("guarded", block=32)
    size, y = k.scalar("n"), k.array("y", i32, 64)
    with k.when(size.gt(0)):
        y[k.thread] = from_index(k.thread // size)
    with k.when(size.ge(0).and_(size.lt(31))):
        y[k.thread + 32] = from_index(lift(1) << size)
    out = np.full(64, -5, np.int32)
    run(k.done(), [n, out])
    assert out[5] == (5 // n if n > 0 else -5)
    assert out[40] == (1 << n if 0 <= n < 31 else -5)
