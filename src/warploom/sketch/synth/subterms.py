"""The values a search works on: every subterm of the goal as a small integer.

A term that is no subterm of the goal can never become part of it, so it counts as undefined.
Sets of values are rows of 64-bit words, so that whole arrays of sets are combined at once. `Forms`
says which values a fold with a given operator makes of which items.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import InternalError
from warploom.sketch.term.ir import Constant, Fold, Goal, Symbol, Term, Undefined, Zero
from warploom.sketch.term.laws import obeys
from warploom.sketch.term.operator import WORD, is_function

Ids: TypeAlias = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.uint64]
Words: TypeAlias = npt.NDArray[np.uint64]

# Numbers of copies that a float holds exactly; terms with more are not counted.
COUNTED_EXACTLY = 2.0**53

ZERO_ID = 0
UNDEFINED_ID = 1


@dataclass(frozen=True, eq=False)
class Forms:
    """What a fold with one operator makes: value i of `count[i]` items (−1: of none), zeros aside.

    Under the laws a run of one item makes that item. A function makes something even of a zero.
    """

    count: Ids  # [values]
    items: Ids  # [values, longest], padded with zeros
    members: Bits  # [values]: the set of items
    lone: npt.NDArray[np.bool_]  # [values]: those that are made of themselves
    weights: Words  # what each item adds to the fingerprint of a run
    _prints: Words  # fingerprints of all that can be made, sorted
    _print_ids: Ids

    def fold(self, sums: Words) -> Ids:
        """The values with these fingerprints: zero if empty, undefined if unknown."""
        at = np.minimum(np.searchsorted(self._prints, sums), len(self._prints) - 1)
        return np.where(self._prints[at] == sums, self._print_ids[at], UNDEFINED_ID)


@dataclass(frozen=True, eq=False)
class Subterms:
    """`terms[i]` is value i; 0 is zero and 1 undefined.

    `contains[i]` is the set of values that occur in value i, itself included. `items` lists each
    fold's items, padded with zeros. Items come before the folds that hold them.
    """

    terms: tuple[Term, ...]
    ids: dict[Term, int]
    contains: Bits
    items: Ids  # [values, longest fold]
    item_count: Ids  # [values]; -1 for what is not a fold
    weights: Words  # a fold's fingerprint is the sum of its items' weights
    words_by_depth: tuple[str, ...] = ()  # what the word `fold` means at each depth
    laws: tuple[str, ...] = ()
    _forms: dict[str, Forms] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def words(self) -> int:
        return int(self.contains.shape[1])

    def id_of(self, term: Term) -> int:
        return self.ids.get(term, UNDEFINED_ID)

    def ids_of(self, terms: tuple[Term, ...]) -> Ids:
        return np.array([self.id_of(t) for t in terms], dtype=np.int32)

    @cached_property
    def copies(self) -> npt.NDArray[np.float64]:
        """`copies[i, j]`: how often value j occurs in value i (float, for matrix products).

        Exact below `COUNTED_EXACTLY`; shared items can make a goal contain a term more often.
        """
        out = np.eye(len(self), dtype=np.float64)
        for i in np.flatnonzero(self.item_count >= 0):
            out[i] += out[self.items[i, : self.item_count[i]]].sum(axis=0)
        return out

    def copies_in(self, values: Ids) -> npt.NDArray[np.float64]:
        """How often each value occurs in these together: `copies[values].sum(axis=0)`."""
        out = np.bincount(values, minlength=len(self)).astype(np.float64)
        for i in np.flatnonzero(self.item_count >= 0)[::-1]:  # folds before their items
            np.add.at(out, self.items[i, : self.item_count[i]], out[i])
        return out

    @cached_property
    def item_bits(self) -> Bits:
        """The set of items of each fold; empty for what is not a fold."""
        out = np.zeros((len(self), self.words), dtype=np.uint64)
        for i in np.flatnonzero(self.item_count >= 0):
            out[i] = self.bits_of(self.items[i, : self.item_count[i]])
        return out

    @cached_property
    def _operators(self) -> npt.NDArray[np.object_]:
        """The operator of each fold; None for what is not one."""
        found = [term.operator if isinstance(term, Fold) else None for term in self.terms]
        return np.array(found, object)

    @cached_property
    def _word_operators(self) -> npt.NDArray[np.object_]:
        """What the word `fold` makes of each fold's items: the operator of their depth."""
        depth = np.zeros(len(self), np.int64)
        for i in np.flatnonzero(self.item_count >= 0):
            depth[i] = 1 + depth[self.items[i, : self.item_count[i]]].max()
        words = np.array([*self.words_by_depth, WORD], object)
        return np.asarray(words[np.minimum(depth, len(words) - 1)])

    def forms(self, operator: str) -> Forms:
        """What a fold with this operator makes of its items."""
        if operator not in self._forms:
            self._forms[operator] = self._make_forms(operator)
        return self._forms[operator]

    def _make_forms(self, operator: str) -> Forms:
        of = self._word_operators if operator == WORD else operator
        made = np.asarray(self._operators == of, np.bool_)
        count = np.where(made, self.item_count, -1).astype(np.int32)
        items, members = self.items, self.item_bits
        weights = self.weights
        if is_function(operator):
            weights = np.where(np.arange(len(self)) == ZERO_ID, _WEIGHT_OF_ZERO, weights)
        else:
            count[ZERO_ID] = 0
        alone = np.zeros(len(self), np.bool_)
        if obeys(operator, self.laws):
            alone = count < 0
            alone[UNDEFINED_ID] = False
            lone = np.flatnonzero(alone)
            items, members, count = items.copy(), members.copy(), count.copy()
            items[lone], count[lone] = 0, 1
            items[lone, 0] = lone
            members[lone] = self.singletons(lone.astype(np.int32))
        found = np.flatnonzero(count >= 0)
        sums = np.zeros(len(found), np.uint64)
        for column in range(items.shape[1]):
            sums += np.where(column < count[found], weights[items[found, column]], np.uint64(0))
        order = np.argsort(sums)
        if len(np.unique(sums)) < len(sums):
            raise InternalError("no collision-free fingerprints for the folds of this goal")
        if not len(found):  # a function of nothing that the goal holds
            sums, found, order = np.zeros(1, np.uint64), np.array([UNDEFINED_ID]), np.zeros(1, int)
        made_of = found[order].astype(np.int32)
        return Forms(count, items, members, alone, weights, sums[order], made_of)

    @cached_property
    def first_fold(self) -> int:
        """All values from here on are folds; the others contain nothing but themselves."""
        folds = np.flatnonzero(self.item_count >= 0)
        return int(folds[0]) if len(folds) else len(self)

    @cached_property
    def fold_bits(self) -> Bits:
        """The set of all folds."""
        return self.bits_of(np.flatnonzero(self.item_count >= 0))

    def all_bits(self) -> Bits:
        """The set of all values."""
        return self.bits_of(np.arange(len(self)))

    def bits_of(self, ids: npt.NDArray[np.integer] | list[int]) -> Bits:
        """One set: a row of words."""
        row = np.zeros(self.words, dtype=np.uint64)
        ids = np.asarray(ids, dtype=np.int64)
        np.bitwise_or.at(row, ids >> 6, np.uint64(1) << (ids & 63).astype(np.uint64))
        return row

    def singletons(self, ids: Ids) -> Bits:
        """The set {id} for each id: [..., words]."""
        out = np.zeros((*ids.shape, self.words), dtype=np.uint64)
        flat = out.reshape(-1, self.words)
        one = np.uint64(1) << (ids.ravel() & 63).astype(np.uint64)
        flat[np.arange(len(flat)), ids.ravel() >> 6] = one
        return out

    def unpack(self, bits: Bits) -> npt.NDArray[np.bool_]:
        """Sets as booleans: [..., values]."""
        octets = np.ascontiguousarray(bits).view(np.uint8)
        flags = np.unpackbits(octets, axis=-1, bitorder="little", count=len(self))
        return flags.view(np.bool_)


