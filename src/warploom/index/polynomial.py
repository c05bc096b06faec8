"""Index expressions in normal form: an expression comes in, a polynomial over atoms goes out.

An atom is a variable, a floor quotient, or an operation that is no arithmetic (a bit operation, a
select, a comparison), taken as it is. A remainder is written with its quotient, x % d = x - d·(x //
d), so that all that is known of either is known of both. Two expressions with one polynomial are
equal wherever both are defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias, assert_never

from warploom.index.ir import Binary, Const, Expr, Select, Unary, Var, children, walk
from warploom.index.ranges import Range, Ranges
from warploom.index.terms import Polynomial, Terms, terms_range

MAX_TERMS = 200  # what is longer is kept as one atom: nothing is proved of it anyway


ZERO, ONE = Polynomial({}), Polynomial({(): 1})


def constant(value: int) -> Polynomial:
    return Polynomial({(): value}) if value else ZERO


def tightened(polynomial: Polynomial) -> Polynomial:
    """The same polynomial as far as `>= 0` goes: divided by what divides all but the constant."""
    common = 0
    for monomial, factor in polynomial.terms.items():
        if monomial:
            common = gcd(common, factor)
            if common == 1:
                return polynomial
    if common == 0:
        return polynomial
    return Polynomial(
        {m: value for m, f in polynomial.terms.items() if (value := f // common) or m}
    )


@dataclass(frozen=True, slots=True)
class Quotient:
    """An atom: the floor of `value / divisor`."""

    value: Polynomial
    divisor: Polynomial


Atom: TypeAlias = "Expr | Quotient"


class Normal:
    """Polynomials of expressions over variables with known bounds; each node is looked at once."""

    def __init__(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        self.ranges = Ranges(bounds)
        self.atoms: list[Atom] = []
        self.bounds: list[Range] = []
        self._numbers: dict[Atom, int] = {}
        self._known: dict[Expr, Polynomial] = {}

    def of(self, expr: Expr) -> Polynomial:
        known = self._known
        for part in walk(expr, skip=known):
            made = self._of_part(part, [known[child] for child in children(part)])
            known[part] = made if len(made.terms) <= MAX_TERMS else self._opaque(part)
        return known[expr]

    def range_of(self, polynomial: Polynomial) -> Range:
        return terms_range(polynomial.terms, self.bounds)

    def number(self, atom: Atom, bounds: Range) -> int:
        """The number of an atom, which is new if it was never seen."""
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
            self.bounds.append(bounds)
        return self._numbers[atom]

    def _opaque(self, expr: Expr) -> Polynomial:
        low, high = bounds = self.ranges.of(expr)
        if low == high:
            return constant(low)
        return Polynomial({(self.number(expr, bounds),): 1})

    def _of_part(self, part: Expr, parts: list[Polynomial]) -> Polynomial:
        match part:
            case Const(value):
                return constant(value)
            case Var():
                return self._opaque(part)
            case Unary("-", _):
                return parts[0].scaled(-1)
            case Unary() | Select():
                return self._opaque(part)
            case Binary():
                return self._binary(part, *parts)
            case _:
                assert_never(part)

    def _binary(self, part: Binary, left: Polynomial, right: Polynomial) -> Polynomial:
        count = right.constant if right.is_constant else -1
        match part.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*" if len(left.terms) * len(right.terms) <= MAX_TERMS:
                return left * right
            case "//":
                return self.floor(left, right)
            case "%":
                return left - right * self.floor(left, right)
            case "<<" if 0 <= count < 63:
                return left.scaled(1 << count)
            case ">>" if 0 <= count < 63:
                return self.floor(left, constant(1 << count))
            case "&" if count >= 0 and count & (count + 1) == 0:
                return left - self.floor(left, constant(count + 1)).scaled(count + 1)
            case "|" | "^" if count >= 0:
                return self._low_bits(part, left, count)
            case _:
                return self._opaque(part)

    def _low_bits(self, part: Binary, value: Polynomial, mask: int) -> Polynomial:
        """x | c and x ^ c change no bits above those of c: they are known up to a small number."""
        if mask == 0:
            return value
        size = 1 << mask.bit_length()
        return self.floor(value, constant(size)).scaled(size) + self._opaque(part % size)

    # -- quotients

    def floor(self, value: Polynomial, divisor: Polynomial) -> Polynomial:
        """value // divisor: multiples of the divisor are taken out, the rest is an atom."""
        if divisor.is_constant:
            by = divisor.constant
            if by < 0:
                value, by = value.scaled(-1), -by
            return self._by_constant(value, by) if by else self._atom(value, divisor)
        if len(divisor.terms) == 1:
            ((monomial, factor),) = divisor.terms.items()
            if factor == 1:
                whole = value.quotient(monomial)
                rest = value - whole * divisor
                return whole + (self._atom(rest, divisor) if rest.terms else ZERO)
        return self._atom(value, divisor)

    def _by_constant(self, value: Polynomial, by: int) -> Polynomial:
        whole: Terms = {}
        rest: Terms = {}
        for monomial, factor in value.terms.items():
            # The constant is left between 0 and by - 1, other factors keep their sign.
            times = factor // by if not monomial or factor > 0 else -(-factor // by)
            if times:
                whole[monomial] = times
            if factor - times * by:
                rest[monomial] = factor - times * by
        return Polynomial(whole) + self._small_quotient(Polynomial(rest), by)

    def _small_quotient(self, value: Polynomial, by: int) -> Polynomial:
        common = by
        for monomial, factor in value.terms.items():
            if monomial:
                common = gcd(common, factor)
        if common > 1:  # (g·y + c) // (g·e)  →  (y + c // g) // e
            value = Polynomial({m: each for m, f in value.terms.items() if (each := f // common)})
            by //= common
        low, high = self.range_of(value)
        if low // by == high // by:
            return constant(low // by)
        inner = self._nested(value)
        if inner is not None:  # (x // a + c) // b  →  (x + a·c) // (a·b)
            old, added = inner
            return self._by_constant(old.value.plus(old.divisor, added), by * old.divisor.constant)
        return self._atom(value, constant(by))

    def _nested(self, value: Polynomial) -> tuple[Quotient, int] | None:
        inner = [monomial for monomial in value.terms if monomial]
        if len(inner) != 1 or len(inner[0]) != 1 or value.terms[inner[0]] != 1:
            return None
        atom = self.atoms[inner[0][0]]
        if not isinstance(atom, Quotient) or not atom.divisor.is_constant:
            return None
        return (atom, value.constant) if atom.divisor.constant > 0 else None

    def _atom(self, value: Polynomial, divisor: Polynomial) -> Polynomial:
        low, high = _quotient_range(self.range_of(value), self.range_of(divisor))
        if low == high:
            return constant(low)
        return Polynomial({(self.number(Quotient(value, divisor), Range(low, high)),): 1})

    # -- what an atom is made of

    def parts(self, atom: int) -> Iterator[Polynomial]:
        """The polynomials that a quotient is made of; nothing for another atom."""
        node = self.atoms[atom]
        if isinstance(node, Quotient):
            yield node.value
            yield node.divisor


def _quotient_range(value: Range, divisor: Range) -> Range:
    if divisor.low <= 0 <= divisor.high:  # it may be 1 or -1, but is not 0
        far = max(abs(each) for each in value)
        return Range(-far, far)
    corners = [x // y for x in value for y in divisor]
    return Range(min(corners), max(corners))
