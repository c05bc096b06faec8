"""Access patterns: which elements of a tensor each lane wants, step by step, and by what.

An element's number is its row-major number in the tensor. `elements[step, lane, i]` is the i-th
element that a lane moves in a step, in the order in which they must lie in memory; an idle lane has
-1 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NoReturn, TypeAlias, TypeVar, get_args

import numpy as np

from warploom.errors import CheckError, WarploomError
from warploom.layout.language.check import MOST_ELEMENTS
from warploom.layout.language.evaluate import Numbers
from warploom.machine.record import NVIDIA
from warploom.machine.serving import RequestKind, Serving
from warploom.search.budget import governing_budget

AccessKind: TypeAlias = Literal[
    "ld", "st", "ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans", "cp.async"
]
ACCESS_KINDS: tuple[AccessKind, ...] = get_args(AccessKind)
STORES = frozenset({"st", "stmatrix", "stmatrix.trans", "cp.async"})
# What serves each kind. An asynchronous copy writes shared memory as a store does; a profiler
# counts it elsewhere (`.ca`) or not at all (`.cg`).
SERVED_AS: dict[AccessKind, RequestKind] = {
    "ld": "ld",
    "st": "st",
    "ldmatrix": "ldmatrix",
    "ldmatrix.trans": "ldmatrix",
    "stmatrix": "stmatrix",
    "stmatrix.trans": "stmatrix",
    "cp.async": "st",
}
Count = TypeVar("Count", int, Numbers)
ELEMENT_BYTES = (1, 2, 4, 8, 16)
MOST_MOVED = 1 << 24  # elements that all steps and lanes of an access move
IDLE = -1
_PIECE = 1 << 19  # numbers that are looked at between two questions to the budget


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    name: str
    elements: Numbers = field(repr=False)
    kind: AccessKind = "ld"
    weight: float = 1.0

    @property
    def steps(self) -> int:
        return int(self.elements.shape[0])

    @property
    def lanes(self) -> int:
        return int(self.elements.shape[1])

    @property
    def width(self) -> int:
        """Elements of one lane in one step."""
        return int(self.elements.shape[2])


@dataclass(frozen=True, slots=True)
class Operand:
    """A tile that wgmma reads by descriptors, `rows` of m or n at a time; `major` says what lies
    together in a row of the tile: k, or m and n ("mn")."""

    name: str
    rows: int
    major: Literal["k", "mn"] = "k"


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A tensor, how it is used, and by which machine. `copies`: names of the tensor copies (TMA)
    that move the whole tile, whose layout is then one that they can write. `operands`: what matrix
    units read of it by descriptors; each is one of the accesses, too."""

    name: str
    shape: tuple[int, ...]
    element_bytes: int
    accesses: tuple[Access, ...]
    serving: Serving = NVIDIA
    note: str = ""
    copies: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    packed: int = 1  # elements of `element_bytes`: two of 4 bits share a byte

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return 8 * self.element_bytes // self.packed

    def bytes_of(self, elements: Count) -> Count:
        """The whole bytes of so many elements; where so many elements further are."""
        return elements * self.element_bytes // self.packed

    def elements_in(self, size: int) -> int:
        """How many elements have room in so many bytes; 0 where one is larger."""
        return size * self.packed // self.element_bytes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def columns(self) -> int:
        return self.shape[-1]

    @property
    def rows(self) -> int:
        return self.size // self.columns

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """As they are written: 0.1 is a tenth."""
        return tuple(Fraction(repr(access.weight)) for access in self.accesses)


def size_words(problem: Problem) -> str:
    """The size of an element in words."""
    return f"{problem.bits} bits" if problem.packed > 1 else f"{problem.element_bytes} bytes"


