"""Recipes: the mid-level expressions mean what the programs mean, and have the published form."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from tests.array.fixture import convolution_maps

from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program
from warploom.array.mapping.released import released
from warploom.array.mapping.tree import map_trees
from warploom.array.plan.plan import plan
from warploom.array.recipe import convolution as conv
from warploom.array.recipe import matmul as matmul_recipe
from warploom.array.recipe import stencil as stencil_recipe
from warploom.array.workload import Convolution, convolution, dot, matmul, stencil_2d
from warploom.errors import SearchError


@lru_cache
def mid_level(padding: int = 1, stride: int = 1) -> Program:
    return conv.mid_level(convolution(padding, stride))


@pytest.mark.slow
def test_the_published_loop_tree() -> None:
    """Every map of the published expression, with its parent, size, memories and folds."""
    (tree,) = map_trees(plan(mid_level()))
    wanted = convolution_maps()
    assert len(tree.maps) == 43
    for found, published in zip(tree.maps, wanted.maps, strict=True):
        assert found.number == published.number
        assert found.parent == published.parent
        assert found.size is published.size
        assert (found.writes, found.reads) == (published.writes, published.reads)
        assert found.perfect == published.perfect
        assert found.folds == published.folds
    assert tree.nests == wanted.nests
    assert released(tree, "none").by_kind == released(wanted, "none").by_kind


def by_hand(image: np.ndarray, kernels: np.ndarray, layer: Convolution) -> np.ndarray:
    p, s = layer.padding, layer.stride
    padded = np.pad(image, ((p, p), (p, p), (0, 0)))
    out = np.zeros((layer.rows, layer.columns, layer.kernels), image.dtype)
    for row in range(layer.rows):
        for column in range(layer.columns):
            y, x = row * s, column * s
            window = padded[y : y + layer.kernel_height, x : x + layer.kernel_width]
            out[row, column] = np.tensordot(kernels, window, 3)
    return out


LAYERS = {
    "padded": (Convolution(4, 4, 4, 6, padding=1), None, None),
    "more computed": (Convolution(3, 5, 4, 6, padding=1), 4, 8),
    "wide kernel": (Convolution(4, 6, 4, 6, 2, 4, padding=1), None, None),
}
OTHERS = {
    "plain": (Convolution(6, 10, 4, 6, padding=0), None, None),
    "one by one": (Convolution(4, 4, 4, 6, 1, 1, padding=0), None, None),
    "stride": (Convolution(9, 8, 4, 6, stride=2, padding=0), None, None),
    "stride, padded": (Convolution(7, 8, 4, 6, stride=2, padding=1), None, None),
}


def tuned(sizes: dict[str, int]) -> dict[str, int]:
    """Some tile sizes that divide."""
    half = lambda n: n // 2 if n % 2 == 0 else n  # noqa: E731
    return {
        "kgs": 6, "sk": 2, "kcs": 1, "td": 4, "icd": 2, "wth": 1, "wtw": sizes["kw"],
        "th": sizes["OH"], "sy": half(sizes["OH"]), "icy": 1,
        "tw": half(sizes["OW"]), "sx": half(sizes["OW"]), "icx": 1,
    }  # fmt: skip


def check(layer: Convolution, rows: int | None, columns: int | None) -> None:
    random = np.random.default_rng(3)
    image = random.integers(-4, 5, (layer.height, layer.width, layer.channels)).astype(np.float32)
    shape = (layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels)
    kernels = random.integers(-4, 5, shape).astype(np.float32)
    program = convolution(layer.padding, layer.stride)
    sizes = layer.sizes(rows, columns)
    wanted = by_hand(image, kernels, layer)
    assert np.array_equal(evaluate(program, image, kernels, **sizes), wanted)
    after = mid_level(layer.padding, layer.stride)
    assert np.array_equal(evaluate(after, image, kernels, **sizes, **tuned(sizes)), wanted)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LAYERS)
def test_the_convolution_is_one_before_and_after(name: str) -> None:
    check(*LAYERS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_convolutions_are_too(name: str) -> None:
    check(*OTHERS[name])


def whole(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.integers(-5, 6, shape).astype(np.float32)


@pytest.mark.parametrize("staged", [False, True])
def test_matmul(staged: bool) -> None:
    random = np.random.default_rng(4)
    a, b = whole(random, 8, 12), whole(random, 12, 16)
    after = matmul_recipe.mid_level(matmul(), staged)
    tiles = {"bm": 4, "bn": 8, "rm": 2, "rn": 4, "tk": 3}
    assert np.array_equal(evaluate(after, a, b, **tiles), a @ b)
    (tree,) = map_trees(plan(after))
    shared = [each for each in tree.buffers if each.space == "local"]
    assert [each.scope for each in shared] == ([(0, 1)] if staged else [])
    assert len(tree.maps) == 20 + 2 * staged


@pytest.mark.parametrize("staged", [False, True])
def test_stencil(staged: bool) -> None:
    random = np.random.default_rng(5)
    x, w = whole(random, 8, 12), whole(random, 3, 3)
    before = stencil_2d(boundary="mirror")
    after = stencil_recipe.mid_level(before, staged)
    assert np.array_equal(evaluate(after, x, w, th=4, tw=6), evaluate(before, x, w))
    (tree,) = map_trees(plan(after))
    assert len(tree.maps) == 4 + 2 * staged


def test_a_recipe_says_which_step_cannot_be_taken() -> None:
    with pytest.raises(SearchError, match="'dot': the step 'in pieces' cannot be taken"):
        matmul_recipe.mid_level(dot())
