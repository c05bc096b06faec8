"""Specifications in plain Python: a function on arrays runs on symbols and becomes a goal.

    >>> from warploom import Sketch, spec, synthesize
    >>> s = Sketch("the largest of four")
    >>> x = s.input("x", (1, 4))
    >>> largest = s.fold("identity", x, operator="max")
    >>> s.goal(lambda x: [spec.maximum(x)])
    >>> synthesize(s).verdict.value
    'proved'
    >>> spec.total(spec.symbols((4,))[:3])  # elements are symbols, counted from 0
    +(0, 1, 2)

`a + b + c` is one fold of three terms and `a * b` one of two; a sum of products nests. So it is
with `&`, `|`, `^`, `minimum` and `maximum`. A reduction that started at its neutral element
is a fold even of one term, just as a kernel's accumulator is: `0 + x`, hence `sum([x])`,
`total([x])` and `acc = 0; acc += x`, is the fold `+(x,)`, not `x`; so is `1 * x`. NumPy's own
`np.sum` and `@` start at the first element instead, so over one term they give that term: without
laws, use `total` where a reduction may have length one. A cell left at `0` is zero.

The same function runs on numbers when a fill is verified: everything here computes on numbers, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, Span, WarploomError, defining_line, raising_line
from warploom.search.budget import BudgetSpentError
from warploom.sketch.term import ir
from warploom.sketch.term.limits import check_shape
from warploom.sketch.term.numeric import apply, opaque, plain
from warploom.sketch.term.operator import NEUTRAL, WORD
from warploom.sketch.term.operator import function as function_operator
from warploom.sketch.term.scalar import (
    Function,
    Sym,
    Symbols,
    is_number,
    parts_of,
    refusals,
    refused,
)


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    """The scalars in nested arrays and iterables."""
    for item in items:
        if isinstance(item, Sym) or is_number(item):
            yield item
        elif isinstance(item, Iterable) and not isinstance(item, (str, bytes)):
            yield from _flat(item)
        else:
            raise refused(f"cannot fold {item!r:.80}", "fold elements of the inputs")


def fold(items: Iterable[Any], operator: str = WORD) -> Any:
    """A fold that stays apart from others of its operator; without one, of any operator."""
    return _fold(operator, list(_flat(items)))


def _fold(operator: str, parts: list[Any]) -> Any:
    numbers = [part for part in parts if not isinstance(part, Sym)]
    if numbers and len(numbers) == len(parts):
        return apply(operator, numbers)
    wrong = next((n for n in numbers if n != NEUTRAL.get(operator, 0)), None)
    if wrong is not None:
        raise refused(f"cannot fold {wrong!r:.80} with {operator}", "fold elements of the inputs")
    return Sym(operator, tuple(part for part in parts if isinstance(part, Sym)))


def _merged(operator: str, items: Iterable[Any]) -> Any:
    """One fold of everything in `items`; folds of the same operator merge into it."""
    parts = _flat(items)
    flat = [
        p
        for part in parts
        for p in (parts_of(operator, part) if isinstance(part, Sym) else (part,))
    ]
    return _fold(operator, flat)


def total(items: Iterable[Any]) -> Any:
    """The sum of everything in `items`: a fold even of one item."""
    return _merged("+", items)


def product(items: Iterable[Any]) -> Any:
    """The product of everything in `items`: a fold even of one item."""
    return _merged("*", items)


def minimum(items: Iterable[Any]) -> Any:
    return _merged("min", items)


def maximum(items: Iterable[Any]) -> Any:
    return _merged("max", items)


def bit_and(items: Iterable[Any]) -> Any:
    return _merged("&", items)


def bit_or(items: Iterable[Any]) -> Any:
    return _merged("|", items)


def bit_xor(items: Iterable[Any]) -> Any:
    return _merged("^", items)


def started(init: float, items: Iterable[Any], operator: str = "+") -> Any:
    """A fold that starts at `init` instead of its neutral element, as an accumulator may."""
    parts = list(_flat(items))
    if parts and all(map(is_number, parts)):
        return apply(operator, [*parts, ir.constant(init).value])
    first = [] if init == NEUTRAL[operator] else [Sym("", (), ir.constant(init))]
    return _merged(operator, [*parts, *first])


def finalized(name: str, value: Any, function: Function | None = None) -> Any:
    """What an accumulator with `finalize=name` gives for this value.

    With a function, which computes it on numbers, the accumulator's `finish` is compared with it;
    without one, nothing is known of it but its name.
    """
    if is_number(value):
        return function(plain(value)) if function is not None else opaque(name, value)
    if not isinstance(value, Sym):
        raise refused(f"cannot finalise {value!r:.80}", "finalise a fold of the inputs")
    made = Sym(function_operator(name), (value,))
    made._function = function or partial(opaque, name)
    made._known[name] = function is not None and made._known.get(name, True)
    return made


# -- goals ---------------------------------------------------------------------------------------


def symbols(shape: ir.Shape, start: int = 0) -> npt.NDArray[np.object_]:
    """An array of fresh symbols start, start + 1, … in row-major order."""
    check_shape(shape)
    return _symbols(np.arange(start, start + math.prod(shape)).reshape(shape))


def _symbols(numbers: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(numbers.size, object)
    array[:] = [Sym("", (), ir.Symbol(number)) for number in numbers.reshape(-1).tolist()]
    return array.reshape(numbers.shape).view(Symbols)


Outputs = list[tuple[ir.Shape, tuple[ir.Term, ...]]]


def specify(
    function: Callable[..., Any],
    inputs: Sequence[npt.NDArray[Any]],
    sizes: Mapping[str, int] | None = None,
    outputs: int = 1,
) -> tuple[Outputs, ir.Specification]:
    """Runs a function on the symbols of these numbers: the terms of each output come out."""
    given = tuple(np.asarray(numbers, np.int64) for numbers in inputs)
    result = _called(function, [_symbols(numbers) for numbers in given], sizes or {})
    parts = _outputs(result, outputs)
    known: dict[str, bool] = {}
    for cell in (cell for part in parts for cell in np.asarray(part, object).reshape(-1).tolist()):
        for name, said in cell._known.items() if isinstance(cell, Sym) else ():
            if known.setdefault(name, said) != said:
                raise CheckError(
                    f"'{name}' has a function in some cells and none in others",
                    defining_line(function),
                    "give spec.finalized the function everywhere",
                )
    names = frozenset(name for name, said in known.items() if said)
    specification = ir.Specification(function, given, dict(sizes or {}), outputs, names)
    return [_terms(part, function) for part in parts], specification


def _terms(part: Any, function: Callable[..., Any]) -> tuple[ir.Shape, tuple[ir.Term, ...]]:
    try:
        return terms_of(part)
    except CheckError as error:
        raise CheckError(error.message, defining_line(function), error.advice) from error


def _called(function: Callable[..., Any], given: list[Any], sizes: Mapping[str, int]) -> Any:
    """What a function makes of symbols; whatever it raises becomes one error at its line, and so
    does a refusal that it caught."""
    with refusals() as caught:
        try:
            result = function(*given, **sizes)
        except (BudgetSpentError, MemoryError):  # ours, on the way through
            raise
        except WarploomError as error:
            error.span = error.span or _place(error, function)
            raise
        except Exception as error:  # it is the user's code
            raise _failed(error, caught, function) from error
    if caught:
        raise CheckError(
            f"{caught[0].message}; the specification caught this error and went on",
            _place(caught[0], function),
            caught[0].advice,
        )
    return result


def _failed(error: Exception, caught: list[CheckError], function: Callable[..., Any]) -> CheckError:
    """What went wrong first: what the function raises may only follow from it."""
    if caught:
        return CheckError(caught[0].message, _place(caught[0], function), caught[0].advice)
    return CheckError(
        f"the specification fails on symbols: {type(error).__name__}: {str(error)[:200]}",
        _place(error, function),
        "it is called with the inputs as arrays of symbols, and may index and fold them",
    )


def _place(error: Exception, function: Callable[..., Any]) -> Span | None:
    """The line of the function's file that raised, or where the function begins."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return raising_line(error, file) or defining_line(function)


