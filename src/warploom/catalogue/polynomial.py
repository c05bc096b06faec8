"""Polynomial products over GF(2) in the catalogue: see `product.py` for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Size, Values
from warploom.catalogue.product import (
    piece_sizes,
    product_pieces,
    product_registers,
    product_shared,
)
from warploom.catalogue.window import WARP
from warploom.sketch import front
from warploom.sketch.term.ir import Program


def _sketch(degree: int, **_: Any) -> Program | None:
    """32 coefficients, at the size the search was published for: a warp of 4 lanes."""
    if degree != WARP:
        return None
    axes, shape, lines = "{main=0,second=1,out=1}", "[4,4]", []
    for name, first in (("a", 0), ("b", 4)):
        lines += [
            f"{name}: {shape} = {{",
            f"  {name}_in: [4] = range({first}, {first + 4})",
            f"  {name}_all: {shape} = broadcast({name}_in)",
            f"  {name}_1: {shape} = ?xforms_no_group{axes}({name}_all)",
            f"  {name}_2: {shape} = ?rots_no_group{axes}({name}_1)",
            "}",
        ]
    lines += [
        "products: [4,4] = * stack{fold_len=2}(a, b)",
        "both: [4,2,4] = broadcast{group=1}(products)",
        "early: [4,2,4] = ?cond_keep_no_consts{restrict=[1,0]}(both)",
        "late: [4,2,4] = ?cond_keep_no_consts{restrict=[1,1]}(early)",
        "sums: [4,2] = + reshape{fold_len=4}(late)",
        "turned: [2,4] = transpose(sums)",
        "out: [8] = reshape(turned)",
        "goal: [8] poly_mult{w=4}",
    ]
    return front.load_text("\n".join(lines) + "\n", "product.swflow")


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


def _lane_entry(form: str, build: Any, doc: str) -> Entry:
    return Entry(
        name=f"product-{form}",
        doc=doc,
        parameters={"degree": 32, "block": 128},
        build=build,
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        sketch=_sketch,
        variants=({}, {"degree": 64}, {"degree": 160, "block": 64}, {"degree": 384}),
        tune=tuple({"block": block} for block in (64, 128, 256)),
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
        "registers", product_registers, "polynomial product over GF(2), one word a lane, shuffles"
    ),
    _lane_entry(
        "shared", product_shared, "polynomial product over GF(2), operands in shared memory"
    ),
    Entry(
        name="product-pieces",
        doc="polynomial product over GF(2), 32 to 384 coefficients, a piece in each lane",
        parameters={
            "degree": 64, "piece": 0, "operand": "load", "finish": "store", "block": 128
        },
        build=product_pieces,
        inputs=_inputs,
        specification=_specification,
        sizes=_sizes,
        variants=(
            {"degree": 32},
            {"operand": "shuffle"},
            {"finish": "keep"},
            {"degree": 96, "operand": "shuffle", "finish": "keep"},
            {"degree": 128, "piece": 4},
            {"degree": 352, "block": 64},
            {"degree": 384, "piece": 12},
        ),
        tune=tuple(
            {"operand": operand, "finish": finish, "block": block}
            for operand in ("load", "shuffle")
            for finish in ("store", "keep")
            for block in (64, 128, 256)
        ),
    ),
)  # fmt: skip
