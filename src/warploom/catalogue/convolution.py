"""Windows along a line: n outputs from n + taps - 1 inputs. A stencil takes the mean of `taps`
neighbours, a convolution a weighted sum: y[i] = Σ_j w[j]·x[i + j].

Weights are passed by value, so that a multiply-add reads them from the constant bank, or as an
array in global memory, which every thread first reads into registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from warploom.catalogue import rule
from warploom.catalogue.entry import Arrays, Entry, Size, Values, listed
from warploom.catalogue.layout import check_block
from warploom.catalogue.shape import windows_of_line
from warploom.catalogue.window import (
    LINE_TUNE,
    Tile,
    Window,
    line_sizes,
    numbers,
    sketch_of,
    window_of,
    write_windows,
)
from warploom.errors import CheckError
from warploom.index.ir import Expr, Var
from warploom.kernel.build import Array, Builder, RegisterArray, fma
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
    says = f"(x[i] + ... + x[i + {taps - 1}]) / {taps}"
    k, exchange, n, x = _begun("stencil", says, tile, block, weighted=False)
    y = k.array("y", kind, n)

    def mean(window: RegisterArray, kept: Callable[[Expr], Expr], sums: RegisterArray) -> None:
        with k.loop("tap", taps) as tap, k.loop("e", width) as e:
            accumulate(k, sums[e], sums[e] + window[tap + e], kept(tap + e))
        with k.loop("e", width) as e:
            sums[e] = sums[e] * (1.0 / taps)

    write_windows(k, n, x, y, tile, exchange, block, mean)
    return k.done()


def convolution_1d(
    taps: int = 3,
    width: int = 4,
    rows: int = 1,
    block: int = 128,
    weights: str = "value",
    dtype: str = "float32",
) -> Kernel:
    """y[i] = w[0]·x[i] + … + w[taps - 1]·x[i + taps - 1]."""
    kind = from_numpy(dtype)
    tile = Tile(taps, width, rows, kind)
    says = f"w[0] x[i] + ... + w[{taps - 1}] x[i + {taps - 1}]"
    k, exchange, n, x = _begun("convolution", says, tile, block, weighted=True)
    weight = _weights(k, kind, taps, weights)
    y = k.array("y", kind, n)

    def dot(window: RegisterArray, kept: Callable[[Expr], Expr], sums: RegisterArray) -> None:
        with k.loop("tap", taps) as tap, k.loop("e", width) as e:
            more = fma(weight[tap], window[tap + e], sums[e])
            accumulate(k, sums[e], more, kept(tap + e))

    write_windows(k, n, x, y, tile, exchange, block, dot)
    return k.done()


def _begun(
    name: str, says: str, tile: Tile, block: int, weighted: bool
) -> tuple[Builder, Window, Var, Array]:
    """The kernel before its first line, what its lanes exchange, how many windows there are, and
    what they are of."""
    check_block(block)
    exchange = window_of(tile, weighted)
    doc = f"y[i] = {says}.\n{tile.doc}\n{exchange.doc}"
    k = Builder(f"{name}_{tile.taps}", block=block, doc=doc)
    n = k.scalar("n")
    return k, exchange, n, k.array("x", tile.dtype, n + (tile.taps - 1), const=True)


def _float(dtype: str) -> DType:
    kind = from_numpy(dtype)
    if not kind.is_float:
        raise CheckError(f"a mean of {dtype}", advice="use float32 or float64, or convolution-1d")
    return kind


def _weights(k: Builder, kind: DType, taps: int, weights: str) -> RegisterArray:
    """The weights, wherever they come from, as something indexed by constants."""
    match weights:
        case "value":
            return k.constant("w", kind, taps)
        case "array":
            given = k.array("w", kind, taps, const=True)
            held = k.registers("weight", kind, taps)
            with k.loop("tap", taps) as tap:
                held[tap] = given[tap]
            return held
        case _:
            raise CheckError(f"weights by '{weights[:40]}'", advice="use value or array")


def _sketch(
    taps: int, width: int, rows: int, dtype: str, *, weighted: bool, **_: Any
) -> Program | None:
    return sketch_of(Tile(taps, width, rows, from_numpy(dtype)), weighted)


def _line(size: Size, random: np.random.Generator, taps: int, dtype: str, **_: Any) -> Values:
    return {"n": size["n"], "x": numbers(random, size["n"] + taps - 1, dtype)}


def _weighted_line(
    size: Size, random: np.random.Generator, taps: int, dtype: str, **_: Any
) -> Values:
    return _line(size, random, taps, dtype) | {"w": numbers(random, taps, dtype)}


def _mean(values: Values, taps: int, dtype: str, **_: Any) -> Arrays:
    x, n = np.asarray(values["x"], np.float64), int(values["n"])
    mean = sum(x[j : j + n] for j in range(taps)) / taps
    return {"y": np.asarray(mean).astype(dtype)}


def _weighted_sum(values: Values, taps: int, dtype: str, **_: Any) -> Arrays:
    wide = np.float64 if np.dtype(dtype).kind == "f" else np.int64
    x, w = (np.asarray(values[name], wide) for name in "xw")
    n = int(values["n"])
    total = sum(w[j] * x[j : j + n] for j in range(taps))
    return {"y": np.asarray(total).astype(dtype)}


ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="stencil-1d",
        doc="the mean of `taps` neighbours along a line",
        parameters={"taps": 3, "width": 0, "rows": 0, "block": 0, "dtype": "float32"},
        choose=rule.line,
        fit=windows_of_line,
        build=stencil_1d,
        inputs=_line,
        specification=_mean,
        sizes=line_sizes,
        sketch=partial(_sketch, weighted=False),
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
    Entry(
        name="convolution-1d",
        doc="weighted sums of `taps` neighbours along a line",
        parameters={
            "taps": 3, "width": 0, "rows": 0, "block": 0, "weights": "value", "dtype": "float32"
        },
        build=convolution_1d,
        inputs=_weighted_line,
        specification=_weighted_sum,
        sizes=line_sizes,
        sketch=partial(_sketch, weighted=True),
        fit=windows_of_line,
        choose=rule.line,
        variants=(
            {},
            {"taps": 9, "rows": 2},
            {"taps": 17, "weights": "array"},
            {"taps": 4, "width": 1, "rows": 3},
            {"taps": 33, "width": 1, "rows": 1},
            {"taps": 7, "width": 2, "rows": 2, "dtype": "float64"},
            {"taps": 5, "width": 4, "rows": 1, "dtype": "int32"},
        ),
        tune=listed(LINE_TUNE),
        tolerance=1e-5,
        computes=True,
    ),
)  # fmt: skip
