"""What becomes of scores before they are weights: any elementwise part of a stated program.

    s  →  cap·tanh(s / cap),  s + bias[h, i, j],  s − slope·(i − j),  s where a mask holds

It is written with the values of a nest. `ScoreWriter` writes it for four scores of a thread at
once, without branches: `tanh` and `exp` of libraries have some, and products would wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import e as base
from math import log2, prod
from typing import TypeAlias

from warploom.index.ir import Expr, lift, substitute, variables
from warploom.kernel.build import Builder, RegisterArray, cast, choose, exp2_ftz, fma, rsqrt
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import (
    Cast,
    Choose,
    Compare,
    FromIndex,
    Load,
    Number,
    Operation,
    Value,
    dtype_of,
)
from warploom.loopnest import ir
from warploom.loopnest.computation import Kept, Loaded
from warploom.loopnest.strategies.form import NotMeantError

Values: TypeAlias = tuple[Value, ...]
TOGETHER = 4  # scores of a thread that are written at once
PLAIN = ("+", "-", "*", "min", "max", "neg", "abs", "fma")
FUNCTIONS = ("tanh", "exp", "exp2")
MOST = 30.0  # of an exponent: 1 beside 2^30 is nothing, and the product of four is a number


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMap:
    """`value` of a nest, in which `score` stands for the sum of products. `sizes` are those of axes
    that are shorter than the nest's."""

    value: Value
    score: Value
    heads: tuple[ir.Axis, ...]
    query: ir.Axis
    key: ir.Axis
    sizes: Mapping[ir.Axis, int] = field(default_factory=dict)

    def along(self, sizes: Mapping[ir.Axis, int]) -> ScoreMap:
        return replace(self, sizes=sizes)

    def size(self, axis: ir.Axis) -> int:
        return self.sizes.get(axis, axis.size)

    @property
    def loads(self) -> tuple[Loaded, ...]:
        found = dict.fromkeys(each for each in self._parts() if isinstance(each, Loaded))
        return tuple(found)

    @property
    def arrays(self) -> tuple[ir.Array, ...]:
        return tuple(dict.fromkeys(each.access.array for each in self.loads))

    def elements(self, array: ir.Array) -> int:
        """As far as an array is loaded."""
        own = [each.access.place for each in self.loads if each.access.array is array]
        far = [
            each.offset + sum(step * (self.size(axis) - 1) for axis, step in each.factors.items())
            for each in own
        ]
        return 1 + max(far)

    @property
    def functions(self) -> float:
        """Exponentials and roots for each score; a root is of two."""
        cost = {"tanh": 1.25, "exp": 1.0, "exp2": 1.0}
        every = (each.op for each in self._parts() if isinstance(each, Operation))
        return sum(cost.get(op, 0.0) for op in every)

    def check(self) -> None:
        """Raises where it cannot be written without branches."""
        for each in self._parts():
            match each:
                case Operation("/", (_, Number(_, DType.F32))):
                    pass
                case Operation(op) if op not in PLAIN + FUNCTIONS:
                    raise NotMeantError(
                        f"scores go through '{op}': of an own map +, -, *, min, max, abs, tanh, "
                        "exp, choose and quotients by numbers are known"
                    )
                case Loaded():
                    self._check_load(each)
                case Cast(dtype, value) if dtype_of(value).is_real and not dtype.is_real:
                    raise NotMeantError("scores are cast to integers")
                case ir.Named() if each is not self.score:
                    raise NotMeantError(f"scores are of '{each.name}', which is no load of theirs")

    def _check_load(self, load: Loaded) -> None:
        access, known = load.access, {*self.heads, self.query, self.key}
        if access.where is not None or not access.is_linear or not set(access.axes) <= known:
            raise NotMeantError(
                f"'{access.array}' is not loaded along axes of heads, queries and keys alone"
            )
        if not access.array.dtype.is_real:
            raise NotMeantError(f"'{access.array}' holds no floats")

    def _parts(self) -> Iterator[Value]:
        pending, seen = [self.value], set[int]()
        while pending:
            each = pending.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            yield each
            if each is not self.score:
                pending += parts_of(each)


def parts_of(value: Value) -> tuple[Value, ...]:
    """What a value is of; a value that is computed once is of what it is."""
    match value:
        case Kept():
            return (value.value,)
        case Operation(_, parts):
            return parts
        case Choose(Compare(_, left, right), then, otherwise):
            return left, right, then, otherwise
        case Choose(_, then, otherwise):
            return then, otherwise
        case Cast(_, inner):
            return (inner,)
    return ()


@dataclass(frozen=True, slots=True)
class ScorePlace:
    """Which score a register has: of a head of queries, a query and a key, by their numbers."""

    head: Expr
    query: Expr
    key: Expr


