"""How terms, fills and whole programs print; a printed program loads again as an equal one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from warploom.sketch.term import goals, ir
from warploom.sketch.term.evaluate import Fill, choices
from warploom.sketch.term.lex import is_name
from warploom.sketch.term.limits import show_shape
from warploom.sketch.term.operator import WORD, is_function

# -- terms ---------------------------------------------------------------------------------------


def show_term(term: ir.Term, limit: int | None = None, names: Sequence[str] = ()) -> str:
    """A term as written in an array: `5` is a symbol, `=5` the number, `+(0, 3)` a fold (`(0, 3)`
    of any operator), `"mean"(5)` a function, `()` zero, `?` undefined.

    With a limit, about that many characters: terms share parts, so their text can be huge. With
    names, symbol n is called `names[n]`.
    """
    return _cut(_Writer(limit, names).text(term), limit)


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


class _Writer:
    """Writes terms with items in a fixed order: symbols by number, constants, folds by text."""

    def __init__(self, limit: int | None, names: Sequence[str] = ()) -> None:
        self._limit, self._names = limit, names
        self._folds: dict[ir.Fold, tuple[int, str]] = {}

    def text(self, term: ir.Term) -> str:
        match term:
            case ir.Zero():
                return "()"
            case ir.Undefined():
                return "?"
            case ir.Symbol(number):
                return self._names[number] if self._names else str(number)
            case ir.Constant(value):
                small = isinstance(value, int) and abs(value) < 1 << 53
                text = str(value) if small else repr(float(value))
                return "=" + text.replace("e+", "e")  # a + would be a word of its own
            case ir.Fold():
                return self._fold(term)[1]
            case _:
                assert_never(term)

    def _fold(self, term: ir.Fold) -> tuple[int, str]:
        """The smallest symbol inside, and the text."""
        known = self._folds.get(term)
        if known is None:
            keys = sorted(self._key(item) for item in term.items)
            body = ", ".join(text for _, _, text in keys)
            comma = "," if len(keys) == 1 and not is_function(term.operator) else ""
            text = f"{_operator(term.operator)}({body}{comma})"
            known = min(key[1] for key in keys), _cut(text, self._limit)
            self._folds[term] = known
        return known

    def _key(self, item: ir.Term) -> tuple[int, int, str]:
        if isinstance(item, ir.Fold):
            return 2, *self._fold(item)
        if isinstance(item, ir.Symbol):
            return 0, item.number, self.text(item)
        return 1, 0, self.text(item)


def _operator(operator: str) -> str:
    """As it stands before a bracket: nothing for the word `fold`."""
    return "" if operator == WORD else _fold(operator)


def _fold(operator: str) -> str:
    """As it stands before a call."""
    return _quoted(operator.removesuffix("()")) if is_function(operator) else operator


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


# -- fills ---------------------------------------------------------------------------------------


def show_fill(program: ir.Program, fill: Fill) -> str:
    """One line for each hole: `s1 = xform[cf=1,cr=0,dr=5](x)`."""
    taken = choices(program, fill)
    lines = []
    for position in program.holes:
        step = program.steps[position]
        assert isinstance(step, ir.Apply)
        args = ", ".join(program.steps[arg].name for arg in step.args)
        lines.append(f"{step.name} = {step.gathers.describe(taken[position])}({args})")
    return "\n".join(lines)


# -- programs ------------------------------------------------------------------------------------


def to_swflow(program: ir.Program) -> str:
    """The program as `.swflow` text."""
    names = _names(program)
    active: dict[tuple[object, ...], ir.Definition] = {}
    lines: list[str] = []
    for position, step in enumerate(program.steps):
        if isinstance(step, ir.Literal):
            literal = _literal(step.shape, step.values)
            lines.append(f"{_marks(step)}{names[position]}: {literal}")
            continue
        own = _definition_of(program, step)
        if own is not None:
            key = (own.name, own.arg_shapes, own.out_shape)
            if active.get(key) is not own:
                active[key] = own
                lines.append(_definition(own))
        applied = _apply(step, names[position], [names[arg] for arg in step.args])
        lines.append(f"{_marks(step)}{applied}")
    lines += [_goal(goal) for goal in program.goals]
    return "\n".join(lines) + "\n"


def _marks(step: ir.Step) -> str:
    texts = (name if number is None else f"{name}={number}" for name, number in step.marks)
    return "".join(f"@{text} " for text in texts)


def _names(program: ir.Program) -> list[str]:
    """The names of the steps, changed where one would hide a function that the program calls."""
    functions = {step.gathers.function for step in program.steps if isinstance(step, ir.Apply)}
    names: dict[str, None] = {}
    for step in program.steps:
        name = step.name
        while name in functions or name in names:
            name += "_"
        names[name] = None
    return list(names)


def _apply(step: ir.Apply, name: str, args: Sequence[str]) -> str:
    options = step.gathers.options
    shape, fold = step.shape, ""
    if step.fold is not None:
        fold = f"{_fold(step.operator)} "
        if shape:
            options = (*options, ("fold_len", step.fold))
        else:  # a shape without axes cannot be written, so the one before the fold is
            shape = step.gathers.out_shape
    mark = "?" if step.gathers.is_hole else ""
    call = goals.show_call(step.gathers.function, options)
    return f"{name}: {show_shape(shape)} = {fold}{mark}{call}({', '.join(args)})"


def _definition_of(program: ir.Program, step: ir.Apply) -> ir.Definition | None:
    found = None
    for definition in program.definitions:
        same = (
            definition.name == step.gathers.function
            and definition.arg_shapes == step.gathers.arg_shapes
            and definition.out_shape == step.gathers.out_shape
            and np.array_equal(definition.tables, step.gathers.tables)
        )
        if same:
            found = definition
    return found


def _definition(definition: ir.Definition) -> str:
    args = ", ".join(map(show_shape, definition.arg_shapes))
    head = f"define {definition.name}({args}) -> {show_shape(definition.out_shape)} ="
    ends = np.cumsum([ir.size(shape) for shape in definition.arg_shapes])
    tables = [_table(row, ends) for row in definition.tables.tolist()]
    if len(tables) == 1 and definition.choices == (definition.name,):
        return f"{head} {tables[0]}"
    rows = [
        f"  {_choice_name(name)} = {table}"
        for name, table in zip(definition.choices, tables, strict=True)
    ]
    return head + " {\n" + ",\n".join(rows) + "\n}"


def _choice_name(name: str) -> str:
    """As it is if it reads as one name, else as a string."""
    if is_name(name):
        return name
    return _quoted(name)


def _table(row: list[int], ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    """One gather, flat: cells of argument 0 as bare numbers, others as (argument, cell)."""
    parts = []
    for offset in row:
        if offset == ir.ZERO:
            parts.append("(-1, 0)")
        elif offset == ir.UNDEFINED:
            parts.append("-1")
        else:
            argument = int(np.searchsorted(ends, offset, "right"))
            cell = offset - (int(ends[argument - 1]) if argument else 0)
            parts.append(str(cell) if argument == 0 else f"({argument}, {cell})")
    return "[" + ", ".join(parts) + "]"


def _goal(goal: ir.Goal) -> str:
    text = goals.recognise(goal.shape, goal.values)
    laws = "".join(f"@{law} " for law in goal.laws)
    if text is not None and goal.shape:
        return f"{laws}goal: {show_shape(goal.shape)} {text}"
    return f"{laws}goal: {_literal(goal.shape, goal.values)}"


def _literal(shape: ir.Shape, values: tuple[ir.Term, ...]) -> str:
    """`[shape] = range(a, b)` where the values are that, else a nested array."""
    if not shape:  # one packed cell; a shape without axes cannot be written
        operator, items = WORD, values
        if isinstance(values[0], ir.Fold):
            operator, items = values[0].operator, values[0].items
        cells = _nested((len(items),), tuple(items), _Writer(None))
        return f"[{len(items)}] = {_fold(operator)} {cells}"
    first = values[0].number if isinstance(values[0], ir.Symbol) else -1
    if first >= 0 and values == tuple(map(ir.Symbol, range(first, first + len(values)))):
        return f"{show_shape(shape)} = range({first}, {first + len(values)})"
    return f"{show_shape(shape)} = {_nested(shape, values, _Writer(None))}"


def _nested(shape: ir.Shape, values: tuple[ir.Term, ...], writer: _Writer) -> str:
    if len(shape) == 1:
        return "[" + ", ".join(map(writer.text, values)) + "]"
    inner = ir.size(shape[1:])
    rows = (values[i : i + inner] for i in range(0, len(values), inner))
    return "[" + ",\n ".join(_nested(shape[1:], row, writer) for row in rows) + "]"
