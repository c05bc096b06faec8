"""Whatever says proved is right: random warp sketches, on simulator, C and compiled PTX."""

from __future__ import annotations

import json
import platform
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sketch.simt import generated
from tests.tools import require

from warploom import runtime
from warploom.errors import CheckError, DeviceError
from warploom.kernel.ir import Kernel
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible, Undecided
from warploom.sketch.simt.code import to_kernel
from warploom.sketch.simt.solve import solve

DEVICES = ("simulator", "c", "ptx")
RECORD = Path(__file__).parents[3] / "bench" / "results" / "simt_random.json"
COUNT = 200
SAMPLE = {
    0: "proved",  # through shared memory, with a hole
    1: "proved",  # a window of two axes, fewer outputs than lanes
    3: "proved",  # through shared memory twice, stored two lanes further down
    5: "impossible",
    9: "refuted",
    11: "refused",
    14: "proved",  # a window of 3 × 3
    16: "proved",  # two outputs, shared memory used again
    22: "proved",  # combined with another lane, a hole
    34: "proved",  # tiles of an input that overlap
}


def judged(case: generated.Case) -> Kernel | str:
    """The kernel, if everything says proved, else a word for what is said."""
    try:
        outcome = solve(case.made.at(), budget=Budget(seconds=60))
        match outcome:
            case Found(filled):
                kernel = to_kernel(filled, case.dtype, case.warps)
                assert "verdict: proved" in kernel.doc
                return kernel
            case Impossible():
                return "refuted" if not case.made.at().holes else "impossible"
            case Undecided():
                return "undecided"
    except CheckError as error:
        if "but the specification says" in error.message or "on the simulator" in error.message:
            raise  # the model should have known
        return "refused"


def sizes(case: generated.Case, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Lengths of the outputs: less than a tile, one element, whole tiles, and any others."""
    tile = np.array(next(iter(case.outputs.values()))[0].shape)
    others = [random.integers(1, 4 * tile + 1) for _ in range(2)]
    return [tuple(map(int, n)) for n in (np.maximum(1, tile - 1), tile + 1, 3 * tile, *others)]


def run_everywhere(case: generated.Case, kernel: Kernel, seed: int) -> None:
    random = np.random.default_rng(seed)
    loaded = [runtime.load(kernel, device) for device in DEVICES]  # type: ignore[arg-type]
    for shape in sizes(case, random):
        outputs = dict.fromkeys(case.outputs, shape)
        arrays = _inputs(case, kernel, random, outputs)
        wanted = {name: generated.reference(case, arrays, name, shape) for name in outputs}
        for function in loaded:
            given = {name: np.zeros(shape, case.dtype.numpy) for name in outputs} | arrays
            function(*(given[p.name] for p in kernel.arrays), **_named(kernel, given))
            for name, values in wanted.items():
                np.testing.assert_array_equal(given[name], values, f"{name} on {function}")


def _inputs(
    case: generated.Case, kernel: Kernel, random: np.random.Generator, outputs: Any
) -> dict[str, Any]:
    """Inputs that end where nothing more is needed, or, if the kernel asks for that, whole."""
    short = generated.least(case, outputs)
    tiles = [-(-n // t) for n, t in zip(*_first(case, outputs), strict=True)]
    long = {
        name: _whole(tiles[-len(x.step) :], x) if x.step else x.shape
        for name, x in case.inputs.items()
    }
    arrays = {name: generated.numbers(case, random, each) for name, each in short.items()}
    try:
        _prepare(case, kernel, arrays, outputs)
    except DeviceError as error:
        if "requires" not in error.message:
            raise
        arrays = {name: generated.numbers(case, random, each) for name, each in long.items()}
        _prepare(case, kernel, arrays, outputs)
    return arrays


def _prepare(case: generated.Case, kernel: Kernel, arrays: Any, outputs: Any) -> None:
    given = arrays | {name: np.zeros(n, case.dtype.numpy) for name, n in outputs.items()}
    order = [given[param.name] for param in kernel.arrays]
    runtime.load(kernel, "simulator").prepare(*order, **_named(kernel, given))


def _whole(tiles: list[int], array: generated.Tiled) -> tuple[int, ...]:
    along = zip(tiles, array.step, array.shape, strict=True)
    return tuple((count - 1) * step + own for count, step, own in along)


def _first(case: generated.Case, outputs: Any) -> tuple[Any, Any]:
    name, (tiled, _) = next(iter(case.outputs.items()))
    return outputs[name], tiled.shape


def _named(kernel: Kernel, given: dict[str, Any]) -> dict[str, int]:
    """The lengths of arrays of two axes; those of one follow from the arrays."""
    scalars = {scalar.name for scalar in kernel.scalars}
    named = {}
    for name, array in given.items():
        for axis, word in zip(reversed(range(array.ndim)), ("columns", "rows"), strict=False):
            if f"{name}_{word}" in scalars:
                named[f"{name}_{word}"] = array.shape[axis]
    return named


def check(seed: int) -> str:
    case = generated.generated(seed)
    kernel = judged(case)
    if isinstance(kernel, str):
        assert kernel == "refused" or not case.right, case.words
        return kernel
    assert case.right or case.made.at().holes, case.words
    run_everywhere(case, kernel, seed)
    return "proved"


def has_holes(seed: int) -> bool:
    try:
        return bool(generated.generated(seed).made.at().holes)
    except CheckError:
        return False


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("seed", "word"), SAMPLE.items())
def test_what_is_proved_equals_numpy(seed: int, word: str) -> None:
    for device in DEVICES:
        require(device)
    assert check(seed) == word


@pytest.mark.slow
def test_two_hundred_sketches_that_are_proved_equal_numpy() -> None:
    for device in DEVICES:
        require(device)
    said = {seed: check(seed) for seed in range(COUNT)}
    counts = Counter(said.values())
    opened = Counter(word for seed, word in said.items() if has_holes(seed))
    assert sum(counts.values()) == COUNT
    assert counts["proved"] >= COUNT // 3
    RECORD.write_text(
        json.dumps(
            {
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "machine": f"{platform.machine()}, no GPU",
                "command": f"pytest -m slow {Path(__file__).relative_to(RECORD.parents[2])}",
                "sketches": COUNT,
                "sizes_each": 5,
                "devices": ["simulator", "C", "compiled PTX on the emulator"],
                "counts": dict(sorted(counts.items())),
                "with_holes": dict(sorted(opened.items())),
                "wrong": 0,
            },
            indent=1,
        )
        + "\n"
    )
