"""What a certified kernel should compute, by plain NumPy in double precision, from the statement in
its certificate.

    product     out[i, j] = f(Σ_k a[i, k]·b[j, k]), where f is an expression of the sum, of loads
                and numbers; batches have products of their own
    attention   out = softmax(c·q·kᵀ)·v, head by head

Nothing of the languages that state programs is used, nor of their evaluators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.kernel.dtype import DType, memory_of, numbers_of
from warploom.trust.checked import require

Numbers = npt.NDArray[Any]
_MOST = 1 << 26  # elements of a matrix that is looked at
_BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "min": np.fmin,
    "max": np.fmax,
}  # fmt: skip
_erf = np.vectorize(math.erf, otypes=[np.float64])
_UNARY: dict[str, Callable[[Numbers], Any]] = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "log": np.log,
    "log2": np.log2, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh,
    "erf": _erf, "sin": np.sin, "cos": np.cos,
}  # fmt: skip
KNOWN = frozenset((*_BINARY, *_UNARY, "fma"))


def meant(
    said: Mapping[str, Any], arrays: Mapping[str, Numbers], numbers: Mapping[str, float],
    types: Mapping[str, DType],
) -> tuple[str, Numbers, Numbers]:  # fmt: skip
    """The name of what is stored, its elements by number, and what each should be."""
    given = {name: _wide(each, types[name]) for name, each in arrays.items()}
    match said["is"]:
        case "product":
            return _product(said, given, numbers)
        case "attention":
            return _attention(said, given)
    require(False, f"it means what is not known: {said['is']!r:.40}")
    raise AssertionError


def _wide(array: Numbers, dtype: DType) -> Numbers:
    return np.asarray(numbers_of(array, dtype), np.float64)


def _places(array: Numbers, offset: int, steps: list[int], sides: tuple[int, ...]) -> Numbers:
    """The numbers of elements that lie so far apart along axes."""
    require(len(steps) == len(sides) and math.prod(sides) <= _MOST, "a matrix is too large")
    found = np.full(sides, offset, np.int64)
    for axis, (step, side) in enumerate(zip(steps, sides, strict=True)):
        shape = [1] * len(sides)
        shape[axis] = side
        found = found + step * np.arange(side).reshape(shape)
    require(found.min() >= 0 and found.max() < array.size, "it means what is outside an array")
    return found


def _product(
    said: Mapping[str, Any], given: Mapping[str, Numbers], numbers: Mapping[str, float]
) -> tuple[str, Numbers, Numbers]:
    batches, rows, columns, deep = (int(each) for each in said["sizes"])
    a, b = (
        given[each["array"]][_places(given[each["array"]], 0, each["steps"], (batches, side, deep))]
        for each, side in ((said["a"], rows), (said["b"], columns))
    )
    sums = np.einsum("bik,bjk->bij", a, b, optimize=True)
    out = said["out"]
    sides = (batches, rows, columns)
    places = _places(given[out["array"]], out["offset"], out["steps"], sides)
    with np.errstate(all="ignore"):
        value = _value(said["after"], sums, given, numbers)
    return out["array"], places.ravel(), np.broadcast_to(value, sides).ravel()


def _value(
    said: Any, sums: Numbers, given: Mapping[str, Numbers], numbers: Mapping[str, float]
) -> Numbers:
    def of(each: Any) -> Numbers:
        return _value(each, sums, given, numbers)

    match said:
        case ["sum"]:
            return sums
        case ["load", str(array), int(offset), list(steps)]:
            return given[array][_places(given[array], offset, steps, sums.shape)]
        case ["number", value]:
            return np.asarray(float(value))
        case ["parameter", str(name)]:
            return np.asarray(float(numbers[name]))
        case ["cast", str(kind), inner]:
            return _cast(of(inner), DType(kind))
        case ["fma", x, y, z]:
            return of(x) * of(y) + of(z)
        case [str(op), x, y] if op in _BINARY:
            return np.asarray(_BINARY[op](of(x), of(y)))
        case [str(op), x] if op in _UNARY:
            return np.asarray(_UNARY[op](of(x)))
    require(False, f"it means what is not known: {said!r:.60}")
    raise AssertionError


def _cast(numbers: Numbers, dtype: DType) -> Numbers:
    """Rounded to codes; what is wider stays as it is."""
    return _wide(memory_of(numbers, dtype), dtype) if dtype.is_code else numbers


def _attention(
    said: Mapping[str, Any], given: Mapping[str, Numbers]
) -> tuple[str, Numbers, Numbers]:
    heads, groups, queries, keys, deep = (int(each) for each in said["sizes"])
    names, steps = said["arrays"], said["steps"]

    def rows(part: str, count: int, number: int) -> Numbers:
        array, sides = given[names[part]], (number, count, deep)
        return _places(array, 0, [steps[part], deep, 1], sides)

    kept = heads // groups
    q = given[names["q"]][rows("q", queries, heads)]
    k, v = (np.repeat(given[names[e]][rows(e, keys, kept)], groups, axis=0) for e in "kv")
    scores = np.einsum("hid,hjd->hij", q, k, optimize=True) * float(said["factor"])
    if said["causal"]:
        seen = np.arange(keys)[None] <= np.arange(queries)[:, None] + keys - queries
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    found = np.einsum("hij,hjd->hid", weights, v, optimize=True)
    return names["o"], rows("o", queries, heads).ravel(), found.ravel()
