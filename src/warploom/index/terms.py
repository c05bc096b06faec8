"""Sums of terms, each a coefficient times a monomial of atoms: one container, three rings.

`Polynomial` has whole coefficients, `Ratios` has fractions and powers that may be negative, and
`Modular` computes modulo two to a width. A sum is never changed once it is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from warploom.index.ir import Expr
from warploom.index.ranges import Range
from warploom.index.show import show

# The numbers of the atoms that are multiplied, ascending; the empty one is the constant term.
Monomial: TypeAlias = tuple[int, ...]
Terms: TypeAlias = dict[Monomial, int]
# Powers of atoms, in the order of their texts; an atom is a variable or what is no sum or product.
Powers: TypeAlias = tuple[tuple[Expr, int], ...]

M = TypeVar("M", Monomial, Powers)
C = TypeVar("C", int, Fraction)


class Sum(ABC, Generic[M, C]):
    """What the rings share; each says which terms are kept and how monomials are multiplied."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[M, C]) -> None:
        self.terms: dict[M, C] = terms
        self._hash: int | None = None

    @abstractmethod
    def of(self, terms: dict[M, C]) -> Self:
        """The sum of these terms in the same ring, without those that are zero."""

    @abstractmethod
    def merged(self, left: M, right: M) -> M:
        """The product of two monomials."""

    def key(self) -> object:
        """What is equal for equal sums, and can be hashed."""
        return frozenset(self.terms.items())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.key())
        return self._hash

    def __add__(self, other: Self) -> Self:
        return self.plus(other, 1)

    def __sub__(self, other: Self) -> Self:
        return self.plus(other, -1)

    def plus(self, other: Self, times: int) -> Self:
        """self + times · other"""
        terms: dict[M, C] = dict(self.terms)
        for monomial, factor in other.terms.items():
            added = factor * times
            terms[monomial] = terms[monomial] + added if monomial in terms else added
        return self.of(terms)

    def __mul__(self, other: Self) -> Self:
        terms: dict[M, C] = {}
        for left, factor in self.terms.items():
            for right, times in other.terms.items():
                monomial, product = self.merged(left, right), factor * times
                terms[monomial] = terms[monomial] + product if monomial in terms else product
        return self.of(terms)

    def scaled(self, times: int) -> Self:
        return self.of({monomial: factor * times for monomial, factor in self.terms.items()})

    @property
    def constant(self) -> C | int:
        found: C | int = self.terms.get((), 0)
        return found

    @property
    def is_constant(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and () in self.terms)


class Polynomial(Sum[Monomial, int]):
    """A sum over the integers."""

    __slots__ = ()

    def of(self, terms: Terms) -> Polynomial:
        if all(terms.values()):
            return Polynomial(terms)
        return Polynomial({monomial: factor for monomial, factor in terms.items() if factor})

    def merged(self, left: Monomial, right: Monomial) -> Monomial:
        if not left or not right:
            return left or right
        return tuple(sorted(left + right))

    def atoms(self) -> frozenset[int]:
        return frozenset(atom for monomial in self.terms for atom in monomial)

    def quotient(self, by: Monomial) -> Polynomial:
        """What the terms that contain a monomial are its multiple by; the others are left out."""
        terms: Terms = {}
        for monomial, factor in self.terms.items():
            rest = _without(monomial, by)
            if rest is not None:
                terms[rest] = factor
        return Polynomial(terms)

    def with_atom(self, atom: int, value: Polynomial) -> Polynomial:
        """The polynomial with another one put in the place of an atom."""
        result = Polynomial({m: f for m, f in self.terms.items() if atom not in m})
        power, rest = value, self.quotient((atom,))
        while rest.terms:
            plain = Polynomial({m: f for m, f in rest.terms.items() if atom not in m})
            result = result + plain * power
            power, rest = power * value, rest.quotient((atom,))
        return result


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """The monomial divided by a part of it; None if it is none."""
    if len(part) == 1:  # the common case
        if part[0] not in monomial:
            return None
        at = monomial.index(part[0])
        return monomial[:at] + monomial[at + 1 :]
    rest = list(monomial)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


class Ratios(Sum[Powers, Fraction]):
    """A sum over the rationals, of products of powers, which may be negative."""

    __slots__ = ()

    def of(self, terms: dict[Powers, Fraction]) -> Ratios:
        return Ratios({monomial: factor for monomial, factor in terms.items() if factor})

    def merged(self, left: Powers, right: Powers) -> Powers:
        powers = dict(left)
        for atom, power in right:
            powers[atom] = powers.get(atom, 0) + power
        kept = ((a, p) for a, p in powers.items() if p)
        return tuple(sorted(kept, key=lambda each: show(each[0])))


class Modular(Sum[Monomial, int]):
    """A sum modulo 2**width; its terms are sorted, and no coefficient is negative."""

    __slots__ = ("width",)

    def __init__(self, width: int, terms: Terms) -> None:
        self.width, self.terms, self._hash = width, terms, None

    def of(self, terms: Terms) -> Modular:
        return modular(self.width, terms)

    def merged(self, left: Monomial, right: Monomial) -> Monomial:
        # Predicates live modulo 2, where a product of an atom with itself is the atom.
        return tuple(sorted({*left, *right} if self.width == 1 else (*left, *right)))

    def key(self) -> tuple[int, tuple[tuple[Monomial, int], ...]]:
        return self.width, tuple(self.terms.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modular) and (
            self.width == other.width and self.terms == other.terms
        )

    __hash__ = Sum.__hash__

    def __repr__(self) -> str:
        return f"Modular{self.key()}"

    def atoms(self) -> set[int]:
        return {atom for monomial in self.terms for atom in monomial}

    def signed(self, coefficient: int) -> int:
        return coefficient - (1 << self.width) if coefficient >> (self.width - 1) else coefficient

    @property
    def signed_terms(self) -> Terms:
        return {monomial: self.signed(factor) for monomial, factor in self.terms.items()}

    @property
    def without_constant(self) -> Modular:
        return Modular(self.width, {m: f for m, f in self.terms.items() if m})


def modular(width: int, terms: Terms) -> Modular:
    """The sum of these terms modulo 2**width."""
    mask = (1 << width) - 1
    kept = {m: c & mask for m, c in terms.items() if c & mask}
    return Modular(width, dict(sorted(kept.items())) if len(kept) > 1 else kept)


class Bounded(Protocol):
    """The bounds of each atom."""

    def __getitem__(self, atom: int, /) -> tuple[int, int]: ...


def terms_range(terms: Terms, bounds: Bounded) -> Range:
    """Between which bounds a sum of terms lies, given those of each atom."""
    low = high = 0
    for monomial, factor in terms.items():
        least = most = factor
        for atom in monomial:
            below, above = bounds[atom]
            if least >= 0 and below >= 0:
                least, most = least * below, most * above
            else:
                corners = (least * below, least * above, most * below, most * above)
                least, most = min(corners), max(corners)
        low += least
        high += most
    return Range(low, high)