def run(specification: ir.Specification, numbers: Mapping[int, Any]) -> list[Any]:
    """The specification on numbers, given by symbol: the cells of all outputs, end to end."""
    arrays = []
    for symbol in specification.inputs:
        array = np.empty(symbol.size, object)
        array[:] = [numbers[number] for number in symbol.reshape(-1).tolist()]
        arrays.append(array.reshape(symbol.shape))
    with np.errstate(all="ignore"):  # what a square root of −1 is, is for the comparison to say
        result = specification.function(*arrays, **specification.sizes)
    parts = _outputs(result, specification.outputs)
    return [_number_of(c) for p in parts for c in np.asarray(p, object).reshape(-1).tolist()]


def _outputs(result: Any, count: int) -> tuple[Any, ...]:
    parts = (result,) if count == 1 else tuple(result)
    if len(parts) != count:
        raise CheckError(f"the specification returns {len(parts)} arrays for {count} outputs")
    return parts


def _number_of(cell: Any) -> Any:
    if isinstance(cell, Sym) and not cell._items and cell._term is None:
        return NEUTRAL[cell._operator]  # a fold of nothing
    if isinstance(cell, Sym) and cell._function is not None:  # a function of one
        return cell._function(_number_of(cell._items[0]))
    if not is_number(cell):
        raise CheckError(f"{cell!r:.80} is no number")
    return cell


def terms_of(value: Any) -> tuple[ir.Shape, tuple[ir.Term, ...]]:
    """What a specification returned: arrays or nested lists of scalars, 0 for zero."""
    array = np.asarray(value, object)
    value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if array.ndim == 0 and not isinstance(value, (Sym, int)):
        raise CheckError(
            f"a specification returns arrays of its inputs' elements, got {value!r:.80}"
        )
    return array.shape, tuple(_term_of(cell) for cell in array.reshape(-1).tolist())


def _term_of(cell: Any) -> ir.Term:
    if isinstance(cell, Sym):
        return cell.term
    if isinstance(cell, (int, np.integer)) and int(cell) == 0:
        return ir.Zero()
    raise CheckError(
        f"a specification returned {cell!r:.80} as a cell",
        advice="cells are elements of the inputs, their sums and products, or 0",
    )
