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

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import Span
from warploom.ptx.field.digits import mixed
from warploom.ptx.field.prime import Modulus, Primes

Array = npt.NDArray[Any]
FIRST_ROOM = 1 << 14
_FRESH = 0
MOST = 1 << 25  # elements of a run, some eighty bytes each
COLUMNS = {
    "a": "u8", "b": "u8",  # modulo p, and modulo q
    "constant": "f8",  # the float that it is, ±inf too; NaN of what is none
    "exponential": "?",  # it has no number modulo p
    "compared": "u8",  # of an extremum: the product of what was compared; else 0
    "least": "?",  # it is a minimum
    # Of numerator and denominator the degree, and log2 of the sum of all integer coefficients.
    "degree": "f8", "degree_below": "f8", "size": "f8", "size_below": "f8",
    "terms": "f8",  # how many exponentials there may be in it
    "narrow": "f8",  # its degree in what was drawn from few values
    "real": "f8",  # its value where inputs are certain numbers; NaN if these are not given
}  # fmt: skip

REAL: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "lg2": np.log2,
}  # fmt: skip
BOUNDS = ("degree", "degree_below", "size", "size_below", "narrow")


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
    scales: tuple[float, float] = (np.inf, -np.inf)  # of exponents: powers of two in denominators
    by_key: bool = False  # extrema of the same are alike; else each is drawn for itself
    functions: int = 0  # values of functions that were drawn by their arguments
    argument: float = 0.0  # the highest degree of such an argument
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
        return np.arange(first, end)

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
            1, constant=value, real=value, size=float(abs(above).bit_length()),
            size_below=float(below.bit_length() - 1),
            **{name: above * pow(below, -1, m.p) % m.p for name, m in self.moduli},
        )  # fmt: skip
        self._constants[value] = int(made[0])
        return int(made[0])

    def drawn_from(
        self, name: int, given: tuple[Array, ...], real: Array, *digests: Array
    ) -> Array:
        """Values of a function that is drawn: alike for what has the same digests."""
        self.functions += digests[0].size
        degrees = [(self["degree"][x] + self["degree_below"][x]).max(initial=0) for x in given]
        self.argument = max(self.argument, *map(float, degrees))
        return self._drawn(name, real, *digests)

    def _drawn(self, name: int, real: Array, *digests: Array) -> Array:
        total = np.full(digests[0].shape, self.key ^ name, np.uint64)
        for each in digests:
            total = mixed(total ^ each)
        a, b = (
            mixed(total ^ np.uint64(n)) % np.uint64(m.p) for n, (_, m) in enumerate(self.moduli)
        )
        return self._new(total.size, a=a, b=b, degree=1.0, real=real)

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
        n, d, s, t = (
            [self[name][each] for each in (x, y)]
            for name in ("degree", "degree_below", "size", "size_below")
        )
        common = {"terms": self["terms"][x] + self["terms"][y]}
        narrow = [self["narrow"][each] for each in (x, y)]
        if op == "mul":
            return {
                "degree": n[0] + n[1], "degree_below": d[0] + d[1], "size": s[0] + s[1],
                "size_below": t[0] + t[1], "narrow": narrow[0] + narrow[1], **common,
            }  # fmt: skip
        # Where the denominators are numbers, powers of two, the larger is that of both.
        plain = (d[0] == 0) & (d[1] == 0)
        below = np.where(plain, np.maximum(t[0], t[1]), t[0] + t[1])
        scaled = [s[k] + below - t[k] for k in (0, 1)]
        return {
            "degree": np.maximum(n[0] + d[1], n[1] + d[0]), "degree_below": d[0] + d[1],
            "size": np.maximum(*scaled) + 1, "size_below": below,
            "narrow": np.maximum(*narrow), **common,
        }  # fmt: skip

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
        return self._new(
            x.size, **made, real=real, exponential=self["exponential"][x],
            degree=self["degree_below"][x],
            degree_below=self["degree"][x], size=self["size_below"][x],
            size_below=self["size"][x], terms=self["terms"][x], narrow=self["narrow"][x],
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
        rows, columns = (self["terms"][each].sum(axis=-1) for each in (x, y))
        terms = rows[..., :, None] + columns[..., None, :]
        bounds = self._product_bounds(x, y, before)
        with np.errstate(all="ignore"):
            real = self["real"][x] @ np.swapaxes(self["real"][y], -1, -2) + self["real"][before]
        return self._new(
            before.size, **made, real=real.reshape(-1),
            **{name: each.reshape(-1) for name, each in bounds.items()},
            terms=(terms + self["terms"][before]).reshape(-1),
            exponential=(exponential | self["exponential"][before]).reshape(-1),
        ).reshape(before.shape)  # fmt: skip

    def _product_bounds(self, x: Array, y: Array, before: Array) -> dict[str, Array]:
        """As of a sum in which all products are like the largest."""
        each = {name: self._sum_bound(name, x, y) for name in BOUNDS}
        old = {name: self[name][before] for name in BOUNDS}
        depth = x.shape[-1]
        # A common denominator: of quotients all of them, of fractions over powers of two the last.
        quotients = bool((each["degree_below"] > 0).any() or (old["degree_below"] > 0).any())
        below = depth * each["degree_below"] + old["degree_below"]
        shared = np.maximum(each["size_below"], old["size_below"])
        if quotients:
            shared = depth * each["size_below"] + old["size_below"]
        size = np.maximum(
            each["size"] + np.log2(depth) + shared - each["size_below"],
            old["size"] + shared - old["size_below"],
        )
        return {
            "degree": np.maximum(each["degree"], old["degree"]) + below, "degree_below": below,
            "size": size + 1, "size_below": shared,
            "narrow": np.maximum(each["narrow"], old["narrow"]),
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
        if self["exponential"][x].any():
            raise NotKnown("an exponential of an exponential")
        out = np.full(x.size, -1)
        if known.any():
            out[known] = self.constants(np.exp2(u[known]))
        rest = np.flatnonzero(~known)
        z = x[rest]
        if (self["degree_below"][z] > 0).any():
            raise NotKnown("an exponential of a quotient")
        if (self["degree"][z] > 1).any():
            raise NonLinear("an exponential of a product of inputs")
        if z.size:
            scales = self["size_below"][z]
            self.scales = min(self.scales[0], scales.min()), max(self.scales[1], scales.max())
        with np.errstate(all="ignore"):
            real = np.exp2(self["real"][z])
        out[rest] = self._new(
            rest.size, b=self.pair.exp(self["a"][z]), real=real, exponential=True, terms=1.0,
            degree=np.exp2(np.minimum(self["size"][z], 1000.0)), narrow=self["narrow"][z],
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

    def _drawn_extreme(self, x: Array, y: Array, least: bool) -> Array:
        real = (np.minimum if least else np.maximum)(self["real"][x], self["real"][y])
        if not self.by_key:
            first = np.arange(self.count, self.count + x.size, dtype=np.uint64)
            return self._drawn(_FRESH, real, first)
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
