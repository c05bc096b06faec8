"""A fill as panels: memory, what every step holds in which lane and register, memory again.

A panel is a grid of cells, and says of each which cells of earlier panels its value is made of: the
tables are those of the gathers that were chosen, so that tracing a value through panels is what
`sketch/term/evaluate.py` does. The words in the cells come from the evaluator itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from warploom.machine.coalesce import SECTOR_BYTES
from warploom.sketch.code.memory import Input, inputs_of
from warploom.sketch.term.evaluate import Fill, choices, evaluate
from warploom.sketch.term.gather import UNDEFINED, ZERO
from warploom.sketch.term.ir import (
    Apply,
    Constant,
    Fold,
    Goal,
    Literal,
    Program,
    Shape,
    Step,
    Symbol,
    Term,
    Undefined,
    Zero,
    leaves_of,
    size,
)
from warploom.sketch.term.operator import WORD
from warploom.sketch.term.read import live_steps

Ints = npt.NDArray[np.int64]
# The cells that each cell is made of: a row of as many, or a row of its own length.
Reads: TypeAlias = Ints | tuple[Ints, ...]

WORD_BYTES = 4
SECTOR = SECTOR_BYTES // WORD_BYTES  # words of a row of memory
CONSTANT = -3  # beside ZERO and UNDEFINED, what a cell may hold that comes from nowhere


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """`reads[c]` are the cells that cell c is made of, counted through the panels of `sources` one
    after another; a negative number is no cell. `texts` and `tones` are what is drawn: a word for
    each cell, and where in memory it comes from, from 0 to 1, or -1 for nowhere."""

    name: str
    kind: str  # memory, registers, array, output, goal
    columns: int
    lanes: Shape  # of registers: the axes along rows
    sources: tuple[int, ...]
    reads: Reads
    texts: tuple[str, ...]
    tones: tuple[float, ...]
    step: int | None = None  # position in the program
    detail: str = ""

    @property
    def cells(self) -> int:
        return len(self.texts)

    @property
    def rows(self) -> int:
        return -(-self.cells // self.columns)

    def row_name(self, row: int) -> str:
        if not self.lanes:
            return str(row * self.columns)
        at = np.unravel_index(row, self.lanes)
        return ",".join(str(int(part)) for part in at)


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """The panels in the order of time; `row` is what a row of registers is called."""

    panels: tuple[Panel, ...]
    row: str

    def offsets(self, panel: Panel) -> list[int]:
        """Where each source of a panel begins in what it counts through."""
        sizes = [self.panels[source].cells for source in panel.sources]
        return [sum(sizes[:number]) for number in range(len(sizes))]

    def source_of(self, panel: Panel, read: int) -> tuple[int, int] | None:
        """The panel and cell that a number of `reads` means."""
        if read < 0:
            return None
        for source, start in reversed(list(zip(panel.sources, self.offsets(panel), strict=True))):
            if read >= start:
                return source, read - start
        return None

    def reads_of(self, panel: Panel) -> list[Ints]:
        return list(panel.reads)

    def movement(self, panel: Panel, cell: int) -> str:
        """How a cell got its value: a word of `theme.KINDS`."""
        reads = panel.reads[cell].tolist()
        found = [at for each in reads if (at := self.source_of(panel, each)) is not None]
        if not found:
            return "none"
        if len(reads) > 1:
            return "folds"
        source, own = self.panels[found[0][0]], found[0][1]
        if source.kind != panel.kind:
            return "memory"
        if own // source.columns != cell // panel.columns:
            return "across"
        return "stays" if own % source.columns == cell % panel.columns else "lane"

    def roots(self, panel: int, cell: int) -> set[tuple[int, int]]:
        """The cells of memory that a value is made of: all the way back."""
        seen, stack = set[tuple[int, int]](), [(panel, cell)]
        ends = set[tuple[int, int]]()
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            own = self.panels[at[0]]
            if own.kind == "memory":
                ends.add(at)
            else:
                reads = (self.source_of(own, int(each)) for each in own.reads[at[1]])
                stack += [place for place in reads if place is not None]
        return ends


def goal_flow(program: Program, goal: Goal, reaching: Sequence[Sequence[int]]) -> Flow:
    """Memory, and the goal with the symbols that can reach each of its cells."""
    return _Drawing(program, None).goal(goal, reaching)


def flow_of(program: Program, fill: Fill) -> Flow:
    """The panels of a program whose holes are filled; operators are resolved."""
    return _Drawing(program, choices(program, fill)).flow()


class _Drawing:
    def __init__(self, program: Program, taken: tuple[int, ...] | None) -> None:
        self.program, self.taken = program, taken or (0,) * len(program.steps)
        self.live = live_steps(program)
        self.inputs = inputs_of(program, self.live)
        fill = {hole: self.taken[hole] for hole in program.holes}
        self.terms = [] if taken is None else evaluate(program, fill)
        self.lanes = _lanes(program, self.live)
        self.symbols = [symbol for each in self.inputs for symbol in each.symbols]
        self.place = {symbol: at for at, symbol in enumerate(self.symbols)}
        self.names = [str(at) for each in self.inputs for at in range(len(each.symbols))]
        self.panels: list[Panel] = []
        self.at: dict[int, int] = {}  # panels by step

    def flow(self) -> Flow:
        self.panels += [self._memory(each) for each in self.inputs]
        for position in sorted(self.live):
            step = self.program.steps[position]
            same = self._same_as_memory(step)
            self.at[position] = len(self.panels) if same is None else same
            if same is None:
                self.panels.append(self._panel(position, step))
        self.panels.append(self._output())
        return Flow(tuple(self.panels), "lane" if len(self.lanes) < 2 else "thread")

    def goal(self, goal: Goal, reaching: Sequence[Sequence[int]]) -> Flow:
        self.panels += [self._memory(each) for each in self.inputs]
        texts, tones = self._drawn(goal.values)
        inside = self._in_lanes(goal.shape)
        lanes = self.lanes if inside else ()
        columns = prod(goal.shape[len(lanes) :]) if inside else _columns(goal.shape)
        reads = tuple(
            np.array([self.place[number] for number in each if number in self.place], np.int64)
            for each in reaching
        )
        sources = tuple(range(len(self.inputs)))
        self.panels.append(Panel("goal", "goal", columns, lanes, sources, reads, texts, tones))
        return Flow(tuple(self.panels), "lane" if len(self.lanes) < 2 else "thread")

    def _memory(self, each: Input) -> Panel:
        terms = [Symbol(number) for number in each.symbols]
        texts, tones = self._drawn(terms)
        none = np.zeros((len(texts), 0), np.int64)
        own = (s.shape for s in self.program.steps if isinstance(s, Literal) and _lists(s, each))
        columns = _columns(next(own, (len(texts),)))
        return Panel(each.name, "memory", columns, (), (), none, texts, tones)

    def _same_as_memory(self, step: Step) -> int | None:
        """The panel of the input that a literal is as it is, but for one that lies in lanes."""
        if not isinstance(step, Literal) or self._in_lanes(step.shape):
            return None
        return next((n for n, each in enumerate(self.inputs) if _lists(step, each)), None)

    def _in_lanes(self, shape: Shape) -> bool:
        return bool(self.lanes) and shape[: len(self.lanes)] == self.lanes

    def _panel(self, position: int, step: Step) -> Panel:
        texts, tones = self._drawn(self.terms[position])
        inside = self._in_lanes(step.shape)
        kind, lanes = ("registers", self.lanes) if inside else ("array", ())
        columns = prod(step.shape[len(lanes) :]) if inside else _columns(step.shape)
        if isinstance(step, Literal):
            sources = tuple(range(len(self.inputs)))
            reads = np.array([[self._read(term)] for term in step.values], np.int64)
        else:
            sources = tuple(self.at[arg] for arg in step.args)
            table = step.gathers.table(self.taken[position]).astype(np.int64)
            reads = table.reshape(-1, step.fold or 1)
        return Panel(
            step.name, kind, columns, lanes, sources, reads, texts, tones, position, _detail(step)
        )

    def _output(self) -> Panel:
        """The last step, as it is stored."""
        last = len(self.program.steps) - 1
        step = self.program.steps[last]
        # Of two axes of threads the output is a picture of its own.
        own = len(step.shape) == len(self.lanes) > 1
        columns = step.shape[-1] if own else _columns((size(step.shape),))
        reads = np.arange(size(step.shape))[:, None]
        texts, tones = self._drawn(self.terms[last])
        return Panel(
            step.name, "output", columns, (), (self.at[last],), reads, texts, tones,
            detail="stored to memory",
        )  # fmt: skip

    def _read(self, term: Term) -> int:
        match term:
            case Symbol(number):
                return self.place[number]
            case Zero():
                return ZERO
            case Undefined():
                return UNDEFINED
            case _:
                return CONSTANT

    def _drawn(self, terms: Sequence[Term]) -> tuple[tuple[str, ...], tuple[float, ...]]:
        return tuple(map(self._text, terms)), tuple(map(self._tone, terms))

    def _text(self, term: Term) -> str:
        match term:
            case Symbol(number):
                return self.names[self.place[number]] if number in self.place else f"({number})"
            case Zero():
                return "0"
            case Undefined():
                return "?"
            case Constant(value):
                return f"={value}"
            case Fold(operator, items):
                return f"{operator if len(operator) == 1 else ''}{len(items)}"
            case _:
                assert_never(term)

    def _tone(self, term: Term) -> float:
        leaves = (leaf for leaf in leaves_of([term]) if isinstance(leaf, Symbol))
        found = [self.place[leaf.number] for leaf in leaves if leaf.number in self.place]
        return sum(found) / len(found) / max(1, len(self.symbols) - 1) if found else -1.0


def _lists(step: Literal, each: Input) -> bool:
    """Whether a literal is an input, element by element."""
    numbers = [value.number if isinstance(value, Symbol) else None for value in step.values]
    return numbers == list(each.symbols)


def _columns(shape: Shape) -> int:
    """An array of two axes is drawn as it is; of others a row is a sector of memory, or a few."""
    if len(shape) == 2 and 1 < shape[1] <= 4 * SECTOR:
        return shape[1]
    return SECTOR * (1 if prod(shape) <= 256 else 2 if prod(shape) <= 1024 else 4)


def _lanes(program: Program, live: frozenset[int]) -> Shape:
    """The leading axes that holes and folds have in common, of which each element is a row; none if
    there is one axis all told, which is then a plain array."""
    steps = [program.steps[position] for position in sorted(live)]
    applied = [step for step in steps if isinstance(step, Apply)]
    moving = [s for s in applied if s.gathers.is_hole or s.fold is not None] or applied
    shapes = [step.shape for step in moving]
    common = shapes[0] if shapes else ()
    for shape in shapes:
        while shape[: len(common)] != common:
            common = common[:-1]
    held = [shape for step in applied for shape in (step.shape, step.gathers.out_shape)]
    return common if any(len(shape) > len(common) for shape in held) else common[:-1]


def _detail(step: Step) -> str:
    if isinstance(step, Literal):
        return "loaded from memory"
    if step.gathers.is_hole:
        return f"hole {step.gathers.function}"
    if step.fold is not None:
        return (
            f"fold of {step.fold}" if step.operator == WORD else f"{step.operator} of {step.fold}"
        )
    return step.gathers.function
