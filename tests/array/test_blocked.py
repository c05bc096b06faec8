"""Products in blocks: the expression means the product, and so do its kernels."""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.array.blocked import Blocks, convolution, matmul
from bench.common.array.fixed import compile_fixed
from tests.array.mapped import checked_launch
from tests.array.test_recipe import by_hand

from warploom.array import build as al
from warploom.array.code.program import Compiled
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program
from warploom.array.types import array
from warploom.array.workload import Convolution
from warploom.errors import CheckError
from warploom.kernel.dtype import f32
from warploom.kernel.ir import Barrier, Kernel, Load, Registers, walk


def kernels_of(program: Program, blocks: Blocks) -> Compiled:
    """The program says how its maps run: there is one mapping of each stage."""
    return compile_fixed(
        program, lambda stage, _: (*blocks.threads, blocks.slices) if stage == 0 else (8, 2, 1)
    )


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def block_barriers(kernel: Kernel) -> int:
    return sum(isinstance(each, Barrier) for each in walk(kernel.body))


def test_a_product_of_matrices() -> None:
    blocks = Blocks(16, 8, 4, 8, 4)
    program = matmul(20, 12, 16, blocks)
    a, b = numbers(20, 16), numbers(12, 16)
    assert np.allclose(evaluate(program, a, b), a @ b.T, rtol=1e-5, atol=1e-5)
    compiled = kernels_of(program, blocks)
    assert np.allclose(compiled(checked_launch, a, b), a @ b.T, rtol=1e-5, atol=1e-5)
    (kernel,) = compiled.kernels
    # Fetched before anybody waits; two barriers in each iteration, and none for every element.
    assert block_barriers(kernel) == 2
    wide = {each.width for each in walk(kernel.body) if isinstance(each, Load)}
    assert wide == {4}
    sums = [each.size for each in walk(kernel.body) if isinstance(each, Registers) and each.size]
    assert max(sums) == 8 * 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("layer", "blocks"),
    [
        (Convolution(5, 6, 8, 8), Blocks(16, 8, 8, 4, 4)),
        (Convolution(6, 5, 8, 16, stride=2), Blocks(16, 16, 8, 4, 8, parts=3)),
        (Convolution(5, 5, 3, 8), Blocks(16, 8, 9, 8, 4, lanes=1)),
        (Convolution(5, 6, 8, 8), Blocks(16, 8, 8, 4, 4, slices=2)),
        (Convolution(3, 6, 8, 16), Blocks(16, 16, 8, 8, 8, parts=3, slices=4)),
    ],
    ids=["plain", "in parts", "three channels", "in slices", "in slices and parts"],
)
def test_convolutions(layer: Convolution, blocks: Blocks) -> None:
    program = convolution(layer, blocks)
    image = numbers(layer.height, layer.width, layer.channels)
    kernels = numbers(layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels)
    wanted = by_hand(image, kernels, layer)
    assert np.allclose(evaluate(program, image, kernels), wanted, rtol=1e-4, atol=1e-4)
    compiled = kernels_of(program, blocks)
    assert np.allclose(compiled(checked_launch, image, kernels), wanted, rtol=1e-4, atol=1e-4)
    assert len(compiled.kernels) == (1 if blocks.parts == 1 else 2)
    partial = layer.rows * layer.columns * layer.kernels * 4 * blocks.parts
    assert compiled.temporary_bytes == (partial if blocks.parts > 1 else 0)


def test_what_leaves_several_mappings_is_refused() -> None:
    program = al.program("open", lambda x: al.map_(lambda v: v + 1, x), x=array(f32, 8))
    with pytest.raises(CheckError, match="leaves 5 mappings"):
        compile_fixed(program, lambda *_: (1, 1, 1))


def test_blocks_that_do_not_divide_are_refused() -> None:
    with pytest.raises(CheckError, match="6 does not divide 16"):
        matmul(16, 16, 16, Blocks(16, 16, 4, 6, 4))
