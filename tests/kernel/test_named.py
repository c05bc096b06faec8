"""Indices that data decide: named from a register, -1 where they lie beside what there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tools import require

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.errors import CheckError, DeviceError, EmitError
from warploom.index.ir import Var
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType, f32, i32, i64, u8, u32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Barrier, Kernel, Load, walk
from warploom.kernel.names import renamed
from warploom.kernel.synchronise import synchronise
from warploom.kernel.work import work_of
from warploom.runtime.callable import load

ROWS, WIDTH, THREADS = 200, 8, 64


def gather(dtype: DType = i32, guarded: bool = True, rows: int = ROWS) -> Kernel:
    """y[t] = table[named[t]], rows of which four neighbours are loaded at once."""
    k = Builder("gather", block=THREADS)
    k.array("table", f32, rows * WIDTH, const=True)
    named, y = k.array("named", dtype, THREADS, const=True), k.array("y", f32, THREADS * 4)
    held, v = k.register("held", dtype), k.registers("v", f32, 4)
    k.set(held, named[k.thread])
    row = k.named("row", held, rows)
    index = row * WIDTH + 4
    k.add(Load(v[0], "table", index, row.ge(0) if guarded else None, None, 4))
    for at in range(4):
        y[k.thread * 4 + at] = v[at]
    return k.done()


def given(dtype: DType) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    limits = np.iinfo(dtype.numpy)
    named = random.integers(0, min(ROWS, limits.max), THREADS).astype(dtype.numpy)
    named[:4] = [limits.min, limits.max, min(ROWS, limits.max), min(ROWS - 1, limits.max)]
    table = random.standard_normal(ROWS * WIDTH).astype(np.float32)
    inside = (named >= 0) & (named < ROWS)
    rows = table.reshape(ROWS, WIDTH)[np.where(inside, named, 0).astype(np.int64), 4:]
    return table, named, np.where(inside[:, None], rows, 0).astype(np.float32).reshape(-1)


@pytest.mark.parametrize("dtype", [i32, i64, u32, u8], ids=repr)
@pytest.mark.parametrize("device", ["simulator", "c", "ptx"])
def test_what_data_name_is_loaded_and_nothing_beside_it(device: Any, dtype: DType) -> None:
    if device != "simulator":
        require(device)
    table, named, wanted = given(dtype)
    y = np.full(THREADS * 4, 77, np.float32)
    if device == "simulator":
        run(gather(dtype), [table, named, y])
    else:
        load(gather(dtype), device)(table, named, y)
    assert np.array_equal(y, wanted)


def test_what_may_be_beside_the_array_is_refused() -> None:
    with pytest.raises(CheckError, match="'table' cannot be shown to stay within its 1600"):
        gather(guarded=False)
    with pytest.raises(CheckError, match="'row' names a f32"):
        gather(f32)
    k = Builder("unknown", block=THREADS)
    y, v = k.array("y", f32, 8), k.register("v", f32, initial=0)
    y[Var("row")] = v
    with pytest.raises(CheckError, match="'row' is not defined here"):
        k.done()


def test_who_stores_where_data_say_is_watched_and_parted() -> None:
    """Nothing is known of the cell: a barrier stands before it is read, and a race is found."""
    k = Builder("scatter", block=THREADS)
    named, y = k.array("named", i32, THREADS, const=True), k.array("y", i32, THREADS)
    cells, held, v = k.shared("cells", i32, THREADS), k.register("held", i32), k.register("v", i32)
    k.set(held, named[k.thread])
    row = k.named("row", held, THREADS)
    with k.when(row.ge(0)):
        cells[row] = held
    k.set(v, cells[k.thread])
    y[k.thread] = v
    made = synchronise(k.done())
    assert sum(isinstance(each, Barrier) for each in walk(made.body)) == 1
    order = np.random.default_rng(0).permutation(THREADS).astype(np.int32)
    got = np.zeros(THREADS, np.int32)
    run(made, [order, got])
    assert np.array_equal(got, np.arange(THREADS))
    with pytest.raises(DeviceError, match="race on 'cells"):
        run(made, [order // 2, got])


def test_c_keeps_no_such_name_where_threads_meet() -> None:
    k = Builder("late", block=THREADS)
    named, y = k.array("named", i32, THREADS, const=True), k.array("y", i32, THREADS)
    cells, held = k.shared("cells", i32, THREADS), k.register("held", i32)
    k.set(held, named[k.thread])
    row = k.named("row", held, THREADS)
    cells[k.thread] = held
    k.barrier()
    v = k.register("v", i32, initial=0)
    with k.when(row.ge(0)):
        k.set(v, cells[row])
    y[k.thread] = v
    made = k.done()
    assert "const int row" in cuda(made)
    with pytest.raises(EmitError, match="'row' is named by data before threads meet"):
        c(made)


def test_a_name_is_renamed_with_its_register() -> None:
    made = cuda(renamed(gather(), {"row": "place", "held": "kept"}))
    assert "const int place = kept >= 0 ? (kept < 200 ? kept : -1) : -1;" in made


def test_work_takes_rows_to_be_anywhere() -> None:
    """Each lane has sectors of its own in a large table; in a short one lanes have the same."""
    many, few = work_of(gather(rows=1 << 20)), work_of(gather(rows=2))
    assert many.touched - few.touched == 32 * (THREADS - 2)
    assert many.global_rounds == 2  # the second load waits for the first
