"""The second look at kernels notices what it is there for."""

from __future__ import annotations

import pytest

from warploom.errors import CheckError
from warploom.index.ir import Const
from warploom.kernel.build import Builder
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Kernel
from warploom.machine.record import CUDA, MALI
from warploom.trust.mapped import check_on


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
        check_on(reversing(threads=512, size=512), MALI)
