"""Stores ahead: what they mean, what is refused, and that copies past the registers do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.emit.opencl import opencl
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Const, Var
from warploom.kernel.check import check
from warploom.kernel.dtype import f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import (
    ArrayParam,
    Barrier,
    Cell,
    Kernel,
    Load,
    Registers,
    Shared,
    Stmt,
    Store,
)
from warploom.kernel.synchronise import synchronise
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction

THREADS = 64
THREAD = Var("thread")
HERE = Cell("v", Const(0), f32)
WAITED = Barrier(waits=0)


def copied(offset: int = 0, into: str = "tile", inside: int = 100) -> list[Stmt]:
    """Two neighbours of x for each thread, zeros beyond an element."""
    place = THREAD * 2
    return [
        Load(HERE, "x", place + offset, (place + offset).lt(inside), width=2),
        Store(into, place, HERE, width=2, ahead=True),
    ]


def read(array: str = "tile", offset: int = 0) -> list[Stmt]:
    """Every thread reads what another one copied."""
    return [
        Load(Cell("w", None, f32), array, 2 * THREADS - 1 - THREAD),
        Store("y", THREAD + offset, Cell("w", None, f32)),
    ]


def kernel(*body: Sequence[Stmt]) -> Kernel:
    declared = [Shared("tile", f32, 2 * THREADS), Shared("other", f32, 2 * THREADS)]
    registers = [Registers("v", f32, 2), Registers("w", f32)]
    return Kernel(
        "moved",
        (ArrayParam("x", f32, Const(256), const=True), ArrayParam("y", f32, Const(128))),
        (THREADS, 1, 1),
        (Const(1), Const(1), Const(1)),
        (*declared, *registers, *(stmt for part in body for stmt in part)),
    )


X = np.random.default_rng(3).standard_normal(256).astype(np.float32)


def ran(made: Kernel) -> np.ndarray:
    check(made)
    y = np.zeros(128, np.float32)
    run(made, [X.copy(), y])
    return y


ONCE = kernel(copied(), [WAITED], read())
# Two groups: the second is still on its way while the first is read.
TWICE = kernel(
    copied(), [WAITED], copied(128, "other", 256), [Barrier(waits=1)], read(), [WAITED],
    read("other", THREADS),
)  # fmt: skip


def wanted(twice: bool) -> np.ndarray:
    first = np.where(np.arange(128) < 100, X[:128], 0)[::-1][:THREADS]
    second = X[128:][::-1][:THREADS] if twice else np.zeros(THREADS, np.float32)
    return np.concatenate([first, second])


@pytest.mark.parametrize("twice", [False, True])
def test_what_is_stored_ahead_is_there_after_the_barrier_that_waits(twice: bool) -> None:
    made = TWICE if twice else ONCE
    assert (ran(made) == wanted(twice)).all()
    assert synchronise(made) == made  # a barrier that waits is a barrier


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ((copied(), [Barrier()], read(), [WAITED]), "read where nothing was stored"),
        ((copied(), [WAITED], read(), copied(128), [WAITED]), "race"),
        ((copied(), [Barrier(waits=1)], read(), [WAITED]), "read where nothing was stored"),
        ((copied(), [WAITED], copied(), [Barrier()], read(), [WAITED]), "nothing was stored"),
        ((copied(), [Barrier()]), "nothing waits"),
    ],
)
def test_mistakes_are_found(body: Sequence[Sequence[Stmt]], said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        ran(kernel(*body))


def test_only_shared_arrays_are_stored_ahead_and_only_blocks_wait() -> None:
    stored = Store("y", THREAD, Cell("w", None, f32), ahead=True)
    with pytest.raises(CheckError, match="must be a shared array"):
        check(kernel([stored]))
    with pytest.raises(CheckError, match="use a block barrier"):
        check(kernel([Barrier("warp", 0)]))


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("made", [ONCE, TWICE])
def test_the_compiled_copies_do_the_same(made: Kernel) -> None:
    function = EmulatedFunction(made)
    assert "cp.async.ca.shared.global" in function.ptx
    y = np.zeros(128, np.float32)
    report = function([X.copy(), y], (1, 1, 1))
    assert not report.races
    assert (y == wanted(made is TWICE)).all()


def test_registers_that_others_read_are_not_passed_by() -> None:
    """Nor is anything in a language without such copies."""
    kept = replace(ONCE, body=(*ONCE.body, Store("y", THREAD + THREADS, HERE)))
    check(kept)
    assert "cp.async.ca" in cuda(ONCE)
    assert "float v[2]" not in cuda(ONCE)
    assert "cp.async.ca" not in cuda(kept)
    assert "cp.async" not in opencl(ONCE) + c(ONCE)
