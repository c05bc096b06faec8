"""Arrays share bytes only if that changes nothing; what is still needed is kept apart."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from tests.tools import require

from warploom import runtime
from warploom.errors import CheckError, DeviceError
from warploom.index.ir import Var
from warploom.kernel import scope
from warploom.kernel.allocate import allocate, placed
from warploom.kernel.build import Builder, cast, from_index
from warploom.kernel.check import check
from warploom.kernel.dtype import DType, f32, f64, i32, u8
from warploom.kernel.evaluate import run
from warploom.kernel.footprint import footprints
from warploom.kernel.ir import Kernel, Shared
from warploom.kernel.lifetime import Lifetime, lifetimes
from warploom.kernel.pool import offsets, pool_bytes
from warploom.kernel.scope import scopes
from warploom.kernel.synchronise import synchronise

T = Var("thread")


def shared(kernel: Kernel) -> list[Shared]:
    return [each for each in kernel.body if isinstance(each, Shared)]


def bytes_of(kernel: Kernel) -> int:
    return pool_bytes(shared(kernel))


def stages(count: int, types: tuple[DType, ...] = (i32,), size: int = 64) -> Kernel:
    """Each stage reads what the one before wrote: two arrays are needed at a time."""
    k = Builder("stages", block=size)
    y, v = k.array("y", i32, size), k.register("v", i32)
    arrays = [k.shared(f"s{i}", types[i % len(types)], size) for i in range(count)]
    held = {dtype: k.register(f"r_{dtype!r}", dtype) for dtype in dict.fromkeys(types)}
    k.set(v, from_index(T))
    for array in arrays:
        array[T] = cast(array.dtype, v)
        k.set(held[array.dtype], array[(T + 7) % size])
        k.set(v, cast(i32, held[array.dtype]))
    y[T] = v
    return synchronise(k.done())


def result(kernel: Kernel, size: int = 64) -> list[int]:
    y = np.zeros(size, np.int32)
    run(kernel, [y])
    return y.tolist()


def test_what_a_loop_fills_iteration_by_iteration_outlives_its_iterations() -> None:
    k = Builder("filled", block=4)
    y, v = k.array("y", i32, 16), k.register("v", i32)
    scratch, filled = k.shared("scratch", i32, 4), k.shared("filled", i32, 16)
    with k.loop("i", 4, unroll=False) as i:
        scratch[T] = from_index(T + i)
        k.set(v, scratch[(T + 1) % 4])
        filled[i * 4 + T] = v
    with k.loop("j", 4, unroll=False) as j:
        k.set(v, filled[j * 4 + (T + 1) % 4])
        y[j * 4 + T] = v
    made = allocate(synchronise(k.done()))
    assert lifetimes(made)["scratch"].meets(lifetimes(made)["filled"])
    wanted = [(t + 2) % 4 + iteration for iteration in range(4) for t in range(4)]
    assert result(made, 16) == wanted


def test_stages_need_one_array_at_a_time() -> None:
    kernel = stages(5)
    made = allocate(kernel)
    check(made)
    assert (bytes_of(kernel), bytes_of(made)) == (5 * 256, 256)
    assert result(made) == result(kernel) == [(t + 35) % 64 for t in range(64)]


def test_types_of_different_sizes_share() -> None:
    kernel = stages(6, (f64, u8, f32))
    made = allocate(kernel)
    assert bytes_of(made) == 64 * 8
    assert result(made) == result(kernel)


@pytest.mark.parametrize("device", ["c", "opencl", "ptx"])
def test_devices_agree(device: Any) -> None:
    require(device)
    made = allocate(stages(3, (f64, u8, i32)))
    y = np.zeros(64, np.int32)
    runtime.load(made, device)(y)
    assert y.tolist() == result(made)


def test_what_is_read_late_is_kept() -> None:
    k = Builder("late", block=32)
    y = k.array("y", i32, 32)
    a, b, c = (k.shared(name, i32, 32) for name in "abc")
    v, w = k.register("v", i32), k.register("w", i32)
    a[T] = from_index(T)
    b[T] = from_index(T * 2)
    k.set(v, b[31 - T])
    c[T] = v
    k.set(v, a[T ^ 1])
    k.set(w, c[T])
    y[T] = v + w
    made = allocate(k.done())
    places = offsets(shared(made))
    assert places["a"] not in (places["b"], places["c"])
    assert places["b"] == places["c"]
    assert result(made, 32) == [(t ^ 1) + 2 * (31 - t) for t in range(32)]


def accumulate(written_first: bool) -> Kernel:
    """In each iteration a tile is used, then another; a third is carried from iteration to
    iteration or not."""
    k = Builder("iterations", block=32)
    y = k.array("y", i32, 32)
    a, b, kept = (k.shared(name, i32, 32) for name in ("a", "b", "kept"))
    v, total = k.register("v", i32), k.register("total", i32, 0)
    if not written_first:
        kept[T] = from_index(T)
    with k.loop("i", 4, unroll=False) as i:
        a[T] = total + 1
        k.set(v, a[31 - T])
        k.set(total, total + v)
        b[T] = total + from_index(i)
        k.set(v, b[T ^ 2])
        k.set(total, total + v)
        if written_first:
            kept[T] = total
        k.set(v, kept[T ^ 3])
        k.set(total, total + v)
    y[T] = total
    return synchronise(k.done())


def test_tiles_of_one_iteration_share_and_what_is_carried_does_not() -> None:
    for written_first, size in ((True, 128), (False, 256)):
        kernel = accumulate(written_first)
        made = allocate(kernel)
        assert bytes_of(made) == size
        assert result(made, 32) == result(kernel, 32)


def test_partly_written_tiles_are_needed_throughout() -> None:
    """Cells that an iteration does not write keep what the iteration before put there."""
    k = Builder("partly", block=32)
    y = k.array("y", i32, 32)
    a, b = k.shared("a", i32, 32), k.shared("b", i32, 32)
    v = k.register("v", i32)
    a[T] = from_index(T)
    with k.loop("i", 3, unroll=False) as i:
        a.put(T, from_index(T + i), when=T.lt(16))
        k.set(v, a[31 - T])
        b[T] = v
        k.set(v, b[T ^ 1])
    y[T] = v
    kernel = synchronise(k.done())
    assert allocate(kernel) == kernel


def test_branches_that_threads_take_at_the_same_time() -> None:
    k = Builder("branches", block=64)
    y = k.array("y", i32, 64)
    a, b = k.shared("a", i32, 64), k.shared("b", i32, 64)
    v = k.register("v", i32, 0)
    with k.when(T.lt(32)):
        a[T] = from_index(T)
        k.set(v, a[T])
    with k.otherwise():
        b[T] = from_index(T)
        k.set(v, b[T])
    y[T] = v
    kernel = k.done()
    assert allocate(kernel) == kernel


def test_sharing_by_hand() -> None:
    kernel = stages(2)
    arrays = shared(kernel)

    def at(*places: int) -> Kernel:
        moved = {a.name: replace(a, offset=p) for a, p in zip(arrays, places, strict=True)}
        body = tuple(moved[s.name] if isinstance(s, Shared) else s for s in kernel.body)
        return replace(kernel, body=body)

    check(at(0, 256))
    assert result(at(0, 256)) == result(kernel)
    with pytest.raises(DeviceError, match="race"):
        result(at(0, 0))  # nothing orders the second array's writes after the first one's reads
    check(synchronise(at(0, 0)))
    assert result(synchronise(at(0, 0))) == result(kernel)
    with pytest.raises(CheckError, match=r"lies at byte 2\n.*multiple of 4"):
        check(at(2, 256))


def test_arrays_that_are_needed_together_may_not_share() -> None:
    k = Builder("together", block=32)
    a, b, v = k.shared("a", i32, 32), k.shared("b", i32, 32), k.register("v", i32)
    a[T] = from_index(T)
    b[T] = from_index(T)
    k.set(v, a[T])
    k.set(v, b[T])
    kernel = k.done()
    body = tuple(replace(s, offset=64) if isinstance(s, Shared) else s for s in kernel.body)
    with pytest.raises(CheckError, match="'a' and 'b' lie in the same bytes"):
        check(replace(kernel, body=body))


@pytest.mark.parametrize("seed", range(30))
def test_placing_against_every_order(seed: int) -> None:
    """No two that meet overlap, and nothing is larger than those that meet at one time force."""
    random = Random(seed)
    arrays, lives = [], {}
    for number in range(6):
        first = random.randrange(10)
        name = f"a{number}"
        arrays.append(Shared(name, i32, random.choice((4, 8, 16, 64))))
        lives[name] = Lifetime(first, first + random.randrange(5))
    places = placed(arrays, lives)
    for one in arrays:
        for other in arrays:
            if one is not other and lives[one.name].meets(lives[other.name]):
                first, second = places[one.name], places[other.name]
                assert first + one.bytes <= second or second + other.bytes <= first
    alone = sum(each.bytes for each in arrays)
    assert max(places[each.name] + each.bytes for each in arrays) <= alone


def test_lifetimes_are_by_statement() -> None:
    found = lifetimes(stages(3))
    assert [found[f"s{i}"].meets(found[f"s{i + 1}"]) for i in range(2)] == [False, False]


def test_accesses_wider_than_any_machine_has_ask_for_no_more_than_its_widest() -> None:
    k = Builder("wide", block=32)
    y = k.array("y", f64, 128)
    a, b, c = k.shared("a", f32, 388), k.shared("b", f64, 128), k.shared("c", f32, 300)
    r, q = k.registers("r", f64, 4, initial=1.0), k.register("q", f32, 0.0)
    c[k.thread] = 3.0
    k.set(q, c[31 - k.thread])
    a[k.thread] = q
    b.put(k.thread * 4, r[0], width=4)
    k.set(r[0], b.at((31 - k.thread) * 4, width=4))
    k.set(q, a[31 - k.thread])
    k.set(r[1], cast(f64, q))
    y.put(k.thread * 4, r[0], width=4)
    placed_kernel = allocate(k.raw())
    check(placed_kernel)
    out = np.zeros(128)
    run(placed_kernel, [out])
    assert out.reshape(32, 4).tolist() == [[1.0, 3.0, 1.0, 1.0]] * 32


def test_passes_over_a_kernel_share_its_scopes_and_footprints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = stages(3)
    walk = Mock(side_effect=scope._Walk)
    monkeypatch.setattr(scope, "_Walk", walk)
    check(kernel)
    assert footprints(scopes(kernel)) is footprints(scopes(kernel))
    assert lifetimes(kernel) == lifetimes(replace(kernel))  # equal, and another object
    assert walk.call_count == 2