@dataclass(slots=True, eq=False)
class ScoreWriter:
    """Writes a map for some scores at once; `names` are those of arrays in the kernel."""

    k: Builder
    map: ScoreMap
    names: Mapping[ir.Array, str]
    places: Sequence[ScorePlace]
    scores: Values
    known: dict[Value, Values] = field(default_factory=dict)
    count: int = 0

    def written(self) -> Values:
        return self._of(self.map.value)

    def _of(self, value: Value) -> Values:
        if value is self.map.score:
            return self.scores
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: Value) -> Values:
        match value:
            case Kept():
                return self._of(value.value)
            case Loaded():
                return self._loaded(value)
            case Number():
                return (value,) * len(self.places)
            case FromIndex(expr, dtype):
                return tuple(FromIndex(each, dtype) for each in self._at(expr))
            case Cast(dtype, inner):
                return tuple(cast(dtype, each) for each in self._of(inner))
            case Choose(condition, then, otherwise):
                return self._chosen(condition, then, otherwise)
            case Operation("tanh", (inner,)):
                return self._tanh(self._scaled(inner, 2 * log2(base)))
            case Operation("exp" | "exp2" as op, (inner,)):
                powers = self._scaled(inner, log2(base) if op == "exp" else 1.0)
                return tuple(exp2_ftz(each) for each in powers)
            case Operation("*" | "/", (_, Number(_, DType.F32))):
                return self._scaled(value, 1.0)
            case Operation(op, parts):
                every = zip(*(self._of(each) for each in parts), strict=True)
                return tuple(Operation(op, each) for each in every)
        raise NotMeantError(f"scores are of {value!r:.40}")

    def _scaled(self, value: Value, factor: float) -> Values:
        """A value times a number, which the numbers that it is multiplied with are part of."""
        while True:
            match value:
                case Kept():
                    value = value.value
                case Operation("*", (inner, Number(number))):
                    value, factor = inner, factor * number
                case Operation("/", (inner, Number(number))):
                    value, factor = inner, factor / number
                case _:
                    break
        found = self._of(value)
        return found if factor == 1.0 else tuple(each * factor for each in found)

    def _chosen(self, condition: Compare | Expr, then: Value, otherwise: Value) -> Values:
        if isinstance(condition, Compare):
            sides = zip(self._of(condition.left), self._of(condition.right), strict=True)
            asked: Sequence[Compare | Expr] = [Compare(condition.op, a, b) for a, b in sides]
        else:
            asked = self._at(condition)
        both = zip(asked, self._of(then), self._of(otherwise), strict=True)
        return tuple(choose(*each) for each in both)

    def _tanh(self, powers: Values) -> Values:
        """1 − 2 / (1 + 2^x) of four, with the reciprocal of their product.

        1 / a  =  b·(cd) / (abcd)
        """
        many = len(powers)
        sums, of_two = self._registers("sums", many), self._registers("products", 2)
        inverse = self._registers("inverse", 3)
        for at, each in enumerate(powers):
            sums[at] = exp2_ftz(each.min(Number(MOST, f32))) + 1.0
        for at in (0, 1):
            of_two[at] = sums[2 * at] * sums[2 * at + 1]
        inverse[2] = rsqrt(of_two[0] * of_two[1])
        inverse[2] = inverse[2] * inverse[2] * -2.0
        for at in (0, 1):
            inverse[at] = inverse[2] * of_two[1 - at]
        return tuple(fma(inverse[at // 2], sums[at ^ 1], 1.0) for at in range(many))

    def _loaded(self, load: Loaded) -> Values:
        access, many = load.access, len(self.places)
        held = self._registers("loaded", many, access.array.dtype)
        for at, place in enumerate(self.places):
            index: Expr | int = access.place.offset
            for axis, step in access.place.factors.items():
                index = self._axis(axis, place) * step + index
            self.k.add(Load(held[at], self.names[access.array], lift(index)))
        return tuple(held[at] for at in range(many))

    def _axis(self, axis: ir.Axis, place: ScorePlace) -> Expr:
        if axis is self.map.key:
            return place.key
        if axis is self.map.query:
            return place.query
        heads = self.map.heads
        number = heads.index(axis)
        inner = prod(self.map.size(each) for each in heads[number + 1 :])
        found = place.head // inner if inner > 1 else place.head
        return found % self.map.size(axis) if number else found

    def _at(self, expr: Expr) -> list[Expr]:
        """An expression over the names of axes, at each place."""
        own = {each.name: each for each in (*self.map.heads, self.map.query, self.map.key)}
        names = variables(expr)
        return [
            substitute(expr, {name: self._axis(own[name], place) for name in names})
            for place in self.places
        ]

    def _registers(self, what: str, count: int, dtype: DType = f32) -> RegisterArray:
        self.count += 1
        return self.k.registers(f"{what}_{self.count}", dtype, count)