def subterms_of(goal: Goal, words: tuple[str, ...] = ()) -> Subterms:
    """The subterms of a goal whose operators are known and which is in normal form."""
    terms = _subterms(goal)
    ids = {term: i for i, term in enumerate(terms)}
    longest = max((len(t.items) for t in terms if isinstance(t, Fold)), default=1)
    items = np.zeros((len(terms), longest), dtype=np.int32)
    item_count = np.full(len(terms), -1, dtype=np.int32)
    for i, term in enumerate(terms):
        if isinstance(term, Fold):
            items[i, : len(term.items)] = sorted(ids[item] for item in term.items)
            item_count[i] = len(term.items)
    contains = _contains(items, item_count)
    weights = _weights(items, item_count)
    return Subterms(terms, ids, contains, items, item_count, weights, words, goal.laws)


def _contains(items: Ids, item_count: Ids) -> Bits:
    count = len(items)
    bits = np.zeros((count, (count + 63) // 64), dtype=np.uint64)
    at = np.arange(count)
    bits[at, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
    for i in np.flatnonzero(item_count >= 0):
        bits[i] |= np.bitwise_or.reduce(bits[items[i, : item_count[i]]], axis=0)
    return bits


def _subterms(goal: Goal) -> tuple[Term, ...]:
    """Zero, undefined, then every subterm of the goal, items before the folds that hold them: in
    the same order in every process, as states travel."""
    names: dict[Term, str] = {}
    order: dict[Term, None] = {Zero(): None, Undefined(): None}
    stack: list[tuple[Term, bool]] = [(value, False) for value in reversed(goal.values)]
    while stack:
        term, ready = stack.pop()
        if term in order:
            continue
        if ready or not isinstance(term, Fold):
            order[term] = None
        else:
            stack.append((term, True))
            items = sorted(term.items, key=lambda item: _name(item, names), reverse=True)
            stack.extend((item, False) for item in items)
    symbols = sorted((t for t in order if isinstance(t, Symbol)), key=lambda t: t.number)
    constants = [t for t in order if isinstance(t, Constant)]
    folds = [t for t in order if isinstance(t, Fold)]
    return (Zero(), Undefined(), *symbols, *constants, *folds)


_WEIGHT_OF_ZERO = np.uint64(0x9E3779B97F4A7C15)  # in functions; elsewhere zeros add nothing


def _weights(items: Ids, item_count: Ids) -> Words:
    """Random weights under which the goal's own multisets have different sums.

    Another multiset could share a sum with probability 2**-64; each fill is verified on terms
    afterwards, so a clash can cost time but cannot produce a wrong answer.
    """
    count = len(items)
    lone = np.zeros((count, items.shape[1]), np.int32)
    lone[:, 0] = np.arange(count)
    bags = np.unique(np.concatenate([lone, items[item_count >= 0]]), axis=0)
    for seed in range(8):
        weights = np.random.default_rng(seed).integers(
            1, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True
        )
        weights[ZERO_ID] = 0
        sums = weights[bags].sum(axis=1, dtype=np.uint64)
        if len(np.unique(sums)) == len(sums):
            return weights
    raise InternalError("no collision-free fingerprints for the folds of this goal")


def popcount(bits: Bits) -> npt.NDArray[np.int64]:
    """How many bits are set in each row of words."""
    total: npt.NDArray[np.int64]
    if hasattr(np, "bitwise_count"):
        total = np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)
    else:
        octets = np.ascontiguousarray(bits).view(np.uint8)
        total = np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.int64)
    return total


def _name(term: Term, known: dict[Term, str]) -> str:
    """A name of the term, equal for equal terms in every process, and for no others."""
    stack = [term]
    while stack:
        at = stack[-1]
        if at in known:  # a term may be there thousands of times
            stack.pop()
            continue
        missing = [] if not isinstance(at, Fold) else [i for i in at.items if i not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        if isinstance(at, Fold):
            parts = [at.operator, *sorted(known[item] for item in at.items)]
            known[at] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        else:
            known[at] = f"{at.number:012}" if isinstance(at, Symbol) else repr(at)
    return known[term]
