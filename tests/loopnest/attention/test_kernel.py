"""Attention as one kernel: its numbers, the same bits on the emulator under every schedule, what
ptxas makes of it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.emit.cuda import cuda
from warploom.errors import CheckError
from warploom.kernel.dtype import coded, decoded
from warploom.kernel.evaluate import run
from warploom.loopnest.attention.kernel import kernel_of
from warploom.loopnest.attention.problem import Attention
from warploom.loopnest.attention.program import attention_nest
from warploom.loopnest.attention.stated import attention_of
from warploom.loopnest.attention.tiling import AttentionTiling as Cut
from warploom.machine.proof import Reach
from warploom.machine.record import H200
from warploom.runtime.compile import can_compile, compile_cuda
from warploom.runtime.emulated import EmulatedFunction

needs_compiler = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
SMALL = H200.but(multiprocessors=2)  # whose blocks make several tiles
PLAIN = Cut(1, 64)
AHEAD = Cut(2, 64, resident=2, ahead=True, turns=True)
CASES = {
    "full": (Attention(1, 1, 128, 128, 64), AHEAD),
    "ragged": (Attention(1, 2, 100, 100, 64), PLAIN),
    "causal, two groups": (Attention(1, 2, 200, 200, 64, True), AHEAD),
    "causal, two groups at once": (
        Attention(1, 2, 136, 136, 64, True),
        Cut(2, 64, together=2),
    ),
    "128, sums": (
        Attention(1, 1, 72, 104, 128, True, sums=True),
        Cut(1, 48, 3, ahead=True),
    ),
    "grouped": (
        Attention(2, 4, 72, 72, 64, groups=2, kind="f16"),
        Cut(1, 64, together=3),
    ),
    "window": (Attention(1, 1, 200, 200, 64, True, window=70), Cut(1, 64, ahead=True)),
    "fewer keys": (Attention(1, 1, 128, 64, 96, True, sums=True), Cut(2, 64)),
    "256": (Attention(1, 1, 64, 96, 256, scale=0.5), Cut(1, 48, ahead=True)),
}


def arguments(attention: Attention) -> list[Any]:
    r = np.random.default_rng(1)
    shapes = (attention.sizes(name) for name in "qkv")
    given = [coded(r.standard_normal(each), attention.dtype) for each in shapes]
    given = [each.view(attention.dtype.numpy) for each in given]
    given.append(np.zeros(attention.sizes("o"), attention.dtype.numpy))
    return given + [np.zeros(attention.sizes("lse"), np.float32)] * attention.sums


def reference(attention: Attention, given: list[Any]) -> tuple[Any, Any]:
    """Attention as it is defined, in double precision, and the logarithms of its sums."""
    numbers = (decoded(each.view(attention.dtype.storage), attention.dtype) for each in given[:3])
    q, k, v = (each.astype(np.float64) for each in numbers)
    k, v = (np.repeat(each, attention.groups, axis=1) for each in (k, v))
    scores = q @ k.swapaxes(2, 3) * attention.factor
    query = np.arange(attention.queries)[:, None] + attention.keys - attention.queries
    key = np.arange(attention.keys)[None]
    if attention.causal:
        scores = np.where(key <= query, scores, -np.inf)
    if attention.window is not None:
        scores = np.where(key > query - attention.window, scores, -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.exp(scores).sum(-1))
    return weights / np.where(total > 0, total, 1) @ v, logarithms


def evaluated(attention: Attention, tiling: Cut, given: list[Any]) -> list[Any]:
    """What the kernel means."""
    made = [each.copy() for each in given]
    flat = [each.reshape(-1) for each in made]
    run(kernel_of(attention, tiling, SMALL), flat)
    return made[3:]


@pytest.mark.parametrize("name", CASES)
def test_it_is_attention(name: str) -> None:
    attention, tiling = CASES[name]
    assert tiling.is_possible(attention, H200.shared_bytes_most)
    given = arguments(attention)
    found, *sums = evaluated(attention, tiling, given)
    wanted, logarithms = reference(attention, given)
    unit = 2.0 ** (-8 if attention.kind == "bf16" else -11)
    off = np.abs(decoded(found.view(attention.dtype.storage), attention.dtype) - wanted)
    assert off.max() < 3 * unit * np.abs(wanted).max()
    for each in sums:
        np.testing.assert_allclose(each, logarithms, atol=1e-5)


@needs_compiler
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_the_emulator_gives_the_same_bits_under_every_schedule(name: str) -> None:
    attention, tiling = CASES[name]
    given = arguments(attention)
    wanted = evaluated(attention, tiling, given)
    kernel = kernel_of(attention, tiling, SMALL)
    function = EmulatedFunction(kernel)
    grid = (kernel.grid[0].value, 1, 1)  # type: ignore[union-attr]
    report = function.launch(grid, function.packed(given), races=True, prove=True)
    assert report.proof is not None
    assert report.proof.reach is Reach.ALL_DATA
    np.testing.assert_array_equal(given[3].view(np.uint16), wanted[0].view(np.uint16))
    for own, each in zip(given[4:], wanted[1:], strict=True):
        np.testing.assert_array_equal(own, each)


@needs_compiler
@pytest.mark.parametrize("cap", [None, 30.0])
def test_ptxas_lets_products_and_weights_overlap(cap: float | None) -> None:
    stated = attention_nest(4, 16, 2048, 2048, 128, causal=True, cap=cap)
    attention = attention_of(stated.done()).attention
    text = cuda(kernel_of(attention, Cut(2, 128, ahead=True, turns=cap is None), H200))
    options = ("--ptxas-options=-v",)
    made = compile_cuda(text, "sm_90a", kind="cubin", contract=False, options=options)
    assert "serialized" not in made.log
    assert " 0 bytes spill stores" in made.log


def test_results_are_under_way_while_scores_become_weights() -> None:
    text = cuda(kernel_of(*CASES["full"], H200))
    text = text[text.rindex("for (int t = 0;") :]  # of those who consume
    waits = [text.index(f"wgmma.wait_group.sync.aligned {n}; pmevent") for n in (1, 0)]
    begun, others = text.index("wgmma.commit_group"), text.index("bar.arrive %0, 256")
    weights = text.index("exp2_ftz", waits[0])
    assert text.index("bar.sync %0, 256") < begun < others < waits[0] < weights < waits[1]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"head": 80}, "head of 80"),
        ({"queries": 0}, "below 1"),
        ({"groups": 3}, "heads of queries"),
        ({"window": 0}, "window"),
    ],
)
def test_what_it_cannot_be(sizes: dict[str, Any], said: str) -> None:
    plain = {"batch": 1, "heads": 4, "queries": 64, "keys": 64, "head": 64}
    with pytest.raises(CheckError, match=said):
        Attention(**(plain | sizes))


def test_what_has_no_room() -> None:
    wide = Attention(1, 1, 64, 64, 256)
    most = H200.shared_bytes_most
    assert not Cut(3, 64).is_possible(wide, most)  # registers
    assert not Cut(1, 64, 8).is_possible(wide, most)  # shared memory
    assert not Cut(1, 64, ahead=True, turns=True).is_possible(wide, most)
