"""Array expressions written in Python: what to compute, with map, reduce, slide and friends.

    >>> from warploom import arrays as al, map_array
    >>> m, n, k = al.sizes("m n k")
    >>> def row(a, b):
    ...     add = lambda sum, pair: sum + pair.get(0) * pair.get(1)
    ...     return al.map_(lambda column: al.fold(add, 0.0, al.zip_(a, column)), al.transpose(b))
    >>> matmul = al.program(
    ...     "matmul",
    ...     lambda a, b: al.map_(lambda r: row(r, b), a),
    ...     a=al.array(al.f32, m, k),
    ...     b=al.array(al.f32, k, n),
    ... )
    >>> al.type_text(matmul.body.type)
    '[[f32]n]m'
    >>> found = map_array(matmul, {"m": 8, "n": 8, "k": 4}, first=True)
    >>> len(found.kernels)
    1

Types are checked as an expression is built, so an error is at the user's own line. Functions are
Python functions of expressions; one of several parameters takes a tuple apart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from warploom.array.language import ir as _ir
from warploom.array.language.ir import (
    Apply,
    Arithmetic,
    Lambda,
    Literal,
    Param,
    Program,
    Term,
    close,
    fresh,
    literal,
    number_like,
)
from warploom.array.language.op import (
    ANY,
    POSITION,
    SEQUENTIAL,
    VECTOR,
    AsScalar,
    AsVector,
    Boundary,
    Choose,
    Compute,
    Convert,
    Copy,
    Element,
    Gather,
    Get,
    Iterate,
    Join,
    Let,
    Level,
    Map,
    Op,
    Pack,
    Pad,
    Reduce,
    Scan,
    Scatter,
    Slice,
    Slide,
    SpaceName,
    Split,
    To,
    Transpose,
    Unzip,
    Zip,
)
from warploom.array.language.size import normal, quotient, size_variables
from warploom.array.types import Array, Scalar, Tuple, Type, Vector, type_text
from warploom.array.types import array as array
from warploom.errors import CheckError, calling_line
from warploom.index.ir import Expr as Index
from warploom.index.laws import simplify
from warploom.kernel.dtype import DType
from warploom.kernel.dtype import bf16 as bf16
from warploom.kernel.dtype import e4m3 as e4m3
from warploom.kernel.dtype import e5m2 as e5m2
from warploom.kernel.dtype import f16 as f16
from warploom.kernel.dtype import f32 as f32
from warploom.kernel.dtype import i32 as i32
from warploom.kernel.ir import Operator

Size: TypeAlias = Index | int
Function: TypeAlias = "Lambda | Callable[..., Term | float]"

sizes = size_variables
_OURS = (__file__, _ir.__file__)


@contextmanager
def _located() -> Iterator[None]:
    """Puts the user's line into an error that has none."""
    try:
        yield
    except CheckError as error:
        error.span = error.span or calling_line(*_OURS, contextmanager.__code__.co_filename)
        raise


def _apply(op: Op, functions: tuple[Lambda, ...], *arguments: Term) -> Apply:
    with _located():
        for argument in arguments:
            if not isinstance(argument, Arithmetic):
                raise CheckError(
                    f"{argument!r:.60} is no array expression",
                    advice="write literal(0.0, array(f32, n)) for an array of numbers",
                )
        made = _ir.apply(op, functions, arguments)
    doubtful = isinstance(op, Compute) and op.op in _ir.DOUBTFUL
    sized = Split | Slide | Pad | Slice | Element | Gather | Scatter | AsVector
    if doubtful or isinstance(op, sized):
        span = calling_line(*_OURS)
        if span is not None:
            _ir.note_place(made, span)
    return made


