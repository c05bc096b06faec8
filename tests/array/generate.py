"""Random array expressions of a wanted type, with small known sizes; every operation occurs.

Numbers are i32, which wrap: sums in any order are equal bit by bit.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from warploom.array import build as al
from warploom.array.language.ir import Param, Term, is_concrete
from warploom.array.language.op import Boundary
from warploom.array.types import Array, Scalar, Tuple, Type, Vector, array, base, shape
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.kernel.dtype import i32

NUMBER = Scalar(i32)
MOST = 64  # elements of one array on the way


def number(expr: Any) -> int:
    return int(evaluate_index(expr, {}))


def elements(type_: Type) -> int:
    total = 1
    for size in shape(type_):
        total *= number(size)
    inner = base(type_)
    return total * (sum(map(elements, inner.parts)) if isinstance(inner, Tuple) else 1)


def random_type(random: Random, depth: int = 2) -> Type:
    if depth == 0 or random.random() < 0.3:
        return NUMBER
    if random.random() < 0.2:
        return Tuple(tuple(random_type(random, depth - 1) for _ in range(2)))
    return array(random_type(random, depth - 1), random.choice((1, 2, 3, 4, 6)))


class Generator:
    """Terms over inputs that are made up as they are needed."""

    def __init__(self, seed: int | Random) -> None:
        self.random = seed if isinstance(seed, Random) else Random(seed)
        self.inputs: list[Param] = []

    def term(self, type_: Type, depth: int, local: tuple[Param, ...] = ()) -> Term:
        known = [each for each in (*local, *self.inputs) if each.type is type_]
        if known and self.random.random() < 0.3:
            return self.random.choice(known)
        ways = [] if depth <= 0 else self.ways(type_, depth - 1, local)
        self.random.shuffle(ways)
        for way in ways:
            made = way()
            if made is not None:
                assert made.type is type_
                return made
        return self.leaf(type_, known)

    def leaf(self, type_: Type, known: list[Param]) -> Term:
        if known:
            return self.random.choice(known)
        if not isinstance(base(type_), Tuple) and self.random.random() < 0.1:
            return al.filled(self.random.randrange(-3, 4), type_)
        made = Param(f"x{len(self.inputs)}", type_)
        self.inputs.append(made)
        return made

    def ways(self, type_: Type, depth: int, local: tuple[Param, ...]) -> list[Any]:
        again = lambda wanted: self.term(wanted, depth, local)  # noqa: E731
        ways: list[Any] = [
            lambda: al.let(again(self.small()), lambda x: self.term(type_, depth, (*local, x)))
        ]
        if elements(type_) < MOST:
            ways.append(lambda: self.part_of(type_, again))
            ways.append(lambda: al.iterate(2, lambda x: self.term(type_, depth, (*local, x)),
                                          again(type_)))  # fmt: skip
        match type_:
            case Scalar():
                ways += [lambda: self.computed(again)] * 3
                ways.append(lambda: al.element(0, again(array(NUMBER, 1))))
            case Tuple(parts):
                ways += [lambda: al.pack(*map(again, parts))] * 2
            case Array(element, size):
                given = (element, number(size), depth, local, again)
                ways += self.arrays(*given) * 2 + [lambda: self.mapped(*given)] * 8
        return ways

    def small(self) -> Type:
        return random_type(self.random, 1)

    def part_of(self, type_: Type, again: Any) -> Term:
        if self.random.random() < 0.5:
            return al.get(1, again(Tuple((self.small(), type_))))
        return al.element(1, again(array(type_, 2)))

    def computed(self, again: Any) -> Term:
        a, b = again(NUMBER), again(NUMBER)
        match self.random.randrange(6):
            case 0:
                return a + b
            case 1:
                return a * b
            case 2:
                return al.compute(self.random.choice(("min", "max", "-")), a, b)
            case 3:
                return al.choose(a.lt(b), a, b)
            case 4:
                return al.copy(a)
            case _:
                return -a

    def function(self, given: Type, wanted: Type, depth: int, local: tuple[Param, ...] = ()) -> Any:
        return lambda x: self.term(wanted, depth, (*local, x))

    def arrays(
        self, element: Type, size: int, depth: int, local: tuple[Param, ...], again: Any
    ) -> list[Any]:
        random = self.random
        ways: list[Any] = [
            lambda: self.mapped(element, size, depth, local, again),
            lambda: al.scan(lambda s, x: self.term(element, depth, (*local, s, x)), again(element),
                           again(array(self.small(), size))),
            lambda: al.reverse(again(array(element, size))),
            lambda: al.gather(lambda i, n: (i + 1) % n, again(array(element, size))),
            lambda: al.scatter(lambda i, n: (i + 1) % n, again(array(element, size))),
            lambda: self.padded(element, size, again),
            lambda: al.slice_(1, size, again(array(element, size + 2))),
        ]  # fmt: skip
        for by in (2, 3):
            if size % by == 0:
                ways.append(lambda by=by: al.join(again(array(element, size // by, by))))
                ways.append(lambda by=by: al.strided(by, again(array(element, size))))
        if size == 1:
            step = lambda s, x: self.term(element, depth, (*local, s, x))  # noqa: E731
            three = array(self.small(), 3)
            ways.append(lambda: al.reduce(step, again(element), again(three)))
        if isinstance(element, Array):
            inner = number(element.size)
            ways.append(lambda: al.split(inner, again(array(element.element, size * inner))))
            ways.append(lambda: al.transpose(again(array(element.element, inner, size))))
            by = random.choice((1, 2))
            slid = array(element.element, (size - 1) * by + inner)
            ways.append(lambda: al.slide(inner, by, again(slid)))
        if isinstance(element, Tuple):
            ways.append(lambda: al.zip_(*(again(array(part, size)) for part in element.parts)))
        else:
            ways.append(lambda: al.get(0, al.unzip(again(array(Tuple((element, NUMBER)), size)))))
        if element is NUMBER and size % 2 == 0:
            ways.append(lambda: al.as_scalar(self.vectors(size // 2, depth, local, again)))
        return ways

    def vectors(self, size: int, depth: int, local: tuple[Param, ...], again: Any) -> Term:
        made = al.as_vector(2, again(array(NUMBER, 2 * size)))
        if self.random.random() < 0.5:
            return made
        return al.map_(lambda v: v * al.filled(3, Vector(NUMBER, 2)) + v, made)

    def mapped(
        self, element: Type, size: int, depth: int, local: tuple[Param, ...], again: Any
    ) -> Term:
        xs = again(array(self.small(), size))
        made = al.map_(lambda x: self.term(element, depth, (*local, x)), xs)
        if is_concrete(made) and self.random.random() < 0.4:
            return al.to_private(made)
        return made

    def padded(self, element: Type, size: int, again: Any) -> Term | None:
        left, right = self.random.choice(((1, 0), (0, 1), (1, 1)))
        inner = size - left - right
        if inner < 1:
            return None
        boundary: Boundary = self.random.choice(("clamp", "wrap", "mirror", "constant"))
        if boundary == "constant" and isinstance(base(element), Tuple):
            boundary = "clamp"
        return al.pad(left, right, again(array(element, inner)), boundary, 7)


def random_value(random: np.random.Generator, type_: Type) -> Any:
    """An input, as `evaluate` takes it."""
    inner = base(type_)
    outer = [number(size) for size in shape(type_)]
    if isinstance(inner, Tuple):
        return tuple(random_value(random, array(part, *outer)) for part in inner.parts)
    return random.integers(-9, 10, outer).astype(np.int32)
