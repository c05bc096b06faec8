"""Integers of few bits unpacked in registers, and sums of clusters: what they mean, when they are
refused, and that compiled texts give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.errors import CheckError, EmitError
from warploom.index.ir import Const
from warploom.kernel import ir
from warploom.kernel.build import Builder
from warploom.kernel.dtype import DType, bf16, decoded, f16, f32, i8, i32, u8, u32
from warploom.kernel.evaluate import run
from warploom.machine.proof import Reach
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
THREADS, BLOCKS = 128, 2
SUMS = 96  # of each block; each then has half of them


def unpacking(source: DType, target: DType, bits: int, signed: bool, zero: int) -> ir.Kernel:
    """Each thread unpacks a word, and has it once more with neighbours in turn; a cluster adds."""
    k = Builder("unpacking", block=THREADS)
    many, count = 4 // source.bytes, 32 // bits
    everyone = THREADS * BLOCKS
    k.array("words", source, everyone * many, const=True)
    k.array("numbers", target, everyone * count)
    k.array("turned", target, everyone * count)
    k.array("sums", f32, SUMS)
    k.grid(BLOCKS)
    k.cluster(BLOCKS)
    k.shared("held", f32, SUMS + 4)
    word, made = k.registers("word", source, many), k.registers("made", target, count)
    other = k.registers("other", target, count)
    me = k.block_x * THREADS + k.thread
    k.add(ir.Load(word[0], "words", me * many, None, None, many))
    k.add(ir.Unpack(made[0], word[0], bits, zero, signed))
    k.add(ir.Interleave(other[0], made[0], count))
    for name, held in (("numbers", made), ("turned", other)):
        k.add(ir.Store(name, me * count, held[0], None, count))
    with k.when(k.thread.lt(SUMS)):
        k.add(ir.Store("held", k.thread, ir.Cast(f32, ir.FromIndex(me * me, i32))))
    k.add(ir.SharedSum("held", SUMS))
    total = k.register("total", f32)
    with k.when(k.thread.lt(SUMS // BLOCKS)):
        at = k.block_x * (SUMS // BLOCKS) + k.thread
        k.add(ir.Load(total, "held", at))
        k.add(ir.Store("sums", at, total))
    return k.done()


def arrays_of(kernel: ir.Kernel, seed: int = 0) -> list[Any]:
    random, made = np.random.default_rng(seed), []
    for each in kernel.arrays:
        assert isinstance(each.size, Const)
        count = each.size.value
        drawn = random.integers(0, 256, count * each.dtype.bytes, dtype=np.uint8)
        made.append(
            drawn.view(each.dtype.numpy) if each.const else np.zeros(count, each.dtype.numpy)
        )
    return made


def integers(words: Any, bits: int, signed: bool) -> Any:
    """All integers of words, in order, as NumPy's own shifts have them."""
    wide = words.view(np.uint32).astype(np.int64)
    fields = wide[:, None] >> np.arange(0, 32, bits) & (1 << bits) - 1
    return np.where(fields >> bits - 1 & signed, fields - (1 << bits), fields)


CASES = [
    (u32, bf16, 4, False, 8), (u32, bf16, 8, True, 0), (i8, f16, 8, True, -5),
    (i32, f16, 4, True, 0), (u8, bf16, 4, False, 3), (i8, bf16, 8, True, 0),
    (u8, bf16, 8, False, 255), (u8, f16, 8, False, 0), (u8, f16, 4, True, 7),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "bits", "signed", "zero"), CASES)
def test_they_mean_what_shifts_say(
    source: DType, target: DType, bits: int, signed: bool, zero: int
) -> None:
    kernel = unpacking(source, target, bits, signed, zero)
    words, numbers, turned, sums = arrays = arrays_of(kernel)
    run(kernel, arrays)
    half = 16 // bits
    own = integers(words, bits, signed) - zero
    in_turn = np.stack([own[:, :half], own[:, half:]], axis=2).reshape(len(own), -1)
    np.testing.assert_array_equal(decoded(numbers, target).reshape(len(own), -1), in_turn)
    again = np.stack([in_turn[:, :half], in_turn[:, half:]], axis=2).reshape(len(own), -1)
    np.testing.assert_array_equal(decoded(turned, target).reshape(len(own), -1), again)
    numbered = np.arange(SUMS)
    np.testing.assert_array_equal(sums, numbered**2 + (THREADS + numbered) ** 2)