def function(written: Function, *types: Type) -> Lambda:
    """A Python function as a lambda over values of these types."""
    if isinstance(written, Lambda):
        return written
    params = tuple(fresh(type_) for type_ in types)
    passed: tuple[Term, ...] = params
    first = types[0] if len(types) == 1 else None
    if isinstance(first, Tuple) and _arity(written) == len(first.parts) > 1:
        passed = tuple(params[0].get(part) for part in range(len(first.parts)))
    with _located():
        _check_callable(written, len(passed))
        result = written(*passed)
        if not isinstance(result, Arithmetic):
            result = _returned(result, types)
    return close(params, result)


def _arity(written: Callable[..., object]) -> int:
    try:
        return len(inspect.signature(written).parameters)
    except (TypeError, ValueError):
        return 1


def _check_callable(written: Callable[..., object], count: int) -> None:
    if not callable(written):
        raise CheckError(f"{written!r:.60} is no function")
    try:
        inspect.signature(written).bind(*range(count))
    except TypeError:
        raise CheckError(
            f"a function of {count} values is wanted", advice=f"write one with {count} parameters"
        ) from None
    except ValueError:  # a built-in that does not tell
        pass


def _returned(result: object, types: tuple[Type, ...]) -> Term:
    if isinstance(result, int | float) and isinstance(types[0], Scalar | Vector):
        return literal(result, types[0])
    raise CheckError(
        f"a function returns {type(result).__name__}, which is no array expression",
        advice="write literal(0.0, type) for a number",
    )


# -- programs --------------------------------------------------------------------------------------


def program(name: str, body: Callable[..., Term], **inputs: Type | DType) -> Program:
    """A program: its inputs by name, and what it computes of them."""
    with _located():
        for each, given in inputs.items():
            if not isinstance(given, DType | Scalar | Vector | Array | Tuple):
                what = f"the input '{each}' is {given!r:.60}, no type"
                raise CheckError(what, advice="such as array(f32, n), or f32 for a number")
        params = tuple(Param(each, array(type_)) for each, type_ in inputs.items())
        if not name.isidentifier():
            raise CheckError(f"'{name[:60]}' cannot be the name of a program")
        _check_callable(body, len(params))
        result = body(*params)
        if not isinstance(result, Arithmetic):
            raise CheckError(f"'{name}' returns {type(result).__name__}, no array expression")
        strange = _ir.facts_of(result).params - set(params)
        if strange:
            raise CheckError(f"'{name}' uses a parameter of a function outside of it")
    return Program(name, params, result)


# -- functions over arrays -------------------------------------------------------------------------


def _element(xs: Term, name: str) -> Type:
    with _located():
        if not isinstance(xs, Arithmetic) or not isinstance(xs.type, Array):
            given = type_text(xs.type) if isinstance(xs, Arithmetic) else f"{xs!r:.60}"
            raise CheckError(f"{name} takes an array, not {given}")
        return xs.type.element


def map_(f: Function, xs: Term, level: Level = ANY) -> Apply:
    """f of each element; which level it runs on is to be decided."""
    return _apply(Map(level), (function(f, _element(xs, "map")),), xs)


def map_sequential(f: Function, xs: Term) -> Apply:
    return map_(f, xs, SEQUENTIAL)


def map_vector(f: Function, xs: Term) -> Apply:
    return map_(f, xs, VECTOR)


def map_local(dimension: int, f: Function, xs: Term) -> Apply:
    return map_(f, xs, Level("local", dimension))


def map_group(dimension: int, f: Function, xs: Term) -> Apply:
    return map_(f, xs, Level("group", dimension))


def map_global(dimension: int, f: Function, xs: Term) -> Apply:
    return map_(f, xs, Level("global", dimension))


def map_warp(f: Function, xs: Term) -> Apply:
    return map_(f, xs, Level("warp", 0))


def map_lane(f: Function, xs: Term) -> Apply:
    return map_(f, xs, Level("lane", 0))


def _folding(op: Reduce | Scan, f: Function, start: Term | float, xs: Term, name: str) -> Apply:
    element = _element(xs, name)
    with _located():
        first = start if isinstance(start, Arithmetic) else literal(start, element_number(element))
    return _apply(op, (function(f, first.type, element),), first, xs)


