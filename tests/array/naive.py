"""Array expressions element by element, on lists: a second meaning that shares nothing with the
first but the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.array.language.ir import Apply, Bound, Literal, Param, Term
from warploom.array.types import Array, Vector
from warploom.index.evaluate import evaluate as evaluate_index


def number(expr: Any) -> int:
    return int(evaluate_index(expr, {}))


def naive(term: Term, env: dict[Param, Any], frames: tuple[tuple[Any, ...], ...] = ()) -> Any:
    """Numbers are NumPy scalars, vectors and arrays lists, tuples tuples."""
    match term:
        case Param():
            return env[term]
        case Bound(level, position, _):
            return frames[level][position]
        case Literal(value, type_):
            return filled(value, type_)
        case Apply(op, functions, arguments):
            given = [naive(each, env, frames) for each in arguments]

            def call(*values: Any) -> Any:
                return naive(functions[0].body, env, (values, *frames))

            return OPS[type(op).__name__](op, call, *given)


def filled(value: float, type_: Any) -> Any:
    if isinstance(type_, Array):
        return [filled(value, type_.element) for _ in range(number(type_.size))]
    if isinstance(type_, Vector):
        return [filled(value, type_.element) for _ in range(type_.width)]
    return type_.dtype.numpy.type(value)


def _reduce(op: Any, call: Any, state: Any, xs: list[Any]) -> list[Any]:
    return _scan(op, call, state, xs)[-1:]


def _scan(op: Any, call: Any, state: Any, xs: list[Any]) -> list[Any]:
    found = []
    for x in xs:
        state = call(state, x)
        found.append(state)
    return found


def _iterate(op: Any, call: Any, x: Any) -> Any:
    for _ in range(op.times):
        x = call(x)
    return x


def _split(op: Any, call: Any, xs: list[Any]) -> list[Any]:
    size = number(op.size)
    return [xs[at : at + size] for at in range(0, len(xs), size)]


def _vectors(op: Any, call: Any, xs: list[Any]) -> list[Any]:
    return [xs[at : at + op.width] for at in range(0, len(xs), op.width)]


def _position(op: Any, at: int) -> int:
    return int(evaluate_index(op.index, {"position": at}))


def _scatter(op: Any, call: Any, xs: list[Any]) -> list[Any]:
    made: list[Any] = [None] * len(xs)
    for at, x in enumerate(xs):
        made[_position(op, at)] = x
    return made


def _slide(op: Any, call: Any, xs: list[Any]) -> list[Any]:
    size, step = number(op.size), number(op.step)
    return [xs[at : at + size] for at in range(0, len(xs) - size + 1, step)]


def _pad(op: Any, call: Any, xs: list[Any]) -> list[Any]:
    left, right = number(op.left), number(op.right)
    match op.boundary:
        case "clamp":
            return [xs[0]] * left + xs + [xs[-1]] * right
        case "wrap":
            return xs[len(xs) - left :] + xs + xs[:right]
        case "mirror":
            return xs[:left][::-1] + xs + xs[len(xs) - right :][::-1]
    outside = constant_like(xs[0], op.value)
    return [outside] * left + xs + [outside] * right


def constant_like(x: Any, value: float) -> Any:
    if isinstance(x, list):
        return [constant_like(each, value) for each in x]
    return type(x)(value)


def _compute(op: Any, call: Any, *given: Any) -> Any:
    if isinstance(given[0], list):
        return [_compute(op, call, *lanes) for lanes in zip(*given, strict=True)]
    with np.errstate(all="ignore"):
        match op.op:
            case "+":
                return given[0] + given[1]
            case "-":
                return given[0] - given[1]
            case "*":
                return given[0] * given[1]
            case "min":
                return min(given)
            case "max":
                return max(given)
            case "neg":
                return -given[0]
    raise AssertionError(op.op)


OPS: dict[str, Any] = {
    "Map": lambda op, call, xs: [call(x) for x in xs],
    "Reduce": _reduce,
    "Scan": _scan,
    "Iterate": _iterate,
    "Let": lambda op, call, x: call(x),
    "Split": _split,
    "Join": lambda op, call, xs: [x for row in xs for x in row],
    "Transpose": lambda op, call, xs: [list(column) for column in zip(*xs, strict=True)],
    "Gather": lambda op, call, xs: [xs[_position(op, at)] for at in range(len(xs))],
    "Scatter": _scatter,
    "Slide": _slide,
    "Pad": _pad,
    "Slice": lambda op, call, xs: xs[number(op.start) : number(op.start) + number(op.size)],
    "Element": lambda op, call, xs: xs[number(op.index)],
    "Zip": lambda op, call, *xs: list(zip(*xs, strict=True)),
    "Unzip": lambda op, call, xs: tuple(list(part) for part in zip(*xs, strict=True)),
    "Get": lambda op, call, x: x[op.part],
    "Pack": lambda op, call, *parts: parts,
    "AsVector": _vectors,
    "AsScalar": lambda op, call, xs: [x for row in xs for x in row],
    "To": lambda op, call, x: x,
    "Copy": lambda op, call, x: x,
    "Compute": _compute,
    "Ask": lambda op, call, a, b: {"<": a < b, "<=": a <= b, "==": a == b}[op.op],
    "Choose": lambda op, call, condition, a, b: a if condition else b,
    "Convert": lambda op, call, x: op.dtype.numpy.type(x),
}


def as_lists(value: Any, type_: Any) -> Any:
    """What `evaluate` gives, in the form of `naive`."""
    if isinstance(type_, Array):
        size = number(type_.size)
        return [as_lists(at_index(value, at), type_.element) for at in range(size)]
    if isinstance(value, tuple):
        return tuple(as_lists(v, t) for v, t in zip(value, type_.parts, strict=True))
    return list(value) if isinstance(type_, Vector) else value[()]


def at_index(value: Any, at: int) -> Any:
    return tuple(at_index(part, at) for part in value) if isinstance(value, tuple) else value[at]