@needs_compiler
@pytest.mark.parametrize(
    ("source", "target", "bits", "signed", "zero"),
    [*CASES[:2], *(pytest.param(*each, marks=pytest.mark.slow) for each in CASES[2:])],
)
def test_compiled_they_give_the_same_bits(
    source: DType, target: DType, bits: int, signed: bool, zero: int
) -> None:
    kernel = unpacking(source, target, bits, signed, zero)
    evaluated, emulated = arrays_of(kernel, 1), arrays_of(kernel, 1)
    run(kernel, evaluated)
    function = EmulatedFunction(kernel)
    report = function.launch(BLOCKS, function.packed(emulated), races=True, prove=True)
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    for left, right in zip(evaluated, emulated, strict=True):
        np.testing.assert_array_equal(left.view(np.uint8), right.view(np.uint8))


def one(stmt: ir.Stmt, cluster: int = 1, inside: bool = False) -> ir.Kernel:
    k = Builder("one", block=THREADS)
    k.grid(cluster)
    k.cluster(cluster)
    k.shared("held", f32, 64)
    k.registers("word", u32, 1, initial=0)
    k.registers("made", bf16, 8)
    k.registers("real", f32, 8, initial=0)
    if inside:
        with k.loop("i", 2):
            k.add(stmt)
    else:
        k.add(stmt)
    return k.done()


WORD, MADE = ir.Cell("word", Const(0), u32), ir.Cell("made", Const(0), bf16)
REAL = ir.Cell("real", Const(0), f32)


@pytest.mark.parametrize(
    ("stmt", "cluster", "inside", "why"),
    [
        (ir.Unpack(MADE, WORD, 5), 1, False, "integers of 5 bits in a word"),
        (ir.Unpack(MADE, WORD, 4, 16), 1, False, "integers of 4 bits less 16"),
        (ir.Unpack(MADE, REAL, 4), 1, False, "'real' of f32 holds no integers to unpack"),
        (ir.Unpack(REAL, WORD, 4), 1, False, "'real' of f32 takes no integers of few bits"),
        (ir.Interleave(REAL, REAL, 8), 1, False, "8 registers of f32 in turn"),
        (ir.Interleave(MADE, MADE, 6), 1, False, "6 registers of bf16 in turn"),
        (ir.Interleave(MADE, MADE, 8), 1, False, "'made.0.' is read before it is set"),
        (ir.SharedSum("held", 65), 1, False, "sums of 65 elements of 'held', 64 of f32"),
        (ir.SharedSum("held", 33), 2, False, "33 sums are not divided among 2 blocks"),
        (ir.SharedSum("held", 32), 2, True, "in a loop or under a condition"),
    ],
)
def test_what_is_wrong_is_refused(stmt: ir.Stmt, cluster: int, inside: bool, why: str) -> None:
    with pytest.raises(CheckError, match=why):
        one(stmt, cluster, inside)


def test_nothing_is_stored_where_others_may_still_read() -> None:
    k = Builder("late", block=THREADS)
    k.grid(2)
    k.cluster(2)
    k.shared("held", f32, THREADS)
    k.add(ir.Store("held", k.thread, ir.Number(1.0, f32)))
    k.add(ir.SharedSum("held", THREADS))
    k.add(ir.Store("held", k.thread, ir.Number(2.0, f32)))
    with pytest.raises(CheckError, match="'held' is stored to where other blocks may still read"):
        k.done()


def test_sums_of_what_nobody_stored_are_found() -> None:
    with pytest.raises(Exception, match="'held' is read where nothing was stored"):
        run(one(ir.SharedSum("held", 64), 2), [])


def test_other_languages_refuse_them() -> None:
    kernel = one(ir.Unpack(MADE, WORD, 4))
    assert "unpack_bf16_4_0" in cuda(kernel)
    with pytest.raises(EmitError, match="statements of Hopper"):
        c(kernel)
