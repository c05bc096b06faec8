"""Sketches written in Python, line by line like the kernel; a program comes out.

s = Sketch("sums of pairs")
x = s.input("x", (64,))
loaded = s.apply("load_rep", x, shape=(32, 2))
moved = s.hole("col_xforms_no_group", loaded)
out = s.sum("reshape", moved)
s.goal(lambda x: x.reshape(32, 2).sum(axis=1))
program = s.program()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, calling_line, located
from warploom.index.ir import whole_number
from warploom.sketch import holes
from warploom.sketch.front import load_file, load_text
from warploom.sketch.term import goals, ir, spec
from warploom.sketch.term.assemble import Assembly, at
from warploom.sketch.term.laws import default_laws, laws_named
from warploom.sketch.term.lex import is_name
from warploom.sketch.term.limits import check_shape, show_shape
from warploom.sketch.term.opaque import Opaque
from warploom.sketch.term.operator import OPERATORS, WORD
from warploom.sketch.term.show import to_swflow

Option = int | tuple[int, ...] | list[int] | None

# What can stand in a string of a text: a backslash at its end would escape the quote.
_CHOICE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*[^\x00-\x1f\x7f\ud800-\udfff\\]")


@dataclass(frozen=True, slots=True, eq=False)
class Value(Opaque):
    """An array of a sketch: what earlier lines made, for later ones to use."""

    name: str
    shape: ir.Shape
    position: int
    owner: Sketch

    _ADVICE = "give it to s.apply, s.hole, s.sum, s.product, s.fold, s.gather or s.choices"

    def __repr__(self) -> str:
        return f"{self.name}: {show_shape(self.shape)}"


class Sketch:
    """A kernel with holes: inputs, then steps, of which some are holes, then the goal.

    `Sketch("name")` is filled line by line; `Sketch.from_file` and `Sketch.from_text` read one that
    is written down. A goal is plain Python on the inputs.

    >>> from warploom import Sketch, synthesize
    >>> s = Sketch("sums")
    >>> x = s.input("x", 12)
    >>> regs = s.apply("load_rep", x, shape=(4, 3), name="regs")  # four lanes, three registers
    >>> a = s.hole("row_xforms", regs, name="a")  # a hole: move data within each lane
    >>> b = s.hole("col_xforms", a, name="b")  # a hole: exchange data between lanes
    >>> out = s.sum("identity", b, name="out")
    >>> s.goal(lambda x: x.reshape(4, 3).sum(axis=1))
    >>> print(synthesize(s))
    sums: found, 1 fill, all there are; proved
      a  xform[cf=0,cr=-1,dr=4]  regs.flat[x0 * 3 + (x1 - x0) % 3]
      b  xform[cf=-1,cr=1,dr=3]  a.flat[(x1 - x0) % 4 * 3 + x1]
    >>> Sketch.from_text(s.text(), "again").text() == s.text()
    True
    """

    @located
    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise CheckError(
                f"a sketch is named by a text, not by {_kind(name)}", advice='write Sketch("sums")'
            )
        self.name = name
        self._under_construction = Assembly(holes)
        self._read: ir.Program | None = None  # what was read is finished
        self._inputs: list[npt.NDArray[Any]] = []  # numbers of symbols
        self._next_symbol = 0
        self._made = 0

    @classmethod
    @located
    def from_text(cls, text: str, name: str = "<text>") -> Sketch:
        """The sketch that a `.swflow` text means. Errors call the text by this name.

        >>> Sketch.from_text("x: [2] = range(0, 2)\\ngoal: [2] = [0, 1]", "as it is")
        <warploom sketch as it is: 1 step, 0 holes>
        """
        return cls._of(load_text(text, name))

    @classmethod
    @located
    def from_file(cls, path: str | Path) -> Sketch:
        """The sketch in a `.swflow` file."""
        return cls._of(load_file(path))

    @classmethod
    def _of(cls, program: ir.Program) -> Sketch:
        made = cls(program.name)
        made._read = program
        return made

    @property
    def _assembly(self) -> Assembly:
        if self._read is not None:
            raise CheckError(
                f"'{self.name}' was read from a text and is finished",
                advice="write Sketch(name) to build one line by line",
            )
        return self._under_construction

    def __repr__(self) -> str:
        steps = self._under_construction.steps if self._read is None else self._read.steps
        holes = sum(isinstance(each, ir.Apply) and each.gathers.is_hole for each in steps)
        words = (f"{len(steps)} step{'s' * (len(steps) != 1)}", f"{holes} hole{'s' * (holes != 1)}")
        return f"<warploom sketch {self.name}: {', '.join(words)}>"

    # -- inputs ----------------------------------------------------------------------------------

    @located
    def input(self, name: str, shape: int | ir.Shape, step: int | None = None) -> Value:
        """An array of fresh symbols; specifications see the inputs in the order they were made.

        In a kernel its tiles begin `step` apart; with 0 all tiles read the same.
        """
        with at(calling_line(__file__)):
            shape = _shape(shape)
            check_shape(shape)
        numbers = np.arange(self._next_symbol, self._next_symbol + ir.size(shape)).reshape(shape)
        made = self.literal(name, numbers)
        if step is not None:
            apart = whole_number(step)
            if apart is None or apart < 0:
                raise CheckError(
                    f"a step of {step!r:.40} for '{name}'", advice="a whole number, 0 or more"
                )
            self._assembly.mark(made.position, ((ir.STEP, apart),))
        return made

    @located
    def literal(self, name: str, symbols: npt.ArrayLike) -> Value:
        """An array of given symbol numbers; equal numbers are the same element."""
        numbers = np.asarray(symbols)
        span = calling_line(__file__)
        with at(span):
            if numbers.dtype.kind not in "iu" or not numbers.shape:
                raise CheckError(f"input '{name}' is an array of symbol numbers")
            check_shape(numbers.shape)
            flat: list[int] = numbers.reshape(-1).tolist()
            terms = tuple(ir.Symbol(number) for number in flat)
            made = self._assembly.literal(self._checked(name), numbers.shape, terms, span)
        self._next_symbol = max(self._next_symbol, 1 + max(flat))
        self._inputs.append(numbers)
        return self._value(made)

    # -- steps -----------------------------------------------------------------------------------

    def apply(
        self,
        function: str,
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
        **options: Option,
    ) -> Value:
        """`function{options}(args)`, of the first argument's shape unless another is given."""
        return self._call(None, function, args, shape, name, options)

    # A hole is a function with more than one gather; the word says that one is meant.
    hole = apply

    @located
    def fold(
        self,
        function: str,
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
        operator: str = WORD,
        **options: Option,
    ) -> Value:
        """Applies a function and packs the last axis of the result; `shape` is before packing."""
        if operator not in (WORD, *OPERATORS):
            known = ", ".join((WORD, *OPERATORS))
            raise CheckError(f"{operator!r:.40} is no operator", advice=f"a fold is one of {known}")
        return self._call(operator, function, args, shape, name, options)

    def sum(
        self,
        function: str,
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
        **options: Option,
    ) -> Value:
        """A fold that adds."""
        return self._call("+", function, args, shape, name, options)

    def product(
        self,
        function: str,
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
        **options: Option,
    ) -> Value:
        """A fold that multiplies."""
        return self._call("*", function, args, shape, name, options)

    @located
    def gather(
        self,
        table: npt.ArrayLike,
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
    ) -> Value:
        """One gather given as a table: cell c reads `table[c]` of the arguments laid end to end.

        The result has the table's shape unless another is given; -1 is zero, -2 undefined.
        """
        function = self._define({}, table, args, shape)
        return self._call(None, function.name, args, function.out_shape, name, {})

    @located
    def choices(
        self,
        tables: Mapping[str, npt.ArrayLike],
        *args: Value,
        shape: int | ir.Shape | None = None,
        name: str | None = None,
    ) -> Value:
        """A hole whose choices are tables, as in `gather`."""
        function = self._define(tables, None, args, shape)
        return self._call(None, function.name, args, function.out_shape, name, {})

    # -- the end ---------------------------------------------------------------------------------

    @located
    def place(self, value: Value, where: str) -> Value:
        """Says where an array lies in a kernel: `lanes` (its first axis is across lanes),
        `registers` (exchanged there, not loaded or stored in that order), or `memory`."""
        self._check_arguments("place", (value,))
        if where not in ir.PLACES:
            raise CheckError(f"{where!r:.40} is no place", advice=f"use {', '.join(ir.PLACES)}")
        self._assembly.mark(value.position, ((where, None),))
        return value

    def goal(
        self,
        wanted: str | Callable[..., Any] | npt.ArrayLike,
        shape: int | ir.Shape | None = None,
        laws: str | None = None,
        **options: int,
    ) -> None:
        """What the last step must hold.

        A function is called with all inputs and returns their elements, sums and products (see
        `warploom.spec`); an integer array holds symbol numbers; a string names a built-in goal.
        `laws` is "flatten" or "none": up to what both must be equal; a function's goal flattens.
        """
        span = calling_line(__file__)
        with at(span):
            self._assembly.goal(replace(self._goal(wanted, shape, laws, options), span=span))

    def _goal(
        self,
        wanted: str | Callable[..., Any] | npt.ArrayLike,
        shape: int | ir.Shape | None,
        laws: str | None,
        options: Mapping[str, int],
    ) -> ir.Goal:
        if isinstance(wanted, str):
            own = _shape(shape) if shape is not None else self._last_shape()
            goal = goals.built_in(wanted, options, own)
        elif callable(wanted):
            ((own, values),), specification = spec.specify(wanted, self._inputs)
            text, own_laws = getattr(wanted, "__name__", ""), default_laws(values)
            goal = ir.Goal(own, values, text, laws=own_laws, specification=specification)
        else:
            goal = ir.Goal(*_goal_values(wanted))
        if shape is not None:
            goal = replace(goal, shape=_reshaped(goal.shape, _shape(shape)))
        if laws is not None:
            goal = replace(goal, laws=laws_named(laws))
        return goal

    @located
    def program(self) -> ir.Program:
        """The finished program."""
        if self._read is not None:
            return self._read
        return self._under_construction.program(self.name)

    @located
    def text(self) -> str:
        """The sketch as `.swflow` text, which `Sketch.from_text` reads."""
        return to_swflow(self.program())

    # -- inside ----------------------------------------------------------------------------------

    def _call(
        self,
        operator: str | None,
        function: str,
        args: tuple[Value, ...],
        shape: int | ir.Shape | None,
        name: str | None,
        options: Mapping[str, Option],
    ) -> Value:
        span = calling_line(__file__)
        with at(span):
            self._check_arguments(function, args)
            if shape is None:
                shape = _default_shape(function, args)
            positions = tuple(arg.position for arg in args)
            given = {key: _option(value) for key, value in options.items()}
            gathers = self._assembly.resolve(function, given, positions, _shape(shape))
            if name is None:
                self._made += 1
                name = f"s{self._made}"
            made = self._assembly.call(self._checked(name), gathers, positions, operator, span)
        return self._value(made)

    def _check_arguments(self, function: str, args: tuple[Value, ...]) -> None:
        if not isinstance(function, str):
            raise CheckError(
                f"a function is given by its name, not as {_kind(function)}",
                advice="`warploom holes` lists the names; s.gather and s.choices take tables",
            )
        for arg in args:
            if not isinstance(arg, Value):
                raise CheckError(
                    f"'{function}' takes values of the sketch, not {_kind(arg)}",
                    advice="give what s.input, s.apply or s.hole returned; options go by name",
                )
            if arg.owner is not self:
                raise CheckError(f"'{arg.name}' belongs to another sketch")

    def _define(
        self,
        tables: Mapping[str, npt.ArrayLike],
        only: npt.ArrayLike | None,
        args: tuple[Value, ...],
        shape: int | ir.Shape | None,
    ) -> ir.Definition:
        """Makes tables a definition of their own name."""
        name = f"table{len(self._assembly.definitions) + 1}"
        if not isinstance(tables, Mapping):
            raise CheckError(
                f"choices are tables by name, not {_kind(tables)}",
                advice='write s.choices({"as it is": [0, 1], "swapped": [1, 0]}, x)',
            )
        named = {name: only} if only is not None else dict(tables)
        self._check_arguments("a gather", args)
        if not named or not args:
            raise CheckError(
                "a gather needs at least one table and one argument",
                advice="after the table come the values that it reads",
            )
        for choice in named:
            if not isinstance(choice, str) or _CHOICE.fullmatch(choice) is None:
                raise CheckError(f"{choice!r} cannot name a choice", advice="a text names it")
        arrays = [np.asarray(table) for table in named.values()]
        out = _shape(shape) if shape is not None else arrays[0].shape
        check_shape(out)
        limit = sum(ir.size(arg.shape) for arg in args)
        rows = np.stack([_table(table, out, limit) for table in arrays])
        shapes = tuple(arg.shape for arg in args)
        definition = ir.Definition(name, shapes, out, tuple(named), rows)
        self._assembly.define(definition)
        return definition

    def _checked(self, name: str) -> str:
        """A name that can stand in a text."""
        if not is_name(name):
            raise CheckError(
                f"{name!r:.80} cannot name a value", advice="use letters, digits, _ and ."
            )
        return name

    def _value(self, position: int) -> Value:
        step = self._assembly.steps[position]
        return Value(step.name, step.shape, position, self)

    def _last_shape(self) -> ir.Shape:
        if not self._assembly.steps:
            raise CheckError("give the goal after the steps, or give its shape")
        return self._assembly.steps[-1].shape