def pieces(rows: int, each: int) -> Iterator[slice]:
    """Rows of so many numbers each, in pieces of work; between them the budget of whoever asked is
    looked at. There is always one piece: what is small is done, whatever is left of a budget."""
    step = max(1, _PIECE // max(1, each))
    for first in range(0, max(1, rows), step):
        if first:
            governing_budget().check()
        yield slice(first, first + step)


def check_problem(problem: Problem) -> Problem:
    """The problem itself, if it is one."""
    if not problem.shape or min(problem.shape) < 1:
        _fail(f"the tensor {_shape(problem)} is empty", "every size is at least 1")
    if problem.size > MOST_ELEMENTS:
        _fail(f"a tensor of {problem.size} elements is too large", f"at most {MOST_ELEMENTS}")
    if problem.element_bytes not in ELEMENT_BYTES:
        listed = ", ".join(map(str, ELEMENT_BYTES))
        _fail(f"an element of {problem.element_bytes} bytes", f"an element has {listed} bytes")
    if problem.packed not in (1, 2) or (problem.packed > 1 and problem.element_bytes != 1):
        _fail(f"{problem.packed} elements in {problem.element_bytes} bytes", "two in one byte")
    if problem.packed > 1 and (problem.copies or problem.operands):
        _fail("elements of 4 bits in tensor copies or wgmma", "state the tile in whole bytes")
    if not problem.accesses:
        _fail("there is no access by lanes", "say how the tensor is used")
    if problem.copies and not problem.serving.tensor_copies:
        has = "tensor_copies = true in the record of a machine says that it has"
        _fail(f"{problem.serving.name} has no tensor copies", has)
    for operand in problem.operands:
        _check_operand(problem, operand)
    for access in problem.accesses:
        _check_access(problem, access)
    return problem


def _check_operand(problem: Problem, operand: Operand) -> None:
    size, name = problem.element_bytes, operand.name
    if not problem.serving.tensor_copies:
        _fail(f"{name}: {problem.serving.name} has no wgmma", "it came with tensor copies")
    if size not in (1, 2, 4) or (operand.major == "mn" and size != 2):
        _fail(f"{name}: elements of {size} bytes", "1, 2 or 4 bytes; 2 with m or n together")
    deep, wide = problem.columns, problem.rows
    if operand.major == "mn":
        deep, wide = wide, deep
    if operand.rows < 8 or operand.rows % 8 or wide % operand.rows:
        _fail(f"{name}: {operand.rows} of {wide} rows at a time", "a multiple of 8 that fits")
    if deep * size % 32:
        _fail(f"{name}: {deep} elements of k", f"an instruction takes {32 // size}")


def _check_access(problem: Problem, access: Access) -> None:
    serving, width = problem.serving, access.width
    if access.elements.size > MOST_MOVED:
        _fail(f"{access.name}: {access.elements.size} elements moved are too many")
    if not math.isfinite(access.weight) or access.weight < 0:
        _fail(f"{access.name}: the weight is {access.weight}", "a weight is at least 0")
    if not access.steps:
        _fail(f"{access.name}: there is no step")
    if width % problem.packed:
        name = f"{access.name}: a vector of {width} elements of {problem.bits} bits"
        _fail(name, "memory has whole bytes")
    if width & (width - 1):
        _fail(f"{access.name}: a vector of {width} elements", "vectors are powers of two")
    try:
        serving.group(SERVED_AS[access.kind], problem.bytes_of(width))
    except WarploomError as error:
        _fail(f"{access.name}: {error.message}", error.advice)
    if problem.bytes_of(width) > serving.banks * serving.word_bytes:
        _fail(f"{access.name}: a vector of {width} elements is wider than all banks together")
    if access.lanes > serving.lanes or serving.lanes % access.lanes:
        _fail(
            f"{access.name}: {access.lanes} lanes, and a warp of {serving.name} has {serving.lanes}"
        )
    for piece in pieces(access.steps, access.lanes * width):
        _check_range(problem, access, piece)
        if access.kind in STORES:
            _check_store(access, piece)


def _check_range(problem: Problem, access: Access, piece: slice) -> None:
    elements = access.elements[piece]
    idle = elements == IDLE
    partly = idle.any(axis=2) & ~idle.all(axis=2)
    if partly.any():
        step, lane = np.argwhere(partly)[0].tolist()
        _fail(f"{access.name}: lane {lane} of step {piece.start + step} moves a part of its vector")
    outside = ((elements < 0) & ~idle) | (elements >= problem.size)
    if outside.any():
        step, lane, place = np.argwhere(outside)[0].tolist()
        _fail(
            f"{access.name}: lane {lane} of step {piece.start + step} wants element "
            f"{int(elements[step, lane, place])} at place {place} of its vector",
            f"the tensor {_shape(problem)} has elements 0 to {problem.size - 1}",
        )


def _check_store(access: Access, piece: slice) -> None:
    """Two lanes that store to one element in one step: nobody knows what it holds then."""
    elements = access.elements[piece]
    ordered = np.sort(elements.reshape(len(elements), -1), axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != IDLE)
    if twice.any():
        step, place = np.argwhere(twice)[0].tolist()
        element = int(ordered[step, place])
        lanes = np.nonzero((elements[step] == element).any(axis=1))[0].tolist()
        who = f"lanes {lanes[0]} and {lanes[1]}" if len(lanes) > 1 else f"lane {lanes[0]} twice"
        _fail(f"{access.name}: {who} of step {piece.start + step} store to element {element}")


def coordinates(shape: tuple[int, ...], element: int) -> tuple[int, ...]:
    """Where in the tensor an element is.

    >>> coordinates((4, 8), 19)
    (2, 3)
    """
    return tuple(int(place) for place in np.unravel_index(element, shape))


def _shape(problem: Problem) -> str:
    return "×".join(map(str, problem.shape))


def _fail(message: str, advice: str = "") -> NoReturn:
    raise CheckError(message, advice=advice)
