"""Elements: what floats stand for, as numbers modulo two primes.

An input is drawn anew modulo p, and apart from that modulo q. Sums, products and quotients are made
modulo both. exp takes the first to the second (`Primes.exp`) and has no first, so an exponent that
depends on it is not known. Other functions are drawn by a key from what they are applied to. An
extremum is drawn for itself, or by a key from all that was compared, in whatever order.

What an element may be as a function of the inputs is bounded beside it: degrees, sizes of
coefficients, exponentials. And each has its value for inputs that are numbers, without rounding but
that of doubles: it decides nothing, and shows where two functions differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.field.digits import mixed
from warploom.ptx.field.factors import MOST_BITS, Endless, Factors
from warploom.ptx.field.prime import Modulus, Primes
from warploom.ptx.field.roundings import COLUMNS as ROUNDINGS

Array = npt.NDArray[Any]
LOW_LOG2_E = 0x32A57060  # the second single of log2(e), as expf has it
FIRST_ROOM = 1 << 14
_FRESH, _STEPPED = 0, 3
MOST = 1 << 25  # elements of a run, some eighty bytes each
COLUMNS = {
    "a": "u8", "b": "u8",  # modulo p, and modulo q
    "constant": "f8",  # the float that it is, ±inf too; NaN of what is none
    "exponential": "?",  # it has no number modulo p
    "compared": "u8",  # of an extremum: the product of what was compared; else 0
    "least": "?",  # it is a minimum
    "unit": "?",  # it is from 0 to 1
    "step": "i8",  # it is a whole number above NO_STEP, by less than 127: how far; else 0
    "factor": "i8",  # of the whole; what is said of coefficients is said of the rest
    # Of numerator and denominator the degree, log2 of the sum of all whole coefficients, log2 of
    # how many different exponentials there may be, and the sum of coefficients in their exponents.
    "degree": "f8", "degree_below": "f8", "size": "f8", "size_below": "f8",
    "terms": "f8", "terms_below": "f8", "weight": "f8", "weight_below": "f8",
    "narrow": "f8",  # its degree in what was drawn from few values
    "real": "f8",  # its value where inputs are certain numbers; NaN if these are not given
    **ROUNDINGS,
}  # fmt: skip

REAL: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "lg2": np.log2,
    "exp2": np.exp2,
}  # fmt: skip
BOUNDS = (
    "degree", "degree_below", "size", "size_below", "narrow", "terms", "terms_below", "weight",
    "weight_below",
)  # fmt: skip


# A float whose lowest bits are those of an exponent, as expf makes it: from the first one on, and
# what the exponent 0 is.
STEPS, FIRST_STEP, NO_STEP = 252.0, 12582913.0, 12583039.0
LOG2_E = sum(float(np.uint32(each).view(np.float32)) for each in (0x3FB8AA3B, LOW_LOG2_E))


class NotKnown(Exception):  # noqa: N818 - a verdict is made of it
    """A kernel does with its numbers what the field does not follow; the message says what."""

    span: Span | None = None  # of the instruction


class NonLinear(NotKnown):
    """An exponent is no sum of inputs times numbers; it may be, if some inputs are few numbers."""


@dataclass(slots=True)
class Elements:
    """The elements of a run, by number."""

    pair: Primes
    key: int
    count: int = 0
    columns: dict[str, Array] = field(default_factory=dict)
    factors: Factors = field(default_factory=Factors)
    exponents: set[int] = field(default_factory=set)  # their factors
    by_key: bool = False  # extrema of the same are alike; else each is drawn for itself
    merging: bool = False  # what is alike in one instruction is one element
    free_exponentials: bool = False  # of what is not linear, of which only that is known
    functions: int = 0  # values of functions that were drawn by their arguments
    arguments: set[int] = field(default_factory=set)  # their factors
    argument: dict[str, float] = field(default_factory=dict)  # the most of them, by what is bounded
    holding: dict[str, Span] = field(default_factory=dict)  # where sums are added to, by their type
    cut: dict[int, int] = field(default_factory=dict)  # what is left of their upper halves
    _constants: dict[float, int] = field(default_factory=dict)

    @staticmethod
    def drawn(r: Random) -> Elements:
        made = Elements(Primes.drawn(r), r.randrange(1 << 64))
        made.columns = {name: np.zeros(FIRST_ROOM, dtype) for name, dtype in COLUMNS.items()}
        return made

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def moduli(self) -> tuple[tuple[str, Modulus], ...]:
        return ("a", self.pair.p), ("b", self.pair.q)

    # -- new ones -----------------------------------------------------------------------------

    def _new(self, count: int, **given: Any) -> Array:
        """Numbers of new elements with these properties, and 0 for all others; no constants."""
        first, end = self.count, self.count + count
        if end > MOST:
            raise NotKnown(f"more than {MOST} numbers are computed; try a smaller shape")
        room = self.columns["a"].size
        if end > room:
            more = max(2 * room, end)
            for name, old in self.columns.items():
                self.columns[name] = np.zeros(more, old.dtype)
                self.columns[name][: self.count] = old[: self.count]
        for name, column in self.columns.items():
            column[first:end] = given.get(name, np.nan if name in ("constant", "real") else 0)
        self.count = end
        made = np.arange(first, end)
        return self._merged(made) if self.merging and count > 1 else made

    def copied(self, x: Array) -> Array:
        """The same numbers as new elements, but for constants, as of what was rounded."""
        out = x.copy()
        at = np.flatnonzero(~self.is_constant(x))
        if at.size:
            out[at] = self._new(at.size, **{name: self[name][x[at]] for name in self.columns})
        return out

    def _merged(self, made: Array) -> Array:
        """The first of elements that are alike, as sums are that lanes make in another order."""
        _, at, place = np.unique(self.digest(made), return_index=True, return_inverse=True)
        if at.size < made.size:
            self._note(made)
        return np.asarray(made[at][place])

    def _note(self, *given: Array) -> None:
        """Elements are taken for one where they are alike in this draw, which may be by chance."""
        self.functions += given[0].size
        for x in given:
            self.arguments.update(np.unique(self["factor"][x]).tolist())
            for each in BOUNDS:
                most = float(self[each][x].max(initial=0))
                self.argument[each] = max(self.argument.get(each, 0.0), most)

    def inputs(self, count: int, r: Random, few: int = 0, real: Array | float = np.nan) -> Array:
        """Inputs, each its own variable; or of so few values, which then are coefficients.

        `real` are numbers that they may be.
        """
        draw = np.random.default_rng(r.randrange(1 << 63))
        if few:
            value = draw.integers(0, few, count, np.uint64)
            size = np.log2(few)
            return self._new(count, a=value, b=value, size=size, narrow=1.0, real=real)
        a, b = (draw.integers(0, m.p, count, np.uint64) for _, m in self.moduli)
        return self._new(count, a=a, b=b, degree=1.0, real=real)

    def constants(self, values: Array) -> Array:
        """Floats as elements; each value is one element."""
        distinct, place = np.unique(values.astype(np.float64).reshape(-1), return_inverse=True)
        return np.array([self._constant(v) for v in distinct.tolist()], np.int64)[place]

    def _constant(self, value: float) -> int:
        value = value + 0.0  # -0 is 0
        found = self._constants.get(value)
        if found is not None:
            return found
        if value != value:
            raise NotKnown("a NaN")
        above, below = (0, 1) if np.isinf(value) else value.as_integer_ratio()
        made = self._new(
            1, constant=value, real=value, factor=self.factors.number(Fraction(above, below)),
            **{name: above * pow(below, -1, m.p) % m.p for name, m in self.moduli},
        )  # fmt: skip
        self._constants[value] = int(made[0])
        return int(made[0])

    def drawn_from(
        self, name: int, given: tuple[Array, ...], real: Array, *digests: Array, factor: int = 0
    ) -> Array:
        """Values of a function that is drawn: alike for what has the same digests."""
        self._note(*given)
        return self._drawn(name, real, *digests, factor=factor)

    def _drawn(self, name: int, real: Array, *digests: Array, factor: Array | int = 0) -> Array:
        total = np.full(digests[0].shape, self.key ^ name, np.uint64)
        for each in digests:
            total = mixed(total ^ each)
        a, b = (
            mixed(total ^ np.uint64(n)) % np.uint64(m.p) for n, (_, m) in enumerate(self.moduli)
        )
        return self._new(total.size, a=a, b=b, degree=1.0, real=real, factor=factor)

    @property
    def unit(self) -> float:
        """What all exponents are whole multiples of."""
        return abs(float(self.factors.listed[self.factors.of_all(self.exponents)]))

    # -- what is asked ------------------------------------------------------------------------

    def is_constant(self, x: Array) -> Array:
        return ~np.isnan(self["constant"][x])

    def infinite(self, x: Array) -> Array:
        return np.isinf(self["constant"][x])

    def digest(self, x: Array) -> Array:
        """Words that tell elements apart."""
        only_b = self["exponential"][x]
        a = np.where(only_b, np.uint64(1), self["a"][x] << np.uint64(1))
        word: Array = mixed(mixed(a ^ np.uint64(self.key)) ^ self["b"][x])
        return np.where(self.infinite(x), np.uint64(0), word)

    # -- sums, products, quotients ------------------------------------------------------------

    def add(self, x: Array, y: Array) -> Array:
        return self._ring(x, y, "add")

    def mul(self, x: Array, y: Array) -> Array:
        return self._ring(x, y, "mul")

    def neg(self, x: Array) -> Array:
        return self.mul(x, self.constants(np.full(x.size, -1.0)))

    def _ring(self, x: Array, y: Array, op: str) -> Array:
        out = self._exact(x, y, op)
        rest = np.flatnonzero(out < 0)
        if rest.size:
            out[rest] = self._made(x[rest], y[rest], op)
        return out

    def _exact(self, x: Array, y: Array, op: str) -> Array:
        """Results that are constants again, of constants or infinite ones; else -1."""
        out = np.full(x.size, -1)
        u, v = self["constant"][x], self["constant"][y]
        adds = op == "add"
        with np.errstate(all="ignore"):
            total = u + v if adds else u * v
            # The result is exact if nothing is left; of products, as fractions of few bits are.
            exact = ((total - u == v) & (total - v == u)) if adds else _few_bits(u) & _few_bits(v)
        both = ~np.isnan(u) & ~np.isnan(v)
        if adds:
            endless = np.isinf(u) | np.isinf(v)
            total = np.where(
                np.isinf(u), np.where(np.isinf(v), u + v, u), np.where(endless, v, total)
            )
        else:
            endless = both & (np.isinf(u) | np.isinf(v))
            unknown = (np.isinf(u) | np.isinf(v)) & ~both
            if unknown.any():
                raise NotKnown("an infinite number times one that depends on inputs")
            zero = ((u == 0) | (v == 0)) & ~endless
            one = (u == 1) | (v == 1)
            out = np.where(one, np.where(u == 1, y, x), out)
            total, both = np.where(zero, 0.0, total), both | zero
            exact = exact | zero
        if adds:
            out = np.where(u == 0, y, np.where(v == 0, x, out))
            for one, other in ((x, v), (y, u)):
                steps = (self["step"][one] > 0) & (other == -NO_STEP)
                out = np.where(steps, self["step"][one], out)
        take = ((both & exact) | endless) & (out < 0)
        if take.any():
            out[take] = self.constants(total[take])
        return out

    def _made(self, x: Array, y: Array, op: str) -> Array:
        made = {name: getattr(m, op)(self[name][x], self[name][y]) for name, m in self.moduli}
        c = self._bounds(x, y, op)
        exponential = self["exponential"][x] | self["exponential"][y]
        u, v = self["real"][x], self["real"][y]
        with np.errstate(all="ignore"):
            real = u + v if op == "add" else u * v
        return self._new(x.size, **made, exponential=exponential, real=real, **c)

    def _bounds(self, x: Array, y: Array, op: str) -> dict[str, Array]:
        """What is known of a sum or a product as a function of the inputs."""
        n, d, s, t, u, v, w, b, narrow, factor = (
            [self[name][each] for each in (x, y)]
            for name in (
                "degree", "degree_below", "size", "size_below", "terms", "terms_below", "weight",
                "weight_below", "narrow", "factor",
            )
        )  # fmt: skip
        common = {
            "degree_below": d[0] + d[1], "size_below": t[0] + t[1], "terms_below": v[0] + v[1],
            "weight_below": b[0] + b[1],
        }  # fmt: skip
        with self._told():
            if op == "mul":
                return {
                    "degree": n[0] + n[1], "size": s[0] + s[1], "terms": u[0] + u[1],
                    "weight": w[0] + w[1],
                    "narrow": narrow[0] + narrow[1],
                    "factor": self.factors.product(*factor), **common,
                }  # fmt: skip
            unit, *above = self.factors.common(*factor)
            numbers = self._rational(x) & self._rational(y)
            if numbers.any():
                unit = np.where(numbers, self.factors.sum(*factor), unit)
        quotient = (d[0] > 0) | (d[1] > 0) | (b[0] > 0) | (b[1] > 0)
        return {
            "degree": np.maximum(n[0] + d[1], n[1] + d[0]), "factor": unit,
            "weight": np.maximum(w[0] + b[1], w[1] + b[0]),
            "size": np.where(
                numbers, 0, np.maximum(s[0] + t[1] + above[0], s[1] + t[0] + above[1]) + 1
            ),
            "terms": np.where(numbers, 0, np.logaddexp2(u[0] + v[1], u[1] + v[0])),
            "narrow": np.where(quotient, narrow[0] + narrow[1], np.maximum(*narrow)), **common,
        }  # fmt: skip

    def _rational(self, x: Array) -> Array:
        """Whether it is a number, which is its factor then."""
        bounds: Array = np.stack([self[name][x] for name in BOUNDS])
        found: Array = (bounds == 0).all(axis=0)
        return found

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Endless:
            raise NotKnown(f"constants of more than {MOST_BITS} bits") from None

    def inverse(self, x: Array) -> Array:
        if (self["constant"][x] == 0).any():
            raise NotKnown("a division by zero")
        if self.infinite(x).any():
            raise NotKnown("a division by an infinite number")
        if ((self["b"][x] == 0) | ~self["exponential"][x] & (self["a"][x] == 0)).any():
            raise NotKnown("a division by what is always zero")
        made = {name: m.inverted(self[name][x]) for name, m in self.moduli}
        with np.errstate(all="ignore"):
            real = 1 / self["real"][x]
        with self._told():
            factor = self.factors.inverse(self["factor"][x])
        turned = {
            f"{name}{to}": self[f"{name}{of}"][x]
            for name in ("degree", "size", "terms", "weight")
            for to, of in (("", "_below"), ("_below", ""))
        }
        # A number that depends on nothing but few values is a denominator all the same.
        wide = ~self.is_constant(x) & (self["narrow"][x] > 0)
        turned["degree_below"] = np.maximum(turned["degree_below"], wide)
        return self._new(
            x.size, **made, real=real, exponential=self["exponential"][x],
            narrow=self["narrow"][x], factor=factor, **turned,
        )  # fmt: skip

    def products(self, x: Array, y: Array, before: Array) -> Array:
        """before + Σₖ x · y, as tensor cores take them: x by row and k, y by column and k."""
        if any(self.infinite(each).any() for each in (x, y, before)):
            raise NotKnown("an infinite number in a product of matrices")
        made = {
            name: m.add(m.products(self[name][x], self[name][y]), self[name][before]).reshape(-1)
            for name, m in self.moduli
        }
        exponential = self._any("exponential", x, y, np.logical_or)
        bounds = self._product_bounds(x, y, before)
        with np.errstate(all="ignore"):
            real = self["real"][x] @ np.swapaxes(self["real"][y], -1, -2) + self["real"][before]
        return self._new(
            before.size, **made, real=real.reshape(-1),
            **{name: each.reshape(-1) for name, each in bounds.items()},
            exponential=(exponential | self["exponential"][before]).reshape(-1),
        ).reshape(before.shape)  # fmt: skip

    def _product_bounds(self, x: Array, y: Array, before: Array) -> dict[str, Array]:
        """As of a sum in which all products are like the largest."""
        with self._told():
            left, right = (self.factors.of_all(self["factor"][each].reshape(-1)) for each in (x, y))
            both = self.factors.product(np.array([left]), np.array([right]))
            unit, here, there = self.factors.common(
                np.broadcast_to(both, before.size), self["factor"][before].reshape(-1)
            )
        here, there = here.reshape(before.shape), there.reshape(before.shape)
        each = {name: self._sum_bound(name, x, y) for name in BOUNDS}
        rows, columns = (
            (self["size"][e] + self.factors.above(self["factor"][e], u)).max(axis=-1)
            for e, u in ((x, left), (y, right))
        )
        each["size"] = rows[..., :, None] + columns[..., None, :]
        old = {name: self[name][before] for name in BOUNDS}
        depth = x.shape[-1]
        degree, size, terms, weight = (
            depth * each[f"{name}_below"] + old[f"{name}_below"]
            for name in ("degree", "size", "terms", "weight")
        )
        total = np.maximum(each["size"] + np.log2(depth) + here, old["size"] + there)
        narrow = np.maximum(each["narrow"], old["narrow"])
        quotients = degree + weight > 0
        return {
            "degree": np.maximum(each["degree"], old["degree"]) + degree, "degree_below": degree,
            "size": total + size + 1, "size_below": size, "factor": unit.reshape(before.shape),
            "terms": np.logaddexp2(each["terms"] + np.log2(depth), old["terms"]) + terms,
            "terms_below": terms, "weight_below": weight,
            "weight": np.maximum(each["weight"], old["weight"]) + weight,
            "narrow": np.where(quotients, depth * each["narrow"] + old["narrow"], narrow),
        }  # fmt: skip

    def _any(self, name: str, x: Array, y: Array, join: Any) -> Array:
        """A property of rows joined with one of columns."""
        rows, columns = (join.reduce(self[name][each], axis=-1) for each in (x, y))
        return np.asarray(join(rows[..., :, None], columns[..., None, :]))

    def _sum_bound(self, name: str, x: Array, y: Array) -> Array:
        rows, columns = (self[name][each].max(axis=-1) for each in (x, y))
        return np.asarray(rows[..., :, None] + columns[..., None, :])

    # -- other functions ----------------------------------------------------------------------

    def exp2(self, x: Array) -> Array:
        u = self["constant"][x]
        known = np.isinf(u) | (u == np.floor(u)) & (np.abs(u) < 1000)
        if (u == np.inf).any():
            raise NotKnown("an exponential of +inf")
        if self["exponential"][x].any() and not self.free_exponentials:
            raise NonLinear("an exponential of an exponential")
        out = np.full(x.size, -1)
        if known.any():
            out[known] = self.constants(np.exp2(u[known]))
        rest = np.flatnonzero(~known)
        z = x[rest]
        if self.free_exponentials:
            free = self._is_not_linear(z)
            out[rest[free]] = self.function("exp2", z[free])
            rest, z = rest[~free], z[~free]
        if ((self["degree_below"][z] > 0) | (self["size_below"][z] > 0)).any():
            raise NonLinear("an exponential of a quotient")
        if (self["degree"][z] > 1).any():
            raise NonLinear("an exponential of a product of inputs")
        factors, place = np.unique(self["factor"][z], return_inverse=True)
        self.exponents.update(factors.tolist())
        scale = np.array([abs(float(self.factors.listed[n])) for n in factors.tolist()])
        weight = np.exp2(np.minimum(self["size"][z], 1000.0)) * scale[place]
        with np.errstate(all="ignore"):
            real = np.exp2(self["real"][z])
        out[rest] = self._new(
            rest.size, b=self.pair.exp(self["a"][z]), real=real, exponential=True,
            weight=weight, narrow=self["narrow"][z],
        )  # fmt: skip
        return out

    def extreme(self, x: Array, y: Array, least: bool) -> Array:
        """min or max: what was compared decides, not in which order."""
        worst = np.inf if least else -np.inf
        u, v = self["constant"][x], self["constant"][y]
        out = np.where((x == y) | (v == worst), x, np.where(u == worst, y, -1))
        out = np.where((out < 0) & (u == -worst), x, np.where((out < 0) & (v == -worst), y, out))
        both = (out < 0) & ~np.isnan(u) & ~np.isnan(v)
        first = (u <= v) if least else (u >= v)
        out = np.where(both, np.where(first, x, y), out)
        rest = np.flatnonzero(out < 0)
        if rest.size:
            out[rest] = self._drawn_extreme(x[rest], y[rest], least)
        return out

    def _is_not_linear(self, x: Array) -> Array:
        below = self["degree_below"][x] + self["size_below"][x]
        return np.asarray(self["exponential"][x] | (below > 0) | (self["degree"][x] > 1))

    def clamped(self, x: Array) -> Array:
        """From 0 to 1."""
        zero, one = (self.constants(np.full(x.size, each)) for each in (0.0, 1.0))
        made = self.extreme(self.extreme(x, zero, False), one, True)
        self["unit"][made] = ~self.is_constant(made)
        return made

    def stepped(self, x: Array) -> Array:
        """What fma.rm makes of what is from 0 to 1: a whole number above one that is exponent 0.
        Which it is, is not looked at."""
        real = np.floor(self["real"][x] * STEPS + FIRST_STEP)
        first = np.arange(self.count, self.count + x.size, dtype=np.uint64)
        factor = self.factors.number(Fraction(LOG2_E))  # by which what it is taken from is scaled
        exponents = (
            self.drawn_from(_STEPPED, (x,), real - NO_STEP, self.digest(x), factor=factor)
            if self.by_key
            else self._drawn(_FRESH, real - NO_STEP, first, factor=factor)
        )
        made = self.add(exponents, self.constants(np.full(x.size, NO_STEP)))
        self["step"][made] = exponents
        return made

    def are_steps(self, x: Array, slope: Array, start: Array) -> Array:
        """Where x · slope + start, rounded down, is one."""
        known = (self["constant"][slope] == STEPS) & (self["constant"][start] == FIRST_STEP)
        return np.asarray(known & self["unit"][x])

    def exponent_of(self, x: Array) -> Array:
        """What a step is as a float, when its lowest bits become the exponent."""
        return self.exp2(self["step"][x])

    def _drawn_extreme(self, x: Array, y: Array, least: bool) -> Array:
        real = (np.minimum if least else np.maximum)(self["real"][x], self["real"][y])
        if not self.by_key:
            first = np.arange(self.count, self.count + x.size, dtype=np.uint64)
            # A variable of its own, as is any number of times it.
            with self._told():
                factor = self.factors.common(self["factor"][x], self["factor"][y])[0]
            return self._drawn(_FRESH, real, first, factor=factor)
        compared = self.pair.p.mul(self._compared(x, least), self._compared(y, least))
        made = self.drawn_from(1 + least, (x, y), real, compared)
        self["compared"][made], self["least"][made] = compared, least
        return made

    def _compared(self, x: Array, least: bool) -> Array:
        already = (self["compared"][x] != 0) & (self["least"][x] == least)
        return np.where(
            already,
            self["compared"][x],
            self.digest(x) % np.uint64(self.pair.p.p - 1) + np.uint64(1),
        )

    def function(self, name: str, *given: Array) -> Array:
        """A function of which nothing is known but that it is one."""
        if any(self.infinite(x).any() for x in given):
            raise NotKnown(f"{name} of an infinite number")
        number = int.from_bytes(name.encode()[:8].ljust(8), "little")
        with np.errstate(all="ignore"):
            real = REAL[name](*(self["real"][x] for x in given))
        return self.drawn_from(number, given, real, *map(self.digest, given))


def _few_bits(x: Array) -> Array:
    """Floats of half as many bits as a double: their products are exact."""
    large = np.abs(x) < 1e100
    small = (np.abs(x) > 1e-100) | (x == 0)
    return np.asarray(large & small & (x.astype(np.float32) == x) | (x == 0))
