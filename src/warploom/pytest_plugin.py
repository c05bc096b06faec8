"""The pytest plugin: a user's kernels and index arithmetic, checked in the user's own tests.

    def test_my_tile(check_tile):
        check_tile(my_tile)          # a warploom.layout.own.SharedTile

    def test_softmax(gpu):           # there is none: the kernel is emulated, with all checks
        gpu.launch(softmax, (rows,), x, out, columns, BLOCK=128)

    def test_relu(judge):            # for all inputs of these shapes
        judge(Path("relu.cu"), lambda x: np.maximum(x, 0), {"x": "f32[n]", "y": "f32[n]=out"},
              grid="(n+255)//256", block=256, shape={"n": [1000, 1024]})

Installed with the package; where it is not, `-p warploom.pytest_plugin` loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

# pytest loads this for every test of whoever has the package: only a fixture in use costs time.
if TYPE_CHECKING:
    from warploom.layout.own import Examined, SharedTile
    from warploom.verdict.answer import Judgement
    from warploom.without_gpu.fixture import Gpu


@pytest.fixture
def check_tile() -> Callable[[SharedTile], Examined]:
    """Fails where a tile's index arithmetic is wrong, and says for which lanes."""
    own = import_module("warploom.layout.own")

    def check(tile: SharedTile) -> Examined:
        found: Examined = own.examine(tile)
        if not found.right:
            pytest.fail("\n".join(found.wrong), pytrace=False)
        return found

    return check


@pytest.fixture
def gpu() -> Gpu:
    """Launches kernels without a GPU; whatever they do wrong fails the test."""
    made: Gpu = import_module("warploom.without_gpu.fixture").Gpu()
    return made


@pytest.fixture
def judge() -> Callable[..., Judgement]:
    """`warploom.judge`; whatever is not shown to be equal to its reference fails the test."""
    found: Callable[..., Judgement] = import_module("warploom.verdict.fixture").passes
    return found
