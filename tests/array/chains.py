"""Random chains of layout operations around one array, with symbolic sizes and numbers for them."""

from __future__ import annotations

from random import Random
from typing import Any

from warploom.array import build as al
from warploom.array.language.ir import Param, Term
from warploom.array.language.op import Boundary
from warploom.array.language.size import value_of
from warploom.array.types import Array, Scalar, Tuple, Type, Vector, array, base
from warploom.index.ir import Expr, Var
from warploom.kernel.dtype import i32

NUMBER = Scalar(i32)


class Chains:
    """`writable`: only operations that can be written through."""

    def __init__(self, seed: int, writable: bool, most: int = 400) -> None:
        self.random = Random(seed)
        self.writable = writable
        self.most = most
        self.values: dict[str, int] = {}

    def size(self, value: int) -> Expr | int:
        """A number, sometimes as a variable."""
        if self.random.random() < 0.4:
            return value
        name = f"s{len(self.values)}"
        self.values[name] = value
        return Var(name)

    def number(self, size: Expr) -> int:
        return value_of(size, self.values)

    def chain(self, length: int) -> tuple[Param, Term]:
        dims = [self.size(self.random.choice((1, 2, 3, 4, 6))) for _ in range(3)]
        hole = Param("x", array(i32, *dims[: self.random.randrange(1, 4)]))
        term: Term = hole
        for _ in range(length):
            term = self.step(term)
        return hole, term

    def elements(self, type_: Type) -> int:
        if isinstance(type_, Array):
            return self.number(type_.size) * self.elements(type_.element)
        return sum(map(self.elements, type_.parts)) if isinstance(type_, Tuple) else 1

    def step(self, term: Term, depth: int = 2) -> Term:
        ways = self.ways(term, depth)
        self.random.shuffle(ways)
        for way in ways:
            made = way()
            if made is not None and self.elements(made.type) <= self.most:
                return made
        return term

    def ways(self, term: Term, depth: int) -> list[Any]:
        type_, random = term.type, self.random
        if isinstance(type_, Tuple):
            return [lambda: al.get(random.randrange(len(type_.parts)), term)]
        if not isinstance(type_, Array):
            return []
        ways = self.of_array(term, type_)
        if isinstance(type_.element, Array):
            ways += [lambda: al.join(term), lambda: al.transpose(term)] * 3
        if isinstance(type_.element, Tuple):
            ways += [lambda: al.unzip(term)] * 3
        if isinstance(type_.element, Vector):
            ways += [lambda: al.as_scalar(term)] * 3
        if depth and not isinstance(type_.element, Scalar | Vector):
            ways += [lambda: al.map_(lambda row: self.step(row, depth - 1), term)] * 4
        return ways

    def of_array(self, term: Term, type_: Array) -> list[Any]:
        random, size = self.random, self.number(type_.size)
        half = [by for by in (2, 3) if size % by == 0]
        ways = [
            lambda: al.reverse(term),
            lambda: al.slice_(0, self.size(max(1, size - 1)), term),
        ]
        shift = lambda i, n: (i + 1) % n  # noqa: E731
        back = lambda i, n: (i - 1) % n  # noqa: E731
        ways.append(lambda: al.scatter(shift, term, back))
        if half:
            by = self.size(random.choice(half))
            ways += [lambda: al.split(by, term), lambda: al.strided(by, term)] * 2
        if size % 2 == 0 and type_.element is NUMBER:
            ways.append(lambda: al.as_vector(2, term))
        if self.writable:
            return ways
        some: Boundary = random.choice(("clamp", "wrap", "mirror", "constant"))
        boundary: Boundary = "clamp" if isinstance(base(type_), Tuple | Vector) else some
        ways += [
            lambda: al.pad(1, self.size(1), term, boundary, -5),
            lambda: al.slide(self.size(min(2, size)), 1, term),
            lambda: al.gather(lambda i, n: i // 2, term),
            lambda: al.zip_(term, al.reverse(term)),
            lambda: al.element(size - 1, term),
        ]
        return ways
