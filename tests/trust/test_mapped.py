"""The second look at kernels notices what it is there for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from bench.common.trust.mapped import check_on

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr
from warploom.kernel.build import Builder
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Kernel, Store
from warploom.machine.record import CUDA, machine_named


def reversing(*, barrier: str = "block", threads: int = 64, size: int = 64) -> Kernel:
    """Each thread writes a cell and reads that of another one."""
    k = Builder("reversing", block=threads)
    x, y = k.array("x", f32, Const(size), const=True), k.array("y", f32, Const(size))
    row = k.shared("row", f32, threads)
    v = k.register("v", f32)
    k.set(v, x[k.thread])
    row[k.thread] = v
    if barrier == "block":
        k.barrier()
    elif barrier == "warp":
        k.barrier("warp")
    elif barrier == "some":
        with k.when(k.thread.lt(8)):
            k.barrier()
    k.set(v, row[Const(threads - 1) - k.thread])
    y[k.thread] = v
    return k.raw()


def test_what_is_right_passes() -> None:
    check_on(reversing(), CUDA)
    check_on(reversing(barrier="warp", threads=32), CUDA)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (reversing(barrier="none"), "that one thread writes, others read"),
        (reversing(barrier="warp"), "that one thread writes, others read"),
        (reversing(barrier="some"), "some threads do not meet"),
        (reversing(size=63), "'x' is left"),
    ],
)
def test_what_is_wrong_is_noticed(kernel: Kernel, said: str) -> None:
    with pytest.raises(CheckError, match=said):
        check_on(kernel, CUDA)


def test_two_writers_of_a_cell_are_noticed() -> None:
    k = Builder("crowded", block=64)
    y = k.array("y", f32, Const(32))
    v = k.register("v", f32, 0.0)
    y[k.thread // 2] = v
    with pytest.raises(CheckError, match="others write"):
        check_on(k.raw(), CUDA)


def test_a_machine_without_room_is_noticed() -> None:
    with pytest.raises(CheckError, match="a block of"):
        check_on(reversing(threads=512, size=512), machine_named("mali"))


def by_block(index: Callable[[Builder], Expr], *, read: bool = False, grid: int = 3) -> Kernel:
    """Each thread of each block writes, or reads and then writes, one cell of y."""
    k = Builder("by_block", block=32)
    k.grid(grid)
    y = k.array("y", f32, Const(256))
    v = k.register("v", f32, 0.0)
    if read:
        k.set(v, y[index(k)])
    y[k.block_x * 32 + k.thread if read else index(k)] = v
    return k.raw()


def test_blocks_that_meet_in_global_memory_are_noticed() -> None:
    check_on(by_block(lambda k: k.block_x * 32 + k.thread), CUDA)
    check_on(by_block(lambda k: k.block_x * 32 + k.thread, read=True), CUDA)
    with pytest.raises(CheckError, match="two blocks write"):
        check_on(by_block(lambda k: k.thread), CUDA)
    with pytest.raises(CheckError, match="one block writes, another reads"):
        check_on(by_block(lambda k: k.block_x * 32 + k.thread + 32, read=True), CUDA)


def in_iterations(*, barrier: bool, last: int = 0) -> Kernel:
    """In each of eight iterations a thread writes its cell, and reads that of another one."""
    k = Builder("in_iterations", block=64)
    y = k.array("y", f32, Const(64))
    row = k.shared("row", f32, 64)
    v = k.register("v", f32, 0.0)
    with k.loop("i", 8) as i:
        row[k.thread + i // 7 * last] = v
        k.barrier()
        k.set(v, row[Const(63) - k.thread])
        if barrier:
            k.barrier()
    y[k.thread] = v
    return k.raw()


def test_what_the_next_iteration_writes_is_not_read_by_this_one() -> None:
    check_on(in_iterations(barrier=True), CUDA)
    with pytest.raises(CheckError, match="others read"):
        check_on(in_iterations(barrier=False), CUDA)


def test_the_last_iteration_is_looked_at() -> None:
    with pytest.raises(CheckError, match="'row' is left at 1 to 64"):
        check_on(in_iterations(barrier=True, last=1), CUDA)


def test_registers_are_those_needed_together() -> None:
    def kernel(*, crossed: bool) -> Kernel:
        k = Builder("many", block=32)
        y = k.array("y", f32, Const(32))
        v = k.register("v", f32, 0.0)
        a, b = (k.registers(name, f32, 40) for name in "ab")
        crossing = [(a[0], v), (b[0], v), (a[0], b[0]), (v, a[0])]
        order = crossing if crossed else [(a[0], v), (v, a[0]), (b[0], v)]
        for target, value in order:
            k.set(target, value)
        y[k.thread] = v
        return k.raw()

    check_on(kernel(crossed=False), machine_named("mali"))
    with pytest.raises(CheckError, match="81 registers of each of 32 threads"):
        check_on(kernel(crossed=True), machine_named("mali"))


def test_a_group_has_registers_for_all_its_threads() -> None:
    def kernel(threads: int) -> Kernel:
        k = Builder("wide", block=threads)
        y = k.array("y", f32, Const(threads))
        own = k.registers("own", f32, 100)
        k.set(own[0], 1.0)
        y[k.thread] = own[0]
        return k.raw()

    check_on(kernel(512), CUDA)
    with pytest.raises(CheckError, match="100 registers of each of 1024 threads"):
        check_on(kernel(1024), CUDA)


def test_what_is_not_followed_is_refused() -> None:
    """A store ahead takes effect when a barrier waits for it: nothing here knows which one does."""
    kernel = reversing()
    body = tuple(
        replace(each, ahead=True) if isinstance(each, Store) and each.array == "row" else each
        for each in kernel.body
    )
    with pytest.raises(CheckError, match="does not follow"):
        check_on(replace(kernel, body=body), CUDA)
