"""Rings, boxes, products of warp groups: what they mean, what they have to be, what CUDA makes of
them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench.common.kernel.hopper_matmul import Setting

from warploom.emit.cuda import cuda
from warploom.emit.hip import hip
from warploom.emit.opencl import opencl
from warploom.errors import CheckError, DeviceError, EmitError, WarploomError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel import ir
from warploom.kernel.allocate import allocate
from warploom.kernel.build import Builder, cast
from warploom.kernel.check import check
from warploom.kernel.check_hopper import of_hopper
from warploom.kernel.dtype import DType, bf16, coded, decoded, f16, f32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Cell, Fill, Kernel, Ring, Tile, WarpgroupProduct
from warploom.kernel.names import renamed
from warploom.kernel.synchronise import synchronise
from warploom.kernel.warpgroup import BulkStore, LoadMatrix, StoreMatrix
from warploom.kernel.work import work_of
from warploom.machine.proof import Reach
from warploom.runtime.callable import load
from warploom.runtime.compile import arch_of, can_compile, compile_cuda
from warploom.runtime.emulated import EmulatedFunction

SMALL = Setting((64, 64, 64), 2, 1)
needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")


def numbers(rows: int, columns: int, dtype: DType, whole: bool = False) -> Any:
    r = np.random.default_rng(rows + columns)
    made = r.integers(-2, 3, (rows, columns)) if whole else r.standard_normal((rows, columns))
    held = made.astype(np.float32)
    return coded(held, dtype).view(dtype.numpy) if dtype.is_code else held


def arguments(setting: Setting, m: int, n: int, k: int, whole: bool = False) -> list[Any]:
    a, b = (numbers(each, k, setting.dtype, whole) for each in (m, n))
    a, b = (np.ascontiguousarray(each.T) if dense == "mn" else each
            for each, dense in zip((a, b), setting.majors, strict=True))  # fmt: skip
    return [m, n, k, 2, a, b, np.zeros((m, n), setting.out.numpy)]


def product(setting: Setting, given: list[Any]) -> Any:
    a, b = (decoded(each, setting.dtype) if setting.dtype.is_code else each for each in given[4:6])
    left = a.T if setting.majors[0] == "mn" else a
    return left @ (b if setting.majors[1] == "mn" else b.T)


def evaluated(setting: Setting, given: list[Any]) -> Any:
    out = np.zeros_like(given[-1])
    flat = [each.reshape(-1) if isinstance(each, np.ndarray) else each for each in given[:-1]]
    run(setting.kernel(), [*flat, out.reshape(-1)])
    return out


SETTINGS = {
    "direct": (SMALL, (72, 72, 136)),
    "two consumers": (Setting((128, 64, 64), 2, 2), (136, 64, 72)),
    "two parts": (Setting((128, 64, 64), 2, 1), (72, 64, 72)),
    "staged": (replace(SMALL, staged=1), (72, 72, 72)),
    "staged by two": (Setting((64, 128, 64), 2, 1, staged=2), (64, 136, 72)),
    "cluster": (replace(SMALL, cluster=2), (136, 64, 72)),
    "cluster, n dense": (replace(SMALL, cluster=2, majors=("k", "mn")), (136, 64, 72)),
    "f16, all dense": (replace(SMALL, kind="f16", out=f16, majors=("mn", "mn")), (72, 72, 136)),
    "apart": (Setting((64, 64, 64), 3, 2, apart=True), (200, 64, 136)),
    "apart, staged": (Setting((64, 64, 64), 2, 2, staged=1, apart=True), (136, 64, 72)),
    "tf32": (Setting((64, 64, 32), 2, 1, kind="tf32", out=f32), (64, 72, 40)),
    "e4m3": (Setting((64, 64, 128), 2, 1, kind="e4m3"), (64, 72, 144)),
    "deep": (Setting((64, 64, 128), 2, 1), (64, 64, 136)),
}


@needs_compiler
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_emulator_gives_the_same_bits_under_every_schedule(name: str) -> None:
    setting, sizes = SETTINGS[name]
    given = arguments(setting, *sizes)
    function = EmulatedFunction(setting.kernel())
    blocks = setting.blocks(*sizes[:2], 2 * setting.cluster)
    report = function.launch(blocks, function.packed(given), races=True, prove=True)
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    wanted = evaluated(setting, given)
    np.testing.assert_array_equal(given[-1].view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("name", ["direct", "cluster", "apart, staged", "e4m3", "f16, all dense"])
def test_whole_numbers_are_multiplied_exactly(name: str) -> None:
    setting, sizes = SETTINGS[name]
    given = arguments(setting, *sizes, whole=True)
    found = evaluated(setting, given)
    exact = product(setting, given)
    wanted = coded(exact, setting.out) if setting.out.is_code else exact
    np.testing.assert_array_equal(found.view(wanted.dtype), wanted)


@needs_compiler
def test_ptxas_lets_products_follow_each_other() -> None:
    for setting in (Setting((128, 256, 64), 4), Setting((256, 128, 64), 3, staged=2)):
        text = cuda(setting.kernel())
        made = compile_cuda(text, "sm_90a", kind="cubin", contract=False,
                            options=("--ptxas-options=-v",))  # fmt: skip
        assert "serialized" not in made.log
        assert "0 bytes spill stores" in made.log


def test_the_text_says_how_many_bytes_come_and_who_says_that_a_stage_is_empty() -> None:
    text = cuda(Setting((128, 64, 64), 3, 2, cluster=2).kernel())
    assert "__cluster_dims__(2) __launch_bounds__(384)" in text
    assert f"_expect(shared_begin + {73728} + 8 * stage, {(128 + 64) * 64 * 2});" in text
    assert "_barrier_begin(shared_begin + 73752 + 8 * i, 4);" in text  # of two blocks, two groups
    assert "t > 0 || step > 0" in text


def test_a_device_is_given_maps_of_the_arrays_of_a_call() -> None:
    given = arguments(SMALL, 64, 64, 64)
    load(SMALL.kernel(), "simulator")(*given)
    np.testing.assert_array_equal(given[-1], evaluated(SMALL, given))
    with pytest.raises(DeviceError, match="142 bytes apart"):
        load(SMALL.kernel(), "simulator")(*arguments(SMALL, 64, 64, 71))


def test_products_and_boxes_are_counted() -> None:
    setting = Setting((128, 64, 64), 3, 2, staged=1)
    work = work_of(setting.kernel(), {"m": 128, "n": 64, "k": 256, "clusters": 1})
    assert work.group_products == 2 * 8 * 256 // 16
    assert work.bulk_bytes == (128 + 64) * 256 * 2 + 128 * 64 * 2
    apart = Setting((64, 64, 64), 2, 2, apart=True).kernel()
    with pytest.raises(CheckError, match="not counted"):
        work_of(apart, {"m": 128, "n": 64, "k": 256, "clusters": 1})


def test_only_cuda_has_them() -> None:
    kernel = SMALL.kernel()
    assert of_hopper(kernel)
    assert arch_of(kernel) == "sm_90a"
    with pytest.raises(DeviceError, match="sm_100"):
        arch_of(kernel, "sm_100")
    for text in (hip, opencl):
        with pytest.raises((EmitError, CheckError)):
            text(kernel)
    with pytest.raises(EmitError, match="Hopper"):
        load(kernel, "c")(*arguments(SMALL, 64, 64, 64))
    for change in (synchronise, allocate):
        with pytest.raises(CheckError, match="Hopper"):
            change(kernel)


def test_names_are_changed_everywhere() -> None:
    kernel = SMALL.kernel()
    names = {name: f"{name}_x" for name in ("a", "a_map", "a_tile", "d", "c", "t", "stage", "m")}
    check(renamed(kernel, names))
    assert "a_tile" not in {each.array for each in ir.walk(renamed(kernel, names).body)
                            if isinstance(each, Fill)}  # fmt: skip


# -- matrices of a warp ----------------------------------------------------------------------------


def through_matrices(count: int, transposed: bool) -> Kernel:
    """What StoreMatrix wrote, as LoadMatrix reads it, the other way round."""
    k = Builder("through", block=128)
    out = k.array("out", bf16, 128 * 2 * count)
    held, back = k.registers("held", bf16, 2 * count), k.registers("back", bf16, 2 * count)
    k.shared("tile", bf16, 4 * 64 * count, align=128)
    number = k.register("number", f32)
    with k.loop("e", 2 * count) as e:
        k.set(number, ir.Cast(f32, ir.FromIndex(k.thread * (2 * count) + e, DType.I32)))
        held[e] = cast(bf16, number)
    row = k.warp * (64 * count) + k.lane % (8 * count) * 8
    k.add(StoreMatrix("tile", row, held[0], count, transposed))
    k.barrier()
    k.add(LoadMatrix(back[0], "tile", row, count))
    with k.loop("e", 2 * count) as e:
        out.put(k.thread * (2 * count) + e, back[e])
    return k.done()


@needs_compiler
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_come_back_transposed(count: int) -> None:
    for transposed in (False, True):
        kernel = through_matrices(count, transposed)
        outs = [np.zeros(256 * count, np.uint16) for _ in range(2)]
        run(kernel, [outs[0]])
        EmulatedFunction(kernel)([outs[1]], (1, 1, 1))
        np.testing.assert_array_equal(outs[0], outs[1])
        given = np.arange(256 * count, dtype=np.float32).reshape(4, 32, count, 2)
        whole = given.transpose(0, 2, 1, 3).reshape(4, count, 8, 8)
        wanted = (whole.swapaxes(2, 3) if transposed else whole).reshape(4, count, 32, 2)
        np.testing.assert_array_equal(
            outs[0], coded(wanted.transpose(0, 2, 1, 3).reshape(-1), bf16)
        )


# -- what is refused -------------------------------------------------------------------------------


def changed(kernel: Kernel, change: Any) -> Kernel:
    """The kernel with each statement changed, those inside others too."""

    def of(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.For | Ring):
            stmt = replace(stmt, body=tuple(map(of, stmt.body)))
        made: ir.Stmt = change(stmt)
        return made

    return replace(kernel, body=tuple(map(of, kernel.body)))


def fill(**new: Any) -> Any:
    return lambda s: replace(s, **new) if isinstance(s, Fill) and s.map == "a_map" else s


def moved(by: Expr | int) -> Any:
    """The first factor of products begins elsewhere."""

    def change(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, WarpgroupProduct):
            return stmt
        assert isinstance(stmt.a, Tile)
        return replace(stmt, a=replace(stmt.a, index=stmt.a.index + by))

    return change


def of_product(**new: Any) -> Any:
    return lambda s: replace(s, **new) if isinstance(s, WarpgroupProduct) else s


def of_ring(**new: Any) -> Any:
    return lambda s: replace(s, **new) if isinstance(s, Ring) else s


def of_shared(**new: Any) -> Any:
    return lambda s: replace(s, **new) if isinstance(s, ir.Shared) and s.name == "a_tile" else s


REFUSED: dict[str, tuple[Any, str]] = {
    "another map": (fill(map="nothing"), "no map"),
    "too few coordinates": (fill(at=(Const(0),)), "1 coordinates for the 2 axes"),
    "a coordinate of each thread": (fill(at=(Var("row"), Var("lane") * 8)), "between threads"),
    "a coordinate between units": (fill(at=(Var("row"), Var("t") * 4)), "aligned"),
    "between patterns": (fill(index=Var("stage") * 4096 + 8), "aligned"),
    "outside of the array": (fill(index=Var("stage") * 4096 + 512), "a_tile"),
    "split without a cluster": (fill(split=0), "split"),
    "a factor between units": (moved(1), "aligned"),
    "a factor outside": (moved(4096), "a_tile"),
    "a factor of each warp": (moved(Var("warp") * 16), "warp group"),
    "no such type": (of_product(kind="f64"), "no tensor core"),
    "other types": (of_product(kind="f16"), "bf16"),
    "too many columns": (of_product(columns=264), "columns"),
    "too few registers": (of_product(target=Cell("d", Const(8), f32)), "d"),
    "no stage": (of_ring(stages=0), "stages"),
    "no array of sums": (of_ring(sums=("row",)), "register array"),
    "sums that are never begun": (of_ring(sums=()), "before it is set"),
    "a ring that may not turn": (of_ring(count=Var("k") - 64), "no iteration"),
    "an array that is not aligned": (of_shared(align=128), "multiple"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused(name: str) -> None:
    change, said = REFUSED[name]
    with pytest.raises(WarploomError, match=said):
        check(changed(SMALL.kernel(), change))


def test_kernels_with_rings_say_who_fills_them() -> None:
    kernel = SMALL.kernel()
    for wrong, said in (
        (replace(kernel, roles=None), "roles"),
        (replace(kernel, roles=ir.Roles(40, 250)), "registers"),
        (replace(kernel, cluster=9), "cluster of 9"),
        (replace(kernel, block=(96, 1, 1)), "warp groups"),
        (replace(kernel, maps=(replace(kernel.maps[0], swizzle=64), *kernel.maps[1:])), "swizzle"),
        (replace(kernel, maps=(replace(kernel.maps[0], box=(64, 4)), *kernel.maps[1:])), "rows of"),
    ):
        with pytest.raises(CheckError, match=said):
            check(wrong)


def test_blocks_of_a_cluster_agree_on_what_they_share() -> None:
    kernel = replace(SMALL, cluster=2).kernel()

    def change(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, Fill) and stmt.split is not None:
            return replace(stmt, at=(Var("block_x") * 64, stmt.at[1]))
        return stmt

    with pytest.raises(CheckError, match="between blocks of a cluster"):
        check(changed(kernel, change))


def test_products_take_what_rings_around_them_fill() -> None:
    kernel = SMALL.kernel()
    loop = kernel.body[-1]
    assert isinstance(loop, ir.For)
    ring = next(each for each in loop.body if isinstance(each, Ring))
    outside = replace(loop, body=(*loop.body, *ring.rest))
    with pytest.raises(CheckError, match="no ring around it"):
        check(replace(kernel, body=(*kernel.body[:-1], outside)))


def test_what_a_ring_fills_is_not_sent() -> None:
    kernel = replace(SMALL, staged=1).kernel()

    def change(stmt: ir.Stmt) -> ir.Stmt:
        return replace(stmt, array="a_tile") if isinstance(stmt, BulkStore) else stmt

    with pytest.raises(CheckError, match="filled by a ring"):
        check(changed(kernel, change))


def test_one_warp_group_does_not_meet_the_block() -> None:
    kernel = Setting((64, 64, 64), 2, 2, apart=True).kernel()

    def with_barrier(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.PingPong):
            return ir.PingPong((*stmt.body, ir.Barrier("block")))
        return stmt

    with pytest.raises(CheckError, match="body of one warp group"):
        check(changed(kernel, with_barrier))

    def deeper(stmt: ir.Stmt) -> ir.Stmt:
        if not isinstance(stmt, ir.PingPong):
            return stmt
        rings = tuple(ir.loop("e", 1, each) if isinstance(each, Ring) else each
                      for each in stmt.body)  # fmt: skip
        return ir.PingPong(rings)

    with pytest.raises(CheckError, match="do not know"):
        check(changed(kernel, deeper))


def test_matrices_that_others_read_need_a_barrier() -> None:
    kernel = through_matrices(1, False)
    without = tuple(each for each in kernel.body if not isinstance(each, ir.Barrier))
    row = without[-2]
    assert isinstance(row, LoadMatrix)
    other = replace(row, index=(Var("warp") + 1) % 4 * 64 + Var("lane") % 8 * 8)
    with pytest.raises(DeviceError, match="race"):
        run(replace(kernel, body=(*without[:-2], other, without[-1])), [np.zeros(256, np.uint16)])
