"""The 1-D stencil: every output is the mean of `taps` neighbouring inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.catalogue import rule
from warploom.catalogue.entry import Arrays, Entry, Size, Values, listed
from warploom.catalogue.layout import check_block
from warploom.catalogue.shape import windows_of_line
from warploom.catalogue.window import (
    LINE_TUNE,
    Tile,
    line_sizes,
    numbers,
    sketch_of,
    window_of,
    write_windows,
)
from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.kernel.build import Builder, RegisterArray
from warploom.kernel.dtype import DType, from_numpy
from warploom.kernel.ir import Kernel
from warploom.sketch.code.accumulate import accumulate
from warploom.sketch.term.ir import Program


def stencil_1d(
    taps: int = 3, width: int = 4, rows: int = 1, block: int = 128, dtype: str = "float32"
) -> Kernel:
    """y[i] = (x[i] + … + x[i + taps - 1]) / taps."""
    kind = _float(dtype)
    tile = Tile(taps, width, rows, kind)
    check_block(block)
    exchange = window_of(tile, weighted=False)
    k = Builder(
        f"stencil_{taps}",
        block=block,
        doc=f"y[i] = (x[i] + ... + x[i + {taps - 1}]) / {taps}.\n{tile.doc}\n{exchange.doc}",
    )
    n = k.scalar("n")
    x = k.array("x", kind, n + (taps - 1), const=True)
    y = k.array("y", kind, n)

    def mean(window: RegisterArray, kept: Callable[[Expr], Expr], sums: RegisterArray) -> None:
        with k.loop("tap", taps) as tap, k.loop("e", width) as e:
            accumulate(k, sums[e], sums[e] + window[tap + e], kept(tap + e))
        with k.loop("e", width) as e:
            sums[e] = sums[e] * (1.0 / taps)

    write_windows(k, n, x, y, tile, exchange, block, mean)
    return k.done()


def _float(dtype: str) -> DType:
    kind = from_numpy(dtype)
    if not kind.is_float:
        raise CheckError(f"a mean of {dtype}", advice="use float32 or float64, or convolution-1d")
    return kind


def _sketch(taps: int, width: int, rows: int, dtype: str, **_: Any) -> Program | None:
    return sketch_of(Tile(taps, width, rows, from_numpy(dtype)), weighted=False)


def _inputs(size: Size, random: np.random.Generator, taps: int, dtype: str, **_: Any) -> Values:
    return {"n": size["n"], "x": numbers(random, size["n"] + taps - 1, dtype)}


def _specification(values: Values, taps: int, dtype: str, **_: Any) -> Arrays:
    x, n = np.asarray(values["x"], np.float64), int(values["n"])
    mean = sum(x[j : j + n] for j in range(taps)) / taps
    return {"y": np.asarray(mean).astype(dtype)}


ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="stencil-1d",
        doc="the mean of `taps` neighbours along a line",
        parameters={"taps": 3, "width": 0, "rows": 0, "block": 0, "dtype": "float32"},
        choose=rule.line,
        fit=windows_of_line,
        build=stencil_1d,
        inputs=_inputs,
        specification=_specification,
        sizes=line_sizes,
        sketch=_sketch,
        variants=(
            {},
            {"taps": 9},
            {"taps": 17, "rows": 2},
            {"width": 1, "rows": 1},
            {"taps": 33, "width": 1, "rows": 2},
            {"taps": 5, "width": 2, "rows": 3, "dtype": "float64"},
        ),
        tune=listed(LINE_TUNE),
        tolerance=1e-5,
        computes=True,
    ),
)
