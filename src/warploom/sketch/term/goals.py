"""The built-in goals: a name, options and a shape come in, what each cell should hold comes out."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from warploom.errors import CheckError, OptionError
from warploom.sketch.term.ir import Fold, Goal, Shape, Symbol, Term, Zero, fold_of
from warploom.sketch.term.limits import MAX_CELLS, check_shape, show_shape

Options = Mapping[str, int | tuple[int, ...] | None]
Cells = tuple[Shape, Iterator[Term]]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """`cells(shape, parameters)` gives the goal's own shape and its terms in row-major order."""

    name: str
    rank: int | None  # of the declared shape; None: any
    parameters: tuple[str, ...]
    cells: Callable[[Shape, tuple[int, ...]], Cells]
    meaning: str


def _identity(shape: Shape, _: tuple[int, ...]) -> Cells:
    return shape, map(Symbol, range(math.prod(shape)))


def _conv_dealg(shape: Shape, _: tuple[int, ...]) -> Cells:
    rows, columns = shape
    return shape, (Symbol(i + j) for i in range(rows) for j in range(columns))


def _row_sums(shape: Shape, parameters: tuple[int, ...]) -> Cells:
    (n,) = parameters
    cells = (fold_of([Symbol(i * n + j) for j in range(n)], "+") for i in range(shape[0]))
    return shape[:1], cells


def _conv(shape: Shape, parameters: tuple[int, ...]) -> Cells:
    (k,) = parameters
    return shape, (fold_of([Symbol(i + j) for j in range(k)], "+") for i in range(shape[0]))


def _weight_conv(shape: Shape, parameters: tuple[int, ...]) -> Cells:
    (k,), width = parameters, shape[0]
    first_weight = width + k - 1

    def products(i: int) -> list[Term]:
        return [fold_of([Symbol(i + j), Symbol(first_weight + j)], "*") for j in range(k)]

    return shape, (fold_of(products(i), "+") for i in range(width))


def _stencil_2d(shape: Shape, parameters: tuple[int, ...]) -> Cells:
    (k,), (width, height) = parameters, shape
    if width != height:
        raise CheckError(f"goal 'stencil_2d' is square, got {show_shape(shape)}")
    row = width + k - 1

    def window(i: int, j: int) -> list[Term]:
        return [Symbol((i + a) * row + j + b) for a in range(k) for b in range(k)]

    return shape, (fold_of(window(i, j), "+") for i in range(width) for j in range(width))


def _poly_mult(shape: Shape, parameters: tuple[int, ...]) -> Cells:
    (n,) = parameters
    if math.prod(shape) != 2 * n:
        raise CheckError(f"goal 'poly_mult' with w={n} has {2 * n} cells, got {show_shape(shape)}")

    def products(cell: int) -> list[Term]:
        pairs = [(j, cell - j) for j in range(n) if 0 <= cell - j < n]
        return [fold_of([Symbol(j), Symbol(n + k)], "*") for j, k in pairs]

    return shape, (fold_of(products(cell), "+") for cell in range(2 * n))


_TABLE = {
    goal.name: goal
    for goal in (
        BuiltIn("id", None, (), _identity, "the input in order"),
        BuiltIn("trove", 2, (), _identity, "the input as a matrix, row by row"),
        BuiltIn("trove_sum", 1, ("n",), _row_sums, "the sum of each row of n cells"),
        BuiltIn("conv_dealg", 2, (), _conv_dealg, "cell (i, j) holds input i + j"),
        BuiltIn("conv", 1, ("k",), _conv, "the sum of k neighbours"),
        BuiltIn("weight_conv", 1, ("k",), _weight_conv, "the weighted sum of k neighbours"),
        BuiltIn("stencil_2d", 2, ("k",), _stencil_2d, "the sum of k by k neighbours"),
        BuiltIn("poly_mult", None, ("w",), _poly_mult, "the product of two polynomials"),
    )
}


def known() -> tuple[str, ...]:
    return tuple(_TABLE)


def suggest(name: str) -> str:
    """Advice for a goal that does not exist."""
    near = difflib.get_close_matches(name, _TABLE, 1)
    return f"did you mean '{near[0]}'?" if near else "built-in goals: " + ", ".join(_TABLE)


def built_in(name: str, options: Options, shape: Shape) -> Goal:
    """The built-in goal of that name, for a result declared with `shape`."""
    goal = _TABLE.get(name)
    if goal is None:
        raise CheckError(f"unknown goal '{name}'", None, suggest(name))
    check_shape(shape)
    if name == "trove_sum" and len(shape) == 2 and not options:
        options, shape = {"n": shape[1]}, shape[:1]  # [m, n] says the row length, too
    if goal.rank is not None and len(shape) != goal.rank:
        raise CheckError(f"goal '{name}' has {goal.rank} axes, got {show_shape(shape)}")
    parameters = _parameters(goal, options)
    work = math.prod(shape) * math.prod(parameters) ** (2 if name == "stencil_2d" else 1)
    if work > MAX_CELLS or any(value > MAX_CELLS for value in parameters):
        raise CheckError(f"goal '{name}' with these sizes has more than {MAX_CELLS} terms")
    own_shape, cells = goal.cells(shape, parameters)
    return Goal(own_shape, tuple(cells), show_call(name, tuple(options.items())))


def _parameters(goal: BuiltIn, options: Options) -> tuple[int, ...]:
    advice = f"write {goal.name} {{{', '.join(f'{p}=…' for p in goal.parameters)}}}"
    for option in options:
        if option not in goal.parameters:
            raise OptionError(
                f"goal '{goal.name}' has no option '{option}'",
                None,
                advice if goal.parameters else "it takes no options",
                option,
            )
    values = []
    for parameter in goal.parameters:
        value = options.get(parameter)
        if parameter not in options:
            raise CheckError(f"goal '{goal.name}' needs option '{parameter}'", None, advice)
        if not isinstance(value, int) or value < 1:
            message = f"option '{parameter}' is a number of at least 1"
            raise OptionError(message, None, advice, parameter)
        values.append(value)
    return tuple(values)


def recognise(shape: Shape, values: tuple[Term, ...]) -> str | None:
    """The text of a built-in goal with exactly this shape and these values, if there is one."""
    for name, options in _candidates(values):
        try:
            goal = built_in(name, options, shape)
        except CheckError:
            continue
        if goal.shape == shape and goal.values == values:
            return goal.text
    return None


def _candidates(values: tuple[Term, ...]) -> Iterator[tuple[str, Options]]:
    """Goals worth a comparison: the first cell says how long the reduction is."""
    first = values[0] if values else Zero()
    if isinstance(first, Symbol):
        yield "id", {}
        yield "conv_dealg", {}
    if isinstance(first, Fold):
        count = len(first.items)
        yield "trove_sum", {"n": count}
        yield "conv", {"k": count}
        yield "weight_conv", {"k": count}
        yield "stencil_2d", {"k": math.isqrt(count)}
        yield "poly_mult", {"w": len(values) // 2}


def show_call(name: str, options: tuple[tuple[str, int | tuple[int, ...] | None], ...]) -> str:
    """`name{key=value,…}`, keys in alphabetical order, flags bare."""
    if not options:
        return name
    parts = []
    for key, value in sorted(options, key=lambda option: option[0]):
        if isinstance(value, tuple):
            parts.append(f"{key}=[{','.join(map(str, value))}]")
        else:
            parts.append(key if value is None else f"{key}={value}")
    return f"{name}{{{','.join(parts)}}}"
