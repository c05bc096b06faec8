"""Polynomial products over GF(2) in the catalogue.

`product.py` builds two kernels from a fill, `pieces.py` has one that is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Size, Values, listed
from warploom.catalogue.layout import WARP, check_block
from warploom.catalogue.pieces import piece_sizes, product_pieces
from warploom.catalogue.product import (
    check_degree,
    product_registers,
    product_shared,
    product_sketch,
)
from warploom.catalogue.shape import products
from warploom.catalogue.sketches import check_level
from warploom.catalogue.texts import multiplication_registers, multiplication_shared
from warploom.errors import CheckError
from warploom.kernel.ir import Kernel
from warploom.sketch.front import load_text
from warploom.sketch.term.ir import Program


def _sketch(name: str, text: Callable[[int], str]) -> Callable[..., Program]:
    """At the size of a warp, where for more coefficients a symbol stands for several words; at
    levels 1 to 3 the published sketch of eight coefficients, two in each of four lanes.
    """

    def make(degree: int, block: int, level: int) -> Program:
        check_level(name, level)
        if not level:
            check_degree(degree)
            check_block(block)
            return product_sketch(WARP)
        if degree != WARP:  # the default, with which nothing was asked for
            raise CheckError(
                f"{degree} coefficients at level {level}", advice="the published sketch has 8"
            )
        return load_text(text(level), name)

    return make


def _kernel(name: str, build: Callable[..., Kernel]) -> Callable[..., Kernel]:
    def make(degree: int, block: int, level: int) -> Kernel:
        check_level(name, level)
        if level:
            raise CheckError(
                f"'{name}': no kernel is built from the published sketch (level {level})",
                advice=f"use level=0, or fill it: 'warploom synth {name} --size level={level}'",
            )
        return build(degree, block)

    return make


def _inputs(size: Size, random: np.random.Generator, degree: int, **_: Any) -> Values:
    def words() -> Any:
        return random.integers(0, 1 << 32, size["batch"] * degree, dtype=np.uint32)

    return {"batch": size["batch"], "a": words(), "b": words()}


def _specification(values: Values, degree: int, **_: Any) -> Arrays:
    a, b = (np.asarray(values[name], np.uint32).reshape(-1, degree) for name in "ab")
    c = np.zeros((len(a), 2 * degree), np.uint32)
    for i in range(degree):
        c[:, i : i + degree] ^= a[:, i : i + 1] & b
    return {"c": c.reshape(-1)}


def _sizes(**_: Any) -> list[dict[str, int]]:
    batches = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 23, 31, 32, 33, 40, 47, 64, 65, 100)
    return [{"batch": batch} for batch in batches]


def _lane_entry(
    name: str, build: Callable[..., Kernel], text: Callable[[int], str], doc: str
) -> Entry:
    return Entry(
        name=name,
        doc=doc,
        parameters={"degree": 32, "block": 128, "level": 0},
        build=_kernel(name, build),
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        fit=products,
        inner={"a": 1, "b": 1, "c": 1},
        sketch=_sketch(name, text),
        variants=({}, {"degree": 64}, {"degree": 160, "block": 64}, {"degree": 384}),
        tune=listed({"block": block} for block in (64, 128, 256)),
    )


def tuning(degree: int) -> list[dict[str, int | str]]:
    """Settings of `product_pieces` worth trying on a device."""
    return [
        {"piece": piece, "operand": operand, "finish": finish, "block": block}
        for piece in piece_sizes(degree)
        for operand in ("load", "shuffle")
        for finish in ("store", "keep")
        for block in (64, 128)
    ]


ENTRIES: tuple[Entry, ...] = (
    _lane_entry(
        "product-registers",
        product_registers,
        multiplication_registers,
        "polynomial product over GF(2), one word a lane, shuffles"
    ),
    _lane_entry(
        "product-shared",
        product_shared,
        multiplication_shared,
        "polynomial product over GF(2), operands in shared memory"
    ),
    Entry(
        name="product-pieces",
        doc="polynomial product over GF(2), 32 to 384 coefficients, a piece a lane; hand-written",
        parameters={
            "degree": 64, "piece": 0, "operand": "load", "finish": "store", "block": 128
        },
        build=product_pieces,
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        fit=products,
        inner={"a": 1, "b": 1, "c": 1},
        variants=(
            {"degree": 32},
            {"operand": "shuffle"},
            {"finish": "keep"},
            {"degree": 96, "operand": "shuffle", "finish": "keep"},
            {"degree": 128, "piece": 4},
            {"degree": 352, "block": 64},
            {"degree": 384, "piece": 12},
        ),
        tune=listed(
            {"operand": operand, "finish": finish, "block": block}
            for operand in ("load", "shuffle")
            for finish in ("store", "keep")
            for block in (64, 128, 256)
        ),
    ),
)  # fmt: skip
