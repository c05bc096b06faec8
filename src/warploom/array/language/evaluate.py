"""What an expression means, on NumPy arrays; this file is the definition of the language.

A number is an array without axes, a vector an array of its lanes, a tuple a tuple of values. An
array of elements has their axes and one more in front; an array of tuples is a tuple of arrays, so
that `zip` and `unzip` do nothing. The body of a map is evaluated for all elements at once: values
in it have the axes of the maps around, the *batch*, in front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.array.language import op as ops
from warploom.array.language.bind import bound, known_shape, positions, sizes_of_inputs
from warploom.array.language.ir import (
    Apply,
    Bound,
    Lambda,
    Literal,
    Param,
    Program,
    Term,
    repeated_terms,
)
from warploom.array.language.size import number
from warploom.array.types import (
    Array,
    Tuple,
    Type,
    Vector,
    array,
    base,
    dtype_of,
    type_text,
)
from warploom.errors import CheckError
from warploom.index.ir import Expr as Index
from warploom.kernel.arithmetic import apply as compute
from warploom.kernel.arithmetic import compare, convert
from warploom.kernel.dtype import DType

Leaf: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "Leaf | tuple[Value, ...]"
Batch: TypeAlias = tuple[int, ...]
# Parameters of the lambdas around, the nearest first, all with the axes of the batch.
Frames: TypeAlias = "tuple[tuple[Value, ...], ...]"


def evaluate(program: Program, *inputs: Any, **sizes: int) -> Value:
    """What a program computes of arrays (tuples of arrays) and numbers.

    Sizes that are an axis of an input need not be given.
    """
    if len(inputs) != len(program.inputs):
        raise CheckError(f"'{program.name}' takes {len(program.inputs)} inputs, not {len(inputs)}")
    found = sizes_of_inputs(program, inputs) | sizes
    known = bound(program, found)
    given = {
        each: as_value(value, each.type, each.name)
        for each, value in zip(known.inputs, inputs, strict=True)
    }
    return _Evaluation(given).whole(known.body, (), ())


def as_value(given: Any, type_: Type, name: str) -> Value:
    """An input as a value of its type; its shape is checked."""
    inner = base(type_)
    if isinstance(inner, Tuple):
        if not isinstance(given, tuple) or len(given) != len(inner.parts):
            raise CheckError(f"'{name}' is a tuple of {len(inner.parts)} parts")
        outer = known_shape(type_)
        return tuple(
            as_value(part, array(kind, *outer), f"{name}.{at}")
            for at, (part, kind) in enumerate(zip(given, inner.parts, strict=True))
        )
    dtype = dtype_of(inner)
    assert dtype is not None
    lanes = (inner.width,) if isinstance(inner, Vector) else ()
    wanted = known_shape(type_) + lanes
    made = np.asarray(given)
    if made.shape != wanted:
        raise CheckError(f"'{name}' has the shape {made.shape}, but {type_text(type_)} is wanted")
    return made.astype(dtype.numpy)


def mapped(value: Value, change: Callable[[Leaf], Leaf]) -> Value:
    """Each array of a value changed."""
    if isinstance(value, tuple):
        return tuple(mapped(part, change) for part in value)
    return change(value)


def joined(values: list[Value], change: Callable[[list[Leaf]], Leaf]) -> Value:
    """Several values of one type made one, array by array."""
    if isinstance(values[0], tuple):
        columns = [value if isinstance(value, tuple) else () for value in values]
        return tuple(joined(list(parts), change) for parts in zip(*columns, strict=True))
    return change([leaf_of(value) for value in values])


def leaf_of(value: Value) -> Leaf:
    assert not isinstance(value, tuple)
    return value


def _known(size: Index) -> int:
    value = number(size)
    assert value is not None
    return value


@dataclass(slots=True)
class _Evaluation:
    """One evaluation; the inputs have no batch. Of what is used more than once in the function
    called, or outside of all, the value is kept."""

    inputs: dict[Param, Value]
    shared: frozenset[Term] = frozenset()
    done: dict[Term, Value] = field(default_factory=dict)

    def whole(self, term: Term, frames: Frames, batch: Batch) -> Value:
        outer = self.shared, self.done
        self.shared, self.done = repeated_terms(term), {}
        made = self.term(term, frames, batch)
        self.shared, self.done = outer
        return made

    def term(self, term: Term, frames: Frames, batch: Batch) -> Value:
        if term not in self.shared:
            return self._term(term, frames, batch)
        if term not in self.done:
            self.done[term] = self._term(term, frames, batch)
        return self.done[term]

    def _term(self, term: Term, frames: Frames, batch: Batch) -> Value:
        match term:
            case Param():
                return mapped(self.inputs[term], lambda leaf: _spread(leaf, batch))
            case Bound(level, position, _):
                return frames[level][position]
            case Literal(value, type_):
                return _filled(value, type_, batch)
            case Apply(op, functions, arguments):
                values = [self.term(each, frames, batch) for each in arguments]
                types = [each.type for each in arguments]
                if functions:
                    return self._over(term, values, frames, batch)
                if isinstance(op, ops.Compute | ops.Copy | ops.Ask | ops.Choose | ops.Convert):
                    return _computed(op, [leaf_of(each) for each in values], types)
                return _moved(term, values, len(batch))
            case _:
                assert_never(term)

    def _call(self, f: Lambda, given: tuple[Value, ...], frames: Frames, batch: Batch) -> Value:
        return self.whole(f.body, (given, *frames), batch)

    def _over(self, term: Apply, values: list[Value], frames: Frames, batch: Batch) -> Value:
        op, f, axis = term.op, term.functions[0], len(batch)
        match op:
            case ops.Map():
                size = _size(term.arguments[0].type)
                wider: Frames = tuple(
                    tuple(mapped(value, lambda leaf: _widened(leaf, axis, size)) for value in frame)
                    for frame in frames
                )
                return self._call(f, (values[0],), wider, (*batch, size))
            case ops.Reduce() | ops.Scan():
                state, found = values[0], list[Value]()
                for at in range(_size(term.arguments[1].type)):
                    item = mapped(values[1], lambda leaf, at=at: np.take(leaf, at, axis=axis))  # type: ignore[misc]
                    state = self._call(f, (state, item), frames, batch)
                    found.append(state)
                kept = found if isinstance(op, ops.Scan) else found[-1:]
                return joined(kept, lambda leaves: np.stack(leaves, axis=axis))
            case ops.Iterate(times):
                value = values[0]
                for _ in range(times):
                    value = self._call(f, (value,), frames, batch)
                return value
            case ops.Let():
                return self._call(f, tuple(values), frames, batch)
            case _:
                raise AssertionError(op)


def _size(type_: Type) -> int:
    assert isinstance(type_, Array)
    return _known(type_.size)


def _spread(leaf: Leaf, batch: Batch) -> Leaf:
    return np.broadcast_to(leaf, (*batch, *leaf.shape))


def _widened(leaf: Leaf, axis: int, size: int) -> Leaf:
    """The leaf broadcast along the axis of one more map."""
    shape = (*leaf.shape[:axis], size, *leaf.shape[axis:])
    return np.broadcast_to(np.expand_dims(leaf, axis), shape)


def _filled(value: float, type_: Type, batch: Batch) -> Leaf:
    inner = base(type_)
    dtype = dtype_of(inner)
    assert dtype is not None
    lanes = (inner.width,) if isinstance(inner, Vector) else ()
    return np.full((*batch, *known_shape(type_), *lanes), value, dtype=dtype.numpy)


def _computed(
    op: ops.Compute | ops.Copy | ops.Ask | ops.Choose | ops.Convert,
    values: list[Leaf],
    types: list[Type],
) -> Leaf:
    match op:
        case ops.Compute(name):
            dtype = dtype_of(types[0])
            assert dtype is not None
            return compute(name, values, dtype)
        case ops.Copy():
            return values[0]
        case ops.Ask(name):
            return compare(name, values[0], values[1])
        case ops.Choose():
            truth = values[0].reshape(values[0].shape + (1,) * (values[1].ndim - values[0].ndim))
            return np.where(truth, values[1], values[2])
        case ops.Convert(dtype):
            return _converted(values[0], dtype, dtype_of(types[0]))
        case _:
            assert_never(op)


def _converted(value: Leaf, dtype: DType, source: DType | None) -> Leaf:
    """Codes, by whose bits numbers of 16 bits are converted, are values as NumPy has them."""
    coded = source is not None and source.is_code
    made = convert(value.view(source.storage) if coded and source else value, dtype, source)
    return made.view(dtype.numpy) if dtype.is_code else made


def _moved(term: Apply, values: list[Value], axis: int) -> Value:
    """Layout: the same elements at other places."""
    match term.op:
        case ops.Zip() | ops.Pack():
            return tuple(values)
        case ops.Unzip() | ops.To():
            return values[0]
        case ops.Get(part):
            assert isinstance(values[0], tuple)
            return values[0][part]
        case ops.Split() | ops.Join() | ops.AsVector() | ops.AsScalar() | ops.Transpose():
            return mapped(values[0], lambda leaf: _reshaped(term, leaf, axis))
        case ops.Pad(left, right, "constant", value):
            around = (_known(left), _known(right))
            return mapped(values[0], lambda leaf: _framed(leaf, axis, around, value))
        case _:
            index = index_of(term)
            return mapped(values[0], lambda leaf: np.take(leaf, index, axis=axis))


def _reshaped(term: Apply, leaf: Leaf, axis: int) -> Leaf:
    outer, inner = leaf.shape[:axis], leaf.shape[axis:]
    match term.op:
        case ops.Split(size):
            return leaf.reshape(*outer, -1, _known(size), *inner[1:])
        case ops.AsVector(width):
            return leaf.reshape(*outer, -1, width, *inner[1:])
        case ops.Join() | ops.AsScalar():
            return leaf.reshape(*outer, -1, *inner[2:])
        case _:
            return np.swapaxes(leaf, axis, axis + 1)


def _framed(leaf: Leaf, axis: int, around: tuple[int, int], value: float) -> Leaf:
    widths = [around if at == axis else (0, 0) for at in range(leaf.ndim)]
    return np.pad(leaf, widths, constant_values=leaf.dtype.type(value))


def index_of(term: Apply) -> npt.NDArray[np.int64]:
    """Which elements of its argument a layout operation takes, along one axis."""
    size = _size(term.arguments[0].type)
    everything = np.arange(size)
    match term.op:
        case ops.Gather(index, _):
            return np.asarray(positions(index, size, {}))
        case ops.Scatter(index, _):
            return np.argsort(positions(index, size, {}))
        case ops.Slide(width, step):
            starts = np.arange(0, size - _known(width) + 1, _known(step))
            return starts[:, None] + np.arange(_known(width))
        case ops.Slice(start, taken):
            return everything[_known(start) : _known(start) + _known(taken)]
        case ops.Element(at):
            return np.asarray(_known(at))
        case ops.Pad(left, right, boundary, _):
            wanted = np.arange(-_known(left), size + _known(right))
            return _at_boundary(wanted, size, boundary)
        case _:
            raise AssertionError(term.op)


def _at_boundary(
    wanted: npt.NDArray[np.int64], size: int, boundary: str
) -> npt.NDArray[np.int64]:  # fmt: skip
    match boundary:
        case "clamp":
            return np.minimum(np.maximum(wanted, 0), size - 1)
        case "wrap":
            return wanted % size
        case _:  # mirror: … 1 0 | 0 1 2 | 2 1 …
            folded = wanted % (2 * size)
            return np.where(folded < size, folded, 2 * size - 1 - folded)
