"""How an expression prints: the Python calls that build it, with names for the parameters.

>>> from warploom.array.build import map_, copy, split, sizes
>>> from warploom.array.language.ir import Param
>>> from warploom.array.types import array
>>> from warploom.kernel.dtype import f32
>>> print(show(split(4, map_(copy, Param("x", array(f32, 8))))))
split(4, map(λa. copy(a), x))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TypeAlias

from warploom.array.language.check import name_of
from warploom.array.language.ir import (
    Apply,
    Bound,
    Lambda,
    Literal,
    Param,
    Program,
    Term,
    facts_of,
    repeated_terms,
)
from warploom.array.language.op import (
    Ask,
    AsVector,
    Compute,
    Convert,
    Element,
    Gather,
    Get,
    Iterate,
    Op,
    Pad,
    Scatter,
    Slice,
    Slide,
    Split,
)
from warploom.array.types import Scalar, type_text
from warploom.index.show import show as show_index

INFIX = frozenset({"+", "-", "*", "/", "&", "|", "^", "<<", ">>"})
WIDTH = 100
MOST_PARTS = 256  # of an expression that is written out; beyond, what is shared gets a name

Names: TypeAlias = tuple[tuple[str, ...], ...]


def show(term: Term | Lambda, width: int = WIDTH) -> str:
    """The expression on as few lines as fit."""
    free = facts_of(term.body if isinstance(term, Lambda) else term).params
    printer = _Printer(width, frozenset(param.name for param in free))
    return printer.text(term, (), 0) if isinstance(term, Lambda) else printer.scope(term, (), 0)


def size_of(term: Term) -> int:
    """The parts of an expression that is written out as a tree, bodies of lambdas left out."""
    sizes: dict[Term, int] = {}

    def size(part: Term) -> int:
        if part not in sizes:
            inner = part.arguments if isinstance(part, Apply) else ()
            sizes[part] = 1 + sum(map(size, inner))
        return sizes[part]

    return size(term)


def show_program(program: Program) -> str:
    inputs = "".join(f"{each.name}: {type_text(each.type)}\n" for each in program.inputs)
    return f"{program.name}\n{inputs}→ {type_text(program.body.type)}\n{show(program.body)}"


@dataclass(frozen=True, slots=True)
class _Printer:
    """`names` below are those of the parameters of the lambdas around, the nearest first."""

    width: int
    taken: frozenset[str]
    named: dict[Term, str] = field(default_factory=dict)

    def scope(self, term: Term, names: Names, indent: int) -> str:
        """The body of a lambda, or the whole, after what of it has a name."""
        shared = repeated_terms(term) if size_of(term) > MOST_PARTS else frozenset()
        shared -= self.named.keys()
        lines = list[str]()
        for part in sorted(shared, key=lambda each: facts_of(each).depth):
            text = self.text(part, names, indent)
            self.named[part] = next(
                name for name in (f"t{number}" for number in count(1 + len(self.named)))
                if name not in self.taken
            )  # fmt: skip
            lines.append(f"{self.named[part]} = {text}; ")
        whole = self.text(term, names, indent)
        for part in shared:
            del self.named[part]
        return f"{''.join(lines)}{whole}"

    def text(self, term: Term | Lambda, names: Names, indent: int) -> str:
        match term:
            case Apply() if term in self.named:
                return self.named[term]
            case Param(name, _):
                return name
            case Bound(level, position, _):
                return names[level][position] if level < len(names) else f"?{level}.{position}"
            case Literal(value, type_):
                text = f"{value:g}"
                return text if isinstance(type_, Scalar) else f"filled({text}, {type_text(type_)})"
            case Lambda(types, body):
                own = self._names(len(types), sum(map(len, names)))
                return f"λ{' '.join(own)}. {self.scope(body, (own, *names), indent)}"
            case Apply():
                return self._application(term, names, indent)

    def _names(self, count: int, used: int) -> tuple[str, ...]:
        return tuple(islice((n for n in _letters() if n not in self.taken), used, used + count))

    def _application(self, term: Apply, names: Names, indent: int) -> str:
        parts = [*term.functions, *term.arguments]
        if isinstance(term.op, Ask) or (isinstance(term.op, Compute) and term.op.op in INFIX):
            left, right = (self.text(each, names, indent) for each in parts)
            return f"({left} {term.op.op} {right})"
        head = _head(term.op)
        flat = [*head.arguments, *(self.text(each, names, indent + 2) for each in parts)]
        line = f"{head.name}({', '.join(flat)})"
        if len(line) + indent <= self.width and "\n" not in line:
            return line
        space = "\n" + " " * (indent + 2)
        return f"{head.name}({space}{f',{space}'.join(flat)})"


def _letters() -> Iterator[str]:
    for number in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield letter + (str(number) if number else "")


@dataclass(frozen=True, slots=True)
class _Head:
    """The name of an operation, and what is written before functions and arguments."""

    name: str
    arguments: tuple[str, ...] = ()


def _head(op: Op) -> _Head:
    match op:
        case Split(size):
            return _Head("split", (show_index(size),))
        case Slide(size, step):
            return _Head(
                "slide",
                (
                    show_index(size),
                    show_index(step),
                ),
            )
        case Pad(left, right, boundary, value):
            outside = f"{value:g}" if boundary == "constant" else boundary
            return _Head(
                "pad",
                (
                    show_index(left),
                    show_index(right),
                    outside,
                ),
            )
        case Slice(start, size):
            return _Head(
                "slice",
                (
                    show_index(start),
                    show_index(size),
                ),
            )
        case Element(index):
            return _Head("element", (show_index(index),))
        case Gather(index, _) | Scatter(index, _):
            return _Head(name_of(op), (show_index(index),))
        case Get(part):
            return _Head("get", (str(part),))
        case AsVector(width):
            return _Head("as_vector", (str(width),))
        case Iterate(times):
            return _Head("iterate", (str(times),))
        case Convert(dtype):
            return _Head("convert", (repr(dtype),))
        case Compute(name) | Ask(name):
            return _Head(name)
        case _:
            return _Head(name_of(op))
