"""What becomes of scores before they are weights: any elementwise part of a stated program.

    s  →  cap·tanh(s / cap),  s + bias[h, i, j],  s − slope·(i − j),  s where a mask holds

It is written with the values of a nest. `ScoreWriter` writes it for two neighbouring keys at once,
without branches: that is what `tanh` and `exp` of libraries have, and products would wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

Both: TypeAlias = tuple[Value, Value]  # of two neighbouring keys
PLAIN = ("+", "-", "*", "min", "max", "neg", "abs", "fma")
FUNCTIONS = ("tanh", "exp", "exp2")
MOST = 60.0  # of an exponent: 1 beside 2^60 is nothing, and 2^120 is a number


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
        cost = {"tanh": 1.5, "exp": 1.0, "exp2": 1.0}
        every = (each.op for each in self._parts() if isinstance(each, Operation))
        return sum(cost.get(op, 0.0) for op in every)

    def check(self) -> None:
        """Raises where it cannot be written without branches."""
        for each in self._parts():
            match each:
                case Operation("/", (_, Number())):
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


@dataclass(slots=True, eq=False)
class ScoreWriter:
    """Writes a map for two neighbouring keys. `head` is the number of a head of queries, `keys`
    those of both keys; `names` are those of arrays in the kernel."""

    k: Builder
    map: ScoreMap
    names: Mapping[ir.Array, str]
    head: Expr
    query: Expr
    keys: tuple[Expr, Expr]
    scores: Both
    known: dict[Value, Both] = field(default_factory=dict)
    count: int = 0

    def written(self) -> Both:
        return self._both(self.map.value)

    def _both(self, value: Value) -> Both:
        if value is self.map.score:
            return self.scores
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: Value) -> Both:
        match value:
            case Kept():
                return self._both(value.value)
            case Loaded():
                return self._loaded(value)
            case Number():
                return value, value
            case FromIndex(expr, dtype):
                return FromIndex(self._at(expr, 0), dtype), FromIndex(self._at(expr, 1), dtype)
            case Cast(dtype, inner):
                a, b = self._both(inner)
                return cast(dtype, a), cast(dtype, b)
            case Choose(condition, then, otherwise):
                return self._chosen(condition, then, otherwise)
            case Operation("tanh", (inner,)):
                return self._tanh(*self._scaled(inner, 2 * log2(base)))
            case Operation("exp" | "exp2" as op, (inner,)):
                a, b = self._scaled(inner, log2(base) if op == "exp" else 1.0)
                return exp2_ftz(a), exp2_ftz(b)
            case Operation("*" | "/", (_, Number())):
                return self._scaled(value, 1.0)
            case Operation(op, parts):
                every = [self._both(each) for each in parts]
                return (
                    Operation(op, tuple(a for a, _ in every)),
                    Operation(op, tuple(b for _, b in every)),
                )
        raise NotMeantError(f"scores are of {value!r:.40}")

    def _scaled(self, value: Value, factor: float) -> Both:
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
        a, b = self._both(value)
        return (a, b) if factor == 1.0 else (a * factor, b * factor)

    def _chosen(self, condition: Compare | Expr, then: Value, otherwise: Value) -> Both:
        yes, no = self._both(then), self._both(otherwise)
        if isinstance(condition, Compare):
            left, right = self._both(condition.left), self._both(condition.right)
            asked = [Compare(condition.op, left[e], right[e]) for e in (0, 1)]
            return choose(asked[0], yes[0], no[0]), choose(asked[1], yes[1], no[1])
        first, second = self._at(condition, 0), self._at(condition, 1)
        return choose(first, yes[0], no[0]), choose(second, yes[1], no[1])

    def _tanh(self, a: Value, b: Value) -> Both:
        """1 − 2 / (1 + 2^x), with one reciprocal for both."""
        some, inverse = self._registers("sums", 2), self._registers("inverse", 1)
        for at, each in enumerate((a, b)):
            some[at] = exp2_ftz(each.min(Number(MOST, f32))) + 1.0
        inverse[0] = rsqrt(some[0] * some[1])
        inverse[0] = inverse[0] * inverse[0] * -2.0
        return fma(inverse[0], some[1], 1.0), fma(inverse[0], some[0], 1.0)

    def _loaded(self, load: Loaded) -> Both:
        place, array = load.access.place, load.access.array
        held = self._registers("loaded", 2, array.dtype)
        for at in (0, 1):
            index: Expr | int = place.offset
            for axis, step in place.factors.items():
                index = self._axis(axis, at) * step + index
            self.k.add(Load(held[at], self.names[array], lift(index)))
        return held[0], held[1]

    def _axis(self, axis: ir.Axis, at: int) -> Expr:
        if axis is self.map.key:
            return self.keys[at]
        if axis is self.map.query:
            return self.query
        heads = self.map.heads
        number = heads.index(axis)
        inner = prod(self.map.size(each) for each in heads[number + 1 :])
        found = self.head // inner if inner > 1 else self.head
        return found % self.map.size(axis) if number else found

    def _at(self, expr: Expr, at: int) -> Expr:
        known = (*self.map.heads, self.map.query, self.map.key)
        own = {each.name: each for each in known}
        return substitute(expr, {name: self._axis(own[name], at) for name in variables(expr)})

    def _registers(self, what: str, count: int, dtype: DType = f32) -> RegisterArray:
        self.count += 1
        return self.k.registers(f"{what}_{self.count}", dtype, count)
