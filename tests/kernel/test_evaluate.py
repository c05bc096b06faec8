"""What kernels mean, what they cost, and that mistakes are reported, not computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bench.common.kernel import kernels

from warploom.errors import DeviceError
from warploom.kernel import evaluate
from warploom.kernel.build import Builder, ceil_div, choose, from_index
from warploom.kernel.dtype import DType, f32, i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel, ShuffleMode


def one_block(name: str = "k", threads: int = 32, **options: int) -> tuple[Builder, object]:
    k = Builder(name, block=threads, **options)  # type: ignore[arg-type]
    return k, k.array("y", i32, threads)


def result(kernel: Kernel, threads: int = 32) -> list[int]:
    y = np.full(threads, -1, np.int32)
    run(kernel, [y])
    return y.tolist()


def test_blocks_in_several_batches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(999 + 2, dtype=np.float32)
    results, reports = [], []
    for batch in (1, 200, 1 << 16):
        monkeypatch.setattr(evaluate, "BATCH_THREADS", batch)
        y = np.zeros(999, np.float32)
        reports.append(run(kernels.stencil(), [x, y]).as_dict())
        results.append(y.tolist())
    assert results[0] == results[1] == results[2]
    assert reports[0] == reports[1] == reports[2]


def test_padding_removes_bank_conflicts() -> None:
    x, y = np.zeros(64 * 64, np.float32), np.zeros(64 * 64, np.float32)
    padded = run(kernels.transpose(), [x, y], {"height": 64, "width": 64})
    plain = run(kernels.transpose(pad=0), [x, y], {"height": 64, "width": 64})
    assert padded.bank_conflicts == 0
    # 4 blocks, 8 warps, 4 rounds, each read 32 ways in conflict.
    assert plain.bank_conflicts == 4 * 8 * 4 * 31
    assert padded.efficiency == 1.0
    assert padded.barriers == 4


def test_strided_loads_waste_sectors() -> None:
    k = Builder("strided", block=32)
    x, y = k.array("x", f32, 32 * 4, const=True), k.array("y", f32, 32)
    v = k.register("v", f32)
    k.set(v, x[k.lane * 4])
    y[k.lane] = v
    report = run(k.done(), [np.zeros(128, np.float32), np.zeros(32, np.float32)])
    assert report.loads["x"].sectors == 16
    assert report.load_efficiency == 0.25
    assert report.store_efficiency == 1.0


def test_wide_accesses() -> None:
    k = Builder("wide", block=32)
    x, y = k.array("x", f32, 128, const=True), k.array("y", f32, 128)
    r = k.registers("r", f32, 4)
    r[0] = x.at(k.lane * 4, width=4)
    y.put(k.lane * 4, r[0], width=4)
    data, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    report = run(k.done(), [data, out])
    assert np.array_equal(data, out)
    assert report.loads["x"].requests == 1
    assert report.efficiency == 1.0


def test_a_wide_access_must_be_aligned() -> None:
    k = Builder("crooked", block=1, warp_size=1)
    x = k.array("x", f32, 8, const=True)
    r = k.registers("r", f32, 4)
    r[0] = x.at(1, width=4)
    with pytest.raises(DeviceError, match="not aligned"):
        run(k.raw(), [np.zeros(8, np.float32)])


@pytest.mark.parametrize(
    ("mode", "by", "expected"),
    [
        ("idx", 3, lambda lane: 3),
        ("up", 2, lambda lane: lane - 2 if lane >= 2 else lane),
        ("down", 5, lambda lane: lane + 5 if lane + 5 < 32 else lane),
        ("xor", 7, lambda lane: lane ^ 7),
    ],
)
def test_shuffle_modes(mode: ShuffleMode, by: int, expected: Callable[[int], int]) -> None:
    k, y = one_block(threads=64)
    v = k.register("v", i32)
    k.set(v, k.shuffle(from_index(k.thread), by, mode))
    y[k.thread] = v  # type: ignore[index]
    assert result(k.done(), 64) == [t // 32 * 32 + expected(t % 32) for t in range(64)]


def test_a_lane_number_wraps_also_below_zero() -> None:
    k, y = one_block(warp_size=8)
    v = k.register("v", i32)
    k.set(v, k.shuffle(from_index(k.lane), k.lane - 3))
    y[k.thread] = v  # type: ignore[index]
    assert result(k.done()) == [(t - 3) % 8 for t in range(32)]


def test_other_modes_take_distances_within_the_warp() -> None:
    k, y = one_block()
    v = k.register("v", i32)
    k.set(v, k.shuffle(from_index(k.lane), k.lane - 1, "up"))
    y[k.thread] = v  # type: ignore[index]
    with pytest.raises(DeviceError, match=r"a shuffle 'up' is not within 0 to 31 at \[-1\]"):
        result(k.raw())


def test_branches_mask_and_are_counted() -> None:
    k, y = one_block(threads=64)
    v = k.register("v", i32, 0)
    with k.when(k.thread.lt(40)):
        k.set(v, 1)
        with k.when(k.thread.lt(32)):
            k.set(v, v + 1)
    with k.otherwise():
        k.set(v, 9)
    y[k.thread] = v  # type: ignore[index]
    out = np.zeros(64, np.int32)
    report = run(k.done(), [out])
    assert out.tolist() == [2] * 32 + [1] * 8 + [9] * 24
    assert report.branches == 4
    assert report.divergent_branches == 1


def test_selects_and_shuffles_count_per_warp() -> None:
    k, y = one_block(threads=64)
    v = k.register("v", i32)
    k.set(v, k.shuffle(choose(k.lane.lt(3), from_index(1), 2), 0))
    y[k.thread] = v  # type: ignore[index]
    report = run(k.done(), [np.zeros(64, np.int32)])
    assert (report.shuffles, report.selects) == (2, 2)


def test_predicated_load_gives_otherwise() -> None:
    k = Builder("tail", block=32)
    x, y = k.array("x", i32, 5, const=True), k.array("y", i32, 32)
    v = k.register("v", i32)
    k.set(v, x.at(k.lane, when=k.lane.lt(5), otherwise=-7))
    y[k.lane] = v
    out = np.zeros(32, np.int32)
    run(k.done(), [np.arange(5, dtype=np.int32), out])
    assert out.tolist() == [0, 1, 2, 3, 4] + [-7] * 27


def test_out_of_bounds_names_array_index_block_and_thread() -> None:
    k = Builder("far", block=32)
    n = k.scalar("n")
    y = k.array("y", f32, n)
    k.grid(ceil_div(n, 32))
    y[k.block_x * 32 + k.thread] = from_index(0, f32)
    with pytest.raises(
        DeviceError, match=r"'far': 'y' has 40 elements, but is used at \[40\] \(block 1, thread 8"
    ):
        run(k.raw(), [np.zeros(40, np.float32)])


def reversal(barrier: str) -> Kernel:
    k, y = one_block("reversal", threads=64)
    s = k.shared("s", i32, 64)
    v = k.register("v", i32)
    s[k.thread] = from_index(k.thread)
    if barrier:
        k.barrier(barrier)  # type: ignore[arg-type]
    k.set(v, s[63 - k.thread])
    y[k.thread] = v  # type: ignore[index]
    return k.done()


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(DeviceError, match=r"race on 's\[\d+\]': read and write by thread"):
        run(reversal(""), [np.zeros(64, np.int32)])
    assert result(reversal("block"), 64) == list(range(63, -1, -1))


def test_a_warp_barrier_orders_one_warp_only() -> None:
    with pytest.raises(DeviceError, match="race"):
        run(reversal("warp"), [np.zeros(64, np.int32)])
    k, y = one_block("within", threads=64)
    s = k.shared("s", i32, 64)
    v = k.register("v", i32)
    s[k.thread] = from_index(k.thread)
    k.barrier("warp")
    k.set(v, s[k.thread ^ 5])
    y[k.thread] = v  # type: ignore[index]
    assert result(k.done(), 64) == [t ^ 5 for t in range(64)]


def test_overwriting_what_others_still_read_is_a_race() -> None:
    k, y = one_block("reuse")
    s = k.shared("s", i32, 32)
    v = k.register("v", i32)
    with k.loop("i", 2):
        s[k.thread] = from_index(k.thread)
        k.barrier()
        k.set(v, s[31 - k.thread])
    y[k.thread] = v  # type: ignore[index]
    with pytest.raises(DeviceError, match="race on 's"):
        run(k.done(), [np.zeros(32, np.int32)])


def test_two_blocks_writing_one_cell_is_a_race() -> None:
    k = Builder("same", block=32)
    n = k.scalar("n")
    y = k.array("y", i32, n)
    k.grid(n // 32)
    y[k.thread] = from_index(k.block_x)
    run(k.done(), [np.zeros(32, np.int32)])
    with pytest.raises(DeviceError, match=r"write and write by thread 0 of block 1 and .* block 0"):
        run(k.done(), [np.zeros(64, np.int32)])


def test_two_threads_writing_one_cell_at_once_is_a_race() -> None:
    k, y = one_block("pile")
    y[k.thread // 2] = from_index(1)  # type: ignore[index]
    with pytest.raises(DeviceError, match=r"race on 'y\[0\]': write and write"):
        run(k.done(), [np.zeros(32, np.int32)])


def test_reading_shared_memory_nobody_wrote() -> None:
    k, y = one_block("unset")
    s = k.shared("s", i32, 32)
    v = k.register("v", i32)
    with k.when(k.thread.lt(30)):
        s[k.thread] = from_index(1)
    k.barrier()
    k.set(v, s[k.thread])
    y[k.thread] = v  # type: ignore[index]
    with pytest.raises(DeviceError, match=r"'s' is read where nothing was stored at \[30\]"):
        run(k.done(), [np.zeros(32, np.int32)])


def test_constant_arrays_and_scalar_values() -> None:
    k = Builder("scale", block=32)
    factor = k.number("factor", f32)
    y = k.array("y", f32, 32)
    w = k.constant("w", f32, 4)
    v = k.register("v", f32, 0.0)
    with k.loop("i", 4) as i:
        k.set(v, v + w[i] * factor)
    y[k.lane] = v
    out, weights = np.zeros(32, np.float32), np.array([1, 2, 3, 4], np.float32)
    run(k.done(), [0.5, out, weights])
    assert out.tolist() == [5.0] * 32


@pytest.mark.parametrize("dtype", [DType.U8, DType.I32, DType.U32])
def test_integers_wrap(dtype: DType) -> None:
    k = Builder("wrap", block=32)
    y = k.array("y", dtype, 32)
    top = np.iinfo(dtype.numpy).max
    v = k.register("v", dtype, top)
    y[k.lane] = v + 1
    out = np.zeros(32, dtype.numpy)
    run(k.done(), [out])
    assert set(out.tolist()) == {int(np.iinfo(dtype.numpy).min)}
