"""When an operation fits its arguments, and of what type the result is.

In come an operation, the types of its functions and of its arguments; out goes a type, or one
CheckError. What depends on sizes that are not known yet is a *condition*, checked when they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from warploom.array.language import op as ops
from warploom.array.language.size import normal, quotient
from warploom.array.types import (
    TRUTH,
    Any,
    Array,
    Scalar,
    Truth,
    Tuple,
    Type,
    Vector,
    array,
    dtype_of,
    holds_truth,
    type_text,
)
from warploom.errors import CheckError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Const, Expr, variables
from warploom.index.show import show
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import ARITY, FLOAT_ONLY, INTEGER_ONLY

WIDTHS = (2, 4)  # of vectors that memory is accessed by
MOST_DIMENSION = 2

# The types of a function's parameters, and of its result.
Signature: TypeAlias = tuple[tuple[Type, ...], Type]


def result_type(op: ops.Op, functions: tuple[Signature, ...], arguments: tuple[Type, ...]) -> Type:
    """The type of an operation applied; raises CheckError if it does not fit."""
    match op:
        case ops.Map() | ops.Reduce() | ops.Scan() | ops.Iterate() | ops.Let():
            return _over(op, functions, arguments)
        case ops.Compute() | ops.Copy() | ops.Ask() | ops.Choose() | ops.Convert():
            _counted(op, functions, 0, "functions")
            return _number(op, arguments)
        case ops.To():
            _counted(op, arguments, 1, "arguments")
            return arguments[0]
        case ops.Call(_, result):
            assert isinstance(result, Type)
            return result
        case _:
            _counted(op, functions, 0, "functions")
            return _layout(op, arguments)


def name_of(op: ops.Op) -> str:
    """The name a user knows it by."""
    match op:
        case ops.Map(ops.Level(kind, dimension)):
            return "map" if kind == "any" else f"map_{kind}" + (
                f"({dimension})" if kind in ops.DIMENSIONED else ""
            )  # fmt: skip
        case ops.To(space):
            return f"to_{space}"
        case ops.AsVector():
            return "as_vector"
        case ops.AsScalar():
            return "as_scalar"
        case ops.Compute(name) | ops.Ask(name):
            return f"'{name}'"
        case ops.Call(name, _):
            return name
        case _:
            return type(op).__name__.lower()


def _counted(op: ops.Op, given: tuple[object, ...], count: int, what: str) -> None:
    if len(given) != count:
        raise CheckError(f"{name_of(op)} takes {count} {what}, not {len(given)}")


# -- functions over arrays -------------------------------------------------------------------------


def _over(op: ops.Over, functions: tuple[Signature, ...], arguments: tuple[Type, ...]) -> Type:
    _counted(op, functions, 1, "functions")
    (takes, gives) = functions[0]
    if holds_truth(gives):
        raise CheckError(
            f"the function of {name_of(op)} returns a Boolean, which cannot be stored",
            advice="choose(condition, 1, 0) makes a number of it",
        )
    match op:
        case ops.Map(level):
            _check_level(level)
            _counted(op, arguments, 1, "arguments")
            given = _array(op, arguments[0])
            _takes(op, takes, (given.element,))
            return array(gives, given.size)
        case ops.Reduce() | ops.Scan():
            _counted(op, arguments, 2, "arguments")
            given = _array(op, arguments[1])
            _takes(op, takes, (arguments[0], given.element))
            _same(op, "its function returns", gives, arguments[0])
            return array(gives, 1 if isinstance(op, ops.Reduce) else given.size)
        case ops.Iterate(times):
            _counted(op, arguments, 1, "arguments")
            if times < 0:
                raise CheckError(f"iterate cannot run {times} times")
            _takes(op, takes, arguments)
            _same(op, "its function returns", gives, arguments[0])
            return gives
        case ops.Let():
            _takes(op, takes, arguments)
            return gives
        case _:
            assert_never(op)


def _check_level(level: ops.Level) -> None:
    if level.dimension and level.kind not in ops.DIMENSIONED:
        raise CheckError(f"a map that runs on {level.kind} has no dimension")
    if not 0 <= level.dimension <= MOST_DIMENSION:
        raise CheckError(
            f"there is no dimension {level.dimension}", advice=f"use 0 to {MOST_DIMENSION}"
        )


def _takes(op: ops.Op, takes: tuple[Type, ...], given: tuple[Type, ...]) -> None:
    if len(takes) != len(given):
        raise CheckError(f"the function of {name_of(op)} takes {len(given)} values")
    for wanted, found in zip(takes, given, strict=True):
        _same(op, "its function takes", wanted, found)


def _same(op: ops.Op, what: str, left: Type, right: Type) -> None:
    if left is not right:
        raise CheckError(f"{name_of(op)}: {what} {type_text(left)}, not {type_text(right)}")


def _array(op: ops.Op, given: Type, what: str = "an array") -> Array:
    if not isinstance(given, Array):
        raise CheckError(f"{name_of(op)} takes {what}, not {type_text(given)}")
    return given


# -- layout ----------------------------------------------------------------------------------------


def _layout(op: ops.Layout, arguments: tuple[Type, ...]) -> Type:
    match op:
        case ops.Zip():
            return _zipped(op, arguments)
        case ops.Pack():
            if not arguments:
                raise CheckError("a tuple has at least one part")
            return Tuple(arguments)
        case _:
            _counted(op, arguments, 1, "arguments")
            return _of_one(op, arguments[0])


def _zipped(op: ops.Zip, arguments: tuple[Type, ...]) -> Type:
    if not arguments:
        raise CheckError("zip takes at least one array")
    arrays = [_array(op, each, "arrays") for each in arguments]
    for other in arrays[1:]:
        if other.size is not arrays[0].size:
            raise CheckError(
                f"zip: the arrays have {show(arrays[0].size)} and {show(other.size)} elements",
                advice="slice or pad one of them",
            )
    return array(Tuple(tuple(each.element for each in arrays)), arrays[0].size)


def _of_one(op: ops.Layout, given: Type) -> Type:
    match op:
        case ops.Get(part):
            if not isinstance(given, Tuple) or not 0 <= part < len(given.parts):
                raise CheckError(f"there is no part {part} in {type_text(given)}")
            return given.parts[part]
        case ops.Unzip():
            inner = _array(op, given, "an array of tuples")
            if not isinstance(inner.element, Tuple):
                raise CheckError(f"unzip takes an array of tuples, not {type_text(given)}")
            return Tuple(tuple(array(part, inner.size) for part in inner.element.parts))
        case ops.Join() | ops.Transpose():
            return _of_rows(op, given)
        case ops.AsVector(width):
            return _as_vector(op, _array(op, given, "an array of numbers"), width)
        case ops.AsScalar():
            inner = _array(op, given, "an array of vectors")
            if not isinstance(inner.element, Vector):
                raise CheckError(f"as_scalar takes an array of vectors, not {type_text(given)}")
            return array(inner.element.element, inner.size * inner.element.width)
        case _:
            return _of_array(op, _array(op, given))


def _of_rows(op: ops.Join | ops.Transpose, given: Type) -> Type:
    outer = _array(op, given, "an array of arrays")
    inner = outer.element
    if not isinstance(inner, Array):
        raise CheckError(f"{name_of(op)} takes an array of arrays, not {type_text(given)}")
    if isinstance(op, ops.Join):
        return array(inner.element, outer.size * inner.size)
    return array(inner.element, inner.size, outer.size)


def _as_vector(op: ops.AsVector, given: Array, width: int) -> Type:
    if not isinstance(given.element, Scalar):
        raise CheckError(f"as_vector takes an array of numbers, not {type_text(given)}")
    if width not in WIDTHS:
        raise CheckError(f"a vector of {width} numbers", advice=f"use {WIDTHS}")
    return array(Vector(given.element, width), _divided(op, given.size, width))


def _of_array(op: ops.Layout, given: Array) -> Type:
    for condition, text in conditions(op, given):
        if condition is Const(0):
            raise CheckError(f"{name_of(op)}: {text}")
    match op:
        case ops.Split(size):
            return array(given.element, _divided(op, given.size, size), size)
        case ops.Slide(size, step):
            return array(given.element, _divided(op, given.size - size, step) + 1, size)
        case ops.Pad(left, right, boundary, _):
            _check_boundary(op, given, boundary)
            return array(given.element, left + given.size + right)
        case ops.Slice(_, size):
            return array(given.element, size)
        case ops.Element():
            return given.element
        case ops.Gather() | ops.Scatter():
            return given
        case _:
            raise CheckError(f"{name_of(op)} does not take {type_text(given)}")


def _check_boundary(op: ops.Pad, given: Array, boundary: str) -> None:
    if boundary not in ops.BOUNDARIES:
        raise CheckError(f"no boundary is called '{boundary}'", advice=f"use {ops.BOUNDARIES}")
    inner = given.element
    while isinstance(inner, Array):
        inner = inner.element
    if boundary == "constant" and not isinstance(inner, Scalar | Any):
        raise CheckError(f"{name_of(op)} with a constant takes numbers, not {type_text(given)}")
    if isinstance(inner, Scalar) and not inner.dtype.has(op.value):
        raise CheckError(f"{name_of(op)}: {op.value} is no {inner.dtype!r}")


def _divided(op: ops.Op, size: Expr, by: Expr | int) -> Expr:
    try:
        return quotient(size, by)
    except CheckError:
        raise CheckError(
            f"{name_of(op)}: {show(normal(by))} does not divide {show(normal(size))}",
            advice="pad the array to a multiple, or slice off what is left over",
        ) from None


def conditions(op: ops.Op, given: Type) -> list[tuple[Expr, str]]:
    """What must hold of the sizes, with what is wrong otherwise; a number if it is known.

    That divisions are exact is left to the sizes themselves.
    """
    if not isinstance(given, Array):
        return []
    size = given.size
    found: list[tuple[Expr, str]] = []
    match op:
        case ops.Split(by) | ops.Slide(by, _):
            found.append((by.ge(1).and_(by.le(size)), f"pieces of {show(by)} of {show(size)}"))
            if isinstance(op, ops.Slide):
                found.append((op.step.ge(1), f"a step of {show(op.step)}"))
        case ops.Pad(left, right, boundary, _):
            found += [(each.ge(0), f"{show(each)} elements") for each in (left, right)]
            if boundary in ("wrap", "mirror"):
                text = f"{boundary} reaches {show(size)} elements at most"
                found += [(each.le(size), text) for each in (left, right)]
        case ops.Slice(start, taken):
            text = f"elements {show(start)} to {show(normal(start + taken))} of {show(size)}"
            found.append((start.ge(0).and_((start + taken).le(size)).and_(taken.ge(1)), text))
        case ops.Element(index):
            inside = index.ge(0).and_(index.lt(size))
            found.append((inside, f"element {show(index)} of {show(size)}"))
        case _:
            pass
    return [(_decided(condition), text) for condition, text in found]


def _decided(condition: Expr) -> Expr:
    return condition if variables(condition) else Const(int(evaluate(condition, {}) != 0))


def bad_reordering(
    op: ops.Gather | ops.Scatter, size: int, evaluated: Callable[[Expr], list[int]]
) -> str:
    """What is wrong with an index function on an array of this size; `evaluated` gives the values
    of an expression over POSITION for all positions."""
    index = evaluated(op.index)
    outside = [(at, value) for at, value in enumerate(index) if not 0 <= value < size]
    if outside:
        at, value = outside[0]
        return f"position {at} of {size} is sent to {value}"
    if isinstance(op, ops.Scatter) and len(set(index)) != size:
        return f"{show(op.index)} is no permutation of {size} positions"
    if op.inverse is not None:
        inverse = evaluated(op.inverse)
        for at, value in enumerate(index):
            if inverse[value] != at:
                return f"{show(op.inverse)} is not the inverse of {show(op.index)} at {at}"
    return ""


# -- numbers ---------------------------------------------------------------------------------------


def _number(op: ops.Number, arguments: tuple[Type, ...]) -> Type:
    match op:
        case ops.Compute(name):
            _counted(op, arguments, ARITY[name], "operands")
            return _computed(op, arguments)
        case ops.Copy():
            _counted(op, arguments, 1, "arguments")
            return _numeric(op, arguments[0])
        case ops.Ask():
            _counted(op, arguments, 2, "operands")
            compared = _operands(op, arguments)
            if not isinstance(compared, Scalar):
                raise CheckError(f"{name_of(op)} compares numbers, not vectors")
            _check_computes(op, compared.dtype)
            return TRUTH
        case ops.Choose():
            _counted(op, arguments, 3, "arguments")
            if not isinstance(arguments[0], Truth):
                raise CheckError(f"choose takes a Boolean first, not {type_text(arguments[0])}")
            return _operands(op, arguments[1:])
        case ops.Convert(dtype):
            _counted(op, arguments, 1, "arguments")
            given = _numeric(op, arguments[0])
            _check_converts(dtype_of(given), dtype)
            made = Scalar(dtype)
            return Vector(made, given.width) if isinstance(given, Vector) else made
        case _:
            assert_never(op)


def _computed(op: ops.Compute, arguments: tuple[Type, ...]) -> Type:
    result = _operands(op, arguments)
    dtype = dtype_of(result)
    if dtype is not None:
        _check_computes(op, dtype)
    if dtype is not None and dtype.is_float and op.op in INTEGER_ONLY:
        raise CheckError(f"{name_of(op)} is for integers, not {dtype!r}")
    if dtype is not None and not dtype.is_float and op.op in FLOAT_ONLY:
        raise CheckError(f"{name_of(op)} is for floats, not {dtype!r}", advice="convert it first")
    return result


def _check_computes(op: ops.Op, dtype: DType) -> None:
    if dtype.is_code:
        raise CheckError(
            f"{name_of(op)} of {dtype!r}: kernels do not compute in it",
            advice="convert it to f32",
        )


def _check_converts(source: DType | None, target: DType) -> None:
    both = (source, target)
    if source is not target and f32 not in both and any(each and each.is_code for each in both):
        raise CheckError(
            f"{source!r} is converted to {target!r}",
            advice="by way of f32: convert it to that first",
        )


def _operands(op: ops.Op, arguments: tuple[Type, ...]) -> Scalar | Vector | Any:
    first = _numeric(op, arguments[0])
    for other in arguments[1:]:
        if other is not first:
            raise CheckError(
                f"{name_of(op)} mixes {type_text(first)} and {type_text(other)}",
                advice="convert one of the two, or map over the arrays",
            )
    return first


def _numeric(op: ops.Op, given: Type) -> Scalar | Vector | Any:
    if not isinstance(given, Scalar | Vector | Any):
        raise CheckError(
            f"{name_of(op)} takes numbers, not {type_text(given)}",
            advice="map it over the array" if isinstance(given, Array) else "",
        )
    return given
