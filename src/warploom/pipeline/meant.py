"""What a product or attention computes as plain data, which `trust/meaning.py` evaluates; and a
digest of it, by which programs are known again whatever their names are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from warploom.errors import UnsupportedError
from warploom.kernel.ir import Cast, Number, Operation, Value
from warploom.loopnest.attention.stated import Stated, attention_of
from warploom.loopnest.computation import Folded, Kept, Loaded
from warploom.loopnest.ir import Axis, Parameter, Program
from warploom.loopnest.matrix.product import Factor, MatrixProduct, matrix_product
from warploom.loopnest.strategies.form import NotMeantError
from warploom.trust.meaning import KNOWN


def statement(program: Program) -> str | None:
    """A digest of what a program computes of arrays of which types, if it is one of these."""
    for read in (_product, _attention):
        try:
            said = read(program)
        except (NotMeantError, UnsupportedError):
            continue
        arrays = {each.name: f"array {n}" for n, each in enumerate(program.arrays)}
        numbers = {each.name: f"number {n}" for n, each in enumerate(program.parameters)}
        types = [each.dtype.value for each in program.arrays]
        text = json.dumps([_renamed(said, arrays | numbers), types], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
    return None


def _product(program: Program) -> dict[str, Any]:
    return of_product(matrix_product(program))


def _attention(program: Program) -> dict[str, Any]:
    return of_attention(attention_of(program))


def _renamed(said: Any, names: Mapping[str, str]) -> Any:
    match said:
        case dict():
            return {key: _renamed(each, names) for key, each in said.items()}
        case list():
            return [_renamed(each, names) for each in said]
        case str():
            return names.get(said, said)
    return said


def of_product(p: MatrixProduct, sizes: Mapping[Axis, int] | None = None) -> dict[str, Any]:
    """A product, along shorter axes where sizes are given."""
    short = sizes or {}
    rows, columns, over = (short.get(each, each.size) for each in (p.rows, p.columns, p.over))
    batches = 1 if p.batch is None else short.get(p.batch, p.batch.size)
    place = p.store.access.place
    return {
        "is": "product", "sizes": [batches, rows, columns, over],
        "a": _factor(p.a), "b": _factor(p.b),
        "out": {"array": p.out.name, "offset": place.offset, "steps": _steps(p, place.factors)},
        "after": _tree(p, p.store.value),
    }  # fmt: skip


def _factor(factor: Factor) -> dict[str, Any]:
    return {"array": factor.array.name, "steps": [factor.batch, factor.line, factor.deep]}


def _steps(product: MatrixProduct, factors: Mapping[Axis, int]) -> list[int]:
    """How far apart elements lie along batches, rows and columns."""
    batch = 0 if product.batch is None else factors.get(product.batch, 0)
    return [batch, factors.get(product.rows, 0), factors.get(product.columns, 0)]


def _tree(product: MatrixProduct, value: Value) -> list[Any]:
    """What is stored, of a sum, as plain data."""
    match value:
        case Kept():
            return _tree(product, value.value)
        case Folded():
            made: list[Any] = ["sum"]
            for each in product.scales:
                made = ["*", made, _tree(product, each)]
            return made
        case Loaded(access=access):
            place = access.place
            return ["load", access.array.name, place.offset, _steps(product, place.factors)]
        case Parameter(name):
            return ["parameter", name]
        case Number(number) if np.isfinite(number):
            return ["number", float(number)]
        case Cast(dtype, inner):
            return ["cast", dtype.value, _tree(product, inner)]
        case Operation(op, operands) if op in KNOWN:
            return [op, *(_tree(product, each) for each in operands)]
    raise UnsupportedError(f"there is no certificate of what is made of a sum by {value!r:.60} yet")


def of_attention(stated: Stated, sizes: Mapping[Axis, int] | None = None) -> dict[str, Any]:
    """Attention, along shorter axes where sizes are given; heads are as far apart as before."""
    made, whole = stated.along(sizes or {}), stated.attention
    if whole.map is not None or whole.window is not None or whole.after or whole.sums:
        raise UnsupportedError(
            "there is no certificate of attention with a cap, a bias, a mask, a window or "
            "logarithms of sums yet"
        )
    rows = {"q": whole.queries, "k": whole.keys, "v": whole.keys, "o": whole.queries}
    return {
        "is": "attention", "arrays": dict(stated.names),
        "sizes": [made.all_heads, made.groups, made.queries, made.keys, made.head],
        "steps": {name: count * made.head for name, count in rows.items()},
        "factor": made.factor, "causal": made.causal,
    }  # fmt: skip