def element_number(type_: Type) -> Type:
    """The number that a Python number stands for beside elements of this type."""
    while isinstance(type_, Tuple):
        type_ = type_.parts[0]
    return type_


def reduce(f: Function, start: Term | float, xs: Term) -> Apply:
    """f(f(f(start, x0), x1), …), as an array of one element."""
    return _folding(Reduce(), f, start, xs, "reduce")


def fold(f: Function, start: Term | float, xs: Term) -> Apply:
    """f(f(f(start, x0), x1), …), as the element itself."""
    return element(0, reduce(f, start, xs))


def scan(f: Function, start: Term | float, xs: Term) -> Apply:
    """f(start, x0), f(f(start, x0), x1), …"""
    return _folding(Scan(), f, start, xs, "scan")


def iterate(times: int, f: Function, x: Term) -> Term:
    """f applied so many times. If f changes the size, its applications are written out."""
    with _located():
        if isinstance(times, bool) or not isinstance(times, int) or not 0 <= times <= 64:
            raise CheckError(f"iterate cannot run {times!r:.20} times", advice="use 0 to 64")
    if times == 0:
        return x
    once = function(f, x.type)
    if once.body.type is x.type:
        return _apply(Iterate(times), (once,), x)
    for _ in range(times):
        x = let(x, f)
    return x


def let(value: Term, f: Function) -> Apply:
    """f(value), where the value is computed once."""
    return _apply(Let(), (function(f, value.type),), value)


# -- layout ----------------------------------------------------------------------------------------


def split(size: Size, xs: Term) -> Apply:
    """Pieces of `size` elements."""
    return _apply(Split(normal(size)), (), xs)


def join(xs: Term) -> Apply:
    return _apply(Join(), (), xs)


def transpose(xs: Term) -> Apply:
    return _apply(Transpose(), (), xs)


IndexFunction: TypeAlias = Callable[[Index, Index], Index | int]


def _index(written: IndexFunction | None, xs: Term) -> Index | None:
    if written is None:
        return None
    with _located():
        _check_callable(written, 2)
    size = xs.type.size if isinstance(xs.type, Array) else normal(1)
    return simplify(written(POSITION, size) + normal(0))


def gather(index: IndexFunction, xs: Term, inverse: IndexFunction | None = None) -> Apply:
    """Element i is that at index(i, size). With its inverse it can be written through, too."""
    _element(xs, "gather")
    made = _index(index, xs)
    assert made is not None
    return _apply(Gather(made, _index(inverse, xs)), (), xs)


def scatter(index: IndexFunction, xs: Term, inverse: IndexFunction | None = None) -> Apply:
    """Element i comes to lie at index(i, size), a permutation."""
    _element(xs, "scatter")
    made = _index(index, xs)
    assert made is not None
    return _apply(Scatter(made, _index(inverse, xs)), (), xs)


def reverse(xs: Term) -> Apply:
    """The last element first."""
    return gather(_mirrored, xs, _mirrored)


def _mirrored(i: Index, size: Index) -> Index:
    return size - 1 - i


def strided(step: Size, xs: Term) -> Apply:
    """Every element `step` apart, then from the second one on, …: neighbours come to lie apart."""
    by = normal(step)
    with _located():
        if isinstance(xs.type, Array):
            quotient(xs.type.size, by)  # or it does not divide
    return gather(
        lambda i, n: i // (n // by) + by * (i % (n // by)),
        xs,
        lambda i, n: i // by + (n // by) * (i % by),
    )


def slide(size: Size, step: Size, xs: Term) -> Apply:
    """Windows of `size` elements, `step` apart, which end with the array."""
    return _apply(Slide(normal(size), normal(step)), (), xs)


