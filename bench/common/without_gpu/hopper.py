"""Hopper kernels of Triton and Gluon, kept as PTX: `tests/without_gpu/hopper`.

The first line of each text says how it is launched, with names of arrays and sizes in place of
numbers, so that a text runs for every size. `tests/without_gpu/make.py` compiled them for sm_90a.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom import ptx

FOLDER = Path("tests/without_gpu/hopper")
NAMES = ("triton_roles", "triton_hosted", "triton_described", "triton_twofold", "gluon_ring")


@dataclass(frozen=True)
class Kept:
    """A kernel's text, and how it is launched."""

    name: str
    text: str
    record: dict[str, Any]

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows, columns and inner side of a tile."""
        rows, columns, inner = self.record["tile"]
        return rows, columns, inner

    def grid(self, m: int, n: int, programs: int | None = None) -> int:
        """Blocks: a program for each tile, or so many where programs go through tiles."""
        tiles = -(-m // self.tile[0]) * -(-n // self.tile[1])
        return (programs or tiles) * int(self.record["cluster"])

    def args(self, given: Mapping[str, Any], blocks: int) -> list[Any]:
        """What the PTX takes, of the arrays a, b and c and the sizes M, N and K."""
        return [_value(each, given, blocks) for each in self.record["args"]]


def _value(entry: Any, given: Mapping[str, Any], blocks: int) -> Any:
    match entry:
        case None:
            return None
        case {"map": name, "box": box, "swizzle": swizzle}:
            return ptx.tensor_map(given[name], box, swizzle)
        case {"side": name, "axis": axis}:
            return np.int32(given[name].shape[axis])
        case {"stride": name, "axis": axis}:
            return np.int64(given[name].strides[axis] // given[name].itemsize)
        case {"scratch": size}:
            return np.zeros(size * blocks, np.uint8)
    return given[entry]


def kept(name: str) -> Kept:
    text = (FOLDER / f"{name}.ptx").read_text()
    return Kept(name, text, json.loads(text.partition("\n")[0][2:]))


def problem(m: int, n: int, k: int, seed: int = 1) -> dict[str, Any]:
    """Small whole numbers, so that every sum is exact."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.full((m, n), np.nan, np.float16)
    return {"a": a, "b": b, "c": c, "M": m, "N": n, "K": k}


def product(given: Mapping[str, Any]) -> Any:
    return (given["a"].astype(np.float32) @ given["b"].astype(np.float32).T).astype(np.float16)
