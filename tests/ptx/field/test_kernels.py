"""Kernels as people write them, and a reference in NumPy of each."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.ptx.field.launches import KERNELS, Reference, equal

from warploom import ptx
from warploom.ptx.emulate.tensor import tensor_map
from warploom.ptx.field.digits import Digits
from warploom.ptx.field.elements import Elements
from warploom.ptx.field.floats import Field
from warploom.ptx.field.run import UNWRITTEN, Floats, run

GEMM = Path(__file__).parents[1] / "hopper" / "gemm.ptx"
N, ROWS = 37, 3  # of rows that no block divides


def softmax(x: Any) -> Any:
    made = np.exp(x - x.max(axis=1, keepdims=True))
    return made / made.sum(axis=1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax((q @ k.T) * 0.125) @ v


def norm(x: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


CASES: dict[str, tuple[Any, Any, list[tuple[int, ...]], tuple[int, ...], Reference, list[Any]]] = {
    "product": ((3, 3), (16, 16), [(N, N), (N, N)], (N, N), lambda a, b: a @ b, [N]),
    "softmax": (ROWS, 32, [(ROWS, N)], (ROWS, N), softmax, [N]),
    "attention": (1, 32, [(1, 32), (3, 32), (3, 32)], (1, 32), attention, [3, np.float32(0.125)]),
    "row_norm": (ROWS, 32, [(ROWS, N)], (ROWS, N), norm, [N]),
    "largest": (ROWS, 32, [(ROWS, N)], (ROWS,), lambda x: x.max(axis=1), [N]),
}
WRONG: dict[str, Reference] = {
    "product": lambda a, b: a @ b.T,
    "softmax": lambda x: np.exp(x) / np.exp(x[:, 1:]).sum(axis=1, keepdims=True),
    "row_norm": lambda x: (
        (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True))
    ),
    "largest": lambda x: x[:, :-1].max(axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_equal(name: str) -> None:
    grid, block, shapes, out, reference, rest = CASES[name]
    found = equal(KERNELS.kernel(name), grid, block, shapes, out, reference, rest)
    assert found.verdict == "equal", found
    assert found.error <= -40


@pytest.mark.parametrize("name", WRONG)
def test_different(name: str) -> None:
    grid, block, shapes, out, _, rest = CASES[name]
    found = equal(KERNELS.kernel(name), grid, block, shapes, out, WRONG[name], rest)
    assert found.verdict == "different", found


def test_a_changed_sign_is_not_equal() -> None:
    """Of one instruction at a time, in a sample; the block has no loop that is not run here."""
    name = "product"
    text = (Path(__file__).parent / "kernels.ptx").read_text()
    start = text.index(f"entry {name}(")
    end = text.index("\n}", start)
    body = text[start:end]
    lines = [line for line in body.split("\n") if "add.f32" in line or "fma.rn.f32" in line]
    grid, block, shapes, out, reference, rest = CASES[name]
    for line in Random(5).sample(lines, 1):
        target = line.split()[1].rstrip(",")
        changed = body.replace(line, f"{line} neg.f32 {target}, {target};", 1)
        mutant = ptx.load(text[:start] + changed + text[end:])
        found = equal(mutant.kernel(name), grid, block, shapes, out, reference, rest)
        assert found.verdict == "different", line


def test_a_hopper_matmul() -> None:
    """The digest's: tensor maps, mbarriers and wgmma, on bf16."""
    size, r = 128, Random(11)
    field = Field(Elements.drawn(r), Digits.drawn(r))
    e = field.elements
    a, b = (Floats("bf16", e.inputs(size * size, r).reshape(size, size)) for _ in range(2))
    c = Floats("bf16", np.full((size, size), UNWRITTEN))
    maps = [tensor_map(each.bits, box=(128, 64), swizzle=128) for each in (a, b)]
    x, y = (e["a"][each.numbers] for each in (a, b))
    run(ptx.load(GEMM.read_text(), "gemm.ptx").kernel("gemm"), 1, 384,
        [*maps, c.bits, size, size, size], [a, b, c], field, r,
        shared_bytes=2 * 256 * 64 * 2)  # fmt: skip
    assert (c.numbers != UNWRITTEN).all()
    assert (e["a"][c.numbers] == e.pair.p.products(x, y)).all()
    assert (e["degree"][c.numbers] == 2).all()