def pad(
    left: Size, right: Size, xs: Term, boundary: Boundary = "constant", value: float = 0.0
) -> Apply:
    """More elements on both sides: clamp, wrap, mirror or a constant."""
    return _apply(Pad(normal(left), normal(right), boundary, float(value)), (), xs)


def slice_(start: Size, size: Size, xs: Term) -> Apply:
    """The elements start, start + 1, …, start + size - 1."""
    return _apply(Slice(normal(start), normal(size)), (), xs)


def element(index: Size, xs: Term) -> Apply:
    return _apply(Element(normal(index)), (), xs)


def zip_(*xs: Term) -> Apply:
    return _apply(Zip(), (), *xs)


def unzip(xs: Term) -> Apply:
    return _apply(Unzip(), (), xs)


def get(part: int, x: Term) -> Apply:
    return _apply(Get(part), (), x)


def pack(*parts: Term) -> Apply:
    """A tuple."""
    return _apply(Pack(), (), *parts)


def as_vector(width: int, xs: Term) -> Apply:
    return _apply(AsVector(width), (), xs)


def as_scalar(xs: Term) -> Apply:
    return _apply(AsScalar(), (), xs)


def _to(space: SpaceName, x: Term) -> Apply:
    with _located():
        if isinstance(x, Arithmetic) and not _ir.is_concrete(x):
            raise CheckError(
                f"to_{space} of what computes nothing, so nothing is written",
                advice="copy it: map_(copy, xs)",
            )
    return _apply(To(space), (), x)


def to_global(x: Term) -> Apply:
    return _to("global", x)


def to_local(x: Term) -> Apply:
    return _to("local", x)


def to_private(x: Term) -> Apply:
    return _to("private", x)


# -- numbers ---------------------------------------------------------------------------------------


def compute(op: Operator, *operands: Term | float) -> Apply:
    """An operator of kernels, such as sqrt, fma, tanh."""
    first = next((each for each in operands if isinstance(each, Arithmetic)), None)
    with _located():
        if first is None:
            raise CheckError(f"'{op}' of numbers alone is a number: compute it in Python")
        made = [number_like(each, first) for each in operands]
    return _apply(Compute(op), (), *made)


def copy(x: Term) -> Apply:
    """A copy of a number, written to another memory."""
    return _apply(Copy(), (), x)


def choose(condition: Term, then: Term, otherwise: Term | float) -> Apply:
    """`choose(a.lt(b), a, b)`"""
    with _located():
        other = number_like(otherwise, then)
    return _apply(Choose(), (), condition, then, other)


def convert(dtype: DType, x: Term) -> Apply:
    return _apply(Convert(dtype), (), x)


def filled(value: float, type_: Type | DType) -> Literal:
    """A number of a type, or an array of it."""
    with _located():
        return literal(value, array(type_))


# -- several dimensions ----------------------------------------------------------------------------


def map_nested(depth: int, f: Function, xs: Term) -> Apply:
    """f of each element `depth` arrays deep."""
    if depth == 1:
        return map_(f, xs)
    return map_(lambda inner: map_nested(depth - 1, f, inner), xs)


def zip_nested(depth: int, *xs: Term) -> Apply:
    """Arrays of arrays, zipped `depth` deep."""
    if depth == 1:
        return zip_(*xs)
    return map_(
        lambda part: zip_nested(depth - 1, *(part.get(at) for at in range(len(xs)))), zip_(*xs)
    )


def slide_2d(rows: tuple[Size, Size], columns: tuple[Size, Size], xs: Term) -> Apply:
    """[a]w]h → windows [down][across][rows][columns]; each pair is size and step."""
    across = map_(lambda row: slide(*columns, row), xs)
    return map_(transpose, slide(*rows, across))


def pad_2d(
    rows: tuple[Size, Size],
    columns: tuple[Size, Size],
    xs: Term,
    boundary: Boundary = "constant",
    value: float = 0.0,
) -> Apply:
    wide = map_(lambda row: pad(*columns, row, boundary, value), xs)
    return pad(*rows, wide, boundary, value)
