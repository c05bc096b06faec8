"""Work that is counted without running a kernel, beside what the simulator counts when it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench.common.kernel import kernels
from bench.common.loopnest.running import implementations

from warploom.emit.cuda import cuda
from warploom.index.ir import Const
from warploom.kernel.build import Builder
from warploom.kernel.dtype import f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import For, Kernel, Load, Stmt, Store
from warploom.kernel.work import work_of
from warploom.loopnest.build import LoopNest
from warploom.loopnest.lower import lower
from warploom.loopnest.space import NestSpace
from warploom.machine.report import Report
from warploom.runtime.compile import compile_cuda


def ran(kernel: Kernel, scalars: dict[str, int | float] | None = None) -> Report:
    sizes = [int(each.size.value) for each in kernel.arrays if isinstance(each.size, Const)]
    return run(kernel, [np.ones(size, np.float32) for size in sizes], scalars)


@pytest.mark.parametrize("pad", [0, 1])
def test_a_transposition_is_counted_as_it_runs(pad: int) -> None:
    sizes = {"height": 64, "width": 96}
    x, y = np.zeros(64 * 96, np.float32), np.zeros(64 * 96, np.float32)
    report = run(kernels.transpose(pad=pad), [x, y], dict(sizes))
    work = work_of(kernels.transpose(pad=pad), sizes)
    assert work.blocks == 6
    requests = report.global_loads.requests + report.global_stores.requests
    assert work.blocks * work.requests == requests
    assert work.blocks * work.wavefronts == report.shared.wavefronts
    assert work.blocks * work.barriers == report.barriers
    assert work.touched == work.fetched == 2 * 4 * 64 * 96


def strided(step: int) -> Kernel:
    """Each thread adds up eight numbers that lie `step` apart."""
    k = Builder("strided", block=64)
    x, y = k.array("x", f32, 4 * 64 * 8 * step, const=True), k.array("y", f32, 4 * 64)
    k.grid(4)
    total, one = k.register("total", f32, 0.0), k.register("one", f32)
    with k.loop("i", 8, unroll=False) as i:
        k.set(one, x[(k.block_x * 64 + k.thread) * 8 * step + i * step])
        k.set(total, total + one)
    y[k.block_x * 64 + k.thread] = total
    return k.done()


@pytest.mark.parametrize(("step", "sectors"), [(1, 64), (2, 128), (8, 512)])
def test_sectors_that_iterations_share_count_once(step: int, sectors: int) -> None:
    work = work_of(strided(step))
    assert work.sectors == sectors + 64 * 4 / 32
    assert work.requests == 2 * 8 + 2
    assert (work.arithmetic, work.iterations) == (2 * 8, 0)
    assert work.touched == work.fetched == 32 * 4 * work.sectors
    assert work.lines == 2 * 8 * min(32, 8 * step) + 2


def parts_of_sectors(streaming: bool) -> Kernel:
    """Each thread reads four neighbours, one after the other, and writes four, for which its warp
    has each of their sixteen sectors four times."""
    k = Builder("parts", block=32)
    x, y = k.array("x", f32, 128 * 10, const=True), k.array("y", f32, 128 * 10)
    k.grid(10)
    one = k.register("one", f32)
    with k.loop("i", 4) as i:
        k.set(one, x[k.block_x * 128 + k.thread * 4 + i])
        y[k.block_x * 128 + k.thread * 4 + i] = one
    made = k.done()

    def again(stmt: Stmt) -> Stmt:
        match stmt:
            case Load() | Store():
                return replace(stmt, streaming=streaming)
            case For():
                return replace(stmt, body=tuple(map(again, stmt.body)))
        return stmt

    return replace(made, body=tuple(map(again, made.body)))


def test_what_is_stored_goes_on_as_often_as_it_is_stored() -> None:
    """What is loaded stays in L1. Requests to store what nobody keeps are counted by themselves."""
    kept, again = (work_of(parts_of_sectors(streaming)) for streaming in (False, True))
    assert kept.sectors == again.sectors == 16 + 4 * 16
    assert kept.touched == again.touched == 32 * 10 * 32
    assert kept.asked == 10 * (4 + 4 * 4)
    assert (kept.streamed, again.streamed) == (0, 4)


def rows_folded(loads: int, trips: int) -> Kernel:
    """Each iteration loads some elements and adds them up."""
    k = Builder("rows", block=32)
    x, y = k.array("x", f32, 32 * loads * trips, const=True), k.array("y", f32, 32)
    total = k.register("total", f32, 0.0)
    some = [k.register(f"x{n}", f32) for n in range(loads)]
    with k.loop("i", trips, unroll=False) as i:
        for n, each in enumerate(some):
            k.set(each, x[(i * loads + n) * 32 + k.thread])
        for each in some:
            k.set(total, total + each)
    y[k.thread] = total
    return k.done()


@pytest.mark.parametrize("loads", [4, 10, 40])
def test_iterations_wait_together_as_the_compiler_unrolls_them(loads: int) -> None:
    """Long bodies are left as they are, so that each iteration waits."""
    kernel = rows_folded(loads, 100)
    text = compile_cuda(cuda(kernel), "sm_90", contract=False).text
    unrolled = text.count("ld.global") // loads
    assert unrolled == {4: 4, 10: 2, 40: 1}[loads]
    assert work_of(kernel).global_rounds == 100 / unrolled


def test_what_all_blocks_read_is_touched_once() -> None:
    k = Builder("scaled", block=32)
    x, y = k.array("x", f32, 32, const=True), k.array("y", f32, 32 * 10)
    k.grid(10)
    one = k.register("one", f32)
    k.set(one, x[k.thread])
    y[k.block_x * 32 + k.thread] = one
    work = work_of(k.done())
    assert (work.touched, work.fetched) == (128 + 1280, 1280)
    assert (work.sectors, work.common) == (4, 4)


def test_a_load_that_no_iteration_changes_is_done_before_the_loop() -> None:
    k = Builder("hoisted", block=32)
    x, y = k.array("x", f32, 32, const=True), k.array("y", f32, 32 * 100)
    one = k.register("one", f32)
    with k.loop("i", 100, unroll=False) as i:
        k.set(one, x[k.thread])
        y[i * 32 + k.thread] = one
    work = work_of(k.done())
    assert work.requests == 1 + 100
    assert (work.global_rounds, work.sectors) == (1, 4 + 400)


def fold_of_a_block(trips: int, unroll: bool) -> Kernel:
    """Each thread stores to shared memory; the first one adds up what all have stored."""
    k = Builder("fold", block=trips)
    x, y = k.array("x", f32, trips, const=True), k.array("y", f32, 1)
    shared = k.shared("s", f32, trips)
    total, one = k.register("total", f32, 0.0), k.register("one", f32)
    k.set(one, x[k.thread])
    shared[k.thread] = one
    k.barrier()
    with k.loop("i", trips, unroll=unroll) as i:
        k.set(one, shared[i])
        k.set(total, total + one)
    with k.when(k.thread.eq(0)):
        y[0] = total
    return k.done()


@pytest.mark.parametrize("unroll", [False, True])
def test_what_one_thread_stores_is_computed_by_its_warp_alone(unroll: bool) -> None:
    """Unless a loop stays, which compilers do not move into a condition."""
    work = work_of(fold_of_a_block(128, unroll))
    assert work.arithmetic == 128 * (1 if unroll else 4)
    assert work.wavefronts == 4 + 128 * (1 if unroll else 4)


def test_an_unrolled_loop_around_others_loads_once() -> None:
    k = Builder("again", block=32)
    x, y = k.array("x", f32, 64, const=True), k.array("y", f32, 32)
    total, one = k.register("total", f32, 0.0), k.register("one", f32)
    with k.loop("i", 4), k.loop("j", 2) as j:
        k.set(one, x[j * 32 + k.thread])
        k.set(total, total + one)
    y[k.thread] = total
    kernel = k.done()
    text = compile_cuda(cuda(kernel), "sm_90", contract=False).text
    assert work_of(kernel).requests == 2 + 1 == text.count("ld.global") + text.count("st.global")


def staged(ahead: bool) -> Kernel:
    """Ten times, a block loads a row to shared memory and adds what lies there."""
    k = Builder("staged", block=32)
    x, y = k.array("x", f32, 32 * 11, const=True), k.array("y", f32, 32)
    shared = k.shared("s", f32, 32)
    total, one, other = (k.register(name, f32, 0.0) for name in ("total", "one", "other"))
    with k.loop("i", 10, unroll=False) as i:
        k.set(one, x[i * 32 + k.thread])
        if not ahead:
            shared[k.thread] = one
            k.barrier()
        k.set(other, shared[31 - k.thread])
        k.set(total, total + other)
        k.barrier()
        if ahead:
            shared[k.thread] = one
            k.barrier()
    y[k.thread] = total
    return k.done()


def test_what_is_asked_for_ahead_is_waited_for_apart() -> None:
    plain, ahead = work_of(staged(ahead=False)), work_of(staged(ahead=True))
    assert (plain.global_rounds, plain.ahead_rounds) == (10, 0)
    assert (ahead.global_rounds, ahead.ahead_rounds) == (0, 10)


def product() -> LoopNest:
    nest = LoopNest("product")
    m, n, k = nest.axis("m", 8, 4), nest.axis("n", 8, 4), nest.axis("k", 4)
    A, B, C = nest.array("A", m, k), nest.array("B", k, n), nest.array("C", m, n)
    C[m, n] = nest.sum(A[m, k] * B[k, n], over=k)
    return nest


@pytest.mark.parametrize("seed", range(3))
def test_implementations_of_a_product_are_counted_as_they_run(seed: int) -> None:
    """Where all blocks and iterations are alike: stores and barriers exactly, loads at most."""
    looked_at = 0
    for made in implementations(NestSpace(product().done()), 4, seed):
        kernel = lower(made)
        work, report = work_of(kernel), ran(kernel)
        loads, stores = report.global_loads.requests, report.global_stores.requests
        assert stores <= work.blocks * work.requests <= loads + stores
        assert work.blocks * work.wavefronts <= report.shared.wavefronts
        assert work.blocks * work.barriers == report.barriers
        assert 0.7 < work.touched / (4 * (8 * 4 + 4 * 8 + 8 * 8)) <= 1
        looked_at += 1
    assert looked_at


def test_what_several_statements_load_is_loaded_once() -> None:
    """As compilers do it: of what nothing is stored to, without conditions, unless it streams."""
    found = []
    for streaming in (False, True):
        k = Builder("twice", block=128)
        x = k.array("x", f32, 1 << 12, const=True)
        k.grid(1 << 5)
        at = k.let("at", k.block_x * 128 + k.thread)
        for name in ("y", "z"):
            y, held = k.array(name, f32, 1 << 12), k.register(f"from_{name}", f32)
            k.set(held, x.at(at, streaming=streaming))
            y[at] = held
        found.append(work_of(k.done()).requests)
    assert found == [4 + 2 * 4, 2 * 4 + 2 * 4]
