"""Values as normal forms: polynomials over atoms, modulo two to the width the machine computes in.

Comes in: the extensions, truncations and products that instructions perform. Goes out: `Form`s,
equal exactly when they have the same terms. An atom is a symbol (a thread index, a
parameter, a loop counter) or a function of forms that the ring does not express.

Each atom says three things about lanes: `known`, whether its value in another lane follows from
its form; `moves`, whether that value differs from one's own; `uniform`, whether all lanes of a
warp that run together hold the same value. An atom with `bounds` stands for that integer itself,
so it may appear in forms of any width; one without stands for its low bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from warploom.index.ranges import Range
from warploom.index.terms import Modular, modular, terms_range

Form: TypeAlias = Modular
LARGEST = 48  # terms; a product with more becomes one opaque atom
HIGHEST = 8  # factors in a term, likewise


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


def constant(width: int, value: int) -> Form:
    return modular(width, {(): value})


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
        return Form(width, {(atom.index,): 1})

    def unknown(self, name: str, width: int, block: int | None = None) -> Form:
        """A value that differs from lane to lane in a way we do not know."""
        return self.symbol(name, width, known=False, moves=True, uniform=False, block=block)

    def function(
        self, op: str, width: int, args: tuple[Form | int | str, ...],
        bounds: tuple[int, int] | None = None,
    ) -> Form:  # fmt: skip
        """A pure function: what it gives in another lane follows from its arguments there."""
        inner = [self.atoms[i] for arg in args if isinstance(arg, Form) for i in arg.atoms()]
        atom = self._intern(
            op, args, width,
            all(a.known for a in inner), any(a.moves for a in inner),
            all(a.uniform for a in inner), bounds,
            frozenset[int]().union(*(a.made_in for a in inner)),
            1 + max((a.depth for a in inner), default=0),
        )  # fmt: skip
        return Form(width, {(atom.index,): 1})

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
        if len(form.terms) != 1:
            return None
        ((monomial, coefficient),) = form.terms.items()
        return self.atoms[monomial[0]] if len(monomial) == 1 and coefficient == 1 else None

    # -- facts about lanes --------------------------------------------------------------------

    def known(self, form: Form) -> bool:
        return all(self.atoms[i].known for i in form.atoms())

    def moves(self, form: Form) -> bool:
        return any(self.atoms[i].moves for i in form.atoms())

    def uniform(self, form: Form) -> bool:
        return all(self.atoms[i].uniform for i in form.atoms())

    def made_in(self, form: Form) -> frozenset[int]:
        return frozenset[int]().union(*(self.atoms[i].made_in for i in form.atoms()))

    def depth(self, form: Form) -> int:
        return max((self.atoms[i].depth for i in form.atoms()), default=0)

    # -- ring ---------------------------------------------------------------------------------

    def multiply(self, a: Form, b: Form) -> Form:
        if len(a.terms) * len(b.terms) > LARGEST or _degree(a) + _degree(b) > HIGHEST:
            return self.function("mul", a.width, (a, b) if a.key() <= b.key() else (b, a))
        return a * b

    def composed(self, form: Form, width: int, factor: Callable[[int], Form]) -> Form:
        """The form with another one put in the place of each of its atoms."""
        total = constant(width, 0)
        for monomial, coefficient in form.terms.items():
            product = constant(width, coefficient)
            for index in monomial:
                product = self.multiply(product, factor(index))
            total = total + product
        return total

    def bounds(self, form: Form) -> Range | None:
        """The integer range of the polynomial over its atoms, coefficients read as signed."""
        known: dict[int, tuple[int, int]] = {}
        for index in form.atoms():
            bounds = self.atoms[index].bounds
            if bounds is None:
                return None
            known[index] = bounds
        return terms_range(form.signed_terms, known)

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
            return modular(width, form.signed_terms)
        return self.function("sext" if signed else "zext", width, (form,), (low, high))

    def truncate(self, form: Form, width: int) -> Form:
        """The low bits: a ring homomorphism, so it goes into the polynomial."""
        if width == form.width:
            return form
        if not any(self._inner(i, width) for i in form.atoms()):
            return modular(width, form.terms)

        def short(index: int) -> Form:
            inner = self._inner(index, width)
            return Form(width, {(index,): 1}) if inner is None else self.truncate(inner, width)

        return self.composed(form, width, short)

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

        # Before they are put together: forms are as deep as a kernel is long, the stack is not.
        for index in chain.from_iterable(form.terms):
            key = (index, form.width)
            if key not in done:
                done[key] = self._changed(self.atoms[index], form.width, change, done)
        return self.composed(form, form.width, lambda index: done[index, form.width])

    def _changed(
        self, atom: Atom, width: int, change: Callable[[Atom], Form | None],
        done: dict[tuple[int, int], Form],
    ) -> Form:  # fmt: skip
        new = change(atom)
        if new is not None:
            return modular(width, new.signed_terms)
        same = Form(width, {(atom.index,): 1})
        if not atom.forms:
            return same
        args = tuple(
            self.substitute(a, change, done) if isinstance(a, Form) else a for a in atom.args
        )
        if args == atom.args:
            return same
        made = self._remade(atom, args)
        return modular(width, made.signed_terms)

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
            return Form(atom.width, {(atom.index,): 1})
        if not atom.args:
            return modular(64, {(atom.index,): 1, (): lanes})
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
            wide = modular(atom.width, inner.signed_terms)
            return self.substitute(wide, self._opened, self._flat_atoms)
        return None


def _degree(form: Form) -> int:
    return max(map(len, form.terms), default=0)
