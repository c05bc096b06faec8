"""The values a search works on: every subterm of the goal as a small integer.

A term that is no subterm of the goal can never become part of it, so it counts as undefined.
Sets of values are rows of 64-bit words, so that whole arrays of sets are combined at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import InternalError
from warploom.sketch.term.ir import Fold, Goal, Symbol, Term, Undefined, Zero

Ids: TypeAlias = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.uint64]
Words: TypeAlias = npt.NDArray[np.uint64]

# Numbers of copies that a float holds exactly; terms with more are not counted.
COUNTED_EXACTLY = 2.0**53

ZERO_ID = 0
UNDEFINED_ID = 1


@dataclass(frozen=True, eq=False)
class Domain:
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
    _prints: Words  # fingerprints of all folds, sorted
    _print_ids: Ids

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
    def fold_bits(self) -> Bits:
        """The set of all folds."""
        return self.bits_of(np.flatnonzero(self.item_count >= 0))

    def fold(self, sums: Words) -> Ids:
        """The values with these fingerprints: zero if empty, undefined if unknown."""
        at = np.minimum(np.searchsorted(self._prints, sums), len(self._prints) - 1)
        return np.where(self._prints[at] == sums, self._print_ids[at], UNDEFINED_ID)

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


def domain_of(goal: Goal) -> Domain:
    terms = _subterms(goal)
    ids = {term: i for i, term in enumerate(terms)}
    longest = max((len(t.items) for t in terms if isinstance(t, Fold)), default=1)
    items = np.zeros((len(terms), longest), dtype=np.int32)
    item_count = np.full(len(terms), -1, dtype=np.int32)
    for i, term in enumerate(terms):
        if isinstance(term, Fold):
            items[i, : len(term.items)] = [ids[item] for item in term.items]
            item_count[i] = len(term.items)
    contains = _contains(items, item_count)
    return Domain(terms, ids, contains, items, item_count, *_fingerprints(items, item_count))


def _contains(items: Ids, item_count: Ids) -> Bits:
    count = len(items)
    bits = np.zeros((count, (count + 63) // 64), dtype=np.uint64)
    at = np.arange(count)
    bits[at, at >> 6] = np.uint64(1) << (at & 63).astype(np.uint64)
    for i in np.flatnonzero(item_count >= 0):
        bits[i] |= np.bitwise_or.reduce(bits[items[i, : item_count[i]]], axis=0)
    return bits


def _subterms(goal: Goal) -> tuple[Term, ...]:
    """Zero, undefined, then every subterm of the goal, items before the folds that hold them."""
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
            stack.extend((item, False) for item in reversed(term.items))
    symbols = sorted((t for t in order if isinstance(t, Symbol)), key=lambda t: t.number)
    folds = [t for t in order if isinstance(t, Fold)]
    return (Zero(), Undefined(), *symbols, *folds)


def _fingerprints(items: Ids, item_count: Ids) -> tuple[Words, Words, Ids]:
    """Random weights under which the goal's own folds have different sums.

    Another multiset could share a sum with probability 2**-64; each fill is verified on terms
    afterwards, so a clash can cost time but cannot produce a wrong answer.
    """
    folds = np.flatnonzero(item_count >= 0)
    for seed in range(8):
        weights = np.random.default_rng(seed).integers(
            1, 2**64 - 1, size=len(items), dtype=np.uint64, endpoint=True
        )
        weights[ZERO_ID] = 0
        sums = weights[items[folds]].sum(axis=1, dtype=np.uint64)
        prints = np.concatenate([np.zeros(1, np.uint64), sums])
        order = np.argsort(prints)
        if len(np.unique(prints)) == len(prints):
            print_ids = np.concatenate([np.zeros(1, np.int32), folds.astype(np.int32)])
            return weights, prints[order], print_ids[order]
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
