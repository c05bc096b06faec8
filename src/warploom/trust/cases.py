"""Checks that no linear layout costs less than a certificate says, case by case."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.trust.checked import bits_of, independent, rank_of, require, span_of, sums_of
from warploom.trust.problem import Access, Problem, most_alike

Numbers = npt.NDArray[np.int64]
Least = list[list[int]]  # wavefronts of each group of each access, in every layout

_EACH = 256  # numbers that are computed while one case or one choice is looked at
_MOST_SHARED = 1 << 9  # elements of one bank among which words may be shared, where that is tried


@dataclass(frozen=True, slots=True, eq=False)
class _Shapes:
    """The different groups of an access, up to where they lie: the points of each in a row, which
    begins with 0 and is filled up with it; its least; how many such groups there are."""

    points: Numbers
    floors: Numbers
    counts: Numbers

    @classmethod
    def of(cls, access: Access, floors: list[int], into: Numbers) -> _Shapes:
        found = Counter[tuple[int, ...]]()
        for group, floor in zip(access.groups, floors, strict=True):
            points = np.unique(into[group])
            found[(floor, *np.sort(points ^ points[0]).tolist())] += 1
        width = max(map(len, found), default=1) - 1
        rows = [[*points, *[0] * (width - len(points))] for _, *points in found]
        table = np.array(rows, np.int64).reshape(len(rows), width)
        least = np.array([floor for floor, *_ in found], np.int64)
        return cls(table, least, np.array([*found.values()], np.int64))


class Cases:
    """All linear layouts: element e lies at L(e) ^ c, L a bijective matrix over F2.

    A column is the bank, in bits, of one vector of a basis: first the directions of vectors, whose
    banks are their places, then `basis`. Wavefronts depend only on which sums of vectors have bank
    0, not on the names of banks: adding bank bits to one another changes nothing, as long as places
    stay. So the part of a column above the places may be taken to be the next unused bank bit or a
    sum of used ones. A place bit j of a difference of first elements of vectors longer than 2^j is
    0. Words of one bank differ but for what shares a word: `loose` bits where no vector says what.
    """

    def __init__(self, problem: Problem, least: Least, claimed: Fraction, proof: Any) -> None:
        self._problem, self._claimed, self._proof = problem, claimed, proof
        self._work = problem.work
        size, bits = problem.element_bytes, bits_of(problem.size)
        inside = bits_of(max(1, 4 * problem.tile.packed // size))
        vector = max(problem.accesses, key=lambda a: a.elements.shape[2]).vectors[0]
        directions = (vector[1 << np.arange(bits_of(len(vector)))] ^ vector[0]).tolist()
        for access in problem.accesses:
            apart, sums = access.vectors ^ access.vectors[:, :1], span_of(directions)
            require(bool((apart == sums[: apart.shape[1]]).all()), "vectors differ in direction")
        self._bank_bits = bits_of(problem.banks) - bits_of(max(1, size // 4))
        self._places = max(0, len(directions) - inside)
        self._loose = max(0, inside - len(directions))
        self._apart = []  # differences of first elements of vectors with more than 2^j
        for j in range(inside, len(directions)):
            wide = [a.vectors[:, 0] for a in problem.accesses if a.elements.shape[2] > 1 << j]
            apart = np.unique(np.concatenate(wide)) ^ wide[0][0]
            self._apart.append(independent(apart.tolist()))
        basis = [*directions, *proof["basis"]]
        self._total = bits - min(inside, len(directions))
        # A sum that is no element would make another number of each, and of directions, too.
        require(all(0 < each < problem.size for each in basis), "a basis of no elements")
        require(len(basis) == bits == rank_of(basis), "this is no basis")
        into = np.argsort(span_of(basis)) >> min(inside, len(directions))  # to coordinates
        pairs = zip(problem.accesses, least, strict=True)
        self._shapes = [_Shapes.of(access, floors, into) for access, floors in pairs]

    def visit(self, case: Any, more: tuple[int, ...] = ()) -> None:
        columns = [1 << place for place in range(self._places)] + [*more]
        if isinstance(case, list):
            found = self._cost(columns, case)
            require(found >= self._claimed, f"columns {columns}: {case} cost only {found}")
            return
        require(len(columns) < self._total, "a case goes on when all is decided")
        require({int(key) for key in case} == self._menu(columns), f"after {columns} cases lack")
        for column, inner in case.items():
            self.visit(inner, (*more, int(column)))

    def _menu(self, columns: list[int]) -> set[int]:
        vector = self._proof["basis"][len(columns) - self._places]
        used = int(np.bitwise_or.reduce([0, *columns])) >> self._places
        highs = set(range(1 << used.bit_length()))
        if used.bit_length() < self._bank_bits - self._places:
            highs.add(1 << used.bit_length())
        free = [1 << j for j, z in enumerate(self._apart) if rank_of([*z, vector]) > rank_of(z)]
        return {high << self._places | int(low) for high in highs for low in span_of(free)}

    def _cost(self, columns: list[int], named: list[int]) -> Fraction:
        """What all layouts with these columns cost at least, by the accesses that are named."""
        shares, whole = [span_of([])], len(columns) == self._total
        known = set(named)
        numbers = sum(each.points.size for n, each in enumerate(self._shapes) if n in known)
        if whole and self._loose:
            kernel = np.flatnonzero(sums_of(columns, np.arange(1 << self._total)) == 0).tolist()
            require(len(kernel) <= _MOST_SHARED, "too many words to share")
            count = min(self._loose, len(kernel).bit_length() - 1)
            self._work.take(math.comb(len(kernel) - 1, count) * (_EACH + numbers << count))
            some = [list(few) for few in combinations(kernel[1:], count)]
            shares = [span_of(few) for few in some if rank_of(few) == count]
        self._work.take(_EACH * len(self._shapes) + numbers)
        left = 0 if whole else self._loose
        return min(self._counted(columns, known, share, left) for share in shares)

    def _counted(self, columns: list[int], named: set[int], share: Numbers, loose: int) -> Fraction:
        counts = []
        for number, shapes in enumerate(self._shapes):
            floors = shapes.floors
            if number in named:
                words = (shapes.points[:, :, None] ^ share).min(axis=2)
                words.sort(axis=1)
                known = words & (1 << len(columns)) - 1
                together = (words >> len(columns) << 16) | sums_of(columns, known)
                other = np.diff(words, axis=1, prepend=-1) != 0
                row = np.broadcast_to(np.arange(len(words))[:, None], words.shape)[other]
                most = most_alike(row << 40 | together[other], 1 << 40, len(words))
                floors = np.maximum(floors, -(-most // (1 << loose)))
            counts.append(int((shapes.counts * floors).sum()))
        return self._problem.cost(counts)
