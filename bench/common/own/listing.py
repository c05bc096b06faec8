"""The sketches of this folder: how the command line names each, and what it does, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.own import sketches

from warploom.pipeline.compiled import Compiled, compiled
from warploom.pipeline.subject import Subject
from warploom.runtime.callable import Device
from warploom.sketch.code.need import shapes_for
from warploom.sketch.front import load_file

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Own:
    """`expected` gives the outputs of whole tiles, from arrays of whole tiles."""

    name: str
    argument: str
    subject: Callable[[], Subject]
    expected: Callable[..., Any]
    sizes: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    @property
    def command(self) -> list[str]:
        """What follows `warploom synth`, without the language."""
        sizes = [f"--size={key}={value}" for key, value in self.sizes.items()]
        steps = [f"--step={key}={value}" for key, value in self.steps.items()]
        return [str(HERE / self.argument), *sizes, *steps]

    def compiled(self, device: Device = "auto", **options: Any) -> Compiled:
        return compiled(self.subject(), steps=self.steps, device=device, **options)


def _transposition(m: int, n: int) -> Own:
    return Own(
        f"transposition {m} x {n}",
        "sketches.py::transposition",
        lambda: sketches.transposition(m, n),
        lambda x: x.reshape(-1, m, n).transpose(0, 2, 1),
        {"m": m, "n": n},
    )


def _file(name: str, expected: Callable[..., Any]) -> Own:
    return Own(name, f"{name}.swflow", lambda: load_file(str(HERE / f"{name}.swflow")), expected)


REVERSED_BITS = np.array([int(f"{i:05b}"[::-1], 2) for i in range(32)])

OWN = (
    _transposition(16, 6),
    _transposition(32, 11),
    _transposition(12, 8),
    _file("interleave", lambda a, b: np.stack([a, b], axis=-1)),
    Own(
        "complex to planes",
        "sketches.py::planes",
        lambda: sketches.planes,
        lambda x: (x[0::2], x[1::2]),
    ),
    _file("reversal", lambda x: x.reshape(-1, 32)[:, ::-1]),
    Own(
        "five taps, stride two",
        "sketches.py::strided_taps",
        sketches.strided_taps,
        lambda x: sum(x[k : len(x) - 4 + k : 2] for k in range(5)),
        steps={"x": 64},
    ),
    Own("scan", "sketches.py::scan", sketches.scan, lambda x: x.reshape(-1, 32).cumsum(axis=1)),
    Own(
        "butterfly sum",
        "sketches.py::butterfly",
        lambda: sketches.butterfly,
        lambda x: np.repeat(x.reshape(-1, 32).sum(axis=1), 32),
    ),
    _file("bit_reversal", lambda x: x.reshape(-1, 32)[:, REVERSED_BITS]),
)


def lengths(made: Compiled) -> list[int]:
    """Of outputs: less than a tile, parts of several tiles in several blocks, and whole tiles."""
    tile = made.tiled.tiling.outputs[0].shape[0]
    several = made.tiled.group + 2
    return [tile - 1, tile + 1, several * tile + tile // 2 + 1, several * tile]


def run(own: Own, made: Compiled, length: int, seed: int, move: Callable[[Any], Any]) -> list[bool]:
    """Runs on whole numbers, so that sums are exact; whether each output is as expected.

    `move` takes arrays to where the kernel runs; `get` brings outputs back, where they have it.
    """
    tiling = made.tiled.tiling
    shapes = shapes_for(tiling, {array.name: (length,) for array in tiling.outputs})
    draw = np.random.default_rng(seed)
    dtype = made.tiled.dtype.numpy
    inputs = [draw.integers(-9, 9, shapes[a.name]).astype(dtype) for a in tiling.inputs]
    outputs = [move(np.full(length, 77, dtype)) for _ in tiling.outputs]
    made(*map(move, inputs), *outputs)
    tiles = -(-length // tiling.outputs[0].shape[0])
    padded = [
        np.pad(each, (0, (tiles - 1) * a.step[0] + a.shape[0] - len(each)))
        for each, a in zip(inputs, tiling.inputs, strict=True)
    ]
    wanted = own.expected(*padded)
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    back = [each.get() if hasattr(each, "get") else each for each in outputs]
    pairs = zip(back, several, strict=True)
    return [np.array_equal(got, np.asarray(want).reshape(-1)[:length]) for got, want in pairs]
