"""Values as normal forms: polynomials over atoms, modulo two to the width the machine computes in.

Comes in: the ring operations, extensions and truncations that instructions perform. Goes out:
`Form`s, equal exactly when they are the same tuple. An atom is a symbol (a thread index, a
parameter, a loop counter) or a function of forms that the ring does not express.

Each atom says three things about lanes: `known`, whether its value in another lane follows from
its form; `moves`, whether that value differs from one's own; `uniform`, whether all lanes of a
warp that run together hold the same value. An atom with `bounds` stands for that integer itself,
so it may appear in forms of any width; one without stands for its low bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Monomial = tuple[int, ...]
LARGEST = 48  # terms; a product with more becomes one opaque atom
HIGHEST = 8  # factors in a term, likewise


@dataclass(frozen=True, slots=True)
class Form:
    """A sum of `coefficient * product of atoms`, modulo 2**width; sorted, without zeros."""

    width: int
    terms: tuple[tuple[Monomial, int], ...]

    @property
    def constant(self) -> int:
        return self.terms[0][1] if self.terms and not self.terms[0][0] else 0

    @property
    def is_constant(self) -> bool:
        return not self.terms or (len(self.terms) == 1 and not self.terms[0][0])

    def signed(self, coefficient: int) -> int:
        return coefficient - (1 << self.width) if coefficient >> (self.width - 1) else coefficient

    @property
    def varying(self) -> tuple[tuple[Monomial, int], ...]:
        """The terms without the constant."""
        return self.terms[1:] if self.terms and not self.terms[0][0] else self.terms


@dataclass(frozen=True, slots=True)
class Atom:
    index: int
    op: str
    args: tuple[Form | int | str, ...]
    width: int
    known: bool
    moves: bool
    uniform: bool
    bounds: tuple[int, int] | None
    made_in: frozenset[int]  # blocks whose every run makes the value anew
    depth: int

    @property
    def forms(self) -> tuple[Form, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, Form))


def make(width: int, terms: dict[Monomial, int]) -> Form:
    mask = (1 << width) - 1
    kept = [(m, c & mask) for m, c in terms.items() if c & mask]
    return Form(width, tuple(sorted(kept)))


def constant(width: int, value: int) -> Form:
    return make(width, {(): value})


def add(a: Form, b: Form, factor: int = 1) -> Form:
    """a + factor*b"""
    terms = dict(a.terms)
    for monomial, coefficient in b.terms:
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient
    return make(a.width, terms)


def scale(a: Form, factor: int) -> Form:
    return make(a.width, {m: c * factor for m, c in a.terms})


def without_constant(a: Form) -> Form:
    return Form(a.width, a.varying)


class Pool:
    """All atoms of one kernel, and the operations that may make new ones."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._by_key: dict[tuple[object, ...], Atom] = {}
        self._moved: dict[tuple[Form, int], Form] = {}
        self._moved_atoms: dict[tuple[int, int], Form] = {}
        self._flat: dict[Form, Form] = {}
        self._flat_atoms: dict[tuple[int, int], Form] = {}

    # -- atoms --------------------------------------------------------------------------------

    def symbol(
        self, name: str, width: int, *, known: bool = True, moves: bool = False,
        uniform: bool = True, bounds: tuple[int, int] | None = None, block: int | None = None,
    ) -> Form:  # fmt: skip
        made_in = frozenset() if block is None else frozenset({block})
        atom = self._intern(name, (), width, known, moves, uniform, bounds, made_in, 0)
        return Form(width, (((atom.index,), 1),))

    def unknown(self, name: str, width: int, block: int | None = None) -> Form:
        """A value that differs from lane to lane in a way we do not know."""
        return self.symbol(name, width, known=False, moves=True, uniform=False, block=block)

    def function(
        self, op: str, width: int, args: tuple[Form | int | str, ...],
        bounds: tuple[int, int] | None = None,
    ) -> Form:  # fmt: skip
        """A pure function: what it gives in another lane follows from its arguments there."""
        inner = [self.atoms[i] for arg in args if isinstance(arg, Form) for i in atoms_of(arg)]
        atom = self._intern(
            op, args, width,
            all(a.known for a in inner), any(a.moves for a in inner),
            all(a.uniform for a in inner), bounds,
            frozenset[int]().union(*(a.made_in for a in inner)),
            1 + max((a.depth for a in inner), default=0),
        )  # fmt: skip
        return Form(width, (((atom.index,), 1),))

    def _intern(
        self, op: str, args: tuple[Form | int | str, ...], width: int, known: bool, moves: bool,
        uniform: bool, bounds: tuple[int, int] | None, made_in: frozenset[int], depth: int,
    ) -> Atom:  # fmt: skip
        key = (op, args, width, known, moves, uniform, bounds, made_in)
        atom = self._by_key.get(key)
        if atom is None:
            index = len(self.atoms)
            atom = Atom(index, op, args, width, known, moves, uniform, bounds, made_in, depth)
            self.atoms.append(atom)
            self._by_key[key] = atom
        return atom

    def single(self, form: Form) -> Atom | None:
        """The atom a form consists of, if it is just that."""
        if len(form.terms) == 1 and len(form.terms[0][0]) == 1 and form.terms[0][1] == 1:
            return self.atoms[form.terms[0][0][0]]
        return None

    # -- facts about lanes --------------------------------------------------------------------

    def known(self, form: Form) -> bool:
        return all(self.atoms[i].known for i in atoms_of(form))

    def moves(self, form: Form) -> bool:
        return any(self.atoms[i].moves for i in atoms_of(form))

    def uniform(self, form: Form) -> bool:
        return all(self.atoms[i].uniform for i in atoms_of(form))

    def made_in(self, form: Form) -> frozenset[int]:
        return frozenset[int]().union(*(self.atoms[i].made_in for i in atoms_of(form)))

    def depth(self, form: Form) -> int:
        return max((self.atoms[i].depth for i in atoms_of(form)), default=0)

    # -- ring ---------------------------------------------------------------------------------

    def multiply(self, a: Form, b: Form) -> Form:
        if len(a.terms) * len(b.terms) > LARGEST or _degree(a) + _degree(b) > HIGHEST:
            return self.function("mul", a.width, (a, b) if a.terms <= b.terms else (b, a))
        terms: dict[Monomial, int] = {}
        for m, c in a.terms:
            for n, d in b.terms:
                # Predicates live modulo 2, where a product of an atom with itself is the atom.
                product = tuple(sorted({*m, *n} if a.width == 1 else (*m, *n)))
                terms[product] = terms.get(product, 0) + c * d
        return make(a.width, terms)

    def bounds(self, form: Form) -> tuple[int, int] | None:
        """The integer range of the polynomial over its atoms, coefficients read as signed."""
        low = high = 0
        for monomial, coefficient in form.terms:
            ends = (1, 1)
            for index in monomial:
                atom = self.atoms[index].bounds
                if atom is None:
                    return None
                corners = [x * y for x in ends for y in atom]
                ends = (min(corners), max(corners))
            factor = form.signed(coefficient)
            low += min(factor * ends[0], factor * ends[1])
            high += max(factor * ends[0], factor * ends[1])
        return low, high

    # -- widths -------------------------------------------------------------------------------

    def extend(self, form: Form, width: int, signed: bool) -> Form:
        """The value in a wider register, by sign or by zeros; the wrap of the narrow one stays."""
        if width <= form.width:
            return self.truncate(form, width)
        if form.is_constant:
            value = form.constant
            return constant(width, form.signed(value) if signed else value)
        low, high = (-(1 << form.width - 1), (1 << form.width - 1) - 1)
        if not signed:
            low, high = 0, (1 << form.width) - 1
        found = self.bounds(form)
        if found is not None and low <= found[0] and found[1] <= high:
            return make(width, {m: form.signed(c) for m, c in form.terms})
        return self.function("sext" if signed else "zext", width, (form,), (low, high))

    def truncate(self, form: Form, width: int) -> Form:
        """The low bits: a ring homomorphism, so it goes into the polynomial."""
        if width == form.width:
            return form
        if not any(self._inner(i, width) for i in atoms_of(form)):
            return make(width, dict(form.terms))
        total = constant(width, 0)
        for monomial, coefficient in form.terms:
            product = constant(width, coefficient)
            for index in monomial:
                inner = self._inner(index, width)
                factor = Form(width, (((index,), 1),))
                if inner is not None:
                    factor = self.truncate(inner, width)
                product = self.multiply(product, factor)
            total = add(total, product)
        return total

    def _inner(self, index: int, width: int) -> Form | None:
        atom = self.atoms[index]
        if atom.op in ("sext", "zext"):
            inner = atom.args[0]
            if isinstance(inner, Form) and inner.width >= width:
                return inner
        return None

    # -- other lanes --------------------------------------------------------------------------

    def substitute(
        self, form: Form, change: Callable[[Atom], Form | None],
        done: dict[tuple[int, int], Form] | None = None,
    ) -> Form:  # fmt: skip
        """Each atom replaced by `change(atom)` where that is not None, arguments included."""
        done = {} if done is None else done  # atoms share their parts: each is changed once
        total = constant(form.width, 0)
        for monomial, coefficient in form.terms:
            product = constant(form.width, coefficient)
            for index in monomial:
                key = (index, form.width)
                if key not in done:
                    done[key] = self._changed(self.atoms[index], form.width, change, done)
                product = self.multiply(product, done[key])
            total = add(total, product)
        return total

    def _changed(
        self, atom: Atom, width: int, change: Callable[[Atom], Form | None],
        done: dict[tuple[int, int], Form],
    ) -> Form:  # fmt: skip
        new = change(atom)
        if new is not None:
            return make(width, {m: new.signed(c) for m, c in new.terms})
        same = Form(width, (((atom.index,), 1),))
        if not atom.forms:
            return same
        args = tuple(
            self.substitute(a, change, done) if isinstance(a, Form) else a for a in atom.args
        )
        if args == atom.args:
            return same
        made = self._remade(atom, args)
        return make(width, {m: made.signed(c) for m, c in made.terms})

    def _remade(self, atom: Atom, args: tuple[Form | int | str, ...]) -> Form:
        """The same function of other arguments."""
        if atom.op in ("sext", "zext") and isinstance(args[0], Form):
            return self.extend(args[0], atom.width, atom.op == "sext")
        return self.function(atom.op, atom.width, args, atom.bounds)

    def moved(self, form: Form, lanes: int) -> Form:
        """What the lane `lanes` further holds where we hold `form`; the caller checks `known`.

        Only thread index x and the lane number move: a lane out of the warp or in another row
        of the block is never read from.
        """
        if lanes == 0 or not self.moves(form):
            return form
        key = (form, lanes)
        if key not in self._moved:
            self._moved[key] = self.substitute(form, lambda atom: self._step(atom, lanes))
        return self._moved[key]

    def _step(self, atom: Atom, lanes: int) -> Form | None:
        if not atom.moves:
            return Form(atom.width, (((atom.index,), 1),))
        if not atom.args:
            return make(64, {(atom.index,): 1, (): lanes})
        key = (atom.index, lanes)
        if key not in self._moved_atoms:
            args = tuple(self.moved(a, lanes) if isinstance(a, Form) else a for a in atom.args)
            self._moved_atoms[key] = self._remade(atom, args)
        return self._moved_atoms[key]

    def flat(self, form: Form) -> Form:
        """The form as if no narrow value ever wrapped: extensions are opened.

        Never a proof; it only says which distance is worth proving.
        """
        if form not in self._flat:
            self._flat[form] = self.substitute(form, self._opened, self._flat_atoms)
        return self._flat[form]

    def _opened(self, atom: Atom) -> Form | None:
        if atom.op in ("sext", "zext") and isinstance(atom.args[0], Form):
            inner = atom.args[0]
            wide = make(atom.width, {m: inner.signed(c) for m, c in inner.terms})
            return self.substitute(wide, self._opened, self._flat_atoms)
        return None


def atoms_of(form: Form) -> Iterable[int]:
    return {index for monomial, _ in form.terms for index in monomial}


def _degree(form: Form) -> int:
    return max((len(monomial) for monomial, _ in form.terms), default=0)