def _kind(given: object) -> str:
    return "a string" if isinstance(given, str) else f"a {type(given).__name__}"


def _shape(shape: int | ir.Shape) -> ir.Shape:
    lengths = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) for n in lengths):
        raise CheckError(
            f"a shape is made of whole numbers, not {shape!r:.60}", advice="write 12 or (4, 3)"
        )
    return tuple(map(int, lengths))


def _option(value: Option | bool) -> int | tuple[int, ...] | None:
    """`True` and `None` are flags."""
    if value is None or value is True:
        return None
    return tuple(value) if isinstance(value, (tuple, list)) else int(value)


def _default_shape(function: str, args: tuple[Value, ...]) -> ir.Shape:
    if not args:
        raise CheckError(f"'{function}' needs an argument")
    return (*args[0].shape, len(args)) if function == "stack" else args[0].shape


def _table(table: npt.NDArray[Any], out: ir.Shape, limit: int) -> ir.Table:
    if table.dtype.kind not in "iu" or table.size != ir.size(out):
        raise CheckError(
            f"a table for {show_shape(out)} holds {ir.size(out)} integers",
            advice="each says which cell of the arguments, laid end to end, is read",
        )
    if table.min() < ir.UNDEFINED or table.max() >= limit:
        raise CheckError(
            f"a table reads cells 0 to {limit - 1}, -1 (zero) or -2 (undefined)",
            advice="the arguments are laid end to end, and counted from 0",
        )
    return table.reshape(-1).astype(np.int32)


def _goal_values(wanted: Any) -> tuple[ir.Shape, tuple[ir.Term, ...]]:
    array = np.asarray(wanted)
    if not array.shape:
        raise CheckError(
            f"a goal is an array, not {wanted!r:.60}",
            advice="give a function of the inputs, an array of symbol numbers or a name",
        )
    if array.dtype.kind in "iu":
        return array.shape, tuple(ir.Symbol(number) for number in array.reshape(-1).tolist())
    return spec.terms_of(wanted)


def _reshaped(own: ir.Shape, asked: ir.Shape) -> ir.Shape:
    if ir.size(own) != ir.size(asked):
        raise CheckError(f"the goal has shape {show_shape(own)}, not {show_shape(asked)}")
    return asked
