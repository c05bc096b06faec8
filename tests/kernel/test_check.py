"""Every promise of `check` is kept: a kernel that breaks it is refused with a clear sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bench.common.kernel import kernels

from warploom.errors import CheckError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel.build import Builder, cast, choose, fma, from_index, sqrt
from warploom.kernel.check import check
from warploom.kernel.dtype import f32, f64, i32, u8
from warploom.kernel.ir import (
    ArrayParam,
    Assign,
    Cell,
    Compare,
    Kernel,
    Number,
    Registers,
    ScalarParam,
)


def start(threads: int = 64) -> Builder:
    k = Builder("bad", block=threads)
    k.array("y", f32, 64)
    return k


def register_out_of_bounds(k: Builder) -> None:
    r = k.registers("r", f32, 2, 0.0)
    with k.loop("i", 3) as i:
        r[i] = 1.0


def register_by_rolled_loop(k: Builder) -> None:
    r = k.registers("r", f32, 3, 0.0)
    with k.loop("i", 3, unroll=False) as i:
        r[i] = 1.0


def register_by_lane(k: Builder) -> None:
    r = k.registers("r", f32, 64, 0.0)
    r[k.lane] = 1.0


def uninitialised(k: Builder) -> None:
    r = k.registers("r", f32, 2)
    v = k.register("v", f32)
    r[0] = 1.0
    k.set(v, r[0] + r[1])


def uninitialised_on_one_path(k: Builder) -> None:
    v, w = k.register("v", f32), k.register("w", f32)
    with k.when(k.block_x.eq(0)):
        k.set(v, 1.0)
    k.set(w, v)


def shared_out_of_bounds(k: Builder) -> None:
    s = k.shared("s", f32, 64)
    with k.loop("i", 2) as i:
        s[k.thread + i] = from_index(1, f32)


def shared_by_block(k: Builder) -> None:
    k.grid(k.scalar("n"))
    s = k.shared("s", f32, 64)
    s[k.block_x] = from_index(1, f32)


def too_much_shared(k: Builder) -> None:
    k.shared("s", f32, 20_000)


def barrier_in_branch(k: Builder) -> None:
    with k.when(k.thread.lt(32)):
        k.barrier()


def shuffle_in_branch(k: Builder) -> None:
    v = k.register("v", f32, 0.0)
    with k.when(k.lane.lt(5)):
        k.set(v, k.shuffle(v, 0))


def shuffle_in_partial_warp() -> Kernel:
    k = start(threads=40)
    v = k.register("v", f32, 0.0)
    k.set(v, k.shuffle(v, 0))
    return k.done()


def name_twice(k: Builder) -> None:
    k.register("y", f32)


def no_identifier(k: Builder) -> None:
    k.register("9lives", f32)


def unicode_name(k: Builder) -> None:
    k.register("größe", f32)


def name_of_a_thread(k: Builder) -> None:
    k.register("lane", f32)


def hidden_loop(k: Builder) -> None:
    with k.loop("i", 2), k.loop("i", 2):
        pass


def unknown_variable(k: Builder) -> None:
    k.let("a", Var("nowhere"))


def out_of_scope(k: Builder) -> None:
    with k.loop("i", 2) as i:
        pass
    k.let("a", i + 1)


def mixed_types(k: Builder) -> None:
    v = k.register("v", f32, 0.0)
    k.set(v, v + from_index(1, i32))


def bits_of_floats(k: Builder) -> None:
    v = k.register("v", f32, 0.0)
    k.set(v, v ^ v)


def store_to_const(k: Builder) -> None:
    x = k.array("x", f32, 64, const=True)
    x[k.thread] = from_index(1, f32)


def constant_out_of_bounds(k: Builder) -> None:
    w, v = k.constant("w", f32, 3), k.register("v", f32, 0.0)
    with k.loop("i", 4) as i:
        k.set(v, v + w[i])


def shared_inside(k: Builder) -> None:
    with k.when(k.block_x.eq(0)):
        k.shared("s", f32, 4)


def infinite_integer(k: Builder) -> None:
    k.register("v", i32, float("inf"))


def no_number_as_integer(k: Builder) -> None:
    v = k.register("v", i32, 0)
    k.add(Assign(v, Number(float("nan"), i32)))


def fraction_as_integer(k: Builder) -> None:
    k.register("v", i32, 0.5)


def too_large_a_float(k: Builder) -> None:
    v = k.register("v", f32, 0.0)
    k.set(v, v + 1e40)


def too_many_registers(k: Builder) -> None:
    k.registers("r", f64, 128)


def streaming_shared(k: Builder) -> None:
    s, v = k.shared("s", f32, 64), k.register("v", f32, 0.0)
    s.put(k.thread, v, streaming=True)


def streaming_wide_load(k: Builder) -> None:
    s, r = k.shared("s", f32, 64), k.registers("r", f32, 4)
    r[0] = s.at(0, width=4, streaming=True)


def root_of_integer(k: Builder) -> None:
    v = k.register("v", i32, 0)
    k.set(v, sqrt(v))


def compared_types(k: Builder) -> None:
    v, w = k.register("v", f32, 0.0), k.register("w", i32, 0)
    k.set(v, choose(Compare("<", v, w), v, 0.0))


def unrolled_scalar(k: Builder) -> None:
    with k.loop("i", k.scalar("n"), unroll=True):
        pass


def no_step(k: Builder) -> None:
    with k.loop("i", 0, 4, 0):
        pass


def crowded_constants(k: Builder) -> None:
    k.constant("w1", f32, 600)
    k.constant("w2", f32, 600)


def number_too_large(k: Builder) -> None:
    v = k.register("v", u8, 0)
    k.set(v, v + 300)


def initial_too_large(k: Builder) -> None:
    k.register("v", u8, -1)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (register_out_of_bounds, r"'r' has 2 registers, but \[2\] is used"),
        (register_by_rolled_loop, "indexed by 'i', which is not known after unrolling"),
        (register_by_lane, "indexed by 'lane'"),
        (uninitialised, r"'r\[1\]' is read before it is set"),
        (uninitialised_on_one_path, "'v' is read before it is set on every path"),
        (shared_out_of_bounds, r"'s' has 64 elements, but thread 63 uses \[64\] at i = 1"),
        (shared_by_block, r"'s' has 64 elements, but thread 0 of block 64 uses \[64\] at n = 65"),
        (too_much_shared, "80000 bytes of shared memory"),
        (barrier_in_branch, "barrier stands under a condition that differs between threads"),
        (shuffle_in_branch, "shuffle stands under a condition that differs between lanes"),
        (name_twice, "'y' is used twice"),
        (no_identifier, "'9lives' cannot be a name"),
        (unicode_name, "'größe' cannot be a name"),
        (name_of_a_thread, "'lane' cannot be a name"),
        (hidden_loop, "'i' is used twice"),
        (unknown_variable, "'nowhere' is not defined here"),
        (out_of_scope, "'i' is not defined here"),
        (mixed_types, "mixes f32 and i32"),
        (bits_of_floats, r"'\^' is for integers, not f32"),
        (store_to_const, "'x' is const but is stored to"),
        (constant_out_of_bounds, r"'w' has 3 elements"),
        (shared_inside, "declared at the top"),
        (number_too_large, "300 is no u8"),
        (initial_too_large, "-1 is no u8"),
        (infinite_integer, "inf is no i32"),
        (no_number_as_integer, "nan is no i32"),
        (fraction_as_integer, "0.5 is no i32"),
        (too_large_a_float, r"1e\+40 is no f32"),
        (too_many_registers, "'r' needs 256 registers, but a thread has 255"),
        (streaming_shared, "a streaming access of the shared array 's'"),
        (streaming_wide_load, "a streaming access of the shared array 's'"),
        (root_of_integer, "'sqrt' is for floats, not i32"),
        (compared_types, "'<' mixes f32 and i32"),
        (unrolled_scalar, "cannot be unrolled: its bounds are no constants"),
        (no_step, "has step 0, not at least 1"),
        (crowded_constants, "'w2', 4800 bytes are passed by value"),
    ],
)
def test_refused(write: Callable[[Builder], None], message: str) -> None:
    k = start()
    write(k)
    with pytest.raises(CheckError, match=message):
        k.done()


def test_shuffles_need_whole_warps() -> None:
    with pytest.raises(CheckError, match="partial warp"):
        shuffle_in_partial_warp()


def test_block_and_warp_sizes() -> None:
    for block in (2000, (1, 1, 128), (0,), (32, 64)):
        with pytest.raises(CheckError, match="cannot be launched"):
            Builder("k", block=block).done()
    with pytest.raises(CheckError, match="a warp of 24 lanes"):
        Builder("k", block=48, warp_size=24).done()


def test_sizes_and_grids_use_scalars_only() -> None:
    kernel = Kernel("k", (ScalarParam("n"),), (32, 1, 1), (Var("m"), Const(1), Const(1)), ())
    with pytest.raises(CheckError, match="the grid uses 'm'"):
        check(kernel)
    array = ArrayParam("y", f32, Var("thread"))
    with pytest.raises(CheckError, match="the size of 'y' uses 'thread'"):
        check(Kernel("k", (array,), (32, 1, 1), (Const(1),) * 3, ()))


def test_a_cell_has_the_type_it_was_declared_with() -> None:
    body = (Registers("r", f32), Assign(Cell("r", None, i32), Number(1, i32)))
    with pytest.raises(CheckError, match="mixes i32 and f32"):
        check(Kernel("k", (), (32, 1, 1), (Const(1),) * 3, body))


def test_what_is_allowed() -> None:
    """Warp-uniform conditions around shuffles, block-uniform ones around barriers, guards."""
    k = start()
    n = k.scalar("n")
    s = k.shared("s", f32, 32)
    v = k.register("v", f32, 0.0)
    with k.when((k.warp + k.block_x).lt(n)):
        k.set(v, k.shuffle(v, k.lane + 1))
    with k.when(k.thread // 32 * 32 + n):
        k.set(v, k.shuffle(v, k.lane + 1))
    with k.when(k.block_x.lt(n)):
        k.barrier()
    with k.when(k.thread.lt(32)):
        s[k.thread] = v
    s.put(k.thread, v, when=k.thread.lt(32))
    k.done()
    for kernel in (kernels.transpose(), kernels.stencil(), kernels.aos_to_soa()):
        check(kernel)


def test_builder_misuse() -> None:
    with pytest.raises(CheckError, match="must follow"), start().otherwise():
        pass
    with pytest.raises(AttributeError):
        start().lanes  # noqa: B018
    v = start().register("v", i32)
    for number in (1.5, float("nan"), float("inf")):
        with pytest.raises(CheckError, match=f"{number} is no i32"):
            v + number
    with pytest.raises(CheckError, match="is no f32"):
        start().register("w", f32) + 10**400


def test_a_constant_index_that_leaves_its_array_late_in_a_loop_that_stays_a_loop() -> None:
    k = Builder("late", block=32)
    w, y = k.constant("w", f32, 3), k.array("y", f32, 32)
    total = k.register("total", f32, 0)
    with k.loop("i", 4, unroll=False) as i:
        k.set(total, total + w[i])
    y[k.thread] = total
    with pytest.raises(CheckError, match=r"'w' has 3 elements"):
        k.done()


def test_what_is_no_value_and_no_condition_is_refused_where_it_is_given() -> None:
    k = start()
    v = k.register("v", f32)
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: cast(v, i32), "cast takes a type and a value"),  # type: ignore[arg-type]
        (lambda: cast(f32, 3), "3 is no value of a kernel"),  # type: ignore[arg-type]
        (lambda: sqrt(2.0), "2.0 is no value"),  # type: ignore[arg-type]
        (lambda: fma(2.0, v, v), "2.0 is no value"),  # type: ignore[arg-type]
        (lambda: v + None, "None is no value"),  # type: ignore[arg-type]
        (lambda: choose(True, v, v), "True is no condition"),  # type: ignore[arg-type]
        (lambda: choose(v, v, v), "is no condition"),  # type: ignore[arg-type]
        (lambda: k.when(v.gt(0)).__enter__(), "no condition on threads"),  # type: ignore[arg-type]
        (lambda: k.require(True), "no condition on threads"),  # type: ignore[arg-type]
        (lambda: k.barrier("grid"), "no barrier has the scope 'grid'"),  # type: ignore[arg-type]
        (lambda: k.let("i", v), "a value is no index"),  # type: ignore[arg-type]
        (lambda: k.grid(v), "a value is no index"),  # type: ignore[arg-type]
        (lambda: k.loop("j", v).__enter__(), "a value is no index"),  # type: ignore[arg-type]
        (lambda: k.registers("r", f32, 4)[v], "a value is no index"),  # type: ignore[index]
        (lambda: k.array("y", f32, 64).at(v), "a value is no index"),  # type: ignore[arg-type]
        (lambda: from_index(v), "a value is no index"),  # type: ignore[arg-type]
        (lambda: k.array("y", f32, 2.5), "an index is an integer, not 2.5"),  # type: ignore[arg-type]
        (lambda: k.array("y", "float33", 4), "'float33' is no type"),  # type: ignore[arg-type]
        (lambda: k.scalar(5), "5 is no name"),  # type: ignore[arg-type]
        (lambda: k.shared("s", f32, k.thread), "shared array 's' is an integer"),  # type: ignore[arg-type]
        (lambda: k.registers("r", f32, 1.5), "registers in 'r' is an integer"),  # type: ignore[arg-type]
        (lambda: k.register("r", f32, "1"), "'1' is no number"),  # type: ignore[arg-type]
        (lambda: k.register("r", f32, 1j), "1j is no number"),  # type: ignore[arg-type]
        (lambda: k.set(k.array("y", f32, 4), 1.0), "only a register is set"),  # type: ignore[arg-type]
        (lambda: k.loop("j", 4, step=1.5).__enter__(), "step of a loop is an integer"),  # type: ignore[arg-type]
        (lambda: Builder("k", block="64"), "side of a block is an integer, not '64'"),  # type: ignore[arg-type]
        (lambda: Builder("k", block=(2, 2, 2, 2)), "one to three sides, not 4"),
        (lambda: 1 if v else 2, "Python cannot decide"),
        (lambda: v if v.gt(0) else -v, "Python cannot decide"),  # it would always be v
    ]
    for give, message in wrong:
        with pytest.raises(CheckError, match=message):
            give()
    assert fma(v, 2.0, 1) == fma(v, Number(2.0, f32), Number(1.0, f32))


def test_an_unknown_shuffle_and_empty_launches() -> None:
    k = Builder("moved", block=32)
    v = k.register("v", f32, 1.0)
    k.set(v, k.shuffle(v, 1, "sideways"))  # type: ignore[arg-type]
    k.array("y", f32, 32)[k.thread] = v
    with pytest.raises(CheckError, match="no shuffle is of the mode 'sideways'"):
        k.done()
    for size, blocks, message in ((-3, 1, "'y' has -3 elements"), (32, 0, "a grid of 0 blocks")):
        k = Builder("none", block=32)
        k.grid(blocks)
        k.array("y", f32, size).put(k.thread, 1.0, when=k.thread.lt(0))
        with pytest.raises(CheckError, match=message):
            k.done()


def test_indices_are_as_deep_as_values_may_be() -> None:
    def nested(depth: int) -> Builder:
        k = Builder("deep", block=32)
        place: Expr = k.thread
        for _ in range(depth):
            place = (place + 1) % 32
        k.array("y", f32, 32)[place] = 1.0
        return k

    assert nested(100).done().name == "deep"
    with pytest.raises(CheckError, match="an index is more than 240 deep"):
        nested(300).done()
